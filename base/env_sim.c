/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env_sim.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/lock.h"

enum {
	ENV_SIM_SECTOR = 512,
	ENV_SIM_NAME_MAX = 255,
	ENV_SIM_PATH_PART_MAX = 128,
};

/* A growable run of bytes; what lies between size and capacity is zero. */
struct env_sim_bytes {
	uint8_t *data;
	size_t size;
	size_t capacity;
};

struct env_sim_entry {
	char *name;
	struct env_sim_node *node; /* holds a reference */
};

struct env_sim_folder {
	struct env_sim_entry *entries;
	size_t count;
};

/* A file or a folder in both of its states. */
struct env_sim_node {
	int refs; /* one for each entry, pending change and open file; one of the root's owner */
	enum file_kind kind;
	uint32_t links; /* entries that a process sees */
	int64_t modified_us;

	struct env_sim_bytes now; /* what a process sees */
	struct env_sim_bytes durable; /* what a power cut leaves */
	size_t dirty_from; /* sectors of `now` that may differ; empty when from >= to */
	size_t dirty_to;

	struct env_sim_folder names_now;
	struct env_sim_folder names_durable;
};

/* A change of names that is not durable yet: one name goes, or comes, or both at once (a rename). */
struct env_sim_change {
	struct env_sim_change *next;
	struct env_sim_node *from_folder; /* NULL: nothing goes */
	char *from_name;
	struct env_sim_node *to_folder; /* NULL: nothing comes */
	char *to_name;
	struct env_sim_node *node; /* what comes */
};

struct env_sim_fault {
	char path_part[ENV_SIM_PATH_PART_MAX];
	uint64_t skip;
	uint64_t count;
	int sys_errno;
};

struct env_sim_file {
	struct file file;
	struct env_sim_node *node;
	unsigned flags;
	uint64_t life; /* the power cut after which it was opened */
};

struct env_sim {
	struct env env;
	struct files files;

	struct lock lock; /* guards all that follows */
	uint64_t chance; /* state of the generator */
	int64_t wall_us;
	uint64_t monotonic_ns;

	struct env_sim_node *root;
	struct env_sim_change *changes; /* oldest first */
	struct env_sim_change **changes_end;

	uint64_t life;
	uint64_t change_count;
	uint64_t crash_at; /* change_count at which the power goes */
	bool is_down;
	uint64_t space;
	uint64_t used;
	struct env_sim_fault faults[ENV_SIM_CALLS];
};

static struct env_sim *
env_sim_of_files(struct files *files)
{
	return (struct env_sim *)((char *)files - offsetof(struct env_sim, files));
}

/* ---- Chance ---- */

/* splitmix64: any seed is good, and the state is one word. */
static uint64_t
env_sim_next(struct env_sim *sim)
{
	uint64_t value = sim->chance += 0x9e3779b97f4a7c15ull;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

static uint64_t
env_sim_below(struct env_sim *sim, uint64_t bound)
{
	return env_sim_next(sim) % bound;
}

/* ---- Bytes and nodes ---- */

static void
env_sim_bytes_resize(struct env_sim_bytes *bytes, size_t size)
{
	if (size > bytes->capacity) {
		size_t capacity = bytes->capacity * 2 > size ? bytes->capacity * 2 : size;

		bytes->data = xrealloc(bytes->data, capacity);
		memset(bytes->data + bytes->capacity, 0, capacity - bytes->capacity);
		bytes->capacity = capacity;
	}
	if (size < bytes->size)
		memset(bytes->data + size, 0, bytes->size - size);
	bytes->size = size;
}

static void env_sim_folder_fini(struct env_sim *sim, struct env_sim_folder *folder);

static struct env_sim_node *
env_sim_node_new(struct env_sim *sim, enum file_kind kind)
{
	struct env_sim_node *node = xzalloc(sizeof(*node));

	node->refs = 1;
	node->kind = kind;
	node->modified_us = sim->wall_us;
	return node;
}

static struct env_sim_node *
env_sim_node_ref(struct env_sim_node *node)
{
	node->refs++;
	return node;
}

static void
env_sim_node_unref(struct env_sim *sim, struct env_sim_node *node)
{
	if (node == NULL || --node->refs > 0)
		return;
	sim->used -= node->now.size;
	env_sim_folder_fini(sim, &node->names_now);
	env_sim_folder_fini(sim, &node->names_durable);
	free(node->now.data);
	free(node->durable.data);
	free(node);
}

static struct env_sim_entry *
env_sim_folder_find(struct env_sim_folder *folder, const char *name)
{
	for (size_t i = 0; i < folder->count; i++) {
		if (strcmp(folder->entries[i].name, name) == 0)
			return &folder->entries[i];
	}
	return NULL;
}

static void
env_sim_folder_remove(struct env_sim *sim, struct env_sim_folder *folder, const char *name)
{
	struct env_sim_entry *entry = env_sim_folder_find(folder, name);
	struct env_sim_node *node;

	if (entry == NULL)
		return;
	node = entry->node;
	free(entry->name);
	*entry = folder->entries[--folder->count];
	env_sim_node_unref(sim, node);
}

static void
env_sim_folder_put(
    struct env_sim *sim, struct env_sim_folder *folder, const char *name, struct env_sim_node *node)
{
	env_sim_node_ref(node);
	env_sim_folder_remove(sim, folder, name);
	folder->entries = xrealloc(folder->entries, (folder->count + 1) * sizeof(*folder->entries));
	folder->entries[folder->count++] = (struct env_sim_entry){xstrdup(name), node};
}

static void
env_sim_folder_fini(struct env_sim *sim, struct env_sim_folder *folder)
{
	while (folder->count > 0)
		env_sim_folder_remove(sim, folder, folder->entries[0].name);
	free(folder->entries);
	*folder = (struct env_sim_folder){0};
}

/* ---- Paths ---- */

/* Cut the next part off a path into `name`; 0 at the end, 1 for a part, -1 and errno. */
static int
env_sim_path_next(const char **path, char name[ENV_SIM_NAME_MAX + 1])
{
	size_t length;

	while (**path == '/' || (**path == '.' && ((*path)[1] == '/' || (*path)[1] == '\0')))
		(*path)++;
	length = strcspn(*path, "/");
	if (length == 0)
		return 0;
	if (length > ENV_SIM_NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, *path, length);
	name[length] = '\0';
	*path += length;
	if (strcmp(name, "..") == 0) {
		errno = EINVAL;
		return -1;
	}
	return 1;
}

/*
 * Walk to the folder that holds the last part of `path` and find what is there. *node is NULL when
 * nothing is. For the root itself *folder is NULL. -1 and errno when the way does not exist.
 */
static int
env_sim_walk(struct env_sim *sim, const char *path, struct env_sim_node **folder,
    char name[ENV_SIM_NAME_MAX + 1], struct env_sim_node **node)
{
	char next[ENV_SIM_NAME_MAX + 1];
	int rc;

	*folder = NULL;
	*node = sim->root;
	while ((rc = env_sim_path_next(&path, next)) > 0) {
		struct env_sim_entry *entry;

		if (*node == NULL || (*node)->kind != FILE_FOLDER) {
			errno = *node == NULL ? ENOENT : ENOTDIR;
			return -1;
		}
		*folder = *node;
		entry = env_sim_folder_find(&(*folder)->names_now, next);
		*node = entry != NULL ? entry->node : NULL;
		memcpy(name, next, sizeof(next));
	}
	return rc;
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

/* ---- Changes of names ---- */

static void
env_sim_change_free(struct env_sim *sim, struct env_sim_change *change)
{
	env_sim_node_unref(sim, change->from_folder);
	env_sim_node_unref(sim, change->to_folder);
	env_sim_node_unref(sim, change->node);
	free(change->from_name);
	free(change->to_name);
	free(change);
}

static void
env_sim_change_settle(struct env_sim *sim, struct env_sim_change *change)
{
	if (change->from_folder != NULL)
		env_sim_folder_remove(sim, &change->from_folder->names_durable, change->from_name);
	if (change->to_folder != NULL)
		env_sim_folder_put(
		    sim, &change->to_folder->names_durable, change->to_name, change->node);
}

/* Let the process see a change of names, and remember it until a folder is synced. */
static void
env_sim_change(struct env_sim *sim, struct env_sim_node *from_folder, const char *from_name,
    struct env_sim_node *to_folder, const char *to_name, struct env_sim_node *node)
{
	struct env_sim_change *change = xzalloc(sizeof(*change));
	struct env_sim_entry *old;

	if (node != NULL)
		change->node = env_sim_node_ref(node);
	if (from_folder != NULL) {
		change->from_folder = env_sim_node_ref(from_folder);
		change->from_name = xstrdup(from_name);
		old = env_sim_folder_find(&from_folder->names_now, from_name);
		old->node->links--;
		env_sim_folder_remove(sim, &from_folder->names_now, from_name);
		from_folder->modified_us = sim->wall_us;
	}
	if (to_folder != NULL) {
		change->to_folder = env_sim_node_ref(to_folder);
		change->to_name = xstrdup(to_name);
		old = env_sim_folder_find(&to_folder->names_now, to_name);
		if (old != NULL)
			old->node->links--;
		node->links++;
		env_sim_folder_put(sim, &to_folder->names_now, to_name, node);
		to_folder->modified_us = sim->wall_us;
	}
	*sim->changes_end = change;
	sim->changes_end = &change->next;
}

/* Settle the pending changes that touch `folder`. */
static void
env_sim_settle_folder(struct env_sim *sim, struct env_sim_node *folder)
{
	struct env_sim_change **link = &sim->changes;
	struct env_sim_change *change;

	while ((change = *link) != NULL) {
		if (change->from_folder != folder && change->to_folder != folder) {
			link = &change->next;
			continue;
		}
		env_sim_change_settle(sim, change);
		*link = change->next;
		env_sim_change_free(sim, change);
	}
	sim->changes_end = link;
}

/* ---- Operations by path ---- */

static int
env_sim_open_locked(struct env_sim *sim, const char *path, unsigned flags, struct file **out)
{
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;
	struct env_sim_file *file;
	int sys_errno = env_sim_enter(sim, ENV_SIM_OPEN, path);

	if (sys_errno != 0)
		return sys_errno;
	if (env_sim_walk(sim, path, &folder, name, &node) != 0)
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
		node = env_sim_node_new(sim, FILE_REGULAR);
		env_sim_change(sim, NULL, NULL, folder, name, node);
		env_sim_node_unref(sim, node); /* the entry holds it */
	} else if (flags & FILE_TRUNCATE) {
		sim->used -= node->now.size;
		node->dirty_from = 0;
		node->dirty_to = node->dirty_to > node->now.size ? node->dirty_to : node->now.size;
		env_sim_bytes_resize(&node->now, 0);
	}
	file = xzalloc(sizeof(*file));
	file->node = env_sim_node_ref(node);
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
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;
	int sys_errno;

	*out = (struct file_stat){.kind = FILE_MISSING};
	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_READ, path);
	if (sys_errno == 0 && env_sim_walk(sim, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node != NULL)
		*out = (struct file_stat){node->kind, node->now.size, node->now.size,
		    node->modified_us, node->kind == FILE_FOLDER ? 2 : node->links};
	lock_drop(&sim->lock);
	if (sys_errno != 0 && sys_errno != ENOENT)
		return error_set_errno(err, sys_errno, "cannot look at %s", path);
	return 0;
}

/* The folder at `path`, or NULL with *sys_errno. */
static struct env_sim_node *
env_sim_find_folder(struct env_sim *sim, const char *path, int *sys_errno)
{
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;

	if (env_sim_walk(sim, path, &folder, name, &node) != 0) {
		*sys_errno = errno;
		return NULL;
	}
	if (node == NULL || node->kind != FILE_FOLDER) {
		*sys_errno = node == NULL ? ENOENT : ENOTDIR;
		return NULL;
	}
	return node;
}

static int
env_sim_list(struct files *files, const char *path, struct file_list *out, struct error *err)
{
	struct env_sim *sim = env_sim_of_files(files);
	struct env_sim_node *folder = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_READ, path);
	if (sys_errno == 0)
		folder = env_sim_find_folder(sim, path, &sys_errno);
	for (size_t i = 0; folder != NULL && i < folder->names_now.count; i++) {
		struct env_sim_entry *entry = &folder->names_now.entries[i];

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
	char from_name[ENV_SIM_NAME_MAX + 1];
	char to_name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *from_folder;
	struct env_sim_node *to_folder;
	struct env_sim_node *node;
	struct env_sim_node *target;
	int sys_errno = env_sim_enter(sim, ENV_SIM_NAME, from);

	if (sys_errno != 0)
		return sys_errno;
	if (env_sim_walk(sim, from, &from_folder, from_name, &node) != 0 ||
	    env_sim_walk(sim, to, &to_folder, to_name, &target) != 0)
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
	env_sim_change(sim, from_folder, from_name, to_folder, to_name, node);
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
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;
	struct env_sim_node *target;
	int sys_errno = env_sim_enter(sim, ENV_SIM_NAME, to);

	if (sys_errno != 0)
		return sys_errno;
	if (env_sim_walk(sim, from, &folder, name, &node) != 0)
		return errno;
	if (node == NULL)
		return ENOENT;
	if (node->kind != FILE_REGULAR)
		return EPERM;
	if (env_sim_walk(sim, to, &folder, name, &target) != 0)
		return errno;
	if (target != NULL)
		return EEXIST;
	env_sim_change(sim, NULL, NULL, folder, name, node);
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
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_NAME, path);
	if (sys_errno == 0 && env_sim_walk(sim, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node != NULL) {
		if (node->kind != kind)
			sys_errno = kind == FILE_FOLDER ? ENOTDIR : EISDIR;
		else if (folder == NULL)
			sys_errno = EBUSY;
		else if (node->names_now.count > 0)
			sys_errno = ENOTEMPTY;
		else
			env_sim_change(sim, folder, name, NULL, NULL, NULL);
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
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_NAME, path);
	if (sys_errno == 0 && env_sim_walk(sim, path, &folder, name, &node) != 0)
		sys_errno = errno;
	if (sys_errno == 0 && node == NULL) {
		node = env_sim_node_new(sim, FILE_FOLDER);
		env_sim_change(sim, NULL, NULL, folder, name, node);
		env_sim_node_unref(sim, node);
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
	struct env_sim_node *folder = NULL;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter(sim, ENV_SIM_SYNC, path);
	if (sys_errno == 0)
		folder = env_sim_find_folder(sim, path, &sys_errno);
	if (folder != NULL)
		env_sim_settle_folder(sim, folder);
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
	*total_bytes = sim->space;
	*free_bytes = sim->space > sim->used ? sim->space - sim->used : 0;
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
	env_sim_node_unref(sim, file->node);
	lock_drop(&sim->lock);
	free(file);
}

static void
env_sim_mark_dirty(struct env_sim_node *node, size_t from, size_t to)
{
	bool is_clean = node->dirty_from >= node->dirty_to;

	if (is_clean || from < node->dirty_from)
		node->dirty_from = from;
	if (is_clean || to > node->dirty_to)
		node->dirty_to = to;
}

/* 0 or the errno of a write that the disk has no room for; what fits is written. */
static int
env_sim_put(struct env_sim *sim, struct env_sim_node *node, struct slice slice, uint64_t offset)
{
	uint64_t end = offset + slice.size;
	size_t size = slice.size;
	int sys_errno = 0;

	if (end > node->now.size) {
		uint64_t room = sim->space > sim->used ? sim->space - sim->used : 0;
		uint64_t more = end - node->now.size;

		if (more > room) {
			sys_errno = ENOSPC;
			if (node->now.size + room <= offset)
				return sys_errno;
			size = (size_t)(node->now.size + room - offset);
			end = offset + size;
		}
		if (end > node->now.size) {
			sim->used += end - node->now.size;
			env_sim_mark_dirty(node, node->now.size, (size_t)end);
			env_sim_bytes_resize(&node->now, (size_t)end);
		}
	}
	if (size > 0) {
		memcpy(node->now.data + offset, slice.data, size);
		env_sim_mark_dirty(node, (size_t)offset, (size_t)end);
	}
	return sys_errno;
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
			slice.size = (size_t)env_sim_below(sim, slice.size + 1);
		if (sys_errno != EBADF)
			rc = env_sim_put(sim, file->node, slice, offset);
		offset += slice.size;
		if (sys_errno != 0)
			break;
	}
	file->node->modified_us = sim->wall_us;
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
	struct env_sim_bytes *now = &file->node->now;
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
	struct env_sim_node *node = file->node;
	int sys_errno;

	lock_take(&sim->lock);
	sys_errno = env_sim_enter_file(sim, ENV_SIM_WRITE, file);
	if (sys_errno == 0 && size > node->now.size &&
	    size - node->now.size > sim->space - sim->used)
		sys_errno = ENOSPC;
	if (sys_errno == 0) {
		size_t old = node->now.size;

		env_sim_mark_dirty(
		    node, old < size ? old : (size_t)size, old > size ? old : (size_t)size);
		sim->used = sim->used - old + size;
		env_sim_bytes_resize(&node->now, (size_t)size);
		node->modified_us = sim->wall_us;
	}
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
	    size - file->node->now.size > sim->space - sim->used)
		sys_errno = ENOSPC;
	lock_drop(&sim->lock);
	if (sys_errno != 0)
		return error_set_errno(err, sys_errno, "cannot reserve %llu bytes for %s",
		    (unsigned long long)size, base->path);
	return 0;
}

static void
env_sim_carry_over(struct env_sim_node *node)
{
	size_t from = node->dirty_from;
	size_t to = node->dirty_to < node->now.size ? node->dirty_to : node->now.size;

	env_sim_bytes_resize(&node->durable, node->now.size);
	if (from < to)
		memcpy(node->durable.data + from, node->now.data + from, to - from);
	node->dirty_from = node->dirty_to = 0;
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
		env_sim_carry_over(file->node);
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

/*
 * 1. The size is the durable one, the one that was seen, or one between.
 * 2. Each sector of the dirty run has the old bytes, the new ones, or (one in eight) new bytes up to
 *    a point and old ones after it. Where there was nothing, "old" is zeros.
 */
static void
env_sim_crash_file(struct env_sim *sim, struct env_sim_node *node)
{
	size_t low = node->now.size < node->durable.size ? node->now.size : node->durable.size;
	size_t high = node->now.size > node->durable.size ? node->now.size : node->durable.size;
	size_t size = node->durable.size;
	size_t end = node->dirty_to < node->now.size ? node->dirty_to : node->now.size;

	if (node->dirty_from < node->dirty_to) {
		uint64_t choice = env_sim_below(sim, 3);

		if (choice == 0)
			size = node->now.size;
		else if (choice == 1)
			size = low + (size_t)env_sim_below(sim, high - low + 1);
	}
	env_sim_bytes_resize(&node->durable, size);
	for (size_t at = node->dirty_from; at < end && at < size;) {
		size_t stop = (at / ENV_SIM_SECTOR + 1) * ENV_SIM_SECTOR;
		size_t length = (stop < end ? stop : end) - at;

		length = length < size - at ? length : size - at;
		switch (env_sim_below(sim, 8)) {
		case 0: /* torn */
			memcpy(node->durable.data + at, node->now.data + at,
			    (size_t)env_sim_below(sim, length + 1));
			break;
		case 1:
		case 2:
		case 3:
		case 4: /* written */
			memcpy(node->durable.data + at, node->now.data + at, length);
			break;
		default: /* not written */
			break;
		}
		at += length;
	}
	node->dirty_from = node->dirty_to = 0;
	sim->used = sim->used - node->now.size + node->durable.size;
	env_sim_bytes_resize(&node->now, size);
	if (size > 0)
		memcpy(node->now.data, node->durable.data, size);
}

/* Every node below `folder` as the power cut leaves it. A file with two names is met twice and has
 * nothing left to lose the second time. */
static void
env_sim_crash_folder(struct env_sim *sim, struct env_sim_node *folder)
{
	struct env_sim_folder *durable = &folder->names_durable;

	env_sim_folder_fini(sim, &folder->names_now);
	for (size_t i = 0; i < durable->count; i++) {
		struct env_sim_node *node = durable->entries[i].node;

		env_sim_folder_put(sim, &folder->names_now, durable->entries[i].name, node);
		if (node->kind == FILE_FOLDER)
			env_sim_crash_folder(sim, node);
		else
			env_sim_crash_file(sim, node);
	}
}

static void
env_sim_count_links(struct env_sim_node *folder, bool is_counting)
{
	for (size_t i = 0; i < folder->names_now.count; i++) {
		struct env_sim_node *node = folder->names_now.entries[i].node;

		node->links = is_counting ? node->links + 1 : 0;
		if (node->kind == FILE_FOLDER)
			env_sim_count_links(node, is_counting);
	}
}

void
env_sim_crash(struct env_sim *sim)
{
	struct env_sim_change *change;
	uint64_t count = 0;
	uint64_t kept;

	lock_take(&sim->lock);
	for (change = sim->changes; change != NULL; change = change->next)
		count++;
	kept = env_sim_below(sim, count + 1);
	while ((change = sim->changes) != NULL) {
		sim->changes = change->next;
		if (kept > 0) {
			env_sim_change_settle(sim, change);
			kept--;
		}
		env_sim_change_free(sim, change);
	}
	sim->changes_end = &sim->changes;
	env_sim_crash_folder(sim, sim->root);
	env_sim_count_links(sim->root, false);
	env_sim_count_links(sim->root, true);
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
	sim->space = bytes;
	lock_drop(&sim->lock);
}

int
env_sim_flip_bit(struct env_sim *sim, const char *path, uint64_t offset, unsigned bit)
{
	char name[ENV_SIM_NAME_MAX + 1];
	struct env_sim_node *folder;
	struct env_sim_node *node;
	int rc = -1;

	lock_take(&sim->lock);
	if (env_sim_walk(sim, path, &folder, name, &node) == 0 && node != NULL &&
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
	value = env_sim_below(sim, bound);
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
	now = sim->wall_us;
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
		at[i] = (uint8_t)env_sim_next(sim);
	lock_drop(&sim->lock);
}

void
env_sim_advance(struct env_sim *sim, uint64_t ns)
{
	lock_take(&sim->lock);
	/* Whole microseconds of the sum: small steps must not be lost by rounding each. */
	sim->wall_us += (int64_t)((sim->monotonic_ns + ns) / 1000 - sim->monotonic_ns / 1000);
	sim->monotonic_ns += ns;
	lock_drop(&sim->lock);
}

void
env_sim_step_wall(struct env_sim *sim, int64_t us)
{
	lock_take(&sim->lock);
	sim->wall_us += us;
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
	sim->chance = seed;
	sim->wall_us = 1767225600000000; /* 2026-01-01 */
	sim->monotonic_ns = 1000000000;
	sim->root = env_sim_node_new(sim, FILE_FOLDER);
	sim->changes_end = &sim->changes;
	sim->crash_at = UINT64_MAX;
	sim->space = UINT64_MAX;
	return sim;
}

void
env_sim_free(struct env_sim *sim)
{
	struct env_sim_change *change;

	if (sim == NULL)
		return;
	while ((change = sim->changes) != NULL) {
		sim->changes = change->next;
		env_sim_change_free(sim, change);
	}
	env_sim_node_unref(sim, sim->root);
	lock_fini(&sim->lock);
	free(sim);
}

struct env *
env_sim_env(struct env_sim *sim)
{
	return &sim->env;
}
