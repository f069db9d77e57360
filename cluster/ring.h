/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_RING_H
#define HELENUS_CLUSTER_RING_H

/*
 * A node that is alone, and so a replica of everything: the coordinator asks here, not the topology, while there are no
 * others. Replication factors and what a consistency level asks for are counted as in a larger ring, so that a level
 * that one node cannot meet is refused as Cassandra refuses it. Immutable after ring_init(). Cassandra:
 * locator/, db/ConsistencyLevel.
 */
#include "base/consistency.h"
#include "base/error.h"
#include "cql/schema.h"

enum { RING_NAME_MAX = 64 };

struct ring {
	char datacenter[RING_NAME_MAX]; /* of the local node */
};

void ring_init(struct ring *ring, const char *datacenter);

/* Replicas that the keyspace asks for: of all data centers, or of the local one. */
int32_t ring_replication_factor(
    const struct ring *ring, const struct keyspace_metadata *keyspace, bool is_local);

/* Replicas that must answer (ConsistencyLevel.blockFor). */
int32_t ring_block_for(const struct ring *ring, const struct keyspace_metadata *keyspace,
    enum consistency consistency);

/* Can the live nodes meet the level? ERROR_UNAVAILABLE with required and alive. */
int ring_check(const struct ring *ring, const struct keyspace_metadata *keyspace,
    enum consistency consistency, struct error *err);

#endif
