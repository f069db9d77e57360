/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STREAM_INTERNAL_H
#define HELENUS_STORAGE_STREAM_INTERNAL_H

/*
 * A file as it is streamed, big-endian. Blocks, each: u32 size, u32 CRC32 of what follows, as many bytes.
 *
 *   first block: u8 version 1 | u8 kind | 16 bytes table id | u8 flags | i64 repaired at | [16 bytes pending repair]
 *       entire: vint count, then for each component, TOC last: u8 component, vint size
 *       rows:   vint keys | i64 timestamp, i32 local deletion time, i32 TTL (minima)
 *               statics, regulars as in read_response_internal.h
 *   entire, the others: the bytes of the components, one behind the other
 *   rows, the others: items, none of which is cut
 *       u8 80 | flags, vint length and key, [12 bytes deletion], [static row]: a partition begins
 *       rows and markers (MESSAGE flavor); 01: it ends
 *       00: the file ends
 */
#include "storage/read_response_internal.h"

enum { STREAM_VERSION = 1 };
enum { STREAM_ROWS = 0, STREAM_ENTIRE = 1 };
enum { STREAM_HAS_PENDING_REPAIR = 1, STREAM_IS_TRANSIENT = 2, STREAM_FLAGS_ALL = 3 };
enum {
	STREAM_BLOCK_HEADER = 8,
	STREAM_BLOCK_MAX = 1 << 30, /* a row and a little more */
};

#endif
