/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env_sim.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 200, SECTOR = 512 };

static struct env_sim *sim;
static struct files *files;
static struct error err;

static void
begin(uint64_t seed)
{
	sim = env_sim_new(seed);
	files = env_sim_env(sim)->files;
	ck_assert_int_eq(files_mkdir(files, "d", &err), 0);
}

static struct file *
opened(const char *path, unsigned flags)
{
	struct file *file;

	ck_assert_msg(files_open(files, path, flags, &file, &err) == 0, "%s", err.text);
	return file;
}

/* A file of `size` bytes of `fill`, its bytes and its name synced. */
static void
put_durably(const char *path, char fill, size_t size)
{
	struct file *file = opened(path, FILE_WRITE | FILE_CREATE);
	char *bytes = malloc(size);

	memset(bytes, fill, size);
	ck_assert_int_eq(file_write(file, bytes, size, &err), 0);
	ck_assert_int_eq(file_sync(file, &err), 0);
	ck_assert_int_eq(files_sync_parent(files, path, &err), 0);
	free(bytes);
	file_close(file);
}

static struct buffer
content(const char *path)
{
	struct buffer buffer;

	buffer_init(&buffer);
	ck_assert_msg(files_read_all(files, path, 1 << 20, &buffer, &err) == 0, "%s", err.text);
	return buffer;
}

START_TEST(test_what_was_synced_survives)
{
	begin((uint64_t)_i);
	put_durably("d/a", 'x', 3000);
	env_sim_crash(sim);
	for (int i = 0; i < 2; i++) {
		struct buffer buffer = content("d/a");

		ck_assert_uint_eq(buffer.size, 3000);
		for (size_t at = 0; at < buffer.size; at++)
			ck_assert_int_eq(buffer.data[at], 'x');
		buffer_fini(&buffer);
		env_sim_crash(sim);
	}
	env_sim_free(sim);
}
END_TEST

/* Over many seeds every fate is met: nothing, all, whole sectors of either, a torn one. */
START_TEST(test_what_was_not_synced_meets_every_fate)
{
	int none = 0, all = 0, mixed = 0, torn = 0, between = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		char bytes[4 * SECTOR];
		struct buffer buffer;
		struct file *file;
		size_t old = 0;
		bool is_torn = false;

		begin(seed);
		put_durably("d/a", 'o', sizeof(bytes) / 2);
		file = opened("d/a", FILE_WRITE);
		memset(bytes, 'n', sizeof(bytes));
		ck_assert_int_eq(file_pwrite(file, bytes, sizeof(bytes), 0, &err), 0);
		env_sim_crash(sim);
		buffer = content("d/a");
		ck_assert_uint_ge(buffer.size, sizeof(bytes) / 2);
		ck_assert_uint_le(buffer.size, sizeof(bytes));
		between += buffer.size > sizeof(bytes) / 2 && buffer.size < sizeof(bytes);
		for (size_t at = 0; at < buffer.size; at++) {
			uint8_t byte = buffer.data[at];

			ck_assert(byte == 'n' || byte == (at < sizeof(bytes) / 2 ? 'o' : 0));
			old += byte != 'n';
			if (at % SECTOR != 0 && (byte == 'n') != (buffer.data[at - 1] == 'n'))
				is_torn = true;
		}
		torn += is_torn;
		none += old == sizeof(bytes) / 2 && buffer.size == sizeof(bytes) / 2;
		all += old == 0 && buffer.size == sizeof(bytes);
		mixed += old != 0 && old != buffer.size;
		buffer_fini(&buffer);
		file_close(file);
		env_sim_free(sim);
	}
	ck_assert_int_gt(none, 0);
	ck_assert_int_gt(all, 0);
	ck_assert_int_gt(mixed, 0);
	ck_assert_int_gt(torn, 0);
	ck_assert_int_gt(between, 0);
}
END_TEST

START_TEST(test_same_seed_same_fate)
{
	struct buffer first = {0};

	for (int i = 0; i < 2; i++) {
		struct buffer buffer;
		struct file *file;

		begin(4711);
		put_durably("d/a", 'o', 5000);
		file = opened("d/a", FILE_WRITE);
		for (int n = 0; n < 100; n++)
			ck_assert_int_eq(file_write(file, "0123456789", 10, &err), 0);
		env_sim_crash(sim);
		file_close(file);
		buffer = content("d/a");
		if (i == 0)
			first = buffer;
		else
			ck_assert(slice_equal(buffer_slice(&first), buffer_slice(&buffer)));
		if (i == 1)
			buffer_fini(&buffer);
		env_sim_free(sim);
	}
	buffer_fini(&first);
}
END_TEST

START_TEST(test_a_name_that_was_not_synced_may_go)
{
	int kept = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct file *file;

		begin(seed);
		file = opened("d/a", FILE_WRITE | FILE_CREATE);
		ck_assert_int_eq(file_write(file, "x", 1, &err), 0);
		ck_assert_int_eq(file_sync(file, &err), 0);
		file_close(file);
		env_sim_crash(sim);
		kept += files_exists(files, "d/a");
		env_sim_free(sim);
	}
	ck_assert_int_gt(kept, 0);
	ck_assert_int_lt(kept, SEEDS);
}
END_TEST

/* After rename without sync there is the old name or the new one, never both or none. */
START_TEST(test_rename_is_atomic)
{
	int renamed = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct buffer buffer;

		begin(seed);
		put_durably("d/a", 'a', 10);
		put_durably("d/b", 'b', 10);
		ck_assert_int_eq(files_rename(files, "d/a", "d/b", &err), 0);
		env_sim_crash(sim);
		buffer = content("d/b");
		ck_assert_int_eq(buffer.data[0], files_exists(files, "d/a") ? 'b' : 'a');
		renamed += buffer.data[0] == 'a';
		buffer_fini(&buffer);
		env_sim_free(sim);
	}
	ck_assert_int_gt(renamed, 0);
	ck_assert_int_lt(renamed, SEEDS);
}
END_TEST

START_TEST(test_changes_of_names_survive_in_order)
{
	static const char *const names[] = {"d/1", "d/2", "d/3", "d/4"};
	int counts[5] = {0};

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		int there = 0;

		begin(seed);
		for (int i = 0; i < 4; i++)
			file_close(opened(names[i], FILE_WRITE | FILE_CREATE));
		env_sim_crash(sim);
		while (there < 4 && files_exists(files, names[there]))
			there++;
		for (int i = there; i < 4; i++)
			ck_assert(!files_exists(files, names[i]));
		counts[there]++;
		env_sim_free(sim);
	}
	for (int i = 0; i < 5; i++)
		ck_assert_int_gt(counts[i], 0);
}
END_TEST

START_TEST(test_a_removed_file_comes_back_unless_the_folder_was_synced)
{
	int back = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		begin(seed);
		put_durably("d/a", 'a', 10);
		ck_assert_int_eq(files_unlink(files, "d/a", &err), 0);
		if (seed % 2 == 0)
			ck_assert_int_eq(files_sync_folder(files, "d", &err), 0);
		env_sim_crash(sim);
		if (seed % 2 == 0)
			ck_assert(!files_exists(files, "d/a"));
		back += files_exists(files, "d/a");
		env_sim_free(sim);
	}
	ck_assert_int_gt(back, 0);
}
END_TEST

START_TEST(test_files_of_before_the_crash_are_dead)
{
	struct file *file;
	uint64_t size;
	size_t got;
	char byte;

	begin(1);
	put_durably("d/a", 'a', 10);
	file = opened("d/a", FILE_READ | FILE_WRITE);
	env_sim_crash(sim);
	ck_assert_int_eq(file_write(file, "x", 1, &err), -1);
	ck_assert_int_eq(err.sys_errno, EIO);
	ck_assert_int_eq(file_pread(file, &byte, 1, 0, &got, &err), -1);
	ck_assert_int_eq(file_sync(file, &err), -1);
	ck_assert_int_eq(file_truncate(file, 0, &err), -1);
	ck_assert_int_eq(file_size(file, &size, &err), -1);
	file_close(file);
	file = opened("d/a", FILE_READ);
	ck_assert_int_eq(file_size(file, &size, &err), 0);
	ck_assert_uint_eq(size, 10);
	file_close(file);
	env_sim_free(sim);
}
END_TEST

/* files_replace() crashed at each of its steps leaves the old content or the new, whole. */
START_TEST(test_replace_is_whole_at_every_crash_point)
{
	int olds = 0, news = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		for (uint64_t count = 0;; count++) {
			struct buffer buffer;
			int rc;

			begin(seed);
			put_durably("d/a", 'o', 3000);
			env_sim_crash_after(sim, count);
			rc = files_replace(files, "d/a", slice_of_string("new content"), &err);
			ck_assert_int_eq(rc == 0, !env_sim_is_down(sim));
			env_sim_crash(sim);
			buffer = content("d/a");
			if (slice_equal_string(buffer_slice(&buffer), "new content")) {
				news++;
			} else {
				ck_assert_int_ne(rc, 0);
				ck_assert_uint_eq(buffer.size, 3000);
				ck_assert_int_eq(buffer.data[2999], 'o');
				olds++;
			}
			buffer_fini(&buffer);
			env_sim_free(sim);
			if (rc == 0)
				break;
		}
	}
	ck_assert_int_gt(olds, 0);
	ck_assert_int_gt(news, 40);
}
END_TEST

START_TEST(test_faults_hit_the_call_and_path_that_were_named)
{
	struct file *a, *b;

	begin(1);
	a = opened("d/commitlog-1", FILE_WRITE | FILE_CREATE);
	b = opened("d/data-1", FILE_WRITE | FILE_CREATE);
	env_sim_fail(sim, ENV_SIM_SYNC, "commitlog", 1, 1, EIO);
	ck_assert_int_eq(file_sync(b, &err), 0);
	ck_assert_int_eq(file_sync(a, &err), 0);
	ck_assert_int_eq(file_sync(b, &err), 0);
	ck_assert_int_eq(file_sync(a, &err), -1);
	ck_assert_int_eq(err.code, ERROR_IO);
	ck_assert_int_eq(err.sys_errno, EIO);
	ck_assert_ptr_nonnull(strstr(err.text, "d/commitlog-1"));
	ck_assert_int_eq(file_sync(a, &err), 0);
	env_sim_fail(sim, ENV_SIM_WRITE, "", 0, 1, ENOSPC);
	ck_assert_int_eq(file_write(b, "x", 1, &err), -1);
	ck_assert_int_eq(err.code, ERROR_NO_SPACE);
	ck_assert_int_eq(file_write(b, "x", 1, &err), 0);
	env_sim_fail(sim, ENV_SIM_NAME, "", 0, UINT64_MAX, EROFS);
	ck_assert_int_eq(files_rename(files, "d/data-1", "d/x", &err), -1);
	ck_assert_int_eq(files_unlink(files, "d/data-1", &err), -1);
	file_close(a);
	file_close(b);
	env_sim_free(sim);
}
END_TEST

/* As Linux does: the pages that could not be written are dropped, and a second sync says nothing. */
START_TEST(test_bytes_of_a_failed_sync_are_lost_for_good)
{
	struct buffer buffer;
	struct file *file;

	begin(3);
	put_durably("d/a", 'o', 1000);
	file = opened("d/a", FILE_WRITE);
	ck_assert_int_eq(file_pwrite(file, "nnnn", 4, 0, &err), 0);
	env_sim_fail(sim, ENV_SIM_SYNC, "d/a", 0, 1, EIO);
	ck_assert_int_eq(file_sync(file, &err), -1);
	ck_assert_int_eq(file_sync(file, &err), 0);
	file_close(file);
	env_sim_crash(sim);
	buffer = content("d/a");
	ck_assert_int_eq(memcmp(buffer.data, "oooo", 4), 0);
	buffer_fini(&buffer);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_a_full_disk_takes_what_fits_and_frees_what_goes)
{
	uint64_t free_bytes, total;
	struct file_stat stat;
	struct file *file;
	char bytes[800];

	begin(1);
	memset(bytes, 'x', sizeof(bytes));
	env_sim_set_space(sim, 1000);
	file = opened("d/a", FILE_WRITE | FILE_CREATE);
	ck_assert_int_eq(file_write(file, bytes, sizeof(bytes), &err), 0);
	ck_assert_int_eq(file_write(file, bytes, sizeof(bytes), &err), -1);
	ck_assert_int_eq(err.code, ERROR_NO_SPACE);
	ck_assert_int_eq(files_stat(files, "d/a", &stat, &err), 0);
	ck_assert_uint_eq(stat.size, 1000);
	ck_assert_int_eq(file_pwrite(file, bytes, sizeof(bytes), 0, &err), 0);
	file_close(file);
	ck_assert_int_eq(files_unlink(files, "d/a", &err), 0);
	ck_assert_int_eq(files_sync_folder(files, "d", &err), 0);
	ck_assert_int_eq(files_space(files, "d", &free_bytes, &total, &err), 0);
	ck_assert_uint_eq(free_bytes, 1000);
	ck_assert_uint_eq(total, 1000);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_flipped_bit_is_seen_and_stays)
{
	struct buffer buffer;

	begin(1);
	put_durably("d/a", 0, 100);
	ck_assert_int_eq(env_sim_flip_bit(sim, "d/a", 42, 3), 0);
	ck_assert_int_eq(env_sim_flip_bit(sim, "d/a", 100, 3), -1);
	ck_assert_int_eq(env_sim_flip_bit(sim, "d/b", 0, 3), -1);
	env_sim_crash(sim);
	buffer = content("d/a");
	ck_assert_int_eq(buffer.data[42], 8);
	ck_assert_int_eq(buffer.data[41], 0);
	buffer_fini(&buffer);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_clock_stands_until_it_is_moved)
{
	struct env *env;
	int64_t wall;
	uint64_t monotonic;

	begin(1);
	env = env_sim_env(sim);
	wall = env_wall_us(env);
	monotonic = env_monotonic_ns(env);
	ck_assert_int_eq(wall, 1767225600000000);
	ck_assert_int_eq(env_wall_us(env), wall);
	for (int i = 0; i < 1000; i++)
		env_sim_advance(sim, 1500);
	ck_assert_int_eq(env_wall_us(env), wall + 1500);
	ck_assert_uint_eq(env_monotonic_ns(env), monotonic + 1500000);
	env_sim_step_wall(sim, -5000000);
	ck_assert_int_eq(env_wall_us(env), wall + 1500 - 5000000);
	ck_assert_uint_eq(env_monotonic_ns(env), monotonic + 1500000);
	env_sim_free(sim);
}
END_TEST

START_TEST(test_links_share_one_fate)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct buffer a, b;
		struct file_stat stat;

		begin(seed);
		put_durably("d/a", 'a', 2000);
		ck_assert_int_eq(files_link(files, "d/a", "d/b", &err), 0);
		ck_assert_int_eq(files_sync_folder(files, "d", &err), 0);
		put_durably("d/a", 'b', 2000);
		env_sim_crash(sim);
		a = content("d/a");
		b = content("d/b");
		ck_assert(slice_equal(buffer_slice(&a), buffer_slice(&b)));
		ck_assert_uint_eq(a.size, 4000);
		ck_assert_int_eq(files_stat(files, "d/a", &stat, &err), 0);
		ck_assert_uint_eq(stat.links, 2);
		buffer_fini(&a);
		buffer_fini(&b);
		env_sim_free(sim);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("env_sim");
	TCase *tcase = tcase_create("env_sim");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, test_what_was_synced_survives, 0, 5);
	tcase_add_test(tcase, test_what_was_not_synced_meets_every_fate);
	tcase_add_test(tcase, test_same_seed_same_fate);
	tcase_add_test(tcase, test_a_name_that_was_not_synced_may_go);
	tcase_add_test(tcase, test_rename_is_atomic);
	tcase_add_test(tcase, test_changes_of_names_survive_in_order);
	tcase_add_test(tcase, test_a_removed_file_comes_back_unless_the_folder_was_synced);
	tcase_add_test(tcase, test_files_of_before_the_crash_are_dead);
	tcase_add_test(tcase, test_replace_is_whole_at_every_crash_point);
	tcase_add_test(tcase, test_faults_hit_the_call_and_path_that_were_named);
	tcase_add_test(tcase, test_bytes_of_a_failed_sync_are_lost_for_good);
	tcase_add_test(tcase, test_a_full_disk_takes_what_fits_and_frees_what_goes);
	tcase_add_test(tcase, test_flipped_bit_is_seen_and_stays);
	tcase_add_test(tcase, test_clock_stands_until_it_is_moved);
	tcase_add_test(tcase, test_links_share_one_fate);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
