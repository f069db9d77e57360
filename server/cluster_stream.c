/* SPDX-License-Identifier: Apache-2.0 */
/* Data that moves between nodes: streams over this node's store, and which ranges a change of the ring moves. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/range_streamer.h"
#include "server/batchlog.h"
#include "server/cluster_internal.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/system_ranges.h"
#include "storage/stream_writer.h"

#define CLUSTER_MS UINT64_C(1000000)

void
cluster_start_streams(struct cluster *cluster)
{
	const struct config *config = cluster->node->config;
	struct streams_options options;

	streams_options_init(&options);
	options.keep_alive_ns = (uint64_t)config->streaming_keep_alive_period * CLUSTER_MS;
	options.entire_sstables = config->stream_entire_sstables;
	cluster->streams =
	    streams_new(cluster->env, cluster->node->store, cluster->topology, &options);
	streams_set_limit(
	    cluster->streams, STREAM_LIMIT, (uint64_t)config->stream_throughput_outbound);
	streams_set_limit(cluster->streams, STREAM_LIMIT_INTER_DC,
	    (uint64_t)config->inter_dc_stream_throughput_outbound);
	streams_set_limit(cluster->streams, STREAM_LIMIT_ENTIRE,
	    (uint64_t)config->entire_sstable_stream_throughput_outbound);
	streams_set_limit(cluster->streams, STREAM_LIMIT_ENTIRE_INTER_DC,
	    (uint64_t)config->entire_sstable_inter_dc_stream_throughput_outbound);
}

/* ---- a movement -------------------------------------------------------------------------------------- */

struct cluster_movement {
	struct cluster *cluster;
	struct service_movement wanted;
	struct repair_paxos paxos;
	struct stream_wait stream;
	struct service_wait hints;
	struct service_wait *wait;
	struct task task;
	bool has_failed;
	struct error err;
};

/* What it moved needs no note any more; where nothing is resumed, what an earlier one left does not either. */
static int
cluster_forget_moved(struct cluster *cluster, enum stream_operation operation, struct error *err)
{
	struct executor *executor = cluster->node->executor;

	if (operation != STREAM_UNBOOTSTRAP &&
	    system_ranges_forget_fetched(executor, NULL, err) != 0)
		return -1;
	return system_ranges_forget_given(executor, operation, err);
}

/* A removed node's ranges are fetched at once or, all of them, again: nothing is noted. */
static bool
cluster_is_resumable(enum stream_operation operation)
{
	return operation != STREAM_RESTORE_REPLICA_COUNT;
}

static void
cluster_movement_session(struct stream_wait *wait, const struct stream_result *result)
{
	struct cluster_movement *movement =
	    (struct cluster_movement *)((char *)wait - offsetof(struct cluster_movement, stream));
	struct error err;

	/* Without the note it is moved twice, which does no harm. */
	if (system_ranges_save(
		movement->cluster->node->executor, movement->wanted.operation, result, &err) != 0)
		log_warn("ranges that were moved could not be noted: %s", err.text);
}

static bool
cluster_has_moved(void *context, const struct keyspace_metadata *keyspace, const struct peer *to,
    struct ring_range range)
{
	return system_ranges_has(context, keyspace->name, to == NULL ? NULL : &to->endpoint, range);
}

/* Back on the gossip stage. */
static void
cluster_movement_over(struct task *task, struct worker *worker)
{
	struct cluster_movement *movement =
	    (struct cluster_movement *)((char *)task - offsetof(struct cluster_movement, task));

	(void)worker;
	movement->wait->on_done(movement->wait, movement->has_failed ? &movement->err : NULL);
	free(movement);
}

static void
cluster_movement_end(struct cluster_movement *movement)
{
	movement->task = (struct task){.run = cluster_movement_over};
	/* A node that stops: nobody waits any more. */
	if (!cluster_submit(movement->cluster->env, CLUSTER_STAGE_GOSSIP, &movement->task))
		free(movement);
}

/* Batches that others gave us to keep: what cannot be written becomes hints, which go next. */
static void
cluster_replay_batches(struct cluster *cluster)
{
	struct error err;

	if (cluster->node->batchlog != NULL &&
	    batchlog_replay_now(cluster->node->batchlog, &err) != 0)
		log_warn("batches of the batchlog go with this node: %s", err.text);
}

/* What others missed is not to be lost with us; but that alone keeps nobody in the ring. */
static void
cluster_movement_hinted(struct service_wait *wait, const struct error *err)
{
	if (err != NULL)
		log_warn("hints could not be given to another node: %s", err->text);
	cluster_movement_end(
	    (struct cluster_movement *)((char *)wait - offsetof(struct cluster_movement, hints)));
}

static void
cluster_movement_done(struct stream_wait *wait, const struct error *err)
{
	struct cluster_movement *movement =
	    (struct cluster_movement *)((char *)wait - offsetof(struct cluster_movement, stream));

	struct error failed;

	movement->has_failed = err != NULL;
	if (err != NULL)
		movement->err = *err;
	else if (cluster_is_resumable(movement->wanted.operation) &&
	    cluster_forget_moved(movement->cluster, movement->wanted.operation, &failed) != 0)
		log_warn("notes of ranges that were moved remain: %s", failed.text);
	if (err == NULL && movement->wanted.operation == STREAM_UNBOOTSTRAP &&
	    movement->cluster->node->config->transfer_hints_on_decommission) {
		/* This waits for others' answers, once in the node's life, on one of the stage's threads. */
		cluster_replay_batches(movement->cluster);
		movement->hints.on_done = cluster_movement_hinted;
		cluster_transfer_hints(movement->cluster, &movement->hints);
		return;
	}
	cluster_movement_end(movement);
}

static int
cluster_movement_plan(struct cluster *cluster, const struct service_movement *movement,
    const struct topology *before, const struct topology *after, struct system_ranges *moved,
    struct stream_job *job, struct error *err)
{
	struct schema *schema = operations_schema(cluster->node->executor);
	struct range_fetch fetch = {.before = before,
	    .after = after,
	    .peers = cluster->peers,
	    .snitch = cluster->snitch,
	    .is_strict = movement->operation != STREAM_RESTORE_REPLICA_COUNT &&
		!movement->is_replacing &&
		cluster->node->config->cassandra__consistent__rangemovement,
	    .is_from_nothing = movement->is_replacing,
	    .has_moved = moved == NULL ? NULL : cluster_has_moved,
	    .context = moved};
	int rc = 0;

	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];

		if (!keyspace_is_distributed(keyspace))
			continue;
		if (movement->operation != STREAM_UNBOOTSTRAP)
			rc = range_streamer_fetch(job, &fetch, keyspace, err);
		if (rc == 0 &&
		    (movement->operation == STREAM_UNBOOTSTRAP ||
			movement->operation == STREAM_RELOCATION))
			range_streamer_give(job, before, after, keyspace, fetch.has_moved, moved);
	}
	schema_unref(schema);
	return rc;
}

/* Notes of an earlier attempt: *out NULL where this is none. */
static int
cluster_movement_notes(struct cluster *cluster, const struct service_movement *wanted,
    struct system_ranges **out, struct error *err)
{
	*out = NULL;
	if (!cluster_is_resumable(wanted->operation))
		return 0;
	if (!wanted->is_resumed)
		return cluster_forget_moved(cluster, wanted->operation, err);
	log_info("Ranges that were moved before are left out");
	return system_ranges_load(cluster->node->executor, wanted->operation, out, err);
}

static bool
cluster_is_pending(struct cluster *cluster)
{
	const struct topology *topology = topology_acquire(cluster->topology);
	const struct member *member = topology_find(topology, peers_local(cluster->peers));
	bool is_pending = member != NULL && member->state != MEMBER_NORMAL;

	topology_release(cluster->topology, topology);
	return is_pending;
}

/* What is where is settled: the data itself. */
static void
cluster_movement_stream(struct cluster_movement *movement)
{
	struct cluster *cluster = movement->cluster;
	const struct service_movement *wanted = &movement->wanted;
	const struct topology *before = topology_acquire(cluster->topology), *after;
	struct topology_holder *holder = ring_after(before, cluster->peers, wanted->peer);
	struct stream_job *job = stream_job_new(cluster->streams, wanted->operation, NULL);
	struct system_ranges *moved = NULL;
	struct error err;

	movement->stream.on_done = cluster_movement_done;
	if (cluster_is_resumable(wanted->operation))
		movement->stream.on_session = cluster_movement_session;
	after = topology_acquire(holder);
	if (cluster_movement_notes(cluster, wanted, &moved, &err) != 0 ||
	    cluster_movement_plan(cluster, wanted, before, after, moved, job, &err) != 0) {
		stream_job_free(job);
		cluster_movement_done(&movement->stream, &err);
	} else {
		stream_job_start(job, &movement->stream);
	}
	system_ranges_free(moved);
	topology_release(holder, after);
	topology_holder_free(holder);
	topology_release(cluster->topology, before);
}

static void
cluster_movement_repaired(struct repair_paxos *paxos, const struct error *err)
{
	struct cluster_movement *movement =
	    (struct cluster_movement *)((char *)paxos - offsetof(struct cluster_movement, paxos));

	if (err == NULL)
		cluster_movement_stream(movement);
	else
		cluster_movement_done(&movement->stream, err);
}

static const char *
cluster_movement_reason(const struct service_movement *wanted)
{
	switch (wanted->operation) {
	case STREAM_BOOTSTRAP:
		return wanted->is_replacing ? "replacing a node" : "bootstrap";
	case STREAM_UNBOOTSTRAP:
		return "decommission";
	case STREAM_RELOCATION:
		return "move";
	default:
		return "removenode";
	}
}

void
cluster_stream(void *context, const struct service_movement *wanted, struct service_wait *wait)
{
	struct cluster *cluster = context;
	struct cluster_movement *movement = xzalloc(sizeof(*movement));
	/*
	 * It takes the place of a dead one under that one's address. To the others it is out of the ring until it is NORMAL: it
	 * and they would never see the same participants. `nodetool repair --paxos-only` is for after it.
	 */
	bool is_hibernating = wanted->operation == STREAM_BOOTSTRAP && wanted->is_replacing &&
	    !cluster_is_pending(cluster);

	movement->cluster = cluster;
	movement->wait = wait;
	movement->wanted = *wanted;
	movement->paxos = (struct repair_paxos){.reason = cluster_movement_reason(wanted),
	    .has_natural =
		wanted->operation == STREAM_UNBOOTSTRAP || wanted->operation == STREAM_RELOCATION,
	    .on_done = cluster_movement_repaired};
	if (is_hibernating)
		log_warn("Paxos is not repaired before a node takes its own address again: run "
			 "nodetool repair --paxos-only when it has joined");
	if (cluster->node->config->paxos_repair_enabled && !is_hibernating)
		repairs_finish_paxos(cluster->repairs, &movement->paxos);
	else
		cluster_movement_stream(movement);
}

/* ---- what the storage service asks -------------------------------------------------------------------- */

static bool
cluster_is_system(const struct keyspace_metadata *keyspace)
{
	return keyspace->is_virtual ||
	    (keyspace->name.size >= 6 && memcmp(keyspace->name.data, "system", 6) == 0);
}

bool
cluster_has_data(void *context)
{
	struct cluster *cluster = context;
	struct schema *schema = operations_schema(cluster->node->executor);
	bool has_data = false;

	for (uint32_t i = 0; i < schema->keyspace_count; i++)
		has_data |= !cluster_is_system(schema->keyspaces[i]) &&
		    schema->keyspaces[i]->table_count > 0;
	schema_unref(schema);
	return has_data;
}

/* The nodes that could hold the keyspace's replicas where this one stands: of the ring, or of its data center. */
static uint32_t
cluster_place_count(const struct topology *topology, bool is_of_datacenter)
{
	const char *local = topology_local_datacenter(topology);
	uint32_t count = 0;

	for (uint32_t i = 0; i < topology_member_count(topology); i++) {
		const struct member *member = topology_member(topology, i);

		count += member->state != MEMBER_JOINING && member->state != MEMBER_REPLACING &&
		    (!is_of_datacenter || strcmp(member->datacenter, local) == 0);
	}
	return count;
}

int
cluster_may_leave(void *context, const struct topology *topology, struct error *err)
{
	struct cluster *cluster = context;
	struct schema *schema = operations_schema(cluster->node->executor);
	int rc = 0;

	for (uint32_t i = 0; i < schema->keyspace_count && rc == 0; i++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[i];
		const struct replication *replication;
		uint32_t nodes;
		int32_t factor;

		if (!keyspace_is_distributed(keyspace) || cluster_is_system(keyspace))
			continue;
		replication = topology_replication(topology, keyspace);
		factor = replication_factor_of(replication, cluster_datacenter(cluster));
		nodes = cluster_place_count(
		    topology, replication_class(replication) == REPLICATION_NETWORK_TOPOLOGY);
		if ((int64_t)nodes <= factor)
			rc = error_set(err, ERROR_INVALID,
			    "Not enough live nodes to maintain replication factor in keyspace "
			    "%.*s (RF = %d, N = %u). Perform a forceful decommission to ignore.",
			    (int)keyspace->name.size, (const char *)keyspace->name.data,
			    (int)factor, (unsigned)nodes);
	}
	schema_unref(schema);
	return rc;
}

/* Does the peer become a replica of a range that it is none of now? */
static bool
cluster_gains(const struct topology *before, const struct topology *after,
    const struct schema *schema, const struct peer *peer)
{
	for (uint32_t i = 0; i < schema->keyspace_count; i++) {
		const struct replication *now, *then;

		if (!keyspace_is_distributed(schema->keyspaces[i]))
			continue;
		now = topology_replication(before, schema->keyspaces[i]);
		then = topology_replication(after, schema->keyspaces[i]);
		for (uint32_t t = 0; t < topology_token_count(before); t++) {
			int64_t token = topology_token(before, t, NULL);
			const struct replica_set *old = replication_replicas(now, token);
			const struct replica_set *new = replication_replicas(then, token);
			bool has = false, gets = false;

			for (uint32_t r = 0; r < old->count; r++)
				has |= old->peers[r] == peer;
			for (uint32_t r = 0; r < new->count; r++)
				gets |= new->peers[r] == peer;
			if (gets && !has)
				return true;
		}
	}
	return false;
}

uint32_t
cluster_gainers(void *context, struct peer *gone, struct peer ***out)
{
	struct cluster *cluster = context;
	struct schema *schema = operations_schema(cluster->node->executor);
	const struct topology *before = topology_acquire(cluster->topology), *after;
	struct topology_holder *holder = ring_after(before, cluster->peers, gone);
	uint32_t count = 0;

	after = topology_acquire(holder);
	*out = xcalloc((size_t)topology_member_count(after) + 1, sizeof(struct peer *));
	for (uint32_t i = 0; i < topology_member_count(after); i++) {
		struct peer *peer = topology_member(after, i)->peer;

		if (cluster_gains(before, after, schema, peer))
			(*out)[count++] = peer;
	}
	topology_release(holder, after);
	topology_holder_free(holder);
	topology_release(cluster->topology, before);
	schema_unref(schema);
	return count;
}
