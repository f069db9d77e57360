/* SPDX-License-Identifier: Apache-2.0 */
#include "server/read_block.h"

#include <assert.h>
#include <stdlib.h>

struct read_block *
read_block_get(struct read_block_pool *pool, size_t size)
{
	struct read_block *block = pool->free;

	if (size <= READ_BLOCK_SIZE && block != NULL) {
		pool->free = block->next;
		pool->count--;
	} else {
		size = size > READ_BLOCK_SIZE ? size : READ_BLOCK_SIZE;
		block = malloc(sizeof(*block) + size);
		if (block == NULL)
			return NULL;
		block->capacity = size;
	}
	block->next = NULL;
	block->refs = 1;
	block->start = 0;
	block->end = 0;
	return block;
}

void
read_block_unref(struct read_block_pool *pool, struct read_block *block)
{
	if (block == NULL)
		return;
	assert(block->refs > 0);
	if (--block->refs > 0)
		return;
	if (block->capacity != READ_BLOCK_SIZE || pool->count >= READ_BLOCK_POOL_MAX) {
		free(block);
		return;
	}
	block->next = pool->free;
	pool->free = block;
	pool->count++;
}

void
read_block_pool_fini(struct read_block_pool *pool)
{
	while (pool->free != NULL) {
		struct read_block *next = pool->free->next;

		free(pool->free);
		pool->free = next;
	}
	pool->count = 0;
}
