/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world/gossiper.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"

struct gossipers {
	struct gossipers_options options;
	struct world *world; /* owned */
	struct gossiper *nodes; /* owned */
	struct endpoint *seeds; /* owned */
};

static struct gossiper *
gossiper_of_subscriber(struct gossip_subscriber *subscriber)
{
	return (struct gossiper *)((char *)subscriber - offsetof(struct gossiper, subscriber));
}

static struct gossiper *
gossiper_of_wait(struct gossip_wait *wait)
{
	return (struct gossiper *)((char *)wait - offsetof(struct gossiper, wait));
}

/* Index of the node in the world. */
static uint32_t
gossiper_index(const struct peer *peer)
{
	const uint8_t *at = peer->endpoint.address;

	return (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void
gossiper_remember(struct gossiper *gossiper, const struct peer *peer, bool is_member)
{
	uint32_t index = gossiper_index(peer);

	/* A test may speak of nodes that the world does not have. */
	if (index < gossiper->world_size)
		gossiper->remembers[index] = is_member;
}

/* ---- What it is told ---- */

static void
gossiper_on_join(struct gossip_subscriber *subscriber, struct peer *peer)
{
	(void)peer;
	gossiper_of_subscriber(subscriber)->joins++;
}

static void
gossiper_on_change(struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed)
{
	assert(changed != 0 || peer->is_local);
	if (!peer->is_local)
		gossiper_of_subscriber(subscriber)->changes++;
}

static void
gossiper_on_alive(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct gossiper *gossiper = gossiper_of_subscriber(subscriber);

	assert(!peer->is_local);
	gossiper->alives++;
	gossiper_remember(gossiper, peer, true);
}

static void
gossiper_on_dead(struct gossip_subscriber *subscriber, struct peer *peer)
{
	assert(!peer->is_local);
	gossiper_of_subscriber(subscriber)->deads++;
}

static void
gossiper_on_remove(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct gossiper *gossiper = gossiper_of_subscriber(subscriber);

	gossiper->removes++;
	gossiper_remember(gossiper, peer, false);
}

static void
gossiper_on_restart(struct gossip_subscriber *subscriber, struct peer *peer)
{
	(void)peer;
	gossiper_of_subscriber(subscriber)->restarts++;
}

/* ---- Its life ---- */

static void
gossiper_settled(struct gossip_wait *wait, const struct error *err)
{
	struct gossiper *gossiper = gossiper_of_wait(wait);

	assert(err == NULL);
	gossiper->has_settled = true;
	gossiper->settled_ns = world_now(gossiper->node->world);
}

static void
gossiper_set_states(struct gossiper *gossiper)
{
	struct node_status status = {.kind = NODE_STATUS_NORMAL, .token = gossiper->token};
	char host_id[UUID_TEXT_SIZE];
	struct uuid id = {{1, 2, 3, 4, 5, 6, 0x40, 7, 0x80}};
	struct gossip_change changes[] = {
	    {STATE_HOST_ID, slice_null},
	    {STATE_DC, slice_of_string(gossiper->node->index % 2 == 0 ? "dc1" : "dc2")},
	    {STATE_RACK, slice_of_string("rack1")},
	    {STATE_SCHEMA, slice_of_string(gossiper->schema)},
	    {STATE_RPC_READY, slice_of_string("true")},
	};

	store_u32(id.bytes + 12, gossiper->node->index);
	uuid_format(&id, host_id);
	changes[0].value = slice_of_string(host_id);
	gossip_set(gossiper->gossip, changes, sizeof(changes) / sizeof(changes[0]));
	gossip_set_status(gossiper->gossip, &status, &gossiper->token, 1);
}

static void
gossiper_keep_answer(struct gossiper *gossiper)
{
	struct peers *peers = gossiper->node->peers;
	struct slice rack = gossip_shadow_value(gossiper->gossip, peers_local(peers), STATE_RACK);

	gossiper->shadow_known = 0;
	for (uint32_t i = 0; i < peers_count(peers); i++)
		gossiper->shadow_known += gossip_shadow_knows(gossiper->gossip, peers_at(peers, i));
	snprintf(gossiper->shadow_rack, sizeof(gossiper->shadow_rack), "%.*s", (int)rack.size,
	    rack.data == NULL ? "" : (const char *)rack.data);
}

static void
gossiper_shadow_over(struct gossip_wait *wait, const struct error *err)
{
	struct gossiper *gossiper = gossiper_of_wait(wait);

	if (err != NULL) {
		gossiper->has_failed = true;
		world_note(gossiper->node->world, "%u: %s", gossiper->node->index, err->text);
		return;
	}
	gossiper_keep_answer(gossiper);
	gossiper->generation =
	    gossip_next_generation(gossiper->generation, env_wall_us(gossiper->node->env));
	gossiper_set_states(gossiper);
	gossip_start(gossiper->gossip, gossiper->generation);
	gossiper->has_joined = true;
	gossiper->joined_ns = world_now(gossiper->node->world);
	gossiper->wait = (struct gossip_wait){.on_done = gossiper_settled};
	gossip_settle(gossiper->gossip, &gossiper->wait);
}

static void *
gossiper_start(struct world_node *node, void *context)
{
	struct gossipers *all = context;
	struct gossiper *gossiper = &all->nodes[node->index];
	struct gossip_options options;

	gossip_options_init(&options);
	options.cluster_name = "Simulated";
	options.partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
	options.seeds = all->seeds;
	options.seed_count = all->options.seed_count;
	if (all->options.tune != NULL)
		all->options.tune(&options, node->index);
	gossiper->gossip = gossip_new(&node->cluster, node->messaging, node->peers, &options);
	gossiper->has_joined = gossiper->has_settled = gossiper->has_failed = false;
	gossiper->joins = gossiper->changes = gossiper->alives = gossiper->deads =
	    gossiper->removes = gossiper->restarts = 0;
	gossiper->started_ns = world_now(node->world);
	gossiper->subscriber = (struct gossip_subscriber){
	    .on_join = gossiper_on_join,
	    .on_change = gossiper_on_change,
	    .on_alive = gossiper_on_alive,
	    .on_dead = gossiper_on_dead,
	    .on_remove = gossiper_on_remove,
	    .on_restart = gossiper_on_restart,
	};
	gossip_subscribe(gossiper->gossip, &gossiper->subscriber);
	for (uint32_t i = 0; i < all->options.world.node_count; i++) {
		struct gossiper *other = &all->nodes[i];

		if (gossiper->remembers[i] && i != node->index)
			gossip_add_saved(gossiper->gossip,
			    peers_get(node->peers, &other->node->endpoint), NULL, "dc1", "rack1",
			    &other->token, 1);
	}
	gossiper->wait = (struct gossip_wait){.on_done = gossiper_shadow_over};
	gossip_shadow_round(gossiper->gossip, &gossiper->wait);
	return gossiper;
}

static void
gossiper_stop(struct world_node *node, void *parts, void *context)
{
	struct gossiper *gossiper = parts;

	(void)node;
	(void)context;
	gossip_free(gossiper->gossip);
	gossiper->gossip = NULL;
	gossiper->has_joined = false;
}

static void
gossiper_refused(struct world_node *node, struct peer *peer, void *context)
{
	struct gossipers *all = context;

	if (all->options.tells_refused)
		gossip_refused(all->nodes[node->index].gossip, peer);
}

struct gossipers *
gossipers_new(const struct gossipers_options *options)
{
	static const struct world_ops ops = {gossiper_start, gossiper_stop, gossiper_refused};
	struct gossipers *all = xzalloc(sizeof(*all));
	uint32_t count = options->world.node_count;

	all->options = *options;
	all->world = world_new(&options->world, &ops, all);
	all->nodes = xcalloc(count, sizeof(*all->nodes));
	all->seeds = xcalloc(options->seed_count + 1, sizeof(*all->seeds));
	for (uint32_t i = 0; i < count; i++) {
		all->nodes[i].node = world_node(all->world, i);
		all->nodes[i].world_size = count;
		all->nodes[i].remembers = xcalloc(count, sizeof(bool));
		all->nodes[i].token = (int64_t)i * 1000;
		snprintf(all->nodes[i].schema, sizeof(all->nodes[i].schema),
		    "2207c2a9-f598-3971-986b-2926e09e239d");
		if (i < options->seed_count)
			all->seeds[i] = all->nodes[i].node->endpoint;
	}
	return all;
}

void
gossipers_free(struct gossipers *all)
{
	if (all == NULL)
		return;
	world_free(all->world);
	for (uint32_t i = 0; i < all->options.world.node_count; i++)
		free(all->nodes[i].remembers);
	free(all->nodes);
	free(all->seeds);
	free(all);
}

struct world *
gossipers_world(struct gossipers *all)
{
	return all->world;
}

struct gossiper *
gossiper(struct gossipers *all, uint32_t index)
{
	assert(index < all->options.world.node_count);
	return &all->nodes[index];
}

void
gossiper_drain(struct gossipers *all, uint32_t index)
{
	gossip_stop(all->nodes[index].gossip, true, NULL);
}

/* ---- What they see ---- */

struct peer *
gossiper_peer(struct gossipers *all, uint32_t a, uint32_t b)
{
	return peers_find(all->nodes[a].node->peers, &all->nodes[b].node->endpoint);
}

bool
gossiper_sees_alive(struct gossipers *all, uint32_t a, uint32_t b)
{
	struct peer *peer = gossiper_peer(all, a, b);

	return peer != NULL && atomic_load_explicit(&peer->is_alive, memory_order_relaxed);
}

enum node_status_kind
gossiper_sees_status(struct gossipers *all, uint32_t a, uint32_t b)
{
	struct peer *peer = gossiper_peer(all, a, b);

	return peer == NULL ? NODE_STATUS_NONE : gossip_status(all->nodes[a].gossip, peer).kind;
}

static bool
gossiper_agrees(struct gossipers *all, uint32_t a, uint32_t *about)
{
	if (!all->nodes[a].has_joined)
		return false;
	for (uint32_t b = 0; b < all->options.world.node_count; b++) {
		if (gossiper_sees_alive(all, a, b) != all->nodes[b].node->is_up) {
			*about = b;
			return false;
		}
	}
	return true;
}

bool
gossipers_agree(struct world *world, void *context)
{
	struct gossipers *all = context;
	uint32_t about;

	(void)world;
	for (uint32_t a = 0; a < all->options.world.node_count; a++) {
		if (all->nodes[a].node->is_up && !gossiper_agrees(all, a, &about))
			return false;
	}
	return true;
}

void
gossipers_explain(struct gossipers *all, FILE *out)
{
	uint32_t lines = 0;

	for (uint32_t a = 0; a < all->options.world.node_count && lines < 20; a++) {
		uint32_t about = a;

		if (!all->nodes[a].node->is_up || gossiper_agrees(all, a, &about))
			continue;
		lines++;
		if (!all->nodes[a].has_joined)
			fprintf(out, "node %u has not joined\n", a);
		else
			fprintf(out, "node %u sees node %u, which is %s, as %s\n", a, about,
			    all->nodes[about].node->is_up ? "up" : "down",
			    gossiper_sees_alive(all, a, about) ? "alive" : "dead");
	}
}

bool
gossipers_have_same_values(struct gossipers *all, FILE *out)
{
	struct buffer mine, theirs;
	bool same = true;

	buffer_init(&mine);
	buffer_init(&theirs);
	for (uint32_t a = 0; a < all->options.world.node_count && same; a++) {
		for (uint32_t b = 0; b < all->options.world.node_count && same; b++) {
			if (!all->nodes[a].node->is_up || !all->nodes[b].node->is_up)
				continue;
			for (int state = 0; state < STATE_COUNT && same; state++) {
				buffer_clear(&mine);
				buffer_clear(&theirs);
				gossip_copy_value(all->nodes[b].gossip,
				    peers_local(all->nodes[b].node->peers),
				    (enum application_state)state, &mine);
				gossip_copy_value(all->nodes[a].gossip, gossiper_peer(all, a, b),
				    (enum application_state)state, &theirs);
				same = slice_compare(slice_of(mine.data, mine.size),
					   slice_of(theirs.data, theirs.size)) == 0;
				if (!same)
					fprintf(out, "node %u has not the %s of node %u\n", a,
					    application_state_name((enum application_state)state),
					    b);
			}
		}
	}
	buffer_fini(&mine);
	buffer_fini(&theirs);
	return same;
}
