/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/segment.h"

#include <assert.h>
#include <inttypes.h>
#include <lz4.h>
#include "base/hash.h"

enum {
	SEGMENT_LENGTH_BITS = 17,
	SEGMENT_LENGTH_MASK = SEGMENT_PAYLOAD_MAX,
	SEGMENT_CRC24_SIZE = 3,
	SEGMENT_KEEP_MAX = 1 << 20,
};

static_assert(SEGMENT_PAYLOAD_MAX == (1 << SEGMENT_LENGTH_BITS) - 1, "17 bits of length");

static uint64_t
segment_load_le(const uint8_t *at, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static void
segment_store_le(uint8_t *at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static size_t
segment_header_size(enum compression compression)
{
	return compression == COMPRESSION_LZ4 ? SEGMENT_HEADER_SIZE_LZ4 : SEGMENT_HEADER_SIZE;
}

uint32_t
segment_crc32_init(void)
{
	/* Every Cassandra peer feeds these four bytes first; the specification forgets to say so. */
	static const uint8_t seed[4] = {0xFA, 0x2D, 0x55, 0xCA};

	return crc32_update(0, seed, sizeof(seed));
}

uint32_t
segment_crc32_update(uint32_t crc, struct slice piece)
{
	return crc32_update(crc, piece.data, piece.size);
}

void
segment_store_trailer(uint8_t at[SEGMENT_TRAILER_SIZE], uint32_t crc)
{
	segment_store_le(at, crc, SEGMENT_TRAILER_SIZE);
}

static void
segment_store_bits(uint8_t *at, uint64_t bits, size_t size)
{
	segment_store_le(at, bits, size);
	segment_store_le(at + size, crc24(bits, size), SEGMENT_CRC24_SIZE);
}

void
segment_store_header(uint8_t at[SEGMENT_HEADER_SIZE], uint32_t payload_size, bool is_self_contained)
{
	uint64_t bits = payload_size | (uint64_t)is_self_contained << SEGMENT_LENGTH_BITS;

	segment_store_bits(at, bits, SEGMENT_HEADER_SIZE - SEGMENT_CRC24_SIZE);
}

static void
segment_store_header_lz4(uint8_t at[SEGMENT_HEADER_SIZE_LZ4], uint32_t wire_size,
    uint32_t plain_size, bool is_self_contained)
{
	uint64_t bits = wire_size | (uint64_t)plain_size << SEGMENT_LENGTH_BITS |
	    (uint64_t)is_self_contained << 2 * SEGMENT_LENGTH_BITS;

	segment_store_bits(at, bits, SEGMENT_HEADER_SIZE_LZ4 - SEGMENT_CRC24_SIZE);
}

/* ---- decoding ---- */

void
segment_decoder_init(
    struct segment_decoder *decoder, enum compression compression, uint32_t frame_size_max)
{
	*decoder = (struct segment_decoder){
	    .compression = compression,
	    .frame_size_max = frame_size_max != 0 ? frame_size_max : ENVELOPE_FRAME_MAX_DEFAULT,
	};
	buffer_init(&decoder->plain);
	buffer_init(&decoder->partial);
}

void
segment_decoder_fini(struct segment_decoder *decoder)
{
	buffer_fini(&decoder->plain);
	buffer_fini(&decoder->partial);
}

static int
segment_load_header(
    enum compression compression, const uint8_t *at, struct segment *out, struct error *error)
{
	size_t size = segment_header_size(compression) - SEGMENT_CRC24_SIZE;
	uint64_t bits = segment_load_le(at, size);

	uint32_t read = (uint32_t)segment_load_le(at + size, SEGMENT_CRC24_SIZE);
	uint32_t computed = crc24(bits, size);

	if (read != computed)
		return error_set(error, ERROR_PROTOCOL,
		    "Connection invalid, unrecoverable CRC mismatch detected in frame header. Read "
		    "%" PRIu32 ", Computed %" PRIu32,
		    read, computed);
	out->wire = slice_of(at + size + SEGMENT_CRC24_SIZE, bits & SEGMENT_LENGTH_MASK);
	out->size = size + SEGMENT_CRC24_SIZE + out->wire.size + SEGMENT_TRAILER_SIZE;
	bits >>= SEGMENT_LENGTH_BITS;
	out->plain_size = 0;
	if (compression == COMPRESSION_LZ4) {
		out->plain_size = bits & SEGMENT_LENGTH_MASK;
		bits >>= SEGMENT_LENGTH_BITS;
	}
	out->is_self_contained = (bits & 1) != 0;
	return 0;
}

/* The CRC32 stands behind the payload. */
static int
segment_check_payload(struct slice wire, struct error *error)
{
	uint32_t read = (uint32_t)segment_load_le(wire.data + wire.size, SEGMENT_TRAILER_SIZE);
	uint32_t computed = segment_crc32_update(segment_crc32_init(), wire);

	if (read == computed)
		return 0;
	return error_set(error, ERROR_PROTOCOL,
	    "Connection invalid, unrecoverable CRC mismatch detected in frame body. Read %" PRIu32
	    ", Computed %" PRIu32,
	    read, computed);
}

enum segment_state
segment_read(enum compression compression, struct slice run, struct segment *out, struct error *err)
{
	if (run.size < segment_header_size(compression))
		return SEGMENT_STATE_MORE;
	if (segment_load_header(compression, run.data, out, err) != 0)
		return SEGMENT_STATE_BAD_HEADER;
	if (run.size < out->size)
		return SEGMENT_STATE_MORE;
	if (segment_check_payload(out->wire, err) != 0)
		return SEGMENT_STATE_BAD_PAYLOAD;
	return SEGMENT_STATE_WHOLE;
}

/* The length is at most SEGMENT_PAYLOAD_MAX: no bombs here. */
int
segment_open(
    const struct segment *segment, struct buffer *plain, struct slice *payload, struct error *err)
{
	uint8_t *out;

	if (segment->plain_size == 0) {
		*payload = segment->wire;
		return 0;
	}
	buffer_clear(plain);
	out = buffer_append(plain, segment->plain_size);
	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to decompress a segment");
	if (LZ4_decompress_safe((const char *)segment->wire.data, (char *)out,
		(int)segment->wire.size, (int)segment->plain_size) != (int)segment->plain_size)
		return error_set(err, ERROR_PROTOCOL, "Damaged LZ4 payload of a segment");
	*payload = slice_of(out, segment->plain_size);
	return 0;
}

/* Begin with an empty collection; memory of a really big message is not kept for the next one. */
static void
segment_reset_partial(struct segment_decoder *decoder)
{
	if (decoder->partial.capacity > SEGMENT_KEEP_MAX) {
		buffer_fini(&decoder->partial);
		buffer_init(&decoder->partial);
	}
	buffer_clear(&decoder->partial);
	decoder->partial_size = 0;
	decoder->is_partial_done = false;
}

static bool
segment_is_collecting(const struct segment_decoder *decoder)
{
	return decoder->skip_left > 0 || (decoder->partial.size > 0 && !decoder->is_partial_done);
}

static enum segment_result
segment_refuse_partial(
    struct segment_decoder *decoder, struct envelope_header *header, struct error *error)
{
	*header = decoder->skipped;
	error_set(error, ERROR_INVALID,
	    "CQL Message of size %" PRIu32 " bytes exceeds allowed maximum of %" PRIu32 " bytes",
	    header->length, decoder->frame_size_max);
	return SEGMENT_TOO_BIG;
}

/* More of an envelope that is too big has come. */
static enum segment_result
segment_skip_piece(struct segment_decoder *decoder, uint64_t size, struct envelope_header *header,
    struct error *error)
{
	decoder->skip_left -= size < decoder->skip_left ? size : decoder->skip_left;
	if (decoder->skip_left > 0 || decoder->is_answered)
		return SEGMENT_MORE;
	return segment_refuse_partial(decoder, header, error);
}

/*
 * The pieces of a big envelope are put together in decoder->partial, which grows as pieces come:
 * the length in the envelope's header reserves nothing.
 */
static enum segment_result
segment_add_piece(struct segment_decoder *decoder, struct slice piece, struct slice *payload,
    struct envelope_header *header, struct error *error)
{
	struct buffer *partial = &decoder->partial;

	if (decoder->skip_left > 0)
		return segment_skip_piece(decoder, piece.size, header, error);
	if (decoder->is_partial_done)
		segment_reset_partial(decoder);
	buffer_put_slice(partial, piece);
	if (buffer_check(partial, error) != 0) {
		segment_reset_partial(decoder);
		return SEGMENT_BAD;
	}
	if (decoder->partial_size == 0)
		decoder->partial_size = envelope_size(buffer_slice(partial));
	if (decoder->partial_size == 0)
		return SEGMENT_MORE;
	if (decoder->partial_size > INT32_MAX) {
		struct envelope_header claimed = envelope_load_header(partial->data);

		segment_reset_partial(decoder);
		error_set(error, ERROR_PROTOCOL,
		    "Invalid value for envelope header body length field: %" PRId32,
		    (int32_t)claimed.length);
		return SEGMENT_BAD;
	}
	if (decoder->partial_size > decoder->frame_size_max) {
		/* Keep the header for the answer, read the rest away. */
		uint64_t size = partial->size;

		decoder->skipped = envelope_load_header(partial->data);
		decoder->skip_left = decoder->partial_size;
		decoder->is_answered = false;
		segment_reset_partial(decoder);
		return segment_skip_piece(decoder, size, header, error);
	}
	if (partial->size < decoder->partial_size)
		return SEGMENT_MORE;
	decoder->is_partial_done = true;
	*payload = buffer_slice(partial);
	return SEGMENT_PAYLOAD;
}

uint64_t
segment_decoder_expects(const struct segment_decoder *decoder, struct envelope_header *header)
{
	if (decoder->partial_size == 0 || decoder->is_partial_done)
		return 0;
	*header = envelope_load_header(decoder->partial.data);
	return decoder->partial_size;
}

void
segment_decoder_skip(struct segment_decoder *decoder)
{
	decoder->skip_left = decoder->partial_size - decoder->partial.size;
	decoder->is_answered = true;
	segment_reset_partial(decoder);
}

/* One verified payload, plain by now, that stands in a segment with this header. */
static enum segment_result
segment_accept(struct segment_decoder *decoder, bool is_self_contained, struct slice plain,
    struct slice *payload, struct envelope_header *header, struct error *error)
{
	if (!is_self_contained)
		return segment_add_piece(decoder, plain, payload, header, error);
	if (segment_is_collecting(decoder)) {
		error_set(error, ERROR_PROTOCOL,
		    "Self-contained segment in the middle of a message cut over several");
		return SEGMENT_BAD;
	}
	*payload = plain;
	return SEGMENT_PAYLOAD;
}

enum segment_result
segment_decode(struct segment_decoder *decoder, struct slice run, size_t *consumed,
    struct slice *payload, struct envelope_header *header, struct error *error)
{
	enum segment_result result;
	struct segment segment;
	struct slice plain;

	*consumed = 0;
	*header = (struct envelope_header){.version = PROTOCOL_VERSION_MAX};
	for (;;) {
		enum segment_state state = segment_read(decoder->compression, run, &segment, error);

		if (state == SEGMENT_STATE_MORE)
			return SEGMENT_MORE;
		if (state != SEGMENT_STATE_WHOLE ||
		    segment_open(&segment, &decoder->plain, &plain, error) != 0)
			return SEGMENT_BAD;
		*consumed += segment.size;
		result = segment_accept(
		    decoder, segment.is_self_contained, plain, payload, header, error);
		/* A piece, or a segment with nothing in it: the next one may be here already. */
		if (result != SEGMENT_MORE && !(result == SEGMENT_PAYLOAD && payload->size == 0))
			return result;
		run = slice_of(run.data + segment.size, run.size - segment.size);
	}
}

static bool
segment_holds(const struct buffer *buffer, struct slice part)
{
	return buffer->data != NULL && part.data >= buffer->data &&
	    part.data < buffer->data + buffer->size;
}

bool
segment_decoder_take(struct segment_decoder *decoder, struct slice part, struct buffer *out)
{
	struct buffer *owner = NULL;

	if (segment_holds(&decoder->plain, part))
		owner = &decoder->plain;
	else if (segment_holds(&decoder->partial, part))
		owner = &decoder->partial;
	if (owner == NULL)
		return false;
	*out = *owner;
	buffer_init(owner);
	return true;
}

/* ---- encoding ---- */

/* Bytes of `envelopes` that make the next segment: as many whole ones as fit, or the one that does
 * not fit (then more than SEGMENT_PAYLOAD_MAX). */
static size_t
segment_gather(struct slice envelopes)
{
	size_t taken = 0;

	while (taken < envelopes.size) {
		uint64_t size =
		    envelope_size(slice_of(envelopes.data + taken, envelopes.size - taken));

		if (size == 0 || size > envelopes.size - taken)
			size = envelopes.size - taken;
		if (taken > 0 && taken + size > SEGMENT_PAYLOAD_MAX)
			break;
		taken += size;
	}
	return taken;
}

/* Compress `payload` behind the header that is reserved at the end of `out`; 0 when it does not pay. */
static size_t
segment_pack(struct buffer *out, struct slice payload)
{
	int room = LZ4_compressBound((int)payload.size);
	int size;

	if (payload.size < COMPRESSION_BODY_MIN || !buffer_reserve(out, (size_t)room))
		return 0;
	size = LZ4_compress_default(
	    (const char *)payload.data, (char *)out->data + out->size, (int)payload.size, room);
	if (size <= 0 || (size_t)size >= payload.size)
		return 0;
	out->size += (size_t)size;
	return (size_t)size;
}

void
segment_put_one(
    struct buffer *out, struct slice payload, bool is_self_contained, enum compression compression)
{
	size_t header_size = segment_header_size(compression);
	size_t start = out->size;
	size_t packed = 0;
	struct slice wire;
	uint8_t *trailer;

	if (buffer_append(out, header_size) == NULL)
		return;
	if (compression == COMPRESSION_LZ4)
		packed = segment_pack(out, payload);
	if (packed == 0)
		buffer_put_slice(out, payload);
	trailer = buffer_append(out, SEGMENT_TRAILER_SIZE);
	if (trailer == NULL)
		return;
	wire = slice_of(
	    out->data + start + header_size, (size_t)(trailer - (out->data + start + header_size)));
	if (compression == COMPRESSION_LZ4)
		segment_store_header_lz4(out->data + start, (uint32_t)wire.size,
		    packed != 0 ? (uint32_t)payload.size : 0, is_self_contained);
	else
		segment_store_header(out->data + start, (uint32_t)wire.size, is_self_contained);
	segment_store_trailer(trailer, segment_crc32_update(segment_crc32_init(), wire));
}

void
segment_put(struct buffer *out, struct slice envelopes, enum compression compression)
{
	while (envelopes.size > 0) {
		size_t group = segment_gather(envelopes);
		bool is_self_contained = group <= SEGMENT_PAYLOAD_MAX;

		while (group > 0) {
			size_t piece = group < SEGMENT_PAYLOAD_MAX ? group : SEGMENT_PAYLOAD_MAX;

			segment_put_one(
			    out, slice_of(envelopes.data, piece), is_self_contained, compression);
			envelopes.data += piece;
			envelopes.size -= piece;
			group -= piece;
		}
	}
}

size_t
segment_begin(struct buffer *buffer, enum compression compression)
{
	size_t mark = buffer->size;

	(void)buffer_append(buffer, segment_header_size(compression));
	return mark;
}

void
segment_end(struct buffer *buffer, size_t mark, enum compression compression)
{
	size_t header_size = segment_header_size(compression);
	struct slice payload;
	struct buffer copy;
	uint8_t *trailer;

	if (buffer->is_failed)
		return;
	if (buffer->size == mark + header_size) {
		buffer->size = mark;
		return;
	}
	payload = slice_of(buffer->data + mark + header_size, buffer->size - mark - header_size);
	if (compression == COMPRESSION_NONE && payload.size <= SEGMENT_PAYLOAD_MAX) {
		/* The usual case: only header and trailer are missing. */
		uint32_t crc = segment_crc32_update(segment_crc32_init(), payload);

		segment_store_header(buffer->data + mark, (uint32_t)payload.size, true);
		trailer = buffer_append(buffer, SEGMENT_TRAILER_SIZE);
		if (trailer != NULL)
			segment_store_trailer(trailer, crc);
		return;
	}
	buffer_init(&copy);
	segment_put(&copy, payload, compression);
	if (copy.is_failed)
		buffer->is_failed = true;
	buffer->size = mark;
	buffer_put_slice(buffer, buffer_slice(&copy));
	buffer_fini(&copy);
}
