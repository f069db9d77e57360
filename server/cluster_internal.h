/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CLUSTER_INTERNAL_H
#define HELENUS_SERVER_CLUSTER_INTERNAL_H

/* Shared by cluster.c (life, operations) and cluster_ops.c (what the storage service asks of the server). */
#include "server/cluster.h"

struct config_list;

extern const struct storage_service_ops cluster_service_ops;

/* Undo cluster_set_executor(): the stages are stopped, and no message is waited for. */
void cluster_unset_executor(struct cluster *cluster);

/* cluster_stream.c: what storage_service_ops say. */
void cluster_start_streams(struct cluster *cluster);
void
cluster_stream(void *context, const struct service_movement *movement, struct service_wait *wait);
bool cluster_has_data(void *context);
int cluster_may_leave(void *context, const struct topology *topology, struct error *err);
uint32_t cluster_gainers(void *context, struct peer *gone, struct peer ***out);

/* Gossip this node's LOAD each minute, and now. */
struct cluster_load *cluster_load_start(struct cluster *cluster);
/* Its timer may still be armed: freed with the cluster. */
void cluster_load_free(struct cluster_load *load);

#endif
