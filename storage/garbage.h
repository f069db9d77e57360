/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_GARBAGE_H
#define HELENUS_STORAGE_GARBAGE_H

/*
 * What others delete or overwrite is left out of a partition (nodetool garbagecollect; GarbageSkipper of
 * CompactionIterator): rows and cells that deletions in `shadow` cover and, with `cells`, cells that newer cells there replace.
 * The partition's own deletions stay. What next() gave is valid until the second next() after it.
 */
#include "storage/unfiltered.h"

/* Takes both over, also on failure. `arena` holds the iterator; rows are put together in arenas of its own. */
int
unfiltered_without_garbage(struct unfiltered_iterator *source, struct unfiltered_iterator *shadow,
    bool cells, struct arena *arena, struct unfiltered_iterator **out, struct error *err);

#endif
