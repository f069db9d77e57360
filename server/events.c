/* SPDX-License-Identifier: Apache-2.0 */
#include "server/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/message.h"
#include "server/connection.h"
#include "server/network_internal.h"

/* One event on its way to one loop; a loop's copy is its own. */
struct events_message {
	struct loop_message message; /* first */
	unsigned registered; /* REGISTER_* bit of who wants it */
	bool is_schema;
	struct schema_change schema;
	struct node_event node;
	struct arena arena; /* the schema change's strings */
};

static void
events_encode(const struct events_message *event, uint8_t version, struct buffer *out)
{
	struct response response =
	    response_begin(out, version, ENVELOPE_STREAM_EVENT, OPCODE_EVENT, 0, NULL);

	if (event->is_schema)
		response_put_schema_event(out, version, &event->schema);
	else
		response_put_node_event(out, &event->node);
	response_end(&response, COMPRESSION_NONE);
}

static void
events_drop(struct loop_message *message)
{
	struct events_message *event = (struct events_message *)message;

	arena_fini(&event->arena);
	free(event);
}

static void
events_run(struct loop_message *message, struct loop *loop)
{
	struct events_message *event = (struct events_message *)message;
	struct buffer encoded[PROTOCOL_VERSION_MAX + 1], copy;

	for (int version = 0; version <= PROTOCOL_VERSION_MAX; version++)
		buffer_init(&encoded[version]);
	buffer_init(&copy);
	for (struct connection *connection = loop->connections; connection != NULL;
	     connection = connection->next) {
		uint8_t version = connection->handshake.version;
		unsigned wanted =
		    atomic_load_explicit(&connection->client.events, memory_order_relaxed);

		if ((wanted & event->registered) == 0 || version > PROTOCOL_VERSION_MAX ||
		    connection->handshake.state != HANDSHAKE_READY)
			continue;
		if (encoded[version].size == 0)
			events_encode(event, version, &encoded[version]);
		buffer_clear(&copy);
		buffer_put(&copy, encoded[version].data, encoded[version].size);
		connection_append(connection, &copy);
	}
	for (int version = 0; version <= PROTOCOL_VERSION_MAX; version++)
		buffer_fini(&encoded[version]);
	buffer_fini(&copy);
	events_drop(message);
}

static struct events_message *
events_new(unsigned registered)
{
	struct events_message *event = xzalloc(sizeof(*event));

	event->message.run = events_run;
	event->message.drop = events_drop;
	event->registered = registered;
	arena_init(&event->arena, 256);
	return event;
}

void
events_push_schema(struct network *network, const struct schema_change *change)
{
	for (uint32_t i = 0; network != NULL && i < network->loop_count; i++) {
		struct events_message *event;
		struct slice *arguments = NULL;

		if (network->loops[i].base == NULL)
			continue;
		event = events_new(REGISTER_SCHEMA_CHANGE);
		event->is_schema = true;
		event->schema = *change;
		event->schema.keyspace = arena_copy(&event->arena, change->keyspace);
		event->schema.name = arena_copy(&event->arena, change->name);
		if (change->argument_count > 0)
			arguments =
			    arena_calloc(&event->arena, change->argument_count, sizeof(*arguments));
		if (arguments == NULL)
			event->schema.argument_count = 0;
		for (uint32_t j = 0; j < event->schema.argument_count; j++)
			arguments[j] = arena_copy(&event->arena, change->arguments[j]);
		event->schema.arguments = arguments;
		loop_post(&network->loops[i], &event->message);
	}
}

void
events_push_node(struct network *network, const struct node_event *change)
{
	bool is_topology =
	    change->kind == NODE_EVENT_NEW_NODE || change->kind == NODE_EVENT_REMOVED_NODE;

	for (uint32_t i = 0; network != NULL && i < network->loop_count; i++) {
		struct events_message *event;

		if (network->loops[i].base == NULL)
			continue;
		event = events_new(is_topology ? REGISTER_TOPOLOGY_CHANGE : REGISTER_STATUS_CHANGE);
		event->node = *change;
		loop_post(&network->loops[i], &event->message);
	}
}
