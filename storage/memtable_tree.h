/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_TREE_H
#define HELENUS_STORAGE_MEMTABLE_TREE_H

/*
 * The ordered index of a memtable: a B+ tree of entries by (prefix, key). The prefix is the first thing
 * compared and lies in the nodes (a partition's token; the first bytes of a row's position), so that
 * most searches touch one node a level and no entry. Entries are never removed; nodes and entries come
 * from the memtable shard's arena and die with it. The caller's lock guards everything; a cursor is valid
 * only while it is held.
 */
#include "base/arena.h"
#include "base/bytes.h"

struct memtable_entry {
	void *content; /* the owner of the tree says what it is */
	uint32_t key_size;
	uint32_t flags;
	uint8_t key[];
};

static inline struct slice
memtable_entry_key(const struct memtable_entry *entry)
{
	return slice_of(entry->key, entry->key_size);
}

/* What the entry was made for lies behind it, unless it was replaced since. */
static inline void
memtable_entry_prefetch(const struct memtable_entry *entry)
{
	__builtin_prefetch((const char *)entry + 64);
	__builtin_prefetch((const char *)entry + 128);
	__builtin_prefetch((const char *)entry + 192);
}

struct memtable_node;

/* All zero: an empty tree. With low < high the prefixes are spread evenly over [low, high), most of them at
 * least: searches are then faster. */
struct memtable_tree {
	struct memtable_node *root;
	uint32_t height; /* of the inner nodes above the leaves */
	uint64_t count;
	uint64_t low, high;
};

/* Prefix of a row's position: its order is that of the positions, as far as it goes. */
uint64_t memtable_position_prefix(struct slice position);

/*
 * The entry of that key, or a new one with no content (*is_new). key's bytes are copied. NULL without memory
 * (the tree is as before).
 */
struct memtable_entry *memtable_tree_put(struct memtable_tree *tree, struct arena *arena,
    uint64_t prefix, struct slice key, bool *is_new);
struct memtable_entry *
memtable_tree_find(const struct memtable_tree *tree, uint64_t prefix, struct slice key);

/*
 * A search in steps, each of which asks for the memory of the next one and does not wait for it. The tree may change
 * between two: then the wrong memory is asked for.
 */
struct memtable_tree_ahead {
	const struct memtable_node *node; /* NULL: nothing is left to do */
	uint64_t low, high;
	uint32_t level;
};
enum { MEMTABLE_TREE_AHEAD_STEPS = 3 };
void memtable_tree_ahead_start(const struct memtable_tree *tree, uint64_t prefix, struct slice key,
    struct memtable_tree_ahead *ahead);
void
memtable_tree_ahead_go_on(struct memtable_tree_ahead *ahead, uint64_t prefix, struct slice key);

/* A place in the tree; entry NULL is beyond an end. */
struct memtable_cursor {
	const struct memtable_node *leaf;
	uint32_t index;
	uint64_t prefix; /* of entry */
	struct memtable_entry *entry;
};

/* The first entry >= (prefix, key), or with is_after > it. */
void memtable_cursor_seek(struct memtable_cursor *cursor, const struct memtable_tree *tree,
    uint64_t prefix, struct slice key, bool is_after);
/* The last entry < (prefix, key). */
void memtable_cursor_seek_before(struct memtable_cursor *cursor, const struct memtable_tree *tree,
    uint64_t prefix, struct slice key);
void memtable_cursor_first(struct memtable_cursor *cursor, const struct memtable_tree *tree);
void memtable_cursor_last(struct memtable_cursor *cursor, const struct memtable_tree *tree);
void memtable_cursor_next(struct memtable_cursor *cursor);
void memtable_cursor_previous(struct memtable_cursor *cursor);

#endif
