/* SPDX-License-Identifier: Apache-2.0 */
/* What incremental repairs made of a table: times of ranges, by hand and by seed token by token; data that stands apart. */
#include "cluster/repair_participant.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/log.h"
#include "storage/stream_writer.h"
#include "storage/table_store.h"
#include "tests/sim/world/ring.h"

static struct ring *ring;
static struct repairs *repairs;
static const struct uuid table_a = {{'a'}}, table_b = {{'b'}};
static uint8_t last_id;

static void
setup(void)
{
	struct ring_options options = {
	    .world = {.seed = 5, .node_count = 1, .is_encoded = true}, .factor = 1};

	log_set_level("ROOT", LOG_OFF);
	ring = ring_new(&options);
	repairs = ring_repairs(ring, 0);
	last_id = 0;
}

static void
teardown(void)
{
	ring_free(ring);
}

static struct uuid
add_session(enum repair_state state, int64_t repaired_at, const struct uuid *tables,
    uint32_t table_count, const struct ring_range *ranges, uint32_t range_count)
{
	struct repair_local local = {.id = {{++last_id, 's'}},
	    .state = state,
	    .repaired_at = repaired_at,
	    .tables = tables,
	    .table_count = table_count,
	    .ranges = ranges,
	    .range_count = range_count};

	repairs_add_saved(repairs, &local);
	return local.id;
}

static struct uuid
add_finalized(int64_t repaired_at, struct ring_range range)
{
	return add_session(REPAIR_FINALIZED, repaired_at, &table_a, 1, &range, 1);
}

static void
check_sections(const struct uuid *table, const struct ring_range *ranges, uint32_t range_count,
    const struct repair_section *expected, uint32_t expected_count)
{
	struct repair_section *sections;
	uint32_t count = repairs_repaired(repairs, table, ranges, range_count, &sections);

	ck_assert_uint_eq(count, expected_count);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert_int_eq(sections[i].range.left, expected[i].range.left);
		ck_assert_int_eq(sections[i].range.right, expected[i].range.right);
		ck_assert_int_eq(sections[i].repaired_at, expected[i].repaired_at);
	}
	free(sections);
}

static const struct ring_range whole = {INT64_MIN, INT64_MIN};

/* ---- What was repaired --------------------------------------------------------------------- */

START_TEST(test_a_table_that_was_never_repaired_has_no_sections)
{
	struct ring_range range = {0, 100};

	add_session(REPAIR_FINALIZED, 5, &table_b, 1, &range, 1);
	check_sections(&table_a, &whole, 1, NULL, 0);
}
END_TEST

START_TEST(test_only_what_is_final_and_of_all_replicas_counts)
{
	struct ring_range range = {0, 100};

	add_session(REPAIR_PREPARED, 5, &table_a, 1, &range, 1);
	add_session(REPAIR_FINALIZE_PROMISED, 5, &table_a, 1, &range, 1);
	add_session(REPAIR_HAS_FAILED, 5, &table_a, 1, &range, 1);
	add_session(REPAIR_FINALIZED, 0, &table_a, 1, &range, 1);
	check_sections(&table_a, &whole, 1, NULL, 0);
}
END_TEST

START_TEST(test_the_latest_repair_of_a_range_counts)
{
	static const struct repair_section expected[] = {
	    {{-10, 0}, 0}, {{0, 50}, 1000}, {{50, 150}, 2000}, {{150, 200}, 1000}, {{200, 210}, 0}};

	add_finalized(2000, (struct ring_range){50, 150});
	add_finalized(1000, (struct ring_range){0, 200});
	check_sections(&table_a, &(struct ring_range){-10, 210}, 1, expected, 5);
}
END_TEST

START_TEST(test_neighbours_of_one_time_are_one_section)
{
	static const struct repair_section expected[] = {{{0, 300}, 1000}};

	add_finalized(1000, (struct ring_range){0, 100});
	add_finalized(1000, (struct ring_range){100, 300});
	check_sections(&table_a, (struct ring_range[]){{200, 300}, {0, 200}}, 2, expected, 1);
}
END_TEST

START_TEST(test_sections_begin_anew_at_the_end_of_the_ring)
{
	static const struct repair_section expected[] = {
	    {{INT64_MIN, -100}, 1000}, {{100, INT64_MIN}, 1000}};

	add_finalized(1000, whole);
	check_sections(&table_a, &(struct ring_range){100, -100}, 1, expected, 2);
	check_sections(
	    &table_a, &whole, 1, &(struct repair_section){{INT64_MIN, INT64_MIN}, 1000}, 1);
}
END_TEST

/* ---- Which sessions are needed no more ------------------------------------------------------ */

static bool
is_superseded(struct uuid id)
{
	struct repair_local *local = repairs->locals;
	bool is;

	while (!uuid_equal(&local->id, &id))
		local = local->next;
	lock_take(&repairs->lock);
	is = repair_is_superseded_locked(repairs, local);
	lock_drop(&repairs->lock);
	return is;
}

START_TEST(test_a_session_is_superseded_when_all_of_it_was_repaired_later)
{
	struct ring_range range = {100, -100}, first = {INT64_MAX - 5, -150}, last = {-150, -100};
	struct ring_range middle = {90, INT64_MAX - 5};
	struct uuid id = add_session(REPAIR_FINALIZED, 1000, &table_a, 1, &range, 1);

	ck_assert(!is_superseded(id));
	add_finalized(2000, first);
	add_finalized(3000, middle);
	add_finalized(1000, last); /* not later */
	add_session(REPAIR_HAS_FAILED, 2000, &table_a, 1, &last, 1);
	add_session(REPAIR_FINALIZED, 2000, &table_b, 1, &last, 1);
	ck_assert(!is_superseded(id));
	add_finalized(2000, last);
	ck_assert(is_superseded(id));
}
END_TEST

START_TEST(test_a_session_of_two_tables_is_superseded_when_both_are)
{
	struct ring_range range = {0, 100};
	struct uuid tables[2] = {table_a, table_b};
	struct uuid id = add_session(REPAIR_FINALIZED, 1000, tables, 2, &range, 1);

	add_finalized(2000, range);
	ck_assert(!is_superseded(id));
	add_session(REPAIR_FINALIZED, 2000, &table_b, 1, &range, 1);
	ck_assert(is_superseded(id));
}
END_TEST

/* ---- By seed --------------------------------------------------------------------------------- */

enum { SEEDS = 300, SESSIONS = 6, WISHES = 3 };

static const int64_t edges[] = {
    INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, -77, -1, 0, 1, 76, 77, 78, INT64_MAX - 1, INT64_MAX};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static struct ring_range
any_range(void)
{
	struct world *world = ring_world(ring);

	return (struct ring_range){
	    edges[world_chance(world, EDGES)], edges[world_chance(world, EDGES)]};
}

static bool
is_in(struct ring_range range, int64_t token)
{
	if (range.left < range.right)
		return token > range.left && token <= range.right;
	return token > range.left || token <= range.right;
}

static int64_t
latest(const struct ring_range *ranges, const int64_t *times, int64_t token)
{
	int64_t found = 0;

	for (uint32_t i = 0; i < SESSIONS; i++)
		if (is_in(ranges[i], token) && times[i] > found)
			found = times[i];
	return found;
}

static void
check_seed(void)
{
	struct ring_range ranges[SESSIONS], wishes[WISHES];
	int64_t times[SESSIONS];
	struct uuid ids[SESSIONS];
	struct repair_section *sections;
	uint32_t count;

	for (uint32_t i = 0; i < SESSIONS; i++) {
		ranges[i] = any_range();
		times[i] = 1 + world_chance(ring_world(ring), 4);
		ids[i] = add_finalized(times[i], ranges[i]);
	}
	for (uint32_t i = 0; i < WISHES; i++)
		wishes[i] = any_range();
	count = repairs_repaired(repairs, &table_a, wishes, WISHES, &sections);
	for (uint32_t i = 1; i < count; i++) {
		ck_assert_int_ge(sections[i].range.left, sections[i - 1].range.right);
		ck_assert(sections[i].range.left != sections[i - 1].range.right ||
		    sections[i].repaired_at != sections[i - 1].repaired_at);
	}
	/* Token INT64_MIN is no key's. */
	for (uint32_t e = 1; e < EDGES; e++) {
		bool is_wanted = false, is_told = false;

		for (uint32_t i = 0; i < WISHES; i++)
			is_wanted |= is_in(wishes[i], edges[e]);
		for (uint32_t i = 0; i < count; i++) {
			if (!is_in(sections[i].range, edges[e]))
				continue;
			is_told = true;
			ck_assert_int_eq(sections[i].repaired_at, latest(ranges, times, edges[e]));
		}
		ck_assert_int_eq(is_told, is_wanted);
	}
	free(sections);
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct repair_local *local = repair_local_get(repairs, &ids[i]);
		bool is_covered = true, meets = false;

		for (uint32_t e = 1; e < EDGES; e++) {
			bool is_wanted = false;

			if (!is_in(ranges[i], edges[e]))
				continue;
			is_covered &= latest(ranges, times, edges[e]) > times[i];
			for (uint32_t w = 0; w < WISHES; w++)
				is_wanted |= is_in(wishes[w], edges[e]);
			meets |= is_wanted;
		}
		ck_assert_int_eq(is_superseded(ids[i]), is_covered);
		ck_assert_int_eq(repair_local_has_range(local, wishes, WISHES), meets);
		repair_local_free(local);
	}
}

START_TEST(test_times_of_ranges_by_seed)
{
	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		check_seed();
		repair_locals_free(repairs);
		last_id = 0;
	}
}
END_TEST

/* ---- What is pending ------------------------------------------------------------------------- */

/* A row on the disk, apart for a session. */
static void
set_apart(int32_t pk, const struct uuid *session)
{
	struct ring_row row = {pk, 1, 7};
	struct ring_op op = {.on_done = NULL};
	struct stream_range range;
	struct error err;
	uint8_t key[4];

	store_u32(key, (uint32_t)pk);
	range.right = murmur3_token(slice_of(key, sizeof(key)));
	range.left = range.right - 1;
	ring_put(ring, 0, &op, &row, 1, 1, CONSISTENCY_ONE, WRITE_SIMPLE);
	ring_wait(ring, &op);
	ck_assert(op.is_done && !op.has_failed);
	ring_op_free(&op);
	ring_flush(ring, 0);
	ck_assert_msg(store_anticompact(ring_store(ring, 0), ring_table_store(ring, 0, 0), session,
			  &range, 1, &err) == 0,
	    "%s", err.text);
}

/* SSTables of the table that are in no session, by whether they are repaired. */
static uint32_t
count_released(bool is_repaired)
{
	struct table_view *view = table_view_acquire(ring_table_store(ring, 0, 0));
	uint32_t count = 0;

	for (uint32_t i = 0; i < view->sstable_count; i++) {
		struct error err;
		const struct sstable_repair *repair = sstable_repair(view->sstables[i], &err);

		ck_assert_ptr_nonnull(repair);
		count += !repair->has_pending_repair && (repair->repaired_at != 0) == is_repaired;
	}
	table_view_release(view);
	return count;
}

static void
check_stat(const struct repair_pending_stat *stat, uint64_t sessions, uint64_t sstables)
{
	ck_assert_uint_eq(stat->sessions, sessions);
	ck_assert_uint_eq(stat->sstables, sstables);
	ck_assert_int_eq(stat->bytes > 0, sstables > 0);
}

START_TEST(test_what_stands_apart_is_told_by_the_state_of_its_session)
{
	static const enum repair_state states[] = {
	    REPAIR_PREPARED, REPAIR_FINALIZE_PROMISED, REPAIR_FINALIZED, REPAIR_HAS_FAILED};
	struct ring_range range = {0, 100};
	struct repair_pending_stats stats;
	struct uuid id, unknown = {{'u'}};
	struct table_store *table = ring_table_store(ring, 0, 0);

	repairs_pending(repairs, table, &whole, 1, &stats);
	check_stat(&stats.pending, 0, 0);
	for (uint32_t i = 0; i < 4; i++) {
		id = add_session(states[i], 1000, &table_a, 1, &range, 1);
		set_apart((int32_t)i, &id);
	}
	set_apart(4, &id);
	set_apart(5, &unknown);
	repairs_pending(repairs, table, &whole, 1, &stats);
	check_stat(&stats.pending, 2, 2);
	check_stat(&stats.finalized, 1, 1);
	check_stat(&stats.failed, 2, 3);
	/* Of ranges that the sessions have nothing of, only the one that nobody knows. */
	repairs_pending(repairs, table, &(struct ring_range){100, 200}, 1, &stats);
	check_stat(&stats.pending, 0, 0);
	check_stat(&stats.finalized, 0, 0);
	check_stat(&stats.failed, 1, 1);
}
END_TEST

START_TEST(test_cleanup_releases_what_is_over)
{
	static const enum repair_state states[] = {
	    REPAIR_PREPARED, REPAIR_FINALIZED, REPAIR_HAS_FAILED};
	struct ring_range near = {0, 100}, far = {100, 200};
	struct repair_pending_stats stats;
	struct table_store *table = ring_table_store(ring, 0, 0);
	struct uuid id, unknown = {{'u'}};
	uint32_t good, bad;

	for (uint32_t i = 0; i < 3; i++) {
		id = add_session(states[i], 1000, &table_a, 1, &near, 1);
		set_apart((int32_t)i, &id);
	}
	id = add_session(REPAIR_FINALIZED, 1000, &table_a, 1, &far, 1);
	set_apart(3, &id);
	set_apart(4, &unknown);
	repairs_cleanup(repairs, table, &near, 1, &good, &bad);
	ck_assert_uint_eq(good, 3);
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_eq(count_released(true), 1);
	ck_assert_uint_eq(count_released(false), 2);
	repairs_pending(repairs, table, &whole, 1, &stats);
	check_stat(&stats.pending, 1, 1);
	check_stat(&stats.finalized, 1, 1);
	check_stat(&stats.failed, 0, 0);
	repairs_cleanup(repairs, table, &whole, 1, &good, &bad);
	ck_assert_uint_eq(good, 1);
	repairs_cleanup(repairs, table, &whole, 1, &good, &bad);
	ck_assert_uint_eq(good, 0);
}
END_TEST

START_TEST(test_cleanup_tells_what_it_could_not_release)
{
	struct table_store *table = ring_table_store(ring, 0, 0);
	struct uuid id = add_finalized(1000, whole);
	uint32_t good, bad;

	set_apart(1, &id);
	env_sim_fail(
	    world_node(ring_world(ring), 0)->disk, ENV_SIM_WRITE, "Statistics", 0, 1000, 28);
	repairs_cleanup(repairs, table, &whole, 1, &good, &bad);
	ck_assert_uint_eq(good, 0);
	ck_assert_uint_eq(bad, 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("repair_summary");
	TCase *tcase = tcase_create("repair_summary");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_a_table_that_was_never_repaired_has_no_sections);
	tcase_add_test(tcase, test_only_what_is_final_and_of_all_replicas_counts);
	tcase_add_test(tcase, test_the_latest_repair_of_a_range_counts);
	tcase_add_test(tcase, test_neighbours_of_one_time_are_one_section);
	tcase_add_test(tcase, test_sections_begin_anew_at_the_end_of_the_ring);
	tcase_add_test(tcase, test_a_session_is_superseded_when_all_of_it_was_repaired_later);
	tcase_add_test(tcase, test_a_session_of_two_tables_is_superseded_when_both_are);
	tcase_add_test(tcase, test_times_of_ranges_by_seed);
	tcase_add_test(tcase, test_what_stands_apart_is_told_by_the_state_of_its_session);
	tcase_add_test(tcase, test_cleanup_releases_what_is_over);
	tcase_add_test(tcase, test_cleanup_tells_what_it_could_not_release);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
