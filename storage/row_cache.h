/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ROW_CACHE_H
#define HELENUS_STORAGE_ROW_CACHE_H

/*
 * The row cache: the beginnings of partitions (caching = {'rows_per_partition': N}, or all of them) as they were read,
 * tombstones included, so that a read of one partition asks neither memtables nor SSTables. A write takes its
 * partition's entry away before it is answered; a table whose SSTables are replaced by other data (truncated,
 * refreshed, streamed to), or that is altered, becomes another owner (entry_cache.h says why nothing stale is seen).
 * Cassandra: SinglePartitionReadCommand.getThroughCache, RowCacheSentinel.
 */
#include "storage/table_store.h"

/* May reads of the table be served from the cache, and must its writes invalidate? One load; see row_cache_set_table(). */
static inline bool
row_cache_is_used(struct table_store *table)
{
	return atomic_load(&table->row_cache_rows) != 0;
}

/*
 * Serve a read of one partition: 1 and *out (NULL: there is nothing), 0: read as usual, -1. A miss reads the
 * partition's beginning and keeps it, where the command asks for it or all is cached.
 */
int row_cache_read(struct table_store *table, const struct read_command *command,
    struct arena *arena, struct unfiltered_iterator **out, struct error *err);

/* After a change of the partition is in the memtable, before it is answered. */
void row_cache_invalidate(struct table_store *table, struct slice key, int64_t token);
/* Nothing that is cached of the table counts any more. */
void row_cache_forget_table(struct table_store *table);
/* The table's options are those of `metadata` now. */
void row_cache_set_table(struct table_store *table, const struct table_metadata *metadata);

#endif
