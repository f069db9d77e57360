/* SPDX-License-Identifier: Apache-2.0 */
#include "server/virtual_table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "server/execution.h"
#include "server/network.h"
#include "server/system_local.h"
#include "server/virtual_rows.h"

typedef void (*virtual_fill_fn)(struct executor *executor, struct virtual_rows *rows);

/* ---- system_views -------------------------------------------------------------------------- */

static void
virtual_add_stage(void *argument, const struct stage_stats *stats)
{
	struct virtual_rows *rows = argument;

	virtual_row_begin(rows);
	virtual_set_text(rows, "name", stats->name);
	virtual_set_int(rows, "active_tasks", (int32_t)stats->active);
	virtual_set_int(rows, "active_tasks_limit", (int32_t)stats->threads);
	virtual_set_int(rows, "pending_tasks", (int32_t)stats->pending);
	virtual_set_bigint(rows, "completed_tasks", (int64_t)stats->completed);
	virtual_set_bigint(rows, "blocked_tasks", (int64_t)stats->blocked_now);
	virtual_set_bigint(rows, "blocked_tasks_all_time", (int64_t)stats->blocked_total);
	virtual_row_end(rows);
}

static void
virtual_fill_thread_pools(struct executor *executor, struct virtual_rows *rows)
{
	node_each_stage(executor->node, virtual_add_stage, rows);
}

static void
virtual_add_client(void *argument, const struct network_client *client)
{
	struct virtual_rows *rows = argument;

	virtual_row_begin(rows);
	virtual_set_inet(rows, "address", client->address);
	virtual_set_int(rows, "port", client->port);
	virtual_set_texts(rows, "client_options", client->options, client->option_count);
	virtual_set_text(rows, "connection_stage", client->stage);
	virtual_set_text(rows, "driver_name", client->driver_name);
	virtual_set_text(rows, "driver_version", client->driver_version);
	virtual_set_text(rows, "hostname", client->address);
	virtual_set_int(rows, "protocol_version", client->protocol_version);
	virtual_set_bigint(rows, "request_count", (int64_t)client->request_count);
	virtual_set_boolean(rows, "ssl_enabled", client->is_ssl);
	virtual_set_text(rows, "ssl_cipher_suite", client->ssl_cipher_suite);
	virtual_set_text(rows, "ssl_protocol", client->ssl_protocol);
	virtual_set_text(rows, "username", client->user != NULL ? client->user : "anonymous");
	virtual_row_end(rows);
}

static void
virtual_fill_clients(struct executor *executor, struct virtual_rows *rows)
{
	if (executor->node->network != NULL)
		network_each_client(executor->node->network, virtual_add_client, rows);
}

static void
virtual_add_setting(void *argument, const char *name, const char *value)
{
	struct virtual_rows *rows = argument;

	virtual_row_begin(rows);
	virtual_set_text(rows, "name", name);
	virtual_set_text(rows, "value", value);
	virtual_row_end(rows);
}

static void
virtual_fill_helenus(struct executor *executor, struct virtual_rows *rows)
{
	(void)executor;
	virtual_row_begin(rows);
	virtual_set_text(rows, "key", "local");
	virtual_set_text(rows, "helenus_version", PACKAGE_VERSION);
	virtual_set_text(rows, "release_version", NODE_RELEASE_VERSION);
	virtual_row_end(rows);
}

static void
virtual_fill_settings(struct executor *executor, struct virtual_rows *rows)
{
	config_each_setting(executor->config, virtual_add_setting, rows);
}

static void
virtual_fill_sstable_tasks(struct executor *executor, struct virtual_rows *rows)
{
	struct store_compaction running[64];
	uint32_t count = store_compactions(executor->store, running, 64);

	for (uint32_t i = 0; i < count && i < 64; i++) {
		const struct store_compaction *task = &running[i];

		virtual_row_begin(rows);
		virtual_set_text(rows, "keyspace_name", task->keyspace);
		virtual_set_text(rows, "table_name", task->table);
		virtual_set(rows, "task_id", slice_of(task->id.bytes, 16));
		virtual_set_double(rows, "completion_ratio",
		    task->total_bytes == 0
			? 0
			: (double)task->completed_bytes / (double)task->total_bytes);
		virtual_set_text(rows, "kind", task->kind);
		virtual_set_bigint(rows, "progress", (int64_t)task->completed_bytes);
		virtual_set_int(rows, "sstables", (int32_t)task->sstables);
		virtual_set_bigint(rows, "total", (int64_t)task->total_bytes);
		virtual_set_text(rows, "unit", "bytes");
		virtual_row_end(rows);
	}
}

static void
virtual_add_cache(
    struct virtual_rows *rows, const char *name, const struct store_cache_stats *stats)
{
	double requests = (double)(stats->requests);

	virtual_row_begin(rows);
	virtual_set_text(rows, "name", name);
	virtual_set_bigint(rows, "capacity_bytes", (int64_t)stats->capacity_bytes);
	virtual_set_int(rows, "entry_count", (int32_t)stats->entries);
	virtual_set_bigint(rows, "hit_count", (int64_t)stats->hits);
	virtual_set_double(rows, "hit_ratio", requests == 0 ? 0 : (double)stats->hits / requests);
	virtual_set_bigint(rows, "recent_hit_rate_per_second", (int64_t)stats->hits_per_second);
	virtual_set_bigint(
	    rows, "recent_request_rate_per_second", (int64_t)stats->requests_per_second);
	virtual_set_bigint(rows, "request_count", (int64_t)requests);
	virtual_set_bigint(rows, "size_bytes", (int64_t)stats->size_bytes);
	virtual_row_end(rows);
}

static void
virtual_fill_caches(struct executor *executor, struct virtual_rows *rows)
{
	struct store_cache_stats stats;

	store_chunk_cache_stats(executor->store, &stats);
	virtual_add_cache(rows, "chunks", &stats);
	store_key_cache_stats(executor->store, &stats);
	virtual_add_cache(rows, "keys", &stats);
	store_counter_cache_stats(executor->store, &stats);
	virtual_add_cache(rows, "counters", &stats);
	store_row_cache_stats(executor->store, &stats);
	virtual_add_cache(rows, "rows", &stats);
}

static void
virtual_fill_batch_metrics(struct executor *executor, struct virtual_rows *rows)
{
	static const char *const names[METRICS_BATCH_KINDS] = {"partitions_per_logged_batch",
	    "partitions_per_unlogged_batch", "partitions_per_counter_batch"};

	for (int i = 0; i < METRICS_BATCH_KINDS; i++) {
		const struct histogram *counts = &executor->node->metrics.batch_partitions[i];

		virtual_row_begin(rows);
		virtual_set_text(rows, "name", names[i]);
		virtual_set_double(rows, "p50th", (double)histogram_quantile(counts, 0.5));
		virtual_set_double(rows, "p99th", (double)histogram_quantile(counts, 0.99));
		virtual_set_double(rows, "p999th", (double)histogram_quantile(counts, 0.999));
		virtual_set_bigint(rows, "max", (int64_t)histogram_quantile(counts, 1));
		virtual_row_end(rows);
	}
}

static void
virtual_fill_cql_metrics(struct executor *executor, struct virtual_rows *rows)
{
	double prepared = (double)atomic_load(&executor->prepared_executed);
	double regular = (double)atomic_load(&executor->regular_executed);
	struct {
		const char *name;
		double value;
	} metrics[] = {
	    {"prepared_statements_count", (double)atomic_load(&executor->prepared.count)},
	    {"prepared_statements_evicted", (double)atomic_load(&executor->prepared.evictions)},
	    {"prepared_statements_executed", prepared},
	    {"prepared_statements_ratio",
		prepared + regular == 0 ? 0 : prepared / (prepared + regular)},
	    {"regular_statements_executed", regular},
	};

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		virtual_row_begin(rows);
		virtual_set_text(rows, "name", metrics[i].name);
		virtual_set_double(rows, "value", metrics[i].value);
		virtual_row_end(rows);
	}
}

static void
virtual_fill_properties(struct executor *executor, struct virtual_rows *rows)
{
	(void)executor;
	virtual_add_setting(rows, "cassandra.version", SYSTEM_RELEASE_VERSION);
}

/* The tables with one row for each table of the store. */
enum virtual_per_table {
	VIRTUAL_READ_LATENCY,
	VIRTUAL_SCAN_LATENCY,
	VIRTUAL_WRITE_LATENCY,
	VIRTUAL_DISK_USAGE,
	VIRTUAL_MAX_PARTITION,
	VIRTUAL_ROWS_PER_READ,
	VIRTUAL_TOMBSTONES_PER_READ,
};

/* `count` is of all operations: of the frequent ones only some are timed. */
static void
virtual_set_latency(
    struct virtual_rows *rows, uint64_t count, double per_second, const struct histogram *us)
{
	virtual_set_bigint(rows, "count", (int64_t)count);
	virtual_set_double(rows, "max_ms", (double)histogram_quantile(us, 1) / 1000);
	virtual_set_double(rows, "p50th_ms", (double)histogram_quantile(us, 0.5) / 1000);
	virtual_set_double(rows, "p99th_ms", (double)histogram_quantile(us, 0.99) / 1000);
	/* Three digits, as Cassandra: cqlsh would show more in scientific notation. */
	virtual_set_double(rows, "per_second", round(per_second * 1000) / 1000);
}

static void
virtual_set_counts(struct virtual_rows *rows, const struct histogram *counts)
{
	virtual_set_bigint(rows, "count", (int64_t)histogram_count(counts));
	virtual_set_double(rows, "max", (double)histogram_quantile(counts, 1));
	virtual_set_double(rows, "p50th", (double)histogram_quantile(counts, 0.5));
	virtual_set_double(rows, "p99th", (double)histogram_quantile(counts, 0.99));
}

static void
virtual_fill_per_table(
    struct executor *executor, struct virtual_rows *rows, enum virtual_per_table what)
{
	struct store_table_stats stats;
	struct table_store **tables;
	uint32_t count;

	tables = store_tables(executor->store, &count);
	for (uint32_t i = 0; i < count; i++) {
		store_table_stats(executor->store, tables[i], &stats);
		virtual_row_begin(rows);
		virtual_set_text(rows, "keyspace_name", stats.keyspace);
		virtual_set_text(rows, "table_name", stats.name);
		switch (what) {
		case VIRTUAL_READ_LATENCY:
			virtual_set_latency(
			    rows, stats.reads, stats.reads_per_second, stats.read_us);
			break;
		case VIRTUAL_SCAN_LATENCY:
			virtual_set_latency(
			    rows, stats.ranges, stats.ranges_per_second, stats.range_us);
			break;
		case VIRTUAL_WRITE_LATENCY:
			virtual_set_latency(
			    rows, stats.writes, stats.writes_per_second, stats.write_us);
			break;
		case VIRTUAL_DISK_USAGE:
			virtual_set_bigint(rows, "mebibytes", (int64_t)(stats.live_bytes >> 20));
			break;
		case VIRTUAL_MAX_PARTITION:
			virtual_set_bigint(
			    rows, "mebibytes", (int64_t)(stats.partition_bytes_max >> 20));
			break;
		case VIRTUAL_ROWS_PER_READ:
			virtual_set_counts(rows, stats.live_rows_per_read);
			break;
		case VIRTUAL_TOMBSTONES_PER_READ:
			virtual_set_counts(rows, stats.tombstones_per_read);
			break;
		}
		virtual_row_end(rows);
	}
	free(tables);
}

/* Alone, a node's requests take what its local reads and writes take. */
static void
virtual_fill_coordinator(struct executor *executor, struct virtual_rows *rows,
    enum coordinator_latency which, enum virtual_per_table local)
{
	struct table_store **tables;
	uint32_t count;

	if (coordinator_is_alone(executor->coordinator)) {
		virtual_fill_per_table(executor, rows, local);
		return;
	}
	tables = store_tables(executor->store, &count);
	for (uint32_t i = 0; i < count; i++) {
		const struct histogram *us =
		    coordinator_latency(executor->coordinator, tables[i], which);

		virtual_row_begin(rows);
		virtual_set_text(rows, "keyspace_name", table_store_keyspace(tables[i]));
		virtual_set_text(rows, "table_name", table_store_name(tables[i]));
		virtual_set_latency(rows, histogram_count(us),
		    coordinator_rate(executor->coordinator, tables[i], which), us);
		virtual_row_end(rows);
	}
	free(tables);
}

static void
virtual_fill_coordinator_read(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_coordinator(executor, rows, COORDINATOR_LATENCY_READ, VIRTUAL_READ_LATENCY);
}

static void
virtual_fill_coordinator_scan(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_coordinator(executor, rows, COORDINATOR_LATENCY_RANGE, VIRTUAL_SCAN_LATENCY);
}

static void
virtual_fill_coordinator_write(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_coordinator(executor, rows, COORDINATOR_LATENCY_WRITE, VIRTUAL_WRITE_LATENCY);
}

static void
virtual_fill_read_latency(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_READ_LATENCY);
}

static void
virtual_fill_scan_latency(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_SCAN_LATENCY);
}

static void
virtual_fill_write_latency(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_WRITE_LATENCY);
}

static void
virtual_fill_disk_usage(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_DISK_USAGE);
}

static void
virtual_fill_max_partition(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_MAX_PARTITION);
}

static void
virtual_fill_rows_per_read(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_ROWS_PER_READ);
}

static void
virtual_fill_tombstones_per_read(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_per_table(executor, rows, VIRTUAL_TOMBSTONES_PER_READ);
}

/* ---- system_virtual_schema ----------------------------------------------------------------- */

static void
virtual_fill_keyspaces(struct executor *executor, struct virtual_rows *rows)
{
	struct schema *schema = schema_holder_get(&executor->schema);

	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		if (!schema->keyspaces[i]->is_virtual)
			continue;
		virtual_row_begin(rows);
		virtual_set(rows, "keyspace_name", schema->keyspaces[i]->name);
		virtual_row_end(rows);
	}
	schema_unref(schema);
}

static void
virtual_add_column(struct virtual_rows *rows, const struct table_metadata *table,
    const struct column_metadata *column)
{
	struct buffer type;
	bool is_key = column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING;

	buffer_init(&type);
	type_print_cql(column->type, &type);
	virtual_row_begin(rows);
	virtual_set(rows, "keyspace_name", table->keyspace);
	virtual_set(rows, "table_name", table->name);
	virtual_set(rows, "column_name", column->name);
	virtual_set_text(rows, "clustering_order",
	    column->kind != COLUMN_CLUSTERING ? "none"
		: column->is_reversed         ? "desc"
					      : "asc");
	virtual_set(rows, "column_name_bytes", column->name);
	virtual_set_text(rows, "kind", column_kind_name(column->kind));
	virtual_set_int(rows, "position", is_key ? column->position : -1);
	virtual_set(rows, "type", buffer_slice(&type));
	virtual_row_end(rows);
	buffer_fini(&type);
}

static void
virtual_each_table(struct executor *executor, struct virtual_rows *rows, bool has_columns)
{
	struct schema *schema = schema_holder_get(&executor->schema);

	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];

		for (uint32_t n = 0; keyspace->is_virtual && n < keyspace->table_count; n++) {
			const struct table_metadata *table = keyspace->tables[n];

			for (uint32_t c = 0; has_columns && c < table->column_count; c++)
				virtual_add_column(rows, table, table->select_order[c]);
			if (has_columns)
				continue;
			virtual_row_begin(rows);
			virtual_set(rows, "keyspace_name", table->keyspace);
			virtual_set(rows, "table_name", table->name);
			virtual_set(rows, "comment",
			    slice_is_null(table->options.comment) ? slice_empty
								  : table->options.comment);
			virtual_row_end(rows);
		}
	}
	schema_unref(schema);
}

static void
virtual_fill_tables(struct executor *executor, struct virtual_rows *rows)
{
	virtual_each_table(executor, rows, false);
}

static void
virtual_fill_columns(struct executor *executor, struct virtual_rows *rows)
{
	virtual_each_table(executor, rows, true);
}

/* ---- All of them --------------------------------------------------------------------------- */

/* A table that is not listed has no rows: there is nothing yet that it could tell of. */
static const struct {
	const char *keyspace;
	const char *table;
	virtual_fill_fn fill;
} virtual_tables[] = {
    {"system_views", "batch_metrics", virtual_fill_batch_metrics},
    {"system_views", "caches", virtual_fill_caches},
    {"system_views", "clients", virtual_fill_clients},
    {"system_views", "coordinator_read_latency", virtual_fill_coordinator_read},
    {"system_views", "coordinator_scan_latency", virtual_fill_coordinator_scan},
    {"system_views", "coordinator_write_latency", virtual_fill_coordinator_write},
    {"system_views", "cql_metrics", virtual_fill_cql_metrics},
    {"system_views", "disk_usage", virtual_fill_disk_usage},
    {"system_views", "gossip_info", virtual_fill_gossip_info},
    {"system_views", "helenus", virtual_fill_helenus},
    {"system_views", "internode_inbound", virtual_fill_internode_inbound},
    {"system_views", "internode_outbound", virtual_fill_internode_outbound},
    {"system_views", "local_read_latency", virtual_fill_read_latency},
    {"system_views", "local_scan_latency", virtual_fill_scan_latency},
    {"system_views", "local_write_latency", virtual_fill_write_latency},
    {"system_views", "max_partition_size", virtual_fill_max_partition},
    {"system_views", "pending_hints", virtual_fill_pending_hints},
    {"system_views", "repair_jobs", virtual_fill_repair_jobs},
    {"system_views", "repair_participates", virtual_fill_repair_participates},
    {"system_views", "repair_sessions", virtual_fill_repair_sessions},
    {"system_views", "repair_validations", virtual_fill_repair_validations},
    {"system_views", "repairs", virtual_fill_repairs},
    {"system_views", "rows_per_read", virtual_fill_rows_per_read},
    {"system_views", "settings", virtual_fill_settings},
    {"system_views", "sstable_tasks", virtual_fill_sstable_tasks},
    {"system_views", "streaming", virtual_fill_streaming},
    {"system_views", "system_properties", virtual_fill_properties},
    {"system_views", "thread_pools", virtual_fill_thread_pools},
    {"system_views", "tombstones_per_read", virtual_fill_tombstones_per_read},
    {"system_virtual_schema", "columns", virtual_fill_columns},
    {"system_virtual_schema", "keyspaces", virtual_fill_keyspaces},
    {"system_virtual_schema", "tables", virtual_fill_tables},
};

int
virtual_table_read(struct executor *executor, const struct read_command *command,
    struct arena *arena, struct partition_iterator **out, struct error *err)
{
	struct virtual_rows *rows = virtual_rows_new(command->table, arena);

	if (rows == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a virtual table");
	for (size_t i = 0; i < sizeof(virtual_tables) / sizeof(virtual_tables[0]); i++) {
		if (slice_equal_string(command->table->keyspace, virtual_tables[i].keyspace) &&
		    slice_equal_string(command->table->name, virtual_tables[i].table))
			virtual_tables[i].fill(executor, rows);
	}
	return virtual_rows_source(rows, command, out, err);
}
