/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_READ_RESPONSE_INTERNAL_H
#define HELENUS_STORAGE_READ_RESPONSE_INTERNAL_H

/*
 * Bytes of an answer, shared by read_response_write.c and read_response_read.c:
 *
 *   u8 version 1 | u8 kind
 *   digest: 16 bytes
 *   data:   statics, regulars: vint count, then for each: vint length and name, vint shape
 *           partitions, 00, u8 end (enum read_response_end)
 *   partition: u8 80 | flags, vint length and key, [12 bytes deletion], [static row],
 *           rows and markers (MESSAGE flavor, against the columns above), 01, u8 end
 *
 * shape: twice (bytes of every value and one, or 0 where a value has its length in front), and 1 for complex
 * columns: enough to pass over a column that the reader does not have.
 */
#include "storage/read_response.h"

enum { READ_RESPONSE_VERSION = 1 };
enum { READ_RESPONSE_DATA = 0, READ_RESPONSE_DIGEST = 1 };

enum {
	READ_PARTITION = 0x80,
	READ_PARTITION_HAS_DELETION = 0x01,
	READ_PARTITION_HAS_STATIC = 0x02,
	READ_PARTITION_FLAGS = 0x83,
};

/* shape of a column, as above */
static inline uint64_t
read_response_shape(const struct column_metadata *column)
{
	return 2 * (uint64_t)(column->type->fixed_length + 1) + column->is_complex;
}

/* The lists of columns, which streams have too. */
void read_response_put_columns(
    const struct column_metadata *columns, uint32_t count, struct buffer *out);
int read_response_get_codec(struct reader *reader, const struct table_metadata *table,
    struct arena *arena, struct row_codec *codec, struct error *err);

#endif
