/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_FUZZ_SSTABLE_FUZZ_H
#define HELENUS_TESTS_FUZZ_SSTABLE_FUZZ_H

/*
 * An SSTable on a simulated disk for the targets that break one of its components: statics, clusterings,
 * a collection, deletions of every kind, a promoted index; not compressed and without CRC.db, so that
 * damage gets as far as it can. Seeds are the good components.
 */
#include <stdlib.h>
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/sstable_internal.h"

enum { SSTABLE_FUZZ_PARTITIONS = 6, SSTABLE_FUZZ_ROWS = 24 };

struct sstable_fuzz {
	struct env_sim *sim;
	struct sstable_context context;
	struct sstable_descriptor descriptor;
	struct table_metadata *table;
	struct arena arena;
	struct slice keys[SSTABLE_FUZZ_PARTITIONS];
};

static inline void
sstable_fuzz_table(struct sstable_fuzz *fuzz)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct error err;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "a", "text");
	table_builder_add(builder, COLUMN_CLUSTERING, "b", "int");
	table_builder_add(builder, COLUMN_STATIC, "s", "text");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, text>");
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	table_builder_add(builder, COLUMN_REGULAR, "w", "blob");
	table_builder_options(builder)->compressor = COMPRESSOR_NONE;
	if (table_builder_build(builder, &fuzz->table, &err) != 0)
		abort();
	table_builder_free(builder);
}

struct sstable_fuzz_walk {
	struct unfiltered_iterator base;
	struct sstable_fuzz *fuzz;
	uint32_t next;
	struct deletion open;
};

static inline struct slice
sstable_fuzz_int(struct sstable_fuzz *fuzz, uint32_t value)
{
	uint8_t *bytes = arena_alloc_bytes(&fuzz->arena, 4);

	store_u32(bytes, value);
	return slice_of(bytes, 4);
}

static inline void
sstable_fuzz_row(struct sstable_fuzz *fuzz, uint32_t i, const struct slice *values, struct row *row)
{
	struct cell *cells = arena_calloc(&fuzz->arena, 3, sizeof(*cells));
	const struct table_metadata *table = fuzz->table;

	*row = (struct row){.clustering = values,
	    .clustering_count = 2,
	    .liveness = {CODEC_TIMESTAMP_EPOCH + i, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cells = cells};
	for (uint32_t j = 0; j < 3 && j < i % 4; j++) {
		struct cell *cell = &cells[row->cell_count++];

		*cell = (struct cell){.column = &table->regulars[j],
		    .timestamp = CODEC_TIMESTAMP_EPOCH + i * j,
		    .ttl = i % 5 == 0 ? 60 : 0,
		    .local_deletion_time =
			i % 5 == 0 ? CODEC_DELETION_TIME_EPOCH + 60 : LOCAL_DELETION_TIME_NONE};
		cell->value = sstable_fuzz_int(fuzz, i);
		if (table->regulars[j].is_complex)
			cell->path = sstable_fuzz_int(fuzz, j);
	}
}

static inline int
sstable_fuzz_next(struct unfiltered_iterator *base, struct unfiltered *out, struct error *err)
{
	struct sstable_fuzz_walk *walk = (struct sstable_fuzz_walk *)base;
	struct slice *values = arena_calloc(&walk->fuzz->arena, 2, sizeof(*values));
	uint32_t i = walk->next++;
	bool is_open = !deletion_is_live(walk->open);

	(void)err;
	if (i == SSTABLE_FUZZ_ROWS)
		return 0;
	values[0] = slice_of_string("abcdefghij");
	values[0].size = i / 6;
	values[1] = sstable_fuzz_int(walk->fuzz, i);
	if (i % 6 != 3) {
		out->kind = UNFILTERED_ROW;
		sstable_fuzz_row(walk->fuzz, i, values, &out->row);
		return 1;
	}
	out->kind = UNFILTERED_MARKER;
	out->marker = (struct marker){.kind = is_open ? BOUND_EXCL_END : BOUND_INCL_START,
	    .clustering = values,
	    .clustering_count = 2,
	    .open = DELETION_LIVE,
	    .close = walk->open};
	walk->open = is_open ? DELETION_LIVE
			     : (struct deletion){CODEC_TIMESTAMP_EPOCH, CODEC_DELETION_TIME_EPOCH};
	out->marker.open = walk->open;
	return 1;
}

static inline void
sstable_fuzz_close(struct unfiltered_iterator *base)
{
	(void)base;
}

static const struct unfiltered_iterator_ops sstable_fuzz_ops = {
    sstable_fuzz_next, sstable_fuzz_close};

static inline int
sstable_fuzz_compare(const void *a, const void *b)
{
	int64_t left = murmur3_token(*(const struct slice *)a);
	int64_t right = murmur3_token(*(const struct slice *)b);

	return left < right ? -1 : left > right;
}

static inline void
sstable_fuzz_write(struct sstable_fuzz *fuzz)
{
	struct sstable_writer_options options = {.descriptor = fuzz->descriptor,
	    .table = fuzz->table,
	    .expected_keys = SSTABLE_FUZZ_PARTITIONS,
	    .min_timestamp = CODEC_TIMESTAMP_EPOCH,
	    .min_local_deletion_time = CODEC_DELETION_TIME_EPOCH,
	    .column_index_bytes = 80};
	struct sstable_writer *writer;
	struct error err;

	if (sstable_writer_new(&fuzz->context, &options, &writer, &err) != 0)
		abort();
	for (uint32_t i = 0; i < SSTABLE_FUZZ_PARTITIONS; i++) {
		struct sstable_fuzz_walk walk = {.base = {.ops = &sstable_fuzz_ops,
						     .table = fuzz->table,
						     .key = fuzz->keys[i],
						     .token = murmur3_token(fuzz->keys[i]),
						     .partition_deletion = DELETION_LIVE},
		    .fuzz = fuzz,
		    .next = i == 2 ? SSTABLE_FUZZ_ROWS - 1 : 0,
		    .open = DELETION_LIVE};

		if (i == 1)
			walk.base.partition_deletion = (struct deletion){1, 1};
		if (sstable_writer_append(writer, &walk.base, &err) != 0)
			abort();
	}
	if (sstable_writer_finish(writer, NULL, &err) != 0)
		abort();
}

/* Made once; the same for each input. */
static inline struct sstable_fuzz *
sstable_fuzz_get(void)
{
	static struct sstable_fuzz fuzz;
	char path[SSTABLE_PATH_MAX];
	struct error err;

	if (fuzz.sim != NULL)
		return &fuzz;
	log_set_level("ROOT", LOG_OFF);
	fuzz.sim = env_sim_new(1);
	fuzz.context.env = env_sim_env(fuzz.sim);
	fuzz.descriptor = (struct sstable_descriptor){"/t", {.generation = 1}};
	arena_init(&fuzz.arena, 1 << 16);
	sstable_fuzz_table(&fuzz);
	for (uint32_t i = 0; i < SSTABLE_FUZZ_PARTITIONS; i++)
		fuzz.keys[i] = sstable_fuzz_int(&fuzz, i);
	qsort(fuzz.keys, SSTABLE_FUZZ_PARTITIONS, sizeof(fuzz.keys[0]), sstable_fuzz_compare);
	if (files_mkdir(fuzz.context.env->files, "/t", &err) != 0)
		abort();
	sstable_fuzz_write(&fuzz);
	if (sstable_path(&fuzz.descriptor, SSTABLE_CRC, path, &err) != 0 ||
	    files_unlink(fuzz.context.env->files, path, &err) != 0)
		abort();
	return &fuzz;
}

static inline void
sstable_fuzz_put(
    struct sstable_fuzz *fuzz, enum sstable_component component, const uint8_t *data, size_t size)
{
	char path[SSTABLE_PATH_MAX];
	struct file *file;
	struct error err;

	if (sstable_path(&fuzz->descriptor, component, path, &err) != 0 ||
	    files_open(fuzz->context.env->files, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE,
		&file, &err) != 0 ||
	    file_write(file, data, size, &err) != 0)
		abort();
	file_close(file);
}

static inline void
sstable_fuzz_drain(struct unfiltered_iterator *partition)
{
	struct unfiltered item;
	struct error err;
	uint32_t count = 0;

	while (unfiltered_iterator_next(partition, &item, &err) > 0 && ++count < 5000)
		;
	unfiltered_iterator_close(partition);
}

static inline void
sstable_fuzz_scan(struct sstable *sstable, const struct read_command *command, uint32_t flags)
{
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct error err;
	struct arena arena;
	uint32_t count = 0;

	arena_init(&arena, 1 << 14);
	if (sstable_scan(sstable, command, NULL, flags, &arena, &scan, &err) == 0) {
		while (partition_iterator_next(scan, &partition, &err) > 0 && ++count < 500)
			sstable_fuzz_drain(partition);
		partition_iterator_close(scan);
	}
	arena_fini(&arena);
}

/* Read the table in all the ways there are. */
static inline void
sstable_fuzz_read(struct sstable_fuzz *fuzz)
{
	struct sstable *sstable;
	struct error err;
	struct arena arena;
	struct slice values[2] = {slice_of_string("ab"), sstable_fuzz_int(fuzz, 14)};

	if (sstable_open(&fuzz->context, &fuzz->descriptor, fuzz->table, &sstable, &err) != 0)
		return;
	sstable_fuzz_scan(sstable, NULL, 0);
	sstable_fuzz_scan(sstable, NULL, SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT);
	for (uint32_t i = 0; i < 2 * SSTABLE_FUZZ_PARTITIONS; i++) {
		struct clustering_slice slice;
		struct read_command command = {.table = fuzz->table,
		    .key = fuzz->keys[i / 2],
		    .token = murmur3_token(fuzz->keys[i / 2])};
		struct unfiltered_iterator *partition;

		arena_init(&arena, 1 << 14);
		slice.start = position_make(fuzz->table, BOUND_INCL_START, values, 1, &arena);
		slice.end = position_make(fuzz->table, BOUND_EXCL_END, values, 2, &arena);
		command.clustering = (struct clustering_filter){.is_reversed = i % 2 == 1,
		    .with_static = i % 3 == 0,
		    .slice_count = i < 8,
		    .slices = &slice};
		if (sstable_read(sstable, &command, &arena, &partition, &err) == 0 &&
		    partition != NULL)
			sstable_fuzz_drain(partition);
		if (i == 0 || i == 1) {
			command.is_range = true;
			command.range = (struct token_range){.left = INT64_MIN, .right = INT64_MIN};
			sstable_fuzz_scan(sstable, &command, 0);
		}
		arena_fini(&arena);
	}
	(void)sstable_verify(sstable, true, NULL, &err);
	sstable_unref(sstable);
}

#endif
