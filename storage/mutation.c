/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/hash.h"
#include "storage/mutation.h"

/*
 * An update, after the vint count of them (its size lets a reader pass over a table that is gone):
 *
 *   u32 size of what follows
 *   16 bytes table id | u8 flags | vint length, key
 *   [statics: vint count, then vint length and name each]      MUTATION_HAS_STATIC
 *   [regulars: the same]                                       MUTATION_HAS_ROWS
 *   [12 bytes deletion]                                        MUTATION_HAS_DELETION
 *   [static row]                                               MUTATION_HAS_STATIC
 *   [vint count, rows]                                         MUTATION_HAS_ROWS
 *   [vint count, tombstones]                                   MUTATION_HAS_TOMBSTONES
 *   tombstone: u8 kind, vint count, values; the same for the end; 12 bytes deletion
 *
 * The names are those of the columns that the update touches, so that a one-column change of a wide table
 * stays short; rows are encoded against that list.
 */
enum {
	MUTATION_HAS_DELETION = 0x01,
	MUTATION_HAS_STATIC = 0x02,
	MUTATION_HAS_ROWS = 0x04,
	MUTATION_HAS_TOMBSTONES = 0x08,
	MUTATION_FLAGS_ALL = 0x0f,
};

/* ---- the columns of an update ------------------------------------------------------------------- */

enum { MUTATION_COLUMNS_FEW = 32 };

/* The list that rows are encoded against: the table's own array, or a copy of some of it. */
struct mutation_columns {
	const struct column_metadata *columns;
	uint32_t count;
	struct column_metadata few[MUTATION_COLUMNS_FEW];
	struct column_metadata *many; /* owned; NULL: not needed */
};

static void
mutation_mark(uint64_t *bitmap, const struct column_metadata *all, uint32_t all_count,
    const struct column_metadata *column)
{
	uint32_t index = column->position;

	/* A column of another version of the table is found by its name. */
	if (index >= all_count || &all[index] != column) {
		for (index = 0; index < all_count; index++) {
			if (slice_equal(all[index].name, column->name))
				break;
		}
		if (index == all_count)
			return; /* gone: the codec leaves its cells out */
	}
	bitmap[index >> 6] |= UINT64_C(1) << (index & 63);
}

/* Which of the `all` columns do the rows have? -1 without memory. */
static int
mutation_columns_init(struct mutation_columns *columns, const struct row *rows, uint32_t row_count,
    const struct column_metadata *all, uint32_t all_count)
{
	uint64_t few[8] = {0}, *bitmap = few;
	uint32_t words = (all_count + 63) / 64, present = 0, at = 0;
	struct column_metadata *copies = columns->few;

	columns->many = NULL;
	if (words > sizeof(few) / sizeof(few[0])) {
		bitmap = calloc(words, sizeof(*bitmap));
		if (bitmap == NULL)
			return -1;
	}
	for (uint32_t i = 0; i < row_count; i++) {
		const struct row *row = &rows[i];

		for (uint32_t j = 0; j < row->cell_count; j++)
			mutation_mark(bitmap, all, all_count, row->cells[j].column);
		for (uint32_t j = 0; j < row->complex_deletion_count; j++)
			mutation_mark(bitmap, all, all_count, row->complex_deletions[j].column);
	}
	for (uint32_t i = 0; i < words; i++)
		present += (uint32_t)__builtin_popcountll(bitmap[i]);
	if (present > MUTATION_COLUMNS_FEW && present != all_count) {
		copies = columns->many = malloc(present * sizeof(*copies));
		if (copies == NULL)
			at = all_count; /* nothing is copied below */
	}
	columns->count = present;
	columns->columns = present == all_count ? all : copies;
	for (uint32_t i = at; i < all_count && present != all_count; i++) {
		if ((bitmap[i >> 6] >> (i & 63)) & 1)
			copies[at++] = all[i];
	}
	if (bitmap != few)
		free(bitmap);
	return copies != NULL ? 0 : -1;
}

static void
mutation_columns_fini(struct mutation_columns *columns)
{
	free(columns->many);
}

static void
mutation_put_columns(const struct mutation_columns *columns, struct buffer *out)
{
	buffer_put_vint(out, columns->count);
	for (uint32_t i = 0; i < columns->count; i++) {
		buffer_put_vint(out, columns->columns[i].name.size);
		buffer_put_slice(out, columns->columns[i].name);
	}
}

/* ---- encoding ----------------------------------------------------------------------------------- */

static void
mutation_put_tombstone(
    const struct table_metadata *table, const struct range_tombstone *tombstone, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)tombstone->start_kind);
	buffer_put_vint(out, tombstone->start_count);
	clustering_encode(table, tombstone->start, tombstone->start_count, out);
	buffer_put_u8(out, (uint8_t)tombstone->end_kind);
	buffer_put_vint(out, tombstone->end_count);
	clustering_encode(table, tombstone->end, tombstone->end_count, out);
	deletion_encode(tombstone->deletion, out);
}

static void
mutation_put_update(const struct partition_update *update, struct buffer *out)
{
	const struct table_metadata *table = update->table;
	struct mutation_columns statics = {0}, regulars = {0};
	struct row_codec codec;
	uint8_t flags = 0;
	size_t start = out->size;

	row_codec_init(&codec, table);
	if (update->static_row != NULL) {
		flags |= MUTATION_HAS_STATIC;
		if (mutation_columns_init(
			&statics, update->static_row, 1, table->statics, table->static_count) != 0)
			goto no_memory;
		codec.statics = statics.columns;
		codec.static_count = statics.count;
	}
	if (update->row_count != 0) {
		flags |= MUTATION_HAS_ROWS;
		if (mutation_columns_init(&regulars, update->rows, update->row_count,
			table->regulars, table->regular_count) != 0)
			goto no_memory;
		codec.regulars = regulars.columns;
		codec.regular_count = regulars.count;
	}
	if (!deletion_is_live(update->deletion))
		flags |= MUTATION_HAS_DELETION;
	if (update->tombstone_count != 0)
		flags |= MUTATION_HAS_TOMBSTONES;

	buffer_put_u32(out, 0); /* the size, known at the end */
	buffer_put(out, table->id.bytes, sizeof(table->id.bytes));
	buffer_put_u8(out, flags);
	buffer_put_vint(out, update->key.size);
	buffer_put_slice(out, update->key);
	if (flags & MUTATION_HAS_STATIC)
		mutation_put_columns(&statics, out);
	if (flags & MUTATION_HAS_ROWS)
		mutation_put_columns(&regulars, out);
	if (flags & MUTATION_HAS_DELETION)
		deletion_encode(update->deletion, out);
	if (flags & MUTATION_HAS_STATIC)
		row_encode(&codec, ROW_CODEC_MESSAGE, update->static_row, 0, out);
	if (flags & MUTATION_HAS_ROWS) {
		buffer_put_vint(out, update->row_count);
		for (uint32_t i = 0; i < update->row_count; i++)
			row_encode(&codec, ROW_CODEC_MESSAGE, &update->rows[i], 0, out);
	}
	if (flags & MUTATION_HAS_TOMBSTONES) {
		buffer_put_vint(out, update->tombstone_count);
		for (uint32_t i = 0; i < update->tombstone_count; i++)
			mutation_put_tombstone(table, &update->tombstones[i], out);
	}
	if (!out->is_failed)
		buffer_patch_u32(out, start, (uint32_t)(out->size - start - 4));
	mutation_columns_fini(&statics);
	mutation_columns_fini(&regulars);
	return;
no_memory:
	out->is_failed = true; /* buffer_check() tells */
	mutation_columns_fini(&statics);
	mutation_columns_fini(&regulars);
}

void
mutation_encode(const struct mutation *mutation, struct buffer *out)
{
	buffer_put_vint(out, mutation->update_count);
	for (uint32_t i = 0; i < mutation->update_count; i++)
		mutation_put_update(&mutation->updates[i], out);
}

/* ---- decoding ----------------------------------------------------------------------------------- */

struct mutation_decoder {
	struct reader reader;
	struct arena *arena;
	struct error *err;
};

static int
mutation_truncated(struct mutation_decoder *decoder)
{
	return error_set(
	    decoder->err, ERROR_CORRUPT, "a mutation goes on beyond the end of its data");
}

static int
mutation_no_memory(struct mutation_decoder *decoder)
{
	return error_set(decoder->err, ERROR_NO_MEMORY, "no memory to decode a mutation");
}

/* A count of things that take at least a byte each. */
static int
mutation_get_count(struct mutation_decoder *decoder, uint32_t *count)
{
	uint64_t value = reader_vint(&decoder->reader);

	if (decoder->reader.is_failed || value > reader_left(&decoder->reader) ||
	    value > UINT32_MAX)
		return mutation_truncated(decoder);
	*count = (uint32_t)value;
	return 0;
}

static struct slice
mutation_get_bytes(struct mutation_decoder *decoder)
{
	uint64_t size = reader_vint(&decoder->reader);

	if (size > reader_left(&decoder->reader))
		decoder->reader.is_failed = true;
	return reader_bytes(&decoder->reader, decoder->reader.is_failed ? 0 : (size_t)size);
}

/*
 * A list of names. *out is the table's own array when the list is all of it (the usual case, which then
 * needs no binding), else copies of what the table has or had.
 */
static int
mutation_get_columns(struct mutation_decoder *decoder, const struct table_metadata *table,
    enum column_kind kind, const struct column_metadata **out, uint32_t *count, bool *needs_bind)
{
	const struct column_metadata *all =
	    kind == COLUMN_STATIC ? table->statics : table->regulars;
	uint32_t all_count = kind == COLUMN_STATIC ? table->static_count : table->regular_count;
	struct column_metadata *columns = NULL;

	if (mutation_get_count(decoder, count) != 0)
		return -1;
	if (*count != all_count)
		columns = arena_calloc(decoder->arena, *count, sizeof(*columns));
	if (*count != all_count && columns == NULL)
		return mutation_no_memory(decoder);
	for (uint32_t i = 0; i < *count; i++) {
		struct slice name = mutation_get_bytes(decoder);
		const struct column_metadata *column;

		if (decoder->reader.is_failed)
			return mutation_truncated(decoder);
		if (columns == NULL && slice_equal(name, all[i].name))
			continue;
		if (columns == NULL) { /* as many as the table has, but not the same */
			columns = arena_calloc(decoder->arena, *count, sizeof(*columns));
			if (columns == NULL)
				return mutation_no_memory(decoder);
			memcpy(columns, all, i * sizeof(*columns));
		}
		column = table_column(table, name);
		if (column == NULL || column->kind != kind) {
			const struct dropped_column *dropped = table_dropped_column(table, name);

			column = dropped != NULL ? &dropped->column : NULL;
		}
		if (column == NULL)
			return error_set(decoder->err, ERROR_CORRUPT,
			    "a mutation of %.*s.%.*s has the unknown column %.*s",
			    (int)table->keyspace.size, (const char *)table->keyspace.data,
			    (int)table->name.size, (const char *)table->name.data, (int)name.size,
			    (const char *)name.data);
		columns[i] = *column;
		columns[i].kind = kind;
		if (i != 0 && column_order(&columns[i - 1], column) >= 0)
			return error_set(decoder->err, ERROR_CORRUPT,
			    "the columns of a mutation are not in order");
	}
	*out = columns != NULL ? columns : all;
	*needs_bind = *needs_bind || columns != NULL;
	return 0;
}

static int
mutation_get_row(struct mutation_decoder *decoder, const struct row_codec *codec, bool is_static,
    struct row *row)
{
	enum unfiltered_kind kind;
	struct marker marker;

	if (unfiltered_decode(codec, ROW_CODEC_MESSAGE, &decoder->reader, is_static, NULL,
		decoder->arena, &kind, row, &marker, decoder->err) != 0)
		return -1;
	if (kind != UNFILTERED_ROW)
		return error_set(
		    decoder->err, ERROR_CORRUPT, "a mutation has no row where one was due");
	if (is_static)
		return 0;
	row->position = position_make(
	    codec->table, BOUND_CLUSTERING, row->clustering, row->clustering_count, decoder->arena);
	return slice_is_null(row->position) ? mutation_no_memory(decoder) : 0;
}

static int
mutation_get_rows(struct mutation_decoder *decoder, const struct row_codec *codec,
    struct partition_update *update)
{
	uint32_t count, kept = 0;
	struct row *rows;

	if (mutation_get_count(decoder, &count) != 0)
		return -1;
	rows = arena_calloc(decoder->arena, count, sizeof(*rows));
	if (rows == NULL)
		return mutation_no_memory(decoder);
	for (uint32_t i = 0; i < count; i++) {
		struct row *row = &rows[kept];

		if (mutation_get_row(decoder, codec, false, row) != 0)
			return -1;
		if (kept != 0 && slice_compare(rows[kept - 1].position, row->position) >= 0)
			return error_set(
			    decoder->err, ERROR_CORRUPT, "the rows of a mutation are not in order");
		kept += !row_is_empty(row); /* all its columns may be dropped ones */
	}
	update->rows = rows;
	update->row_count = kept;
	return 0;
}

static int
mutation_get_bound(struct mutation_decoder *decoder, const struct table_metadata *table,
    bool is_start, enum bound_kind *kind, uint32_t *count, const struct slice **values)
{
	uint64_t value_count;
	bool fits;

	*kind = reader_u8(&decoder->reader);
	value_count = reader_vint(&decoder->reader);
	if (decoder->reader.is_failed)
		return mutation_truncated(decoder);
	fits = is_start ? *kind == BOUND_INCL_START || *kind == BOUND_EXCL_START
			: *kind == BOUND_INCL_END || *kind == BOUND_EXCL_END;
	if (!fits || value_count > table->clustering_count)
		return error_set(decoder->err, ERROR_CORRUPT,
		    "a mutation has a range tombstone with a bound of kind %d and %llu values",
		    (int)*kind, (unsigned long long)value_count);
	*count = (uint32_t)value_count;
	return clustering_decode(
	    table, &decoder->reader, *count, decoder->arena, values, decoder->err);
}

static int
mutation_get_tombstones(struct mutation_decoder *decoder, const struct table_metadata *table,
    struct partition_update *update)
{
	struct range_tombstone *tombstones;
	uint32_t count;

	if (mutation_get_count(decoder, &count) != 0)
		return -1;
	tombstones = arena_calloc(decoder->arena, count, sizeof(*tombstones));
	if (tombstones == NULL)
		return mutation_no_memory(decoder);
	for (uint32_t i = 0; i < count; i++) {
		struct range_tombstone *tombstone = &tombstones[i];

		if (mutation_get_bound(decoder, table, true, &tombstone->start_kind,
			&tombstone->start_count, &tombstone->start) != 0 ||
		    mutation_get_bound(decoder, table, false, &tombstone->end_kind,
			&tombstone->end_count, &tombstone->end) != 0)
			return -1;
		tombstone->deletion = deletion_decode(&decoder->reader);
	}
	update->tombstones = tombstones;
	update->tombstone_count = count;
	return 0;
}

static int
mutation_get_static(struct mutation_decoder *decoder, const struct row_codec *codec,
    struct partition_update *update)
{
	struct row *row = arena_zalloc(decoder->arena, sizeof(*row));

	if (row == NULL)
		return mutation_no_memory(decoder);
	if (mutation_get_row(decoder, codec, true, row) != 0)
		return -1;
	if (!row_is_empty(row))
		update->static_row = row;
	return 0;
}

/* What follows the table's id. */
static int
mutation_get_update(struct mutation_decoder *decoder, const struct table_metadata *table,
    struct partition_update *update)
{
	uint8_t flags = reader_u8(&decoder->reader);
	struct row_codec codec;
	bool needs_bind = false;

	*update = (struct partition_update){.table = table, .deletion = DELETION_LIVE};
	update->key = mutation_get_bytes(decoder);
	if (decoder->reader.is_failed)
		return mutation_truncated(decoder);
	if (flags & ~MUTATION_FLAGS_ALL)
		return error_set(
		    decoder->err, ERROR_CORRUPT, "a mutation has the unknown flags %02x", flags);
	update->token = murmur3_token(update->key);

	row_codec_init(&codec, table);
	if ((flags & MUTATION_HAS_STATIC &&
		mutation_get_columns(decoder, table, COLUMN_STATIC, &codec.statics,
		    &codec.static_count, &needs_bind) != 0) ||
	    (flags & MUTATION_HAS_ROWS &&
		mutation_get_columns(decoder, table, COLUMN_REGULAR, &codec.regulars,
		    &codec.regular_count, &needs_bind) != 0))
		return -1;
	if ((needs_bind || table->dropped_count != 0) &&
	    row_codec_bind(&codec, table, decoder->arena, decoder->err) != 0)
		return -1;
	if (flags & MUTATION_HAS_DELETION)
		update->deletion = deletion_decode(&decoder->reader);
	if ((flags & MUTATION_HAS_STATIC && mutation_get_static(decoder, &codec, update) != 0) ||
	    (flags & MUTATION_HAS_ROWS && mutation_get_rows(decoder, &codec, update) != 0) ||
	    (flags & MUTATION_HAS_TOMBSTONES &&
		mutation_get_tombstones(decoder, table, update) != 0))
		return -1;
	return decoder->reader.is_failed ? mutation_truncated(decoder) : 0;
}

int
mutation_decode(struct slice encoded, mutation_table_fn find, void *argument, struct arena *arena,
    struct mutation *out, struct error *err)
{
	struct mutation_decoder decoder = {reader_of(encoded), arena, err};
	struct partition_update *updates;
	uint32_t count, kept = 0;

	if (mutation_get_count(&decoder, &count) != 0)
		return -1;
	updates = arena_calloc(arena, count, sizeof(*updates));
	if (updates == NULL)
		return mutation_no_memory(&decoder);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t size = reader_u32(&decoder.reader);
		struct mutation_decoder one = decoder;
		struct slice bytes, id_bytes;
		const struct table_metadata *table;
		struct uuid id;

		if (size > reader_left(&decoder.reader))
			return mutation_truncated(&decoder);
		bytes = reader_bytes(&decoder.reader, (size_t)size);
		one.reader = reader_of(bytes);
		id_bytes = reader_bytes(&one.reader, sizeof(id.bytes));
		if (decoder.reader.is_failed || one.reader.is_failed)
			return mutation_truncated(&decoder);
		memcpy(id.bytes, id_bytes.data, sizeof(id.bytes));
		table = find(argument, &id);
		if (table == NULL)
			continue;
		if (mutation_get_update(&one, table, &updates[kept]) != 0)
			return -1;
		kept++;
	}
	*out = (struct mutation){.keyspace = "", .update_count = kept, .updates = updates};
	if (kept == 0)
		return 0;
	out->key = updates[0].key;
	out->token = updates[0].token;
	out->keyspace = arena_strndup(
	    arena, (const char *)updates[0].table->keyspace.data, updates[0].table->keyspace.size);
	return out->keyspace != NULL ? 0 : mutation_no_memory(&decoder);
}

bool
mutation_each_table(
    struct slice encoded, void (*each)(void *argument, const struct uuid *table_id), void *argument)
{
	struct reader reader = reader_of(encoded);
	uint64_t count = reader_vint(&reader);

	for (uint64_t i = 0; i < count && !reader.is_failed; i++) {
		struct slice update = reader_bytes(&reader, reader_u32(&reader));
		struct uuid id;

		if (reader.is_failed || update.size < sizeof(id.bytes))
			return false;
		memcpy(id.bytes, update.data, sizeof(id.bytes));
		each(argument, &id);
	}
	return !reader.is_failed && count > 0;
}

bool
mutation_peek(struct slice encoded, struct uuid *table_id, struct slice *key)
{
	struct reader reader = reader_of(encoded);
	struct slice id;
	uint64_t size;

	(void)reader_vint(&reader); /* updates */
	(void)reader_u32(&reader); /* size of the first */
	id = reader_bytes(&reader, sizeof(table_id->bytes));
	(void)reader_u8(&reader); /* flags */
	size = reader_vint(&reader);
	if (reader.is_failed || size > reader_left(&reader))
		return false;
	memcpy(table_id->bytes, id.data, sizeof(table_id->bytes));
	*key = reader_bytes(&reader, (size_t)size);
	return true;
}

/* ---- size --------------------------------------------------------------------------------------- */

/* Row.dataSize: the sums of the parts as Cassandra counts them. */
static size_t
mutation_row_size(const struct row *row)
{
	size_t size = 0;

	for (uint32_t i = 0; i < row->clustering_count; i++)
		size += row->clustering[i].size;
	if (row->liveness.timestamp != TIMESTAMP_NONE)
		size += row->liveness.ttl != TTL_NONE ? 16 : 8;
	if (!deletion_is_live(row->deletion))
		size += 12;
	size += 12 * (size_t)row->complex_deletion_count;
	for (uint32_t i = 0; i < row->cell_count; i++)
		size += 16 + row->cells[i].path.size + row->cells[i].value.size;
	return size;
}

size_t
mutation_data_size(const struct mutation *mutation)
{
	size_t size = 0;

	for (uint32_t i = 0; i < mutation->update_count; i++) {
		const struct partition_update *update = &mutation->updates[i];

		if (!deletion_is_live(update->deletion))
			size += 12;
		if (update->static_row != NULL)
			size += mutation_row_size(update->static_row);
		for (uint32_t j = 0; j < update->row_count; j++)
			size += mutation_row_size(&update->rows[j]);
		for (uint32_t j = 0; j < update->tombstone_count; j++) {
			const struct range_tombstone *tombstone = &update->tombstones[j];

			size += 12;
			for (uint32_t k = 0; k < tombstone->start_count; k++)
				size += tombstone->start[k].size;
			for (uint32_t k = 0; k < tombstone->end_count; k++)
				size += tombstone->end[k].size;
		}
	}
	return size;
}

static int64_t
row_max_timestamp(const struct row *row)
{
	int64_t max = row->liveness.timestamp;

	if (row->deletion.marked_for_delete_at > max)
		max = row->deletion.marked_for_delete_at;
	for (uint32_t i = 0; i < row->complex_deletion_count; i++)
		if (row->complex_deletions[i].deletion.marked_for_delete_at > max)
			max = row->complex_deletions[i].deletion.marked_for_delete_at;
	for (uint32_t i = 0; i < row->cell_count; i++)
		if (row->cells[i].timestamp > max)
			max = row->cells[i].timestamp;
	return max;
}

int64_t
partition_update_max_timestamp(const struct partition_update *update)
{
	int64_t max = update->deletion.marked_for_delete_at, each;

	if (update->static_row != NULL && (each = row_max_timestamp(update->static_row)) > max)
		max = each;
	for (uint32_t i = 0; i < update->row_count; i++)
		if ((each = row_max_timestamp(&update->rows[i])) > max)
			max = each;
	for (uint32_t i = 0; i < update->tombstone_count; i++)
		if (update->tombstones[i].deletion.marked_for_delete_at > max)
			max = update->tombstones[i].deletion.marked_for_delete_at;
	return max;
}
