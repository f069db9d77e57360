/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/segment.h"

#include <check.h>
#include <stdlib.h>
#include "golden.h"

static struct segment_decoder decoder;
static struct envelope_header header;
static struct error err;
static struct slice payload;
static size_t consumed;

static void
setup(void)
{
	segment_decoder_init(&decoder, COMPRESSION_NONE, 0);
}

static void
setup_lz4(void)
{
	segment_decoder_fini(&decoder);
	segment_decoder_init(&decoder, COMPRESSION_LZ4, 0);
}

static void
teardown(void)
{
	segment_decoder_fini(&decoder);
}

static enum segment_result
decode(struct slice run)
{
	return segment_decode(&decoder, run, &consumed, &payload, &header, &err);
}

/* OPTIONS on stream 1, framed. The two checksums were computed apart from this code. */
#define GOLDEN_OPTIONS "05 00 0001 05 00000000"
#define GOLDEN_SEGMENT "09 00 02 a4c8c1 05 00 0001 05 00000000 b5557486"

START_TEST(test_a_plain_segment_has_the_golden_bytes)
{
	struct buffer out;

	buffer_init(&out);
	segment_put(&out, golden(GOLDEN_OPTIONS), COMPRESSION_NONE);
	golden_check(buffer_slice(&out), GOLDEN_SEGMENT);
	ck_assert_int_eq(decode(buffer_slice(&out)), SEGMENT_PAYLOAD);
	ck_assert_uint_eq(consumed, out.size);
	golden_check(payload, GOLDEN_OPTIONS);
	ck_assert_ptr_eq(payload.data, out.data + SEGMENT_HEADER_SIZE);
	buffer_fini(&out);
}
END_TEST

START_TEST(test_every_prefix_of_a_segment_asks_for_more)
{
	struct slice whole = golden(GOLDEN_SEGMENT);

	for (size_t size = 0; size < whole.size; size++)
		ck_assert_int_eq(decode(slice_of(whole.data, size)), SEGMENT_MORE);
	ck_assert_uint_eq(consumed, 0);
}
END_TEST

START_TEST(test_every_flipped_bit_is_found)
{
	struct slice whole = golden(GOLDEN_SEGMENT);

	for (size_t bit = 0; bit < whole.size * 8; bit++) {
		uint8_t bytes[64];

		memcpy(bytes, whole.data, whole.size);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(decode(slice_of(bytes, whole.size)), SEGMENT_BAD);
		ck_assert_int_eq(err.code, ERROR_PROTOCOL);
		ck_assert_ptr_nonnull(strstr(err.text,
		    bit < 48 ? "unrecoverable CRC mismatch detected in frame header"
			     : "unrecoverable CRC mismatch detected in frame body"));
		ck_assert_int_eq(header.stream, 0);
		ck_assert_int_eq(header.version, 5);
	}
}
END_TEST

/* Append a QUERY-like envelope with a body of `size` bytes. */
static void
put_envelope(struct buffer *buffer, int16_t stream, uint32_t size, bool is_noise)
{
	struct envelope_header written = {
	    .version = 5, .stream = stream, .opcode = OPCODE_QUERY, .length = size};
	uint8_t *at = buffer_append(buffer, ENVELOPE_HEADER_SIZE + size);
	uint32_t state = 12345;

	envelope_store_header(at, &written);
	for (uint32_t i = 0; i < size; i++) {
		state = state * 1103515245 + 12345;
		at[ENVELOPE_HEADER_SIZE + i] = is_noise ? (uint8_t)(state >> 16) : (uint8_t)stream;
	}
}

/* All envelopes that `segments` hold, one after another; returns how many payloads there were. */
static int
collect(struct slice segments, struct buffer *out)
{
	int payloads = 0;

	while (segments.size > 0) {
		enum segment_result result = decode(segments);

		ck_assert(result == SEGMENT_PAYLOAD || result == SEGMENT_MORE);
		ck_assert_uint_gt(consumed, 0);
		segments.data += consumed;
		segments.size -= consumed;
		if (result == SEGMENT_PAYLOAD) {
			buffer_put_slice(out, payload);
			payloads++;
		}
	}
	return payloads;
}

static void
check_round_trip(enum compression compression, bool is_noise)
{
	static const uint32_t sizes[] = {
	    0, 1, 100, 600, 131062, 131063, 5, 400000, 7, 131062, 90000, 90000};
	struct buffer plain, framed, again;

	buffer_init(&plain);
	buffer_init(&framed);
	buffer_init(&again);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put_envelope(&plain, (int16_t)i, sizes[i], is_noise);
	segment_put(&framed, buffer_slice(&plain), compression);
	ck_assert_int_eq(buffer_check(&framed, &err), 0);
	/* {0, 1, 100, 600}, one full, a cut one, {5}, a cut one, {7}, a full one, two halves */
	ck_assert_int_eq(collect(buffer_slice(&framed), &again), 9);
	ck_assert(slice_equal(buffer_slice(&plain), buffer_slice(&again)));
	buffer_fini(&plain);
	buffer_fini(&framed);
	buffer_fini(&again);
}

START_TEST(test_envelopes_of_all_sizes_survive_plain)
{
	check_round_trip(COMPRESSION_NONE, true);
}
END_TEST

START_TEST(test_envelopes_of_all_sizes_survive_lz4)
{
	setup_lz4();
	check_round_trip(COMPRESSION_LZ4, false);
	check_round_trip(COMPRESSION_LZ4, true);
}
END_TEST

START_TEST(test_noise_is_sent_uncompressed_with_length_zero)
{
	struct buffer plain, framed;
	uint64_t bits;

	setup_lz4();
	buffer_init(&plain);
	buffer_init(&framed);
	put_envelope(&plain, 1, 5000, true);
	segment_put(&framed, buffer_slice(&plain), COMPRESSION_LZ4);
	bits = framed.data[0] | framed.data[1] << 8 | framed.data[2] << 16 |
	    (uint64_t)framed.data[3] << 24 | (uint64_t)framed.data[4] << 32;
	ck_assert_uint_eq(bits & 0x1FFFF, 5009);
	ck_assert_uint_eq(bits >> 17 & 0x1FFFF, 0);
	ck_assert_uint_eq(bits >> 34, 1);
	buffer_fini(&plain);
	buffer_fini(&framed);
}
END_TEST

START_TEST(test_segments_are_closed_in_place)
{
	struct buffer framed;
	size_t mark;

	buffer_init(&framed);
	mark = segment_begin(&framed, COMPRESSION_NONE);
	segment_end(&framed, mark, COMPRESSION_NONE);
	ck_assert_uint_eq(framed.size, 0);
	mark = segment_begin(&framed, COMPRESSION_NONE);
	buffer_put_slice(&framed, golden(GOLDEN_OPTIONS));
	segment_end(&framed, mark, COMPRESSION_NONE);
	golden_check(buffer_slice(&framed), GOLDEN_SEGMENT);
	/* Too long for one segment, behind another. */
	mark = segment_begin(&framed, COMPRESSION_NONE);
	put_envelope(&framed, 3, 200000, true);
	segment_end(&framed, mark, COMPRESSION_NONE);
	ck_assert_int_eq(decode(buffer_slice(&framed)), SEGMENT_PAYLOAD);
	ck_assert_int_eq(
	    decode(slice_of(framed.data + consumed, framed.size - consumed)), SEGMENT_PAYLOAD);
	ck_assert_uint_eq(payload.size, 200009);
	buffer_fini(&framed);
}
END_TEST

START_TEST(test_a_payload_can_be_taken_away)
{
	struct buffer plain, framed, taken;

	buffer_init(&plain);
	buffer_init(&framed);
	put_envelope(&plain, 3, 200000, true);
	segment_put(&framed, buffer_slice(&plain), COMPRESSION_NONE);
	ck_assert_int_eq(decode(buffer_slice(&framed)), SEGMENT_PAYLOAD);
	/* A body out of the payload names it as well. */
	ck_assert(segment_decoder_take(
	    &decoder, slice_of(payload.data + ENVELOPE_HEADER_SIZE, 5), &taken));
	ck_assert_int_eq(decode(golden(GOLDEN_SEGMENT)), SEGMENT_PAYLOAD);
	ck_assert(!segment_decoder_take(&decoder, payload, &framed));
	ck_assert(slice_equal(buffer_slice(&taken), buffer_slice(&plain)));
	buffer_fini(&plain);
	buffer_fini(&framed);
	buffer_fini(&taken);
}
END_TEST

START_TEST(test_a_cut_envelope_that_is_too_big_is_read_away)
{
	struct buffer plain, framed;
	struct slice run;
	enum segment_result result = SEGMENT_MORE;

	decoder.frame_size_max = 300000;
	buffer_init(&plain);
	buffer_init(&framed);
	put_envelope(&plain, 12, 500000, true);
	put_envelope(&plain, 13, 5, true);
	segment_put(&framed, buffer_slice(&plain), COMPRESSION_NONE);
	/* As it comes from a socket: in small reads. */
	run = slice_of(framed.data, 0);
	while (result == SEGMENT_MORE) {
		size_t left = (size_t)(framed.data + framed.size - run.data);

		run.size = run.size + 4096 < left ? run.size + 4096 : left;
		result = decode(run);
		run.data += consumed;
		run.size -= consumed;
	}
	ck_assert_int_eq(result, SEGMENT_TOO_BIG);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_str_eq(
	    err.text, "CQL Message of size 500000 bytes exceeds allowed maximum of 300000 bytes");
	ck_assert_int_eq(header.stream, 12);
	ck_assert_int_eq(decode(slice_of(run.data, (size_t)(framed.data + framed.size - run.data))),
	    SEGMENT_PAYLOAD);
	ck_assert_uint_eq(payload.size, 14);
	ck_assert_uint_lt(decoder.partial.capacity, 300000);
	buffer_fini(&plain);
	buffer_fini(&framed);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("segment");
	TCase *tcase = tcase_create("segment");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_plain_segment_has_the_golden_bytes);
	tcase_add_test(tcase, test_every_prefix_of_a_segment_asks_for_more);
	tcase_add_test(tcase, test_every_flipped_bit_is_found);
	tcase_add_test(tcase, test_envelopes_of_all_sizes_survive_plain);
	tcase_add_test(tcase, test_envelopes_of_all_sizes_survive_lz4);
	tcase_add_test(tcase, test_noise_is_sent_uncompressed_with_length_zero);
	tcase_add_test(tcase, test_segments_are_closed_in_place);
	tcase_add_test(tcase, test_a_payload_can_be_taken_away);
	tcase_add_test(tcase, test_a_cut_envelope_that_is_too_big_is_read_away);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
