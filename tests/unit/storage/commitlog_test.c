/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/env_sim.h"
#include "storage/commitlog.h"

/* A log in a directory of its own, with small segments. */
struct fixture {
	struct env *env;
	struct op_order order;
	struct store_options options;
	struct commitlog *log;
	char directory[64];
};

static void
fixture_open(struct fixture *fixture)
{
	struct error err;

	ck_assert_msg(commitlog_open(&fixture->options, fixture->env, &fixture->order,
			  &fixture->log, &err) == 0,
	    "%s", err.text);
}

static void
fixture_init(struct fixture *fixture, enum commitlog_sync sync)
{
	fixture->env = env_posix_new();
	op_order_init(&fixture->order, 45);
	store_options_defaults(&fixture->options);
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/commitlog_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fixture->directory));
	fixture->options.commitlog_directory = fixture->directory;
	fixture->options.commitlog_sync = sync;
	fixture->options.commitlog_segment_bytes = 64 << 10;
	fixture->options.commitlog_sync_group_window_ms = 10;
	fixture->options.max_mutation_bytes = 32 << 10;
	fixture_open(fixture);
}

static void
fixture_fini(struct fixture *fixture)
{
	commitlog_close(fixture->log);
	files_remove_tree(fixture->env->files, fixture->directory, NULL);
	op_order_fini(&fixture->order);
	env_free(fixture->env);
}

static int
fixture_add(struct fixture *fixture, uint64_t number, size_t size, uint32_t slot,
    struct commitlog_position *position, struct error *err)
{
	uint8_t *record = xmalloc(size);
	unsigned ticket;
	int rc;

	memset(record, (int)(number * 7 + 1), size);
	store_u64(record, number);
	ticket = op_order_start(&fixture->order);
	rc = commitlog_add(fixture->log, slice_of(record, size), &slot, 1, position, err);
	op_order_end(&fixture->order, ticket);
	free(record);
	return rc;
}

/* Numbers seen in a replay. */
struct seen {
	bool numbers[4096];
	size_t count;
};

static int
seen_record(
    void *context, struct slice record, struct commitlog_position position, struct error *err)
{
	struct seen *seen = context;
	uint64_t number = load_u64(record.data);

	(void)position;
	(void)err;
	ck_assert_uint_lt(number, 4096);
	for (size_t i = 8; i < record.size; i++)
		ck_assert_uint_eq(record.data[i], (uint8_t)(number * 7 + 1));
	seen->numbers[number] = true;
	seen->count++;
	return 1;
}

/*
 * What a new process finds when the old one was killed now: the log is opened a second time on a copy
 * of the directory.
 */
static void
fixture_copy_as_killed(struct fixture *fixture, struct fixture *copy)
{
	char command[256];

	*copy = (struct fixture){.env = fixture->env, .options = fixture->options};
	op_order_init(&copy->order, 45);
	snprintf(copy->directory, sizeof(copy->directory), "/tmp/commitlog_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(copy->directory));
	/* A spare may get its next name meanwhile; it holds nothing. */
	snprintf(command, sizeof(command), "cp %s/*.log %s/ 2>/dev/null; true", fixture->directory,
	    copy->directory);
	ck_assert_int_eq(system(command), 0);
	copy->options.commitlog_directory = copy->directory;
	fixture_open(copy);
}

static void
fixture_drop_copy(struct fixture *copy)
{
	commitlog_close(copy->log);
	files_remove_tree(copy->env->files, copy->directory, NULL);
	op_order_fini(&copy->order);
}

START_TEST(test_every_record_survives_the_death_of_the_process)
{
	struct fixture fixture, copy;
	struct commitlog_position position, last = {0, 0};
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (uint64_t i = 0; i < 2000; i++) {
		ck_assert_int_eq(
		    fixture_add(&fixture, i, 8 + i % 300, (uint32_t)(i % 5), &position, &err), 0);
		ck_assert_int_gt(commitlog_position_compare(position, last), 0);
		last = position;
	}
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_msg(commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(seen->count, 2000);
	ck_assert_int_eq(commitlog_replayed(copy.log, &err), 0);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

struct waiting {
	struct commitlog_waiter waiter;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int answers;
	bool has_failed;
};

static void
waiting_synced(struct commitlog_waiter *waiter, const struct error *err)
{
	struct waiting *waiting = (struct waiting *)waiter;

	pthread_mutex_lock(&waiting->mutex);
	waiting->answers++;
	waiting->has_failed = err != NULL;
	pthread_cond_signal(&waiting->cond);
	pthread_mutex_unlock(&waiting->mutex);
}

static void
waiting_wait(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->mutex);
	while (waiting->answers == 0)
		pthread_cond_wait(&waiting->cond, &waiting->mutex);
	pthread_mutex_unlock(&waiting->mutex);
}

START_TEST(test_batch_and_group_answer_after_the_sync)
{
	struct fixture fixture;
	struct error err;

	fixture_init(&fixture, _i == 0 ? COMMITLOG_SYNC_BATCH : COMMITLOG_SYNC_GROUP);
	for (uint64_t i = 0; i < 50; i++) {
		struct waiting waiting = {
		    .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

		ck_assert_int_eq(
		    fixture_add(&fixture, i, 100, 0, &waiting.waiter.position, &err), 0);
		waiting.waiter.on_synced = waiting_synced;
		ck_assert(!commitlog_acknowledge(fixture.log, &waiting.waiter));
		waiting_wait(&waiting);
		ck_assert_int_eq(waiting.answers, 1);
		ck_assert(!waiting.has_failed);
	}
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_periodic_answers_at_once)
{
	struct fixture fixture;
	struct waiting waiting = {.waiter.on_synced = waiting_synced};
	struct error err;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	ck_assert_int_eq(fixture_add(&fixture, 1, 100, 0, &waiting.waiter.position, &err), 0);
	ck_assert(commitlog_acknowledge(fixture.log, &waiting.waiter));
	fixture_fini(&fixture);
}
END_TEST

static size_t
count_segments(struct fixture *fixture)
{
	struct commitlog_stats stats;

	commitlog_stats(fixture->log, &stats);
	return stats.segments;
}

START_TEST(test_segments_go_when_every_table_is_clean)
{
	struct fixture fixture;
	struct commitlog_position position;
	struct error err;
	int patience = 6000;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (uint64_t i = 0; i < 1000; i++)
		ck_assert_int_eq(
		    fixture_add(&fixture, i, 1000, (uint32_t)(i % 2), &position, &err), 0);
	ck_assert_uint_gt(count_segments(&fixture), 10);
	commitlog_discard(fixture.log, 0, position);
	usleep(50000);
	ck_assert_uint_gt(count_segments(&fixture), 10);
	commitlog_discard(fixture.log, 1, position);
	while (count_segments(&fixture) > 1 && patience-- > 0)
		usleep(10000);
	ck_assert_uint_eq(count_segments(&fixture), 1);
	fixture_fini(&fixture);
}
END_TEST

START_TEST(test_a_record_over_the_limit_is_refused)
{
	struct fixture fixture;
	struct commitlog_position position;
	struct error err;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	ck_assert_int_eq(
	    fixture_add(&fixture, 1, fixture.options.max_mutation_bytes + 1, 0, &position, &err),
	    -1);
	ck_assert_int_eq(err.code, ERROR_INVALID);
	ck_assert_int_eq(
	    fixture_add(&fixture, 1, fixture.options.max_mutation_bytes, 0, &position, &err), 0);
	fixture_fini(&fixture);
}
END_TEST

/* The one segment file that holds records. */
static void
segment_file_path(struct fixture *fixture, char *path, size_t size)
{
	struct file_list list;
	struct error err;

	ck_assert_int_eq(files_list(fixture->env->files, fixture->directory, &list, &err), 0);
	ck_assert_uint_gt(list.count, 0);
	snprintf(path, size, "%s/%s", fixture->directory, list.entries[0].name);
	file_list_fini(&list);
}

static void
damage(const char *path, long offset)
{
	FILE *file = fopen(path, "r+b");
	int byte;

	ck_assert_ptr_nonnull(file);
	fseek(file, offset, SEEK_SET);
	byte = fgetc(file);
	fseek(file, offset, SEEK_SET);
	fputc(byte ^ 0x40, file);
	fclose(file);
}

/* Records of 100 bytes take 112 bytes each, from offset 40. */
START_TEST(test_damage_below_what_was_synced_is_refused_and_can_be_overridden)
{
	struct fixture fixture, copy;
	struct commitlog_position position;
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;
	char path[128];

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_int_eq(fixture_add(&fixture, i, 100, 0, &position, &err), 0);
	ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	segment_file_path(&fixture, path, sizeof(path));
	/* _i 0: in a payload, 1: in a record's header. */
	damage(path, 40 + 3 * 112 + (_i == 0 ? 50 : 2));
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_int_eq(commitlog_replay(copy.log, seen_record, seen, &err), -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
	ck_assert_ptr_nonnull(strstr(err.text, "offset 376"));
	fixture_drop_copy(&copy);

	memset(seen, 0, sizeof(*seen));
	fixture.options.commitlog_ignore_replay_errors = true;
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_int_eq(commitlog_replay(copy.log, seen_record, seen, &err), 0);
	ck_assert_uint_eq(seen->count, 9);
	ck_assert(!seen->numbers[3]);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

START_TEST(test_a_hole_beyond_what_was_synced_costs_only_itself)
{
	struct fixture fixture, copy;
	struct commitlog_position position;
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;
	char path[128];

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_int_eq(fixture_add(&fixture, i, 100, 0, &position, &err), 0);
	segment_file_path(&fixture, path, sizeof(path));
	damage(path, 40 + 3 * 112 + 2);
	damage(path, 40 + 5 * 112 + 60);
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_msg(commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(seen->count, 8);
	ck_assert(!seen->numbers[3] && !seen->numbers[5] && seen->numbers[9]);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

START_TEST(test_a_log_of_cassandra_is_named_and_refused)
{
	struct fixture fixture;
	struct error err;
	struct seen *seen = xzalloc(sizeof(*seen));
	char path[128];
	FILE *file;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	commitlog_close(fixture.log);
	snprintf(path, sizeof(path), "%s/CommitLog-7-1700000000000.log", fixture.directory);
	file = fopen(path, "w");
	fputs("x", file);
	fclose(file);
	fixture_open(&fixture);
	ck_assert_int_eq(commitlog_replay(fixture.log, seen_record, seen, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "nodetool drain"));
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

struct writer {
	struct fixture *fixture;
	uint64_t first;
};

static void *
writer_run(void *argument)
{
	struct writer *writer = argument;
	struct commitlog_position last = {0, 0};

	for (uint64_t i = 0; i < 1000; i++) {
		struct commitlog_position position;
		struct error err;

		ck_assert_int_eq(fixture_add(writer->fixture, writer->first + i, 8 + i % 500,
				     (uint32_t)(i % 3), &position, &err),
		    0);
		/* Segments come into use in the order of their ids. */
		ck_assert_int_gt(commitlog_position_compare(position, last), 0);
		last = position;
		if (i % 100 == 0)
			ck_assert_int_eq(commitlog_sync(writer->fixture->log, &err), 0);
	}
	return NULL;
}

START_TEST(test_many_writers_and_syncs_lose_nothing)
{
	struct fixture fixture, copy;
	struct writer writers[4];
	pthread_t threads[4];
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (int i = 0; i < 4; i++) {
		writers[i] = (struct writer){&fixture, (uint64_t)i * 1000};
		pthread_create(&threads[i], NULL, writer_run, &writers[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_msg(commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(seen->count, 4000);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

START_TEST(test_a_segment_that_was_emptied_for_reuse_is_passed_over)
{
	struct fixture fixture, copy;
	struct commitlog_position position;
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;
	int patience = 1000;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	for (uint64_t i = 0; i < 300; i++)
		ck_assert_int_eq(fixture_add(&fixture, i, 1000, 0, &position, &err), 0);
	commitlog_discard(fixture.log, 0, position);
	/* The log's thread empties the segments in its own time. Then what counts is in the active one. */
	do {
		usleep(10000);
		memset(seen, 0, sizeof(*seen));
		fixture_copy_as_killed(&fixture, &copy);
		ck_assert_msg(
		    commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
		fixture_drop_copy(&copy);
	} while (seen->count >= 100 && patience-- > 0);
	ck_assert_uint_lt(seen->count, 100);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

START_TEST(test_slots_beyond_a_segments_capacity_open_a_new_one)
{
	struct fixture fixture;
	struct commitlog_position position;
	struct error err;

	fixture_init(&fixture, COMMITLOG_SYNC_PERIODIC);
	ck_assert_int_eq(fixture_add(&fixture, 1, 100, 5000, &position, &err), 0);
	ck_assert_int_eq(fixture_add(&fixture, 2, 100, 0, &position, &err), 0);
	fixture_fini(&fixture);
}
END_TEST

static void
count_failure(void *context, const struct error *err)
{
	(void)err;
	atomic_fetch_add((atomic_int *)context, 1);
}

/* _i 0: commit_failure_policy ignore. */
START_TEST(test_after_a_failed_sync_the_log_takes_nothing_unless_it_ignores_that)
{
	struct env_sim *sim = env_sim_new(7);
	struct fixture fixture = {.env = env_sim_env(sim)};
	struct commitlog_position position;
	atomic_int told = 0;
	struct error err;

	op_order_init(&fixture.order, 45);
	store_options_defaults(&fixture.options);
	fixture.options.commitlog_directory = "/log";
	fixture.options.commitlog_sync = COMMITLOG_SYNC_PERIODIC;
	fixture.options.commitlog_segment_bytes = 64 << 10;
	fixture.options.commitlog_ignores_failures = _i == 0;
	fixture_open(&fixture);
	commitlog_on_failure(fixture.log, count_failure, &told);
	ck_assert_int_eq(fixture_add(&fixture, 1, 100, 0, &position, &err), 0);
	env_sim_fail(sim, ENV_SIM_SYNC, "CommitLog", 0, 1, 5);
	ck_assert_int_eq(commitlog_sync(fixture.log, &err), -1);
	ck_assert_int_eq(atomic_load(&told), 1);
	if (_i == 0) {
		ck_assert_int_eq(fixture_add(&fixture, 2, 100, 0, &position, &err), 0);
		ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	} else {
		ck_assert_int_eq(fixture_add(&fixture, 2, 100, 0, &position, &err), -1);
		ck_assert_ptr_nonnull(strstr(err.text, "takes no writes until it is restarted"));
		ck_assert_int_eq(commitlog_sync(fixture.log, &err), -1);
	}
	commitlog_close(fixture.log);
	op_order_fini(&fixture.order);
	env_free(fixture.env);
}
END_TEST

static const char *const compressors[] = {
    "LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"};

static void
compressed_fixture_init(struct fixture *fixture, const char *compressor)
{
	fixture_init(fixture, COMMITLOG_SYNC_PERIODIC);
	commitlog_close(fixture->log);
	fixture->options.commitlog_compressor = compressor;
	fixture_open(fixture);
}

START_TEST(test_compressed_segments_are_replayed_and_take_less)
{
	struct fixture fixture, copy;
	struct commitlog_position position, last = {0, 0};
	struct seen *seen = xzalloc(sizeof(*seen));
	struct commitlog_stats stats;
	struct error err;

	compressed_fixture_init(&fixture, compressors[_i]);
	for (uint64_t i = 0; i < 2000; i++) {
		ck_assert_int_eq(
		    fixture_add(&fixture, i, 8 + i % 300, (uint32_t)(i % 5), &position, &err), 0);
		ck_assert_int_gt(commitlog_position_compare(position, last), 0);
		last = position;
		if (i % 37 == 0)
			ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	}
	ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	commitlog_stats(fixture.log, &stats);
	/* Full ones count what they take, the active one what it may take. */
	ck_assert_uint_lt(stats.total_bytes, (stats.segments / 2 + 1) * (64 << 10));
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_msg(commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(seen->count, 2000);
	ck_assert_int_eq(commitlog_replayed(copy.log, &err), 0);
	fixture_drop_copy(&copy);
	/* A node that does not compress any more reads them as well. */
	fixture.options.commitlog_compressor = NULL;
	memset(seen, 0, sizeof(*seen));
	fixture_copy_as_killed(&fixture, &copy);
	ck_assert_int_eq(commitlog_replay(copy.log, seen_record, seen, &err), 0);
	ck_assert_uint_eq(seen->count, 2000);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

/* The one with sections in it. */
static void
compressed_file_path(struct fixture *fixture, char *path, size_t size)
{
	struct file_list list;
	bool is_found = false;
	struct error err;

	ck_assert_int_eq(files_list(fixture->env->files, fixture->directory, &list, &err), 0);
	for (size_t i = 0; i < list.count && !is_found; i++) {
		struct file_stat stat;

		snprintf(path, size, "%s/%s", fixture->directory, list.entries[i].name);
		ck_assert_int_eq(files_stat(fixture->env->files, path, &stat, &err), 0);
		is_found = stat.size > 40 && stat.size < 32 << 10;
	}
	ck_assert(is_found);
	file_list_fini(&list);
}

/* _i 0: in what was durable, 1: in what may have been torn. */
START_TEST(test_a_damaged_section_is_refused_or_a_torn_tail)
{
	struct fixture fixture, copy;
	struct commitlog_position position;
	struct seen *seen = xzalloc(sizeof(*seen));
	struct error err;
	char path[128];

	compressed_fixture_init(&fixture, "LZ4Compressor");
	for (uint64_t i = 0; i < 30; i++) {
		ck_assert_int_eq(fixture_add(&fixture, i, 100, 0, &position, &err), 0);
		if (i % 10 == 9)
			ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	}
	compressed_file_path(&fixture, path, sizeof(path));
	if (_i == 1)
		damage(path, 30); /* what was durable is not known then */
	damage(path, 40 + 24 + 5); /* in the first section */
	fixture_copy_as_killed(&fixture, &copy);
	if (_i == 0) {
		ck_assert_int_eq(commitlog_replay(copy.log, seen_record, seen, &err), -1);
		ck_assert_int_eq(err.code, ERROR_CORRUPT);
		ck_assert_ptr_nonnull(strstr(err.text, "section at offset 40 "));
		copy.options.commitlog_ignore_replay_errors = true;
		fixture_drop_copy(&copy);
		fixture.options.commitlog_ignore_replay_errors = true;
		fixture_copy_as_killed(&fixture, &copy);
	}
	ck_assert_msg(commitlog_replay(copy.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(seen->count, 0);
	fixture_drop_copy(&copy);
	fixture_fini(&fixture);
	free(seen);
}
END_TEST

START_TEST(test_a_sync_of_a_compressed_segment_that_failed_is_done_again)
{
	struct env_sim *sim = env_sim_new(7);
	struct fixture fixture = {.env = env_sim_env(sim)};
	struct seen *seen = xzalloc(sizeof(*seen));
	struct commitlog_position position;
	struct error err;

	op_order_init(&fixture.order, 45);
	store_options_defaults(&fixture.options);
	fixture.options.commitlog_directory = "/log";
	fixture.options.commitlog_segment_bytes = 64 << 10;
	fixture.options.commitlog_ignores_failures = true;
	fixture.options.commitlog_compressor = "LZ4Compressor";
	fixture_open(&fixture);
	ck_assert_int_eq(fixture_add(&fixture, 1, 100, 0, &position, &err), 0);
	env_sim_fail(sim, ENV_SIM_SYNC, "CommitLog", 0, 1, 5);
	ck_assert_int_eq(commitlog_sync(fixture.log, &err), -1);
	ck_assert_int_eq(fixture_add(&fixture, 2, 100, 0, &position, &err), 0);
	ck_assert_int_eq(commitlog_sync(fixture.log, &err), 0);
	commitlog_close(fixture.log);
	fixture_open(&fixture);
	ck_assert_msg(commitlog_replay(fixture.log, seen_record, seen, &err) == 0, "%s", err.text);
	ck_assert(seen->numbers[1] && seen->numbers[2]);
	commitlog_close(fixture.log);
	op_order_fini(&fixture.order);
	env_free(fixture.env);
	free(seen);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("commitlog");
	TCase *tcase = tcase_create("commitlog");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_every_record_survives_the_death_of_the_process);
	tcase_add_loop_test(tcase, test_batch_and_group_answer_after_the_sync, 0, 2);
	tcase_add_test(tcase, test_periodic_answers_at_once);
	tcase_add_test(tcase, test_segments_go_when_every_table_is_clean);
	tcase_add_test(tcase, test_a_record_over_the_limit_is_refused);
	tcase_add_loop_test(
	    tcase, test_damage_below_what_was_synced_is_refused_and_can_be_overridden, 0, 2);
	tcase_add_test(tcase, test_a_hole_beyond_what_was_synced_costs_only_itself);
	tcase_add_test(tcase, test_a_log_of_cassandra_is_named_and_refused);
	tcase_add_test(tcase, test_many_writers_and_syncs_lose_nothing);
	tcase_add_test(tcase, test_a_segment_that_was_emptied_for_reuse_is_passed_over);
	tcase_add_test(tcase, test_slots_beyond_a_segments_capacity_open_a_new_one);
	tcase_add_loop_test(
	    tcase, test_after_a_failed_sync_the_log_takes_nothing_unless_it_ignores_that, 0, 2);
	tcase_add_loop_test(tcase, test_compressed_segments_are_replayed_and_take_less, 0, 4);
	tcase_add_loop_test(tcase, test_a_damaged_section_is_refused_or_a_torn_tail, 0, 2);
	tcase_add_test(tcase, test_a_sync_of_a_compressed_segment_that_failed_is_done_again);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
