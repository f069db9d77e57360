/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/messaging.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "cluster/ranks.h"

/*
 * Callbacks stand in shards by their id, each with a lock, a hash table and a wheel of deadlines. A shard has one
 * timer of the environment, armed for the earliest of its deadlines and not moved when that one's answer comes: under
 * load it so fires once in a timeout, not once for each request.
 */
enum {
	MESSAGING_SHARDS = 16, /* a power of two */
	MESSAGING_BUCKETS = 16, /* to begin with */
	MESSAGING_WHEEL_SLOTS = 256,
	MESSAGING_TICK_NS = 10 * 1000 * 1000, /* timeouts are seconds; the wheel turns in 2.5 s */
	MESSAGING_FAILURE_SIZE = 2,
};

struct messaging_shard {
	struct cluster_timer timer; /* first */
	struct messaging *messaging; /* borrowed */

	/* Guarded by lock. */
	struct lock lock;
	struct timer_wheel wheel;
	struct message_callback **buckets; /* owned; by id */
	size_t bucket_count; /* a power of two */
	size_t count;
	uint64_t armed_ns; /* when the timer fires; 0: it is not armed */
};

enum messaging_count {
	MESSAGING_SENT,
	MESSAGING_RECEIVED,
	MESSAGING_DROPPED_INTERNAL,
	MESSAGING_DROPPED_CROSS_NODE,
	MESSAGING_UNDELIVERED,
	MESSAGING_EXPIRED,
	MESSAGING_UNHANDLED,
	MESSAGING_LATE,
	MESSAGING_COUNTS,
};

struct messaging_handler {
	message_handler_fn handle; /* NULL: none */
	message_ahead_fn ahead; /* NULL: none */
	void *context;
	enum cluster_stage stage;
};

struct messaging {
	struct cluster_env *env; /* borrowed */
	struct peers *peers; /* borrowed */
	struct peer *local; /* borrowed */
	_Atomic uint64_t next_id;
	_Atomic bool is_closed; /* messaging_free() has begun */
	struct messaging_handler handlers[VERB_COUNT]; /* constant after the start */
	struct messaging_shard shards[MESSAGING_SHARDS];
	/* Relaxed: counts, no more. */
	_Atomic uint64_t counts[VERB_COUNT][MESSAGING_COUNTS];
};

static void
messaging_add_many(
    struct messaging *messaging, uint8_t verb, enum messaging_count count, uint64_t times)
{
	if (times > 0)
		atomic_fetch_add_explicit(
		    &messaging->counts[verb][count], times, memory_order_relaxed);
}

static void
messaging_add(struct messaging *messaging, uint8_t verb, enum messaging_count count)
{
	messaging_add_many(messaging, verb, count, 1);
}

/* ---- Callbacks ----------------------------------------------------------------------------- */

static struct message_callback *
messaging_of_timer(struct wheel_timer *timer)
{
	return (
	    struct message_callback *)((char *)timer - offsetof(struct message_callback, timer));
}

static struct messaging_shard *
messaging_shard(struct messaging *messaging, uint64_t id)
{
	return &messaging->shards[id % MESSAGING_SHARDS];
}

static struct message_callback **
messaging_bucket_locked(struct messaging_shard *shard, uint64_t id)
{
	return &shard->buckets[(id / MESSAGING_SHARDS) & (shard->bucket_count - 1)];
}

static void
messaging_grow_locked(struct messaging_shard *shard)
{
	struct message_callback **old = shard->buckets;
	size_t old_count = shard->bucket_count;

	lock_assert_held(&shard->lock);
	shard->bucket_count *= 2;
	shard->buckets = xcalloc(shard->bucket_count, sizeof(*shard->buckets));
	for (size_t i = 0; i < old_count; i++) {
		struct message_callback *callback = old[i], *next;

		for (; callback != NULL; callback = next) {
			struct message_callback **bucket =
			    messaging_bucket_locked(shard, callback->id);

			next = callback->next;
			callback->next = *bucket;
			*bucket = callback;
		}
	}
	free(old);
}

/* The timer fires no later than the first deadline. A timer that fires just now arms itself. */
static void
messaging_arm_locked(struct messaging_shard *shard, uint64_t now_ns, uint64_t due_ns)
{
	struct cluster_env *env = shard->messaging->env;

	lock_assert_held(&shard->lock);
	if (shard->armed_ns != 0) {
		if (shard->armed_ns <= due_ns || !cluster_timer_stop(env, &shard->timer))
			return;
	}
	shard->armed_ns = due_ns;
	cluster_timer_start(env, &shard->timer, due_ns > now_ns ? due_ns - now_ns : 0);
}

static void
messaging_insert(struct messaging *messaging, struct message_callback *callback, uint64_t now_ns,
    uint64_t due_ns)
{
	struct messaging_shard *shard = messaging_shard(messaging, callback->id);
	struct message_callback **bucket;

	callback->timer = (struct wheel_timer){0};
	lock_take(&shard->lock);
	if (shard->count >= shard->bucket_count)
		messaging_grow_locked(shard);
	bucket = messaging_bucket_locked(shard, callback->id);
	callback->next = *bucket;
	*bucket = callback;
	shard->count++;
	timer_wheel_start(&shard->wheel, &callback->timer, due_ns);
	/* The wheel takes it out within the tick that follows. */
	messaging_arm_locked(shard, now_ns, due_ns + MESSAGING_TICK_NS);
	lock_drop(&shard->lock);
}

static void
messaging_unlink_locked(struct messaging_shard *shard, struct message_callback *callback)
{
	struct message_callback **link = messaging_bucket_locked(shard, callback->id);

	while (*link != callback)
		link = &(*link)->next;
	*link = callback->next;
	shard->count--;
}

/* Take out who waits for this id from this endpoint. NULL: nobody (any more). */
static struct message_callback *
messaging_take(struct messaging *messaging, uint64_t id, const struct endpoint *from)
{
	struct messaging_shard *shard = messaging_shard(messaging, id);
	struct message_callback *callback;

	lock_take(&shard->lock);
	callback = *messaging_bucket_locked(shard, id);
	while (callback != NULL && callback->id != id)
		callback = callback->next;
	if (callback != NULL && !endpoint_equal(&callback->peer->endpoint, from))
		callback = NULL;
	if (callback != NULL) {
		messaging_unlink_locked(shard, callback);
		timer_wheel_stop(&shard->wheel, &callback->timer);
	}
	lock_drop(&shard->lock);
	return callback;
}

static void
messaging_fire(struct cluster_timer *timer)
{
	struct messaging_shard *shard = (struct messaging_shard *)timer;
	struct messaging *messaging = shard->messaging;
	uint64_t now = env_monotonic_ns(messaging->env->env), next_ns;
	struct wheel_timer *due, *next;

	lock_take(&shard->lock);
	shard->armed_ns = 0;
	due = timer_wheel_advance(&shard->wheel, now);
	for (struct wheel_timer *each = due; each != NULL; each = each->next)
		messaging_unlink_locked(shard, messaging_of_timer(each));
	next_ns = timer_wheel_next_ns(&shard->wheel);
	if (next_ns != UINT64_MAX)
		messaging_arm_locked(shard, now, next_ns > now ? next_ns : now + MESSAGING_TICK_NS);
	lock_drop(&shard->lock);
	for (; due != NULL; due = next) {
		struct message_callback *callback = messaging_of_timer(due);

		next = due->next;
		messaging_add(messaging, callback->verb, MESSAGING_EXPIRED);
		callback->on_answer(callback, NULL, FAILURE_TIMEOUT, NULL);
	}
}

/* ---- Construction -------------------------------------------------------------------------- */

static void
messaging_handle_ping(void *context, struct message *message, struct worker *worker)
{
	messaging_respond_payload(context, message, NULL, worker);
}

struct messaging *
messaging_new(struct cluster_env *env, struct peers *peers)
{
	struct messaging *messaging = xzalloc(sizeof(*messaging));
	uint64_t now = env_monotonic_ns(env->env);

	messaging->env = env;
	messaging->peers = peers;
	messaging->local = peers_local(peers);
	/* From anywhere: answers to who we were before a restart must find nobody. Short enough to stay short
	 * on the wire. */
	atomic_init(&messaging->next_id, 1 + (env_random_u64(env->env) >> 28));
	for (int i = 0; i < MESSAGING_SHARDS; i++) {
		struct messaging_shard *shard = &messaging->shards[i];

		shard->timer.fire = messaging_fire;
		shard->messaging = messaging;
		lock_init(&shard->lock, "messaging callbacks", RANK_MESSAGING);
		timer_wheel_init(&shard->wheel, MESSAGING_WHEEL_SLOTS, MESSAGING_TICK_NS, now);
		shard->bucket_count = MESSAGING_BUCKETS;
		shard->buckets = xcalloc(shard->bucket_count, sizeof(*shard->buckets));
	}
	messaging_handle(
	    messaging, VERB_PING_REQ, CLUSTER_STAGE_IMMEDIATE, messaging_handle_ping, messaging);
	return messaging;
}

static void
messaging_shard_fini(struct messaging_shard *shard)
{
	struct message_callback *waiting = NULL;

	lock_take(&shard->lock);
	if (shard->armed_ns != 0)
		cluster_timer_stop(shard->messaging->env, &shard->timer);
	for (size_t i = 0; i < shard->bucket_count; i++) {
		struct message_callback *callback = shard->buckets[i], *next;

		for (; callback != NULL; callback = next) {
			next = callback->next;
			timer_wheel_stop(&shard->wheel, &callback->timer);
			callback->next = waiting;
			waiting = callback;
		}
	}
	shard->count = 0;
	lock_drop(&shard->lock);
	while (waiting != NULL) {
		struct message_callback *callback = waiting;

		waiting = callback->next;
		callback->on_answer(callback, NULL, FAILURE_TIMEOUT, NULL);
	}
	free(shard->buckets);
	timer_wheel_fini(&shard->wheel);
	lock_fini(&shard->lock);
}

void
messaging_free(struct messaging *messaging)
{
	if (messaging == NULL)
		return;
	/* Who is told that his request failed may try another node. */
	atomic_store(&messaging->is_closed, true);
	for (int i = 0; i < MESSAGING_SHARDS; i++)
		messaging_shard_fini(&messaging->shards[i]);
	free(messaging);
}

void
messaging_handle(struct messaging *messaging, enum verb verb, enum cluster_stage stage,
    message_handler_fn handler, void *context)
{
	assert(!verb_is_answer((uint8_t)verb) && verb < VERB_COUNT);
	messaging->handlers[verb] =
	    (struct messaging_handler){.handle = handler, .context = context, .stage = stage};
}

void
messaging_look_ahead(struct messaging *messaging, enum verb verb, message_ahead_fn ahead)
{
	assert(messaging->handlers[verb].handle != NULL);
	messaging->handlers[verb].ahead = ahead;
}

/* ---- Receiving ----------------------------------------------------------------------------- */

static bool
messaging_is_ours(const struct messaging *messaging, const struct message *message)
{
	if (message->peer != NULL)
		return message->peer->is_local;
	return endpoint_equal(&message->from, &messaging->local->endpoint);
}

static void
messaging_drop(struct messaging *messaging, struct message *message)
{
	messaging_add(messaging, message->verb,
	    messaging_is_ours(messaging, message) ? MESSAGING_DROPPED_INTERNAL
						  : MESSAGING_DROPPED_CROSS_NODE);
	message->is_dropped = true;
	message_unref(message);
}

static void
messaging_run(struct messaging *messaging, struct message *message, struct worker *worker)
{
	const struct messaging_handler *handler = &messaging->handlers[message->verb];

	handler->handle(handler->context, message, worker);
	message_unref(message);
}

static void
messaging_task_run(struct task *task, struct worker *worker)
{
	struct message *message = (struct message *)task;

	messaging_run(message->owner, message, worker);
}

static void
messaging_task_drop(struct task *task, struct worker *worker)
{
	struct message *message = (struct message *)task;

	(void)worker;
	messaging_drop(message->owner, message);
}

/* Tasks of others may stand between ours, and requests of several verbs: those that the same function looks at go together. */
static void
messaging_task_ahead(struct task *first, size_t count)
{
	const struct message *of = (const struct message *)first;
	const struct messaging *messaging = of->owner;
	const struct messaging_handler *handler = &messaging->handlers[of->verb];
	struct message *messages[MESSAGING_AHEAD_MAX];
	size_t found = 0;

	for (struct task *task = first; task != NULL && count-- > 0 && found < MESSAGING_AHEAD_MAX;
	     task = task->next) {
		struct message *message = (struct message *)task;

		if (task->ahead == messaging_task_ahead &&
		    messaging->handlers[message->verb].ahead == handler->ahead)
			messages[found++] = message;
	}
	handler->ahead(handler->context, messages, found);
}

static enum failure_reason
messaging_reason(const struct message *failure)
{
	struct slice payload = message_payload_slice(failure);

	if (payload.size < MESSAGING_FAILURE_SIZE)
		return FAILURE_UNKNOWN;
	return (enum failure_reason)load_u16(payload.data);
}

static void
messaging_trace_received(
    struct messaging *messaging, const struct message *message, struct worker *worker)
{
	char name[ENDPOINT_TEXT_SIZE];

	if (!messaging_is_ours(messaging, message))
		trace_event(messaging->env, &message->trace, worker, "%s message received from /%s",
		    verb_name(message->verb), endpoint_format(&message->from, name));
}

/* Its own time began where it came; the session's with the request. */
static void
messaging_trace_answer(struct messaging *messaging, struct message *answer,
    const struct message_callback *callback, struct worker *worker)
{
	char name[ENDPOINT_TEXT_SIZE];

	answer->trace.began_ns = callback->trace_began_ns;
	messaging_trace_received(messaging, answer, worker);
	if (!messaging_is_ours(messaging, answer))
		trace_event(messaging->env, &answer->trace, worker, "Processing response from /%s",
		    endpoint_format(&answer->from, name));
}

static void
messaging_answer(struct messaging *messaging, struct message *answer, struct worker *worker)
{
	struct message_callback *callback = messaging_take(messaging, answer->id, &answer->from);

	if (callback != NULL && callback->trace_began_ns != 0 &&
	    (answer->flags & MESSAGE_TRACED) != 0)
		messaging_trace_answer(messaging, answer, callback, worker);
	if (callback == NULL)
		messaging_add(messaging, answer->verb, MESSAGING_LATE);
	else if (answer->verb == VERB_FAILURE_RSP)
		callback->on_answer(callback, NULL, messaging_reason(answer), worker);
	else
		callback->on_answer(callback, answer, FAILURE_UNKNOWN, worker);
	message_unref(answer);
}

/* Requests of one go, by stage. */
struct messaging_batch {
	struct task *first[CLUSTER_STAGE_COUNT], *last[CLUSTER_STAGE_COUNT];
	size_t count[CLUSTER_STAGE_COUNT];
};

static void
messaging_batch_add(struct messaging *messaging, struct messaging_batch *batch,
    struct message *message, uint64_t now_ns)
{
	const struct messaging_handler *handler = &messaging->handlers[message->verb];
	enum cluster_stage stage = handler->stage;
	struct task *task = &message->task;

	message->owner = messaging;
	*task = (struct task){.run = messaging_task_run,
	    .drop = messaging_task_drop,
	    .ahead = handler->ahead != NULL ? messaging_task_ahead : NULL,
	    .submitted_ns = now_ns,
	    .deadline_ns = message->expires_ns};
	if (batch->last[stage] != NULL)
		batch->last[stage]->next = task;
	else
		batch->first[stage] = task;
	batch->last[stage] = task;
	batch->count[stage]++;
}

static void
messaging_batch_submit(
    struct messaging *messaging, struct messaging_batch *batch, struct worker *worker)
{
	for (int stage = 0; stage < CLUSTER_STAGE_COUNT; stage++) {
		struct task *rest = NULL;

		if (batch->count[stage] == 0)
			continue;
		messaging->env->submit(messaging->env, (enum cluster_stage)stage,
		    batch->first[stage], batch->count[stage], worker, &rest);
		while (rest != NULL) {
			struct message *message = (struct message *)rest;

			rest = rest->next;
			messaging_drop(messaging, message);
		}
	}
}

static void
messaging_receive_one(struct messaging *messaging, struct message *message,
    struct messaging_batch *batch, uint64_t now_ns, struct worker *worker)
{
	const struct messaging_handler *handler = &messaging->handlers[message->verb];

	if ((message->flags & MESSAGE_TRACED) != 0 && !verb_is_answer(message->verb))
		messaging_trace_received(messaging, message, worker);
	if (verb_is_answer(message->verb)) {
		messaging_answer(messaging, message, worker);
	} else if (handler->handle == NULL) {
		messaging_add(messaging, message->verb, MESSAGING_UNHANDLED);
		messaging_respond_failure(messaging, message, FAILURE_UNKNOWN, worker);
		message_unref(message);
	} else if (message_is_expired(message, now_ns)) {
		messaging_drop(messaging, message);
	} else if (handler->stage == CLUSTER_STAGE_IMMEDIATE) {
		messaging_run(messaging, message, worker);
	} else {
		messaging_batch_add(messaging, batch, message, now_ns);
	}
}

void
messaging_receive(struct messaging *messaging, struct message *first, struct worker *worker)
{
	uint64_t now = env_monotonic_ns(messaging->env->env), same = 0;
	uint8_t verb = 0;
	struct messaging_batch batch;

	memset(&batch, 0, sizeof(batch));
	while (first != NULL) {
		struct message *message = first;

		first = message->next;
		message->next = NULL;
		if (message->verb != verb) {
			messaging_add_many(messaging, verb, MESSAGING_RECEIVED, same);
			verb = message->verb;
			same = 0;
		}
		same++;
		messaging_receive_one(messaging, message, &batch, now, worker);
	}
	messaging_add_many(messaging, verb, MESSAGING_RECEIVED, same);
	messaging_batch_submit(messaging, &batch, worker);
}

void
messaging_receive_answers(struct messaging *messaging, const struct message_answer *answers,
    size_t count, struct worker *worker)
{
	for (size_t i = 0; i < count; i++) {
		struct message message = {.references = 1,
		    .verb = answers[i].verb,
		    .id = answers[i].id,
		    .from = answers[i].peer->endpoint,
		    .peer = answers[i].peer};
		struct message_callback *callback =
		    messaging_take(messaging, message.id, &message.from);

		assert(messaging_is_plain_answer(message.verb));
		messaging_add(messaging, message.verb, MESSAGING_RECEIVED);
		if (callback == NULL) {
			messaging_add(messaging, message.verb, MESSAGING_LATE);
			continue;
		}
		callback->on_answer(callback, &message, FAILURE_UNKNOWN, worker);
		assert(atomic_load_explicit(&message.references, memory_order_relaxed) == 1);
	}
}

/* ---- Sending ------------------------------------------------------------------------------- */

/*
 * To this node itself. No worker for its stage: it would run within the task that sends it; an answer needs none
 * but is given it, as from anywhere else.
 */
static void
messaging_send_here(struct messaging *messaging, struct message *message, struct worker *worker)
{
	uint64_t now_ns = env_monotonic_ns(messaging->env->env);
	struct messaging_batch batch;

	memset(&batch, 0, sizeof(batch));
	messaging_add(messaging, message->verb, MESSAGING_RECEIVED);
	messaging_receive_one(messaging, message, &batch, now_ns, worker);
	messaging_batch_submit(messaging, &batch, NULL);
}

static void
messaging_trace_sent(struct messaging *messaging, const struct peer *to,
    const struct message *message, struct worker *worker)
{
	char name[ENDPOINT_TEXT_SIZE];

	trace_event(messaging->env, &message->trace, worker,
	    "Sending %s message to /%s, size=%zu bytes", verb_name(message->verb),
	    endpoint_format(&to->endpoint, name), message_size(message));
}

static void
messaging_dispatch(
    struct messaging *messaging, struct peer *to, struct message *message, struct worker *worker)
{
	if (atomic_load_explicit(&messaging->is_closed, memory_order_relaxed)) {
		message_unref(message);
		return;
	}
	messaging_add(messaging, message->verb, MESSAGING_SENT);
	if ((message->flags & MESSAGE_TRACED) != 0 && !to->is_local)
		messaging_trace_sent(messaging, to, message, worker);
	if (to->is_local)
		messaging_send_here(messaging, message, worker);
	else
		messaging->env->send(messaging->env, to, message, worker);
}

static void
messaging_fill(
    struct messaging *messaging, struct message *message, uint64_t now_ns, uint64_t timeout_ns)
{
	if (message->from.size == 0) {
		message->from = messaging->local->endpoint;
		message->peer = messaging->local;
	}
	message->created_ns = now_ns;
	message->expires_ns = timeout_ns == 0 ? 0 : now_ns + timeout_ns;
}

uint64_t
messaging_next_id(struct messaging *messaging)
{
	/* Relaxed: ids have to differ, no more. */
	return atomic_fetch_add_explicit(&messaging->next_id, 1, memory_order_relaxed);
}

void
messaging_request(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t timeout_ns, struct message_callback *callback, struct worker *worker)
{
	messaging_request_at(messaging, to, message, env_monotonic_ns(messaging->env->env),
	    timeout_ns, callback, worker);
}

void
messaging_request_at(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t now_ns, uint64_t timeout_ns, struct message_callback *callback, struct worker *worker)
{
	messaging_request_impatiently(
	    messaging, to, message, now_ns, timeout_ns, timeout_ns, callback, worker);
}

void
messaging_request_impatiently(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t now_ns, uint64_t timeout_ns, uint64_t patience_ns, struct message_callback *callback,
    struct worker *worker)
{
	assert(!verb_is_answer(message->verb) && patience_ns > 0 && patience_ns <= timeout_ns);
	if (message->id == 0)
		message->id = messaging_next_id(messaging);
	message->flags |= MESSAGE_WANTS_FAILURE;
	messaging_fill(messaging, message, now_ns, timeout_ns);
	callback->peer = to;
	callback->sent_ns = now_ns;
	callback->id = message->id;
	callback->verb = message->verb;
	callback->trace_began_ns =
	    (message->flags & MESSAGE_TRACED) != 0 ? message->trace.began_ns : 0;
	if (atomic_load_explicit(&messaging->is_closed, memory_order_relaxed)) {
		message_unref(message);
		callback->on_answer(callback, NULL, FAILURE_TIMEOUT, worker);
		return;
	}
	messaging_insert(messaging, callback, now_ns, now_ns + patience_ns);
	messaging_dispatch(messaging, to, message, worker);
}

void
messaging_expect(struct messaging *messaging, struct peer *from, enum verb verb, uint64_t id,
    uint64_t now_ns, uint64_t timeout_ns, struct message_callback *callback)
{
	assert(id != 0 && timeout_ns > 0);
	callback->peer = from;
	callback->sent_ns = now_ns;
	callback->id = id;
	callback->verb = (uint8_t)verb;
	if (atomic_load_explicit(&messaging->is_closed, memory_order_relaxed)) {
		callback->on_answer(callback, NULL, FAILURE_TIMEOUT, NULL);
		return;
	}
	messaging_insert(messaging, callback, now_ns, now_ns + timeout_ns);
}

void
messaging_send(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t timeout_ns, struct worker *worker)
{
	uint64_t now = env_monotonic_ns(messaging->env->env);

	messaging_fill(messaging, message, now, timeout_ns);
	messaging_dispatch(messaging, to, message, worker);
}

/* ---- Answering ----------------------------------------------------------------------------- */

static void
messaging_trace_response(struct messaging *messaging, const struct message *request,
    struct message *answer, struct worker *worker)
{
	char name[ENDPOINT_TEXT_SIZE];

	message_set_trace(answer, &request->trace);
	if (!messaging_is_ours(messaging, request))
		trace_event(messaging->env, &request->trace, worker, "Enqueuing response to /%s",
		    endpoint_format(&request->from, name));
}

static void
messaging_respond_with(struct messaging *messaging, const struct message *request, uint8_t verb,
    struct message_payload *payload, struct worker *worker)
{
	struct peer *to =
	    request->peer != NULL ? request->peer : peers_find(messaging->peers, &request->from);
	struct cluster_env *env = messaging->env;
	struct message *answer;

	/* An id of 0: nobody waits. An endpoint that nobody ever heard of: nobody to answer to. */
	if (request->id == 0 || to == NULL) {
		message_payload_unref(payload);
		return;
	}
	if (payload == NULL && (request->flags & MESSAGE_TRACED) == 0 && env->answer != NULL &&
	    !to->is_local && !verb_is_urgent(verb)) {
		if (atomic_load_explicit(&messaging->is_closed, memory_order_relaxed))
			return;
		messaging_add(messaging, verb, MESSAGING_SENT);
		env->answer(env,
		    &(struct message_answer){to, request->id, request->expires_ns, verb}, worker);
		return;
	}
	answer = message_new(verb, payload);
	if (answer == NULL)
		return; /* no memory: as if it was lost on the way */
	answer->id = request->id;
	if ((request->flags & MESSAGE_TRACED) != 0)
		messaging_trace_response(messaging, request, answer, worker);
	answer->from = messaging->local->endpoint;
	answer->peer = messaging->local;
	answer->created_ns = env_monotonic_ns(env->env);
	answer->expires_ns = request->expires_ns; /* later nobody waits */
	messaging_dispatch(messaging, to, answer, worker);
}

void
messaging_respond_payload(struct messaging *messaging, const struct message *request,
    struct message_payload *payload, struct worker *worker)
{
	messaging_respond_with(
	    messaging, request, (uint8_t)(request->verb + VERB_RESPONSE_OFFSET), payload, worker);
}

void
messaging_respond(struct messaging *messaging, const struct message *request, struct slice payload,
    struct worker *worker)
{
	struct message_payload *copy = NULL;

	if (payload.size > 0) {
		copy = message_payload_new(payload);
		if (copy == NULL)
			return;
	}
	messaging_respond_payload(messaging, request, copy, worker);
}

void
messaging_respond_failure(struct messaging *messaging, const struct message *request,
    enum failure_reason reason, struct worker *worker)
{
	uint8_t wire[MESSAGING_FAILURE_SIZE];
	struct message_payload *payload;

	if ((request->flags & MESSAGE_WANTS_FAILURE) == 0)
		return;
	store_u16(wire, (uint16_t)reason);
	payload = message_payload_new(slice_of(wire, sizeof(wire)));
	if (payload != NULL)
		messaging_respond_with(messaging, request, VERB_FAILURE_RSP, payload, worker);
}

/* ---- What was lost, and counts ------------------------------------------------------------- */

void
messaging_undelivered(struct messaging *messaging, struct peer *to, const struct message *message,
    struct worker *worker)
{
	struct message_callback *callback;

	messaging_add(messaging, message->verb, MESSAGING_UNDELIVERED);
	if (verb_is_answer(message->verb))
		return;
	callback = message->id == 0 ? NULL : messaging_take(messaging, message->id, &to->endpoint);
	if (callback != NULL)
		callback->on_answer(callback, NULL, FAILURE_TIMEOUT, worker);
}

void
messaging_verb_stats(struct messaging *messaging, uint8_t verb, struct messaging_verb_stats *out)
{
	uint64_t values[MESSAGING_COUNTS];

	for (int i = 0; i < MESSAGING_COUNTS; i++)
		values[i] = atomic_load_explicit(&messaging->counts[verb][i], memory_order_relaxed);
	*out = (struct messaging_verb_stats){
	    .sent = values[MESSAGING_SENT],
	    .received = values[MESSAGING_RECEIVED],
	    .dropped_internal = values[MESSAGING_DROPPED_INTERNAL],
	    .dropped_cross_node = values[MESSAGING_DROPPED_CROSS_NODE],
	    .undelivered = values[MESSAGING_UNDELIVERED],
	    .expired = values[MESSAGING_EXPIRED],
	    .unhandled = values[MESSAGING_UNHANDLED],
	    .late = values[MESSAGING_LATE],
	};
}

size_t
messaging_waiting(struct messaging *messaging)
{
	size_t count = 0;

	for (int i = 0; i < MESSAGING_SHARDS; i++) {
		struct messaging_shard *shard = &messaging->shards[i];

		lock_take(&shard->lock);
		count += shard->count;
		lock_drop(&shard->lock);
	}
	return count;
}
