/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_CONDITION_H
#define HELENUS_TOOLS_STRESS_CONDITION_H

/*
 * Conditional writes of profiles whose condition has markers: UPDATE ... IF v = ?. The columns of the condition
 * are read first, and what they hold goes into its markers, so that the write is applied unless another came in
 * between. One operation is both statements. Cassandra: stress/operations/userdefined/CASQuery.
 */
#include <stdbool.h>
#include <stdint.h>
#include "tools/stress_partition.h"
#include "tools/stress_request.h"
#include "tools/stress_session.h"

struct stress_condition {
	struct stress_statement select; /* of the columns, by the whole primary key */
	int32_t *key_columns; /* owned; of its markers, by stress_table_index() */
	uint32_t *markers; /* owned; of the write: the one that each column of `select` goes into */
	uint32_t column_count;
};

/*
 * Is `query` such a write? 0: *out is one (prepared) or NULL. -1: a condition that cannot be filled in
 * (ERROR_INVALID), or what the server says. `table_name`: as statements have it.
 */
int stress_condition_prepare(struct stress_condition **out, struct stress_session *session,
    const char *query, const char *table_name, const struct stress_table *table, struct error *err);
void stress_condition_free(struct stress_condition *condition);

/* Append the SELECT. */
void stress_condition_put_select(const struct stress_condition *condition,
    const struct stress_partition *partition, struct slice *values, struct buffer *out,
    uint8_t version);
/*
 * Append the write, an EXECUTE envelope that was made with any values in the condition's markers, with those that
 * the SELECT brought. ERROR_PROTOCOL: the answer is no such row.
 */
int stress_condition_put_write(const struct stress_condition *condition, struct slice envelope,
    const struct stress_request *request, uint8_t version, const struct client_rows *rows,
    struct buffer *out, struct error *err);

#endif
