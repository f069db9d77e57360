/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row.h"
#include "storage/counter.h"

bool
row_is_empty(const struct row *row)
{
	return row->cell_count == 0 && row->complex_deletion_count == 0 &&
	    row->liveness.timestamp == TIMESTAMP_NONE && deletion_is_live(row->deletion);
}

int
column_order(const struct column_metadata *a, const struct column_metadata *b)
{
	if (a == b || (a->name.data == b->name.data && a->is_complex == b->is_complex))
		return 0;
	if (a->is_complex != b->is_complex)
		return a->is_complex ? 1 : -1;
	return slice_compare(a->name, b->name);
}

static int
row_compare_paths(const struct column_metadata *column, struct slice a, struct slice b)
{
	const struct type *type;

	if (a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0))
		return 0;
	type = type_cell_path(column->type);
	return type != NULL ? type_compare(type, a, b) : slice_compare(a, b);
}

int
cell_order(const struct cell *a, const struct cell *b)
{
	int order = column_order(a->column, b->column);

	if (order != 0 || !a->column->is_complex)
		return order;
	return row_compare_paths(a->column, a->path, b->path);
}

static inline bool
deletion_deletes(struct deletion deletion, int64_t timestamp)
{
	return timestamp <= deletion.marked_for_delete_at;
}

/* LivenessInfo.supersedes. */
static bool
liveness_supersedes(const struct liveness *a, const struct liveness *b)
{
	bool a_expired = a->ttl == TTL_EXPIRED_LIVENESS, b_expired = b->ttl == TTL_EXPIRED_LIVENESS;

	if (a->timestamp != b->timestamp)
		return a->timestamp > b->timestamp;
	if (a_expired != b_expired)
		return a_expired;
	if ((a->ttl != TTL_NONE) == (b->ttl != TTL_NONE)) {
		if (a->local_expiration_time != b->local_expiration_time)
			return a->local_expiration_time > b->local_expiration_time;
		/* Same expiry: they differ in nothing a reader sees, but the choice must not depend
		 * on the order in which versions meet. */
		return a->ttl > b->ttl;
	}
	return a->ttl != TTL_NONE;
}

static bool
liveness_is_live(const struct liveness *liveness, int64_t now_seconds)
{
	if (liveness->timestamp == TIMESTAMP_NONE || liveness->ttl == TTL_EXPIRED_LIVENESS)
		return false;
	return liveness->ttl == TTL_NONE || now_seconds < liveness->local_expiration_time;
}

const struct cell *
cell_reconcile(const struct cell *a, const struct cell *b)
{
	bool a_ends, b_ends, a_expires, b_expires;
	int order;

	if (a->timestamp != b->timestamp)
		return a->timestamp > b->timestamp ? a : b;
	a_ends = a->local_deletion_time != LOCAL_DELETION_TIME_NONE;
	b_ends = b->local_deletion_time != LOCAL_DELETION_TIME_NONE;
	if (a_ends != b_ends)
		return a_ends ? a : b;
	if (a_ends) {
		a_expires = a->ttl != TTL_NONE;
		b_expires = b->ttl != TTL_NONE;
		if (a_expires != b_expires)
			return a_expires ? b : a;
		if (a->local_deletion_time != b->local_deletion_time)
			return a->local_deletion_time > b->local_deletion_time ? a : b;
	}
	order = slice_compare(a->value, b->value);
	if (order != 0)
		return order > 0 ? a : b;
	/* The rule ends here; the TTL is looked at only to be independent of the order of arrival. */
	return a->ttl >= b->ttl ? a : b;
}

static bool
cell_is_counter(const struct cell *cell)
{
	return cell->column->type->kind == TYPE_COUNTER && !cell_is_tombstone(cell);
}

int
cell_merge(struct cell *into, const struct cell *next, struct arena *arena, struct error *err)
{
	struct slice merged;

	if (!cell_is_counter(into) && !cell_is_counter(next)) {
		if (cell_reconcile(into, next) == next)
			*into = *next;
		return 0;
	}
	/* Whatever the timestamps are, a deleted counter stays deleted. */
	if (cell_is_tombstone(into))
		return 0;
	if (cell_is_tombstone(next)) {
		*into = *next;
		return 0;
	}
	if (into->value.size == 0 || next->value.size == 0) {
		if (next->value.size == 0 &&
		    (into->value.size != 0 || next->timestamp > into->timestamp))
			*into = *next;
		return 0;
	}
	merged = counter_merge(into->value, next->value, arena);
	if (slice_is_null(merged))
		return error_set(err, ERROR_NO_MEMORY, "no memory to merge two counters");
	into->value = merged;
	if (next->timestamp > into->timestamp)
		into->timestamp = next->timestamp;
	return 0;
}

/* Where the merge stands in one version. */
struct row_cursor {
	const struct cell *cell, *cell_end;
	const struct complex_deletion *deletion, *deletion_end;
};

static void
row_cursor_init(struct row_cursor *cursor, const struct row *row)
{
	cursor->cell = cursor->cell_end = row->cells;
	cursor->deletion = cursor->deletion_end = row->complex_deletions;
	if (row->cell_count != 0) /* NULL + 0 is not C */
		cursor->cell_end += row->cell_count;
	if (row->complex_deletion_count != 0)
		cursor->deletion_end += row->complex_deletion_count;
}

/* The column that comes next in any version; NULL at the end. */
static const struct column_metadata *
row_next_column(const struct row_cursor *cursors, size_t count)
{
	const struct column_metadata *least = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct row_cursor *cursor = &cursors[i];

		if (cursor->cell != cursor->cell_end &&
		    (least == NULL || column_order(cursor->cell->column, least) < 0))
			least = cursor->cell->column;
		if (cursor->deletion != cursor->deletion_end &&
		    (least == NULL || column_order(cursor->deletion->column, least) < 0))
			least = cursor->deletion->column;
	}
	return least;
}

static bool
row_cursor_is_at(const struct row_cursor *cursor, const struct column_metadata *column)
{
	return cursor->cell != cursor->cell_end && column_order(cursor->cell->column, column) == 0;
}

/* Output of a merge. */
struct row_output {
	struct cell *cells;
	struct complex_deletion *deletions;
	uint32_t cell_count, deletion_count;
};

/* Take the cells of `column` with the least path from all cursors into one output cell. 0 when there is
 * none, 1 when taken (or dropped as deleted), -1 on error. */
static int
row_merge_cell(struct row_cursor *cursors, size_t count, const struct column_metadata *column,
    struct deletion active, struct row_output *output, struct arena *arena, struct error *err)
{
	struct cell *into = &output->cells[output->cell_count];
	const struct cell *least = NULL;
	struct slice path;
	bool has_cell = false;

	for (size_t i = 0; i < count; i++) {
		if (!row_cursor_is_at(&cursors[i], column))
			continue;
		if (least == NULL ||
		    (column->is_complex &&
			row_compare_paths(column, cursors[i].cell->path, least->path) < 0))
			least = cursors[i].cell;
	}
	if (least == NULL)
		return 0;
	path = least->path;
	for (size_t i = 0; i < count; i++) {
		const struct cell *cell = cursors[i].cell;

		if (!row_cursor_is_at(&cursors[i], column) ||
		    (column->is_complex && row_compare_paths(column, cell->path, path) != 0))
			continue;
		cursors[i].cell++;
		if (deletion_deletes(active, cell->timestamp))
			continue;
		if (!has_cell)
			*into = *cell;
		else if (cell_merge(into, cell, arena, err) != 0)
			return -1;
		has_cell = true;
	}
	if (has_cell) {
		into->column = column;
		output->cell_count++;
	}
	return 1;
}

static int
row_merge_column(struct row_cursor *cursors, size_t count, const struct column_metadata *column,
    struct deletion active, struct row_output *output, struct arena *arena, struct error *err)
{
	struct deletion complex = DELETION_LIVE;
	int rc;

	for (size_t i = 0; i < count; i++) {
		struct row_cursor *cursor = &cursors[i];

		while (cursor->deletion != cursor->deletion_end &&
		    column_order(cursor->deletion->column, column) == 0) {
			if (deletion_supersedes(cursor->deletion->deletion, complex))
				complex = cursor->deletion->deletion;
			cursor->deletion++;
		}
	}
	if (!deletion_is_live(complex) && deletion_supersedes(complex, active)) {
		output->deletions[output->deletion_count++] =
		    (struct complex_deletion){column, complex};
		active = complex;
	}
	do {
		rc = row_merge_cell(cursors, count, column, active, output, arena, err);
	} while (rc > 0);
	return rc;
}

/* Liveness and deletion of the row; returns the deletion that covers its cells. */
static struct deletion
row_merge_infos(
    const struct row *const *versions, size_t count, struct deletion active, struct row *out)
{
	struct liveness liveness = versions[0]->liveness;
	struct deletion deletion = versions[0]->deletion;

	for (size_t i = 1; i < count; i++) {
		if (liveness_supersedes(&versions[i]->liveness, &liveness))
			liveness = versions[i]->liveness;
		if (deletion_supersedes(versions[i]->deletion, deletion))
			deletion = versions[i]->deletion;
	}
	if (deletion_supersedes(deletion, active))
		active = deletion;
	else
		deletion = DELETION_LIVE;
	if (deletion_deletes(active, liveness.timestamp))
		liveness = LIVENESS_NONE;
	out->liveness = liveness;
	out->deletion = deletion;
	return active;
}

int
row_merge(const struct row *const *versions, size_t count, struct deletion active,
    struct arena *arena, struct row *out, struct error *err)
{
	struct row_cursor few[8], *cursors = few;
	struct row_output output = {0};
	const struct column_metadata *column;
	const struct row *first = versions[0];
	size_t cells = 0, deletions = 0;

	if (count == 1 && deletion_is_live(active) && deletion_is_live(first->deletion)) {
		*out = *first;
		return 0;
	}
	if (count > sizeof(few) / sizeof(few[0])) {
		cursors = arena_alloc(arena, count * sizeof(*cursors));
		if (cursors == NULL)
			goto no_memory;
	}
	for (size_t i = 0; i < count; i++) {
		const struct row *row = versions[i];

		row_cursor_init(&cursors[i], row);
		cells += row->cell_count;
		deletions += row->complex_deletion_count;
	}
	output.cells = arena_alloc(arena, cells * sizeof(*output.cells));
	output.deletions = arena_alloc(arena, deletions * sizeof(*output.deletions));
	if (output.cells == NULL || output.deletions == NULL)
		goto no_memory;

	*out = *first;
	/* Equal values may differ in their bytes (decimals 1 and 1.0): the oldest source's are kept. */
	out->clustering = versions[count - 1]->clustering;
	for (size_t i = 1; slice_is_null(out->position) && i < count; i++)
		out->position = versions[i]->position;
	active = row_merge_infos(versions, count, active, out);
	while ((column = row_next_column(cursors, count)) != NULL) {
		if (row_merge_column(cursors, count, column, active, &output, arena, err) != 0)
			return -1;
	}
	out->cells = output.cells;
	out->cell_count = output.cell_count;
	out->complex_deletions = output.deletions;
	out->complex_deletion_count = output.deletion_count;
	return 0;
no_memory:
	return error_set(err, ERROR_NO_MEMORY, "no memory to merge %zu versions of a row", count);
}

static uint32_t
row_live_cells(const struct row *row, int64_t now_seconds)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < row->cell_count; i++)
		live += cell_is_live(&row->cells[i], now_seconds);
	return live;
}

/* ReadCommand's count: each dead cell, or one for a row that is nothing but deleted. */
static uint32_t
row_tombstones(const struct row *row, uint32_t dead, bool has_live)
{
	bool has_deletion = !deletion_is_live(row->deletion) || row->complex_deletion_count != 0 ||
	    row->liveness.ttl != TTL_NONE;

	return dead == 0 && !has_live && has_deletion ? 1 : dead;
}

bool
row_has_live(const struct row *row, int64_t now_seconds, uint32_t *tombstones)
{
	uint32_t live = row_live_cells(row, now_seconds);
	bool has_live = live != 0 || liveness_is_live(&row->liveness, now_seconds);

	*tombstones = row_tombstones(row, row->cell_count - live, has_live);
	return has_live;
}

int
row_live_view(const struct row *row, int64_t now_seconds, struct arena *arena, struct row *out,
    bool *has_live, uint32_t *tombstone_count, struct error *err)
{
	bool is_marker_live = liveness_is_live(&row->liveness, now_seconds);
	uint32_t live = row_live_cells(row, now_seconds), dead = row->cell_count - live;
	struct cell *cells;

	*has_live = is_marker_live || live != 0;
	if (tombstone_count != NULL)
		*tombstone_count = row_tombstones(row, dead, *has_live);

	*out = *row;
	out->deletion = DELETION_LIVE;
	out->complex_deletion_count = 0;
	out->complex_deletions = NULL;
	if (!is_marker_live)
		out->liveness = LIVENESS_NONE;
	if (dead == 0)
		return 0;

	out->cell_count = live;
	if (live == 0) {
		out->cells = NULL;
		return 0;
	}
	cells = arena_alloc(arena, live * sizeof(*cells));
	if (cells == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a row's %u live cells", live);
	out->cells = cells;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		if (cell_is_live(&row->cells[i], now_seconds))
			*cells++ = row->cells[i];
	}
	return 0;
}
