/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring as gossip and the storage service make it: nodes join, with their data, leave, are removed and replaced. What a
 * real node keeps in system.local and system.peers is kept here, durable as soon as it was saved.
 */
#include "cluster/gossip.h"
#include "cluster/movement.h"
#include "cluster/snitch.h"
#include "cluster/storage_service.h"
#include "tests/sim/world/ring_internal.h"

enum { RING_SEEDS = 2, RING_NATIVE_PORT = 9042 };

/* What system.available_ranges_v2 and system.transferred_ranges_v2 have. */
struct movement_notes {
	struct ring_note {
		enum stream_operation operation;
		char keyspace[16];
		struct endpoint to; /* size 0: this node */
		struct ring_range range;
	} * at; /* owned */
	uint32_t count;
};

struct ring_memory {
	struct ring_memory_node {
		struct uuid host_id;
		int32_t generation;
		enum bootstrap_state bootstrapped;
		int64_t tokens[RING_TOKENS];
		uint32_t token_count;
		bool must_bootstrap;
		uint32_t replaces; /* 1 + the index of the node whose place it takes; 0: none */
		/* system.peers: by the peer's index. */
		struct service_peer *saved; /* owned */
		int64_t (*saved_tokens)[RING_TOKENS]; /* owned */
		bool *is_saved; /* owned */
		struct movement_notes *notes; /* owned */
	} * nodes; /* owned */
};

struct ring_members {
	struct ring_node *node; /* borrowed */
	struct gossip *gossip;
	struct gossip_subscriber subscriber;
	struct storage_service *service;
	struct service_wait started;
	struct service_wait replayed, *leaving; /* batches go before hints, before the node */
	bool has_started, has_failed;
	struct error err;
};

static struct ring_memory_node *
ring_memory_of(const struct ring_node *node)
{
	return &node->ring->memory->nodes[node->node->index];
}

struct ring_memory *
ring_memory_new(uint32_t nodes)
{
	struct ring_memory *memory = xzalloc(sizeof(*memory));

	memory->nodes = xcalloc(nodes, sizeof(*memory->nodes));
	for (uint32_t i = 0; i < nodes; i++) {
		struct ring_memory_node *each = &memory->nodes[i];

		each->host_id.bytes[0] = (uint8_t)(i + 1);
		each->saved = xcalloc(nodes, sizeof(*each->saved));
		each->saved_tokens = xcalloc(nodes, sizeof(*each->saved_tokens));
		each->is_saved = xcalloc(nodes, sizeof(*each->is_saved));
		each->notes = xzalloc(sizeof(*each->notes));
	}
	return memory;
}

void
ring_memory_free(struct ring_memory *memory, uint32_t nodes)
{
	if (memory == NULL)
		return;
	for (uint32_t i = 0; i < nodes; i++) {
		free(memory->nodes[i].saved);
		free(memory->nodes[i].saved_tokens);
		free(memory->nodes[i].is_saved);
		free(memory->nodes[i].notes->at);
		free(memory->nodes[i].notes);
	}
	free(memory->nodes);
	free(memory);
}

/* ---- What a node keeps --------------------------------------------------------------------- */

static int
ring_save_local(void *context, enum bootstrap_state state, const int64_t *tokens, uint32_t count,
    struct error *err)
{
	struct ring_memory_node *memory = ring_memory_of(context);

	(void)err;
	if (count > RING_TOKENS)
		abort();
	memory->bootstrapped = state;
	if (count > 0) {
		memcpy(memory->tokens, tokens, count * sizeof(*tokens));
		memory->token_count = count;
	}
	return 0;
}

static int
ring_save_host_id(void *context, const struct uuid *host_id, struct error *err)
{
	(void)err;
	ring_memory_of(context)->host_id = *host_id;
	return 0;
}

static void
ring_save_peer(void *context, const struct service_peer *peer)
{
	struct ring_node *node = context;
	struct ring_memory_node *memory = ring_memory_of(node);
	uint32_t index = ring_index_of(node->ring, peers_get(node->node->peers, &peer->endpoint));

	if (peer->token_count > RING_TOKENS)
		abort();
	memory->is_saved[index] = true;
	memory->saved[index] = *peer;
	memory->saved[index].datacenter = ring_datacenter(node->ring, index);
	memory->saved[index].rack = "rack1";
	memory->saved[index].release_version = NULL;
	memcpy(memory->saved_tokens[index], peer->tokens, peer->token_count * sizeof(int64_t));
	memory->saved[index].tokens = memory->saved_tokens[index];
}

static void
ring_remove_peer(void *context, const struct endpoint *endpoint)
{
	struct ring_node *node = context;

	ring_memory_of(node)
	    ->is_saved[ring_index_of(node->ring, peers_get(node->node->peers, endpoint))] = false;
}

static void
ring_tell(void *context, enum service_event event, struct peer *peer, struct endpoint native)
{
	static const char *const names[] = {"new", "removed", "up", "down"};
	struct ring_node *node = context;

	(void)native;
	world_note(node->ring->world, "%u says: %u is %s", node->node->index,
	    ring_index_of(node->ring, peer), names[event]);
}

static int
ring_allocate(void *context, const struct topology *topology, int64_t *tokens, uint32_t count,
    struct error *err)
{
	(void)topology;
	(void)err;
	for (uint32_t i = 0; i < count; i++)
		tokens[i] = (int64_t)env_random_u64(((struct ring_node *)context)->node->env);
	return 0;
}

/* ---- Data that moves ----------------------------------------------------------------------- */

static void
ring_note_wishes(struct movement_notes *notes, enum stream_operation operation,
    const struct stream_wish *wishes, uint32_t count, const struct endpoint *to)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < wishes[i].range_count; k++) {
			struct ring_note *note;

			notes->at = xrealloc(notes->at, (notes->count + 1) * sizeof(*notes->at));
			note = &notes->at[notes->count++];
			*note = (struct ring_note){
			    .operation = operation, .range = wishes[i].ranges[k]};
			snprintf(note->keyspace, sizeof(note->keyspace), "%s", wishes[i].keyspace);
			if (to != NULL)
				note->to = *to;
		}
	}
}

/* NULL: in a ring that is fixed nothing is resumed. */
static struct movement_notes *
ring_notes_of(const struct ring_node *node)
{
	return node->ring->memory == NULL ? NULL : ring_memory_of(node)->notes;
}

static int
ring_save_note(void *context, enum stream_operation operation, const struct stream_result *result,
    struct error *err)
{
	struct movement_notes *notes = ring_notes_of(context);

	(void)err;
	if (notes == NULL)
		return 0;
	ring_note_wishes(notes, operation, result->fetched, result->fetched_count, NULL);
	ring_note_wishes(
	    notes, operation, result->given, result->given_count, &result->peer->endpoint);
	return 0;
}

static int
ring_load_notes(
    void *context, enum stream_operation operation, struct movement_notes **out, struct error *err)
{
	const struct movement_notes *kept = ring_notes_of(context);
	struct movement_notes *notes;

	(void)err;
	*out = NULL;
	if (kept == NULL)
		return 0;
	notes = xzalloc(sizeof(*notes));
	notes->at = xcalloc(kept->count + 1, sizeof(*notes->at));
	for (uint32_t i = 0; i < kept->count; i++)
		if (kept->at[i].to.size == 0 || kept->at[i].operation == operation)
			notes->at[notes->count++] = kept->at[i];
	*out = notes;
	return 0;
}

/* Is the range part of the note's, which may go round the ring's end? */
static bool
ring_note_covers(struct ring_range note, struct ring_range range)
{
	uint64_t size = (uint64_t)note.right - (uint64_t)note.left;

	if (size == 0)
		return true;
	return (uint64_t)range.right - (uint64_t)note.left <= size &&
	    (uint64_t)range.left - (uint64_t)note.left <
	    (uint64_t)range.right - (uint64_t)note.left;
}

static bool
ring_has_note(const struct movement_notes *notes, struct slice keyspace, const struct endpoint *to,
    struct ring_range range)
{
	for (uint32_t i = 0; i < notes->count; i++) {
		const struct ring_note *note = &notes->at[i];

		if ((to == NULL ? note->to.size == 0 : endpoint_equal(&note->to, to)) &&
		    slice_equal_string(keyspace, note->keyspace) &&
		    ring_note_covers(note->range, range))
			return true;
	}
	return false;
}

static void
ring_free_notes(struct movement_notes *notes)
{
	if (notes == NULL)
		return;
	free(notes->at);
	free(notes);
}

static int
ring_forget_notes(
    void *context, enum stream_operation operation, bool has_fetched, struct error *err)
{
	struct movement_notes *notes = ring_notes_of(context);
	uint32_t kept = 0;

	(void)err;
	if (notes == NULL)
		return 0;
	for (uint32_t i = 0; i < notes->count; i++)
		if (notes->at[i].to.size == 0 ? !has_fetched : notes->at[i].operation != operation)
			notes->at[kept++] = notes->at[i];
	notes->count = kept;
	return 0;
}

static void
ring_batches_gone(struct service_wait *wait, const struct error *err)
{
	struct ring_members *members =
	    (struct ring_members *)((char *)wait - offsetof(struct ring_members, replayed));
	struct ring_node *node = members->node;

	(void)err;
	movement_hand_on_hints(node->hints, node->topology, members->leaving);
}

static void
ring_hand_on(void *context, struct service_wait *wait)
{
	struct ring_node *node = context;
	struct ring_members *members = node->members;

	if (node->hints == NULL) {
		wait->on_done(wait, NULL);
		return;
	}
	members->leaving = wait;
	members->replayed.on_done = ring_batches_gone;
	if (node->batches != NULL)
		ring_batches_replay_now(node, &members->replayed);
	else
		ring_batches_gone(&members->replayed, NULL);
}

void
ring_move_data(struct ring_node *node, const struct service_movement *wanted, bool skips_paxos,
    struct service_wait *wait)
{
	static const struct movement_ops ops = {.schema = ring_schema,
	    .save_note = ring_save_note,
	    .load_notes = ring_load_notes,
	    .has_note = ring_has_note,
	    .free_notes = ring_free_notes,
	    .forget_notes = ring_forget_notes,
	    .hand_on = ring_hand_on};
	struct movement_options options = {.env = &node->node->cluster,
	    .peers = node->node->peers,
	    .topology = node->topology,
	    .snitch = node->snitch,
	    .streams = node->streams,
	    .repairs = skips_paxos ? NULL : node->repairs,
	    .is_strict = true,
	    .ops = &ops,
	    .context = node};

	movement_start(&options, wanted, wait);
}

static void
ring_stream(void *context, const struct service_movement *wanted, struct service_wait *wait)
{
	ring_move_data(context, wanted, false, wait);
}

static bool
ring_has_data(void *context)
{
	return movement_has_data(((struct ring_node *)context)->schema);
}

static int
ring_may_leave(void *context, const struct topology *topology, struct error *err)
{
	return movement_may_leave(topology, ((struct ring_node *)context)->schema, err);
}

static uint32_t
ring_gainers(void *context, struct peer *gone, struct peer ***out)
{
	struct ring_node *node = context;
	const struct topology *topology = topology_acquire(node->topology);
	uint32_t count = movement_gainers(topology, node->node->peers, node->schema, gone, out);

	topology_release(node->topology, topology);
	return count;
}

/* ---- A node's parts ------------------------------------------------------------------------ */

static struct ring_members *
ring_members_of(struct gossip_subscriber *subscriber)
{
	return (
	    struct ring_members *)((char *)subscriber - offsetof(struct ring_members, subscriber));
}

static void
ring_compare_schema(struct ring_node *node, struct peer *peer)
{
	struct slice told = gossip_value(node->members->gossip, peer, STATE_SCHEMA);
	char text[UUID_TEXT_SIZE];

	if (peer->is_local || slice_is_null(told) || node->changes == NULL)
		return;
	uuid_format(&node->schema->version, text);
	if (!slice_equal_string(told, text))
		ring_schema_differs(node, peer);
}

static void
ring_on_change(struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed)
{
	if ((changed & application_state_bit(STATE_SCHEMA)) != 0)
		ring_compare_schema(ring_members_of(subscriber)->node, peer);
}

void
ring_members_tell_schema(struct ring_node *node)
{
	if (node->members != NULL)
		storage_service_set_schema(node->members->service, &node->schema->version);
}

static void
ring_on_alive(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct ring_node *node = ring_members_of(subscriber)->node;

	ring_compare_schema(node, peer);
	snitch_forget(node->snitch, peer);
	if (node->hints != NULL)
		hints_peer_is_alive(node->hints, peer);
}

static void
ring_on_dead(struct gossip_subscriber *subscriber, struct peer *peer)
{
	struct ring_node *node = ring_members_of(subscriber)->node;

	streams_peer_is_down(node->streams, peer);
	repairs_peer_is_down(node->repairs, peer);
}

struct uuid
ring_host_id(const struct ring_node *node)
{
	return node->ring->memory == NULL ? (struct uuid){{(uint8_t)(node->node->index + 1)}}
					  : ring_memory_of(node)->host_id;
}

static void
ring_make_service(struct ring_node *node)
{
	static const struct storage_service_ops ops = {ring_save_local, ring_save_host_id,
	    ring_save_peer, ring_remove_peer, ring_tell, ring_allocate, ring_stream, ring_has_data,
	    ring_may_leave, ring_gainers};
	struct ring_memory_node *memory = ring_memory_of(node);
	struct storage_service_options options = {.host_id = memory->host_id,
	    .release_version = "4.1.8",
	    .schema_version = node->schema->version,
	    .sstable_versions = "big-nb",
	    .net_version = 12,
	    .native = node->node->endpoint,
	    .internal = node->node->endpoint,
	    .bootstrapped = memory->bootstrapped,
	    .saved_tokens = memory->tokens,
	    .saved_token_count = memory->token_count,
	    .num_tokens = RING_TOKENS,
	    .auto_bootstrap = memory->must_bootstrap,
	    .join_ring = true,
	    .messaging = node->node->messaging,
	    .consistent_rangemovement = true,
	    .is_first_boot_only = true,
	    .ring_delay_ns = node->ring->options.ring_delay_ns};

	memory->generation =
	    gossip_next_generation(memory->generation, env_wall_us(node->node->env));
	options.generation = memory->generation;
	options.native.port = RING_NATIVE_PORT;
	if (memory->replaces != 0)
		options.replaced = world_node(node->ring->world, memory->replaces - 1)->endpoint;
	node->members->service = storage_service_new(&node->node->cluster, node->node->peers,
	    node->members->gossip, node->topology, node->snitch, &options, &ops, node);
	for (uint32_t i = 0; i < node->ring->options.world.node_count; i++)
		if (memory->is_saved[i] && i != node->node->index)
			storage_service_add_saved(node->members->service,
			    peers_get(node->node->peers, &memory->saved[i].endpoint),
			    &memory->saved[i]);
}

/* As an operator keeps the list: others that are in the ring now; at the very first the first nodes. */
static uint32_t
ring_seeds(const struct ring_node *node, struct endpoint *out)
{
	struct ring *ring = node->ring;
	uint32_t count = 0;

	for (uint32_t i = 0; i < ring->options.world.node_count && count < RING_SEEDS; i++)
		if (i != node->node->index && ring_serves(ring, i))
			out[count++] = world_node(ring->world, i)->endpoint;
	for (uint32_t i = 0; i < RING_SEEDS && count == 0; i++)
		out[i] = world_node(ring->world, i)->endpoint;
	return count > 0 ? count : RING_SEEDS;
}

void
ring_members_make(struct ring_node *node)
{
	struct ring_members *members = xzalloc(sizeof(*members));
	struct endpoint seeds[RING_SEEDS];
	struct gossip_options options;

	gossip_options_init(&options);
	options.cluster_name = "Simulated";
	options.partitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
	options.seeds = seeds;
	options.seed_count = ring_seeds(node, seeds);
	options.ring_delay_ns = node->ring->options.ring_delay_ns;
	options.is_member = storage_service_is_member;
	options.context = node->topology;
	node->members = members;
	members->node = node;
	members->gossip =
	    gossip_new(&node->node->cluster, node->node->messaging, node->node->peers, &options);
	members->subscriber.on_alive = ring_on_alive;
	members->subscriber.on_change = ring_on_change;
	members->subscriber.on_dead = ring_on_dead;
	members->subscriber.on_restart = ring_on_dead;
	gossip_subscribe(members->gossip, &members->subscriber);
	ring_make_service(node);
}

static void
ring_members_started(struct service_wait *wait, const struct error *err)
{
	struct ring_members *members =
	    (struct ring_members *)((char *)wait - offsetof(struct ring_members, started));
	struct ring_node *node = members->node;

	members->has_started = true;
	members->has_failed = err != NULL;
	if (err != NULL)
		members->err = *err;
	else
		storage_service_set_rpc_ready(members->service, true);
	world_note(node->ring->world, "%u has started: %s", node->node->index,
	    err == NULL ? "it is in the ring" : err->text);
}

void
ring_members_start(struct ring_node *node)
{
	node->members->started.on_done = ring_members_started;
	storage_service_start(node->members->service, &node->members->started);
}

void
ring_members_free(struct ring_node *node)
{
	if (node->members == NULL)
		return;
	storage_service_free(node->members->service);
	gossip_free(node->members->gossip);
	free(node->members);
}

void
ring_refused(struct world_node *world_node, struct peer *peer, void *context)
{
	struct ring_node *node = world_node->parts;

	(void)context;
	if (node != NULL && node->members != NULL)
		gossip_refused(node->members->gossip, peer);
}

/* ---- The ring ------------------------------------------------------------------------------ */

bool
ring_serves(struct ring *ring, uint32_t index)
{
	const struct ring_members *members;

	if (!world_node(ring->world, index)->is_up)
		return false;
	members = ring_node(ring, index)->members;
	return members->has_started && !members->has_failed &&
	    storage_service_has_joined(members->service);
}

bool
ring_has_failed_to_start(struct ring *ring, uint32_t index, struct error *err)
{
	const struct ring_members *members = ring_node(ring, index)->members;

	if (members->has_failed)
		*err = members->err;
	return members->has_failed;
}

/* Does the node see so many NORMAL members (all of them alive), and no others? */
static bool
ring_sees(struct ring_node *node, uint32_t count, bool all_alive)
{
	const struct topology *topology = topology_acquire(node->topology);
	bool sees = topology_member_count(topology) == count;

	for (uint32_t i = 0; i < topology_member_count(topology) && sees; i++) {
		const struct member *member = topology_member(topology, i);

		sees = member->state == MEMBER_NORMAL &&
		    (!all_alive || member->peer->is_local || atomic_load(&member->peer->is_alive));
	}
	topology_release(node->topology, topology);
	return sees;
}

static bool
ring_all_see(struct ring *ring, uint32_t count, bool all_alive, uint32_t *serving)
{
	*serving = 0;
	for (uint32_t i = 0; i < ring->options.world.node_count; i++) {
		if (!ring_serves(ring, i))
			continue;
		(*serving)++;
		if (!ring_sees(ring_node(ring, i), count, all_alive))
			return false;
	}
	return true;
}

bool
ring_agrees(struct ring *ring, uint32_t count)
{
	uint32_t serving;

	return ring_all_see(ring, count, false, &serving);
}

bool
ring_is_whole(struct ring *ring, uint32_t count)
{
	uint32_t serving;

	return ring_all_see(ring, count, true, &serving) && serving == count;
}

void
ring_join(struct ring *ring, uint32_t index)
{
	ring->memory->nodes[index].must_bootstrap = true;
	world_start(ring->world, index);
}

void
ring_replace(struct ring *ring, uint32_t index, uint32_t dead)
{
	ring->memory->nodes[index].replaces = dead + 1;
	ring_join(ring, index);
}

static void
ring_change_done(struct service_wait *wait, const struct error *err)
{
	struct ring_change *change = (struct ring_change *)wait;

	change->is_done = true;
	change->has_failed = err != NULL;
	if (err != NULL)
		change->err = *err;
}

void
ring_decommission(struct ring *ring, uint32_t index, struct ring_change *change)
{
	*change = (struct ring_change){.wait = {ring_change_done}};
	storage_service_decommission(
	    ring_node(ring, index)->members->service, false, &change->wait);
}

void
ring_remove(struct ring *ring, uint32_t by, uint32_t dead, struct ring_change *change)
{
	*change = (struct ring_change){.wait = {ring_change_done}};
	storage_service_remove_node(ring_node(ring, by)->members->service,
	    &ring->memory->nodes[dead].host_id, &change->wait);
}

void
ring_resume_bootstrap(struct ring *ring, uint32_t index, struct ring_change *change)
{
	*change = (struct ring_change){.wait = {ring_change_done}};
	storage_service_resume_bootstrap(ring_node(ring, index)->members->service, &change->wait);
}
