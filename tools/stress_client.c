/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "tools/stress_worker_internal.h"

/* ---- What a client does next --------------------------------------------------------------------------- */

void
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

void
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
	buffer_clear(&client->followup);
	if (stress_client_operation(worker, client)->kind == STRESS_OP_SCAN &&
	    !client->cursors[client->operation].is_open &&
	    stress_scan_is_over(stress_client_operation(worker, client)->scan)) {
		stress_client_end(worker, client);
		return;
	}
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

struct stress_link *
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

	if (maker->operation->kind == STRESS_OP_SCAN)
		rc = stress_scan_put(maker->operation->scan, &client->cursors[client->operation],
		    worker->run->is_warmup, &client->envelope, version, &client->request, err);
	else if (maker->operation->kind >= STRESS_OP_INSERT)
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

/* The request of a conditional write is a SELECT, and the write behind it, which waits for the answer. */
static bool
stress_client_is_before_write(
    const struct stress_worker *worker, const struct stress_client *client)
{
	return stress_client_operation(worker, client)->condition != NULL &&
	    client->followup.size == 0;
}

static int
stress_client_put_kept(const struct stress_worker *worker, struct stress_client *client,
    struct buffer *out, struct error *err)
{
	size_t start = out->size;

	if (stress_client_is_before_write(worker, client))
		buffer_put(out, client->envelope.data, client->request.second_at);
	else if (client->followup.size > 0)
		buffer_put_slice(out, buffer_slice(&client->followup));
	else
		buffer_put_slice(out, buffer_slice(&client->envelope));
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
	const struct stress_statement *statement = stress_client_is_before_write(worker, client)
	    ? &stress_client_operation(worker, client)->condition->select
	    : client->request.statement;
	struct client_message request = {
	    .version = client->link->connection.version,
	    .opcode = OPCODE_PREPARE,
	    .stream = client->stream,
	    .prepare.query = slice_of_string(statement->query),
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
		return stress_client_put_kept(worker, client, out, err);
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

void
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
	if (client->cursors != NULL && stress_client_operation(worker, client)->scan != NULL)
		stress_cursor_print(&client->cursors[client->operation], &text);
	else
		stress_maker_print_keys(
		    &worker->makers[client->operation], &client->request, &text);
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

void
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

void
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
	if (client->followup.size > 0 ||
	    stress_client_operation(worker, client)->kind == STRESS_OP_VALIDATE)
		client->request.rows = 0; /* from the first page again */
	buffer_clear(&client->followup);
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
	const struct stress_operation *operation = stress_client_operation(worker, client);
	bool is_good = true;

	if (operation->kind == STRESS_OP_VALIDATE && !worker->run->settings->skip_read_validation)
		is_good = stress_maker_take_page(
		    &worker->makers[client->operation], &client->request, rows);
	else
		client->request.rows += rows->row_count;
	if (!is_good || operation->condition != NULL || client->request.page_at == 0 ||
	    slice_is_null(rows->metadata.paging_state)) {
		stress_client_finish(worker, client, is_good, client->request.rows,
		    client->request.rows > 0 ? 1 : 0, NULL);
		return;
	}
	/* The kept request never has a paging state itself: each page is made from it. */
	buffer_clear(&client->followup);
	stress_request_put_page(&client->request, buffer_slice(&client->envelope),
	    client->envelope.data[0] & 0x7f, rows->metadata.paging_state, &client->followup);
	stress_client_send(worker, client);
}

/* What a condition has to be compared with is there: now the write. */
static void
stress_client_take_condition(
    struct stress_worker *worker, struct stress_client *client, const struct client_rows *rows)
{
	size_t at = client->request.second_at;
	struct error err;

	if (stress_condition_put_write(stress_client_operation(worker, client)->condition,
		slice_of(client->envelope.data + at, client->envelope.size - at), &client->request,
		client->envelope.data[0] & 0x7f, rows, &client->followup, &err) != 0)
		stress_client_fail(
		    worker, client, "DriverInternalError", slice_of_string(err.text), true);
	else
		stress_client_send(worker, client);
}

static void
stress_client_take_scan(
    struct stress_worker *worker, struct stress_client *client, const struct client_rows *rows)
{
	stress_client_finish(worker, client, true, rows->row_count,
	    stress_scan_take(&client->cursors[client->operation], rows, worker->run->is_warmup),
	    NULL);
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
	case STRESS_OP_VALIDATE:
		if (stress_client_is_before_write(worker, client))
			stress_client_take_condition(worker, client, rows);
		else
			stress_client_take_page(worker, client, rows);
		return;
	case STRESS_OP_SCAN:
		stress_client_take_scan(worker, client, rows);
		return;
	default: /* a conditional write says whether it was applied */
		stress_client_finish(
		    worker, client, true, client->request.rows, client->request.partitions, NULL);
		return;
	}
	stress_client_finish(worker, client, is_good, rows->row_count, rows->row_count, NULL);
}

void
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
		if (response.error.code == STRESS_UNPREPARED && !client->is_preparing &&
		    client->request.statement != NULL) {
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
