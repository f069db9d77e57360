/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_TERM_H
#define HELENUS_SERVER_TERM_H

/*
 * Terms: what stands for a value in a statement. Prepared once against a receiver (names resolved,
 * types checked, constants made bytes), evaluated for each execution. A prepared term is immutable
 * and lives in its plan's arena. Cassandra: cql3/Term, Constants, Lists, Sets, Maps, Tuples,
 * UserTypes, TypeCast, functions/FunctionCall.
 */
#include "cql/ast.h"
#include "cql/function.h"
#include "cql/schema.h"
#include "protocol/message.h"
#include "protocol/response.h"

/* What a statement is prepared with. */
struct preparation {
	struct arena *arena; /* of the plan */
	const struct schema *schema;
	struct slice keyspace; /* of the session or the request; null: none */
	const struct statement *statement; /* of markers: the outermost one */
	struct column_spec *markers; /* one for each; type NULL until its place is known */
	const struct table_metadata *table; /* NULL: none */
	bool has_impure_term; /* a function that gives another result each time was met */
};

enum term_kind {
	TERM_VALUE,
	TERM_MARKER,
	TERM_COLLECTION, /* list, set, map (keys and values alternate) */
	TERM_TUPLE, /* tuple, user type (NULL part: no value), vector */
	TERM_CALL,
};

struct term {
	enum term_kind kind;
	const struct type *type;
	union {
		struct slice value;
		uint32_t marker;
		struct {
			const struct term **items;
			uint32_t count;
		} parts;
		struct {
			const struct function *function;
			const struct term **arguments;
		} call;
	};
};

/* What a statement is evaluated with. */
struct execution;
struct term_context {
	const struct bound_value *values; /* of the markers */
	uint32_t value_count;
	const struct function_context *functions;
	struct arena *arena; /* of the request */
	struct execution *execution; /* whose guardrails hold; NULL: none do */
};

/* *out is in the plan's arena. ERROR_INVALID with Cassandra's texts. */
int term_prepare(struct preparation *preparation, const struct ast_term *raw,
    const struct column_spec *receiver, const struct term **out, struct error *err);

/* How well `raw` can be a value of `type`. */
enum assignment
term_test(struct preparation *preparation, const struct ast_term *raw, const struct type *type);
/* The type that `raw` has on its own, or NULL (Term.Raw.getExactTypeIfKnown). */
const struct type *term_exact_type(struct preparation *preparation, const struct ast_term *raw);

/* Describe a term for function_resolve(). Memory from the plan's arena. */
struct function_argument term_argument(struct preparation *preparation, const struct ast_term *raw);

/* The receiver of a part of a value: value(c), key(c), idx(c), c.field, c[0]. */
struct column_spec term_part_receiver(struct preparation *preparation, const struct column_spec *of,
    const struct type *type, const char *format_name);

/* The type that a CQL type names in this statement's schema. ERROR_INVALID: unknown. */
int term_resolve_type(struct preparation *preparation, const struct ast_type *raw,
    const struct type **out, struct error *err);

/*
 * Evaluate. A null slice is null. *is_unset may be NULL where an unset value is an error anyhow
 * (then it is reported as one). Values from the client are validated.
 */
int term_eval(const struct term *term, const struct term_context *context, struct slice *out,
    bool *is_unset, struct error *err);

bool term_has_marker(const struct term *term);
static inline bool
term_is_null_constant(const struct term *term)
{
	return term->kind == TERM_VALUE && slice_is_null(term->value);
}

#endif
