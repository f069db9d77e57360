/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_UNIT_STORAGE_SSTABLE_MODEL_H
#define HELENUS_TESTS_UNIT_STORAGE_SSTABLE_MODEL_H

/* Random partitions in memory, made from a seed, and what a read of them must give. */
#include "storage/sstable.h"

/* As ck_assert_msg(), which writes to a pipe also when all is well: too slow for each cell. */
#define model_assert(condition, ...)                                                               \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

struct model_partition {
	struct slice key;
	int64_t token;
	struct deletion deletion;
	bool has_static;
	struct row static_row;
	uint32_t count;
	struct unfiltered *items; /* ascending, positions computed */
};

struct model {
	struct arena arena;
	uint64_t seed;
	const struct table_metadata *table; /* borrowed */
	uint32_t count;
	struct model_partition *partitions; /* in token order */
	int64_t min_timestamp;
	int32_t min_local_deletion_time;
};

struct model_shape {
	uint32_t partitions;
	uint32_t rows; /* at most, in a partition */
	uint32_t value_size; /* at most */
	bool has_tombstones;
};

uint64_t model_random(struct model *model, uint64_t below);
void model_init(struct model *model, const struct table_metadata *table, uint64_t seed,
    const struct model_shape *shape);
void model_fini(struct model *model);

/* The partition as an iterator (forward) in `arena`. */
struct unfiltered_iterator *model_iterator(
    const struct model *model, const struct model_partition *partition, struct arena *arena);

/* Deletion of the range tombstones of a partition that is in effect at a position. */
struct deletion model_deletion_at(const struct model_partition *partition, struct slice position);
/* Does a slice of the filter hold the position? */
bool model_selects(const struct clustering_filter *filter, struct slice position);
/* Read `actual` to its end and check that it is what the slices select; closes it. */
void model_check(const struct model_partition *partition, struct unfiltered_iterator *actual,
    const struct clustering_filter *filter, const char *what);

#endif
