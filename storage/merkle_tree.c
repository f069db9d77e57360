/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/merkle_tree.h"
#include <stdlib.h>
#include "base/hash.h"

enum { MERKLE_VERSION = 1 };

__extension__ typedef unsigned __int128 merkle_wide;

struct merkle_tree {
	struct merkle_range range;
	uint32_t depth;
	uint64_t partitions;
	uint8_t hashes[][MERKLE_HASH_SIZE]; /* 2^depth */
};

static uint32_t
merkle_parts(const struct merkle_tree *tree)
{
	return UINT32_C(1) << tree->depth;
}

/* Tokens in the range. */
static merkle_wide
merkle_size(struct merkle_range range)
{
	uint64_t size = (uint64_t)range.right - (uint64_t)range.left;

	return size != 0 ? size : (merkle_wide)1 << 64;
}

uint32_t
merkle_depth(uint64_t partitions, uint32_t trees, uint64_t bytes_max)
{
	uint64_t parts_max = bytes_max / MERKLE_HASH_SIZE / (trees != 0 ? trees : 1);
	uint32_t depth = 0;

	while (depth < MERKLE_DEPTH_MAX && (UINT64_C(1) << depth) < partitions &&
	    (UINT64_C(2) << depth) <= parts_max)
		depth++;
	return depth;
}

struct merkle_tree *
merkle_tree_new(struct merkle_range range, uint32_t depth)
{
	struct merkle_tree *tree =
	    calloc(1, sizeof(*tree) + (MERKLE_HASH_SIZE * sizeof(uint8_t) << depth));

	if (tree == NULL)
		return NULL;
	tree->range = range;
	tree->depth = depth;
	return tree;
}

void
merkle_tree_free(struct merkle_tree *tree)
{
	free(tree);
}

struct merkle_range
merkle_tree_range(const struct merkle_tree *tree)
{
	return tree->range;
}

uint32_t
merkle_tree_depth(const struct merkle_tree *tree)
{
	return tree->depth;
}

uint64_t
merkle_tree_partitions(const struct merkle_tree *tree)
{
	return tree->partitions;
}

bool
merkle_tree_add(struct merkle_tree *tree, int64_t token, const uint8_t hash[MERKLE_HASH_SIZE])
{
	merkle_wide size = merkle_size(tree->range);
	uint64_t offset = (uint64_t)token - (uint64_t)tree->range.left - 1;
	uint8_t *part;

	if (offset >= size)
		return false;
	part = tree->hashes[(uint32_t)((merkle_wide)offset * merkle_parts(tree) / size)];
	for (uint32_t i = 0; i < MERKLE_HASH_SIZE; i++)
		part[i] ^= hash[i];
	tree->partitions++;
	return true;
}

void
merkle_tree_hash(const struct merkle_tree *tree, uint8_t out[MERKLE_HASH_SIZE])
{
	uint64_t halves[2];

	murmur3_128(
	    slice_of(tree->hashes, (size_t)merkle_parts(tree) * MERKLE_HASH_SIZE), 0, halves);
	store_u64(out, halves[0]);
	store_u64(out + 8, halves[1]);
}

/* The token that part `index` begins behind: the first offset of it is index * size / parts, rounded up. */
static int64_t
merkle_part_left(const struct merkle_tree *tree, uint32_t index)
{
	uint32_t parts = merkle_parts(tree);
	merkle_wide offset = (merkle_size(tree->range) * index + parts - 1) / parts;

	return (int64_t)((uint64_t)tree->range.left + (uint64_t)offset);
}

int
merkle_tree_difference(const struct merkle_tree *a, const struct merkle_tree *b,
    struct merkle_range **out, uint32_t *count, struct error *err)
{
	uint32_t parts = merkle_parts(a), room = 0;
	struct merkle_range *ranges = NULL;
	bool is_open = false;

	if (a->depth != b->depth || a->range.left != b->range.left ||
	    a->range.right != b->range.right)
		return error_set(err, ERROR_PROTOCOL,
		    "Merkle trees of different ranges or depths cannot be compared");
	*count = 0;
	for (uint32_t i = 0; i < parts; i++) {
		if (memcmp(a->hashes[i], b->hashes[i], MERKLE_HASH_SIZE) == 0) {
			is_open = false;
			continue;
		}
		if (!is_open && *count == room) {
			struct merkle_range *more;

			room = room == 0 ? 16 : 2 * room;
			more = realloc(ranges, room * sizeof(*ranges));
			if (more == NULL) {
				free(ranges);
				return error_set(err, ERROR_NO_MEMORY,
				    "no memory for the difference of two trees");
			}
			ranges = more;
		}
		if (!is_open)
			ranges[(*count)++].left = merkle_part_left(a, i);
		ranges[*count - 1].right = merkle_part_left(a, i + 1);
		is_open = true;
	}
	*out = ranges;
	return 0;
}

/* ---- the codec ---------------------------------------------------------------------------------- */

static bool
merkle_is_empty(const uint8_t hash[MERKLE_HASH_SIZE])
{
	static const uint8_t none[MERKLE_HASH_SIZE];

	return memcmp(hash, none, sizeof(none)) == 0;
}

/* Parts from `at` on that are empty, or are not. */
static uint32_t
merkle_run(const struct merkle_tree *tree, uint32_t at, bool is_empty)
{
	uint32_t end = at;

	while (end < merkle_parts(tree) && merkle_is_empty(tree->hashes[end]) == is_empty)
		end++;
	return end - at;
}

void
merkle_tree_encode(const struct merkle_tree *tree, struct buffer *out)
{
	uint32_t at = 0;

	buffer_put_u8(out, MERKLE_VERSION);
	buffer_put_u64(out, (uint64_t)tree->range.left);
	buffer_put_u64(out, (uint64_t)tree->range.right);
	buffer_put_u8(out, (uint8_t)tree->depth);
	buffer_put_vint(out, tree->partitions);
	while (at < merkle_parts(tree)) {
		uint32_t run = merkle_run(tree, at, true);

		buffer_put_vint(out, run);
		at += run;
		run = merkle_run(tree, at, false);
		buffer_put_vint(out, run);
		buffer_put(out, tree->hashes[at], (size_t)run * MERKLE_HASH_SIZE);
		at += run;
	}
}

static int
merkle_get_parts(struct merkle_tree *tree, struct reader *reader, struct error *err)
{
	uint64_t at = 0, parts = merkle_parts(tree);

	while (at < parts) {
		uint64_t empty = reader_vint(reader), full;
		struct slice hashes;

		if (empty > parts - at)
			reader->is_failed = true;
		at += reader->is_failed ? 0 : empty;
		full = reader_vint(reader);
		/* Each round goes on by a part at least, or it would not end. */
		if (reader->is_failed || full > parts - at || empty + full == 0)
			return error_set(err, ERROR_PROTOCOL, "a Merkle tree is damaged");
		hashes = reader_bytes(reader, (size_t)full * MERKLE_HASH_SIZE);
		if (reader->is_failed)
			return error_set(err, ERROR_PROTOCOL, "a Merkle tree is damaged");
		memcpy(tree->hashes[at], hashes.data, hashes.size);
		at += full;
	}
	if (reader_left(reader) != 0)
		return error_set(err, ERROR_PROTOCOL, "a Merkle tree is damaged");
	return 0;
}

int
merkle_tree_decode(struct slice encoded, struct merkle_tree **out, struct error *err)
{
	struct reader reader = reader_of(encoded);
	uint8_t version = reader_u8(&reader), depth;
	struct merkle_tree *tree;
	struct merkle_range range;
	uint64_t partitions;

	range.left = (int64_t)reader_u64(&reader);
	range.right = (int64_t)reader_u64(&reader);
	depth = reader_u8(&reader);
	partitions = reader_vint(&reader);
	if (reader.is_failed || version != MERKLE_VERSION || depth > MERKLE_DEPTH_MAX)
		return error_set(err, ERROR_PROTOCOL, "a Merkle tree is damaged");
	tree = merkle_tree_new(range, depth);
	if (tree == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a Merkle tree");
	tree->partitions = partitions;
	if (merkle_get_parts(tree, &reader, err) != 0) {
		merkle_tree_free(tree);
		return -1;
	}
	*out = tree;
	return 0;
}
