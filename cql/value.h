/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_VALUE_H
#define HELENUS_CQL_VALUE_H

/*
 * Values as text: the literals of CQL to bytes and back (Constants.Literal, AbstractType.fromString,
 * getString, toCQLLiteral). Collections, tuples and user types as literals are put together by who
 * prepares the statement, with type_pack(). No state; any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/type.h"

/* The kinds of constants the grammar knows (Constants.Type). */
enum literal_kind {
	LITERAL_STRING,
	LITERAL_INTEGER,
	LITERAL_UUID,
	LITERAL_FLOAT,
	LITERAL_BOOLEAN,
	LITERAL_HEX, /* text with its 0x */
	LITERAL_DURATION,
};

/* "STRING", "INTEGER", ...: as error texts have it. */
const char *literal_kind_name(enum literal_kind kind);

/* How well a term fits a type (AssignmentTestable.TestResult). */
enum assignment {
	ASSIGNMENT_EXACT,
	ASSIGNMENT_WEAK,
	ASSIGNMENT_NOT,
};

enum assignment literal_test(enum literal_kind kind, struct slice text, const struct type *type);
/* The type that a literal prefers (Constants.Type.getPreferedTypeFor): ascii or text, the smallest of
 * int, bigint and varint, double or decimal, ... */
const struct type *literal_exact_type(enum literal_kind kind, struct slice text);

/*
 * The bytes of a literal for a receiver. `column` names it in the error: ERROR_INVALID
 * "Invalid STRING constant (x) for \"c\" of type int". For strings `text` is without its quotes.
 * The value may point into `text` (text, ascii), or is in the arena.
 */
int literal_to_value(enum literal_kind kind, struct slice text, const struct type *type,
    struct slice column, struct arena *arena, struct slice *out, struct error *err);

/* AbstractType.fromString: the text form, not quoted. Frozen collections and tuples too as far as
 * Cassandra's fromString goes (tuples "a:b:@"). ERROR_INVALID with MarshalException's text. */
int value_from_string(const struct type *type, struct slice text, struct arena *arena,
    struct slice *out, struct error *err);

/* AbstractType.getString: as logs, nodetool and error texts show a value; appended. A value that is
 * not valid is shown as hex. */
void value_to_string(const struct type *type, struct slice value, struct buffer *out);
/* AbstractType.toCQLString: a literal that can be parsed back ('a''b', {1, 2}); null is "null". */
void value_to_literal(const struct type *type, struct slice value, struct buffer *out);

/* ---- Parts of it that others need ---------------------------------------------------------- */

/* Milliseconds from the text forms of TY-13. now_ms answers 'now'. */
int value_parse_timestamp(struct slice text, int64_t now_ms, int64_t *ms, struct error *err);
/* Days + 2^31, TY-14. */
int value_parse_date(struct slice text, uint32_t *days, struct error *err);
/* Nanoseconds of the day, TY-15. */
int value_parse_time(struct slice text, int64_t *ns, struct error *err);

struct duration {
	int32_t months;
	int32_t days;
	int64_t nanoseconds;
};

int value_parse_duration(struct slice text, struct duration *out, struct error *err);
/* -1 with ERROR_INVALID when the bytes are no duration. */
int value_decode_duration(struct slice value, struct duration *out, struct error *err);
/* Appends the three vints. */
void value_encode_duration(const struct duration *duration, struct buffer *out);
/* "1y2mo3d4h" as Duration.toString. */
void value_print_duration(const struct duration *duration, struct buffer *out);
/* "2011-02-03 04:05:06.000Z" (JSON form of timestamps). */
void value_print_timestamp(int64_t ms, struct buffer *out);
void value_print_date(uint32_t days, struct buffer *out);
void value_print_time(int64_t ns, struct buffer *out);
/* 1.0E10, 0.001, NaN as Java's Double.toString / Float.toString (JDK 11). */
void value_print_double(double value, struct buffer *out);
void value_print_float(float value, struct buffer *out);
/* Civil date of a day number since 1970-01-01 and back (proleptic Gregorian). */
void value_civil_from_days(int64_t days, int64_t *year, int *month, int *day);
int64_t value_days_from_civil(int64_t year, int month, int day);

/*
 * A string literal of INSERT, JSON, ... that may be longer than the limit is checked by callers.
 * Big integers: decimal text of a varint's bytes, and minimal two's complement bytes of a text.
 */
void value_print_varint(struct slice value, struct buffer *out);
int
value_parse_varint(struct slice text, struct arena *arena, struct slice *out, struct error *err);

#endif
