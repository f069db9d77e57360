/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_PROTOCOL_RESPONSE_H
#define HELENUS_PROTOCOL_RESPONSE_H

/*
 * Responses, encoded straight into a buffer in wire form. An envelope is opened with
 * response_begin(), filled with exactly one response_put_*() body, closed with response_end(), which
 * patches its header. Several may follow one another in one buffer. Puts do not fail: a buffer
 * without memory shows in buffer_check() after the end. Pure functions; any thread.
 * Cassandra: transport.messages, cql3/ResultSet, transport/Event.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "protocol/compression.h"
#include "protocol/envelope.h"

struct type; /* cql/type.h */

/* What stands before the message in the body; all zero for nothing. */
struct response_prefix {
	const uint8_t *tracing_id; /* 16 bytes of the session's uuid, or NULL */
	const struct slice *warnings; /* v4 and later; v3 clients never see them */
	uint32_t warning_count; /* at most 65535 */
	struct slice custom_payload; /* v4 and later: an encoded [bytes map], or null */
};

/* An envelope that is being written. */
struct response {
	struct buffer *buffer; /* borrowed */
	size_t start; /* offset of the header in the buffer */
	size_t body; /* offset of the body, after the prefix */
	uint8_t version;
};

/* `prefix` may be NULL. version 1 and 2 write the 8-byte header (for errors only). flags: of enum
 * ENVELOPE_*; those of the prefix are added. */
struct response response_begin(struct buffer *buffer, uint8_t version, int16_t stream,
    enum opcode opcode, uint8_t flags, const struct response_prefix *prefix);
/* Put a prefix before a body that has been written already (warnings known only afterwards). */
void response_insert_prefix(struct response *response, const struct response_prefix *prefix);
/* Patch the header; compress the body where v3 or v4 agreed on it. */
void response_end(struct response *response, enum compression compression);
/* Throw away what was written since response_begin(): an error is to take its place. */
void response_abandon(struct response *response);

/* READY has no body. */
void response_put_authenticate(struct buffer *buffer, const char *authenticator_class);
/* AUTH_CHALLENGE and AUTH_SUCCESS; token may be null. */
void response_put_token(struct buffer *buffer, struct slice token);

/*
 * The body of SUPPORTED: CQL_VERSION, COMPRESSION, PROTOCOL_VERSIONS up to `version_max`
 * ("3/v3", "4/v4", "5/v5").
 */
void response_put_supported(struct buffer *buffer, const char *cql_version, uint8_t version_max);

/* ---- ERROR ---- */

struct inet_address {
	uint8_t size; /* 4 or 16 */
	uint8_t bytes[16];
	uint16_t port; /* host order; not part of [inetaddr] */
};

/* A replica that failed, and why: error 1300 and 1500 of v5. */
struct replica_failure {
	struct inet_address address;
	uint16_t reason; /* NP-60 */
};

/*
 * The body of ERROR for any code of base/error.h: one table maps it to code and fields of that
 * version; what the version does not know goes out as the older error that Cassandra chooses (NP-66).
 * failures: for READ_FAILURE and WRITE_FAILURE on v5; may be NULL with count 0, older versions use
 * err->failures.
 */
void response_put_error(struct buffer *buffer, uint8_t version, const struct error *err,
    const struct replica_failure *failures, uint32_t failure_count);

/* A whole ERROR envelope, header and all. Versions that cannot be spoken are answered in 5. */
void response_put_error_envelope(
    struct buffer *buffer, uint8_t version, int16_t stream, uint8_t flags, const struct error *err);

/* The code an error has on the wire of that version: 0x2200, ... For metrics and logs. */
uint32_t response_error_code(uint8_t version, enum error_code code);

/* ---- EVENT and schema changes ---- */

enum schema_change_kind {
	SCHEMA_CREATED,
	SCHEMA_UPDATED,
	SCHEMA_DROPPED,
};

enum schema_change_target {
	SCHEMA_KEYSPACE,
	SCHEMA_TABLE, /* tables, views, indexes, triggers */
	SCHEMA_TYPE,
	SCHEMA_FUNCTION,
	SCHEMA_AGGREGATE,
};

struct schema_change {
	enum schema_change_kind kind;
	enum schema_change_target target;
	struct slice keyspace;
	struct slice name; /* not with KEYSPACE */
	const struct slice *arguments; /* CQL types; FUNCTION and AGGREGATE only */
	uint32_t argument_count;
};

enum node_event_kind {
	NODE_EVENT_NEW_NODE, /* TOPOLOGY_CHANGE */
	NODE_EVENT_REMOVED_NODE, /* TOPOLOGY_CHANGE */
	NODE_EVENT_UP, /* STATUS_CHANGE */
	NODE_EVENT_DOWN, /* STATUS_CHANGE */
};

struct node_event {
	enum node_event_kind kind;
	struct inet_address address; /* the node's native address and port */
};

/* Bodies of EVENT; begin the envelope with ENVELOPE_STREAM_EVENT. On v3 a function or aggregate is
 * told as KEYSPACE UPDATED. */
void response_put_schema_event(
    struct buffer *buffer, uint8_t version, const struct schema_change *change);
void response_put_node_event(struct buffer *buffer, const struct node_event *event);

/* ---- RESULT ---- */

enum result_kind {
	RESULT_VOID = 1,
	RESULT_ROWS = 2,
	RESULT_SET_KEYSPACE = 3,
	RESULT_PREPARED = 4,
	RESULT_SCHEMA_CHANGE = 5,
};

enum {
	ROWS_GLOBAL_TABLES_SPEC = 0x01,
	ROWS_HAS_MORE_PAGES = 0x02,
	ROWS_NO_METADATA = 0x04,
	ROWS_METADATA_CHANGED = 0x08, /* v5 */
};

void response_put_void(struct buffer *buffer);
void response_put_set_keyspace(struct buffer *buffer, struct slice keyspace);
void response_put_schema_change(
    struct buffer *buffer, uint8_t version, const struct schema_change *change);

/* A column of a result, or a marker of a statement. */
struct column_spec {
	struct slice keyspace;
	struct slice table;
	struct slice name;
	const struct type *type; /* borrowed */
};

/*
 * What the client is told about columns. A prepared statement may keep its specs encoded
 * (response_encode_specs(), once for each version) and hand them over in `encoded`, so that a request
 * with metadata costs a copy.
 */
struct columns_metadata {
	const struct column_spec *columns; /* unused where encoded is not null */
	uint32_t column_count;
	struct slice encoded;
};

/*
 * Global table spec (where all columns have one table) and col_specs of that version. The first four
 * bytes are the [int] flags they need (ROWS_GLOBAL_TABLES_SPEC or 0), not put on the wire as such.
 */
void response_encode_specs(struct buffer *buffer, uint8_t version,
    const struct column_spec *columns, uint32_t column_count);

/* The Rows body that is being written. */
struct response_rows {
	size_t flags_offset;
	size_t paging_offset; /* where a paging state goes */
	size_t count_offset;
	uint32_t flags;
	uint32_t row_count; /* the caller adds 1 a row */
};

/*
 * Kind and metadata of Rows, up to the row count. skip_metadata: the client asked for none (still
 * column_count is sent). new_metadata_id: v5, 16 bytes when the client's id was stale (then
 * metadata is sent in any case), else NULL. Then for each row response_put_cell() column_count times
 * and rows.row_count++.
 */
struct response_rows response_begin_rows(struct buffer *buffer, uint8_t version,
    const struct columns_metadata *metadata, bool skip_metadata, const uint8_t *new_metadata_id);
/* Patch the count; paging_state not null: put it where it belongs and set HAS_MORE_PAGES. */
void
response_end_rows(struct buffer *buffer, struct response_rows *rows, struct slice paging_state);

/* One [bytes]: a cell of a row; null allowed. */
static inline void
response_put_cell(struct buffer *buffer, struct slice cell)
{
	if (!buffer_reserve(buffer, 4 + cell.size))
		return;
	if (slice_is_null(cell)) {
		store_u32(buffer->data + buffer->size, UINT32_MAX);
		buffer->size += 4;
		return;
	}
	store_u32(buffer->data + buffer->size, (uint32_t)cell.size);
	memcpy(buffer->data + buffer->size + 4, cell.data, cell.size);
	buffer->size += 4 + cell.size;
}

/*
 * A cell that is written piece by piece: the mark of its length, to be closed with
 * response_end_cell() after the bytes have been appended.
 */
static inline size_t
response_begin_cell(struct buffer *buffer)
{
	size_t mark = buffer->size;

	buffer_put_u32(buffer, 0);
	return mark;
}

static inline void
response_end_cell(struct buffer *buffer, size_t mark)
{
	if (!buffer->is_failed)
		buffer_patch_u32(buffer, mark, (uint32_t)(buffer->size - mark - 4));
}

struct prepared_info {
	const uint8_t *id; /* 16 bytes */
	const uint8_t *result_metadata_id; /* 16 bytes; v5 */
	struct columns_metadata markers;
	const uint16_t *key_indexes; /* v4+: bind positions of the partition key, in key order */
	uint32_t key_index_count; /* 0 when not every key column has a marker */
	struct columns_metadata result; /* column_count 0: no result, or not known */
};

/* Kind and body of Prepared. */
void
response_put_prepared(struct buffer *buffer, uint8_t version, const struct prepared_info *info);

/* result_metadata_id of columns (v5): MD5 over names and types. ResultSet.computeResultMetadataId */
void response_metadata_id(const struct column_spec *columns, uint32_t column_count, uint8_t id[16]);

/* ---- notations, for who writes bodies of its own ---- */

/* [string], [long string], [bytes] (null allowed). A [string] is cut at 65535 bytes, between two
 * characters. */
void response_put_string(struct buffer *buffer, struct slice string);
void response_put_long_string(struct buffer *buffer, struct slice string);
void response_put_bytes(struct buffer *buffer, struct slice bytes);
void response_put_short_bytes(struct buffer *buffer, struct slice bytes);
void response_put_inet(struct buffer *buffer, const struct inet_address *address);
void response_put_inetaddr(struct buffer *buffer, const struct inet_address *address);

#endif
