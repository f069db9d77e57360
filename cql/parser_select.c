/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "cql/parser_core.h"

static int parser_selection(struct parser *p, struct ast_selector **out);
static int parser_selection_group(struct parser *p, struct ast_selector **out);
static int parser_selection_plain(struct parser *p, struct ast_selector **out);

static struct ast_selector *
parser_new_selector(struct parser *p, enum ast_selector_kind kind)
{
	struct ast_selector *selector = parser_alloc(p, sizeof(*selector));

	if (selector != NULL) {
		selector->kind = kind;
		selector->at = parser_position(p);
	}
	return selector;
}

static bool
parser_is_selection_start(enum lexer_token_type type)
{
	return parser_is_term_start(type);
}

/* ---- Functions ---- */

static int
parser_selections(struct parser *p, struct ast_selectors *out)
{
	do {
		struct ast_selector **item = PARSER_PUSH(p, out->items, out->count);

		if (item == NULL || parser_selection(p, item) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

static int
parser_selection_call(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_FUNCTION);

	if (selector == NULL || parser_function_name(p, &selector->function.name) != 0 ||
	    parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	if (parser_is_selection_start(parser_peek(p, 1)) &&
	    parser_selections(p, &selector->function.arguments) != 0)
		return -1;
	*out = selector;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_count(struct parser *p, struct ast_selector **out)
{
	enum lexer_token_type next = parser_peek(p, 3);
	struct ast_selector *selector;

	if (next != TOKEN_STAR) {
		if (next != TOKEN_CLOSE && !parser_is_selection_start(next))
			return parser_no_viable(p, 3);
		return parser_selection_call(p, out);
	}
	selector = parser_new_selector(p, AST_SELECTOR_COUNT_ROWS);
	if (selector == NULL)
		return -1;
	parser_take(p);
	parser_take(p);
	parser_take(p);
	*out = selector;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_selection_cast(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_CAST);

	if (selector == NULL)
		return -1;
	parser_take(p);
	parser_take(p);
	if (parser_selection(p, &selector->cast.operand) != 0 || parser_expect(p, K_AS) != 0 ||
	    parser_native_type(p, &selector->cast.type) != 0)
		return -1;
	*out = selector;
	return parser_expect(p, TOKEN_CLOSE);
}

/* ---- x.field, x[key], x[from..to] ---- */

static int
parser_field_selection(struct parser *p, struct ast_selector **selector)
{
	struct ast_selector *field = parser_new_selector(p, AST_SELECTOR_FIELD);

	if (field == NULL || parser_rise(p) != 0)
		return -1;
	field->at = (*selector)->at;
	field->field.operand = *selector;
	*selector = field;
	parser_take(p);
	return parser_ident(p, &field->field.field);
}

static int
parser_element_selection(struct parser *p, struct ast_selector **selector)
{
	struct ast_selector *element = parser_new_selector(p, AST_SELECTOR_ELEMENT);
	struct ast_term *from = NULL;

	if (element == NULL || parser_rise(p) != 0)
		return -1;
	element->at = (*selector)->at;
	parser_take(p);
	if (parser_peek(p, 1) != TOKEN_RANGE && parser_term(p, &from) != 0)
		return -1;
	if (parser_accept(p, TOKEN_RANGE)) {
		element->kind = AST_SELECTOR_SLICE;
		element->slice.operand = *selector;
		element->slice.from = from;
		if ((from == NULL || parser_is_term_start(parser_peek(p, 1))) &&
		    parser_term(p, &element->slice.to) != 0)
			return -1;
	} else {
		element->element.operand = *selector;
		element->element.key = from;
	}
	*selector = element;
	return parser_expect(p, TOKEN_CLOSE_BRACKET);
}

static int
parser_selection_modifiers(struct parser *p, struct ast_selector **selector)
{
	for (;;) {
		int rc;

		switch (parser_peek(p, 1)) {
		case TOKEN_DOT:
			rc = parser_field_selection(p, selector);
			break;
		case TOKEN_OPEN_BRACKET:
			rc = parser_element_selection(p, selector);
			break;
		default:
			return 0;
		}
		if (rc != 0)
			return -1;
	}
}

/* ---- Columns ---- */

static int
parser_selection_column(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_COLUMN);

	if (selector == NULL || parser_ident(p, &selector->column) != 0)
		return -1;
	*out = selector;
	return 0;
}

/* writetime ( column ), and of a part of it as 5.0 has it. */
static int
parser_column_attribute(struct parser *p, enum ast_selector_kind kind, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, kind);

	if (selector == NULL)
		return -1;
	parser_take(p);
	parser_take(p);
	if (parser_selection_column(p, &selector->operand) != 0 ||
	    parser_selection_modifiers(p, &selector->operand) != 0)
		return -1;
	*out = selector;
	return parser_expect(p, TOKEN_CLOSE);
}

/*
 * What may follow a column in a selector, told of the whole grammar: Cassandra's parser looks at it
 * before it takes the column.
 */
static bool
parser_may_follow_column(enum lexer_token_type type)
{
	switch (type) {
	case TOKEN_EOF:
	case TOKEN_SEMICOLON:
	case TOKEN_COMMA:
	case TOKEN_CLOSE:
	case TOKEN_CLOSE_BRACKET:
	case TOKEN_CLOSE_BRACE:
	case TOKEN_COLON:
	case TOKEN_PLUS:
	case TOKEN_MINUS:
	case TOKEN_STAR:
	case TOKEN_SLASH:
	case TOKEN_PERCENT:
	case TOKEN_DOT:
	case TOKEN_OPEN_BRACKET:
	case K_FROM:
	case K_AS:
	case K_ORDER:
	case K_PER:
	case K_LIMIT:
	case K_ALLOW:
		return true;
	default:
		return false;
	}
}

static int
parser_selection_word(struct parser *p, struct ast_selector **out)
{
	enum lexer_token_type type = parser_peek(p, 1), next = parser_peek(p, 2);

	if (next == TOKEN_OPEN) {
		switch (type) {
		case K_COUNT:
			return parser_count(p, out);
		case K_WRITETIME:
			return parser_column_attribute(p, AST_SELECTOR_WRITETIME, out);
		case K_TTL:
			return parser_column_attribute(p, AST_SELECTOR_TTL, out);
		case K_CAST:
			return parser_selection_cast(p, out);
		default:
			break;
		}
		if (parser_is_word(p, 1, "maxwritetime"))
			return parser_column_attribute(p, AST_SELECTOR_MAXWRITETIME, out);
		if (parser_is_word(p, 1, "minwritetime"))
			return parser_column_attribute(p, AST_SELECTOR_MINWRITETIME, out);
		if (parser_is_call(p, 1))
			return parser_selection_call(p, out);
	}
	if (type == K_TOKEN) {
		parser_take(p);
		return parser_mismatch(p, "'('");
	}
	if (next == TOKEN_DOT && parser_is_call(p, 3) && parser_peek(p, 4) == TOKEN_OPEN)
		return parser_selection_call(p, out);
	parser_peek(p, 3); /* Cassandra's parser looks as far, and its errors show that */
	if (!parser_may_follow_column(next))
		return parser_no_viable(p, 2);
	return parser_selection_column(p, out);
}

/* ---- Literals ---- */

static int
parser_selection_literal(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_TERM);
	enum lexer_token_type type = parser_peek(p, 1);

	if (selector == NULL)
		return -1;
	parser_peek(p, 3); /* as for columns */
	*out = selector;
	if (type == TOKEN_QMARK || type == TOKEN_COLON)
		return parser_marker(p, &selector->term);
	return type == K_NULL ? parser_null(p, &selector->term)
			      : parser_constant(p, &selector->term);
}

static int
parser_selection_list(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_LIST);

	if (selector == NULL)
		return -1;
	parser_take(p);
	if (parser_is_selection_start(parser_peek(p, 1)) &&
	    parser_selections(p, &selector->items) != 0)
		return -1;
	*out = selector;
	return parser_expect(p, TOKEN_CLOSE_BRACKET);
}

static int
parser_selection_pairs(struct parser *p, struct ast_selector *selector, struct ast_selector *key)
{
	for (;;) {
		struct ast_selector_pair *pair =
		    PARSER_PUSH(p, selector->pairs.items, selector->pairs.count);

		if (pair == NULL || parser_expect(p, TOKEN_COLON) != 0)
			return -1;
		pair->key = key;
		if (parser_selection(p, &pair->value) != 0)
			return -1;
		if (!parser_accept(p, TOKEN_COMMA))
			return 0;
		if (parser_selection(p, &key) != 0)
			return -1;
	}
}

static int
parser_selection_braces(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_SET), *first;
	struct ast_selector **item;

	if (selector == NULL)
		return -1;
	*out = selector;
	if (parser_peek(p, 2) != TOKEN_CLOSE_BRACE && !parser_is_selection_start(parser_peek(p, 2)))
		return parser_no_viable(p, 2);
	parser_take(p);
	if (parser_accept(p, TOKEN_CLOSE_BRACE))
		return 0;
	if (parser_selection(p, &first) != 0)
		return -1;
	if (parser_peek(p, 1) == TOKEN_COLON) {
		selector->kind = AST_SELECTOR_MAP;
		if (parser_selection_pairs(p, selector, first) != 0)
			return -1;
		return parser_expect(p, TOKEN_CLOSE_BRACE);
	}
	if (parser_peek(p, 1) != TOKEN_COMMA && parser_peek(p, 1) != TOKEN_CLOSE_BRACE)
		return parser_no_viable(p, 1);
	item = PARSER_PUSH(p, selector->items.items, selector->items.count);
	if (item == NULL)
		return -1;
	*item = first;
	if (parser_accept(p, TOKEN_COMMA) && parser_selections(p, &selector->items) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE_BRACE);
}

/* ---- Parentheses: (type) x, (a, b), (a) ---- */

static int
parser_type_hint(struct parser *p, struct ast_selector *selector)
{
	parser_take(p);
	if (parser_type(p, &selector->cast.type) != 0 || parser_expect(p, TOKEN_CLOSE) != 0)
		return -1;
	return parser_selection_plain(p, &selector->cast.operand);
}

static int
parser_selection_parentheses(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_TYPE_HINT);
	enum lexer_token_type next = parser_peek(p, 2);
	struct parser_mark mark;

	if (selector == NULL)
		return -1;
	parser_peek(p, 3); /* as for columns */
	*out = selector;
	if (next == TOKEN_STRING || next == K_SET || parser_is_ident(next)) {
		mark = parser_speculate(p);
		if (parser_decide(p, &mark, parser_type_hint(p, selector)))
			return 0;
		if (p->is_spent)
			return -1;
	}
	selector->kind = AST_SELECTOR_TUPLE;
	selector->items = (struct ast_selectors){0};
	parser_take(p);
	if (parser_selections(p, &selector->items) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_selection_plain_inside(struct parser *p, struct ast_selector **out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	switch (type) {
	case TOKEN_OPEN:
		return parser_selection_parentheses(p, out);
	case TOKEN_OPEN_BRACKET:
		return parser_selection_list(p, out);
	case TOKEN_OPEN_BRACE:
		return parser_selection_braces(p, out);
	case TOKEN_QMARK:
		if (parser_peek(p, 2) == TOKEN_DOT)
			return parser_selection_call(p, out);
		if (!parser_may_follow_column(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		/* fall through */
	case TOKEN_COLON:
	case K_NULL:
		return parser_selection_literal(p, out);
	default:
		if (parser_is_constant(type))
			return parser_selection_literal(p, out);
		if (type == K_TOKEN || parser_is_ident(type))
			return parser_selection_word(p, out);
		return parser_no_viable(p, 1);
	}
}

/* selectionGroupWithoutField. */
static int
parser_selection_plain(struct parser *p, struct ast_selector **out)
{
	unsigned outer;
	int rc;

	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_selection_plain_inside(p, out);
	if (rc == 0)
		rc = parser_rise(p);
	parser_leave(p, outer);
	return rc;
}

/*
 * Modifiers that do not parse to their end are left alone, all of them: whoever comes next stumbles
 * over the first one, as in Cassandra.
 */
static int
parser_selection_with_modifiers(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *plain = NULL, *modified;
	struct parser_mark mark;
	int rc;

	if (parser_selection_plain(p, &plain) != 0)
		return -1;
	assert(plain != NULL);
	*out = plain;
	if (parser_peek(p, 1) != TOKEN_DOT && parser_peek(p, 1) != TOKEN_OPEN_BRACKET)
		return 0;
	modified = plain;
	mark = parser_speculate(p);
	rc = parser_selection_modifiers(p, &modified);
	if (rc == 0 && !parser_may_follow_column(parser_peek(p, 1)))
		rc = -1;
	if (parser_decide(p, &mark, rc))
		*out = modified;
	return p->is_spent ? -1 : 0;
}

/* ---- Arithmetic ---- */

static int
parser_negation(struct parser *p, struct ast_selector **out)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_NEGATION);
	unsigned outer;
	int rc;

	if (selector == NULL || parser_enter(p, &outer) != 0)
		return -1;
	parser_take(p);
	*out = selector;
	rc = parser_selection_group(p, &selector->operand);
	if (rc == 0)
		rc = parser_rise(p);
	parser_leave(p, outer);
	return rc;
}

static int
parser_selection_group(struct parser *p, struct ast_selector **out)
{
	if (parser_peek(p, 1) == TOKEN_MINUS)
		return parser_negation(p, out);
	return parser_selection_with_modifiers(p, out);
}

static int
parser_selection_operation(struct parser *p,
    int (*operand)(struct parser *p, struct ast_selector **out), struct ast_selector **left)
{
	struct ast_selector *selector = parser_new_selector(p, AST_SELECTOR_OPERATION);
	char *sign;

	if (selector == NULL || parser_rise(p) != 0)
		return -1;
	selector->at = (*left)->at;
	sign = &selector->operation.operator;
	*sign = p->text[parser_take(p)->start];
	selector->operation.left = *left;
	*left = selector;
	return operand(p, &selector->operation.right);
}

static int
parser_selection_multiplication(struct parser *p, struct ast_selector **out)
{
	if (parser_selection_group(p, out) != 0)
		return -1;
	while (parser_is_product_sign(parser_peek(p, 1))) {
		if (parser_selection_operation(p, parser_selection_group, out) != 0)
			return -1;
	}
	return 0;
}

static int
parser_selection_addition(struct parser *p, struct ast_selector **out)
{
	if (parser_selection_multiplication(p, out) != 0)
		return -1;
	while (parser_peek(p, 1) == TOKEN_PLUS || parser_peek(p, 1) == TOKEN_MINUS)
		if (parser_selection_operation(p, parser_selection_multiplication, out) != 0)
			return -1;
	return 0;
}

/* unaliasedSelector. */
static int
parser_selection(struct parser *p, struct ast_selector **out)
{
	unsigned outer;
	int rc;

	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_selection_addition(p, out);
	parser_leave(p, outer);
	return rc;
}

/* ---- The clauses of SELECT ---- */

static int
parser_selector(struct parser *p, struct ast_selector **out)
{
	const char *start = p->text + p->tokens[p->at].start, *end;
	char *raw;

	if (parser_selection(p, out) != 0)
		return -1;
	end = p->text + p->tokens[p->at - 1].end;
	raw = arena_strndup(p->arena, start, (size_t)(end - start));
	if (raw == NULL)
		return parser_no_memory(p);
	(*out)->raw = (struct ast_string){raw, (size_t)(end - start)};
	if (parser_accept(p, K_AS))
		return parser_ident(p, &(*out)->alias);
	return 0;
}

int
parser_selectors(struct parser *p, bool *is_wildcard, struct ast_selectors *out)
{
	*is_wildcard = parser_peek(p, 1) == TOKEN_STAR;
	if (parser_accept(p, TOKEN_STAR))
		return 0;
	do {
		struct ast_selector **item = PARSER_PUSH(p, out->items, out->count);

		if (item == NULL || parser_selector(p, item) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

/* DISTINCT and JSON are columns' names too: keywords only where a selection parses behind them. */
static int
parser_select_clause(struct parser *p, struct statement_select *out)
{
	struct parser_mark mark;

	if (parser_peek(p, 1) == K_DISTINCT) {
		mark = parser_speculate(p);
		parser_take(p);
		out->is_distinct = true;
		if (parser_decide(
			p, &mark, parser_selectors(p, &out->is_wildcard, &out->selectors)))
			return 0;
		if (p->is_spent)
			return -1;
		out->is_distinct = false;
		out->selectors = (struct ast_selectors){0};
	}
	return parser_selectors(p, &out->is_wildcard, &out->selectors);
}

static int
parser_json_clause(struct parser *p, struct statement_select *out)
{
	struct parser_mark mark;

	if (parser_peek(p, 1) == K_JSON) {
		mark = parser_speculate(p);
		parser_take(p);
		out->is_json = true;
		if (parser_decide(p, &mark, parser_select_clause(p, out)))
			return 0;
		if (p->is_spent)
			return -1;
		out->is_json = false;
		out->is_distinct = false;
		out->selectors = (struct ast_selectors){0};
	}
	return parser_select_clause(p, out);
}

static int
parser_ordering(struct parser *p, struct ast_ordering *out)
{
	if (parser_column_ident(p, &out->column) != 0)
		return -1;
	if (parser_is_word(p, 1, "ann")) {
		if (parser_peek(p, 2) == K_OF) {
			parser_take(p);
			parser_take(p);
			if (parser_term(p, &out->ann_of) != 0)
				return -1;
		}
	}
	if (parser_accept(p, K_DESC))
		out->is_descending = true;
	else
		parser_accept(p, K_ASC);
	return 0;
}

static int
parser_order_by(struct parser *p, struct statement_select *out)
{
	if (!parser_accept(p, K_ORDER))
		return 0;
	if (parser_expect(p, K_BY) != 0)
		return -1;
	do {
		struct ast_ordering *ordering = PARSER_PUSH(p, out->orderings, out->ordering_count);

		if (ordering == NULL || parser_ordering(p, ordering) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

static int
parser_limits(struct parser *p, struct statement_select *out)
{
	if (parser_accept(p, K_PER)) {
		if (parser_expect(p, K_PARTITION) != 0 || parser_expect(p, K_LIMIT) != 0 ||
		    parser_int_value(p, &out->per_partition_limit) != 0)
			return -1;
	}
	if (parser_accept(p, K_LIMIT))
		return parser_int_value(p, &out->limit);
	return 0;
}

int
parser_select(struct parser *p, struct statement_select *out)
{
	parser_take(p);
	if (parser_json_clause(p, out) != 0 || parser_expect(p, K_FROM) != 0 ||
	    parser_table_name(p, &out->table) != 0)
		return -1;
	if (parser_accept(p, K_WHERE) && parser_where(p, &out->where) != 0)
		return -1;
	if (parser_accept(p, K_GROUP)) {
		if (parser_expect(p, K_BY) != 0 || parser_selections(p, &out->group_by) != 0)
			return -1;
	}
	if (parser_order_by(p, out) != 0 || parser_limits(p, out) != 0)
		return -1;
	if (parser_accept(p, K_ALLOW)) {
		out->allow_filtering = true;
		return parser_expect(p, K_FILTERING);
	}
	return 0;
}
