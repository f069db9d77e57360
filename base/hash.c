/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>

static const uint64_t murmur3_c1 = 0x87c37b91114253d5ull;
static const uint64_t murmur3_c2 = 0x4cf5ad432745937full;

static uint64_t
hash_rotate(uint64_t value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static uint64_t
hash_load_le64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t
murmur3_mix(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdull;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ull;
	value ^= value >> 33;
	return value;
}

/* The sign extension of the tail: a byte of 0x80 or more also flips every bit above it. */
static uint64_t
murmur3_tail(const uint8_t *at, size_t size)
{
	uint64_t word = 0;

	for (size_t i = 0; i < size; i++)
		word ^= (uint64_t)(int64_t)(int8_t)at[i] << (8 * i);
	return word;
}

void
murmur3_128(struct slice data, uint64_t seed, uint64_t out[2])
{
	const uint8_t *at = data.data;
	size_t tail = data.size & 15;
	uint64_t h1 = seed;
	uint64_t h2 = seed;

	for (size_t left = data.size >> 4; left > 0; left--, at += 16) {
		h1 ^= hash_rotate(hash_load_le64(at) * murmur3_c1, 31) * murmur3_c2;
		h1 = (hash_rotate(h1, 27) + h2) * 5 + 0x52dce729;
		h2 ^= hash_rotate(hash_load_le64(at + 8) * murmur3_c2, 33) * murmur3_c1;
		h2 = (hash_rotate(h2, 31) + h1) * 5 + 0x38495ab5;
	}
	if (tail > 8)
		h2 ^= hash_rotate(murmur3_tail(at + 8, tail - 8) * murmur3_c2, 33) * murmur3_c1;
	if (tail > 0)
		h1 ^= hash_rotate(murmur3_tail(at, tail < 8 ? tail : 8) * murmur3_c1, 31) *
		    murmur3_c2;

	h1 ^= data.size;
	h2 ^= data.size;
	h1 += h2;
	h2 += h1;
	h1 = murmur3_mix(h1);
	h2 = murmur3_mix(h2);
	h1 += h2;
	h2 += h1;
	out[0] = h1;
	out[1] = h2;
}

int64_t
murmur3_token(struct slice partition_key)
{
	uint64_t hash[2];

	if (partition_key.size == 0)
		return INT64_MIN;
	murmur3_128(partition_key, 0, hash);
	/* INT64_MIN is the partitioner's minimum, which no key may have. */
	if ((int64_t)hash[0] == INT64_MIN)
		return INT64_MAX;
	return (int64_t)hash[0];
}

/* What four zero bits after a nibble make of it: two look-ups a byte, in 64 bytes of table. */
static const uint32_t crc24_nibbles[16] = {
    0x000000,
    0x974f0b,
    0xb9d11d,
    0x2e9e16,
    0xe4ed31,
    0x73a23a,
    0x5d3c2c,
    0xca7327,
    0x5e9569,
    0xc9da62,
    0xe74474,
    0x700b7f,
    0xba7858,
    0x2d3753,
    0x03a945,
    0x94e64e,
};

uint32_t
crc24(uint64_t value, size_t size)
{
	uint32_t crc = 0x875060;

	assert(size >= 1 && size <= 8);
	for (; size > 0; size--, value >>= 8) {
		crc ^= (uint32_t)(value & 0xff) << 16;
		crc = (crc << 4 & 0xffffff) ^ crc24_nibbles[crc >> 20];
		crc = (crc << 4 & 0xffffff) ^ crc24_nibbles[crc >> 20];
	}
	return crc;
}

void
md5(struct slice data, uint8_t out[16])
{
	unsigned int size = 16;
	int ok = EVP_Digest(data.data, data.size, out, &size, EVP_md5(), NULL);

	/* MD5 is missing only in a crippled OpenSSL, and no id can be made without it. */
	assert(ok == 1 && size == 16);
	(void)ok;
}

static uint64_t
hash_fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes a step, each folded by a 64x64 multiplication; the size is mixed in last so that
 * zero padding of the tail does not make "a" and "a\0" collide. */
uint64_t
hash_bytes(struct slice data)
{
	static const uint64_t k1 = 0x9e3779b97f4a7c15ull;
	static const uint64_t k2 = 0xd6e8feb86659fd93ull;
	const uint8_t *at = data.data;
	size_t left = data.size;
	uint64_t hash = k1;
	uint64_t word = 0;

	for (; left >= 8; left -= 8, at += 8)
		hash = hash_fold(hash ^ hash_load_le64(at), k2);
	if (left > 0) {
		memcpy(&word, at, left);
		hash = hash_fold(hash ^ word, k2);
	}
	return hash_fold(hash ^ data.size, k1);
}
