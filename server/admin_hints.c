/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API about what nodes missed: hinted handoff, the batchlog. */
#include <stdlib.h>
#include <string.h>

#include "server/admin_internal.h"
#include "server/batchlog.h"
#include "server/cluster.h"
#include "server/node.h"

static void
admin_add_disabled(void *context, const char *datacenter)
{
	json_array_append_new(context, json_string(datacenter));
}

struct admin_hints {
	struct cluster *cluster;
	json_t *pending;
};

static void
admin_add_pending_hints(void *context, const struct hints_pending *pending)
{
	struct admin_hints *hints = context;
	const struct topology *topology = topology_acquire(hints->cluster->topology);
	const struct member *member = topology_find_host(topology, &pending->host_id);
	json_t *json = json_object();
	char address[ENDPOINT_TEXT_SIZE], host_id[UUID_TEXT_SIZE];
	const char *status = "Unknown";

	uuid_format(&pending->host_id, host_id);
	admin_set_text(json, "host_id", host_id);
	if (member != NULL) {
		status = atomic_load(&member->peer->is_alive) ? "UP" : "DOWN";
		endpoint_format_address(&member->peer->endpoint, address);
		admin_set_number(json, "port", member->peer->endpoint.port);
	}
	admin_set_text(json, "address", member != NULL ? address : "Unknown");
	admin_set_text(json, "data_center", member != NULL ? member->datacenter : "Unknown");
	admin_set_text(json, "rack", member != NULL ? member->rack : "Unknown");
	admin_set_text(json, "status", status);
	admin_set_number(json, "files", pending->files);
	admin_set_number(json, "bytes", pending->bytes);
	admin_set_number(json, "corrupt_files", pending->corrupt_files);
	admin_set_number(json, "newest_ms", (uint64_t)pending->newest_ms);
	admin_set_number(json, "oldest_ms", (uint64_t)pending->oldest_ms);
	json_array_append_new(hints->pending, json);
	topology_release(hints->cluster->topology, topology);
}

int
admin_get_hints(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	struct hints_settings *settings = hints_settings(cluster->hints);
	json_t *disabled = json_array();
	struct admin_hints hints = {cluster, json_array()};

	(void)err;
	admin_set(call->answer, "enabled", json_boolean(atomic_load(&settings->is_enabled)));
	admin_set_number(call->answer, "window_ms", atomic_load(&settings->window_ms));
	admin_set_number(
	    call->answer, "throttle_kib", atomic_load(&settings->throttle_bytes) >> 10);
	admin_set_number(call->answer, "batchlog_throttle_kib",
	    (uint64_t)atomic_load(&call->node->batchlog_throttle) >> 10);
	hints_each_disabled(cluster->hints, admin_add_disabled, disabled);
	admin_set(call->answer, "disabled_data_centers", disabled);
	hints_each_pending(cluster->hints, admin_add_pending_hints, &hints);
	admin_set(call->answer, "pending", hints.pending);
	return 0;
}

/* enabled=; dc=: of one data center. */
int
admin_post_handoff(struct admin_call *call, struct error *err)
{
	struct hints *hints = call->node->cluster->hints;
	const char *datacenter = admin_argument(call, "dc");
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0)
		return -1;
	if (datacenter == NULL)
		atomic_store(&hints_settings(hints)->is_enabled, is_on);
	else if (is_on)
		hints_enable_datacenter(hints, datacenter);
	else
		hints_disable_datacenter(hints, datacenter);
	return 0;
}

int
admin_post_hint_delivery(struct admin_call *call, struct error *err)
{
	bool is_on = false;

	if (admin_need_switch(call, &is_on, err) != 0)
		return -1;
	hints_pause(call->node->cluster->hints, !is_on);
	return 0;
}

int
admin_post_hint_throttle(struct admin_call *call, struct error *err)
{
	int64_t kib;

	if (admin_need_number(call, "kib", 0, INT32_MAX, &kib, err) != 0)
		return -1;
	atomic_store(
	    &hints_settings(call->node->cluster->hints)->throttle_bytes, (uint64_t)kib << 10);
	return 0;
}

int
admin_post_hint_window(struct admin_call *call, struct error *err)
{
	int64_t ms;

	if (admin_need_number(call, "ms", 0, INT32_MAX, &ms, err) != 0)
		return -1;
	atomic_store(&hints_settings(call->node->cluster->hints)->window_ms, (uint64_t)ms);
	return 0;
}

/* All, or address=: those for one node. */
int
admin_post_truncate_hints(struct admin_call *call, struct error *err)
{
	struct cluster *cluster = call->node->cluster;
	const char *address = admin_argument(call, "address");
	const struct topology *topology;
	const struct member *member = NULL;
	struct endpoint endpoint;
	struct peer *peer;
	struct uuid host_id;

	if (address == NULL) {
		hints_truncate(cluster->hints, NULL);
		return 0;
	}
	if (endpoint_parse(address, cluster->local.port, &endpoint, err) != 0)
		return -1;
	topology = topology_acquire(cluster->topology);
	peer = peers_find(cluster->peers, &endpoint);
	if (peer != NULL)
		member = topology_find(topology, peer);
	if (member != NULL)
		host_id = member->host_id;
	topology_release(cluster->topology, topology);
	if (member == NULL)
		return error_set(
		    err, ERROR_INVALID, "Can't delete hints for unknown address %s", address);
	hints_truncate(cluster->hints, &host_id);
	return 0;
}

int
admin_post_batchlog_throttle(struct admin_call *call, struct error *err)
{
	int64_t kib;

	if (admin_need_number(call, "kib", 0, INT32_MAX, &kib, err) != 0)
		return -1;
	atomic_store(&call->node->batchlog_throttle, kib << 10);
	return 0;
}

int
admin_post_replay_batchlog(struct admin_call *call, struct error *err)
{
	if (call->node->batchlog == NULL)
		return error_set(err, ERROR_INVALID, "the node has not joined the ring");
	return batchlog_replay_now(call->node->batchlog, err);
}
