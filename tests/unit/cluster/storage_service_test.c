/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a simulated world that join a ring: tokens, host ids, addresses, what clients are told. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/storage_service.h"
#include "tests/sim/world/world.h"

enum { NODES_MAX = 8, TOKENS = 4, EVENTS_MAX = 64, STREAMS_MAX = 16 };

/* What a node keeps on its disk, and its parts while it is up. */
struct member_node {
	struct world_node *node;
	struct topology_holder *holder;
	struct snitch *snitch;
	struct gossip *gossip;
	struct storage_service *service;
	struct service_wait wait;
	bool is_done, has_failed;
	struct error err;

	/* system.local */
	struct uuid host_id;
	int32_t generation;
	enum bootstrap_state bootstrapped;
	int64_t tokens[TOKENS];
	uint32_t token_count;
	/* system.peers: by the peer's index */
	bool is_saved[NODES_MAX];
	struct service_peer saved[NODES_MAX];

	char events[EVENTS_MAX][48];
	uint32_t event_count;
};

struct ring {
	struct world *world;
	struct member_node nodes[NODES_MAX];
	uint32_t seed_count;
	bool has_no_data;
	bool auto_bootstrap, join_ring;
	uint32_t streams; /* bootstraps that were asked for */
	struct service_wait *waits[STREAMS_MAX];
	struct service_movement movements[STREAMS_MAX];
	bool is_kept; /* no node may leave */
	void (*tune)(struct storage_service_options *options, uint32_t index);
};

static struct ring ring;

static struct member_node *
ring_of(void *context)
{
	return context;
}

static uint32_t
ring_index(const struct endpoint *endpoint)
{
	for (uint32_t i = 0; i < NODES_MAX; i++)
		if (ring.nodes[i].node != NULL &&
		    endpoint_equal(&ring.nodes[i].node->endpoint, endpoint))
			return i;
	ck_abort_msg("a node of nowhere");
	return 0;
}

/* ---- system tables and the rest of a server ---- */

static int
ring_save_local(void *context, enum bootstrap_state state, const int64_t *tokens, uint32_t count,
    struct error *err)
{
	struct member_node *member = ring_of(context);

	(void)err;
	member->bootstrapped = state;
	ck_assert_uint_le(count, TOKENS);
	if (count > 0) {
		memcpy(member->tokens, tokens, count * sizeof(*tokens));
		member->token_count = count;
	}
	return 0;
}

static void
ring_save_peer(void *context, const struct service_peer *peer)
{
	struct member_node *member = ring_of(context);
	uint32_t index = ring_index(&peer->endpoint);
	struct service_peer *saved = &member->saved[index];

	ck_assert(peer->has_host_id);
	ck_assert_uint_eq(peer->token_count, TOKENS);
	free((int64_t *)saved->tokens);
	*saved = *peer;
	saved->datacenter = saved->rack = saved->release_version = NULL;
	saved->tokens =
	    memcpy(xcalloc(TOKENS, sizeof(int64_t)), peer->tokens, TOKENS * sizeof(int64_t));
	member->is_saved[index] = true;
}

static void
ring_remove_peer(void *context, const struct endpoint *endpoint)
{
	ring_of(context)->is_saved[ring_index(endpoint)] = false;
}

static void
ring_tell(void *context, enum service_event event, struct peer *peer, struct endpoint native)
{
	static const char *const names[] = {"new", "removed", "up", "down"};
	struct member_node *member = ring_of(context);

	ck_assert_uint_eq(native.port, 9042);
	ck_assert_uint_lt(member->event_count, EVENTS_MAX);
	snprintf(member->events[member->event_count++], sizeof(member->events[0]), "%s %u",
	    names[event], ring_index(&peer->endpoint));
}

static int
ring_allocate(void *context, const struct topology *topology, int64_t *tokens, uint32_t count,
    struct error *err)
{
	(void)topology;
	(void)err;
	for (uint32_t i = 0; i < count; i++)
		tokens[i] = (int64_t)env_random_u64(ring_of(context)->node->env);
	return 0;
}

static void
ring_stream(void *context, const struct service_movement *movement, struct service_wait *wait)
{
	(void)context;
	ck_assert_uint_lt(ring.streams, STREAMS_MAX);
	ring.movements[ring.streams] = *movement;
	ring.waits[ring.streams++] = wait;
}

static bool
ring_has_data(void *context)
{
	(void)context;
	return !ring.has_no_data;
}

static int
ring_may_leave(void *context, const struct topology *topology, struct error *err)
{
	(void)context;
	(void)topology;
	return ring.is_kept
	    ? error_set(err, ERROR_INVALID, "Not enough live nodes to maintain replication factor")
	    : 0;
}

/* All others that are up. */
static uint32_t
ring_gainers(void *context, struct peer *peer, struct peer ***out)
{
	struct member_node *member = ring_of(context);
	uint32_t count = 0;

	*out = xcalloc(NODES_MAX, sizeof(struct peer *));
	for (uint32_t i = 0; i < peers_count(member->node->peers); i++) {
		struct peer *each = peers_at(member->node->peers, i);

		if (each != peer && (each->is_local || atomic_load(&each->is_alive)))
			(*out)[count++] = each;
	}
	return count;
}

static int
ring_save_host_id(void *context, const struct uuid *host_id, struct error *err)
{
	(void)err;
	ring_of(context)->host_id = *host_id;
	return 0;
}

static const struct storage_service_ops ring_ops = {ring_save_local, ring_save_host_id,
    ring_save_peer, ring_remove_peer, ring_tell, ring_allocate, ring_stream, ring_has_data,
    ring_may_leave, ring_gainers};

static void
ring_done(struct service_wait *wait, const struct error *err)
{
	struct member_node *member =
	    (struct member_node *)((char *)wait - offsetof(struct member_node, wait));

	member->is_done = true;
	member->has_failed = err != NULL;
	if (err != NULL)
		member->err = *err;
	else
		storage_service_set_rpc_ready(member->service, true);
}

/* ---- a node's life ---- */

static void
ring_make_service(struct member_node *member, uint32_t index)
{
	struct storage_service_options options = {
	    .host_id = member->host_id,
	    .generation = member->generation,
	    .release_version = "4.1.8",
	    .sstable_versions = "big-nb",
	    .net_version = 12,
	    .native = member->node->endpoint,
	    .internal = member->node->endpoint,
	    .bootstrapped = member->bootstrapped,
	    .saved_tokens = member->tokens,
	    .saved_token_count = member->token_count,
	    .num_tokens = TOKENS,
	    .auto_bootstrap = ring.auto_bootstrap,
	    .join_ring = ring.join_ring,
	    .messaging = member->node->messaging,
	    .consistent_rangemovement = true,
	    .ring_delay_ns = 2 * WORLD_S,
	};

	options.native.port = 9042;
	if (ring.tune != NULL)
		ring.tune(&options, index);
	member->service = storage_service_new(&member->node->cluster, member->node->peers,
	    member->gossip, member->holder, member->snitch, &options, &ring_ops, member);
}

static void *
ring_start(struct world_node *node, void *context)
{
	struct snitch_config snitch = snitch_config_default;
	struct member_node *member = &ring.nodes[node->index];
	struct endpoint seeds[NODES_MAX];
	struct gossip_options options;
	struct error err;

	(void)context;
	member->node = node;
	for (uint32_t i = 0; i < ring.seed_count; i++)
		seeds[i] = world_node(ring.world, i)->endpoint;
	member->holder = topology_holder_new(node->peers);
	ck_assert_int_eq(snitch_new(&snitch, node->env, node->peers, &member->snitch, &err), 0);
	gossip_options_init(&options);
	options.cluster_name = "ring";
	options.partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
	options.seeds = seeds;
	options.seed_count = ring.seed_count;
	options.ring_delay_ns = 10 * WORLD_S;
	options.is_member = storage_service_is_member;
	options.context = member->holder;
	member->gossip = gossip_new(&node->cluster, node->messaging, node->peers, &options);
	member->generation = gossip_next_generation(member->generation, env_wall_us(node->env));
	if (uuid_equal(&member->host_id, &(struct uuid){{0}}))
		env_random(node->env, member->host_id.bytes, sizeof(member->host_id.bytes));
	ring_make_service(member, node->index);
	for (uint32_t i = 0; i < NODES_MAX; i++)
		if (member->is_saved[i] && i != node->index)
			storage_service_add_saved(member->service,
			    peers_get(node->peers, &member->saved[i].endpoint), &member->saved[i]);
	member->is_done = member->has_failed = false;
	member->event_count = 0;
	member->wait.on_done = ring_done;
	storage_service_start(member->service, &member->wait);
	return member;
}

static void
ring_stop(struct world_node *node, void *parts, void *context)
{
	struct member_node *member = parts;

	(void)node;
	(void)context;
	storage_service_free(member->service);
	gossip_free(member->gossip);
	snitch_free(member->snitch);
	topology_holder_free(member->holder);
	member->service = NULL;
}

static void
ring_new(uint32_t count, uint64_t seed)
{
	static const struct world_ops ops = {.start = ring_start, .stop = ring_stop};
	struct world_options options = {.seed = seed,
	    .node_count = count,
	    .faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 20 * WORLD_MS},
	    .skew_max_us = 2000};

	memset(&ring, 0, sizeof(ring));
	ring.seed_count = 1;
	ring.join_ring = true;
	ring.world = world_new(&options, &ops, NULL);
	for (uint32_t i = 0; i < count; i++)
		ring.nodes[i].node = world_node(ring.world, i);
}

static void
ring_free(void)
{
	world_free(ring.world);
	for (uint32_t i = 0; i < NODES_MAX; i++)
		for (uint32_t j = 0; j < NODES_MAX; j++)
			free((int64_t *)ring.nodes[i].saved[j].tokens);
}

/* ---- what is to be seen ---- */

static uint32_t
ring_members(uint32_t index)
{
	struct member_node *member = &ring.nodes[index];
	const struct topology *topology = topology_acquire(member->holder);
	uint32_t count = topology_member_count(topology);

	topology_release(member->holder, topology);
	return count;
}

static uint32_t
ring_tokens(uint32_t index)
{
	struct member_node *member = &ring.nodes[index];
	const struct topology *topology = topology_acquire(member->holder);
	uint32_t count = topology_token_count(topology);

	topology_release(member->holder, topology);
	return count;
}

/* All that are up have joined and know `context` members. */
static bool
ring_is_whole(struct world *world, void *context)
{
	(void)world;
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		struct member_node *member = &ring.nodes[i];

		if (member->service == NULL)
			continue;
		if (!member->is_done || member->has_failed ||
		    ring_members(i) != *(const uint32_t *)context)
			return false;
	}
	return true;
}

static void
ring_wait_whole(uint32_t count)
{
	if (world_run_until(ring.world, ring_is_whole, &count, 50 * WORLD_MS, 120 * WORLD_S))
		return;
	world_tell(ring.world, stderr);
	ck_abort_msg("the ring did not become one of %u", count);
}

static uint32_t
ring_heard(uint32_t index, const char *event)
{
	struct member_node *member = &ring.nodes[index];
	uint32_t count = 0;

	for (uint32_t i = 0; i < member->event_count; i++)
		count += strcmp(member->events[i], event) == 0;
	return count;
}

/* ---- tests ---- */

START_TEST(test_nodes_find_each_other_and_keep_what_they_know)
{
	ring_new(3, (uint64_t)_i + 1);
	for (uint32_t i = 0; i < 3; i++)
		world_start(ring.world, i);
	ring_wait_whole(3);
	world_run(ring.world, 5 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(ring.nodes[i].bootstrapped, BOOTSTRAP_COMPLETED);
		ck_assert_uint_eq(ring_tokens(i), 3 * TOKENS);
		for (uint32_t j = 0; j < 3; j++)
			ck_assert_int_eq(ring.nodes[i].is_saved[j], i != j);
	}
	/* NEW before UP, once each. */
	ck_assert_uint_eq(ring.nodes[0].event_count, 4);
	ck_assert_uint_eq(ring_heard(0, "new 1") + ring_heard(0, "new 2"), 2);
	ck_assert_uint_eq(ring_heard(0, "up 1") + ring_heard(0, "up 2"), 2);
	ring_free();
}
END_TEST

START_TEST(test_a_restarted_node_keeps_tokens_and_is_no_new_one)
{
	int64_t before[TOKENS];

	ring_new(3, 7);
	for (uint32_t i = 0; i < 3; i++)
		world_start(ring.world, i);
	ring_wait_whole(3);
	world_run(ring.world, 3 * WORLD_S);
	memcpy(before, ring.nodes[2].tokens, sizeof(before));
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 40 * WORLD_S);
	ck_assert_uint_eq(ring_heard(0, "down 2"), 1);
	ck_assert_uint_eq(ring_members(0), 3);
	world_start(ring.world, 2);
	ring_wait_whole(3);
	world_run(ring.world, 3 * WORLD_S);
	ck_assert_int_eq(memcmp(before, ring.nodes[2].tokens, sizeof(before)), 0);
	ck_assert_uint_eq(ring_heard(0, "new 2"), 1);
	ck_assert_uint_eq(ring_heard(0, "up 2"), 2);
	ck_assert_uint_eq(ring_heard(0, "removed 2"), 0);
	ring_free();
}
END_TEST

START_TEST(test_a_node_under_another_address_is_the_same_node)
{
	ring_new(4, 11);
	for (uint32_t i = 0; i < 3; i++)
		world_start(ring.world, i);
	ring_wait_whole(3);
	world_run(ring.world, 3 * WORLD_S);
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 2 * WORLD_S);
	/* The disk of node 2 in the machine of node 3. */
	ring.nodes[3].host_id = ring.nodes[2].host_id;
	ring.nodes[3].bootstrapped = BOOTSTRAP_COMPLETED;
	ring.nodes[3].token_count = TOKENS;
	memcpy(ring.nodes[3].tokens, ring.nodes[2].tokens, sizeof(ring.nodes[2].tokens));
	ring.nodes[3].generation = ring.nodes[2].generation;
	world_start(ring.world, 3);
	world_run(ring.world, 20 * WORLD_S);
	ring_wait_whole(3);
	ck_assert_uint_eq(ring_tokens(0), 3 * TOKENS);
	ck_assert(!ring.nodes[0].is_saved[2]);
	ck_assert(ring.nodes[0].is_saved[3]);
	ck_assert_uint_eq(ring_heard(0, "removed 2"), 1);
	ck_assert_uint_eq(ring_heard(0, "new 3"), 1);
	ring_free();
}
END_TEST

START_TEST(test_an_address_in_use_is_refused)
{
	ring_new(2, 13);
	world_start(ring.world, 0);
	world_start(ring.world, 1);
	ring_wait_whole(2);
	world_run(ring.world, 3 * WORLD_S);
	world_crash(ring.world, 1, WORLD_KILL);
	/* An empty disk at the same address. */
	memset(&ring.nodes[1].host_id, 0, sizeof(ring.nodes[1].host_id));
	ring.nodes[1].token_count = 0;
	ring.nodes[1].bootstrapped = BOOTSTRAP_NEEDED;
	world_start(ring.world, 1);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(ring.nodes[1].is_done && ring.nodes[1].has_failed);
	ck_assert_int_eq(ring.nodes[1].err.code, ERROR_CONFIG);
	ck_assert_ptr_nonnull(strstr(ring.nodes[1].err.text, "already exists, cancelling join"));
	ring_free();
}
END_TEST

/* ---- changes of the ring ---------------------------------------------------------------------------- */

static void
ring_end_stream(uint32_t index, const struct error *err)
{
	ck_assert_uint_lt(index, ring.streams);
	ring.waits[index]->on_done(ring.waits[index], err);
}

/* How node `index` sees another one; -1: not at all. */
static int
ring_sees(uint32_t index, uint32_t other)
{
	struct member_node *member = &ring.nodes[index];
	const struct topology *topology = topology_acquire(member->holder);
	struct peer *peer = peers_find(member->node->peers, &ring.nodes[other].node->endpoint);
	const struct member *found = peer == NULL ? NULL : topology_find(topology, peer);
	int state = found == NULL ? -1 : (int)found->state;

	topology_release(member->holder, topology);
	return state;
}

struct asked {
	struct service_wait wait; /* first */
	bool is_done, has_failed;
	struct error err;
};

static void
asked_done(struct service_wait *wait, const struct error *err)
{
	struct asked *asked = (struct asked *)wait;

	ck_assert(!asked->is_done);
	asked->is_done = true;
	asked->has_failed = err != NULL;
	if (err != NULL)
		asked->err = *err;
}

static const struct asked asked_new = {.wait = {asked_done}};

static void
ring_up(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		world_start(ring.world, i);
		ring_wait_whole(i + 1);
	}
}

START_TEST(test_a_node_leaves_when_its_data_is_given_away)
{
	struct asked asked = asked_new, other;
	struct error failure;

	ring_new(3, 31);
	ring_up(3);
	ring.is_kept = true;
	storage_service_decommission(ring.nodes[2].service, false, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.is_done && asked.has_failed);
	ck_assert_ptr_nonnull(strstr(asked.err.text, "replication factor"));

	asked = asked_new;
	storage_service_decommission(ring.nodes[2].service, true, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert_int_eq(storage_service_mode(ring.nodes[2].service), STORAGE_LEAVING);
	ck_assert_int_eq(ring_sees(0, 2), MEMBER_LEAVING);
	ck_assert_uint_eq(ring.streams, 0); /* the others have to know first */
	world_run(ring.world, 2 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert_int_eq(ring.movements[0].operation, STREAM_UNBOOTSTRAP);
	error_set(&failure, ERROR_IO, "a disk is full");
	ring_end_stream(0, &failure);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.is_done && asked.has_failed);
	ck_assert(!ring.movements[0].is_resumed);
	/* Who got some of it goes on getting copies of writes. */
	ck_assert_int_eq(storage_service_mode(ring.nodes[2].service), STORAGE_LEAVING);
	ck_assert_int_eq(ring_sees(0, 2), MEMBER_LEAVING);

	asked = asked_new;
	storage_service_decommission(ring.nodes[2].service, false, &asked.wait);
	world_run(ring.world, WORLD_S / 10);
	ck_assert_uint_eq(ring.streams, 2);
	ck_assert(ring.movements[1].is_resumed);
	other = asked_new;
	storage_service_decommission(ring.nodes[2].service, false, &other.wait);
	world_run(ring.world, WORLD_S / 10);
	ck_assert(other.has_failed);
	ck_assert_str_eq(other.err.text, "Node is still decommissioning. Check nodetool netstats.");
	ring_end_stream(1, NULL);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(asked.is_done && !asked.has_failed);
	ck_assert_int_eq(ring.nodes[2].bootstrapped, BOOTSTRAP_DECOMMISSIONED);
	ck_assert_int_eq(storage_service_mode(ring.nodes[2].service), STORAGE_DECOMMISSIONED);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(ring_sees(i, 2), -1);
	ck_assert_uint_eq(ring_heard(0, "removed 2"), 1);
	ring_free();
}
END_TEST

START_TEST(test_of_two_that_leave_at_once_one_stays)
{
	struct asked first = asked_new, second = asked_new, third = asked_new;

	ring_new(4, 52);
	ring_up(4);
	storage_service_decommission(ring.nodes[2].service, true, &second.wait);
	storage_service_decommission(ring.nodes[1].service, true, &first.wait);
	world_run(ring.world, 4 * WORLD_S);
	ck_assert(second.is_done && second.has_failed);
	ck_assert_ptr_nonnull(
	    strstr(second.err.text, "Other bootstrapping/leaving/moving nodes detected"));
	ck_assert_int_eq(storage_service_mode(ring.nodes[2].service), STORAGE_NORMAL);
	ck_assert_int_eq(ring_sees(0, 2), MEMBER_NORMAL);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert_ptr_eq(ring.movements[0].peer, peers_local(ring.nodes[1].node->peers));
	/* One that comes later is not even begun. */
	storage_service_decommission(ring.nodes[3].service, true, &third.wait);
	world_run(ring.world, WORLD_S / 10);
	ck_assert(third.has_failed);
	ck_assert_ptr_nonnull(strstr(third.err.text, "is leaving"));
	ring_end_stream(0, NULL);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(first.is_done && !first.has_failed);
	ring_free();
}
END_TEST

START_TEST(test_the_last_node_and_one_of_many_tokens_stay)
{
	struct asked asked = asked_new;

	ring_new(1, 32);
	ring_up(1);
	storage_service_decommission(ring.nodes[0].service, true, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.has_failed);
	ck_assert_str_eq(
	    asked.err.text, "no other normal nodes in the ring; decommission would be pointless");
	asked = asked_new;
	storage_service_move(ring.nodes[0].service, 5, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.has_failed);
	ck_assert_str_eq(
	    asked.err.text, "This node has more than one token and cannot be moved thusly.");
	asked = asked_new;
	storage_service_resume_bootstrap(ring.nodes[0].service, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.has_failed && asked.err.code == ERROR_INVALID);
	ring_free();
}
END_TEST

START_TEST(test_a_dead_node_is_removed_when_all_have_its_data)
{
	struct asked asked = asked_new, other = asked_new;
	struct buffer text;

	buffer_init(&text);
	ring_new(3, 33);
	ring_up(3);
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.has_failed && strstr(asked.err.text, "is alive and owns this ID") != NULL);
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 60 * WORLD_S);

	asked = asked_new;
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert_int_eq(ring_sees(1, 2), MEMBER_LEAVING);
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &other.wait);
	world_run(ring.world, 2 * WORLD_S);
	ck_assert(other.has_failed);
	ck_assert_uint_eq(ring.streams, 2);
	ck_assert_int_eq(ring.movements[0].operation, STREAM_RESTORE_REPLICA_COUNT);
	other = asked_new;
	storage_service_removal_status(ring.nodes[0].service, &text, &other.wait);
	world_run(ring.world, WORLD_S);
	buffer_put_u8(&text, '\0');
	ck_assert_ptr_nonnull(strstr((const char *)text.data,
	    "Waiting for replication confirmation from [/10.0.0.0,/10.0.0.1]."));
	ring_end_stream(0, NULL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(!asked.is_done);
	ring_end_stream(1, NULL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(asked.is_done && !asked.has_failed);
	for (uint32_t i = 0; i < 2; i++)
		ck_assert_int_eq(ring_sees(i, 2), -1);
	ck_assert_uint_eq(ring_heard(1, "removed 2"), 1);
	buffer_fini(&text);
	ring_free();
}
END_TEST

START_TEST(test_a_node_that_comes_back_is_not_removed)
{
	struct asked asked = asked_new;

	ring_new(3, 54);
	ring_up(3);
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 60 * WORLD_S);
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, 4 * WORLD_S);
	ck_assert_int_eq(ring_sees(1, 2), MEMBER_LEAVING);
	ck_assert_uint_eq(ring.streams, 2);
	ck_assert(!asked.is_done);
	world_start(ring.world, 2);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(asked.is_done && asked.has_failed);
	ck_assert_ptr_nonnull(strstr(asked.err.text, "is back in the ring and is not removed"));
	ring_end_stream(0, NULL);
	ring_end_stream(1, NULL);
	world_run(ring.world, 30 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(ring_sees(i, 2), MEMBER_NORMAL);
	ring_free();
}
END_TEST

START_TEST(test_a_removal_may_be_forced)
{
	struct asked asked = asked_new, forced = asked_new;

	ring_new(3, 34);
	ring_up(3);
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 60 * WORLD_S);
	storage_service_force_removal(ring.nodes[0].service, &forced.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(forced.has_failed);
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(!asked.is_done);
	forced = asked_new;
	storage_service_force_removal(ring.nodes[0].service, &forced.wait);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(asked.is_done && !asked.has_failed && !forced.has_failed);
	ck_assert_int_eq(ring_sees(1, 2), -1);
	/* What was on its way comes to nothing. */
	ring_end_stream(0, NULL);
	ring_end_stream(1, NULL);
	world_run(ring.world, WORLD_S);
	/* Its data are of then. */
	ring.nodes[2].is_done = false;
	world_start(ring.world, 2);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(ring.nodes[2].is_done && ring.nodes[2].has_failed);
	ck_assert_ptr_nonnull(strstr(
	    ring.nodes[2].err.text, "This node was removed from the ring while it was away"));
	ck_assert_int_eq(ring_sees(1, 2), -1);
	ring_free();
}
END_TEST

static uint32_t ring_replaced;

static void
ring_replace(struct storage_service_options *options, uint32_t index)
{
	if (index == 3)
		options->replaced = ring.nodes[ring_replaced].node->endpoint;
}

START_TEST(test_a_new_node_takes_the_place_of_a_dead_one)
{
	int64_t tokens[TOKENS];

	ring_new(4, 35);
	ring_up(3);
	memcpy(tokens, ring.nodes[2].tokens, sizeof(tokens));
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 60 * WORLD_S);
	ring.auto_bootstrap = true;
	ring.tune = ring_replace;
	ring_replaced = 2;
	world_start(ring.world, 3);
	/* The dead one is asked for an echo three times, a second each, before it counts as dead here too. */
	world_run(ring.world, 5 * WORLD_S);
	ck_assert_int_eq(ring_sees(0, 3), MEMBER_REPLACING);
	ck_assert_int_eq(ring_sees(0, 2), MEMBER_NORMAL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert(ring.movements[0].is_replacing);
	ring_end_stream(0, NULL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(ring.nodes[3].is_done && !ring.nodes[3].has_failed);
	ck_assert_int_eq(memcmp(tokens, ring.nodes[3].tokens, sizeof(tokens)), 0);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(ring_sees(i, 2), -1);
		ck_assert_int_eq(ring_sees(i, 3), MEMBER_NORMAL);
		ck_assert_uint_eq(ring_heard(i, "removed 2"), 1);
	}
	/* The dead one has nothing to come back to, long after it was forgotten too. */
	world_run(ring.world, 120 * WORLD_S);
	ring.nodes[2].is_done = false;
	world_start(ring.world, 2);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(ring.nodes[2].is_done && ring.nodes[2].has_failed);
	ck_assert_ptr_nonnull(
	    strstr(ring.nodes[2].err.text, "this node was replaced while it was away"));
	ck_assert_int_eq(ring_sees(0, 3), MEMBER_NORMAL);
	ck_assert_int_eq(ring_sees(0, 2), -1);
	ring_free();
}
END_TEST

START_TEST(test_a_live_or_unknown_node_is_not_replaced)
{
	ring_new(5, 36);
	ring_up(3);
	ring.auto_bootstrap = true;
	ring.tune = ring_replace;
	ring_replaced = 1;
	world_start(ring.world, 3);
	world_run(ring.world, 20 * WORLD_S);
	ck_assert(ring.nodes[3].has_failed);
	ck_assert_ptr_nonnull(strstr(ring.nodes[3].err.text, "Cannot replace a live node"));
	ring_free();
	ring_new(5, 37);
	ring_up(3);
	ring.auto_bootstrap = true;
	ring.tune = ring_replace;
	ring_replaced = 4;
	world_start(ring.world, 3);
	world_run(ring.world, 20 * WORLD_S);
	ck_assert(ring.nodes[3].has_failed);
	ck_assert_ptr_nonnull(strstr(ring.nodes[3].err.text, "because it doesn't exist in gossip"));
	ring_free();
}
END_TEST

START_TEST(test_where_there_is_no_data_many_join_at_once)
{
	ring_new(4, 38);
	ring_up(1);
	ring.auto_bootstrap = true;
	ring.has_no_data = true;
	for (uint32_t i = 1; i < 4; i++)
		world_start(ring.world, i);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 0);
	for (uint32_t i = 1; i < 4; i++)
		ck_assert(ring.nodes[i].is_done && !ring.nodes[i].has_failed);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < 4; k++)
			ck_assert_int_eq(ring_sees(i, k), MEMBER_NORMAL);
	ring_free();
}
END_TEST

START_TEST(test_of_two_that_join_at_once_one_does)
{
	ring_new(4, 38);
	ring_up(2);
	ring.auto_bootstrap = true;
	world_start(ring.world, 2);
	world_start(ring.world, 3);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert(!ring.nodes[2].is_done);
	ck_assert(ring.nodes[3].is_done && ring.nodes[3].has_failed);
	ck_assert_ptr_nonnull(strstr(ring.nodes[3].err.text,
	    "Other bootstrapping/leaving/moving nodes detected, cannot bootstrap while "
	    "cassandra.consistent.rangemovement is true."));
	ring_end_stream(0, NULL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(ring.nodes[2].is_done && !ring.nodes[2].has_failed);
	ring_free();
}
END_TEST

START_TEST(test_a_bootstrap_that_failed_goes_on_when_told)
{
	struct asked asked = asked_new;
	struct error failure;

	ring_new(2, 39);
	ring_up(1);
	ring.auto_bootstrap = true;
	world_start(ring.world, 1);
	world_run(ring.world, 6 * WORLD_S);
	error_set(&failure, ERROR_IO, "the node is down");
	ring_end_stream(0, &failure);
	world_run(ring.world, WORLD_S);
	ck_assert(!ring.nodes[1].is_done);
	storage_service_resume_bootstrap(ring.nodes[1].service, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert_uint_eq(ring.streams, 2);
	ck_assert(!ring.movements[0].is_resumed && ring.movements[1].is_resumed);
	ring_end_stream(1, NULL);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.is_done && !asked.has_failed);
	ck_assert(ring.nodes[1].is_done && !ring.nodes[1].has_failed);
	ring_free();
}
END_TEST

START_TEST(test_nobody_is_removed_while_another_one_joins)
{
	struct asked asked = asked_new;

	ring_new(4, 55);
	ring_up(3);
	world_crash(ring.world, 2, WORLD_KILL);
	world_run(ring.world, 60 * WORLD_S);
	ring.auto_bootstrap = true;
	world_start(ring.world, 3);
	world_run(ring.world, 6 * WORLD_S);
	ck_assert_int_eq(ring_sees(0, 3), MEMBER_JOINING);
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, WORLD_S);
	ck_assert(asked.is_done && asked.has_failed);
	ck_assert_ptr_nonnull(strstr(asked.err.text, "is joining"));
	ring_end_stream(0, NULL);
	world_run(ring.world, 5 * WORLD_S);
	asked = asked_new;
	storage_service_remove_node(ring.nodes[0].service, &ring.nodes[2].host_id, &asked.wait);
	world_run(ring.world, 4 * WORLD_S);
	ck_assert(!asked.is_done);
	ck_assert_int_eq(ring_sees(3, 2), MEMBER_LEAVING);
	for (uint32_t i = 1; i < ring.streams; i++)
		ring_end_stream(i, NULL);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(asked.is_done && !asked.has_failed);
	ring_free();
}
END_TEST

START_TEST(test_a_join_that_was_stopped_keeps_what_came)
{
	struct error failure;
	int64_t tokens[TOKENS];

	ring_new(2, 53);
	ring_up(1);
	ring.auto_bootstrap = true;
	world_start(ring.world, 1);
	world_run(ring.world, 6 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert_uint_eq(ring.nodes[1].token_count, TOKENS);
	memcpy(tokens, ring.nodes[1].tokens, sizeof(tokens));
	world_crash(ring.world, 1, WORLD_KILL);
	world_run(ring.world, WORLD_S);
	/* The ring knows it yet: it stands where it stood. */
	world_start(ring.world, 1);
	world_run(ring.world, 6 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 2);
	ck_assert(ring.movements[1].is_resumed);
	ck_assert_mem_eq(tokens, ring.nodes[1].tokens, sizeof(tokens));
	error_set(&failure, ERROR_IO, "a disk is full");
	ring_end_stream(1, &failure);
	/* Long enough to be forgotten: writes went past it. */
	world_crash(ring.world, 1, WORLD_KILL);
	world_run(ring.world, 120 * WORLD_S);
	ck_assert_int_eq(ring_sees(0, 1), -1);
	world_start(ring.world, 1);
	world_run(ring.world, 6 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 3);
	ck_assert(!ring.movements[2].is_resumed);
	ring_end_stream(2, NULL);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert(ring.nodes[1].is_done && !ring.nodes[1].has_failed);
	ring_free();
}
END_TEST

START_TEST(test_a_new_node_of_a_ring_with_data_waits_and_streams)
{
	const struct topology *topology;
	const struct member *self;

	ring_new(2, 17);
	ring.auto_bootstrap = true;
	world_start(ring.world, 0);
	ring_wait_whole(1); /* a seed does not */
	ck_assert_uint_eq(ring.streams, 0);
	world_start(ring.world, 1);
	world_run(ring.world, WORLD_S);
	ck_assert_uint_eq(ring.streams, 0); /* ring delay */
	ck_assert_int_eq(storage_service_mode(ring.nodes[1].service), STORAGE_JOINING);
	topology = topology_acquire(ring.nodes[0].holder);
	ck_assert_uint_eq(topology_member_count(topology), 2);
	self = topology_find(
	    topology, peers_find(ring.nodes[0].node->peers, &ring.nodes[1].node->endpoint));
	ck_assert_int_eq(self->state, MEMBER_JOINING);
	topology_release(ring.nodes[0].holder, topology);
	world_run(ring.world, 5 * WORLD_S);
	ck_assert_uint_eq(ring.streams, 1);
	ck_assert_int_eq(ring.nodes[1].bootstrapped, BOOTSTRAP_IN_PROGRESS);
	ck_assert(!ring.nodes[1].is_done);
	ck_assert_uint_eq(ring_heard(0, "new 1"), 0);
	ring_end_stream(0, NULL);
	ring_wait_whole(2);
	world_run(ring.world, 2 * WORLD_S);
	ck_assert_int_eq(ring.nodes[1].bootstrapped, BOOTSTRAP_COMPLETED);
	ck_assert_uint_eq(ring_heard(0, "new 1"), 1);
	ck_assert_uint_eq(ring_tokens(0), 2 * TOKENS);
	ring_free();
}
END_TEST

static const int64_t ring_one_token[TOKENS] = {1, 2, 3, 4};

static void
ring_same_tokens(struct storage_service_options *options, uint32_t index)
{
	(void)index;
	options->initial_tokens = ring_one_token;
	options->initial_token_count = TOKENS;
}

START_TEST(test_a_token_in_use_is_refused)
{
	ring_new(2, 19);
	ring.tune = ring_same_tokens;
	world_start(ring.world, 0);
	ring_wait_whole(1);
	world_start(ring.world, 1);
	world_run(ring.world, 10 * WORLD_S);
	ck_assert(ring.nodes[1].has_failed);
	ck_assert_ptr_nonnull(
	    strstr(ring.nodes[1].err.text, "Bootstrapping to existing token 1 is not allowed"));
	ring_free();
}
END_TEST

/* Two seeds that take the same tokens while they do not know of each other: the later start has them, for all. */
START_TEST(test_two_owners_of_a_token_are_decided_alike)
{
	ring_new(3, 23);
	ring.seed_count = 2;
	ring.tune = ring_same_tokens;
	world_cut_both(ring.world, 0, 1);
	world_start(ring.world, 0);
	world_run(ring.world, 3 * WORLD_S);
	world_start(ring.world, 1);
	world_run(ring.world, 20 * WORLD_S);
	ck_assert(ring.nodes[0].is_done && ring.nodes[1].is_done);
	world_join(ring.world, 0, 1);
	world_run(ring.world, 20 * WORLD_S);
	for (uint32_t i = 0; i < 2; i++) {
		struct member_node *member = &ring.nodes[i];
		const struct topology *topology = topology_acquire(member->holder);
		const struct member *owner;

		ck_assert_uint_eq(topology_token_count(topology), TOKENS);
		topology_token(topology, 0, &owner);
		ck_assert(endpoint_equal(&owner->peer->endpoint, &ring.nodes[1].node->endpoint));
		topology_release(member->holder, topology);
	}
	ring_free();
}
END_TEST

START_TEST(test_a_node_may_stay_outside_until_told)
{
	struct service_wait wait;

	ring_new(2, 29);
	world_start(ring.world, 0);
	ring_wait_whole(1);
	ring.join_ring = false;
	world_start(ring.world, 1);
	ring_wait_whole(1);
	ck_assert(!storage_service_has_joined(ring.nodes[1].service));
	ring.nodes[1].is_done = false;
	wait = ring.nodes[1].wait;
	storage_service_join(ring.nodes[1].service, &ring.nodes[1].wait);
	(void)wait;
	ring_wait_whole(2);
	ck_assert(storage_service_has_joined(ring.nodes[1].service));
	ring_free();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage_service");
	TCase *tests = tcase_create("join");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, test_nodes_find_each_other_and_keep_what_they_know, 0, 20);
	tcase_add_test(tests, test_a_restarted_node_keeps_tokens_and_is_no_new_one);
	tcase_add_test(tests, test_a_node_under_another_address_is_the_same_node);
	tcase_add_test(tests, test_an_address_in_use_is_refused);
	tcase_add_test(tests, test_a_node_leaves_when_its_data_is_given_away);
	tcase_add_test(tests, test_of_two_that_leave_at_once_one_stays);
	tcase_add_test(tests, test_the_last_node_and_one_of_many_tokens_stay);
	tcase_add_test(tests, test_a_dead_node_is_removed_when_all_have_its_data);
	tcase_add_test(tests, test_a_node_that_comes_back_is_not_removed);
	tcase_add_test(tests, test_a_removal_may_be_forced);
	tcase_add_test(tests, test_a_new_node_takes_the_place_of_a_dead_one);
	tcase_add_test(tests, test_a_live_or_unknown_node_is_not_replaced);
	tcase_add_test(tests, test_of_two_that_join_at_once_one_does);
	tcase_add_test(tests, test_where_there_is_no_data_many_join_at_once);
	tcase_add_test(tests, test_a_bootstrap_that_failed_goes_on_when_told);
	tcase_add_test(tests, test_nobody_is_removed_while_another_one_joins);
	tcase_add_test(tests, test_a_join_that_was_stopped_keeps_what_came);
	tcase_add_test(tests, test_a_new_node_of_a_ring_with_data_waits_and_streams);
	tcase_add_test(tests, test_a_token_in_use_is_refused);
	tcase_add_test(tests, test_two_owners_of_a_token_are_decided_alike);
	tcase_add_test(tests, test_a_node_may_stay_outside_until_told);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
