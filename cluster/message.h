/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_MESSAGE_H
#define HELENUS_CLUSTER_MESSAGE_H

/*
 * What nodes say to each other: a verb, an id that ties an answer to its request, and a payload that the verb's
 * owner encodes. Verbs and numbers are those of Cassandra's net/Verb where it has them; the encoding is ours.
 *
 * A message is shared and immutable once sent: one encoded mutation goes to all replicas. What differs
 * for each addressee (id, forwarding) stands in an envelope of its own: struct message is that small
 * envelope, its payload a shared reference.
 */
#include <stdatomic.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/endpoint.h"
#include "base/error.h"
#include "base/task.h"
#include "base/uuid.h"
#include "cluster/peer.h"
#include "cluster/trace.h"

/* Requests are 0..59 and 100..159; the answer to each is 60 above it, so a number tells which of both it is. */
enum verb {
	VERB_MUTATION_REQ = 0,
	VERB_HINT_REQ = 1,
	VERB_READ_REPAIR_REQ = 2,
	VERB_READ_REQ = 3,
	VERB_BATCH_STORE_REQ = 5,
	VERB_BATCH_REMOVE_REQ = 6,
	VERB_RANGE_REQ = 9,
	VERB_GOSSIP_DIGEST_SYN = 14,
	VERB_GOSSIP_DIGEST_ACK = 15,
	VERB_GOSSIP_DIGEST_ACK2 = 16,
	VERB_SCHEMA_PUSH_REQ = 18,
	VERB_TRUNCATE_REQ = 19,
	VERB_SCHEMA_VERSION_REQ = 20,
	VERB_SNAPSHOT_REQ = 27,
	VERB_COUNTER_MUTATION_REQ = 24,
	VERB_SCHEMA_PULL_REQ = 28,
	VERB_GOSSIP_SHUTDOWN = 29,
	VERB_ECHO_REQ = 31,
	VERB_REPLICATION_DONE_REQ = 22,
	VERB_PAXOS_PREPARE_REQ = 33,
	VERB_PAXOS_PROPOSE_REQ = 34,
	VERB_PAXOS_COMMIT_REQ = 35,
	VERB_PAXOS2_CLEANUP_REQ = 36, /* Cassandra's numbers of it leave none for the answer */
	VERB_PING_REQ = 37,
	VERB_TRACE = 30, /* Cassandra's _TRACE */
	/* Answers: request + 60, as most of Cassandra's. */
	VERB_RESPONSE_OFFSET = 60,
	VERB_FAILURE_RSP = 99,
	/* Repair: answers come as requests of their own or as request + 60 alike. */
	VERB_REPAIR_FIRST = 100,
	VERB_VALIDATION_REQ = 101,
	VERB_SYNC_REQ = 103,
	VERB_PREPARE_MSG = 105,
	VERB_SNAPSHOT_MSG = 106,
	VERB_CLEANUP_MSG = 107,
	VERB_PREPARE_CONSISTENT_REQ = 108,
	VERB_FINALIZE_PROPOSE_MSG = 110,
	VERB_FINALIZE_COMMIT_MSG = 112,
	VERB_FAILED_SESSION_MSG = 113,
	VERB_STATUS_REQ = 115,
	/* Ours. */
	VERB_SCHEMA_PREPARE_REQ = 130, /* one order of schema changes for the cluster */
	VERB_SCHEMA_PROPOSE_REQ = 131,
	VERB_SCHEMA_COMMIT_REQ = 132,
	VERB_STREAM_INIT = 140, /* on the streaming connection alone */
	VERB_STREAM_PREPARE = 141,
	VERB_STREAM_FILE = 142,
	VERB_STREAM_DATA = 143,
	VERB_STREAM_ACK = 144,
	VERB_STREAM_DONE = 145,
	VERB_STREAM_FAILED = 146,
	VERB_STREAM_COMPLETE = 147,
	VERB_STREAM_KEEP_ALIVE = 148,
	VERB_STREAM_RESUME = 149,
	VERB_COUNT = 256
};

static inline bool
verb_is_answer(uint8_t verb)
{
	return (verb >= 60 && verb < 100) || verb >= 160;
}

/* Cassandra's name ("MUTATION_REQ", "MUTATION_RSP"); "UNKNOWN". Static. */
const char *verb_name(uint8_t verb);
/* Priority P0: gossip and what else must not wait behind data. */
bool verb_is_urgent(uint8_t verb);

/* Why a replica could not (Cassandra's RequestFailureReason; the codes go to v5 clients as they are). */
enum failure_reason {
	FAILURE_UNKNOWN = 0,
	FAILURE_READ_TOO_MANY_TOMBSTONES = 1,
	FAILURE_TIMEOUT = 2,
	FAILURE_INCOMPATIBLE_SCHEMA = 3,
	FAILURE_READ_SIZE = 4, /* of the coordinator */
};

/* Bytes that several messages share. Immutable once it is in a message. */
struct message_payload {
	atomic_uint references;
	bool
	    is_within; /* stands behind a struct message that was decoded, in one block of memory */
	size_t size;
	uint8_t data[];
};
/* A copy of `bytes`, one reference. NULL: no memory. */
struct message_payload *message_payload_new(struct slice bytes);
/* To be filled by the caller before anybody else sees it. NULL: no memory. */
struct message_payload *message_payload_alloc(size_t size);
void message_payload_ref(struct message_payload *payload);
void message_payload_unref(struct message_payload *payload); /* NULL is accepted */

enum message_flags {
	MESSAGE_WANTS_FAILURE = 1, /* answer FAILURE_RSP rather than nothing */
	MESSAGE_TRACED = 2, /* `trace` is set */
	MESSAGE_URGENT = 4, /* P0: goes ahead on its own connection */
};

/* One more addressee of a mutation within the same remote data center (CL-13): the receiver applies the payload,
 * and sends it on to these with the given ids; their answers go straight to `from`. */
struct message_forward {
	struct endpoint to;
	uint64_t id;
};

struct message {
	struct task task; /* first; messaging's, while it waits for its stage */
	struct message *next; /* in a list of messages (of a queue, or for messaging_receive()) */
	atomic_uint references;
	uint8_t verb; /* enum verb, or verb + VERB_RESPONSE_OFFSET */
	uint8_t flags;
	uint16_t forward_count;
	uint64_t id; /* of the request; an answer carries its request's. 0: nobody waits */
	uint64_t created_ns; /* monotonic clock of this node: when made; of what was received 0 */
	struct endpoint from; /* who gets the answer: not always who sent it (forwards) */
	uint64_t
	    expires_ns; /* monotonic clock of this node; 0: never. On the wire: what is left of it */
	struct trace trace; /* with MESSAGE_TRACED; message_set_trace() */
	struct message_forward *forwards; /* owned */
	struct message_payload *payload; /* one reference; NULL: empty */
	/* The peer that `from` is, where who made or read the message knows it; NULL: to be looked up. */
	struct peer *peer;
	void *owner; /* messaging's */
	/* Of who made it within something larger (message_init()): takes the memory back when the last reference is gone, in
	 * place of free(); `forwards` are its as well. */
	void (*release)(struct message *message);
	/* The transport's, for what it read: told when the last reference goes. */
	void (*on_free)(struct message *message);
	void *transport;
	size_t transport_bytes;
	bool is_dropped; /* messaging's: it expired or found no room, its handler did not run */
};

static inline struct slice
message_payload_slice(const struct message *message)
{
	return message->payload == NULL
	    ? (struct slice){(const uint8_t *)"", 0}
	    : (struct slice){message->payload->data, message->payload->size};
}

/*
 * One reference; takes over one reference of `payload` (which may be NULL). Flags are MESSAGE_URGENT where the verb
 * is, all other fields zero and the caller's to fill. NULL: no memory (the payload is released).
 */
struct message *message_new(uint8_t verb, struct message_payload *payload);
/* The same in memory that is there, and is given back by release(). */
void message_init(struct message *message, uint8_t verb, struct message_payload *payload,
    void (*release)(struct message *message));
/* The message belongs to a traced request; nothing where that is not traced. */
void message_set_trace(struct message *message, const struct trace *trace);
/* Room for `count` forwards, zeroed, in message->forwards. -1: no memory. */
int message_forwards_alloc(struct message *message, uint16_t count);
void message_ref(struct message *message);
void message_unref(struct message *message); /* NULL is accepted */

/* Bytes of the wire form, or a few more; cheap. What queues count. */
size_t message_size(const struct message *message);
/*
 * Wire form, big-endian: what stands in a frame of an internode connection (cluster/frame.h). `self` is the
 * endpoint that the connection's handshake told of the sender: `from` is left out where it is the same.
 * The receiver's clock decides expiry: the remaining time travels, not a moment. A message that has expired
 * must not be encoded (message_is_expired()).
 *
 *   u8 verb | u8 flags (MESSAGE_*, 0x40: forwards follow, 0x80: `from` follows) | vint id |
 *   vint us left (0: never expires) | [from: endpoint] | [u8 enum trace_type, session: 16] |
 *   [vint count, of each: endpoint, vint id] | payload: the rest
 */
void message_encode(const struct message *message, const struct endpoint *self, uint64_t now_ns,
    struct buffer *out);
/*
 * Decode one whole message; the payload is copied. `sender` is the connection's: `from` and `peer` where the
 * message tells no other. On success *out has one reference. ERROR_INVALID names what is wrong; ERROR_NO_MEMORY.
 */
int message_decode(struct slice encoded, struct peer *sender, uint64_t now_ns, struct message **out,
    struct error *err);

/*
 * An answer without a payload, of which there are many (each replica's for each write), needs no message: its wire form is that
 * of one without `from`, trace and forwards, which is how it may be read as well.
 */
struct message_answer {
	struct peer *peer; /* to whom it goes, or who sent it */
	uint64_t id; /* of the request */
	uint64_t expires_ns; /* as in struct message */
	uint8_t verb; /* the answer's */
};
enum { MESSAGE_ANSWER_MAX = 2 + 2 * VINT_SIZE_MAX };
void
message_encode_answer(const struct message_answer *answer, uint64_t now_ns, struct buffer *out);
/* False: it is something else, or not understood: message_decode() tells. Sets verb and id. */
bool message_peek_answer(struct slice encoded, struct message_answer *out);

static inline bool
message_is_expired(const struct message *message, uint64_t now_ns)
{
	return message->expires_ns != 0 && message->expires_ns <= now_ns;
}

#endif
