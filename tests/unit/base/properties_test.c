/* SPDX-License-Identifier: Apache-2.0 */
#include "base/properties.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
	char text[512];
	size_t size;
	const char *stop_at;
};

static int
see(void *argument, const char *key, const char *value, unsigned line, struct error *err)
{
	struct seen *seen = argument;

	if (seen->stop_at != NULL && strcmp(key, seen->stop_at) == 0)
		return error_set(err, ERROR_CONFIG, "not this one");
	seen->size += (size_t)snprintf(seen->text + seen->size, sizeof(seen->text) - seen->size,
	    "%u[%s][%s]", line, key, value);
	return 0;
}

/* clang-format off */
static const char *const cases[][2] = {
	{"", ""},
	{"\n\n# c\n ! c=d\n", ""},
	{"a=b", "1[a][b]"},
	{" a = b c \n", "1[a][b c]"},
	{"a:b\nc d\n", "1[a][b]2[c][d]"},
	{"a\nb=\n", "1[a][]2[b][]"},
	{"a==b", "1[a][=b]"},
	{"a=1\r\nb=2\rc=3", "1[a][1]2[b][2]3[c][3]"},
	{"fe80\\:0=DC1:RAC3", "1[fe80:0][DC1:RAC3]"},
	{"a=b\\\n   c\nd=e", "1[a][bc]3[d][e]"},
	{"a=b\\\r\n\tc", "1[a][bc]"},
	{"a\\ b=c\\t\\ ", "1[a b][c\t ]"},
	{"a=\\u00e9\\u20ac\\u0041", "1[a][\xc3\xa9\xe2\x82\xac" "A]"},
	{"a=b\\", "1[a][b]"},
	{"\\#a=b", "1[#a][b]"},
};
/* clang-format on */

START_TEST(test_as_java_reads_it)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen seen = {.size = 0};
		struct error err;

		ck_assert_int_eq(
		    properties_parse(slice_of_string(cases[i][0]), "file", see, &seen, &err), 0);
		ck_assert_str_eq(seen.text, cases[i][1]);
	}
}
END_TEST

START_TEST(test_what_is_wrong_is_named_by_line)
{
	static const struct {
		const char *text;
		size_t size;
		const char *message;
	} wrong[] = {
	    {"a=b\nc=\\u12x4", 12, "file:2: \\u needs four hexadecimal digits"},
	    {"a=b\n\nstop=1", 11, "file:3: not this one"},
	    {"a=\\u0000", 8, "file:1: a NUL stands in a property"},
	    {"a=b\0c", 5, "file:1: a NUL stands in a property"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct seen seen = {.stop_at = "stop"};
		struct slice text = {(const uint8_t *)wrong[i].text, wrong[i].size};
		struct error err;

		ck_assert_int_eq(properties_parse(text, "file", see, &seen, &err), -1);
		ck_assert_int_eq(err.code, ERROR_CONFIG);
		ck_assert_str_eq(err.text, wrong[i].message);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("properties");
	TCase *tcase = tcase_create("properties");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_as_java_reads_it);
	tcase_add_test(tcase, test_what_is_wrong_is_named_by_line);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
