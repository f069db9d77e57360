/* SPDX-License-Identifier: Apache-2.0 */
#include "server/prepared_cache.h"
#include <sched.h>
#include <stdlib.h>
#include "base/alloc.h"

enum { PREPARED_CACHE_SLOTS = 64, PREPARED_CACHE_LOCK_RANK = 40 };

/* Open addressing, never more than half full. Immutable once it is published. */
struct prepared_table {
	size_t capacity; /* power of two */
	size_t count;
	struct prepared_statement **slots; /* a reference each */
	struct prepared_statement **order; /* the same, oldest first */
};

static size_t
prepared_table_slot(const struct prepared_table *table, const uint8_t *id)
{
	return (size_t)load_u64(id) & (table->capacity - 1);
}

static struct prepared_statement *
prepared_table_find(const struct prepared_table *table, const uint8_t *id)
{
	for (size_t i = prepared_table_slot(table, id); table->slots[i] != NULL;
	     i = (i + 1) & (table->capacity - 1)) {
		if (memcmp(table->slots[i]->id, id, sizeof(table->slots[i]->id)) == 0)
			return table->slots[i];
	}
	return NULL;
}

static struct prepared_table *
prepared_table_new(size_t count_max)
{
	struct prepared_table *table = xzalloc(sizeof(*table));

	table->capacity = PREPARED_CACHE_SLOTS;
	while (table->capacity < count_max * 2 + 2)
		table->capacity *= 2;
	table->slots = xcalloc(table->capacity, sizeof(struct prepared_statement *));
	table->order = xcalloc(count_max + 1, sizeof(struct prepared_statement *));
	return table;
}

/* Takes over the caller's reference. */
static void
prepared_table_add(struct prepared_table *table, struct prepared_statement *plan)
{
	size_t i = prepared_table_slot(table, plan->id);

	while (table->slots[i] != NULL)
		i = (i + 1) & (table->capacity - 1);
	table->slots[i] = plan;
	table->order[table->count++] = plan;
}

static void
prepared_table_free(struct prepared_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		prepared_statement_unref(table->order[i]);
	free(table->slots);
	free(table->order);
	free(table);
}

void
prepared_cache_init(struct prepared_cache *cache, size_t bytes_max)
{
	*cache = (struct prepared_cache){.bytes_max = bytes_max};
	lock_init(&cache->lock, "prepared_cache", PREPARED_CACHE_LOCK_RANK);
	atomic_init(&cache->table, prepared_table_new(0));
}

void
prepared_cache_fini(struct prepared_cache *cache)
{
	prepared_table_free(atomic_load(&cache->table));
	lock_fini(&cache->lock);
}

/*
 * Sequential consistency on both sides: the reader's count is seen by whoever unpublishes the table
 * before the reader can have loaded it, or the reader loads the new table.
 */
unsigned
prepared_cache_enter(struct prepared_cache *cache)
{
	unsigned side = atomic_load(&cache->epoch) & 1;

	atomic_fetch_add(&cache->readers[side], 1);
	return side;
}

void
prepared_cache_leave(struct prepared_cache *cache, unsigned side)
{
	atomic_fetch_sub(&cache->readers[side], 1);
}

/* Publish and free the old one once nobody looks at it. */
static void
prepared_cache_publish(struct prepared_cache *cache, struct prepared_table *table)
{
	struct prepared_table *old = atomic_exchange(&cache->table, table);

	atomic_store(&cache->count, (unsigned)table->count);
	/* Both sides, one after the other: a reader may have read the epoch and counted itself
	 * only after it was turned. */
	for (int turn = 0; turn < 2; turn++) {
		unsigned side = atomic_fetch_add(&cache->epoch, 1) & 1;

		while (atomic_load(&cache->readers[side]) != 0)
			sched_yield();
	}
	prepared_table_free(old);
}

struct prepared_statement *
prepared_cache_get(struct prepared_cache *cache, struct slice id)
{
	struct prepared_statement *plan;
	unsigned side;

	if (id.size != sizeof(plan->id))
		return NULL;
	side = prepared_cache_enter(cache);
	plan = prepared_table_find(atomic_load(&cache->table), id.data);
	if (plan != NULL)
		prepared_statement_ref(plan);
	prepared_cache_leave(cache, side);
	return plan;
}

const struct prepared_statement *
prepared_cache_look(struct prepared_cache *cache, struct slice id)
{
	const struct prepared_statement *plan;

	return id.size == sizeof(plan->id)
	    ? prepared_table_find(atomic_load(&cache->table), id.data)
	    : NULL;
}

bool
prepared_cache_stage(struct prepared_cache *cache, struct slice id, enum request_stage *stage)
{
	const struct prepared_statement *plan;
	unsigned side = prepared_cache_enter(cache);

	plan = prepared_cache_look(cache, id);
	if (plan != NULL)
		*stage = plan->stage;
	prepared_cache_leave(cache, side);
	return plan != NULL;
}

static size_t
prepared_cache_weight(const struct prepared_statement *plan)
{
	return sizeof(*plan) + plan->arena.total_bytes;
}

/* A copy of the current table without `id`, room for one more, within the budget. */
static struct prepared_table *
prepared_cache_copy(struct prepared_cache *cache, const uint8_t *id, size_t more_bytes)
{
	struct prepared_table *old = atomic_load(&cache->table);
	struct prepared_table *table = prepared_table_new(old->count + 1);
	size_t bytes = more_bytes, first = 0;

	for (size_t i = old->count; i-- > 0;) {
		if (memcmp(old->order[i]->id, id, sizeof(old->order[i]->id)) == 0)
			continue;
		bytes += prepared_cache_weight(old->order[i]);
		if (bytes > cache->bytes_max && cache->bytes_max != 0) {
			bytes -= prepared_cache_weight(old->order[i]);
			first = i + 1;
			atomic_fetch_add(&cache->evictions, first);
			break;
		}
	}
	for (size_t i = first; i < old->count; i++) {
		if (memcmp(old->order[i]->id, id, sizeof(old->order[i]->id)) != 0)
			prepared_table_add(table, prepared_statement_ref(old->order[i]));
	}
	cache->bytes = bytes;
	return table;
}

void
prepared_cache_put(struct prepared_cache *cache, struct prepared_statement *plan)
{
	struct prepared_table *table;

	lock_take(&cache->lock);
	table = prepared_cache_copy(cache, plan->id, prepared_cache_weight(plan));
	prepared_table_add(table, prepared_statement_ref(plan));
	prepared_cache_publish(cache, table);
	lock_drop(&cache->lock);
}

void
prepared_cache_remove(struct prepared_cache *cache, struct slice id)
{
	if (id.size != 16)
		return;
	lock_take(&cache->lock);
	prepared_cache_publish(cache, prepared_cache_copy(cache, id.data, 0));
	lock_drop(&cache->lock);
}

void
prepared_cache_renew(struct prepared_cache *cache, prepared_cache_renew_fn renew, void *argument)
{
	struct prepared_table *old, *table;
	size_t bytes = 0;

	lock_take(&cache->lock);
	old = atomic_load(&cache->table);
	table = prepared_table_new(old->count);
	for (size_t i = 0; i < old->count; i++) {
		struct prepared_statement *plan = renew(argument, old->order[i]);

		if (plan == NULL)
			continue;
		if (plan == old->order[i])
			prepared_statement_ref(plan);
		bytes += prepared_cache_weight(plan);
		prepared_table_add(table, plan);
	}
	cache->bytes = bytes;
	prepared_cache_publish(cache, table);
	lock_drop(&cache->lock);
}
