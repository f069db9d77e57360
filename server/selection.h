/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SELECTION_H
#define HELENUS_SERVER_SELECTION_H

/*
 * What a SELECT shows of a row: a tree of selectors for each result column, resolved when the statement is
 * prepared, evaluated for each row. Immutable; lives in the plan's arena. Cassandra: cql3/selection/.
 */
#include "server/term.h"
#include "storage/store.h"

enum selector_kind {
	SELECTOR_COLUMN,
	SELECTOR_TERM,
	SELECTOR_CALL, /* scalar function, operator, CAST */
	SELECTOR_AGGREGATE,
	SELECTOR_WRITETIME,
	SELECTOR_MAXWRITETIME,
	SELECTOR_TTL,
	SELECTOR_FIELD,
	SELECTOR_ELEMENT,
	SELECTOR_SLICE,
	SELECTOR_PACK, /* list, set, map, tuple, user type literal with selectors inside */
};

struct selector {
	enum selector_kind kind;
	const struct type *type;
	const struct column_metadata *column; /* COLUMN, WRITETIME, MAXWRITETIME, TTL */
	const struct term *term; /* TERM; ELEMENT: key; SLICE: from, may be NULL */
	const struct term *to; /* SLICE; may be NULL */
	const struct function *function; /* CALL, AGGREGATE */
	uint32_t operand_count;
	const struct selector **operands; /* PACK: NULL for a missing field */
	uint32_t index; /* FIELD: of the field; AGGREGATE: in selection->aggregates */
};

struct selection {
	uint32_t count;
	const struct selector **selectors;
	struct column_spec *specs; /* result columns; JSON: the one */
	struct slice *names; /* of the selectors, for JSON */
	bool is_json;
	bool is_simple; /* every selector is a column (and no JSON) */
	bool is_wildcard;
	bool is_aggregate; /* something is aggregated (GROUP BY not looked at) */
	bool has_static, has_regular; /* columns of these kinds are used */
	bool has_only_key_and_static; /* DISTINCT may select it */
	bool has_idle_cast; /* the CAST that was prepared last converts nothing */
	uint32_t aggregate_count, aggregate_capacity;
	const struct selector **aggregates;
	uint32_t result_count; /* columns of the result: count, or 1 with JSON */
};

int selection_prepare(struct preparation *preparation, const struct statement_select *select,
    struct selection *out, struct error *err);
/* `hidden`: columns that ORDER BY needs after the query: not here. */

/* floor(column, duration) and the like of GROUP BY. */
int selector_prepare(struct preparation *preparation, const struct ast_selector *raw,
    const struct type *expected, struct selection *selection, const struct selector **out,
    struct error *err);

/* Append the name that its result column has without AS. */
void
selector_name(struct preparation *preparation, const struct ast_selector *raw, struct buffer *out);

/* A row as selectors see it. */
struct selection_row {
	const struct table_metadata *table;
	const struct slice *key; /* components of the partition key */
	const struct row *static_row; /* NULL: none */
	const struct row *row; /* NULL: only the static row */
	int64_t now_seconds;
	const struct term_context *terms;
	const struct slice *aggregates; /* results by selector->index; NULL while rows are added */
};

/* The serialised value of a column of the row; null slice when it has none. */
int selection_column_value(const struct selection_row *row, const struct column_metadata *column,
    struct slice *out, struct error *err);

int selector_eval(const struct selector *selector, const struct selection_row *row,
    struct slice *out, struct error *err);

/* Append the cells of one result row in wire form. */
int selection_put_row(const struct selection *selection, const struct selection_row *row,
    struct buffer *out, struct error *err);

/* States of the aggregates of one group. */
struct selection_group {
	void **states;
	bool has_row;
	struct selection_row first; /* the first row of the group, copied */
};
int selection_group_begin(const struct selection *selection, struct selection_group *group,
    struct arena *arena, struct error *err);
int selection_group_add(const struct selection *selection, struct selection_group *group,
    const struct selection_row *row, struct arena *arena, struct error *err);
/* Append the group's result row. */
int selection_group_end(const struct selection *selection, struct selection_group *group,
    const struct selection_row *empty, struct arena *arena, struct buffer *out, struct error *err);

#endif
