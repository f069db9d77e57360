/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/repair_internal.h"

/*
 * A command from its options to its end (repair/RepairRunnable, and for incremental ones
 * repair/consistent/CoordinatorSession). Steps of all participants go one after the other:
 *
 *   PREPARE, incremental: PREPARE_CONSISTENT -> sessions, job by job -> incremental: FINALIZE_PROPOSE, FINALIZE_COMMIT
 *   -> CLEANUP; where it fails: incremental: FAILED_SESSION, then CLEANUP
 */

static void repair_command_run_jobs(struct repair_command *command);

/* ---- what is said ------------------------------------------------------------------------------------ */

void
repair_say(struct repair_command *command, bool has_percent, const char *format, ...)
{
	struct repair_text line = {
	    .time_ms = (int64_t)(env_wall_us(command->repairs->env->env) / 1000), .percent = -1};
	va_list arguments;
	int length;

	if (has_percent && command->plan.range_count > 0)
		line.percent =
		    (int32_t)((uint64_t)command->ranges_done * 100 / command->plan.range_count);
	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	line.text = xmalloc((size_t)length + 1);
	va_start(arguments, format);
	vsnprintf(line.text, (size_t)length + 1, format, arguments);
	va_end(arguments);
	log_info("[repair #%u] %s", (unsigned)command->number, line.text);
	lock_take(&command->repairs->lock);
	command->lines =
	    xrealloc(command->lines, (command->line_count + 1) * sizeof(*command->lines));
	command->lines[command->line_count++] = line;
	lock_drop(&command->repairs->lock);
}

void
repair_trace(const struct repair_command *command, const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (!trace_is_on(&command->trace))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	trace_event(command->repairs->env, &command->trace, NULL, "%s", text);
}

static void
repair_put_list(struct buffer *out, const char *const *items, uint32_t count)
{
	buffer_put_string(out, "[");
	for (uint32_t i = 0; i < count; i++)
		buffer_printf(out, "%s%s", i == 0 ? "" : ", ", items[i]);
	buffer_put_string(out, "]");
}

static const char *
repair_bool(bool value)
{
	return value ? "true" : "false";
}

/* RepairOption.toString(). */
static void
repair_put_options(struct buffer *out, const struct repair_command *command, uint32_t ranges)
{
	static const char *const parallelisms[] = {"sequential", "parallel", "dc_parallel"};
	static const char *const previews[] = {"NONE", "ALL", "UNREPAIRED", "REPAIRED"};
	const struct repair_options *options = &command->options;
	char address[ENDPOINT_TEXT_SIZE];

	buffer_printf(out,
	    "repair options (parallelism: %s, primary range: %s, incremental: %s, job threads: %u, "
	    "ColumnFamilies: ",
	    parallelisms[options->parallelism], repair_bool(options->is_primary_range),
	    repair_bool(options->is_incremental), (unsigned)options->job_threads);
	repair_put_list(out, options->tables, options->table_count);
	buffer_put_string(out, ", dataCenters: ");
	repair_put_list(out, options->datacenters, options->datacenter_count);
	buffer_put_string(out, ", hosts: [");
	for (uint32_t i = 0; i < options->host_count; i++)
		buffer_printf(out, "%s%s", i == 0 ? "" : ", ",
		    endpoint_format_address(&options->hosts[i], address));
	buffer_printf(out,
	    "], previewKind: %s, # of ranges: %u, pull repair: %s, force repair: %s, optimise "
	    "streams: %s, ignore unreplicated keyspaces: %s, repairPaxos: %s, paxosOnly: "
	    "%s)",
	    previews[options->preview], (unsigned)ranges, repair_bool(options->is_pull),
	    repair_bool(options->is_forced), repair_bool(options->optimises_streams),
	    repair_bool(options->ignores_unreplicated), repair_bool(!options->skips_paxos),
	    repair_bool(options->is_paxos_only));
	buffer_put_u8(out, 0);
}

static void
repair_put_ranges(struct buffer *out, const struct repair_common *common)
{
	buffer_put_string(out, "[");
	for (uint32_t i = 0; i < common->range_count; i++)
		buffer_printf(out, "%s(%" PRId64 ",%" PRId64 "]", i == 0 ? "" : ", ",
		    common->ranges[i].left, common->ranges[i].right);
	buffer_put_string(out, "]");
	buffer_put_u8(out, 0);
}

/* "1 minute 3 seconds" */
static const char *
repair_duration(const struct repair_command *command, char out[96])
{
	uint64_t seconds =
	    (env_monotonic_ns(command->repairs->env->env) - command->started_ns) / 1000000000;
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
	bool has_begun = false;
	size_t used = 0;

	for (size_t i = 0; i < 4; i++) {
		uint64_t count = seconds / units[i].seconds;

		seconds %= units[i].seconds;
		if (count == 0 && (has_begun || i < 3))
			continue;
		used += (size_t)snprintf(out + used, 96 - used, "%s%" PRIu64 " %s%s",
		    used == 0 ? "" : " ", count, units[i].name, count == 1 ? "" : "s");
		has_begun = true;
	}
	return out;
}

/* ---- history ------------------------------------------------------------------------------------------ */

static void
repair_record(struct repair_command *command, struct repair_record *record)
{
	record->parent = command->parent;
	record->keyspace = command->options.keyspace;
	command->repairs->ops.record(command->repairs->ops.context, record);
}

static void
repair_record_parent(struct repair_command *command, int kind, const char *failure)
{
	const char **tables = xcalloc((size_t)command->table_count + 1, sizeof(*tables));
	struct ring_range *ranges = xcalloc((size_t)command->plan.range_count + 1, sizeof(*ranges));
	struct repair_record record = {.kind = kind,
	    .tables = tables,
	    .table_count = command->table_count,
	    .ranges = ranges,
	    .options = &command->options,
	    .trace = &command->trace,
	    .failure = failure};

	for (uint32_t i = 0; i < command->table_count; i++)
		tables[i] = command->tables[i].name;
	for (uint32_t i = 0; i < command->plan.common_count; i++)
		for (uint32_t j = 0; j < command->plan.commons[i].range_count; j++)
			ranges[record.range_count++] = command->plan.commons[i].ranges[j];
	repair_record(command, &record);
	free(tables);
	free(ranges);
}

static void
repair_record_job(struct repair_job *job, int kind, const char *failure)
{
	const char *table = job->table->name;
	const struct repair_common *common = job->session->common;
	struct repair_record record = {.kind = kind,
	    .session = job->session->id,
	    .tables = &table,
	    .table_count = 1,
	    .ranges = common->ranges,
	    .range_count = common->range_count,
	    .participants = common->peers,
	    .participant_count = common->peer_count,
	    .failure = failure};

	repair_record(job->session->command, &record);
}

/* ---- steps -------------------------------------------------------------------------------------------- */

void
repair_ignore(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	(void)context;
	(void)peer;
	(void)result;
	(void)err;
}

static void
repair_encode(struct repair_command *command, enum verb verb, struct buffer *out)
{
	struct repair_message message = {.verb = verb, .parent = command->parent};

	repair_message_encode(&message, out);
}

/* To all who know of it; nobody waits for the answers, but they are asked until they answer. */
static void
repair_tell_all(struct repair_command *command, enum verb verb)
{
	struct buffer payload;

	if (!command->has_prepared)
		return;
	buffer_init(&payload);
	repair_encode(command, verb, &payload);
	for (uint32_t i = 0; i < command->plan.peer_count; i++)
		if (repair_is_alive(command->plan.peers[i]))
			repair_call(command->repairs, command->plan.peers[i], verb,
			    buffer_slice(&payload), &command->trace, repair_ignore, NULL);
	buffer_fini(&payload);
}

static void
repair_cancel_step(struct repair_command *command)
{
	for (uint32_t i = 0; i < command->call_count; i++)
		if (command->calls[i] != NULL)
			repair_call_cancel(command->calls[i]);
	command->call_count = 0;
	command->pending = 0;
}

/* Ask all participants; on_done is called for each answer, and counts them by repair_step_answered(). */
static void
repair_step(struct repair_command *command, const struct buffer *payload, enum verb verb,
    repair_call_fn on_done)
{
	command->pending = command->plan.peer_count;
	command->call_count = command->plan.peer_count;
	command->calls =
	    xrealloc(command->calls, command->call_count * sizeof(struct repair_call *));
	for (uint32_t i = 0; i < command->plan.peer_count; i++)
		command->calls[i] = NULL;
	for (uint32_t i = 0; i < command->plan.peer_count; i++)
		command->calls[i] = repair_call(command->repairs, command->plan.peers[i], verb,
		    buffer_slice(payload), &command->trace, on_done, command);
}

static void repair_command_end(struct repair_command *command, const char *failure);

/* True: all have answered, well. A failure ends the command. */
static bool
repair_step_answered(struct repair_command *command, struct peer *peer, const struct error *err)
{
	for (uint32_t i = 0; i < command->call_count; i++)
		if (command->plan.peers[i] == peer)
			command->calls[i] = NULL;
	if (err != NULL) {
		repair_command_end(command, err->text);
		return false;
	}
	return --command->pending == 0;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void
repair_command_close(struct repair_command *command, const char *failure)
{
	char duration[96];

	if (failure != NULL) {
		repair_say(command, false, "%s", failure);
		repair_say(command, false, "Repair command #%u finished with error",
		    (unsigned)command->number);
	} else {
		repair_say(command, false, "Repair%s completed successfully",
		    command->options.preview != REPAIR_PREVIEW_NONE ? " preview" : "");
		repair_say(command, false, "Repair command #%u finished in %s",
		    (unsigned)command->number, repair_duration(command, duration));
	}
	if (command->options.preview == REPAIR_PREVIEW_NONE)
		repair_record_parent(command,
		    failure == NULL ? REPAIR_RECORD_PARENT_SUCCESS : REPAIR_RECORD_PARENT_FAILURE,
		    failure);
	repair_reach_end(command->repairs, &command->history,
	    failure == NULL ? REPAIR_RESULT_SUCCESS : REPAIR_RESULT_FAILURE,
	    failure != NULL ? failure : "Repair completed successfully");
	if (trace_is_on(&command->trace))
		repair_record_parent(command, REPAIR_RECORD_TRACE_END, NULL);
	lock_take(&command->repairs->lock);
	command->is_done = true;
	command->has_failed = failure != NULL;
	if (failure != NULL)
		snprintf(command->failure, sizeof(command->failure), "%s", failure);
	lock_drop(&command->repairs->lock);
}

/* All is over, whatever was under way. */
static void
repair_command_end(struct repair_command *command, const char *failure)
{
	char text[ERROR_TEXT_MAX] = "";

	if (failure != NULL)
		snprintf(text, sizeof(text), "%s", failure);
	repair_cancel_step(command);
	for (uint32_t i = 0; i < command->session_count; i++)
		for (uint32_t j = 0; j < command->table_count; j++)
			repair_job_cancel(&command->sessions[i].jobs[j]);
	command->next_job = command->session_count * command->table_count;
	command->running_jobs = 0;
	if (failure != NULL && command->options.is_incremental && !command->is_committing)
		repair_tell_all(command, VERB_FAILED_SESSION_MSG);
	repair_tell_all(command, VERB_CLEANUP_MSG);
	repair_command_close(command, failure == NULL ? NULL : text);
}

static struct repair_command *
repair_command_find(struct repairs *repairs, const struct uuid *parent)
{
	struct repair_command *command;

	lock_take(&repairs->lock);
	for (command = repairs->commands; command != NULL; command = command->next)
		if (!command->is_done && uuid_equal(&command->parent, parent))
			break;
	lock_drop(&repairs->lock);
	return command;
}

bool
repair_command_is_running(struct repairs *repairs, const struct uuid *parent)
{
	return repair_command_find(repairs, parent) != NULL;
}

void
repair_command_cancel(struct repairs *repairs, const struct uuid *parent)
{
	struct repair_command *command = repair_command_find(repairs, parent);

	if (command != NULL)
		repair_command_terminate(command, "The session was cancelled");
}

void
repair_command_terminate(struct repair_command *command, const char *why)
{
	repair_command_end(command, why);
}

static void
repair_committed(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	(void)result;
	if (repair_step_answered(context, peer, err))
		repair_command_end(context, NULL);
}

static void
repair_finalized(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_command *command = context;
	struct buffer payload;

	(void)result;
	if (!repair_step_answered(command, peer, err))
		return;
	buffer_init(&payload);
	command->is_committing = true;
	repair_encode(command, VERB_FINALIZE_COMMIT_MSG, &payload);
	repair_step(command, &payload, VERB_FINALIZE_COMMIT_MSG, repair_committed);
	buffer_fini(&payload);
}

static void
repair_say_preview(struct repair_command *command)
{
	bool is_repaired = command->options.preview == REPAIR_PREVIEW_REPAIRED;

	if (command->preview_ranges == 0)
		repair_say(command, false, "%s",
		    is_repaired ? "Repaired data is in sync" : "Previewed data was in sync");
	else
		repair_say(command, false, "%sTotal estimated streaming: %" PRIu64 " ranges",
		    is_repaired ? "Repaired data is inconsistent\n" : "", command->preview_ranges);
}

static void
repair_sessions_done(struct repair_command *command)
{
	struct buffer payload;

	repair_reach(command->repairs, &command->history, REPAIR_COMMAND_REPAIR_COMPLETE);
	if (command->sessions_failed > 0) {
		repair_command_end(command, "Some repair failed");
		return;
	}
	if (command->options.preview != REPAIR_PREVIEW_NONE)
		repair_say_preview(command);
	if (!command->options.is_incremental || command->options.preview != REPAIR_PREVIEW_NONE) {
		repair_command_end(command, NULL);
		return;
	}
	buffer_init(&payload);
	repair_encode(command, VERB_FINALIZE_PROPOSE_MSG, &payload);
	repair_step(command, &payload, VERB_FINALIZE_PROPOSE_MSG, repair_finalized);
	buffer_fini(&payload);
}

/* ---- sessions ------------------------------------------------------------------------------------------- */

static void
repair_session_end(struct repair_session *session, const struct error *err)
{
	struct repair_command *command = session->command;
	char id[UUID_TEXT_SIZE];
	struct buffer ranges;

	repair_reach_end(command->repairs, &session->history,
	    err == NULL ? REPAIR_RESULT_SUCCESS : REPAIR_RESULT_FAILURE,
	    err == NULL ? NULL : err->text);
	session->is_done = true;
	session->has_failed = err != NULL;
	command->sessions_done++;
	command->sessions_failed += err != NULL;
	command->ranges_done += session->common->range_count;
	uuid_format(&session->id, id);
	buffer_init(&ranges);
	repair_put_ranges(&ranges, session->common);
	repair_say(command, true, "Repair session %s for range %s %s%s", id,
	    ranges.is_failed ? "[...]" : (const char *)ranges.data,
	    err == NULL ? "finished" : "failed with error ", err == NULL ? "" : err->text);
	buffer_fini(&ranges);
}

static void
repair_session_fail(struct repair_session *session, const struct error *err)
{
	struct repair_command *command = session->command;

	for (uint32_t i = 0; i < command->table_count; i++) {
		struct repair_job *job = &session->jobs[i];

		if (job->state == JOB_WAITING || job->state == JOB_DONE)
			continue;
		repair_job_cancel(job);
		repair_reach_end(command->repairs, &job->history, REPAIR_RESULT_FAILURE, err->text);
		repair_record_job(job, REPAIR_RECORD_FAILURE, err->text);
		command->running_jobs--;
	}
	repair_session_end(session, err);
}

void
repair_job_ended(struct repair_job *job, const struct error *err)
{
	struct repair_session *session = job->session;
	struct repair_command *command = session->command;
	bool has_history = command->options.preview == REPAIR_PREVIEW_NONE;

	repair_reach_end(command->repairs, &job->history,
	    err == NULL ? REPAIR_RESULT_SUCCESS : REPAIR_RESULT_FAILURE,
	    err == NULL ? NULL : err->text);
	command->running_jobs--;
	session->jobs_done++;
	if (has_history)
		repair_record_job(job, err == NULL ? REPAIR_RECORD_SUCCESS : REPAIR_RECORD_FAILURE,
		    err == NULL ? NULL : err->text);
	if (err != NULL)
		repair_session_fail(session, err);
	else if (session->jobs_done == command->table_count)
		repair_session_end(session, NULL);
	repair_command_run_jobs(command);
}

static void
repair_command_run_jobs(struct repair_command *command)
{
	uint32_t total = command->session_count * command->table_count;

	while (command->running_jobs < command->options.job_threads && command->next_job < total) {
		struct repair_session *session =
		    &command->sessions[command->next_job / command->table_count];
		struct repair_job *job = &session->jobs[command->next_job % command->table_count];

		command->next_job++;
		if (session->is_done)
			continue;
		command->running_jobs++;
		if (session->history.state_ms[REPAIR_SESSION_START] == 0) {
			repair_reach(command->repairs, &session->history, REPAIR_SESSION_START);
			repair_reach(
			    command->repairs, &session->history, REPAIR_SESSION_JOBS_START);
		}
		repair_reach(command->repairs, &job->history, REPAIR_JOB_START);
		if (command->options.preview == REPAIR_PREVIEW_NONE)
			repair_record_job(job, REPAIR_RECORD_START, NULL);
		repair_job_start(job);
	}
	if (command->sessions_done == command->session_count)
		repair_sessions_done(command);
}

static void
repair_start_sessions(struct repair_command *command)
{
	struct repairs *repairs = command->repairs;

	repair_reach(repairs, &command->history, REPAIR_COMMAND_PREPARE_COMPLETE);
	command->session_count = command->plan.common_count;
	command->sessions = xcalloc((size_t)command->session_count + 1, sizeof(*command->sessions));
	for (uint32_t i = 0; i < command->session_count; i++) {
		struct repair_session *session = &command->sessions[i];

		session->command = command;
		session->common = &command->plan.commons[i];
		repair_uuid(repairs, &session->id);
		repair_reach(repairs, &session->history, REPAIR_SESSION_INIT);
		session->jobs = xcalloc((size_t)command->table_count + 1, sizeof(*session->jobs));
		for (uint32_t j = 0; j < command->table_count; j++) {
			session->jobs[j] =
			    (struct repair_job){.session = session, .table = &command->tables[j]};
			repair_uuid(repairs, &session->jobs[j].id);
			repair_reach(repairs, &session->jobs[j].history, REPAIR_JOB_INIT);
		}
	}
	lock_take(&repairs->lock);
	command->look_sessions = command->session_count;
	lock_drop(&repairs->lock);
	repair_reach(repairs, &command->history, REPAIR_COMMAND_REPAIR_START);
	repair_command_run_jobs(command);
}

/* ---- preparation --------------------------------------------------------------------------------------- */

static void
repair_prepared_consistent(
    void *context, struct peer *peer, struct slice result, const struct error *err)
{
	(void)result;
	if (repair_step_answered(context, peer, err))
		repair_start_sessions(context);
}

static void
repair_prepared(void *context, struct peer *peer, struct slice result, const struct error *err)
{
	struct repair_command *command = context;
	struct reader reader = reader_of(result);
	struct buffer payload;

	if (err == NULL && reader_vint(&reader) == command->table_count) {
		for (uint32_t i = 0; i < command->table_count && !reader.is_failed; i++) {
			uint64_t partitions = reader_vint(&reader);

			if (partitions > command->tables[i].partitions)
				command->tables[i].partitions = partitions;
		}
	}
	if (!repair_step_answered(command, peer, err))
		return;
	if (!command->options.is_incremental || command->options.preview != REPAIR_PREVIEW_NONE) {
		repair_start_sessions(command);
		return;
	}
	buffer_init(&payload);
	repair_encode(command, VERB_PREPARE_CONSISTENT_REQ, &payload);
	repair_step(command, &payload, VERB_PREPARE_CONSISTENT_REQ, repair_prepared_consistent);
	buffer_fini(&payload);
}

static void
repair_prepare(struct repair_command *command)
{
	const struct repair_plan *plan = &command->plan;
	struct uuid *tables = xcalloc((size_t)command->table_count + 1, sizeof(*tables));
	struct ring_range *ranges = xcalloc((size_t)plan->range_count + 1, sizeof(*ranges));
	struct endpoint *endpoints = xcalloc((size_t)plan->peer_count + 1, sizeof(*endpoints));
	struct repair_message message = {.verb = VERB_PREPARE_MSG,
	    .parent = command->parent,
	    .keyspace = slice_of_string(command->options.keyspace),
	    .flags = (command->options.is_incremental ? REPAIR_IS_INCREMENTAL : 0) |
		(command->options.is_paxos_only ? REPAIR_IS_PAXOS_ONLY : 0) |
		(command->options.datacenter_count == 0 && command->options.host_count == 0
			? REPAIR_IS_GLOBAL
			: 0),
	    .preview = (uint8_t)command->options.preview,
	    .repaired_at = command->repaired_at,
	    .table_count = command->table_count,
	    .tables = tables,
	    .ranges = ranges,
	    .endpoint_count = plan->peer_count,
	    .endpoints = endpoints};
	struct buffer payload;

	for (uint32_t i = 0; i < command->table_count; i++)
		tables[i] = command->tables[i].id;
	for (uint32_t i = 0; i < plan->common_count; i++)
		for (uint32_t j = 0; j < plan->commons[i].range_count; j++)
			ranges[message.range_count++] = plan->commons[i].ranges[j];
	for (uint32_t i = 0; i < plan->peer_count; i++)
		endpoints[i] = plan->peers[i]->endpoint;
	repair_reach(command->repairs, &command->history, REPAIR_COMMAND_PREPARE_START);
	buffer_init(&payload);
	repair_message_encode(&message, &payload);
	command->has_prepared = true;
	repair_step(command, &payload, VERB_PREPARE_MSG, repair_prepared);
	buffer_fini(&payload);
	free(tables);
	free(ranges);
	free(endpoints);
}

static bool
repair_wants_table(const struct repair_options *options, const struct table_metadata *table)
{
	for (uint32_t i = 0; i < options->table_count; i++)
		if (slice_equal_string(table->name, options->tables[i]))
			return true;
	return options->table_count == 0;
}

static void
repair_choose_tables(struct repair_command *command, const struct keyspace_metadata *keyspace)
{
	command->tables = xcalloc((size_t)keyspace->table_count + 1, sizeof(*command->tables));
	for (uint32_t i = 0; i < keyspace->table_count; i++) {
		const struct table_metadata *table = keyspace->tables[i];

		if (repair_wants_table(&command->options, table))
			command->tables[command->table_count++] = (struct repair_table){
			    xstrndup((const char *)table->name.data, table->name.size), table->id,
			    0};
	}
}

/* ActiveRepairService.getRepairedAt: only what all replicas took part in becomes repaired. */
static int64_t
repair_choose_time(const struct repair_command *command)
{
	const struct repair_options *options = &command->options;
	bool is_global = options->datacenter_count == 0 && options->host_count == 0;

	for (uint32_t i = 0; i < command->plan.common_count; i++)
		is_global &= !command->plan.commons[i].has_skipped;
	return options->is_incremental && is_global
	    ? (int64_t)(env_wall_us(command->repairs->env->env) / 1000)
	    : 0;
}

static int
repair_make_plan(struct repair_command *command, struct error *err)
{
	struct repairs *repairs = command->repairs;
	struct schema *schema = repairs->ops.schema(repairs->ops.context);
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(schema, slice_of_string(command->options.keyspace));
	const struct topology *topology = topology_acquire(repairs->topology);
	int rc = keyspace == NULL
	    ? error_set(
		  err, ERROR_INVALID, "Keyspace [%s] does not exist.", command->options.keyspace)
	    : repair_plan_make(repairs, topology, keyspace, &command->options, &command->plan, err);

	if (rc == 0)
		repair_choose_tables(command, keyspace);
	topology_release(repairs->topology, topology);
	schema_unref(schema);
	return rc;
}

void
repair_command_begin(struct repair_command *command)
{
	char parent[UUID_TEXT_SIZE];
	struct buffer options;
	struct error err;
	int rc;

	if (command->is_done)
		return; /* terminated before it began */
	command->started_ns = env_monotonic_ns(command->repairs->env->env);
	repair_reach(command->repairs, &command->history, REPAIR_COMMAND_SETUP);
	rc = repair_make_plan(command, &err);
	lock_take(&command->repairs->lock);
	command->look_plan = rc == 0;
	lock_drop(&command->repairs->lock);
	repair_reach(command->repairs, &command->history, REPAIR_COMMAND_START);
	uuid_format(&command->parent, parent);
	buffer_init(&options);
	repair_put_options(&options, command, command->plan.range_count);
	repair_say(command, false,
	    "Starting repair command #%u (%s), repairing keyspace %s with %s",
	    (unsigned)command->number, parent, command->options.keyspace,
	    options.is_failed ? "" : (const char *)options.data);
	buffer_fini(&options);
	if (trace_is_on(&command->trace))
		repair_record_parent(command, REPAIR_RECORD_TRACE_START, NULL);
	if (command->options.preview == REPAIR_PREVIEW_NONE)
		repair_record_parent(command, REPAIR_RECORD_PARENT_START, NULL);
	if (rc != 0) {
		repair_command_end(command, err.text);
		return;
	}
	if (command->table_count == 0)
		repair_say(command, false, "Empty keyspace, skipping repair: %s",
		    command->options.keyspace);
	if (command->plan.common_count == 0)
		repair_say(
		    command, false, "Nothing to repair in keyspace %s", command->options.keyspace);
	if (command->table_count == 0 || command->plan.common_count == 0) {
		repair_command_end(command, NULL);
		return;
	}
	command->repaired_at = repair_choose_time(command);
	repair_prepare(command);
}

void
repair_command_free(struct repair_command *command)
{
	for (uint32_t i = 0; i < command->session_count; i++) {
		for (uint32_t j = 0; j < command->table_count; j++)
			repair_job_fini(&command->sessions[i].jobs[j]);
		free(command->sessions[i].jobs);
	}
	free(command->sessions);
	for (uint32_t i = 0; i < command->table_count; i++)
		free(command->tables[i].name);
	free(command->tables);
	for (uint32_t i = 0; i < command->line_count; i++)
		free(command->lines[i].text);
	free(command->lines);
	for (uint32_t i = 0; i < command->text_count; i++)
		free(command->texts[i]);
	free(command->texts);
	free((void *)command->options.hosts);
	free((void *)command->options.ranges);
	free(command->calls);
	repair_plan_fini(&command->plan);
	free(command);
}
