/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_REFS_H
#define HELENUS_BASE_REFS_H

/*
 * The count of shares of something that several threads hold, and that the last to let go frees. Any thread may take
 * a share of what it holds or has been given, and drop its own.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void
refs_take(atomic_uint *refs)
{
	/* Relaxed: who has a share already sees what is shared. */
	unsigned before = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);

	assert(before > 0);
}

/* True: it was the last share, and the caller frees. */
static inline bool
refs_drop(atomic_uint *refs)
{
	/* Release our last use, and acquire everybody's before freeing. */
	unsigned before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);

	assert(before > 0);
	return before == 1;
}

#endif
