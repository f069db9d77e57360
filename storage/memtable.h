/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_H
#define HELENUS_STORAGE_MEMTABLE_H

/*
 * What was written to a table and is not yet in an SSTable: shards by token, so that shards one after
 * the other are in token order; each with a lock held for pointer work only, an arena, and an index by
 * (token, key). Rows are stored encoded (MESSAGE flavor). A change of a row is written over it where nobody is reading in
 * its shard, and else put beside it; the old one's bytes are used again when its readers have left (memtable_space.h).
 *
 * Any number of threads may apply and read at once. Who switches memtables makes sure that nobody applies
 * any more (op_order.h) before memtable_flush_iterator().
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "storage/memtable_tree.h"
#include "storage/mutation.h"
#include "storage/read_command.h"

struct memtable;
struct memtable_hold; /* memtable_space.h */

/*
 * One reference for the caller. `shards`: at least 1. `budget` (may be NULL, outlives the memtable): bytes
 * taken are added to it as memory is taken, and subtracted when the memtable is freed. NULL without memory.
 * The table's metadata gets a reference of its own: rows are encoded by it.
 */
struct memtable *
memtable_new(const struct table_metadata *table, uint32_t shards, atomic_ullong *budget);
/* Before the first write: memory comes from the pool and goes back to it. The pool outlives the memtable. */
void memtable_use_pool(struct memtable *memtable, struct arena_pool *pool);
struct memtable *memtable_ref(struct memtable *memtable);
/* The last reference frees everything. NULL is accepted. */
void memtable_unref(struct memtable *memtable);

/*
 * Add an update; its rows are merged with what is there, atomically for readers of one partition. The update may have been
 * made with another version of the table's metadata: columns are then matched by name and unknown ones left
 * out. ERROR_NO_MEMORY leaves the memtable as it was or with a part of the update.
 */
int
memtable_apply(struct memtable *memtable, const struct partition_update *update, struct error *err);

/*
 * One partition: 0 and *out, NULL when it is not here. Honours slices, order, wanted columns and
 * after_position; not limits and filters. With is_transient, and in a flush, what next() gave is valid until the
 * second next() after it. Rows point into the memtable: the caller holds a
 * reference until the iterator is closed and the rows are done with, and then calls memtable_release(). A reader sees every
 * update that was applied before memtable_read() began, and of later ones any prefix.
 *
 * What must be released is put before *holds, in `arena`; also where *out is NULL or the read fails later. NULL: it never
 * is, and what the read could have seen stays until the memtable is freed.
 */
int
memtable_read(struct memtable *memtable, const struct read_command *command, struct arena *arena,
    struct memtable_hold **holds, struct unfiltered_iterator **out, struct error *err);
/* Partitions of command->range in token order; as above. */
int
memtable_scan(struct memtable *memtable, const struct read_command *command, struct arena *arena,
    struct memtable_hold **holds, struct partition_iterator **out, struct error *err);
/* All of the list. Any thread; before the reference to the memtable is given back. */
void memtable_release(const struct memtable_hold *holds);
/* Everything in order, for a flush: the arena's memory is bounded by the iterator itself. Rows come raw (row_raw.h)
 * where they have such a form, when `is_raw`. */
int memtable_flush_iterator(struct memtable *memtable, bool is_raw, struct arena *arena,
    struct partition_iterator **out, struct error *err);

/*
 * Ask for the memory that reads and writes of the partition will touch, in MEMTABLE_AHEAD_STEPS with others' in between,
 * so that the misses of many are one wait. Does little in a memtable that the caches hold.
 */
enum { MEMTABLE_AHEAD_STEPS = MEMTABLE_TREE_AHEAD_STEPS + 1 };
struct memtable_ahead {
	enum {
		MEMTABLE_AHEAD_DONE,
		MEMTABLE_AHEAD_INDEX,
		MEMTABLE_AHEAD_ENTRY,
		MEMTABLE_AHEAD_TREE
	} next;
	const struct memtable_entry *entry;
	struct memtable_tree_ahead tree;
};
void memtable_ahead(struct memtable *memtable, int step, int64_t token, struct slice key,
    struct memtable_ahead *ahead);

const struct table_metadata *memtable_table(const struct memtable *memtable);
bool memtable_is_empty(const struct memtable *memtable);
uint64_t memtable_bytes(const struct memtable *memtable); /* accounted memory */
uint64_t memtable_partition_count(const struct memtable *memtable);
uint64_t memtable_row_count(const struct memtable *memtable);
uint64_t memtable_operations(const struct memtable *memtable); /* updates applied */
/* Minima over all that was applied (EncodingStats), the codec's epochs where there is nothing. */
void memtable_encoding_stats(const struct memtable *memtable, int64_t *min_timestamp,
    int32_t *min_local_deletion_time, int32_t *min_ttl);

#endif
