/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_request.h"

#include "cql/value.h"

enum { STRESS_PAGE_SIZE = 5000 };

size_t
stress_request_open(struct buffer *out, uint8_t version, int16_t stream, enum opcode opcode)
{
	struct envelope_header header = {.version = version, .opcode = opcode, .stream = stream};
	size_t start = out->size;
	uint8_t *at = buffer_append(out, ENVELOPE_HEADER_SIZE);

	if (at != NULL)
		envelope_store_header(at, &header);
	return start;
}

void
stress_request_close(struct buffer *out, size_t start)
{
	if (!out->is_failed)
		buffer_patch_u32(
		    out, start + 5, (uint32_t)(out->size - start - ENVELOPE_HEADER_SIZE));
}

void
stress_request_put_options(struct buffer *out, size_t start, uint8_t version,
    const struct stress_statement *statement, const struct slice *values, uint32_t count,
    int64_t timestamp, struct stress_request *request)
{
	uint32_t flags = count > 0 ? QUERY_FLAG_VALUES : 0;

	if (!statement->is_write)
		flags |= QUERY_FLAG_PAGE_SIZE | QUERY_FLAG_SKIP_METADATA;
	if (statement->serial_consistency != CONSISTENCY_SERIAL)
		flags |= QUERY_FLAG_SERIAL_CONSISTENCY;
	if (statement->is_write)
		flags |= QUERY_FLAG_TIMESTAMP;
	buffer_put_u16(out, (uint16_t)statement->consistency);
	request->flags_at = (uint32_t)(out->size - start);
	if (version >= 5)
		buffer_put_u32(out, flags);
	else
		buffer_put_u8(out, (uint8_t)flags);
	if (count > 0)
		buffer_put_u16(out, (uint16_t)count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = slice_is_null(values[i]) ? UINT32_MAX : (uint32_t)values[i].size;
		uint8_t *at = buffer_append(out, 4 + values[i].size);

		if (at == NULL)
			return;
		store_u32(at, size);
		if (values[i].size > 0)
			memcpy(at + 4, values[i].data, values[i].size);
	}
	request->page_at = 0;
	if (!statement->is_write) {
		buffer_put_u32(out, STRESS_PAGE_SIZE);
		request->page_at = (uint32_t)(out->size - start);
	}
	if ((flags & QUERY_FLAG_SERIAL_CONSISTENCY) != 0)
		buffer_put_u16(out, (uint16_t)statement->serial_consistency);
	if ((flags & QUERY_FLAG_TIMESTAMP) != 0)
		buffer_put_u64(out, (uint64_t)timestamp);
}

void
stress_request_put_short_bytes(struct buffer *out, struct slice bytes)
{
	buffer_put_u16(out, (uint16_t)bytes.size);
	buffer_put_slice(out, bytes);
}

void
stress_request_put_text(
    struct buffer *out, const struct stress_statement *statement, const struct slice *values)
{
	size_t size_at = out->size;
	uint32_t marker = 0;
	bool is_quoted = false;

	buffer_put_u32(out, 0);
	for (const char *c = statement->query; *c != '\0'; c++) {
		if (*c == '\'')
			is_quoted = !is_quoted;
		if (*c == '?' && !is_quoted && marker < statement->marker_count) {
			/* Cassandra prints addresses without the quotes that it reads them with. */
			bool quotes = statement->markers[marker].type->kind == TYPE_INET;

			buffer_put_string(out, quotes ? "'" : "");
			value_to_literal(statement->markers[marker].type, values[marker], out);
			buffer_put_string(out, quotes ? "'" : "");
			marker++;
		} else {
			buffer_put_u8(out, (uint8_t)*c);
		}
	}
	if (!out->is_failed)
		buffer_patch_u32(out, size_at, (uint32_t)(out->size - size_at - 4));
}

void
stress_request_put(struct buffer *out, uint8_t version, int16_t stream,
    const struct stress_statement *statement, const struct slice *values, int64_t timestamp,
    struct stress_request *request)
{
	size_t start;

	request->statement = statement;
	if (!statement->is_prepared) {
		start = stress_request_open(out, version, stream, OPCODE_QUERY);
		stress_request_put_text(out, statement, values);
		stress_request_put_options(
		    out, start, version, statement, NULL, 0, timestamp, request);
		stress_request_close(out, start);
		return;
	}
	start = stress_request_open(out, version, stream, OPCODE_EXECUTE);
	stress_request_put_short_bytes(out, statement->id);
	if (version >= 5)
		stress_request_put_short_bytes(out, statement->result_metadata_id);
	stress_request_put_options(
	    out, start, version, statement, values, statement->marker_count, timestamp, request);
	stress_request_close(out, start);
}

void
stress_request_put_page(const struct stress_request *request, struct slice envelope,
    uint8_t version, struct slice paging_state, struct buffer *out)
{
	size_t start = out->size, flags_at = start + request->flags_at;

	buffer_put(out, envelope.data, request->page_at);
	buffer_put_u32(out, (uint32_t)paging_state.size);
	buffer_put_slice(out, paging_state);
	buffer_put(out, envelope.data + request->page_at, envelope.size - request->page_at);
	if (out->is_failed)
		return;
	/* The flag lies in the last byte, however wide they are. */
	out->data[flags_at + (version >= 5 ? 3 : 0)] |= QUERY_FLAG_PAGING_STATE;
	stress_request_close(out, start);
}
