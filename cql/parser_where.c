/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

static bool
parser_is_comparison(enum lexer_token_type type)
{
	return type == TOKEN_EQUAL || type == TOKEN_LESS || type == TOKEN_LESS_EQUAL ||
	    type == TOKEN_GREATER || type == TOKEN_GREATER_EQUAL || type == TOKEN_NOT_EQUAL;
}

static int
parser_comparison(struct parser *p, enum ast_operator *out)
{
	switch (parser_peek(p, 1)) {
	case TOKEN_EQUAL:
		*out = AST_EQ;
		break;
	case TOKEN_LESS:
		*out = AST_LT;
		break;
	case TOKEN_LESS_EQUAL:
		*out = AST_LTE;
		break;
	case TOKEN_GREATER:
		*out = AST_GT;
		break;
	case TOKEN_GREATER_EQUAL:
		*out = AST_GTE;
		break;
	case TOKEN_NOT_EQUAL:
		*out = AST_NEQ;
		break;
	default:
		return parser_no_viable(p, 1);
	}
	parser_take(p);
	return 0;
}

/* Step over a comparison that is a word, or has no token of its own. */
static void
parser_take_word(struct parser *p, enum ast_operator comparison, enum ast_operator *out)
{
	parser_take(p);
	*out = comparison;
}

static bool
parser_is_marker(enum lexer_token_type type)
{
	return type == TOKEN_QMARK || type == TOKEN_COLON;
}

static bool
parser_is_column(enum lexer_token_type type)
{
	return type == TOKEN_EMPTY_QUOTED_NAME || parser_is_ident(type);
}

/* What comes behind IN: ( a, b ) or a marker for the whole list. */
static int
parser_in_values(struct parser *p, struct ast_term **value, struct ast_terms *values)
{
	if (parser_is_marker(parser_peek(p, 1)))
		return parser_marker(p, value);
	if (parser_peek(p, 1) != TOKEN_OPEN)
		return parser_no_viable(p, 1);
	return parser_term_list(p, values);
}

/* CONTAINS ( KEY )? term. */
static int
parser_contains(struct parser *p, enum ast_operator *comparison, struct ast_term **value)
{
	parser_take(p);
	/* KEY may also be the keyspace of a function. */
	*comparison = AST_CONTAINS;
	if (parser_peek(p, 1) == K_KEY && parser_peek(p, 2) != TOKEN_DOT) {
		if (!parser_is_term_start(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		*comparison = AST_CONTAINS_KEY;
		parser_take(p);
	}
	return parser_term(p, value);
}

/* ---- Relations ---- */

static int
parser_push_column(struct parser *p, struct ast_relation *relation)
{
	struct ast_identifiers *columns = &relation->columns;
	struct ast_identifier *column = PARSER_PUSH(p, columns->items, columns->count);

	return column == NULL ? -1 : parser_column_ident(p, column);
}

static int
parser_element_relation(struct parser *p, struct ast_relation *relation)
{
	relation->kind = AST_RELATION_ELEMENT;
	parser_take(p);
	if (parser_term(p, &relation->key) != 0 || parser_expect(p, TOKEN_CLOSE_BRACKET) != 0 ||
	    parser_comparison(p, &relation->operator) != 0)
		return -1;
	return parser_term(p, &relation->value);
}

static int
parser_is_not_null(struct parser *p, struct ast_relation *relation)
{
	parser_take_word(p, AST_IS_NOT, &relation->operator);
	if (parser_expect(p, K_NOT) != 0)
		return -1;
	return parser_null(p, &relation->value);
}

/* The whole choice is made before the column's name is taken; errors mark the name. */
static int
parser_column_relation(struct parser *p, struct ast_relation *relation)
{
	enum lexer_token_type next = parser_peek(p, 2);

	if (!parser_is_comparison(next) && next != K_LIKE && next != K_IS && next != K_IN &&
	    next != K_CONTAINS && next != TOKEN_OPEN_BRACKET)
		return parser_no_viable(p, 2);
	if (next == K_IN && parser_peek(p, 3) != TOKEN_OPEN && !parser_is_marker(parser_peek(p, 3)))
		return parser_no_viable(p, 3);
	relation->kind = AST_RELATION_COLUMN;
	if (parser_push_column(p, relation) != 0)
		return -1;
	switch (next) {
	case K_LIKE:
		parser_take_word(p, AST_LIKE, &relation->operator);
		return parser_term(p, &relation->value);
	case K_IS:
		return parser_is_not_null(p, relation);
	case K_IN:
		parser_take_word(p, AST_IN, &relation->operator);
		return parser_in_values(p, &relation->value, &relation->in_values);
	case K_CONTAINS:
		return parser_contains(p, &relation->operator, & relation->value);
	case TOKEN_OPEN_BRACKET:
		return parser_element_relation(p, relation);
	default:
		if (parser_comparison(p, &relation->operator) != 0)
			return -1;
		return parser_term(p, &relation->value);
	}
}

/* '(' a, b ')' */
static int
parser_tuple_of_columns(struct parser *p, struct ast_relation *relation)
{
	if (parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	do {
		if (parser_push_column(p, relation) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_token_relation(struct parser *p, struct ast_relation *relation)
{
	relation->kind = AST_RELATION_TOKEN;
	parser_take(p);
	if (parser_tuple_of_columns(p, relation) != 0 ||
	    parser_comparison(p, &relation->operator) != 0)
		return -1;
	return parser_term(p, &relation->value);
}

/* ( ) | ( (1, 2), ... ) | ( ?, ... ): of tuples; the first item decides for all. */
static int
parser_in_tuples(struct parser *p, struct ast_terms *out)
{
	bool are_markers = parser_is_marker(parser_peek(p, 2));

	parser_take(p);
	if (parser_accept(p, TOKEN_CLOSE))
		return 0;
	do {
		struct ast_term **item = PARSER_PUSH(p, out->items, out->count);

		if (item == NULL)
			return -1;
		if (are_markers && !parser_is_marker(parser_peek(p, 1)))
			return parser_no_viable(p, 1);
		if ((are_markers ? parser_marker(p, item) : parser_tuple_literal(p, item)) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_tuple_in(struct parser *p, struct ast_relation *relation)
{
	enum lexer_token_type next;

	parser_take_word(p, AST_IN, &relation->operator);
	next = parser_peek(p, 1);
	if (parser_is_marker(next))
		return parser_marker(p, &relation->value);
	if (next != TOKEN_OPEN)
		return parser_no_viable(p, 1);
	next = parser_peek(p, 2);
	if (next != TOKEN_OPEN && next != TOKEN_CLOSE && !parser_is_marker(next))
		return parser_no_viable(p, 2);
	return parser_in_tuples(p, &relation->in_values);
}

static int
parser_tuple_relation(struct parser *p, struct ast_relation *relation)
{
	enum lexer_token_type next;

	relation->kind = AST_RELATION_TUPLE;
	if (parser_tuple_of_columns(p, relation) != 0)
		return -1;
	if (parser_peek(p, 1) == K_IN)
		return parser_tuple_in(p, relation);
	if (!parser_is_comparison(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	next = parser_peek(p, 2);
	if (next != TOKEN_OPEN && !parser_is_marker(next))
		return parser_no_viable(p, 2);
	if (parser_comparison(p, &relation->operator) != 0)
		return -1;
	if (parser_is_marker(next))
		return parser_marker(p, &relation->value);
	return parser_tuple_literal(p, &relation->value);
}

/* expr ( index, term ) */
static int
parser_index_expression(struct parser *p, struct ast_relation *relation)
{
	relation->kind = AST_RELATION_EXPRESSION;
	parser_take_word(p, AST_EQ, &relation->operator);
	if (parser_index_name(p, &relation->index) != 0 || parser_expect(p, TOKEN_COMMA) != 0 ||
	    parser_term(p, &relation->value) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE);
}

static int parser_relation(struct parser *p, struct ast_relation *relation);

static int
parser_relation_in_parentheses(struct parser *p, struct ast_relation *relation)
{
	unsigned outer;
	int rc;

	parser_take(p);
	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_relation(p, relation);
	parser_leave(p, outer);
	return rc != 0 ? -1 : parser_expect(p, TOKEN_CLOSE);
}

static int
parser_relation(struct parser *p, struct ast_relation *relation)
{
	enum lexer_token_type next = parser_peek(p, 1);

	relation->at = parser_position(p);
	if (next == K_TOKEN)
		return parser_token_relation(p, relation);
	if (parser_is_column(next))
		return parser_column_relation(p, relation);
	if (next != TOKEN_OPEN)
		return parser_no_viable(p, 1);
	next = parser_peek(p, 2);
	if (next == TOKEN_OPEN || next == K_TOKEN)
		return parser_relation_in_parentheses(p, relation);
	if (!parser_is_column(next))
		return parser_no_viable(p, 2);
	next = parser_peek(p, 3);
	if (next == TOKEN_COMMA || next == TOKEN_CLOSE)
		return parser_tuple_relation(p, relation);
	if (!parser_is_comparison(next) && next != K_LIKE && next != K_IS && next != K_IN &&
	    next != K_CONTAINS && next != TOKEN_OPEN_BRACKET)
		return parser_no_viable(p, 3);
	return parser_relation_in_parentheses(p, relation);
}

int
parser_where(struct parser *p, struct ast_where *out)
{
	do {
		struct ast_relation *relation = parser_alloc(p, sizeof(*relation));
		struct ast_relation **item = PARSER_PUSH(p, out->items, out->count);
		int rc;

		if (relation == NULL || item == NULL)
			return -1;
		*item = relation;
		relation->at = parser_position(p);
		rc = parser_peek(p, 1) == TOKEN_EXPR ? parser_index_expression(p, relation)
						     : parser_relation(p, relation);
		if (rc != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}

/* ---- Conditions ---- */

static int
parser_condition(struct parser *p, struct ast_condition *condition)
{
	if (parser_column_ident(p, &condition->column) != 0)
		return -1;
	if (parser_accept(p, TOKEN_OPEN_BRACKET)) {
		if (parser_term(p, &condition->element) != 0 ||
		    parser_expect(p, TOKEN_CLOSE_BRACKET) != 0)
			return -1;
	} else if (parser_accept(p, TOKEN_DOT)) {
		if (parser_ident(p, &condition->field) != 0)
			return -1;
	} else if (parser_peek(p, 1) == K_CONTAINS) {
		return parser_contains(p, &condition->operator, & condition->value);
	}
	if (parser_peek(p, 1) == K_IN) {
		parser_take_word(p, AST_IN, &condition->operator);
		return parser_in_values(p, &condition->value, &condition->in_values);
	}
	if (parser_comparison(p, &condition->operator) != 0)
		return -1;
	return parser_term(p, &condition->value);
}

int
parser_conditions(struct parser *p, struct ast_conditions *out)
{
	enum lexer_token_type next;

	if (!parser_accept(p, K_IF))
		return 0;
	/* EXISTS is also a column's name. */
	next = parser_peek(p, 1);
	if (next == K_EXISTS && !parser_is_comparison(parser_peek(p, 2)) &&
	    parser_peek(p, 2) != K_IN && parser_peek(p, 2) != K_CONTAINS &&
	    parser_peek(p, 2) != TOKEN_OPEN_BRACKET && parser_peek(p, 2) != TOKEN_DOT) {
		parser_take(p);
		out->if_exists = true;
		return 0;
	}
	if (!parser_is_column(next))
		return parser_no_viable(p, 1);
	do {
		struct ast_condition *condition = parser_alloc(p, sizeof(*condition));
		struct ast_condition **item = PARSER_PUSH(p, out->items, out->count);

		if (condition == NULL || item == NULL)
			return -1;
		*item = condition;
		if (parser_condition(p, condition) != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}
