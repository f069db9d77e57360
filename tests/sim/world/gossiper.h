/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_GOSSIPER_H
#define HELENUS_TESTS_SIM_GOSSIPER_H

/*
 * Nodes of a simulated world that gossip and do nothing else: shadow round, start, settling, states as a server
 * sets them, and a memory of the ring over restarts as system.peers is. What their subscribers are told is counted.
 */
#include "cluster/gossip.h"
#include "tests/sim/world/world.h"

struct gossipers;

struct gossiper {
	struct world_node *node; /* borrowed */
	struct gossip *gossip; /* owned; NULL: not up */
	struct gossip_subscriber subscriber;
	struct gossip_wait wait;
	bool has_joined; /* gossip_start() was called */
	bool has_settled;
	bool has_failed; /* the shadow round found nobody */
	uint64_t started_ns, joined_ns, settled_ns; /* of the world */
	uint32_t joins, changes, alives, deads, removes, restarts; /* told in this life */
	uint32_t shadow_known; /* nodes that the shadow round's answer named */
	char shadow_rack[16]; /* of this node, as it said */
	int64_t token;
	char schema[40];

	/* Kept over restarts. */
	int32_t generation;
	uint32_t world_size;
	bool *remembers; /* owned; by node: it was seen alive once */
};

struct gossipers_options {
	struct world_options world;
	uint32_t seed_count; /* the first nodes are the seeds */
	bool tells_refused; /* a killed node's host refuses connections */
	void (*tune)(struct gossip_options *options, uint32_t index); /* NULL: defaults */
};

struct gossipers *gossipers_new(const struct gossipers_options *options);
void gossipers_free(struct gossipers *all);
struct world *gossipers_world(struct gossipers *all);
struct gossiper *gossiper(struct gossipers *all, uint32_t index);
/* As node `a` knows node `b`; NULL: never heard of. */
struct peer *gossiper_peer(struct gossipers *all, uint32_t a, uint32_t b);
bool gossiper_sees_alive(struct gossipers *all, uint32_t a, uint32_t b);
enum node_status_kind gossiper_sees_status(struct gossipers *all, uint32_t a, uint32_t b);
/* Say goodbye, as drain does; then world_crash() at leisure. */
void gossiper_drain(struct gossipers *all, uint32_t index);

/* Every node that is up has joined, and sees every one that is up as alive and the others that it knows as dead. For
 * world_run_until(), with the gossipers as context. */
bool gossipers_agree(struct world *world, void *context);
/* Who does not, in words, for a failing test. */
void gossipers_explain(struct gossipers *all, FILE *out);
/* Every node holds the newest values of every node that is up; else says which not. */
bool gossipers_have_same_values(struct gossipers *all, FILE *out);

#endif
