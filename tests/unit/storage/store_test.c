/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/store.h"

/* A store with one keyspace and one table (pk int, ck int, v text), background work in threads. */
struct fixture {
	struct env *env;
	struct store_options options;
	struct store *store;
	struct schema *schema;
	struct table_metadata *table;
	char directory[64], data[96], more[96], commitlog[96];
	const char *directories[2];
	struct uuid host_id;
	atomic_int running;
};

struct work {
	struct fixture *fixture;
	store_work_fn work;
	void *argument;
};

static void *
work_run(void *argument)
{
	struct work *work = argument;

	work->work(work->argument);
	atomic_fetch_sub(&work->fixture->running, 1);
	free(work);
	return NULL;
}

static bool
fixture_submit(void *context, const char *stage, store_work_fn function, void *argument)
{
	struct work *work = xzalloc(sizeof(*work));
	pthread_attr_t attributes;
	pthread_t thread;

	(void)stage;
	*work = (struct work){context, function, argument};
	atomic_fetch_add(&work->fixture->running, 1);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	ck_assert_int_eq(pthread_create(&thread, &attributes, work_run, work), 0);
	pthread_attr_destroy(&attributes);
	return true;
}

static void
fixture_quiet(struct fixture *fixture)
{
	while (atomic_load(&fixture->running) > 0)
		usleep(1000);
}

static struct table_metadata *
make_table(const struct uuid *id, bool with_extra)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct table_metadata *table;
	struct error err;

	table_builder_set_id(builder, id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "pk", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "ck", "int");
	table_builder_add(builder, COLUMN_REGULAR, "v", "text");
	if (with_extra)
		table_builder_add(builder, COLUMN_REGULAR, "a_new", "int");
	ck_assert_msg(table_builder_build(builder, &table, &err) == 0, "%s", err.text);
	table_builder_free(builder);
	return table;
}

static struct schema *
make_schema(const struct table_metadata *table)
{
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.SimpleStrategy")};
	struct option_map replication = {&entry, 1};
	struct keyspace_metadata *keyspace =
	    keyspace_new(slice_of_string("ks"), &replication, true, false);
	struct schema *empty = schema_new(), *schema;

	if (table != NULL) {
		struct keyspace_metadata *with = keyspace_with_table(keyspace, table);

		keyspace_unref(keyspace);
		keyspace = with;
	}
	schema = schema_with_keyspace(empty, keyspace);
	keyspace_unref(keyspace);
	schema_unref(empty);
	return schema;
}

static void
fixture_open(struct fixture *fixture)
{
	struct store_executor executor = {fixture_submit, fixture};
	struct error err;

	ck_assert_msg(
	    store_open(&fixture->options, fixture->env, &executor, &fixture->store, &err) == 0,
	    "%s", err.text);
	ck_assert_msg(store_set_schema(fixture->store, fixture->schema, &err) == 0, "%s", err.text);
	store_set_host_id(fixture->store, &fixture->host_id);
	ck_assert_msg(store_replay(fixture->store, &err) == 0, "%s", err.text);
}

static void
fixture_close(struct fixture *fixture)
{
	fixture_quiet(fixture);
	store_close(fixture->store);
	/* The next store hands out its own handles. */
	atomic_store(&fixture->table->user, NULL);
}

static void
fixture_init(struct fixture *fixture)
{
	struct uuid id = {{1, 2, 3, 4, 5, 6, 0x11, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}};

	memset(fixture, 0, sizeof(*fixture));
	fixture->env = env_posix_new();
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/store_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fixture->directory));
	snprintf(fixture->data, sizeof(fixture->data), "%s/data", fixture->directory);
	snprintf(
	    fixture->commitlog, sizeof(fixture->commitlog), "%s/commitlog", fixture->directory);
	store_options_defaults(&fixture->options);
	fixture->directories[0] = fixture->data;
	fixture->options.data_directories = fixture->directories;
	fixture->options.data_directory_count = 1;
	fixture->options.commitlog_directory = fixture->commitlog;
	fixture->options.commitlog_segment_bytes = 1 << 20;
	fixture->options.max_mutation_bytes = 512 << 10;
	fixture->table = make_table(&id, false);
	fixture->schema = make_schema(fixture->table);
	fixture_open(fixture);
}

static void
fixture_fini(struct fixture *fixture)
{
	fixture_close(fixture);
	schema_unref(fixture->schema);
	table_unref(fixture->table);
	files_remove_tree(fixture->env->files, fixture->directory, NULL);
	env_free(fixture->env);
}

static void
write_done(struct store_write *write, const struct error *err)
{
	ck_assert_msg(err == NULL, "%s", err != NULL ? err->text : "");
	(*(atomic_int *)write->context)++;
}

static void
put_int(uint8_t out[4], int32_t value)
{
	store_u32(out, (uint32_t)value);
}

/* INSERT INTO t (pk, ck, v); a NULL v deletes the row. */
static void
insert(struct fixture *fixture, int32_t pk, int32_t ck, const char *v, int64_t timestamp)
{
	struct arena arena;
	uint8_t key[4], clustering_bytes[4];
	struct slice clustering = {clustering_bytes, 4};
	struct cell cell = {.column = table_column(fixture->table, slice_of_string("v")),
	    .timestamp = timestamp,
	    .local_deletion_time = LOCAL_DELETION_TIME_NONE,
	    .value = v != NULL ? slice_of_string(v) : slice_empty};
	struct row row = {.clustering_count = 1,
	    .clustering = &clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE};
	struct partition_update update;
	struct mutation mutation;
	struct update_builder *builder;
	struct store_write write = {
	    .mutation = &mutation, .is_durable = true, .on_done = write_done};
	atomic_int done = 0;
	struct error err;

	arena_init(&arena, 4096);
	put_int(key, pk);
	put_int(clustering_bytes, ck);
	if (v != NULL) {
		row.liveness.timestamp = timestamp;
		row.cell_count = 1;
		row.cells = &cell;
	} else {
		row.deletion = (struct deletion){timestamp, 1700000000};
	}
	builder = update_builder_new(fixture->table, slice_of(key, 4), &arena);
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation = (struct mutation){.keyspace = "ks",
	    .key = slice_of(key, 4),
	    .token = murmur3_token(slice_of(key, 4)),
	    .update_count = 1,
	    .updates = &update};
	write.context = &done;
	store_apply(fixture->store, &write);
	while (atomic_load(&done) == 0)
		usleep(100);
	arena_fini(&arena);
}

/* Value of one row, "" when there is none. */
static void
lookup(struct fixture *fixture, int32_t pk, int32_t ck, char out[64])
{
	struct arena arena;
	uint8_t key[4];
	struct read_command command = {.table = fixture->table,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1800000000};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row row;
	struct error err;
	int rc;

	arena_init(&arena, 4096);
	put_int(key, pk);
	command.key = slice_of(key, 4);
	command.token = murmur3_token(command.key);
	out[0] = '\0';
	ck_assert_msg(
	    store_read(fixture->store, &command, &arena, &partitions, &err) == 0, "%s", err.text);
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, &err)) > 0) {
		if (row.row == NULL || (int32_t)load_u32(row.row->clustering[0].data) != ck)
			continue;
		for (uint32_t i = 0; i < row.row->cell_count; i++)
			if (slice_equal_string(row.row->cells[i].column->name, "v"))
				snprintf(out, 64, "%.*s", (int)row.row->cells[i].value.size,
				    (const char *)row.row->cells[i].value.data);
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	live_reader_fini(&reader);
	arena_fini(&arena);
}

static uint64_t
count_rows(struct fixture *fixture)
{
	struct arena arena;
	struct read_command command = {.table = fixture->table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1800000000};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row row;
	struct error err;
	uint64_t count = 0;
	int64_t last = INT64_MIN;
	int rc;

	arena_init(&arena, 4096);
	ck_assert_msg(
	    store_read(fixture->store, &command, &arena, &partitions, &err) == 0, "%s", err.text);
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, &err)) > 0) {
		ck_assert_int_ge(row.token, last);
		last = row.token;
		count++;
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	live_reader_fini(&reader);
	arena_fini(&arena);
	return count;
}

static void
flush(struct fixture *fixture)
{
	struct error err;

	ck_assert_msg(
	    store_flush(fixture->store, store_table(fixture->store, fixture->table), &err) == 0,
	    "%s", err.text);
}

static uint32_t
sstables(struct fixture *fixture)
{
	struct store_table_stats stats;

	store_table_stats(fixture->store, store_table(fixture->store, fixture->table), &stats);
	return stats.sstables;
}

START_TEST(test_rows_come_back_from_memtable_sstable_and_both)
{
	struct fixture fixture;
	char value[64];

	fixture_init(&fixture);
	for (int i = 0; i < 500; i++)
		insert(&fixture, i, i % 7, "first", 1000 + i);
	ck_assert_uint_eq(count_rows(&fixture), 500);
	flush(&fixture);
	ck_assert_uint_eq(sstables(&fixture), 1);
	ck_assert_uint_eq(count_rows(&fixture), 500);
	insert(&fixture, 3, 3, "second", 5000);
	insert(&fixture, 4, 4, NULL, 5000);
	insert(&fixture, 5, 5, "older", 1);
	lookup(&fixture, 3, 3, value);
	ck_assert_str_eq(value, "second");
	lookup(&fixture, 4, 4, value);
	ck_assert_str_eq(value, "");
	lookup(&fixture, 5, 5, value);
	ck_assert_str_eq(value, "first");
	ck_assert_uint_eq(count_rows(&fixture), 499);
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_unflushed_rows_are_replayed_and_flushed_ones_are_not_lost)
{
	struct fixture fixture;
	char value[64];

	fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		insert(&fixture, i, 0, "a", 1000);
	flush(&fixture);
	for (int i = 100; i < 200; i++)
		insert(&fixture, i, 0, "b", 1000);
	for (int round = 0; round < 3; round++) {
		fixture_close(&fixture);
		fixture_open(&fixture);
		ck_assert_uint_eq(count_rows(&fixture), 200);
		lookup(&fixture, 150, 0, value);
		ck_assert_str_eq(value, "b");
	}
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_compaction_leaves_one_table_with_the_same_rows)
{
	struct fixture fixture;
	struct error err;
	char value[64];

	fixture_init(&fixture);
	store_set_auto_compaction(fixture.store, store_table(fixture.store, fixture.table), false);
	for (int generation = 0; generation < 5; generation++) {
		for (int i = 0; i < 100; i++)
			insert(&fixture, i * (generation + 1) % 150, generation, "x",
			    1000 + generation);
		insert(&fixture, 7, 0, generation == 4 ? "last" : "early", 2000 + generation);
		flush(&fixture);
	}
	ck_assert_uint_eq(sstables(&fixture), 5);
	uint64_t before = count_rows(&fixture);
	ck_assert_msg(
	    store_compact(fixture.store, store_table(fixture.store, fixture.table), &err) == 0,
	    "%s", err.text);
	ck_assert_uint_eq(sstables(&fixture), 1);
	ck_assert_uint_eq(count_rows(&fixture), before);
	lookup(&fixture, 7, 0, value);
	ck_assert_str_eq(value, "last");
	fixture_close(&fixture);
	fixture_open(&fixture);
	ck_assert_uint_eq(sstables(&fixture), 1);
	ck_assert_uint_eq(count_rows(&fixture), before);
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_size_tiered_compaction_runs_by_itself_after_four_flushes)
{
	struct fixture fixture;
	int patience = 500;

	fixture_init(&fixture);
	for (int generation = 0; generation < 4; generation++) {
		for (int i = 0; i < 50; i++)
			insert(&fixture, i, generation, "x", 1000);
		flush(&fixture);
	}
	while (sstables(&fixture) != 1 && patience-- > 0)
		usleep(10000);
	ck_assert_uint_eq(sstables(&fixture), 1);
	ck_assert_uint_eq(count_rows(&fixture), 200);
	fixture_fini(&fixture);
}
END_TEST

/* What an SSTable says of the commit log of another node must not keep our records from being replayed. */
START_TEST(test_a_foreign_sstable_hides_no_record_of_our_log)
{
	struct fixture fixture;

	fixture_init(&fixture);
	fixture.host_id.bytes[0] = 1;
	fixture_close(&fixture);
	fixture_open(&fixture);
	for (int i = 0; i < 100; i++)
		insert(&fixture, i, 0, "a", 1000);
	flush(&fixture); /* the SSTable carries host id 1 and the stretch of the log */
	insert(&fixture, 100, 0, "b", 1000);
	fixture_quiet(&fixture);
	fixture_close(&fixture);
	fixture.host_id.bytes[0] = 2;
	fixture_open(&fixture);
	ck_assert_uint_eq(count_rows(&fixture), 101);
	/* Everything was applied once more, and is in a second table now. */
	ck_assert_uint_eq(sstables(&fixture), 2);
	fixture_fini(&fixture);
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
	struct fixture fixture;
	struct commitlog_position position = {0, 0};
	struct error err;

	fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		insert(&fixture, i, 0, "a", 1000);
	ck_assert_msg(store_truncate(fixture.store, store_table(fixture.store, fixture.table),
			  truncate_recorded, &position, &err) == 0,
	    "%s", err.text);
	ck_assert_int_ne(position.segment_id, 0);
	ck_assert_uint_eq(count_rows(&fixture), 0);
	insert(&fixture, 1, 1, "after", 2000);
	ck_assert_uint_eq(count_rows(&fixture), 1);

	fixture_quiet(&fixture);
	store_close(fixture.store);
	atomic_store(&fixture.table->user, NULL);
	struct store_executor executor = {fixture_submit, &fixture};
	ck_assert_int_eq(
	    store_open(&fixture.options, fixture.env, &executor, &fixture.store, &err), 0);
	ck_assert_int_eq(store_set_schema(fixture.store, fixture.schema, &err), 0);
	store_set_truncated(store_table(fixture.store, fixture.table), position);
	ck_assert_int_eq(store_replay(fixture.store, &err), 0);
	ck_assert_uint_eq(count_rows(&fixture), 1);
	fixture_fini(&fixture);
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
	struct fixture fixture;
	struct schema *without = make_schema(NULL);
	struct error err;
	uint32_t removed;
	int snapshots = 0;

	fixture_init(&fixture);
	for (int i = 0; i < 100; i++)
		insert(&fixture, i, 0, "a", 1000);
	ck_assert_msg(store_set_schema(fixture.store, without, &err) == 0, "%s", err.text);
	ck_assert_int_eq(store_list_snapshots(fixture.store, count_snapshot, &snapshots, &err), 0);
	ck_assert_int_eq(snapshots, 1);
	ck_assert_int_eq(store_clear_snapshots(fixture.store, NULL, NULL, &removed, &err), 0);
	ck_assert_uint_eq(removed, 1);
	/* The next start does not know the table: what the log has of it goes for good. */
	struct schema *with = fixture.schema;
	fixture_close(&fixture);
	fixture.schema = without;
	fixture_open(&fixture);
	fixture_close(&fixture);
	fixture.schema = with;
	fixture_open(&fixture);
	schema_unref(without);
	ck_assert_uint_eq(count_rows(&fixture), 0);
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_rows_written_before_a_column_was_added_are_still_read)
{
	struct fixture fixture;
	struct table_metadata *altered;
	struct schema *schema;
	struct error err;
	char value[64];

	fixture_init(&fixture);
	for (int i = 0; i < 50; i++)
		insert(&fixture, i, 0, "old", 1000);
	flush(&fixture);
	for (int i = 50; i < 100; i++)
		insert(&fixture, i, 0, "young", 1000);
	altered = make_table(&fixture.table->id, true);
	schema = make_schema(altered);
	ck_assert_msg(store_set_schema(fixture.store, schema, &err) == 0, "%s", err.text);
	table_unref(fixture.table);
	schema_unref(fixture.schema);
	fixture.table = altered;
	fixture.schema = schema;
	ck_assert_uint_eq(count_rows(&fixture), 100);
	insert(&fixture, 100, 0, "new", 1000);
	lookup(&fixture, 10, 0, value);
	ck_assert_str_eq(value, "old");
	lookup(&fixture, 60, 0, value);
	ck_assert_str_eq(value, "young");
	lookup(&fixture, 100, 0, value);
	ck_assert_str_eq(value, "new");
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_memory_over_the_budget_is_flushed_and_writes_go_on)
{
	struct fixture fixture;
	char text[2001];

	fixture_init(&fixture);
	fixture_close(&fixture);
	fixture.options.memtable_bytes = 8 << 20;
	fixture_open(&fixture);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 10000; i++)
		insert(&fixture, i, 0, text, 1000);
	ck_assert_uint_le(store_memtable_bytes(fixture.store), 9 << 20);
	ck_assert_uint_eq(count_rows(&fixture), 10000);
	fixture_fini(&fixture);
}
END_TEST

struct load {
	struct fixture *fixture;
	int first;
};

static void *
load_run(void *argument)
{
	struct load *load = argument;

	for (int i = 0; i < 2000; i++)
		insert(load->fixture, load->first + i, i % 3, "v", 1000);
	return NULL;
}

START_TEST(test_concurrent_writes_flushes_and_reads_lose_nothing)
{
	struct fixture fixture;
	struct load loads[3];
	pthread_t threads[3];

	fixture_init(&fixture);
	for (int i = 0; i < 3; i++) {
		loads[i] = (struct load){&fixture, i * 2000};
		pthread_create(&threads[i], NULL, load_run, &loads[i]);
	}
	for (int i = 0; i < 10; i++) {
		flush(&fixture);
		(void)count_rows(&fixture);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(count_rows(&fixture), 6000);
	fixture_close(&fixture);
	fixture_open(&fixture);
	ck_assert_uint_eq(count_rows(&fixture), 6000);
	fixture_fini(&fixture);
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
list_snapshots(struct fixture *fixture, const char *tag)
{
	struct listed listed = {.tag = tag};
	struct error err;

	ck_assert_int_eq(store_list_snapshots(fixture->store, listed_count, &listed, &err), 0);
	return listed;
}

START_TEST(test_a_snapshot_with_a_life_time_removes_itself_also_after_a_restart)
{
	struct fixture fixture;
	struct store_snapshot_options stays = {.tag = "stays"},
				      goes = {.tag = "goes", .ttl_seconds = 2};
	struct table_store *table;
	struct error err;
	int patience = 600;

	fixture_init(&fixture);
	insert(&fixture, 1, 1, "a", 1000);
	table = store_table(fixture.store, fixture.table);
	ck_assert_int_eq(store_snapshot(fixture.store, table, &stays, &err), 0);
	ck_assert_int_eq(store_snapshot(fixture.store, table, &goes, &err), 0);
	ck_assert_int_eq(list_snapshots(&fixture, "stays").expires_ms, 0);
	ck_assert_int_gt(list_snapshots(&fixture, "goes").expires_ms, 0);
	if (_i == 1) {
		fixture_close(&fixture);
		fixture_open(&fixture);
	}
	while (list_snapshots(&fixture, "goes").count > 0 && patience-- > 0)
		usleep(100000);
	ck_assert_uint_eq(list_snapshots(&fixture, "goes").count, 0);
	ck_assert_uint_eq(list_snapshots(&fixture, "stays").count, 1);
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_snapshot_without_a_flush_holds_what_is_on_disk)
{
	struct fixture fixture;
	struct store_snapshot_options options = {.tag = "s", .skip_flush = true};
	struct error err;

	fixture_init(&fixture);
	insert(&fixture, 1, 1, "a", 1000);
	ck_assert_int_eq(store_snapshot(fixture.store, store_table(fixture.store, fixture.table),
			     &options, &err),
	    0);
	ck_assert_uint_eq(sstables(&fixture), 0);
	ck_assert_uint_eq(list_snapshots(&fixture, "s").count, 1);
	fixture_fini(&fixture);
}
END_TEST

/* SSTables in the table's folder of a data directory, or in a folder below it. */
static uint32_t
count_data_files(struct fixture *fixture, const char *data, const char *below)
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
	struct fixture fixture;
	struct store_snapshot_options options = {.tag = "s"};
	struct table_store *table;
	uint32_t first, second;
	struct error err;
	int32_t key = 0;

	fixture_init(&fixture);
	fixture_close(&fixture);
	snprintf(fixture.more, sizeof(fixture.more), "%s/more", fixture.directory);
	fixture.directories[1] = fixture.more;
	fixture.options.data_directory_count = 2;
	fixture_open(&fixture);
	table = store_table(fixture.store, fixture.table);
	store_set_auto_compaction(fixture.store, table, false);
	store_set_incremental_backups(fixture.store, true);
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 10; k++)
			insert(&fixture, key++, 1, "value", 1000);
		flush(&fixture);
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

	fixture_close(&fixture);
	fixture_open(&fixture);
	ck_assert_uint_eq(count_rows(&fixture), 80);
	/* Inputs on both, one output; the transaction removes files on both. */
	table = store_table(fixture.store, fixture.table);
	ck_assert_msg(store_compact(fixture.store, table, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(count_rows(&fixture), 80);
	fixture_close(&fixture);
	ck_assert_uint_eq(count_data_files(&fixture, fixture.data, "") +
		count_data_files(&fixture, fixture.more, ""),
	    1);
	fixture_open(&fixture);
	ck_assert_uint_eq(count_rows(&fixture), 80);
	fixture_fini(&fixture);
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
