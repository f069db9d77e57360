/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_RANGE_STREAMER_H
#define HELENUS_CLUSTER_RANGE_STREAMER_H

/*
 * Which data has to move when the ring changes (dht/RangeStreamer, RangeCalculator): from the ring as it is and the ring
 * to be, who becomes a replica of which range, and where it comes from. Everything ends up in a stream job.
 *
 * Threads: calculation alone; any thread. Blocks on nothing.
 */
#include "cluster/snitch.h"
#include "cluster/stream.h"
#include "cluster/topology.h"

/*
 * The ring when what is under way at `peer` has ended: joined, replaced, moved, or (leaving) gone; and whoever else leaves is gone
 * too (TokenMetadata.cloneAfterAllLeft). For a peer that is no member: the same without it. A holder of its own,
 * topology_holder_free() it.
 */
struct topology_holder *
ring_after(const struct topology *topology, struct peers *peers, struct peer *peer);

/* Was the range moved before (bootstrap resume, decommission again)? to: who got it; NULL: this node. */
typedef bool (*range_moved_fn)(void *context, const struct keyspace_metadata *keyspace,
    const struct peer *to, struct ring_range range);

struct range_fetch {
	const struct topology *before, *after;
	struct peers *peers;
	struct snitch *snitch; /* who is near; NULL: as they stand */
	/* Each range from the one who gives it away (consistent_rangemovement). */
	bool is_strict;
	/* What this node has is not looked at, as if it were none of the replicas now (replace, rebuild). */
	bool is_from_nothing;
	const char *datacenter; /* only from nodes there; NULL: any */
	range_moved_fn has_moved; /* may be NULL: those are left out */
	void *context;
	/* Ranges (left, right] and nothing else; count 0: all. */
	const struct ring_range *ranges;
	uint32_t range_count;
	struct peer *const *sources; /* only from these; count 0: any */
	uint32_t source_count;
};

/*
 * Ask for what this node becomes a replica of. ERROR_UNAVAILABLE: a range has nobody to come from (of a keyspace with one
 * replica only when strict; else it is left out with a warning, for nobody has it).
 */
int range_streamer_fetch(struct stream_job *job, const struct range_fetch *fetch,
    const struct keyspace_metadata *keyspace, struct error *err);
/* Send what others become replicas of because this node goes or moves. has_moved: as of range_fetch. */
void range_streamer_give(struct stream_job *job, const struct topology *before,
    const struct topology *after, const struct keyspace_metadata *keyspace,
    range_moved_fn has_moved, void *context);

/* Does the keyspace live on more nodes than this one? */
bool keyspace_is_distributed(const struct keyspace_metadata *keyspace);

#endif
