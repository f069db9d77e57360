/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/compaction.h"

/* Defaults of SizeTieredCompactionStrategyOptions, LeveledCompactionStrategy and
 * AbstractCompactionStrategy. */
enum {
	LEVELED_LEVELS = 9,
	LEVELED_L0_STCS_THRESHOLD = 32,
	LEVELED_SSTABLE_MB = 160,
	LEVELED_FANOUT = 10,
	TOMBSTONE_INTERVAL_SECONDS = 86400,
};
#define SIZE_TIERED_BUCKET_LOW 0.5
#define SIZE_TIERED_BUCKET_HIGH 1.5
#define SIZE_TIERED_MIN_SSTABLE_BYTES (UINT64_C(50) << 20)
#define TOMBSTONE_THRESHOLD 0.2

void
compaction_pick_fini(struct compaction_pick *pick)
{
	for (uint32_t i = 0; i < pick->count; i++)
		sstable_unref(pick->sstables[i]);
	free(pick->sstables);
	*pick = (struct compaction_pick){0};
}

static void
compaction_pick_set(struct compaction_pick *pick, struct sstable *const *sstables, uint32_t count)
{
	pick->sstables = xcalloc(count, sizeof(*pick->sstables));
	pick->count = count;
	for (uint32_t i = 0; i < count; i++)
		pick->sstables[i] = sstable_ref(sstables[i]);
}

/* A number among the compaction options, or `otherwise`. They were validated when they were set. */
static double
compaction_option(const struct table_options *options, const char *name, double otherwise)
{
	const struct slice *value = option_map_get(&options->compaction, name);
	char text[32];

	if (value == NULL || value->size >= sizeof(text))
		return otherwise;
	memcpy(text, value->data, value->size);
	text[value->size] = '\0';
	return strtod(text, NULL);
}

static bool
compaction_option_is(
    const struct table_options *options, const char *name, const char *expected, bool otherwise)
{
	const struct slice *value = option_map_get(&options->compaction, name);

	return value == NULL ? otherwise : slice_equal_string(*value, expected);
}

/* ---- tombstones ------------------------------------------------------------------------------ */

/*
 * One table that is worth rewriting alone for its droppable tombstones
 * (AbstractCompactionStrategy.worthDroppingTombstones): the ratio is over the threshold and the file is old enough
 * that the last rewrite has had its chance.
 */
static void
compaction_pick_tombstones(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, int64_t now_seconds, struct compaction_pick *out)
{
	double threshold = compaction_option(options, "tombstone_threshold", TOMBSTONE_THRESHOLD);
	double interval =
	    compaction_option(options, "tombstone_compaction_interval", TOMBSTONE_INTERVAL_SECONDS);
	int64_t gc_before = now_seconds - options->gc_grace_seconds;
	struct sstable *best = NULL;
	double best_ratio = threshold;

	if (compaction_option(options, "tombstone_compaction_interval", 1) < 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		double ratio;

		if ((double)(now_seconds - (int64_t)(sstable_created_ms(candidates[i]) / 1000)) <
		    interval)
			continue;
		ratio = sstable_droppable_ratio(candidates[i], gc_before);
		if (ratio > best_ratio) {
			best_ratio = ratio;
			best = candidates[i];
		}
	}
	if (best != NULL) {
		compaction_pick_set(out, &best, 1);
		out->level = sstable_level(best);
	}
}

/* ---- size-tiered -------------------------------------------------------------------------------- */

static int
compaction_by_size(const void *a, const void *b)
{
	uint64_t left = sstable_data_size(*(struct sstable *const *)a);
	uint64_t right = sstable_data_size(*(struct sstable *const *)b);

	return left < right ? -1 : left > right;
}

/*
 * The bucket to compact: tables of similar size (within low..high of the bucket's average, or all below
 * min_sstable_size together), at least min_threshold of them; among several buckets the one with the
 * smallest tables, which reads feel most and which is cheapest. Cassandra prefers the hottest one where it
 * knows read rates.
 */
static bool
compaction_find_bucket(const struct table_options *options, struct sstable **sorted, uint32_t count,
    uint32_t *first, uint32_t *length, uint32_t *buckets)
{
	double low = compaction_option(options, "bucket_low", SIZE_TIERED_BUCKET_LOW);
	double high = compaction_option(options, "bucket_high", SIZE_TIERED_BUCKET_HIGH);
	double least =
	    compaction_option(options, "min_sstable_size", (double)SIZE_TIERED_MIN_SSTABLE_BYTES);
	uint32_t min = (uint32_t)options->min_threshold;
	uint32_t max = (uint32_t)options->max_threshold;
	uint32_t begin = 0;
	bool found = false;

	*buckets = 0;
	while (begin < count) {
		double sum = (double)sstable_data_size(sorted[begin]);
		uint32_t end = begin + 1;

		for (; end < count; end++) {
			double size = (double)sstable_data_size(sorted[end]);
			double average = sum / (end - begin);

			if (!(size > average * low && size < average * high) &&
			    !(size < least && average < least))
				break;
			sum += size;
		}
		if (end - begin >= min) {
			if (!found) {
				*first = begin;
				*length = end - begin < max ? end - begin : max;
				found = true;
			}
			*buckets += (end - begin + max - 1) / max;
		}
		begin = end;
	}
	return found;
}

void
compaction_pick_size_tiered(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, int64_t now_seconds, struct compaction_pick *out)
{
	struct sstable **sorted = xcalloc(count + 1, sizeof(*sorted));
	uint32_t first, length, buckets;

	*out = (struct compaction_pick){0};
	memcpy(sorted, candidates, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compaction_by_size);
	if (compaction_find_bucket(options, sorted, count, &first, &length, &buckets))
		compaction_pick_set(out, sorted + first, length);
	else
		compaction_pick_tombstones(options, candidates, count, now_seconds, out);
	free(sorted);
}

/* ---- time windows --------------------------------------------------------------------------------- */

static int64_t
compaction_window_seconds(const struct table_options *options)
{
	const struct slice *unit = option_map_get(&options->compaction, "compaction_window_unit");
	int64_t size = (int64_t)compaction_option(options, "compaction_window_size", 1);

	if (unit != NULL && slice_equal_string(*unit, "MINUTES"))
		return size * 60;
	if (unit != NULL && slice_equal_string(*unit, "HOURS"))
		return size * 3600;
	return size * 86400;
}

/* Start of the window that holds the newest cell of the table, seconds. */
static int64_t
compaction_window_of(const struct table_options *options, struct sstable *sstable)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);
	const struct slice *resolution =
	    option_map_get(&options->compaction, "timestamp_resolution");
	int64_t window = compaction_window_seconds(options), seconds;

	if (stats == NULL)
		return 0;
	if (resolution != NULL && slice_equal_string(*resolution, "MILLISECONDS"))
		seconds = stats->max_timestamp / 1000;
	else if (resolution != NULL && slice_equal_string(*resolution, "SECONDS"))
		seconds = stats->max_timestamp;
	else
		seconds = stats->max_timestamp / 1000000;
	return seconds - seconds % window;
}

void
compaction_pick_time_window(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, int64_t now_seconds, struct compaction_pick *out)
{
	struct sstable **inside = xcalloc(count + 1, sizeof(*inside));
	int64_t *windows = xcalloc(count + 1, sizeof(*windows));
	int64_t newest = INT64_MIN;

	*out = (struct compaction_pick){0};
	for (uint32_t i = 0; i < count; i++) {
		windows[i] = compaction_window_of(options, candidates[i]);
		if (windows[i] > newest)
			newest = windows[i];
	}
	/* The newest window goes by size; an older one is made a single table, newest first. */
	for (int64_t window = newest; count > 0 && out->count == 0;) {
		int64_t next = INT64_MIN;
		uint32_t found = 0;

		for (uint32_t i = 0; i < count; i++) {
			if (windows[i] == window)
				inside[found++] = candidates[i];
			else if (windows[i] < window && windows[i] > next)
				next = windows[i];
		}
		if (window == newest) {
			uint32_t first, length, buckets;

			qsort(inside, found, sizeof(*inside), compaction_by_size);
			if (compaction_find_bucket(
				options, inside, found, &first, &length, &buckets))
				compaction_pick_set(out, inside + first, length);
		} else if (found >= 2) {
			uint32_t most = (uint32_t)options->max_threshold;

			compaction_pick_set(out, inside, found < most ? found : most);
		}
		if (next == INT64_MIN)
			break;
		window = next;
	}
	if (out->count == 0 &&
	    compaction_option_is(options, "unchecked_tombstone_compaction", "true", false))
		compaction_pick_tombstones(options, candidates, count, now_seconds, out);
	free(inside);
	free(windows);
}

/* ---- leveled ------------------------------------------------------------------------------------- */

static bool
compaction_overlaps(struct sstable *a, int64_t first, int64_t last)
{
	const struct sstable_stats *stats = sstable_stats(a, NULL);

	/* What cannot be read may overlap anything. */
	return stats == NULL || (stats->first_token <= last && stats->last_token >= first);
}

static void
compaction_widen(struct sstable *sstable, int64_t *first, int64_t *last)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);

	if (stats == NULL) {
		*first = INT64_MIN;
		*last = INT64_MAX;
		return;
	}
	if (stats->first_token < *first)
		*first = stats->first_token;
	if (stats->last_token > *last)
		*last = stats->last_token;
}

uint64_t
compaction_leveled_bytes(const struct table_options *options)
{
	return (uint64_t)compaction_option(options, "sstable_size_in_mb", LEVELED_SSTABLE_MB) << 20;
}

/* Bytes that a level may hold (LeveledManifest.maxBytesForLevel). */
static double
compaction_level_bytes_max(const struct table_options *options, int level)
{
	double size = (double)compaction_leveled_bytes(options);

	return level == 0
	    ? 4 * size
	    : size * pow(compaction_option(options, "fanout_size", LEVELED_FANOUT), level);
}

/* Add what of `level` overlaps [first, last]; false when one of those is being compacted already. */
static bool
compaction_add_overlapping(struct sstable *const *candidates, uint32_t count,
    struct sstable *const *compacting, uint32_t compacting_count, int level, int64_t first,
    int64_t last, struct sstable **chosen, uint32_t *chosen_count)
{
	for (uint32_t i = 0; i < compacting_count; i++)
		if (sstable_level(compacting[i]) == level &&
		    compaction_overlaps(compacting[i], first, last))
			return false;
	for (uint32_t i = 0; i < count; i++)
		if (sstable_level(candidates[i]) == level &&
		    compaction_overlaps(candidates[i], first, last))
			chosen[(*chosen_count)++] = candidates[i];
	return true;
}

/* L0 into L1: all of L0 that is there (up to max_threshold, oldest first) and what it overlaps in L1. */
static bool
compaction_pick_level0(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, struct sstable *const *compacting, uint32_t compacting_count,
    struct sstable **chosen, uint32_t *chosen_count)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint32_t most = (uint32_t)options->max_threshold;

	/* A second task from L0 would overlap the first nearly always. */
	for (uint32_t i = 0; i < compacting_count; i++)
		if (sstable_level(compacting[i]) == 0)
			return false;
	/* Candidates come newest first. */
	for (uint32_t i = count; i-- > 0 && *chosen_count < most;) {
		if (sstable_level(candidates[i]) != 0)
			continue;
		chosen[(*chosen_count)++] = candidates[i];
		compaction_widen(candidates[i], &first, &last);
	}
	if (*chosen_count == 0)
		return false;
	return compaction_add_overlapping(
	    candidates, count, compacting, compacting_count, 1, first, last, chosen, chosen_count);
}

/* One table of `level` that can go up, with what it overlaps above. */
static bool
compaction_pick_level(struct sstable *const *candidates, uint32_t count,
    struct sstable *const *compacting, uint32_t compacting_count, int level,
    struct sstable **chosen, uint32_t *chosen_count)
{
	/* Oldest first: files made by the last round wait their turn, so a level is walked round. */
	for (uint32_t i = count; i-- > 0;) {
		int64_t first = INT64_MAX, last = INT64_MIN;

		if (sstable_level(candidates[i]) != level)
			continue;
		*chosen_count = 0;
		chosen[(*chosen_count)++] = candidates[i];
		compaction_widen(candidates[i], &first, &last);
		if (compaction_add_overlapping(candidates, count, compacting, compacting_count,
			level + 1, first, last, chosen, chosen_count))
			return true;
	}
	*chosen_count = 0;
	return false;
}

void
compaction_pick_leveled(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, struct sstable *const *compacting, uint32_t compacting_count,
    int64_t now_seconds, struct compaction_pick *out)
{
	struct sstable **chosen = xcalloc(count + 1, sizeof(*chosen));
	uint64_t bytes[LEVELED_LEVELS] = {0};
	uint32_t tables[LEVELED_LEVELS] = {0}, chosen_count = 0;

	*out = (struct compaction_pick){0};
	for (uint32_t i = 0; i < count; i++) {
		int32_t level = sstable_level(candidates[i]);

		level = level < 0 ? 0 : level >= LEVELED_LEVELS ? LEVELED_LEVELS - 1 : level;
		bytes[level] += sstable_data_size(candidates[i]);
		tables[level]++;
	}
	/*
	 * As LeveledManifest.getCompactionCandidates: the highest level that is over its size first; but
	 * when L0 has piled up, by size first, since reads suffer most from it.
	 */
	if (tables[0] > LEVELED_L0_STCS_THRESHOLD) {
		struct sstable **level0 = xcalloc(tables[0] + 1, sizeof(*level0));
		uint32_t found = 0, first, length, buckets;

		for (uint32_t i = 0; i < count; i++)
			if (sstable_level(candidates[i]) == 0)
				level0[found++] = candidates[i];
		qsort(level0, found, sizeof(*level0), compaction_by_size);
		if (compaction_find_bucket(options, level0, found, &first, &length, &buckets))
			compaction_pick_set(out, level0 + first, length);
		free(level0);
		if (out->count > 0)
			goto done;
	}
	for (int level = LEVELED_LEVELS - 2; level > 0 && out->count == 0; level--) {
		if ((double)bytes[level] <= compaction_level_bytes_max(options, level) * 1.001)
			continue;
		if (compaction_pick_level(candidates, count, compacting, compacting_count, level,
			chosen, &chosen_count)) {
			compaction_pick_set(out, chosen, chosen_count);
			out->level = level + 1;
			out->is_level_move = chosen_count == 1;
		}
	}
	/* One table in L0 is left there until there is a second: it would be rewritten for nothing. */
	if (out->count == 0 && tables[0] > 1 &&
	    compaction_pick_level0(
		options, candidates, count, compacting, compacting_count, chosen, &chosen_count)) {
		compaction_pick_set(out, chosen, chosen_count);
		out->level = 1;
	}
	if (out->count == 0)
		compaction_pick_tombstones(options, candidates, count, now_seconds, out);
	if (out->count > 0)
		out->output_bytes_max = compaction_leveled_bytes(options);
done:
	free(chosen);
}

uint32_t
compaction_estimate_pending(
    const struct table_options *options, struct sstable *const *candidates, uint32_t count)
{
	struct sstable **sorted = xcalloc(count + 1, sizeof(*sorted));
	uint32_t pending = 0, first, length;

	memcpy(sorted, candidates, count * sizeof(*sorted));
	if (options->strategy != COMPACTION_LEVELED) {
		qsort(sorted, count, sizeof(*sorted), compaction_by_size);
		(void)compaction_find_bucket(options, sorted, count, &first, &length, &pending);
	} else {
		for (int level = 0; level < LEVELED_LEVELS; level++) {
			double bytes = 0, over;

			for (uint32_t i = 0; i < count; i++)
				if (sstable_level(candidates[i]) == level)
					bytes += (double)sstable_data_size(candidates[i]);
			over = bytes - compaction_level_bytes_max(options, level);
			if (over > 0)
				pending +=
				    (uint32_t)(over / (double)compaction_leveled_bytes(options)) +
				    1;
		}
	}
	free(sorted);
	return pending;
}
