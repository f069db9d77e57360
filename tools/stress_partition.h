/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_PARTITION_H
#define HELENUS_TOOLS_STRESS_PARTITION_H

/*
 * Rows of a partition, made from its seed: the key, the clustering columns (a tree, each level's
 * count from the column's clustering distribution), the values. A visit yields all rows, a share of
 * them, or the part that follows the last visit. One thread. Cassandra:
 * stress/generate/PartitionGenerator, PartitionIterator.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "tools/stress_generator.h"
#include "tools/stress_seeds.h"

enum stress_order {
	STRESS_ARBITRARY,
	STRESS_SHUFFLED,
	STRESS_SORTED,
};

enum { STRESS_CLUSTERING_MAX = 16, STRESS_COLUMNS_MAX = 1024 };

/* The columns of a table. Generators are owned. Constant once set up; threads copy it. */
struct stress_table {
	uint32_t key_count;
	uint32_t clustering_count;
	uint32_t value_count;
	struct stress_generator *keys;
	struct stress_generator *clusterings;
	struct stress_generator *values;
	enum stress_order order;
	int32_t component_averages[STRESS_CLUSTERING_MAX];
	int32_t
	    descendant_averages[STRESS_CLUSTERING_MAX]; /* rows below one element of the level */
	double row_count_min;
	double row_count_max;
};

/* Fill in what follows from the generators (averages, row counts). */
void stress_table_finish(struct stress_table *table);
void stress_table_copy(struct stress_table *to, const struct stress_table *from);
void stress_table_fini(struct stress_table *table);
/* The column of that name: keys are -1, -2, ..., clustering and value columns 0, 1, ...;
 * INT32_MIN: none. */
int32_t stress_table_index(const struct stress_table *table, const char *name);
/* The names, keys first, then clustering columns, then the others. */
const char *stress_table_name(const struct stress_table *table, uint32_t i);

/* The elements of one level that are still to be visited. */
struct stress_level {
	struct stress_value *values; /* heap; values[0] is the place that a seek steps over */
	uint32_t capacity;
	uint32_t first;
	uint32_t end;
};

struct stress_partition {
	struct stress_table table; /* owned copy */
	struct stress_seeds *seeds; /* borrowed */
	struct stress_random random;

	struct stress_seed seed;
	int64_t data_seed; /* what the key makes of it */
	struct stress_value *keys; /* owned array; the bytes lie in the arena of reset */
	struct stress_value *row; /* clustering, then values; null wire: not populated */
	struct arena *arena;
	bool is_write;
	bool
	    is_as_written; /* a read takes the rows that one write takes, which are fewer than the clusterings
			     * make where there are three columns of them or more; set before a reset */
	bool has_next;
	bool is_first_write;
	double row_population;

	double use_chance;
	struct stress_value standing[STRESS_CLUSTERING_MAX]; /* clustering of the row to come */
	struct stress_level levels[STRESS_CLUSTERING_MAX];
	int64_t clustering_seeds[STRESS_CLUSTERING_MAX];
	double chance_modifiers[STRESS_CLUSTERING_MAX];
	double roll_modifiers[STRESS_CLUSTERING_MAX];
	int32_t current_row[STRESS_CLUSTERING_MAX];
	int32_t last_row[STRESS_CLUSTERING_MAX];
};

void stress_partition_init(
    struct stress_partition *partition, const struct stress_table *table, int64_t random_seed);
void stress_partition_fini(struct stress_partition *partition);

/*
 * Begin a visit. Bytes of all values lie in `arena`, which the caller resets when the visit's rows
 * are used. use_chance: the share of rows (0..1), or NAN with target_count rows wanted. False: the
 * visit found nothing to write; take another seed.
 */
bool stress_partition_reset(struct stress_partition *partition, const struct stress_seed *seed,
    double use_chance, int32_t target_count, double row_population, bool is_write,
    struct arena *arena);
/* Only the key of a seed: for messages and for tables without clustering. */
void stress_partition_set_key(
    struct stress_partition *partition, const struct stress_seed *seed, struct arena *arena);
/* The next row: `row` of the partition until the next call. False: the visit is over. */
bool stress_partition_next(struct stress_partition *partition);

/* The value of a column by stress_table_index(). */
static inline const struct stress_value *
stress_partition_value(const struct stress_partition *partition, int32_t index)
{
	return index < 0 ? &partition->keys[-1 - index] : &partition->row[index];
}

/* "key|key" as error lines show it; appended. */
void stress_partition_print_key(const struct stress_partition *partition, struct buffer *out);

#endif
