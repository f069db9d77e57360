/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPAIR_H
#define HELENUS_CLUSTER_REPAIR_H

/*
 * Repair (service/ActiveRepairService, repair/RepairRunnable, RepairSession, RepairJob): replicas of a range find out by
 * Merkle trees where they differ, and stream what each lacks.
 *
 *   command  options -> ranges with the same replicas -> PREPARE to all -> a session for each such set -> CLEANUP
 *   session  a job for each table
 *   job      PAXOS2_CLEANUP (cluster/paxos_repair.h) -> VALIDATION of all replicas (SNAPSHOT first, when not all at once) -> trees compared in pairs -> SYNC
 *
 * The coordinator of a command is one of the replicas, and asks itself like the others. Every question may be asked again: a
 * participant answers "at work" after a while, and the coordinator goes on asking; so lost messages and long
 * work need no timeouts that somebody would have to guess. A participant that dies, or does not know of the command
 * (it was started anew), fails the sessions that it is part of; the others go on.
 *
 * Threads: all of it runs on CLUSTER_STAGE_ANTI_ENTROPY, which is one thread; what touches a disk for long on
 * CLUSTER_STAGE_VALIDATION. Functions below may be called by any thread.
 */
#include "base/uuid.h"
#include "cluster/messaging.h"
#include "cluster/topology.h"
#include "storage/store.h"

struct repairs;

enum repair_parallelism {
	REPAIR_SEQUENTIAL, /* one replica validates at a time, of data as it was at the same moment */
	REPAIR_PARALLEL,
	REPAIR_DC_PARALLEL, /* one of each data center */
};

/* What is compared, and nothing is streamed. */
enum repair_preview {
	REPAIR_PREVIEW_NONE,
	REPAIR_PREVIEW_ALL,
	REPAIR_PREVIEW_UNREPAIRED,
	REPAIR_PREVIEW_REPAIRED, /* is repaired data in sync? */
};

/* RepairOption. Zeros are nodetool's defaults but for parallelism, job_threads and is_incremental. */
struct repair_options {
	const char *keyspace;
	const char *const *tables; /* count 0: all */
	uint32_t table_count;
	enum repair_parallelism parallelism;
	uint32_t job_threads;
	enum repair_preview preview;
	bool is_incremental;
	bool is_primary_range;
	bool is_pull; /* this node fetches, and sends nothing */
	bool is_forced; /* without the replicas that are down */
	bool ignores_unreplicated;
	bool is_paxos_only; /* no data is compared; is_incremental is void then */
	bool skips_paxos; /* the state of Paxos is left as it is */
	bool
	    optimises_streams; /* replicas that are equal are one source; not together with is_pull */
	bool is_traced; /* a session of system_traces tells what happens */
	const char *const *datacenters; /* count 0: all */
	uint32_t datacenter_count;
	const struct endpoint *hosts; /* count 0: all; this node must be one */
	uint32_t host_count;
	const struct ring_range *ranges; /* count 0: all of this node's */
	uint32_t range_count;
};

/* A pair of replicas that exchange ranges of a table, for repair_ops.sync: `peer` and this node. */
struct repair_sync {
	struct peer *peer;
	const char *keyspace, *table;
	const struct ring_range *ranges;
	uint32_t range_count;
	bool is_pull; /* only fetch */
	bool has_pending_repair;
	struct uuid pending_repair; /* only SSTables of this session, which stay its own */
	void *
	    exchange; /* heap memory of who does it; freed with the repair, also where the node stops first */
	/* Once, on any thread. */
	void (*on_done)(struct repair_sync *sync, const struct error *err);
};

/* What repair_history and parent_repair_history are told. Strings are borrowed for the call. */
struct repair_record {
	enum {
		REPAIR_RECORD_PARENT_START,
		REPAIR_RECORD_PARENT_SUCCESS,
		REPAIR_RECORD_PARENT_FAILURE,
		REPAIR_RECORD_START, /* of a session and a table */
		REPAIR_RECORD_SUCCESS,
		REPAIR_RECORD_FAILURE,
		REPAIR_RECORD_TRACE_START, /* the session of system_traces */
		REPAIR_RECORD_TRACE_END,
	} kind;
	const struct trace *trace; /* TRACE_START, TRACE_END */
	struct uuid parent, session;
	const char *keyspace;
	const char *const *tables; /* a session's: one */
	uint32_t table_count;
	const struct ring_range *ranges;
	uint32_t range_count;
	struct peer *const *participants; /* a session's */
	uint32_t participant_count;
	const struct repair_options *options; /* PARENT_START */
	const char *failure;
};

/* Where an incremental repair stands at a participant (ConsistentSession.State, whose numbers these are). */
enum repair_state {
	REPAIR_PREPARING,
	REPAIR_PREPARED,
	REPAIR_REPAIRING, /* Cassandra's; ours stays PREPARED */
	REPAIR_FINALIZE_PROMISED,
	REPAIR_FINALIZED,
	REPAIR_HAS_FAILED,
};
const char *repair_state_name(enum repair_state state); /* "PREPARED" */
bool repair_state_is_over(enum repair_state state);
struct repair_local;
/* It tells when its ranges were repaired, until they are again; others that are over go after a day. */
bool repair_local_is_kept(const struct repair_local *local);

/* A row of system.repairs. */
struct repair_local {
	struct repair_local *next;
	struct uuid id; /* the command's */
	enum repair_state state;
	struct endpoint coordinator;
	int64_t started_ms, last_update_ms;
	int64_t repaired_at; /* ms; 0: not all replicas take part */
	const struct uuid *tables;
	uint32_t table_count;
	const struct ring_range *ranges;
	uint32_t range_count;
	const struct endpoint *participants;
	uint32_t participant_count;
};

struct repair_ops {
	void *context;
	struct schema *(*schema)(void *context); /* the schema of now; a reference */
	void (*sync)(void *context, struct repair_sync *sync);
	void (*record)(void *context, const struct repair_record *record); /* must not wait */
	/* Write the row of system.repairs; waits. What is over, and not repair_local_is_kept(), may go after a day. */
	int (*save)(void *context, const struct repair_local *local, struct error *err);
	/* One that was kept is not needed any more. */
	void (*forget)(void *context, const struct uuid *id);
	struct paxos *paxos; /* borrowed; NULL: there is none, and none is repaired */
	bool paxos_strict_each_quorum; /* paxos_topology_repair_strict_each_quorum */
	bool paxos_no_dc_checks; /* paxos_topology_repair_no_dc_checks */
	/* Before a change of the ring: not this keyspace (skip_paxos_repair_on_topology_change_keyspaces). */
	bool (*skips_paxos)(void *context, struct slice keyspace);
	uint64_t session_space; /* bytes of all trees of a job: repair_session_space */
	uint32_t depth_max; /* repair_session_max_tree_depth */
};

struct repairs *
repairs_new(struct cluster_env *env, struct peers *peers, struct messaging *messaging,
    struct topology_holder *topology, struct store *store, const struct repair_ops *ops);
/* With stages and timers quiet, messaging freed, the store open. NULL is accepted. */
void repairs_free(struct repairs *repairs);
/* The failure detector gave the peer up. */
void repairs_peer_is_down(struct repairs *repairs, struct peer *peer);

/* The rows of system.repairs (copied), then go on with what they say. Before the first message. */
void repairs_add_saved(struct repairs *repairs, const struct repair_local *saved);
void repairs_resume(struct repairs *repairs);

/* ---- Incremental repairs that this node is part of ---- */

/* Under a lock: the call must be short. */
void repairs_each_session(struct repairs *repairs,
    void (*each)(void *context, const struct repair_local *local), void *context);
/* All participants fail it. Only by its coordinator, unless forced. ERROR_INVALID: no such session, or it is over. */
int repairs_cancel_session(
    struct repairs *repairs, const struct uuid *id, bool is_forced, struct error *err);

/* Do a session and the ranges have tokens in common? */
bool repair_local_has_range(
    const struct repair_local *local, const struct ring_range *ranges, uint32_t range_count);

/* Ranges that were repaired at one time; 0: they were not. */
struct repair_section {
	struct ring_range range;
	int64_t repaired_at; /* ms */
};
/*
 * The ranges, cut where that time changes, from the ring's begin on; heap. 0: nothing of the table was ever repaired
 * incrementally. Any thread.
 */
uint32_t repairs_repaired(struct repairs *repairs, const struct uuid *table,
    const struct ring_range *ranges, uint32_t range_count, struct repair_section **out);

/* Data of a table that stands apart for sessions. */
struct repair_pending_stat {
	uint64_t bytes, sstables, sessions;
};
struct repair_pending_stats {
	struct repair_pending_stat pending, finalized, failed; /* by the state of the session */
};
/* Of sessions that have to do with the ranges. Any thread. */
void repairs_pending(struct repairs *repairs, struct table_store *table,
    const struct ring_range *ranges, uint32_t range_count, struct repair_pending_stats *out);
/* What sessions that are over left apart becomes repaired or unrepaired. Waits for compactions of the table. */
void
repairs_cleanup(struct repairs *repairs, struct table_store *table, const struct ring_range *ranges,
    uint32_t range_count, uint32_t *successful, uint32_t *unsuccessful);

/* ---- Commands ---- */

/*
 * Begin a repair; its number (from 1) goes to *number, 0: the keyspace has one replica, there is nothing to do. Options are copied. ERROR_INVALID: no such keyspace or table,
 * options that contradict each other.
 */
int repairs_start(struct repairs *repairs, const struct repair_options *options, uint32_t *number,
    struct error *err);
/* All commands that run end with an error (forceTerminateAllRepairSessions). Returns how many there are. */
uint32_t repairs_terminate_all(struct repairs *repairs);

/* Validations that run on this node fail, and with them the sessions that they are for (nodetool stop VALIDATION). */
void repairs_stop_validations(struct repairs *repairs);

/* ---- What commands, sessions and jobs went through (repair/state; system_views.repairs) ---- */

/* CoordinatorState.State, SessionState.State, JobState.State */
enum {
	REPAIR_COMMAND_INIT,
	REPAIR_COMMAND_SETUP,
	REPAIR_COMMAND_START,
	REPAIR_COMMAND_PREPARE_START,
	REPAIR_COMMAND_PREPARE_COMPLETE,
	REPAIR_COMMAND_REPAIR_START,
	REPAIR_COMMAND_REPAIR_COMPLETE,
	REPAIR_STATES_MAX,
};
enum { REPAIR_SESSION_INIT, REPAIR_SESSION_START, REPAIR_SESSION_JOBS_START };
enum {
	REPAIR_JOB_INIT,
	REPAIR_JOB_START,
	REPAIR_JOB_SNAPSHOT_START,
	REPAIR_JOB_SNAPSHOT_COMPLETE,
	REPAIR_JOB_VALIDATION_START,
	REPAIR_JOB_VALIDATION_COMPLETE,
	REPAIR_JOB_STREAM_START,
};
/* ValidationState.State */
enum { REPAIR_VALIDATION_INIT, REPAIR_VALIDATION_START, REPAIR_VALIDATION_SENDING_TREES };

enum repair_result {
	REPAIR_RESULT_NONE,
	REPAIR_RESULT_SKIPPED,
	REPAIR_RESULT_SUCCESS,
	REPAIR_RESULT_FAILURE,
};

struct repair_history {
	int64_t state_ms[REPAIR_STATES_MAX]; /* when it was reached; 0: it was not */
	uint8_t last; /* the state it is in, where it has no result */
	enum repair_result result;
	int64_t result_ms;
	char text
	    [ERROR_TEXT_MAX]; /* of the result: why it failed, or what it says of itself; or empty */
};

enum repair_view_kind {
	/* Of commands that this node coordinates. */
	REPAIR_VIEW_COMMAND,
	REPAIR_VIEW_SESSION,
	REPAIR_VIEW_JOB,
	/* Of those that it takes part in, its own among them. */
	REPAIR_VIEW_PARTICIPATE,
	REPAIR_VIEW_VALIDATION,
};
struct repair_view {
	enum repair_view_kind kind;
	struct uuid id, parent; /* parent: the command's */
	struct uuid session; /* of a session and a job */
	const struct repair_history *history;
	const char *keyspace;
	const char *const *tables; /* not yet chosen: count 0 */
	uint32_t table_count;
	const struct ring_range *ranges;
	uint32_t range_count;
	const uint32_t *
	    group_sizes; /* of a command: ranges with the same replicas, one group behind the other */
	uint32_t group_count;
	struct peer *const *participants;
	uint32_t participant_count;
	const struct uuid *children; /* a command's sessions, a session's jobs */
	uint32_t child_count;
	uint32_t number; /* of a command */
	const struct repair_options *options; /* of a command */

	/* Of PARTICIPATE and VALIDATION. */
	const struct endpoint *initiator; /* the command's coordinator */
	/* PARTICIPATE; its tables are "keyspace.table", its children validations. */
	bool is_incremental, is_global; /* global: of all data centers and hosts */
	enum repair_preview preview;
	int64_t repaired_at; /* ms; 0: nothing becomes repaired */
	/* VALIDATION */
	uint64_t estimated_partitions, estimated_bytes, partitions, bytes;
};
/* Of the last hundred commands. Under a lock: the calls must be short. Any thread. */
void repairs_each_view(struct repairs *repairs, enum repair_view_kind kind,
    void (*each)(void *context, const struct repair_view *view), void *context);

/* ---- Paxos, where the ring changes ---- */

/*
 * Before this node's place in the ring changes: what Paxos left over in its ranges is finished, while the majorities of before
 * and after still have nodes in common (StorageService.repairPaxosForTopologyChange). All know of the change by now.
 * Filled by the caller, and alive until on_done.
 */
struct repair_paxos {
	const char *reason; /* "bootstrap"; static */
	bool
	    has_natural; /* in the ranges that this node has too, not only in those that come to it */
	/*
	 * This node takes its own place again, with nothing of what it had: it neither counts as a replica that is alive nor is it
	 * asked; to the others it is dead.
	 */
	bool is_without_state;
	/*
	 * Once, on any thread. ERROR_UNAVAILABLE: too few replicas are alive, also after some tries; others: somebody could
	 * not finish. */
	void (*on_done)(struct repair_paxos *paxos, const struct error *err);

	/* private */
	struct repair_paxos *next;
	struct repairs *repairs;
	struct task task;
	struct cluster_timer timer;
	uint32_t tries, pending;
	struct error err;
};
void repairs_finish_paxos(struct repairs *repairs, struct repair_paxos *paxos);

/* A line of a command's progress. */
struct repair_line {
	int64_t time_ms;
	int32_t percent; /* -1: none */
	const char *text; /* borrowed for the call */
};
struct repair_status {
	struct uuid parent;
	struct trace trace;
	bool is_done, has_failed;
	uint32_t line_count;
	char failure[ERROR_TEXT_MAX];
};
/* Lines from the given one on; false: there is no such command (only the last hundred are kept). */
bool repairs_status(struct repairs *repairs, uint32_t number, uint32_t from,
    void (*each)(void *context, const struct repair_line *line), void *context,
    struct repair_status *out);

#endif
