/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_NETWORK_INTERNAL_H
#define HELENUS_SERVER_NETWORK_INTERNAL_H

/* The insides of the network stage, shared by network.c, loop.c, connection*.c and events.c. */
#include <stdatomic.h>
#include "base/lock.h"
#include "server/client_history.h"
#include "server/limits.h"
#include "server/loop.h"
#include "server/network.h"
#include "server/node.h"
#include "server/tls.h"

enum { NETWORK_LOOPS_MAX = 64 };

/* CQL_VERSION of SUPPORTED; Cassandra 4.1 says the same. */
#define NETWORK_CQL_VERSION "3.4.6"

enum network_tls { NETWORK_TLS_OFF, NETWORK_TLS_OPTIONAL, NETWORK_TLS_REQUIRED };

struct network {
	struct node *node; /* borrowed */
	struct loop *loops; /* owned */
	uint32_t loop_count;
	struct limits limits;
	uint32_t frame_size_max;
	uint64_t receive_queue_bytes; /* of one connection, before the shared limits count */
	bool has_more_cores; /* than loops */
	uint64_t idle_timeout_ns; /* 0: none */
	uint8_t version_max;
	atomic_bool allows_older_versions; /* than version_max */
	bool is_throwing; /* native_transport_throw_on_overload */
	const char *authenticator; /* class for AUTHENTICATE; NULL: nobody has to */
	char authenticator_class[128];

	/* One start, stop, enable or disable at a time; held while loops are waited for. */
	struct lock control;
	bool has_loops; /* they were started */
	int listen_fd; /* loop 0's while it listens */
	struct event *accept_event; /* on loop 0 */
	atomic_bool is_stopped;

	/* Guarded by lock. */
	struct lock lock;
	struct tls_context *tls;

	struct client_history clients_seen;

	atomic_uint undrained; /* loops with clients, while stopping: all live until none has any */
	atomic_bool is_listening;
	_Atomic uint16_t port; /* of the last listen */
	enum network_tls tls_mode;
};

/* A reference to the TLS context of now. */
struct tls_context *network_tls_context(struct network *network);

/* Run something on each loop's thread, one after the other, and wait for it. */
void network_on_each_loop(
    struct network *network, void (*run)(struct network *network, struct loop *loop));

#endif
