/* SPDX-License-Identifier: Apache-2.0 */
#include "server/selection.h"
#include "cql/parser.h"
#include "server/prepare.h"

static int
selection_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a selection");
}

/* ---- Preparation --------------------------------------------------------------------------- */

static struct selector *
selector_new(struct preparation *preparation, enum selector_kind kind, const struct type *type,
    uint32_t operands, struct error *err)
{
	struct selector *selector = arena_zalloc(preparation->arena, sizeof(*selector));

	if (selector != NULL) {
		selector->kind = kind;
		selector->type = type;
		selector->operand_count = operands;
		selector->operands =
		    arena_calloc(preparation->arena, operands, sizeof(*selector->operands));
	}
	if (selector == NULL || selector->operands == NULL) {
		selection_no_memory(err);
		return NULL;
	}
	return selector;
}

/* A literal, seen as a term: {1, 2}, [a], (1, 2) hold terms when all inside are terms. NULL: no. */
static struct ast_term *
selector_as_term(struct preparation *preparation, const struct ast_selector *raw)
{
	struct ast_term *term;

	if (raw->kind == AST_SELECTOR_TERM)
		return raw->term;
	if (raw->kind == AST_SELECTOR_TYPE_HINT) {
		struct ast_term *inner = selector_as_term(preparation, raw->cast.operand);

		term = arena_zalloc(preparation->arena, sizeof(*term));
		if (inner == NULL || term == NULL)
			return NULL;
		term->kind = AST_TERM_TYPE_CAST;
		term->at = raw->at;
		term->cast.type = raw->cast.type;
		term->cast.term = inner;
		return term;
	}
	if (raw->kind != AST_SELECTOR_LIST && raw->kind != AST_SELECTOR_SET &&
	    raw->kind != AST_SELECTOR_TUPLE)
		return NULL;
	term = arena_zalloc(preparation->arena, sizeof(*term));
	if (term == NULL)
		return NULL;
	term->kind = raw->kind == AST_SELECTOR_LIST ? AST_TERM_LIST
	    : raw->kind == AST_SELECTOR_SET         ? AST_TERM_SET
						    : AST_TERM_TUPLE;
	term->at = raw->at;
	term->terms.count = raw->items.count;
	term->terms.items =
	    arena_calloc(preparation->arena, raw->items.count, sizeof(*term->terms.items));
	for (size_t i = 0; term->terms.items != NULL && i < raw->items.count; i++) {
		term->terms.items[i] = selector_as_term(preparation, raw->items.items[i]);
		if (term->terms.items[i] == NULL)
			return NULL;
	}
	return term->terms.items == NULL ? NULL : term;
}

static const struct column_metadata *
selector_column(
    struct preparation *preparation, const struct ast_identifier *name, struct error *err)
{
	return prepare_column(preparation->table, ast_slice(name->text), err);
}

static void
selection_use_column(struct selection *selection, const struct column_metadata *column)
{
	if (column->kind == COLUMN_STATIC)
		selection->has_static = true;
	else if (column->kind == COLUMN_REGULAR)
		selection->has_regular = true;
	if (column->kind == COLUMN_REGULAR || column->kind == COLUMN_CLUSTERING)
		selection->has_only_key_and_static = false;
}

/* A literal alone has no type in a selection, whatever it looks like: a cast, or something that was
 * cast inside it, has. */
static bool
selection_is_typed(const struct ast_term *raw)
{
	switch (raw->kind) {
	case AST_TERM_TYPE_CAST:
	case AST_TERM_FUNCTION:
		return true;
	case AST_TERM_LIST:
	case AST_TERM_SET:
	case AST_TERM_TUPLE:
		for (size_t i = 0; i < raw->terms.count; i++) {
			if (selection_is_typed(raw->terms.items[i]))
				return true;
		}
		return false;
	default:
		return false;
	}
}

static int
selector_prepare_term(struct preparation *preparation, const struct ast_term *raw,
    const struct type *expected, const struct selector **out, struct error *err)
{
	struct selector *selector;
	struct column_spec receiver = {preparation->table->keyspace, preparation->table->name,
	    slice_of_string("[selection]"), expected};

	if (expected == NULL && selection_is_typed(raw))
		receiver.type = term_exact_type(preparation, raw);
	if (receiver.type == NULL) {
		struct buffer text;
		int rc;

		buffer_init(&text);
		ast_term_text(preparation->statement, raw, &text);
		rc = error_set(err, ERROR_INVALID,
		    "Cannot infer type for term %.*s in selection clause (try using a cast to "
		    "force a type)",
		    (int)text.size, (const char *)text.data);
		buffer_fini(&text);
		return rc;
	}
	selector = selector_new(preparation, SELECTOR_TERM, receiver.type, 0, err);
	if (selector == NULL ||
	    term_prepare(preparation, raw, &receiver, &selector->term, err) != 0)
		return -1;
	*out = selector;
	return 0;
}

/* The type an argument surely has; NULL for literals and markers. Also prepares columns and calls. */
static int
selector_argument(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, struct function_argument *argument,
    const struct selector **prepared, struct error *err)
{
	struct ast_term *term = selector_as_term(preparation, raw);
	struct buffer text;

	*prepared = NULL;
	if (term != NULL) {
		*argument = term_argument(preparation, term);
		return 0;
	}
	if (selector_prepare(preparation, raw, NULL, selection, prepared, err) != 0)
		return -1;
	*argument = (struct function_argument){.type = (*prepared)->type};
	buffer_init(&text);
	selector_name(preparation, raw, &text);
	argument->text = arena_strndup(preparation->arena, (const char *)text.data, text.size);
	if (argument->text == NULL)
		argument->text = "?";
	buffer_fini(&text);
	return 0;
}

static int
selection_grow_aggregates(
    struct preparation *preparation, struct selection *selection, struct error *err)
{
	uint32_t capacity =
	    selection->aggregate_capacity == 0 ? 4 : selection->aggregate_capacity * 2;
	const struct selector **aggregates;

	if (selection->aggregate_count < selection->aggregate_capacity)
		return 0;
	aggregates = arena_calloc(preparation->arena, capacity, sizeof(*aggregates));
	if (aggregates == NULL)
		return selection_no_memory(err);
	for (uint32_t i = 0; i < selection->aggregate_count; i++)
		aggregates[i] = selection->aggregates[i];
	selection->aggregates = aggregates;
	selection->aggregate_capacity = capacity;
	return 0;
}

static int
selector_prepare_operands(struct preparation *preparation, struct ast_selector *const *raws,
    const struct selector **prepared, uint32_t count, const struct function *function,
    struct selection *selection, const struct selector **out, struct error *err)
{
	struct selector *selector;

	selector =
	    selector_new(preparation, function->is_aggregate ? SELECTOR_AGGREGATE : SELECTOR_CALL,
		function->return_type, count, err);
	if (selector == NULL)
		return -1;
	selector->function = function;
	for (uint32_t i = 0; i < count; i++) {
		if (prepared[i] == NULL &&
		    /* There are `count`. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
		    selector_prepare(preparation, raws[i], function->argument_types[i], selection,
			&prepared[i], err) != 0)
			return -1;
		selector->operands[i] = prepared[i];
	}
	if (function->is_aggregate) {
		if (selection_grow_aggregates(preparation, selection, err) != 0)
			return -1;
		selector->index = selection->aggregate_count;
		selection->aggregates[selection->aggregate_count++] = selector;
		selection->is_aggregate = true;
	}
	if (!function->is_pure)
		preparation->has_impure_term = true;
	*out = selector;
	return 0;
}

static int
selector_prepare_function(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, const struct selector **out, struct error *err)
{
	uint32_t count = (uint32_t)raw->function.arguments.count;
	struct function_argument *arguments =
	    arena_calloc(preparation->arena, count, sizeof(*arguments));
	const struct selector **prepared =
	    arena_calloc(preparation->arena, count, sizeof(*prepared));
	const struct function *function;
	uint32_t aggregates = selection->aggregate_count;

	if (arguments == NULL || prepared == NULL)
		return selection_no_memory(err);
	/* count(1) counts rows, whatever the constant. */
	if (count == 1 && raw->function.arguments.items[0]->kind == AST_SELECTOR_TERM &&
	    raw->function.name.keyspace.text == NULL && raw->function.name.name.length == 5 &&
	    memcmp(raw->function.name.name.text, "count", 5) == 0)
		return selector_prepare_operands(
		    preparation, NULL, NULL, 0, function_count_rows(), selection, out, err);
	for (uint32_t i = 0; i < count; i++) {
		if (selector_argument(preparation, raw->function.arguments.items[i], selection,
			&arguments[i], &prepared[i], err) != 0)
			return -1;
	}
	if (function_resolve(ast_slice(raw->function.name.keyspace),
		ast_slice(raw->function.name.name), arguments, count, NULL, preparation->table,
		preparation->arena, &function, err) != 0)
		return -1;
	if (function->is_aggregate && selection->aggregate_count != aggregates)
		return error_set(err, ERROR_INVALID,
		    "aggregate functions cannot be used as arguments of aggregate functions");
	return selector_prepare_operands(preparation, raw->function.arguments.items, prepared,
	    count, function, selection, out, err);
}

static int
selector_prepare_operator(struct preparation *preparation, const struct ast_selector *raw,
    const struct type *expected, struct selection *selection, const struct selector **out,
    struct error *err)
{
	bool is_unary = raw->kind == AST_SELECTOR_NEGATION;
	struct ast_selector *raws[2] = {
	    is_unary ? raw->operand : raw->operation.left, is_unary ? NULL : raw->operation.right};
	const struct selector *prepared[2] = {NULL, NULL};
	struct function_argument arguments[2];
	const struct function *function;

	for (int i = 0; i < (is_unary ? 1 : 2); i++) {
		if (selector_argument(
			preparation, raws[i], selection, &arguments[i], &prepared[i], err) != 0)
			return -1;
	}
	if (function_operator(is_unary ? 'n' : raw->operation.operator, & arguments[0],
		is_unary ? NULL : &arguments[1], expected, preparation->arena, &function, err) != 0)
		return -1;
	return selector_prepare_operands(
	    preparation, raws, prepared, function->argument_count, function, selection, out, err);
}

static int
selector_prepare_cast(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, const struct selector **out, struct error *err)
{
	const struct selector *operand;
	const struct function *function;
	struct ast_selector *raws[1] = {raw->cast.operand};
	const struct type *type;

	if (term_resolve_type(preparation, raw->cast.type, &type, err) != 0 ||
	    selector_prepare(preparation, raw->cast.operand, NULL, selection, &operand, err) != 0 ||
	    function_cast(operand->type, type, preparation->arena, &function, err) != 0)
		return -1;
	selection->has_idle_cast = function == NULL;
	if (function == NULL) {
		*out = operand;
		return 0;
	}
	return selector_prepare_operands(
	    preparation, raws, &operand, 1, function, selection, out, err);
}

/* writetime(c), ttl(c) and their like. */
static int
selector_prepare_time(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, const struct selector **out, struct error *err)
{
	const char *name = raw->kind == AST_SELECTOR_TTL ? "ttl"
	    : raw->kind == AST_SELECTOR_WRITETIME        ? "writeTime"
	    : raw->kind == AST_SELECTOR_MAXWRITETIME     ? "maxwritetime"
							 : "minwritetime";
	const struct ast_selector *operand = raw->operand;
	const struct column_metadata *column;
	const struct type *type;
	struct selector *selector;

	if (raw->kind == AST_SELECTOR_MINWRITETIME)
		return error_set(err, ERROR_INVALID, "Unknown function 'minwritetime'");
	if (operand->kind != AST_SELECTOR_COLUMN)
		return error_set(err, ERROR_INVALID,
		    "Cannot use selection function %s on an element, a slice or a field", name);
	column = selector_column(preparation, &operand->column, err);
	if (column == NULL)
		return -1;
	if (column->kind == COLUMN_PARTITION_KEY || column->kind == COLUMN_CLUSTERING)
		return error_set(err, ERROR_INVALID,
		    "Cannot use selection function %s on PRIMARY KEY part %.*s", name,
		    (int)column->name.size, column->name.data);
	selection_use_column(selection, column);
	type = type_native(raw->kind == AST_SELECTOR_TTL ? TYPE_INT : TYPE_BIGINT);
	/* One for each cell, but for maxwritetime. */
	if (column->is_complex && raw->kind != AST_SELECTOR_MAXWRITETIME) {
		if (column->type->kind == TYPE_UDT || type_is_collection(column->type))
			return error_set(err, ERROR_INVALID,
			    "Cannot use selection function %s on non-frozen %s %.*s", name,
			    column->type->kind == TYPE_UDT ? "UDT" : "collection",
			    (int)column->name.size, column->name.data);
	}
	selector = selector_new(preparation,
	    raw->kind == AST_SELECTOR_TTL             ? SELECTOR_TTL
		: raw->kind == AST_SELECTOR_WRITETIME ? SELECTOR_WRITETIME
						      : SELECTOR_MAXWRITETIME,
	    type, 0, err);
	if (selector == NULL)
		return -1;
	selector->column = column;
	*out = selector;
	return 0;
}

static int
selector_prepare_field(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, const struct selector **out, struct error *err)
{
	const struct selector *operand;
	struct selector *selector;
	struct buffer name;
	int index, rc;

	if (selector_prepare(preparation, raw->field.operand, NULL, selection, &operand, err) != 0)
		return -1;
	buffer_init(&name);
	selector_name(preparation, raw->field.operand, &name);
	rc = 0;
	if (operand->type->kind != TYPE_UDT)
		rc = error_set(err, ERROR_INVALID,
		    "Invalid field selection: %.*s of type %s is not a user type", (int)name.size,
		    (const char *)name.data, type_name(preparation->arena, operand->type));
	index = rc == 0 ? type_field_index(operand->type, ast_slice(raw->field.field.text)) : -1;
	if (rc == 0 && index < 0)
		rc = error_set(err, ERROR_INVALID, "%.*s of type %s has no field %s",
		    (int)name.size, (const char *)name.data,
		    type_name(preparation->arena, operand->type), raw->field.field.text.text);
	buffer_fini(&name);
	if (rc != 0)
		return -1;
	selector = selector_new(preparation, SELECTOR_FIELD, operand->type->params[index], 1, err);
	if (selector == NULL)
		return -1;
	selector->operands[0] = operand;
	selector->index = (uint32_t)index;
	*out = selector;
	return 0;
}

/* What a key is called where it is bound or refused. */
static struct column_spec
selector_key_receiver(
    struct preparation *preparation, const struct selector *operand, const struct type *type)
{
	struct column_spec receiver = {
	    preparation->table->keyspace, preparation->table->name, slice_of_string("key"), type};

	if (operand->kind == SELECTOR_COLUMN) {
		receiver.name = operand->column->name;
		return term_part_receiver(preparation, &receiver, type, "key(%.*s)");
	}
	return receiver;
}

/* c[k], c[a..b] */
static int
selector_prepare_element(struct preparation *preparation, const struct ast_selector *raw,
    struct selection *selection, const struct selector **out, struct error *err)
{
	bool is_slice = raw->kind == AST_SELECTOR_SLICE;
	const struct selector *operand;
	struct selector *selector;
	struct column_spec receiver;
	const struct type *type;

	if (selector_prepare(preparation, is_slice ? raw->slice.operand : raw->element.operand,
		NULL, selection, &operand, err) != 0)
		return -1;
	type = operand->type;
	if (type->kind != TYPE_SET && type->kind != TYPE_MAP) {
		struct buffer name;
		int rc;

		buffer_init(&name);
		selector_name(
		    preparation, is_slice ? raw->slice.operand : raw->element.operand, &name);
		if (type_is_collection(type))
			rc = error_set(err, ERROR_INVALID,
			    is_slice ? "Slice selection is only allowed on sets and maps, but "
				       "%.*s is a list"
				     : "Element selection is only allowed on sets and maps, but "
				       "%.*s is a list",
			    (int)name.size, (const char *)name.data);
		else
			rc = error_set(err, ERROR_INVALID,
			    "Invalid %s selection: %.*s is of type %s is not a collection",
			    is_slice ? "slice" : "element", (int)name.size, (const char *)name.data,
			    type_name(preparation->arena, type));
		buffer_fini(&name);
		return rc;
	}
	receiver = selector_key_receiver(preparation, operand, type->params[0]);
	selector = selector_new(preparation, is_slice ? SELECTOR_SLICE : SELECTOR_ELEMENT,
	    is_slice                     ? type_freeze(preparation->arena, type)
		: type->kind == TYPE_MAP ? type->params[1]
					 : type->params[0],
	    1, err);
	if (selector == NULL || selector->type == NULL)
		return selection_no_memory(err);
	if (is_slice)
		selector->type = type;
	selector->operands[0] = operand;
	*out = selector;
	if (!is_slice)
		return term_prepare(preparation, raw->element.key, &receiver, &selector->term, err);
	if (raw->slice.from != NULL &&
	    term_prepare(preparation, raw->slice.from, &receiver, &selector->term, err) != 0)
		return -1;
	if (raw->slice.to != NULL &&
	    term_prepare(preparation, raw->slice.to, &receiver, &selector->to, err) != 0)
		return -1;
	return 0;
}

static int
selector_prepare_user_type(struct preparation *preparation, const struct ast_selector *raw,
    const struct type *type, struct selection *selection, const struct selector **out,
    struct error *err)
{
	struct selector *selector =
	    selector_new(preparation, SELECTOR_PACK, type, type->param_count, err);

	if (selector == NULL)
		return -1;
	for (size_t i = 0; i < raw->pairs.count; i++) {
		const struct ast_selector *key = raw->pairs.items[i].key;
		int index = key->kind == AST_SELECTOR_COLUMN
		    ? type_field_index(type, ast_slice(key->column.text))
		    : -1;

		if (index < 0)
			return error_set(err, ERROR_INVALID,
			    "Unknown field '%s' in value of user defined type %.*s",
			    key->kind == AST_SELECTOR_COLUMN ? key->column.text.text : "?",
			    (int)type->name.size, type->name.data);
		if (selector_prepare(preparation, raw->pairs.items[i].value, type->params[index],
			selection, &selector->operands[index], err) != 0)
			return -1;
	}
	*out = selector;
	return 0;
}

/* [a, b], {a, b}, {a: b}, (a, b) */
static int
selector_prepare_pack(struct preparation *preparation, const struct ast_selector *raw,
    const struct type *expected, struct selection *selection, const struct selector **out,
    struct error *err)
{
	bool is_map = raw->kind == AST_SELECTOR_MAP;
	uint32_t count = (uint32_t)(is_map ? 2 * raw->pairs.count : raw->items.count);
	struct selector *selector;
	const struct type *types[2] = {NULL, NULL};
	const struct type **members;

	if (raw->kind == AST_SELECTOR_TUPLE && count == 1 &&
	    (expected == NULL || !type_is_tuple(expected)))
		return selector_prepare(
		    preparation, raw->items.items[0], expected, selection, out, err);
	if (is_map && expected != NULL && expected->kind == TYPE_UDT)
		return selector_prepare_user_type(preparation, raw, expected, selection, out, err);
	members = arena_calloc(preparation->arena, count, sizeof(*members));
	selector = selector_new(preparation, SELECTOR_PACK, expected, count, err);
	if (selector == NULL || members == NULL)
		return selection_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		const struct ast_selector *item = is_map
		    ? (i % 2 == 0 ? raw->pairs.items[i / 2].key : raw->pairs.items[i / 2].value)
		    : raw->items.items[i];
		uint32_t side = is_map ? i % 2 : 0;
		const struct type *want = types[side];

		if (expected != NULL && raw->kind == AST_SELECTOR_TUPLE)
			want = type_is_tuple(expected) && i < expected->param_count
			    ? expected->params[i]
			    : NULL;
		else if (expected != NULL && side < expected->param_count)
			want = expected->params[side];
		else if (raw->kind == AST_SELECTOR_TUPLE)
			want = NULL;
		if (selector_prepare(
			preparation, item, want, selection, &selector->operands[i], err) != 0)
			return -1;
		members[i] = selector->operands[i]->type;
		if (types[side] == NULL)
			types[side] = members[i];
	}
	if (selector->type == NULL) {
		if (raw->kind == AST_SELECTOR_TUPLE)
			selector->type = type_tuple(preparation->arena, members, count);
		else if (count == 0)
			return error_set(err, ERROR_INVALID,
			    "Cannot infer type for term %s in selection clause (try using a cast "
			    "to "
			    "force a type)",
			    raw->kind == AST_SELECTOR_LIST ? "[]" : "{}");
		else if (is_map)
			selector->type = type_map(preparation->arena, types[0], types[1], false);
		else if (raw->kind == AST_SELECTOR_LIST)
			selector->type = type_list(preparation->arena, types[0], false);
		else
			selector->type = type_set(preparation->arena, types[0], false);
		if (selector->type == NULL)
			return selection_no_memory(err);
	}
	*out = selector;
	return 0;
}

int
selector_prepare(struct preparation *preparation, const struct ast_selector *raw,
    const struct type *expected, struct selection *selection, const struct selector **out,
    struct error *err)
{
	struct ast_term *term = selector_as_term(preparation, raw);
	const struct column_metadata *column;
	struct selector *selector;
	const struct type *type;

	/* {a: 1} with a user type's name in front is no plain term: the hint decides. */
	if (term != NULL &&
	    (raw->kind != AST_SELECTOR_TUPLE || raw->items.count > 1 || expected != NULL ||
		term_exact_type(preparation, term) != NULL))
		return selector_prepare_term(preparation, term, expected, out, err);
	switch (raw->kind) {
	case AST_SELECTOR_COLUMN:
		column = selector_column(preparation, &raw->column, err);
		if (column == NULL)
			return -1;
		selection_use_column(selection, column);
		selector = selector_new(preparation, SELECTOR_COLUMN, column->type, 0, err);
		if (selector == NULL)
			return -1;
		selector->column = column;
		*out = selector;
		return 0;
	case AST_SELECTOR_COUNT_ROWS:
		return selector_prepare_operands(
		    preparation, NULL, NULL, 0, function_count_rows(), selection, out, err);
	case AST_SELECTOR_FUNCTION:
		return selector_prepare_function(preparation, raw, selection, out, err);
	case AST_SELECTOR_WRITETIME:
	case AST_SELECTOR_MAXWRITETIME:
	case AST_SELECTOR_MINWRITETIME:
	case AST_SELECTOR_TTL:
		return selector_prepare_time(preparation, raw, selection, out, err);
	case AST_SELECTOR_CAST:
		return selector_prepare_cast(preparation, raw, selection, out, err);
	case AST_SELECTOR_TYPE_HINT:
		if (term_resolve_type(preparation, raw->cast.type, &type, err) != 0)
			return -1;
		return selector_prepare(preparation, raw->cast.operand, type, selection, out, err);
	case AST_SELECTOR_OPERATION:
	case AST_SELECTOR_NEGATION:
		return selector_prepare_operator(preparation, raw, expected, selection, out, err);
	case AST_SELECTOR_FIELD:
		return selector_prepare_field(preparation, raw, selection, out, err);
	case AST_SELECTOR_ELEMENT:
	case AST_SELECTOR_SLICE:
		return selector_prepare_element(preparation, raw, selection, out, err);
	case AST_SELECTOR_TUPLE:
	case AST_SELECTOR_LIST:
	case AST_SELECTOR_SET:
	case AST_SELECTOR_MAP:
		return selector_prepare_pack(preparation, raw, expected, selection, out, err);
	case AST_SELECTOR_TERM:
		break;
	}
	return error_set(err, ERROR_SERVER, "unknown kind of selector %d", (int)raw->kind);
}

static int
selection_add_wildcard(struct preparation *preparation, struct selection *out, struct error *err)
{
	const struct table_metadata *table = preparation->table;

	for (uint32_t i = 0; i < table->column_count; i++) {
		const struct column_metadata *column = table->select_order[i];
		struct selector *selector =
		    selector_new(preparation, SELECTOR_COLUMN, column->type, 0, err);

		if (selector == NULL)
			return -1;
		selection_use_column(out, column);
		selector->column = column;
		out->selectors[i] = selector;
		out->specs[i] = prepare_receiver(table, column);
		out->names[i] = column->name;
	}
	return 0;
}

static int
selection_add_item(struct preparation *preparation, const struct ast_selector *raw, uint32_t index,
    struct selection *out, struct error *err)
{
	struct column_spec *spec = &out->specs[index];
	struct buffer name;

	if (selector_prepare(preparation, raw, NULL, out, &out->selectors[index], err) != 0)
		return -1;
	spec->keyspace = preparation->table->keyspace;
	spec->table = preparation->table->name;
	spec->type = out->selectors[index]->type;
	if (raw->alias.text.text != NULL) {
		spec->name = ast_slice(raw->alias.text);
	} else {
		/* A CAST to the type that is there already leaves no trace. */
		if (raw->kind == AST_SELECTOR_CAST && out->has_idle_cast)
			raw = raw->cast.operand;
		buffer_init(&name);
		selector_name(preparation, raw, &name);
		spec->name = arena_copy(preparation->arena, buffer_slice(&name));
		buffer_fini(&name);
		if (slice_is_null(spec->name))
			return selection_no_memory(err);
	}
	out->names[index] = spec->name;
	return 0;
}

int
selection_prepare(struct preparation *preparation, const struct statement_select *select,
    struct selection *out, struct error *err)
{
	const struct table_metadata *table = preparation->table;
	struct arena *arena = preparation->arena;

	*out = (struct selection){.is_json = select->is_json,
	    .is_wildcard = select->is_wildcard,
	    .has_only_key_and_static = true};
	out->count =
	    (uint32_t)(select->is_wildcard ? table->column_count : select->selectors.count);
	out->selectors = arena_calloc(arena, out->count, sizeof(*out->selectors));
	out->specs = arena_calloc(arena, (size_t)out->count + 1, sizeof(*out->specs));
	out->names = arena_calloc(arena, out->count, sizeof(*out->names));
	if (out->selectors == NULL || out->specs == NULL || out->names == NULL)
		return selection_no_memory(err);
	if (select->is_wildcard) {
		if (selection_add_wildcard(preparation, out, err) != 0)
			return -1;
	} else {
		for (uint32_t i = 0; i < out->count; i++) {
			if (selection_add_item(
				preparation, select->selectors.items[i], i, out, err) != 0)
				return -1;
		}
	}
	out->is_simple = !out->is_json;
	for (uint32_t i = 0; i < out->count; i++)
		out->is_simple = out->is_simple && out->selectors[i]->kind == SELECTOR_COLUMN;
	out->result_count = out->count;
	if (out->is_json) {
		out->specs[0] = (struct column_spec){table->keyspace, table->name,
		    slice_of_string("[json]"), type_native(TYPE_TEXT)};
		out->result_count = 1;
	}
	return 0;
}
