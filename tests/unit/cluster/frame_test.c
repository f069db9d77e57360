/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/frame.h"

#include <check.h>
#include <stdlib.h>

static const enum compression compressions[] = {COMPRESSION_NONE, COMPRESSION_LZ4};

static struct slice
record_of(size_t size, unsigned seed)
{
	static uint8_t bytes[1 << 20];

	for (size_t i = 0; i < size; i++)
		bytes[i] = i % 7 == 0 ? (uint8_t)rand_r(&seed) : (uint8_t)seed;
	return slice_of(bytes, size);
}

/* Records of these sizes, in order. */
static void
write_records(struct buffer *out, enum compression compression, const size_t *sizes, size_t count)
{
	struct frame_writer writer;

	frame_writer_init(&writer, compression);
	for (size_t i = 0; i < count; i++) {
		struct slice record = record_of(sizes[i], (unsigned)i);

		if (i % 2 == 0) {
			frame_put(&writer, out, record);
			continue;
		}
		/* As messages are: their size is known too large. */
		buffer_put_slice(frame_record_begin(&writer, out, record.size + 100), record);
		frame_record_end(&writer, out);
	}
	frame_writer_flush(&writer, out);
	ck_assert(!out->is_failed);
	frame_writer_fini(&writer);
}

/* As they come off a socket: `step` bytes more each time, what is done with is gone. */
static void
read_records(
    struct slice wire, enum compression compression, const size_t *sizes, size_t count, size_t step)
{
	struct frame_reader reader;
	size_t at = 0, have = 0, seen = 0;
	struct slice record;
	struct error err;

	frame_reader_init(&reader, compression, 1 << 20);
	while (have < wire.size) {
		enum frame_result result;

		have = have + step < wire.size ? have + step : wire.size;
		do {
			size_t consumed;

			result = frame_read(
			    &reader, slice_of(wire.data + at, have - at), &consumed, &record, &err);
			at += consumed;
			ck_assert_int_ne(result, FRAME_BAD);
			if (result == FRAME_RECORD) {
				ck_assert_uint_lt(seen, count);
				ck_assert(
				    slice_equal(record, record_of(sizes[seen], (unsigned)seen)));
				seen++;
			}
		} while (result != FRAME_MORE);
	}
	ck_assert_uint_eq(seen, count);
	ck_assert_uint_eq(at, wire.size);
	frame_reader_fini(&reader);
}

START_TEST(test_records_come_out_as_they_went_in)
{
	static const size_t sizes[] = {1, 0, 200, 131067, 131068, 5, 300000, 3, 131000, 60, 61,
	    131070, 1 << 20, 9, 100, 130980, 70000, 70000, 12};
	enum compression compression = compressions[_i];
	struct buffer wire;

	buffer_init(&wire);
	write_records(&wire, compression, sizes, sizeof(sizes) / sizeof(sizes[0]));
	for (size_t step = wire.size; step > 1000; step /= 3)
		read_records(buffer_slice(&wire), compression, sizes,
		    sizeof(sizes) / sizeof(sizes[0]), step);
	buffer_fini(&wire);
}
END_TEST

START_TEST(test_small_records_share_a_frame)
{
	size_t sizes[1000];
	struct buffer wire;

	for (size_t i = 0; i < 1000; i++)
		sizes[i] = 20;
	buffer_init(&wire);
	write_records(&wire, COMPRESSION_NONE, sizes, 1000);
	ck_assert_uint_eq(wire.size, 1000 * 24 + 6 + 4);
	read_records(buffer_slice(&wire), COMPRESSION_NONE, sizes, 1000, 1);
	buffer_fini(&wire);
}
END_TEST

/* One bit anywhere: never a wrong record, never more of them. */
START_TEST(test_damage_is_found)
{
	static const size_t sizes[] = {50, 70, 200000, 60};
	enum compression compression = compressions[_i];
	struct buffer wire, records[4];

	buffer_init(&wire);
	write_records(&wire, compression, sizes, 4);
	for (unsigned i = 0; i < 4; i++) {
		buffer_init(&records[i]);
		buffer_put_slice(&records[i], record_of(sizes[i], i));
	}
	for (size_t bit = 0; bit < wire.size * 8; bit += bit < 200 ? 1 : bit < 2000 ? 5 : 1999) {
		struct frame_reader reader;
		enum frame_result result;
		struct slice left, record;
		struct error err;
		size_t consumed, seen = 0;

		wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		left = buffer_slice(&wire);
		frame_reader_init(&reader, compression, 1 << 20);
		while ((result = frame_read(&reader, left, &consumed, &record, &err)) ==
			FRAME_RECORD ||
		    result == FRAME_SKIPPED) {
			if (result == FRAME_RECORD) {
				bool is_known = false;

				for (unsigned i = 0; i < 4; i++)
					is_known = is_known ||
					    slice_equal(record, buffer_slice(&records[i]));
				ck_assert(is_known);
				seen++;
			} else {
				ck_assert_int_eq(err.code, ERROR_CORRUPT);
			}
			left = slice_of(left.data + consumed, left.size - consumed);
		}
		ck_assert_uint_lt(seen, 4);
		frame_reader_fini(&reader);
		wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (unsigned i = 0; i < 4; i++)
		buffer_fini(&records[i]);
	buffer_fini(&wire);
}
END_TEST

START_TEST(test_record_over_the_limit_is_passed_over)
{
	static const size_t sizes[] = {50, 300000, 60, 2000};
	static const size_t expected[] = {50, 0, 60};
	struct frame_reader reader;
	struct slice left, record;
	struct buffer wire;
	struct error err;

	buffer_init(&wire);
	write_records(&wire, COMPRESSION_NONE, sizes, 4);
	left = buffer_slice(&wire);
	frame_reader_init(&reader, COMPRESSION_NONE, 1000);
	for (int i = 0; i < 4; i++) {
		size_t consumed;
		enum frame_result result = frame_read(&reader, left, &consumed, &record, &err);

		ck_assert_int_eq(result, i % 2 == 0 ? FRAME_RECORD : FRAME_SKIPPED);
		if (result == FRAME_RECORD)
			ck_assert_uint_eq(record.size, expected[i]);
		left = slice_of(left.data + consumed, left.size - consumed);
	}
	ck_assert_uint_lt(reader.partial.capacity, 300000);
	frame_reader_fini(&reader);
	buffer_fini(&wire);
}
END_TEST

/* ---- Handshake ------------------------------------------------------------------------------ */

START_TEST(test_hello_and_welcome_survive_the_wire)
{
	struct frame_hello hello = {.version_min = 1,
	    .version_max = 3,
	    .kind = FRAME_KIND_LARGE,
	    .compression = COMPRESSION_LZ4,
	    .from = {.address = {10, 0, 0, 1}, .size = 4, .port = 7000},
	    .to = {.address = {0xfe, 0x80}, .size = 16, .port = 7001},
	    .cluster_name = "Test Cluster"};
	struct frame_welcome welcome = {.status = FRAME_WRONG_CLUSTER,
	    .version = 2,
	    .compression = COMPRESSION_NONE,
	    .from = hello.to,
	    .cluster_name = "Another"};
	struct frame_hello hello_out;
	struct frame_welcome welcome_out;
	struct buffer wire;
	struct error err;

	buffer_init(&wire);
	frame_put_hello(&wire, &hello);
	for (size_t size = 0; size < wire.size; size++)
		ck_assert_int_eq(frame_get_hello(slice_of(wire.data, size), &hello_out, &err), 0);
	ck_assert_int_eq(
	    frame_get_hello(buffer_slice(&wire), &hello_out, &err), (ssize_t)wire.size);
	ck_assert_uint_eq(hello_out.kind, FRAME_KIND_LARGE);
	ck_assert_uint_eq(hello_out.version_max, 3);
	ck_assert_uint_eq(hello_out.compression, COMPRESSION_LZ4);
	ck_assert(endpoint_equal(&hello_out.from, &hello.from));
	ck_assert(endpoint_equal(&hello_out.to, &hello.to));
	ck_assert_str_eq(hello_out.cluster_name, "Test Cluster");
	for (size_t bit = 0; bit < wire.size * 8; bit++) {
		wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_le(frame_get_hello(buffer_slice(&wire), &hello_out, &err), 0);
		wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	buffer_clear(&wire);
	frame_put_welcome(&wire, &welcome);
	ck_assert_int_eq(
	    frame_get_welcome(buffer_slice(&wire), &welcome_out, &err), (ssize_t)wire.size);
	ck_assert_uint_eq(welcome_out.status, FRAME_WRONG_CLUSTER);
	ck_assert_str_eq(welcome_out.cluster_name, "Another");
	ck_assert_int_eq(frame_get_hello(buffer_slice(&wire), &hello_out, &err), -1);
	buffer_fini(&wire);
}
END_TEST

START_TEST(test_stranger_is_known_by_the_first_byte)
{
	struct frame_hello hello;
	struct error err;

	ck_assert_int_eq(frame_get_hello(slice_of_string("G"), &hello, &err), -1);
	ck_assert_int_eq(frame_get_hello(slice_of_string("HLNI\xff\xff"), &hello, &err), -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("frame");
	TCase *tcase = tcase_create("frame");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, test_records_come_out_as_they_went_in, 0, 2);
	tcase_add_test(tcase, test_small_records_share_a_frame);
	tcase_add_loop_test(tcase, test_damage_is_found, 0, 2);
	tcase_add_test(tcase, test_record_over_the_limit_is_passed_over);
	tcase_add_test(tcase, test_hello_and_welcome_survive_the_wire);
	tcase_add_test(tcase, test_stranger_is_known_by_the_first_byte);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
