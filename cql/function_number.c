/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/function_number.h"
#include <math.h>
#include <stdlib.h>
#include <openssl/crypto.h>
#include "cql/type_internal.h"
#include "cql/value_internal.h"

int
function_bn_scale(BIGNUM *number, int64_t digits)
{
	BN_CTX *context;
	BIGNUM *ten, *power;
	int rc = -1;

	if (digits == 0 || BN_is_zero(number))
		return 0;
	if (digits < 0 || digits > FUNCTION_DIGITS_MAX)
		return -1;
	context = BN_CTX_new();
	ten = BN_new();
	power = BN_new();
	if (context != NULL && ten != NULL && power != NULL && BN_set_word(ten, 10) &&
	    BN_set_word(power, (BN_ULONG)digits) && BN_exp(power, ten, power, context) &&
	    BN_mul(number, number, power, context))
		rc = 0;
	BN_free(ten);
	BN_free(power);
	BN_CTX_free(context);
	return rc;
}

int64_t
function_bn_digits(const BIGNUM *number)
{
	char *text = BN_bn2dec(number);
	int64_t digits = text == NULL ? 0 : (int64_t)strlen(text) - (text[0] == '-');

	OPENSSL_free(text);
	return digits;
}

/* Floating point goes through its text, as BigDecimal.valueOf does. */
static int
function_number_from_float(
    struct function_number *number, const struct type *type, struct slice value)
{
	struct buffer text;
	struct arena arena;
	struct slice decimal;
	int rc = -1;

	arena_init(&arena, 512);
	buffer_init(&text);
	if (type->kind == TYPE_FLOAT)
		value_print_float(value_get_float(value), &text);
	else
		value_print_double(value_get_double(value), &text);
	if (!text.is_failed && value_text_to_decimal(buffer_slice(&text), &arena, &decimal) == 0) {
		number->scale = (int32_t)load_u32(decimal.data);
		number->unscaled = value_varint_to_bn(slice_of(decimal.data + 4, decimal.size - 4));
		rc = number->unscaled != NULL ? 0 : -1;
	}
	buffer_fini(&text);
	arena_fini(&arena);
	return rc;
}

int
function_number_init(struct function_number *number, const struct type *type, struct slice value)
{
	number->unscaled = NULL;
	number->scale = 0;
	switch (type->kind) {
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return function_number_from_float(number, type, value);
	case TYPE_DECIMAL:
		number->scale = (int32_t)load_u32(value.data);
		value = slice_of(value.data + 4, value.size - 4);
		break;
	default:
		break;
	}
	number->unscaled = value_varint_to_bn(value);
	return number->unscaled != NULL ? 0 : -1;
}

void
function_number_fini(struct function_number *number)
{
	BN_free(number->unscaled);
	number->unscaled = NULL;
}

/* Round the quotient away from zero when the remainder says so. */
static void
function_bn_round(
    BIGNUM *quotient, BIGNUM *rest, const BIGNUM *divisor, bool is_negative, bool is_half_even)
{
	int order;

	BN_lshift1(rest, rest);
	order = BN_ucmp(rest, divisor);
	if (order > 0 || (order == 0 && (!is_half_even || BN_is_odd(quotient)))) {
		if (is_negative)
			BN_sub_word(quotient, 1);
		else
			BN_add_word(quotient, 1);
	}
}

BIGNUM *
function_bn_divide(const struct function_number *a, const struct function_number *b, int64_t scale,
    bool is_half_even)
{
	int64_t shift = scale - a->scale + b->scale;
	BN_CTX *context = BN_CTX_new();
	BIGNUM *dividend = BN_dup(a->unscaled), *divisor = BN_dup(b->unscaled);
	BIGNUM *quotient = BN_new(), *rest = BN_new();
	bool is_negative = BN_is_negative(a->unscaled) != BN_is_negative(b->unscaled);
	bool is_good = context != NULL && dividend != NULL && divisor != NULL && quotient != NULL &&
	    rest != NULL && !BN_is_zero(divisor) &&
	    function_bn_scale(shift >= 0 ? dividend : divisor, shift >= 0 ? shift : -shift) == 0 &&
	    BN_div(quotient, rest, dividend, divisor, context);

	if (is_good) {
		function_bn_round(quotient, rest, divisor, is_negative, is_half_even);
	} else {
		BN_free(quotient);
		quotient = NULL;
	}
	BN_free(dividend);
	BN_free(divisor);
	BN_free(rest);
	BN_CTX_free(context);
	return quotient;
}

void
function_number_strip(struct function_number *number)
{
	BIGNUM *shorter;

	if (BN_is_zero(number->unscaled)) {
		number->scale = 0;
		return;
	}
	while ((shorter = BN_dup(number->unscaled)) != NULL) {
		if (BN_div_word(shorter, 10) != 0) {
			BN_free(shorter);
			return;
		}
		BN_free(number->unscaled);
		number->unscaled = shorter;
		number->scale--;
	}
}

int
function_number_put(const struct function_number *number, const struct type *type,
    struct arena *arena, struct slice *out, struct error *err)
{
	if (type->kind == TYPE_VARINT)
		return value_varint_from_bn(number->unscaled, arena, out, err);
	if (number->scale < INT32_MIN || number->scale > INT32_MAX)
		return error_set(err, ERROR_INVALID, "the scale of a decimal is out of range");
	return value_decimal_from_bn(number->unscaled, (int32_t)number->scale, arena, out, err);
}

/* ---- Java's narrowing ---------------------------------------------------------------------- */

static int64_t
function_saturate(double number, int64_t min, int64_t max)
{
	if (isnan(number))
		return 0;
	if (number <= (double)min)
		return min;
	if (number >= (double)max)
		return max;
	return (int64_t)number;
}

/* The low 64 bits of a two's complement number of any length. */
static int64_t
function_low_bits(struct slice varint)
{
	if (varint.size > 8)
		varint = slice_of(varint.data + varint.size - 8, 8);
	return type_load_signed(varint);
}

/* The low 64 bits of the integer part. */
static int64_t
function_decimal_low_bits(struct slice value)
{
	struct function_number number;
	struct arena arena;
	struct slice varint;
	int64_t result = 0;

	/* 10^64 is a multiple of 2^64, and nothing is left of a number after that many digits. */
	if ((int32_t)load_u32(value.data) <= -64 ||
	    (int32_t)load_u32(value.data) > 3 * (int64_t)value.size)
		return 0;
	if (function_number_init(&number, type_native(TYPE_DECIMAL), value) != 0)
		return 0;
	arena_init(&arena, 512);
	if (number.scale <= 0) {
		function_bn_scale(number.unscaled, -number.scale);
	} else {
		BIGNUM *divisor = BN_new();
		BN_CTX *context = BN_CTX_new();

		if (divisor == NULL || context == NULL || !BN_one(divisor) ||
		    function_bn_scale(divisor, number.scale) != 0 ||
		    !BN_div(number.unscaled, NULL, number.unscaled, divisor, context))
			BN_zero(number.unscaled);
		BN_free(divisor);
		BN_CTX_free(context);
	}
	if (value_varint_from_bn(number.unscaled, &arena, &varint, NULL) == 0)
		result = function_low_bits(varint);
	function_number_fini(&number);
	arena_fini(&arena);
	return result;
}

int64_t
function_to_integer(const struct type *type, struct slice value, size_t size)
{
	switch (type->kind) {
	case TYPE_FLOAT:
	case TYPE_DOUBLE: {
		double number =
		    type->kind == TYPE_FLOAT ? value_get_float(value) : value_get_double(value);

		return size == 8 ? function_saturate(number, INT64_MIN, INT64_MAX)
				 : function_saturate(number, INT32_MIN, INT32_MAX);
	}
	case TYPE_VARINT:
		return function_low_bits(value);
	case TYPE_DECIMAL:
		return function_decimal_low_bits(value);
	default:
		return type_load_signed(value);
	}
}

/* Numbers without a binary form of their own go through their text. */
static void
function_print_number(const struct type *type, struct slice value, struct buffer *out)
{
	if (type->kind == TYPE_DECIMAL)
		value_print_decimal(value, out);
	else
		value_print_varint(value, out);
	buffer_put_u8(out, 0);
}

double
function_to_double(const struct type *type, struct slice value)
{
	struct buffer text;
	double number;

	switch (type->kind) {
	case TYPE_FLOAT:
		return value_get_float(value);
	case TYPE_DOUBLE:
		return value_get_double(value);
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		buffer_init(&text);
		function_print_number(type, value, &text);
		number = text.is_failed ? 0 : strtod((const char *)text.data, NULL);
		buffer_fini(&text);
		return number;
	default:
		return (double)type_load_signed(value);
	}
}

float
function_to_float(const struct type *type, struct slice value)
{
	struct buffer text;
	float number;

	switch (type->kind) {
	case TYPE_FLOAT:
		return value_get_float(value);
	case TYPE_DOUBLE:
		return (float)value_get_double(value);
	case TYPE_VARINT:
	case TYPE_DECIMAL:
		buffer_init(&text);
		function_print_number(type, value, &text);
		number = text.is_failed ? 0 : strtof((const char *)text.data, NULL);
		buffer_fini(&text);
		return number;
	default:
		return (float)type_load_signed(value);
	}
}
