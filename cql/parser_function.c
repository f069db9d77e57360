/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

/* ---- CREATE FUNCTION ---- */

static int
parser_function_arguments(struct parser *p, struct statement_create_function *create)
{
	struct ast_identifiers *names = &create->argument_names;
	struct ast_types *types = &create->argument_types;

	if (parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	if (parser_is_ident(parser_peek(p, 1))) {
		do {
			struct ast_identifier *name = PARSER_PUSH(p, names->items, names->count);
			struct ast_type **type = PARSER_PUSH(p, types->items, types->count);

			if (name == NULL || type == NULL || parser_ident(p, name) != 0 ||
			    parser_type(p, type) != 0)
				return -1;
		} while (parser_accept(p, TOKEN_COMMA));
	}
	return parser_expect(p, TOKEN_CLOSE);
}

/* ( RETURNS NULL | CALLED ) ON NULL INPUT */
static int
parser_null_input(struct parser *p, struct statement_create_function *create)
{
	if (parser_accept(p, K_CALLED))
		create->is_called_on_null = true;
	else if (!parser_accept(p, K_RETURNS))
		return parser_no_viable(p, 1);
	else if (parser_expect(p, K_NULL) != 0)
		return -1;
	if (parser_expect(p, K_ON) != 0 || parser_expect(p, K_NULL) != 0)
		return -1;
	return parser_expect(p, K_INPUT);
}

static int
parser_language(struct parser *p, struct ast_string *out)
{
	if (parser_peek(p, 1) != TOKEN_IDENT)
		return parser_mismatch(p, "IDENT");
	return parser_token_text(p, parser_take(p), true, out);
}

int
parser_create_function(struct parser *p, bool or_replace, struct statement *out)
{
	struct statement_create_function *create = &out->create_function;

	out->kind = STATEMENT_CREATE_FUNCTION;
	create->or_replace = or_replace;
	parser_take(p);
	if (parser_if_not_exists(p, &create->if_not_exists) != 0 ||
	    parser_function_name(p, &create->name) != 0 ||
	    parser_function_arguments(p, create) != 0 || parser_null_input(p, create) != 0 ||
	    parser_expect(p, K_RETURNS) != 0 || parser_type(p, &create->return_type) != 0 ||
	    parser_expect(p, K_LANGUAGE) != 0 || parser_language(p, &create->language) != 0 ||
	    parser_expect(p, K_AS) != 0)
		return -1;
	return parser_string(p, &create->body);
}

/* ---- CREATE AGGREGATE ---- */

int
parser_create_aggregate(struct parser *p, bool or_replace, struct statement *out)
{
	struct statement_create_aggregate *create = &out->create_aggregate;

	out->kind = STATEMENT_CREATE_AGGREGATE;
	create->or_replace = or_replace;
	parser_take(p);
	if (parser_if_not_exists(p, &create->if_not_exists) != 0 ||
	    parser_function_name(p, &create->name) != 0 || parser_expect(p, TOKEN_OPEN) != 0 ||
	    parser_type_list(p, &create->argument_types) != 0 || parser_expect(p, K_SFUNC) != 0 ||
	    parser_bare_function_name(p, &create->state_function) != 0 ||
	    parser_expect(p, K_STYPE) != 0 || parser_type(p, &create->state_type) != 0)
		return -1;
	if (parser_accept(p, K_FINALFUNC) &&
	    parser_bare_function_name(p, &create->final_function) != 0)
		return -1;
	if (parser_accept(p, K_INITCOND))
		return parser_term(p, &create->initial_condition);
	return 0;
}

/* ---- DROP FUNCTION, DROP AGGREGATE ---- */

int
parser_drop_function(struct parser *p, struct statement *out)
{
	struct statement_drop_function *drop = &out->drop_function;

	out->kind =
	    parser_take(p)->type == K_FUNCTION ? STATEMENT_DROP_FUNCTION : STATEMENT_DROP_AGGREGATE;
	if (parser_if_exists(p, &drop->if_exists) != 0 || parser_function_name(p, &drop->name) != 0)
		return -1;
	drop->has_arguments = parser_accept(p, TOKEN_OPEN);
	return drop->has_arguments ? parser_type_list(p, &drop->argument_types) : 0;
}
