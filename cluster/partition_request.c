/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of one partition or of several (StorageProxy.read, fetchRows): each is a part of its own, with its own replicas,
 * digests and speculation, and all of them are asked at once. The request ends with the last of them.
 */
#include "cluster/read_request.h"
#include "base/hash.h"

/* ---- From this node's store ---------------------------------------------------------------- */

/* One partition after the other, each read when the one before is done with. */
struct partitions_source {
	struct partition_iterator iterator; /* first */
	struct store *store;
	struct arena *arena;
	const struct slice *keys;
	uint32_t count, at; /* at: of the next */
	struct read_command command; /* of the current one */
	struct partition_iterator *current; /* owned */
};

static int
partitions_source_open(struct partitions_source *source, struct error *err)
{
	struct read_command *command = &source->command;

	if (source->at > 0) {
		command->key = source->keys[source->at];
		command->token = murmur3_token(command->key);
		command->after_position = slice_null;
	}
	source->at++;
	return store_read(source->store, command, source->arena, &source->current, err);
}

static int
partitions_source_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct partitions_source *source = (struct partitions_source *)iterator;

	for (;;) {
		int rc = partition_iterator_next(source->current, out, err);

		if (rc != 0)
			return rc;
		if (source->at == source->count)
			return 0;
		partition_iterator_close(source->current);
		source->current = NULL;
		if (partitions_source_open(source, err) != 0)
			return -1;
	}
}

static void
partitions_source_close(struct partition_iterator *iterator)
{
	partition_iterator_close(((struct partitions_source *)iterator)->current);
}

int
partitions_read_local(struct coordinator *coordinator, const struct coordinator_read *read,
    struct partition_iterator **out, struct error *err)
{
	static const struct partition_iterator_ops ops = {
	    partitions_source_next, partitions_source_close};
	struct partitions_source *source = arena_alloc(read->arena, sizeof(*source));

	if (source == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	*source = (struct partitions_source){.iterator.ops = &ops,
	    .store = coordinator->store,
	    .arena = read->arena,
	    .keys = read->keys,
	    .count = read->key_count,
	    .command = *read->command};
	if (partitions_source_open(source, err) != 0)
		return -1;
	*out = &source->iterator;
	return 0;
}

/* ---- From the ring ------------------------------------------------------------------------- */

static int
partition_plan_make(struct coordinator *coordinator, const struct coordinator_read *read,
    const struct topology *topology, const struct replication *replication, int64_t token,
    struct replica_plan *plan, struct error *err)
{
	return replica_plan_for_read(plan, topology, replication, token, read->consistency,
	    read->command->table->options.speculative_retry.kind == RETRY_ALWAYS,
	    coordinator->ring.snitch, read->arena, err);
}

static bool
partition_plan_is_local(const struct replica_plan *plan)
{
	return plan->contact_count == 1 && plan->replicas[0].peer->is_local;
}

static int
partition_request_fill(struct read_request *request, struct coordinator_read *read,
    const struct replica_plan *plans, uint32_t count, struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		struct read_part *part = &request->parts[i];
		const struct read_command *command = read->command;

		if (i > 0) {
			part->own = *command;
			part->own.key = read->keys[i];
			part->own.token = murmur3_token(part->own.key);
			part->own.after_position = slice_null;
			command = &part->own;
		}
		if (read_part_init(part, command, &plans[i], false, err) != 0)
			return -1;
	}
	return 0;
}

static void
partition_request_begin(struct coordinator *coordinator, struct coordinator_read *read,
    const struct replica_plan *plans, uint32_t count)
{
	struct read_request *request =
	    read_request_new(coordinator, read, COORDINATOR_TIMEOUT_READ);
	uint32_t replicas = 0, calls = 0;
	struct error err;
	int rc = 0;

	for (uint32_t i = 0; i < count; i++) {
		replicas += plans[i].count;
		calls += plans[i].contact_count;
	}
	if (request == NULL || read_request_make_parts(request, count, replicas, calls) != 0)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
	if (rc == 0)
		rc = partition_request_fill(request, read, plans, count, &err);
	if (rc == 0) {
		read_request_begin(request, read->worker);
		return;
	}
	if (request != NULL)
		read_request_unref(request);
	read->on_done(read, NULL, &err);
}

/* The plans of all partitions; *is_here: this node's store has all that is asked for. */
static int
partition_plans_make(struct coordinator *coordinator, const struct coordinator_read *read,
    const struct topology *topology, const struct replication *replication,
    struct replica_plan *plans, uint32_t count, bool *is_here, struct error *err)
{
	*is_here = true;
	for (uint32_t i = 0; i < count; i++) {
		int64_t token = i == 0 ? read->command->token : murmur3_token(read->keys[i]);

		if (partition_plan_make(
			coordinator, read, topology, replication, token, &plans[i], err) != 0)
			return -1;
		*is_here = *is_here && partition_plan_is_local(&plans[i]);
	}
	return 0;
}

void
read_request_start(struct coordinator *coordinator, struct coordinator_read *read)
{
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	const struct replication *replication = topology_replication(topology, read->keyspace);
	uint32_t count = read->key_count > 1 ? read->key_count : 1;
	struct replica_plan one, *plans = &one;
	bool is_here = replication_is_local_strategy(replication);
	struct error err;
	int rc = 0;

	if (!is_here && read->command->is_range) {
		range_request_start(coordinator, read, topology, replication);
		return;
	}
	if (!is_here && count > 1) {
		plans = arena_calloc(read->arena, count, sizeof(*plans));
		if (plans == NULL)
			rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a read");
	}
	if (!is_here && rc == 0)
		rc = partition_plans_make(
		    coordinator, read, topology, replication, plans, count, &is_here, &err);
	if (!is_here && rc == 0)
		partition_request_begin(coordinator, read, plans, count);
	topology_release(coordinator->ring.topology, topology);
	if (rc != 0)
		read->on_done(read, NULL, &err);
	else if (is_here)
		coordinator_read_local(coordinator, read);
}
