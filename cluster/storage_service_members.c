/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/storage_service_internal.h"

/*
 * What gossip says of the others, made into members (StorageService.onChange, handleState*). Callbacks only note
 * whom something changed for; one task after the message reads the states again and decides, so a thousand
 * nodes that are learned in one message make one topology.
 */

/* ---- nodes ---------------------------------------------------------------------------------------- */

struct service_node *
service_node(struct storage_service *service, struct peer *peer)
{
	struct service_node *node;

	if (peer->index >= service->node_capacity) {
		uint32_t capacity = peer->index * 2 + 8;

		service->nodes =
		    xrealloc(service->nodes, (size_t)capacity * sizeof(struct service_node *));
		memset(&service->nodes[service->node_capacity], 0,
		    (size_t)(capacity - service->node_capacity) * sizeof(struct service_node *));
		service->node_capacity = capacity;
	}
	node = service->nodes[peer->index];
	if (node == NULL) {
		node = xzalloc(sizeof(*node));
		node->peer = peer;
		service->nodes[peer->index] = node;
	}
	return node;
}

void
service_nodes_free(struct storage_service *service)
{
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *node = service->nodes[i];

		if (node == NULL)
			continue;
		free(node->datacenter);
		free(node->rack);
		free(node->tokens);
		free(node);
	}
	free(service->nodes);
	service->nodes = NULL;
	service->node_capacity = 0;
}

static int
service_compare_tokens(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

void
service_set_tokens(struct service_node *node, const int64_t *tokens, uint32_t count)
{
	int64_t *copy = count == 0 ? NULL : xcalloc(count, sizeof(*copy));

	if (count > 0) {
		memcpy(copy, tokens, count * sizeof(*copy));
		qsort(copy, count, sizeof(*copy), service_compare_tokens);
	}
	free(node->tokens);
	node->tokens = copy;
	node->token_count = count;
}

/* value may be what *field is. */
static void
service_assign(char **field, const char *value)
{
	char *copy = xstrdup(value);

	free(*field);
	*field = copy;
}

/* ---- reading gossip's states ------------------------------------------------------------------------ */

/* A value as a string that the caller frees; NULL: not known. */
static char *
service_text(struct storage_service *service, struct peer *peer, enum application_state state)
{
	struct slice value = gossip_value(service->gossip, peer, state);

	return slice_is_null(value) ? NULL : xstrndup((const char *)value.data, value.size);
}

static bool
service_is_rpc_ready(struct storage_service *service, struct peer *peer)
{
	struct slice value = gossip_value(service->gossip, peer, STATE_RPC_READY);

	return !slice_is_null(value) && slice_equal_string(value, "true");
}

static bool
service_endpoint(struct storage_service *service, struct peer *peer, enum application_state state,
    uint16_t port, struct endpoint *out)
{
	char *text = service_text(service, peer, state);
	bool is_good = text != NULL && endpoint_parse(text, port, out, NULL) == 0;

	free(text);
	return is_good;
}

/* Where clients connect: with its port, or of a node that tells the address alone. */
static struct endpoint
service_native(struct storage_service *service, struct peer *peer)
{
	uint16_t port = service->options.native.port;
	struct endpoint native = {.size = 0};

	if (!service_endpoint(service, peer, STATE_NATIVE_ADDRESS_AND_PORT, port, &native) &&
	    !service_endpoint(service, peer, STATE_RPC_ADDRESS, port, &native))
		native.size = 0;
	return native;
}

static bool
service_uuid(struct storage_service *service, struct peer *peer, enum application_state state,
    struct uuid *out)
{
	struct slice value = gossip_value(service->gossip, peer, state);

	return !slice_is_null(value) && uuid_parse((const char *)value.data, value.size, out) == 0;
}

static void
service_place(struct storage_service *service, struct service_node *node,
    const char *told_datacenter, const char *told_rack)
{
	const char *datacenter, *rack;

	snitch_locate(
	    service->snitch, &node->peer->endpoint, told_datacenter, told_rack, &datacenter, &rack);
	service_assign(&node->datacenter, datacenter);
	service_assign(&node->rack, rack);
}

static void
service_read_place(struct storage_service *service, struct service_node *node)
{
	char *datacenter = service_text(service, node->peer, STATE_DC);
	char *rack = service_text(service, node->peer, STATE_RACK);

	/* Before it has told its own: what system.peers kept. */
	service_place(service, node, datacenter != NULL ? datacenter : node->datacenter,
	    rack != NULL ? rack : node->rack);
	free(datacenter);
	free(rack);
}

/* -1: it tells none. */
static int
service_read_tokens(struct storage_service *service, struct service_node *node)
{
	struct slice value = gossip_value(service->gossip, node->peer, STATE_TOKENS);
	int64_t *tokens = NULL;
	uint32_t count = 0;
	struct error err;

	if (slice_is_null(value))
		return -1;
	if (tokens_decode(value, &tokens, &count, &err) != 0) {
		char address[ENDPOINT_TEXT_SIZE];

		log_warn(
		    "tokens of %s: %s", endpoint_format(&node->peer->endpoint, address), err.text);
		return -1;
	}
	service_set_tokens(node, tokens, count);
	free(tokens);
	return count == 0 ? -1 : 0;
}

static void
service_join_as(struct storage_service *service, struct service_node *node, enum member_state state)
{
	char address[ENDPOINT_TEXT_SIZE];
	bool has_tokens = service_read_tokens(service, node) == 0;

	/* A node that is in the ring keeps the tokens that we know of. */
	if (!has_tokens && node->token_count == 0) {
		node->is_in_ring = false;
		return;
	}
	if (state == MEMBER_NORMAL && (!node->is_in_ring || node->state != MEMBER_NORMAL))
		log_info("Node %s state jump to NORMAL",
		    endpoint_format(&node->peer->endpoint, address));
	node->is_in_ring = true;
	node->state = state;
}

/* The states of one node, as gossip has them now. */
static void
service_read(struct storage_service *service, struct service_node *node)
{
	struct node_status status = gossip_status(service->gossip, node->peer);
	char address[ENDPOINT_TEXT_SIZE];
	int32_t generation = 0;

	if (!gossip_knows(service->gossip, node->peer, &generation, NULL))
		return;
	/* States of one that was put out are readable for a while; a new start of it counts again. */
	if (node->is_removed && generation <= node->generation)
		return;
	node->is_removed = false;
	node->generation = generation;
	if (service_uuid(service, node->peer, STATE_HOST_ID, &node->host_id))
		node->has_host_id = true;
	service_read_place(service, node);
	if (status.kind != NODE_STATUS_NONE)
		node->is_saved = false;
	/* It is gone, or it came back. */
	if (status.kind != NODE_STATUS_REMOVING && status.kind != NODE_STATUS_NONE)
		service_restore_end(service, node->peer);
	switch (status.kind) {
	case NODE_STATUS_NORMAL:
	case NODE_STATUS_SHUTDOWN:
		if (status.kind == NODE_STATUS_NORMAL)
			service_put_out_replaced(service, node);
		service_join_as(service, node, MEMBER_NORMAL);
		break;
	case NODE_STATUS_BOOT:
		service_join_as(service, node, MEMBER_JOINING);
		break;
	case NODE_STATUS_BOOT_REPLACE:
		node->replaces = peers_get(service->peers, &status.replaced);
		service_join_as(service, node, MEMBER_REPLACING);
		break;
	case NODE_STATUS_LEAVING:
		service_join_as(service, node, MEMBER_LEAVING);
		break;
	case NODE_STATUS_REMOVING:
		service_join_as(service, node, MEMBER_LEAVING);
		service_restore(service, node);
		break;
	case NODE_STATUS_MOVING:
		node->next_token = status.token;
		service_join_as(service, node, MEMBER_MOVING);
		break;
	case NODE_STATUS_LEFT:
	case NODE_STATUS_REMOVED:
		if (node->is_in_ring)
			log_info("Node %s has left the ring",
			    endpoint_format(&node->peer->endpoint, address));
		node->is_in_ring = false;
		break;
	case NODE_STATUS_HIBERNATE: /* a member that does not serve stays one */
		break;
	case NODE_STATUS_NONE:
		/*
		 * It has started again, and says in a moment where it stands. Until then it is what it was: were its ranges
		 * other nodes' meanwhile, these would have writes that nobody asks them for afterwards.
		 */
		break;
	}
}

/* ---- conflicts ---------------------------------------------------------------------------------------- */

/* Did `a` start after `b`? Gossiper.compareEndpointStartup; every node must find the same. */
static bool
service_is_newer(const struct service_node *a, const struct service_node *b)
{
	if (a->generation != b->generation)
		return a->generation > b->generation;
	return endpoint_compare(&a->peer->endpoint, &b->peer->endpoint) > 0;
}

/* Out of the ring, and gossip shall forget it: another one took its place. */
static void
service_excise(struct storage_service *service, struct service_node *node)
{
	node->is_in_ring = false;
	node->is_saved = false;
	node->is_removed = !node->peer->is_local;
	node->is_dirty = true;
	if (!node->peer->is_local)
		gossip_replaced(service->gossip, node->peer);
}

void
service_put_out_replaced(struct storage_service *service, struct service_node *node)
{
	struct peer *replaced = node->replaces;
	char new[ENDPOINT_TEXT_SIZE], old[ENDPOINT_TEXT_SIZE];

	node->replaces = NULL;
	if (node->state != MEMBER_REPLACING || replaced == NULL || replaced == node->peer ||
	    !service_node(service, replaced)->is_in_ring)
		return;
	log_info("Node %s has replaced %s", endpoint_format(&node->peer->endpoint, new),
	    endpoint_format(&replaced->endpoint, old));
	service_excise(service, service_node(service, replaced));
}

/* Two addresses with one host id are one node that moved: the later start is right. */
static void
service_resolve_host_id(struct storage_service *service, struct service_node *node)
{
	char old[ENDPOINT_TEXT_SIZE], new[ENDPOINT_TEXT_SIZE], id[UUID_TEXT_SIZE];

	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *other = service->nodes[i], *loser;

		if (other == NULL || other == node || !other->is_in_ring || !other->has_host_id ||
		    !uuid_equal(&other->host_id, &node->host_id))
			continue;
		if (node->peer->is_local || other->peer->is_local)
			loser = node->peer->is_local ? other : node;
		else
			loser = service_is_newer(node, other) ? other : node;
		uuid_format(&node->host_id, id);
		log_warn("Host ID collision for %s between %s and %s; %s is the new owner", id,
		    endpoint_format(&other->peer->endpoint, old),
		    endpoint_format(&node->peer->endpoint, new), loser == other ? new : old);
		service_excise(service, loser);
		if (loser == node)
			return;
	}
}

struct service_token {
	int64_t token;
	struct service_node *node;
};

static int
service_compare_owners(const void *a, const void *b)
{
	const struct service_token *left = a, *right = b;

	if (left->token != right->token)
		return left->token < right->token ? -1 : 1;
	return service_is_newer(left->node, right->node) ? -1 : 1;
}

static void
service_drop_token(struct storage_service *service, struct service_node *node, int64_t token)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < node->token_count; i++)
		if (node->tokens[i] != token)
			node->tokens[kept++] = node->tokens[i];
	node->token_count = kept;
	if (kept == 0)
		service_excise(service, node);
}

static bool
service_owns_tokens(const struct service_node *node)
{
	return node != NULL && node->is_in_ring &&
	    (node->state == MEMBER_NORMAL || node->state == MEMBER_LEAVING ||
		node->state == MEMBER_MOVING);
}

/* Two owners of a token: it is the later one's. */
static void
service_resolve_tokens(struct storage_service *service)
{
	struct service_token *owners;
	size_t count = 0, used = 0, first = 0;

	for (uint32_t i = 0; i < service->node_capacity; i++)
		if (service_owns_tokens(service->nodes[i]))
			count += service->nodes[i]->token_count;
	owners = xcalloc(count + 1, sizeof(*owners));
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *node = service->nodes[i];

		for (uint32_t t = 0; service_owns_tokens(node) && t < node->token_count; t++)
			owners[used++] = (struct service_token){node->tokens[t], node};
	}
	qsort(owners, used, sizeof(*owners), service_compare_owners);
	for (size_t i = 1; i < used; i++) {
		char winner[ENDPOINT_TEXT_SIZE], loser[ENDPOINT_TEXT_SIZE];

		if (owners[i].token != owners[first].token) {
			first = i;
			continue;
		}
		log_warn("Nodes %s and %s have the same token %" PRId64 ".  Ignoring %s",
		    endpoint_format(&owners[first].node->peer->endpoint, winner),
		    endpoint_format(&owners[i].node->peer->endpoint, loser), owners[i].token,
		    loser);
		service_drop_token(service, owners[i].node, owners[i].token);
	}
	free(owners);
}

/* ---- topology --------------------------------------------------------------------------------------------- */

static int
service_update(struct storage_service *service, struct error *err)
{
	struct member *members = xcalloc((size_t)service->node_capacity + 1, sizeof(*members));
	uint32_t count = 0;
	int rc;

	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *node = service->nodes[i];

		if (node == NULL || !node->is_in_ring)
			continue;
		members[count++] = (struct member){
		    .peer = node->peer,
		    .host_id = node->host_id,
		    .datacenter = node->datacenter,
		    .rack = node->rack,
		    .state = node->state,
		    .token_count = node->token_count,
		    .tokens = node->tokens,
		    .next_token_count = node->state == MEMBER_MOVING,
		    .next_tokens = &node->next_token,
		    .replaces = node->state == MEMBER_REPLACING ? node->replaces : NULL,
		};
	}
	rc = topology_update(service->holder, members, count, err);
	free(members);
	return rc;
}

/* ---- system.peers and events ---------------------------------------------------------------------------------- */

static void
service_save_peer(struct storage_service *service, struct service_node *node)
{
	char *release = service_text(service, node->peer, STATE_RELEASE_VERSION);
	struct service_peer row = {
	    .endpoint = node->peer->endpoint,
	    .host_id = node->host_id,
	    .has_host_id = node->has_host_id,
	    .datacenter = node->datacenter,
	    .rack = node->rack,
	    .release_version = release,
	    .native = service_native(service, node->peer),
	    .tokens = node->tokens,
	    .token_count = node->token_count,
	};

	if (!service_endpoint(service, node->peer, STATE_INTERNAL_ADDRESS_AND_PORT,
		node->peer->endpoint.port, &row.internal))
		row.internal.size = 0;
	row.has_schema_version =
	    service_uuid(service, node->peer, STATE_SCHEMA, &row.schema_version);
	service->ops->save_peer(service->context, &row);
	if (row.has_schema_version)
		atomic_store_explicit(&node->peer->saved_schema, load_u64(row.schema_version.bytes),
		    memory_order_release);
	free(release);
}

static void
service_tell(struct storage_service *service, struct service_node *node, enum service_event event)
{
	if (node->native.size != 0)
		service->ops->tell(service->context, event, node->peer, node->native);
}

/*
 * Server.EventNotifier's rules: a node is NEW and UP to clients once they can connect to it (RPC_READY); one event for each
 * change.
 */
static void
service_tell_clients(struct storage_service *service, struct service_node *node, bool is_member)
{
	bool is_alive = atomic_load_explicit(&node->peer->is_alive, memory_order_relaxed);
	bool is_ready = is_member && is_alive && service_is_rpc_ready(service, node->peer);

	if (node->was_member && !is_member) {
		if (!node->is_join_untold)
			service_tell(service, node, SERVICE_REMOVED_NODE);
		node->is_join_untold = false;
		node->told = SERVICE_TOLD_NOTHING;
		return;
	}
	if (!node->was_member && is_member)
		node->is_join_untold = true;
	if (is_ready) {
		node->native = service_native(service, node->peer);
		if (node->is_join_untold)
			service_tell(service, node, SERVICE_NEW_NODE);
		node->is_join_untold = false;
		if (node->told != SERVICE_TOLD_UP)
			service_tell(service, node, SERVICE_UP);
		node->told = SERVICE_TOLD_UP;
	} else if (node->told == SERVICE_TOLD_UP) {
		service_tell(service, node, SERVICE_DOWN);
		node->told = SERVICE_TOLD_DOWN;
	}
}

static void
service_finish(struct storage_service *service, struct service_node *node)
{
	bool is_member = service_owns_tokens(node);

	node->is_dirty = false;
	if (node->peer->is_local) {
		node->was_member = is_member;
		return;
	}
	/* A saved one is in system.peers as it is. */
	if (is_member && !node->is_saved)
		service_save_peer(service, node);
	if (node->was_member && !node->is_in_ring)
		service->ops->remove_peer(service->context, &node->peer->endpoint);
	service_tell_clients(service, node, is_member);
	node->was_member = is_member;
}

/* ---- putting it together ------------------------------------------------------------------------------------------ */

void
service_apply(struct storage_service *service)
{
	uint32_t count = service->node_capacity;
	struct error err;

	for (uint32_t i = 0; i < count; i++) {
		struct service_node *node = service->nodes[i];

		if (node == NULL || !node->is_dirty)
			continue;
		if (!node->peer->is_local)
			service_read(service, node);
		if (node->is_in_ring && node->has_host_id)
			service_resolve_host_id(service, node);
	}
	if (service_update(service, &err) != 0) {
		service_resolve_tokens(service);
		if (service_update(service, &err) != 0)
			log_error("the topology cannot be changed: %s", err.text);
	}
	for (uint32_t i = 0; i < service->node_capacity; i++)
		if (service->nodes[i] != NULL && service->nodes[i]->is_dirty)
			service_finish(service, service->nodes[i]);
}

static void
service_apply_run(struct task *task, struct worker *worker)
{
	struct storage_service *service =
	    (struct storage_service *)((char *)task - offsetof(struct storage_service, apply_task));

	(void)worker;
	service->is_apply_queued = false;
	service_apply(service);
	service_check_settled(service);
	service_check_removal(service);
}

void
service_mark(struct storage_service *service, struct peer *peer)
{
	service_node(service, peer)->is_dirty = true;
	if (service->is_apply_queued)
		return;
	service->apply_task = (struct task){.run = service_apply_run};
	service->is_apply_queued = true;
	/* Refused by a stage that stops: the node does too. */
	if (!cluster_submit(service->env, CLUSTER_STAGE_GOSSIP, &service->apply_task))
		service->is_apply_queued = false;
}

void
service_set_local(struct storage_service *service, enum member_state state)
{
	struct service_node *node = service_node(service, peers_local(service->peers));

	node->host_id = service->options.host_id;
	node->has_host_id = true;
	node->generation = service->options.generation;
	service_assign(&node->datacenter, snitch_local_datacenter(service->snitch));
	service_assign(&node->rack, snitch_local_rack(service->snitch));
	service_set_tokens(node, service->tokens, service->token_count);
	node->is_in_ring = service->token_count > 0;
	node->state = state;
	node->is_dirty = true;
	service_apply(service);
}

/* ---- gossip's callbacks ----------------------------------------------------------------------------------------------- */

static struct storage_service *
service_of(struct gossip_subscriber *subscriber)
{
	return (struct storage_service *)((char *)subscriber -
	    offsetof(struct storage_service, subscriber));
}

static void
service_on_join(struct gossip_subscriber *subscriber, struct peer *peer)
{
	service_mark(service_of(subscriber), peer);
}

/* What the topology, system.peers or a client's view of the node depends on. */
static uint32_t
service_watched(void)
{
	static const enum application_state states[] = {STATE_STATUS, STATE_STATUS_WITH_PORT,
	    STATE_SCHEMA, STATE_DC, STATE_RACK, STATE_RELEASE_VERSION, STATE_RPC_ADDRESS,
	    STATE_HOST_ID, STATE_TOKENS, STATE_RPC_READY, STATE_INTERNAL_ADDRESS_AND_PORT,
	    STATE_NATIVE_ADDRESS_AND_PORT};
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		bits |= application_state_bit(states[i]);
	return bits;
}

static void
service_on_change(struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed)
{
	if (!peer->is_local && (changed & service_watched()) != 0)
		service_mark(service_of(subscriber), peer);
}

static void
service_on_alive(struct gossip_subscriber *subscriber, struct peer *peer)
{
	service_mark(service_of(subscriber), peer);
}

static void
service_on_remove(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct storage_service *service = service_of(subscriber);
	struct service_node *node = service_node(service, peer);

	node->is_in_ring = false;
	node->is_saved = false;
	node->is_removed = true;
	service_restore_end(service, peer);
	service_mark(service, peer);
}

void
service_subscribe(struct storage_service *service)
{
	service->subscriber = (struct gossip_subscriber){
	    .on_join = service_on_join,
	    .on_change = service_on_change,
	    .on_alive = service_on_alive,
	    .on_dead = service_on_alive,
	    .on_remove = service_on_remove,
	    .on_restart = service_on_alive,
	};
	gossip_subscribe(service->gossip, &service->subscriber);
}

void
storage_service_add_saved(
    struct storage_service *service, struct peer *peer, const struct service_peer *saved)
{
	struct service_node *node = service_node(service, peer);

	gossip_add_saved(service->gossip, peer, saved->has_host_id ? &saved->host_id : NULL,
	    saved->datacenter, saved->rack, saved->tokens, saved->token_count);
	node->host_id = saved->host_id;
	node->has_host_id = saved->has_host_id;
	service_place(service, node, saved->datacenter, saved->rack);
	service_set_tokens(node, saved->tokens, saved->token_count);
	node->native = saved->native;
	node->is_saved = true;
	node->is_in_ring = saved->token_count > 0;
	node->was_member = node->is_in_ring;
	node->state = MEMBER_NORMAL;
	node->is_dirty = true;
}

bool
storage_service_is_member(void *holder, struct peer *peer)
{
	const struct topology *topology = topology_acquire(holder);
	const struct member *member = topology_find(topology, peer);
	bool is_member =
	    member != NULL && member->state != MEMBER_JOINING && member->state != MEMBER_REPLACING;

	topology_release(holder, topology);
	return is_member;
}
