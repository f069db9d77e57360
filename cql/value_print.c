/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to text: as logs show them, and as literals that can be read back. */
#include <inttypes.h>
#include "base/uuid.h"
#include "cql/describe.h"
#include "cql/schema.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

static void
value_put_hex(struct slice value, struct buffer *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	if (!buffer_reserve(out, 2 * value.size))
		return;
	for (i = 0; i < value.size; i++) {
		buffer_put_u8(out, (uint8_t)digits[value.data[i] >> 4]);
		buffer_put_u8(out, (uint8_t)digits[value.data[i] & 15]);
	}
}

void
value_print_inet(struct slice value, struct buffer *out)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	int i;

	if (value.size == 16 && memcmp(value.data, mapped, 12) == 0)
		value = slice_of(value.data + 12, 4);
	if (value.size == 4) {
		buffer_printf(
		    out, "%d.%d.%d.%d", value.data[0], value.data[1], value.data[2], value.data[3]);
		return;
	}
	for (i = 0; i < 8; i++)
		buffer_printf(out, "%s%x", i > 0 ? ":" : "", load_u16(value.data + 2 * i));
}

static void
value_print_uuid(struct slice value, struct buffer *out)
{
	struct uuid uuid;
	char text[UUID_TEXT_SIZE];

	memcpy(uuid.bytes, value.data, sizeof(uuid.bytes));
	uuid_format(&uuid, text);
	buffer_put_string(out, text);
}

static void
value_print_decoded_duration(struct slice value, struct buffer *out)
{
	struct duration duration;

	if (value_decode_duration(value, &duration, NULL) == 0)
		value_print_duration(&duration, out);
}

/* What both forms share; false for the kinds that they print differently. The value is valid and
 * not empty. */
static bool
value_print_native(const struct type *type, struct slice value, struct buffer *out)
{
	switch (type->kind) {
	case TYPE_INT:
	case TYPE_BIGINT:
	case TYPE_SMALLINT:
	case TYPE_TINYINT:
		buffer_printf(out, "%" PRId64, type_load_signed(value));
		return true;
	case TYPE_VARINT:
		value_print_varint(value, out);
		return true;
	case TYPE_DECIMAL:
		value_print_decimal(value, out);
		return true;
	case TYPE_DOUBLE:
		value_print_double(value_get_double(value), out);
		return true;
	case TYPE_FLOAT:
		value_print_float(value_get_float(value), out);
		return true;
	case TYPE_BOOLEAN:
		buffer_put_string(out, value.data[0] != 0 ? "true" : "false");
		return true;
	case TYPE_UUID:
	case TYPE_TIMEUUID:
		value_print_uuid(value, out);
		return true;
	case TYPE_INET:
		value_print_inet(value, out);
		return true;
	case TYPE_TIMESTAMP:
		value_print_timestamp_separated(type_load_signed(value), 'T', out);
		return true;
	case TYPE_DATE:
		value_print_date(load_u32(value.data), out);
		return true;
	case TYPE_TIME:
		value_print_time(type_load_signed(value), out);
		return true;
	case TYPE_DURATION:
		value_print_decoded_duration(value, out);
		return true;
	default:
		return false;
	}
}

static bool
value_is_text(const struct type *type)
{
	return type->kind == TYPE_ASCII || type->kind == TYPE_TEXT;
}

/* "a:b:@" with ':' and '@' inside escaped. */
static void
value_print_fields(const struct type *type, struct slice value, struct buffer *out)
{
	struct type_iterator iterator;
	const struct type *field_type;
	struct slice field;
	bool is_first = true;

	type_iterator_init(&iterator, type, value);
	while (type_iterator_next(&iterator, &field, &field_type)) {
		struct buffer text;
		size_t i;

		if (!is_first)
			buffer_put_u8(out, ':');
		is_first = false;
		if (slice_is_null(field)) {
			buffer_put_u8(out, '@');
			continue;
		}
		buffer_init(&text);
		value_to_string(field_type, field, &text);
		for (i = 0; i < text.size; i++) {
			if (text.data[i] == ':' || text.data[i] == '@')
				buffer_put_u8(out, '\\');
			buffer_put_u8(out, text.data[i]);
		}
		out->is_failed |= text.is_failed;
		buffer_fini(&text);
	}
}

static void
value_print_composite(const struct type *type, struct slice value, struct buffer *out)
{
	struct reader reader = reader_of(value);
	uint32_t i;

	for (i = 0; i < type->param_count && reader_left(&reader) > 0; i++) {
		struct slice part = reader_bytes(&reader, reader_u16(&reader));

		reader_u8(&reader);
		if (reader.is_failed)
			return;
		if (i > 0)
			buffer_put_u8(out, ':');
		value_to_string(type->params[i], part, out);
	}
}

void
value_to_string(const struct type *type, struct slice value, struct buffer *out)
{
	type = type_unreversed(type, NULL);
	if (slice_is_null(value)) {
		buffer_put_string(out, "null");
		return;
	}
	if (value.size == 0)
		return;
	if (type_validate(type, value, NULL) != 0) {
		value_put_hex(value, out);
		return;
	}
	if (value_is_text(type))
		buffer_put_slice(out, value);
	else if (type_is_tuple(type))
		value_print_fields(type, value, out);
	else if (type->kind == TYPE_COMPOSITE)
		value_print_composite(type, value, out);
	else if (!value_print_native(type, value, out))
		value_put_hex(value, out);
}

static void
value_print_elements(const struct type *type, struct slice value, struct buffer *out)
{
	bool is_list = type->kind == TYPE_LIST || type->kind == TYPE_VECTOR;
	char open = is_list ? '[' : type->kind == TYPE_TUPLE ? '(' : '{';
	char close = is_list ? ']' : type->kind == TYPE_TUPLE ? ')' : '}';
	struct type_iterator iterator;
	const struct type *element_type;
	struct slice element;
	uint32_t i = 0;

	buffer_put_u8(out, (uint8_t)open);
	type_iterator_init(&iterator, type, value);
	for (; type_iterator_next(&iterator, &element, &element_type); i++) {
		if (i > 0)
			buffer_put_string(out, type->kind == TYPE_MAP && (i & 1) ? ": " : ", ");
		if (type->kind == TYPE_UDT) {
			describe_name(type->fields[i], out);
			buffer_put_string(out, ": ");
		}
		value_to_literal(element_type, element, out);
	}
	buffer_put_u8(out, (uint8_t)close);
}

void
value_to_literal(const struct type *type, struct slice value, struct buffer *out)
{
	type = type_unreversed(type, NULL);
	if (slice_is_null(value)) {
		buffer_put_string(out, "null");
		return;
	}
	if (value_is_text(type)) {
		describe_literal(value, out);
		return;
	}
	if (type_is_collection(type) || type_is_tuple(type) || type->kind == TYPE_VECTOR) {
		value_print_elements(type, value, out);
		return;
	}
	if (type->kind == TYPE_COUNTER)
		type = type_native(TYPE_BIGINT);
	if (type->kind == TYPE_BLOB || type->kind >= TYPE_NATIVE_COUNT ||
	    type_validate(type, value, NULL) != 0) {
		buffer_put_string(out, "0x");
		value_put_hex(value, out);
		return;
	}
	if (value.size == 0)
		buffer_put_string(out, "null");
	else
		value_print_native(type, value, out);
}

void
table_partition_key_print(const struct table_metadata *table, struct slice key, struct buffer *out)
{
	struct slice components[UINT8_MAX];
	uint32_t i;

	if (table->partition_key_count > UINT8_MAX ||
	    table_partition_key_split(table, key, components, NULL) != 0) {
		value_put_hex(key, out);
		return;
	}
	for (i = 0; i < table->partition_key_count; i++) {
		if (i > 0)
			buffer_put_u8(out, ':');
		value_to_string(table->partition_key[i].type, components[i], out);
	}
}
