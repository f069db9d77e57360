/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordination in a simulated world (tests/sim/world), from seeds: clients write and read a few keys at QUORUM over
 * a ring whose network loses, delays, doubles, reorders and is cut, and whose nodes stand still, are killed and
 * start again. Then, always:
 *   - a request is answered exactly once, and in time;
 *   - a read that begins after a write was acknowledged sees it, or something newer;
 *   - a read that begins after another ended sees nothing older than that one saw;
 *   - once the trouble is over, a read at ALL makes all replicas equal.
 * And short stories of single faults with the exact error that the client gets
 * (tests/sim/coordinator_stories.h).
 *
 *   coordinator_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/coordinator_stories.h"
#include "tests/sim/world/ring.h"
#include "tests/sim/world/seeds.h"

enum {
	NODES = 5,
	KEYS = 6,
	CLIENTS = 6,
	REQUESTS = 400, /* of a seed */
	SLACK_MS = 200, /* expiry is not exact */
};

/* ---- A seed -------------------------------------------------------------------------------- */

struct key {
	int64_t acked; /* the newest version that was acknowledged */
	int64_t seen; /* the newest that a finished read saw */
};

struct run;

struct client {
	struct run *run;
	struct ring_op op;
	bool is_busy, is_read;
	uint32_t key;
	int64_t version; /* of a write */
	int64_t floor; /* of a read: it must see at least this */
	uint64_t began_ns;
};

struct run {
	struct ring *ring;
	struct world *world;
	uint64_t seed;
	struct key keys[KEYS];
	struct client clients[CLIENTS];
	int64_t versions;
	uint32_t begun, succeeded, failed;
	bool is_over; /* clients begin nothing more */
	bool is_broken;
};

static void
run_break(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (!run->is_broken) {
		printf(
		    "--- seed %" PRIu64 " (coordinator_sim %" PRIu64 " 1): ", run->seed, run->seed);
		va_start(arguments, format);
		vprintf(format, arguments);
		va_end(arguments);
		printf("\n");
		world_tell(run->world, stdout);
	}
	run->is_broken = true;
}

static void
client_done(struct ring_op *op)
{
	struct client *client = op->context;
	struct run *run = client->run;
	struct key *key = &run->keys[client->key];
	uint64_t took_ms = (world_now(run->world) - client->began_ns) / WORLD_MS;
	int64_t found = 0;

	if (op->done_count != 1)
		run_break(run, "a request was answered twice");
	if (took_ms > 2 * 2000 + SLACK_MS + 5000)
		run_break(run, "a request took %" PRIu64 " ms", took_ms);
	client->is_busy = false;
	if (op->has_failed) {
		run->failed++;
		if (op->err.code != ERROR_UNAVAILABLE && op->err.code != ERROR_WRITE_TIMEOUT &&
		    op->err.code != ERROR_READ_TIMEOUT && op->err.code != ERROR_WRITE_FAILURE &&
		    op->err.code != ERROR_READ_FAILURE)
			run_break(run, "an unexpected error: %s", op->err.text);
		return;
	}
	run->succeeded++;
	if (!client->is_read) {
		if (client->version > key->acked)
			key->acked = client->version;
		return;
	}
	for (uint32_t i = 0; i < op->row_count; i++)
		found = op->rows[i].v;
	if (found < client->floor)
		run_break(run, "key %u: version %" PRId64 " was read where %" PRId64 " was known",
		    client->key, found, client->floor);
	if (found > key->seen)
		key->seen = found;
}

static void
client_begin(struct client *client)
{
	struct run *run = client->run;
	uint32_t node = world_chance(run->world, NODES);
	struct key *key;

	/* What a request that is over left. */
	if (client->op.arena.blocks != NULL || client->op.rows != NULL)
		ring_op_free(&client->op);
	if (!world_node(run->world, node)->is_up)
		return;
	client->key = world_chance(run->world, KEYS);
	client->is_read = world_chance(run->world, 2) == 0;
	client->began_ns = world_now(run->world);
	client->op.on_done = client_done;
	client->op.context = client;
	client->is_busy = true;
	run->begun++;
	key = &run->keys[client->key];
	if (client->is_read) {
		client->floor = key->acked > key->seen ? key->acked : key->seen;
		ring_get(run->ring, node, &client->op, 0, (int32_t)client->key,
		    world_chance(run->world, 2), CONSISTENCY_QUORUM);
	} else {
		struct ring_row row = {(int32_t)client->key, 0, ++run->versions};

		client->version = run->versions;
		ring_put(run->ring, node, &client->op, &row, 1, run->versions, CONSISTENCY_QUORUM,
		    WRITE_SIMPLE);
	}
}

static void
node_up(void *context, uint32_t node)
{
	struct run *run = context;

	if (!world_node(run->world, node)->is_up)
		world_start(run->world, node);
}

static void
node_seen_up(void *context, uint32_t node)
{
	struct run *run = context;

	ring_set_alive(run->ring, node, world_node(run->world, node)->is_up);
}

static uint32_t
nodes_up(const struct run *run)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < NODES; i++)
		count += world_node(run->world, i)->is_up;
	return count;
}

static void
trouble(struct run *run)
{
	uint32_t a = world_chance(run->world, NODES), b = world_chance(run->world, NODES);

	switch (world_chance(run->world, 8)) {
	case 0:
		if (a != b)
			world_cut(run->world, a, b);
		break;
	case 1:
		if (a != b)
			world_cut_both(run->world, a, b);
		break;
	case 2:
		world_heal(run->world);
		break;
	case 3:
		if (world_node(run->world, a)->is_up)
			world_pause(run->world, a, (1 + world_chance(run->world, 3000)) * WORLD_MS);
		break;
	case 4:
		if (nodes_up(run) < NODES - 1 || !world_node(run->world, a)->is_up)
			break;
		ring_kill(run->ring, a);
		world_at(run->world, (1 + world_chance(run->world, 2000)) * WORLD_MS, node_seen_up,
		    run, a);
		world_at(run->world, 3 * WORLD_S, node_up, run, a);
		world_at(run->world, 4 * WORLD_S, node_seen_up, run, a);
		break;
	case 5: {
		uint8_t groups[NODES];

		for (uint32_t i = 0; i < NODES; i++)
			groups[i] = (uint8_t)world_chance(run->world, 2);
		world_partition(run->world, groups);
		break;
	}
	default:
		break;
	}
}

static void
run_clients(struct run *run)
{
	while (run->begun < REQUESTS && !run->is_broken) {
		for (uint32_t i = 0; i < CLIENTS; i++) {
			if (!run->clients[i].is_busy && world_chance(run->world, 3) == 0)
				client_begin(&run->clients[i]);
		}
		if (world_chance(run->world, 30) == 0)
			trouble(run);
		if (world_chance(run->world, 20) == 0)
			world_heal(run->world);
		world_run(run->world, world_chance(run->world, 40) * WORLD_MS);
	}
}

/* Peace: what was acknowledged is there, and reading repairs. */
static void
run_settle(struct run *run)
{
	static const struct world_faults none = {
	    .delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS};

	world_heal(run->world);
	world_set_faults(run->world, &none);
	world_run(run->world, 20 * WORLD_S);
	for (uint32_t i = 0; i < NODES; i++) {
		node_up(run, i);
		ring_set_alive(run->ring, i, true);
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (run->clients[i].is_busy)
			run_break(run, "a request was never answered");
		ring_op_free(&run->clients[i].op);
	}
	for (uint32_t i = 0; i < KEYS && !run->is_broken; i++) {
		struct ring_op op = {.on_done = NULL};
		uint32_t replicas[NODES], count;
		int64_t found;

		ring_get(run->ring, i % NODES, &op, 0, (int32_t)i, 0, CONSISTENCY_ALL);
		ring_wait(run->ring, &op);
		found = op.row_count > 0 ? op.rows[0].v : 0;
		if (!op.is_done || op.has_failed)
			run_break(run, "key %u cannot be read at ALL: %s", i, op.err.text);
		else if (found < run->keys[i].acked)
			run_break(run, "key %u has version %" PRId64 ", acknowledged was %" PRId64,
			    i, found, run->keys[i].acked);
		count = ring_replicas(run->ring, (int32_t)i, replicas, NODES);
		for (uint32_t j = 0; j < count && found > 0 && !run->is_broken; j++) {
			if (ring_look(run->ring, replicas[j], (int32_t)i, 0) != found)
				run_break(
				    run, "key %u was not repaired on node %u", i, replicas[j]);
		}
		ring_op_free(&op);
	}
}

static bool
run_seed(uint64_t seed)
{
	static const char *const policies[] = {
	    "99PERCENTILE", "NONE", "ALWAYS", "5ms", "MIN(50p,20ms)", "MAX(90p,30ms)"};
	struct ring_options options = {.world = {.seed = seed,
					   .node_count = NODES,
					   .faults = {.loss = 0.02,
					       .duplicate = 0.02,
					       .reorder = 0.1,
					       .delay_min_ns = 200 * WORLD_US,
					       .delay_max_ns = 30 * WORLD_MS},
					   .skew_max_us = 100000,
					   .is_encoded = true},
	    .factor = 3,
	    .speculative_retry = policies[seed % (sizeof(policies) / sizeof(policies[0]))]};
	struct run *run = calloc(1, sizeof(*run));
	bool is_sound;

	run->seed = seed;
	run->ring = ring_new(&options);
	run->world = ring_world(run->ring);
	for (uint32_t i = 0; i < CLIENTS; i++)
		run->clients[i].run = run;
	run_clients(run);
	run_settle(run);
	if (run->succeeded < REQUESTS / 4)
		run_break(run, "only %u of %u requests succeeded", run->succeeded, run->begun);
	if (getenv("SIM_VERBOSE") != NULL) {
		struct coordinator_stats stats;

		coordinator_stats(ring_coordinator(run->ring, 0), &stats);
		printf("seed %" PRIu64 ": %u succeeded, %u failed; node 0: %" PRIu64
		       " speculations, %" PRIu64 " mismatches, %" PRIu64 " repairs\n",
		    seed, run->succeeded, run->failed, stats.speculative_retries,
		    stats.digest_mismatches, stats.read_repairs);
	}
	is_sound = !run->is_broken;
	ring_free(run->ring);
	free(run);
	return is_sound;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 12);

	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed));
	if (argc <= 1 || seeds.count == 0)
		stories_run(&seeds.passed, &seeds.failed);
	return seeds_end(&seeds);
}
