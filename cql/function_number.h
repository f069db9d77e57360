/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_FUNCTION_NUMBER_H
#define HELENUS_CQL_FUNCTION_NUMBER_H

/* Numbers of any numeric type, converted as Java's Number does. Values are valid and not empty. */
#include <openssl/bn.h>
#include "cql/function.h"

/* A decimal with its digits in a BIGNUM; free with function_number_fini(). */
struct function_number {
	BIGNUM *unscaled; /* owned; NULL: no number (NaN), or no memory */
	int64_t scale;
};

/* More digits than this are not computed with: a decimal of a few bytes can stand for 2^31 of them. */
enum { FUNCTION_DIGITS_MAX = 10000 };

/* An integer type, decimal or varint; -1 for NaN, infinities and without memory. */
int
function_number_init(struct function_number *number, const struct type *type, struct slice value);
void function_number_fini(struct function_number *number);
/* Multiply by 10^digits; -1 when that is more than FUNCTION_DIGITS_MAX. */
int function_bn_scale(BIGNUM *number, int64_t digits);
/* Quotient of a decimal division at `scale`, rounded half up or half even. NULL: division by zero,
 * too many digits. */
BIGNUM *function_bn_divide(const struct function_number *a, const struct function_number *b,
    int64_t scale, bool is_half_even);
/* BigDecimal.stripTrailingZeros. */
void function_number_strip(struct function_number *number);
/* BigDecimal.precision: decimal digits of the unscaled value; 1 for zero. */
int64_t function_bn_digits(const BIGNUM *number);
/* Serialise as `type` (varint drops nothing: scale is 0). */
int function_number_put(const struct function_number *number, const struct type *type,
    struct arena *arena, struct slice *out, struct error *err);

/* Narrowed to `size` bytes (1, 2, 4, 8): integers wrap, floating point saturates at int or long
 * first, NaN is 0. */
int64_t function_to_integer(const struct type *type, struct slice value, size_t size);
double function_to_double(const struct type *type, struct slice value);
float function_to_float(const struct type *type, struct slice value);

#endif
