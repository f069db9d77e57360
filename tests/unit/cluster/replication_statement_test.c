/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cluster/replication.h"

static const struct replication_place places[] = {{"dc1", 3}, {"dc2", 1}};

/* "class SimpleStrategy replication_factor 3" */
static struct option_map
options_of(const char *text, struct arena *arena)
{
	struct option_map options = {NULL, 0};
	char *copy = arena_strdup(arena, text), *save;
	char *key = strtok_r(copy, " ", &save);

	while (key != NULL) {
		char *value = strtok_r(NULL, " ", &save);

		option_map_put(&options, slice_of_string(key), slice_of_string(value), arena);
		key = strtok_r(NULL, " ", &save);
	}
	return options;
}

static void
append(char *out, size_t size, const char *text)
{
	strncat(out, text, size - strlen(out) - 1);
}

static void
warned(void *argument, const char *text)
{
	append(argument, 512, "; ");
	append(argument, 512, text);
}

static int32_t default_factor = 1;

/* Options without the class's package, then what is warned of. Or the error. */
static const char *
prepared(const char *given, const char *before)
{
	static char text[1024];
	struct arena arena;
	struct option_map options, old, out;
	struct error err;

	arena_init(&arena, 4096);
	options = options_of(given, &arena);
	if (before != NULL)
		old = options_of(before, &arena);
	text[0] = '\0';
	if (replication_prepare(&options, before == NULL ? NULL : &old, slice_of_string("ks"),
		places, 2, default_factor, &arena, &out, &err) != 0) {
		ck_assert_int_eq(err.code, ERROR_CONFIG);
		append(text, sizeof(text), err.text);
		arena_fini(&arena);
		return text;
	}
	for (uint32_t i = 0; i < out.count; i++) {
		char value[128];

		snprintf(value, sizeof(value), "%.*s", (int)out.entries[i].value.size,
		    (const char *)out.entries[i].value.data);
		if (i > 0) {
			char key[64];

			snprintf(key, sizeof(key), " %.*s ", (int)out.entries[i].key.size,
			    (const char *)out.entries[i].key.data);
			append(text, sizeof(text), key);
		}
		append(text, sizeof(text), i == 0 ? strrchr(value, '.') + 1 : value);
	}
	replication_warn(
	    &out, before == NULL ? NULL : &old, slice_of_string("ks"), places, 2, warned, text);
	arena_fini(&arena);
	return text;
}

#define HIGH "Your replication factor "
#define REPAIR                                                                                     \
	"; When increasing replication factor you need to run a full (-full) repair to "           \
	"distribute "                                                                              \
	"the data."

static const struct {
	const char *given, *before, *result;
} cases[] = {
    {"class SimpleStrategy replication_factor 2", NULL, "SimpleStrategy replication_factor 2"},
    {"class org.apache.cassandra.locator.SimpleStrategy", NULL,
	"SimpleStrategy replication_factor 1"},
    {"class SimpleStrategy replication_factor 5", NULL,
	"SimpleStrategy replication_factor 5; " HIGH
	"5 for keyspace ks is higher than the number of nodes 4"},
    {"class NetworkTopologyStrategy", NULL, "NetworkTopologyStrategy dc1 1 dc2 1"},
    {"class NetworkTopologyStrategy replication_factor 1", NULL,
	"NetworkTopologyStrategy dc1 1 dc2 1"},
    {"class NetworkTopologyStrategy replication_factor 3 dc2 1", NULL,
	"NetworkTopologyStrategy dc2 1 dc1 3"},
    {"class NetworkTopologyStrategy dc1 3 dc2 0", NULL, "NetworkTopologyStrategy dc1 3"},
    {"class NetworkTopologyStrategy dc1 3 dc2 3", NULL,
	"NetworkTopologyStrategy dc1 3 dc2 3; " HIGH
	"3 for keyspace ks is higher than the number of nodes 1 for datacenter dc2"},
    /* ALTER */
    {"class NetworkTopologyStrategy replication_factor 3", "class NetworkTopologyStrategy dc2 1",
	"NetworkTopologyStrategy dc2 1 dc1 3" REPAIR},
    {"class NetworkTopologyStrategy", "class SimpleStrategy replication_factor 1",
	"NetworkTopologyStrategy dc1 1 dc2 1" REPAIR},
    {"class NetworkTopologyStrategy dc1 2", "class NetworkTopologyStrategy dc1 2 dc2 2",
	"NetworkTopologyStrategy dc1 2"},
    {"class EverywhereStrategy", NULL, "EverywhereStrategy"},
    /* Errors */
    {"replication_factor 2", NULL, "Missing replication strategy class"},
    {"class NetworkTopologyStrategy dc3 2", NULL,
	"Unrecognized strategy option {dc3} passed to NetworkTopologyStrategy for keyspace ks"},
    {"class SimpleStrategy dc1 2", NULL,
	"Unrecognized strategy option {dc1} passed to SimpleStrategy for keyspace ks"},
    {"class EverywhereStrategy dc1 2", NULL,
	"Unrecognized strategy option {dc1} passed to EverywhereStrategy for keyspace ks"},
    {"class LocalStrategy", NULL,
	"Unable to use given strategy class: LocalStrategy is reserved for internal use."},
    {"class NetworkTopologyStrategy dc1 3/1", NULL,
	"Transient replication is not supported: replication factor '3/1' must be a plain "
	"number"},
    {"class NetworkTopologyStrategy replication_factor x", NULL, "For input string: \"x\""},
};

START_TEST(test_statements)
{
	default_factor = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(prepared(cases[i].given, cases[i].before), cases[i].result);
}
END_TEST

START_TEST(test_default_keyspace_rf)
{
	default_factor = 3;
	ck_assert_str_eq(
	    prepared("class SimpleStrategy", NULL), "SimpleStrategy replication_factor 3");
	ck_assert_str_eq(prepared("class SimpleStrategy replication_factor 2", NULL),
	    "SimpleStrategy replication_factor 2");
	ck_assert_str_eq(
	    prepared("class SimpleStrategy", "class SimpleStrategy replication_factor 2"),
	    "SimpleStrategy replication_factor 2");
	ck_assert_str_eq(
	    prepared("class SimpleStrategy", "class NetworkTopologyStrategy dc1 1 dc2 1"),
	    "SimpleStrategy replication_factor 3" REPAIR);
	ck_assert_str_eq(
	    prepared("class NetworkTopologyStrategy dc1 1", NULL), "NetworkTopologyStrategy dc1 1");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("replication_statement");
	TCase *tcase = tcase_create("replication_statement");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, test_statements);
	tcase_add_test(tcase, test_default_keyspace_rf);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
