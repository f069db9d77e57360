/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/response.h"

static uint8_t
response_prefix_flags(const struct response *response, const struct response_prefix *prefix)
{
	uint8_t flags = 0;

	if (prefix == NULL)
		return 0;
	if (prefix->tracing_id != NULL)
		flags |= ENVELOPE_TRACING;
	/* A v3 client would take them for the message. */
	if (response->version >= 4 && prefix->warning_count > 0)
		flags |= ENVELOPE_WARNING;
	if (response->version >= 4 && !slice_is_null(prefix->custom_payload))
		flags |= ENVELOPE_CUSTOM_PAYLOAD;
	return flags;
}

static void
response_put_prefix(struct buffer *buffer, uint8_t flags, const struct response_prefix *prefix)
{
	if ((flags & ENVELOPE_TRACING) != 0)
		buffer_put(buffer, prefix->tracing_id, 16);
	if ((flags & ENVELOPE_WARNING) != 0) {
		uint32_t count =
		    prefix->warning_count > UINT16_MAX ? UINT16_MAX : prefix->warning_count;

		buffer_put_u16(buffer, (uint16_t)count);
		for (uint32_t i = 0; i < count; i++)
			response_put_string(buffer, prefix->warnings[i]);
	}
	if ((flags & ENVELOPE_CUSTOM_PAYLOAD) != 0)
		buffer_put_slice(buffer, prefix->custom_payload);
}

struct response
response_begin(struct buffer *buffer, uint8_t version, int16_t stream, enum opcode opcode,
    uint8_t flags, const struct response_prefix *prefix)
{
	struct response response = {.buffer = buffer, .start = buffer->size, .version = version};
	uint8_t prefix_flags = response_prefix_flags(&response, prefix);
	struct envelope_header header = {
	    .version = version,
	    .is_response = true,
	    .flags = flags | prefix_flags,
	    .opcode = (uint8_t)opcode,
	    .stream = stream,
	};
	uint8_t *at;

	if (version == PROTOCOL_VERSION_BETA)
		header.flags |= ENVELOPE_USE_BETA;
	at = buffer_append(buffer, envelope_header_size(version));
	if (at != NULL)
		envelope_store_header(at, &header);
	if (prefix_flags != 0)
		response_put_prefix(buffer, prefix_flags, prefix);
	response.body = buffer->size;
	return response;
}

void
response_insert_prefix(struct response *response, const struct response_prefix *prefix)
{
	struct buffer *buffer = response->buffer;
	uint8_t flags = response_prefix_flags(response, prefix);
	struct buffer extra;

	if (flags == 0)
		return;
	buffer_init(&extra);
	response_put_prefix(&extra, flags, prefix);
	if (extra.is_failed)
		buffer->is_failed = true;
	if (buffer_reserve(buffer, extra.size)) {
		uint8_t *body = buffer->data + response->body;

		memmove(body + extra.size, body, buffer->size - response->body);
		memcpy(body, extra.data, extra.size);
		buffer->size += extra.size;
		buffer->data[response->start + 1] |= flags;
		response->body += extra.size;
	}
	buffer_fini(&extra);
}

void
response_end(struct response *response, enum compression compression)
{
	struct buffer *buffer = response->buffer;
	size_t header_size = envelope_header_size(response->version);
	size_t body = response->start + header_size;

	if (buffer->is_failed)
		return;
	if (response->version < 5 && compression_close_body(compression, buffer, body))
		buffer->data[response->start + 1] |= ENVELOPE_COMPRESSED;
	buffer_patch_u32(buffer, body - 4, (uint32_t)(buffer->size - body));
}

void
response_abandon(struct response *response)
{
	if (!response->buffer->is_failed)
		response->buffer->size = response->start;
}

/* ---- notations ---- */

void
response_put_string(struct buffer *buffer, struct slice string)
{
	size_t size = string.size;

	if (size > UINT16_MAX) {
		size = UINT16_MAX;
		while (size > 0 && (string.data[size] & 0xC0) == 0x80)
			size--;
	}
	buffer_put_u16(buffer, (uint16_t)size);
	buffer_put(buffer, string.data, size);
}

void
response_put_long_string(struct buffer *buffer, struct slice string)
{
	buffer_put_u32(buffer, (uint32_t)string.size);
	buffer_put_slice(buffer, string);
}

void
response_put_bytes(struct buffer *buffer, struct slice bytes)
{
	response_put_cell(buffer, bytes);
}

void
response_put_short_bytes(struct buffer *buffer, struct slice bytes)
{
	buffer_put_u16(buffer, (uint16_t)bytes.size);
	buffer_put_slice(buffer, bytes);
}

void
response_put_inetaddr(struct buffer *buffer, const struct inet_address *address)
{
	buffer_put_u8(buffer, address->size);
	buffer_put(buffer, address->bytes, address->size);
}

void
response_put_inet(struct buffer *buffer, const struct inet_address *address)
{
	response_put_inetaddr(buffer, address);
	buffer_put_u32(buffer, address->port);
}

static void
response_put_text(struct buffer *buffer, const char *text)
{
	response_put_string(buffer, slice_of_string(text));
}

/* ---- the small bodies ---- */

void
response_put_authenticate(struct buffer *buffer, const char *authenticator_class)
{
	response_put_text(buffer, authenticator_class);
}

void
response_put_token(struct buffer *buffer, struct slice token)
{
	response_put_bytes(buffer, token);
}

void
response_put_supported(struct buffer *buffer, const char *cql_version, uint8_t version_max)
{
	static const char *const versions[] = {"3/v3", "4/v4", "5/v5", "6/v6-beta"};
	uint16_t count = (uint16_t)(version_max - PROTOCOL_VERSION_MIN + 1);

	buffer_put_u16(buffer, 3);
	response_put_text(buffer, "PROTOCOL_VERSIONS");
	buffer_put_u16(buffer, count);
	for (uint16_t i = 0; i < count; i++)
		response_put_text(buffer, versions[i]);
	/* Drivers index COMPRESSION without asking whether it is there (NP-18). */
	response_put_text(buffer, "COMPRESSION");
	buffer_put_u16(buffer, 2);
	response_put_text(buffer, compression_name(COMPRESSION_SNAPPY));
	response_put_text(buffer, compression_name(COMPRESSION_LZ4));
	response_put_text(buffer, "CQL_VERSION");
	buffer_put_u16(buffer, 1);
	response_put_text(buffer, cql_version);
}
