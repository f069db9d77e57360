/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/frame.h"

#include <assert.h>

#include "base/hash.h"
#include "protocol/segment.h"

enum {
	HANDSHAKE_MAGIC_SIZE = 4,
	HANDSHAKE_HEAD_SIZE = HANDSHAKE_MAGIC_SIZE + 2,
	HANDSHAKE_CRC_SIZE = 4,
	FRAME_KEEP_MAX = 256 << 10, /* memory of a large record is not kept for the next one */
};

static_assert(FRAME_RECORD_ALONE + FRAME_RECORD_HEADER == SEGMENT_PAYLOAD_MAX, "one frame");

static const char hello_magic[] = "HLNI";
static const char welcome_magic[] = "HLNW";

/* ---- Handshake ------------------------------------------------------------------------------ */

const char *
frame_status_name(uint8_t status)
{
	static const char *const names[FRAME_STATUS_COUNT] = {
	    [FRAME_WELCOME] = "welcome",
	    [FRAME_WRONG_CLUSTER] = "wrong cluster name",
	    [FRAME_WRONG_VERSION] = "no common messaging version",
	    [FRAME_WRONG_NODE] = "meant for another node",
	    [FRAME_REFUSED] = "refused",
	};

	return status < FRAME_STATUS_COUNT ? names[status] : "unknown";
}

static size_t
handshake_begin(struct buffer *out, const char *magic)
{
	size_t mark = out->size;

	buffer_put(out, magic, HANDSHAKE_MAGIC_SIZE);
	buffer_put_u16(out, 0);
	return mark;
}

static void
handshake_end(struct buffer *out, size_t mark)
{
	if (out->is_failed)
		return;
	store_u16(out->data + mark + HANDSHAKE_MAGIC_SIZE,
	    (uint16_t)(out->size - mark - HANDSHAKE_HEAD_SIZE));
	buffer_put_u32(out, crc32_update(0, out->data + mark, out->size - mark));
}

static void
handshake_put_endpoint(struct buffer *out, const struct endpoint *endpoint)
{
	uint8_t wire[ENDPOINT_WIRE_MAX];

	buffer_put(out, wire, endpoint_encode(endpoint, wire));
}

static void
handshake_put_name(struct buffer *out, const char *name)
{
	size_t size = strnlen(name, HANDSHAKE_NAME_MAX);

	buffer_put_u16(out, (uint16_t)size);
	buffer_put(out, name, size);
}

void
frame_put_hello(struct buffer *out, const struct frame_hello *hello)
{
	size_t mark = handshake_begin(out, hello_magic);

	buffer_put_u8(out, hello->version_min);
	buffer_put_u8(out, hello->version_max);
	buffer_put_u8(out, hello->kind);
	buffer_put_u8(out, hello->compression);
	handshake_put_endpoint(out, &hello->from);
	handshake_put_endpoint(out, &hello->to);
	handshake_put_name(out, hello->cluster_name);
	handshake_end(out, mark);
}

void
frame_put_welcome(struct buffer *out, const struct frame_welcome *welcome)
{
	size_t mark = handshake_begin(out, welcome_magic);

	buffer_put_u8(out, welcome->status);
	buffer_put_u8(out, welcome->version);
	buffer_put_u8(out, welcome->compression);
	handshake_put_endpoint(out, &welcome->from);
	handshake_put_name(out, welcome->cluster_name);
	handshake_end(out, mark);
}

/* The body of a handshake that is whole. Refuses what is none as soon as its first bytes tell. */
static ssize_t
handshake_open(struct slice bytes, const char *magic, struct reader *body, struct error *err)
{
	size_t known = bytes.size < HANDSHAKE_MAGIC_SIZE ? bytes.size : HANDSHAKE_MAGIC_SIZE;
	size_t size, total;

	if (known > 0 && memcmp(bytes.data, magic, known) != 0)
		return error_set(err, ERROR_PROTOCOL, "no handshake of a Helenus node");
	if (bytes.size < HANDSHAKE_HEAD_SIZE)
		return 0;
	size = load_u16(bytes.data + HANDSHAKE_MAGIC_SIZE);
	if (size > HANDSHAKE_BODY_MAX)
		return error_set(err, ERROR_PROTOCOL, "a handshake of %zu bytes", size);
	total = HANDSHAKE_HEAD_SIZE + size + HANDSHAKE_CRC_SIZE;
	if (bytes.size < total)
		return 0;
	if (crc32_update(0, bytes.data, total - HANDSHAKE_CRC_SIZE) !=
	    load_u32(bytes.data + total - HANDSHAKE_CRC_SIZE))
		return error_set(err, ERROR_PROTOCOL, "a handshake with a wrong checksum");
	*body = reader_of(slice_of(bytes.data + HANDSHAKE_HEAD_SIZE, size));
	return (ssize_t)total;
}

static void
handshake_get_endpoint(struct reader *reader, struct endpoint *out)
{
	size_t size = reader->is_failed ? 0 : endpoint_decode(reader->at, reader_left(reader), out);

	if (size == 0)
		reader->is_failed = true;
	else
		reader_skip(reader, size);
}

static void
handshake_get_name(struct reader *reader, char out[HANDSHAKE_NAME_MAX + 1])
{
	size_t size = reader_u16(reader);
	struct slice name = reader_bytes(reader, size);

	if (size > HANDSHAKE_NAME_MAX || memchr(name.data, '\0', name.size) != NULL)
		reader->is_failed = true;
	if (reader->is_failed)
		name.size = 0;
	memcpy(out, name.data, name.size);
	out[name.size] = '\0';
}

ssize_t
frame_get_hello(struct slice bytes, struct frame_hello *out, struct error *err)
{
	struct reader reader;
	ssize_t taken = handshake_open(bytes, hello_magic, &reader, err);

	if (taken <= 0)
		return taken;
	out->version_min = reader_u8(&reader);
	out->version_max = reader_u8(&reader);
	out->kind = reader_u8(&reader);
	out->compression = reader_u8(&reader);
	handshake_get_endpoint(&reader, &out->from);
	handshake_get_endpoint(&reader, &out->to);
	handshake_get_name(&reader, out->cluster_name);
	if (reader.is_failed)
		return error_set(err, ERROR_PROTOCOL, "a handshake that ends too early");
	return taken;
}

ssize_t
frame_get_welcome(struct slice bytes, struct frame_welcome *out, struct error *err)
{
	struct reader reader;
	ssize_t taken = handshake_open(bytes, welcome_magic, &reader, err);

	if (taken <= 0)
		return taken;
	out->status = reader_u8(&reader);
	out->version = reader_u8(&reader);
	out->compression = reader_u8(&reader);
	handshake_get_endpoint(&reader, &out->from);
	handshake_get_name(&reader, out->cluster_name);
	if (reader.is_failed)
		return error_set(err, ERROR_PROTOCOL, "a handshake that ends too early");
	return taken;
}

/* ---- Writing frames ------------------------------------------------------------------------- */

/*
 * Plain frames are built where they are sent from, with room for the header in front. Compressed ones, and records
 * that have to be cut, are built in writer->payload.
 */
void
frame_writer_init(struct frame_writer *writer, enum compression compression)
{
	*writer = (struct frame_writer){.compression = compression};
	buffer_init(&writer->payload);
}

void
frame_writer_fini(struct frame_writer *writer)
{
	buffer_fini(&writer->payload);
}

static bool
frame_is_in_place(const struct frame_writer *writer, size_t record_size)
{
	return writer->compression == COMPRESSION_NONE && record_size <= FRAME_RECORD_ALONE;
}

static void
frame_clear_payload(struct frame_writer *writer)
{
	if (writer->payload.capacity > FRAME_KEEP_MAX) {
		buffer_fini(&writer->payload);
		buffer_init(&writer->payload);
	}
	buffer_clear(&writer->payload);
}

static void
frame_end_in_place(struct frame_writer *writer, struct buffer *out)
{
	size_t start = writer->mark + SEGMENT_HEADER_SIZE;
	uint8_t trailer[SEGMENT_TRAILER_SIZE];
	struct slice payload;

	if (out->is_failed)
		return;
	payload = slice_of(out->data + start, out->size - start);
	segment_store_header(out->data + writer->mark, (uint32_t)payload.size, true);
	segment_store_trailer(trailer, segment_crc32_update(segment_crc32_init(), payload));
	buffer_put(out, trailer, sizeof(trailer));
}

/* What stands in writer->payload: one frame, or one record cut over several. */
static void
frame_end_payload(struct frame_writer *writer, struct buffer *out)
{
	struct slice payload = buffer_slice(&writer->payload);
	bool is_self_contained = payload.size <= SEGMENT_PAYLOAD_MAX;

	if (writer->payload.is_failed)
		out->is_failed = true;
	while (payload.size > 0 && !out->is_failed) {
		size_t piece =
		    payload.size < SEGMENT_PAYLOAD_MAX ? payload.size : SEGMENT_PAYLOAD_MAX;

		segment_put_one(
		    out, slice_of(payload.data, piece), is_self_contained, writer->compression);
		payload.data += piece;
		payload.size -= piece;
	}
	frame_clear_payload(writer);
}

void
frame_writer_flush(struct frame_writer *writer, struct buffer *out)
{
	if (writer->is_open)
		frame_end_in_place(writer, out);
	writer->is_open = false;
	if (writer->payload.size > 0 || writer->payload.is_failed)
		frame_end_payload(writer, out);
}

/* Payload bytes of the frame that is open. */
static size_t
frame_open_size(const struct frame_writer *writer, const struct buffer *out)
{
	if (writer->is_open)
		return out->size - writer->mark - SEGMENT_HEADER_SIZE;
	return writer->payload.size;
}

struct buffer *
frame_record_begin(struct frame_writer *writer, struct buffer *out, size_t size_max)
{
	bool is_in_place = frame_is_in_place(writer, size_max);
	struct buffer *to = is_in_place ? out : &writer->payload;

	if (frame_open_size(writer, out) + size_max + FRAME_RECORD_HEADER > SEGMENT_PAYLOAD_MAX ||
	    (is_in_place ? writer->payload.size > 0 : writer->is_open))
		frame_writer_flush(writer, out);
	if (is_in_place && !writer->is_open) {
		writer->mark = out->size;
		(void)buffer_append(out, SEGMENT_HEADER_SIZE);
		writer->is_open = true;
	}
	writer->record = to->size;
	buffer_put_u32(to, 0);
	return to;
}

void
frame_record_end(struct frame_writer *writer, struct buffer *out)
{
	struct buffer *to = writer->is_open ? out : &writer->payload;

	if (!to->is_failed)
		store_u32(to->data + writer->record,
		    (uint32_t)(to->size - writer->record - FRAME_RECORD_HEADER));
	if (writer->payload.size > SEGMENT_PAYLOAD_MAX)
		frame_writer_flush(writer, out);
}

void
frame_put(struct frame_writer *writer, struct buffer *out, struct slice record)
{
	buffer_put_slice(frame_record_begin(writer, out, record.size), record);
	frame_record_end(writer, out);
}

/* ---- Reading frames ------------------------------------------------------------------------- */

void
frame_reader_init(struct frame_reader *reader, enum compression compression, size_t record_max)
{
	*reader = (struct frame_reader){.compression = compression, .record_max = record_max};
	buffer_init(&reader->plain);
	buffer_init(&reader->partial);
}

void
frame_reader_fini(struct frame_reader *reader)
{
	buffer_fini(&reader->plain);
	buffer_fini(&reader->partial);
}

static void
frame_reset_partial(struct frame_reader *reader)
{
	if (reader->partial.capacity > FRAME_KEEP_MAX) {
		buffer_fini(&reader->partial);
		buffer_init(&reader->partial);
	}
	buffer_clear(&reader->partial);
	reader->partial_size = 0;
	reader->is_partial_out = false;
}

static enum frame_result
frame_too_large(const struct frame_reader *reader, uint64_t size, struct error *err)
{
	error_set(err, ERROR_INVALID, "a record of %llu bytes, over the limit of %zu",
	    (unsigned long long)size, reader->record_max);
	return FRAME_SKIPPED;
}

/*
 * A piece of a record that is cut over several frames. The first ones may be shorter than the size of the record, which
 * reserves no memory: that grows as pieces come.
 */
static enum frame_result
frame_add_piece(
    struct frame_reader *reader, struct slice piece, struct slice *record, struct error *err)
{
	struct buffer *partial = &reader->partial;

	if (reader->skip_left > 0) {
		if (piece.size > reader->skip_left)
			goto overrun;
		reader->skip_left -= piece.size;
		return FRAME_MORE;
	}
	buffer_put_slice(partial, piece);
	if (buffer_check(partial, err) != 0)
		return FRAME_BAD;
	if (partial->size < FRAME_RECORD_HEADER)
		return FRAME_MORE;
	reader->partial_size = (uint64_t)load_u32(partial->data) + FRAME_RECORD_HEADER;
	if (partial->size > reader->partial_size)
		goto overrun;
	if (reader->partial_size - FRAME_RECORD_HEADER > reader->record_max) {
		uint64_t size = reader->partial_size - FRAME_RECORD_HEADER;

		reader->skip_left = reader->partial_size - partial->size;
		frame_reset_partial(reader);
		return frame_too_large(reader, size, err);
	}
	if (partial->size < reader->partial_size)
		return FRAME_MORE;
	reader->is_partial_out = true;
	*record =
	    slice_of(partial->data + FRAME_RECORD_HEADER, partial->size - FRAME_RECORD_HEADER);
	return FRAME_RECORD;
overrun:
	error_set(err, ERROR_PROTOCOL, "a record is longer than it says");
	return FRAME_BAD;
}

static bool
frame_is_within_record(const struct frame_reader *reader)
{
	return reader->skip_left > 0 || reader->partial.size > 0;
}

/* The next record of the frame that is open. */
static enum frame_result
frame_next_record(struct frame_reader *reader, struct slice *record, struct error *err)
{
	struct slice *rest = &reader->rest;
	uint32_t size;

	if (rest->size < FRAME_RECORD_HEADER)
		goto bad;
	size = load_u32(rest->data);
	if (size > rest->size - FRAME_RECORD_HEADER)
		goto bad;
	*record = slice_of(rest->data + FRAME_RECORD_HEADER, size);
	rest->data += FRAME_RECORD_HEADER + size;
	rest->size -= FRAME_RECORD_HEADER + size;
	if (size > reader->record_max)
		return frame_too_large(reader, size, err);
	return FRAME_RECORD;
bad:
	rest->size = 0;
	error_set(err, ERROR_PROTOCOL, "a record that does not fit into its frame");
	return FRAME_BAD;
}

/* A frame whose payload is damaged: passed over where no record is lost but those within it. */
static enum frame_result
frame_skip_damaged(
    struct frame_reader *reader, const struct segment *segment, size_t *consumed, struct error *err)
{
	if (!segment->is_self_contained || frame_is_within_record(reader))
		return FRAME_BAD;
	*consumed += segment->size;
	err->code = ERROR_CORRUPT;
	return FRAME_SKIPPED;
}

enum frame_result
frame_read(struct frame_reader *reader, struct slice bytes, size_t *consumed, struct slice *record,
    struct error *err)
{
	struct segment segment;
	struct slice payload;
	enum frame_result result;

	*consumed = 0;
	if (reader->is_partial_out)
		frame_reset_partial(reader);
	while (reader->rest.size == 0) {
		switch (segment_read(reader->compression, bytes, &segment, err)) {
		case SEGMENT_STATE_MORE:
			return FRAME_MORE;
		case SEGMENT_STATE_BAD_HEADER:
			return FRAME_BAD;
		case SEGMENT_STATE_BAD_PAYLOAD:
			return frame_skip_damaged(reader, &segment, consumed, err);
		case SEGMENT_STATE_WHOLE:
			break;
		}
		if (segment_open(&segment, &reader->plain, &payload, err) != 0)
			return FRAME_BAD;
		*consumed += segment.size;
		bytes = slice_of(bytes.data + segment.size, bytes.size - segment.size);
		if (!segment.is_self_contained) {
			result = frame_add_piece(reader, payload, record, err);
			if (result != FRAME_MORE)
				return result;
			continue;
		}
		if (frame_is_within_record(reader)) {
			error_set(err, ERROR_PROTOCOL,
			    "a frame of its own within a record that is cut over several");
			return FRAME_BAD;
		}
		reader->rest = payload;
	}
	return frame_next_record(reader, record, err);
}
