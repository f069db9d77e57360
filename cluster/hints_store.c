/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hints for one node (hints/HintsStore, HintsWriter, HintsBuffer): records in memory, the file that is being
 * written, files that wait to be delivered, and the task that alone touches files.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/hints_internal.h"

/* ---- Finding ------------------------------------------------------------------------------- */

static _Atomic(struct hints_store *) *
hints_slot(struct hints *hints, const struct uuid *host_id)
{
	uint64_t hash = hash_bytes(slice_of(host_id->bytes, sizeof(host_id->bytes)));

	return &hints->stores[hash % HINTS_STORE_SLOTS];
}

struct hints_store *
hints_store_find(struct hints *hints, const struct uuid *host_id)
{
	/* Acquire: who sees a store sees what it was made with. */
	struct hints_store *store =
	    atomic_load_explicit(hints_slot(hints, host_id), memory_order_acquire);

	while (store != NULL && !uuid_equal(&store->host_id, host_id))
		store = store->next;
	return store;
}

static void hints_store_run(struct task *task, struct worker *worker);

static void
hints_session_fire(struct cluster_timer *timer)
{
	struct hints_store *store = (struct hints_store *)((char *)timer -
	    offsetof(struct hints_store, session) - offsetof(struct hints_session, timer));

	atomic_store(&store->session.waits, false);
	hints_store_kick(store, HINTS_WORK_DELIVER);
}

struct hints_store *
hints_store_get(struct hints *hints, const struct uuid *host_id)
{
	struct hints_store *store = hints_store_find(hints, host_id);
	_Atomic(struct hints_store *) *slot = hints_slot(hints, host_id);

	if (store != NULL)
		return store;
	lock_take(&hints->lock);
	store = hints_store_find(hints, host_id);
	if (store == NULL) {
		store = xzalloc(sizeof(*store));
		store->hints = hints;
		store->host_id = *host_id;
		atomic_init(&store->oldest_ms, INT64_MAX);
		lock_init(&store->lock, "hints_store", RANK_HINTS_STORE);
		buffer_init(&store->active);
		buffer_init(&store->flushing);
		buffer_init(&store->session.page);
		store->session.timer.fire = hints_session_fire;
		store->next = atomic_load_explicit(slot, memory_order_relaxed);
		atomic_store_explicit(slot, store, memory_order_release);
	}
	lock_drop(&hints->lock);
	return store;
}

/* ---- Its task ------------------------------------------------------------------------------ */

void
hints_store_kick(struct hints_store *store, unsigned work)
{
	bool is_ours;

	lock_take(&store->lock);
	store->work |= work;
	is_ours = !store->is_working;
	store->is_working = true;
	lock_drop(&store->lock);
	if (!is_ours)
		return;
	store->task = (struct task){.run = hints_store_run};
	if (cluster_submit(store->hints->options.cluster, CLUSTER_STAGE_HINTS, &store->task))
		return;
	/* The stage is full or stops: the next tick tries again. */
	lock_take(&store->lock);
	store->is_working = false;
	lock_drop(&store->lock);
}

static void hints_store_delete(struct hints_store *store);
static void hints_store_clean_up(struct hints_store *store);

static void
hints_store_run(struct task *task, struct worker *worker)
{
	struct hints_store *store =
	    (struct hints_store *)((char *)task - offsetof(struct hints_store, task));
	struct error err;

	(void)worker;
	for (;;) {
		unsigned work;

		lock_take(&store->lock);
		work = store->work;
		store->work = 0;
		store->is_working = work != 0;
		lock_drop(&store->lock);
		if (work == 0)
			return;
		store->deletes = store->deletes || (work & HINTS_WORK_DELETE) != 0;
		if (store->deletes && atomic_load(&store->session.pending) == 0)
			hints_store_delete(store);
		if ((work & HINTS_WORK_FLUSH) != 0 && hints_store_flush(store, &err) != 0)
			log_error(
			    "hints could not be written, and will be tried again: %s", err.text);
		if ((work & HINTS_WORK_CLEANUP) != 0)
			hints_store_clean_up(store);
		if ((work & HINTS_WORK_DELIVER) != 0)
			hints_session_run(store);
	}
}

/* ---- Keeping ------------------------------------------------------------------------------- */

static void
hints_note_oldest(struct hints_store *store, int64_t created_ms)
{
	int64_t oldest = atomic_load_explicit(&store->oldest_ms, memory_order_relaxed);

	while (created_ms < oldest &&
	    !atomic_compare_exchange_weak_explicit(
		&store->oldest_ms, &oldest, created_ms, memory_order_relaxed, memory_order_relaxed))
		;
}

bool
hints_store_add(struct hints_store *store, const struct hint *hint)
{
	struct hints *hints = store->hints;
	size_t size = hint->mutation.size + HINTS_BODY_MIN + HINTS_RECORD_OVERHEAD, in_memory;
	bool is_kept, is_full;

	if (hint->mutation.size > HINTS_BODY_MAX - HINTS_BODY_MIN ||
	    atomic_load_explicit(&hints->buffered, memory_order_relaxed) > HINTS_BUFFERS_REFUSE)
		return false;
	lock_take(&store->lock);
	is_kept = buffer_reserve(&store->active, size);
	if (is_kept) {
		hint_encode(hint, &store->active);
		in_memory = atomic_fetch_add_explicit(&hints->buffered, size, memory_order_relaxed);
		if (in_memory > HINTS_BUFFERS_MAX) {
			store->active_in_flight++;
			atomic_fetch_add_explicit(&store->in_flight, 1, memory_order_relaxed);
			atomic_fetch_add_explicit(&hints->in_flight, 1, memory_order_relaxed);
		}
		store->is_dirty = true;
	}
	/* What was there before is still good. */
	store->active.is_failed = false;
	is_full = store->active.size >= HINTS_BUFFER_FLUSH;
	lock_drop(&store->lock);
	if (is_kept)
		hints_note_oldest(store, hint->created_ms);
	if (is_full)
		hints_store_kick(store, HINTS_WORK_FLUSH);
	return is_kept;
}

bool
hints_store_has_hints(struct hints_store *store)
{
	bool has_hints;

	lock_take(&store->lock);
	has_hints = store->is_dirty || store->has_writer;
	for (struct hints_file *file = store->files; file != NULL; file = file->next)
		has_hints = has_hints || !file->is_corrupt;
	lock_drop(&store->lock);
	return has_hints;
}

void
hints_store_pending(struct hints_store *store, struct hints_pending *out)
{
	*out = (struct hints_pending){.host_id = store->host_id,
	    .oldest_ms = INT64_MAX,
	    .bytes = atomic_load_explicit(&store->bytes, memory_order_relaxed)};
	lock_take(&store->lock);
	for (struct hints_file *file = store->files; file != NULL; file = file->next) {
		out->files++;
		out->corrupt_files += file->is_corrupt;
		if (file->name.timestamp_ms < out->oldest_ms)
			out->oldest_ms = file->name.timestamp_ms;
		out->newest_ms = file->name.timestamp_ms;
	}
	if (store->has_writer) {
		out->files++;
		if (store->writer_name.timestamp_ms < out->oldest_ms)
			out->oldest_ms = store->writer_name.timestamp_ms;
		out->newest_ms = store->writer_name.timestamp_ms;
	}
	lock_drop(&store->lock);
}

/* ---- Writing ------------------------------------------------------------------------------- */

char *
hints_path(const struct hints *hints, const struct hints_name *name, const char *suffix)
{
	char text[HINTS_NAME_SIZE];

	return xasprintf("%s/%s", hints->directory, hints_name_format(name, suffix, text));
}

static void
hints_store_append(struct hints_store *store, struct hints_file *file)
{
	struct hints_file **link = &store->files;

	lock_take(&store->lock);
	while (*link != NULL && (*link)->name.timestamp_ms < file->name.timestamp_ms)
		link = &(*link)->next;
	file->next = *link;
	*link = file;
	lock_drop(&store->lock);
}

static int
hints_store_open_writer(struct hints_store *store, struct error *err)
{
	struct hints *hints = store->hints;
	struct hints_name name = {.host_id = store->host_id, .version = HINTS_VERSION};
	struct buffer header;
	char *path;
	int rc;

	name.timestamp_ms = hints_now_ms(hints);
	if (name.timestamp_ms <= store->last_timestamp_ms)
		name.timestamp_ms = store->last_timestamp_ms + 1;
	store->last_timestamp_ms = name.timestamp_ms;
	path = hints_path(hints, &name, ".hints");
	buffer_init(&header);
	hints_header_encode(&store->host_id, &header);
	rc = buffer_check(&header, err);
	if (rc == 0)
		rc = files_open(hints->env->files, path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE,
		    &store->writer, err);
	if (rc == 0)
		rc = file_write(store->writer, header.data, header.size, err);
	if (rc == 0)
		rc = files_sync_folder(hints->env->files, hints->directory, err);
	if (rc == 0) {
		store->writer_size = header.size;
		store->writer_crc = crc32_update(0, header.data, header.size);
		atomic_fetch_add(&store->bytes, header.size);
		lock_take(&store->lock);
		store->writer_name = name;
		store->has_writer = true;
		lock_drop(&store->lock);
	} else if (store->writer != NULL) {
		file_close(store->writer);
		store->writer = NULL;
		files_unlink(hints->env->files, path, NULL);
	}
	buffer_fini(&header);
	free(path);
	return rc;
}

/* The file that was written joins those that wait. */
static void
hints_store_close_writer(struct hints_store *store, bool is_finished)
{
	struct hints_file *file = xzalloc(sizeof(*file));

	file->name = store->writer_name;
	file->size = store->writer_size;
	file->position = HINTS_HEADER_SIZE;
	file->is_finished = is_finished;
	file_close(store->writer);
	store->writer = NULL;
	hints_store_append(store, file);
	lock_take(&store->lock);
	store->has_writer = false;
	lock_drop(&store->lock);
}

void
hints_store_finish_file(struct hints_store *store)
{
	struct files *files = store->hints->env->files;
	struct file *file = NULL;
	struct error err;
	char text[16];
	char *path;
	int rc;

	if (store->writer == NULL)
		return;
	path = hints_path(store->hints, &store->writer_name, ".crc32");
	snprintf(text, sizeof(text), "%" PRIx32, store->writer_crc);
	rc = files_open(files, path, FILE_WRITE | FILE_CREATE | FILE_TRUNCATE, &file, &err);
	if (rc == 0)
		rc = file_write(file, text, strlen(text), &err);
	file_close(file);
	if (rc != 0)
		log_warn("the checksum of hints could not be written: %s", err.text);
	free(path);
	hints_store_close_writer(store, rc == 0);
}

/* Records of `flushing` are on the disk, or still there. */
static int
hints_store_write(struct hints_store *store, struct error *err)
{
	struct hints *hints = store->hints;
	size_t size = store->flushing.size;

	if (store->writer == NULL && hints_store_open_writer(store, err) != 0)
		return -1;
	if (file_write(store->writer, store->flushing.data, size, err) != 0 ||
	    file_sync(store->writer, err) != 0) {
		/* What the file holds behind this is unknown: it ends here, and the records go into another. */
		hints_store_close_writer(store, false);
		return -1;
	}
	store->writer_crc = crc32_update(store->writer_crc, store->flushing.data, size);
	store->writer_size += size;
	atomic_fetch_add(&store->bytes, size);
	atomic_fetch_sub(&hints->buffered, size);
	atomic_fetch_sub(&store->in_flight, store->flushing_in_flight);
	atomic_fetch_sub(&hints->in_flight, store->flushing_in_flight);
	store->flushing_in_flight = 0;
	buffer_clear(&store->flushing);
	if (store->flushing.capacity > 2 * HINTS_BUFFER_FLUSH) {
		buffer_fini(&store->flushing);
		buffer_init(&store->flushing);
	}
	if (store->writer_size >= atomic_load(&hints->settings.file_size_max))
		hints_store_finish_file(store);
	return 0;
}

static void
hints_wake(struct hints_waiter *waiters, bool has_failed)
{
	while (waiters != NULL) {
		struct hints_waiter *next = waiters->next;
		struct hints_wait *wait = waiters->wait;
		struct error err;

		free(waiters);
		waiters = next;
		if (has_failed)
			atomic_store(&wait->has_failed, true);
		if (atomic_fetch_sub(&wait->pending, 1) != 1)
			continue;
		if (!atomic_load(&wait->has_failed)) {
			wait->on_done(wait, NULL);
			continue;
		}
		error_set(&err, ERROR_IO, "hints could not be written");
		wait->on_done(wait, &err);
	}
}

int
hints_store_flush(struct hints_store *store, struct error *err)
{
	struct hints_waiter *waiters;
	struct buffer empty;
	int rc = 0;

	/* What could not be written the last time. */
	if (store->flushing.size > 0)
		rc = hints_store_write(store, err);
	lock_take(&store->lock);
	waiters = store->waiters;
	store->waiters = NULL;
	if (rc == 0) {
		empty = store->flushing;
		store->flushing = store->active;
		store->active = empty;
		store->flushing_in_flight = store->active_in_flight;
		store->active_in_flight = 0;
		store->is_dirty = store->flushing.size > 0;
	}
	lock_drop(&store->lock);
	if (rc == 0 && store->flushing.size > 0)
		rc = hints_store_write(store, err);
	lock_take(&store->lock);
	store->is_dirty = store->flushing.size > 0 || store->active.size > 0;
	lock_drop(&store->lock);
	hints_wake(waiters, rc != 0);
	return rc;
}

/* ---- Files that wait ----------------------------------------------------------------------- */

struct hints_file *
hints_store_first(struct hints_store *store)
{
	struct hints_file *file = store->files;

	while (file != NULL && file->is_corrupt)
		file = file->next;
	return file;
}

static void
hints_unlink(struct hints *hints, const struct hints_name *name)
{
	static const char *const suffixes[] = {".position", ".crc32", ".hints"};
	struct error err;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *path = hints_path(hints, name, suffixes[i]);

		if (files_unlink(hints->env->files, path, &err) != 0)
			log_warn("hints that were delivered stay on the disk: %s", err.text);
		free(path);
	}
}

static void
hints_store_find_oldest(struct hints_store *store)
{
	int64_t oldest = INT64_MAX;

	lock_take(&store->lock);
	if (store->files != NULL)
		oldest = store->files->name.timestamp_ms;
	else if (store->has_writer)
		oldest = store->writer_name.timestamp_ms;
	else if (store->is_dirty)
		oldest = hints_now_ms(store->hints);
	lock_drop(&store->lock);
	atomic_store_explicit(&store->oldest_ms, oldest, memory_order_relaxed);
}

void
hints_store_remove_file(struct hints_store *store, struct hints_file *file)
{
	struct hints_file **link = &store->files;

	lock_take(&store->lock);
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	lock_drop(&store->lock);
	hints_unlink(store->hints, &file->name);
	atomic_fetch_sub(&store->bytes, file->size);
	free(file);
	hints_store_find_oldest(store);
}

void
hints_store_save_position(struct hints_store *store, const struct hints_file *file)
{
	struct hints *hints = store->hints;
	uint8_t bytes[HINTS_POSITION_SIZE];
	char *path = hints_path(hints, &file->name, ".position");
	struct error err;

	hints_position_encode(file->position, bytes);
	/* Without it the other node gets again what it has, which does no harm. */
	if (files_replace(hints->env->files, path, slice_of(bytes, sizeof(bytes)), &err) != 0)
		log_warn("how far hints were delivered could not be kept: %s", err.text);
	free(path);
}

static void
hints_store_delete(struct hints_store *store)
{
	struct hints *hints = store->hints;
	struct hints_waiter *waiters;
	size_t size = store->flushing.size;
	uint32_t in_flight = store->flushing_in_flight;

	store->deletes = false;
	hints_session_end(store, true);
	buffer_clear(&store->flushing);
	store->flushing_in_flight = 0;
	lock_take(&store->lock);
	size += store->active.size;
	in_flight += store->active_in_flight;
	buffer_clear(&store->active);
	store->active_in_flight = 0;
	store->is_dirty = false;
	waiters = store->waiters;
	store->waiters = NULL;
	lock_drop(&store->lock);
	atomic_fetch_sub(&hints->buffered, size);
	atomic_fetch_sub(&store->in_flight, in_flight);
	atomic_fetch_sub(&hints->in_flight, in_flight);
	if (store->writer != NULL)
		hints_store_close_writer(store, false);
	while (store->files != NULL)
		hints_store_remove_file(store, store->files);
	hints_store_find_oldest(store);
	hints_wake(waiters, false);
}

/* ---- Reading ------------------------------------------------------------------------------- */

int
hints_file_open(
    struct hints_store *store, const struct hints_file *file, struct file **out, struct error *err)
{
	struct hints *hints = store->hints;
	uint8_t header[HINTS_HEADER_SIZE];
	char *path = hints_path(hints, &file->name, ".hints");
	struct file *reader = NULL;
	struct uuid host_id;
	size_t got = 0;
	int rc;

	rc = files_open(hints->env->files, path, FILE_READ, &reader, err);
	if (rc == 0)
		rc = file_pread(reader, header, sizeof(header), 0, &got, err);
	if (rc == 0)
		rc = hints_header_decode(slice_of(header, got), &host_id, err);
	if (rc == 0 && !uuid_equal(&host_id, &store->host_id))
		rc = error_set(err, ERROR_CORRUPT, "a file of hints for another node");
	if (rc != 0) {
		file_close(reader);
		reader = NULL;
	}
	*out = reader;
	free(path);
	return rc;
}

static int
hints_read_at(
    struct file *reader, uint64_t position, size_t size, struct buffer *page, struct error *err)
{
	size_t got = 0;

	buffer_clear(page);
	if (!buffer_reserve(page, size))
		return buffer_check(page, err);
	if (file_pread(reader, page->data, size, position, &got, err) != 0)
		return -1;
	page->size = got;
	return 0;
}

int
hints_read_page(
    struct file *reader, uint64_t size, uint64_t position, struct buffer *page, struct error *err)
{
	uint64_t left = size > position ? size - position : 0;
	size_t want = left < HINTS_PAGE_SIZE ? (size_t)left : HINTS_PAGE_SIZE, need;
	struct reader records;
	struct hint hint;

	if (hints_read_at(reader, position, want, page, err) != 0)
		return -1;
	records = reader_of(buffer_slice(page));
	if (hints_next(&records, &hint, &need) != HINTS_SHORT || need <= want || need > left)
		return 0;
	return hints_read_at(reader, position, need, page, err);
}

/* Is there nothing in the file that anybody would still want? */
static bool
hints_file_is_expired(struct hints_store *store, const struct hints_file *file)
{
	int64_t now_ms = hints_now_ms(store->hints);
	uint64_t position = file->position;
	struct file *reader;
	struct buffer page;
	bool is_expired = true;

	if (hints_file_open(store, file, &reader, NULL) != 0)
		return false;
	buffer_init(&page);
	while (is_expired && position < file->size) {
		struct reader records;
		struct hints_tables tables;
		enum hints_next next;
		struct hint hint;
		size_t need, taken;

		if (hints_read_page(reader, file->size, position, &page, NULL) != 0)
			break;
		records = reader_of(buffer_slice(&page));
		while ((next = hints_next(&records, &hint, &need)) == HINTS_RECORD ||
		    next == HINTS_BAD_BODY)
			is_expired = is_expired && next == HINTS_RECORD &&
			    (!hints_look_at(store->hints, hint.mutation, &tables) ||
				!hint_is_live(&hint, &tables, now_ms));
		taken = page.size - reader_left(&records);
		if (taken == 0)
			break;
		position += taken;
	}
	is_expired = is_expired && position >= file->size;
	buffer_fini(&page);
	file_close(reader);
	return is_expired;
}

/* auto_hints_cleanup_enabled */
static void
hints_store_clean_up(struct hints_store *store)
{
	struct hints_file *file, *next;

	for (file = store->files; file != NULL; file = next) {
		next = file->next;
		if (file->is_corrupt || file == store->session.current ||
		    !hints_file_is_expired(store, file))
			continue;
		log_info(
		    "hints of %" PRId64 " have expired, and are removed", file->name.timestamp_ms);
		hints_store_remove_file(store, file);
	}
}

/* ---- Starting and ending ------------------------------------------------------------------- */

static void
hints_load_position(struct hints *hints, struct hints_file *file)
{
	char *path = hints_path(hints, &file->name, ".position");
	struct buffer bytes;
	uint64_t position;

	file->position = HINTS_HEADER_SIZE;
	buffer_init(&bytes);
	if (files_exists(hints->env->files, path) &&
	    files_read_all(hints->env->files, path, HINTS_POSITION_SIZE, &bytes, NULL) == 0 &&
	    hints_position_decode(buffer_slice(&bytes), &position) &&
	    position >= HINTS_HEADER_SIZE && position <= file->size)
		file->position = position;
	buffer_fini(&bytes);
	free(path);
}

static int
hints_load_file(struct hints *hints, const char *text, struct error *err)
{
	struct hints_store *store;
	struct hints_file *file;
	struct hints_name name;
	struct file_stat stat;
	char *path;
	int rc;

	if (!hints_name_parse(text, &name))
		return 0;
	path = hints_path(hints, &name, ".hints");
	rc = files_stat(hints->env->files, path, &stat, err);
	free(path);
	if (rc != 0)
		return -1;
	store = hints_store_get(hints, &name.host_id);
	file = xzalloc(sizeof(*file));
	file->name = name;
	file->size = stat.size;
	path = hints_path(hints, &name, ".crc32");
	file->is_finished = files_exists(hints->env->files, path);
	free(path);
	hints_load_position(hints, file);
	atomic_fetch_add(&store->bytes, file->size);
	hints_store_append(store, file);
	hints_note_oldest(store, name.timestamp_ms);
	if (name.timestamp_ms > store->last_timestamp_ms)
		store->last_timestamp_ms = name.timestamp_ms;
	return 0;
}

int
hints_load(struct hints *hints, struct error *err)
{
	struct file_list list;
	int rc;

	if (files_mkdir(hints->env->files, hints->directory, err) != 0 ||
	    files_list(hints->env->files, hints->directory, &list, err) != 0)
		return -1;
	rc = 0;
	for (size_t i = 0; i < list.count && rc == 0; i++)
		rc = hints_load_file(hints, list.entries[i].name, err);
	file_list_fini(&list);
	return rc;
}

void
hints_store_free(struct hints_store *store)
{
	struct hints_file *file;
	struct error err;

	if (hints_store_flush(store, &err) != 0)
		log_error("hints for a node are lost: %s", err.text);
	hints_store_finish_file(store);
	hints_session_fini(&store->session);
	while ((file = store->files) != NULL) {
		store->files = file->next;
		free(file);
	}
	buffer_fini(&store->active);
	buffer_fini(&store->flushing);
	lock_fini(&store->lock);
	free(store);
}
