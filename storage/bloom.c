/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/bloom.h"

#include <math.h>
#include <stdlib.h>

enum {
	BLOOM_BUCKETS_MIN = 2,
	BLOOM_BUCKETS_MAX = 20,
	BLOOM_EXCESS_BITS = 20, /* added by Cassandra so that small filters are not too full */
	BLOOM_HASHES_MAX = 64, /* in a file; Cassandra makes at most 15 */
	BLOOM_AT_ONCE = 256, /* bits */
};

/* Chance of a false positive with k hashes and b bits a key, in three digits as the table of
 * BloomCalculations (which comes from this very formula) has it. */
static double
bloom_chance(int buckets, int hashes)
{
	double chance = pow(1 - exp(-(double)hashes / buckets), hashes);
	double scale = pow(10, 2 - floor(log10(chance)));

	return round(chance * scale) / scale;
}

static int
bloom_best_hashes(int buckets)
{
	int best = 1;

	for (int hashes = 2; hashes <= buckets; hashes++) {
		if (bloom_chance(buckets, hashes) < bloom_chance(buckets, best))
			best = hashes;
	}
	return best;
}

/* BloomCalculations.computeBloomSpec: the fewest bits a key, then the fewest hashes. */
static void
bloom_choose(double fp_chance, int *buckets, int *hashes)
{
	*buckets = BLOOM_BUCKETS_MIN;
	*hashes = bloom_best_hashes(*buckets);
	if (fp_chance >= bloom_chance(BLOOM_BUCKETS_MIN, 1)) {
		*hashes = bloom_best_hashes(BLOOM_BUCKETS_MIN);
		return;
	}
	while (bloom_chance(*buckets, *hashes) > fp_chance && *buckets < BLOOM_BUCKETS_MAX) {
		(*buckets)++;
		*hashes = bloom_best_hashes(*buckets);
	}
	while (*hashes > 1 && bloom_chance(*buckets, *hashes - 1) <= fp_chance)
		(*hashes)--;
}

/* 2^128 / n, rounded up: see bloom_bit(). n > 1. */
static __uint128_t
bloom_reciprocal(uint64_t n)
{
	return ~(__uint128_t)0 / n + 1;
}

int
bloom_init(struct bloom *bloom, uint64_t keys, double fp_chance, struct error *err)
{
	int buckets, hashes;
	uint64_t bits;

	bloom_choose(fp_chance, &buckets, &hashes);
	if (keys > UINT64_C(1) << 36)
		keys = UINT64_C(1) << 36;
	bits = (keys == 0 ? 1 : keys) * (uint64_t)buckets + BLOOM_EXCESS_BITS;
	bits = (bits + 63) & ~UINT64_C(63);
	*bloom =
	    (struct bloom){(uint32_t)hashes, bits, calloc(1, bits / 8), bloom_reciprocal(bits)};
	if (bloom->bits == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a filter of %llu bytes",
		    (unsigned long long)bits / 8);
	return 0;
}

int
bloom_decode(struct slice content, struct bloom *out, struct error *err)
{
	struct reader reader = reader_of(content);
	uint32_t hashes = reader_u32(&reader);
	uint64_t words = reader_u32(&reader);
	struct slice bits = reader_bytes(&reader, words * 8);

	if (reader.is_failed || words == 0 || reader_left(&reader) != 0)
		return error_set(err, ERROR_CORRUPT, "%llu words do not make %zu bytes",
		    (unsigned long long)words, content.size);
	if (hashes == 0 || hashes > BLOOM_HASHES_MAX)
		return error_set(err, ERROR_CORRUPT, "%u hash functions at byte 0", hashes);
	*out = (struct bloom){hashes, words * 64, malloc(bits.size), bloom_reciprocal(words * 64)};
	if (out->bits == NULL)
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory for a filter of %zu bytes", bits.size);
	memcpy(out->bits, bits.data, bits.size);
	return 0;
}

void
bloom_fini(struct bloom *bloom)
{
	free(bloom->bits);
	bloom->bits = NULL;
}

void
bloom_encode(const struct bloom *bloom, struct buffer *out)
{
	buffer_put_u32(out, bloom->hash_count);
	buffer_put_u32(out, (uint32_t)(bloom->bit_count / 64));
	buffer_put(out, bloom->bits, bloom->bit_count / 8);
}

/*
 * |value| mod bit_count, which is what Java's remainder and abs() make. The remainder is the fraction
 * of |value| / bit_count times bit_count (Lemire, Kaser, Kurz: Faster remainder by direct computation);
 * exact, since 128 bits of fraction are enough for 64-bit operands.
 */
static inline uint64_t
bloom_bit(const struct bloom *bloom, uint64_t value)
{
	uint64_t magnitude = (int64_t)value < 0 ? -value : value;
	__uint128_t fraction = bloom->reciprocal * magnitude;
	__uint128_t low = (__uint128_t)(uint64_t)fraction * bloom->bit_count;
	__uint128_t high = (fraction >> 64) * bloom->bit_count + (low >> 64);

	return (uint64_t)(high >> 64);
}

void
bloom_add(struct bloom *bloom, const uint64_t hash[2])
{
	/* Locals: the compiler must assume that the bits may be the struct or the hash. */
	const struct bloom own = *bloom;
	uint64_t value = hash[1];
	uint64_t step = hash[0];

	for (uint32_t i = 0; i < own.hash_count; i++, value += step) {
		uint64_t bit = bloom_bit(&own, value);

		own.bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	}
}

static void
bloom_set(const struct bloom *bloom, const uint64_t *bits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bloom->bits[bits[i] >> 3] |= (uint8_t)(1u << (bits[i] & 7));
}

void
bloom_add_many(struct bloom *bloom, const uint64_t (*hashes)[2], size_t count)
{
	uint64_t bits[BLOOM_AT_ONCE];
	const struct bloom own = *bloom;
	size_t known = 0;

	/* Neighbours in order are strangers in the filter: all are asked for before the first is touched. */
	for (size_t i = 0; i < count; i++) {
		uint64_t value = hashes[i][1];

		if (known + own.hash_count > BLOOM_AT_ONCE) {
			bloom_set(&own, bits, known);
			known = 0;
		}
		for (uint32_t k = 0; k < own.hash_count; k++, value += hashes[i][0]) {
			bits[known] = bloom_bit(&own, value);
			__builtin_prefetch(&own.bits[bits[known++] >> 3], 1);
		}
	}
	bloom_set(&own, bits, known);
}

bool
bloom_may_contain(const struct bloom *bloom, const uint64_t hash[2])
{
	uint64_t value = hash[1];

	for (uint32_t i = 0; i < bloom->hash_count; i++, value += hash[0]) {
		uint64_t bit = bloom_bit(bloom, value);

		if ((bloom->bits[bit >> 3] & (1u << (bit & 7))) == 0)
			return false;
	}
	return true;
}
