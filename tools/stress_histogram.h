/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_HISTOGRAM_H
#define HELENUS_TOOLS_STRESS_HISTOGRAM_H

/*
 * Latencies in nanoseconds with three significant digits: HdrHistogram's buckets and its answers, so
 * that percentiles read as they do in cassandra-stress. Recording is one increment. One thread.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
	STRESS_HISTOGRAM_HALF = 1024,
	STRESS_HISTOGRAM_BITS = 43, /* values up to 2.4 hours; longer ones count there */
	STRESS_HISTOGRAM_COUNTS = (STRESS_HISTOGRAM_BITS - 10 + 1) * STRESS_HISTOGRAM_HALF,
};

struct stress_histogram {
	uint64_t total;
	uint64_t max;
	uint64_t counts[STRESS_HISTOGRAM_COUNTS];
};

static inline uint32_t
stress_histogram_index(uint64_t value)
{
	uint32_t bucket, sub;

	if (value >> STRESS_HISTOGRAM_BITS != 0)
		value = (1ULL << STRESS_HISTOGRAM_BITS) - 1;
	bucket = (uint32_t)(63 - __builtin_clzll(value | (2 * STRESS_HISTOGRAM_HALF - 1))) - 10;
	sub = (uint32_t)(value >> bucket);
	return bucket * STRESS_HISTOGRAM_HALF + sub;
}

static inline void
stress_histogram_add(struct stress_histogram *histogram, int64_t value)
{
	uint64_t positive = value > 0 ? (uint64_t)value : 0;

	histogram->counts[stress_histogram_index(positive)]++;
	histogram->total++;
	if (positive > histogram->max)
		histogram->max = positive;
}

void stress_histogram_merge(struct stress_histogram *to, const struct stress_histogram *from);
void stress_histogram_clear(struct stress_histogram *histogram);
/* 0 when empty. */
double stress_histogram_mean(const struct stress_histogram *histogram);
uint64_t stress_histogram_max(const struct stress_histogram *histogram);
uint64_t stress_histogram_percentile(const struct stress_histogram *histogram, double percentile);

#endif
