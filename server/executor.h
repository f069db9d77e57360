/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_EXECUTOR_H
#define HELENUS_SERVER_EXECUTOR_H

/*
 * Execution of requests (QueryProcessor, the statements, StorageProxy's client side): parse, prepare,
 * bind, make mutations and read commands, hand them to the coordinator, encode the answer.
 * One executor per node; everything it needs is given to executor_new().
 */
#include "base/error.h"
#include "cluster/coordinator.h"
#include "server/request.h"

struct config; /* server/config.h */
struct
    node; /* server/node.h: what the virtual tables and operations ask (stages, clients, settings) */

enum request_stage {
	REQUEST_STAGE_LOOP, /* cheap and never blocks: answered on the loop (OPTIONS, REGISTER) */
	REQUEST_STAGE_REQUEST, /* RequestStage / Native-Transport-Requests: parse, prepare, DDL */
	REQUEST_STAGE_READ, /* one row, or one small partition */
	REQUEST_STAGE_MUTATION,
	REQUEST_STAGE_COUNTER,
	/* ReadStage as well, but too long for a loop to run itself: many rows of a partition, or a range. */
	REQUEST_STAGE_SLICE,
	REQUEST_STAGE_RANGE,
	REQUEST_STAGE_COUNT,
};

/* node->store and node->coordinator exist. Does no work that can fail. */
struct executor *executor_new(struct node *node);
/*
 * Bring the node's data up, before clients are served: hand the schema of the system tables to the
 * store, read the user schema through it, store_set_schema(), store_replay(), make or check
 * system.local (node->host_id, "Saved cluster name A != configured name B"), prepared statements.
 */
int executor_start(struct executor *executor, struct error *err);
void executor_free(struct executor *executor);

/* Which stage runs this request: from the opcode and, for EXECUTE, the prepared statement's kind (one
 * hash look-up without lock). Any thread. */
enum request_stage executor_stage_of(struct executor *executor, const struct request *request);

/* The requests among the next `count` tasks (those that executor_run() is for: `run`) are about to run one after the
 * other: their partitions are looked for together. A hint. */
void executor_ahead(struct executor *executor, struct task *first, size_t count);

/* Run it. Answers through request->response and request_done(), now or later. */
void executor_run(struct request *request, struct worker *worker);

/* The request waited too long (drop) or did not fit (overload): encode that answer; request_done() is
 * called by this function. */
void executor_time_out(struct request *request, struct worker *worker);
void executor_overloaded(struct request *request, struct worker *worker);

/* The answer of a read took longer than node->slow_us: noted for the log. Its body still stands. */
void executor_note_slow(struct executor *executor, const struct request *request, uint64_t us);
/* Write what was noted to the log. One thread. */
void executor_tell_slow(struct executor *executor);

/* Throw this node's data of a table away; waits. ERROR_TRUNCATE. */
int
executor_truncate(struct executor *executor, const struct table_metadata *table, struct error *err);

/* The connection is gone: free client->executor_state, where there is one. */
void executor_client_fini(struct executor *executor, struct client_state *client);

#endif
