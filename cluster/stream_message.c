/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/stream_message.h"
#include <string.h>

enum { STREAM_FLAG_PENDING_REPAIR = 1, STREAM_FLAG_RESUMES = 2, STREAM_FLAGS = 3 };
enum { STREAM_LIST_MAX = 1 << 20 };

/* ---- encoding ------------------------------------------------------------------------------------- */

static void
stream_put_string(struct buffer *out, struct slice string)
{
	buffer_put_vint(out, string.size);
	buffer_put_slice(out, string);
}

static void
stream_put_uuid(struct buffer *out, const struct uuid *id)
{
	buffer_put(out, id->bytes, sizeof(id->bytes));
}

static void
stream_put_request(struct buffer *out, const struct stream_request *request)
{
	stream_put_string(out, request->keyspace);
	buffer_put_vint(out, request->table_count);
	for (uint32_t i = 0; i < request->table_count; i++)
		stream_put_string(out, request->tables[i]);
	buffer_put_vint(out, request->range_count);
	for (uint32_t i = 0; i < request->range_count; i++) {
		buffer_put_u64(out, (uint64_t)request->ranges[i].left);
		buffer_put_u64(out, (uint64_t)request->ranges[i].right);
	}
}

static void
stream_put_summary(struct buffer *out, const struct stream_summary *summary)
{
	stream_put_uuid(out, &summary->table_id);
	stream_put_string(out, summary->keyspace);
	stream_put_string(out, summary->table);
	buffer_put_vint(out, summary->files);
	buffer_put_vint(out, summary->bytes);
}

void
stream_message_encode(const struct stream_message *message, struct buffer *out)
{
	buffer_put_u8(out, message->verb);
	switch (message->verb) {
	case VERB_STREAM_INIT:
		buffer_put_u8(out, STREAM_MESSAGE_VERSION);
		stream_put_uuid(out, &message->init.plan_id);
		buffer_put_u8(out, message->init.operation);
		buffer_put_u8(out,
		    (uint8_t)((message->init.has_pending_repair ? STREAM_FLAG_PENDING_REPAIR : 0) |
			(message->init.resumes ? STREAM_FLAG_RESUMES : 0)));
		if (message->init.has_pending_repair)
			stream_put_uuid(out, &message->init.pending_repair);
		break;
	case VERB_STREAM_PREPARE:
		buffer_put_vint(out, message->prepare.request_count);
		for (uint32_t i = 0; i < message->prepare.request_count; i++)
			stream_put_request(out, &message->prepare.requests[i]);
		buffer_put_vint(out, message->prepare.summary_count);
		for (uint32_t i = 0; i < message->prepare.summary_count; i++)
			stream_put_summary(out, &message->prepare.summaries[i]);
		break;
	case VERB_STREAM_FILE:
		buffer_put_vint(out, message->file.number);
		stream_put_uuid(out, &message->file.table_id);
		buffer_put_vint(out, message->file.bytes);
		break;
	case VERB_STREAM_DATA:
		buffer_put_u8(out, message->data.is_last);
		buffer_put_slice(out, message->data.bytes);
		break;
	case VERB_STREAM_ACK:
		buffer_put_vint(out, message->ack.number);
		buffer_put_u8(out, message->ack.again);
		stream_put_string(out, message->ack.reason);
		break;
	case VERB_STREAM_FAILED:
		stream_put_string(out, message->failure);
		break;
	case VERB_STREAM_RESUME:
		buffer_put_u8(out, message->resume.flags);
		buffer_put_vint(out, message->resume.count);
		for (uint32_t i = 0; i < message->resume.count; i++)
			buffer_put_vint(out, message->resume.numbers[i]);
		break;
	default:
		break;
	}
}

/* ---- decoding --------------------------------------------------------------------------------------- */

static struct slice
stream_get_string(struct reader *reader)
{
	uint64_t size = reader_vint(reader);

	if (size > reader_left(reader)) {
		reader->is_failed = true;
		return slice_of("", 0);
	}
	return reader_bytes(reader, (size_t)size);
}

static struct uuid
stream_get_uuid(struct reader *reader)
{
	struct slice bytes = reader_bytes(reader, 16);
	struct uuid id = {{0}};

	if (!reader->is_failed)
		memcpy(id.bytes, bytes.data, sizeof(id.bytes));
	return id;
}

static bool
stream_get_flag(struct reader *reader)
{
	uint8_t value = reader_u8(reader);

	reader->is_failed |= value > 1;
	return value == 1;
}

/* A list of things that take `least` bytes each; NULL: there is none, or it cannot be (the reader has failed). */
static void *
stream_get_list(
    struct reader *reader, struct arena *arena, size_t least, size_t size, uint32_t *count)
{
	uint64_t claimed = reader_vint(reader);
	void *list;

	*count = 0;
	if (reader->is_failed || claimed > STREAM_LIST_MAX ||
	    claimed > reader_left(reader) / least) {
		reader->is_failed = true;
		return NULL;
	}
	if (claimed == 0)
		return NULL;
	list = arena_alloc(arena, (size_t)claimed * size);
	if (list == NULL)
		reader->is_failed = true;
	else
		*count = (uint32_t)claimed;
	return list;
}

static void
stream_get_request(struct reader *reader, struct arena *arena, struct stream_request *request)
{
	request->keyspace = stream_get_string(reader);
	request->tables =
	    stream_get_list(reader, arena, 1, sizeof(*request->tables), &request->table_count);
	for (uint32_t i = 0; i < request->table_count; i++)
		request->tables[i] = stream_get_string(reader);
	request->ranges =
	    stream_get_list(reader, arena, 16, sizeof(*request->ranges), &request->range_count);
	for (uint32_t i = 0; i < request->range_count; i++) {
		request->ranges[i].left = (int64_t)reader_u64(reader);
		request->ranges[i].right = (int64_t)reader_u64(reader);
	}
}

static void
stream_get_prepare(struct reader *reader, struct arena *arena, struct stream_message *out)
{
	out->prepare.requests = stream_get_list(
	    reader, arena, 3, sizeof(*out->prepare.requests), &out->prepare.request_count);
	for (uint32_t i = 0; i < out->prepare.request_count && !reader->is_failed; i++)
		stream_get_request(reader, arena, &out->prepare.requests[i]);
	out->prepare.summaries = stream_get_list(
	    reader, arena, 20, sizeof(*out->prepare.summaries), &out->prepare.summary_count);
	for (uint32_t i = 0; i < out->prepare.summary_count && !reader->is_failed; i++) {
		struct stream_summary *summary = &out->prepare.summaries[i];

		summary->table_id = stream_get_uuid(reader);
		summary->keyspace = stream_get_string(reader);
		summary->table = stream_get_string(reader);
		summary->files = reader_vint(reader);
		summary->bytes = reader_vint(reader);
	}
}

static void
stream_get_init(struct reader *reader, struct stream_message *out)
{
	uint8_t flags;

	reader->is_failed |= reader_u8(reader) != STREAM_MESSAGE_VERSION;
	out->init.plan_id = stream_get_uuid(reader);
	out->init.operation = reader_u8(reader);
	flags = reader_u8(reader);
	reader->is_failed |= (flags & ~STREAM_FLAGS) != 0;
	out->init.has_pending_repair = (flags & STREAM_FLAG_PENDING_REPAIR) != 0;
	out->init.resumes = (flags & STREAM_FLAG_RESUMES) != 0;
	if (out->init.has_pending_repair)
		out->init.pending_repair = stream_get_uuid(reader);
}

static void
stream_get_resume(struct reader *reader, struct arena *arena, struct stream_message *out)
{
	out->resume.flags = reader_u8(reader);
	reader->is_failed |=
	    (out->resume.flags & ~(STREAM_RESUME_KNOWN | STREAM_RESUME_COMMITTED)) != 0;
	out->resume.numbers =
	    stream_get_list(reader, arena, 1, sizeof(*out->resume.numbers), &out->resume.count);
	for (uint32_t i = 0; i < out->resume.count; i++)
		out->resume.numbers[i] = reader_vint(reader);
}

static void
stream_get_body(struct reader *reader, struct arena *arena, struct stream_message *out)
{
	switch (out->verb) {
	case VERB_STREAM_INIT:
		stream_get_init(reader, out);
		break;
	case VERB_STREAM_PREPARE:
		stream_get_prepare(reader, arena, out);
		break;
	case VERB_STREAM_FILE:
		out->file.number = reader_vint(reader);
		out->file.table_id = stream_get_uuid(reader);
		out->file.bytes = reader_vint(reader);
		break;
	case VERB_STREAM_DATA:
		out->data.is_last = stream_get_flag(reader);
		out->data.bytes = reader_bytes(reader, reader_left(reader));
		break;
	case VERB_STREAM_ACK:
		out->ack.number = reader_vint(reader);
		out->ack.again = stream_get_flag(reader);
		out->ack.reason = stream_get_string(reader);
		break;
	case VERB_STREAM_FAILED:
		out->failure = stream_get_string(reader);
		break;
	case VERB_STREAM_RESUME:
		stream_get_resume(reader, arena, out);
		break;
	case VERB_STREAM_DONE:
	case VERB_STREAM_COMPLETE:
	case VERB_STREAM_KEEP_ALIVE:
		break;
	default:
		reader->is_failed = true;
		break;
	}
}

int
stream_message_decode(
    struct slice record, struct arena *arena, struct stream_message *out, struct error *err)
{
	struct reader reader = reader_of(record);

	memset(out, 0, sizeof(*out));
	out->verb = reader_u8(&reader);
	if (!reader.is_failed)
		stream_get_body(&reader, arena, out);
	if (reader.is_failed || reader_left(&reader) > 0)
		return error_set(err, ERROR_PROTOCOL,
		    "streaming: a record of verb %u and %zu bytes cannot be read", out->verb,
		    record.size);
	return 0;
}
