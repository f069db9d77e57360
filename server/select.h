/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SELECT_H
#define HELENUS_SERVER_SELECT_H

/*
 * SELECT: the plan, and its execution in chunks: a read command is run for a bounded number of rows,
 * its rows are written into the answer, and the next begins behind the last row, until the page
 * is full, the limit is met or nothing is left. So memory is bounded by the page, whatever is
 * aggregated or filtered. Cassandra: cql3/statements/SelectStatement, service/pager/.
 */
#include "server/restriction.h"
#include "server/selection.h"

struct select_plan {
	struct selection selection;
	struct restrictions restrictions;
	const struct term *limit; /* NULL: none */
	const struct term *per_partition_limit; /* NULL: none */
	bool is_distinct;
	bool is_reversed;
	bool is_sorted_after; /* ORDER BY over several partitions: rows are sorted at the end */
	uint32_t order_count; /* leading clustering columns that ORDER BY names */
	bool is_grouped; /* GROUP BY */
	uint32_t group_clustering; /* leading clustering columns that make a group */
	const struct selector *group_function; /* of the last of them; NULL: the column itself */
};

struct prepared_statement;
/* Fill plan->select, results, key_indexes, stage. */
int
select_prepare(struct preparation *preparation, struct prepared_statement *plan, struct error *err);

#endif
