/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include "cql/describe.h"

static struct arena arena;
static struct buffer out;

static void
setup(void)
{
	arena_init(&arena, 4096);
	buffer_init(&out);
}

static void
teardown(void)
{
	arena_fini(&arena);
	buffer_fini(&out);
}

#define S(text) slice_of_string(text)

static const char *
text(void)
{
	return arena_strndup(&arena, (const char *)out.data, out.size);
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

/* The options that every table of these tests has; each text begins them with what comes first. */
#define OPTIONS                                                                                    \
	"additional_write_policy = '99p'\n"                                                        \
	"    AND bloom_filter_fp_chance = 0.01\n"                                                  \
	"    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}\n"                        \
	"    AND cdc = false\n"                                                                    \
	"    AND comment = ''\n"                                                                   \
	"    AND compaction = {'class': "                                                          \
	"'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', "                      \
	"'max_threshold': '32', 'min_threshold': '4'}\n"                                           \
	"    AND compression = {'chunk_length_in_kb': '16', 'class': "                             \
	"'org.apache.cassandra.io.compress.LZ4Compressor'}\n"                                      \
	"    AND memtable = 'default'\n"                                                           \
	"    AND crc_check_chance = 1.0\n"                                                         \
	"    AND default_time_to_live = 0\n"                                                       \
	"    AND extensions = {}\n"                                                                \
	"    AND gc_grace_seconds = 864000\n"                                                      \
	"    AND max_index_interval = 2048\n"                                                      \
	"    AND memtable_flush_period_in_ms = 0\n"                                                \
	"    AND min_index_interval = 128\n"                                                       \
	"    AND read_repair = 'BLOCKING'\n"                                                       \
	"    AND speculative_retry = '99p';"

START_TEST(test_keyspace)
{
	struct option_map replication = {NULL, 0};
	struct keyspace_metadata *keyspace;

	option_map_put(
	    &replication, S("class"), S("org.apache.cassandra.locator.SimpleStrategy"), &arena);
	option_map_put(&replication, S("replication_factor"), S("1"), &arena);
	keyspace = keyspace_new(S("fixture1"), &replication, true, false);
	describe_keyspace(keyspace, false, false, &out);
	ck_assert_str_eq(text(),
	    "CREATE KEYSPACE fixture1 WITH replication = {'class': 'SimpleStrategy', "
	    "'replication_factor': '1'}  AND durable_writes = true;");
	keyspace_unref(keyspace);
	keyspace = keyspace_new(S("Virtual"), NULL, true, true);
	buffer_clear(&out);
	describe_keyspace(keyspace, false, false, &out);
	ck_assert_str_eq(text(),
	    "/*\nWarning: Keyspace \"Virtual\" is a virtual keyspace and cannot be recreated with "
	    "CQL.\nStructure, for reference:\nVIRTUAL KEYSPACE \"Virtual\";\n*/");
	keyspace_unref(keyspace);
}
END_TEST

static const struct type *
address_type(void)
{
	struct slice fields[] = {S("street"), S("Zip"), S("tags")};
	const struct type *params[] = {type_native(TYPE_TEXT), type_native(TYPE_INT),
	    type_set(&arena, type_native(TYPE_TEXT), false)};

	return type_udt(&arena, S("fixture1"), S("address"), fields, params, 3, true);
}

START_TEST(test_type)
{
	describe_type(address_type(), true, &out);
	ck_assert_str_eq(text(),
	    "CREATE TYPE IF NOT EXISTS fixture1.address (\n"
	    "    street text,\n"
	    "    \"Zip\" int,\n"
	    "    tags frozen<set<text>>\n"
	    ");");
}
END_TEST

START_TEST(test_table_with_everything)
{
	struct table_builder *builder = table_builder_new(S("fixture1"), S("T"));
	struct table_metadata *table;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "select", "int");
	table_builder_add(builder, COLUMN_PARTITION_KEY, "b", "text");
	table_builder_add_column(builder, COLUMN_CLUSTERING, S("c"), type_native(TYPE_INT), true);
	table_builder_add(builder, COLUMN_CLUSTERING, "d", "text");
	table_builder_add(builder, COLUMN_REGULAR, "l", "list<int>");
	table_builder_add(builder, COLUMN_REGULAR, "z", "frozen<map<text, frozen<set<int>>>>");
	table_builder_add(builder, COLUMN_STATIC, "st", "text");
	table_builder_add_column(builder, COLUMN_REGULAR, S("ad"), address_type(), false);
	table = build(builder);
	describe_table(NULL, table, false, false, &out);
	ck_assert_str_eq(text(),
	    "CREATE TABLE fixture1.\"T\" (\n"
	    "    \"select\" int,\n"
	    "    b text,\n"
	    "    c int,\n"
	    "    d text,\n"
	    "    st text static,\n"
	    "    z frozen<map<text, frozen<set<int>>>>,\n"
	    "    ad address,\n"
	    "    l list<int>,\n"
	    "    PRIMARY KEY ((\"select\", b), c, d)\n"
	    ") WITH CLUSTERING ORDER BY (c DESC, d ASC)\n"
	    "    AND " OPTIONS);
	table_unref(table);
}
END_TEST

START_TEST(test_internals_tell_id_and_dropped_columns)
{
	struct table_builder *builder = table_builder_new(S("ks"), S("t9"));
	struct table_metadata *table;
	struct uuid id;

	uuid_parse("5a1c395e-b41f-11e5-9f22-ba0be0483c18", 36, &id);
	table_builder_set_id(builder, &id);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_REGULAR, "a", "int");
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	table_builder_add(builder, COLUMN_REGULAR, "m", "map<int, text>");
	table_builder_remove_column(builder, S("a"), true, 1234567890123456);
	table_builder_remove_column(builder, S("b"), true, 1796077600561000);
	table_builder_add(builder, COLUMN_REGULAR, "b", "text");
	table = build(builder);
	describe_table(NULL, table, true, false, &out);
	ck_assert_str_eq(text(),
	    "CREATE TABLE ks.t9 (\n"
	    "    k int PRIMARY KEY,\n"
	    "    m map<int, text>,\n"
	    "    a int,\n"
	    "    b text\n"
	    ") WITH ID = 5a1c395e-b41f-11e5-9f22-ba0be0483c18\n"
	    "    AND " OPTIONS "\n"
	    "ALTER TABLE ks.t9 DROP a USING TIMESTAMP 1234567890123456;\n"
	    "ALTER TABLE ks.t9 DROP b USING TIMESTAMP 1796077600561000;\n"
	    "ALTER TABLE ks.t9 ADD b text;");
	buffer_clear(&out);
	describe_table(NULL, table, false, true, &out);
	ck_assert_str_eq(text(),
	    "CREATE TABLE IF NOT EXISTS ks.t9 (\n"
	    "    k int PRIMARY KEY,\n"
	    "    b text,\n"
	    "    m map<int, text>\n"
	    ") WITH " OPTIONS);
	table_unref(table);
}
END_TEST

START_TEST(test_compact_and_virtual_tables_are_commented_out)
{
	struct table_builder *builder = table_builder_new(S("ks"), S("t6"));
	struct table_metadata *table;

	table_builder_set_flags(builder, TABLE_DENSE);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_add(builder, COLUMN_CLUSTERING, "c", "int");
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	table = build(builder);
	describe_table(NULL, table, false, false, &out);
	ck_assert_str_eq(text(),
	    "/*\nWarning: Table ks.t6 omitted because it has constructs not compatible with CQL "
	    "(was created via legacy API).\n"
	    "Approximate structure, for reference:\n"
	    "(this should not be used to reproduce this schema)\n\n"
	    "CREATE TABLE ks.t6 (\n"
	    "    k int,\n"
	    "    c int,\n"
	    "    v int,\n"
	    "    PRIMARY KEY (k, c)\n"
	    ") WITH COMPACT STORAGE\n"
	    "    AND CLUSTERING ORDER BY (c ASC)\n"
	    "    AND " OPTIONS "\n*/");
	table_unref(table);
	builder = table_builder_new(S("system_views"), S("v"));
	table_builder_set_virtual(builder, true);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	table_builder_options(builder)->comment = S("x");
	table = build(builder);
	buffer_clear(&out);
	describe_table(NULL, table, false, false, &out);
	ck_assert_str_eq(text(),
	    "/*\nWarning: Table system_views.v is a virtual table and cannot be recreated with "
	    "CQL.\nStructure, for reference:\nVIRTUAL TABLE system_views.v (\n"
	    "    k int PRIMARY KEY\n) WITH comment = 'x';\n*/");
	table_unref(table);
}
END_TEST

START_TEST(test_view)
{
	struct option_map replication = {NULL, 0};
	struct keyspace_metadata *keyspace = keyspace_new(S("ks"), &replication, true, false);
	struct keyspace_metadata *with_view;
	struct view_metadata view = {.name = S("Mv2"),
	    .base_table = S("T3"),
	    .where_clause = S("c IS NOT NULL AND \"K\" IS NOT NULL")};
	struct table_builder *builder = table_builder_new(S("ks"), S("Mv2"));
	struct table_metadata *table;
	const char *got;

	table_builder_set_view(builder, true);
	table_builder_add(builder, COLUMN_PARTITION_KEY, "c", "text");
	table_builder_add_column(builder, COLUMN_CLUSTERING, S("K"), type_native(TYPE_INT), true);
	table_builder_add(builder, COLUMN_REGULAR, "select", "text");
	table = build(builder);
	with_view = keyspace_with_view(keyspace, &view, table);
	describe_table(with_view, table, false, false, &out);
	got = text();
	ck_assert_ptr_eq(strstr(got,
			     "CREATE MATERIALIZED VIEW ks.\"Mv2\" AS\n"
			     "    SELECT c, \"K\", \"select\"\n"
			     "    FROM ks.\"T3\"\n"
			     "    WHERE c IS NOT NULL AND \"K\" IS NOT NULL\n"
			     "    PRIMARY KEY (c, \"K\")\n"
			     " WITH CLUSTERING ORDER BY (\"K\" DESC)\n"
			     "    AND additional_write_policy = '99p'\n"),
	    got);
	ck_assert_ptr_null(strstr(got, "default_time_to_live"));
	table_unref(table);
	keyspace_unref(keyspace);
	keyspace_unref(with_view);
}
END_TEST

START_TEST(test_indexes)
{
	struct option_map options = {NULL, 0};
	struct table_builder *builder = table_builder_new(S("ks"), S("T3"));
	struct table_metadata *table;

	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	option_map_put(&options, S("target"), S("keys(m)"), &arena);
	table_builder_add_index(builder, S("i9"), "COMPOSITES", S("keys(m)"), &options);
	option_map_put(
	    &options, S("class_name"), S("org.apache.cassandra.index.sasi.SASIIndex"), &arena);
	option_map_put(&options, S("mode"), S("PREFIX"), &arena);
	table_builder_add_index(builder, S("i5"), "CUSTOM", S("\"select\""), &options);
	table = build(builder);
	describe_index(table, &table->indexes[1], false, &out);
	ck_assert_str_eq(text(), "CREATE INDEX i9 ON ks.\"T3\" (keys(m));");
	buffer_clear(&out);
	describe_index(table, &table->indexes[0], false, &out);
	ck_assert_str_eq(text(),
	    "CREATE CUSTOM INDEX i5 ON ks.\"T3\" (\"select\") USING "
	    "'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {'mode': 'PREFIX'};");
	table_unref(table);
}
END_TEST

START_TEST(test_functions)
{
	struct slice names[] = {S("a"), S("B")};
	const struct type *types[] = {
	    type_native(TYPE_INT), type_list(&arena, type_native(TYPE_INT), true)};
	struct function_metadata function = {.name = S("f1"),
	    .argument_count = 2,
	    .argument_names = names,
	    .argument_types = types,
	    .return_type = type_native(TYPE_INT),
	    .body = S(" return a; "),
	    .language = S("java"),
	    .called_on_null = true};
	struct function_metadata aggregate = {.name = S("ag"),
	    .is_aggregate = true,
	    .argument_count = 1,
	    .argument_types = types,
	    .state_function = S("sf"),
	    .state_type = type_native(TYPE_INT),
	    .final_function = S("f3"),
	    .initial_condition = S("5")};
	struct keyspace_metadata *keyspace = keyspace_new(S("ks"), NULL, true, false);

	describe_function(keyspace, &function, false, &out);
	ck_assert_str_eq(text(),
	    "CREATE FUNCTION ks.f1(a int, \"B\" list<int>)\n"
	    "    CALLED ON NULL INPUT\n"
	    "    RETURNS int\n"
	    "    LANGUAGE java\n"
	    "    AS $$ return a; $$;");
	buffer_clear(&out);
	describe_function(keyspace, &aggregate, false, &out);
	ck_assert_str_eq(text(),
	    "CREATE AGGREGATE ks.ag(int)\n"
	    "    SFUNC sf\n"
	    "    STYPE int\n"
	    "    FINALFUNC f3\n"
	    "    INITCOND 5;");
	keyspace_unref(keyspace);
}
END_TEST

START_TEST(test_names_are_quoted_where_needed)
{
	static const char *const names[][2] = {{"abc", "abc"}, {"a_1", "a_1"}, {"1a", "\"1a\""},
	    {"_a", "\"_a\""}, {"Ab", "\"Ab\""}, {"a b", "\"a b\""}, {"q\"q", "\"q\"\"q\""},
	    {"with", "\"with\""}, {"add", "\"add\""}, {"default", "default"}, {"", "\"\""}};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		buffer_clear(&out);
		describe_name(S(names[i][0]), &out);
		ck_assert_str_eq(text(), names[i][1]);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("cql/describe");
	TCase *cases = tcase_create("describe");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_test(cases, test_keyspace);
	tcase_add_test(cases, test_type);
	tcase_add_test(cases, test_table_with_everything);
	tcase_add_test(cases, test_internals_tell_id_and_dropped_columns);
	tcase_add_test(cases, test_compact_and_virtual_tables_are_commented_out);
	tcase_add_test(cases, test_view);
	tcase_add_test(cases, test_indexes);
	tcase_add_test(cases, test_functions);
	tcase_add_test(cases, test_names_are_quoted_where_needed);
	suite_add_tcase(suite, cases);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
