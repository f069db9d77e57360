/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ARENA_H
#define HELENUS_BASE_ARENA_H

/*
 * Memory that dies together: one arena for a request, one for a memtable shard. Allocation bumps a
 * pointer; nothing is freed alone. Not thread-safe: the owner of the arena serialises.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/lock.h"

struct arena_block;

/*
 * AddressSanitizer knows of blocks only; builds with it tell it of every allocation, leave gaps between them, and reuse
 * no block: what is read beyond an allocation, or after its arena's end or reset, is a finding.
 */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_IS_POISONED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ARENA_IS_POISONED 1
#endif
#ifdef ARENA_IS_POISONED
enum { ARENA_GAP = 16 }; /* between allocations, which then all begin aligned to 8 */
#else
enum { ARENA_GAP = 0 };
#endif

/*
 * Blocks of ARENA_POOL_BLOCK bytes that arenas gave back and others will take: a new block costs the zeroing
 * of its pages, which is more than what is written into it. Thread-safe.
 */
enum { ARENA_POOL_BLOCK = 2 * 1024 * 1024 };

struct arena_pool {
	struct lock lock;
	struct arena_block *blocks; /* owned */
	size_t count, count_max;
};

/* `rank`: of the lock, above that of every lock under which an arena of the pool allocates. */
void arena_pool_init(struct arena_pool *pool, int rank, size_t count_max);
/* No arena uses it any more. */
void arena_pool_fini(struct arena_pool *pool);

struct arena {
	struct arena_block *blocks; /* owned; newest first */
	uint8_t *at; /* next free byte of the newest block */
	uint8_t *end;
	uint8_t *
	    only; /* first byte of the one block, of the usual size; NULL: there is none, or there are more */
	size_t block_size; /* of the next block, bytes */
	size_t total_bytes; /* of all blocks, for accounting */
	struct arena_pool
	    *pool; /* borrowed; NULL: none. Set after arena_init(), outlives the arena */
};

/* No memory is taken yet. block_size: bytes of a usual block (a bigger allocation gets its own). */
void arena_init(struct arena *arena, size_t block_size);
void arena_fini(struct arena *arena);
void arena_reset_slow(struct arena *arena);
/* Forget everything, keep one block for reuse (and only if it is of the usual size). */
static inline void
arena_reset(struct arena *arena)
{
#ifndef ARENA_IS_POISONED
	if (arena->only != NULL) {
		arena->at = arena->only;
		return;
	}
#endif
	if (arena->blocks != NULL)
		arena_reset_slow(arena);
}

void *arena_alloc_slow(struct arena *arena, size_t size, size_t alignment);

/* `size` bytes aligned to 8, not cleared; NULL without memory. size 0 gives a valid pointer. */
static inline void *
arena_alloc(struct arena *arena, size_t size)
{
#ifndef ARENA_IS_POISONED
	uint8_t *at = (uint8_t *)(((uintptr_t)arena->at + 7) & ~(uintptr_t)7);

	if (arena->at != NULL && at <= arena->end && (size_t)(arena->end - at) >= size) {
		arena->at = at + size;
		return at;
	}
#endif
	return arena_alloc_slow(arena, size, 8);
}

/* As arena_alloc() without alignment: bytes and strings. */
static inline void *
arena_alloc_bytes(struct arena *arena, size_t size)
{
#ifndef ARENA_IS_POISONED
	uint8_t *at = arena->at;

	if (at != NULL && (size_t)(arena->end - at) >= size) {
		arena->at = at + size;
		return at;
	}
#endif
	return arena_alloc_slow(arena, size, 1);
}

/* Give back what lies behind the first `used` of the `size` bytes at `memory`, if nothing was allocated since. */
void arena_trim(struct arena *arena, void *memory, size_t size, size_t used);

void *arena_zalloc(struct arena *arena, size_t size);
/* `count` * `size` bytes, checked for overflow, zeroed; NULL without memory. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);
/* Copy into the arena. A null slice stays null. On no memory: the null slice with is-null input
 * distinguishable by the caller through size (callers check copy.data when slice.data != NULL). */
struct slice arena_copy(struct arena *arena, struct slice slice);
char *arena_strdup(struct arena *arena, const char *string);
char *arena_strndup(struct arena *arena, const char *string, size_t length);
char *
arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
