/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_worker_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"

enum {
	STRESS_EVENTS = 64,
	STRESS_RECONNECT_MS = 1000, /* how long a try may take: others wait meanwhile */
	STRESS_RECONNECT_DOUBLINGS = 6, /* of the pause: a node that is away holds up little */
	STRESS_CHECK_NS = 250 * 1000 * 1000, /* for requests that are out of time */
};

int64_t
stress_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Does a response say no more than that a write is done? */
static inline bool
stress_envelope_is_void(const struct envelope *envelope)
{
	return envelope->header.opcode == OPCODE_RESULT && envelope->header.flags == 0 &&
	    envelope->body.size == 4 && load_u32(envelope->body.data) == RESULT_VOID;
}

static void
stress_link_cb(void *user, const struct envelope *envelope)
{
	struct stress_link *link = user;
	struct stress_worker *worker = link->worker;
	int32_t stream = envelope->header.stream;
	struct stress_client *client, *waiting;

	if (stream < 0 || stream >= worker->run->settings->pending_max)
		return;
	client = link->streams[stream];
	link->streams[stream] = NULL;
	link->free_streams[link->free_count++] = (int16_t)stream;
	if (client != NULL) {
		client->link = NULL;
		if (stress_envelope_is_void(envelope) && !client->is_preparing &&
		    stress_operation_is_write(stress_client_operation(worker, client)))
			stress_client_finish(worker, client, true, client->request.rows,
			    client->request.partitions, NULL);
		else
			stress_client_take_response(worker, client, envelope);
	}
	/* A stream may have become free for who waits. */
	if (worker->queued.first != NULL && link->free_count > 0) {
		waiting = stress_queue_take(&worker->queued);
		stress_client_send(worker, waiting);
	}
}

/* ---- Links ------------------------------------------------------------------------------------------------- */

static void
stress_link_watch(struct stress_worker *worker, struct stress_link *link, int operation)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};

	if (link->connection.wants_write)
		event.events |= EPOLLOUT;
	link->is_armed = link->connection.wants_write;
	epoll_ctl(worker->epoll, operation, link->connection.fd, &event);
}

/* The connection is gone; so are the requests on it. */
static void
stress_link_break(struct stress_worker *worker, struct stress_link *link, const struct error *why)
{
	uint32_t count = (uint32_t)worker->run->settings->pending_max;
	struct slice text = slice_of_string(why->text);

	stress_connection_close(&link->connection);
	link->is_dirty = false;
	link->retry_pause_ns = STRESS_PAUSE_NS;
	link->retry_at_ns = worker->now_ns + link->retry_pause_ns;
	for (uint32_t i = 0; i < count; i++) {
		struct stress_client *client = link->streams[i];

		link->streams[i] = NULL;
		if (client == NULL)
			continue;
		client->link = NULL;
		client->is_preparing = false;
		stress_client_fail(worker, client, "TransportException", text, true);
	}
}

static void
stress_link_flush(struct stress_worker *worker, struct stress_link *link)
{
	struct error err;

	link->is_dirty = false;
	if (stress_connection_flush(&link->connection, &err) != 0)
		stress_link_break(worker, link, &err);
	else if (link->connection.wants_write != link->is_armed)
		stress_link_watch(worker, link, EPOLL_CTL_MOD);
}

static void
stress_worker_flush(struct stress_worker *worker)
{
	for (uint32_t i = 0; i < worker->link_count; i++) {
		if (worker->links[i]->is_dirty && worker->links[i]->connection.fd >= 0)
			stress_link_flush(worker, worker->links[i]);
	}
}

static void
stress_link_handle(struct stress_worker *worker, struct stress_link *link, uint32_t events)
{
	struct error err;

	if (link->connection.fd < 0)
		return;
	if ((events & EPOLLOUT) != 0)
		link->is_dirty = true;
	if ((events & ~(uint32_t)EPOLLOUT) == 0)
		return;
	if (stress_connection_read(&link->connection, stress_link_cb, link, &err) != 0)
		stress_link_break(worker, link, &err);
}

static void
stress_worker_reconnect(struct stress_worker *worker)
{
	struct error err;

	for (uint32_t i = 0; i < worker->link_count; i++) {
		struct stress_link *link = worker->links[i];

		if (link->connection.fd >= 0 || link->retry_at_ns > worker->now_ns)
			continue;
		if (stress_link_open(link, worker->run->settings, worker->run->tls,
			STRESS_RECONNECT_MS, &err) == 0)
			stress_link_watch(worker, link, EPOLL_CTL_ADD);
		worker->now_ns = stress_now_ns();
		if (link->retry_pause_ns < (int64_t)STRESS_PAUSE_NS << STRESS_RECONNECT_DOUBLINGS)
			link->retry_pause_ns =
			    link->retry_pause_ns > 0 ? 2 * link->retry_pause_ns : STRESS_PAUSE_NS;
		link->retry_at_ns = worker->now_ns + link->retry_pause_ns;
	}
}

/* ---- Time ------------------------------------------------------------------------------------------------- */

static void
stress_worker_start_due(struct stress_worker *worker)
{
	while (worker->due.first != NULL && worker->due.first->intended_ns <= worker->now_ns)
		stress_client_send(worker, stress_queue_take(&worker->due));
}

static void
stress_worker_resume_paused(struct stress_worker *worker)
{
	while (worker->paused.first != NULL &&
	    worker->paused.first->pause_until_ns <= worker->now_ns) {
		struct stress_client *client = stress_queue_take(&worker->paused);
		bool is_any;

		if (stress_client_pick(worker, client, &is_any) != NULL || is_any)
			stress_client_send(worker, client);
		else
			stress_client_fail(worker, client, "NoHostAvailableException",
			    slice_of_string(
				"All host(s) tried for query failed (no host was tried)"),
			    true);
	}
}

/* Requests without an answer for too long: the client goes on, the stream stays taken until one comes. */
static void
stress_worker_check_timeouts(struct stress_worker *worker)
{
	int64_t limit =
	    worker->now_ns - (int64_t)worker->run->settings->request_timeout_ms * 1000000;

	worker->next_check_ns = worker->now_ns + STRESS_CHECK_NS;
	for (uint32_t i = 0; i < worker->client_count; i++) {
		struct stress_client *client = &worker->clients[i];

		if (client->state != STRESS_CLIENT_SENT || client->sent_ns > limit ||
		    client->link == NULL)
			continue;
		client->link->streams[client->stream] = NULL;
		client->link = NULL;
		client->is_preparing = false;
		stress_client_fail(worker, client, "OperationTimedOutException",
		    slice_of_string("Timed out waiting for server response"), false);
	}
	stress_worker_reconnect(worker);
	/* A stop must not wait for a node that is away. */
	if (atomic_load_explicit(&worker->run->is_failed, memory_order_relaxed)) {
		struct stress_client *client;

		while ((client = stress_queue_take(&worker->paused)) != NULL)
			stress_client_end(worker, client);
		while ((client = stress_queue_take(&worker->due)) != NULL)
			stress_client_end(worker, client);
	}
}

static int64_t
stress_worker_wait_ns(const struct stress_worker *worker)
{
	int64_t until = worker->next_check_ns;

	if (worker->due.first != NULL && worker->due.first->intended_ns < until)
		until = worker->due.first->intended_ns;
	if (worker->paused.first != NULL && worker->paused.first->pause_until_ns < until)
		until = worker->paused.first->pause_until_ns;
	return until > worker->now_ns ? until - worker->now_ns : 0;
}

/* ---- The loop ---------------------------------------------------------------------------------------------- */

static int
stress_worker_wait(struct stress_worker *worker, struct epoll_event *events)
{
	int64_t wait = stress_worker_wait_ns(worker);
	struct timespec timeout = {wait / 1000000000, wait % 1000000000};
	int count;

	pthread_mutex_unlock(&worker->mutex);
	count = epoll_pwait2(worker->epoll, events, STRESS_EVENTS, &timeout, NULL);
	if (count < 0 && errno == ENOSYS) /* kernels before 5.11 */
		count = epoll_wait(
		    worker->epoll, events, STRESS_EVENTS, (int)((wait + 999999) / 1000000));
	pthread_mutex_lock(&worker->mutex);
	worker->now_ns = stress_now_ns();
	return count;
}

static void *
stress_worker_main(void *user)
{
	struct stress_worker *worker = user;
	struct epoll_event events[STRESS_EVENTS];

	pthread_mutex_lock(&worker->mutex);
	worker->now_ns = stress_now_ns();
	worker->next_check_ns = worker->now_ns + STRESS_CHECK_NS;
	for (uint32_t i = 0; i < worker->client_count; i++)
		stress_client_next(worker, &worker->clients[i]);
	stress_worker_flush(worker);
	while (worker->active > 0) {
		int count = stress_worker_wait(worker, events);

		for (int i = 0; i < count; i++)
			stress_link_handle(worker, events[i].data.ptr, events[i].events);
		if (worker->due.first != NULL)
			stress_worker_start_due(worker);
		if (worker->paused.first != NULL)
			stress_worker_resume_paused(worker);
		if (worker->now_ns >= worker->next_check_ns)
			stress_worker_check_timeouts(worker);
		stress_worker_flush(worker);
	}
	pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

static void
stress_client_fini(const struct stress_worker *worker, struct stress_client *client)
{
	buffer_fini(&client->envelope);
	buffer_fini(&client->followup);
	for (uint32_t i = 0; client->cursors != NULL && i < worker->run->operation_count; i++)
		stress_cursor_fini(&client->cursors[i]);
	free(client->cursors);
}

struct stress_worker *
stress_worker_new(struct stress_run *run, uint32_t index, uint32_t clients, uint32_t first_client)
{
	struct stress_worker *worker = xzalloc(sizeof(*worker));
	struct timespec day;
	bool has_scans = false;

	for (uint32_t i = 0; i < run->operation_count; i++)
		has_scans |= run->operations[i].scan != NULL;
	worker->run = run;
	worker->index = index;
	worker->client_count = worker->active = clients;
	worker->clients = xcalloc(clients, sizeof(*worker->clients));
	for (uint32_t i = 0; i < clients; i++) {
		worker->clients[i].number = first_client + i;
		worker->clients[i].turn = i;
		buffer_init(&worker->clients[i].envelope);
		buffer_init(&worker->clients[i].followup);
		if (has_scans)
			worker->clients[i].cursors =
			    xcalloc(run->operation_count, sizeof(struct stress_cursor));
	}
	worker->makers = xcalloc(run->operation_count, sizeof(*worker->makers));
	for (uint32_t i = 0; i < run->operation_count; i++)
		stress_maker_init(&worker->makers[i], &run->operations[i], run->settings,
		    run->seeds, stress_now_ns() + index * 1000003 + i);
	worker->clustering = run->settings->clustering;
	stress_random_seed(&worker->random, stress_now_ns() ^ (int64_t)index << 40);
	stress_distribution_seed(&worker->clustering, stress_random_long(&worker->random));
	stress_queue_init(&worker->due);
	stress_queue_init(&worker->queued);
	stress_queue_init(&worker->paused);
	arena_init(&worker->responses, 16384);
	clock_gettime(CLOCK_REALTIME, &day);
	worker->clock_offset_us =
	    day.tv_sec * 1000000LL + day.tv_nsec / 1000 - stress_now_ns() / 1000;
	pthread_mutex_init(&worker->mutex, NULL);
	worker->timings = xcalloc(run->operation_count, sizeof(*worker->timings));
	worker->taken = xcalloc(run->operation_count, sizeof(*worker->taken));
	worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	return worker;
}

void
stress_worker_add_link(struct stress_worker *worker, struct stress_link *link)
{
	worker->links = xrealloc(worker->links, (worker->link_count + 1) * sizeof(*worker->links));
	worker->links[worker->link_count++] = link;
	link->worker = worker;
	if (link->connection.fd >= 0)
		stress_link_watch(worker, link, EPOLL_CTL_ADD);
}

int
stress_worker_start(struct stress_worker *worker, struct error *err)
{
	int rc;

	for (uint32_t i = 0; i < worker->link_count; i++)
		worker->host_count = worker->links[i]->host_number + 1U;
	worker->host_links = xcalloc(worker->host_count + 1, sizeof(*worker->host_links));
	for (uint32_t i = worker->link_count; i-- > 0;)
		worker->host_links[worker->links[i]->host_number] = i;
	worker->host_links[worker->host_count] = worker->link_count;
	if (worker->epoll < 0)
		return error_set_errno(err, EMFILE, "epoll");
	rc = pthread_create(&worker->thread, NULL, stress_worker_main, worker);
	return rc == 0 ? 0 : error_set_errno(err, rc, "a worker cannot be started");
}

void
stress_worker_join(struct stress_worker *worker)
{
	pthread_join(worker->thread, NULL);
}

void
stress_worker_free(struct stress_worker *worker)
{
	for (uint32_t i = 0; i < worker->link_count; i++) {
		if (worker->links[i]->connection.fd >= 0)
			epoll_ctl(
			    worker->epoll, EPOLL_CTL_DEL, worker->links[i]->connection.fd, NULL);
		worker->links[i]->worker = NULL;
	}
	close(worker->epoll);
	for (uint32_t i = 0; i < worker->client_count; i++)
		stress_client_fini(worker, &worker->clients[i]);
	for (uint32_t i = 0; i < worker->run->operation_count; i++)
		stress_maker_fini(&worker->makers[i]);
	pthread_mutex_destroy(&worker->mutex);
	arena_fini(&worker->responses);
	free(worker->makers);
	free(worker->clients);
	free(worker->links);
	free(worker->host_links);
	free(worker->timings);
	free(worker->taken);
	free(worker);
}

struct stress_timing *
stress_worker_take(struct stress_worker *worker)
{
	struct stress_timing *taken;

	/* What was taken last is in the sums by now. */
	for (uint32_t i = 0; i < worker->run->operation_count; i++)
		stress_timing_clear(&worker->taken[i]);
	pthread_mutex_lock(&worker->mutex);
	taken = worker->timings;
	worker->timings = worker->taken;
	worker->taken = taken;
	pthread_mutex_unlock(&worker->mutex);
	return taken;
}
