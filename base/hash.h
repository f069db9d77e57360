/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_HASH_H
#define HELENUS_BASE_HASH_H

/*
 * Hashes and checksums. Pure functions, any thread.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"

/*
 * MurmurHash3 x64 128 as Cassandra computes it (MurmurHash.hash3_x64_128): the tail bytes are sign
 * extended, unlike the reference. out[0] is the first half: the token of Murmur3Partitioner.
 */
void murmur3_128(struct slice data, uint64_t seed, uint64_t out[2]);

/* Token of a partition key (Murmur3Partitioner.getToken): the first half; an empty key has
 * INT64_MIN; a hash of INT64_MIN becomes INT64_MAX. */
int64_t murmur3_token(struct slice partition_key);

/* zlib's CRC32 carried on from `crc` (0 to begin). */
uint32_t crc32_update(uint32_t crc, const void *data, size_t size);
/* The CRC of two runs of bytes, one behind the other, from the CRC of each; does not look at them. */
uint32_t crc32_join(uint32_t first, uint32_t second, size_t second_size);
/* Cassandra's CRC24 of segment headers: init 0x875060, polynomial 0x1974F0B, bytes of `value`
 * fed low byte first. `size` 1..8. */
uint32_t crc24(uint64_t value, size_t size);

/* MD5, 16 bytes (prepared ids, schema digests, name-based UUIDs). */
void md5(struct slice data, uint8_t out[16]);

/* A fast hash for hash tables in memory; never stored. */
uint64_t hash_bytes(struct slice data);

#endif
