/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_OP_ORDER_H
#define HELENUS_STORAGE_OP_ORDER_H

/*
 * Order between many short operations and a rare barrier (Cassandra's OpOrder). A writer is inside
 * the order while it claims commit log space, copies its record and inserts into a memtable; the
 * barrier returns once every operation that began before it has ended, while later ones run on.
 * It is what makes "everything before this position is written" and "nobody still adds to this
 * memtable" true without a lock on the write path.
 *
 * Operations count themselves in one of two slots, chosen by the epoch's low bit; a barrier flips the
 * epoch and waits until the old slot is empty. An operation must be short and never wait for a barrier.
 */
#include <stdatomic.h>
#include <stdint.h>
#include "base/lock.h"

enum { OP_ORDER_STRIPES = 16 };

struct op_order_stripe {
	_Alignas(64) atomic_long running[2]; /* operations inside, by parity of their epoch */
};

struct op_order {
	_Alignas(64) atomic_ulong epoch;
	struct lock barrier_lock; /* one barrier at a time */
	/* A thread always uses the same stripe, so that two cores do not fight for one line. */
	struct op_order_stripe stripes[OP_ORDER_STRIPES];
};

/* rank: of the barrier's lock. */
void op_order_init(struct op_order *order, int rank);
void op_order_fini(struct op_order *order);

/* Enter; returns a ticket for op_order_end(), which the same thread calls. */
unsigned op_order_start(struct op_order *order);
void op_order_end(struct op_order *order, unsigned ticket);
/* Wait until all operations that started before this call have ended. Not from inside one. */
void op_order_barrier(struct op_order *order);

#endif
