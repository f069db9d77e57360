/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/internode_internal.h"
#include "server/ranks.h"

enum internode_stream_state { STREAM_DIALLING, STREAM_OPEN, STREAM_ENDED };

struct internode_stream {
	struct stream_channel channel; /* first */
	struct loop_message wake; /* posted by who sets is_scheduled */
	struct internode *internode; /* borrowed */
	struct loop *loop; /* borrowed */

	atomic_bool is_scheduled; /* as of a link */
	struct internode_stream *next_dropped; /* in internode->dropped_streams */

	/* Guarded by lock. */
	struct lock lock;
	struct buffer queue; /* owned; records, each with its size in front */
	uint64_t pending_bytes; /* in `queue`, `raw` and `out` */
	bool is_full; /* the writer was told to wait */
	bool is_paused, is_closing;

	/* The loop's. */
	enum internode_stream_state state;
	struct internode_stream *next, *previous; /* in the loop's list */
	struct internode_dial dial;
	struct internode_socket socket;
	struct frame_reader reader;
	struct frame_writer writer;
	struct buffer raw; /* owned; taken off the queue */
	size_t raw_done;
	struct buffer out; /* owned; encoded */
	size_t written;
	struct buffer rest; /* owned; read and not taken */
	bool has_codec;
};

static void internode_stream_read_cb(evutil_socket_t fd, short what, void *argument);
static void internode_stream_write_cb(evutil_socket_t fd, short what, void *argument);

/* ---- Coming and going ----------------------------------------------------------------------- */

static void
internode_stream_free(struct internode_stream *stream)
{
	buffer_fini(&stream->queue);
	buffer_fini(&stream->raw);
	buffer_fini(&stream->out);
	buffer_fini(&stream->rest);
	if (stream->has_codec) {
		frame_reader_fini(&stream->reader);
		frame_writer_fini(&stream->writer);
	}
	lock_fini(&stream->lock);
	free(stream);
}

/* The end, told to the user; the memory goes at once, or with the wake that is on its way. */
static void
internode_stream_end(struct internode_stream *stream, const struct error *err)
{
	struct stream_user *user = stream->channel.user;

	assert(stream->state != STREAM_ENDED);
	if (stream->state == STREAM_DIALLING)
		internode_dial_end(&stream->dial);
	internode_socket_close(&stream->socket);
	stream->state = STREAM_ENDED;
	if (stream->next != NULL)
		stream->next->previous = stream->previous;
	if (stream->previous != NULL)
		stream->previous->next = stream->next;
	else
		stream->loop->internode->streams = stream->next;
	user->on_close(user, err);
	if (!atomic_exchange(&stream->is_scheduled, true))
		internode_stream_free(stream);
}

void
internode_streams_end(struct internode_loop *loop)
{
	struct error err;

	error_set(&err, ERROR_SHUTDOWN, "the node stops");
	while (loop->streams != NULL)
		internode_stream_end(loop->streams, &err);
}

static void
internode_stream_fail(struct internode_stream *stream, const char *what)
{
	struct error err;

	internode_socket_error(&stream->socket, &err, what);
	internode_stream_end(stream, &err);
}

/*
 * The loop that the wake was for has ended. Whoever posted it may be in stream_open() or stream_write() still, so it is
 * kept as it is, with is_scheduled set for good.
 */
static void
internode_stream_drop(struct loop_message *message)
{
	struct internode_stream *stream =
	    (struct internode_stream *)((char *)message - offsetof(struct internode_stream, wake));
	struct internode *internode = stream->internode;

	stream->next_dropped =
	    atomic_load_explicit(&internode->dropped_streams, memory_order_relaxed);
	/* Release: what was written to the stream before goes with it. */
	while (!atomic_compare_exchange_weak_explicit(&internode->dropped_streams,
	    &stream->next_dropped, stream, memory_order_release, memory_order_relaxed))
		;
}

void
internode_streams_end_dropped(struct internode *internode)
{
	struct internode_stream *stream =
	    atomic_exchange_explicit(&internode->dropped_streams, NULL, memory_order_acquire);
	struct error err;

	error_set(&err, ERROR_SHUTDOWN, "the node stops");
	while (stream != NULL) {
		struct internode_stream *next = stream->next_dropped;

		/* One that never began is in no list of a loop, so nobody has told its user yet. */
		if (stream->state != STREAM_ENDED)
			stream->channel.user->on_close(stream->channel.user, &err);
		internode_stream_free(stream);
		stream = next;
	}
}

/* ---- Writing, on the loop ------------------------------------------------------------------- */

static void
internode_stream_collect(struct internode_stream *stream)
{
	struct buffer empty;

	if (stream->raw_done < stream->raw.size)
		return;
	buffer_clear(&stream->raw);
	stream->raw_done = 0;
	lock_take(&stream->lock);
	empty = stream->raw;
	stream->raw = stream->queue;
	stream->queue = empty;
	lock_drop(&stream->lock);
}

static void
internode_stream_fill(struct internode_stream *stream)
{
	while (stream->out.size - stream->written < INTERNODE_OUT_HIGH) {
		const uint8_t *at;
		uint32_t size;

		internode_stream_collect(stream);
		if (stream->raw_done == stream->raw.size || stream->raw.is_failed)
			break;
		at = stream->raw.data + stream->raw_done;
		size = load_u32(at);
		frame_put(&stream->writer, &stream->out, slice_of(at + sizeof(size), size));
		stream->raw_done += sizeof(size) + size;
	}
	frame_writer_flush(&stream->writer, &stream->out);
}

/* All that was queued is written: room again, or the end. False: it has ended. */
static bool
internode_stream_drained(struct internode_stream *stream)
{
	struct stream_user *user = stream->channel.user;
	uint64_t left = stream->out.size - stream->written + stream->raw.size - stream->raw_done;
	bool is_writable, is_over;

	lock_take(&stream->lock);
	stream->pending_bytes = left + stream->queue.size;
	is_writable = stream->is_full && stream->pending_bytes <= STREAM_WRITE_LOW;
	if (is_writable)
		stream->is_full = false;
	is_over = stream->is_closing && stream->pending_bytes == 0;
	lock_drop(&stream->lock);
	if (is_over) {
		internode_stream_end(stream, NULL);
		return false;
	}
	if (is_writable)
		user->on_writable(user);
	return true;
}

static void
internode_stream_write(struct internode_stream *stream)
{
	struct error err;

	for (;;) {
		ssize_t written;

		internode_stream_fill(stream);
		if (buffer_check(&stream->out, &err) != 0 ||
		    buffer_check(&stream->raw, &err) != 0) {
			internode_stream_end(stream, &err);
			return;
		}
		if (stream->written == stream->out.size)
			break;
		written = internode_socket_write(&stream->socket,
		    stream->out.data + stream->written, stream->out.size - stream->written);
		if (written < 0 && errno == EAGAIN)
			break;
		if (written < 0) {
			internode_stream_fail(stream, "write");
			return;
		}
		stream->written += (size_t)written;
		if (stream->written < stream->out.size)
			continue;
		buffer_clear(&stream->out);
		stream->written = 0;
	}
	internode_stream_drained(stream);
}

/* ---- Reading, on the loop ------------------------------------------------------------------- */

static bool
internode_stream_is_paused(struct internode_stream *stream)
{
	bool is_paused;

	lock_take(&stream->lock);
	is_paused = stream->is_paused;
	lock_drop(&stream->lock);
	return is_paused;
}

/* Hand out the records of `bytes`; returns what is done with. Between frames it may be paused; records of one frame come
 * together. False: it has ended. */
static bool
internode_stream_take(struct internode_stream *stream, struct slice bytes, size_t *done)
{
	struct stream_user *user = stream->channel.user;
	struct slice record;
	struct error err;

	*done = 0;
	while (stream->reader.rest.size > 0 || !internode_stream_is_paused(stream)) {
		size_t consumed;
		enum frame_result result = frame_read(&stream->reader,
		    slice_of(bytes.data + *done, bytes.size - *done), &consumed, &record, &err);

		*done += consumed;
		if (result == FRAME_MORE)
			return true;
		/* A record that is lost cannot be made good here: the stream is. */
		if (result != FRAME_RECORD) {
			internode_stream_end(stream, &err);
			return false;
		}
		user->on_record(user, record);
	}
	return true;
}

/* True: read again. */
static bool
internode_stream_read(struct internode_stream *stream)
{
	struct buffer *rest = &stream->rest;
	size_t room = INTERNODE_READ_SIZE, done;
	ssize_t got;

	if (!buffer_reserve(rest, room)) {
		errno = ENOMEM;
		internode_stream_fail(stream, "read");
		return false;
	}
	errno = 0;
	got = internode_socket_read(&stream->socket, rest->data + rest->size, room);
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got <= 0) {
		if (got == 0)
			errno = 0;
		internode_stream_fail(stream, "read");
		return false;
	}
	rest->size += (size_t)got;
	if (!internode_stream_take(stream, buffer_slice(rest), &done))
		return false;
	memmove(rest->data, rest->data + done, rest->size - done);
	rest->size -= done;
	return stream->socket.tls != NULL || (size_t)got == room;
}

static void
internode_stream_read_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_stream *stream = argument;
	size_t done;

	(void)fd;
	(void)what;
	loop_note_now(stream->loop);
	if (stream->rest.size > 0) {
		if (!internode_stream_take(stream, buffer_slice(&stream->rest), &done))
			return;
		memmove(stream->rest.data, stream->rest.data + done, stream->rest.size - done);
		stream->rest.size -= done;
	}
	for (int i = 0; i < INTERNODE_READS_MAX && !internode_stream_is_paused(stream); i++) {
		if (!internode_stream_read(stream))
			return;
	}
	if (stream->socket.tls != NULL && stream->socket.is_reading)
		event_active(stream->socket.read_event, EV_READ, 0);
}

static void
internode_stream_write_cb(evutil_socket_t fd, short what, void *argument)
{
	struct internode_stream *stream = argument;

	(void)fd;
	(void)what;
	loop_note_now(stream->loop);
	if (stream->socket.tls != NULL && stream->socket.is_reading)
		event_active(stream->socket.read_event, EV_READ, 0);
	internode_stream_write(stream);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static void
internode_stream_opened(struct internode_stream *stream, enum compression compression)
{
	unsigned user_ms = (unsigned)atomic_load_explicit(
	    &stream->internode->node->timeouts_ms[NODE_TIMEOUT_INTERNODE_STREAM_USER],
	    memory_order_relaxed);

	(void)setsockopt(
	    stream->socket.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
	frame_reader_init(&stream->reader, compression, STREAM_RECORD_MAX);
	frame_writer_init(&stream->writer, compression);
	stream->has_codec = true;
	stream->state = STREAM_OPEN;
}

/* Whatever there is to do: read, write, end. */
static void
internode_stream_run(struct internode_stream *stream)
{
	bool is_closing;

	loop_note_now(stream->loop);
	lock_take(&stream->lock);
	is_closing = stream->is_closing;
	lock_drop(&stream->lock);
	if (stream->state == STREAM_DIALLING && is_closing) {
		internode_stream_end(stream, NULL);
		return;
	}
	if (stream->state != STREAM_OPEN)
		return;
	internode_socket_pause(&stream->socket, internode_stream_is_paused(stream));
	if (stream->socket.is_reading && stream->rest.size > 0)
		event_active(stream->socket.read_event, EV_READ, 0);
	internode_stream_write(stream);
}

static void
internode_stream_woken(struct loop_message *message, struct loop *loop)
{
	struct internode_stream *stream =
	    (struct internode_stream *)((char *)message - offsetof(struct internode_stream, wake));

	(void)loop;
	if (stream->state == STREAM_ENDED) {
		internode_stream_free(stream);
		return;
	}
	/* Here alone: while the wake is on its way nobody may post it again. */
	atomic_store(&stream->is_scheduled, false);
	internode_stream_run(stream);
}

static void
internode_stream_dialled(struct internode_dial *dial, const struct error *err)
{
	struct internode_stream *stream =
	    (struct internode_stream *)((char *)dial - offsetof(struct internode_stream, dial));
	struct error failed;

	if (err != NULL) {
		failed = *err;
		error_prefix(&failed, "cannot open a stream");
		internode_stream_end(stream, &failed);
		return;
	}
	if (internode_socket_move(&dial->socket, &stream->socket, internode_stream_read_cb,
		internode_stream_write_cb, stream) != 0) {
		error_set(&failed, ERROR_NO_MEMORY, "no memory for a connection");
		internode_stream_end(stream, &failed);
		return;
	}
	internode_stream_opened(stream, (enum compression)dial->welcome.compression);
	internode_stream_run(stream);
}

static void
internode_stream_link(struct internode_stream *stream)
{
	struct internode_loop *loop = stream->loop->internode;

	stream->next = loop->streams;
	if (stream->next != NULL)
		stream->next->previous = stream;
	loop->streams = stream;
}

/* The first wake of one that was opened here. */
static void
internode_stream_begin(struct loop_message *message, struct loop *loop)
{
	struct internode_stream *stream =
	    (struct internode_stream *)((char *)message - offsetof(struct internode_stream, wake));
	struct error err;

	loop_note_now(loop);
	stream->wake.run = internode_stream_woken;
	atomic_store(&stream->is_scheduled, false);
	internode_stream_link(stream);
	if (!atomic_load(&stream->internode->is_running)) {
		error_set(&err, ERROR_SHUTDOWN, "the node stops");
		internode_stream_end(stream, &err);
		return;
	}
	internode_dial_start(&stream->dial);
}

/* ---- The channel's operations: any thread ---------------------------------------------------- */

static void
internode_stream_touch(struct internode_stream *stream)
{
	if (!atomic_exchange(&stream->is_scheduled, true))
		loop_post(stream->loop, &stream->wake);
}

static bool
internode_stream_put(struct stream_channel *channel, struct slice record)
{
	struct internode_stream *stream = (struct internode_stream *)channel;
	bool is_full;

	assert(record.size > 0 && record.size <= STREAM_RECORD_MAX);
	lock_take(&stream->lock);
	buffer_put_u32(&stream->queue, (uint32_t)record.size);
	buffer_put_slice(&stream->queue, record);
	stream->pending_bytes += sizeof(uint32_t) + record.size;
	is_full = stream->pending_bytes > STREAM_WRITE_HIGH;
	stream->is_full |= is_full;
	lock_drop(&stream->lock);
	internode_stream_touch(stream);
	return !is_full;
}

static void
internode_stream_set_paused(struct stream_channel *channel, bool is_paused)
{
	struct internode_stream *stream = (struct internode_stream *)channel;

	lock_take(&stream->lock);
	stream->is_paused = is_paused;
	lock_drop(&stream->lock);
	internode_stream_touch(stream);
}

static void
internode_stream_close(struct stream_channel *channel)
{
	struct internode_stream *stream = (struct internode_stream *)channel;

	lock_take(&stream->lock);
	stream->is_closing = true;
	lock_drop(&stream->lock);
	internode_stream_touch(stream);
}

static const struct stream_channel_ops internode_stream_ops = {
    .write = internode_stream_put,
    .pause = internode_stream_set_paused,
    .close = internode_stream_close,
};

static struct internode_stream *
internode_stream_new(struct internode *internode, struct loop *loop, struct peer *peer)
{
	struct internode_stream *stream = xzalloc(sizeof(*stream));

	stream->channel.ops = &internode_stream_ops;
	stream->channel.peer = peer;
	stream->internode = internode;
	stream->loop = loop;
	stream->socket.fd = stream->dial.socket.fd = -1;
	stream->wake.run = internode_stream_woken;
	stream->wake.drop = internode_stream_drop;
	lock_init(&stream->lock, "internode stream", RANK_INTERNODE_STREAM);
	buffer_init(&stream->queue);
	buffer_init(&stream->raw);
	buffer_init(&stream->out);
	buffer_init(&stream->rest);
	return stream;
}

struct stream_channel *
internode_stream_open(struct cluster_env *env, struct peer *to, struct stream_user *user)
{
	struct internode *internode = (struct internode *)env;
	struct internode_stream *stream =
	    internode_stream_new(internode, internode_next_loop(internode), to);

	stream->channel.user = user;
	stream->dial.internode = internode;
	stream->dial.to = to;
	stream->dial.loop = stream->loop;
	stream->dial.kind = FRAME_KIND_STREAMING;
	stream->dial.on_done = internode_stream_dialled;
	/* The first wake dials; it is on its way, so that a write posts no other. */
	stream->wake.run = internode_stream_begin;
	atomic_store(&stream->is_scheduled, true);
	loop_post(stream->loop, &stream->wake);
	return &stream->channel;
}

bool
internode_stream_accept(struct internode_inbound_connection *connection,
    enum compression compression, struct slice rest, struct slice welcome)
{
	struct internode *internode = connection->internode;
	struct cluster_env *env = &internode->env;
	struct internode_stream *stream;
	struct error err;

	if (env->on_stream == NULL)
		return false;
	stream = internode_stream_new(internode, connection->loop, connection->from->peer);
	/* Nothing is sent before all of it stands: a user that writes at once only queues. */
	if (!env->on_stream(env, &stream->channel)) {
		stream->state = STREAM_ENDED;
		if (!atomic_exchange(&stream->is_scheduled, true))
			internode_stream_free(stream);
		return false;
	}
	assert(stream->channel.user != NULL);
	internode_stream_link(stream);
	buffer_put_slice(&stream->out, welcome);
	buffer_put_slice(&stream->rest, rest);
	if (internode_socket_move(&connection->socket, &stream->socket, internode_stream_read_cb,
		internode_stream_write_cb, stream) != 0 ||
	    stream->rest.is_failed) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a connection");
		stream->state = STREAM_OPEN;
		internode_stream_end(stream, &err);
		return true;
	}
	internode_stream_opened(stream, compression);
	event_active(stream->socket.read_event, EV_READ, 0);
	internode_stream_run(stream);
	return true;
}
