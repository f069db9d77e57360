/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SNITCH_INTERNAL_H
#define HELENUS_CLUSTER_SNITCH_INTERNAL_H

/* What snitch.c (places) and snitch_dynamic.c (latencies, order) share. */
#include "base/lock.h"
#include "cluster/snitch.h"

/* A line of cassandra-topology.properties. */
struct snitch_place {
	struct endpoint endpoint; /* port 0 */
	const char *datacenter, *rack; /* interned */
};

struct snitch {
	struct env *env; /* borrowed */
	struct peers *peers; /* borrowed */
	enum snitch_kind kind;
	bool is_dynamic, prefers_local;
	/* SimpleSnitch with a place of its own: others have theirs, and gossip it. */
	bool goes_by_gossip;
	double badness_threshold;
	uint64_t update_interval_ns, reset_interval_ns;
	char *datacenter, *rack; /* owned; this node's */

	/* cassandra-topology.properties; immutable. */
	bool has_topology;
	struct snitch_place *places; /* owned; ascending by endpoint */
	uint32_t place_count;
	const char *default_datacenter, *default_rack; /* interned; NULL: no default line */

	/* Names that answers point to (lines of the file, octets of RackInferringSnitch), each once. */
	struct lock lock;
	char **names; /* guarded by lock; owned, as each name */
	uint32_t name_count;

	/* Updates by the clock. */
	struct cluster_env *cluster; /* borrowed; NULL: not started */
	struct cluster_timer timer;
	struct task task;
	atomic_bool is_stopping;

	/* The thread's that updates. */
	uint64_t reset_at_ns; /* 0: not yet updated */
	uint64_t decay_from_ns; /* when weights were exp(0) */
	uint64_t random;
};

/* The snitch's copy of a name. Any thread. */
const char *snitch_intern(struct snitch *snitch, const char *name);
void snitch_free_samples(struct snitch *snitch);

#endif
