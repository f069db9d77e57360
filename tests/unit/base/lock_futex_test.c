/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of builds without HELENUS_DEBUG_LOCKS, in every build: its own code is taken in here under other names, so that
 * ThreadSanitizer sees whether what one holder wrote happens before what the next one reads, and AddressSanitizer whether
 * a lock is touched that its last holder freed. lock_model_test.c walks through all orders of its steps.
 */
#undef HELENUS_DEBUG_LOCKS
#define lock_init futex_lock_init
#define lock_fini futex_lock_fini
#define lock_take_slow futex_lock_take_slow
#define lock_drop_slow futex_lock_drop_slow
#include "base/lock.c"

#include <check.h>
#include <sched.h>
#include <signal.h>

enum { THREADS = 4, ROUNDS = 20000, CELLS = 8, LIVES = 300 };

struct shared {
	struct lock lock;
	uint64_t cells[CELLS]; /* all the same outside of the lock */
	uint64_t tries; /* under the lock */
	atomic_uint inside;
};

static void
shared_touch(struct shared *shared)
{
	ck_assert_uint_eq(atomic_fetch_add_explicit(&shared->inside, 1, memory_order_relaxed), 0);
	for (int i = 1; i < CELLS; i++)
		ck_assert_uint_eq(shared->cells[i], shared->cells[0]);
	for (int i = 0; i < CELLS; i++)
		shared->cells[i]++;
	atomic_fetch_sub_explicit(&shared->inside, 1, memory_order_relaxed);
}

static void *
shared_hammer(void *argument)
{
	struct shared *shared = argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		lock_take(&shared->lock);
		shared_touch(shared);
		if (i % 16 == 0)
			sched_yield(); /* so that others find it taken, on one core too */
		lock_drop(&shared->lock);
		if (i % 4 == 0 && lock_try(&shared->lock)) {
			shared_touch(shared);
			shared->tries++;
			lock_drop(&shared->lock);
		}
	}
	return NULL;
}

START_TEST(test_what_one_holder_wrote_the_next_one_reads)
{
	struct shared shared = {0};
	pthread_t threads[THREADS];

	lock_init(&shared.lock, "shared", 1);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, shared_hammer, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(shared.cells[0], (uint64_t)THREADS * ROUNDS + shared.tries);
	lock_fini(&shared.lock);
}
END_TEST

/* ---- who drops it last frees it ------------------------------------------------------------- */

struct counted {
	struct lock lock;
	unsigned refs;
};

static atomic_uint counted_freed;

static void *
counted_unref(void *argument)
{
	struct counted *counted = argument;
	bool is_last;

	lock_take(&counted->lock);
	sched_yield();
	is_last = --counted->refs == 0;
	lock_drop(&counted->lock);
	if (is_last) {
		lock_fini(&counted->lock);
		free(counted);
		atomic_fetch_add(&counted_freed, 1);
	}
	return NULL;
}

START_TEST(test_the_last_holder_may_free_it)
{
	for (int life = 0; life < LIVES; life++) {
		struct counted *counted = malloc(sizeof(*counted));
		pthread_t threads[THREADS];

		ck_assert_ptr_nonnull(counted);
		lock_init(&counted->lock, "counted", 1);
		counted->refs = THREADS;
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(
			    pthread_create(&threads[i], NULL, counted_unref, counted), 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	ck_assert_uint_eq(atomic_load(&counted_freed), LIVES);
}
END_TEST

/* ---- errno ---------------------------------------------------------------------------------- */

static atomic_uint errno_signals;

static void
errno_signal(int number)
{
	(void)number;
	atomic_fetch_add(&errno_signals, 1);
}

/* A failed call's errno is read after locks were taken and dropped (to count it, to log it). */
static void *
errno_keep(void *argument)
{
	struct shared *shared = argument;

	errno = EXDEV;
	lock_take(&shared->lock);
	ck_assert_int_eq(errno, EXDEV);
	lock_drop(&shared->lock);
	ck_assert_int_eq(errno, EXDEV);
	return NULL;
}

START_TEST(test_waiting_leaves_errno_alone)
{
	struct sigaction action = {.sa_handler = errno_signal}; /* no SA_RESTART: the wait fails */
	struct shared shared = {0};
	pthread_t thread;

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	lock_init(&shared.lock, "shared", 1);
	lock_take(&shared.lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, errno_keep, &shared), 0);
	while (atomic_load(&shared.lock.word) != 2)
		sched_yield();
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(pthread_kill(thread, SIGUSR1), 0);
		while (atomic_load(&errno_signals) <= i)
			sched_yield();
	}
	lock_drop(&shared.lock);
	pthread_join(thread, NULL);
	lock_fini(&shared.lock);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("lock_futex");
	TCase *tcase = tcase_create("lock_futex");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_what_one_holder_wrote_the_next_one_reads);
	tcase_add_test(tcase, test_the_last_holder_may_free_it);
	tcase_add_test(tcase, test_waiting_leaves_errno_alone);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
