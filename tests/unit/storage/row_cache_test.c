/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/entry_cache.h"
#include "tests/unit/storage/store_fixture.h"

enum { CACHE_BYTES = 16 << 20 };

static void
cached_fixture_init(struct store_fixture *fixture, int32_t rows)
{
	store_fixture_init(fixture);
	store_fixture_close(fixture);
	fixture->table->options.caching_rows = rows;
	fixture->options.row_cache_bytes = CACHE_BYTES;
	store_fixture_open(fixture);
}

static struct store_cache_stats
cache_stats(struct store_fixture *fixture)
{
	struct store_cache_stats stats;

	store_row_cache_stats(fixture->store, &stats);
	return stats;
}

START_TEST(test_a_second_read_is_a_hit_until_the_partition_is_written)
{
	struct store_fixture fixture;
	char value[64];

	cached_fixture_init(&fixture, CACHING_ROWS_ALL);
	store_fixture_insert(&fixture, 1, 1, "a", 1000);
	store_fixture_insert(&fixture, 2, 1, "other", 1000);
	for (int i = 0; i < 3; i++) {
		store_fixture_lookup(&fixture, 1, 1, value);
		ck_assert_str_eq(value, "a");
		store_fixture_lookup(&fixture, 2, 1, value);
		ck_assert_str_eq(value, "other");
	}
	ck_assert_uint_eq(cache_stats(&fixture).hits, 4);
	ck_assert_uint_eq(cache_stats(&fixture).requests, 6);
	ck_assert_uint_eq(cache_stats(&fixture).entries, 2);
	store_fixture_insert(&fixture, 1, 1, "b", 2000);
	ck_assert_uint_eq(cache_stats(&fixture).entries, 1);
	store_fixture_lookup(&fixture, 1, 1, value);
	ck_assert_str_eq(value, "b");
	/* A partition that is not there is known as well. */
	for (int i = 0; i < 2; i++) {
		store_fixture_lookup(&fixture, 3, 1, value);
		ck_assert_str_eq(value, "");
	}
	ck_assert_uint_eq(cache_stats(&fixture).hits, 5);
	store_invalidate_row_cache(fixture.store);
	ck_assert_uint_eq(cache_stats(&fixture).entries, 0);
	ck_assert_uint_eq(cache_stats(&fixture).size_bytes, 0);
	store_fixture_fini(&fixture);
}
END_TEST

START_TEST(test_nothing_is_cached_where_the_table_or_the_node_says_so)
{
	struct store_fixture fixture;
	char value[64];

	cached_fixture_init(&fixture, _i == 0 ? CACHING_ROWS_NONE : CACHING_ROWS_ALL);
	if (_i == 1)
		store_set_cache_capacity(fixture.store, 1 << 20, 0, 0);
	store_fixture_insert(&fixture, 1, 1, "a", 1000);
	for (int i = 0; i < 3; i++)
		store_fixture_lookup(&fixture, 1, 1, value);
	ck_assert_str_eq(value, "a");
	ck_assert_uint_eq(cache_stats(&fixture).requests, 0);
	ck_assert_uint_eq(cache_stats(&fixture).entries, 0);
	store_fixture_fini(&fixture);
}
END_TEST

static int
truncated(
    void *context, struct table_store *table, struct commitlog_position position, struct error *err)
{
	(void)context;
	(void)table;
	(void)position;
	(void)err;
	return 0;
}

START_TEST(test_a_truncated_table_is_empty_although_it_was_cached)
{
	struct store_fixture fixture;
	struct error err;
	char value[64];

	cached_fixture_init(&fixture, CACHING_ROWS_ALL);
	store_fixture_insert(&fixture, 1, 1, "a", 1000);
	store_fixture_lookup(&fixture, 1, 1, value);
	ck_assert_int_eq(store_truncate(fixture.store, store_table(fixture.store, fixture.table),
			     truncated, NULL, &err),
	    0);
	store_fixture_lookup(&fixture, 1, 1, value);
	ck_assert_str_eq(value, "");
	store_fixture_fini(&fixture);
}
END_TEST

/* ---- cached and uncached reads give the same ------------------------------------------------------- */

enum { MODEL_ROWS = 40 };

static struct clustering_slice
random_slice(const struct table_metadata *table, unsigned *seed, struct arena *arena)
{
	struct clustering_slice slice = {slice_null, slice_null};
	uint8_t *bytes = arena_alloc(arena, 8);
	int low = rand_r(seed) % MODEL_ROWS, high = low + rand_r(seed) % 8;
	struct slice value;

	store_u32(bytes, (uint32_t)low);
	store_u32(bytes + 4, (uint32_t)high);
	if (rand_r(seed) % 4 != 0) {
		value = slice_of(bytes, 4);
		slice.start = position_make(table,
		    rand_r(seed) % 2 == 0 ? BOUND_INCL_START : BOUND_EXCL_START, &value, 1, arena);
	}
	if (rand_r(seed) % 4 != 0) {
		value = slice_of(bytes + 4, 4);
		slice.end = position_make(table,
		    rand_r(seed) % 2 == 0 ? BOUND_INCL_END : BOUND_EXCL_END, &value, 1, arena);
	}
	return slice;
}

/* What a client would see of a random read, as text. */
static void
read_text(struct store_fixture *fixture, unsigned seed, struct buffer *out)
{
	struct clustering_slice slice;
	uint8_t key[4], after[4];
	struct read_command command = {.table = fixture->table,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1800000000};
	struct partition_iterator *partitions;
	struct live_reader reader;
	struct live_row row;
	struct arena arena;
	struct error err;
	int rc;

	arena_init(&arena, 4096);
	store_u32(key, 1);
	command.key = slice_of(key, 4);
	command.token = murmur3_token(command.key);
	command.clustering.is_reversed = rand_r(&seed) % 3 == 0;
	if (rand_r(&seed) % 3 != 0) {
		slice = random_slice(fixture->table, &seed, &arena);
		command.clustering.slices = &slice;
		command.clustering.slice_count = 1;
	}
	if (rand_r(&seed) % 2 == 0)
		command.row_limit = (uint32_t)(1 + rand_r(&seed) % 6);
	if (rand_r(&seed) % 4 == 0) {
		struct slice value = slice_of(after, 4);

		store_u32(after, (uint32_t)(rand_r(&seed) % MODEL_ROWS));
		command.after_position =
		    position_make(fixture->table, BOUND_CLUSTERING, &value, 1, &arena);
	}
	buffer_clear(out);
	ck_assert_msg(
	    store_read(fixture->store, &command, &arena, &partitions, &err) == 0, "%s", err.text);
	live_reader_init(&reader, &command, partitions, &arena);
	while ((rc = live_reader_next(&reader, &row, &err)) > 0) {
		buffer_printf(out, "%u=", load_u32(row.row->clustering[0].data));
		for (uint32_t i = 0; i < row.row->cell_count; i++)
			buffer_put(out, row.row->cells[i].value.data, row.row->cells[i].value.size);
		buffer_printf(out, " ");
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	buffer_put_u8(out, 0);
	live_reader_fini(&reader);
	arena_fini(&arena);
}

static void
write_done(struct store_write *write, const struct error *err)
{
	ck_assert(err == NULL);
	atomic_fetch_add((atomic_int *)write->context, 1);
}

/* DELETE FROM t WHERE pk = 1 AND ck >= low AND ck < high; high 0: the whole partition. */
static void
delete_range(struct store_fixture *fixture, int32_t low, int32_t high, int64_t timestamp)
{
	struct arena arena;
	uint8_t key[4], bounds[8];
	struct slice start = slice_of(bounds, 4), end = slice_of(bounds + 4, 4);
	struct range_tombstone tombstone = {.start_kind = BOUND_INCL_START,
	    .end_kind = BOUND_EXCL_END,
	    .start_count = 1,
	    .end_count = 1,
	    .start = &start,
	    .end = &end,
	    .deletion = {timestamp, 1700000000}};
	struct partition_update update;
	struct mutation mutation;
	struct update_builder *builder;
	atomic_int done = 0;
	struct store_write write = {
	    .mutation = &mutation, .is_durable = true, .on_done = write_done, .context = &done};
	struct error err;

	arena_init(&arena, 4096);
	store_u32(key, 1);
	store_u32(bounds, (uint32_t)low);
	store_u32(bounds + 4, (uint32_t)high);
	builder = update_builder_new(fixture->table, slice_of(key, 4), &arena);
	if (high == 0)
		update_builder_delete_partition(builder, tombstone.deletion);
	else
		ck_assert_int_eq(update_builder_delete_range(builder, &tombstone, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation = (struct mutation){.keyspace = "ks",
	    .key = slice_of(key, 4),
	    .token = murmur3_token(slice_of(key, 4)),
	    .update_count = 1,
	    .updates = &update};
	store_apply(fixture->store, &write);
	while (atomic_load(&done) == 0)
		usleep(100);
	arena_fini(&arena);
}

static void
change_something(struct store_fixture *fixture, unsigned *seed, int64_t timestamp)
{
	int32_t ck = rand_r(seed) % MODEL_ROWS;
	char value[16];

	snprintf(value, sizeof(value), "v%d", (int)timestamp);
	switch (rand_r(seed) % 20) {
	case 0:
		delete_range(fixture, ck, ck + 1 + rand_r(seed) % 10, timestamp);
		break;
	case 1:
		if (rand_r(seed) % 5 == 0)
			delete_range(fixture, 0, 0, timestamp);
		break;
	case 2:
	case 3:
		store_fixture_insert(fixture, 1, ck, NULL, timestamp);
		break;
	case 4:
		store_fixture_flush(fixture);
		break;
	default:
		store_fixture_insert(fixture, 1, ck, value, timestamp);
		break;
	}
}

/* Every read first through the cache, perhaps filling it, then from it, then without it. */
START_TEST(test_random_reads_are_the_same_with_and_without_the_cache)
{
	static const int32_t rows[] = {1, 5, MODEL_ROWS / 2, CACHING_ROWS_ALL};
	struct store_fixture fixture;
	struct buffer first, second, without;
	unsigned seed = (unsigned)_i + 1;

	cached_fixture_init(&fixture, rows[_i]);
	buffer_init(&first);
	buffer_init(&second);
	buffer_init(&without);
	for (int i = 0; i < 600; i++) {
		change_something(&fixture, &seed, 1000 + i);
		for (int k = 0; k < 4; k++) {
			unsigned read_seed = (unsigned)rand_r(&seed);

			read_text(&fixture, read_seed, &first);
			read_text(&fixture, read_seed, &second);
			store_set_cache_capacity(fixture.store, 1 << 20, 0, 0);
			read_text(&fixture, read_seed, &without);
			store_set_cache_capacity(fixture.store, 1 << 20, CACHE_BYTES, 0);
			ck_assert_str_eq((const char *)first.data, (const char *)without.data);
			ck_assert_str_eq((const char *)second.data, (const char *)without.data);
		}
	}
	ck_assert_uint_gt(cache_stats(&fixture).hits, 100);
	buffer_fini(&first);
	buffer_fini(&second);
	buffer_fini(&without);
	store_fixture_fini(&fixture);
}
END_TEST

/* ---- nothing stale ------------------------------------------------------------------------------------- */

enum { STALE_KEYS = 4, STALE_WRITERS = 3, STALE_READERS = 3 };

struct stale {
	struct store_fixture fixture;
	atomic_int sent[STALE_KEYS][STALE_WRITERS], acked[STALE_KEYS][STALE_WRITERS];
	atomic_bool is_over;
};

struct stale_thread {
	struct stale *stale;
	int number;
};

/* Writer n owns row n of every partition: versions go up. */
static void *
stale_write(void *argument)
{
	struct stale_thread *thread = argument;
	struct stale *stale = thread->stale;

	for (int version = 1; !atomic_load(&stale->is_over); version++) {
		int key = version % STALE_KEYS;
		char value[16];

		snprintf(value, sizeof(value), "%d", version);
		store_fixture_insert(&stale->fixture, key, thread->number, value, version);
		atomic_store(&stale->acked[key][thread->number], version);
	}
	return NULL;
}

static void *
stale_read(void *argument)
{
	struct stale_thread *thread = argument;
	struct stale *stale = thread->stale;
	unsigned seed = (unsigned)thread->number + 77;

	while (!atomic_load(&stale->is_over)) {
		int key = rand_r(&seed) % STALE_KEYS, row = rand_r(&seed) % STALE_WRITERS;
		int acked = atomic_load(&stale->acked[key][row]);
		char value[64];

		store_fixture_lookup(&stale->fixture, key, row, value);
		ck_assert_msg(atoi(value) >= acked, "row %d of %d: %s after %d was acknowledged",
		    row, key, value, acked);
	}
	return NULL;
}

START_TEST(test_a_read_sees_every_acknowledged_write_while_others_write_and_flush)
{
	struct stale *stale = xzalloc(sizeof(*stale));
	struct stale_thread threads[STALE_WRITERS + STALE_READERS];
	pthread_t ids[STALE_WRITERS + STALE_READERS];
	struct error err;

	cached_fixture_init(&stale->fixture, CACHING_ROWS_ALL);
	for (int i = 0; i < STALE_WRITERS + STALE_READERS; i++) {
		threads[i] =
		    (struct stale_thread){stale, i < STALE_WRITERS ? i : i - STALE_WRITERS};
		ck_assert_int_eq(pthread_create(&ids[i], NULL,
				     i < STALE_WRITERS ? stale_write : stale_read, &threads[i]),
		    0);
	}
	for (int i = 0; i < 20; i++) {
		usleep(20000);
		store_fixture_flush(&stale->fixture);
		if (i % 5 == 4)
			ck_assert_int_eq(
			    store_compact(stale->fixture.store,
				store_table(stale->fixture.store, stale->fixture.table), &err),
			    0);
	}
	atomic_store(&stale->is_over, true);
	for (int i = 0; i < STALE_WRITERS + STALE_READERS; i++)
		pthread_join(ids[i], NULL);
	ck_assert_uint_gt(cache_stats(&stale->fixture).hits, 0);
	store_fixture_fini(&stale->fixture);
	free(stale);
}
END_TEST

/* ---- the cache itself ------------------------------------------------------------------------------------ */

START_TEST(test_a_promise_that_was_removed_is_not_fulfilled)
{
	struct entry_cache *cache = entry_cache_new("test", 90, 1 << 20);
	struct slice key = slice_of_string("key");
	struct cached *promise, *other, *found;

	found = entry_cache_get_or_promise(cache, 1, key, 7, &promise);
	ck_assert_ptr_null(found);
	ck_assert_ptr_nonnull(promise);
	/* Somebody else reads meanwhile: neither a value nor a promise of its own. */
	found = entry_cache_get_or_promise(cache, 1, key, 7, &other);
	ck_assert_ptr_null(found);
	ck_assert_ptr_null(other);
	if (_i == 1)
		entry_cache_remove(cache, 1, key, 7);
	entry_cache_fulfil(cache, promise, entry_cache_make(1, key, 7, 8));
	found = entry_cache_get(cache, 1, key, 7);
	ck_assert((found != NULL) == (_i == 0));
	/* Another owner does not see it. */
	ck_assert_ptr_null(entry_cache_get(cache, 2, key, 7));
	/* What is in use outlives its place in the cache. */
	entry_cache_clear(cache);
	if (found != NULL)
		ck_assert(slice_equal_string(cached_key(found), "key"));
	cached_unref(found);
	entry_cache_free(cache);
}
END_TEST

START_TEST(test_the_cache_holds_no_more_than_its_capacity)
{
	struct entry_cache *cache = entry_cache_new("test", 90, 256 << 10);
	struct entry_cache_stats stats;
	uint64_t found = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		uint8_t key[4];
		struct cached *promise;

		store_u32(key, i);
		ck_assert_ptr_null(entry_cache_get_or_promise(
		    cache, 1, slice_of(key, 4), i * UINT64_C(0x9e3779b97f4a7c15), &promise));
		entry_cache_fulfil(cache, promise,
		    entry_cache_make(1, slice_of(key, 4), i * UINT64_C(0x9e3779b97f4a7c15), 100));
	}
	entry_cache_stats(cache, &stats);
	ck_assert_uint_le(stats.bytes, 256 << 10);
	ck_assert_uint_gt(stats.entries, 500);
	for (uint32_t i = 0; i < 10000; i++) {
		uint8_t key[4];
		struct cached *entry;

		store_u32(key, i);
		entry =
		    entry_cache_get(cache, 1, slice_of(key, 4), i * UINT64_C(0x9e3779b97f4a7c15));
		found += entry != NULL;
		cached_unref(entry);
	}
	ck_assert_uint_eq(found, stats.entries);
	entry_cache_set_capacity(cache, 0);
	entry_cache_stats(cache, &stats);
	ck_assert_uint_eq(stats.entries, 0);
	entry_cache_free(cache);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("row_cache");
	TCase *tcase = tcase_create("row_cache");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_a_second_read_is_a_hit_until_the_partition_is_written);
	tcase_add_loop_test(
	    tcase, test_nothing_is_cached_where_the_table_or_the_node_says_so, 0, 2);
	tcase_add_test(tcase, test_a_truncated_table_is_empty_although_it_was_cached);
	tcase_add_loop_test(tcase, test_random_reads_are_the_same_with_and_without_the_cache, 0, 4);
	tcase_add_test(
	    tcase, test_a_read_sees_every_acknowledged_write_while_others_write_and_flush);
	tcase_add_loop_test(tcase, test_a_promise_that_was_removed_is_not_fulfilled, 0, 2);
	tcase_add_test(tcase, test_the_cache_holds_no_more_than_its_capacity);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
