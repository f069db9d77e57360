/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/alloc.h"

enum {
	STRESS_READ_SIZE = 256 << 10,
	STRESS_READS_MAX = 4, /* in a row, before others have their turn */
	STRESS_RESPONSE_MAX = ENVELOPE_BODY_MAX,
};

/* ---- The socket ---------------------------------------------------------------------------------- */

static int
stress_connection_dial(const char *host, int port, int timeout_ms, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *each;
	struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	char service[16];
	int rc, fd = -1, on = 1;

	snprintf(service, sizeof(service), "%d", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		return error_set(err, ERROR_IO, "%s: %s", host, gai_strerror(rc));
	for (each = list; each != NULL; each = each->ai_next) {
		fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		/* Bounds connect() as well. */
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (connect(fd, each->ai_addr, each->ai_addrlen) == 0)
			break;
		rc = errno == EINPROGRESS ? ETIMEDOUT : errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		return error_set_errno(err, rc, "cannot connect to %s:%d", host, port);
	return fd;
}

static int
stress_connection_set_blocking(struct stress_connection *connection, bool blocks)
{
	int flags = fcntl(connection->fd, F_GETFL);

	return fcntl(connection->fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static int
stress_connection_error(const char *what, struct error *err)
{
	unsigned long code = ERR_get_error();
	char text[256];

	if (code == 0)
		return error_set_errno(err, errno != 0 ? errno : ECONNRESET, "%s", what);
	ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	return error_set(err, ERROR_IO, "%s: %s", what, text);
}

static int
stress_connection_secure(struct stress_connection *connection, const char *host, struct error *err)
{
	connection->ssl = SSL_new(connection->tls->context);
	if (connection->ssl == NULL || SSL_set_fd(connection->ssl, connection->fd) != 1)
		return stress_connection_error("TLS", err);
	SSL_set_tlsext_host_name(connection->ssl, host);
	if (connection->settings->verifies_host)
		SSL_set1_host(connection->ssl, host);
	errno = 0;
	if (SSL_connect(connection->ssl) != 1)
		return stress_connection_error("TLS handshake", err);
	return 0;
}

/* Bytes read, 0 where there are none now, -1 on failure or at the end. */
static ssize_t
stress_connection_recv(
    struct stress_connection *connection, uint8_t *to, size_t size, struct error *err)
{
	ssize_t got;

	errno = 0;
	if (connection->ssl != NULL) {
		got = SSL_read(connection->ssl, to, size > INT32_MAX ? INT32_MAX : (int)size);
		if (got > 0)
			return got;
		switch (SSL_get_error(connection->ssl, (int)got)) {
		case SSL_ERROR_WANT_READ:
		case SSL_ERROR_WANT_WRITE:
			return 0;
		case SSL_ERROR_ZERO_RETURN:
			return error_set(err, ERROR_IO, "Connection has been closed");
		default:
			return stress_connection_error("Connection has been closed", err);
		}
	}
	do {
		got = recv(connection->fd, to, size, 0);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		return got;
	if (got == 0)
		return error_set(err, ERROR_IO, "Connection has been closed");
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return 0;
	return error_set_errno(err, errno, "Connection has been closed");
}

static ssize_t
stress_connection_send(
    struct stress_connection *connection, const uint8_t *from, size_t size, struct error *err)
{
	ssize_t sent;

	errno = 0;
	if (connection->ssl != NULL) {
		sent = SSL_write(connection->ssl, from, size > INT32_MAX ? INT32_MAX : (int)size);
		if (sent > 0)
			return sent;
		switch (SSL_get_error(connection->ssl, (int)sent)) {
		case SSL_ERROR_WANT_READ:
		case SSL_ERROR_WANT_WRITE:
			return 0;
		default:
			return stress_connection_error("Error writing", err);
		}
	}
	do {
		sent = send(connection->fd, from, size, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return 0;
	return error_set_errno(err, errno, "Error writing");
}

/* ---- Out ------------------------------------------------------------------------------------------- */

struct buffer *
stress_connection_out(struct stress_connection *connection)
{
	if (connection->is_framed && !connection->has_segment) {
		connection->segment = segment_begin(&connection->out, connection->compression);
		connection->has_segment = true;
	}
	return connection->out.is_failed ? NULL : &connection->out;
}

int
stress_connection_flush(struct stress_connection *connection, struct error *err)
{
	if (connection->has_segment) {
		segment_end(&connection->out, connection->segment, connection->compression);
		connection->has_segment = false;
	}
	if (buffer_check(&connection->out, err) != 0)
		return -1;
	connection->wants_write = false;
	while (connection->out_sent < connection->out.size) {
		ssize_t sent =
		    stress_connection_send(connection, connection->out.data + connection->out_sent,
			connection->out.size - connection->out_sent, err);

		if (sent < 0)
			return -1;
		if (sent == 0) {
			connection->wants_write = true;
			return 0;
		}
		connection->out_sent += (size_t)sent;
	}
	buffer_clear(&connection->out);
	connection->out_sent = 0;
	return 0;
}

/* ---- In -------------------------------------------------------------------------------------------- */

static int
stress_connection_deliver(struct stress_connection *connection, struct envelope *envelope,
    stress_envelope_fn handle, void *user, struct error *err)
{
	if ((envelope->header.flags & ENVELOPE_COMPRESSED) != 0 &&
	    compression_open_body(connection->compression, envelope, STRESS_RESPONSE_MAX,
		&connection->bodies, err) != 0)
		return -1;
	handle(user, envelope);
	return 0;
}

static int
stress_connection_cut_payload(struct stress_connection *connection, struct slice payload,
    stress_envelope_fn handle, void *user, struct error *err)
{
	while (payload.size > 0) {
		struct envelope envelope;
		size_t consumed = 0;
		enum envelope_result result = envelope_decode_payload(
		    &connection->envelopes, payload, &consumed, &envelope, err);

		if (result == ENVELOPE_BAD)
			return -1;
		payload = slice_of(payload.data + consumed, payload.size - consumed);
		if (result == ENVELOPE_MORE)
			break;
		if (stress_connection_deliver(connection, &envelope, handle, user, err) != 0)
			return -1;
	}
	return 0;
}

/* Take one segment or envelope off the run. 1: taken, 0: it is not whole yet. */
static int
stress_connection_cut(struct stress_connection *connection, struct slice run, size_t *consumed,
    stress_envelope_fn handle, void *user, struct error *err)
{
	struct envelope_header header;
	struct envelope envelope;
	struct slice payload;

	*consumed = 0;
	if (connection->is_framed) {
		switch (
		    segment_decode(&connection->segments, run, consumed, &payload, &header, err)) {
		case SEGMENT_MORE:
			return *consumed > 0;
		case SEGMENT_PAYLOAD:
			return stress_connection_cut_payload(
				   connection, payload, handle, user, err) == 0
			    ? 1
			    : -1;
		default:
			return -1;
		}
	}
	switch (envelope_decode(&connection->envelopes, run, consumed, &envelope, err)) {
	case ENVELOPE_MORE:
		return *consumed > 0;
	case ENVELOPE_ONE:
		return stress_connection_deliver(connection, &envelope, handle, user, err) == 0
		    ? 1
		    : -1;
	default:
		return -1;
	}
}

static int
stress_connection_cut_all(
    struct stress_connection *connection, stress_envelope_fn handle, void *user, struct error *err)
{
	size_t at = 0;
	int rc = 1;

	while (rc > 0 && at < connection->in_size && connection->fd >= 0) {
		size_t consumed;

		rc = stress_connection_cut(connection,
		    slice_of(connection->in + at, connection->in_size - at), &consumed, handle,
		    user, err);
		at += consumed;
	}
	memmove(connection->in, connection->in + at, connection->in_size - at);
	connection->in_size -= at;
	arena_reset(&connection->bodies);
	return rc < 0 ? -1 : 0;
}

int
stress_connection_read(
    struct stress_connection *connection, stress_envelope_fn handle, void *user, struct error *err)
{
	for (int reads = 0; reads < STRESS_READS_MAX; reads++) {
		size_t room = connection->in_capacity - connection->in_size;
		ssize_t got;

		if (room < STRESS_READ_SIZE / 4) {
			connection->in_capacity *= 2;
			connection->in = xrealloc(connection->in, connection->in_capacity);
			room = connection->in_capacity - connection->in_size;
		}
		got = stress_connection_recv(
		    connection, connection->in + connection->in_size, room, err);
		if (got < 0)
			return -1;
		if (got == 0)
			return 0;
		connection->in_size += (size_t)got;
		if (stress_connection_cut_all(connection, handle, user, err) != 0)
			return -1;
		/* A short read took all there was; TLS may hold a record back. */
		if (connection->ssl != NULL ? SSL_pending(connection->ssl) == 0
					    : (size_t)got < room)
			return 0;
	}
	return 0;
}

int
stress_connection_wait(struct stress_connection *connection, int timeout_ms, struct error *err)
{
	struct pollfd poller = {.fd = connection->fd, .events = POLLIN};
	int rc;

	if (connection->wants_write)
		poller.events |= POLLOUT;
	if (connection->ssl != NULL && SSL_pending(connection->ssl) > 0)
		return 0;
	do {
		rc = poll(&poller, 1, timeout_ms);
	} while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return error_set(err, ERROR_IO, "Timed out waiting for server response");
	return rc > 0 ? 0 : error_set_errno(err, errno, "poll");
}

/* ---- The handshake ----------------------------------------------------------------------------------- */

struct stress_hello {
	struct stress_connection *connection;
	struct arena arena;
	bool is_answered;
	uint8_t opcode;
	uint8_t server_version; /* of the answer */
	struct error error;
};

static void
stress_hello_cb(void *user, const struct envelope *envelope)
{
	struct stress_hello *hello = user;
	struct client_response response;

	hello->is_answered = true;
	hello->opcode = envelope->header.opcode;
	hello->server_version = envelope->header.version;
	if (client_decode_response(envelope, &hello->arena, &response, &hello->error) != 0) {
		hello->opcode = OPCODE_ERROR;
		return;
	}
	if (response.opcode == OPCODE_ERROR)
		error_set(&hello->error,
		    response.error.code == 0x0100       ? ERROR_BAD_CREDENTIALS
			: response.error.code == 0x000a ? ERROR_PROTOCOL
							: ERROR_SERVER,
		    "%.*s", (int)response.error.text.size, (const char *)response.error.text.data);
	/* Everything after the first answer is in segments. */
	if (envelope->header.version >= 5 &&
	    (response.opcode == OPCODE_READY || response.opcode == OPCODE_AUTHENTICATE))
		hello->connection->is_framed = true;
}

static int
stress_hello_ask(struct stress_hello *hello, const struct client_message *request, int timeout_ms,
    struct error *err)
{
	struct stress_connection *connection = hello->connection;

	hello->is_answered = false;
	if (client_put_request(stress_connection_out(connection), request, COMPRESSION_NONE, err) !=
		0 ||
	    stress_connection_flush(connection, err) != 0)
		return -1;
	while (!hello->is_answered) {
		if (stress_connection_wait(connection, timeout_ms, err) != 0 ||
		    stress_connection_flush(connection, err) != 0 ||
		    stress_connection_read(connection, stress_hello_cb, hello, err) != 0)
			return -1;
	}
	if (hello->opcode != OPCODE_ERROR)
		return 0;
	if (err != NULL)
		*err = hello->error;
	return -1;
}

static int
stress_hello_authenticate(struct stress_hello *hello, int timeout_ms, struct error *err)
{
	const struct stress_settings *settings = hello->connection->settings;
	struct client_message request = {
	    .version = hello->connection->version, .opcode = OPCODE_AUTH_RESPONSE};
	struct buffer token;
	int rc;

	if (settings->user == NULL || settings->password == NULL)
		return error_set(err, ERROR_BAD_CREDENTIALS,
		    "The server requires authentication: -mode user= password=");
	buffer_init(&token);
	client_put_plain_token(&token, settings->user, settings->password);
	request.auth_response.token = buffer_slice(&token);
	rc = stress_hello_ask(hello, &request, timeout_ms, err);
	buffer_fini(&token);
	if (rc == 0 && hello->opcode != OPCODE_AUTH_SUCCESS)
		return error_set(err, ERROR_BAD_CREDENTIALS, "The server asks for more than PLAIN");
	return rc;
}

static int
stress_hello_say(struct stress_hello *hello, int timeout_ms, struct error *err)
{
	struct stress_connection *connection = hello->connection;
	struct startup_option options[] = {
	    {slice_of_string("CQL_VERSION"), slice_of_string("3.0.0")},
	    {slice_of_string("DRIVER_NAME"), slice_of_string("helenus-stress")},
	    {slice_of_string("COMPRESSION"),
		slice_of_string(compression_name(connection->compression))},
	};
	struct client_message request = {
	    .version = connection->version,
	    .opcode = OPCODE_STARTUP,
	    .startup = {connection->compression == COMPRESSION_NONE ? 2 : 3, options},
	};

	if (stress_hello_ask(hello, &request, timeout_ms, err) != 0)
		return -1;
	segment_decoder_init(&connection->segments,
	    connection->is_framed ? connection->compression : COMPRESSION_NONE,
	    STRESS_RESPONSE_MAX);
	if (hello->opcode == OPCODE_AUTHENTICATE)
		return stress_hello_authenticate(hello, timeout_ms, err);
	if (hello->opcode != OPCODE_READY)
		return error_set(err, ERROR_PROTOCOL, "Unexpected answer to STARTUP: %s",
		    opcode_name(hello->opcode));
	return 0;
}

static int
stress_connection_open_version(struct stress_connection *connection, const char *host, int port,
    int timeout_ms, uint8_t *server_version, struct error *err)
{
	struct stress_hello hello = {.connection = connection};
	int rc = -1;

	connection->fd = stress_connection_dial(host, port, timeout_ms, err);
	if (connection->fd < 0)
		return -1;
	buffer_init(&connection->out);
	arena_init(&connection->bodies, 65536);
	arena_init(&hello.arena, 4096);
	connection->in_capacity = STRESS_READ_SIZE;
	connection->in = xmalloc(connection->in_capacity);
	envelope_decoder_init(&connection->envelopes, true, STRESS_RESPONSE_MAX);
	segment_decoder_init(&connection->segments, COMPRESSION_NONE, STRESS_RESPONSE_MAX);
	if (connection->tls->context == NULL ||
	    stress_connection_secure(connection, host, err) == 0) {
		stress_connection_set_blocking(connection, false);
		rc = stress_hello_say(&hello, timeout_ms, err);
	}
	*server_version = hello.is_answered ? hello.server_version : 0;
	arena_fini(&hello.arena);
	if (rc != 0)
		stress_connection_close(connection);
	return rc;
}

int
stress_connection_open(struct stress_connection *connection, const struct stress_settings *settings,
    const struct stress_tls *tls, const char *host, int port, uint8_t version, int timeout_ms,
    struct error *err)
{
	bool is_asked = version != 0;
	uint8_t answered;

	/* Version 5 knows no snappy. */
	if (!is_asked)
		version = settings->compression == COMPRESSION_SNAPPY ? 4 : 5;
	for (;;) {
		*connection = (struct stress_connection){
		    .settings = settings,
		    .tls = tls,
		    .fd = -1,
		    .version = version,
		    .compression = settings->compression,
		};
		if (stress_connection_open_version(
			connection, host, port, timeout_ms, &answered, err) == 0)
			return 0;
		if (is_asked || err->code != ERROR_PROTOCOL || answered >= version || answered < 3)
			return -1;
		version = answered;
	}
}

void
stress_connection_close(struct stress_connection *connection)
{
	if (connection->fd < 0)
		return;
	if (connection->ssl != NULL)
		SSL_free(connection->ssl);
	connection->ssl = NULL;
	close(connection->fd);
	connection->fd = -1;
	buffer_fini(&connection->out);
	connection->out_sent = 0;
	connection->has_segment = false;
	segment_decoder_fini(&connection->segments);
	arena_fini(&connection->bodies);
	free(connection->in);
	connection->in = NULL;
	connection->in_size = 0;
}
