/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/memtable_index.h"

#include <stdlib.h>
#include <string.h>

/*
 * A slot is the entry's address below 16 bits of the token; 0: empty. Lines fill from the front. Bits of the token: the
 * lowest tell the line, the highest are the same for a whole page.
 */
enum {
	MEMTABLE_INDEX_ADDRESS_BITS = 48,
	MEMTABLE_INDEX_TAG_SHIFT = 40,
	MEMTABLE_INDEX_HEIGHT_MIN = 2, /* of the tree: a lower one is small enough for the caches */
	MEMTABLE_INDEX_LINES_MIN = 16,
};

static uint64_t
memtable_index_tag(uint64_t prefix)
{
	return prefix >> MEMTABLE_INDEX_TAG_SHIFT & 0xffff;
}

static struct memtable_entry *
memtable_index_entry(uint64_t slot)
{
	return (struct memtable_entry *)(uintptr_t)(slot &
	    ((UINT64_C(1) << MEMTABLE_INDEX_ADDRESS_BITS) - 1));
}

void
memtable_index_fini(struct memtable_index *index)
{
	for (int i = 0; index->pages != NULL && i < MEMTABLE_INDEX_PAGES; i++)
		free(index->pages[i].slots);
	free(index->pages);
	index->pages = NULL;
}

struct memtable_entry *
memtable_index_guess(const uint64_t *line, uint64_t prefix)
{
	uint64_t tag = memtable_index_tag(prefix);

	for (int i = 0; i < MEMTABLE_INDEX_LINE && line[i] != 0; i++) {
		if (line[i] >> MEMTABLE_INDEX_ADDRESS_BITS == tag)
			return memtable_index_entry(line[i]);
	}
	return NULL;
}

struct memtable_entry *
memtable_index_find(const struct memtable_index *index, uint64_t prefix, struct slice key)
{
	const uint64_t *line = memtable_index_line(index, prefix);
	uint64_t tag = memtable_index_tag(prefix);

	if (line == NULL)
		return NULL;
	for (int i = 0; i < MEMTABLE_INDEX_LINE && line[i] != 0; i++) {
		struct memtable_entry *entry = memtable_index_entry(line[i]);

		if (line[i] >> MEMTABLE_INDEX_ADDRESS_BITS != tag)
			continue;
		memtable_entry_prefetch(entry);
		if (slice_compare(memtable_entry_key(entry), key) == 0)
			return entry;
	}
	return NULL;
}

static void
memtable_index_page_put(
    struct memtable_index_page *page, uint64_t prefix, struct memtable_entry *entry)
{
	uint64_t *line = page->slots + (prefix & page->mask) * MEMTABLE_INDEX_LINE;

	page->count++;
	if ((uintptr_t)entry >> MEMTABLE_INDEX_ADDRESS_BITS != 0)
		return;
	for (int i = 0; i < MEMTABLE_INDEX_LINE; i++) {
		if (line[i] == 0) {
			line[i] = memtable_index_tag(prefix) << MEMTABLE_INDEX_ADDRESS_BITS |
			    (uintptr_t)entry;
			return;
		}
	}
}

/* Page `number` (of all shards) with so many lines, from the tree. */
static void
memtable_index_page_fill(
    struct memtable_index *index, const struct memtable_tree *tree, uint64_t number, uint64_t lines)
{
	struct memtable_index_page *page = &index->pages[number % MEMTABLE_INDEX_PAGES];
	size_t size = lines * MEMTABLE_INDEX_LINE * sizeof(*page->slots);
	uint64_t *slots = aligned_alloc(MEMTABLE_INDEX_LINE * sizeof(*slots), size);
	struct memtable_cursor cursor;

	if (slots == NULL)
		return;
	memset(slots, 0, size);
	if (page->slots != NULL)
		index->bytes -= (page->mask + 1) * MEMTABLE_INDEX_LINE * sizeof(*slots);
	index->bytes += size;
	free(page->slots);
	*page = (struct memtable_index_page){.slots = slots, .mask = lines - 1};
	memtable_cursor_seek(&cursor, tree,
	    (uint64_t)(((unsigned __int128)number << 64) / index->scale), slice_null, false);
	for (; cursor.entry != NULL; memtable_cursor_next(&cursor)) {
		uint64_t at = memtable_index_number(index, cursor.prefix);

		if (at > number)
			break;
		if (at == number) /* the start is rounded down */
			memtable_index_page_put(page, cursor.prefix, cursor.entry);
	}
}

void
memtable_index_add(struct memtable_index *index, const struct memtable_tree *tree, uint64_t prefix,
    struct memtable_entry *entry)
{
	uint64_t number = memtable_index_number(index, prefix);
	uint64_t lines = MEMTABLE_INDEX_LINES_MIN;
	struct memtable_index_page *page;

	if (tree->height < MEMTABLE_INDEX_HEIGHT_MIN)
		return;
	if (index->pages == NULL) {
		index->pages = calloc(MEMTABLE_INDEX_PAGES, sizeof(*index->pages));
		if (index->pages == NULL)
			return;
		index->bytes = MEMTABLE_INDEX_PAGES * sizeof(*index->pages);
	}
	page = &index->pages[number % MEMTABLE_INDEX_PAGES];
	if (page->slots == NULL) {
		while (lines * MEMTABLE_INDEX_LINE < tree->count / MEMTABLE_INDEX_PAGES * 2)
			lines *= 2;
		memtable_index_page_fill(index, tree, number, lines);
	} else if (page->count >= (page->mask + 1) * MEMTABLE_INDEX_LINE * 3 / 4) {
		memtable_index_page_fill(index, tree, number, (page->mask + 1) * 2);
	} else {
		memtable_index_page_put(page, prefix, entry);
	}
}
