/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that another node streams. The first byte: bit 0 leaves what follows as it is; else it is a list of u16 size and as
 * many bytes, and each of them is a block whose header and checksum are put before it, for nothing would get past them
 * otherwise. Bit 1: the bytes come in small pieces.
 *
 * STREAM_SEEDS names a folder to write seeds into, of a good file of each kind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/store_internal.h"
#include "storage/stream_internal.h"
#include "storage/stream_reader.h"
#include "storage/stream_writer.h"
#include "tests/fuzz/fuzz_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_RAW = 1, FUZZ_PIECES = 2, FUZZ_PIECE = 7 };

static struct schema *
fuzz_schema(void)
{
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.SimpleStrategy")};
	struct option_map replication = {&entry, 1};
	struct keyspace_metadata *empty =
	    keyspace_new(slice_of_string("ks"), &replication, true, false);
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct keyspace_metadata *keyspace;
	struct table_metadata *table;
	struct uuid id = {{7, 7, 7, 7, 7, 7, 0x10, 7, 0x80, 7, 7, 7, 7, 7, 7, 7}};
	struct schema *none = schema_new(), *schema;
	struct error err;

	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c", "text");
	table_builder_add(builder, COLUMN_STATIC, "s", "text");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, text>");
	table_builder_add(builder, COLUMN_REGULAR, "v", "blob");
	table_builder_options(builder)->compressor = COMPRESSOR_NONE;
	if (table_builder_build(builder, &table, &err) != 0)
		abort();
	table_builder_free(builder);
	keyspace = keyspace_with_table(empty, table);
	table_unref(table);
	keyspace_unref(empty);
	schema = schema_with_keyspace(none, keyspace);
	keyspace_unref(keyspace);
	schema_unref(none);
	return schema;
}

/* ---- seeds --------------------------------------------------------------------------------------------- */

static void
fuzz_done(struct store_write *write, const struct error *err)
{
	(void)write;
	if (err != NULL)
		abort();
}

static struct slice
fuzz_int(uint32_t value, struct arena *arena)
{
	uint8_t *bytes = arena_alloc_bytes(arena, 4);

	store_u32(bytes, value);
	return slice_of(bytes, 4);
}

static void
fuzz_add_row(struct update_builder *builder, const struct table_metadata *table, const char *text,
    struct arena *arena)
{
	struct slice *clustering = arena_calloc(arena, 1, sizeof(*clustering));
	struct cell *cell = arena_calloc(arena, 1, sizeof(*cell));
	struct row row = {.clustering_count = 1,
	    .clustering = clustering,
	    .liveness = {10, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = cell};
	struct error err;

	*clustering = slice_of_string(text);
	*cell = (struct cell){.column = table_column(table, slice_of_string("v")),
	    .timestamp = 10,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	    .value = slice_of_string("value")};
	if (update_builder_add_row(builder, &row, &err) != 0)
		abort();
}

static void
fuzz_fill(struct store *store, const struct table_metadata *table)
{
	const struct slice from = slice_of_string("x");
	const struct range_tombstone tombstone = {
	    BOUND_INCL_START, BOUND_INCL_END, 1, 0, &from, NULL, {5, 1700000000}};
	struct error err;
	struct arena arena;

	arena_init(&arena, 4096);
	for (uint32_t k = 0; k < 3; k++) {
		struct slice key = fuzz_int(k, &arena);
		struct update_builder *builder = update_builder_new(table, key, &arena);
		struct partition_update update;
		struct mutation mutation = {.keyspace = "ks",
		    .key = key,
		    .token = murmur3_token(key),
		    .update_count = 1,
		    .updates = &update};
		struct store_write write = {
		    .mutation = &mutation, .is_durable = true, .on_done = fuzz_done};

		fuzz_add_row(builder, table, "a", &arena);
		fuzz_add_row(builder, table, "b", &arena);
		if (update_builder_delete_range(builder, &tombstone, &err) != 0 ||
		    update_builder_finish(builder, &update, &err) != 0)
			abort();
		store_apply(store, &write);
	}
	arena_fini(&arena);
}

/* A file's blocks in the form of the input. */
static void
fuzz_write_seed(struct stream_plan *plan, const char *folder, const char *name)
{
	struct stream_writer *writer;
	struct buffer bytes, seed;
	struct reader reader;
	char path[512];
	struct error err;
	FILE *file;
	int rc;

	buffer_init(&bytes);
	buffer_init(&seed);
	if (stream_writer_open(plan, 0, &writer, &err) != 0)
		abort();
	while ((rc = stream_writer_next(writer, 60000, &bytes, &err)) > 0)
		continue;
	stream_writer_close(writer);
	buffer_put_u8(&seed, 0);
	reader = reader_of(buffer_slice(&bytes));
	while (rc == 0 && reader_left(&reader) > 0) {
		uint32_t size = reader_u32(&reader);

		(void)reader_u32(&reader);
		buffer_put_u8(&seed, (uint8_t)(size >> 8));
		buffer_put_u8(&seed, (uint8_t)size);
		buffer_put_slice(&seed, reader_bytes(&reader, size));
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (rc != 0 || reader.is_failed || file == NULL ||
	    fwrite(seed.data, 1, seed.size, file) != seed.size || fclose(file) != 0)
		abort();
	buffer_fini(&bytes);
	buffer_fini(&seed);
}

static void
fuzz_write_seeds(struct store *store, struct table_store *table, const char *folder)
{
	const struct stream_range all = {INT64_MIN, INT64_MIN};

	fuzz_fill(store, atomic_load(&table->metadata));
	for (int entire = 0; entire < 2; entire++) {
		struct stream_plan_options options = {.entire_sstables = entire != 0};
		struct stream_plan *plan;
		struct error err;

		if (stream_plan_new(store, table, &all, 1, &options, &plan, &err) != 0 ||
		    stream_plan_count(plan) == 0)
			abort();
		fuzz_write_seed(plan, folder, entire ? "entire" : "rows");
		stream_plan_free(plan);
	}
}

/* ---- the target ----------------------------------------------------------------------------------------- */

static void
fuzz_frame(struct slice input, struct buffer *out)
{
	struct reader reader = reader_of(input);

	while (reader_left(&reader) >= 2) {
		uint32_t high = reader_u8(&reader), size = high << 8 | reader_u8(&reader);
		struct slice block;

		if (size > reader_left(&reader))
			size = (uint32_t)reader_left(&reader);
		block = reader_bytes(&reader, size);
		buffer_put_u32(out, (uint32_t)block.size);
		buffer_put_u32(out, crc32_update(0, block.data, block.size));
		buffer_put_slice(out, block);
	}
}

static void
fuzz_read(struct stream_transaction *transaction, struct slice bytes, size_t piece)
{
	struct stream_reader *reader;
	struct error err;
	int rc;

	if (stream_reader_new(transaction, &reader, &err) != 0)
		abort();
	rc = 0;
	for (size_t at = 0; at < bytes.size && rc == 0; at += piece) {
		size_t left = bytes.size - at;

		rc = stream_reader_push(
		    reader, slice_of(bytes.data + at, left < piece ? left : piece), &err);
	}
	if (rc == 0)
		(void)stream_reader_finish(reader, &err);
	else
		stream_reader_abort(reader);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct env_sim *world;
	static struct store *store;
	static struct table_store *table;
	struct stream_transaction *transaction;
	struct table_store **tables;
	struct buffer bytes;
	struct error err;
	uint32_t count;

	if (size == 0)
		return 0;
	if (world == NULL) {
		log_set_level("ROOT", LOG_OFF);
		world = env_sim_new(1);
		store = fuzz_store_open(env_sim_env(world), fuzz_schema(), 1);
		tables = store_tables(store, &count);
		table = tables[0];
		free(tables);
		if (getenv("STREAM_SEEDS") != NULL)
			fuzz_write_seeds(store, table, getenv("STREAM_SEEDS"));
	}
	buffer_init(&bytes);
	if (data[0] & FUZZ_RAW)
		buffer_put(&bytes, data + 1, size - 1);
	else
		fuzz_frame(slice_of(data + 1, size - 1), &bytes);
	if (stream_transaction_begin(store, table, size, &transaction, &err) != 0)
		abort();
	fuzz_read(
	    transaction, buffer_slice(&bytes), data[0] & FUZZ_PIECES ? FUZZ_PIECE : bytes.size + 1);
	/* What came is thrown away: inputs must not know of each other. */
	stream_transaction_abort(transaction);
	buffer_fini(&bytes);
	return 0;
}
