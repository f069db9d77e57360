/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPLICA_PLAN_H
#define HELENUS_CLUSTER_REPLICA_PLAN_H

/*
 * Whom a request goes to (locator/ReplicaPlans): the replicas of a token on one snapshot of the ring, who of them
 * is alive, how many must answer at a consistency level, and whether they can. A level that the live replicas
 * cannot meet is refused before anything is sent: ERROR_UNAVAILABLE with consistency, required and alive.
 *
 * A plan is a value in the caller's memory. It allocates nothing for up to REPLICA_PLAN_INLINE replicas, beyond that
 * from the arena. It points into the snapshot, whose reference the caller holds as long as the plan is
 * used, and into itself: don't copy it by assignment. Pure functions; any thread.
 */
#include "base/arena.h"
#include "cluster/snitch.h"
#include "cluster/topology.h"

enum { REPLICA_PLAN_INLINE = 8 };

struct replica {
	struct peer *peer;
	const char *datacenter; /* the snapshot's: equal names are equal pointers */
	/* EACH_QUORUM over NetworkTopologyStrategy: the data center's place in plan->quorums, or -1 where the keyspace
	 * has no factor for it. All others: 0 */
	int16_t quorum;
	bool is_alive; /* when the plan was made */
	bool is_pending; /* gets writes because the range comes to it; never read from */
	bool is_local_datacenter;
	/* Its answer counts towards block_for: false only for other data centers under LOCAL_*. */
	bool is_counted;
	uint8_t
	    distance; /* snitch_sort()'s: 0 this node, 1 its rack, 2 its data center, 3 beyond */
	float score; /* snitch_sort()'s */
};

struct replica_plan {
	const struct topology *topology; /* borrowed */
	const struct replication *replication;
	enum consistency level;

	/*
	 * Answers to wait for, pending replicas included. When quorum_count is 0 any block_for counted answers do.
	 * Else (EACH_QUORUM with NetworkTopologyStrategy) each data center `d` needs quorums[d] answers of
	 * replicas with quorum == d; block_for is their sum.
	 */
	int32_t block_for;
	uint32_t quorum_count;
	const int32_t *quorums;

	/*
	 * Writes: all replicas, dead ones too: natural first, then pending (count = contact_count).
	 * Reads: candidates, all alive, the nearest first; the first contact_count are to be asked, those
	 * behind them are left for speculation.
	 */
	struct replica *replicas;
	uint32_t count;
	uint32_t contact_count;
	uint32_t pending_count; /* writes */
	uint32_t live_count; /* writes: of all; reads: count */

	struct replica inline_replicas[REPLICA_PLAN_INLINE];
	int32_t inline_quorums[REPLICA_PLAN_INLINE];
};

/*
 * Every replica gets a write, whatever the level. ANY never fails here: a hint will do (block_for 1). Errors:
 * ERROR_UNAVAILABLE; ERROR_NO_MEMORY.
 */
int replica_plan_for_write(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct arena *arena, struct error *err);

/*
 * Live natural replicas by proximity (snitch NULL: in the strategy's order) (of the local data center alone under LOCAL_*). always_speculate: one contact
 * more than the level needs (speculative_retry ALWAYS); EACH_QUORUM never speculates.
 */
int replica_plan_for_read(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    bool always_speculate, struct snitch *snitch, struct arena *arena, struct error *err);

/*
 * The write of a read repair at the read's level (ReplicaPlans.forReadRepair): live replicas, those that the read
 * asked (its contacts) first and always, others only as many as block_for needs. contact_count = count. `read`
 * gives topology and replication.
 */
int replica_plan_for_read_repair(struct replica_plan *plan, const struct replica_plan *read,
    int64_t token, struct arena *arena, struct error *err);

/*
 * A round of Paxos at SERIAL or LOCAL_SERIAL: participants are natural and pending replicas (of the local data
 * center under LOCAL_SERIAL), block_for their majority; contacts are the live ones, the only ones in the plan.
 * Unavailable also when more than one replica is pending.
 */
int replica_plan_for_paxos(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct arena *arena, struct error *err);

/* Who takes part in it, dead ones too, as one number: two nodes that see the same participants have the same. */
uint64_t replica_plan_electorate(const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level);

/*
 * Who leads a counter write (StorageProxy.findSuitableReplica): this node where it is a replica; else any live replica
 * of the local data center, chosen by `random`; else the nearest live one. The level is checked by the leader.
 * ERROR_UNAVAILABLE: nobody is alive.
 */
int replica_plan_counter_leader(const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct snitch *snitch, uint64_t random, struct peer **out, struct error *err);

/* batchlog_endpoint_strategy. */
enum batchlog_strategy {
	BATCHLOG_RANDOM_REMOTE, /* of other racks than this node's, where there are enough */
	BATCHLOG_PREFER_LOCAL, /* one of this node's rack, one of another */
	BATCHLOG_DYNAMIC_REMOTE, /* as RANDOM_REMOTE, but the quickest */
	BATCHLOG_DYNAMIC, /* the quickest of all racks */
};
/* "random_remote", ..; -1: no such. */
int batchlog_strategy_parse(const char *text, enum batchlog_strategy *out);

/*
 * Who keeps a logged batch (ReplicaPlans.forBatchlogWrite): two live nodes of the local data center other than this
 * one, of different racks where that can be; fewer only when there are no more; this node
 * alone in a data center of one. Returns how many (1 or 2), block_for is the same. With no node alive
 * there: 1 and this node when is_any, else -1 with ERROR_UNAVAILABLE. The snitch knows who is quick; NULL where the
 * strategy does not ask.
 */
int
replica_plan_batchlog_endpoints(const struct topology *topology, enum batchlog_strategy strategy,
    struct snitch *snitch, bool is_any, uint64_t random, struct peer *out[2], struct error *err);

/* ---- Reads of a token range ---- */

/* A part of the range whose partitions have one plan. */
struct range_plan {
	struct ring_range range; /* (left, right] */
	uint32_t vnode_count; /* ring ranges that were merged into it */
	struct replica_plan plan;
};

/* Splits a range by the ring, in token order, and merges neighbours which the same contacts can answer
 * (RangeCommands, ReplicaPlanMerger). */
struct range_plans {
	/* private */
	const struct topology *topology;
	const struct replication *replication;
	struct snitch *snitch;
	struct arena *arena;
	enum consistency level;
	bool keeps_spare;
	int64_t at; /* left of the next part */
	int64_t right;
	bool is_done;
};

/*
 * Begin with (left, right]; INT64_MIN as left or right means the beginning or the end of the ring; a wrapping range is
 * the caller's to split. Where `left` itself is included, begin at left - 1. Nothing is checked yet.
 * keeps_spare: neighbours that each have a replica more than the level needs are not merged into a part that has none,
 * which nobody could answer instead of one that dies (Cassandra, whose ranges do not speculate, merges them).
 */
void range_plans_init(struct range_plans *plans, const struct topology *topology,
    const struct replication *replication, struct ring_range range, enum consistency level,
    bool keeps_spare, struct snitch *snitch, struct arena *arena);
/* 1: *out is the next part; 0: the end; -1: ERROR_UNAVAILABLE for the next part, ERROR_NO_MEMORY. */
int range_plans_next(struct range_plans *plans, struct range_plan *out, struct error *err);
/* Ranges that the whole range falls into, before merging: for the estimate of concurrency. */
uint32_t range_plans_count(const struct range_plans *plans);

#endif
