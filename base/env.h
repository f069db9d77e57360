/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_ENV_H
#define HELENUS_BASE_ENV_H

/*
 * What logic may know of the world: the clocks, chance, and files. It is handed a struct env and
 * calls nothing of the system itself, so that the same code runs in a real process (env_posix_new())
 * and in a simulation that a seed drives (base/env_sim.h).
 *
 * Any thread may use an env and its files. One struct file may be read and written at offsets
 * (file_pread(), file_pwrite()) by many threads at once; file_write() is for one thread at a time.
 *
 * Failures are ERROR_IO or ERROR_NO_SPACE with sys_errno, and their text names the path. What a
 * caller must make durable: a file's bytes by file_sync(), its name (after create, rename, link,
 * unlink) by files_sync_folder() of the folder. After a failed sync the state of the file is
 * unknown: nobody may retry the sync and call the data safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"

struct files;
struct file;

struct env {
	int64_t (*wall_us)(struct env *env); /* microseconds since 1970, may jump */
	uint64_t (*monotonic_ns)(struct env *env); /* never goes back, from any start */
	void (*random)(struct env *env, void *out, size_t size);
	void (*free)(struct env *env);
	struct files *files; /* owned by the env */
};

/* The real one: system clocks, getrandom(), POSIX files. */
struct env *env_posix_new(void);
/* NULL is accepted. Files that are open must have been closed. */
void env_free(struct env *env);

static inline int64_t
env_wall_us(struct env *env)
{
	return env->wall_us(env);
}

static inline uint64_t
env_monotonic_ns(struct env *env)
{
	return env->monotonic_ns(env);
}

/* Unpredictable bytes (keys, UUIDs) in a real env, of the seed in a simulated one. */
static inline void
env_random(struct env *env, void *out, size_t size)
{
	env->random(env, out, size);
}

uint64_t env_random_u64(struct env *env);

/* ---- Files by path ---- */

enum file_flags {
	FILE_READ = 1,
	FILE_WRITE = 2,
	FILE_CREATE = 4, /* make it when it is missing; needs FILE_WRITE */
	FILE_EXCLUSIVE = 8, /* with FILE_CREATE: fail (EEXIST) when it is there */
	FILE_TRUNCATE = 16, /* needs FILE_WRITE */
};

enum file_kind { FILE_MISSING, FILE_REGULAR, FILE_FOLDER, FILE_OTHER };

struct file_stat {
	enum file_kind kind;
	uint64_t size; /* bytes */
	uint64_t allocated; /* bytes that the file takes on the disk */
	int64_t modified_us; /* wall clock */
	uint32_t links;
};

struct file_entry {
	char *name; /* owned; without the folder */
	enum file_kind kind;
};

struct file_list {
	struct file_entry *entries; /* owned; sorted by name */
	size_t count;
};

/* On success *out is owned by the caller and closed with file_close(). Mode of a new file: 0644. */
int files_open(
    struct files *files, const char *path, unsigned flags, struct file **out, struct error *err);
/* "Missing" is a result: returns 0 with kind FILE_MISSING. */
int files_stat(struct files *files, const char *path, struct file_stat *out, struct error *err);
/* What an answer of "no" and of "cannot tell" both mean to the caller: not there. */
bool files_exists(struct files *files, const char *path);
/* Entries of a folder without "." and "..". On success freed with file_list_fini(). */
int files_list(struct files *files, const char *path, struct file_list *out, struct error *err);
void file_list_fini(struct file_list *list);
/* Atomic; replaces `to`. */
int files_rename(struct files *files, const char *from, const char *to, struct error *err);
/* A second name of the same file (snapshots); EEXIST when `to` is there. */
int files_link(struct files *files, const char *from, const char *to, struct error *err);
/* Remove a file. "Missing" is success: what the caller wants is that it is gone. */
int files_unlink(struct files *files, const char *path, struct error *err);
/* Remove an empty folder; missing is success. */
int files_rmdir(struct files *files, const char *path, struct error *err);
/* Make a folder and those above it (mkdir -p); the new names are durable when it returns. */
int files_mkdir(struct files *files, const char *path, struct error *err);
/* The same, but the names are made durable by the caller, when something in the folder has to be. */
int files_mkdir_later(struct files *files, const char *path, struct error *err);
/* Make the names in a folder durable. */
int files_sync_folder(struct files *files, const char *path, struct error *err);
/* The folder that holds `path`. */
int files_sync_parent(struct files *files, const char *path, struct error *err);
/* Bytes that an unprivileged writer may still take, and the size, of the disk behind `path`. */
int files_space(struct files *files, const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
    struct error *err);

/* ---- Open files ---- */

/* Close; NULL is accepted. Closing makes nothing durable, and its failure tells nothing new. */
void file_close(struct file *file);
/* Path as it was opened; lives as long as the file. */
const char *file_path(const struct file *file);
/* Append at the end that the file had when it was opened plus what was written here since. All of it
 * or an error; after an error the file may end with a part of the bytes. */
int file_write(struct file *file, const void *data, size_t size, struct error *err);
int file_writev(struct file *file, const struct slice *slices, size_t count, struct error *err);
/* All of it or an error. */
int
file_pwrite(struct file *file, const void *data, size_t size, uint64_t offset, struct error *err);
/* *got < size only at the end of the file. */
int file_pread(
    struct file *file, void *out, size_t size, uint64_t offset, size_t *got, struct error *err);
/* All of it: an early end is ERROR_CORRUPT naming path and offset. */
int file_pread_exact(struct file *file, void *out, size_t size, uint64_t offset, struct error *err);
int file_size(struct file *file, uint64_t *size, struct error *err);
/* Cut or extend with zeros; file_write() goes on at the new end. */
int file_truncate(struct file *file, uint64_t size, struct error *err);
/* Reserve disk space up to `size` bytes without changing the size; a file system that cannot is no
 * error. */
int file_reserve(struct file *file, uint64_t size, struct error *err);
/* Bytes and size are on the disk when it returns (fdatasync). */
int file_sync(struct file *file, struct error *err);
/*
 * Map the first `size` bytes for reading and writing, shared with the file: what is written there
 * survives the death of the process at once, and of the machine after file_sync(). The space must have been
 * reserved. NULL where files cannot be mapped (a simulated disk): the caller writes then. Unmap before close.
 */
void *file_map(struct file *file, uint64_t size);
void file_unmap(struct file *file, void *memory, uint64_t size);
/* A hint: these bytes will not be read again soon and should not push others out of the cache. */
void file_forget(struct file *file, uint64_t offset, uint64_t size);

/* ---- Made of the above ---- */

/* The whole of a file behind what *out holds. Larger than size_max: ERROR_CORRUPT. */
int files_read_all(
    struct files *files, const char *path, size_t size_max, struct buffer *out, struct error *err);
/* Replace `path` by these bytes, whole or not at all, and durably: "<path>.tmp", sync, rename, sync
 * of the folder. On failure the old file is still there. */
int files_replace(struct files *files, const char *path, struct slice content, struct error *err);
/* Remove a folder and all that is in it; missing is success. Does not follow symbolic links. */
int files_remove_tree(struct files *files, const char *path, struct error *err);

/* ---- For implementations ---- */

/* What a kind of files does. Each behaves as the function of its name above; the wrappers have
 * checked arguments. `write` gets the offset that the wrapper keeps. */
struct files_ops {
	int (*open)(struct files *files, const char *path, unsigned flags, struct file **out,
	    struct error *err);
	int (*stat)(
	    struct files *files, const char *path, struct file_stat *out, struct error *err);
	int (*list)(
	    struct files *files, const char *path, struct file_list *out, struct error *err);
	int (*rename)(struct files *files, const char *from, const char *to, struct error *err);
	int (*link)(struct files *files, const char *from, const char *to, struct error *err);
	int (*unlink)(struct files *files, const char *path, struct error *err);
	int (*rmdir)(struct files *files, const char *path, struct error *err);
	int (*mkdir)(struct files *files, const char *path, struct error *err); /* one folder */
	int (*sync_folder)(struct files *files, const char *path, struct error *err);
	int (*space)(struct files *files, const char *path, uint64_t *free_bytes,
	    uint64_t *total_bytes, struct error *err);

	void (*close)(struct file *file);
	int (*pwritev)(struct file *file, const struct slice *slices, size_t count, uint64_t offset,
	    struct error *err);
	int (*pread)(struct file *file, void *out, size_t size, uint64_t offset, size_t *got,
	    struct error *err);
	int (*size)(struct file *file, uint64_t *size, struct error *err);
	int (*truncate)(struct file *file, uint64_t size, struct error *err);
	int (*reserve)(struct file *file, uint64_t size, struct error *err);
	int (*sync)(struct file *file, struct error *err);
	void (*forget)(struct file *file, uint64_t offset, uint64_t size);
	void *(*map)(struct file *file, uint64_t size); /* may be NULL: files cannot be mapped */
	void (*unmap)(struct file *file, void *memory, uint64_t size);
};

/* First member of an implementation's own struct. */
struct files {
	const struct files_ops *ops;
};

struct file {
	struct files *files; /* borrowed; outlives us */
	char *path; /* owned */
	uint64_t end; /* where the next file_write() goes */
};

/* Add to a list that a `list` operation makes; sorted by the wrapper. */
void file_list_add(struct file_list *list, const char *name, enum file_kind kind);

#endif
