/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "parser_cases.h"
#include "parser_dump.h"
#include "parser_error_cases.h"

static struct arena arena;
static struct buffer buffer;
static struct error err;

static void
setup(void)
{
	arena_init(&arena, 4096);
	buffer_init(&buffer);
	error_clear(&err);
}

static void
teardown(void)
{
	buffer_fini(&buffer);
	arena_fini(&arena);
}

/* Text of exactly its size, so that a sanitizer sees a step beyond the end. */
static int
parse(const char *cql, struct statement **out)
{
	size_t size = strlen(cql);
	char *copy = malloc(size > 0 ? size : 1);
	int rc;

	memcpy(copy, cql, size);
	rc = cql_parse(slice_of(copy, size), &arena, out, &err);
	free(copy);
	return rc;
}

static struct statement *
parsed(const char *cql)
{
	struct statement *statement = NULL;

	ck_assert_msg(parse(cql, &statement) == 0, "%s: %s", cql, err.text);
	return statement;
}

static void
expect_error(const char *cql, enum error_code code, const char *text)
{
	struct statement *statement = NULL;

	ck_assert_msg(parse(cql, &statement) == -1, "%s: no error", cql);
	ck_assert_ptr_null(statement);
	ck_assert_msg(
	    strcmp(err.text, text) == 0, "%s:\n  got  %s\n  want %s", cql, err.text, text);
	ck_assert_int_eq(err.code, code);
}

static const char *
text_of_buffer(void)
{
	buffer_put_u8(&buffer, 0);
	return (const char *)buffer.data;
}

/* ---- Tables ---- */

START_TEST(test_statement_has_the_tree_that_is_written)
{
	const struct parser_case *each = &parser_cases[_i];

	parser_dump(parsed(each->cql), &buffer);
	ck_assert_str_eq(text_of_buffer(), each->tree);
}
END_TEST

START_TEST(test_wrong_statement_has_cassandras_error)
{
	const struct parser_error_case *each = &parser_error_cases[_i];

	expect_error(each->cql, each->code, each->text);
}
END_TEST

/* Every beginning of a statement is answered, one way or the other. */
START_TEST(test_cut_statement_never_hurts)
{
	const char *cql = parser_cases[_i].cql;
	struct statement *statement;
	size_t size = strlen(cql);

	for (size_t i = 0; i <= size; i++) {
		char *copy = malloc(i > 0 ? i : 1);

		memcpy(copy, cql, i);
		if (cql_parse(slice_of(copy, i), &arena, &statement, &err) != 0)
			ck_assert(err.code == ERROR_SYNTAX || err.code == ERROR_INVALID);
		free(copy);
		arena_reset(&arena);
	}
}
END_TEST

/* ---- Limits ---- */

static char *
repeated(const char *before, const char *what, size_t count, const char *after)
{
	size_t size = strlen(before) + strlen(what) * count + strlen(after) + 1;
	char *text = malloc(size), *at = stpcpy(text, before);

	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, what);
	strcpy(at, after);
	return text;
}

static void
expect_too_deep(const char *before, const char *what, const char *after)
{
	char *cql = repeated(before, what, 100000, after);
	struct statement *statement;

	ck_assert_int_eq(parse(cql, &statement), -1);
	ck_assert_int_eq(err.code, ERROR_SYNTAX);
	ck_assert_msg(strstr(err.text, "nested too deeply") != NULL, "%s", err.text);
	free(cql);
}

START_TEST(test_deep_nesting_is_a_syntax_error)
{
	expect_too_deep("SELECT * FROM t WHERE k = ", "[", "");
	expect_too_deep("SELECT * FROM t WHERE k = ", "(", "");
	expect_too_deep("SELECT * FROM t WHERE k = ", "{a: ", "");
	expect_too_deep("SELECT * FROM t WHERE k = ", "(int)", "1");
	expect_too_deep("SELECT * FROM t WHERE k = ", "f(", "");
	expect_too_deep("SELECT * FROM t WHERE k = ", "1 + ", "1");
	expect_too_deep("SELECT * FROM t WHERE ", "(", "");
	expect_too_deep("SELECT ", "(", "a");
	expect_too_deep("SELECT ", "(a)", "a FROM t");
	expect_too_deep("SELECT ", "(a)[", "a FROM t");
	expect_too_deep("SELECT ", "- ", "a FROM t");
	expect_too_deep("SELECT ", "a * ", "a FROM t");
	expect_too_deep("SELECT a", ".a", " FROM t");
	expect_too_deep("SELECT JSON DISTINCT ", "[", "");
	expect_too_deep("CREATE TABLE t (a ", "list<", "");
}
END_TEST

START_TEST(test_nesting_in_use_is_no_problem)
{
	char *cql = repeated("SELECT * FROM t WHERE k = ", "[", 150, "1");
	char *whole = repeated(cql, "]", 150, "");

	parsed(whole);
	free(whole);
	free(cql);
}
END_TEST

/* Neither speculation nor going back may cost more than a little for each token. */
START_TEST(test_ambiguous_statements_do_not_explode)
{
	static const char *const repeats[] = {
	    "(a)[", "(a)[1..", "f((a)", "[(a)", "{(a):", "(a)+(", "f("};

	for (size_t i = 0; i < sizeof(repeats) / sizeof(repeats[0]); i++) {
		char *cql = repeated("SELECT JSON DISTINCT ", repeats[i], 60, "!");
		struct statement *statement;

		ck_assert_int_eq(parse(cql, &statement), -1);
		free(cql);
		cql = repeated("SELECT JSON DISTINCT ", repeats[i], 60, " FROM");
		ck_assert_int_eq(parse(cql, &statement), -1);
		ck_assert_uint_lt(arena.total_bytes, 8 << 20);
		free(cql);
	}
}
END_TEST

START_TEST(test_markers_beyond_the_wires_limit_are_refused)
{
	char *cql = repeated("SELECT * FROM t WHERE k IN (?", ",?", 65534, ")");

	ck_assert_uint_eq(parsed(cql)->marker_count, 65535);
	free(cql);
	cql = repeated("SELECT * FROM t WHERE k IN (?", ",?", 65535, ")");
	expect_error(cql, ERROR_INVALID,
	    "Too many markers(?). 65536 markers exceed the allowed maximum of 65535");
	free(cql);
}
END_TEST

START_TEST(test_long_error_keeps_to_its_room)
{
	char *cql = repeated("SELECT ", "\xc3\xa9", 3000, " FROM t");
	char *quoted = repeated("SELECT \"x\" \"", "\xc3\xa9", 3000, "\" FROM t");
	struct statement *statement;

	ck_assert_int_eq(parse(cql, &statement), -1);
	ck_assert_int_eq(parse(quoted, &statement), -1);
	ck_assert_uint_lt(strlen(err.text), sizeof(err.text));
	free(cql);
	free(quoted);
}
END_TEST

/* ---- What other modules rely on ---- */

START_TEST(test_places_count_in_lines_and_utf16_units)
{
	struct statement *statement = parsed("SELECT '\xc3\xa9\xf0\x9f\x98\x80', ?,\n\t :b FROM t");

	ck_assert_uint_eq(statement->marker_count, 2);
	ck_assert_uint_eq(statement->markers[0].at.line, 1);
	ck_assert_uint_eq(statement->markers[0].at.column, 14);
	ck_assert_uint_eq(statement->markers[1].at.line, 2);
	ck_assert_uint_eq(statement->markers[1].at.column, 2);
}
END_TEST

START_TEST(test_selector_keeps_its_text)
{
	struct statement *statement = parsed("SELECT  Count( * ) AS c, a  +  b FROM t");

	ck_assert_str_eq(statement->select.selectors.items[0]->raw.text, "Count( * )");
	ck_assert_str_eq(statement->select.selectors.items[0]->alias.text.text, "c");
	ck_assert_str_eq(statement->select.selectors.items[1]->raw.text, "a  +  b");
}
END_TEST

START_TEST(test_markers_of_a_text_tried_twice_are_counted_once)
{
	/* DISTINCT turns out to be a column only at the end. */
	ck_assert_uint_eq(parsed("SELECT distinct, ?, ? FROM t")->marker_count, 2);
	ck_assert_uint_eq(parsed("SELECT (a)[?], (a)[?..?] FROM t")->marker_count, 3);
}
END_TEST

START_TEST(test_words_of_50_are_names_elsewhere)
{
	parsed("SELECT vector, masked, ann, identity, cidrs, unmask, superusers FROM vector");
	parsed("CREATE TABLE t (vector vector PRIMARY KEY, ann ann)");
}
END_TEST

static void
expect_type(const char *text, const char *wanted)
{
	struct ast_type *type;

	ck_assert_msg(cql_parse_type(slice_of_string(text), &arena, &type, &err) == 0, "%s: %s",
	    text, err.text);
	buffer_clear(&buffer);
	ast_type_text(type, &buffer);
	ck_assert_str_eq(text_of_buffer(), wanted);
}

START_TEST(test_type_alone)
{
	struct ast_type *type;

	expect_type("int", "int");
	expect_type("TEXT", "text");
	expect_type("frozen<frozen<list<int>>>", "frozen<list<int>>");
	expect_type("map<text,frozen<set<ks.\"U\">>>", "map<text, frozen<set<ks.\"U\">>>");
	expect_type("tuple<int, tuple<text>, varint>", "tuple<int, tuple<text>, varint>");
	expect_type("vector<float, 1536>", "vector<float, 1536>");
	expect_type("'org.apache.cassandra.db.marshal.LexicalUUIDType'",
	    "'org.apache.cassandra.db.marshal.LexicalUUIDType'");
	ck_assert_int_eq(cql_parse_type(slice_of_string("list<int"), &arena, &type, &err), -1);
	ck_assert_int_eq(cql_parse_type(slice_of_string("int int"), &arena, &type, &err), -1);
	ck_assert_int_eq(cql_parse_type(slice_of_string(""), &arena, &type, &err), -1);
	ck_assert_int_eq(cql_parse_type(slice_null, &arena, &type, &err), -1);
}
END_TEST

static void
expect_term(const char *text, const char *wanted)
{
	struct ast_term *term;

	ck_assert_msg(cql_parse_term(slice_of_string(text), &arena, &term, &err) == 0, "%s: %s",
	    text, err.text);
	buffer_clear(&buffer);
	ast_term_text(NULL, term, &buffer);
	ck_assert_str_eq(text_of_buffer(), wanted);
}

START_TEST(test_term_alone)
{
	struct ast_term *term;

	expect_term("1", "1");
	expect_term("( 0,'it''s' )", "(0, 'it's')");
	expect_term("{a:1,b:[2]}", "{a: 1, b: [2]}");
	expect_term("{1:2}", "{1: 2}");
	expect_term("{1,2}", "{1, 2}");
	expect_term("(int)5", "(int)5");
	expect_term("1+2*3", "system.\"_add\"(1, system.\"_multiply\"(2, 3))");
	expect_term("-f(null)", "system.\"_negate\"(f(NULL))");
	expect_term("cast(1 as varchar)", "system.\"castAsVarchar\"(1)");
	expect_term("\"Ks\".f('x')", "\"Ks\".f('x')");
	ck_assert_int_eq(cql_parse_term(slice_of_string("?"), &arena, &term, &err), -1);
	ck_assert_int_eq(cql_parse_term(slice_of_string("1 1"), &arena, &term, &err), -1);
}
END_TEST

START_TEST(test_where_clause_alone)
{
	struct ast_where where;

	ck_assert_int_eq(cql_parse_where(slice_of_string("a IS NOT NULL AND \"B\" > 5 AND "
							 "(c, d) IN ((1, 2)) AND token(a) < 3"),
			     &arena, &where, &err),
	    0);
	ck_assert_uint_eq(where.count, 4);
	for (size_t i = 0; i < where.count; i++) {
		ast_relation_text(NULL, where.items[i], &buffer);
		buffer_put_u8(&buffer, '|');
	}
	ck_assert_str_eq(
	    text_of_buffer(), "a IS NOT NULL|\"B\" > 5|(c, d) IN ((1, 2))|token(a) < 3|");
	ck_assert_int_eq(cql_parse_where(slice_of_string("a = ?"), &arena, &where, &err), -1);
}
END_TEST

static void
expect_quoted(const char *name, const char *wanted)
{
	buffer_clear(&buffer);
	cql_quote_identifier(slice_of_string(name), &buffer);
	ck_assert_str_eq(text_of_buffer(), wanted);
}

START_TEST(test_identifier_is_quoted_where_it_must_be)
{
	expect_quoted("a", "a");
	expect_quoted("a_1", "a_1");
	expect_quoted("A", "\"A\"");
	expect_quoted("_a", "\"_a\"");
	expect_quoted("1a", "\"1a\"");
	expect_quoted("a b", "\"a b\"");
	expect_quoted("a\"b", "\"a\"\"b\"");
	expect_quoted("", "\"\"");
	expect_quoted("select", "\"select\"");
	expect_quoted("table", "\"table\"");
	expect_quoted("token", "\"token\"");
	expect_quoted("nan", "\"nan\"");
	expect_quoted("key", "key");
	expect_quoted("text", "text");
	expect_quoted("group", "group");
	expect_quoted("columnfamilies", "columnfamilies");
}
END_TEST

START_TEST(test_string_quotes_are_doubled)
{
	cql_quote_string(slice_of_string("it's"), &buffer);
	ck_assert_str_eq(text_of_buffer(), "'it''s'");
}
END_TEST

START_TEST(test_quoted_identifier_parses_to_itself)
{
	static const char *const names[] = {"a", "A b", "\"", "select", "add", "\xc3\xa9", "key"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		buffer_clear(&buffer);
		buffer_put_string(&buffer, "USE ");
		cql_quote_identifier(slice_of_string(names[i]), &buffer);
		ck_assert_str_eq(parsed(text_of_buffer())->use.text, names[i]);
	}
}
END_TEST

static Suite *
suite(void)
{
	Suite *suite = suite_create("parser");
	TCase *tables = tcase_create("tables"), *rest = tcase_create("rest");
	int cases = sizeof(parser_cases) / sizeof(parser_cases[0]);
	int errors = sizeof(parser_error_cases) / sizeof(parser_error_cases[0]);

	tcase_add_checked_fixture(tables, setup, teardown);
	tcase_add_loop_test(tables, test_statement_has_the_tree_that_is_written, 0, cases);
	tcase_add_loop_test(tables, test_wrong_statement_has_cassandras_error, 0, errors);
	tcase_add_loop_test(tables, test_cut_statement_never_hurts, 0, cases);
	suite_add_tcase(suite, tables);
	tcase_add_checked_fixture(rest, setup, teardown);
	tcase_add_test(rest, test_deep_nesting_is_a_syntax_error);
	tcase_add_test(rest, test_nesting_in_use_is_no_problem);
	tcase_add_test(rest, test_ambiguous_statements_do_not_explode);
	tcase_add_test(rest, test_markers_beyond_the_wires_limit_are_refused);
	tcase_add_test(rest, test_long_error_keeps_to_its_room);
	tcase_add_test(rest, test_places_count_in_lines_and_utf16_units);
	tcase_add_test(rest, test_selector_keeps_its_text);
	tcase_add_test(rest, test_markers_of_a_text_tried_twice_are_counted_once);
	tcase_add_test(rest, test_words_of_50_are_names_elsewhere);
	tcase_add_test(rest, test_type_alone);
	tcase_add_test(rest, test_term_alone);
	tcase_add_test(rest, test_where_clause_alone);
	tcase_add_test(rest, test_identifier_is_quoted_where_it_must_be);
	tcase_add_test(rest, test_string_quotes_are_doubled);
	tcase_add_test(rest, test_quoted_identifier_parses_to_itself);
	tcase_set_timeout(rest, 60);
	suite_add_tcase(suite, rest);
	return suite;
}

int
main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
