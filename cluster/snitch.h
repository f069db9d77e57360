/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_SNITCH_H
#define HELENUS_CLUSTER_SNITCH_H

/*
 * Which data center and rack a node stands in, and which replica is nearest (locator/IEndpointSnitch). The kinds are
 * those of endpoint_snitch; over each of them lies the dynamic snitch (locator/DynamicEndpointSnitch), which
 * prefers replicas that have answered faster.
 *
 * Unlike Cassandra's, SimpleSnitch too puts this node first: reading here spares a round over the network.
 *
 * Threads: the configuration is immutable after snitch_new(). Latencies are recorded, and replicas ordered, by any
 * thread without locks; snitch_update() by one thread at a time.
 */
#include "base/env.h"
#include "cluster/cluster_env.h"
#include "cluster/peer.h"

enum snitch_kind {
	SNITCH_SIMPLE,
	SNITCH_GOSSIPING_PROPERTY_FILE,
	SNITCH_PROPERTY_FILE,
	SNITCH_RACK_INFERRING,
};

enum { SNITCH_NAME_MAX = 96 };

struct snitch_config {
	const char *endpoint_snitch; /* class name, with or without its package */
	/* Folder of cassandra-rackdc.properties and cassandra-topology.properties. */
	const char *config_folder;
	/* Keys `dc` and `rack` (ours): this node's place, before what the file says; NULL: not given. With SimpleSnitch too, and
	 * others are then located by what they gossip. */
	const char *datacenter, *rack;
	bool is_dynamic; /* dynamic_snitch, true */
	double badness_threshold; /* dynamic_snitch_badness_threshold, 1.0 */
	uint64_t update_interval_ns; /* dynamic_snitch_update_interval, 100 ms */
	uint64_t reset_interval_ns; /* dynamic_snitch_reset_interval, 10 min */
};

/* Cassandra's defaults. */
extern const struct snitch_config snitch_config_default;

/*
 * Which kind a value of endpoint_snitch names. ERROR_CONFIG: a cloud snitch (known, but this server asks no metadata
 * service: the text says what to use instead), or a class that is none. Pure.
 */
int snitch_parse_kind(const char *endpoint_snitch, enum snitch_kind *out, struct error *err);

struct snitch;

/*
 * Reads the properties that its kind needs. ERROR_CONFIG names the file and line, or the address that
 * cassandra-topology.properties has neither a line nor a default for; ERROR_IO.
 */
int snitch_new(const struct snitch_config *config, struct env *env, struct peers *peers,
    struct snitch **out, struct error *err);
void snitch_free(struct snitch *snitch);

enum snitch_kind snitch_kind(const struct snitch *snitch);
/* "org.apache.cassandra.locator.DynamicEndpointSnitch", or the class itself (nodetool describecluster). Static. */
const char *snitch_class_name(const struct snitch *snitch);
/* The configured class below the dynamic one, with its package. Static. */
const char *snitch_subclass_name(const struct snitch *snitch);
/* Of this node: what it gossips as DC and RACK. */
const char *snitch_local_datacenter(const struct snitch *snitch);
const char *snitch_local_rack(const struct snitch *snitch);
/* prefer_local of cassandra-rackdc.properties: talk to nodes of one's own data center by INTERNAL_IP. */
bool snitch_prefers_local(const struct snitch *snitch);

/*
 * Another node's place. gossiped_*: the values of its application states DC and RACK, NULL where not known. Only
 * GossipingPropertyFileSnitch goes by them (and falls back to cassandra-topology.properties where that file
 * is there, then to "UNKNOWN_DC", "UNKNOWN_RACK"). The strings live as long as the snitch, or are the gossiped ones.
 */
void snitch_locate(struct snitch *snitch, const struct endpoint *endpoint,
    const char *gossiped_datacenter, const char *gossiped_rack, const char **datacenter,
    const char **rack);

/* ---- Order of replicas ---- */

/* An answer of `peer` to a read took so long (this node's own reads count too). Any thread, two atomics. */
void snitch_record_latency(struct snitch *snitch, struct peer *peer, uint64_t latency_ns);
/* Another process answers for the peer now: what its samples say is over with the next update. Any thread. */
void snitch_forget(struct snitch *snitch, struct peer *peer);
/* The gossiped SEVERITY is added to the score. Any thread. */
void snitch_set_severity(struct snitch *snitch, struct peer *peer, double severity);
/*
 * New scores from what was recorded; forgets all samples when reset_interval has passed. To be called each
 * update_interval (a timer's task).
 */
void snitch_update(struct snitch *snitch, uint64_t now_ns);
uint64_t snitch_update_interval_ns(const struct snitch *snitch);
/*
 * Have that done, by a timer and a task on CLUSTER_STAGE_MISC, until snitch_stop(). Nothing is started where the snitch is
 * not dynamic. The environment's timers and stages must have ended before snitch_free(): a last task may be
 * under way when snitch_stop() returns.
 */
void snitch_start(struct snitch *snitch, struct cluster_env *cluster);
void snitch_stop(struct snitch *snitch);
/* 0 .. 1 relative to the slowest, plus severity; negative: no score yet. */
double snitch_score(const struct snitch *snitch, const struct peer *peer);

struct replica;
struct topology;
/* Nearest first, stable. Any thread, no allocation. */
void snitch_sort(struct snitch *snitch, const struct topology *topology, struct replica *replicas,
    uint32_t count);
/* Would asking `merged` for two neighbouring ranges cost no more than asking `left` and `right`? */
bool snitch_is_worth_merging(struct snitch *snitch, const struct replica *merged,
    uint32_t merged_count, const struct replica *left, uint32_t left_count,
    const struct replica *right, uint32_t right_count);

#endif
