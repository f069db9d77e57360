/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row.h"

/*
 * The terminators stand around the separators 3F (null) and 40 (value) of a further component, so that
 * a bound that is a prefix sorts before or after everything that begins with it.
 */
enum {
	POSITION_STATIC = 0x00,
	POSITION_BEFORE = 0x20,
	POSITION_ROW = 0x38,
	POSITION_AFTER = 0x60,
};

static const uint8_t position_lone_bytes[] = {POSITION_ROW};
const struct slice position_lone = {position_lone_bytes, 1};

static uint8_t
position_terminator(enum bound_kind kind)
{
	switch (kind) {
	case BOUND_EXCL_END:
	case BOUND_INCL_START:
	case BOUND_EXCL_END_INCL_START:
		return POSITION_BEFORE;
	case BOUND_INCL_END:
	case BOUND_EXCL_START:
	case BOUND_INCL_END_EXCL_START:
		return POSITION_AFTER;
	case BOUND_STATIC_CLUSTERING:
		return POSITION_STATIC;
	case BOUND_CLUSTERING:
		break;
	}
	return POSITION_ROW;
}

void
position_encode(const struct table_metadata *table, enum bound_kind kind,
    const struct slice *values, uint32_t count, struct buffer *out)
{
	if (kind != BOUND_STATIC_CLUSTERING && count != 0)
		table_clustering_to_comparable(table, values, count, out);
	buffer_put_u8(out, position_terminator(kind));
}

struct slice
position_make(const struct table_metadata *table, enum bound_kind kind, const struct slice *values,
    uint32_t count, struct arena *arena)
{
	size_t room = 16; /* the terminator, and what a reserve may ask beyond its need */
	struct buffer buffer = {0};
	uint8_t *memory;

	if (count > table->clustering_count)
		count = table->clustering_count;
	for (uint32_t i = 0; i < count; i++) {
		room++;
		if (!slice_is_null(values[i]))
			room += type_comparable_size_max(table->clustering[i].type, values[i]);
	}
	memory = arena_alloc_bytes(arena, room);
	if (memory == NULL)
		return slice_null;

	/* A buffer over arena memory that is surely large enough: it never grows, so never reallocs. */
	buffer.data = memory;
	buffer.capacity = room;
	position_encode(table, kind, values, count, &buffer);
	arena_trim(arena, memory, room, buffer.size); /* what the estimate was too much */
	return slice_of(memory, buffer.size);
}

int
position_decode(const struct table_metadata *table, struct slice position, struct arena *arena,
    enum position_place *place, const struct slice **values_out, uint32_t *count, struct error *err)
{
	struct slice *values = arena_alloc(arena, table->clustering_count * sizeof(*values));
	struct reader reader = reader_of(position);

	if (values == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	*count = 0;
	for (;;) {
		uint8_t byte = reader_u8(&reader);
		bool is_value = byte == TABLE_COMPARABLE_VALUE;
		const struct column_metadata *column;

		if (!is_value && byte != TABLE_COMPARABLE_NULL) {
			*place = byte == POSITION_BEFORE ? POSITION_PLACE_BEFORE
			    : byte == POSITION_ROW       ? POSITION_PLACE_ROW
							 : POSITION_PLACE_AFTER;
			reader.is_failed = reader.is_failed || reader_left(&reader) != 0 ||
			    (byte == POSITION_ROW && *count != table->clustering_count) ||
			    (byte != POSITION_BEFORE && byte != POSITION_ROW &&
				byte != POSITION_AFTER);
			break;
		}
		if (*count == table->clustering_count) {
			reader.is_failed = true;
			break;
		}
		column = &table->clustering[*count];
		values[*count] = slice_null;
		if (is_value &&
		    type_from_comparable(column->type, column->is_reversed, &reader, arena,
			&values[*count], err) != 0)
			return -1;
		++*count;
	}
	if (reader.is_failed)
		return error_set(err, ERROR_PROTOCOL, "a clustering position is damaged");
	*values_out = values;
	return 0;
}

struct slice
position_beside(struct slice row, bool is_behind, struct arena *arena)
{
	struct slice copy = arena_copy(arena, row);

	if (!slice_is_null(copy) && copy.size != 0)
		((uint8_t *)(uintptr_t)copy.data)[copy.size - 1] =
		    is_behind ? POSITION_AFTER : POSITION_BEFORE;
	return copy;
}
