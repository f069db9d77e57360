/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/memtable_internal.h"
#include "storage/merge.h"

/*
 * Two iterators over a partition (one row; many rows and range tombstones) and one over partitions. The
 * shard's lock is held to find places and copy pointers, a batch at a time; everything is decoded outside.
 *
 * Markers are those of the folded ranges (memtable_ranges.h), in full: a range that begins before a slice
 * is opened where it began, one that goes on behind the last slice is closed where it ends. In between,
 * ranges that no slice touches are passed over. `open` is the deletion that the stream is in.
 */

/* What both kinds of partition iterator need of the read. */
struct memtable_reading {
	const struct row_codec *codec;
	const struct clustering_filter *filter; /* NULL: everything */
	struct slice after; /* null: from the beginning */
	const uint64_t *wanted_regulars;
	const uint64_t *wanted_statics;
	struct arena *arena; /* of what next() returns */
	struct arena *static_arena; /* of the static row */
	struct arena *turns; /* NULL, or two that `arena` takes turns in, a step each */
	bool is_raw; /* rows need not be decoded */
};

/* A step: with turns, what was given two steps ago is forgotten. */
static inline void
memtable_reading_step(struct memtable_reading *reading)
{
	if (reading->turns == NULL)
		return;
	reading->arena =
	    reading->arena == &reading->turns[0] ? &reading->turns[1] : &reading->turns[0];
	arena_reset(reading->arena);
}

struct memtable_lone_iterator {
	struct unfiltered_iterator base;
	struct memtable_hold hold; /* of a read of one partition; a scan has its own */
	struct memtable_reading reading;
	const struct memtable_blob *blob; /* NULL: none, or already given */
};

enum { MEMTABLE_BATCH_FIRST = 8, MEMTABLE_BATCH_MAX = 32 };

struct memtable_row_place {
	const struct memtable_entry *entry;
	const struct memtable_version *version;
};

struct memtable_rows_iterator {
	struct unfiltered_iterator base;
	struct memtable_hold hold; /* as above */
	struct memtable_reading reading;
	struct memtable_shard *shard;
	const struct memtable_rows *rows;
	uint64_t sequence;
	struct memtable_ranges *ranges; /* a reference; NULL: none */
	uint32_t bound; /* bounds before this index are passed (reversed: from it on) */
	struct deletion open;

	/* The current slice; null is open. */
	uint32_t slices_done;
	bool is_in_slice;
	struct slice low, high;

	/* Rows copied out of the current slice. */
	uint32_t batch_size, batch_count, batch_at;
	bool is_slice_read; /* no more rows behind the batch */
	struct slice last; /* position of the last row copied; null: none yet */
	struct memtable_row_place batch[MEMTABLE_BATCH_MAX];
};

static int
memtable_read_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory to read a memtable");
}

static int
memtable_read_row(const struct memtable_reading *reading, const struct memtable_blob *blob,
    bool is_static, struct row *row, struct error *err)
{
	struct reader reader = reader_of(slice_of(blob->bytes, blob->size));
	enum unfiltered_kind kind;
	struct marker marker;

	return unfiltered_decode(reading->codec, ROW_CODEC_MESSAGE, &reader, is_static,
	    is_static ? reading->wanted_statics : reading->wanted_regulars,
	    is_static ? reading->static_arena : reading->arena, &kind, row, &marker, err);
}

/* Drop what the deletion covers. */
static int
memtable_read_cover(
    struct row *row, struct deletion deletion, struct arena *arena, struct error *err)
{
	const struct row *version = row;
	struct row covered;

	if (deletion_is_live(deletion))
		return 0;
	if (row_merge(&version, 1, deletion, arena, &covered, err) != 0)
		return -1;
	*row = covered;
	return 0;
}

/* A row whose position is `position` (null: the only row of its partition) under `deletion`. */
static int
memtable_read_item(const struct memtable_reading *reading, const struct memtable_blob *blob,
    struct slice position, struct deletion deletion, struct unfiltered *out, struct error *err)
{
	if (reading->is_raw &&
	    row_raw_cut(reading->codec, ROW_CODEC_MESSAGE, slice_of(blob->bytes, blob->size),
		reading->arena, &out->raw) &&
	    row_raw_survives(&out->raw, deletion)) {
		out->kind = UNFILTERED_RAW;
		out->raw.position = position;
		return 0;
	}
	out->kind = UNFILTERED_ROW;
	if (memtable_read_row(reading, blob, false, &out->row, err) != 0)
		return -1;
	out->row.position = position;
	return memtable_read_cover(&out->row, deletion, reading->arena, err);
}

/* ---- a partition of one row --------------------------------------------------------------------- */

/* Does the filter select the only row there can be? */
static bool
memtable_lone_is_selected(const struct memtable_reading *reading, struct slice position)
{
	const struct clustering_filter *filter = reading->filter;

	if (!slice_is_null(reading->after)) {
		int order = slice_compare(position, reading->after);

		if (filter != NULL && filter->is_reversed ? order >= 0 : order <= 0)
			return false;
	}
	if (filter == NULL || filter->slice_count == 0)
		return true;
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		const struct clustering_slice *slice = &filter->slices[i];

		if ((slice_is_null(slice->start) || slice_compare(slice->start, position) < 0) &&
		    (slice_is_null(slice->end) || slice_compare(position, slice->end) < 0))
			return true;
	}
	return false;
}

static int
memtable_lone_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct memtable_lone_iterator *lone = (struct memtable_lone_iterator *)iterator;
	const struct memtable_blob *blob = lone->blob;

	if (blob == NULL)
		return 0;
	lone->blob = NULL;
	memtable_reading_step(&lone->reading);
	if (!memtable_lone_is_selected(&lone->reading, position_lone))
		return 0;
	if (memtable_read_item(
		&lone->reading, blob, position_lone, iterator->partition_deletion, out, err) != 0)
		return -1;
	return out->kind == UNFILTERED_RAW || !row_is_empty(&out->row);
}

static void
memtable_lone_close(struct unfiltered_iterator *iterator)
{
	(void)iterator; /* nothing is held: the caller's reference keeps the memtable */
}

static const struct unfiltered_iterator_ops memtable_lone_ops = {
    memtable_lone_next,
    memtable_lone_close,
};

/* `content` and `flags` were read under the shard's lock. */
static void
memtable_lone_open(struct memtable_lone_iterator *iterator, const void *content, uint32_t flags)
{
	iterator->base.ops = &memtable_lone_ops;
	iterator->base.partition_deletion = DELETION_LIVE;
	iterator->base.has_static_row = false;
	iterator->blob = content;
	if (flags & MEMTABLE_LONE) {
		const struct memtable_lone *lone = content;

		iterator->base.partition_deletion = lone->deletion;
		iterator->blob = lone->blob;
	}
}

/* ---- a partition of many rows ------------------------------------------------------------------- */

static bool
memtable_rows_is_inside(const struct memtable_rows_iterator *iterator, struct slice position)
{
	if (iterator->base.is_reversed)
		return slice_is_null(iterator->low) || slice_compare(iterator->low, position) < 0;
	return slice_is_null(iterator->high) || slice_compare(position, iterator->high) < 0;
}

/* Place the cursor at the slice's next row. */
static void
memtable_rows_seek(const struct memtable_rows_iterator *iterator, struct memtable_cursor *cursor)
{
	const struct memtable_tree *tree = &iterator->rows->tree;
	struct slice from = iterator->last;

	if (iterator->base.is_reversed) {
		if (slice_is_null(from))
			from = iterator->high;
		if (slice_is_null(from))
			memtable_cursor_last(cursor, tree);
		else
			memtable_cursor_seek_before(
			    cursor, tree, memtable_position_prefix(from), from);
		return;
	}
	if (slice_is_null(from))
		from = iterator->low;
	if (slice_is_null(from))
		memtable_cursor_first(cursor, tree);
	else
		memtable_cursor_seek(cursor, tree, memtable_position_prefix(from), from, true);
}

/* Copy the places of the slice's next rows. */
static void
memtable_rows_fill_locked(struct memtable_rows_iterator *iterator)
{
	struct memtable_cursor cursor;
	uint32_t count = 0;

	lock_assert_held(&iterator->shard->lock);
	memtable_rows_seek(iterator, &cursor);
	while (cursor.entry != NULL && count < iterator->batch_size) {
		const struct memtable_version *version;

		if (!memtable_rows_is_inside(iterator, memtable_entry_key(cursor.entry)))
			break;
		iterator->last = memtable_entry_key(cursor.entry);
		version = memtable_version_at(cursor.entry->content, iterator->sequence);
		if (version != NULL) {
			iterator->batch[count].entry = cursor.entry;
			iterator->batch[count++].version = version;
		}
		if (iterator->base.is_reversed)
			memtable_cursor_previous(&cursor);
		else
			memtable_cursor_next(&cursor);
	}
	iterator->is_slice_read = count < iterator->batch_size;
	iterator->batch_count = count;
	iterator->batch_at = 0;
	iterator->batch_size = MEMTABLE_BATCH_MAX;
}

/* Begin the next slice that is not empty; false when there is none. */
static bool
memtable_rows_next_slice(struct memtable_rows_iterator *iterator)
{
	const struct clustering_filter *filter = iterator->reading.filter;
	uint32_t count = filter != NULL && filter->slice_count != 0 ? filter->slice_count : 1;
	struct slice after = iterator->reading.after;

	while (iterator->slices_done < count) {
		uint32_t index = iterator->slices_done++;

		iterator->low = iterator->high = slice_null;
		if (filter != NULL && filter->slice_count != 0) {
			if (iterator->base.is_reversed)
				index = count - 1 - index;
			iterator->low = filter->slices[index].start;
			iterator->high = filter->slices[index].end;
		}
		if (!slice_is_null(after) && !iterator->base.is_reversed &&
		    (slice_is_null(iterator->low) || slice_compare(iterator->low, after) < 0))
			iterator->low = after;
		if (!slice_is_null(after) && iterator->base.is_reversed &&
		    (slice_is_null(iterator->high) || slice_compare(iterator->high, after) > 0))
			iterator->high = after;
		if (!slice_is_null(iterator->low) && !slice_is_null(iterator->high) &&
		    slice_compare(iterator->low, iterator->high) >= 0)
			continue;
		iterator->is_in_slice = true;
		iterator->is_slice_read = false;
		iterator->batch_count = iterator->batch_at = 0;
		iterator->last = slice_null;
		return true;
	}
	iterator->is_in_slice = false;
	return false;
}

/* The stream passes from `open` into `next` at bound `index`: 1 and a marker, 0 when it is the same. */
static int
memtable_rows_marker(struct memtable_rows_iterator *iterator, uint32_t index, struct deletion next,
    struct unfiltered *out)
{
	const struct memtable_bound *bound = &iterator->ranges->bounds[index];
	struct deletion open = iterator->open;
	bool is_reversed = iterator->base.is_reversed;
	struct marker at = {
	    .kind = bound->is_before ? BOUND_INCL_START : BOUND_INCL_END,
	    .clustering_count = bound->count,
	    .clustering = bound->values,
	    .position = bound->position,
	};

	if (open.marked_for_delete_at == next.marked_for_delete_at &&
	    open.local_deletion_time == next.local_deletion_time)
		return 0;
	iterator->open = next;
	out->kind = UNFILTERED_MARKER;
	marker_between(&out->marker, is_reversed ? next : open, is_reversed ? open : next, &at);
	return 1;
}

/* At a slice's beginning: pass over the bounds before it. */
static int
memtable_rows_enter(struct memtable_rows_iterator *iterator, struct unfiltered *out)
{
	const struct memtable_ranges *ranges = iterator->ranges;
	uint32_t target;

	if (ranges == NULL)
		return 0;
	if (iterator->base.is_reversed) {
		if (slice_is_null(iterator->high))
			return 0;
		target = memtable_ranges_search(ranges, iterator->high, false);
		if (target >= iterator->bound)
			return 0;
		iterator->bound = target;
		return memtable_rows_marker(
		    iterator, target, memtable_ranges_below(ranges, target), out);
	}
	if (slice_is_null(iterator->low))
		return 0;
	target = memtable_ranges_search(ranges, iterator->low, true);
	if (target <= iterator->bound)
		return 0;
	iterator->bound = target;
	return memtable_rows_marker(
	    iterator, target - 1, memtable_ranges_below(ranges, target), out);
}

/* The next bound on this side of `limit` (null: there is no limit). */
static int
memtable_rows_pass(
    struct memtable_rows_iterator *iterator, struct slice limit, struct unfiltered *out)
{
	const struct memtable_ranges *ranges = iterator->ranges;
	bool is_reversed = iterator->base.is_reversed;

	while (ranges != NULL && iterator->bound != (is_reversed ? 0 : ranges->count)) {
		uint32_t index = is_reversed ? iterator->bound - 1 : iterator->bound;
		int order =
		    slice_is_null(limit) ? 0 : slice_compare(ranges->bounds[index].position, limit);
		struct deletion next = is_reversed ? memtable_ranges_below(ranges, index)
						   : ranges->bounds[index].above;

		if (!slice_is_null(limit) && (is_reversed ? order <= 0 : order >= 0))
			return 0;
		iterator->bound = is_reversed ? index : index + 1;
		if (memtable_rows_marker(iterator, index, next, out) != 0)
			return 1;
	}
	return 0;
}

/* Behind the last slice: close the range that is open, at its end. */
static int
memtable_rows_leave(struct memtable_rows_iterator *iterator, struct unfiltered *out)
{
	uint32_t index;

	if (deletion_is_live(iterator->open))
		return 0;
	index = iterator->base.is_reversed ? iterator->bound - 1 : iterator->bound;
	return memtable_rows_marker(iterator, index, DELETION_LIVE, out);
}

/* The row at the head of the batch: 1 and *out, 0 when nothing of it is left, -1. */
static int
memtable_rows_take(
    struct memtable_rows_iterator *iterator, struct unfiltered *out, struct error *err)
{
	const struct memtable_row_place *place = &iterator->batch[iterator->batch_at++];
	struct deletion active = iterator->base.partition_deletion;

	if (deletion_supersedes(iterator->open, active))
		active = iterator->open;
	if (memtable_read_item(&iterator->reading, &place->version->blob,
		memtable_entry_key(place->entry), active, out, err) != 0)
		return -1;
	if (out->kind == UNFILTERED_RAW || !row_is_empty(&out->row))
		return 1;
	if (iterator->reading.turns != NULL)
		arena_reset(iterator->reading.arena); /* nobody has seen it */
	return 0;
}

static int
memtable_rows_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct memtable_rows_iterator *iterator = (struct memtable_rows_iterator *)base;
	int rc;

	memtable_reading_step(&iterator->reading);
	for (;;) {
		struct slice limit;

		if (!iterator->is_in_slice) {
			if (!memtable_rows_next_slice(iterator))
				return memtable_rows_leave(iterator, out);
			if (memtable_rows_enter(iterator, out) != 0)
				return 1;
		}
		if (iterator->batch_at == iterator->batch_count && !iterator->is_slice_read) {
			lock_take(&iterator->shard->lock);
			memtable_rows_fill_locked(iterator);
			lock_drop(&iterator->shard->lock);
		}
		limit = base->is_reversed ? iterator->low : iterator->high;
		if (iterator->batch_at != iterator->batch_count)
			limit = memtable_entry_key(iterator->batch[iterator->batch_at].entry);
		if (memtable_rows_pass(iterator, limit, out) != 0)
			return 1;
		if (iterator->batch_at == iterator->batch_count) {
			iterator->is_in_slice = false;
			continue;
		}
		rc = memtable_rows_take(iterator, out, err);
		if (rc != 0)
			return rc;
	}
}

static void
memtable_rows_close(struct unfiltered_iterator *base)
{
	struct memtable_rows_iterator *iterator = (struct memtable_rows_iterator *)base;

	memtable_ranges_unref(iterator->ranges);
	iterator->ranges = NULL;
}

static const struct unfiltered_iterator_ops memtable_rows_ops = {
    memtable_rows_next,
    memtable_rows_close,
};

/* Note what a reader that begins now sees. */
static void
memtable_rows_open_locked(struct memtable_rows_iterator *iterator, struct memtable_shard *shard,
    const struct memtable_rows *rows, const struct memtable_version **static_version)
{
	lock_assert_held(&shard->lock);
	iterator->base.ops = &memtable_rows_ops;
	iterator->base.partition_deletion = rows->deletion;
	iterator->base.has_static_row = false;
	iterator->shard = shard;
	iterator->rows = rows;
	iterator->sequence = shard->sequence;
	iterator->ranges = rows->ranges;
	memtable_ranges_ref(iterator->ranges);
	iterator->bound =
	    iterator->base.is_reversed && rows->ranges != NULL ? rows->ranges->count : 0;
	iterator->open = DELETION_LIVE;
	iterator->slices_done = 0;
	iterator->is_in_slice = false;
	iterator->batch_size = MEMTABLE_BATCH_FIRST;
	iterator->batch_count = iterator->batch_at = 0;
	*static_version = rows->static_version;
}

static int
memtable_rows_open_static(struct memtable_rows_iterator *iterator,
    const struct memtable_version *version, struct error *err)
{
	struct unfiltered_iterator *base = &iterator->base;
	const struct memtable_reading *reading = &iterator->reading;

	if (version == NULL || (reading->filter != NULL && !reading->filter->with_static))
		return 0;
	if (memtable_read_row(reading, &version->blob, true, &base->static_row, err) != 0 ||
	    memtable_read_cover(
		&base->static_row, base->partition_deletion, reading->static_arena, err) != 0)
		return -1;
	base->has_static_row = !row_is_empty(&base->static_row);
	return 0;
}

/* ---- one partition ------------------------------------------------------------------------------ */

/* The codec for a command: bound anew when the command knows another version of the table. */
static const struct row_codec *
memtable_codec(const struct memtable *memtable, const struct table_metadata *table,
    struct arena *arena, struct error *err)
{
	struct row_codec *codec;

	if (table == memtable->table)
		return &memtable->codec;
	codec = arena_alloc(arena, sizeof(*codec));
	if (codec == NULL) {
		memtable_read_no_memory(err);
		return NULL;
	}
	*codec = memtable->codec;
	return row_codec_bind(codec, table, arena, err) == 0 ? codec : NULL;
}

static int
memtable_reading_init(struct memtable_reading *reading, const struct memtable *memtable,
    const struct read_command *command, struct arena *arena, struct error *err)
{
	*reading = (struct memtable_reading){
	    .codec = memtable_codec(memtable, command->table, arena, err),
	    .filter = &command->clustering,
	    .after = command->after_position,
	    .wanted_regulars = command->wanted_regulars,
	    .wanted_statics = command->wanted_statics,
	    .arena = arena,
	    .static_arena = arena,
	};
	return reading->codec != NULL ? 0 : -1;
}

static void
memtable_base_init(struct unfiltered_iterator *base, const struct table_metadata *table,
    const struct memtable_reading *reading, int64_t token, struct slice key)
{
	base->table = table;
	base->token = token;
	base->key = key;
	base->is_reversed = reading->filter != NULL && reading->filter->is_reversed;
}

/* What was entered is the caller's to release; `hold` lies as long as the arena of the read. */
static void
memtable_hold_give(struct memtable_hold *hold, struct memtable_hold **holds)
{
	if (holds == NULL)
		return;
	hold->next = *holds;
	*holds = hold;
}

void
memtable_release(const struct memtable_hold *holds)
{
	for (; holds != NULL; holds = holds->next)
		memtable_space_leave(holds);
}

static int
memtable_read_lone(struct memtable *memtable, const struct read_command *command,
    const struct memtable_reading *reading, struct memtable_hold **holds,
    struct unfiltered_iterator **out, struct error *err)
{
	struct memtable_shard *shard =
	    &memtable->shards[memtable_shard_index(memtable, command->token)];
	const struct memtable_entry *entry;
	struct memtable_lone_iterator *iterator;
	struct memtable_hold hold;
	const void *content = NULL;
	uint32_t flags = 0;

	lock_take(&shard->lock);
	entry = memtable_find_locked(shard, command->token, command->key);
	if (entry != NULL) {
		content = entry->content;
		flags = entry->flags;
		if (content != NULL)
			memtable_space_enter(&shard->space, &hold);
	}
	lock_drop(&shard->lock);
	if (content == NULL)
		return 0;
	iterator = arena_alloc(reading->arena, sizeof(*iterator));
	if (iterator == NULL) {
		memtable_space_leave(&hold);
		return memtable_read_no_memory(err);
	}
	iterator->hold = hold;
	memtable_hold_give(&iterator->hold, holds);
	iterator->reading = *reading;
	memtable_base_init(
	    &iterator->base, command->table, reading, command->token, memtable_entry_key(entry));
	memtable_lone_open(iterator, content, flags);
	*out = &iterator->base;
	return 0;
}

static int
memtable_read_rows(struct memtable *memtable, const struct read_command *command,
    const struct memtable_reading *reading, struct memtable_hold **holds,
    struct unfiltered_iterator **out, struct error *err)
{
	struct memtable_shard *shard =
	    &memtable->shards[memtable_shard_index(memtable, command->token)];
	const struct memtable_version *static_version = NULL;
	struct memtable_rows_iterator *iterator = arena_alloc(reading->arena, sizeof(*iterator));
	const struct memtable_entry *entry;
	const struct memtable_rows *rows;

	if (iterator == NULL)
		return memtable_read_no_memory(err);
	iterator->reading = *reading;

	lock_take(&shard->lock);
	entry = memtable_find_locked(shard, command->token, command->key);
	rows = entry != NULL ? entry->content : NULL;
	if (rows != NULL) {
		memtable_space_enter(&shard->space, &iterator->hold);
		memtable_base_init(&iterator->base, command->table, reading, command->token,
		    memtable_entry_key(entry));
		memtable_rows_open_locked(iterator, shard, rows, &static_version);
		/* The first rows too, while the lock is held anyway; with ranges the slice's
		 * beginning needs a look first. */
		if (iterator->ranges == NULL && memtable_rows_next_slice(iterator))
			memtable_rows_fill_locked(iterator);
	}
	lock_drop(&shard->lock);
	if (rows == NULL)
		return 0;
	memtable_hold_give(&iterator->hold, holds);
	if (memtable_rows_open_static(iterator, static_version, err) != 0) {
		memtable_rows_close(&iterator->base);
		return -1;
	}
	*out = &iterator->base;
	return 0;
}

int
memtable_read(struct memtable *memtable, const struct read_command *command, struct arena *arena,
    struct memtable_hold **holds, struct unfiltered_iterator **out, struct error *err)
{
	struct memtable_reading reading;

	*out = NULL;
	if (memtable_reading_init(&reading, memtable, command, arena, err) != 0)
		return -1;
	if (memtable->has_clustering)
		return memtable_read_rows(memtable, command, &reading, holds, out, err);
	return memtable_read_lone(memtable, command, &reading, holds, out, err);
}

/* ---- many partitions ---------------------------------------------------------------------------- */

enum { MEMTABLE_SCAN_BATCH = 64, MEMTABLE_SCAN_AHEAD = 4 };

struct memtable_partition_place {
	const struct memtable_entry *entry;
	const void *content;
	int64_t token;
	uint32_t flags;
};

struct memtable_scan {
	struct partition_iterator base;
	struct memtable *memtable;
	const struct table_metadata *table;
	struct memtable_reading reading;
	struct slice after; /* of the first partition only: the one with first_key */
	struct slice first_key;
	struct arena turns[2], statics; /* of a flush or a transient read */

	/* One for each shard, entered when its first places are copied. NULL: nobody writes, it is a flush. */
	struct memtable_hold *shard_holds;
	struct memtable_hold **holds; /* where to put them; may be NULL */

	/* Where the scan goes on: entries after (prefix, key), or from it on. */
	uint32_t shard;
	uint64_t prefix;
	struct slice key;
	bool is_after;
	uint64_t last_prefix; /* inclusive */
	bool is_finished;

	/* The current partition. */
	struct memtable_lone_iterator lone;
	struct memtable_rows_iterator wide;

	uint32_t batch_count, batch_at;
	struct memtable_partition_place batch[MEMTABLE_SCAN_BATCH];
};

static inline void
memtable_prefetch_content(const struct memtable_partition_place *place)
{
	const char *at = place->content;

	__builtin_prefetch(at);
	__builtin_prefetch(at + 64);
	__builtin_prefetch(at + 128);
	__builtin_prefetch(at + 192);
}

static void
memtable_scan_enter_locked(struct memtable_scan *scan)
{
	struct memtable_hold *hold;

	if (scan->shard_holds == NULL)
		return;
	hold = &scan->shard_holds[scan->shard];
	if (hold->space != NULL)
		return;
	memtable_space_enter(&scan->memtable->shards[scan->shard].space, hold);
	memtable_hold_give(hold, scan->holds);
}

/* Copy the places of the next partitions, from as many shards as it takes to find some. */
static void
memtable_scan_fill(struct memtable_scan *scan)
{
	struct memtable *memtable = scan->memtable;

	scan->batch_at = scan->batch_count = 0;
	while (scan->batch_count == 0 && !scan->is_finished) {
		struct memtable_shard *shard = &memtable->shards[scan->shard];
		struct memtable_cursor cursor;

		lock_take(&shard->lock);
		memtable_scan_enter_locked(scan);
		memtable_cursor_seek(
		    &cursor, &shard->partitions, scan->prefix, scan->key, scan->is_after);
		for (; cursor.entry != NULL && scan->batch_count < MEMTABLE_SCAN_BATCH;
		     memtable_cursor_next(&cursor)) {
			if (cursor.prefix > scan->last_prefix) {
				scan->is_finished = true;
				break;
			}
			/* Neighbours in order are strangers in memory: all are asked for before the
			 * first is looked at. */
			__builtin_prefetch(cursor.entry);
			scan->batch[scan->batch_count++] = (struct memtable_partition_place){
			    .entry = cursor.entry, .token = memtable_prefix_token(cursor.prefix)};
		}
		for (size_t i = 0; i < scan->batch_count; i++) {
			scan->batch[i].content = scan->batch[i].entry->content;
			scan->batch[i].flags = scan->batch[i].entry->flags;
			if (i < MEMTABLE_SCAN_AHEAD)
				memtable_prefetch_content(&scan->batch[i]);
		}
		lock_drop(&shard->lock);
		if (scan->batch_count == MEMTABLE_SCAN_BATCH) {
			const struct memtable_partition_place *last =
			    &scan->batch[scan->batch_count - 1];

			scan->prefix = memtable_token_prefix(last->token);
			scan->key = memtable_entry_key(last->entry);
			scan->is_after = true;
		} else if (++scan->shard == memtable->shard_count) {
			scan->is_finished = true;
		}
	}
}

static int
memtable_scan_open_rows(struct memtable_scan *scan, const struct memtable_partition_place *place,
    struct unfiltered_iterator **out, struct error *err)
{
	struct memtable_shard *shard =
	    &scan->memtable->shards[memtable_shard_index(scan->memtable, place->token)];
	struct memtable_rows_iterator *iterator = &scan->wide;
	const struct memtable_version *static_version;

	iterator->reading = scan->reading;
	memtable_base_init(&iterator->base, scan->table, &scan->reading, place->token,
	    memtable_entry_key(place->entry));
	lock_take(&shard->lock);
	memtable_rows_open_locked(iterator, shard, place->content, &static_version);
	if (iterator->ranges == NULL && memtable_rows_next_slice(iterator))
		memtable_rows_fill_locked(iterator);
	lock_drop(&shard->lock);
	if (memtable_rows_open_static(iterator, static_version, err) != 0) {
		memtable_rows_close(&iterator->base);
		return -1;
	}
	*out = &iterator->base;
	return 0;
}

static int
memtable_scan_next(
    struct partition_iterator *base, struct unfiltered_iterator **out, struct error *err)
{
	struct memtable_scan *scan = (struct memtable_scan *)base;

	for (;;) {
		const struct memtable_partition_place *place;
		struct slice key;

		if (scan->batch_at == scan->batch_count)
			memtable_scan_fill(scan);
		if (scan->batch_count == 0)
			return 0;
		place = &scan->batch[scan->batch_at++];
		if (scan->batch_at + MEMTABLE_SCAN_AHEAD <= scan->batch_count)
			memtable_prefetch_content(place + MEMTABLE_SCAN_AHEAD);
		if (place->content == NULL)
			continue; /* a write that failed without memory */
		key = memtable_entry_key(place->entry);
		scan->reading.after = slice_null;
		if (!slice_is_null(scan->after) && slice_equal(key, scan->first_key))
			scan->reading.after = scan->after;
		if (scan->reading.turns != NULL)
			arena_reset(&scan->statics);
		if (scan->memtable->has_clustering)
			return memtable_scan_open_rows(scan, place, out, err) == 0 ? 1 : -1;
		scan->lone.reading = scan->reading;
		memtable_base_init(
		    &scan->lone.base, scan->table, &scan->reading, place->token, key);
		memtable_lone_open(&scan->lone, place->content, place->flags);
		*out = &scan->lone.base;
		return 1;
	}
}

static void
memtable_scan_close(struct partition_iterator *base)
{
	struct memtable_scan *scan = (struct memtable_scan *)base;

	arena_fini(&scan->turns[0]);
	arena_fini(&scan->turns[1]);
	arena_fini(&scan->statics);
}

static const struct partition_iterator_ops memtable_scan_ops = {
    memtable_scan_next,
    memtable_scan_close,
};

static struct memtable_scan *
memtable_scan_new(struct memtable *memtable, const struct table_metadata *table,
    struct arena *arena, struct error *err)
{
	struct memtable_scan *scan = arena_alloc(arena, sizeof(*scan));

	if (scan == NULL) {
		memtable_read_no_memory(err);
		return NULL;
	}
	scan->base.ops = &memtable_scan_ops;
	scan->memtable = memtable;
	scan->table = table;
	scan->shard_holds = NULL;
	scan->holds = NULL;
	scan->after = scan->first_key = slice_null;
	arena_init(&scan->turns[0], 8 * 1024);
	arena_init(&scan->turns[1], 8 * 1024);
	arena_init(&scan->statics, 4096);
	scan->shard = 0;
	scan->prefix = 0;
	scan->key = slice_empty;
	scan->is_after = false;
	scan->last_prefix = UINT64_MAX;
	scan->is_finished = false;
	scan->batch_count = scan->batch_at = 0;
	return scan;
}

/* Where a range begins and ends among the prefixes. */
static void
memtable_scan_set_range(struct memtable_scan *scan, const struct token_range *range)
{
	uint64_t left = memtable_token_prefix(range->left);
	uint64_t right = memtable_token_prefix(range->right);

	if (!slice_is_null(range->start_key)) {
		scan->prefix = left;
		scan->key = range->start_key;
		scan->is_after = range->start_key_exclusive;
	} else if (range->left != INT64_MIN) {
		scan->prefix = left;
		if (!range->includes_left && left == UINT64_MAX)
			scan->is_finished = true;
		else if (!range->includes_left)
			scan->prefix++;
	}
	if (range->right != INT64_MIN)
		scan->last_prefix = range->excludes_right ? right - 1 : right;
	scan->shard = memtable_shard_index(scan->memtable, memtable_prefix_token(scan->prefix));
}

int
memtable_scan(struct memtable *memtable, const struct read_command *command, struct arena *arena,
    struct memtable_hold **holds, struct partition_iterator **out, struct error *err)
{
	struct memtable_scan *scan = memtable_scan_new(memtable, command->table, arena, err);

	if (scan == NULL ||
	    memtable_reading_init(&scan->reading, memtable, command, arena, err) != 0)
		return -1;
	scan->holds = holds;
	scan->shard_holds = arena_calloc(arena, memtable->shard_count, sizeof(*scan->shard_holds));
	if (scan->shard_holds == NULL)
		return memtable_read_no_memory(err);
	if (command->is_transient) {
		scan->reading.arena = &scan->turns[0];
		scan->reading.static_arena = &scan->statics;
		scan->reading.turns = scan->turns;
	}
	scan->after = command->after_position;
	scan->first_key = command->range.start_key;
	memtable_scan_set_range(scan, &command->range);
	*out = &scan->base;
	return 0;
}

int
memtable_flush_iterator(struct memtable *memtable, bool is_raw, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	struct memtable_scan *scan = memtable_scan_new(memtable, memtable->table, arena, err);

	if (scan == NULL)
		return -1;
	scan->reading = (struct memtable_reading){
	    .codec = &memtable->codec,
	    .arena = &scan->turns[0],
	    .static_arena = &scan->statics,
	    .turns = scan->turns,
	    .is_raw = is_raw && row_codec_is_carried(&memtable->codec, memtable->table),
	};
	*out = &scan->base;
	return 0;
}
