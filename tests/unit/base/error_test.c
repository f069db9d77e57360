/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_set_says_what_and_where)
{
	struct error err = {.required = 5};

	ck_assert_int_eq(error_set(&err, ERROR_CORRUPT, "%s: bad CRC at %d", "file", 7), -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
	ck_assert_str_eq(err.text, "file: bad CRC at 7");
	ck_assert_ptr_nonnull(strstr(err.file, "error_test.c"));
	ck_assert_int_gt(err.line, 0);
	ck_assert_int_eq(err.required, 0);
	ck_assert_int_eq(err.sys_errno, 0);
}
END_TEST

START_TEST(test_nobody_may_be_interested)
{
	ck_assert_int_eq(error_set(NULL, ERROR_IO, "x"), -1);
	ck_assert_int_eq(error_set_errno(NULL, EIO, "x"), -1);
	error_prefix(NULL, "x");
}
END_TEST

START_TEST(test_errno_gives_text_and_code)
{
	struct error err;

	error_set_errno(&err, EACCES, "cannot open %s", "x");
	ck_assert_int_eq(err.code, ERROR_IO);
	ck_assert_int_eq(err.sys_errno, EACCES);
	ck_assert_str_eq(err.text, "cannot open x: Permission denied");
	error_set_errno(&err, ENOSPC, "x");
	ck_assert_int_eq(err.code, ERROR_NO_SPACE);
	error_set_errno(&err, EDQUOT, "x");
	ck_assert_int_eq(err.code, ERROR_NO_SPACE);
}
END_TEST

START_TEST(test_prefix_stands_in_front)
{
	struct error err;

	error_set(&err, ERROR_INVALID, "inner");
	error_prefix(&err, "while %s", "reading");
	ck_assert_str_eq(err.text, "while reading: inner");
	ck_assert_int_eq(err.code, ERROR_INVALID);
}
END_TEST

START_TEST(test_an_error_may_be_made_of_its_own_text)
{
	struct error err;

	error_set(&err, ERROR_IO, "inner");
	error_set(&err, ERROR_SERVER, "outer: %s", err.text);
	ck_assert_str_eq(err.text, "outer: inner");
}
END_TEST

/* A text of two-, three- and four-byte characters is cut between characters. */
START_TEST(test_long_text_is_not_cut_inside_a_character)
{
	static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	const char *character = characters[_i % 3];
	size_t width = strlen(character);
	char text[ERROR_TEXT_MAX * 2] = "";
	size_t shift = (size_t)_i / 3;
	struct error err;

	for (size_t i = 0; i < shift; i++)
		strcat(text, "a");
	while (strlen(text) < ERROR_TEXT_MAX + 20)
		strcat(text, character);
	error_set(&err, ERROR_INVALID, "%s", text);
	ck_assert_uint_lt(strlen(err.text), ERROR_TEXT_MAX);
	ck_assert_uint_gt(strlen(err.text), ERROR_TEXT_MAX - 6);
	ck_assert_uint_eq((strlen(err.text) - shift) % width, 0);
	error_prefix(&err, "a");
	ck_assert_uint_eq((strlen(err.text) - shift) % width, 3 % width);
}
END_TEST

START_TEST(test_every_code_has_a_name)
{
	for (int code = ERROR_NONE; code <= ERROR_UNPREPARED; code++)
		ck_assert_ptr_nonnull(error_code_name((enum error_code)code));
	ck_assert_str_eq(error_code_name(ERROR_CAS_WRITE_UNKNOWN), "CAS_WRITE_UNKNOWN");
	ck_assert_str_eq(error_code_name((enum error_code)9999), "UNKNOWN");
}
END_TEST

START_TEST(test_clear_means_no_error)
{
	struct error err;

	error_set_errno(&err, EIO, "x");
	error_clear(&err);
	ck_assert_int_eq(err.code, ERROR_NONE);
	ck_assert_int_eq(err.sys_errno, 0);
	ck_assert_str_eq(err.text, "");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("error");
	TCase *tcase = tcase_create("error");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_set_says_what_and_where);
	tcase_add_test(tcase, test_nobody_may_be_interested);
	tcase_add_test(tcase, test_errno_gives_text_and_code);
	tcase_add_test(tcase, test_prefix_stands_in_front);
	tcase_add_test(tcase, test_an_error_may_be_made_of_its_own_text);
	tcase_add_loop_test(tcase, test_long_text_is_not_cut_inside_a_character, 0, 12);
	tcase_add_test(tcase, test_every_code_has_a_name);
	tcase_add_test(tcase, test_clear_means_no_error);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
