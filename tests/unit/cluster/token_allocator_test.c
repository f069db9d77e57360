/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/token_allocator.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env_sim.h"
#include "ring_fixture.h"

enum { NODES_MAX = 36, NODE_TOKENS = 16 };

static struct env_sim *sim;

/* ---- How even the shares are --------------------------------------------------------------- */

struct evenness {
	double deviation; /* standard, relative to the mean */
	double max; /* relative to the mean */
};

static struct evenness
evenness_of(const struct topology *topology, const struct keyspace_metadata *keyspace)
{
	uint32_t count = topology_member_count(topology);
	double owned[RING_NODES_MAX], sum = 0, squares = 0, max = 0, mean;

	replication_ownership(topology_replication(topology, keyspace), owned);
	for (uint32_t i = 0; i < count; i++) {
		sum += owned[i];
		max = fmax(max, owned[i]);
	}
	mean = sum / count;
	for (uint32_t i = 0; i < count; i++)
		squares += (owned[i] - mean) * (owned[i] - mean);
	return (struct evenness){sqrt(squares / count) / mean, max / mean};
}

/* Nodes join one by one, racks in turn; the worst evenness at or above `from` nodes that fill the racks. */
static struct evenness
grow(uint64_t seed, uint32_t racks, int32_t factor, bool is_random, uint32_t from)
{
	struct evenness worst = {0, 0};
	struct keyspace_metadata *keyspace;
	struct ring_fixture ring;
	char text[8], rack[8];

	snprintf(text, sizeof(text), "%d", factor);
	keyspace = ring_keyspace("NetworkTopologyStrategy", "dc1", text, NULL);
	sim = env_sim_new(seed);
	ring_fixture_init(&ring, seed);
	for (uint32_t node = 0; node < NODES_MAX; node++) {
		const struct topology *topology = topology_acquire(ring.holder);
		int64_t tokens[NODE_TOKENS];
		struct evenness now;
		struct error err;

		snprintf(rack, sizeof(rack), "r%u", node % racks);
		if (is_random)
			token_allocate_random(topology, env_sim_env(sim), NODE_TOKENS, tokens);
		else
			ck_assert_msg(token_allocate_for_factor(topology, "dc1", rack, factor,
					  env_sim_env(sim), NODE_TOKENS, tokens, &err) == 0,
			    "%s", err.text);
		topology_release(ring.holder, topology);
		ring_set_tokens(&ring, ring_add(&ring, "dc1", rack), tokens, NODE_TOKENS);
		ring_publish(&ring);
		if (node + 1 < from || (node + 1) % racks != 0)
			continue;
		topology = topology_acquire(ring.holder);
		now = evenness_of(topology, keyspace);
		topology_release(ring.holder, topology);
		worst.deviation = fmax(worst.deviation, now.deviation);
		worst.max = fmax(worst.max, now.max);
	}
	keyspace_unref(keyspace);
	ring_fixture_fini(&ring);
	env_sim_free(sim);
	sim = NULL;
	return worst;
}

/* Chance alone: deviations of 0.17 to 0.34, the largest share 1.4 to 1.9 times the mean. */
START_TEST(test_shares_are_even_as_a_ring_grows)
{
	static const struct {
		uint32_t racks;
		int32_t factor;
	} cases[] = {{1, 1}, /* one replica */
	    {3, 3}, /* as many racks as replicas */
	    {1, 3}, /* one rack */
	    {5, 3}, {4, 2}}; /* more racks than replicas */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct evenness by_chance =
			    grow(seed, cases[i].racks, cases[i].factor, true, 6);
			struct evenness allocated =
			    grow(seed, cases[i].racks, cases[i].factor, false, 6);

			ck_assert_msg(allocated.deviation < 0.05 && allocated.max < 1.1,
			    "racks %u, factor %d, seed %llu: deviation %.3f, largest %.3f",
			    cases[i].racks, cases[i].factor, (unsigned long long)seed,
			    allocated.deviation, allocated.max);
			ck_assert_double_lt(allocated.deviation * 3, by_chance.deviation);
		}
	}
}
END_TEST

/* ---- Whose tokens they are ----------------------------------------------------------------- */

START_TEST(test_tokens_are_nobody_s)
{
	static const uint32_t counts[] = {1, 3, 16, 256};
	struct keyspace_metadata *keyspace =
	    ring_keyspace("SimpleStrategy", "replication_factor", "2", NULL);
	int64_t tokens[256];
	struct error err;

	sim = env_sim_new(7);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct ring_fixture ring;
		const struct topology *topology;
		uint32_t count = counts[seed % 4];
		int rc;

		ring_fixture_init(&ring, seed);
		for (uint32_t i = 0; i < seed % 7; i++)
			ring_add_random(&ring, i % 2 ? "dc1" : "dc2", "r1", 1 + i * 3);
		if (ring.count > 2)
			ring.members[1].state = MEMBER_JOINING;
		ring_publish(&ring);
		topology = topology_acquire(ring.holder);
		if (seed % 2 == 0)
			rc = token_allocate_for_factor(topology, "dc1", "r1", 1 + (int)(seed % 3),
			    env_sim_env(sim), count, tokens, &err);
		else
			rc = token_allocate_for_keyspace(topology,
			    topology_replication(topology, keyspace), "dc1", "r1", env_sim_env(sim),
			    count, tokens, &err);
		ck_assert_int_eq(rc, 0);
		for (uint32_t i = 0; i < count; i++) {
			ck_assert_int_ne(tokens[i], INT64_MIN);
			if (i > 0)
				ck_assert_int_lt(tokens[i - 1], tokens[i]);
			for (uint32_t m = 0; m < ring.count; m++) {
				for (uint32_t n = 0; n < ring.members[m].token_count; n++)
					ck_assert_int_ne(tokens[i], ring.members[m].tokens[n]);
			}
		}
		topology_release(ring.holder, topology);
		ring_fixture_fini(&ring);
	}
	keyspace_unref(keyspace);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_a_token_of_another_data_center_is_stepped_over)
{
	struct ring_fixture ring;
	const struct topology *topology;
	int64_t tokens[1], half;
	struct error err;

	sim = env_sim_new(7);
	ring_fixture_init(&ring, 1);
	/* One node with one token in dc1: the next one goes half around the ring, where dc2 has one. */
	ring_set_tokens(&ring, ring_add(&ring, "dc1", "r1"), &(int64_t){1000}, 1);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	ck_assert_int_eq(
	    token_allocate_for_factor(topology, "dc1", "r1", 1, env_sim_env(sim), 1, &half, &err),
	    0);
	topology_release(ring.holder, topology);
	ck_assert_int_eq(half, (int64_t)(1000 + 0x8000000000000000ULL));
	ring_set_tokens(&ring, ring_add(&ring, "dc2", "r1"), &half, 1);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	ck_assert_int_eq(
	    token_allocate_for_factor(topology, "dc1", "r1", 1, env_sim_env(sim), 1, tokens, &err),
	    0);
	ck_assert_int_eq(tokens[0], half + 1);
	topology_release(ring.holder, topology);
	ring_fixture_fini(&ring);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_too_few_racks_are_refused)
{
	struct keyspace_metadata *everywhere = ring_keyspace("EverywhereStrategy", NULL);
	struct ring_fixture ring;
	const struct topology *topology;
	int64_t tokens[4];
	struct error err;

	sim = env_sim_new(7);
	ring_fixture_init(&ring, 1);
	for (int i = 0; i < 6; i++)
		ring_add_random(&ring, "dc1", i % 2 ? "r1" : "r2", 4);
	ring_publish(&ring);
	topology = topology_acquire(ring.holder);
	ck_assert_int_ne(
	    token_allocate_for_factor(topology, "dc1", "r1", 3, env_sim_env(sim), 4, tokens, &err),
	    0);
	ck_assert_int_eq(err.code, ERROR_CONFIG);
	ck_assert_ptr_nonnull(strstr(err.text,
	    "the number of racks 2 in datacenter dc1 is lower than its replication factor 3"));
	/* A rack that is new, a data center that is new. */
	ck_assert_int_eq(
	    token_allocate_for_factor(topology, "dc1", "r3", 3, env_sim_env(sim), 4, tokens, &err),
	    0);
	ck_assert_int_eq(
	    token_allocate_for_factor(topology, "dc2", "r1", 3, env_sim_env(sim), 4, tokens, &err),
	    0);
	ck_assert_int_ne(
	    token_allocate_for_keyspace(topology, topology_replication(topology, everywhere), "dc1",
		"r1", env_sim_env(sim), 4, tokens, &err),
	    0);
	topology_release(ring.holder, topology);
	keyspace_unref(everywhere);
	ring_fixture_fini(&ring);
	env_sim_free(sim);
}
END_TEST

/* ---- initial_token ------------------------------------------------------------------------- */

START_TEST(test_initial_token)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
	    {"1,2", "specified (2) is different from num_tokens value (3)"},
	    {"1,2,3,4", "specified (4) is different from num_tokens value (3)"},
	    {"1,2,x", "'x' is no token"},
	    {"1,,2", "'' is no token"},
	    {"", "'' is no token"},
	    {"1,2,9223372036854775808", "'9223372036854775808' is no token"},
	    {"1,2,-9223372036854775808", "'-9223372036854775808' is no token"},
	    {"1,2 3", "stands behind token 2"},
	    {"1,2,1", "token 1 is given twice"},
	};
	int64_t tokens[3];
	struct error err;

	ck_assert_int_eq(
	    token_parse_list(" 5, -9223372036854775807 ,9223372036854775807", 3, tokens, &err), 0);
	ck_assert_int_eq(tokens[0], -9223372036854775807);
	ck_assert_int_eq(tokens[1], 5);
	ck_assert_int_eq(tokens[2], INT64_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_int_ne(token_parse_list(wrong[i].text, 3, tokens, &err), 0);
		ck_assert_int_eq(err.code, ERROR_CONFIG);
		ck_assert_msg(strstr(err.text, wrong[i].message) != NULL, "%s", err.text);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("token_allocator");
	TCase *tcase = tcase_create("token_allocator");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_shares_are_even_as_a_ring_grows);
	tcase_add_test(tcase, test_tokens_are_nobody_s);
	tcase_add_test(tcase, test_a_token_of_another_data_center_is_stepped_over);
	tcase_add_test(tcase, test_too_few_racks_are_refused);
	tcase_add_test(tcase, test_initial_token);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
