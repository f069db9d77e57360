/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/batchlog.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/world/ring.h"

static struct ring *ring;
static struct world *world;

static void
begin(uint32_t nodes)
{
	struct ring_options options = {
	    .world = {.seed = 5,
		.node_count = nodes,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .factor = 3,
	    .has_hints = true};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
	world = ring_world(ring);
}

/* ---- Storing ------------------------------------------------------------------------------- */

struct stored {
	struct batchlog_entry entry; /* first */
	unsigned done;
	bool has_failed;
	struct error err;
};

static void
stored_done(struct batchlog_entry *entry, const struct error *err, struct worker *worker)
{
	struct stored *stored = (struct stored *)entry;

	(void)worker;
	stored->done++;
	stored->has_failed = err != NULL;
	if (err != NULL)
		stored->err = *err;
}

/* Any table's row will do: what system.batches is, is the server's matter. */
static void
store(struct stored *stored, uint32_t node, bool is_any, int32_t key)
{
	struct ring_row row = {key, 0, 7};
	struct buffer mutation;

	memset(stored, 0, sizeof(*stored));
	stored->entry.on_done = stored_done;
	buffer_init(&mutation);
	ring_encode(ring, node, row, 1, &mutation);
	batchlog_entry_store(
	    ring_coordinator(ring, node), &stored->entry, is_any, buffer_slice(&mutation), NULL);
	buffer_fini(&mutation);
	world_run(world, 3 * WORLD_S);
	ck_assert_uint_eq(stored->done, 1);
}

static uint32_t
keepers(int32_t key)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < 4; i++)
		count += world_node(world, i)->is_up && ring_look(ring, i, key, 0) == 7;
	return count;
}

START_TEST(test_two_other_nodes_keep_a_batch)
{
	struct stored stored;

	begin(4);
	for (int32_t key = 0; key < 20; key++) {
		store(&stored, 0, false, key);
		ck_assert(!stored.has_failed);
		ck_assert_uint_eq(stored.entry.peer_count, 2);
		ck_assert(!stored.entry.peers[0]->is_local && !stored.entry.peers[1]->is_local);
		ck_assert_ptr_ne(stored.entry.peers[0], stored.entry.peers[1]);
		ck_assert_uint_eq(keepers(key), 2);
		ck_assert_int_eq(ring_look(ring, 0, key, 0), -1);
	}
	ring_free(ring);
}
END_TEST

START_TEST(test_a_keeper_that_does_not_answer_is_a_timeout)
{
	struct stored stored;

	begin(3);
	world_cut_both(world, 0, 1);
	store(&stored, 0, false, 1);
	ck_assert(stored.has_failed);
	ck_assert_int_eq(stored.err.code, ERROR_WRITE_TIMEOUT);
	ck_assert_str_eq(stored.err.write_type, "BATCH_LOG");
	ck_assert_int_eq(stored.err.consistency, CONSISTENCY_TWO);
	ck_assert_int_eq(stored.err.received, 1);
	ck_assert_int_eq(stored.err.required, 2);
	ring_free(ring);
}
END_TEST

START_TEST(test_a_keeper_that_cannot_is_a_failure)
{
	struct stored stored;

	begin(3);
	ring_forget_schema(ring, 2);
	store(&stored, 0, false, 1);
	ck_assert_int_eq(stored.err.code, ERROR_WRITE_FAILURE);
	ck_assert_str_eq(stored.err.write_type, "BATCH_LOG");
	ring_free(ring);
}
END_TEST

START_TEST(test_with_nobody_alive_only_any_keeps_it_here)
{
	struct stored stored;

	begin(3);
	ring_set_alive(ring, 1, false);
	store(&stored, 0, false, 1);
	ck_assert(!stored.has_failed && stored.entry.peer_count == 1);
	ck_assert_int_eq(ring_look(ring, 2, 1, 0), 7);
	ring_set_alive(ring, 2, false);
	store(&stored, 0, false, 2);
	ck_assert_int_eq(stored.err.code, ERROR_UNAVAILABLE);
	store(&stored, 0, true, 2);
	ck_assert(!stored.has_failed);
	ck_assert_int_eq(ring_look(ring, 0, 2, 0), 7);
	ring_free(ring);
}
END_TEST

/* ---- Replay -------------------------------------------------------------------------------- */

struct replayed {
	struct batchlog_replay replay; /* first */
	unsigned done;
	bool has_failed;
	int32_t damaged; /* batch that has a mutation that cannot be read; -1: none */
};

static void
replayed_done(struct batchlog_replay *replay, const struct error *err)
{
	struct replayed *replayed = (struct replayed *)replay;

	replayed->done++;
	replayed->has_failed = err != NULL;
}

enum { REPLAYED = 30 };

static struct batchlog_outcome outcomes[REPLAYED];

static void
replay(struct replayed *replayed, uint32_t node)
{
	replayed->replay.on_done = replayed_done;
	batchlog_replay_begin(
	    &replayed->replay, ring_coordinator(ring, node), ring_hints(ring, node));
	for (int32_t key = 0; key < REPLAYED; key++) {
		struct ring_row row = {key, 0, 7};
		struct buffer mutation;
		struct error err;

		buffer_init(&mutation);
		ring_encode(ring, node, row, 1, &mutation);
		atomic_init(&outcomes[key].has_failed, false);
		ck_assert_int_eq(
		    batchlog_replay_add(&replayed->replay, &outcomes[key], buffer_slice(&mutation),
			env_wall_us(world_node(world, node)->env) / 1000, &err),
		    0);
		if (key == replayed->damaged)
			ck_assert_int_eq(batchlog_replay_add(&replayed->replay, &outcomes[key],
					     slice_of(mutation.data, mutation.size / 2), 0, &err),
			    -1);
		buffer_fini(&mutation);
	}
	batchlog_replay_end(&replayed->replay);
	world_run(world, 3 * WORLD_S);
	ck_assert_uint_eq(replayed->done, 1);
}

static void
check_all(void)
{
	for (int32_t key = 0; key < REPLAYED; key++) {
		uint32_t replicas[3];

		ck_assert_uint_eq(ring_replicas(ring, key, replicas, 3), 3);
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_int_eq(ring_look(ring, replicas[i], key, 0), 7);
	}
}

START_TEST(test_replay_reaches_all_replicas)
{
	struct replayed replayed = {.damaged = -1};

	begin(4);
	replay(&replayed, 1);
	ck_assert(!replayed.has_failed);
	check_all();
	ring_free(ring);
}
END_TEST

START_TEST(test_what_cannot_be_read_is_in_nobodys_way)
{
	struct replayed replayed = {.damaged = 11};

	begin(4);
	replay(&replayed, 1);
	ck_assert(!replayed.has_failed);
	check_all();
	for (int32_t key = 0; key < REPLAYED; key++)
		ck_assert_int_eq(atomic_load(&outcomes[key].has_failed), key == 11);
	ring_free(ring);
}
END_TEST

START_TEST(test_what_replay_cannot_deliver_is_hints_on_the_disk)
{
	struct replayed replayed = {.damaged = -1};

	begin(4);
	ring_set_alive(ring, 2, false); /* known to be dead */
	world_cut_both(world, 1, 3); /* silent */
	replay(&replayed, 1);
	ck_assert(!replayed.has_failed);
	/* The batch is forgotten now; the power goes. */
	ring_cut_power(ring, 1);
	world_start(world, 1);
	world_heal(world);
	ring_set_alive(ring, 2, true);
	world_run(world, 21 * WORLD_S);
	check_all();
	ring_free(ring);
}
END_TEST

START_TEST(test_without_a_disk_for_hints_the_batch_stays)
{
	struct replayed replayed = {.damaged = -1};

	begin(4);
	ring_set_alive(ring, 2, false);
	env_sim_fail(world_node(world, 1)->disk, ENV_SIM_SYNC, "hints", 0, 1000, 28);
	replay(&replayed, 1);
	ck_assert(replayed.has_failed);
	ring_free(ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("batchlog");
	TCase *tcase = tcase_create("batchlog");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_two_other_nodes_keep_a_batch);
	tcase_add_test(tcase, test_a_keeper_that_does_not_answer_is_a_timeout);
	tcase_add_test(tcase, test_a_keeper_that_cannot_is_a_failure);
	tcase_add_test(tcase, test_with_nobody_alive_only_any_keeps_it_here);
	tcase_add_test(tcase, test_replay_reaches_all_replicas);
	tcase_add_test(tcase, test_what_cannot_be_read_is_in_nobodys_way);
	tcase_add_test(tcase, test_what_replay_cannot_deliver_is_hints_on_the_disk);
	tcase_add_test(tcase, test_without_a_disk_for_hints_the_batch_stays);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
