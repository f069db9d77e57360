/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_LOOP_H
#define HELENUS_SERVER_LOOP_H

/*
 * A network loop: one thread, one libevent base, and the connections that live on it.
 *
 *   turn   wait for sockets, or for the wake of another thread
 *          read each ready socket once, cut requests out, sort them by stage   (connection.c)
 *          run or hand over what came, one batch a stage                        (loop_dispatch)
 *          take back what is done, append answers, one write per connection     (loop_collect)
 *
 * Where a stage is idle and its tasks are short, the loop runs them itself as one of the stage's threads
 * (stage_run_here(); Cassandra's SEPExecutor.maybeExecuteImmediately): no queue, no wake, no switch
 * of threads. What is slow, or more than the loop's share of a turn, goes to the stage's threads. The share is larger where
 * no core is free for those (cpu_pressure.h).
 *
 * Other threads reach a loop by two ways: finished requests (a lock-free list) and messages (a locked
 * list). Both wake it by its eventfd, and only when it sleeps or is about to.
 */
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/lock.h"
#include "server/cpu_pressure.h"
#include "server/executor.h"
#include "server/metrics.h"
#include "server/read_block.h"
#include "server/request.h"
#include "server/stage.h"

struct connection;
struct internode_loop;
struct loop;
struct network;

/* A message to a loop: runs on its thread, then is the callee's. */
struct loop_message {
	struct loop_message *next;
	void (*run)(struct loop_message *message, struct loop *loop);
	/* Instead of run() when the loop has ended. NULL: it is part of something that lives longer. */
	void (*drop)(struct loop_message *message);
};

struct loop_batch {
	struct task *first, *last;
	size_t count;
};

enum loop_state { LOOP_AWAKE, LOOP_ASLEEP, LOOP_NOTIFIED };

struct loop {
	struct network *network; /* borrowed */
	struct node *node; /* borrowed */
	uint32_t index;
	pthread_t thread;
	bool is_started;
	struct event_base *base; /* owned */
	int wake_fd;
	struct event *wake_event, *tick_event;

	/* Other threads' side. */
	_Atomic(struct request *) done; /* newest first */
	atomic_int state; /* enum loop_state */
	struct lock lock;
	struct loop_message *messages, *messages_last; /* guarded by lock */
	bool takes_none; /* guarded by lock; messages are dropped */
	atomic_bool has_messages;
	struct connection
	    *connections; /* written by the loop, with the lock; others read with it */
	atomic_uint connection_count;

	/* The loop's own. */
	struct worker worker;
	uint64_t now_ns; /* of this turn; submitted_ns of what it reads */
	bool is_now_known;
	struct cpu_pressure pressure;
	uint64_t inline_budget_ns; /* what it runs itself in this turn */
	size_t inline_tasks_max;
	struct loop_batch batches[REQUEST_STAGE_COUNT];
	struct loop_batch stalled[REQUEST_STAGE_COUNT]; /* the stage was full; retried each turn */
	struct request *done_here, *done_here_last; /* oldest first */
	struct connection *dirty; /* have output to write */
	struct connection *paused; /* wait for room of the node's limits */
	struct connection *closed; /* to be freed when nothing is in flight */
	struct request *free_requests;
	uint32_t free_request_count;
	struct read_block_pool blocks;
	struct metrics_loop *metrics; /* borrowed */
	double rate_tokens;
	uint64_t rate_filled_ns;
	uint64_t idle_checked_ns;
	uint32_t reserved_count; /* connections with reserved_bytes */
	uint64_t drain_deadline_ns; /* while draining */
	bool is_draining, is_stopping;
	bool is_drained; /* stopping, and no client is left */
	bool is_ticking;
	struct internode_loop *internode; /* borrowed; NULL: no other nodes */
};

/* 0, or ERROR_IO. After success loop_start() or loop_free(). */
int loop_init(struct loop *loop, struct network *network, uint32_t index, struct error *err);
int loop_start(struct loop *loop, struct error *err);
/* The thread has been joined: messages that it no longer took are dropped, and so are all that come from now on. */
void loop_end_messages(struct loop *loop);
/* The thread has been joined. */
void loop_fini(struct loop *loop);

/* Any thread. */
void loop_post(struct loop *loop, struct loop_message *message);
/* Give back a chain of finished requests (linked by next_done, oldest first). Any thread. */
void loop_give(struct loop *loop, struct request *first, struct request *last);

/* worker->flush of a stage's thread: answers and messages that its run collected go to their loops. */
void loop_flush_worker(struct worker *worker);

/* ---- on the loop's thread -------------------------------------------------------------------- */

struct request *loop_request_get(struct loop *loop);
void loop_request_put(struct loop *loop, struct request *request);
/* To be run this turn. request->stage tells where. */
void loop_add(struct loop *loop, struct request *request);
/* Make loop->now_ns this turn's. */
void loop_note_now(struct loop *loop);
/* Look again in a few ms: something waits for room. */
void loop_tick_soon(struct loop *loop);
/* A connection has begun to hold memory for a request that is half here: look after it. */
void loop_watch_reserved(struct loop *loop);

#endif
