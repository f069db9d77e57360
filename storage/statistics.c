/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/statistics.h"

#include <stdlib.h>
#include "base/hash.h"
#include "base/histogram.h"

/* MetadataType: the numbers are on disk. */
enum statistics_part {
	STATISTICS_VALIDATION,
	STATISTICS_COMPACTION,
	STATISTICS_STATS,
	STATISTICS_HEADER,
};
enum { STATISTICS_PART_COUNT = STATISTICS_HEADER + 1, STATISTICS_CRC_SIZE = 4 };

static const char *const statistics_part_names[STATISTICS_PART_COUNT] = {
    "validation", "compaction", "stats", "header"};

/* ---- the frame: table of contents and checksums ---------------------------------------------- */

static void
statistics_crc_int(uint32_t *crc, uint32_t value)
{
	uint8_t bytes[4];

	store_u32(bytes, value);
	*crc = crc32_update(*crc, bytes, sizeof(bytes));
}

/* Bytes of the parts without their CRCs; a part that is not there is null. */
static int
statistics_split(struct slice content, struct slice parts[STATISTICS_PART_COUNT], struct error *err)
{
	struct reader reader = reader_of(content);
	uint32_t positions[STATISTICS_PART_COUNT] = {0};
	uint32_t crc = 0;
	uint32_t count = reader_u32(&reader);

	statistics_crc_int(&crc, count);
	if (reader_u32(&reader) != crc || reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "bad CRC at byte 4");
	if (count > STATISTICS_PART_COUNT)
		return error_set(err, ERROR_CORRUPT, "%u parts", count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t part = reader_u32(&reader);
		uint32_t position = reader_u32(&reader);

		statistics_crc_int(&crc, part);
		statistics_crc_int(&crc, position);
		if (part >= STATISTICS_PART_COUNT || position > content.size)
			return error_set(
			    err, ERROR_CORRUPT, "part %u at %u is not possible", part, position);
		positions[part] = position;
	}
	if (reader_u32(&reader) != crc || reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "bad CRC of the table of contents");
	for (int part = 0; part < STATISTICS_PART_COUNT; part++) {
		size_t end = content.size;

		parts[part] = slice_null;
		if (positions[part] == 0)
			continue;
		for (int other = 0; other < STATISTICS_PART_COUNT; other++) {
			if (positions[other] > positions[part] && positions[other] < end)
				end = positions[other];
		}
		if (end - positions[part] < STATISTICS_CRC_SIZE)
			return error_set(err, ERROR_CORRUPT, "%s part ends early at byte %zu",
			    statistics_part_names[part], end);
		parts[part] = slice_of(
		    content.data + positions[part], end - positions[part] - STATISTICS_CRC_SIZE);
		if (crc32_update(0, parts[part].data, parts[part].size) !=
		    load_u32(parts[part].data + parts[part].size))
			return error_set(err, ERROR_CORRUPT, "bad CRC of the %s part at byte %u",
			    statistics_part_names[part], positions[part]);
	}
	return 0;
}

static void
statistics_join(const struct slice parts[STATISTICS_PART_COUNT], struct buffer *out)
{
	uint32_t count = 0, crc = 0, position;

	for (int part = 0; part < STATISTICS_PART_COUNT; part++)
		count += !slice_is_null(parts[part]);
	statistics_crc_int(&crc, count);
	buffer_put_u32(out, count);
	buffer_put_u32(out, crc);
	position = 4 + STATISTICS_CRC_SIZE + count * 8 + STATISTICS_CRC_SIZE;
	for (int part = 0; part < STATISTICS_PART_COUNT; part++) {
		if (slice_is_null(parts[part]))
			continue;
		statistics_crc_int(&crc, (uint32_t)part);
		statistics_crc_int(&crc, position);
		buffer_put_u32(out, (uint32_t)part);
		buffer_put_u32(out, position);
		position += (uint32_t)parts[part].size + STATISTICS_CRC_SIZE;
	}
	buffer_put_u32(out, crc);
	for (int part = 0; part < STATISTICS_PART_COUNT; part++) {
		if (slice_is_null(parts[part]))
			continue;
		buffer_put_slice(out, parts[part]);
		buffer_put_u32(out, crc32_update(0, parts[part].data, parts[part].size));
	}
}

/* ---- pieces ------------------------------------------------------------------------------------ */

static double
statistics_double(struct reader *reader)
{
	uint64_t bits = reader_u64(reader);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void
statistics_put_double(struct buffer *out, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	buffer_put_u64(out, bits);
}

static struct slice
statistics_text(struct reader *reader, struct arena *arena)
{
	return arena_copy(arena, reader_bytes(reader, reader_u16(reader)));
}

static struct commitlog_position
statistics_position(struct reader *reader)
{
	struct commitlog_position position;

	position.segment_id = (int64_t)reader_u64(reader);
	position.position = (int32_t)reader_u32(reader);
	return position;
}

static void
statistics_put_position(struct buffer *out, struct commitlog_position position)
{
	buffer_put_u64(out, (uint64_t)position.segment_id);
	buffer_put_u32(out, (uint32_t)position.position);
}

/* A count of things that take at least `width` bytes each; marks the reader failed when too many. */
static uint32_t
statistics_count(struct reader *reader, uint64_t count, size_t width)
{
	if (count > reader_left(reader) / width) {
		reader->is_failed = true;
		reader->at = reader->end;
		return 0;
	}
	return (uint32_t)count;
}

static int
statistics_histogram(
    struct reader *reader, struct arena *arena, struct sstable_histogram *out, struct error *err)
{
	uint32_t count = statistics_count(reader, reader_u32(reader), 16);
	int64_t *offsets = arena_calloc(arena, (size_t)count + 1, sizeof(int64_t));
	int64_t *counts = arena_calloc(arena, (size_t)count + 1, sizeof(int64_t));

	if (offsets == NULL || counts == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a histogram");
	for (uint32_t i = 0; i < count; i++) {
		int64_t offset = (int64_t)reader_u64(reader);

		if (i > 0)
			offsets[i - 1] = offset;
		else
			offsets[0] = offset;
		counts[i] = (int64_t)reader_u64(reader);
	}
	*out = (struct sstable_histogram){count, offsets, counts};
	return 0;
}

static void
statistics_put_histogram(struct buffer *out, const struct sstable_histogram *histogram)
{
	buffer_put_u32(out, histogram->count);
	for (uint32_t i = 0; i < histogram->count; i++) {
		buffer_put_u64(out, (uint64_t)histogram->offsets[i == 0 ? 0 : i - 1]);
		buffer_put_u64(out, (uint64_t)histogram->counts[i]);
	}
}

static int
statistics_drop_times_decode(
    struct reader *reader, struct arena *arena, struct sstable_drop_times *out, struct error *err)
{
	uint32_t count;
	int32_t *times;
	int64_t *counts;

	reader_u32(reader); /* the most bins that there may be: of no use to a reader */
	count = statistics_count(reader, reader_u32(reader), 16);
	times = arena_calloc(arena, (size_t)count + 1, sizeof(int32_t));
	counts = arena_calloc(arena, (size_t)count + 1, sizeof(int64_t));
	if (times == NULL || counts == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a histogram");
	for (uint32_t i = 0; i < count; i++) {
		double time = statistics_double(reader);

		times[i] = time >= INT32_MAX - 1 ? INT32_MAX - 1 : time >= 0 ? (int32_t)time : 0;
		counts[i] = (int64_t)reader_u64(reader);
	}
	*out = (struct sstable_drop_times){count, times, counts};
	return 0;
}

static int
statistics_clustering(struct reader *reader, struct arena *arena, uint32_t *count,
    const struct slice **values, struct error *err)
{
	uint32_t n = statistics_count(reader, reader_u32(reader), 2);
	struct slice *array = arena_calloc(arena, (size_t)n + 1, sizeof(struct slice));

	if (array == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u values", n);
	for (uint32_t i = 0; i < n; i++)
		array[i] = statistics_text(reader, arena);
	*count = n;
	*values = array;
	return 0;
}

static void
statistics_put_clustering(struct buffer *out, uint32_t count, const struct slice *values)
{
	buffer_put_u32(out, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_u16(out, (uint16_t)values[i].size);
		buffer_put_slice(out, values[i]);
	}
}

/* ---- the stats part ------------------------------------------------------------------------------ */

static int
statistics_decode_intervals(
    struct reader *reader, struct arena *arena, struct sstable_stats *stats, struct error *err)
{
	uint32_t count = statistics_count(reader, reader_u32(reader), 24);
	struct commitlog_interval *intervals =
	    arena_calloc(arena, (size_t)count + 1, sizeof(*intervals));

	if (intervals == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u intervals", count);
	for (uint32_t i = 0; i < count; i++) {
		intervals[i].start = statistics_position(reader);
		intervals[i].end = statistics_position(reader);
	}
	stats->commitlog_count = count;
	stats->commitlog = intervals;
	return 0;
}

static bool
statistics_optional_uuid(struct reader *reader, struct uuid *out)
{
	bool is_there = reader_u8(reader) != 0;

	if (is_there) {
		struct slice bytes = reader_bytes(reader, sizeof(out->bytes));

		if (bytes.size == sizeof(out->bytes))
			memcpy(out->bytes, bytes.data, sizeof(out->bytes));
	}
	return is_there;
}

static int
statistics_decode_stats(
    struct reader *reader, struct arena *arena, struct sstable_stats *stats, struct error *err)
{
	if (statistics_histogram(reader, arena, &stats->partition_sizes, err) != 0 ||
	    statistics_histogram(reader, arena, &stats->cells_per_partition, err) != 0)
		return -1;
	stats->commitlog_upper = statistics_position(reader);
	stats->min_timestamp = (int64_t)reader_u64(reader);
	stats->max_timestamp = (int64_t)reader_u64(reader);
	stats->min_local_deletion_time = (int32_t)reader_u32(reader);
	stats->max_local_deletion_time = (int32_t)reader_u32(reader);
	stats->min_ttl = (int32_t)reader_u32(reader);
	stats->max_ttl = (int32_t)reader_u32(reader);
	stats->compression_ratio = statistics_double(reader);
	if (statistics_drop_times_decode(reader, arena, &stats->drop_times, err) != 0)
		return -1;
	stats->level = (int32_t)reader_u32(reader);
	stats->repaired_at = (int64_t)reader_u64(reader);
	if (statistics_clustering(
		reader, arena, &stats->min_clustering_count, &stats->min_clustering, err) != 0 ||
	    statistics_clustering(
		reader, arena, &stats->max_clustering_count, &stats->max_clustering, err) != 0)
		return -1;
	stats->has_legacy_counter_shards = reader_u8(reader) != 0;
	stats->total_columns_set = (int64_t)reader_u64(reader);
	stats->total_rows = (int64_t)reader_u64(reader);
	statistics_position(reader); /* lower end: the start of the first interval says the same */
	if (statistics_decode_intervals(reader, arena, stats, err) != 0)
		return -1;
	stats->has_pending_repair = statistics_optional_uuid(reader, &stats->pending_repair);
	stats->is_transient = reader_u8(reader) != 0;
	stats->has_host_id = statistics_optional_uuid(reader, &stats->host_id);
	return 0;
}

static void
statistics_put_optional_uuid(struct buffer *out, bool is_there, const struct uuid *uuid)
{
	buffer_put_u8(out, is_there);
	if (is_there)
		buffer_put(out, uuid->bytes, sizeof(uuid->bytes));
}

static void
statistics_encode_stats(const struct sstable_stats *stats, struct buffer *out)
{
	struct commitlog_position none = {-1, 0}; /* CommitLogPosition.NONE */

	statistics_put_histogram(out, &stats->partition_sizes);
	statistics_put_histogram(out, &stats->cells_per_partition);
	statistics_put_position(out,
	    stats->commitlog_count > 0 ? stats->commitlog[stats->commitlog_count - 1].end : none);
	buffer_put_u64(out, (uint64_t)stats->min_timestamp);
	buffer_put_u64(out, (uint64_t)stats->max_timestamp);
	buffer_put_u32(out, (uint32_t)stats->min_local_deletion_time);
	buffer_put_u32(out, (uint32_t)stats->max_local_deletion_time);
	buffer_put_u32(out, (uint32_t)stats->min_ttl);
	buffer_put_u32(out, (uint32_t)stats->max_ttl);
	statistics_put_double(out, stats->compression_ratio);
	buffer_put_u32(out, stats->drop_times.count); /* as many bins as there are: it is closed */
	buffer_put_u32(out, stats->drop_times.count);
	for (uint32_t i = 0; i < stats->drop_times.count; i++) {
		statistics_put_double(out, stats->drop_times.times[i]);
		buffer_put_u64(out, (uint64_t)stats->drop_times.counts[i]);
	}
	buffer_put_u32(out, (uint32_t)stats->level);
	buffer_put_u64(out, (uint64_t)stats->repaired_at);
	statistics_put_clustering(out, stats->min_clustering_count, stats->min_clustering);
	statistics_put_clustering(out, stats->max_clustering_count, stats->max_clustering);
	buffer_put_u8(out, stats->has_legacy_counter_shards);
	buffer_put_u64(out, (uint64_t)stats->total_columns_set);
	buffer_put_u64(out, (uint64_t)stats->total_rows);
	statistics_put_position(out, stats->commitlog_count > 0 ? stats->commitlog[0].start : none);
	buffer_put_u32(out, stats->commitlog_count);
	for (uint32_t i = 0; i < stats->commitlog_count; i++) {
		statistics_put_position(out, stats->commitlog[i].start);
		statistics_put_position(out, stats->commitlog[i].end);
	}
	statistics_put_optional_uuid(out, stats->has_pending_repair, &stats->pending_repair);
	buffer_put_u8(out, stats->is_transient);
	statistics_put_optional_uuid(out, stats->has_host_id, &stats->host_id);
}

/* ---- the header part ------------------------------------------------------------------------------ */

static struct slice
statistics_vint_text(struct reader *reader)
{
	uint64_t size = reader_vint(reader);

	if (size > reader_left(reader)) {
		reader->is_failed = true;
		return slice_empty;
	}
	return reader_bytes(reader, (size_t)size);
}

/* Columns order: simple ones before complex ones, each by the bytes of the name. */
static int
statistics_column_compare(const void *a, const void *b)
{
	const struct column_metadata *left = a, *right = b;

	if (left->is_complex != right->is_complex)
		return left->is_complex ? 1 : -1;
	return slice_compare(left->name, right->name);
}

static int
statistics_decode_columns(struct reader *reader, enum column_kind kind, struct arena *arena,
    uint32_t *count, struct column_metadata **out, struct error *err)
{
	uint32_t n = statistics_count(reader, reader_vint(reader), 2);
	struct column_metadata *columns = arena_calloc(arena, (size_t)n + 1, sizeof(*columns));

	if (columns == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u columns", n);
	if (n > UINT16_MAX)
		return error_set(err, ERROR_CORRUPT, "%u columns in the header part", n);
	for (uint32_t i = 0; i < n; i++) {
		struct slice name = statistics_vint_text(reader);
		struct slice type = statistics_vint_text(reader);
		bool is_reversed;

		if (reader->is_failed)
			return error_set(err, ERROR_CORRUPT, "header part ends early");
		columns[i].name = arena_copy(arena, name);
		if (type_parse_class(type, arena, &columns[i].type, err) != 0) {
			if (err != NULL && err->code != ERROR_NO_MEMORY)
				err->code = ERROR_CORRUPT;
			error_prefix(err, "type of column %u in the header part", i);
			return -1;
		}
		columns[i].type = type_unreversed(columns[i].type, &is_reversed);
		columns[i].kind = kind;
		columns[i].is_complex = columns[i].type->is_multi_cell;
	}
	qsort(columns, n, sizeof(*columns), statistics_column_compare);
	for (uint32_t i = 0; i < n; i++)
		columns[i].position = (uint16_t)i;
	*count = n;
	*out = columns;
	return 0;
}

static int
statistics_decode_header(
    struct reader *reader, struct arena *arena, struct statistics_header *header, struct error *err)
{
	struct slice *types;

	header->min_timestamp = (int64_t)(reader_vint(reader) + (uint64_t)CODEC_TIMESTAMP_EPOCH);
	header->min_local_deletion_time =
	    (int32_t)(uint32_t)(reader_vint(reader) + CODEC_DELETION_TIME_EPOCH);
	header->min_ttl = (int32_t)(uint32_t)(reader_vint(reader) + CODEC_TTL_EPOCH);
	header->key_type = arena_copy(arena, statistics_vint_text(reader));
	header->clustering_count = statistics_count(reader, reader_vint(reader), 1);
	types = arena_calloc(arena, (size_t)header->clustering_count + 1, sizeof(*types));
	if (types == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for types");
	for (uint32_t i = 0; i < header->clustering_count; i++)
		types[i] = arena_copy(arena, statistics_vint_text(reader));
	header->clustering_types = types;
	if (statistics_decode_columns(
		reader, COLUMN_STATIC, arena, &header->static_count, &header->statics, err) != 0)
		return -1;
	return statistics_decode_columns(
	    reader, COLUMN_REGULAR, arena, &header->regular_count, &header->regulars, err);
}

static void
statistics_put_class(struct buffer *out, const struct type *type, bool is_reversed)
{
	struct buffer text;

	buffer_init(&text);
	if (is_reversed)
		buffer_put_string(&text, "org.apache.cassandra.db.marshal.ReversedType(");
	type_print_class(type, &text);
	if (is_reversed)
		buffer_put_u8(&text, ')');
	buffer_put_vint(out, text.size);
	buffer_put_slice(out, buffer_slice(&text));
	if (text.is_failed)
		out->is_failed = true;
	buffer_fini(&text);
}

static void
statistics_put_key_type(struct buffer *out, const struct table_metadata *table)
{
	struct buffer text;

	if (table->partition_key_count == 1) {
		statistics_put_class(out, table->partition_key[0].type, false);
		return;
	}
	buffer_init(&text);
	buffer_put_string(&text, "org.apache.cassandra.db.marshal.CompositeType(");
	for (uint32_t i = 0; i < table->partition_key_count; i++) {
		if (i > 0)
			buffer_put_u8(&text, ',');
		type_print_class(table->partition_key[i].type, &text);
	}
	buffer_put_u8(&text, ')');
	buffer_put_vint(out, text.size);
	buffer_put_slice(out, buffer_slice(&text));
	if (text.is_failed)
		out->is_failed = true;
	buffer_fini(&text);
}

static void
statistics_put_columns(struct buffer *out, uint32_t count, const struct column_metadata *columns)
{
	buffer_put_vint(out, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_vint(out, columns[i].name.size);
		buffer_put_slice(out, columns[i].name);
		statistics_put_class(out, columns[i].type, false);
	}
}

static void
statistics_encode_header(
    const struct table_metadata *table, const struct row_codec *codec, struct buffer *out)
{
	buffer_put_vint(out, (uint64_t)codec->min_timestamp - (uint64_t)CODEC_TIMESTAMP_EPOCH);
	/* Java takes the difference of two ints before it becomes a long. */
	buffer_put_vint(out,
	    (uint64_t)(int64_t)(int32_t)((uint32_t)codec->min_local_deletion_time -
		(uint32_t)CODEC_DELETION_TIME_EPOCH));
	buffer_put_vint(out, (uint64_t)(int64_t)(codec->min_ttl - CODEC_TTL_EPOCH));
	statistics_put_key_type(out, table);
	buffer_put_vint(out, table->clustering_count);
	for (uint32_t i = 0; i < table->clustering_count; i++)
		statistics_put_class(
		    out, table->clustering[i].type, table->clustering[i].is_reversed);
	statistics_put_columns(out, codec->static_count, codec->statics);
	statistics_put_columns(out, codec->regular_count, codec->regulars);
}

/* ---- the whole -------------------------------------------------------------------------------------- */

int
statistics_decode(
    struct slice content, struct arena *arena, struct statistics *out, struct error *err)
{
	struct slice parts[STATISTICS_PART_COUNT];
	struct reader reader;

	*out = (struct statistics){0};
	if (statistics_split(content, parts, err) != 0)
		return -1;
	for (int part = 0; part < STATISTICS_PART_COUNT; part++) {
		if (slice_is_null(parts[part]))
			return error_set(err, ERROR_CORRUPT, "the %s part is missing",
			    statistics_part_names[part]);
	}
	reader = reader_of(parts[STATISTICS_VALIDATION]);
	out->stats.partitioner = statistics_text(&reader, arena);
	out->stats.fp_chance = statistics_double(&reader);
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "validation part ends early");
	reader = reader_of(parts[STATISTICS_COMPACTION]);
	out->cardinality = arena_copy(arena, reader_bytes(&reader, reader_u32(&reader)));
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "compaction part ends early");
	reader = reader_of(parts[STATISTICS_STATS]);
	if (statistics_decode_stats(&reader, arena, &out->stats, err) != 0)
		return -1;
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "stats part ends early");
	reader = reader_of(parts[STATISTICS_HEADER]);
	if (statistics_decode_header(&reader, arena, &out->header, err) != 0)
		return -1;
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "header part ends early");
	return 0;
}

static void
statistics_encode_parts(const struct sstable_stats *stats, struct slice cardinality,
    const struct table_metadata *table, const struct row_codec *codec,
    struct buffer buffers[STATISTICS_PART_COUNT])
{
	buffer_put_u16(&buffers[STATISTICS_VALIDATION], (uint16_t)stats->partitioner.size);
	buffer_put_slice(&buffers[STATISTICS_VALIDATION], stats->partitioner);
	statistics_put_double(&buffers[STATISTICS_VALIDATION], stats->fp_chance);
	buffer_put_u32(&buffers[STATISTICS_COMPACTION], (uint32_t)cardinality.size);
	buffer_put_slice(&buffers[STATISTICS_COMPACTION], cardinality);
	statistics_encode_stats(stats, &buffers[STATISTICS_STATS]);
	statistics_encode_header(table, codec, &buffers[STATISTICS_HEADER]);
}

void
statistics_encode(const struct sstable_stats *stats, struct slice cardinality,
    const struct table_metadata *table, const struct row_codec *codec, struct buffer *out)
{
	struct buffer buffers[STATISTICS_PART_COUNT];
	struct slice parts[STATISTICS_PART_COUNT];

	for (int part = 0; part < STATISTICS_PART_COUNT; part++)
		buffer_init(&buffers[part]);
	statistics_encode_parts(stats, cardinality, table, codec, buffers);
	for (int part = 0; part < STATISTICS_PART_COUNT; part++) {
		parts[part] = buffer_slice(&buffers[part]);
		if (buffers[part].is_failed)
			out->is_failed = true;
	}
	statistics_join(parts, out);
	for (int part = 0; part < STATISTICS_PART_COUNT; part++)
		buffer_fini(&buffers[part]);
}

int
statistics_rewrite(struct slice content, const struct sstable_stats *changed, struct buffer *out,
    struct error *err)
{
	struct slice parts[STATISTICS_PART_COUNT];
	struct buffer stats;

	if (statistics_split(content, parts, err) != 0)
		return -1;
	if (slice_is_null(parts[STATISTICS_STATS]))
		return error_set(err, ERROR_CORRUPT, "the stats part is missing");
	buffer_init(&stats);
	statistics_encode_stats(changed, &stats);
	if (buffer_check(&stats, err) != 0) {
		buffer_fini(&stats);
		return -1;
	}
	parts[STATISTICS_STATS] = buffer_slice(&stats);
	statistics_join(parts, out);
	buffer_fini(&stats);
	return buffer_check(out, err);
}
