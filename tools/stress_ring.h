/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TOOLS_STRESS_RING_H
#define HELENUS_TOOLS_STRESS_RING_H

/*
 * Who holds a partition: the nodes' tokens as system.local and system.peers tell them, and for each keyspace the
 * replicas of each range, so that an operation goes to a node that has its row (the drivers' TokenAwarePolicy over
 * DCAwareRoundRobinPolicy). Made before a run; constant and shared by all threads during it. Allocations abort.
 * Cassandra: locator/SimpleStrategy, NetworkTopologyStrategy.
 */
#include <stdbool.h>
#include <stdint.h>

enum { STRESS_NO_HOST = UINT16_MAX };

struct stress_ring_node {
	char *address; /* owned; as are the others */
	char *datacenter;
	char *rack;
	uint16_t
	    host; /* number among those that the run sends to; STRESS_NO_HOST: not one of them */
};

struct stress_ring_token {
	int64_t token;
	uint32_t node;
};

struct stress_ring {
	struct stress_ring_node *nodes; /* owned */
	uint32_t node_count;
	struct stress_ring_token *tokens; /* owned */
	uint32_t token_count;
};

/* All zero is an empty ring. Strings are copied. Returns the node's number. */
uint32_t stress_ring_add_node(
    struct stress_ring *ring, const char *address, const char *datacenter, const char *rack);
void stress_ring_add_token(struct stress_ring *ring, uint32_t node, int64_t token);
/* After the last token. */
void stress_ring_sort(struct stress_ring *ring);
void stress_ring_fini(struct stress_ring *ring);

/* How a keyspace is replicated. */
struct stress_replication {
	bool
	    is_simple; /* SimpleStrategy: `factor` nodes; else `factor` of `datacenter` on different racks */
	uint32_t factor; /* 0: not known, nothing is routed */
	const char *datacenter; /* borrowed; the one that the run sends to */
};

/* Replicas of every range, those that the run sends to. */
struct stress_placement {
	const struct stress_ring *ring; /* borrowed; outlives us */
	uint16_t *hosts; /* owned; `width` for each token, STRESS_NO_HOST where there are fewer */
	uint32_t width; /* 0: nothing is routed */
};

void stress_placement_init(struct stress_placement *placement, const struct stress_ring *ring,
    const struct stress_replication *replication);
void stress_placement_fini(struct stress_placement *placement);
/* The hosts of a token: `width` of them, STRESS_NO_HOST ends the list. NULL: not known. */
const uint16_t *stress_placement_find(const struct stress_placement *placement, int64_t token);

#endif
