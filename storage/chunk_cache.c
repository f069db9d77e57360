/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/chunk_cache.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/lock.h"

enum { CHUNK_CACHE_SHARDS = 64, CHUNK_CACHE_BUCKETS_MIN = 64, RANK_CHUNK_CACHE = 80 };

struct chunk_shard {
	struct lock lock;

	/* Guarded by lock. */
	struct chunk **buckets; /* owned */
	size_t bucket_count; /* power of two */
	struct chunk *newest, *oldest;
	uint64_t bytes, entries;
	uint64_t hits, misses, evictions;
} __attribute__((aligned(64)));

struct chunk_cache {
	/* Relaxed: an insertion that sees the old value evicts a little late. */
	atomic_ullong capacity;
	atomic_ullong next_file;
	struct chunk_shard shards[CHUNK_CACHE_SHARDS];
};

struct chunk *
chunk_new(uint64_t file, uint64_t offset, uint32_t size)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk == NULL)
		return NULL;
	memset(chunk, 0, sizeof(*chunk));
	atomic_init(&chunk->refs, 1);
	chunk->file = file;
	chunk->offset = offset;
	chunk->size = size;
	return chunk;
}

void
chunk_unref(struct chunk *chunk)
{
	/* Release: what this reader did with the data is over before another thread frees it. */
	if (chunk != NULL && atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) == 1)
		free(chunk);
}

struct chunk_cache *
chunk_cache_new(uint64_t capacity)
{
	struct chunk_cache *cache = aligned_alloc(64, sizeof(*cache));

	if (cache == NULL)
		abort();
	memset(cache, 0, sizeof(*cache));
	atomic_init(&cache->capacity, capacity);
	atomic_init(&cache->next_file, 1);
	for (size_t i = 0; i < CHUNK_CACHE_SHARDS; i++) {
		struct chunk_shard *shard = &cache->shards[i];

		lock_init(&shard->lock, "chunk_cache", RANK_CHUNK_CACHE);
		shard->bucket_count = CHUNK_CACHE_BUCKETS_MIN;
		shard->buckets = xcalloc(shard->bucket_count, sizeof(struct chunk *));
	}
	return cache;
}

void
chunk_cache_free(struct chunk_cache *cache)
{
	if (cache == NULL)
		return;
	chunk_cache_clear(cache);
	for (size_t i = 0; i < CHUNK_CACHE_SHARDS; i++) {
		free(cache->shards[i].buckets);
		lock_fini(&cache->shards[i].lock);
	}
	free(cache);
}

void
chunk_cache_set_capacity(struct chunk_cache *cache, uint64_t capacity)
{
	atomic_store_explicit(&cache->capacity, capacity, memory_order_relaxed);
}

uint64_t
chunk_cache_file_id(struct chunk_cache *cache)
{
	return atomic_fetch_add_explicit(&cache->next_file, 1, memory_order_relaxed);
}

static uint64_t
chunk_cache_hash(uint64_t file, uint64_t offset)
{
	uint64_t hash = (file * UINT64_C(0x9e3779b97f4a7c15)) ^ offset;

	hash ^= hash >> 32;
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ (hash >> 29);
}

static struct chunk_shard *
chunk_cache_shard(struct chunk_cache *cache, uint64_t hash)
{
	return &cache->shards[hash >> 58];
}

static struct chunk **
chunk_shard_find_locked(struct chunk_shard *shard, uint64_t hash, uint64_t file, uint64_t offset)
{
	struct chunk **link = &shard->buckets[hash & (shard->bucket_count - 1)];

	lock_assert_held(&shard->lock);
	while (*link != NULL && ((*link)->file != file || (*link)->offset != offset))
		link = &(*link)->next_in_bucket;
	return link;
}

struct chunk *
chunk_cache_get(struct chunk_cache *cache, uint64_t file, uint64_t offset)
{
	uint64_t hash = chunk_cache_hash(file, offset);
	struct chunk_shard *shard = chunk_cache_shard(cache, hash);
	struct chunk *chunk;

	lock_take(&shard->lock);
	chunk = *chunk_shard_find_locked(shard, hash, file, offset);
	if (chunk != NULL) {
		chunk_ref(chunk);
		chunk->was_used = true;
		shard->hits++;
	} else {
		shard->misses++;
	}
	lock_drop(&shard->lock);
	return chunk;
}

static void
chunk_shard_unqueue_locked(struct chunk_shard *shard, struct chunk *chunk)
{
	*(chunk->newer != NULL ? &chunk->newer->older : &shard->newest) = chunk->older;
	*(chunk->older != NULL ? &chunk->older->newer : &shard->oldest) = chunk->newer;
	chunk->newer = chunk->older = NULL;
}

static void
chunk_shard_queue_locked(struct chunk_shard *shard, struct chunk *chunk)
{
	chunk->newer = NULL;
	chunk->older = shard->newest;
	*(shard->newest != NULL ? &shard->newest->newer : &shard->oldest) = chunk;
	shard->newest = chunk;
}

/* Take it out of the shard; the cache's reference goes to the list *gone (dropped without the lock). */
static void
chunk_shard_remove_locked(struct chunk_shard *shard, struct chunk *chunk, struct chunk **gone)
{
	uint64_t hash = chunk_cache_hash(chunk->file, chunk->offset);
	struct chunk **link = chunk_shard_find_locked(shard, hash, chunk->file, chunk->offset);

	*link = chunk->next_in_bucket;
	chunk_shard_unqueue_locked(shard, chunk);
	shard->bytes -= chunk->size;
	shard->entries--;
	chunk->next_in_bucket = *gone;
	*gone = chunk;
}

static void
chunk_cache_drop_list(struct chunk *gone)
{
	while (gone != NULL) {
		struct chunk *next = gone->next_in_bucket;

		gone->next_in_bucket = NULL;
		chunk_unref(gone);
		gone = next;
	}
}

static void
chunk_shard_evict_locked(struct chunk_shard *shard, uint64_t capacity, struct chunk **gone)
{
	while (shard->bytes > capacity && shard->oldest != NULL) {
		struct chunk *chunk = shard->oldest;

		if (chunk->was_used) {
			chunk->was_used = false;
			chunk_shard_unqueue_locked(shard, chunk);
			chunk_shard_queue_locked(shard, chunk);
			continue;
		}
		chunk_shard_remove_locked(shard, chunk, gone);
		shard->evictions++;
	}
}

static void
chunk_shard_grow_locked(struct chunk_shard *shard)
{
	size_t count = shard->bucket_count * 2;
	struct chunk **buckets = calloc(count, sizeof(struct chunk *));

	if (buckets == NULL)
		return; /* longer chains, nothing worse */
	for (struct chunk *chunk = shard->oldest; chunk != NULL; chunk = chunk->newer) {
		uint64_t hash = chunk_cache_hash(chunk->file, chunk->offset);

		chunk->next_in_bucket = buckets[hash & (count - 1)];
		buckets[hash & (count - 1)] = chunk;
	}
	free(shard->buckets);
	shard->buckets = buckets;
	shard->bucket_count = count;
}

struct chunk *
chunk_cache_put(struct chunk_cache *cache, struct chunk *chunk)
{
	uint64_t hash = chunk_cache_hash(chunk->file, chunk->offset);
	struct chunk_shard *shard = chunk_cache_shard(cache, hash);
	uint64_t capacity =
	    atomic_load_explicit(&cache->capacity, memory_order_relaxed) / CHUNK_CACHE_SHARDS;
	struct chunk *gone = NULL;
	struct chunk **link, *other;

	/* A small cache keeps at least one chunk a shard, unless it is off. */
	if (capacity == 0)
		return chunk;
	lock_take(&shard->lock);
	link = chunk_shard_find_locked(shard, hash, chunk->file, chunk->offset);
	other = *link;
	if (other != NULL) {
		chunk_ref(other);
		lock_drop(&shard->lock);
		chunk_unref(chunk);
		return other;
	}
	if (shard->bytes + chunk->size > capacity)
		chunk_shard_evict_locked(
		    shard, capacity > chunk->size ? capacity - chunk->size : 0, &gone);
	if (shard->entries >= shard->bucket_count)
		chunk_shard_grow_locked(shard);
	link = &shard->buckets[hash & (shard->bucket_count - 1)];
	chunk_ref(chunk);
	chunk->next_in_bucket = *link;
	*link = chunk;
	chunk_shard_queue_locked(shard, chunk);
	shard->bytes += chunk->size;
	shard->entries++;
	lock_drop(&shard->lock);
	chunk_cache_drop_list(gone);
	return chunk;
}

static void
chunk_cache_drop(struct chunk_cache *cache, bool is_all, uint64_t file)
{
	for (size_t i = 0; i < CHUNK_CACHE_SHARDS; i++) {
		struct chunk_shard *shard = &cache->shards[i];
		struct chunk *gone = NULL;
		struct chunk *newer;

		lock_take(&shard->lock);
		for (struct chunk *chunk = shard->oldest; chunk != NULL; chunk = newer) {
			newer = chunk->newer;
			if (is_all || chunk->file == file)
				chunk_shard_remove_locked(shard, chunk, &gone);
		}
		lock_drop(&shard->lock);
		chunk_cache_drop_list(gone);
	}
}

void
chunk_cache_drop_file(struct chunk_cache *cache, uint64_t file)
{
	chunk_cache_drop(cache, false, file);
}

void
chunk_cache_clear(struct chunk_cache *cache)
{
	chunk_cache_drop(cache, true, 0);
}

void
chunk_cache_stats(struct chunk_cache *cache, struct chunk_cache_stats *out)
{
	*out = (struct chunk_cache_stats){
	    .capacity = atomic_load_explicit(&cache->capacity, memory_order_relaxed)};
	for (size_t i = 0; i < CHUNK_CACHE_SHARDS; i++) {
		struct chunk_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		out->bytes += shard->bytes;
		out->entries += shard->entries;
		out->hits += shard->hits;
		out->misses += shard->misses;
		out->evictions += shard->evictions;
		lock_drop(&shard->lock);
	}
}
