/* SPDX-License-Identifier: Apache-2.0 */

/* SSTables on a disk that fails and loses power, and under many threads. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/env_sim.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/chunk_cache.h"
#include "storage/key_cache.h"
#include "tests/unit/storage/sstable_fixture.h"
#include "tests/unit/storage/sstable_model.h"

static const struct model_shape small = {12, 12, 30, true};

static int
write_all(const struct sstable_context *context, const struct model *model,
    const struct sstable_descriptor *descriptor, struct sstable **out, struct error *err)
{
	struct sstable_writer_options options = {
	    .descriptor = *descriptor,
	    .table = model->table,
	    .expected_keys = model->count,
	    .min_timestamp = model->min_timestamp,
	    .min_local_deletion_time = model->min_local_deletion_time,
	};
	struct sstable_writer *writer;
	struct arena arena;

	if (sstable_writer_new(context, &options, &writer, err) != 0)
		return -1;
	arena_init(&arena, 1 << 16);
	for (uint32_t i = 0; i < model->count; i++) {
		if (sstable_writer_append(
			writer, model_iterator(model, &model->partitions[i], &arena), err) != 0) {
			sstable_writer_abort(writer);
			arena_fini(&arena);
			return -1;
		}
	}
	arena_fini(&arena);
	return sstable_writer_finish(writer, out, err);
}

/* What finish() said is safe is there after a power cut, whole. */
START_TEST(test_finished_tables_survive_a_power_cut)
{
	struct env_sim *sim = env_sim_new((uint64_t)_i);
	struct sstable_context context = {.env = env_sim_env(sim)};
	struct sstable_descriptor descriptor = {"/data", {.generation = 9}};
	struct table_metadata *table = fixture_table(_i % 2 == 0 ? "tombs" : "stress_like");
	struct sstable *sstable = NULL;
	struct error err = {0};
	struct model model;

	model_init(&model, table, (uint64_t)_i, &small);
	ck_assert_int_eq(files_mkdir(context.env->files, "/data", &err), 0);
	ck_assert_msg(write_all(&context, &model, &descriptor, NULL, &err) == 0, "%s", err.text);
	env_sim_crash(sim);
	ck_assert_msg(
	    sstable_open(&context, &descriptor, table, &sstable, &err) == 0, "%s", err.text);
	ck_assert_msg(sstable_verify(sstable, true, NULL, &err) == 0, "%s", err.text);
	sstable_unref(sstable);
	model_fini(&model);
	table_unref(table);
	env_sim_free(sim);
}
END_TEST

/* Power is cut at each step of writing: a writer that did not say "done" leaves no TOC behind that
 * would make a broken table look whole. */
START_TEST(test_a_power_cut_while_writing_is_an_error)
{
	struct table_metadata *table = fixture_table("tombs");
	struct model model;
	bool is_done = false;

	model_init(&model, table, 4, &small);
	for (uint64_t step = 0; !is_done; step++) {
		struct env_sim *sim = env_sim_new(step);
		struct sstable_context context = {.env = env_sim_env(sim)};
		struct sstable_descriptor descriptor = {"/data", {.generation = 9}};
		struct sstable *sstable = NULL;
		struct error err = {0};

		ck_assert_int_eq(files_mkdir(context.env->files, "/data", &err), 0);
		env_sim_crash_after(sim, step);
		is_done = write_all(&context, &model, &descriptor, NULL, &err) == 0;
		env_sim_crash(sim);
		if (files_exists(context.env->files, "/data/nb-9-big-TOC.txt")) {
			ck_assert_msg(
			    sstable_open(&context, &descriptor, table, &sstable, &err) == 0 &&
				sstable_verify(sstable, true, NULL, &err) == 0,
			    "step %d: %s", (int)step, err.text);
			sstable_unref(sstable);
		}
		env_sim_free(sim);
		ck_assert_uint_lt(step, 500);
	}
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_a_full_disk_is_told_and_leaves_nothing)
{
	struct table_metadata *table = fixture_table("tombs");
	struct model model;

	model_init(&model, table, 4, &small);
	for (uint64_t skip = 0; skip < 30; skip++) {
		struct env_sim *sim = env_sim_new(1);
		struct sstable_context context = {.env = env_sim_env(sim)};
		struct sstable_descriptor descriptor = {"/data", {.generation = 9}};
		struct file_list list;
		struct error err = {0};

		ck_assert_int_eq(files_mkdir(context.env->files, "/data", &err), 0);
		env_sim_fail(sim, skip % 3 == 2 ? ENV_SIM_SYNC : ENV_SIM_WRITE, "", skip / 3, 1,
		    skip % 3 == 0 ? ENOSPC : EIO);
		if (write_all(&context, &model, &descriptor, NULL, &err) == 0) {
			ck_assert_uint_gt(skip, 10);
			env_sim_free(sim);
			continue;
		}
		ck_assert_int_eq(err.code, skip % 3 == 0 ? ERROR_NO_SPACE : ERROR_IO);
		ck_assert_int_eq(files_list(context.env->files, "/data", &list, &err), 0);
		ck_assert_uint_eq(list.count, 0);
		file_list_fini(&list);
		env_sim_free(sim);
	}
	model_fini(&model);
	table_unref(table);
}
END_TEST

START_TEST(test_a_read_error_is_told)
{
	struct table_metadata *table = fixture_table("tombs");
	struct env_sim *sim = env_sim_new(1);
	struct sstable_context context = {.env = env_sim_env(sim)};
	struct sstable_descriptor descriptor = {"/data", {.generation = 9}};
	struct error err = {0};
	struct model model;

	log_set_level("ROOT", LOG_OFF);
	model_init(&model, table, 4, &small);
	ck_assert_int_eq(files_mkdir(context.env->files, "/data", &err), 0);
	ck_assert_int_eq(write_all(&context, &model, &descriptor, NULL, &err), 0);
	for (uint64_t skip = 0; skip < 40; skip++) {
		struct sstable *sstable;

		ck_assert_int_eq(sstable_open(&context, &descriptor, table, &sstable, &err), 0);
		env_sim_fail(sim, ENV_SIM_READ, "", skip, 1, EIO);
		if (sstable_verify(sstable, true, NULL, &err) != 0)
			ck_assert_msg(err.code == ERROR_IO, "%d: %s", (int)skip, err.text);
		env_sim_fail(sim, ENV_SIM_READ, "", 0, 0, EIO);
		/* What failed once is tried again. */
		ck_assert_msg(sstable_verify(sstable, true, NULL, &err) == 0, "%s", err.text);
		sstable_unref(sstable);
	}
	model_fini(&model);
	table_unref(table);
	env_sim_free(sim);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------ */

enum { THREADS = 4, READS = 3000 };

struct reader_thread {
	pthread_t thread;
	const struct model *model;
	struct sstable *sstable;
	uint64_t seed;
	uint64_t rows;
};

static void *
reader_main(void *argument)
{
	struct reader_thread *self = argument;
	struct arena arena;

	arena_init(&arena, 1 << 14);
	for (uint32_t i = 0; i < READS; i++) {
		const struct model_partition *partition;
		struct read_command command = {.table = self->model->table};
		struct unfiltered_iterator *found;
		struct unfiltered item;
		struct error err = {0};

		self->seed = self->seed * 6364136223846793005u + 1442695040888963407u;
		partition = &self->model->partitions[(self->seed >> 33) % self->model->count];
		command.key = partition->key;
		command.token = partition->token;
		command.clustering.is_reversed = i % 2 == 1;
		if (sstable_read(self->sstable, &command, &arena, &found, &err) != 0 ||
		    found == NULL)
			ck_abort_msg("%s", err.text);
		while (unfiltered_iterator_next(found, &item, &err) > 0)
			self->rows += item.kind == UNFILTERED_ROW;
		unfiltered_iterator_close(found);
		arena_reset(&arena);
	}
	arena_fini(&arena);
	return NULL;
}

/* Caches too small for the table, the first load raced for, entries dropped meanwhile. */
START_TEST(test_many_threads_read_one_table)
{
	struct model_shape shape = {200, 30, 100, true};
	struct env_sim *sim = env_sim_new(1);
	struct sstable_context context = {.env = env_sim_env(sim),
	    .chunks = chunk_cache_new(64 * 8192),
	    .keys = key_cache_new(16384)};
	struct sstable_descriptor descriptor = {"/data", {.generation = 9}};
	struct table_metadata *table = fixture_table("plain_small_chunks");
	struct reader_thread threads[THREADS];
	struct chunk_cache_stats chunks;
	struct key_cache_stats keys;
	struct sstable *sstable;
	struct error err;
	struct model model;

	model_init(&model, table, 4, &shape);
	ck_assert_int_eq(files_mkdir(context.env->files, "/data", &err), 0);
	ck_assert_int_eq(write_all(&context, &model, &descriptor, &sstable, &err), 0);
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct reader_thread){
		    .model = &model, .sstable = sstable, .seed = (uint64_t)i * 7919};
		ck_assert_int_eq(
		    pthread_create(&threads[i].thread, NULL, reader_main, &threads[i]), 0);
	}
	for (int i = 0; i < 50; i++) {
		chunk_cache_clear(context.chunks);
		key_cache_clear(context.keys);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		ck_assert_uint_gt(threads[i].rows, 0);
	}
	chunk_cache_stats(context.chunks, &chunks);
	key_cache_stats(context.keys, &keys);
	ck_assert_uint_gt(chunks.hits, 0);
	ck_assert_uint_le(chunks.bytes, chunks.capacity);
	ck_assert_uint_gt(keys.hits, 0);
	ck_assert_uint_le(keys.bytes, keys.capacity);
	sstable_unref(sstable);
	chunk_cache_stats(context.chunks, &chunks);
	ck_assert_uint_eq(chunks.entries, 0);
	model_fini(&model);
	table_unref(table);
	chunk_cache_free(context.chunks);
	key_cache_free(context.keys);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_chunk_cache_keeps_what_is_used)
{
	struct chunk_cache *cache = chunk_cache_new(64 * 1024);
	struct chunk_cache_stats stats;
	struct chunk *pinned = chunk_cache_put(cache, chunk_new(1, 0, 100));
	struct chunk *found;

	memset(pinned->data, 7, 100);
	for (uint64_t i = 1; i < 10000; i++) {
		chunk_unref(chunk_cache_put(cache, chunk_new(1, i * 100, 100)));
		found = chunk_cache_get(cache, 1, i * 100);
		ck_assert_ptr_nonnull(found);
		chunk_unref(found);
	}
	chunk_cache_stats(cache, &stats);
	ck_assert_uint_le(stats.bytes, stats.capacity);
	ck_assert_uint_gt(stats.bytes, stats.capacity / 2);
	ck_assert_uint_gt(stats.evictions, 0);
	/* Evicted or not, who has a reference may go on reading. */
	ck_assert_int_eq(pinned->data[99], 7);
	chunk_unref(pinned);
	chunk_cache_drop_file(cache, 2);
	chunk_cache_stats(cache, &stats);
	ck_assert_uint_gt(stats.entries, 0);
	chunk_cache_drop_file(cache, 1);
	chunk_cache_stats(cache, &stats);
	ck_assert_uint_eq(stats.bytes, 0);
	chunk_cache_free(cache);
}
END_TEST

START_TEST(test_key_cache_tells_files_and_keys_apart)
{
	struct key_cache *cache = key_cache_new(1 << 20);
	struct index_entry entry = {.data_position = 5}, found;
	struct slice key = slice_of_string("key");

	key_cache_put(cache, 1, key, 99, &entry);
	ck_assert(key_cache_get(cache, 1, key, 99, &found));
	ck_assert_uint_eq(found.data_position, 5);
	ck_assert(!key_cache_get(cache, 2, key, 99, &found));
	ck_assert(!key_cache_get(cache, 1, slice_of_string("kez"), 99, &found));
	key_cache_clear(cache);
	ck_assert(!key_cache_get(cache, 1, key, 99, &found));
	key_cache_free(cache);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sstable_fault");
	TCase *tcase = tcase_create("fault");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, test_finished_tables_survive_a_power_cut, 0, 8);
	tcase_add_test(tcase, test_a_power_cut_while_writing_is_an_error);
	tcase_add_test(tcase, test_a_full_disk_is_told_and_leaves_nothing);
	tcase_add_test(tcase, test_a_read_error_is_told);
	tcase_add_test(tcase, test_many_threads_read_one_table);
	tcase_add_test(tcase, test_chunk_cache_keeps_what_is_used);
	tcase_add_test(tcase, test_key_cache_tells_files_and_keys_apart);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
