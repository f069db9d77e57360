/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SCHEMA_LOG_H
#define HELENUS_CLUSTER_SCHEMA_LOG_H

/*
 * One order of schema changes for the whole ring. Each change is an entry of a log that a majority of the members
 * agrees on (Paxos, Lamport 2001, one instance an epoch), so two clients that create the same table at once get one
 * table and one AlreadyExists, and a minority that is cut off refuses to change anything. What an entry means is the
 * caller's: here it is bytes.
 *
 *   prepare   ballot -> a majority promises, and tells its epoch and what it has accepted
 *             (somebody is ahead: fetch the whole schema from it, and begin again;
 *              an entry was accepted and not finished: finish it, and begin again)
 *   transform the statement against the schema, which is now the newest: the entry, an error, or nothing to do
 *   propose   a majority accepts the entry as that of epoch + 1, durably
 *   commit    all members that are alive apply it; who could not, fetches it later (schema_log_peer_differs())
 *
 * Cassandra 4.1 has no such order (its schema is merged by timestamps); 6.0's transactional cluster metadata has.
 *
 * Threads: everything runs on CLUSTER_STAGE_MIGRATION, one task after the other, so nothing here is locked;
 * the functions below may be called from any thread, but for schema_log_start(). The callbacks run on that
 * stage and may block on the disk.
 */
#include "cluster/messaging.h"
#include "cluster/topology.h"

struct schema_log;

/* How many members agreed last; stands with the schema on the disk. */
struct schema_log_position {
	uint64_t epoch; /* entries applied so far */
	int64_t timestamp; /* the youngest timestamp that they wrote at, us */
};

struct schema_log_ops {
	/* Durable state of ours, opaque bytes. load leaves *out empty where nothing was saved. */
	int (*load)(void *context, struct buffer *out, struct error *err);
	/* Durable when it returns, and all that was applied or installed before. */
	int (*save)(void *context, struct slice state, struct error *err);
	/*
	 * What `change` (schema_log_change()'s) does to the schema as it is now, written at `timestamp`
	 * (us). 1 and the entry in `out`; 0: nothing has to be done; -1: refused.
	 */
	int (*transform)(
	    void *context, void *change, int64_t timestamp, struct buffer *out, struct error *err);
	/* Make an entry true here. Durable with the next save(). May be told twice of the same one. */
	int (*apply)(void *context, struct slice entry, struct error *err);
	/* The whole schema, as bytes that another node's install() makes its own, written at `timestamp`. */
	int (*snapshot)(void *context, int64_t timestamp, struct buffer *out, struct error *err);
	/* Make ours what `snapshot` says, in place of all that was written up to `timestamp`, the one before that
	 * of the snapshot. */
	int (*install)(void *context, struct slice snapshot, int64_t timestamp, struct error *err);
	/* The change is decided: err NULL is success. is_noop: transform() said 0. Exactly once for each change. */
	void (*done)(void *context, void *change, bool is_noop, const struct error *err);
};

/* Registers its verbs. All borrowed. */
struct schema_log *
schema_log_new(struct cluster_env *env, struct messaging *messaging, struct peers *peers,
    struct topology_holder *topology, const struct schema_log_ops *ops, void *context);
/* Read our state, before the first message and the first change; the calling thread. ERROR_CORRUPT. */
int schema_log_start(struct schema_log *log, struct error *err);
/* Nothing of it is queued or in flight any more; changes that wait were told (ERROR_SERVER). */
void schema_log_free(struct schema_log *log);

/*
 * Change the schema. Ends in done(): ERROR_UNAVAILABLE with required and received (alive) when no majority of the
 * members can be reached, after timeout_ns at the latest. After a timeout the change may still take effect.
 */
void schema_log_change(struct schema_log *log, void *change, uint64_t timeout_ns);

/* A peer's schema version is not ours (gossip's SCHEMA): it may have entries that we missed. Asks it, and again until
 * it has answered. */
void schema_log_peer_differs(struct schema_log *log, struct peer *peer);

/* Any thread. */
struct schema_log_position schema_log_position(struct schema_log *log);

#endif
