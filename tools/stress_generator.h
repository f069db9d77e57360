/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_GENERATOR_H
#define HELENUS_TOOLS_STRESS_GENERATOR_H

/*
 * Values of columns, made from seeds: the same seed gives the bytes that cassandra-stress writes.
 * A generator holds scratch state and belongs to one thread; each thread has its own copy.
 * Cassandra: stress/generate/values, PartitionIterator.seed().
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/type.h"
#include "tools/stress_distribution.h"

/* What a profile says of a column; NULL distributions: the type's defaults. */
struct stress_generator_config {
	const char *seed_text; /* what the salt is hashed from */
	const struct stress_distribution *size;
	const struct stress_distribution *identity; /* "population" of a profile */
	const struct stress_distribution *clustering;
};

struct stress_value {
	struct slice wire; /* as the protocol carries it; null: the column is left out */
	int64_t number; /* of numbers: their value; of UUIDs: both halves, folded */
};

struct stress_generator {
	const char *name; /* borrowed */
	const struct type *type; /* borrowed */
	bool is_static; /* one value of a whole partition */
	bool is_hex; /* a blob of the characters 0-9 and K-P: keys of the predefined commands */
	int64_t salt;
	struct stress_distribution identity;
	struct stress_distribution size;
	struct stress_distribution clustering;
	struct stress_fast_random fast;
	struct stress_generator *element; /* list and set: owned */
};

/*
 * Errors: ERROR_INVALID for a type that the tool does not generate (maps, tuples, user types,
 * durations, collections in collections), as cassandra-stress does not.
 */
int stress_generator_init(struct stress_generator *generator, const char *name,
    const struct type *type, const struct stress_generator_config *config, struct error *err);
void stress_generator_fini(struct stress_generator *generator);
/* An independent copy. */
void stress_generator_copy(struct stress_generator *to, const struct stress_generator *from);
/* Can values of the type be made? */
bool stress_generator_supports(const struct type *type);

void stress_generator_seed(struct stress_generator *generator, int64_t seed);
/* The next value; its bytes live in `arena`. Null wire: no memory. */
struct stress_value stress_generator_next(struct stress_generator *generator, struct arena *arena);

/* The seed of what depends on `value`, where `seed` is what value itself depended on. */
int64_t stress_generator_mix(
    const struct stress_generator *generator, const struct stress_value *value, int64_t seed);
/* Java's order of two values; only where stress_generator_is_ordered() says that there is one. */
int stress_generator_compare(const struct stress_generator *generator, const struct stress_value *a,
    const struct stress_value *b);
bool stress_generator_is_ordered(const struct stress_generator *generator);

#endif
