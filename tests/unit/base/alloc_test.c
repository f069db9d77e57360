/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_zero_bytes_are_a_pointer)
{
	void *memory = xmalloc(0);

	ck_assert_ptr_nonnull(memory);
	memory = xrealloc(memory, 0);
	ck_assert_ptr_nonnull(memory);
	free(memory);
	free(xcalloc(0, 8));
}
END_TEST

START_TEST(test_strings_are_copied)
{
	char *copy = xstrdup("text");
	char *part = xstrndup("text", 2);
	char *all = xstrndup("text", 10);
	char *printed = xasprintf("%s-%d", "a", 5);

	ck_assert_str_eq(copy, "text");
	ck_assert_str_eq(part, "te");
	ck_assert_str_eq(all, "text");
	ck_assert_str_eq(printed, "a-5");
	free(copy);
	free(part);
	free(all);
	free(printed);
}
END_TEST

START_TEST(test_cleared_memory_is_zero)
{
	char zero[1000] = {0};
	char *memory = xzalloc(1000);

	ck_assert_int_eq(memcmp(memory, zero, 1000), 0);
	free(memory);
}
END_TEST

/* The sanitizers refuse such a size in their own way, before malloc() can answer NULL. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
START_TEST(test_without_memory_the_program_stops)
{
	volatile size_t size = SIZE_MAX / 2;

	xmalloc(size);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("alloc");
	TCase *tcase = tcase_create("alloc");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_zero_bytes_are_a_pointer);
	tcase_add_test(tcase, test_strings_are_copied);
	tcase_add_test(tcase, test_cleared_memory_is_zero);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tcase_add_test_raise_signal(tcase, test_without_memory_the_program_stops, SIGABRT);
#endif
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
