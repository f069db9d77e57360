/* SPDX-License-Identifier: Apache-2.0 */
/* AbstractType.compare. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <openssl/bn.h>
#include "cql/type.h"
#include "cql/type_internal.h"

/* ---- Decimals ------------------------------------------------------------------------------ */

/* Decimal digits of a big two's complement number without its sign; owned by OpenSSL. NULL without
 * memory. */
static char *
type_big_digits(struct slice unscaled)
{
	BIGNUM *number = BN_bin2bn(unscaled.data, (int)unscaled.size, NULL);
	BIGNUM *power = NULL;
	char *text = NULL;

	if (number == NULL)
		return NULL;
	if (unscaled.data[0] & 0x80) {
		power = BN_new();
		if (power == NULL || !BN_set_bit(power, (int)unscaled.size * 8) ||
		    !BN_sub(number, power, number))
			goto done;
	}
	text = BN_bn2dec(number);
done:
	BN_free(power);
	BN_free(number);
	return text;
}

void
type_decimal_init(struct type_decimal *decimal, struct slice value)
{
	int32_t scale = (int32_t)load_u32(value.data);
	struct slice unscaled = slice_of(value.data + 4, value.size - 4);

	memset(decimal, 0, sizeof(*decimal));
	if (unscaled.size == 0)
		return;
	unscaled = type_trim_varint(unscaled);
	if (unscaled.size <= 8) {
		int64_t number = type_load_signed(unscaled);
		uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;

		if (number == 0)
			return;
		snprintf(decimal->text, sizeof(decimal->text), "%" PRIu64, magnitude);
		decimal->digits = decimal->text;
	} else {
		decimal->digits = type_big_digits(unscaled);
		decimal->owned = decimal->digits;
		if (decimal->digits == NULL)
			return;
	}
	decimal->sign = unscaled.data[0] & 0x80 ? -1 : 1;
	decimal->digit_count = strlen(decimal->digits);
	decimal->exponent = (int64_t)decimal->digit_count - scale;
	while (decimal->digit_count > 1 && decimal->digits[decimal->digit_count - 1] == '0')
		decimal->digit_count--;
}

void
type_decimal_fini(struct type_decimal *decimal)
{
	OPENSSL_free(decimal->owned);
}

int
type_decimal_compare(struct slice a, struct slice b)
{
	struct type_decimal left, right;
	int order;

	if (a.size < 4 || b.size < 4)
		return a.size < 4 ? (b.size < 4 ? slice_compare(a, b) : -1) : 1;
	type_decimal_init(&left, a);
	type_decimal_init(&right, b);
	if (left.sign != right.sign) {
		order = left.sign - right.sign;
	} else if (left.exponent != right.exponent) {
		order = left.exponent < right.exponent ? -left.sign : left.sign;
	} else {
		order = slice_compare(slice_of(left.digits, left.digit_count),
			    slice_of(right.digits, right.digit_count)) *
		    left.sign;
	}
	type_decimal_fini(&left);
	type_decimal_fini(&right);
	return order;
}

/* ---- The others ---------------------------------------------------------------------------- */

/* Empty before all; what is no fixed value is compared as bytes. Sets *order and returns true when
 * that already decides. */
static bool
type_compare_irregular(struct slice a, struct slice b, size_t size, int *order)
{
	if (a.size == size && b.size == size)
		return false;
	if (a.size == 0 || b.size == 0)
		*order = (a.size != 0) - (b.size != 0);
	else
		*order = slice_compare(a, b);
	return true;
}

static inline int
type_order_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline int
type_order_s64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Signed big-endian integers of 1, 2, 4 and 8 bytes. */
static int
type_compare_signed(struct slice a, struct slice b, size_t size)
{
	int order;

	if (type_compare_irregular(a, b, size, &order))
		return order;
	if (size == 8)
		return type_order_s64((int64_t)load_u64(a.data), (int64_t)load_u64(b.data));
	if (size == 4)
		return type_order_s64((int32_t)load_u32(a.data), (int32_t)load_u32(b.data));
	return type_order_s64(type_load_signed(a), type_load_signed(b));
}

/* Double.compare: -0.0 before 0.0, every NaN is one and the greatest. */
static int
type_compare_double(struct slice a, struct slice b)
{
	int order;

	if (type_compare_irregular(a, b, 8, &order))
		return order;
	return type_order_u64(
	    type_double_order(load_u64(a.data)), type_double_order(load_u64(b.data)));
}

static int
type_compare_float(struct slice a, struct slice b)
{
	int order;

	if (type_compare_irregular(a, b, 4, &order))
		return order;
	return type_order_u64(
	    type_float_order(load_u32(a.data)), type_float_order(load_u32(b.data)));
}

static int
type_compare_boolean(struct slice a, struct slice b)
{
	int left = a.size == 0 ? 0 : 1 + (a.data[0] != 0);
	int right = b.size == 0 ? 0 : 1 + (b.data[0] != 0);

	return left - right;
}

static int
type_compare_varint(struct slice a, struct slice b)
{
	bool a_negative, b_negative;
	int order;

	if (a.size == 0 || b.size == 0)
		return (a.size != 0) - (b.size != 0);
	a = type_trim_varint(a);
	b = type_trim_varint(b);
	a_negative = a.data[0] & 0x80;
	b_negative = b.data[0] & 0x80;
	if (a_negative != b_negative)
		return a_negative ? -1 : 1;
	if (a.size != b.size) {
		order = a.size < b.size ? -1 : 1;
		return a_negative ? -order : order;
	}
	return memcmp(a.data, b.data, a.size);
}

static int
type_compare_uuid(struct slice a, struct slice b)
{
	int version, order;

	if (type_compare_irregular(a, b, 16, &order))
		return order;
	version = a.data[6] >> 4;
	order = version - (b.data[6] >> 4);
	if (order != 0)
		return order;
	if (version == 1) {
		order = type_order_u64(type_uuid_time(a.data), type_uuid_time(b.data));
		return order != 0 ? order : memcmp(a.data + 8, b.data + 8, 8);
	}
	return memcmp(a.data, b.data, 16);
}

static int
type_compare_timeuuid(struct slice a, struct slice b)
{
	int order;

	if (type_compare_irregular(a, b, 16, &order))
		return order;
	order = type_order_s64((int64_t)type_uuid_time(a.data), (int64_t)type_uuid_time(b.data));
	if (order != 0)
		return order;
	return type_order_u64(
	    load_u64(a.data + 8) ^ TYPE_SIGNED_BYTES, load_u64(b.data + 8) ^ TYPE_SIGNED_BYTES);
}

/* java.util.UUID.compareTo: two signed halves. */
static int
type_compare_lexical_uuid(struct slice a, struct slice b)
{
	int order;

	if (type_compare_irregular(a, b, 16, &order))
		return order;
	order = type_order_s64((int64_t)load_u64(a.data), (int64_t)load_u64(b.data));
	if (order != 0)
		return order;
	return type_order_s64((int64_t)load_u64(a.data + 8), (int64_t)load_u64(b.data + 8));
}

static int
type_compare_element(const struct type *type, struct slice a, struct slice b)
{
	if (slice_is_null(a) || slice_is_null(b))
		return !slice_is_null(a) - !slice_is_null(b);
	return type_compare(type, a, b);
}

/* Lists, sets, maps, vectors: element by element, then the shorter one. */
static int
type_compare_collection(const struct type *type, struct slice a, struct slice b)
{
	struct type_iterator left, right;
	const struct type *element_type;
	struct slice x, y;
	bool has_x, has_y;
	int order;

	if (a.size == 0 || b.size == 0)
		return (a.size != 0) - (b.size != 0);
	type_iterator_init(&left, type, a);
	type_iterator_init(&right, type, b);
	for (;;) {
		has_x = type_iterator_next(&left, &x, &element_type);
		has_y = type_iterator_next(&right, &y, NULL);
		if (!has_x || !has_y)
			return has_x - has_y;
		order = type_compare_element(element_type, x, y);
		if (order != 0)
			return order;
	}
}

/* Whether a component that is not null follows. */
static bool
type_has_more(struct type_iterator *iterator, bool has, struct slice element)
{
	while (has) {
		if (!slice_is_null(element))
			return true;
		has = type_iterator_next(iterator, &element, NULL);
	}
	return false;
}

/* Tuples: missing components at the end are as good as nulls, but no bytes at all sort first. */
static int
type_compare_tuple(const struct type *type, struct slice a, struct slice b)
{
	struct type_iterator left, right;
	const struct type *element_type;
	struct slice x = slice_null, y = slice_null;
	bool has_x, has_y;
	int order;

	if (a.size == 0 || b.size == 0)
		return (a.size != 0) - (b.size != 0);
	type_iterator_init(&left, type, a);
	type_iterator_init(&right, type, b);
	for (;;) {
		has_x = type_iterator_next(&left, &x, &element_type);
		has_y = type_iterator_next(&right, &y, NULL);
		if (!has_x || !has_y)
			return type_has_more(&left, has_x, x) - type_has_more(&right, has_y, y);
		order = type_compare_element(element_type, x, y);
		if (order != 0)
			return order;
	}
}

static int
type_compare_composite(const struct type *type, struct slice a, struct slice b)
{
	struct reader left = reader_of(a), right = reader_of(b);
	uint32_t i;

	for (i = 0; reader_left(&left) > 0 && reader_left(&right) > 0; i++) {
		struct slice x = reader_bytes(&left, reader_u16(&left));
		struct slice y = reader_bytes(&right, reader_u16(&right));
		int order;

		if (left.is_failed || right.is_failed || i >= type->param_count)
			return slice_compare(a, b);
		order = type_compare(type->params[i], x, y);
		if (order != 0)
			return order;
		order = (int8_t)reader_u8(&left) - (int8_t)reader_u8(&right);
		if (order != 0)
			return order;
	}
	return (reader_left(&left) > 0) - (reader_left(&right) > 0);
}

int
type_compare(const struct type *type, struct slice a, struct slice b)
{
	switch (type->kind) {
	case TYPE_BIGINT:
	case TYPE_TIMESTAMP:
	case TYPE_COUNTER:
		return type_compare_signed(a, b, 8);
	case TYPE_INT:
		return type_compare_signed(a, b, 4);
	case TYPE_SMALLINT:
		return type_compare_signed(a, b, 2);
	case TYPE_TINYINT:
		return type_compare_signed(a, b, 1);
	case TYPE_TIMEUUID:
		return type_compare_timeuuid(a, b);
	case TYPE_UUID:
		return type_compare_uuid(a, b);
	case TYPE_BOOLEAN:
		return type_compare_boolean(a, b);
	case TYPE_DOUBLE:
		return type_compare_double(a, b);
	case TYPE_FLOAT:
		return type_compare_float(a, b);
	case TYPE_VARINT:
		return type_compare_varint(a, b);
	case TYPE_DECIMAL:
		return type_decimal_compare(a, b);
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
	case TYPE_VECTOR:
		return type_compare_collection(type, a, b);
	case TYPE_TUPLE:
	case TYPE_UDT:
		return type_compare_tuple(type, a, b);
	case TYPE_REVERSED:
		return type_compare(type->params[0], b, a);
	case TYPE_COMPOSITE:
		return type_compare_composite(type, a, b);
	case TYPE_CUSTOM:
		if (type->fixed_length == 16)
			return type_compare_lexical_uuid(a, b);
		return slice_compare(a, b);
	default:
		return slice_compare(a, b);
	}
}
