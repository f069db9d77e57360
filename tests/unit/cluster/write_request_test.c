/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a write over a ring sends: one message for all replicas of a remote data center. Nodes 0, 2, 4, .. stand in dc1, the
 * others in dc2; each data center has three replicas, and node 0 coordinates.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/world/ring.h"

enum { NODES_MAX = 12, FACTOR = 3, WRITES = 40, MOMENTS = 400 };

#define MOMENT_NS (2 * WORLD_MS)

static struct ring *ring;
static struct world *world;
static uint32_t nodes;
static uint64_t sent_before[NODES_MAX], received_before[NODES_MAX];

static void
begin(uint32_t count)
{
	struct ring_options options = {
	    .world = {.seed = 11,
		.node_count = count,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .datacenters = 2,
	    .factor = FACTOR};

	log_set_level("ROOT", LOG_OFF);
	nodes = count;
	ring = ring_new(&options);
	world = ring_world(ring);
}

static void
count_from_here(void)
{
	for (uint32_t i = 0; i < nodes; i++) {
		sent_before[i] = world_node(world, i)->sent;
		received_before[i] = world_node(world, i)->received;
	}
}

static uint32_t
sent(uint32_t node)
{
	return (uint32_t)(world_node(world, node)->sent - sent_before[node]);
}

static uint32_t
received(uint32_t node)
{
	return (uint32_t)(world_node(world, node)->received - received_before[node]);
}

/* As many writes as there are keys, all begun now, and all of them acknowledged. */
static void
put_all(const int32_t *keys, uint32_t count)
{
	static struct ring_op ops[WRITES];

	memset(ops, 0, sizeof(ops));
	for (uint32_t i = 0; i < count; i++) {
		struct ring_row row = {keys[i], 0, 7};

		ring_put(ring, 0, &ops[i], &row, 1, 1, CONSISTENCY_EACH_QUORUM, WRITE_SIMPLE);
	}
	world_run(world, 100 * WORLD_MS);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert(ops[i].is_done && !ops[i].has_failed);
		ring_op_free(&ops[i]);
	}
}

/* The coordinator's next moment begins. */
static void
next_moment(void)
{
	struct env *env = world_node(world, 0)->env;
	uint64_t moment = env_monotonic_ns(env) / MOMENT_NS;

	while (env_monotonic_ns(env) / MOMENT_NS == moment)
		world_run(world, 10 * WORLD_US);
}

static bool
is_replica(int32_t key, uint32_t node)
{
	uint32_t replicas[2 * FACTOR], count = ring_replicas(ring, key, replicas, 2 * FACTOR);

	for (uint32_t i = 0; i < count; i++)
		if (replicas[i] == node)
			return true;
	return false;
}

/* Who passed writes on: whoever sent more than an answer for each message that came. */
static uint32_t
forwarders(uint32_t *out)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i < nodes; i++)
		if (sent(i) > received(i))
			out[count++] = i;
	return count;
}

START_TEST(test_a_remote_data_center_gets_one_message)
{
	uint32_t passing[NODES_MAX], local;

	begin(12);
	for (int32_t key = 0; key < 30; key++) {
		count_from_here();
		put_all(&key, 1);
		local = is_replica(key, 0);
		/* Its own replicas, and one of the others'. */
		ck_assert_uint_eq(sent(0), FACTOR - local + 1);
		ck_assert_uint_eq(received(0), 2 * FACTOR - local);
		ck_assert_uint_eq(forwarders(passing), 1);
		ck_assert_uint_eq(passing[0] % 2, 1);
		ck_assert(is_replica(key, passing[0]));
		for (uint32_t i = 1; i < nodes; i++) {
			ck_assert_uint_eq(received(i), is_replica(key, i));
			ck_assert_uint_eq(
			    sent(i), (i == passing[0] ? FACTOR : 1) * (uint32_t)is_replica(key, i));
			ck_assert(!is_replica(key, i) || ring_look(ring, i, key, 0) == 7);
		}
	}
	ring_free(ring);
}
END_TEST

START_TEST(test_all_writes_of_a_moment_choose_alike)
{
	uint32_t passing[NODES_MAX];
	int32_t keys[WRITES];

	/* The same three replicas. */
	begin(6);
	for (int32_t i = 0; i < WRITES; i++)
		keys[i] = i;
	for (uint32_t i = 0; i < 20; i++) {
		next_moment();
		count_from_here();
		put_all(keys, WRITES);
		ck_assert_uint_eq(forwarders(passing), 1);
		ck_assert_uint_eq(sent(passing[0]), FACTOR * WRITES);
	}
	ring_free(ring);
}
END_TEST

START_TEST(test_writes_of_a_moment_share_a_forwarder_where_both_have_it)
{
	uint32_t chosen[WRITES], passing[NODES_MAX];
	int32_t keys[WRITES];

	/* Each has three of six. */
	begin(12);
	for (int32_t i = 0; i < WRITES; i++)
		keys[i] = i;
	next_moment();
	count_from_here();
	put_all(keys, WRITES);
	memset(chosen, 0, sizeof(chosen));
	for (uint32_t i = 0, left = WRITES; left > 0; i++) {
		uint32_t count = forwarders(passing), best = NODES_MAX, best_writes = 0;

		/* The order of the moment: who passes on for all that have it, then who does of the rest. */
		ck_assert_uint_lt(i, count);
		for (uint32_t k = 0; k < count; k++) {
			uint32_t writes = 0, all = 0;

			for (uint32_t w = 0; w < WRITES; w++) {
				writes += chosen[w] == 0 && is_replica(keys[w], passing[k]);
				all += is_replica(keys[w], passing[k]);
			}
			/* It sent an answer for each, and two messages for each that it passed on. */
			if (writes > 0 && sent(passing[k]) == all + (FACTOR - 1) * writes) {
				best = passing[k];
				best_writes = writes;
				break;
			}
		}
		ck_assert_uint_ne(best, NODES_MAX);
		for (uint32_t w = 0; w < WRITES; w++)
			if (chosen[w] == 0 && is_replica(keys[w], best))
				chosen[w] = best;
		left -= best_writes;
	}
	ring_free(ring);
}
END_TEST

START_TEST(test_each_replica_has_its_turn)
{
	uint32_t passing[NODES_MAX], turns[NODES_MAX] = {0}, same = 0, last = 0;
	int32_t key = 1;

	begin(6);
	for (uint32_t i = 0; i < MOMENTS; i++) {
		next_moment();
		count_from_here();
		put_all(&key, 1);
		ck_assert_uint_eq(forwarders(passing), 1);
		turns[passing[0]]++;
		same += passing[0] == last;
		last = passing[0];
	}
	for (uint32_t i = 1; i < nodes; i += 2) {
		ck_assert_uint_gt(turns[i], MOMENTS / 3 - MOMENTS / 10);
		ck_assert_uint_lt(turns[i], MOMENTS / 3 + MOMENTS / 10);
	}
	/* Not for long after one another. */
	ck_assert_uint_lt(same, MOMENTS / 2);
	ring_free(ring);
}
END_TEST

START_TEST(test_the_dead_pass_nothing_on)
{
	uint32_t passing[NODES_MAX];
	int32_t key = 1;

	begin(6);
	ring_set_alive(ring, 3, false);
	for (uint32_t i = 0; i < 50; i++) {
		next_moment();
		count_from_here();
		put_all(&key, 1);
		ck_assert_uint_eq(forwarders(passing), 1);
		ck_assert_uint_ne(passing[0], 3);
		ck_assert_uint_eq(received(3), 0);
	}
	/* There is nobody left to pass anything on to. */
	ring_set_alive(ring, 5, false);
	count_from_here();
	{
		struct ring_op op = {.on_done = NULL};
		struct ring_row row = {key, 0, 8};

		ring_put(ring, 0, &op, &row, 1, 2, CONSISTENCY_LOCAL_QUORUM, WRITE_SIMPLE);
		ring_wait(ring, &op);
		world_run(world, 100 * WORLD_MS);
		ck_assert(op.is_done && !op.has_failed);
		ring_op_free(&op);
	}
	ck_assert_uint_eq(forwarders(passing), 0);
	ck_assert_uint_eq(received(1), 1);
	ck_assert_int_eq(ring_look(ring, 1, key, 0), 8);
	ring_free(ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("write_request");
	TCase *tcase = tcase_create("write_request");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_a_remote_data_center_gets_one_message);
	tcase_add_test(tcase, test_all_writes_of_a_moment_choose_alike);
	tcase_add_test(tcase, test_writes_of_a_moment_share_a_forwarder_where_both_have_it);
	tcase_add_test(tcase, test_each_replica_has_its_turn);
	tcase_add_test(tcase, test_the_dead_pass_nothing_on);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
