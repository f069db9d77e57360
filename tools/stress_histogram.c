/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_histogram.h"

#include <math.h>
#include <string.h>

/* The lowest value of a place, and how many values it stands for. */
static uint64_t
stress_histogram_value(uint32_t index, uint64_t *width)
{
	uint32_t bucket = index / STRESS_HISTOGRAM_HALF;
	uint32_t sub = index % STRESS_HISTOGRAM_HALF + STRESS_HISTOGRAM_HALF;

	if (bucket == 0) {
		*width = 1;
		return index;
	}
	*width = 1ULL << (bucket - 1);
	return (uint64_t)sub << (bucket - 1);
}

void
stress_histogram_merge(struct stress_histogram *to, const struct stress_histogram *from)
{
	uint32_t last;

	if (from->total == 0)
		return;
	last = stress_histogram_index(from->max);
	for (uint32_t i = 0; i <= last; i++)
		to->counts[i] += from->counts[i];
	to->total += from->total;
	if (from->max > to->max)
		to->max = from->max;
}

void
stress_histogram_clear(struct stress_histogram *histogram)
{
	if (histogram->total == 0)
		return;
	memset(histogram->counts, 0,
	    (stress_histogram_index(histogram->max) + 1) * sizeof(histogram->counts[0]));
	histogram->total = 0;
	histogram->max = 0;
}

double
stress_histogram_mean(const struct stress_histogram *histogram)
{
	uint32_t last = stress_histogram_index(histogram->max);
	double sum = 0;

	if (histogram->total == 0)
		return 0;
	for (uint32_t i = 0; i <= last; i++) {
		uint64_t width, value;

		if (histogram->counts[i] == 0)
			continue;
		value = stress_histogram_value(i, &width);
		value += width / 2; /* the middle, a whole number there, too */
		sum += (double)value * (double)histogram->counts[i];
	}
	return sum / (double)histogram->total;
}

uint64_t
stress_histogram_max(const struct stress_histogram *histogram)
{
	uint64_t width, value;

	if (histogram->total == 0)
		return 0;
	value = stress_histogram_value(stress_histogram_index(histogram->max), &width);
	return value + width - 1;
}

uint64_t
stress_histogram_percentile(const struct stress_histogram *histogram, double percentile)
{
	double wanted = ceil(nextafter(percentile, -INFINITY) / 100 * (double)histogram->total);
	uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted, seen = 0;
	uint32_t last = stress_histogram_index(histogram->max);

	if (histogram->total == 0)
		return 0;
	for (uint32_t i = 0; i <= last; i++) {
		seen += histogram->counts[i];
		if (seen >= rank) {
			uint64_t width, value = stress_histogram_value(i, &width);

			return value + width - 1;
		}
	}
	return stress_histogram_max(histogram);
}
