/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "tools/stress_distribution.h"

/* As cassandra-stress has them: minimum, maximum, average, numbers after seed 42, quantiles. */
static const struct {
	const char *text;
	int64_t min;
	int64_t max;
	int64_t average;
	int64_t numbers[6];
	int64_t quantiles[5]; /* 0.1, 0.25, 0.5, 0.9, 0.99 */
} recorded[] = {
    {"FIXED(7)", 7LL, 7LL, 7LL, {7LL, 7LL, 7LL, 7LL, 7LL, 7LL}, {7LL, 7LL, 7LL, 7LL, 7LL}},
    {"UNIFORM(1..100B)", 1LL, 100000000000LL, 49999994975LL,
	{72756368004LL, 68322347176LL, 30871945534LL, 27707849008LL, 66554895180LL, 90337226468LL},
	{10000000001LL, 25000000001LL, 50000000001LL, 90000000001LL, 99000000001LL}},
    {"uniform(-5..5)", -5LL, 5LL, 0LL, {3LL, 2LL, -1LL, -1LL, 2LL, 4LL},
	{-3LL, -2LL, 0LL, 4LL, 5LL}},
    {"GAUSSIAN(1..1000000)", 1LL, 1000000LL, 499999LL,
	{690317LL, 653235LL, 341689LL, 315502LL, 546830LL, 614104LL},
	{286408LL, 387585LL, 500000LL, 713592LL, 887724LL}},
    {"gauss(1..1000000,500000,50000)", 1LL, 1000000LL, 495055LL,
	{557095LL, 545970LL, 452506LL, 444650LL, 514048LL, 534231LL},
	{435922LL, 466275LL, 500000LL, 564077LL, 616317LL}},
    {"normal(1..100,5)", 1LL, 100LL, 50LL, {61LL, 59LL, 41LL, 39LL, 53LL, 57LL},
	{37LL, 43LL, 50LL, 63LL, 73LL}},
    {"EXP(1..1000)", 1LL, 1000LL, 284LL, {132LL, 107LL, 269LL, 232LL, 96LL, 56LL},
	{31LL, 84LL, 201LL, 667LL, 1000LL}},
    {"EXTREME(1..1000,0.6)", 1LL, 1000LL, 179LL, {197LL, 160LL, 25LL, 20LL, 148LL, 522LL},
	{3LL, 16LL, 69LL, 509LL, 1000LL}},
    {"extr(1..1M,2)", 1LL, 1000000LL, 341039LL,
	{433872LL, 407941LL, 231190LL, 216725LL, 398191LL, 581635LL},
	{123501LL, 204074LL, 316770LL, 577350LL, 816496LL}},
    {"QEXTREME(1..1M,2,2)", 1LL, 1000001LL, 410181LL,
	{340065LL, 632617LL, 20536LL, 189573LL, 882603LL, 946924LL},
	{63354LL, 158385LL, 316770LL, 863354LL, 986336LL}},
    {"SEQ(1..10)", 1LL, 10LL, 5LL, {3LL, 4LL, 5LL, 6LL, 7LL, 8LL}, {1LL, 3LL, 5LL, 9LL, 9LL}},
    {"~exp(1..1000)", 1000LL, 1LL, 716LL, {869LL, 894LL, 732LL, 769LL, 905LL, 945LL},
	{970LL, 917LL, 800LL, 334LL, 1LL}},
    {"~uniform(1..10)", 10LL, 1LL, 5LL, {3LL, 4LL, 7LL, 8LL, 4LL, 1LL}, {9LL, 8LL, 5LL, 1LL, 1LL}},
};

START_TEST(test_numbers_after_a_seed_are_those_of_cassandra_stress)
{
	static const double probabilities[] = {0.1, 0.25, 0.5, 0.9, 0.99};
	struct stress_distribution distribution;
	struct error err;

	ck_assert_msg(
	    stress_distribution_parse(&distribution, recorded[_i].text, &err) == 0, "%s", err.text);
	ck_assert_int_eq(stress_distribution_min(&distribution), recorded[_i].min);
	ck_assert_int_eq(stress_distribution_max(&distribution), recorded[_i].max);
	ck_assert_int_eq(stress_distribution_average(&distribution), recorded[_i].average);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(stress_distribution_inverse(&distribution, probabilities[i]),
		    recorded[_i].quantiles[i]);
	stress_distribution_seed(&distribution, 42);
	for (int i = 0; i < 6; i++) {
		int64_t number = stress_distribution_next(&distribution);

		/* Inside a quanta the draw is not seeded, there neither. */
		if (distribution.kind == STRESS_QUANTIZED_EXTREME)
			ck_assert(number >= 1 && number <= 1000000);
		else
			ck_assert_int_eq(number, recorded[_i].numbers[i]);
	}
}
END_TEST

static const struct {
	const char *text;
	double mean; /* of many numbers */
	double deviation;
} expected[] = {
    {"fixed(5)", 5, 0},
    {"uniform(1..1000)", 500.5, 288.7},
    {"gaussian(1..1000,100,10)", 99.5, 10},
    {"normal(1..1001)", 500.5, 164},
    {"exp(1..1000000)", 144300, 143500},
    {"seq(1..100)", 50.5, 28.87},
    {"~exp(1..1000000)", 855700, 143500},
    {"extr(1..1000000,2)", 337100, 175900},
    {"qextr(1..1000000,2,4)", 367000, 240000},
};

START_TEST(test_mean_and_deviation_are_as_the_name_says)
{
	enum { NUMBERS = 200000 };
	struct stress_distribution distribution;
	double sum = 0, squares = 0, mean, deviation;

	ck_assert_int_eq(stress_distribution_parse(&distribution, expected[_i].text, NULL), 0);
	for (int i = 0; i < NUMBERS; i++) {
		double number = (double)stress_distribution_next(&distribution);

		ck_assert(number >= (double)distribution.min && number <= (double)distribution.max);
		sum += number;
		squares += number * number;
	}
	mean = sum / NUMBERS;
	deviation = sqrt(fmax(0, squares / NUMBERS - mean * mean));
	ck_assert_msg(fabs(mean - expected[_i].mean) <= 0.02 * fabs(expected[_i].mean),
	    "%s: mean %f", expected[_i].text, mean);
	ck_assert_msg(
	    fabs(deviation - expected[_i].deviation) <= 0.03 * expected[_i].deviation + 0.01,
	    "%s: deviation %f", expected[_i].text, deviation);
}
END_TEST

static const char *const wrong[] = {"", "fixed", "fixed()", "fixed(1", "fixed(x)", "fixed(1,2)",
    "foo(1..2)", "uniform(1)", "uniform(2..1)", "uniform(1..2,3)", "uniform(..)",
    "gaussian(1..2,)x", "exp(1..10,2)", "extr(1..10)", "extr(1..10,0)", "extr(1..10,x)",
    "qextr(1..10,2)", "qextr(1..10,2,0)", "qextr(1..10,2,1000000)", "seq(1..1)", "seq(5..1)",
    "~~fixed(1)", "uniform(1..99999999999999999999)", "fixed(99999999999B)", "gauss(1..10,5,0)"};

START_TEST(test_wrong_distributions_are_refused)
{
	struct stress_distribution distribution;
	struct error err;

	ck_assert_msg(
	    stress_distribution_parse(&distribution, wrong[_i], &err) == -1, "%s", wrong[_i]);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_gt(strlen(err.text), 10);
}
END_TEST

START_TEST(test_numbers_take_suffixes)
{
	int64_t value, min, max;

	ck_assert(stress_parse_long("12", 2, &value) && value == 12);
	ck_assert(stress_parse_long("3k", 2, &value) && value == 3000);
	ck_assert(stress_parse_long("3M", 2, &value) && value == 3000000);
	ck_assert(stress_parse_long(" 2b ", 4, &value) && value == 2000000000);
	ck_assert(!stress_parse_long("k", 1, &value));
	ck_assert(!stress_parse_long("1x", 2, &value));
	ck_assert(!stress_parse_long("", 0, &value));
	ck_assert(stress_parse_range("1..10k", 6, &min, &max) && min == 1 && max == 10000);
	ck_assert(stress_parse_range("-5...5", 6, &min, &max) && min == -5 && max == 5);
	ck_assert(!stress_parse_range("5", 1, &min, &max));
}
END_TEST

START_TEST(test_ratios_stay_between_nothing_and_all)
{
	struct stress_ratio ratio;

	ck_assert_int_eq(stress_ratio_parse(&ratio, "uniform(1..20)/10", NULL), 0);
	ck_assert_double_eq(stress_ratio_min(&ratio), 0.1);
	ck_assert_double_eq(stress_ratio_max(&ratio), 1);
	for (int i = 0; i < 1000; i++) {
		double value = stress_ratio_next(&ratio);

		ck_assert(value >= 0 && value <= 1);
	}
	ck_assert_int_eq(stress_ratio_parse(&ratio, "fixed(1)", NULL), -1);
	ck_assert_int_eq(stress_ratio_parse(&ratio, "fixed(1)/0", NULL), -1);
	ck_assert_int_eq(stress_ratio_parse(&ratio, "fixed(1)/x", NULL), -1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_distribution");
	TCase *tcase = tcase_create("stress_distribution");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, test_numbers_after_a_seed_are_those_of_cassandra_stress, 0,
	    sizeof(recorded) / sizeof(recorded[0]));
	tcase_add_loop_test(tcase, test_mean_and_deviation_are_as_the_name_says, 0,
	    sizeof(expected) / sizeof(expected[0]));
	tcase_add_loop_test(
	    tcase, test_wrong_distributions_are_refused, 0, sizeof(wrong) / sizeof(wrong[0]));
	tcase_add_test(tcase, test_numbers_take_suffixes);
	tcase_add_test(tcase, test_ratios_stay_between_nothing_and_all);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
