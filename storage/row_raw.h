/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ROW_RAW_H
#define HELENUS_STORAGE_ROW_RAW_H

/*
 * A regular row that is still encoded, for those who only carry it from one file to another: a flush, a
 * compaction. One walk over its bytes tells what merging, purging and statistics must know; the cells go
 * into the new file by copies between the numbers that stand relative to a file's minima.
 *
 * Only rows that are simple enough become one; any other is decoded, and so is one that turns out to be
 * partly covered, expired or in need of its like. So nothing here fails or reports damage: the decoder does.
 */
#include "storage/row.h"

/* A number in a row's body that is stored relative to the codec's minima. */
enum row_raw_kind { ROW_RAW_TIMESTAMP, ROW_RAW_LOCAL, ROW_RAW_TTL };
struct row_raw_number {
	int64_t value; /* what it stands for */
	uint32_t offset; /* in the body */
	uint8_t size; /* as it stands there */
	uint8_t kind; /* enum row_raw_kind */
};

struct row_raw {
	const struct row_codec *codec; /* borrowed: how the body is encoded */
	uint32_t clustering_count;
	const struct slice *clustering;
	struct slice position;
	struct slice body; /* in the source's memory: liveness, deletion, subset, columns */
	uint8_t flags;
	bool has_complex; /* columns of many cells */
	bool has_lasting; /* something that has no local deletion time */

	/* What the walk found. */
	uint32_t cell_count, column_count; /* columns with cells */
	uint32_t number_count;
	const struct row_raw_number *numbers; /* in order; from the arena */
	uint64_t present; /* bitmap of the columns */
	int64_t min_timestamp,
	    max_timestamp; /* of liveness, deletions, cells; there is one at least */
	int32_t min_ttl, max_ttl; /* as min_timestamp, but min > max: there is none */
	/* The one local deletion time of all that have one, and how many they are. A row with two has no raw form. */
	int32_t local_deletion_time;
	uint32_t local_deletion_count;
};

/* May rows of this codec be put with a codec over all regular columns of `table`? The columns are the same and none
 * of them was dropped. */
bool row_codec_is_carried(const struct row_codec *codec, const struct table_metadata *table);

/*
 * The row at `bytes`, which are the whole row, position not set. False: it has no raw form, or is damaged, and is
 * to be decoded. Clustering values come from `arena`, bytes stay where they are.
 */
bool row_raw_cut(const struct row_codec *codec, enum row_codec_flavor flavor, struct slice bytes,
    struct arena *arena, struct row_raw *out);

/* The row itself, with its position. -1 without memory, or ERROR_CORRUPT. */
int
row_raw_decode(const struct row_raw *raw, struct arena *arena, struct row *out, struct error *err);

/* Append it to a file with the codec `to`, which has the columns of the raw row's own. */
void row_raw_encode(const struct row_codec *to, const struct row_raw *raw, uint64_t previous_size,
    struct buffer *out);

/* Is what a merge of the two (same clustering, not of counters) makes the first of them as it is? */
bool row_raw_replaces(const struct row_raw *raw, const struct row_raw *other);

/* Does a deletion over the row leave it as it is? */
static inline bool
row_raw_survives(const struct row_raw *raw, struct deletion deletion)
{
	return deletion_is_live(deletion) || raw->min_timestamp > deletion.marked_for_delete_at;
}

#endif
