/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CQL_JSON_H
#define HELENUS_CQL_JSON_H

/*
 * JSON as SELECT JSON, INSERT JSON, toJson() and fromJson() have it (AbstractType.toJSONString,
 * fromJSONObject, cql3/Json.java). No state; any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/type.h"

/* Append the JSON text of a value; null (and the empty value where Cassandra says so) is null. */
void json_from_value(const struct type *type, struct slice value, struct buffer *out);

/* Append "text" with JSON escapes. */
void json_put_string(struct slice text, struct buffer *out);
/* The key of a column in SELECT JSON: "name", or "\"Name\"" when it is not all lower case. */
void json_put_column_name(struct slice name, struct buffer *out);

/*
 * One JSON document to the bytes of a type. JSON null gives the null slice; {} and [] for a
 * multi-cell collection too. ERROR_INVALID with MarshalException's text, not prefixed (INSERT JSON
 * prefixes "Error decoding JSON value for c: ", fromJson makes it ERROR_FUNCTION_FAILURE).
 */
int json_to_value(const struct type *type, struct slice json, struct arena *arena,
    struct slice *out, struct error *err);

struct json_field {
	struct slice name; /* column name: case folded unless quoted inside; arena */
	struct slice value; /* JSON text of the value: give it to json_to_value() */
	bool is_null;
};

/*
 * The object of INSERT JSON. Duplicate keys: the last wins. ERROR_INVALID "Could not decode JSON
 * string as a map: ... String was: ...". "Got null for INSERT JSON values" for a null document.
 */
int json_parse_object(struct slice document, struct arena *arena, struct json_field **fields,
    uint32_t *count, struct error *err);

#endif
