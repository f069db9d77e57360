/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMPACTION_INTERNAL_H
#define HELENUS_STORAGE_COMPACTION_INTERNAL_H

/*
 * The manager and its tasks, for the files that make up compaction: compaction.c (choosing and running),
 * compaction_chosen.c (operations that choose for themselves), compaction_repair.c (repair sessions).
 */
#include <pthread.h>
#include "storage/compaction.h"
#include "storage/store_internal.h"

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

/* Live SSTables that no task works on. Heap array of borrowed pointers, valid while `view` is held. */
struct sstable **
compaction_candidates(struct table_store *table, const struct table_view *view, uint32_t *count);
/* Those of the pick are worked on; and no more. */
void compaction_mark(struct table_store *table, const struct compaction_pick *pick);
void compaction_unmark(struct table_store *table, const struct compaction_pick *pick);

/* The running compactions of a table hold SSTables that others want: take the manager's lock when none runs. */
void compaction_lock_when_idle(struct compaction_manager *manager, const struct table_store *table);
/* A task of the pick (moved), which is marked, among the running ones. The manager's lock is held. */
struct compaction *compaction_new_locked(struct compaction_manager *manager,
    struct table_store *table, struct compaction_pick pick, const char *kind);
/* Run it on this thread; it is freed. */
void compaction_execute(struct compaction *task);
/* Run it on its stage, with where to tell of its end (read under the manager's lock). -1: ERROR_SHUTDOWN, it is
 * freed. */
int compaction_submit(
    struct compaction *task, bool *is_done, int *result, struct error *task_err, struct error *err);

/* Does all of the SSTable lie in one of the ranges? */
bool
compaction_is_owned(struct sstable *sstable, const struct stream_range *ranges, uint32_t count);

#endif
