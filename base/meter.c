/* SPDX-License-Identifier: Apache-2.0 */
#include "base/meter.h"
#include <math.h>

void
meter_tick(struct meter *meter, uint64_t count, double seconds, double window_seconds)
{
	double now = seconds > 0 ? (double)(count - meter->last) / seconds : 0;
	double rate = meter_rate(meter);

	/* The first tick knows nothing better than what it saw. */
	rate = meter->has_rate ? rate + (1 - exp(-seconds / window_seconds)) * (now - rate) : now;
	meter->last = count;
	meter->has_rate = true;
	atomic_store_explicit(&meter->rate, rate, memory_order_relaxed);
}
