/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_OPERATIONS_H
#define HELENUS_SERVER_OPERATIONS_H

/*
 * What the admin port asks of the executor: the schema, and system tables that only the executor can
 * read. Any thread; none of these is hot.
 */
#include <stdint.h>
#include "base/error.h"
#include "base/uuid.h"
#include "cql/schema.h"

struct executor;

/* The schema of now; the caller's reference. */
struct schema *operations_schema(struct executor *executor);

/* The node's tokens (system.local), ascending: an array for free(); *count may be 0. */
int64_t *operations_tokens(struct executor *executor, uint32_t *count);

/* system.compaction_history. */
struct operations_compaction {
	struct uuid id;
	const char *keyspace, *table; /* valid during the call */
	int64_t compacted_at_ms;
	int64_t bytes_in, bytes_out;
	const char *rows_merged; /* {1:10, 2:3} */
};
int operations_compaction_history(struct executor *executor,
    void (*each)(void *argument, const struct operations_compaction *compaction), void *argument,
    struct error *err);

/* CQLMetrics. */
struct operations_cql {
	uint64_t prepared, evicted; /* statements in the cache, and that had to leave it */
	uint64_t prepared_executed, regular_executed;
};
void operations_cql(struct executor *executor, struct operations_cql *out);

/* Write each compaction that ends into system.compaction_history from now on. */
void operations_record_compactions(struct executor *executor);

#endif
