/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_BYTES_H
#define HELENUS_BASE_BYTES_H

/*
 * Bytes: a borrowed view (slice), a growable owner (buffer) and a bounds-checked cursor (reader).
 * Multi-byte integers are big-endian unless a name ends in _le. "vint" is Cassandra's variable
 * length integer (VIntCoding: the leading 1-bits of the first byte count the bytes that follow);
 * the signed form is zig-zag. None of these are thread-safe; a slice may be read by anybody as long
 * as its owner lives.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed run of bytes. data == NULL is the null value (CQL null); a value that is present but
 * empty has size 0 and a data pointer that is not NULL. */
struct slice {
	const uint8_t *data;
	size_t size;
};

extern const struct slice slice_null;
extern const struct slice slice_empty; /* present, zero bytes */

static inline struct slice
slice_of(const void *data, size_t size)
{
	return (struct slice){(const uint8_t *)data, size};
}

static inline struct slice
slice_of_string(const char *string)
{
	return slice_of(string, strlen(string));
}

static inline bool
slice_is_null(struct slice slice)
{
	return slice.data == NULL;
}

/* Same bytes; two nulls are equal, null and empty are not. */
bool slice_equal(struct slice a, struct slice b);
/* memcmp order, a prefix sorts first; null sorts before everything. Returns <0, 0, >0. */
int slice_compare(struct slice a, struct slice b);
bool slice_equal_string(struct slice a, const char *string);

static inline uint16_t
load_u16(const uint8_t *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return __builtin_bswap16(value);
}

static inline uint32_t
load_u32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return __builtin_bswap32(value);
}

static inline uint64_t
load_u64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return __builtin_bswap64(value);
}

static inline void
store_u16(uint8_t *at, uint16_t value)
{
	value = __builtin_bswap16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
store_u32(uint8_t *at, uint32_t value)
{
	value = __builtin_bswap32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
store_u64(uint8_t *at, uint64_t value)
{
	value = __builtin_bswap64(value);
	memcpy(at, &value, sizeof(value));
}

enum { VINT_SIZE_MAX = 9 };

/*
 * The vint of VIntCoding: n extra bytes follow a first byte that begins with n 1-bits and a 0-bit;
 * the remaining bits of the first byte and the extra bytes are the value, big-endian. Eight extra
 * bytes leave no bit of the first one: 0xff and the plain 64-bit value.
 */

/* Bytes that the unsigned vint of `value` takes: 1..9. */
static inline size_t
vint_size(uint64_t value)
{
	/* 7 payload bits for each byte; `| 1` because the size of 0 is that of 1. */
	size_t bits = 64 - (size_t)__builtin_clzll(value | 1);

	return bits > 56 ? 9 : (bits + 6) / 7;
}

/* How many bytes follow the first one: as many as it has leading 1-bits. */
static inline size_t
vint_extra(uint8_t first)
{
	/* They are the leading zeros of the complement; the bits below end the count at 8. */
	return (size_t)__builtin_clz(~((uint32_t)first << 24));
}

/* Write it at `at`, which has room for VINT_SIZE_MAX (all of it may be overwritten); returns its bytes. */
static inline size_t
vint_encode(uint8_t *at, uint64_t value)
{
	size_t size = vint_size(value);

	if (size == 9) {
		at[0] = 0xff;
		store_u64(at + 1, value);
		return 9;
	}
	/* One store: the length's 1-bits above the value, all of it moved to the front. */
	value |= (uint64_t)(uint8_t)(0xff00u >> (size - 1)) << (8 * (size - 1));
	store_u64(at, value << (64 - 8 * size));
	return size;
}

static inline uint64_t
zigzag_encode(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t
zigzag_decode(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/*
 * A growable buffer on the heap. A failed allocation sets is_failed and turns every later put into
 * a no-op, so that a writer checks once, at the end, with buffer_check().
 */
struct buffer {
	uint8_t *data;
	size_t size;
	size_t capacity;
	bool is_failed;
};

void buffer_init(struct buffer *buffer);
void buffer_fini(struct buffer *buffer);
/* Forget the content and the failure, keep the memory. */
void buffer_clear(struct buffer *buffer);
/* 0, or -1 with ERROR_NO_MEMORY when a put has failed since the last clear. */
struct error;
int buffer_check(const struct buffer *buffer, struct error *err);
/* Slow path of the puts: room for `more` bytes beyond size. False (and is_failed) without memory. */
bool buffer_grow(struct buffer *buffer, size_t more);

static inline bool
buffer_reserve(struct buffer *buffer, size_t more)
{
	if (buffer->capacity - buffer->size >= more && !buffer->is_failed)
		return true;
	return buffer_grow(buffer, more);
}

/* Append `size` bytes that the caller fills in; NULL when there is no memory. Valid until the next
 * put. */
uint8_t *buffer_append(struct buffer *buffer, size_t size);
static inline void
buffer_put(struct buffer *buffer, const void *data, size_t size)
{
	if (size == 0 || !buffer_reserve(buffer, size))
		return;
	memcpy(buffer->data + buffer->size, data, size);
	buffer->size += size;
}

static inline void
buffer_put_slice(struct buffer *buffer, struct slice slice)
{
	buffer_put(buffer, slice.data, slice.size);
}

static inline void
buffer_put_u8(struct buffer *buffer, uint8_t value)
{
	if (!buffer_reserve(buffer, 1))
		return;
	buffer->data[buffer->size++] = value;
}

static inline void
buffer_put_u16(struct buffer *buffer, uint16_t value)
{
	if (!buffer_reserve(buffer, sizeof(value)))
		return;
	store_u16(buffer->data + buffer->size, value);
	buffer->size += sizeof(value);
}

static inline void
buffer_put_u32(struct buffer *buffer, uint32_t value)
{
	if (!buffer_reserve(buffer, sizeof(value)))
		return;
	store_u32(buffer->data + buffer->size, value);
	buffer->size += sizeof(value);
}

static inline void
buffer_put_u64(struct buffer *buffer, uint64_t value)
{
	if (!buffer_reserve(buffer, sizeof(value)))
		return;
	store_u64(buffer->data + buffer->size, value);
	buffer->size += sizeof(value);
}

void buffer_put_vint_slow(struct buffer *buffer, uint64_t value);
/* Unsigned vint. In rows and messages nearly all are of one byte. */
static inline void
buffer_put_vint(struct buffer *buffer, uint64_t value)
{
	if (value < 0x80 && buffer->size < buffer->capacity && !buffer->is_failed)
		buffer->data[buffer->size++] = (uint8_t)value;
	else
		buffer_put_vint_slow(buffer, value);
}
void buffer_put_signed_vint(struct buffer *buffer, int64_t value); /* zig-zag vint */
void buffer_put_string(struct buffer *buffer, const char *string); /* without the NUL */
void
buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Overwrite bytes that were put before, at `offset` (a length that is known only afterwards). */
void buffer_patch_u32(struct buffer *buffer, size_t offset, uint32_t value);

static inline struct slice
buffer_slice(const struct buffer *buffer)
{
	return slice_of(buffer->data, buffer->size);
}

/*
 * A cursor over bytes from outside. A read past the end sets is_failed, returns zero or an empty
 * slice, and every later read fails too: check once after a group of reads.
 */
struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool is_failed;
};

static inline struct reader
reader_of(struct slice slice)
{
	return (struct reader){slice.data, slice.data + slice.size, false};
}

static inline size_t
reader_left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader);
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
uint64_t reader_vint_slow(struct reader *reader);

static inline uint64_t
reader_vint(struct reader *reader)
{
	const uint8_t *at = reader->at;
	size_t extra;

	/* Near the end (and beyond it) byte by byte. */
	if (reader->is_failed || reader->end - at <= 8)
		return reader_vint_slow(reader);
	extra = vint_extra(*at);
	reader->at = at + 1 + extra;
	/* The length's 1-bits and the 0 behind them go out at the top, what is not ours at the bottom. */
	if (extra == 8)
		return load_u64(at + 1);
	return load_u64(at) << (extra + 1) >> (64 - 7 * (extra + 1));
}

int64_t reader_signed_vint(struct reader *reader);
/* The next `size` bytes, not copied; on failure an empty slice whose data is not NULL. */
struct slice reader_bytes(struct reader *reader, size_t size);
void reader_skip(struct reader *reader, size_t size);

/* Lower-case hex of `slice` into `out`, which has room for 2 * size + 1 bytes. */
void hex_encode(struct slice slice, char *out);
/* -1 on an odd length or a character that is no hex digit; out has room for length / 2. */
int hex_decode(const char *text, size_t length, uint8_t *out);

#endif
