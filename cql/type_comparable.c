/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-comparable forms. The layouts are in type.h; the reasons:
 *
 * - Bytes of any length: 00 becomes 00 FF and the end is 00 00, so the end sorts before every byte
 *   that could follow, a zero included, and no form is a prefix of another.
 * - Numbers: sign bit flipped, big-endian; a leading 01 where a zero-length value is possible, which
 *   then is 00.
 * - Reversed: every byte inverted. That turns the order of two forms around because neither is a
 *   prefix of the other.
 */
#include <assert.h>
#include "cql/type.h"
#include "cql/type_internal.h"

enum {
	COMPARABLE_EMPTY = 0x00,
	COMPARABLE_PRESENT = 0x01,
	/* Of elements in collections and tuples. */
	COMPARABLE_END = 0x00,
	COMPARABLE_NULL = 0x01,
	COMPARABLE_ELEMENT = 0x02,
	/* varint headers: 80 + length upwards, 7f - length downwards. */
	COMPARABLE_VARINT_SHORT = 0x3e,
};

/* From the first zero on: rare, and slower. */
static void
comparable_put_escaped(const uint8_t *at, const uint8_t *end, struct buffer *out)
{
	while (at < end) {
		const uint8_t *zero = memchr(at, 0, (size_t)(end - at));
		size_t run = (size_t)((zero != NULL ? zero : end) - at);

		buffer_put(out, at, run);
		at += run;
		if (zero != NULL) {
			buffer_put_u16(out, 0x00ff);
			at++;
		}
	}
	buffer_put_u16(out, 0);
}

static void
comparable_put_bytes(struct slice value, struct buffer *out)
{
	uint8_t *at;

	if (!buffer_reserve(out, value.size + 2))
		return;
	if (value.size > 0 && memchr(value.data, 0, value.size) != NULL) {
		comparable_put_escaped(value.data, value.data + value.size, out);
		return;
	}
	at = out->data + out->size;
	if (value.size > 0)
		memcpy(at, value.data, value.size);
	at[value.size] = 0;
	at[value.size + 1] = 0;
	out->size += value.size + 2;
}

/* A fixed value of up to 8 bytes, in order as an unsigned number. */
static inline __attribute__((always_inline)) void
comparable_put_fixed(uint64_t bits, size_t size, struct buffer *out)
{
	uint8_t *at;

	if (!buffer_reserve(out, 9))
		return;
	at = out->data + out->size;
	at[0] = COMPARABLE_PRESENT;
	store_u64(at + 1, bits << (64 - 8 * size));
	out->size += size + 1;
}

/* What should have been `size` bytes and is not: empty, or not valid. */
static void
comparable_put_irregular(struct slice value, struct buffer *out)
{
	if (value.size == 0) {
		buffer_put_u8(out, COMPARABLE_EMPTY);
		return;
	}
	/* Not a value; still distinct and without a common prefix with a good one. */
	buffer_put_u8(out, COMPARABLE_PRESENT + 1);
	comparable_put_bytes(value, out);
}

/* Inlined with a constant size, so that each becomes a load, a flip and a store. */
static inline __attribute__((always_inline)) void
comparable_put_signed(struct slice value, size_t size, struct buffer *out)
{
	uint64_t bits;

	if (__builtin_expect(value.size != size, 0)) {
		comparable_put_irregular(value, out);
		return;
	}
	switch (size) {
	case 8:
		bits = load_u64(value.data);
		break;
	case 4:
		bits = load_u32(value.data);
		break;
	case 2:
		bits = load_u16(value.data);
		break;
	default:
		bits = value.data[0];
		break;
	}
	comparable_put_fixed(bits ^ ((uint64_t)1 << (8 * size - 1)), size, out);
}

static void
comparable_put_boolean(struct slice value, struct buffer *out)
{
	buffer_put_u8(out, value.size == 0 ? 0 : 1 + (value.data[0] != 0));
}

static void
comparable_put_timeuuid(struct slice value, struct buffer *out)
{
	uint8_t *at;

	if (value.size != 16) {
		comparable_put_irregular(value, out);
		return;
	}
	if (!buffer_reserve(out, 17))
		return;
	at = out->data + out->size;
	out->size += 17;
	at[0] = COMPARABLE_PRESENT;
	store_u64(at + 1, type_uuid_time(value.data) ^ ((uint64_t)1 << 63));
	store_u64(at + 9, load_u64(value.data + 8) ^ TYPE_SIGNED_BYTES);
}

/* The version comes first: in front for all but version 1, whose time has it on top already. */
static void
comparable_put_uuid(struct slice value, struct buffer *out)
{
	uint8_t *at;
	int version;

	if (value.size != 16) {
		comparable_put_irregular(value, out);
		return;
	}
	version = value.data[6] >> 4;
	at = buffer_append(out, 18);
	if (at == NULL)
		return;
	at[0] = COMPARABLE_PRESENT;
	at[1] = (uint8_t)version;
	memcpy(at + 2, value.data, 16);
	if (version == 1)
		store_u64(at + 2, type_uuid_time(value.data));
}

static void
comparable_put_varint(struct slice value, struct buffer *out)
{
	uint8_t inverted[4];
	bool is_negative;

	if (value.size == 0) {
		buffer_put_u8(out, COMPARABLE_EMPTY);
		return;
	}
	value = type_trim_varint(value);
	is_negative = value.data[0] & 0x80;
	if (value.size <= COMPARABLE_VARINT_SHORT) {
		buffer_put_u8(
		    out, (uint8_t)(is_negative ? 0x7f - (int)value.size : 0x80 + (int)value.size));
	} else {
		buffer_put_u8(out,
		    is_negative ? 0x7f - COMPARABLE_VARINT_SHORT - 1
				: 0x80 + COMPARABLE_VARINT_SHORT + 1);
		store_u32(inverted, is_negative ? ~(uint32_t)value.size : (uint32_t)value.size);
		buffer_put(out, inverted, 4);
	}
	buffer_put_slice(out, value);
}

/* Sign (01, 02 zero, 03), exponent as 8 bytes, pairs of digits as 1..100, end 00; a negative number
 * has all of it after the sign inverted. */
static void
comparable_put_decimal(struct slice value, struct buffer *out)
{
	struct type_decimal decimal;
	size_t start, i;

	if (value.size < 4) {
		/* Empty sorts first; what is shorter than a scale is not valid. */
		buffer_put_u8(out, COMPARABLE_EMPTY);
		if (value.size != 0)
			comparable_put_bytes(value, out);
		else
			buffer_put_u16(out, 0);
		return;
	}
	type_decimal_init(&decimal, value);
	buffer_put_u8(out, (uint8_t)(2 + decimal.sign));
	if (decimal.sign != 0) {
		start = out->size;
		buffer_put_u64(out, (uint64_t)decimal.exponent ^ ((uint64_t)1 << 63));
		for (i = 0; i < decimal.digit_count; i += 2) {
			int high = decimal.digits[i] - '0';
			int low = i + 1 < decimal.digit_count ? decimal.digits[i + 1] - '0' : 0;

			buffer_put_u8(out, (uint8_t)(10 * high + low + 1));
		}
		buffer_put_u8(out, 0);
		for (i = start; decimal.sign < 0 && i < out->size; i++)
			out->data[i] = (uint8_t)~out->data[i];
	}
	type_decimal_fini(&decimal);
}

static void
comparable_put_elements(const struct type *type, struct slice value, struct buffer *out)
{
	struct type_iterator iterator;
	const struct type *element_type;
	struct slice element;
	bool is_tuple = type_is_tuple(type);
	uint32_t nulls = 0;

	/* No bytes at all sort before a collection of nothing and a tuple of nulls. */
	if (value.size == 0) {
		buffer_put_u8(out, COMPARABLE_EMPTY);
		return;
	}
	buffer_put_u8(out, COMPARABLE_PRESENT);
	type_iterator_init(&iterator, type, value);
	while (type_iterator_next(&iterator, &element, &element_type)) {
		if (slice_is_null(element) && is_tuple) {
			/* Held back: nulls at the end of a tuple are as good as nothing. */
			nulls++;
			continue;
		}
		for (; nulls > 0; nulls--)
			buffer_put_u8(out, COMPARABLE_NULL);
		if (slice_is_null(element)) {
			buffer_put_u8(out, COMPARABLE_NULL);
			continue;
		}
		buffer_put_u8(out, COMPARABLE_ELEMENT);
		type_to_comparable(element_type, false, element, out);
	}
	buffer_put_u8(out, COMPARABLE_END);
}

static void
comparable_put_composite(const struct type *type, struct slice value, struct buffer *out)
{
	struct reader reader = reader_of(value);
	uint32_t i;

	for (i = 0; reader_left(&reader) > 0 && i < type->param_count; i++) {
		struct slice element = reader_bytes(&reader, reader_u16(&reader));
		uint8_t end = reader_u8(&reader);

		if (reader.is_failed)
			break;
		buffer_put_u8(out, COMPARABLE_ELEMENT);
		type_to_comparable(type->params[i], false, element, out);
		buffer_put_u8(out, end ^ 0x80);
	}
	buffer_put_u8(out, COMPARABLE_END);
}

static void
comparable_put_lexical_uuid(struct slice value, struct buffer *out)
{
	if (value.size != 16) {
		comparable_put_irregular(value, out);
		return;
	}
	buffer_put_u8(out, COMPARABLE_PRESENT);
	buffer_put_u64(out, load_u64(value.data) ^ ((uint64_t)1 << 63));
	buffer_put_u64(out, load_u64(value.data + 8) ^ ((uint64_t)1 << 63));
}

static void
comparable_put_floating(const struct type *type, struct slice value, struct buffer *out)
{
	bool is_double = type->kind == TYPE_DOUBLE;
	size_t size = is_double ? 8 : 4;

	if (value.size != size)
		comparable_put_irregular(value, out);
	else
		comparable_put_fixed(is_double ? type_double_order(load_u64(value.data))
					       : type_float_order(load_u32(value.data)),
		    size, out);
}

/* A date counts from the middle of its range, a time from midnight: neither has a sign. */
static void
comparable_put_unsigned(const struct type *type, struct slice value, struct buffer *out)
{
	size_t size = type->kind == TYPE_TIME ? 8 : 4;

	if (value.size != size)
		comparable_put_irregular(value, out);
	else
		comparable_put_fixed(
		    size == 8 ? load_u64(value.data) : load_u32(value.data), size, out);
}

static void
comparable_put(const struct type *type, struct slice value, struct buffer *out)
{
	switch (type->kind) {
	case TYPE_INT:
		comparable_put_signed(value, 4, out);
		return;
	case TYPE_BIGINT:
	case TYPE_TIMESTAMP:
	case TYPE_COUNTER:
		comparable_put_signed(value, 8, out);
		return;
	case TYPE_TIMEUUID:
		comparable_put_timeuuid(value, out);
		return;
	case TYPE_SMALLINT:
		comparable_put_signed(value, 2, out);
		return;
	case TYPE_TINYINT:
		comparable_put_signed(value, 1, out);
		return;
	case TYPE_UUID:
		comparable_put_uuid(value, out);
		return;
	case TYPE_BOOLEAN:
		comparable_put_boolean(value, out);
		return;
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
		comparable_put_floating(type, value, out);
		return;
	case TYPE_DATE:
	case TYPE_TIME:
		comparable_put_unsigned(type, value, out);
		return;
	case TYPE_VARINT:
		comparable_put_varint(value, out);
		return;
	case TYPE_DECIMAL:
		comparable_put_decimal(value, out);
		return;
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
	case TYPE_VECTOR:
	case TYPE_TUPLE:
	case TYPE_UDT:
		comparable_put_elements(type, value, out);
		return;
	case TYPE_COMPOSITE:
		comparable_put_composite(type, value, out);
		return;
	case TYPE_REVERSED:
		type_to_comparable(type->params[0], true, value, out);
		return;
	case TYPE_CUSTOM:
		if (type->fixed_length == 16) {
			comparable_put_lexical_uuid(value, out);
			return;
		}
		comparable_put_bytes(value, out);
		return;
	default:
		comparable_put_bytes(value, out);
		return;
	}
}

void
type_to_comparable(
    const struct type *type, bool is_reversed, struct slice value, struct buffer *out)
{
	size_t start = out->size;
	uint8_t *at, *end;

	comparable_put(type, value, out);
	if (!is_reversed || out->is_failed)
		return;
	end = out->data + out->size;
	for (at = out->data + start; at < end; at++)
		*at = (uint8_t) ~*at;
}

size_t
type_comparable_size_max(const struct type *type, struct slice value)
{
	if (type->fixed_length >= 0 && type->param_count == 0)
		return value.size == (size_t)type->fixed_length ? value.size + 3
								: 2 * value.size + 3;
	/* Decimals: the digits of a scale, plus half a byte a digit of 2.41 a byte. */
	if (type->kind == TYPE_DECIMAL)
		return 2 * value.size + 16;
	return 2 * value.size + 8 + (type->param_count > 0 ? 18 * value.size : 0);
}
