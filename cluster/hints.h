/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_HINTS_H
#define HELENUS_CLUSTER_HINTS_H

/*
 * Hinted handoff: what a node missed is kept in files and brought to it when it is back (hints/HintsService). It stands
 * behind struct coordinator_hints, and answers HINT_REQ of other nodes.
 *
 *   keep      hints_keep(): into the memory of the node's host id -> flushed and synced every flush_period or when
 *             there is much -> <hints_directory>/<host id>-<ms>-1.hints (cluster/hints_file.h)
 *   deliver   a node is alive again, or every 10 s: the oldest file first, a page of hints at a time, as HINT_REQ; a page that
 *             was answered whole is behind us, and where we are is kept over restarts; a file that is through is removed
 *   receive   applied like a mutation; what this node is no replica of any more is kept for those who are
 *
 * Hints follow the host id: where it lives is looked up in the topology each time. Delivery is by sessions, one for
 * each node at most and max_hints_delivery_threads in all. Nothing blocks: files are touched on CLUSTER_STAGE_HINTS alone, by one
 * task for each node at a time; answers and timers start that task again.
 *
 * Threads: everything below may be called by any thread, unless it says otherwise.
 */
#include "cluster/coordinator.h"

struct hints;

/* What an operator may change while it runs; each is atomic. */
struct hints_settings {
	_Atomic bool is_enabled; /* hinted_handoff_enabled */
	_Atomic bool is_window_persistent; /* hint_window_persistent_enabled */
	_Atomic bool cleans_up; /* auto_hints_cleanup_enabled */
	/* use_creation_time_for_hint_ttl: hints age from when the write was made, and not from when it was missed. */
	_Atomic bool ages_from_creation;
	_Atomic uint64_t window_ms; /* max_hint_window */
	_Atomic uint64_t throttle_bytes; /* hinted_handoff_throttle, a second; 0: none */
	_Atomic uint64_t file_size_max; /* max_hints_file_size */
	_Atomic uint64_t host_size_max; /* max_hints_size_per_host; 0: no limit */
	_Atomic uint64_t flush_period_ms; /* hints_flush_period */
	_Atomic uint32_t delivery_max; /* max_hints_delivery_threads */
};

struct hints_options {
	const char *directory; /* copied */
	struct uuid host_id; /* ours; or told by hints_set_host_id() */
	uint32_t in_flight_max; /* SE-16: Cassandra has 128 for each core */

	/* Borrowed; outlive the hints. */
	struct cluster_env *cluster;
	struct messaging *messaging;
	struct peers *peers;
	struct topology_holder *topology;
	struct store *store;

	/* Any thread; `context` comes first. */
	void *context;
	uint64_t (*timeout_ns)(void *context); /* of a write */
	struct schema *(*schema)(void *context); /* one reference */
	/* How long the node has been down, ns; 0: it is up. */
	uint64_t (*downtime_ns)(void *context, struct peer *peer);
	/* When the table was truncated, ms since 1970; 0: never. What was written before is not applied. */
	int64_t (*truncated_ms)(void *context, const struct table_metadata *table);
};

/*
 * Read the directory (made where it is missing) and listen to HINT_REQ. Nothing is delivered before hints_start().
 * Cassandra's defaults are set. Before the first message.
 */
int hints_open(const struct hints_options *options, struct hints **out, struct error *err);
/* Before the first message. */
void hints_set_host_id(struct hints *hints, const struct uuid *host_id);
/* Flush periodically, and deliver. */
void hints_start(struct hints *hints);
/* No new hint, no new page; what is in memory is on its way to the disk, at hints_close() at the latest. */
void hints_stop(struct hints *hints);
/* With stages and timers quiet and messaging freed: writes what is in memory, and frees. NULL is accepted. */
void hints_close(struct hints *hints);

struct hints_settings *hints_settings(struct hints *hints);
/* Data centers whose nodes get no hints (hinted_handoff_disabled_datacenters). Copied. */
void hints_disable_datacenter(struct hints *hints, const char *datacenter);
void hints_enable_datacenter(struct hints *hints, const char *datacenter);
/* Calls `each` under a lock: short. */
void hints_each_disabled(
    struct hints *hints, void (*each)(void *context, const char *datacenter), void *context);

/* ---- Keeping: what coordinators call ---- */

/* `hints` as a coordinator sees it. */
struct coordinator_hints hints_for_coordinator(struct hints *hints);
/* Keep a hint for whoever has this host id. False: there is no room for it. */
bool hints_keep(
    struct hints *hints, const struct uuid *host_id, struct slice mutation, int64_t created_ms);

/* Somebody who waits, once; memory lives until then. err: NULL on success, valid for the call. */
struct hints_wait {
	void (*on_done)(struct hints_wait *wait, const struct error *err);
	/* private */
	struct hints *hints;
	atomic_uint pending;
	atomic_bool has_failed;
};
/* Everything that was kept before the call is on the disk. on_done may run before this returns. */
void hints_sync(struct hints *hints, struct hints_wait *wait);

/* ---- Delivering ---- */

/* The node is alive again. */
void hints_peer_is_alive(struct hints *hints, struct peer *peer);
/* Look at all nodes for which there are hints, now. */
void hints_deliver(struct hints *hints);
void hints_pause(struct hints *hints, bool is_paused); /* pausehandoff, resumehandoff */
/* Forget all hints, or those for one host id (truncatehints; a node that left: HintsService.excise). */
void hints_truncate(struct hints *hints, const struct uuid *host_id);
/*
 * Give all hints to another node, which keeps them (decommission; HintsService.transferHints). Done when nothing is left here;
 * ERROR_SERVER: it did not take them all. One transfer at a time: ERROR_INVALID.
 */
void hints_transfer(struct hints *hints, struct peer *to, struct hints_wait *wait);

/* ---- What operators see ---- */

struct hints_pending {
	struct uuid host_id;
	uint32_t files;
	uint64_t bytes;
	int64_t oldest_ms, newest_ms; /* of the files' names */
	uint32_t corrupt_files;
};
/* Each host id for which there are hints. `each` runs without locks. */
void hints_each_pending(struct hints *hints,
    void (*each)(void *context, const struct hints_pending *pending), void *context);

struct hints_stats {
	uint64_t total; /* kept since the start (Storage.TotalHints) */
	uint64_t
	    in_progress; /* in flight: beyond what memory is for (Storage.TotalHintsInProgress) */
	uint64_t not_stored; /* past the window, no room */
	uint64_t succeeded, failed, timed_out; /* HintsService: what was sent */
	uint64_t applied, apply_failed; /* ... and what others sent to us */
	uint64_t expired; /* older than gc_grace_seconds, or of tables that are gone */
	uint64_t sessions; /* that deliver now */
	uint64_t completed_sessions;
	uint64_t corrupt; /* damaged records and files */
};
void hints_stats(struct hints *hints, struct hints_stats *out);

#endif
