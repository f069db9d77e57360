/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_TOPOLOGY_INTERNAL_H
#define HELENUS_CLUSTER_TOPOLOGY_INTERNAL_H

/*
 * What topology.c (members, snapshots), topology_replicas.c (replica sets of a keyspace) and topology_ranges.c
 * (ranges, ownership) share.
 */
#include <stdatomic.h>
#include "base/lock.h"
#include "cluster/replication.h"
#include "cluster/topology.h"

enum { TOPOLOGY_BUCKETS = 32, TOPOLOGY_STRIPES = 16 };

/*
 * A place for a snapshot, with its readers counted. Slots live as long as their holder, so a reader may count
 * itself into a slot that it finds to be outdated, and out again, without touching freed memory.
 */
struct topology_stripe {
	_Alignas(64)
	    atomic_long readers; /* of one stripe alone it may be negative: released elsewhere */
};

struct topology_slot {
	struct topology_stripe stripes[TOPOLOGY_STRIPES];
	struct topology *topology; /* owned; NULL: free. The updating thread's */
	struct topology_slot *next;
};

struct topology {
	struct topology_slot *slot; /* borrowed */
	struct arena arena; /* members, names, tokens */
	uint64_t version;
	struct peer *local;
	const char *local_datacenter, *local_rack; /* interned */

	/* Sorted by endpoint. */
	uint32_t member_count;
	struct member *members;
	struct ring_place *places; /* by member index */
	uint32_t *by_peer; /* peer->index -> member index + 1; 0: no member */
	uint32_t by_peer_count;
	uint32_t *by_host; /* member indexes by host id */

	/* Data centers with members, ascending; the local one is also interned when it has none. */
	uint32_t datacenter_count;
	const char **datacenters;
	uint32_t rack_count; /* of all data centers */
	bool is_changing;

	/* The ring of today. */
	uint32_t token_count;
	const int64_t *tokens; /* ascending */
	const uint32_t *owners; /* member index of each token */

	/* Keyspaces' replications, made on demand: lists that only grow. */
	struct replication *_Atomic buckets[TOPOLOGY_BUCKETS];
	struct lock build; /* one thread builds at a time */
};

struct replication {
	struct replication *next; /* in the bucket; set before it is published */
	const struct topology *topology;
	struct arena arena;
	uint64_t hash;
	struct option_map options; /* a copy */
	struct replication_strategy strategy;
	int32_t total_factor;
	int32_t block_for[CONSISTENCY_COUNT]; /* with this node's data center */
	/* Somebody asked for it on this snapshot: the next one computes it before it is published. Relaxed. */
	atomic_bool is_used;

	/* Set i holds for tokens in (bounds[i - 1], bounds[i]]; set 0 also for those above the last. */
	uint32_t count;
	const int64_t *bounds;
	const struct replica_set *sets;
};

/* Index of the range that holds a token: of the first bound not below it, 0 behind the last. */
static inline uint32_t
topology_bound_index(const int64_t *bounds, uint32_t count, int64_t token)
{
	const int64_t *at = bounds;
	uint32_t left = count;

	/* No branch that could be mispredicted: the probes of a hash are random. */
	while (left > 1) {
		uint32_t half = left / 2;

		at = at[half - 1] < token ? at + half : at;
		left -= half;
	}
	at += *at < token;
	return at == bounds + count ? 0 : (uint32_t)(at - bounds);
}

/* Members whose tokens are in the ring of today. */
static inline bool
member_is_owner(const struct member *member)
{
	return member->state == MEMBER_NORMAL || member->state == MEMBER_LEAVING ||
	    member->state == MEMBER_MOVING;
}

/* Compute what `options` mean on the snapshot. Not yet published. */
struct replication *
replication_new(const struct topology *topology, const struct option_map *options, uint64_t hash);
void replication_free(struct replication *replication);
/* Look up or make, as topology_replication(). */
const struct replication *
topology_replication_of(const struct topology *topology, const struct option_map *options);

#endif
