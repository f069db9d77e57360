/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_STREAM_H
#define HELENUS_CLUSTER_STREAM_H

/*
 * Ranges of data that move between nodes (streaming/StreamPlan, StreamSession, StreamManager): this node asks others for
 * ranges and sends them its own. A job has one session with each peer, all at work at once; a session is a channel
 * (stream_channel.h) on which both sides send SSTables, whole or in sections (storage/stream_writer.h).
 *
 *     stream_job_new, stream_job_request / _send per peer and keyspace, stream_job_start -> ... -> on_done
 *
 * What a session brings becomes part of the tables when all of it is there, or not at all. A file that arrives damaged is
 * sent again; when a connection breaks the session goes on over a new one with the files that had not arrived; a peer that
 * fails or dies fails the session with the reason, and the job when the others have ended.
 *
 * Threads: functions may be called from any; work that touches a disk runs on CLUSTER_STAGE_STREAM, each session on
 * one thread at a time, and nothing waits for a peer.
 */
#include "cluster/cluster_env.h"
#include "cluster/topology.h"
#include "storage/store.h"

/* What it is for, as netstats names it (StreamOperation). */
enum stream_operation {
	STREAM_OTHER,
	STREAM_RESTORE_REPLICA_COUNT,
	STREAM_UNBOOTSTRAP,
	STREAM_RELOCATION,
	STREAM_BOOTSTRAP,
	STREAM_REBUILD,
	STREAM_BULK_LOAD,
	STREAM_REPAIR,
	STREAM_OPERATION_COUNT,
};
const char *stream_operation_name(enum stream_operation operation); /* "Bootstrap" */

/* Bytes a second that all sessions together may send, 0: any number. To another data center both limits hold. */
enum stream_limit {
	STREAM_LIMIT, /* stream_throughput_outbound */
	STREAM_LIMIT_INTER_DC, /* inter_dc_stream_throughput_outbound */
	STREAM_LIMIT_ENTIRE, /* entire_sstable_stream_throughput_outbound */
	STREAM_LIMIT_ENTIRE_INTER_DC,
	STREAM_LIMIT_COUNT,
};

struct streams;

struct streams_options {
	uint64_t
	    keep_alive_ns; /* streaming_keep_alive_period: a word at least so often; silence of twice that fails */
	uint64_t retry_ns; /* before a broken session connects again; doubles each time */
	uint64_t resume_ns; /* how long the other side of a broken session waits for that */
	uint32_t
	    max_retries; /* of a session without a file that arrived between, and of each file */
	bool entire_sstables; /* stream_entire_sstables */
};
void streams_options_init(struct streams_options *options);

/* Takes env->on_stream. All is borrowed. */
struct streams *streams_new(struct cluster_env *env, struct store *store,
    struct topology_holder *holder, const struct streams_options *options);
/* With channels ended, stages and timers quiet, the store open. Jobs that were under way are not told. NULL is accepted. */
void streams_free(struct streams *streams);
void streams_set_limit(struct streams *streams, enum stream_limit which, uint64_t bytes_per_second);
uint64_t streams_limit(struct streams *streams, enum stream_limit which);
/* The failure detector gave the peer up: its sessions fail. */
void streams_peer_is_down(struct streams *streams, struct peer *peer);

/* ---- Jobs ---- */

struct stream_job;

/* Ranges of a keyspace's tables that one session moves one way. */
struct stream_wish {
	char *keyspace; /* owned, and all that follow */
	char **tables;
	uint32_t table_count; /* 0: all */
	struct ring_range *ranges;
	uint32_t range_count;
};

/* What a session that ended well has brought and given. Borrowed for the call. */
struct stream_result {
	struct peer *peer;
	const struct stream_wish *fetched, *given;
	uint32_t fetched_count, given_count;
};

/* Who waits for a job; memory lives until on_done, which runs once, on the stream stage. */
struct stream_wait {
	/* err: of the first session that failed; NULL: all is there. Valid for the call. */
	void (*on_done)(struct stream_wait *wait, const struct error *err);
	/* May be NULL: a session ended well, and what it brought is part of the tables. On the stream stage, before on_done;
	 * sessions may end at once. */
	void (*on_session)(struct stream_wait *wait, const struct stream_result *result);
};

/* pending_repair: copied; NULL: none. */
struct stream_job *stream_job_new(
    struct streams *streams, enum stream_operation operation, const struct uuid *pending_repair);
/*
 * Fetch the tables' data (names; count 0: all tables of the keyspace) in these ranges from the peer, which is not
 * this node. All is copied. Ranges of no size are left out.
 */
void stream_job_request(struct stream_job *job, struct peer *peer, const char *keyspace,
    const char *const *tables, uint32_t table_count, const struct ring_range *ranges,
    uint32_t count);
/* Send it. */
void stream_job_send(struct stream_job *job, struct peer *peer, const char *keyspace,
    const char *const *tables, uint32_t table_count, const struct ring_range *ranges,
    uint32_t count);
bool stream_job_is_empty(const struct stream_job *job);
/* Takes the job. An empty one is done at once, within the call. */
void stream_job_start(struct stream_job *job, struct stream_wait *wait);
/* Instead of starting it. NULL is accepted. */
void stream_job_free(struct stream_job *job);

/* ---- What is going on (netstats, system_views.streaming) ---- */

struct stream_progress {
	const char *keyspace, *table;
	const char *file; /* the SSTable's id */
	uint64_t bytes, total;
	uint64_t planned; /* what the total was thought to be; the flow's was made of it */
};

struct stream_flow {
	uint64_t files, bytes; /* in all */
	uint64_t files_done, bytes_done;
	uint32_t progress_count;
	const struct stream_progress *progress; /* files that were begun */
};

struct stream_session_info {
	struct uuid plan_id;
	enum stream_operation operation;
	struct peer *peer;
	const char *state; /* "PREPARING" */
	bool is_follower; /* the other side began it */
	struct stream_flow receiving, sending;
};

/* Sessions under way, those of a job together. Borrowed for the call, which must be short: it runs under a lock. */
void streams_each(struct streams *streams,
    void (*each)(void *context, const struct stream_session_info *info), void *context);

struct stream_sums {
	uint64_t bytes_to_receive, bytes_received, bytes_to_send, bytes_sent;
	uint64_t files_to_receive, files_received, files_to_send, files_sent;
};

struct stream_plan_info {
	struct uuid plan_id;
	enum stream_operation operation;
	bool is_follower; /* the other side began it */
	struct peer *const *peers;
	uint32_t peer_count;
	int64_t init_ms, start_ms, end_ms; /* 0: not yet */
	const char *failure; /* of the first session that failed; NULL: none */
	struct stream_sums sums;
};
/* Plans under way, and the last hundred that ended. Borrowed for the call, which must be short: it runs under a lock. */
void streams_each_plan(struct streams *streams,
    void (*each)(void *context, const struct stream_plan_info *info), void *context);

struct streams_stats {
	uint64_t bytes_sent, bytes_received; /* since the start */
	uint64_t sessions_done, sessions_failed;
};
void streams_stats(struct streams *streams, struct streams_stats *out);

#endif
