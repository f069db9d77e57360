/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_BATCHLOG_H
#define HELENUS_CLUSTER_BATCHLOG_H

/*
 * The batchlog of a ring (batchlog/BatchlogManager, StorageProxy.mutateAtomically): before a logged batch is written, two
 * other nodes of this data center keep it; once it is written they forget it; what they still have after a while they
 * write themselves.
 *
 *   store     BATCH_STORE_REQ to the nodes, a mutation of their system.batches; both must answer
 *   remove    BATCH_REMOVE_REQ, alike; nobody waits
 *   replay    each mutation to each of its replicas; what does not arrive becomes a hint, and hints are on the disk
 *             before the batch is forgotten
 *
 * What system.batches looks like is the server's matter. Threads: any; nothing blocks.
 */
#include "cluster/coordinator.h"
#include "cluster/hints.h"
#include "cluster/messaging.h"

/* Where one batch is kept. */
struct batchlog_entry {
	/* Set by the caller. Runs once, on any thread; err: NULL on success. */
	void (*on_done)(
	    struct batchlog_entry *entry, const struct error *err, struct worker *worker);
	const struct trace *trace; /* as in coordinator_write */
	/* Set by batchlog_entry_store(). */
	uint32_t peer_count;
	struct peer *peers[2];
	/* private */
	struct coordinator *coordinator;
	bool is_any;
	atomic_uint pending, acks;
	_Atomic uint32_t failure; /* enum failure_reason + 1 of one that could not; 0: none */
	struct batchlog_store_callback {
		struct message_callback callback; /* first */
		struct batchlog_entry *entry;
	} callbacks[2];
};

/*
 * Keep `mutation` (of system.batches, encoded) at two nodes. The entry's memory is the caller's and lives until on_done.
 * Errors: ERROR_UNAVAILABLE before anything is sent; ERROR_WRITE_TIMEOUT and ERROR_WRITE_FAILURE of type BATCH_LOG.
 */
void batchlog_entry_store(struct coordinator *coordinator, struct batchlog_entry *entry,
    bool is_any, struct slice mutation, struct worker *worker);
/* `mutation` deletes it from system.batches. */
void batchlog_entry_remove(struct coordinator *coordinator, const struct batchlog_entry *entry,
    struct slice mutation, struct worker *worker);

/* What became of one batch that is written again; the caller's, until on_done. */
struct batchlog_outcome {
	atomic_bool has_failed; /* not all of it is delivered or a hint: to be tried again */
};

/* Batches that are written again. */
struct batchlog_replay {
	/* Set by the caller. Without an error: what the outcomes say holds, and hints are on the disk. */
	void (*on_done)(struct batchlog_replay *replay, const struct error *err);
	/* private */
	struct coordinator *coordinator;
	struct hints *hints;
	atomic_uint pending;
	struct hints_wait synced;
};
void batchlog_replay_begin(
    struct batchlog_replay *replay, struct coordinator *coordinator, struct hints *hints);
/*
 * A mutation of a batch that was made at created_ms. One thread until batchlog_replay_end(). -1, with the outcome failed and
 * *err: it cannot be read (with this schema), or there is no memory.
 */
int batchlog_replay_add(struct batchlog_replay *replay, struct batchlog_outcome *outcome,
    struct slice mutation, int64_t created_ms, struct error *err);
/* No more: on_done comes, maybe before this returns. */
void batchlog_replay_end(struct batchlog_replay *replay);

#endif
