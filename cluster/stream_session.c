/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/stream_session.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/ranks.h"

/* The life of one session; see stream_session.h for its threads, stream_message.h for what is said. */

/* Before a stage that is full is asked again. */
#define STREAM_AGAIN_NS UINT64_C(100000000)

/* ---- the strand --------------------------------------------------------------------------------------- */

static void stream_session_run(struct task *task, struct worker *worker);

/* The caller holds the lock. */
static void
stream_session_submit(struct stream_session *session)
{
	session->is_scheduled = true;
	session->task = (struct task){.run = stream_session_run};
	if (cluster_submit(session->streams->env, CLUSTER_STAGE_STREAM, &session->task))
		return;
	/* It is full, or the node stops: no timer fires then. */
	session->is_scheduled = false;
	if (session->is_timer_armed)
		return;
	session->is_timer_armed = true;
	cluster_timer_start(session->streams->env, &session->timer, STREAM_AGAIN_NS);
}

/* The caller holds the lock. */
void
stream_session_kick(struct stream_session *session)
{
	session->is_dirty = true;
	if (!session->is_scheduled)
		stream_session_submit(session);
}

static void
stream_session_fired(struct cluster_timer *timer)
{
	struct stream_session *session =
	    (struct stream_session *)((char *)timer - offsetof(struct stream_session, timer));

	lock_take(&session->lock);
	session->is_timer_armed = false;
	stream_session_kick(session);
	lock_drop(&session->lock);
}

static void
stream_session_keep(struct cluster_timer *timer)
{
	struct stream_session *session =
	    (struct stream_session *)((char *)timer - offsetof(struct stream_session, keeper));

	lock_take(&session->lock);
	session->is_keeper_armed = false;
	stream_session_kick(session);
	lock_drop(&session->lock);
}

void
stream_session_delay(struct stream_session *session, uint64_t ns)
{
	lock_take(&session->lock);
	if (!session->is_timer_armed) {
		session->is_timer_armed = true;
		cluster_timer_start(session->streams->env, &session->timer, ns);
	}
	lock_drop(&session->lock);
}

uint64_t
stream_session_now(const struct stream_session *session)
{
	return env_monotonic_ns(session->streams->env->env);
}

/* ---- the channel ----------------------------------------------------------------------------------------- */

static struct stream_session *
stream_session_of(struct stream_user *user)
{
	return (struct stream_session *)((char *)user - offsetof(struct stream_session, user));
}

static void
stream_session_on_record(struct stream_user *user, struct slice record)
{
	struct stream_session *session = stream_session_of(user);

	lock_take(&session->lock);
	buffer_put_u32(&session->inbox, (uint32_t)record.size);
	buffer_put_slice(&session->inbox, record);
	if (session->inbox.size > STREAM_INBOX_MAX && !session->is_paused) {
		session->is_paused = true;
		stream_pause(session->channel, true);
	}
	stream_session_kick(session);
	lock_drop(&session->lock);
}

static void
stream_session_on_writable(struct stream_user *user)
{
	struct stream_session *session = stream_session_of(user);

	lock_take(&session->lock);
	session->is_full = false;
	stream_session_kick(session);
	lock_drop(&session->lock);
}

static void
stream_session_on_close(struct stream_user *user, const struct error *err)
{
	struct stream_session *session = stream_session_of(user);

	lock_take(&session->lock);
	session->channel = NULL;
	session->has_closed = true;
	session->was_lost = err != NULL;
	if (err != NULL)
		session->close_error = *err;
	stream_session_kick(session);
	lock_drop(&session->lock);
}

void
stream_session_say(struct stream_session *session, const struct stream_message *message)
{
	buffer_clear(&session->record);
	stream_message_encode(message, &session->record);
	lock_take(&session->lock);
	if (session->channel != NULL && !session->record.is_failed &&
	    !stream_write(session->channel, buffer_slice(&session->record)))
		session->is_full = true;
	lock_drop(&session->lock);
	session->said_ns = stream_session_now(session);
}

static void
stream_session_say_verb(struct stream_session *session, enum verb verb)
{
	struct stream_message message = {.verb = (uint8_t)verb};

	stream_session_say(session, &message);
}

static void
stream_session_close(struct stream_session *session)
{
	lock_take(&session->lock);
	if (session->channel != NULL)
		stream_close(session->channel);
	lock_drop(&session->lock);
}

/* ---- progress ------------------------------------------------------------------------------------------------- */

void
stream_count_begin(struct stream_session *session, struct stream_count *count,
    struct table_store *table, const char *file, uint64_t total)
{
	lock_take(&session->lock);
	if (count->flow.progress_count == count->capacity) {
		count->capacity = count->capacity * 2 + 8;
		count->progress =
		    xrealloc(count->progress, count->capacity * sizeof(*count->progress));
		count->flow.progress = count->progress;
	}
	count->progress[count->flow.progress_count++] = (struct stream_progress){
	    .keyspace = table_store_keyspace(table),
	    .table = table_store_name(table),
	    .file = xstrdup(file),
	    .total = total,
	    .planned = total,
	};
	lock_drop(&session->lock);
}

void
stream_count_bytes(
    struct stream_session *session, struct stream_count *count, uint64_t bytes, bool is_done)
{
	struct stream_progress *at;
	uint64_t before;

	lock_take(&session->lock);
	at = &count->progress[count->flow.progress_count - 1];
	before = at->total;
	at->bytes += bytes;
	count->flow.bytes_done += bytes;
	if (is_done)
		at->total = at->bytes;
	else if (at->total < at->bytes)
		at->total = at->bytes;
	count->flow.bytes += at->total - before; /* may wrap: it is less then */
	lock_drop(&session->lock);
}

void
stream_count_undo(struct stream_session *session, struct stream_count *count)
{
	struct stream_progress *at;

	lock_take(&session->lock);
	at = &count->progress[--count->flow.progress_count];
	count->flow.bytes_done -= at->bytes;
	count->flow.bytes += at->planned - at->total;
	free((char *)at->file);
	lock_drop(&session->lock);
}

void
stream_count_fini(struct stream_count *count)
{
	for (uint32_t i = 0; i < count->flow.progress_count; i++)
		free((char *)count->progress[i].file);
	free(count->progress);
	memset(count, 0, sizeof(*count));
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static void
stream_session_tell(struct stream_session *session, const struct error *err)
{
	char address[ENDPOINT_TEXT_SIZE], plan[UUID_TEXT_SIZE];
	struct streams *streams = session->streams;

	session->is_over = true;
	lock_take(&streams->lock);
	if (err == NULL)
		streams->stats.sessions_done++;
	else
		streams->stats.sessions_failed++;
	lock_drop(&streams->lock);
	stream_history_end(session, err);
	uuid_format(&session->plan_id, plan);
	if (err == NULL)
		log_info("[Stream #%s] Session with %s is complete", plan,
		    endpoint_format(&session->peer->endpoint, address));
	else
		log_warn("[Stream #%s] Session with %s failed: %s", plan,
		    endpoint_format(&session->peer->endpoint, address), err->text);
	if (session->job != NULL)
		stream_job_ended(session, err);
}

void
stream_session_undo(struct stream_session *session)
{
	stream_send_end(session);
	stream_receive_end(session);
}

void
stream_session_fail(struct stream_session *session, const struct error *err)
{
	struct error failed = *err;
	char address[ENDPOINT_TEXT_SIZE];

	if (session->is_over)
		return;
	error_prefix(&failed, "%s of %s", stream_operation_name(session->operation),
	    endpoint_format(&session->peer->endpoint, address));
	stream_session_undo(session);
	lock_take(&session->lock);
	session->is_parked = false;
	lock_drop(&session->lock);
	atomic_store(&session->state, STREAM_FAILED);
	stream_session_close(session);
	stream_session_tell(session, &failed);
}

void
stream_session_give_up(struct stream_session *session, const struct error *err)
{
	struct stream_message message = {
	    .verb = VERB_STREAM_FAILED, .failure = slice_of_string(err->text)};

	stream_session_say(session, &message);
	stream_session_fail(session, err);
}

/* The connection broke. Who began the session connects again; the other side waits for that. */
static void
stream_session_lost(struct stream_session *session, const struct error *err)
{
	const struct streams_options *options = &session->streams->options;
	int state = atomic_load(&session->state);
	char address[ENDPOINT_TEXT_SIZE];
	uint64_t delay_ns;

	session->can_resume |= state == STREAM_STREAMING || state == STREAM_WAIT_COMPLETE;
	if (err->code == ERROR_SHUTDOWN || (session->is_follower && !session->can_resume) ||
	    (!session->is_follower && session->attempts > options->max_retries)) {
		stream_session_fail(session, err);
		return;
	}
	log_info("streaming with %s broke%s: %s",
	    endpoint_format(&session->peer->endpoint, address),
	    session->is_follower ? "" : " and is tried again", err->text);
	if (session->can_resume)
		stream_resume_break(session);
	else
		stream_session_undo(session);
	delay_ns = session->is_follower ? options->resume_ns
					: options->retry_ns << (session->attempts - 1);
	session->parked_until_ns = session->may_send_ns = stream_session_now(session) + delay_ns;
	lock_take(&session->lock);
	if (!session->can_resume) {
		stream_count_fini(&session->receiving);
		stream_count_fini(&session->sending);
	}
	session->has_closed = false;
	session->is_full = session->is_paused = false;
	session->is_parked = session->is_follower;
	buffer_clear(&session->inbox);
	lock_drop(&session->lock);
	if (!session->is_follower)
		atomic_store(&session->state, STREAM_INITIALIZED);
	stream_session_delay(session, delay_ns);
}

/* ---- what is said -------------------------------------------------------------------------------------------- */

static void
stream_wish_view(
    const struct stream_wish *wish, struct arena *arena, struct stream_request *request)
{
	*request = (struct stream_request){.keyspace = slice_of_string(wish->keyspace),
	    .table_count = wish->table_count,
	    .range_count = wish->range_count,
	    .ranges = wish->ranges};
	request->tables = wish->table_count == 0
	    ? NULL
	    : arena_alloc(arena, wish->table_count * sizeof(*request->tables));
	if (request->tables == NULL)
		request->table_count = 0;
	for (uint32_t i = 0; i < request->table_count; i++)
		request->tables[i] = slice_of_string(wish->tables[i]);
}

void
stream_session_say_init(struct stream_session *session)
{
	struct stream_message init = {.verb = VERB_STREAM_INIT,
	    .init = {.plan_id = session->plan_id,
		.operation = (uint8_t)session->operation,
		.has_pending_repair = session->has_pending_repair,
		.resumes = session->is_resuming,
		.pending_repair = session->pending_repair}};

	stream_session_say(session, &init);
}

int
stream_session_introduce(struct stream_session *session, struct error *err)
{
	struct stream_message prepare = {.verb = VERB_STREAM_PREPARE};
	struct stream_request *requests;

	for (uint32_t i = 0; i < session->transfer_count; i++)
		if (stream_send_prepare(session, &session->transfers[i], err) != 0)
			return -1;
	if (stream_send_summaries(session, &prepare, err) != 0)
		return -1;
	requests = arena_alloc(&session->arena, (session->request_count + 1) * sizeof(*requests));
	if (requests == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a stream's requests");
	for (uint32_t i = 0; i < session->request_count; i++)
		stream_wish_view(&session->requests[i], &session->arena, &requests[i]);
	prepare.prepare.request_count = session->request_count;
	prepare.prepare.requests = requests;
	stream_session_say_init(session);
	stream_session_say(session, &prepare);
	return 0;
}

static void
stream_session_connect(struct stream_session *session)
{
	struct streams *streams = session->streams;
	struct error err;

	session->attempts++;
	session->may_send_ns = 0;
	session->heard_ns = stream_session_now(session);
	lock_take(&session->lock);
	session->channel = streams->env->stream_open(streams->env, session->peer, &session->user);
	lock_drop(&session->lock);
	atomic_store(&session->state, STREAM_PREPARING);
	if (session->can_resume)
		stream_resume_ask(session);
	else if (stream_session_introduce(session, &err) != 0)
		stream_session_give_up(session, &err);
}

static int
stream_session_on_init(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	if (!session->is_follower || atomic_load(&session->state) != STREAM_INITIALIZED)
		return error_set(err, ERROR_PROTOCOL, "streaming: INIT out of order");
	lock_take(&session->lock);
	session->plan_id = message->init.plan_id;
	session->operation = message->init.operation < STREAM_OPERATION_COUNT
	    ? (enum stream_operation)message->init.operation
	    : STREAM_OTHER;
	session->has_pending_repair = message->init.has_pending_repair;
	session->pending_repair = message->init.pending_repair;
	lock_drop(&session->lock);
	session->is_resuming = message->init.resumes;
	if (!session->is_resuming) {
		atomic_store(&session->state, STREAM_PREPARING);
		stream_history_begin(session);
	}
	return 0;
}

static char *
stream_copy(struct slice text)
{
	return xstrndup((const char *)text.data, text.size);
}

static int
stream_session_take_requests(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	for (uint32_t i = 0; i < message->prepare.request_count; i++) {
		const struct stream_request *request = &message->prepare.requests[i];
		struct stream_wish *wish =
		    stream_wish_add(&session->transfers, &session->transfer_count,
			request->keyspace, request->table_count, request->range_count);

		for (uint32_t t = 0; t < request->table_count; t++)
			wish->tables[t] = stream_copy(request->tables[t]);
		if (request->range_count > 0)
			memcpy(wish->ranges, request->ranges,
			    request->range_count * sizeof(*request->ranges));
		if (stream_send_prepare(session, wish, err) != 0)
			return -1;
	}
	return 0;
}

static int
stream_session_on_prepare(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	struct stream_message answer = {.verb = VERB_STREAM_PREPARE};

	if (atomic_load(&session->state) != STREAM_PREPARING || session->is_resuming ||
	    (!session->is_follower && message->prepare.request_count > 0))
		return error_set(err, ERROR_PROTOCOL, "streaming: PREPARE out of order");
	if (stream_receive_prepare(session, message, err) != 0)
		return -1;
	if (session->is_follower) {
		if (stream_session_take_requests(session, message, err) != 0 ||
		    stream_send_summaries(session, &answer, err) != 0)
			return -1;
		stream_session_say(session, &answer);
	}
	atomic_store(&session->state, STREAM_STREAMING);
	stream_history_start(session);
	return 0;
}

static int
stream_session_on_done(struct stream_session *session, struct error *err)
{
	if (session->is_receiving || session->has_committed)
		return error_set(err, ERROR_PROTOCOL, "streaming: DONE out of order");
	if (stream_receive_commit(session, err) != 0)
		return -1;
	session->has_committed = true;
	stream_session_say_verb(session, VERB_STREAM_COMPLETE);
	return 0;
}

static int
stream_session_on_failed(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	(void)session;
	return error_set(err, ERROR_SERVER, "the other side gave up: %.*s",
	    (int)(message->failure.size > 400 ? 400 : message->failure.size),
	    (const char *)message->failure.data);
}

static int
stream_session_hear(
    struct stream_session *session, const struct stream_message *message, struct error *err)
{
	int state = atomic_load(&session->state);

	switch (message->verb) {
	case VERB_STREAM_INIT:
		return stream_session_on_init(session, message, err);
	case VERB_STREAM_PREPARE:
		return stream_session_on_prepare(session, message, err);
	case VERB_STREAM_RESUME:
		return stream_resume_hear(session, message, err);
	case VERB_STREAM_FAILED:
		return stream_session_on_failed(session, message, err);
	case VERB_STREAM_KEEP_ALIVE:
		return 0;
	default:
		break;
	}
	if (state != STREAM_STREAMING && state != STREAM_WAIT_COMPLETE)
		return error_set(err, ERROR_PROTOCOL, "streaming: a record out of order");
	switch (message->verb) {
	case VERB_STREAM_FILE:
		return stream_receive_file(session, message, err);
	case VERB_STREAM_DATA:
		return stream_receive_data(session, message, err);
	case VERB_STREAM_ACK:
		return stream_send_acknowledged(session, message, err);
	case VERB_STREAM_DONE:
		return stream_session_on_done(session, err);
	case VERB_STREAM_COMPLETE:
		if (!session->has_sent_done)
			return error_set(err, ERROR_PROTOCOL, "streaming: COMPLETE out of order");
		session->has_heard_complete = true;
		return 0;
	default:
		return error_set(err, ERROR_PROTOCOL, "streaming: a record out of order");
	}
}

/* All that came. */
static void
stream_session_listen(struct stream_session *session)
{
	struct reader reader = reader_of(buffer_slice(&session->taken));
	struct stream_message message;
	struct error err;

	if (session->taken.size > 0)
		session->heard_ns = stream_session_now(session);
	if (buffer_check(&session->taken, &err) != 0) {
		stream_session_give_up(session, &err);
		return;
	}
	while (reader_left(&reader) > 0 && !session->is_over) {
		uint32_t size = reader_u32(&reader);
		struct slice record = reader_bytes(&reader, size);
		bool is_failed;

		arena_reset(&session->arena);
		is_failed = stream_message_decode(record, &session->arena, &message, &err) != 0 ||
		    stream_session_hear(session, &message, &err) != 0;
		if (is_failed && message.verb == VERB_STREAM_FAILED)
			stream_session_fail(session, &err);
		else if (is_failed)
			stream_session_give_up(session, &err);
	}
}

/* ---- one turn -------------------------------------------------------------------------------------------------- */

static void
stream_session_check_silence(struct stream_session *session)
{
	uint64_t period = session->streams->options.keep_alive_ns;
	uint64_t now = stream_session_now(session);
	struct error err;

	lock_take(&session->lock);
	if (session->is_keeper_armed) {
		lock_drop(&session->lock);
		return;
	}
	session->is_keeper_armed = true;
	cluster_timer_start(session->streams->env, &session->keeper, period / 2);
	lock_drop(&session->lock);
	if (session->is_parked ||
	    (session->channel == NULL && atomic_load(&session->state) == STREAM_INITIALIZED &&
		!session->is_follower))
		return;
	if (now - session->heard_ns > 2 * period) {
		error_set(&err, ERROR_IO, "nothing was heard for %llu s",
		    (unsigned long long)((now - session->heard_ns) / 1000000000));
		stream_session_fail(session, &err);
		return;
	}
	if (now - session->said_ns >= period / 2)
		stream_session_say_verb(session, VERB_STREAM_KEEP_ALIVE);
}

static void
stream_session_check_complete(struct stream_session *session)
{
	if (session->has_sent_done)
		atomic_store(&session->state, STREAM_WAIT_COMPLETE);
	if (!session->has_sent_done || !session->has_heard_complete || !session->has_committed)
		return;
	atomic_store(&session->state, STREAM_COMPLETE);
	/* Who began it closes it: what it said last is then on its way. */
	if (!session->is_follower)
		stream_session_close(session);
	stream_session_undo(session);
	stream_session_tell(session, NULL);
}

/* True: there is more to do at once. */
static bool
stream_session_advance(struct stream_session *session)
{
	bool has_more = false;

	if (session->is_parked) {
		stream_resume_check_parked(session);
		return false;
	}
	switch (atomic_load(&session->state)) {
	case STREAM_INITIALIZED:
		if (session->is_follower && session->theirs_flags != 0)
			has_more = stream_resume_take_over(session);
		else if (!session->is_follower &&
		    session->may_send_ns <= stream_session_now(session))
			stream_session_connect(session);
		break;
	case STREAM_STREAMING:
	case STREAM_WAIT_COMPLETE:
		has_more = stream_send_some(session);
		if (!session->is_over)
			stream_session_check_complete(session);
		break;
	default:
		break;
	}
	return has_more && !session->is_over;
}

/* The task is done; the session too, when nobody knows of it any more. */
static void
stream_session_end_turn(struct stream_session *session, bool has_more)
{
	struct cluster_env *env = session->streams->env;
	bool is_gone;

	lock_take(&session->lock);
	if (session->is_over) {
		if (session->is_timer_armed && cluster_timer_stop(env, &session->timer))
			session->is_timer_armed = false;
		if (session->is_keeper_armed && cluster_timer_stop(env, &session->keeper))
			session->is_keeper_armed = false;
	}
	if (has_more || session->is_dirty) {
		stream_session_submit(session);
		lock_drop(&session->lock);
		return;
	}
	session->is_scheduled = false;
	is_gone = session->is_over && session->channel == NULL && !session->is_timer_armed &&
	    !session->is_keeper_armed;
	lock_drop(&session->lock);
	if (!is_gone)
		return;
	streams_remove(session->streams, session);
	stream_session_free(session);
}

static void
stream_session_run(struct task *task, struct worker *worker)
{
	struct stream_session *session =
	    (struct stream_session *)((char *)task - offsetof(struct stream_session, task));
	struct buffer came;
	struct error err;
	bool has_closed, is_down, has_more = false;

	(void)worker;
	lock_take(&session->lock);
	session->is_dirty = false;
	if (session->is_taken) {
		lock_drop(&session->lock);
		stream_session_end_turn(session, false);
		return;
	}
	came = session->inbox;
	session->inbox = session->taken;
	session->taken = came;
	has_closed = session->has_closed;
	is_down = session->is_peer_down;
	lock_drop(&session->lock);
	if (!session->is_over)
		stream_session_listen(session);
	/* The last word and the end of the connection may come together. */
	if (!session->is_over && atomic_load(&session->state) >= STREAM_STREAMING)
		stream_session_check_complete(session);
	buffer_clear(&session->taken);
	lock_take(&session->lock);
	if (session->is_paused && session->channel != NULL) {
		session->is_paused = false;
		stream_pause(session->channel, false);
	}
	lock_drop(&session->lock);
	if (!session->is_over && is_down) {
		error_set(&err, ERROR_IO, "the node is down");
		stream_session_fail(session, &err);
	}
	if (!session->is_over && has_closed) {
		err = session->close_error;
		if (!session->was_lost)
			error_set(&err, ERROR_IO, "the connection was closed");
		stream_session_lost(session, &err);
	}
	if (!session->is_over)
		has_more = stream_session_advance(session);
	if (!session->is_over)
		stream_session_check_silence(session);
	stream_session_end_turn(session, has_more);
}

/* ---- wishes ---------------------------------------------------------------------------------------------------- */

void
stream_wish_fini(struct stream_wish *wish)
{
	for (uint32_t i = 0; i < wish->table_count; i++)
		free(wish->tables[i]);
	free(wish->tables);
	free(wish->ranges);
	free(wish->keyspace);
}

struct stream_wish *
stream_wish_add(struct stream_wish **list, uint32_t *count, struct slice keyspace,
    uint32_t table_count, uint32_t range_count)
{
	struct stream_wish *wish;

	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	wish = &(*list)[(*count)++];
	*wish = (struct stream_wish){.keyspace = stream_copy(keyspace),
	    .tables = xcalloc((size_t)table_count + 1, sizeof(char *)),
	    .table_count = table_count,
	    .ranges = xcalloc((size_t)range_count + 1, sizeof(struct ring_range)),
	    .range_count = range_count};
	return wish;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct stream_session *
stream_session_new(struct streams *streams, struct peer *peer)
{
	struct stream_session *session = xzalloc(sizeof(*session));

	session->streams = streams;
	session->peer = peer;
	session->user = (struct stream_user){.on_record = stream_session_on_record,
	    .on_writable = stream_session_on_writable,
	    .on_close = stream_session_on_close};
	session->timer.fire = stream_session_fired;
	session->keeper.fire = stream_session_keep;
	lock_init(&session->lock, "stream session", RANK_STREAM_SESSION);
	buffer_init(&session->inbox);
	buffer_init(&session->taken);
	buffer_init(&session->record);
	arena_init(&session->arena, 4096);
	return session;
}

void
stream_session_free(struct stream_session *session)
{
	stream_session_undo(session);
	for (uint32_t i = 0; i < session->request_count; i++)
		stream_wish_fini(&session->requests[i]);
	for (uint32_t i = 0; i < session->transfer_count; i++)
		stream_wish_fini(&session->transfers[i]);
	free(session->requests);
	free(session->transfers);
	free(session->received);
	free(session->theirs);
	stream_count_fini(&session->receiving);
	stream_count_fini(&session->sending);
	buffer_fini(&session->inbox);
	buffer_fini(&session->taken);
	buffer_fini(&session->record);
	arena_fini(&session->arena);
	lock_fini(&session->lock);
	free(session);
}

void
stream_session_start(struct stream_session *session)
{
	lock_take(&session->lock);
	session->heard_ns = session->said_ns = stream_session_now(session);
	stream_session_kick(session);
	lock_drop(&session->lock);
}

bool
streams_accept(struct cluster_env *env, struct stream_channel *channel)
{
	struct stream_session *session = stream_session_new(env->stream_context, channel->peer);

	session->is_follower = true;
	session->channel = channel;
	channel->user = &session->user;
	streams_add(session->streams, session);
	stream_session_start(session);
	return true;
}
