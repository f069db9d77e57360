/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_TIMER_WHEEL_H
#define HELENUS_BASE_TIMER_WHEEL_H

/*
 * A hashed timer wheel (G. Varghese, T. Lauck, "Hashed and Hierarchical Timing Wheels", 1987, scheme 6): a ring of
 * slots, each a list of the timers whose moment falls into it. Starting and stopping cost the same however
 * many there are; timers further away than one turn stay in their slot for as many turns as it takes. A bitmap of
 * the slots in use tells how long there is nothing to do.
 *
 * Pure: reads no clock, takes no lock, calls nobody. Who owns a wheel locks it and tells it the time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in what waits. All zero is a timer that is not started. */
struct wheel_timer {
	struct wheel_timer *next;
	struct wheel_timer **link; /* what points to us; NULL: not in a wheel */
	uint64_t due_ns;
};

struct timer_wheel {
	struct wheel_timer **slots; /* owned; slot_count */
	uint64_t *used; /* owned; one bit a slot */
	uint32_t slot_count; /* a power of two, 64 or more */
	uint64_t tick_ns;
	uint64_t tick; /* all timers that were due before the start of this tick are out */
	size_t count;
	bool is_ended;
};

/* now_ns: of the clock that later moments are given in. Aborts without memory. */
void
timer_wheel_init(struct timer_wheel *wheel, uint32_t slot_count, uint64_t tick_ns, uint64_t now_ns);
/* Timers that are still in it are forgotten. */
void timer_wheel_fini(struct timer_wheel *wheel);

/* The timer must not be started. It comes out at the first advance() to due_ns or later, at most a tick late,
 * never early; a moment that is past comes out at the next advance(). */
void timer_wheel_start(struct timer_wheel *wheel, struct wheel_timer *timer, uint64_t due_ns);
/* True: it was in the wheel and is out now. False: it was not in it. */
bool timer_wheel_stop(struct timer_wheel *wheel, struct wheel_timer *timer);
/*
 * The wheel turns no more: every timer in it, and any that is started later, stands alone. It stays started and comes
 * out never; stopping one says true as before and touches no other, which may have been freed meanwhile.
 */
void timer_wheel_end(struct timer_wheel *wheel);
static inline bool
wheel_timer_is_started(const struct wheel_timer *timer)
{
	return timer->link != NULL;
}

/*
 * Take out what is due at now_ns: a list linked by `next`, in the order of the ticks (any order within one),
 * which is the caller's. NULL: nothing.
 */
struct wheel_timer *timer_wheel_advance(struct timer_wheel *wheel, uint64_t now_ns);
/*
 * When to call advance() again: no timer is due earlier. UINT64_MAX: there is none. May be earlier than the
 * first one is due, by whole turns of the wheel.
 */
uint64_t timer_wheel_next_ns(const struct timer_wheel *wheel);

#endif
