/* SPDX-License-Identifier: Apache-2.0 */
#include "server/term_internal.h"

const char *
term_text(struct preparation *preparation, const struct ast_term *raw)
{
	struct buffer buffer;
	const char *text;

	buffer_init(&buffer);
	ast_term_text(preparation->statement, raw, &buffer);
	text = arena_strndup(preparation->arena, (const char *)buffer.data, buffer.size);
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}

static const char *
term_type_name(struct preparation *preparation, const struct type *type)
{
	return type_name(preparation->arena, type);
}

static struct term *
term_new(struct preparation *preparation, enum term_kind kind, const struct type *type,
    struct error *err)
{
	struct term *term = arena_zalloc(preparation->arena, sizeof(*term));

	if (term == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a term");
		return NULL;
	}
	term->kind = kind;
	term->type = type;
	return term;
}

static const struct term **
term_array(struct preparation *preparation, size_t count, struct error *err)
{
	const struct term **array = arena_calloc(preparation->arena, count, sizeof(*array));

	if (array == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for terms");
	return array;
}

/* ---- Receivers ---------------------------------------------------------------------------- */

struct column_spec
term_part_receiver(struct preparation *preparation, const struct column_spec *of,
    const struct type *type, const char *format_name)
{
	struct column_spec part = *of;
	const char *name =
	    arena_printf(preparation->arena, format_name, (int)of->name.size, of->name.data);

	part.name = slice_of_string(name != NULL ? name : "?");
	part.type = type;
	return part;
}

static struct column_spec
term_field_receiver(struct preparation *preparation, const struct column_spec *of, uint32_t index)
{
	struct column_spec part = *of;
	const struct type *type = of->type;
	const char *name;

	if (type->kind == TYPE_UDT)
		name = arena_printf(preparation->arena, "%.*s.%.*s", (int)of->name.size,
		    of->name.data, (int)type->fields[index].size, type->fields[index].data);
	else
		name = arena_printf(
		    preparation->arena, "%.*s[%u]", (int)of->name.size, of->name.data, index);
	part.name = slice_of_string(name != NULL ? name : "?");
	part.type = type->params[index];
	return part;
}

/* ---- Functions ---------------------------------------------------------------------------- */

/* Which function a call, an operation or a negation means here, and that its result can be what is wanted. */
static int
term_check_call(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct function **out, struct error *err)
{
	const struct ast_name *name = &raw->function.name;
	const struct function *function;

	if (raw->kind == AST_TERM_FUNCTION &&
	    (name->keyspace.text != NULL || !function_is_native(ast_slice(name->name))) &&
	    term_resolve_call(preparation, raw, receiver->type, &function, NULL) != 0)
		return error_set(err, ERROR_INVALID, "Unknown function %s%s%s called",
		    name->keyspace.text != NULL ? name->keyspace.text : "",
		    name->keyspace.text != NULL ? "." : "", name->name.text);
	if (term_resolve_call(preparation, raw, receiver->type, &function, err) != 0)
		return -1;
	if (function->is_aggregate)
		return error_set(err, ERROR_INVALID,
		    "Aggregation function are not supported in the where clause");
	*out = function;
	if (term_test_type(function->return_type, receiver->type) != ASSIGNMENT_NOT)
		return 0;
	if (raw->kind != AST_TERM_FUNCTION)
		return error_set(err, ERROR_INVALID,
		    "Type error: cannot assign result of operation %s (type %s) to %.*s (type %s)",
		    term_text(preparation, raw), term_type_name(preparation, function->return_type),
		    (int)receiver->name.size, receiver->name.data,
		    term_type_name(preparation, receiver->type));
	return error_set(err, ERROR_INVALID,
	    "Type error: cannot assign result of function %s.%s (type %s) to %.*s (type %s)",
	    function->keyspace, function->name, term_type_name(preparation, function->return_type),
	    (int)receiver->name.size, receiver->name.data,
	    term_type_name(preparation, receiver->type));
}

/* A pure function of constants is a constant. */
static int
term_fold_call(struct preparation *preparation, const struct term *call, const struct term **out,
    struct error *err)
{
	const struct function *function = call->call.function;
	struct function_context functions = {0};
	struct term_context context = {.functions = &functions, .arena = preparation->arena};
	struct term *constant;
	struct slice value;

	*out = call;
	if (!function->is_pure)
		return 0;
	for (uint32_t i = 0; i < function->argument_count; i++) {
		if (call->call.arguments[i]->kind != TERM_VALUE)
			return 0;
	}
	/* A failure now would be one for each execution: it is left to that. */
	if (term_eval(call, &context, &value, NULL, NULL) != 0)
		return 0;
	constant = term_new(preparation, TERM_VALUE, function->return_type, err);
	if (constant == NULL)
		return -1;
	constant->value = value;
	*out = constant;
	return 0;
}

static int
term_prepare_call(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	const struct function *function = NULL;
	const struct ast_term *operands[2];
	const struct ast_term *const *raws = operands;
	struct term *term;

	if (term_check_call(preparation, raw, receiver, &function, err) != 0)
		return -1;
	if (raw->kind == AST_TERM_FUNCTION) {
		raws = (const struct ast_term *const *)raw->function.arguments.items;
	} else if (raw->kind == AST_TERM_NEGATION) {
		operands[0] = raw->negated;
	} else {
		operands[0] = raw->operation.left;
		operands[1] = raw->operation.right;
	}
	term = term_new(preparation, TERM_CALL, function->return_type, err);
	if (term == NULL)
		return -1;
	term->call.function = function;
	term->call.arguments = term_array(preparation, function->argument_count, err);
	if (term->call.arguments == NULL)
		return -1;
	for (uint32_t i = 0; i < function->argument_count; i++) {
		struct column_spec argument = *receiver;
		const char *name = arena_printf(preparation->arena, "arg%u(%s.%s)", i,
		    raw->kind == AST_TERM_FUNCTION ? function->keyspace : "system", function->name);

		argument.name = slice_of_string(name != NULL ? name : "arg");
		argument.type = function->argument_types[i];
		if (term_prepare(preparation, raws[i], &argument, &term->call.arguments[i], err) !=
		    0)
			return -1;
	}
	if (!function->is_pure)
		preparation->has_impure_term = true;
	return term_fold_call(preparation, term, out, err);
}

/* ---- Literals ------------------------------------------------------------------------------ */

/* Turn a term whose parts are all constants into a constant. */
static int
term_fold(
    struct preparation *preparation, struct term *term, const struct term **out, struct error *err)
{
	struct term_context context = {.arena = preparation->arena};
	struct term *constant;

	*out = term;
	for (uint32_t i = 0; i < term->parts.count; i++) {
		if (term->parts.items[i] != NULL && term->parts.items[i]->kind != TERM_VALUE)
			return 0;
	}
	constant = term_new(preparation, TERM_VALUE, term->type, err);
	if (constant == NULL || term_eval(term, &context, &constant->value, NULL, err) != 0)
		return -1;
	*out = constant;
	return 0;
}

static int
term_not_assignable(struct preparation *preparation, const char *what,
    const struct column_spec *receiver, struct error *err)
{
	return error_set(err, ERROR_INVALID, "Invalid %s literal for %.*s of type %s", what,
	    (int)receiver->name.size, receiver->name.data,
	    term_type_name(preparation, receiver->type));
}

static int
term_prepare_part(struct preparation *preparation, const char *what, const char *part,
    const struct column_spec *receiver, const struct column_spec *part_receiver,
    const struct ast_term *raw, const struct term **out, struct error *err)
{
	if (raw->kind == AST_TERM_NULL)
		return error_set(err, ERROR_INVALID, "null is not supported inside collections");
	if (term_test(preparation, raw, part_receiver->type) == ASSIGNMENT_NOT)
		return error_set(err, ERROR_INVALID,
		    "Invalid %s literal for %.*s: %s %s is not of type %s", what,
		    (int)receiver->name.size, receiver->name.data, part,
		    term_text(preparation, raw), term_type_name(preparation, part_receiver->type));
	if (term_prepare(preparation, raw, part_receiver, out, err) != 0)
		return -1;
	if (term_has_marker(*out))
		return error_set(err, ERROR_INVALID,
		    "Invalid %s literal for %.*s: bind variables are not supported inside "
		    "collection literals",
		    what, (int)receiver->name.size, receiver->name.data);
	return 0;
}

static int
term_prepare_elements(struct preparation *preparation, const char *what,
    const struct ast_terms *raws, const struct column_spec *receiver, const struct term **out,
    struct error *err)
{
	struct column_spec element =
	    term_part_receiver(preparation, receiver, receiver->type->params[0], "value(%.*s)");
	struct term *term = term_new(preparation,
	    receiver->type->kind == TYPE_VECTOR ? TERM_TUPLE : TERM_COLLECTION, receiver->type,
	    err);

	if (term == NULL)
		return -1;
	if (receiver->type->kind == TYPE_VECTOR && raws->count != receiver->type->dimension)
		return error_set(err, ERROR_INVALID,
		    "Invalid vector literal for %.*s of type %s; expected %u elements, but given "
		    "%zu",
		    (int)receiver->name.size, receiver->name.data,
		    term_type_name(preparation, receiver->type), receiver->type->dimension,
		    raws->count);
	term->parts.count = (uint32_t)raws->count;
	term->parts.items = term_array(preparation, raws->count, err);
	if (term->parts.items == NULL)
		return -1;
	for (size_t i = 0; i < raws->count; i++) {
		if (term_prepare_part(preparation, what, "value", receiver, &element,
			raws->items[i], &term->parts.items[i], err) != 0)
			return -1;
	}
	return term_fold(preparation, term, out, err);
}

static int
term_prepare_map(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	struct column_spec key, value;
	struct term *term;

	if (receiver->type->kind != TYPE_MAP)
		return term_not_assignable(preparation, "map", receiver, err);
	key = term_part_receiver(preparation, receiver, receiver->type->params[0], "key(%.*s)");
	value = term_part_receiver(preparation, receiver, receiver->type->params[1], "value(%.*s)");
	term = term_new(preparation, TERM_COLLECTION, receiver->type, err);
	if (term == NULL)
		return -1;
	term->parts.count = (uint32_t)raw->pairs.count * 2;
	term->parts.items = term_array(preparation, term->parts.count, err);
	if (term->parts.items == NULL)
		return -1;
	for (size_t i = 0; i < raw->pairs.count; i++) {
		if (term_prepare_part(preparation, "map", "key", receiver, &key,
			raw->pairs.items[i].key, &term->parts.items[2 * i], err) != 0 ||
		    term_prepare_part(preparation, "map", "value", receiver, &value,
			raw->pairs.items[i].value, &term->parts.items[2 * i + 1], err) != 0)
			return -1;
	}
	return term_fold(preparation, term, out, err);
}

static int
term_prepare_udt(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	const struct type *type = receiver->type;
	struct term *term;

	if (type->kind != TYPE_UDT)
		return term_not_assignable(preparation, "user type", receiver, err);
	term = term_new(preparation, TERM_TUPLE, type, err);
	if (term == NULL)
		return -1;
	term->parts.count = type->param_count;
	term->parts.items = term_array(preparation, type->param_count, err);
	if (term->parts.items == NULL)
		return -1;
	for (size_t i = 0; i < raw->fields.count; i++) {
		const struct ast_field_value *field = &raw->fields.items[i];
		int index = type_field_index(type, ast_slice(field->field.text));
		struct column_spec part;

		if (index < 0)
			return error_set(err, ERROR_INVALID,
			    "Unknown field '%s' in value of user defined type %s",
			    field->field.text.text,
			    (const char *)arena_strndup(preparation->arena,
				(const char *)type->name.data, type->name.size));
		part = term_field_receiver(preparation, receiver, (uint32_t)index);
		if (term_test(preparation, field->value, part.type) == ASSIGNMENT_NOT)
			return error_set(err, ERROR_INVALID,
			    "Invalid user type literal for %.*s: field %s is not of type %s",
			    (int)receiver->name.size, receiver->name.data, field->field.text.text,
			    term_type_name(preparation, part.type));
		if (term_prepare(
			preparation, field->value, &part, &term->parts.items[index], err) != 0)
			return -1;
	}
	return term_fold(preparation, term, out, err);
}

static int
term_prepare_tuple(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	const struct type *type = receiver->type;
	struct term *term;

	if (raw->terms.count == 1 && !type_is_tuple(type))
		return term_prepare(preparation, raw->terms.items[0], receiver, out, err);
	if (!type_is_tuple(type))
		return error_set(err, ERROR_INVALID,
		    "Invalid tuple type literal for %.*s of type %s", (int)receiver->name.size,
		    receiver->name.data, term_type_name(preparation, type));
	if (raw->terms.count > type->param_count)
		return error_set(err, ERROR_INVALID,
		    "Invalid tuple literal for %.*s: too many elements. Type %s expects %u but got "
		    "%zu",
		    (int)receiver->name.size, receiver->name.data,
		    term_type_name(preparation, type), type->param_count, raw->terms.count);
	term = term_new(preparation, TERM_TUPLE, type, err);
	if (term == NULL)
		return -1;
	term->parts.count = (uint32_t)raw->terms.count;
	term->parts.items = term_array(preparation, raw->terms.count, err);
	if (term->parts.items == NULL)
		return -1;
	for (size_t i = 0; i < raw->terms.count; i++) {
		struct column_spec part = term_field_receiver(preparation, receiver, (uint32_t)i);

		if (term_test(preparation, raw->terms.items[i], part.type) == ASSIGNMENT_NOT)
			return error_set(err, ERROR_INVALID,
			    "Invalid tuple literal for %.*s: component %zu is not of type %s",
			    (int)receiver->name.size, receiver->name.data, i,
			    term_type_name(preparation, part.type));
		if (term_prepare(
			preparation, raw->terms.items[i], &part, &term->parts.items[i], err) != 0)
			return -1;
	}
	return term_fold(preparation, term, out, err);
}

static int
term_prepare_cast(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	struct column_spec inner = *receiver;
	const struct type *type;

	if (term_resolve_type(preparation, raw->cast.type, &type, err) != 0)
		return -1;
	if (term_test(preparation, raw->cast.term, type) == ASSIGNMENT_NOT)
		return error_set(err, ERROR_INVALID, "Cannot cast value %s to type %s",
		    term_text(preparation, raw->cast.term), term_type_name(preparation, type));
	if (term_test_type(type, receiver->type) == ASSIGNMENT_NOT)
		return error_set(err, ERROR_INVALID, "Cannot assign value %s to %.*s of type %s",
		    term_text(preparation, raw), (int)receiver->name.size, receiver->name.data,
		    term_type_name(preparation, receiver->type));
	inner.type = type;
	return term_prepare(preparation, raw->cast.term, &inner, out, err);
}

static int
term_prepare_constant(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	struct term *term = term_new(preparation, TERM_VALUE, receiver->type, err);

	if (term == NULL)
		return -1;
	if (literal_to_value(term_literal_kind(raw->constant.kind), ast_slice(raw->constant.text),
		receiver->type, receiver->name, preparation->arena, &term->value, err) != 0)
		return -1;
	/* The statement's text may die before the plan. */
	term->value = arena_copy(preparation->arena, term->value);
	*out = term;
	return 0;
}

static int
term_prepare_marker(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	struct term *term = term_new(preparation, TERM_MARKER, receiver->type, err);
	struct column_spec *spec = &preparation->markers[raw->marker];

	if (term == NULL)
		return -1;
	term->marker = raw->marker;
	spec->keyspace = receiver->keyspace;
	spec->table = receiver->table;
	spec->type = receiver->type;
	/* :name keeps its name; it was put there before. */
	if (slice_is_null(spec->name))
		spec->name = receiver->name;
	*out = term;
	return 0;
}

static int
term_prepare_set(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	if (raw->terms.count == 0 && receiver->type->kind == TYPE_MAP)
		return term_prepare_elements(preparation, "map", &raw->terms, receiver, out, err);
	if (raw->terms.count == 0 && receiver->type->kind == TYPE_UDT) {
		struct ast_term empty = *raw;

		empty.kind = AST_TERM_UDT;
		empty.fields.items = NULL;
		empty.fields.count = 0;
		return term_prepare_udt(preparation, &empty, receiver, out, err);
	}
	if (receiver->type->kind != TYPE_SET)
		return term_not_assignable(preparation, "set", receiver, err);
	return term_prepare_elements(preparation, "set", &raw->terms, receiver, out, err);
}

int
term_prepare(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	struct term *term;

	switch (raw->kind) {
	case AST_TERM_CONSTANT:
		return term_prepare_constant(preparation, raw, receiver, out, err);
	case AST_TERM_NULL:
		if (receiver->type->kind == TYPE_COUNTER)
			return error_set(err, ERROR_INVALID,
			    "Invalid null value for counter increment/decrement");
		term = term_new(preparation, TERM_VALUE, receiver->type, err);
		if (term == NULL)
			return -1;
		term->value = slice_null;
		*out = term;
		return 0;
	case AST_TERM_MARKER:
		return term_prepare_marker(preparation, raw, receiver, out, err);
	case AST_TERM_LIST:
		if (receiver->type->kind != TYPE_LIST && receiver->type->kind != TYPE_VECTOR)
			return term_not_assignable(preparation, "list", receiver, err);
		return term_prepare_elements(preparation, "list", &raw->terms, receiver, out, err);
	case AST_TERM_SET:
		return term_prepare_set(preparation, raw, receiver, out, err);
	case AST_TERM_MAP:
		return term_prepare_map(preparation, raw, receiver, out, err);
	case AST_TERM_UDT:
		return term_prepare_udt(preparation, raw, receiver, out, err);
	case AST_TERM_TUPLE:
		return term_prepare_tuple(preparation, raw, receiver, out, err);
	case AST_TERM_TYPE_CAST:
		return term_prepare_cast(preparation, raw, receiver, out, err);
	case AST_TERM_CAST:
		return error_set(
		    err, ERROR_INVALID, "CAST is not supported outside of the selection clause");
	case AST_TERM_FUNCTION:
	case AST_TERM_OPERATION:
	case AST_TERM_NEGATION:
		return term_prepare_call(preparation, raw, receiver, out, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of term %d", (int)raw->kind);
}

bool
term_has_marker(const struct term *term)
{
	uint32_t count = 0;
	const struct term *const *items = NULL;

	switch (term->kind) {
	case TERM_VALUE:
		return false;
	case TERM_MARKER:
		return true;
	case TERM_COLLECTION:
	case TERM_TUPLE:
		items = term->parts.items;
		count = term->parts.count;
		break;
	case TERM_CALL:
		items = term->call.arguments;
		count = term->call.function->argument_count;
		break;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (items[i] != NULL && term_has_marker(items[i]))
			return true;
	}
	return false;
}
