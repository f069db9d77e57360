/* SPDX-License-Identifier: Apache-2.0 */

/*
 * SSTables that Cassandra wrote are read, checked, and written again: what comes out must be the same
 * bytes, since both sides are deterministic.
 */
#include <check.h>
#include <stdlib.h>
#include "storage/sstable_internal.h"
#include "tests/unit/storage/sstable_fixture.h"

static struct env *env;
static struct sstable_context context;

static void
setup(void)
{
	env = env_posix_new();
	context = (struct sstable_context){
	    .env = env, .chunks = chunk_cache_new(1 << 20), .keys = key_cache_new(1 << 20)};
}

static void
teardown(void)
{
	chunk_cache_free(context.chunks);
	key_cache_free(context.keys);
	env_free(env);
}

static struct sstable *
open_fixture(const struct fixture *fixture, struct table_metadata **table)
{
	char directory[512];
	struct sstable *sstable = NULL;
	struct error err = {0};

	fixture_directory(fixture->table, directory, sizeof(directory));
	*table = fixture_table(fixture->table);
	ck_assert_msg(
	    sstable_open(&context,
		&(struct sstable_descriptor){directory, {.generation = fixture->generation}},
		*table, &sstable, &err) == 0,
	    "%s", err.text);
	return sstable;
}

START_TEST(test_fixture_verifies)
{
	const struct fixture *fixture = &fixtures[_i];
	struct table_metadata *table;
	struct sstable *sstable = open_fixture(fixture, &table);
	struct error err = {0};

	ck_assert_msg(
	    sstable_verify(sstable, true, NULL, &err) == 0, "%s %s", fixture->table, err.text);
	sstable_unref(sstable);
	table_unref(table);
}
END_TEST

/* The columns as Cassandra's header has them: those that occur. */
static void
header_columns(const struct statistics_header *header, const struct table_metadata *table,
    uint64_t statics[1], uint64_t regulars[1])
{
	statics[0] = regulars[0] = 0;
	for (uint32_t i = 0; i < header->static_count; i++) {
		const struct column_metadata *column = table_column(table, header->statics[i].name);

		statics[0] |= UINT64_C(1) << column->position;
	}
	for (uint32_t i = 0; i < header->regular_count; i++) {
		const struct column_metadata *column =
		    table_column(table, header->regulars[i].name);

		if (column != NULL)
			regulars[0] |= UINT64_C(1) << column->position;
	}
}

static struct sstable *
write_again(struct sstable *sstable, const struct table_metadata *table, const char *directory,
    uint32_t flags, bool is_compacted)
{
	const struct sstable_meta *meta = sstable_get_meta(sstable, NULL);
	const struct sstable_stats *stats = &meta->statistics.stats;
	uint64_t statics[1], regulars[1];
	struct sstable_writer_options options = {
	    .descriptor = {directory, sstable_descriptor(sstable)->id},
	    .table = table,
	    .expected_keys = sstable_estimated_keys(sstable),
	    .min_timestamp = meta->statistics.header.min_timestamp,
	    .min_local_deletion_time = meta->statistics.header.min_local_deletion_time,
	    .min_ttl = meta->statistics.header.min_ttl,
	    .statics = statics,
	    .regulars = regulars,
	    .level = stats->level,
	    .is_fast_flush = !is_compacted,
	    .repaired_at = stats->repaired_at,
	    .host_id = stats->has_host_id ? &stats->host_id : NULL,
	    .commitlog = stats->commitlog,
	    .commitlog_count = stats->commitlog_count,
	};
	struct sstable_writer *writer;
	struct partition_iterator *scan;
	struct unfiltered_iterator *partition;
	struct sstable *written = NULL;
	struct error err = {0};
	struct arena arena;
	int rc;

	header_columns(&meta->statistics.header, table, statics, regulars);
	arena_init(&arena, 1 << 16);
	ck_assert_msg(sstable_writer_new(&context, &options, &writer, &err) == 0, "%s", err.text);
	ck_assert_msg(
	    sstable_scan(sstable, NULL, table, flags, &arena, &scan, &err) == 0, "%s", err.text);
	while ((rc = partition_iterator_next(scan, &partition, &err)) > 0) {
		ck_assert_msg(sstable_writer_append(writer, partition, &err) == 0, "%s", err.text);
		unfiltered_iterator_close(partition);
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	partition_iterator_close(scan);
	arena_fini(&arena);
	ck_assert_msg(sstable_writer_finish(writer, &written, &err) == 0, "%s", err.text);
	ck_assert_ptr_nonnull(written);
	return written;
}

/* Uncompressed bytes of Data.db. */
static struct buffer
data_bytes(struct sstable *sstable)
{
	struct sstable_parts *parts = sstable_get_parts(sstable, NULL);
	struct sstable_cursor cursor;
	struct arena arena;
	struct buffer bytes;
	struct slice view;
	struct error err;

	buffer_init(&bytes);
	arena_init(&arena, 1 << 16);
	sstable_cursor_init(&cursor, &parts->data, &arena, true, false);
	ck_assert_int_eq(sstable_cursor_peek(&cursor, &arena, 0, SIZE_MAX / 2, &view, &err), 0);
	ck_assert_uint_eq(view.size, parts->data.length);
	buffer_put_slice(&bytes, view);
	sstable_cursor_fini(&cursor);
	arena_fini(&arena);
	return bytes;
}

static void
assert_same_bytes(struct buffer *a, struct buffer *b, const char *what, const char *table)
{
	for (size_t i = 0; i < a->size && i < b->size; i++)
		if (a->data[i] != b->data[i])
			ck_abort_msg("%s of %s differs at byte %zu: %02x, %02x", what, table, i,
			    a->data[i], b->data[i]);
	ck_assert_msg(
	    a->size == b->size, "%s of %s has %zu bytes, not %zu", what, table, b->size, a->size);
	buffer_fini(a);
	buffer_fini(b);
}

static void
assert_same_component(struct sstable *a, struct sstable *b, enum sstable_component component)
{
	struct buffer left = component_bytes(env, sstable_descriptor(a), component);
	struct buffer right = component_bytes(env, sstable_descriptor(b), component);

	assert_same_bytes(
	    &left, &right, sstable_component_name(component), sstable_descriptor(a)->directory);
}

START_TEST(test_fixture_written_again_is_the_same)
{
	const struct fixture *fixture = &fixtures[_i];
	uint32_t flags = SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT;
	char *directory = scratch_new();
	struct table_metadata *table;
	struct sstable *sstable = open_fixture(fixture, &table);
	struct sstable *written =
	    write_again(sstable, table, directory, flags, fixture->is_compacted);
	struct error err = {0};
	struct buffer left = data_bytes(sstable), right = data_bytes(written);

	/* A dropped column's cells are left out, on purpose. */
	if (strcmp(fixture->table, "dropped") != 0) {
		assert_same_bytes(&left, &right, "data", fixture->table);
		assert_same_component(sstable, written, SSTABLE_INDEX);
		if (!fixture->is_compacted)
			assert_same_component(sstable, written, SSTABLE_STATISTICS);
	} else {
		buffer_fini(&left);
		buffer_fini(&right);
	}
	if (!fixture->is_compacted) /* its size comes from an estimate there */
		assert_same_component(sstable, written, SSTABLE_FILTER);
	assert_same_component(sstable, written, SSTABLE_SUMMARY);
	ck_assert_msg(sstable_verify(written, true, NULL, &err) == 0, "%s", err.text);
	sstable_unref(sstable);
	sstable_unref(written);
	table_unref(table);
	scratch_free(env, directory);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sstable_cassandra");
	TCase *tcase = tcase_create("fixtures");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_unchecked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_fixture_verifies, 0, FIXTURE_COUNT);
	tcase_add_loop_test(tcase, test_fixture_written_again_is_the_same, 0, FIXTURE_COUNT);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
