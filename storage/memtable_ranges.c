/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "storage/memtable_ranges.h"

void
memtable_ranges_ref(struct memtable_ranges *ranges)
{
	if (ranges != NULL)
		atomic_fetch_add_explicit(&ranges->refs, 1, memory_order_relaxed);
}

void
memtable_ranges_unref(struct memtable_ranges *ranges)
{
	/* The last one frees, and must see what the others did before they let go. */
	if (ranges != NULL &&
	    atomic_fetch_sub_explicit(&ranges->refs, 1, memory_order_acq_rel) == 1)
		free(ranges);
}

uint32_t
memtable_ranges_search(const struct memtable_ranges *ranges, struct slice position, bool or_equal)
{
	uint32_t low = 0, high = ranges->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = slice_compare(ranges->bounds[middle].position, position);

		if (order < 0 || (order == 0 && or_equal))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Make *ranges the caller's own, with room for two more bounds. */
static int
memtable_ranges_own(struct memtable_ranges **ranges)
{
	struct memtable_ranges *old = *ranges, *own;
	uint32_t count = old != NULL ? old->count : 0;
	uint32_t room = old != NULL ? old->room : 0;

	if (old != NULL && room - count >= 2 &&
	    atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return 0;
	if (room - count < 2)
		room = room == 0 ? 2 : room * 2 + 2;
	own = malloc(sizeof(*own) + room * sizeof(own->bounds[0]));
	if (own == NULL)
		return -1;
	atomic_init(&own->refs, 1);
	own->count = count;
	own->room = room;
	if (count != 0)
		memcpy(own->bounds, old->bounds, count * sizeof(own->bounds[0]));
	memtable_ranges_unref(old);
	*ranges = own;
	return 0;
}

/* The index of the bound at `position`, put there when there is none: the deletion does not change. */
static int
memtable_ranges_put_bound(struct memtable_ranges *ranges, struct slice position, bool is_before,
    const struct slice *values, uint32_t count, struct arena *arena)
{
	uint32_t index = memtable_ranges_search(ranges, position, false);
	struct memtable_bound *bound = &ranges->bounds[index];
	struct slice *copies;

	if (index < ranges->count && slice_compare(bound->position, position) == 0)
		return (int)index;
	position = arena_copy(arena, position);
	copies = arena_alloc(arena, count * sizeof(*copies));
	if (position.data == NULL || copies == NULL)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		copies[i] = arena_copy(arena, values[i]);
		if (copies[i].data == NULL && values[i].data != NULL)
			return -1;
	}
	memmove(bound + 1, bound, (ranges->count - index) * sizeof(*bound));
	*bound = (struct memtable_bound){
	    position, copies, count, is_before, memtable_ranges_below(ranges, index)};
	ranges->count++;
	return (int)index;
}

/* Drop bounds at which nothing changes. */
static void
memtable_ranges_fold(struct memtable_ranges *ranges, uint32_t from, uint32_t to)
{
	uint32_t kept = from;

	for (uint32_t i = from; i < ranges->count; i++) {
		struct deletion below = memtable_ranges_below(ranges, kept);
		struct deletion above = ranges->bounds[i].above;

		if (i <= to && below.marked_for_delete_at == above.marked_for_delete_at &&
		    below.local_deletion_time == above.local_deletion_time)
			continue;
		ranges->bounds[kept++] = ranges->bounds[i];
	}
	ranges->count = kept;
}

int
memtable_ranges_add(struct memtable_ranges **ranges, const struct table_metadata *table,
    const struct range_tombstone *tombstone, struct arena *arena, struct error *err)
{
	struct buffer start, end;
	int first = -1, last = -1;

	buffer_init(&start);
	buffer_init(&end);
	position_encode(
	    table, tombstone->start_kind, tombstone->start, tombstone->start_count, &start);
	position_encode(table, tombstone->end_kind, tombstone->end, tombstone->end_count, &end);
	if (!start.is_failed && !end.is_failed &&
	    slice_compare(buffer_slice(&start), buffer_slice(&end)) >= 0) {
		buffer_fini(&start);
		buffer_fini(&end);
		return 0;
	}
	if (!start.is_failed && !end.is_failed && memtable_ranges_own(ranges) == 0) {
		first = memtable_ranges_put_bound(*ranges, buffer_slice(&start),
		    tombstone->start_kind == BOUND_INCL_START, tombstone->start,
		    tombstone->start_count, arena);
		if (first >= 0)
			last = memtable_ranges_put_bound(*ranges, buffer_slice(&end),
			    tombstone->end_kind == BOUND_EXCL_END, tombstone->end,
			    tombstone->end_count, arena);
	}
	buffer_fini(&start);
	buffer_fini(&end);
	if (last < 0)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a range tombstone");
	for (int i = first; i < last; i++) {
		struct memtable_bound *bound = &(*ranges)->bounds[i];

		if (deletion_supersedes(tombstone->deletion, bound->above))
			bound->above = tombstone->deletion;
	}
	memtable_ranges_fold(*ranges, (uint32_t)first, (uint32_t)last);
	return 0;
}
