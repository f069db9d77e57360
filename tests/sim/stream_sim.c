/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming in a simulated world (tests/sim/world), from seeds: four nodes with data, one fetches the ranges of the
 * others and sends its own, while connections break, nodes are cut off and killed. Then, always:
 *   - a job ends exactly once;
 *   - a session that ended well brought all rows of its ranges, and one that failed none;
 *   - once the trouble is over, the same job brings all rows;
 *   - files that arrived before a connection broke do not come again.
 *
 *   stream_sim [FIRST_SEED [SEEDS]]       SIM_SEEDS in the environment otherwise
 *
 * Ends with "N passed, N failed"; a failing seed is printed with the end of its story, and can be run alone.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/world/ring.h"
#include "tests/sim/world/seeds.h"

enum { NODES = 4, FETCHER = 3, KEYS = 240, ROUNDS = 6 };

struct job {
	struct stream_wait wait; /* first */
	struct ring *ring;
	bool is_done, has_failed;
	uint32_t done_count;
	struct error err;
	bool has_ended[NODES]; /* the session with the node, well */
};

struct run {
	uint64_t seed;
	struct ring *ring;
	struct world *world;
	uint32_t owner[KEYS];
	bool has_come[NODES]; /* all rows of the node are at the fetcher */
	uint32_t failures, jobs;
	bool has_failed;
};

#define CHECK(run, what)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("seed %" PRIu64 ": %s (line %d)\n", (run)->seed, #what, __LINE__);  \
			(run)->has_failed = true;                                                  \
			return;                                                                    \
		}                                                                                  \
	} while (0)

static void
job_done(struct stream_wait *wait, const struct error *err)
{
	struct job *job = (struct job *)wait;

	job->is_done = true;
	job->done_count++;
	job->has_failed = err != NULL;
	if (err != NULL)
		job->err = *err;
}

static void
job_session(struct stream_wait *wait, const struct stream_result *result)
{
	struct job *job = (struct job *)wait;
	struct peer *peer = result->peer;

	for (uint32_t i = 0; i < NODES; i++)
		if (ring_peer(job->ring, FETCHER, i) == peer)
			job->has_ended[i] = true;
}

static bool
job_is_done(struct world *world, void *context)
{
	(void)world;
	return ((struct job *)context)->is_done;
}

static void
run_fill(struct run *run)
{
	for (int32_t key = 0; key < KEYS; key++) {
		struct ring_row row = {key, 1, key + 1000};
		struct ring_op op = {.on_done = NULL};

		ring_put(run->ring, (uint32_t)key % NODES, &op, &row, 1, 1, CONSISTENCY_ONE,
		    WRITE_SIMPLE);
		ring_wait(run->ring, &op);
		CHECK(run, op.is_done && !op.has_failed);
		ring_op_free(&op);
		CHECK(run, ring_replicas(run->ring, key, &run->owner[key], 1) == 1);
		/* Some lie in SSTables of their own, the last ones in memory. */
		if (key == KEYS / 3 || key == KEYS / 2)
			for (uint32_t i = 0; i < NODES; i++)
				ring_flush(run->ring, i);
	}
}

static void
run_begin(struct run *run, struct job *job)
{
	struct stream_job *made =
	    stream_job_new(ring_streams(run->ring, FETCHER), STREAM_BOOTSTRAP, NULL);
	struct ring_range *ranges;
	uint32_t count;

	*job = (struct job){.wait = {job_done, job_session}, .ring = run->ring};
	run->jobs++;
	for (uint32_t i = 0; i < FETCHER; i++) {
		count = ring_ranges(run->ring, i, &ranges);
		stream_job_request(
		    made, ring_peer(run->ring, FETCHER, i), "ks", NULL, 0, ranges, count);
		free(ranges);
	}
	count = ring_ranges(run->ring, FETCHER, &ranges);
	stream_job_send(made, ring_peer(run->ring, FETCHER, 0), "ks", NULL, 0, ranges, count);
	free(ranges);
	stream_job_start(made, &job->wait);
}

static void
run_trouble(struct run *run, uint32_t round)
{
	struct world_faults faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 5 * WORLD_MS};
	uint32_t victim = world_chance(run->world, FETCHER);

	faults.stream_break = round < 3 ? 0.02 : 0.002;
	world_set_faults(run->world, &faults);
	world_run(run->world, world_chance(run->world, 60) * WORLD_MS);
	switch (world_chance(run->world, 4)) {
	case 0:
		ring_kill(run->ring, victim);
		world_run(run->world, world_chance(run->world, 4000) * WORLD_MS);
		world_start(run->world, victim);
		break;
	case 1:
		world_cut_both(run->world, victim, FETCHER);
		world_run(run->world, world_chance(run->world, 20000) * WORLD_MS);
		world_heal(run->world);
		break;
	case 2:
		streams_peer_is_down(
		    ring_streams(run->ring, FETCHER), ring_peer(run->ring, FETCHER, victim));
		break;
	default:
		break;
	}
}

/* All rows of each node are at the fetcher, or none. */
static void
run_check(struct run *run, const struct job *job)
{
	uint32_t there[NODES] = {0}, all[NODES] = {0};

	for (int32_t key = 0; key < KEYS; key++) {
		int64_t v = ring_look(run->ring, FETCHER, key, 1);

		CHECK(run, v == -1 || v == key + 1000);
		all[run->owner[key]]++;
		there[run->owner[key]] += v != -1;
	}
	for (uint32_t i = 0; i < FETCHER; i++) {
		run->has_come[i] |= there[i] > 0;
		CHECK(run, there[i] == 0 || there[i] == all[i]);
		CHECK(run, !job->has_ended[i] || there[i] == all[i]);
	}
	CHECK(run, there[FETCHER] == all[FETCHER]);
	CHECK(run, job->has_failed || (there[0] && there[1] && there[2]));
	for (int32_t key = 0; key < KEYS && job->has_ended[0]; key++)
		CHECK(run,
		    run->owner[key] != FETCHER || ring_look(run->ring, 0, key, 1) == key + 1000);
}

static void
run_rounds(struct run *run)
{
	struct job job;

	for (uint32_t round = 0; round <= ROUNDS && !run->has_failed; round++) {
		run_begin(run, &job);
		if (round < ROUNDS) {
			run_trouble(run, round);
		} else {
			struct world_faults calm = {
			    .delay_min_ns = 100 * WORLD_US, .delay_max_ns = 5 * WORLD_MS};

			world_set_faults(run->world, &calm);
		}
		CHECK(run,
		    world_run_until(run->world, job_is_done, &job, 10 * WORLD_MS, 600 * WORLD_S));
		world_run(run->world, WORLD_S);
		CHECK(run, job.done_count == 1);
		run->failures += job.has_failed;
		if (round == ROUNDS && job.has_failed)
			printf("%s\n", job.err.text);
		CHECK(run, round < ROUNDS || !job.has_failed);
		run_check(run, &job);
	}
}

static void
count_session(void *context, const struct stream_session_info *info)
{
	(void)info;
	++*(uint32_t *)context;
}

static bool
run_seed(uint64_t seed)
{
	struct ring_options options = {
	    .world = {.seed = seed,
		.node_count = NODES,
		.faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 2 * WORLD_MS}},
	    .factor = 1};
	struct run run = {.seed = seed};
	uint32_t left = 0;

	streams_options_init(&options.streams);
	options.streams.keep_alive_ns = 5 * WORLD_S;
	options.streams.retry_ns = 100 * WORLD_MS;
	options.streams.resume_ns = 30 * WORLD_S;
	options.streams.entire_sstables = seed % 2 == 0;
	run.ring = ring_new(&options);
	run.world = ring_world(run.ring);
	run_fill(&run);
	if (!run.has_failed)
		run_rounds(&run);
	/* Nothing lingers. */
	world_run(run.world, 60 * WORLD_S);
	for (uint32_t i = 0; i < NODES; i++)
		streams_each(ring_streams(run.ring, i), count_session, &left);
	if (left > 0) {
		printf("seed %" PRIu64 ": %u sessions are left\n", seed, left);
		run.has_failed = true;
	}
	if (run.has_failed)
		world_tell(run.world, stdout);
	if (getenv("SIM_VERBOSE") != NULL)
		printf("seed %" PRIu64 ": %u jobs, %u failed\n", seed, run.jobs, run.failures);
	ring_free(run.ring);
	return !run.has_failed;
}

/* ---- a connection breaks between files -------------------------------------------------------------- */

struct flow {
	uint64_t files, bytes; /* that have arrived whole */
	bool has_partial;
};

static void
flow_add(void *context, const struct stream_session_info *info)
{
	struct flow *flow = context;

	flow->files += info->receiving.files_done;
	flow->bytes += info->receiving.bytes_done;
	flow->has_partial |= info->receiving.files_done != info->receiving.progress_count;
}

/* Some files have come, and no other one has begun. */
static bool
flow_is_between(struct world *world, void *context)
{
	struct run *run = context;
	struct flow flow = {0};

	(void)world;
	streams_each(ring_streams(run->ring, FETCHER), flow_add, &flow);
	return flow.files > 0 && !flow.has_partial;
}

static void
run_break(struct run *run, struct world_faults *faults, uint64_t *came)
{
	struct flow flow = {0};

	CHECK(run, world_run_until(run->world, flow_is_between, run, 50 * WORLD_US, 60 * WORLD_S));
	streams_each(ring_streams(run->ring, FETCHER), flow_add, &flow);
	*came = flow.bytes;
	faults->stream_break = 1;
	world_set_faults(run->world, faults);
	world_run(run->world, 5 * WORLD_MS);
	faults->stream_break = 0;
	world_set_faults(run->world, faults);
}

static void
run_once(struct run *run, bool is_broken, struct world_faults *faults, uint64_t *came)
{
	struct job job;

	run_begin(run, &job);
	if (is_broken)
		run_break(run, faults, came);
	if (run->has_failed)
		return;
	CHECK(run, world_run_until(run->world, job_is_done, &job, 10 * WORLD_MS, 60 * WORLD_S));
	CHECK(run, !job.has_failed);
	run_check(run, &job);
}

/* Bytes that the fetcher was sent in all; 0: it failed. */
static uint64_t
run_broken(uint64_t seed, bool is_broken, uint64_t *came)
{
	struct world_faults faults = {.delay_min_ns = 100 * WORLD_US, .delay_max_ns = 2 * WORLD_MS};
	struct ring_options options = {
	    .world = {.seed = seed, .node_count = NODES, .faults = faults}, .factor = 1};
	struct run run = {.seed = seed};
	struct streams_stats stats;

	streams_options_init(&options.streams);
	options.streams.entire_sstables = seed % 2 == 0;
	run.ring = ring_new(&options);
	run.world = ring_world(run.ring);
	run_fill(&run);
	if (!run.has_failed)
		run_once(&run, is_broken, &faults, came);
	streams_stats(ring_streams(run.ring, FETCHER), &stats);
	if (run.has_failed)
		world_tell(run.world, stdout);
	ring_free(run.ring);
	return run.has_failed ? 0 : stats.bytes_received;
}

/* What has arrived does not come again. */
static bool
run_resumed(uint64_t seed)
{
	uint64_t came = 0, whole = run_broken(seed, false, &came);
	uint64_t broken = run_broken(seed, true, &came);

	if (whole > 0 && came > 0 && broken > 0 && broken - whole < came)
		return true;
	printf("seed %" PRIu64 ": %" PRIu64 " bytes, %" PRIu64 " with a break after %" PRIu64 "\n",
	    seed, whole, broken, came);
	return false;
}

int
main(int argc, char **argv)
{
	struct seeds seeds = seeds_begin(argc, argv, 8);

	for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++)
		seeds_count(&seeds, run_seed(seed) && run_resumed(seed));
	return seeds_end(&seeds);
}
