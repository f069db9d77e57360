/* SPDX-License-Identifier: Apache-2.0 */
#include "server/estimates.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/meter.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/operations.h"
#include "storage/store.h"

enum {
	ESTIMATES_DELAY_SECONDS = 30, /* after the start */
	ESTIMATES_PERIOD_SECONDS = 300, /* cassandra.size_recorder_interval */
	ESTIMATES_ACTIVITY_DELAY_SECONDS = 60,
	ESTIMATES_SHORT_WINDOW = 15 * 60,
	ESTIMATES_LONG_WINDOW = 120 * 60,
	ESTIMATES_REWRITE_SECONDS = 24 * 3600, /* rows live ten days */
};

/* A table whose sizes were written: not again before they change. */
struct estimates_sizes {
	struct uuid id;
	char *keyspace, *table; /* owned */
	uint64_t hash;
	bool is_seen;
};

/* An SSTable whose activity is followed. */
struct estimates_activity {
	char *keyspace, *table; /* owned */
	char id[64];
	uint64_t generation; /* 0: it has none */
	struct meter short_rate, long_rate;
	double written_short, written_long; /* what the table says; -1: nothing */
	uint64_t written_ns;
	bool is_seen;
};

struct estimates {
	struct executor *executor; /* borrowed */
	uint64_t next_sizes_ns, next_activity_ns; /* of the thread that ticks */
	atomic_bool is_running;

	pthread_mutex_t mutex; /* one run at a time; guards what follows */
	bool has_cleared; /* what an earlier run of the server left is gone */
	struct estimates_sizes *sizes; /* owned */
	size_t size_count;
	struct estimates_activity *activities; /* owned */
	size_t activity_count;
	uint64_t activity_ns; /* when it was looked at last */
};

static const uint64_t estimates_second = 1000000000;

struct estimates *
estimates_new(struct executor *executor)
{
	struct estimates *estimates = xzalloc(sizeof(*estimates));
	uint64_t now = env_monotonic_ns(executor->env);

	estimates->executor = executor;
	estimates->next_sizes_ns = now + ESTIMATES_DELAY_SECONDS * estimates_second;
	estimates->next_activity_ns = now + ESTIMATES_ACTIVITY_DELAY_SECONDS * estimates_second;
	estimates->activity_ns = now;
	pthread_mutex_init(&estimates->mutex, NULL);
	return estimates;
}

void
estimates_free(struct estimates *estimates)
{
	if (estimates == NULL)
		return;
	for (size_t i = 0; i < estimates->size_count; i++) {
		free(estimates->sizes[i].keyspace);
		free(estimates->sizes[i].table);
	}
	for (size_t i = 0; i < estimates->activity_count; i++) {
		free(estimates->activities[i].keyspace);
		free(estimates->activities[i].table);
	}
	free(estimates->sizes);
	free(estimates->activities);
	pthread_mutex_destroy(&estimates->mutex);
	free(estimates);
}

/* ---- sizes --------------------------------------------------------------------------------------- */

struct estimates_range {
	int64_t left, right; /* INT64_MIN: the end of the ring */
	uint64_t partitions, mean_bytes;
};

/* The ranges of one type; none wraps. */
struct estimates_set {
	struct estimates_range *ranges; /* owned */
	uint32_t count;
};

enum { ESTIMATES_PRIMARY, ESTIMATES_LOCAL_PRIMARY, ESTIMATES_TYPES };

/* Takes `ranges`. */
static struct estimates_set
estimates_set_of(struct ring_range *ranges, uint32_t count)
{
	struct estimates_set set = {
	    .ranges = xcalloc((size_t)count + 1, sizeof(*set.ranges)), .count = count};

	for (uint32_t i = 0; i < count; i++) {
		set.ranges[i].left = ranges[i].left;
		set.ranges[i].right = ranges[i].right;
	}
	free(ranges);
	return set;
}

/* Each range of the keyspace is one node's primary one, so that who reads all nodes' rows sees all of it once. */
static void
estimates_sets(const struct topology *topology, const struct keyspace_metadata *keyspace,
    struct estimates_set sets[ESTIMATES_TYPES])
{
	struct ring_range *ranges;
	uint32_t count;

	count = replication_primary_ranges_of(
	    topology_replication(topology, keyspace), topology_local_peer(topology), &ranges);
	sets[ESTIMATES_PRIMARY] = estimates_set_of(ranges, count);
	count = topology_local_primary_ranges(topology, &ranges);
	sets[ESTIMATES_LOCAL_PRIMARY] = estimates_set_of(ranges, count);
}

static int
estimates_add_row(struct internal_batch *batch, bool is_old_table, const char *type,
    const char *keyspace, const char *table, const struct estimates_range *range, struct error *err)
{
	char left[24], right[24];
	uint8_t numbers[2][8];
	struct slice values[7];
	uint32_t count = 0;

	snprintf(left, sizeof(left), "%" PRId64, range->left);
	snprintf(right, sizeof(right), "%" PRId64, range->right);
	store_u64(numbers[0], range->mean_bytes);
	store_u64(numbers[1], range->partitions);
	values[count++] = slice_of_string(keyspace);
	values[count++] = slice_of_string(table);
	if (type != NULL)
		values[count++] = slice_of_string(type);
	values[count++] = slice_of_string(left);
	values[count++] = slice_of_string(right);
	values[count++] = slice_of(numbers[0], 8);
	values[count++] = slice_of(numbers[1], 8);
	return internal_batch_add(batch,
	    is_old_table
		? "INSERT INTO system.size_estimates (keyspace_name, table_name, range_start, "
		  "range_end, mean_partition_size, partitions_count) VALUES (?, ?, ?, ?, ?, ?)"
		: "INSERT INTO system.table_estimates (keyspace_name, table_name, range_type, "
		  "range_start, range_end, mean_partition_size, partitions_count) VALUES (?, ?, ?, "
		  "?, ?, ?, ?)",
	    values, count, err);
}

/* The old rows of a table go, those of `sets` come, in one change. */
static int
estimates_write_sizes(struct executor *executor, const char *keyspace, const char *table,
    const struct estimates_set sets[ESTIMATES_TYPES], struct error *err)
{
	static const char *const types[ESTIMATES_TYPES] = {"primary", "local_primary"};
	struct slice names[2] = {slice_of_string(keyspace), slice_of_string(table)};
	struct internal_batch *batch = internal_batch_new(executor);
	int rc;

	rc = internal_batch_add(batch,
	    "DELETE FROM system.size_estimates WHERE keyspace_name = ? AND table_name = ?", names,
	    2, err);
	if (rc == 0)
		rc = internal_batch_add(batch,
		    "DELETE FROM system.table_estimates WHERE keyspace_name = ? AND table_name = ?",
		    names, 2, err);
	for (int k = 0; k < ESTIMATES_TYPES; k++)
		for (uint32_t i = 0; i < sets[k].count && rc == 0; i++) {
			const struct estimates_range *range = &sets[k].ranges[i];

			rc = estimates_add_row(batch, false, types[k], keyspace, table, range, err);
			if (rc == 0 && k == ESTIMATES_PRIMARY)
				rc = estimates_add_row(
				    batch, true, NULL, keyspace, table, range, err);
		}
	if (rc == 0)
		rc = internal_batch_run(batch, err);
	internal_batch_free(batch);
	return rc;
}

static struct estimates_sizes *
estimates_find_sizes(struct estimates *estimates, const struct table_store *table)
{
	struct estimates_sizes *sizes;

	for (size_t i = 0; i < estimates->size_count; i++)
		if (uuid_equal(&estimates->sizes[i].id, table_store_id(table)))
			return &estimates->sizes[i];
	estimates->sizes =
	    xrealloc(estimates->sizes, (estimates->size_count + 1) * sizeof(*estimates->sizes));
	sizes = &estimates->sizes[estimates->size_count++];
	*sizes = (struct estimates_sizes){.id = *table_store_id(table),
	    .keyspace = xstrdup(table_store_keyspace(table)),
	    .table = xstrdup(table_store_name(table))};
	return sizes;
}

/* Of an earlier run of the server: tables may have been dropped since. */
static int
estimates_clear(struct estimates *estimates, struct error *err)
{
	static const char *const queries[][2] = {
	    {"SELECT keyspace_name FROM system.size_estimates",
		"DELETE FROM system.size_estimates WHERE keyspace_name = ?"},
	    {"SELECT keyspace_name FROM system.table_estimates",
		"DELETE FROM system.table_estimates WHERE keyspace_name = ?"},
	};

	for (int i = 0; i < 2; i++) {
		struct slice cells[INTERNAL_COLUMNS_MAX];
		struct internal_rows rows;
		char last[64] = "";
		int rc = 0;

		if (internal_select(estimates->executor, queries[i][0], NULL, 0, &rows, err) != 0)
			return -1;
		while (rc == 0 && internal_rows_next(&rows, cells)) {
			if (slice_equal_string(cells[0], last) || cells[0].size >= sizeof(last))
				continue;
			memcpy(last, cells[0].data, cells[0].size);
			last[cells[0].size] = '\0';
			rc = internal_execute(estimates->executor, queries[i][1], cells, 1, err);
		}
		internal_rows_fini(&rows);
		if (rc != 0)
			return -1;
	}
	estimates->has_cleared = true;
	return 0;
}

static bool
estimates_is_local(const char *keyspace)
{
	return schema_is_local_keyspace(slice_of_string(keyspace));
}

static int
estimates_write_table(struct estimates *estimates, struct table_store *table,
    struct estimates_set sets[ESTIMATES_TYPES], struct error *err)
{
	struct estimates_sizes *sizes = estimates_find_sizes(estimates, table);
	uint64_t hash = 0;

	for (int k = 0; k < ESTIMATES_TYPES; k++) {
		for (uint32_t i = 0; i < sets[k].count; i++)
			store_range_estimate(estimates->executor->store, table,
			    sets[k].ranges[i].left, sets[k].ranges[i].right,
			    &sets[k].ranges[i].partitions, &sets[k].ranges[i].mean_bytes);
		hash = hash * 31 +
		    hash_bytes(slice_of(
			(const uint8_t *)sets[k].ranges, sets[k].count * sizeof(*sets[k].ranges)));
	}
	sizes->is_seen = true;
	if (hash == sizes->hash)
		return 0;
	if (estimates_write_sizes(estimates->executor, sizes->keyspace, sizes->table, sets, err) !=
	    0)
		return -1;
	sizes->hash = hash;
	return 0;
}

static int
estimates_forget_dropped(struct estimates *estimates, struct error *err)
{
	const struct estimates_set none[ESTIMATES_TYPES] = {{NULL, 0}, {NULL, 0}};

	for (size_t i = 0; i < estimates->size_count;) {
		struct estimates_sizes *sizes = &estimates->sizes[i];

		if (sizes->is_seen) {
			i++;
			continue;
		}
		if (estimates_write_sizes(
			estimates->executor, sizes->keyspace, sizes->table, none, err) != 0)
			return -1;
		free(sizes->keyspace);
		free(sizes->table);
		*sizes = estimates->sizes[--estimates->size_count];
	}
	return 0;
}

static int
estimates_run_table(struct estimates *estimates, const struct topology *topology,
    struct table_store *table, struct error *err)
{
	struct schema *schema = operations_schema(estimates->executor);
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(schema, slice_of_string(table_store_keyspace(table)));
	struct estimates_set sets[ESTIMATES_TYPES];
	int rc = 0;

	/* NULL: it was dropped a moment ago. */
	if (keyspace != NULL) {
		estimates_sets(topology, keyspace, sets);
		rc = estimates_write_table(estimates, table, sets, err);
		for (int k = 0; k < ESTIMATES_TYPES; k++)
			free(sets[k].ranges);
	}
	schema_unref(schema);
	return rc;
}

static int
estimates_run_sizes(struct estimates *estimates, struct error *err)
{
	struct cluster *cluster = estimates->executor->node->cluster;
	const struct topology *topology;
	struct table_store **tables;
	uint32_t count;
	int rc = 0;

	if (!estimates->has_cleared && estimates_clear(estimates, err) != 0)
		return -1;
	topology = topology_acquire(cluster->topology);
	tables = store_tables(estimates->executor->store, &count);
	for (size_t i = 0; i < estimates->size_count; i++)
		estimates->sizes[i].is_seen = false;
	for (uint32_t i = 0; i < count && rc == 0; i++)
		if (!estimates_is_local(table_store_keyspace(tables[i])))
			rc = estimates_run_table(estimates, topology, tables[i], err);
	if (rc == 0)
		rc = estimates_forget_dropped(estimates, err);
	free(tables);
	topology_release(cluster->topology, topology);
	return rc;
}

/* ---- activity ------------------------------------------------------------------------------------------ */

static double
estimates_double(struct slice cell)
{
	uint64_t bits;
	double value;

	if (cell.size != 8)
		return 0;
	bits = load_u64(cell.data);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* What was written before a restart goes on. */
static void
estimates_restore(struct executor *executor, struct estimates_activity *activity)
{
	struct slice values[3] = {slice_of_string(activity->keyspace),
	    slice_of_string(activity->table), slice_of_string(activity->id)};
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;
	struct error err;

	if (internal_select(executor,
		"SELECT rate_15m, rate_120m FROM system.sstable_activity_v2 WHERE keyspace_name = "
		"? "
		"AND table_name = ? AND id = ?",
		values, 3, &rows, &err) != 0)
		return;
	if (internal_rows_next(&rows, cells)) {
		activity->short_rate.rate = activity->written_short = estimates_double(cells[0]);
		activity->long_rate.rate = activity->written_long = estimates_double(cells[1]);
		activity->short_rate.has_rate = activity->long_rate.has_rate = true;
	}
	internal_rows_fini(&rows);
}

static int
estimates_write_activity(
    struct executor *executor, struct estimates_activity *activity, struct error *err)
{
	double rates[2] = {meter_rate(&activity->short_rate), meter_rate(&activity->long_rate)};
	uint8_t bytes[2][8], generation[4];
	struct slice values[5] = {slice_of_string(activity->keyspace),
	    slice_of_string(activity->table), slice_of_string(activity->id), slice_of(bytes[0], 8),
	    slice_of(bytes[1], 8)};

	uint64_t now = env_monotonic_ns(executor->env);

	if (rates[0] == activity->written_short && rates[1] == activity->written_long &&
	    now - activity->written_ns < ESTIMATES_REWRITE_SECONDS * estimates_second)
		return 0;
	for (int i = 0; i < 2; i++) {
		uint64_t bits;

		memcpy(&bits, &rates[i], sizeof(bits));
		store_u64(bytes[i], bits);
	}
	if (internal_execute(executor,
		"INSERT INTO system.sstable_activity_v2 (keyspace_name, table_name, id, rate_15m, "
		"rate_120m) VALUES (?, ?, ?, ?, ?) USING TTL 864000",
		values, 5, err) != 0)
		return -1;
	store_u32(generation, (uint32_t)activity->generation);
	values[2] = slice_of(generation, 4);
	if (activity->generation > 0 && activity->generation <= INT32_MAX &&
	    internal_execute(executor,
		"INSERT INTO system.sstable_activity (keyspace_name, columnfamily_name, "
		"generation, rate_15m, rate_120m) VALUES (?, ?, ?, ?, ?) USING TTL 864000",
		values, 5, err) != 0)
		return -1;
	activity->written_short = rates[0];
	activity->written_long = rates[1];
	activity->written_ns = now;
	return 0;
}

static int
estimates_delete_activity(
    struct executor *executor, const struct estimates_activity *activity, struct error *err)
{
	uint8_t generation[4];
	struct slice values[3] = {slice_of_string(activity->keyspace),
	    slice_of_string(activity->table), slice_of_string(activity->id)};

	if (internal_execute(executor,
		"DELETE FROM system.sstable_activity_v2 WHERE keyspace_name = ? AND table_name = ? "
		"AND id = ?",
		values, 3, err) != 0)
		return -1;
	if (activity->generation == 0 || activity->generation > INT32_MAX)
		return 0;
	store_u32(generation, (uint32_t)activity->generation);
	values[2] = slice_of(generation, 4);
	return internal_execute(executor,
	    "DELETE FROM system.sstable_activity WHERE keyspace_name = ? AND columnfamily_name = ? "
	    "AND generation = ?",
	    values, 3, err);
}

struct estimates_walk {
	struct estimates *estimates;
	const char *keyspace, *table;
	double seconds;
};

static void
estimates_see_sstable(void *argument, uint64_t generation, const char *id, uint64_t reads)
{
	struct estimates_walk *walk = argument;
	struct estimates *estimates = walk->estimates;
	struct estimates_activity *activity = NULL;

	for (size_t i = 0; i < estimates->activity_count && activity == NULL; i++) {
		struct estimates_activity *each = &estimates->activities[i];

		if (strcmp(each->id, id) == 0 && strcmp(each->table, walk->table) == 0 &&
		    strcmp(each->keyspace, walk->keyspace) == 0)
			activity = each;
	}
	if (activity == NULL) {
		estimates->activities = xrealloc(estimates->activities,
		    (estimates->activity_count + 1) * sizeof(*estimates->activities));
		activity = &estimates->activities[estimates->activity_count++];
		*activity = (struct estimates_activity){.keyspace = xstrdup(walk->keyspace),
		    .table = xstrdup(walk->table),
		    .generation = generation,
		    .written_short = -1,
		    .written_long = -1};
		snprintf(activity->id, sizeof(activity->id), "%s", id);
		estimates_restore(estimates->executor, activity);
	}
	activity->is_seen = true;
	meter_tick(&activity->short_rate, reads, walk->seconds, ESTIMATES_SHORT_WINDOW);
	meter_tick(&activity->long_rate, reads, walk->seconds, ESTIMATES_LONG_WINDOW);
}

static int
estimates_run_activity(struct estimates *estimates, struct error *err)
{
	struct executor *executor = estimates->executor;
	uint64_t now = env_monotonic_ns(executor->env);
	struct estimates_walk walk = {.estimates = estimates,
	    .seconds = (double)(now - estimates->activity_ns) / (double)estimates_second};
	struct table_store **tables;
	uint32_t count;

	estimates->activity_ns = now;
	for (size_t i = 0; i < estimates->activity_count; i++)
		estimates->activities[i].is_seen = false;
	tables = store_tables(executor->store, &count);
	for (uint32_t i = 0; i < count; i++) {
		walk.keyspace = table_store_keyspace(tables[i]);
		walk.table = table_store_name(tables[i]);
		if (!estimates_is_local(walk.keyspace))
			store_sstable_reads(
			    executor->store, tables[i], estimates_see_sstable, &walk);
	}
	free(tables);
	for (size_t i = 0; i < estimates->activity_count;) {
		struct estimates_activity *activity = &estimates->activities[i];

		if (activity->is_seen) {
			if (estimates_write_activity(executor, activity, err) != 0)
				return -1;
			i++;
			continue;
		}
		if (estimates_delete_activity(executor, activity, err) != 0)
			return -1;
		free(activity->keyspace);
		free(activity->table);
		*activity = estimates->activities[--estimates->activity_count];
	}
	return 0;
}

int
estimates_refresh(struct estimates *estimates, struct error *err)
{
	int rc;

	pthread_mutex_lock(&estimates->mutex);
	rc = estimates_run_sizes(estimates, err);
	if (rc == 0)
		rc = estimates_run_activity(estimates, err);
	pthread_mutex_unlock(&estimates->mutex);
	return rc;
}

/* ---- when ------------------------------------------------------------------------------------------------ */

static void
estimates_run(struct estimates *estimates, const char *what,
    int (*run)(struct estimates *estimates, struct error *err))
{
	struct error err;

	pthread_mutex_lock(&estimates->mutex);
	if (run(estimates, &err) != 0 && err.code != ERROR_SHUTDOWN)
		log_warn("%s: %s", what, err.text);
	pthread_mutex_unlock(&estimates->mutex);
	atomic_store(&estimates->is_running, false);
}

static void
estimates_work_sizes(void *argument)
{
	estimates_run(argument, "system.size_estimates", estimates_run_sizes);
}

static void
estimates_work_activity(void *argument)
{
	estimates_run(argument, "system.sstable_activity", estimates_run_activity);
}

void
estimates_tick(struct estimates *estimates)
{
	struct executor *executor = estimates->executor;
	uint64_t now = env_monotonic_ns(executor->env);
	uint64_t *due = now >= estimates->next_sizes_ns ? &estimates->next_sizes_ns
	    : now >= estimates->next_activity_ns        ? &estimates->next_activity_ns
							: NULL;

	if (due == NULL || atomic_exchange(&estimates->is_running, true))
		return;
	if (!stage_submit_work(executor->node->stages[NODE_STAGE_MISC],
		due == &estimates->next_sizes_ns ? estimates_work_sizes : estimates_work_activity,
		estimates))
		atomic_store(&estimates->is_running, false);
	*due = now + ESTIMATES_PERIOD_SECONDS * estimates_second;
}
