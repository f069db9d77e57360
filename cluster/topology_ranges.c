/* SPDX-License-Identifier: Apache-2.0 */

/* Ranges by node, and how much of the ring and of the data each node has. */
#include <stdlib.h>
#include "base/alloc.h"
#include "cluster/topology_internal.h"

uint32_t
replication_range_count(const struct replication *replication)
{
	return replication->count;
}

const struct replica_set *
replication_range(const struct replication *replication, uint32_t index, struct ring_range *range)
{
	uint32_t previous = index == 0 ? replication->count - 1 : index - 1;

	if (range != NULL)
		*range =
		    (struct ring_range){replication->bounds[previous], replication->bounds[index]};
	return &replication->sets[index];
}

uint32_t
replication_range_index(const struct replication *replication, int64_t token)
{
	return topology_bound_index(replication->bounds, replication->count, token);
}

/* Which of a range's replicas are meant. */
enum range_role { RANGE_NATURAL, RANGE_PRIMARY, RANGE_PENDING };

static bool
replica_set_has(const struct replica_set *set, const struct peer *peer, enum range_role role)
{
	uint32_t first = role == RANGE_PENDING ? set->count : 0;
	uint32_t end = role == RANGE_PENDING ? set->count + set->pending_count : set->count;

	if (role == RANGE_PRIMARY && end > 1)
		end = 1;
	for (uint32_t i = first; i < end; i++) {
		if (set->peers[i] == peer)
			return true;
	}
	return false;
}

/*
 * In token order from the start of the ring: the part of range 0 up to its token first, the part behind the last token at the end.
 * Neighbours are not joined: repair and streaming work range by range.
 */
static uint32_t
replication_collect(const struct replication *replication, const struct peer *peer,
    enum range_role role, struct ring_range **out)
{
	uint32_t total = replication->count, count = 0;
	struct ring_range *ranges = xcalloc(total + 2, sizeof(*ranges));

	for (uint32_t i = 0; i < total; i++) {
		struct ring_range range;

		if (!replica_set_has(replication_range(replication, i, &range), peer, role))
			continue;
		if (i == 0)
			range.left = INT64_MIN;
		/* Token INT64_MIN belongs to no key: a range that ends there is empty, and as a
		 * right end it would mean the end of the ring. */
		if (range.right == INT64_MIN)
			continue;
		ranges[count++] = range;
	}
	if (total > 0 && replica_set_has(&replication->sets[0], peer, role) &&
	    replication->bounds[total - 1] != INT64_MAX)
		ranges[count++] = (struct ring_range){replication->bounds[total - 1], INT64_MIN};
	*out = ranges;
	return count;
}

uint32_t
replication_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out)
{
	return replication_collect(replication, peer, RANGE_NATURAL, out);
}

uint32_t
replication_primary_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out)
{
	return replication_collect(replication, peer, RANGE_PRIMARY, out);
}

uint32_t
replication_pending_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out)
{
	return replication_collect(replication, peer, RANGE_PENDING, out);
}

uint32_t
topology_local_primary_ranges(const struct topology *topology, struct ring_range **out)
{
	uint32_t total = topology_token_count(topology), used = 0, count = 0;
	const char *local = topology_local_datacenter(topology);
	struct ring_range *ranges = xcalloc((size_t)total + 2, sizeof(*ranges));
	uint32_t *ours = xcalloc((size_t)total + 1, sizeof(*ours));
	const struct member *owner;

	/* Equal names are equal pointers. */
	for (uint32_t i = 0; i < total; i++) {
		(void)topology_token(topology, i, &owner);
		if (owner->datacenter == local)
			ours[used++] = i;
	}
	for (uint32_t i = 0; i <= used && used > 0; i++) {
		int64_t left = i == 0 ? INT64_MIN : topology_token(topology, ours[i - 1], NULL);
		int64_t right = topology_token(topology, ours[i % used], &owner);

		/* What lies behind the last token belongs to the first one. */
		if (i == used)
			right = INT64_MIN;
		if (owner->peer->is_local && left != INT64_MAX && (i == used || right != INT64_MIN))
			ranges[count++] = (struct ring_range){left, right};
	}
	free(ours);
	*out = ranges;
	return count;
}

/* Share of the ring in (left, right]; all of it where they are equal. */
static double
ring_range_share(int64_t left, int64_t right)
{
	uint64_t size = (uint64_t)right - (uint64_t)left;

	return size == 0 ? 1.0 : (double)size / 18446744073709551616.0;
}

void
topology_ownership(const struct topology *topology, double *out)
{
	for (uint32_t i = 0; i < topology->member_count; i++)
		out[i] = 0;
	for (uint32_t i = 0; i < topology->token_count; i++) {
		uint32_t previous = i == 0 ? topology->token_count - 1 : i - 1;

		out[topology->owners[i]] +=
		    ring_range_share(topology->tokens[previous], topology->tokens[i]);
	}
}

void
replication_ownership(const struct replication *replication, double *out)
{
	const struct topology *topology = replication->topology;

	for (uint32_t i = 0; i < topology->member_count; i++)
		out[i] = 0;
	for (uint32_t i = 0; i < replication->count; i++) {
		struct ring_range range;
		const struct replica_set *set = replication_range(replication, i, &range);

		for (uint32_t n = 0; n < set->count; n++) {
			const struct member *member = topology_find(topology, set->peers[n]);

			/* LocalStrategy on a node that is not yet a member. */
			if (member != NULL)
				out[member - topology->members] +=
				    ring_range_share(range.left, range.right);
		}
	}
}
