/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MERKLE_TREE_H
#define HELENUS_STORAGE_MERKLE_TREE_H

/*
 * Hashes over a token range, by which two replicas find out where they differ (utils/MerkleTree). The range is cut
 * into 2^depth equal parts; a part's hash is the XOR of its partitions' hashes, an inner node's is made of its
 * two children, when somebody asks. Trees are compared when they have the same range and depth, which
 * the coordinator of a repair gives. Tokens of Murmur3 are spread evenly, so no part needs to be cut further.
 *
 * Threads: one at a time. Memory: 16 bytes a part, at most 16 MiB a tree.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"

enum { MERKLE_DEPTH_MAX = 20, MERKLE_HASH_SIZE = 16 };

struct merkle_tree;

/* Tokens in (left, right]; left >= right goes round the ring's end, left == right is all of it. */
struct merkle_range {
	int64_t left, right;
};

/*
 * Depth for about `partitions` in one of `trees` trees that together may take `bytes_max` (repair_session_space): a part
 * for each partition, where there is room.
 */
uint32_t merkle_depth(uint64_t partitions, uint32_t trees, uint64_t bytes_max);

/* NULL: no memory. depth <= MERKLE_DEPTH_MAX. */
struct merkle_tree *merkle_tree_new(struct merkle_range range, uint32_t depth);
void merkle_tree_free(struct merkle_tree *tree); /* accepts NULL */
struct merkle_range merkle_tree_range(const struct merkle_tree *tree);
uint32_t merkle_tree_depth(const struct merkle_tree *tree);
/* Partitions that were added here or, by its own account, where it came from. */
uint64_t merkle_tree_partitions(const struct merkle_tree *tree);

/* The token lies in the range: false when it does not, and nothing was added. */
bool merkle_tree_add(struct merkle_tree *tree, int64_t token, const uint8_t hash[MERKLE_HASH_SIZE]);
/* Hash of all. */
void merkle_tree_hash(const struct merkle_tree *tree, uint8_t out[MERKLE_HASH_SIZE]);

/*
 * Where the trees differ: ranges in the ring's order from `left` on, neighbours joined; heap, *count may be 0 (then
 * *out may be NULL). ERROR_PROTOCOL: they are not of the same range and depth.
 */
int merkle_tree_difference(const struct merkle_tree *a, const struct merkle_tree *b,
    struct merkle_range **out, uint32_t *count, struct error *err);

/* u8 version, i64 left, i64 right, u8 depth, vint partitions, then vint empty parts, vint others and their hashes,
 * until all parts are told. */
void merkle_tree_encode(const struct merkle_tree *tree, struct buffer *out);
/* From another node. ERROR_PROTOCOL: damaged. */
int merkle_tree_decode(struct slice encoded, struct merkle_tree **out, struct error *err);

#endif
