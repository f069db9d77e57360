/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/speculation.h"
#include <check.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 5000 };

static uint64_t
delay_of_ms(struct retry_policy policy, struct speculation_answers *answers, bool is_range)
{
	struct table_metadata *table = calloc(1, sizeof(*table));
	uint64_t ns;

	table->options.speculative_retry = policy;
	ns = speculation_delay_ns(
	    table, answers, is_range, 1, (uint64_t)TIMEOUT_MS * COORDINATOR_NS_PER_MS);
	free(table);
	return ns / COORDINATOR_NS_PER_MS;
}

/* No store has the table: nothing was measured. */
static uint64_t
delay_ms(struct retry_policy policy)
{
	return delay_of_ms(policy, NULL, false);
}

START_TEST(test_never_and_always_start_no_timer)
{
	ck_assert_uint_eq(delay_ms((struct retry_policy){.kind = RETRY_NEVER}), 0);
	ck_assert_uint_eq(delay_ms((struct retry_policy){.kind = RETRY_ALWAYS}), 0);
}
END_TEST

START_TEST(test_fixed_delay_is_what_it_says)
{
	ck_assert_uint_eq(delay_ms((struct retry_policy){.kind = RETRY_FIXED, .fixed_ms = 50}), 50);
}
END_TEST

START_TEST(test_delay_beyond_the_timeout_is_never)
{
	ck_assert_uint_eq(
	    delay_ms((struct retry_policy){.kind = RETRY_FIXED, .fixed_ms = TIMEOUT_MS}), 0);
}
END_TEST

START_TEST(test_percentile_of_nothing_is_half_of_the_timeout)
{
	ck_assert_uint_eq(
	    delay_ms((struct retry_policy){.kind = RETRY_PERCENTILE, .percentile = 99}),
	    TIMEOUT_MS / 2);
}
END_TEST

START_TEST(test_min_and_max_take_one_of_both)
{
	struct retry_policy policy = {.kind = RETRY_MIN, .percentile = 99, .fixed_ms = 50};

	ck_assert_uint_eq(delay_ms(policy), 50);
	policy.kind = RETRY_MAX;
	ck_assert_uint_eq(delay_ms(policy), TIMEOUT_MS / 2);
}
END_TEST

START_TEST(test_ranges_wait_for_as_long_as_ranges_take)
{
	static const struct retry_policy fixed = {.kind = RETRY_FIXED, .fixed_ms = 50};
	static const struct retry_policy always = {.kind = RETRY_ALWAYS};
	static const struct retry_policy least = {
	    .kind = RETRY_MIN, .percentile = 99, .fixed_ms = 50};
	struct speculation_answers *answers = calloc(1, sizeof(*answers));

	atomic_store(&answers->threshold.ns, UINT64_C(300) * COORDINATOR_NS_PER_MS);
	atomic_store(&answers->threshold.due_ns, UINT64_MAX);
	ck_assert_uint_eq(delay_of_ms(fixed, answers, false), 50);
	ck_assert_uint_eq(delay_of_ms(fixed, answers, true), 300);
	ck_assert_uint_eq(delay_of_ms(least, answers, false), 50);
	ck_assert_uint_eq(delay_of_ms(least, answers, true), 300);
	/* It has asked nobody more at the start. */
	ck_assert_uint_eq(delay_of_ms(always, answers, true), 300);
	ck_assert_uint_eq(delay_of_ms(always, answers, false), 0);
	ck_assert_uint_eq(
	    delay_of_ms((struct retry_policy){.kind = RETRY_NEVER}, answers, true), 0);
	atomic_store(&answers->threshold.ns, UINT64_C(20) * COORDINATOR_NS_PER_MS);
	ck_assert_uint_eq(delay_of_ms(fixed, answers, true), 50);
	free(answers);
}
END_TEST

static uint64_t
write_delay_ms(struct retry_policy policy, struct coordinator_table *kept)
{
	struct table_metadata *table = calloc(1, sizeof(*table));
	uint64_t ns;

	table->options.additional_write_policy = policy;
	ns = speculation_write_delay_ns(
	    table, kept, 1, (uint64_t)TIMEOUT_MS * COORDINATOR_NS_PER_MS);
	free(table);
	return ns / COORDINATOR_NS_PER_MS;
}

START_TEST(test_repairs_go_to_one_more_by_the_policy_of_writes)
{
	struct retry_policy policy = {.kind = RETRY_PERCENTILE, .percentile = 99};
	struct coordinator_table *kept = calloc(1, sizeof(*kept));

	ck_assert_uint_eq(write_delay_ms(policy, NULL), TIMEOUT_MS / 2);
	atomic_store(&kept->write_threshold.ns, UINT64_C(30) * COORDINATOR_NS_PER_MS);
	atomic_store(&kept->write_threshold.due_ns, UINT64_MAX);
	ck_assert_uint_eq(write_delay_ms(policy, kept), 30);
	policy.kind = RETRY_FIXED;
	policy.fixed_ms = 70;
	ck_assert_uint_eq(write_delay_ms(policy, kept), 70);
	policy.kind = RETRY_NEVER;
	ck_assert_uint_eq(write_delay_ms(policy, kept), 0);
	free(kept);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("speculation");
	TCase *cases = tcase_create("delays");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, test_never_and_always_start_no_timer);
	tcase_add_test(cases, test_fixed_delay_is_what_it_says);
	tcase_add_test(cases, test_delay_beyond_the_timeout_is_never);
	tcase_add_test(cases, test_percentile_of_nothing_is_half_of_the_timeout);
	tcase_add_test(cases, test_min_and_max_take_one_of_both);
	tcase_add_test(cases, test_ranges_wait_for_as_long_as_ranges_take);
	tcase_add_test(cases, test_repairs_go_to_one_more_by_the_policy_of_writes);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
