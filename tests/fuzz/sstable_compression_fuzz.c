/* SPDX-License-Identifier: Apache-2.0 */
/* CompressionInfo.db, and stored chunks: the first byte of the input chooses. */
#include <stdlib.h>
#include "storage/compress.h"
#include "storage/compression_info.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_CHUNK_MAX = 1 << 16 };

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compression_info info;
	struct error err;
	uint8_t *out;
	size_t wanted;

	if (size < 3)
		return 0;
	if (data[0] > COMPRESSOR_NOOP) {
		if (compression_info_decode(slice_of(data + 1, size - 1), 1 << 20, &info, &err) ==
		    0)
			compression_info_fini(&info);
		return 0;
	}
	wanted = load_u16(data + 1);
	out = xmalloc(FUZZ_CHUNK_MAX);
	(void)decompress_chunk(
	    (enum compressor)data[0], slice_of(data + 3, size - 3), out, wanted, &err);
	free(out);
	return 0;
}
