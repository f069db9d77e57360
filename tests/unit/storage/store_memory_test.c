/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose allocations fail, one after the other, on whichever thread: every call says so or does what it should, nothing
 * that was acknowledged is lost, and the store goes on as soon as there is memory again.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/log.h"
#include "tests/memory/allocation.h"
#include "tests/unit/storage/store_fixture.h"

enum { FAILURES_MAX = 2000 };

static struct store_fixture fixture;

static void
setup(void)
{
	log_set_level("ROOT", LOG_OFF);
	store_fixture_init(&fixture);
}

static void
teardown(void)
{
	store_fixture_fini(&fixture);
}

/* After `rc` of what was tried without its nth allocation. Is there a next one to let fail? */
static bool
goes_on(int rc, const struct error *err)
{
	bool has_failed = allocation_has_failed();

	ck_assert_msg(rc == 0 || has_failed, "%s", err->text);
	if (rc != 0)
		ck_assert_msg(err->code == ERROR_NO_MEMORY, "%s", err->text);
	return has_failed;
}

/* A flush that failed is tried again every second, and writes are refused so long. */
static void
insert_when_it_goes(int32_t pk, int32_t ck)
{
	struct error err;

	while (store_fixture_try_insert(&fixture, pk, ck, "row", 1000, &err) != 0) {
		ck_assert_msg(err.code == ERROR_NO_MEMORY, "%s", err.text);
		usleep(10000);
	}
}

/* All of the first ones, then fewer and fewer: what waits for the disk cannot be done a thousand times. */
static uint64_t
next_after(uint64_t n)
{
	return n + 1 + n / 10;
}

static void
text_of(int32_t number, char out[64])
{
	snprintf(out, 64, "value %d", number);
}

START_TEST(test_a_write_without_memory_is_refused_or_there)
{
	static bool is_written[FAILURES_MAX];
	char value[64], read[64];
	struct error err;
	int32_t n = 1;

	for (int rc; n < FAILURES_MAX; n++) {
		text_of(n, value);
		allocation_fail((uint64_t)n, _i != 0);
		rc = store_fixture_try_insert(&fixture, n % 7, n, value, 1000 + n, &err);
		is_written[n] = rc == 0;
		if (!goes_on(rc, &err))
			break;
	}
	ck_assert_int_gt(n, 1);
	ck_assert_int_lt(n, FAILURES_MAX);
	for (int32_t i = 1; i <= n; i++) {
		text_of(i, value);
		store_fixture_lookup(&fixture, i % 7, i, read);
		ck_assert_str_eq(read, is_written[i] ? value : "");
	}
}
END_TEST

/* Reads of a memtable, of SSTables that are open, and of some that are not yet. */
START_TEST(test_a_read_without_memory_says_so)
{
	char read[64];
	struct error err;

	for (int32_t i = 0; i < 50; i++)
		store_fixture_insert(&fixture, 1, i, "first", 1000);
	if (_i > 0) {
		store_fixture_flush(&fixture);
		for (int32_t i = 0; i < 50; i += 2)
			store_fixture_insert(&fixture, 1, i, "again", 2000);
		store_fixture_flush(&fixture);
	}
	for (uint64_t n = 1;; n++) {
		int rc;

		ck_assert_uint_lt(n, FAILURES_MAX);
		if (_i == 2) {
			store_fixture_close(&fixture);
			store_fixture_open(&fixture);
		}
		allocation_fail(n, n % 2 == 0);
		rc = store_fixture_try_lookup(&fixture, 1, 24, read, &err);
		if (!goes_on(rc, &err))
			break;
		if (rc == 0)
			ck_assert_str_eq(read, _i > 0 ? "again" : "first");
	}
	ck_assert_str_eq(read, _i > 0 ? "again" : "first");
}
END_TEST

START_TEST(test_a_flush_without_memory_loses_nothing)
{
	struct error err;
	int32_t rows = 0;
	bool has_next = true;

	for (uint64_t n = 1; has_next; n = next_after(n)) {
		int rc;

		ck_assert_uint_lt(n, FAILURES_MAX);
		insert_when_it_goes(rows % 5, rows);
		rows++;
		allocation_fail(n, _i != 0);
		rc = store_flush(fixture.store, store_table(fixture.store, fixture.table), &err);
		store_fixture_quiet(&fixture);
		has_next = goes_on(rc, &err);
		ck_assert_uint_eq(store_fixture_count(&fixture), (uint64_t)rows);
	}
	insert_when_it_goes(0, rows++);
	store_fixture_flush(&fixture);
	store_fixture_close(&fixture);
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), (uint64_t)rows);
}
END_TEST

START_TEST(test_a_compaction_without_memory_loses_nothing)
{
	struct error err;
	int32_t rows = 0;
	bool has_next = true;

	for (uint64_t n = 1; has_next; n = next_after(n)) {
		int rc;

		ck_assert_uint_lt(n, FAILURES_MAX);
		while (store_fixture_sstables(&fixture) < 2) {
			store_fixture_insert(&fixture, rows % 5, rows, "row", 1000);
			rows++;
			store_fixture_flush(&fixture);
		}
		allocation_fail(n, _i != 0);
		rc = store_compact(fixture.store, store_table(fixture.store, fixture.table), &err);
		store_fixture_quiet(&fixture);
		has_next = goes_on(rc, &err);
		ck_assert_uint_eq(store_fixture_count(&fixture), (uint64_t)rows);
	}
}
END_TEST

START_TEST(test_a_start_without_memory_fails_and_the_next_one_does_not)
{
	struct store_executor executor = {store_fixture_submit, &fixture};
	struct error err;
	bool has_next = true;

	for (int32_t i = 0; i < 20; i++)
		store_fixture_insert(&fixture, i, i, "row", 1000);
	store_fixture_flush(&fixture);
	for (int32_t i = 20; i < 30; i++)
		store_fixture_insert(&fixture, i, i, "row", 1000);
	store_fixture_close(&fixture);
	for (uint64_t n = 1; has_next; n = next_after(n)) {
		struct store *store = NULL;
		int rc;

		ck_assert_uint_lt(n, FAILURES_MAX);
		allocation_fail(n, _i != 0);
		rc = store_open(&fixture.options, fixture.env, &executor, &store, &err);
		if (rc == 0) {
			rc = store_set_schema(store, fixture.schema, &err);
			store_set_host_id(store, &fixture.host_id);
			if (rc == 0)
				rc = store_replay(store, &err);
			has_next = goes_on(rc, &err);
			store_fixture_quiet(&fixture);
			store_close(store);
			atomic_store(&fixture.table->user, NULL);
		} else {
			has_next = goes_on(rc, &err);
		}
	}
	store_fixture_open(&fixture);
	ck_assert_uint_eq(store_fixture_count(&fixture), 30);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("store_memory");
	TCase *tcase = tcase_create("store_memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_a_write_without_memory_is_refused_or_there, 0, 2);
	tcase_add_loop_test(tcase, test_a_read_without_memory_says_so, 0, 3);
	tcase_add_loop_test(tcase, test_a_flush_without_memory_loses_nothing, 0, 2);
	tcase_add_loop_test(tcase, test_a_compaction_without_memory_loses_nothing, 0, 2);
	tcase_add_loop_test(
	    tcase, test_a_start_without_memory_fails_and_the_next_one_does_not, 0, 2);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
