/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "cluster/token_allocator.h"
#include "server/cluster_internal.h"
#include "server/events.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/system_local.h"
#include "server/system_peers.h"
#include "storage/store.h"

/*
 * What the storage service asks of the server. Tables of other nodes, and the events that tell clients to read them, go
 * through MiscStage in one order: its one thread may wait for the disk, the gossip stage should not.
 */

/* ---- this node ------------------------------------------------------------------------------------ */

static int
cluster_save_local(void *context, enum bootstrap_state state, const int64_t *tokens,
    uint32_t token_count, struct error *err)
{
	struct cluster *cluster = context;

	return system_local_save_tokens(cluster->node->executor, state, tokens, token_count, err);
}

static int
cluster_save_host_id(void *context, const struct uuid *host_id, struct error *err)
{
	struct cluster *cluster = context;

	return system_local_save_host_id(cluster->node->executor, host_id, err);
}

static int
cluster_allocate_for_keyspace(struct cluster *cluster, const struct topology *topology,
    int64_t *tokens, uint32_t count, struct error *err)
{
	const char *name = cluster->node->config->allocate_tokens_for_keyspace;
	struct schema *schema = operations_schema(cluster->node->executor);
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, slice_of_string(name));
	int rc;

	if (keyspace == NULL)
		rc = error_set(err, ERROR_CONFIG,
		    "Problem opening token allocation keyspace %s: it does not exist", name);
	else
		rc = token_allocate_for_keyspace(topology, topology_replication(topology, keyspace),
		    cluster_datacenter(cluster), cluster_rack(cluster), cluster->node->env, count,
		    tokens, err);
	schema_unref(schema);
	return rc;
}

static int
cluster_allocate(void *context, const struct topology *topology, int64_t *tokens, uint32_t count,
    struct error *err)
{
	struct cluster *cluster = context;
	const struct config *config = cluster->node->config;

	if (config->allocate_tokens_for_keyspace != NULL &&
	    *config->allocate_tokens_for_keyspace != '\0')
		return cluster_allocate_for_keyspace(cluster, topology, tokens, count, err);
	if (config->allocate_tokens_for_local_replication_factor > 0)
		return token_allocate_for_factor(topology, cluster_datacenter(cluster),
		    cluster_rack(cluster), config->allocate_tokens_for_local_replication_factor,
		    cluster->node->env, count, tokens, err);
	token_allocate_random(topology, cluster->node->env, count, tokens);
	return 0;
}

/* ---- the others ------------------------------------------------------------------------------------ */

/* One change of what is known of a node, on its way to MiscStage. */
struct cluster_change {
	struct cluster *cluster;
	enum { CLUSTER_SAVE_PEER, CLUSTER_REMOVE_PEER, CLUSTER_TELL } kind;
	struct service_peer peer; /* strings and tokens are owned */
	struct node_event event;
};

static char *
cluster_copy(const char *text)
{
	return text == NULL ? NULL : xstrdup(text);
}

static void
cluster_run_change(void *argument)
{
	struct cluster_change *change = argument;
	struct node *node = change->cluster->node;
	char address[ENDPOINT_TEXT_SIZE];
	struct error err;
	int rc = 0;

	switch (change->kind) {
	case CLUSTER_SAVE_PEER:
		rc = system_peers_save(node->executor, &change->peer, &err);
		break;
	case CLUSTER_REMOVE_PEER:
		rc = system_peers_remove(node->executor, &change->peer.endpoint, &err);
		break;
	case CLUSTER_TELL:
		events_push_node(node->network, &change->event);
		break;
	}
	if (rc != 0)
		log_error("system.peers, %s: %s", endpoint_format(&change->peer.endpoint, address),
		    err.text);
	free((char *)change->peer.datacenter);
	free((char *)change->peer.rack);
	free((char *)change->peer.release_version);
	free((int64_t *)change->peer.tokens);
	free(change);
}

static void
cluster_submit_change(struct cluster_change *change)
{
	struct stage *stage = change->cluster->node->stages[NODE_STAGE_MISC];

	/* A node that stops: what it does not write now it will learn again. */
	if (!stage_submit_work(stage, cluster_run_change, change)) {
		change->kind = CLUSTER_TELL;
		change->event.address.size = 0;
		free((char *)change->peer.datacenter);
		free((char *)change->peer.rack);
		free((char *)change->peer.release_version);
		free((int64_t *)change->peer.tokens);
		free(change);
	}
}

static void
cluster_save_peer(void *context, const struct service_peer *peer)
{
	struct cluster_change *change = xzalloc(sizeof(*change));
	int64_t *tokens = xcalloc((size_t)peer->token_count + 1, sizeof(*tokens));

	if (peer->token_count > 0)
		memcpy(tokens, peer->tokens, peer->token_count * sizeof(*tokens));
	change->cluster = context;
	change->kind = CLUSTER_SAVE_PEER;
	change->peer = *peer;
	change->peer.datacenter = cluster_copy(peer->datacenter);
	change->peer.rack = cluster_copy(peer->rack);
	change->peer.release_version = cluster_copy(peer->release_version);
	change->peer.tokens = tokens;
	cluster_submit_change(change);
}

static void
cluster_remove_peer(void *context, const struct endpoint *endpoint)
{
	struct cluster_change *change = xzalloc(sizeof(*change));

	change->cluster = context;
	change->kind = CLUSTER_REMOVE_PEER;
	change->peer.endpoint = *endpoint;
	cluster_submit_change(change);
}

static void
cluster_tell(void *context, enum service_event event, struct peer *peer, struct endpoint native)
{
	static const enum node_event_kind kinds[] = {
	    [SERVICE_NEW_NODE] = NODE_EVENT_NEW_NODE,
	    [SERVICE_REMOVED_NODE] = NODE_EVENT_REMOVED_NODE,
	    [SERVICE_UP] = NODE_EVENT_UP,
	    [SERVICE_DOWN] = NODE_EVENT_DOWN,
	};
	struct cluster *cluster = context;
	struct cluster_change *change;

	/* Behind one address with us it is no node to a client (Server.EventNotifier). */
	if (endpoint_equal(&native, &cluster->native))
		return;
	change = xzalloc(sizeof(*change));
	change->cluster = cluster;
	change->kind = CLUSTER_TELL;
	change->peer.endpoint = peer->endpoint;
	change->event.kind = kinds[event];
	change->event.address.size = native.size;
	memcpy(change->event.address.bytes, native.address, native.size);
	change->event.address.port = native.port;
	cluster_submit_change(change);
}

const struct storage_service_ops cluster_service_ops = {
    .save_local = cluster_save_local,
    .save_host_id = cluster_save_host_id,
    .save_peer = cluster_save_peer,
    .remove_peer = cluster_remove_peer,
    .tell = cluster_tell,
    .allocate = cluster_allocate,
    .stream = cluster_stream,
    .has_data = cluster_has_data,
    .may_leave = cluster_may_leave,
    .gainers = cluster_gainers,
};

/* ---- LOAD (service/LoadBroadcaster) ------------------------------------------------------------------- */

#define CLUSTER_LOAD_INTERVAL_NS (60 * UINT64_C(1000000000))

struct cluster_load {
	struct cluster *cluster;
	struct cluster_timer timer;
};

static void
cluster_tell_load(void *argument)
{
	struct cluster_load *load = argument;
	struct cluster *cluster = load->cluster;

	storage_service_set_load(cluster->service, store_live_bytes(cluster->node->store));
	cluster_timer_start(cluster->env, &load->timer, CLUSTER_LOAD_INTERVAL_NS);
}

static void
cluster_load_fired(struct cluster_timer *timer)
{
	struct cluster_load *load =
	    (struct cluster_load *)((char *)timer - offsetof(struct cluster_load, timer));

	/* Not taken: the node stops, and so does this. */
	(void)stage_submit_work(
	    load->cluster->node->stages[NODE_STAGE_MISC], cluster_tell_load, load);
}

struct cluster_load *
cluster_load_start(struct cluster *cluster)
{
	struct cluster_load *load = xzalloc(sizeof(*load));

	load->cluster = cluster;
	load->timer.fire = cluster_load_fired;
	(void)stage_submit_work(cluster->node->stages[NODE_STAGE_MISC], cluster_tell_load, load);
	return load;
}

void
cluster_load_free(struct cluster_load *load)
{
	free(load);
}
