/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_CLUSTER_CLUSTER_ENV_H
#define HELENUS_CLUSTER_CLUSTER_ENV_H

/*
 * What the cluster floor may know of the world beyond clocks, chance and files (base/env.h): stages to run work
 * on, timers, and a way to put a message on the wire. Two stand behind it: the server's (threads and
 * sockets, server/internode.h) and the simulation's (one thread, a seed, a network that loses, delays and
 * reorders; tests/sim). Logic of this floor calls nothing of the system itself.
 */
#include "base/env.h"
#include "base/task.h"
#include "cluster/message.h"
#include "cluster/peer.h"

/* Where work runs; Cassandra's Stage. */
enum cluster_stage {
	CLUSTER_STAGE_IMMEDIATE, /* on the thread that brought it: must not block nor touch the disk */
	CLUSTER_STAGE_READ,
	CLUSTER_STAGE_MUTATION,
	CLUSTER_STAGE_COUNTER_MUTATION,
	CLUSTER_STAGE_GOSSIP, /* one thread: what runs there needs no lock against itself */
	CLUSTER_STAGE_REQUEST_RESPONSE,
	CLUSTER_STAGE_INTERNAL_RESPONSE,
	CLUSTER_STAGE_ANTI_ENTROPY, /* one thread */
	CLUSTER_STAGE_MIGRATION, /* one thread */
	CLUSTER_STAGE_MISC, /* one thread */
	CLUSTER_STAGE_HINTS,
	CLUSTER_STAGE_VALIDATION,
	CLUSTER_STAGE_PAXOS_REPAIR,
	CLUSTER_STAGE_PENDING_RANGE, /* one thread */
	CLUSTER_STAGE_STREAM,
	CLUSTER_STAGE_COUNT,
};

/*
 * A one-shot timer, embedded in what it is for. fire() runs on the timer's thread and must be short: it decides,
 * or submits a task. A timer that was stopped with success will not fire; when timer_stop() says false it fires
 * now or has fired: the owner must live until it has (count it as a reference).
 */
struct cluster_timer {
	struct cluster_timer *next, *previous; /* the implementation's */
	uint64_t due_ns; /* monotonic; the implementation's, 0: not armed */
	void (*fire)(struct cluster_timer *timer);
};

struct cluster_env {
	struct env *env; /* borrowed */
	/* Run a task on a stage. The task's memory belongs to its run(). False: the stage is full or stops; the
	 * task is still the caller's. Any thread. */
	bool (*submit)(struct cluster_env *env, enum cluster_stage stage, struct task *task);
	/* Granularity 1 ms or better. Starting an armed timer is a mistake. Any thread. */
	void (*timer_start)(
	    struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns);
	bool (*timer_stop)(struct cluster_env *env, struct cluster_timer *timer);
	/*
	 * Queue a message for a peer: never blocks. Takes one reference of the message (message_unref() when it has
	 * been written, dropped or has expired). What cannot be queued or sent is dropped and counted; nobody is told:
	 * who wants to know waits for an answer. `worker` is the one that runs now (a message is then collected
	 * with the others of its run and wakes the loop once), or NULL. Never called for the local peer.
	 */
	void (*send)(struct cluster_env *env, struct peer *to, struct message *message,
	    struct worker *worker);
};

static inline bool
cluster_submit(struct cluster_env *env, enum cluster_stage stage, struct task *task)
{
	return env->submit(env, stage, task);
}

static inline void
cluster_timer_start(struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns)
{
	env->timer_start(env, timer, delay_ns);
}

static inline bool
cluster_timer_stop(struct cluster_env *env, struct cluster_timer *timer)
{
	return env->timer_stop(env, timer);
}

#endif
