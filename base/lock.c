/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HELENUS_DEBUG_LOCKS

enum { LOCK_HELD_MAX = 32 };

/* What the calling thread holds, in order of taking. Debug builds only, so that a thread-local does
 * no harm. */
static _Thread_local const struct lock *lock_held[LOCK_HELD_MAX];
static _Thread_local int lock_held_count;

static void
lock_note_take(struct lock *lock)
{
	assert(lock_held_count < LOCK_HELD_MAX);
	lock_held[lock_held_count++] = lock;
	lock->owner = pthread_self();
	lock->is_held = true;
}

/* Before waiting: a rank taken backwards is reported even when it happens not to deadlock. */
static void
lock_check_rank(const struct lock *lock)
{
	for (int i = 0; i < lock_held_count; i++) {
		if (lock_held[i]->rank < lock->rank)
			continue;
		fprintf(stderr, "lock \"%s\" (rank %d) taken while \"%s\" (rank %d) is held\n",
		    lock->name, lock->rank, lock_held[i]->name, lock_held[i]->rank);
		abort();
	}
}

static void
lock_note_drop(struct lock *lock)
{
	int i = lock_held_count;

	lock_assert_held(lock);
	while (i-- > 0 && lock_held[i] != lock)
		;
	assert(i >= 0);
	for (; i + 1 < lock_held_count; i++)
		lock_held[i] = lock_held[i + 1];
	lock_held_count--;
	lock->is_held = false;
}

void
lock_init(struct lock *lock, const char *name, int rank)
{
	int rc = pthread_mutex_init(&lock->mutex, NULL);

	assert(rc == 0);
	(void)rc;
	lock->name = name;
	lock->rank = rank;
	lock->is_held = false;
}

void
lock_fini(struct lock *lock)
{
	int rc = pthread_mutex_destroy(&lock->mutex);

	assert(rc == 0); /* EBUSY: somebody still holds it */
	(void)rc;
}

void
lock_take(struct lock *lock)
{
	int rc;

	lock_check_rank(lock);
	rc = pthread_mutex_lock(&lock->mutex);
	assert(rc == 0);
	(void)rc;
	lock_note_take(lock);
}

bool
lock_try(struct lock *lock)
{
	/* No rank check: a try does not wait, so it cannot close a cycle. */
	if (pthread_mutex_trylock(&lock->mutex) != 0)
		return false;
	lock_note_take(lock);
	return true;
}

void
lock_drop(struct lock *lock)
{
	int rc;

	lock_note_drop(lock);
	rc = pthread_mutex_unlock(&lock->mutex);
	assert(rc == 0);
	(void)rc;
}

void
lock_assert_held(const struct lock *lock)
{
	assert(lock->is_held && pthread_equal(lock->owner, pthread_self()));
}

#else

void
lock_init(struct lock *lock, const char *name, int rank)
{
	(void)name;
	(void)rank;
	atomic_init(&lock->word, 0);
}

void
lock_fini(struct lock *lock)
{
	/* Somebody still holds it? */
	assert(atomic_load_explicit(&lock->word, memory_order_relaxed) == 0);
	(void)lock;
}

void
lock_take_slow(struct lock *lock)
{
	int saved =
	    errno; /* of a call that failed before: its caller takes locks on the way to telling of it */

	/* Who takes it here does not know whether others sleep: it says so, at worst one wake too many. */
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = saved;
}

void
lock_drop_slow(struct lock *lock)
{
	int saved = errno; /* the lock may be freed memory by now, even unmapped: EFAULT */

	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

#endif
