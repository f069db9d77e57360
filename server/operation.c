/* SPDX-License-Identifier: Apache-2.0 */
#include "server/operation.h"
#include "base/uuid.h"
#include "server/guardrails.h"
#include "server/prepare.h"
#include "storage/counter.h"

/* 2010-01-01T00:00:00Z: prepended elements have times as long before it as now is after it. */
#define OPERATION_REFERENCE_US INT64_C(1262304000000000)

/* What Cassandra counts of a cell beside its value and path: timestamp, TTL, expiry. */
enum { OPERATION_CELL_OVERHEAD = 16 };

/* ---- Preparation --------------------------------------------------------------------------- */

static const char *
operation_text(struct preparation *preparation, const struct ast_assignment *assignment)
{
	struct buffer buffer;
	const char *column = assignment->column.text.text, *text;

	buffer_init(&buffer);
	switch (assignment->kind) {
	case AST_ASSIGN_SET:
		buffer_printf(&buffer, "%s = ", column);
		break;
	case AST_ASSIGN_ADD:
		buffer_printf(&buffer, "%s = %s + ", column, column);
		break;
	case AST_ASSIGN_SUBTRACT:
		buffer_printf(&buffer, "%s = %s - ", column, column);
		break;
	case AST_ASSIGN_PREPEND:
		buffer_printf(&buffer, "%s = ", column);
		ast_term_text(preparation->statement, assignment->value, &buffer);
		buffer_printf(&buffer, " - %s", column);
		break;
	case AST_ASSIGN_SET_ELEMENT:
		buffer_printf(&buffer, "%s[", column);
		ast_term_text(preparation->statement, assignment->element, &buffer);
		buffer_put_string(&buffer, "] = ");
		break;
	case AST_ASSIGN_SET_FIELD:
		buffer_printf(&buffer, "%s.%s = ", column, assignment->field.text.text);
		break;
	}
	if (assignment->kind != AST_ASSIGN_PREPEND)
		ast_term_text(preparation->statement, assignment->value, &buffer);
	text = arena_strndup(preparation->arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}

/* Cassandra's refusal of an operation that the column's type does not have. */
static int
operation_refuse(struct preparation *preparation, const struct ast_assignment *assignment,
    const char *what, const struct column_metadata *column, struct error *err)
{
	return error_set(err, ERROR_INVALID, "Invalid operation (%s) for %s column %.*s",
	    operation_text(preparation, assignment), what, (int)column->name.size,
	    column->name.data);
}

int
operation_prepare_set(struct preparation *preparation, const struct column_metadata *column,
    const struct ast_term *value, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);

	*out = (struct operation){.kind = OPERATION_SET, .column = column};
	if (column->type->kind == TYPE_COUNTER)
		return error_set(err, ERROR_INVALID,
		    "Cannot set the value of counter column %.*s (counters can only be "
		    "incremented/decremented, not set)",
		    (int)column->name.size, column->name.data);
	return term_prepare(preparation, value, &receiver, &out->value, err);
}

/* c = c + v and c = c - v. */
static int
operation_prepare_sum(struct preparation *preparation, const struct ast_assignment *assignment,
    const struct column_metadata *column, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);
	bool is_add = assignment->kind == AST_ASSIGN_ADD;
	const struct type *type = column->type;

	if (type->kind == TYPE_COUNTER) {
		out->kind = is_add ? OPERATION_INCREMENT : OPERATION_DECREMENT;
		return term_prepare(preparation, assignment->value, &receiver, &out->value, err);
	}
	if (type_is_tuple(type))
		return operation_refuse(preparation, assignment, "tuple", column, err);
	if (!type_is_collection(type))
		return operation_refuse(preparation, assignment, "non counter", column, err);
	if (!type->is_multi_cell)
		return operation_refuse(preparation, assignment, "frozen collection", column, err);
	if (type->kind == TYPE_LIST)
		out->kind = is_add ? OPERATION_APPEND : OPERATION_DISCARD;
	else
		out->kind = is_add ? OPERATION_ADD : OPERATION_REMOVE;
	/* What is taken from a map is a set of keys. */
	if (type->kind == TYPE_MAP && !is_add) {
		receiver.type = type_set(preparation->arena, type->params[0], false);
		if (receiver.type == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for a type");
	}
	if (term_prepare(preparation, assignment->value, &receiver, &out->value, err) == 0)
		return 0;
	if (type->kind == TYPE_MAP && err != NULL && err->code == ERROR_INVALID) {
		struct buffer text;

		buffer_init(&text);
		ast_term_text(preparation->statement, assignment->value, &text);
		error_set(err, ERROR_INVALID,
		    is_add ? "Value for a map addition has to be a map, but was: '%.*s'"
			   : "Value for a map substraction has to be a set, but was: '%.*s'",
		    (int)text.size, (const char *)text.data);
		buffer_fini(&text);
	}
	return -1;
}

static int
operation_prepare_prepend(struct preparation *preparation, const struct ast_assignment *assignment,
    const struct column_metadata *column, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);

	if (column->type->kind != TYPE_LIST)
		return operation_refuse(preparation, assignment, "non list", column, err);
	if (!column->type->is_multi_cell)
		return operation_refuse(preparation, assignment, "frozen list", column, err);
	out->kind = OPERATION_PREPEND;
	return term_prepare(preparation, assignment->value, &receiver, &out->value, err);
}

static int
operation_prepare_element(struct preparation *preparation, const struct ast_assignment *assignment,
    const struct column_metadata *column, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);
	const struct type *type = column->type;
	struct column_spec key, value;

	if (!type_is_collection(type))
		return operation_refuse(preparation, assignment, "non collection", column, err);
	if (!type->is_multi_cell)
		return operation_refuse(preparation, assignment, "frozen collection", column, err);
	if (type->kind == TYPE_SET)
		return operation_refuse(preparation, assignment, "set", column, err);
	if (type->kind == TYPE_LIST) {
		out->kind = OPERATION_SET_INDEX;
		key =
		    term_part_receiver(preparation, &receiver, type_native(TYPE_INT), "idx(%.*s)");
		value = term_part_receiver(preparation, &receiver, type->params[0], "value(%.*s)");
	} else {
		out->kind = OPERATION_SET_KEY;
		key = term_part_receiver(preparation, &receiver, type->params[0], "key(%.*s)");
		value = term_part_receiver(preparation, &receiver, type->params[1], "value(%.*s)");
	}
	if (term_prepare(preparation, assignment->element, &key, &out->element, err) != 0)
		return -1;
	return term_prepare(preparation, assignment->value, &value, &out->value, err);
}

static int
operation_prepare_field(struct preparation *preparation, const struct ast_assignment *assignment,
    const struct column_metadata *column, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);
	int field;

	if (column->type->kind != TYPE_UDT)
		return operation_refuse(preparation, assignment, "non-UDT", column, err);
	if (!column->type->is_multi_cell)
		return operation_refuse(preparation, assignment, "frozen UDT", column, err);
	field = type_field_index(column->type, ast_slice(assignment->field.text));
	if (field < 0)
		return error_set(err, ERROR_INVALID,
		    "UDT column %.*s does not have a field named %s", (int)column->name.size,
		    column->name.data, assignment->field.text.text);
	out->kind = OPERATION_SET_FIELD;
	out->field = (uint16_t)field;
	receiver.name = slice_of_string(arena_printf(preparation->arena, "%.*s.%s",
	    (int)column->name.size, column->name.data, assignment->field.text.text));
	receiver.type = column->type->params[field];
	return term_prepare(preparation, assignment->value, &receiver, &out->value, err);
}

int
operation_prepare_assignment(struct preparation *preparation,
    const struct ast_assignment *assignment, const struct column_metadata *column,
    struct operation *out, struct error *err)
{
	*out = (struct operation){.column = column};
	switch (assignment->kind) {
	case AST_ASSIGN_SET:
		return operation_prepare_set(preparation, column, assignment->value, out, err);
	case AST_ASSIGN_ADD:
	case AST_ASSIGN_SUBTRACT:
		return operation_prepare_sum(preparation, assignment, column, out, err);
	case AST_ASSIGN_PREPEND:
		return operation_prepare_prepend(preparation, assignment, column, out, err);
	case AST_ASSIGN_SET_ELEMENT:
		return operation_prepare_element(preparation, assignment, column, out, err);
	case AST_ASSIGN_SET_FIELD:
		return operation_prepare_field(preparation, assignment, column, out, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of assignment");
}

int
operation_prepare_deletion(struct preparation *preparation, const struct ast_deletion *deletion,
    const struct column_metadata *column, struct operation *out, struct error *err)
{
	struct column_spec receiver = prepare_receiver(preparation->table, column);
	const struct type *type = column->type;
	struct column_spec key;
	int field;

	*out = (struct operation){.kind = OPERATION_DELETE, .column = column};
	if (deletion->field.text.text != NULL) {
		if (type->kind != TYPE_UDT)
			return error_set(err, ERROR_INVALID,
			    "Invalid field deletion operation for non-UDT column %.*s",
			    (int)column->name.size, column->name.data);
		if (!type->is_multi_cell)
			return error_set(err, ERROR_INVALID,
			    "Frozen UDT column %.*s does not support field deletions",
			    (int)column->name.size, column->name.data);
		field = type_field_index(type, ast_slice(deletion->field.text));
		if (field < 0)
			return error_set(err, ERROR_INVALID,
			    "UDT column %.*s does not have a field named %s",
			    (int)column->name.size, column->name.data, deletion->field.text.text);
		out->kind = OPERATION_DELETE_FIELD;
		out->field = (uint16_t)field;
		return 0;
	}
	if (deletion->element == NULL)
		return 0;
	if (!type_is_collection(type))
		return error_set(err, ERROR_INVALID,
		    "Invalid deletion operation for non collection column %.*s",
		    (int)column->name.size, column->name.data);
	if (!type->is_multi_cell)
		return error_set(err, ERROR_INVALID,
		    "Invalid deletion operation for frozen collection column %.*s",
		    (int)column->name.size, column->name.data);
	out->kind = type->kind == TYPE_LIST ? OPERATION_DELETE_INDEX : OPERATION_DELETE_ELEMENT;
	key = term_part_receiver(preparation, &receiver,
	    type->kind == TYPE_LIST ? type_native(TYPE_INT) : type->params[0],
	    type->kind == TYPE_LIST      ? "idx(%.*s)"
		: type->kind == TYPE_SET ? "value(%.*s)"
					 : "key(%.*s)");
	return term_prepare(preparation, deletion->element, &key, &out->element, err);
}

bool
operation_needs_read(const struct operation *operation)
{
	return operation->kind == OPERATION_SET_INDEX || operation->kind == OPERATION_DISCARD ||
	    operation->kind == OPERATION_DELETE_INDEX;
}

/* ---- Cells --------------------------------------------------------------------------------- */

static struct cell *
operation_add_cell(
    struct operation_target *target, const struct column_metadata *column, struct error *err)
{
	struct cell *cells;
	uint32_t capacity;

	if (target->cell_count == target->cell_capacity) {
		capacity = target->cell_capacity == 0 ? 16 : target->cell_capacity * 2;
		cells = arena_alloc(target->terms->arena, capacity * sizeof(*cells));
		if (cells == NULL) {
			error_set(err, ERROR_NO_MEMORY, "no memory for cells");
			return NULL;
		}
		if (target->cell_count > 0)
			memcpy(cells, target->cells, target->cell_count * sizeof(*cells));
		target->cells = cells;
		target->cell_capacity = capacity;
	}
	cells = &target->cells[target->cell_count++];
	*cells = (struct cell){.column = column,
	    .timestamp = target->timestamp,
	    .ttl = TTL_NONE,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	    .path = slice_null,
	    .value = slice_empty};
	return cells;
}

static int
operation_put(struct operation_target *target, const struct column_metadata *column,
    struct slice path, struct slice value, struct error *err)
{
	struct cell *cell = operation_add_cell(target, column, err);

	if (cell == NULL)
		return -1;
	cell->path = path;
	cell->value = value;
	if (target->ttl != TTL_NONE) {
		cell->ttl = target->ttl;
		cell->local_deletion_time = (int32_t)(target->now_seconds + target->ttl);
	}
	return 0;
}

static int
operation_put_tombstone(struct operation_target *target, const struct column_metadata *column,
    struct slice path, struct error *err)
{
	struct cell *cell = operation_add_cell(target, column, err);

	if (cell == NULL)
		return -1;
	cell->path = path;
	cell->local_deletion_time = (int32_t)target->now_seconds;
	return 0;
}

static void
operation_delete_complex(
    struct operation_target *target, const struct column_metadata *column, int64_t timestamp)
{
	target->deletions[target->deletion_count++] =
	    (struct complex_deletion){column, {timestamp, (int32_t)target->now_seconds}};
}

static int
operation_eval(const struct term *term, const struct operation_target *target, struct slice *out,
    bool *is_unset, struct error *err)
{
	return term_eval(term, target->terms, out, is_unset, err);
}

/* A path for a list's element: after all of before, or (is_prepended) in front of them. */
static int
operation_list_path(
    struct operation_target *target, bool is_prepended, struct slice *out, struct error *err)
{
	struct uuid *uuid = arena_alloc(target->terms->arena, sizeof(*uuid));

	if (uuid == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a list's path");
	target->next_timeuuid(target->user, uuid->bytes);
	if (is_prepended)
		*uuid = uuid_from_time(
		    2 * uuid_ticks_of_unix_us(OPERATION_REFERENCE_US) - uuid_ticks(uuid),
		    load_u64(uuid->bytes + 8));
	*out = slice_of(uuid->bytes, sizeof(uuid->bytes));
	return 0;
}

static int
operation_elements(const struct type *type, struct slice value, struct arena *arena,
    struct slice **elements, uint32_t *count, struct error *err)
{
	struct type_iterator iterator;

	type_iterator_init(&iterator, type, value);
	*elements = arena_calloc(arena, iterator.count, sizeof(**elements));
	if (*elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for elements");
	*count = 0;
	while (
	    *count < iterator.count && type_iterator_next(&iterator, &(*elements)[*count], NULL)) {
		if (slice_is_null((*elements)[*count]) && type->kind != TYPE_UDT)
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside collections");
		(*count)++;
	}
	return 0;
}

/* The cells of a whole multi-cell value. */
static int
operation_put_elements(const struct operation *operation, struct operation_target *target,
    struct slice value, bool is_prepended, struct error *err)
{
	const struct column_metadata *column = operation->column;
	const struct type *type = column->type;
	struct slice *elements, path = slice_null;
	uint32_t count, width = type->kind == TYPE_MAP ? 2 : 1;
	uint8_t *field;

	if (operation_elements(type, value, target->terms->arena, &elements, &count, err) != 0)
		return -1;
	for (uint32_t n = 0; n + width <= count; n += width) {
		uint32_t i = is_prepended ? count - 1 - n : n;

		switch (type->kind) {
		case TYPE_LIST:
			if (operation_list_path(target, is_prepended, &path, err) != 0 ||
			    operation_put(target, column, path, elements[i], err) != 0)
				return -1;
			break;
		case TYPE_SET:
			if (operation_put(target, column, elements[i], slice_empty, err) != 0)
				return -1;
			break;
		case TYPE_MAP:
			if (operation_put(target, column, elements[i], elements[i + 1], err) != 0)
				return -1;
			break;
		default:
			if (slice_is_null(elements[i]))
				break;
			field = arena_alloc_bytes(target->terms->arena, 2);
			if (field == NULL)
				return error_set(err, ERROR_NO_MEMORY, "no memory for a field");
			store_u16(field, (uint16_t)i);
			if (operation_put(target, column, slice_of(field, 2), elements[i], err) !=
			    0)
				return -1;
		}
	}
	return 0;
}

/* A collection that is written whole, or the part that is added to it: its cells are those from `first` on. */
static int
operation_guard(const struct operation *operation, const struct operation_target *target,
    uint32_t first, struct error *err)
{
	struct execution *execution = target->terms->execution;
	const struct column_metadata *column = operation->column;
	int64_t size = 0;
	uint32_t items = target->cell_count - first;

	if (column->type->kind != TYPE_LIST && column->type->kind != TYPE_SET &&
	    column->type->kind != TYPE_MAP)
		return 0;
	if (items == 0 ||
	    (!guardrail_is_set(execution, GUARDRAIL_ITEMS_PER_COLLECTION) &&
		!guardrail_is_set(execution, GUARDRAIL_COLLECTION_SIZE)))
		return 0;
	for (uint32_t i = first; i < target->cell_count; i++) {
		const struct cell *cell = &target->cells[i];

		size += OPERATION_CELL_OVERHEAD + (int64_t)cell->value.size +
		    (int64_t)(slice_is_null(cell->path) ? 0 : cell->path.size);
	}
	if (!column->is_complex)
		items = (uint32_t)type_collection_size(target->cells[first].value);
	return guardrail_check_collection(execution, column->name, items, size, err);
}

static int
operation_run_set(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	const struct column_metadata *column = operation->column;
	uint32_t first = target->cell_count;
	struct slice value;
	bool is_unset;

	if (operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (!column->is_complex) {
		if (slice_is_null(value))
			return operation_put_tombstone(target, column, slice_null, err);
		if (operation_put(target, column, slice_null, value, err) != 0)
			return -1;
		return operation_guard(operation, target, first, err);
	}
	operation_delete_complex(target, column, target->timestamp - 1);
	if (slice_is_null(value))
		return 0;
	if (operation_put_elements(operation, target, value, false, err) != 0)
		return -1;
	return operation_guard(operation, target, first, err);
}

/* The live cells of the column that were read. */
static const struct cell **
operation_existing(
    const struct operation *operation, const struct operation_target *target, uint32_t *count)
{
	const struct row *row = target->existing;
	const struct cell **cells;

	*count = 0;
	if (row == NULL)
		return NULL;
	cells = arena_calloc(target->terms->arena, row->cell_count, sizeof(*cells));
	for (uint32_t i = 0; cells != NULL && i < row->cell_count; i++) {
		if (slice_equal(row->cells[i].column->name, operation->column->name) &&
		    cell_is_live(&row->cells[i], target->now_seconds))
			cells[(*count)++] = &row->cells[i];
	}
	return cells;
}

static int
operation_run_index(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	bool is_delete = operation->kind == OPERATION_DELETE_INDEX;
	const struct cell **cells;
	struct slice index_bytes, value = slice_null;
	uint32_t count;
	int32_t index;
	bool is_unset = false;

	if (operation_eval(operation->element, target, &index_bytes, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return is_delete
		    ? 0
		    : error_set(err, ERROR_INVALID, "Invalid unset value for list index");
	if (slice_is_null(index_bytes) || index_bytes.size != 4)
		return error_set(err, ERROR_INVALID, "Invalid null value for list index");
	index = (int32_t)load_u32(index_bytes.data);
	cells = operation_existing(operation, target, &count);
	if (count == 0)
		return error_set(err, ERROR_INVALID,
		    "Attempted to %s an element %s a list which is null",
		    is_delete ? "delete" : "set", is_delete ? "from" : "on");
	if (index < 0 || (uint32_t)index >= count)
		return error_set(err, ERROR_INVALID, "List index %d out of bound, list has size %u",
		    index, count);
	if (is_delete)
		return operation_put_tombstone(target, operation->column, cells[index]->path, err);
	if (operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value))
		return operation_put_tombstone(target, operation->column, cells[index]->path, err);
	return operation_put(target, operation->column, cells[index]->path, value, err);
}

static int
operation_run_discard(const struct operation *operation, struct operation_target *target,
    struct slice value, struct error *err)
{
	const struct type *type = operation->column->type;
	const struct cell **cells;
	struct slice *elements;
	uint32_t count, element_count;

	cells = operation_existing(operation, target, &count);
	if (operation_elements(type, value, target->terms->arena, &elements, &element_count, err) !=
	    0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < element_count; j++) {
			if (!slice_equal(cells[i]->value, elements[j]))
				continue;
			if (operation_put_tombstone(
				target, operation->column, cells[i]->path, err) != 0)
				return -1;
			break;
		}
	}
	return 0;
}

static int
operation_run_remove(const struct operation *operation, struct operation_target *target,
    struct slice value, struct error *err)
{
	struct slice *elements;
	uint32_t count;

	if (operation_elements(
		operation->value->type, value, target->terms->arena, &elements, &count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		if (operation_put_tombstone(target, operation->column, elements[i], err) != 0)
			return -1;
	}
	return 0;
}

/* c = c + v for collections; null adds nothing. */
static int
operation_run_collection(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	uint32_t first = target->cell_count;
	struct slice value;
	bool is_unset;

	if (operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset || slice_is_null(value))
		return 0;
	switch (operation->kind) {
	case OPERATION_DISCARD:
		return operation_run_discard(operation, target, value, err);
	case OPERATION_REMOVE:
		return operation_run_remove(operation, target, value, err);
	case OPERATION_PREPEND:
		return operation_put_elements(operation, target, value, true, err);
	default:
		if (operation_put_elements(operation, target, value, false, err) != 0)
			return -1;
		return operation_guard(operation, target, first, err);
	}
}

static int
operation_run_key(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	struct slice key, value;
	bool is_unset;

	if (operation_eval(operation->element, target, &key, &is_unset, err) != 0)
		return -1;
	if (operation->kind == OPERATION_DELETE_ELEMENT) {
		if (is_unset)
			return 0;
		if (slice_is_null(key))
			return error_set(err, ERROR_INVALID, "Invalid null value for %s",
			    operation->column->type->kind == TYPE_SET ? "set element" : "map key");
		return operation_put_tombstone(target, operation->column, key, err);
	}
	if (is_unset)
		return error_set(err, ERROR_INVALID, "Invalid unset map key");
	if (slice_is_null(key))
		return error_set(err, ERROR_INVALID, "Invalid null map key");
	if (operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value))
		return operation_put_tombstone(target, operation->column, key, err);
	return operation_put(target, operation->column, key, value, err);
}

static int
operation_run_field(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	uint8_t *field = arena_alloc_bytes(target->terms->arena, 2);
	struct slice value = slice_null;
	bool is_unset = false;

	if (field == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a field");
	store_u16(field, operation->field);
	if (operation->kind == OPERATION_SET_FIELD &&
	    operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value))
		return operation_put_tombstone(target, operation->column, slice_of(field, 2), err);
	return operation_put(target, operation->column, slice_of(field, 2), value, err);
}

static int
operation_run_counter(
    const struct operation *operation, struct operation_target *target, struct error *err)
{
	struct slice value;
	bool is_unset;
	int64_t delta;

	if (operation_eval(operation->value, target, &value, &is_unset, err) != 0)
		return -1;
	if (is_unset)
		return 0;
	if (slice_is_null(value) || value.size != 8)
		return error_set(err, ERROR_INVALID, "Invalid null value for counter increment");
	delta = (int64_t)load_u64(value.data);
	if (operation->kind == OPERATION_DECREMENT) {
		if (delta == INT64_MIN)
			return error_set(err, ERROR_INVALID,
			    "The negation of %lld overflows supported counter precision (signed 8 "
			    "bytes integer)",
			    (long long)delta);
		delta = -delta;
	}
	value = counter_make_update(delta, target->terms->arena);
	if (slice_is_null(value))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a counter");
	return operation_put(target, operation->column, slice_null, value, err);
}

int
operation_run(const struct operation *operation, struct operation_target *target, struct error *err)
{
	switch (operation->kind) {
	case OPERATION_SET:
		return operation_run_set(operation, target, err);
	case OPERATION_SET_FIELD:
	case OPERATION_DELETE_FIELD:
		return operation_run_field(operation, target, err);
	case OPERATION_SET_KEY:
	case OPERATION_DELETE_ELEMENT:
		return operation_run_key(operation, target, err);
	case OPERATION_SET_INDEX:
	case OPERATION_DELETE_INDEX:
		return operation_run_index(operation, target, err);
	case OPERATION_APPEND:
	case OPERATION_PREPEND:
	case OPERATION_DISCARD:
	case OPERATION_ADD:
	case OPERATION_REMOVE:
		return operation_run_collection(operation, target, err);
	case OPERATION_INCREMENT:
	case OPERATION_DECREMENT:
		return operation_run_counter(operation, target, err);
	case OPERATION_DELETE:
		if (!operation->column->is_complex)
			return operation_put_tombstone(target, operation->column, slice_null, err);
		operation_delete_complex(target, operation->column, target->timestamp);
		return 0;
	}
	return error_set(err, ERROR_SERVER, "unknown kind of operation");
}
