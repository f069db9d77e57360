/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_PREPARED_CACHE_H
#define HELENUS_SERVER_PREPARED_CACHE_H

/*
 * Plans by their 16-byte ids. Look-ups take no lock and wait for nobody: a reader counts itself in,
 * takes a reference and counts itself out; who replaces the table waits until the readers that might
 * still look at the old one have gone. Changes are made under a lock, one at a time. Bounded by
 * the bytes of the plans: the oldest go first.
 */
#include <stdatomic.h>
#include "base/lock.h"
#include "server/prepare.h"

struct prepared_table;

struct prepared_cache {
	_Atomic(struct prepared_table *) table; /* owned; never NULL */
	atomic_uint epoch; /* which of the two counters new readers use */
	atomic_uint readers[2];

	struct lock lock; /* for changes */
	size_t bytes, bytes_max; /* guarded by lock */
	atomic_ullong evictions;
	atomic_uint count;
};

void prepared_cache_init(struct prepared_cache *cache, size_t bytes_max);
void prepared_cache_fini(struct prepared_cache *cache);

/* The plan with one more reference, or NULL. */
struct prepared_statement *prepared_cache_get(struct prepared_cache *cache, struct slice id);
/* What stage runs it: a look-up without taking a reference. False: not there. */
bool prepared_cache_stage(struct prepared_cache *cache, struct slice id, enum request_stage *stage);
/*
 * Several look-ups that take no reference: plans stay until the leave, which must come soon, since changes wait for
 * it. NULL: not there.
 */
unsigned prepared_cache_enter(struct prepared_cache *cache);
const struct prepared_statement *prepared_cache_look(struct prepared_cache *cache, struct slice id);
void prepared_cache_leave(struct prepared_cache *cache, unsigned side);
/* Put, in place of one with the same id. Takes its own reference. */
void prepared_cache_put(struct prepared_cache *cache, struct prepared_statement *plan);
void prepared_cache_remove(struct prepared_cache *cache, struct slice id);
/*
 * After a schema change: calls `renew` for every plan. It returns the same plan (keep it), another one
 * with a reference that the cache takes over (replace it), or NULL (drop it).
 */
typedef struct prepared_statement *(*prepared_cache_renew_fn)(
    void *argument, struct prepared_statement *plan);
void
prepared_cache_renew(struct prepared_cache *cache, prepared_cache_renew_fn renew, void *argument);

#endif
