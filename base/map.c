/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"

enum { MAP_CAPACITY_MIN = 8 };

void
map_init(struct map *map)
{
	*map = (struct map){0};
}

void
map_fini(struct map *map)
{
	free(map->entries);
	map_init(map);
}

/* The slot of `key`, or the free slot where it would go. The table is never full. */
static size_t
map_slot(const struct map *map, struct slice key, uint64_t hash)
{
	size_t mask = map->capacity - 1;
	size_t slot = (size_t)hash & mask;

	while (map->entries[slot].value != NULL) {
		const struct map_entry *entry = &map->entries[slot];

		if (entry->hash == hash && slice_equal(entry->key, key))
			break;
		slot = (slot + 1) & mask;
	}
	return slot;
}

static void
map_resize(struct map *map, size_t capacity)
{
	struct map_entry *old = map->entries;
	size_t old_capacity = map->capacity;

	map->entries = xcalloc(capacity, sizeof(*map->entries));
	map->capacity = capacity;
	for (size_t i = 0; i < old_capacity; i++) {
		size_t slot;

		if (old[i].value == NULL)
			continue;
		slot = (size_t)old[i].hash & (capacity - 1);
		while (map->entries[slot].value != NULL)
			slot = (slot + 1) & (capacity - 1);
		map->entries[slot] = old[i];
	}
	free(old);
}

void *
map_get(const struct map *map, struct slice key)
{
	if (map->count == 0)
		return NULL;
	return map->entries[map_slot(map, key, hash_bytes(key))].value;
}

void *
map_get_string(const struct map *map, const char *key)
{
	return map_get(map, slice_of_string(key));
}

void *
map_put(struct map *map, struct slice key, void *value)
{
	uint64_t hash = hash_bytes(key);
	struct map_entry *entry;
	void *old;

	assert(value != NULL);
	/* At most three quarters full: runs of taken slots stay short. */
	if (map->capacity == 0)
		map_resize(map, MAP_CAPACITY_MIN);
	else if ((map->count + 1) * 4 > map->capacity * 3)
		map_resize(map, map->capacity * 2);
	entry = &map->entries[map_slot(map, key, hash)];
	old = entry->value;
	if (old == NULL)
		map->count++;
	/* The key is replaced as well: the old one may lie inside the value that is going. */
	*entry = (struct map_entry){key, value, hash};
	return old;
}

void *
map_remove(struct map *map, struct slice key)
{
	size_t mask = map->capacity - 1;
	size_t hole;
	size_t slot;
	void *old;

	if (map->count == 0)
		return NULL;
	hole = map_slot(map, key, hash_bytes(key));
	old = map->entries[hole].value;
	if (old == NULL)
		return NULL;
	map->entries[hole] = (struct map_entry){0};
	map->count--;
	/* Close the hole: an entry behind it moves in unless its home lies between hole and itself. */
	for (slot = (hole + 1) & mask; map->entries[slot].value != NULL; slot = (slot + 1) & mask) {
		size_t home = (size_t)map->entries[slot].hash & mask;

		if (((slot - home) & mask) < ((slot - hole) & mask))
			continue;
		map->entries[hole] = map->entries[slot];
		map->entries[slot] = (struct map_entry){0};
		hole = slot;
	}
	return old;
}

bool
map_next(const struct map *map, size_t *cursor, struct slice *key, void **value)
{
	for (; *cursor < map->capacity; (*cursor)++) {
		const struct map_entry *entry = &map->entries[*cursor];

		if (entry->value == NULL)
			continue;
		if (key != NULL)
			*key = entry->key;
		if (value != NULL)
			*value = entry->value;
		(*cursor)++;
		return true;
	}
	return false;
}
