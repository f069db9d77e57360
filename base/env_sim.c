/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env_sim.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/lock.h"
#include "base/sim_disk.h"

enum {
	ENV_SIM_PATH_PART_MAX = 128,
};

struct env_sim_fault {
	char path_part[ENV_SIM_PATH_PART_MAX];
	uint64_t skip;
	uint64_t count;
	int sys_errno;
};

struct env_sim_file {
	struct file file;
	struct sim_node *node;
	unsigned flags;
	uint64_t life; /* the power cut after which it was opened */
};

struct env_sim {
	struct env env;
	struct files files;

	struct lock lock; /* guards all that follows */
	struct sim_disk disk;
	uint64_t monotonic_ns; /* the wall clock is the disk's */
	uint64_t life;
	uint64_t change_count;
	uint64_t crash_at; /* change_count at which the power goes */
	bool is_down;
	struct env_sim_fault faults[ENV_SIM_CALLS];
};

static struct env_sim *
env_sim_of_files(struct files *files)
{
	return (struct env_sim *)((char *)files - offsetof(struct env_sim, files));
}

/* ---- Power and faults ---- */

/* Before each call: 0, or the errno it must fail with. */
static int
env_sim_enter(struct env_sim *sim, enum env_sim_call call, const char *path)
{
	struct env_sim_fault *fault = &sim->faults[call];

	if (call != ENV_SIM_READ && call != ENV_SIM_OPEN) {
		if (sim->change_count++ >= sim->crash_at)
			sim->is_down = true;
	}
	if (sim->is_down)
		return EIO;
	if (fault->count == 0 || strstr(path, fault->path_part) == NULL)
		return 0;
	if (fault->skip > 0) {
		fault->skip--;
		return 0;
	}
	fault->count--;
	return fault->sys_errno;
}

static int
env_sim_enter_file(struct env_sim *sim, enum env_sim_call call, struct env_sim_file *file)
{
	int sys_errno = env_sim_enter(sim, call, file->file.path);

	return file->life != sim->life ? EIO : sys_errno;
}

/* ---- Operations by path ---- */

static int
env_sim_open_locked(struct env_sim *sim, const char *path, unsigned flags, struct file **out)
{
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;
	struct env_sim_file *file;
	int sys_errno = env_sim_enter(sim, ENV_SIM_OPEN, path);

	if (sys_errno != 0)
		return sys_errno;
	if (sim_disk_walk(&sim->disk, path, &folder, name, &node) != 0)
		return errno;
	if (node == NULL && (flags & FILE_CREATE) == 0)
		return ENOENT;
	if (node != NULL && (flags & FILE_EXCLUSIVE))
		return EEXIST;
	if (node != NULL && node->kind != FILE_REGULAR)
		return EISDIR;
	if (node == NULL || (flags & FILE_TRUNCATE)) {
		sys_errno = env_sim_enter(sim, ENV_SIM_WRITE, path);
		if (sys_errno != 0)
			return sys_errno;
	}
	if (node == NULL) {
		node = sim_disk_node_new(&sim->disk, FILE_REGULAR);
		sim_disk_change(&sim->disk, NULL, NULL, folder, name, node);
		sim_disk_node_unref(&sim->disk, node); /* the entry holds it */
	} else if (flags & FILE_TRUNCATE) {
		sim_disk_truncate(&sim->disk, node, 0);
	}
	file = xzalloc(sizeof(*file));
	file->node = sim_disk_node_ref(node);
	file->flags = flags;
	file->life = sim->life;
	*out = &file->file;
	return 0;
}

static int
env_sim_open(
    struct files *files, const char *path, unsigned flags, struct file **out, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_open_locked(sim, path, flags, out);
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot open %s", path);
	return 0;
}

static int
env_sim_stat(struct files *files, const char *path, struct file_stat *out, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;
	int sys_errno;

	*out = (struct file_stat){.kind = FILE_MISSING};
	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_READ, path);
	if (sys_errno == 0 && sim_disk_walk(&sim->disk, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node != NULL)
		*out = (struct file_stat){node->kind, node->now.size, node->now.size,
		    node->modified_us, node->kind == FILE_FOLDER ? 2 : node->links};
	lock_drop(&sim->lock);
	if (sys_errno != 0 && sys_errno != ENOENT)
		return error_set_errno(err, sys_errno, "cannot look at %s", path);
	return 0;
}

static int
env_sim_list(struct files *files, const char *path, struct file_list *out, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	struct sim_node *folder = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_READ, path);
	if (sys_errno == 0)
		folder = sim_disk_find_folder(&sim->disk, path, &sys_errno);
	for (size_t i = 0; folder != NULL && i < folder->names_now.count; i++) {
		struct sim_entry *entry = &folder->names_now.entries[i];

		file_list_add(out, entry->name, entry->node->kind);
	}
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot list %s", path);
	return 0;
}

static int
env_sim_rename_locked(struct env_sim *sim, const char *from, const char *to)
{
	char from_name[SIM_NAME_MAX + 1];
	char to_name[SIM_NAME_MAX + 1];
	struct sim_node *from_folder;
	struct sim_node *to_folder;
	struct sim_node *node;
	struct sim_node *target;
	int sys_errno = env_sim_enter(sim, ENV_SIM_NAME, from);

	if (sys_errno != 0)
		return sys_errno;
	if (sim_disk_walk(&sim->disk, from, &from_folder, from_name, &node) != 0 ||
	    sim_disk_walk(&sim->disk, to, &to_folder, to_name, &target) != 0)
		return errno;
	if (node == NULL)
		return ENOENT;
	if (from_folder == NULL || to_folder == NULL)
		return EBUSY;
	if (target == node)
		return 0;
	if (target != NULL && target->kind != node->kind)
		return target->kind == FILE_FOLDER ? EISDIR : ENOTDIR;
	if (target != NULL && target->kind == FILE_FOLDER && target->names_now.count > 0)
		return ENOTEMPTY;
	sim_disk_change(&sim->disk, from_folder, from_name, to_folder, to_name, node);
	return 0;
}

static int
env_sim_rename(struct files *files, const char *from, const char *to, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_rename_locked(sim, from, to);
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot rename %s to %s", from, to);
	return 0;
}

static int
env_sim_link_locked(struct env_sim *sim, const char *from, const char *to)
{
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;
	struct sim_node *target;
	int sys_errno = env_sim_enter(sim, ENV_SIM_NAME, to);

	if (sys_errno != 0)
		return sys_errno;
	if (sim_disk_walk(&sim->disk, from, &folder, name, &node) != 0)
		return errno;
	if (node == NULL)
		return ENOENT;
	if (node->kind != FILE_REGULAR)
		return EPERM;
	if (sim_disk_walk(&sim->disk, to, &folder, name, &target) != 0)
		return errno;
	if (target != NULL)
		return EEXIST;
	sim_disk_change(&sim->disk, NULL, NULL, folder, name, node);
	return 0;
}

static int
env_sim_link(struct files *files, const char *from, const char *to, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_link_locked(sim, from, to);
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot link %s to %s", from, to);
	return 0;
}

static int
env_sim_remove(
    struct env_sim *sim, const char *path, enum file_kind kind, const char *what, struct error *err)
{
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_NAME, path);
	if (sys_errno == 0 && sim_disk_walk(&sim->disk, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node != NULL) {
		if (node->kind != kind)
			sys_errno = kind == FILE_FOLDER ? ENOTDIR : EISDIR;
		else if (folder == NULL)
			sys_errno = EBUSY;
		else if (node->names_now.count > 0)
			sys_errno = ENOTEMPTY;
		else
			sim_disk_change(&sim->disk, folder, name, NULL, NULL, NULL);
	}
	lock_drop(&sim->lock);
	if (sys_errno != 0 && sys_errno != ENOENT)
		return error_set_errno(err, sys_errno, "cannot remove %s%s", what, path);
	return 0;
}

static int
env_sim_unlink(struct files *files, const char *path, struct error *err)
{
	return env_sim_remove(env_sim_of_files(files), path, FILE_REGULAR, "", err);
}

static int
env_sim_rmdir(struct files *files, const char *path, struct error *err)
{
	return env_sim_remove(env_sim_of_files(files), path, FILE_FOLDER, "folder ", err);
}

static int
env_sim_mkdir(struct files *files, const char *path, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_NAME, path);
	if (sys_errno == 0 && sim_disk_walk(&sim->disk, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node == NULL) {
		node = sim_disk_node_new(&sim->disk, FILE_FOLDER);
		sim_disk_change(&sim->disk, NULL, NULL, folder, name, node);
		sim_disk_node_unref(&sim->disk, node);
	}
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot make folder %s", path);
	return 0;
}

static int
env_sim_sync_folder(struct files *files, const char *path, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	struct sim_node *folder = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_SYNC, path);
	if (sys_errno == 0)
		folder = sim_disk_find_folder(&sim->disk, path, &sys_errno);
	if (folder != NULL)
		sim_disk_settle_folder(&sim->disk, folder);
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot sync folder %s", path);
	return 0;
}

static int
env_sim_space(struct files *files, const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
    struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);

	(void)path;
	(void)err;
	lock_take(&sim->lock);
	*total_bytes = sim->disk.space;
	*free_bytes = sim_disk_room(&sim->disk);
	lock_drop(&sim->lock);
	return 0;
}

/* ---- Operations on an open file ---- */

static struct env_sim_file *
env_sim_file(struct file *file)
{
	return (struct env_sim_file *)file;
}

static void
env_sim_close(struct file *base)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);

	lock_take(&sim->lock);
	sim_disk_node_unref(&sim->disk, file->node);
	lock_drop(&sim->lock);
	free(file);
}

static int
env_sim_pwritev(
    struct file *base, const struct slice *slices, size_t count, uint64_t offset, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	int sys_errno;
	int rc = 0;

	lock_take(&sim->lock);
	/* The write that the power cut meets may be half done; those after it do nothing. */
	if (sim->is_down || file->life != sim->life)
		count = 0;
	sys_errno = env_sim_enter_file(sim, ENV_SIM_WRITE, file);
	if ((file->flags & FILE_WRITE) == 0)
		sys_errno = EBADF;
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct slice slice = slices[i];

		/* A write that fails has still written something: the caller must cope. */
		if (sys_errno != 0)
			slice.size = (size_t)sim_disk_below(&sim->disk, slice.size + 1);
		if (sys_errno != EBADF)
			rc = sim_disk_put(&sim->disk, file->node, slice, offset);
		offset += slice.size;
		if (sys_errno != 0)
			break;
	}
	file->node->modified_us = sim->disk.wall_us;
	lock_drop(&sim->lock);
	sys_errno = sys_errno != 0 ? sys_errno : rc;
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot write %s at offset %llu", base->path,
		    (unsigned long long)offset);
	return 0;
}

static int
env_sim_pread(
    struct file *base, void *out, size_t size, uint64_t offset, size_t *got, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	struct sim_bytes *now = &file->node->now;
	int sys_errno;

	*got = 0;
	lock_take(&sim->lock);
	sys_errno = env_sim_enter_file(sim, ENV_SIM_READ, file);
	if ((file->flags & FILE_READ) == 0)
		sys_errno = EBADF;
	if (sys_errno == 0 && offset < now->size) {
		*got = now->size - offset < size ? (size_t)(now->size - offset) : size;
		memcpy(out, now->data + offset, *got);
	}
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot read %s at offset %llu", base->path,
		    (unsigned long long)offset);
	return 0;
}

static int
env_sim_size(struct file *base, uint64_t *size, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	bool is_dead;

	lock_take(&sim->lock);
	is_dead = sim->is_down || file->life != sim->life;
	*size = file->node->now.size;
	lock_drop(&sim->lock);
	if (is_dead)
		return error_set_errno(err, EIO, "cannot look at %s", base->path);
	return 0;
}

static int
env_sim_truncate(struct file *base, uint64_t size, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	struct sim_node *node = file->node;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter_file(sim, ENV_SIM_WRITE, file);
	if (sys_errno == 0 && size > node->now.size &&
	    size - node->now.size > sim_disk_room(&sim->disk))
		sys_errno = ENOSPC;
	if (sys_errno == 0)
		sim_disk_truncate(&sim->disk, node, (size_t)size);
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot make %s %llu bytes long", base->path,
		    (unsigned long long)size);
	return 0;
}

static int
env_sim_reserve(struct file *base, uint64_t size, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	int sys_errno;

	/* Room is not kept back for it, so a write may still find the disk full. */
	lock_take(&sim->lock);
	sys_errno = env_sim_enter_file(sim, ENV_SIM_WRITE, file);
	if (sys_errno == 0 && size > file->node->now.size &&
	    size - file->node->now.size > sim_disk_room(&sim->disk))
		sys_errno = ENOSPC;
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot reserve %llu bytes for %s",
		    (unsigned long long)size, base->path);
	return 0;
}

static int
env_sim_sync(struct file *base, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(base->files);
	struct env_sim_file *file = env_sim_file(base);
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter_file(sim, ENV_SIM_SYNC, file);
	if (sys_errno == 0)
		sim_disk_carry_over(file->node);
	else if (!sim->is_down && file->life == sim->life)
		/* The kernel drops the pages it could not write and calls them clean. */
		file->node->dirty_from = file->node->dirty_to = 0;
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot sync %s", base->path);
	return 0;
}

static void
env_sim_forget(struct file *base, uint64_t offset, uint64_t size)
{
	(void)base;
	(void)offset;
	(void)size;
}

static const struct files_ops env_sim_ops = {
    .open = env_sim_open,
    .stat = env_sim_stat,
    .list = env_sim_list,
    .rename = env_sim_rename,
    .link = env_sim_link,
    .unlink = env_sim_unlink,
    .rmdir = env_sim_rmdir,
    .mkdir = env_sim_mkdir,
    .sync_folder = env_sim_sync_folder,
    .space = env_sim_space,
    .close = env_sim_close,
    .pwritev = env_sim_pwritev,
    .pread = env_sim_pread,
    .size = env_sim_size,
    .truncate = env_sim_truncate,
    .reserve = env_sim_reserve,
    .sync = env_sim_sync,
    .forget = env_sim_forget,
};

/* ---- The power cut ---- */

void
env_sim_crash(struct env_sim *sim)
{
	lock_take(&sim->lock);
	sim_disk_crash(&sim->disk);
	sim->life++;
	sim->is_down = false;
	sim->crash_at = UINT64_MAX;
	lock_drop(&sim->lock);
}

void
env_sim_kill(struct env_sim *sim)
{
	lock_take(&sim->lock);
	sim->life++;
	sim->is_down = false;
	sim->crash_at = UINT64_MAX;
	lock_drop(&sim->lock);
}

uint64_t
env_sim_changes(struct env_sim *sim)
{
	uint64_t count;

	lock_take(&sim->lock);
	count = sim->change_count;
	lock_drop(&sim->lock);
	return count;
}

void
env_sim_crash_after(struct env_sim *sim, uint64_t count)
{
	lock_take(&sim->lock);
	sim->crash_at = sim->change_count + count;
	lock_drop(&sim->lock);
}

bool
env_sim_is_down(struct env_sim *sim)
{
	bool is_down;

	lock_take(&sim->lock);
	is_down = sim->is_down;
	lock_drop(&sim->lock);
	return is_down;
}

void
env_sim_fail(struct env_sim *sim, enum env_sim_call call, const char *path_part, uint64_t skip,
    uint64_t count, int sys_errno)
{
	struct env_sim_fault *fault = &sim->faults[call];

	assert(strlen(path_part) < sizeof(fault->path_part));
	lock_take(&sim->lock);
	memcpy(fault->path_part, path_part, strlen(path_part) + 1);
	fault->skip = skip;
	fault->count = count;
	fault->sys_errno = sys_errno;
	lock_drop(&sim->lock);
}

void
env_sim_set_space(struct env_sim *sim, uint64_t bytes)
{
	lock_take(&sim->lock);
	sim->disk.space = bytes;
	lock_drop(&sim->lock);
}

int
env_sim_flip_bit(struct env_sim *sim, const char *path, uint64_t offset, unsigned bit)
{
	char name[SIM_NAME_MAX + 1];
	struct sim_node *folder;
	struct sim_node *node;
	int rc = -1;

	lock_take(&sim->lock);
	if (sim_disk_walk(&sim->disk, path, &folder, name, &node) == 0 && node != NULL &&
	    node->kind == FILE_REGULAR && offset < node->now.size) {
		node->now.data[offset] ^= (uint8_t)(1u << (bit & 7));
		if (offset < node->durable.size)
			node->durable.data[offset] ^= (uint8_t)(1u << (bit & 7));
		rc = 0;
	}
	lock_drop(&sim->lock);
	return rc;
}

uint64_t
env_sim_chance(struct env_sim *sim, uint64_t bound)
{
	uint64_t value;

	assert(bound > 0);
	lock_take(&sim->lock);
	value = sim_disk_below(&sim->disk, bound);
	lock_drop(&sim->lock);
	return value;
}

/* ---- Clock, chance, life ---- */

static int64_t
env_sim_wall_us(struct env *env)
{
	struct env_sim *sim = (struct env_sim *)env;
	int64_t now;

	lock_take(&sim->lock);
	now = sim->disk.wall_us;
	lock_drop(&sim->lock);
	return now;
}

static uint64_t
env_sim_monotonic_ns(struct env *env)
{
	struct env_sim *sim = (struct env_sim *)env;
	uint64_t now;

	lock_take(&sim->lock);
	now = sim->monotonic_ns;
	lock_drop(&sim->lock);
	return now;
}

static void
env_sim_random(struct env *env, void *out, size_t size)
{
	struct env_sim *sim = (struct env_sim *)env;
	uint8_t *at = out;

	lock_take(&sim->lock);
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)sim_disk_below(&sim->disk, 256);
	lock_drop(&sim->lock);
}

void
env_sim_advance(struct env_sim *sim, uint64_t ns)
{
	lock_take(&sim->lock);
	/* Whole microseconds of the sum: small steps must not be lost by rounding each. */
	sim->disk.wall_us += (int64_t)((sim->monotonic_ns + ns) / 1000 - sim->monotonic_ns / 1000);
	sim->monotonic_ns += ns;
	lock_drop(&sim->lock);
}

void
env_sim_step_wall(struct env_sim *sim, int64_t us)
{
	lock_take(&sim->lock);
	sim->disk.wall_us += us;
	lock_drop(&sim->lock);
}

static void
env_sim_keep(struct env *env)
{
	(void)env; /* env_sim_free() does it */
}

struct env_sim *
env_sim_new(uint64_t seed)
{
	struct env_sim *sim = xzalloc(sizeof(*sim));

	sim->files.ops = &env_sim_ops;
	sim->env = (struct env){
	    .wall_us = env_sim_wall_us,
	    .monotonic_ns = env_sim_monotonic_ns,
	    .random = env_sim_random,
	    .free = env_sim_keep,
	    .files = &sim->files,
	};
	/* A leaf: taken under any other lock, takes none. */
	lock_init(&sim->lock, "env_sim", INT_MAX);
	sim_disk_init(&sim->disk, seed, 1767225600000000); /* 2026-01-01 */
	sim->monotonic_ns = 1000000000;
	sim->crash_at = UINT64_MAX;
	return sim;
}

void
env_sim_free(struct env_sim *sim)
{
	if (sim == NULL)
		return;
	sim_disk_fini(&sim->disk);
	lock_fini(&sim->lock);
	free(sim);
}

struct env *
env_sim_env(struct env_sim *sim)
{
	return &sim->env;
}
