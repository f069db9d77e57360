/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of a few nodes in a simulated world (tests/sim/world). */
#include "cluster/gossip.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include "base/log.h"
#include "tests/sim/world/gossiper.h"

static struct gossipers *all;
static struct world *world;
static uint32_t node_count;

static void
make(uint32_t count, uint32_t seeds, void (*tune)(struct gossip_options *options, uint32_t index))
{
	struct gossipers_options options = {
	    .world =
		{
		    .seed = 7,
		    .node_count = count,
		    .faults = {.delay_min_ns = 200 * WORLD_US, .delay_max_ns = 2 * WORLD_MS},
		    .is_encoded = true,
		},
	    .seed_count = seeds,
	    .tune = tune,
	};

	log_set_level("ROOT", LOG_OFF);
	all = gossipers_new(&options);
	world = gossipers_world(all);
	node_count = count;
}

static void
teardown(void)
{
	gossipers_free(all);
	all = NULL;
}

static bool
agree_within(uint64_t ns)
{
	if (world_run_until(world, gossipers_agree, all, 10 * WORLD_MS, ns))
		return true;
	gossipers_explain(all, stdout);
	return false;
}

/* All of them, and long enough for a usual window of intervals. */
static void
make_ring(
    uint32_t count, uint32_t seeds, void (*tune)(struct gossip_options *options, uint32_t index))
{
	make(count, seeds, tune);
	for (uint32_t i = 0; i < count; i++)
		world_start(world, i);
	ck_assert(agree_within(5 * WORLD_S));
	world_run(world, 30 * WORLD_S);
}

static struct gossip *
gossip_of(uint32_t index)
{
	return gossiper(all, index)->gossip;
}

/* As node a knows it. */
static const char *
value_of(uint32_t a, uint32_t b, enum application_state state)
{
	static char text[256];
	struct buffer out;

	buffer_init(&out);
	if (!gossip_copy_value(gossip_of(a), gossiper_peer(all, a, b), state, &out))
		buffer_put_string(&out, "(none)");
	ck_assert_uint_lt(out.size, sizeof(text));
	memcpy(text, out.data, out.size);
	text[out.size] = '\0';
	buffer_fini(&out);
	return text;
}

static void
set_value(uint32_t index, enum application_state state, const char *value)
{
	struct gossip_change change = {state, slice_of_string(value)};

	gossip_set(gossip_of(index), &change, 1);
}

static struct gossip_stats
stats_of(uint32_t index)
{
	struct gossip_stats stats;

	gossip_stats(gossip_of(index), &stats);
	return stats;
}

/* A wait whose outcome is kept. */
struct outcome {
	struct gossip_wait wait; /* first */
	bool is_over, has_failed;
	char text[ERROR_TEXT_MAX];
};

static void
outcome_done(struct gossip_wait *wait, const struct error *err)
{
	struct outcome *outcome = (struct outcome *)wait;

	ck_assert(!outcome->is_over);
	outcome->is_over = true;
	outcome->has_failed = err != NULL;
	if (err != NULL)
		snprintf(outcome->text, sizeof(outcome->text), "%s", err->text);
}

/* ---- Coming in ---- */

START_TEST(test_a_lone_seed_is_there_at_once)
{
	make(1, 1, NULL);
	world_start(world, 0);
	world_run(world, 100 * WORLD_MS);
	ck_assert(gossiper(all, 0)->has_settled);
	ck_assert_uint_eq(gossip_live_count(gossip_of(0)), 0);
}
END_TEST

START_TEST(test_seeds_that_start_together_do_not_wait_for_each_other)
{
	make(3, 3, NULL);
	for (uint32_t i = 0; i < 3; i++)
		world_start(world, i);
	ck_assert(agree_within(WORLD_S));
	world_run(world, WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(gossiper(all, i)->has_settled);
}
END_TEST

START_TEST(test_a_node_that_finds_no_seed_gives_up_after_the_ring_delay)
{
	make(2, 1, NULL);
	world_start(world, 1);
	world_run(world, 29 * WORLD_S);
	ck_assert(!gossiper(all, 1)->has_failed);
	world_run(world, 3 * WORLD_S);
	ck_assert(gossiper(all, 1)->has_failed);
	ck_assert(!gossiper(all, 1)->has_joined);
}
END_TEST

START_TEST(test_a_seed_goes_on_when_no_other_answers)
{
	make(2, 2, NULL);
	world_start(world, 1);
	world_run(world, 3 * WORLD_S);
	ck_assert(gossiper(all, 1)->has_joined);
	/* The other one is a seed that stays silent: as slow as Cassandra. */
	ck_assert(!gossiper(all, 1)->has_settled);
	world_run(world, 8 * WORLD_S);
	ck_assert(gossiper(all, 1)->has_settled);
}
END_TEST

START_TEST(test_without_seeds_there_is_an_error)
{
	make(1, 0, NULL);
	world_start(world, 0);
	world_run(world, 100 * WORLD_MS);
	ck_assert(gossiper(all, 0)->has_failed);
}
END_TEST

START_TEST(test_the_shadow_round_shows_the_ring)
{
	make_ring(3, 1, NULL);
	world_crash(world, 2, WORLD_KILL);
	world_start(world, 2);
	world_run(world, 300 * WORLD_MS);
	ck_assert(gossiper(all, 2)->has_joined);
	ck_assert_str_eq(gossiper(all, 2)->shadow_rack, "rack1");
	ck_assert_int_eq(gossiper(all, 2)->shadow_known, 3);
	/* The life before this one was known: the new one is later. */
	ck_assert(agree_within(3 * WORLD_S));
}
END_TEST

static void
tune_other_name(struct gossip_options *options, uint32_t index)
{
	if (index == 1)
		options->cluster_name = "Another";
	if (index == 2)
		options->partitioner = "org.apache.cassandra.dht.RandomPartitioner";
}

START_TEST(test_another_cluster_or_partitioner_is_not_answered)
{
	make(3, 1, tune_other_name);
	for (uint32_t i = 0; i < 3; i++)
		world_start(world, i);
	world_run(world, 40 * WORLD_S);
	ck_assert(gossiper(all, 1)->has_failed);
	ck_assert(gossiper(all, 2)->has_failed);
	ck_assert_uint_gt(stats_of(0).refused_names, 2);
	ck_assert_uint_eq(gossip_unreachable_count(gossip_of(0)), 0);
}
END_TEST

START_TEST(test_a_ring_of_thirty_hears_of_a_new_schema_within_a_second)
{
	make_ring(30, 2, NULL);
	set_value(17, STATE_SCHEMA, "11111111-f598-3971-986b-2926e09e239d");
	world_run(world, 900 * WORLD_MS);
	for (uint32_t i = 0; i < 30; i++)
		ck_assert_str_eq(
		    value_of(i, 17, STATE_SCHEMA), "11111111-f598-3971-986b-2926e09e239d");
}
END_TEST

static void
tune_small_messages(struct gossip_options *options, uint32_t index)
{
	(void)index;
	options->message_size_max = 700;
}

START_TEST(test_states_that_do_not_fit_one_message_come_in_several)
{
	make(40, 1, tune_small_messages);
	for (uint32_t i = 0; i < 40; i++)
		world_start(world, i);
	ck_assert(agree_within(20 * WORLD_S));
	ck_assert(gossipers_have_same_values(all, stdout));
}
END_TEST

/* ---- Own states ---- */

struct pair_watch {
	struct gossip_subscriber subscriber; /* first */
	uint32_t seen, torn;
};

static void
watch_change(struct gossip_subscriber *subscriber, struct peer *peer, uint32_t changed)
{
	struct pair_watch *watch = (struct pair_watch *)subscriber;
	uint32_t both = application_state_bit(STATE_DC) | application_state_bit(STATE_RACK);

	if (peer->is_local || (changed & both) == 0)
		return;
	watch->seen++;
	watch->torn += (changed & both) != both;
}

START_TEST(test_states_that_are_set_together_are_seen_together)
{
	struct pair_watch watch = {.subscriber.on_change = watch_change};

	make_ring(5, 1, NULL);
	gossip_subscribe(gossip_of(3), &watch.subscriber);
	for (int i = 0; i < 20; i++) {
		char text[16];
		struct gossip_change changes[] = {{STATE_DC, {0}}, {STATE_RACK, {0}}};

		snprintf(text, sizeof(text), "v%d", i);
		changes[0].value = changes[1].value = slice_of_string(text);
		gossip_set(gossip_of(1), changes, 2);
		world_run(world, 130 * WORLD_MS);
	}
	world_run(world, 2 * WORLD_S);
	ck_assert_str_eq(value_of(3, 1, STATE_DC), "v19");
	ck_assert_uint_gt(watch.seen, 5);
	ck_assert_uint_eq(watch.torn, 0);
}
END_TEST

START_TEST(test_gossipinfo_reads_as_cassandras)
{
	char expected[600];
	struct buffer out;
	int32_t generation, heartbeat;

	make(1, 1, NULL);
	world_start(world, 0);
	world_run(world, 3 * WORLD_S);
	buffer_init(&out);
	gossip_info(gossip_of(0), false, &out);
	buffer_put_u8(&out, 0);
	ck_assert(gossip_knows(
	    gossip_of(0), peers_local(world_node(world, 0)->peers), &generation, &heartbeat));
	snprintf(expected, sizeof(expected),
	    "/10.0.0.0\n  generation:%" PRId32 "\n  heartbeat:%" PRId32
	    "\n  STATUS:8:NORMAL,0\n  SCHEMA:4:2207c2a9-f598-3971-986b-2926e09e239d\n"
	    "  DC:2:dc1\n  RACK:3:rack1\n"
	    "  HOST_ID:1:01020304-0506-4007-8000-000000000000\n  RPC_READY:5:true\n"
	    "  STATUS_WITH_PORT:7:NORMAL,0\n  TOKENS:6:<hidden>\n",
	    generation, heartbeat);
	ck_assert_str_eq((char *)out.data, expected);
	buffer_clear(&out);
	gossip_info(gossip_of(0), true, &out);
	buffer_put_u8(&out, 0);
	ck_assert_ptr_nonnull(strstr((char *)out.data, "/10.0.0.0:7000\n"));
	buffer_fini(&out);
}
END_TEST

static void
put_key(void *context, const struct endpoint *endpoint)
{
	char text[ENDPOINT_TEXT_SIZE];

	buffer_printf(context, "%s\n", endpoint_format(endpoint, text));
}

static void
put_number(void *context, const char *column, int32_t value)
{
	/* What differs from run to run of time is not compared. */
	buffer_printf(context, "%s=%" PRId32 "\n", column,
	    strcmp(column, "generation") == 0 || strcmp(column, "heartbeat") == 0 ? value > 0
										  : value);
}

static void
put_text(void *context, const char *column, struct slice value)
{
	buffer_printf(context, "%s=%.*s\n", column, (int)value.size, (const char *)value.data);
}

static void
put_row(void *context, const struct gossip_row *row)
{
	const struct gossip_columns to = {put_key, put_number, put_text, context};

	ck_assert(row->is_alive && row->is_local);
	gossip_row_columns(row, &to);
}

START_TEST(test_gossip_info_has_the_columns_of_cassandras_table)
{
	struct buffer out;

	make(1, 1, NULL);
	world_start(world, 0);
	world_run(world, 3 * WORLD_S);
	buffer_init(&out);
	gossip_each(gossip_of(0), put_row, &out);
	buffer_put_u8(&out, 0);
	ck_assert_str_eq((char *)out.data,
	    "10.0.0.0:7000\nhostname=10.0.0.0\ngeneration=1\nheartbeat=1\n"
	    "status=NORMAL,0\nstatus_version=8\n"
	    "schema=2207c2a9-f598-3971-986b-2926e09e239d\nschema_version=4\n"
	    "dc=dc1\ndc_version=2\nrack=rack1\nrack_version=3\n"
	    "host_id=01020304-0506-4007-8000-000000000000\nhost_id_version=1\n"
	    "tokens_version=6\nrpc_ready=true\nrpc_ready_version=5\n"
	    "status_with_port=NORMAL,0\nstatus_with_port_version=7\n");
	buffer_fini(&out);
}
END_TEST

/* ---- Lives ---- */

START_TEST(test_generations_rise)
{
	ck_assert_int_eq(gossip_next_generation(0, INT64_C(1767225600000000)), 1767225600);
	ck_assert_int_eq(gossip_next_generation(1767225599, INT64_C(1767225600000000)), 1767225600);
	ck_assert_int_eq(gossip_next_generation(1767225600, INT64_C(1767225600000000)), 1767225601);
	ck_assert_int_eq(gossip_next_generation(1767229999, INT64_C(1767225600000000)), 1767230000);
}
END_TEST

static bool
has_settled(struct world *of, void *index)
{
	(void)of;
	return gossiper(all, *(uint32_t *)index)->has_settled;
}

/* Clients come when it has settled: it must not take a replica for dead that they need. */
START_TEST(test_a_lost_echo_is_asked_again_before_clients_come)
{
	uint32_t restarted = 1;

	make_ring(3, 1, NULL);
	world_crash(world, 1, WORLD_KILL);
	world_run(world, 500 * WORLD_MS);
	world_lose_verb(world, 0, VERB_ECHO_REQ);
	world_lose_verb(world, 2, VERB_ECHO_REQ);
	world_start(world, 1);
	world_run(world, 900 * WORLD_MS);
	ck_assert(!gossiper_sees_alive(all, 1, 0));
	ck_assert(!gossiper(all, 1)->has_settled);
	world_heal(world);
	ck_assert(world_run_until(world, has_settled, &restarted, WORLD_MS, 5 * WORLD_S));
	ck_assert(gossiper_sees_alive(all, 1, 0));
	ck_assert(gossiper_sees_alive(all, 1, 2));
}
END_TEST

/* One that says nothing at all holds nobody up for long. */
START_TEST(test_a_silent_node_delays_settling_by_seconds)
{
	uint32_t restarted = 1;

	make_ring(3, 1, NULL);
	world_crash(world, 1, WORLD_KILL);
	world_run(world, 500 * WORLD_MS);
	world_cut_both(world, 1, 2);
	world_start(world, 1);
	ck_assert(world_run_until(world, has_settled, &restarted, 10 * WORLD_MS, 4 * WORLD_S));
	ck_assert(gossiper_sees_alive(all, 1, 0));
	ck_assert(!gossiper_sees_alive(all, 1, 2));
}
END_TEST

START_TEST(test_a_restart_is_told_and_seen)
{
	make_ring(3, 1, NULL);
	ck_assert_uint_eq(gossiper(all, 0)->joins, 2);
	ck_assert_uint_eq(gossiper(all, 0)->deads, 0);
	world_crash(world, 1, WORLD_KILL);
	world_run(world, 500 * WORLD_MS);
	world_start(world, 1);
	world_run(world, 3 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 1));
	ck_assert_uint_eq(gossiper(all, 0)->restarts, 1);
	/* Who is told of a death gives up what is on its way to the node, to its new life too. */
	ck_assert_uint_eq(gossiper(all, 0)->deads, 0);
	ck_assert_uint_eq(gossiper(all, 0)->joins, 3);
	ck_assert_uint_eq(gossiper(all, 0)->alives, 3);
}
END_TEST

START_TEST(test_a_generation_of_next_year_is_not_believed)
{
	make_ring(3, 1, NULL);
	world_crash(world, 1, WORLD_KILL);
	world_step_wall(world, 1, INT64_C(370) * 24 * 3600 * 1000000);
	world_start(world, 1);
	world_run(world, 60 * WORLD_S);
	ck_assert(!gossiper_sees_alive(all, 0, 1));
	ck_assert_uint_gt(stats_of(0).refused_generations, 0);
	ck_assert_uint_eq(gossiper(all, 0)->restarts, 0);
}
END_TEST

START_TEST(test_a_killed_node_is_dead_in_half_a_minute)
{
	make_ring(6, 2, NULL);
	world_crash(world, 4, WORLD_KILL);
	world_run(world, 8 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 4));
	ck_assert(agree_within(22 * WORLD_S));
	for (uint32_t i = 0; i < 6; i++) {
		if (i != 4)
			ck_assert_uint_eq(gossiper(all, i)->deads, 1);
	}
	ck_assert_uint_eq(gossip_unreachable_count(gossip_of(0)), 1);
	ck_assert_uint_lt(gossip_downtime(gossip_of(0), gossiper_peer(all, 0, 4)), 22 * WORLD_S);
}
END_TEST

START_TEST(test_a_refused_node_is_dead_sooner)
{
	struct gossipers_options options = {
	    .world = {.seed = 3,
		.node_count = 6,
		.faults = {.delay_min_ns = 200 * WORLD_US, .delay_max_ns = 2 * WORLD_MS}},
	    .seed_count = 2,
	    .tells_refused = true,
	};

	all = gossipers_new(&options);
	world = gossipers_world(all);
	log_set_level("ROOT", LOG_OFF);
	for (uint32_t i = 0; i < 6; i++)
		world_start(world, i);
	world_run(world, 30 * WORLD_S);
	world_crash(world, 4, WORLD_KILL);
	ck_assert(agree_within(15 * WORLD_S));
}
END_TEST

/* Nothing gets there from one, but from the others: it has news of it, and nobody is convicted. */
START_TEST(test_refusals_do_not_convict_a_node_that_others_hear)
{
	make_ring(4, 1, NULL);
	for (int i = 0; i < 60; i++) {
		gossip_refused(gossip_of(1), gossiper_peer(all, 1, 2));
		world_run(world, 500 * WORLD_MS);
		ck_assert(gossiper_sees_alive(all, 1, 2));
	}
}
END_TEST

START_TEST(test_a_drained_node_is_dead_at_once)
{
	int32_t heartbeat;

	make_ring(4, 1, NULL);
	gossiper_drain(all, 2);
	world_run(world, 200 * WORLD_MS);
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		ck_assert(!gossiper_sees_alive(all, i, 2));
		ck_assert_int_eq(gossiper_sees_status(all, i, 2), NODE_STATUS_SHUTDOWN);
		ck_assert_str_eq(value_of(i, 2, STATE_RPC_READY), "false");
		ck_assert(gossip_knows(gossip_of(i), gossiper_peer(all, i, 2), NULL, &heartbeat));
		ck_assert_int_eq(heartbeat, INT32_MAX);
	}
	/* And stays so though the process lives. */
	world_run(world, 60 * WORLD_S);
	ck_assert(!gossiper_sees_alive(all, 0, 2));
	/* enablegossip */
	gossip_start(gossip_of(2), 1);
	world_run(world, 3 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 2) == false);
	set_value(2, STATE_STATUS_WITH_PORT, "NORMAL,2000");
	world_run(world, 3 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 2));
}
END_TEST

/* It came back by its status alone, and died before another heartbeat: it is convicted all the same. */
START_TEST(test_who_is_live_can_always_be_convicted)
{
	make_ring(3, 1, NULL);
	set_value(2, STATE_STATUS_WITH_PORT, "shutdown,true");
	world_run(world, 100 * WORLD_MS);
	ck_assert(!gossiper_sees_alive(all, 0, 2));
	set_value(2, STATE_STATUS_WITH_PORT, "NORMAL,2000");
	ck_assert(world_run_until(world, gossipers_agree, all, WORLD_MS, 100 * WORLD_MS));
	world_crash(world, 2, WORLD_KILL);
	ck_assert(agree_within(60 * WORLD_S));
}
END_TEST

START_TEST(test_who_stops_is_told_when_all_have_heard)
{
	struct outcome outcome = {.wait.on_done = outcome_done};

	make_ring(4, 1, NULL);
	gossip_stop(gossip_of(2), true, &outcome.wait);
	world_run(world, 100 * WORLD_MS);
	ck_assert(outcome.is_over);
	ck_assert(!outcome.has_failed);
	ck_assert(!gossip_is_running(gossip_of(2)));
	/* One that does not answer is waited for no longer than two seconds. */
	world_crash(world, 3, WORLD_KILL);
	outcome = (struct outcome){.wait.on_done = outcome_done};
	gossip_stop(gossip_of(1), true, &outcome.wait);
	world_run(world, WORLD_S);
	ck_assert(!outcome.is_over);
	world_run(world, 1500 * WORLD_MS);
	ck_assert(outcome.is_over);
}
END_TEST

START_TEST(test_one_way_silence_is_bridged_by_others)
{
	make_ring(4, 1, NULL);
	world_cut(world, 2, 1);
	world_run(world, 120 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 1, 2));
	ck_assert_uint_eq(gossiper(all, 1)->deads, 0);
}
END_TEST

START_TEST(test_a_node_that_slept_convicts_nobody)
{
	make_ring(5, 1, NULL);
	world_pause(world, 3, 15 * WORLD_S);
	world_run(world, 40 * WORLD_S);
	ck_assert_uint_eq(gossiper(all, 3)->deads, 0);
	ck_assert(gossipers_agree(world, all));
}
END_TEST

START_TEST(test_both_sides_of_a_partition_find_together_again)
{
	const uint8_t groups[] = {0, 0, 0, 1, 1, 1};

	make_ring(6, 2, NULL);
	world_partition(world, groups);
	world_run(world, 60 * WORLD_S);
	ck_assert(!gossiper_sees_alive(all, 0, 4));
	ck_assert(!gossiper_sees_alive(all, 4, 0));
	ck_assert(gossiper_sees_alive(all, 0, 1));
	ck_assert(gossiper_sees_alive(all, 4, 5));
	world_heal(world);
	ck_assert(agree_within(30 * WORLD_S));
}
END_TEST

/* ---- The dead ---- */

static void
kill_and_convict(uint32_t index)
{
	world_crash(world, index, WORLD_KILL);
	ck_assert(agree_within(40 * WORLD_S));
}

START_TEST(test_assassinate_takes_a_dead_node_out_of_the_ring)
{
	struct outcome outcome = {.wait.on_done = outcome_done};

	make_ring(4, 1, NULL);
	kill_and_convict(3);
	gossip_assassinate(gossip_of(1), gossiper_peer(all, 1, 3), &outcome.wait);
	world_run(world, 29 * WORLD_S);
	ck_assert_int_eq(gossiper_sees_status(all, 1, 3), NODE_STATUS_NORMAL);
	world_run(world, 6 * WORLD_S);
	ck_assert(outcome.is_over);
	ck_assert(!outcome.has_failed);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(gossiper_sees_status(all, i, 3), NODE_STATUS_LEFT);
		ck_assert_uint_eq(gossiper(all, i)->removes, 1);
		ck_assert_uint_eq(gossip_unreachable_count(gossip_of(i)), 0);
		/* What else was known of it stays. */
		ck_assert_str_eq(value_of(i, 3, STATE_DC), "dc2");
	}
}
END_TEST

START_TEST(test_who_lives_is_not_assassinated)
{
	struct outcome outcome = {.wait.on_done = outcome_done};
	struct outcome self = {.wait.on_done = outcome_done};

	make_ring(3, 1, NULL);
	gossip_assassinate(gossip_of(1), gossiper_peer(all, 1, 2), &outcome.wait);
	gossip_assassinate(gossip_of(1), peers_local(world_node(world, 1)->peers), &self.wait);
	world_run(world, 3 * WORLD_S);
	ck_assert(outcome.is_over && outcome.has_failed);
	ck_assert_ptr_nonnull(
	    strstr(outcome.text, "heartbeat changed while trying to assassinate"));
	ck_assert(self.is_over && self.has_failed);
	world_run(world, 60 * WORLD_S);
	ck_assert(gossipers_agree(world, all));
}
END_TEST

START_TEST(test_a_node_nobody_knows_can_be_assassinated)
{
	struct outcome outcome = {.wait.on_done = outcome_done};
	struct endpoint ghost = {.address = {10, 9, 9, 9}, .size = 4, .port = WORLD_PORT};

	make_ring(3, 1, NULL);
	gossip_assassinate(
	    gossip_of(1), peers_get(world_node(world, 1)->peers, &ghost), &outcome.wait);
	world_run(world, 8 * WORLD_S);
	ck_assert(outcome.is_over && !outcome.has_failed);
	ck_assert_int_eq(
	    gossip_status(gossip_of(0), peers_find(world_node(world, 0)->peers, &ghost)).kind,
	    NODE_STATUS_LEFT);
}
END_TEST

START_TEST(test_the_removed_are_quarantined_for_a_minute)
{
	struct outcome outcome = {.wait.on_done = outcome_done};

	make_ring(3, 1, NULL);
	kill_and_convict(2);
	gossip_assassinate(gossip_of(1), gossiper_peer(all, 1, 2), &outcome.wait);
	world_run(world, 36 * WORLD_S);
	ck_assert(outcome.is_over);
	/* It comes back at once: nobody believes it before twice the ring delay is over. */
	world_start(world, 2);
	world_run(world, 40 * WORLD_S);
	ck_assert(!gossiper_sees_alive(all, 0, 2));
	ck_assert(!gossiper_sees_alive(all, 1, 2));
	world_run(world, 40 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 2));
	ck_assert(gossiper_sees_alive(all, 1, 2));
	ck_assert_int_eq(gossiper_sees_status(all, 1, 2), NODE_STATUS_NORMAL);
}
END_TEST

START_TEST(test_a_removal_goes_by_two_states)
{
	struct node_status status = {.kind = NODE_STATUS_REMOVING, .host_id = {{9}}};
	struct uuid coordinator = {{1, 2, 3}};
	struct peer *peer;
	struct error err;

	make_ring(4, 1, NULL);
	kill_and_convict(3);
	peer = gossiper_peer(all, 1, 3);
	ck_assert_int_eq(gossip_advertise(gossip_of(1), peer, &status, &coordinator, &err), 0);
	world_run(world, 3 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(gossiper_sees_status(all, i, 3), NODE_STATUS_REMOVING);
		ck_assert_str_eq(value_of(i, 3, STATE_REMOVAL_COORDINATOR),
		    "REMOVER,01020300-0000-0000-0000-000000000000");
		ck_assert_uint_eq(gossiper(all, i)->removes, 0);
	}
	status.kind = NODE_STATUS_REMOVED;
	status.expires_ms = env_wall_us(world_node(world, 1)->env) / 1000 + 3 * 24 * 3600 * 1000;
	ck_assert_int_eq(gossip_advertise(gossip_of(1), peer, &status, NULL, &err), 0);
	world_run(world, 3 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(gossiper_sees_status(all, i, 3), NODE_STATUS_REMOVED);
		ck_assert_uint_eq(gossiper(all, i)->removes, 1);
	}
	ck_assert_int_eq(gossip_advertise(gossip_of(1), peers_local(world_node(world, 1)->peers),
			     &status, NULL, &err),
	    -1);
	/* Three days later nobody remembers. */
	for (uint32_t i = 0; i < 3; i++)
		world_step_wall(world, i, INT64_C(3) * 24 * 3600 * 1000000 + 1000000);
	world_run(world, 70 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(!gossip_knows(gossip_of(i), gossiper_peer(all, i, 3), NULL, NULL));
}
END_TEST

START_TEST(test_a_node_that_died_while_it_joined_is_forgotten)
{
	struct node_status status = {.kind = NODE_STATUS_BOOT, .token = 5};

	make_ring(4, 1, NULL);
	gossip_set_status(gossip_of(3), &status, &status.token, 1);
	world_run(world, 2 * WORLD_S);
	ck_assert_int_eq(gossiper_sees_status(all, 0, 3), NODE_STATUS_BOOT);
	kill_and_convict(3);
	ck_assert(gossip_knows(gossip_of(0), gossiper_peer(all, 0, 3), NULL, NULL));
	world_run(world, 40 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(!gossip_knows(gossip_of(i), gossiper_peer(all, i, 3), NULL, NULL));
	/* Its next attempt is no echo of the last one, and is known before it has waited for the ring delay. */
	world_start(world, 3);
	world_run(world, 5 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(gossiper_sees_alive(all, i, 3));
}
END_TEST

START_TEST(test_a_member_that_is_long_dead_is_remembered)
{
	make_ring(4, 1, NULL);
	kill_and_convict(3);
	world_run(world, 3600 * WORLD_S);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_int_eq(gossiper_sees_status(all, i, 3), NODE_STATUS_NORMAL);
	world_start(world, 3);
	ck_assert(agree_within(10 * WORLD_S));
}
END_TEST

START_TEST(test_a_replaced_node_is_gone_and_quarantined_twice_as_long)
{
	make_ring(4, 1, NULL);
	kill_and_convict(3);
	for (uint32_t i = 0; i < 3; i++)
		gossip_replaced(gossip_of(i), gossiper_peer(all, i, 3));
	ck_assert(!gossip_knows(gossip_of(0), gossiper_peer(all, 0, 3), NULL, NULL));
	world_start(world, 3);
	world_run(world, 110 * WORLD_S);
	ck_assert(!gossiper_sees_alive(all, 0, 3));
	world_run(world, 30 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 3));
}
END_TEST

START_TEST(test_saved_nodes_are_dead_until_heard_of)
{
	make_ring(3, 1, NULL);
	for (uint32_t i = 0; i < 3; i++)
		world_crash(world, i, WORLD_KILL);
	world_start(world, 0);
	world_run(world, WORLD_S);
	/* A seed that remembers others is not alone in the world. */
	ck_assert(!gossiper(all, 0)->has_settled);
	ck_assert_uint_eq(gossip_unreachable_count(gossip_of(0)), 2);
	ck_assert_str_eq(value_of(0, 2, STATE_DC), "dc1");
	world_run(world, 60 * WORLD_S);
	ck_assert(gossiper(all, 0)->has_settled);
	ck_assert_uint_eq(gossip_unreachable_count(gossip_of(0)), 2);
	world_start(world, 2);
	world_run(world, 5 * WORLD_S);
	ck_assert(gossiper_sees_alive(all, 0, 2));
	/* It did not know more of itself than the seed told of it. */
	ck_assert(!gossiper_sees_alive(all, 2, 1));
}
END_TEST

/* ---- Seeds, figures ---- */

START_TEST(test_seeds_can_be_changed)
{
	struct endpoint *seeds;
	uint32_t count;

	make_ring(3, 1, NULL);
	count = gossip_seeds(gossip_of(0), &seeds);
	ck_assert_uint_eq(count, 1);
	ck_assert(endpoint_equal(&seeds[0], &world_node(world, 0)->endpoint));
	free(seeds);
	ck_assert(!gossip_is_seed(gossip_of(0), &world_node(world, 1)->endpoint));
	gossip_set_seeds(gossip_of(0), &world_node(world, 1)->endpoint, 1);
	ck_assert(gossip_is_seed(gossip_of(0), &world_node(world, 1)->endpoint));
	ck_assert(!gossip_is_seed(gossip_of(0), &world_node(world, 0)->endpoint));
	gossip_set_phi_threshold(gossip_of(0), 12);
	ck_assert_double_eq(gossip_phi_threshold(gossip_of(0)), 12);
}
END_TEST

/* What a quiet round costs is bounded by what is known: digests, and heartbeats that are not. */
START_TEST(test_a_quiet_ring_sends_little)
{
	struct gossip_stats before, after;
	double bytes;

	make_ring(30, 2, NULL);
	before = stats_of(5);
	world_run(world, 60 * WORLD_S);
	after = stats_of(5);
	bytes = (double)(after.bytes_sent - before.bytes_sent) / 60;
	/* 30 digests of 15 bytes in about one SYN a second; heartbeats of 15 bytes each way. */
	ck_assert_double_lt(bytes, 3000);
	ck_assert_uint_eq(after.extra_rounds, before.extra_rounds);
}
END_TEST

static void
add_cases(TCase *tcase)
{
	tcase_add_test(tcase, test_a_lone_seed_is_there_at_once);
	tcase_add_test(tcase, test_seeds_that_start_together_do_not_wait_for_each_other);
	tcase_add_test(tcase, test_a_node_that_finds_no_seed_gives_up_after_the_ring_delay);
	tcase_add_test(tcase, test_a_seed_goes_on_when_no_other_answers);
	tcase_add_test(tcase, test_without_seeds_there_is_an_error);
	tcase_add_test(tcase, test_the_shadow_round_shows_the_ring);
	tcase_add_test(tcase, test_another_cluster_or_partitioner_is_not_answered);
	tcase_add_test(tcase, test_a_ring_of_thirty_hears_of_a_new_schema_within_a_second);
	tcase_add_test(tcase, test_states_that_do_not_fit_one_message_come_in_several);
	tcase_add_test(tcase, test_states_that_are_set_together_are_seen_together);
	tcase_add_test(tcase, test_gossipinfo_reads_as_cassandras);
	tcase_add_test(tcase, test_gossip_info_has_the_columns_of_cassandras_table);
	tcase_add_test(tcase, test_generations_rise);
	tcase_add_test(tcase, test_a_restart_is_told_and_seen);
	tcase_add_test(tcase, test_a_generation_of_next_year_is_not_believed);
	tcase_add_test(tcase, test_a_killed_node_is_dead_in_half_a_minute);
	tcase_add_test(tcase, test_a_refused_node_is_dead_sooner);
	tcase_add_test(tcase, test_refusals_do_not_convict_a_node_that_others_hear);
	tcase_add_test(tcase, test_a_drained_node_is_dead_at_once);
	tcase_add_test(tcase, test_who_is_live_can_always_be_convicted);
	tcase_add_test(tcase, test_who_stops_is_told_when_all_have_heard);
	tcase_add_test(tcase, test_one_way_silence_is_bridged_by_others);
	tcase_add_test(tcase, test_a_node_that_slept_convicts_nobody);
	tcase_add_test(tcase, test_a_lost_echo_is_asked_again_before_clients_come);
	tcase_add_test(tcase, test_a_silent_node_delays_settling_by_seconds);
	tcase_add_test(tcase, test_both_sides_of_a_partition_find_together_again);
	tcase_add_test(tcase, test_assassinate_takes_a_dead_node_out_of_the_ring);
	tcase_add_test(tcase, test_who_lives_is_not_assassinated);
	tcase_add_test(tcase, test_a_node_nobody_knows_can_be_assassinated);
	tcase_add_test(tcase, test_the_removed_are_quarantined_for_a_minute);
	tcase_add_test(tcase, test_a_removal_goes_by_two_states);
	tcase_add_test(tcase, test_a_node_that_died_while_it_joined_is_forgotten);
	tcase_add_test(tcase, test_a_member_that_is_long_dead_is_remembered);
	tcase_add_test(tcase, test_a_replaced_node_is_gone_and_quarantined_twice_as_long);
	tcase_add_test(tcase, test_saved_nodes_are_dead_until_heard_of);
	tcase_add_test(tcase, test_seeds_can_be_changed);
	tcase_add_test(tcase, test_a_quiet_ring_sends_little);
}

int
main(void)
{
	Suite *suite = suite_create("gossip");
	TCase *tcase = tcase_create("gossip");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	add_cases(tcase);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
