/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_VALUE_INTERNAL_H
#define HELENUS_CQL_VALUE_INTERNAL_H

/* What the files value*.c, json*.c and function*.c share. */
#include <openssl/bn.h>
#include "cql/value.h"

/* For "%.*s". */
#define VALUE_ARGS(slice) (int)(slice).size, (slice).size > 0 ? (const char *)(slice).data : ""

/* Bytes of the arena to fill, or NULL with ERROR_NO_MEMORY. */
uint8_t *value_alloc(struct arena *arena, size_t size, struct error *err);

/* A number of 1, 2, 4 or 8 bytes in the arena. */
int value_put_integer(
    int64_t number, size_t size, struct arena *arena, struct slice *out, struct error *err);
int value_put_double(double number, struct arena *arena, struct slice *out, struct error *err);
int value_put_float(float number, struct arena *arena, struct slice *out, struct error *err);
double value_get_double(struct slice value); /* 8 bytes */
float value_get_float(struct slice value); /* 4 bytes */

/* Long.parseLong and Double.parseDouble: the whole text or false. */
bool value_text_to_integer(struct slice text, int64_t min, int64_t max, int64_t *out);
bool value_text_to_double(struct slice text, double *out);
bool value_text_to_float(struct slice text, float *out);

/* Big integers. The caller frees with BN_free(); NULL without memory. */
BIGNUM *value_varint_to_bn(struct slice value);
int value_varint_from_bn(
    const BIGNUM *number, struct arena *arena, struct slice *out, struct error *err);

/* [+-]digits[.digits][e[+-]digits] to a decimal; -1 without text in err when it is none (err is
 * only set without memory). */
int value_text_to_decimal(struct slice text, struct arena *arena, struct slice *out);
int value_decimal_from_bn(const BIGNUM *unscaled, int32_t scale, struct arena *arena,
    struct slice *out, struct error *err);
/* BigDecimal.toString. */
void value_print_decimal(struct slice value, struct buffer *out);

/* "2011-02-03<separator>04:05:06.000Z" */
void value_print_timestamp_separated(int64_t ms, char separator, struct buffer *out);

/* "1.2.3.4" and "2001:db8:0:0:0:0:0:1" as Java prints them. */
void value_print_inet(struct slice value, struct buffer *out);
bool value_text_to_inet(struct slice text, struct arena *arena, struct slice *out);

#endif
