/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, as Java reads and prints them. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <openssl/crypto.h>
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

uint8_t *
value_alloc(struct arena *arena, size_t size, struct error *err)
{
	uint8_t *memory = arena_alloc_bytes(arena, size);

	if (memory == NULL)
		error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
	return memory;
}

int
value_put_integer(
    int64_t number, size_t size, struct arena *arena, struct slice *out, struct error *err)
{
	uint8_t *at = value_alloc(arena, 8, err);

	if (at == NULL)
		return -1;
	store_u64(at, (uint64_t)number);
	*out = slice_of(at + 8 - size, size);
	return 0;
}

int
value_put_double(double number, struct arena *arena, struct slice *out, struct error *err)
{
	uint64_t bits;

	/* Java has one NaN. */
	if (isnan(number))
		bits = 0x7ff8000000000000;
	else
		memcpy(&bits, &number, sizeof(bits));
	return value_put_integer((int64_t)bits, 8, arena, out, err);
}

int
value_put_float(float number, struct arena *arena, struct slice *out, struct error *err)
{
	uint32_t bits;

	if (isnan(number))
		bits = 0x7fc00000;
	else
		memcpy(&bits, &number, sizeof(bits));
	return value_put_integer(bits, 4, arena, out, err);
}

double
value_get_double(struct slice value)
{
	uint64_t bits = load_u64(value.data);
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

float
value_get_float(struct slice value)
{
	uint32_t bits = load_u32(value.data);
	float number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/* ---- Reading ------------------------------------------------------------------------------- */

bool
value_text_to_integer(struct slice text, int64_t min, int64_t max, int64_t *out)
{
	bool is_negative = text.size > 0 && text.data[0] == '-';
	size_t i = is_negative || (text.size > 0 && text.data[0] == '+') ? 1 : 0;
	uint64_t magnitude = 0;

	if (i == text.size)
		return false;
	for (; i < text.size; i++) {
		if (!isdigit(text.data[i]) || __builtin_mul_overflow(magnitude, 10, &magnitude) ||
		    __builtin_add_overflow(magnitude, (uint64_t)(text.data[i] - '0'), &magnitude))
			return false;
	}
	if (magnitude > (uint64_t)INT64_MAX + is_negative)
		return false;
	*out = is_negative ? (int64_t)-magnitude : (int64_t)magnitude;
	return *out >= min && *out <= max;
}

/* What Double.parseDouble takes, without blanks: "1", "1.5e3", ".5", "1d", "0x1p3", "NaN",
 * "Infinity" with a sign; not "inf" or "nan", which strtod() would take. */
static bool
value_float_text(struct slice text, char copy[static 512])
{
	size_t i, start;

	while (text.size > 0 && text.data[0] <= ' ') {
		text.data++;
		text.size--;
	}
	while (text.size > 0 && text.data[text.size - 1] <= ' ')
		text.size--;
	if (text.size == 0 || text.size >= 512)
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	start = copy[0] == '-' || copy[0] == '+';
	if (strcmp(copy + start, "NaN") == 0 || strcmp(copy + start, "Infinity") == 0)
		return true;
	if (copy[start] == '0' && (copy[start + 1] | 0x20) == 'x')
		return strpbrk(copy, "pP") != NULL;
	i = strlen(copy);
	if (i > start + 1 && strchr("dDfF", copy[i - 1]) != NULL)
		copy[i - 1] = '\0';
	for (i = start; copy[i] != '\0'; i++) {
		if (!isdigit((uint8_t)copy[i]) && strchr("+-.eE", copy[i]) == NULL)
			return false;
	}
	return true;
}

bool
value_text_to_double(struct slice text, double *out)
{
	char copy[512], *end;

	if (!value_float_text(text, copy))
		return false;
	*out = strtod(copy, &end);
	return *end == '\0' && end != copy;
}

bool
value_text_to_float(struct slice text, float *out)
{
	char copy[512], *end;

	if (!value_float_text(text, copy))
		return false;
	*out = strtof(copy, &end);
	return *end == '\0' && end != copy;
}

/* ---- Big integers -------------------------------------------------------------------------- */

BIGNUM *
value_varint_to_bn(struct slice value)
{
	BIGNUM *number = BN_bin2bn(value.data, (int)value.size, NULL);
	BIGNUM *power;

	if (number == NULL || value.size == 0 || !(value.data[0] & 0x80))
		return number;
	power = BN_new();
	if (power == NULL || !BN_set_bit(power, (int)value.size * 8) ||
	    !BN_sub(number, number, power)) {
		BN_free(number);
		number = NULL;
	}
	BN_free(power);
	return number;
}

/* Two's complement of `size` bytes at `out`; they are enough. */
static void
value_bn_to_bytes(const BIGNUM *number, uint8_t *out, size_t size)
{
	unsigned carry = 1;
	size_t i;

	BN_bn2binpad(number, out, (int)size);
	if (!BN_is_negative(number))
		return;
	for (i = size; i-- > 0;) {
		carry += (uint8_t)~out[i];
		out[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

int
value_varint_from_bn(
    const BIGNUM *number, struct arena *arena, struct slice *out, struct error *err)
{
	size_t size = (size_t)BN_num_bytes(number) + 1;
	uint8_t *bytes = value_alloc(arena, size, err);

	if (bytes == NULL)
		return -1;
	value_bn_to_bytes(number, bytes, size);
	*out = type_trim_varint(slice_of(bytes, size));
	return 0;
}

/* More digits than this are refused: conversion takes quadratic time. */
enum { VALUE_DIGITS_MAX = 50000 };

/* Digits only, with a sign or without. NULL when it is no number. */
static BIGNUM *
value_digits_to_bn(const char *digits, size_t size)
{
	BIGNUM *number = NULL;
	size_t start = size > 0 && (digits[0] == '-' || digits[0] == '+');
	char *copy;
	size_t i;

	if (size == start || size > VALUE_DIGITS_MAX)
		return NULL;
	for (i = start; i < size; i++) {
		if (!isdigit((uint8_t)digits[i]))
			return NULL;
	}
	copy = strndup(digits + start, size - start);
	if (copy == NULL || BN_dec2bn(&number, copy) == 0) {
		free(copy);
		return NULL;
	}
	free(copy);
	if (digits[0] == '-')
		BN_set_negative(number, 1);
	return number;
}

int
value_parse_varint(struct slice text, struct arena *arena, struct slice *out, struct error *err)
{
	BIGNUM *number;
	int64_t small;
	int rc;

	if (value_text_to_integer(text, INT64_MIN, INT64_MAX, &small)) {
		rc = value_put_integer(small, 8, arena, out, err);
		if (rc == 0)
			*out = type_trim_varint(*out);
		return rc;
	}
	number = value_digits_to_bn((const char *)text.data, text.size);
	if (number == NULL)
		return error_set(
		    err, ERROR_INVALID, "unable to make int from '%.*s'", VALUE_ARGS(text));
	rc = value_varint_from_bn(number, arena, out, err);
	BN_free(number);
	return rc;
}

void
value_print_varint(struct slice value, struct buffer *out)
{
	BIGNUM *number;
	char *text;

	value = value.size > 0 ? type_trim_varint(value) : value;
	if (value.size <= 8) {
		buffer_printf(out, "%" PRId64, type_load_signed(value));
		return;
	}
	number = value_varint_to_bn(value);
	text = number != NULL ? BN_bn2dec(number) : NULL;
	if (text != NULL)
		buffer_put_string(out, text);
	else
		out->is_failed = true;
	OPENSSL_free(text);
	BN_free(number);
}

/* ---- Decimals ------------------------------------------------------------------------------ */

int
value_decimal_from_bn(const BIGNUM *unscaled, int32_t scale, struct arena *arena, struct slice *out,
    struct error *err)
{
	struct slice digits;
	uint8_t *bytes;

	if (value_varint_from_bn(unscaled, arena, &digits, err) != 0)
		return -1;
	bytes = value_alloc(arena, 4 + digits.size, err);
	if (bytes == NULL)
		return -1;
	store_u32(bytes, (uint32_t)scale);
	memcpy(bytes + 4, digits.data, digits.size);
	*out = slice_of(bytes, 4 + digits.size);
	return 0;
}

int
value_text_to_decimal(struct slice text, struct arena *arena, struct slice *out)
{
	const char *at = (const char *)text.data;
	const char *end = at + text.size;
	char *digits = arena_alloc_bytes(arena, text.size + 2);
	size_t count = 0, fraction = 0;
	bool has_point = false, has_digit = false;
	int64_t exponent = 0, scale;
	BIGNUM *number;
	int rc;

	if (digits == NULL)
		return -1;
	if (at < end && (*at == '-' || *at == '+'))
		digits[count++] = *at++;
	for (; at < end && (isdigit((uint8_t)*at) || (*at == '.' && !has_point)); at++) {
		if (*at == '.') {
			has_point = true;
			continue;
		}
		has_digit = true;
		fraction += has_point;
		digits[count++] = *at;
	}
	if (!has_digit)
		return -1;
	if (at < end && (*at == 'e' || *at == 'E')) {
		if (!value_text_to_integer(
			slice_of(at + 1, (size_t)(end - at - 1)), -INT32_MAX, INT32_MAX, &exponent))
			return -1;
		at = end;
	}
	scale = (int64_t)fraction - exponent;
	if (at != end || scale < INT32_MIN || scale > INT32_MAX)
		return -1;
	number = value_digits_to_bn(digits, count);
	if (number == NULL)
		return -1;
	rc = value_decimal_from_bn(number, (int32_t)scale, arena, out, NULL);
	BN_free(number);
	return rc;
}

void
value_print_decimal(struct slice value, struct buffer *out)
{
	struct buffer text;
	const char *digits;
	int64_t scale, adjusted;
	size_t count, i;

	if (value.size < 5) {
		buffer_put_string(out, "0");
		return;
	}
	scale = (int32_t)load_u32(value.data);
	buffer_init(&text);
	value_print_varint(slice_of(value.data + 4, value.size - 4), &text);
	buffer_put_u8(&text, 0);
	if (text.is_failed) {
		out->is_failed = true;
		buffer_fini(&text);
		return;
	}
	digits = (const char *)text.data;
	if (*digits == '-') {
		buffer_put_u8(out, '-');
		digits++;
	}
	count = strlen(digits);
	adjusted = (int64_t)count - 1 - scale;
	if (scale == 0) {
		buffer_put_string(out, digits);
	} else if (scale > 0 && adjusted >= -6) {
		if ((int64_t)count > scale) {
			buffer_put(out, digits, count - (size_t)scale);
			buffer_put_u8(out, '.');
			buffer_put_string(out, digits + count - (size_t)scale);
		} else {
			buffer_put_string(out, "0.");
			for (i = count; i < (size_t)scale; i++)
				buffer_put_u8(out, '0');
			buffer_put_string(out, digits);
		}
	} else {
		buffer_put_u8(out, (uint8_t)digits[0]);
		if (count > 1) {
			buffer_put_u8(out, '.');
			buffer_put_string(out, digits + 1);
		}
		if (adjusted != 0)
			buffer_printf(out, "E%+" PRId64, adjusted);
	}
	buffer_fini(&text);
}

/* ---- Floating point ------------------------------------------------------------------------ */

/* d.ddd * 10^exponent in Java's way: plain from 0.001 to 10^7, else with E; at least one digit
 * after the point. */
static void
value_print_digits(
    bool is_negative, const char *digits, size_t count, int exponent, struct buffer *out)
{
	int i;

	while (count > 1 && digits[count - 1] == '0')
		count--;
	if (is_negative)
		buffer_put_u8(out, '-');
	if (exponent < -3 || exponent >= 7) {
		buffer_put_u8(out, (uint8_t)digits[0]);
		buffer_put_u8(out, '.');
		if (count > 1)
			buffer_put(out, digits + 1, count - 1);
		else
			buffer_put_u8(out, '0');
		buffer_printf(out, "E%d", exponent);
		return;
	}
	if (exponent < 0) {
		buffer_put_string(out, "0.");
		for (i = -1; i > exponent; i--)
			buffer_put_u8(out, '0');
		buffer_put(out, digits, count);
		return;
	}
	for (i = 0; i <= exponent; i++)
		buffer_put_u8(out, i < (int)count ? (uint8_t)digits[i] : '0');
	buffer_put_u8(out, '.');
	if ((int)count > exponent + 1)
		buffer_put(out, digits + exponent + 1, count - (size_t)exponent - 1);
	else
		buffer_put_u8(out, '0');
}

static bool
value_print_special(double value, struct buffer *out)
{
	if (isnan(value))
		buffer_put_string(out, "NaN");
	else if (isinf(value))
		buffer_put_string(out, value < 0 ? "-Infinity" : "Infinity");
	else if (value == 0)
		buffer_put_string(out, signbit(value) ? "-0.0" : "0.0");
	else
		return false;
	return true;
}

/*
 * Integers below 2^63: before version 19 Java prints every digit that the significant bits hold,
 * not the shortest ones that read back: 1.10000005E10 for the float 1.1e10.
 */
static bool
value_print_whole(double value, int significant_bits, struct buffer *out)
{
	double magnitude = fabs(value);
	char digits[32];
	uint64_t number, power = 1;
	int binary_exponent, dropped = 0, length, i;

	if (magnitude != floor(magnitude) || magnitude >= 9223372036854775808.0)
		return false;
	frexp(magnitude, &binary_exponent);
	binary_exponent--;
	if (binary_exponent <= significant_bits)
		return false; /* the shortest digits are the same */
	if (binary_exponent - significant_bits - 1 > 1)
		dropped = (int)((binary_exponent - significant_bits - 1) * 0.30102999566398119);
	number = (uint64_t)magnitude;
	for (i = 0; i < dropped; i++)
		power *= 10;
	if (power > 1)
		number = number / power + (number % power >= power / 2);
	length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	value_print_digits(value < 0, digits, (size_t)length, length - 1 + dropped, out);
	return true;
}

/* The fewest digits, at least two, that read back as the same number. */
static void
value_print_shortest(double value, bool is_float, struct buffer *out)
{
	char text[40], digits[24];
	int precision, exponent;
	size_t count = 0, i;

	for (precision = 1; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, fabs(value));
		if (is_float ? strtof(text, NULL) == (float)fabs(value)
			     : strtod(text, NULL) == fabs(value))
			break;
	}
	for (i = 0; text[i] != 'e'; i++) {
		if (text[i] != '.')
			digits[count++] = text[i];
	}
	exponent = atoi(text + i + 1);
	value_print_digits(value < 0, digits, count, exponent, out);
}

void
value_print_double(double value, struct buffer *out)
{
	if (value_print_special(value, out) || value_print_whole(value, 53, out))
		return;
	value_print_shortest(value, false, out);
}

void
value_print_float(float value, struct buffer *out)
{
	if (value_print_special(value, out) || value_print_whole(value, 24, out))
		return;
	value_print_shortest(value, true, out);
}
