/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/key_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/lock.h"

enum {
	KEY_CACHE_SHARDS = 32,
	KEY_CACHE_BUCKETS_MIN = 64,
	KEY_CACHE_ADMIT = 8,
	RANK_KEY_CACHE = 81
};

/*
 * A node is as small as can be, since the cache is bounded by bytes: where a partition has no promoted
 * index (most have none) only its position is kept. Behind the node: uint64_t position, or a whole struct
 * index_entry; then the key.
 */
struct key_cache_node {
	struct key_cache_node *next_in_bucket;
	struct key_cache_node *newer, *older;
	uint64_t file;
	uint32_t hash;
	uint16_t key_size;
	bool was_used;
	bool has_blocks;
	uint8_t bytes[];
};

struct key_cache_shard {
	struct lock lock;

	/* Guarded by lock. */
	struct key_cache_node **buckets; /* owned */
	size_t bucket_count;
	struct key_cache_node *newest, *oldest; /* second-chance queue */
	uint64_t bytes, entries, hits, misses;
	uint64_t refusals; /* since the last entry that was taken into a full shard */
} __attribute__((aligned(64)));

struct key_cache {
	atomic_ullong capacity; /* relaxed, as in chunk_cache.c */
	struct key_cache_shard shards[KEY_CACHE_SHARDS];
};

struct key_cache *
key_cache_new(uint64_t capacity)
{
	struct key_cache *cache = aligned_alloc(64, sizeof(*cache));

	if (cache == NULL)
		abort();
	memset(cache, 0, sizeof(*cache));
	atomic_init(&cache->capacity, capacity);
	for (size_t i = 0; i < KEY_CACHE_SHARDS; i++) {
		struct key_cache_shard *shard = &cache->shards[i];

		lock_init(&shard->lock, "key_cache", RANK_KEY_CACHE);
		shard->bucket_count = KEY_CACHE_BUCKETS_MIN;
		shard->buckets = xcalloc(shard->bucket_count, sizeof(*shard->buckets));
	}
	return cache;
}

void
key_cache_free(struct key_cache *cache)
{
	if (cache == NULL)
		return;
	key_cache_clear(cache);
	for (size_t i = 0; i < KEY_CACHE_SHARDS; i++) {
		free(cache->shards[i].buckets);
		lock_fini(&cache->shards[i].lock);
	}
	free(cache);
}

void
key_cache_set_capacity(struct key_cache *cache, uint64_t capacity)
{
	atomic_store_explicit(&cache->capacity, capacity, memory_order_relaxed);
}

/* The same key stands in several SSTables: the file takes part in the hash. */
static uint64_t
key_cache_mix(uint64_t file, uint64_t hash)
{
	hash ^= file * UINT64_C(0x9e3779b97f4a7c15);
	hash ^= hash >> 32;
	return hash * UINT64_C(0xd6e8feb86659fd93);
}

static size_t
key_cache_entry_size(bool has_blocks)
{
	return has_blocks ? sizeof(struct index_entry) : sizeof(uint64_t);
}

static const uint8_t *
key_cache_node_key(const struct key_cache_node *node)
{
	return node->bytes + key_cache_entry_size(node->has_blocks);
}

static struct key_cache_node **
key_cache_find_locked(
    struct key_cache_shard *shard, uint64_t mixed, uint64_t file, struct slice key)
{
	struct key_cache_node **link = &shard->buckets[mixed & (shard->bucket_count - 1)];

	lock_assert_held(&shard->lock);
	for (; *link != NULL; link = &(*link)->next_in_bucket) {
		const struct key_cache_node *node = *link;

		if (node->hash == (uint32_t)mixed && node->file == file &&
		    node->key_size == key.size &&
		    memcmp(key_cache_node_key(node), key.data, key.size) == 0)
			break;
	}
	return link;
}

static struct key_cache_shard *
key_cache_shard(struct key_cache *cache, uint64_t mixed)
{
	return &cache->shards[mixed >> 59];
}

bool
key_cache_get(struct key_cache *cache, uint64_t file, struct slice key, uint64_t hash,
    struct index_entry *out)
{
	uint64_t mixed = key_cache_mix(file, hash);
	struct key_cache_shard *shard = key_cache_shard(cache, mixed);
	struct key_cache_node *node;

	lock_take(&shard->lock);
	node = *key_cache_find_locked(shard, mixed, file, key);
	if (node != NULL) {
		node->was_used = true;
		*out = (struct index_entry){.deletion = DELETION_LIVE};
		if (node->has_blocks)
			memcpy(out, node->bytes, sizeof(*out));
		else
			memcpy(&out->data_position, node->bytes, sizeof(uint64_t));
		shard->hits++;
	} else {
		shard->misses++;
	}
	lock_drop(&shard->lock);
	return node != NULL;
}

/* With what malloc() adds. */
static uint64_t
key_cache_node_size(bool has_blocks, size_t key_size)
{
	return (sizeof(struct key_cache_node) + key_cache_entry_size(has_blocks) + key_size + 8 +
		   15) &
	    ~UINT64_C(15);
}

static void
key_cache_unqueue_locked(struct key_cache_shard *shard, struct key_cache_node *node)
{
	*(node->newer != NULL ? &node->newer->older : &shard->newest) = node->older;
	*(node->older != NULL ? &node->older->newer : &shard->oldest) = node->newer;
}

static void
key_cache_queue_locked(struct key_cache_shard *shard, struct key_cache_node *node)
{
	node->newer = NULL;
	node->older = shard->newest;
	*(shard->newest != NULL ? &shard->newest->newer : &shard->oldest) = node;
	shard->newest = node;
}

static void
key_cache_remove_locked(struct key_cache_shard *shard, struct key_cache_node *node)
{
	struct key_cache_node **link = &shard->buckets[node->hash & (shard->bucket_count - 1)];

	while (*link != node)
		link = &(*link)->next_in_bucket;
	*link = node->next_in_bucket;
	key_cache_unqueue_locked(shard, node);
	shard->bytes -= key_cache_node_size(node->has_blocks, node->key_size);
	shard->entries--;
	free(node);
}

static void
key_cache_evict_locked(struct key_cache_shard *shard, uint64_t capacity)
{
	while (shard->bytes > capacity && shard->oldest != NULL) {
		struct key_cache_node *node = shard->oldest;

		if (node->was_used) {
			node->was_used = false;
			key_cache_unqueue_locked(shard, node);
			key_cache_queue_locked(shard, node);
			continue;
		}
		key_cache_remove_locked(shard, node);
	}
}

static void
key_cache_grow_locked(struct key_cache_shard *shard)
{
	size_t count = shard->bucket_count * 2;
	struct key_cache_node **buckets = calloc(count, sizeof(*buckets));

	if (buckets == NULL)
		return;
	for (struct key_cache_node *node = shard->oldest; node != NULL; node = node->newer) {
		node->next_in_bucket = buckets[node->hash & (count - 1)];
		buckets[node->hash & (count - 1)] = node;
	}
	free(shard->buckets);
	shard->buckets = buckets;
	shard->bucket_count = count;
}

void
key_cache_put(struct key_cache *cache, uint64_t file, struct slice key, uint64_t hash,
    const struct index_entry *entry)
{
	uint64_t mixed = key_cache_mix(file, hash);
	struct key_cache_shard *shard = key_cache_shard(cache, mixed);
	uint64_t capacity =
	    atomic_load_explicit(&cache->capacity, memory_order_relaxed) / KEY_CACHE_SHARDS;
	bool has_blocks = entry->block_count > 0;
	uint64_t size = key_cache_node_size(has_blocks, key.size);
	struct key_cache_node *node;

	if (size > capacity || key.size > UINT16_MAX)
		return;
	/* When all is full one in eight gets in: keys that are read often do in the end, and uniform reads of
	 * more keys than fit do not spend their time on throwing each other out. */
	lock_take(&shard->lock);
	if (shard->bytes + size > capacity && ++shard->refusals < KEY_CACHE_ADMIT) {
		lock_drop(&shard->lock);
		return;
	}
	lock_drop(&shard->lock);
	node = malloc(sizeof(*node) + key_cache_entry_size(has_blocks) + key.size);
	if (node == NULL)
		return;
	*node = (struct key_cache_node){.file = file,
	    .hash = (uint32_t)mixed,
	    .key_size = (uint16_t)key.size,
	    .has_blocks = has_blocks};
	if (has_blocks)
		memcpy(node->bytes, entry, sizeof(*entry));
	else
		memcpy(node->bytes, &entry->data_position, sizeof(uint64_t));
	memcpy(node->bytes + key_cache_entry_size(has_blocks), key.data, key.size);
	lock_take(&shard->lock);
	if (*key_cache_find_locked(shard, mixed, file, key) != NULL) {
		lock_drop(&shard->lock);
		free(node);
		return;
	}
	if (shard->bytes + size > capacity)
		shard->refusals = 0;
	key_cache_evict_locked(shard, capacity - size);
	if (shard->entries >= shard->bucket_count)
		key_cache_grow_locked(shard);
	node->next_in_bucket = shard->buckets[mixed & (shard->bucket_count - 1)];
	shard->buckets[mixed & (shard->bucket_count - 1)] = node;
	key_cache_queue_locked(shard, node);
	shard->bytes += size;
	shard->entries++;
	lock_drop(&shard->lock);
}

void
key_cache_clear(struct key_cache *cache)
{
	for (size_t i = 0; i < KEY_CACHE_SHARDS; i++) {
		struct key_cache_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		while (shard->oldest != NULL)
			key_cache_remove_locked(shard, shard->oldest);
		lock_drop(&shard->lock);
	}
}

void
key_cache_stats(struct key_cache *cache, struct key_cache_stats *out)
{
	*out = (struct key_cache_stats){
	    .capacity = atomic_load_explicit(&cache->capacity, memory_order_relaxed)};
	for (size_t i = 0; i < KEY_CACHE_SHARDS; i++) {
		struct key_cache_shard *shard = &cache->shards[i];

		lock_take(&shard->lock);
		out->bytes += shard->bytes;
		out->entries += shard->entries;
		out->hits += shard->hits;
		out->misses += shard->misses;
		lock_drop(&shard->lock);
	}
}

static int
key_cache_compare_files(const void *a, const void *b)
{
	const struct key_cache_node *left = *(struct key_cache_node *const *)a;
	const struct key_cache_node *right = *(struct key_cache_node *const *)b;

	return left->file < right->file ? -1 : left->file > right->file;
}

/* Copies of a shard's nodes, newest first; heap, as each of them. */
static struct key_cache_node **
key_cache_copy_shard(struct key_cache_shard *shard, uint64_t count_max, size_t *count)
{
	struct key_cache_node **copies;

	*count = 0;
	lock_take(&shard->lock);
	copies = calloc(shard->entries + 1, sizeof(*copies));
	for (const struct key_cache_node *node = shard->newest;
	     copies != NULL && node != NULL && *count < count_max; node = node->older) {
		size_t size =
		    sizeof(*node) + key_cache_entry_size(node->has_blocks) + node->key_size;
		struct key_cache_node *copy = malloc(size);

		if (copy == NULL)
			break;
		memcpy(copy, node, size);
		copies[(*count)++] = copy;
	}
	lock_drop(&shard->lock);
	return copies;
}

int
key_cache_each(struct key_cache *cache, uint64_t count_max, key_cache_each_fn each, void *argument,
    struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < KEY_CACHE_SHARDS && rc == 0; i++) {
		struct key_cache_node **copies;
		size_t count;

		copies = key_cache_copy_shard(&cache->shards[i],
		    count_max / KEY_CACHE_SHARDS + (i < count_max % KEY_CACHE_SHARDS), &count);
		if (copies != NULL)
			qsort(copies, count, sizeof(struct key_cache_node *),
			    key_cache_compare_files);
		for (size_t k = 0; k < count; k++) {
			const struct key_cache_node *node = copies[k];
			struct index_entry entry = {.deletion = DELETION_LIVE};

			if (node->has_blocks)
				memcpy(&entry, node->bytes, sizeof(entry));
			else
				memcpy(&entry.data_position, node->bytes, sizeof(uint64_t));
			if (rc == 0)
				rc = each(argument, node->file,
				    slice_of(key_cache_node_key(node), node->key_size), &entry,
				    err);
			free(copies[k]);
		}
		free(copies);
	}
	return rc;
}
