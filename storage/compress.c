/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/compress.h"

#include <lz4.h>
#include <lz4hc.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include "base/alloc.h"

enum { COMPRESS_LZ4_PREFIX = 4, COMPRESS_CHUNK_MAX = 1 << 30 };

static const struct {
	enum compressor kind;
	const char *name;
} compress_classes[] = {
    {COMPRESSOR_LZ4, "LZ4Compressor"},
    {COMPRESSOR_SNAPPY, "SnappyCompressor"},
    {COMPRESSOR_DEFLATE, "DeflateCompressor"},
    {COMPRESSOR_ZSTD, "ZstdCompressor"},
    {COMPRESSOR_NOOP, "NoopCompressor"},
};

const char *
compressor_class_name(enum compressor kind)
{
	for (size_t i = 0; i < sizeof(compress_classes) / sizeof(compress_classes[0]); i++) {
		if (compress_classes[i].kind == kind)
			return compress_classes[i].name;
	}
	return NULL;
}

enum compressor
compressor_by_class_name(struct slice name)
{
	static const char package[] = "org.apache.cassandra.io.compress.";
	size_t prefix = sizeof(package) - 1;

	if (name.size > prefix && memcmp(name.data, package, prefix) == 0)
		name = slice_of(name.data + prefix, name.size - prefix);
	for (size_t i = 0; i < sizeof(compress_classes) / sizeof(compress_classes[0]); i++) {
		if (slice_equal_string(name, compress_classes[i].name))
			return compress_classes[i].kind;
	}
	return COMPRESSOR_NONE;
}

int
compress_init(struct compress *compress, enum compressor kind, const struct table_options *options,
    struct error *err)
{
	*compress = (struct compress){.kind = kind};
	switch (kind) {
	case COMPRESSOR_LZ4:
		compress->is_high = options->is_lz4_high_compressor;
		compress->level = options->lz4_high_level;
		compress->state =
		    xmalloc((size_t)(compress->is_high ? LZ4_sizeofStateHC() : LZ4_sizeofState()));
		break;
	case COMPRESSOR_ZSTD:
		compress->level = options->compressor == COMPRESSOR_ZSTD ? options->compressor_level
									 : ZSTD_CLEVEL_DEFAULT;
		compress->state = ZSTD_createCCtx();
		if (compress->state == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for zstd");
		break;
	case COMPRESSOR_SNAPPY:
	case COMPRESSOR_DEFLATE:
	case COMPRESSOR_NOOP:
		break;
	case COMPRESSOR_NONE:
		return error_set(err, ERROR_INVALID, "no compressor given");
	}
	return 0;
}

void
compress_fini(struct compress *compress)
{
	if (compress->kind == COMPRESSOR_ZSTD)
		ZSTD_freeCCtx(compress->state);
	else
		free(compress->state);
	compress->state = NULL;
}

uint32_t
compress_length_max(const struct table_options *options)
{
	if (options->min_compress_ratio <= 0)
		return INT32_MAX;
	return (uint32_t)((double)(uint32_t)options->chunk_length / options->min_compress_ratio +
	    0.999999);
}

size_t
compress_bound(enum compressor kind, size_t size)
{
	switch (kind) {
	case COMPRESSOR_LZ4:
		return (size_t)LZ4_compressBound((int)size) + COMPRESS_LZ4_PREFIX;
	case COMPRESSOR_SNAPPY:
		return snappy_max_compressed_length(size);
	case COMPRESSOR_DEFLATE:
		return compressBound(size);
	case COMPRESSOR_ZSTD:
		return ZSTD_compressBound(size);
	default:
		return size;
	}
}

static size_t
compress_lz4(struct compress *compress, struct slice in, uint8_t *out, size_t capacity)
{
	uint32_t size = (uint32_t)in.size;
	char *target = (char *)out + COMPRESS_LZ4_PREFIX;
	int room = (int)(capacity - COMPRESS_LZ4_PREFIX);
	int used;

	for (int i = 0; i < COMPRESS_LZ4_PREFIX; i++)
		out[i] = (uint8_t)(size >> (8 * i));
	if (compress->is_high)
		used = LZ4_compress_HC_extStateHC(compress->state, (const char *)in.data, target,
		    (int)in.size, room, compress->level);
	else
		used = LZ4_compress_fast_extState(
		    compress->state, (const char *)in.data, target, (int)in.size, room, 1);
	return used <= 0 ? 0 : (size_t)used + COMPRESS_LZ4_PREFIX;
}

static size_t
compress_zstd(struct compress *compress, struct slice in, uint8_t *out, size_t capacity)
{
	ZSTD_CCtx *context = compress->state;
	size_t used;

	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, compress->level);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	used = ZSTD_compress2(context, out, capacity, in.data, in.size);
	return ZSTD_isError(used) ? 0 : used;
}

int
compress_chunk(
    struct compress *compress, struct slice in, uint8_t *out, size_t *out_size, struct error *err)
{
	size_t capacity = compress_bound(compress->kind, in.size);
	size_t used = 0;
	uLongf zlib_used = capacity;

	switch (compress->kind) {
	case COMPRESSOR_LZ4:
		used = compress_lz4(compress, in, out, capacity);
		break;
	case COMPRESSOR_SNAPPY:
		used = capacity;
		if (snappy_compress((const char *)in.data, in.size, (char *)out, &used) !=
		    SNAPPY_OK)
			used = 0;
		break;
	case COMPRESSOR_DEFLATE:
		used = compress2(out, &zlib_used, in.data, in.size, Z_DEFAULT_COMPRESSION) == Z_OK
		    ? zlib_used
		    : 0;
		break;
	case COMPRESSOR_ZSTD:
		used = compress_zstd(compress, in, out, capacity);
		break;
	case COMPRESSOR_NOOP:
		memcpy(out, in.data, in.size);
		used = in.size;
		break;
	case COMPRESSOR_NONE:
		break;
	}
	if (used == 0 && in.size != 0)
		return error_set(err, ERROR_SERVER, "%s could not compress a chunk of %zu bytes",
		    compressor_class_name(compress->kind), in.size);
	*out_size = used;
	return 0;
}

static bool
decompress_lz4(struct slice in, uint8_t *out, size_t size)
{
	uint32_t stored = 0;

	if (in.size < COMPRESS_LZ4_PREFIX || in.size > INT32_MAX)
		return false;
	for (int i = 0; i < COMPRESS_LZ4_PREFIX; i++)
		stored |= (uint32_t)in.data[i] << (8 * i);
	if (stored != size)
		return false;
	return LZ4_decompress_safe((const char *)in.data + COMPRESS_LZ4_PREFIX, (char *)out,
		   (int)(in.size - COMPRESS_LZ4_PREFIX), (int)size) == (int)size;
}

int
decompress_chunk(
    enum compressor kind, struct slice in, uint8_t *out, size_t size, struct error *err)
{
	bool is_good = false;
	size_t got = size;
	uLongf zlib_got = size;

	if (size > COMPRESS_CHUNK_MAX)
		return error_set(err, ERROR_CORRUPT, "chunk of %zu bytes is too large", size);
	switch (kind) {
	case COMPRESSOR_LZ4:
		is_good = decompress_lz4(in, out, size);
		break;
	case COMPRESSOR_SNAPPY:
		is_good =
		    snappy_uncompressed_length((const char *)in.data, in.size, &got) == SNAPPY_OK &&
		    got == size &&
		    snappy_uncompress((const char *)in.data, in.size, (char *)out, &got) ==
			SNAPPY_OK;
		break;
	case COMPRESSOR_DEFLATE:
		is_good = uncompress(out, &zlib_got, in.data, in.size) == Z_OK && zlib_got == size;
		break;
	case COMPRESSOR_ZSTD:
		got = ZSTD_decompress(out, size, in.data, in.size);
		is_good = !ZSTD_isError(got) && got == size;
		break;
	case COMPRESSOR_NOOP:
		is_good = in.size == size;
		if (is_good)
			memcpy(out, in.data, size);
		break;
	case COMPRESSOR_NONE:
		break;
	}
	if (!is_good)
		return error_set(err, ERROR_CORRUPT,
		    "chunk does not decompress with %s to %zu bytes",
		    kind == COMPRESSOR_NONE ? "(none)" : compressor_class_name(kind), size);
	return 0;
}
