/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_WORKER_H
#define HELENUS_TOOLS_STRESS_WORKER_H

/*
 * The load: clients (what cassandra-stress calls threads) that each have one operation under way,
 * carried by a few workers. A worker is a thread with an epoll set and its own share of connections and
 * clients; nothing is shared on the way of an operation but two counters. What a read brings is
 * answered with the next requests, which one write sends.
 *
 *     read -> response -> client done, measured -> next operation made -> gathered -> one write
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "tools/stress_connection.h"
#include "tools/stress_operation.h"
#include "tools/stress_report.h"

struct stress_client;
struct stress_worker;

/* A connection in the pool, and who waits for which stream. Owned by one worker during a run. */
struct stress_link {
	struct stress_connection connection;
	const char *host; /* borrowed */
	uint16_t host_number; /* of the session's hosts */
	int port;
	uint8_t version; /* of the session: prepared statements belong to it */
	const char *keyspace; /* borrowed; to USE; NULL: none */
	struct stress_client **streams; /* owned; NULL: free, or its client has given up */
	int16_t *free_streams; /* owned; a stack */
	uint32_t free_count;
	bool is_dirty; /* something gathered for the next write */
	bool is_armed; /* epoll watches for room to write */
	int64_t retry_at_ns; /* closed: when to try again */
	int64_t retry_pause_ns; /* how long after the next failure: longer each time */
	struct stress_worker *worker; /* borrowed; during a run */
};

int stress_link_open(struct stress_link *link, const struct stress_settings *settings,
    const struct stress_tls *tls, int timeout_ms, struct error *err);
void stress_link_fini(struct stress_link *link);

/* What all workers of a run share. */
struct stress_run {
	const struct stress_settings *settings; /* constant */
	const struct stress_operation *operations;
	uint32_t operation_count;
	const struct stress_tls *tls;
	struct stress_seeds *seeds;
	bool has_end; /* `permits` counts down */
	bool is_warmup;
	int64_t interval_ns; /* between operations; 0: no rate */
	int64_t start_ns;
	FILE *output; /* where a failure is told; NULL: standard error */

	_Alignas(64) atomic_llong permits;
	_Alignas(64) atomic_ullong due; /* operations that have a time to start at */
	_Alignas(64) atomic_bool is_stopped; /* no new operations */
	atomic_bool is_failed;
	atomic_int clients; /* still at work */
	atomic_llong last_end_ns; /* when the last of them was done */
	pthread_mutex_t failure_mutex; /* one failure is told whole */
};

struct stress_worker *
stress_worker_new(struct stress_run *run, uint32_t index, uint32_t clients, uint32_t first_client);
/* Give it a connection; before the start. Those of a host come one after the other. */
void stress_worker_add_link(struct stress_worker *worker, struct stress_link *link);
int stress_worker_start(struct stress_worker *worker, struct error *err);
/* Wait for its clients to end; then the links are free again. */
void stress_worker_join(struct stress_worker *worker);
void stress_worker_free(struct stress_worker *worker);

/* What was measured since the last call, one timing for each operation, until the next call. Called by
 * one thread, also while the worker runs. */
struct stress_timing *stress_worker_take(struct stress_worker *worker);

int64_t stress_now_ns(void);

#endif
