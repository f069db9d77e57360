/* SPDX-License-Identifier: Apache-2.0 */
#include "server/cpu_pressure.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define MS UINT64_C(1000000)

static struct cpu_pressure pressure = {.fd = -1};

static void
setup(void)
{
	pressure = (struct cpu_pressure){.fd = -1};
}

START_TEST(test_a_thread_that_waits_is_under_pressure_for_two_seconds)
{
	uint64_t now = 5000 * MS;

	ck_assert(!cpu_pressure_is_high(&pressure, now));
	cpu_pressure_note(&pressure, now, 80 * MS, 20 * MS);
	ck_assert(cpu_pressure_is_high(&pressure, now));
	cpu_pressure_note(&pressure, now + 100 * MS, 180 * MS, 20 * MS);
	ck_assert(cpu_pressure_is_high(&pressure, now + 1999 * MS));
	ck_assert(!cpu_pressure_is_high(&pressure, now + 2000 * MS));
}
END_TEST

START_TEST(test_only_the_time_since_the_last_look_counts)
{
	uint64_t now = 5000 * MS;

	cpu_pressure_note(&pressure, now, 1000 * MS, 1000 * MS);
	cpu_pressure_note(&pressure, now + 100 * MS, 1090 * MS, 1010 * MS);
	ck_assert(cpu_pressure_is_high(&pressure, now + 100 * MS));
	cpu_pressure_note(&pressure, now + 2000 * MS, 2000 * MS, 1020 * MS);
	ck_assert(!cpu_pressure_is_high(&pressure, now + 2100 * MS));
}
END_TEST

START_TEST(test_a_thread_that_hardly_runs_says_nothing)
{
	cpu_pressure_note(&pressure, 5000 * MS, 4 * MS, 5 * MS);
	ck_assert(!cpu_pressure_is_high(&pressure, 5000 * MS));
}
END_TEST

struct spinner {
	pthread_t id;
	cpu_set_t cores;
	bool is_high;
};

/* Busy for a while; was it told of pressure at the end of it? */
static void *
spin(void *argument)
{
	struct spinner *spinner = argument;
	struct cpu_pressure own;
	struct timespec now;
	uint64_t began = 0, at;

	pthread_setaffinity_np(pthread_self(), sizeof(spinner->cores), &spinner->cores);
	cpu_pressure_init(&own);
	if (own.fd < 0)
		spinner->is_high = true; /* a kernel that does not tell */
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
		if (began == 0)
			began = at;
		if (cpu_pressure_is_high(&own, at))
			spinner->is_high = true;
	} while (at - began < 1500 * MS);
	cpu_pressure_fini(&own);
	return NULL;
}

/* Two threads of one core wait for each other. */
START_TEST(test_the_kernel_tells_of_it)
{
	struct spinner spinners[2] = {0};
	cpu_set_t all;
	int core = 0;

	ck_assert_int_eq(pthread_getaffinity_np(pthread_self(), sizeof(all), &all), 0);
	while (!CPU_ISSET(core, &all))
		core++;
	for (int i = 0; i < 2; i++) {
		CPU_SET(core, &spinners[i].cores);
		ck_assert_int_eq(pthread_create(&spinners[i].id, NULL, spin, &spinners[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(spinners[i].id, NULL);
	ck_assert(spinners[0].is_high);
	ck_assert(spinners[1].is_high);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cpu_pressure");
	TCase *tcase = tcase_create("cpu_pressure");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_a_thread_that_waits_is_under_pressure_for_two_seconds);
	tcase_add_test(tcase, test_only_the_time_since_the_last_look_counts);
	tcase_add_test(tcase, test_a_thread_that_hardly_runs_says_nothing);
	tcase_add_test(tcase, test_the_kernel_tells_of_it);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
