/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_TESTS_SIM_WORLD_INTERNAL_H
#define HELENUS_TESTS_SIM_WORLD_INTERNAL_H

/* What the files of the world share: world.c (nodes, time), world_queue.c, world_network.c, world_story.c. */
#include "tests/sim/world/world.h"

/* ---- The queue of events ---- */

enum world_event_kind { WORLD_TASK, WORLD_TIMER, WORLD_MESSAGE, WORLD_CALL };

/* An armed timer: outlives the timer, which may be freed once it was stopped. */
struct world_timer {
	struct cluster_timer *timer; /* NULL: stopped */
};

struct world_packet {
	uint32_t from;
	uint32_t verb;
	struct message *message; /* not encoded */
	struct buffer bytes; /* encoded */
	int64_t left_ns; /* until it expires when it was sent; < 0: never */
};

struct world_event {
	uint64_t at_ns;
	uint64_t sequence; /* order of those at one moment */
	enum world_event_kind kind;
	uint32_t node; /* whose; WORLD_CALL: the argument */
	union {
		struct task *task;
		struct world_timer *timer;
		struct world_packet *packet;
		struct {
			void (*fn)(void *context, uint32_t argument);
			void *context;
		} call;
	};
};

struct world_queue {
	struct world_event *heap; /* owned */
	size_t count, capacity;
};

void world_queue_push(struct world_queue *queue, const struct world_event *event);
bool world_queue_pop(struct world_queue *queue, struct world_event *out);
/* Take out all of a node (WORLD_CALL is nobody's), in order; the caller frees *out. */
size_t world_queue_take(struct world_queue *queue, uint32_t node, struct world_event **out);

/* ---- The story ---- */

enum world_fate {
	FATE_SENT,
	FATE_LOST,
	FATE_CUT,
	FATE_REFUSED,
	FATE_DELIVERED,
	FATE_DOUBLED,
	FATE_NOTE
};

struct world_line {
	uint64_t at_ns, id;
	enum world_fate fate;
	uint32_t from, to, size;
	uint8_t verb;
	char *note; /* owned; FATE_NOTE */
};

struct world_story {
	struct world_line *lines; /* owned; a ring */
	uint32_t capacity;
	uint64_t count;
	uint64_t digest;
};

void world_story_add(struct world_story *story, const struct world_line *line);
void world_story_fini(struct world_story *story);

/* ---- Nodes ---- */

struct world_stream;

struct world_clock {
	struct env env; /* first */
	struct world_node *node;
	uint64_t base_ns; /* monotonic clock at the beginning of the world */
	double rate; /* how fast it goes */
	_Atomic int64_t wall_offset_us; /* as the world's now_ns */
	uint64_t chance; /* state of the node's generator */
	uint64_t paused_until_ns;
	uint64_t
	    stage_free_ns[CLUSTER_STAGE_COUNT]; /* one-thread stages: when the last task runs */
	bool is_dying; /* its tasks run for the last time */
	bool is_stopped; /* its stages take nothing */
	struct task *last_tasks, **last_tasks_end; /* submitted while it dies */
};

struct world {
	struct world_options options;
	struct world_ops ops;
	void *context;
	struct world_node *nodes; /* owned */
	struct world_queue queue;
	struct world_story story;
	_Atomic uint64_t now_ns; /* the threads of a store (its commit log) look at it too */
	uint64_t sequence, events, messages;
	uint64_t chance;
	struct world_stream *streams; /* owned */
	uint64_t *cut; /* owned; a bit for each ordered pair */
	uint64_t *
	    lost_verbs; /* owned; for each node a bit for each verb below 64 that does not reach it */
	uint64_t *
	    arrives_ns; /* owned; for each ordered pair: when the last message of the connection arrives */
};

uint64_t world_random(uint64_t *state);
void world_push(struct world *world, struct world_event *event, uint64_t delay_ns);
void world_network_send(
    struct cluster_env *env, struct peer *to, struct message *message, struct worker *worker);
void world_network_deliver(struct world *world, struct world_node *to, struct world_packet *packet);
void world_packet_free(struct world_packet *packet);
bool world_is_cut(const struct world *world, uint32_t from, uint32_t to);
struct stream_channel *
world_stream_open(struct cluster_env *env, struct peer *to, struct stream_user *user);
/* A node dies: its ends are deaf, those on the other side hear of it. */
void world_streams_crash(struct world *world, uint32_t index);
void world_streams_free(struct world *world);
/* NULL: no node of this world. */
struct world_node *world_find(struct world *world, const struct endpoint *endpoint);

static inline struct world_node *
world_node_of(struct cluster_env *env)
{
	return (struct world_node *)((char *)env - offsetof(struct world_node, cluster));
}

#endif
