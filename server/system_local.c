/* SPDX-License-Identifier: Apache-2.0 */
#include "server/system_local.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/internal_query.h"

/* ---- values of system tables ------------------------------------------------------------------- */

struct slice
system_inet(const char *text, struct arena *arena)
{
	uint8_t *bytes = arena_alloc_bytes(arena, 16);

	if (bytes == NULL || text == NULL)
		return slice_null;
	if (inet_pton(AF_INET, text, bytes) == 1)
		return slice_of(bytes, 4);
	if (inet_pton(AF_INET6, text, bytes) == 1)
		return slice_of(bytes, 16);
	return slice_null;
}

struct slice
system_int(int64_t value, struct arena *arena)
{
	uint8_t *bytes = arena_alloc_bytes(arena, 4);

	if (bytes == NULL)
		return slice_null;
	store_u32(bytes, (uint32_t)value);
	return slice_of(bytes, 4);
}

static int
system_compare_slices(const void *a, const void *b)
{
	const struct slice *left = a, *right = b;

	return slice_compare(*left, *right);
}

struct slice
system_tokens(const int64_t *tokens, uint32_t count, struct arena *arena)
{
	const struct type *type = type_set(arena, type_native(TYPE_TEXT), false);
	struct slice *texts = arena_calloc(arena, (size_t)count + 1, sizeof(*texts));

	if (texts == NULL || type == NULL)
		return slice_null;
	for (uint32_t i = 0; i < count; i++) {
		const char *text = arena_printf(arena, "%" PRId64, tokens[i]);

		if (text == NULL)
			return slice_null;
		texts[i] = slice_of_string(text);
	}
	qsort(texts, count, sizeof(*texts), system_compare_slices);
	return type_pack(type, texts, count, arena);
}

static int
system_compare_tokens(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

int64_t *
system_parse_tokens(struct slice cell, uint32_t *count)
{
	struct reader reader = reader_of(cell);
	uint32_t size = reader_u32(&reader), used = 0;
	int64_t *tokens;

	*count = 0;
	if (slice_is_null(cell) || reader.is_failed || size > reader_left(&reader) / 4)
		return NULL;
	tokens = xcalloc((size_t)size + 1, sizeof(*tokens));
	while (used < size) {
		struct slice text = reader_bytes(&reader, reader_u32(&reader));
		char copy[32] = "";

		if (reader.is_failed)
			break;
		memcpy(copy, text.data, text.size < 31 ? text.size : 31);
		tokens[used++] = strtoll(copy, NULL, 10);
	}
	qsort(tokens, used, sizeof(*tokens), system_compare_tokens);
	*count = used;
	return tokens;
}

/* ---- system.local ---------------------------------------------------------------------------------- */

struct system_saved {
	struct slice cluster_name, host_id, tokens, bootstrapped, datacenter, rack;
	int32_t generation;
};

static int
system_read_saved(
    struct executor *executor, struct arena *arena, struct system_saved *out, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	*out = (struct system_saved){
	    slice_null, slice_null, slice_null, slice_null, slice_null, slice_null, 0};
	if (internal_select(executor,
		"SELECT cluster_name, host_id, tokens, gossip_generation, bootstrapped, "
		"data_center, rack FROM system.local WHERE key = 'local'",
		NULL, 0, &rows, err) != 0)
		return -1;
	if (internal_rows_next(&rows, cells)) {
		out->cluster_name = arena_copy(arena, cells[0]);
		out->host_id = arena_copy(arena, cells[1]);
		out->tokens = arena_copy(arena, cells[2]);
		out->generation = cells[3].size == 4 ? (int32_t)load_u32(cells[3].data) : 0;
		out->bootstrapped = arena_copy(arena, cells[4]);
		out->datacenter = arena_copy(arena, cells[5]);
		out->rack = arena_copy(arena, cells[6]);
	}
	internal_rows_fini(&rows);
	return 0;
}

static void
system_tell_host_id(struct executor *executor, struct slice host_id)
{
	struct uuid id;

	memcpy(id.bytes, host_id.data, sizeof(id.bytes));
	store_set_host_id(executor->store, &id);
	coordinator_set_host_id(executor->coordinator, &id);
}

int
system_local_load_host_id(struct executor *executor, struct error *err)
{
	struct system_saved saved;
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	rc = system_read_saved(executor, &arena, &saved, err);
	if (rc == 0 && saved.host_id.size == 16)
		system_tell_host_id(executor, saved.host_id);
	arena_fini(&arena);
	return rc;
}

/* What the data directory says and what the configuration says must be one node of one cluster (StartupChecks). */
static int
system_check_saved(struct executor *executor, const struct system_saved *saved, struct error *err)
{
	const struct config *config = executor->config;
	const struct {
		const char *what, *flag;
		const char *now;
		struct slice before;
		bool is_ignored;
	} places[] = {
	    {"data center", "ignore_dc", cluster_datacenter(executor->node->cluster),
		saved->datacenter, config->cassandra__ignore_dc},
	    {"rack", "ignore_rack", cluster_rack(executor->node->cluster), saved->rack,
		config->cassandra__ignore_rack},
	};

	if (!slice_is_null(saved->cluster_name) &&
	    !slice_equal_string(saved->cluster_name, config->cluster_name))
		return error_set(err, ERROR_WRONG_STATE,
		    "Saved cluster name %.*s != configured name %s", (int)saved->cluster_name.size,
		    (const char *)saved->cluster_name.data, config->cluster_name);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!slice_is_null(places[i].before) && !places[i].is_ignored &&
		    !slice_equal_string(places[i].before, places[i].now))
			return error_set(err, ERROR_WRONG_STATE,
			    "Cannot start node if snitch's %s (%s) differs from previous %s "
			    "(%.*s). "
			    "Please fix the snitch configuration, decommission and rebootstrap "
			    "this "
			    "node or use the flag -D cassandra.%s=true.",
			    places[i].what, places[i].now, places[i].what,
			    (int)places[i].before.size, (const char *)places[i].before.data,
			    places[i].flag);
	return 0;
}

static int
system_write_local(struct executor *executor, const struct system_saved *saved, int32_t generation,
    struct arena *arena, struct error *err)
{
	const struct config *config = executor->config;
	const struct cluster *cluster = executor->node->cluster;
	struct schema *schema = schema_holder_get(&executor->schema);
	struct uuid version = schema->version;
	const char *listen = config->listen_address;
	const char *broadcast =
	    config->broadcast_address != NULL ? config->broadcast_address : listen;
	const char *rpc = config->broadcast_rpc_address != NULL ? config->broadcast_rpc_address
								: config->rpc_address;
	struct slice values[] = {
	    system_inet(broadcast, arena),
	    system_int(config->storage_port, arena),
	    slice_of_string(config->cluster_name),
	    slice_of_string(SYSTEM_CQL_VERSION),
	    slice_of_string(cluster_datacenter(cluster)),
	    system_int(generation, arena),
	    saved->host_id,
	    system_inet(listen, arena),
	    system_int(config->storage_port, arena),
	    slice_of_string("5"),
	    slice_of_string("org.apache.cassandra.dht.Murmur3Partitioner"),
	    slice_of_string(cluster_rack(cluster)),
	    slice_of_string(SYSTEM_RELEASE_VERSION),
	    system_inet(rpc, arena),
	    system_int(config->native_transport_port, arena),
	    slice_of(version.bytes, sizeof(version.bytes)),
	};
	int rc;

	schema_unref(schema);
	rc = internal_execute(executor,
	    "INSERT INTO system.local (key, broadcast_address, broadcast_port, cluster_name, "
	    "cql_version, data_center, gossip_generation, host_id, listen_address, listen_port, "
	    "native_protocol_version, partitioner, rack, release_version, rpc_address, rpc_port, "
	    "schema_version) VALUES ('local', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	    values, sizeof(values) / sizeof(values[0]), err);
	/* The host id must not be lost with an unsynced commit log, and the generation must rise. */
	return rc == 0 ? store_sync(executor->store, err) : rc;
}

int
system_local_start(struct executor *executor, struct error *err)
{
	struct node *node = executor->node;
	struct system_saved saved;
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	rc = system_read_saved(executor, &arena, &saved, err);
	if (rc == 0)
		rc = system_check_saved(executor, &saved, err);
	if (rc == 0 && saved.host_id.size != 16) {
		uint8_t random[16];
		struct uuid id;
		uint8_t *copy = arena_alloc_bytes(&arena, 16);

		env_random(executor->env, random, sizeof(random));
		id = uuid_from_random(random);
		if (copy == NULL)
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for the host id");
		else
			saved.host_id = slice_of(memcpy(copy, id.bytes, 16), 16);
	}
	if (rc == 0) {
		memcpy(node->host_id, saved.host_id.data, sizeof(node->host_id));
		node->has_host_id = true;
		node->generation =
		    gossip_next_generation(saved.generation, env_wall_us(executor->env));
		node->bootstrapped = bootstrap_state_parse(saved.bootstrapped);
		node->saved_tokens = system_parse_tokens(saved.tokens, &node->saved_token_count);
		system_tell_host_id(executor, saved.host_id);
		rc = system_write_local(executor, &saved, node->generation, &arena, err);
	}
	arena_fini(&arena);
	return rc;
}

int
system_local_save_tokens(struct executor *executor, enum bootstrap_state state,
    const int64_t *tokens, uint32_t count, struct error *err)
{
	struct slice values[2] = {slice_of_string(bootstrap_state_name(state)), slice_null};
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	values[1] = system_tokens(tokens, count, &arena);
	if (count > 0 && slice_is_null(values[1]))
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for tokens");
	else if (count > 0)
		rc = internal_execute(executor,
		    "INSERT INTO system.local (key, bootstrapped, tokens) VALUES ('local', ?, ?)",
		    values, 2, err);
	else
		rc = internal_execute(executor,
		    "INSERT INTO system.local (key, bootstrapped) VALUES ('local', ?)", values, 1,
		    err);
	arena_fini(&arena);
	return rc == 0 ? store_sync(executor->store, err) : rc;
}

int
system_local_set_schema_version(
    struct executor *executor, const struct uuid *version, struct error *err)
{
	struct slice value = slice_of(version->bytes, sizeof(version->bytes));

	cluster_set_schema(executor->node->cluster, version);
	return internal_execute(executor,
	    "INSERT INTO system.local (key, schema_version) VALUES ('local', ?)", &value, 1, err);
}

int
system_local_set_truncated(struct executor *executor, const struct uuid *table_id,
    struct commitlog_position position, struct error *err)
{
	uint8_t record[20];
	struct slice values[2] = {slice_of(table_id->bytes, 16), slice_of(record, sizeof(record))};

	/* As Cassandra: segment, offset, and the time in milliseconds. */
	store_u64(record, (uint64_t)position.segment_id);
	store_u32(record + 8, (uint32_t)position.position);
	store_u64(record + 12, (uint64_t)(env_wall_us(executor->env) / 1000));
	if (internal_execute(executor,
		"UPDATE system.local SET truncated_at[?] = ? WHERE key = 'local'", values, 2,
		err) != 0)
		return -1;
	return store_sync(executor->store, err);
}

int
system_local_load_truncated(struct executor *executor, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX], id, record;
	struct schema *schema = schema_holder_get(&executor->schema);
	struct type_iterator iterator;
	struct internal_rows rows;
	const struct type *type;
	struct arena arena;

	arena_init(&arena, 1024);
	type = type_map(&arena, type_native(TYPE_UUID), type_native(TYPE_BLOB), false);
	if (type == NULL ||
	    internal_select(executor, "SELECT truncated_at FROM system.local WHERE key = 'local'",
		NULL, 0, &rows, err) != 0) {
		schema_unref(schema);
		arena_fini(&arena);
		return -1;
	}
	if (internal_rows_next(&rows, cells) && !slice_is_null(cells[0])) {
		type_iterator_init(&iterator, type, cells[0]);
		while (type_iterator_next(&iterator, &id, NULL) &&
		    type_iterator_next(&iterator, &record, NULL)) {
			const struct table_metadata *table = NULL;
			struct table_store *store;
			struct uuid uuid;

			if (id.size == 16 && record.size >= 12) {
				memcpy(uuid.bytes, id.data, 16);
				table = schema_table_by_id(schema, &uuid);
			}
			store = table == NULL ? NULL : store_table(executor->store, table);
			/* Truncated after the point in time that is being restored: it has not happened. */
			if (record.size >= 20 &&
			    (int64_t)load_u64(record.data + 12) >
				executor->config->restore_point_ms)
				continue;
			if (store != NULL)
				store_set_truncated(store,
				    (struct commitlog_position){(int64_t)load_u64(record.data),
					(int32_t)load_u32(record.data + 8)},
				    record.size >= 20 ? (int64_t)load_u64(record.data + 12) : 0);
		}
	}
	internal_rows_fini(&rows);
	schema_unref(schema);
	arena_fini(&arena);
	return 0;
}

int
system_local_save_host_id(struct executor *executor, const struct uuid *host_id, struct error *err)
{
	struct slice value = slice_of(host_id->bytes, sizeof(host_id->bytes));

	if (internal_execute(executor,
		"INSERT INTO system.local (key, host_id) VALUES ('local', ?)", &value, 1,
		err) != 0 ||
	    store_sync(executor->store, err) != 0)
		return -1;
	memcpy(executor->node->host_id, host_id->bytes, sizeof(host_id->bytes));
	system_tell_host_id(executor, value);
	return 0;
}
