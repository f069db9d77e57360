/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include "storage/row.h"
#include "tests/unit/storage/facts.h"

static struct table_metadata *table;
static struct arena arena;

static void
test_setup(void)
{
	struct table_builder *builder =
	    table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	struct error err;

	arena_init(&arena, 65536);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "a", "text");
	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("b"), type_native(TYPE_BIGINT), true);
	table_builder_add_column(
	    builder, COLUMN_CLUSTERING, slice_of_string("c"), type_native(TYPE_BLOB), true);
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
}

static void
test_teardown(void)
{
	table_unref(table);
	arena_fini(&arena);
}

/* Few different bytes, so that prefixes and zeros meet often. */
static struct slice
test_bytes(struct random *random)
{
	static const uint8_t choices[] = {0, 1, 0x40, 0x7f};
	uint32_t size = random_below(random, 4);
	uint8_t *bytes = arena_alloc_bytes(&arena, size);

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = choices[random_below(random, 4)];
	return slice_of(bytes, size);
}

static struct slice
test_bigint(struct random *random)
{
	static const int64_t choices[] = {0, 1, -1, INT64_MIN, INT64_MAX, 256};
	uint8_t *bytes = arena_alloc_bytes(&arena, 8);

	store_u64(bytes, (uint64_t)choices[random_below(random, 6)]);
	return slice_of(bytes, 8);
}

static void
test_clustering(struct random *random, struct slice values[3])
{
	values[0] = test_bytes(random);
	values[1] = test_bigint(random);
	values[2] = test_bytes(random);
}

static int
test_sign(int order)
{
	return (order > 0) - (order < 0);
}

START_TEST(test_rows_sort_as_their_clusterings)
{
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct random random = {seed};
		struct slice a[3], b[3], at_a, at_b;

		test_clustering(&random, a);
		test_clustering(&random, b);
		at_a = position_make(table, BOUND_CLUSTERING, a, 3, &arena);
		at_b = position_make(table, BOUND_CLUSTERING, b, 3, &arena);
		ck_assert_int_eq(test_sign(slice_compare(at_a, at_b)),
		    test_sign(table_compare_clustering(table, a, b, 3)));
		arena_reset(&arena);
	}
}
END_TEST

START_TEST(test_bounds_sort_around_the_rows_of_their_prefix)
{
	static const enum bound_kind before[] = {
	    BOUND_INCL_START, BOUND_EXCL_END, BOUND_EXCL_END_INCL_START};
	static const enum bound_kind after[] = {
	    BOUND_EXCL_START, BOUND_INCL_END, BOUND_INCL_END_EXCL_START};

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct random random = {seed};
		struct slice row[3], bound[3], at_row, at_before, at_after;
		uint32_t count = random_below(&random, 4);
		int order;

		test_clustering(&random, row);
		test_clustering(&random, bound);
		at_row = position_make(table, BOUND_CLUSTERING, row, 3, &arena);
		at_before =
		    position_make(table, before[random_below(&random, 3)], bound, count, &arena);
		at_after =
		    position_make(table, after[random_below(&random, 3)], bound, count, &arena);
		order = test_sign(table_compare_clustering(table, row, bound, count));
		ck_assert_int_eq(slice_compare(at_row, at_before) > 0, order >= 0);
		ck_assert_int_eq(slice_compare(at_row, at_after) > 0, order > 0);
		ck_assert_int_lt(slice_compare(at_before, at_after), 0);
		arena_reset(&arena);
	}
}
END_TEST

START_TEST(test_equal_places_have_equal_positions)
{
	struct slice value = slice_of_string("x");

	ck_assert(slice_equal(position_make(table, BOUND_INCL_START, &value, 1, &arena),
	    position_make(table, BOUND_EXCL_END, &value, 1, &arena)));
	ck_assert(slice_equal(position_make(table, BOUND_INCL_END, &value, 1, &arena),
	    position_make(table, BOUND_EXCL_START, &value, 1, &arena)));
}
END_TEST

START_TEST(test_null_component_sorts_first_in_both_directions)
{
	struct slice a[3] = {slice_of_string("x"), slice_null, slice_of_string("x")};
	struct slice b[3] = {slice_of_string("x"), slice_of_string("12345678"), a[2]};

	ck_assert_int_lt(slice_compare(position_make(table, BOUND_CLUSTERING, a, 3, &arena),
			     position_make(table, BOUND_CLUSTERING, b, 3, &arena)),
	    0);
}
END_TEST

START_TEST(test_the_position_takes_no_more_arena_than_its_bytes)
{
	struct slice value = slice_of_string("some text");
	struct slice first = position_make(table, BOUND_INCL_START, &value, 1, &arena);
	struct slice second = position_make(table, BOUND_INCL_START, &value, 1, &arena);

	const uint8_t *end = first.data + first.size;

	/* With AddressSanitizer all begin aligned to 8. */
	ck_assert_msg(second.data >= end + ARENA_GAP &&
		second.data <= end + ARENA_GAP + (ARENA_GAP != 0 ? 7 : 0),
	    "%zu bytes, then %td more", first.size, second.data - end);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("position");
	TCase *tcase = tcase_create("position");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_rows_sort_as_their_clusterings);
	tcase_add_test(tcase, test_bounds_sort_around_the_rows_of_their_prefix);
	tcase_add_test(tcase, test_equal_places_have_equal_positions);
	tcase_add_test(tcase, test_null_component_sorts_first_in_both_directions);
	tcase_add_test(tcase, test_the_position_takes_no_more_arena_than_its_bytes);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
