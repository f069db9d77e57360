/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_LOCK_H
#define HELENUS_BASE_LOCK_H

/*
 * A mutex with a name and a rank. A thread takes locks in rising rank only; builds with
 * HELENUS_DEBUG_LOCKS (make asan, make tsan) stop on a rank taken backwards. No I/O and no callback
 * under a lock. The ranks of a folder stand in its README.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifdef HELENUS_DEBUG_LOCKS

struct lock {
	pthread_mutex_t mutex; /* which sanitizers understand */
	const char *name; /* static string */
	int rank;
	pthread_t owner;
	bool is_held;
};

#else

/*
 * A futex: a request takes some twenty locks, nearly all of them free, and the calls and checks of a pthread mutex cost
 * as much again as the two atomic operations.
 */
struct lock {
	atomic_uint word; /* 0 free, 1 held, 2 held and somebody may sleep */
};

#endif

void lock_init(struct lock *lock, const char *name, int rank);
void lock_fini(struct lock *lock);

#ifdef HELENUS_DEBUG_LOCKS

void lock_take(struct lock *lock);
bool lock_try(struct lock *lock);
void lock_drop(struct lock *lock);
/* Debug builds: abort unless the calling thread holds it. */
void lock_assert_held(const struct lock *lock);

#else

void lock_take_slow(struct lock *lock);
void lock_drop_slow(struct lock *lock);

static inline bool
lock_try(struct lock *lock)
{
	unsigned expected = 0;

	return atomic_compare_exchange_strong_explicit(
	    &lock->word, &expected, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void
lock_take(struct lock *lock)
{
	if (!lock_try(lock))
		lock_take_slow(lock);
}

static inline void
lock_drop(struct lock *lock)
{
	/* The lock may be freed as soon as the word is 0: the wake is for whoever has it there by then. */
	if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
		lock_drop_slow(lock);
}

static inline void
lock_assert_held(const struct lock *lock)
{
	(void)lock;
}

#endif

#endif
