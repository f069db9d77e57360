/* SPDX-License-Identifier: Apache-2.0 */
#include "server/loop.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "server/connection.h"
#include "server/internode.h"
#include "server/network_internal.h"
#include "server/ranks.h"

enum {
	LOOP_REQUEST_ARENA =
	    16 << 10, /* a read of one row takes 7 KiB, the largest piece of it 2 */
	LOOP_REQUEST_POOL_MAX = 2048,
	LOOP_RESPONSE_KEEP = 64 << 10, /* a pooled request keeps at most this much */
	LOOP_TICK_US = 2000, /* how often what waits for room is looked at */
	LOOP_IDLE_TICK_US = 1000000,
	LOOP_STALL_BYTE_NS = 1000, /* a large request has to come at 1 MB a second at least, */
	LOOP_INLINE_SERVICE_NS = 50 * 1000, /* slower tasks are the stage's threads' */
	LOOP_INLINE_BUDGET_NS = 1000 * 1000,
	LOOP_INLINE_BUDGET_ALONE_NS = 10 * 1000 * 1000,
	LOOP_INLINE_TASKS_SHARED = 32, /* where other cores would stand idle */
};

/* ... once this has gone by. */
#define LOOP_STALL_NS UINT64_C(10000000000)

/* The sockets' callbacks run inside event_base_loop(): the first of them after the sleep takes the time. */
void
loop_note_now(struct loop *loop)
{
	if (loop->is_now_known)
		return;
	loop->now_ns = env_monotonic_ns(loop->node->env);
	loop->is_now_known = true;
}

/* ---- requests ------------------------------------------------------------------------------------- */

struct request *
loop_request_get(struct loop *loop)
{
	struct request *request = loop->free_requests;

	if (request != NULL) {
		loop->free_requests = request->next_done;
		loop->free_request_count--;
		request->next_done = NULL;
		return request;
	}
	request = xzalloc(sizeof(*request));
	arena_init(&request->arena, LOOP_REQUEST_ARENA);
	buffer_init(&request->response);
	buffer_init(&request->owned);
	return request;
}

static void
loop_request_free(struct request *request)
{
	arena_fini(&request->arena);
	buffer_fini(&request->response);
	free(request);
}

void
loop_request_put(struct loop *loop, struct request *request)
{
	read_block_unref(&loop->blocks, request->block);
	request->block = NULL;
	if (request->owned.data != NULL) {
		buffer_fini(&request->owned);
		buffer_init(&request->owned);
	}
	if (loop->free_request_count >= LOOP_REQUEST_POOL_MAX) {
		loop_request_free(request);
		return;
	}
	arena_reset(&request->arena);
	if (request->response.capacity > LOOP_RESPONSE_KEEP) {
		buffer_fini(&request->response);
		buffer_init(&request->response);
	} else {
		buffer_clear(&request->response);
	}
	request->connection = NULL;
	request->client = NULL;
	request->state = NULL;
	request->metric = REQUEST_METRIC_NONE;
	request->outcome = REQUEST_OUTCOME_OK;
	request->close_after = false;
	request->is_shed = false;
	request->wire_bytes = 0;
	request->charged_bytes = 0;
	request->next_done = loop->free_requests;
	loop->free_requests = request;
	loop->free_request_count++;
}

/* ---- other threads ----------------------------------------------------------------------------------- */

/*
 * seq_cst on both sides: the loop says "asleep" and then looks for work, others leave work and then
 * look whether it sleeps. One of the two sees the other.
 */
static void
loop_wake(struct loop *loop)
{
	uint64_t one = 1;

	if (atomic_exchange(&loop->state, LOOP_NOTIFIED) != LOOP_ASLEEP)
		return;
	while (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void
loop_post(struct loop *loop, struct loop_message *message)
{
	message->next = NULL;
	lock_take(&loop->lock);
	if (loop->takes_none) {
		lock_drop(&loop->lock);
		if (message->drop != NULL)
			message->drop(message);
		return;
	}
	if (loop->messages_last != NULL)
		loop->messages_last->next = message;
	else
		loop->messages = message;
	loop->messages_last = message;
	lock_drop(&loop->lock);
	atomic_store(&loop->has_messages, true);
	loop_wake(loop);
}

void
loop_give(struct loop *loop, struct request *first, struct request *last)
{
	struct request *head = atomic_load_explicit(&loop->done, memory_order_relaxed);

	/* The list is newest first; the chain is turned by the taker as a whole, so it goes in turned. */
	(void)last;
	while (first != NULL) {
		struct request *next = first->next_done;

		do {
			first->next_done = head;
		} while (!atomic_compare_exchange_weak(&loop->done, &head, first));
		head = first;
		first = next;
	}
	loop_wake(loop);
}

void
loop_flush_worker(struct worker *worker)
{
	struct request *request = worker->batch;

	/* Messages first: others wait for their answers. */
	internode_flush_worker(worker, NULL);
	worker->batch = NULL;
	/* Newest first, as it was collected; runs of one loop are given together. */
	while (request != NULL) {
		struct loop *loop = request->connection->loop;
		struct request *first = NULL, *last = request;

		while (request != NULL && request->connection->loop == loop) {
			struct request *next = request->next_done;

			request->next_done = first;
			first = request;
			request = next;
		}
		loop_give(loop, first, last);
	}
}

void
request_done(struct request *request, struct worker *worker)
{
	struct loop *loop = request->connection->loop;

	if (!worker_is_current(worker) || (worker->is_loop && worker != &loop->worker)) {
		request->next_done = NULL;
		loop_give(loop, request, request);
		return;
	}
	if (worker->is_loop) {
		request->next_done = NULL;
		if (loop->done_here_last != NULL)
			loop->done_here_last->next_done = request;
		else
			loop->done_here = request;
		loop->done_here_last = request;
		return;
	}
	request->next_done = worker->batch;
	worker->batch = request;
	worker->flush = loop_flush_worker;
}

/* ---- handing over --------------------------------------------------------------------------------------- */

static void
loop_batch_add(struct loop_batch *batch, struct task *task)
{
	task->next = NULL;
	if (batch->last != NULL)
		batch->last->next = task;
	else
		batch->first = task;
	batch->last = task;
	batch->count++;
}

void
loop_add(struct loop *loop, struct request *request)
{
	loop_batch_add(&loop->batches[request->stage], &request->task);
}

static const enum node_stage loop_stages[REQUEST_STAGE_COUNT] = {
    [REQUEST_STAGE_LOOP] = NODE_STAGE_NATIVE_TRANSPORT,
    [REQUEST_STAGE_REQUEST] = NODE_STAGE_NATIVE_TRANSPORT,
    [REQUEST_STAGE_READ] = NODE_STAGE_READ,
    [REQUEST_STAGE_MUTATION] = NODE_STAGE_MUTATION,
    [REQUEST_STAGE_COUNTER] = NODE_STAGE_COUNTER_MUTATION,
    [REQUEST_STAGE_SLICE] = NODE_STAGE_READ,
    [REQUEST_STAGE_RANGE] = NODE_STAGE_READ,
};

/* From when on a task of the stage is not worth running: the verb's timeout, and that of the client's
 * patience (native_transport_timeout), SE-10 and SE-12. */
static uint64_t
loop_deadline(struct loop *loop, enum request_stage stage)
{
	static const enum node_timeout timeouts[REQUEST_STAGE_COUNT] = {
	    [REQUEST_STAGE_REQUEST] = NODE_TIMEOUT_COUNT,
	    [REQUEST_STAGE_LOOP] = NODE_TIMEOUT_COUNT,
	    [REQUEST_STAGE_READ] = NODE_TIMEOUT_READ,
	    [REQUEST_STAGE_MUTATION] = NODE_TIMEOUT_WRITE,
	    [REQUEST_STAGE_COUNTER] = NODE_TIMEOUT_COUNTER,
	    [REQUEST_STAGE_SLICE] = NODE_TIMEOUT_READ,
	    [REQUEST_STAGE_RANGE] = NODE_TIMEOUT_RANGE,
	};
	struct node *node = loop->node;
	int64_t ms = node->config->native_transport_timeout;

	if (timeouts[stage] != NODE_TIMEOUT_COUNT) {
		int64_t verb =
		    atomic_load_explicit(&node->timeouts_ms[timeouts[stage]], memory_order_relaxed);

		if (ms <= 0 || verb < ms)
			ms = verb;
	}
	return ms <= 0 ? 0 : loop->now_ns + (uint64_t)ms * 1000000;
}

/* The stage has no room for these: told to those who asked to be told, kept for the others, whose
 * sockets are not read meanwhile. */
static void
loop_stall(struct loop *loop, enum request_stage kind, struct stage *stage, struct task *task)
{
	int64_t kept = 0;

	while (task != NULL) {
		struct request *request = (struct request *)task;
		struct connection *connection = request->connection;

		task = task->next;
		if (request->client->throw_on_overload || loop->is_stopping) {
			request->is_shed = true;
			atomic_fetch_add_explicit(
			    &loop->node->metrics.requests_discarded, 1, memory_order_relaxed);
			executor_overloaded(request, &loop->worker);
			continue;
		}
		loop_batch_add(&loop->stalled[kind], &request->task);
		connection->stalled++;
		connection_pause(connection, CONNECTION_PAUSE_STAGE);
		kept++;
	}
	if (kept > 0) {
		stage_blocked(stage, kept);
		loop_tick_soon(loop);
	}
}

/* Tasks of the stage that waited for room go first. */
static void
loop_retry(struct loop *loop, enum request_stage kind, struct stage *stage)
{
	struct loop_batch *stalled = &loop->stalled[kind];
	size_t taken;

	for (;;) {
		struct request *request = (struct request *)stalled->first;
		struct task *next, *rest;

		if (request == NULL)
			return;
		next = request->task.next;
		request->connection->stalled--;
		if (request->connection->stalled == 0)
			connection_resume(request->connection, CONNECTION_PAUSE_STAGE);
		taken = stage_submit(stage, &request->task, 1, &rest);
		if (taken == 0) {
			request->connection->stalled++;
			request->task.next = next;
			connection_pause(request->connection, CONNECTION_PAUSE_STAGE);
			loop_tick_soon(loop);
			return;
		}
		stage_blocked(stage, -1);
		stalled->first = next;
		if (next == NULL)
			stalled->last = NULL;
		stalled->count--;
	}
}

/* Requests that are short by their kind; how long they really take is looked at besides. */
static bool
loop_may_run(enum request_stage kind)
{
	return kind == REQUEST_STAGE_LOOP || kind == REQUEST_STAGE_READ ||
	    kind == REQUEST_STAGE_MUTATION || kind == REQUEST_STAGE_COUNTER;
}

static void
loop_dispatch_batch(struct loop *loop, enum request_stage kind)
{
	struct loop_batch batch = loop->batches[kind];
	struct stage *stage = loop->node->stages[loop_stages[kind]];
	struct task *rest = batch.first;
	size_t count = batch.count, done = 0;
	uint64_t deadline = loop_deadline(loop, kind);

	loop->batches[kind] = (struct loop_batch){0};
	for (struct task *task = batch.first; task != NULL; task = task->next)
		task->deadline_ns = deadline;
	if (loop->stalled[kind].count > 0) {
		loop_stall(loop, kind, stage, batch.first);
		return;
	}
	if (loop_may_run(kind) && stage_service_ns(stage) < LOOP_INLINE_SERVICE_NS) {
		size_t here = count < loop->inline_tasks_max ? count : loop->inline_tasks_max;

		done = stage_run_here(
		    stage, batch.first, here, loop->inline_budget_ns, &loop->worker, &rest);
	}
	if (done == count)
		return;
	count -= done;
	done = stage_submit(stage, rest, count, &rest);
	if (done < count)
		loop_stall(loop, kind, stage, rest);
}

/* Everything that this turn read: one call a stage. */
static void
loop_dispatch(struct loop *loop)
{
	for (int kind = 0; kind < REQUEST_STAGE_COUNT; kind++) {
		if (loop->stalled[kind].count > 0)
			loop_retry(loop, kind, loop->node->stages[loop_stages[kind]]);
		if (loop->batches[kind].count > 0)
			loop_dispatch_batch(loop, kind);
	}
}

/* ---- taking back ------------------------------------------------------------------------------------------- */

static bool
loop_is_read(uint8_t metric)
{
	return metric == REQUEST_METRIC_READ || metric == REQUEST_METRIC_RANGE ||
	    metric == REQUEST_METRIC_CAS_READ;
}

static void
loop_finish(struct loop *loop, struct request *request, uint64_t now)
{
	struct connection *connection = request->connection;
	struct metrics_loop *metrics = loop->metrics;

	if (request->metric != REQUEST_METRIC_NONE) {
		uint64_t us = (now - request->task.submitted_ns + 500) / 1000;

		histogram_add(&metrics->latency_us[request->metric], us);
		if (us >= loop->node->slow_us && loop->node->slow_us > 0 &&
		    loop_is_read(request->metric))
			executor_note_slow(loop->node->executor, request, us);
		/* One writer; see metrics.h. */
		atomic_store_explicit(&metrics->outcomes[request->metric][request->outcome],
		    atomic_load_explicit(&metrics->outcomes[request->metric][request->outcome],
			memory_order_relaxed) +
			1,
		    memory_order_relaxed);
	}
	if (loop_stages[request->stage] != NODE_STAGE_NATIVE_TRANSPORT)
		atomic_store_explicit(&metrics->direct_requests,
		    atomic_load_explicit(&metrics->direct_requests, memory_order_relaxed) + 1,
		    memory_order_relaxed);
	connection_answer(connection, request);
	loop_request_put(loop, request);
	if (connection->fd < 0)
		connection_free_if_done(connection);
}

static bool
loop_collect(struct loop *loop)
{
	struct request *here = loop->done_here, *done = NULL, *list;
	uint64_t now;

	if (here == NULL && atomic_load_explicit(&loop->done, memory_order_relaxed) == NULL)
		return false;
	loop->done_here = loop->done_here_last = NULL;
	/* Acquire (seq_cst): the answers were written before they were given. */
	list = atomic_exchange(&loop->done, NULL);
	while (list != NULL) { /* newest first: turn */
		struct request *next = list->next_done;

		list->next_done = done;
		done = list;
		list = next;
	}
	now = env_monotonic_ns(loop->node->env);
	while (here != NULL) {
		struct request *next = here->next_done;

		loop_finish(loop, here, now);
		here = next;
	}
	while (done != NULL) {
		struct request *next = done->next_done;

		loop_finish(loop, done, now);
		done = next;
	}
	return true;
}

static void
loop_flush(struct loop *loop)
{
	struct connection *connection = loop->dirty;

	loop->dirty = NULL;
	while (connection != NULL) {
		struct connection *next = connection->next_dirty;

		connection->is_dirty = false;
		connection_flush(connection);
		if (connection->fd < 0)
			connection_free_if_done(connection);
		connection = next;
	}
}

/* ---- what happens now and then -------------------------------------------------------------------------------- */

static void
loop_tick_in(struct loop *loop, long us)
{
	struct timeval in = {us / 1000000, us % 1000000};

	if (loop->is_ticking)
		return;
	loop->is_ticking = true;
	event_add(loop->tick_event, &in);
}

void
loop_tick_soon(struct loop *loop)
{
	loop_tick_in(loop, LOOP_TICK_US);
}

void
loop_watch_reserved(struct loop *loop)
{
	loop->reserved_count++;
	loop_tick_in(loop, LOOP_IDLE_TICK_US);
}

/* Connections that wait for the node's limits: is there room now? */
static void
loop_retry_paused(struct loop *loop)
{
	struct connection *connection = loop->paused;

	loop->paused = NULL;
	while (connection != NULL) {
		struct connection *next = connection->next_paused;
		unsigned why = CONNECTION_PAUSE_BYTES | CONNECTION_PAUSE_RATE;

		connection->is_in_paused = false;
		if (connection->fd >= 0 && !connection_has_room(connection))
			why &= ~(unsigned)CONNECTION_PAUSE_BYTES;
		connection_resume(connection, why);
		if ((connection->pauses & CONNECTION_PAUSE_BYTES) != 0 && connection->fd >= 0)
			connection_pause(connection, CONNECTION_PAUSE_BYTES);
		if (connection->fd < 0)
			connection_free_if_done(connection);
		connection = next;
	}
}

/* native_transport_idle_timeout: who has nothing in flight and said nothing for so long, goes. */
static void
loop_close_idle(struct loop *loop)
{
	struct connection *connection = loop->connections, *next;

	for (; connection != NULL; connection = next) {
		next = connection->next;
		if (connection->in_flight == 0 && connection->output_bytes == 0 &&
		    loop->now_ns - connection->last_active_ns > loop->network->idle_timeout_ns)
			connection_close(connection);
	}
}

/*
 * Who announces a large request holds what it takes of the node's limits until it is here. One that does not come, or
 * drips, would keep others out for as long as it likes.
 */
static void
loop_close_stalled(struct loop *loop)
{
	struct connection *connection = loop->connections, *next;

	for (; connection != NULL; connection = next) {
		next = connection->next;
		if (connection->reserved_bytes == 0 ||
		    loop->now_ns - connection->reserved_ns <
			LOOP_STALL_NS + connection->reserved_bytes * LOOP_STALL_BYTE_NS)
			continue;
		log_warn("%s:%u announced a request of %" PRIu64
			 " bytes and did not send it, the connection is closed",
		    connection->client.address, connection->client.port,
		    connection->reserved_bytes);
		connection_close(connection);
	}
}

static void
loop_drain(struct loop *loop)
{
	struct connection *connection = loop->connections, *next;
	bool is_late = loop->now_ns > loop->drain_deadline_ns;

	for (; connection != NULL; connection = next) {
		next = connection->next;
		if (is_late || (connection->in_flight == 0 && connection->output_bytes == 0))
			connection_close(connection);
		else
			connection_pause(connection, CONNECTION_PAUSE_DRAIN);
	}
	if (loop->connections == NULL)
		loop->is_draining = false;
	else
		loop_tick_soon(loop);
}

static void
loop_tick_cb(evutil_socket_t fd, short what, void *argument)
{
	struct loop *loop = argument;

	(void)fd;
	(void)what;
	loop->is_ticking = false;
}

static void
loop_wake_cb(evutil_socket_t fd, short what, void *argument)
{
	/* Edge-triggered: the counter need not be read. */
	(void)fd;
	(void)what;
	(void)argument;
}

static struct loop_message *
loop_take_messages(struct loop *loop)
{
	struct loop_message *message;

	lock_take(&loop->lock);
	atomic_store(&loop->has_messages, false);
	message = loop->messages;
	loop->messages = loop->messages_last = NULL;
	lock_drop(&loop->lock);
	return message;
}

void
loop_end_messages(struct loop *loop)
{
	struct loop_message *message;

	lock_take(&loop->lock);
	loop->takes_none = true;
	lock_drop(&loop->lock);
	message = loop_take_messages(loop);
	while (message != NULL) {
		struct loop_message *next = message->next;

		if (message->drop != NULL)
			message->drop(message);
		message = next;
	}
}

static void
loop_run_messages(struct loop *loop)
{
	struct loop_message *message;

	if (!atomic_load_explicit(&loop->has_messages, memory_order_acquire))
		return;
	message = loop_take_messages(loop);
	while (message != NULL) {
		struct loop_message *next = message->next;

		message->run(message, loop);
		message = next;
	}
}

static void
loop_housekeeping(struct loop *loop)
{
	struct connection *connection, *next;

	if (loop->paused != NULL)
		loop_retry_paused(loop);
	if (loop->is_draining)
		loop_drain(loop);
	if (loop->network->idle_timeout_ns > 0 && loop->connections != NULL) {
		if (loop->now_ns - loop->idle_checked_ns > (uint64_t)LOOP_IDLE_TICK_US * 1000 / 4) {
			loop->idle_checked_ns = loop->now_ns;
			loop_close_idle(loop);
		}
		loop_tick_in(loop, LOOP_IDLE_TICK_US / 4);
	}
	if (loop->reserved_count > 0) {
		loop_close_stalled(loop);
		loop_tick_in(loop, LOOP_IDLE_TICK_US);
	}
	for (connection = loop->closed; connection != NULL; connection = next) {
		next = connection->next_closed;
		connection_free_if_done(connection);
	}
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

/*
 * While the network stops a loop without clients lives on until none of the others has any: requests of theirs may need
 * other nodes, whose connections live here.
 */
static bool
loop_is_over(struct loop *loop)
{
	return loop->is_drained && atomic_load(&loop->network->undrained) == 0;
}

static void
loop_note_drained(struct loop *loop)
{
	struct network *network = loop->network;

	if (loop->is_drained || !loop->is_stopping || loop->connections != NULL ||
	    loop->closed != NULL)
		return;
	loop->is_drained = true;
	if (atomic_fetch_sub(&network->undrained, 1) != 1)
		return;
	for (uint32_t i = 0; i < network->loop_count; i++)
		loop_wake(&network->loops[i]);
}

/* Sleep until something happens, unless it has already. */
static void
loop_wait(struct loop *loop)
{
	bool has_work;

	atomic_store(&loop->state, LOOP_ASLEEP); /* seq_cst: see loop_wake() */
	has_work = atomic_load(&loop->done) != NULL || atomic_load(&loop->has_messages) ||
	    loop_is_over(loop);
	loop->is_now_known = false;
	event_base_loop(loop->base, EVLOOP_ONCE | (has_work ? EVLOOP_NONBLOCK : 0));
	atomic_store_explicit(&loop->state, LOOP_AWAKE, memory_order_relaxed);
	loop_note_now(loop);
}

/* With nobody to share with, what is handed over only waits for the same cores, and costs switches of threads. */
static void
loop_choose_share(struct loop *loop)
{
	bool is_shared =
	    loop->network->has_more_cores && !cpu_pressure_is_high(&loop->pressure, loop->now_ns);

	loop->inline_budget_ns = is_shared ? LOOP_INLINE_BUDGET_NS : LOOP_INLINE_BUDGET_ALONE_NS;
	loop->inline_tasks_max = is_shared ? LOOP_INLINE_TASKS_SHARED : SIZE_MAX;
}

static void *
loop_main(void *argument)
{
	struct loop *loop = argument;
	struct node *node = loop->node;

	worker_enter(&loop->worker);
	log_thread_name("Native-Transport-%u", loop->index + 1);
	loop->now_ns = env_monotonic_ns(node->env);
	cpu_pressure_init(&loop->pressure);
	while (!loop_is_over(loop)) {
		loop_wait(loop);
		loop_choose_share(loop);
		loop_run_messages(loop);
		if (loop->internode != NULL)
			internode_turn(loop);
		loop_dispatch(loop);
		/* What was answered while we ran it, and what came back meanwhile: no sleep in
		 * between, no wake needed. What a link gives up answers requests too. */
		internode_flush_worker(&loop->worker, loop);
		while (loop_collect(loop)) {
			loop_flush(loop);
			internode_flush_worker(&loop->worker, loop);
		}
		loop_flush(loop);
		loop_housekeeping(loop);
		loop_note_drained(loop);
	}
	cpu_pressure_fini(&loop->pressure);
	worker_leave(&loop->worker);
	return NULL;
}

int
loop_init(struct loop *loop, struct network *network, uint32_t index, struct error *err)
{
	struct event_config *config = event_config_new();

	memset(loop, 0, sizeof(*loop));
	loop->network = network;
	loop->node = network->node;
	loop->index = index;
	loop->metrics = &network->node->metrics.loops[index];
	loop->worker.is_loop = true;
	loop->worker.index = index;
	lock_init(&loop->lock, "loop", RANK_LOOP);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	loop->base = event_base_new_with_config(config);
	event_config_free(config);
	if (loop->wake_fd < 0 || loop->base == NULL) {
		error_set_errno(err, errno, "network loop %u", index);
		loop_fini(loop);
		return -1;
	}
	loop->wake_event =
	    event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST | EV_ET, loop_wake_cb, loop);
	loop->tick_event = event_new(loop->base, -1, 0, loop_tick_cb, loop);
	if (event_add(loop->wake_event, NULL) != 0) {
		error_set_errno(err, errno, "network loop %u", index);
		loop_fini(loop);
		return -1;
	}
	return 0;
}

int
loop_start(struct loop *loop, struct error *err)
{
	int rc = pthread_create(&loop->thread, NULL, loop_main, loop);

	if (rc != 0)
		return error_set_errno(err, rc, "network loop %u: thread", loop->index);
	loop->is_started = true;
	return 0;
}

void
loop_fini(struct loop *loop)
{
	while (loop->free_requests != NULL) {
		struct request *next = loop->free_requests->next_done;

		loop_request_free(loop->free_requests);
		loop->free_requests = next;
	}
	read_block_pool_fini(&loop->blocks);
	if (loop->wake_event != NULL)
		event_free(loop->wake_event);
	if (loop->tick_event != NULL)
		event_free(loop->tick_event);
	if (loop->base != NULL)
		event_base_free(loop->base);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	worker_fini(&loop->worker);
	lock_fini(&loop->lock);
	memset(loop, 0, sizeof(*loop));
	loop->wake_fd = -1;
}
