/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMPRESS_H
#define HELENUS_STORAGE_COMPRESS_H

/*
 * One chunk of Data.db to its stored form and back, as Cassandra's ICompressor classes do:
 *
 *   LZ4Compressor      int32 uncompressed size, little-endian; LZ4 block
 *   SnappyCompressor   raw snappy
 *   DeflateCompressor  zlib stream
 *   ZstdCompressor     zstd frame, with content checksum
 *   NoopCompressor     the bytes
 *
 * A struct compress belongs to one thread; decompress_chunk() may be called by any.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "cql/table_options.h"

struct compress {
	enum compressor kind; /* not COMPRESSOR_NONE */
	int level; /* zstd, LZ4 high */
	bool is_high; /* LZ4 high compressor */
	void *state; /* owned; working memory of the library */
};

/* From the options of a table; kind overrides options->compressor. */
int compress_init(struct compress *compress, enum compressor kind,
    const struct table_options *options, struct error *err);
void compress_fini(struct compress *compress);
/* A chunk that does not get smaller than this is stored as it is (min_compress_ratio); INT32_MAX: none. */
uint32_t compress_length_max(const struct table_options *options);
/* The most that compress_chunk() makes of `size` bytes. */
size_t compress_bound(enum compressor kind, size_t size);
/* `out` has room for compress_bound() bytes; *out_size tells what was used. */
int compress_chunk(
    struct compress *compress, struct slice in, uint8_t *out, size_t *out_size, struct error *err);

/* Exactly `size` bytes must come out of `in`; anything else is ERROR_CORRUPT. */
int decompress_chunk(
    enum compressor kind, struct slice in, uint8_t *out, size_t size, struct error *err);

/* "LZ4Compressor" ...; static string; NULL for COMPRESSOR_NONE. */
const char *compressor_class_name(enum compressor kind);
/* By simple or full class name; COMPRESSOR_NONE when unknown. */
enum compressor compressor_by_class_name(struct slice name);

#endif
