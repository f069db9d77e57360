/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_WORLD_H
#define HELENUS_TESTS_SIM_WORLD_H

/*
 * A world of simulated nodes in one thread, driven by a seed: each node has clocks that stand apart and drift, a disk
 * (base/env_sim.h), stages, timers and messaging; between them is a network that delays, loses, doubles, reorders
 * and is cut, one way or both. Nodes crash and start again. Events run in the order of simulated time; the same
 * options, seed and calls give the same run, so a failing seed replays exactly, and tells the story of its messages.
 *
 *     struct world *world = world_new(&options, &ops, context);
 *     for (i = 0; i < 3; i++) world_start(world, i);
 *     world_run(world, 10 * WORLD_S);
 *     world_cut_both(world, 0, 1);
 *     ...
 *     world_free(world);
 *
 * What a node consists of is the caller's: `ops` make its parts over the node's cluster_env, and unmake them.
 */
#include <stdio.h>
#include "base/env_sim.h"
#include "cluster/messaging.h"

#define WORLD_US UINT64_C(1000)
#define WORLD_MS (1000 * WORLD_US)
#define WORLD_S (1000 * WORLD_MS)

enum { WORLD_PORT = 7000 };

struct world_faults {
	double loss; /* share of the messages */
	double duplicate;
	double stream_break; /* share of the records of streams with which the connection breaks */
	double reorder; /* share that may overtake others of its connection */
	uint64_t delay_min_ns, delay_max_ns; /* one way; most are near the least */
};

struct world_options {
	uint64_t seed;
	uint32_t node_count;
	struct world_faults faults;
	uint64_t skew_max_us; /* of wall clocks, either way */
	uint32_t drift_max_ppm; /* of monotonic clocks, either way */
	bool has_disks;
	bool is_encoded; /* messages go through their wire form; else payloads are shared */
	uint32_t story_lines; /* kept; 0: 400 */
};

struct world;

struct world_node {
	struct world *world; /* borrowed */
	uint32_t index;
	struct endpoint endpoint; /* 10.x.y.z:7000, by index */
	struct env *env; /* its clocks, chance and files (NULL files: no disks) */
	struct cluster_env cluster;
	struct env_sim *disk; /* owned; NULL: none */
	bool is_up;
	uint32_t starts;

	/* While it is up. */
	struct peers *peers; /* owned */
	struct messaging *messaging; /* owned */
	void *parts; /* ops' */

	uint64_t sent, received, bytes_sent; /* messages */
	struct world_clock *clock; /* owned */
};

struct world_ops {
	/* Make the node's parts; returned as node->parts. Peers and messaging are there. */
	void *(*start)(struct world_node *node, void *context);
	/* Unmake them. Queued tasks have run (in a world that no longer hears them), timers are off, messaging is freed, stages
	 * refuse. */
	void (*stop)(struct world_node *node, void *parts, void *context);
	/* May be NULL: a message to the peer was refused by its host: the process is not there. */
	void (*refused)(struct world_node *node, struct peer *peer, void *context);
};

struct world *
world_new(const struct world_options *options, const struct world_ops *ops, void *context);
void world_free(struct world *world); /* nodes are killed */
struct world_node *world_node(struct world *world, uint32_t index);
uint64_t world_now(const struct world *world); /* ns since the beginning */
uint32_t world_chance(struct world *world, uint32_t bound); /* below bound (> 0), of the seed */

/* ---- Time ---- */

/* All that happens within the next `ns`. */
void world_run(struct world *world, uint64_t ns);
/* Until the condition holds (asked every `step_ns`); false: not within `limit_ns`. */
bool world_run_until(struct world *world, bool (*holds)(struct world *world, void *context),
    void *context, uint64_t step_ns, uint64_t limit_ns);
/* Call fn(context, argument) in `delay_ns`, whatever happens to nodes. */
void world_at(struct world *world, uint64_t delay_ns, void (*fn)(void *context, uint32_t argument),
    void *context, uint32_t argument);

/* ---- Nodes ---- */

enum world_death {
	WORLD_KILL, /* the process: what it wrote to files is there */
	WORLD_POWER, /* the machine: what was not synced may be lost */
};
void world_start(struct world *world, uint32_t index);
void world_crash(struct world *world, uint32_t index, enum world_death death);
/* Stand still for so long, as by SIGSTOP; messages to it wait. */
void world_pause(struct world *world, uint32_t index, uint64_t ns);
/* The wall clock jumps. */
void world_step_wall(struct world *world, uint32_t index, int64_t us);

/* ---- Network ---- */

void world_set_faults(struct world *world, const struct world_faults *faults);
void world_cut(struct world *world, uint32_t from, uint32_t to); /* one way */
void world_cut_both(struct world *world, uint32_t a, uint32_t b);
void world_join(struct world *world, uint32_t a, uint32_t b); /* both ways */
void world_lose_verb(
    struct world *world, uint32_t to, enum verb verb); /* messages of it, until world_heal() */
/* Cut everything between nodes of different groups; group_of by index. */
void world_partition(struct world *world, const uint8_t *group_of);
void world_heal(struct world *world);

/* ---- What happened ---- */

/* A line of the caller's between the messages. */
void world_note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The last messages and notes, oldest first. */
void world_tell(const struct world *world, FILE *out);
uint64_t world_events(const struct world *world); /* that were run */
uint64_t world_messages(const struct world *world);
/* A digest of all that happened so far: two runs of one seed have the same. */
uint64_t world_digest(const struct world *world);

#endif
