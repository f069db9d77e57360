/* SPDX-License-Identifier: Apache-2.0 */
#include "base/properties.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

struct properties_reader {
	struct slice text;
	size_t at;
	unsigned line; /* of the next character */
	/* One property; as large as the text. */
	char *key, *value;
};

static bool
properties_is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

static bool
properties_is_end(uint8_t c)
{
	return c == '\n' || c == '\r';
}

/* The next character, or -1 at the end of the line. A joined line goes on behind its blanks. */
static int
properties_peek(struct properties_reader *reader)
{
	const uint8_t *data = reader->text.data;
	size_t size = reader->text.size;

	while (reader->at + 1 < size && data[reader->at] == '\\' &&
	    properties_is_end(data[reader->at + 1])) {
		reader->at++;
		if (data[reader->at] == '\r' && reader->at + 1 < size &&
		    data[reader->at + 1] == '\n')
			reader->at++;
		reader->at++;
		reader->line++;
		while (reader->at < size && properties_is_blank(data[reader->at]))
			reader->at++;
	}
	if (reader->at == size || properties_is_end(data[reader->at]))
		return -1;
	return data[reader->at];
}

static void
properties_end_line(struct properties_reader *reader)
{
	while (reader->at < reader->text.size && !properties_is_end(reader->text.data[reader->at]))
		reader->at++;
	if (reader->at == reader->text.size)
		return;
	if (reader->text.data[reader->at] == '\r' && reader->at + 1 < reader->text.size &&
	    reader->text.data[reader->at + 1] == '\n')
		reader->at++;
	reader->at++;
	reader->line++;
}

static int
properties_hex(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \uXXXX as UTF-8, at most three bytes for the six that it took. */
static int
properties_unicode(struct properties_reader *reader, char *out, size_t *size, struct error *err)
{
	unsigned code = 0;

	for (int i = 0; i < 4; i++) {
		int digit = properties_hex(properties_peek(reader));

		if (digit < 0)
			return error_set(err, ERROR_CONFIG, "\\u needs four hexadecimal digits");
		code = code * 16 + (unsigned)digit;
		reader->at++;
	}
	if (code == 0)
		return error_set(err, ERROR_CONFIG, "a NUL stands in a property");
	if (code < 0x80) {
		out[(*size)++] = (char)code;
		return 0;
	}
	if (code < 0x800) {
		out[(*size)++] = (char)(0xc0 | code >> 6);
	} else {
		out[(*size)++] = (char)(0xe0 | code >> 12);
		out[(*size)++] = (char)(0x80 | (code >> 6 & 0x3f));
	}
	out[(*size)++] = (char)(0x80 | (code & 0x3f));
	return 0;
}

static int
properties_escape(struct properties_reader *reader, char *out, size_t *size, struct error *err)
{
	static const char plain[] = "tnrf", meant[] = "\t\n\r\f";
	int c;
	const char *found;

	reader->at++;
	c = properties_peek(reader);
	if (c < 0)
		return 0;
	reader->at++;
	if (c == 'u')
		return properties_unicode(reader, out, size, err);
	found = c == 0 ? NULL : strchr(plain, c);
	out[(*size)++] = found == NULL ? (char)c : meant[found - plain];
	return 0;
}

/* Up to the end of the line, or of the key. */
static int
properties_read(struct properties_reader *reader, bool is_key, char *out, struct error *err)
{
	size_t size = 0, kept = 0;
	int c;

	while ((c = properties_peek(reader)) >= 0) {
		if (is_key && (c == '=' || c == ':' || properties_is_blank((uint8_t)c)))
			break;
		if (c == 0)
			return error_set(err, ERROR_CONFIG, "a NUL stands in a property");
		if (c == '\\') {
			if (properties_escape(reader, out, &size, err) != 0)
				return -1;
			kept = size;
			continue;
		}
		out[size++] = (char)c;
		reader->at++;
		if (!properties_is_blank((uint8_t)c))
			kept = size;
	}
	out[kept] = '\0';
	return 0;
}

static void
properties_skip_blanks(struct properties_reader *reader)
{
	int c;

	while ((c = properties_peek(reader)) >= 0 && properties_is_blank((uint8_t)c))
		reader->at++;
}

static int
properties_one(
    struct properties_reader *reader, property_fn each, void *argument, struct error *err)
{
	unsigned line = reader->line;
	int c;

	if (properties_read(reader, true, reader->key, err) != 0)
		return -1;
	properties_skip_blanks(reader);
	c = properties_peek(reader);
	if (c == '=' || c == ':') {
		reader->at++;
		properties_skip_blanks(reader);
	}
	if (properties_read(reader, false, reader->value, err) != 0)
		return -1;
	return each(argument, reader->key, reader->value, line, err);
}

int
properties_parse(
    struct slice text, const char *name, property_fn each, void *argument, struct error *err)
{
	struct properties_reader reader = {.text = text, .line = 1};
	int rc = 0;

	reader.key = xmalloc(text.size + 1);
	reader.value = xmalloc(text.size + 1);
	while (rc == 0 && reader.at < text.size) {
		unsigned line;
		int c;

		while (reader.at < text.size && properties_is_blank(text.data[reader.at]))
			reader.at++;
		line = reader.line;
		c = reader.at == text.size || properties_is_end(text.data[reader.at])
		    ? -1
		    : text.data[reader.at];
		if (c >= 0 && c != '#' && c != '!')
			rc = properties_one(&reader, each, argument, err);
		if (rc != 0)
			error_prefix(err, "%s:%u", name, line);
		properties_end_line(&reader);
	}
	free(reader.key);
	free(reader.value);
	return rc;
}
