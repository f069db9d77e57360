/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_VALIDATION_H
#define HELENUS_TOOLS_STRESS_VALIDATION_H

/*
 * The operation "validate" of profiles: reads a partition, or a slice between two of its rows, and compares what
 * comes with what the seed makes. All rows have to be there that inserts with select=fixed(1)/1 write; a cell may
 * lack where row-population says so; what other types of the same partition would hold (static columns) is
 * not looked at. Cassandra: stress/operations/userdefined/ValidatingSchemaQuery.
 */
#include <stdbool.h>
#include <stdint.h>
#include "tools/stress_partition.h"
#include "tools/stress_request.h"
#include "tools/stress_session.h"

/* One statement: the slice is bounded by the first `depth` clustering columns of two rows. */
struct stress_check {
	struct stress_statement statement;
	uint32_t depth; /* 0: the whole partition */
	bool includes_first;
	bool includes_last;
};

/* All zero: not prepared. Constant once it is. */
struct stress_validation {
	struct stress_check *checks; /* owned; by depth, the deepest with four kinds of bounds */
	uint32_t count;
	uint32_t *
	    columns; /* owned; of a row as struct stress_partition has it, in the order of SELECT */
	uint32_t column_count;
	bool may_lack; /* cells: rows are not wholly populated */
};

/*
 * Prepare the statements on a table, `name` as statements have it. ERROR_INVALID: counters, whose values depend
 * on how often they were written; and what the server says.
 */
int stress_validation_prepare(struct stress_validation *validation, struct stress_session *session,
    const char *name, const struct stress_table *table, struct error *err);
void stress_validation_fini(struct stress_validation *validation);

/*
 * Append a request that checks the partition of request->seed. `random` chooses the statement and the bounds,
 * which request keeps. 1: made; 0: the partition has no rows; -1: ERROR_NO_MEMORY.
 */
int stress_validation_put(const struct stress_validation *validation,
    struct stress_partition *partition, struct stress_random *random, struct arena *arena,
    struct buffer *out, uint8_t version, struct stress_request *request, struct error *err);
/* A page of the answer; request->rows counts. False: it is not what it should be. */
bool stress_validation_take(const struct stress_validation *validation,
    struct stress_partition *partition, struct arena *arena, struct stress_request *request,
    const struct client_rows *rows);

#endif
