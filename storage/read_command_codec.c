/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "storage/read_command_codec.h"

/*
 * Big-endian; "bytes" is a vint length and as many bytes, "value" the same with the length + 1 and 0 for null.
 *
 *   u8 version 1 | vint flags | 16 bytes table id
 *   one partition: bytes key                                 range: i64 left, i64 right, u8 bounds, [bytes key]
 *   [vint count, slices: u8 which bounds, [bytes start], [bytes end]]        COMMAND_HAS_SLICES
 *   [bytes position]                                         COMMAND_HAS_AFTER
 *   [vint count, names]  [vint count, names]                 COMMAND_HAS_REGULARS, COMMAND_HAS_STATICS: wanted
 *   [vint count, filters: bytes name, u8 operator, value, value map key, vint count, values]
 *   [vint row limit] [vint partition limit] | signed vint now
 */
enum { COMMAND_VERSION = 1 };

enum {
	COMMAND_IS_RANGE = 0x001,
	COMMAND_IS_REVERSED = 0x002,
	COMMAND_IS_NAMES = 0x004,
	COMMAND_WITH_STATIC = 0x008,
	COMMAND_IS_TRANSIENT = 0x010,
	COMMAND_HAS_SLICES = 0x020,
	COMMAND_HAS_AFTER = 0x040,
	COMMAND_HAS_REGULARS = 0x080,
	COMMAND_HAS_STATICS = 0x100,
	COMMAND_HAS_FILTERS = 0x200,
	COMMAND_HAS_ROW_LIMIT = 0x400,
	COMMAND_HAS_PARTITION_LIMIT = 0x800,
	COMMAND_FLAGS_ALL = 0xfff,
};

enum {
	RANGE_INCLUDES_LEFT = 1,
	RANGE_EXCLUDES_RIGHT = 2,
	RANGE_HAS_KEY = 4,
	RANGE_KEY_EXCLUSIVE = 8,
	RANGE_FLAGS_ALL = 15,
};

enum { SLICE_HAS_START = 1, SLICE_HAS_END = 2 };

enum { COMMAND_INCOMPATIBLE_SCHEMA = 3 }; /* RequestFailureReason */

/* ---- encoding ------------------------------------------------------------------------------------- */

static void
command_put_bytes(struct buffer *out, struct slice bytes)
{
	buffer_put_vint(out, bytes.size);
	buffer_put_slice(out, bytes);
}

static void
command_put_value(struct buffer *out, struct slice value)
{
	buffer_put_vint(out, slice_is_null(value) ? 0 : (uint64_t)value.size + 1);
	buffer_put_slice(out, value);
}

static uint64_t
command_flags(const struct read_command *command)
{
	return (command->is_range ? COMMAND_IS_RANGE : 0u) |
	    (command->clustering.is_reversed ? COMMAND_IS_REVERSED : 0u) |
	    (command->clustering.is_names ? COMMAND_IS_NAMES : 0u) |
	    (command->clustering.with_static ? COMMAND_WITH_STATIC : 0u) |
	    (command->is_transient ? COMMAND_IS_TRANSIENT : 0u) |
	    (command->clustering.slice_count != 0 ? COMMAND_HAS_SLICES : 0u) |
	    (!slice_is_null(command->after_position) ? COMMAND_HAS_AFTER : 0u) |
	    (command->wanted_regulars != NULL ? COMMAND_HAS_REGULARS : 0u) |
	    (command->wanted_statics != NULL ? COMMAND_HAS_STATICS : 0u) |
	    (command->filter_count != 0 ? COMMAND_HAS_FILTERS : 0u) |
	    (command->row_limit != READ_LIMIT_NONE ? COMMAND_HAS_ROW_LIMIT : 0u) |
	    (command->per_partition_limit != READ_LIMIT_NONE ? COMMAND_HAS_PARTITION_LIMIT : 0u);
}

static void
command_put_range(const struct token_range *range, struct buffer *out)
{
	bool has_key = !slice_is_null(range->start_key);

	buffer_put_u64(out, (uint64_t)range->left);
	buffer_put_u64(out, (uint64_t)range->right);
	buffer_put_u8(out,
	    (uint8_t)((range->includes_left ? RANGE_INCLUDES_LEFT : 0) |
		(range->excludes_right ? RANGE_EXCLUDES_RIGHT : 0) | (has_key ? RANGE_HAS_KEY : 0) |
		(range->start_key_exclusive ? RANGE_KEY_EXCLUSIVE : 0)));
	if (has_key)
		command_put_bytes(out, range->start_key);
}

static void
command_put_slices(const struct clustering_filter *filter, struct buffer *out)
{
	buffer_put_vint(out, filter->slice_count);
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		const struct clustering_slice *slice = &filter->slices[i];
		bool has_start = !slice_is_null(slice->start), has_end = !slice_is_null(slice->end);

		buffer_put_u8(out,
		    (uint8_t)((has_start ? SLICE_HAS_START : 0) | (has_end ? SLICE_HAS_END : 0)));
		if (has_start)
			command_put_bytes(out, slice->start);
		if (has_end)
			command_put_bytes(out, slice->end);
	}
}

static void
command_put_wanted(const uint64_t *wanted, const struct column_metadata *columns, uint32_t count,
    struct buffer *out)
{
	uint32_t listed = 0;

	for (uint32_t i = 0; i < count; i++)
		listed += wanted[i / 64] >> (i % 64) & 1;
	buffer_put_vint(out, listed);
	for (uint32_t i = 0; i < count; i++)
		if ((wanted[i / 64] >> (i % 64) & 1) != 0)
			command_put_bytes(out, columns[i].name);
}

static void
command_put_filters(const struct read_command *command, struct buffer *out)
{
	buffer_put_vint(out, command->filter_count);
	for (uint32_t i = 0; i < command->filter_count; i++) {
		const struct filter_expression *filter = &command->filters[i];

		command_put_bytes(out, filter->column->name);
		buffer_put_u8(out, (uint8_t)filter->operator);
		command_put_value(out, filter->value);
		command_put_value(out, filter->map_key);
		buffer_put_vint(out, filter->value_count);
		for (uint32_t j = 0; j < filter->value_count; j++)
			command_put_value(out, filter->values[j]);
	}
}

void
read_command_encode(const struct read_command *command, struct buffer *out)
{
	const struct table_metadata *table = command->table;
	uint64_t flags = command_flags(command);

	buffer_put_u8(out, COMMAND_VERSION);
	buffer_put_vint(out, flags);
	buffer_put(out, table->id.bytes, sizeof(table->id.bytes));
	if (command->is_range)
		command_put_range(&command->range, out);
	else
		command_put_bytes(out, command->key);
	if (flags & COMMAND_HAS_SLICES)
		command_put_slices(&command->clustering, out);
	if (flags & COMMAND_HAS_AFTER)
		command_put_bytes(out, command->after_position);
	if (flags & COMMAND_HAS_REGULARS)
		command_put_wanted(
		    command->wanted_regulars, table->regulars, table->regular_count, out);
	if (flags & COMMAND_HAS_STATICS)
		command_put_wanted(
		    command->wanted_statics, table->statics, table->static_count, out);
	if (flags & COMMAND_HAS_FILTERS)
		command_put_filters(command, out);
	if (flags & COMMAND_HAS_ROW_LIMIT)
		buffer_put_vint(out, command->row_limit);
	if (flags & COMMAND_HAS_PARTITION_LIMIT)
		buffer_put_vint(out, command->per_partition_limit);
	buffer_put_signed_vint(out, command->now_seconds);
}

/* ---- decoding ------------------------------------------------------------------------------------- */

struct command_decoder {
	struct reader reader;
	const struct table_metadata *table;
	struct arena *arena;
	struct error *err;
};

static int
command_bad(struct command_decoder *decoder, const char *what)
{
	return error_set(decoder->err, ERROR_PROTOCOL, "a read command %s", what);
}

static int
command_truncated(struct command_decoder *decoder)
{
	return command_bad(decoder, "goes on beyond the end of its data");
}

static int
command_no_memory(struct command_decoder *decoder)
{
	return error_set(decoder->err, ERROR_NO_MEMORY, "no memory to decode a read command");
}

static int
command_unknown(struct command_decoder *decoder, const char *what, struct slice name)
{
	error_set(decoder->err, ERROR_INVALID, "a read command is about the unknown %s %.*s", what,
	    (int)(name.size < 64 ? name.size : 64), (const char *)name.data);
	if (decoder->err != NULL)
		decoder->err->reason = COMMAND_INCOMPATIBLE_SCHEMA;
	return -1;
}

static struct slice
command_get_sized(struct command_decoder *decoder, uint64_t size)
{
	if (size > reader_left(&decoder->reader))
		decoder->reader.is_failed = true;
	return reader_bytes(&decoder->reader, decoder->reader.is_failed ? 0 : (size_t)size);
}

static struct slice
command_get_bytes(struct command_decoder *decoder)
{
	return command_get_sized(decoder, reader_vint(&decoder->reader));
}

static struct slice
command_get_value(struct command_decoder *decoder)
{
	uint64_t size = reader_vint(&decoder->reader);

	return size == 0 ? slice_null : command_get_sized(decoder, size - 1);
}

/* A count of things that take at least a byte each. */
static int
command_get_count(struct command_decoder *decoder, uint32_t *count)
{
	uint64_t value = reader_vint(&decoder->reader);

	if (decoder->reader.is_failed || value > reader_left(&decoder->reader) ||
	    value > UINT32_MAX)
		return command_truncated(decoder);
	*count = (uint32_t)value;
	return 0;
}

static int
command_get_range(struct command_decoder *decoder, struct token_range *range)
{
	uint8_t flags;

	range->left = (int64_t)reader_u64(&decoder->reader);
	range->right = (int64_t)reader_u64(&decoder->reader);
	flags = reader_u8(&decoder->reader);
	range->includes_left = (flags & RANGE_INCLUDES_LEFT) != 0;
	range->excludes_right = (flags & RANGE_EXCLUDES_RIGHT) != 0;
	range->start_key_exclusive = (flags & RANGE_KEY_EXCLUSIVE) != 0;
	range->start_key = slice_null;
	if (flags & RANGE_HAS_KEY)
		range->start_key = command_get_bytes(decoder);
	if (decoder->reader.is_failed)
		return command_truncated(decoder);
	if (flags & ~RANGE_FLAGS_ALL ||
	    (!slice_is_null(range->start_key) && murmur3_token(range->start_key) != range->left))
		return command_bad(decoder, "has a range that does not fit its key");
	return 0;
}

static int
command_get_position(struct command_decoder *decoder, struct slice *position,
    enum position_place *place, uint32_t *count)
{
	const struct slice *values;

	*position = command_get_bytes(decoder);
	if (decoder->reader.is_failed)
		return command_truncated(decoder);
	return position_decode(
	    decoder->table, *position, decoder->arena, place, &values, count, decoder->err);
}

/* A slice of one clustering: what lies between "before" and "after" the same values. */
static bool
command_is_point(const struct clustering_slice *slice)
{
	return slice->start.size == slice->end.size && slice->start.size != 0 &&
	    memcmp(slice->start.data, slice->end.data, slice->start.size - 1) == 0;
}

static int
command_get_slice(struct command_decoder *decoder, struct clustering_slice *slice, bool *is_one_row)
{
	uint8_t bounds = reader_u8(&decoder->reader);
	enum position_place start = POSITION_PLACE_ROW, end = POSITION_PLACE_ROW;
	uint32_t count = 0, end_count;

	*slice = (struct clustering_slice){slice_null, slice_null};
	if ((bounds & SLICE_HAS_START) != 0 &&
	    command_get_position(decoder, &slice->start, &start, &count) != 0)
		return -1;
	if ((bounds & SLICE_HAS_END) != 0 &&
	    command_get_position(decoder, &slice->end, &end, &end_count) != 0)
		return -1;
	*is_one_row = start == POSITION_PLACE_BEFORE && end == POSITION_PLACE_AFTER &&
	    count == decoder->table->clustering_count && command_is_point(slice);
	return decoder->reader.is_failed ? command_truncated(decoder) : 0;
}

static int
command_get_slices(struct command_decoder *decoder, struct clustering_filter *filter)
{
	struct clustering_slice *slices;

	if (command_get_count(decoder, &filter->slice_count) != 0)
		return -1;
	slices = arena_calloc(decoder->arena, filter->slice_count, sizeof(*slices));
	if (slices == NULL)
		return command_no_memory(decoder);
	filter->slices = slices;
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		struct clustering_slice *slice = &slices[i];
		bool is_one_row = false, is_wrong;

		if (command_get_slice(decoder, slice, &is_one_row) != 0)
			return -1;
		is_wrong = !slice_is_null(slice->start) && !slice_is_null(slice->end) &&
		    slice_compare(slice->start, slice->end) >= 0;
		if (i != 0)
			is_wrong = is_wrong || slice_is_null(slice->start) ||
			    slice_is_null(slices[i - 1].end) ||
			    slice_compare(slices[i - 1].end, slice->start) > 0;
		if (is_wrong)
			return command_bad(decoder, "has slices that are out of order");
		if (filter->is_names && !is_one_row)
			return command_bad(decoder, "by names has a slice of more than one row");
	}
	return 0;
}

/* The bitmap of a list of names. A column that was dropped here has no cells. */
static int
command_get_wanted(struct command_decoder *decoder, enum column_kind kind, const uint64_t **out)
{
	const struct table_metadata *table = decoder->table;
	uint32_t all = kind == COLUMN_STATIC ? table->static_count : table->regular_count, count;
	uint64_t *wanted = arena_calloc(decoder->arena, (size_t)all / 64 + 1, sizeof(*wanted));

	if (wanted == NULL)
		return command_no_memory(decoder);
	if (command_get_count(decoder, &count) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		struct slice name = command_get_bytes(decoder);
		const struct column_metadata *column = table_column(table, name);

		if (decoder->reader.is_failed)
			return command_truncated(decoder);
		if (column != NULL && column->kind == kind)
			wanted[column->position / 64] |= UINT64_C(1) << (column->position % 64);
		else if (table_dropped_column(table, name) == NULL)
			return command_unknown(decoder, "column", name);
	}
	*out = wanted;
	return 0;
}

static int
command_get_filter(struct command_decoder *decoder, struct filter_expression *filter)
{
	struct slice name = command_get_bytes(decoder), *values;

	filter->operator= reader_u8(&decoder->reader);
	filter->value = command_get_value(decoder);
	filter->map_key = command_get_value(decoder);
	if (command_get_count(decoder, &filter->value_count) != 0)
		return -1;
	if (filter->operator> FILTER_IS_NOT_NULL)
		return command_bad(decoder, "has an unknown operator");
	filter->column = table_column(decoder->table, name);
	if (filter->column == NULL)
		return command_unknown(decoder, "column", name);
	values = arena_calloc(decoder->arena, filter->value_count, sizeof(*values));
	if (values == NULL)
		return command_no_memory(decoder);
	for (uint32_t i = 0; i < filter->value_count; i++)
		values[i] = command_get_value(decoder);
	filter->values = values;
	return decoder->reader.is_failed ? command_truncated(decoder) : 0;
}

static int
command_get_filters(struct command_decoder *decoder, struct read_command *command)
{
	struct filter_expression *filters;

	if (command_get_count(decoder, &command->filter_count) != 0)
		return -1;
	filters = arena_calloc(decoder->arena, command->filter_count, sizeof(*filters));
	if (filters == NULL)
		return command_no_memory(decoder);
	for (uint32_t i = 0; i < command->filter_count; i++)
		if (command_get_filter(decoder, &filters[i]) != 0)
			return -1;
	command->filters = filters;
	return 0;
}

static int
command_get_limit(struct command_decoder *decoder, uint64_t flag, uint32_t *limit)
{
	uint64_t value;

	*limit = READ_LIMIT_NONE;
	if (flag == 0)
		return 0;
	value = reader_vint(&decoder->reader);
	if (decoder->reader.is_failed)
		return command_truncated(decoder);
	if (value >= READ_LIMIT_NONE)
		return command_bad(decoder, "has a limit that is none");
	*limit = (uint32_t)value;
	return 0;
}

/* What follows the table's id. */
static int
command_get_body(struct command_decoder *decoder, uint64_t flags, struct read_command *command)
{
	enum position_place place;
	uint32_t count;

	if (command->is_range) {
		if (command_get_range(decoder, &command->range) != 0)
			return -1;
	} else {
		command->key = command_get_bytes(decoder);
		if (decoder->reader.is_failed)
			return command_truncated(decoder);
		command->token = murmur3_token(command->key);
	}
	if ((flags & COMMAND_HAS_SLICES) != 0 &&
	    command_get_slices(decoder, &command->clustering) != 0)
		return -1;
	if ((flags & COMMAND_HAS_AFTER) != 0 &&
	    command_get_position(decoder, &command->after_position, &place, &count) != 0)
		return -1;
	if ((flags & COMMAND_HAS_REGULARS) != 0 &&
	    command_get_wanted(decoder, COLUMN_REGULAR, &command->wanted_regulars) != 0)
		return -1;
	if ((flags & COMMAND_HAS_STATICS) != 0 &&
	    command_get_wanted(decoder, COLUMN_STATIC, &command->wanted_statics) != 0)
		return -1;
	if ((flags & COMMAND_HAS_FILTERS) != 0 && command_get_filters(decoder, command) != 0)
		return -1;
	if (command_get_limit(decoder, flags & COMMAND_HAS_ROW_LIMIT, &command->row_limit) != 0 ||
	    command_get_limit(
		decoder, flags & COMMAND_HAS_PARTITION_LIMIT, &command->per_partition_limit) != 0)
		return -1;
	command->now_seconds = reader_signed_vint(&decoder->reader);
	if (decoder->reader.is_failed || reader_left(&decoder->reader) != 0)
		return command_truncated(decoder);
	return 0;
}

int
read_command_decode(struct slice encoded, mutation_table_fn find, void *argument,
    struct arena *arena, struct read_command *out, struct error *err)
{
	struct command_decoder decoder = {reader_of(encoded), NULL, arena, err};
	uint8_t version = reader_u8(&decoder.reader);
	uint64_t flags = reader_vint(&decoder.reader);
	char text[UUID_TEXT_SIZE];
	struct slice id_bytes;
	struct uuid id;

	id_bytes = command_get_sized(&decoder, sizeof(id.bytes));
	if (decoder.reader.is_failed)
		return command_truncated(&decoder);
	if (version != COMMAND_VERSION || (flags & ~(uint64_t)COMMAND_FLAGS_ALL) != 0)
		return command_bad(&decoder, "has an unknown version or flags");
	memcpy(id.bytes, id_bytes.data, sizeof(id.bytes));
	decoder.table = find(argument, &id);
	if (decoder.table == NULL) {
		uuid_format(&id, text);
		return command_unknown(&decoder, "table", slice_of_string(text));
	}
	*out = (struct read_command){
	    .table = decoder.table,
	    .is_range = (flags & COMMAND_IS_RANGE) != 0,
	    .clustering = {.is_reversed = (flags & COMMAND_IS_REVERSED) != 0,
		.is_names = (flags & COMMAND_IS_NAMES) != 0,
		.with_static = (flags & COMMAND_WITH_STATIC) != 0},
	    .is_transient = (flags & COMMAND_IS_TRANSIENT) != 0,
	};
	return command_get_body(&decoder, flags, out);
}

bool
read_command_peek(struct slice encoded, struct uuid *table_id, struct slice *key)
{
	struct reader reader = reader_of(encoded);
	uint8_t version = reader_u8(&reader);
	uint64_t flags = reader_vint(&reader), size;
	struct slice id = reader_bytes(&reader, sizeof(table_id->bytes));

	if (reader.is_failed || version != COMMAND_VERSION || (flags & COMMAND_IS_RANGE) != 0)
		return false;
	size = reader_vint(&reader);
	if (reader.is_failed || size > reader_left(&reader))
		return false;
	memcpy(table_id->bytes, id.data, sizeof(table_id->bytes));
	*key = reader_bytes(&reader, (size_t)size);
	return true;
}
