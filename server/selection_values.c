/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selections with the values of rows: columns out of cells, selectors, aggregates, result cells.
 */
#include <stdlib.h>
#include "cql/json.h"
#include "storage/row_copy.h"
#include "server/selection.h"
#include "storage/counter.h"

enum { SELECTION_INLINE_CELLS = 64 };

static int
selection_values_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a row's values");
}

static bool
selection_is_cell_of(const struct cell *cell, const struct column_metadata *column)
{
	/* A row that came from an older SSTable may have columns of its header's own. */
	return cell->column == column || slice_equal(cell->column->name, column->name);
}

/* The run of cells of a column: *count of them from the returned one. */
static const struct cell *
selection_cells(const struct row *row, const struct column_metadata *column, uint32_t *count)
{
	*count = 0;
	if (row == NULL)
		return NULL;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		if (!selection_is_cell_of(&row->cells[i], column))
			continue;
		while (i + *count < row->cell_count &&
		    selection_is_cell_of(&row->cells[i + *count], column))
			(*count)++;
		return &row->cells[i];
	}
	return NULL;
}

/* Put the cells of a multi-cell column together. */
static int
selection_assemble(const struct column_metadata *column, const struct cell *cells, uint32_t count,
    int64_t now_seconds, struct arena *arena, struct slice *out, struct error *err)
{
	const struct type *type = column->type;
	struct slice *elements;
	uint32_t n = 0;

	elements = arena_calloc(arena,
	    type->kind == TYPE_UDT ? type->param_count : (size_t)count * 2, sizeof(*elements));
	if (elements == NULL)
		return selection_values_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		if (!cell_is_live(&cells[i], now_seconds))
			continue;
		switch (type->kind) {
		case TYPE_LIST:
			elements[n++] = cells[i].value;
			break;
		case TYPE_SET:
			elements[n++] = cells[i].path;
			break;
		case TYPE_MAP:
			elements[2 * n] = cells[i].path;
			elements[2 * n + 1] = cells[i].value;
			n++;
			break;
		default: {
			uint32_t field =
			    cells[i].path.size == 2 ? load_u16(cells[i].path.data) : UINT32_MAX;

			if (field < type->param_count) {
				elements[field] = cells[i].value;
				n = field + 1 > n ? field + 1 : n;
			}
		}
		}
	}
	*out = slice_null;
	if (n == 0)
		return 0;
	*out = type_pack(type, elements, type->kind == TYPE_UDT ? type->param_count : n, arena);
	if (slice_is_null(*out))
		return selection_values_no_memory(err);
	return 0;
}

static int
selection_cell_value(const struct selection_row *row, const struct row *of,
    const struct column_metadata *column, struct slice *out, struct error *err)
{
	uint32_t count;
	const struct cell *cells = selection_cells(of, column, &count);
	uint8_t *total;

	*out = slice_null;
	if (cells == NULL)
		return 0;
	if (column->is_complex)
		return selection_assemble(
		    column, cells, count, row->now_seconds, row->terms->arena, out, err);
	if (!cell_is_live(cells, row->now_seconds))
		return 0;
	*out = cells->value;
	if (column->type->kind == TYPE_COUNTER) {
		total = arena_alloc_bytes(row->terms->arena, 8);
		if (total == NULL)
			return selection_values_no_memory(err);
		store_u64(total, (uint64_t)counter_total(cells->value));
		*out = slice_of(total, 8);
	}
	return 0;
}

int
selection_column_value(const struct selection_row *row, const struct column_metadata *column,
    struct slice *out, struct error *err)
{
	switch (column->kind) {
	case COLUMN_PARTITION_KEY:
		*out = row->key[column->position];
		return 0;
	case COLUMN_CLUSTERING:
		*out = row->row != NULL && column->position < row->row->clustering_count
		    ? row->row->clustering[column->position]
		    : slice_null;
		return 0;
	case COLUMN_STATIC:
		return selection_cell_value(row, row->static_row, column, out, err);
	case COLUMN_REGULAR:
		break;
	}
	return selection_cell_value(row, row->row, column, out, err);
}

/* ---- Selectors ----------------------------------------------------------------------------- */

static int
selector_put_number(const struct selection_row *row, int64_t value, size_t size, struct slice *out,
    struct error *err)
{
	uint8_t *bytes = arena_alloc_bytes(row->terms->arena, 8);

	if (bytes == NULL)
		return selection_values_no_memory(err);
	if (size == 8)
		store_u64(bytes, (uint64_t)value);
	else
		store_u32(bytes, (uint32_t)value);
	*out = slice_of(bytes, size);
	return 0;
}

static int
selector_eval_time(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err)
{
	const struct row *of = selector->column->kind == COLUMN_STATIC ? row->static_row : row->row;
	uint32_t count;
	const struct cell *cells = selection_cells(of, selector->column, &count);
	int64_t newest = INT64_MIN;

	*out = slice_null;
	for (uint32_t i = 0; i < count; i++) {
		if (!cell_is_live(&cells[i], row->now_seconds))
			continue;
		if (selector->kind == SELECTOR_TTL) {
			if (cells[i].ttl == TTL_NONE)
				return 0;
			return selector_put_number(
			    row, cells[i].local_deletion_time - row->now_seconds, 4, out, err);
		}
		newest = cells[i].timestamp > newest ? cells[i].timestamp : newest;
	}
	if (newest == INT64_MIN)
		return 0;
	return selector_put_number(row, newest, 8, out, err);
}

static int
selector_eval_element(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err)
{
	const struct type *type = selector->operands[0]->type;
	struct type_iterator iterator;
	struct slice collection, key, element, value;

	*out = slice_null;
	if (selector_eval(selector->operands[0], row, &collection, err) != 0 ||
	    term_eval(selector->term, row->terms, &key, NULL, err) != 0)
		return -1;
	if (slice_is_null(key))
		return error_set(err, ERROR_INVALID, "Invalid null value for element selection");
	if (slice_is_null(collection))
		return 0;
	type_iterator_init(&iterator, type, collection);
	while (type_iterator_next(&iterator, &element, NULL)) {
		value = element;
		if (type->kind == TYPE_MAP && !type_iterator_next(&iterator, &value, NULL))
			break;
		if (type_compare(type->params[0], element, key) == 0) {
			*out = value;
			return 0;
		}
	}
	return 0;
}

static int
selector_eval_slice(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err)
{
	const struct type *type = selector->operands[0]->type;
	struct type_iterator iterator;
	struct slice collection, bounds[2], element, value;
	struct slice *kept;
	bool is_unset[2] = {true, true};
	uint32_t n = 0, width = type->kind == TYPE_MAP ? 2 : 1;

	*out = slice_null;
	if (selector_eval(selector->operands[0], row, &collection, err) != 0)
		return -1;
	if (selector->term != NULL &&
	    term_eval(selector->term, row->terms, &bounds[0], &is_unset[0], err) != 0)
		return -1;
	if (selector->to != NULL &&
	    term_eval(selector->to, row->terms, &bounds[1], &is_unset[1], err) != 0)
		return -1;
	if ((!is_unset[0] && slice_is_null(bounds[0])) ||
	    (!is_unset[1] && slice_is_null(bounds[1])))
		return error_set(err, ERROR_INVALID, "Invalid null value for slice selection");
	if (slice_is_null(collection))
		return 0;
	type_iterator_init(&iterator, type, collection);
	kept = arena_calloc(row->terms->arena, iterator.count, sizeof(*kept));
	if (kept == NULL)
		return selection_values_no_memory(err);
	while (type_iterator_next(&iterator, &element, NULL)) {
		value = element;
		if (width == 2 && !type_iterator_next(&iterator, &value, NULL))
			break;
		if (!is_unset[0] && type_compare(type->params[0], element, bounds[0]) < 0)
			continue;
		if (!is_unset[1] && type_compare(type->params[0], element, bounds[1]) > 0)
			break;
		kept[n * width] = element;
		if (width == 2)
			kept[n * width + 1] = value;
		n++;
	}
	/* What is left of a multi-cell collection may be nothing: that is null there. */
	if (n == 0 && type->is_multi_cell)
		return 0;
	*out = type_pack(type, kept, n, row->terms->arena);
	return slice_is_null(*out) ? selection_values_no_memory(err) : 0;
}

static int
selector_eval_pack(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err)
{
	const struct type *type = selector->type;
	uint32_t count = selector->operand_count;
	struct slice *parts = arena_calloc(row->terms->arena, count, sizeof(*parts));

	if (parts == NULL)
		return selection_values_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		parts[i] = slice_null;
		if (selector->operands[i] == NULL)
			continue;
		if (selector_eval(selector->operands[i], row, &parts[i], err) != 0)
			return -1;
		if (type_is_collection(type) && slice_is_null(parts[i]))
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside collections");
	}
	if (type->kind == TYPE_SET)
		count = type_sort_elements(type->params[0], parts, count, 1);
	else if (type->kind == TYPE_MAP)
		count = type_sort_elements(type->params[0], parts, count / 2, 2);
	*out = type_pack(type, parts, count, row->terms->arena);
	return slice_is_null(*out) ? selection_values_no_memory(err) : 0;
}

static int
selector_eval_operands(const struct selector *selector, const struct selection_row *row,
    struct slice **out, struct error *err)
{
	struct slice *values =
	    arena_calloc(row->terms->arena, selector->operand_count, sizeof(*values));

	if (values == NULL)
		return selection_values_no_memory(err);
	for (uint32_t i = 0; i < selector->operand_count; i++) {
		if (selector_eval(selector->operands[i], row, &values[i], err) != 0)
			return -1;
	}
	*out = values;
	return 0;
}

static int
selector_eval_field(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err)
{
	struct type_iterator iterator;
	struct slice value;

	*out = slice_null;
	if (selector_eval(selector->operands[0], row, &value, err) != 0)
		return -1;
	if (slice_is_null(value))
		return 0;
	type_iterator_init(&iterator, selector->operands[0]->type, value);
	for (uint32_t i = 0; i <= selector->index; i++) {
		if (!type_iterator_next(&iterator, out, NULL)) {
			*out = slice_null;
			break;
		}
	}
	return 0;
}

int
selector_eval(const struct selector *selector, const struct selection_row *row, struct slice *out,
    struct error *err)
{
	struct slice *values;

	switch (selector->kind) {
	case SELECTOR_COLUMN:
		return selection_column_value(row, selector->column, out, err);
	case SELECTOR_TERM:
		return term_eval(selector->term, row->terms, out, NULL, err);
	case SELECTOR_CALL:
		if (selector_eval_operands(selector, row, &values, err) != 0)
			return -1;
		return function_call(
		    selector->function, row->terms->functions, values, row->terms->arena, out, err);
	case SELECTOR_AGGREGATE:
		*out = row->aggregates != NULL ? row->aggregates[selector->index] : slice_null;
		return 0;
	case SELECTOR_WRITETIME:
	case SELECTOR_MAXWRITETIME:
	case SELECTOR_TTL:
		return selector_eval_time(selector, row, out, err);
	case SELECTOR_FIELD:
		return selector_eval_field(selector, row, out, err);
	case SELECTOR_ELEMENT:
		return selector_eval_element(selector, row, out, err);
	case SELECTOR_SLICE:
		return selector_eval_slice(selector, row, out, err);
	case SELECTOR_PACK:
		return selector_eval_pack(selector, row, out, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of selector %d", (int)selector->kind);
}

/* ---- Result rows --------------------------------------------------------------------------- */

static int
selection_put_json(const struct selection *selection, const struct selection_row *row,
    struct buffer *out, struct error *err)
{
	size_t mark = response_begin_cell(out);
	struct slice value;

	buffer_put_u8(out, '{');
	for (uint32_t i = 0; i < selection->count; i++) {
		if (selector_eval(selection->selectors[i], row, &value, err) != 0)
			return -1;
		if (i > 0)
			buffer_put_string(out, ", ");
		json_put_column_name(selection->names[i], out);
		buffer_put_string(out, ": ");
		if (slice_is_null(value))
			buffer_put_string(out, "null");
		else
			json_from_value(selection->selectors[i]->type, value, out);
	}
	buffer_put_u8(out, '}');
	response_end_cell(out, mark);
	return 0;
}

/*
 * The usual case: plain columns. Cells stand in the order of columns, and so do most selections,
 * so the search for each goes on where the last one ended.
 */
static int
selection_put_simple(const struct selection *selection, const struct selection_row *row,
    struct buffer *out, struct error *err)
{
	uint32_t cursor = 0;

	for (uint32_t i = 0; i < selection->count; i++) {
		const struct column_metadata *column = selection->selectors[i]->column;
		struct slice value = slice_null;

		if (column->kind == COLUMN_REGULAR && row->row != NULL && !column->is_complex &&
		    cursor < row->row->cell_count && row->row->cells[cursor].column == column &&
		    column->type->kind != TYPE_COUNTER) {
			const struct cell *cell = &row->row->cells[cursor++];

			if (cell_is_live(cell, row->now_seconds))
				value = cell->value;
		} else if (selection_column_value(row, column, &value, err) != 0) {
			return -1;
		}
		response_put_cell(out, value);
	}
	return 0;
}

int
selection_put_row(const struct selection *selection, const struct selection_row *row,
    struct buffer *out, struct error *err)
{
	struct slice value;

	if (selection->is_simple)
		return selection_put_simple(selection, row, out, err);
	if (selection->is_json)
		return selection_put_json(selection, row, out, err);
	for (uint32_t i = 0; i < selection->count; i++) {
		if (selector_eval(selection->selectors[i], row, &value, err) != 0)
			return -1;
		response_put_cell(out, value);
	}
	return 0;
}

/* ---- Groups -------------------------------------------------------------------------------- */

int
selection_group_begin(const struct selection *selection, struct selection_group *group,
    struct arena *arena, struct error *err)
{
	*group = (struct selection_group){0};
	group->states = arena_calloc(arena, selection->aggregate_count, sizeof(*group->states));
	if (group->states == NULL)
		return selection_values_no_memory(err);
	for (uint32_t i = 0; i < selection->aggregate_count; i++) {
		group->states[i] =
		    function_aggregate_new(selection->aggregates[i]->function, arena);
		if (group->states[i] == NULL)
			return selection_values_no_memory(err);
	}
	return 0;
}

static int
selection_copy_row(
    const struct row *from, struct arena *arena, const struct row **out, struct error *err)
{
	struct row *copy;

	*out = NULL;
	if (from == NULL)
		return 0;
	copy = arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return selection_values_no_memory(err);
	*out = copy;
	return row_copy(from, copy, arena, err);
}

int
selection_group_add(const struct selection *selection, struct selection_group *group,
    const struct selection_row *row, struct arena *arena, struct error *err)
{
	if (!group->has_row) {
		uint32_t count = row->table->partition_key_count;
		struct slice *key = arena_calloc(arena, count, sizeof(*key));

		if (key == NULL)
			return selection_values_no_memory(err);
		for (uint32_t i = 0; i < count; i++)
			key[i] = arena_copy(arena, row->key[i]);
		group->first = *row;
		group->first.key = key;
		if (selection_copy_row(row->row, arena, &group->first.row, err) != 0 ||
		    selection_copy_row(row->static_row, arena, &group->first.static_row, err) != 0)
			return -1;
		group->has_row = true;
	}
	for (uint32_t i = 0; i < selection->aggregate_count; i++) {
		const struct selector *aggregate = selection->aggregates[i];
		struct slice *values;

		if (selector_eval_operands(aggregate, row, &values, err) != 0 ||
		    function_aggregate_add(
			aggregate->function, group->states[i], values, arena, err) != 0)
			return -1;
	}
	return 0;
}

int
selection_group_end(const struct selection *selection, struct selection_group *group,
    const struct selection_row *empty, struct arena *arena, struct buffer *out, struct error *err)
{
	struct selection_row row = group->has_row ? group->first : *empty;
	struct slice *results = arena_calloc(arena, selection->aggregate_count, sizeof(*results));

	if (results == NULL)
		return selection_values_no_memory(err);
	for (uint32_t i = 0; i < selection->aggregate_count; i++) {
		if (function_aggregate_result(selection->aggregates[i]->function, group->states[i],
			arena, &results[i], err) != 0)
			return -1;
	}
	row.aggregates = results;
	row.terms = empty->terms;
	return selection_put_row(selection, &row, out, err);
}
