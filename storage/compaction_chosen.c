/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/compaction_internal.h"
#include "storage/snapshot.h"

/* Operations that are told which SSTables to work on (nodetool compact with arguments, upgradesstables, verify). */

/* The references of the first `count` of the array go into the pick, those behind are dropped; frees the array. */
static struct compaction_pick
compaction_pick_first(struct sstable **sstables, uint32_t count, uint32_t all)
{
	struct compaction_pick pick = {.count = count, .sstables = sstables};

	for (uint32_t i = count; i < all; i++)
		sstable_unref(sstables[i]);
	for (uint32_t i = 0; i < count; i++)
		if (sstable_level(sstables[i]) > pick.level)
			pick.level = sstable_level(sstables[i]);
	return pick;
}

typedef bool (*compaction_choose_fn)(const void *argument, struct sstable *sstable);

/*
 * Leveled SSTables that are merged have to go to where nothing overlaps them: level 0, which takes anything. Alone, one
 * stays where it is.
 */
static int
compaction_run_chosen(struct store *store, struct table_store *table, compaction_choose_fn choose,
    const void *argument, uint32_t *chosen, struct error *err)
{
	uint32_t count, kept = 0;
	struct sstable **sstables = compaction_snapshot(store, table, &count);
	struct compaction_pick pick;
	bool has_run;

	for (uint32_t i = 0; i < count; i++)
		if (choose(argument, sstables[i])) {
			struct sstable *each = sstables[i];

			sstables[i] = sstables[kept];
			sstables[kept++] = each;
		}
	*chosen = kept;
	pick = compaction_pick_first(sstables, kept, count);
	if (kept == 0) {
		compaction_pick_fini(&pick);
		return 0;
	}
	if (kept > 1)
		pick.level = 0;
	return compaction_run_pick(store, table, pick, "COMPACTION", &has_run, err);
}

struct compaction_tokens {
	int64_t left, right;
};

/* Cassandra's Range: from the left, exclusive, to the right; left >= right wraps around. */
static bool
compaction_has_tokens(const void *argument, struct sstable *sstable)
{
	const struct compaction_tokens *tokens = argument;
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);
	bool is_behind, is_before;

	if (stats == NULL)
		return true;
	is_behind = stats->last_token > tokens->left;
	is_before = stats->first_token <= tokens->right;
	return tokens->left < tokens->right ? is_behind && is_before : is_behind || is_before;
}

int
store_compact_range(struct store *store, struct table_store *table, int64_t left, int64_t right,
    uint32_t *chosen, struct error *err)
{
	const struct compaction_tokens tokens = {left, right};

	if (store_flush(store, table, err) != 0)
		return -1;
	return compaction_run_chosen(store, table, compaction_has_tokens, &tokens, chosen, err);
}

static bool
compaction_has_key(const void *argument, struct sstable *sstable)
{
	const struct slice *key = argument;
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);
	int64_t token = murmur3_token(*key);

	return (stats == NULL || (token >= stats->first_token && token <= stats->last_token)) &&
	    sstable_may_have_key(sstable, *key);
}

int
store_compact_key(struct store *store, struct table_store *table, struct slice key,
    uint32_t *chosen, struct error *err)
{
	if (store_flush(store, table, err) != 0)
		return -1;
	return compaction_run_chosen(store, table, compaction_has_key, &key, chosen, err);
}

struct compaction_files {
	const char *const *names;
	uint32_t count;
};

static bool
compaction_has_name(const void *argument, struct sstable *sstable)
{
	const struct compaction_files *files = argument;
	char path[SSTABLE_PATH_MAX];
	const char *own;

	if (sstable_path(sstable_descriptor(sstable), SSTABLE_DATA, path, NULL) != 0)
		return false;
	own = strrchr(path, '/') + 1;
	for (uint32_t i = 0; i < files->count; i++) {
		const char *name = files->names[i], *slash = strrchr(name, '/');

		if (slash == NULL ? strcmp(name, own) == 0 : strcmp(name, path) == 0)
			return true;
	}
	return false;
}

int
store_compact_files(struct store *store, struct table_store *table, const char *const *names,
    uint32_t count, uint32_t *chosen, struct error *err)
{
	const struct compaction_files files = {names, count};

	return compaction_run_chosen(store, table, compaction_has_name, &files, chosen, err);
}

/* ---- each SSTable for itself ---------------------------------------------------------------------- */

/* Fills in what is to become of one SSTable; false: it stays as it is. pick->sstables is the caller's matter. */
typedef bool (*compaction_prepare_fn)(
    void *context, struct sstable *sstable, struct compaction_pick *pick);

/* An SSTable that is written anew, and its task. */
struct compaction_job {
	struct compaction_pick pick;
	bool is_begun, is_done;
	int rc;
	struct error err;
};

struct compaction_jobs {
	struct compaction_job *list; /* owned */
	uint32_t count;
	uint32_t begun;
};

/* What the operation takes of the table, all of it marked at once: nobody else takes it before its turn. */
static struct compaction_jobs
compaction_jobs_take(
    struct store *store, struct table_store *table, compaction_prepare_fn prepare, void *context)
{
	struct compaction_manager *manager = store->compactions;
	struct compaction_jobs jobs = {.count = 0};
	struct table_view *view;
	struct sstable **candidates;
	uint32_t count;

	compaction_lock_when_idle(manager, table);
	view = table_view_acquire(table);
	candidates = compaction_candidates(table, view, &count);
	jobs.list = xcalloc((size_t)count + 1, sizeof(*jobs.list));
	for (uint32_t i = 0; i < count && !manager->is_stopping; i++) {
		struct compaction_pick *pick = &jobs.list[jobs.count].pick;

		*pick = (struct compaction_pick){.level = sstable_level(candidates[i])};
		if (!prepare(context, candidates[i], pick))
			continue;
		pick->count = 1;
		pick->sstables = xcalloc(1, sizeof(*pick->sstables));
		pick->sstables[0] = sstable_ref(candidates[i]);
		compaction_mark(table, pick);
		jobs.count++;
	}
	free(candidates);
	table_view_release(view);
	lock_drop(&manager->lock);
	return jobs;
}

/* How many of those that were begun have not ended; *rc: -1 once one has failed. */
static uint32_t
compaction_jobs_running(
    struct compaction_manager *manager, const struct compaction_jobs *jobs, int *rc)
{
	uint32_t running = 0;

	lock_take(&manager->lock);
	for (uint32_t i = 0; i < jobs->begun; i++) {
		running += jobs->list[i].is_begun && !jobs->list[i].is_done;
		if (jobs->list[i].is_done && jobs->list[i].rc != 0)
			*rc = -1;
	}
	lock_drop(&manager->lock);
	return running;
}

static int
compaction_jobs_begin(struct compaction_manager *manager, struct table_store *table,
    struct compaction_job *job, const char *kind, struct error *err)
{
	struct compaction_pick pick = job->pick;
	struct compaction *task;

	lock_take(&manager->lock);
	job->pick = (struct compaction_pick){.count = 0};
	job->is_begun = true;
	task = compaction_new_locked(manager, table, pick, kind);
	if (manager->is_stopping)
		atomic_store(&task->is_stopped, true);
	lock_drop(&manager->lock);
	if (compaction_submit(task, &job->is_done, &job->rc, &job->err, err) == 0)
		return 0;
	job->is_begun = false;
	return -1;
}

/*
 * Write SSTables anew, each for itself, `parallel` of them at once (0: as many as there are threads for), and wait.
 * The first failure ends it: those that run end first. *done: how many there were.
 */
static int
compaction_run_each(struct store *store, struct table_store *table, compaction_prepare_fn prepare,
    void *context, const char *kind, uint32_t parallel, uint32_t *done, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	struct compaction_jobs jobs = compaction_jobs_take(store, table, prepare, context);
	uint32_t running;
	int rc = 0;

	*done = 0;
	pthread_mutex_lock(&manager->done_mutex);
	while ((running = compaction_jobs_running(manager, &jobs, &rc)) > 0 ||
	    (rc == 0 && jobs.begun < jobs.count)) {
		if (rc == 0 && jobs.begun < jobs.count && (parallel == 0 || running < parallel)) {
			pthread_mutex_unlock(&manager->done_mutex);
			rc = compaction_jobs_begin(
			    manager, table, &jobs.list[jobs.begun++], kind, err);
			pthread_mutex_lock(&manager->done_mutex);
			continue;
		}
		pthread_cond_wait(&manager->done_cond, &manager->done_mutex);
	}
	pthread_mutex_unlock(&manager->done_mutex);
	for (uint32_t i = 0; i < jobs.count; i++) {
		struct compaction_job *job = &jobs.list[i];

		*done += job->is_done && job->rc == 0;
		if (job->is_done && job->rc != 0)
			*err = job->err;
		compaction_unmark(table, &job->pick);
		compaction_pick_fini(&job->pick);
	}
	free(jobs.list);
	return rc;
}

bool
compaction_is_owned(struct sstable *sstable, const struct stream_range *ranges, uint32_t count)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);

	for (uint32_t i = 0; i < count && stats != NULL; i++)
		if (stream_range_has(&ranges[i], stats->first_token) &&
		    stream_range_has(&ranges[i], stats->last_token))
			return true;
	return false;
}

struct compaction_owned {
	const struct stream_range *ranges;
	uint32_t count;
};

static bool
compaction_prepare_cleanup(void *context, struct sstable *sstable, struct compaction_pick *pick)
{
	const struct compaction_owned *owned = context;

	pick->keep = owned->ranges;
	pick->keep_count = owned->count;
	return !compaction_is_owned(sstable, owned->ranges, owned->count);
}

int
store_cleanup(struct store *store, struct table_store *table, const struct stream_range *ranges,
    uint32_t count, uint32_t jobs, struct error *err)
{
	struct compaction_owned owned;
	struct stream_range *keep;
	uint32_t done;
	int rc;

	if (store_flush(store, table, err) != 0)
		return -1;
	keep = stream_ranges_normalize(ranges, count, &owned.count);
	owned.ranges = keep;
	rc = compaction_run_each(
	    store, table, compaction_prepare_cleanup, &owned, "CLEANUP", jobs, &done, err);
	free(keep);
	return rc;
}

static bool
compaction_prepare_upgrade(void *context, struct sstable *sstable, struct compaction_pick *pick)
{
	const struct table_metadata *recompressed = context;

	pick->keeps_all = true;
	return recompressed == NULL || !sstable_has_compression(sstable, recompressed);
}

int
store_upgrade(struct store *store, struct table_store *table, enum store_upgrade which,
    uint32_t jobs, uint32_t *rewritten, struct error *err)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);

	*rewritten = 0;
	if (which == STORE_UPGRADE_OLD)
		return 0;
	return compaction_run_each(store, table, compaction_prepare_upgrade,
	    which == STORE_UPGRADE_RECOMPRESS ? (void *)metadata : NULL, "UPGRADE_SSTABLES", jobs,
	    rewritten, err);
}

static bool
compaction_prepare_garbage(void *context, struct sstable *sstable, struct compaction_pick *pick)
{
	const bool *cells = context;

	(void)sstable;
	pick->garbage = *cells ? COMPACTION_GARBAGE_CELLS : COMPACTION_GARBAGE_ROWS;
	return true;
}

int
store_collect_garbage(
    struct store *store, struct table_store *table, bool cells, uint32_t jobs, struct error *err)
{
	uint32_t done;

	return compaction_run_each(
	    store, table, compaction_prepare_garbage, &cells, "GARBAGE_COLLECT", jobs, &done, err);
}

/* What each task found, counted by itself. */
struct compaction_scrub {
	struct sstable_scrub **list; /* owned */
	uint32_t count;
	struct sstable_scrub options;
};

static bool
compaction_prepare_scrub(void *context, struct sstable *sstable, struct compaction_pick *pick)
{
	struct compaction_scrub *scrub = context;

	(void)sstable;
	scrub->list = xrealloc(scrub->list, (scrub->count + 1) * sizeof(*scrub->list));
	scrub->list[scrub->count] = xmalloc(sizeof(struct sstable_scrub));
	*scrub->list[scrub->count] = scrub->options;
	pick->keeps_all = true;
	pick->scrub = scrub->list[scrub->count++];
	return true;
}

int
store_scrub(struct store *store, struct table_store *table,
    const struct store_scrub_options *options, uint64_t *good, uint64_t *bad, struct error *err)
{
	struct compaction_scrub scrub = {.options = {.validates = !options->no_validation,
					     .keeps_counters = !options->skips_corrupted}};
	uint32_t done;
	int rc;

	if (!options->no_snapshot && snapshot_before_scrub(table, err) != 0)
		return -1;
	rc = compaction_run_each(
	    store, table, compaction_prepare_scrub, &scrub, "SCRUB", options->jobs, &done, err);
	*good = 0;
	*bad = 0;
	for (uint32_t i = 0; i < scrub.count; i++) {
		*good += scrub.list[i]->good;
		*bad += scrub.list[i]->bad;
		free(scrub.list[i]);
	}
	free(scrub.list);
	return rc;
}

/* ---- verify ------------------------------------------------------------------------------------------ */

/* By a handle of its own: caches stay out of it. */
static int
compaction_verify_one(struct table_store *table, struct sstable *sstable,
    const struct store_verify_options *options, struct error *err)
{
	const struct sstable_context context = {.env = table->store->env};
	struct sstable *own;
	uint64_t bytes = 0;
	int rc = 0;

	if (sstable_open(&context, sstable_descriptor(sstable), atomic_load(&table->metadata), &own,
		err) != 0)
		return -1;
	if (options->is_quick || options->owned != NULL)
		rc = sstable_verify_index(own, options->owned, options->owned_count, err);
	if (rc == 0 && !options->is_quick)
		rc = sstable_verify(own, options->is_extended, &bytes, err);
	sstable_unref(own);
	return rc;
}

/* What was asked for where an SSTable is damaged. */
static void
compaction_verify_damage(struct store *store, struct sstable *sstable, const char *path,
    const struct store_verify_options *options, const struct error *found)
{
	const struct sstable_repair *repair;
	struct error err;

	if (options->marks_unrepaired) {
		repair = sstable_repair(sstable, NULL);
		if (repair != NULL && repair->repaired_at != 0 &&
		    sstable_set_repaired(sstable, 0, NULL, false, &err) != 0)
			log_error("%s cannot be marked as unrepaired: %s", path, err.text);
	}
	if (options->tells_failures)
		store_note_failure(store,
		    found->code == ERROR_CORRUPT ? STORE_FAILURE_CORRUPT : STORE_FAILURE_READ, path,
		    found);
}

int
store_verify(struct store *store, struct table_store *table,
    const struct store_verify_options *options, store_verified_fn each, void *argument,
    struct error *err)
{
	/* The view keeps the files although they may be compacted meanwhile. */
	struct table_view *view = table_view_acquire(table);
	int rc = 0;

	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		struct error found;
		char path[SSTABLE_PATH_MAX];

		rc = sstable_path(sstable_descriptor(view->sstables[i]), SSTABLE_DATA, path, err);
		if (rc != 0)
			break;
		if (compaction_verify_one(table, view->sstables[i], options, &found) == 0) {
			each(argument, path, NULL);
			continue;
		}
		each(argument, path, &found);
		compaction_verify_damage(store, view->sstables[i], path, options, &found);
	}
	table_view_release(view);
	return rc;
}
