/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_TABLE_LOCKS_H
#define HELENUS_CLUSTER_TABLE_LOCKS_H

/*
 * Striped locks by partition: what reads before it writes (conditional statements, counters, list
 * elements) holds its partition's. Several are taken in rising order of stripe.
 */
#include <pthread.h>
#include <stdint.h>

enum { TABLE_LOCKS_COUNT = 1024 };

struct table_locks {
	pthread_mutex_t stripes[TABLE_LOCKS_COUNT];
};

void table_locks_init(struct table_locks *locks);
void table_locks_fini(struct table_locks *locks);
void table_locks_take(struct table_locks *locks, int64_t token);
void table_locks_drop(struct table_locks *locks, int64_t token);
/* Several at once: a set of stripes, which the caller keeps on its stack (what it works on may be gone
 * when the locks are dropped). Add each token, take them all, drop them all. */
struct table_locks_set {
	uint64_t bits[TABLE_LOCKS_COUNT / 64];
};
void table_locks_set_add(struct table_locks_set *set, int64_t token);
void table_locks_take_set(struct table_locks *locks, const struct table_locks_set *set);
void table_locks_drop_set(struct table_locks *locks, const struct table_locks_set *set);

#endif
