/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/commitlog.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/commitlog_internal.h"

/* Segments that were emptied and are kept for reuse: their pages are in memory already. */
enum { COMMITLOG_RECYCLED_MAX = 4 };

/* The longest that a first waiter of group commit waits for company, µs. It grows with the time that
 * a sync takes, since writes that arrive meanwhile have to wait for the next one anyway. */
enum { COMMITLOG_GROUP_WAIT_US_MIN = 100 };

/* While a compressed segment finds no space. */
enum { COMMITLOG_SPACE_RETRY_MS = 100 };

void
commitlog_wake(struct commitlog *log)
{
	pthread_mutex_lock(&log->wake_mutex);
	log->is_woken = true;
	pthread_cond_signal(&log->wake_cond);
	pthread_mutex_unlock(&log->wake_mutex);
}

static void
commitlog_tell_failure(struct commitlog *log, const struct error *err)
{
	commitlog_failure_fn fn;
	void *context;

	lock_take(&log->segments_lock);
	fn = log->on_failure;
	context = log->failure_context;
	lock_drop(&log->segments_lock);
	if (fn != NULL)
		fn(context, err);
}

static void
commitlog_fail(struct commitlog *log, const struct error *err)
{
	if (atomic_load(&log->has_failed))
		return;
	if (log->options.commitlog_ignores_failures) {
		log_error(
		    "commit log: %s. commit_failure_policy is ignore: the writes that waited for "
		    "this have failed, others are taken",
		    err->text);
		commitlog_tell_failure(log, err);
		return;
	}
	log->failure = *err;
	atomic_store(&log->has_failed, true);
	log_error("commit log: %s. Writes are refused from now on, nothing acknowledged is lost; "
		  "mend the disk that holds %s and restart the node",
	    err->text, log->directory);
	commitlog_tell_failure(log, err);
}

static int
commitlog_refuse(const struct commitlog *log, struct error *err)
{
	return error_set(err, ERROR_IO,
	    "the commit log has failed (%s); the node takes no writes until it is restarted",
	    log->failure.text);
}

/* A fresh or recycled segment with the next id. Called with or without segments_lock held by nobody else. */
static int
commitlog_make_segment(struct commitlog *log, struct segment **out, struct error *err)
{
	struct segment *old = NULL;
	uint64_t id;
	uint32_t slots;
	int rc;

	lock_take(&log->segments_lock);
	id = (uint64_t)(env_wall_us(log->env) / 1000);
	if (id <= log->last_id)
		id = log->last_id + 1;
	log->last_id = id;
	slots = log->slots_wanted;
	if (log->recycled != NULL) {
		old = log->recycled;
		log->recycled = old->next;
		log->recycled_count--;
		log->total_bytes -= old->size;
	}
	lock_drop(&log->segments_lock);

	if (old != NULL)
		rc = segment_recycle(old, log->directory, id, slots, out, err);
	else
		rc = segment_create(log->env, log->directory, id,
		    (uint32_t)log->options.commitlog_segment_bytes, slots,
		    log->options.commitlog_sync == COMMITLOG_SYNC_PERIODIC && log->sections == NULL,
		    log->sections, out, err);
	return rc;
}

/* Put a made segment at the end of the list and let writers use it. segments_lock held. */
static void
commitlog_activate_locked(struct commitlog *log, struct segment *segment)
{
	struct segment **link = &log->segments;

	lock_assert_held(&log->segments_lock);
	while (*link != NULL)
		link = &(*link)->next;
	*link = segment;
	segment->next = NULL;
	segment->counted = segment->size;
	log->total_bytes += segment->counted;
	/* Release: whoever loads the pointer sees a segment that is ready. */
	atomic_store_explicit(&log->active, segment, memory_order_release);
}

/*
 * Have a spare segment. One is made at a time and only while there is none: segments become active in the
 * order of their ids, which is what positions are compared by.
 */
static int
commitlog_fill_spare(struct commitlog *log, struct error *err)
{
	struct segment *segment = NULL;
	bool is_needed;
	int rc = 0;

	lock_take(&log->make_lock);
	lock_take(&log->segments_lock);
	if (log->spare != NULL && log->spare->slot_count < log->slots_wanted) {
		segment = log->spare; /* too few slots for the tables there are now */
		log->spare = NULL;
	}
	is_needed = log->spare == NULL;
	lock_drop(&log->segments_lock);
	segment_delete(segment, NULL);
	if (is_needed && env_monotonic_ns(log->env) < atomic_load(&log->retry_space_ns)) {
		rc = error_set(err, ERROR_NO_SPACE,
		    "no space for a new commit log segment in %s: free some and writes go on",
		    log->directory);
	} else if (is_needed) {
		rc = commitlog_make_segment(log, &segment, err);
		if (rc != 0 && err->code == ERROR_IO)
			commitlog_tell_failure(log, err);
		if (rc != 0)
			atomic_store(&log->retry_space_ns, env_monotonic_ns(log->env) + 100000000);
		lock_take(&log->segments_lock);
		if (rc == 0)
			log->spare = segment;
		lock_drop(&log->segments_lock);
	}
	lock_drop(&log->make_lock);
	return rc;
}

/*
 * `full` cannot take a record: make the next segment active unless somebody did already. Usually the
 * spare is there and this is a pointer swap.
 */
static int
commitlog_advance(struct commitlog *log, struct segment *full, struct error *err)
{
	for (;;) {
		struct segment *segment;

		lock_take(&log->segments_lock);
		if (atomic_load(&log->active) != full) {
			lock_drop(&log->segments_lock);
			return 0;
		}
		if (log->spare != NULL && log->spare->slot_count >= log->slots_wanted) {
			segment = log->spare;
			log->spare = NULL;
			segment_seal(full);
			commitlog_activate_locked(log, segment);
			if (log->sections != NULL)
				atomic_store(&log->has_sealed, true);
			lock_drop(&log->segments_lock);
			commitlog_wake(log); /* to make the next spare */
			commitlog_archiver_wake(log);
			return 0;
		}
		lock_drop(&log->segments_lock);
		if (commitlog_fill_spare(log, err) != 0)
			return -1;
	}
}

int
commitlog_add(struct commitlog *log, struct slice record, const uint32_t *table_slots,
    uint32_t table_count, struct commitlog_position *out, struct error *err)
{
	uint32_t slot_max = 0;

	if (atomic_load_explicit(&log->has_failed, memory_order_relaxed))
		return commitlog_refuse(log, err);
	if (atomic_load_explicit(&log->lacks_space, memory_order_relaxed))
		return error_set(err, ERROR_NO_SPACE,
		    "no space for the commit log in %s: free some and writes go on",
		    log->directory);
	if (record.size > log->options.max_mutation_bytes)
		return error_set(err, ERROR_INVALID,
		    "Rejected an oversized mutation (%zu/%" PRIu64 ")", record.size,
		    log->options.max_mutation_bytes);
	for (uint32_t i = 0; i < table_count; i++)
		if (table_slots[i] > slot_max)
			slot_max = table_slots[i];

	for (;;) {
		struct segment *segment = atomic_load_explicit(&log->active, memory_order_acquire);
		uint32_t offset;

		if (slot_max < segment->slot_count &&
		    segment_claim(segment, record.size, &offset)) {
			/* Dirty before written: a segment is deleted only when nobody is between. */
			uint32_t end = offset + segment_record_size(record.size);

			out->segment_id = (int64_t)segment->id;
			out->position = (int32_t)end;
			for (uint32_t i = 0; i < table_count; i++)
				segment_mark_dirty(segment, table_slots[i], end);
			segment_write(segment, offset, record);
			atomic_fetch_add_explicit(&log->completed, 1, memory_order_relaxed);
			return 0;
		}
		if (slot_max >= segment->slot_count) {
			lock_take(&log->segments_lock);
			if (log->slots_wanted <= slot_max)
				log->slots_wanted = slot_max + SEGMENT_SLOTS_SPARE;
			lock_drop(&log->segments_lock);
		}
		if (commitlog_advance(log, segment, err) != 0)
			return -1;
	}
}

bool
commitlog_acknowledge(struct commitlog *log, struct commitlog_waiter *waiter)
{
	struct commitlog_waiter *head;
	unsigned long pending;

	if (log->options.commitlog_sync == COMMITLOG_SYNC_PERIODIC) {
		uint64_t began = atomic_load_explicit(&log->sync_began_ns, memory_order_relaxed);
		uint64_t lag =
		    (uint64_t)log->options.periodic_commitlog_sync_lag_block_ms * 1000000;

		if (began == 0 || env_monotonic_ns(log->env) - began < lag)
			return true;
	}
	pending = atomic_fetch_add(&log->pending, 1) + 1;
	head = atomic_load(&log->waiters);
	do {
		waiter->next = head;
	} while (!atomic_compare_exchange_weak(&log->waiters, &head, waiter));
	/* Sequential consistency: one of the two sees the other, see commitlog_gather(). */
	if (head == NULL || pending == atomic_load(&log->enough))
		commitlog_wake(log);
	return false;
}

struct commitlog_position
commitlog_current(struct commitlog *log)
{
	struct segment *segment = atomic_load(&log->active);

	return (struct commitlog_position){(int64_t)segment->id, (int32_t)segment_claimed(segment)};
}

/* A compressed segment is full and whole on disk: it takes less than it might have. */
static void
commitlog_count_compressed(struct commitlog *log, struct segment *segment)
{
	lock_take(&log->segments_lock);
	log->total_bytes -= segment->counted - segment->file_end;
	segment->counted = segment->file_end;
	lock_drop(&log->segments_lock);
}

/* Sync all that was added before the call. sync_lock held. */
static int
commitlog_sync_locked(struct commitlog *log, struct error *err)
{
	struct segment *segment, *last;
	uint64_t began = env_monotonic_ns(log->env);
	int rc = 0;

	lock_assert_held(&log->sync_lock);
	atomic_store(&log->sync_began_ns, began);
	lock_take(&log->segments_lock);
	segment = log->segments;
	lock_drop(&log->segments_lock);
	/* Segments leave the list under sync_lock only, so walking it without segments_lock is safe up
	 * to the one that is active now. */
	last = atomic_load(&log->active);
	for (struct segment *each = segment; each != NULL; each = each->next) {
		each->sync_target = segment_claimed(each);
		if (each == last)
			break;
	}
	/* Whoever claimed below these targets has finished writing after this. */
	op_order_barrier(log->order);
	for (; segment != NULL; segment = segment->next) {
		rc = segment_sync(segment, err);
		if (rc == 0 && segment->sections != NULL && segment->memory == NULL)
			commitlog_count_compressed(log, segment);
		if (rc != 0 || segment == last)
			break;
	}
	atomic_store(&log->sync_began_ns, 0);
	log->last_sync_us = (env_monotonic_ns(log->env) - began) / 1000;
	histogram_add(&log->sync_us, log->last_sync_us);
	if (rc != 0 && err->code == ERROR_NO_SPACE && log->sections != NULL) {
		if (!atomic_exchange(&log->lacks_space, true))
			log_error(
			    "commit log: %s. Writes are refused until there is space", err->text);
	} else if (rc != 0) {
		commitlog_fail(log, err);
	} else if (atomic_exchange(&log->lacks_space, false)) {
		log_info("commit log: there is space again, writes are accepted");
	}
	return rc;
}

/* Answer the waiters whose records a sync that began after they queued has covered. */
static void
commitlog_answer(struct commitlog *log, struct commitlog_waiter *list, const struct error *err)
{
	struct commitlog_waiter *oldest_first = NULL;

	while (list != NULL) {
		struct commitlog_waiter *waiter = list;
		list = waiter->next;
		waiter->next = oldest_first;
		oldest_first = waiter;
	}
	while (oldest_first != NULL) {
		struct commitlog_waiter *waiter = oldest_first;
		oldest_first = waiter->next;
		atomic_fetch_sub_explicit(&log->pending, 1, memory_order_relaxed);
		waiter->on_synced(waiter, err);
	}
}

int
commitlog_sync(struct commitlog *log, struct error *err)
{
	struct commitlog_waiter *waiters;
	struct error local;
	int rc;

	if (atomic_load(&log->has_failed))
		return commitlog_refuse(log, err);
	lock_take(&log->sync_lock);
	waiters = atomic_exchange(&log->waiters, NULL);
	rc = commitlog_sync_locked(log, err != NULL ? err : &local);
	log->crowd = atomic_load_explicit(&log->pending, memory_order_relaxed);
	lock_drop(&log->sync_lock);
	commitlog_answer(log, waiters, rc == 0 ? NULL : (err != NULL ? err : &local));
	return rc;
}

/* May it go? segments_lock held. */
static bool
commitlog_is_done_locked(struct commitlog *log, const struct segment *segment)
{
	return segment != atomic_load(&log->active) && segment_is_clean(segment) &&
	    (log->archiver.command == NULL || segment->is_archived);
}

/* Delete segments in which every table is clean and that are archived where that is asked for. */
static void
commitlog_collect(struct commitlog *log)
{
	struct segment *clean = NULL, **link;
	bool found = false;

	lock_take(&log->sync_lock);
	lock_take(&log->segments_lock);
	for (struct segment *each = log->segments; each != NULL; each = each->next)
		if (commitlog_is_done_locked(log, each))
			found = true;
	lock_drop(&log->segments_lock);
	if (!found) {
		lock_drop(&log->sync_lock);
		return;
	}
	/* A writer may have claimed in it just before it was sealed: let it finish, look again. */
	op_order_barrier(log->order);
	lock_take(&log->segments_lock);
	link = &log->segments;
	while (*link != NULL) {
		struct segment *each = *link;

		if (!commitlog_is_done_locked(log, each)) {
			link = &each->next;
			continue;
		}
		*link = each->next;
		log->total_bytes -= each->counted;
		each->next = clean;
		clean = each;
	}
	lock_drop(&log->segments_lock);
	lock_drop(&log->sync_lock);

	while (clean != NULL) {
		struct segment *each = clean;
		struct error err;

		clean = each->next;
		if (log->archiver.command == NULL)
			segment_empty(each);
		lock_take(&log->segments_lock);
		if (log->archiver.command == NULL && log->sections == NULL &&
		    log->recycled_count < COMMITLOG_RECYCLED_MAX &&
		    each->size == log->options.commitlog_segment_bytes) {
			each->next = log->recycled;
			log->recycled = each;
			log->recycled_count++;
			log->total_bytes += each->size;
			each = NULL;
		}
		lock_drop(&log->segments_lock);
		if (each != NULL && segment_delete(each, &err) != 0)
			log_warn("commit log: %s", err.text);
	}
}

/* Tables that keep the oldest segments alive while the log is over its total. */
static void
commitlog_relieve(struct commitlog *log)
{
	uint32_t *slots;
	size_t count = 0, capacity;
	uint64_t over;

	lock_take(&log->segments_lock);
	if (log->on_pressure == NULL || log->total_bytes <= log->options.commitlog_total_bytes) {
		lock_drop(&log->segments_lock);
		return;
	}
	over = log->total_bytes - log->options.commitlog_total_bytes;
	capacity = log->slots_wanted + SEGMENT_SLOTS_SPARE;
	slots = xcalloc(capacity, sizeof(*slots));
	for (struct segment *each = log->segments;
	     each != NULL && each != atomic_load(&log->active); each = each->next) {
		for (uint32_t slot = 0; slot < each->slot_count && count < capacity; slot++) {
			bool known = false;

			if (!segment_is_dirty(each, slot))
				continue;
			for (size_t i = 0; i < count && !known; i++)
				known = slots[i] == slot;
			if (!known)
				slots[count++] = slot;
		}
		if (over <= each->size)
			break;
		over -= each->size;
	}
	lock_drop(&log->segments_lock);
	if (count > 0)
		log->on_pressure(log->pressure_context, slots, count);
	free(slots);
}

/* Keep one segment ready, so that writers never wait for a file to be made. */
static void
commitlog_prepare_spare(struct commitlog *log)
{
	char left_out[LOG_LIMIT_TEXT_MAX];
	struct error err;
	bool is_needed;

	lock_take(&log->segments_lock);
	is_needed = log->spare == NULL;
	lock_drop(&log->segments_lock);
	if (!is_needed || env_monotonic_ns(log->env) < atomic_load(&log->retry_space_ns))
		return;
	if (commitlog_fill_spare(log, &err) == 0)
		log_limit_reset(&log->spare_error_log);
	else if (log_limit_take(&log->spare_error_log, env_monotonic_ns(log->env), left_out))
		log_error("commit log: %s%s", err.text, left_out);
}

/* Sleep until woken or until `timeout_us` (0: no limit) passed. Returns false when stopping. */
static bool
commitlog_sleep(struct commitlog *log, uint64_t timeout_us)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(timeout_us / 1000000);
	until.tv_nsec += (long)(timeout_us % 1000000) * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&log->wake_mutex);
	while (!log->is_woken && !log->is_stopping) {
		if (timeout_us == 0)
			pthread_cond_wait(&log->wake_cond, &log->wake_mutex);
		else if (pthread_cond_timedwait(&log->wake_cond, &log->wake_mutex, &until) != 0)
			break;
	}
	log->is_woken = false;
	go_on = !log->is_stopping;
	pthread_mutex_unlock(&log->wake_mutex);
	return go_on;
}

/*
 * Group commit: give others a chance to share the sync, never longer than the configured window. Clients that
 * wait for their answers come back with their next write. Where a third of those that waited at the end of the last
 * sync are here, there is no more waiting: while these are synced the others are answered and write again, so that
 * neither the disk nor the processor waits for the other.
 */
static void
commitlog_gather(struct commitlog *log)
{
	uint64_t window_us = (uint64_t)log->options.commitlog_sync_group_window_ms * 1000;
	uint64_t wait_us = log->last_sync_us / 2;
	unsigned long enough;

	lock_take(&log->sync_lock);
	enough = log->crowd / 3;
	if (enough == 0 && log->crowd != 0)
		enough = 1;
	lock_drop(&log->sync_lock);
	if (wait_us < COMMITLOG_GROUP_WAIT_US_MIN)
		wait_us = COMMITLOG_GROUP_WAIT_US_MIN;
	if (wait_us > window_us)
		wait_us = window_us;
	pthread_mutex_lock(&log->wake_mutex);
	log->is_woken = false; /* by the first waiter; what else it was is looked at afterwards */
	pthread_mutex_unlock(&log->wake_mutex);
	atomic_store(&log->enough, enough);
	/* Who came before it was said has not called. */
	if (enough == 0 || atomic_load(&log->pending) < enough)
		(void)commitlog_sleep(log, wait_us);
	atomic_store(&log->enough, 0);
}

static void *
commitlog_thread(void *argument)
{
	struct commitlog *log = argument;
	uint64_t period_ns = (uint64_t)log->options.commitlog_sync_period_ms * 1000000;
	uint64_t next_sync = env_monotonic_ns(log->env) + period_ns;
	bool go_on = true;

	log_thread_name("COMMIT-LOG");
	while (go_on) {
		bool has_waiters = atomic_load(&log->waiters) != NULL;
		uint64_t now = env_monotonic_ns(log->env);
		bool lacks_space = atomic_load(&log->lacks_space);
		struct error err;

		if (lacks_space)
			go_on = commitlog_sleep(log, COMMITLOG_SPACE_RETRY_MS);
		else if (!has_waiters && now < next_sync)
			go_on = commitlog_sleep(log, (next_sync - now) / 1000 + 1);
		has_waiters = atomic_load(&log->waiters) != NULL;
		if (has_waiters && log->options.commitlog_sync == COMMITLOG_SYNC_GROUP && go_on)
			commitlog_gather(log);
		commitlog_prepare_spare(log);
		now = env_monotonic_ns(log->env);
		/* A compressed segment is in memory until it is synced: not longer than it must. */
		if (atomic_exchange(&log->has_sealed, false) || has_waiters || lacks_space ||
		    now >= next_sync || !go_on) {
			if (atomic_load(&log->has_failed))
				commitlog_answer(
				    log, atomic_exchange(&log->waiters, NULL), &log->failure);
			else
				(void)commitlog_sync(log, &err);
			next_sync = env_monotonic_ns(log->env) + period_ns;
		}
		commitlog_collect(log);
		commitlog_relieve(log);
	}
	return NULL;
}

void
commitlog_discard(struct commitlog *log, uint32_t slot, struct commitlog_position upto)
{
	bool has_clean = false;

	lock_take(&log->segments_lock);
	for (struct segment *each = log->segments;
	     each != NULL && (int64_t)each->id <= upto.segment_id; each = each->next) {
		segment_mark_clean(each, slot,
		    (int64_t)each->id < upto.segment_id ? UINT32_MAX : (uint32_t)upto.position);
		if (each != atomic_load(&log->active) && segment_is_clean(each))
			has_clean = true;
	}
	lock_drop(&log->segments_lock);
	if (has_clean)
		commitlog_wake(log);
}

void
commitlog_forget_table(struct commitlog *log, uint32_t slot)
{
	commitlog_discard(log, slot, (struct commitlog_position){INT64_MAX, INT32_MAX});
}

void
commitlog_on_failure(struct commitlog *log, commitlog_failure_fn fn, void *context)
{
	lock_take(&log->segments_lock);
	log->on_failure = fn;
	log->failure_context = context;
	lock_drop(&log->segments_lock);
}

void
commitlog_on_pressure(struct commitlog *log, commitlog_pressure_fn fn, void *context)
{
	lock_take(&log->segments_lock);
	log->on_pressure = fn;
	log->pressure_context = context;
	lock_drop(&log->segments_lock);
}

/* What lies there from the last run, archived, and what restore_command brings back. */
static int
commitlog_find_segments(struct commitlog *log, struct error *err)
{
	struct segment_file *files;
	uint32_t restored;
	size_t count;

	if (segment_list(log->env, log->directory, &files, &count, err) != 0)
		return -1;
	log->replay_files = files;
	log->replay_count = count;
	commitlog_archive_found(log, files, count);
	if (commitlog_restore(log, &restored, err) != 0)
		return -1;
	if (restored == 0)
		return 0;
	if (segment_list(log->env, log->directory, &log->replay_files, &log->replay_count, err) !=
	    0) {
		log->replay_files = files; /* freed with the log */
		return -1;
	}
	/* What was not there before is from the archive. */
	for (size_t i = 0, k = 0; i < log->replay_count; i++) {
		struct segment_file *file = &log->replay_files[i];

		while (k < count && files[k].id < file->id)
			k++;
		file->is_restored = k == count || files[k].id != file->id;
		if (!file->is_restored)
			file->is_archived = files[k].is_archived;
	}
	segment_list_free(files, count);
	return 0;
}

int
commitlog_open(const struct store_options *options, struct env *env, struct op_order *order,
    struct commitlog **out, struct error *err)
{
	struct commitlog *log = xzalloc(sizeof(*log));
	struct segment *first;
	pthread_condattr_t attributes;

	log->env = env;
	log->options = *options;
	log->directory = xstrdup(options->commitlog_directory);
	log->order = order;
	log->slots_wanted = SEGMENT_SLOTS_SPARE;
	lock_init(&log->segments_lock, "commitlog.segments", RANK_COMMITLOG_SEGMENTS);
	lock_init(&log->make_lock, "commitlog.make", RANK_COMMITLOG_MAKE);
	lock_init(&log->sync_lock, "commitlog.sync", RANK_COMMITLOG_SYNC);
	pthread_mutex_init(&log->wake_mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&log->wake_cond, &attributes);
	pthread_condattr_destroy(&attributes);
	histogram_init(&log->sync_us, 90);
	log->archiver.command = log->options.archive_command;

	if (options->commitlog_compressor != NULL && *options->commitlog_compressor != '\0') {
		log->sections = segment_sections_new(
		    options->commitlog_compressor, options->commitlog_compression_level, err);
		if (log->sections == NULL)
			goto failed;
	}
	if (files_mkdir(env->files, log->directory, err) != 0)
		goto failed;
	if (commitlog_find_segments(log, err) != 0)
		goto failed;
	if (log->replay_count > 0)
		log->last_id = log->replay_files[log->replay_count - 1].id;
	for (size_t i = 0; i < log->replay_count; i++)
		log->total_bytes += log->replay_files[i].size;
	if (commitlog_make_segment(log, &first, err) != 0)
		goto failed;
	lock_take(&log->segments_lock);
	commitlog_activate_locked(log, first);
	lock_drop(&log->segments_lock);
	if (pthread_create(&log->thread, NULL, commitlog_thread, log) != 0) {
		error_set(err, ERROR_NO_MEMORY, "cannot start the commit log's thread");
		goto failed;
	}
	log->has_thread = true;
	if (commitlog_archiver_start(log, err) != 0)
		goto failed;
	*out = log;
	return 0;
failed:
	commitlog_close(log);
	return -1;
}

void
commitlog_close(struct commitlog *log)
{
	if (log == NULL)
		return;
	if (log->has_thread) {
		pthread_mutex_lock(&log->wake_mutex);
		log->is_stopping = true;
		pthread_cond_signal(&log->wake_cond);
		pthread_mutex_unlock(&log->wake_mutex);
		pthread_join(log->thread, NULL);
	}
	commitlog_archiver_stop(log);
	while (log->segments != NULL) {
		struct segment *each = log->segments;
		struct error err;

		log->segments = each->next;
		/* The last one stays even when it is clean: the next start takes its ids from there, so that
		 * positions rise although the wall clock may have been set back. */
		if (each->next != NULL && segment_is_clean(each) &&
		    !atomic_load(&log->has_failed) &&
		    (log->archiver.command == NULL || each->is_archived)) {
			if (segment_delete(each, &err) != 0)
				log_warn("commit log: %s", err.text);
		} else {
			if (segment_is_clean(each) && !atomic_load(&log->has_failed) &&
			    (log->archiver.command == NULL ||
				segment_claimed(each) <= SEGMENT_HEADER_SIZE))
				segment_empty(each);
			segment_abandon(each);
		}
	}
	if (log->spare != NULL)
		segment_delete(log->spare, NULL);
	while (log->recycled != NULL) {
		struct segment *each = log->recycled;

		log->recycled = each->next;
		segment_delete(each, NULL);
	}
	segment_sections_free(log->sections);
	segment_list_free(log->replay_files, log->replay_count);
	lock_fini(&log->segments_lock);
	lock_fini(&log->make_lock);
	lock_fini(&log->sync_lock);
	pthread_mutex_destroy(&log->wake_mutex);
	pthread_cond_destroy(&log->wake_cond);
	free(log->directory);
	free(log);
}

int
commitlog_replay(struct commitlog *log, commitlog_replay_fn each, void *context, struct error *err)
{
	struct segment_replay_totals totals = {0};
	uint64_t bytes = 0, done = 0, told = 0;

	for (size_t i = 0; i < log->replay_count; i++)
		bytes += log->replay_files[i].size;
	if (log->replay_count > 0)
		log_info("Replaying %zu commit log segments (%" PRIu64 " MiB) of %s",
		    log->replay_count, bytes >> 20, log->directory);
	for (size_t i = 0; i < log->replay_count; i++) {
		const struct segment_file *file = &log->replay_files[i];

		if (segment_replay(log->env, file, log->options.commitlog_ignore_replay_errors,
			each, context, &totals, err) != 0)
			return -1;
		done += file->size;
		if (done - told >= (UINT64_C(256) << 20) && i + 1 < log->replay_count) {
			told = done;
			log_info("Replay: %" PRIu64 " of %" PRIu64 " MiB, %" PRIu64 " mutations",
			    done >> 20, bytes >> 20, totals.taken);
		}
	}
	if (log->replay_count > 0)
		log_info("Replay finished: %" PRIu64 " mutations taken, %" PRIu64
			 " not needed, %" PRIu64 " torn at a tail",
		    totals.taken, totals.not_needed, totals.torn);
	return 0;
}

int
commitlog_replayed(struct commitlog *log, struct error *err)
{
	for (size_t i = 0; i < log->replay_count; i++) {
		if (commitlog_drop_replayed(log, &log->replay_files[i], err) != 0)
			return -1;
		lock_take(&log->segments_lock);
		log->total_bytes -= log->replay_files[i].size;
		lock_drop(&log->segments_lock);
	}
	segment_list_free(log->replay_files, log->replay_count);
	log->replay_files = NULL;
	log->replay_count = 0;
	return files_sync_folder(log->env->files, log->directory, err);
}

void
commitlog_stats(struct commitlog *log, struct commitlog_stats *out)
{
	*out = (struct commitlog_stats){0};
	lock_take(&log->segments_lock);
	out->total_bytes = log->total_bytes;
	for (struct segment *each = log->segments; each != NULL; each = each->next)
		out->segments++;
	lock_drop(&log->segments_lock);
	out->pending = atomic_load(&log->pending);
	out->completed = atomic_load(&log->completed);
	out->sync_us = &log->sync_us;
}
