/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/compression.h"

#include <check.h>
#include <stdlib.h>
#include "golden.h"

static struct arena arena;
static struct error err;

static void
setup(void)
{
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	arena_fini(&arena);
}

static struct envelope
compressed(struct slice body, uint8_t version)
{
	struct envelope envelope = {.body = body};

	envelope.header.version = version;
	envelope.header.flags = ENVELOPE_COMPRESSED | ENVELOPE_TRACING;
	envelope.header.length = (uint32_t)body.size;
	return envelope;
}

static void
check_round_trip(enum compression compression)
{
	struct envelope envelope;
	struct buffer buffer;

	buffer_init(&buffer);
	buffer_put_string(&buffer, "head");
	for (int i = 0; i < 10000; i++)
		buffer_put_u8(&buffer, (uint8_t)(i / 100));
	ck_assert(compression_close_body(compression, &buffer, 4));
	ck_assert_uint_lt(buffer.size, 5000);
	envelope = compressed(slice_of(buffer.data + 4, buffer.size - 4), 4);
	ck_assert_int_eq(compression_open_body(compression, &envelope, 10000, &arena, &err), 0);
	ck_assert_uint_eq(envelope.body.size, 10000);
	ck_assert_uint_eq(envelope.header.length, 10000);
	ck_assert_uint_eq(envelope.header.flags, ENVELOPE_TRACING);
	for (int i = 0; i < 10000; i++)
		ck_assert_uint_eq(envelope.body.data[i], (uint8_t)(i / 100));
	/* One byte more than is allowed. */
	envelope = compressed(slice_of(buffer.data + 4, buffer.size - 4), 4);
	ck_assert_int_eq(compression_open_body(compression, &envelope, 9999, &arena, &err), -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	/* Every cut is noticed. */
	for (size_t size = 0; size < buffer.size - 4; size++) {
		envelope = compressed(slice_of(buffer.data + 4, size), 4);
		ck_assert_int_eq(
		    compression_open_body(compression, &envelope, 10000, &arena, &err), -1);
	}
	buffer_fini(&buffer);
}

START_TEST(test_bodies_survive_lz4)
{
	check_round_trip(COMPRESSION_LZ4);
}
END_TEST

START_TEST(test_bodies_survive_snappy)
{
	check_round_trip(COMPRESSION_SNAPPY);
}
END_TEST

START_TEST(test_lz4_length_is_big_endian)
{
	/* Five literals. */
	struct envelope envelope = compressed(golden("00000005 50 'hello'"), 3);

	ck_assert_int_eq(compression_open_body(COMPRESSION_LZ4, &envelope, 100, &arena, &err), 0);
	golden_check(envelope.body, "'hello'");
	envelope = compressed(golden("00000000"), 3);
	ck_assert_int_eq(compression_open_body(COMPRESSION_LZ4, &envelope, 100, &arena, &err), 0);
	ck_assert_uint_eq(envelope.body.size, 0);
}
END_TEST

START_TEST(test_a_bomb_is_refused_before_memory_is_taken)
{
	struct envelope envelope = compressed(golden("00ffffff 50 'hello'"), 4);
	size_t before = arena.total_bytes;

	ck_assert_int_eq(
	    compression_open_body(COMPRESSION_LZ4, &envelope, 16 << 20, &arena, &err), -1);
	envelope = compressed(golden("ffffffff 50 'hello'"), 4);
	ck_assert_int_eq(
	    compression_open_body(COMPRESSION_LZ4, &envelope, 16 << 20, &arena, &err), -1);
	envelope = compressed(golden("ffffff07 50 'hello'"), 4);
	ck_assert_int_eq(
	    compression_open_body(COMPRESSION_SNAPPY, &envelope, 16 << 20, &arena, &err), -1);
	ck_assert_uint_eq(arena.total_bytes, before);
}
END_TEST

START_TEST(test_the_flag_means_nothing_on_v5_or_without_agreement)
{
	struct envelope envelope = compressed(golden("'hello'"), 5);

	ck_assert_int_eq(compression_open_body(COMPRESSION_LZ4, &envelope, 100, &arena, &err), 0);
	golden_check(envelope.body, "'hello'");
	envelope = compressed(golden("'hello'"), 4);
	ck_assert_int_eq(compression_open_body(COMPRESSION_NONE, &envelope, 100, &arena, &err), 0);
	golden_check(envelope.body, "'hello'");
}
END_TEST

START_TEST(test_short_bodies_and_noise_are_left_alone)
{
	struct buffer buffer;
	uint32_t state = 1;

	buffer_init(&buffer);
	for (int i = 0; i < COMPRESSION_BODY_MIN - 1; i++)
		buffer_put_u8(&buffer, 'a');
	ck_assert(!compression_close_body(COMPRESSION_LZ4, &buffer, 0));
	buffer_clear(&buffer);
	for (int i = 0; i < 2000; i++) {
		state = state * 1103515245 + 12345;
		buffer_put_u8(&buffer, (uint8_t)(state >> 16));
	}
	ck_assert(!compression_close_body(COMPRESSION_LZ4, &buffer, 0));
	ck_assert(!compression_close_body(COMPRESSION_SNAPPY, &buffer, 0));
	ck_assert_uint_eq(buffer.size, 2000);
	buffer_fini(&buffer);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("compression");
	TCase *tcase = tcase_create("compression");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_bodies_survive_lz4);
	tcase_add_test(tcase, test_bodies_survive_snappy);
	tcase_add_test(tcase, test_lz4_length_is_big_endian);
	tcase_add_test(tcase, test_a_bomb_is_refused_before_memory_is_taken);
	tcase_add_test(tcase, test_the_flag_means_nothing_on_v5_or_without_agreement);
	tcase_add_test(tcase, test_short_bodies_and_noise_are_left_alone);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
