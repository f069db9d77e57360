/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/hash.h"
#include "tests/unit/storage/replica.h"

/*
 * Reads of one row stop before they have asked all SSTables (ST-39). A store whose partitions lie in many SSTables
 * must answer as memtables with the same content do, which are all asked: the same digest, for every row.
 */
enum { TEST_KEYS = 250, TEST_ROUNDS = 7, TEST_FACTS = 40, TEST_C1 = 2 };

static struct facts facts;
static struct env *env;
static struct store *store;
static struct schema *schema;
static struct arena arena;
static struct error err;
static char directory[64];

static bool
test_submit(void *context, const char *stage, store_work_fn work, void *argument)
{
	(void)context;
	(void)stage;
	work(argument);
	return true;
}

static void
test_make_schema(void)
{
	struct option_entry entry = {slice_of_string("class"),
	    slice_of_string("org.apache.cassandra.locator.SimpleStrategy")};
	struct option_map replication = {&entry, 1};
	struct keyspace_metadata *keyspace =
	    keyspace_new(facts.table->keyspace, &replication, true, false);
	struct keyspace_metadata *with = keyspace_with_table(keyspace, facts.table);
	struct schema *empty = schema_new();

	schema = schema_with_keyspace(empty, with);
	schema_unref(empty);
	keyspace_unref(keyspace);
	keyspace_unref(with);
}

static void
test_setup(void)
{
	struct store_executor executor = {test_submit, NULL};
	struct store_options options;
	static char data[80], commitlog[80];
	static const char *directories[] = {data};

	facts_init(&facts);
	arena_init(&arena, 64 << 10);
	env = env_posix_new();
	snprintf(directory, sizeof(directory), "%s/store_read_test.XXXXXX",
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(data, sizeof(data), "%s/data", directory);
	snprintf(commitlog, sizeof(commitlog), "%s/commitlog", directory);
	store_options_defaults(&options);
	options.data_directories = directories;
	options.data_directory_count = 1;
	options.commitlog_directory = commitlog;
	test_make_schema();
	ck_assert_msg(store_open(&options, env, &executor, &store, &err) == 0, "%s", err.text);
	ck_assert_msg(store_set_schema(store, schema, &err) == 0, "%s", err.text);
	ck_assert_msg(store_replay(store, &err) == 0, "%s", err.text);
	store_set_auto_compaction(store, store_table(store, facts.table), false);
}

static void
test_teardown(void)
{
	store_close(store);
	schema_unref(schema);
	facts_fini(&facts);
	arena_fini(&arena);
	files_remove_tree(env->files, directory, NULL);
	env_free(env);
}

/* The facts of a partition: those of few rows, later rounds with later timestamps, mostly. */
static void
test_generate(int key, uint64_t rounds[TEST_ROUNDS])
{
	struct random random = {(uint64_t)key + 1};

	facts_generate(&facts, &random, TEST_FACTS);
	memset(rounds, 0, TEST_ROUNDS * sizeof(*rounds));
	for (uint32_t i = 0; i < facts.count; i++) {
		struct fact *fact = &facts.facts[i];
		uint32_t round = random_below(&random, TEST_ROUNDS);
		bool is_deletion = fact->kind != FACT_CELL && fact->kind != FACT_LIVENESS;

		fact->c1 %= TEST_C1;
		fact->c2 = 0;
		/* Enough that is alive, so that something settles. */
		if (is_deletion && random_below(&random, 2) == 0) {
			fact->kind = FACT_LIVENESS;
			is_deletion = false;
		}
		if (!is_deletion && random_below(&random, 3) != 0) {
			fact->ttl = TTL_NONE;
			fact->local_deletion_time = LOCAL_DELETION_TIME_NONE;
		}
		if (random_below(&random, 10) != 0)
			fact->timestamp += 4 * round;
		rounds[round] |= UINT64_C(1) << i;
	}
}

static void
test_written(struct store_write *write, const struct error *error)
{
	(void)write;
	ck_assert_msg(error == NULL, "%s", error != NULL ? error->text : "");
}

static void
test_write(int key, uint64_t which)
{
	struct partition_update update;
	struct mutation mutation = {.keyspace = "ks", .update_count = 1, .updates = &update};
	struct buffer scratch;
	struct store_write write = {.mutation = &mutation,
	    .is_durable = true,
	    .on_done = test_written,
	    .scratch = &scratch};

	buffer_init(&scratch);
	facts_update(&facts, which, &update);
	update.key = mutation.key = replica_key(key, &facts.arena);
	update.token = mutation.token = murmur3_token(update.key);
	store_apply(store, &write);
	buffer_fini(&scratch);
}

static struct read_command
test_command(int key, int c1, const uint64_t *wanted)
{
	struct read_command command = replica_command(facts.table, key, &arena);
	struct clustering_slice *slice = arena_alloc(&arena, sizeof(*slice));
	int values[2] = {c1, 0};

	slice->start = facts_position(&facts, BOUND_INCL_START, values, 2);
	slice->end = facts_position(&facts, BOUND_INCL_END, values, 2);
	command.clustering = (struct clustering_filter){
	    .is_names = true, .is_reversed = key % 2 == 0, .slice_count = 1, .slices = slice};
	command.wanted_regulars = wanted;
	/* Some tombstones may be forgotten, some cells have expired. */
	command.now_seconds = 998 + key % 6;
	if (key % 3 == 0)
		command.now_seconds += facts.table->options.gc_grace_seconds;
	return command;
}

static void
test_compare_row(struct replica *replica, const struct read_command *command)
{
	struct read_response_options options = {.wants_data = true, .wants_digest = true};
	struct read_response_stats ours, theirs;
	struct read_response response;
	struct partition_iterator *partitions;
	struct buffer out, got, expected;
	struct slice data;

	buffer_init(&out);
	buffer_init(&got);
	buffer_init(&expected);
	ck_assert_msg(
	    read_response_execute(store, command, &options, &arena, &out, &ours, &err) == 0, "%s",
	    err.text);
	data = replica_answer(replica, command, true, &arena, &theirs);
	ck_assert_int_eq(
	    read_response_decode(buffer_slice(&out), command, &arena, &response, &err), 0);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	replica_print(partitions, &got);
	ck_assert_int_eq(read_response_decode(data, command, &arena, &response, &err), 0);
	ck_assert_int_eq(read_response_partitions(&response, &arena, &partitions, &err), 0);
	replica_print(partitions, &expected);
	ck_assert_msg(slice_equal(buffer_slice(&got), buffer_slice(&expected)),
	    "got:\n%.*s\nexpected:\n%.*s", (int)got.size, (char *)got.data, (int)expected.size,
	    (char *)expected.data);
	ck_assert(read_digest_equal(&ours.digest, &theirs.digest));
	ck_assert_uint_eq(ours.rows, theirs.rows);
	buffer_fini(&out);
	buffer_fini(&got);
	buffer_fini(&expected);
}

START_TEST(test_one_row_of_many_sstables_is_what_all_of_them_say)
{
	struct table_store *table = store_table(store, facts.table);
	struct store_table_stats stats;
	uint64_t rounds[TEST_ROUNDS], asked[3] = {0};
	uint64_t simple = (UINT64_C(1) << facts.table->regular_simple_count) - 1, first = 1;

	for (int round = 0; round < TEST_ROUNDS; round++) {
		for (int key = 0; key < TEST_KEYS; key++) {
			test_generate(key, rounds);
			if (rounds[round] != 0)
				test_write(key, rounds[round]);
		}
		/* The last round stays in the memtable. */
		if (round + 1 < TEST_ROUNDS)
			ck_assert_int_eq(store_flush(store, table, &err), 0);
	}
	store_table_stats(store, table, &stats);
	ck_assert_uint_eq(stats.sstables, TEST_ROUNDS - 1);
	for (int key = 0; key < TEST_KEYS; key++) {
		struct random random = {(uint64_t)key};
		struct replica replica;

		test_generate(key, rounds);
		replica_init(&replica, facts.table);
		replica_apply_facts(&replica, &facts, UINT64_MAX, key, &random);
		for (int c1 = 0; c1 < TEST_C1; c1++) {
			/* With the map all are asked. */
			const uint64_t *wanted[] = {NULL, &simple, &first};

			for (int i = 0; i < 3; i++) {
				struct read_command command = test_command(key, c1, wanted[i]);

				histogram_clear((struct histogram *)stats.sstables_per_read);
				test_compare_row(&replica, &command);
				asked[i] += atomic_load(&stats.sstables_per_read->sum);
			}
		}
		replica_fini(&replica);
		arena_reset(&arena);
	}
	ck_assert_uint_lt(asked[1], asked[0] * 9 / 10);
	ck_assert_uint_lt(asked[2], asked[1]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("store_read");
	TCase *tcase = tcase_create("store_read");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_test(tcase, test_one_row_of_many_sstables_is_what_all_of_them_say);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
