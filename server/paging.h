/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_PAGING_H
#define HELENUS_SERVER_PAGING_H

/*
 * Where a paged SELECT goes on: bytes that clients hand back untouched. They hold all that is
 * needed, so they survive a restart. Every protocol version gets the same form:
 *
 *     u8 form (0x48)   u8 flags   vint key length, key   vint position length, position
 *     vint rows left of LIMIT     vint rows left of PER PARTITION LIMIT
 */
#include <stdbool.h>
#include "base/bytes.h"
#include "base/error.h"

struct paging_state {
	struct slice key; /* partition of the last row */
	struct slice position; /* of the last row; null when the partition is done with */
	uint32_t left; /* rows (groups) that LIMIT still allows */
	uint32_t left_in_partition;
};

void paging_encode(const struct paging_state *state, struct buffer *out);
/* Slices point into `bytes`. ERROR_PROTOCOL "Invalid value for the paging state". */
int paging_decode(struct slice bytes, struct paging_state *out, struct error *err);

#endif
