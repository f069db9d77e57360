/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/failure_detector.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

#define S UINT64_C(1000000000)

static const struct failure_detector_options options = {
    .phi_threshold = 8,
    .interval_ns = S,
    .interval_max_ns = 2 * S,
    .pause_ns = 5 * S,
};
static struct failure_detector *detector;
static struct peer peer = {.index = 3}, other = {.index = 40};

static void
setup(void)
{
	detector = failure_detector_new(&options, 100 * S);
}

static void
teardown(void)
{
	failure_detector_free(detector);
}

/* Heartbeats a second apart; returns the moment of the last. */
static uint64_t
beat(uint64_t from, int count)
{
	for (int i = 0; i < count; i++)
		failure_detector_report(detector, &peer, from + (uint64_t)i * S);
	return from + (uint64_t)(count - 1) * S;
}

START_TEST(test_a_peer_never_heard_of_is_not_convicted)
{
	ck_assert(!failure_detector_convicts(detector, &peer, 1, 1000 * S));
	ck_assert_double_eq(failure_detector_phi(detector, &other, 1000 * S), 0);
	failure_detector_remove(detector, &other);
}
END_TEST

START_TEST(test_the_first_interval_is_two_rounds)
{
	failure_detector_report(detector, &peer, 100 * S);
	ck_assert_uint_eq(failure_detector_mean(detector, &peer), 2 * S);
	/* 8 / 0.434 = 18.4 intervals. */
	ck_assert(!failure_detector_convicts(detector, &peer, 1, 136 * S));
	ck_assert(failure_detector_convicts(detector, &peer, 1, 138 * S));
}
END_TEST

START_TEST(test_a_steady_peer_is_convicted_after_eighteen_intervals)
{
	uint64_t last = beat(100 * S, FAILURE_DETECTOR_WINDOW + 1);

	/* The first interval of two seconds has left the window. */
	ck_assert_uint_eq(failure_detector_mean(detector, &peer), S);
	ck_assert_double_eq_tol(failure_detector_phi(detector, &peer, last + 10 * S), 4.343, 0.001);
	ck_assert(!failure_detector_convicts(detector, &peer, 1, last + 18 * S));
	ck_assert(failure_detector_convicts(detector, &peer, 1, last + 19 * S));
	/* With other evidence a quarter will do. */
	ck_assert(!failure_detector_convicts(detector, &peer, 0.25, last + 4 * S));
	ck_assert(failure_detector_convicts(detector, &peer, 0.25, last + 5 * S));
}
END_TEST

START_TEST(test_long_intervals_are_not_learned)
{
	uint64_t last = beat(100 * S, 100);
	uint64_t mean = failure_detector_mean(detector, &peer);

	failure_detector_report(detector, &peer, last + 15 * S);
	ck_assert_uint_eq(failure_detector_mean(detector, &peer), mean);
	ck_assert_uint_eq(failure_detector_last(detector, &peer), last + 15 * S);
}
END_TEST

START_TEST(test_a_pause_of_ours_convicts_nobody)
{
	uint64_t last = beat(100 * S, 50);

	ck_assert(failure_detector_may_judge(detector, 101 * S));
	ck_assert(failure_detector_may_judge(detector, 105 * S));
	/* Thirty seconds later: we slept, not they. */
	ck_assert(!failure_detector_may_judge(detector, last + 30 * S));
	ck_assert(!failure_detector_may_judge(detector, last + 31 * S));
	ck_assert(!failure_detector_may_judge(detector, last + 34 * S));
	ck_assert(failure_detector_may_judge(detector, last + 35 * S));
}
END_TEST

START_TEST(test_reports_at_one_moment_do_not_convict)
{
	for (int i = 0; i < 2000; i++)
		failure_detector_report(detector, &peer, 100 * S);
	ck_assert_uint_gt(failure_detector_mean(detector, &peer), 0);
	ck_assert(isfinite(failure_detector_phi(detector, &peer, 200 * S)));
}
END_TEST

START_TEST(test_forgotten_intervals_are_gone)
{
	beat(100 * S, 10);
	failure_detector_remove(detector, &peer);
	ck_assert_uint_eq(failure_detector_last(detector, &peer), 0);
	ck_assert_uint_eq(failure_detector_mean(detector, &peer), 0);
	failure_detector_report(detector, &peer, 300 * S);
	ck_assert_uint_eq(failure_detector_mean(detector, &peer), 2 * S);
}
END_TEST

START_TEST(test_the_threshold_can_be_moved)
{
	uint64_t last = beat(100 * S, FAILURE_DETECTOR_WINDOW + 1);

	failure_detector_set_threshold(detector, 12);
	ck_assert_double_eq(failure_detector_threshold(detector), 12);
	ck_assert(!failure_detector_convicts(detector, &peer, 1, last + 20 * S));
	ck_assert(failure_detector_convicts(detector, &peer, 1, last + 28 * S));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("failure_detector");
	TCase *tcase = tcase_create("failure_detector");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_peer_never_heard_of_is_not_convicted);
	tcase_add_test(tcase, test_the_first_interval_is_two_rounds);
	tcase_add_test(tcase, test_a_steady_peer_is_convicted_after_eighteen_intervals);
	tcase_add_test(tcase, test_long_intervals_are_not_learned);
	tcase_add_test(tcase, test_a_pause_of_ours_convicts_nobody);
	tcase_add_test(tcase, test_reports_at_one_moment_do_not_convict);
	tcase_add_test(tcase, test_forgotten_intervals_are_gone);
	tcase_add_test(tcase, test_the_threshold_can_be_moved);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
