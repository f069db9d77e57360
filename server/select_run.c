/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SELECT with the values of one execution.
 *
 *   select_execute   values -> keys or token range, slices, filters, limits, paging state
 *   select_step      one read command for the next chunk -> coordinator
 *   select_take      rows of the chunk -> cells of the answer, or groups
 *   select_finish    paging state, row count, done
 */
#include <stddef.h>
#include <stdlib.h>
#include "base/hash.h"
#include "base/log.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/guardrails.h"
#include "server/paging.h"
#include "server/select.h"
#include "server/tracing.h"
#include "server/virtual_table.h"

enum {
	SELECT_CHUNK_ROWS = 2000, /* read at a time; bounds the memory of a long scan */
	SELECT_SCRATCH_BLOCK = 64 << 10,
	/* Partitions of an IN that are read at once; where nothing says how many rows each may have, fewer. */
	SELECT_KEYS_MIN = 8,
	SELECT_KEYS_MAX = 64,
	SELECT_WIDE_KEYS_MAX = 16,
};

/* A row whose cells are in run->sorted, to be put in order at the end. */
struct select_sorted {
	struct slice position;
	size_t offset, size;
};

struct select_run {
	struct execution *execution;
	const struct select_plan *plan;
	const struct table_metadata *table;
	struct read_command command;
	struct coordinator_read read;
	struct paxos_request paxos; /* SERIAL and LOCAL_SERIAL in a ring */

	/* What is left. */
	struct slice *keys;
	uint32_t key_count, key_index;
	uint32_t chunk_keys; /* of the chunk: from key_index on */
	uint32_t wide_keys; /* at the next chunk, where partitions may be of any size */
	bool is_range;
	uint32_t left; /* rows (groups) of LIMIT */
	uint32_t left_in_page;
	uint32_t per_partition, left_in_partition;
	bool is_paged;
	uint32_t page_size;

	/* Where we are. */
	struct buffer last_key, last_position; /* of the last row that was taken */
	bool has_last, is_partition_done;
	bool is_chunk_full; /* there may be more behind the last row */
	bool is_finished;
	struct arena scratch; /* of the chunk */
	bool has_scratch;
	struct term_context terms; /* with the arena of the chunk */
	struct slice *key_components;

	struct response_rows rows;
	struct selection_group group;
	bool has_group;
	struct arena group_arena;
	bool has_group_arena;
	struct slice group_key, group_value; /* what makes the group; in group_arena */
	struct slice *group_prefix;

	/* Where the last whole group ended: the place the next page begins behind. */
	struct buffer group_last_key, group_last_position;
	uint32_t group_left_in_partition;

	struct buffer sorted_cells;
	struct select_sorted *sorted;
	uint32_t sorted_count, sorted_capacity;

	uint64_t tombstones, live;
	atomic_int handover; /* 0; 1 the caller went away; 2 the answer is here */
	struct partition_iterator *source;
	bool has_error;
	struct error err; /* last, and not cleared for each request */
};

static void select_step(struct select_run *run);

static int
select_run_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a SELECT");
}

static void
select_end(struct select_run *run, const struct error *err)
{
	struct execution *execution = run->execution;

	buffer_fini(&run->last_key);
	buffer_fini(&run->last_position);
	buffer_fini(&run->group_last_key);
	buffer_fini(&run->group_last_position);
	buffer_fini(&run->sorted_cells);
	free(run->sorted);
	if (run->has_scratch)
		arena_fini(&run->scratch);
	if (run->has_group_arena)
		arena_fini(&run->group_arena);
	execution_done(execution, err);
}

/* ---- Values -------------------------------------------------------------------------------- */

static int
select_eval_limit(
    const struct term *term, const struct term_context *terms, uint32_t *out, struct error *err)
{
	struct slice value;
	bool is_unset;
	int32_t limit;

	*out = READ_LIMIT_NONE;
	if (term == NULL)
		return 0;
	if (term_eval(term, terms, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value) || value.size != 4)
		return error_set(err, ERROR_INVALID, "Invalid null value of limit");
	limit = (int32_t)load_u32(value.data);
	if (limit <= 0)
		return error_set(err, ERROR_INVALID, "LIMIT must be strictly positive");
	*out = (uint32_t)limit;
	return 0;
}

static int
select_eval_slices(struct select_run *run, bool *is_empty, struct error *err)
{
	const struct restrictions *restrictions = &run->plan->restrictions;
	struct clustering_filter *filter = &run->command.clustering;
	struct clustering_range *ranges;
	struct clustering_slice *slices;
	uint32_t count;

	filter->is_reversed = run->plan->is_reversed;
	filter->with_static = run->table->static_count > 0 &&
	    (!restrictions->has_clustering || run->plan->selection.has_static ||
		restrictions->has_static_filter);
	if (restrictions->clustering_prefix == 0)
		return 0;
	if (restrictions_ranges(restrictions, &run->execution->terms, &ranges, &count, err) != 0)
		return -1;
	*is_empty = count == 0;
	slices = arena_calloc(run->execution->arena, count, sizeof(*slices));
	if (slices == NULL)
		return select_run_no_memory(err);
	filter->is_names = true;
	for (uint32_t i = 0; i < count; i++) {
		slices[i].start = ranges[i].start_position;
		slices[i].end = ranges[i].end_position;
		filter->is_names = filter->is_names && ranges[i].is_row;
	}
	filter->slices = slices;
	filter->slice_count = count;
	return 0;
}

/* Whole keys and token(): the keys that lie in the range. */
static int
select_eval_keys_in_range(struct select_run *run, bool *is_empty, struct error *err)
{
	const struct restrictions *restrictions = &run->plan->restrictions;
	struct token_range range;
	uint32_t kept = 0;

	if (restrictions_token_range(restrictions, &run->execution->terms, &range, is_empty, err) !=
		0 ||
	    restrictions_keys(
		restrictions, &run->execution->terms, &run->keys, &run->key_count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < run->key_count; i++) {
		int64_t token = murmur3_token(run->keys[i]);

		if (token < range.left || (token == range.left && !range.includes_left))
			continue;
		if (range.right != INT64_MIN &&
		    (token > range.right || (token == range.right && range.excludes_right)))
			continue;
		run->keys[kept++] = run->keys[i];
	}
	run->key_count = kept;
	*is_empty = *is_empty || kept == 0;
	return 0;
}

static int
select_eval_keys(struct select_run *run, bool *is_empty, struct error *err)
{
	const struct restrictions *restrictions = &run->plan->restrictions;
	struct execution *execution = run->execution;

	run->is_range = restrictions->is_key_range;
	if (run->is_range) {
		run->command.is_range = true;
		return restrictions_token_range(
		    restrictions, &execution->terms, &run->command.range, is_empty, err);
	}
	if (restrictions->token != NULL)
		return select_eval_keys_in_range(run, is_empty, err);
	if (restrictions->is_simple_key) {
		run->keys = arena_alloc(execution->arena, sizeof(*run->keys));
		if (run->keys == NULL)
			return select_run_no_memory(err);
		run->key_count = 1;
		return restrictions_key(restrictions, &execution->terms, run->keys, err);
	}
	if (restrictions_keys(restrictions, &execution->terms, &run->keys, &run->key_count, err) !=
		0 ||
	    guardrail_check_maximum(execution, GUARDRAIL_PARTITION_KEYS_IN_SELECT, run->table->name,
		run->key_count, err) != 0)
		return -1;
	*is_empty = run->key_count == 0;
	return 0;
}

/* Go on where the last page ended. */
static int
select_resume(struct select_run *run, struct slice bytes, struct error *err)
{
	struct paging_state state;

	if (paging_decode(bytes, &state, err) != 0)
		return -1;
	run->left = state.left < run->left ? state.left : run->left;
	run->left_in_partition = state.left_in_partition;
	/* As if its last row had just been taken: rows of another partition begin a new share. */
	buffer_put_slice(&run->last_key, state.key);
	run->has_last = true;
	run->is_partition_done = slice_is_null(state.position);
	if (!run->is_partition_done)
		buffer_put_slice(&run->last_position, state.position);
	if (run->is_range) {
		run->command.range.left = murmur3_token(state.key);
		run->command.range.includes_left = true;
		run->command.range.start_key = state.key;
		run->command.range.start_key_exclusive = slice_is_null(state.position);
		run->command.after_position = state.position;
		return 0;
	}
	while (
	    run->key_index < run->key_count && !slice_equal(run->keys[run->key_index], state.key))
		run->key_index++;
	if (run->key_index == run->key_count)
		return error_set(err, ERROR_PROTOCOL, "Invalid value for the paging state");
	if (slice_is_null(state.position)) {
		run->key_index++;
		run->left_in_partition = run->per_partition;
	} else {
		run->command.after_position = state.position;
	}
	return 0;
}

static int
select_begin(struct select_run *run, bool *is_empty, struct error *err)
{
	struct execution *execution = run->execution;
	const struct select_plan *plan = run->plan;
	const struct query_options *options = execution->options;
	struct columns_metadata metadata = {0};
	int version = execution->version;

	run->command.table = run->table;
	run->command.now_seconds = execution->now_seconds;
	run->key_components = arena_calloc(
	    execution->arena, run->table->partition_key_count, sizeof(*run->key_components));
	if (run->key_components == NULL)
		return select_run_no_memory(err);
	if (select_eval_limit(plan->limit, &execution->terms, &run->left, err) != 0 ||
	    select_eval_limit(
		plan->per_partition_limit, &execution->terms, &run->per_partition, err) != 0 ||
	    select_eval_keys(run, is_empty, err) != 0 ||
	    select_eval_slices(run, is_empty, err) != 0 ||
	    (plan->restrictions.filter_count > 0 &&
		restrictions_filters(&plan->restrictions, &execution->terms, &run->command.filters,
		    &run->command.filter_count, err) != 0))
		return -1;
	if (plan->is_distinct)
		run->per_partition = 1;
	run->left_in_partition = run->per_partition;
	run->page_size = options->page_size > 0 ? (uint32_t)options->page_size : READ_LIMIT_NONE;
	run->is_paged =
	    options->page_size > 0 && (plan->is_grouped || !plan->selection.is_aggregate);
	if (options->page_size > 0 &&
	    (run->left > run->page_size || plan->selection.is_aggregate || plan->is_grouped) &&
	    guardrail_check_maximum(
		execution, GUARDRAIL_PAGE_SIZE, run->table->name, options->page_size, err) != 0)
		return -1;
	run->left_in_page = run->is_paged ? run->page_size : READ_LIMIT_NONE;
	if (plan->is_sorted_after && options->page_size > 0 && run->key_count > 1)
		return error_set(err, ERROR_INVALID,
		    "Cannot page queries with both ORDER BY and a IN restriction on the partition "
		    "key; you must either remove the ORDER BY or the IN and sort client side, or "
		    "disable paging for this query");
	if (consistency_is_serial(options->consistency) && !run->is_range && run->key_count > 1)
		return error_set(err, ERROR_INVALID,
		    "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a "
		    "time");
	if (!*is_empty && !slice_is_null(options->paging_state) &&
	    select_resume(run, options->paging_state, err) != 0)
		return -1;
	if (plan->selection.is_aggregate || plan->is_grouped) {
		if (run->is_range && execution->client != NULL)
			execution_warn(execution, "Aggregation query used without partition key");
		else if (run->key_count > 1)
			execution_warn(execution,
			    "Aggregation query used on multiple partition keys (IN restriction)");
	}
	metadata.columns = execution->plan->results;
	metadata.column_count = execution->plan->result_count;
	metadata.encoded = execution->plan->encoded_results[version - 3];
	execution_begin_result(execution);
	{
		const uint8_t *new_id = NULL;
		bool skip = options->skip_metadata;

		if (version >= 5 && !slice_is_null(execution->result_metadata_id) &&
		    (execution->result_metadata_id.size != 16 ||
			memcmp(execution->result_metadata_id.data,
			    execution->plan->result_metadata_id, 16) != 0))
			new_id = execution->plan->result_metadata_id;
		run->rows = response_begin_rows(
		    execution->out, execution->version, &metadata, skip, new_id);
	}
	return 0;
}

/* ---- Groups -------------------------------------------------------------------------------- */

static int
select_group_close(struct select_run *run, struct error *err)
{
	struct selection_row empty = {.table = run->table,
	    .key = run->key_components,
	    .now_seconds = run->execution->now_seconds,
	    .terms = &run->terms};
	struct term_context terms = run->execution->terms;

	terms.arena = &run->group_arena;
	empty.terms = &terms;
	if (selection_group_end(&run->plan->selection, &run->group, &empty, &run->group_arena,
		run->execution->out, err) != 0)
		return -1;
	run->rows.row_count++;
	run->has_group = false;
	if (run->plan->is_grouped) {
		run->left--;
		run->left_in_page--;
		if (run->left_in_partition != READ_LIMIT_NONE)
			run->left_in_partition--;
	}
	return 0;
}

static int
select_group_open(struct select_run *run, struct error *err)
{
	if (!run->has_group_arena) {
		arena_init(&run->group_arena, SELECT_SCRATCH_BLOCK);
		run->has_group_arena = true;
	} else {
		arena_reset(&run->group_arena);
	}
	run->has_group = true;
	return selection_group_begin(&run->plan->selection, &run->group, &run->group_arena, err);
}

static int
select_group_value(
    struct select_run *run, const struct selection_row *row, struct slice *out, struct error *err)
{
	*out = slice_null;
	if (run->plan->group_function == NULL)
		return 0;
	return selector_eval(run->plan->group_function, row, out, err);
}

/* Is the row of the group that is open? */
static bool
select_is_same_group(struct select_run *run, const struct live_row *live, struct slice value)
{
	uint32_t columns = run->plan->group_clustering;

	if (!slice_equal(run->group_key, live->key))
		return false;
	if (run->plan->group_function != NULL) {
		if (!slice_equal(run->group_value, value))
			return false;
		columns--;
	}
	for (uint32_t i = 0; i < columns; i++) {
		struct slice mine = live->row != NULL ? live->row->clustering[i] : slice_null;

		if (slice_equal(run->group_prefix[i], mine))
			continue;
		/* 1 and 1.0 are one value. */
		if (slice_is_null(mine) || slice_is_null(run->group_prefix[i]) ||
		    type_compare(run->table->clustering[i].type, run->group_prefix[i], mine) != 0)
			return false;
	}
	return true;
}

static int
select_group_remember(
    struct select_run *run, const struct live_row *live, struct slice value, struct error *err)
{
	uint32_t columns = run->plan->group_clustering;

	run->group_key = arena_copy(&run->group_arena, live->key);
	run->group_value = arena_copy(&run->group_arena, value);
	run->group_prefix = arena_calloc(&run->group_arena, columns, sizeof(*run->group_prefix));
	if (run->group_prefix == NULL)
		return select_run_no_memory(err);
	for (uint32_t i = 0; i < columns; i++)
		run->group_prefix[i] = live->row != NULL
		    ? arena_copy(&run->group_arena, live->row->clustering[i])
		    : slice_null;
	return 0;
}

/* 1: the page or the limit is full in front of this row. */
static int
select_group_row(struct select_run *run, const struct live_row *live,
    const struct selection_row *row, struct error *err)
{
	struct slice value;

	if (!run->plan->is_grouped) {
		if (!run->has_group && select_group_open(run, err) != 0)
			return -1;
		return selection_group_add(
		    &run->plan->selection, &run->group, row, &run->group_arena, err);
	}
	if (select_group_value(run, row, &value, err) != 0)
		return -1;
	if (run->has_group && !select_is_same_group(run, live, value)) {
		bool is_new_partition = !slice_equal(run->group_key, live->key);

		if (select_group_close(run, err) != 0)
			return -1;
		if (is_new_partition)
			run->left_in_partition = run->per_partition;
		if (run->left == 0 || run->left_in_page == 0)
			return 1;
	}
	if (!run->has_group && run->has_last &&
	    !slice_equal(buffer_slice(&run->last_key), live->key))
		run->left_in_partition = run->per_partition;
	if (!run->has_group) {
		/* Rows of further groups of a partition that has had its share are passed over. */
		if (run->left_in_partition == 0)
			return 0;
		if (select_group_open(run, err) != 0 ||
		    select_group_remember(run, live, value, err) != 0)
			return -1;
	}
	return selection_group_add(&run->plan->selection, &run->group, row, &run->group_arena, err);
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static void
select_remember(struct select_run *run, const struct live_row *live)
{
	buffer_clear(&run->last_key);
	buffer_put_slice(&run->last_key, live->key);
	buffer_clear(&run->last_position);
	run->is_partition_done =
	    live->row == NULL || run->plan->is_distinct || run->table->clustering_count == 0;
	if (!run->is_partition_done) {
		if (slice_is_null(live->row->position))
			position_encode(run->table, BOUND_CLUSTERING, live->row->clustering,
			    live->row->clustering_count, &run->last_position);
		else
			buffer_put_slice(&run->last_position, live->row->position);
	}
	run->has_last = true;
}

static int
select_put_sorted(struct select_run *run, const struct selection_row *row, struct error *err)
{
	struct select_sorted *sorted;
	struct buffer *out = &run->sorted_cells;

	if (run->sorted_count == run->sorted_capacity) {
		uint32_t capacity = run->sorted_capacity == 0 ? 64 : run->sorted_capacity * 2;

		sorted = realloc(run->sorted, capacity * sizeof(*sorted));
		if (sorted == NULL)
			return select_run_no_memory(err);
		run->sorted = sorted;
		run->sorted_capacity = capacity;
	}
	sorted = &run->sorted[run->sorted_count++];
	sorted->offset = out->size;
	if (selection_put_row(&run->plan->selection, row, out, err) != 0)
		return -1;
	sorted->size = out->size - sorted->offset;
	sorted->position = row->row == NULL
	    ? slice_empty
	    : position_make(run->table, BOUND_INCL_START, row->row->clustering,
		  run->plan->order_count, run->execution->arena);
	return slice_is_null(sorted->position) ? select_run_no_memory(err) : 0;
}

/* 1: full in front of this row. */
static int
select_take_row(struct select_run *run, const struct live_row *live, struct error *err)
{
	const struct select_plan *plan = run->plan;
	struct selection_row row = {.table = run->table,
	    .key = run->key_components,
	    .static_row = live->static_row,
	    .row = live->row,
	    .now_seconds = run->execution->now_seconds,
	    .terms = &run->terms};
	int rc;

	/* A partition of which only static columns are left is shown unless rows were asked for. */
	if (live->row == NULL && plan->restrictions.has_clustering &&
	    run->table->clustering_count > 0) {
		select_remember(run, live);
		return 0;
	}
	if (live->is_new_partition || !run->has_last ||
	    !slice_equal(buffer_slice(&run->last_key), live->key)) {
		if (table_partition_key_split(run->table, live->key, run->key_components, err) != 0)
			return -1;
		if (run->has_last && !slice_equal(buffer_slice(&run->last_key), live->key) &&
		    !plan->is_grouped)
			run->left_in_partition = run->per_partition;
	}
	if (plan->is_grouped || plan->selection.is_aggregate) {
		rc = select_group_row(run, live, &row, err);
		if (rc == 0)
			select_remember(run, live);
		return rc;
	}
	if (run->left_in_partition == 0) {
		/* It has had its share: the next chunk begins behind the partition. */
		select_remember(run, live);
		run->is_partition_done = true;
		return 0;
	}
	if (plan->is_sorted_after && run->key_count > 1) {
		rc = select_put_sorted(run, &row, err);
	} else {
		rc = selection_put_row(&plan->selection, &row, run->execution->out, err);
		run->rows.row_count++;
		run->left--;
		run->left_in_page--;
	}
	if (rc != 0)
		return rc;
	if (run->left_in_partition != READ_LIMIT_NONE)
		run->left_in_partition--;
	select_remember(run, live);
	return 0;
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

/* A long scan ends when its time is over, between two chunks and now and then
 * where a filter drops rows; what is aggregated may take its time, as
 * Cassandra gives each of its own pages a timeout. */
static int
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

static int
select_take(struct select_run *run, struct error *err)
{
	struct live_reader reader;
	struct live_row live;
	uint32_t taken = 0;
	int rc;

	live_reader_init(&reader, &run->command, run->source, run->terms.arena);
	run->source = NULL;
	reader.tombstone_failure_threshold =
	    (uint32_t)run->execution->executor->config->tombstone_failure_threshold;
	reader.check = select_check_deadline;
	reader.check_argument = run;
	while ((rc = live_reader_next(&reader, &live, err)) > 0) {
		taken++;
		run->live++;
		rc = select_take_row(run, &live, err);
		if (rc != 0)
			break;
		if (!run->plan->is_grouped && !run->plan->selection.is_aggregate &&
		    (run->left == 0 || run->left_in_page == 0)) {
			rc = 1;
			break;
		}
	}
	run->tombstones += reader.tombstones;
	if (run->read.is_own)
		store_count_read(
		    run->execution->executor->store, run->table, taken, reader.tombstones);
	live_reader_fini(&reader);
	if (rc > 0)
		run->is_finished = true;
	run->is_chunk_full = rc == 0 && taken > 0 && taken >= run->command.row_limit;
	return rc < 0 ? -1 : 0;
}

/* ---- Chunks -------------------------------------------------------------------------------- */

static int
select_compare_sorted(const void *a, const void *b)
{
	const struct select_sorted *left = a, *right = b;
	int order = slice_compare(left->position, right->position);

	if (order != 0)
		return order;
	return left->offset < right->offset ? -1 : 1;
}

static int
select_compare_reversed(const void *a, const void *b)
{
	const struct select_sorted *left = a, *right = b;
	int order = slice_compare(right->position, left->position);

	if (order != 0)
		return order;
	return left->offset < right->offset ? -1 : 1;
}

static void
select_put_all_sorted(struct select_run *run)
{
	qsort(run->sorted, run->sorted_count, sizeof(*run->sorted),
	    run->plan->is_reversed ? select_compare_reversed : select_compare_sorted);
	for (uint32_t i = 0; i < run->sorted_count && run->left > 0; i++, run->left--) {
		buffer_put(run->execution->out, run->sorted_cells.data + run->sorted[i].offset,
		    run->sorted[i].size);
		run->rows.row_count++;
	}
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
		select_run_no_memory(&err);
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
	buffer_init(&run->group_last_key);
	buffer_init(&run->group_last_position);
	buffer_init(&run->sorted_cells);
	select_next_arena(run, true);
	if (execution_check_read_consistency(execution, &err) != 0 ||
	    guardrail_check_select(execution, &err) != 0 ||
	    select_begin(run, &is_empty, &err) != 0) {
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
