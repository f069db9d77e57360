/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "base/alloc.h"

enum { ENV_SLICES_MAX = 64 };

void
env_free(struct env *env)
{
	if (env != NULL)
		env->free(env);
}

uint64_t
env_random_u64(struct env *env)
{
	uint64_t value;

	env->random(env, &value, sizeof(value));
	return value;
}

int
files_open(
    struct files *files, const char *path, unsigned flags, struct file **out, struct error *err)
{
	struct file *file;
	int rc;

	assert((flags & (FILE_READ | FILE_WRITE)) != 0);
	assert((flags & (FILE_CREATE | FILE_TRUNCATE)) == 0 || (flags & FILE_WRITE) != 0);
	rc = files->ops->open(files, path, flags, &file, err);
	if (rc != 0)
		return rc;
	file->files = files;
	file->path = xstrdup(path);
	file->end = 0;
	if (flags & FILE_WRITE) {
		rc = file_size(file, &file->end, err);
		if (rc != 0) {
			file_close(file);
			return rc;
		}
	}
	*out = file;
	return 0;
}

int
files_stat(struct files *files, const char *path, struct file_stat *out, struct error *err)
{
	return files->ops->stat(files, path, out, err);
}

bool
files_exists(struct files *files, const char *path)
{
	struct file_stat stat;

	return files_stat(files, path, &stat, NULL) == 0 && stat.kind != FILE_MISSING;
}

void
file_list_add(struct file_list *list, const char *name, enum file_kind kind)
{
	/* Room doubles: it is full when the count is a power of two. */
	if ((list->count & (list->count - 1)) == 0)
		list->entries = xrealloc(list->entries,
		    sizeof(*list->entries) * (list->count == 0 ? 1 : list->count * 2));
	list->entries[list->count++] = (struct file_entry){xstrdup(name), kind};
}

static int
file_entry_compare(const void *a, const void *b)
{
	return strcmp(((const struct file_entry *)a)->name, ((const struct file_entry *)b)->name);
}

int
files_list(struct files *files, const char *path, struct file_list *out, struct error *err)
{
	struct file_list list = {0};

	if (files->ops->list(files, path, &list, err) != 0) {
		file_list_fini(&list);
		return -1;
	}
	if (list.count > 1)
		qsort(list.entries, list.count, sizeof(*list.entries), file_entry_compare);
	*out = list;
	return 0;
}

void
file_list_fini(struct file_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].name);
	free(list->entries);
	*list = (struct file_list){0};
}

int
files_rename(struct files *files, const char *from, const char *to, struct error *err)
{
	return files->ops->rename(files, from, to, err);
}

int
files_link(struct files *files, const char *from, const char *to, struct error *err)
{
	return files->ops->link(files, from, to, err);
}

int
files_unlink(struct files *files, const char *path, struct error *err)
{
	return files->ops->unlink(files, path, err);
}

int
files_rmdir(struct files *files, const char *path, struct error *err)
{
	return files->ops->rmdir(files, path, err);
}

/* The path of the folder that holds `path`; on the heap. */
static char *
files_parent(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 0 && path[length - 1] != '/')
		length--;
	while (length > 1 && path[length - 1] == '/')
		length--;
	return length == 0 ? xstrdup(".") : xstrndup(path, length);
}

static int
files_make_folder(struct files *files, const char *path, bool is_durable, struct error *err)
{
	struct file_stat stat;
	char *parent = NULL;
	int rc;

	rc = files_stat(files, path, &stat, err);
	if (rc != 0 || stat.kind == FILE_FOLDER)
		return rc;
	if (stat.kind != FILE_MISSING)
		return error_set_errno(err, ENOTDIR, "cannot make folder %s", path);
	parent = files_parent(path);
	rc = files_make_folder(files, parent, is_durable, err);
	if (rc != 0)
		goto done;
	rc = files->ops->mkdir(files, path, err);
	if (rc != 0)
		goto done;
	if (is_durable)
		rc = files_sync_folder(files, parent, err);
done:
	free(parent);
	return rc;
}

int
files_mkdir(struct files *files, const char *path, struct error *err)
{
	return files_make_folder(files, path, true, err);
}

int
files_mkdir_later(struct files *files, const char *path, struct error *err)
{
	return files_make_folder(files, path, false, err);
}

int
files_sync_folder(struct files *files, const char *path, struct error *err)
{
	return files->ops->sync_folder(files, path, err);
}

int
files_sync_parent(struct files *files, const char *path, struct error *err)
{
	char *parent = files_parent(path);
	int rc = files_sync_folder(files, parent, err);

	free(parent);
	return rc;
}

int
files_space(struct files *files, const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
    struct error *err)
{
	return files->ops->space(files, path, free_bytes, total_bytes, err);
}

void
file_close(struct file *file)
{
	char *path;

	if (file == NULL)
		return;
	path = file->path;
	file->files->ops->close(file);
	free(path);
}

const char *
file_path(const struct file *file)
{
	return file->path;
}

int
file_write(struct file *file, const void *data, size_t size, struct error *err)
{
	struct slice slice = slice_of(data, size);

	return file_writev(file, &slice, 1, err);
}

int
file_writev(struct file *file, const struct slice *slices, size_t count, struct error *err)
{
	const struct files_ops *ops = file->files->ops;

	while (count > 0) {
		size_t run = count < ENV_SLICES_MAX ? count : ENV_SLICES_MAX;
		uint64_t size = 0;

		for (size_t i = 0; i < run; i++)
			size += slices[i].size;
		if (ops->pwritev(file, slices, run, file->end, err) != 0)
			return -1;
		file->end += size;
		slices += run;
		count -= run;
	}
	return 0;
}

int
file_pwrite(struct file *file, const void *data, size_t size, uint64_t offset, struct error *err)
{
	struct slice slice = slice_of(data, size);

	return file->files->ops->pwritev(file, &slice, 1, offset, err);
}

int
file_pread(
    struct file *file, void *out, size_t size, uint64_t offset, size_t *got, struct error *err)
{
	return file->files->ops->pread(file, out, size, offset, got, err);
}

int
file_pread_exact(struct file *file, void *out, size_t size, uint64_t offset, struct error *err)
{
	size_t got;

	if (file_pread(file, out, size, offset, &got, err) != 0)
		return -1;
	if (got == size)
		return 0;
	return error_set(err, ERROR_CORRUPT,
	    "%s: ends at %llu, within the %zu bytes wanted at offset %llu", file->path,
	    (unsigned long long)(offset + got), size, (unsigned long long)offset);
}

int
file_size(struct file *file, uint64_t *size, struct error *err)
{
	return file->files->ops->size(file, size, err);
}

int
file_truncate(struct file *file, uint64_t size, struct error *err)
{
	if (file->files->ops->truncate(file, size, err) != 0)
		return -1;
	file->end = size;
	return 0;
}

int
file_reserve(struct file *file, uint64_t size, struct error *err)
{
	return file->files->ops->reserve(file, size, err);
}

int
file_sync(struct file *file, struct error *err)
{
	return file->files->ops->sync(file, err);
}

void
file_forget(struct file *file, uint64_t offset, uint64_t size)
{
	file->files->ops->forget(file, offset, size);
}

void *
file_map(struct file *file, uint64_t size)
{
	return file->files->ops->map != NULL ? file->files->ops->map(file, size) : NULL;
}

void
file_unmap(struct file *file, void *memory, uint64_t size)
{
	file->files->ops->unmap(file, memory, size);
}

int
files_read_all(
    struct files *files, const char *path, size_t size_max, struct buffer *out, struct error *err)
{
	struct file *file;
	uint64_t size;
	uint8_t *at;
	int rc;

	rc = files_open(files, path, FILE_READ, &file, err);
	if (rc != 0)
		return rc;
	rc = file_size(file, &size, err);
	if (rc != 0)
		goto done;
	if (size > size_max) {
		rc = error_set(err, ERROR_CORRUPT,
		    "%s: %llu bytes are more than the %zu it may have", path,
		    (unsigned long long)size, size_max);
		goto done;
	}
	at = buffer_append(out, (size_t)size);
	rc = buffer_check(out, err);
	if (rc != 0)
		goto done;
	rc = file_pread_exact(file, at, (size_t)size, 0, err);
	if (rc != 0)
		out->size -= (size_t)size;
done:
	file_close(file);
	return rc;
}

int
files_replace(struct files *files, const char *path, struct slice content, struct error *err)
{
	char *temporary = xasprintf("%s.tmp", path);
	struct file *file = NULL;
	int rc;

	rc = files_open(files, temporary, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, err);
	if (rc != 0)
		goto done;
	rc = file_write(file, content.data, content.size, err);
	if (rc == 0)
		rc = file_sync(file, err);
	file_close(file);
	if (rc == 0)
		rc = files_rename(files, temporary, path, err);
	if (rc == 0)
		rc = files_sync_parent(files, path, err);
	else
		files_unlink(files, temporary, NULL);
done:
	free(temporary);
	return rc;
}

int
files_remove_tree(struct files *files, const char *path, struct error *err)
{
	struct file_list list = {0};
	struct file_stat stat;
	int rc;

	rc = files_stat(files, path, &stat, err);
	if (rc != 0 || stat.kind == FILE_MISSING)
		return rc;
	if (stat.kind != FILE_FOLDER)
		return files_unlink(files, path, err);
	rc = files_list(files, path, &list, err);
	for (size_t i = 0; i < list.count && rc == 0; i++) {
		char *child = xasprintf("%s/%s", path, list.entries[i].name);

		if (list.entries[i].kind == FILE_FOLDER)
			rc = files_remove_tree(files, child, err);
		else
			rc = files_unlink(files, child, err);
		free(child);
	}
	file_list_fini(&list);
	if (rc == 0)
		rc = files_rmdir(files, path, err);
	return rc;
}
