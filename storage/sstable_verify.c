/* SPDX-License-Identifier: Apache-2.0 */

/* nodetool verify / sstableverify (Verifier): everything of one SSTable is read and compared. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/sstable_internal.h"
#include "storage/stream_writer.h"

enum { VERIFY_READ = 256 * 1024, VERIFY_ARENA = 64 * 1024, VERIFY_DIGEST_MAX = 64 };

static int
sstable_verify_digest(
    struct sstable *sstable, struct sstable_parts *parts, uint64_t *bytes, struct error *err)
{
	struct files *files = sstable->context.env->files;
	struct file_stat stat;
	struct buffer text;
	char path[SSTABLE_PATH_MAX];
	uint8_t *block;
	uint32_t crc = 0;
	uint64_t expected;
	int rc;

	if (sstable_path(&sstable->descriptor, SSTABLE_DIGEST, path, err) != 0)
		return -1;
	if (files_stat(files, path, &stat, err) != 0)
		return -1;
	if (stat.kind == FILE_MISSING)
		return 0;
	buffer_init(&text);
	rc = files_read_all(files, path, VERIFY_DIGEST_MAX, &text, err);
	buffer_put_u8(&text, 0);
	expected = rc == 0 ? strtoull((const char *)text.data, NULL, 10) : 0;
	buffer_fini(&text);
	block = malloc(VERIFY_READ);
	if (block == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory to verify");
	for (uint64_t at = 0; rc == 0 && at < sstable->data_size;) {
		size_t got = 0;

		rc = file_pread(parts->data.file, block, VERIFY_READ, at, &got, err);
		if (rc == 0 && got == 0)
			rc = sstable_corrupt(&parts->data, at, err, "the file ends early");
		crc = crc32_update(crc, block, got);
		at += got;
		if (bytes != NULL)
			*bytes += got;
	}
	free(block);
	if (rc == 0 && crc != expected)
		return error_set(err, ERROR_CORRUPT,
		    "%s: the digest is %" PRIu64 ", that of Data.db is %u", path, expected, crc);
	return rc;
}

/* Every chunk, by its own checksum. */
static int
sstable_verify_chunks(struct sstable_parts *parts, struct arena *arena, struct error *err)
{
	struct sstable_cursor cursor;
	int rc = 0;

	sstable_cursor_init(&cursor, &parts->data, arena, true, false);
	for (uint64_t at = 0; rc == 0 && at < parts->data.length; at += parts->data.chunk_length) {
		struct slice view;

		rc = sstable_cursor_peek(&cursor, arena, at, 1, &view, err);
	}
	sstable_cursor_fini(&cursor);
	return rc;
}

struct sstable_verify_state {
	struct sstable_parts *parts;
	struct sstable_cursor index;
	uint64_t index_position;
	struct arena key_arena;
	struct slice last_key;
	int64_t last_token;
	bool has_last;
};

/* The next entry of Index.db must be of this partition and lead to it. */
static int
sstable_verify_entry(
    struct sstable_verify_state *state, const struct sstable_iterator *partition, struct error *err)
{
	struct sstable_file *data = &state->parts->data;
	struct index_entry entry;
	struct slice key;
	uint64_t at = state->index_position;
	int rc;

	rc = sstable_index_next(
	    &state->index, &state->key_arena, &state->index_position, &key, &entry, err);
	if (rc < 0)
		return -1;
	if (rc == 0 || !slice_equal(key, partition->base.key) ||
	    entry.data_position != partition->start)
		return sstable_corrupt(&state->parts->index, at, err,
		    "does not lead to the partition at %" PRIu64 " of Data.db", partition->start);
	if (state->has_last &&
	    (partition->base.token < state->last_token ||
		(partition->base.token == state->last_token &&
		    slice_compare(state->last_key, key) >= 0)))
		return sstable_corrupt(data, partition->start, err, "partitions are out of order");
	if (state->parts->has_filter) {
		uint64_t hash[2];

		murmur3_128(partition->base.key, 0, hash);
		if (!bloom_may_contain(&state->parts->bloom, hash))
			return sstable_corrupt(
			    data, partition->start, err, "the filter does not know this partition");
	}
	arena_reset(&state->key_arena);
	state->last_key = arena_copy(&state->key_arena, partition->base.key);
	state->last_token = partition->base.token;
	state->has_last = true;
	return 0;
}

/* Rows in order, markers that pair. */
static int
sstable_verify_rows(
    struct sstable_verify_state *state, struct sstable_iterator *partition, struct error *err)
{
	struct buffer last;
	struct unfiltered item;
	int rc;

	buffer_init(&last);
	while ((rc = unfiltered_iterator_next(&partition->base, &item, err)) > 0) {
		struct slice position =
		    item.kind == UNFILTERED_ROW ? item.row.position : item.marker.position;

		if (last.size > 0 && slice_compare(position, buffer_slice(&last)) <= 0) {
			rc = sstable_corrupt(&state->parts->data, partition->position, err,
			    "rows before here are out of order");
			break;
		}
		buffer_clear(&last);
		buffer_put_slice(&last, position);
	}
	if (rc == 0 && !deletion_is_live(partition->open))
		rc = sstable_corrupt(&state->parts->data, partition->position, err,
		    "a range tombstone is still open where the partition ends");
	buffer_fini(&last);
	return rc;
}

/* Key after key in the order of their tokens, known to the filter, and of ours. */
static int
sstable_verify_key(struct sstable_verify_state *state, struct slice key, uint64_t at,
    const struct stream_range *owned, uint32_t owned_count, struct error *err)
{
	struct sstable_file *index = &state->parts->index;
	int64_t token = murmur3_token(key);
	bool is_owned = owned == NULL;
	uint64_t hash[2];

	if (state->has_last &&
	    (token < state->last_token ||
		(token == state->last_token && slice_compare(state->last_key, key) >= 0)))
		return sstable_corrupt(index, at, err, "keys are out of order");
	murmur3_128(key, 0, hash);
	if (state->parts->has_filter && !bloom_may_contain(&state->parts->bloom, hash))
		return sstable_corrupt(index, at, err, "the filter does not know this partition");
	for (uint32_t i = 0; i < owned_count && !is_owned; i++)
		is_owned = stream_range_has(&owned[i], token);
	if (!is_owned)
		return sstable_corrupt(index, at, err,
		    "the partition with token %" PRId64 " is not in the ranges of this node",
		    token);
	state->last_token = token;
	state->has_last = true;
	return 0;
}

int
sstable_verify_index(struct sstable *sstable, const struct stream_range *owned,
    uint32_t owned_count, struct error *err)
{
	const struct sstable_stats *stats = sstable_stats(sstable, err);
	struct sstable_parts *parts = sstable_get_parts(sstable, err);
	struct sstable_verify_state state = {.parts = parts};
	struct arena arena, keys[2];
	struct index_entry entry;
	struct slice key;
	uint64_t at = 0;
	int rc, turn = 0;

	if (stats == NULL || parts == NULL)
		return -1;
	arena_init(&arena, VERIFY_ARENA);
	arena_init(&keys[0], VERIFY_ARENA);
	arena_init(&keys[1], VERIFY_ARENA);
	sstable_cursor_init(&state.index, &parts->index, &arena, true, false);
	while ((rc = sstable_index_next(
		    &state.index, &keys[turn], &state.index_position, &key, &entry, err)) > 0) {
		rc = sstable_verify_key(&state, key, at, owned, owned_count, err);
		if (rc != 0)
			break;
		/* The one before is looked at once more with the next. */
		state.last_key = arena_copy(&keys[turn], key);
		turn = 1 - turn;
		arena_reset(&keys[turn]);
		at = state.index_position;
	}
	if (rc == 0 && (!state.has_last || !slice_equal(state.last_key, stats->last_key)))
		rc = error_set(err, ERROR_CORRUPT, "%s: the last key is not that of Summary.db",
		    file_path(parts->index.file));
	sstable_cursor_fini(&state.index);
	arena_fini(&keys[0]);
	arena_fini(&keys[1]);
	arena_fini(&arena);
	return rc;
}

static int
sstable_verify_partitions(struct sstable *sstable, struct sstable_verify_state *state,
    bool is_extended, struct arena *arena, struct error *err)
{
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	int rc;

	if (sstable_scan(sstable, NULL, NULL, SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT,
		arena, &scan, err) != 0)
		return -1;
	while ((rc = partition_iterator_next(scan, &partition, err)) > 0) {
		rc = sstable_verify_entry(state, (struct sstable_iterator *)partition, err);
		if (rc == 0 && is_extended)
			rc = sstable_verify_rows(state, (struct sstable_iterator *)partition, err);
		unfiltered_iterator_close(partition);
		if (rc != 0)
			break;
	}
	partition_iterator_close(scan);
	if (rc == 0 && state->index_position != state->parts->index.length)
		rc = sstable_corrupt(&state->parts->index, state->index_position, err,
		    "has more partitions than Data.db");
	return rc;
}

int
sstable_verify(struct sstable *sstable, bool is_extended, uint64_t *bytes, struct error *err)
{
	const struct sstable_stats *stats = sstable_stats(sstable, err);
	struct sstable_parts *parts = sstable_get_parts(sstable, err);
	struct sstable_verify_state state = {.parts = parts};
	struct arena arena;
	int rc;

	if (stats == NULL || parts == NULL)
		return -1;
	if (sstable_verify_digest(sstable, parts, bytes, err) != 0)
		return -1;
	arena_init(&arena, VERIFY_ARENA);
	arena_init(&state.key_arena, VERIFY_ARENA);
	sstable_cursor_init(&state.index, &parts->index, &arena, true, false);
	rc = sstable_verify_chunks(parts, &arena, err);
	if (rc == 0)
		rc = sstable_verify_partitions(sstable, &state, is_extended, &arena, err);
	if (rc == 0 && (!state.has_last || !slice_equal(state.last_key, stats->last_key)))
		rc = error_set(err, ERROR_CORRUPT, "%s: the last key is not that of Summary.db",
		    file_path(parts->data.file));
	sstable_cursor_fini(&state.index);
	arena_fini(&state.key_arena);
	arena_fini(&arena);
	return rc;
}
