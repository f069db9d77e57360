/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_DATA_RESOLVER_INTERNAL_H
#define HELENUS_STORAGE_DATA_RESOLVER_INTERNAL_H

/*
 * The parts of the data resolver: data_resolver.c (answers and requests), data_resolver_merge.c (one partition),
 * data_resolver_repair.c (what a replica lacks).
 */
#include "storage/data_resolver.h"

/* One replica's part of one partition. Continuations are appended to it. */
struct resolver_partition {
	uint32_t replica;
	const struct read_command *command; /* that it answers, or will */
	int64_t token;
	struct slice key;
	struct deletion deletion;
	bool has_static;
	struct row static_row;
	struct unfiltered *items; /* in the order of the iteration */
	uint32_t item_count, item_room;
	struct slice last_row; /* position; null: no row yet */
	enum read_response_end end;
	uint32_t asked; /* rows of the last continuation */
	/* During a merge. */
	uint32_t at;
	struct deletion open;
};

/* Changes to the current partition that a replica lacks. */
struct resolver_repair {
	struct deletion deletion;
	const struct row *static_row;
	struct row *rows;
	uint32_t row_count, row_room;
	struct range_tombstone *tombstones;
	uint32_t tombstone_count, tombstone_room;
	struct deletion open; /* a tombstone has begun at `from` */
	struct marker from;
};

struct resolver_replica {
	bool has_answer;
	bool is_complete; /* nothing behind its last partition */
	struct resolver_partition **partitions; /* ascending */
	uint32_t partition_count, partition_room;
	/* What is fetched for replica filtering protection, ascending; there from the request on. */
	struct resolver_partition **fetched;
	uint32_t fetched_count, fetched_room;
	uint32_t at, fetched_at; /* of a run */
	struct resolver_repair repair;
	struct mutation *mutations;
	uint32_t mutation_count, mutation_room;
	/* Of the current partition. */
	bool has_source;
	struct row *silent; /* rows to fetch */
	uint32_t silent_count, silent_room;
};

/* What an answer to a request is. */
enum resolver_request_kind {
	RESOLVER_REST_OF_PARTITION, /* appended to `partition` */
	RESOLVER_REST_OF_RANGE, /* from within `partition` (its key) on */
	RESOLVER_NEXT_PARTITIONS,
};

struct resolver_request {
	struct data_resolver_request public;
	enum resolver_request_kind kind;
	struct resolver_partition *partition;
	bool is_answered;
};

/* A partition of the result. */
struct resolver_result {
	struct unfiltered_iterator base;
	struct unfiltered *items;
	uint32_t item_count, item_room;
	uint32_t at;
};

struct data_resolver {
	const struct read_command *command;
	struct arena *arena;
	uint32_t replica_count;
	struct resolver_replica *replicas;
	bool filters_rows, filters_partitions;

	struct resolver_request *requests;
	uint32_t request_count, request_room;

	/* Of a run. */
	bool is_done;
	uint32_t rows_left, partition_rows_left, partition_rows;
	struct resolver_result **results;
	uint32_t result_count, result_room;
	struct resolver_partition **sources; /* of the current partition */
	uint32_t source_count, source_room;
	const struct row **versions; /* by source; NULL: none. Room for version_room */
	uint32_t version_room;
	struct resolver_result *result; /* of the current partition */
	struct deletion open;
};

/* The array with room for one more; NULL without memory. */
void *resolver_room(struct arena *arena, void *array, size_t size, uint32_t count, uint32_t *room);
int resolver_no_memory(struct error *err);

/*
 * Merge resolver->sources, which are of one partition: a result, and what replicas lack. 1: done; 0: requests were
 * added without which it cannot go on; -1.
 */
int resolver_merge_partition(struct data_resolver *resolver, struct error *err);
/* Ask for more of a partition whose answer was cut. */
int resolver_ask_rest(
    struct data_resolver *resolver, struct resolver_partition *partition, struct error *err);
/* Ask for what a filter may have hidden; `partition` is empty but for its replica and key. */
int resolver_add_fetch(struct data_resolver *resolver, struct resolver_partition *partition,
    const struct read_command *command, struct error *err);
/* Add a request for `replica`; the command is copied. NULL without memory. */
struct resolver_request *resolver_request_add(struct data_resolver *resolver, uint32_t replica,
    enum resolver_request_kind kind, const struct read_command *command);

/*
 * Is what the replica says of the row at `position` all that it has? Not when a filter may have hidden it: it has no
 * version of it, and none was fetched.
 */
bool
resolver_is_heard(const struct data_resolver *resolver, uint32_t replica, struct slice position);

/* ---- repair: begun and ended with each partition, in between told of everything that is merged ---- */

void resolver_repair_begin(struct data_resolver *resolver);
/* The partition's deletion and static row are merged, in resolver->result. */
int resolver_repair_heads(struct data_resolver *resolver, struct error *err);
/* resolver->versions are of this row. */
int
resolver_repair_row(struct data_resolver *resolver, const struct row *merged, struct error *err);
/* resolver->open, and that of the sources, is what holds behind `at`. */
int
resolver_repair_marker(struct data_resolver *resolver, const struct marker *at, struct error *err);
/* The partition's mutations are made. */
int resolver_repair_end(struct data_resolver *resolver, struct error *err);

#endif
