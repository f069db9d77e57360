/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SCHEMA_TABLES_H
#define HELENUS_SERVER_SCHEMA_TABLES_H

/*
 * The schema as rows of system_schema, written and read through the same store as everything else.
 * Cassandra: schema/SchemaKeyspace. One thread at a time (the holder of the ddl_lock).
 */
#include "base/error.h"
#include "cql/schema.h"

struct executor;

/* Make the rows of one keyspace say `after` instead of `before` (NULL: did not or does not exist), all
 * of them or, after a crash, none. Durable after store_sync(). */
int schema_tables_save(struct executor *executor, const struct keyspace_metadata *before,
    const struct keyspace_metadata *after, struct error *err);

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
