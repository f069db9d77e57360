/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/storage/sstable_model.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"

enum { MODEL_TIME = 1700000000, MODEL_LEAST = 1699990000 };
#define MODEL_TIMESTAMP INT64_C(1700000000000000)

uint64_t
model_random(struct model *model, uint64_t below)
{
	uint64_t value = model->seed += UINT64_C(0x9e3779b97f4a7c15);

	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (value ^ (value >> 31)) % below;
}

/* ---- values ------------------------------------------------------------------------------------------ */

static struct slice
model_bytes(struct model *model, size_t size, bool is_text)
{
	uint8_t *bytes = arena_alloc_bytes(&model->arena, size + 1);

	for (size_t i = 0; i < size; i++)
		bytes[i] = is_text ? (uint8_t)('a' + model_random(model, 20))
				   : (uint8_t)model_random(model, 256);
	return slice_of(bytes, size);
}

static struct slice model_pack(struct model *model, const struct type *type, uint32_t depth);

static struct slice
model_value(struct model *model, const struct type *type, uint32_t depth)
{
	uint8_t *bytes;

	if (type->param_count > 0)
		return model_pack(model, type, depth);
	switch (type->kind) {
	case TYPE_ASCII:
	case TYPE_TEXT:
		return model_bytes(model, model_random(model, depth), true);
	case TYPE_BOOLEAN:
		bytes = arena_alloc_bytes(&model->arena, 1);
		bytes[0] = (uint8_t)model_random(model, 2);
		return slice_of(bytes, 1);
	case TYPE_TINYINT:
		return model_bytes(model, 1, false);
	case TYPE_SMALLINT:
		return model_bytes(model, 2, false);
	case TYPE_INT:
	case TYPE_DATE:
		bytes = arena_alloc_bytes(&model->arena, 4);
		store_u32(bytes, (uint32_t)model_random(model, 1000));
		return slice_of(bytes, 4);
	case TYPE_FLOAT:
		return model_bytes(model, 4, false);
	case TYPE_INET:
		return model_bytes(model, model_random(model, 2) == 0 ? 4 : 16, false);
	case TYPE_UUID:
	case TYPE_TIMEUUID: {
		struct uuid uuid = uuid_from_time(
		    model_random(model, 1u << 30) + uuid_ticks_of_unix_us(MODEL_TIMESTAMP),
		    UINT64_C(0x8001010203040506));

		return arena_copy(&model->arena, slice_of(uuid.bytes, 16));
	}
	case TYPE_TIME:
	case TYPE_BIGINT:
	case TYPE_TIMESTAMP:
	case TYPE_DOUBLE:
		bytes = arena_alloc_bytes(&model->arena, 8);
		store_u64(bytes, model_random(model, UINT64_C(1) << 40));
		return slice_of(bytes, 8);
	case TYPE_DECIMAL:
		return slice_of("\0\0\0\2\12", 5);
	case TYPE_DURATION:
		return slice_of("\2\4\6", 3);
	case TYPE_VARINT:
		return model_bytes(model, 1 + model_random(model, 9), false);
	default:
		return model_bytes(model, model_random(model, depth), false);
	}
}

static struct slice
model_pack(struct model *model, const struct type *type, uint32_t depth)
{
	struct slice elements[8];
	uint32_t count = type_is_tuple(type) ? type->param_count : (uint32_t)model_random(model, 4);
	uint32_t width = type->kind == TYPE_MAP ? 2 : 1;

	for (uint32_t i = 0; i < count * width; i++) {
		const struct type *part = type->params[type_is_tuple(type) ? i
			: type->kind == TYPE_MAP                           ? i % 2
									   : 0];

		elements[i] = model_value(model, part, depth / 2 + 2);
	}
	if (type->kind == TYPE_SET || type->kind == TYPE_MAP)
		count = type_sort_elements(type->params[0], elements, count, width);
	return type_pack(type, elements, count, &model->arena);
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

static struct cell
model_cell(struct model *model, const struct column_metadata *column, const struct type *type,
    uint32_t size, bool has_tombstones)
{
	struct cell cell = {.column = column,
	    .timestamp = MODEL_TIMESTAMP + (int64_t)model_random(model, 1000),
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE};

	cell.value = slice_empty;
	switch (has_tombstones ? model_random(model, 6) : 5) {
	case 0:
		cell.local_deletion_time = MODEL_TIME + (int32_t)model_random(model, 100000);
		return cell;
	case 1:
		cell.ttl = 1 + (int32_t)model_random(model, 100000);
		cell.local_deletion_time = MODEL_TIME + (int32_t)model_random(model, 100000);
		break;
	default:
		break;
	}
	if (type->kind == TYPE_EMPTY)
		return cell;
	if (type->kind == TYPE_COUNTER) {
		uint8_t *bytes = arena_alloc_bytes(&model->arena, 36);

		/* One global shard: header, id, clock, count (CounterContext). */
		memset(bytes, 0, 36);
		store_u16(bytes, 1);
		store_u16(bytes + 2, 0x8000);
		memcpy(bytes + 4, model_value(model, type_native(TYPE_UUID), 0).data, 16);
		store_u64(bytes + 20, 1);
		store_u64(bytes + 28, model_random(model, 1000));
		cell.ttl = 0;
		cell.local_deletion_time = LOCAL_DELETION_TIME_NONE;
		cell.value = slice_of(bytes, 36);
		return cell;
	}
	cell.value = model_value(model, type, size);
	return cell;
}

static int
model_compare_slices(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* The cells of a multi-cell column, in the order of their paths. */
static uint32_t
model_complex(struct model *model, const struct column_metadata *column, uint32_t size,
    bool has_tombstones, struct cell *cells)
{
	const struct type *type = column->type;
	const struct type *path_type = type_cell_path(type);
	struct slice paths[6];
	uint32_t count = (uint32_t)model_random(model, 4);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (type->kind == TYPE_UDT) {
			uint8_t *bytes = arena_alloc_bytes(&model->arena, 2);

			store_u16(bytes, (uint16_t)model_random(model, type->param_count));
			paths[i] = slice_of(bytes, 2);
		} else {
			paths[i] = model_value(model, path_type, 8);
		}
	}
	if (type->kind == TYPE_UDT || type->kind == TYPE_LIST)
		qsort(paths, count, sizeof(*paths), model_compare_slices);
	else
		count = type_sort_elements(path_type, paths, count, 1);
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0 && slice_equal(paths[i], paths[i - 1]))
			continue;
		cells[kept] = model_cell(
		    model, column, type_cell_value(type, paths[i]), size, has_tombstones);
		cells[kept++].path = paths[i];
	}
	return kept;
}

static void
model_row_cells(struct model *model, struct row *row, const struct column_metadata *columns,
    uint32_t count, const struct model_shape *shape)
{
	struct cell *cells = arena_calloc(&model->arena, (size_t)count * 6 + 1, sizeof(*cells));
	struct complex_deletion *deletions =
	    arena_calloc(&model->arena, (size_t)count + 1, sizeof(*deletions));
	bool is_full = model_random(model, 3) == 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!is_full && model_random(model, 3) == 0)
			continue;
		if (!columns[i].is_complex) {
			cells[row->cell_count++] = model_cell(model, &columns[i], columns[i].type,
			    shape->value_size, shape->has_tombstones);
			continue;
		}
		if (shape->has_tombstones && model_random(model, 3) == 0)
			deletions[row->complex_deletion_count++] = (struct complex_deletion){
			    &columns[i], {MODEL_TIMESTAMP, MODEL_TIME + 7}};
		row->cell_count += model_complex(model, &columns[i], shape->value_size,
		    shape->has_tombstones, &cells[row->cell_count]);
	}
	row->cells = cells;
	row->complex_deletions = deletions;
}

static struct row
model_row(struct model *model, const struct slice *clustering, const struct model_shape *shape)
{
	const struct table_metadata *table = model->table;
	struct row row = {.clustering = clustering,
	    .clustering_count = table->clustering_count,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE};

	row.position = position_make(
	    table, BOUND_CLUSTERING, clustering, table->clustering_count, &model->arena);
	if (!table_is_counter(table) && model_random(model, 4) != 0) {
		row.liveness.timestamp = MODEL_TIMESTAMP + (int64_t)model_random(model, 1000);
		if (shape->has_tombstones && model_random(model, 4) == 0) {
			row.liveness.ttl = 100;
			row.liveness.local_expiration_time = MODEL_TIME + 55;
		}
	}
	if (shape->has_tombstones && model_random(model, 8) == 0)
		row.deletion = (struct deletion){
		    MODEL_TIMESTAMP - 5, MODEL_TIME + (int32_t)model_random(model, 500)};
	model_row_cells(model, &row, table->regulars, table->regular_count, shape);
	if (row_is_empty(&row))
		row.liveness.timestamp = MODEL_TIMESTAMP;
	return row;
}

/* ---- partitions -------------------------------------------------------------------------------------------- */

struct model_key {
	struct slice position;
	const struct slice *values;
};

static int
model_compare_keys(const void *a, const void *b)
{
	return slice_compare(
	    ((const struct model_key *)a)->position, ((const struct model_key *)b)->position);
}

static struct deletion
model_range_deletion(struct model *model)
{
	return (struct deletion){MODEL_TIMESTAMP + (int64_t)model_random(model, 1000),
	    MODEL_TIME + (int32_t)model_random(model, 100000)};
}

/* Try to put a marker before (or behind) the clustering; it must fall between its neighbours. */
static void
model_marker(struct model *model, struct model_partition *partition, struct deletion *open,
    const struct slice *values, bool is_behind, struct slice next, bool must_close)
{
	struct marker marker = {.clustering = values,
	    .clustering_count = model->table->clustering_count,
	    .open = DELETION_LIVE,
	    .close = DELETION_LIVE};
	const struct unfiltered *last =
	    partition->count > 0 ? &partition->items[partition->count - 1] : NULL;
	bool was_open = !deletion_is_live(*open);

	if (model_random(model, 4) == 0 && !must_close)
		marker.clustering_count =
		    (uint32_t)model_random(model, model->table->clustering_count + 1);
	if (!was_open)
		marker.kind = is_behind ? BOUND_EXCL_START : BOUND_INCL_START;
	else if (must_close || model_random(model, 2) == 0)
		marker.kind = is_behind ? BOUND_INCL_END : BOUND_EXCL_END;
	else
		marker.kind = is_behind ? BOUND_INCL_END_EXCL_START : BOUND_EXCL_END_INCL_START;
	marker.position = position_make(
	    model->table, marker.kind, values, marker.clustering_count, &model->arena);
	if (last != NULL &&
	    slice_compare(last->kind == UNFILTERED_ROW ? last->row.position : last->marker.position,
		marker.position) >= 0)
		return;
	if (!slice_is_null(next) && slice_compare(marker.position, next) >= 0)
		return;
	if (bound_closes(marker.kind))
		marker.close = *open;
	*open = DELETION_LIVE;
	if (bound_opens(marker.kind))
		marker.open = *open = model_range_deletion(model);
	partition->items[partition->count].kind = UNFILTERED_MARKER;
	partition->items[partition->count++].marker = marker;
}

static void
model_fill(struct model *model, struct model_partition *partition, const struct model_key *keys,
    uint32_t count, const struct model_shape *shape)
{
	struct deletion open = DELETION_LIVE;
	bool has_ranges = shape->has_tombstones && model->table->clustering_count > 0;

	partition->items =
	    arena_calloc(&model->arena, (size_t)count * 3 + 2, sizeof(struct unfiltered));
	for (uint32_t i = 0; i < count; i++) {
		struct slice next = i + 1 < count ? keys[i + 1].position : slice_null;

		if (has_ranges && model_random(model, 10) == 0)
			model_marker(model, partition, &open, keys[i].values, false,
			    keys[i].position, false);
		partition->items[partition->count].kind = UNFILTERED_ROW;
		partition->items[partition->count++].row = model_row(model, keys[i].values, shape);
		if (has_ranges && (model_random(model, 10) == 0 || i + 1 == count) &&
		    (i + 1 < count || !deletion_is_live(open)))
			model_marker(
			    model, partition, &open, keys[i].values, true, next, i + 1 == count);
	}
	model_assert(deletion_is_live(open), "a range of the model stays open");
}

static void
model_partition_init(
    struct model *model, struct model_partition *partition, const struct model_shape *shape)
{
	const struct table_metadata *table = model->table;
	uint32_t count =
	    table->clustering_count == 0 ? 1 : (uint32_t)model_random(model, shape->rows + 1);
	struct model_key *keys = arena_calloc(&model->arena, (size_t)count + 1, sizeof(*keys));
	struct slice components[8];
	uint32_t kept = 0;

	*partition = (struct model_partition){.deletion = DELETION_LIVE};
	for (uint32_t i = 0; i < table->partition_key_count; i++)
		components[i] = table->partition_key[i].type->kind == TYPE_INT
		    ? model_bytes(model, 4, false)
		    : model_bytes(model, 6, true);
	partition->key = table_partition_key(table, components, &model->arena);
	partition->token = murmur3_token(partition->key);
	if (shape->has_tombstones && model_random(model, 8) == 0)
		partition->deletion = (struct deletion){MODEL_TIMESTAMP - 100, MODEL_TIME};
	if (table->static_count > 0 && model_random(model, 2) == 0) {
		partition->static_row = (struct row){
		    .is_static = true, .liveness = LIVENESS_NONE, .deletion = DELETION_LIVE};
		model_row_cells(
		    model, &partition->static_row, table->statics, table->static_count, shape);
		partition->has_static = !row_is_empty(&partition->static_row);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct slice *values = arena_calloc(
		    &model->arena, (size_t)table->clustering_count + 1, sizeof(*values));

		for (uint32_t j = 0; j < table->clustering_count; j++)
			values[j] = model_value(model, table->clustering[j].type, 4);
		keys[i].values = values;
		keys[i].position = position_make(
		    table, BOUND_CLUSTERING, values, table->clustering_count, &model->arena);
	}
	qsort(keys, count, sizeof(*keys), model_compare_keys);
	for (uint32_t i = 0; i < count; i++) {
		if (kept > 0 && slice_equal(keys[kept - 1].position, keys[i].position))
			continue;
		keys[kept++] = keys[i];
	}
	model_fill(model, partition, keys, kept, shape);
}

static int
model_compare_partitions(const void *a, const void *b)
{
	const struct model_partition *left = a, *right = b;

	if (left->token != right->token)
		return left->token < right->token ? -1 : 1;
	return slice_compare(left->key, right->key);
}

void
model_init(struct model *model, const struct table_metadata *table, uint64_t seed,
    const struct model_shape *shape)
{
	uint32_t kept = 0;

	*model = (struct model){.seed = seed, .table = table};
	model->min_timestamp = MODEL_TIMESTAMP - 1000;
	model->min_local_deletion_time = MODEL_LEAST;
	arena_init(&model->arena, 1 << 20);
	model->partitions =
	    arena_calloc(&model->arena, shape->partitions, sizeof(*model->partitions));
	for (uint32_t i = 0; i < shape->partitions; i++)
		model_partition_init(model, &model->partitions[i], shape);
	qsort(model->partitions, shape->partitions, sizeof(*model->partitions),
	    model_compare_partitions);
	for (uint32_t i = 0; i < shape->partitions; i++) {
		const struct model_partition *partition = &model->partitions[i];

		/* What is empty is not written, and doubles are not either. */
		if (partition->count == 0 && !partition->has_static &&
		    deletion_is_live(partition->deletion))
			continue;
		if (kept > 0 && slice_equal(model->partitions[kept - 1].key, partition->key))
			continue;
		model->partitions[kept++] = *partition;
	}
	model->count = kept;
}

void
model_fini(struct model *model)
{
	arena_fini(&model->arena);
}

/* ---- iterator ------------------------------------------------------------------------------------------------- */

struct model_walk {
	struct unfiltered_iterator base;
	const struct model_partition *partition;
	uint32_t next;
};

static int
model_walk_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct model_walk *walk = (struct model_walk *)base;

	(void)err;
	if (walk->next == walk->partition->count)
		return 0;
	*out = walk->partition->items[walk->next++];
	return 1;
}

static void
model_walk_close(struct unfiltered_iterator *base)
{
	(void)base;
}

static const struct unfiltered_iterator_ops model_walk_ops = {model_walk_next, model_walk_close};

struct unfiltered_iterator *
model_iterator(
    const struct model *model, const struct model_partition *partition, struct arena *arena)
{
	struct model_walk *walk = arena_zalloc(arena, sizeof(*walk));

	walk->base = (struct unfiltered_iterator){
	    .ops = &model_walk_ops,
	    .table = model->table,
	    .token = partition->token,
	    .key = partition->key,
	    .partition_deletion = partition->deletion,
	    .has_static_row = partition->has_static,
	    .static_row = partition->static_row,
	};
	walk->partition = partition;
	return &walk->base;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void
model_check_deletion(struct deletion expected, struct deletion actual, const char *what)
{
	model_assert(expected.marked_for_delete_at == actual.marked_for_delete_at &&
		expected.local_deletion_time == actual.local_deletion_time,
	    "%s: deletion %lld/%d instead of %lld/%d", what, (long long)actual.marked_for_delete_at,
	    actual.local_deletion_time, (long long)expected.marked_for_delete_at,
	    expected.local_deletion_time);
}

static void
model_check_row(const struct row *expected, const struct row *actual, const char *what)
{
	model_assert(expected->clustering_count == actual->clustering_count, "%s", what);
	for (uint32_t i = 0; i < expected->clustering_count; i++)
		model_assert(
		    slice_equal(expected->clustering[i], actual->clustering[i]), "%s", what);
	model_assert(expected->liveness.timestamp == actual->liveness.timestamp, "%s", what);
	model_assert(expected->liveness.ttl == actual->liveness.ttl, "%s", what);
	model_check_deletion(expected->deletion, actual->deletion, what);
	model_assert(expected->cell_count == actual->cell_count, "%s: %u cells, not %u", what,
	    actual->cell_count, expected->cell_count);
	for (uint32_t i = 0; i < expected->cell_count; i++) {
		const struct cell *a = &expected->cells[i], *b = &actual->cells[i];

		model_assert(a->column == b->column, "%s: column", what);
		model_assert(a->timestamp == b->timestamp, "%s: timestamp", what);
		model_assert(a->ttl == b->ttl, "%s: ttl", what);
		model_assert(a->local_deletion_time == b->local_deletion_time, "%s", what);
		model_assert(slice_equal(a->path, b->path), "%s: path", what);
		model_assert(slice_equal(a->value, b->value), "%s: value of %.*s", what,
		    (int)a->column->name.size, (const char *)a->column->name.data);
	}
	model_assert(expected->complex_deletion_count == actual->complex_deletion_count, "%s: %u",
	    what, actual->complex_deletion_count);
	for (uint32_t i = 0; i < expected->complex_deletion_count; i++)
		model_check_deletion(expected->complex_deletions[i].deletion,
		    actual->complex_deletions[i].deletion, what);
}

static struct slice
model_item_position(const struct unfiltered *item)
{
	return item->kind == UNFILTERED_ROW ? item->row.position : item->marker.position;
}

struct deletion
model_deletion_at(const struct model_partition *partition, struct slice position)
{
	struct deletion open = DELETION_LIVE;

	for (uint32_t i = 0; i < partition->count; i++) {
		const struct unfiltered *item = &partition->items[i];

		if (slice_compare(model_item_position(item), position) >= 0)
			break;
		if (item->kind == UNFILTERED_MARKER)
			open = bound_opens(item->marker.kind) ? item->marker.open : DELETION_LIVE;
	}
	return open;
}

bool
model_selects(const struct clustering_filter *filter, struct slice position)
{
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

/* Every row that is selected, in order, each under the deletion that the model has there. */
void
model_check(const struct model_partition *partition, struct unfiltered_iterator *actual,
    const struct clustering_filter *filter, const char *what)
{
	bool is_reversed = filter != NULL && filter->is_reversed;
	struct deletion open = DELETION_LIVE;
	struct slice last = slice_null;
	uint32_t next = 0;
	struct unfiltered item;
	struct error err = {0};
	int rc;

	model_assert(slice_equal(partition->key, actual->key), "%s: key", what);
	model_assert(partition->token == actual->token, "%s: token", what);
	model_check_deletion(partition->deletion, actual->partition_deletion, what);
	if (filter == NULL || filter->with_static) {
		model_assert(partition->has_static == actual->has_static_row, "%s", what);
		if (partition->has_static)
			model_check_row(&partition->static_row, &actual->static_row, what);
	}
	while ((rc = unfiltered_iterator_next(actual, &item, &err)) > 0) {
		struct slice position = model_item_position(&item);
		const struct unfiltered *expected;

		model_assert(slice_is_null(last) ||
			(is_reversed ? slice_compare(position, last) < 0
				     : slice_compare(position, last) > 0),
		    "%s: out of order", what);
		last = position;
		if (item.kind == UNFILTERED_MARKER) {
			const struct marker *marker = &item.marker;
			struct deletion ends = is_reversed ? marker->open : marker->close;
			bool has_end =
			    is_reversed ? bound_opens(marker->kind) : bound_closes(marker->kind);

			model_check_deletion(open, has_end ? ends : DELETION_LIVE, what);
			if (is_reversed)
				open = bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
			else
				open = bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
			continue;
		}
		do {
			model_assert(next < partition->count, "%s: too many rows", what);
			expected =
			    &partition->items[is_reversed ? partition->count - 1 - next : next];
			next++;
		} while (expected->kind != UNFILTERED_ROW ||
		    !model_selects(filter, expected->row.position));
		model_check_row(&expected->row, &item.row, what);
		model_check_deletion(model_deletion_at(partition, position), open, what);
	}
	model_assert(rc == 0, "%s: %s", what, err.text);
	model_assert(deletion_is_live(open), "%s: a range stays open", what);
	for (; next < partition->count; next++) {
		const struct unfiltered *missed =
		    &partition->items[is_reversed ? partition->count - 1 - next : next];

		model_assert(
		    missed->kind != UNFILTERED_ROW || !model_selects(filter, missed->row.position),
		    "%s: a row is missing", what);
	}
	unfiltered_iterator_close(actual);
}
