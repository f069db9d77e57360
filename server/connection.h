/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CONNECTION_H
#define HELENUS_SERVER_CONNECTION_H

/*
 * One client's socket. Lives on one loop; all functions run on its thread. Input (connection.c):
 * bytes -> segments (v5) -> envelopes -> requests. Output (connection_output.c): answers -> compressed
 * or in segments -> one write. Bounded both ways: a client that does not read its answers, or has too
 * much in flight, is not read from.
 */
#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "protocol/envelope.h"
#include "protocol/handshake.h"
#include "protocol/segment.h"
#include "server/limits.h"
#include "server/read_block.h"
#include "server/request.h"

struct loop;
struct tls_session;

enum {
	CONNECTION_IN_FLIGHT_MAX = 4096, /* requests; see in_flight_max */
	CONNECTION_IN_FLIGHT_MIN = 32,
	CONNECTION_ANSWERS_MAX = 4 << 20, /* bytes that answers in flight may come to */
	CONNECTION_OUTPUT_HIGH = 1 << 20, /* unwritten bytes that stop the reading */
	CONNECTION_OUTPUT_LOW = 256 << 10, /* ... and that let it go on */
	CONNECTION_CHUNK_COPY_MAX = 16 << 10, /* longer answers are not copied together */
};

/* Why a socket is not read; a bit set. */
enum {
	CONNECTION_PAUSE_OUTPUT = 1, /* the client does not read */
	CONNECTION_PAUSE_IN_FLIGHT = 2,
	CONNECTION_PAUSE_BYTES = 4, /* request data in flight is over a limit */
	CONNECTION_PAUSE_RATE = 8, /* requests per second are */
	CONNECTION_PAUSE_STAGE = 16, /* a stage is full */
	CONNECTION_PAUSE_DRAIN = 32,
};

/* A piece of output. */
struct connection_chunk {
	struct connection_chunk *next;
	struct buffer bytes; /* owned */
	size_t written;
};

struct connection {
	struct loop *loop; /* borrowed */
	struct connection *next, *previous; /* in loop->connections */
	struct connection *next_dirty, *next_paused, *next_closed;
	int fd; /* -1: closed; lives on until in_flight is 0 */
	bool is_dirty, is_in_paused, is_reading, is_write_waiting, close_when_written, is_tls_known;
	unsigned pauses;
	struct event *read_event, *write_event; /* owned */
	struct tls_session *tls; /* owned; NULL: plain */
	struct limits_address *limits; /* shared */
	uint64_t last_active_ns;

	/* Input. */
	struct read_block *block; /* NULL: nothing is half read */
	struct envelope_decoder decoder;
	struct segment_decoder segments; /* in use when handshake.is_framed */
	struct handshake handshake;
	struct client_state client;
	uint32_t in_flight;
	/* Beyond this no more requests are cut: so many that answers like the last ones (answer_bytes,
	 * smoothed) come to CONNECTION_ANSWERS_MAX. Small requests may have big answers. */
	uint32_t in_flight_max;
	uint32_t answer_bytes;
	uint64_t in_flight_bytes;
	/* Taken of the limits for the request that is half here: all of what its header announces. */
	uint64_t reserved_bytes;
	uint64_t reserved_ns; /* since when */
	uint32_t stalled; /* requests that wait for a full stage */

	/* Output. */
	struct connection_chunk *chunks, *last_chunk; /* owned */
	size_t output_bytes; /* not written yet */
	bool is_segment_open; /* last_chunk ends in an open segment ... */
	size_t segment_mark; /* ... that began here */

	/* What STARTUP told; for system_views.clients. Guarded by the loop's lock for other threads. */
	struct arena strings;
	const char **options; /* name, value pairs */
	uint32_t option_count;
	const char *driver_name, *driver_version;
	const char *ssl_cipher, *ssl_protocol;
	enum handshake_state shown_state;
};

/* Takes the descriptor over; closes it on failure. `limits` is given back at the end. */
void connection_open(
    struct loop *loop, int fd, const char *address, uint16_t port, struct limits_address *limits);
/* Close the socket now; the memory goes when nothing is in flight. */
void connection_close(struct connection *connection);
/* Read from the socket again unless something else holds it; or stop reading. */
void connection_pause(struct connection *connection, unsigned why);
void connection_resume(struct connection *connection, unsigned why);

/* Would it be let go on that was paused for CONNECTION_PAUSE_BYTES? */
bool connection_has_room(struct connection *connection);

/* A request of this connection came back: append its answer. The request stays the caller's. */
void connection_answer(struct connection *connection, struct request *request);
/* Nothing is in flight and it is closed: free it. */
void connection_free_if_done(struct connection *connection);

/* ---- output (connection_output.c) -------------------------------------------------------------- */

/* Append one whole envelope, compressed or framed as was agreed. The buffer is emptied, or its memory
 * moved. */
void connection_append(struct connection *connection, struct buffer *envelope);
/* Append an ERROR. */
void connection_append_error(
    struct connection *connection, uint8_t version, int16_t stream, const struct error *err);
/* Write what can be written. May close the connection. */
void connection_flush(struct connection *connection);
void connection_output_fini(struct connection *connection);

#endif
