/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_DISK_USAGE_H
#define HELENUS_SERVER_DISK_USAGE_H

/*
 * The guardrail of full disks (data_disk_usage_percentage_warn_threshold, ..._fail_threshold): every half minute a node looks how
 * full its data directories are and says so by gossip; who coordinates a write warns the client, or refuses it, where
 * a replica of it is over a threshold. Cassandra: service/disk/usage, Guardrails.localDataDiskUsage and replicaDiskUsage.
 *
 * Usage is what the data directories and the memtables hold, of that and the space that is left on the disks (or of
 * data_disk_usage_max_disk_size, where that is less).
 */
#include "cluster/peer.h"

struct node;

/* Look now, and wait; nothing where no threshold is set. */
void disk_usage_look(struct node *node);
/* Look on MiscStage where it is time. Called by one thread now and then. */
void disk_usage_tick(struct node *node);

/* A node that may have said something else by gossip. One thread. */
void disk_usage_heard(struct node *node, struct peer *peer);
/* It is gone. */
void disk_usage_forget(struct node *node, struct peer *peer);

#endif
