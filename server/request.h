/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_REQUEST_H
#define HELENUS_SERVER_REQUEST_H

/*
 * One client request on its way: made by the network stage from an envelope, carried by a stage to the
 * executor, answered into `response`, given back to its connection's loop. Requests are pooled per loop:
 * arena and buffers keep their memory.
 *
 *   loop: decode -> executor_stage_of() -> stage_run_here() or stage_submit() (a batch per wake-up)
 *   worker: executor_run(request) ... response_*() into request->response ... request_done(request)
 *   loop: takes all done requests of a connection, compresses / segments, one writev
 *
 * The executor may finish a request later and on another thread (group commit, cluster): it calls
 * request_done() exactly once.
 *
 * The network stage answers OPTIONS, STARTUP and REGISTER itself, checks the handshake (NP-12,
 * NP-16..24) and compresses; the executor sees QUERY, PREPARE, EXECUTE, BATCH and AUTH_RESPONSE, with a
 * plain body, only when they may be processed. Its answer to AUTH_RESPONSE is AUTH_SUCCESS (the
 * network stage then lets the connection in), AUTH_CHALLENGE or ERROR; before AUTH_SUCCESS it sets
 * client->user and client->is_authenticated.
 */
#include <stdatomic.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "protocol/envelope.h"
#include "server/stage.h"

struct connection;
struct executor;
struct client_state;
struct read_block;

#define REQUEST_OVERLOADED_TEXT "Server is in overloaded state. The request was refused"

/* What the answer was, for ClientRequest metrics and proxyhistograms; set by the executor. */
enum request_metric {
	REQUEST_METRIC_NONE,
	REQUEST_METRIC_READ,
	REQUEST_METRIC_WRITE,
	REQUEST_METRIC_RANGE,
	REQUEST_METRIC_CAS_READ,
	REQUEST_METRIC_CAS_WRITE,
	REQUEST_METRIC_VIEW_WRITE,
	REQUEST_METRIC_COUNT,
};
enum request_outcome {
	REQUEST_OUTCOME_OK,
	REQUEST_OUTCOME_TIMEOUT,
	REQUEST_OUTCOME_UNAVAILABLE,
	REQUEST_OUTCOME_FAILURE,
	REQUEST_OUTCOME_COUNT,
};

struct request {
	struct task
	    task; /* first: a task is cast back to its request; submitted_ns: when it was read */
	struct request *next_done; /* list of a loop's finished requests */
	struct connection *connection; /* borrowed; stays while in_flight counts this request */
	struct client_state *client; /* borrowed from the connection */
	struct executor *executor; /* borrowed */
	struct envelope_header header; /* version, flags (not compressed), stream, opcode */
	struct slice body; /* plain; stays until request_done() */
	struct arena arena; /* everything the execution needs; reset when the request is pooled */
	struct buffer response; /* one whole envelope: header and body, uncompressed */
	uint8_t metric; /* enum request_metric: set by the executor */
	uint8_t outcome; /* enum request_outcome: set by the executor */
	bool close_after; /* close the connection once the response is written */
	void *state; /* the executor's; NULL when executor_run() begins */

	/* The network stage's. */
	uint8_t stage; /* enum request_stage */
	bool is_shed; /* answered OVERLOADED or dropped */
	uint32_t wire_bytes; /* the envelope as it came */
	uint32_t charged_bytes; /* of request data in flight */
	struct read_block *block; /* what body lies in; NULL: the arena, or `owned` */
	struct buffer owned; /* a large body's own memory */
};

/*
 * What a connection knows of its client. Written on the connection's loop or by the one request that
 * changes it (AUTH_RESPONSE, USE); concurrent readers see the old or the new keyspace pointer.
 */
struct client_state {
	int version; /* protocol version, 0 before STARTUP */
	_Atomic(const char *) keyspace; /* interned, never freed; NULL: none */
	_Atomic(const char *) user; /* interned; NULL: anonymous */
	atomic_uint events; /* bit set of registered event types (enum EVENT_*) */
	bool throw_on_overload;
	bool is_authenticated;
	char address[64]; /* numeric remote address */
	uint16_t port;
	atomic_ullong request_count;
	void *executor_state; /* the executor's, NULL at first; freed with executor_client_fini() */
};

/* The answer stands in request->response: give the request back to its loop. Any thread; wakes the loop at most
 * once per batch (a worker's run of requests is flushed together). worker: the one that runs now, NULL
 * on other threads (commit log, internode). */
void request_done(struct request *request, struct worker *worker);

#endif
