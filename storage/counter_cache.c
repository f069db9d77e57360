/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/counter_cache.h"
#include <stdlib.h>
#include "base/hash.h"
#include "storage/counter.h"
#include "storage/entry_cache.h"
#include "storage/store_internal.h"

/*
 * The counter cache: for counters that this node has led, the shard that it wrote last, so that the next increment need
 * not be read before it is written. Filled by what this node leads. What others send, as repairs and hints do, may have
 * a shard of long ago: it renews what is cached where it has the higher clock, and where nothing is cached it is not
 * kept, or the next increment would begin with it. A deletion in a counter table makes the whole table another owner. Key: the partition key, the
 * row's position (a static row has none), the column's name, each with its length. Cassandra: CounterCacheKey.
 */
struct counter_cached {
	int64_t clock, count;
};

static int
counter_cache_key(struct slice key, const struct row *row, const struct column_metadata *column,
    struct buffer *out, uint64_t *hash, struct error *err)
{
	struct slice position = row->is_static ? slice_empty : row->position;

	buffer_clear(out);
	buffer_put_u32(out, (uint32_t)key.size);
	buffer_put(out, key.data, key.size);
	buffer_put_u32(out, (uint32_t)position.size);
	buffer_put(out, position.data, position.size);
	buffer_put_u8(out, row->is_static);
	buffer_put(out, column->name.data, column->name.size);
	if (buffer_check(out, err) != 0)
		return -1;
	*hash = hash_bytes(buffer_slice(out));
	return 0;
}

/* The parts of such a key again; false: it is none. */
bool
counter_cache_parse_key(struct slice bytes, struct slice *key, struct slice *position,
    bool *is_static, struct slice *column)
{
	struct reader reader = reader_of(bytes);

	*key = reader_bytes(&reader, reader_u32(&reader));
	*position = reader_bytes(&reader, reader_u32(&reader));
	*is_static = reader_u8(&reader) != 0;
	*column = reader_bytes(&reader, reader_left(&reader));
	return !reader.is_failed;
}

bool
store_counter_cached(struct store *store, struct table_store *table, struct slice key,
    const struct row *row, const struct column_metadata *column, int64_t *clock, int64_t *count)
{
	struct cached *entry = NULL;
	struct buffer bytes;
	uint64_t hash;

	if (entry_cache_capacity(store->counter_cache) == 0)
		return false;
	buffer_init(&bytes);
	if (counter_cache_key(key, row, column, &bytes, &hash, NULL) == 0)
		entry = entry_cache_get(store->counter_cache,
		    atomic_load(&table->counter_cache_owner), buffer_slice(&bytes), hash);
	buffer_fini(&bytes);
	if (entry == NULL)
		return false;
	*clock = ((const struct counter_cached *)(const void *)entry->value)->clock;
	*count = ((const struct counter_cached *)(const void *)entry->value)->count;
	cached_unref(entry);
	return true;
}

static bool
counter_cache_is_newer(const struct cached *old, const struct cached *entry)
{
	return ((const struct counter_cached *)(const void *)entry->value)->clock >
	    ((const struct counter_cached *)(const void *)old->value)->clock;
}

static void
counter_cache_note_row(struct store *store, uint64_t owner, struct slice key, const struct row *row,
    bool leads, struct buffer *scratch)
{
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];
		struct counter_shard shard;
		struct cached *entry;
		uint64_t hash;

		if (!counter_find(cell->value, &store->host_id, &shard) ||
		    counter_cache_key(key, row, cell->column, scratch, &hash, NULL) != 0)
			continue;
		entry = entry_cache_make(
		    owner, buffer_slice(scratch), hash, sizeof(struct counter_cached));
		if (entry == NULL)
			continue;
		*(struct counter_cached *)(void *)entry->value =
		    (struct counter_cached){shard.clock, shard.count};
		if (leads)
			entry_cache_put(store->counter_cache, entry, counter_cache_is_newer);
		else
			entry_cache_renew(store->counter_cache, entry, counter_cache_is_newer);
	}
}

static bool
counter_cache_row_deletes(const struct row *row)
{
	if (!deletion_is_live(row->deletion) || row->complex_deletion_count > 0)
		return true;
	for (uint32_t i = 0; i < row->cell_count; i++)
		if (cell_is_tombstone(&row->cells[i]))
			return true;
	return false;
}

static bool
counter_cache_deletes(const struct partition_update *update)
{
	bool deletes = !deletion_is_live(update->deletion) || update->tombstone_count > 0 ||
	    (update->static_row != NULL && counter_cache_row_deletes(update->static_row));

	for (uint32_t i = 0; i < update->row_count && !deletes; i++)
		deletes = counter_cache_row_deletes(&update->rows[i]);
	return deletes;
}

void
counter_cache_note(struct table_store *table, const struct partition_update *update, bool leads)
{
	struct store *store = table->store;
	struct buffer scratch;
	uint64_t owner;

	if (counter_cache_deletes(update)) {
		counter_cache_forget_table(table);
		return;
	}
	if (entry_cache_capacity(store->counter_cache) == 0 || !atomic_load(&store->has_host_id))
		return;
	owner = atomic_load(&table->counter_cache_owner);
	buffer_init(&scratch);
	if (update->static_row != NULL)
		counter_cache_note_row(
		    store, owner, update->key, update->static_row, leads, &scratch);
	for (uint32_t i = 0; i < update->row_count; i++)
		counter_cache_note_row(
		    store, owner, update->key, &update->rows[i], leads, &scratch);
	buffer_fini(&scratch);
}

void
counter_cache_forget_table(struct table_store *table)
{
	atomic_store(&table->counter_cache_owner, atomic_fetch_add(&table->store->cache_owners, 1));
}

/* ---- loading --------------------------------------------------------------------------------------- */

/* This node's shard of the counter as it is now; {0, 0} in a counter that is not there. */
static int
counter_cache_read(struct table_store *table, struct slice key, struct slice position,
    bool is_static, struct slice column, struct counter_shard *shard, struct error *err)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	struct clustering_slice slice;
	struct read_command command = {.table = metadata,
	    .key = key,
	    .token = murmur3_token(key),
	    .clustering.with_static = is_static,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = 1,
	    .now_seconds = env_wall_us(table->store->env) / 1000000};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row live;
	struct arena arena;
	int rc;

	*shard = (struct counter_shard){.clock = 0, .count = 0};
	arena_init(&arena, 4096);
	if (!is_static && position.size > 0) {
		slice.start = position_beside(position, false, &arena);
		slice.end = position_beside(position, true, &arena);
		if (slice_is_null(slice.start) || slice_is_null(slice.end)) {
			arena_fini(&arena);
			return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
		}
		command.clustering.slices = &slice;
		command.clustering.slice_count = 1;
		command.clustering.is_names = true;
	}
	rc = store_read(table->store, &command, &arena, &partitions, err);
	if (rc == 0) {
		const struct row *row;

		live_reader_init(&reader, &command, partitions, &arena);
		rc = live_reader_next(&reader, &live, err);
		row = rc <= 0 ? NULL : is_static ? live.static_row : live.row;
		for (uint32_t i = 0; row != NULL && i < row->cell_count; i++)
			if (slice_equal(row->cells[i].column->name, column))
				(void)counter_find(
				    row->cells[i].value, &table->store->host_id, shard);
		live_reader_fini(&reader);
	}
	arena_fini(&arena);
	return rc < 0 ? -1 : 0;
}

int
counter_cache_load(struct table_store *table, struct slice bytes, struct error *err)
{
	struct entry_cache *cache = table->store->counter_cache;
	uint64_t owner = atomic_load(&table->counter_cache_owner), hash = hash_bytes(bytes);
	struct slice key, position, column;
	struct cached *promise, *entry;
	struct counter_shard shard;
	bool is_static;
	int rc;

	if (!counter_cache_parse_key(bytes, &key, &position, &is_static, &column) ||
	    !atomic_load(&table->store->has_host_id))
		return 0;
	entry = entry_cache_get_or_promise(cache, owner, bytes, hash, &promise);
	cached_unref(entry);
	if (promise == NULL)
		return 0;
	rc = counter_cache_read(table, key, position, is_static, column, &shard, err);
	entry = rc == 0 && shard.clock != 0
	    ? entry_cache_make(owner, bytes, hash, sizeof(struct counter_cached))
	    : NULL;
	if (entry != NULL)
		*(struct counter_cached *)(void *)entry->value =
		    (struct counter_cached){shard.clock, shard.count};
	/* Whoever updated it meanwhile has put its shard in place of the promise, or taken that away. */
	entry_cache_fulfil(cache, promise, entry);
	return rc;
}
