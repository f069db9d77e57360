/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SCHEMA_TABLES_H
#define HELENUS_SERVER_SCHEMA_TABLES_H

/*
 * The schema as rows of system_schema, written and read through the same store as everything else.
 * Cassandra: schema/SchemaKeyspace. One thread at a time (the holder of the ddl_lock).
 */
#include "base/bytes.h"
#include "base/error.h"
#include "cql/schema.h"

struct executor;

/* Write all rows of a keyspace that has none, at `timestamp` (us): all or, after a crash, none of them.
 * Durable after store_sync(). */
int schema_tables_save(struct executor *executor, const struct keyspace_metadata *keyspace,
    int64_t timestamp, struct error *err);

/*
 * The rows that make a keyspace `after` instead of `before` (NULL: does not, did not exist), as mutations in bytes, each
 * behind its size (u32), written at `timestamp` (us). How many mutations, or -1.
 */
int schema_tables_encode(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after, int64_t timestamp, struct buffer *out,
    struct error *err);

/* What of a keyspace has new rows. */
struct schema_touched {
	struct slice keyspace;
	bool is_all; /* types, or no telling: all of it is to be read */
	bool has_params;
	uint32_t table_count;
	const struct slice *tables; /* may hold a name twice */
};
/* A new snapshot: `schema` with that keyspace as its rows say now, which may be: not at all. */
int schema_tables_reload(struct executor *executor, const struct schema *schema,
    const struct schema_touched *touched, struct schema **out, struct error *err);

/*
 * A new snapshot: `base` (the system keyspaces) and what the rows say. Replication of system_auth,
 * system_distributed and system_traces is taken from the rows too.
 */
int schema_tables_load(
    struct executor *executor, const struct schema *base, struct schema **out, struct error *err);

/* Are the rows of this keyspace there? */
int schema_tables_has_keyspace(
    struct executor *executor, struct slice name, bool *out, struct error *err);

#endif
