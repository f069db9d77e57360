/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/paxos_internal.h"

/* The replica's side: a message becomes a step of the acceptor, whose answer goes back when it is durable. */

enum { PAXOS_HANDLE_BLOCK = 4 << 10 };

struct paxos_handling {
	struct paxos_step_call call; /* first */
	struct paxos *paxos;
	struct message *message; /* a reference */
	struct schema *schema; /* a reference */
	struct arena arena;
};

static void
paxos_handling_free(struct paxos_handling *handling)
{
	schema_unref(handling->schema);
	message_unref(handling->message);
	arena_fini(&handling->arena);
	free(handling);
}

static void
paxos_handling_trace(const struct paxos_handling *handling)
{
	const struct paxos_step_call *call = &handling->call;
	char ballot[UUID_TEXT_SIZE];
	const char *what = "Committing proposal";

	if (call->step == PAXOS_PREPARE)
		what = call->promise.is_promised ? "Promising ballot"
						 : "Promise rejected; older ballot";
	else if (call->step == PAXOS_PROPOSE)
		what = call->acceptance.is_accepted ? "Accepting proposal" : "Rejecting proposal";
	uuid_format(&call->commit.ballot, ballot);
	trace_event(handling->paxos->options.cluster, &handling->message->trace, NULL, "%s %s",
	    what, ballot);
}

/* May run on the commit log's thread. */
static void
paxos_handling_done(struct paxos_step_call *call, const struct error *err)
{
	struct paxos_handling *handling = (struct paxos_handling *)call;
	struct messaging *messaging = handling->paxos->options.messaging;
	struct buffer out;

	if (err != NULL) {
		log_warn("Paxos: %s", err->text);
		messaging_respond_failure(messaging, handling->message, FAILURE_UNKNOWN, NULL);
		paxos_handling_free(handling);
		return;
	}
	if (trace_is_on(&handling->message->trace))
		paxos_handling_trace(handling);
	buffer_init(&out);
	if (call->step == PAXOS_PREPARE)
		paxos_promise_encode(&call->promise, &out);
	else if (call->step == PAXOS_PROPOSE)
		paxos_acceptance_encode(&call->acceptance, &out);
	if (out.is_failed)
		messaging_respond_failure(messaging, handling->message, FAILURE_UNKNOWN, NULL);
	else
		messaging_respond(messaging, handling->message, buffer_slice(&out), NULL);
	buffer_fini(&out);
	paxos_handling_free(handling);
}

static const struct table_metadata *
paxos_find_table(void *argument, const struct uuid *id)
{
	return schema_table_by_id(argument, id);
}

/*
 * Does this node see the same participants? While the ring changes that tells who is behind; were it not asked, a
 * proposer that sleeps could go on with a majority of replicas of long ago (CASSANDRA-15745).
 */
static bool
paxos_handling_agrees(struct paxos_handling *handling)
{
	const struct paxos_step_call *call = &handling->call;
	struct topology_holder *holder = handling->paxos->options.topology;
	const struct keyspace_metadata *keyspace =
	    schema_keyspace(handling->schema, call->table->keyspace);
	const struct topology *topology = topology_acquire(holder);
	uint64_t electorate = replica_plan_electorate(topology,
	    topology_replication(topology, keyspace), murmur3_token(call->commit.key),
	    paxos_ballot_is_local(&call->commit.ballot) ? CONSISTENCY_LOCAL_SERIAL
							: CONSISTENCY_SERIAL);

	topology_release(holder, topology);
	return electorate == call->commit.electorate;
}

/* What the step needs of the schema. */
static int
paxos_handling_resolve(struct paxos_handling *handling, struct error *err)
{
	struct paxos_step_call *call = &handling->call;
	const struct keyspace_metadata *keyspace;
	struct paxos_content content;

	call->table = schema_table_by_id(handling->schema, &call->commit.table);
	call->paxos_table =
	    schema_table(handling->schema, slice_of_string("system"), slice_of_string("paxos"));
	keyspace =
	    call->table == NULL ? NULL : schema_keyspace(handling->schema, call->table->keyspace);
	if (keyspace == NULL || call->paxos_table == NULL)
		return error_set(err, ERROR_INVALID, "a Paxos request is about an unknown table");
	call->is_durable = keyspace->durable_writes;
	if (call->commit.value.size == 0)
		return 0;
	/* Looked at when it is proposed, too: what cannot be read shall not be decided. */
	if (paxos_content_decode(call->commit.value, &content, err) != 0)
		return -1;
	if (call->step != PAXOS_COMMIT)
		return 0;
	return mutation_decode(content.mutation, paxos_find_table, handling->schema,
	    &handling->arena, &call->mutation, err);
}

static void
paxos_handle(
    struct paxos *paxos, struct message *message, enum paxos_step step, struct worker *worker)
{
	struct paxos_handling *handling = xzalloc(sizeof(*handling));
	struct error err;

	arena_init(&handling->arena, PAXOS_HANDLE_BLOCK);
	handling->paxos = paxos;
	handling->message = message;
	message_ref(message);
	handling->schema = paxos->options.schema(paxos->options.context);
	handling->call = (struct paxos_step_call){
	    .step = step, .arena = &handling->arena, .on_done = paxos_handling_done};
	if (paxos_commit_decode(message_payload_slice(message), &handling->call.commit, &err) !=
		0 ||
	    paxos_handling_resolve(handling, &err) != 0) {
		log_warn("Paxos: %s", err.text);
		messaging_respond_failure(paxos->options.messaging, message,
		    handling->call.table == NULL ? FAILURE_INCOMPATIBLE_SCHEMA : FAILURE_UNKNOWN,
		    worker);
		paxos_handling_free(handling);
		return;
	}
	if (step == PAXOS_PREPARE && !paxos_handling_agrees(handling)) {
		handling->call.promise = (struct paxos_promise){.is_electorate_other = true,
		    .accepted = slice_of("", 0),
		    .committed = slice_of("", 0)};
		paxos_handling_done(&handling->call, NULL);
		return;
	}
	paxos_step_run(&paxos->acceptor, &handling->call);
}

static void
paxos_on_prepare(void *context, struct message *message, struct worker *worker)
{
	paxos_handle(context, message, PAXOS_PREPARE, worker);
}

static void
paxos_on_propose(void *context, struct message *message, struct worker *worker)
{
	paxos_handle(context, message, PAXOS_PROPOSE, worker);
}

static void
paxos_on_commit(void *context, struct message *message, struct worker *worker)
{
	paxos_handle(context, message, PAXOS_COMMIT, worker);
}

void
paxos_handle_register(struct paxos *paxos)
{
	struct messaging *messaging = paxos->options.messaging;

	messaging_handle(
	    messaging, VERB_PAXOS_PREPARE_REQ, CLUSTER_STAGE_MUTATION, paxos_on_prepare, paxos);
	messaging_handle(
	    messaging, VERB_PAXOS_PROPOSE_REQ, CLUSTER_STAGE_MUTATION, paxos_on_propose, paxos);
	messaging_handle(
	    messaging, VERB_PAXOS_COMMIT_REQ, CLUSTER_STAGE_MUTATION, paxos_on_commit, paxos);
}
