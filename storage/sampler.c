/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sampler.h"
#include <stdlib.h>
#include "base/alloc.h"

enum { RANK_SAMPLER = 80 };

void
sampler_init(struct sampler *sampler)
{
	memset(sampler, 0, sizeof(*sampler));
	lock_init(&sampler->lock, "sampler", RANK_SAMPLER);
}

void
sampler_fini(struct sampler *sampler)
{
	lock_fini(&sampler->lock);
	map_fini(&sampler->by_key);
	free(sampler->entries);
}

bool
sampler_start(struct sampler *sampler, uint32_t capacity)
{
	bool is_free;

	lock_take(&sampler->lock);
	is_free = sampler->entries == NULL;
	if (is_free) {
		sampler->capacity = capacity;
		sampler->used = 0;
		sampler->seen = 0;
		sampler->entries = xcalloc(capacity, sizeof(*sampler->entries));
		map_init(&sampler->by_key);
		atomic_store_explicit(&sampler->is_on, true, memory_order_relaxed);
	}
	lock_drop(&sampler->lock);
	return is_free;
}

static struct sampler_entry *
sampler_smallest(struct sampler *sampler)
{
	struct sampler_entry *smallest = &sampler->entries[0];

	for (uint32_t i = 1; i < sampler->used; i++)
		if (sampler->entries[i].count < smallest->count)
			smallest = &sampler->entries[i];
	return smallest;
}

/* NULL: there is no place, and `least` is not more than the smallest count. Guarded by the caller. */
static struct sampler_entry *
sampler_entry_of(struct sampler *sampler, struct slice key, uint64_t least)
{
	struct sampler_entry *entry = map_get(&sampler->by_key, key);

	if (entry != NULL)
		return entry;
	if (sampler->used < sampler->capacity) {
		entry = &sampler->entries[sampler->used++];
	} else {
		entry = sampler_smallest(sampler);
		if (entry->count >= least)
			return NULL;
		map_remove(&sampler->by_key, slice_of(entry->key, entry->size));
		entry->error = entry->count;
	}
	memcpy(entry->key, key.data, key.size);
	entry->size = (uint16_t)key.size;
	map_put(&sampler->by_key, slice_of(entry->key, entry->size), entry);
	return entry;
}

void
sampler_add(struct sampler *sampler, struct slice key)
{
	if (key.size > SAMPLER_KEY_MAX)
		key.size = SAMPLER_KEY_MAX;
	lock_take(&sampler->lock);
	if (sampler->entries != NULL) {
		sampler->seen++;
		sampler_entry_of(sampler, key, UINT64_MAX)->count++;
	}
	lock_drop(&sampler->lock);
}

void
sampler_add_max(struct sampler *sampler, struct slice key, uint64_t value)
{
	struct sampler_entry *entry = NULL;

	if (key.size > SAMPLER_KEY_MAX)
		key.size = SAMPLER_KEY_MAX;
	lock_take(&sampler->lock);
	if (sampler->entries != NULL) {
		sampler->seen++;
		entry = sampler_entry_of(sampler, key, value);
	}
	if (entry != NULL) {
		entry->error = 0;
		if (value > entry->count)
			entry->count = value;
	}
	lock_drop(&sampler->lock);
}

static int
sampler_most_first(const void *a, const void *b)
{
	const struct sampler_entry *left = a, *right = b;

	return left->count > right->count ? -1 : left->count < right->count;
}

uint32_t
sampler_finish(
    struct sampler *sampler, uint32_t limit, struct sampler_entry **entries, uint64_t *seen)
{
	uint32_t used;

	lock_take(&sampler->lock);
	atomic_store_explicit(&sampler->is_on, false, memory_order_relaxed);
	*entries = sampler->entries;
	*seen = sampler->seen;
	used = sampler->used;
	sampler->entries = NULL;
	map_fini(&sampler->by_key);
	map_init(&sampler->by_key);
	lock_drop(&sampler->lock);
	if (used > 0)
		qsort(*entries, used, sizeof(**entries), sampler_most_first);
	return used < limit ? used : limit;
}
