/* SPDX-License-Identifier: Apache-2.0 */
/* The wire between nodes over real sockets: nodes of one process, each with its loops, stages and timers. */
#include "server/internode.h"

#include <arpa/inet.h>
#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/log.h"
#include "cluster/frame.h"
#include "cluster/messaging.h"
#include "server/internode_internal.h"
#include "server/network_internal.h"
#include "tests/unit/server/null_executor.h"

enum { NODES = 2, SECOND_MS = 1000, LONG_MS = 240 * SECOND_MS };

struct host {
	struct config config;
	struct env *env;
	struct node node;
	struct peers *peers;
	struct cluster_env *cluster;
	struct messaging *messaging;
	char address[24];
	atomic_int handled;
};

/* ---- Hosts ---------------------------------------------------------------------------------- */

/* One that nobody has now; two hosts share it on addresses of their own. */
static int
free_port(void)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void
host_set(struct host *host, const char *option)
{
	struct error err;

	ck_assert_msg(config_set_option(&host->config, option, &err) == 0, "%s", err.text);
}

static void
handle_echo(void *context, struct message *message, struct worker *worker)
{
	struct host *host = context;

	atomic_fetch_add(&host->handled, 1);
	messaging_respond(host->messaging, message, message_payload_slice(message), worker);
}

static void
handle_nothing(void *context, struct message *message, struct worker *worker)
{
	struct host *host = context;

	(void)message;
	(void)worker;
	atomic_fetch_add(&host->handled, 1);
}

static bool (*host_on_stream)(struct cluster_env *env, struct stream_channel *channel);

/* options: "key=value" strings, NULL at the end. */
static struct host *
host_start(int number, int port, const char *const *options)
{
	struct host *host = xzalloc(sizeof(*host));
	struct endpoint local;
	char text[64];
	struct error err;

	log_set_level("ROOT", getenv("INTERNODE_LOG") != NULL ? LOG_DEBUG : LOG_OFF);
	host->env = env_posix_new();
	config_init(&host->config);
	snprintf(host->address, sizeof(host->address), "127.0.20.%d", number);
	snprintf(text, sizeof(text), "listen_address=%s", host->address);
	host_set(host, text);
	snprintf(text, sizeof(text), "storage_port=%d", port);
	host_set(host, text);
	host_set(host, "native_transport_io_threads=2");
	host_set(host, "start_native_transport=false");
	host_set(host, "internode_tcp_connect_timeout=120s");
	for (; options != NULL && *options != NULL; options++)
		host_set(host, *options);
	ck_assert_msg(config_finish(&host->config, &err) == 0, "%s", err.text);
	node_init(&host->node, &host->config, host->env);
	host->node.executor = executor_new(&host->node);
	host->node.network = network_new(&host->node);
	ck_assert_msg(internode_local_endpoint(&host->config, &local, &err) == 0, "%s", err.text);
	host->peers = peers_new(&local);
	host->node.internode = internode_new(&host->node, host->peers);
	host->cluster = internode_env(host->node.internode);
	host->cluster->on_stream = host_on_stream;
	host->messaging = messaging_new(host->cluster, host->peers);
	messaging_handle(
	    host->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_echo, host);
	messaging_handle(host->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_echo, host);
	messaging_handle(
	    host->messaging, VERB_ECHO_REQ, CLUSTER_STAGE_IMMEDIATE, handle_echo, host);
	messaging_handle(host->messaging, VERB_HINT_REQ, CLUSTER_STAGE_HINTS, handle_nothing, host);
	ck_assert_msg(network_start_loops(host->node.network, &err) == 0, "%s", err.text);
	ck_assert_msg(
	    internode_start(host->node.internode, host->messaging, &err) == 0, "%s", err.text);
	return host;
}

static void
host_stop(struct host *host)
{
	network_stop(host->node.network, 1000);
	internode_stop(host->node.internode);
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		stage_stop(host->node.stages[i]);
	internode_stop_timers(host->node.internode);
	messaging_free(host->messaging);
	internode_free(host->node.internode);
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		stage_free(host->node.stages[i]);
	executor_free(host->node.executor);
	network_free(host->node.network);
	peers_free(host->peers);
	metrics_fini(&host->node.metrics);
	close(host->node.stop_fd);
	config_fini(&host->config);
	env_free(host->env);
	free(host);
}

static struct peer *
host_peer(struct host *host, const struct host *other)
{
	struct endpoint endpoint;
	struct error err;

	ck_assert_int_eq(
	    endpoint_parse(other->address, (uint16_t)other->config.storage_port, &endpoint, &err),
	    0);
	return peers_get(host->peers, &endpoint);
}

/* ---- Requests ------------------------------------------------------------------------------- */

struct waiter {
	struct message_callback callback; /* first */
	atomic_int answers;
	bool has_answer;
	enum failure_reason reason;
	size_t size;
	bool is_right;
	uint8_t first;
};

static void
waiter_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct waiter *waiter = (struct waiter *)callback;

	(void)worker;
	waiter->has_answer = answer != NULL;
	waiter->reason = reason;
	if (answer != NULL) {
		struct slice payload = message_payload_slice(answer);

		waiter->size = payload.size;
		waiter->is_right = true;
		for (size_t i = 0; i < payload.size; i++)
			if (payload.data[i] != (uint8_t)(waiter->first + i / 50))
				waiter->is_right = false;
	}
	atomic_fetch_add(&waiter->answers, 1);
}

static void
ask(struct host *host, struct peer *to, uint8_t verb, size_t size, uint64_t timeout_ms,
    struct waiter *waiter)
{
	struct message_payload *payload = message_payload_alloc(size);

	memset(waiter, 0, sizeof(*waiter));
	waiter->callback.on_answer = waiter_answer;
	waiter->first = (uint8_t)size;
	for (size_t i = 0; i < size; i++)
		payload->data[i] = (uint8_t)(waiter->first + i / 50);
	messaging_request(host->messaging, to, message_new(verb, payload), timeout_ms * 1000000,
	    &waiter->callback, NULL);
}

/* No absolute time decides but this: nothing happens for minutes. */
static void
wait_for(const atomic_int *value, int least)
{
	for (int i = 0; i < LONG_MS && atomic_load(value) < least; i++)
		usleep(1000);
	ck_assert_int_ge(atomic_load(value), least);
}

static void
check_answer(const struct waiter *waiter, size_t size)
{
	wait_for(&waiter->answers, 1);
	ck_assert(waiter->has_answer);
	ck_assert(waiter->is_right);
	ck_assert_uint_eq(waiter->size, size);
}

static void
sum_outbound(void *argument, const struct internode_outbound *outbound)
{
	struct internode_outbound *sums = argument;

	sums[outbound->kind].sent_count += outbound->sent_count;
	sums[outbound->kind].sent_bytes += outbound->sent_bytes;
	sums[outbound->kind].overload_count += outbound->overload_count;
	sums[outbound->kind].expired_count += outbound->expired_count;
	sums[outbound->kind].error_count += outbound->error_count;
	sums[outbound->kind].pending_count += outbound->pending_count;
	sums[outbound->kind].pending_bytes += outbound->pending_bytes;
	sums[outbound->kind].reserve_bytes += outbound->reserve_bytes;
	sums[outbound->kind].successful_connection_attempts +=
	    outbound->successful_connection_attempts;
}

static void
sum_inbound(void *argument, const struct internode_inbound *inbound)
{
	struct internode_inbound *sum = argument;

	sum->received_count += inbound->received_count;
	sum->received_bytes += inbound->received_bytes;
	sum->processed_count += inbound->processed_count;
	sum->scheduled_count += inbound->scheduled_count;
	sum->error_count += inbound->error_count;
	sum->throttled_count += inbound->throttled_count;
	sum->using_reserve_bytes += inbound->using_reserve_bytes;
	sum->corrupt_frames_recovered += inbound->corrupt_frames_recovered;
	sum->corrupt_frames_unrecovered += inbound->corrupt_frames_unrecovered;
}

/* Messages of each size over each link, both ways. */
static void
check_traffic(const char *const *options)
{
	static const size_t sizes[] = {0, 1, 200, 60000, 70000, 131072, 500000, 3 << 20};
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 4 };
	static struct waiter waiters[NODES][ROUNDS][SIZES];
	struct internode_outbound sums[INTERNODE_KINDS] = {0};
	struct internode_inbound inbound = {0};
	int port = free_port();
	struct host *hosts[NODES];
	struct waiter urgent;

	for (int i = 0; i < NODES; i++)
		hosts[i] = host_start(i + 1, port, options);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t size = 0; size < SIZES; size++)
			for (int i = 0; i < NODES; i++)
				ask(hosts[i], host_peer(hosts[i], hosts[1 - i]),
				    size % 2 == 0 ? VERB_MUTATION_REQ : VERB_READ_REQ, sizes[size],
				    LONG_MS, &waiters[i][round][size]);
	ask(hosts[0], host_peer(hosts[0], hosts[1]), VERB_ECHO_REQ, 100, LONG_MS, &urgent);
	check_answer(&urgent, 100);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t size = 0; size < SIZES; size++)
			for (int i = 0; i < NODES; i++)
				check_answer(&waiters[i][round][size], sizes[size]);
	internode_each_outbound(hosts[0]->node.internode, sum_outbound, sums);
	/* Its own requests and the answers to the other's. */
	ck_assert_uint_eq(sums[INTERNODE_LARGE].sent_count, 2 * ROUNDS * 4);
	ck_assert_uint_eq(sums[INTERNODE_SMALL].sent_count, 2 * ROUNDS * 4);
	ck_assert_uint_eq(sums[INTERNODE_URGENT].sent_count, 1);
	for (int kind = 0; kind < INTERNODE_KINDS; kind++) {
		ck_assert_uint_eq(sums[kind].pending_count, 0);
		ck_assert_uint_eq(sums[kind].pending_bytes, 0);
		ck_assert_uint_eq(sums[kind].reserve_bytes, 0);
		ck_assert_uint_eq(sums[kind].error_count, 0);
	}
	internode_each_inbound(hosts[0]->node.internode, sum_inbound, &inbound);
	ck_assert_uint_eq(inbound.received_count, 2 * ROUNDS * SIZES + 1);
	ck_assert_uint_eq(inbound.error_count, 0);
	for (int i = 0; i < NODES; i++)
		host_stop(hosts[i]);
}

START_TEST(test_messages_of_all_sizes)
{
	check_traffic(NULL);
}
END_TEST

START_TEST(test_messages_with_lz4)
{
	static const char *const options[] = {"internode_compression=all", NULL};

	check_traffic(options);
}
END_TEST

/* The limits are small: sockets are not read meanwhile, and nothing is lost. */
START_TEST(test_receiver_holds_back)
{
	static const char *const options[] = {"internode_application_receive_queue_capacity=4KiB",
	    "internode_application_receive_queue_reserve_endpoint_capacity=8KiB", NULL};

	check_traffic(options);
}
END_TEST

/* ---- TLS ------------------------------------------------------------------------------------ */

static EVP_PKEY *
make_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	ck_assert_ptr_nonnull(key);
	return key;
}

/* A certificate that signs itself and names `address`; its PEM file with the key. */
static void
make_certificate(const char *path, const char *address)
{
	EVP_PKEY *key = make_key();
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);
	char alternative[64];
	X509_EXTENSION *extension;
	FILE *file = fopen(path, "w");

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600);
	X509_NAME_add_entry_by_txt(
	    name, "CN", MBSTRING_ASC, (const unsigned char *)address, -1, -1, 0);
	X509_set_issuer_name(certificate, name);
	X509_set_pubkey(certificate, key);
	snprintf(alternative, sizeof(alternative), "IP:%s", address);
	extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternative);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
	ck_assert_ptr_nonnull(file);
	PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
	PEM_write_X509(file, certificate);
	fclose(file);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static char tls_folder[64];
static char tls_text[8][160];

static void
tls_setup(void)
{
	char path[256];

	snprintf(tls_folder, sizeof(tls_folder), "/tmp/internode_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(tls_folder));
	snprintf(path, sizeof(path), "%s/one.pem", tls_folder);
	make_certificate(path, "127.0.20.1");
	snprintf(path, sizeof(path), "%s/two.pem", tls_folder);
	make_certificate(path, "127.0.20.2");
	snprintf(path, sizeof(path), "cat %s/one.pem %s/two.pem > %s/both.pem", tls_folder,
	    tls_folder, tls_folder);
	ck_assert_int_eq(system(path), 0);
}

static void
tls_teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", tls_folder);
	ck_assert_int_eq(system(command), 0);
}

/* NULL at the end; in memory of the test. */
static const char *const *
tls_options(const char *keystore, const char *truststore, const char *more)
{
	static const char *options[8];

	snprintf(tls_text[0], sizeof(tls_text[0]), "server_encryption_options.keystore=%s/%s",
	    tls_folder, keystore);
	snprintf(tls_text[1], sizeof(tls_text[1]), "server_encryption_options.truststore=%s/%s",
	    tls_folder, truststore);
	options[0] = tls_text[0];
	options[1] = tls_text[1];
	options[2] = "server_encryption_options.internode_encryption=all";
	options[3] = "server_encryption_options.require_client_auth=true";
	options[4] = more;
	options[5] = NULL;
	return options;
}

START_TEST(test_messages_over_tls)
{
	check_traffic(tls_options("both.pem", "both.pem", "internode_compression=all"));
}
END_TEST

/* Does host 1 get through to host 2? */
static bool
gets_through(const char *const *first, const char *const *second)
{
	int port = free_port();
	struct host *one, *two;
	struct waiter waiter;
	bool is_through;

	one = host_start(1, port, first);
	/* `first` may be tls_options() of before. */
	two = host_start(2, port, second == NULL ? first : second);
	ask(one, host_peer(one, two), VERB_MUTATION_REQ, 10, 2 * SECOND_MS, &waiter);
	wait_for(&waiter.answers, 1);
	is_through = waiter.has_answer;
	host_stop(one);
	host_stop(two);
	return is_through;
}

START_TEST(test_endpoint_verification)
{
	static const char verify[] = "server_encryption_options.require_endpoint_verification=true";
	int port = free_port();
	struct host *one = host_start(1, port, tls_options("one.pem", "both.pem", verify));
	struct host *two = host_start(2, port, tls_options("two.pem", "both.pem", verify));
	struct waiter waiter;

	ask(one, host_peer(one, two), VERB_MUTATION_REQ, 10, LONG_MS, &waiter);
	check_answer(&waiter, 10);
	host_stop(two);
	/* Somebody else's certificate, though one that is trusted. */
	two = host_start(2, port, tls_options("one.pem", "both.pem", NULL));
	ask(one, host_peer(one, two), VERB_MUTATION_REQ, 10, 2 * SECOND_MS, &waiter);
	wait_for(&waiter.answers, 1);
	ck_assert(!waiter.has_answer);
	ck_assert_int_eq(atomic_load(&two->handled), 0);
	host_stop(one);
	host_stop(two);
}
END_TEST

START_TEST(test_stranger_certificate_is_refused)
{
	int port = free_port();
	struct host *one = host_start(1, port, tls_options("one.pem", "both.pem", NULL));
	struct host *two = host_start(2, port, tls_options("two.pem", "two.pem", NULL));
	struct waiter waiter;

	ask(one, host_peer(one, two), VERB_MUTATION_REQ, 10, 2 * SECOND_MS, &waiter);
	wait_for(&waiter.answers, 1);
	ck_assert(!waiter.has_answer);
	ck_assert_int_eq(atomic_load(&two->handled), 0);
	host_stop(one);
	host_stop(two);
}
END_TEST

START_TEST(test_plain_node_is_refused_where_encryption_is_wanted)
{
	static const char *const plain[] = {NULL};

	ck_assert(!gets_through(plain, tls_options("both.pem", "both.pem", NULL)));
}
END_TEST

/* server_encryption_options.optional: a ring is moved to TLS node by node. */
START_TEST(test_optional_encryption_takes_both)
{
	static const char *const plain[] = {NULL};
	int port = free_port();
	struct host *one = host_start(1, port, plain);
	struct host *two = host_start(2, port,
	    tls_options("both.pem", "both.pem", "server_encryption_options.optional=true"));
	struct waiter waiter;

	/* A mutation that nobody answers: the way back is encrypted, which node 1 does not speak. */
	ask(one, host_peer(one, two), VERB_HINT_REQ, 10, 3 * SECOND_MS, &waiter);
	wait_for(&two->handled, 1);
	wait_for(&waiter.answers, 1);
	host_stop(one);
	host_stop(two);
}
END_TEST

/* ---- Load ----------------------------------------------------------------------------------- */

enum { LOAD_THREADS = 4, LOAD_REQUESTS = 2000 };

static struct {
	struct host *host;
	struct peer *to;
	struct waiter waiters[LOAD_THREADS][LOAD_REQUESTS];
} load;

static void *
load_main(void *argument)
{
	struct waiter *waiters = argument;

	for (int i = 0; i < LOAD_REQUESTS; i++)
		ask(load.host, load.to, i % 2 == 0 ? VERB_MUTATION_REQ : VERB_READ_REQ,
		    (size_t)(i % 300), LONG_MS, &waiters[i]);
	return NULL;
}

START_TEST(test_many_threads_send_at_once)
{
	int port = free_port();
	struct host *one = host_start(1, port, NULL), *two = host_start(2, port, NULL);
	pthread_t threads[LOAD_THREADS];

	load.host = one;
	load.to = host_peer(one, two);
	for (int i = 0; i < LOAD_THREADS; i++)
		pthread_create(&threads[i], NULL, load_main, load.waiters[i]);
	for (int i = 0; i < LOAD_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < LOAD_THREADS; i++)
		for (int j = 0; j < LOAD_REQUESTS; j++)
			check_answer(&load.waiters[i][j], (size_t)(j % 300));
	ck_assert_uint_eq(messaging_waiting(one->messaging), 0);
	host_stop(one);
	host_stop(two);
}
END_TEST

/* ---- Answers of a turn ----------------------------------------------------------------------- */

enum { TURN_ANSWERS = 200 };

struct turn;

/* Who waits for an answer, and then has something to do. */
struct turn_waiter {
	struct message_callback callback; /* first */
	struct task task;
	struct turn *turn;
	atomic_int runs;
};

struct turn {
	struct loop_message message; /* first */
	struct host *host;
	struct peer *from;
	struct turn_waiter waiters[TURN_ANSWERS], alone;
	atomic_int told, ran, ran_early, ran_on_loop;
	int ran_within; /* when the turn was over */
	bool takes_part; /* of the loop's thread: the one that is not in a turn */
	atomic_int is_over;
};

static void
turn_work(struct task *task, struct worker *worker)
{
	struct turn_waiter *waiter =
	    (struct turn_waiter *)((char *)task - offsetof(struct turn_waiter, task));
	struct turn *turn = waiter->turn;

	if (atomic_load(&turn->told) < TURN_ANSWERS)
		atomic_fetch_add(&turn->ran_early, 1);
	if (worker_is_current(worker) && worker->is_loop)
		atomic_fetch_add(&turn->ran_on_loop, 1);
	atomic_fetch_add(&waiter->runs, 1);
	atomic_fetch_add(&turn->ran, 1);
}

static void
turn_submit(struct turn_waiter *waiter, struct worker *worker)
{
	struct cluster_env *env = waiter->turn->host->cluster;
	struct task *rest;

	waiter->task.run = turn_work;
	ck_assert_uint_eq(
	    env->submit(env, CLUSTER_STAGE_REQUEST_RESPONSE, &waiter->task, 1, worker, &rest), 1);
}

static void
turn_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct turn_waiter *waiter = (struct turn_waiter *)callback;

	(void)reason;
	ck_assert_ptr_nonnull(answer);
	atomic_fetch_add(&waiter->turn->told, 1);
	turn_submit(waiter, worker);
}

/* All answers are there at once: every other one is no message, as those of writes are. */
static void
turn_run(struct loop_message *message, struct loop *loop)
{
	struct turn *turn = (struct turn *)message;
	struct internode_loop *self = loop->internode;

	for (int i = 0; i < TURN_ANSWERS; i++) {
		uint64_t id = turn->waiters[i].callback.id;
		struct message *answer;

		if (i % 2 == 0) {
			internode_answers_add(&self->answers,
			    &(struct message_answer){.peer = turn->from,
				.id = id,
				.verb = VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET});
			continue;
		}
		answer = message_new(VERB_HINT_REQ + VERB_RESPONSE_OFFSET, NULL);
		answer->id = id;
		answer->from = turn->from->endpoint;
		answer->peer = turn->from;
		if (self->received_last != NULL)
			self->received_last->next = answer;
		else
			self->received = answer;
		self->received_last = answer;
	}
	internode_turn(loop);
	turn->ran_within = atomic_load(&turn->ran);
	if (turn->takes_part)
		turn_submit(&turn->alone, &loop->worker);
	atomic_store(&turn->is_over, 1);
}

/* Answers come in one turn; what they leave to do is done when all of them were told, once each. */
static void
check_turn(struct turn *turn, bool has_stage)
{
	int port = free_port();
	struct host *one = host_start(1, port, NULL), *two = host_start(2, port, NULL);
	struct stage *stage = one->node.stages[NODE_STAGE_REQUEST_RESPONSE];
	struct stage_stats stats;

	memset(turn, 0, sizeof(*turn));
	turn->message.run = turn_run;
	turn->host = one;
	turn->from = host_peer(one, two);
	turn->alone.turn = turn;
	turn->takes_part = has_stage;
	for (int i = 0; i < TURN_ANSWERS; i++) {
		turn->waiters[i].turn = turn;
		turn->waiters[i].callback.on_answer = turn_answer;
		messaging_request(one->messaging, turn->from, message_new(VERB_HINT_REQ, NULL),
		    LONG_MS * UINT64_C(1000000), &turn->waiters[i].callback, NULL);
	}
	if (!has_stage)
		stage_stop(stage);
	loop_post(&one->node.network->loops[0], &turn->message);
	wait_for(&turn->is_over, 1);
	wait_for(&turn->ran, TURN_ANSWERS + has_stage);
	ck_assert_int_eq(atomic_load(&turn->told), TURN_ANSWERS);
	ck_assert_int_eq(atomic_load(&turn->ran_early), 0);
	for (int i = 0; i < TURN_ANSWERS; i++)
		ck_assert_int_eq(atomic_load(&turn->waiters[i].runs), 1);
	ck_assert_int_gt(atomic_load(&turn->ran_on_loop), 0);
	ck_assert_uint_eq(messaging_waiting(one->messaging), 0);
	host_stop(two);
	network_stop(one->node.network, 1000);
	stage_stop(stage);
	stage_stats(stage, &stats);
	ck_assert_uint_eq(stats.completed, has_stage ? TURN_ANSWERS + 1 : 0);
	host_stop(one);
}

START_TEST(test_what_answers_of_a_turn_leave_to_do_is_done_together)
{
	static struct turn turn;

	check_turn(&turn, true);
	ck_assert_int_eq(atomic_load(&turn.alone.runs), 1);
}
END_TEST

START_TEST(test_answers_of_a_turn_find_no_room_on_their_stage)
{
	static struct turn turn;

	check_turn(&turn, false);
	ck_assert_int_eq(turn.ran_within, TURN_ANSWERS);
	ck_assert_int_eq(atomic_load(&turn.ran_on_loop), TURN_ANSWERS);
}
END_TEST

/* ---- Trouble -------------------------------------------------------------------------------- */

START_TEST(test_nobody_there_is_a_timeout_and_later_a_connection)
{
	int port = free_port();
	struct host *one = host_start(1, port, NULL), *two = host_start(2, port, NULL);
	struct waiter waiter;

	ask(one, host_peer(one, two), VERB_READ_REQ, 5, LONG_MS, &waiter);
	check_answer(&waiter, 5);
	host_stop(two);
	two = xzalloc(sizeof(*two));
	snprintf(two->address, sizeof(two->address), "127.0.20.2");
	two->config.storage_port = port;
	ask(one, host_peer(one, two), VERB_READ_REQ, 5, 200, &waiter);
	wait_for(&waiter.answers, 1);
	ck_assert(!waiter.has_answer);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
	free(two);
	two = host_start(2, port, NULL);
	ask(one, host_peer(one, two), VERB_READ_REQ, 6, LONG_MS, &waiter);
	check_answer(&waiter, 6);
	host_stop(one);
	host_stop(two);
}
END_TEST

START_TEST(test_peer_that_is_down_fails_what_waits)
{
	int port = free_port();
	struct host *one = host_start(1, port, NULL);
	struct host nobody = {.address = "127.0.20.2", .config.storage_port = port};
	struct waiter waiters[3];

	for (int i = 0; i < 3; i++)
		ask(one, host_peer(one, &nobody), i == 2 ? VERB_ECHO_REQ : VERB_READ_REQ,
		    i == 1 ? 100000 : 5, 10 * LONG_MS, &waiters[i]);
	internode_peer_is_down(one->node.internode, host_peer(one, &nobody));
	for (int i = 0; i < 3; i++) {
		wait_for(&waiters[i].answers, 1);
		ck_assert_int_eq(waiters[i].reason, FAILURE_TIMEOUT);
	}
	host_stop(one);
}
END_TEST

START_TEST(test_full_queue_fails_at_once)
{
	static const char *const options[] = {"internode_application_send_queue_capacity=10KiB",
	    "internode_application_send_queue_reserve_endpoint_capacity=10KiB",
	    "internode_max_message_size=50KiB", NULL};
	enum { COUNT = 100 };
	static struct waiter waiters[COUNT];
	struct internode_outbound sums[INTERNODE_KINDS] = {0};
	int port = free_port();
	struct host *one = host_start(1, port, options);
	struct host nobody = {.address = "127.0.20.2", .config.storage_port = port};
	int failed = 0;

	for (int i = 0; i < COUNT; i++) {
		ask(one, host_peer(one, &nobody), VERB_READ_REQ, 1000, 2 * SECOND_MS, &waiters[i]);
		failed += atomic_load(&waiters[i].answers);
	}
	ck_assert_int_ge(failed, COUNT - 20);
	ck_assert_int_le(failed, COUNT - 18);
	internode_each_outbound(one->node.internode, sum_outbound, sums);
	ck_assert_uint_eq(sums[INTERNODE_SMALL].overload_count, (uint64_t)failed);
	ck_assert_uint_gt(sums[INTERNODE_SMALL].reserve_bytes, 0);
	for (int i = 0; i < COUNT; i++)
		wait_for(&waiters[i].answers, 1);
	ask(one, host_peer(one, &nobody), VERB_READ_REQ, 60000, LONG_MS, &waiters[0]);
	ck_assert_int_eq(atomic_load(&waiters[0].answers), 1);
	host_stop(one);
}
END_TEST

START_TEST(test_other_cluster_is_refused)
{
	static const char *const other[] = {"cluster_name=Another", NULL};
	static const char *const plain[] = {NULL};

	ck_assert(!gets_through(plain, other));
	ck_assert(gets_through(plain, plain));
}
END_TEST

static int
raw_connect(const struct host *host)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)host->config.storage_port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, host->address, &address.sin_addr);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Until the other side closes. */
static size_t
raw_read_all(int fd, uint8_t *out, size_t size)
{
	size_t have = 0;
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	for (;;) {
		ssize_t got;

		ck_assert_int_eq(poll(&wait, 1, LONG_MS), 1);
		got = recv(fd, out + have, size - have, 0);
		if (got <= 0)
			return have;
		have += (size_t)got;
		ck_assert_uint_lt(have, size);
	}
}

static void
put_hello(struct buffer *out, const struct host *to, uint8_t version)
{
	struct frame_hello hello = {.version_min = version,
	    .version_max = version,
	    .kind = FRAME_KIND_SMALL,
	    .from = {.address = {127, 0, 20, 9}, .size = 4, .port = 7000},
	    .cluster_name = "Test Cluster"};
	struct error err;

	ck_assert_int_eq(endpoint_parse(to->address, 7000, &hello.to, &err), 0);
	frame_put_hello(out, &hello);
}

START_TEST(test_strangers_do_no_harm)
{
	static const char *const options[] = {"internode_tcp_connect_timeout=300ms", NULL};
	static const char *const sayings[] = {
	    "GET / HTTP/1.1\r\n\r\n", "HLNI\xff\xff", "HLNI\0\0\0\0\0\0", "\x16\x03\x01", "", "HL"};
	struct host *one = host_start(1, free_port(), options);
	struct frame_welcome welcome;
	struct buffer hello;
	uint8_t answer[4096];
	struct error err;

	for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
		int fd = raw_connect(one);
		size_t size = i == 2 ? 10 : strlen(sayings[i]);

		ck_assert_int_eq(send(fd, sayings[i], size, MSG_NOSIGNAL), (ssize_t)size);
		ck_assert_uint_eq(raw_read_all(fd, answer, sizeof(answer)), 0);
		close(fd);
	}
	/* A version that nobody speaks yet is told so. */
	buffer_init(&hello);
	put_hello(&hello, one, 200);
	{
		int fd = raw_connect(one);
		size_t size;

		ck_assert_int_gt(send(fd, hello.data, hello.size, MSG_NOSIGNAL), 0);
		size = raw_read_all(fd, answer, sizeof(answer));
		ck_assert_int_eq(
		    frame_get_welcome(slice_of(answer, size), &welcome, &err), (ssize_t)size);
		ck_assert_int_eq(welcome.status, FRAME_WRONG_VERSION);
		ck_assert_str_eq(welcome.cluster_name, "Test Cluster");
		close(fd);
	}
	buffer_fini(&hello);
	host_stop(one);
}
END_TEST

struct impatient {
	struct sockaddr_in address;
	atomic_bool is_over;
};

/* Connects and goes away, all the time. */
static void *
impatient_run(void *argument)
{
	struct impatient *impatient = argument;

	while (!atomic_load(&impatient->is_over)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		(void)connect(
		    fd, (struct sockaddr *)&impatient->address, sizeof(impatient->address));
		close(fd);
	}
	return NULL;
}

/* Others wait for the node to come up: the first of its loops accepts them when all are ready for them. */
START_TEST(test_connections_come_while_the_node_starts)
{
	static const char *const options[] = {"native_transport_io_threads=16", NULL};
	int port = free_port();
	struct impatient impatient = {
	    .address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}};
	pthread_t thread;

	inet_pton(AF_INET, "127.0.20.1", &impatient.address.sin_addr);
	ck_assert_int_eq(pthread_create(&thread, NULL, impatient_run, &impatient), 0);
	for (int i = 0; i < 30; i++)
		host_stop(host_start(1, port, options));
	atomic_store(&impatient.is_over, true);
	pthread_join(thread, NULL);
}
END_TEST

/* A peer that speaks nonsense once it is let in: damaged frames, messages that are none, unknown verbs. */
START_TEST(test_nonsense_in_frames_does_no_harm)
{
	struct host *one = host_start(1, free_port(), NULL);
	struct internode_inbound inbound = {0};
	struct frame_writer writer;
	struct buffer out;
	uint8_t answer[4096];
	size_t damaged;
	int fd = raw_connect(one);
	struct messaging_verb_stats stats;

	buffer_init(&out);
	frame_writer_init(&writer, COMPRESSION_NONE);
	put_hello(&out, one, FRAME_VERSION);
	frame_put(&writer, &out, slice_of("\x00\xff", 2)); /* ends within its header */
	frame_put(&writer, &out, slice_of("", 0));
	frame_put(&writer, &out, slice_of("\x39\x00\x01\x00", 4)); /* verb 57 */
	frame_writer_flush(&writer, &out);
	frame_put(&writer, &out, slice_of("\x00\x00\x01\x00", 4));
	frame_writer_flush(&writer, &out);
	out.data[out.size - 1] ^= 1; /* passed over */
	frame_put(&writer, &out, slice_of("\x00\x00\x01\x00", 4));
	frame_writer_flush(&writer, &out);
	damaged = out.size;
	frame_put(&writer, &out, slice_of("\x00\x00\x01\x00", 4));
	frame_writer_flush(&writer, &out);
	out.data[damaged] ^= 1; /* cannot be trusted any more */
	ck_assert_int_eq(send(fd, out.data, out.size, MSG_NOSIGNAL), (ssize_t)out.size);
	raw_read_all(fd, answer, sizeof(answer));
	wait_for(&one->handled, 1);
	internode_each_inbound(one->node.internode, sum_inbound, &inbound);
	ck_assert_uint_eq(inbound.error_count, 2);
	ck_assert_uint_eq(inbound.corrupt_frames_recovered, 1);
	ck_assert_uint_eq(inbound.corrupt_frames_unrecovered, 1);
	messaging_verb_stats(one->messaging, 57, &stats);
	ck_assert_uint_eq(stats.unhandled, 1);
	close(fd);
	frame_writer_fini(&writer);
	buffer_fini(&out);
	host_stop(one);
}
END_TEST

/* ---- Timers --------------------------------------------------------------------------------- */

enum { TIMERS = 2000 };

static struct {
	struct cluster_timer timers[TIMERS];
	atomic_int fired[TIMERS];
	atomic_int count;
} timed;

static void
timed_fire(struct cluster_timer *timer)
{
	atomic_fetch_add(&timed.fired[timer - timed.timers], 1);
	atomic_fetch_add(&timed.count, 1);
}

START_TEST(test_timers_fire_once_unless_they_were_stopped)
{
	struct host *one = host_start(1, free_port(), NULL);
	int stopped = 0;

	for (int i = 0; i < TIMERS; i++) {
		timed.timers[i].fire = timed_fire;
		cluster_timer_start(
		    one->cluster, &timed.timers[i], (uint64_t)(TIMERS - i) % 50 * 1000000);
	}
	for (int i = 0; i < TIMERS; i += 3) {
		if (cluster_timer_stop(one->cluster, &timed.timers[i])) {
			stopped++;
			atomic_store(&timed.fired[i], 1); /* a second one would be seen */
		}
	}
	ck_assert_int_gt(stopped, 0);
	wait_for(&timed.count, TIMERS - stopped);
	host_stop(one);
	ck_assert_int_eq(atomic_load(&timed.count), TIMERS - stopped);
	for (int i = 0; i < TIMERS; i++)
		ck_assert_int_eq(atomic_load(&timed.fired[i]), 1);
}
END_TEST

/* ---- Streams -------------------------------------------------------------------------------- */

enum { STREAM_RECORDS = 100 };

/* Sends records whose sizes go up and down, and checks those that come. */
struct streamer {
	struct stream_user user; /* first */
	struct stream_channel *channel;
	bool is_client;
	int sent, received;
	atomic_int fulls; /* counted when the other thread may send already */
	atomic_int closed;
	bool has_error;
	size_t bytes;
};

static struct streamer stream_ends[2];

static size_t
record_size(int i)
{
	return (size_t)(i % 7 == 0 ? 1 << 20 : i % 3 == 0 ? 131068 : 1 + i * 10);
}

static void
streamer_send(struct streamer *streamer)
{
	static uint8_t bytes[1 << 20];

	while (streamer->sent < STREAM_RECORDS) {
		int i = streamer->sent++;
		uint8_t *copy = xmalloc(record_size(i));
		bool has_room;

		memcpy(copy, bytes, record_size(i));
		copy[0] = (uint8_t)i;
		has_room = stream_write(streamer->channel, slice_of(copy, record_size(i)));
		free(copy);
		if (!has_room) {
			atomic_fetch_add(&streamer->fulls, 1);
			return;
		}
	}
}

static void
streamer_record(struct stream_user *user, struct slice record)
{
	struct streamer *streamer = (struct streamer *)user;

	ck_assert_uint_eq(record.size, record_size(streamer->received));
	ck_assert_uint_eq(record.data[0], (uint8_t)streamer->received);
	streamer->received++;
	streamer->bytes += record.size;
	/* The client closes when it has all; the server has sent all by then. */
	if (streamer->received == STREAM_RECORDS && streamer->is_client)
		stream_close(streamer->channel);
}

static void
streamer_writable(struct stream_user *user)
{
	streamer_send((struct streamer *)user);
}

static void
streamer_close(struct stream_user *user, const struct error *err)
{
	struct streamer *streamer = (struct streamer *)user;

	streamer->has_error = err != NULL;
	atomic_store(&streamer->closed, 1);
}

static bool
streamer_accept(struct cluster_env *env, struct stream_channel *channel)
{
	struct streamer *streamer = &stream_ends[1];

	(void)env;
	channel->user = &streamer->user;
	streamer->channel = channel;
	streamer_send(streamer);
	return true;
}

static bool
streamer_refuse(struct cluster_env *env, struct stream_channel *channel)
{
	(void)env;
	(void)channel;
	return false;
}

static void
streamers_init(void)
{
	memset(stream_ends, 0, sizeof(stream_ends));
	for (int i = 0; i < 2; i++) {
		stream_ends[i].user = (struct stream_user){.on_record = streamer_record,
		    .on_writable = streamer_writable,
		    .on_close = streamer_close};
		stream_ends[i].is_client = i == 0;
	}
}

/* ways: 0 plain, 1 LZ4, 2 TLS. */
START_TEST(test_stream_both_ways)
{
	static const char *const lz4[] = {"internode_compression=all", NULL};
	int port = free_port();
	struct host *hosts[NODES];
	struct streamer *client = &stream_ends[0], *server = &stream_ends[1];

	streamers_init();
	host_on_stream = streamer_accept;
	for (int i = 0; i < NODES; i++)
		hosts[i] = host_start(i + 1, port,
		    _i == 0       ? NULL
			: _i == 1 ? lz4
				  : tls_options("both.pem", "both.pem", NULL));
	client->channel = hosts[0]->cluster->stream_open(
	    hosts[0]->cluster, host_peer(hosts[0], hosts[1]), &client->user);
	/* From here on the loop may send as well: only what on_writable() asks for. */
	streamer_send(client);
	wait_for(&client->closed, 1);
	wait_for(&server->closed, 1);
	ck_assert_int_eq(client->received, STREAM_RECORDS);
	ck_assert(!client->has_error);
	ck_assert(server->has_error); /* closed by peer */
	ck_assert_int_eq(server->sent, STREAM_RECORDS);
	ck_assert_int_gt(atomic_load(&server->fulls), 0);
	for (int i = 0; i < NODES; i++)
		host_stop(hosts[i]);
	host_on_stream = NULL;
}
END_TEST

START_TEST(test_stream_that_is_refused_or_reaches_nobody_is_closed)
{
	int port = free_port();
	struct host *one, *two;
	struct host nobody = {.address = "127.0.20.3", .config.storage_port = port};

	streamers_init();
	host_on_stream = streamer_refuse;
	one = host_start(1, port, NULL);
	two = host_start(2, port, NULL);
	(void)one->cluster->stream_open(one->cluster, host_peer(one, two), &stream_ends[0].user);
	(void)one->cluster->stream_open(
	    one->cluster, host_peer(one, &nobody), &stream_ends[1].user);
	for (int i = 0; i < 2; i++) {
		wait_for(&stream_ends[i].closed, 1);
		ck_assert(stream_ends[i].has_error);
	}
	host_stop(one);
	host_stop(two);
	host_on_stream = NULL;
}
END_TEST

START_TEST(test_end_of_a_node_ends_its_streams)
{
	int port = free_port();
	struct host *one, *two;

	streamers_init();
	host_on_stream = streamer_accept;
	one = host_start(1, port, NULL);
	two = host_start(2, port, NULL);
	stream_ends[0].is_client = false;
	stream_ends[0].channel =
	    one->cluster->stream_open(one->cluster, host_peer(one, two), &stream_ends[0].user);
	stream_pause(stream_ends[0].channel, true);
	wait_for(&one->handled, 0);
	host_stop(two);
	wait_for(&stream_ends[0].closed, 0);
	host_stop(one);
	wait_for(&stream_ends[0].closed, 1);
	ck_assert(stream_ends[0].has_error);
	host_on_stream = NULL;
}
END_TEST

static void
streamer_drop(struct stream_user *user, struct slice record)
{
	(void)user;
	(void)record;
}

static struct streamer kept = {.user = {.on_record = streamer_drop, .on_close = streamer_close}};
static atomic_int kept_count;

static bool
streamer_keep(struct cluster_env *env, struct stream_channel *channel)
{
	(void)env;
	channel->user = &kept.user;
	atomic_store(&kept_count, 1);
	return true;
}

/* Wakes that are posted between the loops' end and the end of all: their streams are closed and freed like any other. */
START_TEST(test_streams_outlive_their_loops_wakes)
{
	static const uint8_t record[8];
	int port = free_port();
	struct host *one, *two;
	struct cluster_env *env;
	struct streamer *begun = &stream_ends[0], *late = &stream_ends[1];
	struct streamer last = {.user = {.on_close = streamer_close}};

	streamers_init();
	host_on_stream = streamer_keep;
	one = host_start(1, port, NULL);
	two = host_start(2, port, NULL);
	env = one->cluster;
	begun->channel = env->stream_open(env, host_peer(one, two), &begun->user);
	wait_for(&kept_count, 1);
	network_stop(one->node.network, 1000);
	ck_assert_int_eq(atomic_load(&begun->closed), 0);
	stream_write(begun->channel, slice_of(record, sizeof(record)));
	late->channel = env->stream_open(env, host_peer(one, two), &late->user);
	stream_write(late->channel, slice_of(record, sizeof(record)));
	/* Who opened it may hold a lock that its on_close() takes. */
	ck_assert_int_eq(atomic_load(&late->closed), 0);
	internode_stop(one->node.internode);
	ck_assert_int_eq(atomic_load(&begun->closed), 1);
	ck_assert_int_eq(atomic_load(&late->closed), 1);
	ck_assert(late->has_error);
	(void)env->stream_open(env, host_peer(one, two), &last.user);
	host_stop(one);
	ck_assert_int_eq(atomic_load(&last.closed), 1);
	host_stop(two);
	host_on_stream = NULL;
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("internode");
	TCase *tcase = tcase_create("internode");
	TCase *tls = tcase_create("tls");
	SRunner *runner;
	int failed;

	/* OpenSSL writes to sockets whose other side may have gone; helenusd ignores it as well. */
	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(tcase, 300);
	tcase_set_timeout(tls, 300);
	tcase_add_checked_fixture(tls, tls_setup, tls_teardown);
	tcase_add_test(tcase, test_messages_of_all_sizes);
	tcase_add_test(tcase, test_messages_with_lz4);
	tcase_add_test(tcase, test_receiver_holds_back);
	tcase_add_test(tcase, test_many_threads_send_at_once);
	tcase_add_test(tcase, test_what_answers_of_a_turn_leave_to_do_is_done_together);
	tcase_add_test(tcase, test_answers_of_a_turn_find_no_room_on_their_stage);
	tcase_add_test(tcase, test_nobody_there_is_a_timeout_and_later_a_connection);
	tcase_add_test(tcase, test_peer_that_is_down_fails_what_waits);
	tcase_add_test(tcase, test_full_queue_fails_at_once);
	tcase_add_test(tcase, test_other_cluster_is_refused);
	tcase_add_test(tcase, test_strangers_do_no_harm);
	tcase_add_test(tcase, test_connections_come_while_the_node_starts);
	tcase_add_test(tcase, test_nonsense_in_frames_does_no_harm);
	tcase_add_test(tcase, test_timers_fire_once_unless_they_were_stopped);
	tcase_add_test(tcase, test_stream_that_is_refused_or_reaches_nobody_is_closed);
	tcase_add_test(tcase, test_end_of_a_node_ends_its_streams);
	tcase_add_test(tcase, test_streams_outlive_their_loops_wakes);
	tcase_add_test(tls, test_messages_over_tls);
	tcase_add_test(tls, test_endpoint_verification);
	tcase_add_test(tls, test_stranger_certificate_is_refused);
	tcase_add_test(tls, test_plain_node_is_refused_where_encryption_is_wanted);
	tcase_add_test(tls, test_optional_encryption_takes_both);
	tcase_add_loop_test(tls, test_stream_both_ways, 0, 3);
	suite_add_tcase(suite, tcase);
	suite_add_tcase(suite, tls);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
