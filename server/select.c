/* SPDX-License-Identifier: Apache-2.0 */
#include "server/select.h"
#include "server/prepare.h"

static int
select_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a SELECT");
}

/* ---- GROUP BY ------------------------------------------------------------------------------ */

static int
select_group_column(struct preparation *preparation, const struct ast_selector *raw,
    const struct column_metadata **out, const struct selector **function, struct error *err)
{
	struct selection ignored = {0};

	*function = NULL;
	if (raw->kind == AST_SELECTOR_COLUMN) {
		*out = prepare_column(preparation->table, ast_slice(raw->column.text), err);
		return *out == NULL ? -1 : 0;
	}
	if (raw->kind != AST_SELECTOR_FUNCTION)
		return error_set(err, ERROR_INVALID,
		    "Group by currently only support groups of columns following their declared "
		    "order in the PRIMARY KEY");
	if (selector_prepare(preparation, raw, NULL, &ignored, function, err) != 0)
		return -1;
	if ((*function)->kind == SELECTOR_AGGREGATE)
		return error_set(err, ERROR_INVALID,
		    "Aggregate functions are not supported within the GROUP BY clause, got: %s.%s",
		    (*function)->function->keyspace, (*function)->function->name);
	*out = NULL;
	for (uint32_t i = 0; i < (*function)->operand_count; i++) {
		if ((*function)->operands[i]->kind != SELECTOR_COLUMN)
			continue;
		if (*out != NULL)
			return error_set(err, ERROR_INVALID,
			    "GROUP BY functions must have exactly one column argument");
		*out = (*function)->operands[i]->column;
	}
	if (*out == NULL)
		return error_set(
		    err, ERROR_INVALID, "GROUP BY functions must have one clustering column name");
	return 0;
}

/* Key columns in their order; those that are equal to something may be left out. */
static int
select_prepare_groups(struct preparation *preparation, const struct statement_select *select,
    struct select_plan *plan, struct error *err)
{
	const struct table_metadata *table = preparation->table;
	uint32_t at = 0; /* in partition key and clustering, one behind the other */
	const struct selector *function = NULL;

	if (select->group_by.count == 0)
		return 0;
	plan->is_grouped = true;
	for (size_t i = 0; i < select->group_by.count; i++) {
		const struct column_metadata *column = NULL;
		uint32_t position;

		if (function != NULL)
			return error_set(err, ERROR_INVALID,
			    "Functions are only supported on the last element of the GROUP BY "
			    "clause");
		if (select_group_column(
			preparation, select->group_by.items[i], &column, &function, err) != 0)
			return -1;
		if (column->kind != COLUMN_PARTITION_KEY && column->kind != COLUMN_CLUSTERING)
			return error_set(err, ERROR_INVALID,
			    "Group by is currently only supported on the columns of the PRIMARY "
			    "KEY, "
			    "got %.*s",
			    (int)column->name.size, column->name.data);
		position = column->position +
		    (column->kind == COLUMN_CLUSTERING ? table->partition_key_count : 0);
		while (at < position) {
			const struct restriction *restriction = at < table->partition_key_count
			    ? plan->restrictions.partition[at]
			    : plan->restrictions.clustering[at - table->partition_key_count];

			if (restriction == NULL || restriction->kind != RESTRICTION_EQ)
				break;
			at++;
		}
		if (at != position)
			return error_set(err, ERROR_INVALID,
			    "Group by currently only support groups of columns following their "
			    "declared order in the PRIMARY KEY");
		at++;
	}
	if (at < table->partition_key_count) {
		for (uint32_t i = at; i < table->partition_key_count; i++) {
			if (plan->restrictions.partition[i] == NULL ||
			    plan->restrictions.partition[i]->kind != RESTRICTION_EQ)
				return error_set(err, ERROR_INVALID,
				    "Group by is not supported on only a part of the partition "
				    "key");
		}
		at = table->partition_key_count;
	}
	plan->group_clustering = at - table->partition_key_count;
	plan->group_function = function;
	return 0;
}

/* ---- ORDER BY ------------------------------------------------------------------------------ */

static int
select_prepare_order(struct preparation *preparation, const struct statement_select *select,
    struct select_plan *plan, struct error *err)
{
	const struct table_metadata *table = preparation->table;
	bool is_reversed = false;
	uint32_t at = 0;

	if (select->ordering_count == 0)
		return 0;
	for (size_t i = 0; i < select->ordering_count; i++) {
		if (select->orderings[i].ann_of != NULL)
			return error_set(
			    err, ERROR_INVALID, "ANN ordering is not supported by this server");
	}
	if (plan->restrictions.is_key_range)
		return error_set(err, ERROR_INVALID,
		    "ORDER BY is only supported when the partition key is restricted by an EQ or "
		    "an "
		    "IN.");
	for (size_t i = 0; i < select->ordering_count; i++) {
		const struct ast_ordering *ordering = &select->orderings[i];
		const struct column_metadata *column =
		    prepare_column(table, ast_slice(ordering->column.text), err);
		bool turns;

		if (column == NULL)
			return -1;
		if (column->kind != COLUMN_CLUSTERING)
			return error_set(err, ERROR_INVALID,
			    "Order by is currently only supported on the clustered columns of the "
			    "PRIMARY KEY, got %.*s",
			    (int)column->name.size, column->name.data);
		while (at < column->position) {
			const struct restriction *restriction = plan->restrictions.clustering[at];

			if (restriction == NULL || restriction->kind != RESTRICTION_EQ)
				return error_set(err, ERROR_INVALID,
				    "Order by currently only supports the ordering of columns "
				    "following their declared order in the PRIMARY KEY");
			at++;
		}
		if (at != column->position)
			return error_set(err, ERROR_INVALID,
			    "Order by currently only supports the ordering of columns following "
			    "their declared order in the PRIMARY KEY");
		at++;
		turns = ordering->is_descending != column->is_reversed;
		if (i > 0 && turns != is_reversed)
			return error_set(err, ERROR_INVALID, "Unsupported order by relation");
		is_reversed = turns;
	}
	plan->order_count = at;
	plan->is_reversed = is_reversed;
	plan->is_sorted_after = plan->restrictions.has_key_in;
	return 0;
}

/* ---- The rest ------------------------------------------------------------------------------ */

/* The partition is all there is to restrict where only static columns are wanted. */
static int
select_check_static(const struct select_plan *plan, struct error *err)
{
	const struct selection *selection = &plan->selection;

	if (selection->is_wildcard || !selection->has_static ||
	    !selection->has_only_key_and_static || !plan->restrictions.has_clustering)
		return 0;
	return error_set(err, ERROR_INVALID,
	    "Cannot restrict clustering columns when selecting only static columns");
}

static int
select_check_distinct(
    const struct select_plan *plan, const struct table_metadata *table, struct error *err)
{
	bool has_key = false;

	if (!plan->is_distinct)
		return 0;
	if (plan->restrictions.has_clustering || plan->restrictions.has_regular_filter)
		return error_set(err, ERROR_INVALID,
		    "SELECT DISTINCT with WHERE clause only supports restriction by partition key "
		    "and/or static columns.");
	for (uint32_t i = 0; i < plan->selection.count; i++) {
		const struct selector *selector = plan->selection.selectors[i];

		if (selector->kind == SELECTOR_COLUMN &&
		    (selector->column->kind == COLUMN_REGULAR ||
			selector->column->kind == COLUMN_CLUSTERING))
			return error_set(err, ERROR_INVALID,
			    "SELECT DISTINCT queries must only request partition key columns "
			    "and/or "
			    "static columns (not %.*s)",
			    (int)selector->column->name.size, selector->column->name.data);
		if (selector->kind == SELECTOR_COLUMN && selector->column->kind == COLUMN_STATIC)
			has_key = false;
	}
	(void)has_key;
	/* Without a restriction of the whole key, all of its columns must be shown. */
	if (plan->restrictions.is_key_range) {
		for (uint32_t k = 0; k < table->partition_key_count; k++) {
			bool is_shown = false;

			for (uint32_t i = 0; i < plan->selection.count; i++)
				is_shown = is_shown ||
				    (plan->selection.selectors[i]->kind == SELECTOR_COLUMN &&
					plan->selection.selectors[i]->column ==
					    &table->partition_key[k]);
			if (!is_shown)
				return error_set(err, ERROR_INVALID,
				    "SELECT DISTINCT queries must request all the partition key "
				    "columns (missing %.*s)",
				    (int)table->partition_key[k].name.size,
				    table->partition_key[k].name.data);
		}
	}
	return 0;
}

static int
select_prepare_limit(struct preparation *preparation, const struct ast_term *raw, const char *name,
    const struct term **out, struct error *err)
{
	struct column_spec receiver = {preparation->table->keyspace, preparation->table->name,
	    slice_of_string(name), type_native(TYPE_INT)};

	if (raw == NULL)
		return 0;
	return term_prepare(preparation, raw, &receiver, out, err);
}

int
select_prepare(
    struct preparation *preparation, struct prepared_statement *prepared, struct error *err)
{
	const struct statement_select *select = &preparation->statement->select;
	struct restrictions_options options = {.use = RESTRICTIONS_SELECT};
	struct select_plan *plan = arena_zalloc(preparation->arena, sizeof(*plan));
	const struct table_metadata *table;

	if (plan == NULL)
		return select_no_memory(err);
	if (prepare_table(preparation->schema, preparation->keyspace, &select->table,
		&prepared->keyspace_metadata, &prepared->table, err) != 0)
		return -1;
	table = preparation->table = prepared->table;
	plan->is_distinct = select->is_distinct;
	options.allow_filtering = select->allow_filtering || table->is_virtual;
	options.is_distinct = select->is_distinct;
	if (selection_prepare(preparation, select, &plan->selection, err) != 0 ||
	    restrictions_prepare(preparation, &select->where, &options, &plan->restrictions, err) !=
		0 ||
	    select_check_static(plan, err) != 0 || select_check_distinct(plan, table, err) != 0 ||
	    select_prepare_groups(preparation, select, plan, err) != 0 ||
	    select_prepare_limit(preparation, select->per_partition_limit, "[per_partition_limit]",
		&plan->per_partition_limit, err) != 0 ||
	    select_prepare_limit(preparation, select->limit, "[limit]", &plan->limit, err) != 0)
		return -1;
	if (select->is_distinct && select->per_partition_limit != NULL)
		return error_set(err, ERROR_INVALID,
		    "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
	if (plan->selection.is_aggregate && !plan->is_grouped &&
	    select->per_partition_limit != NULL)
		return error_set(err, ERROR_INVALID,
		    "PER PARTITION LIMIT is not allowed with aggregate queries.");
	if (select_prepare_order(preparation, select, plan, err) != 0)
		return -1;
	prepared->select = plan;
	prepared->result_count = plan->selection.result_count;
	prepared->results = plan->selection.specs;
	prepared->key_index_count = restrictions_key_markers(
	    &plan->restrictions, preparation->arena, &prepared->key_indexes);
	if (plan->restrictions.is_key_range)
		prepared->stage = REQUEST_STAGE_RANGE;
	else if (plan->restrictions.is_simple_key &&
	    (plan->restrictions.is_simple_clustering ||
		plan->restrictions.table->clustering_count == 0))
		prepared->stage = REQUEST_STAGE_READ;
	else
		prepared->stage = REQUEST_STAGE_SLICE;
	return 0;
}
