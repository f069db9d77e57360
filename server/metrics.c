/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void
metrics_init(struct metrics *metrics, uint32_t loop_count)
{
	memset(metrics, 0, sizeof(*metrics));
	metrics->loop_count = loop_count;
	for (int i = 0; i < METRICS_BATCH_KINDS; i++)
		histogram_init(&metrics->batch_partitions[i], METRICS_BATCH_BUCKETS);
	metrics->loops = xcalloc(loop_count, sizeof(*metrics->loops));
	for (uint32_t i = 0; i < loop_count; i++)
		for (int j = 0; j < REQUEST_METRIC_COUNT; j++)
			histogram_init(&metrics->loops[i].latency_us[j], METRICS_LATENCY_BUCKETS);
}

void
metrics_fini(struct metrics *metrics)
{
	free(metrics->loops);
	memset(metrics, 0, sizeof(*metrics));
}

void
metrics_latency(const struct metrics *metrics, enum request_metric metric, struct histogram *out)
{
	histogram_init(out, METRICS_LATENCY_BUCKETS);
	for (uint32_t i = 0; i < metrics->loop_count; i++) {
		const struct histogram *from = &metrics->loops[i].latency_us[metric];
		unsigned long long max = atomic_load_explicit(&from->max, memory_order_relaxed);

		for (int j = 0; j <= METRICS_LATENCY_BUCKETS; j++)
			out->buckets[j] +=
			    atomic_load_explicit(&from->buckets[j], memory_order_relaxed);
		out->sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
		if (max > out->max)
			out->max = max;
	}
}

uint64_t
metrics_sum(const struct metrics *metrics, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < metrics->loop_count; i++)
		sum += atomic_load_explicit(
		    (atomic_ullong *)((char *)&metrics->loops[i] + offset), memory_order_relaxed);
	return sum;
}

uint64_t
metrics_outcomes(
    const struct metrics *metrics, enum request_metric metric, enum request_outcome outcome)
{
	return metrics_sum(metrics, offsetof(struct metrics_loop, outcomes[metric][outcome]));
}

uint64_t
metrics_direct_requests(const struct metrics *metrics)
{
	return metrics_sum(metrics, offsetof(struct metrics_loop, direct_requests));
}
