/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/counter.h"
#include "storage/memtable.h"
#include "storage/store.h"
#include "tests/unit/storage/facts.h"

static struct table_metadata *table;
static struct memtable *memtable;
static struct arena arena;
static struct error err;

/* Partitions 1..3 with rows c1 = 0..4 (c2 = 0, a = 10 * key + c1), 4 with a static row alone, 5 with nothing
 * but a deleted cell, and a static row. */
static struct slice
test_int(int value)
{
	uint8_t *at = arena_alloc_bytes(&arena, 4);

	store_u32(at, (uint32_t)value);
	return slice_of(at, 4);
}

static const struct column_metadata *
test_column(const char *name)
{
	return table_column(table, slice_of_string(name));
}

static void
test_put(int key, int c1, const char *column, int value, int32_t local_deletion_time)
{
	struct update_builder *builder = update_builder_new(table, test_int(key), &arena);
	struct slice clustering[2] = {test_int(c1), test_int(0)};
	bool is_static = test_column(column)->kind == COLUMN_STATIC;
	struct cell cell = {test_column(column), 5, TTL_NONE, local_deletion_time, slice_null,
	    local_deletion_time == LOCAL_DELETION_TIME_NONE ? test_int(value) : slice_empty};
	struct row row = {
	    .is_static = is_static,
	    .clustering_count = is_static ? 0 : 2,
	    .clustering = clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = &cell,
	};
	struct partition_update update;

	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
}

static void
test_setup(void)
{
	arena_init(&arena, 65536);
	table = facts_table();
	memtable = memtable_new(table, 2, NULL);
	for (int key = 1; key <= 3; key++) {
		for (int c1 = 0; c1 < 5; c1++)
			test_put(key, c1, "a", 10 * key + c1, LOCAL_DELETION_TIME_NONE);
	}
	test_put(2, 0, "s", 22, LOCAL_DELETION_TIME_NONE);
	test_put(4, 0, "s", 44, LOCAL_DELETION_TIME_NONE);
	test_put(5, 0, "a", 0, 100);
	test_put(5, 0, "s", 55, LOCAL_DELETION_TIME_NONE);
}

static void
test_teardown(void)
{
	memtable_unref(memtable);
	table_unref(table);
	arena_fini(&arena);
}

static struct read_command
test_scan_all(void)
{
	return (struct read_command){
	    .table = table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN},
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = 1000,
	};
}

struct test_seen {
	int rows, statics_alone, partitions, sum;
	uint64_t tombstones;
};

static struct test_seen
test_read_limited(const struct read_command *command, uint32_t failure_threshold, int expected_rc)
{
	struct test_seen result = {0};
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row row;
	int rc;

	ck_assert_int_eq(memtable_scan(memtable, command, &arena, NULL, &source, &err), 0);
	live_reader_init(&reader, command, source, &arena);
	reader.tombstone_failure_threshold = failure_threshold;
	while ((rc = live_reader_next(&reader, &row, &err)) == 1) {
		result.partitions += row.is_new_partition;
		if (row.row == NULL) {
			ck_assert_ptr_nonnull(row.static_row);
			result.statics_alone++;
			continue;
		}
		result.rows++;
		result.sum += (int)load_u32(row.row->cells[0].value.data);
		if (load_u32(row.key.data) == 2)
			ck_assert_int_eq(load_u32(row.static_row->cells[0].value.data), 22);
	}
	ck_assert_int_eq(rc, expected_rc);
	result.tombstones = reader.tombstones;
	live_reader_fini(&reader);
	return result;
}

/* The same is seen in bounded memory, here of a merge of the memtable with itself. */
static void
test_read_transient(const struct read_command *command, const struct test_seen *expected)
{
	struct read_command transient = *command;
	struct partition_iterator *sources[2], *source;
	struct live_reader reader;
	struct live_row row;
	int results = 0, sum = 0;

	transient.is_transient = true;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
		    memtable_scan(memtable, &transient, &arena, NULL, &sources[i], &err), 0);
	ck_assert_int_eq(partition_merge_transient(sources, 2, &arena, &source, &err), 0);
	live_reader_init(&reader, &transient, source, &arena);
	while (live_reader_next(&reader, &row, &err) == 1) {
		results++;
		if (row.row != NULL)
			sum += (int)load_u32(row.row->cells[0].value.data);
	}
	live_reader_fini(&reader);
	ck_assert_int_eq(results, expected->rows + expected->statics_alone);
	ck_assert_int_eq(sum, expected->sum);
}

static struct test_seen
test_read(const struct read_command *command)
{
	struct test_seen seen = test_read_limited(command, 0, 0);

	test_read_transient(command, &seen);
	return seen;
}

START_TEST(test_all_live_rows_and_lonely_statics_come)
{
	struct read_command command = test_scan_all();
	struct test_seen result = test_read(&command);

	ck_assert_int_eq(result.rows, 15);
	ck_assert_int_eq(result.statics_alone, 2);
	ck_assert_int_eq(result.partitions, 5);
	ck_assert_uint_eq(result.tombstones, 1);
	command.clustering.with_static = false;
	memtable_unref(memtable);
	memtable = memtable_new(table, 1, NULL);
	ck_assert_int_eq(test_read(&command).rows, 0);
}
END_TEST

START_TEST(test_limits_count_rows_and_lonely_statics)
{
	struct read_command command = test_scan_all();
	struct test_seen result;

	command.row_limit = 7;
	result = test_read(&command);
	ck_assert_int_eq(result.rows + result.statics_alone, 7);
	command.row_limit = READ_LIMIT_NONE;
	command.per_partition_limit = 2;
	result = test_read(&command);
	ck_assert_int_eq(result.rows, 6);
	ck_assert_int_eq(result.statics_alone, 2);
	ck_assert_int_eq(result.sum, 10 + 11 + 20 + 21 + 30 + 31);
	command.clustering.is_reversed = true;
	ck_assert_int_eq(test_read(&command).sum, 13 + 14 + 23 + 24 + 33 + 34);
}
END_TEST

START_TEST(test_page_goes_on_where_the_last_ended)
{
	struct read_command command = test_scan_all();
	struct slice key = test_int(2), clustering[2] = {test_int(2), test_int(0)};
	int64_t token = murmur3_token(key);
	struct test_seen whole, rest;

	command.range.left = token;
	command.range.includes_left = true;
	command.range.right = token;
	whole = test_read(&command);
	ck_assert_int_eq(whole.rows, 5);
	command.range.start_key = key;
	command.after_position = position_make(table, BOUND_CLUSTERING, clustering, 2, &arena);
	rest = test_read(&command);
	ck_assert_int_eq(rest.rows, 2);
	ck_assert_int_eq(rest.sum, 23 + 24);
	ck_assert_int_eq(rest.statics_alone, 0);

	/* The last row was the last: the static row is not a result once more. */
	clustering[0] = test_int(4);
	command.after_position = position_make(table, BOUND_CLUSTERING, clustering, 2, &arena);
	rest = test_read(&command);
	ck_assert_int_eq(rest.rows + rest.statics_alone, 0);
}
END_TEST

START_TEST(test_too_many_tombstones_fail_the_read)
{
	struct read_command command = test_scan_all();

	for (int c1 = 0; c1 < 10; c1++)
		test_put(6, c1, "a", 0, 100);
	ck_assert_uint_eq(test_read_limited(&command, 11, 0).tombstones, 11);
	test_read_limited(&command, 10, -1);
	ck_assert_int_eq(err.code, ERROR_READ_FAILURE);
	ck_assert_uint_eq(err.reason, 1);
}
END_TEST

/* ---- filters ------------------------------------------------------------------------------------ */

START_TEST(test_filters_choose_rows)
{
	struct read_command command = test_scan_all();
	struct filter_expression filters[2] = {
	    {.column = test_column("a"), .operator= FILTER_GTE, .value = test_int(13)},
	    {.column = test_column("c1"), .operator= FILTER_LT, .value = test_int(4)},
	};
	struct test_seen result;

	command.filters = filters;
	command.filter_count = 2;
	result = test_read(&command);
	ck_assert_int_eq(result.rows, 1 + 4 + 4);
	ck_assert_int_eq(result.statics_alone, 0);

	filters[0] = (struct filter_expression){
	    .column = test_column("s"), .operator= FILTER_EQ, .value = test_int(44)};
	command.filter_count = 1;
	result = test_read(&command);
	ck_assert_int_eq(result.rows, 0);
	ck_assert_int_eq(result.statics_alone, 1);

	filters[0] = (struct filter_expression){
	    .column = test_column("k"), .operator= FILTER_NEQ, .value = test_int(1)};
	ck_assert_int_eq(test_read(&command).rows, 10);
}
END_TEST

static bool
test_filter(const struct filter_expression *filter, const struct row *row)
{
	struct read_command command = {.table = table, .filter_count = 1, .filters = filter};

	return read_command_filter(&command, test_int(1), row, row, &err) == 1;
}

START_TEST(test_operators_on_values)
{
	struct cell cell = {test_column("b"), 1, TTL_NONE, LOCAL_DELETION_TIME_NONE, slice_null,
	    slice_of_string("hello")};
	struct row row = {.cell_count = 1, .cells = &cell};
	struct row empty = {0};
	struct slice values[2] = {slice_of_string("x"), slice_of_string("hello")};
	static const struct {
		const char *pattern;
		bool matches;
	} likes[] = {
	    {"hello", true},
	    {"hel%", true},
	    {"%llo", true},
	    {"%ell%", true},
	    {"%", true},
	    {"%%", true},
	    {"h%o", false},
	    {"hell", false},
	    {"%hello world%", false},
	    {"", false},
	    {"%lo%", true},
	    {"ello%", false},
	    {"%hell", false},
	};
	struct filter_expression filter = {.column = test_column("b")};

	for (size_t i = 0; i < sizeof(likes) / sizeof(likes[0]); i++) {
		filter.operator= FILTER_LIKE;
		filter.value = slice_of_string(likes[i].pattern);
		ck_assert_msg(
		    test_filter(&filter, &row) == likes[i].matches, "%s", likes[i].pattern);
	}
	filter.operator= FILTER_IN;
	filter.values = values;
	filter.value_count = 2;
	ck_assert(test_filter(&filter, &row));
	filter.value_count = 1;
	ck_assert(!test_filter(&filter, &row));
	filter.operator= FILTER_IS_NOT_NULL;
	ck_assert(test_filter(&filter, &row));
	ck_assert(!test_filter(&filter, &empty));
	filter.operator= FILTER_NEQ;
	filter.value = slice_of_string("other");
	ck_assert(test_filter(&filter, &row));
	ck_assert(!test_filter(&filter, &empty));
}
END_TEST

START_TEST(test_operators_on_collections)
{
	struct cell cells[2] = {
	    {test_column("m"), 1, TTL_NONE, LOCAL_DELETION_TIME_NONE, test_int(1), test_int(10)},
	    {test_column("m"), 1, TTL_NONE, LOCAL_DELETION_TIME_NONE, test_int(2), test_int(20)},
	};
	struct row row = {.cell_count = 2, .cells = cells};
	struct filter_expression filter = {.column = test_column("m")};
	struct slice elements[4] = {test_int(1), test_int(10), test_int(2), test_int(20)};
	struct column_metadata frozen = *test_column("m");
	struct cell frozen_cell = cells[0];
	struct row frozen_row = {.cell_count = 1, .cells = &frozen_cell};

	frozen.type = type_freeze(&arena, frozen.type);
	frozen.is_complex = false;
	frozen_cell.column = &frozen;
	frozen_cell.path = slice_null;
	frozen_cell.value = type_pack(frozen.type, elements, 2, &arena);
	for (int i = 0; i < 2; i++) {
		const struct row *tested = i == 0 ? &row : &frozen_row;

		filter.column = i == 0 ? test_column("m") : &frozen;
		filter.operator= FILTER_CONTAINS;
		filter.value = test_int(20);
		ck_assert(test_filter(&filter, tested));
		filter.value = test_int(2);
		ck_assert(!test_filter(&filter, tested));
		filter.operator= FILTER_CONTAINS_KEY;
		ck_assert(test_filter(&filter, tested));
		filter.value = test_int(20);
		ck_assert(!test_filter(&filter, tested));
		filter.operator= FILTER_MAP_EQ;
		filter.map_key = test_int(2);
		ck_assert(test_filter(&filter, tested));
		filter.map_key = test_int(1);
		ck_assert(!test_filter(&filter, tested));
	}
}
END_TEST

START_TEST(test_counters_compare_by_their_total)
{
	struct column_metadata column = {.name = slice_of_string("n"),
	    .type = type_native(TYPE_COUNTER),
	    .kind = COLUMN_REGULAR};
	struct uuid id = {{1}};
	uint8_t eight[8];
	struct cell cell = {&column, 5, TTL_NONE, LOCAL_DELETION_TIME_NONE, slice_null,
	    counter_make_global(&id, 1, 10, &arena)};
	struct row row = {.cell_count = 1, .cells = &cell};
	struct filter_expression filter = {
	    .column = &column, .operator= FILTER_GT, .value = slice_of(eight, 8)};

	store_u64(eight, 9);
	ck_assert(test_filter(&filter, &row));
	store_u64(eight, 10);
	ck_assert(!test_filter(&filter, &row));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("live_reader");
	TCase *tcase = tcase_create("live_reader");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_all_live_rows_and_lonely_statics_come);
	tcase_add_test(tcase, test_limits_count_rows_and_lonely_statics);
	tcase_add_test(tcase, test_page_goes_on_where_the_last_ended);
	tcase_add_test(tcase, test_too_many_tombstones_fail_the_read);
	tcase_add_test(tcase, test_filters_choose_rows);
	tcase_add_test(tcase, test_operators_on_values);
	tcase_add_test(tcase, test_operators_on_collections);
	tcase_add_test(tcase, test_counters_compare_by_their_total);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
