/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_TABLE_STORE_H
#define HELENUS_STORAGE_TABLE_STORE_H

/*
 * One table's local data (ColumnFamilyStore and its Tracker): which memtables and SSTables there are.
 * Inside storage/ only.
 *
 * A view is an immutable list of both; readers take a reference to the current one and work on it
 * undisturbed, changes install a new one. The write path does not take a view: it reads the current
 * memtable's pointer inside the store's write order, and whoever switches memtables runs a barrier
 * before it drops the old one (op_order.h).
 *
 * Locks: view_lock is held for pointer work only. flush_lock serialises memtable switches of the table.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include "base/lock.h"
#include "base/meter.h"
#include "storage/commitlog.h"
#include "storage/memtable.h"
#include "storage/sampler.h"
#include "storage/sstable.h"
#include "storage/store.h"

/* Ranks of the storage floor: see README.md. */
enum {
	RANK_TABLE_FLUSH = 20,
	RANK_TABLE_REPLACE = 22,
	RANK_STORE_TABLES = 24,
	RANK_STORE_ORDER_BARRIER = 45,
	RANK_TABLE_VIEW = 70,
	RANK_STORE_WAITING = 72,
	RANK_STORE_MEMTABLE_POOL = 82,
	RANK_STORE_FAILURES = 84,
	RANK_STORE_ENTRY_CACHE = 86,
};

enum { STORE_READ_SAMPLE = 16 }; /* latency is measured for one read of so many */

struct table_view {
	atomic_uint refs;
	uint32_t memtable_count;
	struct memtable **memtables; /* newest first, [0] takes the writes; a reference each */
	uint32_t sstable_count;
	struct sstable **sstables; /* newest file first; a reference each */
};

/* A memtable on its way to disk, oldest first in the table's list. */
struct flush {
	struct flush *next;
	struct table_store *table;
	struct memtable *memtable; /* one reference */
	/* Everything of this table at or before `upto` is in this memtable or an older one; what lies
	 * in (after, upto] is in this one for sure, which its SSTable tells a replay. */
	struct commitlog_position after, upto;
	const char *directory; /* that was chosen last, borrowed of the table; NULL: none yet */
	bool is_done;
	bool is_failing; /* it failed the last time; of who runs it */
	atomic_bool needs_retry; /* it failed; the timer submits it again */
};

struct table_stats {
	struct histogram read_us, range_us, write_us;
	struct histogram sstables_per_read, tombstones_per_read, live_rows_per_read;
	atomic_ullong reads, ranges, writes, flushes;
	struct meter read_rate, range_rate, write_rate; /* ticked by the timer */
	atomic_ullong bytes_flushed, bytes_compacted;
	atomic_ullong speculative_retries;
	atomic_ullong bloom_false_positives, bloom_true_positives;
};

struct table_store {
	struct store *store; /* borrowed */
	struct uuid id;
	uint32_t slot; /* in the commit log */
	char *keyspace, *name;
	char *
	    *directories; /* owned; .../data/<keyspace>/<table>-<id>, one for each data directory */
	uint32_t directory_count;
	atomic_ullong next_generation;
	bool is_open; /* set before others see the table */
	atomic_bool is_dropped;
	atomic_bool is_auto_compaction_disabled;
	atomic_int min_threshold,
	    max_threshold; /* of compactions, while the node runs; 0: the table's options */
	atomic_bool is_directory_durable; /* its name, and its keyspace's, were synced */

	_Atomic(struct table_metadata *) metadata; /* a reference; old ones live until close */
	_Atomic(struct memtable *) current; /* = view->memtables[0] */

	struct lock view_lock;
	struct table_view *view; /* guarded by view_lock */

	struct lock replace_lock; /* one replacement of SSTables commits at a time */
	struct lock flush_lock;
	struct flush *flushes; /* oldest first; guarded by view_lock */
	_Atomic uint64_t last_switch_ns; /* read by the timer without the lock */
	struct commitlog_position current_since; /* no older memtable holds a record behind this */
	struct commitlog_position truncated_at; /* replay skips what is at or before it */
	_Atomic int64_t truncated_ms; /* wall clock; 0: never */

	/* Compaction: SSTables that a running task works on; guarded by view_lock. */
	struct sstable **compacting;
	uint32_t compacting_count;

	_Atomic int32_t row_cache_rows; /* how many of a partition; 0: none, INT32_MAX: all */
	atomic_ullong row_cache_owner, counter_cache_owner;
	_Atomic(void *) user; /* table_store_user() */

	struct table_stats stats;
	struct sampler samplers[STORE_SAMPLERS];
};

/* A reference to the current view. */
struct table_view *table_view_acquire(struct table_store *table);
void table_view_release(struct table_view *view);

/*
 * Install a view in which `removed` SSTables are replaced by `added` (references of `added` are
 * taken over) and `flushed` (may be NULL) is no longer among the memtables.
 */
void table_view_replace(struct table_store *table, struct memtable *flushed,
    struct sstable *const *removed, uint32_t removed_count, struct sstable *const *added,
    uint32_t added_count);

/* Open what lies in the directory, after finishing interrupted transactions. */
int table_store_open(struct store *store, const struct table_metadata *metadata, uint32_t slot,
    struct table_store **out, struct error *err);
void table_store_free(struct table_store *table);
/* Make the names of the table's folders durable, once. Before the first file that has to stay. */
int table_store_keep_directory(struct table_store *table, struct error *err);
/* Add complete SSTables of the directory that are not in the view yet; *added: how many. */
int table_store_open_sstables(struct table_store *table, uint32_t *added, struct error *err);

/*
 * Commit the transaction that replaces `removed` by `added` (durable; references are taken over on success) and
 * install the view; the removed files go with their last reader. Finishes and frees `lifecycle` in any case.
 * ERROR_SHUTDOWN when one of `removed` is not in the view any more (truncated meanwhile): nothing has changed.
 */
struct lifecycle;
int table_store_replace_sstables(struct table_store *table, struct lifecycle *lifecycle,
    struct sstable *const *removed, uint32_t removed_count, struct sstable *const *added,
    uint32_t added_count, struct error *err);
/* Forget every SSTable, all or none of them. */
int table_store_discard_sstables(struct table_store *table, struct error *err);
/*
 * The directory (one of table->directories, borrowed) for new SSTables of about `bytes`: of the disks that have the
 * most space left, the one that holds least of this table. With one data directory that one, without a look at
 * its space. ERROR_NO_SPACE where none has that much.
 */
int table_store_choose_directory(
    struct table_store *table, uint64_t bytes, const char **out, struct error *err);
/* Name for a new SSTable of this table in `directory`, which is borrowed. */
struct sstable_descriptor
table_store_new_descriptor(struct table_store *table, const char *directory);
/* Path of an SSTable's files without the component, ".../nb-<id>-big"; heap, the caller's. */
char *sstable_base_path(const struct sstable_descriptor *descriptor);
/* Does the memtable that takes the writes hold anything? Any thread: another may be switching it. */
bool table_store_has_unflushed(struct table_store *table);
/* Bytes of the memtable that takes the writes. */
uint64_t table_store_memtable_bytes(struct table_store *table);

/*
 * Let a new memtable of the table's current metadata take the writes and flush the old one in the
 * background. The caller holds no lock. -1 only when there is no memory for a memtable.
 */
int table_flush_begin(struct table_store *table, struct error *err);
/* Wait until every flush that was begun so far is on disk; -1 as soon as one of them has failed. */
int table_flush_wait(struct table_store *table, struct error *err);
/* Is a flush under way (or waiting to be tried again)? */
bool table_is_flushing(struct table_store *table);
/* Submit again the flushes that failed. */
void table_flush_retry(struct table_store *table);

#endif
