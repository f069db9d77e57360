/* SPDX-License-Identifier: Apache-2.0 */
/* CRC.db: the checksums of a Data.db that is not compressed. */
#include "tests/fuzz/sstable_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sstable_fuzz *fuzz = sstable_fuzz_get();

	sstable_fuzz_put(fuzz, SSTABLE_CRC, data, size);
	sstable_fuzz_read(fuzz);
	return 0;
}
