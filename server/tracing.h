/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_TRACING_H
#define HELENUS_SERVER_TRACING_H

/*
 * Query tracing: a session and its events in system_traces, written on the TracingStage; the session's row comes
 * last, when the answer is on its way. Each node of a ring writes its own events (cluster/trace.h).
 * Cassandra: tracing/Tracing, TraceKeyspace.
 */
#include <stdint.h>
#include "base/bytes.h"
#include "cluster/trace.h"

struct execution;
struct node;
struct tracing;

/* Begin a session for this request (message flag, or the trace probability); execution->tracing is set. */
void tracing_begin(struct execution *execution);
/* An event; nothing when the execution is not traced. */
void tracing_event(struct execution *execution, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of a prepared statement, for the session's parameters. */
void tracing_prepared(struct execution *execution, struct slice query);
/* The values that were bound to it, alike. */
void tracing_bound(struct execution *execution);
/* For the coordinator; NULL: not traced. Lives until the answer. */
const struct trace *tracing_of(const struct execution *execution);
/* An event of this node. cluster_env.trace, whose context is the struct node. */
void
tracing_record(void *context, const struct trace *trace, struct worker *worker, const char *text);
void tracing_id_of(const struct tracing *tracing, uint8_t out[16]);
/* The request is answered: write the session. Takes over the tracing. */
void tracing_finish(struct tracing *tracing, struct execution *execution);

#endif
