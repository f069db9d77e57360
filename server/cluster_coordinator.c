/* SPDX-License-Identifier: Apache-2.0 */
/* What stands over this node's data needs of a real node around it: the coordinator, Paxos, the schema log. */
#include "cluster/coordinator.h"
#include "server/cluster_internal.h"
#include "server/execution.h"
#include "server/node.h"
#include "server/operations.h"
#include "server/schema_sync.h"

static uint64_t
cluster_node_timeout_ns(const struct node *node, enum node_timeout timeout)
{
	return (uint64_t)atomic_load_explicit(&node->timeouts_ms[timeout], memory_order_relaxed) *
	    1000000;
}

static uint64_t
cluster_contention_timeout_ns(void *context)
{
	return cluster_node_timeout_ns(context, NODE_TIMEOUT_CAS);
}

static uint64_t
cluster_write_timeout_ns(void *context)
{
	return cluster_node_timeout_ns(context, NODE_TIMEOUT_WRITE);
}

static uint64_t
cluster_timeout_ns(void *context, enum coordinator_timeout which)
{
	static const enum node_timeout timeouts[] = {
	    [COORDINATOR_TIMEOUT_READ] = NODE_TIMEOUT_READ,
	    [COORDINATOR_TIMEOUT_RANGE] = NODE_TIMEOUT_RANGE,
	    [COORDINATOR_TIMEOUT_WRITE] = NODE_TIMEOUT_WRITE,
	    [COORDINATOR_TIMEOUT_COUNTER] = NODE_TIMEOUT_COUNTER,
	    [COORDINATOR_TIMEOUT_TRUNCATE] = NODE_TIMEOUT_TRUNCATE,
	};

	return cluster_node_timeout_ns(context, timeouts[which]);
}

static struct schema *
cluster_schema(void *context)
{
	struct node *node = context;

	return operations_schema(node->executor);
}

static uint32_t
cluster_tombstone_threshold(void *context)
{
	struct node *node = context;
	int32_t threshold = node->config->tombstone_failure_threshold;

	return threshold < 0 ? 0 : (uint32_t)threshold;
}

static int
cluster_truncate(void *context, const struct table_metadata *table, struct error *err)
{
	struct node *node = context;

	return executor_truncate(node->executor, table, err);
}

int
cluster_set_coordinator(struct cluster *cluster, struct coordinator *coordinator, struct error *err)
{
	struct coordinator_ring ring = {
	    .cluster = cluster->env,
	    .messaging = cluster->messaging,
	    .peers = cluster->peers,
	    .topology = cluster->topology,
	    .snitch = cluster->snitch,
	    .context = cluster->node,
	    .timeout_ns = cluster_timeout_ns,
	    .schema = cluster_schema,
	    .tombstone_failure_threshold = cluster_tombstone_threshold,
	    .truncate = cluster_truncate,
	};
	const char *strategy = cluster->node->config->batchlog_endpoint_strategy;

	if (batchlog_strategy_parse(strategy, &ring.batchlog) != 0)
		return error_set(err, ERROR_CONFIG,
		    "batchlog_endpoint_strategy: '%s' is none of random_remote, prefer_local, "
		    "dynamic_remote and dynamic",
		    strategy);
	if (cluster_open_hints(cluster, err) != 0)
		return -1;
	ring.hints = hints_for_coordinator(cluster->hints);
	coordinator_set_datacenter(coordinator, cluster_datacenter(cluster));
	coordinator_set_ring(coordinator, &ring);
	return 0;
}

/* One of the two has not heard of a change of the ring. */
static void
cluster_on_disagreement(void *context, struct peer *peer)
{
	struct node *node = context;

	if (node->cluster->gossip != NULL)
		gossip_ask(node->cluster->gossip, peer);
}

void
cluster_set_executor(struct cluster *cluster, struct executor *executor)
{
	const struct paxos_options options = {
	    .store = cluster->node->store,
	    .cluster = cluster->env,
	    .messaging = cluster->messaging,
	    .peers = cluster->peers,
	    .topology = cluster->topology,
	    .context = cluster->node,
	    .schema = cluster_schema,
	    .contention_timeout_ns = cluster_contention_timeout_ns,
	    .write_timeout_ns = cluster_write_timeout_ns,
	    .on_disagreement = cluster_on_disagreement,
	    .repair_parallelism = cluster->node->config->paxos_repair_parallelism < 1
		? 1
		: (uint32_t)cluster->node->config->paxos_repair_parallelism,
	    .hints = hints_for_coordinator(cluster->hints),
	};

	cluster->paxos = paxos_new(&options);
	cluster->schema_log = schema_log_new(cluster->env, cluster->messaging, cluster->peers,
	    cluster->topology, &schema_sync_ops, executor);
}

void
cluster_unset_executor(struct cluster *cluster)
{
	schema_log_free(cluster->schema_log);
	paxos_free(cluster->paxos);
	cluster->schema_log = NULL;
	cluster->paxos = NULL;
}
