/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/memtable_tree.h"

/*
 * A node is a header and `room` slots, prefix and entry (in a leaf) or child side by side; above the leaves
 * separators follow: the entry that was the child's least when it was made. Entries stay, so a
 * separator may point to one. Child 0's separator is never looked at. Small trees (most partitions have
 * few rows) begin with a small leaf that is replaced by larger ones until it is of full size.
 *
 * A large memtable is far larger than the caches: what a search costs is the misses that wait for each other.
 * So a leaf's lines are asked for all at once, and where prefixes are spread evenly (tokens) a search begins
 * where its goal should be.
 */
struct memtable_slot {
	uint64_t prefix;
	void *item;
};

struct memtable_node {
	uint32_t count, room;
	struct memtable_node *next, *previous; /* of leaves */
	struct memtable_slot slots[];
};

enum {
	MEMTABLE_LEAF_ROOM_MIN = 2,
	MEMTABLE_LEAF_ROOM_MAX = 32,
	MEMTABLE_INNER_ROOM = 64,
	MEMTABLE_HEIGHT_MAX = 16,
};

static inline const struct memtable_entry **
memtable_node_separators(const struct memtable_node *node)
{
	return (const struct memtable_entry **)(node->slots + node->room);
}

static struct memtable_node *
memtable_node_new(struct arena *arena, uint32_t room, bool is_leaf)
{
	struct memtable_node *node = arena_alloc(arena,
	    sizeof(*node) + room * (sizeof(struct memtable_slot) + (is_leaf ? 0 : sizeof(void *))));

	if (node == NULL)
		return NULL;
	node->count = 0;
	node->room = room;
	node->next = node->previous = NULL;
	return node;
}

uint64_t
memtable_position_prefix(struct slice position)
{
	uint8_t bytes[8] = {0};
	size_t size = position.size < 9 ? position.size : 9;

	/* Nearly every position begins with 40, a first component that is not null: the next eight
	 * bytes tell more. The other beginnings are below (20, 38, 3F) or above it (60). */
	if (size == 0 || position.data[0] < 0x40)
		return 0;
	if (position.data[0] > 0x40)
		return UINT64_MAX;
	memcpy(bytes, position.data + 1, size - 1);
	return load_u64(bytes);
}

/* How many of the `count` ascending slots have a prefix < `prefix`; no branch depends on them. */
static inline uint32_t
memtable_count_below(const struct memtable_slot *slots, uint32_t count, uint64_t prefix)
{
	const struct memtable_slot *base = slots;

	if (count == 0)
		return 0;
	while (count > 1) {
		uint32_t half = count / 2;

		base += base[half - 1].prefix < prefix ? half : 0;
		count -= half;
	}
	return (uint32_t)(base - slots) + (base->prefix < prefix);
}

/*
 * The same, beginning where the prefix would be if they were spread evenly over [low, high): for tokens, which
 * are. That costs one miss or two where a binary search of a node that is not in the cache costs four.
 */
static inline uint32_t
memtable_count_below_even(
    const struct memtable_slot *slots, uint32_t count, uint64_t prefix, uint64_t low, uint64_t high)
{
	uint32_t index, steps = 0;

	if (count < 4 || prefix <= low || prefix >= high) /* or nothing is known of them */
		return memtable_count_below(slots, count, prefix);
	index = (uint32_t)((double)(prefix - low) / (double)(high - low) * count);
	if (index >= count)
		index = count - 1;
	while (index < count && slots[index].prefix < prefix) {
		if (steps++ == 8)
			return index + memtable_count_below(slots + index, count - index, prefix);
		index++;
	}
	while (index > 0 && slots[index - 1].prefix >= prefix) {
		if (steps++ == 8)
			return memtable_count_below(slots, index, prefix);
		index--;
	}
	return index;
}

/* The entry that a slot stands for: itself in a leaf, a separator above. */
static inline const struct memtable_entry *
memtable_node_entry(const struct memtable_node *node, uint32_t index, bool is_leaf)
{
	return is_leaf ? node->slots[index].item : memtable_node_separators(node)[index];
}

/* Between which prefixes a node's entries are, as far as the way down tells; low == high: who knows. */
struct memtable_span {
	uint64_t low, high;
};

/* How many of a node's entries (or separators, child 0's left out) are < (prefix, key), or <= it. */
static inline uint32_t
memtable_node_search(const struct memtable_node *node, bool is_leaf, uint64_t prefix,
    struct slice key, bool or_equal, const struct memtable_span *span)
{
	uint32_t first = is_leaf ? 0 : 1;
	uint32_t low = first +
	    memtable_count_below_even(
		node->slots + first, node->count - first, prefix, span->low, span->high);
	uint32_t high;

	if (low == node->count || node->slots[low].prefix != prefix)
		return low;
	high = prefix == UINT64_MAX
	    ? node->count
	    : low + memtable_count_below(node->slots + low, node->count - low, prefix + 1);
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = slice_compare(
		    memtable_entry_key(memtable_node_entry(node, middle, is_leaf)), key);

		if (order < 0 || (order == 0 && or_equal))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* All lines of a leaf at once: fewer would do, but guessing which was slower. */
static inline void
memtable_leaf_prefetch(const struct memtable_node *leaf)
{
	const char *at = (const char *)leaf;
	const char *end = (const char *)(leaf->slots + MEMTABLE_LEAF_ROOM_MAX);

	for (; at < end; at += 64)
		__builtin_prefetch(at);
}

/* The way down to a leaf: the inner nodes and which child was taken. */
struct memtable_path {
	struct memtable_node *nodes[MEMTABLE_HEIGHT_MAX];
	uint32_t children[MEMTABLE_HEIGHT_MAX];
};

/* The leaf in which (prefix, key) is or would be; the path is written where it is not NULL. */
static struct memtable_node *
memtable_tree_descend(const struct memtable_tree *tree, uint64_t prefix, struct slice key,
    struct memtable_path *path, struct memtable_span *span)
{
	struct memtable_node *node = tree->root;

	span->low = tree->low;
	span->high = tree->high;
	for (uint32_t level = tree->height; level > 0; level--) {
		uint32_t child = memtable_node_search(node, false, prefix, key, true, span) - 1;

		if (path != NULL) {
			path->nodes[level - 1] = node;
			path->children[level - 1] = child;
		}
		if (span->high != 0) {
			if (child > 0)
				span->low = node->slots[child].prefix;
			if (child + 1 < node->count)
				span->high = node->slots[child + 1].prefix;
		}
		node = node->slots[child].item;
	}
	if (tree->height != 0)
		memtable_leaf_prefetch(node);
	return node;
}

struct memtable_entry *
memtable_tree_find(const struct memtable_tree *tree, uint64_t prefix, struct slice key)
{
	struct memtable_node *leaf;
	struct memtable_span span;
	struct memtable_entry *entry;
	uint32_t index;

	if (tree->root == NULL)
		return NULL;
	leaf = memtable_tree_descend(tree, prefix, key, NULL, &span);
	index = memtable_node_search(leaf, true, prefix, key, false, &span);
	if (index == leaf->count || leaf->slots[index].prefix != prefix)
		return NULL;
	entry = leaf->slots[index].item;
	memtable_entry_prefetch(entry);
	return slice_compare(memtable_entry_key(entry), key) == 0 ? entry : NULL;
}

/* Where in the node the search will begin, and the line behind. */
static void
memtable_inner_prefetch(
    const struct memtable_node *node, uint64_t prefix, const struct memtable_span *span)
{
	uint32_t index = MEMTABLE_INNER_ROOM / 2;

	/* How many there are is not known without looking: in the mean two thirds of the room. */
	if (prefix > span->low && prefix < span->high)
		index = (uint32_t)((double)(prefix - span->low) / (double)(span->high - span->low) *
		    (MEMTABLE_INNER_ROOM * 2 / 3));
	__builtin_prefetch(node);
	__builtin_prefetch((const char *)&node->slots[index] - 64);
	__builtin_prefetch(&node->slots[index]);
	__builtin_prefetch((const char *)&node->slots[index] + 64);
}

static void
memtable_ahead_down(struct memtable_tree_ahead *ahead, uint64_t prefix, struct slice key)
{
	const struct memtable_node *node = ahead->node;
	struct memtable_span span = {ahead->low, ahead->high};
	uint32_t child = memtable_node_search(node, false, prefix, key, true, &span) - 1;

	if (ahead->high != 0 && child > 0)
		ahead->low = node->slots[child].prefix;
	if (ahead->high != 0 && child + 1 < node->count)
		ahead->high = node->slots[child + 1].prefix;
	ahead->node = node->slots[child].item;
	ahead->level--;
}

void
memtable_tree_ahead_start(const struct memtable_tree *tree, uint64_t prefix, struct slice key,
    struct memtable_tree_ahead *ahead)
{
	struct memtable_span span;

	*ahead = (struct memtable_tree_ahead){tree->root, tree->low, tree->high, tree->height};
	if (tree->height < 2) { /* small enough for the caches */
		ahead->node = NULL;
		return;
	}
	while (ahead->level > 1)
		memtable_ahead_down(ahead, prefix, key);
	span = (struct memtable_span){ahead->low, ahead->high};
	memtable_inner_prefetch(ahead->node, prefix, &span);
}

void
memtable_tree_ahead_go_on(struct memtable_tree_ahead *ahead, uint64_t prefix, struct slice key)
{
	const struct memtable_node *leaf = ahead->node;
	const char *entry;
	uint32_t index;

	if (ahead->level > 0) {
		memtable_ahead_down(ahead, prefix, key);
		memtable_leaf_prefetch(ahead->node);
		return;
	}
	index =
	    memtable_count_below_even(leaf->slots, leaf->count, prefix, ahead->low, ahead->high);
	ahead->node = NULL;
	if (index == leaf->count || leaf->slots[index].prefix != prefix)
		return;
	/* What it was made for lies behind it, unless it was replaced since. */
	entry = leaf->slots[index].item;
	for (int at = 0; at < 256; at += 64)
		__builtin_prefetch(entry + at);
}

/* ---- insertion ---------------------------------------------------------------------------------- */

static void
memtable_node_copy(struct memtable_node *to, const struct memtable_node *from, uint32_t from_index,
    uint32_t count, bool is_leaf)
{
	memcpy(to->slots, from->slots + from_index, count * sizeof(to->slots[0]));
	if (!is_leaf)
		memcpy(memtable_node_separators(to), memtable_node_separators(from) + from_index,
		    count * sizeof(void *));
}

static void
memtable_node_insert(struct memtable_node *node, uint32_t index, uint64_t prefix, void *item,
    const struct memtable_entry *separator)
{
	uint32_t moved = node->count - index;
	struct memtable_slot *slot = &node->slots[index];

	memmove(slot + 1, slot, moved * sizeof(*slot));
	*slot = (struct memtable_slot){prefix, item};
	if (separator != NULL) {
		const struct memtable_entry **separators = memtable_node_separators(node);

		memmove(separators + index + 1, separators + index, moved * sizeof(void *));
		separators[index] = separator;
	}
	node->count++;
}

/* Nodes that an insertion will need, made before anything changes. */
struct memtable_spares {
	struct memtable_node *nodes[MEMTABLE_HEIGHT_MAX + 1];
	struct memtable_node *root;
};

/* How the full nodes on the path split: one spare for each, and a root when all are full. */
static int
memtable_prepare_split(const struct memtable_tree *tree, struct arena *arena,
    const struct memtable_node *leaf, const struct memtable_path *path,
    struct memtable_spares *spares)
{
	uint32_t level = 0;
	bool is_full = leaf->count == leaf->room;

	spares->root = NULL;
	while (is_full) {
		spares->nodes[level] = memtable_node_new(
		    arena, level == 0 ? MEMTABLE_LEAF_ROOM_MAX : MEMTABLE_INNER_ROOM, level == 0);
		if (spares->nodes[level] == NULL)
			return -1;
		if (level == tree->height) {
			if (tree->height == MEMTABLE_HEIGHT_MAX)
				return -1;
			spares->root = memtable_node_new(arena, MEMTABLE_INNER_ROOM, false);
			return spares->root != NULL ? 0 : -1;
		}
		is_full = path->nodes[level]->count == MEMTABLE_INNER_ROOM;
		level++;
	}
	return 0;
}

/* Move the upper part of a full node to `right` and put the new item into the half it belongs to.
 * Items that come in ascending order leave full nodes behind. */
static void
memtable_node_split(struct memtable_node *node, struct memtable_node *right, uint32_t index,
    uint64_t prefix, void *slot, const struct memtable_entry *separator)
{
	uint32_t kept = index == node->count ? node->count : node->count / 2;

	memtable_node_copy(right, node, kept, node->count - kept, separator == NULL);
	right->count = node->count - kept;
	node->count = kept;
	if (index < kept || (index == kept && right->count != 0))
		memtable_node_insert(node, index, prefix, slot, separator);
	else
		memtable_node_insert(right, index - kept, prefix, slot, separator);
}

static const struct memtable_entry *
memtable_node_least(const struct memtable_node *node, bool is_leaf)
{
	return memtable_node_entry(node, 0, is_leaf);
}

static void
memtable_tree_insert(struct memtable_tree *tree, struct memtable_node *leaf, uint32_t index,
    uint64_t prefix, struct memtable_entry *entry, struct memtable_path *path,
    struct memtable_spares *spares)
{
	struct memtable_node *node = leaf, *right;
	const struct memtable_entry *separator = NULL;
	void *slot = entry;

	for (uint32_t level = 0;; level++) {
		if (node->count < node->room) {
			memtable_node_insert(node, index, prefix, slot, separator);
			return;
		}
		/* There is a spare for each full node of the path.
		 * NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
		right = spares->nodes[level];
		memtable_node_split(node, right, index, prefix, slot, separator);
		if (level == 0) {
			right->next = node->next;
			right->previous = node;
			if (node->next != NULL)
				node->next->previous = right;
			node->next = right;
		}
		slot = right;
		prefix = right->slots[0].prefix;
		separator = memtable_node_least(right, level == 0);
		if (level == tree->height)
			break;
		node = path->nodes[level];
		index = path->children[level] + 1;
	}
	memtable_node_insert(spares->root, 0, node->slots[0].prefix, node,
	    memtable_node_least(node, tree->height == 0));
	memtable_node_insert(spares->root, 1, prefix, right, separator);
	tree->root = spares->root;
	tree->height++;
}

/* A leaf that is alone and full is replaced by a larger one, until it has the full size. */
static struct memtable_node *
memtable_tree_grow_leaf(struct memtable_tree *tree, struct arena *arena)
{
	struct memtable_node *old = tree->root, *leaf;
	uint32_t room = old == NULL ? MEMTABLE_LEAF_ROOM_MIN : old->room * 4;

	leaf = memtable_node_new(
	    arena, room < MEMTABLE_LEAF_ROOM_MAX ? room : MEMTABLE_LEAF_ROOM_MAX, true);
	if (leaf == NULL)
		return NULL;
	if (old != NULL) {
		memtable_node_copy(leaf, old, 0, old->count, true);
		leaf->count = old->count;
	}
	tree->root = leaf;
	return leaf;
}

struct memtable_entry *
memtable_tree_put(struct memtable_tree *tree, struct arena *arena, uint64_t prefix,
    struct slice key, bool *is_new)
{
	struct memtable_path path;
	struct memtable_spares spares;
	struct memtable_span span;
	struct memtable_node *leaf;
	struct memtable_entry *entry;
	uint32_t index;

	*is_new = false;
	if (tree->root == NULL && memtable_tree_grow_leaf(tree, arena) == NULL)
		return NULL;
	leaf = memtable_tree_descend(tree, prefix, key, &path, &span);
	index = memtable_node_search(leaf, true, prefix, key, false, &span);
	if (index < leaf->count && leaf->slots[index].prefix == prefix) {
		entry = leaf->slots[index].item;
		if (slice_compare(memtable_entry_key(entry), key) == 0)
			return entry;
	}
	if (leaf->count == leaf->room && leaf->room < MEMTABLE_LEAF_ROOM_MAX) {
		leaf = memtable_tree_grow_leaf(tree, arena);
		if (leaf == NULL)
			return NULL;
	}
	entry = arena_alloc(arena, sizeof(*entry) + key.size);
	if (entry == NULL || memtable_prepare_split(tree, arena, leaf, &path, &spares) != 0)
		return NULL;
	entry->content = NULL;
	entry->key_size = (uint32_t)key.size;
	entry->flags = 0;
	if (key.size != 0)
		memcpy(entry->key, key.data, key.size);
	memtable_tree_insert(tree, leaf, index, prefix, entry, &path, &spares);
	tree->count++;
	*is_new = true;
	return entry;
}

/* ---- cursors ------------------------------------------------------------------------------------ */

static void
memtable_cursor_set(struct memtable_cursor *cursor)
{
	if (cursor->leaf == NULL) {
		cursor->entry = NULL;
		return;
	}
	cursor->prefix = cursor->leaf->slots[cursor->index].prefix;
	cursor->entry = cursor->leaf->slots[cursor->index].item;
}

/* Place `index` of the leaf, which may be one past its last: then the next leaf's first. */
static void
memtable_cursor_at(struct memtable_cursor *cursor, const struct memtable_node *leaf, uint32_t index)
{
	if (leaf != NULL && index == leaf->count) {
		leaf = leaf->next;
		index = 0;
	}
	cursor->leaf = leaf;
	cursor->index = index;
	memtable_cursor_set(cursor);
}

void
memtable_cursor_seek(struct memtable_cursor *cursor, const struct memtable_tree *tree,
    uint64_t prefix, struct slice key, bool is_after)
{
	const struct memtable_node *leaf;
	struct memtable_span span;

	if (tree->root == NULL) {
		memtable_cursor_at(cursor, NULL, 0);
		return;
	}
	leaf = memtable_tree_descend(tree, prefix, key, NULL, &span);
	memtable_cursor_at(
	    cursor, leaf, memtable_node_search(leaf, true, prefix, key, is_after, &span));
}

void
memtable_cursor_seek_before(struct memtable_cursor *cursor, const struct memtable_tree *tree,
    uint64_t prefix, struct slice key)
{
	const struct memtable_node *leaf;
	struct memtable_span span;
	uint32_t index;

	if (tree->root == NULL) {
		memtable_cursor_at(cursor, NULL, 0);
		return;
	}
	leaf = memtable_tree_descend(tree, prefix, key, NULL, &span);
	index = memtable_node_search(leaf, true, prefix, key, false, &span);
	if (index == 0) {
		leaf = leaf->previous;
		index = leaf != NULL ? leaf->count : 1;
	}
	memtable_cursor_at(cursor, leaf, index - 1);
}

void
memtable_cursor_first(struct memtable_cursor *cursor, const struct memtable_tree *tree)
{
	const struct memtable_node *node = tree->root;

	for (uint32_t level = tree->height; level > 0; level--)
		node = node->slots[0].item;
	memtable_cursor_at(cursor, node, 0);
}

void
memtable_cursor_last(struct memtable_cursor *cursor, const struct memtable_tree *tree)
{
	const struct memtable_node *node = tree->root;

	for (uint32_t level = tree->height; level > 0; level--)
		node = node->slots[node->count - 1].item;
	memtable_cursor_at(cursor, node, node != NULL ? node->count - 1 : 0);
}

void
memtable_cursor_next(struct memtable_cursor *cursor)
{
	memtable_cursor_at(cursor, cursor->leaf, cursor->index + 1);
}

void
memtable_cursor_previous(struct memtable_cursor *cursor)
{
	if (cursor->index == 0) {
		cursor->leaf = cursor->leaf->previous;
		cursor->index = cursor->leaf != NULL ? cursor->leaf->count : 1;
	}
	cursor->index--;
	memtable_cursor_set(cursor);
}
