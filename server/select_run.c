/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include "base/hash.h"
#include "base/log.h"
#include "server/denylist.h"
#include "server/guardrails.h"
#include "server/paging.h"
#include "server/select_internal.h"
#include "server/tracing.h"
#include "server/virtual_table.h"

enum {
	SELECT_CHUNK_ROWS = 2000, /* read at a time; bounds the memory of a long scan */
	/* Partitions of an IN that are read at once; where nothing says how many rows each may have, fewer. */
	SELECT_KEYS_MIN = 8,
	SELECT_KEYS_MAX = 64,
	SELECT_WIDE_KEYS_MAX = 16,
};

static void select_step(struct select_run *run);

int
select_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a SELECT");
}

static void
select_end(struct select_run *run, const struct error *err)
{
	struct execution *execution = run->execution;

	buffer_fini(&run->last_key);
	buffer_fini(&run->last_position);
	buffer_fini(&run->sorted_cells);
	free(run->sorted);
	if (run->has_scratch)
		arena_fini(&run->scratch);
	if (run->has_group_arena)
		arena_fini(&run->group_arena);
	execution_done(execution, err);
}

/* How many rows the next command is asked for. */
static uint32_t
select_chunk_limit(const struct select_run *run)
{
	uint32_t limit = SELECT_CHUNK_ROWS;

	if (run->plan->is_grouped || run->plan->selection.is_aggregate ||
	    (run->plan->restrictions.has_clustering && run->command.clustering.with_static) ||
	    (run->plan->is_sorted_after && run->key_count > 1))
		return limit;
	limit = run->left < limit ? run->left : limit;
	return run->left_in_page < limit ? run->left_in_page : limit;
}

int
select_check_deadline(void *argument, struct error *err)
{
	const struct select_run *run = argument;
	const struct request *request = run->execution->request;

	if (request == NULL || request->task.deadline_ns == 0 ||
	    run->plan->selection.is_aggregate || run->plan->is_grouped ||
	    env_monotonic_ns(run->execution->executor->env) < request->task.deadline_ns)
		return 0;
	error_set(err, ERROR_READ_TIMEOUT, "Operation timed out - received only 0 responses.");
	err->consistency = (uint16_t)run->execution->options->consistency;
	err->required = 1;
	return -1;
}

/* More than a reader wants to know of tombstones is told (DML-34). */
static void
select_warn_tombstones(struct select_run *run)
{
	int64_t threshold = run->execution->executor->config->tombstone_warn_threshold;
	struct buffer key;

	/* In a ring each replica tells of its own. */
	if (run->execution->tracing != NULL &&
	    coordinator_is_alone(run->execution->executor->coordinator))
		tracing_event(run->execution, "Read %llu live rows and %llu tombstone cells",
		    (unsigned long long)run->live, (unsigned long long)run->tombstones);
	if (threshold <= 0 || run->tombstones <= (uint64_t)threshold ||
	    run->execution->client == NULL)
		return;
	buffer_init(&key);
	if (!run->is_range && run->key_count == 1)
		buffer_printf(&key, "; token %lld", (long long)murmur3_token(run->keys[0]));
	execution_warn(run->execution,
	    "Read %llu live rows and %llu tombstone cells for query %.*s%.*s (see "
	    "tombstone_warn_threshold)",
	    (unsigned long long)run->live, (unsigned long long)run->tombstones,
	    (int)(run->execution->plan->query.size > 300 ? 300 : run->execution->plan->query.size),
	    (const char *)run->execution->plan->query.data, (int)key.size,
	    key.size > 0 ? (const char *)key.data : "");
	buffer_fini(&key);
}

/* Nothing can be left behind the last row: the last key's partition is done with. */
static bool
select_is_exhausted(const struct select_run *run)
{
	if (run->is_range || run->key_count == 0 ||
	    !slice_equal(buffer_slice(&run->last_key), run->keys[run->key_count - 1]))
		return false;
	if (run->plan->is_grouped)
		return run->table->clustering_count == 0 || run->left_in_partition == 0;
	return run->is_partition_done || run->left_in_partition == 0;
}

static void
select_finish(struct select_run *run)
{
	const struct select_plan *plan = run->plan;
	struct buffer state_bytes;
	struct slice state_slice = slice_null;
	struct error err;
	bool is_whole = plan->selection.is_aggregate && !plan->is_grouped;

	if (is_whole && !run->has_group && select_group_open(run, &err) != 0) {
		select_end(run, &err);
		return;
	}
	if (run->has_group && select_group_close(run, &err) != 0) {
		select_end(run, &err);
		return;
	}
	if (run->sorted_count > 0)
		select_put_all_sorted(run);
	buffer_init(&state_bytes);
	if (run->is_paged && run->left > 0 && run->left_in_page == 0 && run->has_last &&
	    !select_is_exhausted(run)) {
		struct paging_state state = {.key = buffer_slice(&run->last_key),
		    .position =
			run->is_partition_done ? slice_null : buffer_slice(&run->last_position),
		    .left = run->left,
		    .left_in_partition = run->left_in_partition};

		paging_encode(&state, &state_bytes);
		state_slice = buffer_slice(&state_bytes);
	}
	select_size_warn(run);
	response_end_rows(run->execution->out, &run->rows, state_slice);
	buffer_fini(&state_bytes);
	select_warn_tombstones(run);
	select_end(run, NULL);
}

/* Make the next command. False: nothing is left to read. */
static bool
select_next_command(struct select_run *run)
{
	struct read_command *command = &run->command;

	if (run->is_finished || run->left == 0 || run->left_in_page == 0)
		return false;
	if (run->is_chunk_full && run->has_last) {
		/* Behind the last row of the chunk. */
		command->after_position = slice_null;
		if (!run->is_partition_done)
			command->after_position =
			    arena_copy(run->terms.arena, buffer_slice(&run->last_position));
		if (run->is_range) {
			command->range.start_key =
			    arena_copy(run->terms.arena, buffer_slice(&run->last_key));
			command->range.left = murmur3_token(command->range.start_key);
			command->range.includes_left = true;
			command->range.start_key_exclusive = run->is_partition_done;
			return true;
		}
		while (!slice_equal(run->keys[run->key_index], buffer_slice(&run->last_key)))
			run->key_index++;
		if (run->is_partition_done)
			run->key_index++;
	}
	if (run->is_range)
		return false;
	if (run->key_index >= run->key_count)
		return false;
	command->key = run->keys[run->key_index];
	command->token = murmur3_token(command->key);
	return true;
}

/* How many partitions are read at once: what is read beyond the limits is thrown away. */
static uint32_t
select_count_keys(struct select_run *run)
{
	const struct read_command *command = &run->command;
	uint32_t left = run->key_count - run->key_index, most, each;

	if (run->is_range || run->table->is_virtual || left == 1 ||
	    run->left_in_partition != run->per_partition)
		return 1;
	each = run->table->clustering_count == 0 ? 1
	    : command->clustering.is_names       ? command->clustering.slice_count
						 : UINT32_MAX;
	if (command->per_partition_limit < each)
		each = command->per_partition_limit;
	if (each >= command->row_limit) {
		if (run->wide_keys == 0)
			run->wide_keys = SELECT_KEYS_MIN;
		most = run->wide_keys;
	} else {
		most = command->row_limit / (each == 0 ? 1 : each);
		most = most < SELECT_KEYS_MIN ? SELECT_KEYS_MIN : most;
		most = most > SELECT_KEYS_MAX ? SELECT_KEYS_MAX : most;
	}
	return left < most ? left : most;
}

/* The arena of the next chunk: the request's own at first, later one that is emptied each time. */
static void
select_next_arena(struct select_run *run, bool is_first)
{
	run->terms = run->execution->terms;
	if (is_first)
		return;
	if (!run->has_scratch) {
		arena_init(&run->scratch, SELECT_SCRATCH_BLOCK);
		run->has_scratch = true;
	} else {
		arena_reset(&run->scratch);
	}
	run->terms.arena = &run->scratch;
}

static void
select_answered(
    struct coordinator_read *read, struct partition_iterator *source, const struct error *err)
{
	struct select_run *run = read->context;

	run->execution->worker = read->worker;
	run->source = source;
	run->has_error = err != NULL;
	if (err != NULL)
		run->err = *err;
	/* Whoever comes second goes on: release what was written above, acquire the caller's. */
	if (atomic_exchange(&run->handover, 2) == 1)
		select_step(run);
}

/* What unfinished conditional statements have decided is finished first; a serial read sees it then at QUORUM. */
static enum consistency
select_level(const struct select_run *run)
{
	enum consistency level = run->execution->options->consistency;

	return level == CONSISTENCY_SERIAL      ? CONSISTENCY_QUORUM
	    : level == CONSISTENCY_LOCAL_SERIAL ? CONSISTENCY_LOCAL_QUORUM
						: level;
}

static void
select_serial_ready(struct paxos_request *request, const struct uuid *ballot)
{
	(void)ballot;
	paxos_propose(request, NULL);
}

static void
select_serial_done(struct paxos_request *request, const struct error *err)
{
	struct select_run *run = request->context;

	run->read.worker = NULL;
	if (err != NULL)
		select_answered(&run->read, NULL, err);
	else
		coordinator_read(run->execution->executor->coordinator, &run->read);
}

static void
select_read_serial(struct select_run *run)
{
	struct execution *execution = run->execution;

	run->paxos = (struct paxos_request){.keyspace = execution->plan->keyspace_metadata,
	    .table = run->table,
	    .key = run->command.key,
	    .token = run->command.token,
	    .serial = execution->options->consistency,
	    .commit = select_level(run),
	    .is_read = true,
	    .on_ready = select_serial_ready,
	    .on_done = select_serial_done,
	    .context = run,
	    .trace = tracing_of(execution)};
	paxos_begin(execution->executor->node->cluster->paxos, &run->paxos);
}

/* Start a read; true when its answer is here already. */
static bool
select_read(struct select_run *run)
{
	struct execution *execution = run->execution;

	atomic_store(&run->handover, 0);
	run->command.row_limit = select_chunk_limit(run);
	/* A row is put into the answer before the next is asked for; the many that a filter drops must not
	 * pile up. */
	run->command.is_transient = run->is_range && run->command.filter_count != 0;
	run->command.per_partition_limit =
	    run->plan->is_grouped || run->left_in_partition != run->per_partition
	    ? READ_LIMIT_NONE
	    : run->per_partition;
	run->chunk_keys = select_count_keys(run);
	if (run->table->is_virtual) {
		run->has_error = virtual_table_read(execution->executor, &run->command,
				     run->terms.arena, &run->source, &run->err) != 0;
		return true;
	}
	run->read = (struct coordinator_read){.command = &run->command,
	    .keys = run->is_range ? NULL : run->keys + run->key_index,
	    .key_count = run->chunk_keys,
	    .keyspace = execution->plan->keyspace_metadata,
	    .consistency = select_level(run),
	    .arena = run->terms.arena,
	    .on_done = select_answered,
	    .context = run,
	    .worker = execution->worker,
	    .trace = tracing_of(execution)};
	if (consistency_is_serial(execution->options->consistency) &&
	    !coordinator_is_alone(execution->executor->coordinator))
		select_read_serial(run);
	else
		coordinator_read(execution->executor->coordinator, &run->read);
	return atomic_exchange(&run->handover, 1) == 2;
}

/* What this replica failed with, as clients know it. */
static int
select_failed(struct select_run *run, struct error *err)
{
	const struct config *config = run->execution->executor->config;
	enum error_code code = err->code;
	uint16_t reason = err->reason;

	if (code == ERROR_READ_FAILURE && reason == FAILURE_READ_SIZE)
		return -1;
	if (code != ERROR_READ_FAILURE && code >= ERROR_SERVER)
		return -1;
	if (code != ERROR_READ_FAILURE) {
		log_error("reading %.*s.%.*s: %s", (int)run->table->keyspace.size,
		    run->table->keyspace.data, (int)run->table->name.size, run->table->name.data,
		    err->text);
		reason = 0;
	}
	error_set(err, ERROR_READ_FAILURE,
	    "Operation failed - received 0 responses and 1 failures: %s from /%s:%d",
	    reason == 1 ? "READ_TOO_MANY_TOMBSTONES" : "UNKNOWN", config->listen_address,
	    (int)config->storage_port);
	err->reason = reason;
	err->consistency = (uint16_t)run->execution->options->consistency;
	err->required = 1;
	err->failures = 1;
	return -1;
}

static int
select_answer_taken(struct select_run *run, struct error *err)
{
	if (run->has_error) {
		*err = run->err;
		return -1;
	}
	if (select_take(run, err) != 0)
		return select_failed(run, err);
	if (!run->is_chunk_full && !run->is_finished && !run->is_range) {
		/* These partitions are exhausted. */
		run->key_index += run->chunk_keys;
		run->command.after_position = slice_null;
		if (!run->plan->is_grouped)
			run->left_in_partition = run->per_partition;
	}
	if (!run->is_chunk_full && run->is_range)
		run->is_finished = true;
	/* Full chunks show that partitions are large, others that more of them have room. */
	if (run->is_chunk_full)
		run->wide_keys = (run->wide_keys + 1) / 2;
	else if (run->wide_keys < SELECT_WIDE_KEYS_MAX)
		run->wide_keys *= 2;
	return 0;
}

/* An answer is here: take it, then read on until one is late or nothing is left. */
static void
select_step(struct select_run *run)
{
	struct error err;

	do {
		if (select_answer_taken(run, &err) != 0) {
			select_end(run, &err);
			return;
		}
		select_next_arena(run, false);
		if (run->is_range && run->is_finished) {
			select_finish(run);
			return;
		}
		if (!select_next_command(run)) {
			select_finish(run);
			return;
		}
		if (select_check_deadline(run, &err) != 0) {
			select_end(run, &err);
			return;
		}
		run->is_chunk_full = false;
	} while (select_read(run));
}

/* The text of a statement was taken for a read of some partitions before it was parsed. */
static void
select_extend_deadline(struct execution *execution)
{
	struct request *request = execution->request;
	const struct node *node = execution->executor->node;

	if (request == NULL || request->task.deadline_ns == 0 ||
	    request->stage != REQUEST_STAGE_SLICE || execution->plan->stage != REQUEST_STAGE_RANGE)
		return;
	request->task.deadline_ns +=
	    (uint64_t)(atomic_load(&node->timeouts_ms[NODE_TIMEOUT_RANGE]) -
		atomic_load(&node->timeouts_ms[NODE_TIMEOUT_READ])) *
	    1000000;
}

void
select_execute(struct execution *execution)
{
	struct select_run *run = arena_alloc(execution->arena, sizeof(*run));
	bool is_empty = false;
	struct error err;

	if (run == NULL) {
		select_no_memory(&err);
		execution_done(execution, &err);
		return;
	}
	memset(run, 0, offsetof(struct select_run, err));
	run->execution = execution;
	run->plan = execution->plan->select;
	run->table = execution->plan->table;
	select_extend_deadline(execution);
	buffer_init(&run->last_key);
	buffer_init(&run->last_position);
	buffer_init(&run->sorted_cells);
	select_next_arena(run, true);
	if (execution_check_read_consistency(execution, &err) != 0 ||
	    guardrail_check_select(execution, &err) != 0 ||
	    select_begin(run, &is_empty, &err) != 0) {
		select_end(run, &err);
		return;
	}
	select_size_begin(run);
	if (denylist_check_select(run, &err) != 0) {
		select_end(run, &err);
		return;
	}
	if (is_empty) {
		select_finish(run);
		return;
	}
	if (!run->is_range && run->key_index < run->key_count) {
		run->command.key = run->keys[run->key_index];
		run->command.token = murmur3_token(run->command.key);
	} else if (!run->is_range) {
		select_finish(run);
		return;
	}
	if (select_read(run))
		select_step(run);
}
