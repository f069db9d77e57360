/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_PEER_H
#define HELENUS_CLUSTER_PEER_H

/*
 * A node of the ring as this node knows it: one object per endpoint that was ever heard of, this node's own
 * included. Peers are never freed before peers_free(), so a bare pointer may be kept by anybody and compared for
 * identity: it is the currency for "a node" in the whole floor. A node that comes back under another address is
 * another peer with the same host id; what ties them together is the topology (cluster/topology.h).
 *
 * Threads: lookup takes the table's lock; the fields' rules stand beside them.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include "base/endpoint.h"

struct snitch_samples;

/* How full the disks of a node's data are (DiskUsageState). */
enum disk_usage {
	DISK_USAGE_NOT_AVAILABLE,
	DISK_USAGE_SPACIOUS,
	DISK_USAGE_STUFFED, /* over the threshold of warnings */
	DISK_USAGE_FULL, /* over that of failures */
};

struct peer {
	struct endpoint endpoint; /* immutable */
	uint32_t
	    index; /* immutable: 0 is the local node, then in the order of the first mention; dense */
	bool is_local; /* immutable */
	_Atomic bool
	    is_alive; /* the failure detector's view; relaxed loads on the hot path; always true for the local one */
	/* The dynamic snitch's (cluster/snitch.h): how slow it is, negative: not known; and the samples behind it. */
	_Atomic float score; /* relaxed */
	struct snitch_samples *_Atomic samples;
	/* The first bytes of the schema version that system.peers tells of it; 0: none yet. */
	_Atomic uint64_t saved_schema;
	_Atomic(void *) link; /* the messaging's connections to it */
	/* env_monotonic_ns() when bytes of it came last, by the transport; 0: never. Relaxed. */
	_Atomic uint64_t heard_ns;
	_Atomic uint8_t disk_usage; /* enum disk_usage: what it last said; relaxed */
	/* Hints that were not kept for it, since it has been down for too long. Relaxed. */
	_Atomic uint64_t hints_past_window;
};

struct peers;

struct peers *peers_new(const struct endpoint *local);
void peers_free(struct peers *peers);
struct peer *peers_local(struct peers *peers);
/* Find or make. Never NULL (memory failure aborts, as for every small control structure). Any thread. */
struct peer *peers_get(struct peers *peers, const struct endpoint *endpoint);
/* NULL: never heard of. Any thread. */
struct peer *peers_find(struct peers *peers, const struct endpoint *endpoint);
/* How many there are; peers_at(0 .. count - 1). Any thread; a count that was read stays valid. */
uint32_t peers_count(struct peers *peers);
struct peer *peers_at(struct peers *peers, uint32_t index);

#endif
