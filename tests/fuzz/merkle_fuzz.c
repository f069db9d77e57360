/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merkle trees from another node. What can be decoded is compared with itself and with an empty tree, and encoded again.
 *
 * Input: an encoded tree (merkle_tree.h).
 */
#include <assert.h>
#include <stdlib.h>
#include "storage/merkle_tree.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct merkle_tree *tree, *again, *empty;
	struct merkle_range *ranges;
	struct buffer out;
	uint32_t count;
	struct error err;

	if (merkle_tree_decode(slice_of(data, size), &tree, &err) != 0)
		return 0;
	fuzz_memory_certain(true);
	buffer_init(&out);
	merkle_tree_encode(tree, &out);
	if (merkle_tree_decode(buffer_slice(&out), &again, &err) != 0 ||
	    merkle_tree_difference(tree, again, &ranges, &count, &err) != 0)
		abort();
	assert(count == 0);
	free(ranges);
	empty = merkle_tree_new(merkle_tree_range(tree), merkle_tree_depth(tree));
	if (empty == NULL || merkle_tree_difference(tree, empty, &ranges, &count, &err) != 0)
		abort();
	free(ranges);
	merkle_tree_free(empty);
	merkle_tree_free(again);
	merkle_tree_free(tree);
	buffer_fini(&out);
	return 0;
}
