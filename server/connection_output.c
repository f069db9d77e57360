/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "protocol/compression.h"
#include "protocol/response.h"
#include "server/connection.h"
#include "server/loop.h"
#include "server/network_internal.h"

enum {
	CONNECTION_VECTORS = 32,
	CONNECTION_CHUNK_MIN = 4 << 10,
	CONNECTION_CHUNK_MAX = 64 << 10, /* a chunk that holds this much gets no more */
	CONNECTION_CHUNK_KEEP = 128 << 10, /* an idle connection keeps a chunk of at most this */
};

static void
connection_mark_dirty(struct connection *connection)
{
	struct loop *loop = connection->loop;

	if (connection->is_dirty)
		return;
	connection->is_dirty = true;
	connection->next_dirty = loop->dirty;
	loop->dirty = connection;
}

static struct connection_chunk *
connection_new_chunk(struct connection *connection)
{
	struct connection_chunk *chunk = xzalloc(sizeof(*chunk));

	buffer_init(&chunk->bytes);
	if (connection->last_chunk != NULL)
		connection->last_chunk->next = chunk;
	else
		connection->chunks = chunk;
	connection->last_chunk = chunk;
	return chunk;
}

/* The segment that is being filled becomes whole. */
static void
connection_close_segment(struct connection *connection)
{
	struct connection_chunk *chunk = connection->last_chunk;
	size_t before;

	if (!connection->is_segment_open)
		return;
	assert(chunk != NULL);
	before = chunk->bytes.size;
	segment_end(&chunk->bytes, connection->segment_mark, connection->handshake.compression);
	connection->is_segment_open = false;
	connection->output_bytes += chunk->bytes.size - before; /* may shrink: modular */
}

/* The chunk that takes the next envelope. */
static struct connection_chunk *
connection_tail(struct connection *connection)
{
	struct connection_chunk *chunk = connection->last_chunk;

	if (chunk == NULL || chunk->bytes.size >= CONNECTION_CHUNK_MAX) {
		connection_close_segment(connection);
		chunk = connection_new_chunk(connection);
	}
	if (connection->handshake.is_framed && !connection->is_segment_open) {
		size_t before = chunk->bytes.size;

		connection->segment_mark =
		    segment_begin(&chunk->bytes, connection->handshake.compression);
		connection->is_segment_open = true;
		connection->output_bytes += chunk->bytes.size - before;
	}
	return chunk;
}

/* v3 and v4: the body is compressed where it stands. */
static void
connection_compress(struct connection *connection, struct buffer *bytes, size_t start)
{
	enum compression compression = handshake_body_compression(&connection->handshake);
	size_t body = start + ENVELOPE_HEADER_SIZE;

	if (compression == COMPRESSION_NONE || bytes->is_failed)
		return;
	if (!compression_close_body(compression, bytes, body))
		return;
	bytes->data[start + 1] |= ENVELOPE_COMPRESSED;
	store_u32(bytes->data + start + 5, (uint32_t)(bytes->size - body));
}

void
connection_append(struct connection *connection, struct buffer *envelope)
{
	struct connection_chunk *chunk;
	size_t before;

	if (connection->fd < 0 || envelope->size == 0)
		return;
	connection_mark_dirty(connection);
	if (envelope->size > CONNECTION_CHUNK_COPY_MAX && !connection->handshake.is_framed) {
		/* A long answer is sent from where it stands. */
		chunk = connection_new_chunk(connection);
		chunk->bytes = *envelope;
		buffer_init(envelope);
		connection_compress(connection, &chunk->bytes, 0);
		connection->output_bytes += chunk->bytes.size;
		return;
	}
	chunk = connection_tail(connection);
	before = chunk->bytes.size;
	buffer_put(&chunk->bytes, envelope->data, envelope->size);
	if (!connection->handshake.is_framed)
		connection_compress(connection, &chunk->bytes, before);
	connection->output_bytes += chunk->bytes.size - before;
}

void
connection_append_error(
    struct connection *connection, uint8_t version, int16_t stream, const struct error *err)
{
	struct buffer buffer;

	buffer_init(&buffer);
	response_put_error_envelope(&buffer, version, stream, 0, err);
	connection_append(connection, &buffer);
	buffer_fini(&buffer);
}

static void
connection_drop_chunk(struct connection *connection)
{
	struct connection_chunk *chunk = connection->chunks;

	/* The last one stays for the next answers, unless it is big. */
	if (chunk->next == NULL && chunk->bytes.capacity <= CONNECTION_CHUNK_KEEP) {
		buffer_clear(&chunk->bytes);
		chunk->written = 0;
		return;
	}
	connection->chunks = chunk->next;
	if (connection->chunks == NULL)
		connection->last_chunk = NULL;
	buffer_fini(&chunk->bytes);
	free(chunk);
}

static void
connection_note_written(struct connection *connection, size_t written)
{
	struct metrics_loop *metrics = connection->loop->metrics;

	connection->output_bytes -= written;
	atomic_store_explicit(&metrics->bytes_written,
	    atomic_load_explicit(&metrics->bytes_written, memory_order_relaxed) + written,
	    memory_order_relaxed);
	while (written > 0) {
		struct connection_chunk *chunk = connection->chunks;
		size_t left = chunk->bytes.size - chunk->written;

		if (written < left) {
			chunk->written += written;
			return;
		}
		written -= left;
		connection_drop_chunk(connection);
	}
}

/* One write; -1 with errno. */
static ssize_t
connection_send(struct connection *connection)
{
	struct connection_chunk *chunk = connection->chunks;
	struct iovec vectors[CONNECTION_VECTORS];
	struct msghdr message = {.msg_iov = vectors};

	if (connection->tls != NULL)
		return tls_write(connection->tls, chunk->bytes.data + chunk->written,
		    chunk->bytes.size - chunk->written);
	if (chunk->next == NULL)
		return send(connection->fd, chunk->bytes.data + chunk->written,
		    chunk->bytes.size - chunk->written, MSG_NOSIGNAL);
	for (; chunk != NULL && message.msg_iovlen < CONNECTION_VECTORS; chunk = chunk->next) {
		struct iovec *vector = &vectors[message.msg_iovlen++];

		vector->iov_base = chunk->bytes.data + chunk->written;
		vector->iov_len = chunk->bytes.size - chunk->written;
	}
	return sendmsg(connection->fd, &message, MSG_NOSIGNAL);
}

/* A buffer that had no memory holds half an envelope: nothing sensible can follow. */
static bool
connection_output_is_whole(const struct connection *connection)
{
	for (const struct connection_chunk *chunk = connection->chunks; chunk != NULL;
	     chunk = chunk->next)
		if (chunk->bytes.is_failed)
			return false;
	return true;
}

void
connection_flush(struct connection *connection)
{
	if (connection->fd < 0)
		return;
	connection_close_segment(connection);
	if (!connection_output_is_whole(connection)) {
		connection_close(connection);
		return;
	}
	while (connection->output_bytes > 0) {
		ssize_t written;

		while (connection->chunks->written == connection->chunks->bytes.size)
			connection_drop_chunk(connection); /* kept empty; another follows */
		written = connection_send(connection);

		if (written > 0) {
			connection_note_written(connection, (size_t)written);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN) {
			connection_close(connection);
			return;
		}
		if (!connection->is_write_waiting) {
			event_add(connection->write_event, NULL);
			connection->is_write_waiting = true;
		}
		break;
	}
	if (connection->output_bytes == 0 && connection->close_when_written) {
		connection_close(connection);
		return;
	}
	if (connection->output_bytes > CONNECTION_OUTPUT_HIGH)
		connection_pause(connection, CONNECTION_PAUSE_OUTPUT);
	else if ((connection->pauses & CONNECTION_PAUSE_OUTPUT) != 0 &&
	    connection->output_bytes <= CONNECTION_OUTPUT_LOW)
		connection_resume(connection, CONNECTION_PAUSE_OUTPUT);
}

void
connection_output_fini(struct connection *connection)
{
	while (connection->chunks != NULL) {
		struct connection_chunk *next = connection->chunks->next;

		buffer_fini(&connection->chunks->bytes);
		free(connection->chunks);
		connection->chunks = next;
	}
	connection->last_chunk = NULL;
	connection->output_bytes = 0;
	connection->is_segment_open = false;
}
