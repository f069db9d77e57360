/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_profile.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>
#include "protocol/message.h"
#include "tools/stress_operation.h"

static int
load(struct stress_profile *profile, const char *yaml, struct error *err)
{
	char path[] = "/tmp/stress-profile-XXXXXX";
	int fd = mkstemp(path), rc;

	ck_assert_int_eq(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
	close(fd);
	rc = stress_profile_load(profile, path, err);
	unlink(path);
	return rc;
}

#define HEAD "keyspace: ks\ntable: t\n"

START_TEST(test_profile_is_read)
{
	struct stress_profile profile;
	struct error err;

	ck_assert_msg(
	    load(&profile,
		"keyspace: ks\n"
		"keyspace_definition: |\n  CREATE KEYSPACE ks WITH replication = {'class': 'x'};\n"
		"table: t\n"
		"table_definition: |\n  CREATE TABLE IF NOT EXISTS ks.t (a text, b int, PRIMARY "
		"KEY (a));\n"
		"extra_definitions:\n  - CREATE INDEX i ON t (b)\n"
		"columnspec:\n  - name: A\n    size: uniform(1..10)\n    population: "
		"uniform(1..1M)\n"
		"  - name: b\n    cluster: fixed(7)\n"
		"insert:\n  partitions: fixed(5)\n  select: fixed(1)/2\n  batchtype: UNLOGGED\n"
		"  consistencyLevel: QUORUM\n"
		"queries:\n  Simple:\n    cql: select * from t where a = ?\n    fields: samerow\n"
		"    consistencyLevel: ONE\n"
		"  other:\n    cql: select * from t\n"
		"token_range_queries:\n  All:\n    columns: '*'\n    page_size: 77\n  some:\n"
		"    columns: a, b\n",
		&err) == 0,
	    "%s", err.text);
	ck_assert_str_eq(profile.name, "ks.t");
	ck_assert_uint_eq(profile.extra_count, 1);
	ck_assert_uint_eq(profile.spec_count, 2);
	ck_assert_str_eq(profile.specs[0].name, "a");
	/* The salt is of the name as it was written. */
	ck_assert_str_eq(profile.specs[0].seed_text, "seed for stressA");
	ck_assert(profile.specs[0].has_population && !profile.specs[0].has_clustering);
	ck_assert_int_eq(stress_distribution_max(&profile.specs[1].clustering), 7);
	ck_assert_int_eq(profile.partitions.max, 5);
	ck_assert_double_eq(stress_ratio_max(&profile.select), 0.5);
	ck_assert_int_eq(profile.batch_type, BATCH_UNLOGGED);
	ck_assert_int_eq(profile.consistency, CONSISTENCY_QUORUM);
	ck_assert_ptr_nonnull(stress_profile_query(&profile, "simple"));
	ck_assert(stress_profile_query(&profile, "simple")->is_same_row);
	ck_assert(!stress_profile_query(&profile, "other")->is_same_row);
	ck_assert_ptr_null(stress_profile_query(&profile, "none"));
	ck_assert_int_eq(stress_profile_scan(&profile, "all")->page_size, 77);
	ck_assert_str_eq(stress_profile_scan(&profile, "some")->columns, "a, b");
	ck_assert_ptr_null(stress_profile_scan(&profile, "other"));
	stress_profile_fini(&profile);
}
END_TEST

static const struct {
	const char *yaml;
	const char *text;
} bad[] = {
    {"", "mapping"},
    {"- a\n", "mapping"},
    {"a: [\n", "line"},
    {"table: t\n", "keyspace name is required"},
    {"keyspace: k\n", "table name is required"},
    {HEAD "foo: 1\n", "Unable to find property 'foo'"},
    {HEAD "table_definition: create table other (a int)\n",
	"doesn't match table property: 'other'"},
    {HEAD "keyspace_definition: create keyspace if not exists x with\n", "doesn't match keyspace"},
    {HEAD "columnspec:\n  - size: fixed(1)\n", "Missing name"},
    {HEAD "columnspec:\n  - name: a\n    sise: fixed(1)\n", "line 5: Unrecognised option"},
    {HEAD "columnspec:\n  - name: a\n    size: foo(1)\n", "line 5: Illegal distribution type"},
    {HEAD "columnspec: 5\n", "not a list"},
    {HEAD "insert:\n  batchtype: BIG\n", "batchtype"},
    {HEAD "insert:\n  speed: 5\n", "Unrecognised insert option(s): speed"},
    {HEAD "insert:\n  select: fixed(1)\n", "Invalid ratio"},
    {HEAD "queries:\n  q:\n    fields: samerow\n", "no cql"},
    {HEAD "queries:\n  q:\n    cql: x\n    fields: some\n", "samerow or multirow"},
    {HEAD "queries:\n  insert:\n    cql: x\n", "reserved"},
    {HEAD "queries:\n  q:\n    cql: x\n    consistencyLevel: MOST\n", "consistency level"},
    {HEAD "queries:\n  validate:\n    cql: x\n", "reserved"},
    {HEAD "token_range_queries:\n  q:\n    page_size: 0\n", "page_size of 1 or more"},
    {HEAD "token_range_queries:\n  q:\n    rows: 5\n", "line 5: of a token range query"},
    {HEAD "queries:\n  q:\n    cql: x\ntoken_range_queries:\n  Q:\n    columns: a\n",
	"Found q in both"},
};

START_TEST(test_wrong_profiles_are_refused_with_the_place)
{
	struct stress_profile profile;
	struct error err;

	ck_assert_msg(load(&profile, bad[_i].yaml, &err) == -1, "%s", bad[_i].yaml);
	ck_assert_msg(strstr(err.text, bad[_i].text) != NULL, "%s", err.text);
	stress_profile_fini(&profile);
}
END_TEST

static void
set_columns(struct stress_profile *profile, const struct stress_column *columns, uint32_t count,
    const char *expected)
{
	struct error err;

	ck_assert_int_eq(load(profile, HEAD, &err), 0);
	ck_assert_int_eq(
	    stress_profile_set_columns(profile, columns, count, STRESS_ARBITRARY, false, &err), 0);
	ck_assert_str_eq((char *)profile->insert_query.data, expected);
	stress_profile_fini(profile);
}

START_TEST(test_inserts_are_updates_of_all_columns)
{
	struct arena arena;
	struct stress_profile profile;

	arena_init(&arena, 4096);
	{
		const struct type *frozen = type_set(&arena, type_native(TYPE_INT), false);
		const struct type *open = type_set(&arena, type_native(TYPE_INT), true);
		const struct stress_column columns[] = {
		    {"Body", type_native(TYPE_BLOB), 'r', -1},
		    {"c", type_native(TYPE_INT), 'c', 0},
		    {"f", frozen, 'r', -1},
		    {"k", type_native(TYPE_TEXT), 'p', 0},
		    {"s", open, 'r', -1},
		};

		set_columns(&profile, columns, 5,
		    "UPDATE t SET \"Body\" = ?,f = ?,s = s + ? WHERE c = ? AND k = ?");
	}
	arena_fini(&arena);
}
END_TEST

START_TEST(test_tables_of_keys_alone_are_inserted_into)
{
	const struct stress_column columns[] = {
	    {"c", type_native(TYPE_INT), 'c', 0}, {"k", type_native(TYPE_TEXT), 'p', 0}};
	struct stress_profile profile;

	set_columns(&profile, columns, 2, "INSERT INTO t (c, k) values(?, ?)");
}
END_TEST

START_TEST(test_counters_are_added_to)
{
	const struct stress_column columns[] = {
	    {"k", type_native(TYPE_TEXT), 'p', 0}, {"n", type_native(TYPE_COUNTER), 'r', -1}};
	struct stress_profile profile;

	set_columns(&profile, columns, 2, "UPDATE t SET n = n + ? WHERE k = ?");
}
END_TEST

START_TEST(test_a_condition_of_inserts_follows_them)
{
	static const struct {
		const char *condition;
		const char *query;
	} cases[] = {
	    {"IF NOT EXISTS", "INSERT INTO t (k, v) values(?, ?) IF NOT EXISTS"},
	    {"not exists", "INSERT INTO t (k, v) values(?, ?) IF not exists"},
	    {"IF v = ?", "UPDATE t SET v = ? WHERE k = ? IF v = ?"},
	    {"if exists", "UPDATE t SET v = ? WHERE k = ? if exists"},
	};
	const struct stress_column columns[] = {
	    {"k", type_native(TYPE_TEXT), 'p', 0}, {"v", type_native(TYPE_INT), 'r', -1}};
	struct stress_profile profile;
	char yaml[128];
	struct error err;

	snprintf(yaml, sizeof(yaml), HEAD "insert:\n  condition: %s\n", cases[_i].condition);
	ck_assert_int_eq(load(&profile, yaml, &err), 0);
	ck_assert_int_eq(
	    stress_profile_set_columns(&profile, columns, 2, STRESS_ARBITRARY, false, &err), 0);
	ck_assert_str_eq((char *)profile.insert_query.data, cases[_i].query);
	stress_profile_fini(&profile);
}
END_TEST

START_TEST(test_what_was_read_goes_into_the_condition)
{
	struct stress_statement statement = {.query = "update",
	    .id = slice_of_string("id"),
	    .result_metadata_id = slice_of_string("result"),
	    .is_prepared = true};
	struct slice values[] = {
	    slice_of_string("a"), slice_of_string("old"), slice_null, slice_of_string("key")};
	uint32_t markers[] = {1, 2};
	const struct stress_condition condition = {.markers = markers, .column_count = 2};
	struct client_rows rows = {.metadata.column_count = 2,
	    .row_count = 1,
	    .content = slice_of("\0\0\0\5value\377\377\377\377", 13)};
	uint8_t version = (uint8_t)_i;
	struct stress_request request;
	struct buffer made, filled;
	struct envelope envelope;
	struct client_message message;
	struct arena arena;
	struct error err;

	statement.marker_count = 4;
	buffer_init(&made);
	buffer_init(&filled);
	arena_init(&arena, 4096);
	stress_request_put(&made, version, 0, &statement, values, 0, &request);
	ck_assert_int_eq(stress_condition_put_write(&condition, buffer_slice(&made), &request,
			     version, &rows, &filled, &err),
	    0);
	envelope.header = envelope_load_header(filled.data);
	envelope.body = slice_of(filled.data + 9, filled.size - 9);
	ck_assert_uint_eq(envelope.header.length, envelope.body.size);
	ck_assert_int_eq(message_decode_request(&envelope, &arena, &message, &err), 0);
	ck_assert_uint_eq(message.execute.options.values.count, 4);
	ck_assert(slice_equal_string(message.execute.options.values.values[0].value, "a"));
	ck_assert(slice_equal_string(message.execute.options.values.values[1].value, "value"));
	ck_assert(slice_is_null(message.execute.options.values.values[2].value));
	ck_assert(slice_equal_string(message.execute.options.values.values[3].value, "key"));
	/* No row: nothing is there. */
	buffer_clear(&filled);
	rows.row_count = 0;
	ck_assert_int_eq(stress_condition_put_write(&condition, buffer_slice(&made), &request,
			     version, &rows, &filled, &err),
	    0);
	envelope.body = slice_of(filled.data + 9, filled.size - 9);
	envelope.header = envelope_load_header(filled.data);
	ck_assert_int_eq(message_decode_request(&envelope, &arena, &message, &err), 0);
	ck_assert(slice_is_null(message.execute.options.values.values[1].value));
	/* Cut short, or other columns. */
	rows.row_count = 1;
	rows.content = slice_of("\0\0\0\5val", 7);
	buffer_clear(&filled);
	ck_assert_int_eq(stress_condition_put_write(&condition, buffer_slice(&made), &request,
			     version, &rows, &filled, &err),
	    -1);
	rows.metadata.column_count = 1;
	ck_assert_int_eq(stress_condition_put_write(&condition, buffer_slice(&made), &request,
			     version, &rows, &filled, &err),
	    -1);
	buffer_fini(&made);
	buffer_fini(&filled);
	arena_fini(&arena);
}
END_TEST

START_TEST(test_paging_state_goes_into_its_place)
{
	struct stress_settings settings = {.consistency = CONSISTENCY_ONE};
	struct stress_operation operation;
	struct stress_statement statement = {.query = "select",
	    .id = slice_of_string("0123456789abcdef"),
	    .result_metadata_id = slice_of_string("fedcba9876543210"),
	    .consistency = CONSISTENCY_QUORUM,
	    .serial_consistency = CONSISTENCY_LOCAL_SERIAL,
	    .is_prepared = true};
	struct stress_population population = {.is_sequence = true, .first = 1, .last = 9};
	struct stress_distribution one = stress_distribution_fixed(1);
	struct stress_seeds *seeds = stress_seeds_new(&population, &one, &one, NULL);
	struct stress_profile profile = {.select = {one, 1}, .row_population = {one, 1}};
	uint8_t version = (uint8_t)_i;
	struct stress_request request;
	struct stress_table table;
	struct stress_maker maker;
	struct buffer first, next;
	struct envelope envelope;
	struct client_message message;
	struct arena arena;
	struct error err;
	bool is_over;

	settings.row_population = profile.select;
	settings.key_size = 4;
	settings.column_size = one;
	stress_predefined_table(&settings, &table);
	ck_assert_int_eq(
	    stress_operation_init(&operation, "q", STRESS_OP_QUERY, &statement, &table, &err), 0);
	operation.profile = &profile;
	stress_maker_init(&maker, &operation, &settings, seeds, 1);
	buffer_init(&first);
	buffer_init(&next);
	arena_init(&arena, 4096);
	ck_assert_int_eq(
	    stress_maker_put_user(&maker, seeds, &first, version, 1, &request, 0, &is_over, &err),
	    1);
	stress_request_put_page(
	    &request, buffer_slice(&first), version, slice_of_string("state"), &next);
	envelope.header = envelope_load_header(next.data);
	envelope.body = slice_of(next.data + 9, next.size - 9);
	ck_assert_uint_eq(envelope.header.length, envelope.body.size);
	ck_assert_int_eq(message_decode_request(&envelope, &arena, &message, &err), 0);
	ck_assert(slice_equal_string(message.execute.options.paging_state, "state"));
	ck_assert_int_eq(message.execute.options.page_size, 5000);
	ck_assert_int_eq(message.execute.options.consistency, CONSISTENCY_QUORUM);
	ck_assert_int_eq(message.execute.options.serial_consistency, CONSISTENCY_LOCAL_SERIAL);
	ck_assert(slice_equal(message.execute.id, statement.id));
	buffer_fini(&first);
	buffer_fini(&next);
	arena_fini(&arena);
	stress_maker_fini(&maker);
	stress_operation_fini(&operation);
	stress_table_fini(&table);
	stress_seeds_free(seeds);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("stress_profile");
	TCase *tcase = tcase_create("stress_profile");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(
	    tcase, test_wrong_profiles_are_refused_with_the_place, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_loop_test(tcase, test_paging_state_goes_into_its_place, 3, 6);
	tcase_add_loop_test(tcase, test_a_condition_of_inserts_follows_them, 0, 4);
	tcase_add_loop_test(tcase, test_what_was_read_goes_into_the_condition, 3, 6);
	tcase_add_test(tcase, test_profile_is_read);
	tcase_add_test(tcase, test_inserts_are_updates_of_all_columns);
	tcase_add_test(tcase, test_tables_of_keys_alone_are_inserted_into);
	tcase_add_test(tcase, test_counters_are_added_to);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
