/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer_wheel.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64, TICK = 1000, TIMERS = 400 };

static size_t
count_of(const struct wheel_timer *timer)
{
	size_t count = 0;

	for (; timer != NULL; timer = timer->next)
		count++;
	return count;
}

START_TEST(test_timer_comes_out_at_its_moment_and_not_before)
{
	struct wheel_timer timer = {0};
	struct timer_wheel wheel;

	timer_wheel_init(&wheel, SLOTS, TICK, 5000000);
	timer_wheel_start(&wheel, &timer, 5010000);
	ck_assert(wheel_timer_is_started(&timer));
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), 5010000);
	ck_assert_ptr_null(timer_wheel_advance(&wheel, 5009999));
	ck_assert_ptr_eq(timer_wheel_advance(&wheel, 5010000), &timer);
	ck_assert(!wheel_timer_is_started(&timer));
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), UINT64_MAX);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_moment_within_a_tick_comes_out_at_its_end)
{
	struct wheel_timer timer = {0};
	struct timer_wheel wheel;

	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	timer_wheel_start(&wheel, &timer, 10001);
	ck_assert_ptr_null(timer_wheel_advance(&wheel, 10999));
	ck_assert_ptr_eq(timer_wheel_advance(&wheel, 11000), &timer);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_moment_that_is_past_comes_out_next)
{
	struct wheel_timer timer = {0}, other = {0};
	struct timer_wheel wheel;

	timer_wheel_init(&wheel, SLOTS, TICK, 1000000);
	ck_assert_ptr_null(timer_wheel_advance(&wheel, 1000500));
	timer_wheel_start(&wheel, &timer, 3);
	ck_assert_ptr_eq(timer_wheel_advance(&wheel, 1001000), &timer);
	/* The tick of now was looked at already: the next one has it. */
	timer_wheel_start(&wheel, &other, 1001000);
	ck_assert_ptr_eq(timer_wheel_advance(&wheel, 1002000), &other);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_stopped_timer_does_not_come_out)
{
	struct wheel_timer first = {0}, second = {0}, third = {0};
	struct timer_wheel wheel;

	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	timer_wheel_start(&wheel, &first, 5000);
	timer_wheel_start(&wheel, &second, 5000);
	timer_wheel_start(&wheel, &third, 5000);
	ck_assert(timer_wheel_stop(&wheel, &second));
	ck_assert(!timer_wheel_stop(&wheel, &second));
	ck_assert_uint_eq(wheel.count, 2);
	ck_assert_uint_eq(count_of(timer_wheel_advance(&wheel, 5000)), 2);
	ck_assert(!timer_wheel_stop(&wheel, &first));
	timer_wheel_start(&wheel, &first, 9000);
	ck_assert(timer_wheel_stop(&wheel, &first));
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), UINT64_MAX);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_last_timer_of_a_slot_leaves_nothing_to_look_at)
{
	struct wheel_timer near = {0}, far = {0};
	struct timer_wheel wheel;

	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	timer_wheel_start(&wheel, &near, 5000);
	timer_wheel_start(&wheel, &far, 50000);
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), 5000);
	timer_wheel_stop(&wheel, &near);
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), 50000);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_end_of_a_wheel_parts_its_timers)
{
	struct timer_wheel wheel;
	struct wheel_timer kept = {0}, late = {0}, *freed = calloc(2, sizeof(*freed));

	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	timer_wheel_start(&wheel, &freed[0], 5 * TICK);
	timer_wheel_start(&wheel, &kept, 5 * TICK);
	timer_wheel_start(&wheel, &freed[1], 5 * TICK);
	timer_wheel_end(&wheel);
	memset(freed, 0xff, 2 * sizeof(*freed));
	free(freed);
	timer_wheel_start(&wheel, &late, 6 * TICK);
	ck_assert(wheel_timer_is_started(&kept) && wheel_timer_is_started(&late));
	ck_assert_ptr_null(timer_wheel_advance(&wheel, 100 * TICK));
	ck_assert_uint_eq(timer_wheel_next_ns(&wheel), UINT64_MAX);
	ck_assert(timer_wheel_stop(&wheel, &kept) && !timer_wheel_stop(&wheel, &kept));
	ck_assert(timer_wheel_stop(&wheel, &late) && !wheel_timer_is_started(&late));
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_timer_waits_many_turns)
{
	const uint64_t due = (uint64_t)TICK * SLOTS * 5 + 3 * TICK;
	struct wheel_timer timer = {0};
	struct timer_wheel wheel;
	uint64_t now = 0;
	int looks = 0;

	timer_wheel_init(&wheel, SLOTS, TICK, now);
	timer_wheel_start(&wheel, &timer, due);
	while (timer_wheel_advance(&wheel, now) == NULL) {
		now = timer_wheel_next_ns(&wheel);
		ck_assert_uint_le(now, due);
		ck_assert_int_lt(looks++, 10);
	}
	ck_assert_uint_eq(now, due);
	timer_wheel_fini(&wheel);
}
END_TEST

START_TEST(test_one_long_step_takes_all_that_is_due)
{
	static struct wheel_timer timers[TIMERS];
	struct timer_wheel wheel;
	struct wheel_timer *due;
	uint64_t last = 0;

	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	for (int i = 0; i < TIMERS; i++)
		timer_wheel_start(&wheel, &timers[i], (uint64_t)i * TICK);
	due = timer_wheel_advance(&wheel, (uint64_t)TICK * TIMERS * 100);
	ck_assert_uint_eq(count_of(due), TIMERS);
	timer_wheel_fini(&wheel);
	/* Within one turn the order is that of the ticks. */
	timer_wheel_init(&wheel, SLOTS, TICK, 0);
	for (int i = SLOTS - 1; i >= 0; i--)
		timer_wheel_start(&wheel, &timers[i], (uint64_t)i * TICK);
	for (due = timer_wheel_advance(&wheel, (uint64_t)TICK * SLOTS); due != NULL;
	     due = due->next) {
		ck_assert_uint_le(last, due->due_ns);
		last = due->due_ns;
	}
	timer_wheel_fini(&wheel);
}
END_TEST

/* Against an array: each comes out in the step that reaches the end of its tick. */
START_TEST(test_chance)
{
	static struct wheel_timer timers[TIMERS];
	static uint64_t due_at[TIMERS]; /* 0: not started */
	struct timer_wheel wheel;
	uint64_t now = 12345;
	unsigned seed = (unsigned)_i + 1;

	for (int i = 0; i < TIMERS; i++) {
		timers[i] = (struct wheel_timer){0};
		due_at[i] = 0;
	}
	timer_wheel_init(&wheel, SLOTS, TICK, now);
	for (int step = 0; step < 3000; step++) {
		int i = rand_r(&seed) % TIMERS;
		struct wheel_timer *due;
		uint64_t next;

		if (due_at[i] == 0) {
			due_at[i] = now + 1 + (uint64_t)(rand_r(&seed) % (TICK * SLOTS * 3));
			timer_wheel_start(&wheel, &timers[i], due_at[i]);
		} else if (rand_r(&seed) % 2 == 0) {
			ck_assert(timer_wheel_stop(&wheel, &timers[i]));
			due_at[i] = 0;
		}
		if (rand_r(&seed) % 4 != 0)
			continue;
		now += (uint64_t)(rand_r(&seed) % (TICK * (rand_r(&seed) % 20 == 0 ? 200 : 3)));
		for (due = timer_wheel_advance(&wheel, now); due != NULL; due = due->next) {
			int at = (int)(due - timers);

			if (due_at[at] == 0 || due_at[at] > now)
				ck_abort_msg("step %d: timer %d is early", step, at);
			due_at[at] = 0;
		}
		next = timer_wheel_next_ns(&wheel);
		for (int at = 0; at < TIMERS; at++) {
			if (due_at[at] == 0)
				continue;
			if (due_at[at] + TICK <= now || next > due_at[at] + TICK)
				ck_abort_msg("step %d: timer %d is late", step, at);
		}
	}
	timer_wheel_fini(&wheel);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("timer_wheel");
	TCase *tcase = tcase_create("timer_wheel");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_timer_comes_out_at_its_moment_and_not_before);
	tcase_add_test(tcase, test_moment_within_a_tick_comes_out_at_its_end);
	tcase_add_test(tcase, test_moment_that_is_past_comes_out_next);
	tcase_add_test(tcase, test_stopped_timer_does_not_come_out);
	tcase_add_test(tcase, test_last_timer_of_a_slot_leaves_nothing_to_look_at);
	tcase_add_test(tcase, test_end_of_a_wheel_parts_its_timers);
	tcase_add_test(tcase, test_timer_waits_many_turns);
	tcase_add_test(tcase, test_one_long_step_takes_all_that_is_due);
	tcase_add_loop_test(tcase, test_chance, 0, 10);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
