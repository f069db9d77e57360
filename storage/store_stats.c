/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/compaction.h"
#include "base/hash.h"
#include "storage/snapshot.h"
#include "storage/store_internal.h"

/* What operators ask of the store: numbers, copied out. */

struct table_store *
store_find_table(struct store *store, const char *keyspace, const char *name)
{
	struct table_store *found = NULL;

	lock_take(&store->tables_lock);
	for (uint32_t i = 0; i < store->table_capacity && found == NULL; i++) {
		struct table_store *each = store->tables[i];

		if (each != NULL && !atomic_load(&each->is_dropped) &&
		    strcmp(each->keyspace, keyspace) == 0 && strcmp(each->name, name) == 0)
			found = each;
	}
	lock_drop(&store->tables_lock);
	return found;
}

const char *
table_store_keyspace(const struct table_store *table)
{
	return table->keyspace;
}

const char *
table_store_name(const struct table_store *table)
{
	return table->name;
}

_Atomic(void *) *
table_store_user(struct table_store *table)
{
	return &table->user;
}

const struct uuid *
table_store_id(const struct table_store *table)
{
	return &table->id;
}

/* Add one SSTable's numbers; the sums that means are made of are kept by the caller. */
static void
store_add_sstable(struct sstable *sstable, int64_t gc_before, struct store_table_stats *out,
    uint64_t *compressed, uint64_t *uncompressed, double *droppable)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);
	const struct sstable_repair *repair = sstable_repair(sstable, NULL);
	struct sstable_counters counters;
	int32_t level = sstable_level(sstable);

	out->sstables++;
	if (level >= 0 && level < STORE_LEVELS) {
		out->sstables_in_level[level]++;
		out->bytes_in_level[level] += sstable_total_size(sstable);
	}
	if (repair != NULL && repair->has_pending_repair)
		out->pending_repair_bytes += sstable_uncompressed_size(sstable);
	else if (repair != NULL && repair->repaired_at != 0)
		out->repaired_bytes += sstable_uncompressed_size(sstable);
	else
		out->unrepaired_bytes += sstable_uncompressed_size(sstable);
	out->live_bytes += sstable_total_size(sstable);
	out->estimated_partitions += sstable_estimated_keys(sstable);
	out->filter_bytes += sstable_filter_memory(sstable);
	out->summary_bytes += sstable_summary_memory(sstable);
	out->compression_bytes += sstable_compression_memory(sstable);
	sstable_counters(sstable, &counters);
	out->filter_false_positives += counters.filter_false_positives;
	out->filter_true_positives += counters.filter_true_positives;
	if (sstable_compression_ratio(sstable) >= 0) {
		*compressed += sstable_data_size(sstable);
		*uncompressed += sstable_uncompressed_size(sstable);
	}
	*droppable += sstable_droppable_ratio(sstable, gc_before);
	if (stats == NULL)
		return;
	for (uint32_t i = 0; i + 1 < stats->partition_sizes.count; i++) {
		uint64_t offset = (uint64_t)stats->partition_sizes.offsets[i];
		/* The least that falls into the bucket. */
		uint64_t least = i == 0 ? 0 : (uint64_t)stats->partition_sizes.offsets[i - 1] + 1;

		if (stats->partition_sizes.counts[i] == 0)
			continue;
		if (out->partition_bytes_min == 0 || least < out->partition_bytes_min)
			out->partition_bytes_min = least;
		if (offset > out->partition_bytes_max)
			out->partition_bytes_max = offset;
		out->partition_bytes_mean += offset * (uint64_t)stats->partition_sizes.counts[i];
	}
}

uint64_t
store_live_bytes(struct store *store)
{
	struct table_store **tables;
	uint64_t bytes = 0;
	uint32_t count;

	tables = store_tables(store, &count);
	for (uint32_t t = 0; t < count; t++) {
		struct table_view *view = table_view_acquire(tables[t]);

		for (uint32_t i = 0; i < view->sstable_count; i++)
			bytes += sstable_total_size(view->sstables[i]);
		table_view_release(view);
	}
	free(tables);
	return bytes;
}

void
store_count_read(struct store *store, const struct table_metadata *metadata, uint64_t live_rows,
    uint64_t tombstones)
{
	struct table_store *table = store_table(store, metadata);
	uint64_t times = 1;

	if (table == NULL)
		return;
	/* The usual read is counted as its latency is, the one that matters always. */
	if (live_rows <= 1 && tombstones == 0) {
		if (atomic_load_explicit(&table->stats.reads, memory_order_relaxed) %
			STORE_READ_SAMPLE !=
		    1)
			return;
		times = STORE_READ_SAMPLE;
	}
	histogram_add_many(&table->stats.live_rows_per_read, live_rows, times);
	histogram_add_many(&table->stats.tombstones_per_read, tombstones, times);
}

void
store_count_contention(struct store *store, const struct table_metadata *metadata, struct slice key)
{
	struct table_store *table = store_table(store, metadata);

	if (table != NULL && sampler_is_on(&table->samplers[STORE_SAMPLE_CAS_CONTENTIONS]))
		sampler_add(&table->samplers[STORE_SAMPLE_CAS_CONTENTIONS], key);
}

void
store_count_speculative_retry(struct store *store, const struct table_metadata *metadata)
{
	struct table_store *table = store_table(store, metadata);

	if (table != NULL)
		atomic_fetch_add_explicit(
		    &table->stats.speculative_retries, 1, memory_order_relaxed);
}

void
store_table_stats(struct store *store, struct table_store *table, struct store_table_stats *out)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	int64_t gc_before = env_wall_us(store->env) / 1000000 - metadata->options.gc_grace_seconds;
	struct table_view *view = table_view_acquire(table);
	uint64_t compressed = 0, uncompressed = 0;
	double droppable = 0;

	*out = (struct store_table_stats){
	    .keyspace = table->keyspace,
	    .name = table->name,
	    .id = table->id,
	    .reads = atomic_load(&table->stats.reads),
	    .ranges = atomic_load(&table->stats.ranges),
	    .writes = atomic_load(&table->stats.writes),
	    .read_us = &table->stats.read_us,
	    .range_us = &table->stats.range_us,
	    .write_us = &table->stats.write_us,
	    .reads_per_second = meter_rate(&table->stats.read_rate),
	    .ranges_per_second = meter_rate(&table->stats.range_rate),
	    .writes_per_second = meter_rate(&table->stats.write_rate),
	    .sstables_per_read = &table->stats.sstables_per_read,
	    .tombstones_per_read = &table->stats.tombstones_per_read,
	    .live_rows_per_read = &table->stats.live_rows_per_read,
	    .memtable_switches = atomic_load(&table->stats.flushes),
	    .bytes_flushed = atomic_load(&table->stats.bytes_flushed),
	    .bytes_compacted = atomic_load(&table->stats.bytes_compacted),
	    .speculative_retries = atomic_load(&table->stats.speculative_retries),
	    .compression_ratio = -1,
	    .is_leveled = metadata->options.strategy == COMPACTION_LEVELED,
	};
	for (uint32_t i = 0; i < view->sstable_count; i++)
		store_add_sstable(
		    view->sstables[i], gc_before, out, &compressed, &uncompressed, &droppable);
	if (uncompressed > 0)
		out->compression_ratio = (double)compressed / (double)uncompressed;
	if (out->estimated_partitions > 0)
		out->partition_bytes_mean /= out->estimated_partitions;
	if (out->sstables > 0)
		out->droppable_tombstone_ratio = droppable / out->sstables;
	for (uint32_t i = 0; i < view->memtable_count; i++) {
		out->memtable_partitions += memtable_partition_count(view->memtables[i]);
		out->memtable_rows += memtable_row_count(view->memtables[i]);
		out->memtable_bytes += memtable_bytes(view->memtables[i]);
	}
	out->pending_flushes = view->memtable_count - 1;
	table_view_release(view);
	out->total_bytes = out->live_bytes;
	out->pending_compactions = store_pending_compactions(store, table);
	out->snapshot_bytes = snapshot_true_bytes(store, table);
}

void
store_range_estimate(struct store *store, struct table_store *table, int64_t left, int64_t right,
    uint64_t *partitions, uint64_t *mean_bytes)
{
	struct table_view *view = table_view_acquire(table);
	double bytes = 0, count = 0;

	(void)store;
	*partitions = 0;
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		struct sstable *sstable = view->sstables[i];
		const struct sstable_stats *stats = sstable_stats(sstable, NULL);

		if (stats == NULL || stats->last_token <= left ||
		    (right != INT64_MIN && stats->first_token > right))
			continue;
		*partitions += sstable_estimated_keys_in(sstable, left, right);
		for (uint32_t k = 0; k + 1 < stats->partition_sizes.count; k++) {
			double times = (double)stats->partition_sizes.counts[k];

			bytes += times * (double)stats->partition_sizes.offsets[k];
			count += times;
		}
	}
	*mean_bytes = count > 0 ? (uint64_t)(bytes / count) : 0;
	table_view_release(view);
}

void
store_sstable_reads(
    struct store *store, struct table_store *table, store_sstable_reads_fn each, void *argument)
{
	struct table_view *view = table_view_acquire(table);

	(void)store;
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_id *id = &sstable_descriptor(view->sstables[i])->id;
		struct sstable_counters counters;
		char text[SSTABLE_ID_TEXT_SIZE];

		sstable_counters(view->sstables[i], &counters);
		sstable_id_format(id, text);
		each(argument, id->is_uuid ? 0 : id->generation, text, counters.reads);
	}
	table_view_release(view);
}

void
store_key_samples(
    struct table_store *table, void (*each)(void *argument, int64_t token), void *argument)
{
	struct table_view *view = table_view_acquire(table);

	for (uint32_t i = 0; i < view->sstable_count; i++)
		sstable_key_samples(view->sstables[i], each, argument);
	table_view_release(view);
}

static void
store_add_buckets(const struct sstable_histogram *from, struct histogram *to)
{
	for (uint32_t i = 0; i + 1 < from->count; i++)
		if (from->counts[i] > 0)
			histogram_add_many(
			    to, (uint64_t)from->offsets[i], (uint64_t)from->counts[i]);
}

void
store_partition_histograms(struct store *store, struct table_store *table, struct histogram *sizes,
    struct histogram *cells)
{
	struct table_view *view = table_view_acquire(table);

	(void)store;
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_stats *stats = sstable_stats(view->sstables[i], NULL);

		if (stats == NULL)
			continue;
		store_add_buckets(&stats->partition_sizes, sizes);
		store_add_buckets(&stats->cells_per_partition, cells);
	}
	table_view_release(view);
}

int
store_sstables_for_key(struct store *store, struct table_store *table, struct slice key,
    void (*each)(void *argument, const char *path, int32_t level), void *argument,
    struct error *err)
{
	struct table_view *view = table_view_acquire(table);
	struct read_command command = {
	    .table = atomic_load(&table->metadata),
	    .key = key,
	    .token = murmur3_token(key),
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	};
	struct arena arena;
	int rc = 0;

	(void)store;
	arena_init(&arena, 64 << 10);
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		struct unfiltered_iterator *found;
		char path[SSTABLE_PATH_MAX];

		rc = sstable_read(view->sstables[i], &command, &arena, &found, err);
		if (rc != 0 || found == NULL)
			continue;
		unfiltered_iterator_close(found);
		rc = sstable_path(sstable_descriptor(view->sstables[i]), SSTABLE_DATA, path, err);
		if (rc == 0)
			each(argument, path, sstable_level(view->sstables[i]));
	}
	arena_fini(&arena);
	table_view_release(view);
	return rc;
}

void
store_commitlog_stats(struct store *store, struct store_commitlog_stats *out)
{
	struct commitlog_stats stats;

	commitlog_stats(store->commitlog, &stats);
	*out = (struct store_commitlog_stats){
	    .total_bytes = stats.total_bytes,
	    .segments = stats.segments,
	    .pending = stats.pending,
	    .completed = stats.completed,
	    .sync_us = stats.sync_us,
	};
}

uint64_t
store_memtable_bytes(const struct store *store)
{
	return atomic_load(&store->memtable_bytes);
}

bool
store_sample_start(struct table_store *table, enum store_sampler which, uint32_t capacity)
{
	return sampler_start(&table->samplers[which], capacity);
}

void
store_sample_finish(struct table_store *table, enum store_sampler which, uint32_t limit,
    uint64_t *seen, void (*each)(void *argument, const struct store_sample *sample), void *argument)
{
	struct sampler_entry *entries;
	uint32_t count = sampler_finish(&table->samplers[which], limit, &entries, seen);

	for (uint32_t i = 0; i < count; i++) {
		struct store_sample sample = {
		    slice_of(entries[i].key, entries[i].size), entries[i].count, entries[i].error};

		each(argument, &sample);
	}
	free(entries);
}
