/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/json.h"
#include "cql/value.h"
#include "value_cases.h"

static struct arena arena;

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

static struct slice
hex(const char *text)
{
	uint8_t *out = arena_alloc_bytes(&arena, strlen(text) / 2 + 1);

	ck_assert_int_eq(hex_decode(text, strlen(text), out), 0);
	return slice_of(out, strlen(text) / 2);
}

static const char *
show(struct slice value)
{
	char *out;

	if (slice_is_null(value))
		return "null";
	out = arena_alloc_bytes(&arena, 2 * value.size + 1);
	hex_encode(value, out);
	return out;
}

static const char *
run_case(size_t i)
{
	const char *command = value_cases[i].command;
	struct slice argument = slice_of_string(value_cases[i].argument), value;
	const struct type *type;
	struct buffer text;
	struct error err;
	char *copy;
	int rc;

	ck_assert_int_eq(
	    type_parse_class(slice_of_string(value_cases[i].type), &arena, &type, &err), 0);
	if (strcmp(command, "get") == 0) {
		value = hex(value_cases[i].argument);
		buffer_init(&text);
		value_to_string(type, value, &text);
		buffer_put_u8(&text, '\t');
		value_to_literal(type, value, &text);
		buffer_put_u8(&text, '\t');
		json_from_value(type, value, &text);
		copy = arena_strndup(&arena, (const char *)text.data, text.size);
		buffer_fini(&text);
		return copy;
	}
	if (strcmp(command, "str") == 0)
		rc = value_from_string(type, argument, &arena, &value, &err);
	else
		rc = json_to_value(type, argument, &arena, &value, &err);
	return rc == 0 ? show(value) : arena_printf(&arena, "!%s", err.text);
}

START_TEST(test_texts_are_those_of_cassandra)
{
	size_t i;

	for (i = 0; i < sizeof(value_cases) / sizeof(value_cases[0]); i++) {
		const char *got = run_case(i);

		ck_assert_msg(strcmp(got, value_cases[i].expected) == 0,
		    "%s %s %s gives %s, not %s", value_cases[i].command, value_cases[i].type,
		    value_cases[i].argument, got, value_cases[i].expected);
	}
}
END_TEST

static const char *
literal(enum literal_kind kind, const char *text, enum type_kind type)
{
	struct slice value;
	struct error err;

	if (literal_to_value(kind, slice_of_string(text), type_native(type), slice_of_string("c"),
		&arena, &value, &err) != 0)
		return arena_printf(&arena, "!%s", err.text);
	return show(value);
}

START_TEST(test_literals_go_where_they_may)
{
	ck_assert_str_eq(literal(LITERAL_INTEGER, "1", TYPE_INT), "00000001");
	ck_assert_str_eq(literal(LITERAL_INTEGER, "1", TYPE_DOUBLE), "3ff0000000000000");
	ck_assert_str_eq(literal(LITERAL_INTEGER, "7", TYPE_COUNTER), "0000000000000007");
	ck_assert_str_eq(literal(LITERAL_STRING, "x", TYPE_INT),
	    "!Invalid STRING constant (x) for \"c\" of type int");
	ck_assert_str_eq(literal(LITERAL_INTEGER, "1", TYPE_BOOLEAN),
	    "!Invalid INTEGER constant (1) for \"c\" of type boolean");
	ck_assert_str_eq(literal(LITERAL_HEX, "0xCAFE", TYPE_BLOB), "cafe");
	ck_assert_str_eq(literal(LITERAL_HEX, "0x", TYPE_BLOB), "");
	ck_assert_str_eq(
	    literal(LITERAL_HEX, "0xabc", TYPE_BLOB), "!cannot parse 'abc' as hex bytes");
	ck_assert_str_eq(literal(LITERAL_FLOAT, "-nan", TYPE_DOUBLE), "7ff8000000000000");
	ck_assert_str_eq(literal(LITERAL_FLOAT, "-infinity", TYPE_FLOAT), "ff800000");
	ck_assert_str_eq(literal(LITERAL_FLOAT, "3.4e39", TYPE_FLOAT), "7f800000");
	ck_assert_str_eq(literal(LITERAL_FLOAT, "1.5", TYPE_VARINT),
	    "!Invalid FLOAT constant (1.5) for \"c\" of type varint");
	ck_assert_str_eq(literal(LITERAL_STRING, "10:11:12", TYPE_TIME), "0000215a5d888000");
	ck_assert_str_eq(literal(LITERAL_DURATION, "-1d", TYPE_DURATION), "000100");
	ck_assert_str_eq(literal(LITERAL_INTEGER, "2147483648", TYPE_INT),
	    "!Unable to make int from '2147483648'");
}
END_TEST

START_TEST(test_literals_prefer_one_type)
{
	static const struct {
		enum literal_kind kind;
		const char *text;
		enum type_kind type;
	} cases[] = {
	    {LITERAL_STRING, "abc", TYPE_ASCII},
	    {LITERAL_STRING, "\xc3\xa9", TYPE_TEXT},
	    {LITERAL_INTEGER, "1", TYPE_INT},
	    {LITERAL_INTEGER, "2147483648", TYPE_BIGINT},
	    {LITERAL_INTEGER, "9223372036854775808", TYPE_VARINT},
	    {LITERAL_FLOAT, "1.5", TYPE_DOUBLE},
	    {LITERAL_FLOAT, "1.1", TYPE_DECIMAL},
	    {LITERAL_FLOAT, "NaN", TYPE_DOUBLE},
	    {LITERAL_UUID, "550e8400-e29b-11d4-a716-446655440000", TYPE_TIMEUUID},
	    {LITERAL_UUID, "550e8400-e29b-41d4-a716-446655440000", TYPE_UUID},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice text = slice_of_string(cases[i].text);

		ck_assert_ptr_eq(
		    literal_exact_type(cases[i].kind, text), type_native(cases[i].type));
		ck_assert_int_eq(literal_test(cases[i].kind, text, type_native(cases[i].type)),
		    ASSIGNMENT_EXACT);
	}
	ck_assert_int_eq(
	    literal_test(LITERAL_INTEGER, slice_of_string("1"), type_native(TYPE_BIGINT)),
	    ASSIGNMENT_WEAK);
	ck_assert_int_eq(literal_test(LITERAL_INTEGER, slice_of_string("1"),
			     type_list(&arena, type_native(TYPE_INT), true)),
	    ASSIGNMENT_NOT);
}
END_TEST

START_TEST(test_timestamps_follow_the_rules_of_zones)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
	    {"2011-07-03 04:05:06 Europe/Paris", INT64_C(1309658706000)},
	    {"2011-02-03 04:05:06 Europe/Paris", INT64_C(1296702306000)},
	    {"2050-07-01 00:00 America/New_York", INT64_C(2540260800000)},
	    {"2050-01-01 00:00 America/New_York", INT64_C(2524626000000)},
	    {"2011-07-03 04:05:06 PST", INT64_C(1309691106000)},
	};
	struct error err;
	int64_t ms;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(
		    value_parse_timestamp(slice_of_string(cases[i].text), 0, &ms, &err), 0);
		ck_assert_msg(ms == cases[i].ms, "%s: %lld", cases[i].text, (long long)ms);
	}
	ck_assert_int_eq(value_parse_timestamp(slice_of_string("now"), 77, &ms, &err), 0);
	ck_assert_int_eq(ms, 77);
	ck_assert_int_eq(
	    value_parse_timestamp(slice_of_string("2011-02-03 1:00 ../etc/passwd"), 0, &ms, &err),
	    -1);
}
END_TEST

START_TEST(test_days_and_dates_are_inverse)
{
	int64_t days, year;
	int month, day;

	for (days = -800000; days < 800000; days += 13) {
		value_civil_from_days(days, &year, &month, &day);
		ck_assert_int_eq(value_days_from_civil(year, month, day), days);
	}
	ck_assert_int_eq(value_days_from_civil(1970, 1, 1), 0);
	ck_assert_int_eq(value_days_from_civil(2000, 3, 1), 11017);
}
END_TEST

START_TEST(test_insert_json_document_is_split)
{
	struct json_field *fields;
	struct error err;
	uint32_t count;

	ck_assert_int_eq(
	    json_parse_object(slice_of_string("{\"A\": 1, \"\\\"B\\\"\": [1, {\"x\": null}], "
					      "\"a\": null} trailing"),
		&arena, &fields, &count, &err),
	    0);
	ck_assert_uint_eq(count, 2);
	ck_assert(slice_equal_string(fields[0].name, "a"));
	ck_assert(fields[0].is_null);
	ck_assert(slice_equal_string(fields[1].name, "B"));
	ck_assert(slice_equal_string(fields[1].value, "[1, {\"x\": null}]"));
	ck_assert_int_eq(
	    json_parse_object(slice_of_string("null"), &arena, &fields, &count, &err), -1);
	ck_assert_str_eq(err.text, "Got null for INSERT JSON values");
	ck_assert_int_eq(
	    json_parse_object(slice_of_string("{\"a\": "), &arena, &fields, &count, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "Could not decode JSON string as a map: "));
	ck_assert_ptr_nonnull(strstr(err.text, "(String was: {\"a\": )"));
}
END_TEST

START_TEST(test_names_of_columns_keep_their_case_in_json)
{
	static const char *const names[][2] = {
	    {"abc", "\"abc\""}, {"Abc", "\"\\\"Abc\\\"\""}, {"a b", "\"a b\""}};
	struct buffer out;
	size_t i;

	buffer_init(&out);
	for (i = 0; i < 3; i++) {
		buffer_clear(&out);
		json_put_column_name(slice_of_string(names[i][0]), &out);
		ck_assert(slice_equal_string(buffer_slice(&out), names[i][1]));
	}
	buffer_fini(&out);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/value");
	TCase *cases = tcase_create("value");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, test_texts_are_those_of_cassandra);
	tcase_add_test(cases, test_literals_go_where_they_may);
	tcase_add_test(cases, test_literals_prefer_one_type);
	tcase_add_test(cases, test_timestamps_follow_the_rules_of_zones);
	tcase_add_test(cases, test_days_and_dates_are_inverse);
	tcase_add_test(cases, test_insert_json_document_is_split);
	tcase_add_test(cases, test_names_of_columns_keep_their_case_in_json);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
