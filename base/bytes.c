/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/error.h"

enum { BUFFER_CAPACITY_MIN = 64 };

/* What a present but empty value points at. */
static const uint8_t bytes_nothing[1] = {0};

const struct slice slice_null = {NULL, 0};
const struct slice slice_empty = {bytes_nothing, 0};

bool
slice_equal(struct slice a, struct slice b)
{
	if (a.size != b.size || slice_is_null(a) != slice_is_null(b))
		return false;
	return a.size == 0 || memcmp(a.data, b.data, a.size) == 0;
}

int
slice_compare(struct slice a, struct slice b)
{
	size_t common = a.size < b.size ? a.size : b.size;
	int rc;

	if (slice_is_null(a) || slice_is_null(b))
		return (int)slice_is_null(b) - (int)slice_is_null(a);
	rc = common != 0 ? memcmp(a.data, b.data, common) : 0;
	if (rc != 0)
		return rc;
	return (a.size > b.size) - (a.size < b.size);
}

bool
slice_equal_string(struct slice a, const char *string)
{
	size_t size = strlen(string);

	return !slice_is_null(a) && a.size == size && memcmp(a.data, string, size) == 0;
}

void
buffer_init(struct buffer *buffer)
{
	*buffer = (struct buffer){0};
}

void
buffer_fini(struct buffer *buffer)
{
	free(buffer->data);
	buffer_init(buffer);
}

void
buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
	buffer->is_failed = false;
}

int
buffer_check(const struct buffer *buffer, struct error *err)
{
	if (!buffer->is_failed)
		return 0;
	return error_set(
	    err, ERROR_NO_MEMORY, "no memory for a buffer beyond %zu bytes", buffer->size);
}

bool
buffer_grow(struct buffer *buffer, size_t more)
{
	size_t wanted;
	size_t capacity;
	uint8_t *data;

	if (buffer->is_failed)
		return false;
	if (__builtin_add_overflow(buffer->size, more, &wanted) || wanted > SIZE_MAX / 4) {
		buffer->is_failed = true;
		return false;
	}
	if (wanted <= buffer->capacity)
		return true;
	capacity = buffer->capacity < BUFFER_CAPACITY_MIN ? BUFFER_CAPACITY_MIN : buffer->capacity;
	while (capacity < wanted)
		capacity *= 2;
	data = realloc(buffer->data, capacity);
	if (data == NULL) {
		buffer->is_failed = true;
		return false;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

uint8_t *
buffer_append(struct buffer *buffer, size_t size)
{
	uint8_t *at;

	/* An empty append of an empty buffer still gives a pointer that is not NULL. */
	if (!buffer_reserve(buffer, size != 0 ? size : 1))
		return NULL;
	at = buffer->data + buffer->size;
	buffer->size += size;
	return at;
}

void
buffer_put_vint_slow(struct buffer *buffer, uint64_t value)
{
	if (!buffer_reserve(buffer, VINT_SIZE_MAX))
		return;
	buffer->size += vint_encode(buffer->data + buffer->size, value);
}

void
buffer_put_signed_vint(struct buffer *buffer, int64_t value)
{
	buffer_put_vint(buffer, zigzag_encode(value));
}

void
buffer_put_string(struct buffer *buffer, const char *string)
{
	buffer_put(buffer, string, strlen(string));
}

void
buffer_printf(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	size_t room;
	int length;

	if (!buffer_reserve(buffer, 1))
		return;
	room = buffer->capacity - buffer->size;
	va_start(arguments, format);
	length = vsnprintf((char *)buffer->data + buffer->size, room, format, arguments);
	va_end(arguments);
	assert(length >= 0);
	if ((size_t)length >= room) {
		/* The NUL needs a byte while printing, though it is not part of the content. */
		if (!buffer_reserve(buffer, (size_t)length + 1))
			return;
		va_start(arguments, format);
		vsnprintf(
		    (char *)buffer->data + buffer->size, (size_t)length + 1, format, arguments);
		va_end(arguments);
	}
	buffer->size += (size_t)length;
}

void
buffer_patch_u32(struct buffer *buffer, size_t offset, uint32_t value)
{
	if (buffer->is_failed)
		return;
	assert(offset <= buffer->size && buffer->size - offset >= sizeof(value));
	store_u32(buffer->data + offset, value);
}

/* True when `size` more bytes are there; otherwise the reader has failed and has nothing left. */
static bool
reader_has(struct reader *reader, size_t size)
{
	if (!reader->is_failed && reader_left(reader) >= size)
		return true;
	reader->is_failed = true;
	reader->at = reader->end;
	return false;
}

uint8_t
reader_u8(struct reader *reader)
{
	if (!reader_has(reader, 1))
		return 0;
	return *reader->at++;
}

uint16_t
reader_u16(struct reader *reader)
{
	uint16_t value;

	if (!reader_has(reader, sizeof(value)))
		return 0;
	value = load_u16(reader->at);
	reader->at += sizeof(value);
	return value;
}

uint32_t
reader_u32(struct reader *reader)
{
	uint32_t value;

	if (!reader_has(reader, sizeof(value)))
		return 0;
	value = load_u32(reader->at);
	reader->at += sizeof(value);
	return value;
}

uint64_t
reader_u64(struct reader *reader)
{
	uint64_t value;

	if (!reader_has(reader, sizeof(value)))
		return 0;
	value = load_u64(reader->at);
	reader->at += sizeof(value);
	return value;
}

uint64_t
reader_vint_slow(struct reader *reader)
{
	uint8_t first;
	size_t extra;
	uint64_t value;

	if (!reader_has(reader, 1))
		return 0;
	first = *reader->at;
	extra = vint_extra(first);
	if (!reader_has(reader, 1 + extra))
		return 0;
	value = extra == 8 ? 0 : first & (0xffu >> extra);
	for (size_t i = 1; i <= extra; i++)
		value = value << 8 | reader->at[i];
	reader->at += 1 + extra;
	return value;
}

int64_t
reader_signed_vint(struct reader *reader)
{
	return zigzag_decode(reader_vint(reader));
}

struct slice
reader_bytes(struct reader *reader, size_t size)
{
	struct slice slice;

	if (!reader_has(reader, size))
		return slice_empty;
	if (size == 0)
		return slice_empty;
	slice = slice_of(reader->at, size);
	reader->at += size;
	return slice;
}

void
reader_skip(struct reader *reader, size_t size)
{
	if (reader_has(reader, size))
		reader->at += size;
}

void
hex_encode(struct slice slice, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < slice.size; i++) {
		*out++ = digits[slice.data[i] >> 4];
		*out++ = digits[slice.data[i] & 0xf];
	}
	*out = '\0';
}

static int
hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

int
hex_decode(const char *text, size_t length, uint8_t *out)
{
	if (length % 2 != 0)
		return -1;
	for (size_t i = 0; i < length; i += 2) {
		int high = hex_digit(text[i]);
		int low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -1;
		*out++ = (uint8_t)(high << 4 | low);
	}
	return 0;
}
