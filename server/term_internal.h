/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_TERM_INTERNAL_H
#define HELENUS_SERVER_TERM_INTERNAL_H

/*
 * What the files of terms share: term_type.c finds what type a term has and which function it calls,
 * term.c prepares it, term_values.c evaluates what was prepared.
 */
#include "cql/value.h"
#include "server/term.h"

/* The term as CQL, for messages; in the plan's arena. */
const char *term_text(struct preparation *preparation, const struct ast_term *raw);

/* The grammar's kinds of constants as the literals' own. */
enum literal_kind term_literal_kind(enum ast_constant_kind kind);

/* How well a value of `type` can be one of `receiver`. */
enum assignment term_test_type(const struct type *type, const struct type *receiver);

/*
 * The function that a call, an operation or a negation means where a `receiver` (NULL: any) is wanted. err may be
 * NULL where only the answer matters. ERROR_INVALID: none, or several.
 */
int term_resolve_call(struct preparation *preparation, const struct ast_term *raw,
    const struct type *receiver, const struct function **out, struct error *err);

#endif
