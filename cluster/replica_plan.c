/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/replica_plan.h"
#include <stdio.h>
#include <string.h>
#include "base/hash.h"

/* ---- Common parts -------------------------------------------------------------------------- */

static bool
plan_is_each_quorum(const struct replica_plan *plan)
{
	return plan->level == CONSISTENCY_EACH_QUORUM &&
	    replication_class(plan->replication) == REPLICATION_NETWORK_TOPOLOGY;
}

static int
plan_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a replica plan");
}

static int
plan_init(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, enum consistency level, uint32_t replica_max,
    struct arena *arena, struct error *err)
{
	plan->topology = topology;
	plan->replication = replication;
	plan->level = level;
	plan->block_for = replication_block_for(replication, level);
	plan->quorum_count = 0;
	plan->quorums = plan->inline_quorums;
	plan->count = plan->contact_count = plan->pending_count = plan->live_count = 0;
	plan->replicas = plan->inline_replicas;
	if (replica_max > REPLICA_PLAN_INLINE) {
		plan->replicas = arena_alloc(arena, replica_max * sizeof(*plan->replicas));
		if (plan->replicas == NULL)
			return plan_no_memory(err);
	}
	return 0;
}

/* EACH_QUORUM: what each data center must answer, without pending replicas. */
static int
plan_init_quorums(
    struct replica_plan *plan, int32_t **quorums, struct arena *arena, struct error *err)
{
	const struct replication_factor *factors;
	uint32_t count = replication_datacenters(plan->replication, &factors);

	*quorums = plan->inline_quorums;
	if (!plan_is_each_quorum(plan))
		return 0;
	if (count > REPLICA_PLAN_INLINE) {
		*quorums = arena_alloc(arena, count * sizeof(**quorums));
		if (*quorums == NULL)
			return plan_no_memory(err);
	}
	for (uint32_t d = 0; d < count; d++)
		(*quorums)[d] = factors[d].factor / 2 + 1;
	plan->quorums = *quorums;
	plan->quorum_count = count;
	return 0;
}

static int16_t
plan_quorum_of(const struct replica_plan *plan, const char *datacenter)
{
	const struct replication_factor *factors;
	uint32_t count;

	if (plan->quorum_count == 0)
		return 0;
	count = replication_datacenters(plan->replication, &factors);
	for (uint32_t d = 0; d < count; d++) {
		/* One pointer for one name within a snapshot. */
		if (factors[d].datacenter == datacenter)
			return (int16_t)d;
	}
	return -1;
}

static struct replica
plan_replica(const struct replica_plan *plan, const struct replica_set *set, uint32_t index,
    const char *local_datacenter)
{
	struct peer *peer = set->peers[index];
	const char *datacenter = set->datacenters[index];
	bool is_local = datacenter == local_datacenter;

	return (struct replica){.peer = peer,
	    .datacenter = datacenter,
	    .quorum = plan_quorum_of(plan, datacenter),
	    .is_alive = atomic_load_explicit(&peer->is_alive, memory_order_relaxed),
	    .is_pending = index >= set->count,
	    .is_local_datacenter = is_local,
	    .is_counted = is_local || !consistency_is_local(plan->level)};
}

static int
plan_unavailable(enum consistency level, const char *datacenter, int32_t required, int32_t alive,
    struct error *err)
{
	if (datacenter != NULL)
		error_set(err, ERROR_UNAVAILABLE, "Cannot achieve consistency level %s in DC %s",
		    consistency_name(level), datacenter);
	else
		error_set(err, ERROR_UNAVAILABLE, "Cannot achieve consistency level %s",
		    consistency_name(level));
	if (err != NULL) {
		err->consistency = (uint16_t)level;
		err->required = required;
		err->received = alive;
	}
	return -1;
}

/* EACH_QUORUM: each data center's quorum must live; pending replicas help, but raise nothing here. */
static int
plan_check_quorums(const struct replica_plan *plan, uint32_t count, struct error *err)
{
	const struct replication_factor *factors;
	uint32_t datacenters = replication_datacenters(plan->replication, &factors);

	for (uint32_t d = 0; d < datacenters; d++) {
		int32_t quorum = factors[d].factor / 2 + 1, alive = 0;

		for (uint32_t i = 0; i < count; i++)
			alive += plan->replicas[i].is_alive && plan->replicas[i].quorum == (int)d;
		if (alive < quorum)
			return plan_unavailable(
			    plan->level, factors[d].datacenter, quorum, alive, err);
	}
	return 0;
}

/* Are the live ones among the first `count` replicas enough? */
static int
plan_check(const struct replica_plan *plan, uint32_t count, struct error *err)
{
	int32_t required = plan->block_for, alive = 0;

	if (plan->quorum_count > 0)
		return plan_check_quorums(plan, count, err);
	for (uint32_t i = 0; i < count; i++)
		alive += plan->replicas[i].is_alive && plan->replicas[i].is_counted;
	if (alive >= required)
		return 0;
	/* Cassandra names 1 here whatever is pending. */
	if (plan->level == CONSISTENCY_LOCAL_ONE)
		required = 1;
	return plan_unavailable(plan->level, NULL, required, alive, err);
}

/* ---- Writes -------------------------------------------------------------------------------- */

/* All replicas of a token, and what their pending ones add to what the level waits for. */
static int
plan_fill_write(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct arena *arena, struct error *err)
{
	const struct replica_set *set = replication_replicas(replication, token);
	const char *local = topology_local_datacenter(topology);
	uint32_t count = set->count + set->pending_count;
	int32_t *quorums;

	if (plan_init(plan, topology, replication, level, count, arena, err) != 0 ||
	    plan_init_quorums(plan, &quorums, arena, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		struct replica replica = plan_replica(plan, set, i, local);

		plan->replicas[i] = replica;
		plan->live_count += replica.is_alive;
		if (!replica.is_pending || !replica.is_counted || level == CONSISTENCY_ANY)
			continue;
		plan->block_for++;
		if (plan->quorum_count > 0 && replica.quorum >= 0)
			quorums[replica.quorum]++;
	}
	plan->count = plan->contact_count = count;
	plan->pending_count = set->pending_count;
	return 0;
}

int
replica_plan_for_write(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct arena *arena, struct error *err)
{
	if (plan_fill_write(plan, topology, replication, token, level, arena, err) != 0)
		return -1;
	/* A hint will do. */
	if (level == CONSISTENCY_ANY)
		return 0;
	return plan_check(plan, plan->count, err);
}

static void
plan_swap(struct replica_plan *plan, uint32_t a, uint32_t b)
{
	struct replica replica = plan->replicas[a];

	plan->replicas[a] = plan->replicas[b];
	plan->replicas[b] = replica;
}

static bool
plan_asks(const struct replica_plan *read, const struct peer *peer)
{
	for (uint32_t i = 0; i < read->contact_count; i++) {
		if (read->replicas[i].peer == peer)
			return true;
	}
	return false;
}

/* Does a read repair need this one too, when it has `count` already? */
static bool
plan_repair_needs(const struct replica_plan *plan, uint32_t count, uint32_t candidate)
{
	const struct replica *replica = &plan->replicas[candidate];
	int32_t have = 0, need = plan->block_for;

	if (!replica->is_counted)
		return false;
	if (plan->quorum_count > 0) {
		if (replica->quorum < 0)
			return false;
		need = plan->quorums[replica->quorum];
	}
	for (uint32_t i = 0; i < count; i++)
		have += plan->quorum_count == 0 || plan->replicas[i].quorum == replica->quorum;
	return have < need;
}

int
replica_plan_for_read_repair(struct replica_plan *plan, const struct replica_plan *read,
    int64_t token, struct arena *arena, struct error *err)
{
	uint32_t count = 0;

	if (plan_fill_write(
		plan, read->topology, read->replication, token, read->level, arena, err) != 0 ||
	    plan_check(plan, plan->count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < plan->count; i++) {
		if (plan->replicas[i].is_alive && plan_asks(read, plan->replicas[i].peer))
			plan_swap(plan, i, count++);
	}
	for (uint32_t i = count; i < plan->count; i++) {
		if (plan->replicas[i].is_alive && plan_repair_needs(plan, count, i))
			plan_swap(plan, i, count++);
	}
	plan->count = plan->contact_count = plan->live_count = count;
	return 0;
}

uint64_t
replica_plan_electorate(const struct topology *topology, const struct replication *replication,
    int64_t token, enum consistency level)
{
	const struct replica_set *set = replication_replicas(replication, token);
	const char *local = topology_local_datacenter(topology);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->count + set->pending_count; i++) {
		const struct endpoint *endpoint = &set->peers[i]->endpoint;
		uint64_t hash[2];

		if (level == CONSISTENCY_LOCAL_SERIAL && set->datacenters[i] != local)
			continue;
		murmur3_128(slice_of(endpoint->address, endpoint->size), endpoint->port, hash);
		sum += hash[0];
	}
	return sum;
}

int
replica_plan_for_paxos(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct arena *arena, struct error *err)
{
	uint32_t participants = 0, pending = 0, live = 0, required;

	if (plan_fill_write(plan, topology, replication, token, level, arena, err) != 0)
		return -1;
	for (uint32_t i = 0; i < plan->count; i++) {
		struct replica replica = plan->replicas[i];

		if (!replica.is_counted)
			continue;
		participants++;
		pending += replica.is_pending;
		if (replica.is_alive)
			plan->replicas[live++] = replica;
	}
	required = participants / 2 + 1;
	plan->count = plan->contact_count = plan->live_count = live;
	plan->pending_count = pending;
	plan->block_for = (int32_t)required;
	if (live < required)
		return plan_unavailable(level, NULL, (int32_t)required, (int32_t)live, err);
	if (pending <= 1)
		return 0;
	/* More than there are: no number of live nodes would make it possible. */
	plan_unavailable(level, NULL, (int32_t)participants + 1, (int32_t)live, err);
	if (err != NULL)
		snprintf(err->text, sizeof(err->text),
		    "Cannot perform LWT operation as there is more than one (%u) pending range "
		    "movement",
		    pending);
	return -1;
}

/* ---- Reads --------------------------------------------------------------------------------- */

static int
plan_fill_read(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    struct snitch *snitch, struct arena *arena, struct error *err)
{
	const struct replica_set *set = replication_replicas(replication, token);
	const char *local = topology_local_datacenter(topology);
	int32_t *quorums;

	if (plan_init(plan, topology, replication, level, set->count, arena, err) != 0 ||
	    plan_init_quorums(plan, &quorums, arena, err) != 0)
		return -1;
	for (uint32_t i = 0; i < set->count; i++) {
		struct replica replica = plan_replica(plan, set, i, local);

		if (replica.is_alive && replica.is_counted)
			plan->replicas[plan->count++] = replica;
	}
	plan->live_count = plan->count;
	if (snitch != NULL)
		snitch_sort(snitch, topology, plan->replicas, plan->count);
	return 0;
}

/* The first of each data center that make its quorum come to the front, in their order. */
static uint32_t
plan_choose_quorums(struct replica_plan *plan)
{
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct replica replica = plan->replicas[i];
		int32_t have = 0;

		for (uint32_t n = 0; n < chosen; n++)
			have += plan->replicas[n].quorum == replica.quorum;
		if (replica.quorum < 0 || have >= plan->quorums[replica.quorum])
			continue;
		memmove(&plan->replicas[chosen + 1], &plan->replicas[chosen],
		    (i - chosen) * sizeof(replica));
		plan->replicas[chosen++] = replica;
	}
	return chosen;
}

static int
plan_choose_contacts(struct replica_plan *plan, bool always_speculate, struct error *err)
{
	uint32_t wanted = (uint32_t)plan->block_for + always_speculate;

	if (plan->quorum_count > 0)
		plan->contact_count = plan_choose_quorums(plan);
	else
		plan->contact_count = wanted < plan->count ? wanted : plan->count;
	return plan_check(plan, plan->contact_count, err);
}

int
replica_plan_for_read(struct replica_plan *plan, const struct topology *topology,
    const struct replication *replication, int64_t token, enum consistency level,
    bool always_speculate, struct snitch *snitch, struct arena *arena, struct error *err)
{
	if (plan_fill_read(plan, topology, replication, token, level, snitch, arena, err) != 0)
		return -1;
	return plan_choose_contacts(plan, always_speculate, err);
}

/* ---- Leaders and batchlogs ----------------------------------------------------------------- */

int
replica_plan_counter_leader(const struct topology *topology, const struct replication *replication,
    int64_t token, enum consistency level, struct snitch *snitch, uint64_t random,
    struct peer **out, struct error *err)
{
	const struct replica_set *set = replication_replicas(replication, token);
	struct replica nearest = {.peer = NULL};
	uint32_t local_count = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		bool is_local = set->datacenters[i] == topology_local_datacenter(topology);
		struct replica candidates[2] = {
		    nearest, {.peer = set->peers[i], .datacenter = set->datacenters[i]}};

		if (!atomic_load_explicit(&set->peers[i]->is_alive, memory_order_relaxed))
			continue;
		if (set->peers[i]->is_local) {
			*out = set->peers[i];
			return 0;
		}
		/* One of the local data center is chosen with even chance, whatever their number. */
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		if (is_local && (random >> 33) % ++local_count == 0)
			*out = set->peers[i];
		if (nearest.peer == NULL)
			nearest = candidates[1];
		else if (snitch != NULL) {
			snitch_sort(snitch, topology, candidates, 2);
			nearest = candidates[0];
		}
	}
	if (local_count > 0)
		return 0;
	if (nearest.peer == NULL || consistency_is_local(level))
		return plan_unavailable(
		    level, NULL, replication_block_for(replication, level), 0, err);
	*out = nearest.peer;
	return 0;
}

/* Live members of the local data center other than this node, and how many of them stand in other racks. */
struct batchlog_nodes {
	uint32_t all, live, live_elsewhere;
};

static bool
batchlog_is_candidate(const struct topology *topology, const struct member *member)
{
	return member->datacenter == topology_local_datacenter(topology) &&
	    member->state != MEMBER_JOINING && member->state != MEMBER_REPLACING &&
	    member->token_count > 0;
}

static bool
batchlog_is_live_other(const struct topology *topology, const struct member *member)
{
	return batchlog_is_candidate(topology, member) && !member->peer->is_local &&
	    atomic_load_explicit(&member->peer->is_alive, memory_order_relaxed);
}

int
batchlog_strategy_parse(const char *text, enum batchlog_strategy *out)
{
	static const char *const names[] = {
	    [BATCHLOG_RANDOM_REMOTE] = "random_remote",
	    [BATCHLOG_PREFER_LOCAL] = "prefer_local",
	    [BATCHLOG_DYNAMIC_REMOTE] = "dynamic_remote",
	    [BATCHLOG_DYNAMIC] = "dynamic",
	};

	for (int i = 0; i <= BATCHLOG_DYNAMIC; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum batchlog_strategy)i;
			return 0;
		}
	}
	return -1;
}

/* Whom batchlog_choose() may choose. */
struct batchlog_wish {
	const struct topology *topology;
	const struct member *taken; /* not this one; NULL: none is taken yet */
	const char *rack; /* of this rack; NULL: of any */
	const char *not_rack; /* not of this rack; NULL: of any */
	bool not_local_rack; /* nor of this node's */
	struct snitch *snitch; /* the quickest; NULL: by chance */
};

static bool
batchlog_fits(const struct batchlog_wish *wish, const struct member *member)
{
	const char *local_rack = topology_local_rack(wish->topology);

	return batchlog_is_live_other(wish->topology, member) && member != wish->taken &&
	    member->rack != wish->not_rack && (wish->rack == NULL || member->rack == wish->rack) &&
	    (!wish->not_local_rack || member->rack != local_rack);
}

/* One that fits, with even chance among those that are as quick; NULL: none does. */
static const struct member *
batchlog_choose(const struct batchlog_wish *wish, uint64_t *random)
{
	const struct member *chosen = NULL;
	uint32_t count = topology_member_count(wish->topology), seen = 0;
	double best = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct member *member = topology_member(wish->topology, i);
		double score = 0;

		if (!batchlog_fits(wish, member))
			continue;
		if (wish->snitch != NULL)
			score = snitch_score(wish->snitch, member->peer);
		if (chosen != NULL && score > best)
			continue;
		if (score < best)
			seen = 0;
		best = score;
		*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
		if (chosen == NULL || (*random >> 33) % ++seen == 0)
			chosen = member;
		seen = seen == 0 ? 1 : seen;
	}
	return chosen;
}

int
replica_plan_batchlog_endpoints(const struct topology *topology, enum batchlog_strategy strategy,
    struct snitch *snitch, bool is_any, uint64_t random, struct peer *out[2], struct error *err)
{
	bool is_dynamic = strategy == BATCHLOG_DYNAMIC || strategy == BATCHLOG_DYNAMIC_REMOTE;
	struct batchlog_wish wish = {.topology = topology, .snitch = is_dynamic ? snitch : NULL};
	struct batchlog_nodes nodes = {0, 0, 0};
	uint32_t count = topology_member_count(topology);
	const struct member *first = NULL, *second;

	for (uint32_t i = 0; i < count; i++) {
		const struct member *member = topology_member(topology, i);
		bool is_live = batchlog_is_live_other(topology, member);

		nodes.all += batchlog_is_candidate(topology, member);
		nodes.live += is_live;
		nodes.live_elsewhere += is_live && member->rack != topology_local_rack(topology);
	}
	if (nodes.live == 0) {
		if (!is_any && nodes.all > 1)
			return plan_unavailable(CONSISTENCY_ONE, NULL, 1, 0, err);
		out[0] = topology_local_peer(topology);
		return 1;
	}
	if (strategy == BATCHLOG_PREFER_LOCAL) {
		wish.rack = topology_local_rack(topology);
		first = batchlog_choose(&wish, &random);
		wish.rack = NULL;
	} else if (strategy != BATCHLOG_DYNAMIC) {
		wish.not_local_rack = nodes.live > 2 && nodes.live_elsewhere >= 2;
	}
	if (first == NULL)
		first = batchlog_choose(&wish, &random);
	wish.taken = first;
	wish.not_rack = first->rack;
	second = batchlog_choose(&wish, &random);
	wish.not_rack = NULL;
	if (second == NULL)
		second = batchlog_choose(&wish, &random);
	out[0] = first->peer;
	if (second == NULL)
		return 1;
	out[1] = second->peer;
	return 2;
}

/* ---- Reads of a token range ---------------------------------------------------------------- */

void
range_plans_init(struct range_plans *plans, const struct topology *topology,
    const struct replication *replication, struct ring_range range, enum consistency level,
    bool keeps_spare, struct snitch *snitch, struct arena *arena)
{
	*plans = (struct range_plans){.topology = topology,
	    .replication = replication,
	    .snitch = snitch,
	    .arena = arena,
	    .level = level,
	    .keeps_spare = keeps_spare && level != CONSISTENCY_EACH_QUORUM,
	    .at = range.left,
	    .right = range.right,
	    /* (x, x] is empty here, but for the whole ring. */
	    .is_done =
		range.left == range.right ? range.left != INT64_MIN : range.left == INT64_MAX};
}

/* Where the part that begins behind `left` ends. */
static int64_t
range_plans_part_end(const struct range_plans *plans, int64_t left)
{
	struct ring_range range = {INT64_MIN, INT64_MIN};
	uint32_t count = replication_range_count(plans->replication);

	if (count > 0)
		replication_range(plans->replication,
		    replication_range_index(plans->replication, left + 1), &range);
	/* Behind the last token: to the end of the ring. */
	if (range.right <= left)
		return plans->right;
	return plans->right == INT64_MIN || range.right < plans->right ? range.right : plans->right;
}

/* Is there nothing behind a part that ends at `end`? */
static bool
range_plans_is_end(const struct range_plans *plans, int64_t end)
{
	return end == plans->right || end == INT64_MIN || end == INT64_MAX;
}

/* Only replicas that both have, in the order of the first. */
static int
plan_intersect(struct replica_plan *plan, const struct replica_plan *left,
    const struct replica_plan *right, struct arena *arena, struct error *err)
{
	int32_t *quorums;

	if (plan_init(plan, left->topology, left->replication, left->level, left->count, arena,
		err) != 0 ||
	    plan_init_quorums(plan, &quorums, arena, err) != 0)
		return -1;
	for (uint32_t i = 0; i < left->count; i++) {
		for (uint32_t n = 0; n < right->count; n++) {
			if (left->replicas[i].peer == right->replicas[n].peer)
				plan->replicas[plan->count++] = left->replicas[i];
		}
	}
	plan->live_count = plan->count;
	return 0;
}

/* Plans point into themselves. */
static void
plan_move(struct replica_plan *to, const struct replica_plan *from)
{
	*to = *from;
	if (from->replicas == from->inline_replicas)
		to->replicas = to->inline_replicas;
	if (from->quorums == from->inline_quorums)
		to->quorums = to->inline_quorums;
}

static bool
plan_has_spare(const struct replica_plan *plan)
{
	return plan->count > plan->contact_count;
}

/* 1: `out` reaches to `end` now; 0: another plan has to read that part; -1: no memory. */
static int
range_plans_merge(struct range_plans *plans, struct range_plan *out, int64_t end, struct error *err)
{
	struct replica_plan next, merged;
	struct error unavailable;

	if (plan_fill_read(&next, plans->topology, plans->replication, end, plans->level,
		plans->snitch, plans->arena, err) != 0)
		return -1;
	/* What is wrong with the next part is told when it is asked for. */
	if (plan_choose_contacts(&next, false, &unavailable) != 0)
		return 0;
	if (plan_intersect(&merged, &out->plan, &next, plans->arena, err) != 0)
		return -1;
	if (plan_choose_contacts(&merged, false, &unavailable) != 0)
		return 0;
	if (plans->keeps_spare && !plan_has_spare(&merged) &&
	    (plan_has_spare(&out->plan) || plan_has_spare(&next)))
		return 0;
	if (plans->snitch != NULL &&
	    !snitch_is_worth_merging(plans->snitch, merged.replicas, merged.contact_count,
		out->plan.replicas, out->plan.contact_count, next.replicas, next.contact_count))
		return 0;
	plan_move(&out->plan, &merged);
	return 1;
}

/* A token of the part (left, end]: the end, or where that is the ring's, the first. */
static int64_t
range_plans_token(int64_t left, int64_t end)
{
	return end == INT64_MIN ? left + 1 : end;
}

int
range_plans_next(struct range_plans *plans, struct range_plan *out, struct error *err)
{
	int64_t end;
	int rc;

	if (plans->is_done)
		return 0;
	end = range_plans_part_end(plans, plans->at);
	rc = replica_plan_for_read(&out->plan, plans->topology, plans->replication,
	    range_plans_token(plans->at, end), plans->level, false, plans->snitch, plans->arena,
	    err);
	out->range = (struct ring_range){plans->at, end};
	out->vnode_count = 1;
	plans->at = end;
	plans->is_done = range_plans_is_end(plans, end);
	if (rc != 0)
		return -1;
	while (!plans->is_done) {
		end = range_plans_part_end(plans, plans->at);
		rc = range_plans_merge(plans, out, range_plans_token(plans->at, end), err);
		if (rc <= 0)
			return rc < 0 ? -1 : 1;
		out->range.right = end;
		out->vnode_count++;
		plans->at = end;
		plans->is_done = range_plans_is_end(plans, end);
	}
	return 1;
}

uint32_t
range_plans_count(const struct range_plans *plans)
{
	int64_t at = plans->at;
	uint32_t count = 0;

	for (bool is_done = plans->is_done; !is_done; is_done = range_plans_is_end(plans, at)) {
		at = range_plans_part_end(plans, at);
		count++;
	}
	return count;
}
