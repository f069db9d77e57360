/* SPDX-License-Identifier: Apache-2.0 */
/* What repair needs of a real node: its data exchanged by streams, its history in system_distributed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "cluster/paxos_repair.h"
#include "server/cluster_internal.h"
#include "server/internal_query.h"
#include "server/node.h"
#include "server/operations.h"

#define CLUSTER_SECOND_NS UINT64_C(1000000000)
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
	sync->exchange = exchange;
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
	    {"optimiseStreams", history_bool(options->optimises_streams)},
	    {"parallelism", parallelisms[options->parallelism]},
	    {"previewKind", previews[options->preview]},
	    {"primaryRange", history_bool(options->is_primary_range)},
	    {"pullRepair", history_bool(options->is_pull)},
	    {"trace", history_bool(options->is_traced)},
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
history_add_trace_ttl(struct cluster_history *history)
{
	buffer_put_u32(history_value(history),
	    (uint32_t)(history->cluster->node->config->trace_type_repair_ttl / 1000));
}

/* TraceKeyspace.makeStartSessionMutation; parameters: keys ascending. */
static void
history_trace(struct cluster_history *history, const struct repair_record *record)
{
	struct buffer *map, names;

	history->cql =
	    "INSERT INTO system_traces.sessions (session_id, command, coordinator, "
	    "coordinator_port, request, started_at, parameters) VALUES (?, 'REPAIR', ?, ?, "
	    "'repair', ?, ?) USING TTL ?";
	history_add_uuid(history, &record->trace->session);
	history_add_address(history, &history->cluster->local);
	buffer_put_u32(history_value(history), history->cluster->local.port);
	history_add_now(history);
	map = history_value(history);
	buffer_init(&names);
	for (uint32_t i = 0; i < record->table_count; i++)
		buffer_printf(
		    &names, "%s%s.%s", i == 0 ? "" : ",", record->keyspace, record->tables[i]);
	buffer_put_u8(&names, 0);
	buffer_put_u32(map, 2);
	history_put_item(map, "columnFamilies");
	history_put_item(map, names.is_failed ? "" : (const char *)names.data);
	history_put_item(map, "keyspace");
	history_put_item(map, record->keyspace);
	buffer_fini(&names);
	history_add_trace_ttl(history);
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
	case REPAIR_RECORD_TRACE_START:
		history_trace(history, record);
		break;
	case REPAIR_RECORD_TRACE_END:
		history->cql = "INSERT INTO system_traces.sessions (session_id, duration) VALUES "
			       "(?, ?) USING TTL ?";
		history_add_uuid(history, &record->trace->session);
		buffer_put_u32(history_value(history),
		    (uint32_t)((env_monotonic_ns(history->cluster->node->env) -
				   record->trace->began_ns) /
			1000));
		history_add_trace_ttl(history);
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

static int
history_execute(struct cluster_history *history, struct error *err)
{
	struct slice values[CLUSTER_HISTORY_VALUES];

	for (uint32_t i = 0; i < history->count; i++) {
		if (buffer_check(&history->values[i], err) != 0)
			return -1;
		values[i] = buffer_slice(&history->values[i]);
	}
	return internal_execute(
	    history->cluster->node->executor, history->cql, values, history->count, err);
}

static void
history_write(void *argument)
{
	struct cluster_history *history = argument;
	struct error err;

	if (history_execute(history, &err) != 0)
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

/* ---- system.repairs (LocalSessions) --------------------------------------------------------------------- */

enum { REPAIR_RANGE_BYTES = 16, REPAIR_OVER_TTL = 24 * 3600 };

static int
history_compare_addresses(const void *a, const void *b)
{
	return endpoint_compare(a, b);
}

/* participants, participants_wp */
static void
history_add_endpoints(
    struct cluster_history *history, const struct endpoint *endpoints, uint32_t count)
{
	struct endpoint *sorted = xcalloc((size_t)count + 1, sizeof(*sorted));
	char(*texts)[ENDPOINT_TEXT_SIZE] = xcalloc((size_t)count + 1, sizeof(*texts));
	const char **names = xcalloc((size_t)count + 1, sizeof(*names));
	struct buffer *set = history_value(history);

	memcpy(sorted, endpoints, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), history_compare_addresses);
	buffer_put_u32(set, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(set, sorted[i].size);
		buffer_put(set, sorted[i].address, sorted[i].size);
		names[i] = endpoint_format(&sorted[i], texts[i]);
	}
	history_add_texts(history, names, count);
	free(sorted);
	free(texts);
	free(names);
}

static int
history_compare_ranges(const void *a, const void *b)
{
	return memcmp(a, b, REPAIR_RANGE_BYTES);
}

static void
history_add_range_blobs(
    struct cluster_history *history, const struct ring_range *ranges, uint32_t count)
{
	uint8_t(*blobs)[REPAIR_RANGE_BYTES] = xcalloc((size_t)count + 1, sizeof(*blobs));
	struct buffer *set = history_value(history);

	for (uint32_t i = 0; i < count; i++) {
		store_u64(blobs[i], (uint64_t)ranges[i].left);
		store_u64(blobs[i] + 8, (uint64_t)ranges[i].right);
	}
	qsort(blobs, count, sizeof(*blobs), history_compare_ranges);
	buffer_put_u32(set, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(set, REPAIR_RANGE_BYTES);
		buffer_put(set, blobs[i], REPAIR_RANGE_BYTES);
	}
	free(blobs);
}

static int
history_compare_uuids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct uuid));
}

static void
history_add_uuids(struct cluster_history *history, const struct uuid *uuids, uint32_t count)
{
	struct uuid *sorted = xcalloc((size_t)count + 1, sizeof(*sorted));
	struct buffer *set = history_value(history);

	memcpy(sorted, uuids, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), history_compare_uuids);
	buffer_put_u32(set, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(set, sizeof(sorted[i].bytes));
		buffer_put(set, sorted[i].bytes, sizeof(sorted[i].bytes));
	}
	free(sorted);
}

static int
cluster_save_repair(void *context, const struct repair_local *local, struct error *err)
{
	struct cluster *cluster = context;
	struct cluster_history *history = xzalloc(sizeof(*history));
	int rc;

	history->cluster = cluster;
	history->cql =
	    "INSERT INTO system.repairs (parent_id, started_at, last_update, repaired_at, "
	    "state, coordinator, coordinator_port, participants, participants_wp, ranges, "
	    "cfids) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?";
	history_add_uuid(history, &local->id);
	buffer_put_u64(history_value(history), (uint64_t)local->started_ms);
	buffer_put_u64(history_value(history), (uint64_t)local->last_update_ms);
	buffer_put_u64(history_value(history), (uint64_t)local->repaired_at);
	buffer_put_u32(history_value(history), (uint32_t)local->state);
	history_add_address(history, &local->coordinator);
	buffer_put_u32(history_value(history), local->coordinator.port);
	history_add_endpoints(history, local->participants, local->participant_count);
	history_add_range_blobs(history, local->ranges, local->range_count);
	history_add_uuids(history, local->tables, local->table_count);
	buffer_put_u32(history_value(history),
	    repair_state_is_over(local->state) && !repair_local_is_kept(local) ? REPAIR_OVER_TTL
									       : 0);
	rc = history_execute(history, err);
	history_free(history);
	return rc;
}

static void
cluster_forget_repair(void *context, const struct uuid *id)
{
	struct cluster *cluster = context;
	struct slice value = slice_of(id->bytes, sizeof(id->bytes));
	struct error err;

	if (internal_execute(cluster->node->executor,
		"DELETE FROM system.repairs WHERE parent_id = ?", &value, 1, &err) != 0)
		log_error("system.repairs: %s", err.text);
}

/* The next item of a set; false at its end. */
static bool
saved_item(struct reader *reader, uint32_t *left, struct slice *item)
{
	if (*left == 0 || reader->is_failed)
		return false;
	(*left)--;
	*item = reader_bytes(reader, reader_u32(reader));
	return !reader->is_failed;
}

static int64_t
saved_number(struct slice cell)
{
	return cell.size == 8 ? (int64_t)load_u64(cell.data)
	    : cell.size == 4  ? (int32_t)load_u32(cell.data)
			      : 0;
}

static struct reader
saved_set(struct slice cell, uint32_t *count)
{
	struct reader reader = reader_of(slice_is_null(cell) ? slice_of("", 0) : cell);

	*count = reader_left(&reader) >= 4 ? reader_u32(&reader) : 0;
	/* Each item has its size: what a damaged cell claims is not believed. */
	if (*count > reader_left(&reader) / 4)
		*count = 0;
	return reader;
}

static void
cluster_add_saved_repair(struct cluster *cluster, const struct slice *cells)
{
	struct repair_local local = {.started_ms = saved_number(cells[1]),
	    .last_update_ms = saved_number(cells[2]),
	    .repaired_at = saved_number(cells[3])};
	int64_t state = saved_number(cells[4]);
	uint32_t counts[3];
	struct reader readers[3];
	struct endpoint *participants;
	struct ring_range *ranges;
	struct uuid *tables;
	struct slice item;

	if (cells[0].size != sizeof(local.id.bytes) || state < REPAIR_PREPARING ||
	    state > REPAIR_HAS_FAILED || (cells[5].size != 4 && cells[5].size != 16))
		return;
	local.state = (enum repair_state)state;
	memcpy(local.id.bytes, cells[0].data, sizeof(local.id.bytes));
	local.coordinator.size = (uint8_t)cells[5].size;
	local.coordinator.port = (uint16_t)saved_number(cells[6]);
	memcpy(local.coordinator.address, cells[5].data, cells[5].size);
	for (int i = 0; i < 3; i++)
		readers[i] = saved_set(cells[7 + i], &counts[i]);
	local.participants = participants = xcalloc((size_t)counts[0] + 1, sizeof(*participants));
	local.ranges = ranges = xcalloc((size_t)counts[1] + 1, sizeof(*ranges));
	local.tables = tables = xcalloc((size_t)counts[2] + 1, sizeof(*tables));
	while (saved_item(&readers[0], &counts[0], &item)) {
		char text[ENDPOINT_TEXT_SIZE] = "";

		if (item.size < sizeof(text))
			memcpy(text, item.data, item.size);
		if (endpoint_parse(text, cluster->local.port,
			&participants[local.participant_count], NULL) == 0)
			local.participant_count++;
	}
	while (saved_item(&readers[1], &counts[1], &item))
		if (item.size == REPAIR_RANGE_BYTES)
			ranges[local.range_count++] = (struct ring_range){
			    (int64_t)load_u64(item.data), (int64_t)load_u64(item.data + 8)};
	while (saved_item(&readers[2], &counts[2], &item))
		if (item.size == sizeof(tables->bytes))
			memcpy(tables[local.table_count++].bytes, item.data, item.size);
	repairs_add_saved(cluster->repairs, &local);
	free(participants);
	free(ranges);
	free(tables);
}

static int
cluster_load_repairs(struct cluster *cluster, struct error *err)
{
	struct slice cells[INTERNAL_COLUMNS_MAX];
	struct internal_rows rows;

	if (internal_select(cluster->node->executor,
		"SELECT parent_id, started_at, last_update, repaired_at, state, coordinator, "
		"coordinator_port, participants_wp, ranges, cfids FROM system.repairs",
		NULL, 0, &rows, err) != 0)
		return -1;
	while (internal_rows_next(&rows, cells))
		cluster_add_saved_repair(cluster, cells);
	internal_rows_fini(&rows);
	return 0;
}

/* ---- Paxos ---------------------------------------------------------------------------------------------- */

static bool
cluster_skips_paxos(void *context, struct slice keyspace)
{
	const struct cluster *cluster = context;
	const struct config *config = cluster->node->config;
	const struct config_list *skipped = &config->skip_paxos_repair_on_topology_change_keyspaces;

	for (size_t i = 0; i < skipped->count; i++)
		if (slice_equal_string(keyspace, skipped->items[i]))
			return true;
	return config->skip_paxos_repair_on_topology_change;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

int
cluster_start_repairs(struct cluster *cluster, struct error *err)
{
	const struct config *config = cluster->node->config;
	const struct repair_ops ops = {.context = cluster,
	    .schema = cluster_repair_schema,
	    .sync = cluster_sync,
	    .record = cluster_record,
	    .save = cluster_save_repair,
	    .forget = cluster_forget_repair,
	    .paxos = config->paxos_repair_enabled ? cluster->paxos : NULL,
	    .paxos_strict_each_quorum = config->paxos_topology_repair_strict_each_quorum,
	    .paxos_no_dc_checks = config->paxos_topology_repair_no_dc_checks,
	    .skips_paxos = cluster_skips_paxos,
	    .session_space = (uint64_t)config->repair_session_space,
	    .depth_max = config->repair_session_max_tree_depth < 1
		? 1
		: (uint32_t)config->repair_session_max_tree_depth};

	cluster->repairs = repairs_new(cluster->env, cluster->peers, cluster->messaging,
	    cluster->topology, cluster->node->store, &ops);
	if (cluster_load_repairs(cluster, err) != 0)
		return -1;
	if (config->paxos_repair_enabled && config->cassandra__auto_repair_frequency_seconds > 0)
		paxos_auto_repair(cluster->paxos,
		    (uint64_t)config->cassandra__auto_repair_frequency_seconds * CLUSTER_SECOND_NS);
	repairs_resume(cluster->repairs);
	return 0;
}
