/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_partition.h"

#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "cql/value.h"

/* ---- Tables -------------------------------------------------------------------------------- */

void
stress_table_finish(struct stress_table *table)
{
	table->row_count_min = 1;
	table->row_count_max = 1;
	for (uint32_t i = table->clustering_count; i-- > 0;) {
		const struct stress_distribution *counts = &table->clusterings[i].clustering;

		table->component_averages[i] = (int32_t)stress_distribution_average(counts);
		table->descendant_averages[i] = i + 1 == table->clustering_count
		    ? 1
		    : table->component_averages[i + 1] * table->descendant_averages[i + 1];
		if (table->descendant_averages[i] < 1)
			table->descendant_averages[i] = 1;
		table->row_count_min *= (double)stress_distribution_min(counts);
		table->row_count_max *= (double)stress_distribution_max(counts);
	}
}

static struct stress_generator *
stress_table_copy_generators(const struct stress_generator *from, uint32_t count)
{
	struct stress_generator *to = xcalloc(count > 0 ? count : 1, sizeof(*to));

	for (uint32_t i = 0; i < count; i++)
		stress_generator_copy(&to[i], &from[i]);
	return to;
}

void
stress_table_copy(struct stress_table *to, const struct stress_table *from)
{
	*to = *from;
	to->keys = stress_table_copy_generators(from->keys, from->key_count);
	to->clusterings = stress_table_copy_generators(from->clusterings, from->clustering_count);
	to->values = stress_table_copy_generators(from->values, from->value_count);
}

static void
stress_table_free_generators(struct stress_generator *generators, uint32_t count)
{
	for (uint32_t i = 0; generators != NULL && i < count; i++)
		stress_generator_fini(&generators[i]);
	free(generators);
}

void
stress_table_fini(struct stress_table *table)
{
	stress_table_free_generators(table->keys, table->key_count);
	stress_table_free_generators(table->clusterings, table->clustering_count);
	stress_table_free_generators(table->values, table->value_count);
	memset(table, 0, sizeof(*table));
}

int32_t
stress_table_index(const struct stress_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->key_count; i++) {
		if (strcmp(table->keys[i].name, name) == 0)
			return -1 - (int32_t)i;
	}
	for (uint32_t i = 0; i < table->clustering_count; i++) {
		if (strcmp(table->clusterings[i].name, name) == 0)
			return (int32_t)i;
	}
	for (uint32_t i = 0; i < table->value_count; i++) {
		if (strcmp(table->values[i].name, name) == 0)
			return (int32_t)(table->clustering_count + i);
	}
	return INT32_MIN;
}

const char *
stress_table_name(const struct stress_table *table, uint32_t i)
{
	if (i < table->key_count)
		return table->keys[i].name;
	i -= table->key_count;
	return i < table->clustering_count ? table->clusterings[i].name
					   : table->values[i - table->clustering_count].name;
}

/* ---- Levels: the elements of a clustering column --------------------------------------------- */

static inline bool
stress_level_is_empty(const struct stress_level *level)
{
	return level->first == level->end;
}

static inline uint32_t
stress_level_size(const struct stress_level *level)
{
	return level->end - level->first;
}

static inline void
stress_level_poll(struct stress_level *level)
{
	if (level->first < level->end)
		level->first++;
}

/* Put a place in front, for a step that takes one away before it looks. */
static inline void
stress_level_step_back(struct stress_level *level)
{
	level->first--;
}

static void
stress_level_clear(struct stress_level *level)
{
	level->first = level->end = 1;
}

static void
stress_level_add(struct stress_level *level, struct stress_value value)
{
	if (level->end == level->capacity) {
		level->capacity = level->capacity == 0 ? 16 : level->capacity * 2;
		level->values = xrealloc(level->values, level->capacity * sizeof(*level->values));
	}
	level->values[level->end++] = value;
}

/*
 * Add a value that is not there yet. `places` is a table of `mask` + 1 positions, of which 0 is a free
 * one, or NULL where a look at each value is cheap enough.
 */
static void
stress_level_add_new(
    struct stress_level *level, struct stress_value value, uint32_t *places, uint32_t mask)
{
	uint32_t at = (uint32_t)hash_bytes(value.wire) & mask;

	if (places == NULL) {
		for (uint32_t i = level->first; i < level->end; i++) {
			if (slice_equal(level->values[i].wire, value.wire))
				return;
		}
		stress_level_add(level, value);
		return;
	}
	for (; places[at] != 0; at = (at + 1) & mask) {
		if (slice_equal(level->values[places[at]].wire, value.wire))
			return;
	}
	places[at] = level->end;
	stress_level_add(level, value);
}

static int
stress_level_compare_cb(const void *a, const void *b, void *user)
{
	return stress_generator_compare(user, a, b);
}

static void
stress_level_sort(struct stress_level *level, const struct stress_generator *generator)
{
	uint32_t kept = level->first;

	qsort_r(level->values + level->first, stress_level_size(level), sizeof(*level->values),
	    stress_level_compare_cb, (void *)generator);
	for (uint32_t i = level->first; i < level->end; i++) {
		if (i == level->first ||
		    stress_generator_compare(generator, &level->values[i - 1], &level->values[i]) <
			0)
			level->values[kept++] = level->values[i];
	}
	level->end = kept;
}

static void
stress_level_shuffle(struct stress_level *level, struct stress_random *random)
{
	for (uint32_t i = level->first; i < level->end; i++) {
		uint32_t other = i + stress_random_below(random, level->end - i);
		struct stress_value value = level->values[other];

		level->values[other] = level->values[i];
		level->values[i] = value;
	}
}

/* ---- The tree of clustering columns ------------------------------------------------------------ */

static uint32_t
stress_partition_depth(const struct stress_partition *partition)
{
	return partition->table.clustering_count;
}

/* Make the elements of a level under the first elements above it. */
static void
stress_partition_fill(struct stress_partition *partition, uint32_t depth)
{
	int64_t seed = depth == 0 ? partition->data_seed : partition->clustering_seeds[depth - 1];
	struct stress_generator *generator = &partition->table.clusterings[depth];
	struct stress_level *level = &partition->levels[depth];
	bool is_sorted =
	    partition->table.order == STRESS_SORTED && stress_generator_is_ordered(generator);
	uint32_t mask = 31, *places = NULL;
	int32_t count;

	/* The order of a fill decides the seed of what is below: it is Java's. */
	stress_generator_seed(generator, seed);
	count = (int32_t)stress_distribution_next(&generator->clustering);
	stress_level_clear(level);
	if (count > 16) {
		while (mask < 2 * (uint32_t)count)
			mask = 2 * mask + 1;
		places = arena_calloc(partition->arena, mask + 1, sizeof(*places));
	}
	for (int32_t i = 0; i < count; i++) {
		struct stress_value value = stress_generator_next(generator, partition->arena);

		if (count == 1 || is_sorted)
			stress_level_add(level, value);
		else
			stress_level_add_new(level, value, places, mask);
	}
	if (is_sorted && count > 1)
		stress_level_sort(level, generator);
	else if (partition->table.order == STRESS_SHUFFLED)
		stress_level_shuffle(level, &partition->random);
	if (!stress_level_is_empty(level))
		partition->clustering_seeds[depth] =
		    stress_generator_mix(generator, &level->values[level->first], seed);
}

/* A number of rows as a path through the levels, by average counts. */
static void
stress_partition_decompose(
    const struct stress_partition *partition, int32_t rows, int32_t path[STRESS_CLUSTERING_MAX])
{
	uint32_t depth = stress_partition_depth(partition);

	for (uint32_t i = 0; i < depth; i++) {
		path[i] = rows / partition->table.descendant_averages[i];
		rows %= partition->table.descendant_averages[i];
	}
	for (uint32_t i = depth; i-- > 1;) {
		int32_t average = partition->table.component_averages[i];

		if (average > 0 && path[i] >= average) {
			path[i - 1] += path[i] / average;
			path[i] %= average;
		}
	}
}

/* Returns the expected distance from the first row. */
static int32_t
stress_partition_set_last_row(struct stress_partition *partition, int32_t rows)
{
	int32_t expected = 0;

	stress_partition_decompose(partition, rows, partition->last_row);
	for (uint32_t i = 0; i < stress_partition_depth(partition); i++)
		expected += partition->last_row[i] * partition->table.descendant_averages[i];
	return expected + 1;
}

/* -1 before the last row of the visit, 0 at it (or at the last that exists before it), 1 after. */
static int
stress_partition_compare_last(const struct stress_partition *partition, uint32_t depth)
{
	int before = 0;

	for (uint32_t i = 0; i <= depth; i++) {
		int32_t at = partition->current_row[i], last = partition->last_row[i];
		uint32_t left = stress_level_size(&partition->levels[i]);

		if (before < 0) {
			if (left > 1)
				return -1;
		} else if (at > last) {
			return 1;
		} else if (at < last) {
			if (left != 1)
				return -1;
			before = -1;
		}
	}
	return 0;
}

static void
stress_partition_descend(struct stress_partition *partition, uint32_t depth, double chance)
{
	if (partition->use_chance < 1) {
		partition->roll_modifiers[depth] =
		    partition->roll_modifiers[depth - 1] / (chance < 1 ? chance : 1);
		partition->chance_modifiers[depth] =
		    partition->table.descendant_averages[depth] * partition->roll_modifiers[depth];
	}
	partition->current_row[depth] = 0;
	stress_partition_fill(partition, depth);
}

/* Go on to the next row to visit, from `depth`; standing[] then holds its clustering. False: no more. */
static bool
stress_partition_advance(struct stress_partition *partition, uint32_t depth, bool is_first)
{
	struct stress_level *levels = partition->levels;

	stress_level_poll(&levels[depth]);
	partition->current_row[depth]++;
	for (;;) {
		double chance;
		int against;

		if (stress_level_is_empty(&levels[depth])) {
			if (depth == 0)
				return false;
			depth--;
			stress_level_poll(&levels[depth]);
			if (++partition->current_row[depth] > partition->last_row[depth])
				return false;
			continue;
		}
		against = stress_partition_compare_last(partition, depth);
		if (against > 0)
			return false;
		chance = partition->use_chance * partition->chance_modifiers[depth];
		if ((is_first && against == 0) || chance > 0.99999 ||
		    chance >= stress_random_double(&partition->random)) {
			partition->standing[depth] = levels[depth].values[levels[depth].first];
			if (++depth == stress_partition_depth(partition))
				return true;
			stress_partition_descend(partition, depth, chance);
			continue;
		}
		if (against >= 0)
			return false;
		stress_level_poll(&levels[depth]);
		partition->current_row[depth]++;
	}
}

/* Take note of whether there is a row, and tell the seeds when the visit is over. False: the whole
 * partition is over. */
static bool
stress_partition_set_next(struct stress_partition *partition, bool has_next)
{
	bool is_last = stress_level_is_empty(&partition->levels[0]);

	partition->has_next = has_next;
	if (!has_next && partition->is_write)
		stress_seeds_mark(
		    partition->seeds, &partition->seed, partition->is_first_write, is_last);
	return has_next || !is_last;
}

/*
 * Stand on the row that current_row says. Where it does not exist (fewer elements than average), on
 * the next one that does. False: none.
 */
static bool
stress_partition_seek_current(struct stress_partition *partition)
{
	uint32_t depth = stress_partition_depth(partition);
	int32_t *at = partition->current_row;

	for (uint32_t i = 0; i < depth; i++) {
		struct stress_level *level = &partition->levels[i];

		if (i != 0)
			stress_partition_fill(partition, i);
		for (int32_t steps = at[i]; steps > 0; steps--)
			stress_level_poll(level);
		if (stress_level_is_empty(level)) {
			uint32_t up = i;

			do {
				if (up-- == 0)
					return stress_partition_set_next(partition, false);
				stress_level_poll(&partition->levels[up]);
			} while (stress_level_is_empty(&partition->levels[up]));
			at[up]++;
			for (uint32_t j = up + 1; j < depth; j++)
				at[j] = 0;
			while (up < i)
				stress_partition_fill(partition, ++up);
		}
		partition->standing[i] = level->values[level->first];
	}
	if (stress_partition_compare_last(partition, depth - 1) > 0)
		return stress_partition_set_next(partition, false);
	at[depth - 1]--;
	stress_level_step_back(&partition->levels[depth - 1]);
	return stress_partition_set_next(
	    partition, stress_partition_advance(partition, depth - 1, true));
}

static bool
stress_partition_seek(struct stress_partition *partition, int32_t rows)
{
	if (rows == 0) {
		partition->current_row[0] = -1;
		stress_level_step_back(&partition->levels[0]);
		return stress_partition_set_next(
		    partition, stress_partition_advance(partition, 0, true));
	}
	stress_partition_decompose(partition, rows, partition->current_row);
	return stress_partition_seek_current(partition);
}

static void
stress_partition_set_chance(struct stress_partition *partition, double chance)
{
	if (partition->use_chance < 1) {
		for (uint32_t i = 0; i < stress_partition_depth(partition); i++) {
			partition->roll_modifiers[i] = 1;
			partition->chance_modifiers[i] = 1;
		}
	}
	partition->use_chance = chance;
}

static bool
stress_partition_reset_rows(
    struct stress_partition *partition, double use_chance, int32_t target_count)
{
	struct stress_generator *first = &partition->table.clusterings[0];
	int32_t first_count, expected, position;

	stress_generator_seed(first, partition->data_seed);
	first_count = (int32_t)stress_distribution_next(&first->clustering);
	position = stress_seeds_position(partition->seeds, &partition->seed);
	expected = first_count * partition->table.descendant_averages[0];
	if (!partition->is_write && position != 0) {
		expected = stress_partition_set_last_row(partition, position - 1);
	} else if (!partition->is_write && partition->is_as_written) {
		stress_partition_set_last_row(partition, (int32_t)partition->table.row_count_max);
	} else if (!partition->is_write) {
		for (uint32_t i = 0; i < stress_partition_depth(partition); i++)
			partition->last_row[i] = INT32_MAX;
	}
	if (isnan(use_chance)) {
		use_chance = target_count / (double)expected;
		use_chance = use_chance > 1 ? 1 : use_chance < 0 ? 0 : use_chance;
	}
	stress_partition_set_chance(partition, use_chance);
	for (;;) {
		int32_t count;

		for (uint32_t i = 0; i < stress_partition_depth(partition); i++)
			stress_level_clear(&partition->levels[i]);
		stress_partition_fill(partition, 0);
		if (!partition->is_write) {
			stress_partition_seek(partition, 0);
			return partition->has_next;
		}
		count = partition->seed.visits == 1 ? 1 + (int32_t)partition->table.row_count_max
		    : expected / partition->seed.visits > 1 ? expected / partition->seed.visits
							    : 1;
		position = stress_seeds_move(partition->seeds, &partition->seed, count);
		partition->is_first_write = position == 0;
		stress_partition_set_last_row(partition, position + count - 1);
		if (stress_partition_seek(partition, position)) {
			if (partition->has_next)
				return true;
			continue; /* a range without rows: take the next */
		}
		return partition->has_next;
	}
}

/* ---- Partitions ------------------------------------------------------------------------------ */

void
stress_partition_init(
    struct stress_partition *partition, const struct stress_table *table, int64_t random_seed)
{
	memset(partition, 0, sizeof(*partition));
	stress_table_copy(&partition->table, table);
	stress_random_seed(&partition->random, random_seed);
	partition->keys = xcalloc(table->key_count, sizeof(*partition->keys));
	partition->row =
	    xcalloc(table->clustering_count + table->value_count + 1, sizeof(*partition->row));
	for (uint32_t i = 0; i < table->clustering_count; i++) {
		partition->levels[i].values = xcalloc(16, sizeof(struct stress_value));
		partition->levels[i].capacity = 16;
		stress_level_clear(&partition->levels[i]);
	}
	partition->roll_modifiers[0] = 1;
	partition->chance_modifiers[0] =
	    table->clustering_count > 0 ? table->descendant_averages[0] : 1;
}

void
stress_partition_fini(struct stress_partition *partition)
{
	for (uint32_t i = 0; i < STRESS_CLUSTERING_MAX; i++)
		free(partition->levels[i].values);
	free(partition->keys);
	free(partition->row);
	stress_table_fini(&partition->table);
}

void
stress_partition_set_key(
    struct stress_partition *partition, const struct stress_seed *seed, struct arena *arena)
{
	partition->seed = *seed;
	partition->arena = arena;
	partition->data_seed = 0;
	for (uint32_t i = 0; i < partition->table.key_count; i++) {
		struct stress_generator *generator = &partition->table.keys[i];

		stress_generator_seed(generator, seed->seed);
		partition->keys[i] = stress_generator_next(generator, arena);
		partition->data_seed =
		    stress_generator_mix(generator, &partition->keys[i], partition->data_seed);
	}
}

bool
stress_partition_reset(struct stress_partition *partition, const struct stress_seed *seed,
    double use_chance, int32_t target_count, double row_population, bool is_write,
    struct arena *arena)
{
	stress_partition_set_key(partition, seed, arena);
	partition->row_population = row_population;
	partition->is_write = is_write;
	if (stress_partition_depth(partition) == 0) {
		partition->has_next = true;
		return true;
	}
	if (stress_partition_reset_rows(partition, use_chance, target_count))
		return true;
	stress_seeds_release(partition->seeds, &partition->seed);
	return false;
}

static void
stress_partition_make_values(struct stress_partition *partition, int64_t seed)
{
	uint32_t depth = stress_partition_depth(partition), count = partition->table.value_count;

	for (uint32_t i = 0; i < count; i++) {
		struct stress_value *value = &partition->row[depth + i];

		if ((double)(i + 1) / count > partition->row_population) {
			value->wire = slice_null;
			continue;
		}
		stress_generator_seed(&partition->table.values[i], seed);
		*value = stress_generator_next(&partition->table.values[i], partition->arena);
	}
}

bool
stress_partition_next(struct stress_partition *partition)
{
	uint32_t depth = stress_partition_depth(partition);
	const struct stress_level *leaf;

	if (!partition->has_next)
		return false;
	if (depth == 0) {
		stress_partition_make_values(partition, partition->data_seed);
		partition->has_next = false;
		if (partition->is_write)
			stress_seeds_mark(partition->seeds, &partition->seed, true, true);
		stress_seeds_release(partition->seeds, &partition->seed);
		return true;
	}
	leaf = &partition->levels[depth - 1];
	stress_partition_make_values(partition,
	    stress_generator_mix(&partition->table.clusterings[depth - 1],
		&leaf->values[leaf->first], partition->clustering_seeds[depth - 1]));
	memcpy(partition->row, partition->standing, depth * sizeof(partition->row[0]));
	if (!stress_partition_advance(partition, depth - 1, false)) {
		stress_partition_set_next(partition, false);
		stress_seeds_release(partition->seeds, &partition->seed);
	}
	return true;
}

void
stress_partition_print_key(const struct stress_partition *partition, struct buffer *out)
{
	for (uint32_t i = 0; i < partition->table.key_count; i++) {
		if (i > 0)
			buffer_put_string(out, "|");
		value_to_string(partition->table.keys[i].type, partition->keys[i].wire, out);
	}
}
