/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_EXECUTION_H
#define HELENUS_SERVER_EXECUTION_H

/*
 * One statement in the middle of being run, and the executor's parts that statements use. Only the
 * files that implement server/executor.h include this.
 *
 * An execution lives in the arena of its request (or of an internal query) and belongs to one thread
 * at a time: the stage thread that runs it, or the one that completes a write or a read.
 */
#include "base/lock.h"
#include "server/node.h"
#include "server/prepare.h"
#include "server/prepared_cache.h"
#include "server/schema_holder.h"
#include "server/slow_reads.h"
#include "cluster/table_locks.h"

struct executor_batch;
struct tracing;

struct executor {
	struct node *node; /* borrowed, and all that follow */
	struct env *env;
	struct store *store;
	struct coordinator *coordinator;
	const struct config *config;

	struct schema_holder schema;
	struct prepared_cache prepared;
	struct table_locks cas_locks; /* by partition: conditional statements, list updates */
	struct lock ddl_lock; /* one schema change at a time */
	struct map names; /* interned keyspace and user names; guarded by names_lock */
	struct lock names_lock;
	atomic_llong last_timestamp_us; /* the clock of writes never repeats or goes back */
	atomic_ullong uuid_ticks; /* of the last version 1 uuid */
	uint64_t uuid_node; /* clock sequence and node of our uuids */
	/* Plans of the server's own statements by their text: system tables do not change. Guarded by
	 * plans_lock. */
	struct map internal_plans;
	struct lock plans_lock;
	struct slow_reads slow_reads;
	_Atomic uint64_t guardrail_next_log_ns[2]; /* warnings, failures */
	/* What system_views.cql_metrics shows. */
	atomic_ullong prepared_executed, regular_executed;
};

enum { EXECUTION_WARNINGS_MAX = 32 };

struct execution;
typedef void (*execution_done_fn)(struct execution *execution, const struct error *err);

struct execution {
	struct executor *executor; /* borrowed */
	struct request *request; /* NULL: internal */
	struct worker *worker; /* NULL on a thread that is no worker */
	struct arena *arena; /* borrowed */
	struct buffer *out; /* the answer; borrowed */
	uint8_t version; /* of the protocol */
	const struct client_state *client; /* NULL: internal */
	struct prepared_statement *plan; /* shared; dropped at the end; NULL: a BATCH message */
	bool is_batch;
	struct executor_batch *batch; /* plans of a BATCH message, dropped at the end; NULL: none */
	const struct client_message *message; /* NULL: internal */
	const struct query_options *options;
	struct slice keyspace; /* that names without one mean; null: none */
	struct slice result_metadata_id; /* EXECUTE of v5: what the client has; null else */

	struct function_context functions;
	struct term_context terms;
	int64_t now_us; /* wall clock at the start */
	int64_t now_seconds; /* of TTLs: the client may set it */
	int64_t timestamp; /* default of writes, microseconds; TIMESTAMP_NONE: not made yet */

	uint32_t warning_count;
	struct row_read *row_reads; /* rows read from other nodes; see modification_read_row() */
	struct tracing *tracing; /* NULL: not traced */
	struct response response; /* open when has_response */
	bool has_response;
	execution_done_fn done; /* called once, instead of an answer to a request, when internal */
	void *context; /* of done */
	/* Last, and not cleared for each request. */
	struct slice warnings[EXECUTION_WARNINGS_MAX];
};

/* Start: everything but plan, terms.values and what the message says is set. */
void execution_init(struct execution *execution, struct executor *executor, struct arena *arena,
    struct buffer *out);
/* The options of the message: values by position, timestamps. ERROR_INVALID: wrong count, names. */
int
execution_bind(struct execution *execution, const struct query_options *options, struct error *err);
/* Values of markers, named or not, in the order of the plan. */
int execution_bind_values(struct execution *execution, const struct bound_values *values,
    const struct column_spec *markers, uint32_t marker_count, struct error *err);

/* Microseconds for a write without a timestamp of its own; the same through one execution. */
int64_t execution_timestamp(struct execution *execution);

/* Add a client warning; the text is copied. */
void execution_warn(struct execution *execution, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Open a RESULT; exactly one response_put_*() body follows, then execution_done(). */
void execution_begin_result(struct execution *execution);
/* The end: closes the answer or puts an error in its place, gives the request back. The execution is
 * gone afterwards. */
void execution_done(struct execution *execution, const struct error *err);
/* execution_begin_result(), Void, done. */
void execution_done_void(struct execution *execution);

/* Run the plan. Ends with execution_done(), now or later. */
void execution_run(struct execution *execution);

/* The statements. Each ends with execution_done(). */
void select_execute(struct execution *execution);
void modification_execute(struct execution *execution);
void batch_execute(struct execution *execution);
void schema_change_execute(struct execution *execution);
void describe_execute(struct execution *execution);
void truncate_execute(struct execution *execution);
void use_execute(struct execution *execution);
void auth_execute(struct execution *execution);

/* Prepare and put into the cache; *out has a reference for the caller. */
int executor_prepare(struct executor *executor, struct slice keyspace, struct slice query,
    struct prepared_statement **out, struct error *err);

/* A plan of the same text and id against another schema. */
int executor_renew(struct executor *executor, const struct schema *schema,
    const struct prepared_statement *plan, struct prepared_statement **out, struct error *err);

/* What time and chance are for functions. */
void executor_next_timeuuid(struct executor *executor, uint8_t out[16]);
/* A name that lives as long as the executor. */
const char *executor_intern(struct executor *executor, struct slice name);

/* Consistency levels that a read or a write may have. */
int execution_check_read_consistency(const struct execution *execution, struct error *err);
int execution_check_write_consistency(
    const struct execution *execution, const struct table_metadata *table, struct error *err);

#endif
