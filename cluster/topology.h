/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_TOPOLOGY_H
#define HELENUS_CLUSTER_TOPOLOGY_H

/*
 * Who owns what: an immutable snapshot of the ring (locator/TokenMetadata, and the replication strategies' views
 * of it). Members with their tokens, data centers and racks; nodes that join, leave, move or are replaced; from
 * them the replicas of every token for every keyspace, and the pending ones that get a copy of each
 * write while ranges change hands. Changes make a new snapshot; requests hold the one they began with.
 *
 * Threads: a snapshot is read by any number of threads without locks. topology_acquire()/topology_release() cost
 * an uncontended atomic each; whoever acquires may release on another thread, once. There is no way to make a
 * second reference from a first: acquire again.
 */
#include "base/consistency.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cluster/peer.h"
#include "cluster/replication.h"
#include "cql/schema.h"

enum member_state {
	MEMBER_NORMAL,
	MEMBER_JOINING, /* Cassandra's bootstrapping: owns nothing yet, its ranges are pending */
	MEMBER_REPLACING, /* joins in place of `replaces` */
	MEMBER_LEAVING, /* owns its ranges; those who get them are pending */
	MEMBER_MOVING, /* `tokens` are the old ones, `next_tokens` the new */
};

struct member {
	struct peer *peer;
	struct uuid host_id;
	const char *datacenter, *rack; /* never NULL */
	enum member_state state;
	uint32_t token_count;
	const int64_t *tokens; /* ascending */
	uint32_t next_token_count; /* MEMBER_MOVING */
	const int64_t *next_tokens;
	struct peer *replaces; /* MEMBER_REPLACING */
};

struct topology;

/* What changes are made to and snapshots are taken from. One per node. */
struct topology_holder;
struct topology_holder *topology_holder_new(struct peers *peers);
void topology_holder_free(struct topology_holder *holder);
/* This node's own place, which LOCAL_* levels and the order of replicas go by even before it is a member;
 * "datacenter1", "rack1" until told. Copied; makes a new snapshot. Rules as for topology_update(). */
void
topology_holder_set_local(struct topology_holder *holder, const char *datacenter, const char *rack);

/* Somebody who is told of each new snapshot, once it is the current one; embedded in what wants to know. */
struct topology_listener {
	void (*changed)(struct topology_listener *listener); /* on the updating thread */
	struct topology_listener *next;
};
/* Before the first update that it shall hear of; never taken out. */
void topology_holder_listen(struct topology_holder *holder, struct topology_listener *listener);

/* The current snapshot, one reference. Any thread. */
const struct topology *topology_acquire(struct topology_holder *holder);
void topology_release(struct topology_holder *holder, const struct topology *topology);

/*
 * Replace all members (copied, with strings and tokens). One thread at a time (the gossip stage). Two NORMAL members
 * with one token: ERROR_INVALID, nothing changes. The local node may be missing: it is then a coordinator only.
 */
int topology_update(struct topology_holder *holder, const struct member *members, uint32_t count,
    struct error *err);

/* ---- Members of a snapshot; sorted by endpoint ---- */
uint64_t topology_version(const struct topology *topology); /* rises with each update */
uint32_t topology_member_count(const struct topology *topology);
const struct member *topology_member(const struct topology *topology, uint32_t index);
const struct member *
topology_find(const struct topology *topology, const struct peer *peer); /* NULL: none */
const struct member *
topology_find_host(const struct topology *topology, const struct uuid *host_id);
/* The peer's data center and rack; NULL where it is no member. Within a snapshot equal names are equal
 * pointers, here and in members and replica sets. */
const char *topology_datacenter(const struct topology *topology, const struct peer *peer);
const char *topology_rack(const struct topology *topology, const struct peer *peer);
/* This node's, a member or not. */
const char *topology_local_datacenter(const struct topology *topology);
const char *topology_local_rack(const struct topology *topology);
struct peer *topology_local_peer(const struct topology *topology);
/* Names of the data centers that have members, ascending (CREATE KEYSPACE checks against them). */
uint32_t topology_datacenters(const struct topology *topology, const char *const **out);
/* The same with the number of members in each, for CREATE KEYSPACE (replication_prepare()); the local one is among them
 * though it may have none. The names are the snapshot's. Returns their number; *out is the arena's, NULL without memory. */
uint32_t topology_places(
    const struct topology *topology, struct arena *arena, struct replication_place **out);
/* All tokens of NORMAL, LEAVING and MOVING members, ascending, and whose each is. */
uint32_t topology_token_count(const struct topology *topology);
int64_t
topology_token(const struct topology *topology, uint32_t index, const struct member **owner);
/* Index of the token whose range (previous, token] holds `token`; there must be tokens. */
uint32_t topology_token_index(const struct topology *topology, int64_t token);
/* Share of the ring that each member's tokens own, 0 .. 1, by member index ("Owns" without a keyspace). */
void topology_ownership(const struct topology *topology, double *out);
/* Does anybody join, leave, move or get replaced? */
bool topology_is_changing(const struct topology *topology);

/* ---- Replicas ---- */

struct replica_set {
	uint32_t count; /* natural replicas, in the strategy's order */
	uint32_t pending_count;
	struct peer *const *peers; /* count + pending_count: natural ones, then pending ones */
	const char *const *datacenters; /* of each of them */
};

/* One keyspace's replication on one snapshot. */
struct replication;
/*
 * The keyspace's replication on this snapshot; made at the first call and kept as long as the snapshot
 * (looked up by the replication options, so any snapshot of the schema will do). Cheap: one hash look-up without
 * lock. Never NULL: an unknown class was refused by CREATE KEYSPACE.
 */
const struct replication *
topology_replication(const struct topology *topology, const struct keyspace_metadata *keyspace);
/* Replicas of a token. One look-up; no allocation. The answer lives as long as the snapshot. */
const struct replica_set *
replication_replicas(const struct replication *replication, int64_t token);
bool replication_is_local_strategy(
    const struct replication *replication); /* LocalStrategy: this node alone */
enum replication_class replication_class(const struct replication *replication);
int32_t replication_total_factor(const struct replication *replication);
/* The factor of one data center (SimpleStrategy: the whole factor, as Cassandra counts it). */
int32_t replication_factor_of(const struct replication *replication, const char *datacenter);
/* NetworkTopologyStrategy's data centers; 0 for the others. */
uint32_t replication_datacenters(
    const struct replication *replication, const struct replication_factor **out);

/*
 * Ranges (left, right] that a peer is a replica of (natural), ascending; wrapping ranges are split at the minimum
 * token. *out is malloc()ed, the caller's to free. Returns their number.
 */
struct ring_range {
	int64_t left; /* exclusive */
	int64_t right; /* inclusive; INT64_MIN as right means to the end of the ring */
};
uint32_t replication_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out);
/* ... as first replica (-pr). */
uint32_t replication_primary_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out);
/* ... that are coming to it. */
uint32_t replication_pending_ranges_of(
    const struct replication *replication, const struct peer *peer, struct ring_range **out);
/* The ranges of this node's tokens on a ring of its data center's tokens alone (getLocalPrimaryRanges); as the others. */
uint32_t topology_local_primary_ranges(const struct topology *topology, struct ring_range **out);

/*
 * All ranges that have one replica set, in ring order: those of the tokens, and while nodes come and go also those
 * of the tokens to be. Range 0 begins at the last token and wraps (left >= right); with no tokens there are none.
 * (describering, size estimates, splitting of range reads.)
 */
uint32_t replication_range_count(const struct replication *replication);
const struct replica_set *
replication_range(const struct replication *replication, uint32_t index, struct ring_range *range);
/* Index of the range that holds a token; there must be ranges. */
uint32_t replication_range_index(const struct replication *replication, int64_t token);
/* Share of the data that each member holds, 0 .. 1, by member index ("Owns (effective)"): the members of a data
 * center sum up to its factor. */
void replication_ownership(const struct replication *replication, double *out);

/* ---- Levels (db/ConsistencyLevel) ---- */

/* Answers that a level asks for, without pending replicas. EACH_QUORUM: the sum of the quorums. */
int32_t consistency_block_for(
    enum consistency level, const struct replication *replication, const char *local_datacenter);

/* ... with this node's data center: computed when the replication was. Hot path. */
int32_t replication_block_for(const struct replication *replication, enum consistency level);

#endif
