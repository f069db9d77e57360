/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_CONNECTION_H
#define HELENUS_TOOLS_STRESS_CONNECTION_H

/*
 * A client's connection: TCP or TLS, the handshake, and the framing of each protocol version.
 * Opening blocks, with a time limit; afterwards the socket does not block. Requests gather in a buffer
 * that one write sends; responses are handed out as they stand in the read buffer. One thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "protocol/client.h"
#include "protocol/segment.h"
#include "tools/stress_settings.h"

struct ssl_ctx_st;
struct ssl_st;

/* Certificates and the rest that all TLS connections share. NULL where the settings ask for none. */
struct stress_tls {
	struct ssl_ctx_st *context; /* owned */
};

/* ERROR_CONFIG: a file that cannot be read, or is a Java keystore, which has to be converted. */
int
stress_tls_init(struct stress_tls *tls, const struct stress_settings *settings, struct error *err);
void stress_tls_fini(struct stress_tls *tls);

struct stress_connection {
	const struct stress_settings *settings; /* borrowed */
	const struct stress_tls *tls; /* borrowed; context NULL: plain TCP */
	int fd; /* -1: closed */
	struct ssl_st *ssl; /* owned; NULL: plain */
	uint8_t version;
	enum compression compression;
	bool is_framed; /* v5 after the handshake: segments */
	bool wants_write; /* the last flush could not send everything */

	struct buffer out; /* owned; framed bytes, and a segment that is being filled */
	size_t out_sent; /* of out */
	size_t segment; /* mark of the open segment */
	bool has_segment;

	uint8_t *in; /* owned */
	size_t in_size; /* bytes in `in` */
	size_t in_capacity;
	struct envelope_decoder envelopes;
	struct segment_decoder segments;
	struct arena bodies; /* decompressed bodies of one read */
};

/*
 * Connect and say hello. version 0: the newest that the server speaks. timeout_ms bounds each step.
 * ERROR_IO, ERROR_PROTOCOL, ERROR_BAD_CREDENTIALS. On failure the connection is closed, nothing to
 * free. `host` may be a name; it is also what a certificate must name.
 */
int stress_connection_open(struct stress_connection *connection,
    const struct stress_settings *settings, const struct stress_tls *tls, const char *host,
    int port, uint8_t version, int timeout_ms, struct error *err);
/* Closed twice is closed. */
void stress_connection_close(struct stress_connection *connection);

/*
 * Where to append whole envelopes; NULL without memory. Valid until the next flush.
 */
struct buffer *stress_connection_out(struct stress_connection *connection);
/* Send what has gathered. wants_write tells whether to call again when the socket can take more.
 * -1: ERROR_IO, the connection is of no use any more. */
int stress_connection_flush(struct stress_connection *connection, struct error *err);

/* Handles one response: the body is plain and valid until the function returns. */
typedef void (*stress_envelope_fn)(void *user, const struct envelope *envelope);

/* Read what is there, once or a few times, and hand out what is whole. -1: ERROR_IO (also the end
 * of the connection), ERROR_PROTOCOL. */
int stress_connection_read(
    struct stress_connection *connection, stress_envelope_fn handle, void *user, struct error *err);

/* Wait until it can be read (or written, where wants_write); -1: ERROR_IO on time out. */
int stress_connection_wait(struct stress_connection *connection, int timeout_ms, struct error *err);

#endif
