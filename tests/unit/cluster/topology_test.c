/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/topology.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ring_fixture.h"

enum { TOKENS_ALL_MAX = RING_NODES_MAX * RING_TOKENS_MAX };

/* ---- Peers --------------------------------------------------------------------------------- */

START_TEST(test_a_peer_is_one_object_for_its_endpoint)
{
	struct endpoint local = {.address = {127, 0, 0, 1}, .size = 4, .port = 7000};
	struct peers *peers = peers_new(&local);
	struct peer *first[300];

	ck_assert(peers_local(peers)->is_local && peers_local(peers)->is_alive);
	for (int i = 0; i < 300; i++) {
		struct endpoint endpoint = {
		    .address = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}, .size = 4, .port = 7000};

		ck_assert_ptr_null(peers_find(peers, &endpoint));
		first[i] = peers_get(peers, &endpoint);
		ck_assert(!first[i]->is_local && !first[i]->is_alive);
	}
	ck_assert_uint_eq(peers_count(peers), 301);
	for (uint32_t i = 0; i < 300; i++) {
		ck_assert_ptr_eq(peers_get(peers, &first[i]->endpoint), first[i]);
		ck_assert_ptr_eq(peers_at(peers, i + 1), first[i]);
		ck_assert_uint_eq(first[i]->index, i + 1);
	}
	peers_free(peers);
}
END_TEST

/* ---- Strategies ---------------------------------------------------------------------------- */

/* Last octets of the replicas of a token, as "1 2 3|4": natural ones, then pending ones. */
static const char *
replicas_text(
    const struct topology *topology, const struct keyspace_metadata *keyspace, int64_t token)
{
	static char text[256];
	const struct replica_set *set =
	    replication_replicas(topology_replication(topology, keyspace), token);
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < set->count + set->pending_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u",
		    i == 0                ? ""
			: i == set->count ? "|"
					  : " ",
		    set->peers[i]->endpoint.address[3]);
	return text;
}

#define EXPECT_REPLICAS(keyspace, token, text)                                                     \
	ck_assert_str_eq(replicas_text(topology, (keyspace), (token)), (text))

static void
add_with_token(struct ring_fixture *ring, const char *datacenter, const char *rack, int64_t token)
{
	ring_set_tokens(ring, ring_add(ring, datacenter, rack), &token, 1);
}

START_TEST(test_simple_strategy_takes_the_next_nodes_clockwise)
{
	struct keyspace_metadata *two = ring_keyspace(
	    "org.apache.cassandra.locator.SimpleStrategy", "replication_factor", "2", NULL);
	struct keyspace_metadata *nine =
	    ring_keyspace("SimpleStrategy", "replication_factor", "9", NULL);
	const struct topology *topology;
	struct ring_fixture ring;

	ring_fixture_init(&ring, 1);
	add_with_token(&ring, "dc1", "r1", 0);
	add_with_token(&ring, "dc1", "r1", 100);
	add_with_token(&ring, "dc2", "r1", 200);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	EXPECT_REPLICAS(two, 0, "1 2");
	EXPECT_REPLICAS(two, 1, "2 3");
	EXPECT_REPLICAS(two, 100, "2 3");
	EXPECT_REPLICAS(two, 150, "3 1");
	EXPECT_REPLICAS(two, 201, "1 2");
	EXPECT_REPLICAS(two, INT64_MAX, "1 2");
	EXPECT_REPLICAS(two, INT64_MIN, "1 2");
	EXPECT_REPLICAS(nine, 150, "3 1 2");
	ck_assert_int_eq(replication_total_factor(topology_replication(topology, nine)), 9);
	topology_release(ring.holder, topology);
	keyspace_unref(two);
	keyspace_unref(nine);
	ring_fixture_fini(&ring);
}
END_TEST

START_TEST(test_network_topology_spreads_over_racks)
{
	struct keyspace_metadata *keyspace =
	    ring_keyspace("NetworkTopologyStrategy", "dc1", "3", "dc2", "1", "dc9", "0", NULL);
	const struct topology *topology;
	struct ring_fixture ring;

	ring_fixture_init(&ring, 1);
	add_with_token(&ring, "dc1", "r1", 0); /* 1 */
	add_with_token(&ring, "dc1", "r1", 10);
	add_with_token(&ring, "dc2", "r1", 20); /* 3 */
	add_with_token(&ring, "dc1", "r2", 30);
	add_with_token(&ring, "dc1", "r1", 40);
	add_with_token(&ring, "dc2", "r1", 50);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	/* Two racks for three replicas: one repeat, the first that is met. */
	EXPECT_REPLICAS(keyspace, 0, "1 2 3 4");
	EXPECT_REPLICAS(keyspace, 30, "4 5 6 1");
	EXPECT_REPLICAS(keyspace, 35, "5 6 1 4");
	topology_release(ring.holder, topology);

	/* A third rack: no repeats at all. */
	add_with_token(&ring, "dc1", "r3", 60); /* 7 */
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	EXPECT_REPLICAS(keyspace, 0, "1 3 4 7");
	EXPECT_REPLICAS(keyspace, 35, "5 6 7 4");
	topology_release(ring.holder, topology);
	keyspace_unref(keyspace);
	ring_fixture_fini(&ring);
}
END_TEST

START_TEST(test_local_and_everywhere)
{
	struct keyspace_metadata *local = ring_keyspace("LocalStrategy", NULL);
	struct keyspace_metadata *everywhere = ring_keyspace("EverywhereStrategy", NULL);
	const struct replication *replication;
	const struct topology *topology;
	struct ring_fixture ring;
	struct ring_range *ranges;

	ring_fixture_init(&ring, 1);
	topology = topology_acquire(ring.holder);
	EXPECT_REPLICAS(local, 7, "1"); /* before there is a ring */
	EXPECT_REPLICAS(everywhere, 7, "");
	topology_release(ring.holder, topology);

	add_with_token(&ring, "dc1", "r1", 0);
	add_with_token(&ring, "dc2", "r1", 100);
	add_with_token(&ring, "dc2", "r1", 200);
	ring.members[2].state = MEMBER_JOINING;
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	EXPECT_REPLICAS(local, 7, "1");
	EXPECT_REPLICAS(everywhere, 7, "1 2|3");
	replication = topology_replication(topology, everywhere);
	ck_assert_int_eq(replication_total_factor(replication), 2);
	ck_assert_uint_eq(replication_ranges_of(replication, ring.members[1].peer, &ranges), 1);
	ck_assert(ranges[0].left == INT64_MIN && ranges[0].right == INT64_MIN);
	free(ranges);
	ck_assert(replication_is_local_strategy(topology_replication(topology, local)));
	topology_release(ring.holder, topology);
	keyspace_unref(local);
	keyspace_unref(everywhere);
	ring_fixture_fini(&ring);
}
END_TEST

START_TEST(test_options_that_are_wrong_are_named)
{
	static const struct {
		const char *class_name, *key, *value, *text;
	} cases[] = {
	    {"SimpleStrategy", "replication_factor", "3/1",
		"Transient replication is not supported"},
	    {"NetworkTopologyStrategy", "dc1", "3/1", "Transient replication is not supported"},
	    {"SimpleStrategy", "replication_factor", "-1", "must be non-negative; found -1"},
	    {"SimpleStrategy", "replication_factor", "x", "For input string: \"x\""},
	    {"SimpleStrategy", "replication_factor", "99999999999", "For input string"},
	    {"SimpleStrategy", "dc1", "3", "Unrecognized strategy option {dc1}"},
	    {"org.apache.cassandra.locator.OldNetworkTopologyStrategy", "dc1", "3",
		"Unable to find replication strategy class "
		"'org.apache.cassandra.locator.OldNetworkTopologyStrategy'"},
	    {"Foo", "dc1", "3",
		"Unable to find replication strategy class 'org.apache.cassandra.locator.Foo'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct keyspace_metadata *keyspace =
		    ring_keyspace(cases[i].class_name, cases[i].key, cases[i].value, NULL);
		struct replication_strategy strategy;
		struct arena arena;
		struct error err;

		arena_init(&arena, 1024);
		ck_assert_int_ne(
		    replication_parse(&keyspace->replication, &arena, &strategy, &err), 0);
		ck_assert_int_eq(err.code, ERROR_CONFIG);
		ck_assert_msg(strstr(err.text, cases[i].text) != NULL, "%s", err.text);
		arena_fini(&arena);
		keyspace_unref(keyspace);
	}
}
END_TEST

/* ---- Properties by seed -------------------------------------------------------------------- */

static const char *const datacenter_names[] = {"dc1", "dc2", "dc3"};
static const char *const rack_names[] = {"r1", "r2", "r3", "r4", "r5"};

static void
random_ring(struct ring_fixture *ring, uint64_t seed)
{
	uint32_t nodes, datacenters, racks, tokens;

	ring_fixture_init(ring, seed);
	nodes = 1 + ring_chance(ring, 20);
	datacenters = 1 + ring_chance(ring, 3);
	racks = 1 + ring_chance(ring, 5);
	tokens = 1 + ring_chance(ring, 16);
	for (uint32_t i = 0; i < nodes; i++)
		ring_add_random(ring, datacenter_names[ring_chance(ring, datacenters)],
		    rack_names[ring_chance(ring, racks)], tokens);
}

/* Some nodes join, leave, move or are replaced. */
static void
random_changes(struct ring_fixture *ring, uint32_t changes)
{
	for (uint32_t i = 0; i < changes; i++) {
		struct member *victim = &ring->members[ring_chance(ring, ring->count)];
		int64_t tokens[RING_TOKENS_MAX];
		struct member *joiner;
		bool is_joining;

		if (victim->state != MEMBER_NORMAL)
			continue;
		switch (ring_chance(ring, 4)) {
		case 0:
			victim->state = MEMBER_LEAVING;
			break;
		case 1:
			for (uint32_t n = 0; n < victim->token_count; n++)
				tokens[n] = (int64_t)ring_random(ring);
			ring_set_next_tokens(ring, victim, tokens, victim->token_count);
			victim->state = MEMBER_MOVING;
			break;
		default:
			is_joining = ring_chance(ring, 2) == 0;
			for (uint32_t n = 0; !is_joining && n < ring->count; n++)
				is_joining = ring->members[n].replaces == victim->peer;
			joiner = ring_add_random(ring, victim->datacenter,
			    rack_names[ring_chance(ring, 5)], victim->token_count);
			joiner->state = is_joining ? MEMBER_JOINING : MEMBER_REPLACING;
			if (is_joining)
				break;
			joiner->replaces = victim->peer;
			ring_set_tokens(ring, joiner, victim->tokens, victim->token_count);
		}
	}
}

static struct keyspace_metadata *
random_keyspace(struct ring_fixture *ring, struct model_factor *factors, uint32_t *factor_count)
{
	char text[3][8];

	if (ring_chance(ring, 3) == 0) {
		factors[0] = (struct model_factor){NULL, 1 + ring_chance(ring, 4)};
		*factor_count = 1;
		snprintf(text[0], sizeof(text[0]), "%u", factors[0].factor);
		return ring_keyspace("SimpleStrategy", "replication_factor", text[0], NULL);
	}
	*factor_count = 3;
	for (uint32_t i = 0; i < 3; i++) {
		factors[i] = (struct model_factor){datacenter_names[i], ring_chance(ring, 5)};
		snprintf(text[i], sizeof(text[i]), "%u", factors[i].factor);
	}
	return ring_keyspace(
	    "NetworkTopologyStrategy", "dc1", text[0], "dc2", text[1], "dc3", text[2], NULL);
}

static bool
has(const uint32_t *members, uint32_t count, uint32_t member)
{
	for (uint32_t i = 0; i < count; i++) {
		if (members[i] == member)
			return true;
	}
	return false;
}

static uint32_t
member_number(const struct ring_fixture *ring, const struct peer *peer)
{
	for (uint32_t i = 0; i < ring->count; i++) {
		if (ring->members[i].peer == peer)
			return i;
	}
	ck_abort_msg("a replica that is no member");
	return 0;
}

/* Tokens at, before and behind every boundary, and some anywhere. */
static int64_t
probe(struct ring_fixture *ring)
{
	const struct member *member = &ring->members[ring_chance(ring, ring->count)];
	int64_t token = (int64_t)ring_random(ring);

	if (member->token_count > 0 && ring_chance(ring, 4) != 0)
		token = member->tokens[ring_chance(ring, member->token_count)];
	if (member->next_token_count > 0 && ring_chance(ring, 3) == 0)
		token = member->next_tokens[ring_chance(ring, member->next_token_count)];
	return (int64_t)((uint64_t)token + ring_chance(ring, 3) - 1);
}

struct model_pending {
	const struct model_factor *factors;
	uint32_t factor_count;
	uint32_t natural[RING_NODES_MAX], pending[RING_NODES_MAX];
	uint32_t natural_count, pending_count;
};

static void
model_add_future(const struct ring_fixture *ring, struct model_pending *model,
    const struct member *change, bool leavers_go, int64_t token)
{
	static struct model_token tokens[TOKENS_ALL_MAX];
	uint32_t found[RING_NODES_MAX];
	uint32_t token_count = model_ring(ring, change, leavers_go, tokens);
	uint32_t count = model_replicas(
	    ring, tokens, token_count, model->factors, model->factor_count, token, found);

	for (uint32_t i = 0; i < count; i++) {
		if (!has(model->natural, model->natural_count, found[i]) &&
		    !has(model->pending, model->pending_count, found[i]))
			model->pending[model->pending_count++] = found[i];
	}
}

static void
model_fill(const struct ring_fixture *ring, struct model_pending *model, int64_t token)
{
	static struct model_token tokens[TOKENS_ALL_MAX];
	uint32_t token_count = model_ring(ring, NULL, false, tokens);

	model->pending_count = 0;
	model->natural_count = model_replicas(
	    ring, tokens, token_count, model->factors, model->factor_count, token, model->natural);
	for (uint32_t i = 0; i < ring->count; i++) {
		const struct member *member = &ring->members[i];

		if (member->state == MEMBER_NORMAL)
			continue;
		model_add_future(ring, model, member, false, token);
		model_add_future(
		    ring, model, member->state == MEMBER_LEAVING ? NULL : member, true, token);
	}
}

static void
check_set(struct ring_fixture *ring, const struct replica_set *set,
    const struct model_pending *model, uint64_t seed, int64_t token)
{
	ck_assert_msg(
	    set->count == model->natural_count && set->pending_count == model->pending_count,
	    "seed %llu, token %lld: %u natural and %u pending, not %u and %u",
	    (unsigned long long)seed, (long long)token, set->count, set->pending_count,
	    model->natural_count, model->pending_count);
	for (uint32_t i = 0; i < set->count + set->pending_count; i++) {
		uint32_t member = member_number(ring, set->peers[i]);

		ck_assert_msg(i < set->count ? has(model->natural, model->natural_count, member)
					     : has(model->pending, model->pending_count, member),
		    "seed %llu, token %lld, place %u", (unsigned long long)seed, (long long)token,
		    i);
		ck_assert_str_eq(set->datacenters[i], ring->members[member].datacenter);
		for (uint32_t n = 0; n < i; n++)
			ck_assert_ptr_ne(set->peers[n], set->peers[i]);
	}
}

START_TEST(test_replicas_and_pending_ones_are_the_model_s)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct model_factor factors[3];
		struct model_pending model = {.factors = factors};
		struct keyspace_metadata *keyspace;
		const struct topology *topology;
		struct ring_fixture ring;

		random_ring(&ring, seed);
		random_changes(&ring, (uint32_t)(seed % 4));
		keyspace = random_keyspace(&ring, factors, &model.factor_count);
		ring_publish(&ring);
		topology = topology_acquire(ring.holder);
		for (int i = 0; i < 50; i++) {
			int64_t token = probe(&ring);

			model_fill(&ring, &model, token);
			check_set(&ring,
			    replication_replicas(topology_replication(topology, keyspace), token),
			    &model, seed, token);
		}
		topology_release(ring.holder, topology);
		keyspace_unref(keyspace);
		ring_fixture_fini(&ring);
	}
}
END_TEST

/* The change of one node is done. */
static void
complete(struct member *members, uint32_t *count, uint32_t at)
{
	struct member *member = &members[at];
	const struct peer *gone = NULL;

	if (member->state == MEMBER_LEAVING)
		gone = member->peer;
	else if (member->state == MEMBER_REPLACING)
		gone = member->replaces;
	if (member->state == MEMBER_MOVING) {
		member->tokens = member->next_tokens;
		member->token_count = member->next_token_count;
		member->next_token_count = 0;
	}
	member->state = MEMBER_NORMAL;
	member->replaces = NULL;
	for (uint32_t i = 0; i < *count; i++) {
		if (members[i].peer == gone) {
			memmove(&members[i], &members[i + 1], (*count - i - 1) * sizeof(*members));
			(*count)--;
			break;
		}
	}
}

/*
 * What pending replicas are for: whoever is a replica once a change is done had the writes before, whichever of
 * several is done first.
 */
START_TEST(test_who_becomes_a_replica_was_pending)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct model_factor factors[3];
		uint32_t factor_count, changing = 0, done;
		struct keyspace_metadata *keyspace;
		const struct topology *before, *after;
		struct ring_fixture ring;
		struct member members[RING_NODES_MAX];
		uint32_t count;
		struct error err;

		random_ring(&ring, seed);
		keyspace = random_keyspace(&ring, factors, &factor_count);
		random_changes(&ring, 1 + (uint32_t)(seed % 3));
		for (uint32_t i = 0; i < ring.count; i++)
			changing += ring.members[i].state != MEMBER_NORMAL;
		ring_publish(&ring);
		before = topology_acquire(ring.holder);
		done = changing == 0 ? 0 : ring_chance(&ring, changing);
		count = ring.count;
		memcpy(members, ring.members, sizeof(members));
		for (uint32_t i = 0; changing > 0 && i < count; i++) {
			if (members[i].state != MEMBER_NORMAL && done-- == 0) {
				complete(members, &count, i);
				break;
			}
		}
		/* A node that replaced one which left meanwhile replaces nobody. */
		ck_assert_int_eq(topology_update(ring.holder, members, count, &err), 0);
		after = topology_acquire(ring.holder);
		for (int i = 0; i < 100; i++) {
			int64_t token = probe(&ring);
			const struct replica_set *old =
			    replication_replicas(topology_replication(before, keyspace), token);
			const struct replica_set *new =
			    replication_replicas(topology_replication(after, keyspace), token);

			for (uint32_t n = 0; n < new->count; n++) {
				bool had = false;

				for (uint32_t o = 0; o < old->count + old->pending_count; o++)
					had = had || old->peers[o] == new->peers[n];
				ck_assert_msg(had, "seed %llu, token %lld: %u missed writes",
				    (unsigned long long)seed, (long long)token,
				    new->peers[n]->endpoint.address[3]);
			}
		}
		topology_release(ring.holder, before);
		topology_release(ring.holder, after);
		keyspace_unref(keyspace);
		ring_fixture_fini(&ring);
	}
}
END_TEST

static bool
ranges_have(const struct ring_range *ranges, uint32_t count, int64_t token)
{
	for (uint32_t i = 0; i < count; i++) {
		if (token > ranges[i].left &&
		    (token <= ranges[i].right || ranges[i].right == INT64_MIN))
			return true;
	}
	return false;
}

START_TEST(test_ranges_of_a_node_are_where_it_is_a_replica)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct model_factor factors[3];
		uint32_t factor_count;
		struct keyspace_metadata *keyspace;
		const struct topology *topology;
		const struct replication *replication;
		struct ring_fixture ring;

		random_ring(&ring, seed);
		random_changes(&ring, (uint32_t)(seed % 3));
		keyspace = random_keyspace(&ring, factors, &factor_count);
		ring_publish(&ring);
		topology = topology_acquire(ring.holder);
		replication = topology_replication(topology, keyspace);
		for (uint32_t i = 0; i < ring.count; i++) {
			const struct peer *peer = ring.members[i].peer;
			struct ring_range *all, *primary, *pending;
			uint32_t all_count = replication_ranges_of(replication, peer, &all);
			uint32_t primary_count =
			    replication_primary_ranges_of(replication, peer, &primary);
			uint32_t pending_count =
			    replication_pending_ranges_of(replication, peer, &pending);

			for (uint32_t n = 1; n < all_count; n++)
				ck_assert_int_ge(all[n].left, all[n - 1].right);
			for (int p = 0; p < 30; p++) {
				int64_t token = probe(&ring);
				const struct replica_set *set =
				    replication_replicas(replication, token);
				bool is_natural = false, is_pending = false;

				if (token == INT64_MIN)
					continue;
				for (uint32_t n = 0; n < set->count; n++)
					is_natural = is_natural || set->peers[n] == peer;
				for (uint32_t n = set->count; n < set->count + set->pending_count;
				     n++)
					is_pending = is_pending || set->peers[n] == peer;
				ck_assert(ranges_have(all, all_count, token) == is_natural);
				ck_assert(ranges_have(pending, pending_count, token) == is_pending);
				ck_assert(ranges_have(primary, primary_count, token) ==
				    (set->count > 0 && set->peers[0] == peer));
			}
			free(all);
			free(primary);
			free(pending);
		}
		topology_release(ring.holder, topology);
		keyspace_unref(keyspace);
		ring_fixture_fini(&ring);
	}
}
END_TEST

START_TEST(test_local_primary_ranges_are_of_one_data_center)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		const struct topology *topology;
		struct ring_fixture ring;
		struct ring_range *ranges;
		uint32_t count;

		random_ring(&ring, seed);
		ring_publish(&ring);
		topology = topology_acquire(ring.holder);
		count = topology_local_primary_ranges(topology, &ranges);
		for (int p = 0; p < 50; p++) {
			int64_t token = probe(&ring);
			uint32_t tokens = topology_token_count(topology);
			const struct member *owner = NULL;

			/* The next token of somebody of this data center. */
			for (uint32_t i = topology_token_index(topology, token), n = 0; n < tokens;
			     i = (i + 1) % tokens, n++) {
				(void)topology_token(topology, i, &owner);
				if (strcmp(owner->datacenter,
					topology_local_datacenter(topology)) == 0)
					break;
				owner = NULL;
			}
			if (token != INT64_MIN)
				ck_assert_int_eq(ranges_have(ranges, count, token),
				    owner != NULL && owner->peer->is_local);
		}
		free(ranges);
		topology_release(ring.holder, topology);
		ring_fixture_fini(&ring);
	}
}
END_TEST

START_TEST(test_ownership_sums_up_to_the_factors)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct keyspace_metadata *keyspace =
		    ring_keyspace("NetworkTopologyStrategy", "dc1", "3", "dc2", "2", NULL);
		const struct topology *topology;
		struct ring_fixture ring;
		double owned[RING_NODES_MAX], ring_share = 0, sums[2] = {0, 0};

		ring_fixture_init(&ring, seed);
		for (int i = 0; i < 12; i++)
			ring_add_random(&ring, datacenter_names[i % 2], rack_names[i % 5], 8);
		ring_publish(&ring);
		topology = topology_acquire(ring.holder);
		topology_ownership(topology, owned);
		for (uint32_t i = 0; i < 12; i++)
			ring_share += owned[i];
		ck_assert_double_eq_tol(ring_share, 1.0, 1e-9);
		replication_ownership(topology_replication(topology, keyspace), owned);
		for (uint32_t i = 0; i < 12; i++) {
			ck_assert_double_le(owned[i], 1.0 + 1e-9);
			sums[strcmp(topology_member(topology, i)->datacenter, "dc1") != 0] +=
			    owned[i];
		}
		ck_assert_double_eq_tol(sums[0], 3.0, 1e-9);
		ck_assert_double_eq_tol(sums[1], 2.0, 1e-9);
		topology_release(ring.holder, topology);
		keyspace_unref(keyspace);
		ring_fixture_fini(&ring);
	}
}
END_TEST

/* ---- Snapshots ----------------------------------------------------------------------------- */

START_TEST(test_members_are_found)
{
	const struct topology *topology;
	struct ring_fixture ring;
	struct endpoint stranger = {.address = {10, 0, 0, 1}, .size = 4, .port = 7000};
	const struct member *owner;
	const char *const *names;
	struct uuid nobody = {{0}};
	struct replication_place *places;
	struct arena arena;

	ring_fixture_init(&ring, 5);
	topology_holder_set_local(ring.holder, "dc2", "r7");
	for (int i = 0; i < 6; i++)
		ring_add_random(&ring, datacenter_names[i % 2], rack_names[i % 3], 4);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	ck_assert_uint_eq(topology_member_count(topology), 6);
	ck_assert_uint_eq(topology_token_count(topology), 24);
	for (uint32_t i = 0; i < 6; i++) {
		const struct member *member = topology_find(topology, ring.members[i].peer);

		ck_assert_ptr_eq(member, topology_find_host(topology, &ring.members[i].host_id));
		ck_assert_ptr_eq(member->peer, ring.members[i].peer);
		for (uint32_t n = 1; n < member->token_count; n++)
			ck_assert_int_lt(member->tokens[n - 1], member->tokens[n]);
	}
	for (uint32_t i = 0; i < 24; i++) {
		int64_t token = topology_token(topology, i, &owner);

		ck_assert_uint_eq(topology_token_index(topology, token), i);
		ck_assert_uint_eq(topology_token_index(topology, token + 1), (i + 1) % 24);
	}
	ck_assert_ptr_null(topology_find(topology, peers_get(ring.peers, &stranger)));
	ck_assert_ptr_null(topology_datacenter(topology, peers_get(ring.peers, &stranger)));
	ck_assert_ptr_null(topology_find_host(topology, &nobody));
	ck_assert_str_eq(topology_local_datacenter(topology), "dc2");
	ck_assert_str_eq(topology_local_rack(topology), "r7");
	ck_assert_ptr_eq(topology_local_datacenter(topology),
	    topology_datacenter(topology, ring.members[1].peer));
	ck_assert_uint_eq(topology_datacenters(topology, &names), 2);
	ck_assert_str_eq(names[0], "dc1");
	ck_assert_str_eq(names[1], "dc2");
	topology_release(ring.holder, topology);
	topology_holder_set_local(ring.holder, "dc9", "r1");
	topology = topology_acquire(ring.holder);
	arena_init(&arena, 1024);
	ck_assert_uint_eq(topology_places(topology, &arena, &places), 3);
	ck_assert_str_eq(places[1].datacenter, "dc2");
	ck_assert_uint_eq(places[1].node_count, 3);
	ck_assert_str_eq(places[2].datacenter, "dc9");
	ck_assert_uint_eq(places[2].node_count, 0);
	arena_fini(&arena);
	topology_release(ring.holder, topology);
	ring_fixture_fini(&ring);
}
END_TEST

START_TEST(test_one_token_of_two_nodes_is_refused)
{
	const struct topology *topology;
	struct ring_fixture ring;
	struct error err;

	ring_fixture_init(&ring, 1);
	add_with_token(&ring, "dc1", "r1", 0);
	ring_publish(&ring);
	add_with_token(&ring, "dc1", "r1", 0);
	ck_assert_int_ne(topology_update(ring.holder, ring.members, ring.count, &err), 0);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_str_eq(err.text, "token 0 belongs to 127.0.1.1:7000 and to 127.0.1.2:7000");
	topology = topology_acquire(ring.holder);
	ck_assert_uint_eq(topology_member_count(topology), 1);
	topology_release(ring.holder, topology);
	/* One that joins may claim it: who is right is decided elsewhere, nothing is torn. */
	ring.members[1].state = MEMBER_JOINING;
	ring_publish(&ring);
	ring_fixture_fini(&ring);
}
END_TEST

START_TEST(test_a_snapshot_stays_as_it_was)
{
	struct keyspace_metadata *keyspace =
	    ring_keyspace("SimpleStrategy", "replication_factor", "2", NULL);
	const struct topology *held[20];
	struct ring_fixture ring;

	ring_fixture_init(&ring, 3);
	for (uint32_t i = 0; i < 20; i++) {
		ring_add_random(&ring, "dc1", "r1", 4);
		ring_publish(&ring);
		held[i] = topology_acquire(ring.holder);
	}
	for (uint32_t i = 0; i < 20; i++) {
		ck_assert_uint_eq(topology_member_count(held[i]), i + 1);
		ck_assert_uint_eq(
		    replication_replicas(topology_replication(held[i], keyspace), 5)->count,
		    i == 0 ? 1 : 2);
		if (i > 0)
			ck_assert_uint_gt(topology_version(held[i]), topology_version(held[i - 1]));
	}
	for (uint32_t i = 0; i < 20; i++)
		topology_release(ring.holder, held[i]);
	keyspace_unref(keyspace);
	ring_fixture_fini(&ring);
}
END_TEST

struct snapshot_reader {
	struct topology_holder *holder;
	struct keyspace_metadata *keyspace;
	atomic_bool *is_stopping;
	uint64_t reads;
};

static void *
snapshot_reader_run(void *argument)
{
	struct snapshot_reader *reader = argument;
	uint64_t last = 0;

	do {
		const struct topology *topology = topology_acquire(reader->holder);
		const struct replica_set *set = replication_replicas(
		    topology_replication(topology, reader->keyspace), (int64_t)reader->reads);

		ck_assert_uint_eq(set->count, 2);
		ck_assert_uint_ge(topology_version(topology), last);
		last = topology_version(topology);
		reader->reads++;
		topology_release(reader->holder, topology);
	} while (!atomic_load_explicit(reader->is_stopping, memory_order_relaxed));
	return NULL;
}

START_TEST(test_readers_need_no_lock)
{
	struct keyspace_metadata *keyspace =
	    ring_keyspace("SimpleStrategy", "replication_factor", "2", NULL);
	atomic_bool is_stopping = false;
	struct snapshot_reader readers[3];
	pthread_t threads[3];
	struct ring_fixture ring;

	ring_fixture_init(&ring, 3);
	for (int i = 0; i < 4; i++)
		ring_add_random(&ring, "dc1", "r1", 4);
	ring_publish(&ring);
	for (int i = 0; i < 3; i++) {
		readers[i] = (struct snapshot_reader){ring.holder, keyspace, &is_stopping, 0};
		pthread_create(&threads[i], NULL, snapshot_reader_run, &readers[i]);
	}
	for (int i = 0; i < 300; i++) {
		ring.members[i % 4].state = i % 3 == 0 ? MEMBER_LEAVING : MEMBER_NORMAL;
		ring_publish(&ring);
	}
	atomic_store(&is_stopping, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_uint_gt(readers[i].reads, 0);
	}
	keyspace_unref(keyspace);
	ring_fixture_fini(&ring);
}
END_TEST

/* ---- Levels -------------------------------------------------------------------------------- */

START_TEST(test_levels_ask_for_what_cassandra_asks)
{
	struct keyspace_metadata *network =
	    ring_keyspace("NetworkTopologyStrategy", "dc1", "3", "dc2", "2", "dc3", "1", NULL);
	struct keyspace_metadata *simple =
	    ring_keyspace("SimpleStrategy", "replication_factor", "5", NULL);
	static const struct {
		enum consistency level;
		int32_t network, simple;
	} cases[] = {{CONSISTENCY_ANY, 1, 1}, {CONSISTENCY_ONE, 1, 1}, {CONSISTENCY_TWO, 2, 2},
	    {CONSISTENCY_THREE, 3, 3}, {CONSISTENCY_QUORUM, 4, 3}, {CONSISTENCY_ALL, 6, 5},
	    {CONSISTENCY_LOCAL_ONE, 1, 1}, {CONSISTENCY_LOCAL_QUORUM, 2, 3},
	    {CONSISTENCY_EACH_QUORUM, 2 + 2 + 1, 3}, {CONSISTENCY_SERIAL, 4, 3},
	    {CONSISTENCY_LOCAL_SERIAL, 2, 3}};
	const struct topology *topology;
	struct ring_fixture ring;

	ring_fixture_init(&ring, 1);
	topology_holder_set_local(ring.holder, "dc1", "r1");
	topology = topology_acquire(ring.holder);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct replication *replication = topology_replication(topology, network);

		ck_assert_int_eq(
		    replication_block_for(replication, cases[i].level), cases[i].network);
		replication = topology_replication(topology, simple);
		ck_assert_int_eq(
		    replication_block_for(replication, cases[i].level), cases[i].simple);
	}
	ck_assert_int_eq(consistency_block_for(CONSISTENCY_LOCAL_QUORUM,
			     topology_replication(topology, network), "dc3"),
	    1);
	topology_release(ring.holder, topology);
	keyspace_unref(network);
	keyspace_unref(simple);
	ring_fixture_fini(&ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("topology");
	TCase *tcase = tcase_create("topology");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_a_peer_is_one_object_for_its_endpoint);
	tcase_add_test(tcase, test_simple_strategy_takes_the_next_nodes_clockwise);
	tcase_add_test(tcase, test_network_topology_spreads_over_racks);
	tcase_add_test(tcase, test_local_and_everywhere);
	tcase_add_test(tcase, test_options_that_are_wrong_are_named);
	tcase_add_test(tcase, test_replicas_and_pending_ones_are_the_model_s);
	tcase_add_test(tcase, test_who_becomes_a_replica_was_pending);
	tcase_add_test(tcase, test_ranges_of_a_node_are_where_it_is_a_replica);
	tcase_add_test(tcase, test_local_primary_ranges_are_of_one_data_center);
	tcase_add_test(tcase, test_ownership_sums_up_to_the_factors);
	tcase_add_test(tcase, test_members_are_found);
	tcase_add_test(tcase, test_one_token_of_two_nodes_is_refused);
	tcase_add_test(tcase, test_a_snapshot_stays_as_it_was);
	tcase_add_test(tcase, test_readers_need_no_lock);
	tcase_add_test(tcase, test_levels_ask_for_what_cassandra_asks);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
