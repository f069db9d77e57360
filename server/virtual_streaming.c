/* SPDX-License-Identifier: Apache-2.0 */
/* system_views.streaming (db/virtual/StreamingVirtualTable): plans under way, and the last that ended. */
#include <stdlib.h>
#include "base/alloc.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/virtual_rows.h"
#include "server/virtual_table.h"

struct virtual_plans {
	struct virtual_rows *rows;
	int64_t now_ms;
};

static void
virtual_set_moment(struct virtual_rows *rows, const char *column, int64_t ms)
{
	if (ms != 0)
		virtual_set_bigint(rows, column, ms);
}

static void
virtual_set_peers(struct virtual_rows *rows, const struct stream_plan_info *info)
{
	char(*texts)[ENDPOINT_TEXT_SIZE + 1] =
	    xcalloc((size_t)info->peer_count + 1, sizeof(*texts));
	const char **names = xcalloc((size_t)info->peer_count + 1, sizeof(char *));

	for (uint32_t i = 0; i < info->peer_count; i++) {
		texts[i][0] = '/';
		endpoint_format(&info->peers[i]->endpoint, texts[i] + 1);
		names[i] = texts[i];
	}
	virtual_set_texts(rows, "peers", names, info->peer_count);
	free(names);
	free(texts);
}

/* StreamingState.progress(): whole per cents; what is not over is not all. */
static float
virtual_plan_progress(const struct stream_plan_info *info)
{
	const struct stream_sums *sums = &info->sums;
	uint64_t total = sums->bytes_to_receive + sums->bytes_to_send;
	uint64_t done = sums->bytes_received + sums->bytes_sent, percent;

	if (info->end_ms != 0)
		return 100;
	if (info->start_ms == 0 || total == 0)
		return 0;
	percent = (uint64_t)((double)done * 100 / (double)total + 0.5);
	return (float)(percent > 99 ? 99 : percent);
}

static void
virtual_set_sums(struct virtual_rows *rows, const struct stream_sums *sums)
{
	const struct {
		const char *column;
		uint64_t value;
	} figures[] = {{"bytes_to_receive", sums->bytes_to_receive},
	    {"bytes_received", sums->bytes_received}, {"bytes_to_send", sums->bytes_to_send},
	    {"bytes_sent", sums->bytes_sent}, {"files_to_receive", sums->files_to_receive},
	    {"files_received", sums->files_received}, {"files_to_send", sums->files_to_send},
	    {"files_sent", sums->files_sent}};
	bool is_empty = true;

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		is_empty &= figures[i].value == 0;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]) && !is_empty; i++)
		virtual_set_bigint(rows, figures[i].column, (int64_t)figures[i].value);
}

static void
virtual_add_plan(void *context, const struct stream_plan_info *info)
{
	struct virtual_plans *plans = context;
	struct virtual_rows *rows = plans->rows;
	bool has_failed = info->end_ms != 0 && info->failure != NULL;
	int64_t last_ms = info->end_ms != 0 ? info->end_ms
	    : info->start_ms != 0           ? info->start_ms
					    : info->init_ms;

	virtual_row_begin(rows);
	virtual_set(rows, "id", slice_of(info->plan_id.bytes, sizeof(info->plan_id.bytes)));
	virtual_set_boolean(rows, "follower", info->is_follower);
	virtual_set_text(rows, "operation", stream_operation_name(info->operation));
	virtual_set_peers(rows, info);
	virtual_set_text(rows, "status",
	    has_failed                ? "failure"
		: info->end_ms != 0   ? "success"
		: info->start_ms != 0 ? "start"
				      : "init");
	virtual_set_float(rows, "progress_percentage", virtual_plan_progress(info));
	virtual_set_moment(rows, "last_updated_at", last_ms);
	virtual_set_bigint(rows, "duration_millis",
	    (info->end_ms != 0 ? info->end_ms : plans->now_ms) - info->init_ms);
	if (has_failed)
		virtual_set_text(rows, "failure_cause", info->failure);
	virtual_set_moment(rows, "status_init_timestamp", info->init_ms);
	virtual_set_moment(rows, "status_start_timestamp", info->start_ms);
	virtual_set_moment(rows,
	    has_failed ? "status_failure_timestamp" : "status_success_timestamp", info->end_ms);
	virtual_set_sums(rows, &info->sums);
	virtual_row_end(rows);
}

void
virtual_fill_streaming(struct executor *executor, struct virtual_rows *rows)
{
	struct cluster *cluster = executor->node->cluster;
	struct virtual_plans plans = {rows, env_wall_us(executor->node->env) / 1000};

	/* While the node starts there is none. */
	if (cluster->streams != NULL)
		streams_each_plan(cluster->streams, virtual_add_plan, &plans);
}
