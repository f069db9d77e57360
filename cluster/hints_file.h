/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_HINTS_FILE_H
#define HELENUS_CLUSTER_HINTS_FILE_H

/*
 * Files of hints: names, layout, reading. Names are Cassandra's (HintsDescriptor), the content is ours, big-endian:
 *
 *   <host id>-<ms since 1970>-<version>.hints
 *      0  "HLNHINTS"
 *      8  u32 version (1)
 *     12  16 bytes host id of the node that missed the writes
 *     28  u32 CRC32 of bytes 0 .. 27
 *     32  records:
 *         u32 size of the body | u32 CRC32 of these four bytes | body | u32 CRC32 of the body
 *         body: i64 ms since 1970, when the write was made | u32 gc_grace_seconds, the least of its tables then |
 *               the mutation, as mutation_encode() writes it
 *   <same>.crc32      CRC32 of the whole file in hex: it is finished
 *   <same>.position   u64 bytes that the other node has | u32 CRC32 of them: where to go on
 *
 * A file without .crc32 was being written when the node died: what is behind its last whole record is torn, which is no
 * damage: only whole flushes were promised. In a finished file it is.
 *
 * Pure functions, any thread.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"

enum {
	HINTS_VERSION = 1,
	HINTS_HEADER_SIZE = 32,
	HINTS_RECORD_OVERHEAD = 12, /* around a body */
	HINTS_BODY_MIN = 12,
	HINTS_BODY_MAX = 256 << 20, /* no mutation is as large; a larger size is damage */
	HINTS_POSITION_SIZE = 12,
	HINTS_NAME_SIZE = 80,
};

struct hints_name {
	struct uuid host_id;
	int64_t timestamp_ms; /* of its making; rises with each file of a node */
	uint32_t version;
};
/* False: the name is none of a file of hints. Any version is. */
bool hints_name_parse(const char *text, struct hints_name *out);
/* With `suffix` (".hints", ".crc32", ".position"). Returns out. */
const char *
hints_name_format(const struct hints_name *name, const char *suffix, char out[HINTS_NAME_SIZE]);

void hints_header_encode(const struct uuid *host_id, struct buffer *out);
/* ERROR_CORRUPT: no header of a version that we read. */
int hints_header_decode(struct slice bytes, struct uuid *host_id, struct error *err);

struct hint {
	int64_t created_ms;
	uint32_t gc_grace_seconds;
	struct slice mutation;
};

/* Appends a record. A buffer that has no room is left as it was (with is_failed). */
void hint_encode(const struct hint *hint, struct buffer *out);

/* A body alone: what HINT_REQ carries, too. False: too short. */
void hint_encode_body(const struct hint *hint, struct buffer *out);
bool hint_decode_body(struct slice body, struct hint *out);

enum hints_next {
	HINTS_RECORD, /* *out is set; a view of the bytes */
	HINTS_END, /* nothing is left */
	HINTS_SHORT, /* `need` bytes are needed from where the reader stands, more than there are */
	HINTS_BAD_BODY, /* a record whose body is damaged: passed over */
	HINTS_BAD_SIZE, /* nothing behind this can be found */
};
/* The next record; the reader stands behind it after HINTS_RECORD and HINTS_BAD_BODY, else where it stood. */
enum hints_next hints_next(struct reader *reader, struct hint *out, size_t *need);

void hints_position_encode(uint64_t position, uint8_t out[HINTS_POSITION_SIZE]);
bool hints_position_decode(struct slice bytes, uint64_t *out);

#endif
