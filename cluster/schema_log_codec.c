/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/schema_log_codec.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA_LOG_VERSION = 1 };

int
schema_ballot_compare(const struct schema_ballot *a, const struct schema_ballot *b)
{
	if (a->time_us != b->time_us)
		return a->time_us < b->time_us ? -1 : 1;
	return (a->nonce > b->nonce) - (a->nonce < b->nonce);
}

int
schema_entry_copy(struct schema_entry *to, const struct schema_entry *from)
{
	uint8_t *bytes = malloc(from->size + 1);

	if (bytes == NULL)
		return -1;
	*to = *from;
	memcpy(bytes, from->bytes, from->size);
	to->bytes = bytes;
	return 0;
}

void
schema_entry_fini(struct schema_entry *entry)
{
	free(entry->bytes);
	*entry = (struct schema_entry){.bytes = NULL};
}

void
schema_ballot_encode(const struct schema_ballot *ballot, struct buffer *out)
{
	buffer_put_u64(out, ballot->time_us);
	buffer_put_u64(out, ballot->nonce);
}

void
schema_ballot_decode(struct reader *reader, struct schema_ballot *out)
{
	out->time_us = reader_u64(reader);
	out->nonce = reader_u64(reader);
}

static void
schema_uuid_decode(struct reader *reader, struct uuid *out)
{
	struct slice bytes = reader_bytes(reader, sizeof(out->bytes));

	if (bytes.size == sizeof(out->bytes))
		memcpy(out->bytes, bytes.data, sizeof(out->bytes));
}

void
schema_entry_encode(const struct schema_entry *entry, struct buffer *out)
{
	buffer_put_u64(out, entry->epoch);
	buffer_put_u64(out, (uint64_t)entry->timestamp);
	buffer_put(out, entry->id.bytes, sizeof(entry->id.bytes));
	buffer_put_u32(out, (uint32_t)entry->size);
	buffer_put(out, entry->bytes, entry->size);
}

int
schema_entry_decode(struct reader *reader, struct schema_entry *out, struct error *err)
{
	struct schema_entry entry = {.bytes = NULL};
	struct slice bytes;
	uint32_t size;

	entry.epoch = reader_u64(reader);
	entry.timestamp = (int64_t)reader_u64(reader);
	schema_uuid_decode(reader, &entry.id);
	size = reader_u32(reader);
	if (reader->is_failed || size > SCHEMA_ENTRY_MAX || size > reader_left(reader))
		return error_set(err, ERROR_INVALID, "a schema change is cut off");
	bytes = reader_bytes(reader, size);
	entry.bytes = (uint8_t *)bytes.data;
	entry.size = size;
	if (schema_entry_copy(out, &entry) != 0)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a schema change");
	return 0;
}

static void
schema_recent_encode(const struct uuid *recent, uint32_t count, struct buffer *out)
{
	buffer_put_u8(out, (uint8_t)count);
	for (uint32_t i = 0; i < count; i++)
		buffer_put(out, recent[i].bytes, sizeof(recent[i].bytes));
}

static void
schema_recent_decode(struct reader *reader, struct uuid *recent, uint32_t *count)
{
	uint8_t told = reader_u8(reader);

	*count = 0;
	if (told > SCHEMA_RECENT_MAX)
		reader->is_failed = true;
	for (; *count < told && !reader->is_failed; (*count)++)
		schema_uuid_decode(reader, &recent[*count]);
}

/* The version, or the reader is failed. */
static void
schema_version_decode(struct reader *reader)
{
	if (reader_u8(reader) != SCHEMA_LOG_VERSION)
		reader->is_failed = true;
}

/* An accepted entry behind a flag. */
static int
schema_accepted_decode(struct reader *reader, bool *has, struct schema_ballot *ballot,
    struct schema_entry *entry, struct error *err)
{
	uint8_t flag = reader_u8(reader);

	if (reader->is_failed || flag > 1)
		return error_set(err, ERROR_INVALID, "the state of the schema log is malformed");
	*has = flag != 0;
	if (!*has)
		return 0;
	schema_ballot_decode(reader, ballot);
	return schema_entry_decode(reader, entry, err);
}

/* All bytes are used up, none was missing. */
static int
schema_end(const struct reader *reader, const char *what, struct error *err)
{
	if (reader->is_failed || reader_left(reader) != 0)
		return error_set(err, ERROR_INVALID, "%s is malformed", what);
	return 0;
}

void
schema_state_encode(const struct schema_log_state *state, struct buffer *out)
{
	buffer_put_u8(out, SCHEMA_LOG_VERSION);
	buffer_put_u64(out, state->epoch);
	buffer_put_u64(out, (uint64_t)state->timestamp);
	schema_ballot_encode(&state->promised, out);
	schema_recent_encode(state->recent, state->recent_count, out);
	buffer_put_u8(out, state->has_accepted);
	if (state->has_accepted) {
		schema_ballot_encode(&state->accepted_ballot, out);
		schema_entry_encode(&state->accepted, out);
	}
}

int
schema_state_decode(struct slice bytes, struct schema_log_state *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct schema_log_state state;

	memset(&state, 0, sizeof(state));
	schema_version_decode(&reader);
	state.epoch = reader_u64(&reader);
	state.timestamp = (int64_t)reader_u64(&reader);
	schema_ballot_decode(&reader, &state.promised);
	schema_recent_decode(&reader, state.recent, &state.recent_count);
	if (schema_accepted_decode(
		&reader, &state.has_accepted, &state.accepted_ballot, &state.accepted, err) != 0)
		return -1;
	if (schema_end(&reader, "the state of the schema log", err) != 0) {
		schema_entry_fini(&state.accepted);
		return -1;
	}
	*out = state;
	return 0;
}

void
schema_promise_encode(const struct schema_promise *promise, struct buffer *out)
{
	buffer_put_u8(out, SCHEMA_LOG_VERSION);
	buffer_put_u8(out, promise->is_ok);
	schema_ballot_encode(&promise->promised, out);
	buffer_put_u64(out, promise->epoch);
	buffer_put_u64(out, (uint64_t)promise->timestamp);
	buffer_put_u8(out, promise->has_accepted);
	if (promise->has_accepted) {
		schema_ballot_encode(&promise->accepted_ballot, out);
		schema_entry_encode(&promise->accepted, out);
	}
}

int
schema_promise_decode(struct slice bytes, struct schema_promise *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct schema_promise promise;

	memset(&promise, 0, sizeof(promise));
	schema_version_decode(&reader);
	promise.is_ok = reader_u8(&reader) != 0;
	schema_ballot_decode(&reader, &promise.promised);
	promise.epoch = reader_u64(&reader);
	promise.timestamp = (int64_t)reader_u64(&reader);
	if (schema_accepted_decode(&reader, &promise.has_accepted, &promise.accepted_ballot,
		&promise.accepted, err) != 0)
		return -1;
	if (schema_end(&reader, "a promise of the schema log", err) != 0) {
		schema_entry_fini(&promise.accepted);
		return -1;
	}
	*out = promise;
	return 0;
}

void
schema_fetched_encode(const struct schema_fetched *fetched, struct buffer *out)
{
	buffer_put_u8(out, SCHEMA_LOG_VERSION);
	buffer_put_u64(out, fetched->epoch);
	buffer_put_u64(out, (uint64_t)fetched->timestamp);
	schema_recent_encode(fetched->recent, fetched->recent_count, out);
	buffer_put_u8(out, fetched->has_snapshot);
	if (fetched->has_snapshot) {
		buffer_put_u32(out, (uint32_t)fetched->snapshot.size);
		buffer_put_slice(out, fetched->snapshot);
	}
}

int
schema_fetched_decode(struct slice bytes, struct schema_fetched *out, struct error *err)
{
	struct reader reader = reader_of(bytes);
	struct schema_fetched fetched;

	memset(&fetched, 0, sizeof(fetched));
	schema_version_decode(&reader);
	fetched.epoch = reader_u64(&reader);
	fetched.timestamp = (int64_t)reader_u64(&reader);
	schema_recent_decode(&reader, fetched.recent, &fetched.recent_count);
	fetched.has_snapshot = reader_u8(&reader) != 0;
	if (fetched.has_snapshot)
		fetched.snapshot = reader_bytes(&reader, reader_u32(&reader));
	if (schema_end(&reader, "a schema from another node", err) != 0)
		return -1;
	*out = fetched;
	return 0;
}
