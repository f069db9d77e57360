/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replica does for other nodes' coordinators: the handlers of MUTATION_REQ, READ_REPAIR_REQ, BATCH_STORE_REQ, BATCH_REMOVE_REQ, READ_REQ,
 * RANGE_REQ, COUNTER_MUTATION_REQ and TRUNCATE_REQ (db/MutationVerbHandler, ReadCommandVerbHandler,
 * CounterMutationVerbHandler, TruncateVerbHandler).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/log.h"
#include "cluster/coordinator_internal.h"
#include "storage/read_command_codec.h"
#include "storage/read_response.h"

enum { VERB_ARENA_BLOCK = 4096 };

/* A request of another node while it is worked on. */
struct verb_request {
	struct coordinator *coordinator;
	struct message *message; /* one reference */
	struct worker *
	    worker; /* borrowed; whose thread it began on: the answer may be made on the commit log's */
	struct schema *schema; /* one reference: tables are borrowed from it */
	struct arena arena;
	struct mutation mutation;
	struct store_write store_write;
	struct coordinator_write write; /* COUNTER_MUTATION_REQ */
	/* A table that this node does not know: it cannot say that it has the write. */
	bool has_unknown_table;
};

static void
verb_fail(struct coordinator *coordinator, const struct message *message,
    enum failure_reason reason, struct worker *worker)
{
	messaging_respond_failure(coordinator->ring.messaging, message, reason, worker);
}

static struct verb_request *
verb_request_new(struct coordinator *coordinator, struct message *message, struct worker *worker)
{
	struct verb_request *request;
	struct arena arena;

	/* It lies in its own arena, which the thread keeps for the next. */
	worker_take_arena(worker, &arena, VERB_ARENA_BLOCK);
	request = arena_alloc(&arena, sizeof(*request));
	if (request == NULL) {
		arena_fini(&arena);
		return NULL;
	}
	request->arena = arena;
	request->coordinator = coordinator;
	request->message = message;
	message_ref(message);
	request->schema = coordinator->ring.schema(coordinator->ring.context);
	request->has_unknown_table = false;
	request->worker = worker;
	return request;
}

static void
verb_request_free(struct verb_request *request)
{
	struct worker *worker = request->worker;
	struct arena arena = request->arena;

	schema_unref(request->schema);
	message_unref(request->message);
	worker_give_arena(worker, &arena);
}

static const struct table_metadata *
verb_find_table(void *argument, const struct uuid *id)
{
	struct verb_request *request = argument;
	const struct table_metadata *table = schema_table_by_id(request->schema, id);

	if (table == NULL)
		request->has_unknown_table = true;
	return table;
}

/* 0, or -1 with why the request cannot be understood here. */
static int
verb_decode_mutation(
    struct verb_request *request, struct slice encoded, enum failure_reason *reason)
{
	struct error err;

	error_clear(&err);
	*reason = FAILURE_UNKNOWN;
	if (mutation_decode(encoded, verb_find_table, request, &request->arena, &request->mutation,
		&err) != 0) {
		char name[ENDPOINT_TEXT_SIZE];

		/* A column that is not known yet is the usual cause. */
		*reason =
		    err.code == ERROR_NO_MEMORY ? FAILURE_UNKNOWN : FAILURE_INCOMPATIBLE_SCHEMA;
		log_warn("a mutation from /%s cannot be applied: %s",
		    endpoint_format(&request->message->from, name), err.text);
		return -1;
	}
	if (request->has_unknown_table || request->mutation.update_count == 0) {
		*reason = FAILURE_INCOMPATIBLE_SCHEMA;
		return -1;
	}
	return 0;
}

/* ---- Mutations ----------------------------------------------------------------------------- */

/* CL-13: the others of this data center; their answers go to the coordinator. */
static void
verb_forward(struct coordinator *coordinator, const struct message *message, struct worker *worker)
{
	uint64_t now = coordinator_now(coordinator), left_ns;

	left_ns = message->expires_ns > now ? message->expires_ns - now : 1;
	for (uint16_t i = 0; i < message->forward_count; i++) {
		struct peer *to = peers_get(coordinator->ring.peers, &message->forwards[i].to);
		struct message *forward;

		if (to->is_local)
			continue;
		message_payload_ref(message->payload);
		forward = message_new(message->verb, message->payload);
		if (forward == NULL)
			continue;
		forward->id = message->forwards[i].id;
		forward->from = message->from;
		forward->flags |= message->flags & MESSAGE_WANTS_FAILURE;
		message_set_trace(forward, &message->trace);
		coordinator_trace_peer(
		    coordinator, &message->trace, worker, "Enqueuing forwarded write to", to);
		messaging_send(coordinator->ring.messaging, to, forward, left_ns, worker);
	}
}

static void
verb_mutation_done(struct store_write *write, const struct error *err)
{
	struct verb_request *request = write->context;
	struct messaging *messaging = request->coordinator->ring.messaging;

	if (err == NULL)
		messaging_respond_payload(messaging, request->message, NULL, request->worker);
	else
		verb_fail(request->coordinator, request->message, FAILURE_UNKNOWN, request->worker);
	verb_request_free(request);
}

static void
verb_handle_mutation(void *context, struct message *message, struct worker *worker)
{
	struct coordinator *coordinator = context;
	const struct keyspace_metadata *keyspace;
	struct verb_request *request;
	enum failure_reason reason;

	if (message->forward_count > 0 && message->payload != NULL)
		verb_forward(coordinator, message, worker);
	request = verb_request_new(coordinator, message, worker);
	if (request == NULL) {
		verb_fail(coordinator, message, FAILURE_UNKNOWN, worker);
		return;
	}
	if (verb_decode_mutation(request, message_payload_slice(message), &reason) != 0) {
		verb_fail(coordinator, message, reason, worker);
		verb_request_free(request);
		return;
	}
	keyspace = schema_keyspace(request->schema, request->mutation.updates[0].table->keyspace);
	request->store_write = (struct store_write){.mutation = &request->mutation,
	    .is_durable = keyspace == NULL || keyspace->durable_writes,
	    .on_done = verb_mutation_done,
	    .context = request,
	    .encoded = message_payload_slice(message)};
	if (worker_is_current(worker))
		request->store_write.scratch = &worker->scratch;
	coordinator_trace_apply(coordinator, &message->trace, worker, &request->mutation);
	store_apply(coordinator->store, &request->store_write);
}

/* ---- Reads --------------------------------------------------------------------------------- */

struct verb_deadline {
	struct coordinator *coordinator;
	uint64_t at_ns;
};

/* Nobody waits for an answer that comes too late. */
static int
verb_check_deadline(void *argument, struct error *err)
{
	const struct verb_deadline *deadline = argument;

	if (deadline->at_ns == 0 || coordinator_now(deadline->coordinator) < deadline->at_ns)
		return 0;
	return error_set(err, ERROR_READ_TIMEOUT, "the request has expired");
}

static int
verb_read(struct verb_request *request, struct buffer *out, struct error *err)
{
	struct coordinator *coordinator = request->coordinator;
	struct slice payload = message_payload_slice(request->message);
	struct verb_deadline deadline = {coordinator, request->message->expires_ns};
	struct read_response_options options = {
	    .tombstone_failure_threshold =
		coordinator->ring.tombstone_failure_threshold(coordinator->ring.context),
	    .check = verb_check_deadline,
	    .check_argument = &deadline};
	struct read_response_stats stats;
	struct read_command command;

	if (payload.size < 1 || payload.data[0] > READ_KIND_DIGEST)
		return error_set(err, ERROR_PROTOCOL, "a read of an unknown kind");
	options.wants_data = payload.data[0] == READ_KIND_DATA;
	options.wants_digest = !options.wants_data;
	if (read_command_decode(slice_of(payload.data + 1, payload.size - 1), verb_find_table,
		request, &request->arena, &command, err) != 0)
		return -1;
	coordinator_trace_read(coordinator, &request->message->trace, request->worker, &command);
	if (read_response_execute(
		coordinator->store, &command, &options, &request->arena, out, &stats, err) != 0)
		return -1;
	if (trace_is_on(&request->message->trace))
		trace_event(coordinator->ring.cluster, &request->message->trace, request->worker,
		    "Read %" PRIu64 " live rows and %" PRIu64 " tombstone cells", stats.rows,
		    stats.tombstones);
	return 0;
}

static void
verb_handle_read(void *context, struct message *message, struct worker *worker)
{
	struct coordinator *coordinator = context;
	struct verb_request *request = verb_request_new(coordinator, message, worker);
	struct buffer local, *out = worker_is_current(worker) ? &worker->scratch : &local;
	struct error err;

	if (request == NULL) {
		verb_fail(coordinator, message, FAILURE_UNKNOWN, worker);
		return;
	}
	buffer_init(&local);
	buffer_clear(out);
	error_clear(&err);
	if (verb_read(request, out, &err) == 0 && buffer_check(out, &err) == 0) {
		messaging_respond(coordinator->ring.messaging, message, buffer_slice(out), worker);
	} else {
		if (coordinator_reason(&err) == FAILURE_UNKNOWN)
			log_error("a read for another node failed: %s", err.text);
		verb_fail(coordinator, message, coordinator_reason(&err), worker);
	}
	buffer_fini(&local);
	verb_request_free(request);
}

/* ---- What is soon to run -------------------------------------------------------------------- */

static bool
verb_peek(const struct message *message, struct uuid *table_id, struct slice *key)
{
	struct slice payload = message_payload_slice(message);

	if (message->verb != VERB_READ_REQ)
		return mutation_peek(payload, table_id, key);
	return payload.size > 0 &&
	    read_command_peek(slice_of(payload.data + 1, payload.size - 1), table_id, key);
}

/* Their partitions are looked for together, so that the misses of all wait at once. */
static void
verb_ahead(void *context, struct message *const *messages, size_t count)
{
	struct coordinator *coordinator = context;
	struct store_place places[STORE_AHEAD_MAX];
	struct schema *schema;
	size_t found = 0;

	if (count < 2)
		return; /* alone it would wait here instead of there */
	schema = coordinator->ring.schema(coordinator->ring.context);
	for (size_t i = 0; i < count && found < STORE_AHEAD_MAX; i++) {
		struct store_place *place = &places[found];
		struct uuid id;

		if (!verb_peek(messages[i], &id, &place->key))
			continue;
		place->table = schema_table_by_id(schema, &id);
		place->token = murmur3_token(place->key);
		found += place->table != NULL;
	}
	if (found > 1)
		store_ahead(coordinator->store, places, found);
	schema_unref(schema);
}

/* ---- Counters ------------------------------------------------------------------------------ */

static void
verb_counter_done(struct coordinator_write *write, const struct error *err)
{
	struct verb_request *request = write->context;
	struct messaging *messaging = request->coordinator->ring.messaging;

	if (err == NULL)
		messaging_respond_payload(messaging, request->message, NULL, write->worker);
	else
		verb_fail(request->coordinator, request->message,
		    err->code == ERROR_WRITE_TIMEOUT ? FAILURE_TIMEOUT : FAILURE_UNKNOWN,
		    write->worker);
	verb_request_free(request);
}

/* u16 consistency, then the increments as a mutation. */
static void
verb_handle_counter(void *context, struct message *message, struct worker *worker)
{
	struct coordinator *coordinator = context;
	struct verb_request *request = verb_request_new(coordinator, message, worker);
	struct slice payload = message_payload_slice(message);
	enum failure_reason reason = FAILURE_UNKNOWN;
	uint16_t level;

	if (request == NULL || payload.size < 2 || !consistency_is_known(load_u16(payload.data)) ||
	    verb_decode_mutation(request, slice_of(payload.data + 2, payload.size - 2), &reason) !=
		0) {
		verb_fail(coordinator, message, reason, worker);
		if (request != NULL)
			verb_request_free(request);
		return;
	}
	level = load_u16(payload.data);
	request->write = (struct coordinator_write){.mutations = &request->mutation,
	    .mutation_count = 1,
	    .keyspace =
		schema_keyspace(request->schema, request->mutation.updates[0].table->keyspace),
	    .consistency = (enum consistency)level,
	    .type = WRITE_COUNTER,
	    .on_done = verb_counter_done,
	    .context = request,
	    .arena = &request->arena,
	    .worker = worker,
	    .trace = &message->trace};
	counter_request_lead(coordinator, &request->write);
}

/* ---- TRUNCATE ------------------------------------------------------------------------------ */

/* 16 bytes: the table's id. */
static void
verb_handle_truncate(void *context, struct message *message, struct worker *worker)
{
	struct coordinator *coordinator = context;
	struct slice payload = message_payload_slice(message);
	struct schema *schema = coordinator->ring.schema(coordinator->ring.context);
	const struct table_metadata *table = NULL;
	struct uuid id;
	struct error err;

	if (payload.size == sizeof(id.bytes)) {
		memcpy(id.bytes, payload.data, sizeof(id.bytes));
		table = schema_table_by_id(schema, &id);
	}
	if (table == NULL) {
		verb_fail(coordinator, message, FAILURE_INCOMPATIBLE_SCHEMA, worker);
	} else if (coordinator->ring.truncate(coordinator->ring.context, table, &err) != 0) {
		log_error("truncating %.*s.%.*s for another node failed: %s",
		    (int)table->keyspace.size, (const char *)table->keyspace.data,
		    (int)table->name.size, (const char *)table->name.data, err.text);
		verb_fail(coordinator, message, FAILURE_UNKNOWN, worker);
	} else {
		messaging_respond_payload(coordinator->ring.messaging, message, NULL, worker);
	}
	schema_unref(schema);
}

void
coordinator_handle_verbs(struct coordinator *coordinator)
{
	struct messaging *messaging = coordinator->ring.messaging;

	messaging_handle(messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, verb_handle_mutation,
	    coordinator);
	messaging_handle(messaging, VERB_READ_REPAIR_REQ, CLUSTER_STAGE_MUTATION,
	    verb_handle_mutation, coordinator);
	/* Mutations of system.batches. */
	messaging_handle(messaging, VERB_BATCH_STORE_REQ, CLUSTER_STAGE_MUTATION,
	    verb_handle_mutation, coordinator);
	messaging_handle(messaging, VERB_BATCH_REMOVE_REQ, CLUSTER_STAGE_MUTATION,
	    verb_handle_mutation, coordinator);
	messaging_handle(
	    messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, verb_handle_read, coordinator);
	messaging_look_ahead(messaging, VERB_MUTATION_REQ, verb_ahead);
	messaging_look_ahead(messaging, VERB_READ_REQ, verb_ahead);
	messaging_handle(
	    messaging, VERB_RANGE_REQ, CLUSTER_STAGE_READ, verb_handle_read, coordinator);
	messaging_handle(messaging, VERB_COUNTER_MUTATION_REQ, CLUSTER_STAGE_COUNTER_MUTATION,
	    verb_handle_counter, coordinator);
	/* Long: it waits for a flush, so not where mutations run. */
	messaging_handle(
	    messaging, VERB_TRUNCATE_REQ, CLUSTER_STAGE_MISC, verb_handle_truncate, coordinator);
}
