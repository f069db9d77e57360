/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HINT_REQ of another node (hints/HintVerbHandler):
 *
 *   for somebody else       a node that leaves brings its hints: kept for whom they are for
 *   no replica any more     the range has moved: kept for each node that has it now
 *   else                    applied, without what was written before a TRUNCATE
 */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cluster/hints_internal.h"

enum { HINTS_ARENA_BLOCK = 4096 };

/* A hint while it is worked on. */
struct hints_request {
	struct hints *hints;
	struct message *message; /* one reference */
	struct schema *schema; /* one reference */
	struct arena arena;
	struct hint hint;
	struct mutation mutation;
	struct store_write write;
	uint32_t unknown; /* updates of tables that this node does not know */
};

static void
hints_request_free(struct hints_request *request)
{
	arena_fini(&request->arena);
	schema_unref(request->schema);
	message_unref(request->message);
	free(request);
}

static void
hints_respond(struct hints *hints, const struct message *message, struct worker *worker)
{
	messaging_respond_payload(hints->options.messaging, message, NULL, worker);
}

static const struct table_metadata *
hints_find_table(void *argument, const struct uuid *id)
{
	struct hints_request *request = argument;
	const struct table_metadata *table = schema_table_by_id(request->schema, id);

	if (table == NULL)
		request->unknown++;
	return table;
}

/* What was truncated since is left out. */
static void
hints_drop_truncated(struct hints_request *request)
{
	const struct hints_options *options = &request->hints->options;
	struct partition_update *updates = (struct partition_update *)request->mutation.updates;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < request->mutation.update_count; i++) {
		if (request->hint.created_ms >
		    options->truncated_ms(options->context, updates[i].table))
			updates[kept++] = updates[i];
	}
	request->mutation.update_count = kept;
}

/* Keeps the hint for all replicas, unless this node is one: then false. */
static bool
hints_pass_on(struct hints_request *request)
{
	struct hints *hints = request->hints;
	const struct mutation *mutation = &request->mutation;
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(request->schema, mutation->updates[0].table->keyspace);
	const struct topology *topology;
	const struct replica_set *replicas;
	bool is_ours = keyspace == NULL;

	topology = topology_acquire(hints->options.topology);
	if (keyspace != NULL) {
		replicas =
		    replication_replicas(topology_replication(topology, keyspace), mutation->token);
		for (uint32_t i = 0; i < replicas->count + replicas->pending_count; i++)
			is_ours = is_ours || replicas->peers[i]->is_local;
		for (uint32_t i = 0; i < replicas->count + replicas->pending_count && !is_ours;
		     i++) {
			const struct member *member = topology_find(topology, replicas->peers[i]);

			if (member != NULL && hints_wants(hints, replicas->peers[i]))
				(void)hints_keep(hints, &member->host_id, request->hint.mutation,
				    request->hint.created_ms);
		}
	}
	topology_release(hints->options.topology, topology);
	return !is_ours;
}

static void
hints_applied(struct store_write *write, const struct error *err)
{
	struct hints_request *request = write->context;
	struct hints *hints = request->hints;

	hints_count(err == NULL ? &hints->applied : &hints->apply_failed, 1);
	/* Maybe on the commit log's thread: no worker. */
	if (err == NULL)
		hints_respond(hints, request->message, NULL);
	else
		messaging_respond_failure(
		    hints->options.messaging, request->message, FAILURE_UNKNOWN, NULL);
	hints_request_free(request);
}

static void
hints_apply(struct hints_request *request)
{
	uint32_t count = request->mutation.update_count;
	const struct keyspace_metadata *keyspace;

	hints_drop_truncated(request);
	if (request->mutation.update_count == 0) {
		hints_applied(&request->write, NULL);
		return;
	}
	keyspace = schema_keyspace(request->schema, request->mutation.updates[0].table->keyspace);
	request->write.mutation = &request->mutation;
	request->write.is_durable = keyspace == NULL || keyspace->durable_writes;
	request->write.on_done = hints_applied;
	if (request->unknown == 0 && request->mutation.update_count == count)
		request->write.encoded = request->hint.mutation;
	store_apply(request->hints->options.store, &request->write);
}

/* 0; -1 with the reason: it cannot be understood here, and the sender is to come again. */
static int
hints_decode(struct hints_request *request, uint8_t flags, enum failure_reason *reason)
{
	struct error err;

	*reason = FAILURE_INCOMPATIBLE_SCHEMA;
	error_clear(&err);
	if (mutation_decode(request->hint.mutation, hints_find_table, request, &request->arena,
		&request->mutation, &err) != 0) {
		char name[ENDPOINT_TEXT_SIZE];

		if (err.code == ERROR_NO_MEMORY)
			*reason = FAILURE_UNKNOWN;
		log_warn("a hint from /%s cannot be applied: %s",
		    endpoint_format(&request->message->from, name), err.text);
		return -1;
	}
	/* A table that the sender knows and we do not is yet to come. */
	return request->unknown > 0 && (flags & HINTS_REQUEST_SKIPS_UNKNOWN) == 0 ? -1 : 0;
}

static void
hints_handle(void *context, struct message *message, struct worker *worker)
{
	struct hints *hints = context;
	struct slice payload = message_payload_slice(message);
	struct hints_request *request = NULL;
	enum failure_reason reason = FAILURE_UNKNOWN;
	struct uuid host_id;
	struct hint hint;
	uint8_t flags;

	if (payload.size < HINTS_REQUEST_HEAD ||
	    !hint_decode_body(
		slice_of(payload.data + HINTS_REQUEST_HEAD, payload.size - HINTS_REQUEST_HEAD),
		&hint))
		goto fail;
	memcpy(host_id.bytes, payload.data, sizeof(host_id.bytes));
	flags = payload.data[16];
	if (!uuid_equal(&host_id, &hints->options.host_id)) {
		if (!hints_keep(hints, &host_id, hint.mutation, hint.created_ms))
			goto fail;
		hints_respond(hints, message, worker);
		return;
	}
	request = malloc(sizeof(*request));
	if (request == NULL)
		goto fail;
	memset(request, 0, sizeof(*request));
	request->hints = hints;
	request->message = message;
	message_ref(message);
	request->schema = hints->options.schema(hints->options.context);
	request->hint = hint;
	request->write.context = request;
	arena_init(&request->arena, HINTS_ARENA_BLOCK);
	if (hints_decode(request, flags, &reason) != 0)
		goto fail;
	if (request->mutation.update_count > 0 && hints_pass_on(request)) {
		hints_respond(hints, message, worker);
		hints_request_free(request);
		return;
	}
	hints_apply(request);
	return;
fail:
	messaging_respond_failure(hints->options.messaging, message, reason, worker);
	if (request != NULL)
		hints_request_free(request);
}

void
hints_handle_verbs(struct hints *hints)
{
	messaging_handle(
	    hints->options.messaging, VERB_HINT_REQ, CLUSTER_STAGE_MUTATION, hints_handle, hints);
}
