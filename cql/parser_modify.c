/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

/* ---- USING ---- */

static int
parser_using_objective(struct parser *p, struct ast_attributes *out)
{
	if (parser_accept(p, K_TIMESTAMP))
		return parser_int_value(p, &out->timestamp);
	if (parser_accept(p, K_TTL))
		return parser_int_value(p, &out->ttl);
	return parser_no_viable(p, 1);
}

static int
parser_using(struct parser *p, struct ast_attributes *out)
{
	if (!parser_accept(p, K_USING))
		return 0;
	do {
		if (parser_using_objective(p, out) != 0)
			return -1;
	} while (parser_accept(p, K_AND));
	return 0;
}

/* ---- INSERT ---- */

static int
parser_insert_values(struct parser *p, struct statement_insert *out)
{
	struct ast_terms *values = &out->values;

	parser_take(p);
	do {
		struct ast_identifier *column =
		    PARSER_PUSH(p, out->columns.items, out->columns.count);

		if (column == NULL || parser_column_ident(p, column) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	if (parser_expect(p, TOKEN_CLOSE) != 0 || parser_expect(p, K_VALUES) != 0 ||
	    parser_expect(p, TOKEN_OPEN) != 0)
		return -1;
	do {
		struct ast_term **value = PARSER_PUSH(p, values->items, values->count);

		if (value == NULL || parser_term(p, value) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return parser_expect(p, TOKEN_CLOSE);
}

static int
parser_insert_json(struct parser *p, struct statement_insert *out)
{
	enum lexer_token_type next;

	parser_take(p);
	out->is_json = true;
	next = parser_peek(p, 1);
	if (next != TOKEN_STRING && next != TOKEN_QMARK && next != TOKEN_COLON)
		return parser_no_viable(p, 1);
	if ((next == TOKEN_STRING ? parser_constant(p, &out->json)
				  : parser_marker(p, &out->json)) != 0)
		return -1;
	if (!parser_accept(p, K_DEFAULT))
		return 0;
	if (parser_accept(p, K_NULL))
		return 0;
	if (parser_peek(p, 1) != K_UNSET)
		return parser_no_viable(p, 1);
	parser_take(p);
	out->default_unset = true;
	return 0;
}

static int
parser_insert(struct parser *p, struct statement_insert *out)
{
	int rc;

	parser_take(p);
	if (parser_expect(p, K_INTO) != 0 || parser_table_name(p, &out->table) != 0)
		return -1;
	if (parser_peek(p, 1) == TOKEN_OPEN)
		rc = parser_insert_values(p, out);
	else if (parser_peek(p, 1) == K_JSON)
		rc = parser_insert_json(p, out);
	else
		rc = parser_no_viable(p, 1);
	if (rc != 0 || parser_if_not_exists(p, &out->if_not_exists) != 0)
		return -1;
	return parser_using(p, &out->attributes);
}

/* ---- UPDATE ---- */

static int
parser_other_column(struct parser *p, const char *form)
{
	return parser_refuse(
	    p, ERROR_SYNTAX, "Only expressions of the form %s are supported.", form);
}

/* c = c + value, c = c - value, c = c -3 */
static int
parser_assign_change(struct parser *p, struct ast_assignment *out)
{
	struct ast_identifier column = {0};
	const struct lexer_token *sign;
	bool is_own, is_minus;

	if (parser_column_ident(p, &column) != 0)
		return -1;
	is_own = ast_string_equal(column.text, out->column.text);
	is_minus = p->text[p->tokens[p->at].start] == '-';
	if (parser_peek(p, 1) == TOKEN_INTEGER) {
		/* A minus that touches its number is a part of it. */
		out->kind = AST_ASSIGN_ADD;
		if (!is_own)
			return parser_other_column(
			    p, is_minus ? "X = X - <value>" : "X = X + <value>");
		return parser_constant(p, &out->value);
	}
	sign = parser_take(p);
	out->kind = sign->type == TOKEN_PLUS ? AST_ASSIGN_ADD : AST_ASSIGN_SUBTRACT;
	if (parser_term(p, &out->value) != 0)
		return -1;
	if (!is_own)
		return parser_other_column(p, is_minus ? "X = X -<value>" : "X = X +<value>");
	return 0;
}

/* c = value, c = value + c */
static int
parser_assign_value(struct parser *p, struct ast_assignment *out)
{
	struct ast_identifier column = {0};

	out->kind = AST_ASSIGN_SET;
	if (parser_term(p, &out->value) != 0)
		return -1;
	if (!parser_accept(p, TOKEN_PLUS))
		return 0;
	out->kind = AST_ASSIGN_PREPEND;
	if (parser_column_ident(p, &column) != 0)
		return -1;
	if (!ast_string_equal(column.text, out->column.text))
		return parser_other_column(p, "X = <value> + X");
	return 0;
}

static int
parser_assign_equal(struct parser *p, struct ast_assignment *out)
{
	enum lexer_token_type first, second;

	parser_take(p);
	first = parser_peek(p, 1);
	if (first != TOKEN_EMPTY_QUOTED_NAME && !parser_is_ident(first))
		return parser_assign_value(p, out);
	second = parser_peek(p, 2);
	if (second == TOKEN_PLUS || second == TOKEN_MINUS || second == TOKEN_INTEGER)
		return parser_assign_change(p, out);
	if (!parser_is_call(p, 1))
		return parser_no_viable(p, 2);
	return parser_assign_value(p, out);
}

static int
parser_assign_part(struct parser *p, struct ast_assignment *out)
{
	if (parser_accept(p, TOKEN_DOT)) {
		out->kind = AST_ASSIGN_SET_FIELD;
		if (parser_ident(p, &out->field) != 0)
			return -1;
	} else {
		out->kind = AST_ASSIGN_SET_ELEMENT;
		parser_take(p);
		if (parser_term(p, &out->element) != 0 ||
		    parser_expect(p, TOKEN_CLOSE_BRACKET) != 0)
			return -1;
	}
	if (parser_expect(p, TOKEN_EQUAL) != 0)
		return -1;
	return parser_term(p, &out->value);
}

static int
parser_assignment(struct parser *p, struct ast_assignment *out)
{
	if (parser_column_ident(p, &out->column) != 0)
		return -1;
	switch (parser_peek(p, 1)) {
	case TOKEN_EQUAL:
		return parser_assign_equal(p, out);
	case TOKEN_PLUS_EQUAL:
		out->kind = AST_ASSIGN_ADD;
		parser_take(p);
		return parser_term(p, &out->value);
	case TOKEN_MINUS_EQUAL:
		out->kind = AST_ASSIGN_SUBTRACT;
		parser_take(p);
		return parser_term(p, &out->value);
	case TOKEN_OPEN_BRACKET:
	case TOKEN_DOT:
		return parser_assign_part(p, out);
	default:
		return parser_no_viable(p, 1);
	}
}

/* Operation.RawUpdate.isCompatibleWith(). */
static bool
parser_is_compatible(const struct ast_assignment *before, const struct ast_assignment *after)
{
	if (before->kind == AST_ASSIGN_SET || after->kind == AST_ASSIGN_SET)
		return false;
	if (before->kind == AST_ASSIGN_SET_FIELD && after->kind == AST_ASSIGN_SET_FIELD)
		return !ast_string_equal(before->field.text, after->field.text);
	return true;
}

static int
parser_check_assignment(struct parser *p, const struct statement_update *update,
    const struct ast_assignment *assignment)
{
	for (size_t i = 0; i + 1 < update->assignment_count; i++) {
		const struct ast_assignment *before = update->assignments[i];

		if (ast_string_equal(before->column.text, assignment->column.text) &&
		    !parser_is_compatible(before, assignment))
			return parser_refuse(p, ERROR_SYNTAX,
			    "Multiple incompatible setting of column %s",
			    assignment->column.text.text);
	}
	return 0;
}

static int
parser_update(struct parser *p, struct statement_update *out)
{
	parser_take(p);
	if (parser_table_name(p, &out->table) != 0 || parser_using(p, &out->attributes) != 0 ||
	    parser_expect(p, K_SET) != 0)
		return -1;
	do {
		struct ast_assignment *assignment = parser_alloc(p, sizeof(*assignment));
		struct ast_assignment **item =
		    PARSER_PUSH(p, out->assignments, out->assignment_count);

		if (assignment == NULL || item == NULL)
			return -1;
		*item = assignment;
		if (parser_assignment(p, assignment) != 0 ||
		    parser_check_assignment(p, out, assignment) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	if (parser_expect(p, K_WHERE) != 0 || parser_where(p, &out->where) != 0)
		return -1;
	return parser_conditions(p, &out->conditions);
}

/* ---- DELETE ---- */

static int
parser_deletion(struct parser *p, struct ast_deletion *out)
{
	enum lexer_token_type next = parser_peek(p, 1);

	if (next != TOKEN_EMPTY_QUOTED_NAME && !parser_is_ident(next))
		return parser_no_viable(p, 1);
	/* The choice is made before the column's name is taken. */
	next = parser_peek(p, 2);
	if (next != TOKEN_COMMA && next != K_FROM && next != TOKEN_DOT &&
	    next != TOKEN_OPEN_BRACKET)
		return parser_no_viable(p, 2);
	if (parser_column_ident(p, &out->column) != 0)
		return -1;
	if (parser_accept(p, TOKEN_DOT))
		return parser_ident(p, &out->field);
	if (!parser_accept(p, TOKEN_OPEN_BRACKET))
		return 0;
	if (parser_term(p, &out->element) != 0)
		return -1;
	return parser_expect(p, TOKEN_CLOSE_BRACKET);
}

static int
parser_deletions(struct parser *p, struct statement_delete *out)
{
	do {
		struct ast_deletion *deletion = parser_alloc(p, sizeof(*deletion));
		struct ast_deletion **item = PARSER_PUSH(p, out->deletions, out->deletion_count);

		if (deletion == NULL || item == NULL)
			return -1;
		*item = deletion;
		if (parser_deletion(p, deletion) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

static int
parser_delete(struct parser *p, struct statement_delete *out)
{
	enum lexer_token_type next;

	parser_take(p);
	next = parser_peek(p, 1);
	if ((next == TOKEN_EMPTY_QUOTED_NAME || parser_is_ident(next)) &&
	    parser_deletions(p, out) != 0)
		return -1;
	if (parser_expect(p, K_FROM) != 0 || parser_table_name(p, &out->table) != 0)
		return -1;
	if (parser_accept(p, K_USING)) {
		if (parser_expect(p, K_TIMESTAMP) != 0 ||
		    parser_int_value(p, &out->attributes.timestamp) != 0)
			return -1;
	}
	if (parser_expect(p, K_WHERE) != 0 || parser_where(p, &out->where) != 0)
		return -1;
	return parser_conditions(p, &out->conditions);
}

int
parser_modification(struct parser *p, struct statement *out)
{
	out->at = parser_position(p);
	switch (parser_peek(p, 1)) {
	case K_INSERT:
		out->kind = STATEMENT_INSERT;
		return parser_insert(p, &out->insert);
	case K_UPDATE:
		out->kind = STATEMENT_UPDATE;
		return parser_update(p, &out->update);
	default:
		out->kind = STATEMENT_DELETE;
		return parser_delete(p, &out->delete);
	}
}

/* ---- BATCH ---- */

static bool
parser_is_modification(enum lexer_token_type type)
{
	return type == K_INSERT || type == K_UPDATE || type == K_DELETE;
}

int
parser_batch(struct parser *p, struct statement_batch *out)
{
	parser_take(p);
	if (parser_accept(p, K_UNLOGGED))
		out->kind = AST_BATCH_UNLOGGED;
	else if (parser_accept(p, K_COUNTER))
		out->kind = AST_BATCH_COUNTER;
	if (parser_expect(p, K_BATCH) != 0 || parser_using(p, &out->attributes) != 0)
		return -1;
	while (parser_is_modification(parser_peek(p, 1))) {
		struct statement *statement = parser_alloc(p, sizeof(*statement));
		struct statement **item = PARSER_PUSH(p, out->statements, out->statement_count);

		if (statement == NULL || item == NULL)
			return -1;
		*item = statement;
		if (parser_modification(p, statement) != 0)
			return -1;
		parser_accept(p, TOKEN_SEMICOLON);
	}
	if (parser_expect(p, K_APPLY) != 0)
		return -1;
	return parser_expect(p, K_BATCH);
}
