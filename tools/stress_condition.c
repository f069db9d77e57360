/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_condition.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "cql/parser.h"

/* ---- Preparing --------------------------------------------------------------------------------------- */

static const struct ast_conditions *
stress_condition_of(const struct statement *statement)
{
	return statement->kind == STATEMENT_UPDATE ? &statement->update.conditions
	    : statement->kind == STATEMENT_DELETE  ? &statement->delete.conditions
						   : NULL;
}

static bool
stress_condition_has_marker(const struct ast_condition *each)
{
	bool has_marker = each->value != NULL && each->value->kind == AST_TERM_MARKER;

	for (size_t i = 0; i < each->in_values.count; i++)
		has_marker |= each->in_values.items[i]->kind == AST_TERM_MARKER;
	return has_marker || (each->element != NULL && each->element->kind == AST_TERM_MARKER);
}

static void
stress_condition_put_keys(struct buffer *out, const struct stress_generator *columns,
    uint32_t count, const char *separator)
{
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_string(out, i == 0 ? separator : " AND ");
		cql_quote_identifier(slice_of_string(columns[i].name), out);
		buffer_put_string(out, " = ?");
	}
}

static int
stress_condition_select(struct stress_condition *condition, struct stress_session *session,
    struct buffer *columns, const char *table_name, const struct stress_table *table,
    struct error *err)
{
	struct buffer text;
	int rc;

	buffer_init(&text);
	buffer_put_string(&text, "SELECT ");
	buffer_put_slice(&text, buffer_slice(columns));
	buffer_printf(&text, " FROM %s", table_name);
	stress_condition_put_keys(&text, table->keys, table->key_count, " WHERE ");
	stress_condition_put_keys(&text, table->clusterings, table->clustering_count, " AND ");
	buffer_put_u8(&text, 0);
	rc = stress_session_prepare(session, (const char *)text.data, &condition->select, err);
	if (rc != 0)
		error_prefix(err, "%s", (const char *)text.data);
	buffer_fini(&text);
	if (rc != 0)
		return -1;
	condition->key_columns =
	    xcalloc(condition->select.marker_count + 1, sizeof(*condition->key_columns));
	for (uint32_t i = 0; i < condition->select.marker_count; i++)
		condition->key_columns[i] =
		    stress_table_index(table, condition->select.markers[i].name);
	return 0;
}

int
stress_condition_prepare(struct stress_condition **out, struct stress_session *session,
    const char *query, const char *table_name, const struct stress_table *table, struct error *err)
{
	const struct ast_conditions *conditions = NULL;
	struct stress_condition *condition;
	struct statement *statement;
	struct buffer columns;
	struct error ignored;
	struct arena arena;
	int rc = 0;

	*out = NULL;
	arena_init(&arena, 4096);
	buffer_init(&columns);
	condition = xzalloc(sizeof(*condition));
	/* What cannot be parsed here may be known to the server. */
	if (cql_parse(slice_of_string(query), &arena, &statement, &ignored) == 0)
		conditions = stress_condition_of(statement);
	condition->markers =
	    xcalloc(conditions != NULL ? conditions->count + 1 : 1, sizeof(*condition->markers));
	for (size_t i = 0; rc == 0 && conditions != NULL && i < conditions->count; i++) {
		const struct ast_condition *each = conditions->items[i];

		if (!stress_condition_has_marker(each))
			continue;
		if (each->value == NULL || each->value->kind != AST_TERM_MARKER ||
		    each->element != NULL || each->field.text.text != NULL ||
		    each->operator== AST_IN) {
			rc = error_set(err, ERROR_INVALID,
			    "only a column compared with a marker can be filled in in a condition: "
			    "%s",
			    query);
			break;
		}
		buffer_put_string(&columns, condition->column_count > 0 ? ", " : "");
		cql_quote_identifier(
		    slice_of(each->column.text.text, each->column.text.length), &columns);
		condition->markers[condition->column_count++] = each->value->marker;
	}
	if (rc == 0 && condition->column_count > 0)
		rc = stress_condition_select(condition, session, &columns, table_name, table, err);
	if (rc == 0 && condition->column_count > 0) {
		*out = condition;
		condition = NULL;
	}
	stress_condition_free(condition);
	buffer_fini(&columns);
	arena_fini(&arena);
	return rc;
}

void
stress_condition_free(struct stress_condition *condition)
{
	if (condition == NULL)
		return;
	if (condition->select.query != NULL)
		stress_statement_fini(&condition->select);
	free(condition->key_columns);
	free(condition->markers);
	free(condition);
}

/* ---- Requests ---------------------------------------------------------------------------------------- */

void
stress_condition_put_select(const struct stress_condition *condition,
    const struct stress_partition *partition, struct slice *values, struct buffer *out,
    uint8_t version)
{
	struct stress_request ignored = {.partitions = 0};

	for (uint32_t i = 0; i < condition->select.marker_count; i++)
		values[i] = stress_partition_value(partition, condition->key_columns[i])->wire;
	stress_request_put(out, version, 0, &condition->select, values, 0, &ignored);
}

/* The cell that a marker gets; null where there is no row. False: the marker is none of the condition's. */
static bool
stress_condition_cell(const struct stress_condition *condition, const struct slice *cells,
    uint32_t marker, struct slice *out)
{
	for (uint32_t i = 0; i < condition->column_count; i++) {
		if (condition->markers[i] == marker) {
			*out = cells[i];
			return true;
		}
	}
	return false;
}

int
stress_condition_put_write(const struct stress_condition *condition, struct slice envelope,
    const struct stress_request *request, uint8_t version, const struct client_rows *rows,
    struct buffer *out, struct error *err)
{
	size_t start = out->size, values_at = request->flags_at + (version >= 5 ? 4 : 1);
	struct slice content = rows->content, value, cell;
	struct slice cells[STRESS_COLUMNS_MAX];

	if (rows->metadata.column_count != condition->column_count ||
	    condition->column_count > STRESS_COLUMNS_MAX)
		return error_set(err, ERROR_PROTOCOL, "not the columns of the condition");
	for (uint32_t i = 0; i < condition->column_count; i++) {
		cells[i] = slice_null;
		if (rows->row_count > 0 && client_next_cell(&content, &cells[i]) != 0)
			return error_set(err, ERROR_PROTOCOL, "a row that ends early");
	}
	buffer_put(out, envelope.data, values_at + 2);
	content = slice_of(envelope.data + values_at + 2, envelope.size - values_at - 2);
	for (uint32_t i = 0; i < load_u16(envelope.data + values_at); i++) {
		if (client_next_cell(&content, &value) != 0)
			return error_set(err, ERROR_PROTOCOL, "a request that ends early");
		if (stress_condition_cell(condition, cells, i, &cell))
			value = cell;
		buffer_put_u32(out, slice_is_null(value) ? UINT32_MAX : (uint32_t)value.size);
		buffer_put_slice(out, value);
	}
	buffer_put_slice(out, content);
	stress_request_close(out, start);
	return buffer_check(out, err);
}
