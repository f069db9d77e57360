/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_READ_FUZZ_H
#define HELENUS_TESTS_FUZZ_READ_FUZZ_H

/* The table of the fuzzers of reads between nodes, with many types of clustering; its id is 16 bytes of 01. */
#include <stdlib.h>
#include "storage/read_command.h"

static inline struct table_metadata *
read_fuzz_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct table_metadata *table;
	struct uuid id;
	struct error err;

	memset(id.bytes, 1, sizeof(id.bytes));
	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c1", "int");
	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("c2"), type_native(TYPE_TEXT), true);
	table_builder_add(builder, COLUMN_CLUSTERING, "c3", "decimal");
	table_builder_add(builder, COLUMN_CLUSTERING, "c4", "tuple<int, varint>");
	table_builder_add(builder, COLUMN_CLUSTERING, "c5", "uuid");
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
read_fuzz_find(void *argument, const struct uuid *id)
{
	const struct table_metadata *table = argument;

	return uuid_equal(&table->id, id) ? table : NULL;
}

#endif
