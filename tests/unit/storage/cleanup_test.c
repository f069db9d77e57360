/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/compaction.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;
static struct error err;

static void
test_setup(void)
{
	store_fixture_init(&fixture);
}

static void
test_teardown(void)
{
	store_fixture_fini(&fixture);
}

static struct table_store *
test_table(void)
{
	return store_table(fixture.store, fixture.table);
}

static int64_t
test_token(int32_t pk)
{
	uint8_t key[4];

	store_u32(key, (uint32_t)pk);
	return murmur3_token(slice_of(key, sizeof(key)));
}

static void
test_fill(int32_t from, int32_t to)
{
	for (int32_t pk = from; pk < to; pk++)
		store_fixture_insert(&fixture, pk, 1, "v", 10);
	store_fixture_flush(&fixture);
}

START_TEST(test_cleanup_drops_what_is_not_owned)
{
	struct stream_range owned[] = {{1000000000000000000, -6000000000000000000}, {-100, 100}};
	uint64_t expected = 0;
	char value[64];

	test_fill(0, 100);
	test_fill(100, 200);
	for (int32_t pk = 0; pk < 200; pk++)
		expected += test_token(pk) > 1000000000000000000 ||
		    test_token(pk) <= -6000000000000000000 ||
		    (test_token(pk) > -100 && test_token(pk) <= 100);
	ck_assert_uint_gt(expected, 50);
	ck_assert_uint_lt(expected, 150);
	ck_assert_msg(
	    store_cleanup(fixture.store, test_table(), owned, 2, 2, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(store_fixture_count(&fixture), expected);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 2);
	for (int32_t pk = 0; pk < 200; pk++) {
		bool is_owned =
		    test_token(pk) > 1000000000000000000 || test_token(pk) <= -6000000000000000000;

		store_fixture_lookup(&fixture, pk, 1, value);
		if (is_owned)
			ck_assert_str_eq(value, "v");
	}
	/* Once more changes nothing; after a start it is still so. */
	ck_assert_int_eq(store_cleanup(fixture.store, test_table(), owned, 2, 2, &err), 0);
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), expected);
	/* All is owned, nothing is. */
	owned[0].right = owned[0].left;
	ck_assert_int_eq(store_cleanup(fixture.store, test_table(), owned, 1, 2, &err), 0);
	ck_assert_uint_eq(store_fixture_count(&fixture), expected);
	ck_assert_int_eq(store_cleanup(fixture.store, test_table(), NULL, 0, 2, &err), 0);
	ck_assert_uint_eq(store_fixture_count(&fixture), 0);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 0);
}
END_TEST

static void
test_fill_random(int32_t from, int32_t to)
{
	char value[1001];

	for (int32_t pk = from; pk < to; pk++) {
		for (size_t i = 0; i < sizeof(value) - 1; i++)
			value[i] = (char)('!' + rand() % 90);
		value[sizeof(value) - 1] = '\0';
		store_fixture_insert(&fixture, pk, 1, value, 10);
	}
	store_fixture_flush(&fixture);
}

/* Bytes of the SSTables' data, in token order. */
static uint32_t
test_sizes(uint64_t *out, uint32_t most)
{
	struct table_view *view = table_view_acquire(test_table());
	uint32_t count = view->sstable_count;
	int64_t behind = INT64_MIN;

	ck_assert_uint_le(count, most);
	for (uint32_t i = 0; i < count; i++) {
		int64_t first = INT64_MAX;

		for (uint32_t k = 0; k < count; k++) {
			const struct sstable_stats *stats = sstable_stats(view->sstables[k], &err);

			ck_assert_ptr_nonnull(stats);
			if (stats->first_token <= behind || stats->first_token > first)
				continue;
			first = stats->first_token;
			out[i] = sstable_data_size(view->sstables[k]);
		}
		behind = first;
	}
	table_view_release(view);
	return count;
}

START_TEST(test_split_output_halves)
{
	uint64_t sizes[8], all = 0;
	struct compaction_pick pick = {0};
	bool has_run;

	store_set_auto_compaction(fixture.store, test_table(), false);
	test_fill_random(0, 400);
	test_fill_random(400, 900);
	ck_assert_uint_eq(test_sizes(sizes, 8), 2);
	all = sizes[0] + sizes[1];
	pick.sstables = compaction_snapshot(fixture.store, test_table(), &pick.count);
	pick.split_bytes_min = all / 10;
	ck_assert_int_eq(
	    compaction_run_pick(fixture.store, test_table(), pick, "COMPACTION", &has_run, &err),
	    0);
	ck_assert(has_run);
	/* An eighth is enough for a file of its own, a sixteenth is the last one's share, and what is left. */
	ck_assert_uint_eq(test_sizes(sizes, 8), 4);
	for (int i = 0; i < 3; i++) {
		uint64_t share = all >> (i + 1);

		ck_assert_uint_ge(sizes[i], share);
		ck_assert_uint_lt(sizes[i], share + 40000);
	}
	ck_assert_uint_lt(sizes[3], all / 8);
	ck_assert_uint_eq(store_fixture_count(&fixture), 900);
	/* What is asked for from outside splits from 100 MB on. */
	ck_assert_int_eq(store_compact_split(fixture.store, test_table(), &err), 0);
	ck_assert_uint_eq(test_sizes(sizes, 8), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), 900);
}
END_TEST

/* Mark the newest SSTables: open ones, which know it at once. */
static void
test_mark(uint32_t from, uint32_t count, int64_t repaired_at, const struct uuid *session)
{
	struct table_view *view = table_view_acquire(test_table());

	for (uint32_t i = from; i < from + count; i++)
		ck_assert_int_eq(
		    sstable_set_repaired(view->sstables[i], repaired_at, session, false, &err), 0);
	table_view_release(view);
}

START_TEST(test_repaired_and_unrepaired_stay_apart)
{
	struct uuid session = {{1, 2, 3}};
	struct table_view *view;
	uint32_t repaired = 0, pending = 0, plain = 0;

	store_set_auto_compaction(fixture.store, test_table(), false);
	for (int i = 0; i < 6; i++)
		test_fill(10 * i, 10 * i + 20);
	test_mark(0, 1, 5000, NULL);
	test_mark(1, 1, 4000, NULL);
	test_mark(2, 2, 0, &session);
	ck_assert_msg(store_compact(fixture.store, test_table(), &err) == 0, "%s", err.text);
	view = table_view_acquire(test_table());
	ck_assert_uint_eq(view->sstable_count, 3);
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_repair *repair = sstable_repair(view->sstables[i], &err);

		if (repair->has_pending_repair) {
			ck_assert(uuid_equal(&repair->pending_repair, &session));
			pending++;
		} else if (repair->repaired_at != 0) {
			ck_assert_int_eq(repair->repaired_at, 4000);
			repaired++;
		} else {
			plain++;
		}
	}
	table_view_release(view);
	ck_assert(repaired == 1 && pending == 1 && plain == 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), 70);
}
END_TEST

/* How many SSTables are in the state: pending in the session, repaired at a time, or neither. */
static uint32_t
test_count_state(const struct uuid *session, int64_t repaired_at)
{
	struct table_view *view = table_view_acquire(test_table());
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_repair *repair = sstable_repair(view->sstables[i], &err);

		count += session != NULL
		    ? repair->has_pending_repair && uuid_equal(&repair->pending_repair, session)
		    : !repair->has_pending_repair && repair->repaired_at == repaired_at;
	}
	table_view_release(view);
	return count;
}

START_TEST(test_anticompaction_sets_a_session_apart)
{
	struct uuid session = {{1, 2, 3}}, other = {{4}};
	struct stream_range ranges[] = {{INT64_MIN / 2, 0}, {INT64_MAX / 2, INT64_MIN / 4 * 3}};
	struct stream_range all = {INT64_MIN, INT64_MIN};
	uint32_t rows;

	store_set_auto_compaction(fixture.store, test_table(), false);
	test_fill(0, 200);
	rows = store_fixture_count(&fixture);
	ck_assert_msg(
	    store_anticompact(fixture.store, test_table(), &session, ranges, 2, &err) == 0, "%s",
	    err.text);
	ck_assert_uint_eq(test_count_state(&session, 0), 1);
	ck_assert_uint_eq(test_count_state(NULL, 0), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), rows);
	/* Once more changes nothing; another session may not have the same. */
	ck_assert_int_eq(
	    store_anticompact(fixture.store, test_table(), &session, ranges, 2, &err), 0);
	ck_assert_uint_eq(store_fixture_sstables(&fixture), 2);
	ck_assert_int_eq(
	    store_anticompact(fixture.store, test_table(), &other, ranges, 2, &err), -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	/* A change of level keeps it. */
	{
		struct table_view *view = table_view_acquire(test_table());

		for (uint32_t i = 0; i < view->sstable_count; i++)
			ck_assert_int_eq(sstable_set_level(view->sstables[i], 2, &err), 0);
		table_view_release(view);
	}
	ck_assert_uint_eq(test_count_state(&session, 0), 1);
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(test_count_state(&session, 0), 1);
	store_set_auto_compaction(fixture.store, test_table(), false);
	ck_assert_int_eq(store_finish_repair(fixture.store, test_table(), &other, 7000, &err), 0);
	ck_assert_uint_eq(test_count_state(&session, 0), 1);
	ck_assert_int_eq(store_finish_repair(fixture.store, test_table(), &session, 7000, &err), 0);
	ck_assert_uint_eq(test_count_state(NULL, 7000), 1);
	/* What lies in the ranges whole is not rewritten, what is repaired is left alone. */
	ck_assert_int_eq(store_anticompact(fixture.store, test_table(), &other, &all, 1, &err), 0);
	ck_assert_uint_eq(test_count_state(&other, 0), 1);
	ck_assert_uint_eq(test_count_state(NULL, 7000), 1);
	ck_assert_int_eq(store_finish_repair(fixture.store, test_table(), &other, 0, &err), 0);
	ck_assert_uint_eq(test_count_state(NULL, 0), 1);
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(test_count_state(NULL, 0), 1);
	ck_assert_uint_eq(test_count_state(NULL, 7000), 1);
	ck_assert_uint_eq(store_fixture_count(&fixture), rows);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/cleanup");
	TCase *cases = tcase_create("cleanup");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, test_setup, test_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_cleanup_drops_what_is_not_owned);
	tcase_add_test(cases, test_split_output_halves);
	tcase_add_test(cases, test_repaired_and_unrepaired_stay_apart);
	tcase_add_test(cases, test_anticompaction_sets_a_session_apart);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
