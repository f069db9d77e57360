/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/internode_internal.h"
#include "server/network_internal.h"

enum {
	INTERNODE_ACCEPTS_MAX = 32, /* in one turn */
	INTERNODE_TLS_RECORD = 0x16, /* a TLS connection's first byte */
};

static void internode_inbound_read_cb(evutil_socket_t fd, short what, void *argument);
static void internode_inbound_write_cb(evutil_socket_t fd, short what, void *argument);

/* ---- Refusing ------------------------------------------------------------------------------- */

void
internode_log_refused(struct internode *internode, const char *name, const char *why)
{
	uint64_t now = internode_now(internode);
	uint64_t refused = internode_get(&internode->refused) + 1;
	uint64_t last = internode_get(&internode->refused_logged_ns);

	internode_add(&internode->refused, 1);
	if (last != 0 && now - last < INTERNODE_LOG_NS)
		return;
	/* Of several that see it at once one writes. */
	if (!atomic_compare_exchange_strong(&internode->refused_logged_ns, &last, now))
		return;
	log_warn("Refused a connection from %s: %s (%" PRIu64 " since the last such line)", name,
	    why, refused - atomic_exchange(&internode->refused_logged, refused));
}

static void
internode_inbound_refuse(struct internode_inbound_connection *connection, const char *why)
{
	internode_log_refused(connection->internode, connection->socket.name, why);
	internode_inbound_close(connection);
}

/* ---- Coming and going ----------------------------------------------------------------------- */

static void
internode_inbound_unref(struct internode_inbound_connection *connection)
{
	/* acq_rel: who frees sees all that others did with it. */
	if (atomic_fetch_sub_explicit(
		&connection->held, INTERNODE_HELD_ONE, memory_order_acq_rel) == INTERNODE_HELD_ONE)
		free(connection);
}

static void
internode_inbound_end_handshake(struct internode_inbound_connection *connection)
{
	internode_timer_end(&connection->timer);
	if (!connection->is_in_handshake)
		return;
	connection->is_in_handshake = false;
	atomic_fetch_sub_explicit(&connection->internode->handshakes, 1, memory_order_relaxed);
}

/* All but the socket, which may have moved on. */
static void
internode_inbound_leave(struct internode_inbound_connection *connection)
{
	struct internode_loop *loop = connection->loop->internode;

	internode_inbound_end_handshake(connection);
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		loop->inbound = connection->next;
	if (connection->is_up) {
		frame_reader_fini(&connection->reader);
		atomic_fetch_sub_explicit(&connection->from->connections, 1, memory_order_relaxed);
	}
	buffer_fini(&connection->rest);
	buffer_fini(&connection->out);
	internode_inbound_unref(connection);
}

void
internode_inbound_close(struct internode_inbound_connection *connection)
{
	if (connection->socket.fd < 0)
		return;
	internode_socket_close(&connection->socket);
	internode_inbound_leave(connection);
}

static void
internode_inbound_timeout_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_inbound_connection *connection = argument;

	(void)fd;
	(void)what;
	loop_note_now(connection->loop);
	if (connection->is_closing)
		internode_inbound_close(connection);
	else
		internode_inbound_refuse(connection, "no handshake in time");
}

static void internode_inbound_resume(struct loop_message *message, struct loop *loop);

struct internode_newcomer {
	struct loop_message message; /* first */
	struct internode *internode;
	int fd;
	struct sockaddr_storage from;
};

static void
internode_newcomer_run(struct loop_message *message, struct loop *loop)
{
	struct internode_newcomer *newcomer = (struct internode_newcomer *)message;
	struct internode *internode = newcomer->internode;
	struct internode_inbound_connection *connection = xzalloc(sizeof(*connection));
	struct internode_loop *here = loop->internode;
	uint64_t timeout = (uint64_t)atomic_load_explicit(
	    &internode->node->timeouts_ms[NODE_TIMEOUT_INTERNODE_CONNECT], memory_order_relaxed);

	connection->resume.run = internode_inbound_resume;
	connection->internode = internode;
	connection->loop = loop;
	connection->is_tls_known = internode->encryption == INTERNODE_NONE;
	connection->is_in_handshake = true;
	atomic_init(&connection->held, INTERNODE_HELD_ONE);
	buffer_init(&connection->rest);
	buffer_init(&connection->out);
	connection->next = here->inbound;
	if (connection->next != NULL)
		connection->next->previous = connection;
	here->inbound = connection;
	if (internode_socket_open(&connection->socket, loop, newcomer->fd, &newcomer->from,
		internode_inbound_read_cb, internode_inbound_write_cb, connection) != 0)
		internode_inbound_leave(connection);
	else if (internode_timer_set(&connection->timer, loop, timeout > 0 ? timeout : 1,
		     internode_inbound_timeout_cb, connection) != 0 ||
	    !atomic_load(&internode->is_running))
		internode_inbound_close(connection);
	free(newcomer);
}

/* Accepted when the loop that it was for had ended already. */
static void
internode_newcomer_drop(struct loop_message *message)
{
	struct internode_newcomer *newcomer = (struct internode_newcomer *)message;

	atomic_fetch_sub_explicit(&newcomer->internode->handshakes, 1, memory_order_relaxed);
	close(newcomer->fd);
	free(newcomer);
}

void
internode_accept_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode *internode = argument;

	(void)what;
	for (int i = 0; i < INTERNODE_ACCEPTS_MAX; i++) {
		struct internode_newcomer *newcomer;
		struct sockaddr_storage from = {0};
		socklen_t size = sizeof(from);
		int other =
		    accept4(fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (other < 0) {
			/* EMFILE and the like pass when somebody leaves; do not spin on them. */
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				log_warn("accept: %s", strerror(errno));
				usleep(1000);
			}
			return;
		}
		/* Strangers that say nothing must not take all there is. */
		if (atomic_fetch_add_explicit(&internode->handshakes, 1, memory_order_relaxed) >=
		    INTERNODE_HANDSHAKES_MAX) {
			atomic_fetch_sub_explicit(&internode->handshakes, 1, memory_order_relaxed);
			internode_log_refused(internode, "?", "too many handshakes at one time");
			close(other);
			continue;
		}
		newcomer = xzalloc(sizeof(*newcomer));
		newcomer->message.run = internode_newcomer_run;
		newcomer->message.drop = internode_newcomer_drop;
		newcomer->internode = internode;
		newcomer->fd = other;
		newcomer->from = from;
		loop_post(internode_next_loop(internode), &newcomer->message);
	}
}

/* ---- What was received and is not done with -------------------------------------------------- */

/* What of so many bytes in flight lies over the connection's own capacity, and so in the reserves. */
static uint64_t
internode_inbound_excess(const struct internode *internode, uint64_t bytes)
{
	return bytes > internode->receive_capacity ? bytes - internode->receive_capacity : 0;
}

/* The last reference of a message that came over this connection is gone. Any thread. */
static void
internode_inbound_release(struct message *message)
{
	struct internode_inbound_connection *connection = message->transport;
	struct internode_peer *from = connection->from;
	struct internode *internode = connection->internode;
	uint64_t bytes = message->transport_bytes, with = 0, held, old, excess;

	internode_add(message->is_dropped ? &from->expired_count : &from->processed_count, 1);
	internode_add(message->is_dropped ? &from->expired_bytes : &from->processed_bytes, bytes);
	/* Where it is throttled from now on, others are in flight that see it: our reference may go at once. */
	if (!atomic_load(&connection->is_throttled))
		with = INTERNODE_HELD_ONE;
	held = atomic_fetch_sub(&connection->held, with + bytes);
	old = held % INTERNODE_HELD_ONE;
	excess = internode_inbound_excess(internode, old) -
	    internode_inbound_excess(internode, old - bytes);
	if (excess > 0) {
		atomic_fetch_sub_explicit(&from->receive_reserve, excess, memory_order_relaxed);
		atomic_fetch_sub_explicit(
		    &internode->receive_reserve, excess, memory_order_relaxed);
	}
	if (with != 0) {
		if (held / INTERNODE_HELD_ONE == 1)
			free(connection);
		return;
	}
	/* Half empty: read again. The reference of this message goes with the post. */
	if (old - bytes <= internode->receive_capacity / 2 &&
	    atomic_exchange(&connection->is_throttled, false) &&
	    !atomic_exchange(&connection->is_resuming, true)) {
		loop_post(connection->loop, &connection->resume);
		return;
	}
	internode_inbound_unref(connection);
}

static void
internode_inbound_resume(struct loop_message *message, struct loop *loop)
{
	struct internode_inbound_connection *connection =
	    (struct internode_inbound_connection *)message;

	atomic_store(&connection->is_resuming, false);
	/* It may be throttled again by now: then somebody will post again. */
	if (connection->socket.fd >= 0 && !atomic_load(&connection->is_throttled)) {
		loop_note_now(loop);
		internode_add(
		    &connection->from->throttled_ns, loop->now_ns - connection->throttled_since_ns);
		internode_socket_pause(&connection->socket, false);
		if (connection->rest.size > 0)
			event_active(connection->socket.read_event, EV_READ, 0);
	}
	internode_inbound_unref(connection);
}

/*
 * What is received is counted in any case; over the limits no more is read until it is done with. Once for what was read in
 * one go, before others see any of it.
 */
static void
internode_inbound_charge(struct internode_inbound_connection *connection)
{
	struct internode *internode = connection->internode;
	struct internode_peer *from = connection->from;
	uint64_t count = connection->fresh_count, answers = connection->fresh_answers;
	uint64_t bytes = connection->fresh_bytes, old, excess;

	if (count + answers == 0)
		return;
	internode_add(&from->received_count, count + answers);
	internode_add(&from->received_bytes, bytes + connection->fresh_answer_bytes);
	if (answers > 0) {
		internode_add(&from->processed_count, answers);
		internode_add(&from->processed_bytes, connection->fresh_answer_bytes);
	}
	connection->fresh_count = connection->fresh_bytes = 0;
	connection->fresh_answers = connection->fresh_answer_bytes = 0;
	if (count == 0)
		return;
	old = atomic_fetch_add(&connection->held, count * INTERNODE_HELD_ONE + bytes) %
	    INTERNODE_HELD_ONE;
	excess = internode_inbound_excess(internode, old + bytes) -
	    internode_inbound_excess(internode, old);
	if (excess == 0)
		return;
	internode_add(&from->receive_reserve, excess);
	internode_add(&internode->receive_reserve, excess);
	if (internode_get(&from->receive_reserve) <= internode->receive_endpoint_max &&
	    internode_get(&internode->receive_reserve) <= internode->receive_global_max)
		return;
	/* These messages are not done with yet: whoever releases one, or a later one, resumes us. */
	if (connection->socket.is_reading) {
		connection->throttled_since_ns = connection->loop->now_ns;
		internode_add(&from->throttled_count, 1);
		internode_socket_pause(&connection->socket, true);
	}
	atomic_store(&connection->is_throttled, true);
}

/* ---- Frames --------------------------------------------------------------------------------- */

static void
internode_inbound_record(struct internode_inbound_connection *connection, struct slice record)
{
	struct internode_loop *loop = connection->loop->internode;
	struct internode_peer *from = connection->from;
	struct message_answer answer;
	struct message *message;
	struct error err;

	if (message_peek_answer(record, &answer) && messaging_is_plain_answer(answer.verb)) {
		answer.peer = from->peer;
		internode_answers_add(&loop->answers, &answer);
		connection->fresh_answers++;
		connection->fresh_answer_bytes += record.size;
		return;
	}
	if (message_decode(record, from->peer, connection->loop->now_ns, &message, &err) != 0) {
		internode_add(&from->received_count, 1);
		internode_add(&from->received_bytes, record.size);
		internode_add(&from->error_count, 1);
		internode_add(&from->error_bytes, record.size);
		internode_log_refused(connection->internode, connection->socket.name, err.text);
		return;
	}
	message->transport_bytes = record.size;
	message->on_free = internode_inbound_release;
	message->transport = connection;
	connection->fresh_count++;
	connection->fresh_bytes += record.size;
	if (connection->fresh_bytes >= INTERNODE_CHARGE_BYTES)
		internode_inbound_charge(connection);
	if (loop->received_last != NULL)
		loop->received_last->next = message;
	else
		loop->received = message;
	loop->received_last = message;
}

/* Returns the bytes that are done with. May close the connection. */
static size_t
internode_inbound_frames(struct internode_inbound_connection *connection, struct slice bytes)
{
	struct internode_peer *from = connection->from;
	size_t done = 0;

	atomic_store_explicit(
	    &from->peer->heard_ns, connection->loop->now_ns, memory_order_relaxed);
	while (!atomic_load_explicit(&connection->is_throttled, memory_order_relaxed) ||
	    connection->reader.rest.size > 0) {
		struct slice record;
		struct error err;
		size_t consumed;
		enum frame_result result = frame_read(&connection->reader,
		    slice_of(bytes.data + done, bytes.size - done), &consumed, &record, &err);

		done += consumed;
		switch (result) {
		case FRAME_MORE:
			internode_inbound_charge(connection);
			return done;
		case FRAME_RECORD:
			internode_inbound_record(connection, record);
			break;
		case FRAME_SKIPPED:
			if (err.code == ERROR_CORRUPT) {
				internode_add(&from->recovered, 1);
			} else {
				internode_add(&from->error_count, 1);
			}
			internode_log_refused(
			    connection->internode, connection->socket.name, err.text);
			break;
		case FRAME_BAD:
			internode_add(&from->unrecovered, 1);
			internode_inbound_charge(connection);
			internode_inbound_refuse(connection, err.text);
			return 0;
		}
	}
	internode_inbound_charge(connection);
	return done;
}

void
internode_turn(struct loop *loop)
{
	struct internode_loop *self = loop->internode;
	struct message *received = self->received;

	self->is_in_turn = true;
	/* No more come while they are told. */
	if (self->answers.count > 0) {
		messaging_receive_answers(self->internode->messaging, self->answers.list,
		    self->answers.count, &loop->worker);
		internode_answers_clear(&self->answers);
	}
	if (received != NULL) {
		self->received = self->received_last = NULL;
		messaging_receive(self->internode->messaging, received, &loop->worker);
	}
	self->is_in_turn = false;
	internode_run_responses(loop);
}

/* ---- The handshake -------------------------------------------------------------------------- */

/* Is `address` the one that the socket was reached at? */
static bool
internode_inbound_is_local(
    const struct internode_inbound_connection *connection, const struct endpoint *to)
{
	struct sockaddr_storage local = {0};
	socklen_t size = sizeof(local);
	const void *address = &((struct sockaddr_in *)&local)->sin_addr;

	if (getsockname(connection->socket.fd, (struct sockaddr *)&local, &size) != 0)
		return false;
	if (local.ss_family == AF_INET6)
		address = &((struct sockaddr_in6 *)&local)->sin6_addr;
	return to->size == (local.ss_family == AF_INET6 ? 16 : 4) &&
	    memcmp(address, to->address, to->size) == 0;
}

static enum frame_status
internode_inbound_judge(
    struct internode_inbound_connection *connection, const struct frame_hello *hello)
{
	struct internode *internode = connection->internode;
	const struct endpoint *local = &internode->local;

	if (strcmp(hello->cluster_name, internode->node->config->cluster_name) != 0)
		return FRAME_WRONG_CLUSTER;
	if (hello->version_min > FRAME_VERSION || hello->version_max < FRAME_VERSION_MIN)
		return FRAME_WRONG_VERSION;
	/* Somebody else had this address before, or has it in another network. */
	if ((hello->to.size != local->size ||
		memcmp(hello->to.address, local->address, local->size) != 0) &&
	    !internode_inbound_is_local(connection, &hello->to))
		return FRAME_WRONG_NODE;
	if (endpoint_equal(&hello->from, local) || hello->kind >= FRAME_KIND_COUNT ||
	    (peers_find(internode->peers, &hello->from) == NULL &&
		peers_count(internode->peers) >= INTERNODE_PEERS_MAX))
		return FRAME_REFUSED;
	return FRAME_WELCOME;
}

static void
internode_inbound_flush(struct internode_inbound_connection *connection)
{
	while (connection->written < connection->out.size) {
		ssize_t written = internode_socket_write(&connection->socket,
		    connection->out.data + connection->written,
		    connection->out.size - connection->written);

		if (written < 0 && errno == EAGAIN)
			return;
		if (written < 0) {
			internode_inbound_close(connection);
			return;
		}
		connection->written += (size_t)written;
	}
	if (connection->is_closing)
		internode_inbound_close(connection);
}

/* Say no, and close when it is written (or the handshake's time is over). */
static void
internode_inbound_decline(struct internode_inbound_connection *connection, uint8_t status,
    const struct frame_hello *hello)
{
	char why[HANDSHAKE_NAME_MAX + 128];

	snprintf(why, sizeof(why), "%s (cluster '%s', messaging versions %u to %u)",
	    frame_status_name(status), hello->cluster_name, hello->version_min, hello->version_max);
	internode_log_refused(connection->internode, connection->socket.name, why);
	connection->is_closing = true;
}

static void
internode_inbound_up(struct internode_inbound_connection *connection, uint8_t compression)
{
	internode_inbound_end_handshake(connection);
	frame_reader_init(
	    &connection->reader, (enum compression)compression, connection->internode->message_max);
	connection->is_up = true;
	atomic_fetch_add_explicit(&connection->from->connections, 1, memory_order_relaxed);
	/* Who came back need not wait for our next try. */
	for (int kind = 0; kind < INTERNODE_KINDS; kind++) {
		struct internode_link *link = &connection->from->links[kind];

		atomic_store(&link->is_there, true);
		internode_link_wake(link);
	}
	log_debug("Connection from %s (%s)", connection->socket.name,
	    connection->socket.tls != NULL ? "encrypted" : "unencrypted");
}

/* `left`: bytes behind the hello. False: the connection is no longer ours to read. */
static bool
internode_inbound_hello(struct internode_inbound_connection *connection,
    const struct frame_hello *hello, struct slice left)
{
	struct internode *internode = connection->internode;
	struct frame_welcome welcome = {.status = internode_inbound_judge(connection, hello),
	    .version = hello->version_max < FRAME_VERSION ? hello->version_max : FRAME_VERSION,
	    .compression =
		hello->compression == COMPRESSION_LZ4 ? COMPRESSION_LZ4 : COMPRESSION_NONE,
	    .from = internode->local};
	struct peer *peer = NULL;

	snprintf(welcome.cluster_name, sizeof(welcome.cluster_name), "%s",
	    internode->node->config->cluster_name);
	if (welcome.status == FRAME_WELCOME) {
		peer = peers_get(internode->peers, &hello->from);
		connection->from = internode_peer_get(internode, peer);
		/* Encryption is this side's to insist on as well. */
		if (connection->socket.tls == NULL && !internode->is_tls_optional &&
		    internode_is_for(internode, internode->encryption, peer)) {
			internode_inbound_refuse(
			    connection, "it is not encrypted, as internode_encryption wants it");
			return false;
		}
	}
	frame_put_welcome(&connection->out, &welcome);
	if (connection->out.is_failed) {
		internode_inbound_close(connection);
		return false;
	}
	if (welcome.status == FRAME_WELCOME && hello->kind == FRAME_KIND_STREAMING) {
		if (internode_stream_accept(connection, (enum compression)welcome.compression, left,
			buffer_slice(&connection->out))) {
			internode_inbound_leave(connection);
			return false;
		}
		welcome.status = FRAME_REFUSED;
		buffer_clear(&connection->out);
		frame_put_welcome(&connection->out, &welcome);
	}
	if (welcome.status == FRAME_WELCOME)
		internode_inbound_up(connection, welcome.compression);
	else
		internode_inbound_decline(connection, welcome.status, hello);
	internode_inbound_flush(connection);
	return connection->socket.fd >= 0 && !connection->is_closing;
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* Take what can be taken of `bytes`; returns how much. */
static size_t
internode_inbound_take(struct internode_inbound_connection *connection, struct slice bytes)
{
	struct frame_hello hello;
	size_t done = 0;
	struct error err;

	if (connection->is_closing)
		return bytes.size;
	if (!connection->is_up) {
		ssize_t taken = frame_get_hello(bytes, &hello, &err);

		if (taken < 0) {
			internode_inbound_refuse(connection, err.text);
			return 0;
		}
		if (taken == 0)
			return 0;
		done = (size_t)taken;
		if (!internode_inbound_hello(
			connection, &hello, slice_of(bytes.data + done, bytes.size - done)))
			return bytes.size;
	}
	return done +
	    internode_inbound_frames(connection, slice_of(bytes.data + done, bytes.size - done));
}

/* TLS is known by its first byte, where a plain connection may come as well. */
static bool
internode_inbound_choose_tls(struct internode_inbound_connection *connection)
{
	struct internode *internode = connection->internode;
	bool is_plain_possible =
	    internode->is_tls_optional || internode->encryption != INTERNODE_ALL;
	struct tls_context *context;
	uint8_t first;
	ssize_t got = recv(connection->socket.fd, &first, 1, MSG_PEEK);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got != 1) {
		internode_inbound_close(connection);
		return false;
	}
	connection->is_tls_known = true;
	if (first != INTERNODE_TLS_RECORD) {
		if (is_plain_possible)
			return true;
		internode_inbound_refuse(
		    connection, "it is not encrypted, as internode_encryption wants it");
		return false;
	}
	context = internode_tls(internode);
	if (context != NULL)
		connection->socket.tls =
		    tls_session_accept(context, connection->socket.fd, connection->socket.address);
	tls_context_unref(context);
	if (connection->socket.tls == NULL) {
		internode_inbound_close(connection);
		return false;
	}
	return true;
}

/* Keep what of `have` bytes in `rest`, and `got` more behind them, was not taken. */
static void
internode_inbound_keep(struct buffer *rest, const uint8_t *got, size_t size, size_t taken)
{
	if (rest->size > 0) {
		rest->size += size;
		memmove(rest->data, rest->data + taken, rest->size - taken);
		rest->size -= taken;
	} else {
		buffer_put(rest, got + taken, size - taken);
	}
	if (rest->size == 0 && rest->capacity > 0 && !rest->is_failed) {
		buffer_fini(rest);
		buffer_init(rest);
	}
}

/*
 * One read. Into the loop's memory where nothing is half read: what is left of it then moves to the connection's own,
 * so that idle connections hold none. True: there may be more to read. The caller holds a reference.
 */
static bool
internode_inbound_read(struct internode_inbound_connection *connection)
{
	struct internode_loop *loop = connection->loop->internode;
	struct buffer *rest = &connection->rest;
	uint8_t *into = loop->read_memory;
	size_t room = INTERNODE_READ_SIZE, have = rest->size, taken;
	struct error err;
	ssize_t got;

	if (have > 0) {
		room = INTERNODE_READ_SIZE / 4;
		if (!buffer_reserve(rest, room)) {
			internode_inbound_refuse(connection, "no memory to read");
			return false;
		}
		into = rest->data + have;
	}
	errno = 0;
	got = internode_socket_read(&connection->socket, into, room);
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got <= 0) {
		if (!connection->is_up && connection->socket.tls != NULL && got < 0) {
			internode_socket_error(&connection->socket, &err, "handshake");
			internode_inbound_refuse(connection, err.text);
		} else {
			internode_inbound_close(connection);
		}
		return false;
	}
	taken = internode_inbound_take(connection, slice_of(into - have, have + (size_t)got));
	if (connection->socket.fd < 0)
		return false;
	internode_inbound_keep(rest, into, (size_t)got, taken);
	if (rest->is_failed) {
		internode_inbound_refuse(connection, "no memory to read");
		return false;
	}
	return connection->socket.tls != NULL || (size_t)got == room;
}

/* What was left while it was throttled. */
static void
internode_inbound_take_rest(struct internode_inbound_connection *connection)
{
	struct buffer *rest = &connection->rest;
	size_t taken;

	taken = internode_inbound_take(connection, buffer_slice(rest));
	if (connection->socket.fd >= 0 && taken > 0)
		internode_inbound_keep(rest, NULL, 0, taken);
}

static void
internode_inbound_read_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_inbound_connection *connection = argument;

	(void)fd;
	(void)what;
	loop_note_now(connection->loop);
	if (!connection->is_tls_known && !internode_inbound_choose_tls(connection))
		return;
	/* Hold it: any step may close it. */
	atomic_fetch_add_explicit(&connection->held, INTERNODE_HELD_ONE, memory_order_relaxed);
	if (connection->rest.size > 0 && connection->is_up)
		internode_inbound_take_rest(connection);
	for (int i = 0; i < INTERNODE_READS_MAX; i++) {
		if (connection->socket.fd < 0 || !connection->socket.is_reading ||
		    !internode_inbound_read(connection))
			break;
		if (i == INTERNODE_READS_MAX - 1 && connection->socket.tls != NULL &&
		    connection->socket.fd >= 0)
			event_active(connection->socket.read_event, EV_READ, 0);
	}
	internode_inbound_unref(connection);
}

static void
internode_inbound_write_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_inbound_connection *connection = argument;

	loop_note_now(connection->loop);
	if (connection->written < connection->out.size)
		internode_inbound_flush(connection);
	else
		internode_inbound_read_cb(fd, what, argument); /* TLS wanted to write for a read */
}
