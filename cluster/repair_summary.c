/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/repair_participant.h"
#include "storage/stream_writer.h"

/*
 * What incremental repairs made of a table here (repair/consistent/RepairedState, PendingStats; nodetool repair_admin): which
 * ranges were repaired last when, and what is pending in sessions.
 */

/* ---- ranges as spans of keys: from the first token to the last one, none of which wraps ------------------- */

struct repair_span {
	uint64_t first, last; /* tokens, moved so that they begin at 0 */
	int64_t repaired_at;
};

struct repair_spans {
	struct repair_span *at; /* owned */
	uint32_t count;
};

static uint64_t
repair_position(int64_t token)
{
	return (uint64_t)token ^ (UINT64_C(1) << 63);
}

static int64_t
repair_token(uint64_t position)
{
	return (int64_t)(position ^ (UINT64_C(1) << 63));
}

static void
repair_spans_add(struct repair_spans *spans, uint64_t first, uint64_t last, int64_t repaired_at)
{
	spans->at = xrealloc(spans->at, (spans->count + 1) * sizeof(*spans->at));
	spans->at[spans->count++] = (struct repair_span){first, last, repaired_at};
}

/* Token INT64_MIN, position 0, is no key's: as a right end it is the end of the ring. */
static void
repair_spans_add_range(struct repair_spans *spans, struct ring_range range, int64_t repaired_at)
{
	uint64_t left = repair_position(range.left), right = repair_position(range.right);

	if (right == 0) {
		if (left < UINT64_MAX)
			repair_spans_add(spans, left + 1, UINT64_MAX, repaired_at);
	} else if (left < right) {
		repair_spans_add(spans, left + 1, right, repaired_at);
	} else {
		if (left < UINT64_MAX)
			repair_spans_add(spans, left + 1, UINT64_MAX, repaired_at);
		repair_spans_add(spans, 1, right, repaired_at);
	}
}

static int
repair_compare_positions(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Where pieces begin of which each lies in or outside of every span; a last one behind all, which may be 0. */
static uint64_t *
repair_cuts(const struct repair_spans *wanted, const struct repair_spans *repaired, uint32_t *count)
{
	const struct repair_spans *both[] = {wanted, repaired};
	uint64_t *cuts = xcalloc(2 * ((size_t)wanted->count + repaired->count) + 1, sizeof(*cuts));
	uint32_t used = 0, kept = 0;

	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < both[i]->count; j++) {
			cuts[used++] = both[i]->at[j].first;
			if (both[i]->at[j].last < UINT64_MAX)
				cuts[used++] = both[i]->at[j].last + 1;
		}
	}
	qsort(cuts, used, sizeof(*cuts), repair_compare_positions);
	for (uint32_t i = 0; i < used; i++)
		if (kept == 0 || cuts[kept - 1] != cuts[i])
			cuts[kept++] = cuts[i];
	*count = kept;
	return cuts;
}

/* The latest time that the piece was repaired at; 0: it was not; -1: it lies in no span. */
static int64_t
repair_latest(const struct repair_spans *spans, uint64_t position)
{
	int64_t latest = -1;

	for (uint32_t i = 0; i < spans->count; i++)
		if (spans->at[i].first <= position && position <= spans->at[i].last &&
		    spans->at[i].repaired_at > latest)
			latest = spans->at[i].repaired_at;
	return latest;
}

static void
repair_spans_of_table_locked(struct repairs *repairs, const struct uuid *table, int64_t after,
    const struct repair_local *but, struct repair_spans *out)
{
	lock_assert_held(&repairs->lock);
	for (const struct repair_local *local = repairs->locals; local != NULL;
	     local = local->next) {
		bool is_of_table = false;

		if (local == but || local->state != REPAIR_FINALIZED || local->repaired_at <= after)
			continue;
		for (uint32_t i = 0; i < local->table_count && !is_of_table; i++)
			is_of_table = uuid_equal(&local->tables[i], table);
		for (uint32_t i = 0; i < local->range_count && is_of_table; i++)
			repair_spans_add_range(out, local->ranges[i], local->repaired_at);
	}
}

/* ---- what was repaired --------------------------------------------------------------------------------------- */

static void
repair_add_section(struct repair_section **sections, uint32_t *count, uint64_t first, uint64_t last,
    int64_t repaired_at)
{
	int64_t left = repair_token(first - 1);
	int64_t right = last == UINT64_MAX ? INT64_MIN : repair_token(last);

	if (*count > 0 && (*sections)[*count - 1].range.right == left &&
	    (*sections)[*count - 1].repaired_at == repaired_at) {
		(*sections)[*count - 1].range.right = right;
		return;
	}
	*sections = xrealloc(*sections, (*count + 1) * sizeof(**sections));
	(*sections)[(*count)++] = (struct repair_section){{left, right}, repaired_at};
}

uint32_t
repairs_repaired(struct repairs *repairs, const struct uuid *table, const struct ring_range *ranges,
    uint32_t range_count, struct repair_section **out)
{
	struct repair_spans wanted = {NULL, 0}, repaired = {NULL, 0};
	uint32_t cut_count, count = 0;
	uint64_t *cuts;

	*out = NULL;
	for (uint32_t i = 0; i < range_count; i++)
		repair_spans_add_range(&wanted, ranges[i], 0);
	lock_take(&repairs->lock);
	repair_spans_of_table_locked(repairs, table, 0, NULL, &repaired);
	lock_drop(&repairs->lock);
	cuts = repair_cuts(&wanted, &repaired, &cut_count);
	/* Nothing at all: no sections, and no times. */
	for (uint32_t i = 0; i < cut_count && repaired.count > 0; i++) {
		uint64_t last = i + 1 < cut_count ? cuts[i + 1] - 1 : UINT64_MAX;
		int64_t latest = repair_latest(&repaired, cuts[i]);

		if (repair_latest(&wanted, cuts[i]) >= 0)
			repair_add_section(out, &count, cuts[i], last, latest > 0 ? latest : 0);
	}
	free(cuts);
	free(wanted.at);
	free(repaired.at);
	return count;
}

/* Are all of the ranges in what was repaired later? */
static bool
repair_is_covered(const struct repair_spans *wanted, const struct repair_spans *later)
{
	uint32_t count;
	uint64_t *cuts = repair_cuts(wanted, later, &count);
	bool is_covered = true;

	for (uint32_t i = 0; i < count && is_covered; i++)
		is_covered =
		    repair_latest(wanted, cuts[i]) < 0 || repair_latest(later, cuts[i]) >= 0;
	free(cuts);
	return is_covered;
}

bool
repair_is_superseded_locked(struct repairs *repairs, const struct repair_local *local)
{
	bool is_superseded = true;

	for (uint32_t i = 0; i < local->table_count && is_superseded; i++) {
		struct repair_spans wanted = {NULL, 0}, later = {NULL, 0};

		for (uint32_t j = 0; j < local->range_count; j++)
			repair_spans_add_range(&wanted, local->ranges[j], 0);
		repair_spans_of_table_locked(
		    repairs, &local->tables[i], local->repaired_at, local, &later);
		is_superseded = repair_is_covered(&wanted, &later);
		free(wanted.at);
		free(later.at);
	}
	return is_superseded;
}

/* ---- what is pending -------------------------------------------------------------------------------------------- */

bool
repair_local_has_range(
    const struct repair_local *local, const struct ring_range *ranges, uint32_t range_count)
{
	struct repair_spans wanted = {NULL, 0}, own = {NULL, 0};
	bool has = false;

	for (uint32_t i = 0; i < range_count; i++)
		repair_spans_add_range(&wanted, ranges[i], 0);
	for (uint32_t i = 0; i < local->range_count; i++)
		repair_spans_add_range(&own, local->ranges[i], 0);
	for (uint32_t i = 0; i < wanted.count && !has; i++)
		for (uint32_t j = 0; j < own.count && !has; j++)
			has = wanted.at[i].first <= own.at[j].last &&
			    own.at[j].first <= wanted.at[i].last;
	free(wanted.at);
	free(own.at);
	return has;
}

/* Of one session in one table. */
struct repair_held {
	struct uuid session;
	uint64_t bytes, sstables;
};

struct repair_holdings {
	struct repair_held *at; /* owned */
	uint32_t count;
};

static void
repair_hold(void *context, const struct uuid *session, uint64_t bytes)
{
	struct repair_holdings *holdings = context;
	struct repair_held *held = NULL;

	for (uint32_t i = 0; i < holdings->count && held == NULL; i++)
		if (uuid_equal(&holdings->at[i].session, session))
			held = &holdings->at[i];
	if (held == NULL) {
		holdings->at =
		    xrealloc(holdings->at, (holdings->count + 1) * sizeof(*holdings->at));
		held = &holdings->at[holdings->count++];
		*held = (struct repair_held){.session = *session};
	}
	held->bytes += bytes;
	held->sstables++;
}

/* Has it to do with the ranges? One that nobody knows of may have. */
static bool
repair_held_is_wanted(
    const struct repair_local *local, const struct ring_range *ranges, uint32_t range_count)
{
	return local == NULL || repair_local_has_range(local, ranges, range_count);
}

void
repairs_pending(struct repairs *repairs, struct table_store *table, const struct ring_range *ranges,
    uint32_t range_count, struct repair_pending_stats *out)
{
	struct repair_holdings holdings = {NULL, 0};

	memset(out, 0, sizeof(*out));
	store_pending_repairs(table, repair_hold, &holdings);
	for (uint32_t i = 0; i < holdings.count; i++) {
		struct repair_local *local = repair_local_get(repairs, &holdings.at[i].session);
		struct repair_pending_stat *stat = &out->pending;

		/* Nobody knows of it: it counts as one that failed. */
		if (local == NULL || local->state == REPAIR_HAS_FAILED)
			stat = &out->failed;
		else if (local->state == REPAIR_FINALIZED)
			stat = &out->finalized;
		if (repair_held_is_wanted(local, ranges, range_count)) {
			stat->bytes += holdings.at[i].bytes;
			stat->sstables += holdings.at[i].sstables;
			stat->sessions++;
		}
		repair_local_free(local);
	}
	free(holdings.at);
}

void
repairs_cleanup(struct repairs *repairs, struct table_store *table, const struct ring_range *ranges,
    uint32_t range_count, uint32_t *successful, uint32_t *unsuccessful)
{
	struct repair_holdings holdings = {NULL, 0};
	struct error err;

	*successful = *unsuccessful = 0;
	store_pending_repairs(table, repair_hold, &holdings);
	for (uint32_t i = 0; i < holdings.count; i++) {
		const struct uuid *id = &holdings.at[i].session;
		struct repair_local *local = repair_local_get(repairs, id);

		if (repair_held_is_wanted(local, ranges, range_count) &&
		    (local == NULL || repair_state_is_over(local->state))) {
			if (repair_release(repairs, table, id, local, &err) == 0)
				(*successful)++;
			else
				(*unsuccessful)++;
		}
		repair_local_free(local);
	}
	free(holdings.at);
}
