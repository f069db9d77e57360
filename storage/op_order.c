/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/op_order.h"
#include <sched.h>
#include <time.h>

void
op_order_init(struct op_order *order, int rank)
{
	atomic_init(&order->epoch, 0);
	lock_init(&order->barrier_lock, "op_order.barrier", rank);
	for (int i = 0; i < OP_ORDER_STRIPES; i++) {
		atomic_init(&order->stripes[i].running[0], 0);
		atomic_init(&order->stripes[i].running[1], 0);
	}
}

void
op_order_fini(struct op_order *order)
{
	lock_fini(&order->barrier_lock);
}

/* Which stripe the calling thread uses: any fixed choice is right, an even spread is fast. */
static unsigned
op_order_stripe(void)
{
	static atomic_uint next;
	static _Thread_local unsigned mine = UINT32_MAX;

	if (mine == UINT32_MAX)
		mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % OP_ORDER_STRIPES;
	return mine;
}

unsigned
op_order_start(struct op_order *order)
{
	unsigned stripe = op_order_stripe();

	for (;;) {
		unsigned long epoch = atomic_load(&order->epoch);
		unsigned slot = (unsigned)(epoch & 1);

		/* Sequentially consistent: either the barrier sees our count, or we see its new epoch. */
		atomic_fetch_add(&order->stripes[stripe].running[slot], 1);
		if (atomic_load(&order->epoch) == epoch)
			return stripe << 1 | slot;
		atomic_fetch_sub(&order->stripes[stripe].running[slot], 1);
	}
}

void
op_order_end(struct op_order *order, unsigned ticket)
{
	/* Release: what the operation wrote is visible to whoever sees the slot empty. */
	atomic_fetch_sub_explicit(
	    &order->stripes[ticket >> 1].running[ticket & 1], 1, memory_order_release);
}

static void
op_order_wait_empty(struct op_order *order, unsigned slot)
{
	for (int i = 0; i < OP_ORDER_STRIPES; i++) {
		int spins = 0;

		while (atomic_load(&order->stripes[i].running[slot]) != 0) {
			/* An operation lasts a microsecond unless its thread was preempted. */
			if (++spins < 100) {
				sched_yield();
			} else {
				struct timespec pause = {0, 50000};
				nanosleep(&pause, NULL);
			}
		}
	}
}

void
op_order_barrier(struct op_order *order)
{
	unsigned slot;

	lock_take(&order->barrier_lock);
	slot = (unsigned)(atomic_fetch_add(&order->epoch, 1) & 1);
	/*
	 * Every operation of the old epoch is in `slot`; the other slot was emptied by the barrier
	 * before us, so whoever enters now cannot be confused with them.
	 */
	op_order_wait_empty(order, slot);
	lock_drop(&order->barrier_lock);
}
