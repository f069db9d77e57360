/* SPDX-License-Identifier: Apache-2.0 */
/* Summary.db, and what a lost one is replaced by. */
#include "tests/fuzz/sstable_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sstable_fuzz *fuzz = sstable_fuzz_get();

	sstable_fuzz_put(fuzz, SSTABLE_SUMMARY, data, size);
	sstable_fuzz_read(fuzz);
	return 0;
}
