/* SPDX-License-Identifier: Apache-2.0 */
/* Who fetches what from whom with --optimise-streams: by hand, and on replicas by seed against the rule, token by token. */
#include "cluster/repair_internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "ring_fixture.h"

enum { PEERS_MAX = 6, RANGES_MAX = 3, DEPTH = 6, SEEDS = 200 };

/* Replicas with the trees of their data, and what the reduction says. */
struct reduction {
	struct ring_fixture ring;
	struct repairs repairs;
	struct repair_command command;
	struct repair_session session;
	struct repair_common common;
	struct repair_job job;
	struct peer *peers[PEERS_MAX];
	struct merkle_tree *trees[PEERS_MAX * RANGES_MAX];
	struct repair_fetch *fetches;
};

static void
reduction_init(struct reduction *reduction, uint64_t seed)
{
	memset(reduction, 0, sizeof(*reduction));
	ring_fixture_init(&reduction->ring, seed);
	reduction->repairs.topology = reduction->ring.holder;
	reduction->command.repairs = &reduction->repairs;
	reduction->session.command = &reduction->command;
	reduction->session.common = &reduction->common;
	reduction->job.session = &reduction->session;
	reduction->job.trees = reduction->trees;
	reduction->common.peers = reduction->peers;
}

static void
reduction_add_peer(struct reduction *reduction, const char *datacenter)
{
	int64_t token = reduction->common.peer_count;
	struct member *member = ring_add(&reduction->ring, datacenter, "r1");

	ring_set_tokens(&reduction->ring, member, &token, 1);
	reduction->peers[reduction->common.peer_count++] = member->peer;
}

/* After the peers. */
static void
reduction_set_ranges(struct reduction *reduction, const struct merkle_range *ranges, uint32_t count)
{
	ring_publish(&reduction->ring);
	reduction->common.range_count = count;
	for (uint32_t i = 0; i < reduction->common.peer_count; i++)
		for (uint32_t j = 0; j < count; j++)
			reduction->trees[i * count + j] = merkle_tree_new(ranges[j], DEPTH);
}

/* The replica has this content of the token. */
static void
reduction_put(
    struct reduction *reduction, uint32_t peer, uint32_t range, int64_t token, uint8_t content)
{
	uint8_t hash[MERKLE_HASH_SIZE] = {content, 1};

	ck_assert(merkle_tree_add(
	    reduction->trees[peer * reduction->common.range_count + range], token, hash));
}

static void
reduction_run(struct reduction *reduction)
{
	struct error err;

	ck_assert_msg(
	    repair_job_reduce(&reduction->job, &reduction->fetches, &err) == 0, "%s", err.text);
}

static void
reduction_fini(struct reduction *reduction)
{
	repair_fetches_free(reduction->fetches, reduction->common.peer_count);
	for (uint32_t i = 0; i < PEERS_MAX * RANGES_MAX; i++)
		merkle_tree_free(reduction->trees[i]);
	ring_fixture_fini(&reduction->ring);
}

static const struct repair_fetch *
fetch_of(const struct reduction *reduction, uint32_t to, uint32_t from)
{
	return &reduction->fetches[to * reduction->common.peer_count + from];
}

static bool
fetches(const struct reduction *reduction, uint32_t to, uint32_t from, int64_t token)
{
	const struct repair_fetch *fetch = fetch_of(reduction, to, from);
	uint32_t count = 0;

	for (uint32_t i = 0; i < fetch->count; i++) {
		int64_t left = fetch->ranges[i].left, right = fetch->ranges[i].right;

		count +=
		    left < right ? token > left && token <= right : token > left || token <= right;
	}
	/* Nothing comes twice. */
	ck_assert_uint_le(count, 1);
	return count == 1;
}

static uint32_t
transfers(const struct reduction *reduction)
{
	uint32_t peers = reduction->common.peer_count, count = 0;

	for (uint32_t i = 0; i < peers * peers; i++)
		count += reduction->fetches[i].count > 0;
	return count;
}

static const struct merkle_range one_range[] = {{0, 6400}}; /* 100 tokens a part */

START_TEST(test_equal_replicas_are_one_source)
{
	struct reduction reduction;

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 3; i++)
		reduction_add_peer(&reduction, "dc1");
	reduction_set_ranges(&reduction, one_range, 1);
	for (uint32_t i = 0; i < 3; i++)
		reduction_put(&reduction, i, 0, 250, i == 2 ? 7 : 5);
	reduction_run(&reduction);
	ck_assert_uint_eq(transfers(&reduction), 3);
	ck_assert(fetches(&reduction, 0, 2, 250));
	ck_assert(fetches(&reduction, 1, 2, 250));
	ck_assert(fetches(&reduction, 2, 0, 250) != fetches(&reduction, 2, 1, 250));
	/* The part that differs, and no more. */
	ck_assert_uint_eq(fetch_of(&reduction, 0, 2)->count, 1);
	ck_assert_int_eq(fetch_of(&reduction, 0, 2)->ranges[0].left, 200);
	ck_assert_int_eq(fetch_of(&reduction, 0, 2)->ranges[0].right, 300);
	reduction_fini(&reduction);
}
END_TEST

START_TEST(test_equal_replicas_fetch_nothing)
{
	struct reduction reduction;

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 3; i++)
		reduction_add_peer(&reduction, "dc1");
	reduction_set_ranges(&reduction, one_range, 1);
	for (uint32_t i = 0; i < 3; i++)
		reduction_put(&reduction, i, 0, 250, 5);
	reduction_run(&reduction);
	ck_assert_uint_eq(transfers(&reduction), 0);
	reduction_fini(&reduction);
}
END_TEST

START_TEST(test_neighbouring_parts_are_one_range)
{
	struct reduction reduction;

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 2; i++)
		reduction_add_peer(&reduction, "dc1");
	reduction_set_ranges(&reduction, one_range, 1);
	/* Parts 2, 3 and 4, and the last one. */
	for (int64_t token = 250; token < 550; token += 100)
		reduction_put(&reduction, 1, 0, token, 5);
	reduction_put(&reduction, 1, 0, 6400, 5);
	reduction_run(&reduction);
	for (uint32_t to = 0; to < 2; to++) {
		const struct repair_fetch *fetch = fetch_of(&reduction, to, 1 - to);

		ck_assert_uint_eq(fetch->count, 2);
		ck_assert_int_eq(fetch->ranges[0].left, 200);
		ck_assert_int_eq(fetch->ranges[0].right, 500);
		ck_assert_int_eq(fetch->ranges[1].left, 6300);
		ck_assert_int_eq(fetch->ranges[1].right, 6400);
	}
	reduction_fini(&reduction);
}
END_TEST

START_TEST(test_a_source_of_the_own_data_center_is_taken)
{
	struct reduction reduction;

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 6; i++)
		reduction_add_peer(&reduction, i % 2 == 0 ? "dc1" : "dc2");
	reduction_set_ranges(&reduction, one_range, 1);
	/* 0, 1, 2 and 3 are equal; 4 (dc1) and 5 (dc2) lack what they have. */
	for (uint32_t i = 0; i < 4; i++)
		reduction_put(&reduction, i, 0, 250, 5);
	reduction_run(&reduction);
	ck_assert(fetches(&reduction, 4, 0, 250) != fetches(&reduction, 4, 2, 250));
	ck_assert(!fetches(&reduction, 4, 1, 250) && !fetches(&reduction, 4, 3, 250));
	ck_assert(fetches(&reduction, 5, 1, 250) != fetches(&reduction, 5, 3, 250));
	ck_assert(!fetches(&reduction, 5, 0, 250) && !fetches(&reduction, 5, 2, 250));
	reduction_fini(&reduction);
}
END_TEST

START_TEST(test_equal_sources_take_turns)
{
	struct reduction reduction;
	uint32_t counts[3] = {0, 0, 0};

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 4; i++)
		reduction_add_peer(&reduction, "dc1");
	reduction_set_ranges(&reduction, one_range, 1);
	/* Every other part, so that none are joined: replica 3 has nothing of 30. */
	for (int64_t token = 50; token < 6000; token += 200)
		for (uint32_t i = 0; i < 3; i++)
			reduction_put(&reduction, i, 0, token, 5);
	reduction_run(&reduction);
	for (int64_t token = 50; token < 6000; token += 200)
		for (uint32_t i = 0; i < 3; i++)
			counts[i] += fetches(&reduction, 3, i, token);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(counts[i], 10);
	reduction_fini(&reduction);
}
END_TEST

START_TEST(test_trees_of_another_depth_are_an_error)
{
	struct reduction reduction;
	struct error err;

	reduction_init(&reduction, 1);
	for (uint32_t i = 0; i < 3; i++)
		reduction_add_peer(&reduction, "dc1");
	reduction_set_ranges(&reduction, (struct merkle_range[]){{0, 6400}, {6400, 0}}, 2);
	/* Of the second range, when the first one's fetches are there. */
	reduction_put(&reduction, 0, 0, 250, 5);
	merkle_tree_free(reduction.trees[3]);
	reduction.trees[3] = merkle_tree_new((struct merkle_range){6400, 0}, DEPTH - 1);
	ck_assert_int_eq(repair_job_reduce(&reduction.job, &reduction.fetches, &err), -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	ck_assert_ptr_null(reduction.fetches);
	reduction_fini(&reduction);
}
END_TEST

/* ---- Against the rule ---------------------------------------------------------------------- */

struct probe {
	uint32_t range;
	int64_t token;
	uint8_t contents[PEERS_MAX]; /* 0: nothing */
};

enum { PROBES = 24 };

/* The part of the range that a token is in; parts of ranges of 2^DEPTH * n tokens are n long. */
static uint64_t
probe_part(const struct merkle_range *range, int64_t token)
{
	uint64_t part = ((uint64_t)range->right - (uint64_t)range->left) >> DEPTH;

	if (part == 0)
		part = UINT64_C(1) << (64 - DEPTH); /* all of the ring */
	return ((uint64_t)token - (uint64_t)range->left - 1) / part;
}

/* Each fetches from exactly one of those that have what it has not, for each such content, and from nobody else. */
static void
check_probe(struct reduction *reduction, const struct probe *probe)
{
	uint32_t peers = reduction->common.peer_count;

	for (uint32_t to = 0; to < peers; to++) {
		for (uint32_t of = 0; of < peers; of++) {
			uint8_t content = probe->contents[of];
			bool is_near_there = false, is_near_taken = false;
			uint32_t taken = 0;

			for (uint32_t from = 0; from < peers; from++) {
				bool is_near = strcmp(reduction->ring.members[from].datacenter,
						   reduction->ring.members[to].datacenter) == 0;
				bool is_taken = fetches(reduction, to, from, probe->token);

				if (probe->contents[from] != content)
					continue;
				taken += is_taken;
				is_near_there |= is_near;
				is_near_taken |= is_near && is_taken;
			}
			ck_assert_uint_eq(taken, content != probe->contents[to]);
			ck_assert(taken == 0 || is_near_taken == is_near_there);
		}
	}
}

static void
check_seed(uint64_t seed)
{
	static const struct merkle_range choices[][RANGES_MAX] = {
	    {{-6400, 0}, {0, 64000}, {64000, -6400}},
	    {{INT64_MAX - 3200, INT64_MIN + 3199}, {INT64_MIN + 3199, 64}, {640, 6400}},
	    {{77, 77}},
	};
	struct reduction reduction;
	struct probe probes[PROBES];
	const struct merkle_range *ranges;
	uint32_t choice, range_count;

	reduction_init(&reduction, seed);
	choice = ring_chance(&reduction.ring, 3);
	ranges = choices[choice];
	range_count = choice == 2 ? 1 : RANGES_MAX;
	for (uint32_t i = 2 + ring_chance(&reduction.ring, PEERS_MAX - 1); i > 0; i--)
		reduction_add_peer(
		    &reduction, ring_chance(&reduction.ring, 2) == 0 ? "dc1" : "dc2");
	reduction_set_ranges(&reduction, ranges, range_count);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct probe *probe = &probes[i];
		uint32_t kinds = 1 + ring_chance(&reduction.ring, 4);
		bool is_alone = true;
		uint64_t size;

		probe->range = ring_chance(&reduction.ring, range_count);
		size = (uint64_t)ranges[probe->range].right - (uint64_t)ranges[probe->range].left;
		probe->token = (int64_t)((uint64_t)ranges[probe->range].left + 1 +
		    (size == 0 ? ring_random(&reduction.ring)
			       : ring_random(&reduction.ring) % size));
		/* One token a part. */
		for (uint32_t k = 0; k < i; k++)
			if (probes[k].range == probe->range &&
			    probe_part(&ranges[probe->range], probes[k].token) ==
				probe_part(&ranges[probe->range], probe->token))
				is_alone = false;
		for (uint32_t k = 0; k < reduction.common.peer_count; k++) {
			probe->contents[k] =
			    is_alone ? (uint8_t)ring_chance(&reduction.ring, kinds) : 0;
			if (probe->contents[k] != 0)
				reduction_put(
				    &reduction, k, probe->range, probe->token, probe->contents[k]);
		}
		if (!is_alone)
			*probe = probes[0];
	}
	reduction_run(&reduction);
	for (uint32_t i = 0; i < PROBES; i++)
		check_probe(&reduction, &probes[i]);
	for (uint32_t to = 0; to < reduction.common.peer_count; to++)
		ck_assert_uint_eq(fetch_of(&reduction, to, to)->count, 0);
	reduction_fini(&reduction);
}

START_TEST(test_every_content_is_fetched_once_from_one_that_has_it)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		check_seed(seed);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("repair_optimise");
	TCase *tcase = tcase_create("repair_optimise");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_equal_replicas_are_one_source);
	tcase_add_test(tcase, test_equal_replicas_fetch_nothing);
	tcase_add_test(tcase, test_neighbouring_parts_are_one_range);
	tcase_add_test(tcase, test_a_source_of_the_own_data_center_is_taken);
	tcase_add_test(tcase, test_equal_sources_take_turns);
	tcase_add_test(tcase, test_trees_of_another_depth_are_an_error);
	tcase_add_test(tcase, test_every_content_is_fetched_once_from_one_that_has_it);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
