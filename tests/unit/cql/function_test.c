/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/function.h"
#include "cql/value.h"
#include "function_cases.h"

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

	if (strcmp(text, "-") == 0)
		return slice_null;
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

static const struct type *
cql(const char *text)
{
	const struct type *type = NULL;
	struct error err;

	ck_assert_int_eq(type_parse_cql(slice_of_string(text), NULL, NULL, &arena, &type, &err), 0);
	return type;
}

static int
find(const char *name, const struct function_argument *arguments, uint32_t count,
    const struct function **out, struct error *err)
{
	static const char operators[] = "_add+_substract-_multiply*_divide/_modulo%_negaten";

	if (name[0] == '_')
		return function_operator(strstr(operators, name)[strlen(name)], &arguments[0],
		    &arguments[1], NULL, &arena, out, err);
	if (strncmp(name, "castAs", 6) == 0) {
		char *type = arena_strdup(&arena, name + 6);

		type[0] |= 0x20;
		return function_cast(arguments[0].type, cql(type), &arena, out, err);
	}
	return function_resolve(
	    slice_null, slice_of_string(name), arguments, count, NULL, NULL, &arena, out, err);
}

START_TEST(test_results_are_those_of_cassandra)
{
	size_t i;

	for (i = 0; i < sizeof(function_cases) / sizeof(function_cases[0]); i++) {
		char *call = arena_strdup(&arena, function_cases[i].call), *argument;
		const char *name = strtok(call, " "), *got;
		struct function_argument arguments[4] = {{NULL, NULL, NULL, NULL}};
		struct slice values[4], result;
		const struct function *function;
		struct error err;
		uint32_t count = 0;

		while ((argument = strtok(NULL, " ")) != NULL) {
			char *value = strchr(argument, '=');

			*value++ = '\0';
			ck_assert_int_eq(type_parse_class(slice_of_string(argument), &arena,
					     &arguments[count].type, &err),
			    0);
			values[count++] = hex(value);
		}
		if (find(name, arguments, count, &function, &err) != 0 ||
		    function_call(function, NULL, values, &arena, &result, &err) != 0) {
			got = err.text;
		} else {
			got = show(result);
			ck_assert_str_eq(
			    type_name(&arena, function->return_type), function_cases[i].type);
		}
		ck_assert_msg(strcmp(got, function_cases[i].result) == 0, "%s gives %s, not %s",
		    function_cases[i].call, got, function_cases[i].result);
	}
}
END_TEST

/* An argument that is an integer literal. */
static enum assignment
test_literal(const void *term, const struct type *type)
{
	return literal_test(LITERAL_INTEGER, slice_of_string(term), type);
}

static struct function_argument
literal(const char *text)
{
	return (struct function_argument){NULL, test_literal, text, text};
}

static struct function_argument
typed(const char *type)
{
	return (struct function_argument){cql(type), NULL, NULL, type};
}

static const struct function_argument marker = {NULL, NULL, NULL, "?"};
static const struct function_argument null_term = {NULL, NULL, NULL, "NULL"};

static const char *
operator_of(
    char symbol, struct function_argument a, struct function_argument b, const char *receiver)
{
	const struct function *function;
	struct error err;

	if (function_operator(symbol, &a, &b, receiver != NULL ? cql(receiver) : NULL, &arena,
		&function, &err) != 0)
		return arena_strdup(&arena, err.text);
	return arena_printf(&arena, "(%s, %s) -> %s",
	    type_name(&arena, function->argument_types[0]),
	    type_name(&arena, function->argument_types[1]),
	    type_name(&arena, function->return_type));
}

START_TEST(test_operators_are_chosen_as_cassandra_does)
{
	ck_assert_str_eq(operator_of('+', literal("1"), literal("2"), NULL), "(int, int) -> int");
	ck_assert_str_eq(operator_of('+', typed("int"), typed("text"), NULL),
	    "the '+' operation is not supported between int and text");
	ck_assert_str_eq(operator_of('+', typed("int"), marker, "int"),
	    "Ambiguous '+' operation with args int and ?: use type hint to disambiguate, example "
	    "'(int) ?'");
	ck_assert_str_eq(
	    operator_of('+', literal("1"), literal("1"), "bigint"), "(bigint, bigint) -> bigint");
	ck_assert_str_eq(
	    operator_of('+', typed("bigint"), literal("1"), NULL), "(bigint, int) -> bigint");
	ck_assert_str_eq(operator_of('+', typed("int"), literal("1"), "bigint"),
	    "Ambiguous '+' operation with args int and 1: use type hint to disambiguate, example "
	    "'(int) ?'");
	ck_assert_str_eq(operator_of('+', literal("1"), null_term, "int"), "(int, int) -> int");
	ck_assert_str_eq(operator_of('+', typed("timestamp"), typed("duration"), NULL),
	    "(timestamp, duration) -> timestamp");
}
END_TEST

static const char *
call_of(const char *name, uint32_t count, struct function_argument a, struct function_argument b,
    const char *receiver)
{
	const struct function_argument arguments[] = {a, b};
	const struct function *function;
	struct error err;

	if (function_resolve(slice_null, slice_of_string(name), arguments, count,
		receiver != NULL ? cql(receiver) : NULL, NULL, &arena, &function, &err) != 0)
		return arena_strdup(&arena, err.text);
	return type_name(&arena, function->return_type);
}

START_TEST(test_overloads_are_chosen_as_cassandra_does)
{
	ck_assert_str_eq(call_of("todate", 1, typed("int"), marker, NULL),
	    "Invalid call to function todate, none of its type signatures match (known type "
	    "signatures: system.todate : (timeuuid) -> date, system.todate : (timestamp) -> date)");
	ck_assert_str_eq(call_of("todate", 1, marker, marker, NULL),
	    "Ambiguous call to function todate (can be matched by following signatures: "
	    "system.todate : (timeuuid) -> date, system.todate : (timestamp) -> date): use type "
	    "casts to disambiguate");
	ck_assert_str_eq(call_of("intasblob", 1, typed("text"), marker, NULL),
	    "Type error: text cannot be passed as argument 0 of function system.intasblob of type "
	    "int");
	ck_assert_str_eq(call_of("intasblob", 2, marker, marker, NULL),
	    "Invalid number of arguments in call to function system.intasblob: 1 required but 2 "
	    "provided");
	ck_assert_str_eq(call_of("bigintasblob", 1, literal("1"), marker, NULL), "blob");
	ck_assert_str_eq(call_of("nosuch", 1, marker, marker, NULL), "Unknown function 'nosuch'");
	ck_assert_str_eq(call_of("fromjson", 1, marker, marker, NULL),
	    "fromJson() cannot be used in the selection clause of a SELECT statement");
	ck_assert_str_eq(call_of("fromjson", 1, marker, marker, "int"), "int");
	ck_assert_str_eq(call_of("tojson", 1, typed("int"), marker, NULL), "text");
	ck_assert_str_eq(call_of("to_timestamp", 1, typed("date"), marker, NULL), "timestamp");
	ck_assert(function_is_native(slice_of_string("now")));
	ck_assert(function_is_native(slice_of_string("avg")));
	ck_assert(!function_is_native(slice_of_string("mine")));
}
END_TEST

static const char *
aggregate(const char *name, const char *type, const char *const *values)
{
	struct function_argument argument = typed(type);
	const struct function *function;
	struct slice result;
	struct error err;
	void *state;

	ck_assert_int_eq(function_resolve(slice_null, slice_of_string(name), &argument, 1, NULL,
			     NULL, &arena, &function, &err),
	    0);
	ck_assert(function->is_aggregate);
	state = function_aggregate_new(function, &arena);
	for (; *values != NULL; values++) {
		struct slice value = hex(*values);

		ck_assert_int_eq(function_aggregate_add(function, state, &value, &arena, &err), 0);
	}
	ck_assert_int_eq(function_aggregate_result(function, state, &arena, &result, &err), 0);
	return show(result);
}

START_TEST(test_aggregates_give_what_cassandra_gives)
{
	static const struct {
		const char *type;
		const char *values[6];
		const char *sum, *avg, *min, *max, *count;
	} cases[] = {
	    {"int", {NULL}, "00000000", "00000000", "null", "null", "0000000000000000"},
	    {"int", {"00000001", "00000002", "7fffffff", "-", NULL}, "80000002", "2aaaaaab",
		"00000001", "7fffffff", "0000000000000003"},
	    {"bigint", {"7fffffffffffffff", "7fffffffffffffff", NULL}, "fffffffffffffffe",
		"7fffffffffffffff", "7fffffffffffffff", "7fffffffffffffff", "0000000000000002"},
	    {"tinyint", {"64", "64", "64", NULL}, "2c", "64", "64", "64", "0000000000000003"},
	    {"varint", {"01", "0100", NULL}, "0101", "0080", "01", "0100", "0000000000000002"},
	    {"varint", {NULL}, "00", "00", "null", "null", "0000000000000000"},
	    {"decimal", {"0000000001", "0000000002", "0000000119", NULL}, "0000000137",
		"000000010f", "0000000001", "0000000119", "0000000000000003"},
	    {"decimal", {NULL}, "0000000000", "0000000000", "null", "null", "0000000000000000"},
	    {"double", {"3ff0000000000000", "3fb999999999999a", "3fc999999999999a", NULL},
		"3ff4cccccccccccd", "3fdbbbbbbbbbbbbc", "3fb999999999999a", "3ff0000000000000",
		"0000000000000003"},
	    {"float", {"3f800000", "3dcccccd", NULL}, "3f8ccccd", "3f0ccccd", "3dcccccd",
		"3f800000", "0000000000000002"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_str_eq(aggregate("sum", cases[i].type, cases[i].values), cases[i].sum);
		ck_assert_str_eq(aggregate("avg", cases[i].type, cases[i].values), cases[i].avg);
		ck_assert_str_eq(aggregate("min", cases[i].type, cases[i].values), cases[i].min);
		ck_assert_str_eq(aggregate("max", cases[i].type, cases[i].values), cases[i].max);
		ck_assert_str_eq(
		    aggregate("count", cases[i].type, cases[i].values), cases[i].count);
	}
}
END_TEST

START_TEST(test_token_hashes_composite_keys)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct function_argument arguments[2] = {typed("int"), typed("text")};
	struct slice values[2] = {hex("00000001"), hex("61")}, result;
	const struct function *function;
	struct table_metadata *table;
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "a", "int");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("token"), arguments, 1, NULL,
			     table, &arena, &function, &err),
	    0);
	ck_assert_int_eq(function_call(function, NULL, values, &arena, &result, &err), 0);
	/* token(1) of an int key, known from every Cassandra: -4069959284402364209 */
	ck_assert_str_eq(show(result), "c78499982ae4e0cf");
	table_unref(table);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "b", "text");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("token"), arguments, 2, NULL,
			     table, &arena, &function, &err),
	    0);
	ck_assert_int_eq(function_call(function, NULL, values, &arena, &result, &err), 0);
	ck_assert_uint_eq(result.size, 8);
	table_unref(table);
	table_builder_free(builder);
}
END_TEST

START_TEST(test_vectors_and_collections)
{
	struct function_argument vectors[2] = {
	    typed("vector<float, 2>"), typed("vector<float, 2>")};
	struct function_argument map = typed("map<int, text>"), list = typed("list<int>");
	struct slice values[2] = {hex("3f80000000000000"), hex("000000003f800000")}, result;
	const struct function *function;
	struct error err;

	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("similarity_cosine"), vectors,
			     2, NULL, NULL, &arena, &function, &err),
	    0);
	ck_assert_int_eq(function_call(function, NULL, values, &arena, &result, &err), 0);
	ck_assert_str_eq(show(result), "3f000000");
	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("map_keys"), &map, 1, NULL,
			     NULL, &arena, &function, &err),
	    0);
	values[0] = hex("0000000100000004000000050000000161");
	ck_assert_int_eq(function_call(function, NULL, values, &arena, &result, &err), 0);
	ck_assert_str_eq(show(result), "000000010000000400000005");
	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("collection_sum"), &list, 1,
			     NULL, NULL, &arena, &function, &err),
	    0);
	values[0] = hex("00000002000000040000000500000004fffffffe");
	ck_assert_int_eq(function_call(function, NULL, values, &arena, &result, &err), 0);
	ck_assert_str_eq(show(result), "00000003");
	ck_assert_int_eq(function_resolve(slice_null, slice_of_string("collection_countrows"),
			     &list, 1, NULL, NULL, &arena, &function, &err),
	    -1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/function");
	TCase *cases = tcase_create("function");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, test_results_are_those_of_cassandra);
	tcase_add_test(cases, test_operators_are_chosen_as_cassandra_does);
	tcase_add_test(cases, test_overloads_are_chosen_as_cassandra_does);
	tcase_add_test(cases, test_aggregates_give_what_cassandra_gives);
	tcase_add_test(cases, test_token_hashes_composite_keys);
	tcase_add_test(cases, test_vectors_and_collections);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
