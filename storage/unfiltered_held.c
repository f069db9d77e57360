/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/unfiltered_held.h"

static int
held_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct unfiltered_held *held = (struct unfiltered_held *)iterator;

	if (held->at == held->count)
		return held->is_cut ? 0 : unfiltered_iterator_next(held->source, out, err);
	*out = held->items[held->at++];
	return 1;
}

static void
held_close(struct unfiltered_iterator *iterator)
{
	unfiltered_iterator_close(((struct unfiltered_held *)iterator)->source);
}

static const struct unfiltered_iterator_ops held_ops = {held_next, held_close};

int
unfiltered_hold_row(struct unfiltered_iterator **source, struct arena *arena,
    struct unfiltered_held **out, struct error *err)
{
	struct unfiltered_held *held = arena_alloc(arena, sizeof(*held));

	if (held == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	held->base = **source;
	held->base.ops = &held_ops;
	held->source = *source;
	held->count = held->at = 0;
	held->is_cut = false;
	held->row = NULL;
	*source = &held->base;
	*out = held;
	while (held->count < UNFILTERED_HELD_MAX && held->row == NULL) {
		struct unfiltered *item = &held->items[held->count];
		int rc = unfiltered_iterator_next(held->source, item, err);

		if (rc < 0)
			return -1;
		held->is_cut = rc == 0;
		if (rc == 0)
			break;
		held->count++;
		if (item->kind == UNFILTERED_ROW)
			held->row = &item->row;
	}
	return 0;
}

void
unfiltered_held_drop_markers(struct unfiltered_held *held)
{
	held->at = held->count - 1;
	held->is_cut = true;
}
