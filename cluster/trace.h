/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_TRACE_H
#define HELENUS_CLUSTER_TRACE_H

/*
 * What happens to one request, told step by step (tracing/Tracing, TraceState): to which session an event belongs. It is
 * no object: it goes by value with the request and with each of its messages, and every node writes its own
 * events (cluster_env.trace), also those that come after the answer.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/uuid.h"

struct cluster_env;
struct message;
struct worker;

/* Of Cassandra's TraceType: it says how long events are kept. */
enum trace_type { TRACE_NONE, TRACE_QUERY, TRACE_REPAIR, TRACE_TYPE_COUNT };

struct trace {
	struct uuid session;
	uint64_t began_ns; /* monotonic; of the request, or when its message came to this node */
	uint8_t type; /* enum trace_type; TRACE_NONE: not traced */
};

static inline bool
trace_is_on(const struct trace *trace)
{
	return trace != NULL && trace->type != TRACE_NONE;
}

/*
 * Write an event; nothing where it is not traced. Never blocks, any thread; worker: the one that runs, or NULL.
 */
void trace_event(struct cluster_env *env, const struct trace *trace, struct worker *worker,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
