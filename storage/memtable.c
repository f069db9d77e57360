/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/memtable_internal.h"
#include "storage/row_codec.h"

enum {
	MEMTABLE_BLOCK_MIN = 8 * 1024, /* most tables stay tiny */
	MEMTABLE_BLOCK_MAX = 2 * 1024 * 1024,
	MEMTABLE_STACK = 2048, /* encoded rows up to this need no heap */
	MEMTABLE_AHEAD_BYTES = 256, /* of an entry, and of what it is for */
};

/* ---- lifetime ----------------------------------------------------------------------------------- */

struct memtable *
memtable_new(const struct table_metadata *table, uint32_t shards, atomic_ullong *budget)
{
	struct memtable *memtable = calloc(1, sizeof(*memtable));
	void *memory = NULL;

	if (shards == 0)
		shards = 1;
	if (memtable == NULL ||
	    posix_memalign(&memory, _Alignof(struct memtable_shard),
		shards * sizeof(struct memtable_shard)) != 0) {
		free(memtable);
		return NULL;
	}
	atomic_init(&memtable->refs, 1);
	atomic_init(&memtable->bytes, 0);
	memtable->table = table_ref(table);
	memtable->budget = budget;
	memtable->has_clustering = table_has_clustering(table);
	memtable->shard_count = shards;
	memtable->shards = memory;
	row_codec_init(&memtable->codec, memtable->table);
	for (uint32_t i = 0; i < shards; i++) {
		struct memtable_shard *shard = &memtable->shards[i];

		memset(shard, 0, sizeof(*shard));
		lock_init(&shard->lock, "memtable.shard", RANK_MEMTABLE_SHARD);
		arena_init(&shard->arena, MEMTABLE_BLOCK_MIN);
		arena_init(&shard->scratch, 4096);
		shard->stats = (struct memtable_stats){INT64_MAX, INT32_MAX, INT32_MAX};
		shard->index.scale = (uint64_t)shards * MEMTABLE_INDEX_PAGES;
		shard->partitions.low = memtable_shard_start(memtable, i);
		shard->partitions.high =
		    i + 1 < shards ? memtable_shard_start(memtable, i + 1) : UINT64_MAX;
	}
	return memtable;
}

void
memtable_use_pool(struct memtable *memtable, struct arena_pool *pool)
{
	for (uint32_t i = 0; i < memtable->shard_count; i++)
		memtable->shards[i].arena.pool = pool;
}

struct memtable *
memtable_ref(struct memtable *memtable)
{
	atomic_fetch_add_explicit(&memtable->refs, 1, memory_order_relaxed);
	return memtable;
}

static void
memtable_shard_fini(struct memtable_shard *shard)
{
	for (struct memtable_rows *rows = shard->with_ranges; rows != NULL;
	     rows = rows->next_with_ranges)
		memtable_ranges_unref(rows->ranges);
	memtable_index_fini(&shard->index);
	arena_fini(&shard->arena);
	arena_fini(&shard->scratch);
	lock_fini(&shard->lock);
}

void
memtable_unref(struct memtable *memtable)
{
	/* The last one frees, and must see what the others did before they let go. */
	if (memtable == NULL ||
	    atomic_fetch_sub_explicit(&memtable->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < memtable->shard_count; i++)
		memtable_shard_fini(&memtable->shards[i]);
	if (memtable->budget != NULL)
		atomic_fetch_sub_explicit(memtable->budget,
		    atomic_load_explicit(&memtable->bytes, memory_order_relaxed),
		    memory_order_relaxed);
	table_unref(memtable->table);
	free(memtable->shards);
	free(memtable);
}

/* ---- what is collected for the flush ------------------------------------------------------------ */

static inline void
memtable_stats_time(struct memtable_stats *stats, int64_t timestamp, int32_t local_deletion_time)
{
	if (timestamp < stats->min_timestamp)
		stats->min_timestamp = timestamp;
	if (local_deletion_time < stats->min_local_deletion_time)
		stats->min_local_deletion_time = local_deletion_time;
}

static inline void
memtable_stats_deletion(struct memtable_stats *stats, struct deletion deletion)
{
	if (!deletion_is_live(deletion))
		memtable_stats_time(
		    stats, deletion.marked_for_delete_at, deletion.local_deletion_time);
}

static inline void
memtable_stats_ttl(struct memtable_stats *stats, int32_t ttl)
{
	if (ttl != TTL_NONE && ttl < stats->min_ttl)
		stats->min_ttl = ttl;
}

static void
memtable_stats_row(struct memtable_stats *stats, const struct row *row)
{
	if (row->liveness.timestamp != TIMESTAMP_NONE) {
		memtable_stats_time(
		    stats, row->liveness.timestamp, row->liveness.local_expiration_time);
		memtable_stats_ttl(stats, row->liveness.ttl);
	}
	memtable_stats_deletion(stats, row->deletion);
	for (uint32_t i = 0; i < row->complex_deletion_count; i++)
		memtable_stats_deletion(stats, row->complex_deletions[i].deletion);
	for (uint32_t i = 0; i < row->cell_count; i++) {
		memtable_stats_time(
		    stats, row->cells[i].timestamp, row->cells[i].local_deletion_time);
		memtable_stats_ttl(stats, row->cells[i].ttl);
	}
}

static void
memtable_stats_update(struct memtable_stats *stats, const struct partition_update *update)
{
	memtable_stats_deletion(stats, update->deletion);
	if (update->static_row != NULL)
		memtable_stats_row(stats, update->static_row);
	for (uint32_t i = 0; i < update->row_count; i++)
		memtable_stats_row(stats, &update->rows[i]);
	for (uint32_t i = 0; i < update->tombstone_count; i++)
		memtable_stats_deletion(stats, update->tombstones[i].deletion);
}

static void
memtable_stats_merge(struct memtable_stats *into, const struct memtable_stats *stats)
{
	memtable_stats_time(into, stats->min_timestamp, stats->min_local_deletion_time);
	if (stats->min_ttl < into->min_ttl)
		into->min_ttl = stats->min_ttl;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Rows of an update, encoded before the lock is taken: the static row first, where there is one. */
struct memtable_encoded {
	uint8_t *bytes; /* one after the other */
	size_t *ends; /* offset behind each */
	void *heap; /* NULL: the caller's stack was enough */
};

/* One update on its way in. */
struct memtable_write {
	struct memtable *memtable;
	struct memtable_shard *shard;
	const struct partition_update *update;
	struct memtable_encoded encoded;
	struct error *err;
	bool is_unread; /* there is no reader in the shard */
};

static int
memtable_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory in the memtable");
}

/* Row `index` of the update as they are encoded. */
static const struct row *
memtable_update_row(const struct partition_update *update, uint32_t index)
{
	if (update->static_row == NULL)
		return &update->rows[index];
	return index == 0 ? update->static_row : &update->rows[index - 1];
}

static int
memtable_encode(struct memtable_write *write, uint8_t stack[MEMTABLE_STACK], struct error *err)
{
	const struct row_codec *codec = &write->memtable->codec;
	const struct partition_update *update = write->update;
	struct memtable_encoded *encoded = &write->encoded;
	uint32_t count = update->row_count + (update->static_row != NULL);
	struct row_summary summary;
	size_t size = count * sizeof(size_t);
	uint8_t *at;

	/* One row, the usual case, is walked once for its size; several are walked twice. */
	for (uint32_t i = 0; i < count; i++) {
		row_summarise(codec, memtable_update_row(update, i), &summary);
		size += summary.size_max;
	}
	encoded->heap = NULL;
	if (size > MEMTABLE_STACK) {
		encoded->heap = malloc(size);
		if (encoded->heap == NULL)
			return memtable_no_memory(err);
	}
	encoded->ends = encoded->heap != NULL ? encoded->heap : (void *)stack;
	encoded->bytes = (uint8_t *)(encoded->ends + count);
	at = encoded->bytes;
	for (uint32_t i = 0; i < count; i++) {
		const struct row *row = memtable_update_row(update, i);

		if (count != 1)
			row_summarise(codec, row, &summary);
		at = row_encode_into(codec, ROW_CODEC_MESSAGE, row, &summary, 0, at);
		encoded->ends[i] = (size_t)(at - encoded->bytes);
	}
	return 0;
}

static struct slice
memtable_encoded_row(const struct memtable_encoded *encoded, uint32_t index)
{
	size_t start = index == 0 ? 0 : encoded->ends[index - 1];

	return slice_of(encoded->bytes + start, encoded->ends[index] - start);
}

static int
memtable_decode(
    struct memtable_write *write, const struct memtable_blob *blob, bool is_static, struct row *row)
{
	struct reader reader = reader_of(slice_of(blob->bytes, blob->size));
	enum unfiltered_kind kind;
	struct marker marker;

	return unfiltered_decode(&write->memtable->codec, ROW_CODEC_MESSAGE, &reader, is_static,
	    NULL, &write->shard->scratch, &kind, row, &marker, write->err);
}

/*
 * Is the merge of both just `fresh`? The usual overwrite: the same simple columns (or more), everything newer,
 * nothing deleted before. Not for counters, whose cells add up.
 */
static bool
memtable_row_replaces(const struct row *fresh, const struct row *old)
{
	uint32_t at = 0;

	if (fresh->liveness.timestamp < old->liveness.timestamp ||
	    (fresh->liveness.timestamp == old->liveness.timestamp &&
		old->liveness.timestamp != TIMESTAMP_NONE) ||
	    old->clustering_count != fresh->clustering_count || !deletion_is_live(old->deletion) ||
	    !deletion_is_live(fresh->deletion) || old->complex_deletion_count != 0 ||
	    fresh->complex_deletion_count != 0)
		return false;
	/* Equal, but perhaps not in the same bytes. */
	for (uint32_t i = 0; i < old->clustering_count; i++) {
		if (!slice_equal(old->clustering[i], fresh->clustering[i]))
			return false;
	}
	for (uint32_t i = 0; i < old->cell_count; i++) {
		const struct cell *cell = &old->cells[i];

		while (at < fresh->cell_count && fresh->cells[at].column != cell->column)
			at++;
		if (at == fresh->cell_count || cell->column->is_complex ||
		    cell->column->type->kind == TYPE_COUNTER ||
		    fresh->cells[at].timestamp <= cell->timestamp)
			return false;
	}
	return true;
}

/*
 * What becomes of `old` (may be NULL: nothing is there) when `row`, encoded as `fresh`, comes and
 * `deletion` is over both: *out is an encoded row in the scratch arena or `fresh` itself, or the null
 * slice when nothing is left.
 */
static int
memtable_merge_row(struct memtable_write *write, const struct memtable_blob *old,
    const struct row *row, struct slice fresh, struct deletion deletion, struct slice *out)
{
	struct row old_row, merged;
	const struct row *versions[2];
	struct row_summary summary;
	struct arena *scratch = &write->shard->scratch;
	size_t count = 0;
	uint8_t *bytes;

	*out = fresh;
	if (old == NULL && deletion_is_live(deletion))
		return 0;
	if (row != NULL)
		versions[count++] = row;
	if (old != NULL) {
		if (memtable_decode(write, old, row != NULL && row->is_static, &old_row) != 0)
			return -1;
		versions[count++] = &old_row;
	}
	if (count == 2 && deletion_is_live(deletion) && memtable_row_replaces(row, &old_row))
		return 0;
	*out = slice_null;
	if (count == 0)
		return 0;
	if (row_merge(versions, count, deletion, scratch, &merged, write->err) != 0)
		return -1;
	if (row_is_empty(&merged))
		return 0;
	row_summarise(&write->memtable->codec, &merged, &summary);
	bytes = arena_alloc_bytes(scratch, summary.size_max);
	if (bytes == NULL)
		return memtable_no_memory(write->err);
	*out = slice_of(bytes,
	    (size_t)(row_encode_into(
			 &write->memtable->codec, ROW_CODEC_MESSAGE, &merged, &summary, 0, bytes) -
		bytes));
	return 0;
}

static void
memtable_blob_set(struct memtable_blob *blob, struct slice bytes)
{
	blob->size = (uint32_t)bytes.size;
	memcpy(blob->bytes, bytes.data, bytes.size);
}

/* A blob of `bytes` behind `head` bytes of what it is a part of; returns that. */
static void *
memtable_blob_new(struct memtable_write *write, size_t head, struct slice bytes)
{
	struct memtable_shard *shard = write->shard;
	struct memtable_blob *blob;
	size_t room;
	uint8_t *memory = memtable_space_alloc(
	    &shard->space, &shard->arena, head + sizeof(*blob) + bytes.size, &room);

	if (memory == NULL)
		return NULL;
	blob = (struct memtable_blob *)(void *)(memory + head);
	room -= head + sizeof(*blob);
	blob->room = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
	memtable_blob_set(blob, bytes);
	return memory;
}

/* Nobody finds `memory`, which holds `head` bytes and the blob, any more. */
static void
memtable_blob_retire(
    struct memtable_write *write, void *memory, size_t head, const struct memtable_blob *blob)
{
	memtable_space_retire(&write->shard->space, &write->shard->arena, memory,
	    head + sizeof(*blob) + blob->room, write->is_unread);
}

/* May the row be written over the old one? */
static bool
memtable_blob_fits(
    const struct memtable_write *write, const struct memtable_blob *blob, struct slice bytes)
{
	return write->is_unread && blob != NULL && bytes.size <= blob->room;
}

/* The row of a partition of one becomes `bytes`: *blob is the old one, and then the new one. */
static int
memtable_apply_blob(struct memtable_write *write, struct memtable_blob **blob, struct slice bytes)
{
	struct memtable_blob *old = *blob;

	if (!slice_is_null(bytes) && memtable_blob_fits(write, old, bytes)) {
		memtable_blob_set(old, bytes);
		return 0;
	}
	*blob = NULL;
	if (!slice_is_null(bytes)) {
		*blob = memtable_blob_new(write, 0, bytes);
		if (*blob == NULL)
			return memtable_no_memory(write->err);
	}
	return 0;
}

/* A partition of a table without clustering columns. */
static int
memtable_apply_lone(struct memtable_write *write, struct memtable_entry *entry)
{
	const struct partition_update *update = write->update;
	struct memtable_space *space = &write->shard->space;
	struct arena *arena = &write->shard->arena;
	struct memtable_lone *before = NULL, *lone = NULL;
	struct memtable_blob *old = entry->content, *blob;
	struct deletion deletion = update->deletion;
	struct slice bytes = slice_null;
	size_t room;

	if (entry->flags & MEMTABLE_LONE) {
		before = entry->content;
		old = before->blob;
		if (deletion_supersedes(before->deletion, deletion))
			deletion = before->deletion;
	}
	if (update->row_count != 0)
		bytes = memtable_encoded_row(&write->encoded, 0);
	if (memtable_merge_row(write, old, update->row_count != 0 ? &update->rows[0] : NULL, bytes,
		deletion, &bytes) != 0)
		return -1;
	if (!deletion_is_live(deletion)) {
		lone = write->is_unread && before != NULL
		    ? before
		    : memtable_space_alloc(space, arena, sizeof(*lone), &room);
		if (lone == NULL)
			return memtable_no_memory(write->err);
	}
	blob = old;
	if (memtable_apply_blob(write, &blob, bytes) != 0)
		return -1;
	write->shard->row_count += (blob != NULL) - (old != NULL);
	entry->content = blob;
	if (lone != NULL) {
		lone->deletion = deletion;
		lone->blob = blob;
		entry->content = lone;
		entry->flags |= MEMTABLE_LONE;
	}
	if (old != NULL && old != blob)
		memtable_blob_retire(write, old, 0, old);
	if (before != NULL && before != lone)
		memtable_space_retire(space, arena, before, sizeof(*before), write->is_unread);
	return 0;
}

/* Put a version of a row (encoded as `fresh`) on top of *newest, or in place of it. */
static int
memtable_apply_row(struct memtable_write *write, struct memtable_version **newest,
    const struct row *row, struct slice fresh)
{
	struct memtable_version *version, *old = *newest;
	size_t head = offsetof(struct memtable_version, blob);
	struct slice bytes;

	if (memtable_merge_row(
		write, old != NULL ? &old->blob : NULL, row, fresh, DELETION_LIVE, &bytes) != 0)
		return -1;
	if (slice_is_null(bytes))
		return 0;
	if (old != NULL && memtable_blob_fits(write, &old->blob, bytes)) {
		version = old;
		memtable_blob_set(&version->blob, bytes);
	} else {
		version = memtable_blob_new(write, head, bytes);
		if (version == NULL)
			return memtable_no_memory(write->err);
		if (old != NULL)
			memtable_blob_retire(write, old, head, &old->blob);
	}
	version->older = write->is_unread ? NULL : old;
	version->sequence = write->shard->sequence;
	*newest = version;
	return 0;
}

static int
memtable_apply_ranges(struct memtable_write *write, struct memtable_rows *rows)
{
	const struct partition_update *update = write->update;
	bool had_ranges = rows->ranges != NULL;
	int rc = 0;

	for (uint32_t i = 0; i < update->tombstone_count && rc == 0; i++)
		rc = memtable_ranges_add(&rows->ranges, write->memtable->table,
		    &update->tombstones[i], &write->shard->arena, write->err);
	if (!had_ranges && rows->ranges != NULL) {
		rows->next_with_ranges = write->shard->with_ranges;
		write->shard->with_ranges = rows;
	}
	return rc;
}

/* A partition of a table with clustering columns. */
static int
memtable_apply_rows(struct memtable_write *write, struct memtable_entry *entry)
{
	const struct partition_update *update = write->update;
	struct memtable_shard *shard = write->shard;
	struct memtable_rows *rows = entry->content;
	uint32_t statics = update->static_row != NULL;

	if (rows == NULL) {
		rows = arena_zalloc(&shard->arena, sizeof(*rows));
		if (rows == NULL)
			return memtable_no_memory(write->err);
		rows->deletion = DELETION_LIVE;
		entry->content = rows;
	}
	shard->sequence++;
	if (deletion_supersedes(update->deletion, rows->deletion))
		rows->deletion = update->deletion;
	if (memtable_apply_ranges(write, rows) != 0)
		return -1;
	if (statics != 0 &&
	    memtable_apply_row(write, &rows->static_version, update->static_row,
		memtable_encoded_row(&write->encoded, 0)) != 0)
		return -1;
	for (uint32_t i = 0; i < update->row_count; i++) {
		const struct row *row = &update->rows[i];
		struct memtable_entry *at;
		struct memtable_version *newest;
		bool is_new;

		at = memtable_tree_put(&rows->tree, &shard->arena,
		    memtable_position_prefix(row->position), row->position, &is_new);
		if (at == NULL)
			return memtable_no_memory(write->err);
		newest = at->content;
		if (memtable_apply_row(write, &newest, row,
			memtable_encoded_row(&write->encoded, statics + i)) != 0)
			return -1;
		at->content = newest;
		shard->row_count += is_new;
	}
	return 0;
}

/* The partition's entry, made where there is none; NULL: no memory. */
static struct memtable_entry *
memtable_put_locked(struct memtable_shard *shard, int64_t token, struct slice key)
{
	uint64_t prefix = memtable_token_prefix(token);
	struct memtable_entry *entry = memtable_index_find(&shard->index, prefix, key);
	bool is_new;

	if (entry != NULL)
		return entry;
	entry = memtable_tree_put(&shard->partitions, &shard->arena, prefix, key, &is_new);
	if (entry != NULL && is_new)
		memtable_index_add(&shard->index, &shard->partitions, prefix, entry);
	return entry;
}

static int
memtable_apply_locked(struct memtable_write *write)
{
	struct memtable_shard *shard = write->shard;
	const struct partition_update *update = write->update;
	struct memtable_entry *entry;

	lock_assert_held(&shard->lock);
	entry = memtable_put_locked(shard, update->token, update->key);
	if (entry == NULL)
		return memtable_no_memory(write->err);
	shard->operations++;
	write->is_unread = memtable_space_settle(&shard->space);
	if (write->memtable->has_clustering)
		return memtable_apply_rows(write, entry);
	return memtable_apply_lone(write, entry);
}

/* Blocks grow with the shard, so that small tables are small and large ones seldom ask for memory. */
static uint64_t
memtable_account_locked(struct memtable_shard *shard)
{
	uint64_t total = shard->arena.total_bytes + shard->index.bytes;
	uint64_t more = total - shard->accounted;

	shard->accounted = total;
	if (more != 0 && shard->arena.block_size < MEMTABLE_BLOCK_MAX &&
	    shard->arena.total_bytes >= 4 * shard->arena.block_size)
		shard->arena.block_size *= 2;
	return more;
}

int
memtable_apply(struct memtable *memtable, const struct partition_update *update, struct error *err)
{
	struct memtable_shard *shard =
	    &memtable->shards[memtable_shard_index(memtable, update->token)];
	struct memtable_stats stats = {INT64_MAX, INT32_MAX, INT32_MAX};
	struct memtable_write write = {memtable, shard, update, {0}, err, false};
	uint8_t stack[MEMTABLE_STACK] __attribute__((aligned(8)));
	uint64_t more;
	int rc;

	if (memtable_encode(&write, stack, err) != 0)
		return -1;
	memtable_stats_update(&stats, update);

	lock_take(&shard->lock);
	rc = memtable_apply_locked(&write);
	memtable_stats_merge(&shard->stats, &stats);
	if (shard->scratch.at != NULL)
		arena_reset(&shard->scratch);
	more = memtable_account_locked(shard);
	lock_drop(&shard->lock);

	if (more != 0) {
		atomic_fetch_add_explicit(&memtable->bytes, more, memory_order_relaxed);
		if (memtable->budget != NULL)
			atomic_fetch_add_explicit(memtable->budget, more, memory_order_relaxed);
	}
	free(write.encoded.heap);
	return rc;
}

/* ---- what the store asks ------------------------------------------------------------------------ */

const struct table_metadata *
memtable_table(const struct memtable *memtable)
{
	return memtable->table;
}

uint64_t
memtable_bytes(const struct memtable *memtable)
{
	return atomic_load_explicit(&memtable->bytes, memory_order_relaxed);
}

struct memtable_totals {
	uint64_t partitions, rows, operations;
	struct memtable_stats stats;
};

static struct memtable_totals
memtable_totals(const struct memtable *memtable)
{
	struct memtable_totals totals = {0, 0, 0, {INT64_MAX, INT32_MAX, INT32_MAX}};

	for (uint32_t i = 0; i < memtable->shard_count; i++) {
		struct memtable_shard *shard = &memtable->shards[i];

		lock_take(&shard->lock);
		totals.partitions += shard->partitions.count;
		totals.rows += shard->row_count;
		totals.operations += shard->operations;
		memtable_stats_merge(&totals.stats, &shard->stats);
		lock_drop(&shard->lock);
	}
	return totals;
}

bool
memtable_is_empty(const struct memtable *memtable)
{
	return memtable_totals(memtable).partitions == 0;
}

uint64_t
memtable_partition_count(const struct memtable *memtable)
{
	return memtable_totals(memtable).partitions;
}

uint64_t
memtable_row_count(const struct memtable *memtable)
{
	return memtable_totals(memtable).rows;
}

uint64_t
memtable_operations(const struct memtable *memtable)
{
	return memtable_totals(memtable).operations;
}

void
memtable_encoding_stats(const struct memtable *memtable, int64_t *min_timestamp,
    int32_t *min_local_deletion_time, int32_t *min_ttl)
{
	struct memtable_stats stats = memtable_totals(memtable).stats;

	*min_timestamp =
	    stats.min_timestamp != INT64_MAX ? stats.min_timestamp : CODEC_TIMESTAMP_EPOCH;
	*min_local_deletion_time = stats.min_local_deletion_time != INT32_MAX
	    ? stats.min_local_deletion_time
	    : CODEC_DELETION_TIME_EPOCH;
	*min_ttl = stats.min_ttl != INT32_MAX ? stats.min_ttl : CODEC_TTL_EPOCH;
}

static void
memtable_ahead_prefetch(const void *memory)
{
	for (int at = 0; at < MEMTABLE_AHEAD_BYTES; at += 64)
		__builtin_prefetch((const char *)memory + at);
}

static void
memtable_ahead_tree(struct memtable_ahead *ahead)
{
	ahead->next = ahead->tree.node != NULL ? MEMTABLE_AHEAD_TREE : MEMTABLE_AHEAD_DONE;
}

static void
memtable_ahead_locked(struct memtable_shard *shard, int step, uint64_t prefix, struct slice key,
    struct memtable_ahead *ahead)
{
	/* Asked for anew in each step: the index may have grown. */
	const uint64_t *line = step > 1 ? NULL : memtable_index_line(&shard->index, prefix);

	lock_assert_held(&shard->lock);
	if (step == 0 && line != NULL) {
		__builtin_prefetch(line);
		ahead->next = MEMTABLE_AHEAD_INDEX;
		return;
	}
	if (ahead->next == MEMTABLE_AHEAD_INDEX && line != NULL)
		ahead->entry = memtable_index_guess(line, prefix);
	if (ahead->next == MEMTABLE_AHEAD_ENTRY) {
		const char *content = ahead->entry->content;

		/* What was made together with the entry lies behind it, and has been asked for. */
		if ((uintptr_t)content - (uintptr_t)ahead->entry > MEMTABLE_AHEAD_BYTES / 2)
			memtable_ahead_prefetch(content);
		ahead->next = MEMTABLE_AHEAD_DONE;
	} else if (ahead->next == MEMTABLE_AHEAD_TREE) {
		memtable_tree_ahead_go_on(&ahead->tree, prefix, key);
		memtable_ahead_tree(ahead);
	} else if (ahead->entry != NULL) {
		memtable_ahead_prefetch(ahead->entry);
		ahead->next = MEMTABLE_AHEAD_ENTRY;
	} else {
		memtable_tree_ahead_start(&shard->partitions, prefix, key, &ahead->tree);
		memtable_ahead_tree(ahead);
	}
}

void
memtable_ahead(struct memtable *memtable, int step, int64_t token, struct slice key,
    struct memtable_ahead *ahead)
{
	struct memtable_shard *shard = &memtable->shards[memtable_shard_index(memtable, token)];

	if (step == 0)
		*ahead = (struct memtable_ahead){.next = MEMTABLE_AHEAD_DONE};
	else if (ahead->next == MEMTABLE_AHEAD_DONE)
		return;
	if (!lock_try(&shard->lock)) {
		ahead->next = MEMTABLE_AHEAD_DONE; /* not worth waiting for */
		return;
	}
	memtable_ahead_locked(shard, step, memtable_token_prefix(token), key, ahead);
	lock_drop(&shard->lock);
}
