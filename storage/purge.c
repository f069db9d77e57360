/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/merge.h"

enum { PURGE_TURN_BLOCK = 16 * 1024 };

struct purge {
	struct unfiltered_iterator base;
	struct unfiltered_iterator *source; /* owned */
	struct arena turns[2]; /* of the rows that next() makes, one a call */
	struct arena *arena;
	int64_t now_seconds;
	int32_t gc_before;
	max_purgeable_fn max_purgeable;
	void *argument;
	bool has_max; /* asked once a partition, at the first tombstone that is old enough */
	int64_t max;
};

static bool
purge_may_forget(struct purge *purge, int64_t timestamp, int32_t local_deletion_time)
{
	if (local_deletion_time >= purge->gc_before)
		return false;
	if (!purge->has_max) {
		purge->max =
		    purge->max_purgeable(purge->argument, purge->base.key, purge->base.token);
		purge->has_max = true;
	}
	return timestamp < purge->max;
}

static bool
purge_deletion(struct purge *purge, struct deletion deletion)
{
	return !deletion_is_live(deletion) &&
	    purge_may_forget(purge, deletion.marked_for_delete_at, deletion.local_deletion_time);
}

/* AbstractCell.purge: false when the cell goes; an expired cell becomes a tombstone. */
static bool
purge_cell(struct purge *purge, struct cell *cell)
{
	if (cell_is_live(cell, purge->now_seconds))
		return true;
	if (purge_may_forget(purge, cell->timestamp, cell->local_deletion_time))
		return false;
	if (cell->ttl == TTL_NONE)
		return true;
	/* The tombstone's clock starts when the cell was written: cell and tombstone together then
	 * live as long as a tombstone must. */
	cell->local_deletion_time -= cell->ttl;
	cell->ttl = TTL_NONE;
	cell->value = slice_empty;
	return !purge_may_forget(purge, cell->timestamp, cell->local_deletion_time);
}

static bool
purge_liveness_is_live(const struct purge *purge, const struct liveness *liveness)
{
	if (liveness->timestamp == TIMESTAMP_NONE || liveness->ttl == TTL_EXPIRED_LIVENESS)
		return false;
	return liveness->ttl == TTL_NONE || purge->now_seconds < liveness->local_expiration_time;
}

static int
purge_row(struct purge *purge, struct row *row, struct error *err)
{
	struct cell *cells;
	struct complex_deletion *deletions;
	uint32_t cell_count = 0, deletion_count = 0;
	bool has_dead = false;

	if (row->liveness.timestamp != TIMESTAMP_NONE &&
	    !purge_liveness_is_live(purge, &row->liveness) &&
	    purge_may_forget(purge, row->liveness.timestamp, row->liveness.local_expiration_time))
		row->liveness = LIVENESS_NONE;
	if (purge_deletion(purge, row->deletion))
		row->deletion = DELETION_LIVE;
	for (uint32_t i = 0; i < row->cell_count && !has_dead; i++)
		has_dead = !cell_is_live(&row->cells[i], purge->now_seconds);
	if (!has_dead && row->complex_deletion_count == 0)
		return 0;

	cells = arena_alloc(purge->arena, row->cell_count * sizeof(*cells));
	deletions = arena_alloc(purge->arena, row->complex_deletion_count * sizeof(*deletions));
	if (cells == NULL || deletions == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to purge a row");
	for (uint32_t i = 0; i < row->cell_count; i++) {
		cells[cell_count] = row->cells[i];
		cell_count += purge_cell(purge, &cells[cell_count]);
	}
	for (uint32_t i = 0; i < row->complex_deletion_count; i++) {
		if (!purge_deletion(purge, row->complex_deletions[i].deletion))
			deletions[deletion_count++] = row->complex_deletions[i];
	}
	row->cells = cells;
	row->cell_count = cell_count;
	row->complex_deletions = deletions;
	row->complex_deletion_count = deletion_count;
	return 0;
}

/* Nothing of the row has died yet, so nothing of it changes. */
static bool
purge_spares(const struct purge *purge, const struct row_raw *raw)
{
	return raw->local_deletion_count == 0 || raw->local_deletion_time > purge->now_seconds;
}

/* False when the marker goes. */
static bool
purge_marker(struct purge *purge, struct marker *marker)
{
	struct deletion below = bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	struct deletion above = bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
	struct marker at = *marker;

	if (purge_deletion(purge, below))
		below = DELETION_LIVE;
	if (purge_deletion(purge, above))
		above = DELETION_LIVE;
	if (deletion_is_live(below) && deletion_is_live(above))
		return false;
	marker_between(marker, below, above, &at);
	return true;
}

static int
purge_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct purge *purge = (struct purge *)iterator;
	int rc;

	purge->arena = purge->arena == &purge->turns[0] ? &purge->turns[1] : &purge->turns[0];
	while ((rc = unfiltered_iterator_next(purge->source, out, err)) > 0) {
		arena_reset(purge->arena);
		if (out->kind == UNFILTERED_MARKER) {
			if (purge_marker(purge, &out->marker))
				return 1;
			continue;
		}
		if (out->kind == UNFILTERED_RAW) {
			if (purge_spares(purge, &out->raw))
				return 1;
			if (unfiltered_decode_raw(out, purge->arena, err) != 0)
				return -1;
		}
		if (purge_row(purge, &out->row, err) != 0)
			return -1;
		if (!row_is_empty(&out->row))
			return 1;
	}
	return rc;
}

static void
purge_close(struct unfiltered_iterator *iterator)
{
	struct purge *purge = (struct purge *)iterator;

	unfiltered_iterator_close(purge->source);
	purge->source = NULL;
	arena_fini(&purge->turns[0]);
	arena_fini(&purge->turns[1]);
}

static const struct unfiltered_iterator_ops purge_ops = {purge_next, purge_close};

int
unfiltered_purge(struct unfiltered_iterator *source, int64_t now_seconds, int32_t gc_before,
    max_purgeable_fn max_purgeable, void *argument, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	struct purge *purge = arena_alloc(arena, sizeof(*purge));

	if (purge == NULL) {
		unfiltered_iterator_close(source);
		return error_set(err, ERROR_NO_MEMORY, "no memory to purge a partition");
	}
	*purge = (struct purge){
	    .base = *source,
	    .source = source,
	    .arena = arena,
	    .now_seconds = now_seconds,
	    .gc_before = gc_before,
	    .max_purgeable = max_purgeable,
	    .argument = argument,
	};
	purge->base.ops = &purge_ops;
	arena_init(&purge->turns[0], PURGE_TURN_BLOCK);
	arena_init(&purge->turns[1], PURGE_TURN_BLOCK);
	if (purge_deletion(purge, purge->base.partition_deletion))
		purge->base.partition_deletion = DELETION_LIVE;
	if (purge->base.has_static_row) {
		if (purge_row(purge, &purge->base.static_row, err) != 0) {
			unfiltered_iterator_close(source);
			return -1;
		}
		purge->base.has_static_row = !row_is_empty(&purge->base.static_row);
	}
	*out = &purge->base;
	return 0;
}
