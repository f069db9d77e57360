/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/garbage.h"

struct garbage_iterator {
	struct unfiltered_iterator base;
	struct unfiltered_iterator *source, *shadow; /* owned */
	bool cells;
	struct arena arenas[3]; /* owned; rows, in turns; the static row */
	unsigned turn;
	struct unfiltered next; /* of the shadow, not passed yet */
	bool has_next;
	struct deletion open; /* of the shadow, between what was passed and what comes */
};

static int
garbage_advance(struct garbage_iterator *iterator, struct error *err)
{
	int rc = unfiltered_iterator_next(iterator->shadow, &iterator->next, err);

	iterator->has_next = rc > 0;
	return rc < 0 ? -1 : 0;
}

/* Pass what the shadow has before `position`. */
static int
garbage_pass(struct garbage_iterator *iterator, struct slice position, struct error *err)
{
	while (iterator->has_next) {
		const struct unfiltered *next = &iterator->next;
		bool is_marker = next->kind == UNFILTERED_MARKER;

		if (slice_compare(
			is_marker ? next->marker.position : next->row.position, position) >= 0)
			return 0;
		if (is_marker)
			iterator->open =
			    bound_opens(next->marker.kind) ? next->marker.open : DELETION_LIVE;
		if (garbage_advance(iterator, err) != 0)
			return -1;
	}
	return 0;
}

/* Does the shadow's row delete or replace the cell? */
static bool
garbage_is_replaced(const struct row *shadow, const struct cell *cell)
{
	for (uint32_t i = 0; i < shadow->complex_deletion_count; i++) {
		const struct complex_deletion *each = &shadow->complex_deletions[i];

		if (slice_equal(each->column->name, cell->column->name) &&
		    cell->timestamp <= each->deletion.marked_for_delete_at)
			return true;
	}
	for (uint32_t i = 0; i < shadow->cell_count; i++) {
		const struct cell *each = &shadow->cells[i];

		if (each->timestamp > cell->timestamp &&
		    slice_equal(each->column->name, cell->column->name) &&
		    slice_is_null(each->path) == slice_is_null(cell->path) &&
		    slice_equal(each->path, cell->path))
			return true;
	}
	return false;
}

static int
garbage_drop_cells(
    struct row *row, const struct row *shadow, struct arena *arena, struct error *err)
{
	struct cell *kept = arena_alloc(arena, (row->cell_count + 1) * sizeof(*kept));
	uint32_t count = 0;

	if (kept == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to collect garbage");
	for (uint32_t i = 0; i < row->cell_count; i++)
		if (!garbage_is_replaced(shadow, &row->cells[i]))
			kept[count++] = row->cells[i];
	row->cells = kept;
	row->cell_count = count;
	return 0;
}

/* shadow: the row at the same place, or NULL. */
static int
garbage_row(struct garbage_iterator *iterator, const struct row *from, const struct row *shadow,
    struct deletion active, struct arena *arena, struct row *out, struct error *err)
{
	if (deletion_supersedes(iterator->shadow->partition_deletion, active))
		active = iterator->shadow->partition_deletion;
	if (shadow != NULL && deletion_supersedes(shadow->deletion, active))
		active = shadow->deletion;
	if (row_merge(&from, 1, active, arena, out, err) != 0)
		return -1;
	/* A counter's cells are parts of one count: none replaces another. */
	if (shadow == NULL || !iterator->cells || table_is_counter(iterator->base.table))
		return 0;
	return garbage_drop_cells(out, shadow, arena, err);
}

static int
garbage_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct garbage_iterator *iterator = (struct garbage_iterator *)base;
	struct unfiltered item;
	int rc;

	while ((rc = unfiltered_iterator_next(iterator->source, &item, err)) > 0) {
		struct arena *arena;
		const struct row *same = NULL;

		if (item.kind != UNFILTERED_ROW) {
			*out = item;
			return 1;
		}
		if (garbage_pass(iterator, item.row.position, err) != 0)
			return -1;
		if (iterator->has_next && iterator->next.kind == UNFILTERED_ROW &&
		    slice_equal(iterator->next.row.position, item.row.position))
			same = &iterator->next.row;
		arena = &iterator->arenas[iterator->turn++ % 2];
		arena_reset(arena);
		out->kind = UNFILTERED_ROW;
		if (garbage_row(iterator, &item.row, same, iterator->open, arena, &out->row, err) !=
		    0)
			return -1;
		if (!row_is_empty(&out->row))
			return 1;
	}
	return rc;
}

static void
garbage_close(struct unfiltered_iterator *base)
{
	struct garbage_iterator *iterator = (struct garbage_iterator *)base;

	unfiltered_iterator_close(iterator->source);
	unfiltered_iterator_close(iterator->shadow);
	for (int i = 0; i < 3; i++)
		arena_fini(&iterator->arenas[i]);
}

static const struct unfiltered_iterator_ops garbage_ops = {
    .next = garbage_next,
    .close = garbage_close,
};

int
unfiltered_without_garbage(struct unfiltered_iterator *source, struct unfiltered_iterator *shadow,
    bool cells, struct arena *arena, struct unfiltered_iterator **out, struct error *err)
{
	struct garbage_iterator *iterator = arena_zalloc(arena, sizeof(*iterator));

	if (iterator == NULL) {
		unfiltered_iterator_close(source);
		unfiltered_iterator_close(shadow);
		return error_set(err, ERROR_NO_MEMORY, "no memory to collect garbage");
	}
	iterator->base = *source;
	iterator->base.ops = &garbage_ops;
	iterator->source = source;
	iterator->shadow = shadow;
	iterator->cells = cells;
	iterator->open = DELETION_LIVE;
	for (int i = 0; i < 3; i++)
		arena_init(&iterator->arenas[i], 4096);
	if (garbage_advance(iterator, err) != 0 ||
	    (source->has_static_row &&
		garbage_row(iterator, &source->static_row,
		    shadow->has_static_row ? &shadow->static_row : NULL, DELETION_LIVE,
		    &iterator->arenas[2], &iterator->base.static_row, err) != 0)) {
		garbage_close(&iterator->base);
		return -1;
	}
	if (source->has_static_row)
		iterator->base.has_static_row = !row_is_empty(&iterator->base.static_row);
	*out = &iterator->base;
	return 0;
}
