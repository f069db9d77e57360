/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/coordinator_internal.h"

enum { COORDINATOR_LATENCY_BUCKETS = 90 };

struct coordinator *
coordinator_new(struct store *store, struct env *env)
{
	struct coordinator *coordinator = xzalloc(sizeof(*coordinator));

	coordinator->store = store;
	coordinator->env = env;
	atomic_init(&coordinator->is_alone, true);
	ring_init(&coordinator->alone, "datacenter1");
	counter_updater_init(&coordinator->counters, store, env);
	return coordinator;
}

void
coordinator_free(struct coordinator *coordinator)
{
	struct coordinator_table *table, *next;

	if (coordinator == NULL)
		return;
	for (table = atomic_load(&coordinator->tables); table != NULL; table = next) {
		next = table->next;
		free(table);
	}
	counter_updater_fini(&coordinator->counters);
	free(coordinator);
}

void
coordinator_set_datacenter(struct coordinator *coordinator, const char *datacenter)
{
	ring_init(&coordinator->alone, datacenter);
}

void
coordinator_set_host_id(struct coordinator *coordinator, const struct uuid *host_id)
{
	coordinator->counters.host_id = *host_id;
}

/* Is this node still alone? */
static void
coordinator_topology_changed(struct topology_listener *listener)
{
	struct coordinator *coordinator =
	    (struct coordinator *)((char *)listener - offsetof(struct coordinator, listener));
	const struct topology *topology = topology_acquire(coordinator->ring.topology);
	bool is_alone = true;

	for (uint32_t i = 0; i < topology_member_count(topology); i++)
		is_alone = is_alone && topology_member(topology, i)->peer->is_local;
	topology_release(coordinator->ring.topology, topology);
	atomic_store(&coordinator->is_alone, is_alone);
}

void
coordinator_set_ring(struct coordinator *coordinator, const struct coordinator_ring *ring)
{
	coordinator->ring = *ring;
	coordinator_handle_verbs(coordinator);
	coordinator->listener.changed = coordinator_topology_changed;
	topology_holder_listen(ring->topology, &coordinator->listener);
	coordinator_topology_changed(&coordinator->listener);
}

bool
coordinator_is_alone(const struct coordinator *coordinator)
{
	return atomic_load_explicit(&coordinator->is_alone, memory_order_relaxed);
}

bool
coordinator_is_sole_replica(
    const struct coordinator *coordinator, const struct keyspace_metadata *keyspace, int64_t token)
{
	const struct topology *topology;
	const struct replica_set *replicas;
	bool is_sole;

	if (coordinator_is_alone(coordinator))
		return true;
	topology = topology_acquire(coordinator->ring.topology);
	replicas = replication_replicas(topology_replication(topology, keyspace), token);
	is_sole =
	    replicas->count == 1 && replicas->pending_count == 0 && replicas->peers[0]->is_local;
	topology_release(coordinator->ring.topology, topology);
	return is_sole;
}

/* ---- Errors -------------------------------------------------------------------------------- */

const char *
write_type_name(enum write_type type)
{
	static const char *const names[] = {
	    "SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS"};

	return names[type];
}

static const char *
coordinator_reason_name(enum failure_reason reason)
{
	switch (reason) {
	case FAILURE_READ_TOO_MANY_TOMBSTONES:
		return "READ_TOO_MANY_TOMBSTONES";
	case FAILURE_TIMEOUT:
		return "TIMEOUT";
	case FAILURE_INCOMPATIBLE_SCHEMA:
		return "INCOMPATIBLE_SCHEMA";
	default:
		return "UNKNOWN";
	}
}

enum failure_reason
coordinator_reason(const struct error *err)
{
	if (err->code == ERROR_READ_FAILURE && err->reason == FAILURE_READ_TOO_MANY_TOMBSTONES)
		return FAILURE_READ_TOO_MANY_TOMBSTONES;
	if (err->code == ERROR_INVALID && err->reason == FAILURE_INCOMPATIBLE_SCHEMA)
		return FAILURE_INCOMPATIBLE_SCHEMA;
	if (err->code == ERROR_READ_TIMEOUT)
		return FAILURE_TIMEOUT;
	return FAILURE_UNKNOWN;
}

void
coordinator_error_replica(struct error *err, const struct peer *peer, enum failure_reason reason)
{
	struct error_replica *replica;

	err->failures++;
	if (err->replica_count == ERROR_REPLICAS_MAX)
		return;
	replica = &err->replicas[err->replica_count++];
	memcpy(replica->address, peer->endpoint.address, sizeof(replica->address));
	replica->address_size = peer->endpoint.size;
	replica->port = peer->endpoint.port;
	replica->reason = (uint16_t)reason;
}

static void
coordinator_failure_text(const struct error *err, int32_t received, char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size,
	    "Operation failed - received %d responses and %d failures:", (int)received,
	    (int)err->failures);

	for (uint32_t i = 0; i < err->replica_count && length < size; i++) {
		const struct error_replica *replica = &err->replicas[i];
		struct endpoint endpoint = {.size = replica->address_size, .port = replica->port};
		char name[ENDPOINT_TEXT_SIZE];

		memcpy(endpoint.address, replica->address, sizeof(endpoint.address));
		length += (size_t)snprintf(text + length, size - length, "%s %s from /%s",
		    i > 0 ? "," : "", coordinator_reason_name((enum failure_reason)replica->reason),
		    endpoint_format(&endpoint, name));
	}
}

void
coordinator_error_finish(struct error *err, enum error_code code, enum consistency consistency,
    int32_t received, int32_t required)
{
	struct error_replica replicas[ERROR_REPLICAS_MAX];
	uint16_t replica_count = err->replica_count;
	int32_t failures = err->failures;
	char text[ERROR_TEXT_MAX];

	memcpy(replicas, err->replicas, sizeof(replicas));
	if (code == ERROR_WRITE_FAILURE || code == ERROR_READ_FAILURE)
		coordinator_failure_text(err, received, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "Operation timed out - received only %d responses.",
		    (int)received);
	error_set(err, code, "%s", text);
	memcpy(err->replicas, replicas, sizeof(replicas));
	err->replica_count = replica_count;
	err->reason = replica_count > 0 ? replicas[0].reason : 0;
	err->failures = failures;
	err->consistency = (uint16_t)consistency;
	err->received = received;
	err->required = required;
}

/* ---- Traces -------------------------------------------------------------------------------- */

void
coordinator_trace_apply(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const struct mutation *mutation)
{
	if (!trace_is_on(trace))
		return;
	trace_event(coordinator->ring.cluster, trace, worker, "Appending to commitlog");
	for (uint32_t i = 0; i < mutation->update_count; i++) {
		struct slice name = mutation->updates[i].table->name;

		trace_event(coordinator->ring.cluster, trace, worker, "Adding to %.*s memtable",
		    (int)name.size, (const char *)name.data);
	}
}

void
coordinator_trace_read(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const struct read_command *command)
{
	struct slice name = command->table->name;

	if (trace_is_on(trace))
		trace_event(coordinator->ring.cluster, trace, worker,
		    command->is_range ? "Executing seq scan across SSTables for %.*s"
				      : "Executing single-partition query on %.*s",
		    (int)name.size, (const char *)name.data);
}

void
coordinator_trace_peer(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const char *what, const struct peer *peer)
{
	char name[ENDPOINT_TEXT_SIZE];

	if (trace_is_on(trace))
		trace_event(coordinator->ring.cluster, trace, worker, "%s /%s", what,
		    endpoint_format(&peer->endpoint, name));
}

/* ---- Tables -------------------------------------------------------------------------------- */

static struct coordinator_table *
coordinator_table_of(struct coordinator *coordinator, struct table_store *store)
{
	_Atomic(void *) *slot = table_store_user(store);
	struct coordinator_table *table = atomic_load_explicit(slot, memory_order_acquire);
	void *expected = NULL;

	if (table != NULL)
		return table;
	table = xzalloc(sizeof(*table));
	for (int i = 0; i < COORDINATOR_LATENCY_COUNT; i++)
		histogram_init(&table->latency_us[i], COORDINATOR_LATENCY_BUCKETS);
	histogram_init(&table->partition_answers.answers_us, COORDINATOR_LATENCY_BUCKETS);
	histogram_init(&table->range_answers.answers_us, COORDINATOR_LATENCY_BUCKETS);
	if (!atomic_compare_exchange_strong(slot, &expected, table)) {
		free(table);
		return expected;
	}
	table->next = atomic_load(&coordinator->tables);
	while (!atomic_compare_exchange_weak(&coordinator->tables, &table->next, table))
		;
	return table;
}

struct coordinator_table *
coordinator_table(struct coordinator *coordinator, const struct table_metadata *table)
{
	struct table_store *store = store_table(coordinator->store, table);

	return store == NULL ? NULL : coordinator_table_of(coordinator, store);
}

void
coordinator_record(struct coordinator *coordinator, const struct table_metadata *table,
    enum coordinator_latency which, uint64_t began_ns)
{
	struct coordinator_table *kept = coordinator_table(coordinator, table);

	if (kept != NULL)
		histogram_add(
		    &kept->latency_us[which], (coordinator_now(coordinator) - began_ns) / 1000);
}

const struct histogram *
coordinator_latency(
    struct coordinator *coordinator, struct table_store *table, enum coordinator_latency which)
{
	return &coordinator_table_of(coordinator, table)->latency_us[which];
}

enum { COORDINATOR_RATE_WINDOW_SECONDS = 5 * 60 };

double
coordinator_rate(
    struct coordinator *coordinator, struct table_store *table, enum coordinator_latency which)
{
	return meter_rate(&coordinator_table_of(coordinator, table)->rates[which]);
}

void
coordinator_tick(struct coordinator *coordinator, double seconds)
{
	for (struct coordinator_table *table = atomic_load(&coordinator->tables); table != NULL;
	     table = table->next)
		for (int i = 0; i < COORDINATOR_LATENCY_COUNT; i++)
			meter_tick(&table->rates[i], histogram_count(&table->latency_us[i]),
			    seconds, COORDINATOR_RATE_WINDOW_SECONDS);
}

void
coordinator_stats(const struct coordinator *coordinator, struct coordinator_stats *out)
{
	*out = (struct coordinator_stats){
	    .speculative_retries = atomic_load(&coordinator->speculative_retries),
	    .digest_mismatches = atomic_load(&coordinator->digest_mismatches),
	    .read_repairs = atomic_load(&coordinator->read_repairs),
	    .hints = atomic_load(&coordinator->hints)};
}

/* ---- Writes of this node alone ------------------------------------------------------------- */

/* A request of several mutations: done when the last of them is. */
struct coordinator_write_state {
	struct coordinator_write *write;
	atomic_uint left;
	atomic_flag has_failed; /* err belongs to who set it first */
	struct error err;
	struct store_write *writes;
};

/* The request's error as clients know it: what a replica failed with is a write failure. */
static void
coordinator_write_error(
    const struct coordinator_write *write, const struct error *from, struct error *to)
{
	*to = *from;
	if (from->code == ERROR_INVALID || from->code == ERROR_OVERLOADED ||
	    from->code == ERROR_CDC_WRITE_FAILURE)
		return;
	to->code = ERROR_WRITE_FAILURE;
	to->consistency = (uint16_t)write->consistency;
	to->received = 0;
	to->required = 1;
	to->failures = 1;
	to->write_type = write_type_name(write->type);
}

static void
coordinator_write_one_done(struct store_write *store_write, const struct error *err)
{
	struct coordinator_write_state *state = store_write->context;
	struct coordinator_write *write = state->write;
	struct error failed;

	if (err != NULL && !atomic_flag_test_and_set(&state->has_failed))
		coordinator_write_error(write, err, &state->err);
	/* Acquire and release: the last one sees the error that another thread wrote. */
	if (atomic_fetch_sub_explicit(&state->left, 1, memory_order_acq_rel) != 1)
		return;
	if (state->err.code == ERROR_NONE) {
		write->on_done(write, NULL);
		return;
	}
	failed = state->err;
	write->on_done(write, &failed);
}

static int
coordinator_write_begin(
    struct coordinator_write *write, struct coordinator_write_state **out, struct error *err)
{
	struct coordinator_write_state *state = arena_alloc(write->arena, sizeof(*state));

	if (state == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	state->writes = arena_alloc(write->arena, write->mutation_count * sizeof(*state->writes));
	if (state->writes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a write");
	state->write = write;
	state->err.code = ERROR_NONE;
	atomic_init(&state->left, write->mutation_count);
	atomic_flag_clear(&state->has_failed);
	*out = state;
	return 0;
}

void
coordinator_write_local(struct coordinator *coordinator, struct coordinator_write *write)
{
	struct coordinator_write_state *state = NULL;
	uint32_t count = write->mutation_count;
	struct store *store = coordinator->store;
	struct error err;

	if (coordinator_write_begin(write, &state, &err) != 0) {
		write->on_done(write, &err);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		state->writes[i] = (struct store_write){.mutation = &write->mutations[i],
		    .is_durable = write->keyspace->durable_writes,
		    .leads_counters = write->type == WRITE_COUNTER,
		    .on_done = coordinator_write_one_done,
		    .context = state,
		    .scratch = write->scratch};
	for (uint32_t i = 0; i < count && trace_is_on(write->trace); i++)
		coordinator_trace_apply(
		    coordinator, write->trace, write->worker, &write->mutations[i]);
	/* After the last of them the request may be gone. */
	{
		struct store_write *writes = state->writes;

		for (uint32_t i = 0; i < count; i++)
			store_apply(store, &writes[i]);
	}
}

/* Increments become shards of this node and are written, under the locks of their partitions. */
static void
coordinator_write_counters(struct coordinator *coordinator, struct coordinator_write *write)
{
	struct counter_updater *counters = &coordinator->counters;
	struct table_locks_set held = {{0}};
	struct mutation *mutations;
	struct error err;
	int rc = 0;

	counter_updater_lock(counters, write->mutations, write->mutation_count, &held);
	mutations = arena_calloc(write->arena, write->mutation_count, sizeof(*mutations));
	if (mutations == NULL)
		rc = error_set(&err, ERROR_NO_MEMORY, "no memory for a counter update");
	for (uint32_t i = 0; i < write->mutation_count && rc == 0; i++)
		rc = counter_updater_make(
		    counters, &write->mutations[i], write->arena, &mutations[i], &err);
	if (rc == 0) {
		write->mutations = mutations;
		coordinator_write_local(coordinator, write);
	}
	/* The write is visible now; the request may be gone. */
	counter_updater_unlock(counters, &held);
	if (rc != 0)
		write->on_done(write, &err);
}

void
coordinator_write(struct coordinator *coordinator, struct coordinator_write *write)
{
	struct error err;

	if (write->mutation_count == 0) {
		write->on_done(write, NULL);
		return;
	}
	if (!atomic_load_explicit(&coordinator->is_alone, memory_order_relaxed)) {
		if (write->type == WRITE_COUNTER)
			counter_request_start(coordinator, write);
		else
			write_request_start(coordinator, write);
		return;
	}
	if (ring_check(&coordinator->alone, write->keyspace, write->consistency, &err) != 0) {
		write->on_done(write, &err);
		return;
	}
	if (write->type == WRITE_COUNTER)
		coordinator_write_counters(coordinator, write);
	else
		coordinator_write_local(coordinator, write);
}

/* ---- Reads --------------------------------------------------------------------------------- */

void
coordinator_read_local(struct coordinator *coordinator, struct coordinator_read *read)
{
	struct partition_iterator *source;
	struct error err;
	int rc;

	coordinator_trace_read(coordinator, read->trace, read->worker, read->command);
	rc = read->key_count > 1
	    ? partitions_read_local(coordinator, read, &source, &err)
	    : store_read(coordinator->store, read->command, read->arena, &source, &err);

	if (rc != 0) {
		if (err.code < ERROR_SERVER) {
			err.code = ERROR_READ_FAILURE;
			err.consistency = (uint16_t)read->consistency;
			err.received = 0;
			err.required = 1;
			err.failures = 1;
		}
		read->on_done(read, NULL, &err);
		return;
	}
	read->is_own = true;
	read->on_done(read, source, NULL);
}

void
coordinator_read(struct coordinator *coordinator, struct coordinator_read *read)
{
	struct error err;

	if (!atomic_load_explicit(&coordinator->is_alone, memory_order_relaxed)) {
		read_request_start(coordinator, read);
		return;
	}
	if (ring_check(&coordinator->alone, read->keyspace, read->consistency, &err) != 0) {
		read->on_done(read, NULL, &err);
		return;
	}
	coordinator_read_local(coordinator, read);
}
