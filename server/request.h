/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_REQUEST_H
#define HELENUS_SERVER_REQUEST_H

/*
 * One client request on its way: made by the network stage from an envelope, carried by a stage to the
 * executor, answered into `response`, given back to its connection's loop. Requests are pooled per loop:
 * arena and buffers keep their memory.
 *
 *   loop: decode -> executor_stage_of() -> stage_submit (a batch per wake-up)
 *   worker: executor_run(request) ... response_*() into request->response ... request_done(request)
 *   loop: takes all done requests of a connection, compresses / segments, one writev
 *
 * The executor may finish a request later and on another thread (group commit, cluster): it calls
 * request_done() exactly once.
 */
#include <stdatomic.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "protocol/envelope.h"
#include "server/stage.h"

struct connection;
struct executor;
struct client_state;

struct request {
	struct task task; /* first: a task is cast back to its request */
	struct request *next_done; /* list of a loop's finished requests */
	struct connection *connection; /* borrowed; stays while in_flight counts this request */
	struct client_state *client;   /* borrowed from the connection */
	struct executor *executor;     /* borrowed */
	struct envelope_header header; /* version, flags, stream, opcode */
	struct slice body;             /* decompressed; lives in the arena or in a pinned read buffer */
	struct arena arena;            /* everything the execution needs; reset when the request is pooled */
	struct buffer response;        /* one whole envelope: header and body, uncompressed */
	bool close_after;              /* close the connection once the response is written */
	void *state;                   /* the executor's */
};

/*
 * What a connection knows of its client. Written on the connection's loop or by the one request that
 * changes it (STARTUP, AUTH_RESPONSE, USE, REGISTER); concurrent readers see the old or the new keyspace pointer.
 */
struct client_state {
	int version;                       /* protocol version, 0 before STARTUP */
	_Atomic(const char *) keyspace;    /* interned, never freed; NULL: none */
	_Atomic(const char *) user;        /* NULL: anonymous */
	atomic_uint events;                /* bit set of registered event types */
	bool throw_on_overload;
	bool is_authenticated;
	struct map *options;               /* STARTUP options, for system_views.clients; owned */
	char address[64];                  /* numeric remote address */
	uint16_t port;
	atomic_ullong request_count;
};

/* The answer stands in request->response: give the request back to its loop. Any thread; wakes the loop at most
 * once per batch (a worker's run of requests is flushed together). */
void request_done(struct request *request, struct worker *worker);

#endif
