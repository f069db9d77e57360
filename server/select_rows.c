/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "server/select_internal.h"

/* ---- Groups -------------------------------------------------------------------------------- */

int
select_group_close(struct select_run *run, struct error *err)
{
	struct selection_row empty = {.table = run->table,
	    .key = run->key_components,
	    .now_seconds = run->execution->now_seconds,
	    .terms = &run->terms};
	struct term_context terms = run->execution->terms;

	terms.arena = &run->group_arena;
	empty.terms = &terms;
	if (select_size_check(run, err) != 0 ||
	    selection_group_end(&run->plan->selection, &run->group, &empty, &run->group_arena,
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

int
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
		return select_no_memory(err);
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
			return select_no_memory(err);
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
	return slice_is_null(sorted->position) ? select_no_memory(err) : 0;
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
	if (select_size_check(run, err) != 0)
		return -1;
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

int
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

/* ---- Rows that are put in order at the end -------------------------------------------------- */

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

void
select_put_all_sorted(struct select_run *run)
{
	qsort(run->sorted, run->sorted_count, sizeof(*run->sorted),
	    run->plan->is_reversed ? select_compare_reversed : select_compare_sorted);
	for (uint32_t i = 0; i < run->sorted_count && run->left > 0; i++, run->left--) {
		buffer_put(run->execution->out, run->sorted_cells.data + run->sorted[i].offset,
		    run->sorted[i].size);
		run->rows.row_count++;
	}
	buffer_clear(&run->sorted_cells);
	run->sorted_count = 0;
}
