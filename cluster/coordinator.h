/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_COORDINATOR_H
#define HELENUS_CLUSTER_COORDINATOR_H

/*
 * The coordinator owns each request from the moment its mutation or read command is made until its
 * answer is decided: it asks the ring for the replicas, checks that the consistency level can be
 * met, sends, counts answers and decides (service/StorageProxy). It is a state machine per request moved by
 * answers and timers; no thread waits for a node. While the ring is this node alone, a request is local work,
 * costs no memory beyond its arena and mostly completes before the call returns.
 *
 * It is also what answers other coordinators: the handlers of MUTATION_REQ, READ_REQ, RANGE_REQ,
 * READ_REPAIR_REQ, COUNTER_MUTATION_REQ and TRUNCATE_REQ.
 *
 * Threads: a request may be started from any stage thread; on_done runs exactly once, on the thread
 * that brought the deciding answer: the calling one before the call returns, the commit log's sync thread, an
 * internode loop (writes), REQUEST_RESPONSE (reads).
 */
#include "base/consistency.h"
#include "cluster/cluster_env.h"
#include "cluster/replica_plan.h"
#include "storage/store.h"

struct coordinator;
struct messaging;
struct topology_holder;
struct snitch;

struct coordinator *coordinator_new(struct store *store, struct env *env);
void coordinator_free(struct coordinator *coordinator);
/* The local node's data center while there is no ring; "datacenter1" unless set, before the first request. */
void coordinator_set_datacenter(struct coordinator *coordinator, const char *datacenter);
/* The node's host id, which its counter shards carry. Before the first counter update. */
void coordinator_set_host_id(struct coordinator *coordinator, const struct uuid *host_id);

/* ---- The ring ---- */

enum coordinator_timeout {
	COORDINATOR_TIMEOUT_READ,
	COORDINATOR_TIMEOUT_RANGE,
	COORDINATOR_TIMEOUT_WRITE,
	COORDINATOR_TIMEOUT_COUNTER,
	COORDINATOR_TIMEOUT_TRUNCATE,
};

/*
 * Writes that a replica missed (cluster/hints). NULL functions: no hints are kept. Any thread; must not block.
 */
struct coordinator_hints {
	void *context;
	/* Is a hint to be kept for the peer, which is dead or did not answer (StorageProxy.shouldHint)? */
	bool (*wants)(void *context, struct peer *peer);
	/*
	 * Keep it: `mutation` is a mutation as mutation_encode() writes it, shared (take a reference), made at
	 * created_ms of the wall clock. True: it is kept (which is an answer at level ANY).
	 */
	bool (*write)(
	    void *context, struct peer *peer, struct message_payload *mutation, int64_t created_ms);
	/* May a write begin that the peer is to get? ERROR_OVERLOADED: too many hints are on their way to the disk
	 * (StorageProxy.checkHintOverload). NULL: always. */
	int (*check)(void *context, struct peer *peer, struct error *err);
};

/* What the coordinator needs of the node around it; copied by coordinator_set_ring(). */
struct coordinator_ring {
	/* Borrowed; outlive the coordinator. */
	struct cluster_env *cluster;
	struct messaging *messaging;
	struct peers *peers;
	struct topology_holder *topology;
	struct snitch *snitch;

	/* Any thread; `context` comes first. */
	void *context;
	uint64_t (*timeout_ns)(void *context, enum coordinator_timeout which);
	struct schema *(*schema)(void *context); /* the current snapshot; one reference */
	uint32_t (*tombstone_failure_threshold)(void *context); /* 0: none */
	/* Throw the table's data on this node away; may take long. */
	int (*truncate)(void *context, const struct table_metadata *table, struct error *err);
	struct coordinator_hints hints;
	enum batchlog_strategy batchlog; /* who keeps logged batches */
};

/* Before the first message; registers the handlers, and listens to the topology. */
void coordinator_set_ring(struct coordinator *coordinator, const struct coordinator_ring *ring);
/*
 * Is this node the only replica of the token (and nobody else gets its writes)? Only then may what needs all
 * replicas be decided under a lock of this node.
 */
bool coordinator_is_sole_replica(
    const struct coordinator *coordinator, const struct keyspace_metadata *keyspace, int64_t token);
/* Is the node the only one of its ring? */
bool coordinator_is_alone(const struct coordinator *coordinator);

/* ---- Writes ---- */

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
 * on_done with all that it points to. err is NULL on success; it is valid during the call only.
 *
 * WRITE_COUNTER: the mutations hold increments; each goes to a leader, which makes shards of them.
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
	/* The calling worker, or NULL. When on_done runs: the one that runs it, or NULL. */
	struct worker *worker;
	const struct trace *trace; /* NULL: not traced */
	/* the coordinator's */
	void *state;
};
void coordinator_write(struct coordinator *coordinator, struct coordinator_write *write);

/* ---- Reads ---- */

/*
 * A read. On success `source` is pulled and closed by on_done's callee (it may keep it and pull on the same
 * thread after on_done returned). A range's source ends behind row_limit live rows, or at the range's end.
 */
struct coordinator_read {
	const struct read_command *command;
	/*
	 * Several partitions at once (an IN of keys): the answer has them in this order. The first is the command's own, which
	 * alone has its after_position; the limits are for each of them. Alive until the source is closed. 0: one.
	 */
	const struct slice *keys;
	uint32_t key_count;
	const struct keyspace_metadata *keyspace;
	enum consistency consistency;
	struct arena *arena; /* the coordinator's until on_done; the source's memory */
	void (*on_done)(struct coordinator_read *read, struct partition_iterator *source,
	    const struct error *err);
	void *context;
	struct worker *worker; /* as in coordinator_write */
	const struct trace *trace; /* as in coordinator_write */
	void *state;
	/* Out: the source is this node's store itself, and who pulls tells it with store_count_read(). */
	bool is_own;
};
void coordinator_read(struct coordinator *coordinator, struct coordinator_read *read);

/* ---- TRUNCATE ---- */

/*
 * Truncate a table on all nodes, each of which must be alive (StorageProxy.truncateBlocking). The calling thread does
 * its own node's part, which may take long. Errors: ERROR_TRUNCATE. on_done: as for writes.
 */
struct coordinator_truncate {
	const struct table_metadata *table;
	void (*on_done)(struct coordinator_truncate *truncate, const struct error *err);
	void *context;
	struct worker *worker; /* as in coordinator_write */
	const struct trace *trace; /* as in coordinator_write */
};
void coordinator_truncate(struct coordinator *coordinator, struct coordinator_truncate *truncate);

/* ---- What operators see ---- */

/*
 * How long requests took at this coordinator, by table (TableMetrics.coordinatorReadLatency, ..): microseconds. While
 * the node is alone nothing is recorded here: it is the local latency then. Borrowed; lives as long as the table.
 */
enum coordinator_latency {
	COORDINATOR_LATENCY_READ,
	COORDINATOR_LATENCY_RANGE,
	COORDINATOR_LATENCY_WRITE,
	COORDINATOR_LATENCY_COUNT,
};
const struct histogram *coordinator_latency(
    struct coordinator *coordinator, struct table_store *table, enum coordinator_latency which);
/* How often lately, per second: a five-minute average of what coordinator_tick() sees about every five seconds. */
double coordinator_rate(
    struct coordinator *coordinator, struct table_store *table, enum coordinator_latency which);
void coordinator_tick(struct coordinator *coordinator, double seconds); /* one thread */

/* Counters of the coordinator (ReadRepairMetrics, table's SpeculativeRetries). Relaxed. */
struct coordinator_stats {
	uint64_t speculative_retries, digest_mismatches, read_repairs, hints;
};
void coordinator_stats(const struct coordinator *coordinator, struct coordinator_stats *out);

#endif
