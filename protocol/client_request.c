/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/client.h"

struct query_options
client_query_options(enum consistency consistency)
{
	return (struct query_options){
	    .consistency = consistency,
	    .serial_consistency = CONSISTENCY_SERIAL,
	    .page_size = -1,
	};
}

void
client_put_plain_token(struct buffer *buffer, const char *user, const char *password)
{
	buffer_put_u8(buffer, 0);
	buffer_put_string(buffer, user);
	buffer_put_u8(buffer, 0);
	buffer_put_string(buffer, password);
}

static void
client_put_text(struct buffer *buffer, const char *text)
{
	response_put_string(buffer, slice_of_string(text));
}

static int
client_put_value(
    struct buffer *buffer, uint8_t version, const struct bound_value *value, struct error *err)
{
	if (!value->is_unset) {
		response_put_bytes(buffer, value->value);
		return 0;
	}
	if (version < 4)
		return error_set(err, ERROR_PROTOCOL, "Protocol v%u has no unset values", version);
	buffer_put_u32(buffer, (uint32_t)-2);
	return 0;
}

static int
client_put_values(struct buffer *buffer, uint8_t version, const struct bound_values *values,
    bool with_names, struct error *err)
{
	if (values->count > UINT16_MAX)
		return error_set(err, ERROR_PROTOCOL, "Too many values: %u", values->count);
	buffer_put_u16(buffer, (uint16_t)values->count);
	for (uint32_t i = 0; i < values->count; i++) {
		if (with_names)
			response_put_string(buffer, values->names[i]);
		if (client_put_value(buffer, version, &values->values[i], err) != 0)
			return -1;
	}
	return 0;
}

static uint32_t
client_option_flags(const struct query_options *options)
{
	uint32_t flags = 0;

	if (options->values.count > 0)
		flags |= QUERY_FLAG_VALUES;
	if (options->values.count > 0 && options->values.names != NULL)
		flags |= QUERY_FLAG_NAMES;
	if (options->skip_metadata)
		flags |= QUERY_FLAG_SKIP_METADATA;
	if (options->page_size > 0)
		flags |= QUERY_FLAG_PAGE_SIZE;
	if (!slice_is_null(options->paging_state))
		flags |= QUERY_FLAG_PAGING_STATE;
	if (options->serial_consistency != CONSISTENCY_SERIAL)
		flags |= QUERY_FLAG_SERIAL_CONSISTENCY;
	if (options->has_timestamp)
		flags |= QUERY_FLAG_TIMESTAMP;
	if (!slice_is_null(options->keyspace))
		flags |= QUERY_FLAG_KEYSPACE;
	if (options->has_now_in_seconds)
		flags |= QUERY_FLAG_NOW_IN_SECONDS;
	return flags;
}

static int
client_put_options(
    struct buffer *buffer, uint8_t version, const struct query_options *options, struct error *err)
{
	uint32_t flags = client_option_flags(options);

	if (version < 5 && (flags & (QUERY_FLAG_KEYSPACE | QUERY_FLAG_NOW_IN_SECONDS)) != 0)
		return error_set(err, ERROR_PROTOCOL,
		    "Protocol v%u has no keyspace or time of a request", version);
	buffer_put_u16(buffer, (uint16_t)options->consistency);
	if (version >= 5)
		buffer_put_u32(buffer, flags);
	else
		buffer_put_u8(buffer, (uint8_t)flags);
	if ((flags & QUERY_FLAG_VALUES) != 0 &&
	    client_put_values(
		buffer, version, &options->values, (flags & QUERY_FLAG_NAMES) != 0, err) != 0)
		return -1;
	if ((flags & QUERY_FLAG_PAGE_SIZE) != 0)
		buffer_put_u32(buffer, (uint32_t)options->page_size);
	if ((flags & QUERY_FLAG_PAGING_STATE) != 0)
		response_put_bytes(buffer, options->paging_state);
	if ((flags & QUERY_FLAG_SERIAL_CONSISTENCY) != 0)
		buffer_put_u16(buffer, (uint16_t)options->serial_consistency);
	if ((flags & QUERY_FLAG_TIMESTAMP) != 0)
		buffer_put_u64(buffer, (uint64_t)options->timestamp);
	if ((flags & QUERY_FLAG_KEYSPACE) != 0)
		response_put_string(buffer, options->keyspace);
	if ((flags & QUERY_FLAG_NOW_IN_SECONDS) != 0)
		buffer_put_u32(buffer, (uint32_t)options->now_in_seconds);
	return 0;
}

static void
client_put_startup(struct buffer *buffer, const struct request_startup *startup)
{
	buffer_put_u16(buffer, (uint16_t)startup->count);
	for (uint32_t i = 0; i < startup->count; i++) {
		response_put_string(buffer, startup->options[i].name);
		response_put_string(buffer, startup->options[i].value);
	}
}

static int
client_put_prepare(struct buffer *buffer, uint8_t version, const struct request_prepare *prepare,
    struct error *err)
{
	bool has_keyspace = !slice_is_null(prepare->keyspace);

	response_put_long_string(buffer, prepare->query);
	if (version < 5) {
		if (has_keyspace)
			return error_set(err, ERROR_PROTOCOL,
			    "Protocol v%u has no keyspace in PREPARE", version);
		return 0;
	}
	buffer_put_u32(buffer, has_keyspace ? PREPARE_FLAG_KEYSPACE : 0);
	if (has_keyspace)
		response_put_string(buffer, prepare->keyspace);
	return 0;
}

static int
client_put_execute(struct buffer *buffer, uint8_t version, const struct request_execute *execute,
    struct error *err)
{
	response_put_short_bytes(buffer, execute->id);
	if (version >= 5)
		response_put_short_bytes(buffer, execute->result_metadata_id);
	return client_put_options(buffer, version, &execute->options, err);
}

static int
client_put_batch(
    struct buffer *buffer, uint8_t version, const struct request_batch *batch, struct error *err)
{
	if (batch->count > UINT16_MAX)
		return error_set(err, ERROR_PROTOCOL, "Too many statements: %u", batch->count);
	buffer_put_u8(buffer, (uint8_t)batch->type);
	buffer_put_u16(buffer, (uint16_t)batch->count);
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct batch_entry *entry = &batch->entries[i];

		buffer_put_u8(buffer, entry->is_prepared);
		if (entry->is_prepared)
			response_put_short_bytes(buffer, entry->query_or_id);
		else
			response_put_long_string(buffer, entry->query_or_id);
		if (client_put_values(buffer, version, &entry->values, false, err) != 0)
			return -1;
	}
	return client_put_options(buffer, version, &batch->options, err);
}

static void
client_put_register(struct buffer *buffer, const struct request_register *request)
{
	static const struct {
		unsigned event;
		const char *name;
	} known[] = {
	    {REGISTER_TOPOLOGY_CHANGE, "TOPOLOGY_CHANGE"},
	    {REGISTER_STATUS_CHANGE, "STATUS_CHANGE"},
	    {REGISTER_SCHEMA_CHANGE, "SCHEMA_CHANGE"},
	};
	uint16_t count = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		count += (request->events & known[i].event) != 0;
	buffer_put_u16(buffer, count);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if ((request->events & known[i].event) != 0)
			client_put_text(buffer, known[i].name);
	}
}

static int
client_put_body(struct buffer *buffer, const struct client_message *request, struct error *err)
{
	uint8_t version = request->version;

	switch (request->opcode) {
	case OPCODE_EXECUTE:
		return client_put_execute(buffer, version, &request->execute, err);
	case OPCODE_QUERY:
		response_put_long_string(buffer, request->query.query);
		return client_put_options(buffer, version, &request->query.options, err);
	case OPCODE_BATCH:
		return client_put_batch(buffer, version, &request->batch, err);
	case OPCODE_PREPARE:
		return client_put_prepare(buffer, version, &request->prepare, err);
	case OPCODE_STARTUP:
		client_put_startup(buffer, &request->startup);
		return 0;
	case OPCODE_REGISTER:
		client_put_register(buffer, &request->register_);
		return 0;
	case OPCODE_AUTH_RESPONSE:
		response_put_bytes(buffer, request->auth_response.token);
		return 0;
	case OPCODE_OPTIONS:
		return 0;
	default:
		return error_set(
		    err, ERROR_PROTOCOL, "%s is no request", opcode_name(request->opcode));
	}
}

int
client_put_request(struct buffer *buffer, const struct client_message *request,
    enum compression compression, struct error *err)
{
	bool has_payload = request->version >= 4 && !slice_is_null(request->custom_payload);
	struct envelope_header header = {
	    .version = request->version,
	    .opcode = request->opcode,
	    .stream = request->stream,
	};
	size_t start = buffer->size;
	size_t body = start + ENVELOPE_HEADER_SIZE;

	if (request->is_traced)
		header.flags |= ENVELOPE_TRACING;
	if (has_payload)
		header.flags |= ENVELOPE_CUSTOM_PAYLOAD;
	if (request->version == PROTOCOL_VERSION_BETA)
		header.flags |= ENVELOPE_USE_BETA;
	(void)buffer_append(buffer, ENVELOPE_HEADER_SIZE);
	if (has_payload)
		buffer_put_slice(buffer, request->custom_payload);
	if (client_put_body(buffer, request, err) != 0 || buffer_check(buffer, err) != 0) {
		if (!buffer->is_failed)
			buffer->size = start;
		return -1;
	}
	/* STARTUP names the compression, so it cannot be compressed itself. */
	if (request->version < 5 && request->opcode != OPCODE_STARTUP &&
	    compression_close_body(compression, buffer, body))
		header.flags |= ENVELOPE_COMPRESSED;
	header.length = (uint32_t)(buffer->size - body);
	envelope_store_header(buffer->data + start, &header);
	return 0;
}
