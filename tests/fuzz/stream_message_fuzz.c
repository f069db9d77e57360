/* SPDX-License-Identifier: Apache-2.0 */
/* What other nodes say on a streaming channel: what decodes is encoded again, and decodes to the same. */
#include <assert.h>
#include <stdlib.h>
#include "cluster/stream_message.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_message message, again;
	struct buffer once, twice;
	struct arena arena;
	struct error err;

	arena_init(&arena, 4096);
	buffer_init(&once);
	buffer_init(&twice);
	if (stream_message_decode(slice_of(data, size), &arena, &message, &err) == 0) {
		fuzz_memory_certain(true);
		stream_message_encode(&message, &once);
		assert(!once.is_failed);
		assert(stream_message_decode(buffer_slice(&once), &arena, &again, &err) == 0);
		stream_message_encode(&again, &twice);
		assert(slice_equal(buffer_slice(&once), buffer_slice(&twice)));
	}
	buffer_fini(&once);
	buffer_fini(&twice);
	arena_fini(&arena);
	return 0;
}
