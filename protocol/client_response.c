/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/client.h"
#include "protocol/notation.h"
#include "protocol/type_codec.h"

/* The state of one decoding. */
struct client_decoder {
	struct reader reader;
	struct arena *arena;
	struct error *err;
	uint8_t version;
};

static int
client_truncated(const struct client_decoder *decoder, const char *what)
{
	return error_set(decoder->err, ERROR_PROTOCOL, "Response ends inside of %s", what);
}

/* An array of `count` things of at least `wire_size_min` bytes each; memory is taken only when the
 * bytes for them are there. */
static void *
client_array(struct client_decoder *decoder, uint32_t count, size_t size, size_t wire_size_min)
{
	void *array;

	if (decoder->reader.is_failed || reader_left(&decoder->reader) / wire_size_min < count) {
		client_truncated(decoder, "a list");
		return NULL;
	}
	array = arena_calloc(decoder->arena, count, size);
	if (array == NULL)
		error_set(decoder->err, ERROR_NO_MEMORY, "No memory to decode a response");
	return array;
}

static int
client_decode_string_list(
    struct client_decoder *decoder, struct slice **list, uint32_t *count, const char *what)
{
	*list = notation_string_list(&decoder->reader, decoder->arena, count);
	if (decoder->reader.is_failed)
		return client_truncated(decoder, what);
	if (*list == NULL && *count > 0)
		return error_set(decoder->err, ERROR_NO_MEMORY, "No memory to decode a response");
	return 0;
}

/* ---- ERROR ---- */

static void
client_decode_answers(struct client_decoder *decoder, struct client_error *error)
{
	error->consistency = notation_u16(&decoder->reader);
	error->received = (int32_t)notation_u32(&decoder->reader);
	error->required = (int32_t)notation_u32(&decoder->reader);
}

static int
client_decode_inetaddr(struct client_decoder *decoder, struct inet_address *address)
{
	struct slice bytes;

	address->size = notation_u8(&decoder->reader);
	if (address->size != 4 && address->size != 16)
		return error_set(
		    decoder->err, ERROR_PROTOCOL, "Address of %u bytes", address->size);
	bytes = notation_take(&decoder->reader, address->size);
	memcpy(address->bytes, bytes.data, bytes.size);
	return 0;
}

static int
client_decode_failures(struct client_decoder *decoder, struct client_error *error)
{
	struct replica_failure *failed;

	error->failures = (int32_t)notation_u32(&decoder->reader);
	if (decoder->version < 5)
		return 0;
	if (error->failures < 0)
		return client_truncated(decoder, "the failures");
	failed = client_array(decoder, (uint32_t)error->failures, sizeof(*failed), 7);
	if (failed == NULL)
		return -1;
	for (int32_t i = 0; i < error->failures; i++) {
		if (client_decode_inetaddr(decoder, &failed[i].address) != 0)
			return -1;
		failed[i].reason = notation_u16(&decoder->reader);
	}
	error->failed = failed;
	return 0;
}

/* The fields that follow code and text; what is unknown has none that we know. */
static int
client_decode_error_fields(struct client_decoder *decoder, struct client_error *error)
{
	struct reader *reader = &decoder->reader;

	switch (error->code) {
	case 0x1000:
		error->consistency = notation_u16(reader);
		error->required = (int32_t)notation_u32(reader);
		error->received = (int32_t)notation_u32(reader);
		return 0;
	case 0x1100:
		client_decode_answers(decoder, error);
		error->write_type = notation_string(reader);
		/* A plain write timeout, and one of Cassandra's paths for CAS, ends here. */
		if (decoder->version >= 5 && slice_equal_string(error->write_type, "CAS") &&
		    reader_left(reader) >= 2)
			error->contentions = notation_u16(reader);
		return 0;
	case 0x1200:
		client_decode_answers(decoder, error);
		error->data_present = notation_u8(reader) != 0;
		return 0;
	case 0x1300:
		client_decode_answers(decoder, error);
		if (client_decode_failures(decoder, error) != 0)
			return -1;
		error->data_present = notation_u8(reader) != 0;
		return 0;
	case 0x1400:
		error->keyspace = notation_string(reader);
		error->table = notation_string(reader);
		return client_decode_string_list(
		    decoder, &error->arguments, &error->argument_count, "the argument types");
	case 0x1500:
		client_decode_answers(decoder, error);
		if (client_decode_failures(decoder, error) != 0)
			return -1;
		error->write_type = notation_string(reader);
		return 0;
	case 0x1700:
		client_decode_answers(decoder, error);
		return 0;
	case 0x2400:
		error->keyspace = notation_string(reader);
		error->table = notation_string(reader);
		return 0;
	case 0x2500:
		error->prepared_id = notation_string(reader);
		return 0;
	default:
		return 0;
	}
}

static int
client_decode_error(struct client_decoder *decoder, struct client_error *error)
{
	error->code = notation_u32(&decoder->reader);
	error->text = notation_string(&decoder->reader);
	if (client_decode_error_fields(decoder, error) != 0)
		return -1;
	return 0;
}

/* ---- SUPPORTED ---- */

static int
client_decode_supported(struct client_decoder *decoder, struct client_supported *supported)
{
	uint32_t count = notation_u16(&decoder->reader);

	supported->options = client_array(decoder, count, sizeof(*supported->options), 4);
	if (supported->options == NULL)
		return -1;
	supported->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct client_supported_option *option = &supported->options[i];

		option->name = notation_string(&decoder->reader);
		if (client_decode_string_list(
			decoder, &option->values, &option->value_count, "the options") != 0)
			return -1;
	}
	return 0;
}

/* ---- RESULT ---- */

static int
client_decode_column(struct client_decoder *decoder, uint32_t flags, struct client_column *column)
{
	struct reader *reader = &decoder->reader;
	const uint8_t *type_start;

	if ((flags & ROWS_GLOBAL_TABLES_SPEC) == 0) {
		column->keyspace = notation_string(reader);
		column->table = notation_string(reader);
	}
	column->name = notation_string(reader);
	type_start = reader->at;
	if (type_codec_skip(reader, decoder->err) != 0)
		return -1;
	column->type = slice_of(type_start, (size_t)(reader->at - type_start));
	return 0;
}

static int
client_decode_columns(struct client_decoder *decoder, struct client_metadata *metadata)
{
	struct slice keyspace = slice_empty, table = slice_empty;

	if ((metadata->flags & ROWS_GLOBAL_TABLES_SPEC) != 0) {
		keyspace = notation_string(&decoder->reader);
		table = notation_string(&decoder->reader);
	}
	metadata->columns =
	    client_array(decoder, metadata->column_count, sizeof(*metadata->columns), 4);
	if (metadata->columns == NULL)
		return -1;
	for (uint32_t i = 0; i < metadata->column_count; i++) {
		metadata->columns[i].keyspace = keyspace;
		metadata->columns[i].table = table;
		if (client_decode_column(decoder, metadata->flags, &metadata->columns[i]) != 0)
			return -1;
	}
	return 0;
}

/* Flags and column count, which both kinds of metadata begin with. */
static void
client_decode_metadata_start(struct client_decoder *decoder, struct client_metadata *metadata)
{
	metadata->flags = notation_u32(&decoder->reader);
	metadata->column_count = notation_u32(&decoder->reader);
}

static int
client_decode_rows_metadata(struct client_decoder *decoder, struct client_metadata *metadata)
{
	client_decode_metadata_start(decoder, metadata);
	if ((metadata->flags & ROWS_HAS_MORE_PAGES) != 0)
		metadata->paging_state = notation_bytes(&decoder->reader);
	if ((metadata->flags & ROWS_METADATA_CHANGED) != 0)
		metadata->new_metadata_id = notation_string(&decoder->reader);
	if (decoder->reader.is_failed)
		return client_truncated(decoder, "the metadata");
	if ((metadata->flags & ROWS_NO_METADATA) != 0)
		return 0;
	return client_decode_columns(decoder, metadata);
}

static int
client_decode_rows(struct client_decoder *decoder, struct client_rows *rows)
{
	struct reader *reader = &decoder->reader;
	uint64_t cells;

	if (client_decode_rows_metadata(decoder, &rows->metadata) != 0)
		return -1;
	rows->row_count = notation_u32(reader);
	cells = (uint64_t)rows->row_count * rows->metadata.column_count;
	if (reader->is_failed || reader_left(reader) / 4 < cells)
		return client_truncated(decoder, "the rows");
	rows->content = notation_take(reader, reader_left(reader));
	return 0;
}

static int
client_decode_prepared(struct client_decoder *decoder, struct client_prepared *prepared)
{
	struct reader *reader = &decoder->reader;
	struct client_metadata *markers = &prepared->markers;

	prepared->id = notation_string(reader);
	if (decoder->version >= 5)
		prepared->result_metadata_id = notation_string(reader);
	client_decode_metadata_start(decoder, markers);
	if (decoder->version >= 4) {
		uint32_t count = notation_u32(reader);

		prepared->key_indexes =
		    client_array(decoder, count, sizeof(*prepared->key_indexes), 2);
		if (prepared->key_indexes == NULL)
			return -1;
		prepared->key_index_count = count;
		for (uint32_t i = 0; i < count; i++)
			prepared->key_indexes[i] = notation_u16(reader);
	}
	if (client_decode_columns(decoder, markers) != 0)
		return -1;
	return client_decode_rows_metadata(decoder, &prepared->result);
}

/* ---- EVENT and schema changes ---- */

/* Which of `names` is next; -1 and an error when it is none of them. */
static int
client_decode_name(
    struct client_decoder *decoder, const char *const *names, int count, const char *what)
{
	struct slice name = notation_string(&decoder->reader);

	if (decoder->reader.is_failed)
		return client_truncated(decoder, what);
	for (int i = 0; i < count; i++) {
		if (slice_equal_string(name, names[i]))
			return i;
	}
	return error_set(decoder->err, ERROR_PROTOCOL, "Unknown %s '%.*s'", what,
	    name.size > 64 ? 64 : (int)name.size, (const char *)name.data);
}

static int
client_decode_schema_change(struct client_decoder *decoder, struct schema_change *change)
{
	static const char *const kinds[] = {"CREATED", "UPDATED", "DROPPED"};
	static const char *const targets[] = {"KEYSPACE", "TABLE", "TYPE", "FUNCTION", "AGGREGATE"};
	struct slice *arguments = NULL;
	int kind, target;

	kind = client_decode_name(decoder, kinds, 3, "kind of schema change");
	if (kind < 0)
		return -1;
	target = client_decode_name(decoder, targets, 5, "target of schema change");
	if (target < 0)
		return -1;
	change->kind = (enum schema_change_kind)kind;
	change->target = (enum schema_change_target)target;
	change->keyspace = notation_string(&decoder->reader);
	if (change->target != SCHEMA_KEYSPACE)
		change->name = notation_string(&decoder->reader);
	if (change->target == SCHEMA_FUNCTION || change->target == SCHEMA_AGGREGATE) {
		if (client_decode_string_list(
			decoder, &arguments, &change->argument_count, "the argument types") != 0)
			return -1;
		change->arguments = arguments;
	}
	return 0;
}

static int
client_decode_node_event(struct client_decoder *decoder, bool is_topology, struct node_event *node)
{
	static const char *const topology[] = {"NEW_NODE", "REMOVED_NODE"};
	static const char *const status[] = {"UP", "DOWN"};
	int kind =
	    client_decode_name(decoder, is_topology ? topology : status, 2, "change of a node");

	if (kind < 0)
		return -1;
	node->kind =
	    (enum node_event_kind)(kind + (is_topology ? NODE_EVENT_NEW_NODE : NODE_EVENT_UP));
	if (client_decode_inetaddr(decoder, &node->address) != 0)
		return -1;
	node->address.port = (uint16_t)notation_u32(&decoder->reader);
	return 0;
}

static int
client_decode_event(struct client_decoder *decoder, struct client_event *event)
{
	static const char *const types[] = {"TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"};
	int type = client_decode_name(decoder, types, 3, "event");

	if (type < 0)
		return -1;
	event->is_schema_change = type == 2;
	if (event->is_schema_change)
		return client_decode_schema_change(decoder, &event->schema_change);
	return client_decode_node_event(decoder, type == 0, &event->node);
}

/* ---- the whole ---- */

static int
client_decode_result(struct client_decoder *decoder, struct client_response *out)
{
	uint32_t kind = notation_u32(&decoder->reader);

	if (decoder->reader.is_failed)
		return client_truncated(decoder, "the kind of result");
	if (kind < RESULT_VOID || kind > RESULT_SCHEMA_CHANGE)
		return error_set(decoder->err, ERROR_PROTOCOL, "Unknown kind of result %u", kind);
	out->result_kind = (enum result_kind)kind;
	switch (out->result_kind) {
	case RESULT_VOID:
		return 0;
	case RESULT_ROWS:
		return client_decode_rows(decoder, &out->rows);
	case RESULT_SET_KEYSPACE:
		out->keyspace = notation_string(&decoder->reader);
		return 0;
	case RESULT_PREPARED:
		return client_decode_prepared(decoder, &out->prepared);
	case RESULT_SCHEMA_CHANGE:
		return client_decode_schema_change(decoder, &out->schema_change);
	}
	return 0;
}

static int
client_decode_prefix(struct client_decoder *decoder, uint8_t flags, struct client_response *out)
{
	if ((flags & ENVELOPE_TRACING) != 0)
		out->tracing_id = notation_take(&decoder->reader, 16);
	if ((flags & ENVELOPE_WARNING) != 0 &&
	    client_decode_string_list(
		decoder, &out->warnings, &out->warning_count, "the warnings") != 0)
		return -1;
	if ((flags & ENVELOPE_CUSTOM_PAYLOAD) != 0)
		out->custom_payload = notation_bytes_map(&decoder->reader);
	if (decoder->reader.is_failed)
		return client_truncated(decoder, "what stands before the message");
	return 0;
}

static int
client_decode_body(struct client_decoder *decoder, struct client_response *out)
{
	switch (out->opcode) {
	case OPCODE_RESULT:
		return client_decode_result(decoder, out);
	case OPCODE_ERROR:
		return client_decode_error(decoder, &out->error);
	case OPCODE_READY:
		return 0;
	case OPCODE_AUTHENTICATE:
		out->authenticator = notation_string(&decoder->reader);
		return 0;
	case OPCODE_AUTH_CHALLENGE:
	case OPCODE_AUTH_SUCCESS:
		out->token = notation_bytes(&decoder->reader);
		return 0;
	case OPCODE_SUPPORTED:
		return client_decode_supported(decoder, &out->supported);
	case OPCODE_EVENT:
		return client_decode_event(decoder, &out->event);
	default:
		return error_set(
		    decoder->err, ERROR_PROTOCOL, "%s is no response", opcode_name(out->opcode));
	}
}

int
client_decode_response(const struct envelope *envelope, struct arena *arena,
    struct client_response *out, struct error *err)
{
	const struct envelope_header *header = &envelope->header;
	struct client_decoder decoder = {
	    .reader = reader_of(envelope->body),
	    .arena = arena,
	    .err = err,
	    .version = header->version,
	};

	memset(out, 0, sizeof(*out));
	out->version = header->version;
	out->opcode = header->opcode;
	out->stream = header->stream;
	out->flags = header->flags;
	if (client_decode_prefix(&decoder, header->flags, out) != 0 ||
	    client_decode_body(&decoder, out) != 0)
		return -1;
	if (decoder.reader.is_failed)
		return client_truncated(&decoder, opcode_name(header->opcode));
	return 0;
}

int
client_next_cell(struct slice *content, struct slice *cell)
{
	struct reader reader = reader_of(*content);

	*cell = notation_bytes(&reader);
	if (reader.is_failed)
		return -1;
	*content = slice_of(reader.at, reader_left(&reader));
	return 0;
}
