/* SPDX-License-Identifier: Apache-2.0 */

/* nodetool scrub (Scrubber): what can be read of a damaged SSTable, partition by partition. */
#include "base/hash.h"
#include "base/log.h"
#include "storage/sstable_internal.h"

enum { SCRUB_ARENA = 64 * 1024 };

struct scrub_iterator {
	struct partition_iterator base;
	struct sstable *sstable; /* borrowed */
	const struct table_metadata *table;
	struct sstable_scrub *scrub; /* borrowed */
	struct sstable_cursor index;
	uint64_t index_position;
	struct partition_iterator *rest; /* Data.db in order, once Index.db has failed */
	struct arena index_arena, rest_arena, check_arena, partition_arena;
	struct arena last_arena;
	struct slice last_key; /* of the last partition that was given */
	int64_t last_token;
	bool has_last;
};

static int
scrub_check_row(const struct scrub_iterator *iterator, const struct row *row, struct error *err)
{
	for (uint32_t i = 0; i < row->cell_count && iterator->scrub->validates; i++) {
		const struct cell *cell = &row->cells[i];

		if (!cell_is_tombstone(cell) && slice_is_null(cell->path) &&
		    !table_is_counter(iterator->table) && cell->value.size > 0 &&
		    type_validate(cell->column->type, cell->value, err) != 0)
			return -1;
	}
	return 0;
}

/* Read all of it; what is wrong goes to err. */
static int
scrub_check(
    struct scrub_iterator *iterator, struct unfiltered_iterator *partition, struct error *err)
{
	struct slice last = slice_null;
	struct unfiltered item;
	int rc;

	if (partition->has_static_row &&
	    scrub_check_row(iterator, &partition->static_row, err) != 0)
		return -1;
	while ((rc = unfiltered_iterator_next(partition, &item, err)) > 0) {
		struct slice position =
		    item.kind == UNFILTERED_ROW ? item.row.position : item.marker.position;

		if (!slice_is_null(last) && slice_compare(position, last) <= 0)
			return error_set(err, ERROR_CORRUPT, "rows are out of order");
		last = position;
		if (item.kind == UNFILTERED_ROW && scrub_check_row(iterator, &item.row, err) != 0)
			return -1;
	}
	return rc;
}

static int
scrub_open(struct scrub_iterator *iterator, struct slice key, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err)
{
	struct read_command *command = arena_alloc(arena, sizeof(*command));

	if (command == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to scrub");
	*command = (struct read_command){.table = iterator->table,
	    .key = key,
	    .token = murmur3_token(key),
	    .clustering.with_static = true,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE};
	return sstable_read(iterator->sstable, command, arena, out, err);
}

static int
scrub_bad(
    struct scrub_iterator *iterator, struct slice key, const struct error *found, struct error *err)
{
	iterator->scrub->bad++;
	if (found->code == ERROR_NO_MEMORY) {
		*err = *found;
		return -1;
	}
	log_warn("scrub: a partition (token %lld) is left out: %s", (long long)murmur3_token(key),
	    found->text);
	if (!iterator->scrub->keeps_counters || !table_is_counter(iterator->table))
		return 0;
	return error_set(err, ERROR_CORRUPT,
	    "a partition of a counter table is damaged (%s); scrub -s leaves it out, with its "
	    "counts",
	    found->text);
}

/* Does the key come behind the last one? */
static bool
scrub_is_next(const struct scrub_iterator *iterator, struct slice key)
{
	int64_t token = murmur3_token(key);

	return !iterator->has_last || token > iterator->last_token ||
	    (token == iterator->last_token && slice_compare(key, iterator->last_key) > 0);
}

/* Index.db is at its end or broken: 1 and *key, or 0. */
static int
scrub_next_key(struct scrub_iterator *iterator, struct slice *key, struct error *err)
{
	struct index_entry entry;
	struct error found;
	int rc;

	if (iterator->rest != NULL)
		return 0;
	arena_reset(&iterator->index_arena);
	rc = sstable_index_next(&iterator->index, &iterator->index_arena, &iterator->index_position,
	    key, &entry, &found);
	if (rc >= 0)
		return rc;
	log_warn("scrub: Index.db cannot be read on, Data.db is instead: %s", found.text);
	return sstable_scan(iterator->sstable, NULL, iterator->table, SSTABLE_SCAN_SEQUENTIAL,
		   &iterator->rest_arena, &iterator->rest, err) == 0
	    ? 0
	    : -1;
}

/* The same from Data.db: keys behind the last one until something is damaged. */
static int
scrub_next_rest(struct scrub_iterator *iterator, struct slice *key, struct error *err)
{
	struct unfiltered_iterator *partition;
	struct error found;
	int rc;

	(void)err;
	while ((rc = partition_iterator_next(iterator->rest, &partition, &found)) > 0) {
		struct slice copy = arena_copy(&iterator->index_arena, partition->key);

		unfiltered_iterator_close(partition);
		if (!scrub_is_next(iterator, copy))
			continue;
		*key = copy;
		return 1;
	}
	if (rc < 0) {
		iterator->scrub->bad++;
		log_warn("scrub: what is behind is left out: %s", found.text);
	}
	return 0;
}

static int
scrub_next(struct partition_iterator *base, struct unfiltered_iterator **out, struct error *err)
{
	struct scrub_iterator *iterator = (struct scrub_iterator *)base;
	struct slice key;
	int rc;

	for (;;) {
		struct unfiltered_iterator *partition = NULL;
		struct error found;

		rc = scrub_next_key(iterator, &key, err);
		if (rc == 0 && iterator->rest != NULL)
			rc = scrub_next_rest(iterator, &key, err);
		if (rc <= 0)
			return rc;
		arena_reset(&iterator->check_arena);
		if (!scrub_is_next(iterator, key)) {
			error_set(&found, ERROR_CORRUPT, "partitions are out of order");
			rc = -1;
		} else {
			rc = scrub_open(iterator, key, &iterator->check_arena, &partition, &found);
			if (rc == 0 && partition == NULL)
				rc = error_set(&found, ERROR_CORRUPT, "the key is not found");
			if (rc == 0)
				rc = scrub_check(iterator, partition, &found);
			unfiltered_iterator_close(partition);
		}
		if (rc == 0)
			break;
		if (scrub_bad(iterator, key, &found, err) != 0)
			return -1;
	}
	iterator->scrub->good++;
	arena_reset(&iterator->last_arena);
	iterator->last_key = arena_copy(&iterator->last_arena, key);
	iterator->last_token = murmur3_token(key);
	iterator->has_last = true;
	arena_reset(&iterator->partition_arena);
	return scrub_open(iterator, iterator->last_key, &iterator->partition_arena, out, err) == 0
	    ? 1
	    : -1;
}

static void
scrub_close(struct partition_iterator *base)
{
	struct scrub_iterator *iterator = (struct scrub_iterator *)base;

	partition_iterator_close(iterator->rest);
	sstable_cursor_fini(&iterator->index);
	arena_fini(&iterator->index_arena);
	arena_fini(&iterator->rest_arena);
	arena_fini(&iterator->check_arena);
	arena_fini(&iterator->partition_arena);
	arena_fini(&iterator->last_arena);
}

static const struct partition_iterator_ops scrub_ops = {.next = scrub_next, .close = scrub_close};

int
sstable_scrub_scan(struct sstable *sstable, const struct table_metadata *table,
    struct sstable_scrub *scrub, struct arena *arena, struct partition_iterator **out,
    struct error *err)
{
	struct sstable_parts *parts = sstable_get_parts(sstable, err);
	struct scrub_iterator *iterator = arena_zalloc(arena, sizeof(*iterator));

	if (parts == NULL)
		return -1;
	if (iterator == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to scrub");
	iterator->base.ops = &scrub_ops;
	iterator->sstable = sstable;
	iterator->table = table;
	iterator->scrub = scrub;
	arena_init(&iterator->index_arena, SCRUB_ARENA);
	arena_init(&iterator->rest_arena, SCRUB_ARENA);
	arena_init(&iterator->check_arena, SCRUB_ARENA);
	arena_init(&iterator->partition_arena, SCRUB_ARENA);
	arena_init(&iterator->last_arena, 1024);
	sstable_cursor_init(&iterator->index, &parts->index, &iterator->index_arena, true, false);
	*out = &iterator->base;
	return 0;
}
