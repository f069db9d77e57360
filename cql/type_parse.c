/* SPDX-License-Identifier: Apache-2.0 */
/* Types from text: the CQL form and the Java class form. */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include "cql/type.h"
#include "cql/type_internal.h"

struct type_parser {
	struct slice text;
	size_t at;
	int depth;
	type_resolve_udt_fn resolve;
	void *user;
	struct arena *arena;
	struct error *err;
};

static void
type_parser_skip_blank(struct type_parser *parser)
{
	while (parser->at < parser->text.size && isspace(parser->text.data[parser->at]))
		parser->at++;
}

static int
type_parser_peek(struct type_parser *parser)
{
	type_parser_skip_blank(parser);
	return parser->at < parser->text.size ? parser->text.data[parser->at] : -1;
}

static bool
type_parser_take(struct type_parser *parser, char c)
{
	if (type_parser_peek(parser) != (uint8_t)c)
		return false;
	parser->at++;
	return true;
}

static const struct type *
type_parser_no_memory(struct type_parser *parser)
{
	error_set(parser->err, ERROR_NO_MEMORY, "out of memory for a type");
	return NULL;
}

static const struct type *
type_parser_check(struct type_parser *parser, const struct type *type)
{
	return type != NULL ? type : type_parser_no_memory(parser);
}

/* ---- CQL ----------------------------------------------------------------------------------- */

static const struct type *
type_cql_fail(struct type_parser *parser, const char *what)
{
	error_set(parser->err, ERROR_SYNTAX, "Syntax error parsing '%.*s' at char %zu: %s",
	    (int)parser->text.size, (const char *)parser->text.data, parser->at, what);
	return NULL;
}

/* An identifier: folded, or exact when quoted. False when there is none. */
static bool
type_cql_name(struct type_parser *parser, struct slice *name, bool *is_quoted)
{
	const uint8_t *text = parser->text.data;
	size_t size = 0;
	uint8_t *out;

	type_parser_skip_blank(parser);
	out = arena_alloc_bytes(parser->arena, parser->text.size - parser->at + 1);
	if (out == NULL)
		return false;
	*is_quoted = type_parser_take(parser, '"');
	for (; parser->at < parser->text.size; parser->at++) {
		uint8_t c = text[parser->at];

		if (*is_quoted && c == '"') {
			bool is_doubled =
			    parser->at + 1 < parser->text.size && text[parser->at + 1] == '"';

			parser->at++;
			if (!is_doubled) {
				*name = slice_of(out, size);
				return size > 0;
			}
		} else if (!*is_quoted && !isalnum(c) && c != '_') {
			break;
		}
		out[size++] = *is_quoted ? c : (uint8_t)tolower(c);
	}
	*name = slice_of(out, size);
	return size > 0 && !*is_quoted;
}

static const struct type *type_cql_parse(struct type_parser *parser, bool is_frozen);

static const char *
type_cql_text(struct type_parser *parser, const struct type *type)
{
	return type_name(parser->arena, type);
}

/* Counters, durations and what is not frozen may not be in a collection. */
static int
type_cql_check_collection(struct type_parser *parser, const struct type *type, bool is_frozen)
{
	uint32_t i;

	for (i = 0; i < type->param_count; i++) {
		const struct type *inner = type->params[i];
		bool is_key = type->kind == TYPE_MAP && i == 0;

		if (inner->kind == TYPE_COUNTER)
			return error_set(parser->err, ERROR_INVALID,
			    "Counters are not allowed inside collections: %s",
			    type_cql_text(parser, type));
		if (inner->kind == TYPE_DURATION && (is_key || type->kind == TYPE_SET))
			return error_set(parser->err, ERROR_INVALID,
			    is_key ? "Durations are not allowed as map keys: %s"
				   : "Durations are not allowed inside sets: %s",
			    type_cql_text(parser, type));
		if (!is_frozen && inner->is_multi_cell)
			return error_set(parser->err, ERROR_INVALID,
			    "Non-frozen %s are not allowed inside collections: %s",
			    inner->kind == TYPE_UDT ? "UDTs" : "collections",
			    type_cql_text(parser, type));
	}
	return 0;
}

static const struct type *
type_cql_collection(struct type_parser *parser, enum type_kind kind, bool is_frozen)
{
	const struct type *params[2] = {NULL, NULL};
	const struct type *type;

	params[0] = type_cql_parse(parser, is_frozen);
	if (params[0] == NULL)
		return NULL;
	if (kind == TYPE_MAP) {
		if (!type_parser_take(parser, ','))
			return type_cql_fail(parser, "expecting ','");
		params[1] = type_cql_parse(parser, is_frozen);
		if (params[1] == NULL)
			return NULL;
	}
	if (!type_parser_take(parser, '>'))
		return type_cql_fail(parser, "expecting '>'");
	if (kind == TYPE_LIST)
		type = type_list(parser->arena, params[0], !is_frozen);
	else if (kind == TYPE_SET)
		type = type_set(parser->arena, params[0], !is_frozen);
	else
		type = type_map(parser->arena, params[0], params[1], !is_frozen);
	if (type == NULL)
		return type_parser_no_memory(parser);
	if (type_cql_check_collection(parser, type, is_frozen) != 0)
		return NULL;
	return type;
}

static const struct type *
type_cql_tuple(struct type_parser *parser)
{
	const struct type *params[256];
	uint32_t count = 0;

	do {
		if (count == sizeof(params) / sizeof(params[0]))
			return type_cql_fail(parser, "too many components in a tuple");
		params[count] = type_cql_parse(parser, true);
		if (params[count] == NULL)
			return NULL;
		if (params[count]->kind == TYPE_COUNTER) {
			error_set(
			    parser->err, ERROR_INVALID, "Counters are not allowed inside tuples");
			return NULL;
		}
		count++;
	} while (type_parser_take(parser, ','));
	if (!type_parser_take(parser, '>'))
		return type_cql_fail(parser, "expecting '>'");
	return type_parser_check(parser, type_tuple(parser->arena, params, count));
}

/* Digits up to a limit; 0 when there are none or too many. */
static uint32_t
type_parser_number(struct type_parser *parser, uint32_t max)
{
	uint64_t number = 0;

	type_parser_skip_blank(parser);
	while (parser->at < parser->text.size && isdigit(parser->text.data[parser->at]) &&
	    number <= max)
		number = number * 10 + (parser->text.data[parser->at++] - '0');
	return number <= max ? (uint32_t)number : 0;
}

static const struct type *
type_cql_vector(struct type_parser *parser)
{
	const struct type *element = type_cql_parse(parser, true);
	uint32_t dimension;

	if (element == NULL)
		return NULL;
	if (!type_parser_take(parser, ','))
		return type_cql_fail(parser, "expecting ','");
	dimension = type_parser_number(parser, TYPE_DIMENSION_MAX);
	if (dimension == 0) {
		error_set(parser->err, ERROR_INVALID,
		    "vectors may only have positive dimensions of at most %d", TYPE_DIMENSION_MAX);
		return NULL;
	}
	if (!type_parser_take(parser, '>'))
		return type_cql_fail(parser, "expecting '>'");
	return type_parser_check(parser, type_vector(parser->arena, element, dimension));
}

static const struct type *
type_cql_frozen(struct type_parser *parser)
{
	const struct type *inner = type_cql_parse(parser, true);

	if (inner == NULL)
		return NULL;
	if (!type_parser_take(parser, '>'))
		return type_cql_fail(parser, "expecting '>'");
	if (!type_is_collection(inner) && !type_is_tuple(inner) && inner->kind != TYPE_VECTOR) {
		error_set(parser->err, ERROR_INVALID,
		    "frozen<> is only allowed on collections, tuples, and user-defined types "
		    "(got %s)",
		    type_cql_text(parser, inner));
		return NULL;
	}
	return type_parser_check(parser, type_freeze(parser->arena, inner));
}

static const struct type *
type_cql_udt(struct type_parser *parser, struct slice name, bool is_frozen)
{
	struct slice keyspace = slice_null;
	const struct type *type = NULL;
	bool is_quoted;

	if (type_parser_take(parser, '.')) {
		keyspace = name;
		if (!type_cql_name(parser, &name, &is_quoted))
			return type_cql_fail(parser, "expecting a type name");
	}
	error_clear(parser->err);
	if (parser->resolve != NULL)
		type = parser->resolve(parser->user, keyspace, name);
	if (type == NULL) {
		if (parser->err != NULL && parser->err->code != ERROR_NONE)
			return NULL;
		error_set(parser->err, ERROR_INVALID, "Unknown type %.*s%s%.*s", (int)keyspace.size,
		    keyspace.size > 0 ? (const char *)keyspace.data : "",
		    keyspace.size > 0 ? "." : "", (int)name.size, (const char *)name.data);
		return NULL;
	}
	type = is_frozen ? type_freeze(parser->arena, type) : type_unfreeze(parser->arena, type);
	return type_parser_check(parser, type);
}

static const struct type *
type_cql_custom(struct type_parser *parser)
{
	size_t start = ++parser->at;
	const struct type *type;

	while (parser->at < parser->text.size && parser->text.data[parser->at] != '\'')
		parser->at++;
	if (parser->at == parser->text.size)
		return type_cql_fail(parser, "unfinished string");
	if (type_parse_class(slice_of(parser->text.data + start, parser->at - start), parser->arena,
		&type, parser->err) != 0)
		return NULL;
	parser->at++;
	return type;
}

static const struct type *
type_cql_named(struct type_parser *parser, bool is_frozen)
{
	struct slice name;
	bool is_quoted;
	int kind;

	if (!type_cql_name(parser, &name, &is_quoted))
		return type_cql_fail(parser, "expecting a type");
	if (is_quoted || type_parser_peek(parser) == '.')
		return type_cql_udt(parser, name, is_frozen);
	if (type_parser_peek(parser) == '<') {
		parser->at++;
		if (slice_equal_string(name, "list"))
			return type_cql_collection(parser, TYPE_LIST, is_frozen);
		if (slice_equal_string(name, "set"))
			return type_cql_collection(parser, TYPE_SET, is_frozen);
		if (slice_equal_string(name, "map"))
			return type_cql_collection(parser, TYPE_MAP, is_frozen);
		if (slice_equal_string(name, "tuple"))
			return type_cql_tuple(parser);
		if (slice_equal_string(name, "vector"))
			return type_cql_vector(parser);
		if (slice_equal_string(name, "frozen"))
			return type_cql_frozen(parser);
		return type_cql_fail(parser, "unknown type with parameters");
	}
	if (slice_equal_string(name, "varchar"))
		return type_native(TYPE_TEXT);
	for (kind = 0; kind < TYPE_NATIVE_COUNT; kind++) {
		/* "empty" has no name in the grammar, only in what is printed; reading our own
		 * system_schema.columns needs it. */
		if (slice_equal_string(name, type_cql_of((enum type_kind)kind)))
			return type_native((enum type_kind)kind);
	}
	return type_cql_udt(parser, name, is_frozen);
}

static const struct type *
type_cql_parse(struct type_parser *parser, bool is_frozen)
{
	const struct type *type;

	if (parser->depth >= TYPE_DEPTH_MAX)
		return type_cql_fail(parser, "types nested too deep");
	parser->depth++;
	if (type_parser_peek(parser) == '\'')
		type = type_cql_custom(parser);
	else
		type = type_cql_named(parser, is_frozen);
	parser->depth--;
	return type;
}

int
type_parse_cql(struct slice text, type_resolve_udt_fn resolve, void *user, struct arena *arena,
    const struct type **out, struct error *err)
{
	struct error ignored;
	struct type_parser parser = {.text = text,
	    .resolve = resolve,
	    .user = user,
	    .arena = arena,
	    .err = err != NULL ? err : &ignored};
	const struct type *type = type_cql_parse(&parser, false);

	if (type == NULL)
		return -1;
	if (type_parser_peek(&parser) != -1) {
		type_cql_fail(&parser, "unexpected text after the type");
		return -1;
	}
	*out = type;
	return 0;
}

/* ---- Class names --------------------------------------------------------------------------- */

/* Classes that are one of the native types under another name. */
static const struct {
	const char *class_name;
	enum type_kind kind;
} type_class_aliases[] = {
    {"DateType", TYPE_TIMESTAMP},
    {"LegacyTimeUUIDType", TYPE_TIMEUUID},
};

/* Classes kept by name: compared as bytes (LexicalUUIDType as what it is). */
static const char *const type_class_customs[] = {
    "LexicalUUIDType",
    "DynamicCompositeType",
    "PartitionerDefinedOrder",
    "ColumnToCollectionType",
};

static const struct type *
type_class_fail(struct type_parser *parser, const char *what)
{
	error_set(parser->err, ERROR_SYNTAX, "Syntax error parsing '%.*s' at char %zu: %s",
	    (int)parser->text.size, (const char *)parser->text.data, parser->at, what);
	return NULL;
}

static bool
type_class_is_name_byte(uint8_t c)
{
	return isalnum(c) || c == '-' || c == '+' || c == '.' || c == '_' || c == '&';
}

static struct slice
type_class_word(struct type_parser *parser)
{
	size_t start;

	type_parser_skip_blank(parser);
	start = parser->at;
	while (parser->at < parser->text.size &&
	    type_class_is_name_byte(parser->text.data[parser->at]))
		parser->at++;
	return slice_of(parser->text.data + start, parser->at - start);
}

static const struct type *
type_class_invalid(struct type_parser *parser, const char *class_name)
{
	error_set(parser->err, ERROR_CONFIG,
	    "Invalid definition for comparator " TYPE_CLASS_PACKAGE "%s.", class_name);
	return NULL;
}

static const struct type *type_class_parse(struct type_parser *parser);

struct type_class_params {
	const struct type **params;
	struct slice *fields;
	uint32_t count;
	uint32_t capacity;
	struct slice keyspace;
	struct slice name;
	uint32_t dimension;
};

static int
type_class_add(struct type_parser *parser, struct type_class_params *list, const struct type *type,
    struct slice field)
{
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
		const struct type **params = arena_calloc(parser->arena, capacity, sizeof(*params));
		struct slice *fields = arena_calloc(parser->arena, capacity, sizeof(*fields));

		if (capacity > TYPE_PARAMS_MAX) {
			type_class_fail(parser, "too many parameters");
			return -1;
		}
		if (params == NULL || fields == NULL) {
			type_parser_no_memory(parser);
			return -1;
		}
		if (list->count > 0) {
			memcpy(params, list->params, list->count * sizeof(*params));
			memcpy(fields, list->fields, list->count * sizeof(*fields));
		}
		list->params = params;
		list->fields = fields;
		list->capacity = capacity;
	}
	list->params[list->count] = type;
	list->fields[list->count] = field;
	list->count++;
	return 0;
}

/* Hex digits to bytes in the arena; false when they are none. */
static bool
type_class_hex(struct type_parser *parser, struct slice word, struct slice *out)
{
	uint8_t *bytes = arena_alloc_bytes(parser->arena, word.size / 2 + 1);

	if (bytes == NULL || hex_decode((const char *)word.data, word.size, bytes) != 0)
		return false;
	*out = slice_of(bytes, word.size / 2);
	return true;
}

/* After '(' up to and with ')'. */
static int
type_class_list(
    struct type_parser *parser, struct type_class_params *list, bool is_udt, bool is_vector)
{
	if (is_udt) {
		list->keyspace = type_class_word(parser);
		if (!type_parser_take(parser, ',') ||
		    !type_class_hex(parser, type_class_word(parser), &list->name)) {
			type_class_invalid(parser, "UserType");
			return -1;
		}
		type_parser_take(parser, ',');
	}
	while (!type_parser_take(parser, ')')) {
		struct slice field = slice_null;
		const struct type *type;

		if (type_parser_peek(parser) == -1) {
			type_class_fail(parser, "unexpected end of string");
			return -1;
		}
		if (is_udt &&
		    (!type_class_hex(parser, type_class_word(parser), &field) ||
			!type_parser_take(parser, ':'))) {
			type_class_invalid(parser, "UserType");
			return -1;
		}
		if (is_vector && list->count == 1) {
			list->dimension = type_parser_number(parser, TYPE_DIMENSION_MAX);
			if (!type_parser_take(parser, ')')) {
				type_class_invalid(parser, "VectorType");
				return -1;
			}
			return 0;
		}
		type = type_class_parse(parser);
		if (type == NULL || type_class_add(parser, list, type, field) != 0)
			return -1;
		if (!type_parser_take(parser, ',') && type_parser_peek(parser) != ')') {
			type_class_fail(parser,
			    type_parser_peek(parser) == -1 ? "unexpected end of string"
							   : "expecting ',' or ')'");
			return -1;
		}
	}
	return 0;
}

/* A class that is kept by name, with its parameters as they stand. */
static const struct type *
type_class_custom(struct type_parser *parser, struct slice name)
{
	size_t start = parser->at;
	int depth = 0;
	char *text;

	if (type_parser_peek(parser) == '(') {
		do {
			if (parser->at >= parser->text.size)
				return type_class_fail(parser, "unexpected end of string");
			if (parser->text.data[parser->at] == '(')
				depth++;
			else if (parser->text.data[parser->at] == ')')
				depth--;
			parser->at++;
		} while (depth > 0);
	} else {
		start = parser->at;
	}
	text = arena_printf(parser->arena, TYPE_CLASS_PACKAGE "%.*s%.*s", (int)name.size,
	    (const char *)name.data, (int)(parser->at - start),
	    (const char *)parser->text.data + start);
	if (text == NULL)
		return type_parser_no_memory(parser);
	return type_parser_check(parser, type_custom(parser->arena, slice_of_string(text)));
}

static const struct type *
type_class_build(struct type_parser *parser, enum type_kind kind, struct type_class_params *list)
{
	struct arena *arena = parser->arena;
	uint32_t want = kind == TYPE_MAP ? 2 : 1;
	uint32_t i;

	if (kind == TYPE_UDT)
		return type_udt(arena, list->keyspace, list->name, list->fields, list->params,
		    list->count, true);
	if (kind == TYPE_COMPOSITE)
		return type_composite(arena, list->params, list->count);
	for (i = 0; i < list->count; i++) {
		/* What is inside a collection, tuple or vector is frozen whatever is written. */
		list->params[i] = type_freeze(arena, list->params[i]);
		if (list->params[i] == NULL)
			return NULL;
	}
	if (kind == TYPE_TUPLE)
		return type_tuple(arena, list->params, list->count);
	if (list->count != want || (kind == TYPE_VECTOR && list->dimension == 0)) {
		type_class_invalid(parser, type_class_of(kind));
		return NULL;
	}
	switch (kind) {
	case TYPE_LIST:
		return type_list(arena, list->params[0], true);
	case TYPE_SET:
		return type_set(arena, list->params[0], true);
	case TYPE_MAP:
		return type_map(arena, list->params[0], list->params[1], true);
	case TYPE_VECTOR:
		return type_vector(arena, list->params[0], list->dimension);
	default:
		return type_reversed(arena, list->params[0]);
	}
}

static const struct type *
type_class_with_params(struct type_parser *parser, enum type_kind kind)
{
	struct type_class_params list = {.count = 0};
	const struct type *type;

	if (!type_parser_take(parser, '('))
		return type_class_invalid(parser, type_class_of(kind));
	if (type_class_list(parser, &list, kind == TYPE_UDT, kind == TYPE_VECTOR) != 0)
		return NULL;
	error_clear(parser->err);
	type = type_class_build(parser, kind, &list);
	if (type == NULL && parser->err->code == ERROR_NONE)
		return type_parser_no_memory(parser);
	return type;
}

static const struct type *
type_class_frozen(struct type_parser *parser)
{
	struct type_class_params list = {.count = 0};

	if (!type_parser_take(parser, '('))
		return type_class_invalid(parser, "FrozenType");
	if (type_class_list(parser, &list, false, false) != 0)
		return NULL;
	if (list.count != 1)
		return type_class_invalid(parser, "FrozenType");
	return type_parser_check(parser, type_freeze(parser->arena, list.params[0]));
}

/* A native type with superfluous parameters: read over them. */
static const struct type *
type_class_native(struct type_parser *parser, enum type_kind kind)
{
	struct type_class_params list = {.count = 0};

	if (type_parser_take(parser, '(') && type_class_list(parser, &list, false, false) != 0)
		return NULL;
	return type_native(kind);
}

static const struct type *
type_class_by_name(struct type_parser *parser, struct slice name)
{
	const size_t package = sizeof(TYPE_CLASS_PACKAGE) - 1;
	struct slice full = name;
	size_t i;
	int kind;

	if (name.size > package && memcmp(name.data, TYPE_CLASS_PACKAGE, package) == 0)
		name = slice_of(name.data + package, name.size - package);
	for (kind = 0; kind < TYPE_CUSTOM; kind++) {
		if (!slice_equal_string(name, type_class_of((enum type_kind)kind)))
			continue;
		if (kind < TYPE_NATIVE_COUNT)
			return type_class_native(parser, (enum type_kind)kind);
		return type_class_with_params(parser, (enum type_kind)kind);
	}
	if (slice_equal_string(name, "FrozenType"))
		return type_class_frozen(parser);
	for (i = 0; i < sizeof(type_class_aliases) / sizeof(type_class_aliases[0]); i++) {
		if (slice_equal_string(name, type_class_aliases[i].class_name))
			return type_class_native(parser, type_class_aliases[i].kind);
	}
	for (i = 0; i < sizeof(type_class_customs) / sizeof(type_class_customs[0]); i++) {
		if (slice_equal_string(name, type_class_customs[i]))
			return type_class_custom(parser, name);
	}
	error_set(parser->err, ERROR_CONFIG, "Unable to find abstract-type class '%s%.*s'",
	    memchr(full.data, '.', full.size) != NULL ? "" : TYPE_CLASS_PACKAGE, (int)full.size,
	    (const char *)full.data);
	return NULL;
}

static const struct type *
type_class_parse(struct type_parser *parser)
{
	const struct type *type;
	struct slice name;

	if (parser->depth >= TYPE_DEPTH_MAX)
		return type_class_fail(parser, "types nested too deep");
	parser->depth++;
	name = type_class_word(parser);
	/* Nothing means bytes, as TypeParser has it. */
	if (name.size == 0)
		type = parser->text.size == 0 ? type_native(TYPE_BLOB)
					      : type_class_fail(parser, "expecting a class name");
	else
		type = type_class_by_name(parser, name);
	parser->depth--;
	return type;
}

int
type_parse_class(struct slice text, struct arena *arena, const struct type **out, struct error *err)
{
	struct error ignored;
	struct type_parser parser = {
	    .text = text, .arena = arena, .err = err != NULL ? err : &ignored};
	const struct type *type = type_class_parse(&parser);

	if (type == NULL)
		return -1;
	if (type_parser_peek(&parser) != -1) {
		type_class_fail(&parser, "unexpected text after the type");
		return -1;
	}
	*out = type;
	return 0;
}
