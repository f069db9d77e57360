/* SPDX-License-Identifier: Apache-2.0 */
/* The network stage over real sockets, with an executor that answers anything. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/log.h"
#include "protocol/message.h"
#include "protocol/segment.h"
#include "server/events.h"
#include "tests/unit/server/null_executor.h"

/* ---- a server of one test ----------------------------------------------------------------------- */

struct server {
	struct config config;
	struct env *env;
	struct node node;
};

/* options: "key=value" strings, NULL at the end. */
static struct server *
server_start(const char *const *options)
{
	struct server *server = xzalloc(sizeof(*server));
	struct error err;

	log_set_level("ROOT", LOG_OFF);
	server->env = env_posix_new();
	config_init(&server->config);
	ck_assert_int_eq(config_set(&server->config, "rpc_address", "127.0.0.1", &err), 0);
	ck_assert_int_eq(config_set(&server->config, "native_transport_port", "0", &err), 0);
	ck_assert_int_eq(config_set(&server->config, "native_transport_io_threads", "2", &err), 0);
	for (; options != NULL && *options != NULL; options++)
		ck_assert_msg(
		    config_set_option(&server->config, *options, &err) == 0, "%s", err.text);
	ck_assert_msg(config_finish(&server->config, &err) == 0, "%s", err.text);
	node_init(&server->node, &server->config, server->env);
	server->node.executor = executor_new(&server->node);
	server->node.network = network_new(&server->node);
	ck_assert_msg(network_start(server->node.network, &err) == 0, "%s", err.text);
	return server;
}

static void
server_stop(struct server *server)
{
	network_stop(server->node.network, 5000);
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		stage_free(server->node.stages[i]);
	executor_free(server->node.executor); /* waits for its threads; then the loops may go */
	network_free(server->node.network);
	metrics_fini(&server->node.metrics);
	close(server->node.stop_fd);
	config_fini(&server->config);
	env_free(server->env);
	free(server);
}

/* ---- a raw client --------------------------------------------------------------------------------- */

struct client {
	int fd;
	struct buffer in;
	size_t at; /* consumed of in */
};

static void
client_connect(struct client *client, const struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	    .sin_port = htons(network_port(server->node.network)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	client->at = 0;
	buffer_init(&client->in);
	ck_assert_int_eq(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void
client_close(struct client *client)
{
	close(client->fd);
	buffer_fini(&client->in);
}

static void
client_send(struct client *client, struct slice bytes)
{
	while (bytes.size > 0) {
		ssize_t sent = send(client->fd, bytes.data, bytes.size, MSG_NOSIGNAL);

		ck_assert_int_gt(sent, 0);
		bytes = slice_of(bytes.data + sent, bytes.size - (size_t)sent);
	}
}

/* False: closed, or nothing for five seconds. */
static bool
client_fill(struct client *client)
{
	struct pollfd wait = {.fd = client->fd, .events = POLLIN};
	uint8_t part[65536];
	ssize_t got;

	if (poll(&wait, 1, 5000) != 1)
		return false;
	got = recv(client->fd, part, sizeof(part), 0);
	if (got <= 0)
		return false;
	buffer_put(&client->in, part, (size_t)got);
	return true;
}

static struct slice
client_left(const struct client *client)
{
	return slice_of(client->in.data + client->at, client->in.size - client->at);
}

/* The next plain envelope; false when the server closes first. The body lives until the next call. */
static bool
client_next(struct client *client, struct envelope *envelope)
{
	struct envelope_decoder decoder;
	struct error err;
	size_t consumed;

	envelope_decoder_init(&decoder, true, 256 << 20);
	for (;;) {
		enum envelope_result result = client->in.size == client->at
		    ? ENVELOPE_MORE
		    : envelope_decode(&decoder, client_left(client), &consumed, envelope, &err);

		if (result == ENVELOPE_ONE) {
			client->at += consumed;
			return true;
		}
		ck_assert_msg(result == ENVELOPE_MORE, "%s", err.text);
		if (!client_fill(client))
			return false;
	}
}

static void
put_frame(struct buffer *out, uint8_t version, uint8_t opcode, int16_t stream, struct slice body)
{
	struct envelope_header header = {
	    .version = version, .opcode = opcode, .stream = stream, .length = (uint32_t)body.size};
	uint8_t *at = buffer_append(out, ENVELOPE_HEADER_SIZE);

	envelope_store_header(at, &header);
	buffer_put_slice(out, body);
}

static void
put_query(struct buffer *out, uint8_t version, int16_t stream, const char *text)
{
	struct buffer body;

	buffer_init(&body);
	buffer_put_u32(&body, (uint32_t)strlen(text));
	buffer_put_string(&body, text);
	buffer_put_u16(&body, 1);
	if (version >= 5)
		buffer_put_u32(&body, 0);
	else
		buffer_put_u8(&body, 0);
	put_frame(out, version, OPCODE_QUERY, stream, buffer_slice(&body));
	buffer_fini(&body);
}

static void
put_startup(struct buffer *out, uint8_t version, const char *const *pairs)
{
	struct buffer body;
	uint16_t count = 1;

	for (const char *const *pair = pairs; pair != NULL && *pair != NULL; pair += 2)
		count++;
	buffer_init(&body);
	buffer_put_u16(&body, count);
	buffer_put_u16(&body, 11);
	buffer_put_string(&body, "CQL_VERSION");
	buffer_put_u16(&body, 5);
	buffer_put_string(&body, "3.0.0");
	for (; pairs != NULL && *pairs != NULL; pairs++) {
		buffer_put_u16(&body, (uint16_t)strlen(*pairs));
		buffer_put_string(&body, *pairs);
	}
	put_frame(out, version, OPCODE_STARTUP, 1, buffer_slice(&body));
	buffer_fini(&body);
}

static void
client_startup(struct client *client, uint8_t version, const char *const *pairs)
{
	struct envelope envelope;
	struct buffer out;

	buffer_init(&out);
	put_startup(&out, version, pairs);
	client_send(client, buffer_slice(&out));
	buffer_fini(&out);
	ck_assert(client_next(client, &envelope));
	ck_assert_int_eq(envelope.header.opcode, OPCODE_READY);
	ck_assert_int_eq(envelope.header.stream, 1);
	ck_assert_int_eq(envelope.header.version, version);
}

static void
client_query(struct client *client, uint8_t version, int16_t stream, const char *text)
{
	struct buffer out;

	buffer_init(&out);
	put_query(&out, version, stream, text);
	client_send(client, buffer_slice(&out));
	buffer_fini(&out);
}

static void
expect(struct client *client, uint8_t opcode, int16_t stream)
{
	struct envelope envelope;

	ck_assert(client_next(client, &envelope));
	ck_assert_int_eq(envelope.header.opcode, opcode);
	ck_assert_int_eq(envelope.header.stream, stream);
}

/* An ERROR with this code whose text contains the words. */
static void
expect_error(struct client *client, int16_t stream, uint32_t code, const char *words)
{
	struct envelope envelope;
	char text[1024] = "";

	ck_assert(client_next(client, &envelope));
	ck_assert_int_eq(envelope.header.opcode, OPCODE_ERROR);
	ck_assert_int_eq(envelope.header.stream, stream);
	ck_assert_uint_eq(load_u32(envelope.body.data), code);
	memcpy(text, envelope.body.data + 6, load_u16(envelope.body.data + 4));
	ck_assert_msg(strstr(text, words) != NULL, "'%s' has no '%s'", text, words);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

START_TEST(test_requests_sent_byte_by_byte_are_answered)
{
	struct server *server = server_start(NULL);
	struct client client;
	struct buffer out;

	client_connect(&client, server);
	buffer_init(&out);
	put_frame(&out, 4, OPCODE_OPTIONS, 7, slice_empty);
	put_startup(&out, 4, NULL);
	put_query(&out, 4, 2, "x");
	put_query(&out, 4, 3, "BIG 3000");
	for (size_t i = 0; i < out.size; i++)
		client_send(&client, slice_of(out.data + i, 1));
	expect(&client, OPCODE_SUPPORTED, 7);
	expect(&client, OPCODE_READY, 1);
	expect(&client, OPCODE_RESULT, 2);
	expect(&client, OPCODE_RESULT, 3);
	buffer_fini(&out);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_everything_in_one_write_is_answered)
{
	struct server *server = server_start(NULL);
	struct client client;
	struct buffer out;
	bool seen[2000] = {false};

	client_connect(&client, server);
	buffer_init(&out);
	put_startup(&out, 4, NULL);
	for (int i = 0; i < 2000; i++)
		put_query(&out, 4, (int16_t)i, i % 3 == 0 ? "LATER" : i % 3 == 1 ? "x" : "BIG 700");
	client_send(&client, buffer_slice(&out));
	expect(&client, OPCODE_READY, 1);
	for (int i = 0; i < 2000; i++) {
		struct envelope envelope;

		ck_assert(client_next(&client, &envelope));
		ck_assert_int_eq(envelope.header.opcode, OPCODE_RESULT);
		ck_assert(!seen[envelope.header.stream]);
		seen[envelope.header.stream] = true;
	}
	buffer_fini(&out);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_a_slow_request_does_not_hold_the_others)
{
	struct server *server = server_start(NULL);
	struct client client;

	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	client_query(&client, 4, 1, "SLEEP 300");
	client_query(&client, 4, 2, "x");
	expect(&client, OPCODE_RESULT, 2);
	expect(&client, OPCODE_RESULT, 1);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_request_before_startup_is_refused_and_the_connection_lives)
{
	struct server *server = server_start(NULL);
	struct client client;

	client_connect(&client, server);
	client_query(&client, 4, 9, "x");
	expect_error(&client, 0, 0x000A, "Unexpected message QUERY, expecting STARTUP or OPTIONS");
	client_startup(&client, 4, NULL);
	client_query(&client, 4, 9, "x");
	expect(&client, OPCODE_RESULT, 9);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_unknown_version_gets_the_text_that_drivers_match)
{
	struct server *server = server_start(NULL);
	struct client client;
	struct buffer out;

	client_connect(&client, server);
	buffer_init(&out);
	put_frame(&out, 66, OPCODE_OPTIONS, 3, slice_empty);
	client_send(&client, buffer_slice(&out));
	expect_error(&client, 0, 0x000A, "Invalid or unsupported protocol version (66)");
	client_startup(&client, 4, NULL);
	buffer_fini(&out);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_oversized_frame_is_read_away_and_refused)
{
	static const uint8_t zeros[300000];
	static const char *const options[] = {"native_transport_max_frame_size=64KiB", NULL};
	struct server *server = server_start(options);
	struct client client;
	struct buffer out;

	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	buffer_init(&out);
	put_frame(&out, 4, OPCODE_QUERY, 5, slice_of(zeros, 300000));
	client_send(&client, buffer_slice(&out));
	client_query(&client, 4, 6, "x");
	expect_error(&client, 5, 0x2200, "Request is too big");
	expect(&client, OPCODE_RESULT, 6);
	buffer_fini(&out);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_large_frames_grow_the_read_buffer)
{
	struct server *server = server_start(NULL);
	struct client client;
	struct buffer out;
	char *text = xzalloc(3000001);

	memset(text, 'y', 3000000);
	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	buffer_init(&out);
	for (int i = 0; i < 3; i++)
		put_query(&out, 4, (int16_t)i, text);
	put_query(&out, 4, 3, "x");
	client_send(&client, buffer_slice(&out));
	for (int16_t i = 0; i < 4; i++)
		expect(&client, OPCODE_RESULT, i);
	free(text);
	buffer_fini(&out);
	client_close(&client);
	server_stop(server);
}
END_TEST

/* ---- v5 ------------------------------------------------------------------------------------------------ */

/* The next envelope out of segments; plain segments only. */
static void
framed_next(struct client *client, struct segment_decoder *decoder, struct buffer *held,
    size_t *held_at, struct envelope *envelope)
{
	struct envelope_decoder envelopes;
	struct error err;
	size_t consumed;

	envelope_decoder_init(&envelopes, true, 0);
	for (;;) {
		struct envelope_header header;
		struct slice payload;
		enum segment_result result;

		if (held->size > *held_at &&
		    envelope_decode(&envelopes,
			slice_of(held->data + *held_at, held->size - *held_at), &consumed, envelope,
			&err) == ENVELOPE_ONE) {
			*held_at += consumed;
			return;
		}
		result = client->in.size == client->at
		    ? SEGMENT_MORE
		    : segment_decode(
			  decoder, client_left(client), &consumed, &payload, &header, &err);
		if (result == SEGMENT_PAYLOAD) {
			buffer_put_slice(held, payload);
			client->at += consumed;
			continue;
		}
		ck_assert_msg(result == SEGMENT_MORE, "%s", err.text);
		if (client->in.size > client->at)
			client->at += consumed;
		ck_assert(client_fill(client));
	}
}

static void
check_v5(const char *compression)
{
	const char *pairs[] = {"COMPRESSION", compression, NULL};
	enum compression kind = compression == NULL ? COMPRESSION_NONE : COMPRESSION_LZ4;
	struct server *server = server_start(NULL);
	struct client client;
	struct segment_decoder decoder;
	struct buffer out, held, plain;
	size_t held_at = 0;
	struct envelope envelope;
	char *text = xzalloc(400001);
	bool seen[103] = {false};

	memset(text, 'z', 400000);
	client_connect(&client, server);
	client_startup(&client, 5, compression == NULL ? NULL : pairs);
	segment_decoder_init(&decoder, kind, 256 << 20);
	buffer_init(&out);
	buffer_init(&held);
	buffer_init(&plain);
	for (int i = 0; i < 100; i++)
		put_query(&plain, 5, (int16_t)i, i % 2 == 0 ? "x" : "BIG 3000");
	segment_put(&out, buffer_slice(&plain), kind);
	buffer_clear(&plain);
	put_query(&plain, 5, 100, text); /* cut over several segments */
	segment_put(&out, buffer_slice(&plain), kind);
	buffer_clear(&plain);
	put_query(&plain, 5, 101, "BIG 500000");
	put_query(&plain, 5, 102, "LATER");
	segment_put(&out, buffer_slice(&plain), kind);
	for (size_t at = 0; at < out.size; at += 1000)
		client_send(
		    &client, slice_of(out.data + at, out.size - at < 1000 ? out.size - at : 1000));
	for (int i = 0; i < 103; i++) {
		framed_next(&client, &decoder, &held, &held_at, &envelope);
		ck_assert_int_eq(envelope.header.opcode, OPCODE_RESULT);
		ck_assert(!seen[envelope.header.stream]);
		seen[envelope.header.stream] = true;
		if (envelope.header.stream == 101)
			ck_assert_uint_eq(envelope.body.size, 500000);
	}
	segment_decoder_fini(&decoder);
	buffer_fini(&out);
	buffer_fini(&held);
	buffer_fini(&plain);
	free(text);
	client_close(&client);
	server_stop(server);
}

START_TEST(test_v5_segments_carry_small_and_cut_envelopes)
{
	check_v5(NULL);
}
END_TEST

START_TEST(test_v5_lz4_segments)
{
	check_v5("lz4");
}
END_TEST

START_TEST(test_v5_bad_crc_gets_an_error_then_the_connection_is_closed)
{
	struct server *server = server_start(NULL);
	struct client client, other;
	struct segment_decoder decoder;
	struct buffer out, held, plain;
	size_t held_at = 0;
	struct envelope envelope;

	client_connect(&other, server);
	client_startup(&other, 4, NULL);
	client_connect(&client, server);
	client_startup(&client, 5, NULL);
	segment_decoder_init(&decoder, COMPRESSION_NONE, 0);
	buffer_init(&out);
	buffer_init(&held);
	buffer_init(&plain);
	put_query(&plain, 5, 4, "x");
	segment_put(&out, buffer_slice(&plain), COMPRESSION_NONE);
	out.data[SEGMENT_HEADER_SIZE + 12] ^= 1;
	client_send(&client, buffer_slice(&out));
	framed_next(&client, &decoder, &held, &held_at, &envelope);
	ck_assert_int_eq(envelope.header.opcode, OPCODE_ERROR);
	ck_assert_int_eq(envelope.header.stream, 0);
	ck_assert_uint_eq(load_u32(envelope.body.data), 0x000A);
	ck_assert(!client_fill(&client));
	client_query(&other, 4, 8, "x");
	expect(&other, OPCODE_RESULT, 8);
	segment_decoder_fini(&decoder);
	buffer_fini(&out);
	buffer_fini(&held);
	buffer_fini(&plain);
	client_close(&client);
	client_close(&other);
	server_stop(server);
}
END_TEST

START_TEST(test_v4_answers_are_compressed_when_it_pays)
{
	static const char *const pairs[] = {"COMPRESSION", "lz4", NULL};
	struct server *server = server_start(NULL);
	struct client client;
	struct envelope envelope;
	struct arena arena;
	struct error err;

	client_connect(&client, server);
	client_startup(&client, 4, pairs);
	client_query(&client, 4, 1, "BIG 20000");
	ck_assert(client_next(&client, &envelope));
	ck_assert_int_eq(envelope.header.flags & ENVELOPE_COMPRESSED, ENVELOPE_COMPRESSED);
	arena_init(&arena, 1024);
	ck_assert_int_eq(
	    compression_open_body(COMPRESSION_LZ4, &envelope, 1 << 20, &arena, &err), 0);
	ck_assert_uint_eq(envelope.body.size, 20000);
	arena_fini(&arena);
	client_query(&client, 4, 2, "x");
	ck_assert(client_next(&client, &envelope));
	ck_assert_int_eq(envelope.header.flags & ENVELOPE_COMPRESSED, 0);
	client_close(&client);
	server_stop(server);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------------------- */

START_TEST(test_client_that_does_not_read_is_not_read_from)
{
	struct server *server = server_start(NULL);
	struct client slow, other;
	struct buffer out;
	size_t sent = 0;

	client_connect(&slow, server);
	client_startup(&slow, 4, NULL);
	buffer_init(&out);
	for (int i = 0; i < 1000; i++)
		put_query(&out, 4, 1, "BIG 100000");
	/* It answers 100 KB for 26 bytes, until it stops reading: sockets' buffers fill up. */
	for (int waits = 0; waits < 5 && sent < (64 << 20);) {
		size_t at = sent % out.size;
		ssize_t rc =
		    send(slow.fd, out.data + at, out.size - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (rc > 0) {
			sent += (size_t)rc;
			waits = 0;
			continue;
		}
		ck_assert_int_eq(errno, EAGAIN);
		usleep(20000);
		waits++;
	}
	ck_assert_uint_lt(sent, 64 << 20);
	client_connect(&other, server);
	client_startup(&other, 4, NULL);
	client_query(&other, 4, 2, "x");
	expect(&other, OPCODE_RESULT, 2);
	/* And when it reads at last, all of it comes. */
	for (size_t i = 0; i < 50; i++)
		expect(&slow, OPCODE_RESULT, 1);
	buffer_fini(&out);
	client_close(&slow);
	client_close(&other);
	server_stop(server);
}
END_TEST

START_TEST(test_overload_is_told_to_who_asked)
{
	static const char *const options[] = {"native_transport_receive_queue_capacity=1KiB",
	    "native_transport_max_request_data_in_flight=2KiB",
	    "native_transport_max_request_data_in_flight_per_ip=2KiB", NULL};
	static const char *const pairs[] = {"THROW_ON_OVERLOAD", "1", NULL};
	struct server *server = server_start(options);
	struct client client;
	int overloaded = 0, answered = 0;

	client_connect(&client, server);
	client_startup(&client, 4, pairs);
	for (int16_t i = 0; i < 400; i++)
		client_query(&client, 4, i, "SLEEP 20");
	for (int i = 0; i < 400; i++) {
		struct envelope envelope;

		ck_assert(client_next(&client, &envelope));
		if (envelope.header.opcode == OPCODE_ERROR) {
			ck_assert_uint_eq(load_u32(envelope.body.data), 0x1001);
			overloaded++;
		} else {
			answered++;
		}
	}
	ck_assert_int_gt(overloaded, 0);
	ck_assert_int_gt(answered, 0);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_overload_pauses_the_others_and_answers_all)
{
	static const char *const options[] = {"native_transport_receive_queue_capacity=1KiB",
	    "native_transport_max_request_data_in_flight=2KiB",
	    "native_transport_max_request_data_in_flight_per_ip=2KiB", NULL};
	struct server *server = server_start(options);
	struct client client;

	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	for (int16_t i = 0; i < 400; i++)
		client_query(&client, 4, i, "SLEEP 1");
	for (int i = 0; i < 400; i++) {
		struct envelope envelope;

		ck_assert(client_next(&client, &envelope));
		ck_assert_int_eq(envelope.header.opcode, OPCODE_RESULT);
	}
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_rate_limit_refuses_what_is_over_it)
{
	static const char *const options[] = {"native_transport_rate_limiting_enabled=true",
	    "native_transport_max_requests_per_second=20", NULL};
	static const char *const pairs[] = {"THROW_ON_OVERLOAD", "1", NULL};
	struct server *server = server_start(options);
	struct client client;
	int refused = 0;

	client_connect(&client, server);
	client_startup(&client, 4, pairs);
	for (int16_t i = 0; i < 100; i++) {
		struct envelope envelope;

		client_query(&client, 4, i, "x");
		ck_assert(client_next(&client, &envelope));
		refused += envelope.header.opcode == OPCODE_ERROR;
	}
	ck_assert_int_gt(refused, 50);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_connections_over_the_limit_are_closed)
{
	static const char *const options[] = {
	    "native_transport_max_concurrent_connections=3", NULL};
	struct server *server = server_start(options);
	struct client clients[4];

	for (int i = 0; i < 3; i++) {
		client_connect(&clients[i], server);
		client_startup(&clients[i], 4, NULL);
	}
	client_connect(&clients[3], server);
	ck_assert(!client_fill(&clients[3]));
	client_close(&clients[0]);
	client_close(&clients[3]);
	usleep(50000);
	client_connect(&clients[3], server);
	client_startup(&clients[3], 4, NULL);
	for (int i = 1; i < 4; i++)
		client_close(&clients[i]);
	server_stop(server);
}
END_TEST

START_TEST(test_idle_connection_is_closed_after_its_timeout)
{
	static const char *const options[] = {"native_transport_idle_timeout=600ms", NULL};
	struct server *server = server_start(options);
	struct client idle, busy;

	client_connect(&idle, server);
	client_startup(&idle, 4, NULL);
	client_connect(&busy, server);
	client_startup(&busy, 4, NULL);
	client_query(&busy, 4, 1, "SLEEP 1500");
	ck_assert(!client_fill(&idle));
	expect(&busy, OPCODE_RESULT, 1);
	client_close(&idle);
	client_close(&busy);
	server_stop(server);
}
END_TEST

enum { MANY = 1000 };

static void
count_client(void *argument, const struct network_client *client)
{
	ck_assert_str_eq(client->address, "127.0.0.1");
	ck_assert_str_eq(client->stage, "ready");
	ck_assert_int_eq(client->protocol_version, 4);
	ck_assert_str_eq(client->driver_name, "test driver");
	(*(int *)argument)++;
}

START_TEST(test_a_thousand_connections)
{
	static const char *const pairs[] = {"DRIVER_NAME", "test driver", NULL};
	struct server *server = server_start(NULL);
	struct client *clients = xcalloc(MANY, sizeof(*clients));
	int count = 0;

	for (int i = 0; i < MANY; i++)
		client_connect(&clients[i], server);
	for (int i = 0; i < MANY; i++)
		client_startup(&clients[i], 4, pairs);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			client_query(&clients[i], 4, (int16_t)i, "x");
		for (int i = 0; i < MANY; i++)
			expect(&clients[i], OPCODE_RESULT, (int16_t)i);
	}
	network_each_client(server->node.network, count_client, &count);
	ck_assert_int_eq(count, MANY);
	ck_assert_uint_eq(network_client_count(server->node.network), MANY);
	for (int i = 0; i < MANY; i++)
		client_close(&clients[i]);
	free(clients);
	server_stop(server);
}
END_TEST

/* ---- the rest ------------------------------------------------------------------------------------------------ */

START_TEST(test_login_is_segmented_on_v5)
{
	static const char *const options[] = {"authenticator=PasswordAuthenticator", NULL};
	struct server *server = server_start(options);
	struct client client;
	struct segment_decoder decoder;
	struct buffer out, held, plain;
	struct envelope envelope;
	size_t held_at = 0;

	client_connect(&client, server);
	buffer_init(&out);
	buffer_init(&held);
	buffer_init(&plain);
	put_startup(&out, 5, NULL);
	client_send(&client, buffer_slice(&out));
	ck_assert(client_next(&client, &envelope));
	ck_assert_int_eq(envelope.header.opcode, OPCODE_AUTHENTICATE);
	ck_assert_uint_eq(load_u16(envelope.body.data), 47);
	segment_decoder_init(&decoder, COMPRESSION_NONE, 0);
	put_query(&plain, 5, 3, "x");
	buffer_clear(&out);
	segment_put(&out, buffer_slice(&plain), COMPRESSION_NONE);
	client_send(&client, buffer_slice(&out));
	framed_next(&client, &decoder, &held, &held_at, &envelope);
	ck_assert_int_eq(envelope.header.opcode, OPCODE_ERROR);
	buffer_clear(&plain);
	put_frame(&plain, 5, OPCODE_AUTH_RESPONSE, 4, slice_of("\0\0\0\4\0u\0p", 8));
	put_query(&plain, 5, 5, "x");
	buffer_clear(&out);
	segment_put(&out, slice_of(plain.data, 9 + 8), COMPRESSION_NONE);
	client_send(&client, buffer_slice(&out));
	framed_next(&client, &decoder, &held, &held_at, &envelope);
	ck_assert_int_eq(envelope.header.opcode, OPCODE_AUTH_SUCCESS);
	buffer_clear(&out);
	segment_put(&out, slice_of(plain.data + 17, plain.size - 17), COMPRESSION_NONE);
	client_send(&client, buffer_slice(&out));
	framed_next(&client, &decoder, &held, &held_at, &envelope);
	ck_assert_int_eq(envelope.header.opcode, OPCODE_RESULT);
	segment_decoder_fini(&decoder);
	buffer_fini(&out);
	buffer_fini(&held);
	buffer_fini(&plain);
	client_close(&client);
	server_stop(server);
}
END_TEST

START_TEST(test_registered_clients_get_schema_events)
{
	struct server *server = server_start(NULL);
	struct schema_change change = {.kind = SCHEMA_CREATED,
	    .target = SCHEMA_TABLE,
	    .keyspace = slice_of_string("ks"),
	    .name = slice_of_string("t")};
	struct client client, deaf;
	struct buffer out, body;
	struct envelope envelope;

	client_connect(&deaf, server);
	client_startup(&deaf, 4, NULL);
	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	buffer_init(&out);
	buffer_init(&body);
	buffer_put_u16(&body, 1);
	buffer_put_u16(&body, 13);
	buffer_put_string(&body, "SCHEMA_CHANGE");
	put_frame(&out, 4, OPCODE_REGISTER, 2, buffer_slice(&body));
	client_send(&client, buffer_slice(&out));
	expect(&client, OPCODE_READY, 2);
	events_push_schema(server->node.network, &change);
	ck_assert(client_next(&client, &envelope));
	ck_assert_int_eq(envelope.header.opcode, OPCODE_EVENT);
	ck_assert_int_eq(envelope.header.stream, -1);
	client_query(&deaf, 4, 8, "x");
	expect(&deaf, OPCODE_RESULT, 8);
	buffer_fini(&out);
	buffer_fini(&body);
	client_close(&client);
	client_close(&deaf);
	server_stop(server);
}
END_TEST

START_TEST(test_disable_answers_what_is_in_flight_then_closes)
{
	struct server *server = server_start(NULL);
	struct client client, again;
	struct error err;

	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	client_query(&client, 4, 1, "SLEEP 200");
	usleep(50000);
	network_disable(server->node.network);
	ck_assert(!network_is_running(server->node.network));
	expect(&client, OPCODE_RESULT, 1);
	ck_assert(!client_fill(&client));
	ck_assert_int_eq(network_enable(server->node.network, &err), 0);
	client_connect(&again, server);
	client_startup(&again, 4, NULL);
	client_close(&client);
	client_close(&again);
	server_stop(server);
}
END_TEST

START_TEST(test_clients_that_vanish_in_the_middle_harm_nobody)
{
	struct server *server = server_start(NULL);
	struct client client;

	for (int i = 0; i < 100; i++) {
		struct linger linger = {.l_onoff = 1};
		struct buffer out;

		client_connect(&client, server);
		client_startup(&client, 4, NULL);
		buffer_init(&out);
		put_query(&out, 4, 1, i % 2 == 0 ? "SLEEP 5" : "LATER");
		put_query(&out, 4, 2, "BIG 200000");
		out.size -= (size_t)(i % 20);
		client_send(&client, buffer_slice(&out));
		setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		buffer_fini(&out);
		client_close(&client);
	}
	client_connect(&client, server);
	client_startup(&client, 4, NULL);
	client_query(&client, 4, 1, "x");
	expect(&client, OPCODE_RESULT, 1);
	client_close(&client);
	server_stop(server);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("network");
	TCase *tests = tcase_create("network");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, test_requests_sent_byte_by_byte_are_answered);
	tcase_add_test(tests, test_everything_in_one_write_is_answered);
	tcase_add_test(tests, test_a_slow_request_does_not_hold_the_others);
	tcase_add_test(tests, test_request_before_startup_is_refused_and_the_connection_lives);
	tcase_add_test(tests, test_unknown_version_gets_the_text_that_drivers_match);
	tcase_add_test(tests, test_oversized_frame_is_read_away_and_refused);
	tcase_add_test(tests, test_large_frames_grow_the_read_buffer);
	tcase_add_test(tests, test_v5_segments_carry_small_and_cut_envelopes);
	tcase_add_test(tests, test_v5_lz4_segments);
	tcase_add_test(tests, test_v5_bad_crc_gets_an_error_then_the_connection_is_closed);
	tcase_add_test(tests, test_v4_answers_are_compressed_when_it_pays);
	tcase_add_test(tests, test_client_that_does_not_read_is_not_read_from);
	tcase_add_test(tests, test_overload_is_told_to_who_asked);
	tcase_add_test(tests, test_overload_pauses_the_others_and_answers_all);
	tcase_add_test(tests, test_rate_limit_refuses_what_is_over_it);
	tcase_add_test(tests, test_connections_over_the_limit_are_closed);
	tcase_add_test(tests, test_idle_connection_is_closed_after_its_timeout);
	tcase_add_test(tests, test_a_thousand_connections);
	tcase_add_test(tests, test_login_is_segmented_on_v5);
	tcase_add_test(tests, test_registered_clients_get_schema_events);
	tcase_add_test(tests, test_disable_answers_what_is_in_flight_then_closes);
	tcase_add_test(tests, test_clients_that_vanish_in_the_middle_harm_nobody);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
