/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints in a simulated world, from seeds: a replica is down while rows are written at QUORUM, comes back, and is given
 * what it missed, while nodes are killed, lose their power, stand still and are cut off in the middle of it. Then, always:
 *   - the replica's own store has every row that was acknowledged;
 *   - nobody has a hint left, on disk or in memory.
 *
 *   hints_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include "base/log.h"
#include "tests/sim/world/ring.h"
#include "tests/sim/world/seeds.h"

enum {
	NODES = 3,
	VICTIM = 2,
	WRITES = 60,
	ROWS = 25, /* of a write */
	TROUBLES = 4,
};

struct run {
	struct ring *ring;
	struct world *world;
	uint64_t seed;
	bool is_acked[WRITES];
	uint64_t sent;
	bool is_broken;
};

static void
run_break(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (!run->is_broken) {
		printf("--- seed %" PRIu64 " (hints_sim %" PRIu64 " 1): ", run->seed, run->seed);
		va_start(arguments, format);
		vprintf(format, arguments);
		va_end(arguments);
		printf("\n");
		world_tell(run->world, stdout);
	}
	run->is_broken = true;
}

/* Small files, and a page takes its time. */
static void
run_set(struct run *run, uint32_t node)
{
	struct hints_settings *settings = hints_settings(ring_hints(run->ring, node));

	atomic_store(&settings->file_size_max, 8 << 10);
	atomic_store(&settings->throttle_bytes, 20 << 10);
}

static void
run_start_node(struct run *run, uint32_t node)
{
	world_start(run->world, node);
	run_set(run, node);
	for (uint32_t i = 0; i < NODES; i++)
		ring_set_alive(run->ring, i, world_node(run->world, i)->is_up);
}

static struct ring_row
run_row(uint32_t write, uint32_t row)
{
	return (struct ring_row){(int32_t)(write * ROWS + row), 0, (int64_t)write * 1000 + row + 1};
}

static void
run_write(struct run *run, uint32_t write)
{
	struct ring_row rows[ROWS];
	struct ring_op op = {.on_done = NULL};

	for (uint32_t i = 0; i < ROWS; i++)
		rows[i] = run_row(write, i);
	ring_put(run->ring, world_chance(run->world, 2), &op, rows, ROWS, 1 + write,
	    CONSISTENCY_QUORUM, WRITE_UNLOGGED_BATCH);
	ring_wait(run->ring, &op);
	run->is_acked[write] = op.is_done && !op.has_failed;
	ring_op_free(&op);
}

/* Rows are written while the victim is down: known to be, or only silent. */
static void
run_miss(struct run *run)
{
	if (world_chance(run->world, 2) == 0) {
		ring_kill(run->ring, VICTIM);
		ring_set_alive(run->ring, VICTIM, false);
	} else {
		world_cut_both(run->world, VICTIM, 0);
		world_cut_both(run->world, VICTIM, 1);
	}
	for (uint32_t i = 0; i < WRITES; i++)
		run_write(run, i);
	/* Answers that do not come become hints, and hints are written. */
	world_run(run->world, 13 * WORLD_S);
	world_heal(run->world);
	if (!world_node(run->world, VICTIM)->is_up)
		run_start_node(run, VICTIM);
	ring_deliver_hints(run->ring);
}

static void
run_trouble(struct run *run)
{
	uint32_t node = world_chance(run->world, NODES);

	switch (world_chance(run->world, 5)) {
	case 0:
		ring_kill(run->ring, node);
		break;
	case 1:
		ring_cut_power(run->ring, node);
		break;
	case 2:
		world_pause(run->world, node, (1 + world_chance(run->world, 4000)) * WORLD_MS);
		break;
	case 3:
		world_cut_both(run->world, node, (node + 1) % NODES);
		break;
	default:
		hints_pause(ring_hints(run->ring, node), true);
		break;
	}
	world_run(run->world, (1 + world_chance(run->world, 6000)) * WORLD_MS);
	world_heal(run->world);
	if (!world_node(run->world, node)->is_up)
		run_start_node(run, node);
	hints_pause(ring_hints(run->ring, node), false);
}

static void
run_pending(void *context, const struct hints_pending *pending)
{
	struct run *run = context;

	run_break(run, "%u files with %" PRIu64 " bytes of hints are left", pending->files,
	    pending->bytes);
}

static void
run_check(struct run *run)
{
	struct hints_stats stats;

	for (uint32_t i = 0; i < WRITES && !run->is_broken; i++) {
		for (uint32_t j = 0; j < ROWS && run->is_acked[i] && !run->is_broken; j++) {
			struct ring_row row = run_row(i, j);

			if (ring_look(run->ring, VICTIM, row.pk, row.ck) != row.v)
				run_break(run, "row %" PRId32 " did not come", row.pk);
		}
	}
	for (uint32_t i = 0; i < NODES; i++) {
		hints_each_pending(ring_hints(run->ring, i), run_pending, run);
		hints_stats(ring_hints(run->ring, i), &stats);
		run->sent += stats.succeeded;
		if (stats.sessions != 0 || stats.corrupt != 0)
			run_break(run, "node %u: %" PRIu64 " sessions, %" PRIu64 " damaged", i,
			    stats.sessions, stats.corrupt);
	}
}

static bool
run_seed(uint64_t seed)
{
	struct ring_options options = {.world = {.seed = seed,
					   .node_count = NODES,
					   .faults = {.loss = seed % 3 == 0 ? 0.001 : 0,
					       .duplicate = 0.02,
					       .reorder = 0.1,
					       .delay_min_ns = 200 * WORLD_US,
					       .delay_max_ns = 20 * WORLD_MS},
					   .is_encoded = true},
	    .factor = 3,
	    .has_hints = true};
	static const struct world_faults none = {
	    .delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS};
	struct run *run = calloc(1, sizeof(*run));
	bool is_sound;

	run->seed = seed;
	run->ring = ring_new(&options);
	run->world = ring_world(run->ring);
	for (uint32_t i = 0; i < NODES; i++)
		run_set(run, i);
	run_miss(run);
	for (uint32_t i = 0; i < TROUBLES; i++) {
		world_run(run->world, world_chance(run->world, 3000) * WORLD_MS);
		run_trouble(run);
	}
	world_set_faults(run->world, &none);
	world_run(run->world, 120 * WORLD_S);
	run_check(run);
	if (getenv("SIM_VERBOSE") != NULL)
		printf(
		    "seed %" PRIu64 ": %" PRIu64 " hints since the last starts\n", seed, run->sent);
	is_sound = !run->is_broken;
	ring_free(run->ring);
	free(run);
	return is_sound;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 10);

	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed));
	return seeds_end(&seeds);
}
