/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_MESSAGING_H
#define HELENUS_CLUSTER_MESSAGING_H

/*
 * Requests and answers between nodes (net/MessagingService, RequestCallbacks): handlers by verb, callbacks by
 * id, expiry. Knows no socket: bytes go out by cluster_env.send and come in by messaging_receive(), from
 * the real transport (server/internode.h) or the simulated one.
 *
 * A message to the local peer does not touch the wire: it goes to its verb's stage at once, and its answer comes
 * the same way. Hot paths (coordinator) do their local part themselves.
 */
#include "cluster/cluster_env.h"

struct messaging;

struct messaging *messaging_new(struct cluster_env *env, struct peers *peers);
/* All callbacks that wait are failed (FAILURE_TIMEOUT), and so is at once what they request in turn. Nothing else may be
 * sent or received any more. */
void messaging_free(struct messaging *messaging);

/* ---- Receiving ---- */

/*
 * Runs on the verb's stage (CLUSTER_STAGE_IMMEDIATE: where the message came in). The message is borrowed for the
 * call; message_ref() to keep it. Who wants to answer calls messaging_respond() or
 * messaging_respond_failure(), at once or later (with the message kept), once.
 */
typedef void (*message_handler_fn)(void *context, struct message *message, struct worker *worker);
/* Before the first message. A verb without a handler is answered with failure and counted. PING_REQ has one from the
 * start: an empty answer. */
void messaging_handle(struct messaging *messaging, enum verb verb, enum cluster_stage stage,
    message_handler_fn handler, void *context);

/*
 * Told of requests of the verb that run soon, one after the other, with the context of the verb's handler: a chance to ask
 * for memory that they will miss, and no more. After messaging_handle(), before the first message.
 */
enum { MESSAGING_AHEAD_MAX = 16 };
typedef void (*message_ahead_fn)(void *context, struct message *const *messages, size_t count);
void messaging_look_ahead(struct messaging *messaging, enum verb verb, message_ahead_fn ahead);

void messaging_respond(struct messaging *messaging, const struct message *request,
    struct slice payload, struct worker *worker);
/* ... with a payload that is there already; takes over one reference (NULL: empty). */
void messaging_respond_payload(struct messaging *messaging, const struct message *request,
    struct message_payload *payload, struct worker *worker);
void messaging_respond_failure(struct messaging *messaging, const struct message *request,
    enum failure_reason reason, struct worker *worker);

/*
 * What the transport read from one connection in one go, in order; takes a reference of each (the list is linked
 * by `next`). Expired requests are dropped and counted by verb. Requests go to their stages, answers to their
 * callbacks on this thread.
 */
void messaging_receive(struct messaging *messaging, struct message *first, struct worker *worker);
/*
 * The same for answers without payload that were read without a message (message_peek_answer()). Their callbacks get one for
 * the call that must not be kept: only of verbs for which messaging_is_plain_answer() says so.
 */
void messaging_receive_answers(struct messaging *messaging, const struct message_answer *answers,
    size_t count, struct worker *worker);
static inline bool
messaging_is_plain_answer(uint8_t verb)
{
	return verb == VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET;
}

/* ---- Sending ---- */

/*
 * Somebody who waits for one answer, embedded in the request's state. on_answer runs exactly once for each
 * messaging_request(), on any thread (the one that read the answer, the timer's, or the caller's own when it can be
 * answered at once): with the answer (borrowed for the call), or NULL and the reason. It must be short:
 * count, decide, hand on. The callback's memory must live until then.
 */
struct message_callback {
	void (*on_answer)(struct message_callback *callback, const struct message *answer,
	    enum failure_reason reason, struct worker *worker);
	struct peer *peer; /* whom was asked; set by messaging_request() */
	uint64_t sent_ns;
	uint64_t id; /* of the request; set by messaging_request() */
	uint8_t verb; /* of the request; set by messaging_request() */
	/* Of the request's trace; 0: not traced. Set by messaging_request(), before messaging_expect() by who calls it. */
	uint64_t trace_began_ns;
	/* messaging's */
	struct wheel_timer timer;
	struct message_callback *next; /* in the hash chain */
};

/* Ids that no other request of this process has: for messages with forwards. */
uint64_t messaging_next_id(struct messaging *messaging);

/*
 * Send a request and wait for its answer until timeout_ns from now. Takes over one reference of the message; sets
 * id (unless it has one), from, created_ns, expires_ns and MESSAGE_WANTS_FAILURE.
 */
void messaging_request(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t timeout_ns, struct message_callback *callback, struct worker *worker);
/* The same of somebody who has just looked at the clock. */
void messaging_request_at(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t now_ns, uint64_t timeout_ns, struct message_callback *callback, struct worker *worker);
/*
 * The same, but the callback is told FAILURE_TIMEOUT after patience_ns (at most timeout_ns) already, while the message may still
 * be answered: who wants to wait on says messaging_expect() again with its id.
 */
void messaging_request_impatiently(struct messaging *messaging, struct peer *to,
    struct message *message, uint64_t now_ns, uint64_t timeout_ns, uint64_t patience_ns,
    struct message_callback *callback, struct worker *worker);
/* Wait for the answer to an id that goes out within another message (a forward). Before that message is sent. */
void messaging_expect(struct messaging *messaging, struct peer *from, enum verb verb, uint64_t id,
    uint64_t now_ns, uint64_t timeout_ns, struct message_callback *callback);
/* Nobody waits. Takes over one reference of the message. expires: timeout_ns from now, 0: never. Keeps an id and a
 * `from` that are set: a forwarded request's answers go to whom it came from. */
void messaging_send(struct messaging *messaging, struct peer *to, struct message *message,
    uint64_t timeout_ns, struct worker *worker);

/*
 * The transport gave a message up before it was on the wire (queue full, expired in it, peer dead): counted, and who
 * waits for its answer gets FAILURE_TIMEOUT now. The message is borrowed. Never under a lock. Who waits for the answers of
 * those that it was to be forwarded to is not told: they live, and whoever sent it may reach them otherwise.
 */
void messaging_undelivered(struct messaging *messaging, struct peer *to,
    const struct message *message, struct worker *worker);

/* ---- Counts (tpstats' dropped messages, netstats, metrics). Any thread. ---- */

struct messaging_verb_stats {
	uint64_t sent; /* handed to the wire or to this node itself */
	uint64_t received;
	uint64_t
	    dropped_internal; /* of this node's own: expired before its stage came to it, or stage full */
	uint64_t dropped_cross_node; /* of other nodes', alike */
	uint64_t undelivered; /* given up before it was on the wire */
	uint64_t expired; /* by request: no answer came in time */
	uint64_t unhandled; /* a verb that nobody handles */
	uint64_t late; /* answers that nobody waited for any more */
};
void
messaging_verb_stats(struct messaging *messaging, uint8_t verb, struct messaging_verb_stats *out);

/* Requests whose answer is waited for. */
size_t messaging_waiting(struct messaging *messaging);

#endif
