/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers of Paxos. The first byte says which; what decodes is encoded again to the same bytes. */
#include <assert.h>
#include "cluster/paxos_codec.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paxos_acceptance acceptance;
	struct paxos_promise promise;
	struct paxos_commit commit;
	struct paxos_content content;
	struct slice input;
	struct buffer out;
	struct error err;

	if (size == 0)
		return 0;
	input = slice_of(data + 1, size - 1);
	buffer_init(&out);
	switch (data[0] % 4) {
	case 0:
		if (paxos_commit_decode(input, &commit, &err) == 0) {
			fuzz_memory_certain(true);
			paxos_commit_encode(&commit, &out);
			assert(slice_equal(buffer_slice(&out), input));
			assert(paxos_ballot_compare(&commit.ballot, &commit.ballot) == 0);
		}
		break;
	case 1:
		if (paxos_promise_decode(input, &promise, &err) == 0) {
			fuzz_memory_certain(true);
			paxos_promise_encode(&promise, &out);
			/* Of a flag that is neither 0 nor 1 nothing is left. */
			assert(out.size == input.size);
		}
		break;
	case 2:
		if (paxos_content_decode(input, &content, &err) == 0) {
			fuzz_memory_certain(true);
			paxos_content_encode(&content, &out);
			assert(slice_equal(buffer_slice(&out), input));
			paxos_content_may_have_had(&content, &content.origin);
		}
		break;
	default:
		if (paxos_acceptance_decode(input, &acceptance, &err) == 0) {
			fuzz_memory_certain(true);
			paxos_acceptance_encode(&acceptance, &out);
			assert(out.size == input.size);
		}
		break;
	}
	buffer_fini(&out);
	return 0;
}
