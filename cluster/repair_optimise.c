/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/repair_internal.h"

/*
 * Optimised streams (repair/asymmetric/ReduceHelper): replicas that have the same of a range are one source. A replica fetches from one
 * of each other source, instead of exchanging with every replica that differs from it.
 *
 *   A and B are equal, C is not      C fetches from A or B, A and B each from C: three transfers instead of four
 */

/* Offsets in a tree's range, from its left end: (left, right] is first = left, last = right - 1. */
struct repair_piece {
	uint64_t first, last;
};

struct repair_pair {
	struct repair_piece *pieces; /* owned; where the two differ, ascending */
	uint32_t count;
	uint32_t at; /* the first that may still matter */
};

struct repair_reduction {
	struct repair_job *job;
	uint32_t peers;
	const char **datacenters; /* owned; of the topology that is held */
	struct repair_pair *pairs; /* owned; [a * peers + b], a < b */
	struct repair_fetch *fetches; /* owned; [to * peers + from] */
	uint64_t *loads; /* owned; ranges that each sends */
};

static struct repair_pair *
repair_pair_of(const struct repair_reduction *reduction, uint32_t a, uint32_t b)
{
	return a < b ? &reduction->pairs[a * reduction->peers + b]
		     : &reduction->pairs[b * reduction->peers + a];
}

static int
repair_pair_compare(struct repair_reduction *reduction, struct merkle_tree *const *trees,
    uint32_t stride, uint32_t a, uint32_t b, struct error *err)
{
	struct repair_pair *pair = repair_pair_of(reduction, a, b);
	struct merkle_range *found = NULL;
	int64_t left = merkle_tree_range(trees[0]).left;

	free(pair->pieces);
	*pair = (struct repair_pair){NULL, 0, 0};
	if (merkle_tree_difference(
		trees[a * stride], trees[b * stride], &found, &pair->count, err) != 0)
		return -1;
	pair->pieces = xcalloc((size_t)pair->count + 1, sizeof(*pair->pieces));
	for (uint32_t i = 0; i < pair->count; i++)
		pair->pieces[i] = (struct repair_piece){(uint64_t)found[i].left - (uint64_t)left,
		    (uint64_t)found[i].right - (uint64_t)left - 1};
	free(found);
	return 0;
}

static int
repair_compare_offsets(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Where pieces begin, of which each lies wholly in or out of what any pair differs in. */
static uint64_t *
repair_reduction_cuts(const struct repair_reduction *reduction, uint32_t *count)
{
	uint32_t pairs = reduction->peers * reduction->peers, used = 0, kept = 0;
	size_t total = 0;
	uint64_t *cuts;

	for (uint32_t i = 0; i < pairs; i++)
		total += 2 * (size_t)reduction->pairs[i].count;
	cuts = xcalloc(total + 1, sizeof(*cuts));
	for (uint32_t i = 0; i < pairs; i++) {
		for (uint32_t j = 0; j < reduction->pairs[i].count; j++) {
			const struct repair_piece *piece = &reduction->pairs[i].pieces[j];

			cuts[used++] = piece->first;
			if (piece->last < UINT64_MAX)
				cuts[used++] = piece->last + 1;
		}
	}
	qsort(cuts, used, sizeof(*cuts), repair_compare_offsets);
	for (uint32_t i = 0; i < used; i++)
		if (kept == 0 || cuts[kept - 1] != cuts[i])
			cuts[kept++] = cuts[i];
	*count = kept;
	return cuts;
}

/* Offsets ascend from call to call. */
static bool
repair_pair_differs(struct repair_pair *pair, uint64_t offset)
{
	while (pair->at < pair->count && pair->pieces[pair->at].last < offset)
		pair->at++;
	return pair->at < pair->count && pair->pieces[pair->at].first <= offset;
}

/* The first replica that has the same as each. */
static void
repair_reduction_group(struct repair_reduction *reduction, uint64_t offset, uint32_t *groups)
{
	for (uint32_t i = 0; i < reduction->peers; i++) {
		groups[i] = i;
		for (uint32_t j = 0; j < i; j++) {
			if (groups[j] != j ||
			    repair_pair_differs(repair_pair_of(reduction, j, i), offset))
				continue;
			groups[i] = j;
			break;
		}
	}
}

/* Of those that have the same: of the same data center, and the one that has least to send. */
static uint32_t
repair_reduction_source(
    const struct repair_reduction *reduction, const uint32_t *groups, uint32_t group, uint32_t to)
{
	uint32_t best = group;

	for (uint32_t i = group; i < reduction->peers; i++) {
		bool is_near = reduction->datacenters[i] == reduction->datacenters[to];
		bool is_best_near = reduction->datacenters[best] == reduction->datacenters[to];

		if (groups[i] == group &&
		    (is_near != is_best_near ? is_near
					     : reduction->loads[i] < reduction->loads[best]))
			best = i;
	}
	return best;
}

static void
repair_fetch_add(struct repair_fetch *fetch, struct ring_range range)
{
	if (fetch->count > 0 && fetch->ranges[fetch->count - 1].right == range.left) {
		fetch->ranges[fetch->count - 1].right = range.right;
		return;
	}
	fetch->ranges = xrealloc(fetch->ranges, (fetch->count + 1) * sizeof(*fetch->ranges));
	fetch->ranges[fetch->count++] = range;
}

static void
repair_reduction_add(
    struct repair_reduction *reduction, const uint32_t *groups, struct ring_range range)
{
	for (uint32_t to = 0; to < reduction->peers; to++) {
		for (uint32_t group = 0; group < reduction->peers; group++) {
			uint32_t from;

			if (groups[group] != group || groups[to] == group)
				continue;
			from = repair_reduction_source(reduction, groups, group, to);
			reduction->loads[from]++;
			repair_fetch_add(&reduction->fetches[to * reduction->peers + from], range);
		}
	}
}

/* One range of the session: trees[0], trees[stride], ... are the replicas' trees of it. */
static int
repair_reduction_run(struct repair_reduction *reduction, struct merkle_tree *const *trees,
    uint32_t stride, uint32_t *groups, struct error *err)
{
	struct merkle_range whole = merkle_tree_range(trees[0]);
	uint64_t end = (uint64_t)whole.right - (uint64_t)whole.left - 1, *cuts;
	uint32_t count;

	for (uint32_t a = 0; a < reduction->peers; a++)
		for (uint32_t b = a + 1; b < reduction->peers; b++)
			if (repair_pair_compare(reduction, trees, stride, a, b, err) != 0)
				return -1;
	cuts = repair_reduction_cuts(reduction, &count);
	for (uint32_t i = 0; i < count && cuts[i] <= end; i++) {
		uint64_t last = i + 1 < count ? cuts[i + 1] - 1 : end;
		struct ring_range range = {(int64_t)((uint64_t)whole.left + cuts[i]),
		    (int64_t)((uint64_t)whole.left + last + 1)};

		repair_reduction_group(reduction, cuts[i], groups);
		repair_reduction_add(reduction, groups, range);
	}
	free(cuts);
	return 0;
}

int
repair_job_reduce(struct repair_job *job, struct repair_fetch **out, struct error *err)
{
	const struct repair_common *common = job->session->common;
	struct repairs *repairs = job->session->command->repairs;
	uint32_t peers = common->peer_count;
	const struct topology *topology = topology_acquire(repairs->topology);
	struct repair_reduction reduction = {.job = job,
	    .peers = peers,
	    .datacenters = xcalloc((size_t)peers + 1, sizeof(char *)),
	    .pairs = xcalloc((size_t)peers * peers + 1, sizeof(struct repair_pair)),
	    .fetches = xcalloc((size_t)peers * peers + 1, sizeof(struct repair_fetch)),
	    .loads = xcalloc((size_t)peers + 1, sizeof(uint64_t))};
	uint32_t *groups = xcalloc((size_t)peers + 1, sizeof(*groups));
	int rc = 0;

	for (uint32_t i = 0; i < peers; i++)
		reduction.datacenters[i] = topology_datacenter(topology, common->peers[i]);
	for (uint32_t i = 0; i < common->range_count && rc == 0; i++)
		rc = repair_reduction_run(
		    &reduction, &job->trees[i], common->range_count, groups, err);
	topology_release(repairs->topology, topology);
	for (uint32_t i = 0; i < peers * peers; i++)
		free(reduction.pairs[i].pieces);
	free(reduction.pairs);
	free(reduction.datacenters);
	free(reduction.loads);
	free(groups);
	if (rc == 0) {
		*out = reduction.fetches;
		return 0;
	}
	repair_fetches_free(reduction.fetches, peers);
	return -1;
}

void
repair_fetches_free(struct repair_fetch *fetches, uint32_t peers)
{
	for (uint32_t i = 0; fetches != NULL && i < peers * peers; i++)
		free(fetches[i].ranges);
	free(fetches);
}
