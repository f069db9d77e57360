/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unfiltereds as an SSTable, the commit log or another node would give them. Whatever the bytes are, decoding
 * and skipping end at the same place, nothing is read beyond the end, and what was decoded can be encoded and
 * decoded again.
 *
 * Input: byte 0: bit 0 the flavor, bit 1 begins with a static row, bit 2 few columns wanted; then the stream.
 */
#include <assert.h>
#include <stdlib.h>
#include "storage/row.h"
#include "tests/fuzz/fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One of each: fixed and variable length, collections, a user type, both orders of clustering. */
static struct table_metadata *
fuzz_table(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct table_metadata *table;
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c1", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c2", "text");
	table_builder_add(builder, COLUMN_STATIC, "s", "set<int>");
	table_builder_add(builder, COLUMN_STATIC, "t", "text");
	table_builder_add(builder, COLUMN_REGULAR, "a", "int");
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	table_builder_add(builder, COLUMN_REGULAR, "l", "list<text>");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, int>");
	table_builder_add(builder, COLUMN_REGULAR, "u", "uuid");
	if (table_builder_build(builder, &table, &err) != 0)
		abort();
	table_builder_free(builder);
	return table;
}

/* What was decoded means the same after another round. */
static void
fuzz_again(const struct row_codec *codec, const struct row *row, struct arena *arena)
{
	struct buffer first, second;
	struct reader reader;
	enum unfiltered_kind kind;
	struct row decoded;
	struct marker marker;
	struct error err;

	buffer_init(&first);
	buffer_init(&second);
	row_encode(codec, ROW_CODEC_SSTABLE, row, 77, &first);
	reader = reader_of(buffer_slice(&first));
	if (unfiltered_decode(codec, ROW_CODEC_SSTABLE, &reader, row->is_static, NULL, arena, &kind,
		&decoded, &marker, &err) != 0)
		abort();
	row_encode(codec, ROW_CODEC_SSTABLE, &decoded, 77, &second);
	assert(slice_equal(buffer_slice(&first), buffer_slice(&second)));
	buffer_fini(&first);
	buffer_fini(&second);
}

static void
fuzz_stream(const struct row_codec *codec, const uint8_t *data, size_t size, uint8_t choice,
    struct arena *arena)
{
	enum row_codec_flavor flavor = choice & 1 ? ROW_CODEC_MESSAGE : ROW_CODEC_SSTABLE;
	struct reader reader = reader_of(slice_of(data, size));
	bool is_static = choice & 2;
	uint64_t wanted = 0x5;

	for (;;) {
		struct reader skipping = reader;
		enum unfiltered_kind kind, skipped_kind;
		struct row row;
		struct marker marker;
		struct error err;

		if (unfiltered_decode(codec, flavor, &reader, is_static,
			choice & 4 ? &wanted : NULL, arena, &kind, &row, &marker, &err) != 0)
			return;
		fuzz_memory_certain(true);
		if (unfiltered_skip(codec, flavor, &skipping, is_static, &skipped_kind, &err) != 0)
			abort();
		assert(skipped_kind == kind && skipping.at == reader.at);
		if (kind == UNFILTERED_END)
			return;
		if (kind == UNFILTERED_ROW)
			fuzz_again(codec, &row, arena);
		is_static = false;
		fuzz_memory_certain(false);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table_metadata *table;
	struct row_codec codec;
	struct arena arena;

	if (size == 0)
		return 0;
	fuzz_memory_certain(true);
	table = fuzz_table();
	fuzz_memory_certain(false);
	arena_init(&arena, 4096);
	row_codec_init(&codec, table);
	fuzz_stream(&codec, data + 1, size - 1, data[0], &arena);
	arena_fini(&arena);
	table_unref(table);
	return 0;
}
