/* SPDX-License-Identifier: Apache-2.0 */
/* Filter.db. */
#include "tests/fuzz/sstable_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sstable_fuzz *fuzz = sstable_fuzz_get();

	sstable_fuzz_put(fuzz, SSTABLE_FILTER, data, size);
	sstable_fuzz_read(fuzz);
	return 0;
}
