/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_tracker.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const struct uuid tables[] = {{{1}}, {{2}}};
static struct paxos_tracker tracker;
static struct error err;

static void
track_open(const struct uuid *table, const char *key, int64_t us)
{
	struct uuid ballot = paxos_ballot_make(us, 1, false);

	paxos_tracker_open(&tracker, table, slice_of_string(key), &ballot);
}

static void
track_close(const struct uuid *table, const char *key, int64_t us)
{
	struct uuid ballot = paxos_ballot_make(us, 1, false);

	paxos_tracker_close(&tracker, table, slice_of_string(key), &ballot);
}

START_TEST(test_what_was_finished_is_not_open)
{
	struct paxos_open *open;
	struct arena arena;

	arena_init(&arena, 4096);
	paxos_tracker_init(&tracker);
	ck_assert(atomic_load(&tracker.has_forgotten));
	track_open(&tables[0], "a", 100);
	track_open(&tables[1], "a", 100);
	track_open(&tables[0], "b", 100);
	track_open(&tables[0], "a", 200);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 3);
	/* An older one's end is not the end of the younger one; another table's is none at all. */
	track_close(&tables[0], "a", 100);
	track_close(&tables[1], "b", 300);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 3);
	track_close(&tables[0], "b", 100);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 2);
	/* Young ones are left alone. */
	ck_assert_int_eq(paxos_tracker_take(&tracker, 150, &arena, &open, &err), 0);
	ck_assert_ptr_nonnull(open);
	ck_assert_ptr_null(open->next);
	ck_assert(uuid_equal(&open->table, &tables[1]) && slice_equal_string(open->key, "a"));
	ck_assert_int_eq(paxos_ballot_timestamp(&open->ballot), 100);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 1);
	track_close(&tables[0], "a", 300);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 0);
	paxos_tracker_fini(&tracker);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_more_than_there_is_room_for_are_said_to_be_forgotten)
{
	struct paxos_open *open;
	struct arena arena;
	uint32_t count = 0;
	char key[16];

	arena_init(&arena, 4096);
	paxos_tracker_init(&tracker);
	atomic_store(&tracker.has_forgotten, false);
	for (int i = 0; i < 20000; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		track_open(&tables[0], key, 1000 + i);
	}
	ck_assert(!atomic_load(&tracker.has_forgotten));
	for (int i = 20000; i < 200000; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		track_open(&tables[0], key, 1000 + i);
	}
	ck_assert(atomic_load(&tracker.has_forgotten));
	ck_assert_int_eq(paxos_tracker_take(&tracker, INT64_MAX, &arena, &open, &err), 0);
	for (; open != NULL; open = open->next)
		count++;
	ck_assert_uint_gt(count, 20000);
	ck_assert_uint_lt(count, 200000);
	ck_assert_uint_eq(paxos_tracker_count(&tracker), 0);
	paxos_tracker_fini(&tracker);
	arena_fini(&arena);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("paxos_tracker");
	TCase *cases = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_test(cases, test_what_was_finished_is_not_open);
	tcase_add_test(cases, test_more_than_there_is_room_for_are_said_to_be_forgotten);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
