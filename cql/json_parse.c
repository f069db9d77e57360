/* SPDX-License-Identifier: Apache-2.0 */
#include "cql/type.h"
#include "cql/json_parse.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include "cql/json.h"
#include "cql/value.h"
#include "cql/value_internal.h"

struct json_parser {
	const uint8_t *start;
	const uint8_t *at;
	const uint8_t *end;
	int depth;
	struct arena *arena;
	struct error *err;
};

static int
json_fail(struct json_parser *parser, const char *what)
{
	size_t line = 1, column = 1;
	const uint8_t *at;

	for (at = parser->start; at < parser->at && at < parser->end; at++) {
		column++;
		if (*at == '\n') {
			line++;
			column = 1;
		}
	}
	return error_set(
	    parser->err, ERROR_INVALID, "%s; line: %zu, column: %zu", what, line, column);
}

static int
json_no_memory(struct json_parser *parser)
{
	return error_set(parser->err, ERROR_NO_MEMORY, "out of memory for JSON");
}

static void
json_skip_blank(struct json_parser *parser)
{
	while (parser->at < parser->end &&
	    (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' ||
		*parser->at == '\r'))
		parser->at++;
}

static int
json_parse_word(struct json_parser *parser, struct json *out)
{
	static const struct {
		const char *word;
		enum json_kind kind;
	} words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
	const uint8_t *start = parser->at;
	char what[160];
	size_t i, length;

	while (parser->at < parser->end && (isalnum(*parser->at) || *parser->at == '_'))
		parser->at++;
	length = (size_t)(parser->at - start);
	for (i = 0; i < 3; i++) {
		if (slice_equal_string(slice_of(start, length), words[i].word)) {
			out->kind = words[i].kind;
			return 0;
		}
	}
	snprintf(what, sizeof(what),
	    "Unrecognized token '%.*s': was expecting (JSON String, Number, Array, Object or token "
	    "'null', 'true' or 'false')",
	    (int)(length < 40 ? length : 40), (const char *)start);
	return json_fail(parser, what);
}

static const uint8_t *
json_digits(const uint8_t *at, const uint8_t *end)
{
	while (at < end && isdigit(*at))
		at++;
	return at;
}

static int
json_parse_number(struct json_parser *parser, struct json *out)
{
	const uint8_t *start = parser->at, *at = start, *digits;

	if (*at == '-')
		at++;
	digits = at;
	at = json_digits(at, parser->end);
	if (at == digits || (*digits == '0' && at - digits > 1)) {
		parser->at = at;
		return json_fail(parser, "Invalid numeric value");
	}
	out->kind = JSON_INTEGER;
	if (at < parser->end && *at == '.') {
		digits = ++at;
		at = json_digits(at, parser->end);
		out->kind = at > digits ? JSON_REAL : JSON_NULL;
	}
	if (at < parser->end && (*at == 'e' || *at == 'E') && out->kind != JSON_NULL) {
		at++;
		if (at < parser->end && (*at == '-' || *at == '+'))
			at++;
		digits = at;
		at = json_digits(at, parser->end);
		out->kind = at > digits ? JSON_REAL : JSON_NULL;
	}
	parser->at = at;
	if (out->kind == JSON_NULL || (at < parser->end && (isalnum(*at) || *at == '.')))
		return json_fail(parser, "Invalid numeric value");
	out->text = slice_of(start, (size_t)(at - start));
	return 0;
}

static int
json_hex4(struct json_parser *parser, uint32_t *out)
{
	uint8_t bytes[2];

	if (parser->end - parser->at < 4 || hex_decode((const char *)parser->at, 4, bytes) != 0)
		return json_fail(parser, "Invalid hexadecimal escape");
	*out = load_u16(bytes);
	parser->at += 4;
	return 0;
}

static size_t
json_put_utf8(uint8_t *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (uint8_t)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | (code >> 6));
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (uint8_t)(0xe0 | (code >> 12));
		out[1] = (uint8_t)(0x80 | ((code >> 6) & 0x3f));
		out[2] = (uint8_t)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | (code >> 18));
	out[1] = (uint8_t)(0x80 | ((code >> 12) & 0x3f));
	out[2] = (uint8_t)(0x80 | ((code >> 6) & 0x3f));
	out[3] = (uint8_t)(0x80 | (code & 0x3f));
	return 4;
}

/* After the backslash and 'u'. A lone half of a pair becomes '?', as Java writes it as UTF-8. */
static int
json_parse_unicode(struct json_parser *parser, uint8_t *out, size_t *size)
{
	uint32_t code, low;

	if (json_hex4(parser, &code) != 0)
		return -1;
	if (code >= 0xd800 && code < 0xdc00 && parser->end - parser->at >= 6 &&
	    parser->at[0] == '\\' && parser->at[1] == 'u') {
		const uint8_t *back = parser->at;

		parser->at += 2;
		if (json_hex4(parser, &low) != 0)
			return -1;
		if (low >= 0xdc00 && low < 0xe000)
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		else
			parser->at = back;
	}
	if (code >= 0xd800 && code < 0xe000)
		code = '?';
	*size += json_put_utf8(out + *size, code);
	return 0;
}

static int
json_parse_escape(struct json_parser *parser, uint8_t *out, size_t *size)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	uint8_t c;

	if (parser->at == parser->end)
		return json_fail(parser, "Unexpected end-of-input in a String value");
	c = *parser->at++;
	if (c == 'u')
		return json_parse_unicode(parser, out, size);
	found = c != '\0' ? strchr(from, c) : NULL;
	if (found == NULL)
		return json_fail(parser, "Unrecognized character escape");
	out[(*size)++] = (uint8_t)to[found - from];
	return 0;
}

static int
json_parse_string(struct json_parser *parser, struct json *out)
{
	const uint8_t *close = parser->at + 1;
	uint8_t *text;
	size_t size = 0;

	/* Room: up to the closing quote, since no escape grows. */
	while (close < parser->end && *close != '"')
		close += *close == '\\' && close + 1 < parser->end ? 2 : 1;
	text = arena_alloc_bytes(parser->arena, (size_t)(close - parser->at) + 4);
	if (text == NULL)
		return json_no_memory(parser);
	parser->at++;
	for (;;) {
		uint8_t c;

		if (parser->at >= parser->end)
			return json_fail(parser, "Unexpected end-of-input in a String value");
		c = *parser->at++;
		if (c == '"')
			break;
		if (c < 0x20)
			return json_fail(parser,
			    "Illegal unquoted character: has to be escaped using backslash to be "
			    "included in string value");
		if (c != '\\')
			text[size++] = c;
		else if (json_parse_escape(parser, text, &size) != 0)
			return -1;
	}
	out->kind = JSON_STRING;
	out->text = slice_of(text, size);
	return 0;
}

static int json_parse_value(struct json_parser *parser, struct json *out);

struct json_list {
	struct json *items;
	uint32_t count;
	uint32_t capacity;
};

static struct json *
json_list_add(struct json_parser *parser, struct json_list *list)
{
	if (list->count == list->capacity) {
		uint32_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
		struct json *items = arena_calloc(parser->arena, capacity, sizeof(*items));

		if (items == NULL) {
			json_no_memory(parser);
			return NULL;
		}
		if (list->count > 0)
			memcpy(items, list->items, list->count * sizeof(*items));
		list->items = items;
		list->capacity = capacity;
	}
	return &list->items[list->count++];
}

static int
json_parse_key(struct json_parser *parser, struct json_list *list)
{
	struct json *key;

	json_skip_blank(parser);
	if (parser->at == parser->end || *parser->at != '"')
		return json_fail(
		    parser, "Unexpected character: was expecting double-quote to start field name");
	key = json_list_add(parser, list);
	if (key == NULL || json_parse_string(parser, key) != 0)
		return -1;
	json_skip_blank(parser);
	if (parser->at == parser->end || *parser->at != ':')
		return json_fail(parser,
		    "Unexpected character: was expecting a colon to separate field name and value");
	parser->at++;
	return 0;
}

static int
json_parse_items(struct json_parser *parser, struct json *out, bool is_object)
{
	uint8_t close = is_object ? '}' : ']';
	struct json_list list = {NULL, 0, 0};
	struct json *item;

	parser->at++;
	json_skip_blank(parser);
	if (parser->at < parser->end && *parser->at == close) {
		parser->at++;
	} else {
		for (;;) {
			if (is_object && json_parse_key(parser, &list) != 0)
				return -1;
			item = json_list_add(parser, &list);
			if (item == NULL || json_parse_value(parser, item) != 0)
				return -1;
			json_skip_blank(parser);
			if (parser->at == parser->end)
				return json_fail(parser,
				    is_object ? "Unexpected end-of-input: expected close marker "
						"for Object"
					      : "Unexpected end-of-input: expected close marker "
						"for Array");
			if (*parser->at++ == close)
				break;
			if (parser->at[-1] != ',')
				return json_fail(parser,
				    "Unexpected character: was expecting comma to separate "
				    "entries");
		}
	}
	out->kind = is_object ? JSON_OBJECT : JSON_ARRAY;
	out->items = list.items;
	out->count = is_object ? list.count / 2 : list.count;
	return 0;
}

static int
json_parse_value(struct json_parser *parser, struct json *out)
{
	const uint8_t *start;
	int rc;

	if (parser->depth >= JSON_DEPTH_MAX)
		return json_fail(parser, "JSON nested too deep");
	memset(out, 0, sizeof(*out));
	json_skip_blank(parser);
	if (parser->at == parser->end)
		return json_fail(parser, "No content to map due to end-of-input");
	start = parser->at;
	parser->depth++;
	if (*start == '"')
		rc = json_parse_string(parser, out);
	else if (*start == '{' || *start == '[')
		rc = json_parse_items(parser, out, *start == '{');
	else if (*start == '-' || isdigit(*start))
		rc = json_parse_number(parser, out);
	else if (isalpha(*start))
		rc = json_parse_word(parser, out);
	else
		rc = json_fail(parser,
		    "Unexpected character: expected a valid value (JSON String, Number, Array, "
		    "Object or token 'null', 'true' or 'false')");
	parser->depth--;
	out->source = slice_of(start, (size_t)(parser->at - start));
	return rc;
}

int
json_parse(struct slice text, struct arena *arena, struct json *out, struct error *err)
{
	struct json_parser parser = {.start = text.data,
	    .at = text.data,
	    .end = text.data + text.size,
	    .arena = arena,
	    .err = err};

	return json_parse_value(&parser, out);
}

static void
json_show_into(const struct json *json, struct buffer *out)
{
	double number;
	uint32_t i;

	switch (json->kind) {
	case JSON_NULL:
		buffer_put_string(out, "null");
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		buffer_put_string(out, json->kind == JSON_TRUE ? "true" : "false");
		break;
	case JSON_REAL:
		if (!value_text_to_double(json->text, &number))
			number = 0;
		value_print_double(number, out);
		break;
	case JSON_INTEGER:
	case JSON_STRING:
		buffer_put_slice(out, json->text);
		break;
	case JSON_ARRAY:
		buffer_put_u8(out, '[');
		for (i = 0; i < json->count; i++) {
			if (i > 0)
				buffer_put_string(out, ", ");
			json_show_into(&json->items[i], out);
		}
		buffer_put_u8(out, ']');
		break;
	case JSON_OBJECT:
		buffer_put_u8(out, '{');
		for (i = 0; i < json->count; i++) {
			if (i > 0)
				buffer_put_string(out, ", ");
			json_show_into(&json->items[2 * i], out);
			buffer_put_u8(out, '=');
			json_show_into(&json->items[2 * i + 1], out);
		}
		buffer_put_u8(out, '}');
		break;
	}
}

const char *
json_show(const struct json *json, struct arena *arena)
{
	struct buffer buffer;
	char *text;

	buffer_init(&buffer);
	json_show_into(json, &buffer);
	text = arena_strndup(arena, buffer.size > 0 ? (const char *)buffer.data : "", buffer.size);
	buffer_fini(&buffer);
	return text != NULL ? text : "?";
}
