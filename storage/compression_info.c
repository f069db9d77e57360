/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/compression_info.h"

#include <stdlib.h>
#include "storage/compress.h"

static int
compression_info_decode_offsets(
    struct reader *reader, uint64_t data_size, struct compression_info *info, struct error *err)
{
	uint64_t expected = (info->data_length + info->chunk_length - 1) / info->chunk_length;

	/* A compaction of Cassandra may leave an empty chunk behind the last. */
	if (info->chunk_count < expected || reader_left(reader) / 8 < info->chunk_count)
		return error_set(err, ERROR_CORRUPT, "%u chunks do not make %llu bytes",
		    info->chunk_count, (unsigned long long)info->data_length);
	info->offsets = malloc(((size_t)info->chunk_count + 1) * sizeof(uint64_t));
	if (info->offsets == NULL)
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory for %u chunk offsets", info->chunk_count);
	for (uint32_t i = 0; i < info->chunk_count; i++)
		info->offsets[i] = reader_u64(reader);
	info->offsets[info->chunk_count] = data_size;
	for (uint32_t i = 0; i < info->chunk_count; i++) {
		if (info->offsets[i] > data_size ||
		    info->offsets[i + 1] <
			info->offsets[i] + (i < expected ? COMPRESSION_CRC_SIZE : 0))
			return error_set(err, ERROR_CORRUPT,
			    "offset %llu of chunk %u does not fit a file of %llu bytes",
			    (unsigned long long)info->offsets[i], i, (unsigned long long)data_size);
	}
	return 0;
}

int
compression_info_decode(
    struct slice content, uint64_t data_size, struct compression_info *out, struct error *err)
{
	struct compression_info info = {0};
	struct reader reader = reader_of(content);
	struct slice name = reader_bytes(&reader, reader_u16(&reader));
	uint32_t options = reader_u32(&reader);

	for (uint32_t i = 0; i < options && !reader.is_failed; i++) {
		reader_skip(&reader, reader_u16(&reader));
		reader_skip(&reader, reader_u16(&reader));
	}
	info.kind = compressor_by_class_name(name);
	info.chunk_length = reader_u32(&reader);
	info.max_compressed_length = reader_u32(&reader);
	info.data_length = reader_u64(&reader);
	info.chunk_count = reader_u32(&reader);
	if (reader.is_failed)
		return error_set(err, ERROR_CORRUPT, "ends early at byte %zu", content.size);
	if (info.kind == COMPRESSOR_NONE)
		return error_set(err, ERROR_CORRUPT, "unknown compressor '%.*s'",
		    (int)(name.size < 100 ? name.size : 100), (const char *)name.data);
	if (info.chunk_length == 0 || info.chunk_length > COMPRESSION_CHUNK_LENGTH_MAX ||
	    (info.chunk_length & (info.chunk_length - 1)) != 0)
		return error_set(
		    err, ERROR_CORRUPT, "chunk length %u is no power of two", info.chunk_length);
	if (info.data_length > INT64_MAX / 2)
		return error_set(err, ERROR_CORRUPT, "data length %llu is not possible",
		    (unsigned long long)info.data_length);
	if (compression_info_decode_offsets(&reader, data_size, &info, err) != 0) {
		compression_info_fini(&info);
		return -1;
	}
	*out = info;
	return 0;
}

void
compression_info_fini(struct compression_info *info)
{
	free(info->offsets);
	info->offsets = NULL;
}

/* What CompressionParams takes out of the map before the rest goes to the compressor. */
static bool
compression_info_is_own_option(struct slice key)
{
	static const char *const own[] = {"class", "sstable_compression", "chunk_length_in_kb",
	    "chunk_length_kb", "min_compress_ratio", "max_compressed_length", "enabled",
	    "crc_check_chance"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (slice_equal_string(key, own[i]))
			return true;
	}
	return false;
}

static void
compression_info_put_text(struct buffer *out, struct slice text)
{
	buffer_put_u16(out, (uint16_t)text.size);
	buffer_put_slice(out, text);
}

void
compression_info_encode(
    const struct compression_info *info, const struct option_map *options, struct buffer *out)
{
	size_t count_at;
	uint32_t count = 0;

	compression_info_put_text(out, slice_of_string(compressor_class_name(info->kind)));
	count_at = out->size;
	buffer_put_u32(out, 0);
	for (uint32_t i = 0; options != NULL && i < options->count; i++) {
		const struct option_entry *entry = &options->entries[i];

		if (compression_info_is_own_option(entry->key))
			continue;
		compression_info_put_text(out, entry->key);
		compression_info_put_text(out, entry->value);
		count++;
	}
	if (buffer_check(out, NULL) == 0)
		buffer_patch_u32(out, count_at, count);
	buffer_put_u32(out, info->chunk_length);
	buffer_put_u32(out, info->max_compressed_length);
	buffer_put_u64(out, info->data_length);
	buffer_put_u32(out, info->chunk_count);
	for (uint32_t i = 0; i < info->chunk_count; i++)
		buffer_put_u64(out, info->offsets[i]);
}
