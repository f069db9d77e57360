/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include "base/hash.h"
#include "storage/memtable.h"
#include "tests/unit/storage/facts.h"

/*
 * Memory of what was replaced in a memtable is used again, and never under the eyes of a reader.
 */

struct test_threads {
	struct memtable *memtable;
	const struct table_metadata *table;
	atomic_int writers;
};

static struct read_command
test_command(const struct table_metadata *table, struct slice key)
{
	return (struct read_command){
	    .table = table,
	    .key = key,
	    .token = murmur3_token(key),
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	};
}

/* A row of five values of `size` bytes, all of them `value`. */
static void
test_put(struct memtable *memtable, const struct table_metadata *table, uint32_t number,
    int64_t timestamp, uint8_t value, size_t size, struct arena *arena)
{
	uint8_t key[4], *bytes = arena_alloc_bytes(arena, size);
	struct cell cells[5];
	struct row row = {
	    .liveness = {timestamp, TTL_NONE, LOCAL_DELETION_TIME_NONE},
	    .deletion = DELETION_LIVE,
	    .cell_count = 5,
	    .cells = cells,
	};
	struct partition_update update;
	struct update_builder *builder;
	struct error err;

	store_u32(key, number);
	memset(bytes, value, size);
	for (uint32_t i = 0; i < 5; i++)
		cells[i] = (struct cell){&table->regulars[i], timestamp, TTL_NONE,
		    LOCAL_DELETION_TIME_NONE, slice_null, slice_of(bytes, size)};
	builder = update_builder_new(table, slice_of(key, 4), arena);
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
	arena_reset(arena);
}

enum { REUSE_ROWS = 64, REUSE_SIZE_MAX = 600 };

/* What a read of partition `number` finds: size and value of its row's cells. */
struct test_held {
	struct unfiltered_iterator *iterator;
	struct memtable_hold *holds;
	struct row row;
};

static void
test_hold_row(struct memtable *memtable, const struct table_metadata *table, uint32_t number,
    struct arena *arena, struct test_held *held)
{
	uint8_t key[4];
	struct read_command command;
	struct unfiltered unfiltered;
	struct error err;

	store_u32(key, number);
	command = test_command(table, slice_of(key, 4));
	held->holds = NULL;
	ck_assert_int_eq(
	    memtable_read(memtable, &command, arena, &held->holds, &held->iterator, &err), 0);
	ck_assert_int_eq(unfiltered_iterator_next(held->iterator, &unfiltered, &err), 1);
	held->row = unfiltered.row;
}

static void
test_check_held(const struct test_held *held, uint8_t value, size_t size)
{
	for (uint32_t i = 0; i < held->row.cell_count; i++) {
		struct slice got = held->row.cells[i].value;
		size_t right = 0;

		while (right < got.size && got.data[right] == value)
			right++;
		if (got.size != size || right != size)
			ck_abort_msg("%zu of %zu bytes are %u", right, size, value);
	}
}

static void
test_let_go(struct test_held *held)
{
	unfiltered_iterator_close(held->iterator);
	memtable_release(held->holds);
	held->iterator = NULL;
}

static size_t
test_reuse_size(struct random *random, bool is_even)
{
	return is_even ? 34 : 1 + random_below(random, REUSE_SIZE_MAX);
}

/* Rows that are written again and again, with nobody reading, or readers that come and go. */
static void
test_reuse(bool is_even, int readers)
{
	struct table_metadata *table = facts_lone_table();
	struct memtable *memtable = memtable_new(table, 2, NULL);
	struct random random = {11};
	struct test_held held[4] = {0};
	uint8_t held_value[4];
	size_t held_size[4], size[REUSE_ROWS];
	struct arena arena, held_arena;
	uint64_t written = 0;

	arena_init(&arena, 4096);
	arena_init(&held_arena, 4096);
	for (uint32_t i = 0; i < 400 * REUSE_ROWS; i++) {
		uint32_t row = i < REUSE_ROWS ? i : random_below(&random, REUSE_ROWS);
		int reader = (int)random_below(&random, 4);

		size[row] = test_reuse_size(&random, is_even);
		test_put(memtable, table, row, i + 1, (uint8_t)i, size[row], &arena);
		if (reader < readers) {
			if (held[reader].iterator != NULL) {
				test_check_held(
				    &held[reader], held_value[reader], held_size[reader]);
				test_let_go(&held[reader]);
			} else {
				test_hold_row(memtable, table, row, &held_arena, &held[reader]);
				held_value[reader] = (uint8_t)i;
				held_size[reader] = size[row];
			}
		}
		written += 5 * size[row];
	}
	/* Some is lost to sizes that nobody wants any more, where they vary. */
	ck_assert_uint_le(memtable_bytes(memtable), written / 20);
	for (int i = 0; i < readers; i++)
		if (held[i].iterator != NULL)
			test_let_go(&held[i]);
	for (uint32_t i = 0; i < REUSE_ROWS; i++) {
		test_hold_row(memtable, table, i, &held_arena, &held[0]);
		ck_assert_uint_eq(held[0].row.cells[0].value.size, size[i]);
		test_let_go(&held[0]);
	}
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
	arena_fini(&held_arena);
}

START_TEST(test_memory_of_replaced_rows_is_used_again)
{
	test_reuse(true, 0);
	test_reuse(false, 0);
	test_reuse(true, 3);
	test_reuse(false, 3);
}
END_TEST

/* As long as it stays, all that it might look at is kept; then there is no end of what one can write. */
START_TEST(test_a_reader_that_stays_keeps_everything)
{
	struct table_metadata *table = facts_lone_table();
	struct memtable *memtable = memtable_new(table, 1, NULL);
	struct arena arena, held_arena;
	struct test_held held[REUSE_ROWS];
	uint64_t bytes;

	arena_init(&arena, 4096);
	arena_init(&held_arena, 4096);
	for (uint32_t i = 0; i < REUSE_ROWS; i++)
		test_put(memtable, table, i, 1, (uint8_t)i, 34, &arena);
	for (uint32_t i = 0; i < REUSE_ROWS; i++)
		test_hold_row(memtable, table, i, &held_arena, &held[i]);
	for (int64_t time = 2; time < 50; time++)
		for (uint32_t i = 0; i < REUSE_ROWS; i++)
			test_put(memtable, table, i, time, 0xee, 34, &arena);
	for (uint32_t i = 0; i < REUSE_ROWS; i++) {
		test_check_held(&held[i], (uint8_t)i, 34);
		test_let_go(&held[i]);
	}
	for (uint32_t i = 0; i < REUSE_ROWS; i++)
		test_put(memtable, table, i, 50, 0xef, 34, &arena);
	bytes = memtable_bytes(memtable);
	for (int64_t time = 51; time < 1000; time++)
		for (uint32_t i = 0; i < REUSE_ROWS; i++)
			test_put(memtable, table, i, time, (uint8_t)time, 34, &arena);
	ck_assert_uint_eq(memtable_bytes(memtable), bytes);
	for (uint32_t i = 0; i < REUSE_ROWS; i++) {
		test_hold_row(memtable, table, i, &held_arena, &held[i]);
		test_check_held(&held[i], (uint8_t)999, 34);
		test_let_go(&held[i]);
	}
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
	arena_fini(&held_arena);
}
END_TEST

/* Rows and static rows of wide partitions, deleted partitions. */
START_TEST(test_wide_and_deleted_partitions_stay_small)
{
	struct facts facts;
	struct table_metadata *lone = facts_lone_table();
	struct memtable *wide_rows, *lone_rows = memtable_new(lone, 1, NULL);
	struct random random = {5};
	struct partition_update update;
	uint64_t bytes = 0;
	struct error err;

	facts_init(&facts);
	wide_rows = memtable_new(facts.table, 1, NULL);
	facts_generate(&facts, &random, 60);
	for (int round = 0; round < 3000; round++) {
		uint64_t which = 0;

		/* Ranges are folded in the arena: not these. */
		for (uint32_t i = 0; i < facts.count; i++)
			if (facts.facts[i].kind != FACT_RANGE && random_below(&random, 2) == 0)
				which |= UINT64_C(1) << i;
		facts_update(&facts, which, &update);
		ck_assert_int_eq(memtable_apply(wide_rows, &update, &err), 0);
		if (round == 300)
			bytes = memtable_bytes(wide_rows);
	}
	ck_assert_uint_eq(memtable_bytes(wide_rows), bytes);
	for (int64_t time = 1; time < 20000; time++) {
		struct partition_update deletion = {
		    .table = lone,
		    .key = slice_of("key!", 4),
		    .token = murmur3_token(slice_of("key!", 4)),
		    .deletion = {time, 100},
		};

		ck_assert_int_eq(memtable_apply(lone_rows, &deletion, &err), 0);
		if (time == 10)
			bytes = memtable_bytes(lone_rows);
	}
	ck_assert_uint_eq(memtable_bytes(lone_rows), bytes);
	memtable_unref(wide_rows);
	memtable_unref(lone_rows);
	table_unref(lone);
	facts_fini(&facts);
}
END_TEST

static void *
test_reuse_writer(void *argument)
{
	struct test_threads *threads = argument;
	struct random random = {(uint64_t)(uintptr_t)&random};
	struct arena arena;

	arena_init(&arena, 4096);
	for (uint32_t i = 0; i < 4000; i++) {
		uint8_t value = (uint8_t)random_below(&random, 256);

		/* The size goes with the value, so that a mixture is seen. */
		test_put(threads->memtable, threads->table, random_below(&random, REUSE_ROWS), i,
		    value, 1 + 2 * (size_t)value, &arena);
	}
	arena_fini(&arena);
	atomic_fetch_sub(&threads->writers, 1);
	return NULL;
}

static void *
test_reuse_reader(void *argument)
{
	struct test_threads *threads = argument;
	struct random random = {(uint64_t)(uintptr_t)&random};
	struct arena arena;

	arena_init(&arena, 4096);
	while (atomic_load(&threads->writers) != 0) {
		struct test_held held[3];
		uint32_t count = 1 + random_below(&random, 3);

		for (uint32_t i = 0; i < count; i++)
			test_hold_row(threads->memtable, threads->table,
			    random_below(&random, REUSE_ROWS), &arena, &held[i]);
		for (uint32_t i = 0; i < count; i++) {
			uint8_t value = held[i].row.cells[0].value.data[0];

			test_check_held(&held[i], value, 1 + 2 * (size_t)value);
			test_let_go(&held[i]);
		}
		arena_reset(&arena);
	}
	arena_fini(&arena);
	return NULL;
}

START_TEST(test_readers_see_whole_rows_while_memory_is_used_again)
{
	struct table_metadata *table = facts_lone_table();
	struct test_threads threads = {memtable_new(table, 2, NULL), table, 2};
	struct arena arena;
	pthread_t ids[4];

	arena_init(&arena, 4096);
	for (uint32_t i = 0; i < REUSE_ROWS; i++)
		test_put(threads.memtable, table, i, 0, 5, 11, &arena);
	for (int i = 0; i < 4; i++)
		pthread_create(
		    &ids[i], NULL, i < 2 ? test_reuse_writer : test_reuse_reader, &threads);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	memtable_unref(threads.memtable);
	table_unref(table);
	arena_fini(&arena);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("memtable_space");
	TCase *tcase = tcase_create("memtable_space"), *threads = tcase_create("threads");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_memory_of_replaced_rows_is_used_again);
	tcase_add_test(tcase, test_a_reader_that_stays_keeps_everything);
	tcase_add_test(tcase, test_wide_and_deleted_partitions_stay_small);
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(threads, 300);
	tcase_add_test(threads, test_readers_see_whole_rows_while_memory_is_used_again);
	suite_add_tcase(suite, threads);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
