/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "storage/sampler.h"

static void
add(struct sampler *sampler, const char *key, int times)
{
	for (int i = 0; i < times; i++)
		sampler_add(sampler, slice_of_string(key));
}

START_TEST(test_the_most_frequent_keys_come_first)
{
	struct sampler sampler;
	struct sampler_entry *entries;
	uint64_t seen;

	sampler_init(&sampler);
	ck_assert(sampler_start(&sampler, 10));
	ck_assert(!sampler_start(&sampler, 10));
	add(&sampler, "a", 5);
	add(&sampler, "b", 50);
	add(&sampler, "c", 20);
	ck_assert_uint_eq(sampler_finish(&sampler, 2, &entries, &seen), 2);
	ck_assert_uint_eq(seen, 75);
	ck_assert_uint_eq(entries[0].key[0], 'b');
	ck_assert_uint_eq(entries[0].count, 50);
	ck_assert_uint_eq(entries[0].error, 0);
	ck_assert_uint_eq(entries[1].key[0], 'c');
	free(entries);
	ck_assert(!sampler_is_on(&sampler));
	sampler_fini(&sampler);
}
END_TEST

START_TEST(test_a_frequent_key_survives_many_rare_ones)
{
	struct sampler sampler;
	struct sampler_entry *entries;
	uint64_t seen;

	sampler_init(&sampler);
	ck_assert(sampler_start(&sampler, 16));
	for (int i = 0; i < 1000; i++) {
		char key[16];

		snprintf(key, sizeof(key), "rare%d", i);
		add(&sampler, key, 1);
		add(&sampler, "often", 1);
	}
	ck_assert_uint_eq(sampler_finish(&sampler, 16, &entries, &seen), 16);
	ck_assert_uint_eq(entries[0].size, 5);
	ck_assert_int_eq(memcmp(entries[0].key, "often", 5), 0);
	/* True count lies between count - error and count. */
	ck_assert_uint_ge(entries[0].count, 1000);
	ck_assert_uint_le(entries[0].count - entries[0].error, 1000);
	free(entries);
	sampler_fini(&sampler);
}
END_TEST

START_TEST(test_nothing_is_kept_while_it_is_off)
{
	struct sampler sampler;
	struct sampler_entry *entries;
	uint64_t seen;

	sampler_init(&sampler);
	add(&sampler, "a", 5);
	ck_assert(sampler_start(&sampler, 4));
	ck_assert_uint_eq(sampler_finish(&sampler, 4, &entries, &seen), 0);
	ck_assert_uint_eq(seen, 0);
	free(entries);
	sampler_fini(&sampler);
}
END_TEST

START_TEST(test_the_greatest_values_stay)
{
	struct sampler sampler;
	struct sampler_entry *entries;
	uint64_t seen;

	sampler_init(&sampler);
	ck_assert(sampler_start(&sampler, 2));
	sampler_add_max(&sampler, slice_of_string("a"), 7);
	sampler_add_max(&sampler, slice_of_string("a"), 3);
	sampler_add_max(&sampler, slice_of_string("b"), 1);
	sampler_add_max(&sampler, slice_of_string("c"), 9);
	sampler_add_max(&sampler, slice_of_string("d"), 7); /* no more than the smallest */
	ck_assert_uint_eq(sampler_finish(&sampler, 4, &entries, &seen), 2);
	ck_assert_uint_eq(seen, 5);
	ck_assert(slice_equal(slice_of(entries[0].key, entries[0].size), slice_of_string("c")));
	ck_assert_uint_eq(entries[0].count, 9);
	ck_assert_uint_eq(entries[0].error, 0);
	ck_assert(slice_equal(slice_of(entries[1].key, entries[1].size), slice_of_string("a")));
	ck_assert_uint_eq(entries[1].count, 7);
	free(entries);
	sampler_fini(&sampler);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sampler");
	TCase *tcase = tcase_create("sampler");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_the_most_frequent_keys_come_first);
	tcase_add_test(tcase, test_a_frequent_key_survives_many_rare_ones);
	tcase_add_test(tcase, test_nothing_is_kept_while_it_is_off);
	tcase_add_test(tcase, test_the_greatest_values_stay);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
