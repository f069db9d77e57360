/* SPDX-License-Identifier: Apache-2.0 */
#include "server/connection.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "protocol/message.h"
#include "protocol/response.h"
#include "server/loop.h"
#include "server/network_internal.h"

enum {
	CONNECTION_READS_MAX = 4, /* of one socket in one turn: others wait */
	CONNECTION_ROOM_MIN = 8 << 10, /* less room than this in a block: take another */
	CONNECTION_ANSWER_GUESS = 16 << 10,
};

static void connection_read_cb(evutil_socket_t fd, short what, void *argument);
static void connection_write_cb(evutil_socket_t fd, short what, void *argument);

/* ---- coming and going ----------------------------------------------------------------------------- */

static void
connection_link(struct connection *connection)
{
	struct loop *loop = connection->loop;

	lock_take(&loop->lock);
	connection->next = loop->connections;
	if (connection->next != NULL)
		connection->next->previous = connection;
	loop->connections = connection;
	lock_drop(&loop->lock);
}

static void
connection_unlink(struct connection *connection)
{
	struct loop *loop = connection->loop;

	lock_take(&loop->lock);
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		loop->connections = connection->next;
	lock_drop(&loop->lock);
	atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
}

/* connection_count was raised by who chose the loop, so that two choices in a row differ. */
void
connection_open(
    struct loop *loop, int fd, const char *address, uint16_t port, struct limits_address *limits)
{
	struct connection *connection = xzalloc(sizeof(*connection));
	struct network *network = loop->network;
	int on = 1;

	connection->loop = loop;
	connection->fd = fd;
	connection->limits = limits;
	connection->last_active_ns = loop->now_ns;
	connection->answer_bytes = CONNECTION_ANSWER_GUESS;
	connection->in_flight_max = CONNECTION_ANSWERS_MAX / CONNECTION_ANSWER_GUESS;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (loop->node->config->rpc_keepalive)
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	envelope_decoder_init(&connection->decoder, false, network->frame_size_max);
	connection->decoder.version_max = network->version_max;
	if (!atomic_load_explicit(&network->allows_older_versions, memory_order_relaxed))
		connection->decoder.version_min = network->version_max;
	handshake_init(&connection->handshake);
	arena_init(&connection->strings, 1024);
	snprintf(connection->client.address, sizeof(connection->client.address), "%s", address);
	connection->client.port = port;
	connection->client.throw_on_overload = network->is_throwing;
	connection->is_tls_known = network->tls_mode == NETWORK_TLS_OFF;
	connection->read_event =
	    event_new(loop->base, fd, EV_READ | EV_PERSIST, connection_read_cb, connection);
	connection->write_event =
	    event_new(loop->base, fd, EV_WRITE, connection_write_cb, connection);
	connection_link(connection);
	if (connection->read_event == NULL || connection->write_event == NULL ||
	    event_add(connection->read_event, NULL) != 0) {
		connection_close(connection);
		return;
	}
	connection->is_reading = true;
	if (loop->is_draining || loop->is_stopping)
		connection_close(connection);
}

void
connection_close(struct connection *connection)
{
	struct loop *loop = connection->loop;

	if (connection->fd < 0)
		return;
	connection_unlink(connection);
	if (connection->read_event != NULL)
		event_free(connection->read_event);
	if (connection->write_event != NULL)
		event_free(connection->write_event);
	connection->read_event = connection->write_event = NULL;
	tls_session_free(connection->tls);
	connection->tls = NULL;
	close(connection->fd);
	connection->fd = -1;
	read_block_unref(&loop->blocks, connection->block);
	connection->block = NULL;
	connection_output_fini(connection);
	connection->next_closed = loop->closed;
	loop->closed = connection;
}

static void
connection_unreserve(struct connection *connection)
{
	if (connection->reserved_bytes == 0)
		return;
	limits_give(
	    &connection->loop->network->limits, connection->limits, connection->reserved_bytes);
	connection->reserved_bytes = 0;
	connection->loop->reserved_count--;
}

void
connection_free_if_done(struct connection *connection)
{
	struct loop *loop = connection->loop;
	struct connection **link = &loop->closed;

	if (connection->fd >= 0 || connection->in_flight > 0 || connection->is_dirty ||
	    connection->is_in_paused)
		return;
	while (*link != connection)
		link = &(*link)->next_closed;
	*link = connection->next_closed;
	if (connection->handshake.is_framed)
		segment_decoder_fini(&connection->segments);
	executor_client_fini(loop->node->executor, &connection->client);
	connection_unreserve(connection);
	limits_disconnect(&loop->network->limits, connection->limits);
	arena_fini(&connection->strings);
	free(connection->options);
	free(connection);
}

void
connection_pause(struct connection *connection, unsigned why)
{
	struct loop *loop = connection->loop;

	connection->pauses |= why;
	if (connection->fd < 0)
		return;
	if (connection->is_reading) {
		event_del(connection->read_event);
		connection->is_reading = false;
		if ((why & ~(unsigned)CONNECTION_PAUSE_DRAIN) != 0)
			atomic_fetch_add_explicit(
			    &loop->node->metrics.connections_paused, 1, memory_order_relaxed);
	}
	if ((why & (CONNECTION_PAUSE_BYTES | CONNECTION_PAUSE_RATE)) != 0 &&
	    !connection->is_in_paused) {
		connection->is_in_paused = true;
		connection->next_paused = loop->paused;
		loop->paused = connection;
		loop_tick_soon(loop);
	}
}

void
connection_resume(struct connection *connection, unsigned why)
{
	connection->pauses &= ~why;
	if (connection->pauses != 0 || connection->fd < 0 || connection->is_reading)
		return;
	event_add(connection->read_event, NULL);
	connection->is_reading = true;
	/* There may be bytes that the socket no longer shows: held by TLS, or read and not cut. */
	if (connection->tls != NULL || connection->block != NULL)
		event_active(connection->read_event, EV_READ, 0);
}

/* ---- requests --------------------------------------------------------------------------------------- */

static void
connection_refuse(
    struct connection *connection, uint8_t version, int16_t stream, const struct error *err)
{
	if (err->code == ERROR_PROTOCOL)
		atomic_fetch_add_explicit(
		    &connection->loop->node->metrics.protocol_errors, 1, memory_order_relaxed);
	connection_append_error(connection, version, stream, err);
}

static void
connection_task_run(struct task *task, struct worker *worker)
{
	executor_run((struct request *)task, worker);
}

static void
connection_task_drop(struct task *task, struct worker *worker)
{
	struct request *request = (struct request *)task;

	request->is_shed = true;
	executor_time_out(request, worker);
}

static void
connection_task_ahead(struct task *task, size_t count)
{
	executor_ahead(((struct request *)task)->executor, task, count);
}

/* The node's limit on requests per second, this loop's share of it. */
static bool
connection_take_rate(struct loop *loop)
{
	struct node *node = loop->node;
	double rate;

	if (!atomic_load_explicit(&node->is_rate_limited, memory_order_relaxed))
		return true;
	rate = (double)atomic_load_explicit(&node->requests_per_second_max, memory_order_relaxed) /
	    loop->network->loop_count;
	if (loop->rate_filled_ns == 0)
		loop->rate_tokens = rate;
	else
		loop->rate_tokens += rate * (double)(loop->now_ns - loop->rate_filled_ns) / 1e9;
	if (loop->rate_tokens > rate)
		loop->rate_tokens = rate;
	loop->rate_filled_ns = loop->now_ns;
	if (loop->rate_tokens < 1)
		return false;
	loop->rate_tokens -= 1;
	return true;
}

/*
 * Room for one request: requests per second, then bytes in flight. Over a limit, a client that asked
 * to be told gets OVERLOADED (false); from the others this one is still taken, and then the socket is not
 * read until there is room (transport/CQLMessageHandler).
 */
static bool
connection_admit(struct connection *connection, struct request *request, uint32_t size)
{
	struct loop *loop = connection->loop;
	struct network *network = loop->network;
	bool throws = connection->client.throw_on_overload;

	if (!connection_take_rate(loop)) {
		if (throws)
			return false;
		connection_pause(connection, CONNECTION_PAUSE_RATE);
	}
	connection->in_flight_bytes += size;
	if (connection->reserved_bytes > 0) {
		request->charged_bytes = (uint32_t)connection->reserved_bytes;
		connection->reserved_bytes = 0;
		connection->loop->reserved_count--;
	} else if (connection->in_flight_bytes > network->receive_queue_bytes) {
		if (limits_take(&network->limits, connection->limits, size, false)) {
			request->charged_bytes = size;
		} else if (throws) {
			return false;
		} else {
			limits_take(&network->limits, connection->limits, size, true);
			request->charged_bytes = size;
			connection_pause(connection, CONNECTION_PAUSE_BYTES);
		}
	}
	if (connection->in_flight >= connection->in_flight_max)
		connection_pause(connection, CONNECTION_PAUSE_IN_FLIGHT);
	return true;
}

/* Give the body a home for as long as the request lives. */
static int
connection_keep_body(struct connection *connection, struct request *request,
    struct envelope *envelope, bool is_alone, struct error *err)
{
	struct read_block *block = connection->block;
	struct slice body;

	if (compression_open_body(handshake_body_compression(&connection->handshake), envelope,
		connection->loop->network->frame_size_max, &request->arena, err) != 0)
		return -1;
	request->header = envelope->header;
	request->body = body = envelope->body;
	if (body.data >= block->data && body.data < block->data + block->capacity) {
		block->refs++;
		request->block = block;
		return 0;
	}
	if (!connection->handshake.is_framed || body.size == 0)
		return 0; /* decompressed into the arena */
	/* A v5 payload in the decoder's memory: moved when this is all it holds, else copied. */
	if (is_alone && body.size > READ_BLOCK_SIZE / 4 &&
	    segment_decoder_take(&connection->segments, body, &request->owned))
		return 0;
	request->body = arena_copy(&request->arena, body);
	if (request->body.data == NULL)
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory for a request of %zu bytes", body.size);
	return 0;
}

static void
connection_request(struct connection *connection, struct envelope *envelope, bool is_alone)
{
	struct loop *loop = connection->loop;
	struct request *request = loop_request_get(loop);
	uint32_t size = envelope->header.length + ENVELOPE_HEADER_SIZE;
	struct error err;

	if (connection_keep_body(connection, request, envelope, is_alone, &err) != 0) {
		connection_refuse(
		    connection, envelope->header.version, envelope->header.stream, &err);
		loop_request_put(loop, request);
		return;
	}
	request->header.length = (uint32_t)request->body.size;
	request->connection = connection;
	request->client = &connection->client;
	request->executor = loop->node->executor;
	request->task.run = connection_task_run;
	request->task.drop = connection_task_drop;
	request->task.ahead = connection_task_ahead;
	request->task.submitted_ns = loop->now_ns;
	request->wire_bytes = size;
	connection->in_flight++;
	/* One writer: a plain add, seen by the walkers sooner or later. */
	atomic_store_explicit(&connection->client.request_count,
	    atomic_load_explicit(&connection->client.request_count, memory_order_relaxed) + 1,
	    memory_order_relaxed);
	if (!connection_admit(connection, request, size)) {
		atomic_fetch_add_explicit(
		    &loop->node->metrics.requests_discarded, 1, memory_order_relaxed);
		request->is_shed = true;
		executor_overloaded(request, &loop->worker);
		return;
	}
	request->stage = (uint8_t)executor_stage_of(request->executor, request);
	loop_add(loop, request);
}

/* ---- what the network stage answers itself ---------------------------------------------------------- */

static void
connection_options(struct connection *connection, const struct envelope_header *header)
{
	struct buffer buffer;
	struct response response;

	buffer_init(&buffer);
	response =
	    response_begin(&buffer, header->version, header->stream, OPCODE_SUPPORTED, 0, NULL);
	response_put_supported(
	    &buffer, NETWORK_CQL_VERSION, connection->loop->network->version_max);
	response_end(&response, COMPRESSION_NONE);
	connection_append(connection, &buffer);
	buffer_fini(&buffer);
}

/* Tell the walkers how far the handshake is. */
static void
connection_show_state(struct connection *connection)
{
	struct loop *loop = connection->loop;

	lock_take(&loop->lock);
	connection->shown_state = connection->handshake.state;
	lock_drop(&loop->lock);
}

/* Keep what STARTUP told for system_views.clients. */
static void
connection_note_options(struct connection *connection, const struct request_startup *startup)
{
	struct loop *loop = connection->loop;
	const char **options = xcalloc((size_t)startup->count * 2 + 1, sizeof(*options));
	struct slice name = message_startup_option(startup, "DRIVER_NAME");
	struct slice version = message_startup_option(startup, "DRIVER_VERSION");

	lock_take(&loop->lock);
	arena_reset(&connection->strings);
	for (uint32_t i = 0; i < startup->count; i++) {
		const struct startup_option *option = &startup->options[i];

		options[2 * i] = arena_strndup(
		    &connection->strings, (const char *)option->name.data, option->name.size);
		options[2 * i + 1] = arena_strndup(
		    &connection->strings, (const char *)option->value.data, option->value.size);
	}
	free(connection->options);
	connection->options = options;
	connection->option_count = startup->count;
	connection->driver_name = slice_is_null(name)
	    ? NULL
	    : arena_strndup(&connection->strings, (const char *)name.data, name.size);
	connection->driver_version = slice_is_null(version)
	    ? NULL
	    : arena_strndup(&connection->strings, (const char *)version.data, version.size);
	connection->client.version = connection->handshake.version;
	client_history_add(&loop->network->clients_seen, connection->client.address,
	    connection->client.version, env_wall_us(loop->network->node->env) / 1000);
	if (connection->tls != NULL) {
		connection->ssl_cipher = tls_cipher(connection->tls);
		connection->ssl_protocol = tls_protocol(connection->tls);
	}
	lock_drop(&loop->lock);
}

static void
connection_startup(struct connection *connection, const struct client_message *message)
{
	struct network *network = connection->loop->network;
	struct handshake *handshake = &connection->handshake;
	bool was_framed = handshake->is_framed;
	enum opcode answer = network->authenticator == NULL ? OPCODE_READY : OPCODE_AUTHENTICATE;
	struct response response;
	struct buffer buffer;
	struct error err;

	if (handshake_startup(handshake, message, &err) != 0) {
		connection_refuse(connection, message->version, message->stream, &err);
		return;
	}
	if (handshake->throw_on_overload)
		connection->client.throw_on_overload = true;
	connection_note_options(connection, &message->startup);
	buffer_init(&buffer);
	response = response_begin(&buffer, message->version, message->stream, answer, 0, NULL);
	if (answer == OPCODE_AUTHENTICATE)
		response_put_authenticate(&buffer, network->authenticator);
	else
		connection->client.is_authenticated = true;
	response_end(&response, COMPRESSION_NONE);
	connection_append(connection, &buffer);
	buffer_fini(&buffer);
	handshake_answered(handshake, answer);
	connection_show_state(connection);
	if (handshake->is_framed && !was_framed)
		segment_decoder_init(
		    &connection->segments, handshake->compression, network->frame_size_max);
}

static void
connection_register(struct connection *connection, const struct client_message *message)
{
	struct response response;
	struct buffer buffer;

	atomic_fetch_or_explicit(
	    &connection->client.events, message->register_.events, memory_order_relaxed);
	buffer_init(&buffer);
	response =
	    response_begin(&buffer, message->version, message->stream, OPCODE_READY, 0, NULL);
	response_end(&response, COMPRESSION_NONE);
	connection_append(connection, &buffer);
	buffer_fini(&buffer);
}

/* STARTUP and REGISTER: decoded here. */
static void
connection_message(struct connection *connection, struct envelope *envelope)
{
	struct client_message message;
	struct arena arena;
	struct error err;

	arena_init(&arena, 1024);
	if (compression_open_body(handshake_body_compression(&connection->handshake), envelope,
		connection->loop->network->frame_size_max, &arena, &err) != 0 ||
	    message_decode_request(envelope, &arena, &message, &err) != 0)
		connection_refuse(
		    connection, envelope->header.version, envelope->header.stream, &err);
	else if (envelope->header.opcode == OPCODE_STARTUP)
		connection_startup(connection, &message);
	else
		connection_register(connection, &message);
	arena_fini(&arena);
}

static void
connection_envelope(struct connection *connection, struct envelope *envelope, bool is_alone)
{
	struct metrics_loop *metrics = connection->loop->metrics;
	uint8_t version, opcode = envelope->header.opcode;
	int16_t stream;
	struct error err;

	if (opcode <= OPCODE_AUTH_SUCCESS)
		atomic_store_explicit(&metrics->opcodes[opcode],
		    atomic_load_explicit(&metrics->opcodes[opcode], memory_order_relaxed) + 1,
		    memory_order_relaxed);
	if (handshake_check(&connection->handshake, &envelope->header, &stream, &version, &err) !=
	    0) {
		connection_refuse(connection, version, stream, &err);
		return;
	}
	switch (opcode) {
	case OPCODE_OPTIONS:
		connection_options(connection, &envelope->header);
		break;
	case OPCODE_STARTUP:
	case OPCODE_REGISTER:
		connection_message(connection, envelope);
		break;
	default:
		connection_request(connection, envelope, is_alone);
		break;
	}
}

/* ---- input -------------------------------------------------------------------------------------------- */

/* Nothing that comes can be understood any more: close it when the answers are written. */
static void
connection_end(struct connection *connection)
{
	connection->close_when_written = true;
	connection_pause(connection, CONNECTION_PAUSE_DRAIN);
}

/* Cut envelopes out of `run`. Returns the bytes that are done with. A segment's payload has to be cut
 * whole; a plain run may be left in the block when enough is in flight. */
static size_t
connection_cut(struct connection *connection, struct slice run, bool stop_when_full)
{
	size_t done = 0;

	while (done < run.size && connection->fd >= 0 &&
	    !(stop_when_full && (connection->pauses & CONNECTION_PAUSE_IN_FLIGHT) != 0)) {
		struct slice left = slice_of(run.data + done, run.size - done);
		struct envelope envelope;
		struct error err;
		size_t consumed = 0;
		/* A wrong length must not lead out of the segment and eat those that follow. */
		enum envelope_result result = connection->handshake.is_framed
		    ? envelope_decode_payload(
			  &connection->decoder, left, &consumed, &envelope, &err)
		    : envelope_decode(&connection->decoder, left, &consumed, &envelope, &err);

		done += consumed;
		if (result == ENVELOPE_MORE) {
			if (consumed == 0)
				break;
			continue;
		}
		if (result == ENVELOPE_ONE) {
			connection_envelope(connection, &envelope, consumed == run.size);
			connection_unreserve(connection); /* it was none that becomes a request */
		} else {
			connection_refuse(
			    connection, envelope.header.version, envelope.header.stream, &err);
			if (stop_when_full && envelope.header.length > INT32_MAX) {
				connection_end(connection);
				return run.size;
			}
		}
		if (stop_when_full && connection->handshake.is_framed)
			break; /* the next byte is a segment's */
	}
	return done;
}

/* One segment of v5. False: more bytes are needed, or the connection is to end. */
static bool
connection_segment(struct connection *connection)
{
	struct read_block *block = connection->block;
	struct slice run = slice_of(block->data + block->start, block->end - block->start);
	struct envelope_header header;
	struct slice payload;
	struct error err;
	size_t consumed = 0;
	enum segment_result result =
	    segment_decode(&connection->segments, run, &consumed, &payload, &header, &err);

	block->start += consumed;
	switch (result) {
	case SEGMENT_MORE:
		return consumed > 0;
	case SEGMENT_PAYLOAD:
		(void)connection_cut(connection, payload, false);
		return true;
	case SEGMENT_TOO_BIG:
		connection_refuse(connection, header.version, header.stream, &err);
		return true;
	case SEGMENT_BAD:
		connection_refuse(connection, connection->handshake.version, 0, &err);
		connection_end(connection);
		block->start = block->end;
		return false;
	}
	return false;
}

static void
connection_consume(struct connection *connection)
{
	while (connection->fd >= 0 && connection->block->start < connection->block->end &&
	    (connection->pauses & CONNECTION_PAUSE_IN_FLIGHT) == 0) {
		struct read_block *block = connection->block;
		size_t done;

		if (connection->handshake.is_framed) {
			if (!connection_segment(connection))
				break;
			continue;
		}
		done = connection_cut(connection,
		    slice_of(block->data + block->start, block->end - block->start), true);
		block->start += done;
		if (done == 0)
			break;
	}
}

/* The envelope of which only the beginning is here: its size, 0 when there is none or it is not known yet. */
static uint64_t
connection_expects(const struct connection *connection, struct envelope_header *header)
{
	const struct read_block *block = connection->block;
	uint64_t size;

	if (connection->handshake.is_framed)
		return segment_decoder_expects(&connection->segments, header);
	if (block == NULL || connection->decoder.skip_left > 0 || connection->fd < 0)
		return 0;
	size = envelope_size(slice_of(block->data + block->start, block->end - block->start));
	if (size > 0)
		*header = envelope_load_header(block->data + block->start);
	return size;
}

/*
 * A request that is half here takes memory before it is admitted, so all of it is taken of the limits when
 * its size is known (transport/CQLMessageHandler does at a large message's first frame). Were it taken bit
 * by bit, halves of many could fill the limit and none would ever be whole. No room: a client that asked to
 * be told is told, the others' halves wait as short as they are (false).
 */
static bool
connection_try_reserve(
    struct connection *connection, struct envelope_header *header, uint64_t *size)
{
	struct network *network = connection->loop->network;

	*size = connection_expects(connection, header);
	if (*size <= READ_BLOCK_SIZE || connection->reserved_bytes > 0 ||
	    connection->in_flight_bytes + *size <= network->receive_queue_bytes)
		return true;
	if (!limits_reserve(&network->limits, connection->limits, *size))
		return false;
	connection->reserved_bytes = *size;
	connection->reserved_ns = connection->loop->now_ns;
	loop_watch_reserved(connection->loop);
	return true;
}

static bool
connection_reserve(struct connection *connection)
{
	struct envelope_header header;
	struct error err;
	uint64_t size;

	if (connection_try_reserve(connection, &header, &size))
		return true;
	if (!connection->client.throw_on_overload) {
		connection_pause(connection, CONNECTION_PAUSE_BYTES);
		return false;
	}
	atomic_fetch_add_explicit(
	    &connection->loop->node->metrics.requests_discarded, 1, memory_order_relaxed);
	error_set(&err, ERROR_OVERLOADED, REQUEST_OVERLOADED_TEXT);
	connection_refuse(connection, header.version, header.stream, &err);
	if (connection->handshake.is_framed) {
		segment_decoder_skip(&connection->segments);
	} else {
		envelope_decoder_skip(&connection->decoder, size);
		connection_consume(connection);
	}
	return true;
}

bool
connection_has_room(struct connection *connection)
{
	struct limits *limits = &connection->loop->network->limits;
	struct envelope_header header;
	uint64_t size;

	if (connection->in_flight_bytes > connection->loop->network->receive_queue_bytes) {
		if (!limits_take(limits, connection->limits, 1, false))
			return false;
		limits_give(limits, connection->limits, 1);
	}
	return connection_try_reserve(connection, &header, &size);
}

/*
 * A block with room to read into. What is half read moves to the front of a block of its own when the
 * old one has no room left and others hold it; it doubles as the bytes come, up to what the half needs, so
 * that a claimed length alone takes no memory.
 */
static struct read_block *
connection_room(struct connection *connection)
{
	struct read_block_pool *pool = &connection->loop->blocks;
	struct read_block *block = connection->block, *larger;
	struct envelope_header header;
	size_t have, size;

	if (block == NULL) {
		connection->block = read_block_get(pool, READ_BLOCK_SIZE);
		return connection->block;
	}
	have = block->end - block->start;
	if (block->refs == 1 && (have == 0 || (block->start > 0 && have <= block->capacity / 4))) {
		if (have > 0)
			memmove(block->data, block->data + block->start, have);
		block->start = 0;
		block->end = have;
	}
	if (block->capacity - block->end >= CONNECTION_ROOM_MIN)
		return block;
	size =
	    connection->handshake.is_framed ? 0 : (size_t)connection_expects(connection, &header);
	if (size < have + CONNECTION_ROOM_MIN || size > have * 2)
		size = have * 2;
	larger = read_block_get(pool, size + CONNECTION_ROOM_MIN);
	if (larger == NULL)
		return NULL;
	memcpy(larger->data, block->data + block->start, have);
	larger->end = have;
	read_block_unref(pool, block);
	connection->block = larger;
	return larger;
}

/* TLS that is optional is known by its first byte: a handshake record (0x16) or a protocol version. */
static bool
connection_choose_tls(struct connection *connection)
{
	struct network *network = connection->loop->network;
	bool is_tls = network->tls_mode == NETWORK_TLS_REQUIRED;
	struct tls_context *context;
	uint8_t first;

	if (!is_tls) {
		ssize_t got = recv(connection->fd, &first, 1, MSG_PEEK);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		is_tls = got == 1 && first == 0x16;
	}
	connection->is_tls_known = true;
	if (!is_tls)
		return true;
	context = network_tls_context(network);
	if (context != NULL)
		connection->tls =
		    tls_session_accept(context, connection->fd, connection->client.address);
	tls_context_unref(context);
	if (connection->tls == NULL) {
		connection_close(connection);
		return false;
	}
	return true;
}

static ssize_t
connection_recv(struct connection *connection, struct read_block *block)
{
	size_t room = block->capacity - block->end;
	ssize_t got;

	do {
		got = connection->tls != NULL
		    ? tls_read(connection->tls, block->data + block->end, room)
		    : recv(connection->fd, block->data + block->end, room, 0);
	} while (got < 0 && errno == EINTR);
	if (got > 0) {
		block->end += (size_t)got;
		atomic_store_explicit(&connection->loop->metrics->bytes_read,
		    atomic_load_explicit(
			&connection->loop->metrics->bytes_read, memory_order_relaxed) +
			(uint64_t)got,
		    memory_order_relaxed);
	}
	return got;
}

static void
connection_read_cb(evutil_socket_t fd, short what, void *argument)
{
	struct connection *connection = argument;
	struct loop *loop = connection->loop;

	(void)fd;
	(void)what;
	loop_note_now(loop);
	if (!connection->is_tls_known && !connection_choose_tls(connection))
		return;
	connection->last_active_ns = loop->now_ns;
	if (connection->block != NULL)
		connection_consume(connection); /* left there while enough was in flight */
	if (!connection_reserve(connection))
		return;
	for (int i = 0; i < CONNECTION_READS_MAX && connection->fd >= 0 && connection->pauses == 0;
	     i++) {
		struct read_block *block = connection_room(connection);
		size_t room;
		ssize_t got;

		if (block == NULL) {
			log_warn("no memory to read from %s:%u", connection->client.address,
			    connection->client.port);
			connection_close(connection);
			return;
		}
		room = block->capacity - block->end;
		got = connection_recv(connection, block);
		if (got < 0 && errno == EAGAIN) {
			if (connection->tls != NULL && tls_wants_write(connection->tls))
				event_add(connection->write_event, NULL);
			break;
		}
		if (got <= 0) {
			connection_close(connection);
			return;
		}
		connection_consume(connection);
		if (connection->pauses == 0)
			connection_reserve(connection);
		if (connection->pauses != 0 || (connection->tls == NULL && (size_t)got < room))
			break;
		if (connection->tls != NULL && i == CONNECTION_READS_MAX - 1)
			event_active(connection->read_event, EV_READ, 0);
	}
	/* An idle connection holds no memory to read into. */
	if (connection->fd >= 0 && connection->block != NULL &&
	    connection->block->start == connection->block->end) {
		read_block_unref(&loop->blocks, connection->block);
		connection->block = NULL;
	}
}

static void
connection_write_cb(evutil_socket_t fd, short what, void *argument)
{
	struct connection *connection = argument;

	(void)fd;
	(void)what;
	connection->is_write_waiting = false;
	if (connection->tls != NULL && connection->output_bytes == 0 &&
	    tls_wants_write(connection->tls)) {
		connection_read_cb(fd, what, argument);
		return;
	}
	connection_flush(connection);
}

/* ---- answers -------------------------------------------------------------------------------------------- */

static void
connection_release(struct connection *connection, struct request *request)
{
	connection->in_flight--;
	connection->in_flight_bytes -= request->wire_bytes;
	if (request->charged_bytes > 0) {
		limits_give(
		    &connection->loop->network->limits, connection->limits, request->charged_bytes);
		request->charged_bytes = 0;
	}
	if ((connection->pauses & CONNECTION_PAUSE_IN_FLIGHT) != 0 &&
	    connection->in_flight <= connection->in_flight_max / 2)
		connection_resume(connection, CONNECTION_PAUSE_IN_FLIGHT);
}

static void
connection_note_answer(struct connection *connection, size_t size)
{
	uint32_t bytes = size > CONNECTION_ANSWERS_MAX ? CONNECTION_ANSWERS_MAX : (uint32_t)size;
	uint32_t max;

	connection->answer_bytes = (connection->answer_bytes * 7 + bytes) / 8;
	max = CONNECTION_ANSWERS_MAX / (connection->answer_bytes + 1);
	connection->in_flight_max = max < CONNECTION_IN_FLIGHT_MIN ? CONNECTION_IN_FLIGHT_MIN
	    : max > CONNECTION_IN_FLIGHT_MAX                       ? CONNECTION_IN_FLIGHT_MAX
								   : max;
}

void
connection_answer(struct connection *connection, struct request *request)
{
	uint8_t opcode = 0;
	struct error err;

	connection_note_answer(connection, request->response.size);
	connection_release(connection, request);
	if (connection->fd < 0)
		return;
	if (request->response.is_failed || request->response.size < ENVELOPE_HEADER_SIZE) {
		error_set(&err, ERROR_SERVER, "no memory for the answer");
		connection_append_error(
		    connection, request->header.version, request->header.stream, &err);
	} else {
		opcode = request->response.data[4];
		if (opcode == OPCODE_ERROR && request->response.size >= ENVELOPE_HEADER_SIZE + 4 &&
		    load_u32(request->response.data + ENVELOPE_HEADER_SIZE) == 0)
			atomic_fetch_add_explicit(
			    &connection->loop->node->metrics.exceptions, 1, memory_order_relaxed);
		connection_append(connection, &request->response);
	}
	if (connection->handshake.state == HANDSHAKE_AUTHENTICATION) {
		struct metrics *metrics = &connection->loop->node->metrics;

		if (opcode == OPCODE_AUTH_SUCCESS)
			atomic_fetch_add_explicit(&metrics->auth_success, 1, memory_order_relaxed);
		else if (opcode == OPCODE_ERROR)
			atomic_fetch_add_explicit(&metrics->auth_failure, 1, memory_order_relaxed);
		handshake_answered(&connection->handshake, opcode);
		connection_show_state(connection);
	}
	if (request->close_after)
		connection->close_when_written = true;
}
