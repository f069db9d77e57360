/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/type_codec.h"

#include <check.h>
#include <stdlib.h>
#include "cql/type.h"
#include "golden.h"

static struct arena arena;
static struct buffer buffer;
static struct error err;

static void
setup(void)
{
	arena_init(&arena, 4096);
	buffer_init(&buffer);
}

static void
teardown(void)
{
	arena_fini(&arena);
	buffer_fini(&buffer);
}

/* The type goes out as these bytes and comes back the same. */
static void
check(uint8_t version, const struct type *type, const char *expected)
{
	const struct type *back;
	struct reader reader;

	buffer_clear(&buffer);
	type_codec_encode(&buffer, version, type);
	golden_check(buffer_slice(&buffer), expected);
	reader = reader_of(buffer_slice(&buffer));
	ck_assert_int_eq(type_codec_skip(&reader, &err), 0);
	ck_assert_uint_eq(reader_left(&reader), 0);
	ck_assert_int_eq(type_codec_decode(buffer_slice(&buffer), &arena, &back, &err), 0);
	ck_assert(type_equal(type_freeze(&arena, type), type_freeze(&arena, back)));
	/* Every cut is noticed. */
	for (size_t size = 0; size < buffer.size; size++) {
		reader = reader_of(slice_of(buffer.data, size));
		ck_assert_int_eq(type_codec_skip(&reader, &err), -1);
		ck_assert_int_eq(
		    type_codec_decode(slice_of(buffer.data, size), &arena, &back, &err), -1);
	}
}

static void
check_native(uint8_t version, enum type_kind kind, const char *expected)
{
	check(version, type_native(kind), expected);
}

START_TEST(test_native_types_have_ids)
{
	check_native(3, TYPE_ASCII, "0001");
	check_native(3, TYPE_BIGINT, "0002");
	check_native(3, TYPE_BLOB, "0003");
	check_native(3, TYPE_BOOLEAN, "0004");
	check_native(3, TYPE_COUNTER, "0005");
	check_native(3, TYPE_DECIMAL, "0006");
	check_native(3, TYPE_DOUBLE, "0007");
	check_native(3, TYPE_FLOAT, "0008");
	check_native(3, TYPE_INT, "0009");
	check_native(3, TYPE_TIMESTAMP, "000b");
	check_native(3, TYPE_UUID, "000c");
	check_native(3, TYPE_TEXT, "000d");
	check_native(3, TYPE_VARINT, "000e");
	check_native(3, TYPE_TIMEUUID, "000f");
	check_native(3, TYPE_INET, "0010");
	check_native(4, TYPE_DATE, "0011");
	check_native(4, TYPE_TIME, "0012");
	check_native(4, TYPE_SMALLINT, "0013");
	check_native(4, TYPE_TINYINT, "0014");
	check_native(5, TYPE_DURATION, "0015");
}
END_TEST

START_TEST(test_types_that_a_version_does_not_know_are_custom)
{
	check_native(3, TYPE_DATE, "0000 002e 'org.apache.cassandra.db.marshal.SimpleDateType'");
	check_native(3, TYPE_TIME, "0000 0028 'org.apache.cassandra.db.marshal.TimeType'");
	check_native(3, TYPE_SMALLINT, "0000 0029 'org.apache.cassandra.db.marshal.ShortType'");
	check_native(3, TYPE_TINYINT, "0000 0028 'org.apache.cassandra.db.marshal.ByteType'");
	check_native(4, TYPE_DURATION, "0000 002c 'org.apache.cassandra.db.marshal.DurationType'");
}
END_TEST

START_TEST(test_types_with_types_inside)
{
	const struct type *number = type_native(TYPE_INT);
	const struct type *string = type_native(TYPE_TEXT);
	const struct type *list = type_list(&arena, number, false);
	const struct type *params[] = {number, string};
	const struct slice fields[] = {slice_of_string("a"), slice_of_string("b")};

	check(4, type_list(&arena, number, true), "0020 0009");
	check(4, type_set(&arena, string, true), "0022 000d");
	check(4, type_map(&arena, string, list, true), "0021 000d 0020 0009");
	check(4, type_tuple(&arena, params, 2), "0031 0002 0009 000d");
	check(4,
	    type_udt(&arena, slice_of_string("k"), slice_of_string("u"), fields, params, 2, true),
	    "0030 0001 'k' 0001 'u' 0002 0001 'a' 0009 0001 'b' 000d");
}
END_TEST

START_TEST(test_order_is_not_told)
{
	buffer_clear(&buffer);
	type_codec_encode(&buffer, 4, type_reversed(&arena, type_native(TYPE_INT)));
	golden_check(buffer_slice(&buffer), "0009");
}
END_TEST

START_TEST(test_deep_nesting_and_unknown_ids_are_refused)
{
	uint8_t deep[2000];
	const struct type *type;
	struct reader reader;

	for (size_t i = 0; i < sizeof(deep); i += 2)
		store_u16(deep + i, 0x20);
	reader = reader_of(slice_of(deep, sizeof(deep)));
	ck_assert_int_eq(type_codec_skip(&reader, &err), -1);
	ck_assert_int_eq(type_codec_decode(slice_of(deep, sizeof(deep)), &arena, &type, &err), -1);
	ck_assert_int_eq(type_codec_decode(golden("0040"), &arena, &type, &err), -1);
	ck_assert_str_eq(err.text, "Unknown column type 0x0040");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("type_codec");
	TCase *tcase = tcase_create("type_codec");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_native_types_have_ids);
	tcase_add_test(tcase, test_types_that_a_version_does_not_know_are_custom);
	tcase_add_test(tcase, test_types_with_types_inside);
	tcase_add_test(tcase, test_order_is_not_told);
	tcase_add_test(tcase, test_deep_nesting_and_unknown_ids_are_refused);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
