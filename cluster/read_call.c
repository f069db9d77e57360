/* SPDX-License-Identifier: Apache-2.0 */
/* What a read asks of its replicas, this node among them, and when it has enough. */
#include "cluster/read_request.h"
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "cluster/speculation.h"

/* ---- When can a part go on? ---------------------------------------------------------------- */

bool
read_part_has_enough_locked(const struct read_part *part)
{
	return part->answered >= part->block_for && part->has_data;
}

static bool
read_part_is_ready_locked(const struct read_part *part)
{
	switch ((enum read_phase)part->phase) {
	case READ_FIRST:
	case READ_DATA:
		if (read_part_has_enough_locked(part))
			return true;
		return part->waiting == 0 || part->answered + part->waiting < part->block_for;
	case READ_ASK:
		return part->waiting == 0;
	case READ_REPAIR:
		/* Those that are behind must not be needed for the level; our own still looks at the mutation. */
		return part->waiting == 0 || part->is_repair_late ||
		    (!part->is_repairing_here &&
			part->participants - part->repairing >= (uint32_t)part->block_for);
	case READ_SETTLED:
		break;
	}
	return false;
}

bool
read_part_wake_locked(struct read_part *part)
{
	struct read_request *request = part->request;

	if (part->is_queued || !read_part_is_ready_locked(part))
		return false;
	part->is_queued = true;
	part->next_ready = NULL;
	if (request->ready_last != NULL)
		request->ready_last->next_ready = part;
	else
		request->ready_first = part;
	request->ready_last = part;
	if (request->is_running)
		return false;
	request->is_running = true;
	read_request_ref(request);
	return true;
}

static void
read_request_task(struct task *task, struct worker *worker)
{
	read_request_run((struct read_request *)task, worker);
}

/* What is left may read the disk and encode long answers: not on the thread that brought an answer. */
static void
read_request_schedule(struct read_request *request, struct worker *worker)
{
	struct cluster_env *env = request->coordinator->ring.cluster;
	struct task *rest;

	request->task = (struct task){.run = read_request_task, .submitted_ns = request->began_ns};
	if (env->submit(env, CLUSTER_STAGE_REQUEST_RESPONSE, &request->task, 1, worker, &rest) != 1)
		read_request_run(request, worker);
}

/* ---- Calls --------------------------------------------------------------------------------- */

struct read_call *
read_call_new(struct read_part *part, uint32_t replica, enum read_call_kind kind)
{
	struct read_request *request = part->request;
	struct read_call *call = NULL;

	lock_take(&request->lock);
	if (request->spare_count > 0) {
		request->spare_count--;
		call = request->spare_calls++;
		call->is_within = true;
	}
	lock_drop(&request->lock);
	if (call == NULL)
		call = xzalloc(sizeof(*call));
	call->part = part;
	call->replica = replica;
	call->kind = (uint8_t)kind;
	lock_take(&request->lock);
	call->next = request->calls;
	request->calls = call;
	lock_drop(&request->lock);
	return call;
}

/* Does the call belong to what the part is waiting for? */
static bool
read_call_is_awaited_locked(const struct read_call *call)
{
	switch ((enum read_phase)call->part->phase) {
	case READ_FIRST:
		return call->kind == READ_CALL_DATA || call->kind == READ_CALL_DIGEST;
	case READ_DATA:
		/* The first phase's digests, and data that was counted when the phase began, are past. */
		return call->kind == READ_CALL_DATA &&
		    call->part->replicas[call->replica].data == call;
	case READ_ASK:
		return call->kind == READ_CALL_ASK;
	case READ_REPAIR:
		return call->kind == READ_CALL_REPAIR;
	case READ_SETTLED:
		break;
	}
	return false;
}

static void
read_repair_ended_locked(struct read_part *part, struct read_replica *replica, bool is_answered)
{
	replica->repairs_unended--;
	if (replica->peer->is_local && replica->repairs_unended == 0)
		part->is_repairing_here = false;
	if (is_answered && --replica->repairs_left == 0)
		part->repairing--;
}

void
read_call_ended(
    struct read_call *call, bool is_answered, enum failure_reason reason, struct worker *worker)
{
	struct read_part *part = call->part;
	struct read_request *request = part->request;
	bool must_schedule;

	lock_take(&request->lock);
	call->state = is_answered ? READ_CALL_ANSWERED : READ_CALL_FAILED;
	call->reason = (uint16_t)reason;
	if (is_answered && call->kind == READ_CALL_DATA)
		part->has_data = true;
	if (call->kind == READ_CALL_REPAIR)
		read_repair_ended_locked(part, &part->replicas[call->replica], is_answered);
	if (read_call_is_awaited_locked(call)) {
		part->waiting--;
		part->answered += is_answered;
	}
	must_schedule = read_part_wake_locked(part);
	lock_drop(&request->lock);
	if (must_schedule)
		read_request_schedule(request, worker);
	read_request_unref(request);
}

/* A replica that does not answer is as slow as can be, however soon we knew. */
static void
read_call_record(struct read_call *call, bool is_answered, enum failure_reason reason)
{
	const struct read_part *part = call->part;
	struct coordinator *coordinator = part->request->coordinator;
	uint64_t latency_ns = coordinator_now(coordinator) - call->callback.sent_ns;

	if (is_answered && part->latencies != NULL && !call->callback.peer->is_local &&
	    (call->kind == READ_CALL_DATA || call->kind == READ_CALL_DIGEST))
		histogram_add(&part->latencies->answers_us, latency_ns / 1000);
	if (reason == FAILURE_TIMEOUT && !is_answered)
		latency_ns = part->request->deadline_ns - part->request->began_ns;
	else if (!is_answered)
		return;
	snitch_record_latency(coordinator->ring.snitch, call->callback.peer, latency_ns);
}

static void
read_call_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct read_call *call = (struct read_call *)callback;

	if (answer != NULL) {
		call->answer = (struct message *)(uintptr_t)answer;
		message_ref(call->answer);
	}
	if (call->kind != READ_CALL_REPAIR)
		read_call_record(call, answer != NULL, reason);
	read_call_ended(call, answer != NULL, reason, worker);
}

struct slice
read_call_bytes(const struct read_call *call)
{
	return call->answer != NULL ? message_payload_slice(call->answer) : call->local;
}

static void
read_call_trace(const struct read_call *call, struct worker *worker)
{
	static const char *const what[] = {[READ_CALL_DATA] = "reading data from",
	    [READ_CALL_DIGEST] = "reading digest from",
	    [READ_CALL_ASK] = "Enqueuing short read request to",
	    [READ_CALL_REPAIR] = "Sending read-repair-mutation to"};
	const struct read_request *request = call->part->request;

	coordinator_trace_peer(request->coordinator, &request->trace, worker, what[call->kind],
	    call->part->replicas[call->replica].peer);
}

void
read_call_send(struct read_call *call, enum verb verb, struct message_payload *payload,
    uint64_t now_ns, struct worker *worker)
{
	struct read_request *request = call->part->request;
	struct coordinator *coordinator = request->coordinator;
	uint64_t left_ns = 1;
	struct message *message = payload == NULL ? NULL : message_new(verb, payload);

	read_request_ref(request);
	if (message == NULL) {
		read_call_ended(call, false, FAILURE_UNKNOWN, worker);
		return;
	}
	if (call->kind == READ_CALL_REPAIR)
		left_ns = coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_WRITE);
	else if (request->deadline_ns > now_ns)
		left_ns = request->deadline_ns - now_ns;
	if (trace_is_on(&request->trace)) {
		message_set_trace(message, &request->trace);
		read_call_trace(call, worker);
	}
	call->callback.on_answer = read_call_answered;
	messaging_request_at(coordinator->ring.messaging, call->part->replicas[call->replica].peer,
	    message, now_ns, left_ns, &call->callback, worker);
}

/* ---- This node's own data ------------------------------------------------------------------ */

static int
read_check_deadline(void *argument, struct error *err)
{
	const struct read_request *request = argument;

	if (coordinator_now(request->coordinator) < request->deadline_ns)
		return 0;
	return error_set(err, ERROR_READ_TIMEOUT, "the read has taken too long");
}

void
read_call_run_here(
    struct read_call *call, const struct read_command *command, struct worker *worker)
{
	struct read_part *part = call->part;
	struct read_request *request = part->request;
	struct coordinator *coordinator = request->coordinator;
	struct read_response_options options = {.wants_data = true,
	    .wants_digest = call->kind == READ_CALL_DATA && part->needs_digest,
	    .tombstone_failure_threshold =
		coordinator->ring.tombstone_failure_threshold(coordinator->ring.context),
	    .check = read_check_deadline,
	    .check_argument = request};
	struct read_response_stats stats = {0};
	uint64_t began = coordinator_now(coordinator);
	struct buffer own, *out = &own;
	enum failure_reason reason = FAILURE_UNKNOWN;
	struct error err;
	int rc;

	read_request_ref(request);
	coordinator_trace_read(coordinator, &request->trace, worker, command);
	buffer_init(&own);
	/* A range's answer may be large, and the worker would keep its memory. */
	if (!command->is_range && worker_is_current(worker))
		out = &worker->scratch;
	buffer_clear(out);
	rc = read_response_execute(
	    coordinator->store, command, &options, request->read->arena, out, &stats, &err);
	if (rc == 0)
		rc = buffer_check(out, &err);
	if (rc == 0) {
		call->local = arena_copy(request->read->arena, buffer_slice(out));
		if (slice_is_null(call->local))
			rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
	}
	buffer_fini(&own);
	if (rc != 0)
		reason = coordinator_reason(&err);
	if (rc == 0 && trace_is_on(&request->trace))
		trace_event(coordinator->ring.cluster, &request->trace, worker,
		    "Read %" PRIu64 " live rows and %" PRIu64 " tombstone cells", stats.rows,
		    stats.tombstones);
	call->digest = stats.digest;
	snitch_record_latency(coordinator->ring.snitch, part->replicas[call->replica].peer,
	    coordinator_now(coordinator) - began);
	read_call_ended(call, rc == 0, reason, worker);
}

/* ---- Asking -------------------------------------------------------------------------------- */

void
read_call_ask(struct read_call *call, uint64_t now_ns, struct worker *worker)
{
	struct read_part *part = call->part;

	read_call_send(call, part->is_range ? VERB_RANGE_REQ : VERB_READ_REQ,
	    read_part_payload(part, call->kind == READ_CALL_DIGEST), now_ns, worker);
}

void
read_part_stop_timer(struct read_part *part)
{
	for (size_t i = 0; i < sizeof(part->timers) / sizeof(part->timers[0]); i++) {
		struct read_timer *timer = &part->timers[i];

		if (!timer->is_started)
			continue;
		timer->is_started = false;
		if (cluster_timer_stop(part->request->coordinator->ring.cluster, &timer->timer))
			read_request_unref(part->request);
	}
}

bool
read_part_contact_more(struct read_part *part, bool is_late, struct worker *worker)
{
	struct read_request *request = part->request;
	enum read_call_kind kind = READ_CALL_DATA;
	struct read_call *call;
	uint32_t index;
	bool can_ask, is_first;

	lock_take(&request->lock);
	index = part->contact_count;
	is_first = part->phase == READ_FIRST;
	can_ask = (is_first || part->phase == READ_DATA) && index < part->replica_count &&
	    !read_part_has_enough_locked(part);
	if (can_ask) {
		part->contact_count++;
		part->waiting++;
		if (is_late)
			store_count_speculative_retry(
			    request->coordinator->store, part->command->table);
	}
	if (is_first && part->has_data)
		kind = READ_CALL_DIGEST;
	lock_drop(&request->lock);
	if (!can_ask)
		return false;
	/* This node's own is asked by a message too: who speculates is a timer's thread. */
	call = read_call_new(part, index, kind);
	lock_take(&request->lock);
	if (is_first)
		part->replicas[index].first = call;
	else
		part->replicas[index].data = call;
	lock_drop(&request->lock);
	read_call_ask(call, coordinator_now(request->coordinator), worker);
	return true;
}

static void
read_part_speculate(struct cluster_timer *timer)
{
	struct read_part *part = ((struct read_timer *)timer)->part;
	struct read_request *request = part->request;

	if (read_part_contact_more(part, true, NULL)) {
		atomic_fetch_add_explicit(
		    &request->coordinator->speculative_retries, 1, memory_order_relaxed);
		if (trace_is_on(&request->trace))
			trace_event(request->coordinator->ring.cluster, &request->trace, NULL,
			    "speculating read retry");
	}
	read_request_unref(request);
}

static void
read_timer_start(struct read_part *part, struct read_timer *timer, uint64_t delay_ns,
    void (*fire)(struct cluster_timer *timer))
{
	timer->timer.fire = fire;
	timer->part = part;
	timer->is_started = true;
	read_request_ref(part->request);
	cluster_timer_start(part->request->coordinator->ring.cluster, &timer->timer, delay_ns);
}

void
read_part_start_timer(struct read_part *part)
{
	struct read_request *request = part->request;
	uint64_t delay_ns;

	if (part->contact_count >= part->replica_count ||
	    request->consistency == CONSISTENCY_EACH_QUORUM)
		return;
	delay_ns = speculation_delay_ns(part->command->table, part->latencies, part->is_range,
	    request->began_ns, request->deadline_ns - request->began_ns);
	if (delay_ns > 0)
		read_timer_start(
		    part, &part->timers[part->phase == READ_DATA], delay_ns, read_part_speculate);
}

static void
read_part_is_late(struct cluster_timer *timer)
{
	struct read_part *part = ((struct read_timer *)timer)->part;
	struct read_request *request = part->request;
	bool must_schedule;

	/* What is to be sent lies in the arena, which is the runner's. */
	lock_take(&request->lock);
	part->is_repair_late = part->phase == READ_REPAIR;
	must_schedule = read_part_wake_locked(part);
	lock_drop(&request->lock);
	if (must_schedule)
		read_request_schedule(request, NULL);
	read_request_unref(request);
}

void
read_part_start_repair_timer(struct read_part *part)
{
	struct read_request *request = part->request;
	struct coordinator *coordinator = request->coordinator;
	uint64_t delay_ns = speculation_write_delay_ns(part->command->table,
	    coordinator_table(coordinator, part->command->table), coordinator_now(coordinator),
	    coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_WRITE));

	if (delay_ns > 0)
		read_timer_start(part, &part->timers[2], delay_ns, read_part_is_late);
}

/* Ask the contacts: others first, then what is ours is read while they work. */
static void
read_part_send(struct read_part *part, uint64_t now_ns, struct worker *worker)
{
	uint32_t count = part->contact_count, whole = 1;
	struct read_call *here = NULL;

	if (part->command->table->options.speculative_retry.kind == RETRY_ALWAYS)
		whole = 2;
	/* Nobody else knows the part yet. */
	for (uint32_t i = 0; i < count; i++) {
		struct read_replica *replica = &part->replicas[i];

		replica->first = read_call_new(part, i,
		    part->phase == READ_FIRST && i >= whole ? READ_CALL_DIGEST : READ_CALL_DATA);
		if (part->phase == READ_DATA)
			replica->data = replica->first;
		if (replica->peer->is_local) {
			/* Ours comes whole: it costs no message. */
			replica->first->kind = READ_CALL_DATA;
			here = replica->first;
		}
	}
	part->waiting = (int32_t)count;
	for (uint32_t i = 0; i < count; i++) {
		if (part->replicas[i].first != here)
			read_call_ask(part->replicas[i].first, now_ns, worker);
	}
	read_part_start_timer(part);
	if (here != NULL)
		read_call_run_here(here, part->command, worker);
}

void
read_request_send(struct read_request *request, uint64_t now_ns, struct worker *worker)
{
	struct read_part *parts = request->parts;
	uint32_t count = request->part_count;

	for (uint32_t i = 0; i < count; i++)
		read_part_send(&parts[i], now_ns, worker);
}
