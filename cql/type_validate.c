/* SPDX-License-Identifier: Apache-2.0 */
/* Validation, with the texts of Cassandra's serializers. */
#include <stdio.h>
#include "cql/type.h"
#include "cql/type_internal.h"

static int
type_validate_ascii(struct slice value, struct error *err)
{
	size_t i;

	for (i = 0; i < value.size; i++) {
		if (value.data[i] & 0x80)
			return error_set(err, ERROR_INVALID, "Invalid byte for ascii: %d",
			    (int8_t)value.data[i]);
	}
	return 0;
}

/*
 * Cassandra's idea of UTF-8: C0 80 is Java's zero, surrogates and F4..F7 pass, and the second byte
 * after E0 and F0 is only looked at for the overlong forms. Bytes that it takes must be taken here
 * too, or data that moves over would be refused.
 */
static bool
type_is_utf8(struct slice value)
{
	const uint8_t *at = value.data;
	const uint8_t *end = at + value.size;

	while (at < end) {
		uint8_t lead = *at++;
		int left;

		if (lead < 0x80)
			continue;
		if ((lead & 0xe0) == 0xc0) {
			if (at == end ||
			    (lead == 0xc0 ? *at != 0x80
					  : (lead & 0x1e) == 0 || (*at & 0xc0) != 0x80))
				return false;
			at++;
			continue;
		}
		if ((lead & 0xf0) == 0xe0)
			left = 2;
		else if ((lead & 0xf8) == 0xf0)
			left = 3;
		else
			return false;
		if (end - at < left)
			return false;
		if (lead == 0xe0 || lead == 0xf0) {
			if (lead == 0xe0 ? (*at & 0xe0) == 0x80 : (*at & 0x30) == 0)
				return false;
			at++;
			left--;
		}
		for (; left > 0; left--) {
			if ((*at++ & 0xc0) != 0x80)
				return false;
		}
	}
	return true;
}

/* Types whose values have one size, and what Cassandra says of others. */
struct type_length {
	uint8_t size; /* 0: not such a type */
	bool allows_empty;
	const char *text;
};

static const struct type_length type_lengths[TYPE_NATIVE_COUNT] = {
    [TYPE_INT] = {4, true, "Expected 4 or 0 byte int"},
    [TYPE_BIGINT] = {8, true, "Expected 8 or 0 byte long"},
    [TYPE_COUNTER] = {8, true, "Expected 8 or 0 byte long"},
    [TYPE_TIMESTAMP] = {8, true, "Expected 8 or 0 byte long for date"},
    [TYPE_UUID] = {16, true, "UUID should be 16 or 0 bytes"},
    [TYPE_BOOLEAN] = {1, true, "Expected 1 or 0 byte value"},
    [TYPE_DOUBLE] = {8, true, "Expected 8 or 0 byte value for a double"},
    [TYPE_FLOAT] = {4, true, "Expected 4 or 0 byte value for a float"},
    [TYPE_SMALLINT] = {2, false, "Expected 2 bytes for a smallint"},
    [TYPE_TINYINT] = {1, false, "Expected 1 byte for a tinyint"},
    [TYPE_DATE] = {4, false, "Expected 4 byte long for date"},
    [TYPE_TIME] = {8, false, "Expected 8 byte long for time"},
};

static int
type_validate_length(const struct type_length *length, struct slice value, struct error *err)
{
	if (value.size == length->size || (value.size == 0 && length->allows_empty))
		return 0;
	return error_set(err, ERROR_INVALID, "%s (%d)", length->text, (int)value.size);
}

static int
type_validate_inet(struct slice value, struct error *err)
{
	char hex[2 * 32 + 1];

	if (value.size == 0 || value.size == 4 || value.size == 16)
		return 0;
	hex_encode(slice_of(value.data, value.size > 32 ? 32 : value.size), hex);
	return error_set(err, ERROR_INVALID, "Expected 4 or 16 byte inetaddress; got %s", hex);
}

static int
type_validate_timeuuid(struct slice value, struct error *err)
{
	if (type_validate_length(&type_lengths[TYPE_UUID], value, err) != 0)
		return -1;
	/* The text names the upper half of the first byte, where no version is; so does Cassandra's. */
	if (value.size == 16 && (value.data[6] >> 4) != 1)
		return error_set(err, ERROR_INVALID, "Invalid version for TimeUUID type: 0x%x",
		    value.data[0] >> 4);
	return 0;
}

static int
type_validate_duration(struct slice value, struct error *err)
{
	struct reader reader = reader_of(value);
	int64_t months, days, nanoseconds;

	if (value.size < 3)
		return error_set(err, ERROR_INVALID,
		    "Expected at least 3 bytes for a duration (%d)", (int)value.size);
	months = reader_signed_vint(&reader);
	days = reader_signed_vint(&reader);
	nanoseconds = reader_signed_vint(&reader);
	if (reader.is_failed)
		return error_set(err, ERROR_INVALID, "Invalid duration: not enough bytes");
	if (months < INT32_MIN || months > INT32_MAX)
		return error_set(err, ERROR_INVALID,
		    "The duration months must be a 32 bits integer but was: %lld",
		    (long long)months);
	if (days < INT32_MIN || days > INT32_MAX)
		return error_set(err, ERROR_INVALID,
		    "The duration days must be a 32 bits integer but was: %lld", (long long)days);
	if ((months < 0 || days < 0 || nanoseconds < 0) &&
	    (months > 0 || days > 0 || nanoseconds > 0))
		return error_set(err, ERROR_INVALID,
		    "The duration months, days and nanoseconds must be all of the same sign "
		    "(%lld, %lld, %lld)",
		    (long long)months, (long long)days, (long long)nanoseconds);
	return 0;
}

static const char *
type_collection_word(const struct type *type)
{
	return type->kind == TYPE_LIST ? "list" : type->kind == TYPE_SET ? "set" : "map";
}

static int
type_validate_collection(const struct type *type, struct slice value, struct error *err)
{
	const char *word = type_collection_word(type);
	uint32_t width = type->kind == TYPE_MAP ? 2 : 1;
	struct reader reader = reader_of(value);
	int64_t left;
	uint32_t i;

	if (value.size < 4)
		return error_set(err, ERROR_INVALID, "Not enough bytes to read a %s", word);
	/* A negative count passes as none, as it does there. */
	for (left = (int32_t)reader_u32(&reader); left > 0; left--) {
		for (i = 0; i < width; i++) {
			int32_t size = (int32_t)reader_u32(&reader);
			struct slice element;

			if (!reader.is_failed && size < 0)
				return error_set(
				    err, ERROR_INVALID, "Null value read when not allowed");
			element = reader_bytes(&reader, (size_t)size);
			if (reader.is_failed)
				return error_set(
				    err, ERROR_INVALID, "Not enough bytes to read a %s", word);
			if (type_validate(type->params[i], element, err) != 0)
				return -1;
		}
	}
	if (reader_left(&reader) != 0)
		return error_set(
		    err, ERROR_INVALID, "Unexpected extraneous bytes after %s value", word);
	return 0;
}

static int
type_validate_tuple(const struct type *type, struct slice value, struct error *err)
{
	struct reader reader = reader_of(value);
	char what[96];
	uint32_t i;

	for (i = 0; i < type->param_count && reader_left(&reader) > 0; i++) {
		struct slice element;
		int32_t size;

		if (type->kind == TYPE_UDT)
			snprintf(what, sizeof(what), "%uth field %.*s", i,
			    (int)type->fields[i].size, (const char *)type->fields[i].data);
		else
			snprintf(what, sizeof(what), "%uth component", i);
		if (reader_left(&reader) < 4)
			return error_set(
			    err, ERROR_INVALID, "Not enough bytes to read size of %s", what);
		size = (int32_t)reader_u32(&reader);
		if (size < 0)
			continue;
		if (reader_left(&reader) < (size_t)size)
			return error_set(err, ERROR_INVALID, "Not enough bytes to read %s", what);
		element = reader_bytes(&reader, (size_t)size);
		if (type_validate(type->params[i], element, err) != 0) {
			if (type->kind == TYPE_UDT && err != NULL) {
				char cause[ERROR_TEXT_MAX];

				snprintf(cause, sizeof(cause), "%s", err->text);
				error_set(err, ERROR_INVALID, "Failure validating the %s; %s", what,
				    cause);
			}
			return -1;
		}
	}
	if (reader_left(&reader) != 0)
		return error_set(err, ERROR_INVALID, "Invalid remaining data after end of %s value",
		    type->kind == TYPE_UDT ? "UDT" : "tuple");
	return 0;
}

static int
type_validate_vector(const struct type *type, struct slice value, struct error *err)
{
	struct type_iterator iterator;
	struct slice element;
	uint32_t count = 0;

	if (value.size == 0)
		return error_set(err, ERROR_INVALID, "Invalid empty vector value");
	if (type->fixed_length >= 0 && value.size != (size_t)type->fixed_length)
		return error_set(err, ERROR_INVALID,
		    "Expected size %d bytes but given size of %d bytes", type->fixed_length,
		    (int)value.size);
	type_iterator_init(&iterator, type, value);
	while (type_iterator_next(&iterator, &element, NULL)) {
		if (type_validate(type->params[0], element, err) != 0)
			return -1;
		count++;
	}
	if (iterator.is_failed || count != type->dimension)
		return error_set(
		    err, ERROR_INVALID, "Not enough bytes to read a vector<%u>", type->dimension);
	if (reader_left(&iterator.reader) != 0)
		return error_set(err, ERROR_INVALID,
		    "Unexpected %d extraneous bytes after vector value",
		    (int)reader_left(&iterator.reader));
	return 0;
}

static int
type_validate_composite(const struct type *type, struct slice value, struct error *err)
{
	struct reader reader = reader_of(value);
	uint32_t i = 0;

	while (reader_left(&reader) > 0) {
		struct slice element;

		if (i >= type->param_count)
			return error_set(err, ERROR_INVALID, "Too many bytes for comparator");
		if (reader_left(&reader) < 2)
			return error_set(err, ERROR_INVALID,
			    "Not enough bytes to read value size of component %u", i);
		element.size = reader_u16(&reader);
		if (reader_left(&reader) < element.size)
			return error_set(err, ERROR_INVALID,
			    "Not enough bytes to read value of component %u", i);
		element = reader_bytes(&reader, element.size);
		if (type_validate(type->params[i], element, err) != 0)
			return -1;
		if (reader_left(&reader) < 1)
			return error_set(err, ERROR_INVALID,
			    "Not enough bytes to read the end-of-component byte of component%u", i);
		if (reader_u8(&reader) != 0 && reader_left(&reader) != 0)
			return error_set(err, ERROR_INVALID,
			    "Invalid bytes remaining after an end-of-component at component%u", i);
		i++;
	}
	return 0;
}

int
type_validate(const struct type *type, struct slice value, struct error *err)
{
	if (type->kind < TYPE_NATIVE_COUNT && type_lengths[type->kind].size != 0)
		return type_validate_length(&type_lengths[type->kind], value, err);
	switch (type->kind) {
	case TYPE_TEXT:
		return type_is_utf8(value)
		    ? 0
		    : error_set(err, ERROR_INVALID, "String didn't validate.");
	case TYPE_TIMEUUID:
		return type_validate_timeuuid(value, err);
	case TYPE_ASCII:
		return type_validate_ascii(value, err);
	case TYPE_DECIMAL:
		if (value.size > 0 && value.size < 4)
			return error_set(err, ERROR_INVALID, "Expected 0 or at least 4 bytes (%d)",
			    (int)value.size);
		return 0;
	case TYPE_INET:
		return type_validate_inet(value, err);
	case TYPE_DURATION:
		return type_validate_duration(value, err);
	case TYPE_EMPTY:
		if (value.size != 0)
			return error_set(err, ERROR_INVALID, "EmptyType only accept empty values");
		return 0;
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
		return type_validate_collection(type, value, err);
	case TYPE_TUPLE:
	case TYPE_UDT:
		return type_validate_tuple(type, value, err);
	case TYPE_VECTOR:
		return type_validate_vector(type, value, err);
	case TYPE_REVERSED:
		return type_validate(type->params[0], value, err);
	case TYPE_COMPOSITE:
		return type_validate_composite(type, value, err);
	case TYPE_CUSTOM:
		if (type->fixed_length == 16)
			return type_validate_length(&type_lengths[TYPE_UUID], value, err);
		return 0;
	default:
		return 0;
	}
}
