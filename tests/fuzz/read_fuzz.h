/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_READ_FUZZ_H
#define HELENUS_TESTS_FUZZ_READ_FUZZ_H

/* The table of the fuzzers of reads between nodes, with many types of clustering. */
#include "storage/read_command.h"
#include "tests/fuzz/fuzz_table.h"

static inline struct table_metadata *
read_fuzz_table(void)
{
	struct table_builder *builder = fuzz_table_begin();

	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("c2"), type_native(TYPE_TEXT), true);
	table_builder_add(builder, COLUMN_CLUSTERING, "c3", "decimal");
	table_builder_add(builder, COLUMN_CLUSTERING, "c4", "tuple<int, varint>");
	table_builder_add(builder, COLUMN_CLUSTERING, "c5", "uuid");
	return fuzz_table_end(builder);
}

#endif
