/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "server/internode_internal.h"
#include "server/network_internal.h"
#include "server/ranks.h"

/* struct cluster_env of a real node: its stages, and timers with a thread. */

enum {
	INTERNODE_WHEEL_SLOTS = 4096,
	INTERNODE_TICK_NS = 1000 * 1000,
	INTERNODE_INLINE_SERVICE_NS = 50 * 1000, /* slower tasks are the stage's threads' */
};

/* ---- Stages --------------------------------------------------------------------------------- */

static const struct {
	enum node_stage stage;
	bool
	    is_short; /* a loop may run its tasks in place; how long they really take is looked at besides */
} internode_stages[CLUSTER_STAGE_COUNT] = {
    [CLUSTER_STAGE_IMMEDIATE] = {NODE_STAGE_IMMEDIATE, false},
    [CLUSTER_STAGE_READ] = {NODE_STAGE_READ, true},
    [CLUSTER_STAGE_MUTATION] = {NODE_STAGE_MUTATION, true},
    [CLUSTER_STAGE_COUNTER_MUTATION] = {NODE_STAGE_COUNTER_MUTATION, true},
    [CLUSTER_STAGE_GOSSIP] = {NODE_STAGE_GOSSIP, false},
    [CLUSTER_STAGE_REQUEST_RESPONSE] = {NODE_STAGE_REQUEST_RESPONSE, true},
    [CLUSTER_STAGE_INTERNAL_RESPONSE] = {NODE_STAGE_INTERNAL_RESPONSE, false},
    [CLUSTER_STAGE_ANTI_ENTROPY] = {NODE_STAGE_ANTI_ENTROPY, false},
    [CLUSTER_STAGE_MIGRATION] = {NODE_STAGE_MIGRATION, false},
    [CLUSTER_STAGE_MISC] = {NODE_STAGE_MISC, false},
    [CLUSTER_STAGE_HINTS] = {NODE_STAGE_HINTS, false},
    [CLUSTER_STAGE_VALIDATION] = {NODE_STAGE_VALIDATION, false},
    [CLUSTER_STAGE_PAXOS_REPAIR] = {NODE_STAGE_PAXOS_REPAIR, false},
    [CLUSTER_STAGE_PENDING_RANGE] = {NODE_STAGE_PENDING_RANGE, false},
    [CLUSTER_STAGE_STREAM] = {NODE_STAGE_STREAM, false},
};

/* `loop`: that runs up to `here` of them itself; NULL: none does. */
static size_t
internode_run_or_submit(struct node *node, enum cluster_stage stage, struct task *first,
    size_t count, struct loop *loop, size_t here, struct task **rest)
{
	struct stage *target = node->stages[internode_stages[stage].stage];
	size_t done = 0;

	*rest = first;
	if (loop != NULL && stage_service_ns(target) < INTERNODE_INLINE_SERVICE_NS)
		done = stage_run_here(
		    target, first, here, loop->inline_budget_ns, &loop->worker, rest);
	if (done == count)
		return done;
	return done + stage_submit(target, *rest, count - done, rest);
}

/* Each answer that was awaited leaves a task: a stage's books for each would cost as much as the task. */
static bool
internode_collect_response(struct internode_loop *loop, struct task *task)
{
	if (loop == NULL || !loop->is_in_turn)
		return false;
	task->next = NULL;
	if (loop->responses_last != NULL)
		loop->responses_last->next = task;
	else
		loop->responses = task;
	loop->responses_last = task;
	loop->response_count++;
	return true;
}

void
internode_run_responses(struct loop *loop)
{
	struct internode_loop *self = loop->internode;
	struct task *first = self->responses, *rest = NULL;
	size_t count = self->response_count;

	if (count == 0)
		return;
	self->responses = self->responses_last = NULL;
	self->response_count = 0;
	/* All of them here, as long as the budget lasts: they are answers to clients, and hardly any work. */
	internode_run_or_submit(
	    loop->node, CLUSTER_STAGE_REQUEST_RESPONSE, first, count, loop, count, &rest);
	while (rest != NULL) {
		struct task *task = rest;

		/* The stage is full: no reason to leave a request without its end. */
		rest = task->next;
		task->run(task, &loop->worker);
	}
}

size_t
internode_submit(struct cluster_env *env, enum cluster_stage stage, struct task *first,
    size_t count, struct worker *worker, struct task **rest)
{
	struct node *node = ((struct internode *)env)->node;
	struct loop *loop = NULL;
	size_t here = 0;

	if (worker_is_current(worker) && worker->is_loop && internode_stages[stage].is_short) {
		loop = (struct loop *)((char *)worker - offsetof(struct loop, worker));
		if (stage == CLUSTER_STAGE_REQUEST_RESPONSE && count == 1 &&
		    internode_collect_response(loop->internode, first)) {
			*rest = NULL;
			return 1;
		}
		here = count < loop->inline_tasks_max ? count : loop->inline_tasks_max;
	}
	return internode_run_or_submit(node, stage, first, count, loop, here, rest);
}

/* ---- Timers --------------------------------------------------------------------------------- */

static void
internode_timers_wake(struct internode_timers *timers)
{
	uint64_t one = 1;

	while (write(timers->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void
internode_timers_sleep(struct internode_timers *timers, uint64_t now, uint64_t until)
{
	struct pollfd wait = {.fd = timers->wake_fd, .events = POLLIN};
	struct timespec left = {0};
	uint64_t count;

	if (until > now) {
		left.tv_sec = (time_t)((until - now) / 1000000000);
		left.tv_nsec = (long)((until - now) % 1000000000);
	}
	if (ppoll(&wait, 1, until == UINT64_MAX ? NULL : &left, NULL) == 1)
		while (read(timers->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
			;
}

static void *
internode_timers_main(void *argument)
{
	struct internode *internode = argument;
	struct internode_timers *timers = &internode->timers;

	log_thread_name("Timer");
	for (;;) {
		uint64_t now = internode_now(internode), until;
		struct wheel_timer *due, *next;

		lock_take(&timers->lock);
		due = timer_wheel_advance(&timers->wheel, now);
		until = timer_wheel_next_ns(&timers->wheel);
		/* While we fire nobody need wake us: we look again before we sleep. */
		timers->sleeps_until_ns = due == NULL ? until : 0;
		if (timers->is_stopping) {
			lock_drop(&timers->lock);
			break;
		}
		lock_drop(&timers->lock);
		if (due == NULL) {
			internode_timers_sleep(timers, now, until);
			continue;
		}
		for (; due != NULL; due = next) {
			struct cluster_timer *timer = (struct cluster_timer *)due;

			next = due->next;
			timer->fire(timer);
		}
	}
	return NULL;
}

void
internode_timers_start(struct internode *internode)
{
	struct internode_timers *timers = &internode->timers;
	int rc;

	lock_init(&timers->lock, "internode timers", RANK_INTERNODE_TIMERS);
	timer_wheel_init(
	    &timers->wheel, INTERNODE_WHEEL_SLOTS, INTERNODE_TICK_NS, internode_now(internode));
	timers->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = timers->wake_fd < 0
	    ? errno
	    : pthread_create(&timers->thread, NULL, internode_timers_main, internode);
	if (rc != 0) {
		/* As a stage that can start no thread: a node without timers cannot work. */
		log_error("Timer: cannot start a thread: %s", strerror(rc));
		abort();
	}
	timers->is_started = true;
}

void
internode_stop_timers(struct internode *internode)
{
	struct internode_timers *timers = &internode->timers;

	if (!timers->is_started)
		return;
	lock_take(&timers->lock);
	timers->is_stopping = true;
	lock_drop(&timers->lock);
	internode_timers_wake(timers);
	pthread_join(timers->thread, NULL);
	timers->is_started = false;
	/* Their owners go one after the other, and not all take their own timers out first. */
	lock_take(&timers->lock);
	timer_wheel_end(&timers->wheel);
	lock_drop(&timers->lock);
	/* Nobody is left who could open one. */
	internode_streams_end_dropped(internode);
}

void
internode_timer_start(struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns)
{
	struct internode *internode = (struct internode *)env;
	struct internode_timers *timers = &internode->timers;
	uint64_t due = internode_now(internode) + delay_ns;
	bool is_earlier;

	lock_take(&timers->lock);
	timer_wheel_start(&timers->wheel, &timer->wheel, due);
	is_earlier = due < timers->sleeps_until_ns;
	if (is_earlier)
		timers->sleeps_until_ns = due; /* one wake is enough */
	lock_drop(&timers->lock);
	if (is_earlier)
		internode_timers_wake(timers);
}

bool
internode_timer_stop(struct cluster_env *env, struct cluster_timer *timer)
{
	struct internode_timers *timers = &((struct internode *)env)->timers;
	bool was_started;

	lock_take(&timers->lock);
	was_started = timer_wheel_stop(&timers->wheel, &timer->wheel);
	lock_drop(&timers->lock);
	return was_started;
}
