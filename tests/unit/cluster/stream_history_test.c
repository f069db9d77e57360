/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of plans of streams: of sessions made by hand, and of a stream between two simulated nodes. */
#include "cluster/stream_session.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cluster/ranks.h"
#include "tests/sim/world/ring.h"

enum { NODES = 2, SESSIONS = 200 };

static struct ring *ring;
static struct world *world;
static struct streams *streams; /* of node 0 */
static struct stream_session sessions[SESSIONS];

static void
setup(void)
{
	struct ring_options options = {
	    .world = {.seed = 5,
		.node_count = NODES,
		.is_encoded = true,
		.faults = {.delay_min_ns = WORLD_MS, .delay_max_ns = 2 * WORLD_MS}},
	    .factor = 1};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
	world = ring_world(ring);
	streams = ring_streams(ring, 0);
	memset(sessions, 0, sizeof(sessions));
}

static void
teardown(void)
{
	ring_free(ring);
}

/* ---- Sessions by hand ------------------------------------------------------------------------ */

static struct stream_session *
session_begin(uint32_t index, uint8_t plan, bool is_follower, uint32_t peer)
{
	struct stream_session *session = &sessions[index];

	*session = (struct stream_session){.streams = streams,
	    .peer = ring_peer(ring, 0, peer),
	    .is_follower = is_follower,
	    .plan_id = {{plan, 'p'}},
	    .operation = STREAM_REBUILD};
	lock_init(&session->lock, "stream session", RANK_STREAM_SESSION);
	streams_add(streams, session);
	stream_history_begin(session);
	return session;
}

static void
session_count(struct stream_session *session, uint64_t received, uint64_t sent)
{
	session->receiving.flow = (struct stream_flow){
	    .files = 3, .bytes = 1000, .files_done = received / 500, .bytes_done = received};
	session->sending.flow = (struct stream_flow){
	    .files = 5, .bytes = 2000, .files_done = sent / 400, .bytes_done = sent};
}

static void
session_end(struct stream_session *session, const char *why)
{
	struct error err;

	if (why != NULL)
		error_set(&err, ERROR_IO, "%s", why);
	stream_history_end(session, why == NULL ? NULL : &err);
	streams_remove(streams, session);
	lock_fini(&session->lock);
}

/* What is told: copies, with the list's order. */
struct told {
	struct stream_plan_info at[SESSIONS];
	char failures[SESSIONS][32];
	uint32_t count;
};

static void
told_add(void *context, const struct stream_plan_info *info)
{
	struct told *told = context;

	ck_assert_uint_lt(told->count, SESSIONS);
	if (info->failure != NULL)
		snprintf(
		    told->failures[told->count], sizeof(told->failures[0]), "%s", info->failure);
	told->at[told->count++] = *info;
}

static const struct told *
tell(struct streams *of)
{
	static struct told told;

	memset(&told, 0, sizeof(told));
	streams_each_plan(of, told_add, &told);
	return &told;
}

static int64_t
now_ms(uint32_t node)
{
	return (int64_t)(env_wall_us(world_node(world, node)->env) / 1000);
}

START_TEST(test_a_plan_has_its_times)
{
	struct stream_session *session = session_begin(0, 1, false, 1);
	const struct stream_plan_info *info = &tell(streams)->at[0];
	int64_t began = now_ms(0), started;

	ck_assert_uint_eq(tell(streams)->count, 1);
	ck_assert(uuid_equal(&info->plan_id, &session->plan_id));
	ck_assert_int_eq(info->operation, STREAM_REBUILD);
	ck_assert(!info->is_follower);
	ck_assert_uint_eq(info->peer_count, 1);
	ck_assert_ptr_eq(info->peers[0], session->peer);
	ck_assert_int_eq(info->init_ms, began);
	ck_assert_int_eq(info->start_ms, 0);
	ck_assert_int_eq(info->end_ms, 0);
	world_run(world, WORLD_S);
	started = now_ms(0);
	stream_history_start(session);
	world_run(world, WORLD_S);
	stream_history_start(session); /* only the first one counts */
	session_end(session, NULL);
	tell(streams);
	ck_assert_int_eq(info->init_ms, began);
	ck_assert_int_eq(info->start_ms, started);
	ck_assert_int_eq(info->end_ms, now_ms(0));
	ck_assert_ptr_null(info->failure);
}
END_TEST

START_TEST(test_a_plan_ends_with_the_last_of_its_sessions)
{
	struct stream_session *first = session_begin(0, 1, false, 0);
	struct stream_session *second = session_begin(1, 1, false, 1);
	struct stream_session *third = session_begin(2, 1, false, 1);
	const struct stream_plan_info *info = &tell(streams)->at[0];

	ck_assert_uint_eq(tell(streams)->count, 1);
	ck_assert_uint_eq(info->peer_count, 2);
	session_end(second, NULL);
	session_end(first, NULL);
	tell(streams);
	ck_assert_int_eq(info->end_ms, 0);
	session_end(third, NULL);
	tell(streams);
	ck_assert_int_ne(info->end_ms, 0);
	/* The other side of a repair begins one session after the other in the same plan. */
	session_begin(3, 1, false, 1);
	tell(streams);
	ck_assert_int_eq(info->end_ms, 0);
	session_end(&sessions[3], NULL);
	ck_assert_uint_eq(tell(streams)->count, 1);
	ck_assert_int_ne(info->end_ms, 0);
}
END_TEST

START_TEST(test_sums_are_of_sessions_that_run_and_that_are_gone)
{
	struct stream_session *first = session_begin(0, 1, false, 0);
	struct stream_session *second = session_begin(1, 1, false, 1);
	struct stream_session *other = session_begin(2, 2, false, 1);
	const struct stream_sums *sums = &tell(streams)->at[1].sums;

	session_count(first, 1000, 800);
	session_count(second, 500, 400);
	session_count(other, 1, 1);
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			session_end(first, NULL);
		if (i == 2)
			session_end(second, "broken");
		ck_assert_uint_eq(tell(streams)->count, 2);
		ck_assert_uint_eq(sums->bytes_to_receive, 2000);
		ck_assert_uint_eq(sums->bytes_received, 1500);
		ck_assert_uint_eq(sums->files_to_receive, 6);
		ck_assert_uint_eq(sums->files_received, 3);
		ck_assert_uint_eq(sums->bytes_to_send, 4000);
		ck_assert_uint_eq(sums->bytes_sent, 1200);
		ck_assert_uint_eq(sums->files_to_send, 10);
		ck_assert_uint_eq(sums->files_sent, 3);
	}
	session_end(other, NULL);
}
END_TEST

START_TEST(test_the_first_failure_is_told)
{
	session_begin(0, 1, false, 0);
	session_begin(1, 1, false, 1);
	session_begin(2, 1, false, 1);
	session_end(&sessions[0], "the first");
	session_end(&sessions[1], "the second");
	session_end(&sessions[2], NULL);
	ck_assert_str_eq(tell(streams)->failures[0], "the first");
}
END_TEST

START_TEST(test_both_sides_of_a_plan_are_told_apart)
{
	struct stream_session *own = session_begin(0, 1, false, 0);
	struct stream_session *follower = session_begin(1, 1, true, 0);
	const struct told *told = tell(streams);

	session_count(own, 500, 0);
	session_end(follower, "broken");
	told = tell(streams);
	ck_assert_uint_eq(told->count, 2);
	ck_assert(told->at[0].is_follower && !told->at[1].is_follower);
	ck_assert_int_ne(told->at[0].end_ms, 0);
	ck_assert_int_eq(told->at[1].end_ms, 0);
	ck_assert_ptr_null(told->at[1].failure);
	ck_assert_uint_eq(told->at[0].sums.bytes_received, 0);
	ck_assert_uint_eq(told->at[1].sums.bytes_received, 500);
	session_end(own, NULL);
}
END_TEST

START_TEST(test_a_session_of_a_new_connection_is_the_old_one)
{
	struct stream_session *old = session_begin(0, 1, true, 1);
	struct stream_session *next = &sessions[1];

	session_count(old, 500, 400);
	*next = (struct stream_session){.streams = streams,
	    .peer = old->peer,
	    .is_follower = true,
	    .plan_id = old->plan_id,
	    .operation = STREAM_REBUILD};
	lock_init(&next->lock, "stream session", RANK_STREAM_SESSION);
	streams_add(streams, next);
	next->receiving = old->receiving;
	next->sending = old->sending;
	old->receiving = old->sending = (struct stream_count){.capacity = 0};
	stream_history_move(next, old);
	/* The old one goes, and nothing has ended with it. */
	session_end(old, "its connection broke");
	ck_assert_uint_eq(tell(streams)->count, 1);
	ck_assert_int_eq(tell(streams)->at[0].end_ms, 0);
	ck_assert_ptr_null(tell(streams)->at[0].failure);
	ck_assert_uint_eq(tell(streams)->at[0].sums.bytes_received, 500);
	session_end(next, NULL);
	ck_assert_int_ne(tell(streams)->at[0].end_ms, 0);
	ck_assert_uint_eq(tell(streams)->at[0].sums.bytes_received, 500);
}
END_TEST

START_TEST(test_plans_under_way_and_the_last_hundred_that_ended_are_kept)
{
	const struct told *told;

	for (uint8_t i = 0; i < 180; i++)
		session_begin(i, i, false, 1);
	/* The first ten go on. */
	for (uint8_t i = 10; i < 180; i++)
		session_end(&sessions[i], NULL);
	told = tell(streams);
	ck_assert_uint_eq(told->count, 110);
	for (uint8_t i = 0; i < 110; i++)
		ck_assert_uint_eq(told->at[i].plan_id.bytes[0], i < 100 ? 179 - i : 109 - i);
	for (uint8_t i = 0; i < 10; i++)
		session_end(&sessions[i], NULL);
	ck_assert_uint_eq(tell(streams)->count, 100);
}
END_TEST

/* ---- A stream ---------------------------------------------------------------------------------- */

struct waiter {
	struct stream_wait wait; /* first */
	bool is_done;
};

static void
waiter_done(struct stream_wait *wait, const struct error *err)
{
	ck_assert_msg(err == NULL, "%s", err == NULL ? "" : err->text);
	((struct waiter *)wait)->is_done = true;
}

START_TEST(test_both_ends_tell_the_same_of_a_stream)
{
	struct stream_job *job = stream_job_new(streams, STREAM_BOOTSTRAP, NULL);
	struct waiter waiter = {.wait = {.on_done = waiter_done}};
	struct stream_plan_info ends[NODES];
	struct ring_range *ranges;
	uint32_t count;

	for (int32_t key = 0; key < 100; key++) {
		struct ring_row row = {key, 1, key};
		struct ring_op op = {.on_done = NULL};

		ring_put(ring, 0, &op, &row, 1, 1, CONSISTENCY_ONE, WRITE_SIMPLE);
		ring_wait(ring, &op);
		ck_assert(op.is_done && !op.has_failed);
		ring_op_free(&op);
	}
	count = ring_ranges(ring, 1, &ranges);
	stream_job_request(job, ring_peer(ring, 0, 1), "ks", NULL, 0, ranges, count);
	free(ranges);
	stream_job_start(job, &waiter.wait);
	world_run(world, 10 * WORLD_S);
	ck_assert(waiter.is_done);
	for (uint32_t i = 0; i < NODES; i++) {
		const struct told *told = tell(ring_streams(ring, i));

		ck_assert_uint_eq(told->count, 1);
		ends[i] = told->at[0];
		ck_assert_int_eq(ends[i].operation, STREAM_BOOTSTRAP);
		ck_assert_int_eq(ends[i].is_follower, i == 1);
		ck_assert_uint_eq(ends[i].peer_count, 1);
		ck_assert_ptr_null(ends[i].failure);
		ck_assert_int_gt(ends[i].init_ms, 0);
		ck_assert_int_ge(ends[i].start_ms, ends[i].init_ms);
		ck_assert_int_ge(ends[i].end_ms, ends[i].start_ms);
	}
	ck_assert(uuid_equal(&ends[0].plan_id, &ends[1].plan_id));
	ck_assert_ptr_eq(ends[0].peers[0], ring_peer(ring, 0, 1));
	ck_assert_ptr_eq(ends[1].peers[0], ring_peer(ring, 1, 0));
	ck_assert_uint_gt(ends[0].sums.files_received, 0);
	ck_assert_uint_eq(ends[0].sums.files_received, ends[0].sums.files_to_receive);
	ck_assert_uint_eq(ends[0].sums.bytes_received, ends[0].sums.bytes_to_receive);
	ck_assert_uint_eq(ends[1].sums.files_sent, ends[0].sums.files_received);
	ck_assert_uint_eq(ends[1].sums.bytes_sent, ends[1].sums.bytes_to_send);
	ck_assert_uint_eq(ends[1].sums.bytes_sent, ends[0].sums.bytes_received);
	ck_assert_uint_eq(ends[1].sums.bytes_to_receive, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stream_history");
	TCase *tcase = tcase_create("stream_history");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_plan_has_its_times);
	tcase_add_test(tcase, test_a_plan_ends_with_the_last_of_its_sessions);
	tcase_add_test(tcase, test_sums_are_of_sessions_that_run_and_that_are_gone);
	tcase_add_test(tcase, test_the_first_failure_is_told);
	tcase_add_test(tcase, test_both_sides_of_a_plan_are_told_apart);
	tcase_add_test(tcase, test_a_session_of_a_new_connection_is_the_old_one);
	tcase_add_test(tcase, test_plans_under_way_and_the_last_hundred_that_ended_are_kept);
	tcase_add_test(tcase, test_both_ends_tell_the_same_of_a_stream);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
