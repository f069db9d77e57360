/* SPDX-License-Identifier: Apache-2.0 */
/* Data that moves between nodes: streams over this node's store, and what cluster/movement.h asks of the server. */
#include "base/log.h"
#include "cluster/movement.h"
#include "server/batchlog.h"
#include "server/cluster_internal.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/system_ranges.h"

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

/* ---- A movement ---------------------------------------------------------------------------- */

static struct schema *
cluster_schema(void *context)
{
	struct cluster *cluster = context;

	return operations_schema(cluster->node->executor);
}

static int
cluster_save_note(void *context, enum stream_operation operation,
    const struct stream_result *result, struct error *err)
{
	struct cluster *cluster = context;

	return system_ranges_save(cluster->node->executor, operation, result, err);
}

static int
cluster_load_notes(
    void *context, enum stream_operation operation, struct movement_notes **out, struct error *err)
{
	struct cluster *cluster = context;
	struct system_ranges *ranges;

	if (system_ranges_load(cluster->node->executor, operation, &ranges, err) != 0)
		return -1;
	*out = (struct movement_notes *)ranges;
	return 0;
}

static bool
cluster_has_note(const struct movement_notes *notes, struct slice keyspace,
    const struct endpoint *to, struct ring_range range)
{
	return system_ranges_has((const struct system_ranges *)notes, keyspace, to, range);
}

static void
cluster_free_notes(struct movement_notes *notes)
{
	system_ranges_free((struct system_ranges *)notes);
}

static int
cluster_forget_notes(
    void *context, enum stream_operation operation, bool has_fetched, struct error *err)
{
	struct executor *executor = ((struct cluster *)context)->node->executor;

	if (has_fetched && system_ranges_forget_fetched(executor, NULL, err) != 0)
		return -1;
	return system_ranges_forget_given(executor, operation, err);
}

/* Batches that others gave us to keep: what cannot be written becomes hints, which go next. */
static void
cluster_hand_on(void *context, struct service_wait *wait)
{
	struct cluster *cluster = context;
	struct error err;

	if (!cluster->node->config->transfer_hints_on_decommission) {
		wait->on_done(wait, NULL);
		return;
	}
	/* This waits for others' answers, once in the node's life, on one of the stage's threads. */
	if (cluster->node->batchlog != NULL &&
	    batchlog_replay_now(cluster->node->batchlog, &err) != 0)
		log_warn("batches of the batchlog go with this node: %s", err.text);
	movement_hand_on_hints(cluster->hints, cluster->topology, wait);
}

void
cluster_stream(void *context, const struct service_movement *wanted, struct service_wait *wait)
{
	static const struct movement_ops ops = {.schema = cluster_schema,
	    .save_note = cluster_save_note,
	    .load_notes = cluster_load_notes,
	    .has_note = cluster_has_note,
	    .free_notes = cluster_free_notes,
	    .forget_notes = cluster_forget_notes,
	    .hand_on = cluster_hand_on};
	struct cluster *cluster = context;
	const struct config *config = cluster->node->config;
	struct movement_options options = {.env = cluster->env,
	    .peers = cluster->peers,
	    .topology = cluster->topology,
	    .snitch = cluster->snitch,
	    .streams = cluster->streams,
	    .repairs = config->paxos_repair_enabled ? cluster->repairs : NULL,
	    .is_strict = config->cassandra__consistent__rangemovement,
	    .ops = &ops,
	    .context = cluster};

	movement_start(&options, wanted, wait);
}

/* ---- What else the storage service asks ---------------------------------------------------- */

bool
cluster_has_data(void *context)
{
	struct schema *schema = cluster_schema(context);
	bool has_data = movement_has_data(schema);

	schema_unref(schema);
	return has_data;
}

int
cluster_may_leave(void *context, const struct topology *topology, struct error *err)
{
	struct schema *schema = cluster_schema(context);
	int rc = movement_may_leave(topology, schema, err);

	schema_unref(schema);
	return rc;
}

uint32_t
cluster_gainers(void *context, struct peer *gone, struct peer ***out)
{
	struct cluster *cluster = context;
	struct schema *schema = cluster_schema(context);
	const struct topology *topology = topology_acquire(cluster->topology);
	uint32_t count = movement_gainers(topology, cluster->peers, schema, gone, out);

	topology_release(cluster->topology, topology);
	schema_unref(schema);
	return count;
}
