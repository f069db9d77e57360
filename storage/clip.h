/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_CLIP_H
#define HELENUS_STORAGE_CLIP_H

/*
 * A stream cut at the slices of a read. What the store gives may have markers outside the slices, or none where
 * a slice begins inside a range tombstone: it depends on where SSTables begin their index blocks. Behind this
 * it does not: markers stand at the bounds of the slices, with clustering values, and two streams of the
 * same content are the same.
 */
#include "storage/read_command.h"

/*
 * The slices of a filter without what paging has passed (rows up to `after`, in the order of the iteration).
 * The whole partition is one slice of two nulls. *count 0: nothing is left. -1 without memory.
 */
int clip_slices(const struct clustering_filter *filter, struct slice after, struct arena *arena,
    const struct clustering_slice **slices, uint32_t *count, struct error *err);

/*
 * Cut `source` (owned from here on, also on failure) at slices that clip_slices() made, which must outlive the
 * iterator. `arena` holds the iterator and the values of bounds. What next() gives is valid as long as the source's.
 */
int unfiltered_clip(struct unfiltered_iterator *source, const struct clustering_slice *slices,
    uint32_t count, struct arena *arena, struct unfiltered_iterator **out, struct error *err);

#endif
