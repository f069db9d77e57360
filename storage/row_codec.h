/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ROW_CODEC_H
#define HELENUS_STORAGE_ROW_CODEC_H

/*
 * Layout of an encoded unfiltered, shared by row_codec.c (writes) and row_decode.c (reads); the functions
 * are declared in row.h. Cassandra: UnfilteredSerializer, Cell.Serializer, Columns.Serializer.
 *
 *   row     flags [extended] clustering [size previous] [liveness] [deletion] [subset] columns
 *   marker  flags kind u16-count clustering [size previous] deletion [deletion]
 *   simple  cell;  complex: [deletion] vint-count cells
 *   cell    flags [timestamp] [local deletion time] [ttl] [path] [value]
 *   subset  < 64 columns: vint bitmap of the absent ones; else vint of how many are absent, then vint
 *           indexes of the present (when fewer than half are) or of the absent
 *
 * "previous", "size": vints, in SSTables only; size counts from after itself. Timestamps, local
 * deletion times and TTLs are vints above the codec's minima.
 */
#include "storage/row.h"

/* Flags of an unfiltered; UNFILTERED_END_OF_PARTITION is 01. */
enum {
	ROW_IS_MARKER = 0x02,
	ROW_HAS_TIMESTAMP = 0x04,
	ROW_HAS_TTL = 0x08,
	ROW_HAS_DELETION = 0x10,
	ROW_HAS_ALL_COLUMNS = 0x20,
	ROW_HAS_COMPLEX_DELETION = 0x40,
	ROW_EXTENSION = 0x80,
};

/* Extended flags. A shadowable deletion (old materialized views) is read as a usual one. */
enum {
	ROW_EXTENDED_IS_STATIC = 0x01,
	ROW_EXTENDED_HAS_SHADOWABLE_DELETION = 0x02,
};

enum {
	CELL_IS_DELETED = 0x01,
	CELL_IS_EXPIRING = 0x02,
	CELL_HAS_EMPTY_VALUE = 0x04,
	CELL_USE_ROW_TIMESTAMP = 0x08,
	CELL_USE_ROW_TTL = 0x10,
	CELL_FLAGS_ALL = 0x1f,
};

/* What a first walk over a row finds out, before it is encoded. */
struct row_summary {
	uint32_t group_count; /* columns that the row has something of */
	uint64_t present; /* bitmap of the first 64 columns */
	bool has_complex_deletion;
	bool
	    is_plain; /* cells of the codec's very columns, none of them complex, and nothing else */
	size_t size_max; /* no encoding of the row is longer */
	size_t size_guess; /* of the body: right in most cases */
};

void
row_summarise(const struct row_codec *codec, const struct row *row, struct row_summary *summary);
/* row_encode() into room of summary->size_max bytes at `at`; returns the end of what was written. */
uint8_t *row_encode_into(const struct row_codec *codec, enum row_codec_flavor flavor,
    const struct row *row, const struct row_summary *summary, uint64_t previous_size, uint8_t *at);

/* Decode what follows the clustering (and the sizes) of a regular row, all columns. */
int row_decode_body(const struct row_codec *codec, struct reader *body, uint8_t flags,
    struct arena *arena, struct row *row, struct error *err);

/* ---- getting and putting, for the hot paths ------------------------------------------------------------ */

/* Most vints are one byte. */
static inline uint64_t
row_get_vint(struct reader *reader)
{
	if (reader->at != reader->end && *reader->at < 0x80 && !reader->is_failed)
		return *reader->at++;
	return reader_vint(reader);
}

static inline uint8_t
row_get_u8(struct reader *reader)
{
	if (reader->at != reader->end && !reader->is_failed)
		return *reader->at++;
	reader->is_failed = true;
	return 0;
}

/* `size` bytes in place; a size that does not fit fails the reader. */
static inline struct slice
row_get_bytes(struct reader *reader, uint64_t size)
{
	const uint8_t *at = reader->at;

	if (!reader->is_failed && (uint64_t)(reader->end - at) >= size) {
		reader->at += size;
		return slice_of(at, (size_t)size);
	}
	reader->is_failed = true;
	return slice_empty;
}

/* Putting goes into room that was reserved before, so nothing is checked byte by byte. */
static inline uint8_t *
row_put_vint(uint8_t *at, uint64_t value)
{
	if (value < 0x80) {
		*at = (uint8_t)value;
		return at + 1;
	}
	return at + vint_encode(at, value);
}

/* The same in `size` bytes, which is what it takes; nothing behind them is touched. */
static inline uint8_t *
row_put_vint_exact(uint8_t *at, uint64_t value, size_t size)
{
	uint8_t whole[VINT_SIZE_MAX];

	if (size == 1) {
		*at = (uint8_t)value;
	} else if (size == 2) {
		store_u16(at, (uint16_t)(0x8000 | value));
	} else {
		vint_encode(whole, value);
		memcpy(at, whole, size);
	}
	return at + size;
}

/* Values are short: two overlapping moves for most of them, without a call. */
static inline uint8_t *
row_put_bytes(uint8_t *at, struct slice bytes)
{
	const uint8_t *from = bytes.data;
	size_t size = bytes.size;

	if (size > 64) {
		memcpy(at, from, size);
	} else if (size >= 32) {
		uint8_t head[32], tail[32];

		memcpy(head, from, 32);
		memcpy(tail, from + size - 32, 32);
		memcpy(at, head, 32);
		memcpy(at + size - 32, tail, 32);
	} else if (size >= 16) {
		uint8_t head[16], tail[16];

		memcpy(head, from, 16);
		memcpy(tail, from + size - 16, 16);
		memcpy(at, head, 16);
		memcpy(at + size - 16, tail, 16);
	} else if (size >= 8) {
		uint64_t head = load_u64(from), tail = load_u64(from + size - 8);

		store_u64(at, head);
		store_u64(at + size - 8, tail);
	} else {
		for (size_t i = 0; i < size; i++)
			at[i] = from[i];
	}
	return at + size;
}

#endif
