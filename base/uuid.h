/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_UUID_H
#define HELENUS_BASE_UUID_H

/* UUIDs as 16 bytes in network order (RFC 4122). */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"

struct uuid {
	uint8_t bytes[16];
};

enum { UUID_TEXT_SIZE = 37 };

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" with the NUL. */
void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE]);
/* -1 unless `text` is exactly the 36 character form (any case). */
int uuid_parse(const char *text, size_t length, struct uuid *out);
static inline int
uuid_version(const struct uuid *uuid)
{
	return uuid->bytes[6] >> 4;
}
bool uuid_equal(const struct uuid *a, const struct uuid *b);
/* Name-based from MD5 (Java's UUID.nameUUIDFromBytes): ids of the system tables. */
struct uuid uuid_from_name(struct slice name);
/* Version 4 from 16 random bytes. */
struct uuid uuid_from_random(const uint8_t random[16]);
/* Version 1: 100 ns ticks since 1582-10-15, clock sequence and node (8 low bytes as they stand). */
struct uuid uuid_from_time(uint64_t ticks, uint64_t clock_sequence_and_node);
/* 60-bit ticks of a version 1 uuid. */
uint64_t uuid_ticks(const struct uuid *uuid);
/* Ticks of a Unix time in microseconds, and back in milliseconds. */
uint64_t uuid_ticks_of_unix_us(int64_t unix_us);
int64_t uuid_unix_ms(const struct uuid *uuid);

#endif
