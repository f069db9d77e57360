/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "server/internode_internal.h"

/* ---- Addresses ------------------------------------------------------------------------------ */

static socklen_t
internode_address(const struct endpoint *endpoint, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
	struct sockaddr_in *four = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (endpoint->size == 16) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		memcpy(&six->sin6_addr, endpoint->address, 16);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = htons(port);
	memcpy(&four->sin_addr, endpoint->address, 4);
	return sizeof(*four);
}

static void
internode_socket_name(struct internode_socket *socket, const struct sockaddr_storage *other)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)other;
	const struct sockaddr_in *four = (const struct sockaddr_in *)other;
	struct endpoint endpoint = {0};

	if (other->ss_family == AF_INET6) {
		endpoint.size = 16;
		endpoint.port = ntohs(six->sin6_port);
		memcpy(endpoint.address, &six->sin6_addr, 16);
	} else {
		endpoint.size = 4;
		endpoint.port = ntohs(four->sin_port);
		memcpy(endpoint.address, &four->sin_addr, 4);
	}
	endpoint_format_address(&endpoint, socket->address);
	endpoint_format(&endpoint, socket->name);
}

/* ---- Sockets -------------------------------------------------------------------------------- */

static int
internode_socket_watch(struct internode_socket *socket, event_callback_fn read_cb,
    event_callback_fn write_cb, void *argument)
{
	struct event_base *base = socket->loop->base;

	socket->read_event = event_new(base, socket->fd, EV_READ | EV_PERSIST, read_cb, argument);
	socket->write_event = event_new(base, socket->fd, EV_WRITE, write_cb, argument);
	if (socket->read_event == NULL || socket->write_event == NULL ||
	    event_add(socket->read_event, NULL) != 0) {
		internode_socket_close(socket);
		return -1;
	}
	socket->is_reading = true;
	return 0;
}

static void
internode_socket_unwatch(struct internode_socket *socket)
{
	if (socket->read_event != NULL)
		event_free(socket->read_event);
	if (socket->write_event != NULL)
		event_free(socket->write_event);
	socket->read_event = socket->write_event = NULL;
}

static void
internode_socket_tune(const struct internode_socket *socket)
{
	const struct node *node = socket->loop->node;
	const struct config *config = node->config;
	int on = 1, fd = socket->fd;
	unsigned user_ms = (unsigned)atomic_load_explicit(
	    &node->timeouts_ms[NODE_TIMEOUT_INTERNODE_USER], memory_order_relaxed);
	int send_size = (int)config->internode_socket_send_buffer_size;
	int receive_size = (int)config->internode_socket_receive_buffer_size;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (user_ms > 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
	if (send_size > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_size, sizeof(send_size));
	if (receive_size > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_size, sizeof(receive_size));
}

int
internode_socket_open(struct internode_socket *socket, struct loop *loop, int fd,
    const struct sockaddr_storage *other, event_callback_fn read_cb, event_callback_fn write_cb,
    void *argument)
{
	*socket = (struct internode_socket){.loop = loop, .fd = fd};
	internode_socket_name(socket, other);
	internode_socket_tune(socket);
	return internode_socket_watch(socket, read_cb, write_cb, argument);
}

int
internode_socket_move(struct internode_socket *from, struct internode_socket *to,
    event_callback_fn read_cb, event_callback_fn write_cb, void *argument)
{
	internode_socket_unwatch(from);
	*to = *from;
	from->fd = -1;
	from->tls = NULL;
	if (internode_socket_watch(to, read_cb, write_cb, argument) != 0)
		return -1;
	/* TLS may hold bytes that the socket no longer shows. */
	if (to->tls != NULL)
		event_active(to->read_event, EV_READ, 0);
	return 0;
}

void
internode_socket_close(struct internode_socket *socket)
{
	if (socket->fd < 0)
		return;
	internode_socket_unwatch(socket);
	tls_session_free(socket->tls);
	socket->tls = NULL;
	close(socket->fd);
	socket->fd = -1;
}

void
internode_socket_pause(struct internode_socket *socket, bool is_paused)
{
	if (socket->fd < 0 || socket->is_reading == !is_paused)
		return;
	socket->is_reading = !is_paused;
	if (is_paused) {
		event_del(socket->read_event);
		return;
	}
	event_add(socket->read_event, NULL);
	if (socket->tls != NULL)
		event_active(socket->read_event, EV_READ, 0);
}

ssize_t
internode_socket_read(struct internode_socket *socket, void *out, size_t size)
{
	ssize_t got;

	do {
		got = socket->tls != NULL ? tls_read(socket->tls, out, size)
					  : recv(socket->fd, out, size, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN && socket->tls != NULL && tls_wants_write(socket->tls))
		event_add(socket->write_event, NULL);
	return got;
}

ssize_t
internode_socket_write(struct internode_socket *socket, const void *data, size_t size)
{
	ssize_t written;

	do {
		written = socket->tls != NULL ? tls_write(socket->tls, data, size)
					      : send(socket->fd, data, size, MSG_NOSIGNAL);
	} while (written < 0 && errno == EINTR);
	/* A TLS handshake may wait for the other side instead: the read callback comes then. */
	if (written < 0 && errno == EAGAIN && (socket->tls == NULL || tls_wants_write(socket->tls)))
		event_add(socket->write_event, NULL);
	return written;
}

void
internode_socket_error(const struct internode_socket *socket, struct error *out, const char *what)
{
	int saved = errno;

	if (saved == EPROTO && socket->tls != NULL)
		error_set(out, ERROR_IO, "%s: TLS: %s", what, tls_reason(socket->tls));
	else if (saved == 0)
		error_set(out, ERROR_IO, "%s: closed by peer", what);
	else
		error_set_errno(out, saved, "%s", what);
}

int
internode_timer_set(
    struct event **timer, struct loop *loop, uint64_t ms, event_callback_fn fire, void *argument)
{
	struct timeval in = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

	internode_timer_end(timer);
	*timer = event_new(loop->base, -1, 0, fire, argument);
	return *timer != NULL && event_add(*timer, &in) == 0 ? 0 : -1;
}

void
internode_timer_end(struct event **timer)
{
	if (*timer != NULL)
		event_free(*timer);
	*timer = NULL;
}

/* ---- Dialling ------------------------------------------------------------------------------- */

void
internode_dial_end(struct internode_dial *dial)
{
	internode_timer_end(&dial->timer);
	internode_socket_close(&dial->socket);
	buffer_fini(&dial->out);
	buffer_init(&dial->out);
	dial->is_connected = false;
	dial->written = dial->have = 0;
}

static void
internode_dial_fail(struct internode_dial *dial, const struct error *err)
{
	internode_dial_end(dial);
	dial->on_done(dial, err);
}

static void
internode_dial_timeout_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_dial *dial = argument;
	struct error err;

	(void)fd;
	(void)what;
	loop_note_now(dial->loop);
	error_set(&err, ERROR_IO, "%s within internode_tcp_connect_timeout",
	    dial->is_connected ? "no handshake" : "no connection");
	internode_dial_fail(dial, &err);
}

/* The welcome came. */
static void
internode_dial_done(struct internode_dial *dial)
{
	const struct frame_welcome *welcome = &dial->welcome;
	struct error err;

	if (welcome->status != FRAME_WELCOME) {
		error_set(&err, ERROR_PROTOCOL,
		    "the node refuses the connection: %s (it is of "
		    "cluster '%s', messaging version %u)",
		    frame_status_name(welcome->status), welcome->cluster_name, welcome->version);
	} else if (welcome->version < FRAME_VERSION_MIN || welcome->version > FRAME_VERSION ||
	    (welcome->compression != COMPRESSION_NONE && welcome->compression != COMPRESSION_LZ4)) {
		error_set(&err, ERROR_PROTOCOL,
		    "the node chose messaging version %u, compression "
		    "%u, which were not offered",
		    welcome->version, welcome->compression);
	} else {
		internode_timer_end(&dial->timer);
		buffer_fini(&dial->out);
		buffer_init(&dial->out);
		dial->on_done(dial, NULL);
		return;
	}
	internode_dial_fail(dial, &err);
}

/* Send what is left of the hello, then read the welcome, and not one byte more. */
static void
internode_dial_go_on(struct internode_dial *dial)
{
	struct error err;
	ssize_t got;

	while (dial->written < dial->out.size) {
		got = internode_socket_write(
		    &dial->socket, dial->out.data + dial->written, dial->out.size - dial->written);
		if (got < 0 && errno == EAGAIN)
			return;
		if (got < 0) {
			internode_socket_error(&dial->socket, &err, "handshake");
			internode_dial_fail(dial, &err);
			return;
		}
		dial->written += (size_t)got;
	}
	for (;;) {
		ssize_t taken =
		    frame_get_welcome(slice_of(dial->in, dial->have), &dial->welcome, &err);
		/* First what tells its size, then just that. */
		size_t want = dial->have < 6 ? 6 : 6 + load_u16(dial->in + 4) + 4U;

		if (taken > 0) {
			internode_dial_done(dial);
			return;
		}
		if (taken < 0) {
			internode_dial_fail(dial, &err);
			return;
		}
		assert(want > dial->have && want <= sizeof(dial->in));
		errno = 0;
		got =
		    internode_socket_read(&dial->socket, dial->in + dial->have, want - dial->have);
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			if (got == 0)
				errno = 0;
			internode_socket_error(&dial->socket, &err, "handshake");
			internode_dial_fail(dial, &err);
			return;
		}
		dial->have += (size_t)got;
	}
}

static int
internode_dial_connected(struct internode_dial *dial, struct error *err)
{
	struct internode *internode = dial->internode;
	int failure = 0;
	socklen_t size = sizeof(failure);

	if (getsockopt(dial->socket.fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
		failure = errno;
	if (failure != 0)
		return error_set_errno(err, failure, "connect");
	dial->is_connected = true;
	if (!internode->node->config->inter_dc_tcp_nodelay &&
	    internode_is_for(internode, INTERNODE_DC, dial->to)) {
		int off = 0;

		(void)setsockopt(dial->socket.fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off));
	}
	if (internode_is_for(internode, internode->encryption, dial->to)) {
		struct tls_context *context = internode_tls(internode);

		if (context != NULL)
			dial->socket.tls =
			    tls_session_connect(context, dial->socket.fd, dial->socket.address);
		tls_context_unref(context);
		if (dial->socket.tls == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no TLS session");
	}
	return 0;
}

static void
internode_dial_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_dial *dial = argument;
	struct error err;

	(void)fd;
	(void)what;
	loop_note_now(dial->loop);
	if (!dial->is_connected && internode_dial_connected(dial, &err) != 0) {
		internode_dial_fail(dial, &err);
		return;
	}
	internode_dial_go_on(dial);
}

static void
internode_dial_put_hello(struct internode_dial *dial)
{
	struct internode *internode = dial->internode;
	bool compresses = internode_is_for(internode, internode->compression, dial->to);
	struct frame_hello hello = {.version_min = FRAME_VERSION_MIN,
	    .version_max = FRAME_VERSION,
	    .kind = (uint8_t)dial->kind,
	    .compression = compresses ? COMPRESSION_LZ4 : COMPRESSION_NONE,
	    .from = internode->local,
	    .to = dial->to->endpoint};

	snprintf(hello.cluster_name, sizeof(hello.cluster_name), "%s",
	    internode->node->config->cluster_name);
	buffer_init(&dial->out);
	frame_put_hello(&dial->out, &hello);
}

/* From the address that we listen on: others may filter by it. Where that does not go, from any. */
static void
internode_dial_bind(const struct internode_dial *dial, int fd)
{
	struct sockaddr_storage local;
	struct endpoint endpoint;
	int on = 1;

	if (endpoint_parse(dial->internode->listen_address, 0, &endpoint, NULL) != 0 ||
	    endpoint.size != dial->to->endpoint.size)
		return;
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	(void)bind(fd, (struct sockaddr *)&local, internode_address(&endpoint, 0, &local));
}

void
internode_dial_start(struct internode_dial *dial)
{
	const struct node *node = dial->internode->node;
	uint64_t timeout = (uint64_t)atomic_load_explicit(
	    &node->timeouts_ms[NODE_TIMEOUT_INTERNODE_CONNECT], memory_order_relaxed);
	struct sockaddr_storage to;
	socklen_t size = internode_address(&dial->to->endpoint, dial->to->endpoint.port, &to);
	struct error err;
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	dial->socket.fd = -1;
	if (fd < 0) {
		error_set_errno(&err, errno, "socket");
		dial->on_done(dial, &err);
		return;
	}
	internode_dial_bind(dial, fd);
	if (connect(fd, (struct sockaddr *)&to, size) != 0 && errno != EINPROGRESS) {
		error_set_errno(&err, errno, "connect");
		close(fd);
		dial->on_done(dial, &err);
		return;
	}
	internode_dial_put_hello(dial);
	if (internode_socket_open(&dial->socket, dial->loop, fd, &to, internode_dial_cb,
		internode_dial_cb, dial) != 0 ||
	    event_add(dial->socket.write_event, NULL) != 0 || dial->out.is_failed ||
	    internode_timer_set(&dial->timer, dial->loop, timeout > 0 ? timeout : 1,
		internode_dial_timeout_cb, dial) != 0) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a connection");
		internode_dial_fail(dial, &err);
	}
}
