/* SPDX-License-Identifier: Apache-2.0 */
#include "server/virtual_rows.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include "base/hash.h"

struct virtual_row {
	struct slice key;
	int64_t token;
	struct slice order; /* comparable form of the key */
	struct row row;
};

struct virtual_rows {
	const struct table_metadata *table;
	struct arena *arena;
	struct virtual_row *rows;
	uint32_t count, capacity;
	bool is_failed; /* no memory */

	/* The row in the making. */
	struct slice *key, *clustering, *regulars;
};

struct virtual_rows *
virtual_rows_new(const struct table_metadata *table, struct arena *arena)
{
	struct virtual_rows *rows = arena_zalloc(arena, sizeof(*rows));

	if (rows != NULL) {
		rows->table = table;
		rows->arena = arena;
	}
	return rows;
}

void
virtual_row_begin(struct virtual_rows *rows)
{
	rows->key = arena_calloc(rows->arena, rows->table->partition_key_count, sizeof(*rows->key));
	rows->clustering =
	    arena_calloc(rows->arena, rows->table->clustering_count, sizeof(*rows->clustering));
	rows->regulars =
	    arena_calloc(rows->arena, rows->table->regular_count, sizeof(*rows->regulars));
	if (rows->key == NULL || rows->clustering == NULL || rows->regulars == NULL)
		rows->is_failed = true;
}

void
virtual_set(struct virtual_rows *rows, const char *name, struct slice value)
{
	const struct column_metadata *column = table_column(rows->table, slice_of_string(name));
	struct slice copy = arena_copy(rows->arena, value);

	if (column == NULL || rows->is_failed)
		return;
	if (column->kind == COLUMN_PARTITION_KEY)
		rows->key[column->position] = copy;
	else if (column->kind == COLUMN_CLUSTERING)
		rows->clustering[column->position] = copy;
	else if (column->kind == COLUMN_REGULAR)
		rows->regulars[column->position] = copy;
}

void
virtual_set_text(struct virtual_rows *rows, const char *column, const char *value)
{
	if (value != NULL)
		virtual_set(rows, column, slice_of_string(value));
}

void
virtual_set_int(struct virtual_rows *rows, const char *column, int32_t value)
{
	uint8_t bytes[4];

	store_u32(bytes, (uint32_t)value);
	virtual_set(rows, column, slice_of(bytes, sizeof(bytes)));
}

void
virtual_set_bigint(struct virtual_rows *rows, const char *column, int64_t value)
{
	uint8_t bytes[8];

	store_u64(bytes, (uint64_t)value);
	virtual_set(rows, column, slice_of(bytes, sizeof(bytes)));
}

void
virtual_set_float(struct virtual_rows *rows, const char *column, float value)
{
	uint8_t bytes[4];
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	store_u32(bytes, bits);
	virtual_set(rows, column, slice_of(bytes, sizeof(bytes)));
}

void
virtual_set_double(struct virtual_rows *rows, const char *column, double value)
{
	uint8_t bytes[8];
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	store_u64(bytes, bits);
	virtual_set(rows, column, slice_of(bytes, sizeof(bytes)));
}

void
virtual_set_boolean(struct virtual_rows *rows, const char *column, bool value)
{
	uint8_t byte = value;

	virtual_set(rows, column, slice_of(&byte, 1));
}

void
virtual_set_inet(struct virtual_rows *rows, const char *column, const char *address)
{
	uint8_t bytes[16];

	if (address == NULL)
		return;
	if (inet_pton(AF_INET, address, bytes) == 1)
		virtual_set(rows, column, slice_of(bytes, 4));
	else if (inet_pton(AF_INET6, address, bytes) == 1)
		virtual_set(rows, column, slice_of(bytes, 16));
}

void
virtual_set_texts(
    struct virtual_rows *rows, const char *name, const char *const *texts, uint32_t count)
{
	const struct column_metadata *column = table_column(rows->table, slice_of_string(name));
	uint32_t width = column != NULL && column->type->kind == TYPE_MAP ? 2 : 1;
	struct slice *elements =
	    arena_calloc(rows->arena, (size_t)count * width, sizeof(*elements));

	if (column == NULL || elements == NULL)
		return;
	for (uint32_t i = 0; i < count * width; i++)
		elements[i] = slice_of_string(texts[i] == NULL ? "" : texts[i]);
	if (column->type->kind != TYPE_LIST)
		count = type_sort_elements(column->type->params[0], elements, count, width);
	virtual_set(rows, name, type_pack(column->type, elements, count, rows->arena));
}

void
virtual_row_end(struct virtual_rows *rows)
{
	const struct table_metadata *table = rows->table;
	struct virtual_row *row;
	struct cell *cells;
	struct buffer order;
	uint32_t n = 0;

	if (rows->count == rows->capacity) {
		uint32_t capacity = rows->capacity == 0 ? 64 : rows->capacity * 2;
		struct virtual_row *more = arena_calloc(rows->arena, capacity, sizeof(*more));

		if (more != NULL && rows->count > 0)
			memcpy(more, rows->rows, rows->count * sizeof(*more));
		rows->rows = more;
		rows->capacity = more == NULL ? 0 : capacity;
		rows->is_failed = rows->is_failed || more == NULL;
	}
	cells = arena_calloc(rows->arena, table->regular_count, sizeof(*cells));
	if (rows->is_failed || cells == NULL) {
		rows->is_failed = true;
		return;
	}
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (slice_is_null(rows->key[i]))
			rows->key[i] = slice_empty;
	}
	row = &rows->rows[rows->count++];
	row->key = table_partition_key(table, rows->key, rows->arena);
	row->token = murmur3_token(row->key);
	buffer_init(&order);
	for (uint32_t i = 0; i < table->partition_key_count; i++)
		type_to_comparable(table->partition_key[i].type, false, rows->key[i], &order);
	row->order = arena_copy(rows->arena, buffer_slice(&order));
	buffer_fini(&order);
	for (uint32_t i = 0; i < table->regular_count; i++) {
		if (slice_is_null(rows->regulars[i]))
			continue;
		cells[n++] = (struct cell){.column = &table->regulars[i],
		    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
		    .path = slice_null,
		    .value = rows->regulars[i]};
	}
	row->row = (struct row){.clustering_count = table->clustering_count,
	    .clustering = rows->clustering,
	    .position = position_make(
		table, BOUND_CLUSTERING, rows->clustering, table->clustering_count, rows->arena),
	    .liveness = {0, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = n,
	    .cells = cells};
	if (slice_is_null(row->key) || slice_is_null(row->order) ||
	    slice_is_null(row->row.position))
		rows->is_failed = true;
}

/* ---- The source ---------------------------------------------------------------------------- */

struct virtual_partition {
	struct unfiltered_iterator base; /* first */
	const struct read_command *command;
	struct virtual_row *rows;
	uint32_t count, at;
	struct slice after; /* of the first partition of a page */
};

struct virtual_source {
	struct partition_iterator base; /* first */
	const struct read_command *command;
	struct virtual_rows *rows;
	uint32_t at;
	struct virtual_partition partition;
};

static int
virtual_compare(const void *a, const void *b)
{
	const struct virtual_row *left = a, *right = b;
	int order = slice_compare(left->order, right->order);

	return order != 0 ? order : slice_compare(left->row.position, right->row.position);
}

static bool
virtual_wants(const struct virtual_partition *partition, struct slice position)
{
	const struct clustering_filter *filter = &partition->command->clustering;

	if (!slice_is_null(partition->after)) {
		int order = slice_compare(position, partition->after);

		if (filter->is_reversed ? order >= 0 : order <= 0)
			return false;
	}
	if (filter->slice_count == 0)
		return true;
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		struct slice start = filter->slices[i].start, end = filter->slices[i].end;

		if ((slice_is_null(start) || slice_compare(start, position) < 0) &&
		    (slice_is_null(end) || slice_compare(position, end) < 0))
			return true;
	}
	return false;
}

static int
virtual_partition_next(
    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct virtual_partition *partition = (struct virtual_partition *)iterator;

	(void)err;
	while (partition->at < partition->count) {
		uint32_t index = partition->base.is_reversed ? partition->count - 1 - partition->at
							     : partition->at;
		const struct row *row = &partition->rows[index].row;

		partition->at++;
		if (!virtual_wants(partition, row->position))
			continue;
		out->kind = UNFILTERED_ROW;
		out->row = *row;
		return 1;
	}
	return 0;
}

static void
virtual_partition_close(struct unfiltered_iterator *iterator)
{
	(void)iterator; /* of the arena */
}

static const struct unfiltered_iterator_ops virtual_partition_ops = {
    virtual_partition_next, virtual_partition_close};

/* Does the command ask for the partition that begins at `at`? */
static bool
virtual_wants_key(const struct virtual_source *source, struct slice key)
{
	const struct read_command *command = source->command;
	const struct token_range *range = &command->range;

	if (!command->is_range)
		return slice_equal(command->key, key);
	if (!slice_is_null(range->start_key)) {
		/* Rows are in order of keys, so a page goes on behind the key it names. */
		for (uint32_t i = 0; i < source->rows->count; i++) {
			if (!slice_equal(source->rows->rows[i].key, range->start_key))
				continue;
			if (i < source->at)
				return true;
			return i == source->at && !range->start_key_exclusive;
		}
		return true;
	}
	return true;
}

static int
virtual_source_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct virtual_source *source = (struct virtual_source *)iterator;
	struct virtual_partition *partition = &source->partition;

	(void)err;
	while (source->at < source->rows->count) {
		struct virtual_row *first = &source->rows->rows[source->at];
		bool is_wanted = virtual_wants_key(source, first->key);
		uint32_t count = 1;

		while (source->at + count < source->rows->count &&
		    slice_equal(source->rows->rows[source->at + count].key, first->key))
			count++;
		source->at += count;
		if (!is_wanted)
			continue;
		*partition = (struct virtual_partition){
		    .base = {.ops = &virtual_partition_ops,
			.table = source->rows->table,
			.token = first->token,
			.key = first->key,
			.partition_deletion = DELETION_LIVE,
			.is_reversed = source->command->clustering.is_reversed},
		    .command = source->command,
		    .rows = first,
		    .count = count,
		    .after = slice_null};
		if (!source->command->is_range ||
		    (!slice_is_null(source->command->range.start_key) &&
			slice_equal(first->key, source->command->range.start_key)))
			partition->after = source->command->after_position;
		*out = &partition->base;
		return 1;
	}
	return 0;
}

static void
virtual_source_close(struct partition_iterator *iterator)
{
	(void)iterator; /* of the arena */
}

static const struct partition_iterator_ops virtual_source_ops = {
    virtual_source_next, virtual_source_close};

int
virtual_rows_source(struct virtual_rows *rows, const struct read_command *command,
    struct partition_iterator **out, struct error *err)
{
	struct virtual_source *source = arena_zalloc(rows->arena, sizeof(*source));

	if (source == NULL || rows->is_failed)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a virtual table");
	if (rows->count > 1)
		qsort(rows->rows, rows->count, sizeof(*rows->rows), virtual_compare);
	source->base.ops = &virtual_source_ops;
	source->command = command;
	source->rows = rows;
	*out = &source->base;
	return 0;
}
