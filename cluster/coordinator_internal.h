/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_COORDINATOR_INTERNAL_H
#define HELENUS_CLUSTER_COORDINATOR_INTERNAL_H

/*
 * What the coordinator's files share: coordinator.c (local requests, errors), write_request.c, read_request.c,
 * range_request.c, counter_update.c, coordinator_verbs.c.
 */
#include "base/meter.h"
#include "base/histogram.h"
#include "base/lock.h"
#include "cluster/coordinator.h"
#include "cluster/counter_update.h"
#include "cluster/messaging.h"
#include "cluster/ranks.h"
#include "cluster/replica_plan.h"
#include "cluster/ring.h"
#include "cluster/topology.h"

enum {
	COORDINATOR_NS_PER_MS = 1000000,
};

/* A percentile of a histogram, worked out anew now and then. */
struct speculation_threshold {
	_Atomic uint64_t ns, due_ns; /* ns 0: not yet */
	atomic_flag is_looking; /* whose holder has what follows */
	struct histogram_recent recent;
};

/*
 * How long other nodes took to answer reads of a table, late answers too; what the percentiles of speculative_retry are of.
 * Not of whole reads: one that had to ask once more lasts longer than the percentile, and where one replica in three
 * does not answer the percentile would run away from itself.
 */
struct speculation_answers {
	struct histogram answers_us;
	struct speculation_threshold threshold;
};

/* What is kept for each table. */
struct coordinator_table {
	struct coordinator_table *next; /* of all */
	struct histogram latency_us[COORDINATOR_LATENCY_COUNT];
	struct meter rates[COORDINATOR_LATENCY_COUNT]; /* coordinator_tick()'s */
	struct speculation_answers partition_answers, range_answers;
	struct speculation_threshold write_threshold; /* of latency_us[COORDINATOR_LATENCY_WRITE] */
};

struct coordinator {
	struct store *store; /* borrowed */
	struct env *env; /* borrowed */
	struct ring alone; /* what a level asks for where there is no ring */
	struct counter_updater counters;
	/* The node is the only one: nothing of what follows is looked at. */
	_Atomic bool is_alone;
	struct topology_listener listener;
	struct coordinator_ring ring;
	_Atomic(struct coordinator_table *) tables; /* owned */
	atomic_ullong speculative_retries, digest_mismatches, read_repairs, hints;
};

/* ---- coordinator.c ---- */

/* The write on this node alone: the fast path. */
void coordinator_write_local(struct coordinator *coordinator, struct coordinator_write *write);
void coordinator_read_local(struct coordinator *coordinator, struct coordinator_read *read);
const char *write_type_name(enum write_type type);

/* NULL: the table is gone. */
struct coordinator_table *
coordinator_table(struct coordinator *coordinator, const struct table_metadata *table);
void coordinator_record(struct coordinator *coordinator, const struct table_metadata *table,
    enum coordinator_latency which, uint64_t began_ns);

static inline uint64_t
coordinator_now(const struct coordinator *coordinator)
{
	return env_monotonic_ns(coordinator->env);
}

static inline uint64_t
coordinator_timeout_ns(const struct coordinator *coordinator, enum coordinator_timeout which)
{
	return coordinator->ring.timeout_ns(coordinator->ring.context, which);
}

/* A replica that failed, for the error's list. */
void
coordinator_error_replica(struct error *err, const struct peer *peer, enum failure_reason reason);
/* Write text and fields of a read's or write's timeout or failure; the replicas were added to *err before. */
void coordinator_error_finish(struct error *err, enum error_code code, enum consistency consistency,
    int32_t received, int32_t required);
/* What a local failure is to a coordinator. */
enum failure_reason coordinator_reason(const struct error *err);

/* Events of what is done here for a traced request (trace NULL: not traced). */
void coordinator_trace_apply(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const struct mutation *mutation);
void coordinator_trace_read(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const struct read_command *command);
/* `what`, and the peer behind it. */
void coordinator_trace_peer(struct coordinator *coordinator, const struct trace *trace,
    struct worker *worker, const char *what, const struct peer *peer);

/* ---- write_request.c ---- */
void write_request_start(struct coordinator *coordinator, struct coordinator_write *write);

/* ---- counter_request.c ---- */
void counter_request_start(struct coordinator *coordinator, struct coordinator_write *write);
/* This node leads the one mutation of the write. */
void counter_request_lead(struct coordinator *coordinator, struct coordinator_write *write);

/* ---- partition_request.c ---- */
void read_request_start(struct coordinator *coordinator, struct coordinator_read *read);
/* The partitions from this node's own store, each when it is asked for. */
int partitions_read_local(struct coordinator *coordinator, const struct coordinator_read *read,
    struct partition_iterator **out, struct error *err);

/* ---- coordinator_verbs.c ---- */
void coordinator_handle_verbs(struct coordinator *coordinator);

/* READ_REQ and RANGE_REQ: this, then the command. */
enum read_kind { READ_KIND_DATA = 0, READ_KIND_DIGEST = 1 };

#endif
