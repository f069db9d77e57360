/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: Prometheus text. Names are Cassandra's metric families in the form that the usual exporters
 * give them (cassandra_clientrequest_latency, cassandra_threadpools_activetasks, ...), so that dashboards
 * keep working.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/env.h"
#include "server/admin_internal.h"
#include "server/internode.h"
#include "server/cluster.h"
#include "server/node.h"
#include "server/operations.h"
#include "storage/store.h"

static void
metrics_head(struct buffer *out, const char *name, const char *type, const char *help)
{
	buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
metrics_one(struct buffer *out, const char *name, const char *type, const char *help, double value)
{
	metrics_head(out, name, type, help);
	buffer_printf(out, "%s %.17g\n", name, value);
}

/* A summary in seconds out of a histogram in µs. */
static void
metrics_summary(
    struct buffer *out, const char *name, const char *labels, const struct histogram *histogram)
{
	static const double quantiles[] = {0.5, 0.75, 0.95, 0.98, 0.99, 0.999};

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		buffer_printf(out, "%s{%s,quantile=\"%g\"} %.9g\n", name, labels, quantiles[i],
		    (double)histogram_quantile(histogram, quantiles[i]) / 1e6);
	buffer_printf(out, "%s_sum{%s} %.9g\n", name, labels,
	    (double)atomic_load_explicit(&histogram->sum, memory_order_relaxed) / 1e6);
	buffer_printf(out, "%s_count{%s} %" PRIu64 "\n", name, labels, histogram_count(histogram));
}

/* ---- stages ----------------------------------------------------------------------------------------- */

struct metrics_stages {
	struct stage_stats stats[NODE_STAGE_COUNT];
	int count;
};

static void
metrics_collect_stage(void *argument, const struct stage_stats *stats)
{
	struct metrics_stages *stages = argument;

	stages->stats[stages->count++] = *stats;
}

static void
metrics_put_stages(struct buffer *out, struct node *node)
{
	static const struct {
		const char *name, *type, *help;
	} families[] = {
	    {"cassandra_threadpools_activetasks", "gauge", "Tasks that run now"},
	    {"cassandra_threadpools_pendingtasks", "gauge", "Tasks that wait in the queue"},
	    {"cassandra_threadpools_completedtasks", "counter", "Tasks that ended"},
	    {"cassandra_threadpools_currentlyblockedtasks", "gauge",
		"Tasks held back because the queue is full"},
	    {"cassandra_threadpools_totalblockedtasks", "counter",
		"Tasks that were held back because the queue was full"},
	    {"cassandra_threadpools_maxpoolsize", "gauge", "Threads the stage may have"},
	    {"cassandra_droppedmessage_dropped", "counter",
		"Tasks that waited longer than their timeout"},
	};
	struct metrics_stages stages = {.count = 0};

	node_each_stage(node, metrics_collect_stage, &stages);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		metrics_head(out, families[i].name, families[i].type, families[i].help);
		for (int j = 0; j < stages.count; j++) {
			const struct stage_stats *stats = &stages.stats[j];
			const uint64_t values[] = {stats->active, stats->pending, stats->completed,
			    stats->blocked_now, stats->blocked_total, stats->threads,
			    stats->dropped};

			buffer_printf(out, "%s{pool=\"%s\"} %" PRIu64 "\n", families[i].name,
			    stats->name, values[i]);
		}
	}
	metrics_head(out, "helenus_stage_queue_wait_seconds", "summary", "Time in the queue");
	for (int j = 0; j < stages.count; j++) {
		char label[80];

		snprintf(label, sizeof(label), "pool=\"%s\"", stages.stats[j].name);
		if (stages.stats[j].completed > 0)
			metrics_summary(out, "helenus_stage_queue_wait_seconds", label,
			    stages.stats[j].queue_wait_us);
	}
	metrics_head(out, "helenus_stage_service_seconds", "summary", "Time that a task takes");
	for (int j = 0; j < stages.count; j++) {
		char label[80];

		snprintf(label, sizeof(label), "pool=\"%s\"", stages.stats[j].name);
		if (stages.stats[j].completed > 0)
			metrics_summary(out, "helenus_stage_service_seconds", label,
			    stages.stats[j].service_us);
	}
}

/* ---- the ring --------------------------------------------------------------------------------------- */

static void
metrics_put_hints(struct buffer *out, struct hints *hints)
{
	struct hints_stats stats;

	hints_stats(hints, &stats);
	metrics_one(out, "cassandra_storage_totalhints", "counter", "Hints that this node has kept",
	    (double)stats.total);
	metrics_one(out, "cassandra_storage_totalhintsinprogress", "gauge",
	    "Hints in memory beyond the room for them", (double)stats.in_progress);
	metrics_one(out, "cassandra_hintsservice_hintssucceeded", "counter",
	    "Hints that were delivered", (double)stats.succeeded);
	metrics_one(out, "cassandra_hintsservice_hintsfailed", "counter",
	    "Hints that the other node could not take", (double)stats.failed);
	metrics_one(out, "cassandra_hintsservice_hintstimedout", "counter",
	    "Hints that the other node did not answer to", (double)stats.timed_out);
	metrics_one(out, "cassandra_hintedhandoffmanager_hints_not_stored", "counter",
	    "Hints that were not kept: past the window, or no room", (double)stats.not_stored);
	metrics_one(out, "helenus_hints_expired_total", "counter",
	    "Hints that were too old to be delivered", (double)stats.expired);
	metrics_one(out, "helenus_hints_corrupt_total", "counter", "Damage found in files of hints",
	    (double)stats.corrupt);
	metrics_one(out, "helenus_hints_applied_total", "counter",
	    "Hints of others that were applied here", (double)stats.applied);
	metrics_one(out, "helenus_hints_sessions", "gauge",
	    "Nodes that hints are being delivered to", (double)stats.sessions);
}

static void
metrics_put_ring(struct buffer *out, struct node *node)
{
	struct gossip *gossip = node->cluster->gossip;
	struct gossip_stats stats;

	metrics_put_hints(out, node->cluster->hints);
	gossip_stats(gossip, &stats);
	metrics_one(out, "cassandra_failuredetector_upendpointcount", "gauge",
	    "Nodes that are alive, this one included", gossip_live_count(gossip) + 1);
	metrics_one(out, "cassandra_failuredetector_downendpointcount", "gauge",
	    "Nodes that are not", gossip_unreachable_count(gossip));
	metrics_one(out, "helenus_gossip_rounds_total", "counter", "Rounds by the clock",
	    (double)stats.rounds);
	metrics_one(out, "helenus_gossip_extra_rounds_total", "counter",
	    "Rounds made at once because there was news", (double)stats.extra_rounds);
	metrics_one(out, "helenus_gossip_refused_total", "counter",
	    "Gossip messages that were not believed",
	    (double)(stats.refused_generations + stats.refused_names));
}

/* ---- clients ------------------------------------------------------------------------------------------ */

static void
metrics_put_requests(struct buffer *out, struct node *node)
{
	static const char *const types[REQUEST_METRIC_COUNT] = {
	    [REQUEST_METRIC_READ] = "Read",
	    [REQUEST_METRIC_WRITE] = "Write",
	    [REQUEST_METRIC_RANGE] = "RangeSlice",
	    [REQUEST_METRIC_CAS_READ] = "CASRead",
	    [REQUEST_METRIC_CAS_WRITE] = "CASWrite",
	    [REQUEST_METRIC_VIEW_WRITE] = "ViewWrite",
	};
	static const struct {
		enum request_outcome outcome;
		const char *name, *help;
	} outcomes[] = {
	    {REQUEST_OUTCOME_TIMEOUT, "cassandra_clientrequest_timeouts",
		"Requests that timed out"},
	    {REQUEST_OUTCOME_UNAVAILABLE, "cassandra_clientrequest_unavailables",
		"Requests that found too few replicas"},
	    {REQUEST_OUTCOME_FAILURE, "cassandra_clientrequest_failures", "Requests that failed"},
	};
	struct histogram *sum = xzalloc(sizeof(*sum));

	metrics_head(out, "cassandra_clientrequest_latency", "summary",
	    "Latency of client requests, seconds");
	for (int i = 0; i < REQUEST_METRIC_COUNT; i++) {
		char label[64];

		if (types[i] == NULL)
			continue;
		metrics_latency(&node->metrics, (enum request_metric)i, sum);
		snprintf(label, sizeof(label), "request_type=\"%s\"", types[i]);
		metrics_summary(out, "cassandra_clientrequest_latency", label, sum);
	}
	free(sum);
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		metrics_head(out, outcomes[i].name, "counter", outcomes[i].help);
		for (int j = 0; j < REQUEST_METRIC_COUNT; j++)
			if (types[j] != NULL)
				buffer_printf(out, "%s{request_type=\"%s\"} %" PRIu64 "\n",
				    outcomes[i].name, types[j],
				    metrics_outcomes(&node->metrics, (enum request_metric)j,
					outcomes[i].outcome));
	}
}

static void
metrics_put_clients(struct buffer *out, struct node *node)
{
	const struct metrics *metrics = &node->metrics;
	struct operations_cql cql;

	operations_cql(node->executor, &cql);
	metrics_one(out, "cassandra_client_connectednativeclients", "gauge", "Connected clients",
	    network_client_count(node->network));
	metrics_one(out, "cassandra_client_connections", "counter", "Connections accepted",
	    (double)atomic_load(&metrics->connections_total));
	metrics_one(out, "cassandra_client_connectionsrefused", "counter",
	    "Connections closed because of a limit",
	    (double)atomic_load(&metrics->connections_refused));
	metrics_one(out, "cassandra_client_requestdiscarded", "counter",
	    "Requests refused because of a limit",
	    (double)atomic_load(&metrics->requests_discarded));
	metrics_one(out, "cassandra_client_pausedconnections", "counter",
	    "Times that a socket was not read because of a limit",
	    (double)atomic_load(&metrics->connections_paused));
	metrics_one(out, "cassandra_client_protocolexception", "counter", "Protocol errors",
	    (double)atomic_load(&metrics->protocol_errors));
	metrics_one(out, "cassandra_client_authsuccess", "counter", "Logins that succeeded",
	    (double)atomic_load(&metrics->auth_success));
	metrics_one(out, "cassandra_client_authfailure", "counter", "Logins that failed",
	    (double)atomic_load(&metrics->auth_failure));
	metrics_one(out, "helenus_network_received_bytes", "counter", "Bytes read from clients",
	    (double)metrics_sum(metrics, offsetof(struct metrics_loop, bytes_read)));
	metrics_one(out, "helenus_network_sent_bytes", "counter", "Bytes written to clients",
	    (double)metrics_sum(metrics, offsetof(struct metrics_loop, bytes_written)));
	metrics_one(out, "cassandra_cql_preparedstatementscount", "gauge", "Prepared statements",
	    (double)cql.prepared);
	metrics_one(out, "cassandra_cql_preparedstatementsevicted", "counter",
	    "Prepared statements that were evicted", (double)cql.evicted);
	metrics_one(out, "cassandra_cql_preparedstatementsexecuted", "counter",
	    "Executions of prepared statements", (double)cql.prepared_executed);
	metrics_one(out, "cassandra_cql_regularstatementsexecuted", "counter",
	    "Executions of other statements", (double)cql.regular_executed);
}

/* ---- the store ---------------------------------------------------------------------------------------------- */

static void
metrics_put_cache(struct buffer *out, const char *name, const struct store_cache_stats *stats)
{
	buffer_printf(out,
	    "cassandra_cache_hits{cache=\"%s\"} %" PRIu64 "\n"
	    "cassandra_cache_requests{cache=\"%s\"} %" PRIu64 "\n"
	    "cassandra_cache_size{cache=\"%s\"} %" PRIu64 "\n"
	    "cassandra_cache_capacity{cache=\"%s\"} %" PRIu64 "\n"
	    "cassandra_cache_entries{cache=\"%s\"} %" PRIu64 "\n",
	    name, stats->hits, name, stats->requests, name, stats->size_bytes, name,
	    stats->capacity_bytes, name, stats->entries);
}

static void
metrics_put_table(struct buffer *out, const struct store_table_stats *stats)
{
	const struct {
		const char *name;
		double value;
	} values[] = {
	    {"cassandra_table_livesstablecount", stats->sstables},
	    {"cassandra_table_livediskspaceused", (double)stats->live_bytes},
	    {"cassandra_table_totaldiskspaceused", (double)stats->total_bytes},
	    {"cassandra_table_snapshotssize", (double)stats->snapshot_bytes},
	    {"cassandra_table_memtablelivedatasize", (double)stats->memtable_bytes},
	    {"cassandra_table_memtablecolumnscount", (double)stats->memtable_rows},
	    {"cassandra_table_memtableswitchcount", (double)stats->memtable_switches},
	    {"cassandra_table_pendingflushes", stats->pending_flushes},
	    {"cassandra_table_pendingcompactions", stats->pending_compactions},
	    {"cassandra_table_estimatedpartitioncount", (double)stats->estimated_partitions},
	    {"cassandra_table_bloomfilterfalsepositives", (double)stats->filter_false_positives},
	    {"cassandra_table_readlatency_count", (double)stats->reads},
	    {"cassandra_table_rangelatency_count", (double)stats->ranges},
	    {"cassandra_table_writelatency_count", (double)stats->writes},
	    {"cassandra_table_bytesflushed", (double)stats->bytes_flushed},
	    {"cassandra_table_compactionbyteswritten", (double)stats->bytes_compacted},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		buffer_printf(out, "%s{keyspace=\"%s\",table=\"%s\"} %.17g\n", values[i].name,
		    stats->keyspace, stats->name, values[i].value);
}

static void
metrics_put_store(struct buffer *out, struct node *node)
{
	struct store_compaction running[1];
	struct store_commitlog_stats log;
	struct store_cache_stats cache;
	uint32_t count, pending = 0;
	struct table_store **tables = store_tables(node->store, &count);
	uint64_t load = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct store_table_stats stats;

		store_table_stats(node->store, tables[i], &stats);
		metrics_put_table(out, &stats);
		load += stats.live_bytes;
		pending += stats.pending_compactions;
	}
	free(tables);
	store_key_cache_stats(node->store, &cache);
	metrics_put_cache(out, "KeyCache", &cache);
	store_row_cache_stats(node->store, &cache);
	metrics_put_cache(out, "RowCache", &cache);
	store_counter_cache_stats(node->store, &cache);
	metrics_put_cache(out, "CounterCache", &cache);
	store_chunk_cache_stats(node->store, &cache);
	metrics_put_cache(out, "ChunkCache", &cache);
	store_commitlog_stats(node->store, &log);
	metrics_one(out, "cassandra_commitlog_totalcommitlogsize", "gauge",
	    "Bytes of the commit log", (double)log.total_bytes);
	metrics_one(out, "cassandra_commitlog_completedtasks", "counter", "Mutations written",
	    (double)log.completed);
	metrics_one(out, "cassandra_commitlog_pendingtasks", "gauge",
	    "Mutations that wait for a sync", (double)log.pending);
	metrics_one(
	    out, "cassandra_compaction_pendingtasks", "gauge", "Compactions to be done", pending);
	metrics_one(out, "cassandra_compaction_activetasks", "gauge", "Compactions that run",
	    store_compactions(node->store, running, 1));
	metrics_one(
	    out, "cassandra_storage_load", "gauge", "Bytes of live data on disk", (double)load);
	metrics_one(out, "helenus_memtable_bytes", "gauge", "Memory of all memtables",
	    (double)store_memtable_bytes(node->store));
}

/* ---- other nodes ---------------------------------------------------------------------------------------- */

struct metrics_links {
	struct buffer *out;
	const char *family; /* the metric's, without the kind */
	uint64_t (*value)(const struct internode_outbound *outbound);
	enum internode_kind kind;
};

static uint64_t
metrics_link_pending(const struct internode_outbound *outbound)
{
	return outbound->pending_count;
}

static uint64_t
metrics_link_completed(const struct internode_outbound *outbound)
{
	return outbound->sent_count;
}

static uint64_t
metrics_link_dropped(const struct internode_outbound *outbound)
{
	return outbound->overload_count + outbound->expired_count + outbound->error_count;
}

static uint64_t
metrics_link_bytes(const struct internode_outbound *outbound)
{
	return outbound->sent_bytes;
}

static void
metrics_put_link(void *argument, const struct internode_outbound *outbound)
{
	const struct metrics_links *links = argument;
	char name[ENDPOINT_TEXT_SIZE];

	if (outbound->kind == links->kind)
		buffer_printf(links->out, "%s{scope=\"%s\"} %" PRIu64 "\n", links->family,
		    endpoint_format(&outbound->peer->endpoint, name), links->value(outbound));
}

/* metrics/InternodeOutboundMetrics, which are still named as ConnectionMetrics were. */
static void
metrics_put_links(struct buffer *out, struct node *node)
{
	static const char *const kinds[INTERNODE_KINDS] = {
	    [INTERNODE_URGENT] = "urgent",
	    [INTERNODE_SMALL] = "small",
	    [INTERNODE_LARGE] = "large",
	};
	static const struct {
		const char *name, *type, *help;
		uint64_t (*value)(const struct internode_outbound *outbound);
	} families[] = {
	    {"pendingtasks", "gauge", "Messages that wait to be sent", metrics_link_pending},
	    {"completedtasks", "counter", "Messages that were sent", metrics_link_completed},
	    {"droppedtasks", "counter", "Messages that were not sent", metrics_link_dropped},
	    {"completedbytes", "counter", "Bytes that were sent", metrics_link_bytes},
	};

	if (node->internode == NULL)
		return;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		for (int kind = 0; kind < INTERNODE_KINDS; kind++) {
			char family[80];
			struct metrics_links links = {.out = out,
			    .family = family,
			    .value = families[i].value,
			    .kind = (enum internode_kind)kind};

			snprintf(family, sizeof(family), "cassandra_connection_%smessage%s",
			    kinds[kind], families[i].name);
			metrics_head(out, family, families[i].type, families[i].help);
			internode_each_outbound(node->internode, metrics_put_link, &links);
		}
	}
}

void
admin_metrics(struct node *node, struct buffer *out)
{
	metrics_put_stages(out, node);
	metrics_put_ring(out, node);
	metrics_put_requests(out, node);
	metrics_put_clients(out, node);
	metrics_put_store(out, node);
	metrics_put_links(out, node);
	metrics_one(out, "cassandra_storage_exceptions", "counter",
	    "Errors that should not have been", (double)atomic_load(&node->metrics.exceptions));
	metrics_one(out, "helenus_uptime_seconds", "gauge", "Time since the start",
	    (double)(env_monotonic_ns(node->env) - node->started_ns) / 1e9);
	metrics_one(out, "process_resident_memory_bytes", "gauge", "Memory that the process holds",
	    (double)admin_resident_bytes());
}
