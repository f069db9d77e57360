/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/stream.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/ranks.h"
#include "cluster/stream_session.h"

static const char *const stream_operations[STREAM_OPERATION_COUNT] = {
    [STREAM_OTHER] = "Other",
    [STREAM_RESTORE_REPLICA_COUNT] = "Restore replica count",
    [STREAM_UNBOOTSTRAP] = "Unbootstrap",
    [STREAM_RELOCATION] = "Relocation",
    [STREAM_BOOTSTRAP] = "Bootstrap",
    [STREAM_REBUILD] = "Rebuild",
    [STREAM_BULK_LOAD] = "Bulk Load",
    [STREAM_REPAIR] = "Repair",
};

const char *
stream_operation_name(enum stream_operation operation)
{
	return stream_operations[operation < STREAM_OPERATION_COUNT ? operation : STREAM_OTHER];
}

/* ---- limits --------------------------------------------------------------------------------------- */

void
streams_set_limit(struct streams *streams, enum stream_limit which, uint64_t bytes_per_second)
{
	atomic_store(&streams->limits[which], bytes_per_second);
}

uint64_t
streams_limit(struct streams *streams, enum stream_limit which)
{
	return atomic_load(&streams->limits[which]);
}

static bool
streams_is_elsewhere(struct streams *streams, const struct peer *peer)
{
	const struct topology *topology = topology_acquire(streams->holder);
	const char *there = topology_datacenter(topology, peer);
	bool is_elsewhere =
	    there != NULL && strcmp(there, topology_local_datacenter(topology)) != 0;

	topology_release(streams->holder, topology);
	return is_elsewhere;
}

/* The caller holds the lock. */
static uint64_t
streams_take_of(struct streams *streams, enum stream_limit which, uint64_t now_ns, uint64_t bytes)
{
	uint64_t limit = streams_limit(streams, which), *free_ns = &streams->free_ns[which];

	if (limit == 0)
		return 0;
	if (*free_ns < now_ns)
		*free_ns = now_ns;
	*free_ns += (uint64_t)((double)bytes * 1e9 / (double)limit);
	return *free_ns - now_ns;
}

uint64_t
streams_take(struct streams *streams, const struct peer *peer, bool is_entire, uint64_t bytes)
{
	bool is_elsewhere = streams_is_elsewhere(streams, peer);
	uint64_t now_ns = env_monotonic_ns(streams->env->env), delay_ns, far_ns = 0;

	lock_take(&streams->lock);
	delay_ns =
	    streams_take_of(streams, is_entire ? STREAM_LIMIT_ENTIRE : STREAM_LIMIT, now_ns, bytes);
	if (is_elsewhere)
		far_ns = streams_take_of(streams,
		    is_entire ? STREAM_LIMIT_ENTIRE_INTER_DC : STREAM_LIMIT_INTER_DC, now_ns,
		    bytes);
	lock_drop(&streams->lock);
	return delay_ns > far_ns ? delay_ns : far_ns;
}

/* ---- jobs ------------------------------------------------------------------------------------------ */

struct stream_job *
stream_job_new(
    struct streams *streams, enum stream_operation operation, const struct uuid *pending_repair)
{
	struct stream_job *job = xzalloc(sizeof(*job));
	uint8_t random[8];

	job->streams = streams;
	job->operation = operation;
	job->has_pending_repair = pending_repair != NULL;
	if (pending_repair != NULL)
		job->pending_repair = *pending_repair;
	env_random(streams->env->env, random, sizeof(random));
	job->plan_id =
	    uuid_from_time(uuid_ticks_of_unix_us(env_wall_us(streams->env->env)), load_u64(random));
	lock_init(&job->lock, "stream job", RANK_STREAMS);
	return job;
}

void
stream_job_free(struct stream_job *job)
{
	if (job == NULL)
		return;
	for (uint32_t i = 0; i < job->session_count; i++)
		stream_session_free(job->sessions[i]);
	free(job->sessions);
	lock_fini(&job->lock);
	free(job);
}

static struct stream_session *
stream_job_session(struct stream_job *job, struct peer *peer)
{
	struct stream_session *session;

	for (uint32_t i = 0; i < job->session_count; i++)
		if (job->sessions[i]->peer == peer)
			return job->sessions[i];
	session = stream_session_new(job->streams, peer);
	session->job = job;
	session->operation = job->operation;
	session->plan_id = job->plan_id;
	session->has_pending_repair = job->has_pending_repair;
	session->pending_repair = job->pending_repair;
	job->sessions =
	    xrealloc(job->sessions, (job->session_count + 1) * sizeof(struct stream_session *));
	job->sessions[job->session_count++] = session;
	return session;
}

static void
stream_job_wish(struct stream_wish **list, uint32_t *list_count, const char *keyspace,
    const char *const *tables, uint32_t table_count, const struct ring_range *ranges,
    uint32_t count)
{
	struct stream_wish *wish =
	    stream_wish_add(list, list_count, slice_of_string(keyspace), table_count, count);

	for (uint32_t i = 0; i < table_count; i++)
		wish->tables[i] = xstrdup(tables[i]);
	memcpy(wish->ranges, ranges, count * sizeof(*ranges));
}

void
stream_job_request(struct stream_job *job, struct peer *peer, const char *keyspace,
    const char *const *tables, uint32_t table_count, const struct ring_range *ranges,
    uint32_t count)
{
	struct stream_session *session;

	if (count == 0)
		return;
	session = stream_job_session(job, peer);
	stream_job_wish(&session->requests, &session->request_count, keyspace, tables, table_count,
	    ranges, count);
}

void
stream_job_send(struct stream_job *job, struct peer *peer, const char *keyspace,
    const char *const *tables, uint32_t table_count, const struct ring_range *ranges,
    uint32_t count)
{
	struct stream_session *session;

	if (count == 0)
		return;
	session = stream_job_session(job, peer);
	stream_job_wish(&session->transfers, &session->transfer_count, keyspace, tables,
	    table_count, ranges, count);
}

bool
stream_job_is_empty(const struct stream_job *job)
{
	return job->session_count == 0;
}

void
stream_job_start(struct stream_job *job, struct stream_wait *wait)
{
	struct stream_session **sessions = job->sessions;
	uint32_t count = job->session_count;

	if (count == 0) {
		stream_job_free(job);
		wait->on_done(wait, NULL);
		return;
	}
	job->wait = wait;
	job->running = count;
	job->sessions = NULL;
	job->session_count = 0;
	/* The job may be gone with the last of them. */
	for (uint32_t i = 0; i < count; i++) {
		streams_add(sessions[i]->streams, sessions[i]);
		stream_history_begin(sessions[i]);
	}
	for (uint32_t i = 0; i < count; i++)
		stream_session_start(sessions[i]);
	free(sessions);
}

void
stream_job_ended(struct stream_session *session, const struct error *err)
{
	struct stream_job *job = session->job;
	struct stream_wait *wait = job->wait;
	bool is_last;

	session->job = NULL;
	if (err == NULL && wait->on_session != NULL)
		wait->on_session(wait,
		    &(struct stream_result){session->peer, session->requests, session->transfers,
			session->request_count, session->transfer_count});
	lock_take(&job->lock);
	if (err != NULL && !job->has_failed) {
		job->has_failed = true;
		job->err = *err;
	}
	is_last = --job->running == 0;
	lock_drop(&job->lock);
	if (!is_last)
		return;
	wait->on_done(wait, job->has_failed ? &job->err : NULL);
	stream_job_free(job);
}

/* ---- sessions --------------------------------------------------------------------------------------- */

/* Those of a plan stand together. */
void
streams_add(struct streams *streams, struct stream_session *session)
{
	struct stream_session **at;

	lock_take(&streams->lock);
	for (at = &streams->sessions; *at != NULL; at = &(*at)->next)
		if (session->job != NULL && (*at)->job == session->job)
			break;
	session->next = *at;
	*at = session;
	lock_drop(&streams->lock);
}

void
streams_remove(struct streams *streams, struct stream_session *session)
{
	struct stream_session **at;

	lock_take(&streams->lock);
	for (at = &streams->sessions; *at != session;)
		at = &(*at)->next;
	*at = session->next;
	lock_drop(&streams->lock);
}

void
streams_count(struct streams *streams, uint64_t sent, uint64_t received)
{
	lock_take(&streams->lock);
	streams->stats.bytes_sent += sent;
	streams->stats.bytes_received += received;
	lock_drop(&streams->lock);
}

void
streams_peer_is_down(struct streams *streams, struct peer *peer)
{
	lock_take(&streams->lock);
	for (struct stream_session *at = streams->sessions; at != NULL; at = at->next) {
		if (at->peer != peer)
			continue;
		lock_take(&at->lock);
		at->is_peer_down = true;
		stream_session_kick(at);
		lock_drop(&at->lock);
	}
	lock_drop(&streams->lock);
}

static const char *
stream_state_name(int state)
{
	static const char *const names[] = {[STREAM_INITIALIZED] = "INITIALIZED",
	    [STREAM_PREPARING] = "PREPARING",
	    [STREAM_STREAMING] = "STREAMING",
	    [STREAM_WAIT_COMPLETE] = "WAIT_COMPLETE",
	    [STREAM_COMPLETE] = "COMPLETE",
	    [STREAM_TAKEN] = "COMPLETE",
	    [STREAM_FAILED] = "FAILED"};

	return names[state];
}

void
streams_each(struct streams *streams,
    void (*each)(void *context, const struct stream_session_info *info), void *context)
{
	lock_take(&streams->lock);
	for (struct stream_session *at = streams->sessions; at != NULL; at = at->next) {
		int state = atomic_load(&at->state);

		if (state == STREAM_COMPLETE || state == STREAM_FAILED || state == STREAM_TAKEN ||
		    (at->is_follower && state == STREAM_INITIALIZED))
			continue;
		lock_take(&at->lock);
		each(context,
		    &(struct stream_session_info){
			.plan_id = at->plan_id,
			.operation = at->operation,
			.peer = at->peer,
			.state = stream_state_name(state),
			.is_follower = at->is_follower,
			.receiving = at->receiving.flow,
			.sending = at->sending.flow,
		    });
		lock_drop(&at->lock);
	}
	lock_drop(&streams->lock);
}

void
streams_stats(struct streams *streams, struct streams_stats *out)
{
	lock_take(&streams->lock);
	*out = streams->stats;
	lock_drop(&streams->lock);
}

/* ---- life -------------------------------------------------------------------------------------------- */

void
streams_options_init(struct streams_options *options)
{
	*options = (struct streams_options){
	    .keep_alive_ns = UINT64_C(300000000000),
	    .retry_ns = UINT64_C(1000000000),
	    .resume_ns = UINT64_C(60000000000),
	    .max_retries = 3,
	    .entire_sstables = true,
	};
}

struct streams *
streams_new(struct cluster_env *env, struct store *store, struct topology_holder *holder,
    const struct streams_options *options)
{
	struct streams *streams = xzalloc(sizeof(*streams));

	streams->env = env;
	streams->store = store;
	streams->holder = holder;
	streams->options = *options;
	lock_init(&streams->lock, "streams", RANK_STREAMS);
	env->stream_context = streams;
	env->on_stream = streams_accept;
	return streams;
}

void
streams_free(struct streams *streams)
{
	struct stream_job *job;

	if (streams == NULL)
		return;
	while (streams->sessions != NULL) {
		struct stream_session *session = streams->sessions;

		streams->sessions = session->next;
		job = session->job;
		if (job != NULL && --job->running == 0)
			stream_job_free(job);
		stream_session_free(session);
	}
	stream_histories_free(streams);
	lock_fini(&streams->lock);
	free(streams);
}
