/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_LOCK_H
#define HELENUS_BASE_LOCK_H

/*
 * A mutex with a name and a rank. A thread takes locks in rising rank only; builds with
 * HELENUS_DEBUG_LOCKS (make asan, make tsan) stop on a rank taken backwards. No I/O and no callback
 * under a lock. The ranks of a folder stand in its README.
 */
#include <pthread.h>
#include <stdbool.h>

struct lock {
	pthread_mutex_t mutex;
	const char *name; /* static string */
	int rank;
	pthread_t owner; /* kept in debug builds only */
	bool is_held; /* debug builds only */
};

void lock_init(struct lock *lock, const char *name, int rank);
void lock_fini(struct lock *lock);
void lock_take(struct lock *lock);
bool lock_try(struct lock *lock);
void lock_drop(struct lock *lock);
/* Debug builds: abort unless the calling thread holds it. */
void lock_assert_held(const struct lock *lock);

#endif
