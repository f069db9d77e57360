/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos.h"

#include <check.h>
#include <stdlib.h>
#include "base/log.h"
#include "tests/sim/world/ring.h"

enum { NODES = 3, KEY = 1 };

static struct ring *ring;
static struct world *world;

/* A conditional statement that stands still whenever it holds the promise, until go_on(). */
struct statement {
	struct ring_op op; /* first */
	uint32_t ready;
};

static void
begin(void)
{
	struct ring_options options = {
	    .world = {.seed = 5,
		.node_count = NODES,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS},
		.is_encoded = true},
	    .factor = NODES};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
	world = ring_world(ring);
}

static void
statement_ready(struct ring_op *op)
{
	((struct statement *)op)->ready++;
}

static void
cas(struct statement *statement, uint32_t node, int64_t expected, int64_t written, bool stands)
{
	*statement = (struct statement){.op = {.on_ready = stands ? statement_ready : NULL}};
	ring_cas(ring, node, &statement->op, KEY, expected, written, CONSISTENCY_SERIAL,
	    CONSISTENCY_QUORUM);
}

struct wanted {
	const struct statement *statement;
	uint32_t ready;
};

static bool
is_ready(struct world *of, void *context)
{
	const struct wanted *wanted = context;

	(void)of;
	return wanted->statement->ready == wanted->ready;
}

static void
wait_ready(const struct statement *statement, uint32_t ready)
{
	struct wanted wanted = {statement, ready};

	ck_assert(world_run_until(world, is_ready, &wanted, WORLD_MS / 10, 10 * WORLD_S));
}

static void
wait_done(struct statement *statement)
{
	ring_wait(ring, &statement->op);
	ck_assert_msg(
	    statement->op.is_done && !statement->op.has_failed, "%s", statement->op.err.text);
}

static bool
was_overtaken(struct world *of, void *context)
{
	struct paxos_stats stats;

	(void)of;
	paxos_stats(ring_paxos(ring, *(uint32_t *)context), &stats);
	return stats.contentions > 0;
}

/* Until a ballot of the node was overtaken, and no longer. */
static void
wait_overtaken(uint32_t node)
{
	ck_assert(world_run_until(world, was_overtaken, &node, WORLD_MS / 10, 10 * WORLD_S));
}

/*
 * Node 0's value is accepted by node 2 alone, and left behind. While node 0 holds its second promise node 1 finds the
 * value, and finishes it; then node 0 reads its own value, and its condition does not hold.
 */
START_TEST(test_a_statement_that_another_finished_was_applied)
{
	struct statement one, other, third;

	begin();
	cas(&one, 0, 0, 1, true);
	wait_ready(&one, 1);
	world_cut(world, 1, 2);
	cas(&other, 1, 99, 100, true);
	wait_ready(&other, 1);
	ring_cas_go_on(&one.op);
	wait_overtaken(0);
	world_cut(world, 2, 0);
	wait_ready(&one, 2);
	world_heal(world);
	world_cut_both(world, 0, 1);
	cas(&third, 1, 77, 78, false);
	wait_done(&third);
	ck_assert(!third.op.is_applied);
	ck_assert_int_eq(third.op.rows[0].v, 1);
	world_heal(world);
	ring_cas_go_on(&one.op);
	wait_done(&one);
	ck_assert(one.op.is_applied);
	ring_cas_go_on(&other.op);
	wait_ready(&other, 2);
	ring_cas_go_on(&other.op);
	wait_done(&other);
	ck_assert(!other.op.is_applied);
	ring_op_free(&one.op);
	ring_op_free(&other.op);
	ring_op_free(&third.op);
	ring_free(ring);
}
END_TEST

/* Two of three said no: the third, who may be dead, cannot change it, and is not waited for. */
START_TEST(test_a_proposal_that_a_majority_refused_waits_for_nobody)
{
	struct statement one, other;
	uint64_t began;

	begin();
	world_cut_both(world, 0, 2);
	world_cut_both(world, 1, 2);
	began = world_now(world);
	cas(&one, 0, 0, 1, true);
	wait_ready(&one, 1);
	cas(&other, 1, 0, 2, true);
	wait_ready(&other, 1);
	ring_cas_go_on(&one.op);
	wait_overtaken(0);
	ck_assert_uint_lt(world_now(world) - began, 100 * WORLD_MS);
	world_heal(world);
	one.op.on_ready = other.op.on_ready = NULL;
	ring_cas_go_on(&other.op);
	wait_done(&other);
	wait_done(&one);
	ck_assert(other.op.is_applied != one.op.is_applied);
	ring_op_free(&one.op);
	ring_op_free(&other.op);
	ring_free(ring);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("paxos");
	TCase *tcase = tcase_create("rounds");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, test_a_statement_that_another_finished_was_applied);
	tcase_add_test(tcase, test_a_proposal_that_a_majority_refused_waits_for_nobody);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
