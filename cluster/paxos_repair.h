/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PAXOS_REPAIR_H
#define HELENUS_CLUSTER_PAXOS_REPAIR_H

/*
 * What Paxos left over is finished (service/paxos/PaxosRepair, cleanup/PaxosCleanup, CEP-14): a round whose proposer died or
 * gave up stays open until the partition's next one. That must not last until the replicas are others, whose majorities have
 * no node in common with those of before: a write that clients saw would be forgotten, or an old one come to light.
 *
 *   paxos_repair   each open partition that this replica knows of in some ranges: a round like that of a serial read,
 *                  which commits at a majority of all replicas what a majority accepted, and shuts out what none did
 *   cleanup        a question to a replica (PAXOS2_CLEANUP_REQ, repair_paxos.c): see the same participants as the one who asks, then
 *                  the above. When all live replicas of a range have done so, and they are a majority, then
 *                  nothing that began before is open
 *
 * After the ring changed for a replica it promises nothing to a proposer who does not know of it (paxos_handle.c): what it
 * finds open is therefore all that can be. Cassandra keeps a lowest ballot for each range to the same end
 * (PaxosRepairHistory).
 */
#include "base/arena.h"
#include "cluster/paxos_internal.h"

struct paxos_auto;

/* One at this node. Filled by the caller, and alive with all that it points to, until on_done. */
struct paxos_repair {
	const char *keyspace; /* NULL: of all */
	const struct uuid *tables; /* count 0: all of the keyspace */
	uint32_t table_count;
	const struct ring_range *ranges; /* may wrap */
	uint32_t range_count;
	int64_t before_us; /* only what began before that; INT64_MAX: all */
	/* Once, on any thread. ERROR_UNAVAILABLE: a partition has no majority alive; the last timeout of one, ... */
	void (*on_done)(struct paxos_repair *repair, const struct error *err);
	void *context;

	/* private */
	struct paxos *paxos;
	struct task task;
	struct arena arena; /* of the partitions in hand */
	struct schema *schema; /* a reference, for them */
	struct paxos_walk walk;
	bool takes_tracked; /* begin with what the tracker knows */
	bool has_taken;
	uint32_t next_part;
	struct paxos_open *open; /* not begun yet */
	atomic_uint running;
	atomic_flag has_failed; /* err is whose who set it */
	struct error err;
	_Atomic uint64_t finished;
};
/* Its work is done on the PaxosRepairStage. Any thread; on_done may be called before it returns. */
void paxos_repair_start(struct paxos *paxos, struct paxos_repair *repair);

/*
 * From now on, every so often, this replica finishes what nobody else did (StorageService.autoRepairPaxos), until
 * paxos_free(). Once.
 */
void paxos_auto_repair(struct paxos *paxos, uint64_t interval_ns);

#endif
