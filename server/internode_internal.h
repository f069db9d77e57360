/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_INTERNODE_INTERNAL_H
#define HELENUS_SERVER_INTERNODE_INTERNAL_H

/*
 * The insides of the wire between nodes, shared by internode*.c.
 *
 *   internode.c          the whole: configuration, start, stop, what others ask
 *   internode_env.c      struct cluster_env: stages and timers
 *   internode_socket.c   a socket on a loop, plain or TLS; dialling: connect, hello, welcome
 *   internode_link.c     outbound: a queue and the connection that empties it
 *   internode_inbound.c  accepting, inbound connections, what a turn of a loop received
 *   internode_stream.c   streaming channels
 *
 * A socket, and all that is not said to be shared, belongs to its loop's thread.
 */
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include "base/lock.h"
#include "base/timer_wheel.h"
#include "cluster/frame.h"
#include "cluster/messaging.h"
#include "server/internode.h"
#include "server/loop.h"
#include "server/node.h"
#include "server/tls.h"

enum {
	INTERNODE_READ_SIZE = 256 << 10, /* a loop's memory to read into */
	INTERNODE_OUT_HIGH = 256 << 10, /* encoded and not written: no more is encoded */
	INTERNODE_OUT_KEEP = 128 << 10, /* an idle connection keeps so much memory at most */
	INTERNODE_LARGE_BYTES = 64 << 10, /* larger messages have a link of their own */
	INTERNODE_CHARGE_BYTES = 64 << 10, /* so many may have been read and not be counted yet */
	INTERNODE_READS_MAX = 8, /* of one socket in one turn */
	INTERNODE_ANSWERS_KEEP = 1024, /* room for so many is kept */
	INTERNODE_HANDSHAKES_MAX = 512, /* inbound ones at one time */
	INTERNODE_LISTENERS = 2,
	INTERNODE_PEERS_MAX = 1 << 16,
	INTERNODE_LOG_NS = 1000 * 1000 * 1000, /* refused connections: one line in so long */
};

/* Which peers something is for: internode_encryption, internode_compression. */
enum internode_scope { INTERNODE_NONE, INTERNODE_RACK, INTERNODE_DC, INTERNODE_ALL };

/* ---- Sockets -------------------------------------------------------------------------------- */

struct internode_socket {
	struct loop *loop; /* borrowed */
	int fd; /* -1: none */
	struct tls_session *tls; /* owned; NULL: plain */
	struct event *read_event, *write_event; /* owned */
	bool is_reading;
	char address[ENDPOINT_TEXT_SIZE]; /* of the other side; no port */
	char name[ENDPOINT_TEXT_SIZE + 8]; /* with the port */
};

/* Takes the descriptor over, closes it on failure. Reads from here on. */
int internode_socket_open(struct internode_socket *socket, struct loop *loop, int fd,
    const struct sockaddr_storage *other, event_callback_fn read_cb, event_callback_fn write_cb,
    void *argument);
/* Give it to another owner: its callbacks from here on. What was read before is that one's to know. */
int internode_socket_move(struct internode_socket *from, struct internode_socket *to,
    event_callback_fn read_cb, event_callback_fn write_cb, void *argument);
void internode_socket_close(struct internode_socket *socket);
void internode_socket_pause(struct internode_socket *socket, bool is_paused);
/* As recv() and send(); on EAGAIN the callbacks come when it may go on. */
ssize_t internode_socket_read(struct internode_socket *socket, void *out, size_t size);
ssize_t internode_socket_write(struct internode_socket *socket, const void *data, size_t size);
/* After a failure: what errno, or TLS, says. Into `out`. */
void
internode_socket_error(const struct internode_socket *socket, struct error *out, const char *what);
/* A timer of the loop, once: replaces the one that is set. */
int internode_timer_set(
    struct event **timer, struct loop *loop, uint64_t ms, event_callback_fn fire, void *argument);
void internode_timer_end(struct event **timer);

/* ---- Dialling ------------------------------------------------------------------------------- */

struct internode_dial {
	struct internode *internode; /* borrowed */
	struct peer *to;
	struct loop *loop;
	enum frame_kind kind;
	struct internode_socket socket;
	bool is_connected;
	struct buffer out; /* owned; the hello */
	size_t written;
	uint8_t in[HANDSHAKE_SIZE_MAX];
	size_t have;
	struct frame_welcome welcome;
	struct event *timer; /* owned */
	/*
	 * err NULL: dial->socket is open and dial->welcome there: move the socket out. Else all is closed. Runs on
	 * the loop, within internode_dial_start() too.
	 */
	void (*on_done)(struct internode_dial *dial, const struct error *err);
};

/* The other fields are zero but to, loop, kind, internode and on_done. */
void internode_dial_start(struct internode_dial *dial);
/* Without on_done(). Idempotent. */
void internode_dial_end(struct internode_dial *dial);

/* ---- Peers and their links ------------------------------------------------------------------ */

enum internode_link_state {
	INTERNODE_LINK_IDLE, /* nothing to say, or nobody to say it to */
	INTERNODE_LINK_DIALLING,
	INTERNODE_LINK_WAITING, /* to dial again */
	INTERNODE_LINK_UP,
};

/* Answers without payload that wait, or came. */
struct internode_answers {
	struct message_answer *list; /* owned */
	size_t count, capacity;
};

void internode_answers_add(struct internode_answers *answers, const struct message_answer *answer);
/* Forget them; memory of a few is kept. */
void internode_answers_clear(struct internode_answers *answers);
void internode_answers_fini(struct internode_answers *answers);

struct internode_link {
	struct loop_message wake; /* first; posted by who sets is_scheduled */
	struct internode_peer *peer; /* borrowed */
	enum internode_kind kind;
	struct loop *loop; /* borrowed; whose thread owns what is not said to be shared */
	struct internode_link *next_touched; /* in a worker's `links` */

	/* seq_cst: who queues sets it, the loop clears it before it looks at the queue. */
	atomic_bool is_scheduled;
	atomic_bool is_drop_wanted; /* the peer is dead */
	atomic_bool is_there; /* it has connected to us: no use waiting to dial */

	/* Guarded by lock. */
	struct lock lock;
	struct message *first, *last;
	struct internode_answers answers; /* they are not in the order of messages */
	uint64_t pending_count, pending_bytes; /* with those that were taken */
	uint64_t overload_count, overload_bytes;

	/* The loop's. */
	enum internode_link_state state;
	struct message *taken, *taken_last; /* off the queue, not encoded yet */
	struct internode_answers taken_answers;
	size_t answers_done; /* of them */
	struct internode_dial dial;
	struct internode_socket socket;
	struct frame_writer writer;
	struct buffer out; /* owned */
	size_t written;
	struct event *timer;
	uint32_t failures; /* dials in a row */
	bool has_writer;

	/* Written by the loop, read by anybody; relaxed. */
	_Atomic bool is_connected;
	_Atomic uint64_t attempts, successes, sent_count, sent_bytes, expired_count, expired_bytes,
	    error_count, error_bytes;
};

struct internode_peer {
	struct internode *internode; /* borrowed */
	struct peer *peer; /* borrowed */
	struct internode_link links[INTERNODE_KINDS];
	_Atomic uint64_t send_reserve; /* bytes over the links' own capacities */
	/* Inbound, of all its connections; relaxed. */
	_Atomic uint64_t connections, received_count, received_bytes, processed_count,
	    processed_bytes, expired_count, expired_bytes, error_count, error_bytes, recovered,
	    unrecovered, throttled_count, throttled_ns, receive_reserve;
};

/* Made at the first use. Any thread. */
struct internode_peer *internode_peer_get(struct internode *internode, struct peer *peer);
void internode_peer_free(struct internode_peer *peer);

/* cluster_env.send. */
void internode_send(
    struct cluster_env *env, struct peer *to, struct message *message, struct worker *worker);
/* cluster_env.answer. */
void internode_answer(
    struct cluster_env *env, const struct message_answer *answer, struct worker *worker);
/* On the link's loop, for a wake that was scheduled: look at the queue, connect, write. */
void internode_link_run(struct internode_link *link);
/* The links' loops have to look again. Any thread. */
void internode_link_wake(struct internode_link *link);
/* On the link's loop: close it and drop what waits. */
void internode_link_end(struct internode_link *link);

/* ---- Inbound -------------------------------------------------------------------------------- */

struct internode_inbound_connection {
	struct loop_message resume; /* first; posted when a throttled one may be read again */
	struct internode *internode; /* borrowed */
	struct internode_peer *from; /* borrowed; NULL before the hello */
	struct loop *loop; /* borrowed */
	struct internode_inbound_connection *next, *previous; /* in the loop's list */
	struct internode_socket socket;
	struct event *timer; /* of the handshake */
	bool is_tls_known, is_in_handshake, is_up;
	bool is_closing; /* when the welcome is written */
	struct frame_reader reader;
	struct buffer rest; /* owned; read and not taken */
	struct buffer out; /* owned; the welcome */
	size_t written;
	uint64_t throttled_since_ns;
	/* Messages, and answers that need none, that are not counted yet (internode_inbound_charge). */
	uint64_t fresh_count, fresh_bytes, fresh_answers, fresh_answer_bytes;

	/* Shared. */
	/* References times INTERNODE_HELD_ONE: one while it is open, one of each message; and the messages' bytes. */
	_Atomic uint64_t held;
	atomic_bool is_throttled; /* set by the loop, cleared by who releases */
	atomic_bool is_resuming; /* `resume` is posted */
};

#define INTERNODE_HELD_ONE                                                                         \
	(UINT64_C(1) << 36) /* more than all messages of a connection have bytes */

void internode_accept_cb(evutil_socket_t fd, short what, void *argument);
void internode_inbound_close(struct internode_inbound_connection *connection);

/* ---- Streams -------------------------------------------------------------------------------- */

struct internode_stream;

struct stream_channel *
internode_stream_open(struct cluster_env *env, struct peer *to, struct stream_user *user);
/*
 * An inbound connection wants to be a stream: asks cluster_env.on_stream. On success its socket has moved, `rest` (bytes
 * that were read) is copied, and the welcome will be written. False: refuse it.
 */
bool internode_stream_accept(struct internode_inbound_connection *connection,
    enum compression compression, struct slice rest, struct slice welcome);
/* On the loop: the end of all its streams. */
void internode_streams_end(struct internode_loop *loop);
/* The loops and internode_streams_end() are over: those whose wake came too late for their loop go, and their users are
 * told where they were not. */
void internode_streams_end_dropped(struct internode *internode);

/* ---- A loop's share ------------------------------------------------------------------------- */

struct internode_loop {
	struct internode *internode; /* borrowed */
	struct message *received, *received_last; /* of this turn */
	struct internode_answers answers; /* of this turn */
	bool is_in_turn; /* what REQUEST_RESPONSE gets is collected */
	struct task *responses, *responses_last; /* of this turn */
	size_t response_count;
	struct internode_inbound_connection *inbound; /* open ones */
	struct internode_stream *streams; /* open ones */
	uint8_t *read_memory; /* owned; INTERNODE_READ_SIZE */
};

/* ---- The whole ------------------------------------------------------------------------------ */

struct internode_timers {
	struct lock lock;
	struct timer_wheel wheel; /* guarded by lock */
	uint64_t sleeps_until_ns; /* guarded by lock */
	bool is_stopping; /* guarded by lock */
	pthread_t thread;
	bool is_started;
	int wake_fd;
};

struct internode {
	struct cluster_env env; /* first */
	struct node *node; /* borrowed */
	struct peers *peers; /* borrowed */
	struct messaging *messaging; /* borrowed; set by internode_start() */
	struct endpoint local;
	char listen_address[ENDPOINT_TEXT_SIZE];
	struct internode_places places;
	internode_refused_fn on_refused; /* NULL: nobody wants to know */
	void *on_refused_context;
	struct internode_timers timers;

	uint64_t send_capacity, send_endpoint_max, send_global_max;
	uint64_t receive_capacity, receive_endpoint_max, receive_global_max;
	size_t message_max;
	enum internode_scope compression, encryption;
	bool is_tls_optional;
	bool
	    counts_waiting; /* internode_timeout: the time that a message has waited here is part of its timeout */

	struct lock lock;
	struct tls_context *tls; /* guarded by lock; NULL: none */

	/* Loop 0's: one for the address that is listened on, one for listen_on_broadcast_address. */
	int listen_fds[INTERNODE_LISTENERS];
	struct event *accept_events[INTERNODE_LISTENERS];
	struct internode_loop *loops; /* owned; one for each of the network's */
	uint32_t loop_count; /* the network's, which may be gone before this */
	_Atomic uint32_t next_loop; /* for inbound connections and streams */
	/* Whose wake was posted when the loop had ended; newest first. Any thread adds, all are taken at once. */
	_Atomic(struct internode_stream *) dropped_streams;
	atomic_bool is_running;
	_Atomic uint64_t send_reserve, receive_reserve; /* bytes, of the whole node */
	atomic_uint handshakes;
	_Atomic uint64_t refused, refused_logged_ns, refused_logged;
};

bool internode_is_for(
    const struct internode *internode, enum internode_scope scope, const struct peer *peer);
/* A reference to the TLS context of now; NULL: none. */
struct tls_context *internode_tls(struct internode *internode);
struct loop *internode_next_loop(struct internode *internode);
static inline uint64_t
internode_now(const struct internode *internode)
{
	return env_monotonic_ns(internode->node->env);
}
/* Take from a reserve, or not. */
bool internode_reserve_take(_Atomic uint64_t *used, uint64_t bytes, uint64_t max);
/* One line of the log for a connection that was refused, and seldom enough. */
void internode_log_refused(struct internode *internode, const char *name, const char *why);

/* internode_env.c */
void internode_timers_start(struct internode *internode);
size_t internode_submit(struct cluster_env *env, enum cluster_stage stage, struct task *first,
    size_t count, struct worker *worker, struct task **rest);
/* On the loop: what the turn's answers left to do, as one batch. */
void internode_run_responses(struct loop *loop);
void internode_timer_start(struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns);
bool internode_timer_stop(struct cluster_env *env, struct cluster_timer *timer);

/* Count, relaxed. */
static inline void
internode_add(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static inline uint64_t
internode_get(_Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
