/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/memtable.h"
#include "storage/memtable_tree.h"
#include "tests/unit/storage/facts.h"

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

/* ---- the tree ----------------------------------------------------------------------------------- */

static void
test_tree_walk(const struct memtable_tree *tree, uint64_t count)
{
	struct memtable_cursor cursor;
	uint64_t seen = 0;
	uint64_t prefix = 0;
	struct slice key = slice_null;

	for (memtable_cursor_first(&cursor, tree); cursor.entry != NULL;
	     memtable_cursor_next(&cursor)) {
		if (seen++ != 0)
			ck_assert(cursor.prefix > prefix ||
			    (cursor.prefix == prefix &&
				slice_compare(memtable_entry_key(cursor.entry), key) > 0));
		prefix = cursor.prefix;
		key = memtable_entry_key(cursor.entry);
	}
	ck_assert_uint_eq(seen, count);
	for (memtable_cursor_last(&cursor, tree); cursor.entry != NULL;
	     memtable_cursor_previous(&cursor))
		seen--;
	ck_assert_uint_eq(seen, 0);
}

/* Prefixes that repeat make the key decide; `order` 0 random, 1 ascending, 2 descending. */
static void
test_tree(uint64_t seed, uint32_t count, uint32_t prefixes, int order)
{
	struct random random = {seed};
	struct memtable_tree tree = {0};
	struct arena arena;
	uint64_t inserted = 0;

	arena_init(&arena, 65536);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = order == 0 ? random_below(&random, count)
		    : order == 1             ? i
					     : count - i;
		uint8_t key[4];
		bool is_new;
		struct memtable_entry *entry;

		store_u32(key, number);
		entry = memtable_tree_put(
		    &tree, &arena, number * (uint64_t)prefixes / count, slice_of(key, 4), &is_new);
		ck_assert_ptr_nonnull(entry);
		ck_assert(is_new == (entry->content == NULL));
		entry->content = entry;
		inserted += is_new;
	}
	ck_assert_uint_eq(tree.count, inserted);
	test_tree_walk(&tree, inserted);
	for (uint32_t i = 0; i < count; i++) {
		struct memtable_cursor cursor, before;
		struct memtable_entry *found;
		uint64_t prefix = i * (uint64_t)prefixes / count;
		uint8_t key[4];

		store_u32(key, i);
		found = memtable_tree_find(&tree, prefix, slice_of(key, 4));
		memtable_cursor_seek(&cursor, &tree, prefix, slice_of(key, 4), false);
		memtable_cursor_seek_before(&before, &tree, prefix, slice_of(key, 4));
		if (found != NULL)
			ck_assert_ptr_eq(cursor.entry, found);
		else if (cursor.entry != NULL)
			ck_assert_uint_gt(load_u32(cursor.entry->key), i);
		if (before.entry != NULL) {
			ck_assert_uint_lt(load_u32(before.entry->key), i);
			memtable_cursor_next(&before);
			ck_assert_ptr_eq(before.entry, cursor.entry);
		}
	}
	arena_fini(&arena);
}

START_TEST(test_tree_keeps_entries_in_order)
{
	for (int order = 0; order < 3; order++) {
		test_tree(1, 1, 1, order);
		test_tree(2, 100, 1, order);
		test_tree(3, 20000, 1, order);
		test_tree(4, 20000, 7, order);
		test_tree(5, 20000, 20000, order);
	}
}
END_TEST

/* ---- one partition against the model ------------------------------------------------------------- */

static void
test_compare(const struct buffer *got, const struct buffer *expected, uint64_t seed)
{
	ck_assert_msg(strcmp((char *)got->data, (char *)expected->data) == 0,
	    "seed %llu\ngot:\n%s\nexpected:\n%s", (unsigned long long)seed, got->data,
	    expected->data);
}

/* Apply the facts in groups of a random cut, under the eyes of readers that come and go. */
static void
test_apply_facts(struct memtable *memtable, struct facts *facts, struct random *random)
{
	uint64_t left = facts->count == 64 ? UINT64_MAX : (UINT64_C(1) << facts->count) - 1;
	struct memtable_hold *holds = NULL;
	struct unfiltered_iterator *reader = NULL;
	struct read_command command;
	struct error err;

	while (left != 0) {
		struct partition_update update;
		uint64_t which = 0;

		if (random_below(random, 3) == 0) {
			unfiltered_iterator_close(reader);
			memtable_release(holds);
			reader = NULL;
			holds = NULL;
		} else if (reader == NULL && random_below(random, 2) == 0) {
			facts_update(facts, 0, &update);
			command = test_command(facts->table, update.key);
			ck_assert_int_eq(
			    memtable_read(memtable, &command, &facts->arena, &holds, &reader, &err),
			    0);
		}

		for (uint32_t i = 0; i < facts->count; i++) {
			if (((left >> i) & 1) && random_below(random, 4) == 0)
				which |= UINT64_C(1) << i;
		}
		left &= ~which;
		facts_update(facts, which, &update);
		ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
	}
	unfiltered_iterator_close(reader);
	memtable_release(holds);
}

/* Random slices, ascending and disjoint: cut at places between the possible rows. */
static uint32_t
test_slices(
    struct facts *facts, struct random *random, struct clustering_slice *slices, uint32_t *count)
{
	uint32_t selected = 0;
	int next = 0;

	*count = 0;
	while (next < FACTS_ROWS && *count < 4) {
		int from = next + (int)random_below(random, 4);
		int to = from + (int)random_below(random, 4); /* inclusive */
		int values[2];

		if (from >= FACTS_ROWS)
			break;
		if (to >= FACTS_ROWS)
			to = FACTS_ROWS - 1;
		values[0] = from / FACTS_C2;
		values[1] = FACTS_C2 - 1 - from % FACTS_C2;
		slices[*count].start = from == 0 && random_below(random, 2) == 0
		    ? slice_null
		    : facts_position(facts, BOUND_INCL_START, values, 2);
		values[0] = to / FACTS_C2;
		values[1] = FACTS_C2 - 1 - to % FACTS_C2;
		slices[*count].end = to == FACTS_ROWS - 1 && random_below(random, 2) == 0
		    ? slice_null
		    : facts_position(facts, BOUND_INCL_END, values, 2);
		for (int i = from; i <= to; i++)
			selected |= 1u << i;
		++*count;
		next = to + 1;
	}
	return selected;
}

static void
test_read_once(struct memtable *memtable, struct facts *facts, struct random *random, uint64_t seed)
{
	struct clustering_slice slices[4];
	struct partition_update update;
	struct read_command command;
	struct unfiltered_iterator *iterator;
	struct memtable_hold *holds = NULL;
	struct buffer got, expected;
	uint32_t selected = (1u << FACTS_ROWS) - 1;
	struct error err;

	facts_update(facts, 0, &update);
	command = test_command(facts->table, update.key);
	command.clustering.is_reversed = random_below(random, 2) == 0;
	if (random_below(random, 3) != 0) {
		uint32_t count, picked = test_slices(facts, random, slices, &count);

		if (count != 0) {
			selected = picked;
			command.clustering.slices = slices;
			command.clustering.slice_count = count;
		}
	}
	if (random_below(random, 3) == 0) {
		int index = (int)random_below(random, FACTS_ROWS);
		int values[2] = {index / FACTS_C2, FACTS_C2 - 1 - index % FACTS_C2};

		command.after_position = facts_position(facts, BOUND_CLUSTERING, values, 2);
		if (command.clustering.is_reversed)
			selected &= (1u << index) - 1;
		else
			selected &= ~((2u << index) - 1);
	}
	buffer_init(&got);
	buffer_init(&expected);
	ck_assert_int_eq(
	    memtable_read(memtable, &command, &facts->arena, &holds, &iterator, &err), 0);
	ck_assert_ptr_nonnull(iterator);
	facts_print(facts, iterator, selected, &got);
	memtable_release(holds);
	facts_expect(facts, selected, command.clustering.is_reversed, &expected);
	test_compare(&got, &expected, seed);
	buffer_fini(&got);
	buffer_fini(&expected);
}

START_TEST(test_reads_equal_the_model)
{
	struct facts facts;

	facts_init(&facts);
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct random random = {seed};
		struct memtable *memtable = memtable_new(facts.table, 4, NULL);

		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		test_apply_facts(memtable, &facts, &random);
		for (int i = 0; i < 4; i++)
			test_read_once(memtable, &facts, &random, seed);
		memtable_unref(memtable);
	}
	facts_fini(&facts);
}
END_TEST

START_TEST(test_flush_iterator_equals_the_model)
{
	struct facts facts;
	uint32_t all = (1u << FACTS_ROWS) - 1;
	struct error err;

	facts_init(&facts);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct random random = {seed};
		struct memtable *memtable = memtable_new(facts.table, 4, NULL);
		struct partition_iterator *partitions;
		struct unfiltered_iterator *partition;
		struct buffer got, expected;

		facts_generate(&facts, &random, 40);
		test_apply_facts(memtable, &facts, &random);
		buffer_init(&got);
		buffer_init(&expected);
		ck_assert_int_eq(memtable_flush_iterator(
				     memtable, seed % 2 == 0, &facts.arena, &partitions, &err),
		    0);
		ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 1);
		facts_print(&facts, partition, all, &got);
		ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 0);
		partition_iterator_close(partitions);
		facts_expect(&facts, all, false, &expected);
		test_compare(&got, &expected, seed);
		buffer_fini(&got);
		buffer_fini(&expected);
		memtable_unref(memtable);
	}
	ck_assert_uint_gt(facts.raw_count, 100);
	facts_fini(&facts);
}
END_TEST

START_TEST(test_a_reader_keeps_what_it_began_with)
{
	struct facts facts;
	uint32_t all = (1u << FACTS_ROWS) - 1;
	struct error err;

	facts_init(&facts);
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct memtable *memtable = memtable_new(facts.table, 1, NULL);
		uint32_t count = 2 + random_below(&random, 40), first;
		struct partition_update update;
		struct read_command command;
		struct unfiltered_iterator *iterator;
		struct buffer got, expected;

		facts_generate(&facts, &random, count);
		first = 1 + random_below(&random, count - 1);
		facts_update(&facts, (UINT64_C(1) << first) - 1, &update);
		ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
		command = test_command(facts.table, update.key);
		command.clustering.is_reversed = seed % 2 == 0;
		ck_assert_int_eq(
		    memtable_read(memtable, &command, &facts.arena, NULL, &iterator, &err), 0);
		facts_update(
		    &facts, ((UINT64_C(1) << count) - 1) & ~((UINT64_C(1) << first) - 1), &update);
		ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);

		buffer_init(&got);
		buffer_init(&expected);
		facts_print(&facts, iterator, all, &got);
		facts.count = first;
		facts_expect(&facts, all, command.clustering.is_reversed, &expected);
		test_compare(&got, &expected, seed);
		buffer_fini(&got);
		buffer_fini(&expected);
		memtable_unref(memtable);
	}
	facts_fini(&facts);
}
END_TEST

/* ---- tables of one row a partition --------------------------------------------------------------- */

static void
test_put_lone(struct memtable *memtable, const struct table_metadata *table, uint32_t number,
    int64_t timestamp, uint8_t value, struct arena *arena)
{
	uint8_t key[4], bytes[34];
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
	memset(bytes, value, sizeof(bytes));
	for (uint32_t i = 0; i < 5; i++)
		cells[i] = (struct cell){&table->regulars[i], timestamp, TTL_NONE,
		    LOCAL_DELETION_TIME_NONE, slice_null, slice_of(bytes, sizeof(bytes))};
	builder = update_builder_new(table, slice_of(key, 4), arena);
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
	arena_reset(arena);
}

/* The value byte of a row, -1 when it is not there. */
static int
test_get_lone(struct memtable *memtable, const struct table_metadata *table, uint32_t number,
    struct arena *arena)
{
	uint8_t key[4];
	struct read_command command;
	struct unfiltered_iterator *iterator;
	struct memtable_hold *holds = NULL;
	struct unfiltered unfiltered;
	struct error err;
	int value = -1, rc;

	store_u32(key, number);
	command = test_command(table, slice_of(key, 4));
	ck_assert_int_eq(memtable_read(memtable, &command, arena, &holds, &iterator, &err), 0);
	if (iterator == NULL)
		return -1;
	rc = unfiltered_iterator_next(iterator, &unfiltered, &err);
	if (rc == 1) {
		ck_assert_uint_eq(unfiltered.row.cell_count, 5);
		ck_assert_uint_eq(unfiltered.row.cells[4].value.size, 34);
		value = unfiltered.row.cells[4].value.data[33];
		ck_assert_int_eq(unfiltered_iterator_next(iterator, &unfiltered, &err), 0);
	} else {
		ck_assert_int_eq(rc, 0);
	}
	unfiltered_iterator_close(iterator);
	memtable_release(holds);
	arena_reset(arena);
	return value;
}

START_TEST(test_newer_row_replaces_older_in_any_order)
{
	struct table_metadata *table = facts_lone_table();
	struct memtable *memtable = memtable_new(table, 8, NULL);
	struct arena arena;

	arena_init(&arena, 4096);
	test_put_lone(memtable, table, 1, 10, 1, &arena);
	test_put_lone(memtable, table, 1, 20, 2, &arena);
	test_put_lone(memtable, table, 1, 15, 3, &arena);
	ck_assert_int_eq(test_get_lone(memtable, table, 1, &arena), 2);
	ck_assert_int_eq(test_get_lone(memtable, table, 2, &arena), -1);
	ck_assert_uint_eq(memtable_partition_count(memtable), 1);
	ck_assert_uint_eq(memtable_row_count(memtable), 1);
	ck_assert_uint_eq(memtable_operations(memtable), 3);
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_deleted_lone_partition_hides_older_rows)
{
	struct table_metadata *table = facts_lone_table();
	struct memtable *memtable = memtable_new(table, 8, NULL);
	uint8_t key[4] = {0, 0, 0, 1};
	struct partition_update update = {
	    .table = table,
	    .key = slice_of(key, 4),
	    .token = murmur3_token(slice_of(key, 4)),
	    .deletion = {12, 100},
	};
	int64_t timestamp;
	int32_t local_deletion_time, ttl;
	struct arena arena;
	struct error err;

	arena_init(&arena, 4096);
	test_put_lone(memtable, table, 1, 10, 1, &arena);
	ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
	ck_assert_int_eq(test_get_lone(memtable, table, 1, &arena), -1);
	test_put_lone(memtable, table, 1, 12, 2, &arena);
	ck_assert_int_eq(test_get_lone(memtable, table, 1, &arena), -1);
	test_put_lone(memtable, table, 1, 13, 3, &arena);
	ck_assert_int_eq(test_get_lone(memtable, table, 1, &arena), 3);
	memtable_encoding_stats(memtable, &timestamp, &local_deletion_time, &ttl);
	ck_assert_int_eq(timestamp, 10);
	ck_assert_int_eq(local_deletion_time, 100);
	ck_assert_int_eq(ttl, 0);
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_scan_gives_ranges_in_token_order)
{
	struct table_metadata *table = facts_lone_table();
	struct memtable *memtable = memtable_new(table, 5, NULL);
	struct arena arena, scan_arena;
	struct random random = {9};
	struct error err;
	enum { COUNT = 3000 };

	arena_init(&arena, 4096);
	arena_init(&scan_arena, 65536);
	for (uint32_t i = 0; i < COUNT; i++)
		test_put_lone(memtable, table, i, 1, 1, &arena);
	for (int round = 0; round < 60; round++) {
		struct read_command command = test_command(table, slice_null);
		struct token_range *range = &command.range;
		struct partition_iterator *partitions;
		struct unfiltered_iterator *partition;
		uint32_t expected = 0, seen = 0;
		int64_t last = INT64_MIN;
		uint8_t left_key[4], right_key[4];

		store_u32(left_key, random_below(&random, COUNT));
		store_u32(right_key, random_below(&random, COUNT));
		command.is_range = true;
		range->left = round == 0 ? INT64_MIN : murmur3_token(slice_of(left_key, 4));
		range->right = round <= 1 ? INT64_MIN : murmur3_token(slice_of(right_key, 4));
		range->includes_left = random_below(&random, 2) == 0;
		range->excludes_right = random_below(&random, 2) == 0;
		if (round != 0 && random_below(&random, 2) == 0) {
			range->start_key = slice_of(left_key, 4);
			range->start_key_exclusive = random_below(&random, 2) == 0;
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			uint8_t key[4];
			int64_t token;
			bool after_left, before_right;

			store_u32(key, i);
			token = murmur3_token(slice_of(key, 4));
			after_left = token > range->left ||
			    (token == range->left &&
				(slice_is_null(range->start_key) ? range->includes_left
								 : !range->start_key_exclusive));
			before_right = range->right == INT64_MIN || token < range->right ||
			    (token == range->right && !range->excludes_right);
			expected += after_left && before_right;
		}
		ck_assert_int_eq(
		    memtable_scan(memtable, &command, &scan_arena, NULL, &partitions, &err), 0);
		while (partition_iterator_next(partitions, &partition, &err) == 1) {
			ck_assert_int_gt(partition->token, last);
			last = partition->token;
			seen++;
			unfiltered_iterator_close(partition);
		}
		partition_iterator_close(partitions);
		ck_assert_uint_eq(seen, expected);
		arena_reset(&scan_arena);
	}
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
	arena_fini(&scan_arena);
}
END_TEST

START_TEST(test_budget_is_returned)
{
	struct table_metadata *table = facts_lone_table();
	atomic_ullong budget;
	struct memtable *memtable;
	struct arena arena;

	atomic_init(&budget, 0);
	memtable = memtable_new(table, 2, &budget);
	arena_init(&arena, 4096);
	ck_assert(memtable_is_empty(memtable));
	for (uint32_t i = 0; i < 5000; i++)
		test_put_lone(memtable, table, i, 1, 1, &arena);
	ck_assert(!memtable_is_empty(memtable));
	ck_assert_uint_eq(atomic_load(&budget), memtable_bytes(memtable));
	ck_assert_uint_gt(memtable_bytes(memtable), 5000 * 170);
	ck_assert_uint_lt(memtable_bytes(memtable), 5000 * (2 * 180 + 100));
	memtable_unref(memtable);
	ck_assert_uint_eq(atomic_load(&budget), 0);
	table_unref(table);
	arena_fini(&arena);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------ */

enum { THREADS_ROWS = 50, THREADS_ROUNDS = 400 };

struct test_threads {
	struct memtable *memtable;
	const struct table_metadata *table;
	atomic_int writers;
};

/* Every update writes the same number into all rows of the partition. */
static void *
test_writer(void *argument)
{
	struct test_threads *threads = argument;
	struct arena arena;
	struct error err;

	arena_init(&arena, 65536);
	for (int round = 1; round <= THREADS_ROUNDS; round++) {
		struct update_builder *builder;
		struct partition_update update;
		uint8_t key[4] = {0, 0, 0, 7}, number[4];

		store_u32(number, (uint32_t)round);
		builder = update_builder_new(threads->table, slice_of(key, 4), &arena);
		for (uint32_t i = 0; i < THREADS_ROWS; i++) {
			uint8_t *bytes = arena_alloc_bytes(&arena, 8);
			struct slice *values = arena_alloc(&arena, 2 * sizeof(*values));
			struct cell *cell = arena_alloc(&arena, sizeof(*cell));
			struct row row = {
			    .liveness = LIVENESS_NONE,
			    .deletion = DELETION_LIVE,
			    .clustering_count = 2,
			    .clustering = values,
			    .cell_count = 1,
			    .cells = cell,
			};

			store_u32(bytes, i);
			store_u32(bytes + 4, 0);
			values[0] = slice_of(bytes, 4);
			values[1] = slice_of(bytes + 4, 4);
			*cell = (struct cell){&threads->table->regulars[0], round, TTL_NONE,
			    LOCAL_DELETION_TIME_NONE, slice_null, slice_of(number, 4)};
			ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
		}
		ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
		ck_assert_int_eq(memtable_apply(threads->memtable, &update, &err), 0);
		arena_reset(&arena);
	}
	arena_fini(&arena);
	atomic_fetch_sub(&threads->writers, 1);
	return NULL;
}

static void *
test_reader(void *argument)
{
	struct test_threads *threads = argument;
	uint8_t key[4] = {0, 0, 0, 7};
	struct read_command command = test_command(threads->table, slice_of(key, 4));
	struct arena arena;
	uint32_t last = 0;

	arena_init(&arena, 65536);
	while (atomic_load(&threads->writers) != 0) {
		struct unfiltered_iterator *iterator;
		struct memtable_hold *holds = NULL;
		struct unfiltered unfiltered;
		struct error err;
		uint32_t rows = 0, number = 0;

		ck_assert_int_eq(
		    memtable_read(threads->memtable, &command, &arena, &holds, &iterator, &err), 0);
		if (iterator == NULL)
			continue;
		while (unfiltered_iterator_next(iterator, &unfiltered, &err) == 1) {
			uint32_t value = load_u32(unfiltered.row.cells[0].value.data);

			if (rows++ == 0)
				number = value;
			ck_assert_uint_eq(value, number);
		}
		ck_assert_uint_eq(rows, THREADS_ROWS);
		ck_assert_uint_ge(number, last);
		last = number;
		unfiltered_iterator_close(iterator);
		memtable_release(holds);
		arena_reset(&arena);
	}
	arena_fini(&arena);
	return NULL;
}

enum { AHEAD_KEYS = 60000 };

static void *
test_ahead_writer(void *argument)
{
	struct test_threads *threads = argument;
	struct arena arena;

	arena_init(&arena, 4096);
	for (uint32_t i = 0; i < AHEAD_KEYS; i++)
		test_put_lone(threads->memtable, threads->table, i, 1, 1, &arena);
	arena_fini(&arena);
	atomic_fetch_sub(&threads->writers, 1);
	return NULL;
}

/* While the tree grows and splits under it: keys that are there, come between two steps, or never do. */
START_TEST(test_looking_ahead_may_go_wrong_but_harms_nothing)
{
	struct table_metadata *table = facts_lone_table();
	struct test_threads threads = {memtable_new(table, 1, NULL), table, 1};
	struct random random = {7};
	pthread_t id;

	pthread_create(&id, NULL, test_ahead_writer, &threads);
	do {
		struct memtable_ahead ahead[8];
		uint8_t keys[8][4];

		for (int i = 0; i < 8; i++)
			store_u32(keys[i], random_below(&random, AHEAD_KEYS * 2));
		for (int step = 0; step < MEMTABLE_AHEAD_STEPS; step++)
			for (int i = 0; i < 8; i++)
				memtable_ahead(threads.memtable, step,
				    murmur3_token(slice_of(keys[i], 4)), slice_of(keys[i], 4),
				    &ahead[i]);
	} while (atomic_load(&threads.writers) != 0);
	pthread_join(id, NULL);
	ck_assert_uint_eq(memtable_partition_count(threads.memtable), AHEAD_KEYS);
	for (uint32_t i = 0; i < AHEAD_KEYS * 2; i += 7) {
		struct memtable_ahead ahead;
		uint8_t key[4];

		store_u32(key, i);
		for (int step = 0; step < MEMTABLE_AHEAD_STEPS; step++)
			memtable_ahead(threads.memtable, step, murmur3_token(slice_of(key, 4)),
			    slice_of(key, 4), &ahead);
		ck_assert_int_eq(ahead.next, MEMTABLE_AHEAD_DONE);
	}
	memtable_unref(threads.memtable);
	table_unref(table);
}
END_TEST

START_TEST(test_readers_see_whole_updates)
{
	struct table_metadata *table = facts_table();
	struct test_threads threads = {memtable_new(table, 2, NULL), table, 2};
	pthread_t ids[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, i < 2 ? test_writer : test_reader, &threads);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	memtable_unref(threads.memtable);
	table_unref(table);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("memtable");
	TCase *tcase = tcase_create("memtable"), *threads = tcase_create("threads");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_tree_keeps_entries_in_order);
	tcase_add_test(tcase, test_reads_equal_the_model);
	tcase_add_test(tcase, test_flush_iterator_equals_the_model);
	tcase_add_test(tcase, test_a_reader_keeps_what_it_began_with);
	tcase_add_test(tcase, test_newer_row_replaces_older_in_any_order);
	tcase_add_test(tcase, test_deleted_lone_partition_hides_older_rows);
	tcase_add_test(tcase, test_scan_gives_ranges_in_token_order);
	tcase_add_test(tcase, test_budget_is_returned);
	tcase_add_test(tcase, test_looking_ahead_may_go_wrong_but_harms_nothing);
	suite_add_tcase(suite, tcase);
	tcase_set_timeout(threads, 300);
	tcase_add_test(threads, test_readers_see_whole_updates);
	suite_add_tcase(suite, threads);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
