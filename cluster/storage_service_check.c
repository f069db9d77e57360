/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/storage_service_internal.h"

/*
 * May this node join, and in whose place (StorageService.checkForEndpointCollision, prepareForReplacement)? Asked of what
 * the shadow round brought, before anybody hears of this node.
 */

static struct peer *
service_local(struct storage_service *service)
{
	return peers_local(service->peers);
}

/* ---- may we join? -------------------------------------------------------------------------------------------- */

static struct node_status
service_shadow_status(struct storage_service *service, struct peer *peer)
{
	struct node_status status = {.kind = NODE_STATUS_NONE};
	struct slice value = gossip_shadow_value(service->gossip, peer, STATE_STATUS_WITH_PORT);

	if (slice_is_null(value))
		value = gossip_shadow_value(service->gossip, peer, STATE_STATUS);
	if (node_status_parse(value, service_local(service)->endpoint.port, &status, NULL) != 0)
		status.kind = NODE_STATUS_NONE;
	return status;
}

/* Is there a ring with data beside us? */
static bool
service_shadow_has_members(struct storage_service *service)
{
	for (uint32_t i = 0; i < peers_count(service->peers); i++) {
		struct peer *peer = peers_at(service->peers, i);

		if (peer->is_local || !gossip_shadow_knows(service->gossip, peer))
			continue;
		switch (service_shadow_status(service, peer).kind) {
		case NODE_STATUS_NORMAL:
		case NODE_STATUS_SHUTDOWN:
		case NODE_STATUS_LEAVING:
		case NODE_STATUS_MOVING:
			return true;
		default:
			break;
		}
	}
	return false;
}

/* Gossiper.isSafeForStartup: is somebody else known under our address? */
static int
service_check_address(struct storage_service *service, struct error *err)
{
	struct peer *local = service_local(service);
	char address[ENDPOINT_TEXT_SIZE];
	struct node_status status;
	struct slice host_id;
	struct uuid known;
	bool is_safe;

	if (!gossip_shadow_knows(service->gossip, local))
		return 0;
	status = service_shadow_status(service, local);
	if (node_status_is_dead(status.kind))
		return 0;
	if (service->shall_bootstrap) {
		is_safe = status.kind != NODE_STATUS_NONE && status.kind != NODE_STATUS_NORMAL &&
		    status.kind != NODE_STATUS_SHUTDOWN;
	} else {
		host_id = gossip_shadow_value(service->gossip, local, STATE_HOST_ID);
		is_safe = slice_is_null(host_id) ||
		    uuid_parse((const char *)host_id.data, host_id.size, &known) != 0 ||
		    uuid_equal(&known, &service->options.host_id);
	}
	if (is_safe)
		return 0;
	return error_set(err, ERROR_CONFIG,
	    "A node with address %s already exists, cancelling join. Use "
	    "cassandra.replace_address if you want to replace this node.",
	    endpoint_format(&local->endpoint, address));
}

/* One change of the ring at a time, where it has to move data. */
struct service_others {
	struct buffer bootstrapping, leaving, moving;
};

static void
service_others_add(struct buffer *list, const struct peer *peer)
{
	char address[ENDPOINT_TEXT_SIZE];

	buffer_printf(
	    list, "%s%s", list->size == 0 ? "" : ",", endpoint_format(&peer->endpoint, address));
}

static int
service_others_end(struct service_others *others, struct error *err)
{
	int rc = 0;

	if (others->bootstrapping.size + others->leaving.size + others->moving.size > 0)
		rc = error_set(err, ERROR_CONFIG,
		    "Other bootstrapping/leaving/moving nodes detected, cannot bootstrap while "
		    "cassandra.consistent.rangemovement is true. Nodes detected, bootstrapping: "
		    "%.*s; leaving: %.*s; moving: %.*s;",
		    (int)others->bootstrapping.size, (const char *)others->bootstrapping.data,
		    (int)others->leaving.size, (const char *)others->leaving.data,
		    (int)others->moving.size, (const char *)others->moving.data);
	buffer_fini(&others->bootstrapping);
	buffer_fini(&others->leaving);
	buffer_fini(&others->moving);
	return rc;
}

static void
service_others_init(struct service_others *others)
{
	buffer_init(&others->bootstrapping);
	buffer_init(&others->leaving);
	buffer_init(&others->moving);
}

static bool
service_is_lower(struct storage_service *service, const struct service_node *node)
{
	return endpoint_compare(&node->peer->endpoint, &peers_local(service->peers)->endpoint) < 0;
}

/* One change of the ring at a time, of a node that leaves, moves or is removed; see service_check_members(). */
int
service_check_changes(struct storage_service *service, const struct service_node *removed,
    bool is_last, struct error *err)
{
	static const char *const doings[] = {[MEMBER_JOINING] = "joining",
	    [MEMBER_REPLACING] = "joining in place of another node",
	    [MEMBER_LEAVING] = "leaving",
	    [MEMBER_MOVING] = "moving"};
	char address[ENDPOINT_TEXT_SIZE];

	if (!service->options.consistent_rangemovement)
		return 0;
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		const struct service_node *node = service->nodes[i];

		if (node == NULL || node == removed || !node->is_in_ring || node->peer->is_local ||
		    node->state == MEMBER_NORMAL)
			continue;
		/* Who joins gives way itself: see service_check_members(). */
		if (is_last &&
		    (node->state == MEMBER_JOINING || node->state == MEMBER_REPLACING ||
			!service_is_lower(service, node)))
			continue;
		return error_set(err, ERROR_INVALID,
		    "Other bootstrapping/leaving/moving nodes detected, cannot change the ring "
		    "while "
		    "cassandra.consistent.rangemovement is true: %s is %s",
		    endpoint_format(&node->peer->endpoint, address), doings[node->state]);
	}
	return 0;
}

/*
 * The same of a node that joins, and nobody may have come back whom we replace. is_last: of two that began to join at the
 * same moment and have seen each other, the one with the lower address goes on.
 */
int
service_check_members(struct storage_service *service, bool is_last, struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE];
	struct service_others others;

	if (service->replaced != NULL && !service->replaced->is_local &&
	    atomic_load_explicit(&service->replaced->is_alive, memory_order_relaxed))
		return error_set(err, ERROR_CONFIG, "Cannot replace a live node: %s is up",
		    endpoint_format(&service->replaced->endpoint, address));
	if (!service->options.consistent_rangemovement)
		return 0;
	service_others_init(&others);
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		const struct service_node *node = service->nodes[i];

		if (node == NULL || !node->is_in_ring || node->peer->is_local)
			continue;
		if (node->state == MEMBER_JOINING && (!is_last || service_is_lower(service, node)))
			service_others_add(&others.bootstrapping, node->peer);
		else if (node->state == MEMBER_LEAVING)
			service_others_add(&others.leaving, node->peer);
		else if (node->state == MEMBER_MOVING)
			service_others_add(&others.moving, node->peer);
	}
	return service_others_end(&others, err);
}

/* ---- in place of a dead node ------------------------------------------------------------------------------ */

/* 1: this node replaces another one. */
static int
service_wants_replace(struct storage_service *service, struct error *err)
{
	const struct storage_service_options *options = &service->options;

	if (options->replaced.size == 0)
		return 0;
	if (service->bootstrapped == BOOTSTRAP_COMPLETED && options->is_first_boot_only) {
		log_info("Replace address on the first boot requested; this node is already "
			 "bootstrapped");
		return 0;
	}
	if (service->bootstrapped == BOOTSTRAP_COMPLETED)
		return error_set(err, ERROR_CONFIG,
		    "Cannot replace address with a node that is already bootstrapped");
	if (!options->join_ring)
		return error_set(err, ERROR_CONFIG,
		    "Cannot set both join_ring=false and attempt to replace a node");
	if (!options->allow_unsafe_replace &&
	    (!options->auto_bootstrap ||
		gossip_is_seed(service->gossip, &service_local(service)->endpoint)))
		return error_set(err, ERROR_CONFIG,
		    "Replacing a node without bootstrapping risks invalidating consistency "
		    "guarantees as the expected data may not be present until repair is run. To "
		    "perform this operation, please restart with "
		    "-Dcassandra.allow_unsafe_replace=true");
	return 1;
}

/* Under its old address the node has its old host id too: hints for it will find it. */
static int
service_take_host_id(struct storage_service *service, struct error *err)
{
	struct slice text = gossip_shadow_value(service->gossip, service->replaced, STATE_HOST_ID);
	struct uuid host_id;

	if (!service->replaced->is_local)
		return 0;
	if (slice_is_null(text) || uuid_parse((const char *)text.data, text.size, &host_id) != 0)
		return error_set(
		    err, ERROR_CONFIG, "The host id of the replaced node is not known");
	service->options.host_id = host_id;
	return service->ops->save_host_id(service->context, &host_id, err);
}

static int
service_take_over(struct storage_service *service, struct error *err)
{
	struct peer *peer = peers_get(service->peers, &service->options.replaced);
	char address[ENDPOINT_TEXT_SIZE];
	struct slice value;
	int64_t *tokens;
	uint32_t count;

	endpoint_format(&peer->endpoint, address);
	if (!gossip_shadow_has_answer(service->gossip) ||
	    !gossip_shadow_knows(service->gossip, peer))
		return error_set(err, ERROR_CONFIG,
		    "Cannot replace_address %s because it doesn't exist in gossip", address);
	for (uint32_t i = 0; i < peers_count(service->peers); i++) {
		struct peer *other = peers_at(service->peers, i);
		struct node_status status = service_shadow_status(service, other);

		if (!other->is_local && status.kind == NODE_STATUS_BOOT_REPLACE &&
		    endpoint_equal(&status.replaced, &peer->endpoint))
			return error_set(err, ERROR_CONFIG,
			    "Cannot replace_address %s: it is being replaced already", address);
	}
	value = gossip_shadow_value(service->gossip, peer, STATE_TOKENS);
	if (slice_is_null(value) || tokens_decode(value, &tokens, &count, err) != 0 || count == 0)
		return error_set(
		    err, ERROR_CONFIG, "Could not find tokens for %s to replace", address);
	service->replaced = peer;
	service_keep_tokens(service, tokens, count);
	free(tokens);
	log_info("Gathered %u tokens of %s, which this node replaces", (unsigned)count, address);
	return service_take_host_id(service, err);
}

static bool
service_has_saved_token(const struct storage_service *service, int64_t token)
{
	for (uint32_t i = 0; i < service->options.saved_token_count; i++)
		if (service->options.saved_tokens[i] == token)
			return true;
	return false;
}

/* Does the other one, a member under another host id, own a token that is ours? */
static bool
service_has_our_token(struct storage_service *service, struct peer *peer, int64_t *token)
{
	enum node_status_kind kind = service_shadow_status(service, peer).kind;
	struct slice id = gossip_shadow_value(service->gossip, peer, STATE_HOST_ID);
	struct slice text = gossip_shadow_value(service->gossip, peer, STATE_TOKENS);
	struct uuid host_id;
	int64_t *tokens;
	uint32_t count;
	struct error err;
	bool has = false;

	if ((kind != NODE_STATUS_NORMAL && kind != NODE_STATUS_SHUTDOWN &&
		kind != NODE_STATUS_LEAVING && kind != NODE_STATUS_MOVING) ||
	    slice_is_null(id) || uuid_parse((const char *)id.data, id.size, &host_id) != 0 ||
	    uuid_equal(&host_id, &service->options.host_id) || slice_is_null(text) ||
	    tokens_decode(text, &tokens, &count, &err) != 0)
		return false;
	for (uint32_t i = 0; i < count && !has; i++) {
		has = service_has_saved_token(service, tokens[i]);
		*token = tokens[i];
	}
	free(tokens);
	return has;
}

/*
 * A node that was replaced while it was away has nothing to come back to. By the rule of the later start it would take its tokens
 * from the one who stands in its place, and what was written to that one since would be lost.
 */
static int
service_check_replaced(struct storage_service *service, struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE];
	int64_t token;

	if (service->bootstrapped != BOOTSTRAP_COMPLETED)
		return 0;
	for (uint32_t i = 0; i < peers_count(service->peers); i++) {
		struct peer *peer = peers_at(service->peers, i);

		if (peer->is_local || !gossip_shadow_knows(service->gossip, peer) ||
		    !service_has_our_token(service, peer, &token))
			continue;
		return error_set(err, ERROR_CONFIG,
		    "Token %" PRId64
		    " of this node is owned by %s now: this node was replaced while it was away. "
		    "Remove its data to let it join as a new node",
		    token, endpoint_format(&peer->endpoint, address));
	}
	return 0;
}

/*
 * This node was joining when it stopped. What it fetched counts as long as the others know it with these tokens: they have sent it
 * copies of their writes, or waited for one answer more. Where they have forgotten it, writes went past it.
 */
static void
service_check_resume(struct storage_service *service)
{
	const struct storage_service_options *options = &service->options;
	struct peer *local = service_local(service);
	struct node_status status = service_shadow_status(service, local);
	struct slice id = gossip_shadow_value(service->gossip, local, STATE_HOST_ID);
	struct slice text = gossip_shadow_value(service->gossip, local, STATE_TOKENS);
	struct uuid host_id;
	int64_t *tokens = NULL;
	uint32_t count;
	struct error err;
	bool is_known;

	if (service->bootstrapped != BOOTSTRAP_IN_PROGRESS || !service->shall_bootstrap)
		return;
	is_known = gossip_shadow_knows(service->gossip, local) &&
	    (service->replaced == NULL ? status.kind == NODE_STATUS_BOOT
				       : status.kind == NODE_STATUS_BOOT_REPLACE &&
			endpoint_equal(&status.replaced, &service->replaced->endpoint)) &&
	    !slice_is_null(id) && uuid_parse((const char *)id.data, id.size, &host_id) == 0 &&
	    uuid_equal(&host_id, &options->host_id) && !slice_is_null(text) &&
	    tokens_decode(text, &tokens, &count, &err) == 0 &&
	    (service->replaced != NULL || count == options->num_tokens) &&
	    count == options->saved_token_count &&
	    memcmp(tokens, options->saved_tokens, count * sizeof(*tokens)) == 0;
	free(tokens);
	service->is_resumed = is_known && !options->reset_bootstrap_progress;
	if (!service->is_resumed) {
		log_info("An earlier bootstrap did not end, and the ring has forgotten it: all is "
			 "fetched anew");
		return;
	}
	log_info("Detected previous bootstrap failure; retrying");
	service_keep_tokens(service, options->saved_tokens, options->saved_token_count);
}

/*
 * Others stand in the place of a node that was removed, and have its data as it is now. Its own is of then: with its old tokens it
 * would answer reads with it.
 */
static int
service_check_removed(struct storage_service *service, struct error *err)
{
	struct peer *local = service_local(service);
	struct node_status status = service_shadow_status(service, local);

	if (service->bootstrapped != BOOTSTRAP_COMPLETED ||
	    !gossip_shadow_knows(service->gossip, local) || status.kind != NODE_STATUS_REMOVED ||
	    !uuid_equal(&status.host_id, &service->options.host_id))
		return 0;
	if (!service->options.override_decommission)
		return error_set(err, ERROR_CONFIG,
		    "This node was removed from the ring while it was away and will not rejoin it "
		    "unless cassandra.override_decommission=true has been set, or all existing "
		    "data "
		    "is removed and the node is bootstrapped again");
	log_warn("This node was removed from the ring, but overridden by "
		 "cassandra.override_decommission: it joins as a new one");
	service->bootstrapped = BOOTSTRAP_NEEDED;
	service->options.saved_token_count = 0;
	return 0;
}

int
service_check_shadow(struct storage_service *service, struct error *err)
{
	const struct storage_service_options *options = &service->options;
	int replaces;

	if (service_check_removed(service, err) != 0)
		return -1;
	replaces = service_wants_replace(service, err);
	if (replaces < 0)
		return -1;
	service->shall_bootstrap = options->auto_bootstrap &&
	    service->bootstrapped != BOOTSTRAP_COMPLETED &&
	    !gossip_is_seed(service->gossip, &service_local(service)->endpoint) &&
	    service_shadow_has_members(service);
	if (replaces == 1 && service_take_over(service, err) != 0)
		return -1;
	if (!gossip_shadow_has_answer(service->gossip))
		return 0;
	service_check_resume(service);
	if (service_check_replaced(service, err) != 0)
		return -1;
	if ((service->replaced == NULL || !service->replaced->is_local) &&
	    service_check_address(service, err) != 0)
		return -1;
	return 0;
}
