/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/response.h"

static const char *const schema_change_kind_names[] = {
    [SCHEMA_CREATED] = "CREATED",
    [SCHEMA_UPDATED] = "UPDATED",
    [SCHEMA_DROPPED] = "DROPPED",
};

static const char *const schema_change_target_names[] = {
    [SCHEMA_KEYSPACE] = "KEYSPACE",
    [SCHEMA_TABLE] = "TABLE",
    [SCHEMA_TYPE] = "TYPE",
    [SCHEMA_FUNCTION] = "FUNCTION",
    [SCHEMA_AGGREGATE] = "AGGREGATE",
};

static const struct {
	const char *type;
	const char *change;
} node_event_names[] = {
    [NODE_EVENT_NEW_NODE] = {"TOPOLOGY_CHANGE", "NEW_NODE"},
    [NODE_EVENT_REMOVED_NODE] = {"TOPOLOGY_CHANGE", "REMOVED_NODE"},
    [NODE_EVENT_UP] = {"STATUS_CHANGE", "UP"},
    [NODE_EVENT_DOWN] = {"STATUS_CHANGE", "DOWN"},
};

static void
response_put_name(struct buffer *buffer, const char *name)
{
	response_put_string(buffer, slice_of_string(name));
}

static void
response_put_change(struct buffer *buffer, uint8_t version, const struct schema_change *change)
{
	bool is_function = change->target == SCHEMA_FUNCTION || change->target == SCHEMA_AGGREGATE;

	if (is_function && version < 4) {
		response_put_name(buffer, schema_change_kind_names[SCHEMA_UPDATED]);
		response_put_name(buffer, schema_change_target_names[SCHEMA_KEYSPACE]);
		response_put_string(buffer, change->keyspace);
		return;
	}
	response_put_name(buffer, schema_change_kind_names[change->kind]);
	response_put_name(buffer, schema_change_target_names[change->target]);
	response_put_string(buffer, change->keyspace);
	if (change->target != SCHEMA_KEYSPACE)
		response_put_string(buffer, change->name);
	if (!is_function)
		return;
	buffer_put_u16(buffer, (uint16_t)change->argument_count);
	for (uint32_t i = 0; i < change->argument_count; i++)
		response_put_string(buffer, change->arguments[i]);
}

void
response_put_schema_event(
    struct buffer *buffer, uint8_t version, const struct schema_change *change)
{
	response_put_name(buffer, "SCHEMA_CHANGE");
	response_put_change(buffer, version, change);
}

void
response_put_schema_change(
    struct buffer *buffer, uint8_t version, const struct schema_change *change)
{
	buffer_put_u32(buffer, RESULT_SCHEMA_CHANGE);
	response_put_change(buffer, version, change);
}

void
response_put_node_event(struct buffer *buffer, const struct node_event *event)
{
	response_put_name(buffer, node_event_names[event->kind].type);
	response_put_name(buffer, node_event_names[event->kind].change);
	response_put_inet(buffer, &event->address);
}
