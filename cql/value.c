/* SPDX-License-Identifier: Apache-2.0 */
/* Literals and text to bytes. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>
#include "base/uuid.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

/* ---- Literals ------------------------------------------------------------------------------ */

static const char *const literal_kind_names[] = {
    [LITERAL_STRING] = "STRING",
    [LITERAL_INTEGER] = "INTEGER",
    [LITERAL_UUID] = "UUID",
    [LITERAL_FLOAT] = "FLOAT",
    [LITERAL_BOOLEAN] = "BOOLEAN",
    [LITERAL_HEX] = "HEX",
    [LITERAL_DURATION] = "DURATION",
};

#define KIND(kind) (UINT32_C(1) << (kind))

/* The native types that a literal may become. */
static const uint32_t literal_types[] = {
    [LITERAL_STRING] = KIND(TYPE_ASCII) | KIND(TYPE_TEXT) | KIND(TYPE_INET) | KIND(TYPE_DATE) |
	KIND(TYPE_TIME) | KIND(TYPE_TIMESTAMP),
    [LITERAL_INTEGER] = KIND(TYPE_BIGINT) | KIND(TYPE_COUNTER) | KIND(TYPE_DATE) |
	KIND(TYPE_DECIMAL) | KIND(TYPE_DOUBLE) | KIND(TYPE_DURATION) | KIND(TYPE_FLOAT) |
	KIND(TYPE_INT) | KIND(TYPE_SMALLINT) | KIND(TYPE_TIME) | KIND(TYPE_TIMESTAMP) |
	KIND(TYPE_TINYINT) | KIND(TYPE_VARINT),
    [LITERAL_UUID] = KIND(TYPE_UUID) | KIND(TYPE_TIMEUUID),
    [LITERAL_FLOAT] = KIND(TYPE_DECIMAL) | KIND(TYPE_DOUBLE) | KIND(TYPE_FLOAT),
    [LITERAL_BOOLEAN] = KIND(TYPE_BOOLEAN),
    [LITERAL_HEX] = KIND(TYPE_BLOB),
    [LITERAL_DURATION] = KIND(TYPE_DURATION),
};

const char *
literal_kind_name(enum literal_kind kind)
{
	return literal_kind_names[kind];
}

static enum type_kind
literal_integer_kind(struct slice text)
{
	int64_t number;

	if (value_text_to_integer(text, INT32_MIN, INT32_MAX, &number))
		return TYPE_INT;
	return value_text_to_integer(text, INT64_MIN, INT64_MAX, &number) ? TYPE_BIGINT
									  : TYPE_VARINT;
}

/* Whether a double holds the decimal exactly. */
static bool
literal_is_double(struct slice text)
{
	struct arena arena;
	struct slice decimal, again;
	struct buffer buffer;
	char exact[1200];
	double number;
	bool is_double = true;

	if (!value_text_to_double(text, &number) || number != number)
		return true;
	arena_init(&arena, 4096);
	buffer_init(&buffer);
	/* Every double has at most 767 significant digits. */
	snprintf(exact, sizeof(exact), "%.767e", number);
	if (value_text_to_decimal(text, &arena, &decimal) == 0 &&
	    value_text_to_decimal(slice_of_string(exact), &arena, &again) == 0)
		is_double = type_compare(type_native(TYPE_DECIMAL), decimal, again) == 0;
	buffer_fini(&buffer);
	arena_fini(&arena);
	return is_double;
}

const struct type *
literal_exact_type(enum literal_kind kind, struct slice text)
{
	size_t i;

	switch (kind) {
	case LITERAL_STRING:
		for (i = 0; i < text.size; i++) {
			if (text.data[i] & 0x80)
				return type_native(TYPE_TEXT);
		}
		return type_native(TYPE_ASCII);
	case LITERAL_INTEGER:
		return type_native(literal_integer_kind(text));
	case LITERAL_UUID:
		return type_native(
		    text.size > 14 && text.data[14] == '1' ? TYPE_TIMEUUID : TYPE_UUID);
	case LITERAL_FLOAT:
		return type_native(literal_is_double(text) ? TYPE_DOUBLE : TYPE_DECIMAL);
	case LITERAL_BOOLEAN:
		return type_native(TYPE_BOOLEAN);
	case LITERAL_HEX:
		return type_native(TYPE_BLOB);
	case LITERAL_DURATION:
		return type_native(TYPE_DURATION);
	}
	return NULL;
}

enum assignment
literal_test(enum literal_kind kind, struct slice text, const struct type *type)
{
	type = type_unreversed(type, NULL);
	if (type_is_collection(type) || type->kind == TYPE_UDT || type->kind == TYPE_VECTOR ||
	    type->kind == TYPE_TUPLE)
		return ASSIGNMENT_NOT;
	/* Custom types take what they can read. */
	if (type->kind >= TYPE_NATIVE_COUNT || type->kind == TYPE_EMPTY)
		return ASSIGNMENT_WEAK;
	if (!(literal_types[kind] & KIND(type->kind)))
		return ASSIGNMENT_NOT;
	return literal_exact_type(kind, text) == type ? ASSIGNMENT_EXACT : ASSIGNMENT_WEAK;
}

int
literal_to_value(enum literal_kind kind, struct slice text, const struct type *type,
    struct slice column, struct arena *arena, struct slice *out, struct error *err)
{
	type = type_unreversed(type, NULL);
	if (literal_test(kind, text, type) == ASSIGNMENT_NOT)
		return error_set(err, ERROR_INVALID,
		    "Invalid %s constant (%.*s) for \"%.*s\" of type %s", literal_kind_name(kind),
		    VALUE_ARGS(text), VALUE_ARGS(column), type_name(arena, type));
	if (kind == LITERAL_HEX)
		return value_from_string(type_native(TYPE_BLOB),
		    slice_of(text.data + 2, text.size - 2), arena, out, err);
	/* The lexer knows NaN and Infinity in any case, Java only in this one. */
	if (kind == LITERAL_FLOAT && text.size > 0) {
		bool is_negative = text.data[0] == '-';
		size_t length = text.size - is_negative;
		const char *start = (const char *)text.data + is_negative;

		if (length == 3 && strncasecmp(start, "NaN", 3) == 0)
			text = slice_of_string("NaN");
		else if (length == 8 && strncasecmp(start, "Infinity", 8) == 0)
			text = slice_of_string(is_negative ? "-Infinity" : "Infinity");
	}
	if (type->kind == TYPE_COUNTER)
		type = type_native(TYPE_BIGINT);
	return value_from_string(type, text, arena, out, err);
}

/* ---- Text ---------------------------------------------------------------------------------- */

/* "Unable to make <what> from '<text>'" */
static int
value_fail(const char *what, struct slice text, struct error *err)
{
	return error_set(
	    err, ERROR_INVALID, "Unable to make %s from '%.*s'", what, VALUE_ARGS(text));
}

static int
value_from_integer(struct slice text, size_t size, const char *what, struct arena *arena,
    struct slice *out, struct error *err)
{
	int64_t max = (int64_t)(UINT64_MAX >> (65 - 8 * size));
	int64_t number;

	if (!value_text_to_integer(text, -max - 1, max, &number))
		return value_fail(what, text, err);
	return value_put_integer(number, size, arena, out, err);
}

static int
value_from_boolean(struct slice text, struct arena *arena, struct slice *out, struct error *err)
{
	bool is_true = text.size == 4 && strncasecmp((const char *)text.data, "true", 4) == 0;

	if (!is_true && text.size != 0 &&
	    !(text.size == 5 && strncasecmp((const char *)text.data, "false", 5) == 0))
		return value_fail("boolean", text, err);
	return value_put_integer(is_true, 1, arena, out, err);
}

static int
value_from_hex(struct slice text, struct arena *arena, struct slice *out, struct error *err)
{
	uint8_t *bytes = value_alloc(arena, text.size / 2 + 1, err);

	if (bytes == NULL)
		return -1;
	if (hex_decode((const char *)text.data, text.size, bytes) != 0)
		return error_set(
		    err, ERROR_INVALID, "cannot parse '%.*s' as hex bytes", VALUE_ARGS(text));
	*out = slice_of(bytes, text.size / 2);
	return 0;
}

static int
value_from_uuid(const struct type *type, struct slice text, struct arena *arena, struct slice *out,
    struct error *err)
{
	struct uuid *uuid = arena_alloc(arena, sizeof(*uuid));

	if (uuid == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
	if (uuid_parse((const char *)text.data, text.size, uuid) != 0) {
		if (type->kind == TYPE_TIMEUUID)
			return error_set(err, ERROR_INVALID,
			    "Unknown timeuuid representation: %.*s", VALUE_ARGS(text));
		return value_fail("UUID", text, err);
	}
	if (type->kind == TYPE_TIMEUUID && uuid_version(uuid) != 1)
		return error_set(err, ERROR_INVALID, "TimeUUID supports only version 1 UUIDs");
	*out = slice_of(uuid->bytes, sizeof(uuid->bytes));
	return 0;
}

/* Decimal numbers of one to four parts, the last one filling the rest: 1.2.3 is 1.2.0.3. */
static bool
value_text_to_inet4(struct slice text, uint8_t out[4])
{
	uint32_t parts[4] = {0}, address = 0;
	int count = 0, i;
	size_t at = 0;

	for (;;) {
		size_t start = at;
		int64_t number;

		while (at < text.size && text.data[at] != '.')
			at++;
		if (count == 4 || start == at || !isdigit(text.data[start]) ||
		    !value_text_to_integer(
			slice_of(text.data + start, at - start), 0, UINT32_MAX, &number))
			return false;
		parts[count++] = (uint32_t)number;
		if (at == text.size)
			break;
		at++;
	}
	for (i = 0; i < count - 1; i++) {
		if (parts[i] > 255)
			return false;
		address |= parts[i] << (24 - 8 * i);
	}
	if (count > 1 && parts[count - 1] >> (8 * (5 - count)) != 0)
		return false;
	store_u32(out, address | parts[count - 1]);
	return true;
}

bool
value_text_to_inet(struct slice text, struct arena *arena, struct slice *out)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	uint8_t *bytes = arena_alloc_bytes(arena, 16);
	const uint8_t *scope = memchr(text.data, '%', text.size);
	char copy[64];

	if (bytes == NULL || text.size >= sizeof(copy))
		return false;
	if (value_text_to_inet4(text, bytes)) {
		*out = slice_of(bytes, 4);
		return true;
	}
	if (scope != NULL)
		text.size = (size_t)(scope - text.data);
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	if (strlen(copy) != text.size || inet_pton(AF_INET6, copy, bytes) != 1)
		return false;
	*out = memcmp(bytes, mapped, 12) == 0 ? slice_of(bytes + 12, 4) : slice_of(bytes, 16);
	return true;
}

static int64_t
value_now_ms(void)
{
	struct timespec now;

	/* 'now' as a timestamp: the only literal whose value is not in the text. */
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int
value_from_time(const struct type *type, struct slice text, struct arena *arena, struct slice *out,
    struct error *err)
{
	int64_t number;
	uint32_t days;

	switch (type->kind) {
	case TYPE_TIMESTAMP:
		if (value_parse_timestamp(text, value_now_ms(), &number, err) != 0)
			return -1;
		return value_put_integer(number, 8, arena, out, err);
	case TYPE_DATE:
		if (value_parse_date(text, &days, err) != 0)
			return -1;
		return value_put_integer(days, 4, arena, out, err);
	default:
		if (value_parse_time(text, &number, err) != 0)
			return -1;
		return value_put_integer(number, 8, arena, out, err);
	}
}

static int
value_from_duration(struct slice text, struct arena *arena, struct slice *out, struct error *err)
{
	struct duration duration;
	uint8_t *at, *start;

	if (value_parse_duration(text, &duration, err) != 0)
		return -1;
	start = at = value_alloc(arena, 3 * VINT_SIZE_MAX, err);
	if (at == NULL)
		return -1;
	at += vint_encode(at, zigzag_encode(duration.months));
	at += vint_encode(at, zigzag_encode(duration.days));
	at += vint_encode(at, zigzag_encode(duration.nanoseconds));
	*out = slice_of(start, (size_t)(at - start));
	return 0;
}

/* One field of "a:b:@" with its escapes taken out; null for "@". */
static int
value_from_field(const struct type *type, struct slice field, struct arena *arena,
    struct slice *out, struct error *err)
{
	uint8_t *text = value_alloc(arena, field.size + 1, err);
	size_t i, size = 0;

	if (text == NULL)
		return -1;
	if (slice_equal_string(field, "@")) {
		*out = slice_null;
		return 0;
	}
	for (i = 0; i < field.size; i++) {
		if (field.data[i] == '\\' && i + 1 < field.size &&
		    (field.data[i + 1] == ':' || field.data[i + 1] == '@'))
			i++;
		text[size++] = field.data[i];
	}
	return value_from_string(type, slice_of(text, size), arena, out, err);
}

/* A ':' between fields, not an escaped one. */
static bool
value_is_separator(struct slice text, size_t at)
{
	return text.data[at] == ':' && (at == 0 || text.data[at - 1] != '\\');
}

static int
value_from_tuple(const struct type *type, struct slice text, struct arena *arena, struct slice *out,
    struct error *err)
{
	struct slice *fields = arena_calloc(arena, type->param_count + 1, sizeof(*fields));
	size_t start = 0, at;
	uint32_t count = 1, i;

	if (fields == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
	for (at = 0; at < text.size; at++)
		count += value_is_separator(text, at);
	if (count > type->param_count)
		return error_set(err, ERROR_INVALID,
		    "Invalid tuple literal: too many elements. Type %s expects %u but got %u",
		    type_name(arena, type), type->param_count, count);
	for (i = 0; i < count; i++) {
		for (at = start; at < text.size && !value_is_separator(text, at); at++)
			continue;
		if (value_from_field(type->params[i], slice_of(text.data + start, at - start),
			arena, &fields[i], err) != 0)
			return -1;
		start = at + 1;
	}
	*out = type_pack(type, fields, count, arena);
	return slice_is_null(*out) ? error_set(err, ERROR_NO_MEMORY, "out of memory for a value")
				   : 0;
}

static int
value_from_text(const struct type *type, struct slice text, struct slice *out, struct error *err)
{
	size_t i;

	if (type->kind == TYPE_ASCII) {
		for (i = 0; i < text.size; i++) {
			if (text.data[i] & 0x80)
				return error_set(err, ERROR_INVALID,
				    "Invalid ASCII character in string literal: %.*s",
				    VALUE_ARGS(text));
		}
	}
	*out = slice_of(text.data, text.size);
	if (text.data == NULL)
		*out = slice_empty;
	return 0;
}

int
value_from_string(const struct type *type, struct slice text, struct arena *arena,
    struct slice *out, struct error *err)
{
	double number;
	float small;

	type = type_unreversed(type, NULL);
	if (text.size == 0 && type->kind != TYPE_BOOLEAN && type->kind != TYPE_DATE &&
	    type->kind != TYPE_TIME) {
		*out = slice_empty;
		return 0;
	}
	switch (type->kind) {
	case TYPE_ASCII:
	case TYPE_TEXT:
		return value_from_text(type, text, out, err);
	case TYPE_INT:
		return value_from_integer(text, 4, "int", arena, out, err);
	case TYPE_BIGINT:
	case TYPE_COUNTER:
		return value_from_integer(text, 8, "long", arena, out, err);
	case TYPE_SMALLINT:
		return value_from_integer(text, 2, "short", arena, out, err);
	case TYPE_TINYINT:
		return value_from_integer(text, 1, "byte", arena, out, err);
	case TYPE_VARINT:
		return value_parse_varint(text, arena, out, err);
	case TYPE_DECIMAL:
		if (value_text_to_decimal(text, arena, out) != 0)
			return error_set(err, ERROR_INVALID,
			    "unable to make BigDecimal from '%.*s'", VALUE_ARGS(text));
		return 0;
	case TYPE_DOUBLE:
		if (!value_text_to_double(text, &number))
			return value_fail("double", text, err);
		return value_put_double(number, arena, out, err);
	case TYPE_FLOAT:
		if (!value_text_to_float(text, &small))
			return value_fail("float", text, err);
		return value_put_float(small, arena, out, err);
	case TYPE_BOOLEAN:
		return value_from_boolean(text, arena, out, err);
	case TYPE_INET:
		if (!value_text_to_inet(text, arena, out))
			return value_fail("inet address", text, err);
		return 0;
	case TYPE_UUID:
	case TYPE_TIMEUUID:
		return value_from_uuid(type, text, arena, out, err);
	case TYPE_TIMESTAMP:
	case TYPE_DATE:
	case TYPE_TIME:
		return value_from_time(type, text, arena, out, err);
	case TYPE_DURATION:
		return value_from_duration(text, arena, out, err);
	case TYPE_EMPTY:
		return error_set(err, ERROR_INVALID, "'%.*s' is not empty", VALUE_ARGS(text));
	case TYPE_TUPLE:
	case TYPE_UDT:
		return value_from_tuple(type, text, arena, out, err);
	default:
		return value_from_hex(text, arena, out, err);
	}
}
