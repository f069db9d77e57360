/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_FUNCTION_H
#define HELENUS_CQL_FUNCTION_H

/*
 * The native functions: scalar functions, aggregates, CAST, arithmetic. Resolution happens when a
 * statement is prepared and yields a struct function (static, or in the arena of the statement);
 * execution allocates in the request's arena only. No state; any thread. Cassandra's
 * cql3/functions/.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/schema.h"
#include "cql/type.h"
#include "cql/value.h"

enum { FUNCTION_ARGUMENTS_MAX = 64 };

/* What functions of time and chance need; fixed for one execution. */
struct function_context {
	int64_t now_us; /* Unix time */
	/* A fresh version 1 uuid (now(), currentTimeUUID()) and a random version 4 one. */
	void (*next_timeuuid)(void *user, uint8_t out[16]);
	void (*next_uuid)(void *user, uint8_t out[16]);
	void *user;
};

struct function;

/*
 * Run a scalar function. arguments: function->argument_count values, null slices for null. *out is
 * in the arena, or points into an argument; the null slice for null. ERROR_FUNCTION_FAILURE or
 * ERROR_INVALID.
 */
typedef int (*function_execute_fn)(const struct function *function,
    const struct function_context *context, const struct slice *arguments, struct arena *arena,
    struct slice *out, struct error *err);

/* Aggregates: state is function->state_size bytes of the arena, zeroed. */
typedef int (*function_add_fn)(const struct function *function, void *state,
    const struct slice *arguments, struct arena *arena, struct error *err);
typedef int (*function_result_fn)(const struct function *function, const void *state,
    struct arena *arena, struct slice *out, struct error *err);

struct function {
	const char *keyspace; /* "system" */
	const char *name; /* as result columns are named: "count", "system.now" shows "now" */
	uint32_t argument_count;
	const struct type *const *argument_types;
	const struct type *return_type;
	bool is_aggregate;
	bool is_pure; /* same arguments, same result: may be computed when prepared */
	bool called_on_null; /* else null in, null out without a call */
	function_execute_fn execute;
	size_t state_size;
	function_add_fn add;
	function_result_fn result;
	const void *data; /* of the implementation */
};

/* One argument as overload resolution sees it. */
struct function_argument {
	/* The type it surely has (column, cast, function result), else NULL. */
	const struct type *type;
	/* Whether it can be a value of a type; NULL: by `type` alone (exact when equal, weak when
	 * value compatible), and without type everything is weak (a bind marker, null). */
	enum assignment (*test)(const void *term, const struct type *type);
	const void *term;
	const char *text; /* for error texts; "?" for a marker */
};

/*
 * Find the function. keyspace: null slice when the call had none (then system is meant; user
 * functions are looked up by who has the schema). receiver: the type the result will be assigned
 * to, or NULL. table: of the statement, for token(); may be NULL. Errors ERROR_INVALID: "Unknown
 * function 'x'", "Invalid call to function ..., none of its type signatures match (known type
 * signatures: ...)", "Ambiguous call to function ... (can be matched by following signatures: ...):
 * use type casts to disambiguate", ... In the operators' case "the '+' operation is not supported
 * between int and text".
 */
int function_resolve(struct slice keyspace, struct slice name,
    const struct function_argument *arguments, uint32_t count, const struct type *receiver,
    const struct table_metadata *table, struct arena *arena, const struct function **out,
    struct error *err);

/* True when a native function has this name, whatever its arguments. */
bool function_is_native(struct slice name);

/* CAST(x AS type): NULL function and 0 when from and to are the same type (no conversion). Error
 * "int cannot be cast to blob". */
int function_cast(const struct type *from, const struct type *to, struct arena *arena,
    const struct function **out, struct error *err);

/* '+', '-', '*', '/', '%', and 'n' for unary minus (right is NULL). Arguments whose type is unknown
 * take the type of the other side, or the receiver. */
int function_operator(char symbol, const struct function_argument *left,
    const struct function_argument *right, const struct type *receiver, struct arena *arena,
    const struct function **out, struct error *err);

/* Call it: handles nulls (called_on_null) and checks. */
int function_call(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err);

/* count(*) / countRows. */
const struct function *function_count_rows(void);

/* Aggregation over rows: begin, add each row, then the result. */
void *function_aggregate_new(const struct function *function, struct arena *arena);
int function_aggregate_add(const struct function *function, void *state,
    const struct slice *arguments, struct arena *arena, struct error *err);
int function_aggregate_result(const struct function *function, const void *state,
    struct arena *arena, struct slice *out, struct error *err);

/* minTimeuuid() and maxTimeuuid() of a time in milliseconds. */
void function_min_timeuuid(int64_t ms, uint8_t out[16]);
void function_max_timeuuid(int64_t ms, uint8_t out[16]);

#endif
