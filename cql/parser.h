/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_PARSER_H
#define HELENUS_CQL_PARSER_H

/*
 * The parser of CQL: the grammar of Cassandra 4.1 (CQL 3.4.6) and, from 5.0, vectors, ANN ordering,
 * column masks, identities, CIDR access and CONTAINS in conditions. Recursive descent, no state
 * but the arena: any thread may parse at any time.
 */
#include <stdbool.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/ast.h"

enum {
	/*
	 * How deep terms, selectors and types may nest before a syntax error says so; parentheses or
	 * brackets take up to two levels each, an operator one. A tree is never higher, so walking it
	 * by recursion is safe. Cassandra's own limit is its stack.
	 */
	PARSER_DEPTH_MAX = 400,
	/* An index of a bind marker is an unsigned short on the wire. */
	PARSER_MARKERS_MAX = 65535,
};

/*
 * Parse one statement, which may end with semicolons. `text` is UTF-8 and need not outlive the call.
 * On success *out is a tree in `arena`. On failure *out is untouched and the arena may hold
 * leftovers; err is ERROR_SYNTAX with Cassandra's text ("line 1:7 no viable alternative at input
 * ..."), ERROR_INVALID where Cassandra's parser raises InvalidRequestException (a column declared
 * twice, too many markers), or ERROR_NO_MEMORY.
 */
int cql_parse(struct slice text, struct arena *arena, struct statement **out, struct error *err);

/*
 * Parse a type as CQL writes it: "frozen<map<text, ks.udt>>", "vector<float, 3>"
 * (CQLTypeParser.parse). Errors as cql_parse().
 */
int
cql_parse_type(struct slice text, struct arena *arena, struct ast_type **out, struct error *err);

/*
 * Parse a lone term such as an aggregate's INITCOND out of the schema tables. Bind markers are
 * refused.
 */
int
cql_parse_term(struct slice text, struct arena *arena, struct ast_term **out, struct error *err);

/*
 * Parse what follows WHERE, as the schema tables keep it for materialized views. Bind markers are
 * refused.
 */
int
cql_parse_where(struct slice text, struct arena *arena, struct ast_where *out, struct error *err);

/* True for a word (any case) that cannot be an identifier without quotes. */
bool cql_is_reserved(struct slice word);

/*
 * Append `name` with double quotes only where it needs them to mean itself
 * (ColumnIdentifier.maybeQuote: lower case letters, digits and _ behind a letter, not reserved).
 */
void cql_quote_identifier(struct slice name, struct buffer *out);

/* Append 'text' with its single quotes doubled. */
void cql_quote_string(struct slice text, struct buffer *out);

#endif
