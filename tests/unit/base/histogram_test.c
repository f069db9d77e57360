/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

START_TEST(test_offsets_grow_by_a_fifth)
{
	static const uint64_t first[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42,
	    50, 60, 72, 86, 103, 124, 149, 179, 215, 258, 310, 372, 446};
	const uint64_t *offsets = histogram_offsets();

	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		ck_assert_uint_eq(offsets[i], first[i]);
	for (size_t i = 1; i < HISTOGRAM_BUCKETS_MAX; i++) {
		uint64_t next = (uint64_t)floor((double)offsets[i - 1] * 1.2 + 0.5);

		ck_assert_uint_eq(offsets[i], next > offsets[i - 1] ? next : offsets[i - 1] + 1);
	}
	ck_assert_uint_eq(offsets[89], 25109160); /* the last of the 90 for latencies */
}
END_TEST

START_TEST(test_a_value_counts_in_the_first_bucket_not_below_it)
{
	static struct histogram histogram;

	histogram_init(&histogram, 90);
	histogram_add(&histogram, 0);
	histogram_add(&histogram, 1);
	histogram_add(&histogram, 9);
	histogram_add(&histogram, 10);
	histogram_add(&histogram, 11);
	ck_assert_uint_eq(histogram.buckets[0], 2);
	ck_assert_uint_eq(histogram.buckets[8], 2);
	ck_assert_uint_eq(histogram.buckets[9], 1);
	ck_assert_uint_eq(histogram_count(&histogram), 5);
	ck_assert_uint_eq(histogram.max, 11);
	ck_assert(fabs(histogram_mean(&histogram) - 6.2) < 1e-9);
}
END_TEST

START_TEST(test_quantiles_are_upper_offsets)
{
	static struct histogram histogram;

	histogram_init(&histogram, 90);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.5), 0);
	ck_assert(histogram_mean(&histogram) == 0);
	for (uint64_t i = 1; i <= 100; i++)
		histogram_add(&histogram, i);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0), 0);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.5), 50);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.51), 60);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.99), 103);
	ck_assert_uint_eq(histogram_quantile(&histogram, 1), 103);
	histogram_clear(&histogram);
	ck_assert_uint_eq(histogram_count(&histogram), 0);
}
END_TEST

START_TEST(test_overflow_is_counted_and_answers_the_greatest)
{
	static struct histogram histogram;

	histogram_init(&histogram, 10);
	histogram_add(&histogram, 12);
	histogram_add(&histogram, 13);
	histogram_add(&histogram, UINT64_MAX);
	ck_assert_uint_eq(histogram.buckets[10], 2);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.1), 12);
	ck_assert_uint_eq(histogram_quantile(&histogram, 1), UINT64_MAX);
}
END_TEST

START_TEST(test_every_value_finds_the_first_offset_not_below_it)
{
	static struct histogram histogram;
	const uint64_t *offsets = histogram_offsets();

	for (size_t i = 0; i < HISTOGRAM_BUCKETS_MAX; i++) {
		histogram_init(&histogram, HISTOGRAM_BUCKETS_MAX);
		histogram_add(&histogram, offsets[i]);
		histogram_add(&histogram, i == 0 ? 0 : offsets[i - 1] + 1);
		ck_assert_uint_eq(histogram.buckets[i], 2);
	}
	histogram_add(&histogram, offsets[HISTOGRAM_BUCKETS_MAX - 1] + 1);
	ck_assert_uint_eq(histogram.buckets[HISTOGRAM_BUCKETS_MAX], 1);
}
END_TEST

START_TEST(test_what_is_long_ago_weighs_little)
{
	static struct histogram histogram;
	static struct histogram_recent recent;

	histogram_init(&histogram, 90);
	histogram_recent_look(&recent, &histogram, 1000, 100);
	ck_assert_uint_eq(histogram_recent_quantile(&recent, &histogram, 0.99), 0);
	histogram_add_many(&histogram, 10000, 1000);
	histogram_recent_look(&recent, &histogram, 1000, 100);
	ck_assert_uint_eq(histogram_recent_quantile(&recent, &histogram, 0.99), 11864);
	/* Of 1000 six are left, of which 1 % is less than one. */
	histogram_add_many(&histogram, 10, 1000);
	histogram_recent_look(&recent, &histogram, 1500, 100);
	ck_assert_uint_eq(histogram_recent_quantile(&recent, &histogram, 0.99), 10);
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.99), 11864);
	/* Nothing new: as it was. */
	histogram_recent_look(&recent, &histogram, 1600, 100);
	ck_assert_uint_eq(histogram_recent_quantile(&recent, &histogram, 0.5), 10);
	ck_assert_uint_eq(histogram_recent_quantile(&recent, &histogram, 1), 11864);
}
END_TEST

static void *
adder(void *argument)
{
	for (uint64_t i = 0; i < 20000; i++)
		histogram_add(argument, i);
	return NULL;
}

START_TEST(test_adds_of_many_threads_are_all_counted)
{
	static struct histogram histogram;
	pthread_t threads[4];

	histogram_init(&histogram, HISTOGRAM_BUCKETS_MAX);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, adder, &histogram), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(histogram_count(&histogram), 80000);
	ck_assert_uint_eq(histogram.max, 19999);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("histogram");
	TCase *tcase = tcase_create("histogram");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_offsets_grow_by_a_fifth);
	tcase_add_test(tcase, test_a_value_counts_in_the_first_bucket_not_below_it);
	tcase_add_test(tcase, test_quantiles_are_upper_offsets);
	tcase_add_test(tcase, test_overflow_is_counted_and_answers_the_greatest);
	tcase_add_test(tcase, test_every_value_finds_the_first_offset_not_below_it);
	tcase_add_test(tcase, test_what_is_long_ago_weighs_little);
	tcase_add_test(tcase, test_adds_of_many_threads_are_all_counted);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
