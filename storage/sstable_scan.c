/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many partitions, in one of two ways:
 *
 *   by data    everything of each partition is wanted: Data.db is read from the first partition of the
 *              range to the end, Index.db is asked only where to begin (and where to go on when a
 *              reader left a large partition early)
 *   by index   slices or reversed order are wanted: Index.db is walked along, so that each partition
 *              has its promoted index at hand
 */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/sstable_internal.h"

enum {
	SCAN_ARENA = 64 * 1024,
	SCAN_SKIP_BYTES_MAX = 512 * 1024, /* of a partition left early, before the index is asked */
};

struct sstable_scan {
	struct partition_iterator base;
	struct sstable *sstable; /* borrowed */
	struct sstable_parts *parts;
	const struct sstable_binding *binding;
	const struct read_command *command; /* borrowed; NULL: everything */
	struct arena *arena; /* the caller's */
	bool is_transient;
	bool is_by_index;
	bool is_at_end;
	bool has_iterator; /* `iterator` is the partition handed out last */
	struct sstable_open_options options;
	struct sstable_cursor data;
	struct sstable_cursor index; /* by index */
	uint64_t index_position;
	int64_t index_token; /* by index: of the entry before */
	uint64_t position; /* by data: of the next partition, when there is no iterator to ask */
	atomic_ullong passed; /* relaxed: for progress only */
	struct sstable_iterator *iterator;

	/* Transient scans. */
	struct sstable_iterator own_iterator;
	struct arena partition_arena; /* owned; reset with each partition */
	struct arena row_arenas[2]; /* owned */
};

uint64_t
sstable_scan_position(const struct partition_iterator *base)
{
	const struct sstable_scan *scan = (const struct sstable_scan *)base;

	return atomic_load_explicit(&scan->passed, memory_order_relaxed);
}

/* Behind the partition that was handed out last. */
static int
sstable_scan_pass(struct sstable_scan *scan, struct error *err)
{
	struct sstable_iterator *iterator = scan->iterator;

	if (!scan->has_iterator || scan->is_by_index)
		return 0;
	scan->has_iterator = false;
	while (!iterator->is_finished) {
		struct index_entry entry;
		struct slice key;
		uint64_t after;
		int rc;

		if (iterator->position - iterator->rows < SCAN_SKIP_BYTES_MAX) {
			rc = sstable_frame_read(&scan->data, scan->binding->codec.table,
			    iterator->position, false, iterator->arena, &iterator->frame, err);
			if (rc != 0)
				return -1;
			iterator->position += iterator->frame.total;
			iterator->after = iterator->position;
			iterator->is_finished = iterator->frame.kind == UNFILTERED_END;
			continue;
		}
		rc = sstable_index_find(scan->sstable, scan->parts, iterator->base.token,
		    iterator->base.key, iterator->arena, &entry, &after, err);
		if (rc == 0)
			return sstable_corrupt(&scan->parts->index, 0, err,
			    "a partition of Data.db (offset %llu) is missing",
			    (unsigned long long)iterator->start);
		if (rc < 0)
			return -1;
		scan->index_position = after;
		sstable_cursor_init(
		    &scan->index, &scan->parts->index, iterator->arena, false, false);
		rc = sstable_index_next(&scan->index, iterator->arena, &after, &key, &entry, err);
		sstable_cursor_fini(&scan->index);
		if (rc < 0 ||
		    (rc == 0 &&
			sstable_index_check_end(scan->parts, iterator->base.token, err) != 0))
			return -1;
		iterator->after = rc == 0 ? scan->parts->data.length : entry.data_position;
		iterator->is_finished = true;
	}
	scan->position = iterator->after;
	return 0;
}

/* The next partition's entry. 1, 0 at the end, -1. */
static int
sstable_scan_entry(struct sstable_scan *scan, struct slice *key, int64_t *token,
    struct index_entry *entry, struct error *err)
{
	struct arena *arena = scan->is_transient ? &scan->partition_arena : scan->arena;

	if (!scan->is_by_index) {
		*entry = (struct index_entry){
		    .data_position = scan->position, .deletion = DELETION_LIVE};
		*key = slice_null;
		return scan->position < scan->parts->data.length;
	}
	for (;;) {
		int rc =
		    sstable_index_next(&scan->index, arena, &scan->index_position, key, entry, err);
		int place;

		if (rc == 0)
			return sstable_index_check_end(scan->parts, scan->index_token, err);
		if (rc < 0)
			return -1;
		*token = scan->index_token = murmur3_token(*key);
		place = sstable_range_compare(&scan->command->range, *token, *key);
		if (place > 0)
			return 0;
		if (place < 0)
			continue;
		*key = arena_copy(arena, *key);
		if (slice_is_null(*key))
			return error_set(err, ERROR_NO_MEMORY, "no memory for a key");
		return 1;
	}
}

/* Paging: the row position holds in the partition that the range begins with, and only there. */
static bool
sstable_scan_is_first(const struct sstable_scan *scan, struct slice key)
{
	return scan->command != NULL && !slice_is_null(scan->command->after_position) &&
	    !slice_is_null(scan->command->range.start_key) &&
	    slice_equal(scan->command->range.start_key, key);
}

static int
sstable_scan_open(struct sstable_scan *scan, struct slice key, int64_t token,
    const struct index_entry *entry, struct error *err)
{
	struct arena *arena = scan->arena;

	if (scan->is_transient) {
		arena = &scan->partition_arena;
		scan->iterator = &scan->own_iterator;
	} else {
		scan->iterator = arena_alloc(arena, sizeof(*scan->iterator));
		if (scan->iterator == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for an iterator");
	}
	scan->options.after_position = slice_null;
	if (!slice_is_null(key) && sstable_scan_is_first(scan, key))
		scan->options.after_position = scan->command->after_position;
	if (sstable_iterator_open(scan->iterator, scan->sstable, scan->binding, &scan->data, key,
		token, entry, &scan->options, arena, err) != 0)
		return -1;
	if (scan->is_transient) {
		scan->iterator->row_arenas[0] = &scan->row_arenas[0];
		scan->iterator->row_arenas[1] = &scan->row_arenas[1];
	}
	scan->has_iterator = true;
	return 0;
}

static int
sstable_scan_next(
    struct partition_iterator *base, struct unfiltered_iterator **out, struct error *err)
{
	struct sstable_scan *scan = (struct sstable_scan *)base;
	const struct token_range *range = scan->command == NULL ? NULL : &scan->command->range;

	for (;;) {
		struct index_entry entry;
		struct slice key;
		int64_t token = 0;
		int rc;

		if (scan->is_at_end)
			return 0;
		if (sstable_scan_pass(scan, err) != 0)
			return -1;
		if (scan->is_transient)
			arena_reset(&scan->partition_arena);
		rc = sstable_scan_entry(scan, &key, &token, &entry, err);
		if (rc <= 0) {
			scan->is_at_end = true;
			return rc;
		}
		atomic_store_explicit(&scan->passed, entry.data_position, memory_order_relaxed);
		if (sstable_scan_open(scan, key, token, &entry, err) != 0)
			return -1;
		if (!scan->is_by_index) {
			int place = sstable_range_compare(
			    range, scan->iterator->base.token, scan->iterator->base.key);

			if (place != 0)
				unfiltered_iterator_close(&scan->iterator->base);
			if (place < 0)
				continue;
			scan->is_at_end = place > 0;
			if (place > 0)
				return 0;
		}
		*out = &scan->iterator->base;
		return 1;
	}
}

static void
sstable_scan_close(struct partition_iterator *base)
{
	struct sstable_scan *scan = (struct sstable_scan *)base;

	sstable_cursor_fini(&scan->data);
	if (scan->is_by_index)
		sstable_cursor_fini(&scan->index);
	if (!scan->is_transient)
		return;
	arena_fini(&scan->partition_arena);
	arena_fini(&scan->row_arenas[0]);
	arena_fini(&scan->row_arenas[1]);
}

static const struct partition_iterator_ops sstable_scan_ops = {
    .next = sstable_scan_next,
    .close = sstable_scan_close,
};

/* Where the first partition of the range stands. */
static int
sstable_scan_seek(struct sstable_scan *scan, struct error *err)
{
	const struct token_range *range = scan->command == NULL ? NULL : &scan->command->range;
	struct sstable_cursor cursor;
	struct index_entry entry;
	struct slice key;
	uint64_t position;
	int rc;

	if (sstable_index_seek(
		scan->sstable, scan->parts, range, scan->arena, &scan->index_position, err) != 0)
		return -1;
	/* Nothing in the range: the seek has looked whether the file ends where it should. */
	if (scan->index_position > 0 && scan->index_position >= scan->parts->index.length)
		scan->index_token = INT64_MAX;
	if (scan->is_by_index || scan->index_position == 0)
		return 0;
	position = scan->index_position;
	sstable_cursor_init(&cursor, &scan->parts->index, scan->arena, false, false);
	rc = sstable_index_next(&cursor, scan->arena, &position, &key, &entry, err);
	sstable_cursor_fini(&cursor);
	if (rc < 0)
		return -1;
	scan->position = rc == 0 ? scan->parts->data.length : entry.data_position;
	return 0;
}

int
sstable_scan(struct sstable *sstable, const struct read_command *command,
    const struct table_metadata *table, uint32_t flags, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	struct sstable_scan *scan = arena_zalloc(arena, sizeof(*scan));

	if (scan == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a scan");
	scan->base.ops = &sstable_scan_ops;
	scan->sstable = sstable;
	scan->command = command;
	scan->arena = arena;
	scan->is_transient = (flags & SSTABLE_SCAN_TRANSIENT) != 0;
	scan->options.with_static = true;
	scan->index_token = INT64_MIN;
	if (table == NULL)
		table = command != NULL ? command->table : sstable->table;
	scan->parts = sstable_get_parts(sstable, err);
	scan->binding = sstable_bind(sstable, table, err);
	if (scan->parts == NULL || scan->binding == NULL)
		return -1;
	scan->options.is_raw = (flags & SSTABLE_SCAN_RAW) != 0 && command == NULL &&
	    row_codec_is_carried(&scan->binding->codec, table);
	if (command != NULL) {
		scan->is_at_end = !sstable_may_contain(sstable, command);
		scan->options.clustering = &command->clustering;
		scan->options.with_static = command->clustering.with_static;
		scan->options.wanted_regulars = command->wanted_regulars;
		scan->options.wanted_statics = command->wanted_statics;
		scan->is_by_index = command->clustering.slice_count > 0 ||
		    command->clustering.is_reversed || !slice_is_null(command->after_position);
	}
	if (sstable_scan_seek(scan, err) != 0)
		return -1;
	if (scan->is_transient) {
		arena_init(&scan->partition_arena, SCAN_ARENA);
		arena_init(&scan->row_arenas[0], SCAN_ARENA);
		arena_init(&scan->row_arenas[1], SCAN_ARENA);
	}
	sstable_cursor_init(&scan->data, &scan->parts->data, arena,
	    (flags & SSTABLE_SCAN_SEQUENTIAL) != 0, scan->is_transient);
	if (scan->is_by_index)
		sstable_cursor_init(&scan->index, &scan->parts->index, arena, false, false);
	*out = &scan->base;
	return 0;
}
