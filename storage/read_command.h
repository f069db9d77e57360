/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_READ_COMMAND_H
#define HELENUS_STORAGE_READ_COMMAND_H

/*
 * What is read (ReadCommand, DataRange, ClusteringIndexFilter, ColumnFilter, RowFilter, DataLimits):
 * self-contained, so that the same command can go to a replica. Lives in a request's arena.
 */
#include "storage/unfiltered.h"

/* One slice of a partition. Positions made by position_encode(); a null start or end is open. */
struct clustering_slice {
	struct slice start; /* position of the start bound */
	struct slice end; /* position of the end bound */
};

/* Which clusterings: every row whose position p has start < p < end for one of the slices. Slices are
 * ascending and disjoint. A names query (clustering = x) is the slice INCL_START(x)..INCL_END(x) with
 * is_name set, which lets the store stop early (ST-39). */
struct clustering_filter {
	bool is_reversed;
	bool is_names; /* every slice selects one full clustering */
	bool with_static; /* the static row is wanted */
	uint32_t slice_count;
	const struct clustering_slice *slices; /* count 0: the whole partition */
};

enum filter_operator {
	FILTER_EQ,
	FILTER_NEQ,
	FILTER_LT,
	FILTER_LTE,
	FILTER_GT,
	FILTER_GTE,
	FILTER_IN,
	FILTER_CONTAINS,
	FILTER_CONTAINS_KEY,
	FILTER_LIKE,
	FILTER_MAP_EQ,
	FILTER_IS_NOT_NULL,
};

/* One ALLOW FILTERING expression (RowFilter.Expression) over a column of any kind. */
struct filter_expression {
	const struct column_metadata *column;
	enum filter_operator operator;
	struct slice value; /* operand (LIKE: with its %); IN has `values` */
	struct slice map_key; /* FILTER_MAP_EQ: column[map_key] = value */
	uint32_t value_count;
	const struct slice *values;
};

/* Token range (left, right] with paging refinement: partitions with (token, key) > after. */
struct token_range {
	int64_t left; /* exclusive; INT64_MIN: from the beginning */
	int64_t right; /* inclusive; INT64_MIN: to the end (Cassandra's minimum token) */
	bool includes_left; /* bounds from token() >= x: include tokens equal to left */
	bool excludes_right;
	struct slice start_key; /* not null: begin at this exact key (its token == left) */
	bool start_key_exclusive;
};

enum { READ_LIMIT_NONE = INT32_MAX };

struct read_command {
	const struct table_metadata *table; /* borrowed by the request */
	bool is_range;
	struct slice key; /* !is_range */
	int64_t token;
	struct token_range range; /* is_range */
	struct clustering_filter clustering;
	/* Paging inside the first partition: rows after this position only (before it, reversed); null: all. */
	struct slice after_position;
	const uint64_t *wanted_regulars; /* bitmap by column->position; NULL: all */
	const uint64_t *wanted_statics;
	uint32_t filter_count;
	const struct filter_expression *filters;
	uint32_t row_limit; /* live rows that matter, READ_LIMIT_NONE: no limit */
	uint32_t per_partition_limit;
	int64_t now_seconds;
	/*
	 * Rows are not needed beyond the next live_reader_next() (a range only): memory then stays bounded
	 * however many rows the filters drop.
	 */
	bool is_transient;
};

/*
 * One row of plain cells by its whole key, and nothing beside it: SSTables are then asked newest first, and only until
 * nothing older can matter (store_read.c). What older ones have is not seen, so answers must not show it.
 */
bool read_command_is_one_row(const struct read_command *command);

/* Does the live row (with its partition key and static row) pass all filters? 1, 0, or -1 on error. */
int read_command_filter(const struct read_command *command, struct slice key,
    const struct row *static_row, const struct row *row, struct error *err);

#endif
