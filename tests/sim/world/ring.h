/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_RING_H
#define HELENUS_TESTS_SIM_RING_H

/*
 * Nodes of a simulated world that store data: each has a store on its simulated disk, a ring (everybody knows all
 * members from the start; who is alive, and who comes and goes, is told by the test), a coordinator and Paxos. Clients' requests run as tasks of
 * the node's ReadStage and MutationStage.
 *
 * One keyspace "ks" with the tables
 *   0  t (pk int, ck int, v bigint, PRIMARY KEY (pk, ck))
 *   1  c (pk int, n counter, PRIMARY KEY (pk))
 * and, where the schema can be changed, those that clients make of a few names:
 *      d0, d1, .. (pk int, ck int, v bigint, w000 bigint, w001 bigint, .., PRIMARY KEY (pk, ck))
 */
#include "cluster/batchlog.h"
#include "cluster/coordinator.h"
#include "cluster/repair.h"
#include "cluster/paxos.h"
#include "cluster/hints.h"
#include "cluster/storage_service.h"
#include "cluster/stream.h"
#include "tests/sim/world/world.h"

enum { RING_ROWS_MAX = 4096, RING_NAMES = 3 };

struct ring;

struct ring_options {
	struct world_options world;
	uint32_t datacenters; /* node i stands in data center "dc<i % datacenters + 1>"; 0: one */
	int32_t factor; /* replicas, in each data center when there are several */
	const char *speculative_retry; /* NULL: 99PERCENTILE */
	struct streams_options streams; /* zero: the usual ones */
	bool has_hints; /* else no node keeps any */
	bool has_batches; /* what is left in the batchlog is written again; with hints */
	/*
	 * The ring is what gossip says: the first so many nodes make it, when ring_new() returns they are started; others
	 * may join. 0: all are members from the start and for ever, and the test says who is alive (ring_set_alive).
	 */
	uint32_t founder_count;
	uint64_t ring_delay_ns; /* cassandra.ring_delay_ms */
	bool
	    has_schema_log; /* tables are created, altered and dropped (ring_change_schema()); of a ring by gossip */
};

struct ring *ring_new(const struct ring_options *options);
void ring_free(struct ring *ring);
struct world *ring_world(struct ring *ring);
struct coordinator *ring_coordinator(struct ring *ring, uint32_t node);
struct repairs *ring_repairs(struct ring *ring, uint32_t node);
struct streams *ring_streams(struct ring *ring, uint32_t node);
struct snitch *ring_snitch(struct ring *ring, uint32_t node);
struct store *ring_store(struct ring *ring, uint32_t node);
struct table_store *ring_table_store(struct ring *ring, uint32_t node, int table);
/* The ranges that a node is a replica of; the caller frees *out. Asked of any node that is up. */
uint32_t ring_ranges(struct ring *ring, uint32_t node, struct ring_range **out);
/* What one node thinks of another. */
struct peer *ring_peer(struct ring *ring, uint32_t node, uint32_t of);
/* All of the node's tables to its disk. */
void ring_flush(struct ring *ring, uint32_t node);
/* What all nodes think of one. */
void ring_set_alive(struct ring *ring, uint32_t node, bool is_alive);
/*
 * kill -9. What was written is there after it, as the server's log is, which is mapped: a simulated disk cannot map, so
 * the log is written out first.
 */
void ring_kill(struct ring *ring, uint32_t node);
/* The power goes: as above for the store (its log syncs, as commitlog_sync: batch does); of hints there is what was synced. */
void ring_cut_power(struct ring *ring, uint32_t node);
/* ---- Who comes and goes ---- */

enum ring_standing { RING_NORMAL, RING_OUT, RING_JOINING, RING_LEAVING };
/* What one node is in the eyes of another, or in its own. All begin as RING_NORMAL. Kept through deaths of the viewer. */
void ring_set_place(struct ring *ring, uint32_t viewer, uint32_t of, enum ring_standing place);

/* The node joins or leaves in its own eyes: its data is moved, as cluster/movement.h does it. */
struct ring_movement {
	bool skips_paxos;
	void (*on_done)(struct ring_movement *movement, const struct error *err);
	void *context;
	struct service_wait wait; /* private */
};
/* The node must not die before on_done. */
void ring_move(struct ring *ring, uint32_t node, struct ring_movement *movement);

/* Nodes that are replicas of a key, in order; returns how many. */
uint32_t ring_replicas(struct ring *ring, int32_t key, uint32_t *out, uint32_t capacity);
/* From now on the node knows no tables when others ask it: it answers with FAILURE_INCOMPATIBLE_SCHEMA. */
void ring_forget_schema(struct ring *ring, uint32_t node);
struct hints *ring_hints(struct ring *ring, uint32_t node);
/* Kept by the nodes that are up, since each of them started. */
uint32_t ring_hint_count(struct ring *ring);
/* Now, rather than in ten seconds. */
void ring_deliver_hints(struct ring *ring);

/* ---- A ring by gossip ---- */

/* Is the node up, and a member that clients may use? */
bool ring_serves(struct ring *ring, uint32_t node);
/* Of a node that is up: it did not get into the ring. */
bool ring_has_failed_to_start(struct ring *ring, uint32_t node, struct error *err);
/* All nodes that serve see so many NORMAL members, and no other ones. */
bool ring_agrees(struct ring *ring, uint32_t count);
/* So many nodes serve, and each sees so many NORMAL members, all alive, and no other ones. */
bool ring_is_whole(struct ring *ring, uint32_t count);
/* A new node joins, and fetches its part. */
void ring_join(struct ring *ring, uint32_t node);
/* ... and takes over the tokens of a dead one. */
void ring_replace(struct ring *ring, uint32_t node, uint32_t dead);
/* What an operator waits for; the caller's memory until it is done, or the node is gone. */
struct ring_change {
	struct service_wait wait; /* first */
	bool is_done, has_failed;
	struct error err;
};
void ring_decommission(struct ring *ring, uint32_t node, struct ring_change *change);
void ring_remove(struct ring *ring, uint32_t by, uint32_t dead, struct ring_change *change);
/* Nobody is told that a bootstrap has failed: the operator asks whether it has. */
void ring_resume_bootstrap(struct ring *ring, uint32_t node, struct ring_change *change);

/* ---- The schema ---- */

enum ring_schema_kind { RING_CREATE, RING_ALTER, RING_DROP, RING_SCHEMA_KINDS };
/* A client's CREATE TABLE, ALTER TABLE .. ADD or DROP TABLE; its memory until it is done. */
struct ring_schema_change {
	void (*on_done)(struct ring_schema_change *change); /* NULL: nobody */
	void *context;
	enum ring_schema_kind kind;
	uint32_t name; /* of d0, d1, .. */
	uint32_t number; /* of its own */
	bool is_done, has_failed;
	uint32_t done_count; /* must end as 1 */
	struct error err;
};
/* At a node that is up. ERROR_ALREADY_EXISTS, ERROR_INVALID: there is one already, or none. */
void ring_change_schema(struct ring *ring, uint32_t node, struct ring_schema_change *change,
    enum ring_schema_kind kind, uint32_t name);
/* When the table that a node (which is up) has by this name was created; each has a time of its own. 0: there is none. */
int64_t ring_table_created(struct ring *ring, uint32_t node, uint32_t name);
/* What two nodes disagree about; NULL: there was one order so far. */
const char *ring_schema_broken(struct ring *ring);
/* Where the change stands in that order; *times: how often, which is 1, or 0 where nobody made it. */
uint32_t
ring_schema_place(struct ring *ring, const struct ring_schema_change *change, uint32_t *times);
/* All nodes that serve have made all changes. */
bool ring_schema_agrees(struct ring *ring);

/* ---- Requests ---- */

struct ring_row {
	int32_t pk, ck;
	int64_t v;
};

/* A client's request. */
struct ring_op {
	void (*on_done)(struct ring_op *op); /* NULL: nobody */
	void (*on_ready)(
	    struct ring_op *op); /* ring_cas(): in place of ring_cas_go_on(); NULL: that */
	void *context;
	bool is_done, has_failed;
	uint32_t done_count; /* must end as 1 */
	struct error err;
	uint32_t row_count;
	struct ring_row *rows; /* owned by the op */
	/* private */
	struct ring *ring;
	uint32_t node;
	struct schema *schema; /* a reference */
	struct task task;
	struct arena arena;
	struct mutation *mutations;
	struct read_command command;
	struct slice *keys; /* of several partitions; in the arena */
	uint32_t key_count;
	struct coordinator_write write;
	struct batchlog_entry entry; /* of a batch, as `batch` */
	struct uuid batch;
	struct coordinator_read read;
	struct coordinator_truncate truncate;
	struct paxos_request paxos;
	struct uuid ballot;
	int64_t expected, written;
	bool is_applied; /* of ring_cas(), when it is done */
};

/* Begin; the op's memory is the caller's until ring_op_free(), which waits for nothing: the op must be done. */
void ring_put(struct ring *ring, uint32_t node, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp, enum consistency level, enum write_type type);
/* A row of d0, d1, .. as the node knows it (it must), and the rows of a partition of it. */
void ring_put_named(struct ring *ring, uint32_t node, struct ring_op *op, uint32_t name,
    struct ring_row row, int64_t timestamp, enum consistency level);
void ring_get_named(struct ring *ring, uint32_t node, struct ring_op *op, uint32_t name, int32_t pk,
    enum consistency level);
/* The same write of one row, as a mutation on the wire. */
void ring_encode(
    struct ring *ring, uint32_t node, struct ring_row row, int64_t timestamp, struct buffer *out);
void ring_delete(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, int32_t ck,
    int64_t timestamp, enum consistency level);
void ring_increment(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, int64_t delta,
    enum consistency level);
/* Rows of a partition (at most `limit`; 0: all). */
void ring_get(struct ring *ring, uint32_t node, struct ring_op *op, int table, int32_t pk,
    uint32_t limit, enum consistency level);
/* ... of the partitions pk, pk + 1, .. at once. */
void ring_get_many(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, uint32_t count,
    enum consistency level);
void ring_scan(
    struct ring *ring, uint32_t node, struct ring_op *op, uint32_t limit, enum consistency level);
/* The next page: what stands behind a row. */
void ring_scan_after(struct ring *ring, uint32_t node, struct ring_op *op,
    const struct ring_row *after, uint32_t limit, enum consistency level);
void ring_truncate(struct ring *ring, uint32_t node, struct ring_op *op);
/* A logged batch of rows. */
void ring_batch(struct ring *ring, uint32_t node, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp, enum consistency level);
/*
 * UPDATE t SET v = written WHERE pk = ? AND ck = 0 IF v = expected, where 0 is expected of a row that is not there.
 * op->is_applied tells whether it was; rows is the row that was found.
 */
void ring_cas(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, int64_t expected,
    int64_t written, enum consistency serial, enum consistency commit);
/* The promise is held: read, decide and propose. Now, or later. */
void ring_cas_go_on(struct ring_op *op);
/* Rows of a partition at SERIAL or LOCAL_SERIAL. */
void ring_get_serial(
    struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, enum consistency serial);
struct paxos *ring_paxos(struct ring *ring, uint32_t node);
void ring_op_free(struct ring_op *op);
/* Run the world until the op is done. */
void ring_wait(struct ring *ring, struct ring_op *op);
/* What one node's store has of table t: the row's v, or -1. */
int64_t ring_look(struct ring *ring, uint32_t node, int32_t pk, int32_t ck);
int64_t ring_look_named(struct ring *ring, uint32_t node, uint32_t name, int32_t pk, int32_t ck);

#endif
