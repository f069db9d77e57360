/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/storage_service_internal.h"

/*
 * Changes of the ring that an operator asks for: this node leaves or moves, a dead one is removed (StorageService.decommission,
 * move, removeNode, restoreReplicaCount). All on the gossip stage.
 */

/* How long others may remember that a node has left. */
#define SERVICE_LEFT_MS INT64_C(259200000)
/* ... and how long it tells them so before it falls silent. */
#define SERVICE_GOODBYE_NS UINT64_C(3000000000)
#define SERVICE_RESTORE_AGAIN_NS UINT64_C(10000000000)
#define SERVICE_CONFIRM_TIMEOUT_NS UINT64_C(10000000000)

enum { SERVICE_RESTORE_TRIES = 3 };

/* ---- asking ------------------------------------------------------------------------------------------ */

enum service_wish {
	SERVICE_RESUME,
	SERVICE_DECOMMISSION,
	SERVICE_MOVE,
	SERVICE_REMOVE,
	SERVICE_FORCE_REMOVAL,
	SERVICE_REMOVAL_STATUS,
	SERVICE_ABANDON,
};

struct service_request {
	struct task task;
	struct storage_service *service;
	struct service_wait *wait;
	enum service_wish wish;
	bool is_forced;
	int64_t token;
	struct uuid host_id;
	struct buffer *out;
};

static struct peer *
service_local(struct storage_service *service)
{
	return peers_local(service->peers);
}

/* One change at a time, of a node that stands in the ring. resumed: the mode in which it may go on with one that broke off. */
static int
service_check_quiet(struct storage_service *service, enum storage_mode resumed, struct error *err)
{
	enum storage_mode mode = storage_service_mode(service);

	if (!atomic_load(&service->has_joined))
		return error_set(
		    err, ERROR_INVALID, "local node is not a member of the token ring yet");
	if (service->change_wait != NULL && mode == STORAGE_LEAVING)
		return error_set(
		    err, ERROR_INVALID, "Node is still decommissioning. Check nodetool netstats.");
	if ((mode != STORAGE_NORMAL && mode != resumed) || service->change_wait != NULL)
		return error_set(err, ERROR_INVALID,
		    "Node in %s state; wait for status to become normal or restart",
		    storage_mode_name(mode));
	return 0;
}

static void
service_change_done(struct storage_service *service, const struct error *err)
{
	struct service_wait *wait = service->change_wait;

	service->change_wait = NULL;
	if (wait != NULL)
		wait->on_done(wait, err);
}

/* It did not come off, and no data has moved: this node is what it was. */
static void
service_change_undone(struct storage_service *service, const char *what, const struct error *err)
{
	struct node_status status = {.kind = NODE_STATUS_NORMAL, .token = service->tokens[0]};
	struct error failed = *err;

	error_prefix(&failed, "%s", what);
	log_error("%s; this node stays in the ring as it was", failed.text);
	service_set_local(service, MEMBER_NORMAL);
	service_tell_status(service, &status);
	service_set_mode(service, STORAGE_NORMAL, "");
	service_change_done(service, &failed);
}

/* Others have some of the data, and go on getting copies of writes: it can be gone on with. */
static void
service_change_failed(struct storage_service *service, const char *what, const struct error *err)
{
	struct error failed = *err;

	error_prefix(&failed, "%s", what);
	log_error("%s. The node stays %s: run nodetool %s again to go on, or restart the node to "
		  "give it up",
	    failed.text, storage_mode_name(storage_service_mode(service)), what);
	service_change_done(service, &failed);
}

/* ---- decommission -------------------------------------------------------------------------------------- */

static void
service_left(struct storage_service *service)
{
	service_set_mode(service, STORAGE_DECOMMISSIONED, "");
	service_change_done(service, NULL);
}

static void
service_leave_ring(struct storage_service *service, const struct error *failed)
{
	int64_t now_ms = env_wall_us(service->env->env) / 1000;
	struct node_status status = {.kind = NODE_STATUS_LEFT,
	    .token = service->tokens[0],
	    .expires_ms = now_ms + SERVICE_LEFT_MS};
	struct service_node *node = service_node(service, service_local(service));
	struct error err;

	if (failed != NULL) {
		service_change_failed(service, "decommission", failed);
		return;
	}
	if (service->ops->save_local(service->context, BOOTSTRAP_DECOMMISSIONED, NULL, 0, &err) !=
	    0) {
		service_change_failed(service, "decommission", &err);
		return;
	}
	service->bootstrapped = BOOTSTRAP_DECOMMISSIONED;
	node->is_in_ring = false;
	node->is_dirty = true;
	service_apply(service);
	atomic_store(&service->has_joined, false);
	service_tell_status(service, &status);
	log_info("Announcing that I have left the ring");
	service_after(service, SERVICE_GOODBYE_NS, service_left);
}

static void
service_unbootstrap(struct storage_service *service)
{
	const struct service_movement movement = {.operation = STREAM_UNBOOTSTRAP,
	    .peer = service_local(service),
	    .is_resumed = service->is_change_resumed};
	struct error err;

	if (!service->is_change_resumed && service_check_changes(service, NULL, true, &err) != 0) {
		service_change_undone(service, "decommission", &err);
		return;
	}
	service_set_mode(service, STORAGE_LEAVING, "streaming data to other nodes");
	service_stream(service, &movement, service_leave_ring);
}

static int
service_check_leave(struct storage_service *service, bool is_forced, struct error *err)
{
	const struct topology *topology;
	uint32_t others = 0;
	int rc = 0;

	if (service_check_quiet(service, STORAGE_LEAVING, err) != 0)
		return -1;
	/* It was looked at when it began. */
	if (storage_service_mode(service) == STORAGE_LEAVING)
		return 0;
	if (service_check_changes(service, NULL, false, err) != 0)
		return -1;
	topology = topology_acquire(service->holder);
	for (uint32_t i = 0; i < topology_member_count(topology); i++)
		others += !topology_member(topology, i)->peer->is_local &&
		    topology_member(topology, i)->state == MEMBER_NORMAL;
	if (others == 0)
		rc = error_set(err, ERROR_INVALID,
		    "no other normal nodes in the ring; decommission would be pointless");
	else if (!is_forced)
		rc = service->ops->may_leave(service->context, topology, err);
	topology_release(service->holder, topology);
	return rc;
}

static void
service_decommission(struct storage_service *service, const struct service_request *request)
{
	struct node_status status = {.kind = NODE_STATUS_LEAVING};
	struct error err;

	if (service_check_leave(service, request->is_forced, &err) != 0) {
		request->wait->on_done(request->wait, &err);
		return;
	}
	status.token = service->tokens[0];
	service->change_wait = request->wait;
	service->is_change_resumed = storage_service_mode(service) == STORAGE_LEAVING;
	log_info("%s", service->is_change_resumed ? "Resuming decommission" : "DECOMMISSIONING");
	if (service->is_change_resumed) {
		service_unbootstrap(service);
		return;
	}
	service_set_local(service, MEMBER_LEAVING);
	service_tell_status(service, &status);
	service_set_mode(service, STORAGE_LEAVING, "waiting until the others know");
	service_after(service, service_ring_delay(service), service_unbootstrap);
}

/* ---- move ------------------------------------------------------------------------------------------------ */

static void
service_moved(struct storage_service *service, const struct error *failed)
{
	struct error err;

	if (failed != NULL) {
		service_change_failed(service, "move", failed);
		return;
	}
	service_keep_tokens(service, &service->next_token, 1);
	if (service_become_normal(service, &err) != 0)
		service_change_failed(service, "move", &err);
	else
		service_change_done(service, NULL);
}

static void
service_relocate(struct storage_service *service)
{
	const struct service_movement movement = {.operation = STREAM_RELOCATION,
	    .peer = service_local(service),
	    .is_resumed = service->is_change_resumed};
	struct error err;

	if (!service->is_change_resumed && service_check_changes(service, NULL, true, &err) != 0) {
		service_change_undone(service, "move", &err);
		return;
	}
	service_set_mode(service, STORAGE_MOVING, "fetching new ranges and streaming old ranges");
	service_stream(service, &movement, service_moved);
}

static int
service_check_move(struct storage_service *service, int64_t token, struct error *err)
{
	const struct topology *topology;
	bool is_used;

	if (service_check_quiet(service, STORAGE_MOVING, err) != 0)
		return -1;
	if (storage_service_mode(service) == STORAGE_MOVING) {
		if (token == service->next_token)
			return 0;
		return error_set(err, ERROR_INVALID,
		    "This node is moving to token %" PRId64
		    ": move there again to go on, or restart the node to give it up",
		    service->next_token);
	}
	if (service->token_count != 1)
		return error_set(err, ERROR_INVALID,
		    "This node has more than one token and cannot be moved thusly.");
	if (token == service->tokens[0])
		return error_set(err, ERROR_INVALID, "this node has the token %" PRId64, token);
	topology = topology_acquire(service->holder);
	is_used = service_is_token_used(topology, token);
	topology_release(service->holder, topology);
	if (is_used)
		return error_set(err, ERROR_INVALID,
		    "target token %" PRId64 " is already owned by another node.", token);
	return service_check_changes(service, NULL, false, err);
}

static void
service_move(struct storage_service *service, const struct service_request *request)
{
	struct node_status status = {.kind = NODE_STATUS_MOVING, .token = request->token};
	struct error err;

	if (service_check_move(service, request->token, &err) != 0) {
		request->wait->on_done(request->wait, &err);
		return;
	}
	service->change_wait = request->wait;
	service->is_change_resumed = storage_service_mode(service) == STORAGE_MOVING;
	if (service->is_change_resumed) {
		log_info("Resuming the move to %" PRId64, service->next_token);
		service_relocate(service);
		return;
	}
	service->next_token = request->token;
	service_node(service, service_local(service))->next_token = request->token;
	service_set_local(service, MEMBER_MOVING);
	service_tell_status(service, &status);
	service_set_mode(service, STORAGE_MOVING, "waiting until the others know");
	service_after(service, service_ring_delay(service), service_relocate);
}

/* ---- a dead node is removed: who takes part (restoreReplicaCount) ------------------------------------------ */

/* The data that this node gets because another one is removed. */
struct service_restore {
	struct service_restore *next;
	struct storage_service *service;
	struct peer *peer; /* who is removed */
	int32_t generation; /* of the removal */
	uint32_t tries;
	bool is_streaming, is_over; /* over: freed when what is under way has ended */
	bool has_ended;
	struct service_wait wait;
	struct cluster_timer timer;
	struct task task;
	bool is_timer_armed;
	struct message_callback callback;
	bool is_confirming;
};

static void service_removal_confirmed(
    struct storage_service *service, struct peer *removed, struct peer *by, bool is_good);
static void service_restore_stream(struct service_restore *restore);

static void
service_restore_free(struct service_restore *restore)
{
	struct service_restore **at = &restore->service->restores;

	while (*at != restore)
		at = &(*at)->next;
	*at = restore->next;
	free(restore);
}

static void
service_restore_drop(struct service_restore *restore)
{
	restore->is_over = true;
	if (!restore->is_streaming && !restore->is_timer_armed && !restore->is_confirming)
		service_restore_free(restore);
}

/* Who runs the removal, as its gossip says. NULL: nobody that we know. */
static struct peer *
service_removal_coordinator(struct storage_service *service, struct peer *peer)
{
	static const char prefix[] = "REMOVER,";
	struct slice value = gossip_value(service->gossip, peer, STATE_REMOVAL_COORDINATOR);
	size_t skip = sizeof(prefix) - 1;
	struct uuid host_id;

	if (slice_is_null(value) || value.size <= skip ||
	    uuid_parse((const char *)value.data + skip, value.size - skip, &host_id) != 0)
		return NULL;
	if (uuid_equal(&host_id, &service->options.host_id))
		return service_local(service);
	for (uint32_t i = 0; i < service->node_capacity; i++)
		if (service->nodes[i] != NULL && service->nodes[i]->has_host_id &&
		    uuid_equal(&service->nodes[i]->host_id, &host_id))
			return service->nodes[i]->peer;
	return NULL;
}

static void
service_restore_confirmed(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct service_restore *restore = (struct service_restore *)((char *)callback -
	    offsetof(struct service_restore, callback));

	(void)reason;
	(void)worker;
	restore->has_ended = answer != NULL;
	/* Both ways back on the gossip stage: again until it knows, or it is gone. */
	cluster_timer_start(
	    restore->service->env, &restore->timer, answer != NULL ? 0 : SERVICE_RESTORE_AGAIN_NS);
}

/* u8 is good, the removed node's host id. */
static void
service_restore_confirm(struct service_restore *restore, bool is_good)
{
	struct storage_service *service = restore->service;
	struct peer *coordinator = service_removal_coordinator(service, restore->peer);
	struct service_node *node = service_node(service, restore->peer);
	struct message_payload *copy = NULL;
	struct message *message = NULL;
	struct buffer payload;

	if (coordinator == NULL || restore->is_over) {
		service_restore_drop(restore);
		return;
	}
	if (coordinator->is_local) {
		restore->has_ended = true;
		service_removal_confirmed(service, restore->peer, coordinator, is_good);
		return;
	}
	buffer_init(&payload);
	buffer_put_u8(&payload, is_good);
	buffer_put(&payload, node->host_id.bytes, sizeof(node->host_id.bytes));
	restore->is_confirming = restore->is_timer_armed = true;
	restore->callback.on_answer = service_restore_confirmed;
	if (!payload.is_failed)
		copy = message_payload_new(buffer_slice(&payload));
	if (copy != NULL)
		message = message_new(VERB_REPLICATION_DONE_REQ, copy);
	if (message == NULL)
		service_restore_confirmed(&restore->callback, NULL, FAILURE_UNKNOWN, NULL);
	else
		messaging_request(service->options.messaging, coordinator, message,
		    SERVICE_CONFIRM_TIMEOUT_NS, &restore->callback, NULL);
	buffer_fini(&payload);
}

static void
service_restore_again(struct task *task, struct worker *worker)
{
	struct service_restore *restore =
	    (struct service_restore *)((char *)task - offsetof(struct service_restore, task));
	bool was_confirming = restore->is_confirming;

	(void)worker;
	restore->is_timer_armed = restore->is_confirming = false;
	if (restore->is_over)
		service_restore_free(restore);
	else if (was_confirming && !restore->has_ended)
		service_restore_confirm(restore, restore->tries <= SERVICE_RESTORE_TRIES);
	else if (!was_confirming)
		service_restore_stream(restore);
}

static void
service_restore_fired(struct cluster_timer *timer)
{
	struct service_restore *restore =
	    (struct service_restore *)((char *)timer - offsetof(struct service_restore, timer));

	restore->task = (struct task){.run = service_restore_again};
	(void)cluster_submit(restore->service->env, CLUSTER_STAGE_GOSSIP, &restore->task);
}

static void
service_restore_after(struct service_restore *restore, uint64_t delay_ns)
{
	restore->is_timer_armed = true;
	cluster_timer_start(restore->service->env, &restore->timer, delay_ns);
}

static void
service_restored(struct service_wait *wait, const struct error *err)
{
	struct service_restore *restore =
	    (struct service_restore *)((char *)wait - offsetof(struct service_restore, wait));
	char address[ENDPOINT_TEXT_SIZE];

	restore->is_streaming = false;
	if (restore->is_over) {
		service_restore_free(restore);
		return;
	}
	if (err == NULL) {
		service_restore_confirm(restore, true);
		return;
	}
	log_warn("Streaming to restore replica count of %s failed: %s",
	    endpoint_format(&restore->peer->endpoint, address), err->text);
	if (restore->tries < SERVICE_RESTORE_TRIES) {
		service_restore_after(restore, SERVICE_RESTORE_AGAIN_NS);
		return;
	}
	restore->tries++;
	service_restore_confirm(restore, false);
}

static void
service_restore_stream(struct service_restore *restore)
{
	const struct service_movement movement = {
	    .operation = STREAM_RESTORE_REPLICA_COUNT, .peer = restore->peer};
	struct storage_service *service = restore->service;

	restore->tries++;
	restore->is_streaming = true;
	restore->wait.on_done = service_restored;
	service->ops->stream(service->context, &movement, &restore->wait);
}

static struct service_restore *
service_restore_find(struct storage_service *service, const struct peer *peer)
{
	for (struct service_restore *at = service->restores; at != NULL; at = at->next)
		if (at->peer == peer && !at->is_over)
			return at;
	return NULL;
}

void
service_restore(struct storage_service *service, struct service_node *node)
{
	struct service_restore *restore = service_restore_find(service, node->peer);
	char address[ENDPOINT_TEXT_SIZE];

	if (node->peer->is_local || !atomic_load(&service->has_joined))
		return;
	if (restore != NULL && restore->generation == node->generation)
		return;
	if (restore != NULL)
		service_restore_drop(restore);
	log_info("Restoring replica count for %s", endpoint_format(&node->peer->endpoint, address));
	restore = xzalloc(sizeof(*restore));
	restore->service = service;
	restore->peer = node->peer;
	restore->generation = node->generation;
	restore->timer.fire = service_restore_fired;
	restore->next = service->restores;
	service->restores = restore;
	service_restore_after(restore, service_ring_delay(service));
}

void
service_restore_end(struct storage_service *service, struct peer *peer)
{
	struct service_restore *restore = service_restore_find(service, peer);

	if (restore != NULL)
		service_restore_drop(restore);
}

/* ---- a dead node is removed: who runs it (removeNode) --------------------------------------------------------- */

struct service_removal {
	struct peer *peer;
	struct uuid host_id;
	int64_t token;
	struct service_wait *wait; /* NULL: it was told */
	struct peer **replicating; /* owned; who has not confirmed */
	uint32_t replicating_count;
	bool is_begun;
};

static void
service_removal_end(struct storage_service *service, const struct error *err)
{
	struct service_removal *removal = service->removal;
	struct service_wait *wait = removal->wait;

	service->removal = NULL;
	free(removal->replicating);
	free(removal);
	if (wait != NULL)
		wait->on_done(wait, err);
}

/* All have what they need: it is gone. */
static void
service_removal_finish(struct storage_service *service)
{
	struct service_removal *removal = service->removal;
	struct node_status status = {.kind = NODE_STATUS_REMOVED,
	    .host_id = removal->host_id,
	    .expires_ms = env_wall_us(service->env->env) / 1000 + SERVICE_LEFT_MS};
	struct error err;
	int rc = gossip_advertise(service->gossip, removal->peer, &status, NULL, &err);

	service_mark(service, removal->peer);
	service_removal_end(service, rc == 0 ? NULL : &err);
}

static void
service_removal_forget(struct service_removal *removal, const struct peer *peer)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < removal->replicating_count; i++)
		if (removal->replicating[i] != peer)
			removal->replicating[kept++] = removal->replicating[i];
	removal->replicating_count = kept;
}

static void
service_removal_confirmed(
    struct storage_service *service, struct peer *removed, struct peer *by, bool is_good)
{
	struct service_removal *removal = service->removal;
	char address[ENDPOINT_TEXT_SIZE];
	struct error err;

	if (removal == NULL || removal->peer != removed)
		return;
	if (!is_good) {
		error_set(&err, ERROR_SERVER,
		    "%s could not fetch what it gets: run removenode again, or removenode force",
		    endpoint_format(&by->endpoint, address));
		service_removal_end(service, &err);
		return;
	}
	service_removal_forget(removal, by);
	if (removal->replicating_count == 0)
		service_removal_finish(service);
}

void
service_check_removal(struct storage_service *service)
{
	struct service_removal *removal = service->removal;
	char address[ENDPOINT_TEXT_SIZE];
	enum node_status_kind kind;
	struct error err;

	if (removal == NULL || !removal->is_begun)
		return;
	kind = gossip_status(service->gossip, removal->peer).kind;
	if (kind == NODE_STATUS_NORMAL || kind == NODE_STATUS_SHUTDOWN) {
		error_set(&err, ERROR_INVALID, "Node %s is back in the ring and is not removed",
		    endpoint_format(&removal->peer->endpoint, address));
		log_warn("%s", err.text);
		service_removal_end(service, &err);
		return;
	}
	for (uint32_t i = removal->replicating_count; i-- > 0;) {
		struct peer *peer = removal->replicating[i];

		if (peer->is_local || atomic_load_explicit(&peer->is_alive, memory_order_relaxed))
			continue;
		log_warn("%s is down: nobody waits for what it would fetch",
		    endpoint_format(&peer->endpoint, address));
		service_removal_forget(removal, peer);
	}
	if (removal->replicating_count == 0)
		service_removal_finish(service);
}

static struct service_node *
service_find_host(struct storage_service *service, const struct uuid *host_id)
{
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *node = service->nodes[i];

		if (node != NULL && node->is_in_ring && node->has_host_id &&
		    uuid_equal(&node->host_id, host_id))
			return node;
	}
	return NULL;
}

/* Of two removals at once neither would know what the other one takes away. */
static int
service_check_other_removal(
    struct storage_service *service, const struct service_node *wanted, struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE];

	for (uint32_t i = 0; i < service->node_capacity; i++) {
		const struct service_node *node = service->nodes[i];

		if (node == NULL || node == wanted || !node->is_in_ring || node->peer->is_local ||
		    gossip_status(service->gossip, node->peer).kind != NODE_STATUS_REMOVING)
			continue;
		return error_set(err, ERROR_INVALID,
		    "Node %s is being removed already. Wait for it to complete, or use 'removenode "
		    "force' if this has failed.",
		    endpoint_format(&node->peer->endpoint, address));
	}
	return 0;
}

static int
service_check_remove(struct storage_service *service, const struct uuid *host_id,
    struct service_node **out, struct error *err)
{
	struct service_node *node = service_find_host(service, host_id);
	char address[ENDPOINT_TEXT_SIZE];

	if (!atomic_load(&service->has_joined))
		return error_set(
		    err, ERROR_INVALID, "local node is not a member of the token ring yet");
	if (node == NULL)
		return error_set(err, ERROR_INVALID, "Host ID not found.");
	if (node->peer->is_local)
		return error_set(err, ERROR_INVALID, "Cannot remove self");
	if (atomic_load_explicit(&node->peer->is_alive, memory_order_relaxed))
		return error_set(err, ERROR_INVALID,
		    "Node %s is alive and owns this ID. Use decommission command to remove it "
		    "from the ring",
		    endpoint_format(&node->peer->endpoint, address));
	if (service->removal != NULL)
		return error_set(err, ERROR_INVALID,
		    "This node is already processing a removal. Wait for it to complete, or use "
		    "'removenode force' if this has failed.");
	if (service_check_other_removal(service, node, err) != 0 ||
	    service_check_changes(service, node, false, err) != 0)
		return -1;
	if (node->state == MEMBER_LEAVING)
		log_warn("Node %s is already leaving or being removed, continuing removal anyway",
		    endpoint_format(&node->peer->endpoint, address));
	*out = node;
	return 0;
}

static void
service_remove(struct storage_service *service, const struct service_request *request)
{
	struct node_status status = {.kind = NODE_STATUS_REMOVING, .host_id = request->host_id};
	struct service_removal *removal;
	struct service_node *node = NULL;
	struct error err;

	if (service_check_remove(service, &request->host_id, &node, &err) != 0) {
		request->wait->on_done(request->wait, &err);
		return;
	}
	removal = xzalloc(sizeof(*removal));
	removal->peer = node->peer;
	removal->host_id = request->host_id;
	removal->token = node->token_count > 0 ? node->tokens[0] : 0;
	removal->wait = request->wait;
	service->removal = removal;
	if (gossip_advertise(
		service->gossip, node->peer, &status, &service->options.host_id, &err) != 0) {
		service_removal_end(service, &err);
		return;
	}
	/* It is leaving from now on, here too; and this node fetches its part. */
	service_mark(service, node->peer);
	service_apply(service);
	removal->replicating_count =
	    service->ops->gainers(service->context, node->peer, &removal->replicating);
	removal->is_begun = true;
	service_check_removal(service);
}

static void
service_force_removal(struct storage_service *service, const struct service_request *request)
{
	char address[ENDPOINT_TEXT_SIZE];
	struct node_status status = {.kind = NODE_STATUS_REMOVED};
	bool has_any = false;
	struct error err;

	if (service->removal != NULL) {
		has_any = true;
		log_warn("Removal not confirmed by %u nodes",
		    (unsigned)service->removal->replicating_count);
		service_removal_finish(service);
	}
	for (uint32_t i = 0; i < service->node_capacity; i++) {
		struct service_node *node = service->nodes[i];

		if (node == NULL || !node->is_in_ring || node->peer->is_local ||
		    gossip_status(service->gossip, node->peer).kind != NODE_STATUS_REMOVING)
			continue;
		has_any = true;
		log_warn("Removing %s by force", endpoint_format(&node->peer->endpoint, address));
		status.host_id = node->host_id;
		status.expires_ms = env_wall_us(service->env->env) / 1000 + SERVICE_LEFT_MS;
		if (gossip_advertise(service->gossip, node->peer, &status, NULL, &err) == 0)
			service_mark(service, node->peer);
	}
	if (!has_any)
		error_set(
		    &err, ERROR_INVALID, "No nodes to force removal on, call 'removenode' first");
	request->wait->on_done(request->wait, has_any ? NULL : &err);
}

static void
service_removal_text(struct storage_service *service, struct buffer *out)
{
	const struct service_removal *removal = service->removal;
	char address[ENDPOINT_TEXT_SIZE];

	if (removal == NULL) {
		buffer_put_string(out, "RemovalStatus: No token removals in process.");
		return;
	}
	buffer_printf(out,
	    "RemovalStatus: Removing token (%" PRId64
	    "). Waiting for replication confirmation from [",
	    removal->token);
	for (uint32_t i = 0; i < removal->replicating_count; i++)
		buffer_printf(out, "%s/%s", i == 0 ? "" : ",",
		    endpoint_format_address(&removal->replicating[i]->endpoint, address));
	buffer_put_string(out, "].");
}

/* Somebody has fetched what it gets. */
static void
service_on_replicated(void *context, struct message *message, struct worker *worker)
{
	struct storage_service *service = context;
	struct reader reader = reader_of(message_payload_slice(message));
	bool is_good = reader_u8(&reader) == 1;
	struct slice bytes = reader_bytes(&reader, 16);
	struct uuid host_id;

	if (reader.is_failed || reader_left(&reader) > 0 || message->peer == NULL) {
		messaging_respond_failure(
		    service->options.messaging, message, FAILURE_UNKNOWN, worker);
		return;
	}
	memcpy(host_id.bytes, bytes.data, sizeof(host_id.bytes));
	messaging_respond(service->options.messaging, message, slice_of("", 0), worker);
	if (service->removal != NULL && uuid_equal(&service->removal->host_id, &host_id))
		service_removal_confirmed(service, service->removal->peer, message->peer, is_good);
}

static void
service_abandon(struct storage_service *service)
{
	struct error err;

	error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
	service_change_done(service, &err);
	if (service->removal != NULL && service->removal->wait != NULL) {
		service->removal->wait->on_done(service->removal->wait, &err);
		service->removal->wait = NULL;
	}
	if (service->wait != NULL) {
		service->wait->on_done(service->wait, &err);
		service->wait = NULL;
	}
}

/* ---- the door --------------------------------------------------------------------------------------------------- */

static void
service_run_request(struct task *task, struct worker *worker)
{
	struct service_request *request =
	    (struct service_request *)((char *)task - offsetof(struct service_request, task));
	struct storage_service *service = request->service;

	(void)worker;
	switch (request->wish) {
	case SERVICE_RESUME:
		service_resume(service, request->wait);
		break;
	case SERVICE_DECOMMISSION:
		service_decommission(service, request);
		break;
	case SERVICE_MOVE:
		service_move(service, request);
		break;
	case SERVICE_REMOVE:
		service_remove(service, request);
		break;
	case SERVICE_FORCE_REMOVAL:
		service_force_removal(service, request);
		break;
	case SERVICE_ABANDON:
		service_abandon(service);
		break;
	case SERVICE_REMOVAL_STATUS:
		service_removal_text(service, request->out);
		request->wait->on_done(request->wait, NULL);
		break;
	}
	free(request);
}

static void
service_ask(struct storage_service *service, const struct service_request *wanted)
{
	struct service_request *request = xzalloc(sizeof(*request));
	struct error err;

	*request = *wanted;
	request->service = service;
	request->task = (struct task){.run = service_run_request};
	if (cluster_submit(service->env, CLUSTER_STAGE_GOSSIP, &request->task))
		return;
	free(request);
	error_set(&err, ERROR_SHUTDOWN, "the node is stopping");
	if (wanted->wait != NULL)
		wanted->wait->on_done(wanted->wait, &err);
}

void
storage_service_resume_bootstrap(struct storage_service *service, struct service_wait *wait)
{
	service_ask(service, &(struct service_request){.wish = SERVICE_RESUME, .wait = wait});
}

void
storage_service_decommission(
    struct storage_service *service, bool is_forced, struct service_wait *wait)
{
	service_ask(service,
	    &(struct service_request){
		.wish = SERVICE_DECOMMISSION, .wait = wait, .is_forced = is_forced});
}

void
storage_service_move(struct storage_service *service, int64_t token, struct service_wait *wait)
{
	service_ask(
	    service, &(struct service_request){.wish = SERVICE_MOVE, .wait = wait, .token = token});
}

void
storage_service_remove_node(
    struct storage_service *service, const struct uuid *host_id, struct service_wait *wait)
{
	service_ask(service,
	    &(struct service_request){.wish = SERVICE_REMOVE, .wait = wait, .host_id = *host_id});
}

void
storage_service_force_removal(struct storage_service *service, struct service_wait *wait)
{
	service_ask(
	    service, &(struct service_request){.wish = SERVICE_FORCE_REMOVAL, .wait = wait});
}

void
storage_service_removal_status(
    struct storage_service *service, struct buffer *out, struct service_wait *wait)
{
	service_ask(service,
	    &(struct service_request){.wish = SERVICE_REMOVAL_STATUS, .wait = wait, .out = out});
}

void
storage_service_abandon(struct storage_service *service)
{
	service_ask(service, &(struct service_request){.wish = SERVICE_ABANDON});
}

void
service_changes_init(struct storage_service *service)
{
	messaging_handle(service->options.messaging, VERB_REPLICATION_DONE_REQ,
	    CLUSTER_STAGE_GOSSIP, service_on_replicated, service);
}

void
service_changes_free(struct storage_service *service)
{
	if (service->removal != NULL) {
		free(service->removal->replicating);
		free(service->removal);
	}
	while (service->restores != NULL)
		service_restore_free(service->restores);
}
