/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_PARSER_CORE_H
#define HELENUS_CQL_PARSER_CORE_H

/*
 * What the files of the parser share; nobody else includes it.
 *
 * The text is cut into tokens before parsing, so that looking ahead and going back cost nothing.
 * Each parser_x() parses one rule of Parser.g from the token at p->at on. All return 0, or -1 once
 * the error is written; after -1 nothing more is parsed (parser_try_*() are the exceptions: they
 * look whether something parses and go back if it does not).
 *
 * Error texts are those of the ANTLR parser that Cassandra is made with, so they tell of its ways:
 *   - where one certain token must stand: "mismatched input 'x' expecting K_FROM";
 *   - where a choice is to be made: "no viable alternative at input 'x'", where x is the first token
 *     that fits none, but the snippet behind marks the token where the choice began;
 *   - the snippet ends with the last token that was looked at, so p->seen keeps count of that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "cql/ast.h"
#include "cql/lexer.h"
#include "cql/parser.h"

struct parser {
	const char *text; /* borrowed, for the call */
	uint32_t size;
	struct arena *arena; /* borrowed */
	struct error *err; /* borrowed; may be NULL */

	struct lexer lexer; /* after the last token; knows the lexical error, if any */
	struct lexer_token *tokens; /* the visible ones; the last is TOKEN_EOF or TOKEN_ERROR */
	size_t count;
	size_t at; /* the token that comes next */
	size_t seen; /* the furthest that was looked at */

	struct ast_marker *markers; /* in the arena */
	size_t marker_count;
	bool are_markers_refused; /* texts out of the schema tables */

	unsigned depth; /* of nesting, on our stack */
	unsigned height; /* of the highest tree since the last parser_enter() */
	unsigned speculation; /* > 0: failures are not written, the caller goes back */
	bool is_spent; /* no memory, or nested too deeply: going back does not help */
};

/* Type of the token `ahead` places on; 1 is the next. Beyond the end: TOKEN_EOF. */
static inline enum lexer_token_type
parser_peek(struct parser *p, size_t ahead)
{
	size_t index = p->at + ahead - 1;

	if (index >= p->count)
		index = p->count - 1;
	if (index > p->seen)
		p->seen = index;
	return p->tokens[index].type;
}

/* Step over the next token and return it. */
static inline const struct lexer_token *
parser_take(struct parser *p)
{
	const struct lexer_token *token = &p->tokens[p->at];

	if (p->at + 1 < p->count)
		p->at++;
	if (p->at > p->seen)
		p->seen = p->at;
	return token;
}

static inline bool
parser_accept(struct parser *p, enum lexer_token_type type)
{
	if (parser_peek(p, 1) != type)
		return false;
	parser_take(p);
	return true;
}

static inline struct ast_position
parser_position(const struct parser *p)
{
	const struct lexer_token *token = &p->tokens[p->at];

	return (struct ast_position){token->line, token->column};
}

static inline bool
parser_is_ident(enum lexer_token_type type)
{
	return type == TOKEN_IDENT || type == TOKEN_QUOTED_NAME ||
	    lexer_word_kind(type) != LEXER_RESERVED;
}

static inline bool
parser_is_product_sign(enum lexer_token_type type)
{
	return type == TOKEN_STAR || type == TOKEN_SLASH || type == TOKEN_PERCENT;
}

/* ---- parser.c: errors, names, lists ---- */

/* Always return -1. */
int parser_no_viable(struct parser *p, size_t ahead);
int parser_mismatch(struct parser *p, const char *expected);
/* A text of Cassandra's grammar actions: no place in front. */
int parser_refuse(struct parser *p, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int parser_no_memory(struct parser *p);

/*
 * Nesting is limited for the sake of our stack and that of everybody who walks the tree. A rule that
 * may contain itself enters before and leaves after. Left operands are parsed before it is known
 * that an operation goes around them, so the tree's height is kept as well: each node that is put
 * over what was parsed since parser_enter() rises by one.
 */
int parser_enter(struct parser *p, unsigned *outer_height);
int parser_rise(struct parser *p);
void parser_leave(struct parser *p, unsigned outer_height);

int parser_expect(struct parser *p, enum lexer_token_type type);
/* The next token is the identifier `word` of a later version's grammar (any case). */
bool parser_is_word(struct parser *p, size_t ahead, const char *word);

void *parser_alloc(struct parser *p, size_t size);
/* Room for one more item: `items` itself or a copy that is bigger; the new item is zeroed. */
void *parser_grow(struct parser *p, void *items, size_t count, size_t item_size);
#define PARSER_PUSH(p, items, count)                                                               \
	(((items) = parser_grow((p), (items), (count), sizeof(*(items)))) == NULL                  \
		? NULL                                                                             \
		: &(items)[(count)++])

/* What a token says: strings and quoted names without quotes; is_folded: in lower case. */
int parser_token_text(
    struct parser *p, const struct lexer_token *token, bool is_folded, struct ast_string *out);
int parser_string(struct parser *p, struct ast_string *out); /* STRING_LITERAL */

int parser_ident(struct parser *p, struct ast_identifier *out);
int parser_column_ident(struct parser *p, struct ast_identifier *out); /* may be "" */
int parser_ident_list(struct parser *p, struct ast_identifiers *out); /* a, b, c */
int parser_keyspace_name(struct parser *p, struct ast_string *out);
int parser_table_name(struct parser *p, struct ast_name *out);
int parser_index_name(struct parser *p, struct ast_string *out); /* without keyspace */
int parser_qualified_index_name(struct parser *p, struct ast_name *out);
int parser_type_name(struct parser *p, struct ast_name *out);
int parser_function_name(struct parser *p, struct ast_name *out);
int parser_bare_function_name(struct parser *p, struct ast_string *out);
int parser_role_name(struct parser *p, struct ast_identifier *out);

int parser_if_exists(struct parser *p, bool *out); /* ( IF EXISTS )? */
int parser_if_not_exists(struct parser *p, bool *out); /* ( IF NOT EXISTS )? */

/* Going back. */
struct parser_mark {
	size_t at;
	size_t marker_count;
	unsigned depth;
	unsigned height;
};
struct parser_mark parser_speculate(struct parser *p);
/* Ends speculation; goes back if rc is not 0. Returns rc == 0. */
bool parser_decide(struct parser *p, const struct parser_mark *mark, int rc);

/* ---- parser_type.c ---- */

int parser_type(struct parser *p, struct ast_type **out);
int parser_native_type(struct parser *p, struct ast_type **out);
/* ( type (, type)* )? up to the closing parenthesis, which is taken; the opening one was. */
int parser_type_list(struct parser *p, struct ast_types *out);

/* ---- parser_term.c ---- */

int parser_term(struct parser *p, struct ast_term **out);
int parser_constant(struct parser *p, struct ast_term **out);
bool parser_is_constant(enum lexer_token_type type);
int parser_null(struct parser *p, struct ast_term **out);
int parser_marker(struct parser *p, struct ast_term **out);
int parser_int_value(struct parser *p, struct ast_term **out);
int parser_tuple_literal(struct parser *p, struct ast_term **out);
int parser_map_literal(struct parser *p, struct ast_term **out); /* fullMapLiteral */
/* '(' ( term (, term)* )? ')' */
int parser_term_list(struct parser *p, struct ast_terms *out);
bool parser_is_term_start(enum lexer_token_type type);
/* The next tokens begin a function call (name, or keyspace.name, and a parenthesis). */
bool parser_is_call(struct parser *p, size_t ahead);

/* ---- parser_select.c ---- */

int parser_selectors(struct parser *p, bool *is_wildcard, struct ast_selectors *out);
int parser_select(struct parser *p, struct statement_select *out);

/* ---- parser_where.c ---- */

int parser_where(struct parser *p, struct ast_where *out);
int parser_conditions(struct parser *p, struct ast_conditions *out); /* ( IF ... )? */

/* ---- parser_modify.c ---- */

int parser_modification(struct parser *p, struct statement *out); /* INSERT, UPDATE, DELETE */
int parser_batch(struct parser *p, struct statement_batch *out);

/* ---- parser_schema.c: what comes after CREATE x, ALTER x, DROP x ---- */

int parser_properties(struct parser *p, struct ast_properties *out);
/* ( WITH clustering order, compact storage, properties )? of the table or view named `table`. */
int parser_table_properties(struct parser *p, struct ast_string table, bool *is_compact_storage,
    struct ast_clustering_order **orders, size_t *order_count, struct ast_properties *properties);
/* a TO b ( AND c TO d )* */
int parser_renames(struct parser *p, struct ast_rename **renames, size_t *count);
/* fullMapLiteral as a map of strings. */
int parser_property_map(struct parser *p, struct ast_property_entry **entries, size_t *count);
int parser_create(struct parser *p, struct statement *out);
int parser_alter(struct parser *p, struct statement *out);
int parser_drop(struct parser *p, struct statement *out);

/* ---- parser_function.c, parser_table.c ---- */

int parser_create_function(struct parser *p, bool or_replace, struct statement *out);
int parser_create_aggregate(struct parser *p, bool or_replace, struct statement *out);
int parser_drop_function(struct parser *p, struct statement *out);
int parser_create_table(struct parser *p, struct statement *out);
int parser_create_view(struct parser *p, struct statement *out);
int parser_alter_table(struct parser *p, struct statement *out);

/* ---- parser_role.c ---- */

int parser_create_role(struct parser *p, struct statement *out);
int parser_alter_role(struct parser *p, struct statement *out);
int parser_drop_role(struct parser *p, struct statement *out);
int parser_grant(struct parser *p, struct statement *out);
int parser_revoke(struct parser *p, struct statement *out);
int parser_list(struct parser *p, struct statement *out);
int parser_add_identity(struct parser *p, struct statement *out);
int parser_drop_identity(struct parser *p, struct statement *out);

/* ---- parser_describe.c ---- */

int parser_describe(struct parser *p, struct statement_describe *out);

#endif
