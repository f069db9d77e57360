/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/memtable_index.h"

#include <check.h>
#include <stdlib.h>
#include "base/arena.h"

enum { SHARDS = 4, SHARD = 2, COUNT = 200000 };

static struct arena arena;
static struct memtable_tree tree;
static struct memtable_index index_;

/* The shard's part of the range. */
static const uint64_t low = (UINT64_MAX / SHARDS + 1) * SHARD;

static void
setup(void)
{
	arena_init(&arena, 64 * 1024);
	tree = (struct memtable_tree){.low = low, .high = low + UINT64_MAX / SHARDS};
	index_ = (struct memtable_index){.scale = (uint64_t)SHARDS * MEMTABLE_INDEX_PAGES};
}

static void
teardown(void)
{
	memtable_index_fini(&index_);
	arena_fini(&arena);
}

static uint64_t
mix(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

static uint64_t
prefix_of(uint32_t number)
{
	return low + mix(number) / SHARDS;
}

static struct memtable_entry *
put(uint64_t prefix, uint32_t number)
{
	struct slice key = slice_of(&number, sizeof(number));
	bool is_new;
	struct memtable_entry *entry = memtable_tree_put(&tree, &arena, prefix, key, &is_new);

	ck_assert_ptr_nonnull(entry);
	if (is_new)
		memtable_index_add(&index_, &tree, prefix, entry);
	return entry;
}

static struct memtable_entry *
find(uint64_t prefix, uint32_t number)
{
	return memtable_index_find(&index_, prefix, slice_of(&number, sizeof(number)));
}

START_TEST(test_nearly_all_are_found_and_nothing_else)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < COUNT; i++)
		put(prefix_of(i), i);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct memtable_entry *entry = find(prefix_of(i), i);

		ck_assert(entry == NULL ||
		    entry == memtable_tree_find(&tree, prefix_of(i), slice_of(&i, sizeof(i))));
		found += entry != NULL;
	}
	ck_assert_uint_gt(found, COUNT * 9 / 10);
	for (uint32_t i = COUNT; i < 2 * COUNT; i++)
		ck_assert_ptr_null(find(prefix_of(i), i));
	/* Between two growths a page is three eighths to three quarters full. */
	ck_assert_uint_ge(index_.bytes, COUNT * sizeof(uint64_t));
	ck_assert_uint_le(index_.bytes, COUNT * sizeof(uint64_t) * 3);
}
END_TEST

START_TEST(test_a_small_tree_has_no_index)
{
	for (uint32_t i = 0; i < 500; i++)
		put(prefix_of(i), i);
	ck_assert_uint_eq(index_.bytes, 0);
	ck_assert_ptr_null(find(prefix_of(1), 1));
	ck_assert_ptr_null(memtable_index_line(&index_, prefix_of(1)));
}
END_TEST

/* Keys that somebody chose, so that all are in one line: the tree has those that have no room. */
START_TEST(test_a_line_that_overflows_loses_nothing)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < COUNT / 10; i++)
		put(prefix_of(i), i);
	for (uint32_t i = 0; i < 1000; i++)
		put(prefix_of(7) & ~UINT64_C(0xffffffff), COUNT + i);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t number = COUNT + i;

		found += find(prefix_of(7) & ~UINT64_C(0xffffffff), number) != NULL;
		ck_assert_ptr_nonnull(memtable_tree_find(&tree,
		    prefix_of(7) & ~UINT64_C(0xffffffff), slice_of(&number, sizeof(number))));
	}
	ck_assert_uint_le(found, MEMTABLE_INDEX_LINE);
	ck_assert_uint_gt(found, 0);
}
END_TEST

/* Both ends of each page's range, before and after it has grown. */
START_TEST(test_pages_take_what_is_theirs)
{
	uint64_t page = UINT64_MAX / SHARDS / MEMTABLE_INDEX_PAGES + 1;
	struct memtable_entry *ends[2 * MEMTABLE_INDEX_PAGES], *found;
	uint32_t added = 0, count = 0;

	for (; added < COUNT / 10; added++)
		put(prefix_of(added), added);
	for (uint32_t i = 0; i < 2 * MEMTABLE_INDEX_PAGES; i++)
		ends[i] = put(low + (i + 1) / 2 * page - i % 2, COUNT + i);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 2 * MEMTABLE_INDEX_PAGES; i++) {
			found = find(low + (i + 1) / 2 * page - i % 2, COUNT + i);
			ck_assert(found == NULL || found == ends[i]);
			count += found != NULL;
		}
		for (; added < COUNT; added++)
			put(prefix_of(added), added);
	}
	/* Some have no room in their lines. */
	ck_assert_uint_ge(count, 2 * 2 * MEMTABLE_INDEX_PAGES * 3 / 4);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("memtable_index");
	TCase *tcase = tcase_create("memtable_index");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_nearly_all_are_found_and_nothing_else);
	tcase_add_test(tcase, test_a_small_tree_has_no_index);
	tcase_add_test(tcase, test_a_line_that_overflows_loses_nothing);
	tcase_add_test(tcase, test_pages_take_what_is_theirs);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
