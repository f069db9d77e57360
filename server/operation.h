/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_OPERATION_H
#define HELENUS_SERVER_OPERATION_H

/*
 * What INSERT, UPDATE and DELETE do to one column of a row. Prepared into the plan, run into cells.
 * Cassandra: cql3/Operation, Constants, Lists, Maps, Sets, UserTypes.
 */
#include "server/term.h"
#include "storage/row.h"

enum operation_kind {
	OPERATION_SET, /* the whole column */
	OPERATION_SET_FIELD, /* user type, not frozen */
	OPERATION_SET_KEY, /* m[k] = v */
	OPERATION_SET_INDEX, /* l[i] = v */
	OPERATION_APPEND, /* list + value */
	OPERATION_PREPEND,
	OPERATION_DISCARD, /* list - value */
	OPERATION_ADD, /* set + value, map + value */
	OPERATION_REMOVE, /* set - value, map - set of keys */
	OPERATION_INCREMENT, /* counter */
	OPERATION_DECREMENT,
	OPERATION_DELETE, /* the whole column */
	OPERATION_DELETE_ELEMENT, /* of a set or map */
	OPERATION_DELETE_INDEX, /* of a list */
	OPERATION_DELETE_FIELD,
};

struct operation {
	enum operation_kind kind;
	const struct column_metadata *column;
	const struct term *value;
	const struct term *element; /* key or index */
	uint16_t field;
};

/* What the cells of one row are collected into. */
struct operation_target {
	const struct term_context *terms;
	int64_t timestamp;
	int32_t ttl; /* seconds, 0: none */
	int64_t now_seconds;
	void (*next_timeuuid)(void *user, uint8_t out[16]); /* for list elements */
	void *user;
	const struct row *existing; /* what was read for operations that need it; NULL: nothing */

	struct cell *cells;
	uint32_t cell_count, cell_capacity;
	struct complex_deletion *deletions;
	uint32_t deletion_count;
};

int operation_prepare_set(struct preparation *preparation, const struct column_metadata *column,
    const struct ast_term *value, struct operation *out, struct error *err);
int operation_prepare_assignment(struct preparation *preparation,
    const struct ast_assignment *assignment, const struct column_metadata *column,
    struct operation *out, struct error *err);
int operation_prepare_deletion(struct preparation *preparation, const struct ast_deletion *deletion,
    const struct column_metadata *column, struct operation *out, struct error *err);

/* True when the row has to be read first. */
bool operation_needs_read(const struct operation *operation);

/* Append the cells and deletions of the operation. `deletions` has room for one more. */
int operation_run(
    const struct operation *operation, struct operation_target *target, struct error *err);

#endif
