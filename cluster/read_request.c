/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/read_request.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "storage/read_command_codec.h"

/* Memory of one batch's parts. */
struct read_block {
	struct read_block *next;
	struct read_part *parts;
	uint32_t part_count;
};

/* ---- The request --------------------------------------------------------------------------- */

struct read_request *
read_request_new(struct coordinator *coordinator, struct coordinator_read *read,
    enum coordinator_timeout timeout)
{
	struct read_request *request = zalloc(sizeof(*request));

	if (request == NULL)
		return NULL;
	request->coordinator = coordinator;
	request->read = read;
	request->consistency = read->consistency;
	request->began_ns = coordinator_now(coordinator);
	request->deadline_ns = request->began_ns + coordinator_timeout_ns(coordinator, timeout);
	request->latency = timeout == COORDINATOR_TIMEOUT_RANGE ? COORDINATOR_LATENCY_RANGE
								: COORDINATOR_LATENCY_READ;
	if (read->trace != NULL)
		request->trace = *read->trace;
	atomic_init(&request->references, 1);
	request->is_running = true;
	lock_init(&request->lock, "read_request", RANK_COORDINATOR_REQUEST);
	return request;
}

void
read_request_ref(struct read_request *request)
{
	atomic_fetch_add_explicit(&request->references, 1, memory_order_relaxed);
}

void
read_request_unref(struct read_request *request)
{
	struct read_block *block, *next_block;
	struct read_call *call, *next_call;

	if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) != 1)
		return;
	for (call = request->calls; call != NULL; call = next_call) {
		next_call = call->next;
		message_unref(call->answer);
		if (!call->is_within)
			free(call);
	}
	for (block = request->blocks; block != NULL; block = next_block) {
		next_block = block->next;
		for (uint32_t i = 0; i < block->part_count; i++) {
			message_payload_unref(block->parts[i].data_payload);
			message_payload_unref(block->parts[i].digest_payload);
		}
		free(block);
	}
	lock_fini(&request->lock);
	free(request);
}

int
read_request_make_parts(
    struct read_request *request, uint32_t count, uint32_t replicas, uint32_t calls)
{
	struct read_block *block = zalloc(sizeof(*block) + count * sizeof(*block->parts) +
	    replicas * sizeof(struct read_replica) + calls * sizeof(struct read_call));
	struct read_replica *replica;

	if (block == NULL)
		return -1;
	block->parts = (struct read_part *)(block + 1);
	block->part_count = count;
	block->next = request->blocks;
	request->blocks = block;
	replica = (struct read_replica *)(block->parts + count);
	for (uint32_t i = 0; i < count; i++)
		block->parts[i].request = request;
	/* read_part_init() deals them out in order. */
	block->parts[0].replicas = replica;
	lock_take(&request->lock);
	request->spare_calls = (struct read_call *)(replica + replicas);
	request->spare_count = calls;
	lock_drop(&request->lock);
	request->parts = block->parts;
	request->part_count = request->unsettled = count;
	return 0;
}

static int
read_part_encode(struct read_part *part, bool needs_digest, struct error *err)
{
	struct worker *worker = part->request->read->worker;
	struct buffer local, *out = worker_is_current(worker) ? &worker->scratch : &local;
	/* Our own data costs no message: the others send digests. */
	bool is_digest = needs_digest && part->replicas[0].peer->is_local;
	struct message_payload **payload = is_digest ? &part->digest_payload : &part->data_payload;
	int rc;

	part->needs_digest = needs_digest;
	buffer_init(&local);
	buffer_clear(out);
	buffer_put_u8(out, is_digest ? READ_KIND_DIGEST : READ_KIND_DATA);
	read_command_encode(part->command, out);
	rc = buffer_check(out, err);
	if (rc == 0) {
		*payload = message_payload_new(buffer_slice(out));
		if (*payload == NULL)
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	}
	buffer_fini(&local);
	return rc;
}

struct message_payload *
read_part_payload(struct read_part *part, bool is_digest)
{
	struct message_payload **payload, *other, *out;

	lock_take(&part->request->lock);
	payload = is_digest ? &part->digest_payload : &part->data_payload;
	other = is_digest ? part->data_payload : part->digest_payload;
	if (*payload == NULL) {
		*payload = message_payload_new(slice_of(other->data, other->size));
		if (*payload != NULL)
			(*payload)->data[0] = is_digest ? READ_KIND_DIGEST : READ_KIND_DATA;
	}
	out = *payload;
	if (out != NULL)
		message_payload_ref(out);
	lock_drop(&part->request->lock);
	return out;
}

int
read_part_init(struct read_part *part, const struct read_command *command,
    const struct replica_plan *plan, bool is_range, struct error *err)
{
	struct read_request *request = part->request;
	struct coordinator_table *kept;

	part->command = command;
	part->block_for = plan->block_for;
	part->replica_count = plan->count;
	part->contact_count = plan->contact_count;
	part->is_range = is_range;
	part->phase = is_range ? READ_DATA : READ_FIRST;
	part->may_contact_more = command->table->options.speculative_retry.kind != RETRY_NEVER;
	kept =
	    part->may_contact_more ? coordinator_table(request->coordinator, command->table) : NULL;
	if (kept != NULL)
		part->latencies = is_range ? &kept->range_answers : &kept->partition_answers;
	for (uint32_t i = 0; i < plan->count; i++)
		part->replicas[i].peer = plan->replicas[i].peer;
	if (part != request->parts + request->part_count - 1)
		(part + 1)->replicas = part->replicas + part->replica_count;
	return read_part_encode(part, !is_range && plan->count > 1, err);
}

/* ---- The end ------------------------------------------------------------------------------- */

static void
read_request_end(struct read_request *request, struct partition_iterator *source,
    const struct error *err, struct worker *worker)
{
	struct coordinator_read *read = request->read;

	request->read = NULL;
	range_scan_free(request);
	/* A few timeouts would lift the percentile beyond the timeout, and end all speculation. */
	if (err == NULL)
		coordinator_record(request->coordinator, read->command->table, request->latency,
		    request->began_ns);
	read->worker = worker;
	read->on_done(read, source, err);
}

void
read_request_fail(struct read_request *request, const struct error *err, struct worker *worker)
{
	read_request_end(request, NULL, err, worker);
}

/* The parts' sources one after the other; keeps the request, and so the answers' bytes. */
struct read_source {
	struct partition_iterator iterator; /* first */
	struct read_request *request;
	uint32_t count, at;
	struct partition_iterator **sources;
};

static int
read_source_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct read_source *source = (struct read_source *)iterator;

	for (; source->at < source->count; source->at++) {
		int rc = partition_iterator_next(source->sources[source->at], out, err);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static void
read_source_close(struct partition_iterator *iterator)
{
	struct read_source *source = (struct read_source *)iterator;
	struct read_request *request = source->request;

	for (uint32_t i = 0; i < source->count; i++)
		partition_iterator_close(source->sources[i]);
	read_request_unref(request);
}

void
read_request_succeed(struct read_request *request, struct partition_iterator **sources,
    uint32_t count, struct worker *worker)
{
	static const struct partition_iterator_ops ops = {read_source_next, read_source_close};
	struct read_source *source = arena_alloc(request->read->arena, sizeof(*source));
	struct error err;

	if (source == NULL) {
		for (uint32_t i = 0; i < count; i++)
			partition_iterator_close(sources[i]);
		error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
		read_request_fail(request, &err, worker);
		return;
	}
	*source = (struct read_source){
	    .iterator.ops = &ops, .request = request, .count = count, .sources = sources};
	read_request_ref(request);
	read_request_end(request, &source->iterator, NULL, worker);
}

int
read_part_source(struct read_part *part, struct partition_iterator **out, struct error *err)
{
	if (part->resolver == NULL)
		return read_response_partitions(
		    &part->response, part->request->read->arena, out, err);
	*out = data_resolver_partitions(part->resolver);
	return *out != NULL ? 0 : error_set(err, ERROR_NO_MEMORY, "no memory for a read");
}

/* Too few answers: what came, and why the others did not. */
static void
read_part_fail(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	enum error_code code = ERROR_READ_TIMEOUT;
	struct error err;
	int32_t received = 0;
	bool has_data;

	err.failures = 0;
	err.replica_count = 0;
	lock_take(&request->lock);
	has_data = part->has_data;
	for (uint32_t i = 0; i < part->contact_count; i++) {
		const struct read_replica *replica = &part->replicas[i];
		const struct read_call *call =
		    replica->data != NULL ? replica->data : replica->first;

		if (call == NULL)
			continue;
		received += call->state == READ_CALL_ANSWERED;
		if (call->state != READ_CALL_FAILED)
			continue;
		if (call->reason != FAILURE_TIMEOUT)
			code = ERROR_READ_FAILURE;
		coordinator_error_replica(&err, replica->peer, (enum failure_reason)call->reason);
	}
	lock_drop(&request->lock);
	if (trace_is_on(&request->trace))
		trace_event(request->coordinator->ring.cluster, &request->trace, worker,
		    "%s; received %d of %d responses%s",
		    code == ERROR_READ_FAILURE ? "Failed" : "Timed out", (int)received,
		    (int)part->block_for, has_data ? "" : " (only digests)");
	if (received >= part->block_for && has_data)
		received = part->block_for - 1;
	coordinator_error_finish(&err, code, request->consistency, received, part->block_for);
	err.data_present = has_data;
	read_request_fail(request, &err, worker);
}

/* A step after the first answers went wrong. */
static void
read_part_fail_late(struct read_part *part, const struct error *cause, struct worker *worker)
{
	struct read_request *request = part->request;
	struct error err = *cause;

	if (err.code < ERROR_SERVER || err.code == ERROR_PROTOCOL) {
		err.failures = 1;
		err.replica_count = 0;
		coordinator_error_finish(&err, ERROR_READ_FAILURE, request->consistency,
		    part->block_for - 1, part->block_for);
		err.data_present = true;
	}
	read_request_fail(request, &err, worker);
}

static void
read_part_settle(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	struct partition_iterator **sources;
	uint32_t count = 0;
	struct error err;
	int rc = 0;

	lock_take(&request->lock);
	part->phase = READ_SETTLED;
	lock_drop(&request->lock);
	if (--request->unsettled > 0)
		return;
	if (request->scan != NULL) {
		range_request_settled(request, worker);
		return;
	}
	sources = arena_calloc(request->read->arena, request->part_count, sizeof(*sources));
	if (sources == NULL)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
	for (; rc == 0 && count < request->part_count; count++)
		rc = read_part_source(&request->parts[count], &sources[count], &err);
	if (rc == 0) {
		read_request_succeed(request, sources, count, worker);
		return;
	}
	for (uint32_t i = 0; i + 1 < count; i++)
		partition_iterator_close(sources[i]);
	read_part_fail_late(part, &err, worker);
}

/* ---- Repairs ------------------------------------------------------------------------------- */

static void
read_repair_applied(struct store_write *write, const struct error *err)
{
	read_call_ended(write->context, err == NULL, FAILURE_UNKNOWN, NULL);
}

static void
read_call_repair(struct read_call *call, const struct mutation *mutation, struct worker *worker)
{
	struct message_payload *payload = NULL;
	struct buffer encoded;
	struct error err;

	if (call->part->replicas[call->replica].peer->is_local) {
		/* Awaited whatever the level needs: the mutation lies in the caller's arena. */
		call->write = (struct store_write){.mutation = mutation,
		    .is_durable = true,
		    .on_done = read_repair_applied,
		    .context = call};
		read_request_ref(call->part->request);
		store_apply(call->part->request->coordinator->store, &call->write);
		return;
	}
	buffer_init(&encoded);
	mutation_encode(mutation, &encoded);
	if (buffer_check(&encoded, &err) == 0)
		payload = message_payload_new(buffer_slice(&encoded));
	buffer_fini(&encoded);
	read_call_send(call, VERB_READ_REPAIR_REQ, payload,
	    coordinator_now(call->part->request->coordinator), worker);
}

static void
read_part_send_repairs(struct read_part *part, uint32_t from, uint32_t to, struct worker *worker)
{
	uint32_t count;
	const struct mutation *mutations = data_resolver_repairs(part->resolver, from, &count);

	for (uint32_t i = 0; i < count; i++)
		read_call_repair(read_call_new(part, to, READ_CALL_REPAIR), &mutations[i], worker);
}

/* Is there one more who may be repaired in place of another? EACH_QUORUM's others may be of other data centers. */
static bool
read_part_may_repair_more_locked(const struct read_part *part)
{
	uint32_t index = part->contact_count;

	return index < part->replica_count &&
	    part->request->consistency != CONSISTENCY_EACH_QUORUM &&
	    part->command->table->options.additional_write_policy.kind != RETRY_NEVER;
}

/*
 * What is not acknowledged goes to a replica that was not asked; once it has all of that, it counts in place of one that lacks it
 * (BlockingPartitionRepair.maybeSendAdditionalWrites). False: there is none.
 */
static bool
read_part_repair_more(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	uint32_t index, count, total = 0;

	lock_take(&request->lock);
	index = part->contact_count;
	if (!read_part_may_repair_more_locked(part)) {
		lock_drop(&request->lock);
		return false;
	}
	for (uint32_t i = 0; i < index; i++) {
		struct read_replica *replica = &part->replicas[i];

		replica->is_behind = replica->repairs_left > 0;
		(void)data_resolver_repairs(part->resolver, i, &count);
		total += replica->is_behind ? count : 0;
	}
	part->contact_count++;
	part->replicas[index].repairs_left = part->replicas[index].repairs_unended = total;
	part->is_repairing_here |= total > 0 && part->replicas[index].peer->is_local;
	part->participants++;
	part->repairing++;
	part->waiting += (int32_t)total;
	lock_drop(&request->lock);
	for (uint32_t i = 0; i < index; i++) {
		if (part->replicas[i].is_behind)
			read_part_send_repairs(part, i, index, worker);
	}
	return true;
}

/* Send what the replicas lack, ours too. True: something was sent. */
static bool
read_part_repair(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	uint32_t total = 0, count, repairing = 0;
	bool may_repair_more;

	if (!part->command->table->options.is_read_repair_blocking)
		return false;
	for (uint32_t i = 0; i < part->replica_count; i++) {
		(void)data_resolver_repairs(part->resolver, i, &count);
		part->replicas[i].repairs_left = part->replicas[i].repairs_unended = count;
		if (count > 0 && part->replicas[i].peer->is_local)
			part->is_repairing_here = true;
		total += count;
		repairing += count > 0;
	}
	if (total == 0)
		return false;
	lock_take(&request->lock);
	part->phase = READ_REPAIR;
	part->waiting = (int32_t)total;
	part->answered = 0;
	part->repairing = repairing;
	(void)read_part_wake_locked(part);
	lock_drop(&request->lock);
	atomic_fetch_add_explicit(&request->coordinator->read_repairs, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < part->replica_count; i++)
		read_part_send_repairs(part, i, i, worker);
	lock_take(&request->lock);
	may_repair_more = read_part_may_repair_more_locked(part);
	lock_drop(&request->lock);
	if (may_repair_more)
		read_part_start_repair_timer(part);
	return true;
}

/* Enough of the repairs are acknowledged, or they are late, or none of them is awaited any more. */
static void
read_part_repaired(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	struct error err;
	bool is_enough, is_over;

	lock_take(&request->lock);
	is_enough = !part->is_repairing_here &&
	    part->participants - part->repairing >= (uint32_t)part->block_for;
	is_over = part->waiting == 0;
	part->is_repair_late = false;
	lock_drop(&request->lock);
	if (!is_enough && (read_part_repair_more(part, worker) || !is_over))
		return;
	read_part_stop_timer(part);
	if (is_enough) {
		read_part_settle(part, worker);
		return;
	}
	err.failures = 0;
	err.replica_count = 0;
	coordinator_error_finish(
	    &err, ERROR_READ_TIMEOUT, request->consistency, part->block_for - 1, part->block_for);
	err.data_present = true;
	read_request_fail(request, &err, worker);
}

/* ---- Merging ------------------------------------------------------------------------------- */

static void
read_call_ask_more(struct read_call *call, struct worker *worker)
{
	struct message_payload *payload = NULL;
	struct buffer encoded;
	struct error err;

	if (call->part->replicas[call->replica].peer->is_local) {
		read_call_run_here(call, call->command, worker);
		return;
	}
	buffer_init(&encoded);
	buffer_put_u8(&encoded, READ_KIND_DATA);
	read_command_encode(call->command, &encoded);
	if (buffer_check(&encoded, &err) == 0)
		payload = message_payload_new(buffer_slice(&encoded));
	buffer_fini(&encoded);
	read_call_send(call, call->command->is_range ? VERB_RANGE_REQ : VERB_READ_REQ, payload,
	    coordinator_now(call->part->request->coordinator), worker);
}

static int
read_part_ask(struct read_part *part, struct worker *worker, struct error *err)
{
	struct read_request *request = part->request;
	uint32_t count = data_resolver_request_count(part->resolver);
	struct read_call **calls =
	    arena_calloc(request->read->arena, count, sizeof(struct read_call *));

	if (calls == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	for (uint32_t i = 0; i < count; i++) {
		const struct data_resolver_request *asked =
		    data_resolver_request(part->resolver, i);

		calls[i] = read_call_new(part, asked->replica, READ_CALL_ASK);
		calls[i]->command = asked->command;
		calls[i]->index = i;
	}
	lock_take(&request->lock);
	part->phase = READ_ASK;
	part->waiting = (int32_t)count;
	part->answered = 0;
	lock_drop(&request->lock);
	for (uint32_t i = 0; i < count; i++)
		read_call_ask_more(calls[i], worker);
	return 0;
}

static void
read_part_merge(struct read_part *part, struct worker *worker)
{
	struct error err;

	switch (data_resolver_run(part->resolver, &err)) {
	case DATA_RESOLVER_DONE:
		if (!read_part_repair(part, worker))
			read_part_settle(part, worker);
		return;
	case DATA_RESOLVER_ASK:
		if (read_part_ask(part, worker, &err) == 0)
			return;
		break;
	case DATA_RESOLVER_FAILED:
		break;
	}
	read_part_fail_late(part, &err, worker);
}

/* The calls of a kind that were answered in the phase that ended; the lists of calls are the lock's. */
static void
read_part_asked(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	uint32_t count = data_resolver_request_count(part->resolver), answered = 0;
	struct read_call *call, *failed = NULL;
	struct error err;

	lock_take(&request->lock);
	call = request->calls;
	lock_drop(&request->lock);
	/* Each round's calls stand in front of the rounds before, and only runners put them there; a speculation's
	 * may stand between. */
	for (; call != NULL && answered < count; call = call->next) {
		if (call->part != part || call->kind != READ_CALL_ASK)
			continue;
		answered++;
		if (call->state != READ_CALL_ANSWERED) {
			failed = call;
			continue;
		}
		if (data_resolver_answer(
			part->resolver, call->index, read_call_bytes(call), &err) != 0) {
			read_part_fail_late(part, &err, worker);
			return;
		}
	}
	if (failed == NULL) {
		read_part_merge(part, worker);
		return;
	}
	err.failures = 0;
	err.replica_count = 0;
	coordinator_error_replica(
	    &err, part->replicas[failed->replica].peer, (enum failure_reason)failed->reason);
	coordinator_error_finish(&err,
	    failed->reason == FAILURE_TIMEOUT ? ERROR_READ_TIMEOUT : ERROR_READ_FAILURE,
	    request->consistency, part->block_for - 1, part->block_for);
	err.data_present = true;
	read_request_fail(request, &err, worker);
}

/* Data from as many as the level needs. */
static void
read_part_resolve(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	struct read_call *only = NULL;
	struct error err;
	int rc = 0;

	part->participants = 0;
	part->resolver =
	    data_resolver_new(part->command, part->replica_count, request->read->arena);
	if (part->resolver == NULL)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
	for (uint32_t i = 0; i < part->replica_count && rc == 0; i++) {
		struct read_call *call;
		bool is_answered;

		lock_take(&request->lock);
		call = part->replicas[i].data;
		is_answered = call != NULL && call->state == READ_CALL_ANSWERED;
		lock_drop(&request->lock);
		if (!is_answered)
			continue;
		part->participants++;
		only = call;
		rc = data_resolver_add(part->resolver, i, read_call_bytes(call), &err);
	}
	if (rc == 0 && part->participants == 1) {
		/* Nothing to merge with. */
		part->resolver = NULL;
		rc = read_response_decode(read_call_bytes(only), part->command,
		    request->read->arena, &part->response, &err);
		if (rc == 0) {
			read_part_settle(part, worker);
			return;
		}
	}
	if (rc != 0)
		read_part_fail_late(part, &err, worker);
	else
		read_part_merge(part, worker);
}

/* Digests differ: data from all that were asked. */
static void
read_part_fetch_all(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	uint32_t count, here = UINT32_MAX;

	lock_take(&request->lock);
	count = part->contact_count;
	lock_drop(&request->lock);
	for (uint32_t i = 0; i < count; i++) {
		struct read_replica *replica = &part->replicas[i];
		bool has_data;

		lock_take(&request->lock);
		has_data = replica->first != NULL && replica->first->kind == READ_CALL_DATA &&
		    replica->first->state == READ_CALL_ANSWERED;
		lock_drop(&request->lock);
		replica->data = has_data ? replica->first : read_call_new(part, i, READ_CALL_DATA);
	}
	lock_take(&request->lock);
	part->phase = READ_DATA;
	part->contact_count = count;
	part->waiting = part->answered = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (part->replicas[i].data == part->replicas[i].first)
			part->answered++;
		else
			part->waiting++;
	}
	/* All may be here already: two that sent data differ. */
	(void)read_part_wake_locked(part);
	lock_drop(&request->lock);
	for (uint32_t i = 0; i < count; i++) {
		struct read_replica *replica = &part->replicas[i];

		if (replica->data == replica->first)
			continue;
		if (replica->peer->is_local)
			here = i;
		else
			read_call_ask(replica->data, coordinator_now(request->coordinator), worker);
	}
	read_part_start_timer(part);
	if (here != UINT32_MAX)
		read_call_run_here(part->replicas[here].data, part->command, worker);
}

/* ---- Digests ------------------------------------------------------------------------------- */

static int
read_call_digest(struct read_part *part, struct read_call *call, struct read_digest *out,
    struct read_response *response, struct error *err)
{
	struct arena *arena = part->request->read->arena;

	if (read_response_decode(read_call_bytes(call), part->command, arena, response, err) != 0)
		return -1;
	if (response->is_digest)
		*out = response->digest;
	else if (call->answer == NULL)
		*out = call->digest;
	else
		return read_response_digest(response, arena, out, err);
	return 0;
}

/* 1: all that answered have the same; 0: they differ; -1. The data is in part->response. */
static int
read_part_compare(struct read_part *part, struct error *err)
{
	struct read_request *request = part->request;
	struct read_digest first, other;
	bool has_first = false, has_data = false;

	for (uint32_t i = 0; i < part->replica_count; i++) {
		struct read_response response;
		struct read_call *call;
		bool is_answered;

		lock_take(&request->lock);
		call = part->replicas[i].first;
		is_answered = call != NULL && call->state == READ_CALL_ANSWERED;
		lock_drop(&request->lock);
		if (!is_answered)
			continue;
		if (part->block_for == 1 && call->kind == READ_CALL_DATA) {
			/* Whoever came first. */
			return read_response_decode(read_call_bytes(call), part->command,
				   request->read->arena, &part->response, err) == 0
			    ? 1
			    : -1;
		}
		if (read_call_digest(part, call, has_first ? &other : &first, &response, err) != 0)
			return -1;
		if (has_first && !read_digest_equal(&first, &other))
			return 0;
		has_first = true;
		if (!response.is_digest && !has_data) {
			part->response = response;
			has_data = true;
		}
	}
	return has_data ? 1 : error_set(err, ERROR_PROTOCOL, "a digest was sent in place of data");
}

/* Those that were asked cannot make the level: another replica may, while there is time. */
static void
read_part_fall_short(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;

	if (part->may_contact_more && request->consistency != CONSISTENCY_EACH_QUORUM &&
	    coordinator_now(request->coordinator) < request->deadline_ns &&
	    read_part_contact_more(part, false, worker))
		return;
	read_part_stop_timer(part);
	read_part_fail(part, worker);
}

static void
read_part_check(struct read_part *part, struct worker *worker)
{
	struct read_request *request = part->request;
	struct error err;
	bool is_enough;
	int rc;

	lock_take(&request->lock);
	is_enough = read_part_has_enough_locked(part);
	lock_drop(&request->lock);
	if (!is_enough) {
		read_part_fall_short(part, worker);
		return;
	}
	read_part_stop_timer(part);
	rc = read_part_compare(part, &err);
	if (rc < 0) {
		read_part_fail_late(part, &err, worker);
	} else if (rc > 0) {
		read_part_settle(part, worker);
	} else {
		atomic_fetch_add_explicit(
		    &request->coordinator->digest_mismatches, 1, memory_order_relaxed);
		if (trace_is_on(&request->trace))
			trace_event(request->coordinator->ring.cluster, &request->trace, worker,
			    "Digest mismatch: the answers of replicas differ");
		read_part_fetch_all(part, worker);
	}
}

/* ---- Running ------------------------------------------------------------------------------- */

static void
read_part_go_on(struct read_part *part, struct worker *worker)
{
	bool is_enough;

	switch ((enum read_phase)part->phase) {
	case READ_FIRST:
		read_part_check(part, worker);
		break;
	case READ_DATA:
		lock_take(&part->request->lock);
		is_enough = read_part_has_enough_locked(part);
		lock_drop(&part->request->lock);
		if (!is_enough) {
			read_part_fall_short(part, worker);
			break;
		}
		read_part_stop_timer(part);
		read_part_resolve(part, worker);
		break;
	case READ_ASK:
		read_part_asked(part, worker);
		break;
	case READ_REPAIR:
		read_part_repaired(part, worker);
		break;
	case READ_SETTLED:
		break;
	}
}

void
read_request_run(struct read_request *request, struct worker *worker)
{
	for (;;) {
		struct read_part *part;

		lock_take(&request->lock);
		part = request->ready_first;
		if (part == NULL) {
			request->is_running = false;
			lock_drop(&request->lock);
			break;
		}
		request->ready_first = part->next_ready;
		if (request->ready_first == NULL)
			request->ready_last = NULL;
		part->is_queued = false;
		lock_drop(&request->lock);
		if (request->read != NULL)
			read_part_go_on(part, worker);
	}
	read_request_unref(request);
}

void
read_request_begin(struct read_request *request, struct worker *worker)
{
	read_request_send(request, request->began_ns, worker);
	read_request_run(request, worker);
}
