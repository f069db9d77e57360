/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_TRACING_H
#define HELENUS_SERVER_TRACING_H

/*
 * Query tracing: a session and its events in system_traces, written on the TracingStage after the answer
 * is on its way. Cassandra: tracing/Tracing, TraceKeyspace.
 */
#include <stdint.h>
#include "base/bytes.h"

struct execution;
struct tracing;

/* Begin a session for this request (message flag, or the trace probability); execution->tracing is set. */
void tracing_begin(struct execution *execution);
/* An event; nothing when the execution is not traced. */
void tracing_event(struct execution *execution, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of a prepared statement, for the session's parameters. */
void tracing_prepared(struct execution *execution, struct slice query);
void tracing_id_of(const struct tracing *tracing, uint8_t out[16]);
/* The request is answered: write the session. Takes over the tracing. */
void tracing_finish(struct tracing *tracing, struct execution *execution);

#endif
