/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMMITLOG_INTERNAL_H
#define HELENUS_STORAGE_COMMITLOG_INTERNAL_H

/* The log itself, for the files that make it up: commitlog.c and commitlog_archiver.c. */
#include <pthread.h>
#include "base/lock.h"
#include "base/log.h"
#include "storage/commitlog_segment.h"

/* Lock ranks of the storage floor stand in storage/README.md. */
enum {
	RANK_COMMITLOG_SYNC = 40,
	RANK_COMMITLOG_MAKE = 47,
	RANK_COMMITLOG_SEGMENTS = 50,
	RANK_COMMITLOG_WAKE = 60
};

/*
 * Archiving (commitlog_archiving.properties; Cassandra: CommitLogArchiver). The command runs in a thread of its own
 * for each segment that is full and synced. A segment goes only when that has ended well; until then it is tried
 * again every COMMITLOG_ARCHIVE_RETRY_MS. What has been archived is never written to again (the archive may be a
 * hard link), so segments are neither marked empty nor recycled where archiving is on.
 */
enum { COMMITLOG_ARCHIVE_RETRY_MS = 60000 };
struct commitlog_archiver {
	const char *command; /* borrowed; NULL: no archiving */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool is_woken, is_stopping; /* guarded by mutex */
};

struct commitlog {
	struct env *env;
	struct store_options options; /* strings owned by the store */
	char *directory; /* owned */
	struct op_order *order; /* borrowed */

	_Atomic(struct segment *) active;

	/* Guarded by segments_lock. */
	struct lock segments_lock;
	struct segment *segments; /* oldest first; the active one is last */
	struct segment *spare; /* ready to become active, or NULL */
	struct segment *recycled;
	uint32_t recycled_count;
	uint64_t last_id;
	uint32_t slots_wanted; /* capacity that new segments get */
	uint64_t total_bytes;

	struct lock make_lock; /* one segment is made at a time; taken before segments_lock */

	/* One sync or deletion at a time; taken before segments_lock. */
	struct lock sync_lock;

	_Atomic(struct commitlog_waiter *) waiters;
	atomic_ulong pending;
	atomic_ulong enough; /* of them to end the wait for company; 0: nobody waits for it */
	atomic_ulong completed;
	/* Monotonic ns when the running sync began; 0 while none runs: writers tell from it that the disk lags. */
	atomic_ullong sync_began_ns;
	atomic_bool has_failed;
	struct error failure; /* written once, before has_failed */
	atomic_ullong retry_space_ns; /* after ENOSPC: when to try the next segment */
	struct log_limit spare_error_log;

	/* The sync thread. */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t wake_mutex;
	pthread_cond_t wake_cond;
	bool is_woken, is_stopping;
	uint64_t last_sync_us; /* how long the last sync took */
	unsigned long crowd; /* who waited when the last sync ended: for it, or for the next */

	/* Guarded by segments_lock, as what follows. */
	commitlog_failure_fn on_failure;
	void *failure_context;
	commitlog_pressure_fn on_pressure;
	void *pressure_context;

	struct histogram sync_us;

	/* What was there at open, oldest first; owned. */
	struct segment_file *replay_files;
	size_t replay_count;

	struct commitlog_archiver archiver;
	struct segment_sections
	    *sections; /* owned; NULL: segments are not compressed. Used under sync_lock */
	/* A section found no space: nothing is lost, it is in memory; writes are refused until a sync finds some. */
	atomic_bool lacks_space;
	atomic_bool has_sealed; /* a compressed segment is full and not synced */
};

/* Delete what is clean and archived; on the sync thread soon. */
void commitlog_wake(struct commitlog *log);

/*
 * Before the log reads its directory: archive what the last run left there, then run restore_command for
 * what lies in restore_directories. ERROR_CONFIG, ERROR_IO. A failing archive command is logged: those segments
 * go to unarchived/ once they have been replayed.
 */
void commitlog_archive_found(struct commitlog *log, struct segment_file *files, size_t count);
int commitlog_restore(struct commitlog *log, uint32_t *restored, struct error *err);
/* After the replay of `file`: it is needed no more. Deletes it, or keeps it in unarchived/. */
int
commitlog_drop_replayed(struct commitlog *log, const struct segment_file *file, struct error *err);

int commitlog_archiver_start(struct commitlog *log, struct error *err);
/* A segment has become full. Takes no lock of the log's. */
void commitlog_archiver_wake(struct commitlog *log);
/* After the sync thread has ended: archives what is left, the active segment included. */
void commitlog_archiver_stop(struct commitlog *log);

#endif
