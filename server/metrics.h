/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_METRICS_H
#define HELENUS_SERVER_METRICS_H

/*
 * The node's counters, under Cassandra's names (metrics/ClientRequestMetrics, ClientMetrics,
 * CQLMetrics). Whoever counts adds with relaxed atomics: statistics order nothing. What is counted for
 * every request is kept per loop (one writer each, so no cache line is shared) and summed by the reader.
 */
#include <stdatomic.h>
#include <stdint.h>
#include "base/histogram.h"
#include "server/request.h"

enum { METRICS_LATENCY_BUCKETS = 90, METRICS_BATCH_BUCKETS = 90 };
enum metrics_batch_kind { METRICS_BATCH_LOGGED, METRICS_BATCH_UNLOGGED, METRICS_BATCH_COUNTER };
enum { METRICS_BATCH_KINDS = METRICS_BATCH_COUNTER + 1 };

/* One loop's share. Written by its loop only. */
struct metrics_loop {
	struct histogram latency_us[REQUEST_METRIC_COUNT];
	atomic_ullong outcomes[REQUEST_METRIC_COUNT][REQUEST_OUTCOME_COUNT];
	atomic_ullong opcodes[0x11]; /* requests by opcode */
	atomic_ullong bytes_read, bytes_written;
	/* Requests that went straight to the stage of their work: Native-Transport-Requests never saw them. */
	atomic_ullong direct_requests;
};

struct metrics {
	struct metrics_loop *loops; /* owned; one per loop */
	uint32_t loop_count;

	/* ClientMetrics */
	atomic_ullong connections_total, connections_refused;
	atomic_ullong auth_success, auth_failure;
	atomic_ullong protocol_errors;
	atomic_ullong requests_discarded, connections_paused;

	/* BatchMetrics: partitions of a batch */
	struct histogram batch_partitions[METRICS_BATCH_KINDS];

	/* StorageMetrics.Exceptions: requests that ended in a server error */
	atomic_ullong exceptions;
};

void metrics_init(struct metrics *metrics, uint32_t loop_count);
void metrics_fini(struct metrics *metrics);

/* Sums over the loops; out is overwritten (buckets of METRICS_LATENCY_BUCKETS). Any thread. */
void
metrics_latency(const struct metrics *metrics, enum request_metric metric, struct histogram *out);
/* The sum over the loops of the counter that stands at `offset` in struct metrics_loop. */
uint64_t metrics_sum(const struct metrics *metrics, size_t offset);
uint64_t metrics_direct_requests(const struct metrics *metrics);
uint64_t metrics_outcomes(
    const struct metrics *metrics, enum request_metric metric, enum request_outcome outcome);

#endif
