/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API that change nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include "cql/value.h"
#include "server/admin_internal.h"
#include "server/client_history.h"
#include "server/cluster.h"
#include "server/dropped.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

uint64_t
admin_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char text[128] = "", *resident = NULL;
	bool is_read;

	if (file == NULL)
		return 0;
	is_read = fgets(text, sizeof(text), file) != NULL;
	fclose(file);
	/* "total resident ...", in pages */
	if (is_read)
		resident = strchr(text, ' ');
	return resident == NULL ? 0
				: strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void
admin_set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value == NULL ? json_null() : value);
}

void
admin_set_number(json_t *object, const char *name, uint64_t value)
{
	admin_set(object, name, json_integer((json_int_t)value));
}

void
admin_set_text(json_t *object, const char *name, const char *text)
{
	admin_set(object, name, text == NULL ? NULL : json_string(text));
}

void
admin_set_real(json_t *object, const char *name, double value)
{
	admin_set(object, name, isfinite(value) ? json_real(value) : NULL);
}

/* ---- histograms ------------------------------------------------------------------------------------ */

static const double admin_quantiles[] = {0.50, 0.75, 0.95, 0.98, 0.99};
static const char *const admin_quantile_names[] = {"p50", "p75", "p95", "p98", "p99"};

/* {count, mean, p50 .. p99, min, max}; min and max are bucket bounds, as Cassandra shows them. */
static json_t *
admin_histogram(const struct histogram *histogram)
{
	const uint64_t *offsets = histogram_offsets();
	json_t *json = json_object();
	uint64_t low = 0, high = 0;

	admin_set_number(json, "count", histogram_count(histogram));
	admin_set_real(json, "mean", histogram_mean(histogram));
	for (int i = 0; i < 5; i++)
		admin_set_number(json, admin_quantile_names[i],
		    histogram_quantile(histogram, admin_quantiles[i]));
	for (size_t i = 0; i < histogram->bucket_count; i++) {
		if (atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed) == 0)
			continue;
		if (high == 0)
			low = i == 0 ? 0 : offsets[i - 1] + 1;
		high = offsets[i];
	}
	admin_set_number(json, "min", low);
	admin_set_number(json, "max", high);
	return json;
}

/* ---- stages ------------------------------------------------------------------------------------------ */

static void
admin_add_stage(void *argument, const struct stage_stats *stats)
{
	json_t *json = json_object();

	admin_set_text(json, "name", stats->name);
	admin_set_number(json, "threads", stats->threads);
	admin_set_number(json, "active", stats->active);
	admin_set_number(json, "pending", stats->pending);
	admin_set_number(json, "completed", stats->completed);
	admin_set_number(json, "blocked", stats->blocked_now);
	admin_set_number(json, "blocked_total", stats->blocked_total);
	admin_set_number(json, "dropped", stats->dropped);
	admin_set(json, "queue_wait_us", admin_histogram(stats->queue_wait_us));
	admin_set(json, "service_us", admin_histogram(stats->service_us));
	json_array_append_new(argument, json);
}

static void
admin_add_dropped(
    void *argument, const struct dropped_message *message, const struct stage_stats *stage)
{
	json_t *json = json_object();

	admin_set_text(json, "message", message->name);
	admin_set_number(json, "dropped", message->internal + message->cross_node);
	admin_set(json, "queue_wait_us", admin_histogram(stage->queue_wait_us));
	json_array_append_new(argument, json);
}

static int
admin_get_stages(struct admin_call *call, struct error *err)
{
	json_t *stages = json_array(), *dropped = json_array();

	(void)err;
	node_each_stage(call->node, admin_add_stage, stages);
	admin_set(call->answer, "stages", stages);
	dropped_each(call->node, admin_add_dropped, dropped);
	admin_set(call->answer, "dropped", dropped);
	return 0;
}

/* ---- the node ------------------------------------------------------------------------------------------ */

static void
admin_add_cache(
    json_t *caches, const char *name, const struct store_cache_stats *stats, int64_t save_period)
{
	json_t *json = json_object();

	admin_set_number(json, "capacity_bytes", stats->capacity_bytes);
	admin_set_number(json, "size_bytes", stats->size_bytes);
	admin_set_number(json, "entries", stats->entries);
	admin_set_number(json, "hits", stats->hits);
	admin_set_number(json, "requests", stats->requests);
	admin_set(json, "save_period_s", json_integer(save_period));
	admin_set(caches, name, json);
}

int
admin_get_info(struct admin_call *call, struct error *err)
{
	struct node *node = call->node;
	const struct config *config = node->config;
	struct store_cache_stats cache;
	json_t *answer = call->answer, *caches = json_object(), *tokens = json_array();
	struct uuid host;
	char id[UUID_TEXT_SIZE];
	uint32_t count;
	int64_t *list = operations_tokens(node->executor, &count);

	(void)err;
	memcpy(&host, node->host_id, sizeof(node->host_id));
	uuid_format(&host, id);
	admin_set_text(answer, "host_id", id);
	admin_set_text(answer, "mode", node_mode_name(node));
	admin_set_text(answer, "cluster_name", config->cluster_name);
	admin_set_text(answer, "release_version", NODE_RELEASE_VERSION);
	admin_set_text(answer, "helenus_version", PACKAGE_VERSION);
	admin_set_text(answer, "data_center", cluster_datacenter(node->cluster));
	admin_set_text(answer, "rack", cluster_rack(node->cluster));
	admin_set_text(answer, "address",
	    config->broadcast_address != NULL ? config->broadcast_address : config->listen_address);
	admin_set_text(answer, "rpc_address",
	    config->broadcast_rpc_address != NULL ? config->broadcast_rpc_address
						  : config->rpc_address);
	admin_set_number(answer, "native_port", network_port(node->network));
	admin_set_number(answer, "storage_port", (uint64_t)config->storage_port);
	admin_set(
	    answer, "native_transport_active", json_boolean(network_is_running(node->network)));
	admin_set_number(answer, "load_bytes", store_live_bytes(node->store));
	admin_set_number(answer, "generation", (uint64_t)node->generation);
	admin_set(answer, "gossip_active", json_boolean(gossip_is_running(node->cluster->gossip)));
	admin_set_number(
	    answer, "uptime_s", (env_monotonic_ns(node->env) - node->started_ns) / 1000000000);
	admin_set_number(answer, "resident_bytes", admin_resident_bytes());
	admin_set_number(answer, "memory_bytes", (uint64_t)config->memory_bytes);
	admin_set_number(answer, "memtable_bytes", store_memtable_bytes(node->store));
	admin_set_number(answer, "exceptions", atomic_load(&node->metrics.exceptions));
	admin_set_number(answer, "clients", network_client_count(node->network));
	store_key_cache_stats(node->store, &cache);
	admin_add_cache(caches, "key", &cache, config->key_cache_save_period);
	store_row_cache_stats(node->store, &cache);
	admin_add_cache(caches, "row", &cache, config->row_cache_save_period);
	store_counter_cache_stats(node->store, &cache);
	admin_add_cache(caches, "counter", &cache, config->counter_cache_save_period);
	store_chunk_cache_stats(node->store, &cache);
	admin_add_cache(caches, "chunk", &cache, 0);
	admin_set(answer, "caches", caches);
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(tokens, json_integer(list[i]));
	free(list);
	admin_set(answer, "tokens", tokens);
	admin_set_real(answer, "trace_probability", atomic_load(&node->trace_probability));
	admin_set(
	    answer, "incremental_backups", json_boolean(store_incremental_backups(node->store)));
	return 0;
}

/* ---- clients ------------------------------------------------------------------------------------------- */

static void
admin_add_client(void *argument, const struct network_client *client)
{
	json_t *json = json_object(), *options = json_object();

	admin_set_text(json, "address", client->address);
	admin_set_number(json, "port", client->port);
	admin_set_text(json, "stage", client->stage);
	admin_set_number(json, "protocol_version", (uint64_t)client->protocol_version);
	admin_set_text(json, "driver_name", client->driver_name);
	admin_set_text(json, "driver_version", client->driver_version);
	admin_set_text(json, "user", client->user);
	admin_set_text(json, "keyspace", client->keyspace);
	admin_set_number(json, "requests", client->request_count);
	admin_set(json, "ssl", json_boolean(client->is_ssl));
	admin_set_text(json, "cipher", client->ssl_cipher_suite);
	admin_set_text(json, "ssl_protocol", client->ssl_protocol);
	for (uint32_t i = 0; i < client->option_count; i++)
		admin_set_text(options, client->options[2 * i], client->options[2 * i + 1]);
	admin_set(json, "options", options);
	json_array_append_new(argument, json);
}

static void
admin_add_client_seen(void *argument, const struct client_seen *seen)
{
	json_t *json = json_object();

	admin_set_text(json, "address", seen->address);
	admin_set_number(json, "protocol_version", (uint64_t)seen->version);
	admin_set_number(json, "last_seen_ms", (uint64_t)seen->last_ms);
	json_array_append_new(argument, json);
}

static int
admin_get_clients(struct admin_call *call, struct error *err)
{
	json_t *clients = json_array(), *seen = json_array();

	(void)err;
	network_each_client(call->node->network, admin_add_client, clients);
	client_history_each(network_clients_seen(call->node->network), admin_add_client_seen, seen);
	admin_set(call->answer, "clients", clients);
	admin_set(call->answer, "seen", seen);
	return 0;
}

/* ---- tables --------------------------------------------------------------------------------------------- */

int
admin_tables(
    const struct admin_call *call, struct table_store ***out, uint32_t *count, struct error *err)
{
	const char *keyspace = admin_argument(call, "keyspace");
	const char *names = admin_argument(call, "tables");
	struct table_store **tables = store_tables(call->node->store, count);
	uint32_t used = 0;
	bool has_keyspace = keyspace == NULL;

	for (uint32_t i = 0; i < *count; i++) {
		const char *name = table_store_name(tables[i]);
		const char *found = names;
		size_t length = strlen(name);

		if (keyspace != NULL && strcmp(table_store_keyspace(tables[i]), keyspace) != 0)
			continue;
		has_keyspace = true;
		while (found != NULL) {
			size_t word = strcspn(found, ",");

			if (word == length && memcmp(found, name, length) == 0)
				break;
			found = found[word] == '\0' ? NULL : found + word + 1;
		}
		if (names == NULL || found != NULL)
			tables[used++] = tables[i];
	}
	*out = tables;
	*count = used;
	if (!has_keyspace) {
		struct schema *schema = operations_schema(call->node->executor);

		has_keyspace = schema_keyspace(schema, slice_of_string(keyspace)) != NULL;
		schema_unref(schema);
	}
	if (has_keyspace && (used > 0 || names == NULL))
		return 0;
	free(tables);
	*out = NULL;
	if (!has_keyspace)
		return error_set(err, ERROR_INVALID, "Keyspace [%s] does not exist.", keyspace);
	return error_set(err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)",
	    keyspace == NULL ? "?" : keyspace, names);
}

static json_t *
admin_table(struct node *node, struct table_store *table)
{
	struct store_table_stats stats;
	int32_t min_threshold, max_threshold;
	json_t *json = json_object(), *levels = json_array(), *level_bytes = json_array();

	store_table_stats(node->store, table, &stats);
	admin_set_text(json, "keyspace", stats.keyspace);
	admin_set_text(json, "table", stats.name);
	admin_set_number(json, "reads", stats.reads + stats.ranges);
	admin_set_number(json, "writes", stats.writes);
	admin_set(json, "read_us", admin_histogram(stats.read_us));
	admin_set(json, "write_us", admin_histogram(stats.write_us));
	admin_set(json, "live_rows", admin_histogram(stats.live_rows_per_read));
	admin_set(json, "tombstones", admin_histogram(stats.tombstones_per_read));
	admin_set_number(json, "sstables", stats.sstables);
	for (int i = 0; i < STORE_LEVELS; i++) {
		json_array_append_new(levels, json_integer(stats.sstables_in_level[i]));
		json_array_append_new(
		    level_bytes, json_integer((json_int_t)stats.bytes_in_level[i]));
	}
	admin_set(json, "levels", levels);
	admin_set(json, "level_bytes", level_bytes);
	admin_set(json, "is_leveled", json_boolean(stats.is_leveled));
	admin_set_number(json, "speculative_retries", stats.speculative_retries);
	admin_set_number(json, "repaired_bytes", stats.repaired_bytes);
	admin_set_number(json, "unrepaired_bytes", stats.unrepaired_bytes);
	admin_set_number(json, "pending_repair_bytes", stats.pending_repair_bytes);
	admin_set_number(json, "live_bytes", stats.live_bytes);
	admin_set_number(json, "total_bytes", stats.total_bytes);
	admin_set_number(json, "snapshot_bytes", stats.snapshot_bytes);
	admin_set_real(json, "compression_ratio", stats.compression_ratio);
	admin_set_number(
	    json, "partitions", stats.estimated_partitions + stats.memtable_partitions);
	admin_set_number(json, "memtable_rows", stats.memtable_rows);
	admin_set_number(json, "memtable_bytes", stats.memtable_bytes);
	admin_set_number(json, "memtable_switches", stats.memtable_switches);
	admin_set_number(json, "pending_flushes", stats.pending_flushes);
	admin_set_number(json, "pending_compactions", stats.pending_compactions);
	admin_set_number(json, "filter_false_positives", stats.filter_false_positives);
	admin_set_number(json, "filter_true_positives", stats.filter_true_positives);
	admin_set_number(json, "filter_bytes", stats.filter_bytes);
	admin_set_number(json, "summary_bytes", stats.summary_bytes);
	admin_set_number(json, "compression_bytes", stats.compression_bytes);
	admin_set_number(json, "partition_min", stats.partition_bytes_min);
	admin_set_number(json, "partition_max", stats.partition_bytes_max);
	admin_set_number(json, "partition_mean", stats.partition_bytes_mean);
	admin_set_real(json, "droppable_tombstones", stats.droppable_tombstone_ratio);
	admin_set(json, "auto_compaction", json_boolean(store_auto_compaction(table)));
	store_compaction_threshold(table, &min_threshold, &max_threshold);
	admin_set(json, "min_threshold", json_integer(min_threshold));
	admin_set(json, "max_threshold", json_integer(max_threshold));
	return json;
}

static int
admin_get_tables(struct admin_call *call, struct error *err)
{
	struct table_store **tables;
	json_t *list = json_array();
	uint32_t count;

	admin_set(call->answer, "tables", list);
	if (admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, admin_table(call->node, tables[i]));
	free(tables);
	return 0;
}

static int
admin_need_table(struct admin_call *call, struct table_store **out, struct error *err)
{
	const char *keyspace, *table;

	if (admin_need(call, "keyspace", &keyspace, err) != 0 ||
	    admin_need(call, "table", &table, err) != 0)
		return -1;
	*out = store_find_table(call->node->store, keyspace, table);
	if (*out == NULL)
		return error_set(err, ERROR_INVALID, "Unknown table %s.%s", keyspace, table);
	return 0;
}

static int
admin_get_table_histograms(struct admin_call *call, struct error *err)
{
	struct store_table_stats stats;
	struct table_store *table;
	struct histogram *sizes, *cells;

	if (admin_need_table(call, &table, err) != 0)
		return -1;
	store_table_stats(call->node->store, table, &stats);
	sizes = xzalloc(sizeof(*sizes));
	cells = xzalloc(sizeof(*cells));
	histogram_init(sizes, 150);
	histogram_init(cells, 118);
	store_partition_histograms(call->node->store, table, sizes, cells);
	admin_set(call->answer, "read_us", admin_histogram(stats.read_us));
	admin_set(call->answer, "write_us", admin_histogram(stats.write_us));
	admin_set(call->answer, "sstables", admin_histogram(stats.sstables_per_read));
	admin_set(call->answer, "partition_size", admin_histogram(sizes));
	admin_set(call->answer, "cell_count", admin_histogram(cells));
	free(sizes);
	free(cells);
	return 0;
}

static int
admin_get_proxy_histograms(struct admin_call *call, struct error *err)
{
	static const char *const names[REQUEST_METRIC_COUNT] = {
	    [REQUEST_METRIC_READ] = "read",
	    [REQUEST_METRIC_WRITE] = "write",
	    [REQUEST_METRIC_RANGE] = "range",
	    [REQUEST_METRIC_CAS_READ] = "cas_read",
	    [REQUEST_METRIC_CAS_WRITE] = "cas_write",
	    [REQUEST_METRIC_VIEW_WRITE] = "view_write",
	};
	struct histogram *sum = xzalloc(sizeof(*sum));

	(void)err;
	for (int i = 0; i < REQUEST_METRIC_COUNT; i++) {
		if (names[i] == NULL)
			continue;
		metrics_latency(&call->node->metrics, (enum request_metric)i, sum);
		admin_set(call->answer, names[i], admin_histogram(sum));
	}
	free(sum);
	return 0;
}

/* ---- keys ------------------------------------------------------------------------------------------------- */

/* A partition key as nodetool takes it: the text of its type; parts of a composite separated by ':'. */
int
admin_partition_key(const struct table_metadata *table, const char *text, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct buffer key;

	buffer_init(&key);
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		size_t length =
		    i + 1 < table->partition_key_count ? strcspn(text, ":") : strlen(text);
		struct slice value;

		if (value_from_string(table->partition_key[i].type, slice_of(text, length), arena,
			&value, err) != 0) {
			buffer_fini(&key);
			return -1;
		}
		if (table->partition_key_count > 1) {
			buffer_put_u16(&key, (uint16_t)value.size);
			buffer_put_slice(&key, value);
			buffer_put_u8(&key, 0);
		} else {
			buffer_put_slice(&key, value);
		}
		text += length;
		text += *text == ':';
	}
	*out = arena_copy(arena, buffer_slice(&key));
	if (out->data == NULL)
		*out = slice_empty;
	buffer_fini(&key);
	return 0;
}

static void
admin_add_path(void *argument, const char *path, int32_t level)
{
	json_array_append_new(argument, json_pack("{s:s,s:i}", "path", path, "level", level));
}

/* key=, as text of its type, or (hex=true) as the bytes that the files have. */
static int
admin_key(const struct admin_call *call, const struct table_metadata *table, const char *text,
    struct arena *arena, struct slice *out, struct error *err)
{
	const char *is_hex = admin_argument(call, "hex");
	size_t size = strlen(text) / 2;
	uint8_t *bytes;

	if (is_hex == NULL || strcmp(is_hex, "true") != 0)
		return admin_partition_key(table, text, arena, out, err);
	bytes = arena_alloc(arena, size + 1);
	for (size_t i = 0; i < size && bytes != NULL; i++) {
		if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
			size = 0;
	}
	if (bytes == NULL || size == 0 || strspn(text, "0123456789abcdefABCDEF") != 2 * size ||
	    text[2 * size] != '\0')
		return error_set(err, ERROR_INVALID, "'%s' is no key in hex", text);
	*out = slice_of(bytes, size);
	return 0;
}

static int
admin_get_key(struct admin_call *call, struct error *err)
{
	struct schema *schema;
	const char *keyspace, *name, *text;
	const struct table_metadata *table;
	json_t *paths = json_array();
	struct arena arena;
	struct slice key;
	int rc = -1;

	admin_set(call->answer, "sstables", paths);
	if (admin_need(call, "keyspace", &keyspace, err) != 0 ||
	    admin_need(call, "table", &name, err) != 0 || admin_need(call, "key", &text, err) != 0)
		return -1;
	schema = operations_schema(call->node->executor);
	arena_init(&arena, 1024);
	table = schema_table(schema, slice_of_string(keyspace), slice_of_string(name));
	if (table == NULL) {
		error_set(err, ERROR_INVALID, "Unknown keyspace/table %s.%s", keyspace, name);
	} else if (admin_key(call, table, text, &arena, &key, err) == 0) {
		struct table_store *handle = store_table(call->node->store, table);

		admin_set(call->answer, "token", json_integer(murmur3_token(key)));
		rc = handle == NULL ? 0
				    : store_sstables_for_key(call->node->store, handle, key,
					  admin_add_path, paths, err);
	}
	arena_fini(&arena);
	schema_unref(schema);
	return rc;
}

/* ---- compactions and snapshots -------------------------------------------------------------------------------- */

static int
admin_get_compactions(struct admin_call *call, struct error *err)
{
	struct store_compaction running[64];
	struct store *store = call->node->store;
	uint32_t count = store_compactions(store, running, 64), tables_count;
	struct table_store **tables = store_tables(store, &tables_count);
	json_t *list = json_array(), *pending = json_array();
	uint64_t total = 0;

	(void)err;
	for (uint32_t i = 0; i < count && i < 64; i++) {
		json_t *json = json_object();
		char id[UUID_TEXT_SIZE];

		uuid_format(&running[i].id, id);
		admin_set_text(json, "id", id);
		admin_set_text(json, "kind", running[i].kind);
		admin_set_text(json, "keyspace", running[i].keyspace);
		admin_set_text(json, "table", running[i].table);
		admin_set_number(json, "completed", running[i].completed_bytes);
		admin_set_number(json, "total", running[i].total_bytes);
		admin_set_number(json, "sstables", running[i].sstables);
		json_array_append_new(list, json);
	}
	for (uint32_t i = 0; i < tables_count; i++) {
		uint32_t waiting = store_pending_compactions(store, tables[i]);
		json_t *json;

		if (waiting == 0)
			continue;
		json = json_object();
		admin_set_text(json, "keyspace", table_store_keyspace(tables[i]));
		admin_set_text(json, "table", table_store_name(tables[i]));
		admin_set_number(json, "pending", waiting);
		json_array_append_new(pending, json);
		total += waiting;
	}
	free(tables);
	admin_set(call->answer, "compactions", list);
	admin_set(call->answer, "pending", pending);
	admin_set_number(call->answer, "pending_total", total);
	admin_set_number(call->answer, "throughput_bytes", store_compaction_throughput(store));
	admin_set_number(call->answer, "concurrent", store_concurrent_compactors(store));
	return 0;
}

static void
admin_add_history(void *argument, const struct operations_compaction *compaction)
{
	json_t *json = json_object();
	char id[UUID_TEXT_SIZE];

	uuid_format(&compaction->id, id);
	admin_set_text(json, "id", id);
	admin_set_text(json, "keyspace_name", compaction->keyspace);
	admin_set_text(json, "columnfamily_name", compaction->table);
	admin_set(json, "compacted_at_ms", json_integer(compaction->compacted_at_ms));
	admin_set(json, "bytes_in", json_integer(compaction->bytes_in));
	admin_set(json, "bytes_out", json_integer(compaction->bytes_out));
	admin_set_text(json, "rows_merged", compaction->rows_merged);
	json_array_append_new(argument, json);
}

static int
admin_get_compaction_history(struct admin_call *call, struct error *err)
{
	json_t *list = json_array();

	admin_set(call->answer, "compactions", list);
	return operations_compaction_history(call->node->executor, admin_add_history, list, err);
}

static void
admin_add_snapshot(void *argument, const struct store_snapshot_info *info)
{
	json_t *json = json_object();

	admin_set_text(json, "tag", info->tag);
	admin_set_text(json, "keyspace", info->keyspace);
	admin_set_text(json, "table", info->table);
	admin_set_number(json, "true_bytes", info->true_bytes);
	admin_set_number(json, "total_bytes", info->total_bytes);
	admin_set(json, "created_ms", json_integer(info->created_ms));
	admin_set(json, "expires_ms", json_integer(info->expires_ms));
	json_array_append_new(argument, json);
}

static int
admin_get_snapshots(struct admin_call *call, struct error *err)
{
	json_t *list = json_array();

	admin_set(call->answer, "snapshots", list);
	return store_list_snapshots(call->node->store, admin_add_snapshot, list, err);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static void
admin_add_setting(void *argument, const char *name, const char *value)
{
	admin_set_text(argument, name, value);
}

static int
admin_get_settings(struct admin_call *call, struct error *err)
{
	(void)err;
	config_each_setting(call->node->config, admin_add_setting, call->answer);
	return 0;
}

static int
admin_get_timeouts(struct admin_call *call, struct error *err)
{
	(void)err;
	for (int i = 0; i < NODE_TIMEOUT_COUNT; i++)
		admin_set(call->answer, node_timeout_name((enum node_timeout)i),
		    json_integer(atomic_load(&call->node->timeouts_ms[i])));
	return 0;
}

static void
admin_add_logger(const char *logger, enum log_level level, void *argument)
{
	admin_set_text(argument, logger, log_level_name(level));
}

static int
admin_get_loggers(struct admin_call *call, struct error *err)
{
	(void)err;
	log_each_logger(admin_add_logger, call->answer);
	return 0;
}

static void
admin_add_data_path(json_t *list, struct table_store *table)
{
	json_t *json = json_object();
	const char *const *directories;
	json_t *paths = json_array();
	uint32_t count;

	directories = table_store_directories(table, &count);
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(paths, json_string(directories[i]));
	admin_set_text(json, "keyspace", table_store_keyspace(table));
	admin_set_text(json, "table", table_store_name(table));
	admin_set(json, "paths", paths);
	json_array_append_new(list, json);
}

static int
admin_get_data_paths(struct admin_call *call, struct error *err)
{
	struct table_store **tables;
	json_t *list = json_array();
	uint32_t count;

	admin_set(call->answer, "paths", list);
	if (admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		admin_add_data_path(list, tables[i]);
	free(tables);
	return 0;
}

const struct admin_route admin_reads[] = {
    {"clients", false, admin_get_clients},
    {"cluster", false, admin_get_cluster},
    {"compactionhistory", false, admin_get_compaction_history},
    {"compactions", false, admin_get_compactions},
    {"datapaths", false, admin_get_data_paths},
    {"describering", false, admin_get_describe_ring},
    {"endpoints", false, admin_get_endpoints},
    {"failuredetector", false, admin_get_failure_detector},
    {"gossip", false, admin_get_gossip},
    {"hints", false, admin_get_hints},
    {"info", false, admin_get_info},
    {"key", false, admin_get_key},
    {"loggers", false, admin_get_loggers},
    {"netstats", false, admin_get_netstats},
    {"proxyhistograms", false, admin_get_proxy_histograms},
    {"pendingrepairs", false, admin_get_pending_repairs},
    {"repair", false, admin_get_repair},
    {"repaired", false, admin_get_repaired},
    {"repairsessions", false, admin_get_repair_sessions},
    {"ring", false, admin_get_ring},
    {"seeds", false, admin_get_seeds},
    {"keysamples", false, admin_get_key_samples},
    {"limits", false, admin_get_limits},
    {"settings", false, admin_get_settings},
    {"snapshots", false, admin_get_snapshots},
    {"stages", false, admin_get_stages},
    {"streamthroughput", false, admin_get_stream_throughput},
    {"tablehistograms", false, admin_get_table_histograms},
    {"tables", false, admin_get_tables},
    {"timeouts", false, admin_get_timeouts},
    {NULL, false, NULL},
};
