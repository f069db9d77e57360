/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <check.h>
#include <stdlib.h>

START_TEST(test_allocations_are_aligned_and_apart)
{
	struct arena arena;
	uint8_t *memory[1000];

	arena_init(&arena, 4096);
	for (size_t i = 0; i < 1000; i++) {
		memory[i] = arena_alloc(&arena, i % 61 + 1);
		ck_assert_uint_eq((uintptr_t)memory[i] % 8, 0);
		memset(memory[i], (int)(i & 0xff), i % 61 + 1);
		(void)arena_alloc_bytes(&arena, i % 7); /* put the next one out of step */
	}
	for (size_t i = 0; i < 1000; i++) {
		for (size_t j = 0; j < i % 61 + 1; j++)
			ck_assert_uint_eq(memory[i][j], i & 0xff);
	}
	arena_fini(&arena);
}
END_TEST

START_TEST(test_zero_bytes_give_a_pointer_and_take_no_memory)
{
	struct arena arena;

	arena_init(&arena, 4096);
	ck_assert_ptr_nonnull(arena_alloc(&arena, 0));
	ck_assert_ptr_nonnull(arena_alloc_bytes(&arena, 0));
	ck_assert_uint_eq(arena.total_bytes, 0);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_big_one_leaves_the_block_in_use)
{
	struct arena arena;
	uint8_t *first;
	uint8_t *second;

	arena_init(&arena, 4096);
	first = arena_alloc(&arena, 8);
	memset(arena_alloc(&arena, 100000), 1, 100000);
	second = arena_alloc(&arena, 8);
	/* With AddressSanitizer there are gaps. */
	ck_assert_msg(
	    second >= first + 8 && second < first + 64, "%p %p", (void *)first, (void *)second);
	ck_assert_uint_ge(arena.total_bytes, 104096);
	ck_assert_uint_lt(arena.total_bytes, 104096 + 100);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_reset_keeps_one_usual_block)
{
	struct arena arena;

	arena_init(&arena, 4096);
	for (int i = 0; i < 100; i++)
		(void)arena_alloc(&arena, 1000);
	(void)arena_alloc(&arena, 50000);
	arena_reset(&arena);
	ck_assert_uint_eq(arena.total_bytes, 4096);
	memset(arena_alloc(&arena, 1000), 1, 1000);
	ck_assert_uint_eq(arena.total_bytes, 4096);
	arena_reset(&arena);
	arena_fini(&arena);
	ck_assert_uint_eq(arena.total_bytes, 0);
}
END_TEST

START_TEST(test_reset_with_only_a_big_block_keeps_nothing)
{
	struct arena arena;

	arena_init(&arena, 4096);
	(void)arena_alloc(&arena, 50000);
	arena_reset(&arena);
	ck_assert_uint_eq(arena.total_bytes, 0);
	ck_assert_ptr_nonnull(arena_alloc(&arena, 16));
	arena_fini(&arena);
}
END_TEST

START_TEST(test_impossible_sizes_are_refused)
{
	struct arena arena;

	arena_init(&arena, 4096);
	ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX));
	ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX - 7));
	ck_assert_ptr_null(arena_calloc(&arena, SIZE_MAX / 2, 3));
	ck_assert_ptr_nonnull(arena_alloc(&arena, 10));
	arena_fini(&arena);
}
END_TEST

START_TEST(test_cleared_memory_is_zero)
{
	struct arena arena;
	uint8_t *memory;

	arena_init(&arena, 4096);
	memset(arena_alloc(&arena, 500), 0xff, 500);
	arena_reset(&arena);
	memory = arena_calloc(&arena, 100, 5);
	for (int i = 0; i < 500; i++)
		ck_assert_uint_eq(memory[i], 0);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_copies_keep_null_and_empty)
{
	struct arena arena;
	struct slice copy;

	arena_init(&arena, 4096);
	ck_assert(slice_is_null(arena_copy(&arena, slice_null)));
	copy = arena_copy(&arena, slice_empty);
	ck_assert(!slice_is_null(copy));
	ck_assert_uint_eq(copy.size, 0);
	copy = arena_copy(&arena, slice_of_string("abc"));
	ck_assert(slice_equal_string(copy, "abc"));
	arena_fini(&arena);
}
END_TEST

START_TEST(test_strings)
{
	struct arena arena;

	arena_init(&arena, 4096);
	ck_assert_str_eq(arena_strdup(&arena, "abc"), "abc");
	ck_assert_str_eq(arena_strndup(&arena, "abcdef", 2), "ab");
	ck_assert_str_eq(arena_strndup(&arena, "ab", 10), "ab");
	ck_assert_str_eq(arena_printf(&arena, "%s-%d", "x", 42), "x-42");
	arena_fini(&arena);
}
END_TEST

START_TEST(test_a_pool_keeps_as_many_blocks_as_it_may_and_gives_them_back)
{
	struct arena_pool pool;
	struct arena first, second;
	void *memory;

	arena_pool_init(&pool, 1, 1);
	arena_init(&first, ARENA_POOL_BLOCK);
	first.pool = &pool;
	arena_init(&second, ARENA_POOL_BLOCK);
	second.pool = &pool;
	memory = arena_alloc(&first, 100);
	ck_assert_ptr_nonnull(memory);
	/* A second block of the same arena, for which the pool has no room later. */
	for (size_t size = 0; size < ARENA_POOL_BLOCK; size += ARENA_POOL_BLOCK / 8)
		ck_assert_ptr_nonnull(arena_alloc(&first, ARENA_POOL_BLOCK / 8));
	arena_fini(&first);
	ck_assert_uint_eq(pool.count, 1);
	ck_assert_ptr_nonnull(arena_alloc(&second, 100));
	ck_assert_uint_eq(pool.count, 0);
	/* Blocks of other sizes are none of its business. */
	ck_assert_ptr_nonnull(arena_alloc(&second, ARENA_POOL_BLOCK));
	arena_fini(&second);
	ck_assert_uint_eq(pool.count, 1);
	arena_pool_fini(&pool);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("arena");
	TCase *tcase = tcase_create("arena");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_allocations_are_aligned_and_apart);
	tcase_add_test(tcase, test_zero_bytes_give_a_pointer_and_take_no_memory);
	tcase_add_test(tcase, test_big_one_leaves_the_block_in_use);
	tcase_add_test(tcase, test_reset_keeps_one_usual_block);
	tcase_add_test(tcase, test_reset_with_only_a_big_block_keeps_nothing);
	tcase_add_test(tcase, test_impossible_sizes_are_refused);
	tcase_add_test(tcase, test_cleared_memory_is_zero);
	tcase_add_test(tcase, test_copies_keep_null_and_empty);
	tcase_add_test(tcase, test_strings);
	tcase_add_test(tcase, test_a_pool_keeps_as_many_blocks_as_it_may_and_gives_them_back);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
