/* SPDX-License-Identifier: Apache-2.0 */
/* What this node promises, accepts and knows to be decided; the answers to nodes that change the schema or lack some. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "cluster/schema_log_internal.h"

/* ---- This node's word ----------------------------------------------------------------------- */

static int
schema_save(struct schema_log *log, struct error *err)
{
	struct buffer out;
	int rc;

	buffer_init(&out);
	schema_state_encode(&log->state, &out);
	rc = buffer_check(&out, err);
	if (rc == 0)
		rc = log->ops->save(log->context, buffer_slice(&out), err);
	buffer_fini(&out);
	atomic_store(&log->timestamp_shown, log->state.timestamp);
	atomic_store(&log->epoch_shown, log->state.epoch);
	return rc;
}

void
schema_forget_accepted(struct schema_log *log)
{
	if (log->state.has_accepted)
		schema_entry_fini(&log->state.accepted);
	log->state.has_accepted = false;
}

/* What we say to a prepare. Nothing is promised that is not on the disk. */
void
schema_promise(struct schema_log *log, const struct schema_ballot *ballot, struct buffer *out)
{
	struct schema_log_state *state = &log->state;
	struct schema_promise promise = {
	    .is_ok = schema_ballot_compare(ballot, &state->promised) > 0};
	struct error err;

	if (promise.is_ok) {
		struct schema_ballot before = state->promised;

		state->promised = *ballot;
		if (!log->is_lone && schema_save(log, &err) != 0) {
			log_error("schema: a promise cannot be saved: %s", err.text);
			state->promised = before;
			promise.is_ok = false;
		}
	}
	promise.promised = state->promised;
	promise.epoch = state->epoch;
	promise.timestamp = state->timestamp;
	promise.has_accepted = state->has_accepted;
	promise.accepted_ballot = state->accepted_ballot;
	promise.accepted = state->accepted;
	schema_promise_encode(&promise, out);
}

/* What we say to a proposal. */
void
schema_accept(struct schema_log *log, const struct schema_ballot *ballot,
    const struct schema_entry *entry, struct buffer *out)
{
	struct schema_log_state *state = &log->state;
	/* Only the next one: what was accepted before it is then committed, and may be forgotten. */
	bool is_ok = schema_ballot_compare(ballot, &state->promised) >= 0 &&
	    entry->epoch == state->epoch + 1;
	struct schema_entry copy = {.bytes = NULL};
	struct error err;

	if (is_ok && schema_entry_copy(&copy, entry) == 0) {
		schema_forget_accepted(log);
		state->promised = state->accepted_ballot = *ballot;
		state->accepted = copy;
		state->has_accepted = true;
		if (!log->is_lone && schema_save(log, &err) != 0) {
			/* On the disk or not: it stays accepted here, and nobody counts on it. */
			log_error("schema: an accepted change cannot be saved: %s", err.text);
			is_ok = false;
		}
	} else {
		is_ok = false;
	}
	buffer_put_u8(out, is_ok);
	schema_ballot_encode(&state->promised, out);
}

static void
schema_remember(struct schema_log_state *state, const struct uuid *id)
{
	if (state->recent_count == SCHEMA_RECENT_MAX) {
		memmove(state->recent, state->recent + 1,
		    (SCHEMA_RECENT_MAX - 1) * sizeof(state->recent[0]));
		state->recent_count--;
	}
	state->recent[state->recent_count++] = *id;
}

bool
schema_is_committed(const struct schema_log *log, const struct uuid *id)
{
	for (uint32_t i = 0; i < log->state.recent_count; i++)
		if (uuid_equal(&log->state.recent[i], id))
			return true;
	return false;
}

/* A decided entry: make it true here when it is the next one. */
int
schema_commit(struct schema_log *log, const struct schema_entry *entry, struct error *err)
{
	struct schema_log_state *state = &log->state;

	if (entry->epoch <= state->epoch)
		return 0;
	if (entry->epoch > state->epoch + 1)
		return error_set(err, ERROR_SERVER,
		    "schema change %" PRIu64 " came, and this node is still at %" PRIu64,
		    entry->epoch, state->epoch);
	/* Applied first, durable with what is saved then: a crash between the two applies it again, which changes
	 * nothing. */
	if (log->ops->apply(log->context, slice_of(entry->bytes, entry->size), err) != 0)
		return -1;
	state->epoch = entry->epoch;
	if (entry->timestamp > state->timestamp)
		state->timestamp = entry->timestamp;
	schema_remember(state, &entry->id);
	if (state->has_accepted && state->accepted.epoch <= state->epoch)
		schema_forget_accepted(log);
	return schema_save(log, err);
}

/* Another node's whole schema in place of ours. */
int
schema_install(struct schema_log *log, const struct schema_fetched *fetched, struct error *err)
{
	struct schema_log_state *state = &log->state;

	if (fetched->timestamp < state->timestamp)
		return error_set(err, ERROR_SERVER,
		    "the schema of this node and that of the ring have changed apart from each "
		    "other "
		    "(%" PRIu64 " and %" PRIu64
		    " changes): this node was part of another ring. Save "
		    "its data, wipe it, and let it join anew",
		    state->epoch, fetched->epoch);
	if (log->ops->install(log->context, fetched->snapshot, fetched->timestamp, err) != 0)
		return -1;
	state->epoch = fetched->epoch;
	state->timestamp = fetched->timestamp + 1;
	state->recent_count = fetched->recent_count;
	memcpy(state->recent, fetched->recent, sizeof(state->recent));
	if (state->has_accepted && state->accepted.epoch <= state->epoch)
		schema_forget_accepted(log);
	log_info("schema: %" PRIu64 " changes fetched from another node", state->epoch);
	return schema_save(log, err);
}

/* ---- What others ask ------------------------------------------------------------------------ */

static void
schema_refuse(struct schema_log *log, struct message *message, struct worker *worker)
{
	messaging_respond_failure(log->messaging, message, FAILURE_UNKNOWN, worker);
}

/* `out` is freed. */
static void
schema_respond(
    struct schema_log *log, struct message *message, struct buffer *out, struct worker *worker)
{
	if (out->is_failed)
		schema_refuse(log, message, worker);
	else
		messaging_respond(log->messaging, message, buffer_slice(out), worker);
	buffer_fini(out);
}

static void
schema_on_prepare(void *context, struct message *message, struct worker *worker)
{
	struct schema_log *log = context;
	struct reader reader = reader_of(message_payload_slice(message));
	struct schema_ballot ballot;
	struct buffer out;
	uint64_t epoch;

	schema_ballot_decode(&reader, &ballot);
	epoch = reader_u64(&reader);
	if (reader.is_failed || reader_left(&reader) != 0) {
		schema_refuse(log, message, worker);
		return;
	}
	/* Somebody else is there: what we say has to be kept from now on. */
	log->is_lone = false;
	if (epoch > log->state.epoch)
		schema_log_peer_differs(log, peers_get(log->peers, &message->from));
	buffer_init(&out);
	schema_promise(log, &ballot, &out);
	schema_respond(log, message, &out, worker);
}

static void
schema_on_propose(void *context, struct message *message, struct worker *worker)
{
	struct schema_log *log = context;
	struct reader reader = reader_of(message_payload_slice(message));
	struct schema_entry entry;
	struct schema_ballot ballot;
	struct buffer out;
	struct error err;

	schema_ballot_decode(&reader, &ballot);
	if (schema_entry_decode(&reader, &entry, &err) != 0) {
		log_warn("schema: a proposal from another node: %s", err.text);
		schema_refuse(log, message, worker);
		return;
	}
	log->is_lone = false;
	buffer_init(&out);
	schema_accept(log, &ballot, &entry, &out);
	schema_respond(log, message, &out, worker);
	schema_entry_fini(&entry);
}

static void
schema_on_commit(void *context, struct message *message, struct worker *worker)
{
	struct schema_log *log = context;
	struct reader reader = reader_of(message_payload_slice(message));
	struct schema_entry entry;
	struct error err;
	int rc;

	if (schema_entry_decode(&reader, &entry, &err) != 0) {
		log_warn("schema: a change from another node: %s", err.text);
		schema_refuse(log, message, worker);
		return;
	}
	rc = schema_commit(log, &entry, &err);
	if (rc == 0) {
		messaging_respond(log->messaging, message, slice_of("", 0), worker);
	} else {
		log_warn("schema: %s", err.text);
		schema_refuse(log, message, worker);
		schema_log_peer_differs(log, peers_get(log->peers, &message->from));
	}
	schema_entry_fini(&entry);
}

static void
schema_on_pull(void *context, struct message *message, struct worker *worker)
{
	struct schema_log *log = context;
	struct reader reader = reader_of(message_payload_slice(message));
	uint64_t epoch = reader_u64(&reader);
	struct schema_fetched fetched = {.epoch = log->state.epoch,
	    .timestamp = log->state.timestamp,
	    .recent_count = log->state.recent_count};
	struct buffer snapshot, out;
	struct error err;
	int rc = 0;

	buffer_init(&snapshot);
	memcpy(fetched.recent, log->state.recent, sizeof(fetched.recent));
	fetched.has_snapshot = !reader.is_failed && epoch < log->state.epoch;
	if (fetched.has_snapshot) {
		rc = log->ops->snapshot(log->context, log->state.timestamp + 1, &snapshot, &err);
		fetched.snapshot = buffer_slice(&snapshot);
	}
	if (rc != 0 || reader.is_failed) {
		schema_refuse(log, message, worker);
	} else {
		buffer_init(&out);
		schema_fetched_encode(&fetched, &out);
		schema_respond(log, message, &out, worker);
	}
	buffer_fini(&snapshot);
}

void
schema_acceptor_register(struct schema_log *log)
{
	messaging_handle(log->messaging, VERB_SCHEMA_PREPARE_REQ, CLUSTER_STAGE_MIGRATION,
	    schema_on_prepare, log);
	messaging_handle(log->messaging, VERB_SCHEMA_PROPOSE_REQ, CLUSTER_STAGE_MIGRATION,
	    schema_on_propose, log);
	messaging_handle(
	    log->messaging, VERB_SCHEMA_COMMIT_REQ, CLUSTER_STAGE_MIGRATION, schema_on_commit, log);
	messaging_handle(
	    log->messaging, VERB_SCHEMA_PULL_REQ, CLUSTER_STAGE_MIGRATION, schema_on_pull, log);
}
