/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_COMPRESSION_H
#define HELENUS_PROTOCOL_COMPRESSION_H

/*
 * Compression that client and server agree on in STARTUP. v3 and v4 compress the body of an
 * envelope (flag 01): LZ4 with a 4-byte big-endian length in front, or a raw snappy block. v5
 * compresses segments (segment.h), LZ4 only. Pure functions; any thread.
 * Cassandra: transport/Compressor, transport/Envelope.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "protocol/envelope.h"

enum compression {
	COMPRESSION_NONE,
	COMPRESSION_LZ4,
	COMPRESSION_SNAPPY,
};

/* A body shorter than this is sent as it is: both ends would lose. */
enum { COMPRESSION_BODY_MIN = 512 };

/* "lz4", "snappy" in letters of either case. False, *out untouched, when it is neither. */
bool compression_parse(struct slice name, enum compression *out);
/* "lz4", "snappy", "" for none: the form STARTUP takes. Static string. */
const char *compression_name(enum compression compression);

/*
 * Replace a compressed body by its plain form: envelope->body then lives in `arena`, and flag and
 * length are adjusted. An envelope without the flag is left alone; so is any of v5 and later, where
 * the flag means nothing, and any where no compression was agreed on. At most `plain_max` bytes are
 * ever allocated: the length that the body claims is checked against it, and against what the
 * algorithm can reach, before memory is taken. -1: ERROR_PROTOCOL (claims too much, or damaged),
 * ERROR_NO_MEMORY.
 */
int compression_open_body(enum compression compression, struct envelope *envelope, size_t plain_max,
    struct arena *arena, struct error *err);

/*
 * Compress what `buffer` holds from `offset` on (one body), in place. Returns whether it did: not
 * when it is short, would grow, or there is no memory; the bytes are then untouched. The caller sets
 * flag and length accordingly (response_end() and client_request_end() do).
 */
bool compression_close_body(enum compression compression, struct buffer *buffer, size_t offset);

#endif
