/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPAIR_INTERNAL_H
#define HELENUS_CLUSTER_REPAIR_INTERNAL_H

/*
 * Shared by repair.c (the door, questions), repair_command.c (a command and its sessions), repair_plan.c (which ranges with
 * whom), repair_job.c (one table of a session), repair_paxos.c (the state of Paxos) and repair_participant.c (the answering side).
 */
#include "base/lock.h"
#include "cluster/repair.h"
#include "cluster/repair_message.h"
#include "storage/merkle_tree.h"
#include "storage/validation.h"

enum { REPAIR_COMMANDS_KEPT = 100, REPAIR_CLOSED_KEPT = 64 };

/* ---- questions (repair.c) ---- */

/*
 * A question to a participant, asked until its work is done. On the heap, its own: it goes when its end has been told
 * or it was cancelled, and no answer is on its way any more.
 */
struct repair_call {
	struct message_callback callback;
	struct task task;
	struct cluster_timer timer;
	struct repairs *repairs;
	struct repair_call *next, **link; /* in repairs->calls */
	struct peer *peer;
	enum verb verb;
	struct message_payload *payload; /* owned */
	struct message_payload *answer; /* owned; the last */
	uint32_t lost; /* answers that never came, in a row */
	bool is_told; /* or cancelled */
	/* On the anti-entropy stage; the result is borrowed. */
	void (*on_done)(
	    void *context, struct peer *peer, struct slice result, const struct error *err);
	void *context;
	struct trace trace;
};
typedef void (*repair_call_fn)(
    void *context, struct peer *peer, struct slice result, const struct error *err);

/* Ask; takes the payload's bytes (a copy). trace: of the command, or NULL. The handle is good until on_done is called. */
struct repair_call *repair_call(struct repairs *repairs, struct peer *peer, enum verb verb,
    struct slice payload, const struct trace *trace, repair_call_fn on_done, void *context);
void repair_call_cancel(struct repair_call *call);
/* For repair_call(): nobody waits. */
void repair_ignore(void *context, struct peer *peer, struct slice result, const struct error *err);

/* ---- a command ---- */

/* Ranges that have the same replicas, which make one session. */
struct repair_common {
	struct peer **peers; /* owned; this node first */
	uint32_t peer_count;
	bool has_skipped; /* some replicas are down: --force */
	struct ring_range *ranges; /* owned */
	uint32_t range_count;
};

struct repair_plan {
	struct repair_common *commons; /* owned */
	uint32_t common_count;
	uint32_t range_count;
	struct peer **peers; /* owned; of all, each once; this node first */
	uint32_t peer_count;
};

struct repair_table {
	char *name; /* owned */
	struct uuid id;
	uint64_t partitions; /* the most that a participant estimates in the plan's ranges */
};

struct repair_text {
	int64_t time_ms;
	int32_t percent;
	char *text; /* owned */
};

struct repair_command;
struct repair_session;

/* One table of a session. */
struct repair_job {
	struct repair_session *session;
	struct uuid id;
	struct repair_history history; /* guarded by repairs->lock */
	struct repair_table *table;
	enum { JOB_WAITING, JOB_PAXOS, JOB_SNAPSHOT, JOB_VALIDATION, JOB_SYNC, JOB_DONE } state;
	uint32_t pending; /* answers */
	struct merkle_tree **trees; /* owned; [participant * ranges + range] */
	uint8_t *depths; /* owned; of each range */
	uint32_t *chains; /* owned; of each participant: who validates after whom */
	bool *is_asked; /* owned */
	struct repair_call **calls; /* owned array; those that are out */
	uint32_t call_count, call_room;
	int64_t now_seconds;
	uint64_t synced_ranges;
};

struct repair_session {
	struct repair_command *command;
	struct uuid id;
	struct repair_common *common; /* the plan's */
	struct repair_job *jobs; /* owned; one for each table */
	uint32_t jobs_done;
	bool is_done, has_failed;
	struct repair_history history; /* guarded by repairs->lock */
};

struct repair_command {
	struct repairs *repairs;
	struct repair_command *next; /* guarded by repairs->lock */
	struct task task;
	uint32_t number;
	struct uuid parent;
	struct trace trace; /* constant; TRACE_NONE: not traced */

	/* Copies. */
	struct repair_options options;
	char **texts; /* owned; what options point to */
	uint32_t text_count;

	/* Guarded by repairs->lock. */
	struct repair_text *lines; /* owned */
	uint32_t line_count;
	bool is_done, has_failed;
	char failure[ERROR_TEXT_MAX];
	bool is_terminating;
	struct repair_history history;
	/* What others may look at; neither changes from then on: plan and tables; how many sessions, with their jobs. */
	bool look_plan;
	uint32_t look_sessions;

	/* The stage's. */
	uint64_t started_ns;
	int64_t repaired_at; /* 0: unrepaired */
	struct repair_plan plan;
	struct repair_table *tables; /* owned */
	uint32_t table_count;
	struct repair_session *sessions; /* owned */
	uint32_t session_count, sessions_done, sessions_failed;
	uint32_t running_jobs, next_job; /* jobs are counted session by session */
	uint32_t ranges_done;
	uint32_t pending; /* answers to a step */
	struct repair_call **calls; /* owned array; of the step */
	uint32_t call_count;
	struct error err; /* the first of the step */
	bool step_has_failed;
	bool has_prepared; /* participants know of it */
	bool is_committing; /* participants were told to finalize: it cannot fail any more */
	uint64_t preview_ranges;
};

/* ---- what this node did for repairs, its own and others' (repair_trail.c) ---- */

struct repair_validation {
	struct uuid id, session;
	char *table; /* owned */
	struct ring_range *ranges; /* owned */
	uint32_t range_count;
	struct repair_history history; /* guarded by repairs->lock */
	/* Relaxed: figures for who looks on. */
	_Atomic uint64_t estimated_partitions, estimated_bytes, partitions, bytes;
};

struct repair_trail {
	struct repair_trail *next;
	struct uuid id; /* the command's */
	struct endpoint initiator;
	char *keyspace; /* owned */
	char **tables; /* owned; "keyspace.table" */
	uint32_t table_count;
	struct ring_range *ranges; /* owned */
	uint32_t range_count;
	bool is_incremental, is_global;
	enum repair_preview preview;
	int64_t repaired_at;
	/* Guarded by repairs->lock. */
	struct repair_history history;
	struct repair_validation **validations; /* owned */
	uint32_t validation_count;
	bool is_open; /* its parent still points to it */
};

struct repairs {
	struct cluster_env *env; /* borrowed, and all that follow */
	struct peers *peers;
	struct messaging *messaging;
	struct topology_holder *topology;
	struct store *store;
	struct repair_ops ops;

	struct lock lock;
	/* Guarded by lock. */
	struct repair_command *commands; /* owned; the newest first */
	uint32_t last_number;
	struct repair_local *locals; /* owned; repair_local.c */
	struct repair_trail *trails; /* owned; the newest first */

	/* The stage's. */
	struct repair_call *calls; /* owned */
	struct repair_parent *parents; /* owned; repair_participant.c */
	struct repair_paxos *paxos; /* repair_paxos.c: those that run */
	struct uuid closed
	    [REPAIR_CLOSED_KEPT]; /* parents that ended last: a late PREPARE shall not bring one back */
	uint32_t next_closed;
	struct cluster_timer tick_timer; /* armed while there are works */
	struct task tick_task;
	bool is_ticking;
	struct cluster_timer check_timer; /* repair_local.c: sessions that were promised */
	struct task check_task, start_task;
	bool is_checking;
};

/* ---- repair.c ---- */
void repair_uuid(struct repairs *repairs, struct uuid *out); /* a timeuuid of now */
struct peer *repair_peer(struct repairs *repairs, const struct endpoint *endpoint);
/* Does the peer answer? */
bool repair_is_alive(const struct peer *peer);

/* ---- repair_plan.c ---- */

/*
 * Which ranges with whom. *skipped_text: a notice of what is left out, or empty. ERROR_INVALID: the options ask for what
 * this node cannot repair; ERROR_UNAVAILABLE: replicas are down.
 */
int repair_plan_make(struct repairs *repairs, const struct topology *topology,
    const struct keyspace_metadata *keyspace, const struct repair_options *options,
    struct repair_plan *out, struct error *err);
void repair_plan_fini(struct repair_plan *plan);

/* ---- repair_command.c ---- */
void repair_command_begin(struct repair_command *command);
void repair_command_free(struct repair_command *command);
/* A line that nodetool shows. */
void repair_say(struct repair_command *command, bool has_percent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The job has ended; err: the whole session fails with it. */
void repair_job_ended(struct repair_job *job, const struct error *err);
/* An event of a command that is traced. */
void repair_trace(const struct repair_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void repair_command_terminate(struct repair_command *command, const char *why);

/* Terminate the command of this session, where it runs here. */
void repair_command_cancel(struct repairs *repairs, const struct uuid *parent);
bool repair_command_is_running(struct repairs *repairs, const struct uuid *parent);

/* ---- repair_job.c ---- */
void repair_job_start(struct repair_job *job);
/* Ask a participant; on_done gets a context for repair_job_answered(), which tells whose answer it is. */
void repair_job_ask(struct repair_job *job, uint32_t index, const struct repair_message *message,
    repair_call_fn on_done);
struct repair_job *repair_job_answered(void *context);
void repair_job_end(struct repair_job *job, const struct error *err);
/* Paxos is repaired: snapshots and trees. */
void repair_job_compare_data(struct repair_job *job);
/* Its questions are not waited for any more. */
void repair_job_cancel(struct repair_job *job);
void repair_job_fini(struct repair_job *job);

/* ---- repair_optimise.c ---- */
struct repair_fetch {
	struct ring_range *ranges; /* owned */
	uint32_t count;
};
/* By the trees that are there, what each participant fetches from whom: (*out)[to * peers + from]; heap. */
int repair_job_reduce(struct repair_job *job, struct repair_fetch **out, struct error *err);
void repair_fetches_free(struct repair_fetch *fetches, uint32_t peers); /* accepts NULL */

/* ---- repair_participant.c ---- */
void repair_participant_init(struct repairs *repairs); /* handlers */
void repair_participant_peer_is_down(struct repairs *repairs, struct peer *peer);
void repair_participant_free(struct repairs *repairs);

/* ---- repair_history.c ---- */
void repair_reach(struct repairs *repairs, struct repair_history *history, unsigned state);
/* Only the first end counts. text may be NULL. */
void repair_reach_end(struct repairs *repairs, struct repair_history *history,
    enum repair_result result, const char *text);

/* ---- repair_trail.c ---- */
struct repair_message;
/* For a new parent, which keeps it until repair_trail_release(); then it may be forgotten, with its validations. */
struct repair_trail *repair_trail_open(struct repairs *repairs,
    const struct repair_message *message, const struct endpoint *initiator);
/* why: what went wrong; NULL: nothing. */
void repair_trail_end(struct repairs *repairs, struct repair_trail *trail, const char *why);
void repair_trail_release(struct repairs *repairs, struct repair_trail *trail); /* accepts NULL */
struct repair_validation *repair_trail_validation(
    struct repairs *repairs, struct repair_trail *trail, const struct repair_message *message);
void repair_trails_each(struct repairs *repairs, enum repair_view_kind kind,
    void (*each)(void *context, const struct repair_view *view), void *context);
void repair_trails_free(struct repairs *repairs);

/* ---- repair_paxos.c ---- */
void repair_job_paxos(struct repair_job *job);
void repair_paxos_free(struct repairs *repairs);

/* ---- repair_local.c ---- */
void repair_locals_free(struct repairs *repairs);
void repair_local_free(struct repair_local *local); /* accepts NULL */
/* The session of a parent as it is now; a copy, NULL: none. */
struct repair_local *repair_local_get(struct repairs *repairs, const struct uuid *id);
/* What a session that is over, or that nobody knows of (local NULL), has of a table becomes what it was for. */
int repair_release(struct repairs *repairs, struct table_store *table, const struct uuid *session,
    const struct repair_local *local, struct error *err);

/* ---- repair_summary.c ---- */
/* All that it repaired was repaired later, too. */
bool repair_is_superseded_locked(struct repairs *repairs, const struct repair_local *local);

#endif
