/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STREAM_SESSION_H
#define HELENUS_CLUSTER_STREAM_SESSION_H

/*
 * Shared by stream.c (jobs, limits, what is going on), stream_session.c (one session's life), stream_send.c and
 * stream_receive.c (its files), stream_resume.c (what happens when its connection breaks).
 *
 * A session is a strand: callbacks of its channel and timers note what came, under its lock, and see that a
 * task is on its way to the stream stage; the task does all the rest, alone. What has no note is the task's.
 */
#include "base/lock.h"
#include "cluster/stream.h"
#include "cluster/stream_message.h"
#include "storage/stream_reader.h"
#include "storage/stream_writer.h"

enum {
	STREAM_DATA_BYTES = 64 * 1024, /* of a DATA record; one row may make it longer */
	STREAM_INBOX_MAX =
	    4 << 20, /* bytes that came and were not looked at: the channel is paused */
	STREAM_TURN_RECORDS = 16, /* that one task sends before it lets others have the thread */
};

enum stream_state {
	STREAM_INITIALIZED,
	STREAM_PREPARING,
	STREAM_STREAMING,
	STREAM_WAIT_COMPLETE,
	STREAM_COMPLETE,
	STREAM_FAILED,
	STREAM_TAKEN, /* another session, of a new connection, goes on with it */
};

/* A table's files that go out. */
struct stream_outgoing {
	struct table_store *table; /* borrowed */
	struct stream_plan *plan; /* owned */
};

struct stream_outgoing_file {
	uint32_t outgoing, index; /* of the table, of the file in its plan */
	uint32_t tries;
	bool is_acknowledged;
	bool is_queued; /* to be sent */
};

/* A table's files that come in. */
struct stream_incoming {
	struct uuid table_id;
	struct table_store *table; /* borrowed */
	uint64_t files, bytes;
	uint64_t files_done; /* some may have held nothing */
	struct stream_transaction *transaction; /* owned; NULL: nothing came yet */
};

/* The numbers of a struct stream_flow, with a file's names at hand. Guarded by the session's lock. */
struct stream_count {
	struct stream_flow flow;
	struct stream_progress *progress; /* owned; names are the table's, files' names are owned */
	uint32_t capacity;
};

struct stream_session {
	struct streams *streams; /* borrowed */
	struct stream_job *job; /* borrowed; NULL: the other side began it */
	struct peer *peer;
	struct stream_session *next; /* guarded by streams->lock */
	bool is_follower; /* the other side began it; as job == NULL, but for good */
	struct uuid plan_id;
	enum stream_operation operation;
	bool has_pending_repair;
	struct uuid pending_repair;
	bool has_history; /* guarded by streams->lock: it counts in its plan's state */

	struct lock lock;
	/* Guarded by lock. */
	struct stream_channel *channel; /* NULL: none, or it has ended */
	struct stream_user user;
	struct buffer inbox; /* owned; records, each behind its u32 size */
	bool is_paused; /* the channel is, because of the inbox */
	bool is_full; /* the channel is: on_writable follows */
	bool has_closed; /* on_close came */
	bool was_lost; /* ... with an error */
	struct error close_error;
	bool is_peer_down;
	bool is_scheduled; /* a task is on its way, or runs */
	bool is_timer_armed, is_keeper_armed;
	bool is_dirty; /* something came since the task looked */
	bool is_parked; /* a follower without a connection: until the other side comes back */
	bool is_taken; /* ... which it did: all is another session's, this one ends */
	struct stream_count receiving, sending;

	struct task task;
	struct cluster_timer timer; /* until more may be sent, or the session may begin anew */
	struct cluster_timer keeper; /* keep-alive */

	/* The task's. */
	_Atomic int state; /* enum stream_state; others may look */
	uint32_t attempts;
	bool is_over; /* its end has been told: it goes when channel and timers are gone */
	struct stream_wish *requests, *transfers; /* owned */
	uint32_t request_count, transfer_count;
	struct buffer taken; /* owned; of the inbox */
	struct buffer record; /* owned; the one that is being made */
	struct arena arena; /* of the message that is being looked at */

	struct stream_outgoing *outgoing; /* owned */
	uint32_t outgoing_count;
	struct stream_outgoing_file *files; /* owned */
	uint32_t file_count;
	struct stream_writer *writer; /* owned; NULL: between files */
	uint32_t file; /* that the writer sends */
	uint32_t unacknowledged;
	uint64_t may_send_ns; /* 0: at once */
	bool has_sent_done, has_heard_complete;

	struct stream_incoming *incoming; /* owned */
	uint32_t incoming_count;
	struct stream_reader *reader; /* owned; NULL: between files, or the file is passed over */
	bool is_receiving, is_passing_over;
	struct error pass_error; /* why */
	uint64_t number; /* of the file that comes */
	uint32_t into; /* its table */
	bool has_committed;
	uint64_t *received; /* owned; numbers of the files that arrived */
	uint32_t received_count, received_capacity;
	uint64_t heard_ns, said_ns;

	bool can_resume; /* files were chosen before the connection broke */
	bool is_resuming; /* RESUME is to be answered, by the other side or (follower) by us */
	uint64_t parked_until_ns;
	/* Follower: what the other side's RESUME said. */
	uint8_t theirs_flags;
	uint64_t *theirs; /* owned */
	uint32_t theirs_count;
};

struct streams {
	struct cluster_env *env; /* borrowed */
	struct store *store; /* borrowed */
	struct topology_holder *holder; /* borrowed */
	struct streams_options options;

	struct lock lock;
	/* Guarded by lock. */
	struct stream_session *sessions; /* owned */
	struct stream_history *histories; /* owned; stream_history.c; the newest first */
	struct streams_stats stats;
	uint64_t free_ns[STREAM_LIMIT_COUNT]; /* when the limit lets the next bytes go */

	_Atomic uint64_t limits[STREAM_LIMIT_COUNT];
};

struct stream_job {
	struct streams *streams;
	enum stream_operation operation;
	struct uuid plan_id;
	bool has_pending_repair;
	struct uuid pending_repair;
	struct stream_session **sessions; /* owned until the start */
	uint32_t session_count;
	struct stream_wait *wait;

	struct lock lock;
	/* Guarded by lock. */
	uint32_t running;
	bool has_failed;
	struct error err;
};

/* ---- stream.c ---- */

/* May so many bytes go now? They are counted; returns ns until more may. */
uint64_t
streams_take(struct streams *streams, const struct peer *peer, bool is_entire, uint64_t bytes);
void streams_add(struct streams *streams, struct stream_session *session);
void streams_remove(struct streams *streams, struct stream_session *session);
void streams_count(struct streams *streams, uint64_t sent, uint64_t received);
/* A session of the job has ended; the last one ends the job, which frees it. */
void stream_job_ended(struct stream_session *session, const struct error *err);

/* ---- stream_session.c ---- */

struct stream_session *stream_session_new(struct streams *streams, struct peer *peer);
void stream_session_free(struct stream_session *session);
/* Begin: of a job's. */
void stream_session_start(struct stream_session *session);
bool streams_accept(struct cluster_env *env, struct stream_channel *channel);
/* See that the task runs. Any thread. */
void stream_session_kick(struct stream_session *session);
/* Say it to the other side. */
void stream_session_say(struct stream_session *session, const struct stream_message *message);
/* The session is over, because of what happened here: the other side is told, and the job. */
void stream_session_give_up(struct stream_session *session, const struct error *err);
/* Run again in so many ns. */
void stream_session_delay(struct stream_session *session, uint64_t ns);
void stream_wish_fini(struct stream_wish *wish);
struct stream_wish *stream_wish_add(struct stream_wish **list, uint32_t *count,
    struct slice keyspace, uint32_t table_count, uint32_t range_count);
void stream_count_begin(struct stream_session *session, struct stream_count *count,
    struct table_store *table, const char *file, uint64_t total);
/* is_done: the file has ended, which may have been longer or shorter than was thought. */
void stream_count_bytes(
    struct stream_session *session, struct stream_count *count, uint64_t bytes, bool is_done);

/* The session is over with what there is of it; who waits is told. */
void stream_session_fail(struct stream_session *session, const struct error *err);
/* INIT and PREPARE: from the beginning. */
int stream_session_introduce(struct stream_session *session, struct error *err);
void stream_session_say_init(struct stream_session *session);
/* Nothing of what came, and nothing on the way out. */
void stream_session_undo(struct stream_session *session);
uint64_t stream_session_now(const struct stream_session *session);
/* The file that was under way did not arrive. */
void stream_count_undo(struct stream_session *session, struct stream_count *count);
void stream_count_fini(struct stream_count *count);

/* ---- stream_history.c ---- */

/* What the session's plan is about is known; then, that both sides have chosen files; its end (err: NULL where it ended well). */
void stream_history_begin(struct stream_session *session);
void stream_history_start(struct stream_session *session);
void stream_history_end(struct stream_session *session, const struct error *err);
/* `session` goes on in the place of `old`. */
void stream_history_move(struct stream_session *session, struct stream_session *old);
void stream_histories_free(struct streams *streams);

/* ---- stream_resume.c ---- */

/* The connection broke: what was under way is dropped, what has arrived stays. */
void stream_resume_break(struct stream_session *session);
/* On a new connection: INIT and RESUME. */
void stream_resume_ask(struct stream_session *session);
/* RESUME came. */
int stream_resume_hear(
    struct stream_session *session, const struct stream_message *message, struct error *err);
/* A follower takes over the session that the other side means, when that one has noticed its end. True: there is something to
 * send now. */
bool stream_resume_take_over(struct stream_session *session);
/* No connection, and nobody came in time? */
void stream_resume_check_parked(struct stream_session *session);

/* ---- stream_send.c ---- */

/* Choose the files of a wish. */
int stream_send_prepare(
    struct stream_session *session, const struct stream_wish *wish, struct error *err);
/* Files are chosen: number them, and tell of them in `message` (memory of the session's arena). */
int stream_send_summaries(
    struct stream_session *session, struct stream_message *message, struct error *err);
/* As much as may go now. True: there is more that could go at once. */
bool stream_send_some(struct stream_session *session);
int stream_send_acknowledged(
    struct stream_session *session, const struct stream_message *message, struct error *err);
/* All that was sent and did not arrive is to be sent again. */
void stream_send_break(struct stream_session *session);
/* The other side has these. */
int stream_send_resume(struct stream_session *session, const uint64_t *numbers, uint32_t count,
    bool is_committed, struct error *err);
void stream_send_end(struct stream_session *session);

/* ---- stream_receive.c ---- */

int stream_receive_prepare(
    struct stream_session *session, const struct stream_message *message, struct error *err);
int stream_receive_file(
    struct stream_session *session, const struct stream_message *message, struct error *err);
int stream_receive_data(
    struct stream_session *session, const struct stream_message *message, struct error *err);
/* The other side has sent all: it becomes part of the tables. */
int stream_receive_commit(struct stream_session *session, struct error *err);
/* The file that came is dropped. */
void stream_receive_break(struct stream_session *session);
void stream_receive_end(struct stream_session *session);

#endif
