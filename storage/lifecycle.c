/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/lifecycle.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/uuid.h"
#include "storage/sstable.h"

enum { LIFECYCLE_LOG_BYTES_MAX = 64 << 20 };

struct lifecycle_names {
	char **names; /* owned, as the strings */
	size_t count, capacity;
};

struct lifecycle {
	struct env *env;
	char *directory; /* owned */
	char *path; /* owned; of the log */
	struct file *file; /* owned */
	bool is_committed;
	bool is_in_doubt; /* the commit failed */
	struct lifecycle_names added, removed; /* bases */
	atomic_uint obsolete; /* removed tables that still have readers */
};

static void
lifecycle_names_add(struct lifecycle_names *names, const char *name, size_t length)
{
	if (names->count == names->capacity) {
		names->capacity = names->capacity == 0 ? 8 : names->capacity * 2;
		names->names = xrealloc(names->names, names->capacity * sizeof(char *));
	}
	names->names[names->count++] = xstrndup(name, length);
}

static void
lifecycle_names_fini(struct lifecycle_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
}

static void
lifecycle_free(struct lifecycle *lifecycle)
{
	if (lifecycle == NULL)
		return;
	file_close(lifecycle->file);
	lifecycle_names_fini(&lifecycle->added);
	lifecycle_names_fini(&lifecycle->removed);
	free(lifecycle->directory);
	free(lifecycle->path);
	free(lifecycle);
}

int
lifecycle_begin(struct env *env, const char *directory, const char *kind, struct lifecycle **out,
    struct error *err)
{
	struct lifecycle *lifecycle = xzalloc(sizeof(*lifecycle));
	char id[UUID_TEXT_SIZE];
	uint8_t random[8];
	struct uuid uuid;

	env_random(env, random, sizeof(random));
	uuid = uuid_from_time(
	    uuid_ticks_of_unix_us(env_wall_us(env)), load_u64(random) | (UINT64_C(1) << 63));
	uuid_format(&uuid, id);
	lifecycle->env = env;
	lifecycle->directory = xstrdup(directory);
	lifecycle->path = xasprintf("%s/nb_txn_%s_%s.log", directory, kind, id);
	if (files_open(env->files, lifecycle->path, FILE_CREATE | FILE_WRITE, &lifecycle->file,
		err) != 0 ||
	    files_sync_folder(env->files, directory, err) != 0) {
		lifecycle_free(lifecycle);
		return -1;
	}
	*out = lifecycle;
	return 0;
}

static int
lifecycle_record(struct lifecycle *lifecycle, const char *type, const char *base, int64_t time_ms,
    int files, struct error *err)
{
	char *body = base != NULL ? xasprintf("%s:[%s-,%" PRId64 ",%d]", type, base, time_ms, files)
				  : xasprintf("%s:[,%" PRId64 ",0]", type, time_ms);
	char *line = xasprintf("%s[%" PRIu32 "]\n", body, crc32_update(0, body, strlen(body)));
	int rc;

	rc = file_write(lifecycle->file, line, strlen(line), err);
	if (rc == 0)
		rc = file_sync(lifecycle->file, err);
	if (rc != 0)
		error_prefix(err, "%s", lifecycle->path);
	free(line);
	free(body);
	return rc;
}

int
lifecycle_add(struct lifecycle *lifecycle, const char *base, struct error *err)
{
	lifecycle_names_add(&lifecycle->added, base, strlen(base));
	return lifecycle_record(lifecycle, "ADD", base, 0, 8, err);
}

/* Is `name` a component file of the table whose base name (without directory) is `base`? */
static bool
lifecycle_is_component(const char *name, const char *base)
{
	size_t length = strlen(base);

	return strncmp(name, base, length) == 0 && name[length] == '-';
}

static const char *
lifecycle_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int
lifecycle_count_files(
    struct env *env, const char *directory, const char *base, int *count, struct error *err)
{
	struct file_list list;

	if (files_list(env->files, directory, &list, err) != 0)
		return -1;
	*count = 0;
	for (size_t i = 0; i < list.count; i++)
		*count += lifecycle_is_component(list.entries[i].name, lifecycle_base_name(base));
	file_list_fini(&list);
	return 0;
}

/* The folder of a base path; heap, the caller's. */
static char *
lifecycle_folder(const char *base)
{
	return xstrndup(base, (size_t)(lifecycle_base_name(base) - base) - 1);
}

const char *
lifecycle_directory(const struct lifecycle *lifecycle)
{
	return lifecycle->directory;
}

int
lifecycle_remove(struct lifecycle *lifecycle, const char *base, struct error *err)
{
	char *folder = lifecycle_folder(base);
	int files, rc = lifecycle_count_files(lifecycle->env, folder, base, &files, err);

	free(folder);
	if (rc != 0)
		return -1;
	lifecycle_names_add(&lifecycle->removed, base, strlen(base));
	return lifecycle_record(
	    lifecycle, "REMOVE", base, env_wall_us(lifecycle->env) / 1000, files, err);
}

int
lifecycle_commit(struct lifecycle *lifecycle, struct error *err)
{
	if (lifecycle_record(
		lifecycle, "COMMIT", NULL, env_wall_us(lifecycle->env) / 1000, 0, err) != 0) {
		lifecycle->is_in_doubt = true;
		return -1;
	}
	lifecycle->is_committed = true;
	return 0;
}

int
lifecycle_delete_sstable(struct env *env, const char *base, struct error *err)
{
	char *directory = lifecycle_folder(base);
	char *toc = xasprintf("%s-TOC.txt", base);
	struct file_list list;
	int rc = 0;

	/* Whoever lists the folder meanwhile sees no complete table any more. */
	(void)files_unlink(env->files, toc, NULL);
	if (files_list(env->files, directory, &list, err) != 0) {
		rc = -1;
		goto done;
	}
	for (size_t i = 0; i < list.count && rc == 0; i++) {
		char *path;

		if (!lifecycle_is_component(list.entries[i].name, lifecycle_base_name(base)))
			continue;
		path = xasprintf("%s/%s", directory, list.entries[i].name);
		rc = files_unlink(env->files, path, err);
		free(path);
	}
	file_list_fini(&list);
done:
	free(toc);
	free(directory);
	return rc;
}

/* Delete the leftovers and then the log; the log stays when something could not be deleted. */
static int
lifecycle_clean(struct env *env, const char *directory, const char *path,
    const struct lifecycle_names *leftovers, struct error *err)
{
	for (size_t i = 0; i < leftovers->count; i++)
		if (lifecycle_delete_sstable(env, leftovers->names[i], err) != 0)
			return -1;
	/* One sync a folder: leftovers of one disk mostly stand side by side. */
	for (size_t i = 0; i < leftovers->count; i++) {
		const char *name = leftovers->names[i];
		size_t length = (size_t)(lifecycle_base_name(name) - name);

		if (i > 0 && strncmp(name, leftovers->names[i - 1], length) == 0)
			continue;
		if (files_sync_parent(env->files, name, err) != 0)
			return -1;
	}
	if (!files_exists(env->files, path))
		return 0;
	if (files_unlink(env->files, path, err) != 0)
		return -1;
	return files_sync_folder(env->files, directory, err);
}

/*
 * The commit failed, yet its record may be on disk: a start that finds it would delete the old tables. So
 * the log goes before the new tables do; a crash in between leaves both, which hold the same data.
 */
static int
lifecycle_resolve_doubt(struct lifecycle *lifecycle, struct error *err)
{
	struct files *files = lifecycle->env->files;

	if (!lifecycle->is_in_doubt)
		return 0;
	if (files_unlink(files, lifecycle->path, err) != 0)
		return -1;
	return files_sync_folder(files, lifecycle->directory, err);
}

void
lifecycle_finish(struct lifecycle *lifecycle)
{
	struct error err;

	if (lifecycle == NULL)
		return;
	if (lifecycle_resolve_doubt(lifecycle, &err) != 0 ||
	    lifecycle_clean(lifecycle->env, lifecycle->directory, lifecycle->path,
		lifecycle->is_committed ? &lifecycle->removed : &lifecycle->added, &err) != 0)
		log_error("%s: leftovers stay until the next start: %s", lifecycle->path, err.text);
	lifecycle_free(lifecycle);
}

static void
lifecycle_obsolete_deleted(void *argument)
{
	struct lifecycle *lifecycle = argument;

	/* Acquire-release: the last one sees that all the files are gone. */
	if (atomic_fetch_sub_explicit(&lifecycle->obsolete, 1, memory_order_acq_rel) == 1)
		lifecycle_finish(lifecycle);
}

void
lifecycle_finish_obsolete(
    struct lifecycle *lifecycle, struct sstable *const *removed, uint32_t count)
{
	/* One more for ourselves, so that the log is not gone while we still mark. */
	atomic_store(&lifecycle->obsolete, count + 1);
	for (uint32_t i = 0; i < count; i++)
		sstable_mark_obsolete(removed[i], lifecycle_obsolete_deleted, lifecycle);
	lifecycle_obsolete_deleted(lifecycle);
}

/* ---- recovery -------------------------------------------------------------------------------- */

/* One line without its newline: 1 and the record, 0 when it is not sound. */
static int
lifecycle_parse(
    const char *line, size_t length, const char **type_end, const char **path, size_t *path_length)
{
	const char *body_end, *comma;
	char *end;
	unsigned long crc;

	/* The checksum is the last [...]; the path may hold brackets itself. */
	if (length < 2 || line[length - 1] != ']')
		return 0;
	body_end = line + length - 1;
	while (body_end > line && *body_end != '[')
		body_end--;
	if (body_end == line || body_end[-1] != ']')
		return 0;
	crc = strtoul(body_end + 1, &end, 10);
	if (end != line + length - 1 || crc != crc32_update(0, line, (size_t)(body_end - line)))
		return 0;
	*type_end = memchr(line, ':', (size_t)(body_end - line));
	if (*type_end == NULL || (*type_end)[1] != '[')
		return 0;
	*path = *type_end + 2;
	comma = body_end;
	for (int commas = 0; commas < 2; commas++) {
		do {
			comma--;
		} while (comma > *path && *comma != ',');
		if (comma < *path || *comma != ',')
			return 0;
	}
	*path_length = (size_t)(comma - *path);
	return 1;
}

/* The base a record names, moved into `directory`: the data may have been copied from elsewhere. */
static void
lifecycle_names_add_record(
    struct lifecycle_names *names, const char *directory, const char *path, size_t length)
{
	const char *name = path + length;
	char *base;

	if (length > 0 && name[-1] == '-')
		length--;
	name = path + length;
	while (name > path && name[-1] != '/')
		name--;
	base = xasprintf("%s/%.*s", directory, (int)(path + length - name), name);
	lifecycle_names_add(names, base, strlen(base));
	free(base);
}

/* What the log at `path` says. A cut last record is left out: it is durable before anything follows from it. */
static int
lifecycle_read_log(struct env *env, const char *directory, const char *path,
    struct lifecycle_names *added, struct lifecycle_names *removed, bool *is_committed,
    struct error *err)
{
	struct buffer content;
	const char *text;
	size_t size, at = 0;
	int rc = -1;

	*is_committed = false;
	buffer_init(&content);
	if (files_read_all(env->files, path, LIFECYCLE_LOG_BYTES_MAX, &content, err) != 0)
		goto done;
	text = (const char *)content.data;
	size = content.size;
	while (at < size) {
		const char *line = text + at;
		const char *newline = memchr(line, '\n', size - at);
		size_t length = newline != NULL ? (size_t)(newline - line) : size - at;
		const char *type_end, *record_path;
		size_t path_length;

		at += length + 1;
		if (length == 0)
			continue;
		if (!lifecycle_parse(line, length, &type_end, &record_path, &path_length)) {
			if (at < size) {
				error_set(err, ERROR_CORRUPT,
				    "%s: the record at offset %zu does not match its checksum; "
				    "check which of the SSTables it names are complete, then "
				    "remove the file",
				    path, at - length - 1);
				goto done;
			}
			break;
		}
		if (strncmp(line, "ADD:", 4) == 0)
			lifecycle_names_add_record(added, directory, record_path, path_length);
		else if (strncmp(line, "REMOVE:", 7) == 0)
			lifecycle_names_add_record(removed, directory, record_path, path_length);
		else if (strncmp(line, "COMMIT:", 7) == 0)
			*is_committed = true;
	}
	rc = 0;
done:
	buffer_fini(&content);
	return rc;
}

/* The same names in every other directory as well. */
static void
lifecycle_names_spread(
    struct lifecycle_names *names, const char *const *directories, uint32_t count)
{
	size_t known = names->count;

	if (count == 1)
		return;
	for (size_t i = 0; i < known; i++)
		for (uint32_t k = 0; k < count; k++) {
			const char *name = lifecycle_base_name(names->names[i]);
			char *base = xasprintf("%s/%s", directories[k], name);

			if (strcmp(base, names->names[i]) != 0)
				lifecycle_names_add(names, base, strlen(base));
			free(base);
		}
}

static int
lifecycle_recover_log(struct env *env, const char *const *directories, uint32_t count,
    const char *directory, const char *name, struct error *err)
{
	struct lifecycle_names added = {0}, removed = {0};
	char *path = xasprintf("%s/%s", directory, name);
	bool is_committed;
	int rc = lifecycle_read_log(env, directory, path, &added, &removed, &is_committed, err);

	if (rc == 0) {
		log_info("%s: %s, removing %zu SSTables", path,
		    is_committed ? "was committed" : "was not committed",
		    is_committed ? removed.count : added.count);
		lifecycle_names_spread(is_committed ? &removed : &added, directories, count);
		rc = lifecycle_clean(env, directory, path, is_committed ? &removed : &added, err);
	}
	lifecycle_names_fini(&added);
	lifecycle_names_fini(&removed);
	free(path);
	return rc;
}

static bool
lifecycle_is_log(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && strcmp(name + length - 4, ".log") == 0 &&
	    strstr(name, "_txn_") != NULL;
}

int
lifecycle_recover(
    struct env *env, const char *const *directories, uint32_t count, struct error *err)
{
	int rc = 0;

	for (uint32_t k = 0; k < count && rc == 0; k++) {
		struct file_list list;

		if (files_list(env->files, directories[k], &list, err) != 0)
			return -1;
		for (size_t i = 0; i < list.count && rc == 0; i++)
			if (lifecycle_is_log(list.entries[i].name))
				rc = lifecycle_recover_log(env, directories, count, directories[k],
				    list.entries[i].name, err);
		file_list_fini(&list);
	}
	return rc;
}

/* ---- what is under way --------------------------------------------------------------------------- */

struct lifecycle_names *
lifecycle_busy_list(struct env *env, const char *directory, struct error *err)
{
	struct lifecycle_names *busy = xzalloc(sizeof(*busy));
	struct file_list list;
	bool is_committed;
	int rc = 0;

	if (files_list(env->files, directory, &list, err) != 0) {
		free(busy);
		return NULL;
	}
	for (size_t i = 0; i < list.count && rc == 0; i++) {
		char *path;

		if (!lifecycle_is_log(list.entries[i].name))
			continue;
		path = xasprintf("%s/%s", directory, list.entries[i].name);
		rc = lifecycle_read_log(env, directory, path, busy, busy, &is_committed, err);
		if (rc != 0 && !files_exists(env->files, path))
			rc = 0; /* it ended meanwhile */
		free(path);
	}
	file_list_fini(&list);
	if (rc != 0) {
		lifecycle_busy_free(busy);
		return NULL;
	}
	return busy;
}

bool
lifecycle_is_busy(const struct lifecycle_names *busy, const char *base)
{
	for (size_t i = 0; i < busy->count; i++)
		if (strcmp(busy->names[i], base) == 0)
			return true;
	return false;
}

void
lifecycle_busy_free(struct lifecycle_names *busy)
{
	if (busy == NULL)
		return;
	lifecycle_names_fini(busy);
	free(busy);
}
