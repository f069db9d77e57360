/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_WORKER_INTERNAL_H
#define HELENUS_TOOLS_STRESS_WORKER_INTERNAL_H

/*
 * What a worker and its clients share: stress_worker.c has the connections, the clock and the loop,
 * stress_client.c what a client does with an operation. Everything belongs to the worker's thread.
 */
#include "tools/stress_worker.h"

enum {
	STRESS_PAUSE_NS =
	    100 * 1000 * 1000, /* after a failed try, of a connection or an operation */
};

enum stress_client_state {
	STRESS_CLIENT_IDLE, /* chooses its next operation */
	STRESS_CLIENT_DUE, /* waits for its time to start */
	STRESS_CLIENT_QUEUED, /* waits for a free stream */
	STRESS_CLIENT_PAUSED, /* waits before it tries again */
	STRESS_CLIENT_SENT,
	STRESS_CLIENT_DONE,
};

/* One of the "threads". */
struct stress_client {
	uint32_t number;
	enum stress_client_state state;
	uint32_t operation; /* index */
	int64_t run_left; /* operations of the same kind still to do (mixes) */
	int64_t intended_ns; /* 0: no rate */
	int64_t started_ns; /* 0: not yet */
	int64_t sent_ns; /* the last try */
	int64_t pause_until_ns;
	int tries;
	uint32_t turn; /* which link comes next */
	bool is_made; /* seeds are taken: a second try sends the same */
	bool is_preparing; /* the answer to come is PREPARE's */
	struct stress_link *link;
	struct stress_link
	    *last_link; /* where the last try went: who does not know the statement is told */
	int64_t token; /* of the request that was made, where the operation has a placement */
	int16_t stream;
	uint32_t permits; /* partitions of the operation */
	struct stress_request request;
	struct buffer envelope; /* user operations: the request, to send it again */
	struct buffer followup; /* what goes out in its place once it is answered: a next page, a
				 * conditional write. Empty: not yet */
	struct stress_cursor *cursors; /* owned; SCAN: one for each operation. NULL: none is such */
	struct stress_client *next; /* in the queue of its state */
};

struct stress_queue {
	struct stress_client *first;
	struct stress_client **last;
};

struct stress_worker {
	struct stress_run *run; /* borrowed */
	uint32_t index;
	pthread_t thread;
	int epoll;
	struct stress_link **links; /* owned array of borrowed links */
	uint32_t link_count;
	uint32_t *host_links; /* owned; the first link of each host, and the end */
	uint32_t host_count;
	uint32_t route_turn; /* which replica comes next */
	struct stress_client *clients; /* owned */
	uint32_t client_count;
	uint32_t active; /* clients that are not done */
	struct stress_maker *makers; /* owned; one for each operation */
	struct stress_distribution clustering; /* own copy */
	struct stress_random random;
	struct stress_queue due;
	struct stress_queue queued;
	struct stress_queue paused;
	struct arena responses;
	int64_t now_ns; /* when the last response was taken, or the loop woke */
	int64_t timestamp_us; /* of the last write */
	int64_t clock_offset_us; /* from the monotonic clock to the time of day */
	int64_t next_check_ns;

	/* Guarded by mutex, which the worker holds but while it waits. */
	pthread_mutex_t mutex;
	struct stress_timing *timings; /* those that are written */
	struct stress_timing *taken; /* those that the reporter has */
};

/* ---- Queues of clients --------------------------------------------------------------------------------- */

static inline void
stress_queue_init(struct stress_queue *queue)
{
	queue->first = NULL;
	queue->last = &queue->first;
}

static inline void
stress_queue_put(struct stress_queue *queue, struct stress_client *client)
{
	client->next = NULL;
	*queue->last = client;
	queue->last = &client->next;
}

static inline struct stress_client *
stress_queue_take(struct stress_queue *queue)
{
	struct stress_client *client = queue->first;

	if (client == NULL)
		return NULL;
	queue->first = client->next;
	if (queue->first == NULL)
		queue->last = &queue->first;
	return client;
}

/* ---- Clients --------------------------------------------------------------------------------------------- */

static inline const struct stress_operation *
stress_client_operation(const struct stress_worker *worker, const struct stress_client *client)
{
	return &worker->run->operations[client->operation];
}

/* Choose the next operation and send it, or end. */
void stress_client_next(struct stress_worker *worker, struct stress_client *client);
/* Send what it has to send, now or as soon as a stream is free. */
void stress_client_send(struct stress_worker *worker, struct stress_client *client);
/* A link with a free stream: always the same where all go to one node, else each in turn. NULL: none;
 * *is_any: at least one is open. */
struct stress_link *
stress_client_pick(struct stress_worker *worker, struct stress_client *client, bool *is_any);
/* The operation is over. `failure` NULL: nothing was wrong, or the data was. */
void stress_client_finish(struct stress_worker *worker, struct stress_client *client, bool is_good,
    uint64_t rows, uint64_t partitions, const char *failure);
/* A try has failed: say so, and try again while tries are left. */
void stress_client_fail(struct stress_worker *worker, struct stress_client *client,
    const char *exception, struct slice text, bool pauses);
/* It has no more to do. */
void stress_client_end(struct stress_worker *worker, struct stress_client *client);
void stress_client_take_response(
    struct stress_worker *worker, struct stress_client *client, const struct envelope *envelope);

#endif
