/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes over a ring (StorageProxy.mutate, AbstractWriteResponseHandler, DatacenterSyncWriteResponseHandler).
 *
 *   plan      the replicas of each mutation; a level that cannot be met is refused before anything is sent
 *   send      hints for the dead, one message to each live replica (to a remote data center one for all of its
 *             replicas, CL-13), this node's own part on the calling thread
 *   count     each answer, until every mutation has its level (success) or one cannot have it any more
 *   answer    on_done, once
 *   late      answers and expiries after that decide about hints; the last one frees the request
 *
 * A node that was to pass a message on and cannot be reached, or is silent for half of the timeout, costs its neighbours
 * nothing: they are sent theirs from here. (In Cassandra the write waits for them until it times out.)
 *
 * The request is one block of memory with a count of references: one for each answer that is to come, one for the
 * call that starts it. What points into the caller's memory (the mutations, for this node's part) is not
 * touched after on_done; on_done waits for that, if need be.
 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/coordinator_internal.h"

enum { WRITE_FORWARDER_NS = 2000 * 1000 };

enum write_target_state { WRITE_DEAD, WRITE_WAITING, WRITE_ACKED, WRITE_FAILED };

struct write_request;

struct write_target {
	struct message_callback callback; /* first */
	struct write_part *part;
	struct peer *peer;
	const char *remote_datacenter; /* NULL: local, or sent to. Of the snapshot; while sending */
	struct write_target *forwarder; /* who passes it on to this one; NULL: nobody */
	int16_t quorum; /* place in part->quorums */
	bool is_counted;
	bool is_sent; /* the starting thread's */
	bool
	    forwards; /* others have it as their forwarder. Until its first answer or failure, whose thread has it */
	bool
	    holds_memory; /* our own part still looks at the mutation; guarded by the request's lock */
	uint8_t state; /* enum write_target_state; guarded by the request's lock */
	uint16_t reason;
};

/* To a replica, or to a remote data center; lies in the request's memory. */
struct write_message {
	struct message message; /* first */
	struct write_request *request;
};

struct write_quorum {
	int32_t left; /* answers that are still needed */
	int32_t candidates; /* who may still give one */
};

/* One mutation. */
struct write_part {
	struct write_request *request;
	struct message_payload *payload; /* NULL: nobody else gets it */
	struct store_write local; /* of this node */
	struct write_target *local_target; /* NULL: this node is no replica */
	uint32_t target_count;
	struct write_target *targets;
	int32_t block_for;
	/* Guarded by the request's lock. */
	int32_t acks; /* that count */
	uint32_t quorum_count;
	struct write_quorum *quorums; /* one without data centers of their own */
	bool is_met;
};

struct write_request {
	struct coordinator *coordinator;
	atomic_uint references;
	enum consistency consistency;
	enum write_type type;
	uint64_t began_ns, timeout_ns;
	int64_t created_ms; /* wall clock: of hints */
	struct trace trace; /* of type TRACE_NONE: not traced */
	const struct table_metadata *table; /* of the first mutation; until on_done */
	uint32_t part_count;
	struct write_part *parts;
	/* The starting thread's: what of the block is not used yet. */
	struct write_message *messages;
	struct message_forward *forwards;

	struct lock lock; /* guards what follows */
	struct coordinator_write *write; /* NULL once on_done is called */
	uint32_t parts_left;
	uint32_t
	    local_left; /* of this node's parts: those that still look at the caller's memory */
	struct write_part *failed; /* the first that cannot be met */
	bool is_started; /* all is sent */
	/* This node's own part failed for a reason that the client is told as it is. Owned; seldom, and large. */
	struct error *refusal;
};

static void
write_request_unref(struct write_request *request)
{
	if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < request->part_count; i++)
		message_payload_unref(request->parts[i].payload);
	lock_fini(&request->lock);
	free(request->refusal);
	free(request);
}

static void
write_message_release(struct message *message)
{
	write_request_unref(((struct write_message *)message)->request);
}

static struct message *
write_message_new(struct write_part *part)
{
	struct write_request *request = part->request;
	struct write_message *message = request->messages++;

	message_payload_ref(part->payload);
	message_init(&message->message, VERB_MUTATION_REQ, part->payload, write_message_release);
	message_set_trace(&message->message, &request->trace);
	message->request = request;
	atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
	return &message->message;
}

/* ---- Deciding ------------------------------------------------------------------------------ */

/* Only what cannot wait for other replicas is told of a replica that did not answer in time. */
static void
write_request_error_locked(struct write_request *request, struct error *err)
{
	struct write_part *part = request->failed;
	enum error_code code = ERROR_WRITE_TIMEOUT;
	int32_t acks = part->acks;

	if (request->refusal != NULL) {
		*err = *request->refusal;
		return;
	}
	err->failures = 0;
	err->replica_count = 0;
	for (uint32_t i = 0; i < part->target_count; i++) {
		const struct write_target *target = &part->targets[i];

		if (target->state != WRITE_FAILED)
			continue;
		if (target->reason != FAILURE_TIMEOUT)
			code = ERROR_WRITE_FAILURE;
		coordinator_error_replica(err, target->peer, (enum failure_reason)target->reason);
	}
	/* Answers enough, but not of the right data centers. */
	if (acks >= part->block_for)
		acks = part->block_for - 1;
	coordinator_error_finish(err, code, request->consistency, acks, part->block_for);
	err->write_type = write_type_name(request->type);
}

/*
 * Is it time for on_done? Returns the write when it is, with the error in *err (code ERROR_NONE: success); the caller
 * calls on_done without the lock.
 */
static struct coordinator_write *
write_request_decide_locked(struct write_request *request, struct error *err)
{
	struct coordinator_write *write = request->write;

	if (write == NULL || !request->is_started || request->local_left > 0)
		return NULL;
	if (request->failed == NULL && request->parts_left > 0)
		return NULL;
	request->write = NULL;
	error_clear(err);
	if (request->failed != NULL)
		write_request_error_locked(request, err);
	return write;
}

static void
write_request_answer(struct write_request *request, struct coordinator_write *write,
    const struct error *err, struct worker *worker)
{
	if (write == NULL)
		return;
	coordinator_record(
	    request->coordinator, request->table, COORDINATOR_LATENCY_WRITE, request->began_ns);
	write->worker = worker;
	write->on_done(write, err->code == ERROR_NONE ? NULL : err);
}

static bool
write_part_is_met(const struct write_part *part)
{
	for (uint32_t i = 0; i < part->quorum_count; i++) {
		if (part->quorums[i].left > 0)
			return false;
	}
	return true;
}

static void
write_part_ack_locked(struct write_part *part, struct write_target *target)
{
	struct write_request *request = part->request;

	target->state = WRITE_ACKED;
	if (!target->is_counted)
		return;
	part->acks++;
	if (target->quorum < 0)
		return;
	part->quorums[target->quorum].left--;
	part->quorums[target->quorum].candidates--;
	if (!part->is_met && write_part_is_met(part)) {
		part->is_met = true;
		request->parts_left--;
	}
}

static void
write_part_fail_locked(
    struct write_part *part, struct write_target *target, enum failure_reason reason)
{
	struct write_quorum *quorum;

	target->state = WRITE_FAILED;
	target->reason = (uint16_t)reason;
	if (!target->is_counted || target->quorum < 0 || part->is_met)
		return;
	quorum = &part->quorums[target->quorum];
	quorum->candidates--;
	if (quorum->left > quorum->candidates && part->request->failed == NULL)
		part->request->failed = part;
}

/* ---- Hints --------------------------------------------------------------------------------- */

static bool
write_request_hint(struct write_request *request, struct write_target *target)
{
	const struct coordinator_hints *hints = &request->coordinator->ring.hints;

	if (hints->wants == NULL || target->part->payload == NULL ||
	    !hints->wants(hints->context, target->peer) ||
	    !hints->write(hints->context, target->peer, target->part->payload, request->created_ms))
		return false;
	atomic_fetch_add_explicit(&request->coordinator->hints, 1, memory_order_relaxed);
	return true;
}

/* ---- Who was to pass it on and does not ------------------------------------------------------ */

/* Those that wait for the forwarder get the message from here. An id that is answered twice is answered once. */
static void
write_target_send_again(
    struct write_target *forwarder, uint64_t now_ns, uint64_t deadline_ns, struct worker *worker)
{
	struct write_part *part = forwarder->part;
	struct write_request *request = part->request;
	struct coordinator *coordinator = request->coordinator;

	for (uint32_t i = 0; i < part->target_count; i++) {
		struct write_target *target = &part->targets[i];
		struct message *message;
		bool is_waiting;

		if (target->forwarder != forwarder)
			continue;
		lock_take(&request->lock);
		is_waiting = target->state == WRITE_WAITING;
		lock_drop(&request->lock);
		if (!is_waiting)
			continue;
		message_payload_ref(part->payload);
		message = message_new(VERB_MUTATION_REQ, part->payload);
		if (message == NULL)
			return;
		message->id = target->callback.id;
		message->flags |= MESSAGE_WANTS_FAILURE;
		message_set_trace(message, &request->trace);
		coordinator_trace_peer(coordinator, &request->trace, worker,
		    "Sending what was not forwarded to", target->peer);
		messaging_send(coordinator->ring.messaging, target->peer, message,
		    deadline_ns - now_ns, worker);
	}
}

/*
 * The forwarder could not be reached, or half of the timeout is over. One that was heard of lately is slow, as its neighbours may
 * be, and is waited for: more messages would not help them. True: it is still waited for.
 */
static bool
write_target_is_passed_by(
    struct write_target *target, enum failure_reason reason, struct worker *worker)
{
	struct write_request *request = target->part->request;
	uint64_t now = coordinator_now(request->coordinator);
	uint64_t deadline = request->began_ns + request->timeout_ns;
	uint64_t heard = atomic_load_explicit(&target->peer->heard_ns, memory_order_relaxed);
	bool is_given_up = now < request->began_ns + request->timeout_ns / 2;

	target->forwards = false;
	/* One that failed to apply it has passed it on before. */
	if (reason != FAILURE_TIMEOUT || now >= deadline)
		return false;
	if (is_given_up || now >= heard + request->timeout_ns / 4)
		write_target_send_again(target, now, deadline, worker);
	if (is_given_up)
		return false;
	messaging_expect(request->coordinator->ring.messaging, target->peer, VERB_MUTATION_REQ,
	    target->callback.id, now, deadline - now, &target->callback);
	return true;
}

/* ---- Answers ------------------------------------------------------------------------------- */

static void
write_target_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct write_target *target = (struct write_target *)callback;
	struct write_part *part = target->part;
	struct write_request *request = part->request;
	struct coordinator_write *write;
	struct error err;

	if (answer == NULL && target->forwards && write_target_is_passed_by(target, reason, worker))
		return;
	lock_take(&request->lock);
	if (answer != NULL)
		write_part_ack_locked(part, target);
	else
		write_part_fail_locked(part, target, reason);
	write = write_request_decide_locked(request, &err);
	lock_drop(&request->lock);
	if (answer == NULL)
		write_request_hint(request, target);
	write_request_answer(request, write, &err, worker);
	write_request_unref(request);
}

/* This node's own part; maybe on the commit log's thread. */
static void
write_local_done(struct store_write *local, const struct error *failure)
{
	struct write_part *part = local->context;
	struct write_request *request = part->request;
	struct coordinator_write *write;
	struct error err;

	lock_take(&request->lock);
	if (failure == NULL) {
		write_part_ack_locked(part, part->local_target);
	} else {
		/* What any replica would say, or what is no replica's failure. */
		if (request->refusal == NULL &&
		    (failure->code == ERROR_INVALID || failure->code == ERROR_OVERLOADED ||
			failure->code == ERROR_CDC_WRITE_FAILURE)) {
			request->refusal = xmalloc(sizeof(*request->refusal));
			*request->refusal = *failure;
		}
		write_part_fail_locked(part, part->local_target, FAILURE_UNKNOWN);
	}
	if (part->local_target->holds_memory) {
		part->local_target->holds_memory = false;
		request->local_left--;
	}
	write = write_request_decide_locked(request, &err);
	lock_drop(&request->lock);
	write_request_answer(request, write, &err, NULL);
	write_request_unref(request);
}

/* ---- Sending ------------------------------------------------------------------------------- */

/*
 * Who passes it on: each replica in its turn, but all writes of a moment choose alike (the highest of hashes that change with
 * time), whatever their replicas. So what one turn of a loop has for a data center goes out in one write, and what is passed on too.
 */
static struct write_target *
write_part_forwarder(struct write_part *part, const char *datacenter)
{
	uint64_t moment = part->request->began_ns / WRITE_FORWARDER_NS, best = 0;
	struct write_target *chosen = NULL;

	for (uint32_t i = 0; i < part->target_count; i++) {
		struct write_target *target = &part->targets[i];
		uint64_t hash;

		if (target->remote_datacenter != datacenter)
			continue;
		hash = (moment * UINT32_MAX + target->peer->index) * UINT64_C(0x9e3779b97f4a7c15);
		hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
		if (chosen == NULL || hash > best) {
			chosen = target;
			best = hash;
		}
	}
	return chosen;
}

/* One message for all replicas of a remote data center: to one of them, which passes it on. */
static void
write_part_send_remote(struct write_part *part, const char *datacenter, struct worker *worker)
{
	struct write_request *request = part->request;
	struct coordinator *coordinator = request->coordinator;
	struct messaging *messaging = coordinator->ring.messaging;
	struct write_target *first = NULL;
	struct message *message;
	uint32_t count = 0;
	uint64_t patience_ns = request->timeout_ns;
	uint16_t forward = 0;

	for (uint32_t i = 0; i < part->target_count; i++)
		count += part->targets[i].remote_datacenter == datacenter;
	first = write_part_forwarder(part, datacenter);
	if (count > 1) {
		first->forwards = true;
		patience_ns /= 2;
	}
	message = write_message_new(part);
	message->forwards = request->forwards;
	message->forward_count = (uint16_t)(count - 1);
	request->forwards += count - 1;
	for (uint32_t i = 0; i < part->target_count; i++) {
		struct write_target *target = &part->targets[i];

		if (target->remote_datacenter != datacenter)
			continue;
		target->remote_datacenter = NULL;
		target->is_sent = true;
		if (target != first) {
			target->forwarder = first;
			message->forwards[forward].to = target->peer->endpoint;
			message->forwards[forward].id = messaging_next_id(messaging);
			target->callback.trace_began_ns =
			    trace_is_on(&request->trace) ? request->trace.began_ns : 0;
			coordinator_trace_peer(coordinator, &request->trace, worker,
			    "Adding forward message to", target->peer);
			messaging_expect(messaging, target->peer, VERB_MUTATION_REQ,
			    message->forwards[forward].id, request->began_ns, request->timeout_ns,
			    &target->callback);
			forward++;
		}
	}
	messaging_request_impatiently(messaging, first->peer, message, request->began_ns,
	    request->timeout_ns, patience_ns, &first->callback, worker);
}

static void
write_part_send(struct write_part *part, struct worker *worker)
{
	struct write_request *request = part->request;

	for (uint32_t i = 0; i < part->target_count; i++) {
		struct write_target *target = &part->targets[i];

		if (target->is_sent || target->state != WRITE_WAITING || target->peer->is_local)
			continue;
		if (target->remote_datacenter != NULL) {
			write_part_send_remote(part, target->remote_datacenter, worker);
			continue;
		}
		target->is_sent = true;
		messaging_request_at(request->coordinator->ring.messaging, target->peer,
		    write_message_new(part), request->began_ns, request->timeout_ns,
		    &target->callback, worker);
	}
}

/* The dead get a hint, which is an answer at ANY. */
static void
write_part_hint_dead(struct write_part *part)
{
	struct write_request *request = part->request;

	for (uint32_t i = 0; i < part->target_count; i++) {
		struct write_target *target = &part->targets[i];
		bool is_hinted;

		if (target->state != WRITE_DEAD)
			continue;
		is_hinted = write_request_hint(request, target);
		if (request->consistency != CONSISTENCY_ANY)
			continue;
		lock_take(&request->lock);
		if (is_hinted)
			write_part_ack_locked(part, target);
		else
			write_part_fail_locked(part, target, FAILURE_UNKNOWN);
		lock_drop(&request->lock);
	}
}

static void
write_part_apply(struct write_part *part, struct worker *worker)
{
	struct write_request *request = part->request;

	coordinator_trace_apply(
	    request->coordinator, &request->trace, worker, part->local.mutation);
	store_apply(request->coordinator->store, &part->local);
	lock_take(&request->lock);
	if (part->local_target->state == WRITE_WAITING &&
	    !atomic_load_explicit(&part->local.is_applied, memory_order_acquire)) {
		part->local_target->holds_memory = true;
		request->local_left++;
	}
	lock_drop(&request->lock);
}

/* ---- Starting ------------------------------------------------------------------------------ */

/* The plan of one mutation while the request is made. */
struct write_plan {
	struct replica_plan plan;
	bool is_durable;
};

static int
write_plan_make(struct coordinator *coordinator, const struct coordinator_write *write,
    const struct mutation *mutation, const struct topology *topology, struct write_plan *plan,
    struct error *err)
{
	const struct keyspace_metadata *keyspace = write->keyspace;
	struct slice name = mutation->updates[0].table->keyspace;
	struct schema *schema = NULL;
	int rc;

	if (!slice_equal(name, keyspace->name)) {
		schema = coordinator->ring.schema(coordinator->ring.context);
		keyspace = schema_keyspace(schema, name);
	}
	if (keyspace == NULL) {
		rc = error_set(err, ERROR_INVALID, "Keyspace %.*s does not exist", (int)name.size,
		    (const char *)name.data);
	} else {
		plan->is_durable = keyspace->durable_writes;
		rc = replica_plan_for_write(&plan->plan, topology,
		    topology_replication(topology, keyspace), mutation->token, write->consistency,
		    write->arena, err);
	}
	schema_unref(schema);
	return rc;
}

/* A flood of hints is not to grow (SE-16). Also for those that are alive: they may turn out not to be. */
static int
write_plan_check_hints(
    struct coordinator *coordinator, const struct write_plan *plan, struct error *err)
{
	const struct coordinator_hints *hints = &coordinator->ring.hints;

	if (hints->check == NULL)
		return 0;
	for (uint32_t i = 0; i < plan->plan.count; i++) {
		if (hints->check(hints->context, plan->plan.replicas[i].peer, err) != 0)
			return -1;
	}
	return 0;
}

/* Is this node the only replica of all of it? */
static bool
write_plans_are_local(const struct coordinator_write *write, const struct write_plan *plans)
{
	for (uint32_t i = 0; i < write->mutation_count; i++) {
		if (plans[i].plan.count != 1 || !plans[i].plan.replicas[0].peer->is_local ||
		    plans[i].is_durable != write->keyspace->durable_writes)
			return false;
	}
	return true;
}

/* What is sent of a mutation: messages, and further replicas that they name. */
static void
write_plan_count_messages(const struct replica_plan *plan, uint32_t *messages, uint32_t *forwards)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct replica *replica = &plan->replicas[i];
		bool is_forward = false;

		if (!replica->is_alive || replica->peer->is_local)
			continue;
		for (uint32_t j = 0; j < i && !replica->is_local_datacenter && !is_forward; j++)
			is_forward = plan->replicas[j].is_alive &&
			    plan->replicas[j].datacenter == replica->datacenter;
		*forwards += is_forward;
		*messages += !is_forward;
	}
}

static struct write_request *
write_request_new(struct coordinator *coordinator, struct coordinator_write *write,
    const struct write_plan *plans)
{
	uint32_t count = write->mutation_count, targets = 0, quorums = 0;
	uint32_t messages = 0, forwards = 0;
	struct write_request *request;
	struct write_target *target;
	struct write_quorum *quorum;

	for (uint32_t i = 0; i < count; i++) {
		targets += plans[i].plan.count;
		quorums += plans[i].plan.quorum_count == 0 ? 1 : plans[i].plan.quorum_count;
		write_plan_count_messages(&plans[i].plan, &messages, &forwards);
	}
	request = malloc(sizeof(*request) + count * sizeof(*request->parts) +
	    targets * sizeof(*target) + messages * sizeof(*request->messages) +
	    forwards * sizeof(*request->forwards) + quorums * sizeof(*quorum));
	if (request == NULL)
		return NULL;
	/* Messages are filled when they are made. */
	memset(request, 0, sizeof(*request));
	request->parts = (struct write_part *)(request + 1);
	target = (struct write_target *)(request->parts + count);
	request->messages = (struct write_message *)(target + targets);
	request->forwards = (struct message_forward *)(request->messages + messages);
	quorum = (struct write_quorum *)(request->forwards + forwards);
	memset(
	    request->parts, 0, (size_t)((uint8_t *)request->messages - (uint8_t *)request->parts));
	memset(quorum, 0, quorums * sizeof(*quorum));
	for (uint32_t i = 0; i < count; i++) {
		struct write_part *part = &request->parts[i];

		part->request = request;
		part->targets = target;
		part->target_count = plans[i].plan.count;
		part->quorums = quorum;
		part->quorum_count =
		    plans[i].plan.quorum_count == 0 ? 1 : plans[i].plan.quorum_count;
		target += part->target_count;
		quorum += part->quorum_count;
	}
	request->coordinator = coordinator;
	request->consistency = write->consistency;
	request->type = write->type;
	request->began_ns = coordinator_now(coordinator);
	request->created_ms = env_wall_us(coordinator->env) / 1000;
	request->timeout_ns = coordinator_timeout_ns(coordinator,
	    write->type == WRITE_COUNTER ? COORDINATOR_TIMEOUT_COUNTER : COORDINATOR_TIMEOUT_WRITE);
	request->table = write->mutations[0].updates[0].table;
	request->part_count = request->parts_left = count;
	request->write = write;
	if (write->trace != NULL)
		request->trace = *write->trace;
	atomic_init(&request->references, 1);
	lock_init(&request->lock, "write_request", RANK_COORDINATOR_REQUEST);
	return request;
}

static void
write_part_fill(struct write_part *part, const struct mutation *mutation,
    const struct write_plan *plan, struct buffer *scratch)
{
	const struct replica_plan *replicas = &plan->plan;

	part->block_for = replicas->block_for;
	for (uint32_t i = 0; i < replicas->quorum_count; i++)
		part->quorums[i].left = replicas->quorums[i];
	if (replicas->quorum_count == 0)
		part->quorums[0].left = replicas->block_for;
	for (uint32_t i = 0; i < replicas->count; i++) {
		const struct replica *replica = &replicas->replicas[i];
		struct write_target *target = &part->targets[i];

		target->part = part;
		target->peer = replica->peer;
		target->quorum = replicas->quorum_count == 0 ? 0 : replica->quorum;
		target->is_counted = replica->is_counted;
		target->callback.on_answer = write_target_answered;
		target->state = replica->is_alive ? WRITE_WAITING : WRITE_DEAD;
		if (replica->is_alive && !replica->is_local_datacenter)
			target->remote_datacenter = replica->datacenter;
		if (replica->peer->is_local)
			part->local_target = target;
		if (target->state == WRITE_WAITING)
			atomic_fetch_add_explicit(
			    &part->request->references, 1, memory_order_relaxed);
		if (replica->is_counted && target->quorum >= 0 &&
		    (replica->is_alive || replicas->level == CONSISTENCY_ANY))
			part->quorums[target->quorum].candidates++;
	}
	part->local = (struct store_write){.mutation = mutation,
	    .is_durable = plan->is_durable,
	    .leads_counters = part->request->type == WRITE_COUNTER,
	    .on_done = write_local_done,
	    .context = part,
	    .scratch = scratch};
}

/* The mutation as it goes to others, and into our own log. */
static int
write_part_encode(struct write_part *part, struct buffer *scratch, struct error *err)
{
	if (part->target_count == 1 && part->local_target != NULL)
		return 0;
	buffer_clear(scratch);
	mutation_encode(part->local.mutation, scratch);
	if (buffer_check(scratch, err) != 0)
		return -1;
	part->payload = message_payload_new(buffer_slice(scratch));
	if (part->payload == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	part->local.encoded = slice_of(part->payload->data, part->payload->size);
	return 0;
}

static void
write_request_run(struct write_request *request, struct worker *worker)
{
	struct coordinator_write *write;
	struct error err;

	for (uint32_t i = 0; i < request->part_count; i++) {
		write_part_hint_dead(&request->parts[i]);
		write_part_send(&request->parts[i], worker);
	}
	for (uint32_t i = 0; i < request->part_count; i++) {
		if (request->parts[i].local_target != NULL)
			write_part_apply(&request->parts[i], worker);
	}
	lock_take(&request->lock);
	request->is_started = true;
	/* ANY with nobody alive and no hint kept, or a data center that has nobody. */
	for (uint32_t i = 0; i < request->part_count && request->failed == NULL; i++) {
		struct write_part *part = &request->parts[i];

		for (uint32_t j = 0; j < part->quorum_count && !part->is_met; j++) {
			if (part->quorums[j].left > part->quorums[j].candidates)
				request->failed = part;
		}
	}
	write = write_request_decide_locked(request, &err);
	lock_drop(&request->lock);
	write_request_answer(request, write, &err, worker);
	write_request_unref(request);
}

/* Everything up to the sending. *out NULL and 0: it is this node's alone. */
static int
write_request_make(struct coordinator *coordinator, struct coordinator_write *write,
    const struct topology *topology, struct write_request **out, struct error *err)
{
	struct write_plan *plans =
	    arena_calloc(write->arena, write->mutation_count, sizeof(*plans));
	struct write_request *request = NULL;
	struct buffer local, *scratch = write->scratch;
	int rc = 0;

	buffer_init(&local);
	if (scratch == NULL)
		scratch = &local;
	if (plans == NULL)
		rc = error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	for (uint32_t i = 0; i < write->mutation_count && rc == 0; i++) {
		rc = write_plan_make(
		    coordinator, write, &write->mutations[i], topology, &plans[i], err);
		if (rc == 0)
			rc = write_plan_check_hints(coordinator, &plans[i], err);
	}
	if (rc == 0 && !write_plans_are_local(write, plans)) {
		request = write_request_new(coordinator, write, plans);
		if (request == NULL)
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for a write");
		for (uint32_t i = 0; i < write->mutation_count && rc == 0; i++) {
			write_part_fill(
			    &request->parts[i], &write->mutations[i], &plans[i], write->scratch);
			rc = write_part_encode(&request->parts[i], scratch, err);
		}
	}
	if (rc != 0 && request != NULL) {
		atomic_store(&request->references, 1);
		write_request_unref(request);
		request = NULL;
	}
	buffer_fini(&local);
	*out = request;
	return rc;
}

void
write_request_start(struct coordinator *coordinator, struct coordinator_write *write)
{
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	struct write_request *request = NULL;
	struct error err;
	int rc = write_request_make(coordinator, write, topology, &request, &err);

	if (rc == 0 && request != NULL)
		write_request_run(request, write->worker);
	topology_release(coordinator->ring.topology, topology);
	if (rc != 0) {
		write->on_done(write, &err);
	} else if (request == NULL) {
		coordinator_write_local(coordinator, write);
	}
}
