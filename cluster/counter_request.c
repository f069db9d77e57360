/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter writes over a ring (StorageProxy.mutateCounter): each mutation goes to a leader, which turns the increments
 * into its shards and writes these at the level. The leader is this node where it is a replica; the coordinator
 * of a leader elsewhere only waits for its answer.
 */
#include <stdlib.h>
#include "cluster/coordinator_internal.h"

struct counter_request;

/* One mutation. */
struct counter_part {
	struct message_callback callback; /* first; the leader is another node */
	struct counter_request *request;
	struct coordinator_write write; /* the leader is this node */
};

struct counter_request {
	struct coordinator *coordinator;
	struct coordinator_write *write;
	atomic_uint left; /* parts, and the call that starts them */
	atomic_flag has_failed; /* err belongs to who set it first */
	struct error err;
	struct counter_part parts[];
};

static void
counter_request_part_done(
    struct counter_request *request, const struct error *err, struct worker *worker)
{
	struct coordinator_write *write = request->write;

	if (err != NULL && !atomic_flag_test_and_set(&request->has_failed))
		request->err = *err;
	if (atomic_fetch_sub_explicit(&request->left, 1, memory_order_acq_rel) != 1)
		return;
	write->worker = worker;
	write->on_done(write, request->err.code == ERROR_NONE ? NULL : &request->err);
	free(request);
}

static void
counter_part_led(struct coordinator_write *write, const struct error *err)
{
	struct counter_part *part = write->context;

	counter_request_part_done(part->request, err, write->worker);
}

static void
counter_part_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct counter_part *part = (struct counter_part *)callback;
	enum consistency level = part->request->write->consistency;
	struct error err;

	if (answer != NULL) {
		counter_request_part_done(part->request, NULL, worker);
		return;
	}
	err.failures = 0;
	err.replica_count = 0;
	if (reason != FAILURE_TIMEOUT)
		coordinator_error_replica(&err, callback->peer, reason);
	coordinator_error_finish(&err,
	    reason == FAILURE_TIMEOUT ? ERROR_WRITE_TIMEOUT : ERROR_WRITE_FAILURE, level, 0, 1);
	err.write_type = write_type_name(WRITE_COUNTER);
	counter_request_part_done(part->request, &err, worker);
}

/* This node leads: under the locks until its own part is visible. write->mutations is one mutation. */
void
counter_request_lead(struct coordinator *coordinator, struct coordinator_write *write)
{
	struct counter_updater *counters = &coordinator->counters;
	struct table_locks_set held = {{0}};
	struct mutation *mutation = arena_alloc(write->arena, sizeof(*mutation));
	struct error err;

	if (mutation == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a counter update");
		write->on_done(write, &err);
		return;
	}
	counter_updater_lock(counters, write->mutations, 1, &held);
	if (counter_updater_make(counters, write->mutations, write->arena, mutation, &err) == 0) {
		write->mutations = mutation;
		write_request_start(coordinator, write);
		counter_updater_unlock(counters, &held);
		return;
	}
	counter_updater_unlock(counters, &held);
	if (err.code < ERROR_SERVER) {
		err.failures = 0;
		err.replica_count = 0;
		coordinator_error_replica(
		    &err, peers_local(coordinator->ring.peers), FAILURE_UNKNOWN);
		coordinator_error_finish(&err, ERROR_WRITE_FAILURE, write->consistency, 0, 1);
		err.write_type = write_type_name(WRITE_COUNTER);
	}
	write->on_done(write, &err);
}

static void
counter_part_send(struct counter_part *part, const struct mutation *mutation, struct peer *leader)
{
	struct coordinator *coordinator = part->request->coordinator;
	struct coordinator_write *write = part->request->write;
	struct message_payload *payload = NULL;
	struct message *message = NULL;
	struct buffer encoded;
	struct error err;

	buffer_init(&encoded);
	buffer_put_u16(&encoded, (uint16_t)write->consistency);
	mutation_encode(mutation, &encoded);
	if (buffer_check(&encoded, &err) == 0)
		payload = message_payload_new(buffer_slice(&encoded));
	buffer_fini(&encoded);
	if (payload != NULL)
		message = message_new(VERB_COUNTER_MUTATION_REQ, payload);
	if (message == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a counter update");
		counter_request_part_done(part->request, &err, write->worker);
		return;
	}
	if (write->trace != NULL)
		message_set_trace(message, write->trace);
	part->callback.on_answer = counter_part_answered;
	messaging_request(coordinator->ring.messaging, leader, message,
	    coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_COUNTER), &part->callback,
	    write->worker);
}

static void
counter_part_start(struct counter_part *part, const struct mutation *mutation, struct peer *leader)
{
	struct coordinator_write *write = part->request->write;

	if (!leader->is_local) {
		counter_part_send(part, mutation, leader);
		return;
	}
	part->write = (struct coordinator_write){.mutations = mutation,
	    .mutation_count = 1,
	    .keyspace = write->keyspace,
	    .consistency = write->consistency,
	    .type = WRITE_COUNTER,
	    .on_done = counter_part_led,
	    .context = part,
	    .arena = write->arena,
	    .scratch = write->scratch,
	    .worker = write->worker,
	    .trace = write->trace};
	counter_request_lead(part->request->coordinator, &part->write);
}

static int
counter_request_find_leaders(struct coordinator *coordinator, const struct coordinator_write *write,
    struct peer **leaders, struct error *err)
{
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	const struct replication *replication = topology_replication(topology, write->keyspace);
	int rc = 0;

	for (uint32_t i = 0; i < write->mutation_count && rc == 0; i++)
		rc = replica_plan_counter_leader(topology, replication, write->mutations[i].token,
		    write->consistency, coordinator->ring.snitch, env_random_u64(coordinator->env),
		    &leaders[i], err);
	topology_release(coordinator->ring.topology, topology);
	return rc;
}

void
counter_request_start(struct coordinator *coordinator, struct coordinator_write *write)
{
	uint32_t count = write->mutation_count;
	const struct mutation *mutations = write->mutations;
	struct counter_request *request =
	    calloc(1, sizeof(*request) + count * sizeof(request->parts[0]));
	struct peer **leaders = arena_calloc(write->arena, count, sizeof(struct peer *));
	struct worker *worker = write->worker;
	struct error err;
	int rc;

	if (request == NULL || leaders == NULL)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a counter update");
	else
		rc = counter_request_find_leaders(coordinator, write, leaders, &err);
	if (rc != 0) {
		free(request);
		write->on_done(write, &err);
		return;
	}
	request->coordinator = coordinator;
	request->write = write;
	atomic_init(&request->left, count + 1);
	atomic_flag_clear(&request->has_failed);
	for (uint32_t i = 0; i < count; i++) {
		request->parts[i].request = request;
		counter_part_start(&request->parts[i], &mutations[i], leaders[i]);
	}
	counter_request_part_done(request, NULL, worker);
}
