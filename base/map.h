/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_MAP_H
#define HELENUS_BASE_MAP_H

/*
 * A hash table from bytes to a pointer, open addressing. Keys are borrowed: they must live as long
 * as the entry (usually they lie inside the value). Not thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/bytes.h"

struct map_entry {
	struct slice key;
	void *value; /* NULL: free slot */
	uint64_t hash;
};

struct map {
	struct map_entry *entries; /* owned */
	size_t capacity; /* power of two, or 0 */
	size_t count;
};

void map_init(struct map *map);
void map_fini(struct map *map); /* values are the caller's */
void *map_get(const struct map *map, struct slice key);
void *map_get_string(const struct map *map, const char *key);
/* Put or replace; returns the value that was there, or NULL. value must not be NULL. */
void *map_put(struct map *map, struct slice key, void *value);
void *map_remove(struct map *map, struct slice key);
/* Walk: begin with *cursor = 0; false at the end. The map must not change meanwhile. */
bool map_next(const struct map *map, size_t *cursor, struct slice *key, void **value);

#endif
