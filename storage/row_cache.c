/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row_cache.h"
#include <stdlib.h>
#include "storage/entry_cache.h"
#include "storage/store_internal.h"

/* A partition that takes more than this part of the cache is not kept. */
enum { ROW_CACHE_SHARE = 64 };

/*
 * A value: this struct, the items, then for each item its position and its encoded row or marker (ROW_CODEC_MESSAGE
 * of `table`), and the encoded static row. Offsets are from the beginning of the value.
 */
struct row_cached {
	const struct table_metadata
	    *table; /* the version it is encoded with; lives as long as the store */
	struct deletion deletion;
	uint32_t item_count;
	uint32_t sturdy_rows; /* that are live and do not expire */
	uint32_t static_at, static_size; /* size 0: none */
	bool is_complete; /* there is nothing behind the last item */
	bool is_too_large; /* not kept; only that is */
};

struct row_cached_item {
	uint32_t at; /* the position, then the encoding */
	uint32_t position_size, size;
	enum unfiltered_kind kind;
};

static const struct row_cached *
row_cached_value(const struct cached *entry)
{
	return (const struct row_cached *)(const void *)entry->value;
}

static const struct row_cached_item *
row_cached_items(const struct row_cached *value)
{
	return (const struct row_cached_item *)(const void *)(value + 1);
}

static struct slice
row_cached_position(const struct row_cached *value, const struct row_cached_item *item)
{
	return slice_of((const uint8_t *)value + item->at, item->position_size);
}

/* ---- making -------------------------------------------------------------------------------------- */

struct row_cache_maker {
	const struct table_metadata *table;
	struct row_codec codec;
	struct row_cached value;
	struct row_cached_item *items; /* owned; `at` counts from the beginning of `bytes` */
	uint32_t capacity;
	struct buffer bytes;
};

static bool
row_is_sturdy(const struct row *row)
{
	if (row->liveness.timestamp != TIMESTAMP_NONE && row->liveness.ttl == TTL_NONE)
		return true;
	for (uint32_t i = 0; i < row->cell_count; i++)
		if (row->cells[i].local_deletion_time == LOCAL_DELETION_TIME_NONE)
			return true;
	return false;
}

static int
row_cache_add(struct row_cache_maker *maker, const struct unfiltered *unfiltered, struct error *err)
{
	const bool is_row = unfiltered->kind == UNFILTERED_ROW;
	const struct slice position =
	    is_row ? unfiltered->row.position : unfiltered->marker.position;
	struct row_cached_item *item;
	size_t from = maker->bytes.size;

	if (maker->value.item_count == maker->capacity) {
		uint32_t capacity = maker->capacity == 0 ? 16 : maker->capacity * 2;
		struct row_cached_item *items = realloc(maker->items, capacity * sizeof(*items));

		if (items == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for the row cache");
		maker->items = items;
		maker->capacity = capacity;
	}
	item = &maker->items[maker->value.item_count++];
	buffer_put(&maker->bytes, position.data, position.size);
	if (is_row) {
		row_encode(&maker->codec, ROW_CODEC_MESSAGE, &unfiltered->row, 0, &maker->bytes);
		maker->value.sturdy_rows += row_is_sturdy(&unfiltered->row);
	} else {
		marker_encode(
		    &maker->codec, ROW_CODEC_MESSAGE, &unfiltered->marker, 0, &maker->bytes);
	}
	*item = (struct row_cached_item){.at = (uint32_t)from,
	    .position_size = (uint32_t)position.size,
	    .size = (uint32_t)(maker->bytes.size - from - position.size),
	    .kind = unfiltered->kind};
	return buffer_check(&maker->bytes, err);
}

/* The partition's first rows; it stops only where no range tombstone is open. */
static int
row_cache_take(struct row_cache_maker *maker, struct unfiltered_iterator *partition,
    uint32_t rows_max, size_t bytes_max, struct error *err)
{
	struct unfiltered unfiltered;
	uint32_t rows = 0;
	bool is_open = false;
	int rc;

	maker->value.deletion = partition->partition_deletion;
	maker->value.is_complete = false;
	if (partition->has_static_row) {
		row_encode(
		    &maker->codec, ROW_CODEC_MESSAGE, &partition->static_row, 0, &maker->bytes);
		maker->value.static_size = (uint32_t)maker->bytes.size;
	}
	while ((rc = unfiltered_iterator_next(partition, &unfiltered, err)) > 0) {
		if (row_cache_add(maker, &unfiltered, err) != 0)
			return -1;
		if (unfiltered.kind == UNFILTERED_MARKER)
			is_open = bound_opens(unfiltered.marker.kind);
		else if (row_is_sturdy(&unfiltered.row))
			rows++;
		if (maker->bytes.size + maker->value.item_count * sizeof(*maker->items) >
		    bytes_max) {
			maker->value.is_too_large = true;
			return 0;
		}
		/* A lone row is all there is: one more step finds the end. */
		if (rows >= rows_max && !is_open && maker->table->clustering_count > 0)
			return 0;
	}
	maker->value.is_complete = rc == 0;
	return rc;
}

static struct cached *
row_cache_assemble(
    const struct row_cache_maker *maker, const struct read_command *command, uint64_t owner)
{
	struct row_cached value = maker->value;
	uint32_t items_size, head;
	struct cached *entry;
	uint8_t *to;

	if (value.is_too_large)
		value.item_count = value.static_size = 0;
	items_size = (uint32_t)(value.item_count * sizeof(*maker->items));
	head = (uint32_t)sizeof(value) + items_size;
	entry = entry_cache_make(owner, command->key, (uint64_t)command->token,
	    head + (value.is_too_large ? 0 : (uint32_t)maker->bytes.size));
	if (entry == NULL)
		return NULL;
	to = entry->value;
	value.static_at = head;
	memcpy(to, &value, sizeof(value));
	if (value.is_too_large)
		return entry;
	for (uint32_t i = 0; i < value.item_count; i++) {
		struct row_cached_item item = maker->items[i];

		item.at += head;
		memcpy(to + sizeof(value) + i * sizeof(item), &item, sizeof(item));
	}
	if (maker->bytes.size > 0)
		memcpy(to + head, maker->bytes.data, maker->bytes.size);
	return entry;
}

/* Read the beginning of the partition and make its entry; NULL with err: the read failed, or no memory. */
static struct cached *
row_cache_make(struct table_store *table, const struct read_command *command, uint64_t owner,
    uint32_t rows_max, struct error *err)
{
	struct entry_cache *cache = table->store->row_cache;
	struct row_cache_maker maker = {.table = atomic_load(&table->metadata)};
	struct read_command head = {.table = maker.table,
	    .key = command->key,
	    .token = command->token,
	    .clustering.with_static = true,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = command->now_seconds};
	struct unfiltered_iterator *partition = NULL;
	struct memtable_hold *holds = NULL;
	struct table_view *view;
	struct cached *entry = NULL;
	struct arena arena;
	int rc;

	arena_init(&arena, 16 << 10);
	buffer_init(&maker.bytes);
	row_codec_init(&maker.codec, maker.table);
	maker.value.table = maker.table;
	maker.value.deletion = DELETION_LIVE;
	maker.value.is_complete = true;
	/* After the promise: whoever wrote before it is in this view. */
	view = table_view_acquire(table);
	rc = store_read_partition(table, view, &head, &arena, &holds, &partition, err);
	if (rc == 0 && partition != NULL)
		rc = row_cache_take(&maker, partition, rows_max,
		    (size_t)(entry_cache_capacity(cache) / ROW_CACHE_SHARE), err);
	if (rc == 0)
		entry = row_cache_assemble(&maker, command, owner);
	if (rc == 0 && entry == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for the row cache");
	unfiltered_iterator_close(partition);
	memtable_release(holds);
	table_view_release(view);
	free(maker.items);
	buffer_fini(&maker.bytes);
	arena_fini(&arena);
	return entry;
}

/* ---- serving ----------------------------------------------------------------------------------------- */

struct row_cached_iterator {
	struct unfiltered_iterator base;
	struct cached *entry; /* a reference */
	const struct row_cached *value;
	const struct read_command *command;
	const struct row_codec *codec;
	struct arena *arena;
	uint32_t taken; /* items so far */
	uint32_t slice; /* the first that may hold what is next */
};

/* Is a row at `position` asked for? Positions come in the order of the stream. */
static bool
row_cached_is_wanted(struct row_cached_iterator *iterator, struct slice position)
{
	const struct clustering_filter *filter = &iterator->command->clustering;
	const struct slice after = iterator->command->after_position;

	if (!slice_is_null(after)) {
		int order = slice_compare(position, after);

		if (filter->is_reversed ? order >= 0 : order <= 0)
			return false;
	}
	if (filter->slice_count == 0)
		return true;
	for (; iterator->slice < filter->slice_count; iterator->slice++) {
		uint32_t nth = filter->is_reversed ? filter->slice_count - 1 - iterator->slice
						   : iterator->slice;
		const struct clustering_slice *slice = &filter->slices[nth];
		bool is_behind_start =
		    slice_is_null(slice->start) || slice_compare(position, slice->start) > 0;
		bool is_before_end =
		    slice_is_null(slice->end) || slice_compare(position, slice->end) < 0;

		if (is_behind_start && is_before_end)
			return true;
		/* Not there yet? */
		if (filter->is_reversed ? !is_before_end : !is_behind_start)
			return false;
	}
	return false;
}

static int
row_cached_decode(struct row_cached_iterator *iterator, const struct row_cached_item *item,
    struct unfiltered *out, struct error *err)
{
	struct slice position = row_cached_position(iterator->value, item);
	struct reader reader = reader_of(slice_of(position.data + position.size, item->size));
	enum unfiltered_kind kind;
	struct marker marker;
	struct row row;

	if (unfiltered_decode(iterator->codec, ROW_CODEC_MESSAGE, &reader, false,
		iterator->command->wanted_regulars, iterator->arena, &kind, &row, &marker,
		err) != 0)
		return -1;
	out->kind = kind;
	if (kind == UNFILTERED_ROW) {
		row.position = position;
		out->row = row;
		return !row_is_empty(&row);
	}
	marker.position = position;
	out->marker = marker;
	return 1;
}

static int
row_cached_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct row_cached_iterator *iterator = (struct row_cached_iterator *)base;
	const struct row_cached *value = iterator->value;

	while (iterator->taken < value->item_count) {
		uint32_t nth =
		    base->is_reversed ? value->item_count - 1 - iterator->taken : iterator->taken;
		const struct row_cached_item *item = &row_cached_items(value)[nth];
		int rc;

		iterator->taken++;
		if (item->kind == UNFILTERED_ROW &&
		    !row_cached_is_wanted(iterator, row_cached_position(value, item)))
			continue;
		rc = row_cached_decode(iterator, item, out, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void
row_cached_close(struct unfiltered_iterator *base)
{
	cached_unref(((struct row_cached_iterator *)base)->entry);
}

static const struct unfiltered_iterator_ops row_cached_ops = {
    .next = row_cached_next,
    .close = row_cached_close,
};

static const struct row_codec *
row_cached_codec(const struct row_cached *value, const struct table_metadata *table,
    struct arena *arena, struct error *err)
{
	struct row_codec *codec = arena_alloc(arena, sizeof(*codec));

	if (codec == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a read");
		return NULL;
	}
	row_codec_init(codec, value->table);
	if (table != value->table && row_codec_bind(codec, table, arena, err) != 0)
		return NULL;
	return codec;
}

static int
row_cached_open_static(struct row_cached_iterator *iterator, struct error *err)
{
	const struct row_cached *value = iterator->value;
	struct unfiltered_iterator *base = &iterator->base;
	struct reader reader =
	    reader_of(slice_of((const uint8_t *)value + value->static_at, value->static_size));
	enum unfiltered_kind kind;
	struct marker marker;

	if (value->static_size == 0 || !iterator->command->clustering.with_static)
		return 0;
	if (unfiltered_decode(iterator->codec, ROW_CODEC_MESSAGE, &reader, true,
		iterator->command->wanted_statics, iterator->arena, &kind, &base->static_row,
		&marker, err) != 0)
		return -1;
	base->has_static_row = !row_is_empty(&base->static_row);
	return 0;
}

/* Takes the entry's reference over, also on failure. */
static int
row_cached_open(struct cached *entry, const struct read_command *command, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	const struct row_cached *value = row_cached_value(entry);
	struct row_cached_iterator *iterator;

	*out = NULL;
	if (value->item_count == 0 && value->static_size == 0 &&
	    deletion_is_live(value->deletion)) {
		cached_unref(entry);
		return 1;
	}
	iterator = arena_zalloc(arena, sizeof(*iterator));
	if (iterator == NULL) {
		cached_unref(entry);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	}
	iterator->base = (struct unfiltered_iterator){.ops = &row_cached_ops,
	    .table = command->table,
	    .token = command->token,
	    .key = command->key,
	    .partition_deletion = value->deletion,
	    .is_reversed = command->clustering.is_reversed};
	iterator->entry = entry;
	iterator->value = value;
	iterator->command = command;
	iterator->arena = arena;
	iterator->codec = row_cached_codec(value, command->table, arena, err);
	if (iterator->codec == NULL || row_cached_open_static(iterator, err) != 0) {
		cached_unref(entry);
		return -1;
	}
	*out = &iterator->base;
	return 1;
}

/* Does the command begin at the beginning of the partition, in its order? */
static bool
row_cache_is_head(const struct read_command *command)
{
	const struct clustering_filter *filter = &command->clustering;

	return !filter->is_reversed && slice_is_null(command->after_position) &&
	    (filter->slice_count == 0 ||
		(filter->slice_count == 1 && slice_is_null(filter->slices[0].start)));
}

/* Is all that the command may give among what is cached? */
static bool
row_cache_covers(const struct row_cached *value, const struct read_command *command)
{
	const struct clustering_filter *filter = &command->clustering;
	const struct row_cached_item *last;
	uint32_t limit = command->row_limit;

	if (value->is_too_large)
		return false;
	if (value->is_complete)
		return true;
	if (value->item_count == 0)
		return false;
	if (command->per_partition_limit < limit)
		limit = command->per_partition_limit;
	if (row_cache_is_head(command) && command->filter_count == 0 && limit > 0 &&
	    limit <= value->sturdy_rows)
		return true;
	last = &row_cached_items(value)[value->item_count - 1];
	for (uint32_t i = 0; i < filter->slice_count; i++)
		if (slice_is_null(filter->slices[i].end) ||
		    slice_compare(filter->slices[i].end, row_cached_position(value, last)) > 0)
			return false;
	return filter->slice_count > 0;
}

int
row_cache_read(struct table_store *table, const struct read_command *command, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	struct entry_cache *cache = table->store->row_cache;
	int32_t rows = atomic_load(&table->row_cache_rows);
	uint64_t owner = atomic_load(&table->row_cache_owner);
	struct cached *entry, *promise;

	if (rows == 0 || entry_cache_capacity(cache) == 0)
		return 0;
	/* With a number of rows only what such a read would look at anyway is worth reading. */
	if (rows != INT32_MAX && command->table->clustering_count > 0 &&
	    !row_cache_is_head(command)) {
		entry = entry_cache_get(cache, owner, command->key, (uint64_t)command->token);
	} else {
		entry = entry_cache_get_or_promise(
		    cache, owner, command->key, (uint64_t)command->token, &promise);
		if (promise != NULL) {
			entry = row_cache_make(table, command, owner, (uint32_t)rows, err);
			entry_cache_fulfil(
			    cache, promise, entry == NULL ? NULL : cached_ref(entry));
			if (entry == NULL)
				return -1;
		}
	}
	if (entry == NULL)
		return 0;
	if (!row_cache_covers(row_cached_value(entry), command)) {
		cached_unref(entry);
		return 0;
	}
	return row_cached_open(entry, command, arena, out, err);
}

/* ---- invalidation -------------------------------------------------------------------------------------- */

void
row_cache_invalidate(struct table_store *table, struct slice key, int64_t token)
{
	entry_cache_remove(
	    table->store->row_cache, atomic_load(&table->row_cache_owner), key, (uint64_t)token);
}

void
row_cache_forget_table(struct table_store *table)
{
	atomic_store(&table->row_cache_owner, atomic_fetch_add(&table->store->cache_owners, 1));
}

void
row_cache_set_table(struct table_store *table, const struct table_metadata *metadata)
{
	int32_t rows = metadata->options.caching_rows;

	atomic_store(&table->row_cache_rows,
	    rows == CACHING_ROWS_NONE      ? 0
		: rows == CACHING_ROWS_ALL ? INT32_MAX
					   : rows);
	row_cache_forget_table(table);
}
