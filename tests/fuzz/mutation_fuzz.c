/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutations out of the commit log or from another node. What can be decoded is applied to a memtable, read
 * back in both directions and encoded again.
 *
 * Input: an encoded mutation (mutation.c) of the table below, whose id is 16 bytes of 01.
 */
#include <assert.h>
#include <stdlib.h>
#include "storage/memtable.h"
#include "storage/mutation.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/fuzz/fuzz_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct table_metadata *
fuzz_table(void)
{
	struct table_builder *builder = fuzz_table_begin();

	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("c2"), type_native(TYPE_INT), true);
	return fuzz_table_end(builder);
}

static void
fuzz_read(struct memtable *memtable, const struct partition_update *update, bool is_reversed,
    struct arena *arena)
{
	struct read_command command = {
	    .table = update->table,
	    .key = update->key,
	    .token = update->token,
	    .clustering = {.with_static = true, .is_reversed = is_reversed},
	};
	struct unfiltered_iterator *iterator;
	struct unfiltered unfiltered;
	struct slice last = slice_null;
	struct error err;

	if (memtable_read(memtable, &command, arena, NULL, &iterator, &err) != 0) {
		assert(err.code == ERROR_NO_MEMORY);
		return;
	}
	assert(iterator != NULL);
	while (unfiltered_iterator_next(iterator, &unfiltered, &err) == 1) {
		struct slice at = unfiltered.kind == UNFILTERED_ROW ? unfiltered.row.position
								    : unfiltered.marker.position;

		if (!slice_is_null(last))
			assert((slice_compare(at, last) > 0) == !is_reversed);
		last = at;
	}
	unfiltered_iterator_close(iterator);
}

static void
fuzz_apply(const struct table_metadata *table, const struct mutation *mutation, struct arena *arena)
{
	struct memtable *memtable = memtable_new(table, 2, NULL);
	struct mutation decoded;
	struct buffer again;
	struct error err;

	if (memtable == NULL)
		return;
	for (uint32_t i = 0; i < mutation->update_count; i++) {
		if (memtable_apply(memtable, &mutation->updates[i], &err) != 0) {
			assert(err.code == ERROR_NO_MEMORY);
			continue;
		}
		fuzz_read(memtable, &mutation->updates[i], false, arena);
		fuzz_read(memtable, &mutation->updates[i], true, arena);
	}
	memtable_unref(memtable);
	fuzz_memory_certain(true);
	buffer_init(&again);
	mutation_encode(mutation, &again);
	if (mutation_decode(
		buffer_slice(&again), fuzz_table_find, (void *)table, arena, &decoded, &err) != 0)
		abort();
	assert(decoded.update_count == mutation->update_count);
	buffer_fini(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table_metadata *table;
	struct mutation mutation;
	struct arena arena;
	struct slice key;
	struct uuid id;
	struct error err;
	bool is_peeked = mutation_peek(slice_of(data, size), &id, &key);

	fuzz_memory_certain(true);
	table = fuzz_table();
	fuzz_memory_certain(false);
	arena_init(&arena, 4096);
	if (mutation_decode(
		slice_of(data, size), fuzz_table_find, table, &arena, &mutation, &err) == 0) {
		/* The first may be of another table, and left out. */
		assert(!is_peeked || !uuid_equal(&id, &table->id) || mutation.update_count == 0 ||
		    slice_equal(key, mutation.key));
		fuzz_apply(table, &mutation, &arena);
	}
	arena_fini(&arena);
	table_unref(table);
	return 0;
}
