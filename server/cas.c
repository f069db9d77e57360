/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional statements: read, compare, write, with nobody in between. In a ring that is a round of Paxos among the
 * partition's replicas (cluster/paxos.h); a node that is alone holds the partition's lock. The answer
 * has [applied] and, where it is false, what was found. Cassandra: CQL3CasRequest,
 * ModificationStatement.buildCasResultSet, cql3/conditions/ColumnCondition.
 */
#include "base/hash.h"
#include "cluster/paxos_codec.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/tracing.h"
#include "server/modification.h"
#include "server/selection.h"

static int
cas_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a conditional statement");
}

/* One row that conditions look at. */
struct cas_row {
	struct clustering_range range; /* is_static: none */
	bool is_static; /* static columns alone */
	bool has_row, has_static;
	bool if_exists, if_not_exists;
	bool is_conditional; /* shown when the whole fails */
	struct row row, static_row;
};

struct cas {
	struct execution *execution;
	struct modification *modifications;
	uint32_t count;
	const struct table_metadata *table;
	const struct keyspace_metadata *keyspace;
	struct slice key;
	int64_t token;
	struct slice *key_components;
	struct cas_row *rows; /* one for each statement */
	/* Conditions on static columns alone: what is shown when they fail is the partition's first
	 * row (CQL3CasRequest.readCommand tells so a partition without static columns from none). */
	bool is_about_statics;
	struct cas_row first;
	/* Static columns are read where a statement writes or compares some: else a row of which only
	 * they are left is no row. */
	bool reads_static;
	struct paxos_request paxos;
	int64_t timestamp; /* of the write: the ballot's */
	bool is_applied;
};

/* ---- Conditions ---------------------------------------------------------------------------- */

static int
condition_current(const struct condition *condition, const struct modification *modification,
    const struct selection_row *row, struct slice *out, struct error *err)
{
	const struct type *type = condition->column->type;
	struct type_iterator iterator;
	struct slice whole, key, element, value;
	bool is_unset;

	*out = slice_null;
	if (selection_column_value(row, condition->column, &whole, err) != 0)
		return -1;
	if (condition->element == NULL && condition->field < 0) {
		*out = whole;
		return 0;
	}
	if (condition->field >= 0) {
		if (slice_is_null(whole))
			return 0;
		type_iterator_init(&iterator, type, whole);
		for (int i = 0; i <= condition->field; i++) {
			if (!type_iterator_next(&iterator, out, NULL)) {
				*out = slice_null;
				break;
			}
		}
		return 0;
	}
	if (term_eval(condition->element, &modification->terms, &key, &is_unset, err) != 0)
		return -1;
	if (is_unset || slice_is_null(key))
		return error_set(err, ERROR_INVALID, "Invalid %s value for %s element access",
		    is_unset ? "unset" : "null", type->kind == TYPE_LIST ? "list" : "map");
	if (slice_is_null(whole))
		return 0;
	type_iterator_init(&iterator, type, whole);
	if (type->kind == TYPE_LIST) {
		int32_t index = key.size == 4 ? (int32_t)load_u32(key.data) : -1;

		if (index < 0)
			return error_set(
			    err, ERROR_INVALID, "Invalid negative list index %d", index);
		for (int32_t i = 0; type_iterator_next(&iterator, &element, NULL); i++) {
			if (i == index) {
				*out = element;
				break;
			}
		}
		return 0;
	}
	while (type_iterator_next(&iterator, &element, NULL) &&
	    type_iterator_next(&iterator, &value, NULL)) {
		if (type_compare(type->params[0], element, key) == 0) {
			*out = value;
			break;
		}
	}
	return 0;
}

static int
condition_compare(enum ast_operator operator, const struct type * type, struct slice current,
    struct slice value, bool *out, struct error *err)
{
	int order;

	if (slice_is_null(value)) {
		if (operator!= AST_EQ && operator!= AST_NEQ)
			return error_set(err, ERROR_INVALID,
			    "Invalid comparison with null for operator \"%s\"",
			    ast_operator_text(operator));
		*out = slice_is_null(current) == (operator== AST_EQ);
		return 0;
	}
	if (slice_is_null(current)) {
		*out = operator== AST_NEQ;
		return 0;
	}
	order = type_compare(type, current, value);
	switch (operator) {
	case AST_EQ:
		*out = order == 0;
		break;
	case AST_NEQ:
		*out = order != 0;
		break;
	case AST_LT:
		*out = order < 0;
		break;
	case AST_LTE:
		*out = order <= 0;
		break;
	case AST_GT:
		*out = order > 0;
		break;
	default:
		*out = order >= 0;
		break;
	}
	return 0;
}

static int
condition_value(const struct term *term, const struct modification *modification,
    const struct condition *condition, struct slice *out, struct error *err)
{
	bool is_unset;

	if (term_eval(term, &modification->terms, out, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return error_set(err, ERROR_INVALID, "Invalid 'unset' value in condition");
	/* An empty multi-cell collection is null. */
	if (!slice_is_null(*out) && condition->element == NULL && condition->field < 0 &&
	    condition->column->type->is_multi_cell && type_is_collection(condition->column->type) &&
	    type_collection_size(*out) == 0)
		*out = slice_null;
	return 0;
}

static int
condition_holds(const struct condition *condition, const struct modification *modification,
    const struct selection_row *row, bool *out, struct error *err)
{
	struct slice current, value;

	*out = false;
	if (condition_current(condition, modification, row, &current, err) != 0)
		return -1;
	if (condition->operator!= AST_IN) {
		if (condition_value(condition->value, modification, condition, &value, err) != 0)
			return -1;
		return condition_compare(
		    condition->operator, condition->type, current, value, out, err);
	}
	if (condition->has_in_list) {
		for (uint32_t i = 0; i < condition->in_count && !*out; i++) {
			if (condition_value(condition->in_values[i], modification, condition,
				&value, err) != 0 ||
			    condition_compare(AST_EQ, condition->type, current, value, out, err) !=
				0)
				return -1;
		}
		return 0;
	}
	{
		struct type_iterator iterator;
		struct slice list;
		bool is_unset;

		if (term_eval(condition->value, &modification->terms, &list, &is_unset, err) != 0)
			return -1;
		if (is_unset)
			return error_set(err, ERROR_INVALID, "Invalid 'unset' value in condition");
		if (slice_is_null(list))
			return error_set(err, ERROR_INVALID, "Invalid null list in IN condition");
		type_iterator_init(&iterator, condition->value->type, list);
		while (!*out && type_iterator_next(&iterator, &value, NULL)) {
			if (condition_compare(AST_EQ, condition->type, current, value, out, err) !=
			    0)
				return -1;
		}
	}
	return 0;
}

/* ---- Reading ------------------------------------------------------------------------------- */

static int
cas_read(struct cas *cas, uint32_t index, struct error *err)
{
	struct modification *modification = &cas->modifications[index];
	const struct modification_plan *plan = modification->plan;
	struct cas_row *row = &cas->rows[index];
	struct clustering_range *ranges;
	uint32_t count;
	bool is_row_wanted = cas->table->clustering_count == 0 ||
	    (plan->restrictions.clustering_prefix == cas->table->clustering_count);

	row->if_exists = plan->if_exists;
	row->if_not_exists = plan->if_not_exists;
	row->is_conditional = plan->is_conditional;
	row->is_static = !is_row_wanted ||
	    (plan->is_static_only && !plan->has_regular_condition &&
		cas->table->clustering_count > 0);
	if (!row->is_static) {
		if (restrictions_ranges(
			&plan->restrictions, &modification->terms, &ranges, &count, err) != 0)
			return -1;
		if (count != 1)
			return error_set(err, ERROR_INVALID,
			    "IN on the clustering key columns is not supported with conditional "
			    "updates");
		row->range = ranges[0];
	}
	if (modification_read_row(cas->execution, modification->plan, cas->key, cas->token,
		row->is_static ? NULL : &row->range, modification->now_seconds,
		cas->execution->arena, &row->row, &row->has_row, &row->static_row, &row->has_static,
		err) != 0)
		return -1;
	row->has_static = row->has_static && cas->reads_static;
	return 0;
}

static bool
cas_is_about_statics(const struct cas *cas)
{
	for (uint32_t i = 0; i < cas->count; i++) {
		const struct modification_plan *plan = cas->modifications[i].plan;

		if (!plan->is_conditional)
			continue;
		if (plan->condition_count == 0 ? !cas->rows[i].is_static
					       : plan->has_regular_condition)
			return false;
	}
	return cas->table->clustering_count > 0;
}

static int
cas_read_first(struct cas *cas, struct error *err)
{
	struct execution *execution = cas->execution;
	const struct modification *modification = &cas->modifications[0];
	struct restrictions all = {.table = cas->table};
	struct cas_row *first = &cas->first;
	struct clustering_range *ranges;
	uint32_t count;

	all.clustering =
	    arena_calloc(execution->arena, cas->table->clustering_count, sizeof(*all.clustering));
	if (all.clustering == NULL)
		return cas_no_memory(err);
	if (restrictions_ranges(&all, &modification->terms, &ranges, &count, err) != 0)
		return -1;
	first->is_conditional = true;
	first->range = ranges[0];
	if (modification_read_row(execution, cas->modifications[0].plan, cas->key, cas->token,
		&first->range, modification->now_seconds, execution->arena, &first->row,
		&first->has_row, &first->static_row, &first->has_static, err) != 0)
		return -1;
	for (uint32_t i = 0; i < cas->count; i++) {
		if (!cas->modifications[i].plan->is_static_only)
			return 0;
	}
	/* Only static columns are asked for; the row shows that it is there. */
	first->row.cell_count = 0;
	first->row.complex_deletion_count = 0;
	return 0;
}

static struct selection_row
cas_selection_row(const struct cas *cas, const struct cas_row *row)
{
	struct selection_row selected = {.table = cas->table,
	    .key = cas->key_components,
	    .static_row = row->has_static ? &row->static_row : NULL,
	    .row = row->has_row && !row->is_static ? &row->row : NULL,
	    .now_seconds = cas->execution->now_seconds,
	    .terms = &cas->execution->terms};

	return selected;
}

static int
cas_applies(const struct cas *cas, uint32_t index, bool *out, struct error *err)
{
	const struct modification *modification = &cas->modifications[index];
	const struct modification_plan *plan = modification->plan;
	const struct cas_row *row = &cas->rows[index];
	struct selection_row selected = cas_selection_row(cas, row);
	bool exists = row->is_static ? row->has_static : row->has_row;

	*out = true;
	if (plan->if_exists || plan->if_not_exists) {
		*out = exists == plan->if_exists;
		return 0;
	}
	for (uint32_t i = 0; i < plan->condition_count && *out; i++) {
		if (condition_holds(&plan->conditions[i], modification, &selected, out, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- The answer ---------------------------------------------------------------------------- */

struct cas_columns {
	const struct column_metadata **columns;
	uint32_t count;
};

static void
cas_add_column(struct cas_columns *columns, const struct column_metadata *column)
{
	for (uint32_t i = 0; i < columns->count; i++) {
		if (columns->columns[i] == column)
			return;
	}
	columns->columns[columns->count++] = column;
}

/* What a failure shows: all columns for IF [NOT] EXISTS, else those of the conditions. */
static void
cas_result_columns(const struct cas *cas, struct cas_columns *columns)
{
	bool is_all = true;

	for (uint32_t i = 0; i < cas->count; i++)
		is_all = is_all && cas->modifications[i].plan->condition_count == 0;
	if (is_all) {
		for (uint32_t i = 0; i < cas->table->column_count; i++)
			cas_add_column(columns, cas->table->select_order[i]);
		return;
	}
	if (cas->execution->is_batch) {
		for (uint32_t i = 0; i < cas->table->partition_key_count; i++)
			cas_add_column(columns, &cas->table->partition_key[i]);
		for (uint32_t i = 0; i < cas->table->clustering_count; i++)
			cas_add_column(columns, &cas->table->clustering[i]);
	}
	for (uint32_t i = 0; i < cas->count; i++) {
		const struct modification_plan *plan = cas->modifications[i].plan;

		for (int is_static = 0; is_static < 2; is_static++) {
			for (uint32_t j = 0; j < plan->condition_count; j++) {
				if ((plan->conditions[j].column->kind == COLUMN_STATIC) ==
				    (is_static != 0))
					cas_add_column(columns, plan->conditions[j].column);
			}
		}
	}
}

static bool
cas_is_same_row(const struct cas_row *a, const struct cas_row *b)
{
	if (a->is_static || b->is_static)
		return a->is_static == b->is_static;
	return slice_equal(a->range.start_position, b->range.start_position);
}

static bool
cas_is_shown(const struct cas_row *row)
{
	return row->is_conditional && (row->has_row || row->has_static);
}

static int
cas_answer(struct cas *cas, bool is_applied, struct error *err)
{
	static const uint8_t truth[2] = {0, 1};
	struct execution *execution = cas->execution;
	struct cas_columns columns = {NULL, 0};
	struct column_spec *specs;
	struct columns_metadata metadata = {0};
	struct response_rows rows;
	const struct cas_row *shown_rows = cas->is_about_statics ? &cas->first : cas->rows;
	uint32_t row_count = cas->is_about_statics ? 1 : cas->count;
	uint32_t shown = 0;
	bool has_whole_row = false;

	columns.columns =
	    arena_calloc(execution->arena, cas->table->column_count, sizeof(*columns.columns));
	specs =
	    arena_calloc(execution->arena, (size_t)cas->table->column_count + 1, sizeof(*specs));
	if (columns.columns == NULL || specs == NULL)
		return cas_no_memory(err);
	specs[0] = (struct column_spec){cas->table->keyspace, cas->table->name,
	    slice_of_string("[applied]"), type_native(TYPE_BOOLEAN)};
	for (uint32_t i = 0; i < row_count; i++) {
		shown += cas_is_shown(&shown_rows[i]);
		has_whole_row =
		    has_whole_row || (cas_is_shown(&shown_rows[i]) && !shown_rows[i].is_static);
	}
	if (!is_applied && shown > 0)
		cas_result_columns(cas, &columns);
	for (uint32_t i = 0; i < columns.count; i++)
		specs[i + 1] = (struct column_spec){cas->table->keyspace, cas->table->name,
		    columns.columns[i]->name, columns.columns[i]->type};
	metadata.columns = specs;
	metadata.column_count = columns.count + 1;
	execution_begin_result(execution);
	rows = response_begin_rows(execution->out, execution->version, &metadata, false, NULL);
	for (uint32_t i = 0; i < row_count && columns.count > 0; i++) {
		const struct cas_row *row = &shown_rows[i];
		struct selection_row selected = cas_selection_row(cas, row);
		/* Static columns are shown with a row where there is one. */
		bool is_known = !cas_is_shown(row) || (row->is_static && has_whole_row);

		for (uint32_t j = 0; j < i; j++)
			is_known = is_known ||
			    (cas_is_shown(&shown_rows[j]) && cas_is_same_row(row, &shown_rows[j]));
		if (is_known)
			continue;
		response_put_cell(execution->out, slice_of(&truth[0], 1));
		for (uint32_t j = 0; j < columns.count; j++) {
			struct slice value;

			if (selection_column_value(&selected, columns.columns[j], &value, err) != 0)
				return -1;
			response_put_cell(execution->out, value);
		}
		rows.row_count++;
	}
	if (rows.row_count == 0) {
		response_put_cell(execution->out, slice_of(&truth[is_applied], 1));
		rows.row_count = 1;
	}
	response_end_rows(execution->out, &rows, slice_null);
	return 0;
}

/* ---- Execution ----------------------------------------------------------------------------- */

static void
cas_written(struct coordinator_write *write, const struct error *err)
{
	struct cas *cas = write->context;
	struct execution *execution = cas->execution;
	struct error answer_err;

	execution->worker = write->worker;
	if (err == NULL && cas_answer(cas, true, &answer_err) != 0)
		err = &answer_err;
	execution_done(execution, err);
}

/* The mutation of all statements together; NULL where nothing changes. */
static int
cas_mutation(struct cas *cas, int64_t timestamp, struct mutation **out, struct error *err)
{
	struct execution *execution = cas->execution;
	struct mutation_set set = {.arena = execution->arena};

	for (uint32_t i = 0; i < cas->count; i++) {
		cas->modifications[i].timestamp = timestamp;
		if (modification_collect(&cas->modifications[i], execution, &set, err) != 0)
			return -1;
	}
	if (mutation_set_finish(&set, out, err) != 0)
		return -1;
	if (set.count == 0)
		*out = NULL;
	return 0;
}

static int
cas_write(struct cas *cas, struct error *err)
{
	struct execution *execution = cas->execution;
	struct coordinator_write *write = arena_zalloc(execution->arena, sizeof(*write));
	struct mutation *mutation;

	if (write == NULL)
		return cas_no_memory(err);
	/* The client's own default timestamp is not heeded: the order of the conditional statements
	 * decides. */
	if (cas_mutation(cas, execution_timestamp(execution), &mutation, err) != 0)
		return -1;
	write->mutations = mutation;
	write->mutation_count = 1;
	write->keyspace = cas->keyspace;
	write->consistency = execution->options->consistency;
	write->type = WRITE_CAS;
	write->on_done = cas_written;
	write->context = cas;
	write->arena = execution->arena;
	if (worker_is_current(execution->worker))
		write->scratch = &execution->worker->scratch;
	write->worker = execution->worker;
	write->trace = tracing_of(execution);
	if (mutation == NULL)
		cas_written(write, NULL);
	else
		coordinator_write(execution->executor->coordinator, write);
	return 0;
}

/* Of the row itself: those of static columns belong to the static row. */
static bool
cas_has_conditions(const struct cas *cas, uint32_t index)
{
	const struct modification_plan *plan = cas->modifications[index].plan;

	return cas->rows[index].is_static ? plan->condition_count > 0 : plan->has_regular_condition;
}

/* IF EXISTS and IF NOT EXISTS of one row contradict each other (CQL3CasRequest). */
static int
cas_check_rows(const struct cas *cas, struct error *err)
{
	for (uint32_t i = 0; i < cas->count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct cas_row *a = &cas->rows[i], *b = &cas->rows[j];

			if (!cas_is_same_row(a, b))
				continue;
			if ((a->if_not_exists && b->if_exists) ||
			    (a->if_exists && b->if_not_exists))
				return error_set(err, ERROR_INVALID,
				    "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the "
				    "same "
				    "row");
			/* The earlier one is b. */
			if ((a->if_not_exists || a->if_exists) && cas_has_conditions(cas, j))
				return error_set(err, ERROR_INVALID,
				    "Cannot mix IF conditions and IF %sEXISTS for the same row",
				    a->if_not_exists ? "NOT " : "");
			if ((b->if_not_exists || b->if_exists) && cas_has_conditions(cas, i))
				return error_set(err, ERROR_INVALID,
				    "Cannot mix IF conditions and IF NOT EXISTS for the same row");
		}
	}
	return 0;
}

/* ConsistencyLevel.validateForCas, validateForCasCommit. */
static int
cas_check_levels(const struct cas *cas, struct error *err)
{
	const struct query_options *options = cas->execution->options;
	const struct slice *class;

	if (!consistency_is_serial(options->serial_consistency))
		return error_set(err, ERROR_INVALID,
		    "Invalid consistency for conditional update. Must be one of SERIAL or "
		    "LOCAL_SERIAL");
	if (consistency_is_serial(options->consistency))
		return error_set(err, ERROR_INVALID,
		    "%s is not supported as conditional update commit consistency. Use ANY if you "
		    "mean \"make sure it is accepted but I don't care how many replicas commit it "
		    "for non-SERIAL reads\"",
		    consistency_name(options->consistency));
	class = option_map_get(&cas->keyspace->replication, "class");
	if (options->consistency == CONSISTENCY_EACH_QUORUM && class != NULL &&
	    !slice_equal_string(*class, "org.apache.cassandra.locator.NetworkTopologyStrategy"))
		return error_set(err, ERROR_INVALID,
		    "consistency level EACH_QUORUM not compatible with replication strategy "
		    "(%.*s)",
		    (int)class->size, (const char *)class->data);
	return 0;
}

static int
cas_prepare(struct cas *cas, struct error *err)
{
	struct execution *execution = cas->execution;

	if (cas_check_levels(cas, err) != 0)
		return -1;
	for (uint32_t i = 0; i < cas->count; i++) {
		struct slice *keys;
		uint32_t count;

		if (modification_begin(&cas->modifications[i], execution, err) != 0 ||
		    modification_keys(&cas->modifications[i], &keys, &count, err) != 0)
			return -1;
		if (cas->modifications[i].plan->table != cas->table)
			return error_set(err, ERROR_INVALID,
			    "Batch with conditions cannot span multiple tables");
		if (count != 1 || (i > 0 && !slice_equal(keys[0], cas->key)))
			return error_set(err, ERROR_INVALID,
			    "Batch with conditions cannot span multiple partitions");
		cas->key = keys[0];
		cas->reads_static = cas->reads_static ||
		    cas->modifications[i].plan->static_count > 0 ||
		    cas->modifications[i].plan->has_static_condition;
	}
	cas->token = murmur3_token(cas->key);
	cas->rows = arena_calloc(execution->arena, cas->count, sizeof(*cas->rows));
	cas->key_components = arena_calloc(
	    execution->arena, cas->table->partition_key_count, sizeof(*cas->key_components));
	if (cas->rows == NULL || cas->key_components == NULL)
		return cas_no_memory(err);
	return table_partition_key_split(cas->table, cas->key, cas->key_components, err);
}

/* Read what the conditions are about, and see whether they hold. */
static int
cas_decide(struct cas *cas, struct error *err)
{
	cas->is_applied = true;
	for (uint32_t i = 0; i < cas->count; i++)
		if (cas_read(cas, i, err) != 0)
			return -1;
	if (cas_check_rows(cas, err) != 0)
		return -1;
	for (uint32_t i = 0; i < cas->count && cas->is_applied; i++)
		if (cas_applies(cas, i, &cas->is_applied, err) != 0)
			return -1;
	cas->is_about_statics = !cas->is_applied && cas_is_about_statics(cas);
	return cas->is_about_statics ? cas_read_first(cas, err) : 0;
}

/* ---- A node that is alone -------------------------------------------------------------------- */

static void
cas_execute_alone(struct cas *cas)
{
	struct execution *execution = cas->execution;
	struct table_locks *locks = &execution->executor->cas_locks;
	int64_t token = cas->token;
	struct error err;
	int rc;

	table_locks_take(locks, token);
	rc = cas_decide(cas, &err);
	if (rc == 0 && cas->is_applied) {
		/* Visible when it returns; the execution may be gone then. */
		rc = cas_write(cas, &err);
		table_locks_drop(locks, token);
		if (rc != 0)
			execution_done(execution, &err);
		return;
	}
	table_locks_drop(locks, token);
	if (rc == 0)
		rc = cas_answer(cas, false, &err);
	execution_done(execution, rc == 0 ? NULL : &err);
}

/* ---- A ring ------------------------------------------------------------------------------------ */

static enum consistency
cas_read_level(const struct cas *cas)
{
	return cas->paxos.serial == CONSISTENCY_LOCAL_SERIAL ? CONSISTENCY_LOCAL_QUORUM
							     : CONSISTENCY_QUORUM;
}

/* With the promise held: decide, and propose; again from the start for each row that has to come from others. */
static void
cas_propose(struct execution *execution, void *context, const struct error *failure)
{
	struct cas *cas = context;
	struct mutation *mutation = NULL;
	struct error err;
	int rc = 0;

	if (failure != NULL) {
		paxos_abandon(&cas->paxos, failure);
		return;
	}
	rc = cas_decide(cas, &err);
	if (rc == 0 && cas->is_applied)
		rc = cas_mutation(cas, cas->timestamp, &mutation, &err);
	if (rc == 0)
		paxos_propose(&cas->paxos, mutation);
	else if (execution_wants_rows(execution))
		execution_read_rows(execution, cas_read_level(cas), cas_propose, cas);
	else
		paxos_abandon(&cas->paxos, &err);
}

static void
cas_ready(struct paxos_request *request, const struct uuid *ballot)
{
	struct cas *cas = request->context;

	cas->execution->worker = NULL;
	cas->timestamp = paxos_ballot_timestamp(ballot);
	/* Of an earlier ballot. */
	execution_forget_rows(cas->execution);
	cas_propose(cas->execution, cas, NULL);
}

static void
cas_decided(struct paxos_request *request, const struct error *err)
{
	struct cas *cas = request->context;
	struct error answer_err;

	cas->execution->worker = NULL;
	/* A condition that holds may have nothing to write. */
	if (err == NULL &&
	    cas_answer(cas, cas->is_applied || request->has_written, &answer_err) != 0)
		err = &answer_err;
	execution_done(cas->execution, err);
}

void
cas_execute(struct execution *execution, struct modification *modifications, uint32_t count)
{
	struct cas *cas = arena_zalloc(execution->arena, sizeof(*cas));
	struct error err;

	if (cas == NULL) {
		cas_no_memory(&err);
		execution_done(execution, &err);
		return;
	}
	cas->execution = execution;
	cas->modifications = modifications;
	cas->count = count;
	cas->table = modifications[0].plan->table;
	cas->keyspace = modifications[0].plan->keyspace;
	if (cas_prepare(cas, &err) != 0) {
		execution_done(execution, &err);
		return;
	}
	if (coordinator_is_alone(execution->executor->coordinator)) {
		cas_execute_alone(cas);
		return;
	}
	cas->paxos = (struct paxos_request){.keyspace = cas->keyspace,
	    .table = cas->table,
	    .key = cas->key,
	    .token = cas->token,
	    .serial = execution->options->serial_consistency,
	    .commit = execution->options->consistency,
	    .on_ready = cas_ready,
	    .on_done = cas_decided,
	    .context = cas,
	    .trace = tracing_of(execution)};
	paxos_begin(execution->executor->node->cluster->paxos, &cas->paxos);
}
