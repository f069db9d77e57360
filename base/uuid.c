/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

#include "base/hash.h"

/* 100 ns ticks from 1582-10-15 (the first day of the Gregorian calendar) to 1970-01-01. */
static const uint64_t uuid_epoch_ticks = 122192928000000000ull;

void
uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE])
{
	char digits[33];
	size_t from = 0;

	hex_encode(slice_of(uuid->bytes, sizeof(uuid->bytes)), digits);
	for (size_t i = 0; i < UUID_TEXT_SIZE - 1; i++)
		out[i] = i == 8 || i == 13 || i == 18 || i == 23 ? '-' : digits[from++];
	out[UUID_TEXT_SIZE - 1] = '\0';
}

int
uuid_parse(const char *text, size_t length, struct uuid *out)
{
	char digits[32];
	size_t to = 0;

	if (length != UUID_TEXT_SIZE - 1)
		return -1;
	for (size_t i = 0; i < length; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return -1;
			continue;
		}
		digits[to++] = text[i];
	}
	return hex_decode(digits, sizeof(digits), out->bytes);
}

bool
uuid_equal(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static void
uuid_stamp(struct uuid *uuid, int version)
{
	uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0f) | version << 4);
	uuid->bytes[8] = (uint8_t)((uuid->bytes[8] & 0x3f) | 0x80);
}

struct uuid
uuid_from_name(struct slice name)
{
	struct uuid uuid;

	md5(name, uuid.bytes);
	uuid_stamp(&uuid, 3);
	return uuid;
}

struct uuid
uuid_from_random(const uint8_t random[16])
{
	struct uuid uuid;

	memcpy(uuid.bytes, random, sizeof(uuid.bytes));
	uuid_stamp(&uuid, 4);
	return uuid;
}

struct uuid
uuid_from_time(uint64_t ticks, uint64_t clock_sequence_and_node)
{
	struct uuid uuid;

	store_u32(uuid.bytes, (uint32_t)ticks);
	store_u16(uuid.bytes + 4, (uint16_t)(ticks >> 32));
	store_u16(uuid.bytes + 6, (uint16_t)(0x1000 | ((ticks >> 48) & 0x0fff)));
	store_u64(uuid.bytes + 8, clock_sequence_and_node);
	return uuid;
}

uint64_t
uuid_ticks(const struct uuid *uuid)
{
	return (uint64_t)(load_u16(uuid->bytes + 6) & 0x0fff) << 48 |
	    (uint64_t)load_u16(uuid->bytes + 4) << 32 | load_u32(uuid->bytes);
}

uint64_t
uuid_ticks_of_unix_us(int64_t unix_us)
{
	return uuid_epoch_ticks + (uint64_t)unix_us * 10;
}

int64_t
uuid_unix_ms(const struct uuid *uuid)
{
	int64_t unix_us = (int64_t)(uuid_ticks(uuid) / 10) - (int64_t)(uuid_epoch_ticks / 10);

	/* Towards zero, as TimeUUID.unix(MILLISECONDS) does. */
	return unix_us / 1000;
}
