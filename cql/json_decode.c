/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values to bytes: AbstractType.fromJSONObject of each type, error texts included. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cql/json.h"
#include "cql/json_parse.h"
#include "cql/type_internal.h"
#include "cql/value.h"
#include "cql/value_internal.h"

/* The Java class that Jackson would have made of it, as error texts name it. */
static const char *
json_class(const struct json *json)
{
	int64_t number;

	switch (json->kind) {
	case JSON_TRUE:
	case JSON_FALSE:
		return "Boolean";
	case JSON_INTEGER:
		if (value_text_to_integer(json->text, INT32_MIN, INT32_MAX, &number))
			return "Integer";
		return value_text_to_integer(json->text, INT64_MIN, INT64_MAX, &number)
		    ? "Long"
		    : "BigInteger";
	case JSON_REAL:
		return "Double";
	case JSON_STRING:
		return "String";
	case JSON_ARRAY:
		return "ArrayList";
	case JSON_OBJECT:
		return "LinkedHashMap";
	default:
		return "null";
	}
}

/* "Expected <what>, but got a Integer: 1" */
static int
json_unexpected(const char *what, const struct json *json, struct arena *arena, struct error *err)
{
	return error_set(err, ERROR_INVALID, "Expected %s, but got a %s: %s", what,
	    json_class(json), json_show(json, arena));
}

static int
json_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "out of memory for a value");
}

/* int and bigint: a number of the right size or a string. */
static int
json_to_integer(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	bool is_int = type->kind == TYPE_INT;
	int64_t number;

	if (json->kind == JSON_STRING)
		return value_from_string(type, json->text, arena, out, err);
	if (json->kind != JSON_INTEGER ||
	    !value_text_to_integer(json->text, is_int ? INT32_MIN : INT64_MIN,
		is_int ? INT32_MAX : INT64_MAX, &number))
		return json_unexpected(
		    is_int ? "an int value" : "a bigint value", json, arena, err);
	return value_put_integer(number, is_int ? 4 : 8, arena, out, err);
}

/* smallint and tinyint read the text of any number. */
static int
json_to_small(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	if (json->kind != JSON_STRING && json->kind != JSON_INTEGER && json->kind != JSON_REAL)
		return json_unexpected(
		    type->kind == TYPE_SMALLINT ? "a short value" : "a byte value", json, arena,
		    err);
	if (json->kind == JSON_STRING && json->text.size == 0) {
		*out = slice_empty;
		return 0;
	}
	return value_from_string(type, json->text, arena, out, err);
}

static int
json_to_varint(const struct json *json, struct arena *arena, struct slice *out, struct error *err)
{
	if ((json->kind == JSON_STRING || json->kind == JSON_INTEGER) && json->text.size > 0 &&
	    value_parse_varint(json->text, arena, out, NULL) == 0)
		return 0;
	return error_set(err, ERROR_INVALID,
	    "Value '%s' is not a valid representation of a varint value", json_show(json, arena));
}

/* A number with a point has gone through a double on its way; a string keeps its digits. */
static int
json_to_decimal(const struct json *json, struct arena *arena, struct slice *out, struct error *err)
{
	const char *text = json_show(json, arena);

	if (json->kind == JSON_STRING && json->text.size == 0) {
		*out = slice_empty;
		return 0;
	}
	if ((json->kind == JSON_STRING || json->kind == JSON_INTEGER || json->kind == JSON_REAL) &&
	    value_text_to_decimal(slice_of_string(text), arena, out) == 0)
		return 0;
	return error_set(err, ERROR_INVALID,
	    "Value '%s' is not a valid representation of a decimal value", text);
}

static int
json_to_float(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	bool is_float = type->kind == TYPE_FLOAT;
	double number;

	if (json->kind == JSON_STRING)
		return value_from_string(type, json->text, arena, out, err);
	if ((json->kind != JSON_INTEGER && json->kind != JSON_REAL) ||
	    !value_text_to_double(json->text, &number))
		return json_unexpected(
		    is_float ? "a float value" : "a double value", json, arena, err);
	if (is_float)
		return value_put_float((float)number, arena, out, err);
	return value_put_double(number, arena, out, err);
}

static int
json_to_boolean(const struct json *json, struct arena *arena, struct slice *out, struct error *err)
{
	if (json->kind == JSON_STRING)
		return value_from_string(type_native(TYPE_BOOLEAN), json->text, arena, out, err);
	if (json->kind != JSON_TRUE && json->kind != JSON_FALSE)
		return json_unexpected("a boolean value", json, arena, err);
	return value_put_integer(json->kind == JSON_TRUE, 1, arena, out, err);
}

static int
json_to_blob(const struct json *json, struct arena *arena, struct slice *out, struct error *err)
{
	struct slice text = json->text;
	const char *why = "not a string";
	struct error inner;

	if (json->kind == JSON_STRING) {
		if (text.size >= 2 && memcmp(text.data, "0x", 2) == 0) {
			if (value_from_string(type_native(TYPE_BLOB),
				slice_of(text.data + 2, text.size - 2), arena, out, &inner) == 0)
				return 0;
			why = inner.text;
		} else {
			why = arena_printf(arena,
			    "String representation of blob is missing 0x prefix: %.*s",
			    VALUE_ARGS(text));
		}
	}
	return error_set(err, ERROR_INVALID, "Value '%s' is not a valid blob representation: %s",
	    json_show(json, arena), why != NULL ? why : "?");
}

static int
json_to_timestamp(
    const struct json *json, struct arena *arena, struct slice *out, struct error *err)
{
	int64_t number;

	if (json->kind == JSON_STRING)
		return value_from_string(type_native(TYPE_TIMESTAMP), json->text, arena, out, err);
	/* Integers that fit an int are refused there: Jackson made no Long of them. */
	if (json->kind == JSON_INTEGER &&
	    value_text_to_integer(json->text, INT64_MIN, INT64_MAX, &number) &&
	    (number < INT32_MIN || number > INT32_MAX))
		return value_put_integer(number, 8, arena, out, err);
	return json_unexpected(
	    "a long or a datestring representation of a timestamp value", json, arena, err);
}

/* Types that are written as strings only. */
static int
json_to_string_only(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	const char *what;

	if (json->kind == JSON_STRING)
		return value_from_string(type, json->text, arena, out, err);
	switch (type->kind) {
	case TYPE_TEXT:
		what = "a UTF-8 string";
		break;
	case TYPE_ASCII:
		what = "an ascii string";
		break;
	case TYPE_UUID:
		what = "a string representation of a uuid";
		break;
	case TYPE_TIMEUUID:
		what = "a string representation of a timeuuid";
		break;
	case TYPE_INET:
		what = "a string representation of an inet value";
		break;
	case TYPE_DATE:
		what = "a string representation of a date value";
		break;
	case TYPE_TIME:
		what = "a string representation of a time value";
		break;
	case TYPE_DURATION:
		what = "a string representation of a duration";
		break;
	default:
		what = "a string";
		break;
	}
	return json_unexpected(what, json, arena, err);
}

/* ---- What has elements --------------------------------------------------------------------- */

static int
json_pack(const struct type *type, struct slice *elements, uint32_t count, struct arena *arena,
    struct slice *out, struct error *err)
{
	*out = type_pack(type, elements, count, arena);
	return slice_is_null(*out) ? json_no_memory(err) : 0;
}

static int
json_to_list(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	bool is_set = type->kind == TYPE_SET;
	struct slice *elements;
	uint32_t count = json->count, i;

	if (json->kind != JSON_ARRAY)
		return json_unexpected(
		    is_set ? "a list (representing a set)" : "a list", json, arena, err);
	elements = arena_calloc(arena, count + 1, sizeof(*elements));
	if (elements == NULL)
		return json_no_memory(err);
	for (i = 0; i < count; i++) {
		if (json->items[i].kind == JSON_NULL)
			return error_set(err, ERROR_INVALID, "Invalid null element in %s",
			    is_set ? "set" : "list");
		if (json_decode(type->params[0], &json->items[i], arena, &elements[i], err) != 0)
			return -1;
	}
	if (type->kind == TYPE_VECTOR && count != type->dimension)
		return error_set(err, ERROR_INVALID,
		    "Invalid number of elements in vector: expected %u but got %u", type->dimension,
		    count);
	if (is_set)
		count = type_sort_elements(type->params[0], elements, count, 1);
	return json_pack(type, elements, count, arena, out, err);
}

static int
json_to_map(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct slice *pairs;
	uint32_t i, count = json->count;

	if (json->kind != JSON_OBJECT)
		return json_unexpected("a map", json, arena, err);
	pairs = arena_calloc(arena, 2 * (size_t)count + 1, sizeof(*pairs));
	if (pairs == NULL)
		return json_no_memory(err);
	for (i = 0; i < count; i++) {
		const struct json *value = &json->items[2 * i + 1];

		if (value->kind == JSON_NULL)
			return error_set(err, ERROR_INVALID, "Invalid null value in map");
		if (json_decode(type->params[0], &json->items[2 * i], arena, &pairs[2 * i], err) !=
			0 ||
		    json_decode(type->params[1], value, arena, &pairs[2 * i + 1], err) != 0)
			return -1;
	}
	count = type_sort_elements(type->params[0], pairs, count, 2);
	return json_pack(type, pairs, count, arena, out, err);
}

static int
json_to_tuple(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct slice *fields;
	uint32_t i;

	if (json->kind != JSON_ARRAY)
		return json_unexpected("a list representation of a tuple", json, arena, err);
	if (json->count != type->param_count)
		return error_set(err, ERROR_INVALID, "Tuple %s items (expected %u): %s",
		    json->count < type->param_count ? "is missing" : "contains extra",
		    type->param_count, json_show(json, arena));
	fields = arena_calloc(arena, json->count + 1, sizeof(*fields));
	if (fields == NULL)
		return json_no_memory(err);
	for (i = 0; i < json->count; i++) {
		if (json->items[i].kind == JSON_NULL)
			fields[i] = slice_null;
		else if (json_decode(type->params[i], &json->items[i], arena, &fields[i], err) != 0)
			return -1;
	}
	return json_pack(type, fields, json->count, arena, out, err);
}

/* Folded to lower case unless it is in double quotes, which are taken off. */
static struct slice
json_fold_name(struct slice name, struct arena *arena)
{
	uint8_t *folded;
	size_t i;

	if (name.size >= 2 && name.data[0] == '"' && name.data[name.size - 1] == '"')
		return slice_of(name.data + 1, name.size - 2);
	folded = arena_alloc_bytes(arena, name.size);
	if (folded == NULL)
		return slice_null;
	for (i = 0; i < name.size; i++)
		folded[i] = (uint8_t)tolower(name.data[i]);
	return slice_of(folded, name.size);
}

static int
json_to_udt(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct slice *fields;
	uint32_t i;

	if (json->kind != JSON_OBJECT)
		return json_unexpected("a map", json, arena, err);
	fields = arena_calloc(arena, type->param_count + 1, sizeof(*fields));
	if (fields == NULL)
		return json_no_memory(err);
	for (i = 0; i < json->count; i++) {
		struct slice name = json_fold_name(json->items[2 * i].text, arena);
		const struct json *value = &json->items[2 * i + 1];
		int field;

		if (slice_is_null(name))
			return json_no_memory(err);
		field = type_field_index(type, name);
		if (field < 0)
			return error_set(err, ERROR_INVALID,
			    "Unknown field '%.*s' in value of user defined type %.*s",
			    VALUE_ARGS(name), VALUE_ARGS(type->name));
		if (value->kind == JSON_NULL)
			fields[field] = slice_null;
		else if (json_decode(type->params[field], value, arena, &fields[field], err) != 0)
			return -1;
	}
	return json_pack(type, fields, type->param_count, arena, out, err);
}

/* ---- Dispatch ------------------------------------------------------------------------------ */

static int
json_decode_elements(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	struct json inner;

	/* The whole thing may stand in a string: keys of maps have no other way. */
	if (json->kind == JSON_STRING) {
		if (json_parse(json->text, arena, &inner, err) != 0) {
			error_prefix(err, "Error decoding JSON string");
			return -1;
		}
		if (inner.kind == JSON_STRING)
			return json_unexpected("a list", &inner, arena, err);
		json = &inner;
	}
	switch (type->kind) {
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_VECTOR:
		return json_to_list(type, json, arena, out, err);
	case TYPE_MAP:
		return json_to_map(type, json, arena, out, err);
	case TYPE_TUPLE:
		return json_to_tuple(type, json, arena, out, err);
	default:
		return json_to_udt(type, json, arena, out, err);
	}
}

int
json_decode(const struct type *type, const struct json *json, struct arena *arena,
    struct slice *out, struct error *err)
{
	type = type_unreversed(type, NULL);
	switch (type->kind) {
	case TYPE_INT:
	case TYPE_BIGINT:
		return json_to_integer(type, json, arena, out, err);
	case TYPE_SMALLINT:
	case TYPE_TINYINT:
		return json_to_small(type, json, arena, out, err);
	case TYPE_VARINT:
		return json_to_varint(json, arena, out, err);
	case TYPE_DECIMAL:
		return json_to_decimal(json, arena, out, err);
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return json_to_float(type, json, arena, out, err);
	case TYPE_BOOLEAN:
		return json_to_boolean(json, arena, out, err);
	case TYPE_BLOB:
		return json_to_blob(json, arena, out, err);
	case TYPE_TIMESTAMP:
		return json_to_timestamp(json, arena, out, err);
	case TYPE_LIST:
	case TYPE_SET:
	case TYPE_MAP:
	case TYPE_TUPLE:
	case TYPE_UDT:
	case TYPE_VECTOR:
		return json_decode_elements(type, json, arena, out, err);
	case TYPE_COUNTER:
	case TYPE_COMPOSITE:
	case TYPE_CUSTOM:
		return error_set(err, ERROR_INVALID, "JSON is not supported for type %s",
		    type_name(arena, type));
	default:
		return json_to_string_only(type, json, arena, out, err);
	}
}

int
json_to_value(const struct type *type, struct slice text, struct arena *arena, struct slice *out,
    struct error *err)
{
	struct json json;

	if (json_parse(text, arena, &json, err) != 0) {
		error_prefix(err, "Error decoding JSON string");
		return -1;
	}
	if (json.kind == JSON_NULL) {
		*out = slice_null;
		return 0;
	}
	/* An empty multi-cell collection is no collection. */
	if (type->is_multi_cell && type_is_collection(type) && json.count == 0 &&
	    json.kind == (type->kind == TYPE_MAP ? JSON_OBJECT : JSON_ARRAY)) {
		*out = slice_null;
		return 0;
	}
	return json_decode(type, &json, arena, out, err);
}

int
json_parse_object(struct slice document, struct arena *arena, struct json_field **fields,
    uint32_t *count, struct error *err)
{
	struct json json;
	uint32_t i, j, n = 0;

	if (json_parse(document, arena, &json, err) != 0) {
		error_prefix(err, "Could not decode JSON string as a map");
		if (err != NULL && err->code == ERROR_INVALID)
			return error_set(err, ERROR_INVALID, "%s. (String was: %.*s)",
			    arena_strdup(arena, err->text), VALUE_ARGS(document));
		return -1;
	}
	if (json.kind == JSON_NULL)
		return error_set(err, ERROR_INVALID, "Got null for INSERT JSON values");
	if (json.kind != JSON_OBJECT)
		return error_set(err, ERROR_INVALID,
		    "Could not decode JSON string as a map: Cannot deserialize value of type "
		    "java.util.LinkedHashMap. (String was: %.*s)",
		    VALUE_ARGS(document));
	*fields = arena_calloc(arena, json.count + 1, sizeof(**fields));
	if (*fields == NULL)
		return json_no_memory(err);
	for (i = 0; i < json.count; i++) {
		struct slice name = json_fold_name(json.items[2 * i].text, arena);

		if (slice_is_null(name))
			return json_no_memory(err);
		for (j = 0; j < n && !slice_equal((*fields)[j].name, name); j++)
			continue;
		(*fields)[j].name = name;
		(*fields)[j].value = json.items[2 * i + 1].source;
		(*fields)[j].is_null = json.items[2 * i + 1].kind == JSON_NULL;
		if (j == n)
			n++;
	}
	*count = n;
	return 0;
}
