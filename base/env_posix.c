/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real environment: system clocks, getrandom(), POSIX files. Every call that a signal may
 * interrupt is called again.
 */
#include "base/env.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"

enum {
	ENV_POSIX_SLICES_MAX = 64,
	/* Linux moves at most 2 GiB - 4 KiB a call; stay below and loop. */
	ENV_POSIX_IO_MAX = 1 << 30,
};

struct env_posix {
	struct env env;
	struct files files;
};

struct env_posix_file {
	struct file file;
	int fd;
};

static int64_t
env_posix_wall_us(struct env *env)
{
	struct timespec now;

	(void)env;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t
env_posix_monotonic_ns(struct env *env)
{
	struct timespec now;

	(void)env;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
env_posix_random(struct env *env, void *out, size_t size)
{
	uint8_t *at = out;

	(void)env;
	while (size > 0) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0) {
			assert(errno == EINTR);
			continue;
		}
		at += got;
		size -= (size_t)got;
	}
}

static struct env_posix_file *
env_posix_file(struct file *file)
{
	return (struct env_posix_file *)file;
}

static int
env_posix_open(
    struct files *files, const char *path, unsigned flags, struct file **out, struct error *err)
{
	struct env_posix_file *file;
	int mode = flags & FILE_WRITE ? O_WRONLY : O_RDONLY;
	int fd;

	(void)files;
	if ((flags & FILE_READ) && (flags & FILE_WRITE))
		mode = O_RDWR;
	mode |= flags & FILE_CREATE ? O_CREAT : 0;
	mode |= flags & FILE_EXCLUSIVE ? O_EXCL : 0;
	mode |= flags & FILE_TRUNCATE ? O_TRUNC : 0;
	do {
		fd = open(path, mode | O_CLOEXEC, 0644);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open %s", path);
	file = xzalloc(sizeof(*file));
	file->fd = fd;
	*out = &file->file;
	return 0;
}

static enum file_kind
env_posix_kind(mode_t mode)
{
	return S_ISREG(mode) ? FILE_REGULAR : S_ISDIR(mode) ? FILE_FOLDER : FILE_OTHER;
}

static int
env_posix_stat(struct files *files, const char *path, struct file_stat *out, struct error *err)
{
	struct stat stat;
	struct stat target;

	(void)files;
	*out = (struct file_stat){.kind = FILE_MISSING};
	if (lstat(path, &stat) != 0) {
		if (errno == ENOENT)
			return 0;
		return error_set_errno(err, errno, "cannot look at %s", path);
	}
	/* A data folder may be a link; a link that leads nowhere is still something. */
	if (S_ISLNK(stat.st_mode) && fstatat(AT_FDCWD, path, &target, 0) == 0)
		stat = target;
	out->kind = env_posix_kind(stat.st_mode);
	out->size = (uint64_t)stat.st_size;
	out->allocated = (uint64_t)stat.st_blocks * 512;
	out->modified_us = (int64_t)stat.st_mtim.tv_sec * 1000000 + stat.st_mtim.tv_nsec / 1000;
	out->links = (uint32_t)stat.st_nlink;
	return 0;
}

static int
env_posix_list(struct files *files, const char *path, struct file_list *out, struct error *err)
{
	struct dirent *entry;
	DIR *folder = opendir(path);

	(void)files;
	if (folder == NULL)
		return error_set_errno(err, errno, "cannot list %s", path);
	while (errno = 0, (entry = readdir(folder)) != NULL) {
		struct stat stat;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		/* Links stay FILE_OTHER here, so that removing a tree never leaves it. */
		if (fstatat(dirfd(folder), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0)
			continue; /* gone since */
		file_list_add(out, entry->d_name, env_posix_kind(stat.st_mode));
	}
	if (errno != 0) {
		error_set_errno(err, errno, "cannot list %s", path);
		closedir(folder);
		return -1;
	}
	closedir(folder);
	return 0;
}

static int
env_posix_rename(struct files *files, const char *from, const char *to, struct error *err)
{
	(void)files;
	if (rename(from, to) != 0)
		return error_set_errno(err, errno, "cannot rename %s to %s", from, to);
	return 0;
}

static int
env_posix_link(struct files *files, const char *from, const char *to, struct error *err)
{
	(void)files;
	if (link(from, to) != 0)
		return error_set_errno(err, errno, "cannot link %s to %s", from, to);
	return 0;
}

static int
env_posix_unlink(struct files *files, const char *path, struct error *err)
{
	(void)files;
	if (unlink(path) != 0 && errno != ENOENT)
		return error_set_errno(err, errno, "cannot remove %s", path);
	return 0;
}

static int
env_posix_rmdir(struct files *files, const char *path, struct error *err)
{
	(void)files;
	if (rmdir(path) != 0 && errno != ENOENT)
		return error_set_errno(err, errno, "cannot remove folder %s", path);
	return 0;
}

static int
env_posix_mkdir(struct files *files, const char *path, struct error *err)
{
	(void)files;
	/* Two threads may make the same folder; files_mkdir() has checked that it is no file. */
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return error_set_errno(err, errno, "cannot make folder %s", path);
	return 0;
}

static int
env_posix_sync_folder(struct files *files, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	(void)files;
	if (fd < 0)
		return error_set_errno(err, errno, "cannot open folder %s", path);
	do {
		rc = fsync(fd);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0)
		error_set_errno(err, errno, "cannot sync folder %s", path);
	close(fd);
	return rc;
}

static int
env_posix_space(struct files *files, const char *path, uint64_t *free_bytes, uint64_t *total_bytes,
    struct error *err)
{
	struct statvfs stat;

	(void)files;
	if (statvfs(path, &stat) != 0)
		return error_set_errno(err, errno, "cannot tell the free space of %s", path);
	*free_bytes = (uint64_t)stat.f_bavail * stat.f_frsize;
	*total_bytes = (uint64_t)stat.f_blocks * stat.f_frsize;
	return 0;
}

static void
env_posix_close(struct file *file)
{
	close(env_posix_file(file)->fd);
	free(env_posix_file(file));
}

static int
env_posix_pwritev(
    struct file *file, const struct slice *slices, size_t count, uint64_t offset, struct error *err)
{
	struct iovec vectors[ENV_POSIX_SLICES_MAX];
	struct iovec *at = vectors;
	int left = 0;

	assert(count <= ENV_POSIX_SLICES_MAX);
	for (size_t i = 0; i < count; i++) {
		if (slices[i].size != 0)
			vectors[left++] = (struct iovec){(void *)slices[i].data, slices[i].size};
	}
	while (left > 0) {
		ssize_t written = pwritev(env_posix_file(file)->fd, at, left, (off_t)offset);

		if (written < 0) {
			if (errno == EINTR)
				continue;
			return error_set_errno(err, errno, "cannot write %s at offset %llu",
			    file->path, (unsigned long long)offset);
		}
		offset += (uint64_t)written;
		for (; left > 0 && (size_t)written >= at->iov_len; at++, left--)
			written -= (ssize_t)at->iov_len;
		if (left > 0) {
			at->iov_base = (uint8_t *)at->iov_base + written;
			at->iov_len -= (size_t)written;
		}
	}
	return 0;
}

static int
env_posix_pread(
    struct file *file, void *out, size_t size, uint64_t offset, size_t *got, struct error *err)
{
	uint8_t *at = out;

	*got = 0;
	while (*got < size) {
		size_t wanted = size - *got;
		ssize_t part = pread(env_posix_file(file)->fd, at + *got,
		    wanted < ENV_POSIX_IO_MAX ? wanted : ENV_POSIX_IO_MAX, (off_t)(offset + *got));

		if (part < 0) {
			if (errno == EINTR)
				continue;
			return error_set_errno(err, errno, "cannot read %s at offset %llu",
			    file->path, (unsigned long long)(offset + *got));
		}
		if (part == 0)
			break;
		*got += (size_t)part;
	}
	return 0;
}

static int
env_posix_size(struct file *file, uint64_t *size, struct error *err)
{
	struct stat stat;

	if (fstat(env_posix_file(file)->fd, &stat) != 0)
		return error_set_errno(err, errno, "cannot look at %s", file->path);
	*size = (uint64_t)stat.st_size;
	return 0;
}

static int
env_posix_truncate(struct file *file, uint64_t size, struct error *err)
{
	int rc;

	do {
		rc = ftruncate(env_posix_file(file)->fd, (off_t)size);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0)
		return error_set_errno(err, errno, "cannot make %s %llu bytes long", file->path,
		    (unsigned long long)size);
	return 0;
}

static int
env_posix_reserve(struct file *file, uint64_t size, struct error *err)
{
	int rc;

	do {
		rc = fallocate(env_posix_file(file)->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
		return error_set_errno(err, errno, "cannot reserve %llu bytes for %s",
		    (unsigned long long)size, file->path);
	return 0;
}

static int
env_posix_sync(struct file *file, struct error *err)
{
	int rc;

	do {
		rc = fdatasync(env_posix_file(file)->fd);
	} while (rc != 0 && errno == EINTR);
	if (rc != 0)
		return error_set_errno(err, errno, "cannot sync %s", file->path);
	return 0;
}

static void
env_posix_forget(struct file *file, uint64_t offset, uint64_t size)
{
	posix_fadvise(env_posix_file(file)->fd, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

static void *
env_posix_map(struct file *file, uint64_t size)
{
	int fd = env_posix_file(file)->fd;
	struct stat status;
	void *memory;

	/* A page without a block behind it would be a SIGBUS on a full disk. */
	if (fstat(fd, &status) != 0 || (uint64_t)status.st_blocks * 512 < size)
		return NULL;
	memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void
env_posix_unmap(struct file *file, void *memory, uint64_t size)
{
	(void)file;
	munmap(memory, (size_t)size);
}

static const struct files_ops env_posix_ops = {
    .open = env_posix_open,
    .stat = env_posix_stat,
    .list = env_posix_list,
    .rename = env_posix_rename,
    .link = env_posix_link,
    .unlink = env_posix_unlink,
    .rmdir = env_posix_rmdir,
    .mkdir = env_posix_mkdir,
    .sync_folder = env_posix_sync_folder,
    .space = env_posix_space,
    .close = env_posix_close,
    .pwritev = env_posix_pwritev,
    .pread = env_posix_pread,
    .size = env_posix_size,
    .truncate = env_posix_truncate,
    .reserve = env_posix_reserve,
    .sync = env_posix_sync,
    .forget = env_posix_forget,
    .map = env_posix_map,
    .unmap = env_posix_unmap,
};

static void
env_posix_free(struct env *env)
{
	free((struct env_posix *)env);
}

struct env *
env_posix_new(void)
{
	struct env_posix *posix = xzalloc(sizeof(*posix));

	posix->files.ops = &env_posix_ops;
	posix->env = (struct env){
	    .wall_us = env_posix_wall_us,
	    .monotonic_ns = env_posix_monotonic_ns,
	    .random = env_posix_random,
	    .free = env_posix_free,
	    .files = &posix->files,
	};
	return &posix->env;
}
