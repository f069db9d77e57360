/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes all components of one SSTable in one pass (BigTableWriter, ColumnIndex,
 * CompressedSequentialWriter, ChecksummedSequentialWriter). Rows are encoded straight into the buffer that
 * chunks are compressed from; a chunk leaves as soon as it is full. Index.db is written along; what
 * is small (Summary, Filter, Statistics, ...) is kept in memory and written at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/compress.h"
#include "storage/merge.h"
#include "storage/sstable_internal.h"

enum {
	WRITER_OUT_BYTES = 256 * 1024, /* of one write */
	WRITER_ARENA = 16 * 1024,
	WRITER_HASHES = 64,
	WRITER_BLOCK_BYTES = 64 * 1024, /* default of column_index_size */
};

/* The promoted index of the partition that is being written. */
struct sstable_writer_blocks {
	uint32_t count;
	struct buffer infos; /* IndexInfo, encoded */
	struct buffer offsets; /* int32 each */
	struct buffer first; /* prefix of the current block's first item; empty: none yet */
	uint64_t start; /* of the current block, in Data.db before compression */
	struct deletion open; /* behind the last item */
};

/* The partition that is being written. */
struct sstable_writer_partition {
	uint64_t start; /* of it in the data */
	uint64_t previous; /* item */
	uint64_t header_length;
	struct deletion deletion;
	bool has_items; /* with clusterings, that is */
};

struct sstable_writer {
	struct sstable_context context;
	struct sstable_writer_options options; /* directory owned; pointers inside are not kept */
	struct table_metadata *table; /* a reference */
	struct arena arena; /* owned */
	struct row_codec codec;
	struct uuid pending_repair, host_id;

	struct file *data_file, *index_file; /* owned */

	struct buffer data; /* not yet in a chunk */
	uint64_t data_flushed; /* bytes before compression that went into chunks */
	struct compress compress;
	bool is_compressed;
	uint32_t chunk_length;
	uint32_t max_compressed_length;
	struct buffer out; /* stored bytes, not yet in the file */
	uint64_t out_flushed; /* stored bytes in the file */
	uint64_t unsynced; /* of them, since the last fdatasync */
	struct buffer offsets; /* uint64_t of each chunk, native */
	struct buffer crcs; /* CRC.db */
	uint32_t chunk_count;
	uint32_t digest;

	struct buffer index;
	uint64_t index_flushed;
	struct index_summary_builder summary;
	struct bloom bloom;
	bool has_filter;
	uint64_t hashes[WRITER_HASHES][2]; /* not yet in the filter */
	size_t hash_count;
	double fp_chance;
	struct statistics_collector collector;
	struct sstable_writer_blocks blocks;

	uint64_t keys;
	struct sstable_writer_partition partition;
	int64_t last_token;
	struct buffer last_key;

	/* The clustering of the item that was written last, copied: a source that purges may have
	 * gone over many items when it says that there is no next. */
	enum unfiltered_kind last_kind;
	enum bound_kind last_bound;
	uint32_t last_count;
	struct slice *last_values; /* sizes; data is set when they are asked for */
	struct buffer last_bytes;
};

/* ---- new, free -------------------------------------------------------------------------------------- */

static bool
sstable_writer_wants_all(uint32_t count, const uint64_t *wanted)
{
	for (uint32_t i = 0; i < count; i++) {
		if ((wanted[i >> 6] >> (i & 63) & 1) == 0)
			return false;
	}
	return true;
}

static int
sstable_writer_columns(struct sstable_writer *writer, const struct column_metadata *columns,
    uint32_t count, const uint64_t *wanted, const struct column_metadata **out, uint32_t *out_count,
    struct error *err)
{
	struct column_metadata *kept;

	*out = columns;
	*out_count = count;
	if (wanted == NULL || sstable_writer_wants_all(count, wanted))
		return 0; /* the table's own array: cells that point into it need no search */
	kept = arena_calloc(&writer->arena, (size_t)count + 1, sizeof(*kept));
	if (kept == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %u columns", count);
	*out = kept;
	*out_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if ((wanted[i >> 6] >> (i & 63) & 1) != 0)
			kept[(*out_count)++] = columns[i];
	}
	return 0;
}

static int
sstable_writer_init_codec(struct sstable_writer *writer, struct error *err)
{
	const struct sstable_writer_options *options = &writer->options;
	const struct table_metadata *table = writer->table;

	writer->codec = (struct row_codec){
	    .table = table,
	    .min_timestamp = options->min_timestamp,
	    .min_local_deletion_time = options->min_local_deletion_time,
	    .min_ttl = options->min_ttl,
	};
	if (sstable_writer_columns(writer, table->statics, table->static_count, options->statics,
		&writer->codec.statics, &writer->codec.static_count, err) != 0)
		return -1;
	return sstable_writer_columns(writer, table->regulars, table->regular_count,
	    options->regulars, &writer->codec.regulars, &writer->codec.regular_count, err);
}

static int
sstable_writer_init_compression(struct sstable_writer *writer, struct error *err)
{
	const struct table_options *options = &writer->table->options;
	enum compressor kind = options->compressor;

	writer->chunk_length = SSTABLE_CRC_CHUNK;
	if (kind == COMPRESSOR_NONE) {
		buffer_put_u32(&writer->crcs, SSTABLE_CRC_CHUNK);
		return 0;
	}
	/* A flush must not be slower than the writes that fill the memtable: LZ4 until the first
	 * compaction. */
	if (writer->options.is_fast_flush &&
	    (kind == COMPRESSOR_ZSTD || kind == COMPRESSOR_DEFLATE ||
		(kind == COMPRESSOR_LZ4 && options->is_lz4_high_compressor)))
		kind = COMPRESSOR_LZ4;
	if (compress_init(&writer->compress, kind, options, err) != 0)
		return -1;
	if (writer->options.is_fast_flush)
		writer->compress.is_high = writer->compress.is_high && kind != COMPRESSOR_LZ4;
	writer->is_compressed = true;
	writer->chunk_length = (uint32_t)options->chunk_length;
	writer->max_compressed_length = compress_length_max(options);
	return 0;
}

static int
sstable_writer_create(struct sstable_writer *writer, enum sstable_component component,
    struct file **out, struct error *err)
{
	char path[SSTABLE_PATH_MAX];

	if (sstable_path(&writer->options.descriptor, component, path, err) != 0)
		return -1;
	return files_open(
	    writer->context.env->files, path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, out, err);
}

static void
sstable_writer_init_buffers(struct sstable_writer *writer)
{
	struct buffer *buffers[] = {&writer->data, &writer->out, &writer->offsets, &writer->crcs,
	    &writer->index, &writer->last_key, &writer->blocks.infos, &writer->blocks.offsets,
	    &writer->blocks.first};

	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		buffer_init(buffers[i]);
}

static void
sstable_writer_free(struct sstable_writer *writer)
{
	file_close(writer->data_file);
	file_close(writer->index_file);
	if (writer->is_compressed)
		compress_fini(&writer->compress);
	buffer_fini(&writer->data);
	buffer_fini(&writer->out);
	buffer_fini(&writer->offsets);
	buffer_fini(&writer->crcs);
	buffer_fini(&writer->index);
	buffer_fini(&writer->last_key);
	buffer_fini(&writer->last_bytes);
	buffer_fini(&writer->blocks.infos);
	buffer_fini(&writer->blocks.offsets);
	buffer_fini(&writer->blocks.first);
	index_summary_builder_fini(&writer->summary);
	bloom_fini(&writer->bloom);
	statistics_collector_fini(&writer->collector);
	arena_fini(&writer->arena);
	free((char *)writer->options.descriptor.directory);
	table_unref(writer->table);
	free(writer);
}

static void
sstable_writer_copy_options(
    struct sstable_writer *writer, const struct sstable_writer_options *options)
{
	struct commitlog_interval *intervals;

	writer->options = *options;
	writer->options.descriptor.directory = xstrdup(options->descriptor.directory);
	if (options->pending_repair != NULL)
		writer->pending_repair = *options->pending_repair;
	if (options->host_id != NULL)
		writer->host_id = *options->host_id;
	if (writer->options.column_index_bytes == 0)
		writer->options.column_index_bytes = WRITER_BLOCK_BYTES;
	intervals =
	    arena_calloc(&writer->arena, (size_t)options->commitlog_count + 1, sizeof(*intervals));
	if (intervals == NULL)
		writer->options.commitlog_count = 0;
	for (uint32_t i = 0; i < writer->options.commitlog_count; i++)
		intervals[i] = options->commitlog[i];
	writer->options.commitlog = intervals;
}

int
sstable_writer_new(const struct sstable_context *context,
    const struct sstable_writer_options *options, struct sstable_writer **out, struct error *err)
{
	struct sstable_writer *writer = xzalloc(sizeof(*writer));

	writer->context = *context;
	writer->table = table_ref(options->table);
	arena_init(&writer->arena, WRITER_ARENA);
	sstable_writer_init_buffers(writer);
	sstable_writer_copy_options(writer, options);
	buffer_init(&writer->last_bytes);
	writer->last_values =
	    arena_calloc(&writer->arena, writer->table->clustering_count, sizeof(struct slice));
	index_summary_builder_init(
	    &writer->summary, (uint32_t)writer->table->options.min_index_interval);
	statistics_collector_init(&writer->collector);
	writer->fp_chance = table_options_fp_chance(&writer->table->options);
	writer->has_filter = writer->fp_chance < 1;
	if (writer->last_values == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a writer");
		goto fail;
	}
	if (sstable_writer_init_codec(writer, err) != 0 ||
	    sstable_writer_init_compression(writer, err) != 0)
		goto fail;
	if (writer->has_filter &&
	    bloom_init(&writer->bloom, options->expected_keys, writer->fp_chance, err) != 0)
		goto fail;
	if (sstable_writer_create(writer, SSTABLE_DATA, &writer->data_file, err) != 0)
		goto fail;
	if (sstable_writer_create(writer, SSTABLE_INDEX, &writer->index_file, err) != 0) {
		sstable_writer_abort(writer);
		return -1;
	}
	*out = writer;
	return 0;
fail:
	/* Nothing of ours is on the disk yet; what is there belongs to somebody else. */
	sstable_writer_free(writer);
	return -1;
}

void
sstable_writer_abort(struct sstable_writer *writer)
{
	if (writer == NULL)
		return;
	for (int i = SSTABLE_COMPONENT_COUNT - 1; i >= 0; i--) {
		char path[SSTABLE_PATH_MAX];

		if (sstable_path(&writer->options.descriptor, i, path, NULL) == 0)
			files_unlink(writer->context.env->files, path, NULL);
	}
	sstable_writer_free(writer);
}

/* ---- chunks ------------------------------------------------------------------------------------------- */

static int
sstable_writer_flush_out(struct sstable_writer *writer, struct error *err)
{
	struct buffer *out = &writer->out;

	if (buffer_check(out, err) != 0 ||
	    file_write(writer->data_file, out->data, out->size, err) != 0)
		return -1;
	writer->out_flushed += out->size;
	writer->unsynced += out->size;
	buffer_clear(out);
	if (writer->options.sync_interval_bytes > 0 &&
	    writer->unsynced >= writer->options.sync_interval_bytes) {
		writer->unsynced = 0;
		return file_sync(writer->data_file, err);
	}
	return 0;
}

static int
sstable_writer_chunk_compressed(
    struct sstable_writer *writer, struct slice chunk, struct error *err)
{
	struct buffer *out = &writer->out;
	uint64_t offset = writer->out_flushed + out->size;
	size_t bound = compress_bound(writer->compress.kind, writer->chunk_length);
	uint32_t crc;
	size_t size;
	uint8_t *at;

	if (writer->max_compressed_length < INT32_MAX && writer->max_compressed_length > bound)
		bound = writer->max_compressed_length;
	buffer_put(&writer->offsets, &offset, sizeof(offset));
	if (!buffer_reserve(out, bound + COMPRESSION_CRC_SIZE))
		return buffer_check(out, err);
	at = out->data + out->size;
	if (compress_chunk(&writer->compress, chunk, at, &size, err) != 0)
		return -1;
	if (size >= writer->max_compressed_length) {
		/* Not worth it: stored as it is, and so long that a reader can tell. */
		memcpy(at, chunk.data, chunk.size);
		size = chunk.size;
		while (size < writer->max_compressed_length)
			at[size++] = 0;
	}
	crc = crc32_update(0, at, size);
	store_u32(at + size, crc);
	writer->digest =
	    crc32_update(crc32_join(writer->digest, crc, size), at + size, COMPRESSION_CRC_SIZE);
	out->size += size + COMPRESSION_CRC_SIZE;
	return 0;
}

static int
sstable_writer_chunk(struct sstable_writer *writer, struct slice chunk, struct error *err)
{
	if (writer->is_compressed) {
		if (sstable_writer_chunk_compressed(writer, chunk, err) != 0)
			return -1;
	} else {
		uint32_t crc = crc32_update(0, chunk.data, chunk.size);

		buffer_put_u32(&writer->crcs, crc);
		writer->digest = crc32_join(writer->digest, crc, chunk.size);
		buffer_put_slice(&writer->out, chunk);
	}
	writer->chunk_count++;
	if (writer->out.size < WRITER_OUT_BYTES)
		return 0;
	return sstable_writer_flush_out(writer, err);
}

/* Full chunks leave; at the end the rest too. */
static int
sstable_writer_drain(struct sstable_writer *writer, bool is_last, struct error *err)
{
	struct buffer *data = &writer->data;
	size_t done = 0;

	if (buffer_check(data, err) != 0)
		return -1;
	while (data->size - done >= writer->chunk_length || (is_last && done < data->size)) {
		size_t size = data->size - done;

		if (size > writer->chunk_length)
			size = writer->chunk_length;
		if (sstable_writer_chunk(writer, slice_of(data->data + done, size), err) != 0)
			return -1;
		done += size;
	}
	memmove(data->data, data->data + done, data->size - done);
	data->size -= done;
	writer->data_flushed += done;
	return 0;
}

static inline uint64_t
sstable_writer_at(const struct sstable_writer *writer)
{
	return writer->data_flushed + writer->data.size;
}

static int
sstable_writer_flush_index(struct sstable_writer *writer, struct error *err)
{
	struct buffer *index = &writer->index;

	if (buffer_check(index, err) != 0 ||
	    file_write(writer->index_file, index->data, index->size, err) != 0)
		return -1;
	writer->index_flushed += index->size;
	buffer_clear(index);
	return 0;
}

/* ---- the promoted index ----------------------------------------------------------------------------------- */

static void
sstable_writer_put_prefix(
    const struct sstable_writer *writer, const struct unfiltered *item, struct buffer *out)
{
	uint32_t count;
	const struct slice *values = unfiltered_clustering(item, &count);

	if (item->kind == UNFILTERED_MARKER) {
		buffer_put_u8(out, (uint8_t)item->marker.kind);
		buffer_put_u16(out, (uint16_t)count);
	} else {
		buffer_put_u8(out, BOUND_CLUSTERING);
	}
	clustering_encode(writer->table, values, count, out);
}

static void
sstable_writer_close_block(
    struct sstable_writer *writer, uint64_t partition, const struct unfiltered *last)
{
	struct sstable_writer_blocks *blocks = &writer->blocks;
	struct buffer *out = &blocks->infos;
	uint64_t width = sstable_writer_at(writer) - blocks->start;
	bool is_open = !deletion_is_live(blocks->open);

	buffer_put_u32(&blocks->offsets, (uint32_t)out->size);
	buffer_put_slice(out, buffer_slice(&blocks->first));
	sstable_writer_put_prefix(writer, last, out);
	buffer_put_vint(out, blocks->start - partition);
	buffer_put_signed_vint(out, (int64_t)width - INDEX_BLOCK_WIDTH_BASE);
	buffer_put_u8(out, is_open);
	if (is_open)
		deletion_encode(blocks->open, out);
	blocks->count++;
	buffer_clear(&blocks->first);
}

static void
sstable_writer_begin_blocks(struct sstable_writer *writer)
{
	struct sstable_writer_blocks *blocks = &writer->blocks;

	blocks->count = 0;
	blocks->open = DELETION_LIVE;
	buffer_clear(&blocks->infos);
	buffer_clear(&blocks->offsets);
	buffer_clear(&blocks->first);
}

static int
sstable_writer_put_entry(struct sstable_writer *writer, struct slice key, uint64_t partition,
    uint64_t header_length, struct deletion deletion, struct error *err)
{
	const struct sstable_writer_blocks *blocks = &writer->blocks;
	struct buffer *out = &writer->index;
	uint64_t size = 0;
	uint8_t *at;

	index_summary_builder_add(&writer->summary, key, writer->index_flushed + out->size);
	if (blocks->count > 1)
		size = vint_size(header_length) + 12 + vint_size(blocks->count) +
		    blocks->infos.size + blocks->offsets.size;
	if (!buffer_reserve(out, 2 + key.size + 2 * VINT_SIZE_MAX))
		return buffer_check(out, err);
	at = out->data + out->size;
	store_u16(at, (uint16_t)key.size);
	memcpy(at + 2, key.data, key.size);
	at += 2 + key.size;
	at += vint_encode(at, partition);
	at += vint_encode(at, size);
	out->size = (size_t)(at - out->data);
	if (size > 0) {
		if (buffer_check(&blocks->infos, err) != 0 ||
		    buffer_check(&blocks->offsets, err) != 0 ||
		    buffer_check(&blocks->first, err) != 0)
			return -1;
		buffer_put_vint(out, header_length);
		deletion_encode(deletion, out);
		buffer_put_vint(out, blocks->count);
		buffer_put_slice(out, buffer_slice(&blocks->infos));
		buffer_put_slice(out, buffer_slice(&blocks->offsets));
	}
	if (out->size < WRITER_OUT_BYTES)
		return 0;
	return sstable_writer_flush_index(writer, err);
}

/* ---- partitions ---------------------------------------------------------------------------------------------- */

static int
sstable_writer_check_key(
    struct sstable_writer *writer, struct slice key, int64_t token, struct error *err)
{
	if (key.size > UINT16_MAX)
		return error_set(
		    err, ERROR_INVALID, "partition key of %zu bytes is too long", key.size);
	if (writer->keys > 0 &&
	    (token < writer->last_token ||
		(token == writer->last_token &&
		    slice_compare(key, buffer_slice(&writer->last_key)) <= 0)))
		return error_set(err, ERROR_CORRUPT,
		    "partitions are written out of order (token %lld after %lld)", (long long)token,
		    (long long)writer->last_token);
	writer->last_token = token;
	buffer_clear(&writer->last_key);
	buffer_put_slice(&writer->last_key, key);
	return buffer_check(&writer->last_key, err);
}

static void
sstable_writer_put_header(
    struct sstable_writer *writer, const struct unfiltered_iterator *partition)
{
	struct buffer *data = &writer->data;
	static const struct row no_static_row = {
	    .is_static = true,
	    .liveness = {TIMESTAMP_NONE, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = {INT64_MIN, INT32_MAX},
	};
	uint8_t *at;

	at = buffer_append(data, 2 + partition->key.size + 12);
	if (at != NULL) {
		store_u16(at, (uint16_t)partition->key.size);
		memcpy(at + 2, partition->key.data, partition->key.size);
		at += 2 + partition->key.size;
		store_u32(at, (uint32_t)partition->partition_deletion.local_deletion_time);
		store_u64(at + 4, (uint64_t)partition->partition_deletion.marked_for_delete_at);
	}
	statistics_collect_deletion(&writer->collector, partition->partition_deletion);
	if (writer->codec.static_count > 0)
		row_encode(&writer->codec, ROW_CODEC_SSTABLE,
		    partition->has_static_row ? &partition->static_row : &no_static_row, 0, data);
	if (partition->has_static_row)
		statistics_collect_row(&writer->collector, &partition->static_row);
}

static void
sstable_writer_collect_clustering(struct sstable_writer *writer, const struct unfiltered *item)
{
	uint32_t count;
	const struct slice *values = unfiltered_clustering(item, &count);

	statistics_collect_clustering(&writer->collector, writer->table,
	    item->kind == UNFILTERED_MARKER ? item->marker.kind : BOUND_CLUSTERING, values, count);
}

static void
sstable_writer_keep_last(struct sstable_writer *writer, const struct unfiltered *item)
{
	bool is_marker = item->kind == UNFILTERED_MARKER;
	uint32_t count;
	const struct slice *values = unfiltered_clustering(item, &count);

	writer->last_kind = is_marker ? UNFILTERED_MARKER : UNFILTERED_ROW;
	writer->last_bound = is_marker ? item->marker.kind : BOUND_CLUSTERING;
	writer->last_count = count;
	buffer_clear(&writer->last_bytes);
	for (uint32_t i = 0; i < count; i++) {
		writer->last_values[i] = values[i];
		if (!slice_is_null(values[i]))
			buffer_put_slice(&writer->last_bytes, values[i]);
	}
}

/* What was kept, as an item that has a clustering and nothing else. */
static struct unfiltered
sstable_writer_last(struct sstable_writer *writer)
{
	struct unfiltered item = {.kind = writer->last_kind};
	const uint8_t *at = writer->last_bytes.data;

	for (uint32_t i = 0; i < writer->last_count; i++) {
		if (slice_is_null(writer->last_values[i]))
			continue;
		/* A present but empty value must not become null; of nothing but such, there are no bytes. */
		if (writer->last_values[i].size == 0) {
			writer->last_values[i].data = slice_empty.data;
			continue;
		}
		writer->last_values[i].data = at;
		at += writer->last_values[i].size;
	}
	if (item.kind == UNFILTERED_ROW) {
		item.row.clustering = writer->last_values;
		item.row.clustering_count = writer->last_count;
	} else {
		item.marker.kind = writer->last_bound;
		item.marker.clustering = writer->last_values;
		item.marker.clustering_count = writer->last_count;
	}
	return item;
}

/* Write one row or marker; closes the block of the promoted index when it is full. */
static int
sstable_writer_put_item(struct sstable_writer *writer, uint64_t partition, uint64_t *previous,
    const struct unfiltered *item, struct error *err)
{
	struct sstable_writer_blocks *blocks = &writer->blocks;
	uint64_t at = sstable_writer_at(writer);

	if (blocks->first.size == 0 && writer->table->clustering_count > 0) {
		sstable_writer_put_prefix(writer, item, &blocks->first);
		if (blocks->first.is_failed) /* and would be forgotten with the block */
			return buffer_check(&blocks->first, err);
		blocks->start = at;
	}
	if (item->kind == UNFILTERED_RAW) {
		row_raw_encode(&writer->codec, &item->raw, at - *previous, &writer->data);
		statistics_collect_raw(&writer->collector, &item->raw);
	} else if (item->kind == UNFILTERED_ROW) {
		row_encode(
		    &writer->codec, ROW_CODEC_SSTABLE, &item->row, at - *previous, &writer->data);
		statistics_collect_row(&writer->collector, &item->row);
	} else {
		marker_encode(&writer->codec, ROW_CODEC_SSTABLE, &item->marker, at - *previous,
		    &writer->data);
		statistics_collect_marker(&writer->collector, &item->marker);
		blocks->open = bound_opens(item->marker.kind) ? item->marker.open : DELETION_LIVE;
	}
	*previous = at;
	/* The one row of a partition without clustering is no block of a promoted index. */
	if (writer->table->clustering_count > 0 &&
	    sstable_writer_at(writer) - blocks->start >= writer->options.column_index_bytes)
		sstable_writer_close_block(writer, partition, item);
	if (writer->data.size >= writer->chunk_length || writer->data.is_failed)
		return sstable_writer_drain(writer, false, err);
	return 0;
}

int
sstable_writer_begin(
    struct sstable_writer *writer, const struct unfiltered_iterator *head, struct error *err)
{
	struct sstable_writer_partition *partition = &writer->partition;

	partition->start = partition->previous = sstable_writer_at(writer);
	partition->deletion = head->partition_deletion;
	partition->has_items = false;
	if (sstable_writer_check_key(writer, head->key, head->token, err) != 0)
		return -1;
	sstable_writer_begin_blocks(writer);
	sstable_writer_put_header(writer, head);
	partition->header_length = sstable_writer_at(writer) - partition->start;
	return 0;
}

int
sstable_writer_put(struct sstable_writer *writer, const struct unfiltered *item, struct error *err)
{
	struct sstable_writer_partition *partition = &writer->partition;

	if (!partition->has_items && writer->table->clustering_count > 0)
		sstable_writer_collect_clustering(writer, item);
	if (sstable_writer_put_item(writer, partition->start, &partition->previous, item, err) != 0)
		return -1;
	if (writer->table->clustering_count > 0) {
		partition->has_items = true;
		sstable_writer_keep_last(writer, item);
	}
	return 0;
}

/* Behind the last item. */
static int
sstable_writer_end_items(struct sstable_writer *writer, struct error *err)
{
	struct unfiltered last;

	buffer_put_u8(&writer->data, UNFILTERED_END_OF_PARTITION);
	if (writer->partition.has_items) {
		if (buffer_check(&writer->last_bytes, err) != 0)
			return -1;
		last = sstable_writer_last(writer);
		sstable_writer_collect_clustering(writer, &last);
		if (writer->blocks.first.size > 0 && writer->blocks.count > 0)
			sstable_writer_close_block(writer, writer->partition.start, &last);
	}
	return 0;
}

static void
sstable_writer_drain_hashes(struct sstable_writer *writer)
{
	bloom_add_many(&writer->bloom, writer->hashes, writer->hash_count);
	writer->hash_count = 0;
}

/* A partition that will be slow to read is an operator's business. (Cassandra: SSTableWriter.) */
static void
sstable_writer_warn(const struct sstable_writer *writer, uint64_t size)
{
	const struct table_metadata *table = writer->table;
	bool is_large = writer->context.large_partition_bytes > 0 &&
	    size > writer->context.large_partition_bytes;
	bool has_many = writer->context.many_tombstones > 0 &&
	    writer->collector.partition_tombstones > writer->context.many_tombstones;
	char path[SSTABLE_PATH_MAX];
	struct buffer key;

	if (!is_large && !has_many)
		return;
	if (sstable_path(&writer->options.descriptor, SSTABLE_DATA, path, NULL) != 0)
		return;
	buffer_init(&key);
	table_partition_key_print(table, buffer_slice(&writer->last_key), &key);
	if (is_large)
		log_warn("Writing large partition %.*s/%.*s:%.*s (%.3f%s) to sstable %s",
		    (int)table->keyspace.size, table->keyspace.data, (int)table->name.size,
		    table->name.data, (int)key.size, (const char *)key.data,
		    (double)size /
			(size >> 30 > 0          ? 1 << 30
				: size >> 20 > 0 ? 1 << 20
						 : 1 << 10),
		    size >> 30 > 0       ? "GiB"
			: size >> 20 > 0 ? "MiB"
					 : "KiB",
		    path);
	if (has_many)
		log_warn("Writing %" PRIu64 " tombstones to %.*s/%.*s:%.*s in sstable %s",
		    writer->collector.partition_tombstones, (int)table->keyspace.size,
		    table->keyspace.data, (int)table->name.size, table->name.data, (int)key.size,
		    (const char *)key.data, path);
	buffer_fini(&key);
}

int
sstable_writer_end(struct sstable_writer *writer, struct error *err)
{
	const struct sstable_writer_partition *partition = &writer->partition;
	struct slice key = buffer_slice(&writer->last_key);

	if (sstable_writer_end_items(writer, err) != 0)
		return -1;
	if (sstable_writer_put_entry(writer, key, partition->start, partition->header_length,
		partition->deletion, err) != 0)
		return -1;
	sstable_writer_warn(writer, sstable_writer_at(writer) - partition->start);
	statistics_collect_partition(
	    &writer->collector, key, sstable_writer_at(writer) - partition->start);
	if (writer->has_filter) {
		murmur3_128(key, 0, writer->hashes[writer->hash_count++]);
		if (writer->hash_count == WRITER_HASHES)
			sstable_writer_drain_hashes(writer);
	}
	writer->keys++;
	if (writer->data.size >= writer->chunk_length || writer->data.is_failed)
		return sstable_writer_drain(writer, false, err);
	return 0;
}

int
sstable_writer_append(
    struct sstable_writer *writer, struct unfiltered_iterator *partition, struct error *err)
{
	struct unfiltered item;
	int rc = unfiltered_iterator_next(partition, &item, err);

	if (rc < 0)
		return -1;
	if (rc == 0 && !partition->has_static_row &&
	    deletion_is_live(partition->partition_deletion))
		return 0;
	if (sstable_writer_begin(writer, partition, err) != 0)
		return -1;
	while (rc > 0) {
		if (sstable_writer_put(writer, &item, err) != 0)
			return -1;
		rc = unfiltered_iterator_next(partition, &item, err);
	}
	return rc < 0 ? -1 : sstable_writer_end(writer, err);
}

uint64_t
sstable_writer_position(const struct sstable_writer *writer)
{
	return sstable_writer_at(writer);
}

uint64_t
sstable_writer_disk_size(const struct sstable_writer *writer)
{
	return writer->out_flushed + writer->out.size;
}

uint64_t
sstable_writer_keys(const struct sstable_writer *writer)
{
	return writer->keys;
}

/* ---- finish ----------------------------------------------------------------------------------------------------- */

static int
sstable_writer_put_component(struct sstable_writer *writer, enum sstable_component component,
    const struct buffer *content, struct error *err)
{
	struct file *file = NULL;
	int rc = buffer_check(content, err);

	if (rc == 0)
		rc = sstable_writer_create(writer, component, &file, err);
	if (rc == 0)
		rc = file_write(file, content->data, content->size, err);
	if (rc == 0)
		rc = file_sync(file, err);
	file_close(file);
	return rc;
}

static int
sstable_writer_encode_statistics(
    struct sstable_writer *writer, struct buffer *out, struct error *err)
{
	const struct sstable_writer_options *options = &writer->options;
	struct sstable_stats stats = {0};
	struct buffer cardinality;

	if (statistics_collector_finish(&writer->collector, &writer->arena, &stats, err) != 0)
		return -1;
	stats.partitioner = slice_of_string("org.apache.cassandra.dht.Murmur3Partitioner");
	stats.fp_chance = writer->fp_chance;
	stats.commitlog = options->commitlog;
	stats.commitlog_count = options->commitlog_count;
	stats.compression_ratio = -1;
	if (writer->is_compressed && writer->data_flushed > 0)
		stats.compression_ratio =
		    (double)(writer->out_flushed -
			(uint64_t)writer->chunk_count * COMPRESSION_CRC_SIZE) /
		    (double)writer->data_flushed;
	stats.level = options->level;
	stats.repaired_at = options->repaired_at;
	stats.has_pending_repair = options->pending_repair != NULL;
	stats.pending_repair = writer->pending_repair;
	stats.has_host_id = options->host_id != NULL;
	stats.host_id = writer->host_id;
	buffer_init(&cardinality);
	statistics_cardinality_encode(&writer->collector.cardinality, &cardinality);
	if (buffer_check(&cardinality, NULL) != 0)
		out->is_failed = true;
	statistics_encode(&stats, buffer_slice(&cardinality), writer->table, &writer->codec, out);
	buffer_fini(&cardinality);
	return 0;
}

static void
sstable_writer_encode_compression(struct sstable_writer *writer, struct buffer *out)
{
	struct compression_info info = {
	    .kind = writer->compress.kind,
	    .chunk_length = writer->chunk_length,
	    .max_compressed_length = writer->max_compressed_length,
	    .data_length = writer->data_flushed,
	    .chunk_count = writer->chunk_count,
	    .offsets = (uint64_t *)(void *)writer->offsets.data,
	};
	bool is_own = writer->compress.kind == writer->table->options.compressor;

	if (buffer_check(&writer->offsets, NULL) != 0)
		out->is_failed = true;
	else
		compression_info_encode(
		    &info, is_own ? &writer->table->options.compression : NULL, out);
}

static bool
sstable_writer_has_component(const struct sstable_writer *writer, enum sstable_component component)
{
	switch (component) {
	case SSTABLE_FILTER:
		return writer->has_filter;
	case SSTABLE_COMPRESSION_INFO:
		return writer->is_compressed;
	case SSTABLE_CRC:
		return !writer->is_compressed;
	default:
		return true;
	}
}

static int
sstable_writer_encode_component(struct sstable_writer *writer, enum sstable_component component,
    struct buffer *out, struct error *err)
{
	switch (component) {
	case SSTABLE_SUMMARY:
		return index_summary_builder_encode(&writer->summary, out, err);
	case SSTABLE_FILTER:
		sstable_writer_drain_hashes(writer);
		bloom_encode(&writer->bloom, out);
		return 0;
	case SSTABLE_STATISTICS:
		return sstable_writer_encode_statistics(writer, out, err);
	case SSTABLE_COMPRESSION_INFO:
		sstable_writer_encode_compression(writer, out);
		return 0;
	case SSTABLE_CRC:
		buffer_put_slice(out, buffer_slice(&writer->crcs));
		out->is_failed = out->is_failed || writer->crcs.is_failed;
		return 0;
	case SSTABLE_DIGEST:
		buffer_printf(out, "%u", writer->digest);
		return 0;
	case SSTABLE_TOC:
		for (int i = 0; i < SSTABLE_COMPONENT_COUNT; i++) {
			if (sstable_writer_has_component(writer, i))
				buffer_printf(out, "%s\n", sstable_component_name(i));
		}
		return 0;
	case SSTABLE_DATA:
	case SSTABLE_INDEX:
		break;
	}
	return error_set(err, ERROR_SERVER, "component %d is not written whole", component);
}

/* Data and Index are complete and safe, then the small ones, TOC last. */
static int
sstable_writer_write_all(struct sstable_writer *writer, struct error *err)
{
	if (sstable_writer_drain(writer, true, err) != 0 ||
	    sstable_writer_flush_out(writer, err) != 0 || file_sync(writer->data_file, err) != 0 ||
	    sstable_writer_flush_index(writer, err) != 0 || file_sync(writer->index_file, err) != 0)
		return -1;
	for (int i = SSTABLE_SUMMARY; i < SSTABLE_COMPONENT_COUNT; i++) {
		struct buffer content;
		int rc;

		if (!sstable_writer_has_component(writer, i))
			continue;
		buffer_init(&content);
		rc = sstable_writer_encode_component(writer, i, &content, err);
		if (rc == 0)
			rc = sstable_writer_put_component(writer, i, &content, err);
		buffer_fini(&content);
		if (rc != 0)
			return -1;
	}
	return files_sync_folder(
	    writer->context.env->files, writer->options.descriptor.directory, err);
}

int
sstable_writer_finish(struct sstable_writer *writer, struct sstable **out, struct error *err)
{
	if (out != NULL)
		*out = NULL;
	if (writer->keys == 0) {
		sstable_writer_abort(writer);
		return 0;
	}
	if (sstable_writer_write_all(writer, err) != 0) {
		sstable_writer_abort(writer);
		return -1;
	}
	if (out != NULL &&
	    sstable_open(&writer->context, &writer->options.descriptor, writer->table, out, err) !=
		0) {
		sstable_writer_abort(writer);
		return -1;
	}
	sstable_writer_free(writer);
	return 0;
}
