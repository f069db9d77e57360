/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row_raw.h"
#include <assert.h>
#include "storage/row_codec.h"

bool
row_codec_is_carried(const struct row_codec *codec, const struct table_metadata *table)
{
	/* The set of columns of a wider table is no plain bitmap. */
	if (codec->regular_count != table->regular_count || codec->regular_count >= 64 ||
	    codec->table->clustering_count != table->clustering_count ||
	    codec->regular_dropped_us != NULL)
		return false;
	for (uint32_t i = 0; i < codec->regular_count; i++) {
		const struct column_metadata *from = &codec->regulars[i];
		const struct column_metadata *to = &table->regulars[i];

		if (codec->regular_targets != NULL ? codec->regular_targets[i] != to : from != to)
			return false;
		if (from->is_complex != to->is_complex ||
		    from->type->fixed_length != to->type->fixed_length)
			return false;
	}
	return true;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

/* NULL for a vint that goes beyond the end, and for nothing. */
static inline const uint8_t *
row_raw_vint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
	size_t extra;

	if (at == NULL || at == end)
		return NULL;
	if (*at < 0x80) {
		*value = *at;
		return at + 1;
	}
	extra = vint_extra(*at);
	if ((size_t)(end - at) <= extra)
		return NULL;
	if (end - at > 8) {
		*value = extra == 8 ? load_u64(at + 1)
				    : load_u64(at) << (extra + 1) >> (64 - 7 * (extra + 1));
		return at + 1 + extra;
	}
	*value = *at++ & (0xffu >> extra);
	for (size_t i = 0; i < extra; i++)
		*value = *value << 8 | *at++;
	return at;
}

static inline const uint8_t *
row_raw_skip(const uint8_t *at, const uint8_t *end, uint64_t size)
{
	return at != NULL && size <= (uint64_t)(end - at) ? at + size : NULL;
}

/* One row's walk. `at` is NULL once something was wrong. */
struct row_raw_walk {
	struct row_raw *raw;
	struct arena *arena;
	struct row_raw_number *numbers;
	uint32_t number_count, number_room;
	const uint8_t *start;
};

static bool
row_raw_grow(struct row_raw_walk *walk)
{
	uint32_t room = 2 * walk->number_room;
	struct row_raw_number *numbers = arena_alloc(walk->arena, room * sizeof(*numbers));

	if (numbers == NULL)
		return false;
	memcpy(numbers, walk->numbers, walk->number_count * sizeof(*numbers));
	walk->numbers = numbers;
	walk->number_room = room;
	return true;
}

/* A number that is relative to `least`: its place is noted, and what it stands for. */
static inline const uint8_t *
row_raw_number(struct row_raw_walk *walk, enum row_raw_kind kind, uint64_t least, const uint8_t *at,
    const uint8_t *end, int64_t *value)
{
	const uint8_t *after;
	uint64_t delta = 0;

	after = row_raw_vint(at, end, &delta);
	if (after == NULL || (walk->number_count == walk->number_room && !row_raw_grow(walk)))
		return NULL;
	*value = (int64_t)(least + delta);
	if (kind != ROW_RAW_TIMESTAMP)
		*value = (int32_t)*value;
	walk->numbers[walk->number_count++] = (struct row_raw_number){
	    .value = *value,
	    .offset = (uint32_t)(at - walk->start),
	    .size = (uint8_t)(after - at),
	    .kind = (uint8_t)kind,
	};
	return after;
}

static inline const uint8_t *
row_raw_timestamp(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	int64_t timestamp;

	return row_raw_number(walk, ROW_RAW_TIMESTAMP, (uint64_t)walk->raw->codec->min_timestamp,
	    at, end, &timestamp);
}

static inline void
row_raw_note_ttl(struct row_raw *raw, int32_t ttl)
{
	if (ttl < raw->min_ttl)
		raw->min_ttl = ttl;
	if (ttl > raw->max_ttl)
		raw->max_ttl = ttl;
}

static const uint8_t *
row_raw_ttl(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	int64_t ttl;

	at = row_raw_number(
	    walk, ROW_RAW_TTL, (uint64_t)(int64_t)walk->raw->codec->min_ttl, at, end, &ttl);
	if (at != NULL)
		row_raw_note_ttl(walk->raw, (int32_t)ttl);
	return at;
}

/* Only if it is the one that the row has already. */
static bool
row_raw_note_local(struct row_raw *raw, int32_t time)
{
	if (raw->local_deletion_count++ == 0)
		raw->local_deletion_time = time;
	return raw->local_deletion_time == time && time != LOCAL_DELETION_TIME_NONE;
}

static const uint8_t *
row_raw_local(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	int64_t time;

	at = row_raw_number(walk, ROW_RAW_LOCAL,
	    (uint64_t)(int64_t)walk->raw->codec->min_local_deletion_time, at, end, &time);
	return at != NULL && row_raw_note_local(walk->raw, (int32_t)time) ? at : NULL;
}

static const uint8_t *
row_raw_deletion(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	return row_raw_local(walk, row_raw_timestamp(walk, at, end), end);
}

/* What a cell says of its life where that is not "as long as it is not overwritten". */
static const uint8_t *
row_raw_life(struct row_raw_walk *walk, uint8_t flags, const uint8_t *at, const uint8_t *end)
{
	struct row_raw *raw = walk->raw;

	if ((flags & CELL_USE_ROW_TTL) != 0)
		return (raw->flags & ROW_HAS_TTL) != 0 &&
			row_raw_note_local(raw, raw->local_deletion_time)
		    ? at
		    : NULL;
	at = row_raw_local(walk, at, end);
	if ((flags & CELL_IS_EXPIRING) != 0)
		return row_raw_ttl(walk, at, end);
	row_raw_note_ttl(raw, TTL_NONE);
	return at;
}

static inline __attribute__((always_inline)) const uint8_t *
row_raw_cell(struct row_raw_walk *walk, const struct column_metadata *column, const uint8_t *at,
    const uint8_t *end)
{
	struct row_raw *raw = walk->raw;
	uint64_t size;
	uint8_t flags;

	if (at == NULL || at == end)
		return NULL;
	flags = *at++;
	if ((flags & ~CELL_FLAGS_ALL) != 0)
		return NULL;
	if ((flags & CELL_USE_ROW_TIMESTAMP) == 0)
		at = row_raw_timestamp(walk, at, end);
	else if ((raw->flags & ROW_HAS_TIMESTAMP) == 0)
		return NULL;
	if ((flags & (CELL_USE_ROW_TTL | CELL_IS_DELETED | CELL_IS_EXPIRING)) != 0)
		at = row_raw_life(walk, flags, at, end);
	else
		raw->has_lasting = true;
	raw->cell_count++;
	if (column->is_complex) {
		at = row_raw_vint(at, end, &size);
		at = row_raw_skip(at, end, size);
	}
	if ((flags & CELL_HAS_EMPTY_VALUE) != 0)
		return at;
	size = (uint64_t)column->type->fixed_length;
	if (column->type->fixed_length < 0)
		at = row_raw_vint(at, end, &size);
	return row_raw_skip(at, end, size);
}

static __attribute__((noinline)) const uint8_t *
row_raw_complex(struct row_raw_walk *walk, const struct column_metadata *column, const uint8_t *at,
    const uint8_t *end)
{
	uint64_t count;

	/* A live deletion stands for none; the decoder leaves it out. */
	if ((walk->raw->flags & ROW_HAS_COMPLEX_DELETION) != 0)
		at = row_raw_deletion(walk, at, end);
	at = row_raw_vint(at, end, &count);
	if (at == NULL)
		return NULL;
	walk->raw->has_complex = true;
	walk->raw->column_count += count != 0;
	while (count-- != 0 && at != NULL)
		at = row_raw_cell(walk, column, at, end);
	return at;
}

static const uint8_t *
row_raw_columns(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	const struct column_metadata *columns = walk->raw->codec->regulars;

	for (uint64_t left = walk->raw->present; left != 0; left &= left - 1) {
		const struct column_metadata *column = &columns[__builtin_ctzll(left)];

		if (column->is_complex) {
			at = row_raw_complex(walk, column, at, end);
		} else {
			at = row_raw_cell(walk, column, at, end);
			walk->raw->column_count++;
		}
	}
	return at;
}

/* NULL, or behind the row. */
static const uint8_t *
row_raw_walk(struct row_raw_walk *walk, const uint8_t *at, const uint8_t *end)
{
	struct row_raw *raw = walk->raw;
	uint32_t count = raw->codec->regular_count;
	uint64_t absent = 0;

	if ((raw->flags & ROW_HAS_TIMESTAMP) != 0) {
		at = row_raw_timestamp(walk, at, end);
		if ((raw->flags & ROW_HAS_TTL) != 0)
			at = row_raw_local(walk, row_raw_ttl(walk, at, end), end);
		else
			raw->has_lasting = true;
	}
	if ((raw->flags & ROW_HAS_DELETION) != 0)
		at = row_raw_deletion(walk, at, end);
	if ((raw->flags & ROW_HAS_ALL_COLUMNS) == 0)
		at = row_raw_vint(at, end, &absent);
	if (at == NULL || absent >> count != 0)
		return NULL;
	raw->present = ~absent & ((UINT64_C(1) << count) - 1);
	return row_raw_columns(walk, at, end);
}

static void
row_raw_bound(struct row_raw *raw)
{
	int64_t min = INT64_MAX, max = INT64_MIN;

	for (uint32_t i = 0; i < raw->number_count; i++) {
		if (raw->numbers[i].kind != ROW_RAW_TIMESTAMP)
			continue;
		min = raw->numbers[i].value < min ? raw->numbers[i].value : min;
		max = raw->numbers[i].value > max ? raw->numbers[i].value : max;
	}
	raw->min_timestamp = min;
	raw->max_timestamp = max;
	if (raw->has_lasting)
		row_raw_note_ttl(raw, TTL_NONE);
}

bool
row_raw_cut(const struct row_codec *codec, enum row_codec_flavor flavor, struct slice bytes,
    struct arena *arena, struct row_raw *out)
{
	struct reader reader = reader_of(bytes);
	struct row_raw_walk walk = {.raw = out, .arena = arena};

	*out = (struct row_raw){
	    .codec = codec,
	    .flags = row_get_u8(&reader),
	    .min_ttl = INT32_MAX,
	    .max_ttl = INT32_MIN,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	};
	if (reader.is_failed || bytes.size > UINT32_MAX ||
	    (out->flags & (UNFILTERED_END_OF_PARTITION | ROW_IS_MARKER | ROW_EXTENSION)) != 0 ||
	    (out->flags & (ROW_HAS_TTL | ROW_HAS_TIMESTAMP)) == ROW_HAS_TTL)
		return false;
	out->clustering_count = codec->table->clustering_count;
	if (out->clustering_count != 0 &&
	    clustering_decode(
		codec->table, &reader, out->clustering_count, arena, &out->clustering, NULL) != 0)
		return false;
	if (flavor == ROW_CODEC_SSTABLE) {
		uint64_t size = row_get_vint(&reader);

		if (size != reader_left(&reader))
			return false;
		row_get_vint(&reader); /* the size of what was before */
	}
	walk.number_room = codec->regular_count + 4;
	walk.numbers = arena_alloc(arena, walk.number_room * sizeof(*walk.numbers));
	if (reader.is_failed || walk.numbers == NULL)
		return false;
	walk.start = reader.at;
	out->body = slice_of(reader.at, reader_left(&reader));
	if (row_raw_walk(&walk, reader.at, reader.end) != reader.end)
		return false;
	out->numbers = walk.numbers;
	out->number_count = walk.number_count;
	row_raw_bound(out);
	/* Neither liveness nor deletion nor cell: an empty row has no place in a stream. */
	return walk.number_count > 0;
}

/* ---- into another file ------------------------------------------------------------------------------------ */

static uint8_t *
row_raw_put_body(const struct row_codec *codec, const struct row_raw *raw, uint8_t *at)
{
	const uint8_t *from = raw->body.data;
	const struct row_raw_number *end = raw->numbers + raw->number_count;

	for (const struct row_raw_number *number = raw->numbers; number != end; number++) {
		const uint8_t *to = raw->body.data + number->offset;
		uint64_t delta = (uint64_t)number->value - (uint64_t)codec->min_timestamp;

		at = row_put_bytes(at, slice_of(from, (size_t)(to - from)));
		/* The others are differences of 32 bits, sign extended, as in Java. */
		if (number->kind == ROW_RAW_LOCAL)
			delta = (uint64_t)(int64_t)(int32_t)((uint32_t)number->value -
			    (uint32_t)codec->min_local_deletion_time);
		else if (number->kind == ROW_RAW_TTL)
			delta = (uint64_t)(int64_t)(int32_t)((uint32_t)number->value -
			    (uint32_t)codec->min_ttl);
		at = row_put_vint(at, delta);
		from = to + number->size;
	}
	return row_put_bytes(at, slice_of(from, (size_t)(raw->body.data + raw->body.size - from)));
}

static bool
row_raw_is_alike(const struct row_codec *a, const struct row_codec *b)
{
	return a->min_timestamp == b->min_timestamp &&
	    a->min_local_deletion_time == b->min_local_deletion_time && a->min_ttl == b->min_ttl;
}

void
row_raw_encode(const struct row_codec *to, const struct row_raw *raw, uint64_t previous_size,
    struct buffer *out)
{
	size_t previous_length = vint_size(previous_size);
	/* Every number that is written anew may get longer. */
	size_t room = raw->body.size + (size_t)raw->number_count * VINT_SIZE_MAX;
	uint8_t *at, *body, *end;
	size_t length, size;

	assert(to->regular_count == raw->codec->regular_count);
	buffer_put_u8(out, raw->flags);
	if (raw->clustering_count != 0)
		clustering_encode(to->table, raw->clustering, raw->clustering_count, out);
	if (!buffer_reserve(out, room + 3 * VINT_SIZE_MAX))
		return;
	at = out->data + out->size;
	length = vint_size(raw->body.size + previous_length);
	body = at + length + previous_length;
	if (row_raw_is_alike(raw->codec, to))
		end = row_put_bytes(body, raw->body);
	else
		end = row_raw_put_body(to, raw, body);
	size = (size_t)(end - body);
	if (vint_size(size + previous_length) != length) {
		length = vint_size(size + previous_length);
		memmove(at + length + previous_length, body, size);
		end = at + length + previous_length + size;
	}
	at = row_put_vint_exact(at, size + previous_length, length);
	row_put_vint_exact(at, previous_size, previous_length);
	out->size = (size_t)(end - out->data);
}

int
row_raw_decode(const struct row_raw *raw, struct arena *arena, struct row *out, struct error *err)
{
	struct reader reader = reader_of(raw->body);

	if (row_decode_body(raw->codec, &reader, raw->flags, arena, out, err) != 0)
		return -1;
	out->clustering_count = raw->clustering_count;
	out->clustering = raw->clustering;
	out->position = raw->position;
	return 0;
}

bool
row_raw_replaces(const struct row_raw *raw, const struct row_raw *other)
{
	const uint8_t deletions = ROW_HAS_DELETION | ROW_HAS_COMPLEX_DELETION;

	/* The same write twice. */
	if (raw->flags == other->flags && row_raw_is_alike(raw->codec, other->codec) &&
	    slice_equal(raw->body, other->body))
		return true;
	/* Else nothing of the other may remain: not a cell, not its liveness, not a deletion. */
	return raw->min_timestamp > other->max_timestamp && !raw->has_complex &&
	    !other->has_complex && (raw->present & other->present) == other->present &&
	    ((raw->flags | other->flags) & deletions) == 0 && raw->local_deletion_count == 0 &&
	    other->local_deletion_count == 0 &&
	    ((raw->flags & ROW_HAS_TIMESTAMP) != 0 || (other->flags & ROW_HAS_TIMESTAMP) == 0);
}
