/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "tests/unit/storage/store_fixture.h"

START_TEST(test_rows_come_back_from_memtable_sstable_and_both)
{
	struct store_fixture fixture;
	char value[64];

	store_fixture_init(&fixture);
	for (int i = 0; i < 500; i++)
		store_fixture_insert(&fixture, i, i % 7, "first", 1000 + i);
	ck_assert_uint_eq(store_fixture_count(&fixture), 500);
	store_fixture_flush(&fixture);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), 500);
	store_fixture_insert(&fixture, 3, 3, "second", 5000);
	store_fixture_insert(&fixture, 4, 4, NULL, 5000);
	store_fixture_insert(&fixture, 5, 5, "older", 1);
	store_fixture_lookup(&fixture, 3, 3, value);
	ck_assert_str_eq(value, "second");
	store_fixture_lookup(&fixture, 4, 4, value);
	ck_assert_str_eq(value, "");
	store_fixture_lookup(&fixture, 5, 5, value);
	ck_assert_str_eq(value, "first");
	ck_assert_uint_eq(store_fixture_count(&fixture), 499);
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_unflushed_rows_are_replayed_and_flushed_ones_are_not_lost)
{
	struct store_fixture fixture;
	char value[64];

	store_fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		store_fixture_insert(&fixture, i, 0, "a", 1000);
	store_fixture_flush(&fixture);
	for (int i = 100; i < 200; i++)
		store_fixture_insert(&fixture, i, 0, "b", 1000);
	for (int round = 0; round < 3; round++) {
		store_fixture_close(&fixture);
		store_fixture_open(&fixture);
		ck_assert_uint_eq(store_fixture_count(&fixture), 200);
		store_fixture_lookup(&fixture, 150, 0, value);
		ck_assert_str_eq(value, "b");
	}
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_compaction_leaves_one_table_with_the_same_rows)
{
	struct store_fixture fixture;
	struct error err;
	char value[64];

	store_fixture_init(&fixture);
	store_set_auto_compaction(fixture.store, store_table(fixture.store, fixture.table), false);
	for (int generation = 0; generation < 5; generation++) {
		for (int i = 0; i < 100; i++)
			store_fixture_insert(&fixture, i * (generation + 1) % 150, generation, "x",
			    1000 + generation);
		store_fixture_insert(
		    &fixture, 7, 0, generation == 4 ? "last" : "early", 2000 + generation);
		store_fixture_flush(&fixture);
	}
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 5);
	uint64_t before = store_fixture_count(&fixture);
	ck_assert_msg(
	    store_compact(fixture.store, store_table(fixture.store, fixture.table), &err) == 0,
	    "%s", err.text);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), before);
	store_fixture_lookup(&fixture, 7, 0, value);
	ck_assert_str_eq(value, "last");
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), before);
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_size_tiered_compaction_runs_by_itself_after_four_flushes)
{
	struct store_fixture fixture;
	int patience = 500;

	store_fixture_init(&fixture);
	for (int generation = 0; generation < 4; generation++) {
		for (int i = 0; i < 50; i++)
			store_fixture_insert(&fixture, i, generation, "x", 1000);
		store_fixture_flush(&fixture);
	}
	while (store_fixture_sstables(&fixture) != 1 && patience-- > 0)
		usleep(10000);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), 200);
	store_fixture_fini(&fixture);
}
END_TEST

/* What an SSTable says of the commit log of another node must not keep our records from being replayed. */
START_TEST(test_a_foreign_sstable_hides_no_record_of_our_log)
{
	struct store_fixture fixture;

	store_fixture_init(&fixture);
	fixture.host_id.bytes[0] = 1;
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	for (int i = 0; i < 100; i++)
		store_fixture_insert(&fixture, i, 0, "a", 1000);
	store_fixture_flush(
	    &fixture); /* the SSTable carries host id 1 and the stretch of the log */
	store_fixture_insert(&fixture, 100, 0, "b", 1000);
	store_fixture_quiet(&fixture);
	store_fixture_close(&fixture);
	fixture.host_id.bytes[0] = 2;
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), 101);
	/* Everything was applied once more, and is in a second table now. */
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 2);
	store_fixture_fini(&fixture);
}
END_TEST

static int
truncate_recorded(
    void *context, struct table_store *table, struct commitlog_position position, struct error *err)
{
	(void)table;
	(void)err;
	*(struct commitlog_position *)context = position;
	return 0;
}

START_TEST(test_truncated_rows_do_not_come_back_by_replay)
{
	struct store_fixture fixture;
	struct commitlog_position position = {0, 0};
	struct error err;

	store_fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		store_fixture_insert(&fixture, i, 0, "a", 1000);
	ck_assert_msg(store_truncate(fixture.store, store_table(fixture.store, fixture.table),
			  truncate_recorded, &position, &err) == 0,
	    "%s", err.text);
	ck_assert_int_ne(position.segment_id, 0);
	ck_assert_uint_eq(store_fixture_count(&fixture), 0);
	store_fixture_insert(&fixture, 1, 1, "after", 2000);
	ck_assert_uint_eq(store_fixture_count(&fixture), 1);

	store_fixture_quiet(&fixture);
	store_close(fixture.store);
	atomic_store(&fixture.table->user, NULL);
	struct store_executor executor = {store_fixture_submit, &fixture};
	ck_assert_int_eq(
	    store_open(&fixture.options, fixture.env, &executor, &fixture.store, &err), 0);
	ck_assert_int_eq(store_set_schema(fixture.store, fixture.schema, &err), 0);
	store_set_truncated(store_table(fixture.store, fixture.table), position, 1);
	ck_assert_int_eq(store_replay(fixture.store, &err), 0);
	ck_assert_uint_eq(store_fixture_count(&fixture), 1);
	store_fixture_fini(&fixture);
}
END_TEST

static void
count_snapshot(void *argument, const struct store_snapshot_info *info)
{
	ck_assert_str_eq(info->keyspace, "ks");
	ck_assert_str_eq(info->table, "t");
	(*(int *)argument)++;
}

START_TEST(test_dropped_tables_leave_a_snapshot_and_no_rows)
{
	struct store_fixture fixture;
	struct schema *without = store_fixture_schema(NULL);
	struct error err;
	uint32_t removed;
	int snapshots = 0;

	store_fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		store_fixture_insert(&fixture, i, 0, "a", 1000);
	ck_assert_msg(store_set_schema(fixture.store, without, &err) == 0, "%s", err.text);
	ck_assert_int_eq(store_list_snapshots(fixture.store, count_snapshot, &snapshots, &err), 0);
	ck_assert_int_eq(snapshots, 1);
	ck_assert_int_eq(store_clear_snapshots(fixture.store, NULL, NULL, &removed, &err), 0);
	ck_assert_uint_eq(removed, 1);
	/* The next start does not know the table: what the log has of it goes for good. */
	struct schema *with = fixture.schema;
	store_fixture_close(&fixture);
	fixture.schema = without;
	store_fixture_open(&fixture);
	store_fixture_close(&fixture);
	fixture.schema = with;
	store_fixture_open(&fixture);
	schema_unref(without);
	ck_assert_uint_eq(store_fixture_count(&fixture), 0);
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_rows_written_before_a_column_was_added_are_still_read)
{
	struct store_fixture fixture;
	struct table_metadata *altered;
	struct schema *schema;
	struct error err;
	char value[64];

	store_fixture_init(&fixture);
	for (int i = 0; i < 50; i++)
		store_fixture_insert(&fixture, i, 0, "old", 1000);
	store_fixture_flush(&fixture);
	for (int i = 50; i < 100; i++)
		store_fixture_insert(&fixture, i, 0, "young", 1000);
	altered = store_fixture_table(&fixture.table->id, true);
	schema = store_fixture_schema(altered);
	ck_assert_msg(store_set_schema(fixture.store, schema, &err) == 0, "%s", err.text);
	table_unref(fixture.table);
	schema_unref(fixture.schema);
	fixture.table = altered;
	fixture.schema = schema;
	ck_assert_uint_eq(store_fixture_count(&fixture), 100);
	store_fixture_insert(&fixture, 100, 0, "new", 1000);
	store_fixture_lookup(&fixture, 10, 0, value);
	ck_assert_str_eq(value, "old");
	store_fixture_lookup(&fixture, 60, 0, value);
	ck_assert_str_eq(value, "young");
	store_fixture_lookup(&fixture, 100, 0, value);
	ck_assert_str_eq(value, "new");
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_memory_over_the_budget_is_flushed_and_writes_go_on)
{
	struct store_fixture fixture;
	char text[2001];

	store_fixture_init(&fixture);
	store_fixture_close(&fixture);
	fixture.options.memtable_bytes = 8 << 20;
	store_fixture_open(&fixture);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 10000; i++)
		store_fixture_insert(&fixture, i, 0, text, 1000);
	ck_assert_uint_le(store_memtable_bytes(fixture.store), 9 << 20);
	ck_assert_uint_eq(store_fixture_count(&fixture), 10000);
	store_fixture_fini(&fixture);
}
END_TEST

struct load {
	struct store_fixture *fixture;
	int first;
};

static void *
load_run(void *argument)
{
	struct load *load = argument;

	for (int i = 0; i < 2000; i++)
		store_fixture_insert(load->fixture, load->first + i, i % 3, "v", 1000);
	return NULL;
}

START_TEST(test_concurrent_writes_flushes_and_reads_lose_nothing)
{
	struct store_fixture fixture;
	struct load loads[3];
	pthread_t threads[3];

	store_fixture_init(&fixture);
	for (int i = 0; i < 3; i++) {
		loads[i] = (struct load){&fixture, i * 2000};
		pthread_create(&threads[i], NULL, load_run, &loads[i]);
	}
	for (int i = 0; i < 10; i++) {
		store_fixture_flush(&fixture);
		(void)store_fixture_count(&fixture);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(store_fixture_count(&fixture), 6000);
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), 6000);
	store_fixture_fini(&fixture);
}
END_TEST

struct listed {
	const char *tag;
	uint32_t count;
	int64_t expires_ms;
	uint64_t total_bytes;
};

static void
listed_count(void *argument, const struct store_snapshot_info *info)
{
	struct listed *listed = argument;

	if (strcmp(info->tag, listed->tag) != 0)
		return;
	listed->count++;
	listed->expires_ms = info->expires_ms;
	listed->total_bytes = info->total_bytes;
}

static struct listed
list_snapshots(struct store_fixture *fixture, const char *tag)
{
	struct listed listed = {.tag = tag};
	struct error err;

	ck_assert_int_eq(store_list_snapshots(fixture->store, listed_count, &listed, &err), 0);
	return listed;
}

START_TEST(test_a_snapshot_with_a_life_time_removes_itself_also_after_a_restart)
{
	struct store_fixture fixture;
	struct store_snapshot_options stays = {.tag = "stays"},
				      goes = {.tag = "goes", .ttl_seconds = 2};
	struct table_store *table;
	struct error err;
	int patience = 600;

	store_fixture_init(&fixture);
	store_fixture_insert(&fixture, 1, 1, "a", 1000);
	table = store_table(fixture.store, fixture.table);
	ck_assert_int_eq(store_snapshot(fixture.store, table, &stays, &err), 0);
	ck_assert_int_eq(store_snapshot(fixture.store, table, &goes, &err), 0);
	ck_assert_int_eq(list_snapshots(&fixture, "stays").expires_ms, 0);
	ck_assert_int_gt(list_snapshots(&fixture, "goes").expires_ms, 0);
	if (_i == 1) {
		store_fixture_close(&fixture);
		store_fixture_open(&fixture);
	}
	while (list_snapshots(&fixture, "goes").count > 0 && patience-- > 0)
		usleep(100000);
	ck_assert_uint_eq(list_snapshots(&fixture, "goes").count, 0);
	ck_assert_uint_eq(list_snapshots(&fixture, "stays").count, 1);
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_snapshot_without_a_flush_holds_what_is_on_disk)
{
	struct store_fixture fixture;
	struct store_snapshot_options options = {.tag = "s", .skip_flush = true};
	struct error err;

	store_fixture_init(&fixture);
	store_fixture_insert(&fixture, 1, 1, "a", 1000);
	ck_assert_int_eq(store_snapshot(fixture.store, store_table(fixture.store, fixture.table),
			     &options, &err),
	    0);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 0);
	ck_assert_uint_eq(list_snapshots(&fixture, "s").count, 1);
	store_fixture_fini(&fixture);
}
END_TEST

/* SSTables in the table's folder of a data directory, or in a folder below it. */
static uint32_t
count_data_files(struct store_fixture *fixture, const char *data, const char *below)
{
	struct file_list list;
	char path[300], id[33];
	uint32_t count = 0;
	struct error err;

	hex_encode(slice_of(fixture->table->id.bytes, 16), id);
	snprintf(path, sizeof(path), "%s/ks/t-%s%s", data, id, below);
	if (!files_exists(fixture->env->files, path))
		return 0;
	ck_assert_int_eq(files_list(fixture->env->files, path, &list, &err), 0);
	for (size_t i = 0; i < list.count; i++)
		count += strstr(list.entries[i].name, "-Data.db") != NULL;
	file_list_fini(&list);
	return count;
}

START_TEST(test_sstables_are_spread_over_data_directories_and_all_are_read)
{
	struct store_fixture fixture;
	struct store_snapshot_options options = {.tag = "s"};
	struct table_store *table;
	uint32_t first, second;
	struct error err;
	int32_t key = 0;

	store_fixture_init(&fixture);
	store_fixture_close(&fixture);
	snprintf(fixture.more, sizeof(fixture.more), "%s/more", fixture.directory);
	fixture.directories[1] = fixture.more;
	fixture.options.data_directory_count = 2;
	store_fixture_open(&fixture);
	table = store_table(fixture.store, fixture.table);
	store_set_auto_compaction(fixture.store, table, false);
	store_set_incremental_backups(fixture.store, true);
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 10; k++)
			store_fixture_insert(&fixture, key++, 1, "value", 1000);
		store_fixture_flush(&fixture);
	}
	first = count_data_files(&fixture, fixture.data, "");
	second = count_data_files(&fixture, fixture.more, "");
	ck_assert_uint_eq(first + second, 8);
	ck_assert_uint_gt(first, 1);
	ck_assert_uint_gt(second, 1);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.data, "/backups"), first);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.more, "/backups"), second);
	ck_assert_int_eq(store_snapshot(fixture.store, table, &options, &err), 0);
	ck_assert_uint_eq(list_snapshots(&fixture, "s").count, 1);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.data, "/snapshots/s"), first);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.more, "/snapshots/s"), second);

	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), 80);
	/* Inputs on both, one output; the transaction removes files on both. */
	table = store_table(fixture.store, fixture.table);
	ck_assert_msg(store_compact(fixture.store, table, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(store_fixture_count(&fixture), 80);
	store_fixture_close(&fixture);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.data, "") +
		count_data_files(&fixture, fixture.more, ""),
	    1);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), 80);
	store_fixture_fini(&fixture);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("store");
	TCase *tcase = tcase_create("store");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_rows_come_back_from_memtable_sstable_and_both);
	tcase_add_test(tcase, test_unflushed_rows_are_replayed_and_flushed_ones_are_not_lost);
	tcase_add_test(tcase, test_compaction_leaves_one_table_with_the_same_rows);
	tcase_add_test(tcase, test_size_tiered_compaction_runs_by_itself_after_four_flushes);
	tcase_add_test(tcase, test_a_foreign_sstable_hides_no_record_of_our_log);
	tcase_add_test(tcase, test_truncated_rows_do_not_come_back_by_replay);
	tcase_add_test(tcase, test_dropped_tables_leave_a_snapshot_and_no_rows);
	tcase_add_test(tcase, test_rows_written_before_a_column_was_added_are_still_read);
	tcase_add_test(tcase, test_memory_over_the_budget_is_flushed_and_writes_go_on);
	tcase_add_test(tcase, test_concurrent_writes_flushes_and_reads_lose_nothing);
	tcase_add_loop_test(
	    tcase, test_a_snapshot_with_a_life_time_removes_itself_also_after_a_restart, 0, 2);
	tcase_add_test(tcase, test_a_snapshot_without_a_flush_holds_what_is_on_disk);
	tcase_add_test(tcase, test_sstables_are_spread_over_data_directories_and_all_are_read);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
