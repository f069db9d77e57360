/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_INTERNODE_H
#define HELENUS_SERVER_INTERNODE_H

/*
 * The wire between nodes, and with it the real world of the cluster floor (struct cluster_env): stages of the node,
 * timers with a thread of their own, and sockets on the network loops (server/loop.h).
 *
 *   out   a message goes into the queue of its peer's link: urgent, small or large (over 64 KiB). What one run of a
 *         stage, or one turn of a loop, sends to a link wakes the link's loop once and leaves in one write.
 *   in    what one turn of a loop read from all peers goes to messaging_receive() as one list.
 *
 * Links connect when there is something to say and reconnect with growing pauses. Queues are bounded for
 * each link, with reserves for each peer and for the node (internode_application_*_queue_*): over them messages
 * are dropped and counted, or the socket is not read. A message that expires in a queue is dropped. Handshakes
 * and frames are cluster/frame.h's; TLS is server_encryption_options'.
 *
 * Cassandra: net/OutboundConnection(s), InboundConnectionInitiator, InboundMessageHandler, SocketFactory.
 */
#include "base/endpoint.h"
#include "base/error.h"
#include "cluster/cluster_env.h"

struct config;
struct internode;
struct messaging;
struct node;

enum internode_kind { INTERNODE_URGENT, INTERNODE_SMALL, INTERNODE_LARGE, INTERNODE_KINDS };

/*
 * broadcast_address (or the address that is listened on) and storage_port: how other nodes know this one.
 * ERROR_CONFIG.
 */
int internode_local_endpoint(const struct config *config, struct endpoint *out, struct error *err);

/* Timers run from here on; nothing listens. Both outlive it. */
struct internode *internode_new(struct node *node, struct peers *peers);
/* What the cluster floor is given. Lives as long as the internode. */
struct cluster_env *internode_env(struct internode *internode);

/* Where peers are, for internode_compression and internode_encryption: NULL: not known (yet), then taken for another
 * data center. Any thread; must not block. */
struct internode_places {
	void *context;
	const char *(*datacenter)(void *context, const struct peer *peer);
	const char *(*rack)(void *context, const struct peer *peer);
};
void internode_set_places(struct internode *internode, const struct internode_places *places);
/* Told when a peer's host refuses a connection (gossip_refused()): nothing listens there. On a loop's thread. Before
 * internode_start(). */
typedef void (*internode_refused_fn)(void *context, struct peer *peer);
void
internode_set_refused(struct internode *internode, internode_refused_fn refused, void *context);

/* Listen and take part. The network's loops run already (network_start_loops()). ERROR_IO, ERROR_CONFIG. */
int internode_start(struct internode *internode, struct messaging *messaging, struct error *err);
/* Close all sockets and drop all queues; what is sent from now on is dropped. Before the loops end. Idempotent. */
void internode_stop(struct internode *internode);
/* Timers end: none fires from here on, and streams that were opened after internode_stop() are closed. After the stages have
 * ended and before messaging_free(). */
void internode_stop_timers(struct internode *internode);
void internode_free(struct internode *internode); /* NULL is accepted */

/* The peer was found dead: close its connections, drop its queues; requests that wait in them fail at once. */
void internode_peer_is_down(struct internode *internode, struct peer *peer);
/* Re-read the TLS files (SIGHUP, reloadssl). The old ones stay on failure. */
int internode_reload_tls(struct internode *internode, struct error *err);

/* ---- What others ask. Any thread ---- */

struct internode_outbound {
	const struct peer *peer;
	enum internode_kind kind;
	bool is_connected;
	uint64_t connection_attempts, successful_connection_attempts;
	uint64_t sent_count, sent_bytes;
	uint64_t pending_count, pending_bytes;
	uint64_t overload_count, overload_bytes; /* queue full */
	uint64_t expired_count, expired_bytes;
	uint64_t error_count, error_bytes; /* lost with their connection, too large, no memory */
	uint64_t reserve_bytes; /* of the peer's, all three links together */
};
typedef void (*internode_outbound_fn)(void *argument, const struct internode_outbound *outbound);
/* Three for each peer that was ever sent to. */
void
internode_each_outbound(struct internode *internode, internode_outbound_fn each, void *argument);

struct internode_inbound {
	const struct peer *peer;
	uint64_t connections; /* now */
	uint64_t received_count, received_bytes;
	uint64_t processed_count, processed_bytes;
	uint64_t scheduled_count, scheduled_bytes; /* received and not processed yet */
	uint64_t expired_count, expired_bytes;
	uint64_t error_count, error_bytes; /* could not be decoded */
	uint64_t corrupt_frames_recovered, corrupt_frames_unrecovered;
	uint64_t throttled_count, throttled_nanos; /* the socket was not read */
	uint64_t using_bytes, using_reserve_bytes;
};
typedef void (*internode_inbound_fn)(void *argument, const struct internode_inbound *inbound);
/* One for each peer that ever connected. */
void internode_each_inbound(struct internode *internode, internode_inbound_fn each, void *argument);

/* ---- For the loops (server/loop.c), on their threads ---- */

struct loop;
/* What this turn received goes to messaging_receive(). */
void internode_turn(struct loop *loop);
/* Links that got messages during a worker's run are told; those of the loop `here` (NULL: none) write at once. */
void internode_flush_worker(struct worker *worker, struct loop *here);

#endif
