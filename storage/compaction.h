/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMPACTION_H
#define HELENUS_STORAGE_COMPACTION_H

/*
 * Compaction (CompactionManager, CompactionTask, CompactionController): SSTables that belong together are
 * merged into new ones, overwritten and purgeable data is left out, and the old files go. Runs on the
 * CompactionExecutor stage, throttled for the whole node, never in the way of a read: readers keep the view
 * they began with.
 *
 *   compaction_check(table)      after each flush and compaction: does the strategy find work?
 *      compaction_pick_*         compaction_strategy.c: which SSTables, to which level
 *      compaction_run            scans -> k-way merge -> purge -> writers -> lifecycle commit -> view
 *
 * Several tasks of one table run at once as long as they share no SSTable (table->compacting).
 */
#include "storage/stream_writer.h"
#include "storage/table_store.h"

/* What a strategy decided. */
struct compaction_pick {
	struct sstable **sstables; /* heap, one reference each; NULL: nothing to do */
	uint32_t count;
	int32_t level; /* of the outputs */
	uint64_t output_bytes_max; /* a new output file is begun at this; 0: one file */
	/*
	 * Not 0: of half the inputs' bytes, a quarter and so on, until that is less than this; the last file takes the
	 * rest (SplittingSizeTieredCompactionWriter).
	 */
	uint64_t split_bytes_min;
	bool is_level_move; /* no overlap: only the level in Statistics.db changes */
	const struct stream_range
	    *keep; /* not NULL: only partitions in these (normalized, borrowed) */
	uint32_t keep_count;
	bool keeps_all; /* nothing is purged (upgradesstables, scrub) */
	/* What the table's other SSTables delete (rows), or replace too (cells), is left out. */
	enum { COMPACTION_NO_GARBAGE, COMPACTION_GARBAGE_ROWS, COMPACTION_GARBAGE_CELLS } garbage;
	struct sstable_scrub *scrub; /* not NULL: what is damaged is left out; borrowed */
	/*
	 * Not NULL: an anticompaction. What is in `keep` becomes pending in this repair session (borrowed), what is not
	 * goes into an SSTable of its own.
	 */
	const struct uuid *pending_repair;
};
void compaction_pick_fini(struct compaction_pick *pick);

/*
 * Choose from `candidates` (live, not compacting; borrowed) by the table's strategy and options.
 * now_seconds for tombstone compactions and time windows. In compaction_strategy.c; pure but for sstable_stats().
 */
void
compaction_pick_size_tiered(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, int64_t now_seconds, struct compaction_pick *out);
void compaction_pick_leveled(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, struct sstable *const *compacting, uint32_t compacting_count,
    int64_t now_seconds, struct compaction_pick *out);
void
compaction_pick_time_window(const struct table_options *options, struct sstable *const *candidates,
    uint32_t count, int64_t now_seconds, struct compaction_pick *out);

/* Size at which leveled compaction begins a new file: sstable_size_in_mb, bytes. */
uint64_t compaction_leveled_bytes(const struct table_options *options);

/* Compactions that a strategy would still do (nodetool's pending tasks): an estimate. */
uint32_t compaction_estimate_pending(
    const struct table_options *options, struct sstable *const *candidates, uint32_t count);

/* ---- for operations that choose for themselves (compaction_chosen.c) ---- */

/* The SSTables of the table when no compaction of it runs, a reference each; heap. */
struct sstable **
compaction_snapshot(struct store *store, struct table_store *table, uint32_t *count);
void compaction_snapshot_free(struct sstable **sstables, uint32_t count);
/*
 * Run `pick` (moved) on its stage once the table is idle, and wait. What is gone from the table meanwhile is left out; with
 * nothing left, or while the node stops, *has_run is false and it is no failure.
 */
int compaction_run_pick(struct store *store, struct table_store *table, struct compaction_pick pick,
    const char *kind, bool *has_run, struct error *err);

struct compaction_manager;

struct compaction_manager *compaction_manager_new(struct store *store);
/* Stops what runs (its outputs are removed) and waits. */
void compaction_manager_stop(struct compaction_manager *manager);
void compaction_manager_free(struct compaction_manager *manager);

/* Look for work for the table, in the background. Any thread. */
void compaction_check(struct compaction_manager *manager, struct table_store *table);

#endif
