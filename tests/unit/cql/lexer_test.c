/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/lexer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "lexer_cases.h"

static struct buffer buffer;

static void
setup(void)
{
	buffer_init(&buffer);
}

static void
teardown(void)
{
	buffer_fini(&buffer);
}

/* The tokens of a text as lexer_cases.h writes them. */
static const char *
tokens_of(const char *text)
{
	struct lexer_token token;
	struct lexer lexer;

	lexer_init(&lexer, slice_of_string(text));
	for (;;) {
		lexer_next(&lexer, &token);
		if (token.type == TOKEN_EOF || token.type == TOKEN_ERROR)
			break;
		if (token.type == TOKEN_HIDDEN)
			continue;
		buffer_printf(&buffer, "%s|%u:%u|%.*s ", lexer_token_name(token.type), token.line,
		    token.column, (int)(token.end - token.start), text + token.start);
	}
	if (token.type == TOKEN_ERROR)
		buffer_printf(&buffer, "ERROR line %u:%u %s", lexer.problem_line,
		    lexer.problem_column, lexer.problem);
	else
		buffer_printf(&buffer, "EOF");
	buffer_put_u8(&buffer, 0);
	return (const char *)buffer.data;
}

START_TEST(test_text_is_cut_as_cassandra_cuts_it)
{
	ck_assert_str_eq(tokens_of(lexer_cases[_i].text), lexer_cases[_i].tokens);
}
END_TEST

START_TEST(test_every_keyword_is_found_in_any_case)
{
	static const struct {
		const char *word;
		enum lexer_token_type type;
		enum lexer_word kind;
	} keywords[] = {
#define TEST_KEYWORD(name, word, kind) {word, K_##name, kind},
	    LEXER_KEYWORDS(TEST_KEYWORD)
#undef TEST_KEYWORD
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		char upper[32] = "";
		size_t length = strlen(keywords[i].word);

		for (size_t k = 0; k < length; k++)
			upper[k] = (char)(keywords[i].word[k] - 'a' + 'A');
		ck_assert_int_eq(lexer_keyword(keywords[i].word, length), keywords[i].type);
		ck_assert_int_eq(lexer_keyword(upper, length), keywords[i].type);
		ck_assert_int_eq(lexer_keyword(upper, length - 1) == keywords[i].type, false);
		ck_assert_int_eq(lexer_word_kind(keywords[i].type), keywords[i].kind);
		/* The search relies on the order. */
		if (i > 0)
			ck_assert_int_lt(strcmp(keywords[i - 1].word, keywords[i].word), 0);
	}
	ck_assert_int_eq(lexer_keyword("nosuchword", 10), TOKEN_IDENT);
	ck_assert_int_eq(lexer_word_kind(TOKEN_IDENT), LEXER_RESERVED);
	ck_assert_int_eq(lexer_word_kind(TOKEN_COMMA), LEXER_RESERVED);
}
END_TEST

START_TEST(test_end_is_answered_again_and_again)
{
	struct lexer_token token;
	struct lexer lexer;

	lexer_init(&lexer, slice_empty);
	for (int i = 0; i < 3; i++) {
		lexer_next(&lexer, &token);
		ck_assert_int_eq(token.type, TOKEN_EOF);
	}
	lexer_init(&lexer, slice_of_string("#"));
	for (int i = 0; i < 3; i++) {
		lexer_next(&lexer, &token);
		ck_assert_int_eq(token.type, TOKEN_ERROR);
	}
}
END_TEST

START_TEST(test_utf16_units)
{
	ck_assert_uint_eq(lexer_utf16_length("a", 1), 1);
	ck_assert_uint_eq(lexer_utf16_length("\xc3\xa9", 2), 1);
	ck_assert_uint_eq(lexer_utf16_length("\xe2\x82\xac", 3), 1);
	ck_assert_uint_eq(lexer_utf16_length("\xf0\x9f\x98\x80", 4), 2);
}
END_TEST

static Suite *
suite(void)
{
	Suite *suite = suite_create("lexer");
	TCase *tcase = tcase_create("lexer");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_text_is_cut_as_cassandra_cuts_it, 0,
	    sizeof(lexer_cases) / sizeof(lexer_cases[0]));
	tcase_add_test(tcase, test_every_keyword_is_found_in_any_case);
	tcase_add_test(tcase, test_end_is_answered_again_and_again);
	tcase_add_test(tcase, test_utf16_units);
	suite_add_tcase(suite, tcase);
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
