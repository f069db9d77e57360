/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_TRACKER_H
#define HELENUS_CLUSTER_PAXOS_TRACKER_H

/*
 * Which partitions this replica has something open of (uncommitted/PaxosUncommittedTracker), in memory alone, so that what is
 * left over is found without a look at all of system.paxos. It may forget: after a start, and when too many are open,
 * somebody has to look there (paxos_walk_next()).
 *
 * Any thread; nothing is called under its locks.
 */
#include "base/arena.h"
#include "base/lock.h"
#include "cluster/paxos_codec.h"

enum { PAXOS_TRACKER_SHARDS = 16, PAXOS_TRACKER_BUCKETS = 256 };

/* A partition that something was promised or accepted for, and nobody told this replica how it ended. */
struct paxos_open {
	struct paxos_open *next;
	struct slice key;
	struct uuid table;
	struct uuid ballot; /* the last one */
};

struct paxos_tracked;

struct paxos_tracker {
	struct {
		struct lock lock;
		struct paxos_tracked *buckets[PAXOS_TRACKER_BUCKETS]; /* owned */
		uint32_t count;
	} shards[PAXOS_TRACKER_SHARDS];
	atomic_bool has_forgotten; /* true at first */
};

void paxos_tracker_init(struct paxos_tracker *tracker);
void paxos_tracker_fini(struct paxos_tracker *tracker);
void paxos_tracker_open(struct paxos_tracker *tracker, const struct uuid *table, struct slice key,
    const struct uuid *ballot);
/* What was open with this ballot or an older one is finished. */
void paxos_tracker_close(struct paxos_tracker *tracker, const struct uuid *table, struct slice key,
    const struct uuid *ballot);
/* Those that were last touched before `before_us`, in the arena, and forgets them. ERROR_NO_MEMORY: the rest stays. */
int paxos_tracker_take(struct paxos_tracker *tracker, int64_t before_us, struct arena *arena,
    struct paxos_open **out, struct error *err);
uint32_t paxos_tracker_count(struct paxos_tracker *tracker);

#endif
