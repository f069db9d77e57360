/* SPDX-License-Identifier: Apache-2.0 */
/* A file of hints: header and records, or with a first byte that is odd a name or a position. */
#include <assert.h>
#include <stdlib.h>
#include "base/hash.h"
#include "cluster/hints_file.h"
#include "storage/mutation.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
count_table(void *argument, const struct uuid *id)
{
	(void)id;
	++*(unsigned *)argument;
}

static void
fuzz_file(struct slice input)
{
	struct reader reader;
	enum hints_next next;
	struct buffer again;
	struct uuid host_id;
	struct error err;
	struct hint hint;
	size_t need;

	if (hints_header_decode(input, &host_id, &err) != 0)
		return;
	fuzz_memory_certain(true);
	reader =
	    reader_of(slice_of(input.data + HINTS_HEADER_SIZE, input.size - HINTS_HEADER_SIZE));
	buffer_init(&again);
	while (true) {
		const uint8_t *at = reader.at;
		unsigned tables = 0;

		next = hints_next(&reader, &hint, &need);
		if (next != HINTS_RECORD && next != HINTS_BAD_BODY) {
			assert(reader.at == at);
			break;
		}
		assert(reader.at > at && reader.at <= reader.end);
		if (next == HINTS_BAD_BODY)
			continue;
		buffer_clear(&again);
		hint_encode(&hint, &again);
		assert(slice_equal(buffer_slice(&again), slice_of(at, (size_t)(reader.at - at))));
		mutation_each_table(hint.mutation, count_table, &tables);
	}
	buffer_fini(&again);
}

static void
fuzz_name(struct slice input)
{
	char text[HINTS_NAME_SIZE], again[HINTS_NAME_SIZE];
	struct hints_name name, second;
	uint64_t position;

	(void)hints_position_decode(input, &position);
	if (input.size >= sizeof(text))
		return;
	memcpy(text, input.data, input.size);
	text[input.size] = '\0';
	if (!hints_name_parse(text, &name))
		return;
	hints_name_format(&name, ".hints", again);
	assert(hints_name_parse(again, &second));
	assert(uuid_equal(&name.host_id, &second.host_id) &&
	    name.timestamp_ms == second.timestamp_ms && name.version == second.version);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2 == 0)
		fuzz_file(slice_of(data + 1, size - 1));
	else
		fuzz_name(slice_of(data + 1, size - 1));
	return 0;
}
