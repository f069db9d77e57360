/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read commands from another node. What can be decoded is run on an empty memtable's stream and encoded again.
 *
 * Input: an encoded command (read_command_codec.c) for the table of read_fuzz.h.
 */
#include <assert.h>
#include "storage/memtable.h"
#include "storage/read_command_codec.h"
#include "storage/read_response.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/fuzz/read_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_run(
    const struct table_metadata *table, const struct read_command *command, struct arena *arena)
{
	struct read_response_options options = {.wants_data = true, .wants_digest = true};
	struct memtable *memtable = memtable_new(table, 1, NULL);
	struct partition_iterator *source;
	struct read_response_stats stats;
	struct read_command scan = *command;
	struct buffer out;
	struct error err;

	buffer_init(&out);
	scan.is_range = true;
	if (memtable != NULL &&
	    (memtable_scan(memtable, &scan, arena, NULL, &source, &err) != 0 ||
		read_response_write(source, &scan, &options, arena, &out, &stats, &err) != 0))
		assert(err.code == ERROR_NO_MEMORY);
	buffer_fini(&out);
	memtable_unref(memtable);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table_metadata *table;
	struct read_command command, again;
	struct arena arena;
	struct buffer out;
	struct slice key;
	struct uuid id;
	struct error err;
	bool is_peeked = read_command_peek(slice_of(data, size), &id, &key);

	fuzz_memory_certain(true);
	table = read_fuzz_table();
	fuzz_memory_certain(false);
	arena_init(&arena, 4096);
	if (read_command_decode(
		slice_of(data, size), fuzz_table_find, table, &arena, &command, &err) == 0) {
		assert(is_peeked == !command.is_range);
		assert(!is_peeked || slice_equal(key, command.key));
		fuzz_run(table, &command, &arena);
		fuzz_memory_certain(true);
		buffer_init(&out);
		read_command_encode(&command, &out);
		if (read_command_decode(
			buffer_slice(&out), fuzz_table_find, table, &arena, &again, &err) != 0)
			abort();
		assert(again.filter_count == command.filter_count);
		buffer_fini(&out);
	}
	arena_fini(&arena);
	table_unref(table);
	return 0;
}
