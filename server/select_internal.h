/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SELECT_INTERNAL_H
#define HELENUS_SERVER_SELECT_INTERNAL_H

/*
 * A SELECT that runs, for the files that share it:
 *
 *   select_values.c   values -> keys or token range, slices, filters, limits, paging state
 *   select_run.c      one read command for the next chunk -> coordinator, until the page is full
 *   select_rows.c     rows of the chunk -> cells of the answer, or groups
 *   select_size.c     how large the answer may be
 */
#include "base/arena.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/select.h"

enum {
	SELECT_SCRATCH_BLOCK = 64 << 10,
};

/* A row whose cells are in run->sorted, to be put in order at the end. */
struct select_sorted {
	struct slice position;
	size_t offset, size;
};

struct select_run {
	struct execution *execution;
	const struct select_plan *plan;
	const struct table_metadata *table;
	struct read_command command;
	struct coordinator_read read;
	struct paxos_request paxos; /* SERIAL and LOCAL_SERIAL in a ring */

	/* What is left. */
	struct slice *keys;
	uint32_t key_count, key_index;
	uint32_t chunk_keys; /* of the chunk: from key_index on */
	uint32_t wide_keys; /* at the next chunk, where partitions may be of any size */
	bool is_range;
	uint32_t left; /* rows (groups) of LIMIT */
	uint32_t left_in_page;
	uint32_t per_partition, left_in_partition;
	bool is_paged;

	/* Where we are. */
	struct buffer last_key, last_position; /* of the last row that was taken */
	bool has_last, is_partition_done;
	bool is_chunk_full; /* there may be more behind the last row */
	bool is_finished;
	struct arena scratch; /* of the chunk */
	bool has_scratch;
	struct term_context terms; /* with the arena of the chunk */
	struct slice *key_components;

	struct response_rows rows;
	struct selection_group group;
	bool has_group;
	struct arena group_arena;
	bool has_group_arena;
	struct slice group_key, group_value; /* what makes the group; in group_arena */
	struct slice *group_prefix;

	struct buffer sorted_cells;
	struct select_sorted *sorted;
	uint32_t sorted_count, sorted_capacity;

	/* How large the answer may be, and what its warning names; see select_size.c. */
	int64_t size_warn, size_fail;
	size_t rows_offset;
	int64_t range_left, range_right;

	uint64_t tombstones, live;
	atomic_int handover; /* 0; 1 the caller went away; 2 the answer is here */
	struct partition_iterator *source;
	bool has_error;
	struct error err; /* last, and not cleared for each request */
};

int select_no_memory(struct error *err);

/* Evaluate the values and begin the answer. *is_empty: no row can be meant. */
int select_begin(struct select_run *run, bool *is_empty, struct error *err);

/* The rows of run->source, which is moved, into the answer; where they end stands in run. */
int select_take(struct select_run *run, struct error *err);
/* Without GROUP BY an aggregate of no rows has a group too. */
int select_group_open(struct select_run *run, struct error *err);
/* Its row is put into the answer. */
int select_group_close(struct select_run *run, struct error *err);
/* What waited for all partitions of an ORDER BY is put into the answer. */
void select_put_all_sorted(struct select_run *run);

/* Behind select_begin(): is there a bound on the answer's size? */
void select_size_begin(struct select_run *run);
/* What is read, for texts: "token: 1", "tokens: [1, 2]", "token range: (1, 2]". Behind select_size_begin(). */
void select_put_tokens(const struct select_run *run, struct buffer *out);
/* Before a row is added: may the answer be as large as it is? ERROR_READ_FAILURE. */
int select_size_check(struct select_run *run, struct error *err);
/* At the end: the client is warned of a large one. */
void select_size_warn(struct select_run *run);

/*
 * A long scan ends when its time is over, between two chunks and now and then where a filter drops rows; what is
 * aggregated may take its time, as Cassandra gives each of its own pages a timeout. argument: the run.
 */
int select_check_deadline(void *argument, struct error *err);

#endif
