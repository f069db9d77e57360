/* SPDX-License-Identifier: Apache-2.0 */
#include "server/node.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "server/cluster.h"

enum {
	NODE_QUEUE_MAX = 64 * 1024,
	NODE_TRACING_QUEUE_MAX = 1000,
	/* A tenth of a request's thread: what is put off a little is not to be felt by clients. */
	NODE_NICE = 10,
};

/* How many threads a stage has. */
enum node_size {
	NODE_SIZE_ONE,
	NODE_SIZE_CORES,
	NODE_SIZE_READS,
	NODE_SIZE_WRITES,
	NODE_SIZE_COUNTERS,
	NODE_SIZE_VIEWS,
	NODE_SIZE_NATIVE,
	NODE_SIZE_AUTH,
	NODE_SIZE_COMPACTORS,
	NODE_SIZE_VALIDATIONS,
	NODE_SIZE_FLUSH,
	NODE_SIZE_HINTS,
};

static const struct {
	const char *name;
	enum node_size size;
	size_t queue_max; /* 0: unbounded; the node's own work is bounded by who makes it */
	int nice; /* stage_set_nice() */
} node_stages[NODE_STAGE_COUNT] = {
    [NODE_STAGE_READ] = {"ReadStage", NODE_SIZE_READS, NODE_QUEUE_MAX, 0},
    [NODE_STAGE_MUTATION] = {"MutationStage", NODE_SIZE_WRITES, NODE_QUEUE_MAX, 0},
    [NODE_STAGE_COUNTER_MUTATION] = {"CounterMutationStage", NODE_SIZE_COUNTERS, NODE_QUEUE_MAX, 0},
    [NODE_STAGE_VIEW_MUTATION] = {"ViewMutationStage", NODE_SIZE_VIEWS, NODE_QUEUE_MAX, 0},
    [NODE_STAGE_NATIVE_TRANSPORT] = {"Native-Transport-Requests", NODE_SIZE_NATIVE, NODE_QUEUE_MAX,
	0},
    [NODE_STAGE_NATIVE_AUTH] = {"Native-Transport-Auth-Requests", NODE_SIZE_AUTH, NODE_QUEUE_MAX,
	0},
    [NODE_STAGE_REQUEST_RESPONSE] = {"RequestResponseStage", NODE_SIZE_CORES, 0, 0},
    [NODE_STAGE_COMPACTION] = {"CompactionExecutor", NODE_SIZE_COMPACTORS, 0, NODE_NICE},
    [NODE_STAGE_VALIDATION] = {"ValidationExecutor", NODE_SIZE_VALIDATIONS, 0, NODE_NICE},
    [NODE_STAGE_MEMTABLE_FLUSH] = {"MemtableFlushWriter", NODE_SIZE_FLUSH, 0, 0},
    [NODE_STAGE_MEMTABLE_POST_FLUSH] = {"MemtablePostFlush", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_MEMTABLE_RECLAIM] = {"MemtableReclaimMemory", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_PER_DISK_FLUSH] = {"PerDiskMemtableFlushWriter_0", NODE_SIZE_FLUSH, 0, 0},
    [NODE_STAGE_GOSSIP] = {"GossipStage", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_ANTI_ENTROPY] = {"AntiEntropyStage", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_MIGRATION] = {"MigrationStage", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_MISC] = {"MiscStage", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_TRACING] = {"TracingStage", NODE_SIZE_ONE, NODE_TRACING_QUEUE_MAX, 0},
    [NODE_STAGE_BATCHLOG] = {"BatchlogTasks", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_INTERNAL_RESPONSE] = {"InternalResponseStage", NODE_SIZE_CORES, 0, 0},
    [NODE_STAGE_IMMEDIATE] = {"ImmediateStage", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_PAXOS_REPAIR] = {"PaxosRepairStage", NODE_SIZE_CORES, 0, 0},
    [NODE_STAGE_HINTS] = {"HintsDispatcher", NODE_SIZE_HINTS, 0, 0},
    [NODE_STAGE_CACHE_CLEANUP] = {"CacheCleanupExecutor", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_PENDING_RANGE] = {"PendingRangeCalculator", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_SECONDARY_INDEX] = {"SecondaryIndexManagement", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_SAMPLER] = {"Sampler", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_VIEW_BUILD] = {"ViewBuildExecutor", NODE_SIZE_ONE, 0, 0},
    [NODE_STAGE_STREAM] = {"StreamStage", NODE_SIZE_CORES, 0, 0},
};

static const struct {
	const char *name;
	size_t offset; /* in struct config */
} node_timeouts[NODE_TIMEOUT_COUNT] = {
    [NODE_TIMEOUT_READ] = {"read", offsetof(struct config, read_request_timeout)},
    [NODE_TIMEOUT_RANGE] = {"range", offsetof(struct config, range_request_timeout)},
    [NODE_TIMEOUT_WRITE] = {"write", offsetof(struct config, write_request_timeout)},
    [NODE_TIMEOUT_COUNTER] = {"counterwrite",
	offsetof(struct config, counter_write_request_timeout)},
    [NODE_TIMEOUT_CAS] = {"cascontention", offsetof(struct config, cas_contention_timeout)},
    [NODE_TIMEOUT_TRUNCATE] = {"truncate", offsetof(struct config, truncate_request_timeout)},
    [NODE_TIMEOUT_MISC] = {"misc", offsetof(struct config, request_timeout)},
    [NODE_TIMEOUT_INTERNODE_CONNECT] = {"internodeconnect",
	offsetof(struct config, internode_tcp_connect_timeout)},
    [NODE_TIMEOUT_INTERNODE_USER] = {"internodeuser",
	offsetof(struct config, internode_tcp_user_timeout)},
    [NODE_TIMEOUT_INTERNODE_STREAM_USER] = {"internodestreaminguser",
	offsetof(struct config, internode_streaming_tcp_user_timeout)},
};

static uint32_t
node_stage_size(const struct config *config, enum node_size size)
{
	switch (size) {
	case NODE_SIZE_ONE:
		return 1;
	case NODE_SIZE_CORES:
		return config->cores;
	case NODE_SIZE_READS:
		return (uint32_t)config->concurrent_reads;
	case NODE_SIZE_WRITES:
		return (uint32_t)config->concurrent_writes;
	case NODE_SIZE_COUNTERS:
		return (uint32_t)config->concurrent_counter_writes;
	case NODE_SIZE_VIEWS:
		return (uint32_t)config->concurrent_materialized_view_writes;
	case NODE_SIZE_NATIVE:
		return (uint32_t)config->native_transport_max_threads;
	case NODE_SIZE_AUTH:
		return (uint32_t)config->native_transport_max_auth_threads;
	case NODE_SIZE_COMPACTORS:
		return (uint32_t)config->concurrent_compactors;
	case NODE_SIZE_VALIDATIONS:
		return (uint32_t)config->concurrent_validations;
	case NODE_SIZE_FLUSH:
		return (uint32_t)config->memtable_flush_writers;
	case NODE_SIZE_HINTS:
		return (uint32_t)config->max_hints_delivery_threads;
	}
	return 1;
}

void
node_init(struct node *node, const struct config *config, struct env *env)
{
	memset(node, 0, sizeof(*node));
	node->config = config;
	node->env = env;
	node->started_ms = (uint64_t)env_wall_us(env) / 1000;
	node->started_ns = env_monotonic_ns(env);
	node->slow_us = (uint64_t)config->slow_query_log_timeout * 1000;
	node->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	metrics_init(&node->metrics, (uint32_t)config->native_transport_io_threads);
	for (int i = 0; i < NODE_STAGE_COUNT; i++) {
		node->stages[i] = stage_new(node_stages[i].name,
		    node_stage_size(config, node_stages[i].size), node_stages[i].queue_max, env);
		if (node_stages[i].nice > 0)
			stage_set_nice(node->stages[i], node_stages[i].nice);
	}
	for (int i = 0; i < NODE_TIMEOUT_COUNT; i++)
		atomic_init(&node->timeouts_ms[i],
		    *(const int64_t *)((const char *)config + node_timeouts[i].offset));
	atomic_init(&node->mode, NODE_STARTING);
	atomic_init(&node->trace_probability, 0.0);
	atomic_init(&node->batchlog_throttle, config->batchlog_replay_throttle);
	atomic_init(&node->default_keyspace_rf, config->default_keyspace_rf);
	atomic_init(&node->is_rate_limited, config->native_transport_rate_limiting_enabled);
	atomic_init(
	    &node->requests_per_second_max, config->native_transport_max_requests_per_second);
}

/* ---- names ------------------------------------------------------------------------------------- */

const char *
node_mode_name(struct node *node)
{
	switch (atomic_load(&node->mode)) {
	case NODE_DRAINING:
		return "DRAINING";
	case NODE_DRAINED:
		return "DRAINED";
	default:
		return node->cluster == NULL || node->cluster->service == NULL
		    ? storage_mode_name(STORAGE_STARTING)
		    : storage_mode_name(storage_service_mode(node->cluster->service));
	}
}

const char *
node_stage_name(enum node_stage stage)
{
	return node_stages[stage].name;
}

int
node_stage_find(const char *name)
{
	for (int i = 0; i < NODE_STAGE_COUNT; i++)
		if (strcasecmp(node_stages[i].name, name) == 0)
			return i;
	return -1;
}

void
node_each_stage(struct node *node, node_stage_fn each, void *argument)
{
	for (int i = 0; i < NODE_STAGE_COUNT; i++) {
		struct stage_stats stats;

		stage_stats(node->stages[i], &stats);
		/* Each request is one of its, as in Cassandra, where all pass through it. */
		if (i == NODE_STAGE_NATIVE_TRANSPORT)
			stats.completed += metrics_direct_requests(&node->metrics);
		each(argument, &stats);
	}
}

const char *
node_timeout_name(enum node_timeout timeout)
{
	return node_timeouts[timeout].name;
}

int
node_timeout_find(const char *name)
{
	for (int i = 0; i < NODE_TIMEOUT_COUNT; i++)
		if (strcasecmp(node_timeouts[i].name, name) == 0)
			return i;
	return -1;
}

void
node_request_stop(struct node *node)
{
	uint64_t one = 1;

	while (write(node->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}
