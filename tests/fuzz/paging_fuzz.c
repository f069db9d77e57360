/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paging states, which clients hand back: what can be decoded is encoded again and decodes to the same, and its position, taken
 * for one of a table, is compared and decoded without a byte read behind it.
 *
 * Input: the paging state (paging.h).
 */
#include <assert.h>
#include <stdlib.h>
#include "server/paging.h"
#include "storage/row.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/fuzz/read_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_position(struct slice position)
{
	static struct table_metadata *table;
	enum position_place place;
	const struct slice *values;
	struct arena arena;
	struct error err;
	uint32_t count;

	fuzz_memory_certain(true);
	if (table == NULL)
		table = read_fuzz_table();
	fuzz_memory_certain(false);
	arena_init(&arena, 4096);
	if (position_decode(table, position, &arena, &place, &values, &count, &err) == 0) {
		assert(count <= table->clustering_count);
		for (uint32_t i = 0; i < count; i++)
			if (!slice_is_null(values[i]))
				(void)type_validate(table->clustering[i].type, values[i], &err);
	}
	arena_fini(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paging_state state, again;
	struct buffer bytes;
	struct error err;

	if (paging_decode(slice_of(data, size), &state, &err) != 0)
		return 0;
	fuzz_memory_certain(true);
	buffer_init(&bytes);
	paging_encode(&state, &bytes);
	if (paging_decode(buffer_slice(&bytes), &again, &err) != 0)
		abort();
	assert(slice_equal(again.key, state.key));
	assert(slice_is_null(again.position) == slice_is_null(state.position));
	assert(slice_equal(again.position, state.position));
	assert(again.left == state.left);
	assert(again.left_in_partition == state.left_in_partition);
	buffer_fini(&bytes);
	fuzz_memory_certain(false);
	if (!slice_is_null(state.position))
		fuzz_position(state.position);
	return 0;
}
