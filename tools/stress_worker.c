/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"

enum {
	STRESS_EVENTS = 64,
	STRESS_RECONNECT_MS = 1000, /* how long a try may take: others wait meanwhile */
	STRESS_PAUSE_NS =
	    100 * 1000 * 1000, /* after a failed try, of a connection or an operation */
	STRESS_RECONNECT_DOUBLINGS = 6, /* of the pause: a node that is away holds up little */
	STRESS_CHECK_NS = 250 * 1000 * 1000, /* for requests that are out of time */
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
	struct buffer scratch;
	int64_t now_ns; /* when the last response was taken, or the loop woke */
	int64_t timestamp_us; /* of the last write */
	int64_t clock_offset_us; /* from the monotonic clock to the time of day */
	int64_t next_check_ns;

	/* Guarded by mutex, which the worker holds but while it waits. */
	pthread_mutex_t mutex;
	struct stress_timing *timings; /* those that are written */
	struct stress_timing *taken; /* those that the reporter has */
};

int64_t
stress_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* ---- Queues of clients --------------------------------------------------------------------------------- */

static void
stress_queue_init(struct stress_queue *queue)
{
	queue->first = NULL;
	queue->last = &queue->first;
}

static void
stress_queue_put(struct stress_queue *queue, struct stress_client *client)
{
	client->next = NULL;
	*queue->last = client;
	queue->last = &client->next;
}

static struct stress_client *
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

/* ---- What a client does next --------------------------------------------------------------------------- */

static void stress_client_next(struct stress_worker *worker, struct stress_client *client);
static void stress_client_send(struct stress_worker *worker, struct stress_client *client);
static void stress_client_finish(struct stress_worker *worker, struct stress_client *client,
    bool is_good, uint64_t rows, uint64_t partitions, const char *failure);

static const struct stress_operation *
stress_client_operation(const struct stress_worker *worker, const struct stress_client *client)
{
	return &worker->run->operations[client->operation];
}

static void
stress_client_end(struct stress_worker *worker, struct stress_client *client)
{
	client->state = STRESS_CLIENT_DONE;
	worker->active--;
	if (atomic_fetch_sub_explicit(&worker->run->clients, 1, memory_order_relaxed) == 1)
		atomic_store_explicit(
		    &worker->run->last_end_ns, stress_now_ns(), memory_order_relaxed);
}

/* Up to `wanted` partitions; 0: the work is over. */
static uint32_t
stress_run_take_permits(struct stress_run *run, uint32_t wanted)
{
	long long left;

	if (atomic_load_explicit(&run->is_stopped, memory_order_relaxed))
		return 0;
	if (!run->has_end)
		return wanted;
	left = atomic_load_explicit(&run->permits, memory_order_relaxed);
	do {
		if (left <= 0)
			return 0;
		if (left < wanted)
			wanted = (uint32_t)left;
	} while (!atomic_compare_exchange_weak_explicit(
	    &run->permits, &left, left - wanted, memory_order_relaxed, memory_order_relaxed));
	return wanted;
}

/* Mixes run some operations of a kind, then draw the next kind by its share. */
static void
stress_client_choose(struct stress_worker *worker, struct stress_client *client)
{
	const struct stress_run *run = worker->run;
	double total, drawn;
	uint32_t i;

	if (run->operation_count == 1)
		return;
	while (client->run_left <= 0) {
		client->run_left = stress_distribution_next(&worker->clustering);
		total = 0;
		for (i = 0; i < run->operation_count; i++)
			total += run->operations[i].share;
		drawn = stress_random_double(&worker->random) * total;
		for (i = 0; i + 1 < run->operation_count; i++) {
			drawn -= run->operations[i].share;
			if (drawn < 0)
				break;
		}
		client->operation = i;
	}
	client->run_left--;
}

static void
stress_client_next(struct stress_worker *worker, struct stress_client *client)
{
	struct stress_run *run = worker->run;
	uint32_t wanted = 1;

	stress_client_choose(worker, client);
	client->state = STRESS_CLIENT_IDLE;
	client->tries = 0;
	client->started_ns = 0;
	client->intended_ns = 0;
	client->is_made = false;
	client->is_preparing = false;
	buffer_clear(&client->envelope);
	if (stress_client_operation(worker, client)->kind == STRESS_OP_INSERT) {
		int64_t drawn =
		    stress_distribution_next(&worker->makers[client->operation].batch_size);

		wanted = drawn > 0 && drawn <= INT32_MAX ? (uint32_t)drawn : 0;
	}
	client->permits = wanted > 0 ? stress_run_take_permits(run, wanted) : 0;
	if (client->permits == 0) {
		stress_client_end(worker, client);
		return;
	}
	if (run->interval_ns == 0) {
		stress_client_send(worker, client);
		return;
	}
	client->intended_ns = run->start_ns +
	    (int64_t)atomic_fetch_add_explicit(&run->due, client->permits, memory_order_relaxed) *
		run->interval_ns;
	if (client->intended_ns <= worker->now_ns) {
		stress_client_send(worker, client);
		return;
	}
	client->state = STRESS_CLIENT_DUE;
	stress_queue_put(&worker->due, client);
}

/* ---- Sending ------------------------------------------------------------------------------------------- */

static bool
stress_link_has_room(const struct stress_link *link)
{
	return link->connection.fd >= 0 && link->free_count > 0;
}

/* A link to a node that has the partition, each in turn. NULL: none that is up and has room. */
static struct stress_link *
stress_client_route(struct stress_worker *worker, struct stress_client *client)
{
	const struct stress_placement *placement =
	    stress_client_operation(worker, client)->placement;
	const uint16_t *hosts = stress_placement_find(placement, client->token);
	uint32_t count = 0;

	while (count < placement->width && hosts[count] != STRESS_NO_HOST)
		count++;
	worker->route_turn++;
	for (uint32_t i = 0; i < count; i++) {
		uint16_t host = hosts[(worker->route_turn + i) % count];
		uint32_t first = worker->host_links[host],
			 links = worker->host_links[host + 1] - first;

		for (uint32_t j = 0; j < links; j++) {
			struct stress_link *link =
			    worker->links[first + (client->number + j) % links];

			if (stress_link_has_room(link))
				return link;
		}
	}
	return NULL;
}

/* A link with a free stream: always the same where all go to one node, else each in turn. NULL: none;
 * *is_any: at least one is open. */
static struct stress_link *
stress_client_pick(struct stress_worker *worker, struct stress_client *client, bool *is_any)
{
	uint32_t count = worker->link_count;
	struct stress_link *link = client->last_link;

	*is_any = true;
	if (client->is_preparing && link != NULL && stress_link_has_room(link))
		return link;
	if (client->envelope.size > 0 &&
	    stress_client_operation(worker, client)->placement != NULL) {
		link = stress_client_route(worker, client);
		if (link != NULL)
			return link;
	}
	*is_any = false;
	for (uint32_t i = 0; i < count; i++) {
		link = worker->links[(client->turn + i) % count];
		if (link->connection.fd < 0)
			continue;
		*is_any = true;
		if (link->free_count == 0)
			continue;
		client->turn = (client->turn + i) % count;
		return link;
	}
	return NULL;
}

static void
stress_client_pause(struct stress_worker *worker, struct stress_client *client)
{
	client->state = STRESS_CLIENT_PAUSED;
	client->pause_until_ns = worker->now_ns + STRESS_PAUSE_NS;
	stress_queue_put(&worker->paused, client);
}

static int64_t
stress_worker_timestamp(struct stress_worker *worker)
{
	int64_t now = worker->now_ns / 1000 + worker->clock_offset_us;

	/* Each write later than the one before, as drivers have it. */
	worker->timestamp_us = now > worker->timestamp_us ? now : worker->timestamp_us + 1;
	return worker->timestamp_us;
}

/* v3 and v4 compress the body. */
static void
stress_link_close_envelope(struct stress_link *link, struct buffer *out, size_t start)
{
	if (link->connection.is_framed || link->connection.compression == COMPRESSION_NONE ||
	    !compression_close_body(
		link->connection.compression, out, start + ENVELOPE_HEADER_SIZE))
		return;
	out->data[start + 1] |= ENVELOPE_COMPRESSED;
	buffer_patch_u32(out, start + 5, (uint32_t)(out->size - start - ENVELOPE_HEADER_SIZE));
}

/* A predefined request appended to `out`. As stress_maker_put(). */
static int
stress_client_put_predefined(struct stress_worker *worker, struct stress_client *client,
    uint8_t version, struct buffer *out, bool *is_over, struct error *err)
{
	struct stress_maker *maker = &worker->makers[client->operation];
	bool is_new = !client->is_made;
	int rc;

	do {
		if (is_new &&
		    !stress_seeds_next(worker->run->seeds, &maker->population,
			stress_operation_is_write(maker->operation), &client->request.seed)) {
			*is_over = true;
			return 0;
		}
		rc = stress_maker_put(maker, out, version, client->stream, &client->request, is_new,
		    stress_worker_timestamp(worker), err);
	} while (rc == 0);
	return rc;
}

/* The request that is kept and sent at each try. As stress_maker_put(). */
static int
stress_client_make(
    struct stress_worker *worker, struct stress_client *client, bool *is_over, struct error *err)
{
	struct stress_maker *maker = &worker->makers[client->operation];
	uint8_t version = worker->links[0]->version;
	int rc;

	if (maker->operation->kind == STRESS_OP_INSERT || maker->operation->kind == STRESS_OP_QUERY)
		rc = stress_maker_put_user(maker, worker->run->seeds, &client->envelope, version,
		    client->permits, &client->request, stress_worker_timestamp(worker), is_over,
		    err);
	else
		rc = stress_client_put_predefined(
		    worker, client, version, &client->envelope, is_over, err);
	if (rc > 0 && maker->operation->placement != NULL)
		client->token = stress_maker_token(maker);
	return rc;
}

static int
stress_client_put_kept(struct stress_client *client, struct buffer *out, struct error *err)
{
	size_t start = out->size;

	buffer_put(out, client->envelope.data, client->envelope.size);
	if (buffer_check(out, err) != 0)
		return -1;
	store_u16(out->data + start + 2, (uint16_t)client->stream);
	stress_link_close_envelope(client->link, out, start);
	return 1;
}

static void
stress_client_put_prepare(
    struct stress_worker *worker, struct stress_client *client, struct buffer *out)
{
	struct client_message request = {
	    .version = client->link->connection.version,
	    .opcode = OPCODE_PREPARE,
	    .stream = client->stream,
	    .prepare.query =
		slice_of_string(stress_client_operation(worker, client)->statement->query),
	};

	client_put_request(out, &request, COMPRESSION_NONE, NULL);
}

/* What the client has to send next, into the buffer of its link. */
static int
stress_client_put(
    struct stress_worker *worker, struct stress_client *client, bool *is_over, struct error *err)
{
	struct stress_link *link = client->link;
	struct buffer *out = stress_connection_out(&link->connection);
	size_t start;
	int rc;

	if (out == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory");
	if (client->is_preparing) {
		stress_client_put_prepare(worker, client, out);
		return 1;
	}
	if (stress_operation_keeps_request(stress_client_operation(worker, client)))
		return stress_client_put_kept(client, out, err);
	start = out->size;
	rc = stress_client_put_predefined(
	    worker, client, link->connection.version, out, is_over, err);
	if (rc > 0)
		stress_link_close_envelope(link, out, start);
	return rc;
}

static void
stress_client_give_back_stream(struct stress_client *client)
{
	struct stress_link *link = client->link;

	link->streams[client->stream] = NULL;
	link->free_streams[link->free_count++] = client->stream;
	client->link = NULL;
}

/* It was not sent: what becomes of it? As stress_maker_put(). */
static void
stress_client_not_sent(struct stress_worker *worker, struct stress_client *client, int rc,
    bool is_over, const struct error *err)
{
	if (is_over)
		stress_client_end(worker, client);
	else if (rc == 0) /* no rows to write: done already */
		stress_client_finish(worker, client, true, 0, client->request.partitions, NULL);
	else
		stress_client_finish(worker, client, false, 0, 0, err->text);
}

static void
stress_client_send(struct stress_worker *worker, struct stress_client *client)
{
	const struct stress_operation *operation = stress_client_operation(worker, client);
	struct error err = {.code = ERROR_NONE};
	bool is_any, is_over = false;
	struct stress_link *link;
	int rc = 1;

	if (client->started_ns == 0)
		client->started_ns = worker->now_ns;
	if (stress_operation_keeps_request(operation) && client->envelope.size == 0)
		rc = stress_client_make(worker, client, &is_over, &err);
	if (rc <= 0) {
		stress_client_not_sent(worker, client, rc, is_over, &err);
		return;
	}
	link = stress_client_pick(worker, client, &is_any);
	if (link == NULL && is_any) {
		client->state = STRESS_CLIENT_QUEUED;
		stress_queue_put(&worker->queued, client);
		return;
	}
	if (link == NULL) {
		stress_client_pause(worker, client);
		return;
	}
	client->link = client->last_link = link;
	client->stream = link->free_streams[--link->free_count];
	link->streams[client->stream] = client;
	rc = stress_client_put(worker, client, &is_over, &err);
	client->sent_ns = worker->now_ns;
	if (rc > 0) {
		client->is_made |= !client->is_preparing;
		client->state = STRESS_CLIENT_SENT;
		link->is_dirty = true;
		return;
	}
	stress_client_give_back_stream(client);
	stress_client_not_sent(worker, client, rc, is_over, &err);
}

/* ---- The end of an operation ----------------------------------------------------------------------------- */

static void
stress_client_record(struct stress_worker *worker, struct stress_client *client, bool is_good,
    uint64_t rows, uint64_t partitions)
{
	struct stress_timing *timing = &worker->timings[client->operation];
	int64_t now = stress_now_ns();

	worker->now_ns = now;
	timing->rows += rows;
	timing->partitions += partitions;
	timing->errors += !is_good;
	if (client->intended_ns != 0) {
		stress_histogram_add(&timing->response, now - client->intended_ns);
		stress_histogram_add(&timing->wait, client->started_ns - client->intended_ns);
	}
	stress_histogram_add(&timing->service, now - client->started_ns);
}

/* "Operation x10 on key(s) [..]: ...", which ends the run or is only told. */
static void
stress_client_tell_failure(
    struct stress_worker *worker, struct stress_client *client, const char *failure)
{
	struct stress_run *run = worker->run;
	FILE *output = run->output != NULL ? run->output : stderr;
	struct buffer text;

	buffer_init(&text);
	buffer_printf(&text, "Operation x%d on key(s) ", client->tries);
	stress_maker_print_keys(&worker->makers[client->operation], &client->request, &text);
	buffer_printf(&text, ": %s%s", failure != NULL ? "Error executing: " : "",
	    failure != NULL ? failure : "Data returned was not validated");
	pthread_mutex_lock(&run->failure_mutex);
	if (!run->settings->ignore_errors)
		fprintf(output, "java.io.IOException: %.*s\n\n", (int)text.size, (char *)text.data);
	else if (run->settings->log_level > STRESS_LOG_MINIMAL)
		fprintf(stderr, "%.*s\n\n", (int)text.size, (char *)text.data);
	pthread_mutex_unlock(&run->failure_mutex);
	buffer_fini(&text);
}

static void
stress_client_finish(struct stress_worker *worker, struct stress_client *client, bool is_good,
    uint64_t rows, uint64_t partitions, const char *failure)
{
	stress_client_record(worker, client, is_good, rows, partitions);
	if (!is_good) {
		stress_client_tell_failure(worker, client, failure);
		if (!worker->run->settings->ignore_errors) {
			atomic_store(&worker->run->is_failed, true);
			atomic_store(&worker->run->is_stopped, true);
			stress_client_end(worker, client);
			return;
		}
	}
	stress_client_next(worker, client);
}

/* A try has failed: say so, and try again while tries are left. */
static void
stress_client_fail(struct stress_worker *worker, struct stress_client *client,
    const char *exception, struct slice text, bool pauses)
{
	const struct stress_settings *settings = worker->run->settings;
	char failure[ERROR_TEXT_MAX];

	client->tries++;
	if (settings->log_level > STRESS_LOG_MINIMAL)
		fprintf(stderr, "com.datastax.driver.core.exceptions.%s: %.*s\n", exception,
		    (int)text.size, (const char *)text.data);
	if (client->tries >= settings->tries) {
		snprintf(failure, sizeof(failure), "(%s): %.*s", exception, (int)text.size,
		    (const char *)text.data);
		stress_client_finish(worker, client, false, client->request.rows,
		    client->request.partitions, failure);
		return;
	}
	if (stress_client_operation(worker, client)->kind == STRESS_OP_QUERY)
		client->request.rows = 0; /* from the first page again */
	if (pauses)
		stress_client_pause(worker, client);
	else
		stress_client_send(worker, client);
}

/* ---- Responses --------------------------------------------------------------------------------------------- */

static const char *
stress_exception_name(uint32_t code)
{
	switch (code) {
	case 0x0000:
		return "ServerError";
	case 0x000a:
		return "ProtocolError";
	case 0x1000:
		return "UnavailableException";
	case 0x1001:
		return "OverloadedException";
	case 0x1002:
		return "BootstrappingException";
	case 0x1003:
		return "TruncateException";
	case 0x1100:
		return "WriteTimeoutException";
	case 0x1200:
		return "ReadTimeoutException";
	case 0x1300:
		return "ReadFailureException";
	case 0x1400:
		return "FunctionExecutionException";
	case 0x1500:
		return "WriteFailureException";
	case 0x1700:
		return "CASWriteUnknownException";
	case 0x2000:
		return "SyntaxError";
	case 0x2100:
		return "UnauthorizedException";
	case 0x2200:
		return "InvalidQueryException";
	case 0x2300:
		return "InvalidConfigurationInQueryException";
	default:
		return "DriverException";
	}
}

enum { STRESS_UNPREPARED = 0x2500, STRESS_OVERLOADED = 0x1001 };

/* A page of a user's query: more may follow. */
static void
stress_client_take_page(
    struct stress_worker *worker, struct stress_client *client, const struct client_rows *rows)
{
	client->request.rows += rows->row_count;
	if (slice_is_null(rows->metadata.paging_state) || client->request.page_at == 0) {
		stress_client_finish(worker, client, true, client->request.rows,
		    client->request.rows > 0 ? 1 : 0, NULL);
		return;
	}
	/* The kept request never has a paging state itself: each page is made from it. */
	buffer_clear(&worker->scratch);
	stress_request_put_page(&client->request, buffer_slice(&client->envelope),
	    client->envelope.data[0] & 0x7f, rows->metadata.paging_state, &worker->scratch);
	{
		struct buffer first = client->envelope;

		client->envelope = worker->scratch;
		stress_client_send(worker, client);
		worker->scratch = client->envelope;
		client->envelope = first;
	}
}

static void
stress_client_take_rows(
    struct stress_worker *worker, struct stress_client *client, const struct client_rows *rows)
{
	struct stress_maker *maker = &worker->makers[client->operation];
	bool is_good = true;

	switch (maker->operation->kind) {
	case STRESS_OP_READ:
		is_good = worker->run->settings->skip_read_validation ||
		    stress_maker_validate(maker, &client->request, rows);
		break;
	case STRESS_OP_COUNTER_READ:
		is_good = rows->row_count > 0;
		break;
	case STRESS_OP_QUERY:
		stress_client_take_page(worker, client, rows);
		return;
	default: /* a conditional write says whether it was applied */
		stress_client_finish(
		    worker, client, true, client->request.rows, client->request.partitions, NULL);
		return;
	}
	stress_client_finish(worker, client, is_good, rows->row_count, rows->row_count, NULL);
}

static void
stress_client_take_response(
    struct stress_worker *worker, struct stress_client *client, const struct envelope *envelope)
{
	struct client_response response;
	struct error err;

	arena_reset(&worker->responses);
	if (client_decode_response(envelope, &worker->responses, &response, &err) != 0) {
		stress_client_fail(
		    worker, client, "DriverInternalError", slice_of_string(err.text), true);
		return;
	}
	if (response.opcode == OPCODE_ERROR) {
		if (response.error.code == STRESS_UNPREPARED && !client->is_preparing) {
			client->is_preparing = true;
			stress_client_send(worker, client);
			return;
		}
		client->is_preparing = false;
		stress_client_fail(worker, client, stress_exception_name(response.error.code),
		    response.error.text, response.error.code == STRESS_OVERLOADED);
		return;
	}
	if (client->is_preparing) {
		client->is_preparing = false;
		stress_client_send(worker, client);
		return;
	}
	if (response.opcode == OPCODE_RESULT && response.result_kind == RESULT_ROWS)
		stress_client_take_rows(worker, client, &response.rows);
	else
		stress_client_finish(
		    worker, client, true, client->request.rows, client->request.partitions, NULL);
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

struct stress_worker *
stress_worker_new(struct stress_run *run, uint32_t index, uint32_t clients, uint32_t first_client)
{
	struct stress_worker *worker = xzalloc(sizeof(*worker));
	struct timespec day;

	worker->run = run;
	worker->index = index;
	worker->client_count = worker->active = clients;
	worker->clients = xcalloc(clients, sizeof(*worker->clients));
	for (uint32_t i = 0; i < clients; i++) {
		worker->clients[i].number = first_client + i;
		worker->clients[i].turn = i;
		buffer_init(&worker->clients[i].envelope);
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
	buffer_init(&worker->scratch);
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
		buffer_fini(&worker->clients[i].envelope);
	for (uint32_t i = 0; i < worker->run->operation_count; i++)
		stress_maker_fini(&worker->makers[i]);
	pthread_mutex_destroy(&worker->mutex);
	arena_fini(&worker->responses);
	buffer_fini(&worker->scratch);
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
