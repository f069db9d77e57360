/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "tests/sim/world/world_internal.h"

static bool
world_event_before(const struct world_event *a, const struct world_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

void
world_queue_push(struct world_queue *queue, const struct world_event *event)
{
	size_t at = queue->count++;

	if (queue->count > queue->capacity) {
		queue->capacity = queue->capacity == 0 ? 1024 : queue->capacity * 2;
		queue->heap = xrealloc(queue->heap, queue->capacity * sizeof(*queue->heap));
	}
	while (at > 0 && world_event_before(event, &queue->heap[(at - 1) / 2])) {
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = *event;
}

bool
world_queue_pop(struct world_queue *queue, struct world_event *out)
{
	struct world_event last;
	size_t at = 0, child;

	if (queue->count == 0)
		return false;
	*out = queue->heap[0];
	last = queue->heap[--queue->count];
	while ((child = 2 * at + 1) < queue->count) {
		if (child + 1 < queue->count &&
		    world_event_before(&queue->heap[child + 1], &queue->heap[child]))
			child++;
		if (!world_event_before(&queue->heap[child], &last))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = last;
	return true;
}

static int
world_event_compare(const void *a, const void *b)
{
	return world_event_before(a, b) ? -1 : world_event_before(b, a);
}

size_t
world_queue_take(struct world_queue *queue, uint32_t node, struct world_event **out)
{
	struct world_event *all = queue->heap;
	size_t count = queue->count, taken = 0;

	*out = xcalloc(count + 1, sizeof(**out));
	queue->heap = NULL;
	queue->count = queue->capacity = 0;
	for (size_t i = 0; i < count; i++) {
		if (all[i].kind != WORLD_CALL && all[i].node == node)
			(*out)[taken++] = all[i];
		else
			world_queue_push(queue, &all[i]);
	}
	free(all);
	qsort(*out, taken, sizeof(**out), world_event_compare);
	return taken;
}
