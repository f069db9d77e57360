/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/message.h"
#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	MESSAGE_WIRE_FLAGS = 0x3f, /* what of `flags` travels */
	MESSAGE_WIRE_FORWARDS = 0x40,
	MESSAGE_WIRE_FROM = 0x80,
	MESSAGE_HEAD_MAX = 2 + 2 * VINT_SIZE_MAX + ENDPOINT_WIRE_MAX + 16 + VINT_SIZE_MAX,
	MESSAGE_FORWARD_MIN = 1 + 4 + 2 + 1, /* an IPv4 endpoint and a short id */
	MESSAGE_NS_PER_US = 1000,
};

static_assert(MESSAGE_WANTS_FAILURE + MESSAGE_TRACED + MESSAGE_URGENT < MESSAGE_WIRE_FORWARDS,
    "flags leave room for what the wire form adds");

/* ---- Verbs --------------------------------------------------------------------------------- */

static const struct {
	const char *request, *answer; /* answer NULL: none */
	bool is_urgent; /* the request; answers of urgent requests are urgent too */
} message_verbs[VERB_COUNT] = {
    [VERB_MUTATION_REQ] = {"MUTATION_REQ", "MUTATION_RSP", false},
    [VERB_HINT_REQ] = {"HINT_REQ", "HINT_RSP", false},
    [VERB_READ_REPAIR_REQ] = {"READ_REPAIR_REQ", "READ_REPAIR_RSP", false},
    [VERB_READ_REQ] = {"READ_REQ", "READ_RSP", false},
    [VERB_BATCH_STORE_REQ] = {"BATCH_STORE_REQ", "BATCH_STORE_RSP", false},
    [VERB_BATCH_REMOVE_REQ] = {"BATCH_REMOVE_REQ", "BATCH_REMOVE_RSP", false},
    [VERB_RANGE_REQ] = {"RANGE_REQ", "RANGE_RSP", false},
    [VERB_GOSSIP_DIGEST_SYN] = {"GOSSIP_DIGEST_SYN", NULL, true},
    [VERB_GOSSIP_DIGEST_ACK] = {"GOSSIP_DIGEST_ACK", NULL, true},
    [VERB_GOSSIP_DIGEST_ACK2] = {"GOSSIP_DIGEST_ACK2", NULL, true},
    [VERB_SCHEMA_PUSH_REQ] = {"SCHEMA_PUSH_REQ", "SCHEMA_PUSH_RSP", false},
    [VERB_TRUNCATE_REQ] = {"TRUNCATE_REQ", "TRUNCATE_RSP", true},
    [VERB_SCHEMA_VERSION_REQ] = {"SCHEMA_VERSION_REQ", "SCHEMA_VERSION_RSP", false},
    [VERB_REPLICATION_DONE_REQ] = {"REPLICATION_DONE_REQ", "REPLICATION_DONE_RSP", false},
    [VERB_COUNTER_MUTATION_REQ] = {"COUNTER_MUTATION_REQ", "COUNTER_MUTATION_RSP", false},
    [VERB_SNAPSHOT_REQ] = {"SNAPSHOT_REQ", "SNAPSHOT_RSP", true},
    [VERB_SCHEMA_PULL_REQ] = {"SCHEMA_PULL_REQ", "SCHEMA_PULL_RSP", false},
    [VERB_GOSSIP_SHUTDOWN] = {"GOSSIP_SHUTDOWN", "GOSSIP_SHUTDOWN_RSP", true},
    [VERB_TRACE] = {"_TRACE", NULL, false},
    [VERB_ECHO_REQ] = {"ECHO_REQ", "ECHO_RSP", true},
    [VERB_PAXOS_PREPARE_REQ] = {"PAXOS_PREPARE_REQ", "PAXOS_PREPARE_RSP", false},
    [VERB_PAXOS_PROPOSE_REQ] = {"PAXOS_PROPOSE_REQ", "PAXOS_PROPOSE_RSP", false},
    [VERB_PAXOS_COMMIT_REQ] = {"PAXOS_COMMIT_REQ", "PAXOS_COMMIT_RSP", false},
    [VERB_PAXOS2_CLEANUP_REQ] = {"PAXOS2_CLEANUP_REQ", "PAXOS2_CLEANUP_RSP", false},
    [VERB_PING_REQ] = {"PING_REQ", "PING_RSP", true},
    [VERB_FAILURE_RSP] = {"FAILURE_RSP", NULL, true},
    [VERB_VALIDATION_REQ] = {"VALIDATION_REQ", "VALIDATION_RSP", false},
    [VERB_SYNC_REQ] = {"SYNC_REQ", "SYNC_RSP", false},
    [VERB_PREPARE_MSG] = {"PREPARE_MSG", "PREPARE_RSP", false},
    [VERB_SNAPSHOT_MSG] = {"SNAPSHOT_MSG", "SNAPSHOT_MSG_RSP", false},
    [VERB_CLEANUP_MSG] = {"CLEANUP_MSG", "CLEANUP_RSP", false},
    [VERB_PREPARE_CONSISTENT_REQ] = {"PREPARE_CONSISTENT_REQ", "PREPARE_CONSISTENT_RSP", false},
    [VERB_FINALIZE_PROPOSE_MSG] = {"FINALIZE_PROPOSE_MSG", "FINALIZE_PROMISE_MSG", false},
    [VERB_FINALIZE_COMMIT_MSG] = {"FINALIZE_COMMIT_MSG", "FINALIZE_COMMIT_RSP", false},
    [VERB_FAILED_SESSION_MSG] = {"FAILED_SESSION_MSG", "FAILED_SESSION_RSP", false},
    [VERB_STATUS_REQ] = {"STATUS_REQ", "STATUS_RSP", false},
    [VERB_SCHEMA_PREPARE_REQ] = {"SCHEMA_PREPARE_REQ", "SCHEMA_PREPARE_RSP", true},
    [VERB_SCHEMA_PROPOSE_REQ] = {"SCHEMA_PROPOSE_REQ", "SCHEMA_PROPOSE_RSP", true},
    [VERB_SCHEMA_COMMIT_REQ] = {"SCHEMA_COMMIT_REQ", "SCHEMA_COMMIT_RSP", true},
    [VERB_STREAM_INIT] = {"STREAM_INIT", NULL, false},
    [VERB_STREAM_PREPARE] = {"STREAM_PREPARE", NULL, false},
    [VERB_STREAM_FILE] = {"STREAM_FILE", NULL, false},
    [VERB_STREAM_DATA] = {"STREAM_DATA", NULL, false},
    [VERB_STREAM_ACK] = {"STREAM_ACK", NULL, false},
    [VERB_STREAM_DONE] = {"STREAM_DONE", NULL, false},
    [VERB_STREAM_FAILED] = {"STREAM_FAILED", NULL, false},
    [VERB_STREAM_COMPLETE] = {"STREAM_COMPLETE", NULL, false},
    [VERB_STREAM_KEEP_ALIVE] = {"STREAM_KEEP_ALIVE", NULL, false},
    [VERB_STREAM_RESUME] = {"STREAM_RESUME", NULL, false},
};

static bool
verb_is_answer_to_request(uint8_t verb)
{
	return verb_is_answer(verb) && verb != VERB_FAILURE_RSP;
}

const char *
verb_name(uint8_t verb)
{
	const char *name = verb_is_answer_to_request(verb)
	    ? message_verbs[verb - VERB_RESPONSE_OFFSET].answer
	    : message_verbs[verb].request;

	return name == NULL ? "UNKNOWN" : name;
}

bool
verb_is_urgent(uint8_t verb)
{
	if (verb_is_answer_to_request(verb))
		verb = (uint8_t)(verb - VERB_RESPONSE_OFFSET);
	return message_verbs[verb].is_urgent;
}

/* ---- Payloads and messages ----------------------------------------------------------------- */

struct message_payload *
message_payload_alloc(size_t size)
{
	struct message_payload *payload = malloc(sizeof(*payload) + size);

	if (payload == NULL)
		return NULL;
	atomic_init(&payload->references, 1);
	payload->is_within = false;
	payload->size = size;
	return payload;
}

struct message_payload *
message_payload_new(struct slice bytes)
{
	struct message_payload *payload = message_payload_alloc(bytes.size);

	if (payload != NULL && bytes.size > 0)
		memcpy(payload->data, bytes.data, bytes.size);
	return payload;
}

void
message_payload_ref(struct message_payload *payload)
{
	/* Relaxed: who refers already has it, and what it holds was handed over before. */
	atomic_fetch_add_explicit(&payload->references, 1, memory_order_relaxed);
}

/* The message that a payload was decoded with. */
static struct message *
message_around(struct message_payload *payload)
{
	return (struct message *)(void *)((uint8_t *)payload - sizeof(struct message));
}

void
message_payload_unref(struct message_payload *payload)
{
	unsigned old;

	if (payload == NULL)
		return;
	/* Release what was read of it, acquire what others did with it: the last one frees. */
	old = atomic_fetch_sub_explicit(&payload->references, 1, memory_order_acq_rel);
	assert(old > 0);
	if (old != 1)
		return;
	if (payload->is_within)
		free(message_around(payload));
	else
		free(payload);
}

struct message *
message_new(uint8_t verb, struct message_payload *payload)
{
	struct message *message = malloc(sizeof(*message));

	if (message == NULL)
		message_payload_unref(payload);
	else
		message_init(message, verb, payload, NULL);
	return message;
}

void
message_init(struct message *message, uint8_t verb, struct message_payload *payload,
    void (*release)(struct message *message))
{
	*message = (struct message){.references = 1,
	    .verb = verb,
	    .flags = verb_is_urgent(verb) ? MESSAGE_URGENT : 0,
	    .payload = payload,
	    .release = release};
}

int
message_forwards_alloc(struct message *message, uint16_t count)
{
	assert(message->forwards == NULL);
	message->forwards = zalloc(count * sizeof(*message->forwards));
	if (message->forwards == NULL)
		return -1;
	message->forward_count = count;
	return 0;
}

void
message_ref(struct message *message)
{
	atomic_fetch_add_explicit(&message->references, 1, memory_order_relaxed);
}

void
message_unref(struct message *message)
{
	unsigned old;

	if (message == NULL)
		return;
	old = atomic_fetch_sub_explicit(&message->references, 1, memory_order_acq_rel);
	assert(old > 0);
	if (old != 1)
		return;
	if (message->on_free != NULL)
		message->on_free(message);
	if (message->release != NULL) {
		message_payload_unref(message->payload);
		message->release(message);
		return;
	}
	free(message->forwards);
	/* A payload within our block may live on in other messages; the last reference to it frees both. */
	if (message->payload != NULL && message->payload->is_within &&
	    message_around(message->payload) == message) {
		message_payload_unref(message->payload);
		return;
	}
	message_payload_unref(message->payload);
	free(message);
}

/* ---- Wire form ----------------------------------------------------------------------------- */

size_t
message_size(const struct message *message)
{
	return MESSAGE_HEAD_MAX +
	    (size_t)message->forward_count * (ENDPOINT_WIRE_MAX + VINT_SIZE_MAX) +
	    (message->payload == NULL ? 0 : message->payload->size);
}

/* At least one microsecond while it has not expired: 0 is "never". */
static uint64_t
message_us_left(const struct message *message, uint64_t now_ns)
{
	uint64_t us;

	if (message->expires_ns == 0)
		return 0;
	us = message->expires_ns > now_ns ? (message->expires_ns - now_ns) / MESSAGE_NS_PER_US : 0;
	return us == 0 ? 1 : us;
}

static void
message_put_endpoint(struct buffer *out, const struct endpoint *endpoint)
{
	uint8_t wire[ENDPOINT_WIRE_MAX];

	buffer_put(out, wire, endpoint_encode(endpoint, wire));
}

static void
message_put_trace(struct buffer *out, const struct trace *trace)
{
	buffer_put_u8(out, trace->type);
	buffer_put(out, trace->session.bytes, sizeof(trace->session.bytes));
}

void
message_set_trace(struct message *message, const struct trace *trace)
{
	if (trace->type == TRACE_NONE)
		return;
	message->flags |= MESSAGE_TRACED;
	message->trace = *trace;
}

void
message_encode(
    const struct message *message, const struct endpoint *self, uint64_t now_ns, struct buffer *out)
{
	bool has_from = !endpoint_equal(&message->from, self);
	unsigned flags = message->flags & MESSAGE_WIRE_FLAGS;

	if (has_from)
		flags |= MESSAGE_WIRE_FROM;
	if (message->forward_count > 0)
		flags |= MESSAGE_WIRE_FORWARDS;
	if (!buffer_reserve(out, message_size(message)))
		return;
	buffer_put_u8(out, message->verb);
	buffer_put_u8(out, (uint8_t)flags);
	buffer_put_vint(out, message->id);
	buffer_put_vint(out, message_us_left(message, now_ns));
	if (has_from)
		message_put_endpoint(out, &message->from);
	if ((flags & MESSAGE_TRACED) != 0)
		message_put_trace(out, &message->trace);
	if (message->forward_count > 0) {
		buffer_put_vint(out, message->forward_count);
		for (uint16_t i = 0; i < message->forward_count; i++) {
			message_put_endpoint(out, &message->forwards[i].to);
			buffer_put_vint(out, message->forwards[i].id);
		}
	}
	buffer_put_slice(out, message_payload_slice(message));
}

static void
message_get_trace(struct reader *reader, uint64_t now_ns, struct trace *out)
{
	uint8_t type = reader_u8(reader);
	struct slice session = reader_bytes(reader, sizeof(out->session.bytes));

	if (reader->is_failed) {
		out->type = TRACE_QUERY; /* it ends too early: said below */
		return;
	}
	out->type = type;
	out->began_ns = now_ns;
	memcpy(out->session.bytes, session.data, sizeof(out->session.bytes));
}

static void
message_get_endpoint(struct reader *reader, struct endpoint *out)
{
	size_t size = reader->is_failed ? 0 : endpoint_decode(reader->at, reader_left(reader), out);

	if (size == 0)
		reader->is_failed = true;
	else
		reader_skip(reader, size);
}

static int
message_get_forwards(struct reader *reader, struct message *message, struct error *err)
{
	uint64_t count = reader_vint(reader);

	if (reader->is_failed || count == 0 || count > UINT16_MAX ||
	    count > reader_left(reader) / MESSAGE_FORWARD_MIN)
		return error_set(err, ERROR_INVALID, "message: its forwards do not fit into it");
	if (message_forwards_alloc(message, (uint16_t)count) != 0)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a message");
	for (uint16_t i = 0; i < message->forward_count; i++) {
		message_get_endpoint(reader, &message->forwards[i].to);
		message->forwards[i].id = reader_vint(reader);
	}
	return 0;
}

void
message_encode_answer(const struct message_answer *answer, uint64_t now_ns, struct buffer *out)
{
	uint64_t ns = answer->expires_ns, us = 0;

	if (ns != 0)
		us = ns > now_ns + MESSAGE_NS_PER_US ? (ns - now_ns) / MESSAGE_NS_PER_US : 1;
	buffer_put_u8(out, answer->verb);
	buffer_put_u8(out, 0);
	buffer_put_vint(out, answer->id);
	buffer_put_vint(out, us);
}

bool
message_peek_answer(struct slice encoded, struct message_answer *out)
{
	struct reader reader = reader_of(encoded);
	uint8_t flags;

	if (encoded.size > MESSAGE_ANSWER_MAX)
		return false;
	out->verb = reader_u8(&reader);
	flags = reader_u8(&reader);
	out->id = reader_vint(&reader);
	(void)reader_vint(&reader);
	return !reader.is_failed && flags == 0 && reader_left(&reader) == 0 &&
	    verb_is_answer(out->verb);
}

/*
 * `message` has room behind it for a payload of all that is left in the reader. Sets the payload only on success.
 */
static int
message_decode_into(struct message *message, struct reader *reader, uint64_t now_ns,
    struct peer *sender, struct error *err)
{
	struct message_payload *payload;
	unsigned flags = reader_u8(reader);
	uint64_t us;

	message->flags = (uint8_t)(flags & MESSAGE_WIRE_FLAGS);
	message->id = reader_vint(reader);
	us = reader_vint(reader);
	if (us > UINT64_MAX / 2 / MESSAGE_NS_PER_US)
		return error_set(err, ERROR_INVALID, "message: it expires in no foreseeable time");
	message->expires_ns = us == 0 ? 0 : now_ns + us * MESSAGE_NS_PER_US;
	if ((flags & MESSAGE_WIRE_FROM) != 0) {
		message_get_endpoint(reader, &message->from);
	} else {
		message->from = sender->endpoint;
		message->peer = sender;
	}
	if ((flags & MESSAGE_TRACED) != 0) {
		message_get_trace(reader, now_ns, &message->trace);
		if (message->trace.type == TRACE_NONE || message->trace.type >= TRACE_TYPE_COUNT)
			return error_set(err, ERROR_INVALID, "message: a trace of an unknown type");
	}
	if ((flags & MESSAGE_WIRE_FORWARDS) != 0 && message_get_forwards(reader, message, err) != 0)
		return -1;
	if (reader->is_failed)
		return error_set(err, ERROR_INVALID, "message: it ends within its header");
	if (reader_left(reader) == 0)
		return 0;
	payload = (struct message_payload *)(void *)(message + 1);
	atomic_init(&payload->references, 1);
	payload->is_within = true;
	payload->size = reader_left(reader);
	memcpy(payload->data, reader->at, payload->size);
	message->payload = payload;
	return 0;
}

int
message_decode(struct slice encoded, struct peer *sender, uint64_t now_ns, struct message **out,
    struct error *err)
{
	struct reader reader = reader_of(encoded);
	uint8_t verb = reader_u8(&reader);
	struct message *message;

	if (reader.is_failed)
		return error_set(err, ERROR_INVALID, "message: it is empty");
	message = malloc(sizeof(*message) + sizeof(struct message_payload) + reader_left(&reader));
	if (message == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a message of %zu bytes",
		    reader_left(&reader));
	*message = (struct message){.references = 1, .verb = verb};
	if (message_decode_into(message, &reader, now_ns, sender, err) != 0) {
		message_unref(message);
		return -1;
	}
	*out = message;
	return 0;
}
