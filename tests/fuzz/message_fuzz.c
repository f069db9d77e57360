/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, both sides: a body of any bytes as request and as response. What decodes as a request is
 * encoded by the client side and must decode to the same bytes again.
 *
 * Input: version, flags, opcode (one byte each; the version modulo 4 above 3), then the body.
 */
#include <assert.h>
#include <stdlib.h>
#include "protocol/client.h"
#include "protocol/type_codec.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory taken may not run away from the bytes that came: the largest element for the smallest wire
 * form is a bound value (24 bytes for 4), a batch entry (48 for 5), a column (64 for 4). */
static size_t
fuzz_memory_max(size_t size)
{
	return 16384 + size * 40;
}

static void
fuzz_walk_payload(struct slice payload)
{
	struct slice name, value;
	size_t cursor = 0;

	while (message_payload_next(payload, &cursor, &name, &value))
		assert(cursor <= payload.size);
}

/* The same request again: encoded, decoded, encoded. */
static void
fuzz_round_trip(const struct client_message *request, struct arena *arena)
{
	struct buffer first, second;
	struct client_message again;
	struct envelope envelope = {0};
	struct error err;

	fuzz_memory_certain(true);
	buffer_init(&first);
	buffer_init(&second);
	if (client_put_request(&first, request, COMPRESSION_NONE, &err) == 0) {
		envelope.header = envelope_load_header(first.data);
		envelope.body =
		    slice_of(first.data + ENVELOPE_HEADER_SIZE, first.size - ENVELOPE_HEADER_SIZE);
		assert(message_decode_request(&envelope, arena, &again, &err) == 0);
		assert(client_put_request(&second, &again, COMPRESSION_NONE, &err) == 0);
		assert(slice_equal(buffer_slice(&first), buffer_slice(&second)));
	}
	buffer_fini(&first);
	buffer_fini(&second);
	fuzz_memory_certain(false);
}

static void
fuzz_request(const struct envelope *envelope)
{
	struct client_message request;
	struct arena arena;
	struct error err;

	arena_init(&arena, 1024);
	message_peek_prepared_id(envelope);
	message_peek_query(envelope);
	if (message_decode_request(envelope, &arena, &request, &err) == 0) {
		if (request.opcode == OPCODE_STARTUP)
			message_startup_option(&request.startup, "CQL_VERSION");
		fuzz_walk_payload(request.custom_payload);
		fuzz_round_trip(&request, &arena);
	}
	assert(arena.total_bytes <= 2 * fuzz_memory_max(envelope->body.size));
	arena_fini(&arena);
}

static void
fuzz_rows(struct client_rows *rows, struct arena *arena)
{
	const struct type *type;
	struct slice cell;
	struct error err;

	for (uint32_t i = 0; rows->metadata.columns != NULL && i < rows->metadata.column_count; i++)
		type_codec_decode(rows->metadata.columns[i].type, arena, &type, &err);
	while (rows->content.size > 0 && client_next_cell(&rows->content, &cell) == 0)
		assert(slice_is_null(cell) || cell.size <= UINT32_MAX);
}

static void
fuzz_response(const struct envelope *envelope)
{
	struct client_response response;
	struct arena arena;
	struct error err;

	arena_init(&arena, 1024);
	if (client_decode_response(envelope, &arena, &response, &err) == 0) {
		assert(arena.total_bytes <= fuzz_memory_max(envelope->body.size));
		fuzz_walk_payload(response.custom_payload);
		if (response.opcode == OPCODE_RESULT && response.result_kind == RESULT_ROWS)
			fuzz_rows(&response.rows, &arena);
	}
	arena_fini(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct envelope envelope = {0};
	uint8_t *exact;

	if (size < 3)
		return 0;
	/* A block of just this size, so that the sanitizer sees a read past the end. */
	exact = xmalloc(size - 3);
	memcpy(exact, data + 3, size - 3);
	envelope.header.version = (uint8_t)(3 + data[0] % 4);
	envelope.header.flags = data[1];
	envelope.header.opcode = data[2];
	envelope.header.length = (uint32_t)(size - 3);
	envelope.body = slice_of(exact, size - 3);
	fuzz_request(&envelope);
	fuzz_response(&envelope);
	free(exact);
	return 0;
}
