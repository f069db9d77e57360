/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "cluster/paxos_internal.h"

/* The rounds of a request: what is asked, and what follows from the answers. */

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

void
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

void
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
void
paxos_caught_up(struct paxos_run *run)
{
	if (run->aware + run->agreed >= run->plan.block_for)
		paxos_ready(run);
	else
		paxos_retry(run);
}

void
paxos_prepared(struct paxos_run *run)
{
	if (run->refused + run->differing > 0 && run->agreed < run->plan.block_for) {
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
	return paxos_ballot_make(
	    next, env_random_u64(env), run->request->serial == CONSISTENCY_LOCAL_SERIAL);
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
void
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
	run->electorate =
	    replica_plan_electorate(run->topology, replication, request->token, request->serial);
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
