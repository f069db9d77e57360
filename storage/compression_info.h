/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMPRESSION_INFO_H
#define HELENUS_STORAGE_COMPRESSION_INFO_H

/*
 * CompressionInfo.db: where the chunks of a compressed Data.db lie (CompressionMetadata).
 *
 *   u16 n, n bytes        simple class name of the compressor
 *   int32                 number of options; each u16 length + name, u16 length + value
 *   int32                 chunk length, bytes before compression; a power of two
 *   int32                 longest stored chunk that is compressed; one as long or longer is raw
 *   int64                 length of the data before compression
 *   int32                 number of chunks; int64 offset in Data.db of each
 *
 * In Data.db each chunk is followed by the CRC32 of its stored bytes.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "cql/table_options.h"

struct compression_info {
	enum compressor kind;
	uint32_t chunk_length;
	uint32_t max_compressed_length;
	uint64_t data_length;
	uint32_t chunk_count;
	uint64_t *offsets; /* owned; chunk_count + 1, the last is the size of Data.db */
};

enum { COMPRESSION_CRC_SIZE = 4, COMPRESSION_CHUNK_LENGTH_MAX = 1 << 28 };

/* `data_size`: bytes of Data.db on disk. Checks that offsets ascend and fit. ERROR_CORRUPT. */
int compression_info_decode(
    struct slice content, uint64_t data_size, struct compression_info *out, struct error *err);
void compression_info_fini(struct compression_info *info);
/* `options`: as the table has them; what the format names elsewhere is left out. */
void compression_info_encode(
    const struct compression_info *info, const struct option_map *options, struct buffer *out);

static inline uint64_t
compression_info_memory(const struct compression_info *info)
{
	return ((uint64_t)info->chunk_count + 1) * sizeof(uint64_t);
}

#endif
