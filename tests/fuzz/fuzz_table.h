/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_FUZZ_TABLE_H
#define HELENUS_TESTS_FUZZ_FUZZ_TABLE_H

/*
 * The tables of the fuzzers of mutations and reads; their id is 16 bytes of 01. Both have a key, columns of
 * each kind and one that was dropped; they differ in their clustering columns.
 */
#include <stdlib.h>
#include <string.h>
#include "cql/schema.h"

static inline struct table_builder *
fuzz_table_begin(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct uuid id;

	memset(id.bytes, 1, sizeof(id.bytes));
	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c1", "int");
	return builder;
}

static inline struct table_metadata *
fuzz_table_end(struct table_builder *builder)
{
	struct table_metadata *table;
	struct error err;

	table_builder_add(builder, COLUMN_STATIC, "s", "int");
	table_builder_add(builder, COLUMN_REGULAR, "a", "int");
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, int>");
	table_builder_add_dropped(
	    builder, COLUMN_REGULAR, slice_of_string("gone"), type_native(TYPE_INT), 5);
	if (table_builder_build(builder, &table, &err) != 0)
		abort();
	table_builder_free(builder);
	return table;
}

static inline const struct table_metadata *
fuzz_table_find(void *argument, const struct uuid *id)
{
	const struct table_metadata *table = argument;

	return uuid_equal(&table->id, id) ? table : NULL;
}

#endif
