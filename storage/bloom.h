/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_BLOOM_H
#define HELENUS_STORAGE_BLOOM_H

/*
 * The Bloom filter over the partition keys of one SSTable: Filter.db (BloomFilter,
 * BloomCalculations, BloomFilterSerializer; the layout of versions since "na").
 *
 *   int32  number of hashes
 *   int32  number of 64-bit words
 *   bytes  8 * words: bit i is bit (i & 7) of byte i >> 3
 *
 * With h0, h1 the halves of murmur3_128(key, 0), hash i tests bit |(h1 + i * h0) mod bits|, the
 * remainder taken as Java does (sign of the dividend).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"

struct bloom {
	uint32_t hash_count;
	uint64_t bit_count; /* multiple of 64 */
	uint8_t *bits; /* owned */
	__uint128_t reciprocal; /* of bit_count: a remainder without a division */
};

/*
 * An empty filter for `keys` keys with this chance of a false positive (0 < fp_chance < 1; below what
 * is possible, 6.71e-5, it is taken as that). -1: ERROR_NO_MEMORY.
 */
int bloom_init(struct bloom *bloom, uint64_t keys, double fp_chance, struct error *err);
/* From Filter.db. ERROR_CORRUPT when sizes do not fit. */
int bloom_decode(struct slice content, struct bloom *out, struct error *err);
void bloom_fini(struct bloom *bloom);
void bloom_encode(const struct bloom *bloom, struct buffer *out);

/* `hash`: murmur3_128(key, 0). */
void bloom_add(struct bloom *bloom, const uint64_t hash[2]);
/* The same for a run of keys: cache misses of neighbours overlap, which a key at a time cannot do. */
void bloom_add_many(struct bloom *bloom, const uint64_t (*hashes)[2], size_t count);
bool bloom_may_contain(const struct bloom *bloom, const uint64_t hash[2]);

static inline uint64_t
bloom_memory(const struct bloom *bloom)
{
	return bloom->bit_count / 8;
}

#endif
