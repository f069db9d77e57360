/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_HINTS_INTERNAL_H
#define HELENUS_CLUSTER_HINTS_INTERNAL_H

/*
 * What the files of hints share: hints.c (the door, what is to be kept), hints_store.c (one node's hints: memory, files, the
 * task that touches them), hints_deliver.c (a session), hints_handle.c (what others bring).
 */
#include <stddef.h>
#include "base/lock.h"
#include "cluster/hints.h"
#include "cluster/hints_file.h"
#include "cluster/messaging.h"
#include "cluster/ranks.h"
#include "cluster/topology.h"

enum {
	HINTS_PAGE_SIZE = 64 << 10, /* sent before answers are waited for (HintsReader) */
	HINTS_BUFFER_FLUSH = 4 << 20, /* of one node: written before the period ends */
	HINTS_BUFFERS_MAX =
	    96 << 20, /* of all; hints beyond are in flight (HintsBufferPool: 3 x 32 MiB) */
	HINTS_BUFFERS_REFUSE = 512 << 20, /* ... and beyond this they are not taken */
	HINTS_TICK_MS = 1000,
	HINTS_DELIVER_MS = 10000, /* HintsDispatchTrigger */
	HINTS_CLEANUP_MS = 3600 * 1000,
	HINTS_POSITION_MS = 5000, /* between two times that a session's place is kept */
	HINTS_STORE_SLOTS = 64,
};

#define HINTS_NS_PER_MS UINT64_C(1000000)

/* What the task of a node's hints has to do; bits. */
enum hints_work {
	HINTS_WORK_FLUSH = 1,
	HINTS_WORK_DELIVER = 2,
	HINTS_WORK_DELETE = 4,
	HINTS_WORK_CLEANUP = 8,
};

/* A file of which nothing is to be written any more. */
struct hints_file {
	struct hints_file *next; /* newer */
	struct hints_name name;
	uint64_t size, position;
	bool is_finished; /* has its .crc32 */
	bool is_corrupt; /* kept, and passed over */
};

struct hints_send {
	struct message_callback callback; /* first */
	struct hints_store *store;
};

/* Delivery to one node. The task's, but for the atomics and the timer. */
struct hints_session {
	bool is_open; /* the task's; hints->sessions counts it */
	struct peer *to;
	struct hints_file *current;
	struct file *reader; /* owned; of `current` */
	struct buffer page;
	uint64_t page_end;
	struct hints_send *sends; /* owned */
	uint32_t send_capacity;
	uint64_t next_ns; /* throttle: no page before this */
	uint64_t position_saved_ns;
	uint64_t sent; /* for the log */
	atomic_uint pending; /* answers to come, and one while a page is being sent */
	atomic_bool has_failed;
	atomic_bool waits; /* the timer is armed */
	struct cluster_timer timer;
};

/* What somebody waits for: that a node's memory is written. */
struct hints_waiter {
	struct hints_waiter *next;
	struct hints_wait *wait;
};

/* One node's hints. Never freed before hints_close(). */
struct hints_store {
	struct hints *hints;
	struct hints_store *next; /* in its slot; immutable once it is there */
	struct uuid host_id;
	_Atomic int64_t oldest_ms; /* of the oldest hint; INT64_MAX: none */
	_Atomic uint64_t bytes; /* in files */
	_Atomic uint32_t in_flight;

	struct lock lock; /* guards what follows */
	struct buffer active; /* records to be written */
	uint32_t active_in_flight; /* of them: counted in in_flight */
	bool is_dirty; /* there may be something in memory, here or in `flushing` */
	struct hints_waiter *waiters; /* owned */
	unsigned work; /* enum hints_work */
	bool is_working; /* the task is queued or runs */
	struct hints_file
	    *files; /* oldest first; the list is changed by the task alone, under the lock */
	struct hints_name writer_name;
	bool has_writer;

	/* The task's. */
	struct task task;
	struct buffer flushing;
	uint32_t flushing_in_flight;
	struct file *writer; /* owned */
	uint64_t writer_size;
	uint32_t writer_crc;
	int64_t last_timestamp_ms; /* of a file's name */
	bool deletes; /* all is to be removed once no answer is waited for */
	atomic_bool is_transferring;
	atomic_bool awaits_turn; /* a session would run if fewer others did */
	struct hints_session session;
};

struct hints_datacenter {
	struct hints_datacenter *next;
	char *name; /* owned */
};

struct hints {
	struct hints_options options;
	char *directory; /* owned */
	struct env *env; /* borrowed; options.cluster's */
	struct hints_settings settings;
	_Atomic(struct hints_store *) stores[HINTS_STORE_SLOTS]; /* owned; by host id */
	_Atomic bool is_paused, is_stopped;
	_Atomic bool has_disabled; /* some data center is */
	_Atomic uint64_t buffered; /* bytes in memory */
	_Atomic uint32_t in_flight, sessions;
	_Atomic(struct peer *) transfer_to;
	struct cluster_timer tick;
	uint64_t ticks; /* the timer's */
	uint64_t flushed_tick, delivered_tick, cleaned_tick;

	struct lock lock; /* guards what follows */
	struct hints_datacenter *disabled; /* owned */
	struct hints_wait *transfer;
	uint32_t transfer_left;
	bool transfer_has_failed;

	_Atomic uint64_t total, not_stored, succeeded, failed, timed_out, applied, apply_failed,
	    expired, completed_sessions, corrupt;
};

static inline int64_t
hints_now_ms(const struct hints *hints)
{
	return env_wall_us(hints->env) / 1000;
}

static inline void
hints_count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* ---- hints.c ---- */

/* The least gc_grace_seconds of the mutation's tables that there are; how many of them are known, and how many not.
 * False: it is no mutation. */
struct hints_tables {
	uint32_t gc_grace_seconds; /* UINT32_MAX: no table is known */
	uint32_t known, unknown;
};
bool hints_look_at(struct hints *hints, struct slice mutation, struct hints_tables *out);
bool hint_is_live(const struct hint *hint, const struct hints_tables *tables, int64_t now_ms);
/* Calls `each` for all stores. */
void hints_each_store(
    struct hints *hints, void (*each)(struct hints_store *store, void *context), void *context);
bool hints_wants(void *context, struct peer *peer);

/* ---- hints_store.c ---- */

/* NULL: there is none. */
struct hints_store *hints_store_find(struct hints *hints, const struct uuid *host_id);
struct hints_store *hints_store_get(struct hints *hints, const struct uuid *host_id);
/* Find what a former run left; before hints_start(). */
int hints_load(struct hints *hints, struct error *err);
void hints_store_free(struct hints_store *store);
bool hints_store_add(struct hints_store *store, const struct hint *hint);
/* Let its task do this. */
void hints_store_kick(struct hints_store *store, unsigned work);
/* Is there anything at all? */
bool hints_store_has_hints(struct hints_store *store);
/* Path of a file, on the heap. */
char *hints_path(const struct hints *hints, const struct hints_name *name, const char *suffix);
/*
 * Read whole records from `position` of a file of `size` bytes: about HINTS_PAGE_SIZE of them, one at least where it
 * is whole. `page` may end in the middle of one.
 */
int hints_read_page(
    struct file *reader, uint64_t size, uint64_t position, struct buffer *page, struct error *err);
/* Opens it and checks the header. */
int hints_file_open(
    struct hints_store *store, const struct hints_file *file, struct file **out, struct error *err);
/* How many of its files are there, with the one being written. */
void hints_store_pending(struct hints_store *store, struct hints_pending *out);
/* The task's: write the memory, durably. -1: it is still there, for the next time. */
int hints_store_flush(struct hints_store *store, struct error *err);
/* The task's: no more is written into the current file; it joins the others. */
void hints_store_finish_file(struct hints_store *store);
/* The task's: the oldest file that is to be delivered; NULL: none. */
struct hints_file *hints_store_first(struct hints_store *store);
void hints_store_remove_file(struct hints_store *store, struct hints_file *file);
void hints_store_save_position(struct hints_store *store, const struct hints_file *file);

/* ---- hints_deliver.c ---- */

/* The task's: go on, or begin. */
void hints_session_run(struct hints_store *store);
void hints_session_fini(struct hints_session *session);
/* The task's, with no answer to come: leave off. */
void hints_session_end(struct hints_store *store, bool is_complete);

/* ---- hints_handle.c ---- */
void hints_handle_verbs(struct hints *hints);
/*
 * HINT_REQ: 16 bytes host id of who missed the write | u8 flags | a hint's body. The answer is empty.
 */
enum { HINTS_REQUEST_HEAD = 17 };
/* Tables that the receiver does not know are gone: the sender does not know them either. */
enum hints_request_flags { HINTS_REQUEST_SKIPS_UNKNOWN = 1 };

#endif
