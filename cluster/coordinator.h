/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_COORDINATOR_H
#define HELENUS_CLUSTER_COORDINATOR_H

/*
 * The coordinator owns each request from the moment its mutation or read command is made until its
 * answer is decided: it asks the ring for the replicas, checks that the consistency level can be
 * met, sends, counts answers and decides. It is a state machine per request moved by answers and timers;
 * no thread waits for a node. With a ring of one node the only replica is local and most requests
 * complete before the call returns.
 *
 * Threads: a request may be started from any stage thread; on_done runs exactly once, on the thread
 * that brought the deciding answer (the calling thread, the commit log's sync thread, later an internode
 * loop).
 */
#include "base/consistency.h"
#include "storage/store.h"

struct coordinator;

struct coordinator *coordinator_new(struct store *store, struct env *env);
/* The local node's data center; "datacenter1" unless set, before the first request. */
void coordinator_set_datacenter(struct coordinator *coordinator, const char *datacenter);
void coordinator_free(struct coordinator *coordinator);

enum write_type {
	WRITE_SIMPLE,
	WRITE_BATCH,
	WRITE_UNLOGGED_BATCH,
	WRITE_COUNTER,
	WRITE_BATCH_LOG,
	WRITE_CAS,
};

/*
 * A write of one or more mutations under one consistency level. Filled by the caller, alive until
 * on_done. err is NULL on success; it is valid during the call only.
 */
struct coordinator_write {
	const struct mutation *mutations;
	uint32_t mutation_count;
	const struct keyspace_metadata
	    *keyspace; /* of the first mutation: replication, durable_writes */
	enum consistency consistency;
	enum write_type type;
	void (*on_done)(struct coordinator_write *write, const struct error *err);
	void *context;
	struct arena *arena; /* for the coordinator's own state; dies after on_done */
	struct buffer *scratch; /* of the calling worker, used during the call only; may be NULL */
	/* the coordinator's */
	void *state;
};
void coordinator_write(struct coordinator *coordinator, struct coordinator_write *write);

/*
 * A read. On success `source` is pulled and closed by on_done's callee (it may keep it and pull on the same
 * thread after on_done returned).
 */
struct coordinator_read {
	const struct read_command *command;
	const struct keyspace_metadata *keyspace;
	enum consistency consistency;
	struct arena *arena;
	void (*on_done)(struct coordinator_read *read, struct partition_iterator *source,
	    const struct error *err);
	void *context;
	void *state;
};
void coordinator_read(struct coordinator *coordinator, struct coordinator_read *read);

#endif
