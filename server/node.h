/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_NODE_H
#define HELENUS_SERVER_NODE_H

/*
 * One node: the parts that main puts together and that the virtual tables, the admin port and
 * nodetool ask about. Parts are made in the order of the fields and torn down backwards. Two nodes
 * fit in one process.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/log.h"
#include "server/config.h"
#include "server/dropped.h"
#include "server/metrics.h"
#include "server/network.h"
#include "server/stage.h"
#include "storage/store.h"

/* The Cassandra whose behaviour we match: release_version of system.local. */
#define NODE_RELEASE_VERSION "4.1.8"

struct cluster;
struct env;
struct store;
struct coordinator;
struct executor;
struct internode;
struct admin;
struct batchlog_replayer;
struct estimates;
struct peer_events;

/* In the order in which nodetool tpstats lists them. */
enum node_stage {
	NODE_STAGE_READ,
	NODE_STAGE_MUTATION,
	NODE_STAGE_COUNTER_MUTATION,
	NODE_STAGE_VIEW_MUTATION,
	NODE_STAGE_NATIVE_TRANSPORT, /* Native-Transport-Requests: parse, prepare, DDL */
	NODE_STAGE_NATIVE_AUTH,
	NODE_STAGE_REQUEST_RESPONSE,
	NODE_STAGE_COMPACTION,
	NODE_STAGE_VALIDATION,
	NODE_STAGE_MEMTABLE_FLUSH,
	NODE_STAGE_MEMTABLE_POST_FLUSH,
	NODE_STAGE_MEMTABLE_RECLAIM,
	NODE_STAGE_PER_DISK_FLUSH,
	NODE_STAGE_GOSSIP,
	NODE_STAGE_ANTI_ENTROPY,
	NODE_STAGE_MIGRATION,
	NODE_STAGE_MISC,
	NODE_STAGE_TRACING,
	NODE_STAGE_BATCHLOG,
	NODE_STAGE_INTERNAL_RESPONSE,
	NODE_STAGE_IMMEDIATE,
	NODE_STAGE_PAXOS_REPAIR,
	NODE_STAGE_HINTS,
	NODE_STAGE_CACHE_CLEANUP,
	NODE_STAGE_PENDING_RANGE,
	NODE_STAGE_SECONDARY_INDEX,
	NODE_STAGE_SAMPLER,
	NODE_STAGE_VIEW_BUILD,
	NODE_STAGE_STREAM,
	NODE_STAGE_COUNT,
};

/* What has begun and ended here; the ring's side of it is storage_service_mode(). */
enum node_mode { NODE_STARTING, NODE_NORMAL, NODE_DRAINING, NODE_DRAINED };

/* Timeouts, ms, as gettimeout names them; changed by settimeout while running. */
enum node_timeout {
	NODE_TIMEOUT_READ,
	NODE_TIMEOUT_RANGE,
	NODE_TIMEOUT_WRITE,
	NODE_TIMEOUT_COUNTER,
	NODE_TIMEOUT_CAS,
	NODE_TIMEOUT_TRUNCATE,
	NODE_TIMEOUT_MISC, /* request_timeout */
	NODE_TIMEOUT_INTERNODE_CONNECT,
	NODE_TIMEOUT_INTERNODE_USER,
	NODE_TIMEOUT_INTERNODE_STREAM_USER,
	NODE_TIMEOUT_COUNT,
};

struct node {
	const struct config *config; /* borrowed */
	struct env *env; /* borrowed */
	struct metrics metrics;
	struct stage *stages[NODE_STAGE_COUNT]; /* owned */
	struct store *store; /* owned, and all that follow */
	struct cluster *cluster;
	struct coordinator *coordinator;
	struct executor *executor;
	struct estimates *estimates;
	struct peer_events *peer_events;
	struct denylist *denylist; /* owned; NULL: nothing is denied */
	struct batchlog_replayer *batchlog; /* owned; once the ring was joined */
	struct network *network;
	struct internode *internode; /* NULL: a node without others */
	struct admin *admin;

	uint64_t slow_us; /* slow_query_log_timeout; 0: no read is slow */
	uint64_t started_ms; /* wall clock; "Generation No" is in seconds */
	uint64_t started_ns; /* monotonic, for the uptime */
	/* Set by executor_start() from system.local. */
	uint8_t host_id[16];
	bool has_host_id;
	int32_t generation; /* gossip's, of this start */
	int bootstrapped; /* enum bootstrap_state */
	struct log_limit failure_logs[STORE_FAILURES]; /* of failures the node goes on after */
	/* disk_usage.h: how many nodes are stuffed or full; when to look and to log again. */
	atomic_uint stuffed_peers;
	uint64_t disk_usage_next_ns, disk_usage_log_ns[2];
	int64_t *saved_tokens; /* owned; ascending; NULL: a node that never joined */
	uint32_t saved_token_count;

	/* Change while running; relaxed loads. */
	_Atomic int mode; /* enum node_mode */
	_Atomic int64_t timeouts_ms[NODE_TIMEOUT_COUNT];
	_Atomic double trace_probability;
	_Atomic int64_t batchlog_throttle; /* batchlog_replay_throttle, bytes a second; 0: none */
	_Atomic int64_t default_keyspace_rf;
	_Atomic bool is_rate_limited;
	_Atomic int64_t requests_per_second_max;

	uint64_t dropped_told[DROPPED_MESSAGES][2]; /* dropped_report()'s: internal, cross node */
	int *lock_fds; /* owned; one for each data directory that is locked */
	size_t lock_count;
	int stop_fd; /* written by node_request_stop(): main drains and exits */
};

/* Make the stages and the counters; no store yet. The config is finished. */
void node_init(struct node *node, const struct config *config, struct env *env);
/*
 * Open the store, start coordinator, executor (schema, replay), admin, join the ring, serve clients, in this order.
 * After -1 node_stop() undoes what was done.
 */
int node_start(struct node *node, struct error *err);
/* SE-18: stop accepting, finish what is in flight, drain the store. 0, or what failed. */
int node_drain(struct node *node, struct error *err);
/* Stop and free everything; node_drain() first for a clean stop. */
void node_fini(struct node *node);

/* netstats' Mode: "NORMAL", "JOINING", "DRAINED", ... Any thread. */
const char *node_mode_name(struct node *node);

/* Cassandra's name of a stage, and back (-1: none such). */
const char *node_stage_name(enum node_stage stage);
int node_stage_find(const char *name);
/* Statistics of every stage, in tpstats' order. Any thread. */
typedef void (*node_stage_fn)(void *argument, const struct stage_stats *stats);
void node_each_stage(struct node *node, node_stage_fn each, void *argument);

/* What is due now and then, every `period_ms`: the dropped tasks, the estimates, the peers' events. One thread. */
void node_tick(struct node *node, uint32_t period_ms);

/* settimeout's and gettimeout's name ("read", "cascontention", ...), and back (-1: none such). */
const char *node_timeout_name(enum node_timeout timeout);
int node_timeout_find(const char *name);

/* Ask main to drain and exit (stopdaemon, SIGTERM). Async-signal-safe. */
void node_request_stop(struct node *node);

#endif
