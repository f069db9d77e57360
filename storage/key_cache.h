/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_KEY_CACHE_H
#define HELENUS_STORAGE_KEY_CACHE_H

/*
 * The key cache: (SSTable, partition key) -> where the partition begins in Data.db and where its
 * promoted index stands in Index.db, so that a repeated read skips Summary and Index. Bounded by bytes
 * (key_cache_size). Any thread; sharded, a lock for a look-up. Cassandra: KeyCacheKey, CacheService.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "storage/row.h"

/* One entry of Index.db (RowIndexEntry). */
struct index_entry {
	uint64_t data_position; /* of the partition in the uncompressed Data.db */
	uint64_t blocks_position; /* of the first IndexInfo in Index.db */
	uint64_t blocks_end; /* one behind the table of offsets, which stands at the end */
	uint32_t block_count; /* 0: the partition has no promoted index */
	uint32_t header_length; /* bytes of key, deletion and static row; block_count > 0 only */
	struct deletion deletion; /* of the partition; block_count > 0 only */
};

struct key_cache;

struct key_cache *key_cache_new(uint64_t capacity);
void key_cache_free(struct key_cache *cache); /* NULL is accepted */
void key_cache_set_capacity(struct key_cache *cache, uint64_t capacity);

/* `file`: an id that is unique among SSTables (chunk_cache_file_id()). `hash`: any hash of the key. */
bool key_cache_get(struct key_cache *cache, uint64_t file, struct slice key, uint64_t hash,
    struct index_entry *out);
/* Copies key and entry. Without memory nothing happens. */
void key_cache_put(struct key_cache *cache, uint64_t file, struct slice key, uint64_t hash,
    const struct index_entry *entry);
/* nodetool invalidatekeycache. Entries of a closed SSTable are not looked for: they age out. */
void key_cache_clear(struct key_cache *cache);

/*
 * Calls back for the entries, those of one shard after the other and sorted by file within, at most count_max. No lock is
 * held meanwhile. -1 of the callback ends it and is returned.
 */
typedef int (*key_cache_each_fn)(void *argument, uint64_t file, struct slice key,
    const struct index_entry *entry, struct error *err);
int key_cache_each(struct key_cache *cache, uint64_t count_max, key_cache_each_fn each,
    void *argument, struct error *err);

struct key_cache_stats {
	uint64_t capacity, bytes, entries, hits, misses;
};
void key_cache_stats(struct key_cache *cache, struct key_cache_stats *out);

#endif
