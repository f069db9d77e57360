/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repair in a simulated world (tests/sim/world), from seeds: three replicas that missed each other's writes and deletes
 * are repaired, fully or incrementally, while nodes are killed or cut off and messages get lost. Then, always:
 *   - a command ends;
 *   - one that ended well, of a quiet ring, leaves equal rows everywhere and nothing for a preview to find;
 *   - no session of an incremental repair is left open, and no data is pending in one.
 *
 *   repair_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cluster/repair.h"
#include "storage/stream_writer.h"
#include "tests/sim/world/ring.h"
#include "tests/sim/world/seeds.h"

enum { NODES = 3, KEYS = 60, ROUNDS = 4 };

struct run {
	uint64_t seed;
	struct ring *ring;
	struct world *world;
	int64_t timestamp;
	uint32_t coordinator, number;
	bool is_in_sync; /* as a preview said */
	bool has_failed;
	struct repair_status status;
};

#define CHECK(run, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("seed %" PRIu64 ": %s (line %d)\n", (run)->seed, #what, __LINE__);  \
			(run)->has_failed = true;                                                  \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* Writes and deletes that one node does not see. */
static void
run_diverge(struct run *run)
{
	for (uint32_t i = 0; i < KEYS && !run->has_failed; i++) {
		uint32_t absent = world_chance(run->world, NODES);
		uint32_t by = (absent + 1 + world_chance(run->world, NODES - 1)) % NODES;
		int32_t key = (int32_t)world_chance(run->world, KEYS);
		struct ring_row row = {key, 1, ++run->timestamp};
		struct ring_op op = {.on_done = NULL};

		ring_set_alive(run->ring, absent, false);
		if (world_chance(run->world, 4) == 0)
			ring_delete(run->ring, by, &op, key, 1, run->timestamp, CONSISTENCY_ONE);
		else
			ring_put(run->ring, by, &op, &row, 1, run->timestamp, CONSISTENCY_ONE,
			    WRITE_SIMPLE);
		ring_wait(run->ring, &op);
		CHECK(run, op.is_done && !op.has_failed);
		ring_op_free(&op);
		ring_set_alive(run->ring, absent, true);
	}
	world_run(run->world, 3 * WORLD_S);
}

static void
look_at_line(void *context, const struct repair_line *line)
{
	struct run *run = context;

	if (strstr(line->text, "was in sync") != NULL)
		run->is_in_sync = true;
}

/* True too when the coordinator is gone: then nobody waits. */
static bool
repair_is_over(struct world *world, void *context)
{
	struct run *run = context;

	if (!world_node(world, run->coordinator)->is_up)
		return true;
	return !repairs_status(ring_repairs(run->ring, run->coordinator), run->number, 0,
		   look_at_line, run, &run->status) ||
	    run->status.is_done;
}

static void
run_repair(struct run *run, bool is_incremental, enum repair_preview preview)
{
	struct repair_options options = {.keyspace = "ks",
	    .parallelism = (enum repair_parallelism)world_chance(run->world, 3),
	    .job_threads = 1 + world_chance(run->world, 2),
	    .preview = preview,
	    .is_incremental = is_incremental};
	struct error err;

	run->is_in_sync = false;
	run->coordinator = world_chance(run->world, NODES);
	run->status = (struct repair_status){0};
	CHECK(run,
	    repairs_start(
		ring_repairs(run->ring, run->coordinator), &options, &run->number, &err) == 0);
}

static void
run_set_down(struct run *run, uint32_t victim)
{
	ring_set_alive(run->ring, victim, false);
	for (uint32_t i = 0; i < NODES; i++) {
		if (i == victim || !world_node(run->world, i)->is_up)
			continue;
		repairs_peer_is_down(ring_repairs(run->ring, i), ring_peer(run->ring, i, victim));
		streams_peer_is_down(ring_streams(run->ring, i), ring_peer(run->ring, i, victim));
	}
}

static void
run_trouble(struct run *run)
{
	struct world_faults faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 5 * WORLD_MS};
	uint32_t victim = world_chance(run->world, NODES);

	faults.loss = world_chance(run->world, 2) * 0.05;
	faults.duplicate = 0.02;
	faults.stream_break = 0.01;
	world_set_faults(run->world, &faults);
	world_run(run->world, world_chance(run->world, 40) * WORLD_MS);
	switch (world_chance(run->world, 3)) {
	case 0:
		ring_kill(run->ring, victim);
		world_run(run->world, world_chance(run->world, 2000) * WORLD_MS);
		run_set_down(run, victim);
		world_run(run->world, world_chance(run->world, 8000) * WORLD_MS);
		world_start(run->world, victim);
		ring_set_alive(run->ring, victim, true);
		break;
	case 1:
		world_cut_both(run->world, victim, (victim + 1) % NODES);
		world_run(run->world, world_chance(run->world, 90000) * WORLD_MS);
		world_heal(run->world);
		break;
	default:
		break;
	}
}

static void
count_open(void *context, const struct repair_local *local)
{
	*(uint32_t *)context += !repair_state_is_over(local->state);
}

static void
run_check_equal(struct run *run)
{
	for (int32_t key = 0; key < KEYS; key++)
		for (uint32_t i = 1; i < NODES; i++)
			CHECK(run,
			    ring_look(run->ring, 0, key, 1) == ring_look(run->ring, i, key, 1));
}

static void
run_rounds(struct run *run)
{
	struct world_faults calm = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 5 * WORLD_MS};
	uint32_t open = 0;

	for (uint32_t round = 0; round < ROUNDS && !run->has_failed; round++) {
		run_diverge(run);
		run_repair(run, world_chance(run->world, 2) == 0, REPAIR_PREVIEW_NONE);
		run_trouble(run);
		CHECK(run,
		    world_run_until(run->world, repair_is_over, run, 10 * WORLD_MS, 900 * WORLD_S));
		world_set_faults(run->world, &calm);
		/* Sessions that were promised are asked about each minute. */
		world_run(run->world, 400 * WORLD_S);
	}
	for (uint32_t i = 0; i < NODES; i++)
		repairs_each_session(ring_repairs(run->ring, i), count_open, &open);
	CHECK(run, open == 0);
	run_repair(run, true, REPAIR_PREVIEW_NONE);
	CHECK(run, world_run_until(run->world, repair_is_over, run, 10 * WORLD_MS, 900 * WORLD_S));
	if (run->status.has_failed)
		printf("%s\n", run->status.failure);
	CHECK(run, !run->status.has_failed);
	run_repair(run, false, REPAIR_PREVIEW_NONE);
	CHECK(run, world_run_until(run->world, repair_is_over, run, 10 * WORLD_MS, 900 * WORLD_S));
	CHECK(run, !run->status.has_failed);
	run_check_equal(run);
	run_repair(run, false, REPAIR_PREVIEW_ALL);
	CHECK(run, world_run_until(run->world, repair_is_over, run, 10 * WORLD_MS, 900 * WORLD_S));
	CHECK(run, !run->status.has_failed && run->is_in_sync);
}

/* A stream of a session that had failed came to its end later: what it brought is in no other session's way. */
static void
run_leftovers(struct run *run)
{
	static const struct stream_range all = {INT64_MIN, INT64_MIN};
	static const struct uuid nobody = {{1, 2, 3, 4, 5, 6, 0x11, 8, 0x89}};
	struct error err;

	run_diverge(run);
	for (uint32_t i = 0; i < NODES && !run->has_failed; i++)
		CHECK(run,
		    store_anticompact(ring_store(run->ring, i), ring_table_store(run->ring, i, 0),
			&nobody, &all, 1, &err) == 0);
	run_repair(run, true, REPAIR_PREVIEW_NONE);
	CHECK(run, world_run_until(run->world, repair_is_over, run, 10 * WORLD_MS, 900 * WORLD_S));
	CHECK(run, !run->status.has_failed);
	run_check_equal(run);
}

static bool
run_seed(uint64_t seed, void (*tell)(struct run *run))
{
	struct ring_options options = {
	    .world = {.seed = seed,
		.node_count = NODES,
		.is_encoded = true,
		.faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 2 * WORLD_MS}},
	    .factor = 3};
	struct run run = {.seed = seed, .timestamp = 1};

	streams_options_init(&options.streams);
	options.streams.keep_alive_ns = 5 * WORLD_S;
	options.streams.retry_ns = 100 * WORLD_MS;
	run.ring = ring_new(&options);
	run.world = ring_world(run.ring);
	tell(&run);
	if (run.has_failed)
		world_tell(run.world, stdout);
	ring_free(run.ring);
	return !run.has_failed;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 4);

	seeds_count(&seeds, run_seed(seeds.first, run_leftovers));
	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed, run_rounds));
	return seeds_end(&seeds);
}
