/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/read_command_codec.h"
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

static const struct table_metadata *
test_find(void *argument, const struct uuid *id)
{
	const struct table_metadata *table = argument;

	return table != NULL && uuid_equal(&table->id, id) ? table : NULL;
}

static struct slice
test_encode(const struct read_command *command)
{
	struct buffer out;
	struct slice copy;

	buffer_init(&out);
	read_command_encode(command, &out);
	ck_assert_int_eq(buffer_check(&out, &err), 0);
	copy = arena_copy(&arena, buffer_slice(&out));
	buffer_fini(&out);
	return copy;
}

static int
test_decode(struct slice encoded, const struct table_metadata *table, struct read_command *out)
{
	return read_command_decode(encoded, test_find, (void *)table, &arena, out, &err);
}

static struct read_command
test_random_command(struct random *random)
{
	struct read_command command =
	    replica_command(facts.table, random_below(random, 2) == 0 ? -1 : 5, &arena);
	struct filter_expression *filters = arena_calloc(&arena, 3, sizeof(*filters));
	struct slice *values = arena_calloc(&arena, 2, sizeof(*values));
	int row[2] = {(int)random_below(random, FACTS_C1), (int)random_below(random, FACTS_C2)};

	replica_command_vary(&command, &facts, random);
	if (command.is_range && random_below(random, 2) == 0) {
		command.range.start_key = replica_key(3, &arena);
		command.range.left = murmur3_token(command.range.start_key);
		command.range.includes_left = true;
		command.range.start_key_exclusive = random_below(random, 2) == 0;
	} else if (command.is_range) {
		command.range.left = -(int64_t)random_below(random, 1000000);
		command.range.right = (int64_t)random_below(random, 1000000);
		command.range.excludes_right = random_below(random, 2) == 0;
	}
	if (random_below(random, 2) == 0)
		command.after_position = facts_position(&facts, BOUND_CLUSTERING, row, 2);
	if (random_below(random, 2) == 0)
		command.row_limit = random_below(random, 10000);
	if (random_below(random, 2) == 0)
		command.per_partition_limit = random_below(random, 10000);
	command.now_seconds = (int64_t)random_below(random, 1000000) - 1000;
	command.is_transient = random_below(random, 2) == 0;
	values[0] = replica_key(7, &arena);
	values[1] = slice_empty;
	filters[0] = (struct filter_expression){.column = &facts.table->regulars[0],
	    .operator= FILTER_GTE,
	    .value = replica_key(9, &arena)};
	filters[1] = (struct filter_expression){.column = &facts.table->clustering[0],
	    .operator= FILTER_IN,
	    .value_count = 2,
	    .values = values};
	filters[2] = (struct filter_expression){.column = &facts.table->regulars[2],
	    .operator= FILTER_MAP_EQ,
	    .map_key = values[0],
	    .value = values[1]};
	command.filters = filters;
	command.filter_count = random_below(random, 4);
	return command;
}

START_TEST(test_a_command_comes_back_as_it_was)
{
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct random random = {seed};
		struct read_command command, decoded;
		struct slice encoded, key;
		struct uuid id;

		arena_reset(&arena);
		arena_reset(&facts.arena);
		command = test_random_command(&random);
		encoded = test_encode(&command);
		ck_assert_msg(test_decode(encoded, facts.table, &decoded) == 0, "%s", err.text);
		ck_assert_ptr_eq(decoded.table, facts.table);
		ck_assert_int_eq(decoded.is_range, command.is_range);
		ck_assert(command.is_range || slice_equal(decoded.key, command.key));
		ck_assert(command.is_range || decoded.token == command.token);
		ck_assert_int_eq(decoded.row_limit, command.row_limit);
		ck_assert_int_eq(decoded.now_seconds, command.now_seconds);
		ck_assert_uint_eq(decoded.clustering.slice_count, command.clustering.slice_count);
		ck_assert(read_command_peek(encoded, &id, &key) == !command.is_range);
		ck_assert(command.is_range ||
		    (uuid_equal(&id, &facts.table->id) && slice_equal(key, command.key)));
		/* Whatever else it has: the same is written of it. */
		ck_assert(slice_equal(encoded, test_encode(&decoded)));
	}
}
END_TEST

/* The facts' table with a column more and one less, in another order. */
static struct table_metadata *
test_newer_table(void)
{
	struct table_builder *builder = table_builder_from(facts.table);
	struct table_metadata *table;

	table_builder_add(builder, COLUMN_REGULAR, "aa", "int");
	ck_assert(table_builder_remove_column(builder, slice_of_string("a"), true, 100));
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
	return table;
}

START_TEST(test_columns_go_by_name)
{
	struct table_metadata *newer = test_newer_table();
	struct read_command command = replica_command(facts.table, 5, &arena), decoded;
	uint64_t wanted = 3; /* a, b */

	command.wanted_regulars = &wanted;
	ck_assert_int_eq(test_decode(test_encode(&command), newer, &decoded), 0);
	/* a is dropped there; aa, b, m are left. */
	ck_assert_uint_eq(decoded.wanted_regulars[0], 2);

	/* The other way round a column is not known. */
	command = replica_command(newer, 5, &arena);
	wanted = 1;
	command.wanted_regulars = &wanted;
	ck_assert_int_eq(test_decode(test_encode(&command), facts.table, &decoded), -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_eq(err.reason, 3);
	table_unref(newer);
}
END_TEST

START_TEST(test_an_unknown_table_is_an_incompatible_schema)
{
	struct read_command command = replica_command(facts.table, 5, &arena), decoded;

	ck_assert_int_eq(test_decode(test_encode(&command), NULL, &decoded), -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_eq(err.reason, 3);
}
END_TEST

START_TEST(test_damage_is_an_error)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct random random = {seed};
		struct read_command command, decoded;
		struct slice encoded;
		uint8_t *longer;

		arena_reset(&arena);
		arena_reset(&facts.arena);
		command = test_random_command(&random);
		encoded = test_encode(&command);
		for (size_t size = 0; size < encoded.size; size++) {
			ck_assert_int_eq(
			    test_decode(slice_of(encoded.data, size), facts.table, &decoded), -1);
		}
		longer = arena_alloc_bytes(&arena, encoded.size + 1);
		memcpy(longer, encoded.data, encoded.size);
		longer[encoded.size] = 0;
		ck_assert_int_eq(
		    test_decode(slice_of(longer, encoded.size + 1), facts.table, &decoded), -1);
		ck_assert_int_eq(err.code, ERROR_PROTOCOL);
	}
}
END_TEST

START_TEST(test_slices_that_overlap_are_refused)
{
	struct read_command command = replica_command(facts.table, 5, &arena), decoded;
	int one[2] = {1, 0}, two[2] = {2, 0};
	struct clustering_slice slices[2] = {
	    {facts_position(&facts, BOUND_INCL_START, one, 1),
		facts_position(&facts, BOUND_INCL_END, two, 1)},
	    {facts_position(&facts, BOUND_INCL_START, two, 1), slice_null},
	};

	command.clustering.slices = slices;
	command.clustering.slice_count = 2;
	ck_assert_int_eq(test_decode(test_encode(&command), facts.table, &decoded), -1);
	command.clustering.slice_count = 1;
	ck_assert_int_eq(test_decode(test_encode(&command), facts.table, &decoded), 0);
	command.clustering.is_names = true;
	ck_assert_int_eq(test_decode(test_encode(&command), facts.table, &decoded), -1);
	slices[0].start = slices[0].end = slice_of("\x77", 1);
	ck_assert_int_eq(test_decode(test_encode(&command), facts.table, &decoded), -1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("storage/read_command_codec");
	TCase *cases = tcase_create("read_command_codec");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, test_setup, test_teardown);
	tcase_add_test(cases, test_a_command_comes_back_as_it_was);
	tcase_add_test(cases, test_columns_go_by_name);
	tcase_add_test(cases, test_an_unknown_table_is_an_incompatible_schema);
	tcase_add_test(cases, test_damage_is_an_error);
	tcase_add_test(cases, test_slices_that_overlap_are_refused);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
