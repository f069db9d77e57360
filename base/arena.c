/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct arena_block {
	struct arena_block *next; /* older */
	size_t size; /* of the whole block with this header */
	_Alignas(16) uint8_t bytes[];
};

/* A zero-sized thing needs a pointer that is not NULL, and nothing behind it. */
static uint8_t arena_nothing[8] __attribute__((aligned(8)));

#ifdef ARENA_IS_POISONED

#include <sanitizer/asan_interface.h>

static void
arena_poison(const void *memory, size_t size)
{
	ASAN_POISON_MEMORY_REGION(memory, size);
}

/* Where the next allocation begins behind one of `size` bytes. */
static uint8_t *
arena_next(const struct arena *arena, uint8_t *at, size_t size)
{
	size_t step = ((size + 7) & ~(size_t)7) + ARENA_GAP;

	return (size_t)(arena->end - at) < step ? arena->end : at + step;
}

/* The next `size` bytes of the newest block; NULL where they do not fit. */
static void *
arena_alloc_poisoned(struct arena *arena, size_t size)
{
	uint8_t *at = arena->at;

	if (at == NULL || (size_t)(arena->end - at) < size)
		return NULL;
	ASAN_UNPOISON_MEMORY_REGION(at, size);
	arena->at = arena_next(arena, at, size);
	return at;
}

#else

static void
arena_poison(const void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

#endif

void
arena_init(struct arena *arena, size_t block_size)
{
	assert(block_size > sizeof(struct arena_block));
	*arena = (struct arena){.block_size = block_size};
}

/* ---- blocks that are used again ---------------------------------------------------------------- */

void
arena_pool_init(struct arena_pool *pool, int rank, size_t count_max)
{
	*pool = (struct arena_pool){.count_max = count_max};
	lock_init(&pool->lock, "arena pool", rank);
}

void
arena_pool_fini(struct arena_pool *pool)
{
	while (pool->blocks != NULL) {
		struct arena_block *next = pool->blocks->next;

		free(pool->blocks);
		pool->blocks = next;
	}
	lock_fini(&pool->lock);
}

static struct arena_block *
arena_pool_take(struct arena_pool *pool)
{
	struct arena_block *block;

	lock_take(&pool->lock);
	block = pool->blocks;
	if (block != NULL) {
		pool->blocks = block->next;
		pool->count--;
	}
	lock_drop(&pool->lock);
	return block;
}

static bool
arena_pool_give(struct arena_pool *pool, struct arena_block *block)
{
	bool is_taken;

	arena_poison(block->bytes, block->size - sizeof(*block));
	lock_take(&pool->lock);
	is_taken = pool->count < pool->count_max;
	if (is_taken) {
		block->next = pool->blocks;
		pool->blocks = block;
		pool->count++;
	}
	lock_drop(&pool->lock);
	return is_taken;
}

static void
arena_free_block(struct arena *arena, struct arena_block *block)
{
	if (arena->pool == NULL || block->size != ARENA_POOL_BLOCK ||
	    !arena_pool_give(arena->pool, block))
		free(block);
}

static void
arena_free_blocks(struct arena *arena, struct arena_block *block)
{
	while (block != NULL) {
		struct arena_block *next = block->next;

		arena_free_block(arena, block);
		block = next;
	}
}

void
arena_fini(struct arena *arena)
{
	arena_free_blocks(arena, arena->blocks);
	arena_init(arena, arena->block_size);
}

enum { ARENA_HUGE_PAGE = 2 * 1024 * 1024 };

_Static_assert(ARENA_POOL_BLOCK % ARENA_HUGE_PAGE == 0, "a pool's blocks are made of huge pages");

/*
 * Large blocks are made of huge pages where the system has some: they hold a memtable, which is read in random
 * order, and there every access would miss the TLB.
 */
static void *
arena_block_memory(struct arena *arena, size_t size)
{
	void *memory = NULL;

	if (size % ARENA_HUGE_PAGE != 0)
		return malloc(size);
	if (size == ARENA_POOL_BLOCK && arena->pool != NULL)
		memory = arena_pool_take(arena->pool);
	if (memory != NULL)
		return memory;
	if (posix_memalign(&memory, ARENA_HUGE_PAGE, size) != 0)
		return NULL;
	madvise(memory, size, MADV_HUGEPAGE); /* only a wish: a failure changes nothing */
	return memory;
}

static struct arena_block *
arena_block_new(struct arena *arena, size_t size)
{
	struct arena_block *block = arena_block_memory(arena, size);

	if (block == NULL)
		return NULL;
	block->next = NULL;
	block->size = size;
#ifdef ARENA_IS_POISONED
	/* It may come from the pool. Who cuts it up poisons it. */
	ASAN_UNPOISON_MEMORY_REGION(block->bytes, size - sizeof(*block));
#endif
	return block;
}

void
arena_reset_slow(struct arena *arena)
{
	struct arena_block *kept = NULL;
	struct arena_block *block = arena->blocks;

	while (block != NULL) {
		struct arena_block *next = block->next;

		if (kept == NULL && block->size == arena->block_size) {
			kept = block;
			kept->next = NULL;
		} else {
			arena_free_block(arena, block);
		}
		block = next;
	}
#ifdef ARENA_IS_POISONED
	/* Another block, so that the old one's bytes stay forbidden. */
	if (kept != NULL) {
		arena_free_block(arena, kept);
		kept = arena_block_new(arena, arena->block_size);
	}
	if (kept != NULL)
		arena_poison(kept->bytes, kept->size - sizeof(*kept));
#endif
	arena->blocks = kept;
	arena->at = arena->only = kept != NULL ? kept->bytes : NULL;
	arena->end = kept != NULL ? (uint8_t *)kept + kept->size : NULL;
	arena->total_bytes = kept != NULL ? kept->size : 0;
}

void *
arena_alloc_slow(struct arena *arena, size_t size, size_t alignment)
{
	struct arena_block *block;
	size_t block_size = arena->block_size;
	bool is_own;

	/* Blocks begin aligned to 16, so a new one satisfies every alignment we promise. */
	assert(alignment <= 16);
	if (size == 0)
		return arena_nothing;
	if (size > SIZE_MAX / 2)
		return NULL;
#ifdef ARENA_IS_POISONED
	void *memory = arena_alloc_poisoned(arena, size);

	if (memory != NULL)
		return memory;
#endif
	is_own = size > (block_size - sizeof(*block)) / 4;
	if (is_own)
		block_size = size + sizeof(*block);
	block = arena_block_new(arena, block_size);
	if (block == NULL)
		return NULL;
	arena->total_bytes += block_size;
	arena->only = arena->blocks == NULL && !is_own ? block->bytes : NULL;
	if (is_own && arena->blocks != NULL) {
		/* A big one goes behind the newest, whose rest stays in use. */
		block->next = arena->blocks->next;
		arena->blocks->next = block;
		return block->bytes;
	}
	block->next = arena->blocks;
	arena->blocks = block;
	arena->end = (uint8_t *)block + block_size;
#ifdef ARENA_IS_POISONED
	if (!is_own) {
		arena->at = block->bytes;
		arena_poison(block->bytes, block_size - sizeof(*block));
		return arena_alloc_poisoned(arena, size);
	}
#endif
	arena->at = block->bytes + size;
	return block->bytes;
}

void
arena_trim(struct arena *arena, void *memory, size_t size, size_t used)
{
	uint8_t *at = memory;

	assert(used <= size);
#ifdef ARENA_IS_POISONED
	arena_poison(at + used, size - used);
	if (arena->at == arena_next(arena, at, size))
		arena->at = arena_next(arena, at, used);
#else
	if (arena->at == at + size)
		arena->at = at + used;
#endif
}

void *
arena_zalloc(struct arena *arena, size_t size)
{
	void *memory = arena_alloc(arena, size);

	if (memory != NULL)
		memset(memory, 0, size);
	return memory;
}

void *
arena_calloc(struct arena *arena, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return arena_zalloc(arena, total);
}

struct slice
arena_copy(struct arena *arena, struct slice slice)
{
	uint8_t *copy;

	if (slice_is_null(slice))
		return slice_null;
	copy = arena_alloc_bytes(arena, slice.size);
	if (copy == NULL)
		return slice_null;
	memcpy(copy, slice.data, slice.size);
	return slice_of(copy, slice.size);
}

char *
arena_strdup(struct arena *arena, const char *string)
{
	return arena_strndup(arena, string, strlen(string));
}

char *
arena_strndup(struct arena *arena, const char *string, size_t length)
{
	/* NULL with no length is what an empty buffer has. */
	size_t size = length == 0 ? 0 : strnlen(string, length);
	char *copy = arena_alloc_bytes(arena, size + 1);

	if (copy == NULL)
		return NULL;
	if (size != 0)
		memcpy(copy, string, size);
	copy[size] = '\0';
	return copy;
}

char *
arena_printf(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return NULL;
	text = arena_alloc_bytes(arena, (size_t)length + 1);
	if (text == NULL)
		return NULL;
	va_start(arguments, format);
	vsnprintf(text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	return text;
}
