/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_RANDOM_H
#define HELENUS_TOOLS_STRESS_RANDOM_H

/*
 * The two sources of chance that cassandra-stress makes its data from, number for number: a row that
 * its write made is one that our read expects, and the other way round. Memory of the caller, one
 * thread. Cassandra: java.util.Random (under commons-math's JDKRandomGenerator),
 * stress/generate/FasterRandom.
 */
#include <stdbool.h>
#include <stdint.h>

/* The linear congruential generator of 48 bits. */
struct stress_random {
	uint64_t state;
	double next_gaussian;
	bool has_next_gaussian;
};

static inline void
stress_random_seed(struct stress_random *random, int64_t seed)
{
	random->state = ((uint64_t)seed ^ 0x5DEECE66DULL) & ((1ULL << 48) - 1);
	random->has_next_gaussian = false;
}

static inline int32_t
stress_random_next(struct stress_random *random, int bits)
{
	random->state = (random->state * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
	return (int32_t)(random->state >> (48 - bits));
}

static inline int64_t
stress_random_long(struct stress_random *random)
{
	uint64_t high = (uint64_t)(int64_t)stress_random_next(random, 32) << 32;

	return (int64_t)(high + (uint64_t)(int64_t)stress_random_next(random, 32));
}

/* 0 <= value < 1 */
static inline double
stress_random_double(struct stress_random *random)
{
	int64_t high = (int64_t)stress_random_next(random, 26) << 27;

	return (double)(high + stress_random_next(random, 27)) * 0x1.0p-53;
}

/* Mean 0, deviation 1. */
double stress_random_gaussian(struct stress_random *random);

/* Numbers below `bound` for decisions that nobody has to repeat. */
static inline uint32_t
stress_random_below(struct stress_random *random, uint32_t bound)
{
	return (uint32_t)(((uint64_t)(uint32_t)stress_random_next(random, 32) * bound) >> 32);
}

/* Xorshift, started from the generator above anew every 32 numbers. */
struct stress_fast_random {
	struct stress_random random;
	int64_t seed;
	uint32_t count;
};

static inline void
stress_fast_random_roll(struct stress_fast_random *fast)
{
	fast->count = 0;
	stress_random_seed(&fast->random, fast->seed);
	fast->seed = stress_random_long(&fast->random);
}

static inline void
stress_fast_random_seed(struct stress_fast_random *fast, int64_t seed)
{
	fast->seed = seed;
	stress_fast_random_roll(fast);
}

static inline int64_t
stress_fast_random_long(struct stress_fast_random *fast)
{
	int64_t seed;

	if (++fast->count == 32)
		stress_fast_random_roll(fast);
	seed = fast->seed;
	seed ^= seed >> 12; /* with the sign, as the original has it */
	seed = (int64_t)((uint64_t)seed ^ (uint64_t)seed << 25);
	seed ^= seed >> 27;
	fast->seed = seed;
	return (int64_t)((uint64_t)seed * 2685821657736338717ULL);
}

#endif
