/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/storage/store_fixture.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "tests/memory/allocation.h"

struct work {
	struct store_fixture *fixture;
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

bool
store_fixture_submit(void *context, const char *stage, store_work_fn function, void *argument)
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

void
store_fixture_quiet(struct store_fixture *fixture)
{
	while (atomic_load(&fixture->running) > 0)
		usleep(1000);
}

struct table_metadata *
store_fixture_table(const struct uuid *id, bool with_extra)
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

struct schema *
store_fixture_schema(const struct table_metadata *table)
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

void
store_fixture_open(struct store_fixture *fixture)
{
	struct store_executor executor = {store_fixture_submit, fixture};
	struct error err;

	ck_assert_msg(
	    store_open(&fixture->options, fixture->env, &executor, &fixture->store, &err) == 0,
	    "%s", err.text);
	ck_assert_msg(store_set_schema(fixture->store, fixture->schema, &err) == 0, "%s", err.text);
	store_set_host_id(fixture->store, &fixture->host_id);
	ck_assert_msg(store_replay(fixture->store, &err) == 0, "%s", err.text);
}

void
store_fixture_close(struct store_fixture *fixture)
{
	store_fixture_quiet(fixture);
	store_close(fixture->store);
	/* The next store hands out its own handles. */
	atomic_store(&fixture->table->user, NULL);
}

void
store_fixture_init(struct store_fixture *fixture)
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
	fixture->table = store_fixture_table(&id, false);
	fixture->schema = store_fixture_schema(fixture->table);
	store_fixture_open(fixture);
}

void
store_fixture_fini(struct store_fixture *fixture)
{
	store_fixture_close(fixture);
	schema_unref(fixture->schema);
	table_unref(fixture->table);
	files_remove_tree(fixture->env->files, fixture->directory, NULL);
	env_free(fixture->env);
}

struct fixture_write {
	atomic_int done;
	bool has_failed;
	struct error err;
};

static void
write_done(struct store_write *write, const struct error *err)
{
	struct fixture_write *result = write->context;

	result->has_failed = err != NULL;
	if (err != NULL)
		result->err = *err;
	atomic_store(&result->done, 1);
}

static void
put_int(uint8_t out[4], int32_t value)
{
	store_u32(out, (uint32_t)value);
}

/* INSERT INTO t (pk, ck, v); a NULL v deletes the row. */
int
store_fixture_try_insert(struct store_fixture *fixture, int32_t pk, int32_t ck, const char *v,
    int64_t timestamp, struct error *err)
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
	struct fixture_write result = {.done = 0};

	allocation_suspend(true);
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
	ck_assert_int_eq(update_builder_add_row(builder, &row, err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, err), 0);
	mutation = (struct mutation){.keyspace = "ks",
	    .key = slice_of(key, 4),
	    .token = murmur3_token(slice_of(key, 4)),
	    .update_count = 1,
	    .updates = &update};
	write.context = &result;
	allocation_suspend(false);
	store_apply(fixture->store, &write);
	while (atomic_load(&result.done) == 0)
		usleep(100);
	arena_fini(&arena);
	if (!result.has_failed)
		return 0;
	*err = result.err;
	return -1;
}

void
store_fixture_insert(
    struct store_fixture *fixture, int32_t pk, int32_t ck, const char *v, int64_t timestamp)
{
	struct error err;

	ck_assert_msg(
	    store_fixture_try_insert(fixture, pk, ck, v, timestamp, &err) == 0, "%s", err.text);
}

int
store_fixture_try_lookup(
    struct store_fixture *fixture, int32_t pk, int32_t ck, char out[64], struct error *err)
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
	int rc;

	arena_init(&arena, 4096);
	put_int(key, pk);
	command.key = slice_of(key, 4);
	command.token = murmur3_token(command.key);
	out[0] = '\0';
	if (store_read(fixture->store, &command, &arena, &partitions, err) != 0) {
		arena_fini(&arena);
		return -1;
	}
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, err)) > 0) {
		if (row.row == NULL || (int32_t)load_u32(row.row->clustering[0].data) != ck)
			continue;
		for (uint32_t i = 0; i < row.row->cell_count; i++)
			if (slice_equal_string(row.row->cells[i].column->name, "v"))
				snprintf(out, 64, "%.*s", (int)row.row->cells[i].value.size,
				    (const char *)row.row->cells[i].value.data);
	}
	live_reader_fini(&reader);
	arena_fini(&arena);
	return rc;
}

/* Value of one row, "" when there is none. */
void
store_fixture_lookup(struct store_fixture *fixture, int32_t pk, int32_t ck, char out[64])
{
	struct error err;

	ck_assert_msg(store_fixture_try_lookup(fixture, pk, ck, out, &err) == 0, "%s", err.text);
}

uint64_t
store_fixture_count(struct store_fixture *fixture)
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

void
store_fixture_flush(struct store_fixture *fixture)
{
	struct error err;

	ck_assert_msg(
	    store_flush(fixture->store, store_table(fixture->store, fixture->table), &err) == 0,
	    "%s", err.text);
}

uint32_t
store_fixture_sstables(struct store_fixture *fixture)
{
	struct store_table_stats stats;

	store_table_stats(fixture->store, store_table(fixture->store, fixture->table), &stats);
	return stats.sstables;
}
