/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CLUSTER_INTERNAL_H
#define HELENUS_SERVER_CLUSTER_INTERNAL_H

/* Shared by cluster.c (life, operations) and cluster_ops.c (what the storage service asks of the server). */
#include <pthread.h>
#include "server/cluster.h"

/* Somebody waits: main and the admin port's threads may, stages may not. */
struct cluster_waiter {
	struct service_wait service; /* on_done of either */
	struct gossip_wait gossip;
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	bool is_done;
	bool has_failed;
	struct error err;
};
void cluster_waiter_init(struct cluster_waiter *waiter);
/* Once; ends the waiter. */
int cluster_wait(struct cluster_waiter *waiter, struct error *err);

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
/* cluster_hints.c */
int cluster_open_hints(struct cluster *cluster, struct error *err);
void cluster_start_hints(struct cluster *cluster);
/* It left the ring for good. */
void cluster_drop_hints(struct cluster *cluster, struct peer *peer);
int cluster_start_repairs(struct cluster *cluster, struct error *err); /* cluster_repair.c */

/* Gossip this node's LOAD each minute, and now. */
struct cluster_load *cluster_load_start(struct cluster *cluster);
/* Its timer may still be armed: freed with the cluster. */
void cluster_load_free(struct cluster_load *load);

#endif
