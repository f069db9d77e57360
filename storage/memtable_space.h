/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_SPACE_H
#define HELENUS_STORAGE_MEMTABLE_SPACE_H

/*
 * Memory of a memtable shard that is used again: of rows that were replaced, once no reader can look at them any more. Rows
 * that are written again and again then stay as large as they are, and do not fill a memtable.
 *
 * Readers look without the shard's lock at what they found under it. Each enters, under the lock, in the epoch of that moment,
 * and leaves, without it, when it is done with all that it found. What a write replaces was last to be found in the epoch of
 * the replacement. An epoch begins when all readers of the one before the last have left:
 *
 *      epoch           1          2          3
 *      replaced in 1   kept       kept       free: a reader of 1 that had stayed would have kept 3 from beginning
 *      counters        [1]        [0]        [1]          of readers that entered and left, by the epoch's parity
 *
 * Without any reader all is free at once, and a row may be written in place of the one it replaces. That is the usual
 * case: reads are much shorter than the time between two of them. A reader that stays for long costs what it would cost
 * without all this: what is replaced meanwhile comes back with the memtable, all but the first MEMTABLE_RETIRED_MAX.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include "base/arena.h"

struct memtable_waste;

/* All zero: nobody reads, nothing is free. The shard's lock guards all but `left`. */
struct memtable_space {
	uint64_t entered[2];
	unsigned parity; /* of the epoch */
	struct memtable_waste
	    *waste; /* in the arena; NULL: nothing was replaced yet but in place */
	atomic_ullong left[2];
};

/* A reader that has not left. It lies where the reader wants: in the arena of the read. */
struct memtable_hold {
	struct memtable_hold *next;
	struct memtable_space *space;
	unsigned parity;
};

/* Under the lock. */
static inline void
memtable_space_enter(struct memtable_space *space, struct memtable_hold *hold)
{
	hold->space = space;
	hold->parity = space->parity;
	space->entered[hold->parity]++;
}

/* Without the lock; once. */
static inline void
memtable_space_leave(const struct memtable_hold *hold)
{
	/* Release: what was read was read before whoever sees this writes over it. */
	atomic_fetch_add_explicit(&hold->space->left[hold->parity], 1, memory_order_release);
}

/*
 * Before a write, under the lock like all that follows: make free what is, perhaps begin an epoch. True: there is no
 * reader, and there will be none before the lock is dropped.
 */
bool memtable_space_settle(struct memtable_space *space);
/*
 * Memory for `size` bytes, aligned to 8; *room: how many there are, `size` or more. Not from the heap but from what is
 * free, or the arena. NULL without memory.
 */
void *
memtable_space_alloc(struct memtable_space *space, struct arena *arena, size_t size, size_t *room);
/* `memory`, of `room` bytes, can be found by nobody who enters from now on. is_unread: as settle() said. */
void memtable_space_retire(
    struct memtable_space *space, struct arena *arena, void *memory, size_t room, bool is_unread);

#endif
