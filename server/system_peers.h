/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_SYSTEM_PEERS_H
#define HELENUS_SERVER_SYSTEM_PEERS_H

/*
 * system.peers and system.peers_v2: what drivers learn of the other nodes, and what this one knows of them before
 * anybody answers it at a start. Cassandra: SystemKeyspace.updatePeerInfo, loadTokens, loadHostIds. Any thread that may block.
 */
#include "cluster/storage_service.h"

struct executor;

/* Write the rows of one node; what is not known stays as it was. */
int
system_peers_save(struct executor *executor, const struct service_peer *peer, struct error *err);
int
system_peers_remove(struct executor *executor, const struct endpoint *endpoint, struct error *err);
/* Calls `each` for every row of peers_v2; the peer is valid for the call. Nodes without tokens are left out. */
int system_peers_load(struct executor *executor,
    void (*each)(void *context, const struct service_peer *peer), void *context, struct error *err);

#endif
