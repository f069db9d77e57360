/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include "storage/merge.h"

/*
 * Cassandra's rule for range tombstones (RangeTombstoneMarker.Merger): of the ranges that are open in
 * the sources the one with the highest deletion counts; the merged stream has a marker wherever that
 * changes. A range that the partition's deletion covers counts as none.
 *
 *   1. take the heads at the least position (rows and markers never share one: positions differ)
 *   2. rows: reconcile, with the open deletion or the partition's over them; an empty result is left out
 *   3. markers: note what each source has open now; before != after makes one marker, whose kind says
 *      whether it stands before or after the rows at its values
 *
 * Reversed streams are the same: kinds are meant in clustering order, so "below" and "above" the
 * marker change sides, nothing else.
 */

struct merge_source {
	struct unfiltered_iterator *iterator; /* owned; NULL when it was closed */
	struct unfiltered head;
	bool has_head;
	bool is_taken; /* the head was used: fetch another before looking at it */
	struct deletion open;
};

struct merge {
	struct unfiltered_iterator base;
	struct arena *arena; /* of the merge itself and its static row */
	/* Rows that are put together here come from the first of two arenas that take turns, so that what
	 * was given stays for one more call; or from `arena`, when rows need not be forgotten. */
	struct arena *output;
	struct arena *turns; /* two of them, or NULL */
	struct deletion open; /* the merged stream's open range, DELETION_LIVE: none */
	size_t count;
	const struct row **versions; /* room for count */
	struct merge_source sources[];
};

static struct slice
unfiltered_position(const struct unfiltered *unfiltered)
{
	switch (unfiltered->kind) {
	case UNFILTERED_RAW:
		return unfiltered->raw.position;
	case UNFILTERED_MARKER:
		return unfiltered->marker.position;
	default:
		return unfiltered->row.position;
	}
}

int
unfiltered_decode_raw(struct unfiltered *unfiltered, struct arena *arena, struct error *err)
{
	struct row_raw raw = unfiltered->raw;

	unfiltered->kind = UNFILTERED_ROW;
	return row_raw_decode(&raw, arena, &unfiltered->row, err);
}

int
unfiltered_set_position(const struct table_metadata *table, struct unfiltered *unfiltered,
    struct arena *arena, struct error *err)
{
	struct slice *position;

	if (unfiltered->kind == UNFILTERED_RAW)
		return 0; /* it has one */
	if (unfiltered->kind == UNFILTERED_ROW) {
		struct row *row = &unfiltered->row;

		position = &row->position;
		if (slice_is_null(*position))
			*position = position_make(
			    table, BOUND_CLUSTERING, row->clustering, row->clustering_count, arena);
	} else {
		struct marker *marker = &unfiltered->marker;

		position = &marker->position;
		if (slice_is_null(*position))
			*position = position_make(table, marker->kind, marker->clustering,
			    marker->clustering_count, arena);
	}
	if (slice_is_null(*position))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	return 0;
}

static int
merge_advance(struct merge *merge, struct merge_source *source, struct error *err)
{
	int rc = unfiltered_iterator_next(source->iterator, &source->head, err);

	if (rc < 0)
		return -1;
	source->is_taken = false;
	source->has_head = rc > 0;
	if (!source->has_head)
		return 0;
	return unfiltered_set_position(merge->base.table, &source->head, merge->arena, err);
}

/* Fetch what is missing; *least is the position that comes next, null at the end. */
static int
merge_find_least(struct merge *merge, struct slice *least, struct error *err)
{
	*least = slice_null;
	for (size_t i = 0; i < merge->count; i++) {
		struct merge_source *source = &merge->sources[i];
		struct slice position;
		int order;

		if (source->is_taken && merge_advance(merge, source, err) != 0)
			return -1;
		if (!source->has_head)
			continue;
		position = unfiltered_position(&source->head);
		order = slice_is_null(*least) ? -1 : slice_compare(position, *least);
		if (slice_is_null(*least) || (merge->base.is_reversed ? order > 0 : order < 0))
			*least = position;
	}
	return 0;
}

/* What deletes rows at this point of the merged stream. */
static struct deletion
merge_active(const struct merge *merge)
{
	return deletion_is_live(merge->open) ? merge->base.partition_deletion : merge->open;
}

void
marker_between(
    struct marker *marker, struct deletion below, struct deletion above, const struct marker *at)
{
	bool is_before = at->kind == BOUND_EXCL_END || at->kind == BOUND_INCL_START ||
	    at->kind == BOUND_EXCL_END_INCL_START;

	marker->clustering_count = at->clustering_count;
	marker->clustering = at->clustering;
	marker->position = at->position;
	marker->close = below;
	marker->open = above;
	if (deletion_is_live(below))
		marker->kind = is_before ? BOUND_INCL_START : BOUND_EXCL_START;
	else if (deletion_is_live(above))
		marker->kind = is_before ? BOUND_EXCL_END : BOUND_INCL_END;
	else
		marker->kind = is_before ? BOUND_EXCL_END_INCL_START : BOUND_INCL_END_EXCL_START;
}

/* The deletion that a source has open behind its marker. */
static struct deletion
marker_opens(const struct marker *marker, bool is_reversed)
{
	if (is_reversed)
		return bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	return bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
}

/* 1 and *out, or 0 when nothing changes in the merged stream. */
static int
merge_markers(struct merge *merge, const struct marker *at, struct unfiltered *out)
{
	struct deletion before = merge->open, after = DELETION_LIVE;
	bool is_reversed = merge->base.is_reversed;

	for (size_t i = 0; i < merge->count; i++) {
		struct merge_source *source = &merge->sources[i];

		if (source->has_head && source->is_taken)
			source->open = marker_opens(&source->head.marker, is_reversed);
		if (deletion_supersedes(source->open, after))
			after = source->open;
	}
	/* merge_active() takes an open range for more than the partition's deletion. */
	if (!deletion_supersedes(after, merge->base.partition_deletion))
		after = DELETION_LIVE;
	if (before.marked_for_delete_at == after.marked_for_delete_at &&
	    before.local_deletion_time == after.local_deletion_time)
		return 0;
	merge->open = after;
	out->kind = UNFILTERED_MARKER;
	marker_between(
	    &out->marker, is_reversed ? after : before, is_reversed ? before : after, at);
	return 1;
}

/*
 * Heads that were taken are rows, and some are raw: 1 when the merged row is one of those as it is; 0 when it must be
 * made, of `versions`, which have been decoded where they were not.
 */
static int
merge_raw(struct merge *merge, struct unfiltered *out, struct error *err)
{
	struct unfiltered *newest = NULL;
	bool is_plain = !table_is_counter(merge->base.table);
	size_t rows = 0;

	for (size_t i = 0; i < merge->count && is_plain; i++) {
		struct unfiltered *head = &merge->sources[i].head;

		if (!merge->sources[i].has_head || !merge->sources[i].is_taken)
			continue;
		is_plain = head->kind == UNFILTERED_RAW;
		if (is_plain &&
		    (newest == NULL || head->raw.max_timestamp > newest->raw.max_timestamp))
			newest = head;
	}
	is_plain = is_plain && row_raw_survives(&newest->raw, merge_active(merge));
	for (size_t i = 0; i < merge->count && is_plain; i++) {
		struct unfiltered *head = &merge->sources[i].head;

		if (merge->sources[i].has_head && merge->sources[i].is_taken && head != newest)
			is_plain = row_raw_replaces(&newest->raw, &head->raw);
	}
	if (is_plain) {
		*out = *newest;
		return 1;
	}
	for (size_t i = 0; i < merge->count; i++) {
		struct unfiltered *head = &merge->sources[i].head;

		if (!merge->sources[i].has_head || !merge->sources[i].is_taken)
			continue;
		if (head->kind == UNFILTERED_RAW &&
		    unfiltered_decode_raw(head, merge->output, err) != 0)
			return -1;
		merge->versions[rows++] = &head->row;
	}
	return 0;
}

static int
merge_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct merge *merge = (struct merge *)iterator;

	if (merge->turns != NULL)
		merge->output =
		    merge->output == &merge->turns[0] ? &merge->turns[1] : &merge->turns[0];
	for (;;) {
		const struct unfiltered *first = NULL;
		bool has_raw = false;
		struct slice least;
		size_t rows = 0;

		if (merge->turns != NULL)
			arena_reset(merge->output);
		if (merge_find_least(merge, &least, err) != 0)
			return -1;
		if (slice_is_null(least))
			return 0;
		for (size_t i = 0; i < merge->count; i++) {
			struct merge_source *source = &merge->sources[i];

			if (!source->has_head ||
			    slice_compare(unfiltered_position(&source->head), least) != 0)
				continue;
			source->is_taken = true;
			if (first == NULL)
				first = &source->head;
			has_raw = has_raw || source->head.kind == UNFILTERED_RAW;
			if (source->head.kind != UNFILTERED_MARKER)
				merge->versions[rows++] = &source->head.row;
		}
		assert(first != NULL); /* the least is some source's head */
		if (first->kind == UNFILTERED_MARKER) {
			if (merge_markers(merge, &first->marker, out) != 0)
				return 1;
			continue;
		}
		if (has_raw) {
			int rc = merge_raw(merge, out, err);

			if (rc != 0)
				return rc;
		}
		out->kind = UNFILTERED_ROW;
		if (row_merge(merge->versions, rows, merge_active(merge), merge->output, &out->row,
			err) != 0)
			return -1;
		if (!row_is_empty(&out->row))
			return 1;
	}
}

static void
merge_close(struct unfiltered_iterator *iterator)
{
	struct merge *merge = (struct merge *)iterator;

	for (size_t i = 0; i < merge->count; i++) {
		unfiltered_iterator_close(merge->sources[i].iterator);
		merge->sources[i].iterator = NULL;
	}
}

static const struct unfiltered_iterator_ops merge_ops = {merge_next, merge_close};

/* Partition deletion and static row of the whole. */
static int
merge_heads(struct merge *merge, struct error *err)
{
	struct unfiltered_iterator *base = &merge->base;
	size_t statics = 0;

	for (size_t i = 0; i < merge->count; i++) {
		struct unfiltered_iterator *source = merge->sources[i].iterator;

		if (deletion_supersedes(source->partition_deletion, base->partition_deletion))
			base->partition_deletion = source->partition_deletion;
		if (source->has_static_row)
			merge->versions[statics++] = &source->static_row;
	}
	if (statics == 0)
		return 0;
	if (row_merge(merge->versions, statics, base->partition_deletion, merge->arena,
		&base->static_row, err) != 0)
		return -1;
	base->has_static_row = !row_is_empty(&base->static_row);
	return 0;
}

static int
merge_open(struct unfiltered_iterator **sources, size_t count, struct arena *arena,
    struct arena *turns, struct merge **out, struct error *err)
{
	struct merge *merge = NULL;

	if (count != 0)
		merge = arena_alloc(arena, sizeof(*merge) + count * sizeof(merge->sources[0]));
	if (merge != NULL)
		merge->versions = arena_alloc(arena, count * sizeof(*merge->versions));
	if (merge == NULL || merge->versions == NULL) {
		for (size_t i = 0; i < count; i++)
			unfiltered_iterator_close(sources[i]);
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory to merge %zu versions of a partition", count);
	}
	merge->base = (struct unfiltered_iterator){
	    .ops = &merge_ops,
	    .table = sources[0]->table,
	    .token = sources[0]->token,
	    .key = sources[0]->key,
	    .partition_deletion = DELETION_LIVE,
	    .is_reversed = sources[0]->is_reversed,
	};
	merge->arena = arena;
	merge->output = turns != NULL ? &turns[0] : arena;
	merge->turns = turns;
	merge->open = DELETION_LIVE;
	merge->count = count;
	for (size_t i = 0; i < count; i++) {
		struct merge_source *source = &merge->sources[i];

		source->iterator = sources[i];
		source->has_head = false;
		source->is_taken = true;
		source->open = DELETION_LIVE;
	}
	if (merge_heads(merge, err) != 0) {
		merge_close(&merge->base);
		return -1;
	}
	*out = merge;
	return 0;
}

int
unfiltered_merge(struct unfiltered_iterator **sources, size_t count, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	struct merge *merge;

	if (count == 1) {
		*out = sources[0];
		return 0;
	}
	if (merge_open(sources, count, arena, NULL, &merge, err) != 0)
		return -1;
	*out = &merge->base;
	return 0;
}

enum { MERGE_TURN_BLOCK = 16 * 1024 };

int
unfiltered_merge_transient(struct unfiltered_iterator **sources, size_t count, struct arena *arena,
    struct arena turns[2], struct unfiltered_iterator **out, struct error *err)
{
	struct merge *merge;

	if (count == 1) {
		*out = sources[0];
		return 0;
	}
	if (merge_open(sources, count, arena, turns, &merge, err) != 0)
		return -1;
	*out = &merge->base;
	return 0;
}

/* ---- runs of partitions ------------------------------------------------------------------------- */

struct partition_source {
	struct partition_iterator *iterator; /* owned */
	struct unfiltered_iterator *head; /* owned until it is handed on; NULL: fetch */
	bool is_finished;
};

struct partition_merge {
	struct partition_iterator base;
	struct arena *arena; /* the caller's, or &own: emptied with each partition */
	bool is_transient;
	struct arena own, turns[2]; /* when is_transient */
	size_t count;
	struct unfiltered_iterator **equal; /* room for count */
	struct partition_source sources[];
};

static int
partition_compare(const struct unfiltered_iterator *a, const struct unfiltered_iterator *b)
{
	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return slice_compare(a->key, b->key);
}

static int
partition_merge_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct partition_merge *merge = (struct partition_merge *)iterator;
	struct unfiltered_iterator *least = NULL;
	struct merge *merged;
	size_t equal = 0;

	for (size_t i = 0; i < merge->count; i++) {
		struct partition_source *source = &merge->sources[i];

		if (source->head == NULL && !source->is_finished) {
			int rc = partition_iterator_next(source->iterator, &source->head, err);

			if (rc < 0)
				return -1;
			if (rc == 0) {
				source->head = NULL;
				source->is_finished = true;
			}
		}
		if (source->head != NULL &&
		    (least == NULL || partition_compare(source->head, least) < 0))
			least = source->head;
	}
	if (least == NULL)
		return 0;
	for (size_t i = 0; i < merge->count; i++) {
		struct partition_source *source = &merge->sources[i];

		if (source->head != NULL && partition_compare(source->head, least) == 0) {
			merge->equal[equal++] = source->head;
			source->head = NULL; /* handed on to the caller, inside the merge */
		}
	}
	if (equal == 1) {
		*out = merge->equal[0];
		return 1;
	}
	if (merge->is_transient)
		arena_reset(&merge->own); /* the partition before is closed */
	if (merge_open(merge->equal, equal, merge->arena, merge->is_transient ? merge->turns : NULL,
		&merged, err) != 0)
		return -1;
	*out = &merged->base;
	return 1;
}

static void
partition_merge_close(struct partition_iterator *iterator)
{
	struct partition_merge *merge = (struct partition_merge *)iterator;

	for (size_t i = 0; i < merge->count; i++) {
		unfiltered_iterator_close(merge->sources[i].head);
		partition_iterator_close(merge->sources[i].iterator);
	}
	merge->count = 0;
	if (merge->is_transient) {
		arena_fini(&merge->own);
		arena_fini(&merge->turns[0]);
		arena_fini(&merge->turns[1]);
	}
}

static const struct partition_iterator_ops partition_merge_ops = {
    partition_merge_next,
    partition_merge_close,
};

static int
partition_merge_open(struct partition_iterator **sources, size_t count, bool is_transient,
    struct arena *arena, struct partition_iterator **out, struct error *err)
{
	struct partition_merge *merge;

	if (count == 1) {
		*out = sources[0];
		return 0;
	}
	merge = arena_alloc(arena, sizeof(*merge) + count * sizeof(merge->sources[0]));
	if (merge != NULL)
		merge->equal = arena_alloc(arena, count * sizeof(*merge->equal));
	if (merge == NULL || merge->equal == NULL) {
		for (size_t i = 0; i < count; i++)
			partition_iterator_close(sources[i]);
		return error_set(err, ERROR_NO_MEMORY, "no memory to merge %zu sources", count);
	}
	merge->base.ops = &partition_merge_ops;
	merge->arena = arena;
	merge->is_transient = is_transient;
	if (is_transient) {
		arena_init(&merge->own, MERGE_TURN_BLOCK);
		arena_init(&merge->turns[0], MERGE_TURN_BLOCK);
		arena_init(&merge->turns[1], MERGE_TURN_BLOCK);
		merge->arena = &merge->own;
	}
	merge->count = count;
	for (size_t i = 0; i < count; i++)
		merge->sources[i] = (struct partition_source){sources[i], NULL, false};
	*out = &merge->base;
	return 0;
}

int
partition_merge(struct partition_iterator **sources, size_t count, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	return partition_merge_open(sources, count, false, arena, out, err);
}

int
partition_merge_transient(struct partition_iterator **sources, size_t count, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	return partition_merge_open(sources, count, true, arena, out, err);
}
