/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/replica_plan.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ring_fixture.h"

/*
 * Two data centers of three: nodes 1, 2, 3 in dc1 with tokens 0, 100, 200 and 4, 5, 6 in dc2 with 50, 150, 250, each in a
 * rack of its own. Three replicas in each: every node has everything. Node 1 is this one.
 */
struct plan_fixture {
	struct ring_fixture ring;
	struct keyspace_metadata *keyspace;
	const struct topology *topology;
	const struct replication *replication;
	struct arena arena;
	struct error err;
};

static void
plan_fixture_init(struct plan_fixture *fixture, struct keyspace_metadata *keyspace)
{
	static const char *const racks[] = {"r1", "r2", "r3"};
	struct ring_fixture *ring = &fixture->ring;

	ring_fixture_init(ring, 1);
	topology_holder_set_local(ring->holder, "dc1", "r1");
	for (int i = 0; i < 6; i++) {
		int64_t token = i < 3 ? i * 100 : (i - 3) * 100 + 50;

		ring_set_tokens(
		    ring, ring_add(ring, i < 3 ? "dc1" : "dc2", racks[i % 3]), &token, 1);
	}
	fixture->keyspace = keyspace;
	fixture->topology = NULL;
	arena_init(&fixture->arena, 4096);
}

/* The members as they are now. */
static void
plan_fixture_take(struct plan_fixture *fixture)
{
	if (fixture->topology != NULL)
		topology_release(fixture->ring.holder, fixture->topology);
	ring_publish(&fixture->ring);
	fixture->topology = topology_acquire(fixture->ring.holder);
	fixture->replication = topology_replication(fixture->topology, fixture->keyspace);
}

static void
plan_fixture_fini(struct plan_fixture *fixture)
{
	topology_release(fixture->ring.holder, fixture->topology);
	keyspace_unref(fixture->keyspace);
	arena_fini(&fixture->arena);
	ring_fixture_fini(&fixture->ring);
}

static struct keyspace_metadata *
three_and_three(void)
{
	return ring_keyspace("NetworkTopologyStrategy", "dc1", "3", "dc2", "3", NULL);
}

static void
set_alive(struct plan_fixture *fixture, const char *alive)
{
	for (uint32_t i = 0; i < fixture->ring.count; i++)
		atomic_store(
		    &fixture->ring.members[i].peer->is_alive, strchr(alive, '1' + (int)i) != NULL);
}

static void
expect_unavailable(const struct plan_fixture *fixture, int rc, enum consistency level,
    int32_t required, int32_t alive, const char *text)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_int_eq(fixture->err.code, ERROR_UNAVAILABLE);
	ck_assert_int_eq(fixture->err.consistency, level);
	ck_assert_int_eq(fixture->err.required, required);
	ck_assert_int_eq(fixture->err.received, alive);
	ck_assert_str_eq(fixture->err.text, text);
}

static int
plan_write(struct plan_fixture *fixture, struct replica_plan *plan, enum consistency level)
{
	return replica_plan_for_write(plan, fixture->topology, fixture->replication, 10, level,
	    &fixture->arena, &fixture->err);
}

static int
plan_read(
    struct plan_fixture *fixture, struct replica_plan *plan, enum consistency level, bool always)
{
	return replica_plan_for_read(plan, fixture->topology, fixture->replication, 10, level,
	    always, NULL, &fixture->arena, &fixture->err);
}

/* Last octets: "1 2|3": contacts, then other candidates. */
static const char *
plan_text(const struct replica_plan *plan)
{
	static char text[128];
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < plan->count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u",
		    i == plan->contact_count ? "|"
			: i == 0             ? ""
					     : " ",
		    plan->replicas[i].peer->endpoint.address[3]);
	return text;
}

/* ---- Which levels can be met --------------------------------------------------------------- */

/* Alive nodes of "123456"; required 0: enough. */
static const struct {
	const char *alive;
	enum consistency level;
	int32_t required, alive_count;
	const char *datacenter;
} level_cases[] = {
    {"123456", CONSISTENCY_ALL, 0, 0, NULL},
    {"12345", CONSISTENCY_ALL, 6, 5, NULL},
    {"1234", CONSISTENCY_QUORUM, 0, 0, NULL},
    {"123", CONSISTENCY_QUORUM, 4, 3, NULL},
    {"12", CONSISTENCY_LOCAL_QUORUM, 0, 0, NULL},
    {"1456", CONSISTENCY_LOCAL_QUORUM, 2, 1, NULL},
    {"456", CONSISTENCY_LOCAL_ONE, 1, 0, NULL},
    {"456", CONSISTENCY_ONE, 0, 0, NULL},
    {"", CONSISTENCY_ONE, 1, 0, NULL},
    {"4", CONSISTENCY_TWO, 2, 1, NULL},
    {"45", CONSISTENCY_THREE, 3, 2, NULL},
    {"1245", CONSISTENCY_EACH_QUORUM, 0, 0, NULL},
    {"1234", CONSISTENCY_EACH_QUORUM, 2, 1, "dc2"},
    {"1456", CONSISTENCY_EACH_QUORUM, 2, 1, "dc1"},
};

START_TEST(test_a_level_that_cannot_be_met_is_refused)
{
	struct plan_fixture fixture;
	struct replica_plan plan;
	char text[128];

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	for (size_t i = 0; i < sizeof(level_cases) / sizeof(level_cases[0]); i++) {
		enum consistency level = level_cases[i].level;

		set_alive(&fixture, level_cases[i].alive);
		for (int is_read = 0; is_read < 2; is_read++) {
			int rc = is_read ? plan_read(&fixture, &plan, level, false)
					 : plan_write(&fixture, &plan, level);

			if (level_cases[i].required == 0) {
				ck_assert_msg(rc == 0, "case %zu: %s", i, fixture.err.text);
				continue;
			}
			snprintf(text, sizeof(text), "Cannot achieve consistency level %s%s%s",
			    consistency_name(level),
			    level_cases[i].datacenter == NULL ? "" : " in DC ",
			    level_cases[i].datacenter == NULL ? "" : level_cases[i].datacenter);
			expect_unavailable(&fixture, rc, level, level_cases[i].required,
			    level_cases[i].alive_count, text);
		}
	}
	set_alive(&fixture, "");
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_ANY), 0);
	ck_assert_int_eq(plan.block_for, 1);
	plan_fixture_fini(&fixture);
}
END_TEST

/* ---- Writes -------------------------------------------------------------------------------- */

START_TEST(test_a_write_goes_to_all_replicas)
{
	struct plan_fixture fixture;
	struct replica_plan plan;

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	set_alive(&fixture, "1245");
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_LOCAL_QUORUM), 0);
	ck_assert_str_eq(plan_text(&plan), "4 2 5 3 6 1");
	ck_assert_int_eq(plan.block_for, 2);
	ck_assert_uint_eq(plan.live_count, 4);
	ck_assert_uint_eq(plan.pending_count, 0);
	for (uint32_t i = 0; i < plan.count; i++) {
		bool is_local = plan.replicas[i].peer->endpoint.address[3] <= 3;

		ck_assert(plan.replicas[i].is_local_datacenter == is_local);
		ck_assert(plan.replicas[i].is_counted == is_local);
		ck_assert(plan.replicas[i].is_alive ==
		    (strchr("1245", '0' + plan.replicas[i].peer->endpoint.address[3]) != NULL));
	}
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_EACH_QUORUM), 0);
	ck_assert_uint_eq(plan.quorum_count, 2);
	ck_assert_int_eq(plan.block_for, 4);
	ck_assert(plan.quorums[0] == 2 && plan.quorums[1] == 2);
	for (uint32_t i = 0; i < plan.count; i++)
		ck_assert_int_eq(
		    plan.replicas[i].quorum, plan.replicas[i].peer->endpoint.address[3] > 3);
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_pending_replicas_raise_what_a_write_waits_for)
{
	struct plan_fixture fixture;
	struct replica_plan plan;
	int64_t token = 30;

	plan_fixture_init(&fixture, three_and_three());
	ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc2", "r1"), &token, 1);
	fixture.ring.members[6].state = MEMBER_JOINING;
	plan_fixture_take(&fixture);

	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_QUORUM), 0);
	ck_assert_uint_eq(plan.count, 7);
	ck_assert_uint_eq(plan.pending_count, 1);
	ck_assert(plan.replicas[6].is_pending && !plan.replicas[5].is_pending);
	ck_assert_int_eq(plan.block_for, 5);
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_ONE), 0);
	ck_assert_int_eq(plan.block_for, 2);
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_ANY), 0);
	ck_assert_int_eq(plan.block_for, 1);
	/* It is the other data center's. */
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_LOCAL_QUORUM), 0);
	ck_assert_int_eq(plan.block_for, 2);
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_EACH_QUORUM), 0);
	ck_assert_int_eq(plan.block_for, 5);
	ck_assert(plan.quorums[0] == 2 && plan.quorums[1] == 3);
	/* Alive ones of both kinds count. */
	set_alive(&fixture, "1237");
	expect_unavailable(&fixture, plan_write(&fixture, &plan, CONSISTENCY_QUORUM),
	    CONSISTENCY_QUORUM, 5, 4, "Cannot achieve consistency level QUORUM");
	/* A read never asks it. */
	set_alive(&fixture, "1234567");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_ALL, false), 0);
	ck_assert_uint_eq(plan.count, 6);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_ne(plan.replicas[i].peer->endpoint.address[3], 7);
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_pending_replica_of_this_data_center_at_local_one)
{
	struct plan_fixture fixture;
	struct replica_plan plan;
	int64_t token = 30;

	plan_fixture_init(&fixture, three_and_three());
	ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r1"), &token, 1);
	fixture.ring.members[6].state = MEMBER_JOINING;
	plan_fixture_take(&fixture);
	set_alive(&fixture, "1456");
	/* Two are waited for, yet Cassandra names 1. */
	expect_unavailable(&fixture, plan_write(&fixture, &plan, CONSISTENCY_LOCAL_ONE),
	    CONSISTENCY_LOCAL_ONE, 1, 1, "Cannot achieve consistency level LOCAL_ONE");
	set_alive(&fixture, "1267");
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_LOCAL_QUORUM), 0);
	ck_assert_int_eq(plan.block_for, 3);
	plan_fixture_fini(&fixture);
}
END_TEST

/* ---- Reads --------------------------------------------------------------------------------- */

START_TEST(test_a_read_asks_as_many_as_it_needs)
{
	struct plan_fixture fixture;
	struct replica_plan plan;

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	set_alive(&fixture, "123456");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_QUORUM, false), 0);
	ck_assert_str_eq(plan_text(&plan), "4 2 5 3|6 1");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_LOCAL_QUORUM, false), 0);
	ck_assert_str_eq(plan_text(&plan), "2 3|1");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_LOCAL_ONE, true), 0);
	ck_assert_str_eq(plan_text(&plan), "2 3|1");
	set_alive(&fixture, "156");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_TWO, true), 0);
	ck_assert_uint_eq(plan.count, 3);
	ck_assert_uint_eq(plan.contact_count, 3);
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_each_quorum_reads_a_quorum_of_each)
{
	struct plan_fixture fixture;
	struct replica_plan plan;
	int32_t asked[2] = {0, 0};

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	set_alive(&fixture, "12356");
	ck_assert_int_eq(plan_read(&fixture, &plan, CONSISTENCY_EACH_QUORUM, true), 0);
	ck_assert_uint_eq(plan.contact_count, 4);
	ck_assert_uint_eq(plan.count, 5);
	for (uint32_t i = 0; i < plan.contact_count; i++)
		asked[plan.replicas[i].quorum]++;
	ck_assert(asked[0] == 2 && asked[1] == 2);
	ck_assert_uint_le(plan.replicas[4].peer->endpoint.address[3], 3);
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_many_replicas_lie_in_the_arena)
{
	struct plan_fixture fixture;
	struct replica_plan plan;

	plan_fixture_init(&fixture, ring_keyspace("EverywhereStrategy", NULL));
	for (int i = 0; i < 20; i++) {
		int64_t token = 1000 + i;

		ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r1"), &token, 1);
	}
	plan_fixture_take(&fixture);
	ck_assert_int_eq(plan_write(&fixture, &plan, CONSISTENCY_ALL), 0);
	ck_assert_uint_eq(plan.count, 26);
	ck_assert_int_eq(plan.block_for, 26);
	ck_assert_ptr_ne(plan.replicas, plan.inline_replicas);
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_read_repair_writes_to_whom_was_asked)
{
	struct plan_fixture fixture;
	struct replica_plan read, repair;
	int64_t token = 30;

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	ck_assert_int_eq(plan_read(&fixture, &read, CONSISTENCY_LOCAL_QUORUM, false), 0);
	ck_assert_int_eq(
	    replica_plan_for_read_repair(&repair, &read, 10, &fixture.arena, &fixture.err), 0);
	ck_assert_str_eq(plan_text(&repair), "2 3");
	ck_assert_int_eq(repair.block_for, 2);

	/* One joins meanwhile: one more write, to whoever lives. */
	ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r1"), &token, 1);
	fixture.ring.members[6].state = MEMBER_JOINING;
	plan_fixture_take(&fixture);
	ck_assert_int_eq(plan_read(&fixture, &read, CONSISTENCY_LOCAL_QUORUM, false), 0);
	ck_assert_int_eq(
	    replica_plan_for_read_repair(&repair, &read, 10, &fixture.arena, &fixture.err), 0);
	ck_assert_uint_eq(repair.count, 3);
	ck_assert_int_eq(repair.block_for, 3);
	for (uint32_t i = 0; i < repair.count; i++)
		ck_assert(repair.replicas[i].is_local_datacenter);
	plan_fixture_fini(&fixture);
}
END_TEST

/* ---- Paxos, counters, batchlogs ------------------------------------------------------------ */

static int
plan_paxos(struct plan_fixture *fixture, struct replica_plan *plan, enum consistency level)
{
	return replica_plan_for_paxos(plan, fixture->topology, fixture->replication, 10, level,
	    &fixture->arena, &fixture->err);
}

START_TEST(test_paxos_needs_a_majority_of_participants)
{
	struct plan_fixture fixture;
	struct replica_plan plan;
	int64_t token = 30;

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	set_alive(&fixture, "1245");
	ck_assert_int_eq(plan_paxos(&fixture, &plan, CONSISTENCY_SERIAL), 0);
	ck_assert_int_eq(plan.block_for, 4);
	ck_assert_uint_eq(plan.contact_count, 4);
	ck_assert_int_eq(plan_paxos(&fixture, &plan, CONSISTENCY_LOCAL_SERIAL), 0);
	ck_assert_int_eq(plan.block_for, 2);
	ck_assert_uint_eq(plan.contact_count, 2);
	set_alive(&fixture, "1456");
	expect_unavailable(&fixture, plan_paxos(&fixture, &plan, CONSISTENCY_LOCAL_SERIAL),
	    CONSISTENCY_LOCAL_SERIAL, 2, 1, "Cannot achieve consistency level LOCAL_SERIAL");

	for (int i = 0; i < 2; i++) {
		ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r1"), &token, 1);
		fixture.ring.members[6 + i].state = MEMBER_JOINING;
		token++;
	}
	plan_fixture_take(&fixture);
	set_alive(&fixture, "12345678");
	expect_unavailable(&fixture, plan_paxos(&fixture, &plan, CONSISTENCY_SERIAL),
	    CONSISTENCY_SERIAL, 9, 8,
	    "Cannot perform LWT operation as there is more than one (2) pending range movement");
	plan_fixture_fini(&fixture);
}
END_TEST

static int
leader(struct plan_fixture *fixture, enum consistency level, uint64_t random, struct peer **out)
{
	return replica_plan_counter_leader(
	    fixture->topology, fixture->replication, 10, level, NULL, random, out, &fixture->err);
}

START_TEST(test_a_counter_s_leader_is_near)
{
	struct plan_fixture fixture;
	struct peer *found;
	unsigned seen = 0;

	plan_fixture_init(
	    &fixture, ring_keyspace("NetworkTopologyStrategy", "dc1", "2", "dc2", "1", NULL));
	plan_fixture_take(&fixture);
	/* Token 10: nodes 2 and 3 here, 4 there; this node is none of them. */
	for (uint64_t random = 0; random < 64; random++) {
		ck_assert_int_eq(leader(&fixture, CONSISTENCY_ONE, random * 977, &found), 0);
		seen |= 1U << found->endpoint.address[3];
	}
	ck_assert_uint_eq(seen, 1U << 2 | 1U << 3);
	set_alive(&fixture, "14");
	ck_assert_int_eq(leader(&fixture, CONSISTENCY_ONE, 1, &found), 0);
	ck_assert_uint_eq(found->endpoint.address[3], 4);
	expect_unavailable(&fixture, leader(&fixture, CONSISTENCY_LOCAL_QUORUM, 1, &found),
	    CONSISTENCY_LOCAL_QUORUM, 2, 0, "Cannot achieve consistency level LOCAL_QUORUM");
	set_alive(&fixture, "1");
	expect_unavailable(&fixture, leader(&fixture, CONSISTENCY_QUORUM, 1, &found),
	    CONSISTENCY_QUORUM, 2, 0, "Cannot achieve consistency level QUORUM");
	plan_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_batchlog_lies_on_two_racks)
{
	struct plan_fixture fixture;
	struct peer *found[2];
	unsigned pairs = 0;

	plan_fixture_init(&fixture, three_and_three());
	plan_fixture_take(&fixture);
	for (uint64_t random = 0; random < 64; random++) {
		ck_assert_int_eq(
		    replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_RANDOM_REMOTE, NULL,
			false, random * 31, found, &fixture.err),
		    2);
		pairs |= 1U << found[0]->endpoint.address[3] | 1U << found[1]->endpoint.address[3];
		ck_assert_ptr_ne(found[0], found[1]);
	}
	ck_assert_uint_eq(pairs, 1U << 2 | 1U << 3);
	set_alive(&fixture, "13456");
	ck_assert_int_eq(replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_RANDOM_REMOTE,
			     NULL, false, 1, found, &fixture.err),
	    1);
	ck_assert_uint_eq(found[0]->endpoint.address[3], 3);
	set_alive(&fixture, "1456");
	expect_unavailable(&fixture,
	    replica_plan_batchlog_endpoints(
		fixture.topology, BATCHLOG_RANDOM_REMOTE, NULL, false, 1, found, &fixture.err),
	    CONSISTENCY_ONE, 1, 0, "Cannot achieve consistency level ONE");
	ck_assert_int_eq(replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_RANDOM_REMOTE,
			     NULL, true, 1, found, &fixture.err),
	    1);
	ck_assert(found[0]->is_local);

	/* Enough elsewhere: this node's rack is left alone, and two racks are taken. */
	set_alive(&fixture, "123456");
	ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r1"), &(int64_t){31}, 1);
	ring_set_tokens(&fixture.ring, ring_add(&fixture.ring, "dc1", "r2"), &(int64_t){32}, 1);
	plan_fixture_take(&fixture);
	for (uint64_t random = 0; random < 64; random++) {
		ck_assert_int_eq(
		    replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_RANDOM_REMOTE, NULL,
			false, random * 31, found, &fixture.err),
		    2);
		for (int i = 0; i < 2; i++)
			ck_assert_str_ne(topology_rack(fixture.topology, found[i]), "r1");
		ck_assert_ptr_ne(topology_rack(fixture.topology, found[0]),
		    topology_rack(fixture.topology, found[1]));
		ck_assert_int_eq(
		    replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_PREFER_LOCAL, NULL,
			false, random * 31, found, &fixture.err),
		    2);
		ck_assert_str_eq(topology_rack(fixture.topology, found[0]), "r1");
		ck_assert_str_ne(topology_rack(fixture.topology, found[1]), "r1");
		/* Nobody knows who is quick. */
		ck_assert_int_eq(
		    replica_plan_batchlog_endpoints(fixture.topology, BATCHLOG_DYNAMIC_REMOTE, NULL,
			false, random * 31, found, &fixture.err),
		    2);
		for (int i = 0; i < 2; i++)
			ck_assert_str_ne(topology_rack(fixture.topology, found[i]), "r1");
	}
	plan_fixture_fini(&fixture);
}
END_TEST

/* ---- Ranges -------------------------------------------------------------------------------- */

static struct range_plans
plan_ranges_sparing(struct plan_fixture *fixture, int64_t left, int64_t right,
    enum consistency level, bool keeps_spare)
{
	struct range_plans plans;

	range_plans_init(&plans, fixture->topology, fixture->replication,
	    (struct ring_range){left, right}, level, keeps_spare, NULL, &fixture->arena);
	return plans;
}

static struct range_plans
plan_ranges(struct plan_fixture *fixture, int64_t left, int64_t right, enum consistency level)
{
	return plan_ranges_sparing(fixture, left, right, level, false);
}

START_TEST(test_ranges_are_split_by_the_ring_and_merged)
{
	struct plan_fixture fixture;
	struct range_plans plans;
	struct range_plan part;

	plan_fixture_init(
	    &fixture, ring_keyspace("SimpleStrategy", "replication_factor", "2", NULL));
	plan_fixture_take(&fixture);
	/* Tokens 0 (1), 50 (4), 100 (2), 150 (5), 200 (3), 250 (6). */
	plans = plan_ranges(&fixture, INT64_MIN, INT64_MIN, CONSISTENCY_ALL);
	ck_assert_uint_eq(range_plans_count(&plans), 7);
	for (int i = 0; i < 7; i++) {
		ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
		ck_assert_int_eq(part.range.left, i == 0 ? INT64_MIN : (i - 1) * 50);
		ck_assert_int_eq(part.range.right, i == 6 ? INT64_MIN : i * 50);
		ck_assert_uint_eq(part.plan.contact_count, 2);
	}
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 0);

	/* At ONE two neighbours share a replica, three don't. */
	plans = plan_ranges(&fixture, 10, 130, CONSISTENCY_ONE);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.left, 10);
	ck_assert_int_eq(part.range.right, 100);
	ck_assert_uint_eq(part.vnode_count, 2);
	ck_assert_str_eq(plan_text(&part.plan), "2");
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 130);
	ck_assert_uint_eq(part.vnode_count, 1);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 0);

	/* What is dead is told when its part comes. */
	set_alive(&fixture, "12345");
	plans = plan_ranges(&fixture, 110, 210, CONSISTENCY_ALL);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 150);
	expect_unavailable(&fixture, range_plans_next(&plans, &part, &fixture.err), CONSISTENCY_ALL,
	    2, 1, "Cannot achieve consistency level ALL");

	plans = plan_ranges(&fixture, 20, 20, CONSISTENCY_ONE);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 0);
	plans = plan_ranges(&fixture, INT64_MAX, INT64_MIN, CONSISTENCY_ONE);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 0);
	plan_fixture_fini(&fixture);
}
END_TEST

/* Tokens 0 (1), 50 (4), 100 (2), 150 (5), 200 (3), 250 (6), three replicas. */
START_TEST(test_a_merged_range_keeps_a_replica_to_speculate_with)
{
	struct plan_fixture fixture;
	struct range_plans plans;
	struct range_plan part;

	plan_fixture_init(
	    &fixture, ring_keyspace("SimpleStrategy", "replication_factor", "3", NULL));
	plan_fixture_take(&fixture);
	plans = plan_ranges_sparing(&fixture, 10, 110, CONSISTENCY_TWO, false);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 100);
	ck_assert_uint_eq(part.plan.count, 2);

	plans = plan_ranges_sparing(&fixture, 10, 110, CONSISTENCY_TWO, true);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 50);
	ck_assert_uint_eq(part.plan.count, 3);
	ck_assert_uint_eq(part.plan.contact_count, 2);

	/* Two neighbours still have two that both have; three have one. */
	plans = plan_ranges_sparing(&fixture, 10, 170, CONSISTENCY_ONE, true);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 100);
	ck_assert_uint_eq(part.plan.count, 2);
	ck_assert_uint_eq(part.plan.contact_count, 1);

	/* Where there was none to lose, parts are merged as ever. */
	set_alive(&fixture, "1256");
	plans = plan_ranges_sparing(&fixture, 60, 130, CONSISTENCY_TWO, true);
	ck_assert_int_eq(range_plans_next(&plans, &part, &fixture.err), 1);
	ck_assert_int_eq(part.range.right, 100);
	plan_fixture_fini(&fixture);
}
END_TEST

/* By seed: the parts follow one another without a gap, and each one's contacts are replicas of all its tokens. */
START_TEST(test_parts_cover_a_range_with_right_replicas)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		static const enum consistency levels[] = {CONSISTENCY_ONE, CONSISTENCY_QUORUM,
		    CONSISTENCY_LOCAL_QUORUM, CONSISTENCY_EACH_QUORUM, CONSISTENCY_ALL};
		struct plan_fixture fixture;
		struct ring_range range;
		struct range_plans plans;
		struct range_plan part;
		uint32_t vnodes = 0, count;
		int64_t at;
		int rc;

		plan_fixture_init(&fixture, three_and_three());
		fixture.ring.random = seed;
		fixture.ring.count = 0;
		for (int i = 0; i < 12; i++)
			ring_add_random(
			    &fixture.ring, i % 2 ? "dc1" : "dc2", i % 4 < 2 ? "r1" : "r2", 4);
		plan_fixture_take(&fixture);
		range = (struct ring_range){
		    (int64_t)ring_random(&fixture.ring), (int64_t)ring_random(&fixture.ring)};
		if (range.left > range.right)
			range.right = INT64_MIN;
		if (seed % 7 == 0)
			range.left = INT64_MIN;
		plans = plan_ranges(&fixture, range.left, range.right, levels[seed % 5]);
		count = range_plans_count(&plans);
		at = range.left;
		while ((rc = range_plans_next(&plans, &part, &fixture.err)) == 1) {
			ck_assert_int_eq(part.range.left, at);
			at = part.range.right;
			vnodes += part.vnode_count;
			ck_assert_int_ge((int32_t)part.plan.contact_count, part.plan.block_for);
			for (int p = 0; p < 20; p++) {
				uint64_t size =
				    (uint64_t)part.range.right - (uint64_t)part.range.left;
				int64_t token = (int64_t)((uint64_t)part.range.left + 1 +
				    ring_random(&fixture.ring) % size);
				const struct replica_set *set =
				    replication_replicas(fixture.replication, token);

				for (uint32_t c = 0; c < part.plan.count; c++) {
					bool is_replica = false;

					for (uint32_t n = 0; n < set->count; n++)
						is_replica = is_replica ||
						    set->peers[n] == part.plan.replicas[c].peer;
					ck_assert_msg(
					    is_replica, "seed %llu", (unsigned long long)seed);
				}
			}
		}
		ck_assert_int_eq(rc, 0);
		ck_assert_int_eq(at, range.right);
		ck_assert_uint_eq(vnodes, count);
		plan_fixture_fini(&fixture);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("replica_plan");
	TCase *tcase = tcase_create("replica_plan");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_a_level_that_cannot_be_met_is_refused);
	tcase_add_test(tcase, test_a_write_goes_to_all_replicas);
	tcase_add_test(tcase, test_pending_replicas_raise_what_a_write_waits_for);
	tcase_add_test(tcase, test_a_pending_replica_of_this_data_center_at_local_one);
	tcase_add_test(tcase, test_a_read_asks_as_many_as_it_needs);
	tcase_add_test(tcase, test_each_quorum_reads_a_quorum_of_each);
	tcase_add_test(tcase, test_many_replicas_lie_in_the_arena);
	tcase_add_test(tcase, test_read_repair_writes_to_whom_was_asked);
	tcase_add_test(tcase, test_paxos_needs_a_majority_of_participants);
	tcase_add_test(tcase, test_a_counter_s_leader_is_near);
	tcase_add_test(tcase, test_a_batchlog_lies_on_two_racks);
	tcase_add_test(tcase, test_ranges_are_split_by_the_ring_and_merged);
	tcase_add_test(tcase, test_a_merged_range_keeps_a_replica_to_speculate_with);
	tcase_add_test(tcase, test_parts_cover_a_range_with_right_replicas);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
