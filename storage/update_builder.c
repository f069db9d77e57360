/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/hash.h"
#include "storage/mutation.h"

struct update_builder {
	const struct table_metadata *table;
	struct slice key;
	struct arena *arena;
	struct deletion deletion;
	bool has_static;
	struct row static_row;
	bool is_sorted; /* the rows ascend so far, none twice */
	uint32_t row_count, row_room;
	struct row *rows; /* in the arena */
	uint32_t tombstone_count, tombstone_room;
	struct range_tombstone *tombstones;
};

struct update_builder *
update_builder_new(const struct table_metadata *table, struct slice key, struct arena *arena)
{
	struct update_builder *builder = arena_alloc(arena, sizeof(*builder));

	if (builder == NULL)
		return NULL;
	*builder = (struct update_builder){
	    .table = table,
	    .key = key,
	    .arena = arena,
	    .deletion = DELETION_LIVE,
	    .is_sorted = true,
	};
	return builder;
}

static int
update_builder_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for the changes of a partition");
}

static int
update_builder_compare_cells(const void *a, const void *b)
{
	return cell_order(a, b);
}

static int
update_builder_compare_deletions(const void *a, const void *b)
{
	const struct complex_deletion *left = a, *right = b;

	return column_order(left->column, right->column);
}

/* Cells in order, each once. The usual statement has them so already and nothing is copied. */
static int
update_builder_sort_cells(struct update_builder *builder, struct row *row, struct error *err)
{
	struct cell *cells;
	uint32_t count = 0, i;

	for (i = 1; i < row->cell_count; i++) {
		const struct cell *before = &row->cells[i - 1], *cell = &row->cells[i];

		/* Columns of one array are in order by position. */
		if (before->column->position < cell->column->position &&
		    before->column + (cell->column->position - before->column->position) ==
			cell->column)
			continue;
		if (cell_order(before, cell) >= 0)
			break;
	}
	if (i >= row->cell_count)
		return 0;
	cells = arena_alloc(builder->arena, row->cell_count * sizeof(*cells));
	if (cells == NULL)
		return update_builder_no_memory(err);
	memcpy(cells, row->cells, row->cell_count * sizeof(*cells));
	qsort(cells, row->cell_count, sizeof(*cells), update_builder_compare_cells);
	for (i = 0; i < row->cell_count; i++) {
		if (count == 0 || cell_order(&cells[count - 1], &cells[i]) != 0)
			cells[count++] = cells[i];
		else if (cell_merge(&cells[count - 1], &cells[i], builder->arena, err) != 0)
			return -1;
	}
	row->cells = cells;
	row->cell_count = count;
	return 0;
}

static int
update_builder_sort_deletions(struct update_builder *builder, struct row *row, struct error *err)
{
	struct complex_deletion *deletions;
	uint32_t count = 0;

	if (row->complex_deletion_count < 2)
		return 0;
	deletions = arena_alloc(builder->arena, row->complex_deletion_count * sizeof(*deletions));
	if (deletions == NULL)
		return update_builder_no_memory(err);
	memcpy(deletions, row->complex_deletions, row->complex_deletion_count * sizeof(*deletions));
	qsort(deletions, row->complex_deletion_count, sizeof(*deletions),
	    update_builder_compare_deletions);
	for (uint32_t i = 0; i < row->complex_deletion_count; i++) {
		if (count == 0 ||
		    column_order(deletions[count - 1].column, deletions[i].column) != 0)
			deletions[count++] = deletions[i];
		else if (deletion_supersedes(deletions[i].deletion, deletions[count - 1].deletion))
			deletions[count - 1] = deletions[i];
	}
	row->complex_deletions = deletions;
	row->complex_deletion_count = count;
	return 0;
}

/* `count` items of `size` and room for one more. */
static void *
update_builder_grow(
    struct update_builder *builder, void *items, uint32_t count, uint32_t *room, size_t size)
{
	void *more;

	if (count < *room)
		return items;
	*room = *room == 0 ? 1 : *room * 2;
	more = arena_alloc(builder->arena, *room * size);
	if (more != NULL && count != 0)
		memcpy(more, items, count * size);
	return more;
}

int
update_builder_add_row(struct update_builder *builder, const struct row *row, struct error *err)
{
	struct row sorted = *row;
	const struct row *versions[2] = {&builder->static_row, &sorted};

	if (update_builder_sort_cells(builder, &sorted, err) != 0 ||
	    update_builder_sort_deletions(builder, &sorted, err) != 0)
		return -1;
	if (row->is_static) {
		if (!builder->has_static) {
			builder->static_row = sorted;
			builder->has_static = true;
			return 0;
		}
		return row_merge(
		    versions, 2, DELETION_LIVE, builder->arena, &builder->static_row, err);
	}
	if (slice_is_null(sorted.position))
		sorted.position = position_make(builder->table, BOUND_CLUSTERING, sorted.clustering,
		    sorted.clustering_count, builder->arena);
	builder->rows = update_builder_grow(
	    builder, builder->rows, builder->row_count, &builder->row_room, sizeof(sorted));
	if (slice_is_null(sorted.position) || builder->rows == NULL)
		return update_builder_no_memory(err);
	if (builder->row_count != 0 &&
	    slice_compare(builder->rows[builder->row_count - 1].position, sorted.position) >= 0)
		builder->is_sorted = false;
	builder->rows[builder->row_count++] = sorted;
	return 0;
}

void
update_builder_delete_partition(struct update_builder *builder, struct deletion deletion)
{
	if (deletion_supersedes(deletion, builder->deletion))
		builder->deletion = deletion;
}

int
update_builder_delete_range(
    struct update_builder *builder, const struct range_tombstone *tombstone, struct error *err)
{
	builder->tombstones = update_builder_grow(builder, builder->tombstones,
	    builder->tombstone_count, &builder->tombstone_room, sizeof(*tombstone));
	if (builder->tombstones == NULL)
		return update_builder_no_memory(err);
	builder->tombstones[builder->tombstone_count++] = *tombstone;
	return 0;
}

static int
update_builder_compare_rows(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	return slice_compare(left->position, right->position);
}

/* Sort the rows and make one of each run of equal positions. */
static int
update_builder_sort_rows(struct update_builder *builder, struct error *err)
{
	struct row *rows = builder->rows;
	const struct row **versions;
	uint32_t count = 0, end;

	qsort(rows, builder->row_count, sizeof(*rows), update_builder_compare_rows);
	versions = arena_alloc(builder->arena, builder->row_count * sizeof(*versions));
	if (versions == NULL)
		return update_builder_no_memory(err);
	for (uint32_t i = 0; i < builder->row_count; i = end) {
		struct row merged;

		for (end = i; end < builder->row_count &&
		     slice_compare(rows[end].position, rows[i].position) == 0;
		     end++)
			versions[end - i] = &rows[end];
		if (row_merge(versions, end - i, DELETION_LIVE, builder->arena, &merged, err) != 0)
			return -1;
		rows[count++] = merged;
	}
	builder->row_count = count;
	return 0;
}

int
update_builder_finish(
    struct update_builder *builder, struct partition_update *out, struct error *err)
{
	if (!builder->is_sorted && update_builder_sort_rows(builder, err) != 0)
		return -1;
	*out = (struct partition_update){
	    .table = builder->table,
	    .key = builder->key,
	    .token = murmur3_token(builder->key),
	    .deletion = builder->deletion,
	    .static_row = builder->has_static ? &builder->static_row : NULL,
	    .row_count = builder->row_count,
	    .rows = builder->rows,
	    .tombstone_count = builder->tombstone_count,
	    .tombstones = builder->tombstones,
	};
	return 0;
}
