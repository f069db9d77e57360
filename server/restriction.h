/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_RESTRICTION_H
#define HELENUS_SERVER_RESTRICTION_H

/*
 * WHERE: relations become restrictions on columns when a statement is prepared, and keys, token ranges,
 * clustering slices and filters when it is run. Immutable after restrictions_prepare(); lives in the
 * plan's arena. Cassandra: cql3/restrictions/.
 */
#include "server/term.h"
#include "storage/mutation.h"
#include "storage/read_command.h"

enum restriction_kind { RESTRICTION_EQ, RESTRICTION_IN, RESTRICTION_SLICE };

enum { BOUND_START = 0, BOUND_END = 1 };

/* On one column, or on several neighbours at once: (c, d) > (1, 2), token(a, b) > 0. */
struct restriction {
	enum restriction_kind kind;
	bool is_multi; /* written with parentheses: values are tuples */
	uint32_t column_count;
	const struct column_metadata **columns;
	const struct term *value; /* EQ */
	const struct term **in_values; /* IN (a, b) */
	uint32_t in_count;
	const struct term *in_marker; /* IN ?; NULL unless so */
	const struct term *bounds[2]; /* SLICE; by BOUND_*; NULL: open */
	bool is_inclusive[2];
	/* SLICE: the relation that gave the bound. (a, b) >= (1, 2) AND (a) < (3) is one restriction
	 * on two columns whose end has one. */
	const struct restriction *bound_of[2];
	const struct type *tuple_type; /* is_multi */
};

/* A condition that rows are filtered by. */
struct restriction_filter {
	const struct column_metadata *column;
	enum filter_operator operator;
	const struct term *value; /* also IN ? */
	const struct term *key; /* FILTER_MAP_EQ */
	const struct term **in_values;
	uint32_t in_count;
};

struct restrictions {
	const struct table_metadata *table;
	struct restriction **partition; /* by position of the key column; NULL: not restricted */
	struct restriction *token; /* NULL: none */
	struct restriction *
	    *clustering; /* by position; a multi one stands at each of its columns */
	uint32_t clustering_prefix; /* columns that slices are made of; the rest is filtered */
	bool has_clustering; /* some clustering column is restricted */
	bool is_key_range; /* not by whole partition keys */
	bool is_simple_key; /* every key column is equal to something */
	bool is_simple_clustering; /* all of the clustering columns too, one by one */
	bool has_key_in;
	bool needs_filtering;
	bool has_static_filter, has_regular_filter;
	struct restriction_filter *filters;
	uint32_t filter_count;
};

enum restrictions_use {
	RESTRICTIONS_SELECT,
	RESTRICTIONS_UPDATE,
	RESTRICTIONS_DELETE,
};

struct restrictions_options {
	enum restrictions_use use;
	bool allow_filtering; /* ALLOW FILTERING was written, or the table is virtual */
	bool is_static_only; /* only static columns are selected or written */
	bool is_distinct;
};

int restrictions_prepare(struct preparation *preparation, const struct ast_where *where,
    const struct restrictions_options *options, struct restrictions *out, struct error *err);

/* Positions of the markers that are the partition key; count 0 unless each part is one marker. */
uint32_t restrictions_key_markers(
    const struct restrictions *restrictions, struct arena *arena, uint16_t **out);

/* The one partition key of a simple key. */
int restrictions_key(const struct restrictions *restrictions, const struct term_context *context,
    struct slice *key, struct error *err);
/* All of them: ascending by value, without doubles. */
int restrictions_keys(const struct restrictions *restrictions, const struct term_context *context,
    struct slice **keys, uint32_t *count, struct error *err);
/* The token range; *is_empty: no token can be in it. */
int restrictions_token_range(const struct restrictions *restrictions,
    const struct term_context *context, struct token_range *range, bool *is_empty,
    struct error *err);

/* A slice of clusterings, by its bounds and their positions. */
struct clustering_range {
	enum bound_kind start_kind, end_kind;
	const struct slice *start, *end;
	uint32_t start_count, end_count;
	struct slice start_position, end_position;
	bool is_row; /* all components equal */
};

/*
 * The slices that the clustering restrictions select, ascending and disjoint. Without restrictions:
 * one that is everything. count 0: nothing can match.
 */
int restrictions_ranges(const struct restrictions *restrictions, const struct term_context *context,
    struct clustering_range **ranges, uint32_t *count, struct error *err);

/* Filters with their values. */
int
restrictions_filters(const struct restrictions *restrictions, const struct term_context *context,
    const struct filter_expression **filters, uint32_t *count, struct error *err);

#endif
