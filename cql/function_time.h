/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_FUNCTION_TIME_H
#define HELENUS_CQL_FUNCTION_TIME_H

/* Calendar arithmetic that operators and casts share with the time functions. */
#include "cql/function.h"

/* The same day of another month, or its last day. */
int64_t function_add_months(int64_t ms, int64_t months);

/* function_execute_fn: timestamp, date or timeuuid to timestamp, date or bigint. */
int function_convert_time(const struct function *function, const struct function_context *context,
    const struct slice *arguments, struct arena *arena, struct slice *out, struct error *err);

#endif
