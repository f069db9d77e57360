/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual tables of the repairs that this node coordinates (db/virtual/LocalRepairTables). */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/virtual_rows.h"
#include "server/virtual_table.h"

enum { VIRTUAL_RANGE_TEXT = 48 };

static const char *const command_states[REPAIR_STATES_MAX] = {"init", "setup", "start",
    "prepare_start", "prepare_complete", "repair_start", "repair_complete"};
static const char *const session_states[REPAIR_STATES_MAX] = {"init", "start", "jobs_start"};
static const char *const job_states[REPAIR_STATES_MAX] = {"init", "start", "snapshot_start",
    "snapshot_complete", "validation_start", "validation_complete", "stream_start"};
static const char *const participate_states[REPAIR_STATES_MAX] = {"init"};
static const char *const validation_states[REPAIR_STATES_MAX] = {"init", "start", "sending_trees"};
static const char *const results[] = {[REPAIR_RESULT_SKIPPED] = "skipped",
    [REPAIR_RESULT_SUCCESS] = "success",
    [REPAIR_RESULT_FAILURE] = "failure"};

static const char *const previews[] = {"NONE", "ALL", "UNREPAIRED", "REPAIRED"};

static void
virtual_set_ms(struct virtual_rows *rows, const char *column, int64_t ms)
{
	if (ms != 0)
		virtual_set_bigint(rows, column, ms);
}

static void
virtual_set_uuid(struct virtual_rows *rows, const char *column, const struct uuid *uuid)
{
	virtual_set(rows, column, slice_of(uuid->bytes, sizeof(uuid->bytes)));
}

/* The states that it went through, and where it is. */
static void
virtual_set_history(struct virtual_rows *rows, const struct repair_history *history,
    const char *const *states, int64_t now_ms)
{
	bool is_done = history->result != REPAIR_RESULT_NONE;
	int64_t last_ms = is_done ? history->result_ms : history->state_ms[history->last];
	char column[64];

	for (int i = 0; i < REPAIR_STATES_MAX && states[i] != NULL; i++) {
		snprintf(column, sizeof(column), "state_%s_timestamp", states[i]);
		virtual_set_ms(rows, column, history->state_ms[i]);
	}
	if (is_done) {
		snprintf(column, sizeof(column), "state_%s_timestamp", results[history->result]);
		virtual_set_ms(rows, column, history->result_ms);
	}
	virtual_set_boolean(rows, "completed", is_done);
	virtual_set_text(
	    rows, "status", is_done ? results[history->result] : states[history->last]);
	virtual_set_ms(rows, "last_updated_at", last_ms);
	virtual_set_bigint(
	    rows, "duration_millis", (is_done ? last_ms : now_ms) - history->state_ms[0]);
	if (is_done && history->text[0] != '\0')
		virtual_set_text(rows,
		    history->result == REPAIR_RESULT_FAILURE ? "failure_cause" : "success_message",
		    history->text);
}

static void
virtual_set_endpoints(
    struct virtual_rows *rows, const char *column, struct peer *const *peers, uint32_t count)
{
	char(*texts)[ENDPOINT_TEXT_SIZE + 1] = xcalloc((size_t)count + 1, sizeof(*texts));
	const char **names = xcalloc((size_t)count + 1, sizeof(char *));

	for (uint32_t i = 0; i < count; i++) {
		texts[i][0] = '/';
		endpoint_format(&peers[i]->endpoint, texts[i] + 1);
		names[i] = texts[i];
	}
	virtual_set_texts(rows, column, names, count);
	free(names);
	free(texts);
}

static void
virtual_set_ranges(
    struct virtual_rows *rows, const char *column, const struct ring_range *ranges, uint32_t count)
{
	char(*texts)[VIRTUAL_RANGE_TEXT] = xcalloc((size_t)count + 1, sizeof(*texts));
	const char **names = xcalloc((size_t)count + 1, sizeof(char *));

	for (uint32_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "(%" PRId64 ",%" PRId64 "]", ranges[i].left,
		    ranges[i].right);
		names[i] = texts[i];
	}
	virtual_set_texts(rows, column, names, count);
	free(names);
	free(texts);
}

/* list<list<text>> */
static void
virtual_set_groups(struct virtual_rows *rows, const char *column, const struct repair_view *view)
{
	const struct ring_range *range = view->ranges;
	char text[VIRTUAL_RANGE_TEXT];
	struct buffer groups, group;

	buffer_init(&groups);
	buffer_init(&group);
	buffer_put_u32(&groups, view->group_count);
	for (uint32_t i = 0; i < view->group_count; i++) {
		buffer_clear(&group);
		buffer_put_u32(&group, view->group_sizes[i]);
		for (uint32_t j = 0; j < view->group_sizes[i]; j++, range++) {
			buffer_put_u32(&group,
			    (uint32_t)snprintf(text, sizeof(text), "(%" PRId64 ",%" PRId64 "]",
				range->left, range->right));
			buffer_put_string(&group, text);
		}
		buffer_put_u32(&groups, (uint32_t)group.size);
		buffer_put_slice(&groups, buffer_slice(&group));
	}
	if (!groups.is_failed && !group.is_failed)
		virtual_set(rows, column, buffer_slice(&groups));
	buffer_fini(&groups);
	buffer_fini(&group);
}

static int
virtual_compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A frozen set, in its order. */
static void
virtual_set_text_set(
    struct virtual_rows *rows, const char *column, const char *const *texts, uint32_t count)
{
	const char **sorted = xcalloc((size_t)count + 1, sizeof(char *));

	for (uint32_t i = 0; i < count; i++)
		sorted[i] = texts[i];
	qsort(sorted, count, sizeof(char *), virtual_compare_texts);
	virtual_set_texts(rows, column, sorted, count);
	free(sorted);
}

static int
virtual_compare_uuids(const void *a, const void *b)
{
	const struct uuid *left = a, *right = b;
	uint64_t left_ticks = uuid_ticks(left), right_ticks = uuid_ticks(right);

	/* By time where they are of one. */
	if ((left->bytes[6] >> 4) != 1 || (right->bytes[6] >> 4) != 1)
		return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
	if (left_ticks != right_ticks)
		return left_ticks < right_ticks ? -1 : 1;
	return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
}

/* A frozen set, in the order of its type. */
static void
virtual_set_uuids(
    struct virtual_rows *rows, const char *column, const struct uuid *uuids, uint32_t count)
{
	struct uuid *sorted = xcalloc((size_t)count + 1, sizeof(*sorted));
	struct buffer set;

	memcpy(sorted, uuids, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), virtual_compare_uuids);
	buffer_init(&set);
	buffer_put_u32(&set, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u32(&set, sizeof(sorted[i].bytes));
		buffer_put(&set, sorted[i].bytes, sizeof(sorted[i].bytes));
	}
	if (!set.is_failed)
		virtual_set(rows, column, buffer_slice(&set));
	buffer_fini(&set);
	free(sorted);
}

static void
virtual_set_options(struct virtual_rows *rows, const struct repair_options *options)
{
	static const char *const parallelisms[] = {"SEQUENTIAL", "PARALLEL", "DATACENTER_AWARE"};
	static const char *const types[] = {
	    NULL, "preview full", "preview unrepaired", "preview repaired"};
	const char **hosts = xcalloc((size_t)options->host_count + 1, sizeof(char *));
	char(*texts)[ENDPOINT_TEXT_SIZE] = xcalloc((size_t)options->host_count + 1, sizeof(*texts));

	virtual_set_text(rows, "type",
	    options->preview != REPAIR_PREVIEW_NONE ? types[options->preview]
		: options->is_incremental           ? "incremental"
						    : "full");
	virtual_set_text(rows, "options_parallelism", parallelisms[options->parallelism]);
	virtual_set_text(rows, "options_preview_kind", previews[options->preview]);
	virtual_set_boolean(rows, "options_primary_range", options->is_primary_range);
	virtual_set_boolean(rows, "options_incremental", options->is_incremental);
	virtual_set_boolean(rows, "options_trace", options->is_traced);
	virtual_set_int(rows, "options_job_threads", (int32_t)options->job_threads);
	virtual_set_boolean(rows, "options_subrange_repair", options->range_count > 0);
	virtual_set_boolean(rows, "options_pull_repair", options->is_pull);
	virtual_set_boolean(rows, "options_force_repair", options->is_forced);
	virtual_set_boolean(rows, "options_optimise_streams", options->optimises_streams);
	virtual_set_boolean(
	    rows, "options_ignore_unreplicated_keyspaces", options->ignores_unreplicated);
	virtual_set_text_set(
	    rows, "options_column_families", options->tables, options->table_count);
	virtual_set_text_set(
	    rows, "options_data_centers", options->datacenters, options->datacenter_count);
	virtual_set_ranges(rows, "options_ranges", options->ranges, options->range_count);
	for (uint32_t i = 0; i < options->host_count; i++)
		hosts[i] = endpoint_format_address(&options->hosts[i], texts[i]);
	virtual_set_text_set(rows, "options_hosts", hosts, options->host_count);
	free(hosts);
	free(texts);
}

static void
virtual_set_figure(struct virtual_rows *rows, const char *column, uint64_t value)
{
	if (value != 0)
		virtual_set_bigint(rows, column, (int64_t)value);
}

/* ValidationState.getProgress(): of what it was thought to be, which it may not be. */
static float
virtual_progress(const struct repair_view *view)
{
	double share =
	    view->estimated_bytes == 0 ? 0 : (double)view->bytes / (double)view->estimated_bytes;

	if (view->history->result == REPAIR_RESULT_SUCCESS)
		return 100;
	return share > 0.99 ? 99 : (float)((int)(share * 10000 + 0.5)) / 100;
}

/* What only a participant's rows have. */
static void
virtual_set_part(struct virtual_rows *rows, const struct repair_view *view)
{
	char initiator[ENDPOINT_TEXT_SIZE + 1] = "/";
	float progress = virtual_progress(view);
	uint8_t encoded[4];
	uint32_t bits;

	endpoint_format(view->initiator, initiator + 1);
	virtual_set_text(rows, "initiator", initiator);
	if (view->kind == REPAIR_VIEW_PARTICIPATE) {
		virtual_set_boolean(rows, "incremental", view->is_incremental);
		virtual_set_boolean(rows, "global", view->is_global);
		virtual_set_text(rows, "preview_kind", previews[view->preview]);
		virtual_set_ms(rows, "repaired_at", view->repaired_at);
		virtual_set_uuids(rows, "validations", view->children, view->child_count);
		return;
	}
	virtual_set_figure(rows, "estimated_partitions", view->estimated_partitions);
	virtual_set_figure(rows, "estimated_total_bytes", view->estimated_bytes);
	virtual_set_figure(rows, "partitions_processed", view->partitions);
	virtual_set_bigint(rows, "bytes_read", (int64_t)view->bytes);
	memcpy(&bits, &progress, sizeof(bits));
	store_u32(encoded, bits);
	virtual_set(rows, "progress_percentage", slice_of(encoded, sizeof(encoded)));
}

struct virtual_repairs {
	struct virtual_rows *rows;
	int64_t now_ms;
};

static void
virtual_add_repair(void *context, const struct repair_view *view)
{
	struct virtual_repairs *repairs = context;
	struct virtual_rows *rows = repairs->rows;
	static const char *const *const states[] = {
	    command_states, session_states, job_states, participate_states, validation_states};

	virtual_row_begin(rows);
	virtual_set_uuid(rows, "id", &view->id);
	virtual_set_history(rows, view->history, states[view->kind], repairs->now_ms);
	virtual_set_text(rows, "keyspace_name", view->keyspace);
	if (view->participant_count > 0)
		virtual_set_endpoints(
		    rows, "participants", view->participants, view->participant_count);
	if (view->kind == REPAIR_VIEW_PARTICIPATE)
		virtual_set_text_set(rows, "tables", view->tables, view->table_count);
	else if (view->table_count > 0 &&
	    (view->kind == REPAIR_VIEW_JOB || view->kind == REPAIR_VIEW_VALIDATION))
		virtual_set_text(rows, "table_name", view->tables[0]);
	else if (view->table_count > 0)
		virtual_set_texts(rows, "table_names", view->tables, view->table_count);
	if (view->kind != REPAIR_VIEW_COMMAND) {
		virtual_set_uuid(rows, "repair_id", &view->parent);
		virtual_set_uuid(rows, "session_id", &view->session);
		virtual_set_ranges(rows, "ranges", view->ranges, view->range_count);
	}
	if (view->initiator != NULL)
		virtual_set_part(rows, view);
	if (view->kind == REPAIR_VIEW_SESSION)
		virtual_set_uuids(rows, "jobs", view->children, view->child_count);
	if (view->kind == REPAIR_VIEW_COMMAND) {
		virtual_set_int(rows, "command_id", (int32_t)view->number);
		virtual_set_uuids(rows, "sessions", view->children, view->child_count);
		if (view->group_count > 0) {
			virtual_set_groups(rows, "ranges", view);
			virtual_set_groups(rows, "unfiltered_ranges", view);
		}
		virtual_set_options(rows, view->options);
	}
	virtual_row_end(rows);
}

static void
virtual_fill_views(struct executor *executor, struct virtual_rows *rows, enum repair_view_kind kind)
{
	struct cluster *cluster = executor->node->cluster;
	struct virtual_repairs repairs = {rows, env_wall_us(executor->node->env) / 1000};

	/* While the node starts there is none. */
	if (cluster->repairs != NULL)
		repairs_each_view(cluster->repairs, kind, virtual_add_repair, &repairs);
}

void
virtual_fill_repairs(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_views(executor, rows, REPAIR_VIEW_COMMAND);
}

void
virtual_fill_repair_sessions(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_views(executor, rows, REPAIR_VIEW_SESSION);
}

void
virtual_fill_repair_jobs(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_views(executor, rows, REPAIR_VIEW_JOB);
}

void
virtual_fill_repair_participates(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_views(executor, rows, REPAIR_VIEW_PARTICIPATE);
}

void
virtual_fill_repair_validations(struct executor *executor, struct virtual_rows *rows)
{
	virtual_fill_views(executor, rows, REPAIR_VIEW_VALIDATION);
}
