/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_CHUNK_CACHE_H
#define HELENUS_STORAGE_CHUNK_CACHE_H

/*
 * Chunks of files as readers see them (uncompressed, checksums verified), shared by all readers of a
 * store and bounded by file_cache_size (Cassandra's ChunkCache). Any thread. Each chunk counts its
 * references: one of the cache while it is in there, one of each reader that points into it; memory is
 * freed with the last. Sharded by hash; a shard's lock is held for a look-up or a link only, never
 * over I/O. Eviction is a queue with a second chance for what was used since it was queued.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk {
	atomic_uint refs;
	uint32_t size; /* bytes of data */
	uint64_t file;
	uint64_t offset; /* in the uncompressed file */

	/* Guarded by the shard's lock. */
	struct chunk *next_in_bucket;
	struct chunk *newer, *older; /* the shard's queue */
	bool was_used;
	uint8_t data[];
};

/* One reference; NULL without memory. Also for readers that bypass the cache. */
struct chunk *chunk_new(uint64_t file, uint64_t offset, uint32_t size);
static inline struct chunk *
chunk_ref(struct chunk *chunk)
{
	/* The caller has a reference, so the count cannot meanwhile reach zero. */
	atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
	return chunk;
}
/* NULL is accepted. */
void chunk_unref(struct chunk *chunk);

struct chunk_cache;

/* `capacity`: bytes of chunk data to keep; 0 keeps nothing. */
struct chunk_cache *chunk_cache_new(uint64_t capacity);
/* No reader may be left that will ask it; chunks that are pinned live on. NULL is accepted. */
void chunk_cache_free(struct chunk_cache *cache);
/* Takes effect at the next insertions. */
void chunk_cache_set_capacity(struct chunk_cache *cache, uint64_t capacity);

/* A number that no other file of this cache has or had. */
uint64_t chunk_cache_file_id(struct chunk_cache *cache);

/* With a reference for the caller, or NULL. */
struct chunk *chunk_cache_get(struct chunk_cache *cache, uint64_t file, uint64_t offset);
/*
 * Put what was read after a miss. Takes the caller's reference and gives one back: to `chunk`, or to
 * the equal one that another reader put in meanwhile.
 */
struct chunk *chunk_cache_put(struct chunk_cache *cache, struct chunk *chunk);
/* Forget all chunks of a file that is going away. */
void chunk_cache_drop_file(struct chunk_cache *cache, uint64_t file);
/* Forget everything (nodetool). */
void chunk_cache_clear(struct chunk_cache *cache);

struct chunk_cache_stats {
	uint64_t capacity, bytes, entries;
	uint64_t hits, misses, evictions; /* relaxed */
};
void chunk_cache_stats(struct chunk_cache *cache, struct chunk_cache_stats *out);

#endif
