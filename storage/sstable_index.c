/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Index.db: for each partition, in order,
 *
 *   u16 n + key; vint position in Data.db; vint size of the promoted index (0: none), then
 *     vint header length; deletion time of the partition; vint number of blocks;
 *     blocks: first and last clustering prefix; vint offset from the start of the partition;
 *       signed vint width - 64 KiB; bool + deletion time that is open at the end;
 *     int32 offset of each block, from the first
 *
 * Cassandra: RowIndexEntry, IndexInfo.
 */
#include "base/hash.h"
#include "storage/sstable_internal.h"

enum { INDEX_DELETION_SIZE = 12, INDEX_OFFSET_SIZE = 4, INDEX_KEY_MAX = UINT16_MAX };

static inline uint64_t
sstable_index_vint(struct reader *reader)
{
	if (reader->at != reader->end && *reader->at < 0x80 && !reader->is_failed)
		return *reader->at++;
	return reader_vint(reader);
}

/*
 * A look-up reads 64 entries in the mean, so the usual kind, with a short key and no promoted index,
 * is taken without a call for each field. 1: done, 0: not that kind, or too near the end of the view.
 */
static inline int
sstable_index_parse_short(
    struct slice view, struct slice *key, struct index_entry *entry, uint64_t *size)
{
	const uint8_t *at = view.data;
	size_t key_size, more;
	uint64_t word;

	if (view.size < 2 || at[0] != 0)
		return 0;
	key_size = at[1];
	if (view.size < 2 + key_size + 9)
		return 0;
	*key = slice_of(at + 2, key_size);
	at += 2 + key_size;
	more = (size_t)__builtin_clz(~((uint32_t)*at << 24));
	if (more > 7)
		return 0;
	word = load_u64(at) >> (8 * (7 - more));
	entry->data_position = word & ~UINT64_C(0) >> (64 - 7 * (more + 1));
	if (at[more + 1] != 0)
		return 0; /* it has a promoted index */
	entry->block_count = 0;
	entry->deletion = DELETION_LIVE;
	*size = 2 + key_size + more + 2;
	return 1;
}

/* 1: parsed; 0: the view is too short; -1. *size: bytes of the entry. */
static int
sstable_index_parse(const struct sstable_file *file, struct slice view, uint64_t position,
    struct slice *key, struct index_entry *entry, uint64_t *size, struct error *err)
{
	struct reader reader = reader_of(view);
	uint64_t promoted, blocks, before;

	if (sstable_index_parse_short(view, key, entry, size))
		return 1;
	*entry = (struct index_entry){.deletion = DELETION_LIVE};
	*key = reader_bytes(&reader, reader_u16(&reader));
	entry->data_position = sstable_index_vint(&reader);
	promoted = sstable_index_vint(&reader);
	if (reader.is_failed)
		return 0;
	before = view.size - reader_left(&reader);
	*size = before + promoted;
	if (promoted > file->length || *size > file->length - position)
		return sstable_corrupt(file, position, err,
		    "promoted index of %llu bytes does not fit", (unsigned long long)promoted);
	if (promoted == 0)
		return 1;
	entry->header_length = (uint32_t)reader_vint(&reader);
	entry->deletion = deletion_decode(&reader);
	blocks = reader_vint(&reader);
	if (reader.is_failed)
		return 0;
	entry->blocks_position = position + (view.size - reader_left(&reader));
	entry->blocks_end = position + *size;
	if (entry->blocks_position > entry->blocks_end ||
	    blocks > (entry->blocks_end - entry->blocks_position) / INDEX_OFFSET_SIZE)
		return sstable_corrupt(file, position, err,
		    "%llu blocks do not fit in the promoted index", (unsigned long long)blocks);
	entry->block_count = (uint32_t)blocks;
	return 1;
}

int
sstable_index_next(struct sstable_cursor *cursor, struct arena *arena, uint64_t *position,
    struct slice *key, struct index_entry *entry, struct error *err)
{
	struct sstable_file *file = cursor->file;
	size_t need = 1;
	struct slice view;
	uint64_t size;

	if (*position >= file->length)
		return 0;
	for (;;) {
		int rc;

		if (sstable_cursor_peek(cursor, arena, *position, need, &view, err) != 0)
			return -1;
		rc = sstable_index_parse(file, view, *position, key, entry, &size, err);
		if (rc < 0)
			return -1;
		if (rc > 0)
			break;
		if (view.size >= file->length - *position ||
		    view.size > INDEX_KEY_MAX + 4 * VINT_SIZE_MAX + 64)
			return sstable_corrupt(file, *position, err, "entry ends early");
		need = view.size * 2 + 128;
	}
	*position += size;
	return 1;
}

/* ---- partitions by key and token ------------------------------------------------------------------- */

/*
 * Index.db has no checksums. A key that the filter knows and the index does not is rare (the filter's false
 * positives), so then the entries between two samples are looked at again: a damaged key is one that the
 * filter does not know, or has a token that is out of order.
 */
static int
sstable_index_check(struct sstable_parts *parts, uint64_t position, uint64_t end,
    struct arena *arena, struct error *err)
{
	struct sstable_cursor cursor;
	int64_t last = INT64_MIN;
	int rc = 0;

	sstable_cursor_init(&cursor, &parts->index, arena, false, false);
	while (rc == 0 && position < end) {
		uint64_t at = position;
		struct index_entry entry;
		uint64_t hash[2];
		struct slice key;
		int64_t token;

		rc = sstable_index_next(&cursor, arena, &position, &key, &entry, err);
		if (rc <= 0)
			break;
		murmur3_128(key, 0, hash);
		token = murmur3_token(key);
		rc = 0;
		if (token < last || !bloom_may_contain(&parts->bloom, hash))
			rc = sstable_corrupt(&parts->index, at, err,
			    "this entry's key is out of order or unknown to the filter");
		last = token;
	}
	if (rc == 0 && position != end)
		rc = sstable_corrupt(
		    &parts->index, position, err, "no entry begins where Summary.db says");
	sstable_cursor_fini(&cursor);
	return rc;
}

int
sstable_index_find(struct sstable *sstable, struct sstable_parts *parts, int64_t token,
    struct slice key, struct arena *arena, struct index_entry *entry, uint64_t *after,
    struct error *err)
{
	const struct index_summary *summary = &parts->summary;
	int64_t sample = index_summary_floor(summary, token, key);
	struct sstable_cursor cursor;
	uint64_t position, end;
	int rc = 0;

	(void)sstable;
	if (sample < 0)
		return 0;
	position = index_summary_position(summary, (uint32_t)sample);
	end = sample + 1 < summary->count ? index_summary_position(summary, (uint32_t)sample + 1)
					  : parts->index.length;
	sstable_cursor_init(&cursor, &parts->index, arena, false, false);
	while (position < end) {
		struct slice found;

		rc = sstable_index_next(&cursor, arena, &position, &found, entry, err);
		if (rc <= 0)
			break;
		rc = found.size == key.size && memcmp(found.data, key.data, key.size) == 0;
		if (rc > 0)
			break;
	}
	if (rc > 0 && after != NULL)
		*after = position;
	sstable_cursor_fini(&cursor);
	if (rc == 0 && parts->has_filter)
		return sstable_index_check(
		    parts, index_summary_position(summary, (uint32_t)sample), end, arena, err);
	return rc;
}

int
sstable_range_compare(const struct token_range *range, int64_t token, struct slice key)
{
	if (range == NULL)
		return 0;
	if (!slice_is_null(range->start_key)) {
		int order = token != range->left ? (token < range->left ? -1 : 1)
						 : slice_compare(key, range->start_key);

		if (order < 0 || (order == 0 && range->start_key_exclusive))
			return -1;
	} else if (range->left != INT64_MIN &&
	    (token < range->left || (token == range->left && !range->includes_left))) {
		return -1;
	}
	if (range->right != INT64_MIN &&
	    (token > range->right || (token == range->right && range->excludes_right)))
		return 1;
	return 0;
}

int
sstable_index_check_end(struct sstable_parts *parts, int64_t seen, struct error *err)
{
	if (murmur3_token(parts->summary.last_key) <= seen)
		return 0;
	return sstable_corrupt(&parts->index, parts->index.length, err,
	    "the file ends before the last partition of Summary.db (of the two, Summary.db may be "
	    "deleted: it is made again)");
}

int
sstable_index_seek(struct sstable *sstable, struct sstable_parts *parts,
    const struct token_range *range, struct arena *arena, uint64_t *position, struct error *err)
{
	struct sstable_cursor cursor;
	int64_t sample, seen = INT64_MIN;
	int rc = 0;

	(void)sstable;
	*position = 0;
	if (range == NULL || (range->left == INT64_MIN && slice_is_null(range->start_key)))
		return 0;
	sample = index_summary_floor_token(&parts->summary, range->left);
	if (sample >= 0)
		*position = index_summary_position(&parts->summary, (uint32_t)sample);
	sstable_cursor_init(&cursor, &parts->index, arena, false, false);
	for (;;) {
		uint64_t next = *position;
		struct index_entry entry;
		struct slice key;

		rc = sstable_index_next(&cursor, arena, &next, &key, &entry, err);
		if (rc <= 0)
			break;
		seen = murmur3_token(key);
		if (sstable_range_compare(range, seen, key) >= 0)
			break;
		*position = next;
	}
	sstable_cursor_fini(&cursor);
	if (rc == 0)
		return sstable_index_check_end(parts, seen, err);
	return rc < 0 ? -1 : 0;
}

/* ---- the promoted index -------------------------------------------------------------------------------- */

/* ClusteringPrefix.Serializer: kind, for bounds a count, values. */
static int
sstable_index_prefix(struct reader *reader, const struct table_metadata *table, struct arena *arena,
    struct slice *out, struct error *err)
{
	uint8_t kind = reader_u8(reader);
	uint32_t count = table->clustering_count;
	const struct slice *values;

	if (kind > BOUND_EXCL_START || kind == BOUND_STATIC_CLUSTERING)
		return error_set(err, ERROR_CORRUPT, "clustering prefix of kind %u", kind);
	if (kind != BOUND_CLUSTERING)
		count = reader_u16(reader);
	if (count > table->clustering_count)
		return error_set(err, ERROR_CORRUPT, "clustering prefix of %u values", count);
	if (clustering_decode(table, reader, count, arena, &values, err) != 0)
		return -1;
	*out = position_make(table, kind, values, count, arena);
	if (slice_is_null(*out))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	return 0;
}

static int
sstable_index_block_parse(struct slice view, const struct table_metadata *table,
    struct arena *arena, struct index_block *out, struct error *err)
{
	struct reader reader = reader_of(view);

	if (sstable_index_prefix(&reader, table, arena, &out->first, err) != 0 ||
	    sstable_index_prefix(&reader, table, arena, &out->last, err) != 0)
		return -1;
	out->offset = reader_vint(&reader);
	out->width = (uint64_t)reader_signed_vint(&reader) + INDEX_BLOCK_WIDTH_BASE;
	out->end_open = DELETION_LIVE;
	if (reader_u8(&reader) != 0)
		out->end_open = deletion_decode(&reader);
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "block of a promoted index ends early");
	return 0;
}

int
sstable_index_block(struct sstable_cursor *index, const struct table_metadata *table,
    const struct index_entry *entry, uint32_t i, struct arena *arena, struct index_block *out,
    struct error *err)
{
	uint64_t offsets = entry->blocks_end - (uint64_t)entry->block_count * INDEX_OFFSET_SIZE;
	uint64_t start, end = offsets;
	bool is_last = i + 1 == entry->block_count;
	struct slice view;

	if (sstable_cursor_peek(index, arena, offsets + (uint64_t)i * INDEX_OFFSET_SIZE,
		is_last ? INDEX_OFFSET_SIZE : 2 * INDEX_OFFSET_SIZE, &view, err) != 0)
		return -1;
	start = entry->blocks_position + load_u32(view.data);
	if (!is_last)
		end = entry->blocks_position + load_u32(view.data + INDEX_OFFSET_SIZE);
	if (start >= end || end > offsets)
		return sstable_corrupt(index->file, offsets, err,
		    "offset of block %u of %u is wrong", i, entry->block_count);
	if (sstable_cursor_peek(index, arena, start, (size_t)(end - start), &view, err) != 0)
		return -1;
	if (sstable_index_block_parse(
		slice_of(view.data, (size_t)(end - start)), table, arena, out, err) != 0)
		return sstable_corrupt_prefix(index->file, start, err);
	return 0;
}
