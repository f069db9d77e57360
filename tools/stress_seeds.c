/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_seeds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/map.h"

/* A partition that is written in more than one visit. */
struct stress_managed {
	int64_t seed;
	int32_t visits;
	int32_t position;
	int32_t slot; /* in the sample, or -1 */
	int32_t holders; /* operations that hold it now */
	bool is_done; /* freed when nobody holds it */
};

struct stress_seeds {
	struct stress_population population; /* constant */
	bool counts_visits; /* constant; false: every partition is written in one visit */
	bool updates_sample; /* constant: the sample knows a seed before its first visit is over */
	int64_t sample_offset;
	uint32_t sample_size;
	_Alignas(64) atomic_ullong next; /* steps of the sequence */

	/* Guarded by mutex, touched only with visits or lookback. */
	_Alignas(64) pthread_mutex_t mutex;
	struct stress_distribution visits;
	struct stress_distribution sample; /* the inverse of "revisit" */
	struct map managing; /* seed -> struct stress_managed */
	struct stress_managed **sampled;
	uint32_t sampled_count;
	int64_t write_count; /* seeds 1..write_count are written */
	int64_t *finished; /* a heap of seeds written beyond it */
	uint32_t finished_count;
	uint32_t finished_capacity;
};

struct stress_seeds *
stress_seeds_new(const struct stress_population *population,
    const struct stress_distribution *visits, const struct stress_distribution *revisit,
    struct error *err)
{
	int64_t low = stress_distribution_min(revisit), high = stress_distribution_max(revisit);
	int64_t offset = low < high ? low : high, size = 1 + (low < high ? high : low) - offset;
	struct stress_seeds *seeds;

	if (offset < 0 || size > INT32_MAX) {
		error_set(err, ERROR_INVALID, "sample range is invalid");
		return NULL;
	}
	if (population->is_sequence && population->first > population->last) {
		error_set(err, ERROR_INVALID, "Invalid sequence: it ends before it begins");
		return NULL;
	}
	if (population->has_lookback &&
	    stress_distribution_max(&population->lookback) > population->last + 1) {
		error_set(err, ERROR_INVALID,
		    "Invalid lookback distribution; max value is %lld, but series only ranges from "
		    "0 to %lld",
		    (long long)stress_distribution_max(&population->lookback),
		    (long long)population->last + 1);
		return NULL;
	}
	seeds = aligned_alloc(64, (sizeof(*seeds) + 63) & ~(size_t)63);
	if (seeds == NULL)
		abort();
	memset(seeds, 0, sizeof(*seeds));
	seeds->population = *population;
	seeds->visits = *visits;
	seeds->sample = *revisit;
	seeds->sample.is_inverted = !revisit->is_inverted;
	seeds->sample_offset = offset;
	seeds->sample_size = (uint32_t)size;
	seeds->counts_visits = stress_distribution_max(visits) > 1;
	seeds->updates_sample = stress_distribution_average(visits) > 1;
	pthread_mutex_init(&seeds->mutex, NULL);
	map_init(&seeds->managing);
	return seeds;
}

void
stress_seeds_free(struct stress_seeds *seeds)
{
	struct slice key;
	size_t cursor = 0;
	void *managed;

	if (seeds == NULL)
		return;
	while (map_next(&seeds->managing, &cursor, &key, &managed))
		free(managed);
	map_fini(&seeds->managing);
	pthread_mutex_destroy(&seeds->mutex);
	free(seeds->sampled);
	free(seeds->finished);
	free(seeds);
}

static bool
stress_seeds_take(struct stress_seeds *seeds, struct stress_distribution *population, int64_t *out)
{
	const struct stress_population *plan = &seeds->population;
	uint64_t step, count;

	if (!plan->is_sequence) {
		*out = stress_distribution_next(population);
		return true;
	}
	count = (uint64_t)(plan->last - plan->first) + 1;
	step = atomic_fetch_add_explicit(&seeds->next, 1, memory_order_relaxed);
	if (!plan->wraps && step >= count)
		return false;
	*out = plan->first + (int64_t)(step % count);
	return true;
}

static bool
stress_seeds_look_back(struct stress_seeds *seeds, int64_t *out)
{
	const struct stress_population *plan = &seeds->population;
	int64_t count = plan->last - plan->first + 1, back, range;

	pthread_mutex_lock(&seeds->mutex);
	back = stress_distribution_next(&seeds->population.lookback);
	range = seeds->write_count;
	pthread_mutex_unlock(&seeds->mutex);
	if (range - back >= 0) {
		*out = plan->first + range - back;
		return true;
	}
	if (range == count && !plan->wraps)
		return false;
	*out = plan->first + (range == 0 ? 0 : back % range);
	return true;
}

static struct slice
stress_seeds_key(const int64_t *seed)
{
	return slice_of(seed, sizeof(*seed));
}

/* Caller holds the mutex. False: the sample is full. */
static bool
stress_seeds_save_locked(
    struct stress_seeds *seeds, struct stress_managed *managed, bool is_bounded)
{
	if (is_bounded && seeds->sampled_count >= seeds->sample_size)
		return false;
	seeds->sampled =
	    xrealloc(seeds->sampled, (seeds->sampled_count + 1) * sizeof(*seeds->sampled));
	managed->slot = (int32_t)seeds->sampled_count;
	seeds->sampled[seeds->sampled_count++] = managed;
	return true;
}

/* A seed to write, where visits are counted: one visited before, or a new one. */
static bool
stress_seeds_next_managed(
    struct stress_seeds *seeds, struct stress_distribution *population, struct stress_seed *out)
{
	struct stress_managed *managed;
	int64_t index, seed;

	pthread_mutex_lock(&seeds->mutex);
	for (;;) {
		index = stress_distribution_next(&seeds->sample) - seeds->sample_offset;
		if (index >= 0 && index < seeds->sampled_count) {
			managed = seeds->sampled[index];
			break;
		}
		if (!stress_seeds_take(seeds, population, &seed)) {
			pthread_mutex_unlock(&seeds->mutex);
			return false;
		}
		if (map_get(&seeds->managing, stress_seeds_key(&seed)) != NULL)
			continue;
		managed = xzalloc(sizeof(*managed));
		managed->seed = seed;
		managed->visits = (int32_t)stress_distribution_next(&seeds->visits);
		managed->slot = -1;
		if (seeds->updates_sample && !stress_seeds_save_locked(seeds, managed, true)) {
			free(managed);
			continue;
		}
		map_put(&seeds->managing, stress_seeds_key(&managed->seed), managed);
		break;
	}
	managed->holders++;
	*out = (struct stress_seed){managed->seed, managed->visits, managed};
	pthread_mutex_unlock(&seeds->mutex);
	return true;
}

bool
stress_seeds_next(struct stress_seeds *seeds, struct stress_distribution *population, bool is_write,
    struct stress_seed *out)
{
	*out = (struct stress_seed){.visits = is_write ? 1 : -1};
	if (is_write && seeds->counts_visits)
		return stress_seeds_next_managed(seeds, population, out);
	if (!is_write && seeds->population.has_lookback)
		return stress_seeds_look_back(seeds, &out->seed);
	return stress_seeds_take(seeds, population, &out->seed);
}

int32_t
stress_seeds_move(struct stress_seeds *seeds, struct stress_seed *seed, int32_t rows)
{
	struct stress_managed *managed = seed->managed;
	int32_t before = 0;

	if (managed == NULL)
		return 0;
	pthread_mutex_lock(&seeds->mutex);
	before = managed->position;
	managed->position += rows;
	pthread_mutex_unlock(&seeds->mutex);
	return before;
}

int32_t
stress_seeds_position(struct stress_seeds *seeds, const struct stress_seed *seed)
{
	struct stress_seed copy = *seed;

	return stress_seeds_move(seeds, &copy, 0);
}

static void
stress_seeds_push_finished_locked(struct stress_seeds *seeds, int64_t seed)
{
	uint32_t at = seeds->finished_count++;

	if (at == seeds->finished_capacity) {
		seeds->finished_capacity = at == 0 ? 64 : at * 2;
		seeds->finished =
		    xrealloc(seeds->finished, seeds->finished_capacity * sizeof(int64_t));
	}
	while (at > 0 && seeds->finished[(at - 1) / 2] > seed) {
		seeds->finished[at] = seeds->finished[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	seeds->finished[at] = seed;
}

static void
stress_seeds_pop_finished_locked(struct stress_seeds *seeds)
{
	int64_t last = seeds->finished[--seeds->finished_count];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < seeds->finished_count) {
		if (child + 1 < seeds->finished_count &&
		    seeds->finished[child + 1] < seeds->finished[child])
			child++;
		if (seeds->finished[child] >= last)
			break;
		seeds->finished[at] = seeds->finished[child];
		at = child;
	}
	seeds->finished[at] = last;
}

static void
stress_seeds_finish_write_locked(struct stress_seeds *seeds, int64_t seed)
{
	if (seed <= seeds->write_count)
		return;
	stress_seeds_push_finished_locked(seeds, seed);
	while (seeds->finished_count > 0 && seeds->finished[0] <= seeds->write_count + 1) {
		if (seeds->finished[0] == seeds->write_count + 1)
			seeds->write_count++;
		stress_seeds_pop_finished_locked(seeds);
	}
}

static void
stress_seeds_forget_locked(struct stress_seeds *seeds, struct stress_managed *managed)
{
	if (managed->is_done)
		return;
	managed->is_done = true;
	map_remove(&seeds->managing, stress_seeds_key(&managed->seed));
	if (managed->slot < 0)
		return;
	/* The last takes the place: which place a seed has decides only who is drawn when. */
	seeds->sampled[managed->slot] = seeds->sampled[--seeds->sampled_count];
	seeds->sampled[managed->slot]->slot = managed->slot;
	managed->slot = -1;
}

void
stress_seeds_mark(
    struct stress_seeds *seeds, const struct stress_seed *seed, bool is_first, bool is_last)
{
	struct stress_managed *managed = seed->managed;

	if (managed == NULL && !seeds->population.has_lookback)
		return;
	pthread_mutex_lock(&seeds->mutex);
	if (is_first && seeds->population.has_lookback)
		stress_seeds_finish_write_locked(seeds, seed->seed);
	if (managed != NULL) {
		if (is_first && !is_last && managed->slot < 0 && !managed->is_done)
			stress_seeds_save_locked(seeds, managed, false);
		if (is_last)
			stress_seeds_forget_locked(seeds, managed);
	}
	pthread_mutex_unlock(&seeds->mutex);
}

void
stress_seeds_release(struct stress_seeds *seeds, struct stress_seed *seed)
{
	struct stress_managed *managed = seed->managed;

	if (managed == NULL)
		return;
	seed->managed = NULL;
	pthread_mutex_lock(&seeds->mutex);
	if (--managed->holders == 0 && managed->is_done)
		free(managed);
	pthread_mutex_unlock(&seeds->mutex);
}
