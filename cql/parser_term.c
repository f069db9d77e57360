/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

static int parser_simple_term(struct parser *p, struct ast_term **out);

static struct ast_term *
parser_new_term(struct parser *p, enum ast_term_kind kind)
{
	struct ast_term *term = parser_alloc(p, sizeof(*term));

	if (term != NULL) {
		term->kind = kind;
		term->at = parser_position(p);
	}
	return term;
}

/* ---- Constants and markers ---- */

bool
parser_is_constant(enum lexer_token_type type)
{
	switch (type) {
	case TOKEN_STRING:
	case TOKEN_INTEGER:
	case TOKEN_FLOAT:
	case TOKEN_BOOLEAN:
	case TOKEN_DURATION:
	case TOKEN_UUID:
	case TOKEN_HEX:
	case K_POSITIVE_NAN:
	case K_NEGATIVE_NAN:
	case K_POSITIVE_INFINITY:
	case K_NEGATIVE_INFINITY:
		return true;
	default:
		return false;
	}
}

static enum ast_constant_kind
parser_constant_kind(enum lexer_token_type type)
{
	switch (type) {
	case TOKEN_STRING:
		return AST_CONSTANT_STRING;
	case TOKEN_INTEGER:
		return AST_CONSTANT_INTEGER;
	case TOKEN_BOOLEAN:
		return AST_CONSTANT_BOOLEAN;
	case TOKEN_DURATION:
		return AST_CONSTANT_DURATION;
	case TOKEN_UUID:
		return AST_CONSTANT_UUID;
	case TOKEN_HEX:
		return AST_CONSTANT_HEX;
	default:
		return AST_CONSTANT_FLOAT;
	}
}

/* -NaN is NaN. */
static struct ast_string
parser_special_float(enum lexer_token_type type)
{
	if (type == K_POSITIVE_INFINITY)
		return (struct ast_string){"Infinity", 8};
	if (type == K_NEGATIVE_INFINITY)
		return (struct ast_string){"-Infinity", 9};
	return (struct ast_string){"NaN", 3};
}

int
parser_constant(struct parser *p, struct ast_term **out)
{
	enum lexer_token_type type = parser_peek(p, 1);
	const struct lexer_token *token;
	struct ast_term *term;

	if (!parser_is_constant(type))
		return parser_no_viable(p, 1);
	term = parser_new_term(p, AST_TERM_CONSTANT);
	if (term == NULL)
		return -1;
	token = parser_take(p);
	term->constant.kind = parser_constant_kind(type);
	*out = term;
	if (term->constant.kind == AST_CONSTANT_FLOAT && type != TOKEN_FLOAT) {
		term->constant.text = parser_special_float(type);
		return 0;
	}
	return parser_token_text(p, token, false, &term->constant.text);
}

int
parser_null(struct parser *p, struct ast_term **out)
{
	*out = parser_new_term(p, AST_TERM_NULL);
	return *out == NULL ? -1 : parser_expect(p, K_NULL);
}

int
parser_marker(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_MARKER);
	struct ast_identifier name = {0};
	struct ast_marker *marker;

	if (term == NULL)
		return -1;
	if (parser_accept(p, TOKEN_COLON)) {
		if (parser_ident(p, &name) != 0)
			return -1;
	} else {
		parser_take(p);
	}
	if (p->are_markers_refused)
		return parser_refuse(p, ERROR_SYNTAX, "bind markers are not allowed here");
	term->marker = (uint32_t)p->marker_count;
	marker = PARSER_PUSH(p, p->markers, p->marker_count);
	if (marker == NULL)
		return -1;
	*marker = (struct ast_marker){name.text, term->at};
	*out = term;
	return 0;
}

int
parser_int_value(struct parser *p, struct ast_term **out)
{
	switch (parser_peek(p, 1)) {
	case TOKEN_INTEGER:
		return parser_constant(p, out);
	case TOKEN_QMARK:
	case TOKEN_COLON:
		return parser_marker(p, out);
	default:
		return parser_no_viable(p, 1);
	}
}

/* ---- Collections and tuples ---- */

static int
parser_terms(struct parser *p, struct ast_terms *out)
{
	do {
		struct ast_term **item = PARSER_PUSH(p, out->items, out->count);

		if (item == NULL || parser_term(p, item) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

int
parser_term_list(struct parser *p, struct ast_terms *out)
{
	if (parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	if (parser_is_term_start(parser_peek(p, 1)) && parser_terms(p, out) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_list_literal(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_LIST);

	if (term == NULL)
		return -1;
	parser_take(p);
	if (parser_is_term_start(parser_peek(p, 1)) && parser_terms(p, &term->terms) != 0)
		return -1;
	*out = term;
	return parser_expect(p, TOKEN_CLOSE_BRACKET);
}

int
parser_tuple_literal(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_TUPLE);

	if (term == NULL || parser_expect(p, TOKEN_OPEN) != 0 || parser_terms(p, &term->terms) != 0)
		return -1;
	*out = term;
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_user_type_literal(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_UDT);

	if (term == NULL)
		return -1;
	parser_take(p);
	do {
		struct ast_field_value *item =
		    PARSER_PUSH(p, term->fields.items, term->fields.count);

		if (item == NULL || parser_ident(p, &item->field) != 0 ||
		    parser_expect(p, TOKEN_COLON) != 0 || parser_term(p, &item->value) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	*out = term;
	return parser_expect(p, TOKEN_CLOSE_BRACE);
}

/* What is left of {k: v, ...} once the first key is there. */
static int
parser_map_entries(struct parser *p, struct ast_term *term, struct ast_term *key)
{
	for (;;) {
		struct ast_map_entry *entry = PARSER_PUSH(p, term->pairs.items, term->pairs.count);

		if (entry == NULL || parser_expect(p, TOKEN_COLON) != 0)
			return -1;
		entry->key = key;
		if (parser_term(p, &entry->value) != 0)
			return -1;
		if (!parser_accept(p, TOKEN_COMMA))
			return 0;
		if (parser_term(p, &key) != 0)
			return -1;
	}
}

int
parser_map_literal(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_MAP), *key;

	if (term == NULL || parser_expect(p, TOKEN_OPEN_BRACE) != 0)
		return -1;
	if (parser_is_term_start(parser_peek(p, 1)) &&
	    (parser_term(p, &key) != 0 || parser_map_entries(p, term, key) != 0))
		return -1;
	*out = term;
	return parser_expect(p, TOKEN_CLOSE_BRACE);
}

static int
parser_set_or_map_literal(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_SET), *first;
	struct ast_term **item;

	if (term == NULL)
		return -1;
	*out = term;
	parser_take(p);
	if (parser_accept(p, TOKEN_CLOSE_BRACE))
		return 0;
	if (parser_term(p, &first) != 0)
		return -1;
	if (parser_peek(p, 1) == TOKEN_COLON) {
		term->kind = AST_TERM_MAP;
		if (parser_map_entries(p, term, first) != 0)
			return -1;
		return parser_expect(p, TOKEN_CLOSE_BRACE);
	}
	if (parser_peek(p, 1) != TOKEN_COMMA && parser_peek(p, 1) != TOKEN_CLOSE_BRACE)
		return parser_no_viable(p, 1);
	item = PARSER_PUSH(p, term->terms.items, term->terms.count);
	if (item == NULL)
		return -1;
	*item = first;
	if (parser_accept(p, TOKEN_COMMA) && parser_terms(p, &term->terms) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE_BRACE);
}

static int
parser_braces(struct parser *p, struct ast_term **out)
{
	enum lexer_token_type next = parser_peek(p, 2);

	/* Which of {a: 1}, {1: 1}, {1} and {} it is, is decided at the brace. */
	if (next != TOKEN_CLOSE_BRACE && !parser_is_term_start(next))
		return parser_no_viable(p, 2);
	if (parser_is_ident(next)) {
		if (parser_peek(p, 3) == TOKEN_COLON)
			return parser_user_type_literal(p, out);
		if (!parser_is_call(p, 2))
			return parser_no_viable(p, 3);
	}
	return parser_set_or_map_literal(p, out);
}

/* ---- Functions and casts ---- */

static bool
parser_is_function_word(enum lexer_token_type type)
{
	enum lexer_word kind = lexer_word_kind(type);

	return type == TOKEN_IDENT || type == TOKEN_QUOTED_NAME || type == K_TOKEN ||
	    type == K_COUNT || kind == LEXER_UNRESERVED || kind == LEXER_TYPE;
}

bool
parser_is_call(struct parser *p, size_t ahead)
{
	enum lexer_token_type type = parser_peek(p, ahead);

	if (parser_is_function_word(type) || type == K_CAST) {
		if (parser_peek(p, ahead + 1) == TOKEN_OPEN)
			return true;
	}
	return (parser_is_ident(type) || type == TOKEN_QMARK) &&
	    parser_peek(p, ahead + 1) == TOKEN_DOT;
}

bool
parser_is_term_start(enum lexer_token_type type)
{
	switch (type) {
	case K_NULL:
	case K_TOKEN:
	case TOKEN_OPEN:
	case TOKEN_OPEN_BRACE:
	case TOKEN_OPEN_BRACKET:
	case TOKEN_QMARK:
	case TOKEN_COLON:
	case TOKEN_MINUS:
		return true;
	default:
		return parser_is_constant(type) || parser_is_ident(type);
	}
}

static int
parser_function_call(struct parser *p, struct ast_term **out)
{
	struct ast_term *term;
	size_t first;

	if (!parser_is_call(p, 1))
		return parser_no_viable(p, 2);
	/* Whether there are arguments is decided before the name is taken. */
	first = parser_peek(p, 2) == TOKEN_DOT ? 5 : 3;
	if (first == 5 && !parser_is_function_word(parser_peek(p, 3)))
		return parser_no_viable(p, 3);
	if (first == 5 && parser_peek(p, 4) != TOKEN_OPEN)
		return parser_no_viable(p, 4);
	if (parser_peek(p, first - 1) == TOKEN_OPEN && parser_peek(p, first) != TOKEN_CLOSE &&
	    !parser_is_term_start(parser_peek(p, first)))
		return parser_no_viable(p, first);
	term = parser_new_term(p, AST_TERM_FUNCTION);
	if (term == NULL || parser_function_name(p, &term->function.name) != 0)
		return -1;
	*out = term;
	return parser_term_list(p, &term->function.arguments);
}

/* CAST ( term AS type ) */
static int
parser_cast(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_CAST);

	if (term == NULL)
		return -1;
	parser_take(p);
	if (parser_expect(p, TOKEN_OPEN) != 0 || parser_simple_term(p, &term->cast.term) != 0 ||
	    parser_expect(p, K_AS) != 0 || parser_native_type(p, &term->cast.type) != 0)
		return -1;
	*out = term;
	return parser_expect(p, TOKEN_CLOSE);
}

enum parser_parentheses_kind {
	PARSER_TYPE_CAST, /* (type) term */
	PARSER_TUPLE, /* (term, ...) */
	PARSER_NEITHER, /* an error is written */
};

/* ('abc') x, or ('abc'): the string may be a type's class. */
static enum parser_parentheses_kind
parser_parentheses_of_string(struct parser *p)
{
	enum lexer_token_type next = parser_peek(p, 3);

	if (next != TOKEN_CLOSE) {
		if (next == TOKEN_PLUS || next == TOKEN_MINUS || next == TOKEN_COMMA ||
		    parser_is_product_sign(next))
			return PARSER_TUPLE;
		parser_no_viable(p, 3);
		return PARSER_NEITHER;
	}
	next = parser_peek(p, 4);
	if (!parser_is_term_start(next) || next == TOKEN_MINUS)
		return PARSER_TUPLE;
	if (next == TOKEN_COLON)
		return parser_is_ident(parser_peek(p, 5)) ? PARSER_TYPE_CAST : PARSER_TUPLE;
	/* Words such as GROUP may also go on the statement. */
	return parser_is_ident(next) && !parser_is_call(p, 4) ? PARSER_TUPLE : PARSER_TYPE_CAST;
}

/* No name is a term by itself, so one in parentheses is a type, unless it is called. */
static enum parser_parentheses_kind
parser_parentheses_kind(struct parser *p)
{
	enum lexer_token_type first = parser_peek(p, 2);
	size_t ahead = 3;

	if (first == TOKEN_STRING)
		return parser_parentheses_of_string(p);
	if (first == K_SET)
		return PARSER_TYPE_CAST;
	if (!parser_is_ident(first)) {
		if (parser_is_term_start(first))
			return PARSER_TUPLE;
		parser_no_viable(p, 2);
		return PARSER_NEITHER;
	}
	if (parser_peek(p, 3) == TOKEN_DOT) {
		if (!parser_is_function_word(parser_peek(p, 4)) && parser_peek(p, 4) != K_KEY) {
			parser_no_viable(p, 4);
			return PARSER_NEITHER;
		}
		ahead = 5;
	}
	switch (parser_peek(p, ahead)) {
	case TOKEN_OPEN:
		return PARSER_TUPLE;
	case TOKEN_LESS:
	case TOKEN_CLOSE:
		return PARSER_TYPE_CAST;
	default:
		parser_no_viable(p, ahead);
		return PARSER_NEITHER;
	}
}

static int
parser_type_cast(struct parser *p, struct ast_term **out)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_TYPE_CAST);

	if (term == NULL)
		return -1;
	parser_take(p);
	if (parser_type(p, &term->cast.type) != 0 || parser_expect(p, TOKEN_CLOSE) != 0)
		return -1;
	*out = term;
	return parser_simple_term(p, &term->cast.term);
}

static int
parser_parentheses(struct parser *p, struct ast_term **out)
{
	switch (parser_parentheses_kind(p)) {
	case PARSER_TYPE_CAST:
		return parser_type_cast(p, out);
	case PARSER_TUPLE:
		return parser_tuple_literal(p, out);
	default:
		return -1;
	}
}

static int
parser_simple_term_inside(struct parser *p, struct ast_term **out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	switch (type) {
	case K_NULL:
		return parser_null(p, out);
	case TOKEN_OPEN:
		return parser_parentheses(p, out);
	case TOKEN_OPEN_BRACE:
		return parser_braces(p, out);
	case TOKEN_OPEN_BRACKET:
		return parser_list_literal(p, out);
	case TOKEN_QMARK:
		if (parser_peek(p, 2) == TOKEN_DOT)
			return parser_function_call(p, out);
		/* fall through */
	case TOKEN_COLON:
		return parser_marker(p, out);
	case K_CAST:
		if (parser_peek(p, 2) == TOKEN_OPEN)
			return parser_cast(p, out);
		return parser_function_call(p, out);
	default:
		if (parser_is_constant(type))
			return parser_constant(p, out);
		if (type == K_TOKEN || parser_is_ident(type))
			return parser_function_call(p, out);
		return parser_no_viable(p, 1);
	}
}

static int
parser_simple_term(struct parser *p, struct ast_term **out)
{
	unsigned outer;
	int rc;

	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_simple_term_inside(p, out);
	if (rc == 0)
		rc = parser_rise(p);
	parser_leave(p, outer);
	return rc;
}

/* ---- Arithmetic ---- */

static int
parser_term_group(struct parser *p, struct ast_term **out)
{
	struct ast_term *term;

	if (parser_peek(p, 1) != TOKEN_MINUS)
		return parser_simple_term(p, out);
	term = parser_new_term(p, AST_TERM_NEGATION);
	if (term == NULL)
		return -1;
	parser_take(p);
	*out = term;
	return parser_simple_term(p, &term->negated);
}

/* left <operator> right, the operator being the next token; *left becomes the operation. */
static int
parser_operation(struct parser *p, int (*operand)(struct parser *p, struct ast_term **out),
    struct ast_term **left)
{
	struct ast_term *term = parser_new_term(p, AST_TERM_OPERATION);
	char *sign;

	if (term == NULL || parser_rise(p) != 0)
		return -1;
	term->at = (*left)->at;
	sign = &term->operation.operator;
	*sign = p->text[parser_take(p)->start];
	term->operation.left = *left;
	*left = term;
	return operand(p, &term->operation.right);
}

static int
parser_term_multiplication(struct parser *p, struct ast_term **out)
{
	if (parser_term_group(p, out) != 0)
		return -1;
	while (parser_is_product_sign(parser_peek(p, 1))) {
		if (parser_operation(p, parser_term_group, out) != 0)
			return -1;
	}
	return 0;
}

/* What the grammar lets follow a term, wherever that stands. */
static bool
parser_may_follow_term(enum lexer_token_type type)
{
	switch (type) {
	case TOKEN_EOF:
	case TOKEN_SEMICOLON:
	case TOKEN_CLOSE:
	case TOKEN_COMMA:
	case TOKEN_COLON:
	case TOKEN_CLOSE_BRACKET:
	case TOKEN_CLOSE_BRACE:
	case TOKEN_RANGE:
	case K_ALLOW:
	case K_AND:
	case K_APPLY:
	case K_DELETE:
	case K_GROUP:
	case K_IF:
	case K_INSERT:
	case K_LIMIT:
	case K_ORDER:
	case K_PER:
	case K_PRIMARY:
	case K_UPDATE:
	case K_WHERE:
		return true;
	default:
		return false;
	}
}

static int
parser_term_end(struct parser *p)
{
	if (!parser_may_follow_term(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	parser_peek(p, 2); /* Cassandra's parser looks as far, and its errors show that */
	return 0;
}

/* The + is not the term's, but that of `c = [1] + c`, which belongs to the assignment. */
static bool
parser_is_prepend(struct parser *p)
{
	enum lexer_token_type next = parser_peek(p, 2);

	return next == TOKEN_EMPTY_QUOTED_NAME || (parser_is_ident(next) && !parser_is_call(p, 2));
}

static int
parser_term_addition(struct parser *p, struct ast_term **out)
{
	if (parser_term_multiplication(p, out) != 0)
		return -1;
	for (;;) {
		enum lexer_token_type next = parser_peek(p, 1);

		if (next == TOKEN_PLUS && parser_peek(p, 2) != TOKEN_EMPTY_QUOTED_NAME &&
		    !parser_is_term_start(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		if (next == TOKEN_PLUS && parser_is_prepend(p)) {
			next = parser_peek(p, 3);
			return next == TOKEN_COMMA || next == K_WHERE ? 0 : parser_no_viable(p, 3);
		}
		if (next != TOKEN_PLUS && next != TOKEN_MINUS)
			return parser_term_end(p);
		if (parser_operation(p, parser_term_multiplication, out) != 0)
			return -1;
	}
}

int
parser_term(struct parser *p, struct ast_term **out)
{
	unsigned outer;
	int rc;

	if (parser_enter(p, &outer) != 0)
		return -1;
	rc = parser_term_addition(p, out);
	parser_leave(p, outer);
	return rc;
}
