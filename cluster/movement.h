/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_MOVEMENT_H
#define HELENUS_CLUSTER_MOVEMENT_H

/*
 * A node's data on its way, as storage_service_ops.stream asks for it:
 *
 *     Paxos is finished in what changes hands -> what was moved before is left out -> each keyspace is planned
 *     (cluster/range_streamer.h) -> streamed, each session's ranges noted -> the notes are dropped
 *     -> a node that leaves hands on what it keeps for others -> wait->on_done
 *
 * Where notes are kept, and how a node hands on its hints and batches, is the caller's.
 *
 * Threads: movement_start() on the gossip stage, on_done there too; what stands between runs where streams and repairs say.
 */
#include "cluster/hints.h"
#include "cluster/range_streamer.h"
#include "cluster/repair.h"
#include "cluster/storage_service.h"

/* What was moved before: opaque, the caller's. */
struct movement_notes;

struct movement_ops {
	/* The current schema: a reference. */
	struct schema *(*schema)(void *context);
	/* Durable notes of what moved, so that a movement that broke off goes on where it was; may block. */
	int (*save_note)(void *context, enum stream_operation operation,
	    const struct stream_result *result, struct error *err);
	/* *out is freed with free_notes(). */
	int (*load_notes)(void *context, enum stream_operation operation,
	    struct movement_notes **out, struct error *err);
	/* to: who got it; NULL: this node. */
	bool (*has_note)(const struct movement_notes *notes, struct slice keyspace,
	    const struct endpoint *to, struct ring_range range);
	void (*free_notes)(struct movement_notes *notes);
	/* What was given in such a movement, and (has_fetched) all that ever came. */
	int (*forget_notes)(
	    void *context, enum stream_operation operation, bool has_fetched, struct error *err);
	/* This node leaves, and has given its data away: what others missed is not to be lost with it. NULL: it is. */
	void (*hand_on)(void *context, struct service_wait *wait);
};

struct movement_options {
	struct cluster_env *env;
	struct peers *peers;
	struct topology_holder *topology;
	struct snitch *snitch;
	struct streams *streams;
	struct repairs *repairs; /* NULL: Paxos is not finished first (paxos_repair_enabled) */
	bool is_strict; /* cassandra.consistent.rangemovement */
	const struct movement_ops *ops; /* all outlive the movement */
	void *context;
};

/* wait->on_done once, unless the node stops. The options are copied. */
void movement_start(const struct movement_options *options, const struct service_movement *wanted,
    struct service_wait *wait);

/*
 * For hand_on: give all hints to the nearest node, once more to a second one where the first does not take them. Both outlive it.
 */
void movement_hand_on_hints(
    struct hints *hints, struct topology_holder *topology, struct service_wait *wait);

/* ---- What else storage_service_ops ask ---- */

/* A keyspace of Cassandra's own, by its name. */
bool keyspace_is_system(const struct keyspace_metadata *keyspace);
/* Is there a table of users? */
bool movement_has_data(const struct schema *schema);
/* ERROR_INVALID: without this node a keyspace would have fewer nodes than its replication factor. */
int
movement_may_leave(const struct topology *topology, const struct schema *schema, struct error *err);
/* Who becomes a replica of what `gone` had, once it is gone; the caller frees *out. */
uint32_t movement_gainers(const struct topology *topology, struct peers *peers,
    const struct schema *schema, struct peer *gone, struct peer ***out);

#endif
