/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_SEEDS_H
#define HELENUS_TOOLS_STRESS_SEEDS_H

/*
 * Which partition the next operation takes: seeds out of a sequence or a distribution, partitions
 * that are written in several visits, and reads that look back at what was just written. One manager
 * per run, shared by all threads. Cassandra: stress/generate/SeedManager.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "tools/stress_distribution.h"

struct stress_population {
	bool is_sequence;
	int64_t first; /* of the sequence; both included */
	int64_t last;
	bool wraps;
	bool has_lookback;
	struct stress_distribution lookback;
	struct stress_distribution distribution; /* where it is no sequence */
};

/* A seed in hand. `managed` is for the manager, when visits are counted. */
struct stress_seed {
	int64_t seed;
	int32_t visits;
	void *managed;
};

struct stress_seeds;

/* ERROR_INVALID: ranges that make no sense. */
struct stress_seeds *stress_seeds_new(const struct stress_population *population,
    const struct stress_distribution *visits, const struct stress_distribution *revisit,
    struct error *err);
void stress_seeds_free(struct stress_seeds *seeds);

/* False: the sequence is used up (no-wrap). `population` is the thread's own copy. */
bool stress_seeds_next(struct stress_seeds *seeds, struct stress_distribution *population,
    bool is_write, struct stress_seed *out);

/* Rows of the partition that are taken; returns how many were before. 0 for what is not managed. */
int32_t stress_seeds_move(struct stress_seeds *seeds, struct stress_seed *seed, int32_t rows);
int32_t stress_seeds_position(struct stress_seeds *seeds, const struct stress_seed *seed);
/* The rows of a visit have been handed out: the partition's first ones, its last ones. */
void stress_seeds_mark(
    struct stress_seeds *seeds, const struct stress_seed *seed, bool is_first, bool is_last);
/* The seed is used no more by the operation that took it. */
void stress_seeds_release(struct stress_seeds *seeds, struct stress_seed *seed);

#endif
