/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_NOTATION_H
#define HELENUS_PROTOCOL_NOTATION_H

/*
 * Reading the notations of the protocol ([string], [bytes], ...) off a reader; private to protocol/.
 * Inline, since decoding an EXECUTE is nothing but these. As with base's reader, a read past the end
 * sets is_failed and gives zero or an empty slice; check once after a group.
 */
#include "base/bytes.h"

static inline bool
notation_has(struct reader *reader, size_t size)
{
	if (__builtin_expect(reader_left(reader) >= size, 1))
		return true;
	reader->at = reader->end;
	reader->is_failed = true;
	return false;
}

static inline uint8_t
notation_u8(struct reader *reader)
{
	if (!notation_has(reader, 1))
		return 0;
	return *reader->at++;
}

static inline uint16_t
notation_u16(struct reader *reader)
{
	uint16_t value;

	if (!notation_has(reader, 2))
		return 0;
	value = load_u16(reader->at);
	reader->at += 2;
	return value;
}

static inline uint32_t
notation_u32(struct reader *reader)
{
	uint32_t value;

	if (!notation_has(reader, 4))
		return 0;
	value = load_u32(reader->at);
	reader->at += 4;
	return value;
}

static inline uint64_t
notation_u64(struct reader *reader)
{
	uint64_t value;

	if (!notation_has(reader, 8))
		return 0;
	value = load_u64(reader->at);
	reader->at += 8;
	return value;
}

static inline struct slice
notation_take(struct reader *reader, size_t size)
{
	struct slice slice;

	if (!notation_has(reader, size))
		return slice_empty;
	slice = slice_of(reader->at, size);
	reader->at += size;
	return slice;
}

/* [string], [short bytes] */
static inline struct slice
notation_string(struct reader *reader)
{
	size_t size = notation_u16(reader);

	return notation_take(reader, size);
}

/* [bytes]: any negative length is null */
static inline struct slice
notation_bytes(struct reader *reader)
{
	int32_t size = (int32_t)notation_u32(reader);

	if (size < 0)
		return slice_null;
	return notation_take(reader, (size_t)size);
}

/* [bytes map]: its whole extent, null when it does not fit (then is_failed too). */
static inline struct slice
notation_bytes_map(struct reader *reader)
{
	const uint8_t *start = reader->at;
	uint32_t count = notation_u16(reader);

	for (uint32_t i = 0; i < count && !reader->is_failed; i++) {
		notation_string(reader);
		notation_bytes(reader);
	}
	if (reader->is_failed)
		return slice_null;
	return slice_of(start, (size_t)(reader->at - start));
}

/* [string list] into an array of `arena`; NULL with *count 0 when it is empty, has failed, or there is
 * no memory (then *count is not 0). */
struct arena;
struct slice *notation_string_list(struct reader *reader, struct arena *arena, uint32_t *count);

#endif
