/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_SEGMENT_H
#define HELENUS_PROTOCOL_SEGMENT_H

/*
 * Segments: the outer framing of protocol v5 after the handshake. All integers little-endian.
 *
 *     plain       3 bytes   bits 0-16 payload length, bit 17 self-contained
 *     LZ4         5 bytes   bits 0-16 length on the wire, bits 17-33 length before compression
 *                           (0: the payload was left as it is), bit 34 self-contained
 *     then        3 bytes   CRC24 of the above (init 875060, polynomial 1974F0B)
 *                 payload
 *                 4 bytes   CRC32 (zlib's) of FA 2D 55 CA and the payload as it is on the wire
 *
 * A self-contained segment carries whole envelopes. An envelope that is too long for one is cut over
 * several segments that carry nothing else. A decoder belongs to one connection and one thread.
 * Cassandra: net/FrameEncoderCrc, FrameEncoderLZ4, FrameDecoder, transport/CQLMessageHandler.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "protocol/compression.h"
#include "protocol/envelope.h"

enum {
	SEGMENT_PAYLOAD_MAX = 131071,
	SEGMENT_HEADER_SIZE = 6, /* plain, with its CRC24 */
	SEGMENT_HEADER_SIZE_LZ4 = 8, /* with its CRC24 */
	SEGMENT_TRAILER_SIZE = 4,
	SEGMENT_SIZE_MAX = SEGMENT_HEADER_SIZE_LZ4 + SEGMENT_PAYLOAD_MAX + SEGMENT_TRAILER_SIZE,
};

enum segment_result {
	SEGMENT_MORE, /* the run ends inside a segment (or an envelope cut over several) */
	SEGMENT_PAYLOAD, /* *payload holds one or more whole envelopes: envelope_decode() them */
	SEGMENT_TOO_BIG, /* a cut envelope over the limit has been read away; answer *error */
	/* A checksum failed, or an envelope claims more than INT32_MAX: answer *error on stream 0, then close. */
	SEGMENT_BAD,
};

struct segment_decoder {
	enum compression compression; /* NONE or LZ4 */
	uint32_t frame_size_max; /* of an envelope, header included */

	struct buffer plain; /* owned; a decompressed payload */
	struct buffer partial; /* owned; the envelope that is coming in pieces */
	bool is_partial_done; /* it was handed out; the next piece begins another */
	uint64_t
	    partial_size; /* what it will be, 0 when none is coming or its header is not complete */
	uint64_t skip_left; /* of a piecewise envelope that is too big, or refused */
	bool is_answered; /* what is skipped was refused already */
	struct envelope_header skipped;
};

/* frame_size_max 0 = the default. Free with segment_decoder_fini(). */
void segment_decoder_init(
    struct segment_decoder *decoder, enum compression compression, uint32_t frame_size_max);
void segment_decoder_fini(struct segment_decoder *decoder);

/*
 * Take the next segment from `run`. *consumed: bytes done with, whatever the result.
 *
 * SEGMENT_PAYLOAD: *payload is verified. It points into `run` where the segment was plain, else
 * into the decoder's memory, valid until the next call; who wants to keep it takes that memory with
 * segment_decoder_take().
 * SEGMENT_TOO_BIG: header holds version and stream to answer with ERROR_INVALID; the connection
 * lives on. SEGMENT_BAD: ERROR_PROTOCOL "unrecoverable CRC mismatch detected in frame header|body"
 * (NP-13), or a payload that does not decompress; nothing of the segment may be acted on.
 */
enum segment_result segment_decode(struct segment_decoder *decoder, struct slice run,
    size_t *consumed, struct slice *payload, struct envelope_header *header, struct error *error);

/*
 * Move the memory in which `part` lies (the last payload, or an envelope's body out of it) to *out (an
 * empty buffer, overwritten) and return true; false when it lies in the caller's run. All of that
 * payload stays valid as long as *out does.
 */
bool segment_decoder_take(struct segment_decoder *decoder, struct slice part, struct buffer *out);

/*
 * The envelope that is coming in pieces: its size, header included, and *header; 0 when none is or
 * its header is not complete. segment_decoder_skip(): the caller has refused it, pass over the rest.
 */
uint64_t
segment_decoder_expects(const struct segment_decoder *decoder, struct envelope_header *header);
void segment_decoder_skip(struct segment_decoder *decoder);

/*
 * Write in place: segment_begin() reserves a header and returns its mark, the caller appends whole
 * envelopes, segment_end() makes it one segment (or several where the envelopes need them; what is
 * shorter than a segment stays together). No envelopes: the header is taken back. Memory failures
 * show in buffer_check().
 */
size_t segment_begin(struct buffer *buffer, enum compression compression);
void segment_end(struct buffer *buffer, size_t mark, enum compression compression);

/* Append `envelopes` (a run of whole envelopes) to `out` as segments; one copy. */
void segment_put(struct buffer *out, struct slice envelopes, enum compression compression);

/*
 * Parts, for who sends plain segments with a vector of pieces: the header into `at`, the CRC32 over
 * the pieces (start with segment_crc32_init()), the trailer into `at`. payload_size is at most
 * SEGMENT_PAYLOAD_MAX.
 */
void segment_store_header(
    uint8_t at[SEGMENT_HEADER_SIZE], uint32_t payload_size, bool is_self_contained);
uint32_t segment_crc32_init(void);
uint32_t segment_crc32_update(uint32_t crc, struct slice piece);
void segment_store_trailer(uint8_t at[SEGMENT_TRAILER_SIZE], uint32_t crc);

/*
 * One segment by itself, for who carries something else than envelopes in it (cluster/frame.h).
 */
struct segment {
	size_t size; /* all of it, on the wire */
	struct slice wire; /* the payload as it is sent */
	uint32_t plain_size; /* LZ4: of the payload when decompressed; 0 when it is sent as it is */
	bool is_self_contained;
};

enum segment_state {
	SEGMENT_STATE_MORE, /* the run ends inside of it */
	SEGMENT_STATE_WHOLE, /* *out is verified */
	SEGMENT_STATE_BAD_HEADER, /* its size is not known either */
	SEGMENT_STATE_BAD_PAYLOAD, /* *out tells what to pass over */
};

enum segment_state segment_read(
    enum compression compression, struct slice run, struct segment *out, struct error *err);
/* The plain payload: where it lies, or decompressed into `plain` (overwritten). ERROR_PROTOCOL, ERROR_NO_MEMORY. */
int segment_open(
    const struct segment *segment, struct buffer *plain, struct slice *payload, struct error *err);
/* Append one; `payload` lies outside of `out`, at most SEGMENT_PAYLOAD_MAX bytes. */
void segment_put_one(
    struct buffer *out, struct slice payload, bool is_self_contained, enum compression compression);

#endif
