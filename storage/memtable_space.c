/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/memtable_space.h"

#ifdef ARENA_IS_POISONED
#include <sanitizer/asan_interface.h>
#endif

enum {
	MEMTABLE_RETIRED_MAX = 128, /* of an epoch */
	MEMTABLE_ROOM_UNIT = 8,
	/* Classes of free memory: each size up to 512, then four for each doubling, up to 1 MiB and more. */
	MEMTABLE_EXACT_LOG2 = 9,
	MEMTABLE_EXACT_CLASSES = (1 << MEMTABLE_EXACT_LOG2) / MEMTABLE_ROOM_UNIT,
	MEMTABLE_CLASSES = MEMTABLE_EXACT_CLASSES + 4 * (20 - MEMTABLE_EXACT_LOG2),
	MEMTABLE_CLASS_WORDS = (MEMTABLE_CLASSES + 63) / 64,
};

struct memtable_free {
	struct memtable_free *next;
	size_t room;
};

struct memtable_retired {
	void *memory;
	size_t room;
};

struct memtable_waste {
	struct memtable_free *free[MEMTABLE_CLASSES];
	uint64_t has_free[MEMTABLE_CLASS_WORDS]; /* bitmap of the classes */
	uint32_t count[2];
	struct memtable_retired retired[2][MEMTABLE_RETIRED_MAX]; /* by parity of the epoch */
};

/* Of memory of that size; greater sizes have greater or equal classes. `room` is a multiple of the unit, not 0. */
static unsigned
memtable_space_class(size_t room)
{
	unsigned log2, class;

	if (room <= 1 << MEMTABLE_EXACT_LOG2)
		return (unsigned)(room / MEMTABLE_ROOM_UNIT) - 1;
	log2 = 63 - (unsigned)__builtin_clzl(room);
	class = MEMTABLE_EXACT_CLASSES + 4 * (log2 - MEMTABLE_EXACT_LOG2) +
	    (unsigned)(room >> (log2 - 2) & 3);
	return class < MEMTABLE_CLASSES ? class : MEMTABLE_CLASSES - 1;
}

static void
memtable_space_free(struct memtable_waste *waste, void *memory, size_t room)
{
	struct memtable_free *item = memory;
	unsigned class = memtable_space_class(room);

	item->next = waste->free[class];
	item->room = room;
	waste->free[class] = item;
	waste->has_free[class / 64] |= UINT64_C(1) << class % 64;
#ifdef ARENA_IS_POISONED
	/* Whoever still reads it is found out. */
	ASAN_POISON_MEMORY_REGION(item + 1, room - sizeof(*item));
#endif
}

static void
memtable_space_free_retired(struct memtable_waste *waste, unsigned parity)
{
	for (uint32_t i = 0; i < waste->count[parity]; i++)
		memtable_space_free(
		    waste, waste->retired[parity][i].memory, waste->retired[parity][i].room);
	waste->count[parity] = 0;
}

static bool
memtable_space_is_unread(const struct memtable_space *space, unsigned parity)
{
	/* Acquire: see memtable_space_leave(). */
	return atomic_load_explicit(&space->left[parity], memory_order_acquire) ==
	    space->entered[parity];
}

bool
memtable_space_settle(struct memtable_space *space)
{
	struct memtable_waste *waste = space->waste;
	unsigned before = space->parity ^ 1;

	if (!memtable_space_is_unread(space, before))
		return false;
	if (waste != NULL)
		memtable_space_free_retired(waste, before);
	if (memtable_space_is_unread(space, space->parity)) {
		if (waste != NULL)
			memtable_space_free_retired(waste, space->parity);
		return true;
	}
	space->parity = before;
	return false;
}

/* The first class from `class` on that has free memory; MEMTABLE_CLASSES: none. */
static unsigned
memtable_space_next_class(const struct memtable_waste *waste, unsigned class)
{
	unsigned word = class / 64;
	uint64_t bits;

	if (class >= MEMTABLE_CLASSES)
		return MEMTABLE_CLASSES;
	bits = waste->has_free[word] >> class % 64 << class % 64;
	while (bits == 0 && ++word < MEMTABLE_CLASS_WORDS)
		bits = waste->has_free[word];
	return bits != 0 ? word * 64 + (unsigned)__builtin_ctzll(bits) : MEMTABLE_CLASSES;
}

/* Free memory of `size` to twice as many bytes; NULL: there is none. */
static struct memtable_free *
memtable_space_take(struct memtable_waste *waste, size_t size)
{
	unsigned class = memtable_space_next_class(waste, memtable_space_class(size));
	struct memtable_free *item;

	/* The first of its own class may be too small. */
	if (class < MEMTABLE_CLASSES && waste->free[class]->room < size)
		class = memtable_space_next_class(waste, class + 1);
	if (class == MEMTABLE_CLASSES || waste->free[class]->room < size ||
	    waste->free[class]->room > 2 * size)
		return NULL;
	item = waste->free[class];
	waste->free[class] = item->next;
	if (item->next == NULL)
		waste->has_free[class / 64] &= ~(UINT64_C(1) << class % 64);
#ifdef ARENA_IS_POISONED
	ASAN_UNPOISON_MEMORY_REGION(item, item->room);
#endif
	return item;
}

void *
memtable_space_alloc(struct memtable_space *space, struct arena *arena, size_t size, size_t *room)
{
	struct memtable_free *item = NULL;

	size = (size + MEMTABLE_ROOM_UNIT - 1) & ~(size_t)(MEMTABLE_ROOM_UNIT - 1);
	if (size < sizeof(struct memtable_free))
		size = sizeof(struct memtable_free);
	if (space->waste != NULL)
		item = memtable_space_take(space->waste, size);
	*room = item != NULL ? item->room : size;
	return item != NULL ? item : arena_alloc(arena, size);
}

void
memtable_space_retire(
    struct memtable_space *space, struct arena *arena, void *memory, size_t room, bool is_unread)
{
	struct memtable_waste *waste = space->waste;
	unsigned parity = space->parity;

	if (waste == NULL) {
		waste = space->waste = arena_zalloc(arena, sizeof(*waste));
		if (waste == NULL)
			return; /* it comes back with the memtable */
	}
	if (is_unread)
		memtable_space_free(waste, memory, room);
	else if (waste->count[parity] < MEMTABLE_RETIRED_MAX)
		waste->retired[parity][waste->count[parity]++] =
		    (struct memtable_retired){memory, room};
}
