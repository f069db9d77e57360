/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_STORAGE_FACTS_H
#define HELENUS_TESTS_UNIT_STORAGE_FACTS_H

/*
 * A naive model of one partition for property tests: a list of facts (one cell, one deletion, ...) and what a
 * reader must see of them, found by looking at every fact for every row. The code under test gets the
 * same facts grouped into updates in whatever way a seed says; both sides are printed and compared.
 *
 * The table: (k int, c1 int, c2 int DESC, s int static, a int, b text, m map<int, int>, PRIMARY KEY (k, c1, c2)).
 */
#include "storage/mutation.h"
#include "storage/unfiltered.h"

enum { FACTS_MAX = 64, FACTS_C1 = 4, FACTS_C2 = 3, FACTS_ROWS = FACTS_C1 * FACTS_C2 };

enum fact_kind {
	FACT_CELL,
	FACT_LIVENESS,
	FACT_ROW_DELETION,
	FACT_COMPLEX_DELETION,
	FACT_RANGE,
	FACT_PARTITION,
};

struct fact {
	enum fact_kind kind;
	bool is_static;
	int c1, c2;
	const struct column_metadata *column;
	int path;
	int value;
	int64_t timestamp;
	int32_t ttl;
	int32_t local_deletion_time;
	enum bound_kind start_kind, end_kind;
	uint32_t start_count, end_count;
	int start[2], end[2];
};

struct facts {
	struct table_metadata *table; /* a reference */
	struct arena arena;
	uint64_t raw_count; /* of raw rows that were printed */
	uint32_t count;
	struct fact facts[FACTS_MAX];
};

/* A small generator of its own, so that a seed means the same everywhere. */
struct random {
	uint64_t state;
};
uint32_t random_below(struct random *random, uint32_t limit);

struct table_metadata *facts_table(void);
/* (k blob PRIMARY KEY, C0..C4 blob): the table of cassandra-stress. */
struct table_metadata *facts_lone_table(void);

void facts_init(struct facts *facts);
void facts_fini(struct facts *facts);
/* Forget the facts and make `count` others. */
void facts_generate(struct facts *facts, struct random *random, uint32_t count);

/* The update made of the facts whose bit is set. */
void facts_update(struct facts *facts, uint64_t which, struct partition_update *out);
/* Position of a row or bound; lives in the arena. */
struct slice
facts_position(struct facts *facts, enum bound_kind kind, const int *values, uint32_t count);

/*
 * What is to be seen, printed: the partition's deletion, the static row, then for each of the possible rows
 * for which `selected` (bitmap) is set the deletion over it and what the row has.
 */
void
facts_expect(const struct facts *facts, uint32_t selected, bool is_reversed, struct buffer *out);
/* The same from a stream (raw rows are decoded), which is closed. Checks order and balance of markers as it goes. */
void facts_print(struct facts *facts, struct unfiltered_iterator *iterator, uint32_t selected,
    struct buffer *out);
/* Index of a row among the possible ones, in clustering order. */
int facts_row_index(int c1, int c2);

#endif
