/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPAIR_PARTICIPANT_H
#define HELENUS_CLUSTER_REPAIR_PARTICIPANT_H

/*
 * The answering side of a repair. A parent is what this node knows of a command (ParentRepairSession); a work is one
 * question of its coordinator, from when it came until its answer has gone.
 *
 * Parents and works are the anti-entropy stage's. A work that runs, on the validation stage, has its request and its result
 * to itself, and what is constant of its parent.
 */
#include <stdatomic.h>
#include "base/arena.h"
#include "cluster/paxos_repair.h"
#include "cluster/repair_internal.h"

/* SSTables as they were at SNAPSHOT_MSG, until they are validated. */
struct repair_snapshot {
	struct repair_snapshot *next;
	struct uuid session, table;
	struct schema *schema; /* a reference: the table's metadata */
	struct validation *validation; /* owned */
};

struct repair_parent {
	struct repair_parent *next;
	struct repairs *repairs;
	struct uuid id;
	struct peer *coordinator;
	char *keyspace; /* owned; constant, as all that follow */
	uint8_t flags, preview;
	int64_t repaired_at;
	struct uuid *tables; /* owned */
	uint32_t table_count;
	struct ring_range *ranges; /* owned */
	uint32_t range_count;
	struct endpoint *participants; /* owned */
	uint32_t participant_count;

	struct repair_trail *trail; /* repairs->trails'; NULL: of no command */

	/* The stage's. */
	struct repair_work *works; /* owned */
	struct repair_snapshot *snapshots; /* owned */
	bool
	    is_passing; /* of a session of before a restart: it goes when its work has been answered */
	bool is_closed; /* nobody asks any more; it goes with its last work */
};

struct repair_work {
	struct task task;
	struct repair_work *next;
	struct repair_parent *parent;
	struct message *request; /* a reference */
	struct arena arena; /* what `message` points to */
	struct repair_message message;
	struct repair_snapshot *snapshot; /* owned; VALIDATION: taken before; SNAPSHOT: made */
	struct repair_sync sync;
	struct paxos_repair paxos; /* PAXOS2_CLEANUP, and what follows */
	struct cluster_timer timer;
	uint64_t began_ns;
	uint64_t partitions; /* validated */
	struct repair_validation *validation; /* VALIDATION: the trail's */
	struct buffer result; /* of the answer, with its status */
	atomic_bool is_cancelled; /* relaxed: a hint to who runs */

	/* The stage's. */
	struct message *parked; /* a reference; who waits */
	uint64_t parked_ns;
	bool is_done;
};

struct repair_parent *repair_parent_new(
    struct repairs *repairs, const struct repair_message *message, struct peer *coordinator);
bool repair_has_parent(struct repairs *repairs, const struct uuid *id);

/* ---- repair_local.c: incremental repair; steps run on the validation stage ---- */
enum { REPAIR_STATE_UNKNOWN = 255 };
int repair_local_prepare(struct repair_work *work, struct error *err);
int repair_local_promise(struct repair_work *work, struct error *err);
int repair_local_commit(struct repairs *repairs, const struct uuid *id, struct error *err);
int repair_local_fail(struct repairs *repairs, const struct uuid *id, struct error *err);
uint8_t repair_local_state(struct repairs *repairs, const struct uuid *id);
/* A parent for a session of before a restart; NULL: not known. */
struct repair_parent *repair_local_parent(struct repairs *repairs, const struct uuid *id);
/* A promise is open whose coordinator does not ask any more: find out what became of it. On the anti-entropy stage, or
 * before the first message. */
void repair_local_check_later(struct repairs *repairs);

/* ---- repair_paxos.c; on the validation stage. Returns 1: the answer comes later. ---- */
int repair_run_paxos(struct repair_work *work, struct error *err);

/* From any thread: the work is over, its answer goes. */
void repair_work_finish(struct repair_work *work);
/* The answer is that it failed. */
void repair_work_fail(struct repair_work *work, const struct error *err);

#endif
