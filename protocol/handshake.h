/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_HANDSHAKE_H
#define HELENUS_PROTOCOL_HANDSHAKE_H

/*
 * What a connection may say when: version, STARTUP, authentication, and whether segments are on.
 * Server side; a state machine without I/O that belongs to one connection and one thread. The texts
 * are those that drivers match on (NP-12, NP-16, NP-19..24).
 * Cassandra: transport/InitialConnectionHandler, ServerConnection, messages/StartupMessage.
 *
 *     handshake_check()      for each envelope before anything else is done with it
 *     handshake_startup()    for a decoded STARTUP; then answer READY, or AUTHENTICATE
 *     handshake_answered()   after that answer (and after AUTH_SUCCESS) is in the output
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "protocol/compression.h"
#include "protocol/envelope.h"
#include "protocol/message.h"

enum handshake_state {
	HANDSHAKE_NEW, /* nothing but OPTIONS and STARTUP */
	HANDSHAKE_AUTHENTICATION, /* nothing but AUTH_RESPONSE */
	HANDSHAKE_READY,
};

struct handshake {
	enum handshake_state state;
	uint8_t version; /* fixed by the first good STARTUP; 0 before */
	enum compression compression; /* of STARTUP */
	bool is_framed; /* v5: from now on segments, both ways */
	bool throw_on_overload;
	bool no_compact;
};

void handshake_init(struct handshake *handshake);

/*
 * May this envelope be processed now? -1: ERROR_PROTOCOL to be answered on *stream in *version (not
 * always the envelope's own), and the envelope dropped; the connection lives on.
 */
int handshake_check(const struct handshake *handshake, const struct envelope_header *header,
    int16_t *stream, uint8_t *version, struct error *err);

/*
 * Check and take over the options of a STARTUP. On success the version is fixed; on failure
 * (ERROR_PROTOCOL) the client may try again. The answer to STARTUP itself goes out unframed and
 * uncompressed.
 */
int handshake_startup(
    struct handshake *handshake, const struct client_message *startup, struct error *err);

/*
 * The answer with this opcode has been written: READY or AUTHENTICATE switch v5 to segments,
 * READY and AUTH_SUCCESS make the connection ready. Other opcodes change nothing.
 */
void handshake_answered(struct handshake *handshake, enum opcode answer);

/* Compression for the body of an answer: none on v5 and before STARTUP is answered. */
enum compression handshake_body_compression(const struct handshake *handshake);

#endif
