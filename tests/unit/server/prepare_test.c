/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans and what becomes of WHERE: slices of clusterings, keys, refusals; and the cache of plans under
 * readers and writers at once.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "server/prepared_cache.h"
#include "server/restriction.h"
#include "server/select.h"
#include "server/system_tables.h"

static struct schema *schema;
static struct arena arena;

static void
setup(void)
{
	static const char *const columns[][2] = {{"a", "int"}, {"b", "int"}, {"c", "int"}};
	struct option_map replication = {NULL, 0};
	struct keyspace_metadata *keyspace, *filled;
	struct table_builder *builder;
	struct table_metadata *table;
	struct schema *empty = schema_new();
	struct error err;

	arena_init(&arena, 4096);
	option_map_put(&replication, slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.LocalStrategy"), &arena);
	keyspace = keyspace_new(slice_of_string("ks"), &replication, true, false);
	builder = table_builder_new(slice_of_string("ks"), slice_of_string("t"));
	table_builder_add(builder, COLUMN_PARTITION_KEY, "k", "int");
	for (int i = 0; i < 3; i++)
		table_builder_add_column(builder, COLUMN_CLUSTERING, slice_of_string(columns[i][0]),
		    type_native(TYPE_INT), i == 1); /* b DESC */
	table_builder_add(builder, COLUMN_REGULAR, "v", "int");
	ck_assert_int_eq(table_builder_build(builder, &table, &err), 0);
	table_builder_free(builder);
	filled = keyspace_with_table(keyspace, table);
	schema = schema_with_keyspace(empty, filled);
	table_unref(table);
	keyspace_unref(keyspace);
	keyspace_unref(filled);
	schema_unref(empty);
}

static void
teardown(void)
{
	schema_unref(schema);
	arena_fini(&arena);
}

static struct prepared_statement *
prepare(const char *query)
{
	struct prepared_statement *plan;
	struct error err;

	ck_assert_msg(prepare_statement(
			  schema, slice_of_string("ks"), slice_of_string(query), &plan, &err) == 0,
	    "%s: %s", query, err.text);
	return plan;
}

/* "[1,2 .. 1,2]": bounds with their values; ( and ) exclude. */
static void
print_ranges(const struct clustering_range *ranges, uint32_t count, char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? " " : "",
		    ranges[i].start_kind == BOUND_INCL_START ? "[" : "(");
		for (uint32_t n = 0; n < ranges[i].start_count; n++)
			at += (size_t)snprintf(out + at, size - at, "%s%d", n > 0 ? "," : "",
			    (int)load_u32(ranges[i].start[n].data));
		at += (size_t)snprintf(out + at, size - at, "..");
		for (uint32_t n = 0; n < ranges[i].end_count; n++)
			at += (size_t)snprintf(out + at, size - at, "%s%d", n > 0 ? "," : "",
			    (int)load_u32(ranges[i].end[n].data));
		at += (size_t)snprintf(
		    out + at, size - at, "%s", ranges[i].end_kind == BOUND_INCL_END ? "]" : ")");
	}
}

static const struct {
	const char *where;
	const char *ranges;
} slices[] = {
    {"k = 0", "[..]"},
    {"k = 0 AND a = 1", "[1..1]"},
    {"k = 0 AND a = 1 AND b = 2 AND c = 3", "[1,2,3..1,2,3]"},
    {"k = 0 AND a IN (2, 1, 2)", "[1..1] [2..2]"},
    {"k = 0 AND a IN ()", ""},
    {"k = 0 AND a > 1", "(1..]"},
    {"k = 0 AND a >= 1 AND a < 5", "[1..5)"},
    {"k = 0 AND a > 5 AND a < 1", ""},
    /* b runs backwards: what is greater comes first. */
    {"k = 0 AND a = 1 AND b > 2", "[1..1,2)"},
    {"k = 0 AND a = 1 AND b <= 2", "[1,2..1]"},
    {"k = 0 AND a = 1 AND b IN (3, 5)", "[1,5..1,5] [1,3..1,3]"},
    /* Two columns of opposite order are a union. */
    {"k = 0 AND (a, b) > (1, 2)", "[1..1,2) (1..]"},
    {"k = 0 AND (a, b) >= (1, 2)", "[1..1,2] (1..]"},
    {"k = 0 AND (a, b) < (1, 2)", "[..1) (1,2..1]"},
    {"k = 0 AND (a, b) > (1, 2) AND (a) < (3)", "[1..1,2) (1..3)"},
    {"k = 0 AND (a, b) > (1, 2) AND (a, b) < (1, 5)", "(1,5..1,2)"},
    {"k = 0 AND (a, b) = (1, 2)", "[1,2..1,2]"},
    {"k = 0 AND (a, b) IN ((1, 2), (0, 7))", "[0,7..0,7] [1,2..1,2]"},
    {"k = 0 AND a = 1 AND (b, c) = (2, 3)", "[1,2,3..1,2,3]"},
};

START_TEST(test_where_becomes_slices)
{
	struct term_context context = {.arena = &arena};
	struct prepared_statement *plan;
	struct clustering_range *ranges;
	char query[256], printed[512];
	uint32_t count;
	struct error err;

	snprintf(query, sizeof(query), "SELECT * FROM t WHERE %s", slices[_i].where);
	plan = prepare(query);
	ck_assert_int_eq(
	    restrictions_ranges(&plan->select->restrictions, &context, &ranges, &count, &err), 0);
	print_ranges(ranges, count, printed, sizeof(printed));
	ck_assert_str_eq(printed, slices[_i].ranges);
	for (uint32_t i = 1; i < count; i++)
		ck_assert(slice_compare(ranges[i - 1].end_position, ranges[i].start_position) <= 0);
	prepared_statement_unref(plan);
}
END_TEST

static const struct {
	const char *query;
	const char *text;
} refusals[] = {
    {"SELECT * FROM t WHERE a = 1", "use ALLOW FILTERING"},
    {"SELECT * FROM t WHERE k = 0 AND b = 1",
	"PRIMARY KEY column \"b\" cannot be restricted as preceding column \"a\" is not "
	"restricted"},
    {"SELECT * FROM t WHERE k = 0 AND a > 1 AND b = 1",
	"Clustering column \"b\" cannot be restricted (preceding column \"a\" is restricted by a "
	"non-EQ relation)"},
    {"SELECT * FROM t WHERE k = 0 AND k = 1",
	"k cannot be restricted by more than one relation if it includes an Equal"},
    {"SELECT * FROM t WHERE k = 'x'", "Invalid STRING constant (x) for \"k\" of type int"},
    {"SELECT nope FROM t", "Undefined column name nope in table ks.t"},
    {"UPDATE t SET v = 1 WHERE k = 0", "Some clustering keys are missing: a, b, c"},
    {"INSERT INTO t (a, b, c) VALUES (1, 1, 1)", "Some partition key parts are missing: k"},
    {"SELECT * FROM nope", "table nope does not exist"},
};

START_TEST(test_refusals)
{
	struct prepared_statement *plan;
	struct error err;

	ck_assert_int_eq(prepare_statement(schema, slice_of_string("ks"),
			     slice_of_string(refusals[_i].query), &plan, &err),
	    -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, refusals[_i].text) != NULL, "%s", err.text);
}
END_TEST

START_TEST(test_markers_tell_the_key)
{
	struct prepared_statement *plan =
	    prepare("UPDATE t SET v = ? WHERE a = ? AND b = ? AND c = :x AND k = ?");

	ck_assert_uint_eq(plan->marker_count, 5);
	ck_assert_uint_eq(plan->key_index_count, 1);
	ck_assert_uint_eq(plan->key_indexes[0], 4);
	ck_assert(slice_equal_string(plan->markers[0].name, "v"));
	ck_assert(slice_equal_string(plan->markers[3].name, "x"));
	ck_assert_int_eq(plan->stage, REQUEST_STAGE_MUTATION);
	prepared_statement_unref(plan);
}
END_TEST

START_TEST(test_ids_are_md5_of_keyspace_and_text)
{
	struct prepared_statement *plan = prepare("SELECT * FROM t");
	uint8_t id[16];

	prepare_id(slice_null, slice_of_string("ksSELECT * FROM t"), id);
	ck_assert_mem_eq(plan->id, id, sizeof(id));
	prepared_statement_unref(plan);
}
END_TEST

/* ---- The cache ----------------------------------------------------------------------------- */

enum { CACHE_PLANS = 40, CACHE_ROUNDS = 20000 };

struct cache_user {
	struct prepared_cache *cache;
	struct prepared_statement **plans;
	unsigned seed, found;
};

static void *
cache_reader(void *argument)
{
	struct cache_user *user = argument;

	for (int i = 0; i < CACHE_ROUNDS; i++) {
		struct prepared_statement *wanted = user->plans[rand_r(&user->seed) % CACHE_PLANS];
		struct prepared_statement *plan =
		    prepared_cache_get(user->cache, slice_of(wanted->id, 16));
		enum request_stage stage;

		if (plan != NULL) {
			user->found += memcmp(plan->id, wanted->id, 16) == 0;
			prepared_statement_unref(plan);
		}
		(void)prepared_cache_stage(user->cache, slice_of(wanted->id, 16), &stage);
	}
	return NULL;
}

START_TEST(test_the_cache_serves_readers_while_it_changes)
{
	struct prepared_statement *plans[CACHE_PLANS];
	struct prepared_cache cache;
	struct cache_user users[3];
	pthread_t threads[3];
	char query[128];
	unsigned seed = 1;

	prepared_cache_init(&cache, 0);
	for (int i = 0; i < CACHE_PLANS; i++) {
		snprintf(query, sizeof(query), "SELECT * FROM t WHERE k = %d", i);
		plans[i] = prepare(query);
	}
	for (int i = 0; i < 3; i++) {
		users[i] = (struct cache_user){&cache, plans, (unsigned)i, 0};
		pthread_create(&threads[i], NULL, cache_reader, &users[i]);
	}
	for (int i = 0; i < 2000; i++) {
		struct prepared_statement *plan = plans[rand_r(&seed) % CACHE_PLANS];

		if (i % 3 == 0)
			prepared_cache_remove(&cache, slice_of(plan->id, 16));
		else
			prepared_cache_put(&cache, plan);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	prepared_cache_fini(&cache);
	for (int i = 0; i < CACHE_PLANS; i++) {
		ck_assert_uint_eq(atomic_load(&plans[i]->refs), 1);
		prepared_statement_unref(plans[i]);
	}
}
END_TEST

START_TEST(test_the_cache_forgets_the_oldest)
{
	struct prepared_statement *plans[CACHE_PLANS], *found;
	struct prepared_cache cache;
	char query[128];

	prepared_cache_init(&cache, 64 << 10);
	for (int i = 0; i < CACHE_PLANS; i++) {
		snprintf(query, sizeof(query), "SELECT * FROM t WHERE k = %d", i);
		plans[i] = prepare(query);
		prepared_cache_put(&cache, plans[i]);
	}
	ck_assert(prepared_cache_get(&cache, slice_of(plans[0]->id, 16)) == NULL);
	found = prepared_cache_get(&cache, slice_of(plans[CACHE_PLANS - 1]->id, 16));
	ck_assert(found == plans[CACHE_PLANS - 1]);
	prepared_statement_unref(found);
	ck_assert_uint_gt(atomic_load(&cache.evictions), 0);
	prepared_cache_fini(&cache);
	for (int i = 0; i < CACHE_PLANS; i++)
		prepared_statement_unref(plans[i]);
}
END_TEST

START_TEST(test_the_system_tables_can_be_made)
{
	struct schema *system;
	struct error err;

	ck_assert_msg(system_tables_schema(1, &system, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < system_table_definition_count; i++)
		ck_assert(
		    schema_table(system, slice_of_string(system_table_definitions[i].keyspace),
			slice_of_string(system_table_definitions[i].table)) != NULL);
	schema_unref(system);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("prepare");
	TCase *tcase = tcase_create("prepare");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(
	    tcase, test_where_becomes_slices, 0, sizeof(slices) / sizeof(slices[0]));
	tcase_add_loop_test(tcase, test_refusals, 0, sizeof(refusals) / sizeof(refusals[0]));
	tcase_add_test(tcase, test_markers_tell_the_key);
	tcase_add_test(tcase, test_ids_are_md5_of_keyspace_and_text);
	tcase_add_test(tcase, test_the_cache_serves_readers_while_it_changes);
	tcase_add_test(tcase, test_the_cache_forgets_the_oldest);
	tcase_add_test(tcase, test_the_system_tables_can_be_made);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
