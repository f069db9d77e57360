/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/histogram.h"
#include "storage/statistics.h"

void
statistics_collector_init(struct statistics_collector *collector)
{
	memset(collector, 0, sizeof(*collector));
	collector->min_timestamp = INT64_MAX;
	collector->max_timestamp = INT64_MIN;
	collector->min_local_deletion_time = INT32_MAX;
	collector->max_local_deletion_time = INT32_MIN;
	collector->min_ttl = INT32_MAX;
	collector->max_ttl = INT32_MIN;
	statistics_cardinality_init(&collector->cardinality);
	buffer_init(&collector->min_position);
	buffer_init(&collector->max_position);
	buffer_init(&collector->min_values);
	buffer_init(&collector->max_values);
	buffer_init(&collector->scratch);
}

void
statistics_collector_fini(struct statistics_collector *collector)
{
	statistics_cardinality_fini(&collector->cardinality);
	buffer_fini(&collector->min_position);
	buffer_fini(&collector->max_position);
	buffer_fini(&collector->min_values);
	buffer_fini(&collector->max_values);
	buffer_fini(&collector->scratch);
}

/* Deletion times come in runs (one TTL, one batch of deletes): a run costs one look-up. */
static void
statistics_collect_drop_time(struct statistics_collector *collector, int32_t time)
{
	if (collector->last_drop_count > 0 && collector->last_drop_time == time) {
		collector->last_drop_count++;
		return;
	}
	if (collector->last_drop_count > 0)
		statistics_drop_times_add(
		    &collector->drop_times, collector->last_drop_time, collector->last_drop_count);
	collector->last_drop_time = time;
	collector->last_drop_count = 1;
}

static inline void
statistics_collect_timestamp(struct statistics_collector *collector, int64_t timestamp)
{
	if (timestamp < collector->min_timestamp)
		collector->min_timestamp = timestamp;
	if (timestamp > collector->max_timestamp)
		collector->max_timestamp = timestamp;
}

static inline void
statistics_collect_local_deletion_time(struct statistics_collector *collector, int32_t time)
{
	if (time < collector->min_local_deletion_time)
		collector->min_local_deletion_time = time;
	if (time > collector->max_local_deletion_time)
		collector->max_local_deletion_time = time;
	if (time != LOCAL_DELETION_TIME_NONE)
		statistics_collect_drop_time(collector, time);
}

static inline void
statistics_collect_ttl(struct statistics_collector *collector, int32_t ttl)
{
	if (ttl < collector->min_ttl)
		collector->min_ttl = ttl;
	if (ttl > collector->max_ttl)
		collector->max_ttl = ttl;
}

void
statistics_collect_deletion(struct statistics_collector *collector, struct deletion deletion)
{
	if (deletion_is_live(deletion))
		return;
	collector->partition_tombstones++;
	statistics_collect_timestamp(collector, deletion.marked_for_delete_at);
	statistics_collect_local_deletion_time(collector, deletion.local_deletion_time);
}

void
statistics_collect_row(struct statistics_collector *collector, const struct row *row)
{
	const struct column_metadata *last = NULL;
	int64_t columns = 0;

	if (row->liveness.timestamp != TIMESTAMP_NONE) {
		statistics_collect_timestamp(collector, row->liveness.timestamp);
		statistics_collect_ttl(collector, row->liveness.ttl);
		statistics_collect_local_deletion_time(
		    collector, row->liveness.local_expiration_time);
	}
	statistics_collect_deletion(collector, row->deletion);
	for (uint32_t i = 0; i < row->complex_deletion_count; i++)
		statistics_collect_deletion(collector, row->complex_deletions[i].deletion);
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];

		columns += cell->column != last;
		last = cell->column;
		/* Most cells were written with their row and say nothing that it did not say. */
		if (cell->timestamp == row->liveness.timestamp && cell->ttl == row->liveness.ttl &&
		    cell->ttl == TTL_NONE &&
		    cell->local_deletion_time == LOCAL_DELETION_TIME_NONE &&
		    row->liveness.local_expiration_time == LOCAL_DELETION_TIME_NONE &&
		    row->liveness.timestamp != TIMESTAMP_NONE)
			continue;
		statistics_collect_timestamp(collector, cell->timestamp);
		statistics_collect_ttl(collector, cell->ttl);
		statistics_collect_local_deletion_time(collector, cell->local_deletion_time);
		collector->partition_tombstones += cell_is_tombstone(cell);
	}
	collector->partition_cells += row->cell_count;
	collector->total_columns_set += columns;
	collector->total_rows++;
}

void
statistics_collect_raw(struct statistics_collector *collector, const struct row_raw *raw)
{
	statistics_collect_timestamp(collector, raw->min_timestamp);
	statistics_collect_timestamp(collector, raw->max_timestamp);
	if (raw->min_ttl <= raw->max_ttl) {
		statistics_collect_ttl(collector, raw->min_ttl);
		statistics_collect_ttl(collector, raw->max_ttl);
	}
	if (raw->has_lasting)
		statistics_collect_local_deletion_time(collector, LOCAL_DELETION_TIME_NONE);
	/* Beside what has a TTL it is not known which is a tombstone. */
	if (raw->min_ttl > raw->max_ttl || raw->max_ttl == TTL_NONE)
		collector->partition_tombstones += raw->local_deletion_count;
	for (uint32_t i = 0; i < raw->local_deletion_count; i++)
		statistics_collect_local_deletion_time(collector, raw->local_deletion_time);
	collector->partition_cells += raw->cell_count;
	collector->total_columns_set += raw->column_count;
	collector->total_rows++;
}

void
statistics_collect_marker(struct statistics_collector *collector, const struct marker *marker)
{
	if (bound_closes(marker->kind))
		statistics_collect_deletion(collector, marker->close);
	if (bound_opens(marker->kind))
		statistics_collect_deletion(collector, marker->open);
}

static void
statistics_keep_values(struct buffer *out, const struct slice *values, uint32_t count)
{
	buffer_clear(out);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u16(out, (uint16_t)values[i].size);
		buffer_put_slice(out, values[i]);
	}
}

void
statistics_collect_clustering(struct statistics_collector *collector,
    const struct table_metadata *table, enum bound_kind kind, const struct slice *values,
    uint32_t count)
{
	struct buffer *position = &collector->scratch;
	bool is_first = !collector->has_clustering;

	if (table->clustering_count == 0)
		return;
	buffer_clear(position);
	position_encode(table, kind, values, count, position);
	if (is_first ||
	    slice_compare(buffer_slice(position), buffer_slice(&collector->min_position)) < 0) {
		buffer_clear(&collector->min_position);
		buffer_put_slice(&collector->min_position, buffer_slice(position));
		statistics_keep_values(&collector->min_values, values, count);
		collector->min_count = count;
	}
	if (is_first ||
	    slice_compare(buffer_slice(position), buffer_slice(&collector->max_position)) > 0) {
		buffer_clear(&collector->max_position);
		buffer_put_slice(&collector->max_position, buffer_slice(position));
		statistics_keep_values(&collector->max_values, values, count);
		collector->max_count = count;
	}
	collector->has_clustering = true;
	/* Looked at each time: buffers forget it when they are cleared. */
	if (position->is_failed || collector->min_position.is_failed ||
	    collector->max_position.is_failed || collector->min_values.is_failed ||
	    collector->max_values.is_failed)
		collector->is_out_of_memory = true;
}

/* *last is the bucket of the value before: partitions of one table are much alike. */
static void
statistics_histogram_add(int64_t *counts, uint32_t buckets, uint64_t value, uint32_t *last)
{
	const uint64_t *offsets = histogram_offsets();
	uint32_t low = 0, high = buckets;

	if (*last > 0 && *last < buckets && offsets[*last - 1] < value && value <= offsets[*last]) {
		counts[*last]++;
		return;
	}
	/* The first offset that is >= value; `buckets` is the overflow bucket. */
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (offsets[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	counts[low]++;
	*last = low;
}

void
statistics_collect_partition(
    struct statistics_collector *collector, struct slice key, uint64_t size)
{
	statistics_histogram_add(
	    collector->sizes, STATISTICS_SIZE_BUCKETS, size, &collector->last_size);
	statistics_histogram_add(collector->cells, STATISTICS_CELL_BUCKETS,
	    collector->partition_cells, &collector->last_cells);
	statistics_cardinality_add(&collector->cardinality, key);
	collector->partition_cells = 0;
	collector->partition_tombstones = 0;
}

static int
statistics_finish_histogram(const int64_t *counts, uint32_t buckets, struct arena *arena,
    struct sstable_histogram *out, struct error *err)
{
	int64_t *offsets = arena_calloc(arena, buckets, sizeof(int64_t));
	int64_t *copy = arena_calloc(arena, (size_t)buckets + 1, sizeof(int64_t));

	if (offsets == NULL || copy == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a histogram");
	for (uint32_t i = 0; i < buckets; i++)
		offsets[i] = (int64_t)histogram_offsets()[i];
	memcpy(copy, counts, ((size_t)buckets + 1) * sizeof(int64_t));
	*out = (struct sstable_histogram){buckets + 1, offsets, copy};
	return 0;
}

static int
statistics_finish_clustering(const struct buffer *values, uint32_t count, struct arena *arena,
    const struct slice **out, struct error *err)
{
	struct slice *array = arena_calloc(arena, (size_t)count + 1, sizeof(struct slice));
	struct reader reader = reader_of(buffer_slice(values));

	if (array == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the clustering bounds");
	for (uint32_t i = 0; i < count; i++) {
		array[i] = arena_copy(arena, reader_bytes(&reader, reader_u16(&reader)));
		if (array[i].data == NULL)
			return error_set(
			    err, ERROR_NO_MEMORY, "no memory for the clustering bounds");
	}
	*out = array;
	return 0;
}

static int
statistics_finish_drop_times(struct statistics_collector *collector, struct arena *arena,
    struct sstable_drop_times *out, struct error *err)
{
	struct statistics_drop_times *histogram = &collector->drop_times;
	int32_t *times;
	int64_t *counts;

	if (collector->last_drop_count > 0)
		statistics_drop_times_add(
		    histogram, collector->last_drop_time, collector->last_drop_count);
	collector->last_drop_count = 0;
	statistics_drop_times_finish(histogram);
	times = arena_calloc(arena, (size_t)histogram->count + 1, sizeof(*times));
	counts = arena_calloc(arena, (size_t)histogram->count + 1, sizeof(*counts));
	if (times == NULL || counts == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a histogram");
	for (uint32_t i = 0; i < histogram->count; i++) {
		times[i] = (int32_t)histogram->times[i];
		counts[i] = histogram->counts[i];
	}
	*out = (struct sstable_drop_times){histogram->count, times, counts};
	return 0;
}

int
statistics_collector_finish(struct statistics_collector *collector, struct arena *arena,
    struct sstable_stats *out, struct error *err)
{
	bool has_times = collector->min_timestamp <= collector->max_timestamp;
	bool has_deletions =
	    collector->min_local_deletion_time <= collector->max_local_deletion_time;
	bool has_ttls = collector->min_ttl <= collector->max_ttl;

	if (collector->is_out_of_memory)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the clustering bounds");
	/* What Cassandra's trackers answer when they have seen nothing. */
	out->min_timestamp = has_times ? collector->min_timestamp : INT64_MIN;
	out->max_timestamp = has_times ? collector->max_timestamp : INT64_MAX;
	out->min_local_deletion_time =
	    has_deletions ? collector->min_local_deletion_time : LOCAL_DELETION_TIME_NONE;
	out->max_local_deletion_time =
	    has_deletions ? collector->max_local_deletion_time : LOCAL_DELETION_TIME_NONE;
	out->min_ttl = has_ttls ? collector->min_ttl : 0;
	out->max_ttl = has_ttls ? collector->max_ttl : 0;
	out->total_columns_set = collector->total_columns_set;
	out->total_rows = collector->total_rows;
	out->has_legacy_counter_shards = collector->has_legacy_counter_shards;
	out->min_clustering_count = collector->min_count;
	out->max_clustering_count = collector->max_count;
	if (statistics_finish_clustering(&collector->min_values, collector->min_count, arena,
		&out->min_clustering, err) != 0 ||
	    statistics_finish_clustering(&collector->max_values, collector->max_count, arena,
		&out->max_clustering, err) != 0)
		return -1;
	if (statistics_finish_histogram(collector->sizes, STATISTICS_SIZE_BUCKETS, arena,
		&out->partition_sizes, err) != 0 ||
	    statistics_finish_histogram(collector->cells, STATISTICS_CELL_BUCKETS, arena,
		&out->cells_per_partition, err) != 0)
		return -1;
	return statistics_finish_drop_times(collector, arena, &out->drop_times, err);
}
