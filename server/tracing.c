/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tracing.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cql/value.h"
#include "server/execution.h"
#include "server/internal_query.h"
#include "server/node.h"
#include "server/stage.h"

enum {
	TRACING_TEXT_MAX = 1024,
	TRACING_THREAD_MAX = 64,
	TRACING_VALUE_MAX = 1000,
	TRACING_PARAMETERS_MAX = 4, /* beside the bound values */
};

/* One event until it is written. */
struct tracing_event {
	struct executor *executor; /* borrowed */
	struct uuid session;
	uint8_t id[16];
	uint8_t type; /* enum trace_type */
	int32_t elapsed_us;
	char thread[TRACING_THREAD_MAX];
	char text[];
};

/* Outlives the request: on the heap, and with copies. */
struct tracing {
	struct executor *executor; /* borrowed */
	struct trace trace;
	int64_t started_ms;
	int32_t duration_us;
	char *request; /* owned */
	char *query; /* owned; NULL: none */
	char consistency[24], serial_consistency[24], page_size[16];
	char client[64];
	uint32_t bound_count;
	struct tracing_bound {
		char *name, *value; /* owned */
	} * bound; /* owned */
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

/* ---- Events -------------------------------------------------------------------------------- */

static int32_t
tracing_elapsed(struct env *env, const struct trace *trace)
{
	return (int32_t)((env_monotonic_ns(env) - trace->began_ns) / 1000);
}

/* Seconds. */
static void
tracing_put_ttl(const struct executor *executor, uint8_t type, uint8_t out[4])
{
	int64_t ttl_ms = type == TRACE_REPAIR ? executor->config->trace_type_repair_ttl
					      : executor->config->trace_type_query_ttl;

	store_u32(out, (uint32_t)(ttl_ms / 1000));
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

static const char *
tracing_own_address(const struct config *config)
{
	return config->broadcast_address != NULL ? config->broadcast_address
						 : config->listen_address;
}

static void
tracing_write_event(void *argument)
{
	struct tracing_event *event = argument;
	struct executor *executor = event->executor;
	const struct config *config = executor->config;
	uint8_t source[16], port[4], elapsed[4], ttl[4];
	struct slice values[8] = {slice_of(event->session.bytes, 16), slice_of(event->id, 16),
	    slice_of_string(event->text), tracing_address(tracing_own_address(config), source),
	    slice_of(elapsed, 4), slice_of(port, 4), slice_of_string(event->thread),
	    slice_of(ttl, 4)};
	struct error err;

	store_u32(port, (uint32_t)config->storage_port);
	store_u32(elapsed, (uint32_t)event->elapsed_us);
	tracing_put_ttl(executor, event->type, ttl);
	if (internal_execute_any(executor,
		"INSERT INTO system_traces.events (session_id, event_id, activity, source, "
		"source_elapsed, source_port, thread) VALUES (?, ?, ?, ?, ?, ?, ?) USING TTL ?",
		values, 8, &err) != 0)
		log_warn("an event of a trace could not be written: %s", err.text);
	free(event);
}

/* As Cassandra's threads are called: a loop that runs a stage's task in place stands for one of that. */
static void
tracing_put_thread(const struct worker *worker, char out[TRACING_THREAD_MAX])
{
	if (worker_is_current(worker) && worker->stage != NULL)
		snprintf(out, TRACING_THREAD_MAX, "%s-%u", stage_name(worker->stage),
		    (unsigned)worker->index + 1);
	else
		snprintf(out, TRACING_THREAD_MAX, "%s", log_thread_name_get());
}

void
tracing_record(void *context, const struct trace *trace, struct worker *worker, const char *text)
{
	struct node *node = context;
	size_t size = strlen(text) + 1;
	struct tracing_event *event = malloc(sizeof(*event) + size);
	struct stage *stage = node->stages[NODE_STAGE_TRACING];

	if (event == NULL)
		return;
	event->executor = node->executor;
	event->session = trace->session;
	event->type = trace->type;
	executor_next_timeuuid(node->executor, event->id);
	event->elapsed_us = tracing_elapsed(node->env, trace);
	tracing_put_thread(worker, event->thread);
	memcpy(event->text, text, size);
	if (stage == NULL || !stage_submit_work(stage, tracing_write_event, event))
		free(event);
}

void
tracing_event(struct execution *execution, const char *format, ...)
{
	char text[TRACING_TEXT_MAX];
	va_list arguments;

	if (execution->tracing == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	tracing_record(
	    execution->executor->node, &execution->tracing->trace, execution->worker, text);
}

const struct trace *
tracing_of(const struct execution *execution)
{
	return execution->tracing == NULL ? NULL : &execution->tracing->trace;
}

/* ---- The session --------------------------------------------------------------------------- */

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
	tracing->trace.type = TRACE_QUERY;
	executor_next_timeuuid(execution->executor, tracing->trace.session.bytes);
	tracing->trace.began_ns = env_monotonic_ns(execution->executor->env);
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
tracing_bound(struct execution *execution)
{
	const struct prepared_statement *plan = execution->plan;
	struct tracing *tracing = execution->tracing;
	uint32_t count = plan->marker_count;
	struct buffer text;

	tracing->bound = xcalloc(count + 1, sizeof(*tracing->bound));
	buffer_init(&text);
	for (uint32_t i = 0; i < count; i++) {
		const struct column_spec *marker = &plan->markers[i];
		const struct bound_value *value = &execution->terms.values[i];
		struct tracing_bound *bound = &tracing->bound[tracing->bound_count];

		if (value->is_unset)
			continue;
		buffer_clear(&text);
		buffer_printf(&text, "bound_var_%u_%.*s", (unsigned)i, (int)marker->name.size,
		    (const char *)marker->name.data);
		bound->name = xstrndup((const char *)text.data, text.size);
		buffer_clear(&text);
		value_to_literal(marker->type, value->value, &text);
		if (text.size > TRACING_VALUE_MAX) {
			text.size = TRACING_VALUE_MAX;
			buffer_printf(&text, "...'");
		}
		bound->value = xstrndup((const char *)text.data, text.size);
		tracing->bound_count++;
	}
	buffer_fini(&text);
}

void
tracing_id_of(const struct tracing *tracing, uint8_t out[16])
{
	memcpy(out, tracing->trace.session.bytes, sizeof(tracing->trace.session.bytes));
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void
tracing_free(struct tracing *tracing)
{
	free(tracing->request);
	free(tracing->query);
	for (uint32_t i = 0; i < tracing->bound_count; i++) {
		free(tracing->bound[i].name);
		free(tracing->bound[i].value);
	}
	free(tracing->bound);
	free(tracing);
}

static void
tracing_put(struct slice *parameters, uint32_t *pairs, const char *name, const char *value)
{
	if (value == NULL || *value == '\0')
		return;
	parameters[2 * *pairs] = slice_of_string(name);
	parameters[2 * (*pairs)++ + 1] = slice_of_string(value);
}

static int
tracing_compare(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static int
tracing_write_session(struct tracing *tracing, struct arena *arena, struct error *err)
{
	const struct config *config = tracing->executor->config;
	const struct type *type =
	    type_map(arena, type_native(TYPE_TEXT), type_native(TYPE_TEXT), false);
	struct slice *parameters, values[10];
	uint8_t client[16], coordinator[16], port[4], duration[4], started[8], ttl[4];
	uint32_t pairs = 0;

	store_u32(port, (uint32_t)config->storage_port);
	store_u32(duration, (uint32_t)tracing->duration_us);
	store_u64(started, (uint64_t)tracing->started_ms);
	tracing_put_ttl(tracing->executor, tracing->trace.type, ttl);
	parameters = arena_calloc(
	    arena, 2 * (TRACING_PARAMETERS_MAX + tracing->bound_count), sizeof(*parameters));
	if (type == NULL || parameters == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a trace");
	for (uint32_t i = 0; i < tracing->bound_count; i++)
		tracing_put(parameters, &pairs, tracing->bound[i].name, tracing->bound[i].value);
	tracing_put(parameters, &pairs, "consistency_level", tracing->consistency);
	tracing_put(parameters, &pairs, "page_size", tracing->page_size);
	tracing_put(parameters, &pairs, "query", tracing->query);
	tracing_put(parameters, &pairs, "serial_consistency_level", tracing->serial_consistency);
	qsort(parameters, pairs, 2 * sizeof(*parameters), tracing_compare);
	values[0] = slice_of(tracing->trace.session.bytes, 16);
	values[1] = tracing_address(tracing->client, client);
	values[2] = slice_of_string("QUERY");
	values[3] = tracing_address(tracing_own_address(config), coordinator);
	values[4] = slice_of(port, 4);
	values[5] = slice_of(duration, 4);
	values[6] = type_pack(type, parameters, pairs, arena);
	values[7] = slice_of_string(tracing->request);
	values[8] = slice_of(started, 8);
	values[9] = slice_of(ttl, 4);
	return internal_execute_any(tracing->executor,
	    "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, "
	    "coordinator_port, duration, parameters, request, started_at) VALUES (?, ?, ?, ?, ?, "
	    "?, "
	    "?, ?, ?) USING TTL ?",
	    values, 10, err);
}

static void
tracing_write(void *argument)
{
	struct tracing *tracing = argument;
	struct error err;
	struct arena arena;

	arena_init(&arena, 4096);
	if (tracing_write_session(tracing, &arena, &err) != 0)
		log_warn("a trace could not be written: %s", err.text);
	arena_fini(&arena);
	tracing_free(tracing);
}

void
tracing_finish(struct tracing *tracing, struct execution *execution)
{
	struct stage *stage = execution->executor->node->stages[NODE_STAGE_TRACING];

	tracing_event(execution, "Request complete");
	tracing->duration_us = tracing_elapsed(execution->executor->env, &tracing->trace);
	execution->tracing = NULL;
	/* Behind its events: a driver takes it for complete when its duration is there. */
	if (stage == NULL || !stage_submit_work(stage, tracing_write, tracing))
		tracing_free(tracing);
}
