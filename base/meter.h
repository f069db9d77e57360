/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_METER_H
#define HELENUS_BASE_METER_H

/*
 * How often something has happened lately, per second: an exponentially weighted moving average over a window, as
 * Cassandra's metrics show it (Codahale's EWMA). Who counts only counts; somebody calls meter_tick() about every
 * METER_TICK_SECONDS with the sum. One thread ticks, any thread reads.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { METER_TICK_SECONDS = 5 };

struct meter {
	uint64_t last; /* the sum at the last tick */
	bool has_rate;
	_Atomic double rate;
};

/* `count`: the sum by now; `seconds` since the last tick; the window in seconds. */
void meter_tick(struct meter *meter, uint64_t count, double seconds, double window_seconds);

/* Per second; 0 before the first tick. */
static inline double
meter_rate(const struct meter *meter)
{
	return atomic_load_explicit(&meter->rate, memory_order_relaxed);
}

#endif
