/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Envelopes out of a stream that arrives in pieces: whatever is in it, the decoder makes progress, and
 * finds the same envelopes however the stream is cut. Bodies are then decompressed both ways.
 *
 * Input: byte 0 chooses the size of the pieces and the side, the rest is the stream.
 */
#include <assert.h>
#include <stdlib.h>
#include "base/hash.h"
#include "protocol/compression.h"
#include "protocol/envelope.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_FRAME_MAX = 4096 };

static void
fuzz_body(struct envelope envelope, enum compression compression)
{
	struct arena arena;
	struct error err;

	arena_init(&arena, 1024);
	if (compression_open_body(compression, &envelope, 1 << 16, &arena, &err) == 0)
		assert(envelope.body.size <= 1 << 16);
	assert(arena.total_bytes < 1 << 17);
	arena_fini(&arena);
}

/* Everything in the stream, given in pieces of `step` bytes; returns a digest of what was found. */
static uint64_t
fuzz_stream(const uint8_t *data, size_t size, size_t step, bool is_client)
{
	struct envelope_decoder decoder;
	struct envelope envelope;
	struct error err;
	size_t start = 0, have = 0, consumed;
	uint64_t digest = 0;

	envelope_decoder_init(&decoder, is_client, FUZZ_FRAME_MAX);
	for (;;) {
		/* A block of just this size, so that the sanitizer sees a read past the end. */
		uint8_t *piece = xmalloc(have - start);
		enum envelope_result result;

		memcpy(piece, data + start, have - start);
		result = envelope_decode(
		    &decoder, slice_of(piece, have - start), &consumed, &envelope, &err);
		assert(consumed <= have - start);
		if (result == ENVELOPE_ONE) {
			assert(envelope.body.size == envelope.header.length);
			assert(envelope.body.size + ENVELOPE_HEADER_SIZE <= FUZZ_FRAME_MAX);
			fuzz_body(envelope, COMPRESSION_LZ4);
			fuzz_body(envelope, COMPRESSION_SNAPPY);
			digest = digest * 31 + hash_bytes(envelope.body) + envelope.header.opcode;
		} else if (result == ENVELOPE_BAD) {
			assert(consumed > 0 || envelope.header.length == 0);
			digest = digest * 31 + (uint64_t)err.code;
		}
		free(piece);
		start += consumed;
		if (result == ENVELOPE_MORE) {
			if (have == size)
				return digest;
			have = have + step < size ? have + step : size;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_client;
	size_t step;

	if (size < 1)
		return 0;
	is_client = (data[0] & 0x80) != 0;
	step = (data[0] & 0x7F) + 1;
	data++;
	size--;
	assert(
	    fuzz_stream(data, size, step, is_client) == fuzz_stream(data, size, size, is_client));
	return 0;
}
