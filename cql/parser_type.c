/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>

#include "cql/parser_core.h"
#include "cql/type.h"

static struct ast_type *
parser_new_type(struct parser *p, enum ast_type_kind kind)
{
	struct ast_type *type = parser_alloc(p, sizeof(*type));

	if (type != NULL) {
		type->kind = kind;
		type->at = parser_position(p);
	}
	return type;
}

int
parser_native_type(struct parser *p, struct ast_type **out)
{
	struct ast_type *type;

	if (lexer_word_kind(parser_peek(p, 1)) != LEXER_TYPE)
		return parser_no_viable(p, 1);
	type = parser_new_type(p, AST_TYPE_NATIVE);
	if (type == NULL || parser_token_text(p, parser_take(p), true, &type->name) != 0)
		return -1;
	*out = type;
	return 0;
}

static int
parser_type_argument(struct parser *p, struct ast_type *type)
{
	struct ast_type **argument = PARSER_PUSH(p, type->arguments, type->argument_count);

	return argument == NULL ? -1 : parser_type(p, argument);
}

/* vector<float, 3>: the ", 3". */
static int
parser_dimension(struct parser *p, struct ast_type *type)
{
	struct ast_string text;
	long long value;

	if (parser_expect(p, TOKEN_COMMA) != 0)
		return -1;
	if (parser_peek(p, 1) != TOKEN_INTEGER)
		return parser_mismatch(p, "INTEGER");
	if (parser_token_text(p, parser_take(p), false, &text) != 0)
		return -1;
	value = strtoll(text.text, NULL, 10);
	if (value > INT_MAX || value < INT_MIN)
		return parser_refuse(
		    p, ERROR_SYNTAX, "vector dimension %s is out of range", text.text);
	type->dimension = (int32_t)value;
	return 0;
}

/* name < type, ... >: of `least` to `most` types. */
static int
parser_generic(
    struct parser *p, enum ast_type_kind kind, size_t least, size_t most, struct ast_type **out)
{
	struct ast_type *type = parser_new_type(p, kind);

	if (type == NULL)
		return -1;
	parser_take(p);
	if (parser_expect(p, TOKEN_LESS) != 0 || parser_type_argument(p, type) != 0)
		return -1;
	while (type->argument_count < least ||
	    (type->argument_count < most && parser_peek(p, 1) == TOKEN_COMMA)) {
		if (parser_expect(p, TOKEN_COMMA) != 0 || parser_type_argument(p, type) != 0)
			return -1;
	}
	if (kind == AST_TYPE_VECTOR && parser_dimension(p, type) != 0)
		return -1;
	*out = type;
	return parser_expect(p, TOKEN_GREATER);
}

static int
parser_frozen(struct parser *p, struct ast_type **out)
{
	parser_take(p);
	if (parser_expect(p, TOKEN_LESS) != 0 || parser_type(p, out) != 0)
		return -1;
	if ((*out)->kind == AST_TYPE_NATIVE || (*out)->kind == AST_TYPE_CUSTOM)
		return parser_refuse(p, ERROR_SYNTAX,
		    "frozen<> is only allowed on collections, tuples, and user-defined types "
		    "(got %s)",
		    (*out)->name.text);
	(*out)->is_frozen = true;
	return parser_expect(p, TOKEN_GREATER);
}

static int
parser_user_type(struct parser *p, struct ast_type **out)
{
	struct ast_type *type = parser_new_type(p, AST_TYPE_USER);
	struct ast_name name = {0};

	if (type == NULL || parser_type_name(p, &name) != 0)
		return -1;
	type->keyspace = name.keyspace;
	type->name = name.name;
	*out = type;
	return 0;
}

static int
parser_custom_type(struct parser *p, struct ast_type **out)
{
	struct ast_type *type = parser_new_type(p, AST_TYPE_CUSTOM);
	const struct type *class;
	struct error err;

	if (type == NULL || parser_string(p, &type->name) != 0)
		return -1;
	*out = type;
	/* Whether there is such a class is known here, so that the error comes before all others. */
	if (type_parse_class(ast_slice(type->name), p->arena, &class, &err) == 0)
		return 0;
	if (err.code == ERROR_NO_MEMORY)
		return parser_no_memory(p);
	return parser_refuse(p, ERROR_SYNTAX, "%s type %s: %s",
	    err.code == ERROR_CONFIG ? "Error setting" : "Cannot parse", type->name.text, err.text);
}

/*
 * A native type's name is one of a user type's keyspace where a dot follows; the choice looks at what
 * follows, and where that ends a type, at the token behind.
 */
static int
parser_native_or_keyspace(struct parser *p, struct ast_type **out)
{
	switch (parser_peek(p, 2)) {
	case TOKEN_COMMA:
	case TOKEN_CLOSE:
	case TOKEN_GREATER:
		parser_peek(p, 3);
		return parser_native_type(p, out);
	case TOKEN_EOF:
	case TOKEN_SEMICOLON:
	case K_FINALFUNC:
	case K_INITCOND:
	case K_LANGUAGE:
	case K_PRIMARY:
	case K_STATIC:
		return parser_native_type(p, out);
	case TOKEN_DOT:
		return parser_user_type(p, out);
	default:
		if (parser_is_word(p, 2, "masked"))
			return parser_native_type(p, out);
		return parser_no_viable(p, 2);
	}
}

static int
parser_type_inside(struct parser *p, struct ast_type **out)
{
	enum lexer_token_type type = parser_peek(p, 1);
	bool is_generic;

	if (type == TOKEN_STRING)
		return parser_custom_type(p, out);
	if (type == K_SET)
		return parser_generic(p, AST_TYPE_SET, 1, 1, out);
	if (!parser_is_ident(type))
		return parser_no_viable(p, 1);
	if (lexer_word_kind(type) == LEXER_TYPE)
		return parser_native_or_keyspace(p, out);
	/* The words of collections are names of user types where no < follows. */
	is_generic = parser_peek(p, 2) == TOKEN_LESS;
	if (is_generic && type == K_FROZEN)
		return parser_frozen(p, out);
	if (is_generic && type == K_LIST)
		return parser_generic(p, AST_TYPE_LIST, 1, 1, out);
	if (is_generic && type == K_MAP)
		return parser_generic(p, AST_TYPE_MAP, 2, 2, out);
	if (is_generic && type == K_TUPLE)
		return parser_generic(p, AST_TYPE_TUPLE, 1, SIZE_MAX, out);
	if (is_generic && parser_is_word(p, 1, "vector"))
		return parser_generic(p, AST_TYPE_VECTOR, 1, 1, out);
	return parser_user_type(p, out);
}

int
parser_type(struct parser *p, struct ast_type **out)
{
	unsigned outer;
	int rc;

	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_type_inside(p, out);
	if (rc == 0)
		rc = parser_rise(p);
	parser_leave(p, outer);
	return rc;
}

int
parser_type_list(struct parser *p, struct ast_types *out)
{
	enum lexer_token_type next = parser_peek(p, 1);

	if (next == TOKEN_STRING || next == K_SET || parser_is_ident(next)) {
		do {
			struct ast_type **item = PARSER_PUSH(p, out->items, out->count);

			if (item == NULL || parser_type(p, item) != 0)
				return -1;
		} while (parser_accept(p, TOKEN_COMMA));
	}
	return parser_expect(p, TOKEN_CLOSE);
}
