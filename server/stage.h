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
 * many workers are awake as there is work for; an idle worker sleeps.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/env.h"
#include "base/histogram.h"

struct stage;
struct worker; /* the thread that runs: scratch memory, index; passed down, never a thread-local */

struct task {
	struct task *next;
	/* Runs on a worker. The task's memory belongs to the callee from here on. */
	void (*run)(struct task *task, struct worker *worker);
	/* Called instead of run when the task waited longer than its timeout; NULL: run it all the same. */
	void (*drop)(struct task *task, struct worker *worker);
	uint64_t submitted_ns; /* monotonic; set by the submitter once per batch */
	uint64_t deadline_ns;  /* monotonic; 0: none */
};

struct stage_stats {
	const char *name;
	uint32_t threads;      /* size now */
	uint32_t active;
	uint64_t pending, completed, blocked_now, blocked_total, dropped;
	const struct histogram *queue_wait_us, *service_us; /* borrowed from the stage */
};

/* name: Cassandra's ("MutationStage"); static string. queue_max: tasks, 0 for unbounded. */
struct stage *stage_new(const char *name, uint32_t threads, size_t queue_max, struct env *env);
/* The same, run by stage_sim_step() in an order that `seed` decides; no threads. */
struct stage *stage_new_simulated(const char *name, size_t queue_max, struct env *env,
    uint64_t seed);
/* Run one queued task of a simulated stage; false when there is none. */
bool stage_sim_step(struct stage *stage);
/* Hand over a list of `count` tasks linked by next, in order. Returns how many were taken (from the
 * front); the rest did not fit and still belong to the caller (OVERLOADED). At most one futex wake. */
size_t stage_submit(struct stage *stage, struct task *first, size_t count);
/* Change the number of threads while running. */
void stage_resize(struct stage *stage, uint32_t threads);
/* Finish what is queued, stop the threads. Submissions are refused from here on. */
void stage_stop(struct stage *stage);
void stage_free(struct stage *stage);
void stage_stats(const struct stage *stage, struct stage_stats *out);

#endif
