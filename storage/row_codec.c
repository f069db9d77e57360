/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include "storage/row_codec.h"

void
row_codec_init(struct row_codec *codec, const struct table_metadata *table)
{
	*codec = (struct row_codec){
	    .table = table,
	    .static_count = table->static_count,
	    .regular_count = table->regular_count,
	    .statics = table->statics,
	    .regulars = table->regulars,
	    .min_timestamp = CODEC_TIMESTAMP_EPOCH,
	    .min_local_deletion_time = CODEC_DELETION_TIME_EPOCH,
	    .min_ttl = CODEC_TTL_EPOCH,
	};
}

/* Targets and drop times of `count` columns; NULL where they would say nothing. */
static int
row_codec_bind_columns(const struct column_metadata *columns, uint32_t count,
    const struct table_metadata *table, struct arena *arena,
    const struct column_metadata *const **targets_out, const int64_t **dropped_out)
{
	const struct column_metadata **targets = arena_alloc(arena, count * sizeof(*targets));
	int64_t *dropped = arena_alloc(arena, count * sizeof(*dropped));
	bool has_dropped = false;

	if (targets == NULL || dropped == NULL)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		const struct column_metadata *now = table_column(table, columns[i].name);
		const struct dropped_column *gone = table_dropped_column(table, columns[i].name);

		/* A column that came back as something else does not inherit the cells. */
		if (now != NULL &&
		    (now->kind != columns[i].kind || now->is_complex != columns[i].is_complex))
			now = NULL;
		targets[i] = now;
		dropped[i] = gone != NULL ? gone->dropped_us : INT64_MIN;
		has_dropped = has_dropped || gone != NULL;
	}
	*targets_out = targets;
	*dropped_out = has_dropped ? dropped : NULL;
	return 0;
}

int
row_codec_bind(struct row_codec *codec, const struct table_metadata *table, struct arena *arena,
    struct error *err)
{
	if (row_codec_bind_columns(codec->statics, codec->static_count, table, arena,
		&codec->static_targets, &codec->static_dropped_us) != 0 ||
	    row_codec_bind_columns(codec->regulars, codec->regular_count, table, arena,
		&codec->regular_targets, &codec->regular_dropped_us) != 0)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the columns of a row codec");
	codec->table = table;
	return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static inline uint8_t *
row_put_timestamp(const struct row_codec *codec, uint8_t *at, int64_t timestamp)
{
	return row_put_vint(at, (uint64_t)timestamp - (uint64_t)codec->min_timestamp);
}

/* The difference is a 32-bit one, sign extended, as in Java. */
static inline uint8_t *
row_put_int_delta(uint8_t *at, int32_t value, int32_t least)
{
	return row_put_vint(at, (uint64_t)(int64_t)(int32_t)((uint32_t)value - (uint32_t)least));
}

static inline uint8_t *
row_put_deletion(const struct row_codec *codec, uint8_t *at, struct deletion deletion)
{
	at = row_put_timestamp(codec, at, deletion.marked_for_delete_at);
	return row_put_int_delta(at, deletion.local_deletion_time, codec->min_local_deletion_time);
}

/* A value of a type: its length where that is not fixed, then the bytes. */
static inline uint8_t *
row_put_value(const struct type *type, uint8_t *at, struct slice value)
{
	if (type->fixed_length < 0)
		at = row_put_vint(at, value.size);
	else
		assert(value.size == (size_t)type->fixed_length);
	return row_put_bytes(at, value);
}

static size_t
clustering_size_max(const struct slice *values, uint32_t count)
{
	size_t size = VINT_SIZE_MAX * (1 + (size_t)count / 32);

	for (uint32_t i = 0; i < count; i++)
		size += VINT_SIZE_MAX + values[i].size;
	return size;
}

static uint8_t *
clustering_put(
    const struct table_metadata *table, const struct slice *values, uint32_t count, uint8_t *at)
{
	for (uint32_t from = 0; from < count; from += 32) {
		uint32_t to = count - from > 32 ? from + 32 : count;
		uint64_t header = 0;

		for (uint32_t i = from; i < to; i++) {
			if (slice_is_null(values[i]))
				header |= UINT64_C(2) << (2 * (i - from));
			else if (values[i].size == 0)
				header |= UINT64_C(1) << (2 * (i - from));
		}
		at = row_put_vint(at, header);
		for (uint32_t i = from; i < to; i++) {
			if (values[i].size != 0)
				at = row_put_value(table->clustering[i].type, at, values[i]);
		}
	}
	return at;
}

void
clustering_encode(const struct table_metadata *table, const struct slice *values, uint32_t count,
    struct buffer *out)
{
	if (!buffer_reserve(out, clustering_size_max(values, count)))
		return;
	out->size =
	    (size_t)(clustering_put(table, values, count, out->data + out->size) - out->data);
}

/* ---- the columns of a row, one group of cells at a time ---------------------------------------- */

/* A walk over what a row has of the codec's columns, in order. */
struct row_groups {
	const struct column_metadata *columns;
	uint32_t column_count;
	uint32_t next_column;
	const struct cell *cell, *cell_end;
	const struct complex_deletion *deletion, *deletion_end;

	/* The group found. */
	uint32_t column;
	const struct cell *first;
	uint32_t cell_count;
	struct deletion complex_deletion;
};

static void
row_groups_init(struct row_groups *groups, const struct row_codec *codec, const struct row *row)
{
	groups->columns = row->is_static ? codec->statics : codec->regulars;
	groups->column_count = row->is_static ? codec->static_count : codec->regular_count;
	groups->next_column = 0;
	groups->cell = row->cells;
	groups->cell_end = row->cell_count != 0 ? row->cells + row->cell_count : row->cells;
	groups->deletion = row->complex_deletions;
	groups->deletion_end = row->complex_deletion_count != 0
	    ? row->complex_deletions + row->complex_deletion_count
	    : row->complex_deletions;
}

/* Index of a row's column in the codec, or -1: the codec has no such column. */
static int64_t
row_groups_find(struct row_groups *groups, const struct column_metadata *column)
{
	const struct column_metadata *columns = groups->columns;

	/* The usual case: the codec is over the very array that the cells point into. */
	if (column->position < groups->column_count && &columns[column->position] == column)
		return column->position;
	for (; groups->next_column < groups->column_count; groups->next_column++) {
		int order = column_order(&columns[groups->next_column], column);

		if (order == 0)
			return groups->next_column;
		if (order > 0)
			break;
	}
	return -1;
}

static bool
row_groups_next(struct row_groups *groups)
{
	while (groups->cell != groups->cell_end || groups->deletion != groups->deletion_end) {
		const struct column_metadata *column;
		int64_t found;

		if (groups->cell == groups->cell_end)
			column = groups->deletion->column;
		else if (groups->deletion == groups->deletion_end ||
		    column_order(groups->cell->column, groups->deletion->column) <= 0)
			column = groups->cell->column;
		else
			column = groups->deletion->column;

		groups->first = groups->cell;
		if (!column->is_complex && groups->cell != groups->cell_end)
			groups->cell++; /* it is this column's: the least of all, and alone */
		while (column->is_complex && groups->cell != groups->cell_end &&
		    (groups->cell->column == column ||
			column_order(groups->cell->column, column) == 0))
			groups->cell++;
		groups->cell_count = (uint32_t)(groups->cell - groups->first);
		groups->complex_deletion = DELETION_LIVE;
		if (groups->deletion != groups->deletion_end &&
		    column_order(groups->deletion->column, column) == 0)
			groups->complex_deletion = groups->deletion++->deletion;

		found = row_groups_find(groups, column);
		if (found >= 0) {
			groups->column = (uint32_t)found;
			groups->next_column = (uint32_t)found + 1;
			return true;
		}
	}
	return false;
}

/* The usual row: each cell is one column of the very array that the codec is over. */
static bool
row_summarise_plain(
    const struct row_codec *codec, const struct row *row, struct row_summary *summary)
{
	const struct column_metadata *columns = row->is_static ? codec->statics : codec->regulars;
	uint32_t count = row->is_static ? codec->static_count : codec->regular_count;
	size_t bytes = 0;
	uint64_t present = 0;

	if (row->complex_deletion_count != 0)
		return false;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];
		uint32_t position = cell->column->position;

		if (position >= count || &columns[position] != cell->column ||
		    cell->column->is_complex)
			return false;
		if (position < 64)
			present |= UINT64_C(1) << position;
		bytes += cell->value.size;
	}
	summary->group_count = row->cell_count;
	summary->present = present;
	summary->has_complex_deletion = false;
	summary->is_plain = true;
	summary->size_max = bytes + row->cell_count * (size_t)(1 + 4 * VINT_SIZE_MAX);
	summary->size_guess = bytes + row->cell_count * (size_t)2 + 4;
	return true;
}

static void
row_summarise_groups(
    const struct row_codec *codec, const struct row *row, struct row_summary *summary)
{
	struct row_groups groups;

	*summary = (struct row_summary){0};
	row_groups_init(&groups, codec, row);
	while (row_groups_next(&groups)) {
		summary->group_count++;
		if (groups.column < 64)
			summary->present |= UINT64_C(1) << groups.column;
		if (!deletion_is_live(groups.complex_deletion))
			summary->has_complex_deletion = true;
		summary->size_max += 3 * VINT_SIZE_MAX;
		for (uint32_t i = 0; i < groups.cell_count; i++)
			summary->size_max += 1 + 5 * VINT_SIZE_MAX + groups.first[i].path.size +
			    groups.first[i].value.size;
	}
	summary->size_guess = summary->size_max / 2;
}

void
row_summarise(const struct row_codec *codec, const struct row *row, struct row_summary *summary)
{
	uint32_t column_count = row->is_static ? codec->static_count : codec->regular_count;

	if (!row_summarise_plain(codec, row, summary))
		row_summarise_groups(codec, row, summary);
	/* Flags, sizes, liveness, deletion; then the subset, at most a vint a column. */
	summary->size_max += 2 + 8 * VINT_SIZE_MAX + VINT_SIZE_MAX;
	if (column_count >= 64)
		summary->size_max += 3 * (size_t)column_count;
	if (!row->is_static && row->clustering_count > 0)
		summary->size_max += clustering_size_max(row->clustering, row->clustering_count);
}

/* Columns.Serializer.serializeLargeSubset: indexes of what is there, or of what is not. */
static uint8_t *
row_put_large_subset(
    const struct row_codec *codec, const struct row *row, uint32_t present, uint8_t *at)
{
	struct row_groups groups;
	uint32_t next = 0;
	bool puts_present;

	row_groups_init(&groups, codec, row);
	puts_present = present < groups.column_count / 2;
	at = row_put_vint(at, groups.column_count - present);
	while (row_groups_next(&groups)) {
		if (puts_present) {
			at = row_put_vint(at, groups.column);
			continue;
		}
		for (; next < groups.column; next++)
			at = row_put_vint(at, next);
		next = groups.column + 1;
	}
	if (!puts_present) {
		for (; next < groups.column_count; next++)
			at = row_put_vint(at, next);
	}
	return at;
}

static uint8_t *
row_put_cell(const struct row_codec *codec, const struct row *row,
    const struct column_metadata *column, const struct cell *cell, uint8_t *at)
{
	bool is_expiring = cell->ttl != TTL_NONE;
	bool is_deleted = !is_expiring && cell->local_deletion_time != LOCAL_DELETION_TIME_NONE;
	uint8_t flags = 0;

	if (cell->value.size == 0)
		flags |= CELL_HAS_EMPTY_VALUE;
	if (is_deleted)
		flags |= CELL_IS_DELETED;
	else if (is_expiring)
		flags |= CELL_IS_EXPIRING;
	if (row->liveness.timestamp != TIMESTAMP_NONE && cell->timestamp == row->liveness.timestamp)
		flags |= CELL_USE_ROW_TIMESTAMP;
	if (is_expiring && row->liveness.timestamp != TIMESTAMP_NONE &&
	    row->liveness.ttl == cell->ttl &&
	    row->liveness.local_expiration_time == cell->local_deletion_time)
		flags |= CELL_USE_ROW_TTL;

	*at++ = flags;
	if ((flags & CELL_USE_ROW_TIMESTAMP) == 0)
		at = row_put_timestamp(codec, at, cell->timestamp);
	if ((flags & CELL_USE_ROW_TTL) == 0) {
		if (is_deleted || is_expiring)
			at = row_put_int_delta(
			    at, cell->local_deletion_time, codec->min_local_deletion_time);
		if (is_expiring)
			at = row_put_int_delta(at, cell->ttl, codec->min_ttl);
	}
	if (column->is_complex) {
		at = row_put_vint(at, cell->path.size);
		at = row_put_bytes(at, cell->path);
	}
	if (cell->value.size != 0)
		at = row_put_value(column->type, at, cell->value);
	return at;
}

static uint8_t *
row_put_plain_cells(const struct row_codec *codec, const struct row *row, uint8_t *at)
{
	int64_t timestamp = row->liveness.timestamp;
	const struct cell *end = row->cells + row->cell_count;

	for (const struct cell *cell = row->cells; cell != end; cell++) {
		if (cell->ttl != TTL_NONE || cell->timestamp != timestamp ||
		    cell->local_deletion_time != LOCAL_DELETION_TIME_NONE ||
		    timestamp == TIMESTAMP_NONE || cell->value.size == 0) {
			at = row_put_cell(codec, row, cell->column, cell, at);
			continue;
		}
		*at++ = CELL_USE_ROW_TIMESTAMP;
		at = row_put_value(cell->column->type, at, cell->value);
	}
	return at;
}

/* Everything after the clustering (and the sizes). */
static uint8_t *
row_put_body(const struct row_codec *codec, const struct row *row,
    const struct row_summary *summary, uint8_t flags, uint8_t *at)
{
	struct row_groups groups;

	if (flags & ROW_HAS_TIMESTAMP)
		at = row_put_timestamp(codec, at, row->liveness.timestamp);
	if (flags & ROW_HAS_TTL) {
		at = row_put_int_delta(at, row->liveness.ttl, codec->min_ttl);
		at = row_put_int_delta(
		    at, row->liveness.local_expiration_time, codec->min_local_deletion_time);
	}
	if (flags & ROW_HAS_DELETION)
		at = row_put_deletion(codec, at, row->deletion);

	row_groups_init(&groups, codec, row);
	if ((flags & ROW_HAS_ALL_COLUMNS) == 0) {
		if (groups.column_count < 64)
			at = row_put_vint(
			    at, ~summary->present & ((UINT64_C(1) << groups.column_count) - 1));
		else
			at = row_put_large_subset(codec, row, summary->group_count, at);
	}
	if (summary->is_plain)
		return row->cell_count != 0 ? row_put_plain_cells(codec, row, at) : at;
	while (row_groups_next(&groups)) {
		const struct column_metadata *column = &groups.columns[groups.column];

		if (column->is_complex) {
			if (flags & ROW_HAS_COMPLEX_DELETION)
				at = row_put_deletion(codec, at, groups.complex_deletion);
			at = row_put_vint(at, groups.cell_count);
		}
		for (uint32_t i = 0; i < groups.cell_count; i++)
			at = row_put_cell(codec, row, column, &groups.first[i], at);
	}
	return at;
}

/* The body with its sizes in front: written where it should come to lie, and moved when its size is not
 * about what was thought. */
static uint8_t *
row_put_sized_body(const struct row_codec *codec, const struct row *row,
    const struct row_summary *summary, uint8_t flags, uint64_t previous_size, uint8_t *at)
{
	size_t previous_length = vint_size(previous_size);
	size_t length = vint_size(summary->size_guess + previous_length);
	uint8_t *body = at + length + previous_length;
	uint8_t *end = row_put_body(codec, row, summary, flags, body);
	size_t size = (size_t)(end - body);
	size_t real_length = vint_size(size + previous_length);

	if (real_length != length) {
		memmove(at + real_length + previous_length, body, size);
		end = at + real_length + previous_length + size;
	}
	at = row_put_vint_exact(at, size + previous_length, real_length);
	row_put_vint_exact(at, previous_size, previous_length);
	return end;
}

uint8_t *
row_encode_into(const struct row_codec *codec, enum row_codec_flavor flavor, const struct row *row,
    const struct row_summary *summary, uint64_t previous_size, uint8_t *at)
{
	uint8_t flags = 0;

	if (row->liveness.timestamp != TIMESTAMP_NONE) {
		flags |= ROW_HAS_TIMESTAMP;
		if (row->liveness.ttl != TTL_NONE)
			flags |= ROW_HAS_TTL;
	}
	if (!deletion_is_live(row->deletion))
		flags |= ROW_HAS_DELETION;
	if (summary->has_complex_deletion)
		flags |= ROW_HAS_COMPLEX_DELETION;
	if (summary->group_count == (row->is_static ? codec->static_count : codec->regular_count))
		flags |= ROW_HAS_ALL_COLUMNS;
	if (row->is_static)
		flags |= ROW_EXTENSION;

	*at++ = flags;
	if (row->is_static)
		*at++ = ROW_EXTENDED_IS_STATIC;
	else
		at = clustering_put(codec->table, row->clustering, row->clustering_count, at);
	if (flavor == ROW_CODEC_SSTABLE)
		return row_put_sized_body(codec, row, summary, flags, previous_size, at);
	return row_put_body(codec, row, summary, flags, at);
}

void
row_encode(const struct row_codec *codec, enum row_codec_flavor flavor, const struct row *row,
    uint64_t previous_size, struct buffer *out)
{
	struct row_summary summary;
	uint8_t *at;

	row_summarise(codec, row, &summary);
	if (!buffer_reserve(out, summary.size_max))
		return;
	at = row_encode_into(codec, flavor, row, &summary, previous_size, out->data + out->size);
	out->size = (size_t)(at - out->data);
}

void
marker_encode(const struct row_codec *codec, enum row_codec_flavor flavor,
    const struct marker *marker, uint64_t previous_size, struct buffer *out)
{
	uint8_t body[4 * VINT_SIZE_MAX], *end = body, *at;

	if (!buffer_reserve(out,
		4 + 6 * VINT_SIZE_MAX +
		    clustering_size_max(marker->clustering, marker->clustering_count)))
		return;
	at = out->data + out->size;
	*at++ = ROW_IS_MARKER;
	*at++ = (uint8_t)marker->kind;
	store_u16(at, (uint16_t)marker->clustering_count);
	at = clustering_put(codec->table, marker->clustering, marker->clustering_count, at + 2);

	if (bound_closes(marker->kind))
		end = row_put_deletion(codec, end, marker->close);
	if (bound_opens(marker->kind))
		end = row_put_deletion(codec, end, marker->open);
	if (flavor == ROW_CODEC_SSTABLE) {
		at = row_put_vint(at, (size_t)(end - body) + vint_size(previous_size));
		at = row_put_vint(at, previous_size);
	}
	memcpy(at, body, (size_t)(end - body));
	at += end - body;
	out->size = (size_t)(at - out->data);
}

void
deletion_encode(struct deletion deletion, struct buffer *out)
{
	buffer_put_u32(out, (uint32_t)deletion.local_deletion_time);
	buffer_put_u64(out, (uint64_t)deletion.marked_for_delete_at);
}

struct deletion
deletion_decode(struct reader *reader)
{
	struct deletion deletion;

	deletion.local_deletion_time = (int32_t)reader_u32(reader);
	deletion.marked_for_delete_at = (int64_t)reader_u64(reader);
	return deletion;
}
