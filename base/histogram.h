/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_HISTOGRAM_H
#define HELENUS_BASE_HISTOGRAM_H

/*
 * Cassandra's EstimatedHistogram: bucket offsets that grow by a fifth from 1, each bucket counts
 * values <= its offset, and one overflow bucket. Adding is wait-free (relaxed atomics: a reader may
 * see a sum that is one add behind, which statistics tolerate).
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS_MAX = 165 };

struct histogram {
	size_t bucket_count; /* without the overflow bucket */
	atomic_ullong buckets[HISTOGRAM_BUCKETS_MAX + 1];
	atomic_ullong sum;
	atomic_ullong max;
};

/* bucket_count offsets as EstimatedHistogram makes them (90 for latencies in µs, 150 / 114 for
 * SSTable statistics). A value of 0 counts in the first bucket. */
void histogram_init(struct histogram *histogram, size_t bucket_count);
/* Offsets of EstimatedHistogram.newOffsets(size, considerZeroes = false): 1,2,3,4,5,6,7,8,10,12... */
const uint64_t *histogram_offsets(void);
void histogram_add(struct histogram *histogram, uint64_t value);
/* The same value `times` times, at the price of one add. */
void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t times);
void histogram_clear(struct histogram *histogram);
uint64_t histogram_count(const struct histogram *histogram);
/* Upper offset of the bucket that holds the quantile (0..1); 0 when empty; the greatest value that
 * was added when the quantile lies in the overflow bucket. */
uint64_t histogram_quantile(const struct histogram *histogram, double quantile);
double histogram_mean(const struct histogram *histogram);

/*
 * What a histogram was like lately: values weigh less the older they are, as in Cassandra's
 * DecayingEstimatedHistogramReservoir. It costs who adds nothing: the difference to the last look is aged by whoever looks.
 * Zero at first. One thread at a time; the histogram is not to be cleared.
 */
struct histogram_recent {
	uint64_t seen[HISTOGRAM_BUCKETS_MAX + 1];
	double weights[HISTOGRAM_BUCKETS_MAX + 1];
	uint64_t looked_ns;
};
/* After `lifetime_ns` a value weighs 1/e of a new one. now_ns: of any clock that does not go back. */
void histogram_recent_look(struct histogram_recent *recent, const struct histogram *histogram,
    uint64_t now_ns, uint64_t lifetime_ns);
/* As histogram_quantile(), of the last look. */
uint64_t histogram_recent_quantile(
    const struct histogram_recent *recent, const struct histogram *histogram, double quantile);

#endif
