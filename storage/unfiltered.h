/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_UNFILTERED_H
#define HELENUS_STORAGE_UNFILTERED_H

/*
 * The one iterator shape: a partition is a key, a partition deletion, a static row and then
 * "unfiltereds" (rows and range tombstone markers) in clustering order (or reversed). Memtables,
 * SSTables and merges of them all look like this. Pull based, one thread at a time, no callbacks.
 *
 * What every stream promises: positions ascend (descend when reversed) and are set; markers are balanced,
 * each closes what is open and the last one leaves nothing open; rows have lost what the stream's own
 * deletions cover, and are never empty. Where slices were asked for, rows lie inside them, a marker may stand
 * outside. Merge and purge pass raw rows on where they stay as they are, and decode them where not.
 *
 * Lifetime: what next() returned stays valid until the iterator's arena is reset; iterators made for
 * one read all allocate from that read's arena and pin what they borrow from (memtable, SSTable
 * chunks) until close().
 */
#include <stdbool.h>
#include "storage/row.h"
#include "storage/row_raw.h"

struct unfiltered {
	enum unfiltered_kind
	    kind; /* never UNFILTERED_END; UNFILTERED_RAW where raw rows were asked for */
	union {
		struct row row;
		struct row_raw raw;
		struct marker marker;
	};
};

struct unfiltered_iterator;

struct unfiltered_iterator_ops {
	/* 1 and *out, 0 at the end, -1 on error. */
	int (*next)(
	    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err);
	void (*close)(struct unfiltered_iterator *iterator);
};

struct unfiltered_iterator {
	const struct unfiltered_iterator_ops *ops;
	const struct table_metadata *table; /* borrowed */
	int64_t token;
	struct slice key; /* serialised partition key */
	struct deletion partition_deletion;
	bool is_reversed;
	bool has_static_row;
	struct row static_row; /* when has_static_row */
};

static inline int
unfiltered_iterator_next(
    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	return iterator->ops->next(iterator, out, err);
}

static inline void
unfiltered_iterator_close(struct unfiltered_iterator *iterator)
{
	if (iterator != NULL)
		iterator->ops->close(iterator);
}

/*
 * Partitions in token order (token, then key bytes). next() gives an iterator that the caller closes
 * before it asks for the next one; a partition may be left half read.
 */
struct partition_iterator;

struct partition_iterator_ops {
	/* 1 and *out (owned by the caller), 0 at the end, -1 on error. */
	int (*next)(struct partition_iterator *iterator, struct unfiltered_iterator **out,
	    struct error *err);
	void (*close)(struct partition_iterator *iterator);
};

struct partition_iterator {
	const struct partition_iterator_ops *ops;
};

static inline int
partition_iterator_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	return iterator->ops->next(iterator, out, err);
}

static inline void
partition_iterator_close(struct partition_iterator *iterator)
{
	if (iterator != NULL)
		iterator->ops->close(iterator);
}

/*
 * Merge sources of the same partition (UnfilteredRowIterators.merge): rows of equal clustering are
 * reconciled, range tombstones of all sources are folded into one sequence of markers, what a
 * deletion covers is dropped. Takes ownership of the sources (also on failure). With one source it
 * is returned as it is. `arena` holds the merge's own state.
 */
int unfiltered_merge(struct unfiltered_iterator **sources, size_t count, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err);
/* Merge sorted runs of partitions; equal keys meet in unfiltered_merge(). Takes ownership. */
int partition_merge(struct partition_iterator **sources, size_t count, struct arena *arena,
    struct partition_iterator **out, struct error *err);

/*
 * The same in bounded memory, for compactions and long scans: what next() of a partition gave is valid until
 * the second next() call after it, the partition's key, deletion and static row until it is closed. The
 * sources must promise no more either (SSTABLE_SCAN_TRANSIENT, read_command.is_transient). `turns` are the caller's,
 * for as many merges as follow each other; the merge empties them.
 */
int
unfiltered_merge_transient(struct unfiltered_iterator **sources, size_t count, struct arena *arena,
    struct arena turns[2], struct unfiltered_iterator **out, struct error *err);
int partition_merge_transient(struct partition_iterator **sources, size_t count,
    struct arena *arena, struct partition_iterator **out, struct error *err);

/*
 * Drop what may be forgotten (PurgeFunction): tombstones with local deletion time before
 * `gc_before` and timestamp below what `max_purgeable(argument, key, token)` says. Expired cells
 * become tombstones first. For compaction: what next() gave is valid until the second next() after it, at
 * most. Takes ownership of source.
 */
typedef int64_t (*max_purgeable_fn)(void *argument, struct slice key, int64_t token);
int unfiltered_purge(struct unfiltered_iterator *source, int64_t now_seconds, int32_t gc_before,
    max_purgeable_fn max_purgeable, void *argument, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err);

#endif
