/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_CONTENT_HASH_H
#define HELENUS_STORAGE_CONTENT_HASH_H

/*
 * A 128-bit hash of what rows and tombstones mean (Digest, UnfilteredRowIterators.digest): read digests and
 * validation hash with it. Independent of encodings, of the order of columns in a schema and of columns without
 * cells: a cell counts with its column's name, a row or marker with its position. Built on MurmurHash3: it
 * finds what differs by accident, not what somebody forged. Lives on the stack, takes no memory.
 */
#include "storage/unfiltered.h"

enum { CONTENT_HASH_BLOCK = 512, CONTENT_HASH_SIZE = 16 };

struct content_hash {
	uint64_t total; /* bytes so far */
	uint32_t used; /* of block: the state so far stands at its beginning */
	uint8_t block[CONTENT_HASH_BLOCK];
};

void content_hash_init(struct content_hash *hash);
/* Copy what is needed: a partition that turns out empty is taken back. */
void content_hash_copy(struct content_hash *to, const struct content_hash *from);
/* Key, deletion and static row (NULL: none) of the partition that follows. */
void content_hash_partition(struct content_hash *hash, struct slice key, struct deletion deletion,
    const struct row *static_row);
void content_hash_row(struct content_hash *hash, const struct row *row);
void content_hash_marker(struct content_hash *hash, const struct marker *marker);
void content_hash_finish(const struct content_hash *hash, uint8_t out[CONTENT_HASH_SIZE]);

#endif
