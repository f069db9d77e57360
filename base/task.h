/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_BASE_TASK_H
#define HELENUS_BASE_TASK_H

/*
 * A piece of work that a stage runs (server/stage.h), and the thread that runs it. They stand down here
 * because every floor hands work to stages, and only the server knows what threads stand behind them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"

struct stage; /* server/stage.h */

/*
 * The thread that runs: passed down, never a thread-local. Who collects work over a run of tasks
 * (answers that go back to their loops together) keeps it in `batch` and sets `flush`, which the
 * stage calls at the end of the run, or earlier when the run takes long. Threads that are no stage's
 * have no worker: NULL is passed, and nothing is collected.
 */
struct worker {
	struct stage *stage; /* borrowed; of the task that runs now */
	uint32_t index; /* of the thread in its stage, from 0 */
	bool is_loop; /* a network loop that runs a stage's tasks in place */
	void (*flush)(struct worker *worker);
	void *batch;
	void *links; /* ... and the queues to other nodes that got messages */
	/* Whose worker this is; 0: nobody's. Others compare it with themselves while a thread of the stage comes or goes: relaxed is
	 * enough, since only the thread itself must find itself here. */
	_Atomic(pthread_t) thread;
	struct buffer scratch; /* for what is encoded and handed on within one call */
	/* Memory of the last request that ended on this thread, for the next one to take over (worker_take_arena). */
	struct arena arena;
};

void worker_fini(struct worker *worker);

/* The calling thread is its thread from here on, until worker_leave(): thread ids are used again. */
static inline void
worker_enter(struct worker *worker)
{
	atomic_store_explicit(&worker->thread, pthread_self(), memory_order_relaxed);
}

static inline void
worker_leave(struct worker *worker)
{
	atomic_store_explicit(&worker->thread, 0, memory_order_relaxed);
}

/* Is this the worker of the calling thread? Completions may come on another one (a commit log's
 * sync, a flush, later another node's answer); they must leave the batch and scratch alone. */
static inline bool
worker_is_current(const struct worker *worker)
{
	return worker != NULL &&
	    pthread_equal(
		atomic_load_explicit(&worker->thread, memory_order_relaxed), pthread_self());
}

/* The memory of a request that this thread begins; block_size as for arena_init(). worker may be NULL or another's. */
static inline void
worker_take_arena(struct worker *worker, struct arena *out, size_t block_size)
{
	arena_init(out, block_size);
	if (!worker_is_current(worker) || worker->arena.block_size != block_size)
		return;
	*out = worker->arena;
	worker->arena.block_size = 0;
}

/* ... and of one that ends. In place of arena_fini(). */
static inline void
worker_give_arena(struct worker *worker, struct arena *arena)
{
	if (!worker_is_current(worker) || worker->arena.block_size != 0) {
		arena_fini(arena);
		return;
	}
	arena_reset(arena);
	worker->arena = *arena;
}

struct task {
	struct task *next;
	/* Runs on a worker. The task's memory belongs to the callee from here on. */
	void (*run)(struct task *task, struct worker *worker);
	/* Called instead of run when the task waited longer than its deadline; NULL: run it all the
	 * same. */
	void (*drop)(struct task *task, struct worker *worker);
	/* Told of the next `count` tasks of a run, itself the first, before they run: a chance to ask for memory that
	 * they will miss. Others may be among them. NULL: nothing to ask for. */
	void (*ahead)(struct task *task, size_t count);
	uint64_t submitted_ns; /* monotonic; set by the submitter once per batch */
	uint64_t deadline_ns; /* monotonic; 0: none */
};

#endif
