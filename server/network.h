/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_NETWORK_H
#define HELENUS_SERVER_NETWORK_H

/*
 * The network stage: the listening socket and N loops, each with its own thread. A connection lives on
 * one loop for life (loop.h, connection.h hold the insides).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct client_history;
struct network;
struct node;

/* What system_views.clients and clientstats tell of one connection. Strings are valid during the call. */
struct network_client {
	const char *address; /* numeric */
	uint16_t port;
	const char *stage; /* "new", "authenticating", "ready": connection_stage */
	int protocol_version; /* 0 before STARTUP */
	const char *driver_name, *driver_version; /* NULL: not told */
	const char *user; /* NULL: anonymous */
	const char *keyspace; /* NULL: none */
	uint64_t request_count;
	bool is_ssl;
	const char *ssl_cipher_suite, *ssl_protocol; /* NULL without */
	/* STARTUP options: option_count pairs name, value */
	const char *const *options;
	uint32_t option_count;
};

/* Make loops and limits; does not listen. node outlives it. */
struct network *network_new(struct node *node);
/* Start the loops, without listening: what else lives on them can begin before there are clients. ERROR_IO. */
int network_start_loops(struct network *network, struct error *err);
/* Listen on rpc_address:native_transport_port, and start the loops where they do not run. ERROR_IO, ERROR_CONFIG. */
int network_start(struct network *network, struct error *err);
/* Stop accepting and reading, let what is in flight finish (at most timeout_ms), close everybody, join
 * the threads. Idempotent. */
void network_stop(struct network *network, uint32_t timeout_ms);
/* Nobody calls request_done() any more: the store's and the stages' threads are gone. */
void network_free(struct network *network);

/* enablebinary / disablebinary. disable finishes what is in flight, then closes (NP-74). Any thread. */
int network_enable(struct network *network, struct error *err);
void network_disable(struct network *network);
/* May new connections speak an older version of the protocol than the newest? Any thread. */
void network_allow_older_versions(struct network *network, bool is_allowed);
bool network_allows_older_versions(const struct network *network);
bool network_is_running(const struct network *network);
uint16_t network_port(const struct network *network);

uint32_t network_client_count(const struct network *network);
/* Calls `each` for every connection; takes each loop's list lock for the walk. Any thread. */
typedef void (*network_client_fn)(void *argument, const struct network_client *client);
void network_each_client(struct network *network, network_client_fn each, void *argument);
/* Who was ever connected. Lives as long as the network. */
struct client_history *network_clients_seen(struct network *network);

/* Re-read the TLS files (SIGHUP, reloadssl). The old ones stay on failure. */
int network_reload_tls(struct network *network, struct error *err);

#endif
