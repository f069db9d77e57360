/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/repair_internal.h"

/* What commands, sessions and jobs went through, for those who look on (repair/state). All under repairs->lock. */

void
repair_reach(struct repairs *repairs, struct repair_history *history, unsigned state)
{
	int64_t now_ms = (int64_t)(env_wall_us(repairs->env->env) / 1000);

	lock_take(&repairs->lock);
	history->state_ms[state] = now_ms;
	history->last = (uint8_t)state;
	lock_drop(&repairs->lock);
}

void
repair_reach_end(struct repairs *repairs, struct repair_history *history, enum repair_result result,
    const char *text)
{
	int64_t now_ms = (int64_t)(env_wall_us(repairs->env->env) / 1000);

	lock_take(&repairs->lock);
	/* What ended stays as it ended. */
	if (history->result == REPAIR_RESULT_NONE) {
		history->result = result;
		history->result_ms = now_ms;
		snprintf(history->text, sizeof(history->text), "%s", text == NULL ? "" : text);
	}
	lock_drop(&repairs->lock);
}

/* ---- looking on ---- */

struct repair_looker {
	void (*each)(void *context, const struct repair_view *view);
	void *context;
	const struct repair_command *command;
	const char **tables; /* owned */
};

static void
repair_look_at_job(const struct repair_looker *looker, const struct repair_job *job)
{
	const struct repair_common *common = job->session->common;
	const struct repair_view view = {.kind = REPAIR_VIEW_JOB,
	    .id = job->id,
	    .parent = looker->command->parent,
	    .session = job->session->id,
	    .history = &job->history,
	    .keyspace = looker->command->options.keyspace,
	    .tables = (const char *const *)&job->table->name,
	    .table_count = 1,
	    .ranges = common->ranges,
	    .range_count = common->range_count,
	    .participants = common->peers,
	    .participant_count = common->peer_count};

	looker->each(looker->context, &view);
}

static void
repair_look_at_session(const struct repair_looker *looker, const struct repair_session *session)
{
	const struct repair_command *command = looker->command;
	struct uuid *jobs = xcalloc((size_t)command->table_count + 1, sizeof(*jobs));
	const struct repair_view view = {.kind = REPAIR_VIEW_SESSION,
	    .id = session->id,
	    .parent = command->parent,
	    .session = session->id,
	    .history = &session->history,
	    .keyspace = command->options.keyspace,
	    .tables = looker->tables,
	    .table_count = command->table_count,
	    .ranges = session->common->ranges,
	    .range_count = session->common->range_count,
	    .participants = session->common->peers,
	    .participant_count = session->common->peer_count,
	    .children = jobs,
	    .child_count = command->table_count};

	for (uint32_t i = 0; i < command->table_count; i++)
		jobs[i] = session->jobs[i].id;
	looker->each(looker->context, &view);
	free(jobs);
}

static void
repair_look_at_command(const struct repair_looker *looker)
{
	const struct repair_command *command = looker->command;
	const struct repair_plan *plan = &command->plan;
	struct uuid *sessions = xcalloc((size_t)command->look_sessions + 1, sizeof(*sessions));
	uint32_t *sizes = NULL;
	struct ring_range *ranges = NULL;
	struct repair_view view = {.kind = REPAIR_VIEW_COMMAND,
	    .id = command->parent,
	    .parent = command->parent,
	    .history = &command->history,
	    .keyspace = command->options.keyspace,
	    .number = command->number,
	    .options = &command->options,
	    .children = sessions,
	    .child_count = command->look_sessions};

	if (command->look_plan) {
		view.tables = looker->tables;
		view.table_count = command->table_count;
		view.participants = plan->peers;
		view.participant_count = plan->peer_count;
		view.group_sizes = sizes = xcalloc((size_t)plan->common_count + 1, sizeof(*sizes));
		view.group_count = plan->common_count;
		view.ranges = ranges = xcalloc((size_t)plan->range_count + 1, sizeof(*ranges));
		for (uint32_t i = 0; i < plan->common_count; i++) {
			sizes[i] = plan->commons[i].range_count;
			for (uint32_t j = 0; j < sizes[i]; j++)
				ranges[view.range_count++] = plan->commons[i].ranges[j];
		}
	}
	for (uint32_t i = 0; i < command->look_sessions; i++)
		sessions[i] = command->sessions[i].id;
	looker->each(looker->context, &view);
	free(sessions);
	free(sizes);
	free(ranges);
}

void
repairs_each_view(struct repairs *repairs, enum repair_view_kind kind,
    void (*each)(void *context, const struct repair_view *view), void *context)
{
	lock_take(&repairs->lock);
	if (kind == REPAIR_VIEW_PARTICIPATE || kind == REPAIR_VIEW_VALIDATION) {
		repair_trails_each(repairs, kind, each, context);
		lock_drop(&repairs->lock);
		return;
	}
	for (const struct repair_command *command = repairs->commands; command != NULL;
	     command = command->next) {
		uint32_t count = command->look_plan ? command->table_count : 0;
		struct repair_looker looker = {each, context, command, NULL};

		looker.tables = xcalloc((size_t)count + 1, sizeof(char *));
		for (uint32_t i = 0; i < count; i++)
			looker.tables[i] = command->tables[i].name;
		if (kind == REPAIR_VIEW_COMMAND)
			repair_look_at_command(&looker);
		for (uint32_t i = 0; i < command->look_sessions; i++) {
			if (kind == REPAIR_VIEW_SESSION)
				repair_look_at_session(&looker, &command->sessions[i]);
			for (uint32_t j = 0; j < command->table_count && kind == REPAIR_VIEW_JOB;
			     j++)
				repair_look_at_job(&looker, &command->sessions[i].jobs[j]);
		}
		free(looker.tables);
	}
	lock_drop(&repairs->lock);
}
