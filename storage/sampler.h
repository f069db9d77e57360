/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SAMPLER_H
#define HELENUS_STORAGE_SAMPLER_H

/*
 * Which partitions are read and written most, while somebody wants to know (nodetool toppartitions;
 * FrequencySampler). A space-saving sketch (Metwally et al., "Efficient computation of frequent and top-k
 * elements in data streams"): `capacity` counters; a key that has none takes over the smallest one, whose
 * count becomes its error. Off it costs one relaxed load per operation. Or the greatest value that each key had
 * (MaxSampler): there a key that has no place takes that of the smallest value, if its own is greater.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/lock.h"
#include "base/map.h"

enum { SAMPLER_KEY_MAX = 256 }; /* longer keys are cut: they are shown to people */

struct sampler_entry {
	uint64_t count, error; /* of a greatest value: that, and 0 */
	uint16_t size;
	uint8_t key[SAMPLER_KEY_MAX];
};

struct sampler {
	atomic_bool is_on;
	struct lock lock;
	/* Guarded by lock. */
	struct sampler_entry *entries; /* owned; NULL while off */
	uint32_t capacity, used;
	struct map by_key; /* keys lie in the entries */
	uint64_t seen; /* operations; what cardinality cannot be told from the sketch */
};

void sampler_init(struct sampler *sampler);
void sampler_fini(struct sampler *sampler);
/* Begin from nothing. False when it is on already: one question at a time. */
bool sampler_start(struct sampler *sampler, uint32_t capacity);
/* Any thread. */
void sampler_add(struct sampler *sampler, struct slice key);
void sampler_add_max(struct sampler *sampler, struct slice key, uint64_t value);
/* End, and copy out up to `limit` entries, most frequent first. *entries is for free(). Returns how many. */
uint32_t sampler_finish(
    struct sampler *sampler, uint32_t limit, struct sampler_entry **entries, uint64_t *seen);

static inline bool
sampler_is_on(const struct sampler *sampler)
{
	return atomic_load_explicit(&sampler->is_on, memory_order_relaxed);
}

#endif
