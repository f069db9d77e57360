/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From byte-comparable forms back to values: type_comparable.c the other way round. Where several values
 * compare equal (decimals with zeros at their end, varints with superfluous bytes) the shortest one comes back.
 */
#include "cql/type.h"
#include "cql/type_internal.h"
#include "cql/value.h"

enum {
	COMPARABLE_EMPTY = 0x00,
	COMPARABLE_PRESENT = 0x01,
	COMPARABLE_IRREGULAR = 0x02,
	COMPARABLE_END = 0x00,
	COMPARABLE_NULL = 0x01,
	COMPARABLE_ELEMENT = 0x02,
	COMPARABLE_VARINT_SHORT = 0x3e,
	COMPARABLE_DECIMAL_ZERO = 0x02,
};

struct comparable_reader {
	struct reader reader;
	struct arena *arena;
	struct error *err;
};

static int
comparable_bad(struct comparable_reader *comparable)
{
	return error_set(comparable->err, ERROR_PROTOCOL, "a byte-comparable form is damaged");
}

static int
comparable_no_memory(struct comparable_reader *comparable)
{
	return error_set(comparable->err, ERROR_NO_MEMORY, "no memory for a value");
}

static int
comparable_get_bytes(struct comparable_reader *comparable, struct slice *out)
{
	struct reader *reader = &comparable->reader;
	const uint8_t *start = reader->at, *at = start;
	uint8_t *copy, *to;

	for (;;) {
		const uint8_t *zero = memchr(at, 0, (size_t)(reader->end - at));

		if (zero == NULL || reader->end - zero < 2 || (zero[1] != 0 && zero[1] != 0xff))
			return comparable_bad(comparable);
		at = zero + 2;
		if (zero[1] == 0)
			break;
	}
	reader->at = at;
	copy = to = arena_alloc_bytes(comparable->arena, (size_t)(at - start));
	if (copy == NULL)
		return comparable_no_memory(comparable);
	for (; start < at - 2; start++) {
		*to++ = *start;
		start += *start == 0; /* the FF behind a zero */
	}
	*out = slice_of(copy, (size_t)(to - copy));
	return 0;
}

/* What stands where a value of a fixed size was due. 1: *out is set. */
static int
comparable_get_marked(struct comparable_reader *comparable, struct slice *out)
{
	switch (reader_u8(&comparable->reader)) {
	case COMPARABLE_EMPTY:
		*out = slice_empty;
		return comparable->reader.is_failed ? comparable_bad(comparable) : 1;
	case COMPARABLE_PRESENT:
		return 0;
	case COMPARABLE_IRREGULAR:
		return comparable_get_bytes(comparable, out) == 0 ? 1 : -1;
	default:
		return comparable_bad(comparable);
	}
}

/* `size` bytes, 8 at most, as an unsigned number. */
static int
comparable_get_number(
    struct comparable_reader *comparable, size_t size, uint64_t *bits, struct slice *out)
{
	struct slice bytes;
	int rc = comparable_get_marked(comparable, out);

	if (rc != 0)
		return rc;
	bytes = reader_bytes(&comparable->reader, size);
	if (comparable->reader.is_failed)
		return comparable_bad(comparable);
	*bits = 0;
	for (size_t i = 0; i < size; i++)
		*bits = *bits << 8 | bytes.data[i];
	return 0;
}

static int
comparable_put_number(
    struct comparable_reader *comparable, size_t size, uint64_t bits, struct slice *out)
{
	uint8_t *at = arena_alloc_bytes(comparable->arena, size);

	if (at == NULL)
		return comparable_no_memory(comparable);
	for (size_t i = size; i > 0; i--) {
		at[i - 1] = (uint8_t)bits;
		bits >>= 8;
	}
	*out = slice_of(at, size);
	return 0;
}

/* Numbers whose sign bit is turned over. */
static int
comparable_get_signed(struct comparable_reader *comparable, size_t size, struct slice *out)
{
	uint64_t bits = 0;
	int rc = comparable_get_number(comparable, size, &bits, out);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return comparable_put_number(comparable, size, bits ^ ((uint64_t)1 << (8 * size - 1)), out);
}

static int
comparable_get_unsigned(struct comparable_reader *comparable, size_t size, struct slice *out)
{
	uint64_t bits = 0;
	int rc = comparable_get_number(comparable, size, &bits, out);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return comparable_put_number(comparable, size, bits, out);
}

/* type_double_order() and type_float_order() back. */
static int
comparable_get_real(struct comparable_reader *comparable, size_t size, struct slice *out)
{
	uint64_t bits = 0, sign = (uint64_t)1 << (8 * size - 1);
	int rc = comparable_get_number(comparable, size, &bits, out);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return comparable_put_number(
	    comparable, size, (bits & sign) != 0 ? bits ^ sign : ~bits, out);
}

static int
comparable_get_boolean(struct comparable_reader *comparable, struct slice *out)
{
	static const uint8_t values[] = {0, 1};
	uint8_t byte = reader_u8(&comparable->reader);

	if (comparable->reader.is_failed || byte > 2)
		return comparable_bad(comparable);
	*out = byte == 0 ? slice_empty : slice_of(&values[byte - 1], 1);
	return 0;
}

/* type_uuid_time() back: the time's parts return to where they stand in a uuid. */
static uint64_t
comparable_uuid_high(uint64_t time)
{
	return time << 32 | (time >> 16 & 0xffff0000) | time >> 48;
}

enum comparable_uuid { COMPARABLE_UUID, COMPARABLE_TIMEUUID, COMPARABLE_LEXICAL_UUID };

static int
comparable_get_uuid(
    struct comparable_reader *comparable, enum comparable_uuid kind, struct slice *out)
{
	uint64_t high, low;
	uint8_t version = 1, *at;
	int rc = comparable_get_marked(comparable, out);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (kind == COMPARABLE_UUID)
		version = reader_u8(&comparable->reader);
	high = reader_u64(&comparable->reader);
	low = reader_u64(&comparable->reader);
	if (comparable->reader.is_failed)
		return comparable_bad(comparable);
	if (kind == COMPARABLE_LEXICAL_UUID) {
		high ^= (uint64_t)1 << 63;
		low ^= (uint64_t)1 << 63;
	} else if (kind == COMPARABLE_TIMEUUID) {
		high = comparable_uuid_high(high ^ (uint64_t)1 << 63);
		low ^= TYPE_SIGNED_BYTES;
	} else if (version == 1) {
		high = comparable_uuid_high(high);
	}
	at = arena_alloc_bytes(comparable->arena, 16);
	if (at == NULL)
		return comparable_no_memory(comparable);
	store_u64(at, high);
	store_u64(at + 8, low);
	*out = slice_of(at, 16);
	return 0;
}

static int
comparable_get_varint(struct comparable_reader *comparable, struct slice *out)
{
	struct reader *reader = &comparable->reader;
	uint8_t head = reader_u8(reader);
	bool is_negative = head < 0x80;
	uint32_t size = is_negative ? 0x7fu - head : head - 0x80u;

	if (!reader->is_failed && head == COMPARABLE_EMPTY) {
		*out = slice_empty;
		return 0;
	}
	if (size > COMPARABLE_VARINT_SHORT) {
		size = reader_u32(reader);
		size = is_negative ? ~size : size;
	}
	if (size > reader_left(reader))
		reader->is_failed = true;
	*out = reader_bytes(reader, reader->is_failed ? 0 : size);
	if (reader->is_failed || size == 0)
		return comparable_bad(comparable);
	*out = arena_copy(comparable->arena, *out);
	return slice_is_null(*out) ? comparable_no_memory(comparable) : 0;
}

/* The digits' pairs up to the end, as text after `text`; their number or -1. */
static int
comparable_get_digits(struct reader *reader, uint8_t mask, char *text)
{
	int count = 0;

	for (;;) {
		int pair = reader_u8(reader) ^ mask;

		if (reader->is_failed || pair > 100)
			return -1;
		if (pair == 0)
			break;
		text[count++] = (char)('0' + (pair - 1) / 10);
		text[count++] = (char)('0' + (pair - 1) % 10);
	}
	while (count > 0 && text[count - 1] == '0')
		count--;
	return count == 0 ? -1 : count;
}

static int
comparable_get_decimal(struct comparable_reader *comparable, struct slice *out)
{
	struct reader *reader = &comparable->reader;
	uint8_t head = reader_u8(reader), mask = head == 1 ? 0xff : 0, *at;
	struct slice unscaled = slice_of("", 1); /* zero */
	int64_t exponent = 0, scale = 0;

	if (reader->is_failed || head > 3)
		return comparable_bad(comparable);
	if (head == COMPARABLE_EMPTY)
		return comparable_get_bytes(comparable, out);
	if (head != COMPARABLE_DECIMAL_ZERO) {
		char *text = arena_alloc_bytes(comparable->arena, 2 * reader_left(reader) + 1);
		int digits;

		if (text == NULL)
			return comparable_no_memory(comparable);
		exponent = (int64_t)(reader_u64(reader) ^ (mask != 0 ? UINT64_MAX : 0) ^
		    (uint64_t)1 << 63);
		digits = comparable_get_digits(reader, mask, text + 1);
		text[0] = mask != 0 ? '-' : '+';
		if (digits < 0 || exponent > INT32_MAX + (int64_t)INT32_MAX ||
		    exponent < -2 * (int64_t)INT32_MAX)
			return comparable_bad(comparable);
		scale = digits - exponent;
		if (scale > INT32_MAX || scale < INT32_MIN)
			return comparable_bad(comparable);
		if (value_parse_varint(slice_of(text + (mask == 0), (size_t)digits + (mask != 0)),
			comparable->arena, &unscaled, comparable->err) != 0)
			return -1;
	}
	at = arena_alloc_bytes(comparable->arena, 4 + unscaled.size);
	if (at == NULL)
		return comparable_no_memory(comparable);
	store_u32(at, (uint32_t)(int32_t)scale);
	memcpy(at + 4, unscaled.data, unscaled.size);
	*out = slice_of(at, 4 + unscaled.size);
	return 0;
}

/* ---- what has elements ------------------------------------------------------------------------ */

static int
comparable_get(struct comparable_reader *comparable, const struct type *type, struct slice *out);

static const struct type *
comparable_element_type(const struct type *type, uint32_t index)
{
	if (type->kind == TYPE_MAP)
		return type->params[index & 1];
	return type_is_tuple(type) || type->kind == TYPE_COMPOSITE ? type->params[index]
								   : type->params[0];
}

static uint32_t
comparable_elements_max(const struct type *type)
{
	if (type->kind == TYPE_VECTOR)
		return type->dimension;
	return type_is_tuple(type) ? type->param_count : UINT32_MAX;
}

static int
comparable_get_elements(
    struct comparable_reader *comparable, const struct type *type, struct slice *out)
{
	struct reader *reader = &comparable->reader;
	uint32_t count = 0, room = 0, most = comparable_elements_max(type);
	struct slice *elements = NULL;
	int rc = comparable_get_marked(comparable, out);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	for (;;) {
		uint8_t head = reader_u8(reader);

		if (reader->is_failed || head > COMPARABLE_ELEMENT ||
		    (head != COMPARABLE_END && count == most))
			return comparable_bad(comparable);
		if (head == COMPARABLE_END)
			break;
		if (count == room) {
			struct slice *more;

			room = room == 0 ? 8 : 2 * room;
			more = arena_alloc(comparable->arena, room * sizeof(*more));
			if (more == NULL)
				return comparable_no_memory(comparable);
			if (count != 0)
				memcpy(more, elements, count * sizeof(*more));
			elements = more;
		}
		elements[count] = slice_null;
		if (head == COMPARABLE_ELEMENT &&
		    comparable_get(
			comparable, comparable_element_type(type, count), &elements[count]) != 0)
			return -1;
		count++;
	}
	if ((type->kind == TYPE_MAP && count % 2 != 0) ||
	    (type->kind == TYPE_VECTOR && count != most))
		return comparable_bad(comparable);
	if (type_is_tuple(type) && count == 0) {
		/* One null stands for a tuple of nothing else: no bytes at all would be another value. */
		elements = arena_zalloc(comparable->arena, sizeof(*elements));
		if (elements == NULL)
			return comparable_no_memory(comparable);
		count = 1;
	}
	*out = type_pack(
	    type, elements, type->kind == TYPE_MAP ? count / 2 : count, comparable->arena);
	return slice_is_null(*out) ? comparable_no_memory(comparable) : 0;
}

static int
comparable_get_composite(
    struct comparable_reader *comparable, const struct type *type, struct slice *out)
{
	struct reader *reader = &comparable->reader;
	size_t room = reader_left(reader) + 3 * (size_t)type->param_count, size = 0;
	uint8_t *at = arena_alloc_bytes(comparable->arena, room);

	if (at == NULL)
		return comparable_no_memory(comparable);
	for (uint32_t i = 0;; i++) {
		uint8_t head = reader_u8(reader);
		struct slice element;

		if (!reader->is_failed && head == COMPARABLE_END)
			break;
		if (reader->is_failed || head != COMPARABLE_ELEMENT || i == type->param_count)
			return comparable_bad(comparable);
		if (comparable_get(comparable, type->params[i], &element) != 0)
			return -1;
		if (element.size > UINT16_MAX || element.size + 3 > room - size)
			return comparable_bad(comparable);
		store_u16(at + size, (uint16_t)element.size);
		if (element.size != 0)
			memcpy(at + size + 2, element.data, element.size);
		at[size + 2 + element.size] = reader_u8(reader) ^ 0x80;
		size += element.size + 3;
	}
	*out = slice_of(at, size);
	return 0;
}

static int
comparable_get(struct comparable_reader *comparable, const struct type *type, struct slice *out)
{
	switch (type->kind) {
	case TYPE_INT:
		return comparable_get_signed(comparable, 4, out);
	case TYPE_BIGINT:
	case TYPE_TIMESTAMP:
	case TYPE_COUNTER:
		return comparable_get_signed(comparable, 8, out);
	case TYPE_SMALLINT:
		return comparable_get_signed(comparable, 2, out);
	case TYPE_TINYINT:
		return comparable_get_signed(comparable, 1, out);
	case TYPE_DATE:
		return comparable_get_unsigned(comparable, 4, out);
	case TYPE_TIME:
		return comparable_get_unsigned(comparable, 8, out);
	case TYPE_DOUBLE:
		return comparable_get_real(comparable, 8, out);
	case TYPE_FLOAT:
		return comparable_get_real(comparable, 4, out);
	case TYPE_BOOLEAN:
		return comparable_get_boolean(comparable, out);
	case TYPE_TIMEUUID:
		return comparable_get_uuid(comparable, COMPARABLE_TIMEUUID, out);
	case TYPE_UUID:
		return comparable_get_uuid(comparable, COMPARABLE_UUID, out);
	case TYPE_VARINT:
		return comparable_get_varint(comparable, out);
	case TYPE_DECIMAL:
		return comparable_get_decimal(comparable, out);
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
	case TYPE_VECTOR:
	case TYPE_TUPLE:
	case TYPE_UDT:
		return comparable_get_elements(comparable, type, out);
	case TYPE_COMPOSITE:
		return comparable_get_composite(comparable, type, out);
	case TYPE_REVERSED:
		return type_from_comparable(type->params[0], true, &comparable->reader,
		    comparable->arena, out, comparable->err);
	case TYPE_CUSTOM:
		if (type->fixed_length == 16)
			return comparable_get_uuid(comparable, COMPARABLE_LEXICAL_UUID, out);
		return comparable_get_bytes(comparable, out);
	default:
		return comparable_get_bytes(comparable, out);
	}
}

int
type_from_comparable(const struct type *type, bool is_reversed, struct reader *reader,
    struct arena *arena, struct slice *out, struct error *err)
{
	struct comparable_reader comparable = {*reader, arena, err};
	size_t left = reader_left(reader);
	uint8_t *turned = NULL;

	if (is_reversed) {
		turned = arena_alloc_bytes(arena, left);
		if (turned == NULL)
			return comparable_no_memory(&comparable);
		for (size_t i = 0; i < left; i++)
			turned[i] = (uint8_t)~reader->at[i];
		comparable.reader = reader_of(slice_of(turned, left));
	}
	if (comparable_get(&comparable, type, out) != 0)
		return -1;
	reader_skip(reader, left - reader_left(&comparable.reader));
	return 0;
}
