/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_RING_INTERNAL_H
#define HELENUS_TESTS_SIM_RING_INTERNAL_H

/*
 * Shared by ring.c (a node and its parts), ring_members.c (who is in the ring, where that is not fixed), ring_schema.c (tables that
 * come and go) and ring_requests.c (what clients ask).
 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/topology.h"
#include "tests/sim/world/ring.h"

enum { RING_TOKENS = 4, RING_NOW_S = 1767225700 };

struct ring_node {
	struct ring *ring;
	struct world_node *node;
	struct store *store;
	struct schema *schema;
	const struct keyspace_metadata *keyspace;
	struct table_metadata *tables[2], *paxos_table, *batches_table;
	bool has_forgotten;
	struct topology_holder *topology;
	struct snitch *snitch;
	struct coordinator *coordinator;
	struct paxos *paxos;
	struct streams *streams;
	struct repairs *repairs;
	struct hints *hints; /* NULL: none are kept */
	struct ring_batches *batches; /* NULL: nothing of the batchlog is written again */
	bool *alive; /* the ring's, by node */
	struct ring_members *members; /* NULL: the ring is fixed */
	struct ring_schema *changes; /* NULL: the schema is fixed */
};

struct ring_batches;
struct ring_session;
struct ring_memory;
struct ring_members;
struct ring_schema;
struct ring_schemas;

struct ring {
	struct ring_options options;
	struct world *world;
	bool *alive;
	uint8_t *places; /* owned; enum ring_standing, by viewer and who is viewed */
	struct ring_session *sessions; /* owned */
	struct ring_memory *memory; /* owned; of ring_members.c, by node; NULL: the ring is fixed */
	struct ring_schemas *schemas; /* owned; of ring_schema.c; NULL: the schema is fixed */
};

struct ring_node *ring_node(struct ring *ring, uint32_t index);
/* Ends the program where rc is not 0: what a simulation is made of does not fail. */
void ring_must(int rc, const struct error *err);
uint32_t ring_index_of(struct ring *ring, const struct peer *peer);
const char *ring_datacenter(const struct ring *ring, uint32_t index);
struct schema *ring_schema(void *node);

/* ---- ring_requests.c ---- */

void ring_op_begin(struct ring *ring, uint32_t node, struct ring_op *op,
    void (*run)(struct task *task, struct worker *worker), enum cluster_stage stage);
void ring_op_end(struct ring_op *op, const struct error *err);
struct ring_op *ring_op_of(struct task *task);
void ring_run_write(struct task *task, struct worker *worker); /* op->write */
void ring_make_rows(struct ring_node *node, struct ring_op *op, const struct ring_row *rows,
    uint32_t count, int64_t timestamp);

/* ---- ring_batches.c ---- */

struct table_metadata *ring_make_batches_table(void);
void ring_batches_start(struct ring_node *node);
void ring_batches_free(struct ring_node *node);
/* What the node keeps, before it leaves; one at a time. */
void ring_batches_replay_now(struct ring_node *node, struct service_wait *wait);

/* ---- ring_members.c ---- */

/* What nodes keep of the ring over their deaths. */
struct ring_memory *ring_memory_new(uint32_t nodes);
void ring_memory_free(struct ring_memory *memory, uint32_t nodes);
/* The node's host id. */
struct uuid ring_host_id(const struct ring_node *node);
/* Move the node's data, as cluster/movement.h does it. */
void ring_move_data(struct ring_node *node, const struct service_movement *wanted, bool skips_paxos,
    struct service_wait *wait);
/* Gossip and the storage service; node->topology and node->snitch are there. */
void ring_members_make(struct ring_node *node);
/* Into the ring: all other parts are there. */
void ring_members_start(struct ring_node *node);
void ring_members_free(struct ring_node *node);
/* Gossip the node's schema version. */
void ring_members_tell_schema(struct ring_node *node);
/* world_ops.refused */
void ring_refused(struct world_node *world_node, struct peer *peer, void *context);

/* ---- ring_schema.c ---- */

struct ring_schemas *ring_schemas_new(uint32_t nodes);
void ring_schemas_free(struct ring_schemas *schemas, uint32_t nodes);
/* What the node kept, beside the schema that it has; before its store is opened. */
void ring_schema_make(struct ring_node *node);
/* Its log: node->topology and the store are there. */
void ring_schema_start(struct ring_node *node);
/* Gossip says that the peer's schema is another. */
void ring_schema_differs(struct ring_node *node, struct peer *peer);
void ring_schema_stop(struct ring_node *node); /* the log */
void ring_schema_free(struct ring_node *node); /* the rest */
const struct table_metadata *ring_named_table(struct ring *ring, uint32_t node, uint32_t name);

#endif
