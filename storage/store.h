/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STORE_H
#define HELENUS_STORAGE_STORE_H

/*
 * The door of the storage floor: one node's local data. Commit log, memtables, SSTables, compaction,
 * snapshots, caches behind one handle. Other folders include this header and those it includes.
 *
 *   write   store_apply -> commit log (claim, copy) -> memtable_add -> on_done (now, or after the sync)
 *   read    store_read -> memtables + SSTables -> merge -> caller pulls
 *   flush   memtable switched -> sstable writer -> lifecycle commit -> tracker -> commit log discards
 */
#include "base/env.h"
#include "base/histogram.h"
#include "storage/commitlog_position.h"
#include "storage/mutation.h"
#include "storage/read_command.h"

struct store;
struct table_store; /* ColumnFamilyStore: one table's memtables and SSTables */

/*
 * How the store runs work in the background; the server gives its stages, a simulation its own. `stage`
 * is Cassandra's name ("CompactionExecutor", "MemtableFlushWriter", "MemtablePostFlush", ...). Returns
 * false when the stage is stopping. Work is a function and its argument, run once on a stage thread.
 */
typedef void (*store_work_fn)(void *argument);
struct store_executor {
	bool (*submit)(void *context, const char *stage, store_work_fn work, void *argument);
	void *context;
};

/* Someone whose write waits for the commit log's next sync. */
struct commitlog_waiter {
	struct commitlog_waiter *next;
	struct commitlog_position position; /* end of its record */
	/* On the sync thread. err NULL: durable. */
	void (*on_synced)(struct commitlog_waiter *waiter, const struct error *err);
};

enum commitlog_sync { COMMITLOG_SYNC_PERIODIC, COMMITLOG_SYNC_BATCH, COMMITLOG_SYNC_GROUP };

enum { STORE_SAVED_CACHES = 3 };

/* Copied by store_open(). Strings and directories are copied. Sizes in bytes, times in ms. */
struct store_options {
	const char *const *data_directories; /* .../data; several: one a disk (JBOD) */
	uint32_t data_directory_count;
	uint64_t min_free_space_per_drive_bytes; /* left free on each, where there are several */
	/* disk_failure_policy best_effort: a directory that fails is used no more, the others are. */
	bool excludes_failed_directories;
	bool
	    skips_damaged_at_start; /* an SSTable that cannot be opened is left out, else the start fails */
	const char *commitlog_directory;
	enum commitlog_sync commitlog_sync;
	uint32_t commitlog_sync_period_ms;
	uint32_t commitlog_sync_group_window_ms;
	uint32_t periodic_commitlog_sync_lag_block_ms;
	uint64_t commitlog_segment_bytes;
	uint64_t commitlog_total_bytes;
	const char *commitlog_compressor; /* class name; NULL: segments are not compressed */
	int32_t commitlog_compression_level; /* zstd; 0: its default */
	uint64_t max_mutation_bytes;
	/* commitlog_archiving.properties; NULL: none. %path, %name; %from, %to; separated by commas. */
	const char *archive_command, *restore_command, *restore_directories;
	int64_t restore_point_ms; /* replay no change younger than this; INT64_MAX: no limit */
	uint64_t restore_precision_ns; /* unit of the timestamps that it is compared with */
	bool commitlog_ignore_replay_errors;
	bool
	    commitlog_ignores_failures; /* a failed sync fails its writes only (commit_failure_policy ignore) */
	uint64_t memtable_bytes; /* budget of all memtables */
	double memtable_cleanup_threshold; /* flush the largest at this fraction */
	uint32_t memtable_shards; /* 0: chosen from the cores */
	uint64_t file_cache_bytes, key_cache_bytes;
	uint64_t row_cache_bytes, counter_cache_bytes; /* 0: none */
	/* Saved caches: keys, rows, counters in this order. */
	const char *saved_caches_directory; /* NULL: none are saved */
	uint64_t cache_save_period_seconds[STORE_SAVED_CACHES]; /* 0: this one is not saved */
	uint64_t cache_keys_to_save[STORE_SAVED_CACHES];
	uint64_t cache_load_timeout_ms;
	uint64_t compaction_large_partition_warning_bytes; /* 0: none */
	uint64_t compaction_tombstone_warning_count; /* 0: none */
	uint32_t column_index_bytes; /* promoted index granularity */
	uint64_t snapshot_links_per_second; /* hard links that snapshots make; 0: no limit */
	uint32_t concurrent_compactors;
	uint64_t compaction_bytes_per_second; /* 0: unlimited */
	bool auto_snapshot, trickle_fsync;
	int64_t auto_snapshot_ttl_seconds; /* of the snapshots of auto_snapshot; 0: they stay */
	bool snapshot_before_compaction;
	bool incremental_backups; /* see store_set_incremental_backups() */
};
void store_options_defaults(struct store_options *options);

/*
 * Open the node's data: cleans leftovers of interrupted work, lists SSTables (opened lazily). Does not
 * replay: first the caller hands over the schema of the system tables, reads the user schema through the
 * store, sets it, then calls store_replay(). On failure *out is untouched.
 */
int store_open(const struct store_options *options, struct env *env,
    const struct store_executor *executor, struct store **out, struct error *err);

/*
 * Make the tables of `schema` exist here: new tables get a directory, dropped ones are snapshotted
 * (auto_snapshot) and their files removed, altered ones switch to the new metadata. The store takes its own
 * reference to the snapshot. Called by one thread at a time (the schema owner).
 */
int store_set_schema(struct store *store, struct schema *schema, struct error *err);

/*
 * The node's host id: SSTables written from here on carry it, and what they say of the commit log counts at replay only
 * when it is ours (files that came from another node speak of another log). Before store_replay(), where it
 * is known.
 */
void store_set_host_id(struct store *store, const struct uuid *host_id);

/*
 * First half of the replay: the tables of the local keyspaces (system, system_schema), so that the schema can be
 * read through the store before the rest is replayed.
 */
int store_replay_local(struct store *store, struct error *err);
/* Replay the commit log into the memtables (after store_replay_local(), what that left); progress goes to the log. Then writes are accepted. */
int store_replay(struct store *store, struct error *err);

/*
 * Failures of the disks, for disk_failure_policy and commit_failure_policy. Called on the store's timer thread, soon after
 * it happened and once for all of a kind that happened meanwhile; what happened before somebody asked is told then.
 */
enum store_failure {
	STORE_FAILURE_READ, /* of an SSTable: ERROR_IO */
	STORE_FAILURE_CORRUPT, /* of an SSTable: ERROR_CORRUPT */
	STORE_FAILURE_WRITE, /* of a flush or compaction */
	STORE_FAILURE_SPACE, /* the same, no space; writes are refused until there is some */
	STORE_FAILURE_COMMIT_LOG, /* the store takes no writes any more, unless commitlog_ignores_failures */
	STORE_FAILURE_NO_DIRECTORY, /* every data directory has failed (excludes_failed_directories) */
	STORE_FAILURES
};
typedef void (*store_failure_fn)(
    void *context, enum store_failure failure, const struct error *err);
void store_on_failure(struct store *store, store_failure_fn fn, void *context);

/* Everything acknowledged so far is durable when this returns, whatever commitlog_sync is. */
int store_sync(struct store *store, struct error *err);

/* Flush everything that must be, stop background work, close files. */
int store_drain(struct store *store, struct error *err);
void store_close(struct store *store);

/* The handle of a table; free to look up (kept in table_metadata). NULL when it is not known (dropped,
 * virtual). Valid while the caller holds the table's metadata. */
struct table_store *store_table(struct store *store, const struct table_metadata *table);

/*
 * One write in flight. The caller fills the first part and keeps it alive until on_done ran. on_done is
 * called exactly once: on the calling thread before store_apply() returns (periodic sync), or later on
 * the commit log's sync thread (batch, group). err is NULL on success.
 */
struct store_write {
	const struct mutation *mutation;
	bool is_durable; /* keyspace's durable_writes */
	/* This node's counter shards in it are its newest: they were made of what it had before, and nobody else makes any
	 * meanwhile. */
	bool leads_counters;
	void (*on_done)(struct store_write *write, const struct error *err);
	void *context;
	struct buffer *scratch; /* of the calling worker, used during the call; NULL: one is made */
	/* mutation_encode() of the mutation, where there is one already; null: it is made here. */
	struct slice encoded;
	/* Set, with release, when the mutation and what it points to are looked at no more: a write may wait for
	 * memory, with on_done to come, when store_apply() returns. */
	atomic_bool is_applied;
	/* The store's. */
	struct store_write *next;
	struct commitlog_waiter waiter;
};
/* Failures (oversized mutation, disk full, drained) are reported through on_done as well. */
void store_apply(struct store *store, struct store_write *write);
/*
 * Partitions that will be read or written soon, each by a call of its own: memory that all of them would miss one after
 * the other is asked for at once. Only a hint, and cheap. Tables may be dropped ones.
 */
struct store_place {
	const struct table_metadata *table; /* held by the caller */
	int64_t token;
	struct slice key;
};
enum { STORE_AHEAD_MAX = 16 }; /* those behind are not looked at */
void store_ahead(struct store *store, const struct store_place *places, size_t count);

/* As many writes in one go (a stage's run of requests). */
void store_apply_many(struct store *store, struct store_write *const *writes, size_t count);

/*
 * Read. *out is pulled and closed by the caller on the same thread; everything comes from `arena`.
 * Gives unfiltered partitions: tombstones are included (read_live_* below removes them).
 */
int store_read(struct store *store, const struct read_command *command, struct arena *arena,
    struct partition_iterator **out, struct error *err);

/*
 * What a read of the table met, for its statistics (liveScannedHistogram, tombstoneScannedHistogram): told by who pulls
 * from the store and knows what is live. A row without a tombstone is counted for one read of several.
 */
void store_count_read(struct store *store, const struct table_metadata *table, uint64_t live_rows,
    uint64_t tombstones);
/* Another ballot was in the way of a conditional statement on this partition. */
void
store_count_contention(struct store *store, const struct table_metadata *table, struct slice key);
/* One more replica was asked since the others were slow (speculativeRetries). */
void store_count_speculative_retry(struct store *store, const struct table_metadata *table);

/*
 * Live rows of a read: applies live view, filters, per-partition and row limits, and counts tombstones.
 * This is what the CQL front pulls from, one row at a time; a partition with only a live static row
 * yields one result with row == NULL.
 */
struct live_row {
	struct slice key;
	int64_t token;
	bool is_new_partition; /* first result of its partition */
	const struct row *static_row; /* NULL: none, or nothing live in it */
	const struct row *row; /* NULL: only the static row is live */
};
struct live_reader {
	const struct read_command *command;
	struct partition_iterator *source; /* owned */
	struct unfiltered_iterator *partition; /* owned; the current one */
	struct arena *arena;
	struct row static_row, row;
	bool has_static, has_yielded;
	uint32_t rows_left, partition_rows_left;
	uint64_t tombstones; /* seen so far */
	/* In partitions before this one, where each was asked for by its key: the threshold is for each of them. */
	uint64_t tombstones_before;
	uint64_t rows; /* yielded so far */
	uint32_t tombstone_failure_threshold; /* 0: none; over it: ERROR_READ_FAILURE reason 1 */
	struct arena scratch; /* owned; rows of a transient read that are put together here */
	/* NULL, or asked now and then while rows are dropped: -1 ends the read with *err. */
	int (*check)(void *argument, struct error *err);
	void *check_argument;
	uint32_t dropped; /* rows so far that are no results */
};
/* Takes ownership of source. */
void live_reader_init(struct live_reader *reader, const struct read_command *command,
    struct partition_iterator *source, struct arena *arena);
/* 1, 0 at the end, -1. What *out points to stays valid until the next call... of the arena's reset. */
int live_reader_next(struct live_reader *reader, struct live_row *out, struct error *err);
void live_reader_fini(struct live_reader *reader);

/* ---- operations (nodetool) ------------------------------------------------------------------ */

/* Flush a table's memtable and wait until it is on disk. */
int store_flush(struct store *store, struct table_store *table, struct error *err);
/*
 * Drop all data older than now; snapshot first when auto_snapshot. Waits. `record` makes durable that
 * the commit log holds nothing of this table up to `position` (system.local's truncated_at), before any file
 * goes: a replay would bring the data back otherwise. At start store_set_truncated() tells it again.
 */
typedef int (*store_truncated_fn)(void *context, struct table_store *table,
    struct commitlog_position position, struct error *err);
int store_truncate(struct store *store, struct table_store *table, store_truncated_fn record,
    void *context, struct error *err);
void store_set_truncated(
    struct table_store *table, struct commitlog_position position, int64_t truncated_ms);
/* When it was truncated the last time: ms of the wall clock; 0: never. Any thread. */
int64_t table_store_truncated_ms(const struct table_store *table);
/* Hard-link the table's SSTables into <table directory>/snapshots/<tag>. */
struct store_snapshot_options {
	const char *tag;
	bool skip_flush; /* else the memtable is flushed first */
	int64_t ttl_seconds; /* it removes itself then; 0: it stays */
};
int store_snapshot(struct store *store, struct table_store *table,
    const struct store_snapshot_options *options, struct error *err);
/*
 * Incremental backups: each SSTable that is flushed or taken over by store_refresh() is hard-linked into
 * <table directory>/backups, unless the table's option incremental_backups says no. Any thread.
 */
void store_set_incremental_backups(struct store *store, bool is_enabled);
bool store_incremental_backups(const struct store *store);

/* ---- compaction ------------------------------------------------------------------------------ */

/*
 * Merge all SSTables of the table into one (or, leveled, into its levels) and wait; repaired ones, and those of each
 * repair session under way, stay apart.
 */
int store_compact(struct store *store, struct table_store *table, struct error *err);
/*
 * The same, but a size-tiered table's SSTables have half of the data, a quarter and so on, until that is less than 50 MB
 * (nodetool compact -s). For the other strategies there is no difference.
 */
int store_compact_split(struct store *store, struct table_store *table, struct error *err);
/*
 * Rewrite every SSTable without the partitions outside of the ranges that this node owns, and wait (nodetool cleanup).
 * An SSTable that lies in one of them stays as it is. owned_count 0: nothing is owned. `jobs`, here and below: how many
 * SSTables at once, 0: as many as there are threads for.
 */
struct stream_range; /* storage/stream_writer.h */
int store_cleanup(struct store *store, struct table_store *table, const struct stream_range *owned,
    uint32_t owned_count, uint32_t jobs, struct error *err);
/*
 * Compact some SSTables of the table into one, after a flush, and wait (nodetool compact with arguments). *chosen: how many
 * there were. Those that overlap the tokens (left, right]:
 */
int store_compact_range(struct store *store, struct table_store *table, int64_t left, int64_t right,
    uint32_t *chosen, struct error *err);
/* Those that may hold the partition: */
int store_compact_key(struct store *store, struct table_store *table, struct slice key,
    uint32_t *chosen, struct error *err);
/* Those with these Data.db files (a name, or a path whose end is one), without a flush: */
int store_compact_files(struct store *store, struct table_store *table, const char *const *names,
    uint32_t count, uint32_t *chosen, struct error *err);
/*
 * Write SSTables anew, each for itself, with nothing purged (nodetool upgradesstables, recompress_sstables). All that
 * this version opens are of the current format: none is OLD. *rewritten: how many.
 */
enum store_upgrade {
	STORE_UPGRADE_OLD,
	STORE_UPGRADE_ALL,
	STORE_UPGRADE_RECOMPRESS, /* those that are not compressed as the table says now */
};
int store_upgrade(struct store *store, struct table_store *table, enum store_upgrade which,
    uint32_t jobs, uint32_t *rewritten, struct error *err);
/*
 * Write every SSTable anew without what the others of the table delete (rows) or, with `cells`, overwrite as well, and
 * wait (nodetool garbagecollect).
 */
int store_collect_garbage(
    struct store *store, struct table_store *table, bool cells, uint32_t jobs, struct error *err);
/*
 * Write every SSTable anew with what can be read of it, after a snapshot "pre-scrub-<ms>", and wait (nodetool scrub).
 * *good, *bad: partitions. A damaged partition of a counter table ends it, unless skips_corrupted.
 */
struct store_scrub_options {
	bool skips_corrupted, no_validation, no_snapshot;
	uint32_t jobs;
};
int store_scrub(struct store *store, struct table_store *table,
    const struct store_scrub_options *options, uint64_t *good, uint64_t *bad, struct error *err);
/*
 * Check every SSTable of the table (sstable_verify()); calls back for each, err NULL: it is sound. disk_failure_policy does
 * not look at what is found unless it is asked to. -1 when the files cannot be got at.
 */
struct store_verify_options {
	bool is_extended; /* every row is decoded */
	bool is_quick; /* no Data.db is read */
	bool marks_unrepaired; /* what is damaged is not repaired: the next repair fetches it */
	bool tells_failures; /* disk_failure_policy does look */
	const struct stream_range
	    *owned; /* normalized; not NULL: all partitions have to lie in these */
	uint32_t owned_count;
};
typedef void (*store_verified_fn)(void *argument, const char *path, const struct error *err);
int store_verify(struct store *store, struct table_store *table,
    const struct store_verify_options *options, store_verified_fn each, void *argument,
    struct error *err);
/*
 * Incremental repair. store_anticompact(): the unrepaired data of the ranges becomes pending in the session: an SSTable that
 * lies in them whole is marked, any other is split in two. What came of it when it fails, or the process dies, is
 * pending all the same: store_finish_repair() ends a session, with the time at which its data was repaired (ms), or 0: it is
 * unrepaired again. Both wait, may be called again, and leave SSTables of other sessions alone.
 * ERROR_INVALID: data of the ranges belongs to another session.
 */
int store_anticompact(struct store *store, struct table_store *table, const struct uuid *session,
    const struct stream_range *ranges, uint32_t count, struct error *err);
int store_finish_repair(struct store *store, struct table_store *table, const struct uuid *session,
    int64_t repaired_at, struct error *err);
/* The session of each SSTable that is pending in one. */
void store_pending_repairs(struct table_store *table,
    void (*each)(void *context, const struct uuid *session, uint64_t bytes), void *context);
/* Granularity of the index inside partitions that are written from now on. Any thread, as the next. */
void store_set_column_index_size(struct store *store, uint32_t bytes);
uint32_t store_column_index_size(const struct store *store);
/* Hard links a second that all snapshots make together; 0: no limit. */
void store_set_snapshot_throttle(struct store *store, uint64_t links_per_second);
uint64_t store_snapshot_throttle(const struct store *store);
/* Tokens of the keys that the SSTables' summaries hold. */
void store_key_samples(
    struct table_store *table, void (*each)(void *argument, int64_t token), void *argument);
void store_set_auto_compaction(struct store *store, struct table_store *table, bool is_enabled);
bool store_auto_compaction(const struct table_store *table);
/*
 * How many SSTables a compaction takes at least and at most (setcompactionthreshold): instead of the table's options until
 * the node stops. ERROR_INVALID.
 */
int store_set_compaction_threshold(
    struct table_store *table, int32_t min, int32_t max, struct error *err);
void store_compaction_threshold(const struct table_store *table, int32_t *min, int32_t *max);
/* Bytes per second for all compactions of the node; 0: no limit. */
void store_set_compaction_throughput(struct store *store, uint64_t bytes_per_second);
uint64_t store_compaction_throughput(const struct store *store);
void store_set_concurrent_compactors(struct store *store, uint32_t count);
uint32_t store_concurrent_compactors(const struct store *store);

/* One running compaction, copied out. */
struct store_compaction {
	struct uuid id;
	const char *kind; /* "COMPACTION", "TOMBSTONE_COMPACTION", "CLEANUP", ...: static */
	char keyspace[49], table[224];
	uint64_t completed_bytes, total_bytes;
	uint32_t sstables;
};
/* Up to `capacity` of them; returns how many run. */
uint32_t store_compactions(struct store *store, struct store_compaction *out, uint32_t capacity);
uint32_t store_pending_compactions(struct store *store, struct table_store *table);
/* Ask running compactions to stop: by id, or (id NULL) by kind, or (both NULL) all. Returns how many. */
uint32_t store_stop_compactions(struct store *store, const struct uuid *id, const char *kind);
/* Stop all of them, let no other begin, and wait until they have ended. For good: the node is going down. */
void store_end_compactions(struct store *store);

/* A compaction that ended well, for system.compaction_history; called on a CompactionExecutor thread. */
struct store_compaction_record {
	struct uuid id;
	const char *keyspace, *table; /* borrowed during the call */
	int64_t ended_ms;
	uint64_t bytes_in, bytes_out;
	const uint64_t *rows_merged; /* [i]: partitions that came from i + 1 SSTables */
	uint32_t rows_merged_count;
};
typedef void (*store_compaction_fn)(void *context, const struct store_compaction_record *record);
void store_on_compaction(struct store *store, store_compaction_fn fn, void *context);

/* ---- what operators ask ------------------------------------------------------------------------ */

enum { STORE_LEVELS = 9 };

/* Counters and gauges of one table (TableMetrics); histograms are borrowed and live as long as the store. */
struct store_table_stats {
	const char *keyspace, *name; /* live as long as the store */
	struct uuid id;
	uint64_t reads, ranges, writes; /* local */
	const struct histogram *read_us, *range_us, *write_us;
	double reads_per_second, ranges_per_second, writes_per_second; /* five-minute averages */
	const struct histogram *sstables_per_read, *tombstones_per_read, *live_rows_per_read;
	uint32_t sstables;
	uint32_t sstables_in_level[STORE_LEVELS]; /* leveled compaction */
	uint64_t live_bytes,
	    total_bytes; /* on disk; total includes files that wait for their last reader */
	uint64_t snapshot_bytes; /* true size: what only snapshots still hold */
	double compression_ratio; /* compressed / uncompressed; -1 when nothing is compressed */
	uint64_t estimated_partitions;
	uint64_t memtable_partitions, memtable_rows, memtable_bytes, memtable_switches;
	uint32_t pending_flushes, pending_compactions;
	uint64_t filter_false_positives, filter_true_positives;
	uint64_t filter_bytes, summary_bytes, compression_bytes; /* memory */
	uint64_t partition_bytes_min, partition_bytes_max, partition_bytes_mean;
	uint64_t bytes_flushed, bytes_compacted;
	double droppable_tombstone_ratio;
	/* Uncompressed, by what repair knows of the SSTables; pending ones are in a repair that goes on. */
	uint64_t repaired_bytes, unrepaired_bytes, pending_repair_bytes;
	bool is_leveled;
	uint64_t bytes_in_level[STORE_LEVELS];
	uint64_t speculative_retries;
};
/* Reads the statistics of the table's SSTables where that has not happened yet. */
void
store_table_stats(struct store *store, struct table_store *table, struct store_table_stats *out);

/*
 * Partitions that the SSTables promise in the token range (left, right] (INT64_MIN: to the end; it does not wrap), and
 * the mean size of a partition in those that reach into it, bytes. Crude, as SizeEstimatesRecorder.
 */
void store_range_estimate(struct store *store, struct table_store *table, int64_t left,
    int64_t right, uint64_t *partitions, uint64_t *mean_bytes);

/* Each SSTable of the table: its generation (0: it has a UUID), the text of its id, reads since it was opened. */
typedef void (*store_sstable_reads_fn)(
    void *argument, uint64_t generation, const char *id, uint64_t reads);
void store_sstable_reads(
    struct store *store, struct table_store *table, store_sstable_reads_fn each, void *argument);

/* Live tables, copied: free() the array. */
struct table_store **store_tables(struct store *store, uint32_t *count);
/* By names; NULL: none such. */
struct table_store *store_find_table(struct store *store, const char *keyspace, const char *name);
const char *table_store_keyspace(const struct table_store *table);
const char *table_store_name(const struct table_store *table);
/* Where its SSTables lie, one folder for each data directory; lives as long as the store. */
const char *const *table_store_directories(const struct table_store *table, uint32_t *count);
const struct uuid *table_store_id(const struct table_store *table);

/* Sum of estimated sizes per bucket (tablehistograms): offsets as EstimatedHistogram makes them. */
void store_partition_histograms(struct store *store, struct table_store *table,
    struct histogram *sizes, struct histogram *cells);

/* What the floor above keeps for the table: NULL at first. */
_Atomic(void *) *table_store_user(struct table_store *table);

/* Paths of the Data files that hold `key` (getsstables); calls back for each. */
int store_sstables_for_key(struct store *store, struct table_store *table, struct slice key,
    void (*each)(void *argument, const char *path, int32_t level), void *argument,
    struct error *err);

/*
 * Most read and most written partitions during a while (toppartitions). start: false when a sampling of this
 * table runs already. finish calls back, most frequent first; `seen` is the number of operations sampled.
 */
enum store_sampler {
	STORE_SAMPLE_READS,
	STORE_SAMPLE_WRITES,
	STORE_SAMPLE_CAS_CONTENTIONS, /* store_count_contention() */
	STORE_SAMPLE_WRITE_SIZE, /* the greatest mutation of each partition, bytes of its record */
	STORE_SAMPLE_READ_TIME, /* the longest local read of each partition, µs */
	STORE_SAMPLERS
};
bool store_sample_start(struct table_store *table, enum store_sampler which, uint32_t capacity);
struct store_sample {
	struct slice key; /* at most 256 bytes of it */
	uint64_t count,
	    error; /* the true count is between count - error and count; or the greatest value */
};
void store_sample_finish(struct table_store *table, enum store_sampler which, uint32_t limit,
    uint64_t *seen, void (*each)(void *argument, const struct store_sample *sample),
    void *argument);

/* Take over SSTables that were put into the table's directory while the node runs (refresh). */
int
store_refresh(struct store *store, struct table_store *table, uint32_t *added, struct error *err);

/*
 * Take over the SSTables of a folder (an absolute path) that is none of the store's, each for itself: those that fail are
 * told of and stay where they are, those that are taken leave the folder unless they are copied. *added: how many.
 */
struct store_import_options {
	bool copies; /* the files stay where they are */
	bool keeps_level, keeps_repaired; /* else: level 0, not repaired */
	bool is_unverified, is_extended; /* else: as store_verify() */
	const struct stream_range
	    *owned; /* normalized; not NULL: all partitions have to lie in these */
	uint32_t owned_count;
};
int store_import(struct store *store, struct table_store *table, const char *directory,
    const struct store_import_options *options, uint32_t *added, store_verified_fn failed,
    void *argument, struct error *err);

struct store_snapshot_info {
	const char *keyspace, *table, *tag; /* borrowed during the call */
	uint64_t true_bytes, total_bytes;
	int64_t created_ms, expires_ms; /* expires_ms 0: it stays */
};
/* A snapshot over several data directories is one. */
int store_list_snapshots(struct store *store,
    void (*each)(void *argument, const struct store_snapshot_info *info), void *argument,
    struct error *err);
/* tag NULL: all; keyspace NULL: of every keyspace, dropped tables' snapshots included. *removed: how many. */
int store_clear_snapshots(struct store *store, const char *keyspace, const char *tag,
    uint32_t *removed, struct error *err);

struct store_cache_stats {
	uint64_t capacity_bytes, size_bytes, entries, hits, requests;
	double hits_per_second, requests_per_second; /* fifteen-minute averages */
};
void store_key_cache_stats(struct store *store, struct store_cache_stats *out);
void store_chunk_cache_stats(struct store *store, struct store_cache_stats *out);
void store_row_cache_stats(struct store *store, struct store_cache_stats *out);
void store_counter_cache_stats(struct store *store, struct store_cache_stats *out);
void store_invalidate_key_cache(struct store *store);
void store_invalidate_row_cache(struct store *store);
void store_invalidate_counter_cache(struct store *store);
/* nodetool setcachecapacity; bytes, 0: nothing is cached. */
void store_set_cache_capacity(
    struct store *store, uint64_t key_bytes, uint64_t row_bytes, uint64_t counter_bytes);

/* nodetool setcachekeystosave. */
void
store_set_cache_keys_to_save(struct store *store, uint64_t keys, uint64_t rows, uint64_t counters);

/*
 * The shard that this node wrote last of a counter: true and its clock and count, where the counter cache knows it. The
 * caller holds what keeps others from updating the same counter. The row's position is set, unless it is static.
 */
bool store_counter_cached(struct store *store, struct table_store *table, struct slice key,
    const struct row *row, const struct column_metadata *column, int64_t *clock, int64_t *count);

struct store_commitlog_stats {
	uint64_t total_bytes, segments, pending, completed;
	const struct histogram *sync_us; /* borrowed */
};
void store_commitlog_stats(struct store *store, struct store_commitlog_stats *out);
/* Bytes of all live SSTables; touches no file. Any thread. */
uint64_t store_live_bytes(struct store *store);
/* Memory of all memtables, the ones being flushed included, and of those. */
uint64_t store_memtable_bytes(const struct store *store);

#endif
