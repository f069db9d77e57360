/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/env_sim.h"

/* What files promise, tried on the real disk (loop 0) and on the simulated one (loop 1). */
static char folder[64];
static struct env_sim *sim;
static struct env *env;
static struct files *files;
static struct error err;

static void
setup(void)
{
	sim = env_sim_new(1);
	snprintf(folder, sizeof(folder), "/tmp/helenus-env-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
use(int kind)
{
	env = kind == 0 ? env_posix_new() : env_sim_env(sim);
	files = env->files;
	ck_assert_int_eq(files_mkdir(files, folder, &err), 0);
}

static void
teardown(void)
{
	struct env *posix = env_posix_new();

	ck_assert_int_eq(files_remove_tree(posix->files, folder, &err), 0);
	env_free(posix);
	if (env != env_sim_env(sim))
		env_free(env);
	env_sim_free(sim);
}

static const char *
in_folder(const char *name)
{
	static char paths[4][128];
	static int at;

	at = (at + 1) % 4;
	snprintf(paths[at], sizeof(paths[at]), "%s/%s", folder, name);
	return paths[at];
}

static void
put(const char *path, const char *content)
{
	struct file *file;

	ck_assert_int_eq(
	    files_open(files, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, &err), 0);
	ck_assert_int_eq(file_write(file, content, strlen(content), &err), 0);
	file_close(file);
}

static const char *
get(const char *path)
{
	static char text[4096];
	struct buffer buffer;

	buffer_init(&buffer);
	ck_assert_msg(
	    files_read_all(files, path, sizeof(text) - 1, &buffer, &err) == 0, "%s", err.text);
	if (buffer.size > 0)
		memcpy(text, buffer.data, buffer.size);
	text[buffer.size] = '\0';
	buffer_fini(&buffer);
	return text;
}

START_TEST(test_what_was_written_is_read)
{
	struct slice slices[3] = {slice_of_string("one,"), slice_empty, slice_of_string("two,")};
	struct file *file;
	uint64_t size;
	char bytes[16];
	size_t got;

	use(_i);
	ck_assert_int_eq(files_open(files, in_folder("a"),
			     FILE_READ | FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &file, &err),
	    0);
	ck_assert_str_eq(file_path(file), in_folder("a"));
	ck_assert_int_eq(file_writev(file, slices, 3, &err), 0);
	ck_assert_int_eq(file_write(file, "three", 5, &err), 0);
	ck_assert_int_eq(file_pwrite(file, "ONE", 3, 0, &err), 0);
	ck_assert_int_eq(file_size(file, &size, &err), 0);
	ck_assert_uint_eq(size, 13);
	ck_assert_int_eq(file_pread(file, bytes, sizeof(bytes), 4, &got, &err), 0);
	ck_assert_uint_eq(got, 9);
	ck_assert_int_eq(memcmp(bytes, "two,three", 9), 0);
	ck_assert_int_eq(file_sync(file, &err), 0);
	file_forget(file, 0, 13);
	ck_assert_int_eq(file_reserve(file, 100000, &err), 0);
	file_close(file);
	ck_assert_str_eq(get(in_folder("a")), "ONE,two,three");
}
END_TEST

START_TEST(test_writing_goes_on_at_the_end_of_an_old_file)
{
	struct file *file;

	use(_i);
	put(in_folder("a"), "old,");
	ck_assert_int_eq(files_open(files, in_folder("a"), FILE_WRITE, &file, &err), 0);
	ck_assert_int_eq(file_write(file, "new", 3, &err), 0);
	ck_assert_int_eq(file_truncate(file, 5, &err), 0);
	ck_assert_int_eq(file_write(file, "!", 1, &err), 0);
	ck_assert_int_eq(file_truncate(file, 8, &err), 0);
	file_close(file);
	ck_assert_str_eq(get(in_folder("a")), "old,n!");
}
END_TEST

START_TEST(test_early_end_is_corrupt_and_says_where)
{
	struct file *file;
	char bytes[16];

	use(_i);
	put(in_folder("a"), "12345");
	ck_assert_int_eq(files_open(files, in_folder("a"), FILE_READ, &file, &err), 0);
	ck_assert_int_eq(file_pread_exact(file, bytes, 5, 0, &err), 0);
	ck_assert_int_eq(file_pread_exact(file, bytes, 5, 1, &err), -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
	ck_assert_ptr_nonnull(strstr(err.text, "ends at 5"));
	ck_assert_int_eq(file_pread_exact(file, bytes, 1, 1000, &err), -1);
	file_close(file);
}
END_TEST

START_TEST(test_open_says_why_not)
{
	struct file *file;

	use(_i);
	put(in_folder("a"), "");
	ck_assert_int_eq(files_open(files, in_folder("b"), FILE_READ, &file, &err), -1);
	ck_assert_int_eq(err.code, ERROR_IO);
	ck_assert_int_eq(err.sys_errno, ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, in_folder("b")));
	ck_assert_int_eq(files_open(files, in_folder("a"),
			     FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &file, &err),
	    -1);
	ck_assert_int_eq(err.sys_errno, EEXIST);
	ck_assert_int_eq(files_open(files, folder, FILE_WRITE, &file, &err), -1);
	ck_assert_int_eq(err.sys_errno, EISDIR);
	ck_assert_int_eq(
	    files_open(files, in_folder("x/y"), FILE_WRITE | FILE_CREATE, &file, &err), -1);
	ck_assert_int_eq(err.sys_errno, ENOENT);
}
END_TEST

START_TEST(test_a_file_for_reading_is_not_written)
{
	struct file *file;
	char byte;
	size_t got;

	use(_i);
	put(in_folder("a"), "x");
	ck_assert_int_eq(files_open(files, in_folder("a"), FILE_READ, &file, &err), 0);
	ck_assert_int_eq(file_write(file, "y", 1, &err), -1);
	file_close(file);
	ck_assert_int_eq(files_open(files, in_folder("a"), FILE_WRITE, &file, &err), 0);
	ck_assert_int_eq(file_pread(file, &byte, 1, 0, &got, &err), -1);
	file_close(file);
	ck_assert_str_eq(get(in_folder("a")), "x");
}
END_TEST

START_TEST(test_missing_is_an_answer)
{
	struct file_stat stat;

	use(_i);
	ck_assert_int_eq(files_stat(files, in_folder("a"), &stat, &err), 0);
	ck_assert_int_eq(stat.kind, FILE_MISSING);
	ck_assert(!files_exists(files, in_folder("a")));
	ck_assert(!files_exists(files, in_folder("a/b/c")));
	ck_assert_int_eq(files_unlink(files, in_folder("a"), &err), 0);
	ck_assert_int_eq(files_rmdir(files, in_folder("a"), &err), 0);
	ck_assert_int_eq(files_remove_tree(files, in_folder("a"), &err), 0);
}
END_TEST

START_TEST(test_stat_tells_size_kind_and_names)
{
	struct file_stat stat;

	use(_i);
	put(in_folder("a"), "12345");
	ck_assert_int_eq(files_link(files, in_folder("a"), in_folder("b"), &err), 0);
	ck_assert_int_eq(files_stat(files, in_folder("b"), &stat, &err), 0);
	ck_assert_int_eq(stat.kind, FILE_REGULAR);
	ck_assert_uint_eq(stat.size, 5);
	ck_assert_uint_eq(stat.links, 2);
	ck_assert_int_gt(stat.modified_us, 1600000000000000);
	ck_assert_int_eq(files_unlink(files, in_folder("a"), &err), 0);
	ck_assert_int_eq(files_stat(files, in_folder("b"), &stat, &err), 0);
	ck_assert_uint_eq(stat.links, 1);
	ck_assert_str_eq(get(in_folder("b")), "12345");
	ck_assert_int_eq(files_stat(files, folder, &stat, &err), 0);
	ck_assert_int_eq(stat.kind, FILE_FOLDER);
}
END_TEST

START_TEST(test_folders_are_made_with_those_above_and_listed_in_order)
{
	struct file_list list;

	use(_i);
	ck_assert_int_eq(files_mkdir(files, in_folder("x/y/z"), &err), 0);
	ck_assert_int_eq(files_mkdir(files, in_folder("x/y/z/"), &err), 0);
	put(in_folder("x/c"), "");
	put(in_folder("x/a"), "");
	ck_assert_int_eq(files_list(files, in_folder("x"), &list, &err), 0);
	ck_assert_uint_eq(list.count, 3);
	ck_assert_str_eq(list.entries[0].name, "a");
	ck_assert_int_eq(list.entries[0].kind, FILE_REGULAR);
	ck_assert_str_eq(list.entries[1].name, "c");
	ck_assert_str_eq(list.entries[2].name, "y");
	ck_assert_int_eq(list.entries[2].kind, FILE_FOLDER);
	file_list_fini(&list);
	ck_assert_int_eq(files_list(files, in_folder("nothing"), &list, &err), -1);
	ck_assert_int_eq(err.sys_errno, ENOENT);
	ck_assert_int_eq(files_mkdir(files, in_folder("x/a/b"), &err), -1);
	ck_assert_int_eq(files_rmdir(files, in_folder("x"), &err), -1);
	ck_assert_int_eq(err.sys_errno, ENOTEMPTY);
	ck_assert_int_eq(files_remove_tree(files, in_folder("x"), &err), 0);
	ck_assert(!files_exists(files, in_folder("x")));
}
END_TEST

START_TEST(test_rename_replaces_and_link_does_not)
{
	use(_i);
	put(in_folder("a"), "new");
	put(in_folder("b"), "old");
	ck_assert_int_eq(files_link(files, in_folder("a"), in_folder("b"), &err), -1);
	ck_assert_int_eq(err.sys_errno, EEXIST);
	ck_assert_int_eq(files_rename(files, in_folder("a"), in_folder("b"), &err), 0);
	ck_assert_str_eq(get(in_folder("b")), "new");
	ck_assert(!files_exists(files, in_folder("a")));
	ck_assert_int_eq(files_rename(files, in_folder("a"), in_folder("c"), &err), -1);
	ck_assert_int_eq(err.sys_errno, ENOENT);
}
END_TEST

START_TEST(test_a_removed_file_stays_readable_where_it_is_open)
{
	struct file *file;
	char bytes[3];

	use(_i);
	put(in_folder("a"), "abc");
	ck_assert_int_eq(files_open(files, in_folder("a"), FILE_READ, &file, &err), 0);
	ck_assert_int_eq(files_unlink(files, in_folder("a"), &err), 0);
	ck_assert_int_eq(file_pread_exact(file, bytes, 3, 0, &err), 0);
	ck_assert_int_eq(memcmp(bytes, "abc", 3), 0);
	file_close(file);
}
END_TEST

START_TEST(test_replace_leaves_no_temporary_file)
{
	struct file_list list;

	use(_i);
	ck_assert_int_eq(files_replace(files, in_folder("a"), slice_of_string("1"), &err), 0);
	ck_assert_int_eq(files_replace(files, in_folder("a"), slice_of_string("22"), &err), 0);
	ck_assert_str_eq(get(in_folder("a")), "22");
	ck_assert_int_eq(files_list(files, folder, &list, &err), 0);
	ck_assert_uint_eq(list.count, 1);
	file_list_fini(&list);
}
END_TEST

START_TEST(test_read_all_refuses_what_is_too_big)
{
	struct buffer buffer;

	use(_i);
	put(in_folder("a"), "12345");
	buffer_init(&buffer);
	ck_assert_int_eq(files_read_all(files, in_folder("a"), 4, &buffer, &err), -1);
	ck_assert_int_eq(err.code, ERROR_CORRUPT);
	buffer_put_string(&buffer, "before,");
	ck_assert_int_eq(files_read_all(files, in_folder("a"), 5, &buffer, &err), 0);
	ck_assert(slice_equal_string(buffer_slice(&buffer), "before,12345"));
	buffer_fini(&buffer);
}
END_TEST

START_TEST(test_a_tree_with_a_symbolic_link_is_removed_without_following_it)
{
	use(0);
	ck_assert_int_eq(files_mkdir(files, in_folder("kept"), &err), 0);
	put(in_folder("kept/a"), "a");
	ck_assert_int_eq(files_mkdir(files, in_folder("tree"), &err), 0);
	ck_assert_int_eq(symlink(in_folder("kept"), in_folder("tree/link")), 0);
	ck_assert_int_eq(files_remove_tree(files, in_folder("tree"), &err), 0);
	ck_assert_str_eq(get(in_folder("kept/a")), "a");
}
END_TEST

START_TEST(test_space_is_told)
{
	uint64_t free_bytes;
	uint64_t total;

	use(_i);
	ck_assert_int_eq(files_space(files, folder, &free_bytes, &total, &err), 0);
	ck_assert_uint_gt(total, 0);
	ck_assert_uint_le(free_bytes, total);
}
END_TEST

START_TEST(test_clocks_and_chance)
{
	uint8_t a[32] = {0};
	uint8_t b[32] = {0};
	uint64_t before;

	use(_i);
	before = env_monotonic_ns(env);
	ck_assert_uint_ge(env_monotonic_ns(env), before);
	ck_assert_int_gt(env_wall_us(env), 1600000000000000);
	env_random(env, a, sizeof(a));
	env_random(env, b, sizeof(b));
	ck_assert_int_ne(memcmp(a, b, sizeof(a)), 0);
	ck_assert_uint_ne(env_random_u64(env), env_random_u64(env));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("env");
	TCase *tcase = tcase_create("env");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_what_was_written_is_read, 0, 2);
	tcase_add_loop_test(tcase, test_writing_goes_on_at_the_end_of_an_old_file, 0, 2);
	tcase_add_loop_test(tcase, test_early_end_is_corrupt_and_says_where, 0, 2);
	tcase_add_loop_test(tcase, test_open_says_why_not, 0, 2);
	tcase_add_loop_test(tcase, test_a_file_for_reading_is_not_written, 0, 2);
	tcase_add_loop_test(tcase, test_missing_is_an_answer, 0, 2);
	tcase_add_loop_test(tcase, test_stat_tells_size_kind_and_names, 0, 2);
	tcase_add_loop_test(
	    tcase, test_folders_are_made_with_those_above_and_listed_in_order, 0, 2);
	tcase_add_loop_test(tcase, test_rename_replaces_and_link_does_not, 0, 2);
	tcase_add_loop_test(tcase, test_a_removed_file_stays_readable_where_it_is_open, 0, 2);
	tcase_add_loop_test(tcase, test_replace_leaves_no_temporary_file, 0, 2);
	tcase_add_loop_test(tcase, test_read_all_refuses_what_is_too_big, 0, 2);
	tcase_add_test(tcase, test_a_tree_with_a_symbolic_link_is_removed_without_following_it);
	tcase_add_loop_test(tcase, test_space_is_told, 0, 2);
	tcase_add_loop_test(tcase, test_clocks_and_chance, 0, 2);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
