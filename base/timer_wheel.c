/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer_wheel.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { TIMER_WHEEL_WORD = 64 };

void
timer_wheel_init(struct timer_wheel *wheel, uint32_t slot_count, uint64_t tick_ns, uint64_t now_ns)
{
	assert(slot_count >= TIMER_WHEEL_WORD && (slot_count & (slot_count - 1)) == 0);
	assert(tick_ns > 0);
	*wheel = (struct timer_wheel){
	    .slots = xcalloc(slot_count, sizeof(*wheel->slots)),
	    .used = xcalloc(slot_count / TIMER_WHEEL_WORD, sizeof(*wheel->used)),
	    .slot_count = slot_count,
	    .tick_ns = tick_ns,
	    .tick = now_ns / tick_ns,
	};
}

void
timer_wheel_fini(struct timer_wheel *wheel)
{
	free(wheel->slots);
	free(wheel->used);
	*wheel = (struct timer_wheel){0};
}

/* The tick at whose start the moment has passed. */
static uint64_t
timer_wheel_tick_of(const struct timer_wheel *wheel, uint64_t due_ns)
{
	uint64_t tick = due_ns / wheel->tick_ns;

	if (tick * wheel->tick_ns < due_ns)
		tick++;
	return tick < wheel->tick ? wheel->tick : tick;
}

static void
timer_wheel_unmark(struct timer_wheel *wheel, uint32_t slot)
{
	wheel->used[slot / TIMER_WHEEL_WORD] &= ~(UINT64_C(1) << (slot % TIMER_WHEEL_WORD));
}

/* It is its own list: taking it out writes into nothing but itself. */
static void
wheel_timer_part(struct wheel_timer *timer)
{
	timer->next = NULL;
	timer->link = &timer->next;
}

void
timer_wheel_end(struct timer_wheel *wheel)
{
	wheel->is_ended = true;
	for (uint32_t slot = 0; slot < wheel->slot_count; slot++) {
		struct wheel_timer *timer = wheel->slots[slot], *next;

		for (; timer != NULL; timer = next) {
			next = timer->next;
			wheel_timer_part(timer);
		}
		wheel->slots[slot] = NULL;
		timer_wheel_unmark(wheel, slot);
	}
	wheel->count = 0;
}

void
timer_wheel_start(struct timer_wheel *wheel, struct wheel_timer *timer, uint64_t due_ns)
{
	uint32_t slot = (uint32_t)(timer_wheel_tick_of(wheel, due_ns) & (wheel->slot_count - 1));
	struct wheel_timer **head = &wheel->slots[slot];

	assert(timer->link == NULL);
	timer->due_ns = due_ns;
	if (wheel->is_ended) {
		wheel_timer_part(timer);
		return;
	}
	timer->next = *head;
	if (timer->next != NULL)
		timer->next->link = &timer->next;
	timer->link = head;
	*head = timer;
	wheel->used[slot / TIMER_WHEEL_WORD] |= UINT64_C(1) << (slot % TIMER_WHEEL_WORD);
	wheel->count++;
}

/* The slot's bit goes with its last timer: a wheel whose timers are all stopped in time has nothing to do. */
bool
timer_wheel_stop(struct timer_wheel *wheel, struct wheel_timer *timer)
{
	struct wheel_timer **link = timer->link;

	if (link == NULL)
		return false;
	*link = timer->next;
	if (timer->next != NULL)
		timer->next->link = link;
	else if (link >= wheel->slots && link < wheel->slots + wheel->slot_count)
		timer_wheel_unmark(wheel, (uint32_t)(link - wheel->slots));
	timer->link = NULL;
	timer->next = NULL;
	if (!wheel->is_ended)
		wheel->count--;
	return true;
}

/* Slots from the wheel's tick to the first in use, or slot_count. */
static uint32_t
timer_wheel_distance(const struct timer_wheel *wheel)
{
	uint32_t from = (uint32_t)(wheel->tick & (wheel->slot_count - 1));
	uint32_t words = wheel->slot_count / TIMER_WHEEL_WORD;
	uint32_t word = from / TIMER_WHEEL_WORD;
	uint64_t bits = wheel->used[word] & (UINT64_MAX << (from % TIMER_WHEEL_WORD));

	/* One word more than there are: the first one's low bits are the last slots of the turn. */
	for (uint32_t i = 0; i <= words; i++) {
		if (bits != 0) {
			uint32_t slot = word * TIMER_WHEEL_WORD + (uint32_t)__builtin_ctzll(bits);

			return (slot - from) & (wheel->slot_count - 1);
		}
		word = (word + 1) % words;
		bits = wheel->used[word];
	}
	return wheel->slot_count;
}

/* Move what is due from a slot to the end of the list. */
static struct wheel_timer **
timer_wheel_drain(
    struct timer_wheel *wheel, uint32_t slot, uint64_t now_ns, struct wheel_timer **tail)
{
	struct wheel_timer *timer = wheel->slots[slot], *next;

	for (; timer != NULL; timer = next) {
		next = timer->next;
		if (timer->due_ns > now_ns)
			continue;
		timer_wheel_stop(wheel, timer);
		*tail = timer;
		tail = &timer->next;
	}
	return tail;
}

struct wheel_timer *
timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ns)
{
	uint64_t last = now_ns / wheel->tick_ns;
	uint64_t end = wheel->tick + wheel->slot_count; /* after one turn all slots were seen */
	struct wheel_timer *first = NULL, **tail = &first;

	while (wheel->tick <= last && wheel->tick < end) {
		uint32_t distance = timer_wheel_distance(wheel);

		if (distance == wheel->slot_count || wheel->tick + distance > last ||
		    wheel->tick + distance >= end)
			break;
		wheel->tick += distance;
		tail = timer_wheel_drain(
		    wheel, (uint32_t)(wheel->tick & (wheel->slot_count - 1)), now_ns, tail);
		wheel->tick++;
	}
	/* The tick that has begun is over only when the next one begins: a start for this very moment
	 * must find its slot ahead. */
	if (wheel->tick <= last)
		wheel->tick = last;
	return first;
}

uint64_t
timer_wheel_next_ns(const struct timer_wheel *wheel)
{
	uint32_t distance;

	if (wheel->count == 0)
		return UINT64_MAX;
	distance = timer_wheel_distance(wheel);
	return (wheel->tick + distance) * wheel->tick_ns;
}
