/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_PARSER_SNIPPET_H
#define HELENUS_CQL_PARSER_SNIPPET_H

/*
 * The piece of the statement that Cassandra shows behind a syntax error, as its ErrorCollector cuts
 * it: ten tokens (blanks count) before the marked one and two behind, but no further than the parser
 * had looked. Runs only where a statement is wrong, so it cuts the text into tokens once more
 * instead of having the parser keep them all.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "cql/lexer.h"

/* What error texts show of a token: no quotes around strings, line ends as \n; cut to fit. */
void snippet_token_text(const char *text, const struct lexer_token *token, char *out, size_t size);

/* Append " (...tokens before [marked] and after...)" to err->text. marked and last are ordinals of
 * tokens; nothing is appended where one of the ends is TOKEN_EOF. err may be NULL. */
void snippet_append(struct slice text, uint32_t marked, uint32_t last, struct error *err);

#endif
