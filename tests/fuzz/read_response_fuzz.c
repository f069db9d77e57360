/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to reads from other nodes. What can be decoded is hashed, and merged with itself as the answers of two
 * replicas.
 *
 * Input: u8 flags (1: reversed, 2: of a range, 4: two answers, the second after half of the bytes), then the answer
 * (read_response_internal.h) for the table of read_fuzz.h and the key 00000007.
 */
#include <assert.h>
#include "base/hash.h"
#include "storage/data_resolver.h"
#include "tests/fuzz/fuzz_memory.h"
#include "tests/fuzz/read_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_pull(struct partition_iterator *partitions)
{
	struct unfiltered_iterator *partition;
	struct unfiltered item;
	struct error err;
	int rc;

	while ((rc = partition_iterator_next(partitions, &partition, &err)) > 0) {
		struct slice last = slice_null;

		while ((rc = unfiltered_iterator_next(partition, &item, &err)) > 0) {
			struct slice at =
			    item.kind == UNFILTERED_ROW ? item.row.position : item.marker.position;
			int order = slice_is_null(last) ? 0 : slice_compare(last, at);

			assert(slice_is_null(last) ||
			    (partition->is_reversed ? order > 0 : order < 0));
			last = at;
		}
		unfiltered_iterator_close(partition);
	}
	partition_iterator_close(partitions);
}

static void
fuzz_resolve(
    const struct read_command *command, struct slice a, struct slice b, struct arena *arena)
{
	struct data_resolver *resolver = data_resolver_new(command, 2, arena);
	uint32_t count;
	struct error err;

	if (resolver == NULL || data_resolver_add(resolver, 0, a, &err) != 0 ||
	    data_resolver_add(resolver, 1, b, &err) != 0 ||
	    data_resolver_run(resolver, &err) != DATA_RESOLVER_DONE)
		return;
	fuzz_pull(data_resolver_partitions(resolver));
	data_resolver_repairs(resolver, 0, &count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct read_command command = {
	    .is_range = size != 0 && (data[0] & 2) != 0,
	    .key = slice_of("\0\0\0\7", 4),
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .clustering = {.with_static = true, .is_reversed = size != 0 && (data[0] & 1) != 0},
	    .row_limit = 100,
	    .per_partition_limit = READ_LIMIT_NONE,
	};
	struct read_response response;
	struct read_digest digest;
	struct table_metadata *table;
	struct arena arena;
	struct slice input, half;
	struct error err;

	if (size == 0)
		return 0;
	fuzz_memory_certain(true);
	table = read_fuzz_table();
	fuzz_memory_certain(false);
	command.table = table;
	command.token = murmur3_token(command.key);
	arena_init(&arena, 4096);
	input = half = slice_of(data + 1, size - 1);
	if (data[0] & 4) {
		input = slice_of(data + 1, (size - 1) / 2);
		half = slice_of(input.data + input.size, size - 1 - input.size);
	}
	if (read_response_decode(input, &command, &arena, &response, &err) == 0 &&
	    !response.is_digest && read_response_digest(&response, &arena, &digest, &err) == 0)
		fuzz_resolve(&command, input, half, &arena);
	arena_fini(&arena);
	table_unref(table);
	return 0;
}
