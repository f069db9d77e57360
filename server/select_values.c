/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/hash.h"
#include "server/guardrails.h"
#include "server/paging.h"
#include "server/select_internal.h"

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
		return select_no_memory(err);
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
			return select_no_memory(err);
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

/* What the values of a statement may not be together. */
static int
select_check(const struct select_run *run, struct error *err)
{
	const struct query_options *options = run->execution->options;

	if (run->plan->is_sorted_after && options->page_size > 0 && run->key_count > 1)
		return error_set(err, ERROR_INVALID,
		    "Cannot page queries with both ORDER BY and a IN restriction on the partition "
		    "key; you must either remove the ORDER BY or the IN and sort client side, or "
		    "disable paging for this query");
	if (consistency_is_serial(options->consistency) && !run->is_range && run->key_count > 1)
		return error_set(err, ERROR_INVALID,
		    "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a "
		    "time");
	return 0;
}

static void
select_warn_aggregation(const struct select_run *run)
{
	if (!run->plan->selection.is_aggregate && !run->plan->is_grouped)
		return;
	if (run->is_range && run->execution->client != NULL)
		execution_warn(run->execution, "Aggregation query used without partition key");
	else if (run->key_count > 1)
		execution_warn(run->execution,
		    "Aggregation query used on multiple partition keys (IN restriction)");
}

static void
select_begin_answer(struct select_run *run)
{
	struct execution *execution = run->execution;
	const struct prepared_statement *plan = execution->plan;
	struct columns_metadata metadata = {.columns = plan->results,
	    .column_count = plan->result_count,
	    .encoded = plan->encoded_results[execution->version - 3]};
	const uint8_t *new_id = NULL;

	execution_begin_result(execution);
	if (execution->version >= 5 && !slice_is_null(execution->result_metadata_id) &&
	    (execution->result_metadata_id.size != 16 ||
		memcmp(execution->result_metadata_id.data, plan->result_metadata_id, 16) != 0))
		new_id = plan->result_metadata_id;
	run->rows = response_begin_rows(execution->out, execution->version, &metadata,
	    execution->options->skip_metadata, new_id);
}

int
select_begin(struct select_run *run, bool *is_empty, struct error *err)
{
	struct execution *execution = run->execution;
	const struct select_plan *plan = run->plan;
	const struct query_options *options = execution->options;

	run->command.table = run->table;
	run->command.now_seconds = execution->now_seconds;
	run->key_components = arena_calloc(
	    execution->arena, run->table->partition_key_count, sizeof(*run->key_components));
	if (run->key_components == NULL)
		return select_no_memory(err);
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
	run->is_paged =
	    options->page_size > 0 && (plan->is_grouped || !plan->selection.is_aggregate);
	if (options->page_size > 0 &&
	    (run->left > (uint32_t)options->page_size || plan->selection.is_aggregate ||
		plan->is_grouped) &&
	    guardrail_check_maximum(
		execution, GUARDRAIL_PAGE_SIZE, run->table->name, options->page_size, err) != 0)
		return -1;
	run->left_in_page = run->is_paged ? (uint32_t)options->page_size : READ_LIMIT_NONE;
	if (select_check(run, err) != 0)
		return -1;
	if (!*is_empty && !slice_is_null(options->paging_state) &&
	    select_resume(run, options->paging_state, err) != 0)
		return -1;
	select_warn_aggregation(run);
	select_begin_answer(run);
	return 0;
}
