/* SPDX-License-Identifier: Apache-2.0 */
/* What repair needs of a real node: its data exchanged by streams, its history in system_distributed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "server/cluster_internal.h"
#include "server/internal_query.h"
#include "server/node.h"
#include "server/operations.h"

enum { CLUSTER_HISTORY_VALUES = 12 };

/* ---- exchange ------------------------------------------------------------------------------------------ */

struct cluster_exchange {
	struct stream_wait wait;
	struct repair_sync *sync;
};

static void
cluster_exchanged(struct stream_wait *wait, const struct error *err)
{
	struct cluster_exchange *exchange =
	    (struct cluster_exchange *)((char *)wait - offsetof(struct cluster_exchange, wait));
	struct repair_sync *sync = exchange->sync;

	free(exchange);
	sync->on_done(sync, err);
}

static void
cluster_sync(void *context, struct repair_sync *sync)
{
	struct cluster *cluster = context;
	struct cluster_exchange *exchange = xzalloc(sizeof(*exchange));
	struct stream_job *job = stream_job_new(cluster->streams, STREAM_REPAIR,
	    sync->has_pending_repair ? &sync->pending_repair : NULL);

	exchange->wait.on_done = cluster_exchanged;
	exchange->sync = sync;
	stream_job_request(
	    job, sync->peer, sync->keyspace, &sync->table, 1, sync->ranges, sync->range_count);
	if (!sync->is_pull)
		stream_job_send(job, sync->peer, sync->keyspace, &sync->table, 1, sync->ranges,
		    sync->range_count);
	stream_job_start(job, &exchange->wait);
}

static struct schema *
cluster_repair_schema(void *context)
{
	struct cluster *cluster = context;

	return operations_schema(cluster->node->executor);
}

/* ---- history (SystemDistributedKeyspace) --------------------------------------------------------------- */

/* A write on its way to MiscStage. */
struct cluster_history {
	struct cluster *cluster;
	const char *cql; /* static */
	struct buffer values[CLUSTER_HISTORY_VALUES];
	uint32_t count;
};

static struct buffer *
history_value(struct cluster_history *history)
{
	struct buffer *value = &history->values[history->count++];

	buffer_init(value);
	return value;
}

static void
history_add_text(struct cluster_history *history, const char *text)
{
	buffer_put_string(history_value(history), text);
}

static void
history_add_uuid(struct cluster_history *history, const struct uuid *uuid)
{
	buffer_put(history_value(history), uuid->bytes, sizeof(uuid->bytes));
}

static void
history_add_now(struct cluster_history *history)
{
	buffer_put_u64(
	    history_value(history), (uint64_t)(env_wall_us(history->cluster->node->env) / 1000));
}

static void
history_add_address(struct cluster_history *history, const struct endpoint *endpoint)
{
	buffer_put(history_value(history), endpoint->address, endpoint->size);
}

static void
history_put_item(struct buffer *set, const char *text)
{
	buffer_put_u32(set, (uint32_t)strlen(text));
	buffer_put_string(set, text);
}

/* Items of a set stand in their order: these are ascending, or there is one. */
static int
history_compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
history_add_texts(struct cluster_history *history, const char *const *texts, uint32_t count)
{
	struct buffer *set = history_value(history);
	const char **sorted = xcalloc((size_t)count + 1, sizeof(*sorted));

	memcpy(sorted, texts, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), history_compare_texts);
	buffer_put_u32(set, count);
	for (uint32_t i = 0; i < count; i++)
		history_put_item(set, sorted[i]);
	free(sorted);
}

static void
history_add_ranges(struct cluster_history *history, const struct repair_record *record)
{
	char **texts = xcalloc((size_t)record->range_count + 1, sizeof(*texts));

	for (uint32_t i = 0; i < record->range_count; i++)
		texts[i] = xasprintf(
		    "(%" PRId64 ",%" PRId64 "]", record->ranges[i].left, record->ranges[i].right);
	history_add_texts(history, (const char *const *)texts, record->range_count);
	for (uint32_t i = 0; i < record->range_count; i++)
		free(texts[i]);
	free(texts);
}

static int
history_compare_endpoints(const void *a, const void *b)
{
	return endpoint_compare(
	    &(*(struct peer *const *)a)->endpoint, &(*(struct peer *const *)b)->endpoint);
}

/* participants, participants_v2 */
static void
history_add_participants(struct cluster_history *history, const struct repair_record *record)
{
	uint32_t count = record->participant_count;
	struct peer **sorted = xcalloc((size_t)count + 1, sizeof(struct peer *));
	char(*texts)[ENDPOINT_TEXT_SIZE] = xcalloc((size_t)count + 1, sizeof(*texts));
	const char **names = xcalloc((size_t)count + 1, sizeof(*names));
	struct buffer *set = history_value(history);

	memcpy(sorted, record->participants, count * sizeof(struct peer *));
	qsort(sorted, count, sizeof(struct peer *), history_compare_endpoints);
	buffer_put_u32(set, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(set, sorted[i]->endpoint.size);
		buffer_put(set, sorted[i]->endpoint.address, sorted[i]->endpoint.size);
		names[i] = endpoint_format(&sorted[i]->endpoint, texts[i]);
	}
	history_add_texts(history, names, count);
	free(sorted);
	free(texts);
	free(names);
}

static const char *
history_bool(bool value)
{
	return value ? "true" : "false";
}

/* RepairOption.asMap(): keys ascending. */
static void
history_add_options(struct cluster_history *history, const struct repair_record *record)
{
	static const char *const parallelisms[] = {"sequential", "parallel", "dc_parallel"};
	static const char *const previews[] = {"NONE", "ALL", "UNREPAIRED", "REPAIRED"};
	const struct repair_options *options = record->options;
	struct buffer *map = history_value(history);
	char threads[16];
	const char *pairs[][2] = {
	    {"forceRepair", history_bool(options->is_forced)},
	    {"ignoreUnreplicatedKeyspaces", history_bool(options->ignores_unreplicated)},
	    {"incremental", history_bool(options->is_incremental)},
	    {"jobThreads", threads},
	    {"parallelism", parallelisms[options->parallelism]},
	    {"previewKind", previews[options->preview]},
	    {"primaryRange", history_bool(options->is_primary_range)},
	    {"pullRepair", history_bool(options->is_pull)},
	};

	snprintf(threads, sizeof(threads), "%u", (unsigned)options->job_threads);
	buffer_put_u32(map, sizeof(pairs) / sizeof(pairs[0]));
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		history_put_item(map, pairs[i][0]);
		history_put_item(map, pairs[i][1]);
	}
}

static void
history_add_session_key(struct cluster_history *history, const struct repair_record *record)
{
	history_add_text(history, record->keyspace);
	history_add_text(history, record->tables[0]);
	history_add_uuid(history, &record->session);
}

static void
history_start(struct cluster_history *history, const struct repair_record *record)
{
	char begin[24] = "", end[24] = "";

	if (record->range_count > 0) {
		snprintf(begin, sizeof(begin), "%" PRId64, record->ranges[0].left);
		snprintf(
		    end, sizeof(end), "%" PRId64, record->ranges[record->range_count - 1].right);
	}
	history->cql =
	    "UPDATE system_distributed.repair_history SET parent_id = ?, range_begin = ?, "
	    "range_end = ?, coordinator = ?, coordinator_port = ?, participants = ?, "
	    "participants_v2 = ?, status = 'STARTED', started_at = ? WHERE "
	    "keyspace_name = ? AND columnfamily_name = ? AND id = ?";
	history_add_uuid(history, &record->parent);
	history_add_text(history, begin);
	history_add_text(history, end);
	history_add_address(history, &history->cluster->local);
	buffer_put_u32(history_value(history), history->cluster->local.port);
	history_add_participants(history, record);
	history_add_now(history);
	history_add_session_key(history, record);
}

static void
history_fill(struct cluster_history *history, const struct repair_record *record)
{
	switch (record->kind) {
	case REPAIR_RECORD_PARENT_START:
		history->cql =
		    "UPDATE system_distributed.parent_repair_history SET keyspace_name = "
		    "?, columnfamily_names = ?, requested_ranges = ?, started_at = ?, "
		    "options = ? WHERE parent_id = ?";
		history_add_text(history, record->keyspace);
		history_add_texts(history, record->tables, record->table_count);
		history_add_ranges(history, record);
		history_add_now(history);
		history_add_options(history, record);
		history_add_uuid(history, &record->parent);
		break;
	case REPAIR_RECORD_PARENT_SUCCESS:
		history->cql =
		    "UPDATE system_distributed.parent_repair_history SET finished_at = ?, "
		    "successful_ranges = ? WHERE parent_id = ?";
		history_add_now(history);
		history_add_ranges(history, record);
		history_add_uuid(history, &record->parent);
		break;
	case REPAIR_RECORD_PARENT_FAILURE:
		history->cql =
		    "UPDATE system_distributed.parent_repair_history SET finished_at = ?, "
		    "exception_message = ? WHERE parent_id = ?";
		history_add_now(history);
		history_add_text(history, record->failure);
		history_add_uuid(history, &record->parent);
		break;
	case REPAIR_RECORD_START:
		history_start(history, record);
		break;
	case REPAIR_RECORD_SUCCESS:
		history->cql = "UPDATE system_distributed.repair_history SET status = 'SUCCESS', "
			       "finished_at = ? WHERE keyspace_name = ? AND columnfamily_name = ? "
			       "AND id = ?";
		history_add_now(history);
		history_add_session_key(history, record);
		break;
	case REPAIR_RECORD_FAILURE:
		history->cql = "UPDATE system_distributed.repair_history SET status = 'FAILED', "
			       "finished_at = ?, exception_message = ? WHERE keyspace_name = ? AND "
			       "columnfamily_name = ? AND id = ?";
		history_add_now(history);
		history_add_text(history, record->failure);
		history_add_session_key(history, record);
		break;
	}
}

static void
history_free(struct cluster_history *history)
{
	for (uint32_t i = 0; i < history->count; i++)
		buffer_fini(&history->values[i]);
	free(history);
}

static void
history_write(void *argument)
{
	struct cluster_history *history = argument;
	struct slice values[CLUSTER_HISTORY_VALUES];
	struct error err;
	int rc = 0;

	for (uint32_t i = 0; i < history->count && rc == 0; i++) {
		rc = buffer_check(&history->values[i], &err);
		values[i] = buffer_slice(&history->values[i]);
	}
	if (rc == 0)
		rc = internal_execute(
		    history->cluster->node->executor, history->cql, values, history->count, &err);
	if (rc != 0)
		log_error("Error executing query %s: %s", history->cql, err.text);
	history_free(history);
}

static void
cluster_record(void *context, const struct repair_record *record)
{
	struct cluster *cluster = context;
	struct cluster_history *history = xzalloc(sizeof(*history));

	history->cluster = cluster;
	history_fill(history, record);
	if (!stage_submit_work(cluster->node->stages[NODE_STAGE_MISC], history_write, history))
		history_free(history);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

void
cluster_start_repairs(struct cluster *cluster)
{
	const struct config *config = cluster->node->config;
	const struct repair_ops ops = {.context = cluster,
	    .schema = cluster_repair_schema,
	    .sync = cluster_sync,
	    .record = cluster_record,
	    .session_space = (uint64_t)config->repair_session_space,
	    .depth_max = config->repair_session_max_tree_depth < 1
		? 1
		: (uint32_t)config->repair_session_max_tree_depth};

	cluster->repairs = repairs_new(cluster->env, cluster->peers, cluster->messaging,
	    cluster->topology, cluster->node->store, &ops);
}
