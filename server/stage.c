/* SPDX-License-Identifier: Apache-2.0 */
#include "server/stage.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/lock.h"
#include "base/log.h"
#include "server/ranks.h"

enum {
	STAGE_RUN_MAX = 64, /* tasks that a worker takes at once */
	STAGE_RUN_NS = 200 * 1000, /* how long a run should take */
	STAGE_RUN_LATE_NS = 1000 * 1000, /* after this the rest of a run goes back to the queue */
	STAGE_FLUSH_NS = 100 * 1000, /* answers wait at most this long for others of their run */
	STAGE_SLOW_NS = 4 * 1000, /* slower tasks are timed one by one, faster ones by eights */
	STAGE_AHEAD = 8, /* tasks that are looked at together before they run */
	STAGE_BUCKETS = 90,
	STAGE_STACK_BYTES = 2 << 20,
	STAGE_NICE_MAX = 19, /* more there is not */
};

/* A thread of a stage. It lives on the list `all` until the stage is freed: a stage that shrinks
 * and grows again uses the slots again. */
struct stage_thread {
	struct worker worker;
	pthread_t thread;
	atomic_uint word; /* futex: 0 asleep or about to be, 1 woken */
	struct stage_thread *next_idle; /* guarded by the stage's lock */
	struct stage_thread *next;
	pid_t id; /* the system's; 0: not there yet; guarded by the stage's lock */
	bool is_running; /* has a thread; guarded by the stage's lock */
	bool is_joinable;
};

struct stage {
	const char *name; /* static */
	struct env *env; /* borrowed */
	size_t queue_max; /* 0: unbounded */
	bool is_simulated;
	int nice;

	/* Guarded by lock. */
	struct lock lock;
	struct task *first, *last;
	size_t queued;
	uint32_t threads; /* wanted */
	uint32_t live; /* threads that run or sleep */
	uint32_t active; /* that run a task, loops in run_here() included */
	uint32_t waking; /* woken or started, not here yet */
	struct stage_thread *idle; /* asleep; the last to fall asleep first: its cache is warm */
	struct stage_thread *all;
	uint32_t slot_count;
	bool is_stopping;
	uint64_t completed, dropped, blocked_now, blocked_total;
	uint64_t random; /* of the simulated order */
	struct worker
	    simulated; /* of all simulated steps: who began in one may end in a later one */

	/* Wait-free. */
	_Atomic uint64_t service_ns; /* smoothed; relaxed: a hint */
	struct histogram queue_wait_us, service_us;
};

static void *stage_thread_main(void *argument);

struct stage *
stage_new(const char *name, uint32_t threads, size_t queue_max, struct env *env)
{
	struct stage *stage = xzalloc(sizeof(*stage));

	stage->name = name;
	stage->env = env;
	stage->queue_max = queue_max;
	stage->threads = threads > 0 ? threads : 1;
	lock_init(&stage->lock, name, RANK_STAGE);
	histogram_init(&stage->queue_wait_us, STAGE_BUCKETS);
	histogram_init(&stage->service_us, STAGE_BUCKETS);
	return stage;
}

struct stage *
stage_new_simulated(const char *name, size_t queue_max, struct env *env, uint64_t seed)
{
	struct stage *stage = stage_new(name, 1, queue_max, env);

	stage->is_simulated = true;
	stage->random = seed * 0x9E3779B97F4A7C15u + 1;
	return stage;
}

void
stage_set_nice(struct stage *stage, int nice)
{
	stage->nice = nice;
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void
stage_wake(struct stage_thread *thread)
{
	if (thread == NULL)
		return;
	/* Release: what was written under the lock is seen through the lock; the word only ends
	 * the sleep. */
	atomic_store_explicit(&thread->word, 1, memory_order_release);
	syscall(SYS_futex, &thread->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void
stage_sleep(struct stage_thread *thread)
{
	while (atomic_load_explicit(&thread->word, memory_order_acquire) == 0)
		syscall(SYS_futex, &thread->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	atomic_store_explicit(&thread->word, 0, memory_order_relaxed);
}

/* Would a thread that we start now be nicer than those that the stage has? Linux keeps niceness for each thread. */
static bool
stage_is_nicer_here_locked(const struct stage *stage)
{
	const struct stage_thread *thread = stage->all;

	while (thread != NULL && !(thread->is_running && thread->id != 0))
		thread = thread->next;
	return thread != NULL &&
	    getpriority(PRIO_PROCESS, 0) > getpriority(PRIO_PROCESS, (id_t)thread->id);
}

/* What no stage has made nicer is what the operator started: the main thread, whose id is the process's. */
static void
stage_be_nice(const struct stage *stage)
{
	int niceness = getpriority(PRIO_PROCESS, (id_t)getpid()) + stage->nice;

	setpriority(PRIO_PROCESS, 0, niceness < STAGE_NICE_MAX ? niceness : STAGE_NICE_MAX);
}

/* Start one thread more; false when the system has none, or gives none of this priority. */
static bool
stage_spawn_locked(struct stage *stage)
{
	struct stage_thread *thread = stage->all;
	pthread_attr_t attributes;
	int rc;

	/* It would be as nice as we are, for good: one of the stage's own calls the next. */
	if (stage_is_nicer_here_locked(stage))
		return false;
	while (thread != NULL && thread->is_running)
		thread = thread->next;
	if (thread == NULL) {
		thread = xzalloc(sizeof(*thread));
		thread->worker.stage = stage;
		thread->worker.index = stage->slot_count++;
		thread->next = stage->all;
		stage->all = thread;
	}
	if (thread->is_joinable)
		pthread_join(thread->thread, NULL); /* it has let go of the lock for good */
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STAGE_STACK_BYTES);
	atomic_store_explicit(&thread->word, 0, memory_order_relaxed);
	rc = pthread_create(&thread->thread, &attributes, stage_thread_main, thread);
	pthread_attr_destroy(&attributes);
	thread->is_joinable = rc == 0;
	thread->is_running = rc == 0;
	thread->id = 0;
	if (rc != 0)
		return false;
	stage->live++;
	stage->waking++;
	return true;
}

/*
 * There is a backlog: make sure that one more thread comes for it, unless one is on its way already (it
 * will look at the backlog itself and call the next) or all that may run do. The result is to be given to
 * stage_wake() without the lock.
 */
static struct stage_thread *
stage_call_locked(struct stage *stage)
{
	struct stage_thread *thread;

	lock_assert_held(&stage->lock);
	if (stage->queued == 0 || stage->waking > 0 || stage->active >= stage->threads)
		return NULL;
	thread = stage->idle;
	if (thread != NULL) {
		stage->idle = thread->next_idle;
		stage->waking++;
		return thread;
	}
	if (stage->live < stage->threads && !stage_spawn_locked(stage) && stage->live == 0) {
		/* Nobody would ever come. A node that can start no thread cannot work. */
		log_error("%s: cannot start a thread", stage->name);
		abort();
	}
	return NULL;
}

void
stage_start_thread(struct stage *stage)
{
	lock_take(&stage->lock);
	if (stage->live == 0 && !stage->is_simulated)
		stage_spawn_locked(stage);
	lock_drop(&stage->lock);
}

/* ---- the queue ------------------------------------------------------------------------------- */

size_t
stage_submit(struct stage *stage, struct task *first, size_t count, struct task **rest)
{
	struct stage_thread *thread = NULL;
	struct task *last = first;
	size_t taken = count;

	assert(rest != NULL || count == 1);
	if (rest != NULL)
		*rest = count > 0 ? first : NULL;
	if (count == 0)
		return 0;
	for (size_t i = 1; i < count; i++)
		last = last->next;
	lock_take(&stage->lock);
	if (stage->is_stopping)
		taken = 0;
	else if (stage->queue_max != 0 && count > stage->queue_max - stage->queued)
		taken = stage->queue_max - stage->queued;
	if (taken == 0) {
		lock_drop(&stage->lock);
		return 0;
	}
	if (taken < count) {
		last = first;
		for (size_t i = 1; i < taken; i++)
			last = last->next;
	}
	if (rest != NULL)
		*rest = taken < count ? last->next : NULL;
	last->next = NULL;
	if (stage->last != NULL)
		stage->last->next = first;
	else
		stage->first = first;
	stage->last = last;
	stage->queued += taken;
	if (!stage->is_simulated)
		thread = stage_call_locked(stage);
	lock_drop(&stage->lock);
	stage_wake(thread);
	return taken;
}

void
stage_blocked(struct stage *stage, int64_t delta)
{
	lock_take(&stage->lock);
	stage->blocked_now += (uint64_t)delta;
	if (delta > 0)
		stage->blocked_total += (uint64_t)delta;
	lock_drop(&stage->lock);
}

/* Take up to `count` tasks off the front; *out is their list. */
static size_t
stage_take_locked(struct stage *stage, size_t count, struct task **out)
{
	struct task *last = stage->first;
	size_t taken = 1;

	*out = stage->first;
	while (taken < count && last->next != NULL) {
		last = last->next;
		taken++;
	}
	stage->first = last->next;
	if (stage->first == NULL)
		stage->last = NULL;
	last->next = NULL;
	stage->queued -= taken;
	return taken;
}

static void
stage_give_back_locked(struct stage *stage, struct task *first, size_t count)
{
	struct task *last = first;

	while (last->next != NULL)
		last = last->next;
	last->next = stage->first;
	if (stage->first == NULL)
		stage->last = last;
	stage->first = first;
	stage->queued += count;
}

/* ---- running --------------------------------------------------------------------------------- */

static void
stage_flush(struct worker *worker)
{
	if (worker->flush != NULL)
		worker->flush(worker);
}

static void
stage_note_service(struct stage *stage, uint64_t elapsed_ns, size_t count)
{
	uint64_t each = elapsed_ns / count;
	uint64_t old = atomic_load_explicit(&stage->service_ns, memory_order_relaxed);

	histogram_add_many(&stage->service_us, (each + 500) / 1000, count);
	/* Relaxed and not atomic as a whole: a lost update of a smoothed hint does no harm. */
	atomic_store_explicit(
	    &stage->service_ns, old == 0 ? each : (old * 7 + each) / 8, memory_order_relaxed);
}

/* How a run went. */
struct stage_run {
	size_t done, dropped;
	struct task *rest; /* not run: it took too long, or the budget is used up */
	size_t rest_count;
};

/*
 * Run a list. Tasks are timed one by one where they are slow, else eight at a time: a clock costs
 * as much as a hundredth of a fast task.
 */
static struct stage_run
stage_run_list(struct stage *stage, struct worker *worker, struct task *task, size_t count,
    uint64_t start, uint64_t limit_ns, bool may_drop)
{
	struct stage_run run = {0};
	uint64_t service = atomic_load_explicit(&stage->service_ns, memory_order_relaxed);
	size_t step = service == 0 || service >= STAGE_SLOW_NS ? 1 : 8;
	uint64_t marked = start, flushed = start, now = start;
	size_t since = 0, seen = 0;

	while (task != NULL && count > 0) {
		struct task *next = task->next;

		if (seen-- == 0) {
			seen = (count < STAGE_AHEAD ? count : STAGE_AHEAD) - 1;
			if (task->ahead != NULL)
				task->ahead(task, seen + 1);
		}
		count--;
		if (may_drop && task->deadline_ns != 0 && now > task->deadline_ns &&
		    task->drop != NULL) {
			run.dropped++;
			task->drop(task, worker);
		} else {
			run.done++;
			since++;
			task->run(task, worker);
		}
		task = next;
		if (since < step && count > 0)
			continue;
		if (since == 0)
			break; /* only drops at the end */
		now = env_monotonic_ns(stage->env);
		stage_note_service(stage, now - marked, since);
		marked = now;
		since = 0;
		if (count == 0)
			break;
		if (now - start > limit_ns)
			break;
		if (now - flushed > STAGE_FLUSH_NS && worker->flush != NULL) {
			worker->flush(worker);
			flushed = now;
		}
	}
	run.rest = task;
	run.rest_count = count;
	return run;
}

/* Waiting times of a run: tasks of one batch were submitted at one time, and are counted together. */
static void
stage_note_wait(struct stage *stage, const struct task *task, uint64_t now)
{
	while (task != NULL) {
		uint64_t submitted = task->submitted_ns;
		uint64_t count = 0;

		for (; task != NULL && task->submitted_ns == submitted; task = task->next)
			count++;
		if (submitted != 0)
			histogram_add_many(&stage->queue_wait_us,
			    now > submitted ? (now - submitted + 500) / 1000 : 0, count);
	}
}

static size_t
stage_run_size(const struct stage *stage)
{
	uint64_t service = atomic_load_explicit(&stage->service_ns, memory_order_relaxed);
	uint64_t size = service == 0 ? 8 : STAGE_RUN_NS / service;

	return size < 1 ? 1 : size > STAGE_RUN_MAX ? STAGE_RUN_MAX : (size_t)size;
}

/* One run of a thread. Holds the lock at entry and at return, not in between. */
static void
stage_work_locked(struct stage *stage, struct stage_thread *thread)
{
	struct task *first;
	size_t count = stage_take_locked(stage, stage_run_size(stage), &first);
	struct stage_thread *call;
	struct stage_run run;
	uint64_t start;

	stage->active++;
	call = stage_call_locked(stage);
	lock_drop(&stage->lock);
	stage_wake(call);
	start = env_monotonic_ns(stage->env);
	stage_note_wait(stage, first, start);
	run = stage_run_list(stage, &thread->worker, first, count, start, STAGE_RUN_LATE_NS, true);
	stage_flush(&thread->worker);
	lock_take(&stage->lock);
	stage->active--;
	stage->completed += run.done;
	stage->dropped += run.dropped;
	if (run.rest != NULL)
		stage_give_back_locked(stage, run.rest, run.rest_count);
}

static void *
stage_thread_main(void *argument)
{
	struct stage_thread *thread = argument;
	struct stage *stage = thread->worker.stage;

	worker_enter(&thread->worker);
	log_thread_name("%s-%u", stage->name, thread->worker.index + 1);
	if (stage->nice > 0)
		stage_be_nice(stage);
	lock_take(&stage->lock);
	thread->id = gettid();
	stage->waking--;
	for (;;) {
		if (stage->live > stage->threads)
			break;
		if (stage->queued > 0 && stage->active < stage->threads) {
			stage_work_locked(stage, thread);
			continue;
		}
		if (stage->is_stopping && stage->queued == 0)
			break;
		thread->next_idle = stage->idle;
		stage->idle = thread;
		lock_drop(&stage->lock);
		stage_sleep(thread);
		lock_take(&stage->lock);
		stage->waking--;
	}
	worker_leave(&thread->worker);
	stage->live--;
	thread->is_running = false;
	{
		/* What it was woken for may still be there (the stage shrank meanwhile). */
		struct stage_thread *call = stage_call_locked(stage);

		lock_drop(&stage->lock);
		stage_wake(call);
	}
	return NULL;
}

size_t
stage_run_here(struct stage *stage, struct task *first, size_t count, uint64_t budget_ns,
    struct worker *worker, struct task **rest)
{
	struct stage_thread *call = NULL;
	struct stage_run run;
	struct stage *outer = worker->stage;

	*rest = count > 0 ? first : NULL;
	if (count == 0)
		return 0;
	lock_take(&stage->lock);
	if (stage->is_stopping || stage->is_simulated || stage->queued > 0 ||
	    stage->active >= stage->threads) {
		lock_drop(&stage->lock);
		return 0;
	}
	stage->active++;
	lock_drop(&stage->lock);
	worker->stage = stage;
	run = stage_run_list(
	    stage, worker, first, count, env_monotonic_ns(stage->env), budget_ns, false);
	worker->stage = outer;
	*rest = run.rest;
	histogram_add_many(&stage->queue_wait_us, 0, run.done);
	lock_take(&stage->lock);
	stage->active--;
	stage->completed += run.done;
	call = stage_call_locked(stage);
	lock_drop(&stage->lock);
	stage_wake(call);
	return run.done;
}

/* ---- work that is a function ----------------------------------------------------------------- */

struct stage_function {
	struct task task; /* first */
	void (*work)(void *argument);
	void *argument;
};

static void
stage_function_run(struct task *task, struct worker *worker)
{
	struct stage_function *function = (struct stage_function *)task;

	(void)worker;
	function->work(function->argument);
	free(function);
}

bool
stage_submit_work(struct stage *stage, void (*work)(void *argument), void *argument)
{
	struct stage_function *function = xzalloc(sizeof(*function));

	function->task.run = stage_function_run;
	function->task.submitted_ns = env_monotonic_ns(stage->env);
	function->work = work;
	function->argument = argument;
	if (stage_submit(stage, &function->task, 1, NULL) == 1)
		return true;
	free(function);
	return false;
}

/* ---- the simulated executor ------------------------------------------------------------------- */

/* xorshift64*: any order will do as long as the seed decides it. */
static uint64_t
stage_random(struct stage *stage)
{
	stage->random ^= stage->random >> 12;
	stage->random ^= stage->random << 25;
	stage->random ^= stage->random >> 27;
	return stage->random * 0x2545F4914F6CDD1Du;
}

/*
 * A threaded stage starts tasks in order but finishes them in any; what others see is that a task
 * overtakes at most as many as there are threads. So the next task is one of the first eight.
 */
bool
stage_sim_step(struct stage *stage)
{
	struct worker *worker = &stage->simulated;
	struct task **link = &stage->first, *task;
	struct stage_run run;
	uint64_t start;
	size_t skip;

	assert(stage->is_simulated);
	if (stage->queued == 0)
		return false;
	skip = stage_random(stage) % (stage->queued < 8 ? stage->queued : 8);
	while (skip-- > 0)
		link = &(*link)->next;
	task = *link;
	*link = task->next;
	if (task->next == NULL)
		stage->last = link == &stage->first
		    ? NULL
		    : (struct task *)((char *)link - offsetof(struct task, next));
	task->next = NULL;
	stage->queued--;
	stage->active = 1;
	worker->stage = stage;
	worker_enter(worker);
	start = env_monotonic_ns(stage->env);
	stage_note_wait(stage, task, start);
	run = stage_run_list(stage, worker, task, 1, start, UINT64_MAX, true);
	stage_flush(worker);
	stage->active = 0;
	stage->completed += run.done;
	stage->dropped += run.dropped;
	return true;
}

/* ---- size and end ------------------------------------------------------------------------------ */

void
stage_resize(struct stage *stage, uint32_t threads)
{
	struct stage_thread *woken = NULL, *call;

	lock_take(&stage->lock);
	stage->threads = threads > 0 ? threads : 1;
	/* Those too many leave by themselves when their run ends; who sleeps has to be told. */
	for (uint32_t extra = stage->live; extra > stage->threads && stage->idle != NULL; extra--) {
		struct stage_thread *thread = stage->idle;

		stage->idle = thread->next_idle;
		stage->waking++;
		thread->next_idle = woken;
		woken = thread;
	}
	call = stage_call_locked(stage);
	lock_drop(&stage->lock);
	stage_wake(call);
	while (woken != NULL) {
		struct stage_thread *next = woken->next_idle;

		stage_wake(woken);
		woken = next;
	}
}

void
stage_stop(struct stage *stage)
{
	struct stage_thread *woken, *call;

	lock_take(&stage->lock);
	stage->is_stopping = true;
	call = stage_call_locked(stage); /* in case nobody was there for what is queued */
	woken = stage->idle;
	stage->idle = NULL;
	for (struct stage_thread *thread = woken; thread != NULL; thread = thread->next_idle)
		stage->waking++;
	lock_drop(&stage->lock);
	stage_wake(call);
	while (woken != NULL) {
		struct stage_thread *next = woken->next_idle;

		stage_wake(woken);
		woken = next;
	}
	/* No thread is started from here on but by another thread of the stage that finds a
	 * backlog: look until all are gone. */
	for (;;) {
		struct stage_thread *thread;
		pthread_t id;

		lock_take(&stage->lock);
		thread = stage->all;
		while (thread != NULL && !thread->is_joinable)
			thread = thread->next;
		if (thread != NULL) {
			id = thread->thread;
			thread->is_joinable = false;
		}
		lock_drop(&stage->lock);
		if (thread == NULL)
			break;
		pthread_join(id, NULL);
	}
}

void
stage_free(struct stage *stage)
{
	if (stage == NULL)
		return;
	if (!stage->is_stopping)
		stage_stop(stage);
	worker_fini(&stage->simulated);
	while (stage->all != NULL) {
		struct stage_thread *next = stage->all->next;

		worker_fini(&stage->all->worker);
		free(stage->all);
		stage->all = next;
	}
	lock_fini(&stage->lock);
	free(stage);
}

void
stage_stats(struct stage *stage, struct stage_stats *out)
{
	lock_take(&stage->lock);
	*out = (struct stage_stats){
	    .name = stage->name,
	    .threads = stage->threads,
	    .active = stage->active,
	    .pending = stage->queued,
	    .completed = stage->completed,
	    .blocked_now = stage->blocked_now,
	    .blocked_total = stage->blocked_total,
	    .dropped = stage->dropped,
	    .queue_wait_us = &stage->queue_wait_us,
	    .service_us = &stage->service_us,
	};
	lock_drop(&stage->lock);
}

const char *
stage_name(const struct stage *stage)
{
	return stage->name;
}

uint64_t
stage_service_ns(const struct stage *stage)
{
	return atomic_load_explicit(&stage->service_ns, memory_order_relaxed);
}
