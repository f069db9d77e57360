/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_CLIENT_H
#define HELENUS_PROTOCOL_CLIENT_H

/*
 * The client's side: requests encoded into a buffer, responses decoded into structs whose strings and
 * cells are slices of the envelope. The structs of message.h are used for both directions, so what
 * one encodes the other decodes. Pure functions; any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "protocol/message.h"
#include "protocol/response.h"

/* ---- requests ---- */

/*
 * Append one whole envelope: header, custom payload, and the body of request->opcode, compressed
 * where v3 or v4 agreed on it and it pays. Fields that the version cannot carry (keyspace,
 * now_in_seconds before v5, unset before v4) make ERROR_PROTOCOL; also ERROR_NO_MEMORY. After -1 the
 * buffer is as before.
 */
int client_put_request(struct buffer *buffer, const struct client_message *request,
    enum compression compression, struct error *err);

/* Options with the defaults of an absent option: consistency, SERIAL, no page size, no values. */
struct query_options client_query_options(enum consistency consistency);

/* A PLAIN token (NUL user NUL password) for AUTH_RESPONSE. */
void client_put_plain_token(struct buffer *buffer, const char *user, const char *password);

/* ---- responses ---- */

struct client_column {
	struct slice keyspace;
	struct slice table;
	struct slice name;
	struct slice type; /* the [option], not decoded: type_codec_decode() */
};

struct client_metadata {
	uint32_t flags; /* ROWS_* */
	uint32_t column_count;
	struct client_column *columns; /* NULL with ROWS_NO_METADATA */
	struct slice paging_state; /* null: this was the last page */
	struct slice new_metadata_id; /* v5 with ROWS_METADATA_CHANGED; else null */
};

struct client_rows {
	struct client_metadata metadata;
	uint32_t row_count;
	struct slice content; /* row_count * column_count [bytes]: client_next_cell() */
};

struct client_prepared {
	struct slice id;
	struct slice result_metadata_id; /* v5; else null */
	struct client_metadata markers;
	uint16_t *key_indexes; /* v4+ */
	uint32_t key_index_count;
	struct client_metadata result;
};

struct client_error {
	uint32_t code; /* of the wire: 0x2200, ... */
	struct slice text;
	uint16_t consistency;
	int32_t received; /* 1000: alive */
	int32_t required;
	int32_t failures; /* v4, and v5: entries of the map */
	const struct replica_failure *failed; /* v5, `failures` of them */
	bool data_present;
	struct slice write_type;
	uint16_t contentions;
	struct slice keyspace;
	struct slice table; /* or function name */
	struct slice *arguments;
	uint32_t argument_count;
	struct slice prepared_id;
};

struct client_supported_option {
	struct slice name;
	uint32_t value_count;
	struct slice *values;
};

struct client_supported {
	uint32_t count;
	struct client_supported_option *options;
};

struct client_event {
	bool is_schema_change;
	struct schema_change schema_change;
	struct node_event node;
};

struct client_response {
	uint8_t version;
	uint8_t opcode; /* which member of the union holds */
	int16_t stream;
	uint8_t flags;
	struct slice tracing_id; /* 16 bytes or null */
	struct slice *warnings;
	uint32_t warning_count;
	struct slice custom_payload; /* checked [bytes map] or null: message_payload_next() */
	enum result_kind result_kind; /* RESULT */
	union {
		struct client_error error;
		struct slice authenticator; /* AUTHENTICATE */
		struct slice token; /* AUTH_CHALLENGE, AUTH_SUCCESS */
		struct client_supported supported;
		struct client_rows rows; /* RESULT_ROWS */
		struct slice keyspace; /* RESULT_SET_KEYSPACE */
		struct client_prepared prepared; /* RESULT_PREPARED */
		struct schema_change schema_change; /* RESULT_SCHEMA_CHANGE */
		struct client_event event;
	};
};

/*
 * Decode a response whose body is plain. Points into the envelope and the arena. The cells of Rows
 * are checked as they are read. -1: ERROR_PROTOCOL (malformed), ERROR_NO_MEMORY.
 */
int client_decode_response(const struct envelope *envelope, struct arena *arena,
    struct client_response *out, struct error *err);

/* Take the next cell off `content`. -1: it ends inside the cell. */
int client_next_cell(struct slice *content, struct slice *cell);

#endif
