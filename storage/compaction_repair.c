/* SPDX-License-Identifier: Apache-2.0 */
/* Repair sessions: their SSTables are split from the others, and become repaired ones or unrepaired again. */
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/compaction_internal.h"

/* Does any of the SSTable lie in one of the ranges? */
static bool
compaction_meets(struct sstable *sstable, const struct stream_range *ranges, uint32_t count)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);

	for (uint32_t i = 0; i < count && stats != NULL; i++)
		if (stats->last_token > ranges[i].left &&
		    (ranges[i].right == INT64_MIN || stats->first_token <= ranges[i].right))
			return true;
	return false;
}

static int
compaction_other_session(
    const struct sstable_repair *repair, const struct uuid *session, struct error *err)
{
	char own[UUID_TEXT_SIZE], other[UUID_TEXT_SIZE];

	uuid_format(session, own);
	uuid_format(&repair->pending_repair, other);
	return error_set(err, ERROR_INVALID,
	    "Prepare phase for incremental repair session %s has failed because it encountered "
	    "intersecting sstables belonging to another incremental repair session (%s). This is "
	    "caused by starting an incremental repair session before a previous one has completed. "
	    "Check nodetool repair_admin for hung sessions and fix them.",
	    own, other);
}

/* Unrepaired SSTables that reach into the ranges: theirs now, no compaction takes them. */
static int
compaction_take_unrepaired(struct compaction_manager *manager, struct table_store *table,
    const struct stream_range *ranges, uint32_t count, const struct uuid *session,
    struct compaction_pick *out, struct error *err)
{
	struct table_view *view;
	struct sstable **candidates;
	uint32_t candidate_count;
	int rc = 0;

	*out = (struct compaction_pick){0};
	compaction_lock_when_idle(manager, table);
	view = table_view_acquire(table);
	candidates = compaction_candidates(table, view, &candidate_count);
	out->sstables = xcalloc((size_t)candidate_count + 1, sizeof(*out->sstables));
	for (uint32_t i = 0; i < candidate_count && rc == 0; i++) {
		const struct sstable_repair *repair = sstable_repair(candidates[i], err);

		if (repair == NULL)
			rc = -1;
		else if (repair->repaired_at != 0 ||
		    !compaction_meets(candidates[i], ranges, count) ||
		    (repair->has_pending_repair && uuid_equal(&repair->pending_repair, session)))
			continue;
		else if (repair->has_pending_repair)
			rc = compaction_other_session(repair, session, err);
		else
			out->sstables[out->count++] = sstable_ref(candidates[i]);
	}
	free(candidates);
	table_view_release(view);
	if (rc == 0 && manager->is_stopping)
		rc = error_set(err, ERROR_SHUTDOWN, "the node is stopping");
	if (rc == 0)
		compaction_mark(table, out);
	else
		compaction_pick_fini(out);
	lock_drop(&manager->lock);
	return rc;
}

/* One SSTable of the session, on this thread. It is marked, and will not be. */
static int
compaction_split(struct compaction_manager *manager, struct table_store *table,
    struct sstable *sstable, const struct stream_range *ranges, uint32_t count,
    const struct uuid *session, struct error *err)
{
	struct compaction_pick pick = {.count = 1,
	    .keep = ranges,
	    .keep_count = count,
	    .keeps_all = true,
	    .pending_repair = session};
	struct compaction *task;
	bool is_done = false;
	int rc = 0;

	pick.sstables = xcalloc(1, sizeof(*pick.sstables));
	pick.sstables[0] = sstable_ref(sstable);
	pick.level = sstable_level(sstable);
	if (compaction_is_owned(sstable, ranges, count)) {
		rc = sstable_set_repaired(sstable, 0, session, false, err);
		compaction_unmark(table, &pick);
		compaction_pick_fini(&pick);
		return rc;
	}
	lock_take(&manager->lock);
	task = compaction_new_locked(manager, table, pick, "ANTICOMPACTION");
	task->is_done = &is_done;
	task->result = &rc;
	task->err = err;
	atomic_store(&task->is_stopped, manager->is_stopping);
	lock_drop(&manager->lock);
	compaction_execute(task);
	return rc;
}

int
store_anticompact(struct store *store, struct table_store *table, const struct uuid *session,
    const struct stream_range *ranges, uint32_t count, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	struct compaction_pick taken;
	struct stream_range *normalized;
	uint32_t normalized_count;
	int rc;

	if (store_flush(store, table, err) != 0)
		return -1;
	normalized = stream_ranges_normalize(ranges, count, &normalized_count);
	rc = compaction_take_unrepaired(
	    manager, table, normalized, normalized_count, session, &taken, err);
	for (uint32_t i = 0; i < taken.count; i++) {
		struct compaction_pick rest = {.sstables = &taken.sstables[i], .count = 1};

		if (rc == 0)
			rc = compaction_split(manager, table, taken.sstables[i], normalized,
			    normalized_count, session, err);
		else
			compaction_unmark(table, &rest);
	}
	compaction_pick_fini(&taken);
	free(normalized);
	return rc;
}

int
store_finish_repair(struct store *store, struct table_store *table, const struct uuid *session,
    int64_t repaired_at, struct error *err)
{
	struct compaction_manager *manager = store->compactions;
	struct compaction_pick taken = {0};
	struct sstable **candidates;
	struct table_view *view;
	uint32_t count;
	int rc = 0;

	compaction_lock_when_idle(manager, table);
	view = table_view_acquire(table);
	candidates = compaction_candidates(table, view, &count);
	taken.sstables = xcalloc((size_t)count + 1, sizeof(*taken.sstables));
	for (uint32_t i = 0; i < count; i++) {
		const struct sstable_repair *repair = sstable_repair(candidates[i], NULL);

		if (repair != NULL && repair->has_pending_repair &&
		    uuid_equal(&repair->pending_repair, session))
			taken.sstables[taken.count++] = sstable_ref(candidates[i]);
	}
	free(candidates);
	table_view_release(view);
	compaction_mark(table, &taken);
	lock_drop(&manager->lock);
	for (uint32_t i = 0; i < taken.count && rc == 0; i++)
		rc = sstable_set_repaired(taken.sstables[i], repaired_at, NULL, false, err);
	compaction_unmark(table, &taken);
	count = taken.count;
	compaction_pick_fini(&taken);
	if (count > 0)
		compaction_check(manager, table);
	return rc;
}

void
store_pending_repairs(struct table_store *table,
    void (*each)(void *context, const struct uuid *session, uint64_t bytes), void *context)
{
	struct table_view *view = table_view_acquire(table);

	for (uint32_t i = 0; i < view->sstable_count; i++) {
		const struct sstable_repair *repair = sstable_repair(view->sstables[i], NULL);

		if (repair != NULL && repair->has_pending_repair)
			each(context, &repair->pending_repair,
			    sstable_total_size(view->sstables[i]));
	}
	table_view_release(view);
}
