/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/gossip_wire.h"

#include <assert.h>
#include <stdlib.h>
#include "cql/type.h"

enum {
	DIGEST_SIZE_MIN = 1 + 4 + 2 + 1 + 1, /* an IPv4 endpoint and two short numbers */
	DELTA_SIZE_MIN = 1 + 4 + 2 + 1 + 1 + 1,
};

/* ---- Encoding ---- */

void
gossip_put_head(struct buffer *out, uint8_t flags)
{
	buffer_put_u8(out, GOSSIP_FORMAT);
	buffer_put_u8(out, flags);
}

void
gossip_put_name(struct buffer *out, const char *name)
{
	size_t size = strlen(name);

	buffer_put_vint(out, size);
	buffer_put(out, name, size);
}

size_t
gossip_list_begin(struct buffer *out)
{
	size_t offset = out->size;

	buffer_put_u32(out, 0);
	return offset;
}

void
gossip_list_end(struct buffer *out, size_t offset, uint32_t count)
{
	if (!out->is_failed)
		buffer_patch_u32(out, offset, count);
}

static void
gossip_put_endpoint(struct buffer *out, const struct endpoint *endpoint)
{
	uint8_t wire[ENDPOINT_WIRE_MAX];

	buffer_put(out, wire, endpoint_encode(endpoint, wire));
}

void
gossip_put_digest(
    struct buffer *out, const struct endpoint *endpoint, int32_t generation, int32_t version)
{
	gossip_put_endpoint(out, endpoint);
	buffer_put_vint(out, (uint64_t)generation);
	buffer_put_vint(out, (uint64_t)version);
}

void
gossip_put_delta(struct buffer *out, const struct endpoint *endpoint, int32_t generation,
    int32_t heartbeat, uint8_t value_count)
{
	gossip_put_endpoint(out, endpoint);
	buffer_put_vint(out, (uint64_t)generation);
	buffer_put_vint(out, (uint64_t)heartbeat);
	buffer_put_u8(out, value_count);
}

void
gossip_put_value(
    struct buffer *out, enum application_state state, int32_t version, struct slice value)
{
	buffer_put_u8(out, (uint8_t)state);
	buffer_put_vint(out, (uint64_t)version);
	buffer_put_vint(out, value.size);
	buffer_put_slice(out, value);
}

/* ---- Decoding ---- */

static bool
gossip_is_text(struct slice value)
{
	static const struct type text = {.kind = TYPE_TEXT};

	return type_validate(&text, value, NULL) == 0;
}

static void
gossip_read_endpoint(struct reader *reader, struct endpoint *out)
{
	size_t size = 0;

	if (!reader->is_failed)
		size = endpoint_decode(reader->at, reader_left(reader), out);
	if (size == 0) {
		memset(out, 0, sizeof(*out));
		reader->is_failed = true;
		return;
	}
	reader_skip(reader, size);
}

/* A generation or version: anything that does not fit an int32 fails the reader. */
static int32_t
gossip_read_number(struct reader *reader)
{
	uint64_t value = reader_vint(reader);

	if (value > INT32_MAX)
		reader->is_failed = true;
	return reader->is_failed ? 0 : (int32_t)value;
}

void
gossip_digest_next(struct reader *digests, struct gossip_digest *out)
{
	gossip_read_endpoint(digests, &out->endpoint);
	out->generation = gossip_read_number(digests);
	out->version = gossip_read_number(digests);
}

static void
gossip_delta_add(
    struct gossip_delta *delta, enum application_state state, int32_t version, struct slice value)
{
	for (uint32_t i = 0; i < delta->count; i++) {
		if (delta->values[i].state != state)
			continue;
		if (delta->values[i].version < version)
			delta->values[i] = (struct gossip_delta_value){state, version, value};
		return;
	}
	assert(delta->count < STATE_COUNT);
	delta->values[delta->count++] = (struct gossip_delta_value){state, version, value};
}

void
gossip_delta_next(struct reader *deltas, struct gossip_delta *out)
{
	uint8_t count;

	gossip_read_endpoint(deltas, &out->endpoint);
	out->generation = gossip_read_number(deltas);
	out->heartbeat = gossip_read_number(deltas);
	out->count = 0;
	count = reader_u8(deltas);
	for (uint8_t i = 0; i < count && !deltas->is_failed; i++) {
		uint8_t state = reader_u8(deltas);
		int32_t version = gossip_read_number(deltas);
		uint64_t size = reader_vint(deltas);
		struct slice value;

		if (size > GOSSIP_VALUE_MAX)
			deltas->is_failed = true;
		value = reader_bytes(deltas, (size_t)size);
		if (!deltas->is_failed && state < STATE_COUNT)
			gossip_delta_add(out, (enum application_state)state, version, value);
	}
}

/* Values end up in tables, logs and terminals: text without control characters, tokens that can be read. */
static int
gossip_check_value(const struct gossip_delta_value *value, struct error *err)
{
	int64_t *tokens;
	uint32_t count;

	if (value->state == STATE_TOKENS) {
		if (tokens_decode(value->value, &tokens, &count, err) != 0)
			return -1;
		free(tokens);
		return 0;
	}
	for (size_t i = 0; i < value->value.size; i++) {
		if (value->value.data[i] < 0x20 || value->value.data[i] == 0x7f)
			return error_set(err, ERROR_INVALID, "%s holds a control character",
			    application_state_name(value->state));
	}
	if (!gossip_is_text(value->value))
		return error_set(
		    err, ERROR_INVALID, "%s is not UTF-8", application_state_name(value->state));
	return 0;
}

static int
gossip_check_endpoint(const struct endpoint *endpoint, struct error *err)
{
	static const uint8_t nowhere[16];
	char text[ENDPOINT_TEXT_SIZE];

	if (endpoint->port != 0 && memcmp(endpoint->address, nowhere, sizeof(nowhere)) != 0)
		return 0;
	return error_set(
	    err, ERROR_INVALID, "no node can be at %s", endpoint_format(endpoint, text));
}

static int
gossip_check_digests(struct reader *reader, struct gossip_message *out, struct error *err)
{
	struct gossip_digest digest;

	out->digest_count = reader_u32(reader);
	if (out->digest_count > reader_left(reader) / DIGEST_SIZE_MIN)
		return error_set(err, ERROR_INVALID, "more digests than bytes");
	out->digests = *reader;
	for (uint32_t i = 0; i < out->digest_count; i++) {
		gossip_digest_next(reader, &digest);
		if (reader->is_failed)
			return error_set(err, ERROR_INVALID, "digest %u is not readable", i);
		if (gossip_check_endpoint(&digest.endpoint, err) != 0)
			return -1;
	}
	return 0;
}

static int
gossip_check_deltas(struct reader *reader, struct gossip_message *out, struct error *err)
{
	struct gossip_delta delta;

	out->delta_count = reader_u32(reader);
	if (out->delta_count > reader_left(reader) / DELTA_SIZE_MIN)
		return error_set(err, ERROR_INVALID, "more states than bytes");
	out->deltas = *reader;
	for (uint32_t i = 0; i < out->delta_count; i++) {
		gossip_delta_next(reader, &delta);
		if (reader->is_failed)
			return error_set(err, ERROR_INVALID, "state %u is not readable", i);
		if (gossip_check_endpoint(&delta.endpoint, err) != 0)
			return -1;
		for (uint32_t v = 0; v < delta.count; v++) {
			if (gossip_check_value(&delta.values[v], err) != 0)
				return -1;
		}
	}
	return 0;
}

static int
gossip_read_head(struct reader *reader, struct gossip_message *out, struct error *err)
{
	uint8_t format = reader_u8(reader);

	memset(out, 0, sizeof(*out));
	out->flags = reader_u8(reader);
	if (reader->is_failed)
		return error_set(err, ERROR_INVALID, "too short");
	if (format != GOSSIP_FORMAT)
		return error_set(err, ERROR_INVALID, "format %u is not known", format);
	return 0;
}

static int
gossip_read_name(struct reader *reader, struct slice *out, struct error *err)
{
	uint64_t size = reader_vint(reader);

	if (size > GOSSIP_NAME_MAX)
		reader->is_failed = true;
	*out = reader_bytes(reader, (size_t)size);
	if (reader->is_failed || !gossip_is_text(*out))
		return error_set(err, ERROR_INVALID, "a name is not readable");
	return 0;
}

static int
gossip_read_end(const struct reader *reader, struct error *err)
{
	if (reader->is_failed)
		return error_set(err, ERROR_INVALID, "too short");
	if (reader_left(reader) > 0)
		return error_set(
		    err, ERROR_INVALID, "%zu bytes behind the end", reader_left(reader));
	return 0;
}

int
gossip_syn_decode(struct slice payload, struct gossip_message *out, struct error *err)
{
	struct reader reader = reader_of(payload);

	if (gossip_read_head(&reader, out, err) != 0 ||
	    gossip_read_name(&reader, &out->cluster_name, err) != 0 ||
	    gossip_read_name(&reader, &out->partitioner, err) != 0 ||
	    gossip_check_digests(&reader, out, err) != 0)
		return -1;
	return gossip_read_end(&reader, err);
}

int
gossip_ack_decode(struct slice payload, struct gossip_message *out, struct error *err)
{
	struct reader reader = reader_of(payload);

	if (gossip_read_head(&reader, out, err) != 0 ||
	    gossip_check_digests(&reader, out, err) != 0 ||
	    gossip_check_deltas(&reader, out, err) != 0)
		return -1;
	return gossip_read_end(&reader, err);
}

int
gossip_ack2_decode(struct slice payload, struct gossip_message *out, struct error *err)
{
	struct reader reader = reader_of(payload);

	if (gossip_read_head(&reader, out, err) != 0 || gossip_check_deltas(&reader, out, err) != 0)
		return -1;
	return gossip_read_end(&reader, err);
}
