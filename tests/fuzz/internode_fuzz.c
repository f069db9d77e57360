/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another node, or who pretends to be one, may send: handshakes, frames and the messages in them. Checksums keep
 * a fuzzer out, so this target computes them.
 *
 * Input: byte 0 chooses: 0 a hello, 1 a welcome (raw), 2 and 3 the body of one; 4 a message; 5 and 6 records, each a
 * u16 size and bytes, to be framed plain or with LZ4 and read back; 7 and 8 a raw stream of frames;
 * 9 and 10 payloads of frames, each a byte (1: self-contained, 2: damage it), a u16 size and bytes.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "cluster/frame.h"
#include "cluster/message.h"
#include "protocol/segment.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_RECORD_MAX = 4096, FUZZ_NOW = 1000 };

static const struct endpoint fuzz_here = {.address = {127, 0, 0, 1}, .size = 4, .port = 7000};

static void
fuzz_hello(struct slice bytes)
{
	struct frame_hello hello, again;
	struct buffer wire;
	struct error err;
	ssize_t taken;

	fuzz_memory_certain(false);
	taken = frame_get_hello(bytes, &hello, &err);
	fuzz_memory_certain(true);

	assert(taken <= (ssize_t)bytes.size && taken <= HANDSHAKE_SIZE_MAX);
	if (taken <= 0)
		return;
	buffer_init(&wire);
	frame_put_hello(&wire, &hello);
	assert(frame_get_hello(buffer_slice(&wire), &again, &err) == (ssize_t)wire.size);
	assert(strcmp(again.cluster_name, hello.cluster_name) == 0);
	assert(endpoint_equal(&again.from, &hello.from));
	buffer_fini(&wire);
}

static void
fuzz_welcome(struct slice bytes)
{
	struct frame_welcome welcome;
	struct error err;
	ssize_t taken = frame_get_welcome(bytes, &welcome, &err);

	assert(taken <= (ssize_t)bytes.size);
	if (taken > 0)
		assert(frame_status_name(welcome.status) != NULL);
}

/* The body with what belongs around it. */
static void
fuzz_handshake(struct slice body, bool is_hello)
{
	struct buffer wire;

	if (body.size > HANDSHAKE_BODY_MAX)
		return;
	fuzz_memory_certain(true);
	buffer_init(&wire);
	buffer_put(&wire, is_hello ? "HLNI" : "HLNW", 4);
	buffer_put_u16(&wire, (uint16_t)body.size);
	buffer_put_slice(&wire, body);
	buffer_put_u32(&wire, crc32_update(0, wire.data, wire.size));
	if (is_hello)
		fuzz_hello(buffer_slice(&wire));
	else
		fuzz_welcome(buffer_slice(&wire));
	buffer_fini(&wire);
}

/* What is accepted is encoded to something that means the same. */
static void
fuzz_message(struct slice bytes)
{
	struct peer sender = {.endpoint = fuzz_here};
	struct message *message, *again;
	struct message_answer answer;
	bool is_answer = message_peek_answer(bytes, &answer);
	struct buffer wire;
	struct error err;

	if (message_decode(bytes, &sender, FUZZ_NOW, &message, &err) != 0)
		return;
	fuzz_memory_certain(true);
	if (is_answer) {
		assert(answer.verb == message->verb && answer.id == message->id);
		assert(message->flags == 0 && message->payload == NULL && message->peer == &sender);
	}
	buffer_init(&wire);
	message_encode(message, &fuzz_here, FUZZ_NOW, &wire);
	assert(wire.size <= message_size(message));
	assert(message_decode(buffer_slice(&wire), &sender, FUZZ_NOW, &again, &err) == 0);
	assert(again->id == message->id && again->verb == message->verb);
	assert(again->flags == message->flags && again->expires_ns == message->expires_ns);
	assert(endpoint_equal(&again->from, &message->from));
	assert(again->forward_count == message->forward_count);
	assert(slice_equal(message_payload_slice(again), message_payload_slice(message)));
	assert(verb_name(message->verb) != NULL);
	message_unref(again);
	message_unref(message);
	buffer_fini(&wire);
	fuzz_memory_certain(false);
}

/* Read frames; records go to `out` with their sizes, where it is asked for. */
static void
fuzz_stream(struct slice stream, enum compression compression, struct buffer *out)
{
	struct frame_reader reader;
	enum frame_result result;
	struct slice record;
	struct error err;
	size_t consumed;

	frame_reader_init(&reader, compression, FUZZ_RECORD_MAX);
	while ((result = frame_read(&reader, stream, &consumed, &record, &err)) == FRAME_RECORD ||
	    result == FRAME_SKIPPED) {
		assert(consumed <= stream.size);
		assert(reader.partial.size <= FUZZ_RECORD_MAX + SEGMENT_PAYLOAD_MAX);
		stream = slice_of(stream.data + consumed, stream.size - consumed);
		if (result == FRAME_SKIPPED)
			continue;
		assert(record.size <= FUZZ_RECORD_MAX);
		if (out != NULL) {
			buffer_put_u16(out, (uint16_t)record.size);
			buffer_put_slice(out, record);
		} else {
			fuzz_message(record);
		}
	}
	frame_reader_fini(&reader);
}

static void
fuzz_records(struct slice records, enum compression compression)
{
	struct reader reader = reader_of(records);
	struct buffer wire, in, out;
	struct frame_writer writer;

	fuzz_memory_certain(true);
	buffer_init(&wire);
	buffer_init(&in);
	buffer_init(&out);
	frame_writer_init(&writer, compression);
	while (reader_left(&reader) >= 2) {
		size_t size = reader_u16(&reader) % (FUZZ_RECORD_MAX + 1);
		struct slice record = reader_bytes(
		    &reader, size < reader_left(&reader) ? size : reader_left(&reader));

		buffer_put_u16(&in, (uint16_t)record.size);
		buffer_put_slice(&in, record);
		frame_put(&writer, &wire, record);
		if (size % 5 == 0)
			frame_writer_flush(&writer, &wire);
	}
	frame_writer_flush(&writer, &wire);
	fuzz_stream(buffer_slice(&wire), compression, &out);
	assert(out.size == in.size && (in.size == 0 || memcmp(out.data, in.data, in.size) == 0));
	frame_writer_fini(&writer);
	buffer_fini(&wire);
	buffer_fini(&in);
	buffer_fini(&out);
}

static void
fuzz_payloads(struct slice payloads, enum compression compression)
{
	struct reader reader = reader_of(payloads);
	struct buffer wire;

	fuzz_memory_certain(true);
	buffer_init(&wire);
	while (reader_left(&reader) >= 3) {
		unsigned how = reader_u8(&reader);
		size_t size = reader_u16(&reader);
		struct slice payload = reader_bytes(
		    &reader, size < reader_left(&reader) ? size : reader_left(&reader));

		segment_put_one(&wire, payload, (how & 1) != 0, compression);
		if ((how & 2) != 0)
			wire.data[wire.size - 1] ^= 1;
	}
	fuzz_memory_certain(false);
	if (wire.size > 0)
		fuzz_stream(buffer_slice(&wire), compression, NULL);
	buffer_fini(&wire);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest;

	if (size < 1)
		return 0;
	rest = slice_of(data + 1, size - 1);
	switch (data[0]) {
	case 0:
		fuzz_hello(rest);
		break;
	case 1:
		fuzz_welcome(rest);
		break;
	case 2:
	case 3:
		fuzz_handshake(rest, data[0] == 2);
		break;
	case 4:
		fuzz_message(rest);
		break;
	case 5:
	case 6:
		fuzz_records(rest, data[0] == 5 ? COMPRESSION_NONE : COMPRESSION_LZ4);
		break;
	case 7:
	case 8:
		fuzz_stream(rest, data[0] == 7 ? COMPRESSION_NONE : COMPRESSION_LZ4, NULL);
		break;
	case 9:
	case 10:
		fuzz_payloads(rest, data[0] == 9 ? COMPRESSION_NONE : COMPRESSION_LZ4);
		break;
	default:
		break;
	}
	return 0;
}
