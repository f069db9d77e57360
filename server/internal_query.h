/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_INTERNAL_QUERY_H
#define HELENUS_SERVER_INTERNAL_QUERY_H

/*
 * CQL that the server runs for itself (system tables): the same plans and the same path as a client's,
 * but the caller waits. Cassandra: QueryProcessor.executeInternal. Any thread that may block.
 */
#include "base/bytes.h"
#include "base/consistency.h"
#include "base/error.h"

struct executor;
struct prepared_statement;

/* Run a write. values: for the markers; null slices are null. */
int internal_execute(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct error *err);
/* ... that a hint is enough for (level ANY): of tables that other nodes have parts of. */
int internal_execute_any(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct error *err);

/*
 * Several writes that take effect together: those to one partition key of one keyspace are one record
 * of the commit log, so that a crash leaves all of them or none. Each is a little younger than the one
 * before (its timestamp is), as if they had run one after the other.
 */
struct internal_batch;
struct internal_batch *internal_batch_new(struct executor *executor);
/* The same, but all are written at `timestamp` (us): for writes to different rows. */
struct internal_batch *internal_batch_new_at(struct executor *executor, int64_t timestamp);
/* Values are copied. */
int internal_batch_add(struct internal_batch *batch, const char *cql, const struct slice *values,
    uint32_t count, struct error *err);
/* Write and wait; nothing happens when none was added. */
int internal_batch_run(struct internal_batch *batch, struct error *err);
/* Instead of writing: append the mutations, each behind its size (u32), for internal_apply() here or elsewhere. The
 * number of them, or -1. */
int internal_batch_encode(struct internal_batch *batch, struct buffer *out, struct error *err);
void internal_batch_free(struct internal_batch *batch);

/* Write mutations of a local keyspace, and wait. */
struct mutation; /* storage/mutation.h */
struct keyspace_metadata;
int internal_apply(struct executor *executor, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace, struct error *err);

/* Rows of a SELECT, whole in memory. */
struct internal_rows {
	struct buffer cells; /* owned */
	struct reader reader;
	uint32_t column_count;
	uint32_t left;
};

enum { INTERNAL_COLUMNS_MAX = 64 };

/* On success freed with internal_rows_fini(). */
int internal_select(struct executor *executor, const char *cql, const struct slice *values,
    uint32_t count, struct internal_rows *out, struct error *err);
/* ... of a table that other nodes have parts of. */
int internal_select_at(struct executor *executor, enum consistency level, const char *cql,
    const struct slice *values, uint32_t count, struct internal_rows *out, struct error *err);
/* The next row into cells[INTERNAL_COLUMNS_MAX]; false at the end. */
bool internal_rows_next(struct internal_rows *rows, struct slice *cells);
void internal_rows_fini(struct internal_rows *rows);

/* Prepared statements that survive a restart: system.prepared_statements. */
void internal_save_prepared(struct executor *executor, const struct prepared_statement *plan);
int internal_load_prepared(struct executor *executor, struct error *err);

#endif
