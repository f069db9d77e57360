/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ENTRY_CACHE_H
#define HELENUS_STORAGE_ENTRY_CACHE_H

/*
 * A cache of small immutable values by (owner, key): what the row cache and the counter cache are made of. Bounded
 * by bytes; sharded, a lock for a look-up; eviction is a queue with a second chance, as in key_cache.c. A reader holds a
 * reference to the entry it works on. Any thread. The owner is a number that a table has for a while: a new number
 * and nothing of before is found any more.
 *
 * A value that is made from data which others may change meanwhile is put with a promise:
 *
 *     reader                                      writer
 *     entry_cache_get_or_promise(): a miss        changes the data
 *     reads the data, makes the value             entry_cache_remove()
 *     entry_cache_fulfil(): put only if the       answers
 *        promise is still there
 *
 * Whoever reads after the writer's answer finds no value that was made before the change: either the data was read
 * after it, or the removal took the promise, or the value itself, away.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"

struct cached {
	atomic_uint refs;
	uint32_t hash;
	uint64_t owner;
	uint32_t value_size, key_size;
	bool is_promise; /* no value yet */
	bool was_used;
	struct cached *next_in_bucket, *newer, *older; /* guarded by the shard's lock */
	_Alignas(16) uint8_t value[]; /* value_size bytes, then the key */
};

struct entry_cache;

/* capacity 0: nothing is taken. rank: of the shards' locks. */
struct entry_cache *entry_cache_new(const char *name, int rank, uint64_t capacity);
void entry_cache_free(struct entry_cache *cache); /* NULL is accepted; nobody holds an entry */
void entry_cache_set_capacity(struct entry_cache *cache, uint64_t capacity);
uint64_t entry_cache_capacity(const struct entry_cache *cache);

/* One reference for the caller; the value is the caller's to fill before it is put. NULL: no memory. */
struct cached *
entry_cache_make(uint64_t owner, struct slice key, uint64_t hash, uint32_t value_size);
struct cached *cached_ref(struct cached *entry);
void cached_unref(struct cached *entry); /* accepts NULL */

/* A reference to what is there, never to a promise; NULL: nothing. Counts a hit or a miss. */
struct cached *
entry_cache_get(struct entry_cache *cache, uint64_t owner, struct slice key, uint64_t hash);
/*
 * The same, and a miss leaves a promise: *promise is then a reference that entry_cache_fulfil() takes. NULL in both: somebody
 * else has promised, or there is no memory.
 */
struct cached *entry_cache_get_or_promise(struct entry_cache *cache, uint64_t owner,
    struct slice key, uint64_t hash, struct cached **promise);
/* Put `entry` (its reference is taken over; NULL: nothing came of it) where the promise stands, if it still does. */
void entry_cache_fulfil(struct entry_cache *cache, struct cached *promise, struct cached *entry);
/* Put it, in place of a promise, and of a value where `is_newer` says so; the reference is taken over. */
typedef bool (*entry_cache_newer_fn)(const struct cached *old, const struct cached *entry);
void
entry_cache_put(struct entry_cache *cache, struct cached *entry, entry_cache_newer_fn is_newer);
/*
 * Put it in place of a value where `is_newer` says so, and nowhere else; a promise is taken away. The reference is taken
 * over.
 */
void
entry_cache_renew(struct entry_cache *cache, struct cached *entry, entry_cache_newer_fn is_newer);
void entry_cache_remove(struct entry_cache *cache, uint64_t owner, struct slice key, uint64_t hash);
void entry_cache_clear(struct entry_cache *cache);

/* References to at most `count_max` entries, newest of each shard first; the caller drops each. Returns how many. */
uint64_t entry_cache_list(struct entry_cache *cache, struct cached **out, uint64_t count_max);

static inline struct slice
cached_key(const struct cached *entry)
{
	return slice_of(entry->value + entry->value_size, entry->key_size);
}

struct entry_cache_stats {
	uint64_t capacity, bytes, entries, hits, misses;
};
void entry_cache_stats(struct entry_cache *cache, struct entry_cache_stats *out);

#endif
