/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional statements and serial reads in a simulated world (tests/sim/world), from seeds: clients compare and set a
 * few registers through all nodes of a ring whose network loses, delays, reorders and is cut (one way, too),
 * whose clocks stand apart and jump, and whose nodes stand still, are killed, lose power and start again. In half of the
 * seeds a node joins the ring meanwhile and another one leaves it, which others hear of sooner or later. Then, always:
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
#include "tests/sim/world/seeds.h"

enum {
	NODES = 5,
	NODES_MAX = NODES + 1, /* with the one that joins */
	RING_DELAY_MS = 3000,
	CHANGES = 2, /* one joins, one leaves */
	KEYS = 3,
	KEYS_MAX = 40, /* where the ring changes: most are left alone for long */
	CLIENTS = 6,
	REQUESTS = 300, /* of a seed */
	SETTLING = KEYS_MAX * NODES_MAX,
	/* Contention, the last prepare, proposal and commit, and the read. */
	ANSWER_MS = 5 * 2000 + 1000,
};

struct run;

/* One of the ring that comes or goes. */
struct change {
	struct run *run;
	struct ring_movement movement;
	uint32_t node;
	enum ring_standing under_way, after; /* what it is, and then becomes */
	uint64_t hears_ns[NODES_MAX]; /* when each hears of it */
	bool has_begun, is_over;
};

/* What somebody hears later. */
struct rumor {
	struct rumor *next; /* of the run's, to be freed */
	struct run *run;
	uint32_t viewer, of;
	enum ring_standing place;
};

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
	int64_t seen[KEYS_MAX]; /* what somebody saw last */
	int64_t values; /* written so far */
	uint64_t moment;
	struct operation operations[REQUESTS + SETTLING];
	uint32_t count; /* of operations */
	uint32_t begun, applied, refused, read, unknown;
	bool is_broken;
	uint32_t nodes, keys;
	struct change changes[CHANGES];
	uint32_t change_count; /* 0: the ring stays as it is */
	struct rumor *rumors;
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
	uint32_t node = world_chance(run->world, run->nodes);
	enum consistency serial =
	    world_chance(run->world, 4) == 0 ? CONSISTENCY_LOCAL_SERIAL : CONSISTENCY_SERIAL;
	static const enum consistency commits[] = {CONSISTENCY_QUORUM, CONSISTENCY_QUORUM,
	    CONSISTENCY_ONE, CONSISTENCY_ALL, CONSISTENCY_ANY};
	uint32_t key = world_chance(run->world, run->keys);

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
	/* What one replica alone knows to be decided is what a change of the ring would lose. */
	ring_cas(run->ring, node, &client->op, (int32_t)key, client->operation.expected,
	    client->operation.written, serial,
	    run->change_count > 0 ? CONSISTENCY_ONE : commits[world_chance(run->world, 5)]);
}

/* ---- Changes of the ring ---------------------------------------------------------------------- */

static void
rumor_heard(void *context, uint32_t node)
{
	const struct rumor *rumor = context;

	(void)node;
	ring_set_place(rumor->run->ring, rumor->viewer, rumor->of, rumor->place);
	world_note(rumor->run->world, "node %u sees node %u as %d", rumor->viewer, rumor->of,
	    (int)rumor->place);
}

/* All hear that the node is something else now: some at once, one perhaps much later than it should. */
static void
change_tell(struct change *change, enum ring_standing place)
{
	struct run *run = change->run;
	uint64_t now = world_now(run->world);
	uint32_t sleeper = world_chance(run->world, run->nodes * 2);

	ring_set_place(run->ring, change->node, change->node, place);
	for (uint32_t i = 0; i < run->nodes; i++) {
		struct rumor *rumor;
		uint64_t at = now + world_chance(run->world, 2000) * WORLD_MS;

		if (i == change->node)
			continue;
		if (i == sleeper)
			at += 8 * WORLD_S;
		/* Not before what it heard last. */
		if (at <= change->hears_ns[i])
			at = change->hears_ns[i] + WORLD_MS;
		change->hears_ns[i] = at;
		rumor = calloc(1, sizeof(*rumor));
		*rumor = (struct rumor){run->rumors, run, i, change->node, place};
		run->rumors = rumor;
		world_at(run->world, at - now, rumor_heard, rumor, i);
	}
}

static void
change_move(void *context, uint32_t node)
{
	struct change *change = context;

	(void)node;
	ring_move(change->run->ring, change->node, &change->movement);
}

static void
change_moved(struct ring_movement *movement, const struct error *err)
{
	struct change *change = movement->context;

	world_note(change->run->world, "change of node %u: %s", change->node,
	    err == NULL ? "done" : err->text);
	if (err != NULL) {
		/* As an operator would, and data that came is not lost. */
		world_at(change->run->world, WORLD_S, change_move, change, change->node);
		return;
	}
	change_tell(change, change->after);
	change->is_over = true;
}

static void
change_begin(struct change *change)
{
	struct run *run = change->run;

	change->has_begun = true;
	change->movement.on_done = change_moved;
	change->movement.context = change;
	change->movement.skips_paxos = getenv("SIM_SKIP_PAXOS_REPAIR") != NULL;
	change_tell(change, change->under_way);
	world_at(run->world, RING_DELAY_MS * WORLD_MS, change_move, change, change->node);
}

/* One behind the other, and each when clients have done something. */
static void
run_changes(struct run *run)
{
	for (uint32_t i = 0; i < run->change_count; i++) {
		struct change *change = &run->changes[i];

		if (change->is_over)
			continue;
		if (!change->has_begun && run->begun > REQUESTS / 8 * (i + 1) &&
		    world_node(run->world, change->node)->is_up)
			change_begin(change);
		return;
	}
}

/* Is it on its way? Then it must not die. */
static bool
run_is_moving(const struct run *run, uint32_t node)
{
	for (uint32_t i = 0; i < run->change_count; i++)
		if (run->changes[i].node == node && run->changes[i].has_begun &&
		    !run->changes[i].is_over)
			return true;
	return false;
}

static void
run_plan_changes(struct run *run)
{
	run->change_count = CHANGES;
	run->changes[0] = (struct change){
	    .run = run, .node = NODES, .under_way = RING_JOINING, .after = RING_NORMAL};
	run->changes[1] = (struct change){.run = run,
	    .node = world_chance(run->world, NODES),
	    .under_way = RING_LEAVING,
	    .after = RING_OUT};
	for (uint32_t i = 0; i < run->nodes; i++)
		ring_set_place(run->ring, i, NODES, RING_OUT);
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

	for (uint32_t i = 0; i < run->nodes; i++)
		count += world_node(run->world, i)->is_up;
	return count;
}

static void
trouble_death(struct run *run, uint32_t node)
{
	if (nodes_up(run) < run->nodes - 1 || !world_node(run->world, node)->is_up ||
	    run_is_moving(run, node))
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
	uint32_t a = world_chance(run->world, run->nodes), b = world_chance(run->world, run->nodes);
	uint8_t groups[NODES_MAX];

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
		for (uint32_t i = 0; i < run->nodes; i++)
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
		run_changes(run);
		world_run(run->world,
		    world_chance(run->world, run->change_count > 0 ? 400 : 40) * WORLD_MS);
	}
}

/* One node beside this one is silent: which majority answers is for chance to say. */
static void
run_hide_one(struct run *run, uint32_t but)
{
	uint32_t hidden = (but + 1 + world_chance(run->world, run->nodes - 1)) % run->nodes;
	uint8_t groups[NODES_MAX] = {0};

	groups[hidden] = 1;
	world_heal(run->world);
	world_partition(run->world, groups);
	for (uint32_t i = 0; i < run->nodes; i++)
		ring_set_alive(run->ring, i, i != hidden);
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
	for (uint32_t i = 0; i < run->nodes; i++) {
		node_up(run, i);
		ring_set_alive(run->ring, i, true);
	}
	for (uint32_t i = 0; i < 20 && run->change_count > 0; i++) {
		run_changes(run);
		world_run(run->world, 5 * WORLD_S);
	}
	for (uint32_t i = 0; i < run->change_count; i++)
		if (!run->changes[i].is_over)
			run_break(run, "change %u of the ring did not end", i);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (run->clients[i].is_busy)
			run_break(run, "a request was never answered");
		ring_op_free(&run->clients[i].op);
	}
	for (uint32_t i = 0; i < run->keys * run->nodes && !run->is_broken; i++) {
		struct operation *operation = &run->operations[run->count];
		struct ring_op op = {.on_done = NULL};

		*operation = (struct operation){
		    .outcome = OUTCOME_READ, .key = i % run->keys, .began = ++run->moment};
		if (run->change_count > 0)
			run_hide_one(run, i / run->keys);
		ring_get_serial(
		    run->ring, i / run->keys, &op, (int32_t)(i % run->keys), CONSISTENCY_SERIAL);
		ring_wait(run->ring, &op);
		if (!op.is_done || op.has_failed) {
			run_break(run, "key %u cannot be read by node %u in peace: %s",
			    i % run->keys, i / run->keys, op.err.text);
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

	for (uint32_t key = 0; key < run->keys && !run->is_broken; key++) {
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
	bool has_changes = seed % 2 == 0;
	struct ring_options options = {.world = {.seed = seed,
					   .node_count = has_changes ? NODES_MAX : NODES,
					   .faults = {.loss = has_changes ? 0.2 : 0.02,
					       .reorder = 0.1,
					       .delay_min_ns = 200 * WORLD_US,
					       .delay_max_ns = 30 * WORLD_MS},
					   .skew_max_us = 200000,
					   .drift_max_ppm = 200,
					   .is_encoded = true,
					   .story_lines = 1500},
	    .factor = !has_changes && seed % 3 == 0 ? 5 : 3};
	struct run *run = calloc(1, sizeof(*run));
	bool is_sound;

	run->seed = seed;
	run->ring = ring_new(&options);
	run->world = ring_world(run->ring);
	run->nodes = has_changes ? NODES_MAX : NODES;
	run->keys = has_changes ? KEYS_MAX : KEYS;
	if (has_changes)
		run_plan_changes(run);
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
	while (run->rumors != NULL) {
		struct rumor *rumor = run->rumors;

		run->rumors = rumor->next;
		free(rumor);
	}
	free(run);
	return is_sound;
}

/* ---- A story ------------------------------------------------------------------------------- */

static bool
story_has(const uint32_t *nodes, uint32_t count, uint32_t node)
{
	for (uint32_t i = 0; i < count; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

/* In all eyes but one's. */
static void
story_set_place(struct ring *ring, uint32_t but, uint32_t of, enum ring_standing place)
{
	for (uint32_t i = 0; i < NODES_MAX; i++)
		if (i != but)
			ring_set_place(ring, i, of, place);
}

/* A key that the last node becomes a replica of; *sleeper: one who never is. */
static int32_t
story_key(struct ring *ring, uint32_t *sleeper)
{
	for (int32_t key = 0; key < 1000; key++) {
		uint32_t before[8], after[8], counts[2];

		story_set_place(ring, NODES_MAX, NODES, RING_OUT);
		counts[0] = ring_replicas(ring, key, before, 8);
		story_set_place(ring, NODES_MAX, NODES, RING_NORMAL);
		counts[1] = ring_replicas(ring, key, after, 8);
		story_set_place(ring, NODES_MAX, NODES, RING_OUT);
		if (!story_has(after, counts[1], NODES))
			continue;
		for (*sleeper = 0; *sleeper < NODES; ++*sleeper)
			if (!story_has(before, counts[0], *sleeper) &&
			    !story_has(after, counts[1], *sleeper))
				return key;
	}
	abort();
}

/*
 * All but one know that a node has joined. That one would have a majority of the replicas of before; they do not promise
 * it anything, before it has heard of the change.
 */
static bool
story_of_a_sleeper(void)
{
	struct ring_options options = {
	    .world = {.seed = 1,
		.node_count = NODES_MAX,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .factor = 3};
	struct ring *ring = ring_new(&options);
	struct ring_op op = {.on_done = NULL};
	uint32_t sleeper;
	int32_t key = story_key(ring, &sleeper);
	bool is_sound;

	story_set_place(ring, sleeper, NODES, RING_NORMAL);
	ring_cas(ring, sleeper, &op, key, 0, 1, CONSISTENCY_SERIAL, CONSISTENCY_QUORUM);
	ring_wait(ring, &op);
	is_sound = op.has_failed && op.err.code == ERROR_WRITE_TIMEOUT;
	ring_op_free(&op);
	ring_set_place(ring, sleeper, NODES, RING_NORMAL);
	ring_cas(ring, sleeper, &op, key, 0, 2, CONSISTENCY_SERIAL, CONSISTENCY_QUORUM);
	ring_wait(ring, &op);
	is_sound = is_sound && !op.has_failed && op.is_applied;
	ring_op_free(&op);
	ring_free(ring);
	if (!is_sound)
		printf("--- who has not heard of a change got a majority of before it\n");
	return is_sound;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 12);

	seeds_count(&seeds, story_of_a_sleeper());
	seeds_count(&seeds, linearizable_self_check());
	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed));
	return seeds_end(&seeds);
}
