/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_FUNCTION_INTERNAL_H
#define HELENUS_CQL_FUNCTION_INTERNAL_H

/* What the files function*.c share: candidates of overload resolution. */
#include "cql/function.h"

/*
 * The overloads of one name, collected in the arena of the statement. add() copies; nothing fails
 * but by memory, which is told at the end.
 */
struct function_list {
	struct arena *arena;
	struct function **functions;
	uint32_t count;
	uint32_t capacity;
	bool is_failed;
};

/* A new candidate without arguments yet; NULL without memory. */
struct function *function_list_add(struct function_list *list, const char *name,
    const struct type *return_type, function_execute_fn execute);
void function_add_argument(
    struct function_list *list, struct function *function, const struct type *type);
/* Candidate with up to three native arguments; -1 ends them. */
struct function *function_list_add_native(struct function_list *list, const char *name,
    int return_kind, function_execute_fn execute, int first, int second, int third);

/* Each adds the overloads of `name` (lower case) that it knows. */
void function_time_find(struct slice name, struct function_list *list);
void function_blob_find(struct slice name, struct function_list *list);
void function_aggregate_find(struct slice name, struct function_list *list);
/* Those that need the types of the arguments: collections, vectors, rounding. NULL type: unknown. */
void function_generic_find(struct slice name, const struct function_argument *arguments,
    uint32_t count, struct function_list *list);
/* type: of the first argument, NULL when it is not known. */
void function_mask_find(struct slice name, const struct type *type, struct function_list *list);
/* symbol as in function_operator(). */
void function_operator_find(char symbol, struct function_list *list);

static inline bool
function_name_is(struct slice name, const char *camel, const char *snake)
{
	return slice_equal_string(name, camel) ||
	    (snake != NULL && slice_equal_string(name, snake));
}

#endif
