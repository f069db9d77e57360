/* SPDX-License-Identifier: Apache-2.0 */
/* A finished table: sharing, looking up columns, keys, order of clusterings. */
#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/refs.h"
#include "cql/schema.h"
#include "cql/schema_internal.h"

static const char *const column_kind_names[] = {
    [COLUMN_PARTITION_KEY] = "partition_key",
    [COLUMN_CLUSTERING] = "clustering",
    [COLUMN_STATIC] = "static",
    [COLUMN_REGULAR] = "regular",
};

const char *
column_kind_name(enum column_kind kind)
{
	return column_kind_names[kind];
}

int
column_kind_parse(struct slice text)
{
	int kind;

	for (kind = COLUMN_PARTITION_KEY; kind <= COLUMN_REGULAR; kind++) {
		if (slice_equal_string(text, column_kind_names[kind]))
			return kind;
	}
	return -1;
}

void *
schema_alloc(struct arena *arena, size_t count, size_t size)
{
	void *memory = arena_calloc(arena, count, size);

	if (memory == NULL)
		abort();
	return memory;
}

struct slice
schema_copy(struct arena *arena, struct slice slice)
{
	uint8_t *copy;

	if (slice_is_null(slice))
		return slice_null;
	copy = arena_alloc_bytes(arena, slice.size + 1);
	if (copy == NULL)
		abort();
	memcpy(copy, slice.data, slice.size);
	copy[slice.size] = '\0';
	return slice_of(copy, slice.size);
}

const struct type *
schema_copy_type(struct arena *arena, const struct type *type)
{
	const struct type *copy = type != NULL ? type_copy(arena, type) : NULL;

	if (copy == NULL && type != NULL)
		abort();
	return copy;
}

struct table_metadata *
table_ref(const struct table_metadata *table)
{
	struct table_metadata *mutable = (struct table_metadata *)(uintptr_t)table;

	refs_take(&mutable->refs);
	return mutable;
}

void
table_unref(const struct table_metadata *table)
{
	struct table_metadata *mutable = (struct table_metadata *)(uintptr_t)table;

	if (table == NULL || !refs_drop(&mutable->refs))
		return;
	map_fini(&mutable->columns_by_name);
	arena_fini(&mutable->arena);
	free(mutable);
}

const struct column_metadata *
table_column(const struct table_metadata *table, struct slice name)
{
	return map_get(&table->columns_by_name, name);
}

const struct dropped_column *
table_dropped_column(const struct table_metadata *table, struct slice name)
{
	uint32_t i;

	for (i = 0; i < table->dropped_count; i++) {
		if (slice_equal(table->dropped[i].column.name, name))
			return &table->dropped[i];
	}
	return NULL;
}

const struct index_metadata *
table_index(const struct table_metadata *table, struct slice name)
{
	uint32_t i;

	for (i = 0; i < table->index_count; i++) {
		if (slice_equal(table->indexes[i].name, name))
			return &table->indexes[i];
	}
	return NULL;
}

struct slice
table_partition_key(
    const struct table_metadata *table, const struct slice *components, struct arena *arena)
{
	uint8_t *data, *at;
	size_t size = 0;
	uint32_t i;

	if (table->partition_key_count == 1)
		return components[0];
	for (i = 0; i < table->partition_key_count; i++)
		size += components[i].size + 3;
	data = at = arena_alloc_bytes(arena, size);
	if (data == NULL)
		return slice_null;
	for (i = 0; i < table->partition_key_count; i++) {
		assert(components[i].size <= UINT16_MAX);
		store_u16(at, (uint16_t)components[i].size);
		if (components[i].size > 0)
			memcpy(at + 2, components[i].data, components[i].size);
		at += 2 + components[i].size;
		*at++ = 0;
	}
	return slice_of(data, size);
}

int
table_partition_key_split(const struct table_metadata *table, struct slice key,
    struct slice *components, struct error *err)
{
	struct reader reader = reader_of(key);
	uint32_t i;

	if (table->partition_key_count == 1) {
		components[0] = key;
		return 0;
	}
	for (i = 0; i < table->partition_key_count; i++) {
		components[i] = reader_bytes(&reader, reader_u16(&reader));
		if (reader_u8(&reader) != 0 || reader.is_failed)
			return error_set(err, ERROR_INVALID,
			    "Not enough bytes to read value of component %u", i);
	}
	if (reader_left(&reader) != 0)
		return error_set(err, ERROR_INVALID, "Too many bytes for comparator");
	return 0;
}

int
table_partition_key_validate(
    const struct table_metadata *table, struct slice key, struct error *err)
{
	struct slice components[UINT8_MAX];
	uint32_t i;

	if (key.size == 0)
		return error_set(err, ERROR_INVALID, "Key may not be empty");
	if (key.size > UINT16_MAX)
		return error_set(err, ERROR_INVALID,
		    "Key length of %zu is longer than maximum of 65535", key.size);
	if (table->partition_key_count > UINT8_MAX)
		return error_set(err, ERROR_INVALID, "Too many partition key columns");
	if (table_partition_key_split(table, key, components, err) != 0)
		return -1;
	for (i = 0; i < table->partition_key_count; i++) {
		if (type_validate(table->partition_key[i].type, components[i], err) != 0)
			return -1;
	}
	return 0;
}

int
table_compare_clustering(const struct table_metadata *table, const struct slice *a,
    const struct slice *b, uint32_t count)
{
	uint32_t i;

	assert(count <= table->clustering_count);
	for (i = 0; i < count; i++) {
		int order;

		if (slice_is_null(a[i]) || slice_is_null(b[i])) {
			order = !slice_is_null(a[i]) - !slice_is_null(b[i]);
		} else {
			order = type_compare(table->clustering[i].type, a[i], b[i]);
			if (table->clustering[i].is_reversed)
				order = order < 0 ? 1 : order > 0 ? -1 : 0;
		}
		if (order != 0)
			return order;
	}
	return 0;
}

void
table_clustering_to_comparable(const struct table_metadata *table, const struct slice *components,
    uint32_t count, struct buffer *out)
{
	uint32_t i;

	assert(count <= table->clustering_count);
	for (i = 0; i < count; i++) {
		if (slice_is_null(components[i])) {
			buffer_put_u8(out, TABLE_COMPARABLE_NULL);
			continue;
		}
		buffer_put_u8(out, TABLE_COMPARABLE_VALUE);
		type_to_comparable(table->clustering[i].type, table->clustering[i].is_reversed,
		    components[i], out);
	}
}
