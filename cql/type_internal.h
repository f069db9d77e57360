/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_TYPE_INTERNAL_H
#define HELENUS_CQL_TYPE_INTERNAL_H

/* What the files type*.c and the neighbours that decode values share. */
#include "base/bytes.h"
#include "cql/type.h"

/* "org.apache.cassandra.db.marshal." */
#define TYPE_CLASS_PACKAGE "org.apache.cassandra.db.marshal."

/* The simple name of the class of a kind ("Int32Type"). */
const char *type_class_of(enum type_kind kind);
/* The CQL name of a native kind ("int"). */
const char *type_cql_of(enum type_kind kind);

/* Signed 64-bit reading of 0..8 big-endian bytes. */
static inline int64_t
type_load_signed(struct slice value)
{
	uint64_t result = value.size > 0 && (value.data[0] & 0x80) ? UINT64_MAX : 0;
	size_t i;

	for (i = 0; i < value.size && i < 8; i++)
		result = (result << 8) | value.data[i];
	return (int64_t)result;
}

/* Two's complement without superfluous sign bytes; at least one byte stays. */
static inline struct slice
type_trim_varint(struct slice value)
{
	while (value.size > 1 &&
	    ((value.data[0] == 0 && !(value.data[1] & 0x80)) ||
		(value.data[0] == 0xff && (value.data[1] & 0x80)))) {
		value.data++;
		value.size--;
	}
	return value;
}

/* The 60-bit time of a version 1 uuid with its version nibble on top, so that it sorts by time. */
static inline uint64_t
type_uuid_time(const uint8_t *uuid)
{
	uint64_t high = load_u64(uuid);

	return (high << 48) | ((high << 16) & 0xffff00000000) | (high >> 32);
}

/* Flips the bytes of a uuid's low half so that, as unsigned, they sort as signed bytes do. */
#define TYPE_SIGNED_BYTES 0x8080808080808080

/* The bits of a float so that unsigned order is that of Float.compare. */
static inline uint64_t
type_double_order(uint64_t bits)
{
	if ((bits & 0x7fffffffffffffff) > 0x7ff0000000000000)
		bits = 0x7ff8000000000000;
	return bits & 0x8000000000000000 ? ~bits : bits | 0x8000000000000000;
}

static inline uint32_t
type_float_order(uint32_t bits)
{
	if ((bits & 0x7fffffff) > 0x7f800000)
		bits = 0x7fc00000;
	return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

/*
 * A decimal as sign, decimal exponent and digits without zeros at either end: the value is
 * 0.d1d2d3... * 10^exponent. NULL digits and sign 0 for zero.
 */
struct type_decimal {
	int sign;
	int64_t exponent;
	char *digits; /* points into text, or owned: free with type_decimal_fini() */
	size_t digit_count;
	char text[24];
	void *owned;
};

/* The value has at least 4 bytes. */
void type_decimal_init(struct type_decimal *decimal, struct slice value);
void type_decimal_fini(struct type_decimal *decimal);
int type_decimal_compare(struct slice a, struct slice b);

#endif
