/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_INDEX_SUMMARY_H
#define HELENUS_STORAGE_INDEX_SUMMARY_H

/*
 * Summary.db: each 128th (min_index_interval) key of Index.db, in memory while the SSTable is in use
 * (IndexSummary, IndexSummaryBuilder). Integers are big-endian but for the part that Cassandra maps
 * into memory, which is in the order of the machine that wrote it: little-endian.
 *
 *   int32  min_index_interval
 *   int32  n, number of entries
 *   int64  size of the mapped part: 4 * n + bytes of the entries
 *   int32  sampling level, 1..128 (128: nothing was thinned out)
 *   int32  number of entries at sampling level 128
 *   mapped: n x LE int32 offset of the entry from the start of the mapped part;
 *           entries: key bytes, LE int64 position in Index.db
 *   int32 length + bytes of the first key; the same of the last key
 */
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"

struct index_summary {
	uint32_t min_interval;
	uint32_t sampling_level;
	uint32_t full_count;
	uint32_t count;
	uint8_t *bytes; /* owned; the mapped part and the two keys */
	size_t size; /* of bytes */
	size_t mapped; /* bytes of the mapped part */
	int64_t *tokens; /* owned; of the entries */
	struct slice first_key, last_key; /* into bytes */
};

/* ERROR_CORRUPT when anything does not fit, or entries are not ascending. */
int index_summary_decode(struct slice content, struct index_summary *out, struct error *err);
/* The first and last key alone, as slices of content. */
int index_summary_decode_keys(
    struct slice content, struct slice *first, struct slice *last, struct error *err);
void index_summary_fini(struct index_summary *summary);

/* Index of the last entry whose key is <= (token, key), -1: all are greater. */
int64_t index_summary_floor(const struct index_summary *summary, int64_t token, struct slice key);
/* The same for "the largest key with a token < `token`" (start of a range). */
int64_t index_summary_floor_token(const struct index_summary *summary, int64_t token);
/* Where in Index.db entry i stands. */
uint64_t index_summary_position(const struct index_summary *summary, uint32_t i);
struct slice index_summary_key(const struct index_summary *summary, uint32_t i);

static inline uint64_t
index_summary_memory(const struct index_summary *summary)
{
	return summary->size + (uint64_t)summary->count * sizeof(int64_t);
}

/* Collects entries while Index.db is written. */
struct index_summary_builder {
	uint32_t min_interval;
	uint64_t keys; /* seen so far */
	uint64_t next_sample;
	uint32_t count;
	struct buffer offsets; /* LE int32 */
	struct buffer entries;
	struct buffer first_key, last_key;
};

void index_summary_builder_init(struct index_summary_builder *builder, uint32_t min_interval);
void index_summary_builder_fini(struct index_summary_builder *builder);
/* Each key of the table, in order, with the position of its entry in Index.db. */
void index_summary_builder_add(
    struct index_summary_builder *builder, struct slice key, uint64_t index_position);
int index_summary_builder_encode(
    struct index_summary_builder *builder, struct buffer *out, struct error *err);

#endif
