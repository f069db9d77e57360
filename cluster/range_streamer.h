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
 * The ring when what is under way at `peer` has ended: joined, replaced, moved, or (leaving) gone. For a peer that is no
 * member: the ring as it is. A holder of its own, topology_holder_free() it.
 */
struct topology_holder *
ring_after(const struct topology *topology, struct peers *peers, struct peer *peer);

struct range_fetch {
	const struct topology *before, *after;
	struct peers *peers;
	struct snitch *snitch; /* who is near; NULL: as they stand */
	/* Each range from the one who gives it away (consistent_rangemovement). */
	bool is_strict;
	/* What this node has is not looked at, as if it were none of the replicas now (replace, rebuild). */
	bool is_from_nothing;
	const char *datacenter; /* only from nodes there; NULL: any */
	/* May be NULL: has the data of this token come from somebody before (bootstrap resume)? */
	bool (*has)(void *context, const struct keyspace_metadata *keyspace, int64_t token);
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
/* Send what others become replicas of because this node goes or moves. */
void range_streamer_give(struct stream_job *job, const struct topology *before,
    const struct topology *after, const struct keyspace_metadata *keyspace);

/* Does the keyspace live on more nodes than this one? */
bool keyspace_is_distributed(const struct keyspace_metadata *keyspace);

#endif
