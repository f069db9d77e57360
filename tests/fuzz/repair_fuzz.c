/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nodes of a repair say. What can be decoded is encoded again, to the same bytes' meaning.
 *
 * Input: u8 which verb, then the payload (cluster/repair_message.h).
 */
#include <stdlib.h>
#include "cluster/repair_message.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum verb verbs[] = {VERB_PREPARE_MSG, VERB_SNAPSHOT_MSG, VERB_VALIDATION_REQ,
	    VERB_SYNC_REQ, VERB_CLEANUP_MSG, VERB_STATUS_REQ, VERB_PAXOS2_CLEANUP_REQ};
	struct repair_message message, again;
	struct buffer first, second;
	struct arena arena;
	struct error err;
	enum verb verb;

	if (size == 0)
		return 0;
	verb = verbs[data[0] % (sizeof(verbs) / sizeof(verbs[0]))];
	arena_init(&arena, 4096);
	if (repair_message_decode(verb, slice_of(data + 1, size - 1), &arena, &message, &err) ==
	    0) {
		fuzz_memory_certain(true);
		buffer_init(&first);
		buffer_init(&second);
		repair_message_encode(&message, &first);
		if (repair_message_decode(verb, buffer_slice(&first), &arena, &again, &err) != 0)
			abort();
		repair_message_encode(&again, &second);
		if (!slice_equal(buffer_slice(&first), buffer_slice(&second)))
			abort();
		buffer_fini(&first);
		buffer_fini(&second);
	}
	arena_fini(&arena);
	return 0;
}
