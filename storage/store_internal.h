/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STORE_INTERNAL_H
#define HELENUS_STORAGE_STORE_INTERNAL_H

/* The store itself, for the files of storage/ that make it up. */
#include <pthread.h>
#include "base/log.h"
#include "storage/table_store.h"

enum { STORE_CACHE_KEYS, STORE_CACHE_CHUNKS, STORE_CACHE_ROWS, STORE_CACHE_COUNTERS, STORE_CACHES };

enum store_state { STORE_STARTING, STORE_RUNNING, STORE_DRAINED };

/* store_failure.c */
struct store_failures {
	struct sstable_watch watch;
	struct lock lock;
	/* Guarded by lock. */
	struct {
		bool is_pending;
		struct error err;
		char *path; /* owned; NULL: not known */
	} kinds[STORE_FAILURES];
	store_failure_fn on_failure;
	void *context;

	atomic_bool is_pending; /* one of them is */
	/* By data directory; set once it failed and only where that excludes it. */
	atomic_bool *is_unwritable;
};

struct store {
	struct store_options options; /* strings and directories owned */
	struct env *env;
	struct store_executor executor;
	struct op_order order; /* the write order */
	struct commitlog *commitlog;
	struct sstable_context sstables; /* its caches are owned */
	struct compaction_manager *compactions;
	struct entry_cache *row_cache, *counter_cache; /* owned */
	struct {
		struct meter hits, requests;
	} cache_rates[STORE_CACHES]; /* ticked by the timer */
	uint64_t meters_ticked_ns; /* the timer's */
	atomic_ullong cache_keys_to_save[STORE_SAVED_CACHES];
	_Atomic uint64_t caches_saved_ns; /* when they were saved last */
	atomic_bool is_saving_caches;
	atomic_ullong cache_owners; /* the next owner of entries in them */
	atomic_int state;
	struct store_failures failures;
	bool has_replayed_local;
	struct log_limit compaction_error_log;
	atomic_bool incremental_backups;
	atomic_uint column_index_bytes;
	atomic_ullong snapshot_links_per_second; /* 0: no limit */
	atomic_ullong snapshot_next_ns; /* when the next link may be made, monotonic */
	_Atomic int64_t next_snapshot_expiry_ms; /* when to look for snapshots that have expired */
	struct uuid host_id; /* constant once has_host_id is set */
	atomic_bool has_host_id;

	/* Guarded by tables_lock for writers; readers go through table_metadata.user. */
	struct lock tables_lock;
	struct table_store **tables; /* by slot; NULL: free */
	uint32_t table_count, table_capacity;
	struct schema *schema; /* a reference */
	struct table_metadata **old_metadata; /* of altered tables; a reference each */
	uint32_t old_metadata_count;

	/* Bytes of all memtables, the ones being flushed included. */
	atomic_ullong memtable_bytes;
	struct arena_pool memtable_pool; /* memory of flushed memtables, for the next ones */
	atomic_ullong flushing_bytes;
	_Atomic uint64_t relieve_bytes; /* at this a flush is begun; see store_set_relief() */
	atomic_bool is_relieving;

	/* Why writes are refused for now (disk full while flushing), guarded by waiting_lock. */
	struct lock waiting_lock;
	struct store_write *waiting_first, *waiting_last; /* writes that wait for memory */
	atomic_uint waiting_count;
	struct error flush_error;
	atomic_uint
	    failing_flushes; /* those that failed the last time; while there are some, writes are refused */
	struct log_limit flush_error_log;

	/* Signalled when a flush has ended. */
	pthread_mutex_t flush_mutex;
	pthread_cond_t flush_cond;

	/* The thread for what is due by time: flush periods, retries of failed flushes. */
	pthread_t timer_thread;
	bool has_timer_thread;
	pthread_mutex_t timer_mutex;
	pthread_cond_t timer_cond;
	bool is_stopping;
};

/* May writes go on as far as memory of memtables is concerned? */
bool store_has_memory(const struct store *store);
/* Flush all tables at once, and wait: what the log alone held is in SSTables then. */
int store_flush_all(struct store *store, struct error *err);
/* Flush the table with the largest memtable when the memtables take more than their share. */
void store_relieve_memory(struct store *store);
/* Writes that waited for memory go on. */
void store_resume_waiting(struct store *store);
/* Is this table's stretch of the commit log a stretch of ours? */
bool store_is_own_log(const struct store *store, const struct sstable_stats *stats);
/* A flush ended well and `bytes` of memtables are free; or it failed, for the first time or again, and will be tried again. */
void store_flush_ended(struct store *store, uint64_t bytes);
void store_flush_failed(
    struct store *store, struct table_store *table, bool is_first, const struct error *err);
/* Something failed; path: what was read or written, NULL where that is not known. Any thread, waits for nothing. */
void store_note_failure(
    struct store *store, enum store_failure failure, const char *path, const struct error *err);
/* On the timer's thread: exclude directories, tell the server. */
void store_handle_failures(struct store *store);
void store_failures_init(struct store *store);
void store_failures_fini(struct store *store);

/*
 * The part of a single-partition read that no cache serves; *out NULL: nothing there. The caller holds the view, and
 * calls memtable_release(*holds) before it gives that back, also after a failure.
 */
int store_read_partition(struct table_store *table, struct table_view *view,
    const struct read_command *command, struct arena *arena, struct memtable_hold **holds,
    struct unfiltered_iterator **out, struct error *err);

/* On the timer's thread, about every METER_TICK_SECONDS. */
void store_tick_meters(struct store *store, double seconds);

/* Run `work` on a stage of the server's. */
bool store_submit(struct store *store, const char *stage, store_work_fn work, void *argument);

#endif
