/* SPDX-License-Identifier: Apache-2.0 */
/* TRUNCATE on all nodes (StorageProxy.truncateBlocking, TruncateResponseHandler). */
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "cluster/coordinator_internal.h"

struct truncate_request;

struct truncate_target {
	struct message_callback callback; /* first */
	struct truncate_request *request;
};

struct truncate_request {
	struct coordinator_truncate *truncate;
	atomic_uint left; /* nodes, this one among them, and the call that starts them */
	atomic_uint answers, failures;
	_Atomic(struct peer *) failed; /* the first that said no; NULL: nobody, or this node */
	struct truncate_target targets[];
};

static void
truncate_request_error(const struct truncate_request *request, struct error *err)
{
	struct peer *failed = atomic_load(&request->failed);
	char name[ENDPOINT_TEXT_SIZE];

	if (failed != NULL)
		error_set(err, ERROR_TRUNCATE,
		    "Error during truncate: Truncate failed on replica /%s",
		    endpoint_format(&failed->endpoint, name));
	else
		error_set(err, ERROR_TRUNCATE,
		    "Error during truncate: Truncate timed out - received only %u responses",
		    atomic_load(&request->answers));
}

static void
truncate_request_unref(struct truncate_request *request, struct worker *worker)
{
	struct coordinator_truncate *truncate = request->truncate;
	struct error err;

	if (atomic_fetch_sub_explicit(&request->left, 1, memory_order_acq_rel) != 1)
		return;
	truncate->worker = worker;
	if (atomic_load(&request->failures) == 0) {
		truncate->on_done(truncate, NULL);
	} else {
		truncate_request_error(request, &err);
		truncate->on_done(truncate, &err);
	}
	free(request);
}

static void
truncate_request_count(struct truncate_request *request, struct peer *peer, bool is_done,
    enum failure_reason reason, struct worker *worker)
{
	struct peer *none = NULL;

	if (is_done) {
		atomic_fetch_add(&request->answers, 1);
	} else {
		if (reason != FAILURE_TIMEOUT)
			atomic_compare_exchange_strong(&request->failed, &none, peer);
		atomic_fetch_add(&request->failures, 1);
	}
	truncate_request_unref(request, worker);
}

static void
truncate_answered(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	truncate_request_count(((struct truncate_target *)callback)->request, callback->peer,
	    answer != NULL, reason, worker);
}

static void
truncate_send(struct coordinator *coordinator, struct truncate_target *target, struct peer *peer)
{
	const struct table_metadata *table = target->request->truncate->table;
	struct message_payload *payload =
	    message_payload_new(slice_of(table->id.bytes, sizeof(table->id.bytes)));
	struct message *message = payload == NULL ? NULL : message_new(VERB_TRUNCATE_REQ, payload);
	struct worker *worker = target->request->truncate->worker;

	if (message == NULL) {
		truncate_request_count(target->request, peer, false, FAILURE_UNKNOWN, worker);
		return;
	}
	if (target->request->truncate->trace != NULL)
		message_set_trace(message, target->request->truncate->trace);
	target->callback.on_answer = truncate_answered;
	messaging_request(coordinator->ring.messaging, peer, message,
	    coordinator_timeout_ns(coordinator, COORDINATOR_TIMEOUT_TRUNCATE), &target->callback,
	    worker);
}

/* The members' peers; all of them must be alive. An xcalloc()ed array, or NULL with *err. */
static struct peer **
truncate_peers(struct coordinator *coordinator, uint32_t *count, struct error *err)
{
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	uint32_t members = topology_member_count(topology);
	struct peer **peers = xcalloc(members + 1, sizeof(struct peer *));
	bool are_all_alive = true;

	*count = members;
	for (uint32_t i = 0; i < members; i++) {
		peers[i] = topology_member(topology, i)->peer;
		are_all_alive = are_all_alive && atomic_load(&peers[i]->is_alive);
	}
	topology_release(coordinator->ring.topology, topology);
	if (are_all_alive)
		return peers;
	error_set(err, ERROR_TRUNCATE, "Error during truncate: Cannot achieve consistency level %s",
	    consistency_name(CONSISTENCY_ALL));
	free(peers);
	return NULL;
}

void
coordinator_truncate(struct coordinator *coordinator, struct coordinator_truncate *truncate)
{
	struct truncate_request *request;
	struct peer **peers, *local = NULL;
	struct worker *worker = truncate->worker;
	struct error err;
	uint32_t count;
	int rc;

	peers = truncate_peers(coordinator, &count, &err);
	if (peers == NULL) {
		truncate->on_done(truncate, &err);
		return;
	}
	request = xzalloc(sizeof(*request) + count * sizeof(request->targets[0]));
	request->truncate = truncate;
	atomic_init(&request->left, count + 1);
	for (uint32_t i = 0; i < count; i++) {
		request->targets[i].request = request;
		if (peers[i]->is_local)
			local = peers[i];
		else
			truncate_send(coordinator, &request->targets[i], peers[i]);
	}
	free(peers);
	if (local != NULL) {
		rc = coordinator->ring.truncate(coordinator->ring.context, truncate->table, &err);
		truncate_request_count(request, local, rc == 0, FAILURE_UNKNOWN, worker);
	}
	truncate_request_unref(request, worker);
}
