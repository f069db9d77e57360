/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/compaction.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/compaction_merge.h"
#include "storage/lifecycle.h"
#include "storage/snapshot.h"
#include "storage/store_internal.h"

enum { RANK_COMPACTION = 30, COMPACTION_MERGED_MAX = 32 };

/* One task, from its pick to its end. */
struct compaction {
	struct compaction *next; /* in the manager's list */
	struct compaction_manager *manager;
	struct table_store *table;
	struct compaction_pick pick;
	struct uuid id;
	const char *kind;
	uint64_t total_bytes;
	atomic_ullong completed_bytes;
	atomic_bool is_stopped;
	/* Somebody waits (nodetool compact): the result. Guarded by the manager's lock. */
	bool *is_done;
	int *result;
	struct error *err;
};

struct compaction_manager {
	struct store *store;
	atomic_uint concurrent;
	atomic_ullong bytes_per_second;

	struct lock lock;
	struct compaction *running;
	uint32_t running_count;
	bool is_stopping;
	/* Throttle: when the next bytes may be taken, monotonic ns. */
	uint64_t next_free_ns;

	pthread_mutex_t done_mutex;
	pthread_cond_t done_cond;

	store_compaction_fn on_done;
	void *on_done_context;
};

/* A request to look at a table, on its way to the stage. */
struct compaction_request {
	struct compaction_manager *manager;
	struct table_store *table;
};

static void compaction_task_run(void *argument);

/* ---- choosing -------------------------------------------------------------------------------- */

/* Live tables that no task works on. Heap array of borrowed pointers, valid while `view` is held. */
static struct sstable **
compaction_candidates(struct table_store *table, const struct table_view *view, uint32_t *count)
{
	struct sstable **out = xcalloc(view->sstable_count + 1, sizeof(*out));

	*count = 0;
	lock_take(&table->view_lock);
	for (uint32_t i = 0; i < view->sstable_count; i++) {
		bool is_taken = false;

		for (uint32_t k = 0; k < table->compacting_count && !is_taken; k++)
			is_taken = table->compacting[k] == view->sstables[i];
		if (!is_taken)
			out[(*count)++] = view->sstables[i];
	}
	lock_drop(&table->view_lock);
	return out;
}

static void
compaction_mark(struct table_store *table, const struct compaction_pick *pick)
{
	lock_take(&table->view_lock);
	table->compacting = xrealloc(table->compacting,
	    (table->compacting_count + pick->count) * sizeof(*table->compacting));
	for (uint32_t i = 0; i < pick->count; i++)
		table->compacting[table->compacting_count++] = pick->sstables[i];
	lock_drop(&table->view_lock);
}

static void
compaction_unmark(struct table_store *table, const struct compaction_pick *pick)
{
	lock_take(&table->view_lock);
	for (uint32_t i = 0; i < pick->count; i++)
		for (uint32_t k = 0; k < table->compacting_count; k++)
			if (table->compacting[k] == pick->sstables[i]) {
				table->compacting[k] = table->compacting[--table->compacting_count];
				break;
			}
	lock_drop(&table->view_lock);
}

/* What the strategy wants done now; pick->count 0: nothing. The manager's lock is held: one choice at a time. */
static void
compaction_pick_locked(
    struct compaction_manager *manager, struct table_store *table, struct compaction_pick *out)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	int64_t now = env_wall_us(manager->store->env) / 1000000;
	struct table_view *view = table_view_acquire(table);
	struct sstable **candidates;
	uint32_t count;

	lock_assert_held(&manager->lock);
	*out = (struct compaction_pick){0};
	candidates = compaction_candidates(table, view, &count);
	switch (metadata->options.strategy) {
	case COMPACTION_LEVELED:
		compaction_pick_leveled(metadata, candidates, count, table->compacting,
		    table->compacting_count, now, out);
		break;
	case COMPACTION_TIME_WINDOW:
		compaction_pick_time_window(metadata, candidates, count, now, out);
		break;
	default:
		/* DateTieredCompactionStrategy too, which 4.1 still takes and 5.0 has removed. */
		compaction_pick_size_tiered(metadata, candidates, count, now, out);
		break;
	}
	free(candidates);
	table_view_release(view);
	if (out->count > 0)
		compaction_mark(table, out);
}

static struct compaction *
compaction_new_locked(struct compaction_manager *manager, struct table_store *table,
    struct compaction_pick pick, const char *kind)
{
	struct compaction *task = xzalloc(sizeof(*task));
	struct env *env = manager->store->env;

	lock_assert_held(&manager->lock);
	task->manager = manager;
	task->table = table;
	task->pick = pick;
	task->kind = kind;
	task->id = uuid_from_time(
	    uuid_ticks_of_unix_us(env_wall_us(env)), env_random_u64(env) | (UINT64_C(1) << 63));
	for (uint32_t i = 0; i < pick.count; i++)
		task->total_bytes += sstable_uncompressed_size(pick.sstables[i]);
	task->next = manager->running;
	manager->running = task;
	manager->running_count++;
	return task;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* Take `bytes` from the node's allowance; sleeps as long as that takes. */
static void
compaction_throttle(struct compaction *task, uint64_t bytes)
{
	struct compaction_manager *manager = task->manager;
	uint64_t rate = atomic_load(&manager->bytes_per_second), now, wait;

	if (rate == 0)
		return;
	now = env_monotonic_ns(manager->store->env);
	lock_take(&manager->lock);
	if (manager->next_free_ns < now)
		manager->next_free_ns = now;
	manager->next_free_ns += (uint64_t)((double)bytes / (double)rate * 1e9);
	wait = manager->next_free_ns - now;
	lock_drop(&manager->lock);
	while (wait > 1000000 && !atomic_load(&task->is_stopped)) {
		uint64_t slice = wait < 100000000 ? wait : 100000000;
		struct timespec pause = {0, (long)slice};

		nanosleep(&pause, NULL);
		wait -= slice;
	}
}

/* compaction_progress_fn: count, throttle, and stop when asked to. */
static int
compaction_progress(void *context, uint64_t bytes, struct error *err)
{
	struct compaction *task = context;

	atomic_fetch_add(&task->completed_bytes, bytes);
	if (atomic_load(&task->is_stopped))
		return error_set(err, ERROR_SHUTDOWN, "Compaction interrupted: %s of %s.%s",
		    task->kind, task->table->keyspace, task->table->name);
	compaction_throttle(task, bytes);
	return 0;
}

/* Only the level in Statistics.db changes. */
static int
compaction_move_level(struct compaction *task, struct error *err)
{
	return sstable_set_level(task->pick.sstables[0], task->pick.level, err);
}

static int
compaction_rewrite(struct compaction *task, struct compaction_result *result, struct error *err)
{
	struct table_store *table = task->table;
	struct store *store = task->manager->store;
	struct lifecycle *lifecycle = NULL;
	const char *directory;
	uint64_t bytes = 0;
	int rc;

	for (uint32_t i = 0; i < task->pick.count; i++)
		bytes += sstable_total_size(task->pick.sstables[i]);
	if (store->options.snapshot_before_compaction &&
	    snapshot_before_compaction(table, err) != 0)
		return -1;
	if (table_store_choose_directory(table, bytes, &directory, err) != 0 ||
	    lifecycle_begin(store->env, directory, "compaction", &lifecycle, err) != 0)
		return -1;
	rc =
	    compaction_merge(table, &task->pick, lifecycle, compaction_progress, task, result, err);
	if (rc == 0)
		rc = table_store_replace_sstables(table, lifecycle, task->pick.sstables,
		    task->pick.count, result->sstables, result->count, err);
	else
		lifecycle_finish(lifecycle);
	if (rc != 0)
		for (uint32_t i = 0; i < result->count; i++)
			sstable_unref(result->sstables[i]);
	return rc;
}

static void
compaction_report(struct compaction *task, const struct compaction_result *result, uint64_t began)
{
	struct store *store = task->manager->store;
	struct store_compaction_record record = {
	    .id = task->id,
	    .keyspace = task->table->keyspace,
	    .table = task->table->name,
	    .ended_ms = env_wall_us(store->env) / 1000,
	    .bytes_in = result->bytes_in,
	    .bytes_out = result->bytes_out,
	    .rows_merged = result->merged,
	    .rows_merged_count = COMPACTION_SOURCES_COUNTED,
	};

	atomic_fetch_add(&task->table->stats.bytes_compacted, result->bytes_out);
	log_info("compacted %" PRIu32 " SSTables of %s.%s: %" PRIu64 " to %" PRIu64
		 " bytes in %" PRIu64 " ms, level %" PRId32,
	    task->pick.count, task->table->keyspace, task->table->name, result->bytes_in,
	    result->bytes_out, (env_monotonic_ns(store->env) - began) / 1000000, task->pick.level);
	if (task->manager->on_done != NULL)
		task->manager->on_done(task->manager->on_done_context, &record);
}

/* Unlink the task from the running ones and tell who waits. */
static void
compaction_end(struct compaction *task, int rc, const struct error *err)
{
	struct compaction_manager *manager = task->manager;
	struct compaction **link;

	lock_take(&manager->lock);
	for (link = &manager->running; *link != task; link = &(*link)->next)
		;
	*link = task->next;
	manager->running_count--;
	if (task->is_done != NULL) {
		*task->is_done = true;
		*task->result = rc;
		if (rc != 0)
			*task->err = *err;
	}
	lock_drop(&manager->lock);
	pthread_mutex_lock(&manager->done_mutex);
	pthread_cond_broadcast(&manager->done_cond);
	pthread_mutex_unlock(&manager->done_mutex);
	compaction_pick_fini(&task->pick);
	free(task);
}

static void
compaction_execute(struct compaction *task)
{
	struct table_store *table = task->table;
	struct compaction_manager *manager = task->manager;
	struct compaction_result result = {0};
	uint64_t began = env_monotonic_ns(manager->store->env);
	struct error err;
	int rc;

	rc = task->pick.is_level_move ? compaction_move_level(task, &err)
				      : compaction_rewrite(task, &result, &err);
	compaction_unmark(table, &task->pick);
	if (rc == 0 && !task->pick.is_level_move)
		compaction_report(task, &result, began);
	else if (rc != 0 && err.code == ERROR_SHUTDOWN)
		log_info("%s", err.text);
	else if (rc != 0) {
		if (err.code == ERROR_IO || err.code == ERROR_NO_SPACE)
			store_note_failure(manager->store,
			    err.code == ERROR_NO_SPACE ? STORE_FAILURE_SPACE : STORE_FAILURE_WRITE,
			    NULL, &err);
		log_error("compaction of %s.%s failed, the SSTables stay as they were: %s",
		    table->keyspace, table->name, err.text);
	}
	compaction_result_fini(&result);
	compaction_end(task, rc, &err);
	if (rc == 0)
		compaction_check(manager, table);
}

static void
compaction_task_run(void *argument)
{
	compaction_execute(argument);
}

/* On CompactionExecutor: pick and run, unless enough run already (their ends look again). */
static void
compaction_request_run(void *argument)
{
	struct compaction_request *request = argument;
	struct compaction_manager *manager = request->manager;
	struct table_store *table = request->table;
	struct compaction_pick pick = {0};
	struct compaction *task = NULL;

	free(request);
	lock_take(&manager->lock);
	if (!manager->is_stopping && manager->running_count < atomic_load(&manager->concurrent) &&
	    !atomic_load(&table->is_dropped))
		compaction_pick_locked(manager, table, &pick);
	if (pick.count > 0)
		task = compaction_new_locked(manager, table, pick,
		    pick.count == 1 && !pick.is_level_move ? "TOMBSTONE_COMPACTION" : "COMPACTION");
	lock_drop(&manager->lock);
	if (task != NULL)
		compaction_execute(task);
}

void
compaction_check(struct compaction_manager *manager, struct table_store *table)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	struct compaction_request *request;

	if (atomic_load(&table->is_auto_compaction_disabled) ||
	    !metadata->options.is_compaction_enabled || atomic_load(&table->is_dropped))
		return;
	request = xzalloc(sizeof(*request));
	request->manager = manager;
	request->table = table;
	if (!store_submit(manager->store, "CompactionExecutor", compaction_request_run, request))
		free(request);
}

/* ---- the manager ------------------------------------------------------------------------------- */

struct compaction_manager *
compaction_manager_new(struct store *store)
{
	struct compaction_manager *manager = xzalloc(sizeof(*manager));

	manager->store = store;
	atomic_init(&manager->concurrent, store->options.concurrent_compactors);
	atomic_init(&manager->bytes_per_second, store->options.compaction_bytes_per_second);
	lock_init(&manager->lock, "compaction", RANK_COMPACTION);
	pthread_mutex_init(&manager->done_mutex, NULL);
	pthread_cond_init(&manager->done_cond, NULL);
	return manager;
}

void
compaction_manager_stop(struct compaction_manager *manager)
{
	if (manager == NULL)
		return;
	lock_take(&manager->lock);
	manager->is_stopping = true;
	for (struct compaction *task = manager->running; task != NULL; task = task->next)
		atomic_store(&task->is_stopped, true);
	lock_drop(&manager->lock);
	pthread_mutex_lock(&manager->done_mutex);
	for (;;) {
		uint32_t running;

		lock_take(&manager->lock);
		running = manager->running_count;
		lock_drop(&manager->lock);
		if (running == 0)
			break;
		pthread_cond_wait(&manager->done_cond, &manager->done_mutex);
	}
	pthread_mutex_unlock(&manager->done_mutex);
}

void
compaction_manager_free(struct compaction_manager *manager)
{
	if (manager == NULL)
		return;
	lock_fini(&manager->lock);
	pthread_mutex_destroy(&manager->done_mutex);
	pthread_cond_destroy(&manager->done_cond);
	free(manager);
}

/* ---- what store.h promises ----------------------------------------------------------------------- */

/* The running compactions of a table hold SSTables that a major one wants: take the lock when none runs. */
static void
compaction_lock_when_idle(struct compaction_manager *manager, const struct table_store *table)
{
	pthread_mutex_lock(&manager->done_mutex);
	for (;;) {
		const struct compaction *task;

		lock_take(&manager->lock);
		for (task = manager->running; task != NULL && task->table != table;)
			task = task->next;
		if (task == NULL)
			break;
		lock_drop(&manager->lock);
		pthread_cond_wait(&manager->done_cond, &manager->done_mutex);
	}
	pthread_mutex_unlock(&manager->done_mutex);
}

int
store_compact(struct store *store, struct table_store *table, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	struct compaction_pick pick = {0};
	struct compaction *task;
	struct table_view *view;
	struct sstable **candidates;
	bool is_done = false;
	uint32_t count;
	int rc = 0;

	if (store_flush(store, table, err) != 0)
		return -1;
	compaction_lock_when_idle(manager, table);
	view = table_view_acquire(table);
	candidates = compaction_candidates(table, view, &count);
	if (count > 0 && !manager->is_stopping) {
		pick.sstables = xcalloc(count, sizeof(*pick.sstables));
		pick.count = count;
		for (uint32_t i = 0; i < count; i++)
			pick.sstables[i] = sstable_ref(candidates[i]);
		if (metadata->options.strategy == COMPACTION_LEVELED) {
			pick.level = 1;
			for (uint32_t i = 0; i < count; i++)
				if (sstable_level(candidates[i]) > pick.level)
					pick.level = sstable_level(candidates[i]);
			pick.output_bytes_max = compaction_leveled_bytes(metadata);
		}
		compaction_mark(table, &pick);
	}
	free(candidates);
	table_view_release(view);
	if (pick.count == 0) {
		lock_drop(&manager->lock);
		return 0;
	}
	task = compaction_new_locked(manager, table, pick, "COMPACTION");
	task->is_done = &is_done;
	task->result = &rc;
	task->err = err;
	lock_drop(&manager->lock);
	if (!store_submit(store, "CompactionExecutor", compaction_task_run, task)) {
		compaction_unmark(table, &task->pick);
		task->is_done = NULL;
		compaction_end(task, -1, NULL);
		return error_set(err, ERROR_SHUTDOWN, "the node is stopping");
	}
	pthread_mutex_lock(&manager->done_mutex);
	for (;;) {
		bool has_ended;

		lock_take(&manager->lock);
		has_ended = is_done;
		lock_drop(&manager->lock);
		if (has_ended)
			break;
		pthread_cond_wait(&manager->done_cond, &manager->done_mutex);
	}
	pthread_mutex_unlock(&manager->done_mutex);
	return rc;
}

void
store_set_auto_compaction(struct store *store, struct table_store *table, bool is_enabled)
{
	atomic_store(&table->is_auto_compaction_disabled, !is_enabled);
	if (is_enabled)
		compaction_check(store->compactions, table);
}

bool
store_auto_compaction(const struct table_store *table)
{
	return !atomic_load(&table->is_auto_compaction_disabled) &&
	    atomic_load(&table->metadata)->options.is_compaction_enabled;
}

void
store_set_compaction_throughput(struct store *store, uint64_t bytes_per_second)
{
	atomic_store(&store->compactions->bytes_per_second, bytes_per_second);
}

uint64_t
store_compaction_throughput(const struct store *store)
{
	return atomic_load(&store->compactions->bytes_per_second);
}

void
store_set_concurrent_compactors(struct store *store, uint32_t count)
{
	atomic_store(&store->compactions->concurrent, count);
}

uint32_t
store_concurrent_compactors(const struct store *store)
{
	return atomic_load(&store->compactions->concurrent);
}

uint32_t
store_compactions(struct store *store, struct store_compaction *out, uint32_t capacity)
{
	struct compaction_manager *manager = store->compactions;
	uint32_t count = 0;

	lock_take(&manager->lock);
	for (const struct compaction *task = manager->running; task != NULL; task = task->next) {
		if (count < capacity) {
			struct store_compaction *copy = &out[count];

			*copy = (struct store_compaction){.id = task->id,
			    .kind = task->kind,
			    .completed_bytes = atomic_load(&task->completed_bytes),
			    .total_bytes = task->total_bytes,
			    .sstables = task->pick.count};
			snprintf(
			    copy->keyspace, sizeof(copy->keyspace), "%s", task->table->keyspace);
			snprintf(copy->table, sizeof(copy->table), "%s", task->table->name);
		}
		count++;
	}
	lock_drop(&manager->lock);
	return count;
}

uint32_t
store_pending_compactions(struct store *store, struct table_store *table)
{
	struct table_view *view = table_view_acquire(table);
	struct sstable **candidates;
	uint32_t count, pending;

	(void)store;
	candidates = compaction_candidates(table, view, &count);
	pending = compaction_estimate_pending(atomic_load(&table->metadata), candidates, count);
	free(candidates);
	table_view_release(view);
	return pending;
}

uint32_t
store_stop_compactions(struct store *store, const struct uuid *id, const char *kind)
{
	struct compaction_manager *manager = store->compactions;
	uint32_t count = 0;

	lock_take(&manager->lock);
	for (struct compaction *task = manager->running; task != NULL; task = task->next) {
		if ((id != NULL && !uuid_equal(id, &task->id)) ||
		    (id == NULL && kind != NULL && strcmp(kind, task->kind) != 0))
			continue;
		atomic_store(&task->is_stopped, true);
		count++;
	}
	lock_drop(&manager->lock);
	return count;
}

void
store_end_compactions(struct store *store)
{
	compaction_manager_stop(store->compactions);
}

void
store_on_compaction(struct store *store, store_compaction_fn fn, void *context)
{
	store->compactions->on_done = fn;
	store->compactions->on_done_context = context;
}
