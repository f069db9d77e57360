/* SPDX-License-Identifier: Apache-2.0 */
#include "server/modification.h"
#include <stdlib.h>
#include "server/prepare.h"

static int
modification_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a statement");
}

/* ---- USING --------------------------------------------------------------------------------- */

static int
modification_attributes(struct preparation *preparation, const struct ast_attributes *attributes,
    struct modification_plan *out, struct error *err)
{
	struct column_spec timestamp = {out->table->keyspace, out->table->name,
	    slice_of_string("[timestamp]"), type_native(TYPE_BIGINT)};
	struct column_spec ttl = {out->table->keyspace, out->table->name, slice_of_string("[ttl]"),
	    type_native(TYPE_INT)};

	if (attributes->timestamp != NULL &&
	    term_prepare(preparation, attributes->timestamp, &timestamp, &out->timestamp, err) != 0)
		return -1;
	if (attributes->ttl != NULL &&
	    term_prepare(preparation, attributes->ttl, &ttl, &out->ttl, err) != 0)
		return -1;
	if (table_is_counter(out->table)) {
		if (out->timestamp != NULL)
			return error_set(err, ERROR_INVALID,
			    "Cannot provide custom timestamp for counter updates");
		if (out->ttl != NULL)
			return error_set(
			    err, ERROR_INVALID, "Cannot provide custom TTL for counter updates");
	}
	return 0;
}

/* ---- Operations ---------------------------------------------------------------------------- */

static void
modification_add_operation(struct modification_plan *out, const struct operation *operation)
{
	if (operation->column->kind == COLUMN_STATIC)
		out->statics[out->static_count++] = *operation;
	else
		out->regulars[out->regular_count++] = *operation;
	if (operation_needs_read(operation))
		out->needs_read = true;
}

static int
modification_room(
    struct preparation *preparation, struct modification_plan *out, size_t count, struct error *err)
{
	out->statics = arena_calloc(preparation->arena, count, sizeof(*out->statics));
	out->regulars = arena_calloc(preparation->arena, count, sizeof(*out->regulars));
	if (out->statics == NULL || out->regulars == NULL)
		return modification_no_memory(err);
	return 0;
}

/* Cells are made in the order of columns; operations on one column keep their own order. */
static void
modification_sort_operations(struct operation *operations, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct operation moved = operations[i];
		uint32_t n = i;

		for (; n > 0 && operations[n - 1].column->position > moved.column->position; n--)
			operations[n] = operations[n - 1];
		operations[n] = moved;
	}
}

static void
modification_sort(struct modification_plan *out)
{
	modification_sort_operations(out->statics, out->static_count);
	modification_sort_operations(out->regulars, out->regular_count);
}

/* May the row be made without a builder? */
static void
modification_find_direct(struct modification_plan *out)
{
	out->is_direct = out->restrictions.is_simple_key && !out->needs_read &&
	    !out->is_conditional && !out->deletes_rows && !out->is_json &&
	    (out->restrictions.is_simple_clustering || out->is_static_only);
	for (uint32_t i = 0; i < out->static_count; i++) {
		if (out->statics[i].column->is_complex)
			out->is_direct = false;
	}
	for (uint32_t i = 0; i < out->regular_count; i++) {
		if (out->regulars[i].column->is_complex)
			out->is_direct = false;
	}
}

/* ---- INSERT -------------------------------------------------------------------------------- */

struct insert_column {
	const struct column_metadata *column;
	const struct ast_term *raw; /* NULL: a marker of INSERT JSON */
	uint32_t marker;
};

static int
insert_term(struct preparation *preparation, const struct insert_column *insert,
    const struct term **out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, insert->column);
	struct term *term;

	if (insert->raw != NULL)
		return term_prepare(preparation, insert->raw, &receiver, out, err);
	term = arena_zalloc(preparation->arena, sizeof(*term));
	if (term == NULL)
		return modification_no_memory(err);
	term->kind = TERM_MARKER;
	term->type = insert->column->type;
	term->marker = insert->marker;
	*out = term;
	return 0;
}

static int
insert_key(struct preparation *preparation, const struct insert_column *insert,
    struct modification_plan *out, struct error *err)
{
	struct arena *arena = preparation->arena;
	struct restriction *restriction = arena_zalloc(arena, sizeof(*restriction));
	const struct column_metadata *column = insert->column;

	if (restriction == NULL)
		return modification_no_memory(err);
	restriction->kind = RESTRICTION_EQ;
	restriction->column_count = 1;
	restriction->columns = arena_calloc(arena, 1, sizeof(*restriction->columns));
	if (restriction->columns == NULL)
		return modification_no_memory(err);
	restriction->columns[0] = column;
	if (insert_term(preparation, insert, &restriction->value, err) != 0)
		return -1;
	if (column->kind == COLUMN_PARTITION_KEY)
		out->restrictions.partition[column->position] = restriction;
	else
		out->restrictions.clustering[column->position] = restriction;
	return 0;
}

static int
insert_missing(const char *what, const struct column_metadata *columns,
    struct restriction *const *restrictions, uint32_t count, struct error *err)
{
	struct buffer names;
	bool is_missing = false;
	int rc = 0;

	buffer_init(&names);
	for (uint32_t i = 0; i < count; i++) {
		if (restrictions[i] != NULL)
			continue;
		buffer_printf(&names, "%s%.*s", is_missing ? ", " : "", (int)columns[i].name.size,
		    columns[i].name.data);
		is_missing = true;
	}
	if (is_missing)
		rc = error_set(err, ERROR_INVALID, "Some %s are missing: %.*s", what,
		    (int)names.size, (const char *)names.data);
	buffer_fini(&names);
	return rc;
}

static int
insert_columns(struct preparation *preparation, const struct insert_column *columns, uint32_t count,
    struct modification_plan *out, struct error *err)
{
	const struct table_metadata *table = out->table;
	struct restrictions *restrictions = &out->restrictions;
	bool has_clustering = false;

	*restrictions = (struct restrictions){.table = table};
	restrictions->partition = arena_calloc(
	    preparation->arena, table->partition_key_count, sizeof(*restrictions->partition));
	restrictions->clustering = arena_calloc(
	    preparation->arena, table->clustering_count, sizeof(*restrictions->clustering));
	if (restrictions->partition == NULL || restrictions->clustering == NULL ||
	    modification_room(preparation, out, count, err) != 0)
		return modification_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		const struct column_metadata *column = columns[i].column;
		struct operation operation = {.kind = OPERATION_SET, .column = column};

		if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING) {
			has_clustering = has_clustering || column->kind == COLUMN_CLUSTERING;
			if (insert_key(preparation, &columns[i], out, err) != 0)
				return -1;
			continue;
		}
		if (insert_term(preparation, &columns[i], &operation.value, err) != 0)
			return -1;
		modification_add_operation(out, &operation);
	}
	if (insert_missing("partition key parts", table->partition_key, restrictions->partition,
		table->partition_key_count, err) != 0)
		return -1;
	/* Static columns alone need no row. */
	out->is_static_only = out->static_count > 0 && out->regular_count == 0 && !has_clustering &&
	    table->clustering_count > 0;
	if (!out->is_static_only &&
	    insert_missing("clustering keys", table->clustering, restrictions->clustering,
		table->clustering_count, err) != 0)
		return -1;
	restrictions->is_simple_key = true;
	restrictions->is_simple_clustering = !out->is_static_only;
	restrictions->clustering_prefix = out->is_static_only ? 0 : table->clustering_count;
	restrictions->has_clustering = has_clustering;
	out->sets_liveness = !out->is_static_only;
	return 0;
}

static int
insert_prepare_json(struct preparation *preparation, const struct statement_insert *insert,
    struct modification_plan *out, struct error *err)
{
	const struct table_metadata *table = out->table;
	struct column_spec receiver = {
	    table->keyspace, table->name, slice_of_string("[json]"), type_native(TYPE_TEXT)};
	struct insert_column *columns =
	    arena_calloc(preparation->arena, table->column_count, sizeof(*columns));

	if (columns == NULL)
		return modification_no_memory(err);
	out->is_json = true;
	out->default_unset = insert->default_unset;
	if (term_prepare(preparation, insert->json, &receiver, &out->json, err) != 0)
		return -1;
	for (uint32_t i = 0; i < table->column_count; i++) {
		columns[i].column = table->select_order[i];
		columns[i].marker = i;
	}
	return insert_columns(preparation, columns, table->column_count, out, err);
}

static int
insert_prepare(struct preparation *preparation, const struct statement_insert *insert,
    struct modification_plan *out, struct error *err)
{
	struct insert_column *columns;

	if (table_is_counter(out->table))
		return error_set(err, ERROR_INVALID,
		    "INSERT statements are not allowed on counter tables, use UPDATE instead");
	out->if_not_exists = insert->if_not_exists;
	out->is_conditional = insert->if_not_exists;
	if (insert->is_json) {
		if (insert_prepare_json(preparation, insert, out, err) != 0)
			return -1;
	} else {
		if (insert->columns.count == 0)
			return error_set(err, ERROR_INVALID, "No columns provided to INSERT");
		if (insert->columns.count != insert->values.count)
			return error_set(err, ERROR_INVALID, "Unmatched column names/values");
		columns = arena_calloc(preparation->arena, insert->columns.count, sizeof(*columns));
		if (columns == NULL)
			return modification_no_memory(err);
		for (size_t i = 0; i < insert->columns.count; i++) {
			columns[i].column = prepare_column(
			    out->table, ast_slice(insert->columns.items[i].text), err);
			if (columns[i].column == NULL)
				return -1;
			columns[i].raw = insert->values.items[i];
			for (size_t j = 0; j < i; j++) {
				if (columns[j].column == columns[i].column)
					return error_set(err, ERROR_INVALID,
					    "The column names contains duplicates");
			}
		}
		if (insert_columns(
			preparation, columns, (uint32_t)insert->columns.count, out, err) != 0)
			return -1;
	}
	return modification_attributes(preparation, &insert->attributes, out, err);
}

/* ---- UPDATE, DELETE ------------------------------------------------------------------------ */

/* Two assignments of one column go together only when each takes its own part of it. */
static bool
operation_is_compatible(const struct operation *a, const struct operation *b)
{
	if (a->column != b->column)
		return true;
	if (a->kind == OPERATION_SET || b->kind == OPERATION_SET)
		return false;
	if (a->kind == OPERATION_SET_FIELD && b->kind == OPERATION_SET_FIELD)
		return a->field != b->field;
	return true;
}

static int
update_operations(struct preparation *preparation, const struct statement_update *update,
    struct modification_plan *out, struct error *err)
{
	struct operation *all =
	    arena_calloc(preparation->arena, update->assignment_count, sizeof(*all));

	if (all == NULL || modification_room(preparation, out, update->assignment_count, err) != 0)
		return modification_no_memory(err);
	for (size_t i = 0; i < update->assignment_count; i++) {
		const struct ast_assignment *assignment = update->assignments[i];
		const struct column_metadata *column =
		    prepare_column(out->table, ast_slice(assignment->column.text), err);

		if (column == NULL)
			return -1;
		if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
			return error_set(err, ERROR_INVALID,
			    "PRIMARY KEY part %.*s found in SET part", (int)column->name.size,
			    column->name.data);
		if (operation_prepare_assignment(preparation, assignment, column, &all[i], err) !=
		    0)
			return -1;
		for (size_t j = 0; j < i; j++) {
			if (!operation_is_compatible(&all[i], &all[j]))
				return error_set(err, ERROR_INVALID,
				    "Multiple incompatible setting of column %.*s",
				    (int)column->name.size, column->name.data);
		}
		modification_add_operation(out, &all[i]);
	}
	out->is_static_only = out->regular_count == 0;
	return 0;
}

static int
modification_missing_clustering(const struct modification_plan *out, struct error *err)
{
	return insert_missing("clustering keys", out->table->clustering,
	    out->restrictions.clustering, out->table->clustering_count, err);
}

static int
update_prepare(struct preparation *preparation, const struct statement_update *update,
    struct modification_plan *out, struct error *err)
{
	struct restrictions_options options = {.use = RESTRICTIONS_UPDATE};

	/* The order of markers is the order of the text; what is checked first does not matter. */
	if (modification_attributes(preparation, &update->attributes, out, err) != 0 ||
	    update_operations(preparation, update, out, err) != 0)
		return -1;
	options.is_static_only = out->is_static_only;
	if (restrictions_prepare(preparation, &update->where, &options, &out->restrictions, err) !=
		0 ||
	    conditions_prepare(preparation, &update->conditions, out, err) != 0)
		return -1;
	if (out->is_static_only && out->has_regular_condition)
		out->is_static_only = false;
	if (out->is_static_only && out->restrictions.has_clustering &&
	    out->table->clustering_count > 0 && !out->is_conditional)
		return error_set(err, ERROR_INVALID,
		    "Invalid restrictions on clustering columns since the UPDATE statement "
		    "modifies "
		    "only static columns");
	if (!out->is_static_only)
		return modification_missing_clustering(out, err);
	return 0;
}

/* Is every clustering column equal to something, or one of several? */
static bool
modification_has_whole_key(const struct modification_plan *out)
{
	for (uint32_t i = 0; i < out->table->clustering_count; i++) {
		const struct restriction *restriction = out->restrictions.clustering[i];

		if (restriction == NULL || restriction->kind == RESTRICTION_SLICE)
			return false;
	}
	return true;
}

static int
delete_prepare(struct preparation *preparation, const struct statement_delete *delete,
    struct modification_plan *out, struct error *err)
{
	struct restrictions_options options = {.use = RESTRICTIONS_DELETE};
	struct operation operation;
	const struct table_metadata *table = out->table;

	if (modification_attributes(preparation, &delete->attributes, out, err) != 0 ||
	    modification_room(preparation, out, delete->deletion_count, err) != 0)
		return -1;
	for (size_t i = 0; i < delete->deletion_count; i++) {
		const struct column_metadata *column =
		    prepare_column(table, ast_slice(delete->deletions[i]->column.text), err);

		if (column == NULL)
			return -1;
		if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
			return error_set(err, ERROR_INVALID,
			    "Invalid identifier %.*s for deletion (should not be a PRIMARY KEY "
			    "part)",
			    (int)column->name.size, column->name.data);
		if (operation_prepare_deletion(
			preparation, delete->deletions[i], column, &operation, err) != 0)
			return -1;
		modification_add_operation(out, &operation);
	}
	out->deletes_rows = delete->deletion_count == 0;
	out->is_static_only = !out->deletes_rows && out->regular_count == 0;
	options.is_static_only = out->is_static_only;
	if (restrictions_prepare(preparation, &delete->where, &options, &out->restrictions, err) !=
		0 ||
	    conditions_prepare(preparation, &delete->conditions, out, err) != 0)
		return -1;
	if (out->is_conditional && !modification_has_whole_key(out)) {
		if (out->deletes_rows || out->regular_count > 0)
			return error_set(err, ERROR_INVALID,
			    "DELETE statements must restrict all PRIMARY KEY columns with equality "
			    "relations in order to delete non static columns");
		if (out->has_regular_condition)
			return error_set(err, ERROR_INVALID,
			    "DELETE statements must restrict all PRIMARY KEY columns with equality "
			    "relations in order to use IF condition on non static columns");
	}
	if (out->is_static_only && out->restrictions.has_clustering && !out->is_conditional)
		return error_set(err, ERROR_INVALID,
		    "Invalid restrictions on clustering columns since the DELETE statement "
		    "modifies "
		    "only static columns");
	if (out->regular_count > 0 && !modification_has_whole_key(out))
		return error_set(
		    err, ERROR_INVALID, "Range deletions are not supported for specific columns");
	return 0;
}

/* ---- All of them --------------------------------------------------------------------------- */

static int
modification_check(const struct modification_plan *out, struct error *err)
{
	const struct table_metadata *table = out->table;

	if (table->is_view)
		return error_set(err, ERROR_INVALID, "Cannot directly modify a materialized view");
	if (table->is_virtual) {
		if (out->ttl != NULL)
			return error_set(err, ERROR_INVALID,
			    "Expiring columns are not supported by virtual tables");
		if (out->is_conditional)
			return error_set(err, ERROR_INVALID,
			    "Conditional updates are not supported by virtual tables");
		return error_set(err, ERROR_INVALID,
		    "Modification is not supported by table %.*s.%.*s", (int)table->keyspace.size,
		    table->keyspace.data, (int)table->name.size, table->name.data);
	}
	if (!out->is_conditional)
		return 0;
	if (table_is_counter(table))
		return error_set(
		    err, ERROR_INVALID, "Conditional updates are not supported on counter tables");
	if (out->timestamp != NULL)
		return error_set(
		    err, ERROR_INVALID, "Cannot provide custom timestamp for conditional updates");
	if (out->restrictions.has_key_in || !out->restrictions.is_simple_key)
		return error_set(err, ERROR_INVALID,
		    "IN on the partition key is not supported with conditional %s",
		    out->kind == STATEMENT_DELETE ? "deletions" : "updates");
	for (uint32_t i = 0; i < table->clustering_count; i++) {
		if (out->restrictions.clustering[i] != NULL &&
		    out->restrictions.clustering[i]->kind == RESTRICTION_IN)
			return error_set(err, ERROR_INVALID,
			    "IN on the clustering key columns is not supported with conditional %s",
			    out->kind == STATEMENT_DELETE ? "deletions" : "updates");
	}
	return 0;
}

int
modification_prepare(struct preparation *preparation, const struct statement *statement,
    struct prepared_statement *plan, struct modification_plan **out, struct error *err)
{
	struct modification_plan *modification =
	    arena_zalloc(preparation->arena, sizeof(*modification));
	const struct ast_name *name = statement->kind == STATEMENT_INSERT ? &statement->insert.table
	    : statement->kind == STATEMENT_UPDATE                         ? &statement->update.table
						  : &statement->delete.table;
	int rc;

	if (modification == NULL)
		return modification_no_memory(err);
	modification->kind = statement->kind;
	if (prepare_table(preparation->schema, preparation->keyspace, name, &modification->keyspace,
		&modification->table, err) != 0)
		return -1;
	preparation->table = modification->table;
	if (modification->table->is_view)
		return modification_check(modification, err);
	switch (statement->kind) {
	case STATEMENT_INSERT:
		rc = insert_prepare(preparation, &statement->insert, modification, err);
		break;
	case STATEMENT_UPDATE:
		rc = update_prepare(preparation, &statement->update, modification, err);
		break;
	default:
		rc = delete_prepare(preparation, &statement->delete, modification, err);
		break;
	}
	if (rc != 0 || modification_check(modification, err) != 0)
		return -1;
	modification_sort(modification);
	modification_find_direct(modification);
	plan->keyspace_metadata = modification->keyspace;
	plan->table = modification->table;
	plan->is_conditional = plan->is_conditional || modification->is_conditional;
	*out = modification;
	return 0;
}

/* ---- IF ------------------------------------------------------------------------------------ */

/* c[element]: *receiver becomes that of the element's value. */
static int
condition_prepare_element(struct preparation *preparation, const struct ast_condition *raw,
    struct condition *out, struct column_spec *receiver, struct error *err)
{
	const struct column_metadata *column = out->column;
	const struct type *type = column->type;
	bool is_list = type->kind == TYPE_LIST;
	struct column_spec key;

	if (!is_list && type->kind != TYPE_MAP)
		return error_set(err, ERROR_INVALID,
		    type->kind == TYPE_SET
			? "Invalid element access syntax for set column %.*s"
			: "Invalid element access syntax for non-collection column %.*s",
		    (int)column->name.size, column->name.data);
	key = term_part_receiver(preparation, receiver,
	    is_list ? type_native(TYPE_INT) : type->params[0], is_list ? "idx(%.*s)" : "key(%.*s)");
	if (term_prepare(preparation, raw->element, &key, &out->element, err) != 0)
		return -1;
	*receiver =
	    term_part_receiver(preparation, receiver, type->params[is_list ? 0 : 1], "value(%.*s)");
	return 0;
}

/* c.field: *receiver becomes the field's. */
static int
condition_prepare_field(const struct ast_condition *raw, struct condition *out,
    struct column_spec *receiver, struct error *err)
{
	const struct column_metadata *column = out->column;

	if (column->type->kind != TYPE_UDT)
		return error_set(err, ERROR_INVALID,
		    "Cannot refer to a field of non-UDT column '%.*s'", (int)column->name.size,
		    column->name.data);
	out->field = type_field_index(column->type, ast_slice(raw->field.text));
	if (out->field < 0)
		return error_set(err, ERROR_INVALID, "Unknown field %s for column %.*s",
		    raw->field.text.text, (int)column->name.size, column->name.data);
	receiver->type = column->type->params[out->field];
	receiver->name = ast_slice(raw->field.text);
	return 0;
}

static int
condition_check_operator(enum ast_operator operator, const struct type * type, struct error *err)
{
	if (operator== AST_CONTAINS || operator==
	    AST_CONTAINS_KEY ||(operator> AST_NEQ && operator!= AST_IN))
		return error_set(err, ERROR_INVALID, "%s is not supported in IF conditions",
		    ast_operator_text(operator));
	if (operator== AST_EQ || operator== AST_NEQ || operator==
	    AST_IN || !type_references_duration(type))
		return 0;
	return error_set(err, ERROR_INVALID,
	    type->kind == TYPE_DURATION
		? "Slice conditions are not supported on durations"
		: "Slice conditions are not supported on %s containing durations",
	    type_is_collection(type)       ? "collections"
		: type->kind == TYPE_TUPLE ? "tuples"
					   : "UDTs");
}

/* IN ?, or IN and a list of terms. */
static int
condition_prepare_in(struct preparation *preparation, const struct ast_condition *raw,
    struct condition *out, const struct column_spec *receiver, struct error *err)
{
	if (raw->value != NULL) {
		const struct type *frozen = type_freeze(preparation->arena, receiver->type);
		struct column_spec list = term_part_receiver(preparation, receiver,
		    type_list(preparation->arena, frozen, false), "in(%.*s)");

		return term_prepare(preparation, raw->value, &list, &out->value, err);
	}
	out->has_in_list = true;
	out->in_count = (uint32_t)raw->in_values.count;
	out->in_values =
	    arena_calloc(preparation->arena, raw->in_values.count, sizeof(*out->in_values));
	if (out->in_values == NULL)
		return modification_no_memory(err);
	for (uint32_t i = 0; i < out->in_count; i++) {
		if (term_prepare(preparation, raw->in_values.items[i], receiver, &out->in_values[i],
			err) != 0)
			return -1;
	}
	return 0;
}

static int
condition_prepare(struct preparation *preparation, const struct ast_condition *raw,
    struct condition *out, struct error *err)
{
	const struct table_metadata *table = preparation->table;
	const struct column_metadata *column =
	    prepare_column(table, ast_slice(raw->column.text), err);
	struct column_spec receiver;
	int rc = 0;

	if (column == NULL)
		return -1;
	if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
		return error_set(err, ERROR_INVALID,
		    "PRIMARY KEY column '%.*s' cannot have IF conditions", (int)column->name.size,
		    column->name.data);
	if (column->type->kind == TYPE_COUNTER)
		return error_set(err, ERROR_INVALID, "Conditions on counters are not supported");
	receiver = prepare_receiver(table, column);
	out->column = column;
	out->operator= raw->operator;
	out->field = -1;
	if (raw->element != NULL)
		rc = condition_prepare_element(preparation, raw, out, &receiver, err);
	else if (raw->field.text.text != NULL)
		rc = condition_prepare_field(raw, out, &receiver, err);
	if (rc != 0)
		return -1;
	out->type = receiver.type;
	if (condition_check_operator(raw->operator, receiver.type, err) != 0)
		return -1;
	if (raw->operator== AST_IN)
		return condition_prepare_in(preparation, raw, out, &receiver, err);
	return term_prepare(preparation, raw->value, &receiver, &out->value, err);
}

int
conditions_prepare(struct preparation *preparation, const struct ast_conditions *raw,
    struct modification_plan *plan, struct error *err)
{
	struct condition *all;
	uint32_t n = 0;

	plan->if_exists = raw->if_exists;
	if (raw->if_exists) {
		plan->is_conditional = true;
		return 0;
	}
	if (raw->count == 0)
		return 0;
	plan->is_conditional = true;
	all = arena_calloc(preparation->arena, raw->count, sizeof(*all));
	plan->conditions = arena_calloc(preparation->arena, raw->count, sizeof(*all));
	if (all == NULL || plan->conditions == NULL)
		return modification_no_memory(err);
	for (size_t i = 0; i < raw->count; i++) {
		if (condition_prepare(preparation, raw->items[i], &all[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < raw->count; i++) {
		if (all[i].column->kind == COLUMN_REGULAR) {
			plan->conditions[n++] = all[i];
			plan->has_regular_condition = true;
		}
	}
	for (size_t i = 0; i < raw->count; i++) {
		if (all[i].column->kind == COLUMN_STATIC) {
			plan->conditions[n++] = all[i];
			plan->has_static_condition = true;
		}
	}
	plan->condition_count = n;
	return 0;
}
