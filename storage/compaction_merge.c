/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/compaction_merge.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/garbage.h"
#include "storage/store_internal.h"

enum { COMPACTION_PROGRESS_BYTES = 1 << 20 };

/* One input. */
struct compaction_source {
	struct sstable *
	    own; /* a handle for a scrub: without caches, and nobody is told of damage; NULL else */
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition; /* the next one; NULL at the end */
	struct arena arena;
	uint64_t position; /* of the scan when progress was last told */
};

enum { COMPACTION_SPLITS_MAX = 19 }; /* files that halve: 20 at most */

struct compaction_merger {
	struct table_store *table;
	const struct compaction_pick *pick;
	const struct table_metadata *metadata;
	struct lifecycle *lifecycle;
	compaction_progress_fn progress;
	void *progress_context;
	struct compaction_result *result;

	struct compaction_source *sources; /* pick->count of them */
	struct unfiltered_iterator **meeting; /* the partitions of equal key; room for all */
	struct arena arena, turns[2]; /* of one partition's merge */
	struct table_view
	    *others; /* with the SSTables that may shadow the inputs; NULL: not asked for */
	bool can_purge; /* something in the inputs has a local deletion time */
	int64_t now_seconds;
	int32_t gc_before;

	struct sstable_writer_options options;
	struct commitlog_interval *intervals; /* of all inputs */
	struct sstable_writer *writer; /* NULL between two files */
	uint64_t share; /* of the file being written, when files halve */
	uint32_t splits;
};

void
compaction_result_fini(struct compaction_result *result)
{
	free(result->sstables);
	result->sstables = NULL;
}

/* ---- what may be forgotten -------------------------------------------------------------------- */

static bool
compaction_is_input(const struct compaction_pick *pick, const struct sstable *sstable)
{
	for (uint32_t i = 0; i < pick->count; i++)
		if (pick->sstables[i] == sstable)
			return true;
	return false;
}

/*
 * max_purgeable_fn: tombstones of this partition with a timestamp below the answer hide nothing outside
 * of the inputs (CompactionController.getPurgeEvaluator). Looks at the view of now: a flush may have
 * brought old timestamps meanwhile.
 */
static int64_t
compaction_max_purgeable(void *argument, struct slice key, int64_t token)
{
	struct compaction_merger *merger = argument;
	struct table_view *view = table_view_acquire(merger->table);
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < view->sstable_count; i++) {
		struct sstable *sstable = view->sstables[i];
		const struct sstable_stats *stats;

		if (compaction_is_input(merger->pick, sstable))
			continue;
		stats = sstable_stats(sstable, NULL);
		if (stats == NULL) {
			least = INT64_MIN; /* nobody knows what it holds */
			break;
		}
		if (token < stats->first_token || token > stats->last_token ||
		    stats->min_timestamp >= least || !sstable_may_have_key(sstable, key))
			continue;
		least = stats->min_timestamp;
	}
	for (uint32_t i = 0; i < view->memtable_count; i++) {
		int64_t timestamp;
		int32_t local_deletion_time, ttl;

		if (memtable_is_empty(view->memtables[i]))
			continue;
		memtable_encoding_stats(view->memtables[i], &timestamp, &local_deletion_time, &ttl);
		if (timestamp < least)
			least = timestamp;
	}
	table_view_release(view);
	return least;
}

static int32_t
compaction_gc_before(const struct table_metadata *metadata, int64_t now_seconds)
{
	const struct slice *only_repaired =
	    option_map_get(&metadata->options.compaction, "only_purge_repaired_tombstones");
	int64_t before = now_seconds - metadata->options.gc_grace_seconds;

	if (only_repaired != NULL && slice_equal_string(*only_repaired, "true"))
		return INT32_MIN;
	return before > INT32_MAX ? INT32_MAX : (int32_t)before;
}

/* ---- outputs ------------------------------------------------------------------------------------- */

static int
compaction_interval_compare(const void *a, const void *b)
{
	const struct commitlog_interval *left = a, *right = b;

	return commitlog_position_compare(left->start, right->start);
}

/* What the inputs have of our commit log, the outputs have. */
static uint32_t
compaction_union_intervals(struct compaction_merger *merger)
{
	uint32_t count = 0, used = 0;

	for (uint32_t i = 0; i < merger->pick->count; i++) {
		const struct sstable_stats *stats = sstable_stats(merger->pick->sstables[i], NULL);

		if (stats != NULL && store_is_own_log(merger->table->store, stats))
			count += stats->commitlog_count;
	}
	merger->intervals = xcalloc(count + 1, sizeof(*merger->intervals));
	for (uint32_t i = 0; i < merger->pick->count; i++) {
		const struct sstable_stats *stats = sstable_stats(merger->pick->sstables[i], NULL);

		if (stats == NULL || !store_is_own_log(merger->table->store, stats))
			continue;
		for (uint32_t k = 0; k < stats->commitlog_count; k++)
			merger->intervals[used++] = stats->commitlog[k];
	}
	qsort(merger->intervals, used, sizeof(*merger->intervals), compaction_interval_compare);
	count = used;
	used = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct commitlog_interval *last = used > 0 ? &merger->intervals[used - 1] : NULL;

		if (last != NULL &&
		    commitlog_position_compare(merger->intervals[i].start, last->end) <= 0) {
			if (commitlog_position_compare(merger->intervals[i].end, last->end) > 0)
				last->end = merger->intervals[i].end;
		} else {
			merger->intervals[used++] = merger->intervals[i];
		}
	}
	return used;
}

static void
compaction_prepare_options(struct compaction_merger *merger)
{
	struct sstable_writer_options *options = &merger->options;
	bool is_first = true, is_pending = true;

	*options = (struct sstable_writer_options){
	    .table = merger->metadata,
	    .level = merger->pick->level,
	    .column_index_bytes = atomic_load(&merger->table->store->column_index_bytes),
	    .min_timestamp = CODEC_TIMESTAMP_EPOCH,
	    .min_local_deletion_time = CODEC_DELETION_TIME_EPOCH,
	    .min_ttl = CODEC_TTL_EPOCH,
	};
	for (uint32_t i = 0; i < merger->pick->count; i++) {
		const struct sstable_stats *stats = sstable_stats(merger->pick->sstables[i], NULL);
		const struct sstable_repair *repair =
		    sstable_repair(merger->pick->sstables[i], NULL);

		options->expected_keys += sstable_estimated_keys(merger->pick->sstables[i]);
		if (repair != NULL && (i == 0 || repair->repaired_at < options->repaired_at))
			options->repaired_at = repair->repaired_at;
		/* A mixture, which an operator may ask for, is of no session. */
		is_pending = is_pending && repair != NULL && repair->has_pending_repair &&
		    (i == 0 || uuid_equal(options->pending_repair, &repair->pending_repair));
		options->pending_repair = is_pending ? &repair->pending_repair : NULL;
		merger->can_purge = merger->can_purge || stats == NULL ||
		    stats->min_local_deletion_time != LOCAL_DELETION_TIME_NONE;
		if (stats == NULL)
			continue;
		if (is_first || stats->min_timestamp < options->min_timestamp)
			options->min_timestamp = stats->min_timestamp;
		if (stats->min_local_deletion_time < options->min_local_deletion_time)
			options->min_local_deletion_time = stats->min_local_deletion_time;
		is_first = false;
	}
	if (merger->pick->pending_repair != NULL)
		options->pending_repair = merger->pick->pending_repair;
	options->commitlog_count = compaction_union_intervals(merger);
	options->commitlog = merger->intervals;
	if (atomic_load(&merger->table->store->has_host_id))
		options->host_id = &merger->table->store->host_id;
}

static int
compaction_open_writer(struct compaction_merger *merger, struct error *err)
{
	char *base;
	int rc;

	merger->options.descriptor =
	    table_store_new_descriptor(merger->table, lifecycle_directory(merger->lifecycle));
	base = sstable_base_path(&merger->options.descriptor);
	rc = lifecycle_add(merger->lifecycle, base, err);
	free(base);
	if (rc != 0)
		return -1;
	return sstable_writer_new(
	    &merger->table->store->sstables, &merger->options, &merger->writer, err);
}

static int
compaction_close_writer(struct compaction_merger *merger, struct error *err)
{
	struct compaction_result *result = merger->result;
	struct sstable *sstable = NULL;

	if (merger->writer == NULL)
		return 0;
	if (sstable_writer_finish(merger->writer, &sstable, err) != 0) {
		merger->writer = NULL;
		return -1;
	}
	merger->writer = NULL;
	if (sstable == NULL)
		return 0; /* nothing outlived the purge */
	result->sstables =
	    xrealloc(result->sstables, (result->count + 1) * sizeof(*result->sstables));
	result->sstables[result->count++] = sstable;
	result->bytes_out += sstable_total_size(sstable);
	return 0;
}

/* ---- the merge ----------------------------------------------------------------------------------- */

static int
compaction_source_step(
    struct compaction_merger *merger, struct compaction_source *source, struct error *err)
{
	uint64_t position;

	unfiltered_iterator_close(source->partition);
	source->partition = NULL;
	if (partition_iterator_next(source->scan, &source->partition, err) < 0)
		return -1;
	if (merger->pick->scrub != NULL)
		return merger->progress(merger->progress_context, 0, err);
	position = sstable_scan_position(source->scan);
	if (position - source->position >= COMPACTION_PROGRESS_BYTES || source->partition == NULL) {
		uint64_t bytes = position - source->position;

		source->position = position;
		return merger->progress(merger->progress_context, bytes, err);
	}
	return 0;
}

/* A cleanup leaves out what this node does not own. */
static bool
compaction_keeps(const struct compaction_pick *pick, int64_t token)
{
	for (uint32_t i = 0; i < pick->keep_count; i++)
		if (stream_range_has(&pick->keep[i], token))
			return true;
	return pick->keep == NULL;
}

static int
compaction_source_next(
    struct compaction_merger *merger, struct compaction_source *source, struct error *err)
{
	int rc;

	do {
		rc = compaction_source_step(merger, source, err);
	} while (rc == 0 && source->partition != NULL &&
	    !compaction_keeps(merger->pick, source->partition->token));
	return rc;
}

static int
compaction_key_compare(const struct unfiltered_iterator *a, const struct unfiltered_iterator *b)
{
	if (a->token != b->token)
		return a->token < b->token ? -1 : 1;
	return slice_compare(a->key, b->key);
}

/* The lowest key's partitions go into merger->meeting, their sources are remembered as bits. */
static uint32_t
compaction_meet(struct compaction_merger *merger, bool *is_meeting)
{
	const struct unfiltered_iterator *lowest = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < merger->pick->count; i++) {
		const struct unfiltered_iterator *each = merger->sources[i].partition;

		if (each != NULL && (lowest == NULL || compaction_key_compare(each, lowest) < 0))
			lowest = each;
	}
	for (uint32_t i = 0; i < merger->pick->count; i++) {
		struct unfiltered_iterator *each = merger->sources[i].partition;

		is_meeting[i] = each != NULL && compaction_key_compare(each, lowest) == 0;
		if (is_meeting[i]) {
			merger->meeting[count++] = each;
			/* The merge takes it over. */
		}
	}
	return count;
}

/* The partition as the other SSTables have it, *out NULL where none does. */
static int
compaction_shadow(struct compaction_merger *merger, const struct unfiltered_iterator *partition,
    struct unfiltered_iterator **out, struct error *err)
{
	const struct table_view *view = merger->others;
	struct arena *arena = &merger->arena;
	struct read_command *command = arena_zalloc(arena, sizeof(*command));
	struct unfiltered_iterator **found =
	    arena_alloc(arena, (view->sstable_count + 1) * sizeof(*found));
	size_t count = 0;
	int rc = 0;

	*out = NULL;
	if (command == NULL || found == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to collect garbage");
	command->table = merger->metadata;
	command->key = partition->key;
	command->token = partition->token;
	command->clustering.with_static = true;
	command->row_limit = command->per_partition_limit = READ_LIMIT_NONE;
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		struct sstable *sstable = view->sstables[i];
		const struct sstable_stats *stats = sstable_stats(sstable, NULL);

		if (compaction_is_input(merger->pick, sstable) || stats == NULL ||
		    partition->token < stats->first_token || partition->token > stats->last_token)
			continue;
		rc = sstable_read(sstable, command, arena, &found[count], err);
		if (rc == 0 && found[count] != NULL)
			count++;
	}
	if (rc == 0 && count > 0)
		return unfiltered_merge(found, count, arena, out, err);
	for (size_t i = 0; i < count; i++)
		unfiltered_iterator_close(found[i]);
	return rc;
}

/* *merged without what the others delete; closed on failure. */
static int
compaction_collect_garbage(
    struct compaction_merger *merger, struct unfiltered_iterator **merged, struct error *err)
{
	struct unfiltered_iterator *shadow;

	if (compaction_shadow(merger, *merged, &shadow, err) != 0) {
		unfiltered_iterator_close(*merged);
		return -1;
	}
	if (shadow == NULL)
		return 0;
	return unfiltered_without_garbage(*merged, shadow,
	    merger->pick->garbage == COMPACTION_GARBAGE_CELLS, &merger->arena, merged, err);
}

/* Is it time for the next file? Each of those that halve is, but for the last, of at least the least size. */
static bool
compaction_is_file_full(struct compaction_merger *merger)
{
	const struct compaction_pick *pick = merger->pick;
	uint64_t written;

	if (merger->writer == NULL)
		return false;
	written = sstable_writer_disk_size(merger->writer);
	if (pick->split_bytes_min == 0)
		return pick->output_bytes_max != 0 && written >= pick->output_bytes_max;
	if (written <= merger->share || merger->share < pick->split_bytes_min ||
	    merger->splits == COMPACTION_SPLITS_MAX)
		return false;
	merger->share /= 2;
	merger->splits++;
	return true;
}

static int
compaction_write_partition(struct compaction_merger *merger, uint32_t count, struct error *err)
{
	struct unfiltered_iterator *merged, *purged;
	int rc;

	if (unfiltered_merge_transient(
		merger->meeting, count, &merger->arena, merger->turns, &merged, err) != 0)
		return -1;
	if (merger->others != NULL && compaction_collect_garbage(merger, &merged, err) != 0)
		return -1;
	purged = merged;
	if (merger->can_purge &&
	    unfiltered_purge(merged, merger->now_seconds, merger->gc_before,
		compaction_max_purgeable, merger, &merger->arena, &purged, err) != 0)
		return -1;
	if (compaction_is_file_full(merger) && compaction_close_writer(merger, err) != 0) {
		unfiltered_iterator_close(purged);
		return -1;
	}
	if (merger->writer == NULL && compaction_open_writer(merger, err) != 0) {
		unfiltered_iterator_close(purged);
		return -1;
	}
	rc = sstable_writer_append(merger->writer, purged, err);
	unfiltered_iterator_close(purged);
	return rc;
}

static int
compaction_merge_all(struct compaction_merger *merger, struct error *err)
{
	bool *is_meeting = xcalloc(merger->pick->count, sizeof(*is_meeting));
	int rc = 0;

	for (uint32_t i = 0; i < merger->pick->count && rc == 0; i++)
		rc = compaction_source_next(merger, &merger->sources[i], err);
	while (rc == 0) {
		uint32_t count = compaction_meet(merger, is_meeting);
		uint32_t last = COMPACTION_SOURCES_COUNTED - 1;

		if (count == 0)
			break;
		merger->result->merged[count <= last ? count - 1 : last]++;
		for (uint32_t i = 0; i < merger->pick->count; i++)
			if (is_meeting[i])
				merger->sources[i].partition = NULL;
		rc = compaction_write_partition(merger, count, err);
		arena_reset(&merger->arena);
		for (uint32_t i = 0; i < merger->pick->count && rc == 0; i++)
			if (is_meeting[i])
				rc = compaction_source_next(merger, &merger->sources[i], err);
	}
	free(is_meeting);
	return rc == 0 ? compaction_close_writer(merger, err) : -1;
}

static int
compaction_open_scrub(struct compaction_merger *merger, struct compaction_source *source,
    struct sstable *sstable, struct error *err)
{
	const struct sstable_context context = {.env = merger->table->store->env};

	if (sstable_open(
		&context, sstable_descriptor(sstable), merger->metadata, &source->own, err) != 0)
		return -1;
	return sstable_scrub_scan(
	    source->own, merger->metadata, merger->pick->scrub, &source->arena, &source->scan, err);
}

static int
compaction_open_sources(struct compaction_merger *merger, struct error *err)
{
	for (uint32_t i = 0; i < merger->pick->count; i++) {
		struct compaction_source *source = &merger->sources[i];

		merger->result->bytes_in += sstable_total_size(merger->pick->sstables[i]);
		merger->share += sstable_data_size(merger->pick->sstables[i]);
		if (merger->pick->scrub != NULL) {
			if (compaction_open_scrub(merger, source, merger->pick->sstables[i], err) !=
			    0)
				return -1;
			continue;
		}
		if (sstable_scan(merger->pick->sstables[i], NULL, merger->metadata,
			SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT |
			    (merger->others == NULL ? SSTABLE_SCAN_RAW : 0),
			&source->arena, &source->scan, err) != 0)
			return -1;
	}
	merger->share /= 2;
	return 0;
}

int
compaction_merge(struct table_store *table, const struct compaction_pick *pick,
    struct lifecycle *lifecycle, compaction_progress_fn progress, void *context,
    struct compaction_result *result, struct error *err)
{
	struct compaction_merger merger = {
	    .table = table,
	    .pick = pick,
	    .metadata = atomic_load(&table->metadata),
	    .lifecycle = lifecycle,
	    .progress = progress,
	    .progress_context = context,
	    .result = result,
	    .now_seconds = env_wall_us(table->store->env) / 1000000,
	};
	int rc;

	if (pick->garbage != COMPACTION_NO_GARBAGE)
		merger.others = table_view_acquire(table);
	merger.gc_before = compaction_gc_before(merger.metadata, merger.now_seconds);
	merger.sources = xcalloc(pick->count, sizeof(*merger.sources));
	merger.meeting = xcalloc(pick->count, sizeof(*merger.meeting));
	arena_init(&merger.arena, 64 << 10);
	arena_init(&merger.turns[0], 16 << 10);
	arena_init(&merger.turns[1], 16 << 10);
	for (uint32_t i = 0; i < pick->count; i++)
		arena_init(&merger.sources[i].arena, 64 << 10);
	compaction_prepare_options(&merger);
	merger.can_purge = merger.can_purge && !pick->keeps_all;
	rc = compaction_open_sources(&merger, err);
	if (rc == 0)
		rc = compaction_merge_all(&merger, err);
	sstable_writer_abort(merger.writer);
	for (uint32_t i = 0; i < pick->count; i++) {
		unfiltered_iterator_close(merger.sources[i].partition);
		partition_iterator_close(merger.sources[i].scan);
		sstable_unref(merger.sources[i].own);
		arena_fini(&merger.sources[i].arena);
	}
	arena_fini(&merger.arena);
	arena_fini(&merger.turns[0]);
	arena_fini(&merger.turns[1]);
	free(merger.sources);
	free(merger.meeting);
	table_view_release(merger.others);
	free(merger.intervals);
	return rc;
}
