/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads of the gossip verbs as a foreign peer may send them: the decoders read nothing behind the end, what they let
 * pass can be read to its last digest and delta, and comes out the same when it is written again and read again.
 *
 * Input: byte 0 chooses the verb, the rest is the payload.
 */
#include <assert.h>
#include <stdlib.h>
#include "cluster/gossip_wire.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_status(struct slice value)
{
	struct node_status status, again;
	struct buffer text;
	struct error err;

	if (node_status_parse(value, 7000, &status, &err) != 0)
		return;
	buffer_init(&text);
	node_status_format(&status, true, &text);
	assert(node_status_parse(buffer_slice(&text), 7000, &again, &err) == 0);
	assert(again.kind == status.kind && again.token == status.token &&
	    again.expires_ms == status.expires_ms);
	buffer_fini(&text);
}

/* Write what was read, as a message of the same kind. */
static void
fuzz_write(const struct gossip_message *message, unsigned verb, struct buffer *out)
{
	struct reader digests = message->digests, deltas = message->deltas;
	struct gossip_digest digest;
	struct gossip_delta delta;
	size_t list;

	gossip_put_head(out, message->flags);
	if (verb == 0) {
		buffer_put_vint(out, message->cluster_name.size);
		buffer_put_slice(out, message->cluster_name);
		buffer_put_vint(out, message->partitioner.size);
		buffer_put_slice(out, message->partitioner);
	}
	if (verb < 2) {
		list = gossip_list_begin(out);
		for (uint32_t i = 0; i < message->digest_count; i++) {
			gossip_digest_next(&digests, &digest);
			assert(!digests.is_failed && digest.generation >= 0 && digest.version >= 0);
			gossip_put_digest(out, &digest.endpoint, digest.generation, digest.version);
		}
		gossip_list_end(out, list, message->digest_count);
	}
	if (verb == 0)
		return;
	list = gossip_list_begin(out);
	for (uint32_t i = 0; i < message->delta_count; i++) {
		gossip_delta_next(&deltas, &delta);
		assert(!deltas.is_failed && delta.count <= STATE_COUNT);
		gossip_put_delta(
		    out, &delta.endpoint, delta.generation, delta.heartbeat, (uint8_t)delta.count);
		for (uint32_t v = 0; v < delta.count; v++) {
			assert(delta.values[v].state < STATE_COUNT);
			gossip_put_value(out, delta.values[v].state, delta.values[v].version,
			    delta.values[v].value);
			fuzz_status(delta.values[v].value);
		}
	}
	gossip_list_end(out, list, message->delta_count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int (*const decode[])(struct slice, struct gossip_message *, struct error *) = {
	    gossip_syn_decode, gossip_ack_decode, gossip_ack2_decode};
	struct gossip_message message, again;
	struct buffer first, second;
	struct error err;
	unsigned verb;

	if (size == 0)
		return 0;
	verb = data[0] % 3;
	if (decode[verb](slice_of(data + 1, size - 1), &message, &err) != 0) {
		assert(err.code == ERROR_INVALID || err.code == ERROR_NO_MEMORY);
		return 0;
	}
	fuzz_memory_certain(true);
	buffer_init(&first);
	buffer_init(&second);
	fuzz_write(&message, verb, &first);
	assert(decode[verb](buffer_slice(&first), &again, &err) == 0);
	fuzz_write(&again, verb, &second);
	assert(slice_equal(buffer_slice(&first), buffer_slice(&second)));
	buffer_fini(&first);
	buffer_fini(&second);
	return 0;
}
