/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/schema_log_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

enum {
	SCHEMA_ASK_TIMEOUT_MS = 2000,
	SCHEMA_BACKOFF_MS =
	    20, /* of the first retry; doubles with each, and half of it is chance */
	SCHEMA_BACKOFF_DOUBLINGS = 4,
	SCHEMA_PULL_RETRY_MS = 500,
};

static const uint64_t schema_ms = 1000 * 1000;
/* Between entries: a snapshot is written between the last one and the next. */
static const int64_t schema_timestamp_gap_us = 1000;

/* A change that somebody waits for. */
struct schema_change_item {
	struct task task; /* first */
	struct schema_change_item *next;
	struct schema_log *log;
	void *change;
	uint64_t deadline_ns;
	uint32_t attempts;
	struct uuid id;
};

/* A question to one node, and its answer on the way to the migration stage. */
struct schema_ask {
	struct message_callback callback; /* first */
	struct task task;
	struct schema_log *log;
	uint64_t round;
	/* answer: null when none came. */
	void (*on_answer)(struct schema_log *log, struct peer *peer, struct slice answer);
	struct message *answer;
};

static void schema_attempt(struct schema_log *log);
static void schema_next(struct schema_log *log);
static void schema_retry(struct schema_log *log);

static uint64_t
schema_now(struct schema_log *log)
{
	return env_monotonic_ns(log->env->env);
}

/* ---- Asking others -------------------------------------------------------------------------- */

static void
schema_ask_run(struct task *task, struct worker *worker)
{
	struct schema_ask *ask =
	    (struct schema_ask *)((char *)task - offsetof(struct schema_ask, task));
	struct schema_log *log = ask->log;

	(void)worker;
	if (ask->round == 0 || ask->round == log->round)
		ask->on_answer(log, ask->callback.peer,
		    ask->answer == NULL ? slice_null : message_payload_slice(ask->answer));
	message_unref(ask->answer);
	free(ask);
}

static void
schema_ask_done(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct schema_ask *ask = (struct schema_ask *)callback;

	(void)reason;
	(void)worker;
	if (answer != NULL) {
		ask->answer = (struct message *)answer;
		message_ref(ask->answer);
	}
	ask->task = (struct task){.run = schema_ask_run, .submitted_ns = schema_now(ask->log)};
	if (!cluster_submit(ask->log->env, CLUSTER_STAGE_MIGRATION, &ask->task)) {
		/* The stage stops, and all changes with it. */
		message_unref(ask->answer);
		free(ask);
	}
}

/* round 0: whenever the answer comes. */
static void
schema_ask(struct schema_log *log, struct peer *peer, enum verb verb,
    struct message_payload *payload, uint64_t round,
    void (*on_answer)(struct schema_log *log, struct peer *peer, struct slice answer))
{
	struct schema_ask *ask = xzalloc(sizeof(*ask));
	struct message *message = NULL;

	if (payload != NULL) {
		message_payload_ref(payload);
		message = message_new(verb, payload);
	}
	ask->callback.on_answer = schema_ask_done;
	ask->callback.peer = peer;
	ask->log = log;
	ask->round = round;
	ask->on_answer = on_answer;
	if (message == NULL) {
		schema_ask_done(&ask->callback, NULL, FAILURE_UNKNOWN, NULL);
		return;
	}
	messaging_request(
	    log->messaging, peer, message, SCHEMA_ASK_TIMEOUT_MS * schema_ms, &ask->callback, NULL);
}

/* Who decides: members whose word the ring's history is made of. */
static bool
schema_is_voter(const struct member *member)
{
	return member->state != MEMBER_JOINING && member->state != MEMBER_REPLACING;
}

static void
schema_count_members(struct schema_log *log, const struct topology *topology)
{
	bool is_only_us = true;

	log->members = log->alive = 0;
	for (uint32_t i = 0; i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);

		if (!schema_is_voter(member))
			continue;
		log->members++;
		is_only_us = is_only_us && member->peer->is_local;
		if (atomic_load_explicit(&member->peer->is_alive, memory_order_relaxed))
			log->alive++;
	}
	log->is_lone = is_only_us;
	/* Before it has joined, or without a ring, a node decides for itself. */
	if (log->members == 0)
		log->members = log->alive = 1;
	log->quorum = log->members / 2 + 1;
}

/*
 * Ask all members that are alive (with_learners: those who join too); then, while they are at it, this node itself: own()
 * writes its answer, which counts where it is a member. Begins a new round.
 */
static void
schema_ask_all(struct schema_log *log, enum verb verb, struct buffer *question,
    void (*own)(struct schema_log *log, struct buffer *out), bool with_learners,
    void (*on_answer)(struct schema_log *log, struct peer *peer, struct slice answer))
{
	const struct topology *topology = topology_acquire(log->topology);
	struct message_payload *payload =
	    question->is_failed ? NULL : message_payload_new(buffer_slice(question));
	uint64_t round = ++log->round;
	bool is_member = topology_member_count(topology) == 0;
	struct buffer answer;

	log->waiting = log->agreed = 0;
	for (uint32_t i = 0; payload != NULL && i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);

		if (!schema_is_voter(member) && !with_learners)
			continue;
		if (member->peer->is_local) {
			is_member = true;
			continue;
		}
		if (!atomic_load_explicit(&member->peer->is_alive, memory_order_relaxed))
			continue;
		log->waiting++;
		schema_ask(log, member->peer, verb, payload, round, on_answer);
	}
	topology_release(log->topology, topology);
	/* A task of an answer cannot have run yet: it is this stage's. */
	log->waiting++;
	buffer_init(&answer);
	own(log, &answer);
	on_answer(log, peers_local(log->peers),
	    is_member && payload != NULL ? buffer_slice(&answer) : slice_null);
	buffer_fini(&answer);
	message_payload_unref(payload);
}

/* ---- The end of a change --------------------------------------------------------------------- */

static void
schema_finish(struct schema_log *log, bool is_noop, const struct error *err)
{
	struct schema_change_item *item = log->queue;

	log->round++;
	log->queue = item->next;
	if (log->queue == NULL)
		log->queue_last = NULL;
	schema_entry_fini(&log->entry);
	log->is_busy = false;
	log->ops->done(log->context, item->change, is_noop, err);
	free(item);
	schema_next(log);
}

static void
schema_fail_unreachable(struct schema_log *log)
{
	struct error err;

	error_set(&err, ERROR_UNAVAILABLE,
	    "Cannot change the schema: %u of the ring's %u nodes are needed to agree, and %u are "
	    "alive",
	    log->quorum, log->members, log->alive);
	err.consistency = CONSISTENCY_QUORUM;
	err.required = (int32_t)log->quorum;
	err.received = (int32_t)log->alive;
	schema_finish(log, false, &err);
}

/* ---- Commit ---------------------------------------------------------------------------------- */

/* The entry is decided, and has been made true by all who could. */
static void
schema_committed(struct schema_log *log)
{
	struct error err;

	if (log->entry.epoch > log->state.epoch) {
		err = log->commit_error;
		error_prefix(&err, "the schema change is decided, but this node cannot make it");
		log_error("%s", err.text);
		schema_finish(log, false, &err);
		return;
	}
	if (uuid_equal(&log->entry.id, &log->queue->id)) {
		schema_finish(log, false, NULL);
		return;
	}
	/* It was somebody else's, left unfinished: now ours. */
	schema_entry_fini(&log->entry);
	schema_attempt(log);
}

static void
schema_commit_answered(struct schema_log *log, struct peer *peer, struct slice answer)
{
	(void)peer;
	(void)answer; /* who could not will fetch it */
	if (--log->waiting == 0)
		schema_committed(log);
}

static void
schema_commit_self(struct schema_log *log, struct buffer *out)
{
	(void)out;
	(void)schema_commit(log, &log->entry, &log->commit_error);
}

static void
schema_commit_everywhere(struct schema_log *log)
{
	struct buffer question;

	buffer_init(&question);
	schema_entry_encode(&log->entry, &question);
	schema_ask_all(log, VERB_SCHEMA_COMMIT_REQ, &question, schema_commit_self, true,
	    schema_commit_answered);
	buffer_fini(&question);
}

/* ---- Propose --------------------------------------------------------------------------------- */

static void
schema_note_ballot(struct schema_log *log, const struct schema_ballot *ballot)
{
	if (schema_ballot_compare(ballot, &log->ballot_seen) > 0)
		log->ballot_seen = *ballot;
}

static void
schema_propose_answered(struct schema_log *log, struct peer *peer, struct slice answer)
{
	struct reader reader = reader_of(answer);
	struct schema_ballot promised;
	bool is_ok;

	(void)peer;
	log->waiting--;
	if (!slice_is_null(answer)) {
		is_ok = reader_u8(&reader) == 1;
		schema_ballot_decode(&reader, &promised);
		if (!reader.is_failed) {
			log->agreed += is_ok;
			schema_note_ballot(log, &promised);
		}
	}
	if (log->agreed >= log->quorum)
		schema_commit_everywhere(log);
	else if (log->waiting == 0)
		schema_retry(log);
}

static void
schema_accept_self(struct schema_log *log, struct buffer *out)
{
	schema_accept(log, &log->ballot, &log->entry, out);
}

/* log->entry goes to all. */
static void
schema_propose(struct schema_log *log)
{
	struct buffer question;

	buffer_init(&question);
	schema_ballot_encode(&log->ballot, &question);
	schema_entry_encode(&log->entry, &question);
	schema_ask_all(log, VERB_SCHEMA_PROPOSE_REQ, &question, schema_accept_self, false,
	    schema_propose_answered);
	buffer_fini(&question);
}

/* A majority has promised, and nobody knows more than we: our change's turn. */
static void
schema_transform(struct schema_log *log)
{
	struct schema_change_item *item = log->queue;
	int64_t now = env_wall_us(log->env->env), timestamp;
	struct buffer entry;
	struct error err;
	int rc;

	timestamp = log->timestamp + schema_timestamp_gap_us;
	if (now > timestamp)
		timestamp = now;
	buffer_init(&entry);
	rc = log->ops->transform(log->context, item->change, timestamp, &entry, &err);
	if (rc > 0 && (buffer_check(&entry, &err) != 0 || entry.size > SCHEMA_ENTRY_MAX))
		rc = entry.size > SCHEMA_ENTRY_MAX
		    ? error_set(&err, ERROR_INVALID, "the schema change takes more than %d bytes",
			  SCHEMA_ENTRY_MAX)
		    : -1;
	if (rc <= 0) {
		buffer_fini(&entry);
		schema_finish(log, rc == 0, rc == 0 ? NULL : &err);
		return;
	}
	log->entry = (struct schema_entry){.epoch = log->state.epoch + 1,
	    .timestamp = timestamp,
	    .id = item->id,
	    .bytes = entry.data,
	    .size = entry.size};
	if (schema_entry_copy(&log->entry, &log->entry) != 0)
		log->entry.bytes = NULL;
	buffer_fini(&entry);
	if (log->entry.bytes == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a schema change");
		schema_finish(log, false, &err);
		return;
	}
	schema_propose(log);
}

/* ---- Fetching what we lack -------------------------------------------------------------------- */

static void
schema_fetch_answered(struct schema_log *log, struct peer *peer, struct slice answer)
{
	struct schema_fetched fetched;
	struct error err;

	(void)peer;
	if (slice_is_null(answer) || schema_fetched_decode(answer, &fetched, &err) != 0 ||
	    !fetched.has_snapshot || fetched.epoch <= log->state.epoch) {
		schema_retry(log);
		return;
	}
	if (schema_install(log, &fetched, &err) != 0) {
		log_error("schema: what another node has cannot be made here: %s", err.text);
		schema_finish(log, false, &err);
		return;
	}
	/* Ours may have been finished by another node's hand. */
	if (schema_is_committed(log, &log->queue->id))
		schema_finish(log, false, NULL);
	else
		schema_attempt(log);
}

static void
schema_send_pull(struct schema_log *log, struct peer *peer, uint64_t round,
    void (*on_answer)(struct schema_log *log, struct peer *peer, struct slice answer))
{
	uint8_t epoch[8];
	struct message_payload *payload;

	store_u64(epoch, log->state.epoch);
	payload = message_payload_new(slice_of(epoch, sizeof(epoch)));
	schema_ask(log, peer, VERB_SCHEMA_PULL_REQ, payload, round, on_answer);
	message_payload_unref(payload);
}

/* ---- Prepare ---------------------------------------------------------------------------------- */

static void
schema_note_promise(struct schema_log *log, struct peer *peer, struct schema_promise *promise)
{
	schema_note_ballot(log, &promise->promised);
	log->agreed += promise->is_ok;
	if (promise->timestamp > log->timestamp)
		log->timestamp = promise->timestamp;
	if (promise->epoch > log->state.epoch && promise->epoch > log->ahead_epoch) {
		log->ahead = peer;
		log->ahead_epoch = promise->epoch;
	}
	if (promise->has_accepted && promise->is_ok &&
	    promise->accepted.epoch == log->state.epoch + 1 &&
	    (log->found.bytes == NULL ||
		schema_ballot_compare(&promise->accepted_ballot, &log->found_ballot) > 0)) {
		schema_entry_fini(&log->found);
		log->found = promise->accepted;
		log->found_ballot = promise->accepted_ballot;
		promise->accepted.bytes = NULL;
	}
	schema_entry_fini(&promise->accepted);
}

static void
schema_prepared(struct schema_log *log)
{
	/* A change came in between: what the others had accepted was judged by an older epoch. */
	if (log->state.epoch != log->prepared_epoch) {
		schema_retry(log);
		return;
	}
	if (log->ahead != NULL) {
		log->round++;
		schema_send_pull(log, log->ahead, log->round, schema_fetch_answered);
		return;
	}
	if (log->found.bytes != NULL) {
		log->entry = log->found;
		log->found.bytes = NULL;
		schema_propose(log);
		return;
	}
	if (schema_is_committed(log, &log->queue->id))
		schema_finish(log, false, NULL);
	else
		schema_transform(log);
}

static void
schema_prepare_answered(struct schema_log *log, struct peer *peer, struct slice answer)
{
	struct schema_promise promise;
	struct error err;

	log->waiting--;
	if (!slice_is_null(answer)) {
		if (schema_promise_decode(answer, &promise, &err) == 0)
			schema_note_promise(log, peer, &promise);
		else
			log_warn("schema: a promise of another node: %s", err.text);
	}
	if (log->agreed >= log->quorum)
		schema_prepared(log);
	else if (log->waiting == 0)
		schema_retry(log);
}

static void
schema_promise_self(struct schema_log *log, struct buffer *out)
{
	schema_promise(log, &log->ballot, out);
}

static void
schema_prepare(struct schema_log *log)
{
	struct buffer question;

	log->ballot.time_us = (uint64_t)env_wall_us(log->env->env);
	if (log->ballot.time_us <= log->ballot_seen.time_us)
		log->ballot.time_us = log->ballot_seen.time_us + 1;
	log->ballot.nonce = env_random_u64(log->env->env);
	log->timestamp = log->state.timestamp;
	log->prepared_epoch = log->state.epoch;
	log->ahead = NULL;
	log->ahead_epoch = 0;
	schema_entry_fini(&log->found);
	buffer_init(&question);
	schema_ballot_encode(&log->ballot, &question);
	buffer_put_u64(&question, log->state.epoch);
	schema_ask_all(log, VERB_SCHEMA_PREPARE_REQ, &question, schema_promise_self, false,
	    schema_prepare_answered);
	buffer_fini(&question);
}

/* ---- Attempts --------------------------------------------------------------------------------- */

/* Begin, or begin again, with the first of the queue. */
static void
schema_attempt(struct schema_log *log)
{
	const struct topology *topology = topology_acquire(log->topology);

	schema_count_members(log, topology);
	topology_release(log->topology, topology);
	log->is_busy = true;
	schema_note_ballot(log, &log->state.promised);
	if (log->alive < log->quorum)
		schema_fail_unreachable(log);
	else
		schema_prepare(log);
}

static void
schema_retry_fire(struct cluster_timer *timer)
{
	struct schema_log *log =
	    (struct schema_log *)((char *)timer - offsetof(struct schema_log, retry_timer));

	log->retry_task.submitted_ns = schema_now(log);
	(void)cluster_submit(log->env, CLUSTER_STAGE_MIGRATION, &log->retry_task);
}

static void
schema_retry_run(struct task *task, struct worker *worker)
{
	struct schema_log *log =
	    (struct schema_log *)((char *)task - offsetof(struct schema_log, retry_task));

	(void)worker;
	schema_attempt(log);
}

/* Others were in the way, or did not answer: a little later again. */
static void
schema_retry(struct schema_log *log)
{
	struct schema_change_item *item = log->queue;
	uint64_t backoff_ms = SCHEMA_BACKOFF_MS;
	struct error err;

	log->round++;
	schema_entry_fini(&log->entry);
	if (schema_now(log) >= item->deadline_ns) {
		error_set(&err, ERROR_SERVER,
		    "The schema change was not decided in time: %u of the ring's %u nodes are "
		    "needed "
		    "to agree. It may still take effect; look before you repeat it",
		    log->quorum, log->members);
		schema_finish(log, false, &err);
		return;
	}
	backoff_ms <<=
	    item->attempts < SCHEMA_BACKOFF_DOUBLINGS ? item->attempts : SCHEMA_BACKOFF_DOUBLINGS;
	item->attempts++;
	backoff_ms = backoff_ms / 2 + env_random_u64(log->env->env) % backoff_ms;
	cluster_timer_start(log->env, &log->retry_timer, backoff_ms * schema_ms);
}

static void
schema_next(struct schema_log *log)
{
	if (!log->is_busy && log->queue != NULL)
		schema_attempt(log);
}

static void
schema_change_run(struct task *task, struct worker *worker)
{
	struct schema_change_item *item = (struct schema_change_item *)task;
	struct schema_log *log = item->log;

	(void)worker;
	if (log->queue == NULL)
		log->queue = item;
	else
		log->queue_last->next = item;
	log->queue_last = item;
	schema_next(log);
}

void
schema_log_change(struct schema_log *log, void *change, uint64_t timeout_ns)
{
	struct schema_change_item *item = xzalloc(sizeof(*item));
	uint8_t random[16];
	struct error err;

	env_random(log->env->env, random, sizeof(random));
	item->id = uuid_from_random(random);
	item->log = log;
	item->change = change;
	item->deadline_ns = schema_now(log) + timeout_ns;
	item->task = (struct task){.run = schema_change_run, .submitted_ns = schema_now(log)};
	if (cluster_submit(log->env, CLUSTER_STAGE_MIGRATION, &item->task))
		return;
	free(item);
	error_set(&err, ERROR_SERVER, "The node is stopping: the schema was not changed");
	log->ops->done(log->context, change, false, &err);
}

/* ---- Catching up -------------------------------------------------------------------------------- */

static void
schema_pull_later(struct schema_log *log)
{
	if (!atomic_exchange(&log->is_pull_timed, true))
		cluster_timer_start(log->env, &log->pull_timer, SCHEMA_PULL_RETRY_MS * schema_ms);
}

static void
schema_pull_answered(struct schema_log *log, struct peer *peer, struct slice answer)
{
	struct schema_fetched fetched;
	struct error err;

	log->is_pulling = false;
	if (slice_is_null(answer)) {
		/* Gossip will tell of it again when it comes back. */
		if (atomic_load_explicit(&peer->is_alive, memory_order_relaxed))
			schema_pull_later(log);
		return;
	}
	if (atomic_load(&log->pull_from) == peer)
		atomic_store(&log->pull_from, NULL);
	if (schema_fetched_decode(answer, &fetched, &err) != 0) {
		log_warn("schema: from another node: %s", err.text);
	} else if (fetched.has_snapshot && fetched.epoch > log->state.epoch) {
		/* A change that is on its way begins again, with what it then finds. */
		if (schema_install(log, &fetched, &err) != 0)
			log_error(
			    "schema: what another node has cannot be made here: %s", err.text);
	}
	if (atomic_load(&log->pull_from) != NULL)
		schema_pull_later(log);
}

static void
schema_pull_run(struct task *task, struct worker *worker)
{
	struct schema_log *log =
	    (struct schema_log *)((char *)task - offsetof(struct schema_log, pull_task));
	struct peer *peer = atomic_load(&log->pull_from);

	(void)worker;
	atomic_store(&log->is_pull_timed, false);
	if (peer == NULL || log->is_pulling)
		return;
	log->is_pulling = true;
	schema_send_pull(log, peer, 0, schema_pull_answered);
}

static void
schema_pull_fire(struct cluster_timer *timer)
{
	struct schema_log *log =
	    (struct schema_log *)((char *)timer - offsetof(struct schema_log, pull_timer));

	log->pull_task.submitted_ns = schema_now(log);
	(void)cluster_submit(log->env, CLUSTER_STAGE_MIGRATION, &log->pull_task);
}

void
schema_log_peer_differs(struct schema_log *log, struct peer *peer)
{
	atomic_store(&log->pull_from, peer);
	/* At once, but for what comes while one is under way: most differences mend themselves by a commit that is
	 * on its way. */
	if (!atomic_exchange(&log->is_pull_timed, true))
		cluster_timer_start(
		    log->env, &log->pull_timer, SCHEMA_PULL_RETRY_MS / 10 * schema_ms);
}

/* ---- Life ---------------------------------------------------------------------------------------- */

struct schema_log *
schema_log_new(struct cluster_env *env, struct messaging *messaging, struct peers *peers,
    struct topology_holder *topology, const struct schema_log_ops *ops, void *context)
{
	struct schema_log *log = xzalloc(sizeof(*log));

	log->env = env;
	log->messaging = messaging;
	log->peers = peers;
	log->topology = topology;
	log->ops = ops;
	log->context = context;
	log->retry_timer.fire = schema_retry_fire;
	log->pull_timer.fire = schema_pull_fire;
	log->retry_task.run = schema_retry_run;
	log->pull_task.run = schema_pull_run;
	schema_acceptor_register(log);
	return log;
}

int
schema_log_start(struct schema_log *log, struct error *err)
{
	struct buffer saved;
	int rc;

	buffer_init(&saved);
	rc = log->ops->load(log->context, &saved, err);
	if (rc == 0 && saved.size > 0)
		rc = schema_state_decode(buffer_slice(&saved), &log->state, err);
	if (rc != 0)
		error_prefix(err, "the saved state of the schema log");
	buffer_fini(&saved);
	atomic_store(&log->timestamp_shown, log->state.timestamp);
	atomic_store(&log->epoch_shown, log->state.epoch);
	return rc;
}

void
schema_log_free(struct schema_log *log)
{
	struct error err;

	if (log == NULL)
		return;
	(void)cluster_timer_stop(log->env, &log->retry_timer);
	(void)cluster_timer_stop(log->env, &log->pull_timer);
	error_set(
	    &err, ERROR_SERVER, "The node is stopping: the schema may or may not have changed");
	while (log->queue != NULL) {
		struct schema_change_item *item = log->queue;

		log->queue = item->next;
		log->ops->done(log->context, item->change, false, &err);
		free(item);
	}
	schema_entry_fini(&log->entry);
	schema_entry_fini(&log->found);
	schema_forget_accepted(log);
	free(log);
}

struct schema_log_position
schema_log_position(struct schema_log *log)
{
	return (struct schema_log_position){
	    atomic_load(&log->epoch_shown), atomic_load(&log->timestamp_shown)};
}
