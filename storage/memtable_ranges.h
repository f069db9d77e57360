/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_RANGES_H
#define HELENUS_STORAGE_MEMTABLE_RANGES_H

/*
 * The range tombstones of one partition of a memtable, folded: ascending places between which one deletion
 * holds, so that each place is a marker of the stream (RangeTombstoneList).
 *
 *   bounds      b0        b1        b2
 *   deletion  -    above0    above1    above2 = DELETION_LIVE
 *
 * Shared by reference count: a reader keeps the array that it began with. Who holds the only reference
 * (and the shard's lock, under which references are taken) changes it in place.
 */
#include <stdatomic.h>
#include "storage/mutation.h"

struct memtable_bound {
	struct slice position; /* in the memtable's arena, as the values */
	const struct slice *values;
	uint32_t count;
	bool is_before; /* stands before the rows of its values, else after */
	struct deletion above;
};

struct memtable_ranges {
	atomic_uint refs;
	uint32_t count, room;
	struct memtable_bound bounds[];
};

void memtable_ranges_ref(struct memtable_ranges *ranges);
/* NULL is accepted. */
void memtable_ranges_unref(struct memtable_ranges *ranges);

/*
 * Add a tombstone to *ranges (NULL: none yet), which is replaced where it is shared or too small. Bytes of
 * new bounds come from `arena`. -1 without memory, *ranges then as before. An empty range is ignored.
 */
int memtable_ranges_add(struct memtable_ranges **ranges, const struct table_metadata *table,
    const struct range_tombstone *tombstone, struct arena *arena, struct error *err);

/* How many bounds are <= position (or < it, without or_equal). */
uint32_t
memtable_ranges_search(const struct memtable_ranges *ranges, struct slice position, bool or_equal);

/* The deletion below bound `index` (0..count). */
static inline struct deletion
memtable_ranges_below(const struct memtable_ranges *ranges, uint32_t index)
{
	return index == 0 ? DELETION_LIVE : ranges->bounds[index - 1].above;
}

#endif
