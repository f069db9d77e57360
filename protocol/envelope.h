/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_ENVELOPE_H
#define HELENUS_PROTOCOL_ENVELOPE_H

/*
 * Envelopes: the header and body that every message of the native protocol is. Cut out of a run of
 * bytes without copying (server and client side), and headers written. Knows nothing of sockets;
 * a decoder belongs to one connection and one thread. Cassandra: transport/Envelope.
 *
 *     v3 and later (9 bytes)                         v1, v2 (8 bytes; only refused, never served)
 *     0  version, high bit = response                0  version
 *     1  flags                                       1  flags
 *     2  stream, int16                               2  stream, int8
 *     4  opcode                                      3  opcode
 *     5  body length, uint32                         4  body length, uint32
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"

enum {
	PROTOCOL_VERSION_MIN = 3,
	PROTOCOL_VERSION_MAX = 5, /* the highest that is not beta; answers to newer ones carry it */
	PROTOCOL_VERSION_BETA =
	    6, /* v5 under a new number; each envelope needs ENVELOPE_USE_BETA */

	ENVELOPE_HEADER_SIZE = 9,
	ENVELOPE_HEADER_SIZE_OLD = 8, /* v1 and v2 */
	ENVELOPE_BODY_MAX = 256 << 20, /* what the specification allows */
	ENVELOPE_FRAME_MAX_DEFAULT = 16
	    << 20, /* native_transport_max_frame_size, header included */
	ENVELOPE_STREAM_EVENT = -1,
};

enum opcode {
	OPCODE_ERROR = 0x00,
	OPCODE_STARTUP = 0x01,
	OPCODE_READY = 0x02,
	OPCODE_AUTHENTICATE = 0x03,
	OPCODE_CREDENTIALS = 0x04, /* v1 only; known so that it can be refused by name */
	OPCODE_OPTIONS = 0x05,
	OPCODE_SUPPORTED = 0x06,
	OPCODE_QUERY = 0x07,
	OPCODE_RESULT = 0x08,
	OPCODE_PREPARE = 0x09,
	OPCODE_EXECUTE = 0x0A,
	OPCODE_REGISTER = 0x0B,
	OPCODE_EVENT = 0x0C,
	OPCODE_BATCH = 0x0D,
	OPCODE_AUTH_CHALLENGE = 0x0E,
	OPCODE_AUTH_RESPONSE = 0x0F,
	OPCODE_AUTH_SUCCESS = 0x10,
};

enum {
	ENVELOPE_COMPRESSED = 0x01,
	ENVELOPE_TRACING = 0x02,
	ENVELOPE_CUSTOM_PAYLOAD = 0x04,
	ENVELOPE_WARNING = 0x08,
	ENVELOPE_USE_BETA = 0x10,
};

struct envelope_header {
	uint8_t version; /* without the direction bit */
	bool is_response;
	uint8_t flags;
	uint8_t opcode; /* enum opcode */
	int16_t stream;
	uint32_t length; /* of the body, bytes on the wire */
};

struct envelope {
	struct envelope_header header;
	struct slice body; /* borrowed from the run it was cut from */
};

enum envelope_result {
	ENVELOPE_MORE, /* the run ends inside an envelope; come back with more bytes */
	ENVELOPE_ONE, /* *envelope is whole */
	ENVELOPE_BAD, /* answer *error; see envelope_decode() */
};

struct envelope_decoder {
	uint32_t frame_size_max; /* header and body; longer ones are read away and refused */
	uint8_t version_max; /* native_transport_max_... of the operator; usually VERSION_MAX */
	uint8_t version_min; /* below: refused; usually VERSION_MIN */
	bool is_client; /* expects responses, not requests */

	uint64_t skip_left; /* bytes of a refused envelope that are still to come */
	bool is_answer_due; /* the refusal is reported when they all have come */
	struct envelope_header skipped;
};

/* Ready for the first byte of a connection. Nothing to free. frame_size_max 0 = the default. */
void
envelope_decoder_init(struct envelope_decoder *decoder, bool is_client, uint32_t frame_size_max);

/*
 * Cut the next envelope out of `run`. *consumed says how many bytes of the run are done with
 * (whatever the result; with MORE it may be > 0 while an oversized body is read away), the next call
 * starts after them.
 *
 * ENVELOPE_BAD: *error is ERROR_PROTOCOL (version, opcode, direction, length; error text is what
 * drivers match on, NP-20, NP-21) or ERROR_INVALID (too big, after all of it was read away: NP-23).
 * envelope->header holds the version and stream to answer with; version 1 or 2 asks for the 8-byte
 * layout, which envelope_put_header() knows. The bad envelope's body is skipped by the following
 * calls and the connection lives on, unless its header says more than INT32_MAX: nobody sends that,
 * so it is refused at once and the caller is to close.
 *
 * Whether envelopes of one connection change their version is handshake.h's matter.
 */
enum envelope_result envelope_decode(struct envelope_decoder *decoder, struct slice run,
    size_t *consumed, struct envelope *envelope, struct error *error);

/* Pass over the next `size` bytes: an envelope that the caller has refused before it was whole. */
void envelope_decoder_skip(struct envelope_decoder *decoder, uint64_t size);

/*
 * The same where `run` is all there is: the payload of a segment (v5). MORE comes only with an empty
 * run; an envelope that ends beyond it is ENVELOPE_BAD and the rest of the payload is lost with it.
 */
enum envelope_result envelope_decode_payload(struct envelope_decoder *decoder, struct slice run,
    size_t *consumed, struct envelope *envelope, struct error *error);

/*
 * Bytes of the envelope at the start of `run`, header included; 0 when even the header is not all
 * there. For sizing a read buffer.
 */
uint64_t envelope_size(struct slice run);

/* Bytes of a header of that version: 9, or 8 for v1 and v2. */
static inline size_t
envelope_header_size(uint8_t version)
{
	return version == 1 || version == 2 ? ENVELOPE_HEADER_SIZE_OLD : ENVELOPE_HEADER_SIZE;
}

/* Read a header at `at`, which holds envelope_header_size() bytes of the version in its first byte. */
struct envelope_header envelope_load_header(const uint8_t *at);

/* Write a header at `at`, which has room for envelope_header_size(header->version); returns bytes. */
size_t envelope_store_header(uint8_t *at, const struct envelope_header *header);

/* "QUERY", ...; "UNKNOWN" for what is no opcode. Static string. */
const char *opcode_name(uint8_t opcode);
/* Is it one that clients send (requests) / servers send (responses)? CREDENTIALS is a request. */
bool opcode_is_request(uint8_t opcode);
bool opcode_is_response(uint8_t opcode);

#endif
