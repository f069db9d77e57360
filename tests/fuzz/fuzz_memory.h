/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_FUZZ_MEMORY_H
#define HELENUS_TESTS_FUZZ_FUZZ_MEMORY_H

/*
 * `build/replay/X_fuzz --no-memory` lets allocations fail (replay.c). What a target does to prepare an input, and what it does to
 * check what a decoder gave, has its memory: it says so here. Without that mode nothing happens.
 */
#include "base/alloc.h"
#include "tests/memory/allocation.h"

#pragma weak allocation_suspend

static inline void
fuzz_memory_certain(bool is_certain)
{
	if (allocation_suspend != NULL)
		allocation_suspend(is_certain);
}

#endif
