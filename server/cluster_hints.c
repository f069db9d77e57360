/* SPDX-License-Identifier: Apache-2.0 */
/* What hints need of a real node around them: settings, gossip, and where they go when the node leaves. */
#include <string.h>
#include <sys/sysinfo.h>
#include "base/log.h"
#include "server/cluster_internal.h"
#include "server/execution.h"
#include "server/node.h"
#include "server/operations.h"

enum { CLUSTER_HINTS_IN_FLIGHT = 128 /* for each core (StorageProxy.maxHintsInProgress) */ };

static uint64_t
cluster_hint_timeout_ns(void *context)
{
	const struct cluster *cluster = context;

	return (uint64_t)atomic_load_explicit(
		   &cluster->node->timeouts_ms[NODE_TIMEOUT_WRITE], memory_order_relaxed) *
	    1000000;
}

static struct schema *
cluster_hint_schema(void *context)
{
	const struct cluster *cluster = context;

	return operations_schema(cluster->node->executor);
}

static uint64_t
cluster_downtime_ns(void *context, struct peer *peer)
{
	const struct cluster *cluster = context;

	/* Its lock is not for every write to a node that is up. */
	return atomic_load_explicit(&peer->is_alive, memory_order_relaxed)
	    ? 0
	    : gossip_downtime(cluster->gossip, peer);
}

static int64_t
cluster_truncated_ms(void *context, const struct table_metadata *table)
{
	const struct cluster *cluster = context;
	const struct table_store *store = store_table(cluster->node->store, table);

	return store == NULL ? 0 : table_store_truncated_ms(store);
}

static void
cluster_set_hints(const struct config *config, struct hints *hints)
{
	struct hints_settings *settings = hints_settings(hints);

	atomic_store(&settings->is_enabled, config->hinted_handoff_enabled);
	atomic_store(&settings->is_window_persistent, config->hint_window_persistent_enabled);
	atomic_store(&settings->cleans_up, config->auto_hints_cleanup_enabled);
	atomic_store(&settings->window_ms, (uint64_t)config->max_hint_window);
	atomic_store(&settings->ages_from_creation, config->use_creation_time_for_hint_ttl);
	atomic_store(&settings->throttle_bytes, (uint64_t)config->hinted_handoff_throttle);
	atomic_store(&settings->file_size_max, (uint64_t)config->max_hints_file_size);
	atomic_store(&settings->host_size_max, (uint64_t)config->max_hints_size_per_host);
	atomic_store(&settings->flush_period_ms, (uint64_t)config->hints_flush_period);
	atomic_store(&settings->delivery_max, (uint32_t)config->max_hints_delivery_threads);
	for (size_t i = 0; i < config->hinted_handoff_disabled_datacenters.count; i++)
		hints_disable_datacenter(
		    hints, config->hinted_handoff_disabled_datacenters.items[i]);
}

int
cluster_open_hints(struct cluster *cluster, struct error *err)
{
	const struct config *config = cluster->node->config;
	const struct hints_options options = {
	    .directory = config->hints_directory,
	    .in_flight_max = CLUSTER_HINTS_IN_FLIGHT * (uint32_t)get_nprocs(),
	    .cluster = cluster->env,
	    .messaging = cluster->messaging,
	    .peers = cluster->peers,
	    .topology = cluster->topology,
	    .store = cluster->node->store,
	    .context = cluster,
	    .timeout_ns = cluster_hint_timeout_ns,
	    .schema = cluster_hint_schema,
	    .downtime_ns = cluster_downtime_ns,
	    .truncated_ms = cluster_truncated_ms,
	};

	if (hints_open(&options, &cluster->hints, err) != 0)
		return -1;
	cluster_set_hints(config, cluster->hints);
	return 0;
}

void
cluster_start_hints(struct cluster *cluster)
{
	struct uuid host_id;

	memcpy(host_id.bytes, cluster->node->host_id, sizeof(host_id.bytes));
	hints_set_host_id(cluster->hints, &host_id);
	hints_start(cluster->hints);
}

void
cluster_drop_hints(struct cluster *cluster, struct peer *peer)
{
	struct slice text = gossip_value(cluster->gossip, peer, STATE_HOST_ID);
	const struct topology *topology;
	const struct member *member;
	struct uuid host_id;
	bool is_elsewhere;

	if (slice_is_null(text) || uuid_parse((const char *)text.data, text.size, &host_id) != 0 ||
	    cluster->hints == NULL)
		return;
	topology = topology_acquire(cluster->topology);
	member = topology_find_host(topology, &host_id);
	/* The same node at another address is still there. */
	is_elsewhere = member != NULL && member->peer != peer;
	topology_release(cluster->topology, topology);
	if (!is_elsewhere)
		hints_truncate(cluster->hints, &host_id);
}
