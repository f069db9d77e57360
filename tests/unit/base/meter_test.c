/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "base/meter.h"

START_TEST(test_a_steady_rate_is_the_rate)
{
	struct meter meter = {0};
	uint64_t count = 0;

	ck_assert_double_eq(meter_rate(&meter), 0);
	for (int i = 0; i < 100; i++) {
		count += 50;
		meter_tick(&meter, count, 5, 300);
		ck_assert_double_eq_tol(meter_rate(&meter), 10, 1e-9);
	}
}
END_TEST

START_TEST(test_after_one_window_of_silence_a_third_is_left)
{
	struct meter meter = {0};

	meter_tick(&meter, 500, 5, 300);
	ck_assert_double_eq(meter_rate(&meter), 100);
	for (int i = 0; i < 60; i++)
		meter_tick(&meter, 500, 5, 300);
	ck_assert_double_eq_tol(meter_rate(&meter), 100 / M_E, 1e-6);
}
END_TEST

START_TEST(test_the_length_of_a_tick_does_not_matter)
{
	struct meter often = {0}, seldom = {0};
	uint64_t count = 0;

	meter_tick(&often, 0, 5, 900);
	meter_tick(&seldom, 0, 5, 900);
	for (int i = 1; i <= 60; i++) {
		count += 35;
		meter_tick(&often, count, 5, 900);
		if (i % 6 == 0)
			meter_tick(&seldom, count, 30, 900);
	}
	ck_assert_double_eq_tol(meter_rate(&often), meter_rate(&seldom), 1e-6);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("meter");
	TCase *tcase = tcase_create("meter");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_a_steady_rate_is_the_rate);
	tcase_add_test(tcase, test_after_one_window_of_silence_a_third_is_left);
	tcase_add_test(tcase, test_the_length_of_a_tick_does_not_matter);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
