/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tracing.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "server/execution.h"
#include "server/internal_query.h"

enum { TRACING_EVENTS_MAX = 64, TRACING_TEXT_MAX = 256 };

struct tracing_event {
	uint8_t id[16];
	int32_t elapsed_us;
	char text[TRACING_TEXT_MAX];
};

/* Outlives the request: on the heap, and with copies. */
struct tracing {
	struct executor *executor; /* borrowed */
	uint8_t id[16];
	uint64_t started_ns;
	int64_t started_ms;
	int32_t duration_us;
	char *request; /* owned */
	char *query; /* owned; NULL: none */
	char consistency[24], serial_consistency[24], page_size[16];
	char client[64];
	uint32_t event_count;
	struct tracing_event events[TRACING_EVENTS_MAX];
};

static const char *
tracing_request_name(const struct execution *execution)
{
	switch (execution->message->opcode) {
	case OPCODE_QUERY:
		return "Execute CQL3 query";
	case OPCODE_PREPARE:
		return "Preparing CQL3 query";
	case OPCODE_EXECUTE:
		return "Execute CQL3 prepared query";
	default:
		return "Execute batch of CQL3 queries";
	}
}

static int32_t
tracing_elapsed(const struct tracing *tracing)
{
	return (int32_t)((env_monotonic_ns(tracing->executor->env) - tracing->started_ns) / 1000);
}

static void
tracing_add(struct tracing *tracing, const char *format, va_list arguments)
{
	struct tracing_event *event;

	if (tracing->event_count == TRACING_EVENTS_MAX)
		return;
	event = &tracing->events[tracing->event_count++];
	executor_next_timeuuid(tracing->executor, event->id);
	event->elapsed_us = tracing_elapsed(tracing);
	vsnprintf(event->text, sizeof(event->text), format, arguments);
}

void
tracing_event(struct execution *execution, const char *format, ...)
{
	va_list arguments;

	if (execution->tracing == NULL)
		return;
	va_start(arguments, format);
	tracing_add(execution->tracing, format, arguments);
	va_end(arguments);
}

static void
tracing_take_query(struct tracing *tracing, const struct execution *execution)
{
	const struct client_message *message = execution->message;
	const struct query_options *options = NULL;

	switch (message->opcode) {
	case OPCODE_QUERY:
		tracing->query =
		    xstrndup((const char *)message->query.query.data, message->query.query.size);
		options = &message->query.options;
		break;
	case OPCODE_PREPARE:
		tracing->query = xstrndup(
		    (const char *)message->prepare.query.data, message->prepare.query.size);
		break;
	case OPCODE_EXECUTE:
		options = &message->execute.options;
		break;
	case OPCODE_BATCH:
		options = &message->batch.options;
		break;
	default:
		break;
	}
	if (options == NULL)
		return;
	snprintf(tracing->consistency, sizeof(tracing->consistency), "%s",
	    consistency_name(options->consistency));
	snprintf(tracing->serial_consistency, sizeof(tracing->serial_consistency), "%s",
	    consistency_name(options->serial_consistency));
	if (options->page_size > 0)
		snprintf(tracing->page_size, sizeof(tracing->page_size), "%d", options->page_size);
}

void
tracing_begin(struct execution *execution)
{
	struct tracing *tracing = xzalloc(sizeof(*tracing));

	tracing->executor = execution->executor;
	executor_next_timeuuid(execution->executor, tracing->id);
	tracing->started_ns = env_monotonic_ns(execution->executor->env);
	tracing->started_ms = execution->now_us / 1000;
	tracing->request = xstrdup(tracing_request_name(execution));
	snprintf(tracing->client, sizeof(tracing->client), "%s", execution->client->address);
	tracing_take_query(tracing, execution);
	execution->tracing = tracing;
	if (tracing->query != NULL)
		tracing_event(execution, "Parsing %s", tracing->query);
}

void
tracing_prepared(struct execution *execution, struct slice query)
{
	struct tracing *tracing = execution->tracing;

	if (tracing != NULL && tracing->query == NULL)
		tracing->query = xstrndup((const char *)query.data, query.size);
}

void
tracing_id_of(const struct tracing *tracing, uint8_t out[16])
{
	memcpy(out, tracing->id, sizeof(tracing->id));
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void
tracing_free(struct tracing *tracing)
{
	free(tracing->request);
	free(tracing->query);
	free(tracing);
}

static struct slice
tracing_address(const char *text, uint8_t bytes[16])
{
	if (inet_pton(AF_INET, text, bytes) == 1)
		return slice_of(bytes, 4);
	if (inet_pton(AF_INET6, text, bytes) == 1)
		return slice_of(bytes, 16);
	return slice_null;
}

static void
tracing_write_session(struct tracing *tracing, struct arena *arena, struct error *err)
{
	const struct config *config = tracing->executor->config;
	const struct type *type =
	    type_map(arena, type_native(TYPE_TEXT), type_native(TYPE_TEXT), false);
	struct slice parameters[8], values[10];
	uint8_t client[16], coordinator[16], port[4], duration[4], started[8], ttl[4];
	uint32_t pairs = 0;

	store_u32(port, (uint32_t)config->storage_port);
	store_u32(duration, (uint32_t)tracing->duration_us);
	store_u64(started, (uint64_t)tracing->started_ms);
	store_u32(ttl, 24 * 60 * 60);
	if (tracing->consistency[0] != '\0') {
		parameters[0] = slice_of_string("consistency_level");
		parameters[1] = slice_of_string(tracing->consistency);
		pairs = 1;
	}
	if (tracing->page_size[0] != '\0') {
		parameters[2 * pairs] = slice_of_string("page_size");
		parameters[2 * pairs + 1] = slice_of_string(tracing->page_size);
		pairs++;
	}
	if (tracing->query != NULL) {
		parameters[2 * pairs] = slice_of_string("query");
		parameters[2 * pairs + 1] = slice_of_string(tracing->query);
		pairs++;
	}
	if (tracing->serial_consistency[0] != '\0') {
		parameters[2 * pairs] = slice_of_string("serial_consistency_level");
		parameters[2 * pairs + 1] = slice_of_string(tracing->serial_consistency);
		pairs++;
	}
	values[0] = slice_of(tracing->id, 16);
	values[1] = tracing_address(tracing->client, client);
	values[2] = slice_of_string("QUERY");
	values[3] = tracing_address(config->listen_address, coordinator);
	values[4] = slice_of(port, 4);
	values[5] = slice_of(duration, 4);
	values[6] = type == NULL ? slice_null : type_pack(type, parameters, pairs, arena);
	values[7] = slice_of_string(tracing->request);
	values[8] = slice_of(started, 8);
	values[9] = slice_of(ttl, 4);
	internal_execute(tracing->executor,
	    "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, "
	    "coordinator_port, duration, parameters, request, started_at) VALUES (?, ?, ?, ?, ?, "
	    "?, "
	    "?, ?, ?) USING TTL ?",
	    values, 10, err);
}

static void
tracing_write_events(struct tracing *tracing, struct error *err)
{
	const struct config *config = tracing->executor->config;
	uint8_t source[16], port[4], elapsed[4], ttl[4];

	store_u32(port, (uint32_t)config->storage_port);
	store_u32(ttl, 24 * 60 * 60);
	for (uint32_t i = 0; i < tracing->event_count; i++) {
		const struct tracing_event *event = &tracing->events[i];
		struct slice values[8] = {slice_of(tracing->id, 16), slice_of(event->id, 16),
		    slice_of_string(event->text), tracing_address(config->listen_address, source),
		    slice_of(elapsed, 4), slice_of(port, 4),
		    slice_of_string("Native-Transport-Requests-1"), slice_of(ttl, 4)};

		store_u32(elapsed, (uint32_t)event->elapsed_us);
		internal_execute(tracing->executor,
		    "INSERT INTO system_traces.events (session_id, event_id, activity, source, "
		    "source_elapsed, source_port, thread) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?",
		    values, 8, err);
	}
}

static void
tracing_write(void *argument)
{
	struct tracing *tracing = argument;
	struct error err;
	struct arena arena;

	error_clear(&err);
	arena_init(&arena, 4096);
	/* The session last: a driver takes it for complete when its duration is there. */
	tracing_write_events(tracing, &err);
	tracing_write_session(tracing, &arena, &err);
	if (err.code != ERROR_NONE)
		log_warn("a trace could not be written: %s", err.text);
	arena_fini(&arena);
	tracing_free(tracing);
}

void
tracing_finish(struct tracing *tracing, struct execution *execution)
{
	struct stage *stage = execution->executor->node->stages[NODE_STAGE_TRACING];

	tracing_event(execution, "Request complete");
	tracing->duration_us = tracing_elapsed(tracing);
	execution->tracing = NULL;
	if (stage == NULL || !stage_submit_work(stage, tracing_write, tracing))
		tracing_free(tracing);
}
