/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/entry_cache.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/lock.h"

enum { ENTRY_CACHE_SHARDS = 32, ENTRY_CACHE_BUCKETS_MIN = 64 };

struct entry_cache_shard {
	struct lock lock;

	/* Guarded by lock. */
	struct cached **buckets; /* owned; each entry in here is a reference of the cache's */
	size_t bucket_count;
	struct cached *newest, *oldest;
	uint64_t bytes, entries, hits, misses;
} __attribute__((aligned(64)));

struct entry_cache {
	atomic_ullong capacity;
	struct entry_cache_shard shards[ENTRY_CACHE_SHARDS];
};

struct entry_cache *
entry_cache_new(const char *name, int rank, uint64_t capacity)
{
	struct entry_cache *cache = aligned_alloc(64, sizeof(*cache));

	if (cache == NULL)
		abort();
	memset(cache, 0, sizeof(*cache));
	atomic_init(&cache->capacity, capacity);
	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		struct entry_cache_shard *shard = &cache->shards[i];

		lock_init(&shard->lock, name, rank);
		shard->bucket_count = ENTRY_CACHE_BUCKETS_MIN;
		shard->buckets = xcalloc(shard->bucket_count, sizeof(*shard->buckets));
	}
	return cache;
}

void
entry_cache_free(struct entry_cache *cache)
{
	if (cache == NULL)
		return;
	entry_cache_clear(cache);
	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		free(cache->shards[i].buckets);
		lock_fini(&cache->shards[i].lock);
	}
	free(cache);
}

uint64_t
entry_cache_capacity(const struct entry_cache *cache)
{
	return atomic_load_explicit(&cache->capacity, memory_order_relaxed);
}

/* ---- entries -------------------------------------------------------------------------------------- */

static uint64_t
entry_cache_mix(uint64_t owner, uint64_t hash)
{
	hash ^= owner * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 32;
	return hash * UINT64_C(0xd6e8feb86659fd93);
}

/* The upper bits of the mixed hash choose the shard, the lower ones the bucket. */
static struct entry_cache_shard *
entry_cache_shard(struct entry_cache *cache, uint32_t hash)
{
	return &cache->shards[hash >> 27];
}

static uint32_t
entry_cache_hash(uint64_t owner, uint64_t hash)
{
	return (uint32_t)(entry_cache_mix(owner, hash) >> 32);
}

struct cached *
entry_cache_make(uint64_t owner, struct slice key, uint64_t hash, uint32_t value_size)
{
	struct cached *entry;

	if (key.size > UINT32_MAX / 4 || value_size > UINT32_MAX / 4)
		return NULL;
	entry = malloc(sizeof(*entry) + value_size + key.size);
	if (entry == NULL)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	atomic_init(&entry->refs, 1);
	entry->owner = owner;
	entry->hash = entry_cache_hash(owner, hash);
	entry->value_size = value_size;
	entry->key_size = (uint32_t)key.size;
	memcpy(entry->value + value_size, key.data, key.size);
	return entry;
}

void
cached_unref(struct cached *entry)
{
	/* Acquire-release: the last one sees what all others did with it. */
	if (entry != NULL && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1)
		free(entry);
}

struct cached *
cached_ref(struct cached *entry)
{
	atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
	return entry;
}

/* With what malloc() adds. */
static uint64_t
entry_cache_size(const struct cached *entry)
{
	return (sizeof(*entry) + entry->value_size + entry->key_size + 8 + 15) & ~UINT64_C(15);
}

/* ---- a shard ------------------------------------------------------------------------------------------ */

static struct cached **
entry_cache_find_locked(
    struct entry_cache_shard *shard, uint64_t owner, uint32_t hash, struct slice key)
{
	struct cached **link = &shard->buckets[hash & (shard->bucket_count - 1)];

	lock_assert_held(&shard->lock);
	for (; *link != NULL; link = &(*link)->next_in_bucket) {
		const struct cached *entry = *link;

		if (entry->hash == hash && entry->owner == owner && entry->key_size == key.size &&
		    memcmp(entry->value + entry->value_size, key.data, key.size) == 0)
			break;
	}
	return link;
}

static void
entry_cache_unqueue_locked(struct entry_cache_shard *shard, struct cached *entry)
{
	*(entry->newer != NULL ? &entry->newer->older : &shard->newest) = entry->older;
	*(entry->older != NULL ? &entry->older->newer : &shard->oldest) = entry->newer;
}

static void
entry_cache_queue_locked(struct entry_cache_shard *shard, struct cached *entry)
{
	entry->newer = NULL;
	entry->older = shard->newest;
	*(shard->newest != NULL ? &shard->newest->newer : &shard->oldest) = entry;
	shard->newest = entry;
}

static void
entry_cache_unlink_locked(struct entry_cache_shard *shard, struct cached **link)
{
	struct cached *entry = *link;

	*link = entry->next_in_bucket;
	entry_cache_unqueue_locked(shard, entry);
	shard->bytes -= entry_cache_size(entry);
	shard->entries--;
	cached_unref(entry);
}

static void
entry_cache_evict_locked(struct entry_cache_shard *shard, uint64_t capacity)
{
	while (shard->bytes > capacity && shard->oldest != NULL) {
		struct cached *entry = shard->oldest;
		struct cached **link = &shard->buckets[entry->hash & (shard->bucket_count - 1)];

		if (entry->was_used) {
			entry->was_used = false;
			entry_cache_unqueue_locked(shard, entry);
			entry_cache_queue_locked(shard, entry);
			continue;
		}
		while (*link != entry)
			link = &(*link)->next_in_bucket;
		entry_cache_unlink_locked(shard, link);
	}
}

static void
entry_cache_grow_locked(struct entry_cache_shard *shard)
{
	size_t count = shard->bucket_count * 2;
	struct cached **buckets = calloc(count, sizeof(*buckets));

	if (buckets == NULL)
		return;
	for (struct cached *entry = shard->oldest; entry != NULL; entry = entry->newer) {
		entry->next_in_bucket = buckets[entry->hash & (count - 1)];
		buckets[entry->hash & (count - 1)] = entry;
	}
	free(shard->buckets);
	shard->buckets = buckets;
	shard->bucket_count = count;
}

/* Takes the reference over. What does not fit at all is dropped. */
static void
entry_cache_link_locked(
    struct entry_cache *cache, struct entry_cache_shard *shard, struct cached *entry)
{
	uint64_t capacity = entry_cache_capacity(cache) / ENTRY_CACHE_SHARDS;
	uint64_t size = entry_cache_size(entry);
	struct cached **bucket;

	if (size > capacity) {
		cached_unref(entry);
		return;
	}
	entry_cache_evict_locked(shard, capacity - size);
	if (shard->entries >= shard->bucket_count)
		entry_cache_grow_locked(shard);
	bucket = &shard->buckets[entry->hash & (shard->bucket_count - 1)];
	entry->next_in_bucket = *bucket;
	*bucket = entry;
	entry_cache_queue_locked(shard, entry);
	shard->bytes += size;
	shard->entries++;
}

/* ---- what the header promises ---------------------------------------------------------------------------- */

void
entry_cache_set_capacity(struct entry_cache *cache, uint64_t capacity)
{
	atomic_store_explicit(&cache->capacity, capacity, memory_order_relaxed);
	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		lock_take(&cache->shards[i].lock);
		entry_cache_evict_locked(&cache->shards[i], capacity / ENTRY_CACHE_SHARDS);
		lock_drop(&cache->shards[i].lock);
	}
}

struct cached *
entry_cache_get(struct entry_cache *cache, uint64_t owner, struct slice key, uint64_t hash)
{
	uint32_t mixed = entry_cache_hash(owner, hash);
	struct entry_cache_shard *shard = entry_cache_shard(cache, mixed);
	struct cached *entry;

	lock_take(&shard->lock);
	entry = *entry_cache_find_locked(shard, owner, mixed, key);
	if (entry != NULL && entry->is_promise)
		entry = NULL;
	if (entry != NULL) {
		entry->was_used = true;
		cached_ref(entry);
		shard->hits++;
	} else {
		shard->misses++;
	}
	lock_drop(&shard->lock);
	return entry;
}

struct cached *
entry_cache_get_or_promise(struct entry_cache *cache, uint64_t owner, struct slice key,
    uint64_t hash, struct cached **promise)
{
	uint32_t mixed = entry_cache_hash(owner, hash);
	struct entry_cache_shard *shard = entry_cache_shard(cache, mixed);
	struct cached *entry;

	*promise = NULL;
	lock_take(&shard->lock);
	entry = *entry_cache_find_locked(shard, owner, mixed, key);
	if (entry == NULL) {
		shard->misses++;
		*promise = entry_cache_make(owner, key, hash, 0);
		if (*promise != NULL) {
			(*promise)->is_promise = true;
			entry_cache_link_locked(cache, shard, cached_ref(*promise));
		}
	} else if (entry->is_promise) {
		shard->misses++;
		entry = NULL;
	} else {
		entry->was_used = true;
		cached_ref(entry);
		shard->hits++;
	}
	lock_drop(&shard->lock);
	return entry;
}

void
entry_cache_fulfil(struct entry_cache *cache, struct cached *promise, struct cached *entry)
{
	struct entry_cache_shard *shard = entry_cache_shard(cache, promise->hash);
	struct cached **link;

	lock_take(&shard->lock);
	link = entry_cache_find_locked(shard, promise->owner, promise->hash, cached_key(promise));
	if (*link == promise) {
		entry_cache_unlink_locked(shard, link);
		if (entry != NULL) {
			entry_cache_link_locked(cache, shard, entry);
			entry = NULL;
		}
	}
	lock_drop(&shard->lock);
	cached_unref(entry);
	cached_unref(promise);
}

void
entry_cache_put(struct entry_cache *cache, struct cached *entry, entry_cache_newer_fn is_newer)
{
	struct entry_cache_shard *shard = entry_cache_shard(cache, entry->hash);
	struct cached **link;

	lock_take(&shard->lock);
	link = entry_cache_find_locked(shard, entry->owner, entry->hash, cached_key(entry));
	if (*link == NULL || (*link)->is_promise || is_newer(*link, entry)) {
		if (*link != NULL)
			entry_cache_unlink_locked(shard, link);
		entry_cache_link_locked(cache, shard, entry);
		entry = NULL;
	}
	lock_drop(&shard->lock);
	cached_unref(entry);
}

void
entry_cache_renew(struct entry_cache *cache, struct cached *entry, entry_cache_newer_fn is_newer)
{
	struct entry_cache_shard *shard = entry_cache_shard(cache, entry->hash);
	struct cached **link;

	lock_take(&shard->lock);
	link = entry_cache_find_locked(shard, entry->owner, entry->hash, cached_key(entry));
	if (*link != NULL && (*link)->is_promise) {
		entry_cache_unlink_locked(shard, link);
	} else if (*link != NULL && is_newer(*link, entry)) {
		entry_cache_unlink_locked(shard, link);
		entry_cache_link_locked(cache, shard, entry);
		entry = NULL;
	}
	lock_drop(&shard->lock);
	cached_unref(entry);
}

void
entry_cache_remove(struct entry_cache *cache, uint64_t owner, struct slice key, uint64_t hash)
{
	uint32_t mixed = entry_cache_hash(owner, hash);
	struct entry_cache_shard *shard = entry_cache_shard(cache, mixed);
	struct cached **link;

	lock_take(&shard->lock);
	link = entry_cache_find_locked(shard, owner, mixed, key);
	if (*link != NULL)
		entry_cache_unlink_locked(shard, link);
	lock_drop(&shard->lock);
}

void
entry_cache_clear(struct entry_cache *cache)
{
	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		struct entry_cache_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		for (size_t k = 0; k < shard->bucket_count; k++)
			while (shard->buckets[k] != NULL)
				entry_cache_unlink_locked(shard, &shard->buckets[k]);
		lock_drop(&shard->lock);
	}
}

uint64_t
entry_cache_list(struct entry_cache *cache, struct cached **out, uint64_t count_max)
{
	uint64_t count = 0;

	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		struct entry_cache_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		for (struct cached *entry = shard->newest; entry != NULL && count < count_max;
		     entry = entry->older)
			if (!entry->is_promise)
				out[count++] = cached_ref(entry);
		lock_drop(&shard->lock);
	}
	return count;
}

void
entry_cache_stats(struct entry_cache *cache, struct entry_cache_stats *out)
{
	*out = (struct entry_cache_stats){.capacity = entry_cache_capacity(cache)};
	for (size_t i = 0; i < ENTRY_CACHE_SHARDS; i++) {
		struct entry_cache_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		out->bytes += shard->bytes;
		out->entries += shard->entries;
		out->hits += shard->hits;
		out->misses += shard->misses;
		lock_drop(&shard->lock);
	}
}
