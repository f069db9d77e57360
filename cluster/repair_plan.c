/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/repair_internal.h"

/* Which ranges are repaired, and with whom (RepairRunnable.getNeighborsAndRanges, ActiveRepairService.getNeighbors). */

struct repair_planner {
	const struct topology *topology;
	const struct repair_options *options;
	struct peer *local;
	struct repair_plan *plan;
};

static bool
repair_is_wanted_peer(const struct repair_planner *planner, const struct peer *peer)
{
	const struct repair_options *options = planner->options;
	const char *datacenter = topology_datacenter(planner->topology, peer);
	bool is_wanted = options->datacenter_count == 0 && options->host_count == 0;

	if (peer->is_local)
		return true;
	for (uint32_t i = 0; i < options->datacenter_count; i++)
		is_wanted |= datacenter != NULL && strcmp(datacenter, options->datacenters[i]) == 0;
	/* Hosts narrow what data centers left. */
	if (options->host_count > 0) {
		is_wanted = false;
		for (uint32_t i = 0; i < options->host_count; i++)
			is_wanted |= endpoint_equal(&options->hosts[i], &peer->endpoint);
	}
	return is_wanted;
}

static bool
repair_has_peer(struct peer *const *peers, uint32_t count, const struct peer *peer)
{
	for (uint32_t i = 0; i < count; i++)
		if (peers[i] == peer)
			return true;
	return false;
}

/* The replicas of a set that take part: this node first, the others in the order of their addresses. */
static int
repair_choose(const struct repair_planner *planner, const struct replica_set *set,
    struct peer **out, uint32_t *count, bool *has_skipped, struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE];

	*count = 0;
	*has_skipped = false;
	out[(*count)++] = planner->local;
	for (uint32_t i = 0; i < set->count; i++) {
		struct peer *peer = set->peers[i];
		uint32_t at = *count;

		if (peer->is_local || !repair_is_wanted_peer(planner, peer))
			continue;
		if (!repair_is_alive(peer)) {
			if (!planner->options->is_forced)
				return error_set(err, ERROR_UNAVAILABLE,
				    "Cannot proceed on repair because a neighbor (/%s) is dead: "
				    "session failed",
				    endpoint_format(&peer->endpoint, address));
			*has_skipped = true;
			continue;
		}
		for (; at > 1 && endpoint_compare(&out[at - 1]->endpoint, &peer->endpoint) > 0;
		     at--)
			out[at] = out[at - 1];
		out[at] = peer;
		(*count)++;
	}
	return 0;
}

static void
repair_plan_add(struct repair_planner *planner, struct peer *const *peers, uint32_t count,
    bool has_skipped, struct ring_range range)
{
	struct repair_plan *plan = planner->plan;
	struct repair_common *common = NULL;

	for (uint32_t i = 0; i < plan->common_count && common == NULL; i++)
		if (plan->commons[i].peer_count == count &&
		    plan->commons[i].has_skipped == has_skipped &&
		    memcmp(plan->commons[i].peers, peers, count * sizeof(*peers)) == 0)
			common = &plan->commons[i];
	if (common == NULL) {
		plan->commons =
		    xrealloc(plan->commons, (plan->common_count + 1) * sizeof(*plan->commons));
		common = &plan->commons[plan->common_count++];
		*common = (struct repair_common){.peer_count = count, .has_skipped = has_skipped};
		common->peers = xcalloc(count, sizeof(struct peer *));
		memcpy(common->peers, peers, count * sizeof(struct peer *));
	}
	common->ranges =
	    xrealloc(common->ranges, (common->range_count + 1) * sizeof(*common->ranges));
	common->ranges[common->range_count++] = range;
	plan->range_count++;
	for (uint32_t i = 0; i < count; i++) {
		if (repair_has_peer(plan->peers, plan->peer_count, peers[i]))
			continue;
		plan->peers = xrealloc(plan->peers, (plan->peer_count + 1) * sizeof(struct peer *));
		plan->peers[plan->peer_count++] = peers[i];
	}
}

/* Does the set's first replica, of those that -pr is about, stand for the range? */
static bool
repair_is_primary(const struct repair_planner *planner, const struct replica_set *set)
{
	const char *local = topology_local_datacenter(planner->topology);

	if (planner->options->datacenter_count == 0)
		return set->count > 0 && set->peers[0] == planner->local;
	for (uint32_t i = 0; i < set->count; i++)
		if (set->datacenters[i] != NULL && strcmp(set->datacenters[i], local) == 0)
			return set->peers[i] == planner->local;
	return false;
}

/* Tokens of (left, right] on a line that begins behind `from`: the end of a range that wraps is never before its begin. */
static uint64_t
repair_distance(int64_t from, int64_t to)
{
	return (uint64_t)to - (uint64_t)from;
}

/* 1: inside, 0: apart, -1: partly. Equal ends are the whole ring. */
static int
repair_lies_in(struct ring_range inner, struct ring_range outer)
{
	uint64_t size = repair_distance(outer.left, outer.right);
	uint64_t left = repair_distance(outer.left, inner.left);
	uint64_t length = repair_distance(inner.left, inner.right);

	if (size == 0)
		return 1;
	if (length == 0)
		return -1;
	if (left < size)
		return length <= size - left ? 1 : -1;
	/* It begins outside: does it reach round to the outer one's begin? */
	return length > UINT64_MAX - left + 1 ? -1 : 0;
}

static int
repair_plan_range(struct repair_planner *planner, const struct replica_set *set,
    struct ring_range range, struct error *err)
{
	struct peer **peers = xcalloc((size_t)set->count + 1, sizeof(*peers));
	bool has_skipped;
	uint32_t count;
	int rc = repair_choose(planner, set, peers, &count, &has_skipped, err);

	if (rc == 0 && count > 1) {
		repair_plan_add(planner, peers, count, has_skipped, range);
	} else if (rc == 0 && !planner->options->ignores_unreplicated &&
	    !planner->options->is_forced) {
		rc = error_set(err, ERROR_INVALID,
		    "Nothing to repair for (%" PRId64 ",%" PRId64 "] in %s - aborting", range.left,
		    range.right, planner->options->keyspace);
	}
	free(peers);
	return rc;
}

/* Each range that was asked for lies in one of the ring's that this node has. */
static int
repair_plan_asked(struct repair_planner *planner, const struct replication *replication,
    struct ring_range asked, struct error *err)
{
	const struct repair_options *options = planner->options;

	for (uint32_t i = 0; i < replication_range_count(replication); i++) {
		struct ring_range range;
		const struct replica_set *set = replication_range(replication, i, &range);
		int lies = repair_lies_in(asked, range);

		if (lies == 0 || !repair_has_peer(set->peers, set->count, planner->local))
			continue;
		if (lies < 0)
			return error_set(err, ERROR_INVALID,
			    "Requested range (%" PRId64 ",%" PRId64
			    "] intersects a local range ((%" PRId64 ",%" PRId64
			    "]) but is not fully contained in one; this would lead to imprecise "
			    "repair. keyspace: %s",
			    asked.left, asked.right, range.left, range.right, options->keyspace);
		return repair_plan_range(planner, set, asked, err);
	}
	if (options->ignores_unreplicated)
		return 0;
	return error_set(err, ERROR_INVALID,
	    "Nothing to repair for (%" PRId64 ",%" PRId64 "] in %s - aborting", asked.left,
	    asked.right, options->keyspace);
}

static int
repair_check_hosts(const struct repair_planner *planner, struct error *err)
{
	const struct repair_options *options = planner->options;
	const char *local = topology_local_datacenter(planner->topology);
	bool has_local = options->host_count == 0;

	for (uint32_t i = 0; i < options->host_count; i++)
		has_local |= endpoint_equal(&options->hosts[i], &planner->local->endpoint);
	if (!has_local)
		return error_set(err, ERROR_INVALID, "The current host must be part of the repair");
	has_local = options->datacenter_count == 0;
	for (uint32_t i = 0; i < options->datacenter_count; i++)
		has_local |= strcmp(options->datacenters[i], local) == 0;
	if (!has_local)
		return error_set(err, ERROR_INVALID,
		    "the local data center must be part of the repair; requested "
		    "something else than %s",
		    local);
	return 0;
}

int
repair_plan_make(struct repairs *repairs, const struct topology *topology,
    const struct keyspace_metadata *keyspace, const struct repair_options *options,
    struct repair_plan *out, struct error *err)
{
	struct repair_planner planner = {topology, options, topology_local_peer(topology), out};
	const struct replication *replication = topology_replication(topology, keyspace);
	int rc;

	(void)repairs;
	*out = (struct repair_plan){0};
	rc = repair_check_hosts(&planner, err);
	for (uint32_t i = 0; i < options->range_count && rc == 0; i++)
		rc = repair_plan_asked(&planner, replication, options->ranges[i], err);
	for (uint32_t i = 0;
	     i < replication_range_count(replication) && options->range_count == 0 && rc == 0;
	     i++) {
		struct ring_range range;
		const struct replica_set *set = replication_range(replication, i, &range);

		if (options->is_primary_range
			? repair_is_primary(&planner, set)
			: repair_has_peer(set->peers, set->count, planner.local))
			rc = repair_plan_range(&planner, set, range, err);
	}
	if (rc != 0)
		repair_plan_fini(out);
	return rc;
}

void
repair_plan_fini(struct repair_plan *plan)
{
	for (uint32_t i = 0; i < plan->common_count; i++) {
		free(plan->commons[i].peers);
		free(plan->commons[i].ranges);
	}
	free(plan->commons);
	free(plan->peers);
	*plan = (struct repair_plan){0};
}
