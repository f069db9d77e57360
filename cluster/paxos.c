/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/log.h"
#include "cluster/paxos_internal.h"
#include "cluster/ranks.h"
#include "cluster/replica_plan.h"

enum { PAXOS_BLOCK = 4 << 10, PAXOS_BACKOFF_MAX_MS = 100, PAXOS_QUORUMS_MAX = 64 };

enum paxos_phase {
	PAXOS_BEGINNING,
	PAXOS_PREPARING,
	PAXOS_CATCHING_UP, /* the last commit goes to those that lack it */
	PAXOS_DECIDING, /* the caller's */
	PAXOS_PROPOSING,
	PAXOS_COMMITTING,
};

/* What somebody accepted or committed; the bytes are the message's. */
struct paxos_value {
	struct uuid ballot;
	struct slice bytes; /* struct paxos_content, encoded; or empty */
	struct message *message; /* a reference; NULL: none was told */
};

/* A participant, as it answered to the prepare. */
struct paxos_participant {
	struct peer *peer;
	bool has_promised;
	struct uuid committed; /* the last one it knows */
};

struct paxos_run {
	atomic_uint
	    references; /* the request's, one for each question, one for the timer or task */
	struct paxos *paxos;
	struct paxos_request *request; /* NULL once it is done */
	struct trace trace; /* of type TRACE_NONE: not traced */
	struct task task; /* the next step, on the mutation stage: one at a time */
	struct cluster_timer timer;
	struct paxos_run *next_pausing, **in_pausing; /* paxos->lock */
	uint64_t deadline_ns; /* of contention */
	uint32_t attempts;

	/* Of this attempt; written by the steps alone. */
	const struct topology *topology; /* a reference */
	struct arena arena;
	struct replica_plan plan; /* of the participants */
	struct paxos_participant *participants;
	struct uuid ballot;
	/*
	 * The caller's value was proposed, and no majority accepted it: it may yet come true by another's hand, as long as
	 * no later value is accepted by a majority. The ballot of the first time, by which it is known whenever it is
	 * proposed; the zero UUID: no such value is about. Never forgotten: that one majority knows nothing of the value
	 * does not tell that a later one will not, where nothing was accepted in between.
	 */
	struct uuid unsettled;
	int32_t aware; /* of those that promised: know the last commit already */
	bool is_own; /* what is proposed is the caller's */
	bool is_empty; /* ... and changes nothing */
	struct message_payload *value; /* a paxos_commit; NULL: none yet */
	struct message_payload *mutation; /* its mutation, for hints */
	int64_t created_ms;

	struct lock lock; /* of all that follows: answers come on any thread */
	enum paxos_phase phase;
	uint64_t round; /* answers to an older one are late */
	bool is_asking; /* the step still asks: it decides itself what has been answered by then */
	bool is_decided; /* this round is, and the task is on its way */
	uint32_t waiting;
	int32_t agreed, refused;
	uint32_t quorum_count; /* PAXOS_COMMITTING: answers that are still wanted, by quorum */
	int32_t wanted[PAXOS_QUORUMS_MAX];
	struct uuid highest; /* ballot of others that was in the way */
	/*
	 * The round that proposed our value for the first time, while nobody may have accepted it; 0: somebody may, or
	 * it was proposed again. Its answers count after the round, too.
	 */
	uint64_t own_round;
	uint32_t
	    own_waiting; /* those who have not refused it yet; 0: nobody will ever know of it */
	struct paxos_value accepted, committed; /* the youngest that were told */
};

/* A question that is out. */
struct paxos_ask {
	struct message_callback callback; /* first */
	struct paxos_run *run; /* a reference */
	uint64_t round;
	uint32_t index; /* of the participant */
	int16_t quorum; /* PAXOS_COMMITTING */
	bool is_counted;
	struct message_payload *hint; /* PAXOS_COMMITTING: a reference; NULL: none is kept */
	int64_t created_ms;
};

static void paxos_attempt(struct paxos_run *run);

/* ---- Life ------------------------------------------------------------------------------------- */

static void
paxos_value_clear(struct paxos_value *value)
{
	message_unref(value->message);
	*value = (struct paxos_value){.message = NULL};
}

static void
paxos_attempt_clear(struct paxos_run *run)
{
	if (run->topology != NULL)
		topology_release(run->paxos->options.topology, run->topology);
	run->topology = NULL;
	message_payload_unref(run->value);
	message_payload_unref(run->mutation);
	run->value = run->mutation = NULL;
	paxos_value_clear(&run->accepted);
	paxos_value_clear(&run->committed);
}

static void
paxos_run_unref(struct paxos_run *run)
{
	if (atomic_fetch_sub_explicit(&run->references, 1, memory_order_acq_rel) != 1)
		return;
	paxos_attempt_clear(run);
	arena_fini(&run->arena);
	lock_fini(&run->lock);
	free(run);
}

static void
paxos_run_ref(struct paxos_run *run)
{
	atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed);
}

static uint64_t
paxos_now(const struct paxos_run *run)
{
	return env_monotonic_ns(run->paxos->options.cluster->env);
}

/* The end: on_done, and nothing of the request is touched any more. */
static void
paxos_finish(struct paxos_run *run, const struct error *err)
{
	struct paxos_request *request = run->request;

	lock_take(&run->lock);
	run->request = NULL;
	run->round++;
	lock_drop(&run->lock);
	request->run = NULL;
	request->on_done(request, err);
	paxos_run_unref(run);
}

/*
 * An error of ours. Once the caller's value may have been accepted nobody can say that it will not be written: the
 * client must not be told what sounds as if.
 */
static void
paxos_fail(struct paxos_run *run, const struct error *cause)
{
	bool is_under_way = run->is_own && !run->is_empty &&
	    (run->phase == PAXOS_PROPOSING || run->phase == PAXOS_COMMITTING);
	struct error err = *cause;

	if (is_under_way || !paxos_ballot_is_none(&run->unsettled)) {
		error_set(&err, ERROR_WRITE_TIMEOUT, "The outcome is not known: %s", cause->text);
		err.consistency = (uint16_t)run->request->commit;
		err.received = 0;
		err.required = run->plan.block_for;
		err.write_type = run->phase == PAXOS_COMMITTING ? "SIMPLE" : "CAS";
	}
	paxos_finish(run, &err);
}

static void
paxos_fail_timeout(struct paxos_run *run, enum consistency level, const char *write_type,
    int32_t received, int32_t required)
{
	struct error err;

	if (received >= required)
		received = required - 1;
	error_set(&err, run->request->is_read ? ERROR_READ_TIMEOUT : ERROR_WRITE_TIMEOUT,
	    "Operation timed out - received only %d responses.", (int)received);
	err.consistency = (uint16_t)level;
	err.received = received;
	err.required = required;
	err.write_type = write_type;
	paxos_finish(run, &err);
}

static void
paxos_fail_unknown(struct paxos_run *run, int32_t accepted)
{
	struct error err;

	error_set(&err, ERROR_CAS_WRITE_UNKNOWN,
	    "CAS operation result is unknown - proposal accepted by %d but not a quorum.",
	    (int)accepted);
	err.consistency = (uint16_t)run->request->serial;
	err.received = accepted;
	err.required = run->plan.block_for;
	err.write_type = "CAS";
	paxos_finish(run, &err);
}

/* ---- Questions -------------------------------------------------------------------------------- */

static void paxos_run_task(struct task *task, struct worker *worker);

/* The next step on the mutation stage. Takes over one reference. */
static void
paxos_submit(struct paxos_run *run)
{
	struct error err;

	run->task = (struct task){.run = paxos_run_task, .submitted_ns = paxos_now(run)};
	if (cluster_submit(run->paxos->options.cluster, CLUSTER_STAGE_MUTATION, &run->task))
		return;
	error_set(&err, ERROR_OVERLOADED, "The mutation stage is full or stops");
	paxos_fail(run, &err);
	paxos_run_unref(run);
}

static void
paxos_note_value(struct paxos_value *value, const struct uuid *ballot, struct slice bytes,
    struct message *message)
{
	if (paxos_ballot_is_none(ballot) || paxos_ballot_compare(ballot, &value->ballot) <= 0)
		return;
	message_ref(message);
	message_unref(value->message);
	*value = (struct paxos_value){*ballot, bytes, message};
}

static void
paxos_note_highest(struct paxos_run *run, const struct uuid *ballot)
{
	if (paxos_ballot_compare(ballot, &run->highest) > 0)
		run->highest = *ballot;
}

static void
paxos_note_promise(struct paxos_run *run, uint32_t index, struct message *answer)
{
	struct paxos_promise promise;
	struct error err;

	if (paxos_promise_decode(message_payload_slice(answer), &promise, &err) != 0) {
		log_warn("Paxos: %s", err.text);
		return;
	}
	paxos_note_value(&run->committed, &promise.committed_ballot, promise.committed, answer);
	if (!promise.is_promised) {
		run->refused++;
		paxos_note_highest(run, &promise.promised);
		return;
	}
	run->agreed++;
	run->participants[index].has_promised = true;
	run->participants[index].committed = promise.committed_ballot;
	paxos_note_value(&run->accepted, &promise.accepted_ballot, promise.accepted, answer);
}

static void
paxos_note_acceptance(struct paxos_run *run, struct message *answer)
{
	struct paxos_acceptance acceptance;
	struct error err;

	if (paxos_acceptance_decode(message_payload_slice(answer), &acceptance, &err) != 0) {
		log_warn("Paxos: %s", err.text);
	} else if (acceptance.is_accepted) {
		run->agreed++;
	} else {
		run->refused++;
		paxos_note_highest(run, &acceptance.promised);
	}
}

static bool
paxos_is_committed(const struct paxos_run *run)
{
	for (uint32_t i = 0; i < run->quorum_count; i++)
		if (run->wanted[i] > 0)
			return false;
	return true;
}

/* One answer more, or one that will not come. */
static void
paxos_note_answer(struct paxos_run *run, struct paxos_ask *ask, struct message *answer)
{
	run->waiting--;
	if (answer == NULL)
		return;
	switch (run->phase) {
	case PAXOS_PREPARING:
		paxos_note_promise(run, ask->index, answer);
		break;
	case PAXOS_PROPOSING:
		paxos_note_acceptance(run, answer);
		break;
	case PAXOS_COMMITTING:
		if (!ask->is_counted)
			break;
		run->agreed++;
		if (ask->quorum >= 0)
			run->wanted[ask->quorum]--;
		break;
	default:
		run->agreed++;
		break;
	}
}

static void
paxos_note_own(struct paxos_run *run, const struct message *answer)
{
	struct paxos_acceptance acceptance;
	struct error err;

	if (answer != NULL &&
	    paxos_acceptance_decode(message_payload_slice(answer), &acceptance, &err) == 0 &&
	    !acceptance.is_accepted)
		run->own_waiting--;
	else
		run->own_round = 0;
}

/* Is all known that the next step needs? The lock is held. */
static bool
paxos_is_over(const struct paxos_run *run)
{
	if (run->waiting == 0)
		return true;
	switch (run->phase) {
	case PAXOS_PREPARING:
		/* Overtaken: nobody waits for those who might not have heard of it. */
		return run->agreed >= run->plan.block_for || run->refused > 0;
	case PAXOS_PROPOSING:
		/* Whether nobody at all took it may still be heard during the pause (own_round). */
		return run->agreed >= run->plan.block_for ||
		    run->refused > (int32_t)run->plan.count - run->plan.block_for;
	case PAXOS_COMMITTING:
		return paxos_is_committed(run);
	case PAXOS_CATCHING_UP:
		return run->aware + run->agreed >= run->plan.block_for;
	default:
		return false;
	}
}

static void
paxos_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct paxos_ask *ask = (struct paxos_ask *)callback;
	struct paxos_run *run = ask->run;
	const struct coordinator_hints *hints = &run->paxos->options.hints;
	bool is_decided = false;

	(void)reason;
	(void)worker;
	if (answer == NULL && ask->hint != NULL && hints->wants(hints->context, callback->peer))
		(void)hints->write(hints->context, callback->peer, ask->hint, ask->created_ms);
	lock_take(&run->lock);
	if (ask->round == run->own_round)
		paxos_note_own(run, answer);
	if (ask->round == run->round && !run->is_decided) {
		paxos_note_answer(run, ask, (struct message *)(uintptr_t)answer);
		is_decided = run->is_decided = !run->is_asking && paxos_is_over(run);
	}
	lock_drop(&run->lock);
	message_payload_unref(ask->hint);
	free(ask);
	if (is_decided)
		paxos_submit(run); /* with the question's reference */
	else
		paxos_run_unref(run);
}

static void
paxos_ask(struct paxos_run *run, struct peer *peer, enum verb verb, struct message_payload *payload,
    const struct paxos_ask *how)
{
	struct paxos_ask *ask = xmalloc(sizeof(*ask));
	struct message *message;

	*ask = *how;
	ask->callback = (struct message_callback){.on_answer = paxos_answered, .peer = peer};
	ask->run = run;
	paxos_run_ref(run);
	if (ask->hint != NULL)
		message_payload_ref(ask->hint);
	message_payload_ref(payload);
	message = message_new(verb, payload);
	if (message != NULL)
		message_set_trace(message, &run->trace);
	if (message == NULL)
		paxos_answered(&ask->callback, NULL, FAILURE_UNKNOWN, NULL);
	else
		messaging_request(run->paxos->options.messaging, peer, message,
		    run->paxos->options.write_timeout_ns(run->paxos->options.context),
		    &ask->callback, NULL);
}

static void
paxos_trace(struct paxos_run *run, enum paxos_phase phase)
{
	char ballot[UUID_TEXT_SIZE];

	uuid_format(&run->ballot, ballot);
	trace_event(run->paxos->options.cluster, &run->trace, NULL, "%s %s",
	    phase == PAXOS_PREPARING         ? "Preparing"
		: phase == PAXOS_CATCHING_UP ? "Sending the last commit to who lacks it; preparing"
		: phase == PAXOS_PROPOSING   ? "Proposing"
					     : "Committing",
	    ballot);
}

/* Open a round of `waiting` questions, which carry the number that this returns; close it when they were asked. */
static uint64_t
paxos_open_round(struct paxos_run *run, enum paxos_phase phase, uint32_t waiting)
{
	uint64_t round;

	lock_take(&run->lock);
	run->phase = phase;
	run->is_asking = waiting > 0;
	run->is_decided = false;
	run->waiting = waiting;
	run->agreed = run->refused = 0;
	round = ++run->round;
	lock_drop(&run->lock);
	if (phase != PAXOS_DECIDING && trace_is_on(&run->trace))
		paxos_trace(run, phase);
	return round;
}

/* All were asked: from here on an answer may start the next step, which changes what the asking reads. */
static void
paxos_close_round(struct paxos_run *run)
{
	bool is_decided;

	lock_take(&run->lock);
	run->is_asking = false;
	is_decided = run->is_decided = paxos_is_over(run);
	if (is_decided)
		paxos_run_ref(run);
	lock_drop(&run->lock);
	if (is_decided)
		paxos_submit(run);
}

static struct message_payload *
paxos_payload(struct paxos_run *run, const struct uuid *ballot, struct slice value)
{
	struct paxos_commit commit = {.ballot = *ballot,
	    .table = run->request->table->id,
	    .key = run->request->key,
	    .value = value};
	struct message_payload *payload = NULL;
	struct buffer out;

	buffer_init(&out);
	paxos_commit_encode(&commit, &out);
	if (!out.is_failed)
		payload = message_payload_new(buffer_slice(&out));
	buffer_fini(&out);
	return payload;
}

static void
paxos_fail_memory(struct paxos_run *run)
{
	struct error err;

	error_set(&err, ERROR_NO_MEMORY, "no memory for a round of Paxos");
	paxos_fail(run, &err);
}

/* ---- Again ------------------------------------------------------------------------------------ */

static void
paxos_pause_begin(struct paxos_run *run)
{
	struct paxos *paxos = run->paxos;

	lock_take(&paxos->lock);
	run->next_pausing = paxos->pausing;
	if (paxos->pausing != NULL)
		paxos->pausing->in_pausing = &run->next_pausing;
	paxos->pausing = run;
	run->in_pausing = &paxos->pausing;
	lock_drop(&paxos->lock);
}

static void
paxos_pause_end(struct paxos_run *run)
{
	lock_take(&run->paxos->lock);
	*run->in_pausing = run->next_pausing;
	if (run->next_pausing != NULL)
		run->next_pausing->in_pausing = run->in_pausing;
	lock_drop(&run->paxos->lock);
}

static void
paxos_timer_fire(struct cluster_timer *timer)
{
	struct paxos_run *run =
	    (struct paxos_run *)((char *)timer - offsetof(struct paxos_run, timer));

	paxos_pause_end(run);
	paxos_submit(run);
}

/* Another ballot was in the way: a little later with a higher one. */
static void
paxos_retry(struct paxos_run *run)
{
	struct paxos_options *options = &run->paxos->options;
	uint64_t pause_ms = 1 + env_random_u64(options->cluster->env) % PAXOS_BACKOFF_MAX_MS;

	atomic_fetch_add_explicit(&run->paxos->contentions, 1, memory_order_relaxed);
	store_count_contention(options->store, run->request->table, run->request->key);
	if (paxos_now(run) >= run->deadline_ns && !paxos_ballot_is_none(&run->unsettled)) {
		paxos_fail_unknown(run, 1);
		return;
	}
	if (paxos_now(run) >= run->deadline_ns) {
		paxos_fail_timeout(run, run->request->serial, "CAS", 0, run->plan.block_for);
		return;
	}
	run->attempts++;
	paxos_attempt_clear(run);
	(void)paxos_open_round(run, PAXOS_BEGINNING, 0);
	paxos_run_ref(run);
	paxos_pause_begin(run);
	cluster_timer_start(options->cluster, &run->timer, pause_ms * 1000 * 1000);
}

/* ---- Commit ----------------------------------------------------------------------------------- */

/* Whose answers count, and how many are wanted of each data center. Under no lock: the round is not open yet. */
static int
paxos_commit_plan(struct paxos_run *run, struct replica_plan *plan, struct error *err)
{
	const struct replication *replication =
	    topology_replication(run->topology, run->request->keyspace);
	enum consistency level = run->request->commit;

	/* What somebody else left is committed so that our own read sees it. */
	if (!run->is_own)
		level = run->request->serial == CONSISTENCY_LOCAL_SERIAL ? CONSISTENCY_LOCAL_QUORUM
									 : CONSISTENCY_QUORUM;
	if (replica_plan_for_write(plan, run->topology, replication, run->request->token, level,
		&run->arena, err) != 0)
		return -1;
	if (plan->quorum_count > PAXOS_QUORUMS_MAX)
		return error_set(err, ERROR_SERVER, "more than %d data centers", PAXOS_QUORUMS_MAX);
	run->quorum_count = plan->quorum_count == 0 ? 1 : plan->quorum_count;
	for (uint32_t i = 0; i < run->quorum_count; i++)
		run->wanted[i] = plan->quorum_count == 0 ? plan->block_for : plan->quorums[i];
	return 0;
}

static void
paxos_commit_hint(struct paxos_run *run, struct peer *peer)
{
	const struct coordinator_hints *hints = &run->paxos->options.hints;

	if (run->mutation != NULL && hints->wants != NULL && hints->wants(hints->context, peer))
		(void)hints->write(hints->context, peer, run->mutation, run->created_ms);
}

static void
paxos_commit(struct paxos_run *run)
{
	bool keeps_hints = run->paxos->options.hints.wants != NULL;
	struct replica_plan *plan = arena_alloc(&run->arena, sizeof(*plan));
	struct paxos_ask how = {.hint = keeps_hints ? run->mutation : NULL};
	uint32_t live = 0;
	struct error err;

	if (plan == NULL) {
		paxos_fail_memory(run);
		return;
	}
	if (paxos_commit_plan(run, plan, &err) != 0) {
		paxos_fail(run, &err);
		return;
	}
	for (uint32_t i = 0; i < plan->count; i++)
		live += plan->replicas[i].is_alive;
	run->created_ms = how.created_ms = env_wall_us(run->paxos->options.cluster->env) / 1000;
	how.round = paxos_open_round(run, PAXOS_COMMITTING, live);
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct replica *replica = &plan->replicas[i];

		how.is_counted = replica->is_counted;
		how.quorum = replica->quorum;
		if (replica->is_alive)
			paxos_ask(run, replica->peer, VERB_PAXOS_COMMIT_REQ, run->value, &how);
		else
			paxos_commit_hint(run, replica->peer);
	}
	paxos_close_round(run);
}

static void
paxos_committed(struct paxos_run *run)
{
	int32_t wanted = 0;

	for (uint32_t i = 0; i < run->quorum_count; i++)
		wanted += run->wanted[i] > 0 ? run->wanted[i] : 0;
	if (!run->is_own) {
		/* Finished or not, it is the others' turn no more: begin again. */
		if (paxos_now(run) >= run->deadline_ns)
			paxos_fail_timeout(
			    run, run->request->serial, "CAS", run->agreed, run->plan.block_for);
		else
			paxos_attempt(run);
	} else if (wanted > 0) {
		paxos_fail_timeout(
		    run, run->request->commit, "SIMPLE", run->agreed, run->agreed + wanted);
	} else {
		run->request->has_written = true;
		paxos_finish(run, NULL);
	}
}

/* ---- Propose ---------------------------------------------------------------------------------- */

/* run->value to all participants. */
static void
paxos_send_proposal(struct paxos_run *run)
{
	struct paxos_ask how = {.round = paxos_open_round(run, PAXOS_PROPOSING, run->plan.count)};

	if (run->is_own && !run->is_empty) {
		lock_take(&run->lock);
		run->own_round = paxos_ballot_is_none(&run->unsettled) ? how.round : 0;
		run->own_waiting = run->plan.count;
		lock_drop(&run->lock);
	}
	for (uint32_t i = 0; i < run->plan.count; i++)
		paxos_ask(
		    run, run->plan.replicas[i].peer, VERB_PAXOS_PROPOSE_REQ, run->value, &how);
	paxos_close_round(run);
}

static void
paxos_proposed(struct paxos_run *run)
{
	if (run->agreed >= run->plan.block_for) {
		/* Nothing is written; that it was accepted is all. */
		if (run->is_empty && run->is_own)
			paxos_finish(run, NULL);
		else
			paxos_commit(run);
		return;
	}
	/* All refused, or it does not matter: again. But what some took, or may have taken, may yet come true. */
	if (!run->is_own || run->is_empty || run->refused == (int32_t)run->plan.count) {
		paxos_retry(run);
	} else if (paxos_now(run) < run->deadline_ns) {
		/* Left behind twice it is still the one of the first time. */
		if (paxos_ballot_is_none(&run->unsettled))
			run->unsettled = run->ballot;
		paxos_retry(run);
	} else if (run->agreed > 0) {
		paxos_fail_unknown(run, run->agreed);
	} else {
		paxos_fail_timeout(
		    run, run->request->serial, "CAS", run->agreed, run->plan.block_for);
	}
}

/* The followers of a value know it, and those before it. */
static void
paxos_follow(struct paxos_run *run, struct paxos_content *content, uint8_t *history)
{
	const size_t size = sizeof(content->origin.bytes);
	struct paxos_content last;
	struct error err;

	content->history = slice_of(history, 0);
	if (run->committed.message == NULL ||
	    paxos_content_decode(run->committed.bytes, &last, &err) != 0)
		return;
	content->history_count =
	    last.history_count < PAXOS_HISTORY_MAX ? last.history_count + 1 : PAXOS_HISTORY_MAX;
	memcpy(history, last.origin.bytes, size);
	memcpy(history + size, last.history.data, (content->history_count - 1) * size);
	content->history = slice_of(history, content->history_count * size);
}

void
paxos_propose(struct paxos_request *request, const struct mutation *mutation)
{
	struct paxos_run *run = request->run;
	uint8_t history[PAXOS_HISTORY_MAX * sizeof(struct uuid)];
	struct paxos_content content = {
	    .origin = paxos_ballot_is_none(&run->unsettled) ? run->ballot : run->unsettled};
	struct buffer encoded, value;

	buffer_init(&encoded);
	buffer_init(&value);
	run->is_own = true;
	run->is_empty = mutation == NULL;
	if (mutation != NULL) {
		mutation_encode(mutation, &encoded);
		content.mutation = buffer_slice(&encoded);
		paxos_follow(run, &content, history);
		paxos_content_encode(&content, &value);
	}
	if (!encoded.is_failed && !value.is_failed) {
		run->value = paxos_payload(
		    run, &run->ballot, mutation == NULL ? slice_of("", 0) : buffer_slice(&value));
		if (mutation != NULL)
			run->mutation = message_payload_new(buffer_slice(&encoded));
	}
	buffer_fini(&value);
	buffer_fini(&encoded);
	if (run->value == NULL || (mutation != NULL && run->mutation == NULL))
		paxos_fail_memory(run);
	else
		paxos_send_proposal(run);
}

void
paxos_abandon(struct paxos_request *request, const struct error *err)
{
	paxos_fail(request->run, err);
}

/* ---- Prepare ---------------------------------------------------------------------------------- */

static void
paxos_ready(struct paxos_run *run)
{
	(void)paxos_open_round(run, PAXOS_DECIDING, 0);
	run->request->on_ready(run->request, &run->ballot);
}

/* Somebody's value is what is proposed or committed now: run->value, run->mutation. */
static int
paxos_take_over(struct paxos_run *run, const struct paxos_value *value, const struct uuid *ballot)
{
	struct paxos_content content;
	struct error err;

	if (paxos_content_decode(value->bytes, &content, &err) != 0) {
		paxos_fail(run, &err);
		return -1;
	}
	run->is_own = uuid_equal(&content.origin, &run->unsettled);
	run->is_empty = false;
	run->value = paxos_payload(run, ballot, value->bytes);
	run->mutation = message_payload_new(content.mutation);
	if (run->value != NULL && run->mutation != NULL)
		return 0;
	paxos_fail_memory(run);
	return -1;
}

/*
 * What became of the value that we left behind? A majority has promised, so nobody can accept it at its old ballot any
 * more; had a majority done so before, one of these would know of it, or of what was committed after it. True: the
 * request goes on from here by itself.
 */
static bool
paxos_settle(struct paxos_run *run)
{
	struct paxos_content committed;
	struct error err;

	if (paxos_ballot_is_none(&run->unsettled))
		return false;
	if (run->committed.message != NULL &&
	    paxos_content_decode(run->committed.bytes, &committed, &err) == 0) {
		if (uuid_equal(&committed.origin, &run->unsettled)) {
			/* Another finished it: to as many as our caller wants. */
			if (paxos_take_over(run, &run->committed, &run->committed.ballot) == 0)
				paxos_commit(run);
			return true;
		}
		if (paxos_content_has(&committed, &run->unsettled)) {
			run->request->has_written = true;
			paxos_finish(run, NULL);
			return true;
		}
		if (paxos_content_may_have_had(&committed, &run->unsettled)) {
			paxos_fail_unknown(run, 1);
			return true;
		}
	}
	return false;
}

/* What somebody accepted and nobody finished: with our ballot. */
static void
paxos_finish_accepted(struct paxos_run *run)
{
	atomic_fetch_add_explicit(&run->paxos->unfinished_commits, 1, memory_order_relaxed);
	if (paxos_take_over(run, &run->accepted, &run->ballot) == 0)
		paxos_send_proposal(run);
}

static bool
paxos_lacks_commit(const struct paxos_run *run, const struct paxos_participant *participant)
{
	return participant->has_promised &&
	    paxos_ballot_compare(&participant->committed, &run->committed.ballot) < 0;
}

/* The last commit to those who promised and do not know it. True: there are some. */
static bool
paxos_catch_up(struct paxos_run *run)
{
	struct message_payload *payload;
	struct paxos_ask how = {.hint = NULL};
	uint32_t count = 0;

	if (run->committed.message == NULL)
		return false;
	for (uint32_t i = 0; i < run->plan.count; i++)
		count += paxos_lacks_commit(run, &run->participants[i]);
	if (count == 0)
		return false;
	payload = paxos_payload(run, &run->committed.ballot, run->committed.bytes);
	if (payload == NULL) {
		paxos_fail_memory(run);
		return true;
	}
	run->aware = run->agreed - (int32_t)count;
	how.round = paxos_open_round(run, PAXOS_CATCHING_UP, count);
	for (uint32_t i = 0; i < run->plan.count; i++)
		if (paxos_lacks_commit(run, &run->participants[i]))
			paxos_ask(
			    run, run->participants[i].peer, VERB_PAXOS_COMMIT_REQ, payload, &how);
	message_payload_unref(payload);
	paxos_close_round(run);
	return true;
}

/* A read at QUORUM sees the last commit only where a majority has it. */
static void
paxos_caught_up(struct paxos_run *run)
{
	if (run->aware + run->agreed >= run->plan.block_for)
		paxos_ready(run);
	else
		paxos_retry(run);
}

static void
paxos_prepared(struct paxos_run *run)
{
	if (run->refused > 0 && run->agreed < run->plan.block_for) {
		paxos_retry(run);
		return;
	}
	if (run->agreed < run->plan.block_for) {
		paxos_fail_timeout(
		    run, run->request->serial, "CAS", run->agreed, run->plan.block_for);
		return;
	}
	if (paxos_settle(run))
		return;
	/* An empty value that was accepted says only that nothing older can come any more. */
	if (run->accepted.message != NULL && run->accepted.bytes.size > 0 &&
	    paxos_ballot_compare(&run->accepted.ballot, &run->committed.ballot) > 0)
		paxos_finish_accepted(run);
	else if (!paxos_catch_up(run))
		paxos_ready(run);
}

static struct uuid
paxos_next_ballot(struct paxos_run *run)
{
	struct paxos *paxos = run->paxos;
	struct env *env = paxos->options.cluster->env;
	int64_t now = env_wall_us(env), last, next;

	if (!paxos_ballot_is_none(&run->highest) && paxos_ballot_timestamp(&run->highest) >= now)
		now = paxos_ballot_timestamp(&run->highest) + 1;
	last = atomic_load(&paxos->last_ballot_us);
	do {
		next = now > last ? now : last + 1;
	} while (!atomic_compare_exchange_weak(&paxos->last_ballot_us, &last, next));
	return paxos_ballot_make(next, env_random_u64(env));
}

/* By now all may have refused the value that we left behind. */
static void
paxos_forget(struct paxos_run *run)
{
	lock_take(&run->lock);
	if (run->own_round != 0 && run->own_waiting == 0)
		run->unsettled = (struct uuid){{0}};
	lock_drop(&run->lock);
}

/* Begin, or begin again. */
static void
paxos_attempt(struct paxos_run *run)
{
	struct paxos_options *options = &run->paxos->options;
	struct paxos_request *request = run->request;
	const struct replication *replication;
	struct message_payload *payload;
	struct replica_plan *check;
	struct paxos_ask how = {.hint = NULL};
	struct error err;

	paxos_attempt_clear(run);
	paxos_forget(run);
	arena_reset(&run->arena);
	run->topology = topology_acquire(options->topology);
	replication = topology_replication(run->topology, request->keyspace);
	check = arena_alloc(&run->arena, sizeof(*check));
	/* A commit that cannot reach its level is refused before anything is promised. */
	if (check == NULL ||
	    replica_plan_for_paxos(&run->plan, run->topology, replication, request->token,
		request->serial, &run->arena, &err) != 0 ||
	    (!request->is_read &&
		replica_plan_for_write(check, run->topology, replication, request->token,
		    request->commit, &run->arena, &err) != 0)) {
		if (check == NULL)
			paxos_fail_memory(run);
		else
			paxos_fail(run, &err);
		return;
	}
	run->participants = arena_calloc(&run->arena, run->plan.count, sizeof(*run->participants));
	run->ballot = paxos_next_ballot(run);
	payload = paxos_payload(run, &run->ballot, slice_of("", 0));
	if (run->participants == NULL || payload == NULL) {
		message_payload_unref(payload);
		paxos_fail_memory(run);
		return;
	}
	for (uint32_t i = 0; i < run->plan.count; i++)
		run->participants[i].peer = run->plan.replicas[i].peer;
	how.round = paxos_open_round(run, PAXOS_PREPARING, run->plan.count);
	for (uint32_t i = 0; i < run->plan.count; i++) {
		how.index = i;
		paxos_ask(run, run->participants[i].peer, VERB_PAXOS_PREPARE_REQ, payload, &how);
	}
	message_payload_unref(payload);
	paxos_close_round(run);
}

/* ---- Steps ------------------------------------------------------------------------------------ */

static void
paxos_run_task(struct task *task, struct worker *worker)
{
	struct paxos_run *run =
	    (struct paxos_run *)((char *)task - offsetof(struct paxos_run, task));
	enum paxos_phase phase;

	(void)worker;
	/* Decided rounds do not change any more, and the one task is this. */
	lock_take(&run->lock);
	phase = run->phase;
	lock_drop(&run->lock);
	switch (phase) {
	case PAXOS_BEGINNING:
		paxos_attempt(run);
		break;
	case PAXOS_PREPARING:
		paxos_prepared(run);
		break;
	case PAXOS_CATCHING_UP:
		paxos_caught_up(run);
		break;
	case PAXOS_PROPOSING:
		paxos_proposed(run);
		break;
	case PAXOS_COMMITTING:
		paxos_committed(run);
		break;
	case PAXOS_DECIDING:
		break;
	}
	paxos_run_unref(run);
}

void
paxos_begin(struct paxos *paxos, struct paxos_request *request)
{
	struct paxos_run *run = xzalloc(sizeof(*run));

	atomic_init(&run->references, 2); /* the request's, and this call's */
	run->paxos = paxos;
	run->request = request;
	if (request->trace != NULL)
		run->trace = *request->trace;
	run->timer.fire = paxos_timer_fire;
	arena_init(&run->arena, PAXOS_BLOCK);
	lock_init(&run->lock, "paxos run", RANK_PAXOS_RUN);
	run->deadline_ns =
	    paxos_now(run) + paxos->options.contention_timeout_ns(paxos->options.context);
	request->run = run;
	request->has_written = false;
	paxos_attempt(run);
	paxos_run_unref(run);
}

/* ---- The whole -------------------------------------------------------------------------------- */

struct paxos *
paxos_new(const struct paxos_options *options)
{
	struct paxos *paxos = xzalloc(sizeof(*paxos));

	paxos->options = *options;
	lock_init(&paxos->lock, "paxos", RANK_PAXOS);
	paxos_acceptor_init(&paxos->acceptor, options->store, options->cluster->env);
	paxos_handle_register(paxos);
	return paxos;
}

void
paxos_free(struct paxos *paxos)
{
	if (paxos == NULL)
		return;
	while (paxos->pausing != NULL) {
		struct paxos_run *run = paxos->pausing;
		struct error err;

		paxos_pause_end(run);
		error_set(&err, ERROR_SERVER, "The node stops");
		paxos_finish(run, &err);
		paxos_run_unref(run); /* the timer's */
	}
	paxos_acceptor_fini(&paxos->acceptor);
	lock_fini(&paxos->lock);
	free(paxos);
}

void
paxos_stats(const struct paxos *paxos, struct paxos_stats *out)
{
	out->contentions = atomic_load_explicit(&paxos->contentions, memory_order_relaxed);
	out->unfinished_commits =
	    atomic_load_explicit(&paxos->unfinished_commits, memory_order_relaxed);
}
