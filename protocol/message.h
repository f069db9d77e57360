/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_MESSAGE_H
#define HELENUS_PROTOCOL_MESSAGE_H

/*
 * Requests, decoded: what a client sent, as structs whose strings and values are slices of the
 * envelope (nothing is copied). Arrays come from the request's arena. One pass over the bytes; bytes
 * after a complete body are ignored. Pure functions; any thread.
 * Cassandra: transport.messages, cql3/QueryOptions.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/consistency.h"
#include "base/error.h"
#include "protocol/envelope.h"

/* Bits of <flags> in QUERY, EXECUTE and BATCH: one byte in v3 and v4, an [int] in v5. */
enum {
	QUERY_FLAG_VALUES = 0x01,
	QUERY_FLAG_SKIP_METADATA = 0x02,
	QUERY_FLAG_PAGE_SIZE = 0x04,
	QUERY_FLAG_PAGING_STATE = 0x08,
	QUERY_FLAG_SERIAL_CONSISTENCY = 0x10,
	QUERY_FLAG_TIMESTAMP = 0x20,
	QUERY_FLAG_NAMES = 0x40,
	QUERY_FLAG_KEYSPACE = 0x80, /* v5 */
	QUERY_FLAG_NOW_IN_SECONDS = 0x100, /* v5 */
};

enum { PREPARE_FLAG_KEYSPACE = 0x01 }; /* v5 */

/* A value for a marker: bytes, null (slice_is_null) or unset (v4 and later; value is then null too). */
struct bound_value {
	struct slice value;
	bool is_unset;
};

struct bound_values {
	uint32_t count;
	struct bound_value *values; /* count of them; NULL when count is 0 */
	struct slice *names; /* count of them, or NULL: bound by position */
};

struct query_options {
	enum consistency consistency;
	enum consistency serial_consistency; /* SERIAL when absent; any level may have been sent */
	bool skip_metadata;
	bool has_timestamp;
	bool has_now_in_seconds;
	int32_t page_size; /* rows; negative (or absent: -1) means everything; never 0 */
	int32_t now_in_seconds;
	int64_t timestamp; /* microseconds; never INT64_MIN */
	struct slice paging_state; /* null when absent */
	struct slice keyspace; /* null when absent */
	struct bound_values values;
};

struct startup_option {
	struct slice name;
	struct slice value;
};

struct request_startup {
	uint32_t count;
	struct startup_option *options;
};

struct request_query {
	struct slice query;
	struct query_options options;
};

struct request_prepare {
	struct slice query;
	struct slice keyspace; /* v5; null when absent */
};

struct request_execute {
	struct slice id;
	struct slice result_metadata_id; /* v5; null before */
	struct query_options options;
};

enum batch_type {
	BATCH_LOGGED = 0,
	BATCH_UNLOGGED = 1,
	BATCH_COUNTER = 2,
};

struct batch_entry {
	bool is_prepared;
	struct slice query_or_id;
	struct bound_values values; /* names are always NULL: the format cannot carry them */
};

struct request_batch {
	enum batch_type type;
	uint32_t count;
	struct batch_entry *entries;
	struct query_options options; /* values and paging are unused */
};

/* Bits of request_register.events. */
enum {
	REGISTER_TOPOLOGY_CHANGE = 1 << 0,
	REGISTER_STATUS_CHANGE = 1 << 1,
	REGISTER_SCHEMA_CHANGE = 1 << 2,
};

struct request_register {
	unsigned events;
};

struct request_auth_response {
	struct slice token; /* may be null */
};

struct client_message {
	uint8_t version;
	uint8_t opcode; /* which member of the union holds */
	int16_t stream;
	bool is_traced;
	struct slice custom_payload; /* the whole checked [bytes map]; null when there is none */
	union {
		struct request_startup startup;
		struct request_query query;
		struct request_prepare prepare;
		struct request_execute execute;
		struct request_batch batch;
		struct request_register register_;
		struct request_auth_response auth_response;
	}; /* OPTIONS has no content */
};

/*
 * Decode a request whose body is plain (compression_open_body() has been called). *out and its
 * slices point into the envelope's body, its arrays into `arena`: it lives as long as both.
 * -1: ERROR_PROTOCOL with the text to answer, ERROR_NO_MEMORY. out->stream, version and opcode are
 * set in any case.
 */
int message_decode_request(const struct envelope *envelope, struct arena *arena,
    struct client_message *out, struct error *err);

/*
 * The prepared id of an EXECUTE, without decoding the rest; for choosing a stage. The null slice
 * when the envelope is none, is compressed, or too short to have one.
 */
struct slice message_peek_prepared_id(const struct envelope *envelope);

/* Value `index` of an EXECUTE, as message_peek_prepared_id(). The null slice also for one that is null, unset or
 * given by name. */
struct slice message_peek_value(const struct envelope *envelope, uint32_t index);

/* As message_peek_prepared_id() for the text of a QUERY or PREPARE. */
struct slice message_peek_query(const struct envelope *envelope);

/* The value of a STARTUP option, its name compared without regard to case; null when absent. */
struct slice message_startup_option(const struct request_startup *startup, const char *name);

/*
 * Step through a checked custom payload: *cursor starts at 0. True: *name and *value (may be null)
 * are the next pair.
 */
bool message_payload_next(
    struct slice custom_payload, size_t *cursor, struct slice *name, struct slice *value);

#endif
