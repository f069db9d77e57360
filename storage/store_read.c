/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "storage/row_cache.h"
#include "storage/store_internal.h"
#include "storage/unfiltered_held.h"

/*
 * Reads (SinglePartitionReadCommand, PartitionRangeReadCommand): every memtable and SSTable of a view
 * that can hold something of the answer becomes a source, and the merge of the sources is what the
 * caller pulls from. The view is held until the iterator is closed, and with it all that rows point to.
 */

enum { STORE_SOURCES_INLINE = 16 };

struct store_read_iterator {
	struct partition_iterator base;
	struct table_store *table;
	struct table_view *view; /* a reference */
	struct memtable_hold *holds; /* of its memtables */
	struct unfiltered_iterator *partition; /* single: still to be given out */
	struct partition_iterator *partitions; /* range */
	uint64_t began_ns; /* 0: not measured */
	struct slice key; /* null: nobody asks how long the read of a partition takes */
	bool is_range;
};

static int
store_read_next_partition(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct store_read_iterator *read = (struct store_read_iterator *)iterator;

	if (read->is_range)
		return partition_iterator_next(read->partitions, out, err);
	if (read->partition == NULL)
		return 0;
	*out = read->partition;
	read->partition = NULL;
	return 1;
}

static void
store_read_close(struct partition_iterator *iterator)
{
	struct store_read_iterator *read = (struct store_read_iterator *)iterator;

	unfiltered_iterator_close(read->partition);
	partition_iterator_close(read->partitions);
	if (read->began_ns != 0) {
		uint64_t us = (env_monotonic_ns(read->table->store->env) - read->began_ns) / 1000;

		histogram_add(
		    read->is_range ? &read->table->stats.range_us : &read->table->stats.read_us,
		    us);
		if (!slice_is_null(read->key))
			sampler_add_max(
			    &read->table->samplers[STORE_SAMPLE_READ_TIME], read->key, us);
	}
	memtable_release(read->holds);
	table_view_release(read->view);
}

static const struct partition_iterator_ops store_read_ops = {
    .next = store_read_next_partition,
    .close = store_read_close,
};

/*
 * Reads of one row (features ST-39) by its whole key, without statics, counters and multi-cell columns:
 * SSTables are asked newest first, only until nothing older can matter:
 * every wanted column, and the existence of the row, is known from a timestamp above all that is left. A
 * tombstone past gc_grace says nothing here: another replica may have lost it in a compaction, and both must
 * stop at the same cells for their digests to agree (read_response.h). For the same reason what a deletion covers
 * settles nothing, though all that is left may be covered too.
 */
struct store_row_progress {
	const struct read_command *command;
	/* Merged, over all that was asked. */
	const struct cell **cells; /* by regular column; NULL: none yet */
	int64_t deleted; /* highest timestamp of what deletes the row, or more */
	int64_t
	    liveness; /* highest timestamp of the row's own, and whether that is one without end */
	bool has_lasting_liveness;
	int64_t gc_before; /* seconds */
};

/* Does the cell say something that holds whatever is older? */
static bool
store_row_is_known(
    const struct store_row_progress *progress, const struct cell *cell, int64_t newest_left)
{
	return cell != NULL && cell->timestamp > newest_left &&
	    (cell_is_live(cell, progress->command->now_seconds) ||
		(int64_t)cell->local_deletion_time - cell->ttl >= progress->gc_before);
}

static bool
store_row_is_settled(const struct store_row_progress *progress, int64_t newest_left)
{
	const uint64_t *wanted = progress->command->wanted_regulars;
	bool is_live;

	if (progress->deleted > newest_left)
		newest_left = progress->deleted;
	is_live = progress->has_lasting_liveness && progress->liveness > newest_left;
	for (uint32_t i = 0; i < progress->command->table->regular_count; i++) {
		const struct cell *cell = progress->cells[i];

		if (wanted != NULL && (wanted[i / 64] >> (i % 64) & 1) == 0)
			continue;
		if (!store_row_is_known(progress, cell, newest_left))
			return false;
		is_live = is_live || cell->local_deletion_time == LOCAL_DELETION_TIME_NONE;
	}
	return is_live;
}

static void
store_row_note_deletion(struct store_row_progress *progress, struct deletion deletion)
{
	if (deletion.marked_for_delete_at > progress->deleted)
		progress->deleted = deletion.marked_for_delete_at;
}

/* Look at the row in *source, and note what it settles. */
static int
store_row_note(struct store_row_progress *progress, struct unfiltered_iterator **source,
    struct arena *arena, struct error *err)
{
	struct unfiltered_held *held;
	const struct row *row;

	if (unfiltered_hold_row(source, arena, &held, err) != 0)
		return -1;
	store_row_note_deletion(progress, held->base.partition_deletion);
	for (uint32_t i = 0; i < held->count; i++) {
		const struct marker *marker = &held->items[i].marker;

		if (held->items[i].kind != UNFILTERED_MARKER)
			continue;
		store_row_note_deletion(progress, marker->open);
		store_row_note_deletion(progress, marker->close);
	}
	row = held->row;
	if (row == NULL)
		return 0;
	store_row_note_deletion(progress, row->deletion);
	if (row->liveness.timestamp > progress->liveness) {
		progress->liveness = row->liveness.timestamp;
		progress->has_lasting_liveness = true;
	}
	/* Of two of one time the one that ends wins. */
	if (row->liveness.timestamp == progress->liveness && row->liveness.ttl != TTL_NONE)
		progress->has_lasting_liveness = false;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];
		const struct cell **best = &progress->cells[cell->column->position];

		*best = *best == NULL ? cell : cell_reconcile(*best, cell);
	}
	return 0;
}

struct store_row_candidate {
	struct sstable *sstable;
	int64_t max_timestamp;
};

static int
store_row_newest_first(const void *a, const void *b)
{
	const struct store_row_candidate *left = a, *right = b;

	return left->max_timestamp > right->max_timestamp
	    ? -1
	    : left->max_timestamp < right->max_timestamp;
}

/* The SSTables' part of a read of one row; the memtables' sources are there already. */
static int
store_read_row(const struct table_view *view, const struct read_command *command,
    struct unfiltered_iterator **sources, uint32_t *count, uint32_t *sstables, struct arena *arena,
    struct error *err)
{
	struct store_row_progress progress = {
	    .command = command,
	    .deleted = INT64_MIN,
	    .liveness = TIMESTAMP_NONE,
	    .gc_before = command->now_seconds - command->table->options.gc_grace_seconds,
	};
	struct store_row_candidate *candidates =
	    arena_alloc(arena, view->sstable_count * sizeof(*candidates));

	progress.cells =
	    arena_calloc(arena, command->table->regular_count + 1, sizeof(const struct cell *));
	if (candidates == NULL || progress.cells == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_stats *stats = sstable_stats(view->sstables[i], NULL);

		candidates[i].sstable = view->sstables[i];
		candidates[i].max_timestamp = stats != NULL ? stats->max_timestamp : INT64_MAX;
	}
	qsort(candidates, view->sstable_count, sizeof(*candidates), store_row_newest_first);
	for (uint32_t i = 0; i < *count; i++)
		if (store_row_note(&progress, &sources[i], arena, err) != 0)
			return -1;
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		if (store_row_is_settled(&progress, candidates[i].max_timestamp))
			break;
		if (sstable_read(candidates[i].sstable, command, arena, &sources[*count], err) != 0)
			return -1;
		if (sources[*count] == NULL)
			continue;
		(*count)++;
		(*sstables)++;
		if (store_row_note(&progress, &sources[*count - 1], arena, err) != 0)
			return -1;
	}
	return 0;
}

static int
store_read_single(struct store_read_iterator *read, const struct read_command *command,
    struct arena *arena, struct error *err)
{
	struct unfiltered_iterator *sources_inline[STORE_SOURCES_INLINE];
	struct unfiltered_iterator **sources = sources_inline;
	const struct table_view *view = read->view;
	uint32_t most = view->memtable_count + view->sstable_count, count = 0, sstables = 0;
	int rc = 0;

	if (most > STORE_SOURCES_INLINE) {
		sources = arena_calloc(arena, most, sizeof(*sources));
		if (sources == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	}
	for (uint32_t i = 0; i < view->memtable_count && rc == 0; i++) {
		rc = memtable_read(
		    view->memtables[i], command, arena, &read->holds, &sources[count], err);
		if (rc == 0 && sources[count] != NULL)
			count++;
	}
	/* One source alone has nothing to be spared. */
	if (rc == 0 && view->sstable_count > 0 && view->sstable_count + count > 1 &&
	    read_command_is_one_row(command))
		rc = store_read_row(view, command, sources, &count, &sstables, arena, err);
	else
		for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
			rc = sstable_read(view->sstables[i], command, arena, &sources[count], err);
			if (rc == 0 && sources[count] != NULL) {
				count++;
				sstables++;
			}
		}
	if (rc != 0) {
		for (uint32_t i = 0; i < count; i++)
			unfiltered_iterator_close(sources[i]);
		return -1;
	}
	if (view->sstable_count > 0)
		histogram_add(&read->table->stats.sstables_per_read, sstables);
	if (count == 0)
		return 0;
	return unfiltered_merge(sources, count, arena, &read->partition, err);
}

int
store_read_partition(struct table_store *table, struct table_view *view,
    const struct read_command *command, struct arena *arena, struct memtable_hold **holds,
    struct unfiltered_iterator **out, struct error *err)
{
	struct store_read_iterator read = {.table = table, .view = view};
	int rc = store_read_single(&read, command, arena, err);

	*holds = read.holds;
	*out = read.partition;
	return rc;
}

static int
store_read_range(struct store_read_iterator *read, const struct read_command *command,
    struct arena *arena, struct error *err)
{
	const struct table_view *view = read->view;
	uint32_t count = 0;
	struct partition_iterator **sources;
	int rc = 0;

	sources =
	    arena_calloc(arena, view->memtable_count + view->sstable_count + 1, sizeof(*sources));
	if (sources == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	for (uint32_t i = 0; i < view->memtable_count && rc == 0; i++) {
		rc = memtable_scan(
		    view->memtables[i], command, arena, &read->holds, &sources[count], err);
		if (rc == 0 && sources[count] != NULL)
			count++;
	}
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		rc = sstable_scan(view->sstables[i], command, command->table,
		    command->is_transient ? SSTABLE_SCAN_TRANSIENT : 0, arena, &sources[count],
		    err);
		if (rc == 0 && sources[count] != NULL)
			count++;
	}
	if (rc != 0) {
		for (uint32_t i = 0; i < count; i++)
			partition_iterator_close(sources[i]);
		return -1;
	}
	if (command->is_transient)
		return partition_merge_transient(sources, count, arena, &read->partitions, err);
	return partition_merge(sources, count, arena, &read->partitions, err);
}

int
store_read(struct store *store, const struct read_command *command, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	struct table_store *table = store_table(store, command->table);
	struct store_read_iterator *read;
	unsigned long long nth;
	int rc;

	if (table == NULL || atomic_load_explicit(&table->is_dropped, memory_order_relaxed))
		return error_set(err, ERROR_INVALID, "table %.*s.%.*s does not exist any more",
		    (int)command->table->keyspace.size, (const char *)command->table->keyspace.data,
		    (int)command->table->name.size, (const char *)command->table->name.data);
	read = arena_zalloc(arena, sizeof(*read));
	if (read == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	read->base.ops = &store_read_ops;
	read->table = table;
	read->is_range = command->is_range;
	nth = atomic_fetch_add_explicit(
	    command->is_range ? &table->stats.ranges : &table->stats.reads, 1,
	    memory_order_relaxed);
	if (nth % STORE_READ_SAMPLE == 0)
		read->began_ns = env_monotonic_ns(store->env);
	if (sampler_is_on(&table->samplers[STORE_SAMPLE_READS]) && !command->is_range)
		sampler_add(&table->samplers[STORE_SAMPLE_READS], command->key);
	if (sampler_is_on(&table->samplers[STORE_SAMPLE_READ_TIME]) && !command->is_range) {
		read->began_ns = env_monotonic_ns(store->env);
		read->key = arena_copy(arena, command->key);
	}
	if (!command->is_range && row_cache_is_used(table)) {
		rc = row_cache_read(table, command, arena, &read->partition, err);
		if (rc > 0)
			*out = &read->base;
		if (rc != 0)
			return rc > 0 ? 0 : -1;
	}
	read->view = table_view_acquire(table);
	rc = command->is_range ? store_read_range(read, command, arena, err)
			       : store_read_single(read, command, arena, err);
	if (rc != 0) {
		memtable_release(read->holds);
		table_view_release(read->view);
		return -1;
	}
	*out = &read->base;
	return 0;
}
