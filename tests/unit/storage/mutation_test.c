/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/memtable.h"
#include "tests/unit/storage/facts.h"

/* The tables that a decoder knows. */
struct test_tables {
	const struct table_metadata *table;
};

static const struct table_metadata *
test_find(void *argument, const struct uuid *id)
{
	struct test_tables *tables = argument;

	if (tables->table != NULL && uuid_equal(&tables->table->id, id))
		return tables->table;
	return NULL;
}

static struct mutation
test_mutation(const struct partition_update *updates, uint32_t count)
{
	return (struct mutation){
	    .keyspace = "ks",
	    .key = updates[0].key,
	    .token = updates[0].token,
	    .update_count = count,
	    .updates = updates,
	};
}

START_TEST(test_decoded_mutations_mean_the_same)
{
	uint32_t all = (1u << FACTS_ROWS) - 1;
	struct facts facts;
	struct test_tables tables;

	facts_init(&facts);
	tables.table = facts.table;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct random random = {seed};
		struct memtable *memtable = memtable_new(facts.table, 1, NULL);
		struct partition_update update;
		struct mutation mutation, decoded;
		struct read_command command;
		struct unfiltered_iterator *iterator;
		struct buffer encoded, again, got, expected;
		struct slice key;
		struct uuid id;
		struct error err;

		facts_generate(&facts, &random, 1 + random_below(&random, 40));
		facts_update(&facts, UINT64_MAX, &update);
		mutation = test_mutation(&update, 1);
		buffer_init(&encoded);
		buffer_init(&again);
		mutation_encode(&mutation, &encoded);
		ck_assert_int_eq(buffer_check(&encoded, &err), 0);
		ck_assert_msg(mutation_decode(buffer_slice(&encoded), test_find, &tables,
				  &facts.arena, &decoded, &err) == 0,
		    "%s", err.text);
		ck_assert_uint_eq(decoded.update_count, 1);
		ck_assert_str_eq(decoded.keyspace, "ks");
		ck_assert_int_eq(decoded.token, mutation.token);
		ck_assert_uint_eq(mutation_data_size(&decoded), mutation_data_size(&mutation));
		ck_assert(mutation_peek(buffer_slice(&encoded), &id, &key));
		ck_assert(uuid_equal(&id, &facts.table->id) && slice_equal(key, update.key));
		mutation_encode(&decoded, &again);
		ck_assert(slice_equal(buffer_slice(&encoded), buffer_slice(&again)));

		ck_assert_int_eq(memtable_apply(memtable, decoded.updates, &err), 0);
		command = (struct read_command){
		    .table = facts.table,
		    .key = update.key,
		    .token = update.token,
		    .clustering = {.with_static = true},
		};
		ck_assert_int_eq(
		    memtable_read(memtable, &command, &facts.arena, NULL, &iterator, &err), 0);
		buffer_init(&got);
		buffer_init(&expected);
		facts_print(&facts, iterator, all, &got);
		facts_expect(&facts, all, false, &expected);
		ck_assert_str_eq((char *)got.data, (char *)expected.data);
		buffer_fini(&got);
		buffer_fini(&expected);
		buffer_fini(&encoded);
		buffer_fini(&again);
		memtable_unref(memtable);
	}
	facts_fini(&facts);
}
END_TEST

START_TEST(test_every_cut_and_flipped_byte_is_survived)
{
	struct facts facts;
	struct test_tables tables;

	facts_init(&facts);
	tables.table = facts.table;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct random random = {seed};
		struct partition_update update;
		struct mutation mutation, decoded;
		struct buffer encoded;
		struct arena arena;
		struct slice key;
		struct uuid id;
		struct error err;

		arena_init(&arena, 4096);
		facts_generate(&facts, &random, 20);
		facts_update(&facts, UINT64_MAX, &update);
		mutation = test_mutation(&update, 1);
		buffer_init(&encoded);
		mutation_encode(&mutation, &encoded);
		for (size_t size = 0; size < encoded.size; size++) {
			uint8_t *cut = malloc(size + 1);

			memcpy(cut, encoded.data, size);
			(void)mutation_peek(slice_of(cut, size), &id, &key);
			ck_assert_int_eq(mutation_decode(slice_of(cut, size), test_find, &tables,
					     &arena, &decoded, &err),
			    -1);
			ck_assert_int_eq(err.code, ERROR_CORRUPT);
			free(cut);
		}
		for (size_t at = 0; at < encoded.size; at++) {
			uint8_t byte = encoded.data[at];

			encoded.data[at] ^= (uint8_t)(1u << random_below(&random, 8));
			mutation_decode(
			    buffer_slice(&encoded), test_find, &tables, &arena, &decoded, &err);
			encoded.data[at] = byte;
			arena_reset(&arena);
		}
		buffer_fini(&encoded);
		arena_fini(&arena);
	}
	facts_fini(&facts);
}
END_TEST

START_TEST(test_updates_of_dropped_tables_are_left_out)
{
	struct facts facts;
	struct test_tables tables = {NULL};
	struct random random = {1};
	struct partition_update update;
	struct mutation mutation, decoded;
	struct buffer encoded;
	struct error err;

	facts_init(&facts);
	facts_generate(&facts, &random, 20);
	facts_update(&facts, UINT64_MAX, &update);
	mutation = test_mutation(&update, 1);
	buffer_init(&encoded);
	mutation_encode(&mutation, &encoded);
	ck_assert_int_eq(mutation_decode(buffer_slice(&encoded), test_find, &tables, &facts.arena,
			     &decoded, &err),
	    0);
	ck_assert_uint_eq(decoded.update_count, 0);
	buffer_fini(&encoded);
	facts_fini(&facts);
}
END_TEST

/* The table of the facts with a column more, or less. */
static struct table_metadata *
test_altered(const struct table_metadata *table, const char *added, const char *dropped)
{
	struct table_builder *builder = table_builder_from(table);
	struct table_metadata *altered;
	struct error err;

	if (added != NULL)
		table_builder_add(builder, COLUMN_REGULAR, added, "int");
	if (dropped != NULL)
		ck_assert(
		    table_builder_remove_column(builder, slice_of_string(dropped), true, 100));
	ck_assert_int_eq(table_builder_build(builder, &altered, &err), 0);
	table_builder_free(builder);
	return altered;
}

static void
test_add_cell(
    struct update_builder *builder, struct facts *facts, const char *column, int64_t timestamp)
{
	static const uint8_t zero[8];
	struct slice *values = arena_alloc(&facts->arena, 2 * sizeof(*values));
	struct cell *cell = arena_alloc(&facts->arena, sizeof(*cell));
	struct row row = {
	    .clustering_count = 2,
	    .clustering = values,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE,
	    .cell_count = 1,
	    .cells = cell,
	};
	struct error err;

	values[0] = values[1] = slice_of(zero, 4);
	*cell = (struct cell){table_column(facts->table, slice_of_string(column)), timestamp,
	    TTL_NONE, LOCAL_DELETION_TIME_NONE, slice_null, slice_of(zero, 4)};
	ck_assert_int_eq(update_builder_add_row(builder, &row, &err), 0);
}

START_TEST(test_decoding_knows_added_and_dropped_columns)
{
	static const uint8_t key[4] = {0, 0, 0, 1};
	struct facts facts;
	struct table_metadata *altered;
	struct test_tables tables;
	struct update_builder *builder;
	struct partition_update update;
	struct mutation mutation, decoded;
	struct buffer encoded;
	struct error err;

	facts_init(&facts);
	altered = test_altered(facts.table, "aa", "a");
	tables.table = altered;
	builder = update_builder_new(facts.table, slice_of(key, 4), &facts.arena);
	test_add_cell(builder, &facts, "a", 50);
	test_add_cell(builder, &facts, "b", 50);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation = test_mutation(&update, 1);
	buffer_init(&encoded);
	mutation_encode(&mutation, &encoded);
	ck_assert_int_eq(mutation_decode(buffer_slice(&encoded), test_find, &tables, &facts.arena,
			     &decoded, &err),
	    0);
	ck_assert_uint_eq(decoded.updates[0].row_count, 1);
	ck_assert_uint_eq(decoded.updates[0].rows[0].cell_count, 1);
	ck_assert_ptr_eq(decoded.updates[0].rows[0].cells[0].column,
	    table_column(altered, slice_of_string("b")));
	buffer_fini(&encoded);
	table_unref(altered);
	facts_fini(&facts);
}
END_TEST

START_TEST(test_unknown_column_is_named)
{
	static const uint8_t key[4] = {0, 0, 0, 1};
	struct facts facts;
	struct table_metadata *altered;
	struct test_tables tables;
	struct update_builder *builder;
	struct partition_update update;
	struct mutation mutation, decoded;
	struct buffer encoded;
	struct error err;

	facts_init(&facts);
	tables.table = facts.table;
	altered = test_altered(facts.table, "newer", NULL);
	table_unref(facts.table);
	facts.table = altered;
	builder = update_builder_new(facts.table, slice_of(key, 4), &facts.arena);
	test_add_cell(builder, &facts, "newer", 50);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	mutation = test_mutation(&update, 1);
	buffer_init(&encoded);
	mutation_encode(&mutation, &encoded);
	tables.table = facts_table(); /* the same columns as before, another id */
	memcpy((void *)&tables.table->id, &altered->id, sizeof(altered->id));
	ck_assert_int_eq(mutation_decode(buffer_slice(&encoded), test_find, &tables, &facts.arena,
			     &decoded, &err),
	    -1);
	ck_assert_ptr_nonnull(strstr(err.text, "newer"));
	buffer_fini(&encoded);
	table_unref(tables.table);
	facts_fini(&facts);
}
END_TEST

START_TEST(test_builder_sorts_rows_and_cells_and_merges_doubles)
{
	static const uint8_t key[4] = {0, 0, 0, 1};
	struct facts facts;
	struct update_builder *builder;
	struct partition_update update;
	struct error err;

	facts_init(&facts);
	builder = update_builder_new(facts.table, slice_of(key, 4), &facts.arena);
	test_add_cell(builder, &facts, "b", 5);
	test_add_cell(builder, &facts, "a", 5);
	test_add_cell(builder, &facts, "a", 7);
	test_add_cell(builder, &facts, "a", 6);
	ck_assert_int_eq(update_builder_finish(builder, &update, &err), 0);
	ck_assert_uint_eq(update.row_count, 1);
	ck_assert_uint_eq(update.rows[0].cell_count, 2);
	ck_assert_int_eq(update.rows[0].cells[0].timestamp, 7);
	ck_assert_int_eq(update.rows[0].cells[1].timestamp, 5);
	ck_assert_int_eq(update.token, murmur3_token(slice_of(key, 4)));
	facts_fini(&facts);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("mutation");
	TCase *tcase = tcase_create("mutation");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_decoded_mutations_mean_the_same);
	tcase_add_test(tcase, test_every_cut_and_flipped_byte_is_survived);
	tcase_add_test(tcase, test_updates_of_dropped_tables_are_left_out);
	tcase_add_test(tcase, test_decoding_knows_added_and_dropped_columns);
	tcase_add_test(tcase, test_unknown_column_is_named);
	tcase_add_test(tcase, test_builder_sorts_rows_and_cells_and_merges_doubles);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
