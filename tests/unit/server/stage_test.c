/* SPDX-License-Identifier: Apache-2.0 */
#include "server/stage.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"

/* A task that counts itself and may sleep. */
struct counted {
	struct task task;
	int number;
	unsigned sleep_us;
	int *order; /* simulated stages: where to note the number */
	int *order_at;
};

static atomic_int counted_runs, counted_drops, counted_active, counted_active_max, counted_flushes;

static void
counted_flush(struct worker *worker)
{
	(void)worker;
	atomic_fetch_add(&counted_flushes, 1);
}

static void
counted_run(struct task *task, struct worker *worker)
{
	struct counted *counted = (struct counted *)task;
	int active = atomic_fetch_add(&counted_active, 1) + 1;
	int max = atomic_load(&counted_active_max);

	while (active > max && !atomic_compare_exchange_weak(&counted_active_max, &max, active))
		;
	worker->flush = counted_flush;
	if (counted->sleep_us > 0)
		usleep(counted->sleep_us);
	if (counted->order != NULL)
		counted->order[(*counted->order_at)++] = counted->number;
	atomic_fetch_sub(&counted_active, 1);
	atomic_fetch_add(&counted_runs, 1);
}

static void
counted_drop(struct task *task, struct worker *worker)
{
	(void)task;
	(void)worker;
	atomic_fetch_add(&counted_drops, 1);
}

static void
counted_reset(void)
{
	atomic_store(&counted_runs, 0);
	atomic_store(&counted_drops, 0);
	atomic_store(&counted_active_max, 0);
	atomic_store(&counted_flushes, 0);
}

static struct counted *
counted_list(size_t count, unsigned sleep_us)
{
	struct counted *tasks = calloc(count, sizeof(*tasks));

	for (size_t i = 0; i < count; i++) {
		tasks[i].task.run = counted_run;
		tasks[i].task.drop = counted_drop;
		tasks[i].task.next = i + 1 < count ? &tasks[i + 1].task : NULL;
		tasks[i].number = (int)i;
		tasks[i].sleep_us = sleep_us;
	}
	return tasks;
}

static void
wait_for(atomic_int *value, int wanted)
{
	for (int i = 0; i < 20000 && atomic_load(value) < wanted; i++)
		usleep(1000);
	ck_assert_int_eq(atomic_load(value), wanted);
}

struct submitter {
	pthread_t thread;
	struct stage *stage;
	struct counted *tasks;
};

enum { BATCHES = 500, BATCH = 40, SUBMITTERS = 4 };

static void *
submitter_main(void *argument)
{
	struct submitter *submitter = argument;

	for (int batch = 0; batch < BATCHES; batch++) {
		struct counted *first = submitter->tasks + (size_t)batch * BATCH;
		struct task *rest;

		first[BATCH - 1].task.next = NULL;
		ck_assert_uint_eq(
		    stage_submit(submitter->stage, &first->task, BATCH, &rest), BATCH);
		ck_assert_ptr_null(rest);
		if (batch % 16 == 0)
			usleep(50);
	}
	return NULL;
}

START_TEST(test_every_task_runs_once_from_many_submitters)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("MutationStage", 8, 0, env);
	struct submitter submitters[SUBMITTERS];
	struct stage_stats stats;

	counted_reset();
	for (int i = 0; i < SUBMITTERS; i++) {
		submitters[i].stage = stage;
		submitters[i].tasks = counted_list((size_t)BATCHES * BATCH, 0);
		pthread_create(&submitters[i].thread, NULL, submitter_main, &submitters[i]);
	}
	for (int i = 0; i < SUBMITTERS; i++)
		pthread_join(submitters[i].thread, NULL);
	stage_stop(stage);
	ck_assert_int_eq(atomic_load(&counted_runs), SUBMITTERS * BATCHES * BATCH);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.completed, SUBMITTERS * BATCHES * BATCH);
	ck_assert_uint_eq(stats.pending, 0);
	ck_assert_uint_eq(stats.active, 0);
	ck_assert_uint_eq(histogram_count(stats.service_us), stats.completed);
	ck_assert_int_gt(atomic_load(&counted_flushes), 0);
	ck_assert_int_le(atomic_load(&counted_active_max), 8);
	stage_free(stage);
	for (int i = 0; i < SUBMITTERS; i++)
		free(submitters[i].tasks);
	env_free(env);
}
END_TEST

START_TEST(test_slow_tasks_spread_over_all_threads)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("ReadStage", 8, 0, env);
	struct counted *tasks = counted_list(64, 5000);
	struct task *rest;

	counted_reset();
	ck_assert_uint_eq(stage_submit(stage, &tasks->task, 64, &rest), 64);
	wait_for(&counted_runs, 64);
	ck_assert_int_ge(atomic_load(&counted_active_max), 6);
	stage_free(stage);
	free(tasks);
	env_free(env);
}
END_TEST

START_TEST(test_resize_changes_what_runs_at_once)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("ReadStage", 2, 0, env);
	struct counted *tasks = counted_list(300, 2000);
	struct stage_stats stats;
	struct task *rest;

	counted_reset();
	tasks[99].task.next = NULL;
	tasks[199].task.next = NULL;
	stage_submit(stage, &tasks[0].task, 100, &rest);
	wait_for(&counted_runs, 100);
	ck_assert_int_le(atomic_load(&counted_active_max), 2);
	stage_resize(stage, 10);
	stage_submit(stage, &tasks[100].task, 100, &rest);
	wait_for(&counted_runs, 200);
	ck_assert_int_gt(atomic_load(&counted_active_max), 4);
	stage_resize(stage, 1);
	usleep(20000);
	atomic_store(&counted_active_max, 0);
	stage_submit(stage, &tasks[200].task, 100, &rest);
	wait_for(&counted_runs, 300);
	ck_assert_int_eq(atomic_load(&counted_active_max), 1);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.threads, 1);
	stage_free(stage);
	free(tasks);
	env_free(env);
}
END_TEST

START_TEST(test_full_queue_gives_the_rest_back)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("MutationStage", 1, 10, env);
	struct counted *tasks = counted_list(30, 20000);
	struct stage_stats stats;
	struct task *rest;
	size_t taken;

	counted_reset();
	taken = stage_submit(stage, &tasks[0].task, 30, &rest);
	ck_assert_uint_eq(taken, 10);
	ck_assert_ptr_eq(rest, &tasks[10].task);
	stage_blocked(stage, 20);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.blocked_now, 20);
	ck_assert_uint_eq(stats.blocked_total, 20);
	stage_blocked(stage, -20);
	stage_stop(stage);
	ck_assert_int_eq(atomic_load(&counted_runs), 10);
	ck_assert_uint_eq(stage_submit(stage, &tasks[10].task, 20, &rest), 0);
	ck_assert_ptr_eq(rest, &tasks[10].task);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.blocked_now, 0);
	stage_free(stage);
	free(tasks);
	env_free(env);
}
END_TEST

START_TEST(test_task_past_its_deadline_is_dropped_and_counted)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("MutationStage", 1, 0, env);
	struct counted *tasks = counted_list(5, 30000);
	struct stage_stats stats;
	struct task *rest;
	uint64_t now = env_monotonic_ns(env);

	counted_reset();
	for (int i = 0; i < 5; i++) {
		tasks[i].task.submitted_ns = now;
		/* The first one runs whenever its thread comes, and longer than the others may wait. */
		tasks[i].task.deadline_ns = i == 0 ? 0 : now + 15 * 1000 * 1000;
	}
	stage_submit(stage, &tasks->task, 5, &rest);
	stage_stop(stage);
	ck_assert_int_eq(atomic_load(&counted_runs), 1);
	ck_assert_int_eq(atomic_load(&counted_drops), 4);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.dropped, 4);
	ck_assert_uint_eq(stats.completed, 1);
	stage_free(stage);
	free(tasks);
	env_free(env);
}
END_TEST

START_TEST(test_run_here_needs_a_free_permit_and_an_empty_queue)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("MutationStage", 1, 0, env);
	struct counted *slow = counted_list(2, 50000);
	struct counted *tasks = counted_list(20, 0);
	struct worker worker = {.is_loop = true};
	struct stage_stats stats;
	struct task *rest;

	counted_reset();
	ck_assert_uint_eq(stage_run_here(stage, &tasks->task, 20, UINT64_MAX, &worker, &rest), 20);
	ck_assert_ptr_null(rest);
	ck_assert_int_eq(atomic_load(&counted_runs), 20);
	stage_submit(stage, &slow->task, 2, &rest);
	usleep(10000);
	ck_assert_uint_eq(stage_run_here(stage, &tasks->task, 20, UINT64_MAX, &worker, &rest), 0);
	ck_assert_ptr_eq(rest, &tasks->task);
	stage_stop(stage);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.completed, 22);
	stage_free(stage);
	free(slow);
	free(tasks);
	env_free(env);
}
END_TEST

static int nice_seen[2];

static void
note_other_nice(void *argument)
{
	(void)argument;
	nice_seen[1] = getpriority(PRIO_PROCESS, 0);
}

static void
note_nice(void *argument)
{
	nice_seen[0] = getpriority(PRIO_PROCESS, 0);
	/* Of a stage that has a thread: that one runs it, or starts another. */
	stage_submit_work(argument, note_other_nice, NULL);
}

START_TEST(test_a_nice_stage_makes_nobody_else_nice)
{
	struct env *env = env_posix_new();
	struct stage *other = stage_new("MemtableFlushWriter", 4, 0, env);
	struct stage *stage = stage_new("CompactionExecutor", 2, 0, env);
	int mine = getpriority(PRIO_PROCESS, 0);

	nice_seen[0] = nice_seen[1] = -100;
	stage_set_nice(stage, 19);
	stage_start_thread(other);
	stage_submit_work(stage, note_nice, other);
	stage_stop(stage);
	stage_stop(other);
	ck_assert_int_eq(nice_seen[0], 19);
	ck_assert_int_eq(nice_seen[1], mine);
	ck_assert_int_eq(getpriority(PRIO_PROCESS, 0), mine);
	stage_free(stage);
	stage_free(other);
	env_free(env);
}
END_TEST

/* `nice helenusd`, or Nice= of a unit: its threads are nice without any stage having made them so. */
START_TEST(test_a_nice_process_has_all_its_threads)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("ReadStage", 8, 0, env);
	struct stage *compactions = stage_new("CompactionExecutor", 2, 0, env);
	struct counted *tasks = counted_list(64, 5000);
	int mine = getpriority(PRIO_PROCESS, 0);
	struct task *rest;

	ck_assert_int_eq(setpriority(PRIO_PROCESS, 0, mine + 3), 0);
	counted_reset();
	ck_assert_uint_eq(stage_submit(stage, &tasks->task, 64, &rest), 64);
	wait_for(&counted_runs, 64);
	ck_assert_int_ge(atomic_load(&counted_active_max), 6);
	nice_seen[0] = -100;
	stage_set_nice(compactions, 4);
	stage_submit_work(compactions, note_nice, stage);
	stage_stop(compactions);
	stage_stop(stage);
	ck_assert_int_eq(nice_seen[0], mine + 7 < 19 ? mine + 7 : 19);
	ck_assert_int_eq(nice_seen[1], getpriority(PRIO_PROCESS, 0));
	stage_free(stage);
	stage_free(compactions);
	free(tasks);
	env_free(env);
}
END_TEST

static int ahead_told;

static void
count_ahead(struct task *task, size_t count)
{
	/* All that it is told of are still to run. */
	ck_assert_int_eq(ahead_told, atomic_load(&counted_runs));
	for (size_t i = 0; i < count; i++, task = task->next)
		ck_assert_ptr_nonnull(task);
	ahead_told += (int)count;
}

START_TEST(test_tasks_are_told_what_comes)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("ReadStage", 4, 0, env);
	struct counted *first = counted_list(1, 0), *tasks = counted_list(20, 0);
	struct worker worker = {.is_loop = true};
	struct task *rest;

	/*
	 * Tasks are taken one by one of a stage that nothing is known of, and of one whose tasks were slow: that is
	 * also what the thread looks like when it lost its core, so it may have to try again.
	 */
	for (int tries = 0; tries < 1000 && ahead_told != 20; tries++) {
		stage_run_here(stage, &first->task, 1, UINT64_MAX, &worker, &rest);
		counted_reset();
		ahead_told = 0;
		for (int i = 0; i < 20; i++) {
			tasks[i].task.ahead = count_ahead;
			tasks[i].task.next = i < 19 ? &tasks[i + 1].task : NULL;
		}
		ck_assert_uint_eq(
		    stage_run_here(stage, &tasks->task, 20, UINT64_MAX, &worker, &rest), 20);
	}
	ck_assert_int_eq(ahead_told, 20);
	stage_free(stage);
	free(first);
	free(tasks);
	env_free(env);
}
END_TEST

START_TEST(test_run_here_stops_at_its_budget)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("ReadStage", 4, 0, env);
	struct counted *tasks = counted_list(100, 2000);
	struct worker worker = {.is_loop = true};
	struct task *rest;
	size_t done;

	counted_reset();
	done = stage_run_here(stage, &tasks->task, 100, 5 * 1000 * 1000, &worker, &rest);
	ck_assert_uint_ge(done, 1);
	ck_assert_uint_le(done, 16);
	ck_assert_ptr_eq(rest, &tasks[done].task);
	ck_assert_uint_eq(stage_submit(stage, rest, 100 - done, &rest), 100 - done);
	wait_for(&counted_runs, 100);
	stage_free(stage);
	free(tasks);
	env_free(env);
}
END_TEST

static void
simulate(uint64_t seed, int *order)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new_simulated("MutationStage", 0, env, seed);
	struct counted *tasks = counted_list(50, 0);
	struct task *rest;
	int at = 0;

	for (int i = 0; i < 50; i++) {
		tasks[i].order = order;
		tasks[i].order_at = &at;
	}
	ck_assert_uint_eq(stage_submit(stage, &tasks->task, 50, &rest), 50);
	while (stage_sim_step(stage))
		;
	ck_assert_int_eq(at, 50);
	stage_free(stage);
	free(tasks);
	env_free(env);
}

START_TEST(test_simulated_order_is_the_seeds)
{
	int first[50], again[50], other[50];
	bool seen[50] = {false};

	simulate(7, first);
	simulate(7, again);
	simulate(8, other);
	ck_assert_mem_eq(first, again, sizeof(first));
	ck_assert_mem_ne(first, other, sizeof(first));
	for (int i = 0; i < 50; i++) {
		ck_assert(!seen[first[i]]);
		seen[first[i]] = true;
	}
}
END_TEST

static void
add_one(void *argument)
{
	atomic_fetch_add((atomic_int *)argument, 1);
}

START_TEST(test_work_of_a_stopping_stage_is_refused_not_lost)
{
	struct env *env = env_posix_new();
	struct stage *stage = stage_new("MemtableFlushWriter", 2, 0, env);
	atomic_int count = 0;

	for (int i = 0; i < 100; i++)
		ck_assert(stage_submit_work(stage, add_one, &count));
	stage_stop(stage);
	ck_assert_int_eq(atomic_load(&count), 100);
	ck_assert(!stage_submit_work(stage, add_one, &count));
	stage_free(stage);
	env_free(env);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stage");
	TCase *tests = tcase_create("stage");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, test_every_task_runs_once_from_many_submitters);
	tcase_add_test(tests, test_slow_tasks_spread_over_all_threads);
	tcase_add_test(tests, test_resize_changes_what_runs_at_once);
	tcase_add_test(tests, test_full_queue_gives_the_rest_back);
	tcase_add_test(tests, test_task_past_its_deadline_is_dropped_and_counted);
	tcase_add_test(tests, test_run_here_needs_a_free_permit_and_an_empty_queue);
	tcase_add_test(tests, test_run_here_stops_at_its_budget);
	tcase_add_test(tests, test_a_nice_stage_makes_nobody_else_nice);
	tcase_add_test(tests, test_a_nice_process_has_all_its_threads);
	tcase_add_test(tests, test_tasks_are_told_what_comes);
	tcase_add_test(tests, test_simulated_order_is_the_seeds);
	tcase_add_test(tests, test_work_of_a_stopping_stage_is_refused_not_lost);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
