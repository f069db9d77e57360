/* SPDX-License-Identifier: Apache-2.0 */
/* What moves when a ring changes, against the naive model of the strategies: token by token, on rings by seed. */
#include "cluster/range_streamer.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cluster/stream_session.h"
#include "ring_fixture.h"

enum { SEEDS = 30, PROBES = 200 };

static struct env *test_env;
static struct cluster_env test_cluster;
static struct streams test_streams;

static void
test_setup(void)
{
	test_env = env_posix_new();
	test_cluster.env = test_env;
	test_streams.env = &test_cluster;
}

static void
test_teardown(void)
{
	env_free(test_env);
}

static bool
wish_has(const struct stream_wish *wish, int64_t token)
{
	for (uint32_t i = 0; i < wish->range_count; i++) {
		const struct ring_range *range = &wish->ranges[i];

		if (range->left < range->right ? token > range->left && token <= range->right
					       : token > range->left || token <= range->right)
			return true;
	}
	return false;
}

/* Who is asked for the token (or, of transfers, gets it); *count of them. */
static struct peer *
job_peer(const struct stream_job *job, int64_t token, bool is_transfer, uint32_t *count)
{
	struct peer *found = NULL;

	*count = 0;
	for (uint32_t i = 0; i < job->session_count; i++) {
		const struct stream_session *session = job->sessions[i];
		const struct stream_wish *wishes =
		    is_transfer ? session->transfers : session->requests;
		uint32_t wish_count =
		    is_transfer ? session->transfer_count : session->request_count;

		for (uint32_t w = 0; w < wish_count; w++) {
			if (!wish_has(&wishes[w], token))
				continue;
			found = session->peer;
			++*count;
		}
	}
	return found;
}

static bool
job_gives(const struct stream_job *job, const struct peer *peer, int64_t token)
{
	for (uint32_t i = 0; i < job->session_count; i++)
		for (uint32_t w = 0; w < job->sessions[i]->transfer_count; w++)
			if (job->sessions[i]->peer == peer &&
			    wish_has(&job->sessions[i]->transfers[w], token))
				return true;
	return false;
}

static bool
has_member(const uint32_t *list, uint32_t count, uint32_t member)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == member)
			return true;
	return false;
}

/* Before and after, with what moves between. */
struct change {
	struct ring_fixture ring;
	struct keyspace_metadata *keyspace;
	struct topology_holder *after_holder;
	const struct topology *before, *after;
	struct stream_job *job;
	struct model_token now[RING_NODES_MAX * RING_TOKENS_MAX],
	    then[RING_NODES_MAX * RING_TOKENS_MAX];
	uint32_t now_count, then_count;
	struct model_factor factor;
};

static void
change_init(struct change *change, uint64_t seed, enum member_state state)
{
	struct member *self;
	char factor[8];
	uint32_t nodes;

	memset(change, 0, sizeof(*change));
	ring_fixture_init(&change->ring, seed);
	change->factor.factor = 1 + ring_chance(&change->ring, 3);
	nodes = change->factor.factor + 1 + ring_chance(&change->ring, 5);
	for (uint32_t i = 0; i <= nodes; i++)
		ring_add_random(&change->ring, "dc1", "r1", 1 + ring_chance(&change->ring, 8));
	self = &change->ring.members[0];
	self->state = state;
	if (state == MEMBER_MOVING) {
		int64_t next = (int64_t)ring_random(&change->ring);

		ring_set_next_tokens(&change->ring, self, &next, 1);
	}
	for (uint32_t i = 1; i <= nodes; i++)
		atomic_store(&change->ring.members[i].peer->is_alive, true);
	ring_publish(&change->ring);
	snprintf(factor, sizeof(factor), "%u", change->factor.factor);
	change->keyspace =
	    ring_keyspace("SimpleStrategy", "replication_factor", factor, (char *)NULL);
	change->before = topology_acquire(change->ring.holder);
	change->after_holder = ring_after(change->before, change->ring.peers, self->peer);
	change->after = topology_acquire(change->after_holder);
	change->job = stream_job_new(&test_streams, STREAM_OTHER, NULL);
	change->now_count = model_ring(&change->ring, NULL, false, change->now);
	if (state == MEMBER_MOVING) {
		self->state = MEMBER_NORMAL;
		ring_set_tokens(&change->ring, self, self->next_tokens, 1);
	}
	change->then_count = model_ring(&change->ring, state == MEMBER_JOINING ? self : NULL,
	    state == MEMBER_LEAVING, change->then);
}

static void
change_fini(struct change *change)
{
	stream_job_free(change->job);
	topology_release(change->after_holder, change->after);
	topology_holder_free(change->after_holder);
	topology_release(change->ring.holder, change->before);
	keyspace_unref(change->keyspace);
	ring_fixture_fini(&change->ring);
}

static int
change_fetch(struct change *change, bool is_strict, struct error *err)
{
	struct range_fetch fetch = {.before = change->before,
	    .after = change->after,
	    .peers = change->ring.peers,
	    .is_strict = is_strict};

	return range_streamer_fetch(change->job, &fetch, change->keyspace, err);
}

struct probe {
	int64_t token;
	uint32_t now[RING_NODES_MAX], then[RING_NODES_MAX];
	uint32_t now_count, then_count;
};

static void
change_probe(struct change *change, struct probe *probe)
{
	probe->token = (int64_t)ring_random(&change->ring);
	probe->now_count = model_replicas(&change->ring, change->now, change->now_count,
	    &change->factor, 1, probe->token, probe->now);
	probe->then_count = model_replicas(&change->ring, change->then, change->then_count,
	    &change->factor, 1, probe->token, probe->then);
}

static void
check_fetched(struct change *change, const struct probe *probe, bool is_strict)
{
	bool gets = has_member(probe->then, probe->then_count, 0) &&
	    !has_member(probe->now, probe->now_count, 0);
	uint32_t count, source = RING_NODES_MAX;
	struct peer *peer = job_peer(change->job, probe->token, false, &count);

	ck_assert_uint_eq(count, gets);
	if (!gets)
		return;
	for (uint32_t i = 0; i < probe->now_count; i++)
		if (change->ring.members[probe->now[i]].peer == peer)
			source = probe->now[i];
	ck_assert_uint_ne(source, RING_NODES_MAX);
	/* The one who loses it. */
	if (is_strict)
		ck_assert(!has_member(probe->then, probe->then_count, source));
}

static void
check_given(struct change *change, const struct probe *probe)
{
	for (uint32_t i = 1; i < change->ring.count; i++) {
		bool gets = has_member(probe->now, probe->now_count, 0) &&
		    has_member(probe->then, probe->then_count, i) &&
		    !has_member(probe->now, probe->now_count, i);

		ck_assert_int_eq(
		    job_gives(change->job, change->ring.members[i].peer, probe->token), gets);
	}
}

START_TEST(test_a_new_node_fetches_what_becomes_its_own)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct change change;
		struct probe probe;
		struct error err;

		change_init(&change, seed, MEMBER_JOINING);
		ck_assert_int_eq(change_fetch(&change, seed % 2 == 0, &err), 0);
		for (uint32_t i = 0; i < PROBES; i++) {
			change_probe(&change, &probe);
			check_fetched(&change, &probe, seed % 2 == 0);
		}
		change_fini(&change);
	}
}
END_TEST

START_TEST(test_who_leaves_gives_to_those_who_follow)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct change change;
		struct probe probe;

		change_init(&change, seed, MEMBER_LEAVING);
		range_streamer_give(
		    change.job, change.before, change.after, change.keyspace, NULL, NULL);
		for (uint32_t i = 0; i < PROBES; i++) {
			change_probe(&change, &probe);
			check_given(&change, &probe);
		}
		change_fini(&change);
	}
}
END_TEST

/* What went to the peer of the least index before, where it ends below zero. */
static bool
half_moved(void *context, const struct keyspace_metadata *keyspace, const struct peer *to,
    struct ring_range range)
{
	const struct change *change = context;

	ck_assert_ptr_eq(keyspace, change->keyspace);
	return range.right < 0 && (to == NULL || to == change->ring.members[1].peer);
}

START_TEST(test_what_has_moved_does_not_move_again)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct change change;
		struct probe probe;

		change_init(&change, seed, MEMBER_LEAVING);
		range_streamer_give(
		    change.job, change.before, change.after, change.keyspace, half_moved, &change);
		for (uint32_t i = 0; i < change.job->session_count; i++)
			for (uint32_t w = 0; w < change.job->sessions[i]->transfer_count; w++)
				for (uint32_t r = 0;
				     r < change.job->sessions[i]->transfers[w].range_count; r++)
					ck_assert(change.job->sessions[i]->peer !=
						change.ring.members[1].peer ||
					    change.job->sessions[i]->transfers[w].ranges[r].right >=
						0);
		/* What is far from a range's end has not been left out with it. */
		for (uint32_t i = 0; i < PROBES; i++) {
			change_probe(&change, &probe);
			for (uint32_t m = 2; m < change.ring.count; m++)
				ck_assert_int_eq(
				    job_gives(change.job, change.ring.members[m].peer, probe.token),
				    has_member(probe.now, probe.now_count, 0) &&
					has_member(probe.then, probe.then_count, m) &&
					!has_member(probe.now, probe.now_count, m));
		}
		change_fini(&change);
	}
}
END_TEST

START_TEST(test_a_joining_node_that_goes_on_fetches_the_rest)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct change change;
		struct range_fetch fetch;
		uint32_t wanted = 0, left = 0;
		struct error err;

		change_init(&change, seed, MEMBER_JOINING);
		fetch = (struct range_fetch){.before = change.before,
		    .after = change.after,
		    .peers = change.ring.peers,
		    .has_moved = half_moved,
		    .context = &change};
		ck_assert_int_eq(
		    range_streamer_fetch(change.job, &fetch, change.keyspace, &err), 0);
		for (uint32_t i = 0; i < change.job->session_count; i++)
			for (uint32_t w = 0; w < change.job->sessions[i]->request_count; w++)
				for (uint32_t r = 0;
				     r < change.job->sessions[i]->requests[w].range_count; r++)
					ck_assert_int_ge(
					    change.job->sessions[i]->requests[w].ranges[r].right,
					    0);
		for (uint32_t i = 0; i < PROBES; i++) {
			struct probe probe;
			uint32_t count;

			change_probe(&change, &probe);
			wanted += has_member(probe.then, probe.then_count, 0) &&
			    !has_member(probe.now, probe.now_count, 0);
			(void)job_peer(change.job, probe.token, false, &count);
			left += count;
		}
		ck_assert_uint_le(left, wanted);
		change_fini(&change);
	}
}
END_TEST

START_TEST(test_who_moves_does_both)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct change change;
		struct probe probe;
		struct error err;

		change_init(&change, seed, MEMBER_MOVING);
		ck_assert_int_eq(change_fetch(&change, true, &err), 0);
		range_streamer_give(
		    change.job, change.before, change.after, change.keyspace, NULL, NULL);
		for (uint32_t i = 0; i < PROBES; i++) {
			change_probe(&change, &probe);
			check_fetched(&change, &probe, true);
			check_given(&change, &probe);
		}
		change_fini(&change);
	}
}
END_TEST

START_TEST(test_data_that_nobody_alive_has_cannot_be_fetched)
{
	static struct change change;
	struct error err;

	change_init(&change, 4, MEMBER_JOINING);
	for (uint32_t i = 1; i < change.ring.count; i++)
		atomic_store(&change.ring.members[i].peer->is_alive, false);
	ck_assert_int_eq(change_fetch(&change, true, &err), -1);
	ck_assert_int_eq(err.code, ERROR_UNAVAILABLE);
	ck_assert_ptr_nonnull(
	    strstr(err.text, "A node required to move the data consistently is down ("));
	change_fini(&change);

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		change_init(&change, seed, MEMBER_JOINING);
		for (uint32_t i = 1; i < change.ring.count; i++)
			atomic_store(&change.ring.members[i].peer->is_alive, false);
		/* With one replica what is lost is lost. */
		if (change.factor.factor == 1) {
			ck_assert_int_eq(change_fetch(&change, false, &err), 0);
			ck_assert(stream_job_is_empty(change.job));
		} else {
			ck_assert_int_eq(change_fetch(&change, false, &err), -1);
			ck_assert_ptr_nonnull(strstr(
			    err.text, "Unable to find sufficient sources for streaming range ("));
		}
		change_fini(&change);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("range_streamer");
	TCase *tests = tcase_create("ranges");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, test_setup, test_teardown);
	tcase_add_test(tests, test_a_new_node_fetches_what_becomes_its_own);
	tcase_add_test(tests, test_who_leaves_gives_to_those_who_follow);
	tcase_add_test(tests, test_what_has_moved_does_not_move_again);
	tcase_add_test(tests, test_a_joining_node_that_goes_on_fetches_the_rest);
	tcase_add_test(tests, test_who_moves_does_both);
	tcase_add_test(tests, test_data_that_nobody_alive_has_cannot_be_fetched);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
