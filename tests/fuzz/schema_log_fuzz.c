/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other nodes say about the schema log, and what stands of it on the disk. The first byte says which of the
 * decoders; what decodes is encoded again to the same bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include "cluster/schema_log_codec.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_state(struct slice input, struct buffer *out)
{
	struct schema_log_state state;
	struct error err;

	if (schema_state_decode(input, &state, &err) != 0)
		return;
	fuzz_memory_certain(true);
	schema_state_encode(&state, out);
	assert(slice_equal(buffer_slice(out), input));
	schema_entry_fini(&state.accepted);
}

static void
fuzz_promise(struct slice input, struct buffer *out)
{
	struct schema_promise promise, again;
	struct error err;

	if (schema_promise_decode(input, &promise, &err) != 0)
		return;
	fuzz_memory_certain(true);
	schema_promise_encode(&promise, out);
	assert(schema_promise_decode(buffer_slice(out), &again, &err) == 0);
	assert(again.epoch == promise.epoch && again.has_accepted == promise.has_accepted);
	schema_entry_fini(&again.accepted);
	schema_entry_fini(&promise.accepted);
}

static void
fuzz_fetched(struct slice input, struct buffer *out)
{
	struct schema_fetched fetched, again;
	struct error err;

	if (schema_fetched_decode(input, &fetched, &err) != 0)
		return;
	fuzz_memory_certain(true);
	schema_fetched_encode(&fetched, out);
	assert(schema_fetched_decode(buffer_slice(out), &again, &err) == 0);
	assert(slice_equal(again.snapshot, fetched.snapshot));
}

static void
fuzz_entry(struct slice input, struct buffer *out)
{
	struct reader reader = reader_of(input);
	struct schema_entry entry;
	struct error err;

	if (schema_entry_decode(&reader, &entry, &err) != 0)
		return;
	fuzz_memory_certain(true);
	schema_entry_encode(&entry, out);
	assert(slice_equal(
	    buffer_slice(out), slice_of(input.data, input.size - reader_left(&reader))));
	schema_entry_fini(&entry);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input;
	struct buffer out;

	if (size == 0)
		return 0;
	input = slice_of(data + 1, size - 1);
	buffer_init(&out);
	switch (data[0] & 3) {
	case 0:
		fuzz_state(input, &out);
		break;
	case 1:
		fuzz_promise(input, &out);
		break;
	case 2:
		fuzz_fetched(input, &out);
		break;
	default:
		fuzz_entry(input, &out);
		break;
	}
	buffer_fini(&out);
	return 0;
}
