/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_INDEX_H
#define HELENUS_STORAGE_MEMTABLE_INDEX_H

/*
 * Where a large shard's partitions are, by token: one cache line in place of the way down the tree, whose misses are most
 * of what a write to a large memtable costs. A shortcut only: what is not in it is in the tree, and who does not find a
 * partition here asks there. Tokens are evenly spread already, so their low bits are the hash. The shard's range is divided into pages, each of
 * which grows alone and is filled again from its part of the tree: no growth keeps the shard's lock for long.
 * The caller's lock guards everything.
 */
#include "storage/memtable_tree.h"

enum {
	MEMTABLE_INDEX_PAGES = 16,
	MEMTABLE_INDEX_LINE = 8, /* slots that are looked at */
};

struct memtable_index_page {
	uint64_t *slots; /* owned, aligned to a cache line; NULL: none yet */
	uint64_t mask; /* lines - 1 */
	uint64_t count; /* of what was added, also where there was no room in its line */
};

/* All zero but scale: empty. */
struct memtable_index {
	uint64_t scale; /* pages of all shards of the memtable */
	struct memtable_index_page *pages; /* owned; NULL: the tree is small */
	size_t bytes; /* of slots and pages, for accounting */
};

void memtable_index_fini(struct memtable_index *index);

/* Of all pages of all shards, the one that has this part of the range. */
static inline uint64_t
memtable_index_number(const struct memtable_index *index, uint64_t prefix)
{
	return (uint64_t)(((unsigned __int128)prefix * index->scale) >> 64);
}

/* The line in which (prefix) is when it is here; NULL: it is not. */
static inline const uint64_t *
memtable_index_line(const struct memtable_index *index, uint64_t prefix)
{
	const struct memtable_index_page *page;

	if (index->pages == NULL)
		return NULL;
	page = &index->pages[memtable_index_number(index, prefix) % MEMTABLE_INDEX_PAGES];
	if (page->slots == NULL)
		return NULL;
	return page->slots + (prefix & page->mask) * MEMTABLE_INDEX_LINE;
}

/* The entry that (prefix, key) may be in that line, by a part of the token alone; NULL: it is not there. */
struct memtable_entry *memtable_index_guess(const uint64_t *line, uint64_t prefix);
/* NULL: ask the tree. */
struct memtable_entry *
memtable_index_find(const struct memtable_index *index, uint64_t prefix, struct slice key);
/* After `entry` came into the tree as new. Without memory the index stays as it is. */
void memtable_index_add(struct memtable_index *index, const struct memtable_tree *tree,
    uint64_t prefix, struct memtable_entry *entry);

#endif
