/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics.db. Its checksums are made right first, else nothing else would ever be looked at. */
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "storage/statistics.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_PARTS = 4, FUZZ_TOC = 8, FUZZ_TOC_END = FUZZ_TOC + FUZZ_PARTS * 8 };

static void
fuzz_repair(uint8_t *bytes, size_t size)
{
	uint32_t crc;

	if (size < FUZZ_TOC_END + 4 || load_u32(bytes) != FUZZ_PARTS)
		return;
	crc = crc32_update(0, bytes, 4);
	store_u32(bytes + 4, crc);
	crc = crc32_update(crc, bytes + FUZZ_TOC, FUZZ_TOC_END - FUZZ_TOC);
	store_u32(bytes + FUZZ_TOC_END, crc);
	for (int i = 0; i < FUZZ_PARTS; i++) {
		size_t start = load_u32(bytes + FUZZ_TOC + i * 8 + 4);
		size_t end = size;

		for (int j = 0; j < FUZZ_PARTS; j++) {
			size_t other = load_u32(bytes + FUZZ_TOC + j * 8 + 4);

			if (other > start && other < end)
				end = other;
		}
		if (start >= FUZZ_TOC_END + 4 && start < size && end - start >= 4)
			store_u32(bytes + end - 4, crc32_update(0, bytes + start, end - start - 4));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = xmalloc(size + 1);
	struct statistics statistics;
	struct buffer out;
	struct arena arena;
	struct error err;

	memcpy(bytes, data, size);
	fuzz_repair(bytes, size);
	arena_init(&arena, 4096);
	buffer_init(&out);
	if (statistics_decode(slice_of(bytes, size), &arena, &statistics, &err) == 0) {
		(void)statistics_drop_times_sum(&statistics.stats.drop_times, 1e9);
		(void)statistics_rewrite(slice_of(bytes, size), &statistics.stats, &out, &err);
	}
	buffer_fini(&out);
	arena_fini(&arena);
	free(bytes);
	return 0;
}
