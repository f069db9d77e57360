/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include "storage/counter.h"

static struct arena arena;

static struct uuid
test_id(uint8_t last)
{
	struct uuid id = {{0}};

	id.bytes[15] = last;
	return id;
}

/* A context of several shards, ids ascending. */
static struct slice
test_context(const struct counter_shard *shards, uint32_t count)
{
	uint32_t named = 0;
	uint8_t *at = arena_alloc_bytes(&arena, 2 + count * 34), *start = at;

	at += 2;
	for (uint32_t i = 0; i < count; i++) {
		if (shards[i].kind == COUNTER_SHARD_REMOTE)
			continue;
		store_u16(
		    at, (uint16_t)(i | (shards[i].kind == COUNTER_SHARD_GLOBAL ? 0x8000 : 0)));
		at += 2;
		named++;
	}
	store_u16(start, (uint16_t)named);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(at, shards[i].id.bytes, 16);
		store_u64(at + 16, (uint64_t)shards[i].clock);
		store_u64(at + 24, (uint64_t)shards[i].count);
		at += 32;
	}
	return slice_of(start, (size_t)(at - start));
}

static struct slice
test_one(uint8_t id, int64_t clock, int64_t count, enum counter_shard_kind kind)
{
	struct counter_shard shard = {test_id(id), clock, count, kind};

	return test_context(&shard, 1);
}

static void
test_setup(void)
{
	arena_init(&arena, 4096);
}

static void
test_teardown(void)
{
	arena_fini(&arena);
}

START_TEST(test_global_shard_has_cassandras_bytes)
{
	static const uint8_t expected[] = {0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	    0, 9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7};
	struct uuid id = test_id(9);

	ck_assert(slice_equal(
	    counter_make_global(&id, 5, 7, &arena), slice_of(expected, sizeof(expected))));
}
END_TEST

START_TEST(test_update_gives_its_delta_back)
{
	struct slice update = counter_make_update(-5, &arena);

	ck_assert_int_eq(counter_update_delta(update), -5);
	ck_assert_int_eq(counter_total(update), -5);
	ck_assert_int_eq(counter_validate(update, NULL), 0);
}
END_TEST

START_TEST(test_global_beats_local_beats_remote)
{
	struct slice global = test_one(1, 1, 10, COUNTER_SHARD_GLOBAL);
	struct slice local = test_one(1, 50, 20, COUNTER_SHARD_LOCAL);
	struct slice remote = test_one(1, 90, 30, COUNTER_SHARD_REMOTE);

	ck_assert_int_eq(counter_total(counter_merge(global, local, &arena)), 10);
	ck_assert_int_eq(counter_total(counter_merge(remote, global, &arena)), 10);
	ck_assert_int_eq(counter_total(counter_merge(remote, local, &arena)), 20);
}
END_TEST

START_TEST(test_same_kind_merges_by_clock_or_adds)
{
	struct slice a = test_one(1, 5, 10, COUNTER_SHARD_GLOBAL);
	struct slice b = test_one(1, 6, 3, COUNTER_SHARD_GLOBAL);
	struct slice c = test_one(1, 6, 4, COUNTER_SHARD_GLOBAL);
	struct slice local = test_one(1, 2, 10, COUNTER_SHARD_LOCAL);
	struct slice other = test_one(1, 3, 5, COUNTER_SHARD_LOCAL);
	struct counter_shard sum;
	struct uuid id = test_id(1);

	ck_assert_int_eq(counter_total(counter_merge(a, b, &arena)), 3);
	ck_assert_int_eq(counter_total(counter_merge(b, c, &arena)), 4);
	ck_assert_int_eq(counter_total(counter_merge(c, b, &arena)), 4);
	ck_assert(counter_find(counter_merge(local, other, &arena), &id, &sum));
	ck_assert_int_eq(sum.clock, 5);
	ck_assert_int_eq(sum.count, 15);
	ck_assert_int_eq(sum.kind, COUNTER_SHARD_LOCAL);
}
END_TEST

START_TEST(test_equal_increments_are_added_up)
{
	struct slice one = counter_make_update(2, &arena), two = counter_make_update(2, &arena);
	struct slice global = test_one(1, 5, 10, COUNTER_SHARD_GLOBAL);

	ck_assert_int_eq(counter_update_delta(counter_merge(one, two, &arena)), 4);
	ck_assert(slice_equal(counter_merge(global, global, &arena), global));
}
END_TEST

START_TEST(test_merge_keeps_ids_sorted_and_kinds)
{
	struct counter_shard left[] = {{test_id(1), 1, 1, COUNTER_SHARD_REMOTE},
	    {test_id(3), 1, 3, COUNTER_SHARD_GLOBAL}, {test_id(7), 1, 7, COUNTER_SHARD_REMOTE}};
	struct counter_shard right[] = {{test_id(2), 1, 20, COUNTER_SHARD_LOCAL},
	    {test_id(3), 2, 30, COUNTER_SHARD_GLOBAL}, {test_id(9), 1, 90, COUNTER_SHARD_GLOBAL}};
	struct counter_shard all[] = {left[0], right[0], right[1], left[2], right[2]};
	struct slice a = test_context(left, 3), b = test_context(right, 3);
	struct slice expected = test_context(all, 5);

	ck_assert(slice_equal(counter_merge(a, b, &arena), expected));
	ck_assert(slice_equal(counter_merge(b, a, &arena), expected));
	ck_assert(slice_equal(counter_merge(expected, a, &arena), expected));
	ck_assert_int_eq(counter_total(expected), 1 + 20 + 30 + 7 + 90);
}
END_TEST

START_TEST(test_wrong_bytes_are_refused_and_count_as_nothing)
{
	static const uint8_t bytes[] = {0, 9, 0, 0, 1, 2, 3};
	struct slice bad = slice_of(bytes, sizeof(bytes));
	struct slice good = test_one(1, 1, 4, COUNTER_SHARD_GLOBAL);
	struct error err;

	for (size_t size = 0; size <= sizeof(bytes); size++) {
		ck_assert_int_eq(counter_validate(slice_of(bytes, size), &err), -1);
		ck_assert_int_eq(counter_total(slice_of(bytes, size)), 0);
	}
	ck_assert_int_eq(counter_total(counter_merge(bad, good, &arena)), 4);
	good.size--;
	ck_assert_int_eq(counter_validate(good, &err), -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("counter");
	TCase *tcase = tcase_create("counter");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_global_shard_has_cassandras_bytes);
	tcase_add_test(tcase, test_update_gives_its_delta_back);
	tcase_add_test(tcase, test_global_beats_local_beats_remote);
	tcase_add_test(tcase, test_same_kind_merges_by_clock_or_adds);
	tcase_add_test(tcase, test_equal_increments_are_added_up);
	tcase_add_test(tcase, test_merge_keeps_ids_sorted_and_kinds);
	tcase_add_test(tcase, test_wrong_bytes_are_refused_and_count_as_nothing);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
