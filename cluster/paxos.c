/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "base/log.h"
#include "cluster/paxos_internal.h"
#include "cluster/ranks.h"

#define PAXOS_DISAGREE_NS UINT64_C(100000000)
enum { PAXOS_BLOCK = 4 << 10, PAXOS_BACKOFF_MAX_MS = 100 };

/* ---- Life ------------------------------------------------------------------------------------- */

static void
paxos_value_clear(struct paxos_value *value)
{
	message_unref(value->message);
	*value = (struct paxos_value){.message = NULL};
}

void
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

uint64_t
paxos_now(const struct paxos_run *run)
{
	return env_monotonic_ns(run->paxos->options.cluster->env);
}

/* The end: on_done, and nothing of the request is touched any more. */
void
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
void
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

void
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

void
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
	if (promise.is_electorate_other) {
		run->differing++;
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
		return run->agreed >= run->plan.block_for || run->refused > 0 ||
		    (run->differing > 0 &&
			run->agreed + (int32_t)run->waiting < run->plan.block_for);
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

/* Once for many requests: it is the same change that they all stumble over. */
static void
paxos_disagree(struct paxos *paxos, struct peer *peer)
{
	const struct paxos_options *options = &paxos->options;
	uint64_t now = env_monotonic_ns(options->cluster->env);
	uint64_t last = atomic_load_explicit(&paxos->disagreed_ns, memory_order_relaxed);

	if (options->on_disagreement == NULL || now - last < PAXOS_DISAGREE_NS ||
	    !atomic_compare_exchange_strong(&paxos->disagreed_ns, &last, now))
		return;
	options->on_disagreement(options->context, peer);
}

static void
paxos_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct paxos_ask *ask = (struct paxos_ask *)callback;
	struct paxos_run *run = ask->run;
	const struct coordinator_hints *hints = &run->paxos->options.hints;
	bool is_decided = false, disagrees;

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
	disagrees = ask->round == run->round && run->differing > 0;
	lock_drop(&run->lock);
	if (disagrees)
		paxos_disagree(run->paxos, callback->peer);
	message_payload_unref(ask->hint);
	free(ask);
	if (is_decided)
		paxos_submit(run); /* with the question's reference */
	else
		paxos_run_unref(run);
}

void
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
uint64_t
paxos_open_round(struct paxos_run *run, enum paxos_phase phase, uint32_t waiting)
{
	uint64_t round;

	lock_take(&run->lock);
	run->phase = phase;
	run->is_asking = waiting > 0;
	run->is_decided = false;
	run->waiting = waiting;
	run->agreed = run->refused = run->differing = 0;
	round = ++run->round;
	lock_drop(&run->lock);
	if (phase != PAXOS_DECIDING && trace_is_on(&run->trace))
		paxos_trace(run, phase);
	return round;
}

/* All were asked: from here on an answer may start the next step, which changes what the asking reads. */
void
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

struct message_payload *
paxos_payload(struct paxos_run *run, const struct uuid *ballot, struct slice value)
{
	struct paxos_commit commit = {.ballot = *ballot,
	    .table = run->request->table->id,
	    .key = run->request->key,
	    .value = value,
	    .electorate = run->electorate};
	struct message_payload *payload = NULL;
	struct buffer out;

	buffer_init(&out);
	paxos_commit_encode(&commit, &out);
	if (!out.is_failed)
		payload = message_payload_new(buffer_slice(&out));
	buffer_fini(&out);
	return payload;
}

void
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
void
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
	free(paxos->automatic);
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
