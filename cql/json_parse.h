/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_JSON_PARSE_H
#define HELENUS_CQL_JSON_PARSE_H

/*
 * JSON text to a tree in an arena. Of our own since jansson refuses what Cassandra takes and must
 * keep: integers of any size, the exact text of decimals, and text behind the document.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/type.h"

enum json_kind {
	JSON_NULL,
	JSON_TRUE,
	JSON_FALSE,
	JSON_INTEGER, /* text: sign and digits */
	JSON_REAL, /* text: with a point or an exponent */
	JSON_STRING, /* text: UTF-8, escapes resolved */
	JSON_ARRAY, /* count items */
	JSON_OBJECT, /* 2 * count items: key (JSON_STRING) and value */
};

enum { JSON_DEPTH_MAX = 64 };

struct json {
	enum json_kind kind;
	uint32_t count;
	struct slice text;
	struct json *items;
	struct slice source; /* the text of the value in the document */
};

/* Text after the first value is ignored. ERROR_INVALID "<what>: line 1, column 5" */
int json_parse(struct slice text, struct arena *arena, struct json *out, struct error *err);

/* "[1, a]" as Java's toString of the decoded value, for error texts. In the arena. */
const char *json_show(const struct json *json, struct arena *arena);

/* Bytes of a decoded value. */
int json_decode(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err);

#endif
