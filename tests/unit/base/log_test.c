/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/helenus-log-test-XXXXXX";
static char text[65536];

/* The log goes to a file; standard error, which gets it too, is out of the way. */
static void
setup(void)
{
	int fd = mkstemp(path);
	int null = open("/dev/null", O_WRONLY);

	ck_assert_int_ge(fd, 0);
	close(fd);
	dup2(null, STDERR_FILENO);
	close(null);
	ck_assert_int_eq(log_open(path, false), 0);
}

static void
teardown(void)
{
	log_open(NULL, false);
	unlink(path);
}

static const char *
logged(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[size] = '\0';
	return text;
}

START_TEST(test_levels_have_names)
{
	enum log_level level;

	ck_assert_int_eq(log_level_parse("warn", &level), 0);
	ck_assert_int_eq(level, LOG_WARN);
	ck_assert_int_eq(log_level_parse("OFF", &level), 0);
	ck_assert_int_eq(level, LOG_OFF);
	ck_assert_int_eq(log_level_parse("loud", &level), -1);
	ck_assert_str_eq(log_level_name(LOG_TRACE), "TRACE");
}
END_TEST

START_TEST(test_folders_follow_root_until_they_have_a_level)
{
	ck_assert_int_eq(log_get_level("storage"), LOG_INFO);
	log_set_level("ROOT", LOG_WARN);
	ck_assert_int_eq(log_get_level("storage"), LOG_WARN);
	log_set_level("storage", LOG_DEBUG);
	ck_assert(log_is_on(LOG_DEBUG, "storage/memtable.c"));
	ck_assert(!log_is_on(LOG_TRACE, "storage/memtable.c"));
	ck_assert(!log_is_on(LOG_INFO, "server/main.c"));
	ck_assert(!log_is_on(LOG_INFO, "storages/main.c"));
	ck_assert(log_is_on(LOG_WARN, "main.c"));
	log_set_level("storage", LOG_OFF);
	ck_assert(!log_is_on(LOG_ERROR, "storage/memtable.c"));
}
END_TEST

static void
count_loggers(const char *logger, enum log_level level, void *argument)
{
	int *count = argument;

	if (*count == 0)
		ck_assert_str_eq(logger, "ROOT");
	else
		ck_assert_int_eq(level, LOG_ERROR);
	++*count;
}

START_TEST(test_loggers_are_listed_and_bounded)
{
	char name[32];
	int count = 0;

	log_set_level("server", LOG_ERROR);
	log_set_level("server", LOG_ERROR);
	log_each_logger(count_loggers, &count);
	ck_assert_int_eq(count, 2);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "logger%d", i);
		log_set_level(name, LOG_ERROR);
	}
	count = 0;
	log_each_logger(count_loggers, &count);
	ck_assert_int_eq(count, 64);
}
END_TEST

START_TEST(test_a_line_has_level_thread_time_place_and_text)
{
	const char *line;

	log_thread_name("MutationStage-%d", 123456);
	log_write(LOG_INFO, "storage/memtable.c", 88, "flushed %d rows", 5);
	line = logged();
	ck_assert_ptr_nonnull(strstr(line, "INFO  [MutationStage-123456] 20"));
	ck_assert_ptr_nonnull(strstr(line, "Z memtable.c:88 - flushed 5 rows\n"));
	ck_assert_ptr_eq(strchr(line, '\n') + 1, line + strlen(line));
}
END_TEST

START_TEST(test_what_is_off_is_not_written)
{
	log_write(LOG_DEBUG, "storage/memtable.c", 1, "quiet");
	ck_assert_str_eq(logged(), "");
}
END_TEST

START_TEST(test_text_cannot_forge_a_line)
{
	log_write(LOG_WARN, "server/x.c", 1, "a\nERROR [main] forged\x1b[31m");
	ck_assert_ptr_nonnull(strstr(logged(), "- a\\nERROR [main] forged?[31m\n"));
}
END_TEST

START_TEST(test_json_lines_are_json)
{
	json_error_t error;
	json_t *object;

	ck_assert_int_eq(log_open(path, true), 0);
	log_write(LOG_WARN, "server/x.c", 12, "say \"hi\" to C:\\\n");
	object = json_loads(logged(), 0, &error);
	ck_assert_msg(object != NULL, "%s: %s", error.text, text);
	ck_assert_str_eq(
	    json_string_value(json_object_get(object, "text")), "say \"hi\" to C:\\\n");
	ck_assert_str_eq(json_string_value(json_object_get(object, "level")), "WARN");
	ck_assert_str_eq(json_string_value(json_object_get(object, "source")), "server/x.c:12");
	json_decref(object);
}
END_TEST

START_TEST(test_a_long_text_is_cut_to_one_line)
{
	char *big = malloc(100000);

	memset(big, '"', 99999);
	big[99999] = '\0';
	log_open(path, true);
	log_write(LOG_ERROR, "server/x.c", 1, "%s", big);
	free(big);
	ck_assert_uint_lt(strlen(logged()), 10000);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

START_TEST(test_a_file_that_cannot_be_opened_is_an_error)
{
	ck_assert_int_eq(log_open("/nonexistent/folder/log", false), -1);
}
END_TEST

START_TEST(test_what_goes_on_going_wrong_is_told_once_a_minute)
{
	struct log_limit limit = {0};
	char left_out[LOG_LIMIT_TEXT_MAX];
	uint64_t now = 5;

	ck_assert(log_limit_take(&limit, now, left_out));
	ck_assert_str_eq(left_out, "");
	for (int i = 0; i < 119; i++) {
		now += 500000000;
		ck_assert(!log_limit_take(&limit, now, left_out));
	}
	now += 500000000;
	ck_assert(log_limit_take(&limit, now, left_out));
	ck_assert_str_eq(left_out, " (and 119 times since it was last logged)");
	ck_assert(!log_limit_take(&limit, now, left_out));
	log_limit_reset(&limit);
	ck_assert(log_limit_take(&limit, now, left_out));
	ck_assert_str_eq(left_out, "");
}
END_TEST

START_TEST(test_the_system_sees_both_ends_of_a_long_name)
{
	char name[16];

	log_thread_name("ReadStage-%d", 12345);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	ck_assert_str_eq(name, "ReadStage-12345");
	log_thread_name("Native-Transport-%d", 12);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	ck_assert_str_eq(name, "Native-..ort-12");
	ck_assert_str_eq(log_thread_name_get(), "Native-Transport-12");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log");
	TCase *tcase = tcase_create("log");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_levels_have_names);
	tcase_add_test(tcase, test_folders_follow_root_until_they_have_a_level);
	tcase_add_test(tcase, test_loggers_are_listed_and_bounded);
	tcase_add_test(tcase, test_a_line_has_level_thread_time_place_and_text);
	tcase_add_test(tcase, test_what_is_off_is_not_written);
	tcase_add_test(tcase, test_text_cannot_forge_a_line);
	tcase_add_test(tcase, test_json_lines_are_json);
	tcase_add_test(tcase, test_a_long_text_is_cut_to_one_line);
	tcase_add_test(tcase, test_a_file_that_cannot_be_opened_is_an_error);
	tcase_add_test(tcase, test_what_goes_on_going_wrong_is_told_once_a_minute);
	tcase_add_test(tcase, test_the_system_sees_both_ends_of_a_long_name);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
