/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_STAGE_H
#define HELENUS_SERVER_STAGE_H

/*
 * Stages (SEDA; Cassandra's Stage and its executors): a bounded queue and the threads that drain it,
 * counted and timed. Two executors stand behind one interface: real threads, and a single-threaded one
 * whose order a seed decides (tests, simulation).
 *
 * A task is embedded in what it works on; submitting it moves that thing to the stage, and
 * it comes back as another task or a completion. Workers take a run of tasks at a time, and only as
 * many workers are awake as there is work for; an idle worker sleeps. Threads are started when there is
 * work for them, up to the stage's size.
 *
 * Cost: one short critical section for a submitted list, one for a run of tasks, none for a task; one
 * futex wake at most for a list, and one for each further worker that the backlog needs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/histogram.h"
#include "base/task.h"

struct env; /* base/env.h */
struct stage;

struct stage_stats {
	const char *name;
	uint32_t threads; /* size now: the limit of active */
	uint32_t active;
	uint64_t pending, completed, blocked_now, blocked_total, dropped;
	const struct histogram *queue_wait_us, *service_us; /* borrowed from the stage */
};

/* name: Cassandra's ("MutationStage"); static string. queue_max: tasks, 0 for unbounded. env: borrowed. */
struct stage *stage_new(const char *name, uint32_t threads, size_t queue_max, struct env *env);
/*
 * Its threads give way to those of the other stages where there are fewer processors than work (as Cassandra's compactions have
 * the least priority): by `nice`, 1 .. 19, on top of what the process itself was started with. Before the first task. Threads
 * inherit it from who starts them, so stages that such threads submit to are to have one already (stage_start_thread).
 */
void stage_set_nice(struct stage *stage, int nice);
/* Start the first thread now, not when there is work. */
void stage_start_thread(struct stage *stage);
/* The same, run by stage_sim_step() in an order that `seed` decides; no threads. */
struct stage *
stage_new_simulated(const char *name, size_t queue_max, struct env *env, uint64_t seed);
/* Run one queued task of a simulated stage; false when there is none. */
bool stage_sim_step(struct stage *stage);

/* Hand over a list of `count` tasks linked by next, in order. Returns how many were taken (from the
 * front); the others, from *rest on (NULL: none), did not fit, or the stage is stopping: they still
 * belong to the caller, which says so with stage_blocked() while it holds them back. rest may be NULL
 * when count is 1. Any thread. At most one futex wake. */
size_t stage_submit(struct stage *stage, struct task *first, size_t count, struct task **rest);
/* `delta` tasks more (or fewer) are waiting outside because the queue was full ("Blocked"). */
void stage_blocked(struct stage *stage, int64_t delta);

/*
 * Run tasks of a list on the calling thread, as one of the stage's threads: only when nothing is queued
 * and fewer than `threads` are active (Cassandra's maybeExecuteImmediately). Stops after `budget_ns`.
 * Returns how many were run; those from *rest on are the caller's to submit (the list may be longer than
 * `count`). Deadlines are not looked at.
 */
size_t stage_run_here(struct stage *stage, struct task *first, size_t count, uint64_t budget_ns,
    struct worker *worker, struct task **rest);

/* A function as a task of its own (cold paths: the store's background work). False: stopping or full. */
bool stage_submit_work(struct stage *stage, void (*work)(void *argument), void *argument);

/* Change the number of threads while running. */
void stage_resize(struct stage *stage, uint32_t threads);
/* Finish what is queued, stop the threads. Submissions are refused from here on. */
void stage_stop(struct stage *stage);
void stage_free(struct stage *stage);
/* Any thread. */
void stage_stats(struct stage *stage, struct stage_stats *out);
const char *stage_name(const struct stage *stage);
/* Smoothed time that one task takes, ns; 0: nothing ran yet. Any thread. */
uint64_t stage_service_ns(const struct stage *stage);

#endif
