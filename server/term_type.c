/* SPDX-License-Identifier: Apache-2.0 */
#include "server/term_internal.h"
#include "cql/value.h"

/* The grammar and the literals count their kinds in orders of their own. */
enum literal_kind
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

enum assignment
term_test_type(const struct type *type, const struct type *receiver)
{
	if (type_equal(type, receiver))
		return ASSIGNMENT_EXACT;
	return type_is_value_compatible(receiver, type) ? ASSIGNMENT_WEAK : ASSIGNMENT_NOT;
}

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

/* The first that is known; NULL: none. */
static const struct type *
term_exact_element(struct preparation *preparation, const struct ast_terms *terms)
{
	const struct type *type = NULL;

	for (size_t i = 0; i < terms->count && type == NULL; i++)
		type = term_exact_type(preparation, terms->items[i]);
	return type;
}

static const struct type *
term_exact_map(struct preparation *preparation, const struct ast_term *raw)
{
	const struct type *key = NULL, *value = NULL;

	for (size_t i = 0; i < raw->pairs.count; i++) {
		if (key == NULL)
			key = term_exact_type(preparation, raw->pairs.items[i].key);
		if (value == NULL)
			value = term_exact_type(preparation, raw->pairs.items[i].value);
	}
	if (key == NULL || value == NULL)
		return NULL;
	return type_map(preparation->arena, key, value, false);
}

static const struct type *
term_exact_tuple(struct preparation *preparation, const struct ast_terms *terms)
{
	const struct type **types;

	/* (x) is a term in parentheses. */
	if (terms->count == 1)
		return term_exact_type(preparation, terms->items[0]);
	types = arena_calloc(preparation->arena, terms->count, sizeof(*types));
	if (types == NULL)
		return NULL;
	for (size_t i = 0; i < terms->count; i++) {
		types[i] = term_exact_type(preparation, terms->items[i]);
		if (types[i] == NULL)
			return NULL;
	}
	return type_tuple(preparation->arena, types, (uint32_t)terms->count);
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
		if (term_resolve_type(preparation, raw->cast.type, &type, NULL) != 0)
			return NULL;
		return type;
	case AST_TERM_FUNCTION:
	case AST_TERM_OPERATION:
	case AST_TERM_NEGATION:
		if (term_resolve_call(preparation, raw, NULL, &function, NULL) != 0)
			return NULL;
		return function != NULL ? function->return_type : NULL;
	case AST_TERM_LIST:
		type = term_exact_element(preparation, &raw->terms);
		return type != NULL ? type_list(preparation->arena, type, false) : NULL;
	case AST_TERM_SET:
		type = term_exact_element(preparation, &raw->terms);
		return type != NULL ? type_set(preparation->arena, type, false) : NULL;
	case AST_TERM_MAP:
		return term_exact_map(preparation, raw);
	case AST_TERM_TUPLE:
		return term_exact_tuple(preparation, &raw->terms);
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

int
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
