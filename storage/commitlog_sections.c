/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/commitlog_segment.h"
#include "storage/compress.h"

/* Compressed segments: the layout stands in commitlog.h. */

enum { SECTION_HEADER_SIZE = 24, SECTION_SEALED_SIZE = 16 };

struct segment_sections {
	struct compress compress;
	uint8_t *buffer; /* owned; header and stored bytes of one section */
	size_t capacity;
};

struct segment_sections *
segment_sections_new(const char *class_name, int32_t level, struct error *err)
{
	enum compressor compressor = compressor_by_class_name(slice_of_string(class_name));
	struct segment_sections *sections;
	struct table_options options;

	if (compressor == COMPRESSOR_NONE) {
		error_set(err, ERROR_CONFIG,
		    "commitlog_compression: there is no '%s': LZ4Compressor, SnappyCompressor, "
		    "DeflateCompressor or ZstdCompressor",
		    class_name);
		return NULL;
	}
	sections = xzalloc(sizeof(*sections));

	table_options_init(&options);
	options.compressor = compressor;
	if (level != 0)
		options.compressor_level = level;
	if (compress_init(&sections->compress, compressor, &options, err) != 0) {
		free(sections);
		return NULL;
	}
	return sections;
}

void
segment_sections_free(struct segment_sections *sections)
{
	if (sections == NULL)
		return;
	compress_fini(&sections->compress);
	free(sections->buffer);
	free(sections);
}

/* What the header's checksum covers. */
static uint32_t
section_seal(uint64_t id, uint64_t offset, const uint8_t *header)
{
	uint8_t place[16];

	store_u64(place, id);
	store_u64(place + 8, offset);
	return crc32_update(crc32_update(0, place, sizeof(place)), header, SECTION_SEALED_SIZE);
}

int
segment_sections_write(struct segment *segment, uint32_t target, struct error *err)
{
	struct segment_sections *sections = segment->sections;
	struct slice in = slice_of(segment->memory + segment->synced, target - segment->synced);
	size_t needed =
	    SECTION_HEADER_SIZE + compress_bound(sections->compress.kind, in.size) + in.size;
	enum compressor kind = sections->compress.kind;
	size_t stored;
	uint8_t *at;

	if (sections->capacity < needed) {
		uint8_t *buffer = realloc(sections->buffer, needed);

		if (buffer == NULL)
			return error_set(err, ERROR_NO_MEMORY,
			    "no memory to compress %zu bytes of the commit log", in.size);
		sections->buffer = buffer;
		sections->capacity = needed;
	}
	at = sections->buffer + SECTION_HEADER_SIZE;
	if (compress_chunk(&sections->compress, in, at, &stored, err) != 0)
		return -1;
	if (stored >= in.size) {
		kind = COMPRESSOR_NONE;
		stored = in.size;
		memcpy(at, in.data, in.size);
	}
	store_u32(sections->buffer, (uint32_t)stored);
	store_u32(sections->buffer + 4, (uint32_t)in.size);
	store_u32(sections->buffer + 8, segment->synced);
	store_u32(sections->buffer + 12, (uint32_t)kind);
	store_u32(
	    sections->buffer + 16, section_seal(segment->id, segment->file_end, sections->buffer));
	store_u32(sections->buffer + 20, crc32_update(0, at, stored));
	if (file_pwrite(segment->file, sections->buffer, SECTION_HEADER_SIZE + stored,
		segment->file_end, err) != 0)
		return -1;
	segment->file_end += SECTION_HEADER_SIZE + stored;
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* 1: taken, 0: not sound, -1: no memory. */
static int
section_expand(const struct segment_file *file, struct slice content, uint64_t offset,
    uint64_t *next, struct buffer *out, struct error *err)
{
	const uint8_t *header = content.data + offset;
	uint32_t stored, size, kind;
	struct error unused;
	struct slice bytes;

	if (content.size - offset < SECTION_HEADER_SIZE ||
	    load_u32(header + 16) != section_seal(file->id, offset, header))
		return 0;
	stored = load_u32(header);
	size = load_u32(header + 4);
	kind = load_u32(header + 12);
	*next = offset + SECTION_HEADER_SIZE;
	/* Sections follow each other in the segment as in the file. */
	if (stored > content.size - *next || load_u32(header + 8) != out->size ||
	    size > INT32_MAX - out->size || kind > COMPRESSOR_NOOP ||
	    (kind == COMPRESSOR_NONE && stored != size))
		return 0;
	bytes = slice_of(content.data + *next, stored);
	*next += stored;
	if (load_u32(header + 20) != crc32_update(0, bytes.data, bytes.size))
		return 0;
	if (kind == COMPRESSOR_NONE) {
		buffer_put_slice(out, bytes);
		return buffer_check(out, err) == 0 ? 1 : -1;
	}
	if (!buffer_reserve(out, size))
		return buffer_check(out, err) == 0 ? 0 : -1;
	if (decompress_chunk((enum compressor)kind, bytes, out->data + out->size, size, &unused) !=
	    0)
		return 0;
	out->size += size;
	return 1;
}

int
segment_sections_expand(const struct segment_file *file, struct slice content, uint64_t *synced,
    bool ignore_damage, struct buffer *out, struct segment_replay_totals *totals, struct error *err)
{
	uint64_t offset = SEGMENT_HEADER_SIZE, next = 0, durable = SEGMENT_HEADER_SIZE;

	buffer_put(out, content.data, SEGMENT_HEADER_SIZE);
	while (offset < content.size) {
		int rc = section_expand(file, content, offset, &next, out, err);

		if (rc < 0)
			return -1;
		if (rc == 0)
			break;
		offset = next;
		if (offset <= *synced)
			durable = out->size;
	}
	if (offset < *synced && !ignore_damage)
		return error_set(err, ERROR_CORRUPT,
		    "%s: the section at offset %" PRIu64 " is damaged (all below offset %" PRIu64
		    " had been made durable). Restore the file, or set "
		    "commitlog_ignore_replay_errors to lose what is damaged",
		    file->path, offset, *synced);
	/* Reserved space behind the last section is zeros, or nothing. */
	if (offset < *synced ||
	    (content.size - offset >= 4 && load_u32(content.data + offset) != 0))
		totals->torn++;
	*synced = durable;
	return buffer_check(out, err);
}
