/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_READ_BLOCK_H
#define HELENUS_SERVER_READ_BLOCK_H

/*
 * Memory that a socket is read into. Requests are cut out of it without copying, and each holds a
 * reference until it is answered. Belongs to one loop: references are counted without atomics.
 */
#include <stddef.h>
#include <stdint.h>

enum {
	READ_BLOCK_SIZE = 64 * 1024, /* of the pooled ones; a bigger envelope gets a bigger block */
	READ_BLOCK_POOL_MAX = 256, /* blocks that an idle loop keeps */
};

struct read_block {
	struct read_block *next; /* in the pool */
	uint32_t refs; /* one of the connection that reads into it, one a request */
	size_t capacity;
	size_t start, end; /* bytes read and not consumed yet */
	uint8_t data[];
};

struct read_block_pool {
	struct read_block *free; /* owned; the last one used first */
	uint32_t count;
};

/* One reference; NULL without memory. size: at least this many bytes. */
struct read_block *read_block_get(struct read_block_pool *pool, size_t size);
void read_block_unref(struct read_block_pool *pool, struct read_block *block);
void read_block_pool_fini(struct read_block_pool *pool);

#endif
