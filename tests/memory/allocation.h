/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_MEMORY_ALLOCATION_H
#define HELENUS_TESTS_MEMORY_ALLOCATION_H

/*
 * Allocations that fail when a test says so. Linked with the unit tests and the replays of fuzz corpora, whose linker sends the
 * house's own calls of malloc() and its kin here (the libraries' go where they always go). What aborts without
 * memory by intent, base/alloc.h's x functions, never fails.
 *
 * A test runs what it tests again and again, and lets another allocation fail each time:
 *
 *     for (uint64_t n = 1; allocation_fail(n, false), run(), allocation_has_failed(); n++)
 *             ...
 */
#include <stdbool.h>
#include <stdint.h>

/* The `nth` allocation from now on fails (1: the next), of whichever thread; with is_lasting all that follow it too. Forgets what was. */
void allocation_fail(uint64_t nth, bool is_lasting);
/* Until it is taken back, allocations do not fail and do not count. allocation_fail() takes it back too. */
void allocation_suspend(bool is_suspended);
/* Stop it. Was there such an allocation? */
bool allocation_has_failed(void);

#endif
