/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/compaction.h"
#include "storage/snapshot.h"
#include "storage/store_internal.h"

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

int
store_upgrade(struct store *store, struct table_store *table, bool is_all, uint32_t *rewritten,
    struct error *err)
{
	struct sstable **sstables;
	uint32_t count;
	int rc = 0;

	*rewritten = 0;
	if (!is_all)
		return 0;
	sstables = compaction_snapshot(store, table, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		struct compaction_pick pick = {
		    .count = 1, .level = sstable_level(sstables[i]), .keeps_all = true};
		bool has_run;

		pick.sstables = xcalloc(1, sizeof(*pick.sstables));
		pick.sstables[0] = sstable_ref(sstables[i]);
		rc = compaction_run_pick(store, table, pick, "UPGRADE_SSTABLES", &has_run, err);
		*rewritten += rc == 0 && has_run;
	}
	compaction_snapshot_free(sstables, count);
	return rc;
}

int
store_collect_garbage(struct store *store, struct table_store *table, bool cells, struct error *err)
{
	struct sstable **sstables;
	uint32_t count;
	int rc = 0;

	sstables = compaction_snapshot(store, table, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		struct compaction_pick pick = {.count = 1,
		    .level = sstable_level(sstables[i]),
		    .garbage = cells ? COMPACTION_GARBAGE_CELLS : COMPACTION_GARBAGE_ROWS};
		bool has_run;

		pick.sstables = xcalloc(1, sizeof(*pick.sstables));
		pick.sstables[0] = sstable_ref(sstables[i]);
		rc = compaction_run_pick(store, table, pick, "GARBAGE_COLLECT", &has_run, err);
	}
	compaction_snapshot_free(sstables, count);
	return rc;
}

static int
compaction_scrub_one(struct store *store, struct table_store *table, struct sstable *sstable,
    struct sstable_scrub *scrub, struct error *err)
{
	struct compaction_pick pick = {.count = 1, .keeps_all = true, .scrub = scrub};
	bool has_run;

	pick.level = sstable_level(sstable);
	pick.sstables = xcalloc(1, sizeof(*pick.sstables));
	pick.sstables[0] = sstable_ref(sstable);
	return compaction_run_pick(store, table, pick, "SCRUB", &has_run, err);
}

int
store_scrub(struct store *store, struct table_store *table,
    const struct store_scrub_options *options, uint64_t *good, uint64_t *bad, struct error *err)
{
	struct sstable_scrub scrub = {
	    .validates = !options->no_validation, .keeps_counters = !options->skips_corrupted};
	struct sstable **sstables;
	uint32_t count;
	int rc = 0;

	if (!options->no_snapshot && snapshot_before_scrub(table, err) != 0)
		return -1;
	sstables = compaction_snapshot(store, table, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = compaction_scrub_one(store, table, sstables[i], &scrub, err);
	compaction_snapshot_free(sstables, count);
	*good = scrub.good;
	*bad = scrub.bad;
	return rc;
}

/* By a handle of its own: what it finds is for whoever asked, not for disk_failure_policy, and caches stay out of it. */
static int
compaction_verify_one(
    struct table_store *table, struct sstable *sstable, bool is_extended, struct error *err)
{
	const struct sstable_context context = {.env = table->store->env};
	struct sstable *own;
	uint64_t bytes = 0;
	int rc;

	if (sstable_open(&context, sstable_descriptor(sstable), atomic_load(&table->metadata), &own,
		err) != 0)
		return -1;
	rc = sstable_verify(own, is_extended, &bytes, err);
	sstable_unref(own);
	return rc;
}

int
store_verify(struct store *store, struct table_store *table, bool is_extended,
    store_verified_fn each, void *argument, struct error *err)
{
	/* The view keeps the files although they may be compacted meanwhile. */
	struct table_view *view = table_view_acquire(table);
	int rc = 0;

	(void)store;
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		struct error found;
		char path[SSTABLE_PATH_MAX];

		rc = sstable_path(sstable_descriptor(view->sstables[i]), SSTABLE_DATA, path, err);
		if (rc != 0)
			break;
		if (compaction_verify_one(table, view->sstables[i], is_extended, &found) == 0)
			each(argument, path, NULL);
		else
			each(argument, path, &found);
	}
	table_view_release(view);
	return rc;
}
