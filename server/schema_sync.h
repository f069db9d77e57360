/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SCHEMA_SYNC_H
#define HELENUS_SERVER_SCHEMA_SYNC_H

/*
 * How a schema change takes effect, on the node where a client asked for it and on all others alike. An entry of
 * the schema log (cluster/schema_log.h) is the rows of system_schema that change, as mutations:
 *
 *   rows are written -> what they touch is read back -> the store makes or drops tables
 *     -> the new snapshot is current -> plans are made anew -> the version is told -> events to clients
 *
 * One at a time: the migration stage's, under the executor's ddl_lock, which keeps TRUNCATE out. Cassandra:
 * schema/SchemaManager, SchemaKeyspace.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "cluster/schema_log.h"
#include "cql/schema.h"

struct executor;
struct schema_transformation;

/* What schema_log_change() is given. */
struct schema_sync_change {
	struct schema_transformation *transformation;
	void (*done)(struct schema_sync_change *change, bool is_noop, const struct error *err);
};

/* context is the executor. */
extern const struct schema_log_ops schema_sync_ops;

/* Make `schema` the store's and the executor's, without more ado: the start. */
int schema_sync_put(struct executor *executor, struct schema *schema, struct error *err);

#endif
