/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional statements and serial reads in a simulated world (tests/sim/world), from seeds: clients compare and set a
 * few registers through all nodes of a ring whose network loses, delays, reorders and is cut (one way, too),
 * whose clocks stand apart and jump, and whose nodes stand still, are killed, lose power and start again. Then, always:
 *   - a request is answered exactly once, and in time;
 *   - the history of each register is linearizable (tests/sim/linearizable.h): an error that tells nothing of the
 *     outcome allows both, Unavailable does not;
 *   - once the trouble is over every node serves, and all see the same.
 *
 *   paxos_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Messages are not doubled: that a proposal was refused by all tells that it was not accepted, because each arrives once at
 * most (cluster/cluster_env.h).
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <stdarg.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/linearizable.h"
#include "tests/sim/world/ring.h"

enum {
	NODES = 5,
	KEYS = 3,
	CLIENTS = 6,
	REQUESTS = 300, /* of a seed */
	SETTLING = KEYS * NODES,
	/* Contention, the last prepare, proposal and commit, and the read. */
	ANSWER_MS = 5 * 2000 + 1000,
};

struct run;

struct client {
	struct run *run;
	struct ring_op op;
	bool is_busy, is_read;
	struct operation operation;
	uint64_t began_ns;
};

struct run {
	struct ring *ring;
	struct world *world;
	uint64_t seed;
	struct client clients[CLIENTS];
	int64_t seen[KEYS]; /* what somebody saw last */
	int64_t values; /* written so far */
	uint64_t moment;
	struct operation operations[REQUESTS + SETTLING];
	uint32_t count; /* of operations */
	uint32_t begun, applied, refused, read, unknown;
	bool is_broken;
};

static void
run_break(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (!run->is_broken) {
		printf("--- seed %" PRIu64 " (paxos_sim %" PRIu64 " 1): ", run->seed, run->seed);
		va_start(arguments, format);
		vprintf(format, arguments);
		va_end(arguments);
		printf("\n");
		world_tell(run->world, stdout);
	}
	run->is_broken = true;
}

/* ---- Clients ------------------------------------------------------------------------------- */

static enum outcome
client_failed(struct client *client)
{
	struct run *run = client->run;
	const struct error *err = &client->op.err;

	run->unknown++;
	switch (err->code) {
	case ERROR_UNAVAILABLE:
		return OUTCOME_NEVER;
	case ERROR_WRITE_TIMEOUT:
	case ERROR_CAS_WRITE_UNKNOWN:
		if (client->is_read)
			run_break(run, "a read failed as a write: %s", err->text);
		return OUTCOME_UNKNOWN;
	case ERROR_READ_TIMEOUT:
	case ERROR_READ_FAILURE:
	case ERROR_OVERLOADED:
	case ERROR_SERVER:
		return OUTCOME_UNKNOWN;
	default:
		run_break(run, "an unexpected error: %s", err->text);
		return OUTCOME_UNKNOWN;
	}
}

static void
client_done(struct ring_op *op)
{
	struct client *client = op->context;
	struct run *run = client->run;
	struct operation *operation = &client->operation;
	uint64_t took_ms = (world_now(run->world) - client->began_ns) / WORLD_MS;

	if (op->done_count != 1)
		run_break(run, "a request was answered twice");
	/* Clocks that stand still while their node does are no excuse, but a reason: pauses are up to 3 s. */
	if (took_ms > ANSWER_MS + 3 * 3000)
		run_break(run, "a request took %" PRIu64 " ms", took_ms);
	client->is_busy = false;
	operation->ended = ++run->moment;
	operation->seen = op->row_count > 0 ? op->rows[0].v : 0;
	if (op->has_failed) {
		operation->outcome = client_failed(client);
	} else if (client->is_read || !op->is_applied) {
		operation->outcome = OUTCOME_READ;
		run->seen[operation->key] = operation->seen;
		*(client->is_read ? &run->read : &run->refused) += 1;
	} else {
		operation->outcome = OUTCOME_APPLIED;
		run->seen[operation->key] = operation->written;
		run->applied++;
	}
	world_note(run->world, "client: key %u %s %" PRId64 " -> %" PRId64 ": %s, saw %" PRId64,
	    operation->key, client->is_read ? "read" : "cas", operation->expected,
	    operation->written,
	    op->has_failed       ? op->err.text
		: op->is_applied ? "applied"
				 : "as it is",
	    operation->seen);
	/* A read that failed tells nothing. */
	if (!client->is_read || !op->has_failed)
		run->operations[run->count++] = *operation;
}

static void
client_begin(struct client *client)
{
	struct run *run = client->run;
	uint32_t node = world_chance(run->world, NODES);
	enum consistency serial =
	    world_chance(run->world, 4) == 0 ? CONSISTENCY_LOCAL_SERIAL : CONSISTENCY_SERIAL;
	static const enum consistency commits[] = {CONSISTENCY_QUORUM, CONSISTENCY_QUORUM,
	    CONSISTENCY_ONE, CONSISTENCY_ALL, CONSISTENCY_ANY};
	uint32_t key = world_chance(run->world, KEYS);

	ring_op_free(&client->op);
	if (!world_node(run->world, node)->is_up)
		return;
	client->is_read = world_chance(run->world, 3) == 0;
	client->began_ns = world_now(run->world);
	client->op.on_done = client_done;
	client->op.context = client;
	client->is_busy = true;
	client->operation = (struct operation){.key = key, .began = ++run->moment};
	run->begun++;
	if (client->is_read) {
		ring_get_serial(run->ring, node, &client->op, (int32_t)key, serial);
		return;
	}
	client->operation.expected = run->seen[key];
	client->operation.written = ++run->values;
	ring_cas(run->ring, node, &client->op, (int32_t)key, client->operation.expected,
	    client->operation.written, serial, commits[world_chance(run->world, 5)]);
}

/* ---- Trouble ------------------------------------------------------------------------------- */

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
trouble_death(struct run *run, uint32_t node)
{
	if (nodes_up(run) < NODES - 1 || !world_node(run->world, node)->is_up)
		return;
	if (world_chance(run->world, 2) == 0)
		ring_flush(run->ring, node);
	if (world_chance(run->world, 2) == 0)
		ring_kill(run->ring, node);
	else
		ring_cut_power(run->ring, node);
	world_at(
	    run->world, (1 + world_chance(run->world, 2000)) * WORLD_MS, node_seen_up, run, node);
	world_at(run->world, 3 * WORLD_S, node_up, run, node);
	world_at(run->world, 4 * WORLD_S, node_seen_up, run, node);
}

static void
trouble(struct run *run)
{
	uint32_t a = world_chance(run->world, NODES), b = world_chance(run->world, NODES);
	uint8_t groups[NODES];

	switch (world_chance(run->world, 8)) {
	case 0:
	case 1:
		if (a != b)
			world_cut(run->world, a, b);
		break;
	case 2:
		if (a != b)
			world_cut_both(run->world, a, b);
		break;
	case 3:
		if (world_node(run->world, a)->is_up)
			world_pause(run->world, a, (1 + world_chance(run->world, 3000)) * WORLD_MS);
		break;
	case 4:
	case 5:
		trouble_death(run, a);
		break;
	case 6:
		for (uint32_t i = 0; i < NODES; i++)
			groups[i] = (uint8_t)world_chance(run->world, 2);
		world_partition(run->world, groups);
		break;
	case 7:
		world_step_wall(
		    run->world, a, (int64_t)world_chance(run->world, 4000000) - 2000000);
		break;
	}
}

static void
run_clients(struct run *run)
{
	while (run->begun < REQUESTS && !run->is_broken) {
		for (uint32_t i = 0; i < CLIENTS && run->begun < REQUESTS; i++) {
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

/* Peace: every node serves, and all see the same. */
static void
run_settle(struct run *run)
{
	static const struct world_faults none = {
	    .delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS};

	world_heal(run->world);
	world_set_faults(run->world, &none);
	world_run(run->world, 30 * WORLD_S);
	for (uint32_t i = 0; i < NODES; i++) {
		node_up(run, i);
		ring_set_alive(run->ring, i, true);
	}
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (run->clients[i].is_busy)
			run_break(run, "a request was never answered");
		ring_op_free(&run->clients[i].op);
	}
	for (uint32_t i = 0; i < KEYS * NODES && !run->is_broken; i++) {
		struct operation *operation = &run->operations[run->count];
		struct ring_op op = {.on_done = NULL};

		*operation = (struct operation){
		    .outcome = OUTCOME_READ, .key = i % KEYS, .began = ++run->moment};
		ring_get_serial(run->ring, i / KEYS, &op, (int32_t)(i % KEYS), CONSISTENCY_SERIAL);
		ring_wait(run->ring, &op);
		if (!op.is_done || op.has_failed) {
			run_break(run, "key %u cannot be read by node %u in peace: %s", i % KEYS,
			    i / KEYS, op.err.text);
		} else {
			operation->seen = op.row_count > 0 ? op.rows[0].v : 0;
			operation->ended = ++run->moment;
			run->count++;
		}
		ring_op_free(&op);
	}
}

static void
run_check(struct run *run)
{
	char why[200];

	for (uint32_t key = 0; key < KEYS && !run->is_broken; key++) {
		if (!linearizable_check(run->operations, run->count, key, why))
			run_break(run, "key %u: %s", key, why);
	}
	if (!run->is_broken && (run->applied < 5 || run->read < 5))
		run_break(run, "only %u of %u requests were applied, %u read", run->applied,
		    run->begun, run->read);
}

static bool
run_seed(uint64_t seed)
{
	struct ring_options options = {.world = {.seed = seed,
					   .node_count = NODES,
					   .faults = {.loss = 0.02,
					       .reorder = 0.1,
					       .delay_min_ns = 200 * WORLD_US,
					       .delay_max_ns = 30 * WORLD_MS},
					   .skew_max_us = 200000,
					   .drift_max_ppm = 200,
					   .is_encoded = true,
					   .story_lines = 1500},
	    .factor = seed % 3 == 0 ? 5 : 3};
	struct run *run = calloc(1, sizeof(*run));
	bool is_sound;

	run->seed = seed;
	run->ring = ring_new(&options);
	run->world = ring_world(run->ring);
	for (uint32_t i = 0; i < CLIENTS; i++)
		run->clients[i].run = run;
	run_clients(run);
	run_settle(run);
	run_check(run);
	if (getenv("SIM_VERBOSE") != NULL) {
		struct paxos_stats stats;

		paxos_stats(ring_paxos(run->ring, 0), &stats);
		printf("seed %" PRIu64
		       ": %u applied, %u refused, %u read, %u unknown; node 0: %" PRIu64
		       " contentions, %" PRIu64 " unfinished\n",
		    seed, run->applied, run->refused, run->read, run->unknown, stats.contentions,
		    stats.unfinished_commits);
	}
	is_sound = !run->is_broken;
	ring_free(run->ring);
	free(run);
	return is_sound;
}

int
main(int argc, char **argv)
{
	const char *setting = getenv("SIM_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10)
	    : setting != NULL     ? strtoull(setting, NULL, 10)
				  : 12;
	unsigned passed = 0, failed = 0;

	log_set_level("ROOT", getenv("SIM_LOG") != NULL ? LOG_DEBUG : LOG_OFF);
	*(linearizable_self_check() ? &passed : &failed) += 1;
	for (uint64_t seed = first; seed < first + count; seed++)
		*(run_seed(seed) ? &passed : &failed) += 1;
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
