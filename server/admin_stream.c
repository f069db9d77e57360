/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the API about data that moves between nodes, and about changes of the ring. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/admin_internal.h"
#include "server/cluster.h"
#include "server/node.h"
#include "storage/store.h"

/* ---- netstats ------------------------------------------------------------------------------------------ */

static json_t *
admin_flow(const struct stream_flow *flow)
{
	json_t *json = json_object(), *files = json_array();

	admin_set_number(json, "files", flow->files);
	admin_set_number(json, "bytes", flow->bytes);
	admin_set_number(json, "files_done", flow->files_done);
	admin_set_number(json, "bytes_done", flow->bytes_done);
	for (uint32_t i = 0; i < flow->progress_count; i++) {
		const struct stream_progress *at = &flow->progress[i];
		json_t *file = json_object();

		admin_set_text(file, "keyspace", at->keyspace);
		admin_set_text(file, "table", at->table);
		admin_set_text(file, "file", at->file);
		admin_set_number(file, "bytes", at->bytes);
		admin_set_number(file, "total", at->total);
		json_array_append_new(files, file);
	}
	admin_set(json, "progress", files);
	return json;
}

static void
admin_add_stream(void *context, const struct stream_session_info *info)
{
	json_t *json = json_object();
	char plan[UUID_TEXT_SIZE], address[ENDPOINT_TEXT_SIZE];

	uuid_format(&info->plan_id, plan);
	admin_set_text(json, "plan_id", plan);
	admin_set_text(json, "operation", stream_operation_name(info->operation));
	admin_set_text(json, "address", endpoint_format_address(&info->peer->endpoint, address));
	admin_set_number(json, "port", info->peer->endpoint.port);
	admin_set_text(json, "state", info->state);
	admin_set(json, "receiving", admin_flow(&info->receiving));
	admin_set(json, "sending", admin_flow(&info->sending));
	json_array_append_new(context, json);
}

json_t *
admin_streams(struct node *node)
{
	json_t *streams = json_array();

	if (node->cluster->streams != NULL)
		streams_each(node->cluster->streams, admin_add_stream, streams);
	return streams;
}

/* ---- limits ------------------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	enum stream_limit limit;
} admin_limits[] = {
    {"stream", STREAM_LIMIT},
    {"inter_dc", STREAM_LIMIT_INTER_DC},
    {"entire", STREAM_LIMIT_ENTIRE},
    {"entire_inter_dc", STREAM_LIMIT_ENTIRE_INTER_DC},
};

int
admin_get_stream_throughput(struct admin_call *call, struct error *err)
{
	struct streams *streams = call->node->cluster->streams;

	if (streams == NULL)
		return error_set(err, ERROR_INVALID, "the node is starting");
	for (size_t i = 0; i < sizeof(admin_limits) / sizeof(admin_limits[0]); i++)
		admin_set_number(call->answer, admin_limits[i].name,
		    streams_limit(streams, admin_limits[i].limit));
	return 0;
}

int
admin_post_stream_throughput(struct admin_call *call, struct error *err)
{
	struct streams *streams = call->node->cluster->streams;
	const char *which;
	int64_t bytes;

	if (streams == NULL)
		return error_set(err, ERROR_INVALID, "the node is starting");
	if (admin_need(call, "which", &which, err) != 0 ||
	    admin_need_number(call, "bytes", 0, INT64_C(1) << 50, &bytes, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(admin_limits) / sizeof(admin_limits[0]); i++) {
		if (strcmp(admin_limits[i].name, which) == 0) {
			streams_set_limit(streams, admin_limits[i].limit, (uint64_t)bytes);
			return 0;
		}
	}
	return error_set(err, ERROR_INVALID, "'%s' is no limit of streams", which);
}

/* ---- changes of the ring ------------------------------------------------------------------------------------ */

static int
admin_check_running(const struct admin_call *call, struct error *err)
{
	int mode = atomic_load(&call->node->mode);

	if (mode == NODE_DRAINING || mode == NODE_DRAINED)
		return error_set(err, ERROR_SHUTDOWN, "Node in DRAINED state");
	return 0;
}

int
admin_post_decommission(struct admin_call *call, struct error *err)
{
	const char *force = admin_argument(call, "force");

	if (admin_check_running(call, err) != 0)
		return -1;
	return cluster_decommission(
	    call->node->cluster, force != NULL && strcmp(force, "true") == 0, err);
}

int
admin_post_move(struct admin_call *call, struct error *err)
{
	int64_t token;

	if (admin_check_running(call, err) != 0 ||
	    admin_need_number(call, "token", INT64_MIN + 1, INT64_MAX, &token, err) != 0)
		return -1;
	return cluster_move(call->node->cluster, token, err);
}

int
admin_post_remove_node(struct admin_call *call, struct error *err)
{
	const char *host_id;

	if (admin_check_running(call, err) != 0 || admin_need(call, "host_id", &host_id, err) != 0)
		return -1;
	if (strcmp(host_id, "force") == 0)
		return cluster_force_removal(call->node->cluster, err);
	return cluster_remove_node(call->node->cluster, host_id, err);
}

int
admin_post_removal_status(struct admin_call *call, struct error *err)
{
	struct buffer text;
	int rc;

	buffer_init(&text);
	rc = cluster_removal_status(call->node->cluster, &text, err);
	buffer_put_u8(&text, '\0');
	if (rc == 0)
		rc = buffer_check(&text, err);
	if (rc == 0)
		admin_set_text(call->answer, "status", (const char *)text.data);
	buffer_fini(&text);
	return rc;
}

int
admin_post_resume_bootstrap(struct admin_call *call, struct error *err)
{
	const char *force = admin_argument(call, "force");

	return cluster_resume_bootstrap(
	    call->node->cluster, force != NULL && strcmp(force, "true") == 0, err);
}

int
admin_post_rebuild(struct admin_call *call, struct error *err)
{
	if (admin_check_running(call, err) != 0)
		return -1;
	return cluster_rebuild(call->node->cluster, admin_argument(call, "datacenter"),
	    admin_argument(call, "keyspace"), admin_argument(call, "tokens"),
	    admin_argument(call, "sources"), err);
}

int
admin_post_cleanup(struct admin_call *call, struct error *err)
{
	struct table_store **tables;
	uint32_t count, jobs;
	int rc = 0;

	if (admin_check_running(call, err) != 0 || admin_jobs(call, &jobs, err) != 0 ||
	    admin_tables(call, &tables, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = cluster_cleanup(call->node->cluster, tables[i], jobs, err);
	free(tables);
	return rc;
}
