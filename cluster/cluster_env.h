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
#include "base/timer_wheel.h"
#include "cluster/message.h"
#include "cluster/peer.h"
#include "cluster/stream_channel.h"

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
 * now or has fired: the owner must live until it has (count it as a reference). From the moment that fire() is
 * called it is not armed, and may be started again, from there or by another thread.
 */
struct cluster_timer {
	struct wheel_timer wheel; /* first; the implementation's. Zero before the first start */
	void (*fire)(struct cluster_timer *timer);
};

struct cluster_env {
	struct env *env; /* borrowed */
	/*
	 * Run a list of tasks (linked by `next`; run in order of their start) on a stage. A task's memory belongs
	 * to its run() or drop(), which may have been called before this returns: a loop's `worker` runs here
	 * what is cheap. Returns how many were taken, from the front; *rest is the list of the others, which
	 * are the caller's still: the stage is full, or stops. Any thread; worker may be NULL.
	 */
	size_t (*submit)(struct cluster_env *env, enum cluster_stage stage, struct task *first,
	    size_t count, struct worker *worker, struct task **rest);
	/* Granularity 1 ms or better. Starting an armed timer is a mistake. Any thread. */
	void (*timer_start)(
	    struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns);
	bool (*timer_stop)(struct cluster_env *env, struct cluster_timer *timer);
	/*
	 * Queue a message for a peer: never blocks. Takes one reference of the message (message_unref() when it has
	 * been written, dropped or has expired). What cannot be queued or sent is dropped and counted; the
	 * implementation may tell messaging_undelivered(), so that who waits for an answer need not wait in
	 * vain. A message arrives once at most: what may have been sent is not sent again (counters and Paxos rely on
	 * it). `worker` is the one that runs now (a message is then collected
	 * with the others of its run and wakes the loop once), or NULL. Never called for the local peer.
	 */
	void (*send)(struct cluster_env *env, struct peer *to, struct message *message,
	    struct worker *worker);
	/* The same for an answer without a payload, which then needs no message. NULL: it is sent as one. */
	void (*answer)(
	    struct cluster_env *env, const struct message_answer *answer, struct worker *worker);
	/*
	 * Open a streaming connection. Never blocks and never fails here: where it cannot be opened, on_close() tells why.
	 * The channel may be written to at once. Any thread.
	 */
	struct stream_channel *(*stream_open)(
	    struct cluster_env *env, struct peer *to, struct stream_user *user);
	/*
	 * The streaming code's: another node opened a channel. Sets channel->user, or returns false to refuse it (it
	 * is closed and freed then). On the channel's thread. Set before the first message; NULL: all are refused.
	 */
	bool (*on_stream)(struct cluster_env *env, struct stream_channel *channel);
	void *stream_context; /* the streaming code's */
	/*
	 * Keep an event of a traced request (system_traces.events). Never blocks; any thread; the text is copied. NULL: they
	 * are dropped.
	 */
	void (*trace)(
	    void *context, const struct trace *trace, struct worker *worker, const char *text);
	void *trace_context;
};

/* One task, to be run later. False: the task is still the caller's. */
static inline bool
cluster_submit(struct cluster_env *env, enum cluster_stage stage, struct task *task)
{
	struct task *rest;

	task->next = NULL;
	return env->submit(env, stage, task, 1, NULL, &rest) == 1;
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
