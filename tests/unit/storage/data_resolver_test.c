/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "tests/unit/storage/replica.h"

/*
 * Replicas that hold some of the facts each, and one, `all`, that holds what any of them has: merging the replicas'
 * answers must give what `all` answers, and after the repairs every replica must answer like it.
 */

enum { TEST_REPLICAS = 4, TEST_PARTITIONS = 3 };

/* One thread, and ThreadSanitizer makes it thirty times slower. */
#ifdef __SANITIZE_THREAD__
enum { TEST_SEEDS = 200 };
#else
enum { TEST_SEEDS = 3000 };
#endif

static struct facts facts;
static struct arena arena;
static struct error err;
static struct replica replicas[TEST_REPLICAS], all;
static uint32_t replica_count;

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
test_fill(struct random *random)
{
	arena_reset(&arena);
	replica_count = 2 + random_below(random, TEST_REPLICAS - 1);
	replica_init(&all, facts.table);
	for (uint32_t i = 0; i < replica_count; i++)
		replica_init(&replicas[i], facts.table);
	for (int key = 1; key <= TEST_PARTITIONS; key++) {
		uint64_t any = 0;

		facts_generate(&facts, random, 1 + random_below(random, 30));
		for (uint32_t i = 0; i < replica_count; i++) {
			uint64_t has = 0;

			for (uint32_t j = 0; j < facts.count; j++)
				has |= (uint64_t)(random_below(random, 3) != 0) << j;
			if (random_below(random, 5) == 0)
				has = 0;
			any |= has;
			replica_apply_facts(&replicas[i], &facts, has, key, random);
		}
		replica_apply_facts(&all, &facts, any, key, random);
	}
}

static void
test_empty(void)
{
	replica_fini(&all);
	for (uint32_t i = 0; i < replica_count; i++)
		replica_fini(&replicas[i]);
}

/* What each replica answers, and whatever the resolver asks beyond. */
static struct data_resolver *
test_resolve(const struct read_command *command, uint32_t *rounds, uint64_t seed)
{
	struct data_resolver *resolver = data_resolver_new(command, replica_count, &arena);
	struct read_response_stats stats;
	enum data_resolver_state state;

	for (uint32_t i = 0; i < replica_count; i++)
		ck_assert_msg(
		    data_resolver_add(resolver, i,
			replica_answer(&replicas[i], command, true, &arena, &stats), &err) == 0,
		    "%s", err.text);
	*rounds = 0;
	while ((state = data_resolver_run(resolver, &err)) == DATA_RESOLVER_ASK) {
		ck_assert_uint_lt(++*rounds, 100);
		for (uint32_t i = data_resolver_request_count(resolver); i-- > 0;) {
			const struct data_resolver_request *request =
			    data_resolver_request(resolver, i);
			struct slice answer = replica_answer(
			    &replicas[request->replica], request->command, true, &arena, &stats);

			ck_assert_msg(data_resolver_answer(resolver, i, answer, &err) == 0,
			    "%s, seed %llu", err.text, (unsigned long long)seed);
		}
	}
	ck_assert_msg(state == DATA_RESOLVER_DONE, "%s", err.text);
	return resolver;
}

/* The rows that a client sees of a stream. */
static void
test_print_live(
    const struct read_command *command, struct partition_iterator *source, struct buffer *out)
{
	struct live_reader reader;
	struct live_row row;
	int rc;

	live_reader_init(&reader, command, source, &arena);
	while ((rc = live_reader_next(&reader, &row, &err)) == 1) {
		buffer_printf(out, "%u", load_u32(row.key.data));
		if (row.static_row != NULL)
			buffer_printf(out, " s=%u", load_u32(row.static_row->cells[0].value.data));
		for (uint32_t i = 0; row.row != NULL && i < row.row->clustering_count; i++)
			buffer_printf(out, " c%u=%u", i + 1, load_u32(row.row->clustering[i].data));
		for (uint32_t i = 0; row.row != NULL && i < row.row->cell_count; i++) {
			const struct cell *cell = &row.row->cells[i];

			buffer_printf(out, " %.*s=%zu/%u", (int)cell->column->name.size,
			    (const char *)cell->column->name.data, cell->value.size,
			    cell->value.size == 4 ? load_u32(cell->value.data) : 0);
		}
		buffer_printf(out, "\n");
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	live_reader_fini(&reader);
	buffer_put_u8(out, 0);
}

static void
test_same_text(struct buffer *got, struct buffer *expected, uint64_t seed)
{
	ck_assert_msg(strcmp((char *)got->data, (char *)expected->data) == 0,
	    "seed %llu\ngot:\n%s\nexpected:\n%s", (unsigned long long)seed, got->data,
	    expected->data);
	buffer_fini(got);
	buffer_fini(expected);
}

static void
test_same_live_rows(
    const struct read_command *command, struct data_resolver *resolver, uint64_t seed)
{
	struct buffer got, expected;

	buffer_init(&got);
	buffer_init(&expected);
	test_print_live(command, data_resolver_partitions(resolver), &got);
	test_print_live(command, replica_read(&all, command, &arena), &expected);
	test_same_text(&got, &expected, seed);
}

/* Tombstones and all: what is merged is what `all` answers. */
static void
test_same_content(const struct read_command *command, struct data_resolver *resolver, uint64_t seed)
{
	struct partition_iterator *partitions;
	struct read_response_stats stats;
	struct read_response response;
	struct buffer got, expected;

	buffer_init(&got);
	buffer_init(&expected);
	replica_print(data_resolver_partitions(resolver), &got);
	ck_assert_int_eq(read_response_decode(replica_answer(&all, command, true, &arena, &stats),
			     command, &arena, &response, &err),
	    0);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	replica_print(partitions, &expected);
	test_same_text(&got, &expected, seed);
}

static uint32_t
test_repair(struct data_resolver *resolver, struct random *random)
{
	uint32_t repairs = 0;

	for (uint32_t i = 0; i < replica_count; i++) {
		uint32_t count;
		const struct mutation *mutations = data_resolver_repairs(resolver, i, &count);

		for (uint32_t j = 0; j < count; j++) {
			ck_assert_uint_eq(mutations[j].update_count, 1);
			ck_assert_str_eq(mutations[j].keyspace, "ks");
			replica_apply(&replicas[i], &mutations[j].updates[0], random);
		}
		repairs += count;
	}
	return repairs;
}

static struct read_command
test_random_command(struct random *random)
{
	struct read_command command =
	    replica_command(facts.table, random_below(random, 2) == 0 ? -1 : 2, &arena);

	replica_command_vary(&command, &facts, random);
	/*
	 * Nothing has expired yet (at 1000): of two cells of one timestamp the one that expires later wins, but an
	 * expired one is a tombstone, which wins over both. Cassandra's replicas see that as differently.
	 */
	command.now_seconds = 998 + random_below(random, 2);
	if (random_below(random, 2) == 0)
		command.row_limit = 1 + random_below(random, 6);
	if (random_below(random, 3) == 0)
		command.per_partition_limit = 1 + random_below(random, 3);
	return command;
}

START_TEST(test_merged_answers_are_the_answer_of_all_data)
{
	uint32_t asked = 0, repaired = 0;

	for (uint64_t seed = 1; seed <= TEST_SEEDS; seed++) {
		struct random random = {seed};
		struct read_command command;
		struct data_resolver *resolver;
		struct read_response_stats expected, got;
		uint32_t rounds;

		test_fill(&random);
		command = test_random_command(&random);
		resolver = test_resolve(&command, &rounds, seed);
		asked += rounds != 0;
		test_same_live_rows(&command, resolver, seed);
		test_same_content(&command, resolver, seed);

		/* After its repair every replica answers the same, and has nothing to be repaired. */
		repaired += test_repair(resolver, &random) != 0;
		replica_answer(&all, &command, false, &arena, &expected);
		for (uint32_t i = 0; i < replica_count; i++) {
			replica_answer(&replicas[i], &command, false, &arena, &got);
			ck_assert_msg(read_digest_equal(&got.digest, &expected.digest),
			    "replica %u is not repaired, seed %llu", i, (unsigned long long)seed);
		}
		resolver = test_resolve(&command, &rounds, seed);
		ck_assert_uint_eq(rounds, 0);
		ck_assert_uint_eq(test_repair(resolver, &random), 0);
		test_empty();
	}
	ck_assert_uint_gt(asked, TEST_SEEDS / 30);
	ck_assert_uint_gt(repaired, TEST_SEEDS / 3);
}
END_TEST

/* A filter on one column: the replica with the cell that wins lets the row through. */
static void
test_random_filter(struct filter_expression *filter, struct random *random)
{
	static const char *const columns[] = {"a", "b", "s", "c1", "m"};
	uint32_t which = random_below(random, 5);

	*filter = (struct filter_expression){
	    .column = table_column(facts.table, slice_of_string(columns[which])),
	    .operator= FILTER_EQ,
	    .value =
		which == 1 ? slice_of("x", 1) : replica_key((int)random_below(random, 3), &arena),
	};
	if (which == 4)
		filter->operator= FILTER_CONTAINS;
	else if (random_below(random, 3) == 0)
		filter->operator= FILTER_GTE;
}

START_TEST(test_filters_see_what_other_replicas_have)
{
	uint32_t asked = 0;

	for (uint64_t seed = 1; seed <= TEST_SEEDS; seed++) {
		struct random random = {seed};
		struct filter_expression filter;
		struct read_command command;
		struct data_resolver *resolver;
		uint32_t rounds;

		test_fill(&random);
		command = test_random_command(&random);
		command.wanted_regulars = NULL;
		command.clustering.with_static = true;
		test_random_filter(&filter, &random);
		command.filters = &filter;
		command.filter_count = 1;
		resolver = test_resolve(&command, &rounds, seed);
		asked += rounds != 0;
		test_same_live_rows(&command, resolver, seed);

		/* Repairs are never wrong: with them the same is seen. */
		test_repair(resolver, &random);
		resolver = test_resolve(&command, &rounds, seed);
		test_same_live_rows(&command, resolver, seed);
		test_empty();
	}
	ck_assert_uint_gt(asked, TEST_SEEDS / 6);
}
END_TEST

/* A page resumes where the last one ended, over replicas that differ. */
START_TEST(test_pages_add_up)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct random random = {seed};
		struct read_command command;
		struct buffer got, expected;
		bool is_more = true;

		test_fill(&random);
		command = replica_command(facts.table, -1, &arena);
		command.clustering.is_reversed = random_below(&random, 2) == 0;
		command.clustering.with_static = false;
		buffer_init(&expected);
		test_print_live(&command, replica_read(&all, &command, &arena), &expected);
		buffer_init(&got);
		command.row_limit = 1 + random_below(&random, 5);
		while (is_more) {
			struct data_resolver *resolver;
			struct live_reader reader;
			struct live_row row;
			struct slice key = slice_null, position = slice_null;
			uint32_t rounds, rows = 0;

			resolver = test_resolve(&command, &rounds, seed);
			if (got.size != 0)
				got.size--;
			test_print_live(&command, data_resolver_partitions(resolver), &got);
			live_reader_init(
			    &reader, &command, data_resolver_partitions(resolver), &arena);
			while (live_reader_next(&reader, &row, &err) == 1) {
				rows++;
				key = row.key;
				position = row.row->position;
			}
			live_reader_fini(&reader);
			is_more = rows == command.row_limit;
			command.range.start_key = key;
			command.range.includes_left = true;
			command.range.left = is_more ? murmur3_token(key) : 0;
			command.after_position = position;
		}
		test_same_text(&got, &expected, seed);
		test_empty();
	}
}
END_TEST

/* Replicas that never answered are neither waited for nor repaired. */
START_TEST(test_replicas_without_an_answer_are_left_out)
{
	struct random random = {7};
	struct read_command command = replica_command(facts.table, -1, &arena);
	struct data_resolver *resolver;
	struct read_response_stats stats;
	uint32_t count;

	test_fill(&random);
	command = replica_command(facts.table, -1, &arena);
	resolver = data_resolver_new(&command, 3, &arena);
	ck_assert_int_eq(data_resolver_add(resolver, 0,
			     replica_answer(&all, &command, true, &arena, &stats), &err),
	    0);
	ck_assert_int_eq(data_resolver_add(resolver, 1,
			     replica_answer(&replicas[0], &command, true, &arena, &stats), &err),
	    0);
	ck_assert_int_eq(data_resolver_run(resolver, &err), DATA_RESOLVER_DONE);
	data_resolver_repairs(resolver, 0, &count);
	ck_assert_uint_eq(count, 0);
	data_resolver_repairs(resolver, 1, &count);
	ck_assert_uint_gt(count, 0);
	data_resolver_repairs(resolver, 2, &count);
	ck_assert_uint_eq(count, 0);
	test_empty();
}
END_TEST

START_TEST(test_a_digest_is_no_data)
{
	struct random random = {7};
	struct read_command command;
	struct data_resolver *resolver;
	struct read_response_stats stats;

	test_fill(&random);
	command = replica_command(facts.table, -1, &arena);
	resolver = data_resolver_new(&command, 1, &arena);
	ck_assert_int_eq(data_resolver_add(resolver, 0,
			     replica_answer(&all, &command, false, &arena, &stats), &err),
	    -1);
	ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	test_empty();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/data_resolver");
	TCase *cases = tcase_create("data_resolver");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, test_setup, test_teardown);
	tcase_set_timeout(cases, 120);
	tcase_add_test(cases, test_merged_answers_are_the_answer_of_all_data);
	tcase_add_test(cases, test_filters_see_what_other_replicas_have);
	tcase_add_test(cases, test_pages_add_up);
	tcase_add_test(cases, test_replicas_without_an_answer_are_left_out);
	tcase_add_test(cases, test_a_digest_is_no_data);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
