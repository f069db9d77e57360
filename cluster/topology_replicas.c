/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The replica sets of a keyspace on one snapshot: natural replicas from the ring of today, pending ones from the
 * rings to be (TokenMetadata.calculatePendingRanges). Rule: a node is pending for a range when a ring to be makes it a
 * replica that it is not today. The rings to be are:
 *
 *   1. for each change (a node that joins, replaces, moves or leaves): it alone is done;
 *   2. all that leave are gone;
 *   3. for each node that joins, replaces or moves: all that leave are gone, and it alone has arrived.
 *
 * 2 and 3 are Cassandra's. Each arrival is taken alone because others that arrive only take ranges away from it:
 * whoever of them fails, the writes it will need went to it. 1 is the same as 2 or 3 when one change is under way; with
 * several it covers what comes first, such as a node that leaves but becomes a replica of what another one
 * moves away from. Since the tokens to be split the ranges of today, sets are computed for the tokens of both.
 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/topology_internal.h"

/* ---- Rings --------------------------------------------------------------------------------- */

struct topology_ring {
	struct ring_view view;
	struct ring_walk *walk; /* owned */
	int64_t *tokens; /* owned */
	uint32_t *owners; /* owned */
};

static void
topology_ring_fini(struct topology_ring *ring)
{
	ring_walk_free(ring->walk);
	free(ring->tokens);
	free(ring->owners);
}

static void
topology_ring_view(struct topology_ring *ring, const struct topology *topology)
{
	ring->view.member_count = topology->member_count;
	ring->view.places = topology->places;
	ring->view.datacenter_count = topology->datacenter_count;
	ring->view.rack_count = topology->rack_count;
}

/* A ring to be: one change is done (NULL: none), and all that leave may be gone besides. */
struct topology_future {
	const struct member *change;
	bool leavers_go;
};

static const int64_t *
topology_future_tokens(
    const struct member *member, const struct topology_future *future, uint32_t *count)
{
	const struct member *change = future->change;
	bool is_there = member_is_owner(member);

	if (member == change)
		is_there = member->state != MEMBER_LEAVING;
	else if (change != NULL && change->replaces == member->peer)
		is_there = false;
	else if (member->state == MEMBER_LEAVING)
		is_there = !future->leavers_go;
	*count = is_there ? member->token_count : 0;
	if (member != change || member->state != MEMBER_MOVING)
		return member->tokens;
	*count = member->next_token_count;
	return member->next_tokens;
}

struct topology_future_token {
	int64_t token;
	uint32_t owner;
	bool is_arrival;
};

/* One that arrives takes a token over from who has it. */
static int
topology_compare_future(const void *a, const void *b)
{
	const struct topology_future_token *left = a, *right = b;

	if (left->token != right->token)
		return left->token < right->token ? -1 : 1;
	return (int)right->is_arrival - (int)left->is_arrival;
}

static void
topology_ring_future(
    struct topology_ring *ring, const struct topology *topology, struct topology_future future)
{
	struct topology_future_token *all;
	uint32_t total = 0, count;

	for (uint32_t i = 0; i < topology->member_count; i++) {
		topology_future_tokens(&topology->members[i], &future, &count);
		total += count;
	}
	all = xcalloc(total + 1, sizeof(*all));
	total = 0;
	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct member *member = &topology->members[i];
		const int64_t *tokens = topology_future_tokens(member, &future, &count);

		for (uint32_t n = 0; n < count; n++)
			all[total++] =
			    (struct topology_future_token){tokens[n], i, member == future.change};
	}
	qsort(all, total, sizeof(*all), topology_compare_future);
	ring->tokens = xcalloc(total + 1, sizeof(*ring->tokens));
	ring->owners = xcalloc(total + 1, sizeof(*ring->owners));
	for (uint32_t i = 0; i < total; i++) {
		if (i > 0 && all[i].token == all[i - 1].token)
			continue;
		ring->tokens[ring->view.token_count] = all[i].token;
		ring->owners[ring->view.token_count++] = all[i].owner;
	}
	free(all);
	ring->view.tokens = ring->tokens;
	ring->view.owners = ring->owners;
	topology_ring_view(ring, topology);
}

/* ---- Sets ---------------------------------------------------------------------------------- */

struct replication_builder {
	struct replication *replication;
	const struct topology *topology;
	int32_t *factors; /* owned; by data center number, or NULL */
	struct topology_ring today;
	struct topology_ring *futures; /* owned */
	uint32_t future_count;
	int64_t *bounds; /* the replication's */
	/* One token's replicas, and marks: who was put in already. */
	uint32_t *found, *scratch;
	uint32_t *marks; /* by member: number of the token that marked it */
	uint32_t mark;
};

static void *
replication_alloc(struct replication *replication, size_t count, size_t size)
{
	void *memory = arena_calloc(&replication->arena, count + 1, size);

	if (memory == NULL)
		abort();
	return memory;
}

static void
replication_make_set(struct replication *replication, struct replica_set *set,
    const uint32_t *members, uint32_t natural, uint32_t pending)
{
	const struct topology *topology = replication->topology;
	struct peer **peers = replication_alloc(replication, natural + pending, sizeof(*peers));
	const char **datacenters =
	    replication_alloc(replication, natural + pending, sizeof(*datacenters));

	for (uint32_t i = 0; i < natural + pending; i++) {
		peers[i] = topology->members[members[i]].peer;
		datacenters[i] = topology->members[members[i]].datacenter;
	}
	*set = (struct replica_set){
	    .count = natural, .pending_count = pending, .peers = peers, .datacenters = datacenters};
}

static void
replication_builder_begin_ring(
    struct replication_builder *builder, struct topology_ring *ring, uint32_t *count_max)
{
	ring->walk =
	    ring_walk_new(&ring->view, builder->factors, builder->replication->strategy.factor);
	*count_max += ring_walk_count_max(ring->walk);
}

static void
replication_builder_add_future(
    struct replication_builder *builder, const struct member *change, bool leavers_go)
{
	topology_ring_future(&builder->futures[builder->future_count++], builder->topology,
	    (struct topology_future){change, leavers_go});
}

static void
replication_builder_futures(struct replication_builder *builder)
{
	const struct topology *topology = builder->topology;
	uint32_t changes = 0, leavers = 0;

	for (uint32_t i = 0; i < topology->member_count; i++) {
		changes += topology->members[i].state != MEMBER_NORMAL;
		leavers += topology->members[i].state == MEMBER_LEAVING;
	}
	builder->futures = xcalloc(2 * changes + 1, sizeof(*builder->futures));
	for (uint32_t i = 0; changes > 0 && i < topology->member_count; i++) {
		const struct member *member = &topology->members[i];

		if (member->state == MEMBER_NORMAL)
			continue;
		replication_builder_add_future(builder, member, false);
		if (leavers > 0 && member->state != MEMBER_LEAVING)
			replication_builder_add_future(builder, member, true);
	}
	if (leavers > 1)
		replication_builder_add_future(builder, NULL, true);
}

static void
replication_builder_begin(struct replication_builder *builder)
{
	const struct topology *topology = builder->topology;
	const struct replication_strategy *strategy = &builder->replication->strategy;
	uint32_t count_max = 0;

	if (strategy->class == REPLICATION_NETWORK_TOPOLOGY) {
		builder->factors = xcalloc(topology->datacenter_count + 1, sizeof(int32_t));
		for (uint32_t d = 0; d < topology->datacenter_count; d++)
			builder->factors[d] =
			    replication_factor_of(builder->replication, topology->datacenters[d]);
	}
	builder->today.view.token_count = topology->token_count;
	builder->today.view.tokens = topology->tokens;
	builder->today.view.owners = topology->owners;
	topology_ring_view(&builder->today, topology);
	replication_builder_futures(builder);
	replication_builder_begin_ring(builder, &builder->today, &count_max);
	for (uint32_t i = 0; i < builder->future_count; i++)
		replication_builder_begin_ring(builder, &builder->futures[i], &count_max);
	builder->found = xcalloc(count_max + 1, sizeof(*builder->found));
	builder->scratch = xcalloc(count_max + 1, sizeof(*builder->scratch));
	builder->marks = xcalloc(topology->member_count + 1, sizeof(*builder->marks));
}

static void
replication_builder_end(struct replication_builder *builder)
{
	topology_ring_fini(&builder->today);
	for (uint32_t i = 0; i < builder->future_count; i++)
		topology_ring_fini(&builder->futures[i]);
	free(builder->futures);
	free(builder->factors);
	free(builder->found);
	free(builder->scratch);
	free(builder->marks);
}

static int
replication_compare_tokens(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* Tokens of today and of all rings to be, each once. */
static void
replication_builder_bounds(struct replication_builder *builder)
{
	struct replication *replication = builder->replication;
	uint32_t total = builder->topology->token_count, count = 0;
	int64_t *all;

	if (builder->future_count == 0) {
		replication->bounds = builder->topology->tokens;
		replication->count = total;
		return;
	}
	for (uint32_t i = 0; i < builder->future_count; i++)
		total += builder->futures[i].view.token_count;
	all = replication_alloc(replication, total, sizeof(*all));
	total = builder->topology->token_count;
	if (total > 0)
		memcpy(all, builder->topology->tokens, total * sizeof(*all));
	for (uint32_t i = 0; i < builder->future_count; i++) {
		memcpy(all + total, builder->futures[i].tokens,
		    builder->futures[i].view.token_count * sizeof(*all));
		total += builder->futures[i].view.token_count;
	}
	qsort(all, total, sizeof(*all), replication_compare_tokens);
	for (uint32_t i = 0; i < total; i++) {
		if (count == 0 || all[count - 1] != all[i])
			all[count++] = all[i];
	}
	replication->bounds = all;
	replication->count = count;
}

/* Replicas of a token in a ring. */
static uint32_t
topology_ring_replicas(const struct topology_ring *ring, int64_t token, uint32_t *out)
{
	if (ring->view.token_count == 0)
		return 0;
	return ring_walk_replicas(ring->walk,
	    topology_bound_index(ring->view.tokens, ring->view.token_count, token), out);
}

static void
replication_builder_set(struct replication_builder *builder, int64_t token, struct replica_set *set)
{
	uint32_t natural = topology_ring_replicas(&builder->today, token, builder->found);
	uint32_t all = natural;

	builder->mark++;
	for (uint32_t i = 0; i < natural; i++)
		builder->marks[builder->found[i]] = builder->mark;
	for (uint32_t f = 0; f < builder->future_count; f++) {
		uint32_t count =
		    topology_ring_replicas(&builder->futures[f], token, builder->scratch);

		for (uint32_t i = 0; i < count; i++) {
			if (builder->marks[builder->scratch[i]] == builder->mark)
				continue;
			builder->marks[builder->scratch[i]] = builder->mark;
			builder->found[all++] = builder->scratch[i];
		}
	}
	replication_make_set(builder->replication, set, builder->found, natural, all - natural);
}

static void
replication_build_sets(struct replication *replication)
{
	struct replication_builder builder = {
	    .replication = replication, .topology = replication->topology};
	struct replica_set *sets;

	replication_builder_begin(&builder);
	replication_builder_bounds(&builder);
	sets = replication_alloc(replication, replication->count, sizeof(*sets));
	for (uint32_t i = 0; i < replication->count; i++)
		replication_builder_set(&builder, replication->bounds[i], &sets[i]);
	replication->sets = sets;
	replication_builder_end(&builder);
}

/* LocalStrategy, EverywhereStrategy: one set for the whole ring. */
static void
replication_build_one_set(struct replication *replication)
{
	const struct topology *topology = replication->topology;
	int64_t *bounds = replication_alloc(replication, 1, sizeof(*bounds));
	struct replica_set *set = replication_alloc(replication, 1, sizeof(*set));
	uint32_t *members, natural = 0, all;

	bounds[0] = INT64_MIN;
	replication->bounds = bounds;
	replication->sets = set;
	replication->count = 1;
	if (replication->strategy.class == REPLICATION_LOCAL) {
		struct peer **peers = replication_alloc(replication, 1, sizeof(*peers));
		const char **datacenters = replication_alloc(replication, 1, sizeof(*datacenters));

		peers[0] = topology->local;
		datacenters[0] = topology->local_datacenter;
		*set = (struct replica_set){.count = 1, .peers = peers, .datacenters = datacenters};
		return;
	}
	members = xcalloc(topology->member_count + 1, sizeof(*members));
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (member_is_owner(&topology->members[i]) && topology->members[i].token_count > 0)
			members[natural++] = i;
	}
	all = natural;
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (!member_is_owner(&topology->members[i]))
			members[all++] = i;
	}
	replication_make_set(replication, set, members, natural, all - natural);
	free(members);
}

/* ---- A keyspace's replication -------------------------------------------------------------- */

/* One pointer for one name, as the snapshot's members have it. */
static void
replication_intern_datacenters(struct replication *replication)
{
	const struct topology *topology = replication->topology;

	for (uint32_t i = 0; i < replication->strategy.datacenter_count; i++) {
		struct replication_factor *factor = &replication->strategy.datacenters[i];

		if (strcmp(factor->datacenter, topology->local_datacenter) == 0)
			factor->datacenter = topology->local_datacenter;
		for (uint32_t d = 0; d < topology->datacenter_count; d++) {
			if (strcmp(factor->datacenter, topology->datacenters[d]) == 0)
				factor->datacenter = topology->datacenters[d];
		}
	}
}

static void
replication_count_factor(struct replication *replication)
{
	const struct replication_strategy *strategy = &replication->strategy;

	switch (strategy->class) {
	case REPLICATION_SIMPLE:
		replication->total_factor = strategy->factor;
		break;
	case REPLICATION_NETWORK_TOPOLOGY:
		for (uint32_t i = 0; i < strategy->datacenter_count; i++)
			replication->total_factor += strategy->datacenters[i].factor;
		break;
	case REPLICATION_LOCAL:
	case REPLICATION_EVERYWHERE:
		replication->total_factor = (int32_t)replication->sets[0].count;
		break;
	}
}

/*
 * Options that do not parse were refused by CREATE KEYSPACE; should a stored schema have them all the same, the
 * keyspace has no replicas and requests are Unavailable. Virtual keyspaces have no options: they are local.
 */
static void
replication_parse_options(struct replication *replication)
{
	struct replication_strategy *strategy = &replication->strategy;

	if (replication->options.count == 0) {
		strategy->class = REPLICATION_LOCAL;
		return;
	}
	if (replication_parse(&replication->options, &replication->arena, strategy, NULL) != 0)
		*strategy = (struct replication_strategy){.class = REPLICATION_SIMPLE};
}

struct replication *
replication_new(const struct topology *topology, const struct option_map *options, uint64_t hash)
{
	struct replication *replication = xzalloc(sizeof(*replication));

	arena_init(&replication->arena, 16 * 1024);
	replication->topology = topology;
	replication->hash = hash;
	replication->options = option_map_copy(&replication->arena, options);
	replication_parse_options(replication);
	replication_intern_datacenters(replication);
	if (replication->strategy.class == REPLICATION_LOCAL ||
	    replication->strategy.class == REPLICATION_EVERYWHERE)
		replication_build_one_set(replication);
	else
		replication_build_sets(replication);
	replication_count_factor(replication);
	for (int level = 0; level < CONSISTENCY_COUNT; level++)
		replication->block_for[level] = consistency_block_for(
		    (enum consistency)level, replication, topology->local_datacenter);
	return replication;
}

void
replication_free(struct replication *replication)
{
	if (replication == NULL)
		return;
	arena_fini(&replication->arena);
	free(replication);
}

static struct replication *
topology_lookup(const struct topology *topology, const struct option_map *options, uint64_t hash)
{
	/* Acquire: the replication was complete when it was published. */
	struct replication *replication =
	    atomic_load_explicit(&topology->buckets[hash % TOPOLOGY_BUCKETS], memory_order_acquire);

	while (replication != NULL &&
	    (replication->hash != hash || !option_map_equal(&replication->options, options)))
		replication = replication->next;
	return replication;
}

static struct replication *
topology_find_or_build(
    const struct topology *topology, const struct option_map *options, uint64_t hash)
{
	struct replication *replication = topology_lookup(topology, options, hash);
	/* Snapshots are constant for their readers; this cache inside is not. */
	struct topology *cache = (struct topology *)(uintptr_t)topology;
	struct replication *_Atomic *bucket = &cache->buckets[hash % TOPOLOGY_BUCKETS];

	if (replication != NULL)
		return replication;
	lock_take(&cache->build);
	replication = topology_lookup(topology, options, hash);
	if (replication == NULL) {
		replication = replication_new(topology, options, hash);
		replication->next = atomic_load_explicit(bucket, memory_order_relaxed);
		atomic_store_explicit(bucket, replication, memory_order_release);
	}
	lock_drop(&cache->build);
	return replication;
}

const struct replication *
topology_replication_of(const struct topology *topology, const struct option_map *options)
{
	return topology_find_or_build(topology, options, option_map_hash(options));
}

const struct replication *
topology_replication(const struct topology *topology, const struct keyspace_metadata *keyspace)
{
	struct replication *replication =
	    topology_find_or_build(topology, &keyspace->replication, keyspace->replication_hash);

	if (!atomic_load_explicit(&replication->is_used, memory_order_relaxed))
		atomic_store_explicit(&replication->is_used, true, memory_order_relaxed);
	return replication;
}

const struct replica_set *
replication_replicas(const struct replication *replication, int64_t token)
{
	static const struct replica_set nobody = {0, 0, NULL, NULL};

	if (replication->count == 0)
		return &nobody;
	return &replication
		    ->sets[topology_bound_index(replication->bounds, replication->count, token)];
}

bool
replication_is_local_strategy(const struct replication *replication)
{
	return replication->strategy.class == REPLICATION_LOCAL;
}

enum replication_class
replication_class(const struct replication *replication)
{
	return replication->strategy.class;
}

int32_t
replication_total_factor(const struct replication *replication)
{
	return replication->total_factor;
}

int32_t
replication_factor_of(const struct replication *replication, const char *datacenter)
{
	if (replication->strategy.class != REPLICATION_NETWORK_TOPOLOGY)
		return replication->total_factor;
	for (uint32_t i = 0; i < replication->strategy.datacenter_count; i++) {
		const struct replication_factor *factor = &replication->strategy.datacenters[i];

		if (factor->datacenter == datacenter || strcmp(factor->datacenter, datacenter) == 0)
			return factor->factor;
	}
	return 0;
}

uint32_t
replication_datacenters(
    const struct replication *replication, const struct replication_factor **out)
{
	*out = replication->strategy.datacenters;
	return replication->strategy.datacenter_count;
}

/* ---- Levels -------------------------------------------------------------------------------- */

static int32_t
consistency_each_quorum(const struct replication *replication)
{
	const struct replication_factor *factors;
	uint32_t count = replication_datacenters(replication, &factors);
	int32_t sum = 0;

	if (replication->strategy.class != REPLICATION_NETWORK_TOPOLOGY)
		return replication->total_factor / 2 + 1;
	for (uint32_t i = 0; i < count; i++)
		sum += factors[i].factor / 2 + 1;
	return sum;
}

int32_t
consistency_block_for(
    enum consistency level, const struct replication *replication, const char *local_datacenter)
{
	if (level == CONSISTENCY_EACH_QUORUM)
		return consistency_each_quorum(replication);
	return consistency_answers(
	    level, replication->total_factor, replication_factor_of(replication, local_datacenter));
}

int32_t
replication_block_for(const struct replication *replication, enum consistency level)
{
	return replication->block_for[level];
}
