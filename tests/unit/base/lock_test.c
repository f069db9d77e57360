/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>

static struct lock outer;
static struct lock inner;

static void
setup(void)
{
	lock_init(&outer, "outer", 1);
	lock_init(&inner, "inner", 2);
}

static void *
take_and_count(void *argument)
{
	int *count = argument;

	for (int i = 0; i < 10000; i++) {
		lock_take(&outer);
		lock_assert_held(&outer);
		++*count;
		lock_drop(&outer);
	}
	return NULL;
}

START_TEST(test_one_thread_at_a_time_is_inside)
{
	pthread_t threads[4];
	int count = 0;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_count, &count), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(count, 40000);
	lock_fini(&outer);
}
END_TEST

START_TEST(test_try_does_not_wait)
{
	ck_assert(lock_try(&outer));
	ck_assert(!lock_try(&outer));
	lock_drop(&outer);
	ck_assert(lock_try(&outer));
	lock_drop(&outer);
}
END_TEST

START_TEST(test_rising_ranks_in_any_order_of_dropping)
{
	lock_take(&outer);
	lock_take(&inner);
	lock_drop(&outer);
	lock_drop(&inner);
	lock_take(&outer);
	lock_take(&inner);
	lock_drop(&inner);
	lock_drop(&outer);
}
END_TEST

#ifdef HELENUS_DEBUG_LOCKS
START_TEST(test_a_falling_rank_stops_the_program)
{
	lock_take(&inner);
	lock_take(&outer);
}
END_TEST

START_TEST(test_assert_held_stops_where_it_is_not)
{
	lock_assert_held(&outer);
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("lock");
	TCase *tcase = tcase_create("lock");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, test_one_thread_at_a_time_is_inside);
	tcase_add_test(tcase, test_try_does_not_wait);
	tcase_add_test(tcase, test_rising_ranks_in_any_order_of_dropping);
#ifdef HELENUS_DEBUG_LOCKS
	tcase_add_test_raise_signal(tcase, test_a_falling_rank_stops_the_program, SIGABRT);
	tcase_add_test_raise_signal(tcase, test_assert_held_stops_where_it_is_not, SIGABRT);
#endif
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
