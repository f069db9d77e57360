/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/snitch.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env_sim.h"
#include "cluster/replica_plan.h"
#include "ring_fixture.h"

static struct env_sim *sim;
static struct env *env;

static void
write_file(const char *name, const char *content)
{
	struct error err;
	char path[128];

	snprintf(path, sizeof(path), "/conf/%s", name);
	ck_assert_int_eq(files_mkdir(env->files, "/conf", &err), 0);
	ck_assert_int_eq(files_replace(env->files, path, slice_of_string(content), &err), 0);
}

static void
setup(void)
{
	sim = env_sim_new(1);
	env = env_sim_env(sim);
}

static void
teardown(void)
{
	env_sim_free(sim);
}

static struct snitch_config
config_of(const char *kind)
{
	struct snitch_config config = snitch_config_default;

	config.endpoint_snitch = kind;
	config.config_folder = "/conf";
	return config;
}

static struct peers *
peers_at_address(const char *text)
{
	struct endpoint endpoint;
	struct error err;

	ck_assert_int_eq(endpoint_parse(text, 7000, &endpoint, &err), 0);
	return peers_new(&endpoint);
}

static struct snitch *
made(const struct snitch_config *config, struct peers *peers)
{
	struct snitch *snitch = NULL;
	struct error err;

	ck_assert_msg(snitch_new(config, env, peers, &snitch, &err) == 0, "%s", err.text);
	return snitch;
}

static void
expect_refused(const struct snitch_config *config, const char *text)
{
	struct peers *peers = peers_at_address("127.0.0.1");
	struct snitch *snitch;
	struct error err;

	ck_assert_int_ne(snitch_new(config, env, peers, &snitch, &err), 0);
	ck_assert_int_eq(err.code, ERROR_CONFIG);
	ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
	peers_free(peers);
}

static void
expect_place(struct snitch *snitch, const char *address, const char *told_datacenter,
    const char *told_rack, const char *datacenter, const char *rack)
{
	struct endpoint endpoint;
	const char *found_datacenter, *found_rack;
	struct error err;

	ck_assert_int_eq(endpoint_parse(address, 7000, &endpoint, &err), 0);
	snitch_locate(
	    snitch, &endpoint, told_datacenter, told_rack, &found_datacenter, &found_rack);
	ck_assert_str_eq(found_datacenter, datacenter);
	ck_assert_str_eq(found_rack, rack);
}

/* ---- Places -------------------------------------------------------------------------------- */

START_TEST(test_names_of_snitches)
{
	static const char *const clouds[] = {"Ec2Snitch", "Ec2MultiRegionSnitch",
	    "GoogleCloudSnitch", "AzureSnitch", "AlibabaCloudSnitch", "CloudstackSnitch"};
	enum snitch_kind kind;
	struct error err;

	ck_assert_int_eq(snitch_parse_kind("SimpleSnitch", &kind, &err), 0);
	ck_assert_int_eq(kind, SNITCH_SIMPLE);
	ck_assert_int_eq(
	    snitch_parse_kind("org.apache.cassandra.locator.RackInferringSnitch", &kind, &err), 0);
	ck_assert_int_eq(kind, SNITCH_RACK_INFERRING);
	for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		ck_assert_int_ne(snitch_parse_kind(clouds[i], &kind, &err), 0);
		ck_assert_int_eq(err.code, ERROR_CONFIG);
		ck_assert_ptr_nonnull(strstr(err.text, clouds[i]));
		ck_assert_ptr_nonnull(strstr(err.text, "GossipingPropertyFileSnitch"));
	}
	ck_assert_int_ne(snitch_parse_kind("FooSnitch", &kind, &err), 0);
	ck_assert_ptr_nonnull(strstr(
	    err.text, "Unable to find snitch class 'org.apache.cassandra.locator.FooSnitch'"));
	ck_assert_int_ne(snitch_parse_kind("a.b.FooSnitch", &kind, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.text, "'a.b.FooSnitch'"));
}
END_TEST

START_TEST(test_simple_snitch)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct peers *peers = peers_at_address("127.0.0.1");
	struct snitch *snitch = made(&config, peers);

	ck_assert_str_eq(snitch_local_datacenter(snitch), "datacenter1");
	ck_assert_str_eq(snitch_local_rack(snitch), "rack1");
	expect_place(snitch, "127.0.0.2", "x", "y", "datacenter1", "rack1");
	ck_assert_str_eq(
	    snitch_class_name(snitch), "org.apache.cassandra.locator.DynamicEndpointSnitch");
	ck_assert_str_eq(snitch_subclass_name(snitch), "org.apache.cassandra.locator.SimpleSnitch");
	snitch_free(snitch);
	config.datacenter = "dc7";
	config.is_dynamic = false;
	snitch = made(&config, peers);
	ck_assert_str_eq(snitch_class_name(snitch), "org.apache.cassandra.locator.SimpleSnitch");
	expect_place(snitch, "127.0.0.2", "x", "y", "x", "y");
	expect_place(snitch, "127.0.0.1", "x", "y", "dc7", "rack1");
	snitch_free(snitch);
	peers_free(peers);
}
END_TEST

START_TEST(test_gossiping_property_file_snitch)
{
	struct snitch_config config = config_of("GossipingPropertyFileSnitch");
	struct peers *peers = peers_at_address("127.0.0.1");
	struct snitch *snitch;

	expect_refused(&config, "/conf/cassandra-rackdc.properties, which does not exist");
	write_file("cassandra-rackdc.properties", "# place\ndc=DC1\n");
	expect_refused(&config, "DC or rack not found in snitch properties");
	write_file("cassandra-rackdc.properties",
	    "# place\r\n dc = DC1 \r\nrack=RAC 2\r\nprefer_local=true\r\ndc_suffix=_x\r\n");
	snitch = made(&config, peers);
	ck_assert_str_eq(snitch_local_datacenter(snitch), "DC1");
	ck_assert_str_eq(snitch_local_rack(snitch), "RAC 2");
	ck_assert(snitch_prefers_local(snitch));
	expect_place(snitch, "127.0.0.1", "x", "y", "DC1", "RAC 2");
	expect_place(snitch, "127.0.0.2", "x", "y", "x", "y");
	expect_place(snitch, "127.0.0.2", NULL, NULL, "UNKNOWN_DC", "UNKNOWN_RACK");
	snitch_free(snitch);
	write_file("cassandra-topology.properties", "127.0.0.2=DC3:RAC1\n");
	config.rack = "R9";
	snitch = made(&config, peers);
	ck_assert_str_eq(snitch_local_rack(snitch), "R9");
	expect_place(snitch, "127.0.0.2", NULL, NULL, "DC3", "RAC1");
	expect_place(snitch, "127.0.0.2", "x", NULL, "x", "RAC1");
	snitch_free(snitch);
	peers_free(peers);
}
END_TEST

START_TEST(test_property_file_snitch)
{
	struct snitch_config config = config_of("PropertyFileSnitch");
	struct peers *peers = peers_at_address("127.0.0.1");
	struct snitch *snitch;

	expect_refused(&config, "Unable to read /conf/cassandra-topology.properties");
	write_file("cassandra-topology.properties", "127.0.0.2=DC3:RAC1\n");
	expect_refused(&config,
	    "do not define a location for this node's broadcast address 127.0.0.1, nor does it "
	    "provide a default");
	write_file("cassandra-topology.properties", "\n\nhost.example=DC3:RAC1\n");
	expect_refused(&config, "/conf/cassandra-topology.properties:3: ");
	write_file("cassandra-topology.properties",
	    "127.0.0.1=DC1:RAC1\n127.0.0.2=wrong\n/127.0.0.2=DC2 : RAC2\n127.0.0.3=odd\n"
	    "fe80\\:0\\:0\\:0\\:202\\:b3ff\\:fe1e\\:8329=DC1:RAC3\n");
	snitch = made(&config, peers);
	ck_assert_str_eq(snitch_local_datacenter(snitch), "DC1");
	expect_place(snitch, "127.0.0.2", "x", "y", "DC2", "RAC2");
	expect_place(snitch, "127.0.0.3", "x", "y", "default", "default");
	expect_place(snitch, "fe80::202:b3ff:fe1e:8329", NULL, NULL, "DC1", "RAC3");
	expect_place(snitch, "127.0.0.9", "x", "y", "UNKNOWN_DC", "UNKNOWN_RACK");
	snitch_free(snitch);
	write_file("cassandra-topology.properties", "default=DC5:r1\n127.0.0.2=DC3:RAC1\n");
	snitch = made(&config, peers);
	ck_assert_str_eq(snitch_local_datacenter(snitch), "DC5");
	expect_place(snitch, "127.0.0.9", "x", "y", "DC5", "r1");
	snitch_free(snitch);
	peers_free(peers);
}
END_TEST

START_TEST(test_rack_inferring_snitch)
{
	struct snitch_config config = config_of("RackInferringSnitch");
	struct peers *peers = peers_at_address("10.20.114.15");
	struct snitch *snitch = made(&config, peers);

	ck_assert_str_eq(snitch_local_datacenter(snitch), "20");
	ck_assert_str_eq(snitch_local_rack(snitch), "114");
	expect_place(snitch, "10.21.200.1", "x", "y", "21", "200");
	snitch_free(snitch);
	peers_free(peers);
}
END_TEST

/* ---- Order --------------------------------------------------------------------------------- */

struct order_fixture {
	struct ring_fixture ring;
	const struct topology *topology;
	struct snitch *snitch;
	uint64_t now_ns;
};

/* Nodes 1 (this one, r1), 2 (r1), 3 (r2) in dc1; 4, 5 in dc2. */
static void
order_fixture_init(struct order_fixture *fixture, const struct snitch_config *config)
{
	static const char *const places[][2] = {
	    {"dc1", "r1"}, {"dc1", "r1"}, {"dc1", "r2"}, {"dc2", "r1"}, {"dc2", "r1"}};

	ring_fixture_init(&fixture->ring, 1);
	topology_holder_set_local(fixture->ring.holder, "dc1", "r1");
	for (int i = 0; i < 5; i++)
		ring_add_random(&fixture->ring, places[i][0], places[i][1], 1);
	ring_publish(&fixture->ring);
	fixture->topology = topology_acquire(fixture->ring.holder);
	fixture->snitch = made(config, fixture->ring.peers);
	fixture->now_ns = 5000000000ULL;
}

static void
order_fixture_fini(struct order_fixture *fixture)
{
	snitch_free(fixture->snitch);
	topology_release(fixture->ring.holder, fixture->topology);
	ring_fixture_fini(&fixture->ring);
}

static const char *
sorted(struct order_fixture *fixture, const char *nodes)
{
	static char text[16];
	struct replica replicas[8];
	uint32_t count = (uint32_t)strlen(nodes);

	for (uint32_t i = 0; i < count; i++) {
		struct peer *peer = fixture->ring.members[nodes[i] - '1'].peer;

		replicas[i] = (struct replica){
		    .peer = peer, .datacenter = topology_datacenter(fixture->topology, peer)};
	}
	snitch_sort(fixture->snitch, fixture->topology, replicas, count);
	for (uint32_t i = 0; i < count; i++)
		text[i] = (char)('0' + replicas[i].peer->endpoint.address[3]);
	text[count] = '\0';
	return text;
}

static void
record(struct order_fixture *fixture, int node, uint64_t latency_us, int times)
{
	for (int i = 0; i < times; i++)
		snitch_record_latency(
		    fixture->snitch, fixture->ring.members[node - 1].peer, latency_us * 1000);
}

static void
update(struct order_fixture *fixture, uint64_t after_ms)
{
	fixture->now_ns += after_ms * 1000000;
	snitch_update(fixture->snitch, fixture->now_ns);
}

static double
score_of(struct order_fixture *fixture, int node)
{
	return snitch_score(fixture->snitch, fixture->ring.members[node - 1].peer);
}

START_TEST(test_near_replicas_come_first)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	ck_assert_str_eq(sorted(&fixture, "54321"), "12354");
	ck_assert_str_eq(sorted(&fixture, "53"), "35");
	ck_assert_str_eq(sorted(&fixture, "4"), "4");
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_slow_replica_goes_back)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	record(&fixture, 2, 1500, 50);
	record(&fixture, 3, 1000, 50);
	update(&fixture, 100);
	ck_assert_double_eq_tol(score_of(&fixture, 2), 1.0, 1e-6);
	ck_assert_double_eq_tol(score_of(&fixture, 3), 1000 / 1500.0, 1e-6);
	ck_assert_double_lt(score_of(&fixture, 4), 0);
	/* Not twice as slow: not bad enough. */
	ck_assert_str_eq(sorted(&fixture, "32"), "23");
	record(&fixture, 2, 5000, 400);
	update(&fixture, 100);
	ck_assert_str_eq(sorted(&fixture, "32"), "32");
	/* The one that nobody knows is tried first once the order is by score. */
	ck_assert_str_eq(sorted(&fixture, "324"), "432");
	order_fixture_fini(&fixture);
}
END_TEST

static int
compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

START_TEST(test_a_score_is_of_the_median)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	for (int count = 1; count <= 60; count++) {
		int latencies[60];

		order_fixture_init(&fixture, &config);
		for (int i = 0; i < count; i++) {
			latencies[i] = 1 + (int)ring_chance(&fixture.ring, 40);
			record(&fixture, 2, latencies[i], 1);
		}
		record(&fixture, 3, 100, 1);
		update(&fixture, 100);
		qsort(latencies, (size_t)count, sizeof(latencies[0]), compare_ints);
		ck_assert_double_eq_tol(
		    score_of(&fixture, 2), latencies[(count - 1) / 2] / 100.0, 1e-6);
		order_fixture_fini(&fixture);
	}
	/* Of many samples some are kept, which are as good. */
	order_fixture_init(&fixture, &config);
	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < 60; j++)
			record(&fixture, 2, 1 + (int)ring_chance(&fixture.ring, 1000), 1);
		record(&fixture, 3, 1000, 1);
		update(&fixture, 1);
		if (i >= 2)
			ck_assert_double_eq_tol(score_of(&fixture, 2), 0.5, 0.2);
	}
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_old_samples_lose_their_weight)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	for (int i = 0; i < 10; i++) {
		record(&fixture, 2, 9000, 20);
		record(&fixture, 3, 1000, 20);
		update(&fixture, 100);
	}
	ck_assert_str_eq(sorted(&fixture, "32"), "32");
	/* It has recovered. A few seconds on, 20 answers outweigh the 200. */
	for (int i = 0; i < 3; i++) {
		record(&fixture, 2, 1000, 7);
		record(&fixture, 3, 1000, 7);
		update(&fixture, 3000);
	}
	ck_assert_double_eq_tol(score_of(&fixture, 2), 1.0, 1e-6);
	ck_assert_double_eq_tol(score_of(&fixture, 3), 1.0, 1e-6);
	ck_assert_str_eq(sorted(&fixture, "32"), "23");
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_all_is_forgotten_at_the_reset)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	config.reset_interval_ns = 10000000000ULL;
	order_fixture_init(&fixture, &config);
	record(&fixture, 2, 9000, 20);
	record(&fixture, 3, 1000, 20);
	update(&fixture, 100);
	ck_assert_str_eq(sorted(&fixture, "32"), "32");
	update(&fixture, 9900);
	ck_assert_str_eq(sorted(&fixture, "32"), "32");
	update(&fixture, 100);
	ck_assert_double_lt(score_of(&fixture, 2), 0);
	ck_assert_str_eq(sorted(&fixture, "32"), "23");
	/* Weights stay numbers however long it runs without a reset. */
	snitch_free(fixture.snitch);
	config.reset_interval_ns = UINT64_MAX;
	fixture.snitch = made(&config, fixture.ring.peers);
	for (int hour = 0; hour < 48; hour++) {
		record(&fixture, 2, 9000, 5);
		record(&fixture, 3, 1000, 5);
		update(&fixture, 3600000);
		ck_assert_double_eq_tol(score_of(&fixture, 3), 1 / 9.0, 1e-6);
	}
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_node_that_comes_back_is_not_known)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	record(&fixture, 2, 9000, 20);
	record(&fixture, 3, 1000, 20);
	update(&fixture, 100);
	ck_assert_str_eq(sorted(&fixture, "23"), "32");
	record(&fixture, 2, 9000, 20);
	snitch_forget(fixture.snitch, fixture.ring.members[1].peer);
	update(&fixture, 100);
	ck_assert_double_lt(score_of(&fixture, 2), 0);
	ck_assert_str_eq(sorted(&fixture, "32"), "23");
	record(&fixture, 2, 500, 20);
	update(&fixture, 100);
	ck_assert_double_eq_tol(score_of(&fixture, 2), 0.5, 1e-6);
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_severity_pushes_a_node_back)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	for (int node = 1; node <= 3; node++)
		record(&fixture, node, 1000, 20);
	snitch_set_severity(fixture.snitch, fixture.ring.members[1].peer, 2.5);
	update(&fixture, 100);
	ck_assert_double_eq_tol(score_of(&fixture, 2), 3.5, 1e-6);
	ck_assert_str_eq(sorted(&fixture, "321"), "132");
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_snitch_that_is_not_dynamic_keeps_its_order)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;

	config.is_dynamic = false;
	order_fixture_init(&fixture, &config);
	record(&fixture, 2, 9000, 20);
	record(&fixture, 3, 1000, 20);
	update(&fixture, 100);
	ck_assert_str_eq(sorted(&fixture, "32"), "23");
	order_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_merging_stays_in_this_data_center)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;
	struct replica near, far, other, third;

	order_fixture_init(&fixture, &config);
	near = (struct replica){.peer = fixture.ring.members[1].peer, .is_local_datacenter = true};
	other = (struct replica){.peer = fixture.ring.members[2].peer, .is_local_datacenter = true};
	far = (struct replica){.peer = fixture.ring.members[3].peer};
	ck_assert(!snitch_is_worth_merging(fixture.snitch, &far, 1, &near, 1, &other, 1));
	ck_assert(snitch_is_worth_merging(fixture.snitch, &far, 1, &near, 1, &far, 1));
	ck_assert(snitch_is_worth_merging(fixture.snitch, &near, 1, &near, 1, &other, 1));
	record(&fixture, 2, 1000, 10);
	record(&fixture, 3, 100, 10);
	update(&fixture, 100);
	record(&fixture, 1, 100, 10);
	update(&fixture, 100);
	/* Two quick ones are better than one that is slower than both together. */
	third = (struct replica){.peer = fixture.ring.members[0].peer, .is_local_datacenter = true};
	ck_assert(!snitch_is_worth_merging(fixture.snitch, &near, 1, &other, 1, &third, 1));
	ck_assert(snitch_is_worth_merging(fixture.snitch, &other, 1, &other, 1, &third, 1));
	order_fixture_fini(&fixture);
}
END_TEST

/* An environment with one timer and one task, both run by hand. */
struct hand_env {
	struct cluster_env base;
	struct cluster_timer *timer;
	struct task *task;
	uint64_t delay_ns;
	bool is_full;
};

static size_t
hand_submit(struct cluster_env *base, enum cluster_stage stage, struct task *first, size_t count,
    struct worker *worker, struct task **rest)
{
	struct hand_env *hand = (struct hand_env *)base;

	ck_assert_int_eq(stage, CLUSTER_STAGE_MISC);
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_null(worker);
	*rest = hand->is_full ? first : NULL;
	if (!hand->is_full)
		hand->task = first;
	return !hand->is_full;
}

static void
hand_timer_start(struct cluster_env *base, struct cluster_timer *timer, uint64_t delay_ns)
{
	struct hand_env *hand = (struct hand_env *)base;

	ck_assert_ptr_null(hand->timer);
	hand->timer = timer;
	hand->delay_ns = delay_ns;
}

static bool
hand_timer_stop(struct cluster_env *base, struct cluster_timer *timer)
{
	struct hand_env *hand = (struct hand_env *)base;
	bool was_armed = hand->timer == timer;

	hand->timer = NULL;
	return was_armed;
}

/* The timer fires; its task runs when it has got one. */
static void
hand_tick(struct hand_env *hand)
{
	struct cluster_timer *timer = hand->timer;
	struct task *task;

	ck_assert_uint_eq(hand->delay_ns, 100000000);
	env_sim_advance(sim, hand->delay_ns);
	hand->timer = NULL;
	timer->fire(timer);
	task = hand->task;
	hand->task = NULL;
	if (task != NULL)
		task->run(task, NULL);
}

START_TEST(test_scores_come_by_the_clock)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct hand_env hand = {.base = {.env = env,
				    .submit = hand_submit,
				    .timer_start = hand_timer_start,
				    .timer_stop = hand_timer_stop}};
	struct order_fixture fixture;

	order_fixture_init(&fixture, &config);
	snitch_start(fixture.snitch, &hand.base);
	record(&fixture, 2, 1000, 5);
	hand.is_full = true;
	hand_tick(&hand);
	ck_assert_double_lt(score_of(&fixture, 2), 0);
	hand.is_full = false;
	hand_tick(&hand);
	ck_assert_double_eq_tol(score_of(&fixture, 2), 1.0, 1e-6);
	hand_tick(&hand);
	ck_assert_ptr_nonnull(hand.timer);
	snitch_stop(fixture.snitch);
	ck_assert_ptr_null(hand.timer);
	order_fixture_fini(&fixture);
}
END_TEST

static void *
recorder_run(void *argument)
{
	struct order_fixture *fixture = argument;

	for (int i = 0; i < 20000; i++) {
		struct replica replicas[2] = {{.peer = fixture->ring.members[0].peer},
		    {.peer = fixture->ring.members[1].peer}};

		record(fixture, 1 + i % 5, (uint64_t)(i % 7) * 100 + 1, 1);
		if (i % 16 == 0)
			snitch_sort(fixture->snitch, fixture->topology, replicas, 2);
	}
	return NULL;
}

START_TEST(test_many_threads_record)
{
	struct snitch_config config = config_of("SimpleSnitch");
	struct order_fixture fixture;
	pthread_t threads[3];

	order_fixture_init(&fixture, &config);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, recorder_run, &fixture);
	for (int i = 0; i < 50; i++)
		update(&fixture, 100);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	update(&fixture, 100);
	for (int node = 1; node <= 5; node++)
		ck_assert_double_gt(score_of(&fixture, node), 0);
	order_fixture_fini(&fixture);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("snitch");
	TCase *tcase = tcase_create("snitch");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_names_of_snitches);
	tcase_add_test(tcase, test_simple_snitch);
	tcase_add_test(tcase, test_gossiping_property_file_snitch);
	tcase_add_test(tcase, test_property_file_snitch);
	tcase_add_test(tcase, test_rack_inferring_snitch);
	tcase_add_test(tcase, test_near_replicas_come_first);
	tcase_add_test(tcase, test_a_slow_replica_goes_back);
	tcase_add_test(tcase, test_a_score_is_of_the_median);
	tcase_add_test(tcase, test_old_samples_lose_their_weight);
	tcase_add_test(tcase, test_all_is_forgotten_at_the_reset);
	tcase_add_test(tcase, test_a_node_that_comes_back_is_not_known);
	tcase_add_test(tcase, test_severity_pushes_a_node_back);
	tcase_add_test(tcase, test_a_snitch_that_is_not_dynamic_keeps_its_order);
	tcase_add_test(tcase, test_merging_stays_in_this_data_center);
	tcase_add_test(tcase, test_scores_come_by_the_clock);
	tcase_add_test(tcase, test_many_threads_record);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
