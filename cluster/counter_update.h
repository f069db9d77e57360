/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_COUNTER_UPDATE_H
#define HELENUS_CLUSTER_COUNTER_UPDATE_H

/*
 * What the leader of a counter update does (db/CounterMutation): under the locks of the partitions, the shards of
 * this node are taken from the counter cache or read, raised by the increments, and made into a plain mutation that holds them as a whole. That one
 * is applied here before the locks are dropped, and may go to the other replicas any number of times.
 */
#include "base/env.h"
#include "cluster/table_locks.h"
#include "storage/store.h"

struct counter_updater {
	struct store *store; /* borrowed */
	struct env *env; /* borrowed */
	struct uuid host_id; /* whose shards they are */
	struct table_locks locks;
};

void counter_updater_init(struct counter_updater *updater, struct store *store, struct env *env);
void counter_updater_fini(struct counter_updater *updater);

/* Take and drop the locks of the mutations' partitions. *held begins zeroed, and outlives the mutations. */
void counter_updater_lock(struct counter_updater *updater, const struct mutation *updates,
    uint32_t count, struct table_locks_set *held);
void counter_updater_unlock(struct counter_updater *updater, const struct table_locks_set *held);

/* The mutation to write, in `arena`; the locks are held. Bytes are borrowed from `update`. */
int counter_updater_make(struct counter_updater *updater, const struct mutation *update,
    struct arena *arena, struct mutation *out, struct error *err);

#endif
