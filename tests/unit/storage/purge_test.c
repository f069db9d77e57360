/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "storage/memtable.h"
#include "storage/merge.h"
#include "tests/unit/storage/facts.h"

static struct facts facts;
static int asked, opened;
static struct partition_iterator *flush; /* whose partition is open; NULL: none */

static void
test_setup(void)
{
	facts_init(&facts);
	asked = opened = 0;
}

static void
test_teardown(void)
{
	facts_fini(&facts);
}

static int64_t
test_max(void *argument, struct slice key, int64_t token)
{
	(void)key;
	(void)token;
	asked++;
	return *(int64_t *)argument;
}

/* What goes forward comes raw every other time. */
static struct unfiltered_iterator *
test_open(struct memtable *memtable, bool is_reversed)
{
	struct partition_update update;
	struct unfiltered_iterator *iterator;
	static struct read_command command; /* the iterator looks at it to its end */
	struct error err;

	if (!is_reversed && opened++ % 2 == 0) {
		partition_iterator_close(flush);
		ck_assert_int_eq(
		    memtable_flush_iterator(memtable, true, &facts.arena, &flush, &err), 0);
		ck_assert_int_eq(partition_iterator_next(flush, &iterator, &err), 1);
		return iterator;
	}
	facts_update(&facts, 0, &update);
	command = (struct read_command){
	    .table = facts.table,
	    .key = update.key,
	    .token = update.token,
	    .clustering = {.with_static = true, .is_reversed = is_reversed},
	};
	ck_assert_int_eq(memtable_read(memtable, &command, &facts.arena, NULL, &iterator, &err), 0);
	ck_assert_ptr_nonnull(iterator);
	return iterator;
}

/* Before the arena of the facts is emptied. */
static void
test_done(struct memtable *memtable)
{
	partition_iterator_close(flush);
	flush = NULL;
	memtable_unref(memtable);
}

static struct memtable *
test_memtable(void)
{
	struct memtable *memtable = memtable_new(facts.table, 1, NULL);
	struct partition_update update;
	struct error err;

	facts_update(&facts, UINT64_MAX, &update);
	ck_assert_int_eq(memtable_apply(memtable, &update, &err), 0);
	return memtable;
}

static char *
test_purged(
    struct memtable *memtable, bool is_reversed, int64_t now, int32_t gc_before, int64_t max)
{
	struct unfiltered_iterator *iterator = test_open(memtable, is_reversed);
	struct buffer out;
	struct error err;

	ck_assert_int_eq(unfiltered_purge(iterator, now, gc_before, test_max, &max, &facts.arena,
			     &iterator, &err),
	    0);
	buffer_init(&out);
	facts_print(&facts, iterator, (1u << FACTS_ROWS) - 1, &out);
	return (char *)out.data;
}

/* Facts to choose from: local deletion times are 1000..1002, TTLs 10 or 11, timestamps 1..6. */
START_TEST(test_nothing_goes_before_its_time)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct memtable *memtable;
		struct buffer expected;
		char *got;

		facts_generate(&facts, &random, 40);
		memtable = test_memtable();
		got = test_purged(memtable, seed % 2, 999, 900, INT64_MAX);
		buffer_init(&expected);
		facts_expect(&facts, (1u << FACTS_ROWS) - 1, seed % 2, &expected);
		ck_assert_str_eq(got, (char *)expected.data);
		buffer_fini(&expected);
		free(got);
		test_done(memtable);
	}
	ck_assert_int_eq(asked, 0);
}
END_TEST

/* With all deletions old enough what is left is what a client sees. */
START_TEST(test_everything_dead_goes_when_it_may)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct memtable *memtable;
		struct unfiltered_iterator *iterator;
		struct unfiltered unfiltered;
		struct error err;
		int64_t max = INT64_MAX;

		facts_generate(&facts, &random, 40);
		memtable = test_memtable();
		iterator = test_open(memtable, seed % 2);
		ck_assert_int_eq(unfiltered_purge(iterator, 2000, 2000, test_max, &max,
				     &facts.arena, &iterator, &err),
		    0);
		ck_assert(deletion_is_live(iterator->partition_deletion));
		while (unfiltered_iterator_next(iterator, &unfiltered, &err) == 1) {
			if (unfiltered.kind == UNFILTERED_RAW)
				ck_assert_int_eq(
				    unfiltered_decode_raw(&unfiltered, &facts.arena, &err), 0);
			ck_assert_int_eq(unfiltered.kind, UNFILTERED_ROW);
			ck_assert(deletion_is_live(unfiltered.row.deletion));
			ck_assert_uint_eq(unfiltered.row.complex_deletion_count, 0);
			for (uint32_t i = 0; i < unfiltered.row.cell_count; i++)
				ck_assert(cell_is_live(&unfiltered.row.cells[i], 2000));
		}
		unfiltered_iterator_close(iterator);
		test_done(memtable);
	}
}
END_TEST

START_TEST(test_what_older_data_needs_stays)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct random random = {seed};
		struct memtable *memtable;
		struct buffer expected;
		char *got;

		/* Nothing expires yet, all is old enough, but overlapped by data as old as time 1. */
		facts_generate(&facts, &random, 40);
		memtable = test_memtable();
		got = test_purged(memtable, false, 999, 2000, 1);
		buffer_init(&expected);
		facts_expect(&facts, (1u << FACTS_ROWS) - 1, false, &expected);
		ck_assert_str_eq(got, (char *)expected.data);
		buffer_fini(&expected);
		free(got);
		test_done(memtable);
	}
	ck_assert_int_le(asked, 200); /* once a partition at most */
}
END_TEST

START_TEST(test_expired_cell_becomes_a_tombstone_first)
{
	struct memtable *memtable;
	char *got;

	facts.count = 1;
	facts.facts[0] = (struct fact){
	    .kind = FACT_CELL,
	    .column = &facts.table->regulars[0],
	    .timestamp = 3,
	    .ttl = 10,
	    .local_deletion_time = 1000,
	    .value = 1,
	};
	memtable = test_memtable();
	for (int i = 0; i < 2; i++) {
		got =
		    test_purged(memtable, false, 999, 999, INT64_MAX); /* lives for a second yet */
		ck_assert_ptr_nonnull(strstr(got, "0 0: a[0]=1@3/10/1000"));
		free(got);
	}
	for (int i = 0; i < 2; i++) {
		got = test_purged(memtable, false, 1000, 990, INT64_MAX);
		ck_assert_ptr_nonnull(strstr(got, "0 0: a[0]=@3/0/990"));
		free(got);
	}
	for (int i = 0; i < 2; i++) {
		/* Written before: gone at once. */
		got = test_purged(memtable, false, 1000, 991, INT64_MAX);
		ck_assert_ptr_null(strstr(got, "a[0]"));
		free(got);
	}
	test_done(memtable);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("purge");
	TCase *tcase = tcase_create("purge");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_nothing_goes_before_its_time);
	tcase_add_test(tcase, test_everything_dead_goes_when_it_may);
	tcase_add_test(tcase, test_what_older_data_needs_stays);
	tcase_add_test(tcase, test_expired_cell_becomes_a_tombstone_first);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
