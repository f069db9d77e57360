/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema log in a simulated world, from seeds: nodes whose network loses, delays, doubles, reorders and is cut, and
 * which are killed and start again, while clients of all of them create things by the same few names. Nobody may
 * ever see two of one name, nor two orders; what a client was told is there must be there on all nodes in the end.
 *
 *   schema_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/schema_log.h"
#include "tests/sim/world/world.h"
#include "tests/sim/world/seeds.h"

enum { NODES = 5, NAMES = 40, CHANGES = 60, TROUBLES = 25, ENTRIES_MAX = 4096, STORY_LINES = 400 };

/* What a node keeps over its deaths. */
struct disk {
	struct buffer state;
	uint32_t count;
	uint32_t entries[ENTRIES_MAX]; /* names, in order */
	int64_t timestamp; /* the last one that was written at */
};

struct change {
	struct sim *sim;
	uint32_t node, life, name;
	bool is_done, is_noop, has_failed, exists;
	uint32_t done_count;
};

struct sim_node {
	struct sim *sim;
	struct world_node *node;
	struct topology_holder *topology;
	struct schema_log *log;
	struct disk disk;
};

struct sim {
	struct world *world;
	struct sim_node nodes[NODES];
	struct change changes[CHANGES + 1];
	const char *broken; /* NULL: nothing is wrong so far */
};

static void
breaks(struct sim *sim, const char *what)
{
	if (sim->broken == NULL)
		sim->broken = what;
}

/* ---- A node's schema: a list of names --------------------------------------------------------- */

static bool
disk_has(const struct disk *disk, uint32_t name)
{
	for (uint32_t i = 0; i < disk->count; i++)
		if (disk->entries[i] == name)
			return true;
	return false;
}

static int
node_load(void *context, struct buffer *out, struct error *err)
{
	struct sim_node *node = context;

	buffer_put_slice(out, buffer_slice(&node->disk.state));
	return buffer_check(out, err);
}

static int
node_save(void *context, struct slice state, struct error *err)
{
	struct sim_node *node = context;

	buffer_clear(&node->disk.state);
	buffer_put_slice(&node->disk.state, state);
	return buffer_check(&node->disk.state, err);
}

static int
node_transform(
    void *context, void *argument, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct sim_node *node = context;
	struct change *change = argument;

	if (disk_has(&node->disk, change->name))
		return error_set(err, ERROR_ALREADY_EXISTS, "name %u is there", change->name);
	if (timestamp <= node->disk.timestamp)
		breaks(node->sim, "a change is not younger than the one before it");
	buffer_put_u32(out, change->name);
	buffer_put_u64(out, (uint64_t)timestamp);
	return 1;
}

static int
node_apply(void *context, struct slice entry, struct error *err)
{
	struct sim_node *node = context;
	struct reader reader = reader_of(entry);
	uint32_t name = reader_u32(&reader);
	int64_t timestamp = (int64_t)reader_u64(&reader);

	if (reader.is_failed)
		return error_set(err, ERROR_INVALID, "an entry is cut off");
	/* The same again: the node died between applying and saying so. */
	if (node->disk.count > 0 && node->disk.entries[node->disk.count - 1] == name)
		return 0;
	if (disk_has(&node->disk, name))
		breaks(node->sim, "one name was created twice");
	if (timestamp <= node->disk.timestamp)
		breaks(node->sim, "an entry is not younger than what it changes");
	node->disk.entries[node->disk.count++] = name;
	node->disk.timestamp = timestamp;
	world_note(node->sim->world, "node %u applies %u", node->node->index, name);
	return 0;
}

static int
node_snapshot(void *context, int64_t timestamp, struct buffer *out, struct error *err)
{
	struct sim_node *node = context;

	buffer_put_u64(out, (uint64_t)timestamp);
	for (uint32_t i = 0; i < node->disk.count; i++)
		buffer_put_u32(out, node->disk.entries[i]);
	return buffer_check(out, err);
}

static int
node_install(void *context, struct slice snapshot, int64_t timestamp, struct error *err)
{
	struct sim_node *node = context;
	struct reader reader = reader_of(snapshot);
	int64_t written = (int64_t)reader_u64(&reader);
	uint32_t count = 0;

	(void)err;
	if (written != timestamp + 1 || timestamp < node->disk.timestamp)
		breaks(node->sim, "a snapshot does not win over what it replaces");
	for (; reader_left(&reader) >= 4; count++) {
		uint32_t name = reader_u32(&reader);

		if (count < node->disk.count && node->disk.entries[count] != name)
			breaks(node->sim, "a snapshot has another order");
		node->disk.entries[count] = name;
	}
	if (count < node->disk.count)
		breaks(node->sim, "a snapshot is older than what it replaces");
	node->disk.count = count;
	node->disk.timestamp = written;
	world_note(node->sim->world, "node %u installs %u", node->node->index, count);
	return 0;
}

static void
node_done(void *context, void *argument, bool is_noop, const struct error *err)
{
	struct sim_node *node = context;
	struct change *change = argument;

	change->is_done = true;
	change->is_noop = is_noop;
	change->has_failed = err != NULL;
	change->exists = err != NULL && err->code == ERROR_ALREADY_EXISTS;
	if (++change->done_count > 1)
		breaks(node->sim, "a change ended twice");
	world_note(node->sim->world, "change of %u at node %u: %s", change->name, change->node,
	    err == NULL ? "done" : err->text);
}

static const struct schema_log_ops node_ops = {
    node_load, node_save, node_transform, node_apply, node_snapshot, node_install, node_done};

/* ---- Nodes ------------------------------------------------------------------------------------ */

static void *
node_start(struct world_node *mine, void *context)
{
	struct sim *sim = context;
	struct sim_node *node = &sim->nodes[mine->index];
	struct member members[NODES];
	int64_t tokens[NODES];
	struct error err;

	node->node = mine;
	node->topology = topology_holder_new(mine->peers);
	for (uint32_t i = 0; i < NODES; i++) {
		tokens[i] = (int64_t)i * 1000;
		members[i] = (struct member){
		    .peer = peers_get(mine->peers, &world_node(sim->world, i)->endpoint),
		    .datacenter = "dc1",
		    .rack = "rack1",
		    .state = MEMBER_NORMAL,
		    .token_count = 1,
		    .tokens = &tokens[i]};
		members[i].host_id.bytes[0] = (uint8_t)(i + 1);
		atomic_store(&members[i].peer->is_alive, true);
	}
	if (topology_update(node->topology, members, NODES, &err) != 0)
		breaks(sim, "no topology");
	node->log = schema_log_new(
	    &mine->cluster, mine->messaging, mine->peers, node->topology, &node_ops, node);
	if (schema_log_start(node->log, &err) != 0)
		breaks(sim, "the saved state cannot be read");
	return node;
}

static void
node_stop(struct world_node *mine, void *parts, void *context)
{
	struct sim_node *node = parts;

	(void)mine;
	(void)context;
	schema_log_free(node->log);
	topology_holder_free(node->topology);
	node->log = NULL;
}

static const struct world_ops world_ops = {.start = node_start, .stop = node_stop};

/* Gossip's part: who is up, and whose schema is another. */
static void
tell_alive(struct sim *sim, bool with_schema)
{
	for (uint32_t i = 0; i < NODES; i++) {
		for (uint32_t k = 0; k < NODES && sim->nodes[i].log != NULL; k++) {
			struct world_node *other = world_node(sim->world, k);
			struct peer *peer;

			if (i == k)
				continue;
			peer = peers_get(world_node(sim->world, i)->peers, &other->endpoint);
			atomic_store(&peer->is_alive, other->is_up);
			if (with_schema && other->is_up &&
			    sim->nodes[k].disk.count != sim->nodes[i].disk.count)
				schema_log_peer_differs(sim->nodes[i].log, peer);
		}
	}
}

static void
begin_change(struct sim *sim, uint32_t index, uint32_t node, uint32_t name)
{
	struct change *change = &sim->changes[index];

	*change = (struct change){
	    .sim = sim, .node = node, .life = world_node(sim->world, node)->starts, .name = name};
	world_note(sim->world, "client creates %u at node %u", name, node);
	schema_log_change(sim->nodes[node].log, change, 10 * WORLD_S);
}

/* ---- A seed ----------------------------------------------------------------------------------- */

static void
make_trouble(struct sim *sim)
{
	struct world *world = sim->world;
	uint32_t node = world_chance(world, NODES), other = world_chance(world, NODES);

	switch (world_chance(world, 6)) {
	case 0:
		if (world_node(world, node)->is_up)
			world_crash(world, node, WORLD_KILL);
		break;
	case 1:
		if (!world_node(world, node)->is_up)
			world_start(world, node);
		break;
	case 2:
		world_cut(world, node, other);
		break;
	case 3:
		world_cut_both(world, node, other);
		break;
	case 4:
		world_heal(world);
		break;
	default:
		if (world_node(world, node)->is_up)
			world_step_wall(
			    world, node, (int64_t)world_chance(world, 4000000) - 2000000);
		break;
	}
}

static void
check_orders(struct sim *sim)
{
	for (uint32_t i = 1; i < NODES; i++) {
		const struct disk *a = &sim->nodes[0].disk, *b = &sim->nodes[i].disk;

		for (uint32_t k = 0; k < a->count && k < b->count; k++)
			if (a->entries[k] != b->entries[k])
				breaks(sim, "two nodes have two orders");
	}
}

static void
run_trouble(struct sim *sim)
{
	struct world *world = sim->world;

	for (uint32_t i = 0; i < CHANGES; i++) {
		uint32_t node = world_chance(world, NODES);

		if (world_chance(world, CHANGES) < TROUBLES)
			make_trouble(sim);
		tell_alive(sim, world_chance(world, 3) == 0);
		sim->changes[i].is_done = true;
		sim->changes[i].has_failed = true;
		if (world_node(world, node)->is_up)
			begin_change(sim, i, node, world_chance(world, NAMES));
		world_run(world, world_chance(world, 4) == 0 ? 2 * WORLD_S : 30 * WORLD_MS);
		check_orders(sim);
	}
}

static void
check_end(struct sim *sim)
{
	const struct disk *disk = &sim->nodes[0].disk;

	for (uint32_t i = 1; i < NODES; i++)
		if (sim->nodes[i].disk.count != disk->count)
			breaks(sim, "a node has not caught up");
	for (uint32_t i = 0; i <= CHANGES; i++) {
		const struct change *change = &sim->changes[i];

		if (change->sim == NULL)
			continue;
		if (change->is_done && (!change->has_failed || change->exists) &&
		    !disk_has(disk, change->name))
			breaks(sim, "what a client was told is there is not");
		if (!change->is_done &&
		    world_node(sim->world, change->node)->starts == change->life)
			breaks(sim, "a client was never answered");
	}
}

static bool
run_seed(uint64_t seed, uint64_t *digest)
{
	struct world_options options = {.seed = seed,
	    .node_count = NODES,
	    .faults = {.loss = seed % 3 * 0.02,
		.duplicate = 0.02,
		.reorder = 0.1,
		.delay_min_ns = 100 * WORLD_US,
		.delay_max_ns = 20 * WORLD_MS},
	    .skew_max_us = 3000000,
	    .is_encoded = true,
	    .story_lines = STORY_LINES};
	static const struct world_faults none = {
	    .delay_min_ns = 100 * WORLD_US, .delay_max_ns = 2 * WORLD_MS};
	struct sim *sim = xzalloc(sizeof(*sim));
	bool is_ok;

	sim->world = world_new(&options, &world_ops, sim);
	for (uint32_t i = 0; i < NODES; i++) {
		sim->nodes[i].sim = sim;
		buffer_init(&sim->nodes[i].disk.state);
		world_start(sim->world, i);
	}
	run_trouble(sim);
	world_heal(sim->world);
	world_set_faults(sim->world, &none);
	for (uint32_t i = 0; i < NODES; i++)
		if (!world_node(sim->world, i)->is_up)
			world_start(sim->world, i);
	tell_alive(sim, false);
	world_run(sim->world, 15 * WORLD_S);
	begin_change(sim, CHANGES, (uint32_t)(seed % NODES), NAMES + 1);
	world_run(sim->world, 2 * WORLD_S);
	if (!sim->changes[CHANGES].is_done || sim->changes[CHANGES].has_failed)
		breaks(sim, "a healed ring does not take a change");
	for (uint32_t i = 0; i < 3; i++) {
		tell_alive(sim, true);
		world_run(sim->world, 3 * WORLD_S);
	}
	check_orders(sim);
	check_end(sim);
	if (getenv("SIM_VERBOSE") != NULL)
		printf("seed %" PRIu64 ": %u entries, %" PRIu64 " messages\n", seed,
		    sim->nodes[0].disk.count, world_messages(sim->world));
	*digest = world_digest(sim->world);
	is_ok = sim->broken == NULL;
	if (!is_ok) {
		printf("--- seed %" PRIu64 " (schema_sim %" PRIu64 " 1): %s\n", seed, seed,
		    sim->broken);
		world_tell(sim->world, stdout);
		fflush(stdout);
	}
	world_free(sim->world);
	for (uint32_t i = 0; i < NODES; i++)
		buffer_fini(&sim->nodes[i].disk.state);
	free(sim);
	return is_ok;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 30);
	uint64_t digest, again;

	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed, &digest));
	if (argc <= 1) {
		run_seed(seeds.first, &digest);
		run_seed(seeds.first, &again);
		seeds_count(&seeds, digest == again);
		if (digest != again)
			printf("--- seed %" PRIu64 " does not replay\n", seeds.first);
	}
	return seeds_end(&seeds);
}
