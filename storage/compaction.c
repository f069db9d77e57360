/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/compaction_internal.h"
#include "storage/compaction_merge.h"
#include "storage/lifecycle.h"
#include "storage/snapshot.h"

enum {
	RANK_COMPACTION = 30,
	COMPACTION_MERGED_MAX = 32,
	COMPACTION_SPLIT_BYTES_MIN = 50000000, /* as Cassandra has it */
};

/* A request to look at a table, on its way to the stage. */
struct compaction_request {
	struct compaction_manager *manager;
	struct table_store *table;
};

static void compaction_task_run(void *argument);

/* ---- choosing -------------------------------------------------------------------------------- */

/*
 * What may be merged with each other (CompactionStrategyManager): repaired SSTables, those of one repair session that is
 * under way, and all others. A mixture would make repaired data unrepaired again.
 */
static bool
compaction_is_same_set(struct sstable *a, struct sstable *b)
{
	const struct sstable_repair *left = sstable_repair(a, NULL),
				    *right = sstable_repair(b, NULL);

	if (left == NULL || right == NULL)
		return left == right;
	if (left->has_pending_repair || right->has_pending_repair)
		return left->has_pending_repair == right->has_pending_repair &&
		    uuid_equal(&left->pending_repair, &right->pending_repair);
	return (left->repaired_at != 0) == (right->repaired_at != 0);
}

/* Bring the set of candidates[0] to the front, in their order; returns how many they are. */
static uint32_t
compaction_first_set(struct sstable **candidates, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct sstable *each = candidates[i];

		if (i != 0 && !compaction_is_same_set(candidates[0], each))
			continue;
		memmove(&candidates[kept + 1], &candidates[kept], (i - kept) * sizeof(*candidates));
		candidates[kept++] = each;
	}
	return kept;
}

struct sstable **
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

void
compaction_mark(struct table_store *table, const struct compaction_pick *pick)
{
	lock_take(&table->view_lock);
	table->compacting = xrealloc(table->compacting,
	    (table->compacting_count + pick->count) * sizeof(*table->compacting));
	for (uint32_t i = 0; i < pick->count; i++)
		table->compacting[table->compacting_count++] = pick->sstables[i];
	lock_drop(&table->view_lock);
}

void
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

/* What the strategy makes of SSTables that may be merged with each other. */
static void
compaction_pick_of_set(struct compaction_manager *manager, struct table_store *table,
    const struct table_options *options, struct sstable *const *candidates, uint32_t count,
    struct compaction_pick *out)
{
	int64_t now = env_wall_us(manager->store->env) / 1000000;

	switch (options->strategy) {
	case COMPACTION_LEVELED:
		compaction_pick_leveled(options, candidates, count, table->compacting,
		    table->compacting_count, now, out);
		break;
	case COMPACTION_TIME_WINDOW:
		compaction_pick_time_window(options, candidates, count, now, out);
		break;
	default:
		/* DateTieredCompactionStrategy too, which 4.1 still takes and 5.0 has removed. */
		compaction_pick_size_tiered(options, candidates, count, now, out);
		break;
	}
}

/* What the strategy wants done now; pick->count 0: nothing. The manager's lock is held: one choice at a time. */
static void
compaction_pick_locked(
    struct compaction_manager *manager, struct table_store *table, struct compaction_pick *out)
{
	struct table_options options = atomic_load(&table->metadata)->options;
	struct table_view *view = table_view_acquire(table);
	struct sstable **candidates;
	uint32_t count, of_set;

	lock_assert_held(&manager->lock);
	*out = (struct compaction_pick){0};
	store_compaction_threshold(table, &options.min_threshold, &options.max_threshold);
	candidates = compaction_candidates(table, view, &count);
	for (uint32_t at = 0; at < count && out->count == 0; at += of_set) {
		of_set = compaction_first_set(candidates + at, count - at);
		compaction_pick_of_set(manager, table, &options, candidates + at, of_set, out);
	}
	free(candidates);
	table_view_release(view);
	if (out->count > 0)
		compaction_mark(table, out);
}
struct compaction *
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

/* The ranges that the normalized ones leave out. */
static struct stream_range *
compaction_complement(const struct stream_range *ranges, uint32_t count, uint32_t *out_count)
{
	struct stream_range *out = xcalloc((size_t)count + 1, sizeof(*out));
	int64_t at = INT64_MIN;

	*out_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (ranges[i].left > at)
			out[(*out_count)++] = (struct stream_range){at, ranges[i].left};
		at = ranges[i].right;
		if (at == INT64_MIN)
			return out; /* to the end of the ring */
	}
	out[(*out_count)++] = (struct stream_range){at, INT64_MIN};
	return out;
}

/* The second half of an anticompaction: what is outside of the ranges. */
static int
compaction_keep_rest(struct compaction *task, struct lifecycle *lifecycle,
    struct compaction_result *result, struct error *err)
{
	struct compaction_pick rest = task->pick;
	struct compaction_result second = {0};
	struct stream_range *outside =
	    compaction_complement(task->pick.keep, task->pick.keep_count, &rest.keep_count);
	int rc;

	rest.keep = outside;
	rest.pending_repair = NULL;
	rc = compaction_merge(
	    task->table, &rest, lifecycle, compaction_progress, task, &second, err);
	free(outside);
	/* The caller's, also where it failed. */
	result->sstables = xrealloc(result->sstables,
	    ((size_t)result->count + second.count + 1) * sizeof(*result->sstables));
	for (uint32_t i = 0; i < second.count; i++)
		result->sstables[result->count++] = second.sstables[i];
	result->bytes_out += second.bytes_out;
	compaction_result_fini(&second);
	return rc;
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
	if (rc == 0 && task->pick.pending_repair != NULL)
		rc = compaction_keep_rest(task, lifecycle, result, err);
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
	struct compaction_pick pick;

	/* Whoever waits finds the replaced files gone, unless somebody still reads them. */
	lock_take(&manager->lock);
	pick = task->pick;
	task->pick = (struct compaction_pick){0};
	lock_drop(&manager->lock);
	compaction_pick_fini(&pick);
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
	free(task);
}

void
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
		struct store *store = manager->store;
		char left_out[LOG_LIMIT_TEXT_MAX];

		if (err.code == ERROR_IO || err.code == ERROR_NO_SPACE)
			store_note_failure(store,
			    err.code == ERROR_NO_SPACE ? STORE_FAILURE_SPACE : STORE_FAILURE_WRITE,
			    NULL, &err);
		if (log_limit_take(
			&store->compaction_error_log, env_monotonic_ns(store->env), left_out))
			log_error(
			    "compaction of %s.%s failed, the SSTables stay as they were: %s%s",
			    table->keyspace, table->name, err.text, left_out);
	}
	compaction_result_fini(&result);
	compaction_end(task, rc, &err);
	if (rc == 0) {
		log_limit_reset(&manager->store->compaction_error_log);
		compaction_check(manager, table);
	}
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

void
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
compaction_submit(
    struct compaction *task, bool *is_done, int *result, struct error *task_err, struct error *err)
{
	struct compaction_manager *manager = task->manager;

	lock_take(&manager->lock);
	task->is_done = is_done;
	task->result = result;
	task->err = task_err;
	lock_drop(&manager->lock);
	if (store_submit(manager->store, "CompactionExecutor", compaction_task_run, task))
		return 0;
	compaction_unmark(task->table, &task->pick);
	task->is_done = NULL;
	compaction_end(task, -1, NULL);
	return error_set(err, ERROR_SHUTDOWN, "the node is stopping");
}

/* Run a task on its stage and wait for its end. The manager's lock is held, and dropped. */
static int
compaction_run_locked(struct compaction_manager *manager, struct table_store *table,
    struct compaction_pick pick, const char *kind, struct error *err)
{
	struct compaction *task;
	bool is_done = false;
	int rc = 0;

	lock_assert_held(&manager->lock);
	compaction_mark(table, &pick);
	task = compaction_new_locked(manager, table, pick, kind);
	lock_drop(&manager->lock);
	if (compaction_submit(task, &is_done, &rc, err, err) != 0)
		return -1;
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

/* All of `set` into one SSTable or, tiered by size and asked to, into some; or into the levels. */
static struct compaction_pick
compaction_pick_major(const struct table_metadata *metadata, struct sstable *const *set,
    uint32_t count, bool is_split)
{
	struct compaction_pick pick = {.count = count};

	pick.sstables = xcalloc(count, sizeof(*pick.sstables));
	for (uint32_t i = 0; i < count; i++)
		pick.sstables[i] = sstable_ref(set[i]);
	if (is_split && metadata->options.strategy == COMPACTION_SIZE_TIERED)
		pick.split_bytes_min = COMPACTION_SPLIT_BYTES_MIN;
	if (metadata->options.strategy != COMPACTION_LEVELED)
		return pick;
	pick.level = 1;
	for (uint32_t i = 0; i < count; i++)
		if (sstable_level(set[i]) > pick.level)
			pick.level = sstable_level(set[i]);
	pick.output_bytes_max = compaction_leveled_bytes(&metadata->options);
	return pick;
}

/* The SSTables of now, a reference each; of them only those that no later step has replaced are still there. */
struct sstable **
compaction_snapshot(struct store *store, struct table_store *table, uint32_t *count)
{
	struct compaction_manager *manager = store->compactions;
	struct table_view *view;
	struct sstable **sstables;

	compaction_lock_when_idle(manager, table);
	view = table_view_acquire(table);
	sstables = compaction_candidates(table, view, count);
	for (uint32_t i = 0; i < *count; i++)
		sstable_ref(sstables[i]);
	table_view_release(view);
	lock_drop(&manager->lock);
	return sstables;
}

void
compaction_snapshot_free(struct sstable **sstables, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		sstable_unref(sstables[i]);
	free(sstables);
}

/* Those of `sstables` that are still in the view come to the front; the manager's lock is held. */
static uint32_t
compaction_still_there(struct table_store *table, struct sstable **sstables, uint32_t count)
{
	struct table_view *view = table_view_acquire(table);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < view->sstable_count; k++)
			if (view->sstables[k] == sstables[i]) {
				struct sstable *each = sstables[i];

				sstables[i] = sstables[kept];
				sstables[kept++] = each;
				break;
			}
	table_view_release(view);
	return kept;
}

int
compaction_run_pick(struct store *store, struct table_store *table, struct compaction_pick pick,
    const char *kind, bool *has_run, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	uint32_t there;

	compaction_lock_when_idle(manager, table);
	there = compaction_still_there(table, pick.sstables, pick.count);
	for (uint32_t i = there; i < pick.count; i++)
		sstable_unref(pick.sstables[i]);
	pick.count = there;
	*has_run = there > 0 && !manager->is_stopping;
	if (*has_run)
		return compaction_run_locked(manager, table, pick, kind, err);
	lock_drop(&manager->lock);
	compaction_pick_fini(&pick);
	return 0;
}

static int
compaction_run_major(
    struct store *store, struct table_store *table, bool is_split, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	struct sstable **sstables;
	uint32_t count, of_set;
	int rc = 0;

	if (store_flush(store, table, err) != 0)
		return -1;
	sstables = compaction_snapshot(store, table, &count);
	for (uint32_t at = 0; at < count && rc == 0; at += of_set) {
		uint32_t there;

		of_set = compaction_first_set(sstables + at, count - at);
		compaction_lock_when_idle(manager, table);
		there = compaction_still_there(table, sstables + at, of_set);
		if (there == 0 || manager->is_stopping)
			lock_drop(&manager->lock);
		else
			rc = compaction_run_locked(manager, table,
			    compaction_pick_major(metadata, sstables + at, there, is_split),
			    "COMPACTION", err);
	}
	compaction_snapshot_free(sstables, count);
	return rc;
}

int
store_compact(struct store *store, struct table_store *table, struct error *err)
{
	return compaction_run_major(store, table, false, err);
}

int
store_compact_split(struct store *store, struct table_store *table, struct error *err)
{
	return compaction_run_major(store, table, true, err);
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

int
store_set_compaction_threshold(
    struct table_store *table, int32_t min, int32_t max, struct error *err)
{
	if (min > max)
		return error_set(err, ERROR_INVALID,
		    "The min_compaction_threshold cannot be larger than the max.");
	if (min < 2 || max < 2)
		return error_set(err, ERROR_INVALID,
		    "Disabling compaction by setting min or max compaction thresholds to 0 has "
		    "been "
		    "deprecated, use the compaction option 'enabled' instead; they are at least 2");
	atomic_store(&table->min_threshold, min);
	atomic_store(&table->max_threshold, max);
	compaction_check(table->store->compactions, table);
	return 0;
}

void
store_compaction_threshold(const struct table_store *table, int32_t *min, int32_t *max)
{
	const struct table_options *options = &atomic_load(&table->metadata)->options;

	*min = atomic_load(&table->min_threshold);
	*max = atomic_load(&table->max_threshold);
	if (*min == 0) {
		*min = options->min_threshold;
		*max = options->max_threshold;
	}
}

void
store_set_column_index_size(struct store *store, uint32_t bytes)
{
	atomic_store(&store->column_index_bytes, bytes);
}

uint32_t
store_column_index_size(const struct store *store)
{
	return atomic_load(&store->column_index_bytes);
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
	pending =
	    compaction_estimate_pending(&atomic_load(&table->metadata)->options, candidates, count);
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
