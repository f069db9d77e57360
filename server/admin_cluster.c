/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API about the ring: its nodes, who holds what, gossip. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "server/admin_internal.h"
#include "server/cluster.h"
#include "server/internode.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

static const char admin_partitioner[] = "org.apache.cassandra.dht.Murmur3Partitioner";

static void
admin_set_endpoint(json_t *json, const struct endpoint *endpoint)
{
	char address[ENDPOINT_TEXT_SIZE];

	admin_set_text(json, "address", endpoint_format_address(endpoint, address));
	admin_set_number(json, "port", endpoint->port);
}

static char *
admin_gossip_text(struct cluster *cluster, struct peer *peer, enum application_state state)
{
	struct buffer value;
	char *text = NULL;

	buffer_init(&value);
	if (gossip_copy_value(cluster->gossip, peer, state, &value))
		text = xstrndup((const char *)value.data, value.size);
	buffer_fini(&value);
	return text;
}

/* ---- ownership ------------------------------------------------------------------------------------------ */

static bool
admin_is_local_keyspace(const struct keyspace_metadata *keyspace)
{
	const struct slice *class_name = option_map_get(&keyspace->replication, "class");

	return keyspace->is_virtual || class_name == NULL ||
	    memmem(class_name->data, class_name->size, "LocalStrategy", strlen("LocalStrategy")) !=
	    NULL;
}

static bool
admin_is_system(const struct keyspace_metadata *keyspace)
{
	return keyspace->is_virtual ||
	    (keyspace->name.size >= 6 && memcmp(keyspace->name.data, "system", 6) == 0);
}

static bool
admin_has_same_replication(const struct keyspace_metadata *a, const struct keyspace_metadata *b)
{
	if (a->replication.count != b->replication.count)
		return false;
	for (uint32_t i = 0; i < a->replication.count; i++) {
		const struct option_entry *entry = &a->replication.entries[i];
		bool is_found = false;

		for (uint32_t j = 0; j < b->replication.count; j++)
			is_found |= slice_equal(entry->key, b->replication.entries[j].key) &&
			    slice_equal(entry->value, b->replication.entries[j].value);
		if (!is_found)
			return false;
	}
	return true;
}

/*
 * Whose replication "Owns (effective)" is about (StorageService.getEffectiveOwnership): the named keyspace's, or that of all
 * the users' own where they agree. NULL with *note: there is none.
 */
static const struct keyspace_metadata *
admin_ownership_keyspace(const struct schema *schema, const char *name, const char **note)
{
	const struct keyspace_metadata *found = NULL;

	*note = NULL;
	if (name != NULL) {
		found = schema_keyspace(schema, slice_of_string(name));
		if (found != NULL && admin_is_local_keyspace(found)) {
			*note = "Ownership values for keyspaces with LocalStrategy are meaningless";
			return NULL;
		}
		return found;
	}
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *each = schema->keyspaces[i];

		if (admin_is_system(each))
			continue;
		if (found != NULL && !admin_has_same_replication(found, each)) {
			*note = "Non-system keyspaces don't have the same replication settings, "
				"effective ownership information is meaningless";
			return NULL;
		}
		found = each;
	}
	return found != NULL ? found : schema_keyspace(schema, slice_of_string("system_traces"));
}

/* ---- ring, status ------------------------------------------------------------------------------------------ */

static const char *
admin_member_state(enum member_state state)
{
	static const char *const names[] = {
	    [MEMBER_NORMAL] = "Normal",
	    [MEMBER_JOINING] = "Joining",
	    [MEMBER_REPLACING] = "Joining",
	    [MEMBER_LEAVING] = "Leaving",
	    [MEMBER_MOVING] = "Moving",
	};

	return names[state];
}

static bool
admin_is_alive(const struct peer *peer)
{
	return peer->is_local || atomic_load_explicit(&peer->is_alive, memory_order_relaxed);
}

static json_t *
admin_member(struct cluster *cluster, const struct member *member, double owns)
{
	json_t *json = json_object(), *tokens = json_array();
	char host_id[UUID_TEXT_SIZE];
	char *load = admin_gossip_text(cluster, member->peer, STATE_LOAD);

	uuid_format(&member->host_id, host_id);
	admin_set_endpoint(json, &member->peer->endpoint);
	admin_set_text(json, "host_id", host_id);
	admin_set_text(json, "data_center", member->datacenter);
	admin_set_text(json, "rack", member->rack);
	admin_set_text(json, "status", admin_is_alive(member->peer) ? "Up" : "Down");
	admin_set_text(json, "state", admin_member_state(member->state));
	admin_set_real(json, "owns", owns);
	if (member->peer->is_local)
		admin_set_number(json, "load_bytes", store_live_bytes(cluster->node->store));
	else
		admin_set(json, "load_bytes",
		    load == NULL ? NULL : json_integer((json_int_t)strtod(load, NULL)));
	for (uint32_t i = 0; i < member->token_count; i++)
		json_array_append_new(tokens, json_integer(member->tokens[i]));
	admin_set(json, "tokens", tokens);
	free(load);
	return json;
}

int
admin_get_ring(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	const char *name = admin_argument(call, "keyspace"), *note;
	struct schema *schema = operations_schema(call->node->executor);
	const struct keyspace_metadata *keyspace = admin_ownership_keyspace(schema, name, &note);
	const struct topology *topology;
	json_t *nodes = json_array();
	double *owns;

	admin_set(call->answer, "nodes", nodes);
	if (keyspace == NULL && note == NULL) {
		schema_unref(schema);
		return error_set(err, ERROR_INVALID, "The keyspace %s, does not exist", name);
	}
	topology = topology_acquire(cluster->topology);
	owns = xcalloc((size_t)topology_member_count(topology) + 1, sizeof(*owns));
	if (keyspace != NULL)
		replication_ownership(topology_replication(topology, keyspace), owns);
	for (uint32_t i = 0; i < topology_member_count(topology); i++)
		json_array_append_new(nodes,
		    admin_member(cluster, topology_member(topology, i),
			keyspace == NULL ? (double)NAN : owns[i]));
	topology_release(cluster->topology, topology);
	schema_unref(schema);
	free(owns);
	admin_set_text(call->answer, "note", note);
	return 0;
}

/* ---- describecluster ------------------------------------------------------------------------------------------ */

static void
admin_group(json_t *groups, const char *name, const struct endpoint *endpoint)
{
	char address[ENDPOINT_TEXT_SIZE];
	json_t *list = json_object_get(groups, name);

	if (list == NULL) {
		list = json_array();
		json_object_set_new(groups, name, list);
	}
	json_array_append_new(list, json_string(endpoint_format(endpoint, address)));
}

struct admin_census {
	struct cluster *cluster;
	json_t *schemas, *versions;
	uint64_t live, unreachable;
};

static void
admin_count_row(void *context, const struct gossip_row *row)
{
	struct admin_census *census = context;
	struct slice schema = row->states[STATE_SCHEMA].value;
	struct slice release = row->states[STATE_RELEASE_VERSION].value;
	bool is_alive = row->is_alive || row->is_local;
	char text[128];

	if (!is_alive && !storage_service_is_member(census->cluster->topology, row->peer))
		return; /* of the past */
	census->live += is_alive;
	census->unreachable += !is_alive;
	if (is_alive && !slice_is_null(schema)) {
		snprintf(text, sizeof(text), "%.*s", (int)schema.size, (const char *)schema.data);
		admin_group(census->schemas, text, &row->peer->endpoint);
	} else {
		admin_group(census->schemas, "UNREACHABLE", &row->peer->endpoint);
	}
	if (!slice_is_null(release)) {
		snprintf(text, sizeof(text), "%.*s", (int)release.size, (const char *)release.data);
		admin_group(census->versions, text, &row->peer->endpoint);
	}
}

static void
admin_set_members(struct cluster *cluster, json_t *answer)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	const char *const *names;
	uint32_t count = topology_datacenters(topology, &names), states[MEMBER_MOVING + 1] = {0};
	json_t *datacenters = json_array();

	for (uint32_t i = 0; i < topology_member_count(topology); i++)
		states[topology_member(topology, i)->state]++;
	for (uint32_t d = 0; d < count; d++) {
		uint64_t nodes = 0, down = 0;
		json_t *json = json_object();

		for (uint32_t i = 0; i < topology_member_count(topology); i++) {
			const struct member *member = topology_member(topology, i);

			if (strcmp(member->datacenter, names[d]) != 0)
				continue;
			nodes++;
			down += !admin_is_alive(member->peer);
		}
		admin_set_text(json, "name", names[d]);
		admin_set_number(json, "nodes", nodes);
		admin_set_number(json, "down", down);
		json_array_append_new(datacenters, json);
	}
	topology_release(cluster->topology, topology);
	admin_set_number(answer, "joining", states[MEMBER_JOINING] + states[MEMBER_REPLACING]);
	admin_set_number(answer, "leaving", states[MEMBER_LEAVING]);
	admin_set_number(answer, "moving", states[MEMBER_MOVING]);
	admin_set(answer, "data_centers", datacenters);
}

static void
admin_set_keyspaces(const struct schema *schema, json_t *answer)
{
	json_t *keyspaces = json_array();

	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];
		json_t *json, *replication;

		if (keyspace->is_virtual)
			continue;
		json = json_object();
		replication = json_object();
		for (uint32_t j = 0; j < keyspace->replication.count; j++) {
			const struct option_entry *option = &keyspace->replication.entries[j];
			char name[128];

			snprintf(name, sizeof(name), "%.*s", (int)option->key.size,
			    (const char *)option->key.data);
			admin_set(replication, name,
			    json_stringn((const char *)option->value.data, option->value.size));
		}
		admin_set(json, "name",
		    json_stringn((const char *)keyspace->name.data, keyspace->name.size));
		admin_set(json, "replication", replication);
		json_array_append_new(keyspaces, json);
	}
	admin_set(answer, "keyspaces", keyspaces);
}

int
admin_get_cluster(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct schema *schema = operations_schema(call->node->executor);
	struct admin_census census = {cluster, json_object(), json_object(), 0, 0};
	char version[UUID_TEXT_SIZE];

	if (admin_get_info(call, err) != 0)
		return -1;
	uuid_format(&schema->version, version);
	admin_set_text(call->answer, "schema_version", version);
	admin_set_text(call->answer, "snitch", snitch_subclass_name(cluster->snitch));
	admin_set(call->answer, "dynamic_snitch", json_boolean(call->node->config->dynamic_snitch));
	admin_set_text(call->answer, "partitioner", admin_partitioner);
	gossip_each(cluster->gossip, admin_count_row, &census);
	admin_set(call->answer, "schema_versions", census.schemas);
	admin_set(call->answer, "versions", census.versions);
	admin_set_number(call->answer, "live", census.live);
	admin_set_number(call->answer, "unreachable", census.unreachable);
	admin_set_members(cluster, call->answer);
	admin_set_keyspaces(schema, call->answer);
	schema_unref(schema);
	return 0;
}

/* ---- who holds what ----------------------------------------------------------------------------------------------- */

static void
admin_set_native(struct cluster *cluster, struct peer *peer, json_t *json)
{
	struct endpoint native = cluster->native;
	char *text = NULL;

	if (!peer->is_local) {
		text = admin_gossip_text(cluster, peer, STATE_NATIVE_ADDRESS_AND_PORT);
		if (text == NULL || endpoint_parse(text, native.port, &native, NULL) != 0)
			native = peer->endpoint;
	}
	char address[ENDPOINT_TEXT_SIZE];

	admin_set_text(json, "rpc_address", endpoint_format_address(&native, address));
	admin_set_number(json, "native_port", native.port);
	free(text);
}

static json_t *
admin_replicas(
    struct cluster *cluster, const struct topology *topology, const struct replica_set *replicas)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < replicas->count; i++) {
		struct peer *peer = replicas->peers[i];
		json_t *json = json_object();

		admin_set_endpoint(json, &peer->endpoint);
		admin_set_native(cluster, peer, json);
		admin_set_text(json, "data_center", topology_datacenter(topology, peer));
		admin_set_text(json, "rack", topology_rack(topology, peer));
		json_array_append_new(list, json);
	}
	return list;
}

static int
admin_need_keyspace(struct admin_call *call, const struct schema *schema,
    const struct keyspace_metadata **out, struct error *err)
{
	const char *name;

	if (admin_need(call, "keyspace", &name, err) != 0)
		return -1;
	*out = schema_keyspace(schema, slice_of_string(name));
	if (*out == NULL)
		return error_set(err, ERROR_INVALID, "The keyspace %s, does not exist", name);
	return 0;
}

int
admin_get_describe_ring(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct schema *schema = operations_schema(call->node->executor);
	const struct keyspace_metadata *keyspace;
	const struct replication *replication;
	const struct topology *topology;
	json_t *ranges = json_array();
	char version[UUID_TEXT_SIZE];

	admin_set(call->answer, "ranges", ranges);
	uuid_format(&schema->version, version);
	admin_set_text(call->answer, "schema_version", version);
	if (admin_need_keyspace(call, schema, &keyspace, err) != 0) {
		schema_unref(schema);
		return -1;
	}
	if (admin_is_local_keyspace(keyspace)) {
		schema_unref(schema);
		return error_set(err, ERROR_INVALID, "There is no ring for the keyspace: %s",
		    admin_argument(call, "keyspace"));
	}
	topology = topology_acquire(cluster->topology);
	replication = topology_replication(topology, keyspace);
	for (uint32_t i = 0; i < replication_range_count(replication); i++) {
		struct ring_range range;
		const struct replica_set *replicas = replication_range(replication, i, &range);
		json_t *json = json_object();

		admin_set(json, "start", json_integer(range.left));
		admin_set(json, "end", json_integer(range.right));
		admin_set(json, "endpoints", admin_replicas(cluster, topology, replicas));
		json_array_append_new(ranges, json);
	}
	topology_release(cluster->topology, topology);
	schema_unref(schema);
	return 0;
}

int
admin_get_endpoints(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct schema *schema = operations_schema(call->node->executor);
	const struct keyspace_metadata *keyspace;
	const struct table_metadata *table;
	const char *name, *text;
	struct arena arena;
	struct slice key;
	int rc = -1;

	arena_init(&arena, 1024);
	if (admin_need_keyspace(call, schema, &keyspace, err) == 0 &&
	    admin_need(call, "table", &name, err) == 0 &&
	    admin_need(call, "key", &text, err) == 0) {
		table = schema_table(schema, keyspace->name, slice_of_string(name));
		rc = table == NULL
		    ? error_set(err, ERROR_INVALID, "Unknown keyspace/cf pair (%s.%s)",
			  admin_argument(call, "keyspace"), name)
		    : admin_partition_key(table, text, &arena, &key, err);
	}
	if (rc == 0) {
		const struct topology *topology = topology_acquire(cluster->topology);
		int64_t token = murmur3_token(key);

		admin_set(call->answer, "token", json_integer(token));
		admin_set(call->answer, "endpoints",
		    admin_replicas(cluster, topology,
			replication_replicas(topology_replication(topology, keyspace), token)));
		topology_release(cluster->topology, topology);
	}
	arena_fini(&arena);
	schema_unref(schema);
	return rc;
}

/* ---- gossip and the wire ------------------------------------------------------------------------------------------------- */

static void
admin_add_phi(void *context, const struct gossip_row *row)
{
	json_t *json;

	if (row->is_local)
		return;
	json = json_object();
	admin_set_endpoint(json, &row->peer->endpoint);
	admin_set_real(json, "phi", row->phi);
	json_array_append_new(context, json);
}

int
admin_get_failure_detector(struct admin_call *call, struct error *err)
{
	json_t *nodes = json_array();

	(void)err;
	gossip_each(call->node->cluster->gossip, admin_add_phi, nodes);
	admin_set(call->answer, "nodes", nodes);
	return 0;
}

int
admin_get_gossip(struct admin_call *call, struct error *err)
{
	const char *with_port = admin_argument(call, "port");
	struct buffer text;

	buffer_init(&text);
	gossip_info(call->node->cluster->gossip, with_port != NULL, &text);
	if (buffer_check(&text, err) != 0) {
		buffer_fini(&text);
		return -1;
	}
	admin_set(call->answer, "text", json_stringn((const char *)text.data, text.size));
	buffer_fini(&text);
	return 0;
}

int
admin_get_seeds(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct endpoint *seeds;
	uint32_t count = gossip_seeds(cluster->gossip, &seeds);
	json_t *list = json_array();

	(void)err;
	for (uint32_t i = 0; i < count; i++) {
		char address[ENDPOINT_TEXT_SIZE];

		if (!endpoint_equal(&seeds[i], &cluster->local))
			json_array_append_new(
			    list, json_string(endpoint_format(&seeds[i], address)));
	}
	free(seeds);
	admin_set(call->answer, "seeds", list);
	return 0;
}

struct admin_pool {
	uint64_t pending, completed, dropped;
};

static void
admin_add_outbound(void *argument, const struct internode_outbound *outbound)
{
	struct admin_pool *pool = &((struct admin_pool *)argument)[outbound->kind];

	pool->pending += outbound->pending_count;
	pool->completed += outbound->sent_count;
	pool->dropped += outbound->overload_count + outbound->expired_count + outbound->error_count;
}

int
admin_get_netstats(struct admin_call *call, struct error *err)
{
	static const struct {
		const char *name;
		enum internode_kind kind;
	} kinds[] = {
	    {"Large messages", INTERNODE_LARGE},
	    {"Small messages", INTERNODE_SMALL},
	    {"Gossip messages", INTERNODE_URGENT},
	};
	struct admin_pool pools[INTERNODE_KINDS] = {0};
	json_t *list = json_array();

	(void)err;
	internode_each_outbound(call->node->internode, admin_add_outbound, pools);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		json_t *json = json_object();

		admin_set_text(json, "name", kinds[i].name);
		admin_set_number(json, "pending", pools[kinds[i].kind].pending);
		admin_set_number(json, "completed", pools[kinds[i].kind].completed);
		admin_set_number(json, "dropped", pools[kinds[i].kind].dropped);
		json_array_append_new(list, json);
	}
	admin_set_text(call->answer, "mode", node_mode_name(call->node));
	admin_set(call->answer, "pools", list);
	admin_set(call->answer, "streams", admin_streams(call->node));
	return 0;
}

/* ---- what an operator does --------------------------------------------------------------------------------------------------- */

int
admin_post_assassinate(struct admin_call *call, struct error *err)
{
	const char *address;

	if (admin_need(call, "address", &address, err) != 0)
		return -1;
	return cluster_assassinate(call->node->cluster, address, err);
}

int
admin_post_gossip(struct admin_call *call, struct error *err)
{
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0 ||
	    (is_on && admin_check_may_start(call->node, "gossip", err) != 0))
		return -1;
	return cluster_set_gossiping(call->node->cluster, is_on, err);
}

int
admin_post_join(struct admin_call *call, struct error *err)
{
	return cluster_join(call->node->cluster, err);
}

int
admin_post_reload_seeds(struct admin_call *call, struct error *err)
{
	if (cluster_reload_seeds(call->node->cluster, err) != 0)
		return -1;
	return admin_get_seeds(call, err);
}
