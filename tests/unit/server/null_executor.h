/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_NULL_EXECUTOR_H
#define HELENUS_TESTS_NULL_EXECUTOR_H

/*
 * An executor that answers every frame with a canned result, so that the network stage can be tested
 * and measured alone. Included once by a program: it stands in for server/executor.c. What the body of a
 * QUERY says, it does: "SLEEP n" sleeps n ms on a stage, "BIG n" answers n bytes, "LATER" is answered by
 * another thread; PREPARE makes every marker a blob; an EXECUTE of a SELECT has a row of the stress tool's
 * standard1, always the same; anything else is Void.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "cql/type.h"
#include "protocol/message.h"
#include "protocol/response.h"
#include "server/executor.h"
#include "server/node.h"

struct executor {
	struct node *node;
	atomic_int later; /* threads that still run */
};

/* The first byte of a prepared id says what an EXECUTE of it is answered with. */
enum { NULL_ID_ROWS = 'R', NULL_ID_VOID = 'V' };

#define NULL_COLUMN(column)                                                                        \
	{                                                                                          \
		.keyspace = {(const uint8_t *)"null", 4}, .table = {(const uint8_t *)"null", 4},   \
		.name = {                                                                          \
			(const uint8_t *)column,                                                   \
			sizeof(column) - 1                                                         \
		}                                                                                  \
	}

static struct column_spec null_specs[] = {NULL_COLUMN("key"), NULL_COLUMN("C0"), NULL_COLUMN("C1"),
    NULL_COLUMN("C2"), NULL_COLUMN("C3"), NULL_COLUMN("C4")};
enum { NULL_COLUMNS = sizeof(null_specs) / sizeof(null_specs[0]) };
static const struct columns_metadata null_columns = {
    .columns = null_specs, .column_count = NULL_COLUMNS};

static void
null_rows(struct request *request)
{
	static const char value[34] = "every row of this server is canned";
	struct response_rows rows = response_begin_rows(
	    &request->response, request->header.version, &null_columns, true, NULL);

	response_put_cell(&request->response, slice_of(value, 10));
	for (int i = 1; i < NULL_COLUMNS; i++)
		response_put_cell(&request->response, slice_of(value, sizeof(value)));
	rows.row_count++;
	response_end_rows(&request->response, &rows, slice_null);
}

struct executor *
executor_new(struct node *node)
{
	struct executor *executor = xzalloc(sizeof(*executor));

	executor->node = node;
	for (int i = 0; i < NULL_COLUMNS; i++)
		null_specs[i].type = type_native(TYPE_BLOB);
	return executor;
}

int
executor_start(struct executor *executor, struct error *err)
{
	(void)executor;
	(void)err;
	return 0;
}

void
executor_free(struct executor *executor)
{
	while (atomic_load(&executor->later) > 0)
		usleep(1000);
	free(executor);
}

void
executor_client_fini(struct executor *executor, struct client_state *client)
{
	(void)executor;
	(void)client;
}

static bool
null_says(const struct request *request, const char *word)
{
	return request->header.opcode == OPCODE_QUERY && request->body.size >= 4 + strlen(word) &&
	    memcmp(request->body.data + 4, word, strlen(word)) == 0;
}

static int
null_number(const struct request *request, const char *word)
{
	char text[16] = "";
	size_t skip = 4 + strlen(word), left = request->body.size - skip;

	memcpy(text, request->body.data + skip, left < 15 ? left : 15);
	return atoi(text);
}

enum request_stage
executor_stage_of(struct executor *executor, const struct request *request)
{
	(void)executor;
	if (null_says(request, "SLEEP "))
		return REQUEST_STAGE_REQUEST;
	return request->header.opcode == OPCODE_QUERY ? REQUEST_STAGE_READ : REQUEST_STAGE_MUTATION;
}

/* The word before a marker, "C0" of `"C0" = ?` and key of KEY=?; blobs, for there is no schema. */
static struct slice
null_marker_name(struct slice query, size_t at, char *folded, size_t size)
{
	size_t end, start;
	bool is_quoted;

	while (at > 0 && strchr(" =+<>", query.data[at - 1]) != NULL)
		at--;
	is_quoted = at > 0 && query.data[at - 1] == '"';
	end = at - is_quoted;
	for (start = end; start > 0 && strchr(" ,\".(", query.data[start - 1]) == NULL; start--)
		;
	for (size_t i = 0; i < end - start && i < size; i++)
		folded[i] =
		    is_quoted ? (char)query.data[start + i] : (char)tolower(query.data[start + i]);
	return slice_of(folded, end - start < size ? end - start : size);
}

/* Prepared, so that clients that look at the markers can be measured as well. */
static void
null_prepared(struct request *request)
{
	enum { MARKERS = 64, NAME = 32 };
	struct slice query = message_peek_query(&(struct envelope){request->header, request->body});
	char names[MARKERS][NAME];
	struct column_spec columns[MARKERS];
	uint8_t id[16];
	struct prepared_info info = {
	    .id = id, .result_metadata_id = id, .markers.columns = columns};

	md5(query, id);
	id[0] =
	    strncasecmp((const char *)query.data, "select", query.size < 6 ? query.size : 6) == 0
	    ? NULL_ID_ROWS
	    : NULL_ID_VOID;
	if (id[0] == NULL_ID_ROWS)
		info.result = null_columns;
	for (size_t i = 0; i < query.size && info.markers.column_count < MARKERS; i++) {
		uint32_t at = info.markers.column_count;

		if (query.data[i] != '?')
			continue;
		columns[at] = (struct column_spec){.keyspace = slice_of_string("null"),
		    .table = slice_of_string("null"),
		    .name = null_marker_name(query, i, names[at], NAME),
		    .type = type_native(TYPE_BLOB)};
		info.markers.column_count++;
	}
	response_put_prepared(&request->response, request->header.version, &info);
}

static void
null_answer(struct request *request)
{
	struct response response;

	if (null_says(request, "BIG ")) {
		int size = null_number(request, "BIG ");

		response = response_begin(&request->response, request->header.version,
		    request->header.stream, OPCODE_RESULT, 0, NULL);
		for (int i = 0; i < size; i++)
			buffer_put_u8(&request->response, (uint8_t)(i * 31 ^ i >> 8));
	} else if (request->header.opcode == OPCODE_AUTH_RESPONSE) {
		response = response_begin(&request->response, request->header.version,
		    request->header.stream, OPCODE_AUTH_SUCCESS, 0, NULL);
		response_put_token(&request->response, slice_null);
	} else if (request->header.opcode == OPCODE_PREPARE) {
		response = response_begin(&request->response, request->header.version,
		    request->header.stream, OPCODE_RESULT, 0, NULL);
		null_prepared(request);
	} else {
		struct slice id =
		    message_peek_prepared_id(&(struct envelope){request->header, request->body});

		response = response_begin(&request->response, request->header.version,
		    request->header.stream, OPCODE_RESULT, 0, NULL);
		if (id.size > 0 && id.data[0] == NULL_ID_ROWS)
			null_rows(request);
		else
			response_put_void(&request->response);
	}
	response_end(&response, COMPRESSION_NONE);
}

static void *
null_later(void *argument)
{
	struct request *request = argument;
	struct executor *executor = request->executor;

	usleep(2000);
	null_answer(request);
	request_done(request, NULL);
	atomic_fetch_sub(&executor->later, 1);
	return NULL;
}

void
executor_ahead(struct executor *executor, struct task *first, size_t count)
{
	(void)executor;
	(void)first;
	(void)count;
}

void
executor_run(struct request *request, struct worker *worker)
{
	if (null_says(request, "SLEEP "))
		usleep((useconds_t)null_number(request, "SLEEP ") * 1000);
	if (null_says(request, "LATER")) {
		pthread_t thread;

		atomic_fetch_add(&request->executor->later, 1);
		pthread_create(&thread, NULL, null_later, request);
		pthread_detach(thread);
		return;
	}
	request->metric = REQUEST_METRIC_WRITE;
	null_answer(request);
	request_done(request, worker);
}

static void
null_error(struct request *request, struct worker *worker, enum error_code code, const char *text)
{
	struct error err;

	error_set(&err, code, "%s", text);
	response_put_error_envelope(
	    &request->response, request->header.version, request->header.stream, 0, &err);
	request_done(request, worker);
}

void
executor_time_out(struct request *request, struct worker *worker)
{
	null_error(request, worker, ERROR_OVERLOADED, "timed out");
}

void
executor_overloaded(struct request *request, struct worker *worker)
{
	null_error(request, worker, ERROR_OVERLOADED, "overloaded");
}

/* Its reads are none of anybody's tables. */
void
executor_note_slow(struct executor *executor, const struct request *request, uint64_t us)
{
	(void)executor;
	(void)request;
	(void)us;
}

#endif
