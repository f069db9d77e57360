/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/memtable.h"
#include "storage/merge.h"
#include "tests/unit/storage/facts.h"

/*
 * Sources are memtables: each has some of the facts. Whatever facts are in which source, in whatever order
 * and grouping they are merged, and some of them twice: what comes out is what the model says.
 */
enum { TEST_SOURCES = 6 };

struct test_sources {
	struct memtable *memtables[TEST_SOURCES];
	struct partition_iterator *flushes[TEST_SOURCES]; /* NULL: none */
	struct arena turns[TEST_SOURCES][2]; /* of transient merges */
	uint32_t count, turn_count;
};

static void
test_sources_init(struct test_sources *sources, struct facts *facts, struct random *random)
{
	struct error err;

	sources->count = 1 + random_below(random, TEST_SOURCES);
	sources->turn_count = 0;
	for (uint32_t i = 0; i < sources->count; i++) {
		sources->memtables[i] = memtable_new(facts->table, 1, NULL);
		sources->flushes[i] = NULL;
	}
	for (uint32_t i = 0; i < facts->count; i++) {
		uint32_t copies = 1 + (random_below(random, 5) == 0);

		for (uint32_t j = 0; j < copies; j++) {
			struct partition_update update;

			facts_update(facts, UINT64_C(1) << i, &update);
			ck_assert_int_eq(
			    memtable_apply(sources->memtables[random_below(random, sources->count)],
				&update, &err),
			    0);
		}
	}
}

static void
test_sources_fini(struct test_sources *sources)
{
	for (uint32_t i = 0; i < sources->count; i++) {
		partition_iterator_close(sources->flushes[i]);
		memtable_unref(sources->memtables[i]);
	}
	for (uint32_t i = 0; i < sources->turn_count; i++) {
		arena_fini(&sources->turns[i][0]);
		arena_fini(&sources->turns[i][1]);
	}
}

/* One source's partition: as readers see it, or raw, as a flush does. NULL: it is not there. */
static struct unfiltered_iterator *
test_source_open(struct test_sources *sources, uint32_t i, struct facts *facts,
    struct random *random, const struct read_command *command)
{
	struct unfiltered_iterator *iterator = NULL;
	struct error err;

	if (command->clustering.is_reversed || random_below(random, 3) == 0) {
		ck_assert_int_eq(memtable_read(sources->memtables[i], command, &facts->arena, NULL,
				     &iterator, &err),
		    0);
		return iterator;
	}
	ck_assert_int_eq(memtable_flush_iterator(sources->memtables[i], true, &facts->arena,
			     &sources->flushes[i], &err),
	    0);
	ck_assert_int_ge(partition_iterator_next(sources->flushes[i], &iterator, &err), 0);
	return iterator;
}

/* A tree of merges over the sources, in random order and grouping. NULL: nothing there. */
static struct unfiltered_iterator *
test_merge_sources(struct test_sources *sources, struct facts *facts, struct random *random,
    const struct read_command *command)
{
	struct unfiltered_iterator *iterators[TEST_SOURCES];
	uint32_t count = 0;
	struct error err;

	for (uint32_t i = 0; i < sources->count; i++) {
		struct unfiltered_iterator *iterator =
		    test_source_open(sources, i, facts, random, command);

		if (iterator != NULL)
			iterators[count++] = iterator;
	}
	while (count > 1) {
		struct unfiltered_iterator *group[TEST_SOURCES];
		uint32_t taken = 0, wanted = 2 + random_below(random, count - 1);
		struct arena *turns = sources->turns[sources->turn_count++];

		arena_init(&turns[0], 4096);
		arena_init(&turns[1], 4096);

		while (taken < wanted) {
			uint32_t pick = random_below(random, count);

			group[taken++] = iterators[pick];
			iterators[pick] = iterators[--count];
		}
		if (random_below(random, 2) == 0)
			ck_assert_int_eq(
			    unfiltered_merge(group, taken, &facts->arena, &iterators[count], &err),
			    0);
		else
			ck_assert_int_eq(unfiltered_merge_transient(group, taken, &facts->arena,
					     turns, &iterators[count], &err),
			    0);
		count++;
	}
	return count == 1 ? iterators[0] : NULL;
}

START_TEST(test_any_order_and_grouping_gives_the_same)
{
	uint32_t all = (1u << FACTS_ROWS) - 1;
	struct facts facts;

	facts_init(&facts);
	for (uint64_t seed = 1; seed <= 4000; seed++) {
		struct random random = {seed};
		struct test_sources sources;
		struct partition_update update;
		struct read_command command;
		struct unfiltered_iterator *iterator;
		struct buffer got, expected;

		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		test_sources_init(&sources, &facts, &random);
		facts_update(&facts, 0, &update);
		command = (struct read_command){
		    .table = facts.table,
		    .key = update.key,
		    .token = update.token,
		    .clustering = {.with_static = true, .is_reversed = seed % 2 == 0},
		};
		iterator = test_merge_sources(&sources, &facts, &random, &command);
		ck_assert_ptr_nonnull(iterator);
		buffer_init(&got);
		buffer_init(&expected);
		facts_print(&facts, iterator, all, &got);
		facts_expect(&facts, all, command.clustering.is_reversed, &expected);
		ck_assert_msg(strcmp((char *)got.data, (char *)expected.data) == 0,
		    "seed %llu\ngot:\n%s\nexpected:\n%s", (unsigned long long)seed, got.data,
		    expected.data);
		buffer_fini(&got);
		buffer_fini(&expected);
		test_sources_fini(&sources);
	}
	ck_assert_uint_gt(facts.raw_count, 1000);
	facts_fini(&facts);
}
END_TEST

/* ---- runs of partitions -------------------------------------------------------------------------- */

struct test_run {
	struct partition_iterator base;
	const struct table_metadata *table;
	uint32_t at, step;
	uint32_t open; /* partitions not closed */
	uint8_t keys[64][4];
	uint32_t count;
	struct unfiltered_iterator partition;
};

static int
test_partition_next(struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	(void)iterator;
	(void)out;
	(void)err;
	return 0;
}

static void
test_partition_close(struct unfiltered_iterator *iterator)
{
	struct test_run *run =
	    (struct test_run *)((char *)iterator - offsetof(struct test_run, partition));

	ck_assert_uint_eq(run->open, 1);
	run->open = 0;
}

static const struct unfiltered_iterator_ops test_partition_ops = {
    test_partition_next,
    test_partition_close,
};

static int
test_run_next(struct partition_iterator *base, struct unfiltered_iterator **out, struct error *err)
{
	struct test_run *run = (struct test_run *)base;

	(void)err;
	ck_assert_uint_eq(run->open, 0);
	if (run->at == run->count)
		return 0;
	run->partition = (struct unfiltered_iterator){
	    .ops = &test_partition_ops,
	    .table = run->table,
	    .token = (int64_t)load_u32(run->keys[run->at]) / 3, /* some tokens collide */
	    .key = slice_of(run->keys[run->at], 4),
	    .partition_deletion = DELETION_LIVE,
	};
	run->at++;
	run->open = 1;
	*out = &run->partition;
	return 1;
}

static void
test_run_close(struct partition_iterator *base)
{
	struct test_run *run = (struct test_run *)base;

	ck_assert_uint_eq(run->open, 0);
	run->step = 0;
}

static const struct partition_iterator_ops test_run_ops = {test_run_next, test_run_close};

START_TEST(test_partitions_meet_by_token_and_key)
{
	struct table_metadata *table = facts_table();
	struct test_run runs[4];
	struct partition_iterator *sources[4], *merged;
	struct unfiltered_iterator *partition;
	struct arena arena;
	struct error err;
	bool present[128] = {false};
	uint32_t seen = 0;
	int64_t last = -1;

	arena_init(&arena, 4096);
	memset(runs, 0, sizeof(runs));
	for (uint32_t i = 0; i < 4; i++) {
		runs[i].base.ops = &test_run_ops;
		runs[i].table = table;
		runs[i].step = i + 1;
		for (uint32_t key = i; key < 100; key += i + 1) {
			store_u32(runs[i].keys[runs[i].count++ % 64], key);
			present[key] = true;
			if (runs[i].count == 64)
				break;
		}
		sources[i] = &runs[i].base;
	}
	ck_assert_int_eq(partition_merge(sources, 4, &arena, &merged, &err), 0);
	while (partition_iterator_next(merged, &partition, &err) == 1) {
		int64_t key = load_u32(partition->key.data);

		ck_assert_int_gt(key, last);
		ck_assert(present[key]);
		last = key;
		seen++;
		unfiltered_iterator_close(partition);
	}
	for (uint32_t key = 0; key < 100; key++)
		seen -= present[key];
	ck_assert_uint_eq(seen, 0);
	partition_iterator_close(merged);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(runs[i].step, 0);
	arena_fini(&arena);
	table_unref(table);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("merge");
	TCase *tcase = tcase_create("merge");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, test_any_order_and_grouping_gives_the_same);
	tcase_add_test(tcase, test_partitions_meet_by_token_and_key);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
