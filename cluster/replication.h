/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_REPLICATION_H
#define HELENUS_CLUSTER_REPLICATION_H

/*
 * The replication strategies (locator/AbstractReplicationStrategy and its kind): what a keyspace's replication
 * options mean, and which nodes a walk of the ring gives. Pure functions; any thread.
 */
#include "base/arena.h"
#include "base/error.h"
#include "cql/table_options.h"

enum replication_class {
	REPLICATION_SIMPLE,
	REPLICATION_NETWORK_TOPOLOGY,
	REPLICATION_LOCAL,
	REPLICATION_EVERYWHERE,
};

/* Data centers of NetworkTopologyStrategy with their factors. */
struct replication_factor {
	const char *datacenter;
	int32_t factor;
};

struct replication_strategy {
	enum replication_class class;
	int32_t factor; /* SimpleStrategy */
	uint32_t datacenter_count; /* NetworkTopologyStrategy */
	struct replication_factor *datacenters; /* of the arena; by name */
};

/*
 * "SimpleStrategy", "org.apache.cassandra.locator.NetworkTopologyStrategy", ...: with or without the package.
 * ERROR_CONFIG: "Unable to find replication strategy class '...'".
 */
int replication_parse_class(struct slice name, enum replication_class *out, struct error *err);

/*
 * A factor: "3", not negative. Transient replicas ("3/1") are refused: this server keeps all replicas in
 * full. ERROR_CONFIG.
 */
int replication_parse_factor(struct slice text, int32_t *out, struct error *err);

/*
 * The options of a keyspace, "class" among them. ERROR_CONFIG: a class or factor as above, an option the strategy does not
 * know, SimpleStrategy without a factor. Names and factors are the arena's.
 */
int replication_parse(const struct option_map *options, struct arena *arena,
    struct replication_strategy *out, struct error *err);

/* ---- What CREATE and ALTER KEYSPACE say ---- */

/* A data center that the cluster has, and how many nodes are in it. */
struct replication_place {
	const char *datacenter;
	uint32_t node_count;
};

/*
 * The options of a statement as the schema keeps them: the class with its package first; NetworkTopologyStrategy's
 * `replication_factor` spread over all places that are not named (ALTER: those that had a factor keep it), factors of 0
 * left out; where no factor is given at all `default_factor` (default_keyspace_rf), by ALTER what SimpleStrategy had. `before`: the keyspace's options so far, NULL for CREATE. Slices of
 * *out are the given ones or the arena's. ERROR_CONFIG with Cassandra's texts: a class that is none or reserved, a data center
 * that is no place, a factor that is wrong or transient, no data center at all.
 */
int replication_prepare(const struct option_map *given, const struct option_map *before,
    struct slice keyspace, const struct replication_place *places, uint32_t place_count,
    int32_t default_factor, struct arena *arena, struct option_map *out, struct error *err);

/* What a client is warned of after that; warn() is called for each text. `before` as above. */
typedef void (*replication_warn_fn)(void *argument, const char *text);
void replication_warn(const struct option_map *options, const struct option_map *before,
    struct slice keyspace, const struct replication_place *places, uint32_t place_count,
    replication_warn_fn warn, void *argument);

/* ---- Walking a ring ---- */

/* Where a member stands: numbers of its data center and of its rack among all racks. */
struct ring_place {
	uint32_t datacenter;
	uint32_t rack;
};

/* A ring, today's or one to be: tokens ascending, and who owns each. */
struct ring_view {
	uint32_t token_count;
	const int64_t *tokens;
	const uint32_t *owners;
	uint32_t member_count; /* numbers in owners are below it */
	const struct ring_place *places; /* by member number */
	uint32_t datacenter_count;
	uint32_t rack_count;
};

/* Working memory of a strategy over one ring. */
struct ring_walk;
/*
 * factors: by data center number (NetworkTopologyStrategy), or NULL with one `factor` for the whole ring
 * (SimpleStrategy). Borrows the view and factors. With xalloc.
 */
struct ring_walk *
ring_walk_new(const struct ring_view *view, const int32_t *factors, int32_t factor);
void ring_walk_free(struct ring_walk *walk);
/* The most replicas that a token can have. */
uint32_t ring_walk_count_max(const struct ring_walk *walk);
/* Members that replicate the range of token number `index`, in order; returns their number. */
uint32_t ring_walk_replicas(struct ring_walk *walk, uint32_t index, uint32_t *out);

#endif
