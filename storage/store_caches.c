/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "storage/chunk_cache.h"
#include "storage/entry_cache.h"
#include "storage/key_cache.h"
#include "storage/store_internal.h"

/* What operators ask of the caches and change about them, and how often things happened lately. */

enum { CACHE_WINDOW_SECONDS = 15 * 60, TABLE_WINDOW_SECONDS = 5 * 60 };

static void
store_cache_stats(struct store *store, int which, struct store_cache_stats *out)
{
	struct chunk_cache_stats chunks;
	struct key_cache_stats keys;
	struct entry_cache_stats entries;

	switch (which) {
	case STORE_CACHE_KEYS:
		key_cache_stats(store->sstables.keys, &keys);
		*out = (struct store_cache_stats){.capacity_bytes = keys.capacity,
		    .size_bytes = keys.bytes,
		    .entries = keys.entries,
		    .hits = keys.hits,
		    .requests = keys.hits + keys.misses};
		break;
	case STORE_CACHE_CHUNKS:
		chunk_cache_stats(store->sstables.chunks, &chunks);
		*out = (struct store_cache_stats){.capacity_bytes = chunks.capacity,
		    .size_bytes = chunks.bytes,
		    .entries = chunks.entries,
		    .hits = chunks.hits,
		    .requests = chunks.hits + chunks.misses};
		break;
	default:
		entry_cache_stats(
		    which == STORE_CACHE_ROWS ? store->row_cache : store->counter_cache, &entries);
		*out = (struct store_cache_stats){.capacity_bytes = entries.capacity,
		    .size_bytes = entries.bytes,
		    .entries = entries.entries,
		    .hits = entries.hits,
		    .requests = entries.hits + entries.misses};
		break;
	}
	out->hits_per_second = meter_rate(&store->cache_rates[which].hits);
	out->requests_per_second = meter_rate(&store->cache_rates[which].requests);
}

void
store_tick_meters(struct store *store, double seconds)
{
	struct table_store **tables;
	uint32_t count;

	for (int which = 0; which < STORE_CACHES; which++) {
		struct store_cache_stats stats;

		store_cache_stats(store, which, &stats);
		meter_tick(
		    &store->cache_rates[which].hits, stats.hits, seconds, CACHE_WINDOW_SECONDS);
		meter_tick(&store->cache_rates[which].requests, stats.requests, seconds,
		    CACHE_WINDOW_SECONDS);
	}
	tables = store_tables(store, &count);
	for (uint32_t i = 0; i < count; i++) {
		struct table_stats *stats = &tables[i]->stats;

		meter_tick(
		    &stats->read_rate, atomic_load(&stats->reads), seconds, TABLE_WINDOW_SECONDS);
		meter_tick(
		    &stats->range_rate, atomic_load(&stats->ranges), seconds, TABLE_WINDOW_SECONDS);
		meter_tick(
		    &stats->write_rate, atomic_load(&stats->writes), seconds, TABLE_WINDOW_SECONDS);
	}
	free(tables);
}

void
store_key_cache_stats(struct store *store, struct store_cache_stats *out)
{
	store_cache_stats(store, STORE_CACHE_KEYS, out);
}

void
store_chunk_cache_stats(struct store *store, struct store_cache_stats *out)
{
	store_cache_stats(store, STORE_CACHE_CHUNKS, out);
}

void
store_row_cache_stats(struct store *store, struct store_cache_stats *out)
{
	store_cache_stats(store, STORE_CACHE_ROWS, out);
}

void
store_counter_cache_stats(struct store *store, struct store_cache_stats *out)
{
	store_cache_stats(store, STORE_CACHE_COUNTERS, out);
}

void
store_invalidate_key_cache(struct store *store)
{
	key_cache_clear(store->sstables.keys);
}

void
store_invalidate_row_cache(struct store *store)
{
	entry_cache_clear(store->row_cache);
}

void
store_invalidate_counter_cache(struct store *store)
{
	entry_cache_clear(store->counter_cache);
}

void
store_set_cache_keys_to_save(struct store *store, uint64_t keys, uint64_t rows, uint64_t counters)
{
	atomic_store(&store->cache_keys_to_save[0], keys);
	atomic_store(&store->cache_keys_to_save[1], rows);
	atomic_store(&store->cache_keys_to_save[2], counters);
}

void
store_set_cache_capacity(
    struct store *store, uint64_t key_bytes, uint64_t row_bytes, uint64_t counter_bytes)
{
	key_cache_set_capacity(store->sstables.keys, key_bytes);
	entry_cache_set_capacity(store->row_cache, row_bytes);
	entry_cache_set_capacity(store->counter_cache, counter_bytes);
}
