/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sstable.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/sstable_internal.h"
#include "tests/unit/storage/sstable_fixture.h"
#include "tests/unit/storage/sstable_model.h"

/*
 * All of it runs in one thread, which ThreadSanitizer makes thirty times slower: there each kind has one round, and
 * tables of a size that still has many blocks and chunks.
 */
#ifdef __SANITIZE_THREAD__
enum { RANDOM_ROUNDS = 1, LARGE_ROUNDS = 2, LARGE_ROWS = 300, SLICES = 10, DAMAGES = 8 };
#else
enum { RANDOM_ROUNDS = 3, LARGE_ROUNDS = 10, LARGE_ROWS = 2000, SLICES = 80, DAMAGES = 60 };
#endif

static struct env *env;
static struct sstable_context context;
static char *directory;

static void
setup(void)
{
	env = env_posix_new();
	context = (struct sstable_context){
	    .env = env, .chunks = chunk_cache_new(1 << 20), .keys = key_cache_new(1 << 20)};
	directory = scratch_new();
}

static void
teardown(void)
{
	scratch_free(env, directory);
	chunk_cache_free(context.chunks);
	key_cache_free(context.keys);
	env_free(env);
}

static struct sstable_writer *
begin(const struct model *model, uint64_t generation, uint32_t column_index_bytes)
{
	struct sstable_writer_options options = {
	    .descriptor = {directory, {.generation = generation}},
	    .table = model->table,
	    .expected_keys = model->count,
	    .min_timestamp = model->min_timestamp,
	    .min_local_deletion_time = model->min_local_deletion_time,
	    .column_index_bytes = column_index_bytes,
	};
	struct sstable_writer *writer = NULL;
	struct error err = {0};

	ck_assert_msg(sstable_writer_new(&context, &options, &writer, &err) == 0, "%s", err.text);
	return writer;
}

static struct sstable *
write_model(const struct model *model, uint64_t generation, uint32_t column_index_bytes)
{
	struct sstable_writer *writer = begin(model, generation, column_index_bytes);
	struct sstable *sstable = NULL;
	struct error err = {0};
	struct arena arena;

	arena_init(&arena, 1 << 16);
	for (uint32_t i = 0; i < model->count; i++) {
		ck_assert_msg(sstable_writer_append(writer,
				  model_iterator(model, &model->partitions[i], &arena), &err) == 0,
		    "%s", err.text);
		arena_reset(&arena);
	}
	arena_fini(&arena);
	ck_assert_msg(sstable_writer_finish(writer, &sstable, &err) == 0, "%s", err.text);
	return sstable;
}

static void
check_scan(const struct model *model, struct sstable *sstable, const struct read_command *command,
    uint32_t flags, const char *what)
{
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct error err = {0};
	struct arena arena;
	uint32_t next = 0;
	int rc;

	arena_init(&arena, 1 << 16);
	ck_assert_msg(
	    sstable_scan(sstable, command, NULL, flags, &arena, &scan, &err) == 0, "%s", err.text);
	while ((rc = partition_iterator_next(scan, &partition, &err)) > 0) {
		while (next < model->count && command != NULL &&
		    sstable_range_compare(&command->range, model->partitions[next].token,
			model->partitions[next].key) != 0)
			next++;
		ck_assert_msg(next < model->count, "%s: too many partitions", what);
		model_check(&model->partitions[next++], partition,
		    command == NULL ? NULL : &command->clustering, what);
	}
	ck_assert_msg(rc == 0, "%s: %s", what, err.text);
	for (; next < model->count; next++)
		ck_assert_msg(command != NULL &&
			sstable_range_compare(&command->range, model->partitions[next].token,
			    model->partitions[next].key) != 0,
		    "%s: a partition is missing", what);
	partition_iterator_close(scan);
	arena_fini(&arena);
}

static void
check_read(const struct model_partition *partition, struct sstable *sstable,
    struct read_command *command, const char *what)
{
	struct unfiltered_iterator *actual;
	struct error err = {0};
	struct arena arena;

	arena_init(&arena, 1 << 14);
	command->key = partition->key;
	command->token = partition->token;
	model_assert(
	    sstable_read(sstable, command, &arena, &actual, &err) == 0, "%s: %s", what, err.text);
	if (actual != NULL) {
		model_check(partition, actual, &command->clustering, what);
	} else {
		/* Nothing of the whole table meets the slices. */
		model_assert(
		    command->clustering.slice_count > 0 && !sstable_may_contain(sstable, command),
		    "%s: not found", what);
		for (uint32_t i = 0; i < partition->count; i++)
			model_assert(!model_selects(&command->clustering,
					 partition->items[i].kind == UNFILTERED_ROW
					     ? partition->items[i].row.position
					     : partition->items[i].marker.position),
			    "%s: something is missing", what);
	}
	arena_fini(&arena);
}

/* A random bound: of a clustering of the partition, whole or a prefix, before or behind it. */
static struct slice
random_bound(struct model *model, const struct model_partition *partition, bool is_end)
{
	const struct unfiltered *item;
	uint32_t count = model->table->clustering_count;
	enum bound_kind kind;

	if (partition->count == 0 || model_random(model, 8) == 0)
		return slice_null;
	item = &partition->items[model_random(model, partition->count)];
	if (item->kind != UNFILTERED_ROW)
		return slice_null;
	if (model_random(model, 4) == 0)
		count = (uint32_t)model_random(model, count + 1);
	kind = is_end ? (model_random(model, 2) == 0 ? BOUND_INCL_END : BOUND_EXCL_END)
		      : (model_random(model, 2) == 0 ? BOUND_INCL_START : BOUND_EXCL_START);
	return position_make(model->table, kind, item->row.clustering, count, &model->arena);
}

static uint32_t
random_slices(
    struct model *model, const struct model_partition *partition, struct clustering_slice slices[3])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < 3; i++) {
		struct clustering_slice slice = {
		    random_bound(model, partition, false), random_bound(model, partition, true)};

		if (!slice_is_null(slice.start) && !slice_is_null(slice.end) &&
		    slice_compare(slice.start, slice.end) >= 0)
			continue;
		if (count > 0 &&
		    (slice_is_null(slice.start) || slice_is_null(slices[count - 1].end) ||
			slice_compare(slices[count - 1].end, slice.start) > 0))
			continue;
		slices[count++] = slice;
	}
	return count;
}

static void
check_random_slices(struct model *model, struct sstable *sstable, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		const struct model_partition *partition =
		    &model->partitions[model_random(model, model->count)];
		struct clustering_slice slices[3];
		struct read_command command = {.table = model->table, .row_limit = READ_LIMIT_NONE};
		char what[100];

		command.clustering.slices = slices;
		command.clustering.slice_count = random_slices(model, partition, slices);
		command.clustering.is_reversed = model_random(model, 2) == 0;
		command.clustering.with_static = model_random(model, 2) == 0;
		snprintf(what, sizeof(what), "%.*s round %u, %u slices, %s",
		    (int)model->table->name.size, (const char *)model->table->name.data, i,
		    command.clustering.slice_count,
		    command.clustering.is_reversed ? "reversed" : "forward");
		check_read(partition, sstable, &command, what);
	}
}

static const char *const schemas[] = {
    "plain_lz4", "types", "collections", "tombs", "wide", "composite", "counts", "stress_like"};
enum { SCHEMA_COUNT = sizeof(schemas) / sizeof(schemas[0]) };

static void
check_everything(struct model *model, struct sstable *sstable)
{
	struct read_command range = {.table = model->table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .clustering = {.with_static = true}};
	struct error err = {0};

	ck_assert_msg(sstable_verify(sstable, true, NULL, &err) == 0, "%s", err.text);
	check_scan(model, sstable, NULL, 0, "scan");
	check_scan(model, sstable, NULL, SSTABLE_SCAN_SEQUENTIAL, "sequential scan");
	check_scan(model, sstable, &range, 0, "whole range");
	range.clustering.is_reversed = true;
	check_scan(model, sstable, &range, 0, "whole range reversed");
	for (uint32_t i = 0; i < 10; i++) {
		const struct model_partition *a =
		    &model->partitions[model_random(model, model->count)];
		const struct model_partition *b =
		    &model->partitions[model_random(model, model->count)];

		if (a->token > b->token)
			continue;
		range.range = (struct token_range){.left = a->token,
		    .right = b->token,
		    .includes_left = model_random(model, 2) == 0,
		    .excludes_right = model_random(model, 2) == 0};
		range.clustering.is_reversed = model_random(model, 2) == 0;
		if (model_random(model, 2) == 0) {
			range.range.start_key = a->key;
			range.range.start_key_exclusive = model_random(model, 2) == 0;
		}
		check_scan(model, sstable, &range, 0, "part of the range");
	}
	check_random_slices(model, sstable, SLICES);
}

START_TEST(test_random_partitions_come_back)
{
	struct model_shape shape = {20, 60, 40, true};
	struct table_metadata *table = fixture_table(schemas[_i % SCHEMA_COUNT]);
	struct sstable *sstable;
	struct model model;

	shape.has_tombstones = !table_is_counter(table);
	model_init(&model, table, (uint64_t)_i, &shape);
	sstable = write_model(&model, 1, 0);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Blocks of the promoted index and chunks are much smaller than partitions, so that rows and range
 * tombstones cross the borders of both. */
START_TEST(test_large_partitions_with_small_blocks_come_back)
{
	struct model_shape shape = {5, LARGE_ROWS, 60, true};
	struct table_metadata *table = fixture_table(_i % 2 == 0 ? "tombs" : "collections");
	struct sstable *sstable;
	struct model model;

	table->options.chunk_length = 1 << (10 + _i % 3);
	table->options.compressor = _i % 4 == 3 ? COMPRESSOR_NONE : COMPRESSOR_LZ4;
	model_init(&model, table, 100 + (uint64_t)_i, &shape);
	sstable = write_model(&model, 1, _i % 5 == 0 ? 64 : 700);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* A value of many chunks is put together. */
START_TEST(test_rows_larger_than_chunks_come_back)
{
	struct model_shape shape = {6, 12, 70000, true};
	struct table_metadata *table = fixture_table("plain_small_chunks");
	struct sstable *sstable;
	struct model model;

	model_init(&model, table, 7, &shape);
	sstable = write_model(&model, 1, 0);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_every_compressor_comes_back)
{
	static const enum compressor kinds[] = {COMPRESSOR_NONE, COMPRESSOR_LZ4, COMPRESSOR_SNAPPY,
	    COMPRESSOR_DEFLATE, COMPRESSOR_ZSTD, COMPRESSOR_NOOP};
	struct model_shape shape = {30, 50, 200, true};
	struct table_metadata *table = fixture_table("plain_lz4");
	struct sstable *sstable;
	struct model model;

	table->options.compressor = kinds[_i % 6];
	if (_i >= 6)
		table->options.min_compress_ratio = 2; /* some chunks are stored as they are */
	table->options.is_lz4_high_compressor = _i >= 6;
	table->options.lz4_high_level = 9;
	model_init(&model, table, 11, &shape);
	sstable = write_model(&model, 1, 0);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_index_interval_is_honoured)
{
	static const int32_t intervals[] = {1, 2, 128, 1000};
	struct model_shape shape = {500, 2, 10, false};
	struct table_metadata *table = fixture_table("plain_lz4");
	struct read_command command = {.table = table};
	struct sstable *sstable;
	struct model model;

	table->options.min_index_interval = intervals[_i];
	table->options.bloom_filter_fp_chance = _i == 3 ? 1 : 0.01;
	model_init(&model, table, 3, &shape);
	sstable = write_model(&model, 1, 0);
	check_everything(&model, sstable);
	for (uint32_t i = 0; i < model.count; i++)
		check_read(&model.partitions[i], sstable, &command, "each key");
	ck_assert_uint_eq(sstable_estimated_keys(sstable), model.count);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Slices beyond the smallest and largest clustering of the table: it is not even looked into. */
START_TEST(test_tables_without_a_meeting_clustering_are_left_out)
{
	struct model_shape shape = {20, 20, 10, false};
	struct table_metadata *table = fixture_table("plain_lz4");
	struct sstable_counters counters;
	struct sstable *sstable;
	struct model model;

	model_init(&model, table, 8, &shape);
	sstable = write_model(&model, 1, 0);
	for (uint32_t i = 0; i < model.count; i++) {
		uint8_t beyond[4] = {0x7f, 0, 0, 0};
		struct slice value = slice_of(beyond, 4);
		struct clustering_slice slice = {slice_null, slice_null};
		struct read_command command = {
		    .table = table, .clustering = {.slice_count = 1, .slices = &slice}};

		slice.start = position_make(table, BOUND_INCL_START, &value, 1, &model.arena);
		check_read(&model.partitions[i], sstable, &command, "beyond");
	}
	sstable_counters(sstable, &counters);
	ck_assert_uint_eq(counters.filter_checks, 0);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_absent_keys_are_not_found)
{
	struct model_shape shape = {1000, 2, 10, false};
	struct table_metadata *table = fixture_table("plain_lz4");
	struct sstable_counters counters;
	struct sstable *sstable;
	struct arena arena;
	struct model model;

	model_init(&model, table, 3, &shape);
	sstable = write_model(&model, 1, 0);
	arena_init(&arena, 4096);
	for (uint32_t i = 0; i < 10000; i++) {
		uint8_t key[4];
		struct read_command command = {.table = table};
		struct unfiltered_iterator *found;
		struct error err;
		bool is_there = false;

		store_u32(key, i * 7919);
		command.key = slice_of(key, 4);
		command.token = murmur3_token(command.key);
		for (uint32_t j = 0; j < model.count; j++)
			is_there = is_there || slice_equal(model.partitions[j].key, command.key);
		model_assert(
		    sstable_read(sstable, &command, &arena, &found, &err) == 0, "%s", err.text);
		model_assert((found != NULL) == is_there, "key %u", i);
		unfiltered_iterator_close(found);
		arena_reset(&arena);
	}
	sstable_counters(sstable, &counters);
	ck_assert_uint_eq(counters.filter_checks, 10000);
	ck_assert_uint_lt(counters.filter_false_positives, 300); /* 100 are promised */
	arena_fini(&arena);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Paging: only what lies behind the last row of the page before. */
START_TEST(test_paging_goes_on_behind_a_row)
{
	struct model_shape shape = {3, 300, 20, true};
	struct table_metadata *table = fixture_table("tombs");
	struct sstable *sstable;
	struct model model;

	model_init(&model, table, 21 + (uint64_t)_i, &shape);
	sstable = write_model(&model, 1, 500);
	for (uint32_t i = 0; i < model.count; i++) {
		const struct model_partition *partition = &model.partitions[i];

		for (uint32_t j = 0; j < partition->count; j += 7) {
			const struct unfiltered *item = &partition->items[j];
			struct read_command command = {.table = table};
			struct clustering_slice slice = {slice_null, slice_null};
			struct clustering_filter expected = {
			    .is_reversed = j % 2 == 1, .slice_count = 1, .slices = &slice};
			struct unfiltered_iterator *actual;
			struct error err = {0};
			struct arena arena;

			if (item->kind != UNFILTERED_ROW)
				continue;
			*(expected.is_reversed ? &slice.end : &slice.start) = item->row.position;
			command.key = partition->key;
			command.token = partition->token;
			command.clustering.is_reversed = expected.is_reversed;
			command.after_position = item->row.position;
			arena_init(&arena, 4096);
			ck_assert_int_eq(sstable_read(sstable, &command, &arena, &actual, &err), 0);
			model_check(partition, actual, &expected, "page");
			arena_fini(&arena);
		}
	}
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Partitions left half read do not disturb the scan. */
START_TEST(test_partitions_may_be_left_early)
{
	struct model_shape shape = {40, 3 * LARGE_ROWS / 2, 300, true};
	struct table_metadata *table = fixture_table("plain_lz4");
	uint32_t flags = _i == 0 ? 0 : SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT;
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct sstable *sstable;
	struct error err = {0};
	struct arena arena;
	struct model model;

	model_init(&model, table, 5, &shape);
	sstable = write_model(&model, 1, 4096);
	arena_init(&arena, 1 << 16);
	ck_assert_int_eq(sstable_scan(sstable, NULL, NULL, flags, &arena, &scan, &err), 0);
	for (uint32_t i = 0; i < model.count; i++) {
		struct unfiltered item;

		ck_assert_int_eq(partition_iterator_next(scan, &partition, &err), 1);
		ck_assert(slice_equal(partition->key, model.partitions[i].key));
		if (i % 2 == 0 && model.partitions[i].count > 0)
			ck_assert_int_eq(unfiltered_iterator_next(partition, &item, &err), 1);
		unfiltered_iterator_close(partition);
	}
	ck_assert_int_eq(partition_iterator_next(scan, &partition, &err), 0);
	partition_iterator_close(scan);
	arena_fini(&arena);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_statistics_say_what_was_written)
{
	struct model_shape shape = {200, 10, 20, true};
	struct table_metadata *table = fixture_table("tombs");
	const struct sstable_stats *stats;
	struct uuid pending = {{1, 2, 3}};
	struct sstable *sstable;
	struct error err = {0};
	struct model model;

	model_init(&model, table, 5, &shape);
	sstable = write_model(&model, 1, 0);
	stats = sstable_stats(sstable, &err);
	ck_assert_ptr_nonnull(stats);
	ck_assert(slice_equal(stats->first_key, model.partitions[0].key));
	ck_assert(slice_equal(stats->last_key, model.partitions[model.count - 1].key));
	ck_assert_int_eq(stats->last_token, model.partitions[model.count - 1].token);
	ck_assert_int_ge(stats->min_timestamp, model.min_timestamp);
	ck_assert_uint_gt(stats->drop_times.count, 0);
	ck_assert(sstable_droppable_ratio(sstable, INT32_MAX) > 0.05);
	ck_assert(sstable_droppable_ratio(sstable, 1000) == 0);
	ck_assert_int_eq(sstable_set_level(sstable, 3, &err), 0);
	ck_assert_int_eq(sstable_set_repaired(sstable, 77, &pending, true, &err), 0);
	ck_assert_int_eq(sstable_level(sstable), 3);
	sstable_unref(sstable);

	ck_assert_int_eq(
	    sstable_open(&context, &(struct sstable_descriptor){directory, {.generation = 1}},
		table, &sstable, &err),
	    0);
	ck_assert_int_eq(sstable_level(sstable), 3);
	ck_assert_int_eq(sstable_repaired_at(sstable), 77);
	stats = sstable_stats(sstable, &err);
	ck_assert(stats->has_pending_repair && uuid_equal(&stats->pending_repair, &pending));
	ck_assert(stats->is_transient);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_a_lost_summary_is_made_again)
{
	struct model_shape shape = {500, 3, 20, true};
	struct table_metadata *table = fixture_table("tombs");
	char path[SSTABLE_PATH_MAX];
	struct sstable *sstable;
	struct error err = {0};
	struct model model;

	model_init(&model, table, 5, &shape);
	sstable = write_model(&model, 1, 0);
	sstable_path(sstable_descriptor(sstable), SSTABLE_SUMMARY, path, &err);
	ck_assert_int_eq(files_unlink(env->files, path, &err), 0);
	check_everything(&model, sstable);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
}
END_TEST

static bool
exists(uint64_t generation, enum sstable_component component)
{
	struct sstable_descriptor descriptor = {directory, {.generation = generation}};
	char path[SSTABLE_PATH_MAX];

	sstable_path(&descriptor, component, path, NULL);
	return files_exists(env->files, path);
}

START_TEST(test_abort_and_obsolete_remove_the_files)
{
	struct model_shape shape = {5, 3, 20, true};
	struct table_metadata *table = fixture_table("tombs");
	struct sstable *sstable, *other;
	struct sstable_writer *writer;
	struct error err = {0};
	struct model model;

	model_init(&model, table, 5, &shape);
	sstable_writer_abort(begin(&model, 1, 0));
	ck_assert(!exists(1, SSTABLE_DATA));
	ck_assert_int_eq(sstable_writer_finish(begin(&model, 1, 0), &sstable, &err), 0);
	ck_assert_ptr_null(sstable);
	ck_assert(!exists(1, SSTABLE_DATA) && !exists(1, SSTABLE_TOC));

	sstable = write_model(&model, 2, 0);
	ck_assert(exists(2, SSTABLE_TOC));
	ck_assert_int_eq(sstable_writer_new(&context,
			     &(struct sstable_writer_options){
				 .descriptor = {directory, {.generation = 2}}, .table = table},
			     &writer, &err),
	    -1);
	ck_assert(exists(2, SSTABLE_DATA));
	other = sstable_ref(sstable);
	sstable_mark_obsolete(sstable, NULL, NULL);
	sstable_unref(sstable);
	ck_assert(exists(2, SSTABLE_TOC));
	sstable_unref(other);
	for (int i = 0; i < SSTABLE_COMPONENT_COUNT; i++)
		ck_assert(!exists(2, i));
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_unordered_partitions_are_refused)
{
	struct model_shape shape = {5, 3, 20, false};
	struct table_metadata *table = fixture_table("tombs");
	struct sstable_writer *writer;
	struct error err = {0};
	struct arena arena;
	struct model model;

	model_init(&model, table, 5, &shape);
	arena_init(&arena, 4096);
	writer = begin(&model, 1, 0);
	ck_assert_int_eq(sstable_writer_append(
			     writer, model_iterator(&model, &model.partitions[1], &arena), &err),
	    0);
	ck_assert_int_eq(sstable_writer_append(
			     writer, model_iterator(&model, &model.partitions[0], &arena), &err),
	    -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
	sstable_writer_abort(writer);
	arena_fini(&arena);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Turn one byte of a component around: verify finds it, and reading never does worse than an error. */
START_TEST(test_damage_is_found)
{
	static const enum sstable_component damaged[] = {SSTABLE_DATA, SSTABLE_INDEX,
	    SSTABLE_STATISTICS, SSTABLE_COMPRESSION_INFO, SSTABLE_DIGEST};
	enum sstable_component component = damaged[_i];
	struct model_shape shape = {40, 20, 100, true};
	struct table_metadata *table = fixture_table("tombs");
	struct sstable_descriptor descriptor = {directory, {.generation = 1}};
	char path[SSTABLE_PATH_MAX];
	struct buffer good;
	struct model model;

	model_init(&model, table, 5, &shape);
	sstable_unref(write_model(&model, 1, 200));
	good = component_bytes(env, &descriptor, component);
	sstable_path(&descriptor, component, path, NULL);
	for (size_t at = 0; at < good.size; at += good.size / DAMAGES + 1) {
		struct sstable *sstable;
		struct error err = {0};

		good.data[at] ^= 0x15;
		ck_assert_int_eq(files_replace(env->files, path, buffer_slice(&good), &err), 0);
		good.data[at] ^= 0x15;
		ck_assert_int_eq(sstable_open(&context, &descriptor, table, &sstable, &err), 0);
		/* A byte of a promoted index may be wrong without harm to what verify compares. */
		if (sstable_verify(sstable, true, NULL, &err) == 0)
			ck_assert_msg(
			    component == SSTABLE_INDEX || component == SSTABLE_COMPRESSION_INFO,
			    "%s: damage at %zu is not found", path, at);
		else
			ck_assert_msg(err.code == ERROR_CORRUPT && strstr(err.text, "nb-1-big-"),
			    "%s", err.text);
		sstable_unref(sstable);
	}
	buffer_fini(&good);
	model_fini(&model);
	table_unref(table);
}
END_TEST

/* Index.db has no checksums: still no key may silently vanish. */
START_TEST(test_a_damaged_index_does_not_hide_a_key)
{
	struct model_shape shape = {40, 4, 20, false};
	struct table_metadata *table = fixture_table("plain_lz4");
	struct sstable_descriptor descriptor = {directory, {.generation = 1}};
	char path[SSTABLE_PATH_MAX];
	struct buffer good;
	struct model model;

	model_init(&model, table, 6, &shape);
	sstable_unref(write_model(&model, 1, 0));
	good = component_bytes(env, &descriptor, SSTABLE_INDEX);
	sstable_path(&descriptor, SSTABLE_INDEX, path, NULL);
	for (size_t at = 0; at < good.size; at++) {
		struct sstable *sstable;
		struct error err = {0};
		struct arena arena;

		good.data[at] ^= 0x41;
		ck_assert_int_eq(files_replace(env->files, path, buffer_slice(&good), &err), 0);
		good.data[at] ^= 0x41;
		ck_assert_int_eq(sstable_open(&context, &descriptor, table, &sstable, &err), 0);
		arena_init(&arena, 4096);
		for (uint32_t i = 0; i < model.count; i++) {
			struct read_command command = {.table = table,
			    .key = model.partitions[i].key,
			    .token = model.partitions[i].token};
			struct unfiltered_iterator *found;
			int rc = sstable_read(sstable, &command, &arena, &found, &err);

			model_assert(rc != 0 || found != NULL, "byte %zu hides key %u", at, i);
			if (rc == 0)
				unfiltered_iterator_close(found);
			else
				model_assert(err.code == ERROR_CORRUPT, "%s", err.text);
		}
		arena_fini(&arena);
		sstable_unref(sstable);
	}
	buffer_fini(&good);
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_names_are_understood)
{
	enum sstable_component component;
	struct sstable_id id, again;
	char text[SSTABLE_ID_TEXT_SIZE];

	ck_assert(sstable_name_parse("nb-17-big-Data.db", &id, &component));
	ck_assert(!id.is_uuid && id.generation == 17 && component == SSTABLE_DATA);
	ck_assert(
	    sstable_name_parse("nb-3fw2_0tt9_2bbd82eoupnfk7pqzi-big-TOC.txt", &id, &component));
	ck_assert(id.is_uuid && component == SSTABLE_TOC);
	ck_assert_int_eq(uuid_version(&id.uuid), 1);
	sstable_id_format(&id, text);
	ck_assert_str_eq(text, "3fw2_0tt9_2bbd82eoupnfk7pqzi");
	ck_assert(sstable_name_parse("nb-3-big-Summary.db", &again, NULL));
	ck_assert(!sstable_id_equal(&id, &again));
	ck_assert(!sstable_name_parse("nb--big-Data.db", NULL, NULL));
	ck_assert(!sstable_name_parse("nb-1x-big-Data.db", NULL, NULL));
	ck_assert(!sstable_name_parse("mc-1-big-Data.db", NULL, NULL));
	ck_assert(!sstable_name_parse("nb-1-big-SI_x.db", NULL, NULL));
	ck_assert(!sstable_name_parse("nb", NULL, NULL));
	ck_assert(!sstable_name_parse("", NULL, NULL));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sstable");
	TCase *tcase = tcase_create("sstable");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(
	    tcase, test_random_partitions_come_back, 0, RANDOM_ROUNDS * SCHEMA_COUNT);
	tcase_add_loop_test(
	    tcase, test_large_partitions_with_small_blocks_come_back, 0, LARGE_ROUNDS);
	tcase_add_test(tcase, test_rows_larger_than_chunks_come_back);
	tcase_add_loop_test(tcase, test_every_compressor_comes_back, 0, 12);
	tcase_add_loop_test(tcase, test_index_interval_is_honoured, 0, 4);
	tcase_add_test(tcase, test_tables_without_a_meeting_clustering_are_left_out);
	tcase_add_test(tcase, test_absent_keys_are_not_found);
	tcase_add_loop_test(tcase, test_paging_goes_on_behind_a_row, 0, 3);
	tcase_add_loop_test(tcase, test_partitions_may_be_left_early, 0, 2);
	tcase_add_test(tcase, test_statistics_say_what_was_written);
	tcase_add_test(tcase, test_a_lost_summary_is_made_again);
	tcase_add_test(tcase, test_abort_and_obsolete_remove_the_files);
	tcase_add_test(tcase, test_unordered_partitions_are_refused);
	tcase_add_loop_test(tcase, test_damage_is_found, 0, 5);
	tcase_add_test(tcase, test_a_damaged_index_does_not_hide_a_key);
	tcase_add_test(tcase, test_names_are_understood);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
