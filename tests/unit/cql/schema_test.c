/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/schema.h"

static struct arena arena;

static void
setup(void)
{
	arena_init(&arena, 4096);
}

static void
teardown(void)
{
	arena_fini(&arena);
}

#define S(text) slice_of_string(text)

static struct table_builder *
builder_of_everything(void)
{
	struct table_builder *builder = table_builder_new(S("ks"), S("t"));

	table_builder_add(builder, COLUMN_PARTITION_KEY, "b", "text");
	table_builder_add(builder, COLUMN_PARTITION_KEY, "a", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c2", "int");
	table_builder_add_column(builder, COLUMN_CLUSTERING, S("c1"), type_native(TYPE_TEXT), true);
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, text>");
	table_builder_add(builder, COLUMN_REGULAR, "z", "int");
	table_builder_add(builder, COLUMN_REGULAR, "l", "frozen<list<int>>");
	table_builder_add(builder, COLUMN_STATIC, "s", "int");
	return builder;
}

static struct table_metadata *
build(struct table_builder *builder)
{
	struct table_metadata *table = NULL;
	struct error err;

	if (table_builder_build(builder, &table, &err) != 0)
		ck_abort_msg("%s", err.text);
	table_builder_free(builder);
	return table;
}

START_TEST(test_columns_have_the_order_of_cells)
{
	struct table_metadata *table = build(builder_of_everything());
	static const char *const selected[] = {"b", "a", "c2", "c1", "s", "l", "m", "z"};
	uint32_t i;

	/* Simple columns first, then complex ones. */
	ck_assert(slice_equal_string(table->regulars[0].name, "l"));
	ck_assert(slice_equal_string(table->regulars[1].name, "z"));
	ck_assert(slice_equal_string(table->regulars[2].name, "m"));
	ck_assert(table->regulars[2].is_complex);
	ck_assert_uint_eq(table->regular_simple_count, 2);
	ck_assert_uint_eq(table->static_simple_count, 1);
	for (i = 0; i < table->column_count; i++) {
		ck_assert(slice_equal_string(table->select_order[i]->name, selected[i]));
		ck_assert_ptr_eq(table_column(table, S(selected[i])), table->select_order[i]);
	}
	ck_assert(table->clustering[1].is_reversed);
	ck_assert_ptr_null(table_column(table, S("nope")));
	table_unref(table);
}
END_TEST

START_TEST(test_partition_keys_are_composed_and_split)
{
	struct table_metadata *table = build(builder_of_everything());
	struct slice components[2] = {S("ab"), slice_of("\0\0\0\1", 4)}, back[2], key;
	struct error err;

	key = table_partition_key(table, components, &arena);
	ck_assert(slice_equal(key, slice_of("\0\2ab\0\0\4\0\0\0\1\0", 12)));
	ck_assert_int_eq(table_partition_key_split(table, key, back, &err), 0);
	ck_assert(slice_equal(back[0], components[0]));
	ck_assert(slice_equal(back[1], components[1]));
	ck_assert_int_eq(table_partition_key_validate(table, key, &err), 0);
	ck_assert_int_eq(table_partition_key_validate(table, slice_empty, &err), -1);
	ck_assert_str_eq(err.text, "Key may not be empty");
	ck_assert_int_eq(
	    table_partition_key_validate(table, slice_of(key.data, key.size - 1), &err), -1);
	ck_assert_int_eq(
	    table_partition_key_validate(table, slice_of("\0\1a\0\0\1x\0", 8), &err), -1);
	ck_assert_str_eq(err.text, "Expected 4 or 0 byte int (1)");
	table_unref(table);
}
END_TEST

START_TEST(test_clustering_order_agrees_with_comparable_form)
{
	struct table_metadata *table = build(builder_of_everything());
	struct slice rows[][2] = {
	    {slice_null, slice_null},
	    {slice_of("\0\0\0\1", 4), slice_null},
	    {slice_of("\0\0\0\1", 4), S("b")},
	    {slice_of("\0\0\0\1", 4), S("ab")},
	    {slice_of("\0\0\0\1", 4), S("a")},
	    {slice_of("\0\0\0\1", 4), slice_empty},
	    {slice_of("\0\0\0\2", 4), S("z")},
	};
	struct buffer x, y;
	size_t i, j, n = sizeof(rows) / sizeof(rows[0]);

	buffer_init(&x);
	buffer_init(&y);
	for (i = 0; i < n; i++) {
		for (j = 0; j < n; j++) {
			int want = i < j ? -1 : i > j;
			int order = table_compare_clustering(table, rows[i], rows[j], 2);

			ck_assert_int_eq(order < 0 ? -1 : order > 0, want);
			buffer_clear(&x);
			buffer_clear(&y);
			table_clustering_to_comparable(table, rows[i], 2, &x);
			table_clustering_to_comparable(table, rows[j], 2, &y);
			order = slice_compare(buffer_slice(&x), buffer_slice(&y));
			ck_assert_int_eq(order < 0 ? -1 : order > 0, want);
		}
	}
	buffer_fini(&x);
	buffer_fini(&y);
	table_unref(table);
}
END_TEST

START_TEST(test_altering_keeps_id_and_handle_and_records_dropped)
{
	struct table_metadata *table = build(builder_of_everything());
	struct table_metadata *altered;
	struct table_builder *builder;
	int handle;

	atomic_store(&table->user, &handle);
	builder = table_builder_from(table);
	ck_assert(table_builder_remove_column(builder, S("m"), true, 1234));
	ck_assert(!table_builder_remove_column(builder, S("nope"), true, 1234));
	ck_assert(table_builder_rename_column(builder, S("a"), S("aa")));
	altered = build(builder);
	ck_assert(uuid_equal(&altered->id, &table->id));
	ck_assert_ptr_eq(atomic_load(&altered->user), &handle);
	ck_assert_ptr_null(table_column(altered, S("m")));
	ck_assert_ptr_nonnull(table_column(altered, S("aa")));
	ck_assert_uint_eq(altered->dropped_count, 1);
	ck_assert_int_eq(table_dropped_column(altered, S("m"))->dropped_us, 1234);
	ck_assert(table_dropped_column(altered, S("m"))->column.is_complex);
	/* The old one is untouched. */
	ck_assert_ptr_nonnull(table_column(table, S("m")));
	table_unref(table);
	table_unref(altered);
}
END_TEST

START_TEST(test_wrong_tables_are_refused)
{
	struct table_builder *builder = table_builder_new(S("ks"), S("t"));
	struct table_metadata *table = NULL;
	struct error err;

	ck_assert_int_eq(table_builder_build(builder, &table, &err), -1);
	ck_assert_str_eq(err.text, "ks.t: Missing partition keys for table t");
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_REGULAR, "c", "counter");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), -1);
	ck_assert_str_eq(
	    err.text, "ks.t: Cannot have a counter column (\"c\") in a non counter table");
	table_builder_set_flags(builder, TABLE_COMPOUND | TABLE_COUNTER);
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), -1);
	ck_assert_str_eq(
	    err.text, "ks.t: Cannot have a non counter column (\"v\") in a counter table");
	table_builder_set_name(builder, S("t-t"));
	ck_assert_int_eq(table_builder_build(builder, &table, &err), -1);
	table_builder_free(builder);
}
END_TEST

static struct schema *
schema_of(struct table_metadata *table)
{
	struct schema *empty = schema_new(), *with_keyspace, *schema;
	struct keyspace_metadata *keyspace = keyspace_new(S("ks"), NULL, true, false);

	with_keyspace = schema_with_keyspace(empty, keyspace);
	schema = schema_with_table(with_keyspace, table);
	keyspace_unref(keyspace);
	schema_unref(empty);
	schema_unref(with_keyspace);
	return schema;
}

START_TEST(test_snapshots_are_copied_on_write)
{
	struct table_metadata *table = build(builder_of_everything());
	struct schema *schema = schema_of(table), *without;
	const struct keyspace_metadata *keyspace = schema_keyspace(schema, S("ks"));
	struct keyspace_metadata *empty;

	ck_assert_ptr_eq(schema_table(schema, S("ks"), S("t")), table);
	ck_assert_ptr_eq(schema_table_by_id(schema, &table->id), table);
	empty = keyspace_without_table(keyspace, S("t"));
	without = schema_with_keyspace(schema, empty);
	ck_assert_ptr_null(schema_table(without, S("ks"), S("t")));
	ck_assert_ptr_null(schema_table_by_id(without, &table->id));
	ck_assert_ptr_eq(schema_table(schema, S("ks"), S("t")), table);
	ck_assert(!uuid_equal(&schema->version, &without->version));
	ck_assert_int_eq(uuid_version(&schema->version), 3);
	keyspace_unref(empty);
	schema_unref(without);
	schema_unref(schema);
	table_unref(table);
}
END_TEST

START_TEST(test_equal_contents_have_equal_versions)
{
	struct uuid id = {{1, 2, 3}};
	struct schema *schemas[2];
	int i;

	for (i = 0; i < 2; i++) {
		struct table_builder *builder = builder_of_everything();
		struct table_metadata *table;

		table_builder_set_id(builder, &id);
		table = build(builder);
		schemas[i] = schema_of(table);
		table_unref(table);
	}
	ck_assert(uuid_equal(&schemas[0]->version, &schemas[1]->version));
	schema_unref(schemas[0]);
	schema_unref(schemas[1]);
}
END_TEST

START_TEST(test_changing_a_type_changes_tables_and_types_that_use_it)
{
	struct slice fields[] = {S("x"), S("y")};
	const struct type *params[] = {type_native(TYPE_INT), type_native(TYPE_TEXT)};
	const struct type *inner = type_udt(&arena, S("ks"), S("inner"), fields, params, 1, true);
	const struct type *outer_params[] = {type_freeze(&arena, inner)};
	const struct type *outer =
	    type_udt(&arena, S("ks"), S("outer"), fields, outer_params, 1, true);
	struct keyspace_metadata *keyspaces[5];
	struct table_builder *builder = builder_of_everything();
	struct table_metadata *table;
	const struct table_metadata *changed;
	int i;

	table_builder_add_column(builder, COLUMN_REGULAR, S("u"),
	    type_list(&arena, type_freeze(&arena, outer), true), false);
	table = build(builder);
	keyspaces[0] = keyspace_new(S("ks"), NULL, true, false);
	keyspaces[1] = keyspace_with_type(keyspaces[0], outer);
	keyspaces[2] = keyspace_with_type(keyspaces[1], inner);
	keyspaces[3] = keyspace_with_table(keyspaces[2], table);
	inner = type_udt(&arena, S("ks"), S("inner"), fields, params, 2, true);
	keyspaces[4] = keyspace_with_type(keyspaces[3], inner);
	ck_assert_uint_eq(keyspaces[4]->type_count, 2);
	ck_assert_uint_eq(keyspace_type(keyspaces[4], S("inner"))->param_count, 2);
	ck_assert_uint_eq(keyspace_type(keyspaces[4], S("outer"))->params[0]->param_count, 2);
	changed = keyspace_table(keyspaces[4], S("t"));
	ck_assert_uint_eq(
	    table_column(changed, S("u"))->type->params[0]->params[0]->param_count, 2);
	ck_assert_uint_eq(table_column(table, S("u"))->type->params[0]->params[0]->param_count, 1);
	ck_assert(uuid_equal(&changed->id, &table->id));
	table_unref(table);
	for (i = 0; i < 5; i++)
		keyspace_unref(keyspaces[i]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/schema");
	TCase *cases = tcase_create("schema");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, test_columns_have_the_order_of_cells);
	tcase_add_test(cases, test_partition_keys_are_composed_and_split);
	tcase_add_test(cases, test_clustering_order_agrees_with_comparable_form);
	tcase_add_test(cases, test_altering_keeps_id_and_handle_and_records_dropped);
	tcase_add_test(cases, test_wrong_tables_are_refused);
	tcase_add_test(cases, test_snapshots_are_copied_on_write);
	tcase_add_test(cases, test_equal_contents_have_equal_versions);
	tcase_add_test(cases, test_changing_a_type_changes_tables_and_types_that_use_it);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
