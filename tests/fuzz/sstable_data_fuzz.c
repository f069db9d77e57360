/* SPDX-License-Identifier: Apache-2.0 */
/* Data.db, not compressed: partitions, rows, markers. */
#include "tests/fuzz/sstable_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sstable_fuzz *fuzz = sstable_fuzz_get();

	sstable_fuzz_put(fuzz, SSTABLE_DATA, data, size);
	sstable_fuzz_read(fuzz);
	return 0;
}
