/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CLUSTER_H
#define HELENUS_SERVER_CLUSTER_H

/*
 * The cluster floor's parts in a real process: made from the configuration, given stages, sockets and system tables,
 * started and ended in order with the rest of the node (node_start.c).
 *
 *     cluster_new()     before the store: who am I, where do I stand; nothing listens, nothing is sent
 *     cluster_start()   the data are up, the loops run: join the ring; returns when clients may be served
 *     cluster_leave()   tell the others that this node goes down, before its clients are sent away
 *     cluster_stop()    no message comes or goes any more
 *     cluster_end()     after the stages, before those who may still wait for an answer are freed
 *     cluster_free()
 *
 * Parts are handed to whoever needs them as they are: node->cluster->messaging and so on.
 */
#include <stdatomic.h>
#include "cluster/hints.h"
#include "cluster/paxos.h"
#include "cluster/repair.h"
#include "cluster/schema_log.h"
#include "cluster/storage_service.h"
#include "cluster/stream.h"

struct cluster_load;
struct executor;
struct coordinator;
struct node;

struct cluster {
	struct node *node; /* borrowed */
	struct endpoint local, native; /* how nodes and clients know this one */
	struct peers *peers; /* owned, and all that follow */
	struct snitch *snitch;
	struct cluster_env *env; /* node->internode's */
	struct messaging *messaging;
	struct topology_holder *topology;
	struct gossip *gossip;
	struct paxos *paxos; /* from cluster_set_executor() on, and the next */
	struct schema_log *schema_log;
	struct storage_service *_Atomic service; /* NULL before cluster_start() */
	struct hints *hints; /* from cluster_set_coordinator() on */
	struct streams *streams; /* from cluster_start() on */
	struct repairs *repairs; /* from cluster_start() on */
	struct cluster_load *load; /* who gossips LOAD */
	struct gossip_subscriber subscriber; /* links of dead peers are closed */
	struct cluster_timer snitch_timer; /* armed while there are others */
	bool has_snitch_timer; /* the gossip stage's */
	_Atomic bool is_rebuilding; /* nodetool rebuild is under way */
	_Atomic bool is_serving; /* CQL clients are, or are going to be, served */
};

/* ERROR_CONFIG. */
int cluster_new(struct node *node, struct cluster **out, struct error *err);
/* Hand the coordinator its ring. Before cluster_start(). ERROR_IO: the directory of hints. */
int cluster_set_coordinator(
    struct cluster *cluster, struct coordinator *coordinator, struct error *err);
/* Conditional statements and schema changes get their parts; before the data are read. */
void cluster_set_executor(struct cluster *cluster, struct executor *executor);
/* Waits. ERROR_CONFIG, ERROR_SERVER: the ring does not take this node, or nobody answers; ERROR_IO. */
int cluster_start(struct cluster *cluster, struct error *err);
/* Waits until the others know, two seconds at most. */
void cluster_leave(struct cluster *cluster);
void cluster_stop(struct cluster *cluster);
/* With the stages stopped: no timer fires any more, and who still waits for an answer is told that none will come. */
void cluster_end(struct cluster *cluster);
void cluster_free(struct cluster *cluster); /* NULL is accepted */

/* Of this node, as the snitch says; they live as long as the cluster. */
const char *cluster_datacenter(const struct cluster *cluster);
const char *cluster_rack(const struct cluster *cluster);

/* CQL clients are served from now on, or no more. Any thread. */
void cluster_set_serving(struct cluster *cluster, bool is_serving);
/* A new schema is in effect. Any thread. */
void cluster_set_schema(struct cluster *cluster, const struct uuid *version);

/* What an operator asks for. Each waits; any thread that may. */
int cluster_join(struct cluster *cluster, struct error *err);
int cluster_set_gossiping(struct cluster *cluster, bool is_on, struct error *err);
/* ERROR_INVALID: no such node. */
int cluster_assassinate(struct cluster *cluster, const char *address, struct error *err);
/* Out of the ring for good; clients are sent away. ERROR_INVALID: it cannot leave now (storage_service.h). */
int cluster_decommission(struct cluster *cluster, bool is_forced, struct error *err);
int cluster_move(struct cluster *cluster, int64_t token, struct error *err);
int cluster_remove_node(struct cluster *cluster, const char *host_id, struct error *err);
int cluster_force_removal(struct cluster *cluster, struct error *err);
int cluster_removal_status(struct cluster *cluster, struct buffer *out, struct error *err);
int cluster_resume_bootstrap(struct cluster *cluster, bool is_forced, struct error *err);
/*
 * Fetch this node's ranges from others, of one data center, keyspace, some "(left,right]" ranges of it, some nodes; NULL: of any.
 */
int cluster_rebuild(struct cluster *cluster, const char *datacenter, const char *keyspace,
    const char *tokens, const char *sources, struct error *err);
struct table_store;
/* Delete what other nodes own now, `jobs` SSTables of the table at once (0: as many as there are threads for). */
int cluster_cleanup(
    struct cluster *cluster, struct table_store *table, uint32_t jobs, struct error *err);
/* The ranges that this node has of a keyspace, normalized; free(). NULL: of a local keyspace, everything. */
struct stream_range;
struct stream_range *
cluster_owned_ranges(struct cluster *cluster, const char *keyspace, uint32_t *count);
/* Read the seeds from the configuration file again. */
int cluster_reload_seeds(struct cluster *cluster, struct error *err);

#endif
