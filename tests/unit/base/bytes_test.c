/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <check.h>
#include <stdlib.h>
#include "base/error.h"

/* The rule of VIntCoding by hand: n extra bytes, n leading 1-bits. */
static const struct {
	uint64_t value;
	const char *hex;
} vectors[] = {
    {0, "00"},
    {1, "01"},
    {127, "7f"},
    {128, "8080"},
    {255, "80ff"},
    {256, "8100"},
    {16383, "bfff"},
    {16384, "c04000"},
    {2097151, "dfffff"},
    {2097152, "e0200000"},
    {268435455, "efffffff"},
    {268435456, "f010000000"},
    {(1ull << 35) - 1, "f7ffffffff"},
    {1ull << 35, "f80800000000"},
    {(1ull << 42) - 1, "fbffffffffff"},
    {1ull << 42, "fc040000000000"},
    {(1ull << 49) - 1, "fdffffffffffff"},
    {1ull << 49, "fe02000000000000"},
    {(1ull << 56) - 1, "feffffffffffffff"},
    {1ull << 56, "ff0100000000000000"},
    {UINT64_MAX, "ffffffffffffffffff"},
};

enum { VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

START_TEST(test_vint_has_the_bytes_of_cassandra)
{
	uint8_t bytes[VINT_SIZE_MAX];
	char hex[2 * VINT_SIZE_MAX + 1];
	size_t size = vint_encode(bytes, vectors[_i].value);
	struct reader reader = reader_of(slice_of(bytes, size));

	ck_assert_uint_eq(size, vint_size(vectors[_i].value));
	hex_encode(slice_of(bytes, size), hex);
	ck_assert_str_eq(hex, vectors[_i].hex);
	ck_assert_uint_eq(reader_vint(&reader), vectors[_i].value);
	ck_assert(!reader.is_failed);
	ck_assert_uint_eq(reader_left(&reader), 0);
}
END_TEST

START_TEST(test_vint_cut_short_fails)
{
	uint8_t bytes[VINT_SIZE_MAX];
	size_t size = vint_encode(bytes, vectors[_i].value);

	for (size_t cut = 0; cut < size; cut++) {
		struct reader reader = reader_of(slice_of(bytes, cut));

		ck_assert_uint_eq(reader_vint(&reader), 0);
		ck_assert(reader.is_failed);
		ck_assert_uint_eq(reader_u8(&reader), 0);
	}
}
END_TEST

START_TEST(test_signed_vint_is_zigzag)
{
	static const int64_t values[] = {
	    0, -1, 1, -2, 63, -64, 64, -65, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
	struct buffer buffer;
	struct reader reader;

	buffer_init(&buffer);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		buffer_put_signed_vint(&buffer, values[i]);
	ck_assert_uint_eq(buffer.data[0], 0);
	ck_assert_uint_eq(buffer.data[1], 1);
	ck_assert_uint_eq(buffer.data[2], 2);
	ck_assert_uint_eq(buffer.data[3], 3);
	reader = reader_of(buffer_slice(&buffer));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		ck_assert_int_eq(reader_signed_vint(&reader), values[i]);
	ck_assert(!reader.is_failed);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_null_and_empty_are_different)
{
	ck_assert(slice_is_null(slice_null));
	ck_assert(!slice_is_null(slice_empty));
	ck_assert(slice_equal(slice_null, slice_null));
	ck_assert(!slice_equal(slice_null, slice_empty));
	ck_assert(slice_equal(slice_empty, slice_of_string("")));
	ck_assert(!slice_equal_string(slice_null, ""));
	ck_assert(slice_equal_string(slice_empty, ""));
}
END_TEST

START_TEST(test_slices_order_by_bytes_and_prefix_first)
{
	ck_assert_int_lt(slice_compare(slice_null, slice_empty), 0);
	ck_assert_int_gt(slice_compare(slice_empty, slice_null), 0);
	ck_assert_int_eq(slice_compare(slice_null, slice_null), 0);
	ck_assert_int_lt(slice_compare(slice_empty, slice_of_string("a")), 0);
	ck_assert_int_lt(slice_compare(slice_of_string("a"), slice_of_string("ab")), 0);
	ck_assert_int_gt(slice_compare(slice_of_string("b"), slice_of_string("ab")), 0);
	ck_assert_int_gt(slice_compare(slice_of_string("\xff"), slice_of_string("\x7f")), 0);
	ck_assert_int_eq(slice_compare(slice_of_string("ab"), slice_of_string("ab")), 0);
}
END_TEST

START_TEST(test_buffer_writes_big_endian)
{
	struct buffer buffer;
	char hex[64];

	buffer_init(&buffer);
	buffer_put_u8(&buffer, 0x01);
	buffer_put_u16(&buffer, 0x0203);
	buffer_put_u32(&buffer, 0x04050607);
	buffer_put_u64(&buffer, 0x08090a0b0c0d0e0full);
	buffer_put_string(&buffer, "Z");
	hex_encode(buffer_slice(&buffer), hex);
	ck_assert_str_eq(hex, "0102030405060708090a0b0c0d0e0f5a");
	buffer_patch_u32(&buffer, 3, 0xaabbccdd);
	hex_encode(buffer_slice(&buffer), hex);
	ck_assert_str_eq(hex, "010203aabbccdd08090a0b0c0d0e0f5a");
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_buffer_grows_and_keeps_its_bytes)
{
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer);
	for (uint32_t i = 0; i < 100000; i++)
		buffer_put_u32(&buffer, i);
	ck_assert_int_eq(buffer_check(&buffer, &err), 0);
	ck_assert_uint_eq(buffer.size, 400000);
	for (uint32_t i = 0; i < 100000; i++)
		ck_assert_uint_eq(load_u32(buffer.data + 4 * i), i);
	buffer_fini(&buffer);
	ck_assert_ptr_null(buffer.data);
}
END_TEST

START_TEST(test_buffer_printf_fits_any_length)
{
	struct buffer buffer;
	char expected[400];

	memset(expected, 'x', sizeof(expected) - 1);
	expected[sizeof(expected) - 1] = '\0';
	for (size_t length = 0; length < sizeof(expected); length++) {
		buffer_init(&buffer);
		buffer_printf(&buffer, "%.*s", (int)length, expected);
		buffer_printf(&buffer, "%d", 7);
		ck_assert_uint_eq(buffer.size, length + 1);
		ck_assert_int_eq(memcmp(buffer.data, expected, length), 0);
		ck_assert_int_eq(buffer.data[length], '7');
		buffer_fini(&buffer);
	}
}
END_TEST

START_TEST(test_buffer_without_memory_fails_once_for_all)
{
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer);
	buffer_put_u32(&buffer, 1);
	ck_assert_ptr_null(buffer_append(&buffer, SIZE_MAX));
	ck_assert(buffer.is_failed);
	buffer_put_u32(&buffer, 2);
	buffer_put_u8(&buffer, 2);
	buffer_put_vint(&buffer, 2);
	buffer_put_string(&buffer, "text");
	buffer_printf(&buffer, "text");
	ck_assert_ptr_null(buffer_append(&buffer, 1));
	ck_assert_uint_eq(buffer.size, 4);
	ck_assert_int_eq(buffer_check(&buffer, &err), -1);
	ck_assert_int_eq(err.code, ERROR_NO_MEMORY);
	buffer_clear(&buffer);
	ck_assert_int_eq(buffer_check(&buffer, &err), 0);
	buffer_put_u8(&buffer, 3);
	ck_assert_uint_eq(buffer.size, 1);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_empty_append_gives_a_pointer)
{
	struct buffer buffer;

	buffer_init(&buffer);
	ck_assert_ptr_nonnull(buffer_append(&buffer, 0));
	ck_assert_uint_eq(buffer.size, 0);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_reader_past_the_end_fails_and_stays_failed)
{
	struct reader reader = reader_of(slice_of("\x01\x02\x03", 3));

	ck_assert_uint_eq(reader_u16(&reader), 0x0102);
	ck_assert_uint_eq(reader_u16(&reader), 0);
	ck_assert(reader.is_failed);
	ck_assert_uint_eq(reader_left(&reader), 0);
	ck_assert_uint_eq(reader_u8(&reader), 0);
	ck_assert_ptr_nonnull(reader_bytes(&reader, 1).data);
	ck_assert_uint_eq(reader_bytes(&reader, 1).size, 0);
	reader_skip(&reader, 0);
	ck_assert(reader.is_failed);
}
END_TEST

START_TEST(test_reader_takes_huge_sizes_for_what_they_are)
{
	struct reader reader = reader_of(slice_of("\x01\x02\x03", 3));

	ck_assert_uint_eq(reader_bytes(&reader, SIZE_MAX).size, 0);
	ck_assert(reader.is_failed);
	reader = reader_of(slice_of("\x01\x02\x03", 3));
	reader_skip(&reader, SIZE_MAX - 1);
	ck_assert(reader.is_failed);
}
END_TEST

START_TEST(test_reader_reads_what_the_buffer_wrote)
{
	struct buffer buffer;
	struct reader reader;

	buffer_init(&buffer);
	buffer_put_u8(&buffer, 200);
	buffer_put_u16(&buffer, 60000);
	buffer_put_u32(&buffer, 4000000000u);
	buffer_put_u64(&buffer, UINT64_MAX - 1);
	buffer_put_vint(&buffer, 12345);
	buffer_put_string(&buffer, "abc");
	reader = reader_of(buffer_slice(&buffer));
	ck_assert_uint_eq(reader_u8(&reader), 200);
	ck_assert_uint_eq(reader_u16(&reader), 60000);
	ck_assert_uint_eq(reader_u32(&reader), 4000000000u);
	ck_assert_uint_eq(reader_u64(&reader), UINT64_MAX - 1);
	ck_assert_uint_eq(reader_vint(&reader), 12345);
	ck_assert(slice_equal_string(reader_bytes(&reader, 3), "abc"));
	ck_assert(!reader.is_failed);
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_hex_is_read_in_any_case_and_checked)
{
	uint8_t bytes[4];
	char hex[9];

	ck_assert_int_eq(hex_decode("00fFaB7e", 8, bytes), 0);
	hex_encode(slice_of(bytes, 4), hex);
	ck_assert_str_eq(hex, "00ffab7e");
	ck_assert_int_eq(hex_decode("abc", 3, bytes), -1);
	ck_assert_int_eq(hex_decode("0g", 2, bytes), -1);
	ck_assert_int_eq(hex_decode("", 0, bytes), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("bytes");
	TCase *tcase = tcase_create("bytes");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_vint_has_the_bytes_of_cassandra, 0, VECTORS);
	tcase_add_loop_test(tcase, test_vint_cut_short_fails, 0, VECTORS);
	tcase_add_test(tcase, test_signed_vint_is_zigzag);
	tcase_add_test(tcase, test_null_and_empty_are_different);
	tcase_add_test(tcase, test_slices_order_by_bytes_and_prefix_first);
	tcase_add_test(tcase, test_buffer_writes_big_endian);
	tcase_add_test(tcase, test_buffer_grows_and_keeps_its_bytes);
	tcase_add_test(tcase, test_buffer_printf_fits_any_length);
	tcase_add_test(tcase, test_buffer_without_memory_fails_once_for_all);
	tcase_add_test(tcase, test_empty_append_gives_a_pointer);
	tcase_add_test(tcase, test_reader_past_the_end_fails_and_stays_failed);
	tcase_add_test(tcase, test_reader_takes_huge_sizes_for_what_they_are);
	tcase_add_test(tcase, test_reader_reads_what_the_buffer_wrote);
	tcase_add_test(tcase, test_hex_is_read_in_any_case_and_checked);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
