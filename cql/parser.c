/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/parser_core.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cql/parser_snippet.h"

enum { PARSER_TOKENS_INLINE = 192 };

/* ---- Errors ---- */

/* The lexer's error counts first where the parser's look-ahead had met it. */
static bool
parser_lexical_error(struct parser *p)
{
	const struct lexer *lexer = &p->lexer;

	if (p->tokens[p->seen].type != TOKEN_ERROR)
		return false;
	error_set(p->err, ERROR_SYNTAX, "line %u:%u %s", lexer->problem_line, lexer->problem_column,
	    lexer->problem);
	return true;
}

/* "line 1:7 <before>'x'<after> (SELECT [x]...)" of the token `ahead` places on. */
static int
parser_syntax_error(struct parser *p, size_t ahead, const char *before, const char *after)
{
	size_t index = p->at + ahead - 1;
	const struct lexer_token *token;
	char text[256];

	parser_peek(p, ahead);
	if (p->speculation > 0 || parser_lexical_error(p))
		return -1;
	token = &p->tokens[index < p->count ? index : p->count - 1];
	if (token->type == TOKEN_EOF) {
		error_set(p->err, ERROR_SYNTAX, "line 0:-1 %s'<EOF>'%s", before, after);
	} else {
		snippet_token_text(p->text, token, text, sizeof(text));
		error_set(p->err, ERROR_SYNTAX, "line %u:%u %s'%s'%s", token->line, token->column,
		    before, text, after);
	}
	snippet_append(slice_of(p->text, p->size), p->tokens[p->at].ordinal,
	    p->tokens[p->seen].ordinal, p->err);
	return -1;
}

int
parser_no_viable(struct parser *p, size_t ahead)
{
	return parser_syntax_error(p, ahead, "no viable alternative at input ", "");
}

int
parser_mismatch(struct parser *p, const char *expected)
{
	char after[64];

	snprintf(after, sizeof(after), " expecting %s", expected);
	return parser_syntax_error(p, 1, "mismatched input ", after);
}

int
parser_refuse(struct parser *p, enum error_code code, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list arguments;

	if (p->speculation > 0)
		return -1;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return error_set(p->err, code, "%s", text);
}

int
parser_no_memory(struct parser *p)
{
	p->is_spent = true;
	return error_set(p->err, ERROR_NO_MEMORY, "no memory to parse a statement");
}

static int
parser_too_deep(struct parser *p)
{
	const struct lexer_token *token = &p->tokens[p->at];

	p->is_spent = true;
	return error_set(p->err, ERROR_SYNTAX, "line %u:%u the statement is nested too deeply",
	    token->line, token->column);
}

int
parser_enter(struct parser *p, unsigned *outer_height)
{
	*outer_height = p->height;
	p->height = 0;
	return ++p->depth <= PARSER_DEPTH_MAX ? 0 : parser_too_deep(p);
}

int
parser_rise(struct parser *p)
{
	return ++p->height <= PARSER_DEPTH_MAX ? 0 : parser_too_deep(p);
}

void
parser_leave(struct parser *p, unsigned outer_height)
{
	p->depth--;
	if (p->height < outer_height)
		p->height = outer_height;
}

int
parser_expect(struct parser *p, enum lexer_token_type type)
{
	if (parser_accept(p, type))
		return 0;
	return parser_mismatch(p, lexer_token_name(type));
}

bool
parser_is_word(struct parser *p, size_t ahead, const char *word)
{
	const struct lexer_token *token;
	size_t length = strlen(word);

	if (parser_peek(p, ahead) != TOKEN_IDENT)
		return false;
	token = &p->tokens[p->at + ahead - 1];
	if (token->end - token->start != length)
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = p->text[token->start + i];

		if ((c >= 'A' && c <= 'Z' ? c | 32 : c) != word[i])
			return false;
	}
	return true;
}

/* ---- Going back ---- */

struct parser_mark
parser_speculate(struct parser *p)
{
	p->speculation++;
	return (struct parser_mark){p->at, p->marker_count, p->depth, p->height};
}

bool
parser_decide(struct parser *p, const struct parser_mark *mark, int rc)
{
	assert(p->speculation > 0);
	p->speculation--;
	if (rc == 0)
		return true;
	p->at = mark->at;
	p->marker_count = mark->marker_count;
	p->depth = mark->depth;
	p->height = mark->height;
	return false;
}

/* ---- Memory ---- */

void *
parser_alloc(struct parser *p, size_t size)
{
	void *memory = arena_zalloc(p->arena, size);

	if (memory == NULL)
		parser_no_memory(p);
	return memory;
}

void *
parser_grow(struct parser *p, void *items, size_t count, size_t item_size)
{
	uint8_t *grown = items;

	/* The capacity is not kept: it is 4, and the next power of two once that is full. */
	if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) {
		grown = arena_alloc(p->arena, (count == 0 ? 4 : count * 2) * item_size);
		if (grown == NULL) {
			parser_no_memory(p);
			return NULL;
		}
		if (count > 0)
			memcpy(grown, items, count * item_size);
	}
	memset(grown + count * item_size, 0, item_size);
	return grown;
}

/* ---- What tokens say ---- */

/* Copies `size` bytes, one of each doubled `quote`. */
static size_t
parser_unquote(char *out, const char *text, size_t size, char quote)
{
	char *at = out;

	for (size_t i = 0; i < size; i++) {
		*at++ = text[i];
		i += text[i] == quote;
	}
	return (size_t)(at - out);
}

int
parser_token_text(
    struct parser *p, const struct lexer_token *token, bool is_folded, struct ast_string *out)
{
	const char *text = p->text + token->start;
	size_t size = token->end - token->start;
	char *copy;

	if (token->type == TOKEN_STRING && *text == '$') {
		text += 2;
		size -= 4;
	}
	copy = arena_alloc_bytes(p->arena, size + 1);
	if (copy == NULL)
		return parser_no_memory(p);
	if (token->type == TOKEN_QUOTED_NAME || token->type == TOKEN_EMPTY_QUOTED_NAME ||
	    (token->type == TOKEN_STRING && *text == '\'' && text == p->text + token->start)) {
		size = parser_unquote(copy, text + 1, size - 2, *text);
	} else if (is_folded) {
		for (size_t i = 0; i < size; i++)
			copy[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 32 : text[i]);
	} else {
		memcpy(copy, text, size);
	}
	copy[size] = '\0';
	*out = (struct ast_string){copy, size};
	return 0;
}

int
parser_string(struct parser *p, struct ast_string *out)
{
	if (parser_peek(p, 1) != TOKEN_STRING)
		return parser_mismatch(p, "STRING_LITERAL");
	return parser_token_text(p, parser_take(p), false, out);
}

/* ---- Names ---- */

static int
parser_take_ident(struct parser *p, struct ast_identifier *out)
{
	const struct lexer_token *token = parser_take(p);

	out->is_quoted = token->type == TOKEN_QUOTED_NAME ||
	    token->type == TOKEN_EMPTY_QUOTED_NAME || token->type == TOKEN_STRING;
	out->at = (struct ast_position){token->line, token->column};
	return parser_token_text(p, token, true, &out->text);
}

int
parser_ident(struct parser *p, struct ast_identifier *out)
{
	if (!parser_is_ident(parser_peek(p, 1)))
		return parser_no_viable(p, 1);
	return parser_take_ident(p, out);
}

int
parser_column_ident(struct parser *p, struct ast_identifier *out)
{
	if (parser_peek(p, 1) == TOKEN_EMPTY_QUOTED_NAME)
		return parser_take_ident(p, out);
	return parser_ident(p, out);
}

int
parser_ident_list(struct parser *p, struct ast_identifiers *out)
{
	do {
		struct ast_identifier *item = PARSER_PUSH(p, out->items, out->count);

		if (item == NULL || parser_ident(p, item) != 0)
			return -1;
	} while (parser_accept(p, TOKEN_COMMA));
	return 0;
}

/* A name of `what` ("table"): an identifier, or a marker, which gets its own refusal. */
static int
parser_name_of(struct parser *p, const char *what, struct ast_string *out)
{
	struct ast_identifier name = {0};

	if (parser_peek(p, 1) == TOKEN_QMARK)
		return parser_refuse(
		    p, ERROR_SYNTAX, "Bind variables cannot be used for %s names", what);
	if (parser_ident(p, &name) != 0)
		return -1;
	*out = name.text;
	return 0;
}

int
parser_keyspace_name(struct parser *p, struct ast_string *out)
{
	return parser_name_of(p, "keyspace", out);
}

/* What the grammar lets follow a table's name, wherever that stands. */
static bool
parser_may_follow_table(enum lexer_token_type type)
{
	switch (type) {
	case TOKEN_EOF:
	case TOKEN_SEMICOLON:
	case TOKEN_OPEN:
	case TOKEN_DOT:
	case K_ADD:
	case K_ALLOW:
	case K_ALTER:
	case K_AS:
	case K_DROP:
	case K_FROM:
	case K_GROUP:
	case K_JSON:
	case K_LIMIT:
	case K_NORECURSIVE:
	case K_OF:
	case K_ORDER:
	case K_PER:
	case K_PRIMARY:
	case K_RENAME:
	case K_SET:
	case K_TO:
	case K_USING:
	case K_WHERE:
	case K_WITH:
		return true;
	default:
		return false;
	}
}

static bool
parser_may_follow_index(enum lexer_token_type type)
{
	return type == TOKEN_EOF || type == TOKEN_SEMICOLON || type == TOKEN_DOT;
}

/*
 * ( keyspace '.' )? name. Whether there is a keyspace is decided at the first word by looking at the
 * second token, so one that cannot follow is found there.
 */
static int
parser_qualified_name(struct parser *p, const char *what,
    bool (*may_follow)(enum lexer_token_type type), struct ast_name *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	out->at = parser_position(p);
	if (parser_is_ident(type) || type == TOKEN_QMARK) {
		if (!may_follow(parser_peek(p, 2)))
			return parser_no_viable(p, 2);
		parser_peek(p, 3); /* Cassandra's parser looks as far, and its errors show that */
		if (parser_peek(p, 2) == TOKEN_DOT) {
			if (parser_keyspace_name(p, &out->keyspace) != 0)
				return -1;
			parser_take(p);
		}
	}
	return parser_name_of(p, what, &out->name);
}

int
parser_table_name(struct parser *p, struct ast_name *out)
{
	return parser_qualified_name(p, "table", parser_may_follow_table, out);
}

int
parser_index_name(struct parser *p, struct ast_string *out)
{
	return parser_name_of(p, "index", out);
}

int
parser_qualified_index_name(struct parser *p, struct ast_name *out)
{
	return parser_qualified_name(p, "index", parser_may_follow_index, out);
}

/* Names that the grammar of types keeps from users (it reserves no type name otherwise). */
static bool
parser_is_reserved_type(struct ast_string name)
{
	static const char *const names[] = {
	    "byte", "complex", "enum", "interval", "macaddr", "bitstring"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equal_string(ast_slice(name), names[i]))
			return true;
	return false;
}

int
parser_type_name(struct parser *p, struct ast_name *out)
{
	enum lexer_token_type type = parser_peek(p, 1);
	enum lexer_word kind = lexer_word_kind(type);
	struct ast_identifier name = {0};

	out->at = parser_position(p);
	/* A word that cannot be a type's name must be a keyspace's. */
	if (parser_is_ident(type) &&
	    (kind == LEXER_TYPE || (kind == LEXER_COLUMN && type != K_KEY) ||
		parser_peek(p, 2) == TOKEN_DOT)) {
		if (parser_ident(p, &name) != 0 || parser_expect(p, TOKEN_DOT) != 0)
			return -1;
		out->keyspace = name.text;
		type = parser_peek(p, 1);
		kind = lexer_word_kind(type);
	}
	if (type != TOKEN_IDENT && type != TOKEN_QUOTED_NAME && kind != LEXER_UNRESERVED &&
	    type != K_KEY)
		return parser_no_viable(p, 1);
	if (parser_take_ident(p, &name) != 0)
		return -1;
	if (type == TOKEN_IDENT && parser_is_reserved_type(name.text))
		return parser_refuse(
		    p, ERROR_SYNTAX, "Invalid (reserved) user type name %s", name.text.text);
	out->name = name.text;
	return 0;
}

int
parser_bare_function_name(struct parser *p, struct ast_string *out)
{
	enum lexer_token_type type = parser_peek(p, 1);
	enum lexer_word kind = lexer_word_kind(type);
	struct ast_identifier name = {0};

	if (type != TOKEN_IDENT && type != TOKEN_QUOTED_NAME && type != K_TOKEN &&
	    type != K_COUNT && kind != LEXER_UNRESERVED && kind != LEXER_TYPE)
		return parser_no_viable(p, 1);
	if (parser_take_ident(p, &name) != 0)
		return -1;
	*out = name.text;
	return 0;
}

int
parser_function_name(struct parser *p, struct ast_name *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	out->at = parser_position(p);
	if (parser_is_ident(type) || type == TOKEN_QMARK || type == K_TOKEN) {
		enum lexer_token_type next = parser_peek(p, 2);

		if (next != TOKEN_OPEN && next != TOKEN_DOT && next != TOKEN_EOF &&
		    next != TOKEN_SEMICOLON && next != K_WITH)
			return parser_no_viable(p, 2);
	}
	if ((parser_is_ident(type) || type == TOKEN_QMARK) && parser_peek(p, 2) == TOKEN_DOT) {
		if (parser_keyspace_name(p, &out->keyspace) != 0)
			return -1;
		parser_take(p);
	}
	return parser_bare_function_name(p, &out->name);
}

int
parser_role_name(struct parser *p, struct ast_identifier *out)
{
	enum lexer_token_type type = parser_peek(p, 1);

	if (type == TOKEN_QMARK)
		return parser_refuse(
		    p, ERROR_SYNTAX, "Bind variables cannot be used for role names");
	if (type != TOKEN_STRING && !parser_is_ident(type))
		return parser_no_viable(p, 1);
	return parser_take_ident(p, out);
}

int
parser_if_exists(struct parser *p, bool *out)
{
	if (!parser_accept(p, K_IF))
		return 0;
	*out = true;
	return parser_expect(p, K_EXISTS);
}

int
parser_if_not_exists(struct parser *p, bool *out)
{
	if (!parser_accept(p, K_IF))
		return 0;
	*out = true;
	if (parser_expect(p, K_NOT) != 0)
		return -1;
	return parser_expect(p, K_EXISTS);
}

/* ---- Statements ---- */

static int
parser_use(struct parser *p, struct ast_string *out)
{
	parser_take(p);
	return parser_keyspace_name(p, out);
}

static int
parser_truncate(struct parser *p, struct statement_drop *out)
{
	parser_take(p);
	parser_accept(p, K_COLUMNFAMILY);
	return parser_table_name(p, &out->name);
}

static int
parser_statement(struct parser *p, struct statement *out)
{
	out->at = parser_position(p);
	switch (parser_peek(p, 1)) {
	case K_SELECT:
		out->kind = STATEMENT_SELECT;
		return parser_select(p, &out->select);
	case K_INSERT:
	case K_UPDATE:
	case K_DELETE:
		return parser_modification(p, out);
	case K_BEGIN:
		out->kind = STATEMENT_BATCH;
		return parser_batch(p, &out->batch);
	case K_USE:
		out->kind = STATEMENT_USE;
		return parser_use(p, &out->use);
	case K_TRUNCATE:
		out->kind = STATEMENT_TRUNCATE;
		return parser_truncate(p, &out->drop);
	case K_CREATE:
		return parser_create(p, out);
	case K_ALTER:
		return parser_alter(p, out);
	case K_DROP:
		return parser_drop(p, out);
	case K_GRANT:
		return parser_grant(p, out);
	case K_REVOKE:
		return parser_revoke(p, out);
	case K_LIST:
		return parser_list(p, out);
	case K_DESCRIBE:
	case K_DESC:
		out->kind = STATEMENT_DESCRIBE;
		return parser_describe(p, &out->describe);
	case K_ADD:
		if (parser_is_word(p, 2, "identity"))
			return parser_add_identity(p, out);
		/* fall through */
	default:
		return parser_no_viable(p, 1);
	}
}

/* statement ';'* EOF */
static int
parser_query(struct parser *p, void *result)
{
	struct statement *statement = parser_alloc(p, sizeof(*statement));

	if (statement == NULL || parser_statement(p, statement) != 0)
		return -1;
	while (parser_accept(p, TOKEN_SEMICOLON))
		;
	if (parser_expect(p, TOKEN_EOF) != 0)
		return -1;
	if (p->marker_count > PARSER_MARKERS_MAX)
		return parser_refuse(p, ERROR_INVALID,
		    "Too many markers(?). %zu markers exceed the allowed maximum of %d",
		    p->marker_count, PARSER_MARKERS_MAX);
	statement->markers = p->markers;
	statement->marker_count = p->marker_count;
	*(struct statement **)result = statement;
	return 0;
}

/* Cut the whole text. tokens may be moved from `inline_tokens` to the heap. */
static int
parser_cut(struct parser *p, struct lexer_token *inline_tokens)
{
	size_t capacity = PARSER_TOKENS_INLINE;
	struct lexer_token *tokens = inline_tokens, *grown;
	size_t count = 0;

	do {
		if (count == capacity) {
			grown = tokens == inline_tokens ? NULL : tokens;
			grown = realloc(grown, 2 * capacity * sizeof(*tokens));
			if (grown == NULL) {
				if (tokens != inline_tokens)
					free(tokens);
				return error_set(p->err, ERROR_NO_MEMORY,
				    "no memory for a statement of %u bytes", p->size);
			}
			if (tokens == inline_tokens)
				memcpy(grown, tokens, count * sizeof(*tokens));
			tokens = grown;
			capacity *= 2;
		}
		lexer_next(&p->lexer, &tokens[count]);
		count += tokens[count].type != TOKEN_HIDDEN;
	} while (count == 0 || tokens[count - 1].type > TOKEN_ERROR);
	p->tokens = tokens;
	p->count = count;
	return 0;
}

static int
parser_run(struct slice text, struct arena *arena, bool are_markers_refused,
    int (*rule)(struct parser *p, void *result), void *result, struct error *err)
{
	struct lexer_token inline_tokens[PARSER_TOKENS_INLINE];
	struct parser parser = {
	    .text = (const char *)text.data,
	    .size = (uint32_t)text.size,
	    .arena = arena,
	    .err = err,
	    .are_markers_refused = are_markers_refused,
	};
	int rc;

	if (text.data == NULL) {
		text = slice_empty;
		parser.text = (const char *)text.data;
	}
	if (text.size >= INT32_MAX)
		return error_set(err, ERROR_SYNTAX, "the statement has %zu bytes, the limit is %d",
		    text.size, INT32_MAX - 1);
	lexer_init(&parser.lexer, text);
	if (parser_cut(&parser, inline_tokens) != 0)
		return -1;
	rc = rule(&parser, result);
	if (parser.tokens != inline_tokens)
		free(parser.tokens);
	return rc;
}

int
cql_parse(struct slice text, struct arena *arena, struct statement **out, struct error *err)
{
	return parser_run(text, arena, false, parser_query, out, err);
}

static int
parser_lone_type(struct parser *p, void *result)
{
	struct ast_type *type;

	if (parser_type(p, &type) != 0 || parser_expect(p, TOKEN_EOF) != 0)
		return -1;
	*(struct ast_type **)result = type;
	return 0;
}

int
cql_parse_type(struct slice text, struct arena *arena, struct ast_type **out, struct error *err)
{
	return parser_run(text, arena, true, parser_lone_type, out, err);
}

static int
parser_lone_term(struct parser *p, void *result)
{
	struct ast_term *term;

	if (parser_term(p, &term) != 0 || parser_expect(p, TOKEN_EOF) != 0)
		return -1;
	*(struct ast_term **)result = term;
	return 0;
}

int
cql_parse_term(struct slice text, struct arena *arena, struct ast_term **out, struct error *err)
{
	return parser_run(text, arena, true, parser_lone_term, out, err);
}

static int
parser_lone_where(struct parser *p, void *result)
{
	struct ast_where where = {0};

	if (parser_where(p, &where) != 0 || parser_expect(p, TOKEN_EOF) != 0)
		return -1;
	*(struct ast_where *)result = where;
	return 0;
}

int
cql_parse_where(struct slice text, struct arena *arena, struct ast_where *out, struct error *err)
{
	return parser_run(text, arena, true, parser_lone_where, out, err);
}

/* ---- Quoting ---- */

bool
cql_is_reserved(struct slice word)
{
	enum lexer_token_type type = lexer_keyword((const char *)word.data, word.size);

	return type != TOKEN_IDENT && lexer_word_kind(type) == LEXER_RESERVED;
}

void
cql_quote_identifier(struct slice name, struct buffer *out)
{
	bool is_plain = name.size > 0 && name.data[0] >= 'a' && name.data[0] <= 'z';

	for (size_t i = 0; i < name.size && is_plain; i++) {
		uint8_t c = name.data[i];

		is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
	}
	if (is_plain && !cql_is_reserved(name)) {
		buffer_put_slice(out, name);
		return;
	}
	buffer_put_u8(out, '"');
	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] == '"')
			buffer_put_u8(out, '"');
		buffer_put_u8(out, name.data[i]);
	}
	buffer_put_u8(out, '"');
}

void
cql_quote_string(struct slice text, struct buffer *out)
{
	buffer_put_u8(out, '\'');
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\'')
			buffer_put_u8(out, '\'');
		buffer_put_u8(out, text.data[i]);
	}
	buffer_put_u8(out, '\'');
}
