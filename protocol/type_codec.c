/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/type_codec.h"

#include "cql/type.h"
#include "protocol/notation.h"
#include "protocol/response.h"

enum {
	TYPE_OPTION_CUSTOM = 0x00,
	TYPE_OPTION_LIST = 0x20,
	TYPE_OPTION_MAP = 0x21,
	TYPE_OPTION_SET = 0x22,
	TYPE_OPTION_UDT = 0x30,
	TYPE_OPTION_TUPLE = 0x31,
};

/* Option ids of the native types and the first version that knows them. */
static const struct type_option {
	uint16_t id;
	uint8_t version;
} type_options[TYPE_NATIVE_COUNT] = {
    [TYPE_ASCII] = {0x01, 3},
    [TYPE_BIGINT] = {0x02, 3},
    [TYPE_BLOB] = {0x03, 3},
    [TYPE_BOOLEAN] = {0x04, 3},
    [TYPE_COUNTER] = {0x05, 3},
    [TYPE_DECIMAL] = {0x06, 3},
    [TYPE_DOUBLE] = {0x07, 3},
    [TYPE_FLOAT] = {0x08, 3},
    [TYPE_INT] = {0x09, 3},
    [TYPE_TIMESTAMP] = {0x0B, 3},
    [TYPE_UUID] = {0x0C, 3},
    [TYPE_TEXT] = {0x0D, 3},
    [TYPE_VARINT] = {0x0E, 3},
    [TYPE_TIMEUUID] = {0x0F, 3},
    [TYPE_INET] = {0x10, 3},
    [TYPE_DATE] = {0x11, 4},
    [TYPE_TIME] = {0x12, 4},
    [TYPE_SMALLINT] = {0x13, 4},
    [TYPE_TINYINT] = {0x14, 4},
    [TYPE_DURATION] = {0x15, 5},
    [TYPE_EMPTY] = {0x00, UINT8_MAX}, /* always custom */
};

static void
type_codec_encode_custom(struct buffer *buffer, const struct type *type)
{
	size_t mark = buffer->size + 2;

	buffer_put_u16(buffer, TYPE_OPTION_CUSTOM);
	buffer_put_u16(buffer, 0);
	type_print_class(type, buffer);
	if (!buffer->is_failed)
		store_u16(buffer->data + mark, (uint16_t)(buffer->size - mark - 2));
}

static void
type_codec_encode_params(struct buffer *buffer, uint8_t version, const struct type *type)
{
	for (uint32_t i = 0; i < type->param_count; i++) {
		if (type->kind == TYPE_UDT)
			response_put_string(buffer, type->fields[i]);
		type_codec_encode(buffer, version, type->params[i]);
	}
}

void
type_codec_encode(struct buffer *buffer, uint8_t version, const struct type *type)
{
	switch (type->kind) {
	case TYPE_LIST:
		buffer_put_u16(buffer, TYPE_OPTION_LIST);
		break;
	case TYPE_SET:
		buffer_put_u16(buffer, TYPE_OPTION_SET);
		break;
	case TYPE_MAP:
		buffer_put_u16(buffer, TYPE_OPTION_MAP);
		break;
	case TYPE_TUPLE:
		buffer_put_u16(buffer, TYPE_OPTION_TUPLE);
		buffer_put_u16(buffer, (uint16_t)type->param_count);
		break;
	case TYPE_UDT:
		buffer_put_u16(buffer, TYPE_OPTION_UDT);
		response_put_string(buffer, type->keyspace);
		response_put_string(buffer, type->name);
		buffer_put_u16(buffer, (uint16_t)type->param_count);
		break;
	case TYPE_REVERSED:
		/* Order is the table's matter; a client sees the type below. */
		type_codec_encode(buffer, version, type->params[0]);
		return;
	case TYPE_VECTOR:
	case TYPE_COMPOSITE:
	case TYPE_CUSTOM:
		type_codec_encode_custom(buffer, type);
		return;
	default:
		if (version >= type_options[type->kind].version)
			buffer_put_u16(buffer, type_options[type->kind].id);
		else
			type_codec_encode_custom(buffer, type);
		return;
	}
	type_codec_encode_params(buffer, version, type);
}

/* ---- decoding ---- */

static int
type_codec_truncated(struct error *err)
{
	return error_set(err, ERROR_PROTOCOL, "Not enough bytes to read a column type");
}

static const struct type *
type_codec_native(uint16_t id)
{
	/* What v1 and v2 called text. */
	if (id == 0x0A)
		return type_native(TYPE_TEXT);
	for (int kind = 0; kind < TYPE_NATIVE_COUNT; kind++) {
		if (id != TYPE_OPTION_CUSTOM && type_options[kind].id == id)
			return type_native((enum type_kind)kind);
	}
	return NULL;
}

/* Types inside of an option: of a UDT each has its name in front. */
static uint32_t
type_codec_param_count(uint16_t id, struct reader *reader)
{
	switch (id) {
	case TYPE_OPTION_LIST:
	case TYPE_OPTION_SET:
		return 1;
	case TYPE_OPTION_MAP:
		return 2;
	case TYPE_OPTION_UDT:
	case TYPE_OPTION_TUPLE:
		return notation_u16(reader);
	default:
		return 0;
	}
}

static int
type_codec_skip_deep(struct reader *reader, int depth, struct error *err)
{
	uint16_t id = notation_u16(reader);
	uint32_t count;

	if (depth > TYPE_DEPTH_MAX)
		return error_set(err, ERROR_PROTOCOL, "Column type is nested too deep");
	if (id == TYPE_OPTION_CUSTOM)
		notation_string(reader);
	if (id == TYPE_OPTION_UDT) {
		notation_string(reader);
		notation_string(reader);
	}
	count = type_codec_param_count(id, reader);
	if (reader->is_failed)
		return type_codec_truncated(err);
	if (count == 0 && id >= TYPE_OPTION_LIST && id != TYPE_OPTION_UDT &&
	    id != TYPE_OPTION_TUPLE)
		return error_set(err, ERROR_PROTOCOL, "Unknown column type 0x%04x", id);
	for (uint32_t i = 0; i < count; i++) {
		if (id == TYPE_OPTION_UDT)
			notation_string(reader);
		if (type_codec_skip_deep(reader, depth + 1, err) != 0)
			return -1;
	}
	return 0;
}

int
type_codec_skip(struct reader *reader, struct error *err)
{
	return type_codec_skip_deep(reader, 0, err);
}

static int type_codec_decode_deep(struct reader *reader, struct arena *arena, int depth,
    const struct type **out, struct error *err);

/* An option with types inside. Collections are read as multi-cell, user types as frozen: the wire does
 * not tell, and values look the same. */
static int
type_codec_decode_params(struct reader *reader, uint16_t id, struct arena *arena, int depth,
    const struct type **out, struct error *err)
{
	struct slice keyspace = slice_empty, name = slice_empty;
	const struct type **params;
	struct slice *fields;
	uint32_t count;

	if (id == TYPE_OPTION_UDT) {
		keyspace = notation_string(reader);
		name = notation_string(reader);
	}
	count = type_codec_param_count(id, reader);
	/* Two bytes are the shortest type: a count that cannot be takes no memory. */
	if (reader->is_failed || reader_left(reader) < (size_t)count * 2)
		return type_codec_truncated(err);
	params = arena_calloc(arena, count, sizeof(*params));
	fields = arena_calloc(arena, count, sizeof(*fields));
	if (params == NULL || fields == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to read a column type");
	for (uint32_t i = 0; i < count; i++) {
		if (id == TYPE_OPTION_UDT)
			fields[i] = notation_string(reader);
		if (type_codec_decode_deep(reader, arena, depth + 1, &params[i], err) != 0)
			return -1;
	}
	switch (id) {
	case TYPE_OPTION_LIST:
		*out = type_list(arena, params[0], true);
		break;
	case TYPE_OPTION_SET:
		*out = type_set(arena, params[0], true);
		break;
	case TYPE_OPTION_MAP:
		*out = type_map(arena, params[0], params[1], true);
		break;
	case TYPE_OPTION_TUPLE:
		*out = type_tuple(arena, params, count);
		break;
	default:
		*out = type_udt(arena, keyspace, name, fields, params, count, false);
		break;
	}
	if (*out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to read a column type");
	return 0;
}

static int
type_codec_decode_custom(
    struct reader *reader, struct arena *arena, const struct type **out, struct error *err)
{
	struct slice class_name = notation_string(reader);
	struct error not_ours;

	if (reader->is_failed)
		return type_codec_truncated(err);
	/* A class that Cassandra itself does not have is still a type: of bytes. */
	if (type_parse_class(class_name, arena, out, &not_ours) == 0)
		return 0;
	*out = type_custom(arena, class_name);
	if (*out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "No memory to read a column type");
	return 0;
}

static int
type_codec_decode_deep(struct reader *reader, struct arena *arena, int depth,
    const struct type **out, struct error *err)
{
	uint16_t id = notation_u16(reader);

	if (reader->is_failed)
		return type_codec_truncated(err);
	if (depth > TYPE_DEPTH_MAX)
		return error_set(err, ERROR_PROTOCOL, "Column type is nested too deep");
	switch (id) {
	case TYPE_OPTION_CUSTOM:
		return type_codec_decode_custom(reader, arena, out, err);
	case TYPE_OPTION_LIST:
	case TYPE_OPTION_MAP:
	case TYPE_OPTION_SET:
	case TYPE_OPTION_UDT:
	case TYPE_OPTION_TUPLE:
		return type_codec_decode_params(reader, id, arena, depth, out, err);
	default:
		*out = type_codec_native(id);
		if (*out == NULL)
			return error_set(err, ERROR_PROTOCOL, "Unknown column type 0x%04x", id);
		return 0;
	}
}

int
type_codec_decode(
    struct slice option, struct arena *arena, const struct type **out, struct error *err)
{
	struct reader reader = reader_of(option);

	return type_codec_decode_deep(&reader, arena, 0, out, err);
}
