/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_COORDINATOR_STORIES_H
#define HELENUS_TESTS_SIM_COORDINATOR_STORIES_H

/*
 * Short stories of a ring, each with one fault and what the client is told of it; part of coordinator_sim.
 */
#include <stdio.h>
#include <string.h>
#include "tests/sim/world/ring.h"

#define STORY(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("--- %s, line %d: %s\n", __func__, __LINE__, #condition);           \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static struct ring *
story_ring(uint32_t nodes, int32_t factor, uint32_t datacenters, bool has_hints)
{
	struct ring_options options = {
	    .world = {.seed = 7,
		.node_count = nodes,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .datacenters = datacenters,
	    .factor = factor,
	    .has_hints = has_hints};

	return ring_new(&options);
}

/* The request's outcome: ERROR_NONE, or the code; the op stays to be looked at. */
static enum error_code
story_put(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, int64_t v,
    enum consistency level)
{
	struct ring_row row = {pk, 0, v};

	ring_put(ring, node, op, &row, 1, v, level, WRITE_SIMPLE);
	ring_wait(ring, op);
	return !op->is_done ? ERROR_SERVER : op->has_failed ? op->err.code : ERROR_NONE;
}

static enum error_code
story_get(struct ring *ring, uint32_t node, struct ring_op *op, int32_t pk, enum consistency level)
{
	ring_get(ring, node, op, 0, pk, 0, level);
	ring_wait(ring, op);
	return !op->is_done ? ERROR_SERVER : op->has_failed ? op->err.code : ERROR_NONE;
}

static bool
story_is(const struct ring_op *op, enum consistency level, int32_t received, int32_t required)
{
	return op->err.consistency == level && op->err.received == received &&
	    op->err.required == required;
}

/* ---- Levels -------------------------------------------------------------------------------- */

static bool
story_unavailable(struct ring *ring)
{
	struct ring_op op = {0};

	ring_set_alive(ring, 2, false);
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_ALL) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_ALL, 2, 3));
	STORY(strcmp(op.err.text, "Cannot achieve consistency level ALL") == 0);
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_THREE) == ERROR_UNAVAILABLE);
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_ALL) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_ALL, 2, 3));
	ring_op_free(&op);
	ring_set_alive(ring, 1, false);
	STORY(story_put(ring, 0, &op, 1, 2, CONSISTENCY_QUORUM) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_QUORUM, 1, 2));
	ring_op_free(&op);
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_LOCAL_QUORUM) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_LOCAL_QUORUM, 1, 2));
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 2, CONSISTENCY_ONE) == ERROR_NONE);
	ring_op_free(&op);
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_ONE) == ERROR_NONE && op.rows[0].v == 2);
	ring_op_free(&op);
	return true;
}

static bool
story_timeouts(struct ring *ring)
{
	struct ring_op op = {0};
	uint64_t began;

	world_cut_both(ring_world(ring), 0, 1);
	world_cut_both(ring_world(ring), 0, 2);
	began = world_now(ring_world(ring));
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_QUORUM) == ERROR_WRITE_TIMEOUT);
	STORY(world_now(ring_world(ring)) - began >= 1900 * WORLD_MS);
	STORY(world_now(ring_world(ring)) - began < 2300 * WORLD_MS);
	STORY(story_is(&op, CONSISTENCY_QUORUM, 1, 2));
	STORY(strcmp(op.err.write_type, "SIMPLE") == 0);
	STORY(strcmp(op.err.text, "Operation timed out - received only 1 responses.") == 0);
	ring_op_free(&op);
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_QUORUM) == ERROR_READ_TIMEOUT);
	STORY(story_is(&op, CONSISTENCY_QUORUM, 1, 2) && op.err.data_present);
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 2, CONSISTENCY_ONE) == ERROR_NONE);
	ring_op_free(&op);
	return true;
}

static bool
story_failures(struct ring *ring)
{
	struct ring_op op = {0};
	uint64_t began;

	ring_forget_schema(ring, 2);
	began = world_now(ring_world(ring));
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_ALL) == ERROR_WRITE_FAILURE);
	STORY(world_now(ring_world(ring)) - began < 50 * WORLD_MS);
	STORY(op.err.required == 3 && op.err.failures == 1 && op.err.replica_count == 1);
	STORY(op.err.replicas[0].reason == FAILURE_INCOMPATIBLE_SCHEMA);
	STORY(op.err.replicas[0].address_size == 4 && op.err.replicas[0].address[0] == 10);
	STORY(strstr(op.err.text, " and 1 failures: INCOMPATIBLE_SCHEMA from /10.") != NULL);
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 2, CONSISTENCY_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_ALL) == ERROR_READ_FAILURE);
	STORY(op.err.required == 3 && op.err.failures == 1 && op.err.data_present);
	ring_op_free(&op);
	/* Another replica is asked in its place. */
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_QUORUM) == ERROR_NONE && op.rows[0].v == 2);
	ring_op_free(&op);
	return true;
}

static bool
story_hints(struct ring *ring)
{
	uint32_t replicas[3], other = 0;
	struct ring_op op = {0};

	STORY(ring_replicas(ring, 5, replicas, 3) == 3);
	while (other == replicas[0] || other == replicas[1] || other == replicas[2])
		other++;
	/* One does not answer. */
	world_cut_both(ring_world(ring), other, replicas[2]);
	STORY(story_put(ring, other, &op, 5, 1, CONSISTENCY_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	STORY(ring_hint_count(ring) == 0);
	world_run(ring_world(ring), 3 * WORLD_S);
	STORY(ring_hint_count(ring) == 1);
	world_heal(ring_world(ring));
	STORY(ring_look(ring, replicas[2], 5, 0) == -1);
	ring_deliver_hints(ring);
	world_run(ring_world(ring), WORLD_S);
	STORY(ring_look(ring, replicas[2], 5, 0) == 1);
	/* Nobody is there: the hints are the answer at ANY, and no answer at ONE. */
	for (uint32_t i = 0; i < 3; i++)
		ring_set_alive(ring, replicas[i], false);
	STORY(story_put(ring, other, &op, 5, 2, CONSISTENCY_ANY) == ERROR_NONE);
	ring_op_free(&op);
	STORY(ring_hint_count(ring) == 4);
	STORY(story_put(ring, other, &op, 5, 3, CONSISTENCY_ONE) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_ONE, 0, 1));
	ring_op_free(&op);
	STORY(ring_hint_count(ring) == 4);
	for (uint32_t i = 0; i < 3; i++)
		ring_set_alive(ring, replicas[i], true);
	ring_deliver_hints(ring);
	world_run(ring_world(ring), WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		STORY(ring_look(ring, replicas[i], 5, 0) == 2);
	return true;
}

static bool
story_datacenters(struct ring *ring)
{
	struct messaging_verb_stats before, after;
	struct ring_op op = {0};

	messaging_verb_stats(
	    world_node(ring_world(ring), 0)->messaging, VERB_MUTATION_REQ, &before);
	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_EACH_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	messaging_verb_stats(world_node(ring_world(ring), 0)->messaging, VERB_MUTATION_REQ, &after);
	/* Two of its own data center, and one message for the other. */
	STORY(after.sent - before.sent == 3);
	world_run(ring_world(ring), WORLD_S);
	for (uint32_t i = 0; i < 6; i++)
		STORY(ring_look(ring, i, 1, 0) == 1);
	for (uint32_t i = 1; i < 6; i += 2)
		ring_set_alive(ring, i, i == 5);
	STORY(story_put(ring, 0, &op, 1, 2, CONSISTENCY_EACH_QUORUM) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_EACH_QUORUM, 1, 2));
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 3, CONSISTENCY_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	ring_set_alive(ring, 5, false);
	STORY(story_put(ring, 0, &op, 1, 4, CONSISTENCY_QUORUM) == ERROR_UNAVAILABLE);
	STORY(story_is(&op, CONSISTENCY_QUORUM, 3, 4));
	ring_op_free(&op);
	STORY(story_put(ring, 0, &op, 1, 4, CONSISTENCY_LOCAL_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	STORY(story_get(ring, 2, &op, 1, CONSISTENCY_LOCAL_QUORUM) == ERROR_NONE);
	STORY(op.rows[0].v == 4);
	ring_op_free(&op);
	STORY(story_get(ring, 2, &op, 1, CONSISTENCY_EACH_QUORUM) == ERROR_UNAVAILABLE);
	ring_op_free(&op);
	return true;
}

/* Whoever of the other data center was to pass a write on cannot be reached, or stands still: its neighbours get it. */
static bool
story_silent_forwarder(struct ring *ring)
{
	struct world *world = ring_world(ring);
	struct ring_op op = {0};
	uint64_t began;

	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_EACH_QUORUM) == ERROR_NONE);
	ring_op_free(&op);
	/* One of the three in turn is chosen: each once at least. */
	for (int64_t i = 2; i < 8; i++) {
		world_pause(world, 3, 3 * WORLD_S);
		began = world_now(world);
		STORY(story_put(ring, 0, &op, 1, i, CONSISTENCY_EACH_QUORUM) == ERROR_NONE);
		STORY(world_now(world) - began < 1200 * WORLD_MS);
		ring_op_free(&op);
		STORY(ring_look(ring, 1, 1, 0) == i || ring_look(ring, 5, 1, 0) == i);
		world_run(world, 4 * WORLD_S);
	}
	/* A data center that is cut off is no forwarder's fault. */
	for (uint32_t i = 1; i < 6; i += 2)
		world_cut_both(world, 0, i);
	STORY(story_put(ring, 0, &op, 1, 9, CONSISTENCY_EACH_QUORUM) == ERROR_WRITE_TIMEOUT);
	STORY(story_is(&op, CONSISTENCY_EACH_QUORUM, 3, 4));
	ring_op_free(&op);
	world_heal(world);
	ring_kill(ring, 3);
	for (int64_t i = 10; i < 16; i++) {
		began = world_now(world);
		STORY(story_put(ring, 0, &op, 1, i, CONSISTENCY_EACH_QUORUM) == ERROR_NONE);
		STORY(world_now(world) - began < 1200 * WORLD_MS);
		ring_op_free(&op);
	}
	return true;
}

/* ---- Reads --------------------------------------------------------------------------------- */

static bool
story_slow_replica(struct ring *ring)
{
	uint32_t replicas[3], other = 0;
	struct ring_op op = {0};
	uint64_t began;

	STORY(ring_replicas(ring, 9, replicas, 3) == 3);
	while (other == replicas[0] || other == replicas[1] || other == replicas[2])
		other++;
	STORY(story_put(ring, other, &op, 9, 1, CONSISTENCY_ALL) == ERROR_NONE);
	ring_op_free(&op);
	for (uint32_t i = 0; i < 200; i++) {
		STORY(story_get(ring, other, &op, 9, CONSISTENCY_QUORUM) == ERROR_NONE);
		ring_op_free(&op);
	}
	for (uint32_t i = 0; i < 3; i++) {
		world_pause(ring_world(ring), replicas[i], 3 * WORLD_S);
		began = world_now(ring_world(ring));
		STORY(story_get(ring, other, &op, 9, CONSISTENCY_QUORUM) == ERROR_NONE);
		STORY(op.rows[0].v == 1);
		STORY(world_now(ring_world(ring)) - began < 100 * WORLD_MS);
		ring_op_free(&op);
		world_run(ring_world(ring), 4 * WORLD_S);
	}
	return true;
}

/*
 * The answers of one replica are lost, and gossip's detours hide it: reads ask once more, as soon as ever, until the
 * dynamic snitch has learned of the timeouts; then they leave the replica alone.
 */
static bool
story_answers_are_lost(struct ring *ring)
{
	struct world *world = ring_world(ring);
	struct coordinator_stats before, after;
	uint32_t replicas[3], other = 0;
	struct ring_op op = {0};
	uint64_t began;

	STORY(ring_replicas(ring, 9, replicas, 3) == 3);
	while (other == replicas[0] || other == replicas[1] || other == replicas[2])
		other++;
	STORY(story_put(ring, other, &op, 9, 1, CONSISTENCY_ALL) == ERROR_NONE);
	ring_op_free(&op);
	for (uint32_t i = 0; i < 200; i++) {
		STORY(story_get(ring, other, &op, 9, CONSISTENCY_QUORUM) == ERROR_NONE);
		ring_op_free(&op);
	}
	world_cut(world, replicas[0], other);
	for (uint32_t i = 0; i < 600; i++) {
		began = world_now(world);
		STORY(story_get(ring, other, &op, 9, CONSISTENCY_QUORUM) == ERROR_NONE);
		STORY(world_now(world) - began < 20 * WORLD_MS);
		ring_op_free(&op);
		world_run(world, 5 * WORLD_MS);
	}
	coordinator_stats(ring_coordinator(ring, other), &before);
	STORY(before.speculative_retries > 20);
	for (uint32_t i = 0; i < 100; i++) {
		STORY(story_get(ring, other, &op, 9, CONSISTENCY_QUORUM) == ERROR_NONE);
		ring_op_free(&op);
	}
	coordinator_stats(ring_coordinator(ring, other), &after);
	STORY(after.speculative_retries - before.speculative_retries < 20);
	return true;
}

static bool
story_slow_replica_of_ranges(struct ring *ring)
{
	struct world *world = ring_world(ring);
	struct ring_op op = {0};
	uint64_t began;

	for (int32_t i = 0; i < 50; i++) {
		STORY(story_put(ring, 0, &op, i, i, CONSISTENCY_ALL) == ERROR_NONE);
		ring_op_free(&op);
	}
	/* So many that a few late answers are fewer than a hundredth. */
	for (uint32_t i = 0; i < 300; i++) {
		ring_scan(ring, 0, &op, 0, CONSISTENCY_QUORUM);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed);
		ring_op_free(&op);
	}
	for (uint32_t node = 1; node < 5; node++) {
		world_pause(world, node, 3 * WORLD_S);
		began = world_now(world);
		ring_scan(ring, 0, &op, 0, CONSISTENCY_QUORUM);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed && op.row_count == 50);
		STORY(world_now(world) - began < 300 * WORLD_MS);
		ring_op_free(&op);
		world_run(world, 4 * WORLD_S);
	}
	/* One that is gone, and that nobody has missed: its host refuses. */
	ring_kill(ring, 2);
	ring_scan(ring, 0, &op, 0, CONSISTENCY_QUORUM);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed && op.row_count == 50);
	ring_op_free(&op);
	return true;
}

/*
 * A replica that takes no writes, but answers reads: what it lacks goes to the third, which then counts in its place; and so it is for
 * a range. What was read once is read ever after.
 */
static bool
story_replica_takes_no_repairs(struct ring *ring)
{
	struct world *world = ring_world(ring);
	struct ring_op op = {0};
	uint32_t holders;

	for (int32_t pk = 1; pk < 9; pk++) {
		STORY(story_put(ring, 0, &op, pk, 1, CONSISTENCY_ALL) == ERROR_NONE);
		ring_op_free(&op);
	}
	world_lose_verb(world, 1, VERB_MUTATION_REQ);
	world_lose_verb(world, 2, VERB_MUTATION_REQ);
	world_lose_verb(world, 1, VERB_READ_REPAIR_REQ);
	for (int32_t pk = 1; pk < 9; pk++) {
		STORY(story_put(ring, 0, &op, pk, 2, CONSISTENCY_ONE) == ERROR_NONE);
		ring_op_free(&op);
	}
	/* Whichever of the two the read asks. */
	for (int32_t pk = 1; pk < 5; pk++) {
		STORY(story_get(ring, 0, &op, pk, CONSISTENCY_QUORUM) == ERROR_NONE);
		STORY(op.rows[0].v == 2);
		ring_op_free(&op);
		holders = 0;
		for (uint32_t node = 0; node < 3; node++)
			holders += ring_look(ring, node, pk, 0) == 2;
		STORY(holders == 2);
	}
	ring_scan(ring, 0, &op, 0, CONSISTENCY_QUORUM);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed && op.row_count == 8);
	ring_op_free(&op);
	for (int32_t pk = 1; pk < 9; pk++)
		STORY(ring_look(ring, 2, pk, 0) == 2 && ring_look(ring, 1, pk, 0) == 1);
	/* With nobody to take its place the read fails, and says why. */
	STORY(story_put(ring, 0, &op, 9, 3, CONSISTENCY_ONE) == ERROR_NONE);
	ring_op_free(&op);
	world_lose_verb(world, 2, VERB_READ_REPAIR_REQ);
	STORY(story_get(ring, 0, &op, 9, CONSISTENCY_QUORUM) == ERROR_READ_TIMEOUT);
	STORY(op.err.data_present);
	ring_op_free(&op);
	return true;
}

/* Node 0 finds the others quicker than itself. */
static void
story_make_slow(struct ring *ring)
{
	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t node = 0; node < 3; node++)
			snitch_record_latency(ring_snitch(ring, 0), ring_peer(ring, 0, node),
			    node == 0 ? WORLD_S : (1 + node) * WORLD_MS);
	world_run(ring_world(ring), 200 * WORLD_MS);
}

/*
 * Whose own replica is the slowest asks the two others; where one of them is late, fails, or takes no repair, it turns to
 * its own.
 */
static bool
story_own_replica_is_last(struct ring *ring)
{
	struct world *world = ring_world(ring);
	struct ring_op op = {0};
	uint64_t sent, began;

	for (int32_t pk = 1; pk < 9; pk++) {
		STORY(story_put(ring, 0, &op, pk, 1, CONSISTENCY_ALL) == ERROR_NONE);
		ring_op_free(&op);
	}
	story_make_slow(ring);
	sent = world_node(world, 0)->sent;
	STORY(story_get(ring, 0, &op, 1, CONSISTENCY_QUORUM) == ERROR_NONE);
	STORY(world_node(world, 0)->sent - sent == 2);
	ring_op_free(&op);
	for (uint32_t node = 1; node < 3; node++) {
		story_make_slow(ring);
		world_cut_both(world, 0, node);
		STORY(story_get(ring, 0, &op, 2, CONSISTENCY_QUORUM) == ERROR_NONE);
		STORY(op.row_count == 1 && op.rows[0].v == 1);
		ring_op_free(&op);
		story_make_slow(ring);
		ring_scan(ring, 0, &op, 0, CONSISTENCY_QUORUM);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed && op.row_count == 8);
		ring_op_free(&op);
		world_heal(world);
	}
	story_make_slow(ring);
	world_cut_both(world, 0, 1);
	world_cut_both(world, 0, 2);
	STORY(story_get(ring, 0, &op, 3, CONSISTENCY_QUORUM) == ERROR_READ_TIMEOUT);
	STORY(story_is(&op, CONSISTENCY_QUORUM, 1, 2) && op.err.data_present);
	ring_op_free(&op);
	world_heal(world);
	/* What only one of the two has, and the other does not take. */
	world_lose_verb(world, 0, VERB_MUTATION_REQ);
	world_lose_verb(world, 2, VERB_MUTATION_REQ);
	world_lose_verb(world, 2, VERB_READ_REPAIR_REQ);
	STORY(story_put(ring, 1, &op, 4, 2, CONSISTENCY_ONE) == ERROR_NONE);
	ring_op_free(&op);
	story_make_slow(ring);
	STORY(story_get(ring, 0, &op, 4, CONSISTENCY_QUORUM) == ERROR_NONE);
	STORY(op.rows[0].v == 2 && ring_look(ring, 0, 4, 0) == 2 && ring_look(ring, 2, 4, 0) == 1);
	ring_op_free(&op);
	world_heal(world);
	ring_forget_schema(ring, 1);
	story_make_slow(ring);
	began = world_now(world);
	STORY(story_get(ring, 0, &op, 5, CONSISTENCY_QUORUM) == ERROR_NONE);
	STORY(world_now(world) - began < 100 * WORLD_MS);
	ring_op_free(&op);
	return true;
}

/* A row that one replica has first is deleted on the others: the limit must not eat the next. */
static bool
story_short_read(struct ring *ring)
{
	struct ring_row rows[6];
	struct ring_op op = {0};

	for (int32_t i = 0; i < 6; i++)
		rows[i] = (struct ring_row){1, i, i};
	ring_put(ring, 0, &op, rows, 6, 1, CONSISTENCY_ALL, WRITE_UNLOGGED_BATCH);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed);
	ring_op_free(&op);
	world_cut_both(ring_world(ring), 1, 2);
	world_cut_both(ring_world(ring), 0, 2);
	for (int32_t i = 0; i < 4; i++) {
		ring_delete(ring, 0, &op, 1, i, 2, CONSISTENCY_QUORUM);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed);
		ring_op_free(&op);
	}
	world_run(ring_world(ring), 3 * WORLD_S);
	world_heal(ring_world(ring));
	ring_get(ring, 2, &op, 0, 1, 2, CONSISTENCY_QUORUM);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed && op.row_count == 2);
	STORY(op.rows[0].ck == 4 && op.rows[1].ck == 5);
	ring_op_free(&op);
	/* And the deletions were repaired. */
	STORY(ring_look(ring, 2, 1, 0) == -1 && ring_look(ring, 2, 1, 5) == 5);
	return true;
}

static bool
story_ranges(struct ring *ring)
{
	enum { KEYS = 300 };
	struct ring_op op = {0};
	bool seen[KEYS] = {false};

	for (int32_t i = 0; i < KEYS; i++) {
		STORY(
		    story_put(ring, (uint32_t)i % 5, &op, i, i, CONSISTENCY_QUORUM) == ERROR_NONE);
		ring_op_free(&op);
	}
	for (int level = 0; level < 2; level++) {
		for (uint32_t limit = 0; limit < 200; limit += 37) {
			uint32_t expected = limit == 0 ? KEYS : limit;

			ring_scan(ring, limit % 5, &op, limit,
			    level == 0 ? CONSISTENCY_ONE : CONSISTENCY_QUORUM);
			ring_wait(ring, &op);
			STORY(op.is_done && !op.has_failed);
			STORY(op.row_count == expected);
			memset(seen, 0, sizeof(seen));
			for (uint32_t i = 0; i < op.row_count; i++) {
				STORY(op.rows[i].pk >= 0 && op.rows[i].pk < KEYS);
				STORY(!seen[op.rows[i].pk] && op.rows[i].v == op.rows[i].pk);
				seen[op.rows[i].pk] = true;
			}
			ring_op_free(&op);
		}
	}
	ring_set_alive(ring, 1, false);
	ring_set_alive(ring, 2, false);
	ring_scan(ring, 0, &op, 0, CONSISTENCY_ALL);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_UNAVAILABLE);
	ring_op_free(&op);
	return true;
}

/* ---- Counters, batches, TRUNCATE ----------------------------------------------------------- */

static bool
story_counters(struct ring *ring)
{
	struct ring_op op = {0};
	int64_t sum = 0;

	for (int32_t i = 1; i <= 40; i++) {
		ring_increment(ring, (uint32_t)i % 5, &op, 1, i,
		    i % 2 == 0 ? CONSISTENCY_QUORUM : CONSISTENCY_ONE);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed);
		ring_op_free(&op);
		sum += i;
	}
	world_run(ring_world(ring), WORLD_S);
	for (uint32_t node = 0; node < 5; node++) {
		ring_get(ring, node, &op, 1, 1, 0, CONSISTENCY_ALL);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed && op.row_count == 1);
		STORY(op.rows[0].v == sum);
		ring_op_free(&op);
	}
	for (uint32_t node = 0; node < 5; node++)
		ring_set_alive(ring, node, node == 0);
	for (int32_t pk = 0; pk < 20; pk++) {
		uint32_t replicas[3];

		STORY(ring_replicas(ring, pk, replicas, 3) == 3);
		if (replicas[0] == 0 || replicas[1] == 0 || replicas[2] == 0)
			continue;
		ring_increment(ring, 0, &op, pk, 1, CONSISTENCY_ONE);
		ring_wait(ring, &op);
		STORY(op.is_done && op.has_failed && op.err.code == ERROR_UNAVAILABLE);
		ring_op_free(&op);
		return true;
	}
	STORY(!"a key without node 0 was not found");
	return false;
}

static bool
story_batches(struct ring *ring)
{
	struct ring_row rows[50];
	struct ring_op op = {0};

	for (int32_t i = 0; i < 50; i++)
		rows[i] = (struct ring_row){i, 0, i};
	ring_put(ring, 0, &op, rows, 50, 1, CONSISTENCY_QUORUM, WRITE_UNLOGGED_BATCH);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed && op.done_count == 1);
	ring_op_free(&op);
	for (int32_t i = 0; i < 50; i++) {
		STORY(story_get(ring, (uint32_t)i % 5, &op, i, CONSISTENCY_QUORUM) == ERROR_NONE);
		STORY(op.row_count == 1 && op.rows[0].v == i);
		ring_op_free(&op);
	}
	world_cut_both(ring_world(ring), 0, 1);
	world_cut_both(ring_world(ring), 0, 2);
	ring_put(ring, 0, &op, rows, 50, 2, CONSISTENCY_QUORUM, WRITE_UNLOGGED_BATCH);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_WRITE_TIMEOUT);
	STORY(strcmp(op.err.write_type, "UNLOGGED_BATCH") == 0 && op.done_count == 1);
	ring_op_free(&op);
	return true;
}

static bool
story_truncate(struct ring *ring)
{
	struct ring_op op = {0};

	STORY(story_put(ring, 0, &op, 1, 1, CONSISTENCY_ALL) == ERROR_NONE);
	ring_op_free(&op);
	ring_truncate(ring, 1, &op);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed);
	ring_op_free(&op);
	for (uint32_t i = 0; i < 3; i++)
		STORY(ring_look(ring, i, 1, 0) == -1);
	ring_forget_schema(ring, 2);
	ring_truncate(ring, 1, &op);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_TRUNCATE);
	STORY(strstr(op.err.text, "Error during truncate: Truncate failed on replica /10.") ==
	    op.err.text);
	ring_op_free(&op);
	ring_set_alive(ring, 2, false);
	ring_truncate(ring, 1, &op);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_TRUNCATE);
	STORY(strcmp(op.err.text, "Error during truncate: Cannot achieve consistency level ALL") ==
	    0);
	ring_op_free(&op);
	return true;
}

/* Many partitions cost the time of one, come in the order that was asked for, and fail together. */
static bool
story_partitions(struct ring *ring)
{
	static const enum consistency levels[] = {
	    CONSISTENCY_ONE, CONSISTENCY_QUORUM, CONSISTENCY_ALL};
	enum { COUNT = 40 };
	struct ring_op op = {0};

	for (int32_t i = 0; i < COUNT; i += 2) {
		STORY(story_put(ring, 0, &op, i, i, CONSISTENCY_ALL) == ERROR_NONE);
		ring_op_free(&op);
	}
	for (size_t i = 0; i < 3; i++) {
		uint64_t began = world_now(ring_world(ring));

		ring_get_many(ring, 1, &op, 0, COUNT, levels[i]);
		ring_wait(ring, &op);
		STORY(op.is_done && !op.has_failed && op.row_count == COUNT / 2);
		STORY(world_now(ring_world(ring)) - began < 10 * WORLD_MS);
		for (uint32_t j = 0; j < COUNT / 2; j++)
			STORY(op.rows[j].pk == (int32_t)(2 * j) && op.rows[j].v == 2 * j);
		ring_op_free(&op);
	}
	/* One replica has them newer: the digests of some differ, and those are merged. */
	world_cut_both(ring_world(ring), 0, 1);
	for (int32_t i = 0; i < COUNT; i += 4) {
		STORY(story_put(ring, 0, &op, i, i + 100, CONSISTENCY_ONE) == ERROR_NONE);
		ring_op_free(&op);
	}
	world_heal(ring_world(ring));
	ring_get_many(ring, 1, &op, 0, COUNT, CONSISTENCY_ALL);
	ring_wait(ring, &op);
	STORY(op.is_done && !op.has_failed && op.row_count == COUNT / 2);
	for (uint32_t j = 0; j < COUNT / 2; j++)
		STORY(op.rows[j].v == 2 * j + (j % 2 == 0 ? 100 : 0));
	ring_op_free(&op);
	ring_set_alive(ring, 2, false);
	ring_get_many(ring, 1, &op, 0, COUNT, CONSISTENCY_ALL);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_UNAVAILABLE);
	ring_op_free(&op);
	world_cut_both(ring_world(ring), 1, 0);
	ring_get_many(ring, 1, &op, 0, COUNT, CONSISTENCY_TWO);
	ring_wait(ring, &op);
	STORY(op.is_done && op.has_failed && op.err.code == ERROR_READ_TIMEOUT);
	STORY(op.done_count == 1);
	ring_op_free(&op);
	return true;
}

/* ---- All of them --------------------------------------------------------------------------- */

static void
stories_run(unsigned *passed, unsigned *failed)
{
	static const struct {
		bool (*tell)(struct ring *ring);
		uint32_t nodes;
		int32_t factor;
		uint32_t datacenters;
		bool has_hints;
	} stories[] = {
	    {story_unavailable, 3, 3, 1, false},
	    {story_timeouts, 3, 3, 1, false},
	    {story_failures, 3, 3, 1, false},
	    {story_hints, 5, 3, 1, true},
	    {story_datacenters, 6, 3, 2, false},
	    {story_silent_forwarder, 6, 3, 2, false},
	    {story_slow_replica, 5, 3, 1, false},
	    {story_slow_replica_of_ranges, 5, 3, 1, false},
	    {story_answers_are_lost, 5, 3, 1, false},
	    {story_replica_takes_no_repairs, 3, 3, 1, false},
	    {story_own_replica_is_last, 3, 3, 1, false},
	    {story_short_read, 3, 3, 1, false},
	    {story_ranges, 5, 3, 1, false},
	    {story_ranges, 5, 2, 1, false},
	    {story_ranges, 5, 1, 1, false},
	    {story_partitions, 3, 3, 1, false},
	    {story_counters, 5, 3, 1, false},
	    {story_batches, 5, 3, 1, false},
	    {story_truncate, 3, 3, 1, false},
	};

	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		struct ring *ring = story_ring(stories[i].nodes, stories[i].factor,
		    stories[i].datacenters, stories[i].has_hints);

		*(stories[i].tell(ring) ? passed : failed) += 1;
		ring_free(ring);
	}
}

#endif
