/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/commitlog_internal.h"

extern char **environ;

#define ARCHIVER_KEPT "unarchived"

enum {
	ARCHIVER_WORDS_MAX = 64,
	ARCHIVER_OUTPUT_MAX = 300, /* of what a failing command says, for the log */
};

/* ---- commands ---------------------------------------------------------------------------------- */

struct archiver_variable {
	const char *name, *value; /* "%path" */
};

/* `word` with the variables replaced; heap, the caller's. */
static char *
archiver_expand(
    const char *word, size_t length, const struct archiver_variable *variables, size_t count)
{
	struct buffer text;
	char *copy;

	buffer_init(&text);
	for (size_t at = 0; at < length;) {
		size_t i;

		for (i = 0; i < count; i++) {
			size_t size = strlen(variables[i].name);

			if (length - at >= size &&
			    memcmp(word + at, variables[i].name, size) == 0) {
				buffer_put_string(&text, variables[i].value);
				at += size;
				break;
			}
		}
		if (i == count)
			buffer_put_u8(&text, (uint8_t)word[at++]);
	}
	copy = xstrndup((const char *)text.data, text.size);
	buffer_fini(&text);
	return copy;
}

/* Read what the command says until it closes its output; the end of it that fits stays in `out`. */
static void
archiver_read_output(int fd, char out[ARCHIVER_OUTPUT_MAX])
{
	size_t size = 0;

	for (;;) {
		char bytes[256];
		ssize_t got = read(fd, bytes, sizeof(bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got && size < ARCHIVER_OUTPUT_MAX - 1; i++)
			out[size++] = bytes[i] == '\n' ? ' ' : bytes[i];
	}
	out[size] = '\0';
}

static int
archiver_spawn(char *const *words, pid_t *pid, int *output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return errno;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc != 0)
		close(fds[0]);
	else
		*output = fds[0];
	return rc;
}

/*
 * One program and its arguments, separated by blanks, run without a shell, as Cassandra does. ERROR_IO unless
 * it ends with 0.
 */
static int
archiver_run(const char *command, const struct archiver_variable *variables, size_t variable_count,
    struct error *err)
{
	char *words[ARCHIVER_WORDS_MAX + 1] = {NULL}, output[ARCHIVER_OUTPUT_MAX];
	size_t count = 0;
	int rc, fd = -1, status = 0;
	pid_t pid;

	for (const char *at = command; *at != '\0' && count < ARCHIVER_WORDS_MAX;) {
		size_t length = strcspn(at, " \t");

		if (length > 0)
			words[count++] = archiver_expand(at, length, variables, variable_count);
		at += length;
		at += strspn(at, " \t");
	}
	rc = count == 0 ? ENOEXEC : archiver_spawn(words, &pid, &fd);
	if (rc != 0) {
		rc = error_set_errno(err, rc, "cannot run '%s'", command);
	} else {
		archiver_read_output(fd, output);
		close(fd);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			rc = error_set(err, ERROR_IO, "'%s' ended with %s %d for %s: %s", command,
			    WIFEXITED(status) ? "status" : "signal",
			    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			    variables[0].value, *output == '\0' ? "no output" : output);
	}
	for (size_t i = 0; i < count; i++)
		free(words[i]);
	return rc;
}

static const char *
archiver_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static int
archiver_archive(const struct commitlog *log, const char *path, struct error *err)
{
	struct archiver_variable variables[] = {{"%path", path}, {"%name", archiver_name(path)}};

	return archiver_run(log->archiver.command, variables, 2, err);
}

/* ---- the thread ---------------------------------------------------------------------------------- */

/* The oldest segment that is full and not archived; `is_last`: the active one too, unless it is empty. NULL: none. */
static struct segment *
archiver_find(struct commitlog *log, bool is_last)
{
	struct segment *found = NULL;

	lock_take(&log->segments_lock);
	for (struct segment *each = log->segments; each != NULL && found == NULL; each = each->next)
		if (!each->is_archived &&
		    (each != atomic_load(&log->active) ||
			(is_last && segment_claimed(each) > SEGMENT_HEADER_SIZE)))
			found = each;
	lock_drop(&log->segments_lock);
	return found;
}

/* A segment that is not archived stays in the list, so it may be looked at without a lock. */
static int
archiver_take(struct commitlog *log, struct segment *segment, struct error *err)
{
	if (archiver_archive(log, segment->path, err) != 0 ||
	    segment_note_archived(segment, err) != 0)
		return -1;
	lock_take(&log->segments_lock);
	segment->is_archived = true;
	lock_drop(&log->segments_lock);
	return 0;
}

static bool
archiver_sleep(struct commitlog_archiver *archiver, bool is_retry)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += COMMITLOG_ARCHIVE_RETRY_MS / 1000;
	pthread_mutex_lock(&archiver->mutex);
	while (!archiver->is_stopping && (is_retry || !archiver->is_woken))
		if (!is_retry)
			pthread_cond_wait(&archiver->cond, &archiver->mutex);
		else if (pthread_cond_timedwait(&archiver->cond, &archiver->mutex, &until) != 0)
			break;
	archiver->is_woken = false;
	go_on = !archiver->is_stopping;
	pthread_mutex_unlock(&archiver->mutex);
	return go_on;
}

static void *
archiver_thread(void *argument)
{
	struct commitlog *log = argument;
	bool has_failed = false;

	log_thread_name("CommitLogArchiver");
	while (archiver_sleep(&log->archiver, has_failed)) {
		struct segment *segment;
		struct error err;

		has_failed = false;
		while (!has_failed && (segment = archiver_find(log, false)) != NULL) {
			/* It is full; what is not synced yet is so now. A log that has failed stays as it is. */
			has_failed = commitlog_sync(log, &err) != 0 ||
			    archiver_take(log, segment, &err) != 0;
			if (has_failed)
				log_error("commit log: %s is not archived and is kept, it will be "
					  "tried again: %s",
				    archiver_name(segment->path), err.text);
			else
				commitlog_wake(log);
		}
	}
	return NULL;
}

int
commitlog_archiver_start(struct commitlog *log, struct error *err)
{
	struct commitlog_archiver *archiver = &log->archiver;

	if (archiver->command == NULL)
		return 0;
	pthread_mutex_init(&archiver->mutex, NULL);
	pthread_cond_init(&archiver->cond, NULL);
	if (pthread_create(&archiver->thread, NULL, archiver_thread, log) != 0)
		return error_set(
		    err, ERROR_NO_MEMORY, "cannot start the thread that archives the commit log");
	archiver->has_thread = true;
	return 0;
}

void
commitlog_archiver_wake(struct commitlog *log)
{
	if (!log->archiver.has_thread)
		return;
	pthread_mutex_lock(&log->archiver.mutex);
	log->archiver.is_woken = true;
	pthread_cond_signal(&log->archiver.cond);
	pthread_mutex_unlock(&log->archiver.mutex);
}

void
commitlog_archiver_stop(struct commitlog *log)
{
	struct commitlog_archiver *archiver = &log->archiver;
	struct segment *segment;
	struct error err;

	if (!archiver->has_thread)
		return;
	pthread_mutex_lock(&archiver->mutex);
	archiver->is_stopping = true;
	pthread_cond_signal(&archiver->cond);
	pthread_mutex_unlock(&archiver->mutex);
	pthread_join(archiver->thread, NULL);
	archiver->has_thread = false;
	pthread_mutex_destroy(&archiver->mutex);
	pthread_cond_destroy(&archiver->cond);
	while (!atomic_load(&log->has_failed) && (segment = archiver_find(log, true)) != NULL) {
		if (archiver_take(log, segment, &err) != 0) {
			log_error("commit log: %s is not archived, that is tried again at the next "
				  "start: %s",
			    archiver_name(segment->path), err.text);
			return;
		}
	}
}

/* ---- at start ---------------------------------------------------------------------------------------- */

/* What earlier starts could not archive and had no other use for. */
static int
archiver_retry_kept(struct commitlog *log, struct error *err)
{
	char *folder = xasprintf("%s/" ARCHIVER_KEPT, log->directory);
	struct file_list list;
	int rc;

	if (!files_exists(log->env->files, folder)) {
		free(folder);
		return 0;
	}
	rc = files_list(log->env->files, folder, &list, err);
	if (rc == 0) {
		for (size_t i = 0; i < list.count && rc == 0; i++) {
			char *path = xasprintf("%s/%s", folder, list.entries[i].name);

			rc = archiver_archive(log, path, err);
			if (rc == 0)
				rc = files_unlink(log->env->files, path, err);
			free(path);
		}
		file_list_fini(&list);
	}
	free(folder);
	return rc;
}

void
commitlog_archive_found(struct commitlog *log, struct segment_file *files, size_t count)
{
	struct error err;

	if (log->archiver.command == NULL)
		return;
	if (archiver_retry_kept(log, &err) != 0)
		log_error("commit log: segments in %s/" ARCHIVER_KEPT " are still not archived: %s",
		    log->directory, err.text);
	for (size_t i = 0; i < count; i++) {
		bool is_emptied;

		if (files[i].is_archived || files[i].is_foreign)
			continue;
		if (segment_is_emptied(log->env, &files[i], &is_emptied, &err) == 0 && is_emptied)
			continue;
		if (archiver_archive(log, files[i].path, &err) != 0)
			log_error("commit log: %s is not archived: %s",
			    archiver_name(files[i].path), err.text);
		else
			files[i].is_archived = true;
	}
}

int
commitlog_drop_replayed(struct commitlog *log, const struct segment_file *file, struct error *err)
{
	struct files *files = log->env->files;
	char *folder, *kept;
	bool is_emptied;
	int rc;

	if (log->archiver.command == NULL || file->is_archived || file->is_restored ||
	    (segment_is_emptied(log->env, file, &is_emptied, NULL) == 0 && is_emptied))
		return segment_file_delete(log->env, file, err);
	/* In the log's own folder it would be replayed again and again, and bring back what was deleted since. */
	folder = xasprintf("%s/" ARCHIVER_KEPT, log->directory);
	kept = xasprintf("%s/%s", folder, archiver_name(file->path));
	rc = files_mkdir(files, folder, err);
	if (rc == 0)
		rc = files_rename(files, file->path, kept, err);
	if (rc == 0)
		rc = files_sync_folder(files, folder, err);
	if (rc == 0)
		log_error("commit log: %s has been replayed but could not be archived; it is kept "
			  "and tried again at the next start",
		    kept);
	free(kept);
	free(folder);
	return rc;
}

/* One file of a restore directory. *restored is raised where it was brought back. */
static int
archiver_restore_file(
    struct commitlog *log, const char *from, uint32_t *restored, struct error *err)
{
	const char *name = archiver_name(from);
	struct archiver_variable variables[2];
	bool is_foreign;
	uint64_t id;
	char *to;
	int rc;

	if (!segment_parse_name(name, &id, &is_foreign) || is_foreign)
		return error_set(err, ERROR_CONFIG,
		    "restore_directories: %s is no commit log segment of this server, and nothing "
		    "else "
		    "may lie there",
		    from);
	to = xasprintf("%s/%s", log->directory, name);
	if (files_exists(log->env->files, to)) {
		log_info("Skipping restore of archive %s as the segment already exists in the "
			 "restore location %s",
		    from, to);
		free(to);
		return 0;
	}
	variables[0] = (struct archiver_variable){"%from", from};
	variables[1] = (struct archiver_variable){"%to", to};
	rc = archiver_run(log->options.restore_command, variables, 2, err);
	if (rc == 0 && !files_exists(log->env->files, to))
		rc = error_set(err, ERROR_CONFIG, "restore_command '%s' ended well but made no %s",
		    log->options.restore_command, to);
	if (rc == 0)
		(*restored)++;
	free(to);
	return rc;
}

static int
archiver_restore_folder(
    struct commitlog *log, const char *folder, uint32_t *restored, struct error *err)
{
	struct file_list list;
	int rc;

	if (files_mkdir(log->env->files, folder, err) != 0 ||
	    files_list(log->env->files, folder, &list, err) != 0)
		return -1;
	rc = 0;
	for (size_t i = 0; i < list.count && rc == 0; i++) {
		char *from = xasprintf("%s/%s", folder, list.entries[i].name);

		rc = archiver_restore_file(log, from, restored, err);
		free(from);
	}
	file_list_fini(&list);
	return rc;
}

int
commitlog_restore(struct commitlog *log, uint32_t *restored, struct error *err)
{
	const char *at = log->options.restore_directories;

	*restored = 0;
	if (at == NULL)
		return 0;
	if (log->options.restore_command == NULL)
		return error_set(err, ERROR_CONFIG,
		    "commitlog_archiving.properties: restore_directories needs a restore_command");
	while (*at != '\0') {
		size_t length = strcspn(at, ",");
		char *folder = xstrndup(at, length);
		int rc = *folder == '\0' ? 0 : archiver_restore_folder(log, folder, restored, err);

		free(folder);
		if (rc != 0)
			return -1;
		at += length;
		at += strspn(at, ",");
	}
	if (*restored > 0)
		log_info("%" PRIu32 " commit log segments were restored from archives", *restored);
	return 0;
}
