/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

/* One word that says it all. */
static int
parser_describe_word(struct parser *p, struct statement_describe *out, enum ast_describe_kind kind)
{
	if (parser_peek(p, 2) == TOKEN_DOT || parser_is_ident(parser_peek(p, 2)))
		parser_peek(p, 3); /* for the sake of errors */
	parser_take(p);
	out->kind = kind;
	return 0;
}

/* A word and a name. */
static int
parser_describe_named(struct parser *p, struct statement_describe *out, enum ast_describe_kind kind,
    int (*name)(struct parser *p, struct ast_name *out))
{
	parser_take(p);
	out->kind = kind;
	return name(p, &out->name);
}

static int
parser_describe_keyspace(struct parser *p, struct statement_describe *out)
{
	enum lexer_token_type next;

	out->kind = AST_DESCRIBE_KEYSPACE;
	out->is_only = parser_accept(p, K_ONLY);
	if (parser_expect(p, K_KEYSPACE) != 0)
		return -1;
	out->name.at = parser_position(p);
	next = parser_peek(p, 1);
	if (next == TOKEN_QMARK || parser_is_ident(next))
		return parser_keyspace_name(p, &out->name.keyspace);
	return 0;
}

static int
parser_describe_schema(struct parser *p, struct statement_describe *out)
{
	out->kind = AST_DESCRIBE_SCHEMA;
	out->is_full = parser_accept(p, K_FULL);
	return parser_expect(p, K_SCHEMA);
}

static int
parser_describe_view(struct parser *p, struct statement_describe *out)
{
	parser_take(p);
	if (parser_peek(p, 1) != K_VIEW)
		return parser_mismatch(p, "K_VIEW");
	return parser_describe_named(p, out, AST_DESCRIBE_VIEW, parser_table_name);
}

static int
parser_describe_any(struct parser *p, struct statement_describe *out)
{
	struct ast_identifier name = {0};

	out->kind = AST_DESCRIBE_ANY;
	out->name.at = parser_position(p);
	if (parser_is_ident(parser_peek(p, 1))) {
		enum lexer_token_type next = parser_peek(p, 2);

		if (next != TOKEN_DOT && next != TOKEN_EOF && next != TOKEN_SEMICOLON &&
		    next != K_WITH)
			return parser_no_viable(p, 2);
	}
	if (parser_ident(p, &name) != 0)
		return -1;
	if (parser_accept(p, TOKEN_DOT)) {
		out->name.keyspace = name.text;
		if (parser_ident(p, &name) != 0)
			return -1;
	}
	out->name.name = name.text;
	return 0;
}

/* TYPE, FUNCTION and AGGREGATE alone, or with a dot behind, are names of something else. */
static bool
parser_is_described(struct parser *p)
{
	enum lexer_token_type next = parser_peek(p, 2);

	return next == TOKEN_QMARK || next == K_TOKEN || parser_is_ident(next);
}

static int
parser_describe_what(struct parser *p, struct statement_describe *out)
{
	switch (parser_peek(p, 1)) {
	case K_CLUSTER:
		return parser_describe_word(p, out, AST_DESCRIBE_CLUSTER);
	case K_KEYSPACES:
		return parser_describe_word(p, out, AST_DESCRIBE_KEYSPACES);
	case K_TABLES:
		return parser_describe_word(p, out, AST_DESCRIBE_TABLES);
	case K_TYPES:
		return parser_describe_word(p, out, AST_DESCRIBE_TYPES);
	case K_FUNCTIONS:
		return parser_describe_word(p, out, AST_DESCRIBE_FUNCTIONS);
	case K_AGGREGATES:
		return parser_describe_word(p, out, AST_DESCRIBE_AGGREGATES);
	case K_FULL:
	case K_SCHEMA:
		return parser_describe_schema(p, out);
	case K_KEYSPACE:
		return parser_describe_keyspace(p, out);
	case K_ONLY:
		if (parser_peek(p, 2) == K_KEYSPACE)
			return parser_describe_keyspace(p, out);
		return parser_describe_any(p, out);
	case K_COLUMNFAMILY:
		return parser_describe_named(p, out, AST_DESCRIBE_TABLE, parser_table_name);
	case K_INDEX:
		return parser_describe_named(p, out, AST_DESCRIBE_INDEX, parser_table_name);
	case K_MATERIALIZED:
		return parser_describe_view(p, out);
	case K_TYPE:
		if (parser_is_described(p))
			return parser_describe_named(p, out, AST_DESCRIBE_TYPE, parser_type_name);
		return parser_describe_any(p, out);
	case K_FUNCTION:
		if (parser_is_described(p))
			return parser_describe_named(
			    p, out, AST_DESCRIBE_FUNCTION, parser_function_name);
		return parser_describe_any(p, out);
	case K_AGGREGATE:
		if (parser_is_described(p))
			return parser_describe_named(
			    p, out, AST_DESCRIBE_AGGREGATE, parser_function_name);
		return parser_describe_any(p, out);
	default:
		return parser_describe_any(p, out);
	}
}

int
parser_describe(struct parser *p, struct statement_describe *out)
{
	parser_take(p);
	if (parser_describe_what(p, out) != 0)
		return -1;
	if (!parser_accept(p, K_WITH))
		return 0;
	out->with_internals = true;
	return parser_expect(p, K_INTERNALS);
}
