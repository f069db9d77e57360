/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/batchlog.h"
#include <stddef.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/coordinator_internal.h"

enum { BATCHLOG_ARENA_BLOCK = 16 << 10 };

/* ---- Storing ------------------------------------------------------------------------------- */

static void
batchlog_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct batchlog_entry *entry = ((struct batchlog_store_callback *)callback)->entry;
	struct error err;
	int32_t acks;

	if (answer != NULL)
		atomic_fetch_add(&entry->acks, 1);
	else
		atomic_store(&entry->failure, (uint32_t)reason + 1);
	if (atomic_fetch_sub(&entry->pending, 1) != 1)
		return;
	acks = (int32_t)atomic_load(&entry->acks);
	if (acks == (int32_t)entry->peer_count) {
		entry->on_done(entry, NULL, worker);
		return;
	}
	error_clear(&err);
	err.failures = 0;
	err.replica_count = 0;
	coordinator_error_finish(&err,
	    atomic_load(&entry->failure) == FAILURE_TIMEOUT + 1 ? ERROR_WRITE_TIMEOUT
								: ERROR_WRITE_FAILURE,
	    entry->is_any               ? CONSISTENCY_ANY
		: entry->peer_count > 1 ? CONSISTENCY_TWO
					: CONSISTENCY_ONE,
	    acks, (int32_t)entry->peer_count);
	err.write_type = write_type_name(WRITE_BATCH_LOG);
	entry->on_done(entry, &err, worker);
}

static struct message *
batchlog_message(enum verb verb, struct slice mutation, const struct trace *trace)
{
	struct message_payload *payload = message_payload_new(mutation);
	struct message *message = payload == NULL ? NULL : message_new((uint8_t)verb, payload);

	if (message != NULL && trace != NULL)
		message_set_trace(message, trace);
	return message;
}

void
batchlog_entry_store(struct coordinator *coordinator, struct batchlog_entry *entry, bool is_any,
    struct slice mutation, struct worker *worker)
{
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	uint64_t timeout_ns = coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_WRITE);
	struct error err;
	uint32_t peers;
	int count;

	count = replica_plan_batchlog_endpoints(topology, coordinator->ring.batchlog,
	    coordinator->ring.snitch, is_any, env_random_u64(coordinator->env), entry->peers, &err);
	topology_release(coordinator->ring.topology, topology);
	if (count < 0) {
		entry->on_done(entry, &err, worker);
		return;
	}
	entry->coordinator = coordinator;
	entry->is_any = is_any;
	entry->peer_count = peers = (uint32_t)count;
	atomic_init(&entry->pending, peers);
	atomic_init(&entry->acks, 0);
	atomic_init(&entry->failure, 0);
	/* After the last answer the entry may be gone. */
	for (uint32_t i = 0; i < peers; i++) {
		struct batchlog_store_callback *callback = &entry->callbacks[i];
		struct message *message =
		    batchlog_message(VERB_BATCH_STORE_REQ, mutation, entry->trace);

		callback->entry = entry;
		callback->callback.on_answer = batchlog_answered;
		if (message == NULL)
			batchlog_answered(&callback->callback, NULL, FAILURE_UNKNOWN, worker);
		else
			messaging_request(coordinator->ring.messaging, entry->peers[i], message,
			    timeout_ns, &callback->callback, worker);
	}
}

void
batchlog_entry_remove(struct coordinator *coordinator, const struct batchlog_entry *entry,
    struct slice mutation, struct worker *worker)
{
	for (uint32_t i = 0; i < entry->peer_count; i++) {
		struct message *message =
		    batchlog_message(VERB_BATCH_REMOVE_REQ, mutation, entry->trace);

		/* Who is not told writes the batch once more, which does no harm. */
		if (message != NULL)
			messaging_send(coordinator->ring.messaging, entry->peers[i], message,
			    coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_WRITE), worker);
	}
}

/* ---- Replay -------------------------------------------------------------------------------- */

struct batchlog_send {
	struct message_callback callback; /* first */
	struct batchlog_replay *replay;
	struct batchlog_outcome *outcome;
	struct message_payload *mutation; /* one reference */
	struct uuid host_id;
	int64_t created_ms;
	bool is_local;
};

static void
batchlog_replay_synced(struct hints_wait *wait, const struct error *err)
{
	struct batchlog_replay *replay =
	    (struct batchlog_replay *)((char *)wait - offsetof(struct batchlog_replay, synced));

	replay->on_done(replay, err);
}

static void
batchlog_replay_unref(struct batchlog_replay *replay)
{
	if (atomic_fetch_sub(&replay->pending, 1) != 1)
		return;
	replay->synced.on_done = batchlog_replay_synced;
	hints_sync(replay->hints, &replay->synced);
}

static void
batchlog_replay_hint(struct batchlog_replay *replay, struct batchlog_outcome *outcome,
    const struct uuid *host_id, struct slice mutation, int64_t created_ms)
{
	if (!hints_keep(replay->hints, host_id, mutation, created_ms))
		atomic_store(&outcome->has_failed, true);
}

static void
batchlog_replay_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct batchlog_send *send = (struct batchlog_send *)callback;
	struct batchlog_replay *replay = send->replay;

	(void)reason;
	(void)worker;
	if (answer == NULL && send->is_local)
		atomic_store(&send->outcome->has_failed, true);
	else if (answer == NULL)
		batchlog_replay_hint(replay, send->outcome, &send->host_id,
		    slice_of(send->mutation->data, send->mutation->size), send->created_ms);
	message_payload_unref(send->mutation);
	free(send);
	batchlog_replay_unref(replay);
}

static void
batchlog_replay_send(struct batchlog_replay *replay, struct batchlog_outcome *outcome,
    struct peer *peer, const struct uuid *host_id, struct message_payload *mutation,
    int64_t created_ms)
{
	struct coordinator *coordinator = replay->coordinator;
	struct batchlog_send *send = xzalloc(sizeof(*send));
	struct message *message;

	*send = (struct batchlog_send){.callback.on_answer = batchlog_replay_answered,
	    .replay = replay,
	    .outcome = outcome,
	    .mutation = mutation,
	    .host_id = *host_id,
	    .created_ms = created_ms,
	    .is_local = peer->is_local};
	message_payload_ref(mutation);
	message_payload_ref(mutation);
	atomic_fetch_add(&replay->pending, 1);
	message = message_new(VERB_MUTATION_REQ, mutation);
	if (message == NULL)
		batchlog_replay_answered(&send->callback, NULL, FAILURE_UNKNOWN, NULL);
	else
		messaging_request(coordinator->ring.messaging, peer, message,
		    coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_WRITE), &send->callback,
		    NULL);
}

static const struct table_metadata *
batchlog_find_table(void *argument, const struct uuid *id)
{
	return schema_table_by_id(argument, id);
}

void
batchlog_replay_begin(
    struct batchlog_replay *replay, struct coordinator *coordinator, struct hints *hints)
{
	replay->coordinator = coordinator;
	replay->hints = hints;
	atomic_init(&replay->pending, 1);
}

static void
batchlog_replay_spread(struct batchlog_replay *replay, struct batchlog_outcome *outcome,
    const struct replica_set *replicas, const struct topology *topology,
    struct message_payload *payload, int64_t created_ms)
{
	for (uint32_t i = 0; i < replicas->count + replicas->pending_count; i++) {
		struct peer *peer = replicas->peers[i];
		const struct member *member = topology_find(topology, peer);

		if (member == NULL)
			continue;
		if (peer->is_local || atomic_load(&peer->is_alive))
			batchlog_replay_send(
			    replay, outcome, peer, &member->host_id, payload, created_ms);
		else
			batchlog_replay_hint(replay, outcome, &member->host_id,
			    slice_of(payload->data, payload->size), created_ms);
	}
}

int
batchlog_replay_add(struct batchlog_replay *replay, struct batchlog_outcome *outcome,
    struct slice encoded, int64_t created_ms, struct error *err)
{
	struct coordinator *coordinator = replay->coordinator;
	struct schema *schema = coordinator->ring.schema(coordinator->ring.context);
	const struct keyspace_metadata *keyspace = NULL;
	struct message_payload *payload = NULL;
	const struct topology *topology;
	struct mutation mutation;
	struct arena arena;
	int rc;

	arena_init(&arena, BATCHLOG_ARENA_BLOCK);
	rc = mutation_decode(encoded, batchlog_find_table, schema, &arena, &mutation, err);
	if (rc == 0 && mutation.update_count > 0) /* else its tables are gone */
		keyspace = schema_keyspace(schema, mutation.updates[0].table->keyspace);
	if (keyspace != NULL) {
		payload = message_payload_new(encoded);
		if (payload == NULL)
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for a batch");
	}
	if (payload != NULL) {
		topology = topology_acquire(coordinator->ring.topology);
		batchlog_replay_spread(replay, outcome,
		    replication_replicas(topology_replication(topology, keyspace), mutation.token),
		    topology, payload, created_ms);
		topology_release(coordinator->ring.topology, topology);
	}
	if (rc != 0)
		atomic_store(&outcome->has_failed, true);
	message_payload_unref(payload);
	arena_fini(&arena);
	schema_unref(schema);
	return rc;
}

void
batchlog_replay_end(struct batchlog_replay *replay)
{
	batchlog_replay_unref(replay);
}
