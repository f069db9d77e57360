/* SPDX-License-Identifier: Apache-2.0 */
/* Values to JSON text. */
#include <inttypes.h>
#include <math.h>
#include "cql/json.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

void
json_put_string(struct slice text, struct buffer *out)
{
	size_t i;

	buffer_put_u8(out, '"');
	for (i = 0; i < text.size; i++) {
		uint8_t c = text.data[i];

		switch (c) {
		case '"':
			buffer_put_string(out, "\\\"");
			break;
		case '\\':
			buffer_put_string(out, "\\\\");
			break;
		case '\b':
			buffer_put_string(out, "\\b");
			break;
		case '\f':
			buffer_put_string(out, "\\f");
			break;
		case '\n':
			buffer_put_string(out, "\\n");
			break;
		case '\r':
			buffer_put_string(out, "\\r");
			break;
		case '\t':
			buffer_put_string(out, "\\t");
			break;
		default:
			if (c < 0x20)
				buffer_printf(out, "\\u%04X", c);
			else
				buffer_put_u8(out, c);
			break;
		}
	}
	buffer_put_u8(out, '"');
}

void
json_put_column_name(struct slice name, struct buffer *out)
{
	bool has_upper = false;
	size_t i;

	for (i = 0; i < name.size; i++)
		has_upper |= name.data[i] >= 'A' && name.data[i] <= 'Z';
	if (!has_upper) {
		json_put_string(name, out);
		return;
	}
	/* The quotes that CQL would need become part of the key. */
	buffer_put_string(out, "\"\\\"");
	for (i = 0; i < name.size; i++) {
		if (name.data[i] == '"' || name.data[i] == '\\')
			buffer_put_u8(out, '\\');
		buffer_put_u8(out, name.data[i]);
	}
	buffer_put_string(out, "\\\"\"");
}

/* A key must be a string: what is none yet is put in quotes. */
static void
json_put_key(const struct type *type, struct slice value, struct buffer *out)
{
	struct buffer key;

	buffer_init(&key);
	json_from_value(type, value, &key);
	if (key.size > 0 && key.data[0] == '"')
		buffer_put_slice(out, buffer_slice(&key));
	else
		json_put_string(buffer_slice(&key), out);
	out->is_failed |= key.is_failed;
	buffer_fini(&key);
}

static void
json_put_collection(const struct type *type, struct slice value, struct buffer *out)
{
	bool is_map = type->kind == TYPE_MAP;
	struct type_iterator iterator;
	const struct type *element_type;
	struct slice element;
	uint32_t i = 0;

	buffer_put_u8(out, is_map ? '{' : '[');
	type_iterator_init(&iterator, type, value);
	for (; type_iterator_next(&iterator, &element, &element_type); i++) {
		if (i > 0)
			buffer_put_string(out, is_map && (i & 1) ? ": " : ", ");
		if (is_map && !(i & 1))
			json_put_key(element_type, element, out);
		else
			json_from_value(element_type, element, out);
	}
	buffer_put_u8(out, is_map ? '}' : ']');
}

/* Missing fields at the end are null. */
static void
json_put_tuple(const struct type *type, struct slice value, struct buffer *out)
{
	bool is_udt = type->kind == TYPE_UDT;
	struct type_iterator iterator;
	struct slice field;
	uint32_t i;

	buffer_put_u8(out, is_udt ? '{' : '[');
	type_iterator_init(&iterator, type, value);
	for (i = 0; i < type->param_count; i++) {
		if (i > 0)
			buffer_put_string(out, ", ");
		if (is_udt) {
			json_put_column_name(type->fields[i], out);
			buffer_put_string(out, ": ");
		}
		if (!type_iterator_next(&iterator, &field, NULL))
			field = slice_null;
		json_from_value(type->params[i], field, out);
	}
	buffer_put_u8(out, is_udt ? '}' : ']');
}

static void
json_put_float(const struct type *type, struct slice value, struct buffer *out)
{
	double number = type->kind == TYPE_FLOAT ? value_get_float(value) : value_get_double(value);

	/* JSON has no word for these. */
	if (isnan(number) || isinf(number))
		buffer_put_string(out, "null");
	else if (type->kind == TYPE_FLOAT)
		value_print_float((float)number, out);
	else
		value_print_double(number, out);
}

static void
json_put_blob(struct slice value, struct buffer *out)
{
	size_t i;

	buffer_put_string(out, "\"0x");
	for (i = 0; i < value.size; i++)
		buffer_printf(out, "%02x", value.data[i]);
	buffer_put_u8(out, '"');
}

void
json_from_value(const struct type *type, struct slice value, struct buffer *out)
{
	type = type_unreversed(type, NULL);
	if (slice_is_null(value)) {
		buffer_put_string(out, "null");
		return;
	}
	if (type->kind == TYPE_ASCII || type->kind == TYPE_TEXT) {
		json_put_string(value, out);
		return;
	}
	if (type_is_collection(type) || type->kind == TYPE_VECTOR) {
		json_put_collection(type, value, out);
		return;
	}
	if (type_is_tuple(type)) {
		json_put_tuple(type, value, out);
		return;
	}
	if (type->kind == TYPE_BLOB || type->kind >= TYPE_NATIVE_COUNT ||
	    type_validate(type, value, NULL) != 0) {
		json_put_blob(value, out);
		return;
	}
	if (value.size == 0) {
		buffer_put_string(out, type->kind == TYPE_BOOLEAN ? "null" : "\"\"");
		return;
	}
	switch (type->kind) {
	case TYPE_COUNTER:
		buffer_printf(out, "%" PRId64, type_load_signed(value));
		break;
	case TYPE_INT:
	case TYPE_BIGINT:
	case TYPE_SMALLINT:
	case TYPE_TINYINT:
	case TYPE_VARINT:
	case TYPE_DECIMAL:
	case TYPE_BOOLEAN:
		value_to_literal(type, value, out);
		break;
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		json_put_float(type, value, out);
		break;
	case TYPE_TIMESTAMP:
		buffer_put_u8(out, '"');
		value_print_timestamp(type_load_signed(value), out);
		buffer_put_u8(out, '"');
		break;
	default:
		buffer_put_u8(out, '"');
		value_to_literal(type, value, out);
		buffer_put_u8(out, '"');
		break;
	}
}
