/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_FRAME_H
#define HELENUS_CLUSTER_FRAME_H

/*
 * What stands on an internode connection, and on a streaming one: a handshake each way, then frames one way
 * (messages) or both ways (streaming). Pure codec: bytes in, bytes out.
 *
 * Handshake, big-endian. The initiator sends a hello, the acceptor answers with a welcome:
 *
 *     4  magic: "HLNI" (hello), "HLNW" (welcome)
 *     2  size of the body, at most HANDSHAKE_BODY_MAX
 *        body of a hello     u8 lowest version, u8 highest version, u8 kind, u8 compression,
 *                            endpoint of the initiator, endpoint that it means to reach, u16 size and name of its
 *                            cluster; what follows is passed over
 *        body of a welcome   u8 status, u8 version, u8 compression, endpoint of the acceptor,
 *                            u16 size and name of its cluster; what follows is passed over
 *     4  CRC32 of all the above
 *
 * Frames are the segments of the native protocol v5 (protocol/segment.h: 17 bits of length, CRC24 of the header,
 * CRC32 of the payload, each LZ4 or plain). A self-contained frame holds one or more records, each
 *
 *     4  size
 *        bytes (a message, cluster/message.h; or a record of a stream)
 *
 * and a record that does not fit into a frame is cut over several that hold nothing else.
 * Cassandra: net/HandshakeProtocol, FrameEncoder*, FrameDecoder*.
 */
#include <sys/types.h>
#include "base/bytes.h"
#include "base/endpoint.h"
#include "base/error.h"
#include "protocol/compression.h"

/* ---- Handshake ------------------------------------------------------------------------------ */

enum {
	FRAME_VERSION = 1, /* of this build; rises with the encoding of messages */
	FRAME_VERSION_MIN = 1, /* the oldest that it still speaks */
	HANDSHAKE_NAME_MAX = 512,
	HANDSHAKE_BODY_MAX = 1024,
	HANDSHAKE_SIZE_MAX = 4 + 2 + HANDSHAKE_BODY_MAX + 4,
};

enum frame_kind {
	FRAME_KIND_URGENT,
	FRAME_KIND_SMALL,
	FRAME_KIND_LARGE,
	FRAME_KIND_STREAMING,
	FRAME_KIND_COUNT,
};

struct frame_hello {
	uint8_t version_min, version_max;
	uint8_t kind; /* enum frame_kind */
	uint8_t compression; /* asked for: COMPRESSION_NONE or COMPRESSION_LZ4 */
	struct endpoint from, to;
	char cluster_name[HANDSHAKE_NAME_MAX + 1];
};

enum frame_status {
	FRAME_WELCOME,
	FRAME_WRONG_CLUSTER, /* cluster names differ */
	FRAME_WRONG_VERSION, /* no version that both speak */
	FRAME_WRONG_NODE, /* it means to reach somebody else */
	FRAME_REFUSED, /* too many, stopping, or no such kind */
	FRAME_STATUS_COUNT,
};

struct frame_welcome {
	uint8_t status; /* enum frame_status */
	uint8_t version; /* spoken from here on; with FRAME_WRONG_VERSION the highest one known */
	uint8_t compression;
	struct endpoint from;
	char cluster_name[HANDSHAKE_NAME_MAX + 1];
};

/* "wrong cluster name", ...: for logs. Static. */
const char *frame_status_name(uint8_t status);

void frame_put_hello(struct buffer *out, const struct frame_hello *hello);
void frame_put_welcome(struct buffer *out, const struct frame_welcome *welcome);
/*
 * Bytes taken, or 0: more are needed. -1: ERROR_PROTOCOL, this is no peer of ours. At most HANDSHAKE_SIZE_MAX bytes are
 * ever needed.
 */
ssize_t frame_get_hello(struct slice bytes, struct frame_hello *out, struct error *err);
ssize_t frame_get_welcome(struct slice bytes, struct frame_welcome *out, struct error *err);

/* ---- Frames --------------------------------------------------------------------------------- */

enum {
	FRAME_RECORD_HEADER = 4,
	/* A record of at most this size fits into one frame with others. */
	FRAME_RECORD_ALONE = 131071 - FRAME_RECORD_HEADER,
};

/*
 * Writes records into frames. Begin with frame_writer_init(); put records; frame_writer_flush() ends the frame
 * that is open, after which all bytes of `out` may be sent. Memory failures show in buffer_check(out).
 */
struct frame_writer {
	enum compression compression;
	struct buffer
	    payload; /* owned; of the open frame, where it is compressed or cut afterwards */
	size_t mark; /* where the open frame begins in `out`; plain ones are built in place */
	size_t record; /* where the open record begins */
	bool is_open;
};

void frame_writer_init(struct frame_writer *writer, enum compression compression);
void frame_writer_fini(struct frame_writer *writer);
/* One whole record. */
void frame_put(struct frame_writer *writer, struct buffer *out, struct slice record);
/*
 * The same in place: append the record to the buffer that frame_record_begin() returns, `size_max` bytes at most (what
 * message_size() says); then frame_record_end(). Nothing else may touch the writer meanwhile.
 */
struct buffer *frame_record_begin(struct frame_writer *writer, struct buffer *out, size_t size_max);
void frame_record_end(struct frame_writer *writer, struct buffer *out);
void frame_writer_flush(struct frame_writer *writer, struct buffer *out);

enum frame_result {
	FRAME_MORE, /* the bytes end within a frame */
	FRAME_RECORD,
	FRAME_SKIPPED, /* a frame whose payload is damaged, or a record that is too large, was passed over */
	FRAME_BAD, /* nothing that follows can be trusted: close */
};

struct frame_reader {
	enum compression compression;
	size_t record_max;
	struct buffer plain; /* owned; a decompressed payload */
	struct buffer partial; /* owned; a record that comes in pieces */
	struct slice rest; /* records of the last frame that were not handed out yet */
	uint64_t partial_size; /* with its header; 0: none is coming */
	uint64_t skip_left; /* of a record that comes in pieces and is too large */
	bool is_partial_out; /* it was handed out: its memory can be used again */
};

void
frame_reader_init(struct frame_reader *reader, enum compression compression, size_t record_max);
void frame_reader_fini(struct frame_reader *reader);
/*
 * The next record. *consumed: bytes of `bytes` that are done with, whatever the result (0 while records of the frame
 * before are handed out). The record lies in `bytes` or in the reader, valid until the next call; `bytes`
 * must stay where they are until FRAME_MORE is returned. FRAME_SKIPPED, FRAME_BAD: *err tells why.
 */
enum frame_result frame_read(struct frame_reader *reader, struct slice bytes, size_t *consumed,
    struct slice *record, struct error *err);

#endif
