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

#endif
