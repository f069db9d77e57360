/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_OPERATION_H
#define HELENUS_TOOLS_STRESS_OPERATION_H

/*
 * What an operation sends and what it expects: a statement, and the columns that its markers are
 * filled from. Operations are constant during a run; makers hold the scratch state that one thread
 * needs to fill them in. Cassandra: stress/operations.
 */
#include <stdbool.h>
#include <stdint.h>
#include "tools/stress_profile.h"
#include "tools/stress_request.h"
#include "tools/stress_session.h"

enum stress_operation_kind {
	STRESS_OP_WRITE,
	STRESS_OP_READ,
	STRESS_OP_COUNTER_WRITE,
	STRESS_OP_COUNTER_READ,
	STRESS_OP_INSERT, /* of a profile */
	STRESS_OP_QUERY, /* of a profile */
	STRESS_OP_VALIDATE, /* of a profile */
	STRESS_OP_SCAN, /* token_range_queries of a profile */
};

struct stress_operation {
	char name[2 * STRESS_NAME_MAX]; /* as reports have it */
	enum stress_operation_kind kind;
	double share; /* of the mix */
	const struct stress_statement *statement; /* borrowed; NULL: VALIDATE and SCAN */
	const struct stress_table *table; /* borrowed */
	const struct stress_profile *profile; /* of a profile: borrowed */
	const struct stress_condition *condition; /* QUERY: borrowed, or NULL */
	struct stress_scan *scan; /* SCAN: borrowed */
	bool is_same_row; /* QUERY */
	int32_t *marker_columns; /* owned; by stress_table_index() */
	const struct stress_placement *placement; /* borrowed; NULL: any node will do */
};

/* The statement's markers are looked up in the table. */
int stress_operation_init(struct stress_operation *operation, const char *name,
    enum stress_operation_kind kind, const struct stress_statement *statement,
    const struct stress_table *table, struct error *err);
void stress_operation_fini(struct stress_operation *operation);
static inline bool
stress_operation_is_write(const struct stress_operation *operation)
{
	return operation->kind == STRESS_OP_WRITE || operation->kind == STRESS_OP_COUNTER_WRITE ||
	    operation->kind == STRESS_OP_INSERT;
}
/* Made before it is known where to: user operations, so that a second try sends the same again, and those that go to
 * the nodes that have their partition. */
static inline bool
stress_operation_keeps_request(const struct stress_operation *operation)
{
	return operation->placement != NULL || operation->kind >= STRESS_OP_INSERT;
}

/* Send it to the nodes that have its partition, if its markers tell which that is (the drivers know it of prepared
 * statements only). */
void stress_operation_route(
    struct stress_operation *operation, const struct stress_placement *placement);

/* The table of the predefined commands, made from the settings. */
void stress_predefined_table(const struct stress_settings *settings, struct stress_table *table);
/* The statement text of a predefined operation. */
void stress_predefined_query(
    const struct stress_settings *settings, enum stress_operation_kind kind, struct buffer *out);

/* A thread's state for one operation. */
struct stress_maker {
	const struct stress_operation *operation; /* borrowed */
	const struct stress_settings *settings; /* borrowed */
	struct stress_partition partition; /* owned */
	struct stress_distribution population; /* own copies */
	struct stress_distribution counter_add;
	struct stress_distribution batch_size;
	struct stress_ratio select;
	struct stress_ratio row_population;
	struct slice *values; /* owned; one for each marker */
	struct slice *keys; /* owned; QUERY with a condition: of its SELECT */
	struct stress_value *rows; /* owned; QUERY: arguments of some rows */
	struct arena arena; /* of the request that is being made, or checked */
	struct stress_random random;
};

void stress_maker_init(struct stress_maker *maker, const struct stress_operation *operation,
    const struct stress_settings *settings, struct stress_seeds *seeds, int64_t random_seed);
void stress_maker_fini(struct stress_maker *maker);

/*
 * Append a whole envelope, not compressed. Predefined operations: of request->seed (is_new: rows
 * count as written). 1: made; 0: nothing to send (a write of no rows); -1: ERROR_NO_MEMORY,
 * ERROR_INVALID.
 */
int
stress_maker_put(struct stress_maker *maker, struct buffer *out, uint8_t version, int16_t stream,
    struct stress_request *request, bool is_new, int64_t timestamp, struct error *err);
/* User operations take their seeds themselves; *is_over: the seeds are used up. */
int stress_maker_put_user(struct stress_maker *maker, struct stress_seeds *seeds,
    struct buffer *out, uint8_t version, uint32_t partitions, struct stress_request *request,
    int64_t timestamp, bool *is_over, struct error *err);
/* The token of the partition that the last request was made for (a batch: its last one). */
int64_t stress_maker_token(struct stress_maker *maker);

/* VALIDATE: is a page what it should be? */
bool stress_maker_take_page(
    struct stress_maker *maker, struct stress_request *request, const struct client_rows *rows);

/* Does a row answer what the seed makes? Rows: as RESULT has them. */
bool stress_maker_validate(struct stress_maker *maker, const struct stress_request *request,
    const struct client_rows *rows);
/* "[key, key]" of a request, for error lines. */
void stress_maker_print_keys(
    struct stress_maker *maker, const struct stress_request *request, struct buffer *out);

#endif
