/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/repair_message.h"
#include "storage/merkle_tree.h"

enum { REPAIR_RANGE_SIZE = 16, REPAIR_UUID_SIZE = 16 };

static void
repair_put_ranges(const struct repair_message *message, struct buffer *out)
{
	buffer_put_vint(out, message->range_count);
	for (uint32_t i = 0; i < message->range_count; i++) {
		buffer_put_u64(out, (uint64_t)message->ranges[i].left);
		buffer_put_u64(out, (uint64_t)message->ranges[i].right);
	}
}

static void
repair_put_uuid(const struct uuid *uuid, struct buffer *out)
{
	buffer_put(out, uuid->bytes, sizeof(uuid->bytes));
}

static void
repair_put_endpoint(const struct endpoint *endpoint, struct buffer *out)
{
	uint8_t wire[ENDPOINT_WIRE_MAX];

	buffer_put(out, wire, endpoint_encode(endpoint, wire));
}

static void
repair_put_tables(const struct repair_message *message, struct buffer *out)
{
	buffer_put_vint(out, message->table_count);
	for (uint32_t i = 0; i < message->table_count; i++)
		repair_put_uuid(&message->tables[i], out);
}

static void
repair_put_keyspace(const struct repair_message *message, struct buffer *out)
{
	buffer_put_vint(out, message->keyspace.size);
	buffer_put_slice(out, message->keyspace);
}

static void
repair_put_prepare(const struct repair_message *message, struct buffer *out)
{
	repair_put_keyspace(message, out);
	buffer_put_u8(out, message->flags);
	buffer_put_u8(out, message->preview);
	buffer_put_u64(out, (uint64_t)message->repaired_at);
	repair_put_tables(message, out);
	repair_put_ranges(message, out);
	buffer_put_vint(out, message->endpoint_count);
	for (uint32_t i = 0; i < message->endpoint_count; i++)
		repair_put_endpoint(&message->endpoints[i], out);
}

void
repair_message_encode(const struct repair_message *message, struct buffer *out)
{
	repair_put_uuid(&message->parent, out);
	repair_put_uuid(&message->session, out);
	switch (message->verb) {
	case VERB_PREPARE_MSG:
		repair_put_prepare(message, out);
		break;
	case VERB_SNAPSHOT_MSG:
		repair_put_uuid(&message->table, out);
		break;
	case VERB_VALIDATION_REQ:
		repair_put_uuid(&message->table, out);
		buffer_put_u64(out, (uint64_t)message->now_seconds);
		repair_put_ranges(message, out);
		buffer_put(out, message->depths, message->range_count);
		break;
	case VERB_SYNC_REQ:
		repair_put_uuid(&message->table, out);
		buffer_put_u8(out, message->flags);
		repair_put_endpoint(&message->endpoints[0], out);
		repair_put_ranges(message, out);
		break;
	case VERB_PAXOS2_CLEANUP_REQ:
		repair_put_keyspace(message, out);
		repair_put_tables(message, out);
		repair_put_ranges(message, out);
		for (uint32_t i = 0; i < message->range_count; i++)
			buffer_put_u64(out, message->electorates[i]);
		break;
	default:
		break;
	}
}

/* ---- decoding --------------------------------------------------------------------------------------- */

static void
repair_get_uuid(struct reader *reader, struct uuid *out)
{
	struct slice bytes = reader_bytes(reader, sizeof(out->bytes));

	if (!reader->is_failed)
		memcpy(out->bytes, bytes.data, sizeof(out->bytes));
}

/* How many items follow, of at least so many bytes each: what a damaged message claims is not believed. */
static uint32_t
repair_get_count(struct reader *reader, size_t item_size)
{
	uint64_t count = reader_vint(reader);

	if (reader->is_failed || count > reader_left(reader) / item_size) {
		reader->is_failed = true;
		return 0;
	}
	return (uint32_t)count;
}

static void *
repair_room(struct reader *reader, struct arena *arena, uint32_t count, size_t size, bool *is_full)
{
	void *room = reader->is_failed ? NULL : arena_calloc(arena, (size_t)count + 1, size);

	if (room == NULL) {
		*is_full |= !reader->is_failed;
		reader->is_failed = true;
	}
	return room;
}

static void
repair_get_ranges(
    struct reader *reader, struct arena *arena, struct repair_message *out, bool *is_full)
{
	uint32_t count = repair_get_count(reader, REPAIR_RANGE_SIZE);
	struct ring_range *ranges = repair_room(reader, arena, count, sizeof(*ranges), is_full);

	if (ranges == NULL)
		return;
	for (uint32_t i = 0; i < count; i++) {
		ranges[i].left = (int64_t)reader_u64(reader);
		ranges[i].right = (int64_t)reader_u64(reader);
	}
	out->ranges = ranges;
	out->range_count = count;
}

static void
repair_get_endpoints(struct reader *reader, struct arena *arena, uint32_t count,
    struct repair_message *out, bool *is_full)
{
	struct endpoint *endpoints = repair_room(reader, arena, count, sizeof(*endpoints), is_full);

	if (endpoints == NULL)
		return;
	for (uint32_t i = 0; i < count && !reader->is_failed; i++) {
		size_t used = endpoint_decode(reader->at, reader_left(reader), &endpoints[i]);

		if (used == 0)
			reader->is_failed = true;
		else
			reader_skip(reader, used);
	}
	out->endpoints = endpoints;
	out->endpoint_count = count;
}

static void
repair_get_tables(
    struct reader *reader, struct arena *arena, struct repair_message *out, bool *is_full)
{
	uint32_t count = repair_get_count(reader, REPAIR_UUID_SIZE);
	struct uuid *tables = repair_room(reader, arena, count, sizeof(*tables), is_full);

	for (uint32_t i = 0; tables != NULL && i < count; i++)
		repair_get_uuid(reader, &tables[i]);
	out->tables = tables;
	out->table_count = count;
}

static void
repair_get_paxos(
    struct reader *reader, struct arena *arena, struct repair_message *out, bool *is_full)
{
	uint64_t *electorates;

	out->keyspace = reader_bytes(reader, repair_get_count(reader, 1));
	repair_get_tables(reader, arena, out, is_full);
	repair_get_ranges(reader, arena, out, is_full);
	electorates = repair_room(reader, arena, out->range_count, sizeof(*electorates), is_full);
	for (uint32_t i = 0; electorates != NULL && i < out->range_count; i++)
		electorates[i] = reader_u64(reader);
	out->electorates = electorates;
}

static void
repair_get_prepare(
    struct reader *reader, struct arena *arena, struct repair_message *out, bool *is_full)
{

	out->keyspace = reader_bytes(reader, repair_get_count(reader, 1));
	out->flags = reader_u8(reader);
	out->preview = reader_u8(reader);
	out->repaired_at = (int64_t)reader_u64(reader);
	repair_get_tables(reader, arena, out, is_full);
	repair_get_ranges(reader, arena, out, is_full);
	repair_get_endpoints(reader, arena, repair_get_count(reader, 1), out, is_full);
}

static void
repair_get_validation(
    struct reader *reader, struct arena *arena, struct repair_message *out, bool *is_full)
{
	struct slice depths;

	repair_get_uuid(reader, &out->table);
	out->now_seconds = (int64_t)reader_u64(reader);
	repair_get_ranges(reader, arena, out, is_full);
	depths = reader_bytes(reader, out->range_count);
	out->depths = depths.data;
	for (uint32_t i = 0; i < out->range_count && !reader->is_failed; i++)
		reader->is_failed |= out->depths[i] > MERKLE_DEPTH_MAX;
}

int
repair_message_decode(enum verb verb, struct slice encoded, struct arena *arena,
    struct repair_message *out, struct error *err)
{
	struct reader reader = reader_of(encoded);
	bool is_full = false;

	*out = (struct repair_message){.verb = verb};
	repair_get_uuid(&reader, &out->parent);
	repair_get_uuid(&reader, &out->session);
	switch (verb) {
	case VERB_PREPARE_MSG:
		repair_get_prepare(&reader, arena, out, &is_full);
		break;
	case VERB_SNAPSHOT_MSG:
		repair_get_uuid(&reader, &out->table);
		break;
	case VERB_VALIDATION_REQ:
		repair_get_validation(&reader, arena, out, &is_full);
		break;
	case VERB_SYNC_REQ:
		repair_get_uuid(&reader, &out->table);
		out->flags = reader_u8(&reader);
		repair_get_endpoints(&reader, arena, 1, out, &is_full);
		repair_get_ranges(&reader, arena, out, &is_full);
		break;
	case VERB_PAXOS2_CLEANUP_REQ:
		repair_get_paxos(&reader, arena, out, &is_full);
		break;
	default:
		break;
	}
	if (is_full)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a message of a repair");
	if (reader.is_failed || reader_left(&reader) != 0)
		return error_set(err, ERROR_PROTOCOL, "damaged %s", verb_name((uint8_t)verb));
	return 0;
}
