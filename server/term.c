/* SPDX-License-Identifier: Apache-2.0 */
#include "server/term.h"
#include <stdio.h>
#include "cql/value.h"

#define TERM_TEXT(preparation, raw) term_text((preparation), (raw))

static const char *
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

/* The grammar and the literals count their kinds in orders of their own. */
static enum literal_kind
term_literal_kind(enum ast_constant_kind kind)
{
	switch (kind) {
	case AST_CONSTANT_STRING:
		return LITERAL_STRING;
	case AST_CONSTANT_INTEGER:
		return LITERAL_INTEGER;
	case AST_CONSTANT_FLOAT:
		return LITERAL_FLOAT;
	case AST_CONSTANT_UUID:
		return LITERAL_UUID;
	case AST_CONSTANT_BOOLEAN:
		return LITERAL_BOOLEAN;
	case AST_CONSTANT_HEX:
		return LITERAL_HEX;
	case AST_CONSTANT_DURATION:
		break;
	}
	return LITERAL_DURATION;
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

/* ---- Types -------------------------------------------------------------------------------- */

struct term_udt_scope {
	const struct schema *schema;
	struct slice keyspace;
};

static const struct type *
term_resolve_udt(void *user, struct slice keyspace, struct slice name)
{
	struct term_udt_scope *scope = user;

	return schema_resolve_udt(
	    (void *)scope->schema, slice_is_null(keyspace) ? scope->keyspace : keyspace, name);
}

int
term_resolve_type(struct preparation *preparation, const struct ast_type *raw,
    const struct type **out, struct error *err)
{
	struct term_udt_scope scope = {preparation->schema, preparation->keyspace};
	struct buffer text;
	int rc;

	if (preparation->table != NULL)
		scope.keyspace = preparation->table->keyspace;
	buffer_init(&text);
	ast_type_text(raw, &text);
	rc = buffer_check(&text, err);
	if (rc == 0)
		rc = type_parse_cql(
		    buffer_slice(&text), term_resolve_udt, &scope, preparation->arena, out, err);
	buffer_fini(&text);
	return rc;
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

/* ---- Tests of assignment ------------------------------------------------------------------- */

static enum assignment
term_worst(enum assignment a, enum assignment b)
{
	return a > b ? a : b;
}

static enum assignment
term_test_all(
    struct preparation *preparation, const struct ast_terms *terms, const struct type *type)
{
	enum assignment result = ASSIGNMENT_EXACT;

	if (terms->count == 0)
		return ASSIGNMENT_WEAK;
	for (size_t i = 0; i < terms->count; i++)
		result = term_worst(result, term_test(preparation, terms->items[i], type));
	return result;
}

static enum assignment
term_test_type(const struct type *type, const struct type *receiver)
{
	if (type_equal(type, receiver))
		return ASSIGNMENT_EXACT;
	return type_is_value_compatible(receiver, type) ? ASSIGNMENT_WEAK : ASSIGNMENT_NOT;
}

static int term_resolve_call(struct preparation *preparation, const struct ast_term *raw,
    const struct type *receiver, const struct function **out, struct error *err);

static enum assignment
term_test_function(
    struct preparation *preparation, const struct ast_term *raw, const struct type *type)
{
	const struct function *function;

	/* What cannot be resolved is reported when the call itself is prepared. */
	if (term_resolve_call(preparation, raw, type, &function, NULL) != 0 || function == NULL)
		return ASSIGNMENT_EXACT;
	return term_test_type(function->return_type, type);
}

static enum assignment
term_test_map(struct preparation *preparation, const struct ast_term *raw, const struct type *type)
{
	enum assignment result = ASSIGNMENT_EXACT;

	if (type->kind != TYPE_MAP)
		return ASSIGNMENT_NOT;
	if (raw->pairs.count == 0)
		return ASSIGNMENT_WEAK;
	for (size_t i = 0; i < raw->pairs.count; i++) {
		result = term_worst(
		    result, term_test(preparation, raw->pairs.items[i].key, type->params[0]));
		result = term_worst(
		    result, term_test(preparation, raw->pairs.items[i].value, type->params[1]));
	}
	return result;
}

static enum assignment
term_test_tuple(
    struct preparation *preparation, const struct ast_term *raw, const struct type *type)
{
	/* (x) may be a tuple of one or a term in parentheses. */
	if (raw->terms.count == 1 && !type_is_tuple(type))
		return term_test(preparation, raw->terms.items[0], type);
	if (!type_is_tuple(type) || raw->terms.count > type->param_count)
		return ASSIGNMENT_NOT;
	for (size_t i = 0; i < raw->terms.count; i++) {
		if (term_test(preparation, raw->terms.items[i], type->params[i]) == ASSIGNMENT_NOT)
			return ASSIGNMENT_NOT;
	}
	return ASSIGNMENT_WEAK;
}

static enum assignment
term_test_udt(struct preparation *preparation, const struct ast_term *raw, const struct type *type)
{
	if (type->kind != TYPE_UDT)
		return ASSIGNMENT_NOT;
	for (size_t i = 0; i < raw->fields.count; i++) {
		const struct ast_field_value *field = &raw->fields.items[i];
		int index = type_field_index(type, ast_slice(field->field.text));

		if (index < 0 ||
		    term_test(preparation, field->value, type->params[index]) == ASSIGNMENT_NOT)
			return ASSIGNMENT_NOT;
	}
	return ASSIGNMENT_WEAK;
}

enum assignment
term_test(struct preparation *preparation, const struct ast_term *raw, const struct type *type)
{
	const struct type *cast;

	switch (raw->kind) {
	case AST_TERM_CONSTANT:
		return literal_test(
		    term_literal_kind(raw->constant.kind), ast_slice(raw->constant.text), type);
	case AST_TERM_NULL:
		return type->kind == TYPE_COUNTER ? ASSIGNMENT_NOT : ASSIGNMENT_WEAK;
	case AST_TERM_MARKER:
		return ASSIGNMENT_WEAK;
	case AST_TERM_LIST:
		if (type->kind != TYPE_LIST && type->kind != TYPE_VECTOR)
			return ASSIGNMENT_NOT;
		return term_test_all(preparation, &raw->terms, type->params[0]);
	case AST_TERM_SET:
		if (type->kind == TYPE_MAP && raw->terms.count == 0)
			return ASSIGNMENT_WEAK;
		if (type->kind == TYPE_UDT && raw->terms.count == 0)
			return ASSIGNMENT_WEAK;
		if (type->kind != TYPE_SET)
			return ASSIGNMENT_NOT;
		return term_test_all(preparation, &raw->terms, type->params[0]);
	case AST_TERM_MAP:
		return term_test_map(preparation, raw, type);
	case AST_TERM_UDT:
		return term_test_udt(preparation, raw, type);
	case AST_TERM_TUPLE:
		return term_test_tuple(preparation, raw, type);
	case AST_TERM_TYPE_CAST:
	case AST_TERM_CAST:
		if (term_resolve_type(preparation, raw->cast.type, &cast, NULL) != 0)
			return ASSIGNMENT_NOT;
		return term_test_type(cast, type);
	case AST_TERM_FUNCTION:
	case AST_TERM_OPERATION:
	case AST_TERM_NEGATION:
		return term_test_function(preparation, raw, type);
	}
	return ASSIGNMENT_NOT;
}

const struct type *
term_exact_type(struct preparation *preparation, const struct ast_term *raw)
{
	const struct function *function;
	const struct type *type;

	switch (raw->kind) {
	case AST_TERM_CONSTANT:
		return literal_exact_type(
		    term_literal_kind(raw->constant.kind), ast_slice(raw->constant.text));
	case AST_TERM_TYPE_CAST:
	case AST_TERM_CAST:
		return term_resolve_type(preparation, raw->cast.type, &type, NULL) == 0 ? type
											: NULL;
	case AST_TERM_FUNCTION:
	case AST_TERM_OPERATION:
	case AST_TERM_NEGATION:
		if (term_resolve_call(preparation, raw, NULL, &function, NULL) != 0)
			return NULL;
		return function != NULL ? function->return_type : NULL;
	case AST_TERM_LIST:
		for (size_t i = 0; i < raw->terms.count; i++) {
			type = term_exact_type(preparation, raw->terms.items[i]);
			if (type != NULL)
				return type_list(preparation->arena, type, false);
		}
		return NULL;
	case AST_TERM_SET:
		for (size_t i = 0; i < raw->terms.count; i++) {
			type = term_exact_type(preparation, raw->terms.items[i]);
			if (type != NULL)
				return type_set(preparation->arena, type, false);
		}
		return NULL;
	case AST_TERM_MAP: {
		const struct type *key = NULL, *value = NULL;

		for (size_t i = 0; i < raw->pairs.count; i++) {
			if (key == NULL)
				key = term_exact_type(preparation, raw->pairs.items[i].key);
			if (value == NULL)
				value = term_exact_type(preparation, raw->pairs.items[i].value);
		}
		return key != NULL && value != NULL
		    ? type_map(preparation->arena, key, value, false)
		    : NULL;
	}
	case AST_TERM_TUPLE: {
		const struct type **types;

		if (raw->terms.count == 1)
			return term_exact_type(preparation, raw->terms.items[0]);
		types = arena_calloc(preparation->arena, raw->terms.count, sizeof(*types));
		for (size_t i = 0; types != NULL && i < raw->terms.count; i++) {
			types[i] = term_exact_type(preparation, raw->terms.items[i]);
			if (types[i] == NULL)
				return NULL;
		}
		return types == NULL
		    ? NULL
		    : type_tuple(preparation->arena, types, (uint32_t)raw->terms.count);
	}
	default:
		return NULL;
	}
}

/* ---- Functions ---------------------------------------------------------------------------- */

struct term_argument_scope {
	struct preparation *preparation;
	const struct ast_term *raw;
};

static enum assignment
term_argument_test(const void *term, const struct type *type)
{
	const struct term_argument_scope *scope = term;

	return term_test(scope->preparation, scope->raw, type);
}

struct function_argument
term_argument(struct preparation *preparation, const struct ast_term *raw)
{
	struct function_argument argument = {0};
	struct term_argument_scope *scope = arena_alloc(preparation->arena, sizeof(*scope));

	argument.type = term_exact_type(preparation, raw);
	argument.text = term_text(preparation, raw);
	if (scope != NULL) {
		*scope = (struct term_argument_scope){preparation, raw};
		argument.test = term_argument_test;
		argument.term = scope;
	}
	return argument;
}

static int
term_resolve_call(struct preparation *preparation, const struct ast_term *raw,
    const struct type *receiver, const struct function **out, struct error *err)
{
	struct function_argument *arguments;
	struct slice keyspace;

	*out = NULL;
	if (raw->kind == AST_TERM_OPERATION) {
		struct function_argument left = term_argument(preparation, raw->operation.left);
		struct function_argument right = term_argument(preparation, raw->operation.right);

		return function_operator(raw->operation.operator, & left, &right, receiver,
		    preparation->arena, out, err);
	}
	if (raw->kind == AST_TERM_NEGATION) {
		struct function_argument left = term_argument(preparation, raw->negated);

		return function_operator('n', &left, NULL, receiver, preparation->arena, out, err);
	}
	arguments =
	    arena_calloc(preparation->arena, raw->function.arguments.count, sizeof(*arguments));
	if (arguments == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for arguments");
	for (size_t i = 0; i < raw->function.arguments.count; i++)
		arguments[i] = term_argument(preparation, raw->function.arguments.items[i]);
	keyspace = ast_slice(raw->function.name.keyspace);
	return function_resolve(keyspace, ast_slice(raw->function.name.name), arguments,
	    (uint32_t)raw->function.arguments.count, receiver, preparation->table,
	    preparation->arena, out, err);
}

static int
term_prepare_call(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err)
{
	const struct function *function;
	const struct ast_term *operands[2];
	const struct ast_term *const *raws = operands;
	struct term *term;
	bool is_constant = true;

	if (raw->kind == AST_TERM_FUNCTION &&
	    (raw->function.name.keyspace.text != NULL ||
		!function_is_native(ast_slice(raw->function.name.name))) &&
	    term_resolve_call(preparation, raw, receiver->type, &function, NULL) != 0)
		return error_set(err, ERROR_INVALID, "Unknown function %s%s%s called",
		    raw->function.name.keyspace.text != NULL ? raw->function.name.keyspace.text
							     : "",
		    raw->function.name.keyspace.text != NULL ? "." : "",
		    raw->function.name.name.text);
	if (term_resolve_call(preparation, raw, receiver->type, &function, err) != 0)
		return -1;
	if (function->is_aggregate)
		return error_set(err, ERROR_INVALID,
		    "Aggregation function are not supported in the where clause");
	if (term_test_type(function->return_type, receiver->type) == ASSIGNMENT_NOT) {
		if (raw->kind != AST_TERM_FUNCTION)
			return error_set(err, ERROR_INVALID,
			    "Type error: cannot assign result of operation %s (type %s) to %.*s "
			    "(type %s)",
			    term_text(preparation, raw),
			    term_type_name(preparation, function->return_type),
			    (int)receiver->name.size, receiver->name.data,
			    term_type_name(preparation, receiver->type));
		return error_set(err, ERROR_INVALID,
		    "Type error: cannot assign result of function %s.%s (type %s) to %.*s (type "
		    "%s)",
		    function->keyspace, function->name,
		    term_type_name(preparation, function->return_type), (int)receiver->name.size,
		    receiver->name.data, term_type_name(preparation, receiver->type));
	}
	term = term_new(preparation, TERM_CALL, function->return_type, err);
	if (term == NULL)
		return -1;
	if (raw->kind == AST_TERM_FUNCTION) {
		raws = (const struct ast_term *const *)raw->function.arguments.items;
	} else if (raw->kind == AST_TERM_NEGATION) {
		operands[0] = raw->negated;
	} else {
		operands[0] = raw->operation.left;
		operands[1] = raw->operation.right;
	}
	term->call.function = function;
	term->call.arguments = term_array(preparation, function->argument_count, err);
	if (term->call.arguments == NULL)
		return -1;
	for (uint32_t i = 0; i < function->argument_count; i++) {
		struct column_spec argument = *receiver;
		const char *name = arena_printf(preparation->arena, "arg%u(%s%s%s)", i,
		    raw->kind == AST_TERM_FUNCTION ? function->keyspace : "system", ".",
		    function->name);

		argument.name = slice_of_string(name != NULL ? name : "arg");
		argument.type = function->argument_types[i];
		if (term_prepare(preparation, raws[i], &argument, &term->call.arguments[i], err) !=
		    0)
			return -1;
		is_constant = is_constant && term->call.arguments[i]->kind == TERM_VALUE;
	}
	if (!function->is_pure)
		preparation->has_impure_term = true;
	*out = term;
	if (is_constant && function->is_pure) {
		struct function_context functions = {0};
		struct term_context context = {
		    .functions = &functions, .arena = preparation->arena};
		struct slice value;

		/* A failure now would be one for each execution: it is left to that. */
		functions.protocol_version = 5;
		if (term_eval(term, &context, &value, NULL, NULL) == 0) {
			struct term *constant =
			    term_new(preparation, TERM_VALUE, function->return_type, err);

			if (constant == NULL)
				return -1;
			constant->value = value;
			*out = constant;
		}
	}
	return 0;
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

/* ---- Evaluation ---------------------------------------------------------------------------- */

/*
 * A set or map from a client may be in any order and have doubles; what is stored whole (frozen, as a
 * key) must not. As Cassandra does, only the outermost one is put in order.
 */
static int
term_put_in_order(
    const struct type *type, struct arena *arena, struct slice *value, struct error *err)
{
	uint32_t width = type->kind == TYPE_MAP ? 2 : 1, count = 0;
	struct slice previous = slice_null, element;
	struct type_iterator iterator;
	struct slice *elements;
	bool is_ordered = true;

	type_iterator_init(&iterator, type, *value);
	for (uint32_t i = 0; type_iterator_next(&iterator, &element, NULL); i++) {
		if (i % width != 0)
			continue;
		if (i > 0 && type_compare(type->params[0], previous, element) >= 0)
			is_ordered = false;
		previous = element;
	}
	if (is_ordered)
		return 0;
	elements = arena_calloc(arena, iterator.count, sizeof(*elements));
	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	type_iterator_init(&iterator, type, *value);
	while (type_iterator_next(&iterator, &element, NULL))
		elements[count++] = element;
	count = type_sort_elements(type->params[0], elements, count / width, width);
	*value = type_pack(type, elements, count, arena);
	if (slice_is_null(*value))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	return 0;
}

static int
term_eval_marker(const struct term *term, const struct term_context *context, struct slice *out,
    bool *is_unset, struct error *err)
{
	const struct bound_value *bound;

	if (term->marker >= context->value_count)
		return error_set(err, ERROR_INVALID, "Invalid amount of bind variables");
	bound = &context->values[term->marker];
	*out = bound->value;
	if (bound->is_unset) {
		if (is_unset == NULL)
			return error_set(err, ERROR_INVALID, "Invalid unset value");
		*is_unset = true;
		*out = slice_null;
		return 0;
	}
	if (slice_is_null(*out))
		return 0;
	if (type_validate(term->type, *out, err) != 0)
		return -1;
	if (!type_is_collection(term->type) || out->size == 0)
		return 0;
	/* Valid by itself, but a value that is bound is read too. */
	if (type_collection_size(*out) < 0)
		return error_set(err, ERROR_INVALID, "The data cannot be deserialized as a %s",
		    term->type->kind == TYPE_LIST      ? "list"
			: term->type->kind == TYPE_SET ? "set"
						       : "map");
	if (term->type->kind != TYPE_LIST)
		return term_put_in_order(term->type, context->arena, out, err);
	return 0;
}

static int
term_eval_collection(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	struct slice *elements = arena_calloc(context->arena, term->parts.count, sizeof(*elements));
	uint32_t count = term->parts.count;

	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	for (uint32_t i = 0; i < count; i++) {
		if (term_eval(term->parts.items[i], context, &elements[i], NULL, err) != 0)
			return -1;
		if (slice_is_null(elements[i]))
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside collections");
	}
	if (term->type->kind == TYPE_SET)
		count = type_sort_elements(term->type->params[0], elements, count, 1);
	else if (term->type->kind == TYPE_MAP)
		count = type_sort_elements(term->type->params[0], elements, count / 2, 2);
	*out = type_pack(term->type, elements, count, context->arena);
	if (slice_is_null(*out))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a collection");
	return 0;
}

static int
term_eval_tuple(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	struct slice *elements = arena_calloc(context->arena, term->parts.count, sizeof(*elements));

	if (elements == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a tuple");
	for (uint32_t i = 0; i < term->parts.count; i++) {
		bool is_unset = false;

		elements[i] = slice_null;
		if (term->parts.items[i] == NULL)
			continue;
		if (term_eval(term->parts.items[i], context, &elements[i], &is_unset, err) != 0)
			return -1;
		if (is_unset && term->type->kind == TYPE_UDT)
			return error_set(err, ERROR_INVALID,
			    "Invalid unset value for field '%.*s' of user defined type %.*s",
			    (int)term->type->fields[i].size, term->type->fields[i].data,
			    (int)term->type->name.size, term->type->name.data);
		if (is_unset)
			return error_set(
			    err, ERROR_INVALID, "Invalid unset value for tuple field number %u", i);
		if (term->type->kind == TYPE_VECTOR && slice_is_null(elements[i]))
			return error_set(
			    err, ERROR_INVALID, "null is not supported inside vectors");
	}
	*out = type_pack(term->type, elements, term->parts.count, context->arena);
	if (slice_is_null(*out))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a tuple");
	return 0;
}

static int
term_eval_call(const struct term *term, const struct term_context *context, struct slice *out,
    struct error *err)
{
	const struct function *function = term->call.function;
	struct slice *arguments =
	    arena_calloc(context->arena, function->argument_count, sizeof(*arguments));

	if (arguments == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for arguments");
	for (uint32_t i = 0; i < function->argument_count; i++) {
		bool is_unset = false;

		if (term_eval(term->call.arguments[i], context, &arguments[i], &is_unset, err) != 0)
			return -1;
		if (is_unset)
			return error_set(err, ERROR_INVALID,
			    "Invalid unset value for argument in call to function %s",
			    function->name);
	}
	return function_call(function, context->functions, arguments, context->arena, out, err);
}

int
term_eval(const struct term *term, const struct term_context *context, struct slice *out,
    bool *is_unset, struct error *err)
{
	if (is_unset != NULL)
		*is_unset = false;
	switch (term->kind) {
	case TERM_VALUE:
		*out = term->value;
		return 0;
	case TERM_MARKER:
		return term_eval_marker(term, context, out, is_unset, err);
	case TERM_COLLECTION:
		return term_eval_collection(term, context, out, err);
	case TERM_TUPLE:
		return term_eval_tuple(term, context, out, err);
	case TERM_CALL:
		return term_eval_call(term, context, out, err);
	}
	return error_set(err, ERROR_SERVER, "unknown kind of term %d", (int)term->kind);
}
