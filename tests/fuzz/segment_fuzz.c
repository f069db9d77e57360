/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of v5. Checksums keep a fuzzer out, so the input is a recipe: each step is a header and a
 * payload whose checksums this target computes (or spoils). What the decoder accepts is taken apart
 * into envelopes, put together again and must come out the same.
 *
 * Input: byte 0 bit 0 LZ4, bit 1 the input is a raw stream instead. Then steps of
 *     flags (1)     bit 0 self-contained, bit 1 spoil CRC24, bit 2 spoil CRC32, bit 3 long payload
 *     size (1)      of the payload
 *     plain (2)     LZ4: the length it claims to have when decompressed
 *     payload
 */
#include <assert.h>
#include <stdlib.h>
#include "base/hash.h"
#include "protocol/segment.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_FRAME_MAX = 8192, FUZZ_LONG = 300 };

static void
fuzz_put_le(struct buffer *buffer, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buffer_put_u8(buffer, (uint8_t)(value >> (8 * i)));
}

/* One step of the recipe; returns the bytes of input it used. */
static size_t
fuzz_put_segment(struct buffer *out, const uint8_t *data, size_t size, bool is_lz4)
{
	uint64_t is_self_contained = data[0] & 1, bits;
	size_t payload_size = data[1];
	size_t header_size = is_lz4 ? 5 : 3;
	struct slice payload;

	if ((data[0] & 8) != 0)
		payload_size += FUZZ_LONG;
	if (payload_size > size - 4)
		payload_size = size - 4;
	payload = slice_of(data + 4, payload_size);
	bits = payload_size;
	if (is_lz4)
		bits |= (uint64_t)load_u16(data + 2) << 17 | is_self_contained << 34;
	else
		bits |= is_self_contained << 17;
	fuzz_put_le(out, bits, header_size);
	fuzz_put_le(out, crc24(bits, header_size) ^ (data[0] >> 1 & 1), 3);
	buffer_put_slice(out, payload);
	fuzz_put_le(
	    out, segment_crc32_update(segment_crc32_init(), payload) ^ (data[0] >> 2 & 1), 4);
	return 4 + payload_size;
}

/* Whole envelopes of a payload. */
static void
fuzz_payload(struct slice payload, struct buffer *envelopes)
{
	struct envelope_decoder decoder;
	struct envelope envelope;
	struct error err;
	size_t consumed;

	envelope_decoder_init(&decoder, false, FUZZ_FRAME_MAX);
	for (;;) {
		enum envelope_result result =
		    envelope_decode_payload(&decoder, payload, &consumed, &envelope, &err);

		assert(consumed <= payload.size);
		if (result == ENVELOPE_MORE) {
			assert(consumed == payload.size);
			return;
		}
		assert(consumed > 0);
		if (result == ENVELOPE_ONE)
			buffer_put(envelopes,
			    payload.data + consumed - envelope.body.size - ENVELOPE_HEADER_SIZE,
			    envelope.body.size + ENVELOPE_HEADER_SIZE);
		payload = slice_of(payload.data + consumed, payload.size - consumed);
	}
}

static void
fuzz_stream(struct slice stream, enum compression compression, struct buffer *envelopes)
{
	struct segment_decoder decoder;
	struct envelope_header header;
	struct slice payload;
	struct error err;
	size_t consumed;

	segment_decoder_init(&decoder, compression, FUZZ_FRAME_MAX);
	for (;;) {
		enum segment_result result =
		    segment_decode(&decoder, stream, &consumed, &payload, &header, &err);

		assert(consumed <= stream.size);
		if (result == SEGMENT_PAYLOAD) {
			assert(payload.size > 0);
			fuzz_memory_certain(true);
			fuzz_payload(payload, envelopes);
			fuzz_memory_certain(false);
		}
		stream = slice_of(stream.data + consumed, stream.size - consumed);
		if (result == SEGMENT_MORE || result == SEGMENT_BAD)
			break;
		assert(consumed > 0);
	}
	/* Pieces may not pile up beyond the limit. */
	assert(decoder.partial.size <= FUZZ_FRAME_MAX + SEGMENT_PAYLOAD_MAX);
	segment_decoder_fini(&decoder);
}

/* Envelopes that were accepted survive being framed again. */
static void
fuzz_round_trip(struct slice envelopes, enum compression compression)
{
	struct buffer framed, again;

	buffer_init(&framed);
	buffer_init(&again);
	segment_put(&framed, envelopes, compression);
	fuzz_stream(buffer_slice(&framed), compression, &again);
	assert(again.size == envelopes.size);
	assert(again.size == 0 || memcmp(again.data, envelopes.data, again.size) == 0);
	buffer_fini(&framed);
	buffer_fini(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum compression compression;
	struct buffer stream, envelopes;
	uint8_t *exact;

	if (size < 1)
		return 0;
	compression = (data[0] & 1) != 0 ? COMPRESSION_LZ4 : COMPRESSION_NONE;
	fuzz_memory_certain(true);
	buffer_init(&stream);
	buffer_init(&envelopes);
	if ((data[0] & 2) != 0) {
		buffer_put(&stream, data + 1, size - 1);
	} else {
		for (size_t at = 1; size - at >= 4;)
			at += fuzz_put_segment(
			    &stream, data + at, size - at, compression == COMPRESSION_LZ4);
	}
	exact = xmalloc(stream.size);
	memcpy(exact, stream.size > 0 ? stream.data : data, stream.size);
	fuzz_memory_certain(false);
	fuzz_stream(slice_of(exact, stream.size), compression, &envelopes);
	fuzz_memory_certain(true);
	if (envelopes.size > 0)
		fuzz_round_trip(buffer_slice(&envelopes), compression);
	free(exact);
	buffer_fini(&stream);
	buffer_fini(&envelopes);
	return 0;
}
