/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/compression.h"

#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <strings.h>

enum {
	COMPRESSION_LZ4_LENGTH_SIZE = 4,
	/* An LZ4 byte stands for at most 255 plain ones; a snappy copy of 3 bytes for 64. What claims to
	 * grow by more is damaged, and refused before memory is taken. */
	COMPRESSION_LZ4_RATIO_MAX = 256,
	COMPRESSION_SNAPPY_RATIO_MAX = 64,
};

bool
compression_parse(struct slice name, enum compression *out)
{
	static const enum compression known[] = {COMPRESSION_LZ4, COMPRESSION_SNAPPY};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *text = compression_name(known[i]);

		if (strlen(text) == name.size &&
		    strncasecmp(text, (const char *)name.data, name.size) == 0) {
			*out = known[i];
			return true;
		}
	}
	return false;
}

const char *
compression_name(enum compression compression)
{
	switch (compression) {
	case COMPRESSION_LZ4:
		return "lz4";
	case COMPRESSION_SNAPPY:
		return "snappy";
	case COMPRESSION_NONE:
		break;
	}
	return "";
}

static int
compression_check_size(
    size_t plain_size, size_t packed_size, size_t ratio_max, size_t plain_max, struct error *err)
{
	if (plain_size > plain_max)
		return error_set(err, ERROR_PROTOCOL,
		    "Compressed message would have %zu bytes, more than the %zu allowed",
		    plain_size, plain_max);
	if (plain_size / ratio_max > packed_size)
		return error_set(err, ERROR_PROTOCOL,
		    "Compressed message of %zu bytes cannot hold the %zu it claims", packed_size,
		    plain_size);
	return 0;
}

static int
compression_open_lz4(struct slice packed, size_t plain_max, struct arena *arena,
    struct slice *plain, struct error *err)
{
	uint32_t plain_size;
	uint8_t *out;

	if (packed.size < COMPRESSION_LZ4_LENGTH_SIZE)
		return error_set(err, ERROR_PROTOCOL, "Compressed message has no length");
	plain_size = load_u32(packed.data);
	packed.data += COMPRESSION_LZ4_LENGTH_SIZE;
	packed.size -= COMPRESSION_LZ4_LENGTH_SIZE;
	if (compression_check_size(
		plain_size, packed.size, COMPRESSION_LZ4_RATIO_MAX, plain_max, err) != 0)
		return -1;
	/* An empty body has no block at all in some clients, one byte of a block in others. */
	if (plain_size == 0) {
		*plain = slice_empty;
		return 0;
	}
	out = arena_alloc_bytes(arena, plain_size);
	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to decompress a message");
	if (packed.size > INT32_MAX || plain_size > INT32_MAX ||
	    LZ4_decompress_safe((const char *)packed.data, (char *)out, (int)packed.size,
		(int)plain_size) != (int)plain_size)
		return error_set(err, ERROR_PROTOCOL, "Damaged LZ4 message");
	*plain = slice_of(out, plain_size);
	return 0;
}

static int
compression_open_snappy(struct slice packed, size_t plain_max, struct arena *arena,
    struct slice *plain, struct error *err)
{
	const char *in = (const char *)packed.data;
	size_t plain_size;
	uint8_t *out;

	if (snappy_uncompressed_length(in, packed.size, &plain_size) != SNAPPY_OK)
		return error_set(err, ERROR_PROTOCOL, "Damaged snappy message");
	if (compression_check_size(
		plain_size, packed.size, COMPRESSION_SNAPPY_RATIO_MAX, plain_max, err) != 0)
		return -1;
	out = arena_alloc_bytes(arena, plain_size + 1);
	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to decompress a message");
	if (snappy_uncompress(in, packed.size, (char *)out, &plain_size) != SNAPPY_OK)
		return error_set(err, ERROR_PROTOCOL, "Damaged snappy message");
	*plain = slice_of(out, plain_size);
	return 0;
}

int
compression_open_body(enum compression compression, struct envelope *envelope, size_t plain_max,
    struct arena *arena, struct error *err)
{
	struct slice plain = slice_empty;
	int rc = -1;

	if (envelope->header.version >= 5 || (envelope->header.flags & ENVELOPE_COMPRESSED) == 0)
		return 0;
	switch (compression) {
	case COMPRESSION_LZ4:
		rc = compression_open_lz4(envelope->body, plain_max, arena, &plain, err);
		break;
	case COMPRESSION_SNAPPY:
		rc = compression_open_snappy(envelope->body, plain_max, arena, &plain, err);
		break;
	case COMPRESSION_NONE:
		/* As Cassandra: without an agreement nothing is undone and the flag means nothing. */
		plain = envelope->body;
		rc = 0;
		break;
	}
	if (rc != 0)
		return -1;
	envelope->body = plain;
	envelope->header.flags &= (uint8_t)~ENVELOPE_COMPRESSED;
	envelope->header.length = (uint32_t)plain.size;
	return 0;
}

/* Compressed form of `plain` into `out`, which has room for `room`; 0 when it does not fit. */
static size_t
compression_pack(enum compression compression, struct slice plain, uint8_t *out, size_t room)
{
	size_t size = room;
	int lz4_size;

	if (compression == COMPRESSION_SNAPPY) {
		if (snappy_compress((const char *)plain.data, plain.size, (char *)out, &size) !=
		    SNAPPY_OK)
			return 0;
		return size;
	}
	store_u32(out, (uint32_t)plain.size);
	lz4_size = LZ4_compress_default((const char *)plain.data,
	    (char *)out + COMPRESSION_LZ4_LENGTH_SIZE, (int)plain.size,
	    (int)(room - COMPRESSION_LZ4_LENGTH_SIZE));
	return lz4_size <= 0 ? 0 : (size_t)lz4_size + COMPRESSION_LZ4_LENGTH_SIZE;
}

bool
compression_close_body(enum compression compression, struct buffer *buffer, size_t offset)
{
	struct slice plain;
	size_t room, packed_size;

	if (compression == COMPRESSION_NONE || buffer->is_failed)
		return false;
	plain = slice_of(buffer->data + offset, buffer->size - offset);
	if (plain.size < COMPRESSION_BODY_MIN || plain.size > LZ4_MAX_INPUT_SIZE)
		return false;
	/* Packed behind the plain body, then moved over it: no memory but the buffer's. */
	room = compression == COMPRESSION_SNAPPY
	    ? snappy_max_compressed_length(plain.size)
	    : (size_t)LZ4_compressBound((int)plain.size) + COMPRESSION_LZ4_LENGTH_SIZE;
	if (!buffer_reserve(buffer, room)) {
		/* The plain body is complete and can be sent; only the extra room was refused. */
		buffer->is_failed = false;
		return false;
	}
	plain.data = buffer->data + offset;
	packed_size = compression_pack(compression, plain, buffer->data + buffer->size, room);
	if (packed_size == 0 || packed_size >= plain.size)
		return false;
	memcpy(buffer->data + offset, buffer->data + buffer->size, packed_size);
	buffer->size = offset + packed_size;
	return true;
}
