/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/store_internal.h"

/*
 * What fails on the disks while the store runs: noted where it happens, handled by the timer's thread, so that
 * no read or write waits for what the server does about it. (Cassandra: DefaultFSErrorHandler, DisallowedDirectories.)
 */

static void
store_failures_wake(struct store *store)
{
	pthread_mutex_lock(&store->timer_mutex);
	pthread_cond_signal(&store->timer_cond);
	pthread_mutex_unlock(&store->timer_mutex);
}

void
store_note_failure(
    struct store *store, enum store_failure failure, const char *path, const struct error *err)
{
	struct store_failures *failures = &store->failures;
	bool is_new;

	lock_take(&failures->lock);
	is_new = !failures->kinds[failure].is_pending;
	if (is_new) {
		failures->kinds[failure].is_pending = true;
		failures->kinds[failure].err = *err;
		free(failures->kinds[failure].path);
		failures->kinds[failure].path = path == NULL ? NULL : xstrdup(path);
	}
	lock_drop(&failures->lock);
	atomic_store(&failures->is_pending, true);
	if (is_new)
		store_failures_wake(store);
}

static void
store_watch_failed(struct sstable_watch *watch, const char *path, const struct error *err)
{
	struct store *store =
	    (struct store *)((char *)watch - offsetof(struct store, failures.watch));

	store_note_failure(
	    store, err->code == ERROR_IO ? STORE_FAILURE_READ : STORE_FAILURE_CORRUPT, path, err);
}

/* ---- best_effort ------------------------------------------------------------------------------------- */

/* Which data directory is `path` below? -1: none. */
static int
store_directory_of(const struct store *store, const char *path)
{
	for (uint32_t i = 0; path != NULL && i < store->options.data_directory_count; i++) {
		size_t length = strlen(store->options.data_directories[i]);

		if (strncmp(path, store->options.data_directories[i], length) == 0 &&
		    (path[length] == '/' || path[length] == '\0'))
			return (int)i;
	}
	return -1;
}

/* Reads go without what lies there. The files stay. */
static void
store_exclude_sstables(struct store *store, const char *directory)
{
	size_t length = strlen(directory);
	struct table_store **tables;
	uint32_t count;

	tables = store_tables(store, &count);
	for (uint32_t t = 0; t < count; t++) {
		struct table_view *view;
		struct sstable **removed;
		uint32_t removed_count = 0;

		/* No flush or compaction puts others there meanwhile and is forgotten. */
		lock_take(&tables[t]->replace_lock);
		view = table_view_acquire(tables[t]);
		removed = xcalloc(view->sstable_count + 1, sizeof(*removed));
		for (uint32_t i = 0; i < view->sstable_count; i++) {
			const char *at = sstable_descriptor(view->sstables[i])->directory;

			if (strncmp(at, directory, length) == 0 && at[length] == '/')
				removed[removed_count++] = view->sstables[i];
		}
		if (removed_count > 0)
			table_view_replace(tables[t], NULL, removed, removed_count, NULL, 0);
		lock_drop(&tables[t]->replace_lock);
		if (removed_count > 0)
			log_error("%s.%s is read without %" PRIu32 " SSTables in %s",
			    tables[t]->keyspace, tables[t]->name, removed_count, directory);
		table_view_release(view);
		free(removed);
	}
	free(tables);
}

static void
store_exclude_directory(
    struct store *store, enum store_failure failure, const char *path, const struct error *err)
{
	int directory = store_directory_of(store, path);
	bool is_any_left = false;

	if (directory < 0)
		return;
	if (!atomic_exchange(&store->failures.is_unwritable[directory], true))
		log_error("%s is not written to any more: %s",
		    store->options.data_directories[directory], err->text);
	if (failure == STORE_FAILURE_READ)
		store_exclude_sstables(store, store->options.data_directories[directory]);
	for (uint32_t i = 0; i < store->options.data_directory_count; i++)
		is_any_left |= !atomic_load(&store->failures.is_unwritable[i]);
	if (!is_any_left)
		store_note_failure(store, STORE_FAILURE_NO_DIRECTORY, NULL, err);
}

/* ---- handling ------------------------------------------------------------------------------------------ */

void
store_handle_failures(struct store *store)
{
	struct store_failures *failures = &store->failures;

	if (!atomic_load(&failures->is_pending))
		return;
	for (int kind = 0; kind < STORE_FAILURES; kind++) {
		store_failure_fn fn;
		struct error err;
		bool is_pending;
		char *path;
		void *context;

		lock_take(&failures->lock);
		fn = failures->on_failure;
		context = failures->context;
		if (fn == NULL) {
			lock_drop(&failures->lock);
			return;
		}
		if (kind == 0)
			atomic_store(&failures->is_pending, false);
		is_pending = failures->kinds[kind].is_pending;
		err = failures->kinds[kind].err;
		path = failures->kinds[kind].path;
		failures->kinds[kind].is_pending = false;
		failures->kinds[kind].path = NULL;
		lock_drop(&failures->lock);
		if (is_pending) {
			if (store->options.excludes_failed_directories &&
			    (kind == STORE_FAILURE_READ || kind == STORE_FAILURE_WRITE))
				store_exclude_directory(
				    store, (enum store_failure)kind, path, &err);
			fn(context, (enum store_failure)kind, &err);
		}
		free(path);
	}
}

void
store_on_failure(struct store *store, store_failure_fn fn, void *context)
{
	lock_take(&store->failures.lock);
	store->failures.on_failure = fn;
	store->failures.context = context;
	lock_drop(&store->failures.lock);
	store_failures_wake(store);
}

void
store_failures_init(struct store *store)
{
	lock_init(&store->failures.lock, "store.failures", RANK_STORE_FAILURES);
	store->failures.watch.failed = store_watch_failed;
	store->failures.is_unwritable =
	    xcalloc(store->options.data_directory_count, sizeof(*store->failures.is_unwritable));
}

void
store_failures_fini(struct store *store)
{
	for (int kind = 0; kind < STORE_FAILURES; kind++)
		free(store->failures.kinds[kind].path);
	free(store->failures.is_unwritable);
	lock_fini(&store->failures.lock);
}
