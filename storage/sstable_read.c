/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One partition of Data.db:
 *
 *   u16 n + key; deletion time (12 bytes); where the table has static columns: the static row, always;
 *   rows and markers, each with its size; the byte 01
 *
 * Forward: unfiltereds are walked by their frames (sizes), only those inside a slice are decoded; with
 * a promoted index the walk begins in the first block that can matter. Reversed: block after block from
 * the last, each walked forward once to learn where its items are, then given from its end.
 *
 * The deletion that is open where a slice begins comes from the markers that were walked over, or
 * from the promoted index where blocks were skipped. It is given as a marker that has the slice's bound
 * for a position and no clustering values of its own.
 */
#include "base/hash.h"
#include "storage/row_codec.h"
#include "storage/sstable_internal.h"

enum {
	SSTABLE_KEY_HEADER = 2,
	SSTABLE_DELETION_SIZE = 12,
	SSTABLE_POSITION_ROW = 0x38, /* last byte of a row's position */
};

/* ---- frames ------------------------------------------------------------------------------------------- */

static void
sstable_frame_values(
    struct reader *reader, const struct table_metadata *table, struct sstable_frame *frame)
{
	uint64_t header = 0;

	for (uint32_t i = 0; i < frame->count; i++) {
		if (i % 32 == 0)
			header = row_get_vint(reader);
		if ((header & 3) == 0) {
			int32_t fixed = table->clustering[i].type->fixed_length;
			uint64_t size = fixed >= 0 ? (uint64_t)fixed : row_get_vint(reader);

			if (size > reader_left(reader)) {
				reader->is_failed = true;
				return;
			}
			frame->values[i] = slice_of(reader->at, (size_t)size);
			reader->at += size;
		} else {
			frame->values[i] = (header & 3) == 1 ? slice_empty : slice_null;
		}
		header >>= 2;
	}
}

/* 1: *frame has total; 0: the view is too short to tell; -1: wrong. */
static int
sstable_frame_parse(struct slice view, const struct table_metadata *table, bool is_static,
    struct sstable_frame *frame, struct error *err)
{
	struct reader reader = reader_of(view);
	uint8_t flags = row_get_u8(&reader);
	uint64_t size;

	if (reader.is_failed)
		return 0;
	frame->kind = UNFILTERED_ROW;
	frame->bound = is_static ? BOUND_STATIC_CLUSTERING : BOUND_CLUSTERING;
	frame->count = is_static ? 0 : table->clustering_count;
	if ((flags & UNFILTERED_END_OF_PARTITION) != 0) {
		frame->kind = UNFILTERED_END;
		frame->total = 1;
		return 1;
	}
	if ((flags & ROW_IS_MARKER) != 0) {
		uint8_t kind = reader_u8(&reader);

		frame->kind = UNFILTERED_MARKER;
		frame->bound = kind;
		frame->count = reader_u16(&reader);
		if (reader.is_failed)
			return 0;
		if (kind > BOUND_EXCL_START || kind == BOUND_CLUSTERING ||
		    kind == BOUND_STATIC_CLUSTERING || is_static)
			return error_set(
			    err, ERROR_CORRUPT, "range tombstone bound of kind %u", kind);
		if (frame->count > table->clustering_count)
			return error_set(
			    err, ERROR_CORRUPT, "range tombstone bound of %u values", frame->count);
	} else if ((flags & ROW_EXTENSION) != 0) {
		reader_u8(&reader);
	}
	sstable_frame_values(&reader, table, frame);
	size = row_get_vint(&reader);
	if (reader.is_failed)
		return 0;
	if (size > INT64_MAX / 2)
		return error_set(err, ERROR_CORRUPT, "row of %llu bytes", (unsigned long long)size);
	frame->total = (uint64_t)(reader.at - view.data) + size;
	return 1;
}

int
sstable_frame_read(struct sstable_cursor *cursor, const struct table_metadata *table,
    uint64_t position, bool is_static, struct arena *arena, struct sstable_frame *frame,
    struct error *err)
{
	struct sstable_file *file = cursor->file;
	size_t need = 1;

	for (;;) {
		struct slice view;
		uint64_t left = file->length - position;
		int rc;

		if (position >= file->length)
			return sstable_corrupt(file, position, err, "the partition has no end");
		if (sstable_cursor_peek(cursor, arena, position, need, &view, err) != 0)
			return -1;
		rc = sstable_frame_parse(view, table, is_static, frame, err);
		if (rc < 0)
			return sstable_corrupt_prefix(file, position, err);
		if (rc > 0 && frame->total <= view.size) {
			frame->view = slice_of(view.data, (size_t)frame->total);
			return 0;
		}
		if (rc > 0 ? frame->total > left : view.size >= left)
			return sstable_corrupt(
			    file, position, err, "a row goes beyond the end of the data");
		need = rc > 0 ? (size_t)frame->total : view.size * 2 + 256;
	}
}

/* ---- the header of a partition ---------------------------------------------------------------------------- */

static int
sstable_read_static(struct sstable_iterator *iterator, uint64_t position,
    const struct sstable_open_options *options, struct error *err)
{
	const struct row_codec *codec = &iterator->binding->codec;
	struct sstable_frame frame = {0};
	struct unfiltered_iterator *base = &iterator->base;
	enum unfiltered_kind kind;
	struct marker unused;
	struct reader reader;

	if (sstable_frame_read(
		iterator->data, codec->table, position, true, iterator->arena, &frame, err) != 0)
		return -1;
	iterator->rows = position + frame.total;
	if (frame.kind != UNFILTERED_ROW)
		return sstable_corrupt(
		    iterator->data->file, position, err, "the static row is missing");
	if (!options->with_static)
		return 0;
	/* Lives as long as the partition; in a transient scan chunks do not. */
	reader = reader_of(
	    iterator->data->is_transient ? arena_copy(iterator->arena, frame.view) : frame.view);
	if (unfiltered_decode(codec, ROW_CODEC_SSTABLE, &reader, true, options->wanted_statics,
		iterator->arena, &kind, &base->static_row, &unused, err) != 0)
		return sstable_corrupt_prefix(iterator->data->file, position, err);
	if (!iterator->data->is_transient)
		sstable_cursor_lend(iterator->data);
	base->has_static_row = !row_is_empty(&base->static_row);
	return 0;
}

static int
sstable_read_header(struct sstable_iterator *iterator, struct slice key,
    const struct sstable_open_options *options, struct error *err)
{
	struct sstable_file *file = iterator->data->file;
	uint64_t position = iterator->start;
	struct slice view;
	size_t key_size, size;

	if (sstable_cursor_peek(
		iterator->data, iterator->arena, position, SSTABLE_KEY_HEADER, &view, err) != 0)
		return -1;
	if (view.size < SSTABLE_KEY_HEADER)
		return sstable_corrupt(file, position, err, "the file ends inside a key");
	key_size = load_u16(view.data);
	size = SSTABLE_KEY_HEADER + key_size + SSTABLE_DELETION_SIZE;
	if (view.size < size &&
	    sstable_cursor_peek(iterator->data, iterator->arena, position, size, &view, err) != 0)
		return -1;
	if (view.size < size)
		return sstable_corrupt(file, position, err, "the file ends inside a key");
	if (slice_is_null(key)) {
		key =
		    arena_copy(iterator->arena, slice_of(view.data + SSTABLE_KEY_HEADER, key_size));
		if (slice_is_null(key))
			return error_set(err, ERROR_NO_MEMORY, "no memory for a key");
		iterator->base.token = murmur3_token(key);
	} else if (key.size != key_size ||
	    memcmp(key.data, view.data + SSTABLE_KEY_HEADER, key_size) != 0) {
		return sstable_corrupt(
		    file, position, err, "here is another key than the index says");
	}
	iterator->base.key = key;
	view = slice_of(view.data + SSTABLE_KEY_HEADER + key_size, SSTABLE_DELETION_SIZE);
	struct reader reader = reader_of(view);
	iterator->base.partition_deletion = deletion_decode(&reader);
	iterator->rows = position + size;
	if (iterator->binding->codec.static_count == 0)
		return 0;
	return sstable_read_static(iterator, iterator->rows, options, err);
}

/* ---- slices ----------------------------------------------------------------------------------------------- */

/* Positions "before" come earlier in the order of the iteration. */
static inline int
sstable_iterator_compare(const struct sstable_iterator *iterator, struct slice a, struct slice b)
{
	int order = slice_compare(a, b);

	return iterator->base.is_reversed ? -order : order;
}

static const struct clustering_slice *
sstable_iterator_slice(const struct sstable_iterator *iterator)
{
	uint32_t i = iterator->slice;

	return &iterator->slices[iterator->base.is_reversed ? iterator->slice_count - 1 - i : i];
}

/* Where the current slice is entered and left, in the order of the iteration; null: open. */
static struct slice
sstable_iterator_entry(const struct sstable_iterator *iterator)
{
	const struct clustering_slice *slice;

	if (iterator->slice_count == 0)
		return slice_null;
	slice = sstable_iterator_slice(iterator);
	return iterator->base.is_reversed ? slice->end : slice->start;
}

static struct slice
sstable_iterator_exit(const struct sstable_iterator *iterator)
{
	const struct clustering_slice *slice;

	if (iterator->slice_count == 0)
		return slice_null;
	slice = sstable_iterator_slice(iterator);
	return iterator->base.is_reversed ? slice->start : slice->end;
}

/* Slices without what lies before the paging position. */
static int
sstable_iterator_clip(struct sstable_iterator *iterator, const struct clustering_filter *filter,
    struct slice after, struct error *err)
{
	uint32_t count = filter == NULL ? 0 : filter->slice_count;
	struct clustering_slice *slices;
	uint32_t kept = 0;

	if (filter != NULL)
		iterator->slices = filter->slices;
	iterator->slice_count = count;
	if (slice_is_null(after))
		return 0;
	slices = arena_calloc(iterator->arena, (size_t)count + 1, sizeof(*slices));
	if (slices == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u slices", count);
	for (uint32_t i = 0; i < (count == 0 ? 1 : count); i++) {
		struct clustering_slice slice = {slice_null, slice_null};

		if (count > 0)
			slice = filter->slices[i];
		if (iterator->base.is_reversed) {
			if (!slice_is_null(slice.start) && slice_compare(slice.start, after) >= 0)
				continue;
			if (slice_is_null(slice.end) || slice_compare(slice.end, after) > 0)
				slice.end = after;
		} else {
			if (!slice_is_null(slice.end) && slice_compare(slice.end, after) <= 0)
				continue;
			if (slice_is_null(slice.start) || slice_compare(slice.start, after) < 0)
				slice.start = after;
		}
		slices[kept++] = slice;
	}
	iterator->slices = slices;
	iterator->slice_count = kept;
	iterator->has_nothing = kept == 0;
	return 0;
}

/* ---- the promoted index ------------------------------------------------------------------------------------ */

static int
sstable_iterator_block(
    struct sstable_iterator *iterator, uint32_t i, struct index_block *block, struct error *err)
{
	return sstable_index_block(&iterator->index, iterator->binding->codec.table,
	    &iterator->entry, i, iterator->arena, block, err);
}

/* Forward: go to the first block whose last item is at or behind `entry`, if that is ahead of us. */
static int
sstable_iterator_seek(struct sstable_iterator *iterator, struct slice entry, struct error *err)
{
	uint32_t low = 0, high = iterator->entry.block_count;
	struct index_block block;

	if (high == 0 || slice_is_null(entry))
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sstable_iterator_block(iterator, middle, &block, err) != 0)
			return -1;
		if (slice_compare(block.last, entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	/* Behind the last block there is nothing; its markers still tell what is open (nothing). */
	if (low == iterator->entry.block_count)
		low--;
	if (low == 0)
		return 0;
	if (sstable_iterator_block(iterator, low, &block, err) != 0)
		return -1;
	if (iterator->start + block.offset <= iterator->position)
		return 0;
	iterator->position = iterator->start + block.offset;
	iterator->has_frame = false;
	if (iterator->position >= iterator->data->file->length)
		return sstable_corrupt(iterator->index.file, iterator->entry.blocks_position, err,
		    "block %u lies behind the end of the data", low);
	if (sstable_iterator_block(iterator, low - 1, &block, err) != 0)
		return -1;
	iterator->open = block.end_open;
	return 0;
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* A marker at the bound of a slice. It opens in the order of the iteration, or closes. */
static void
sstable_iterator_bound(const struct sstable_iterator *iterator, struct slice position,
    bool is_entry, struct unfiltered *out)
{
	/* A row's own position, or behind a prefix: see position.c. */
	bool is_after = position.data[position.size - 1] >= SSTABLE_POSITION_ROW;

	*out = (struct unfiltered){.kind = UNFILTERED_MARKER};
	out->marker.position = position;
	out->marker.open = DELETION_LIVE;
	out->marker.close = DELETION_LIVE;
	if (is_entry != iterator->base.is_reversed) {
		out->marker.kind = is_after ? BOUND_EXCL_START : BOUND_INCL_START;
		out->marker.open = iterator->open;
	} else {
		out->marker.kind = is_after ? BOUND_INCL_END : BOUND_EXCL_END;
		out->marker.close = iterator->open;
	}
}

static struct arena *
sstable_iterator_row_arena(const struct sstable_iterator *iterator)
{
	return iterator->row_arenas[iterator->calls & 1];
}

static struct slice
sstable_frame_position(
    const struct sstable_iterator *iterator, const struct sstable_frame *frame, struct arena *arena)
{
	if (frame->count == 0 && frame->kind == UNFILTERED_ROW)
		return iterator->binding->row_position;
	return position_make(
	    iterator->binding->codec.table, frame->bound, frame->values, frame->count, arena);
}

static int
sstable_iterator_decode(struct sstable_iterator *iterator, struct slice view, uint64_t at,
    struct slice position, struct unfiltered *out, struct error *err)
{
	struct reader reader = reader_of(view);
	struct row row;
	struct marker marker;

	if (iterator->is_raw &&
	    row_raw_cut(&iterator->binding->codec, ROW_CODEC_SSTABLE, view,
		sstable_iterator_row_arena(iterator), &out->raw)) {
		sstable_cursor_lend(iterator->data);
		out->kind = UNFILTERED_RAW;
		out->raw.position = position;
		return 0;
	}
	if (unfiltered_decode(&iterator->binding->codec, ROW_CODEC_SSTABLE, &reader, false,
		iterator->wanted_regulars, sstable_iterator_row_arena(iterator), &out->kind, &row,
		&marker, err) != 0)
		return sstable_corrupt_prefix(iterator->data->file, at, err);
	sstable_cursor_lend(iterator->data);
	if (out->kind == UNFILTERED_ROW) {
		out->row = row;
		out->row.position = position;
	} else {
		out->marker = marker;
		out->marker.position = position;
	}
	return 0;
}

/* What is open behind a marker, in the order of the iteration. */
static struct deletion
sstable_marker_leaves_open(const struct sstable_iterator *iterator, const struct marker *marker)
{
	if (iterator->base.is_reversed)
		return bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	return bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
}

/* The next item, looked at. 1, 0 at the end of the partition, -1. */
static int
sstable_forward_look(struct sstable_iterator *iterator, struct error *err)
{
	struct arena *arena = sstable_iterator_row_arena(iterator);

	if (iterator->is_finished)
		return 0;
	if (iterator->has_frame)
		return 1;
	if (sstable_frame_read(iterator->data, iterator->binding->codec.table, iterator->position,
		false, arena, &iterator->frame, err) != 0)
		return -1;
	if (iterator->frame.kind == UNFILTERED_END) {
		iterator->is_finished = true;
		iterator->after = iterator->position + 1;
		return 0;
	}
	iterator->frame_position = sstable_frame_position(iterator, &iterator->frame, arena);
	if (slice_is_null(iterator->frame_position))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	iterator->has_frame = true;
	return 1;
}

static void
sstable_forward_consume(struct sstable_iterator *iterator)
{
	iterator->position += iterator->frame.total;
	iterator->has_frame = false;
}

static int
sstable_forward_take(struct sstable_iterator *iterator, struct unfiltered *out, struct error *err)
{
	int rc = sstable_iterator_decode(
	    iterator, iterator->frame.view, iterator->position, iterator->frame_position, out, err);

	sstable_forward_consume(iterator);
	return rc;
}

/* ---- reversed ---------------------------------------------------------------------------------------------------- */

static int
sstable_reversed_add(struct sstable_iterator *iterator, const struct sstable_frame *frame,
    uint64_t at, struct error *err)
{
	struct sstable_item *item;

	if (iterator->item_count == iterator->item_room) {
		size_t room = iterator->item_room == 0 ? 64 : iterator->item_room * 2;
		struct sstable_item *items = arena_calloc(iterator->arena, room, sizeof(*items));

		if (items == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for %zu rows", room);
		if (iterator->item_count > 0)
			memcpy(items, iterator->items, iterator->item_count * sizeof(*items));
		iterator->items = items;
		iterator->item_room = room;
	}
	item = &iterator->items[iterator->item_count++];
	item->at = at;
	item->size = frame->total;
	item->kind = frame->kind;
	item->position = sstable_frame_position(iterator, frame, iterator->arena);
	if (slice_is_null(item->position))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	return 0;
}

/* Walk [from, to) of the file, or to the end of the partition. */
static int
sstable_reversed_walk(
    struct sstable_iterator *iterator, uint64_t from, uint64_t to, struct error *err)
{
	iterator->item_count = 0;
	while (from < to) {
		struct sstable_frame *frame = &iterator->frame;

		if (sstable_frame_read(iterator->data, iterator->binding->codec.table, from, false,
			iterator->arena, frame, err) != 0)
			return -1;
		if (frame->kind == UNFILTERED_END)
			break;
		if (sstable_reversed_add(iterator, frame, from, err) != 0)
			return -1;
		from += frame->total;
	}
	return 0;
}

/* Load the last block before the current one that begins at or before `entry`. */
static int
sstable_reversed_load(struct sstable_iterator *iterator, struct slice entry, struct error *err)
{
	uint32_t low = 0,
		 high = iterator->has_block ? iterator->block : iterator->entry.block_count;
	struct index_block block;

	if (iterator->entry.block_count == 0) {
		iterator->is_finished = iterator->has_block;
		if (iterator->has_block)
			return 0;
		iterator->has_block = true;
		return sstable_reversed_walk(iterator, iterator->rows, UINT64_MAX, err);
	}
	/* Blocks below `low` begin at or before entry, those from `high` on behind it. */
	if (slice_is_null(entry))
		low = high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sstable_iterator_block(iterator, middle, &block, err) != 0)
			return -1;
		if (slice_compare(block.first, entry) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0) {
		/* Nothing comes, so nothing can be open. */
		iterator->open = DELETION_LIVE;
		iterator->is_finished = true;
		iterator->item_count = 0;
		return 0;
	}
	if (sstable_iterator_block(iterator, low - 1, &block, err) != 0)
		return -1;
	if (iterator->has_block && low != iterator->block)
		iterator->open = block.end_open; /* blocks were skipped */
	else if (!iterator->has_block)
		iterator->open = block.end_open;
	iterator->has_block = true;
	iterator->block = low - 1;
	return sstable_reversed_walk(iterator, iterator->start + block.offset,
	    iterator->start + block.offset + block.width, err);
}

static int
sstable_reversed_look(struct sstable_iterator *iterator, struct slice entry, struct error *err)
{
	while (iterator->item_count == 0 && !iterator->is_finished) {
		if (sstable_reversed_load(iterator, entry, err) != 0)
			return -1;
	}
	if (iterator->item_count == 0)
		return 0;
	iterator->frame_position = iterator->items[iterator->item_count - 1].position;
	iterator->frame.kind = iterator->items[iterator->item_count - 1].kind;
	return 1;
}

static int
sstable_reversed_take(struct sstable_iterator *iterator, struct unfiltered *out, struct error *err)
{
	const struct sstable_item *item = &iterator->items[--iterator->item_count];
	struct slice view;

	if (sstable_cursor_peek(
		iterator->data, iterator->arena, item->at, (size_t)item->size, &view, err) != 0)
		return -1;
	return sstable_iterator_decode(
	    iterator, slice_of(view.data, (size_t)item->size), item->at, item->position, out, err);
}

/* ---- the iterator -------------------------------------------------------------------------------------------------- */

static int
sstable_iterator_look(struct sstable_iterator *iterator, struct error *err)
{
	if (!iterator->base.is_reversed)
		return sstable_forward_look(iterator, err);
	return sstable_reversed_look(
	    iterator, iterator->is_inside ? slice_null : sstable_iterator_entry(iterator), err);
}

static int
sstable_iterator_take(struct sstable_iterator *iterator, struct unfiltered *out, struct error *err)
{
	return iterator->base.is_reversed ? sstable_reversed_take(iterator, out, err)
					  : sstable_forward_take(iterator, out, err);
}

/* Pass over what lies before the slice. 1: *out is the marker that opens it, 0: nothing is open. */
static int
sstable_iterator_enter(struct sstable_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct slice entry = sstable_iterator_entry(iterator);

	if (!iterator->base.is_reversed && sstable_iterator_seek(iterator, entry, err) != 0)
		return -1;
	while (!slice_is_null(entry)) {
		int rc = sstable_iterator_look(iterator, err);

		if (rc < 0)
			return -1;
		if (rc == 0 ||
		    sstable_iterator_compare(iterator, iterator->frame_position, entry) > 0)
			break;
		if (iterator->frame.kind == UNFILTERED_ROW) {
			if (iterator->base.is_reversed)
				iterator->item_count--;
			else
				sstable_forward_consume(iterator);
			continue;
		}
		if (sstable_iterator_take(iterator, out, err) != 0)
			return -1;
		iterator->open = sstable_marker_leaves_open(iterator, &out->marker);
	}
	iterator->is_inside = true;
	if (slice_is_null(entry) || deletion_is_live(iterator->open))
		return 0;
	sstable_iterator_bound(iterator, entry, true, out);
	return 1;
}

/* The slice is done. 1: *out is the marker that closes it. */
static int
sstable_iterator_leave(struct sstable_iterator *iterator, struct unfiltered *out)
{
	struct slice bound = sstable_iterator_exit(iterator);
	bool is_open = !slice_is_null(bound) && !deletion_is_live(iterator->open);

	iterator->slice++;
	iterator->is_inside = false;
	if (is_open && iterator->slice < iterator->slice_count &&
	    slice_equal(bound, sstable_iterator_entry(iterator))) {
		/* The next slice touches this one: two markers in one place would be out of order. */
		iterator->is_inside = true;
		return 0;
	}
	if (is_open)
		sstable_iterator_bound(iterator, bound, false, out);
	return is_open;
}

static int
sstable_iterator_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct sstable_iterator *iterator = (struct sstable_iterator *)base;
	bool is_whole = iterator->slice_count == 0;

	if (iterator->has_nothing)
		return 0;
	if (iterator->data->is_transient) {
		iterator->calls++;
		arena_reset(sstable_iterator_row_arena(iterator));
		sstable_cursor_step(iterator->data);
		iterator->has_frame = false; /* its memory has just gone */
	}
	while (is_whole || iterator->slice < iterator->slice_count) {
		struct slice bound;
		int rc;

		if (!is_whole && !iterator->is_inside) {
			rc = sstable_iterator_enter(iterator, out, err);
			if (rc != 0)
				return rc;
		}
		rc = sstable_iterator_look(iterator, err);
		if (rc < 0)
			return -1;
		if (rc == 0 && is_whole)
			return 0;
		bound = sstable_iterator_exit(iterator);
		if (rc == 0 ||
		    (!slice_is_null(bound) &&
			sstable_iterator_compare(iterator, iterator->frame_position, bound) >= 0)) {
			if (sstable_iterator_leave(iterator, out) > 0)
				return 1;
			continue;
		}
		if (sstable_iterator_take(iterator, out, err) != 0)
			return -1;
		if (out->kind == UNFILTERED_MARKER)
			iterator->open = sstable_marker_leaves_open(iterator, &out->marker);
		else if (out->kind == UNFILTERED_ROW && row_is_empty(&out->row))
			continue; /* all it had were cells of dropped columns */
		return 1;
	}
	return 0;
}

static void
sstable_iterator_close(struct unfiltered_iterator *base)
{
	struct sstable_iterator *iterator = (struct sstable_iterator *)base;

	if (iterator->data == &iterator->own_data)
		sstable_cursor_fini(&iterator->own_data);
	if (iterator->has_index_cursor)
		sstable_cursor_fini(&iterator->index);
	iterator->has_index_cursor = false;
}

static const struct unfiltered_iterator_ops sstable_iterator_ops = {
    .next = sstable_iterator_next,
    .close = sstable_iterator_close,
};

int
sstable_iterator_skip(struct sstable_iterator *iterator, struct error *err)
{
	while (!iterator->is_finished) {
		int rc = sstable_forward_look(iterator, err);

		if (rc < 0)
			return -1;
		if (rc > 0)
			sstable_forward_consume(iterator);
	}
	return 0;
}

int
sstable_iterator_open(struct sstable_iterator *iterator, struct sstable *sstable,
    const struct sstable_binding *binding, struct sstable_cursor *data, struct slice key,
    int64_t token, const struct index_entry *entry, const struct sstable_open_options *options,
    struct arena *arena, struct error *err)
{
	struct sstable_parts *parts = sstable_get_parts(sstable, err);
	uint32_t columns = binding->table->clustering_count;

	if (parts == NULL)
		return -1;
	memset(iterator, 0, offsetof(struct sstable_iterator, own_data));
	iterator->base.ops = &sstable_iterator_ops;
	iterator->base.table = binding->table;
	iterator->base.token = token;
	iterator->base.key = key;
	iterator->base.is_reversed =
	    options->clustering != NULL && options->clustering->is_reversed;
	iterator->base.partition_deletion = DELETION_LIVE;
	iterator->sstable = sstable;
	iterator->binding = binding;
	iterator->arena = arena;
	iterator->row_arenas[0] = arena;
	iterator->row_arenas[1] = arena;
	iterator->data = data != NULL ? data : &iterator->own_data;
	iterator->wanted_regulars = options->wanted_regulars;
	iterator->wanted_statics = options->wanted_statics;
	iterator->is_raw = options->is_raw;
	iterator->entry = *entry;
	iterator->start = entry->data_position;
	iterator->open = DELETION_LIVE;
	if (data == NULL)
		sstable_cursor_init(&iterator->own_data, &parts->data, arena, false, false);
	if (entry->block_count > 0) {
		sstable_cursor_init(&iterator->index, &parts->index, arena, false, false);
		iterator->has_index_cursor = true;
	}
	iterator->frame.values = arena_calloc(arena, (size_t)columns + 1, sizeof(struct slice));
	if (iterator->frame.values == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an iterator");
		goto fail;
	}
	/* With a promoted index the header need not be read, unless its static row is wanted. */
	if (entry->block_count > 0 && !slice_is_null(key) &&
	    (!options->with_static || binding->codec.static_count == 0)) {
		iterator->base.partition_deletion = entry->deletion;
		iterator->rows = iterator->start + entry->header_length;
	} else if (sstable_read_header(iterator, key, options, err) != 0) {
		goto fail;
	}
	iterator->position = iterator->rows;
	if (sstable_iterator_clip(iterator, options->clustering, options->after_position, err) != 0)
		goto fail;
	return 0;
fail:
	sstable_iterator_close(&iterator->base);
	return -1;
}

/* ---- point reads ------------------------------------------------------------------------------------------------------ */

/* 1: *entry says where; 0: the key is not here; -1. */
static int
sstable_locate(struct sstable *sstable, struct sstable_parts *parts,
    const struct read_command *command, struct arena *arena, struct index_entry *entry,
    struct error *err)
{
	struct key_cache *keys =
	    command->table->options.caching_keys ? sstable->context.keys : NULL;
	uint64_t hash[2];
	int rc;

	murmur3_128(command->key, 0, hash);
	if (parts->has_filter) {
		if (!bloom_may_contain(&parts->bloom, hash)) {
			atomic_fetch_add_explicit(
			    &sstable->filter_negatives, 1, memory_order_relaxed);
			return 0;
		}
	}
	rc = keys != NULL && key_cache_get(keys, sstable->data_id, command->key, hash[0], entry);
	if (rc == 0) {
		rc = sstable_index_find(
		    sstable, parts, command->token, command->key, arena, entry, NULL, err);
		if (rc > 0 && keys != NULL)
			key_cache_put(keys, sstable->data_id, command->key, hash[0], entry);
	}
	if (parts->has_filter && rc == 0)
		atomic_fetch_add_explicit(&sstable->filter_false, 1, memory_order_relaxed);
	return rc;
}

int
sstable_read(struct sstable *sstable, const struct read_command *command, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	struct sstable_parts *parts = sstable_get_parts(sstable, err);
	const struct sstable_binding *binding;
	struct sstable_open_options options = {
	    .clustering = &command->clustering,
	    .after_position = command->after_position,
	    .wanted_regulars = command->wanted_regulars,
	    .wanted_statics = command->wanted_statics,
	    .with_static = command->clustering.with_static,
	};
	struct sstable_iterator *iterator;
	struct index_entry entry;
	int rc;

	*out = NULL;
	if (parts == NULL)
		return -1;
	if (!sstable_may_contain(sstable, command))
		return 0;
	rc = sstable_locate(sstable, parts, command, arena, &entry, err);
	if (rc <= 0)
		return rc;
	atomic_fetch_add_explicit(&sstable->reads, 1, memory_order_relaxed);
	binding = sstable_bind(sstable, command->table, err);
	if (binding == NULL)
		return -1;
	iterator = arena_alloc(arena, sizeof(*iterator));
	if (iterator == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an iterator");
	if (sstable_iterator_open(iterator, sstable, binding, NULL, command->key, command->token,
		&entry, &options, arena, err) != 0)
		return -1;
	*out = &iterator->base;
	return 0;
}
