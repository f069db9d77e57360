/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "tests/unit/storage/replica.h"

static struct facts facts;
static struct arena arena;
static struct error err;

static void
test_setup(void)
{
	facts_init(&facts);
	arena_init(&arena, 65536);
}

static void
test_teardown(void)
{
	arena_fini(&arena);
	facts_fini(&facts);
}

static void
test_equal(const struct read_digest *a, const struct read_digest *b, uint64_t seed)
{
	ck_assert_msg(
	    read_digest_equal(a, b), "digests differ, seed %llu", (unsigned long long)seed);
}

/* ---- what is answered ----------------------------------------------------------------------------- */

static struct read_response
test_decode(struct slice encoded, const struct read_command *command)
{
	struct read_response response;

	ck_assert_msg(
	    read_response_decode(encoded, command, &arena, &response, &err) == 0, "%s", err.text);
	return response;
}

START_TEST(test_an_answer_holds_what_the_model_says)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct read_command command;
		struct read_response_stats stats;
		struct read_response response;
		struct partition_iterator *partitions;
		struct unfiltered_iterator *partition;
		struct buffer got, expected;
		struct replica replica;
		uint32_t all = (1u << FACTS_ROWS) - 1;

		arena_reset(&arena);
		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		replica_init(&replica, facts.table);
		replica_apply_facts(&replica, &facts, UINT64_MAX, 7, &random);
		command = replica_command(facts.table, 7, &arena);
		command.clustering.is_reversed = seed % 2 == 0;
		response =
		    test_decode(replica_answer(&replica, &command, true, &arena, &stats), &command);
		ck_assert(!response.is_digest && !stats.is_cut);
		ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
		ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 1);
		buffer_init(&got);
		buffer_init(&expected);
		facts_print(&facts, partition, all, &got);
		facts_expect(&facts, all, command.clustering.is_reversed, &expected);
		ck_assert_msg(strcmp((char *)got.data, (char *)expected.data) == 0,
		    "seed %llu\ngot:\n%s\nexpected:\n%s", (unsigned long long)seed, got.data,
		    expected.data);
		ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 0);
		ck_assert(read_response_is_complete(partitions));
		buffer_fini(&got);
		buffer_fini(&expected);
		replica_fini(&replica);
	}
}
END_TEST

static void
test_print_answer(struct slice encoded, const struct read_command *command, struct buffer *out)
{
	struct read_response response = test_decode(encoded, command);
	struct partition_iterator *partitions;

	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	replica_print(partitions, out);
}

/* ---- digests ------------------------------------------------------------------------------------ */

/* A replica whose data was compacted at `now`. */
struct test_compacted {
	struct partition_iterator base;
	struct partition_iterator *source;
	int64_t now;
	int32_t gc_before;
};

static int64_t
test_purge_all(void *argument, struct slice key, int64_t token)
{
	(void)argument;
	(void)key;
	(void)token;
	return INT64_MAX;
}

static int
test_compacted_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *error)
{
	struct test_compacted *compacted = (struct test_compacted *)iterator;
	struct unfiltered_iterator *partition;
	int rc = partition_iterator_next(compacted->source, &partition, error);

	if (rc <= 0)
		return rc;
	ck_assert_int_eq(unfiltered_purge(partition, compacted->now, compacted->gc_before,
			     test_purge_all, NULL, &arena, out, error),
	    0);
	return 1;
}

static void
test_compacted_close(struct partition_iterator *iterator)
{
	partition_iterator_close(((struct test_compacted *)iterator)->source);
}

static const struct partition_iterator_ops test_compacted_ops = {
    test_compacted_next, test_compacted_close};

static void
test_vary_limits(struct read_command *command, struct random *random)
{
	if (random_below(random, 3) == 0)
		command->row_limit = 1 + random_below(random, 8);
	if (random_below(random, 3) == 0)
		command->per_partition_limit = 1 + random_below(random, 4);
}

/* Several partitions of facts of their own. */
static void
test_fill(struct replica *replicas, uint32_t count, struct random *random)
{
	for (int key = 1; key <= 3; key++) {
		facts_generate(&facts, random, 1 + random_below(random, 30));
		for (uint32_t i = 0; i < count; i++)
			replica_apply_facts(&replicas[i], &facts, UINT64_MAX, key, random);
	}
}

START_TEST(test_digests_agree_however_the_data_lies)
{
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		struct random random = {seed};
		struct read_response_stats a, b, compacted_stats;
		struct read_response_options options = {.wants_data = false};
		struct test_compacted compacted = {.base = {&test_compacted_ops}};
		struct read_digest of_data;
		struct read_response response;
		struct replica replicas[2];
		struct read_command command;
		struct buffer out;
		struct slice data;

		arena_reset(&arena);
		replica_init(&replicas[0], facts.table);
		replica_init(&replicas[1], facts.table);
		test_fill(replicas, 2, &random);
		command =
		    replica_command(facts.table, random_below(&random, 2) == 0 ? -1 : 2, &arena);
		replica_command_vary(&command, &facts, &random);
		test_vary_limits(&command, &random);
		/* Tombstones and expiries lie at 1000..1002; now may be after some of them, or past gc_grace. */
		command.now_seconds = 998 + random_below(&random, 6);
		if (random_below(&random, 2) == 0)
			command.now_seconds += facts.table->options.gc_grace_seconds;
		data = replica_answer(&replicas[0], &command, true, &arena, &a);
		replica_answer(&replicas[1], &command, false, &arena, &b);
		test_equal(&a.digest, &b.digest, seed);
		response = test_decode(data, &command);
		ck_assert_int_eq(read_response_digest(&response, &arena, &of_data, &err), 0);
		test_equal(&of_data, &a.digest, seed);

		/* A compaction at an earlier time has forgotten some and turned some into tombstones. */
		compacted.now = command.now_seconds - random_below(&random, 3);
		compacted.gc_before =
		    (int32_t)(compacted.now - facts.table->options.gc_grace_seconds);
		compacted.source = replica_read(&replicas[1], &command, &arena);
		buffer_init(&out);
		ck_assert_int_eq(read_response_write(&compacted.base, &command, &options, &arena,
				     &out, &compacted_stats, &err),
		    0);
		test_equal(&compacted_stats.digest, &a.digest, seed);
		response = test_decode(buffer_slice(&out), &command);
		ck_assert(response.is_digest);
		test_equal(&response.digest, &a.digest, seed);
		buffer_fini(&out);
		replica_fini(&replicas[0]);
		replica_fini(&replicas[1]);
	}
}
END_TEST

/* Replicas of which one has a fact more have different digests, unless the fact says nothing. */
START_TEST(test_digests_tell_what_differs)
{
	uint32_t same = 0, different = 0;

	for (uint64_t seed = 1; seed <= 1500; seed++) {
		struct random random = {seed};
		struct read_response_stats a, b;
		struct buffer full, less;
		struct replica replicas[2];
		struct read_command command;
		bool is_same;

		arena_reset(&arena);
		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		replica_init(&replicas[0], facts.table);
		replica_init(&replicas[1], facts.table);
		replica_apply_facts(&replicas[0], &facts, UINT64_MAX, 7, &random);
		replica_apply_facts(&replicas[1], &facts,
		    ~(UINT64_C(1) << random_below(&random, facts.count)), 7, &random);
		command = replica_command(facts.table, 7, &arena);
		buffer_init(&full);
		buffer_init(&less);
		test_print_answer(
		    replica_answer(&replicas[0], &command, true, &arena, &a), &command, &full);
		test_print_answer(
		    replica_answer(&replicas[1], &command, true, &arena, &b), &command, &less);
		is_same = strcmp((char *)full.data, (char *)less.data) == 0;
		ck_assert_msg(is_same == read_digest_equal(&a.digest, &b.digest),
		    "seed %llu\n%s\n%s", (unsigned long long)seed, full.data, less.data);
		same += is_same;
		different += !is_same;
		buffer_fini(&full);
		buffer_fini(&less);
		replica_fini(&replicas[0]);
		replica_fini(&replicas[1]);
	}
	ck_assert_uint_gt(same, 50);
	ck_assert_uint_gt(different, 500);
}
END_TEST

/* ---- limits, filters, tombstones ------------------------------------------------------------------ */

static void
test_put_row(struct replica *replica, int key, int c1, int value, int64_t timestamp)
{
	struct random random = {1};
	struct update_builder *builder =
	    update_builder_new(facts.table, replica_key(key, &arena), &arena);
	struct slice clustering[2] = {replica_key(c1, &arena), replica_key(0, &arena)};
	bool is_dead = value < 0;
	struct cell cell = {table_column(facts.table, slice_of_string("a")), timestamp, TTL_NONE,
	    is_dead ? 400 : LOCAL_DELETION_TIME_NONE, slice_null,
	    is_dead ? slice_empty : replica_key(value, &arena)};
	struct row row = {
	    .clustering_count = 2,
	    .clustering = clustering,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = &cell,
	};
	struct partition_update update;

	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	replica_apply(replica, &update, &random);
}

START_TEST(test_limits_count_live_rows)
{
	struct read_command command = replica_command(facts.table, -1, &arena);
	struct read_response_stats stats;
	struct read_response response;
	struct partition_iterator *partitions;
	struct unfiltered_iterator *partition;
	struct unfiltered item;
	struct replica replica;
	int rows = 0;

	replica_init(&replica, facts.table);
	for (int c1 = 0; c1 < 10; c1++)
		test_put_row(&replica, 1, c1, c1 % 2 == 0 ? -1 : c1, 5);
	command.row_limit = 3;
	response = test_decode(replica_answer(&replica, &command, true, &arena, &stats), &command);
	ck_assert_uint_eq(stats.rows, 3);
	ck_assert(stats.is_cut);
	ck_assert_uint_eq(stats.tombstones, 3);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 1);
	while (unfiltered_iterator_next(partition, &item, &err) > 0)
		rows++;
	ck_assert_int_eq(rows, 6); /* 0 to 5: tombstones go along */
	ck_assert_int_eq(read_response_partition_end(partition), READ_RESPONSE_ROW_LIMIT);
	ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 0);
	ck_assert(!read_response_is_complete(partitions));

	command.row_limit = READ_LIMIT_NONE;
	command.per_partition_limit = 2;
	response = test_decode(replica_answer(&replica, &command, true, &arena, &stats), &command);
	ck_assert_uint_eq(stats.rows, 2);
	ck_assert(!stats.is_cut);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	ck_assert_int_eq(partition_iterator_next(partitions, &partition, &err), 1);
	while (unfiltered_iterator_next(partition, &item, &err) > 0)
		continue;
	ck_assert_int_eq(read_response_partition_end(partition), READ_RESPONSE_PARTITION_LIMIT);
	replica_fini(&replica);
}
END_TEST

START_TEST(test_filters_drop_rows_and_partitions)
{
	struct read_command command = replica_command(facts.table, -1, &arena);
	struct filter_expression filter = {
	    .column = table_column(facts.table, slice_of_string("a")),
	    .operator= FILTER_EQ,
	    .value = replica_key(3, &arena),
	};
	struct read_response_stats stats;
	struct read_response response;
	struct replica replica;
	struct buffer text;
	struct partition_iterator *partitions;

	replica_init(&replica, facts.table);
	for (int key = 1; key <= 2; key++) {
		for (int c1 = 0; c1 < 6; c1++)
			test_put_row(&replica, key, c1, key * c1, 5);
	}
	command.filters = &filter;
	command.filter_count = 1;
	response = test_decode(replica_answer(&replica, &command, true, &arena, &stats), &command);
	ck_assert_uint_eq(stats.rows, 1);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	buffer_init(&text);
	replica_print(partitions, &text);
	ck_assert_ptr_nonnull(strstr((char *)text.data, "partition 00000001"));
	ck_assert_ptr_null(strstr((char *)text.data, "partition 00000002"));
	buffer_fini(&text);
	replica_fini(&replica);
}
END_TEST

START_TEST(test_too_many_tombstones_are_a_failure_of_their_own)
{
	struct read_command command = replica_command(facts.table, -1, &arena);
	struct read_response_options options = {
	    .wants_data = true, .tombstone_failure_threshold = 4};
	struct read_response_stats stats;
	struct replica replica;
	struct buffer out;

	replica_init(&replica, facts.table);
	for (int c1 = 0; c1 < 5; c1++)
		test_put_row(&replica, 1, c1, -1, 5);
	buffer_init(&out);
	buffer_put_u8(&out, 42);
	ck_assert_int_eq(read_response_write(replica_read(&replica, &command, &arena), &command,
			     &options, &arena, &out, &stats, &err),
	    -1);
	ck_assert_int_eq(err.code, ERROR_READ_FAILURE);
	ck_assert_int_eq(err.reason, 1);
	ck_assert_uint_eq(out.size, 1);
	buffer_fini(&out);
	replica_fini(&replica);
}
END_TEST

/* ---- other schemas, damage ------------------------------------------------------------------------ */

/* The facts' table without column b: as a node sees it that has not heard of it yet. */
static struct table_metadata *
test_older_table(void)
{
	struct table_builder *builder = table_builder_from(facts.table);
	struct table_metadata *table;

	ck_assert(table_builder_remove_column(builder, slice_of_string("b"), false, 0));
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
	return table;
}

START_TEST(test_columns_that_the_reader_does_not_have_are_passed_over)
{
	struct table_metadata *older = test_older_table();

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct random random = {seed};
		struct read_command command, without;
		uint64_t wanted;
		struct read_response_stats stats;
		struct buffer got, expected;
		struct replica replica;

		arena_reset(&arena);
		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		replica_init(&replica, facts.table);
		replica_apply_facts(&replica, &facts, UINT64_MAX, 7, &random);
		command = replica_command(facts.table, 7, &arena);
		without = command;
		without.table = older;
		buffer_init(&got);
		buffer_init(&expected);
		test_print_answer(
		    replica_answer(&replica, &command, true, &arena, &stats), &without, &got);
		/* What is there when b is not asked for. */
		wanted =
		    ~(UINT64_C(1) << table_column(facts.table, slice_of_string("b"))->position);
		command.wanted_regulars = &wanted;
		test_print_answer(
		    replica_answer(&replica, &command, true, &arena, &stats), &command, &expected);
		/* A partition of nothing else has nothing but its key left. */
		if (expected.size != 1)
			ck_assert_str_eq((char *)got.data, (char *)expected.data);
		else
			ck_assert_str_eq((char *)got.data, "partition 00000007\n");
		buffer_fini(&got);
		buffer_fini(&expected);
		replica_fini(&replica);
	}
	table_unref(older);
}
END_TEST

START_TEST(test_damage_is_an_error)
{
	struct read_command command = replica_command(facts.table, -1, &arena);
	struct random random = {42};
	struct read_response_stats stats;
	struct replica replica;
	struct slice data;

	replica_init(&replica, facts.table);
	test_fill(&replica, 1, &random);
	data = replica_answer(&replica, &command, true, &arena, &stats);
	for (size_t size = 0; size < data.size; size++) {
		struct read_response response;
		struct read_digest digest;

		/* No beginning of an answer passes for an answer. */
		if (read_response_decode(
			slice_of(data.data, size), &command, &arena, &response, &err) == 0)
			ck_assert_int_eq(
			    read_response_digest(&response, &arena, &digest, &err), -1);
		ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	}
	replica_fini(&replica);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/read_response");
	TCase *cases = tcase_create("read_response");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, test_setup, test_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_an_answer_holds_what_the_model_says);
	tcase_add_test(cases, test_digests_agree_however_the_data_lies);
	tcase_add_test(cases, test_digests_tell_what_differs);
	tcase_add_test(cases, test_limits_count_live_rows);
	tcase_add_test(cases, test_filters_drop_rows_and_partitions);
	tcase_add_test(cases, test_too_many_tombstones_are_a_failure_of_their_own);
	tcase_add_test(cases, test_columns_that_the_reader_does_not_have_are_passed_over);
	tcase_add_test(cases, test_damage_is_an_error);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
