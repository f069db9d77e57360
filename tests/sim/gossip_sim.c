/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gossip in a simulated world (tests/sim/world), from seeds: a hundred nodes whose network loses, delays, doubles,
 * reorders and is cut one way and both, whose clocks stand apart, and which crash, stand still and start again. Once
 * the trouble is over all must find one another alive, and the dead dead, and stay so; and hold the same values.
 * And once, a thousand nodes that start together.
 *
 *   gossip_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise; SIM_VERBOSE=1: figures
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include "base/log.h"
#include "tests/sim/world/gossiper.h"
#include "tests/sim/world/seeds.h"

enum {
	NODES = 100,
	SEEDS = 3,
	TROUBLES = 40, /* in the time of trouble */
	TROUBLE_S = 120,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	CROWD = 250, /* what each allocation costs more adds up a million times */
#else
	CROWD = 1000,
#endif
	CROWD_START_S = 2,
	STORY_LINES = 300,
};

static bool is_verbose;

static double
cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
fail(struct gossipers *all, uint64_t seed, const char *what)
{
	printf("--- seed %" PRIu64 " (gossip_sim %" PRIu64 " 1): %s\n", seed, seed, what);
	world_tell(gossipers_world(all), stdout);
	gossipers_explain(all, stdout);
	fflush(stdout);
}

/* ---- Trouble ---- */

static void
start_again(void *context, uint32_t index)
{
	struct gossipers *all = context;

	if (!world_node(gossipers_world(all), index)->is_up)
		world_start(gossipers_world(all), index);
}

static void
make_partition(struct world *world, uint32_t groups)
{
	uint8_t group_of[NODES];

	for (uint32_t i = 0; i < NODES; i++)
		group_of[i] = (uint8_t)world_chance(world, groups);
	world_partition(world, group_of);
}

static void
make_trouble(struct gossipers *all)
{
	struct world *world = gossipers_world(all);
	uint32_t a = world_chance(world, NODES), b = world_chance(world, NODES);

	switch (world_chance(world, 8)) {
	case 0:
		make_partition(world, 2 + world_chance(world, 2));
		break;
	case 1:
		world_heal(world);
		break;
	case 2:
		world_cut(world, a, b);
		break;
	case 3:
		world_cut_both(world, a, b);
		break;
	case 4:
		world_pause(world, a, (1 + world_chance(world, 20)) * WORLD_S);
		break;
	case 5:
		world_step_wall(world, a, ((int64_t)world_chance(world, 240) - 120) * 1000000);
		break;
	default:
		if (world_node(world, a)->is_up) {
			if (world_chance(world, 3) == 0)
				gossiper_drain(all, a);
			world_crash(world, a, WORLD_KILL);
			world_at(
			    world, (1 + world_chance(world, 60)) * WORLD_S, start_again, all, a);
		}
		break;
	}
}

/* A process that found nobody in its shadow round ends, and its supervisor starts it again. */
static void
supervise(struct gossipers *all)
{
	for (uint32_t i = 0; i < NODES; i++) {
		if (gossiper(all, i)->has_failed && world_node(gossipers_world(all), i)->is_up) {
			world_crash(gossipers_world(all), i, WORLD_KILL);
			world_start(gossipers_world(all), i);
		}
	}
}

static bool
agree_under_care(struct world *world, void *context)
{
	supervise(context);
	return gossipers_agree(world, context);
}

static uint32_t
deaths_told(struct gossipers *all)
{
	uint32_t deads = 0;

	for (uint32_t i = 0; i < NODES; i++)
		deads += gossiper(all, i)->deads;
	return deads;
}

static struct gossipers *
new_ring(uint64_t seed)
{
	struct gossipers_options options = {
	    .world =
		{
		    .seed = seed,
		    .node_count = NODES,
		    .faults =
			{
			    .loss = (double)(seed % 5) * 0.04,
			    .duplicate = 0.01,
			    .reorder = 0.05,
			    .delay_min_ns = 200 * WORLD_US,
			    .delay_max_ns = (1 + seed % 300) * WORLD_MS,
			},
		    .skew_max_us = 30 * 1000000,
		    .drift_max_ppm = 200,
		    .is_encoded = seed % 4 == 0,
		    .story_lines = STORY_LINES,
		},
	    .seed_count = SEEDS,
	    .tells_refused = seed % 2 == 0,
	};

	return gossipers_new(&options);
}

static bool
run_seed(uint64_t seed, uint64_t *digest)
{
	struct gossipers *all = new_ring(seed);
	struct world *world = gossipers_world(all);
	bool ok = false;
	uint32_t deaths;
	uint64_t healed;

	for (uint32_t i = 0; i < NODES; i++)
		world_at(world, world_chance(world, 20000) * WORLD_MS, start_again, all, i);
	world_run(world, 20 * WORLD_S);
	for (int i = 0; i < TROUBLES; i++) {
		make_trouble(all);
		supervise(all);
		world_run(world, TROUBLE_S * WORLD_S / TROUBLES);
	}
	/* It ends: who is down now starts again, or stays dead. */
	world_heal(world);
	for (uint32_t i = 0; i < NODES; i++)
		start_again(all, i);
	for (uint32_t i = 0; i < 5; i++)
		world_crash(world, SEEDS + world_chance(world, 19) + 19 * i, WORLD_KILL);
	healed = world_now(world);
	if (!world_run_until(world, agree_under_care, all, WORLD_S, 180 * WORLD_S)) {
		fail(all, seed, "the ring does not agree on who is alive");
		goto done;
	}
	if (is_verbose)
		printf("seed %" PRIu64 ": loss %.2f, agreed %.0f s after the trouble, %" PRIu64
		       " messages\n",
		    seed, (double)(seed % 5) * 0.04, (double)(world_now(world) - healed) / 1e9,
		    world_messages(world));
	deaths = deaths_told(all);
	world_run(world, 60 * WORLD_S);
	if (!gossipers_agree(world, all))
		fail(all, seed, "the ring fell apart again");
	else if (deaths_told(all) != deaths)
		fail(all, seed, "a node that lives was convicted in quiet times");
	else
		ok = gossipers_have_same_values(all, stdout);
done:
	*digest = world_digest(world);
	gossipers_free(all);
	return ok;
}

/* What a round costs once all is quiet. */
static void
measure_rounds(struct gossipers *all)
{
	struct world *world = gossipers_world(all);
	struct gossip_stats stats, sum[2] = {{0}, {0}};
	double cpu = 0;

	world_run(world, 5 * WORLD_S);
	for (int end = 0; end < 2; end++) {
		for (uint32_t i = 0; i < CROWD; i++) {
			gossip_stats(gossiper(all, i)->gossip, &stats);
			sum[end].bytes_sent += stats.bytes_sent;
			sum[end].rounds += stats.rounds;
			sum[end].deltas_sent += stats.deltas_sent;
		}
		cpu = cpu_seconds() - cpu;
		if (end == 0)
			world_run(world, 5 * WORLD_S);
	}
	printf("a node and second: %.1f us of CPU, %.1f kB sent, %.2f SYNs, %.0f deltas\n",
	    cpu / 5 / CROWD * 1e6,
	    (double)(sum[1].bytes_sent - sum[0].bytes_sent) / 5 / CROWD / 1e3,
	    (double)(sum[1].rounds - sum[0].rounds) / 5 / CROWD,
	    (double)(sum[1].deltas_sent - sum[0].deltas_sent) / 5 / CROWD);
}

static void
tell_totals(struct gossipers *all)
{
	struct gossip_stats stats, sum = {0};

	for (uint32_t i = 0; i < CROWD; i++) {
		gossip_stats(gossiper(all, i)->gossip, &stats);
		sum.rounds += stats.rounds;
		sum.extra_rounds += stats.extra_rounds;
		sum.deltas_sent += stats.deltas_sent;
		sum.deltas_received += stats.deltas_received;
		sum.digests_sent += stats.digests_sent;
		sum.bytes_sent += stats.bytes_sent;
	}
	printf("%" PRIu64 " SYNs, %" PRIu64 " pushes, %.1f M deltas sent, %.1f M received, %.1f M "
	       "digests, %.1f MB\n",
	    sum.rounds, sum.extra_rounds, (double)sum.deltas_sent / 1e6,
	    (double)sum.deltas_received / 1e6, (double)sum.digests_sent / 1e6,
	    (double)sum.bytes_sent / 1e6);
}

/* ---- A thousand ---- */

static bool
run_crowd(uint64_t seed)
{
	struct gossipers_options options = {
	    .world =
		{
		    .seed = seed,
		    .node_count = CROWD,
		    .faults = {.delay_min_ns = 200 * WORLD_US, .delay_max_ns = 5 * WORLD_MS},
		    .skew_max_us = 1000000,
		    .drift_max_ppm = 100,
		    .story_lines = STORY_LINES,
		},
	    .seed_count = SEEDS,
	};
	struct gossipers *all = gossipers_new(&options);
	struct world *world = gossipers_world(all);
	bool ok;

	for (uint32_t i = 0; i < CROWD; i++)
		world_at(world, world_chance(world, CROWD_START_S * 1000) * WORLD_MS, start_again,
		    all, i);
	world_run(world, CROWD_START_S * WORLD_S);
	ok = world_run_until(world, gossipers_agree, all, WORLD_S, 60 * WORLD_S);
	if (!ok)
		fail(all, seed, "a crowd of nodes does not find together");
	if (is_verbose)
		printf("%d nodes agree %.0f s after the last start; CPU %.1f s so far\n", CROWD,
		    (double)(world_now(world) - CROWD_START_S * WORLD_S) / 1e9, cpu_seconds());
	if (is_verbose)
		tell_totals(all);
	if (ok && is_verbose)
		measure_rounds(all);
	gossipers_free(all);
	return ok;
}

/* ---- Six ---- */

/* The mission's promise: a ring of six is up within three seconds of the last start. */
static bool
run_six(uint64_t seed)
{
	struct gossipers_options options = {
	    .world =
		{
		    .seed = seed,
		    .node_count = 6,
		    .faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 2 * WORLD_MS},
		    .skew_max_us = 1000000,
		    .is_encoded = true,
		    .story_lines = STORY_LINES,
		},
	    .seed_count = 1 + seed % 2,
	};
	struct gossipers *all = gossipers_new(&options);
	struct world *world = gossipers_world(all);
	uint64_t spread = seed % 3 * 2 * WORLD_S, agreed, settled;
	bool ok;

	for (uint32_t i = 0; i < 6; i++) {
		world_start(world, i);
		world_run(world, i < 5 ? spread : 0);
	}
	settled = world_now(world);
	ok = world_run_until(world, gossipers_agree, all, 10 * WORLD_MS, 3 * WORLD_S);
	if (!ok)
		fail(all, seed, "a ring of six is not up within three seconds of the last start");
	agreed = world_now(world) - settled;
	world_run(world, 3 * WORLD_S);
	for (uint32_t i = 0; i < 6 && ok; i++) {
		if (gossiper(all, i)->has_settled &&
		    gossiper(all, i)->settled_ns - gossiper(all, i)->joined_ns < 3 * WORLD_S)
			continue;
		fail(all, seed, "a node of six has not settled within three seconds");
		ok = false;
	}
	if (is_verbose)
		printf("six nodes, seed %" PRIu64
		       ": agree %.2f s after the last start, which settles in %.2f s\n",
		    seed, (double)agreed / 1e9,
		    (double)(gossiper(all, 5)->settled_ns - gossiper(all, 5)->joined_ns) / 1e9);
	gossipers_free(all);
	return ok;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 5);
	uint64_t digest, again;

	if (seeds.is_setting)
		seeds.count = seeds.count / 8 + 1;
	is_verbose = getenv("SIM_VERBOSE") != NULL;
	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++) {
		seeds_count(&seeds, run_six(seed));
		seeds_count(&seeds, run_seed(seed, &digest));
	}
	if (argc > 2 && strtoull(argv[2], NULL, 10) == 0)
		seeds_count(&seeds, run_crowd(seeds.first));
	if (argc <= 1) {
		/* What a seed did it does again. */
		run_seed(seeds.first, &digest);
		run_seed(seeds.first, &again);
		seeds_count(&seeds, digest == again);
		if (digest != again)
			printf("--- seed %" PRIu64 " does not replay\n", seeds.first);
		seeds_count(&seeds, run_crowd(seeds.first));
	}
	return seeds_end(&seeds);
}
