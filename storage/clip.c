/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/clip.h"
#include "storage/merge.h"

struct clip {
	struct unfiltered_iterator base;
	struct unfiltered_iterator *source; /* owned */
	struct arena *arena;
	const struct clustering_slice *slices;
	uint32_t slice_count, slice; /* in the order of the iteration */
	bool is_inside;
	struct unfiltered item; /* the source's next */
	bool has_item, is_source_finished;
	struct deletion source_open; /* behind what was taken from the source */
	struct deletion open; /* behind what was given */
};

int
clip_slices(const struct clustering_filter *filter, struct slice after, struct arena *arena,
    const struct clustering_slice **out, uint32_t *out_count, struct error *err)
{
	static const struct clustering_slice whole[] = {{{NULL, 0}, {NULL, 0}}};
	const struct clustering_slice *all = filter->slice_count != 0 ? filter->slices : whole;
	uint32_t all_count = filter->slice_count != 0 ? filter->slice_count : 1, count = 0;
	struct clustering_slice *slices;

	*out = all;
	*out_count = all_count;
	if (slice_is_null(after))
		return 0;
	slices = arena_alloc(arena, all_count * sizeof(*slices));
	/* A marker that stands beside the row stands at the slice's bound, not in the slice. */
	after = position_beside(after, !filter->is_reversed, arena);
	if (slices == NULL || slice_is_null(after))
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u slices", all_count);
	for (uint32_t i = 0; i < all_count; i++) {
		struct clustering_slice slice = all[i];

		if (filter->is_reversed &&
		    (slice_is_null(slice.end) || slice_compare(slice.end, after) > 0))
			slice.end = after;
		if (!filter->is_reversed &&
		    (slice_is_null(slice.start) || slice_compare(slice.start, after) < 0))
			slice.start = after;
		if (slice_is_null(slice.start) || slice_is_null(slice.end) ||
		    slice_compare(slice.start, slice.end) < 0)
			slices[count++] = slice;
	}
	*out = slices;
	*out_count = count;
	return 0;
}

/* <0, 0, >0 in the order of the iteration. */
static int
clip_compare(const struct clip *clip, struct slice a, struct slice b)
{
	int order = slice_compare(a, b);

	return clip->base.is_reversed ? -order : order;
}

static const struct clustering_slice *
clip_slice(const struct clip *clip)
{
	return &clip->slices[clip->base.is_reversed ? clip->slice_count - 1 - clip->slice
						    : clip->slice];
}

static struct slice
clip_entry(const struct clip *clip)
{
	const struct clustering_slice *slice = clip_slice(clip);

	return clip->base.is_reversed ? slice->end : slice->start;
}

static struct slice
clip_exit(const struct clip *clip)
{
	const struct clustering_slice *slice = clip_slice(clip);

	return clip->base.is_reversed ? slice->start : slice->end;
}

static bool
clip_same(struct deletion a, struct deletion b)
{
	return a.marked_for_delete_at == b.marked_for_delete_at &&
	    a.local_deletion_time == b.local_deletion_time;
}

/* A change from what is open to `next`, at the place of `at`. */
static int
clip_change(
    struct clip *clip, struct deletion next, const struct marker *at, struct unfiltered *out)
{
	struct deletion open = clip->open;
	bool is_reversed = clip->base.is_reversed;

	clip->open = next;
	out->kind = UNFILTERED_MARKER;
	marker_between(&out->marker, is_reversed ? next : open, is_reversed ? open : next, at);
	return 1;
}

/* The same at the bound of a slice. */
static int
clip_change_at_bound(struct clip *clip, struct deletion next, struct slice position,
    struct unfiltered *out, struct error *err)
{
	enum position_place place;
	struct marker at = {0};

	if (position_decode(clip->base.table, position, clip->arena, &place, &at.clustering,
		&at.clustering_count, err) != 0)
		return -1;
	at.kind = place == POSITION_PLACE_BEFORE ? BOUND_INCL_START : BOUND_EXCL_START;
	at.position = position;
	return clip_change(clip, next, &at, out);
}

/* What the source has open behind a marker, as far as it says more than the partition's deletion. */
static struct deletion
clip_opens(const struct clip *clip, const struct marker *marker)
{
	bool opens =
	    clip->base.is_reversed ? bound_closes(marker->kind) : bound_opens(marker->kind);
	struct deletion open = clip->base.is_reversed ? marker->close : marker->open;

	if (!opens || !deletion_supersedes(open, clip->base.partition_deletion))
		return DELETION_LIVE;
	return open;
}

static int
clip_peek(struct clip *clip, struct error *err)
{
	int rc;

	if (clip->has_item || clip->is_source_finished)
		return 0;
	rc = unfiltered_iterator_next(clip->source, &clip->item, err);
	if (rc < 0)
		return -1;
	clip->has_item = rc > 0;
	clip->is_source_finished = rc == 0;
	return clip->has_item
	    ? unfiltered_set_position(clip->base.table, &clip->item, clip->arena, err)
	    : 0;
}

/* Before a slice. 1 and *out, 0: look again, -1. */
static int
clip_outside(struct clip *clip, struct slice at, struct unfiltered *out, struct error *err)
{
	struct slice entry = clip_entry(clip);

	if (!slice_is_null(at) && !slice_is_null(entry) && clip_compare(clip, at, entry) <= 0) {
		if (clip->item.kind == UNFILTERED_MARKER)
			clip->source_open = clip_opens(clip, &clip->item.marker);
		clip->has_item = false;
		return 0;
	}
	clip->is_inside = true;
	/* At the open beginning of a partition nothing is open. */
	if (deletion_is_live(clip->source_open) || slice_is_null(entry))
		return 0;
	return clip_change_at_bound(clip, clip->source_open, entry, out, err);
}

/* At the end of a slice. */
static int
clip_leave(struct clip *clip, struct slice exit, struct unfiltered *out, struct error *err)
{
	clip->slice++;
	/* Slices that touch are one. */
	if (clip->slice != clip->slice_count && slice_equal(exit, clip_entry(clip)))
		return 0;
	clip->is_inside = false;
	if (deletion_is_live(clip->open))
		return 0;
	if (slice_is_null(exit))
		return error_set(err, ERROR_CORRUPT, "a range tombstone has no end");
	return clip_change_at_bound(clip, DELETION_LIVE, exit, out, err);
}

/* In a slice. */
static int
clip_inside(struct clip *clip, struct slice at, struct unfiltered *out, struct error *err)
{
	struct slice exit = clip_exit(clip);

	if (slice_is_null(at) || (!slice_is_null(exit) && clip_compare(clip, at, exit) >= 0))
		return clip_leave(clip, exit, out, err);
	clip->has_item = false;
	if (clip->item.kind == UNFILTERED_ROW) {
		*out = clip->item;
		return 1;
	}
	clip->source_open = clip_opens(clip, &clip->item.marker);
	if (clip_same(clip->source_open, clip->open))
		return 0;
	return clip_change(clip, clip->source_open, &clip->item.marker, out);
}

static int
clip_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct clip *clip = (struct clip *)iterator;
	int rc = 0;

	while (rc == 0) {
		struct slice at = slice_null;

		if (clip->slice == clip->slice_count)
			return 0;
		if (clip_peek(clip, err) != 0)
			return -1;
		if (!clip->has_item && !clip->is_inside)
			return 0;
		if (clip->has_item)
			at = clip->item.kind == UNFILTERED_ROW ? clip->item.row.position
							       : clip->item.marker.position;
		rc = clip->is_inside ? clip_inside(clip, at, out, err)
				     : clip_outside(clip, at, out, err);
	}
	return rc;
}

static void
clip_close(struct unfiltered_iterator *iterator)
{
	struct clip *clip = (struct clip *)iterator;

	unfiltered_iterator_close(clip->source);
	clip->source = NULL;
}

static const struct unfiltered_iterator_ops clip_ops = {clip_next, clip_close};

int
unfiltered_clip(struct unfiltered_iterator *source, const struct clustering_slice *slices,
    uint32_t count, struct arena *arena, struct unfiltered_iterator **out, struct error *err)
{
	struct clip *clip = arena_alloc(arena, sizeof(*clip));

	if (clip == NULL) {
		unfiltered_iterator_close(source);
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory to cut a partition at its slices");
	}
	clip->base = *source;
	clip->base.ops = &clip_ops;
	clip->source = source;
	clip->arena = arena;
	clip->slices = slices;
	clip->slice_count = count;
	clip->slice = 0;
	clip->is_inside = false;
	clip->has_item = false;
	clip->is_source_finished = false;
	clip->source_open = DELETION_LIVE;
	clip->open = DELETION_LIVE;
	*out = &clip->base;
	return 0;
}
