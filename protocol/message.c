/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/message.h"

#include <inttypes.h>
#include <strings.h>
#include "protocol/notation.h"

/* The state of one decoding. */
struct message_decoder {
	struct reader reader;
	struct arena *arena;
	struct error *err;
	uint8_t version;
};

struct slice *
notation_string_list(struct reader *reader, struct arena *arena, uint32_t *count)
{
	struct slice *list;

	*count = notation_u16(reader);
	/* Each string has at least its length: a count that the bytes cannot hold takes no memory. */
	if (reader_left(reader) < (size_t)*count * 2)
		reader->is_failed = true;
	if (*count == 0 || reader->is_failed) {
		*count = 0;
		return NULL;
	}
	list = arena_alloc(arena, *count * sizeof(*list));
	for (uint32_t i = 0; list != NULL && i < *count; i++)
		list[i] = notation_string(reader);
	return list;
}

static __attribute__((cold)) int
message_truncated(const struct message_decoder *decoder, const char *what)
{
	return error_set(decoder->err, ERROR_PROTOCOL, "Not enough bytes to read %s", what);
}

static __attribute__((cold)) int
message_no_memory(const struct message_decoder *decoder)
{
	return error_set(decoder->err, ERROR_NO_MEMORY, "No memory to decode a request");
}

static bool
message_is_utf8(struct slice text)
{
	const uint8_t *at = text.data, *end = at + text.size;

	while (at < end) {
		uint8_t lead = *at++;
		int more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
		uint8_t low = 0x80, high = 0xBF;

		if (lead < 0x80)
			continue;
		/* Shortest form only, no surrogates, nothing above U+10FFFF: narrows the second byte. */
		if (lead < 0xC2 || lead > 0xF4 || end - at < more)
			return false;
		if (lead == 0xE0)
			low = 0xA0;
		else if (lead == 0xED)
			high = 0x9F;
		else if (lead == 0xF0)
			low = 0x90;
		else if (lead == 0xF4)
			high = 0x8F;
		if (*at < low || *at > high)
			return false;
		for (int i = 1; i < more; i++) {
			if ((at[i] & 0xC0) != 0x80)
				return false;
		}
		at += more;
	}
	return true;
}

/* The [long string] of a statement. */
static int
message_decode_text(struct message_decoder *decoder, struct slice *text)
{
	int32_t size = (int32_t)notation_u32(&decoder->reader);

	if (size < 0)
		decoder->reader.is_failed = true;
	if (!decoder->reader.is_failed)
		*text = notation_take(&decoder->reader, (size_t)size);
	if (decoder->reader.is_failed)
		return message_truncated(
		    decoder, "an UTF8 serialized string preceded by its 4 bytes length");
	if (!message_is_utf8(*text))
		return error_set(
		    decoder->err, ERROR_PROTOCOL, "Cannot decode string as UTF8: statement");
	return 0;
}

/* A [string] whose absence is an error of its own text. */
static int
message_decode_string(struct message_decoder *decoder, struct slice *string)
{
	*string = notation_string(&decoder->reader);
	if (decoder->reader.is_failed)
		return message_truncated(
		    decoder, "an UTF8 serialized string preceded by its 2 bytes length");
	return 0;
}

/* A prepared id. */
static int
message_decode_id(struct message_decoder *decoder, struct slice *id)
{
	*id = notation_string(&decoder->reader);
	if (decoder->reader.is_failed)
		return message_truncated(decoder, "a byte array preceded by its 2 bytes length");
	return 0;
}

/* A length below zero: null, unset, or neither. Before v4 there was no unset: all are null. */
static int
message_decode_absent(
    const struct message_decoder *decoder, int32_t size, struct bound_value *value)
{
	value->value = slice_null;
	value->is_unset = size == -2 && decoder->version >= 4;
	if (size < -2 && decoder->version >= 4)
		return error_set(decoder->err, ERROR_PROTOCOL, "Invalid ByteBuf length %d", size);
	return 0;
}

/* <n>[name_1]<value_1>...[name_n]<value_n> */
static int
message_decode_values(struct message_decoder *decoder, bool has_names, struct bound_values *values)
{
	struct reader *reader = &decoder->reader;
	uint32_t count = notation_u16(reader);
	size_t size_min = has_names ? 6 : 4;
	struct slice *names = NULL;
	struct bound_value *array;

	*values = (struct bound_values){0};
	/* A count that the bytes cannot hold takes no memory. */
	if (reader->is_failed || reader_left(reader) < count * size_min)
		return message_truncated(decoder, "the values");
	if (count == 0)
		return 0;
	array = arena_alloc(decoder->arena, count * sizeof(*array));
	if (has_names)
		names = arena_alloc(decoder->arena, count * sizeof(*names));
	if (array == NULL || (has_names && names == NULL))
		return message_no_memory(decoder);
	for (uint32_t i = 0; i < count; i++) {
		int32_t size;

		if (has_names && message_decode_string(decoder, &names[i]) != 0)
			return -1;
		size = (int32_t)notation_u32(reader);
		if (size >= 0) {
			array[i].value = notation_take(reader, (size_t)size);
			array[i].is_unset = false;
		} else if (message_decode_absent(decoder, size, &array[i]) != 0) {
			return -1;
		}
	}
	if (reader->is_failed)
		return message_truncated(decoder, "a value");
	values->count = count;
	values->values = array;
	values->names = names;
	return 0;
}

static int
message_decode_consistency(struct message_decoder *decoder, enum consistency *out)
{
	uint16_t code = notation_u16(&decoder->reader);

	if (decoder->reader.is_failed)
		return message_truncated(decoder, "the consistency level");
	if (!consistency_is_known(code))
		return error_set(
		    decoder->err, ERROR_PROTOCOL, "Unknown code %u for a consistency level", code);
	*out = (enum consistency)code;
	return 0;
}

/* The optional parts after the page size, which most requests do not have. */
static int
message_decode_rare_options(
    struct message_decoder *decoder, uint32_t flags, struct query_options *options)
{
	struct reader *reader = &decoder->reader;

	if ((flags & QUERY_FLAG_PAGING_STATE) != 0)
		options->paging_state = notation_bytes(reader);
	if ((flags & QUERY_FLAG_SERIAL_CONSISTENCY) != 0 &&
	    message_decode_consistency(decoder, &options->serial_consistency) != 0)
		return -1;
	if ((flags & QUERY_FLAG_TIMESTAMP) != 0) {
		options->timestamp = (int64_t)notation_u64(reader);
		options->has_timestamp = true;
		if (options->timestamp == INT64_MIN)
			return error_set(decoder->err, ERROR_PROTOCOL,
			    "Out of bound timestamp, must be in [%" PRId64 ", %" PRId64
			    "] (got %" PRId64 ")",
			    INT64_MIN + 1, INT64_MAX, INT64_MIN);
	}
	/* Version 4 has room for this bit too, and Cassandra honours it there. */
	if ((flags & QUERY_FLAG_KEYSPACE) != 0 &&
	    message_decode_string(decoder, &options->keyspace) != 0)
		return -1;
	if ((flags & QUERY_FLAG_NOW_IN_SECONDS) != 0) {
		options->now_in_seconds = (int32_t)notation_u32(reader);
		options->has_now_in_seconds = true;
	}
	return 0;
}

/* <consistency><flags>[values][page size][paging state]... */
static int
message_decode_options(struct message_decoder *decoder, struct query_options *options)
{
	struct reader *reader = &decoder->reader;
	uint32_t flags;

	*options = (struct query_options){
	    .serial_consistency = CONSISTENCY_SERIAL,
	    .page_size = -1,
	};
	if (message_decode_consistency(decoder, &options->consistency) != 0)
		return -1;
	flags = decoder->version >= 5 ? notation_u32(reader) : notation_u8(reader);
	options->skip_metadata = (flags & QUERY_FLAG_SKIP_METADATA) != 0;
	if ((flags & QUERY_FLAG_VALUES) != 0 &&
	    message_decode_values(decoder, (flags & QUERY_FLAG_NAMES) != 0, &options->values) != 0)
		return -1;
	if ((flags & QUERY_FLAG_PAGE_SIZE) != 0) {
		options->page_size = (int32_t)notation_u32(reader);
		if (options->page_size == 0 && !reader->is_failed)
			return error_set(decoder->err, ERROR_PROTOCOL, "The page size cannot be 0");
	}
	if (flags > QUERY_FLAG_PAGE_SIZE * 2 - 1 &&
	    message_decode_rare_options(decoder, flags, options) != 0)
		return -1;
	if (reader->is_failed)
		return message_truncated(decoder, "the query options");
	return 0;
}

static int
message_decode_startup(struct message_decoder *decoder, struct request_startup *startup)
{
	uint32_t count = notation_u16(&decoder->reader);

	if (decoder->reader.is_failed || reader_left(&decoder->reader) < (size_t)count * 4)
		return message_truncated(decoder, "the options");
	startup->options = arena_calloc(decoder->arena, count, sizeof(*startup->options));
	if (startup->options == NULL)
		return message_no_memory(decoder);
	for (uint32_t i = 0; i < count; i++) {
		if (message_decode_string(decoder, &startup->options[i].name) != 0 ||
		    message_decode_string(decoder, &startup->options[i].value) != 0)
			return -1;
	}
	startup->count = count;
	return 0;
}

static int
message_decode_query(struct message_decoder *decoder, struct request_query *query)
{
	if (message_decode_text(decoder, &query->query) != 0)
		return -1;
	return message_decode_options(decoder, &query->options);
}

static int
message_decode_prepare(struct message_decoder *decoder, struct request_prepare *prepare)
{
	uint32_t flags;

	prepare->keyspace = slice_null;
	if (message_decode_text(decoder, &prepare->query) != 0)
		return -1;
	if (decoder->version < 5)
		return 0;
	flags = notation_u32(&decoder->reader);
	if (decoder->reader.is_failed)
		return message_truncated(decoder, "the flags of PREPARE");
	if ((flags & PREPARE_FLAG_KEYSPACE) != 0)
		return message_decode_string(decoder, &prepare->keyspace);
	return 0;
}

static int
message_decode_execute(struct message_decoder *decoder, struct request_execute *execute)
{
	execute->result_metadata_id = slice_null;
	if (message_decode_id(decoder, &execute->id) != 0)
		return -1;
	if (decoder->version >= 5 && message_decode_id(decoder, &execute->result_metadata_id) != 0)
		return -1;
	return message_decode_options(decoder, &execute->options);
}

static int
message_decode_batch_entry(struct message_decoder *decoder, struct batch_entry *entry)
{
	uint8_t kind = notation_u8(&decoder->reader);
	int rc;

	if (decoder->reader.is_failed)
		return message_truncated(decoder, "a statement of the batch");
	if (kind > 1)
		return error_set(decoder->err, ERROR_PROTOCOL,
		    "Invalid query kind in BATCH messages. Must be 0 or 1 but got %u", kind);
	entry->is_prepared = kind == 1;
	rc = kind == 1 ? message_decode_id(decoder, &entry->query_or_id)
		       : message_decode_text(decoder, &entry->query_or_id);
	if (rc != 0)
		return -1;
	/* The flag that says "with names" comes after the values: CASSANDRA-10246. */
	return message_decode_values(decoder, false, &entry->values);
}

static int
message_decode_batch(struct message_decoder *decoder, struct request_batch *batch)
{
	uint8_t type = notation_u8(&decoder->reader);
	uint32_t count = notation_u16(&decoder->reader);

	/* The smallest entry: kind, id without bytes, no values. */
	if (decoder->reader.is_failed || reader_left(&decoder->reader) < (size_t)count * 5)
		return message_truncated(decoder, "the statements of the batch");
	if (type > BATCH_COUNTER)
		return error_set(
		    decoder->err, ERROR_PROTOCOL, "Invalid BATCH message type %u", type);
	batch->type = (enum batch_type)type;
	batch->count = count;
	batch->entries = arena_alloc(decoder->arena, count * sizeof(*batch->entries));
	if (batch->entries == NULL)
		return message_no_memory(decoder);
	for (uint32_t i = 0; i < count; i++) {
		if (message_decode_batch_entry(decoder, &batch->entries[i]) != 0)
			return -1;
	}
	return message_decode_options(decoder, &batch->options);
}

static int
message_decode_register(struct message_decoder *decoder, struct request_register *out)
{
	static const struct {
		const char *name;
		unsigned event;
	} known[] = {
	    {"TOPOLOGY_CHANGE", REGISTER_TOPOLOGY_CHANGE},
	    {"STATUS_CHANGE", REGISTER_STATUS_CHANGE},
	    {"SCHEMA_CHANGE", REGISTER_SCHEMA_CHANGE},
	};
	uint32_t count = notation_u16(&decoder->reader);

	if (decoder->reader.is_failed)
		return message_truncated(decoder, "the events");
	out->events = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct slice name;
		unsigned event = 0;

		if (message_decode_string(decoder, &name) != 0)
			return -1;
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
			if (strlen(known[k].name) == name.size &&
			    strncasecmp(known[k].name, (const char *)name.data, name.size) == 0)
				event = known[k].event;
		}
		if (event == 0)
			return error_set(decoder->err, ERROR_PROTOCOL,
			    "Invalid value '%.*s' for Type", name.size > 64 ? 64 : (int)name.size,
			    (const char *)name.data);
		out->events |= event;
	}
	return 0;
}

static int
message_decode_auth_response(
    struct message_decoder *decoder, struct request_auth_response *auth_response)
{
	auth_response->token = notation_bytes(&decoder->reader);
	if (decoder->reader.is_failed)
		return message_truncated(decoder, "the token");
	return 0;
}

static int
message_decode_payload(struct message_decoder *decoder, struct client_message *out)
{
	out->custom_payload = notation_bytes_map(&decoder->reader);
	if (decoder->reader.is_failed)
		return message_truncated(decoder, "the custom payload");
	if (decoder->version < 4)
		return error_set(decoder->err, ERROR_PROTOCOL,
		    "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4");
	return 0;
}

int
message_decode_request(const struct envelope *envelope, struct arena *arena,
    struct client_message *out, struct error *err)
{
	const struct envelope_header *header = &envelope->header;
	struct message_decoder decoder = {
	    .reader = reader_of(envelope->body),
	    .arena = arena,
	    .err = err,
	    .version = header->version,
	};

	out->version = header->version;
	out->opcode = header->opcode;
	out->stream = header->stream;
	out->is_traced = (header->flags & ENVELOPE_TRACING) != 0;
	out->custom_payload = slice_null;
	if ((header->flags & ENVELOPE_CUSTOM_PAYLOAD) != 0 &&
	    message_decode_payload(&decoder, out) != 0)
		return -1;
	switch (header->opcode) {
	case OPCODE_EXECUTE:
		return message_decode_execute(&decoder, &out->execute);
	case OPCODE_QUERY:
		return message_decode_query(&decoder, &out->query);
	case OPCODE_BATCH:
		return message_decode_batch(&decoder, &out->batch);
	case OPCODE_PREPARE:
		return message_decode_prepare(&decoder, &out->prepare);
	case OPCODE_STARTUP:
		return message_decode_startup(&decoder, &out->startup);
	case OPCODE_REGISTER:
		return message_decode_register(&decoder, &out->register_);
	case OPCODE_AUTH_RESPONSE:
		return message_decode_auth_response(&decoder, &out->auth_response);
	case OPCODE_OPTIONS:
		return 0;
	default:
		return error_set(err, ERROR_PROTOCOL, "Unsupported message");
	}
}

/* A reader at the message proper; failed when it cannot be reached without decompression. */
static struct reader
message_peek(const struct envelope *envelope)
{
	const struct envelope_header *header = &envelope->header;
	struct reader reader = reader_of(envelope->body);

	if (header->version < 5 && (header->flags & ENVELOPE_COMPRESSED) != 0)
		reader.is_failed = true;
	else if ((header->flags & ENVELOPE_CUSTOM_PAYLOAD) != 0)
		notation_bytes_map(&reader);
	return reader;
}

struct slice
message_peek_prepared_id(const struct envelope *envelope)
{
	struct reader reader = message_peek(envelope);
	struct slice id;

	if (envelope->header.opcode != OPCODE_EXECUTE || reader.is_failed)
		return slice_null;
	id = notation_string(&reader);
	return reader.is_failed ? slice_null : id;
}

struct slice
message_peek_value(const struct envelope *envelope, uint32_t index)
{
	struct reader reader = message_peek(envelope);
	struct slice value = slice_null;
	uint32_t flags;

	if (envelope->header.opcode != OPCODE_EXECUTE || reader.is_failed)
		return slice_null;
	notation_string(&reader);
	if (envelope->header.version >= 5)
		notation_string(&reader);
	notation_u16(&reader);
	flags = envelope->header.version >= 5 ? notation_u32(&reader) : notation_u8(&reader);
	if ((flags & QUERY_FLAG_VALUES) == 0 || (flags & QUERY_FLAG_NAMES) != 0 ||
	    notation_u16(&reader) <= index)
		return slice_null;
	for (uint32_t i = 0; i <= index; i++)
		value = notation_bytes(&reader);
	return reader.is_failed ? slice_null : value;
}

struct slice
message_peek_query(const struct envelope *envelope)
{
	struct reader reader = message_peek(envelope);
	struct slice text;

	if ((envelope->header.opcode != OPCODE_QUERY &&
		envelope->header.opcode != OPCODE_PREPARE) ||
	    reader.is_failed)
		return slice_null;
	text = notation_bytes(&reader);
	return reader.is_failed ? slice_null : text;
}

struct slice
message_startup_option(const struct request_startup *startup, const char *name)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; i < startup->count; i++) {
		struct slice known = startup->options[i].name;

		if (known.size == size && strncasecmp((const char *)known.data, name, size) == 0)
			return startup->options[i].value;
	}
	return slice_null;
}

bool
message_payload_next(
    struct slice custom_payload, size_t *cursor, struct slice *name, struct slice *value)
{
	struct reader reader;

	if (slice_is_null(custom_payload))
		return false;
	if (*cursor == 0)
		*cursor = 2; /* after the count */
	if (*cursor >= custom_payload.size)
		return false;
	reader = reader_of(slice_of(custom_payload.data + *cursor, custom_payload.size - *cursor));
	*name = notation_string(&reader);
	*value = notation_bytes(&reader);
	*cursor = custom_payload.size - reader_left(&reader);
	return !reader.is_failed;
}
