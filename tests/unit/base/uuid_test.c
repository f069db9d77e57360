/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

#include <check.h>
#include <stdlib.h>

static struct uuid
parsed(const char *text)
{
	struct uuid uuid;

	ck_assert_int_eq(uuid_parse(text, strlen(text), &uuid), 0);
	return uuid;
}

static const char *
formatted(struct uuid uuid)
{
	static char text[UUID_TEXT_SIZE];

	uuid_format(&uuid, text);
	return text;
}

START_TEST(test_text_goes_there_and_back)
{
	ck_assert_str_eq(formatted(parsed("C4E7DE00-ed07-11f1-82fb-d3286bb4dee4")),
	    "c4e7de00-ed07-11f1-82fb-d3286bb4dee4");
}
END_TEST

START_TEST(test_only_the_exact_form_is_read)
{
	static const char *const bad[] = {"", "c4e7de00-ed07-11f1-82fb-d3286bb4dee",
	    "c4e7de00-ed07-11f1-82fb-d3286bb4dee45", "c4e7de00ed07-11f1-82fb-d3286bb4deee4",
	    "c4e7de00-ed07-11f1-82fb-d3286bb4dee-", "{4e7de00-ed07-11f1-82fb-d3286bb4dee}",
	    "c4e7de00-ed07-11f1-82fb+d3286bb4dee4", "c4e7de00-ed07-11f1-82fb-d3286bb4deeg"};
	struct uuid uuid;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(uuid_parse(bad[i], strlen(bad[i]), &uuid), -1);
}
END_TEST

/* Ids of the tables of `system` are made so in Cassandra: the name is keyspace then table. */
START_TEST(test_name_based_is_that_of_java)
{
	ck_assert_str_eq(formatted(uuid_from_name(slice_of_string("systemlocal"))),
	    "7ad54392-bcdd-35a6-8417-4e047860b377");
}
END_TEST

START_TEST(test_random_has_version_4_and_its_variant)
{
	uint8_t random[16];
	struct uuid uuid;

	memset(random, 0xff, sizeof(random));
	uuid = uuid_from_random(random);
	ck_assert_int_eq(uuid_version(&uuid), 4);
	ck_assert_str_eq(formatted(uuid), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
END_TEST

START_TEST(test_time_based_keeps_its_ticks)
{
	uint64_t ticks = uuid_ticks_of_unix_us(1795998104000001);
	struct uuid uuid = uuid_from_time(ticks, 0x82fbd3286bb4dee4ull);

	ck_assert_int_eq(uuid_version(&uuid), 1);
	ck_assert_uint_eq(uuid_ticks(&uuid), ticks);
	ck_assert_int_eq(uuid_unix_ms(&uuid), 1795998104000);
	ck_assert_str_eq(formatted(uuid) + 19, "82fb-d3286bb4dee4");
}
END_TEST

START_TEST(test_unix_epoch_and_before_it)
{
	struct uuid epoch = parsed("13814000-1dd2-11b2-8080-808080808080");
	struct uuid before = uuid_from_time(uuid_ticks_of_unix_us(-1500), 0);
	struct uuid first = uuid_from_time(0, 0);

	ck_assert_int_eq(uuid_unix_ms(&epoch), 0);
	ck_assert_uint_eq(uuid_ticks_of_unix_us(0), uuid_ticks(&epoch));
	ck_assert_int_eq(uuid_unix_ms(&before), -1);
	ck_assert_int_eq(uuid_unix_ms(&first), -12219292800000);
}
END_TEST

START_TEST(test_equal_is_about_bytes)
{
	struct uuid a = parsed("13814000-1dd2-11b2-8080-808080808080");
	struct uuid b = a;

	ck_assert(uuid_equal(&a, &b));
	b.bytes[15] ^= 1;
	ck_assert(!uuid_equal(&a, &b));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("uuid");
	TCase *tcase = tcase_create("uuid");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_text_goes_there_and_back);
	tcase_add_test(tcase, test_only_the_exact_form_is_read);
	tcase_add_test(tcase, test_name_based_is_that_of_java);
	tcase_add_test(tcase, test_random_has_version_4_and_its_variant);
	tcase_add_test(tcase, test_time_based_keeps_its_ticks);
	tcase_add_test(tcase, test_unix_epoch_and_before_it);
	tcase_add_test(tcase, test_equal_is_about_bytes);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
