/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order in which the steps of a few threads can follow one another, with the code of the lock itself: its atomic
 * operations and system calls are replaced by steps of a model, threads by contexts that a walk through all choices
 * switches between. A step is one operation on the word, one call of the kernel, or what is done inside. The kernel may
 * wake any sleeper, and some for no reason.
 *
 * What is shown is the algorithm: one thread inside, nobody sleeps for ever, nobody touches a lock that was freed after its last
 * drop. That the memory orders suffice is lock_futex_test.c's, under ThreadSanitizer.
 */
#undef HELENUS_DEBUG_LOCKS
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned model_exchange(atomic_uint *word, unsigned value);
static bool model_compare(atomic_uint *word, unsigned *expected, unsigned value);
static long model_futex(atomic_uint *word, int operation, unsigned value);

#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_exchange_explicit(word, value, order) model_exchange(word, value)
#define atomic_compare_exchange_strong_explicit(word, expected, value, success, failure)           \
	model_compare(word, expected, value)
#define syscall(number, word, operation, value, ...) model_futex(word, operation, value)
#define lock_init model_lock_init
#define lock_fini model_lock_fini
#define lock_take_slow model_lock_take_slow
#define lock_drop_slow model_lock_drop_slow
#include "base/lock.c"

#include <check.h>
#include <string.h>
#include <ucontext.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

enum {
	MODEL_THREADS_MAX = 4,
	MODEL_STACK = 64 << 10,
	MODEL_DEPTH_MAX = 200,
	MODEL_SEEN_BITS = 20,
	MODEL_CHOICES_MAX = 16,
};

enum model_state { MODEL_READY, MODEL_WAKES, MODEL_SLEEPS, MODEL_OVER };

struct model_thread {
	ucontext_t context;
	char *stack;
	void *fiber; /* ThreadSanitizer's */
	enum model_state state;
	/* Of all that it was answered since model_forget(): where it stands, for it does nothing by chance. */
	uint64_t past;
};

/* A thread's next step; which sleeper it wakes, or that it wakes for no reason. */
struct model_choice {
	int thread;
	int wakes;
	bool is_spurious;
};

static struct {
	/* Of a test. */
	int threads;
	int rounds;
	unsigned spurious_max;
	bool has_try; /* the last thread only tries */

	/* Of one walk from begin to end. */
	struct model_thread thread[MODEL_THREADS_MAX];
	ucontext_t main;
	void *main_fiber;
	struct lock lock;
	int running;
	int wakes; /* the sleeper that the next wake is for; -1: nobody sleeps */
	unsigned inside, refs, spurious;
	bool is_freed;

	/* Of all walks. */
	struct {
		unsigned choice, count;
	} path[MODEL_DEPTH_MAX];
	uint64_t *seen; /* a set of hashes; 0: free */
	size_t seen_count, walks;
} model;

static uint64_t
model_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
	return hash ^ hash >> 29;
}

static void
model_switch(ucontext_t *from, ucontext_t *to, void *fiber)
{
#ifdef __SANITIZE_THREAD__
	__tsan_switch_to_fiber(fiber, 0);
#else
	(void)fiber;
#endif
	swapcontext(from, to);
}

/* The running thread stands before its next step: whose turn is it? */
static void
model_stop(enum model_state state)
{
	struct model_thread *thread = &model.thread[model.running];

	thread->state = state;
	model_switch(&thread->context, &model.main, model.main_fiber);
}

static void
model_answer(uint64_t answer)
{
	struct model_thread *thread = &model.thread[model.running];

	thread->past = model_mix(thread->past, answer + 1);
}

/* It stands at a place where what was before makes no difference any more. */
static void
model_forget(int round, bool is_inside)
{
	model.thread[model.running].past = (uint64_t)round * 2 + is_inside;
}

static unsigned
model_exchange(atomic_uint *word, unsigned value)
{
	unsigned old;

	model_stop(MODEL_READY);
	ck_assert_msg(!model.is_freed, "an exchange on a lock that was freed");
	old = *word; /* one context runs at a time: two steps are one */
	*word = value;
	model_answer(old);
	return old;
}

static bool
model_compare(atomic_uint *word, unsigned *expected, unsigned value)
{
	bool is_done;

	model_stop(MODEL_READY);
	ck_assert_msg(!model.is_freed, "a lock was tried that was freed");
	is_done = *word == *expected;
	if (is_done)
		*word = value;
	else
		*expected = *word;
	model_answer(is_done);
	return is_done;
}

static long
model_futex(atomic_uint *word, int operation, unsigned value)
{
	if (operation == FUTEX_WAKE_PRIVATE) {
		/* An address is all that the kernel wants: the memory may be gone. */
		model_stop(MODEL_WAKES);
		if (model.wakes >= 0) {
			ck_assert(!model.is_freed);
			model.thread[model.wakes].state = MODEL_READY;
		}
		model_answer(0);
		return 0;
	}
	ck_assert_int_eq(operation, FUTEX_WAIT_PRIVATE);
	model_stop(MODEL_READY);
	ck_assert_msg(!model.is_freed, "a thread goes to sleep at a lock that was freed");
	if (atomic_load(word) != value) {
		model_answer(EAGAIN);
		return -1;
	}
	model_answer(0);
	model_stop(MODEL_SLEEPS);
	return 0;
}

static void
model_hold(int round)
{
	bool is_last_round = round == model.rounds - 1;
	bool is_last;

	model_forget(round, true);
	ck_assert_msg(++model.inside == 1, "two threads are inside");
	model_stop(MODEL_READY);
	model_answer(0);
	model.inside--;
	is_last = is_last_round && --model.refs == 0;
	lock_drop(&model.lock);
	if (is_last)
		model.is_freed = true;
}

static void
model_thread_main(int index)
{
	bool tries = model.has_try && index == model.threads - 1;

	for (int round = 0; round < model.rounds; round++) {
		model_forget(round, false);
		if (tries && round < model.rounds - 1) {
			if (lock_try(&model.lock))
				model_hold(round);
			continue;
		}
		lock_take(&model.lock);
		model_hold(round);
	}
	model_stop(MODEL_OVER);
}

static int
model_compare_hashes(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static uint64_t
model_hash(void)
{
	uint64_t hash = atomic_load(&model.lock.word), threads[MODEL_THREADS_MAX];
	int alike = model.has_try ? model.threads - 1 : model.threads;

	hash = model_mix(hash, model.spurious * 64 + model.refs * 4 + model.is_freed);
	for (int i = 0; i < model.threads; i++)
		threads[i] = model_mix(model.thread[i].past, model.thread[i].state);
	/* Which of the threads that do the same stands where is all one. */
	qsort(threads, (size_t)alike, sizeof(threads[0]), model_compare_hashes);
	for (int i = 0; i < model.threads; i++)
		hash = model_mix(hash, threads[i]);
	return hash != 0 ? hash : 1;
}

/* Was this state met before, in this walk or another? It is now. */
static bool
model_note_seen(void)
{
	uint64_t hash = model_hash();
	size_t at = hash & ((1u << MODEL_SEEN_BITS) - 1);

	for (; model.seen[at] != 0; at = (at + 1) & ((1u << MODEL_SEEN_BITS) - 1)) {
		if (model.seen[at] == hash)
			return true;
	}
	model.seen[at] = hash;
	ck_assert_uint_lt(++model.seen_count, 1u << (MODEL_SEEN_BITS - 1));
	return false;
}

static unsigned
model_choices(struct model_choice *choices)
{
	unsigned count = 0;

	for (int i = 0; i < model.threads; i++) {
		enum model_state state = model.thread[i].state;
		unsigned before = count;

		if (state == MODEL_SLEEPS && model.spurious < model.spurious_max)
			choices[count++] = (struct model_choice){i, -1, true};
		for (int j = 0; state == MODEL_WAKES && j < model.threads; j++) {
			if (model.thread[j].state == MODEL_SLEEPS)
				choices[count++] = (struct model_choice){i, j, false};
		}
		if (state == MODEL_READY || (state == MODEL_WAKES && count == before))
			choices[count++] = (struct model_choice){i, -1, false};
	}
	ck_assert_uint_le(count, MODEL_CHOICES_MAX);
	return count;
}

static void
model_step(const struct model_choice *choice)
{
	struct model_thread *thread = &model.thread[choice->thread];

	if (choice->is_spurious) {
		model.spurious++;
		thread->state = MODEL_READY;
		return;
	}
	model.running = choice->thread;
	model.wakes = choice->wakes;
	model_switch(&model.main, &thread->context, thread->fiber);
}

/* Apart, since getcontext() may return twice, as far as the compiler knows. */
static void __attribute__((noinline)) model_make_context(struct model_thread *thread, int index)
{
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = MODEL_STACK;
	makecontext(&thread->context, (void (*)(void))model_thread_main, 1, index);
}

static void
model_begin(void)
{
	lock_init(&model.lock, "model", 1);
	model.inside = model.spurious = 0;
	model.is_freed = false;
	model.refs = (unsigned)model.threads;
	for (int i = 0; i < model.threads; i++) {
		struct model_thread *thread = &model.thread[i];

		thread->past = 0;
		thread->state = MODEL_READY;
		model_make_context(thread, i);
		/* To before its first step. */
		model_step(&(struct model_choice){i, -1, false});
	}
}

/* One walk, which follows the path for `depth` choices and takes the first ones then. Returns its length. */
static unsigned
model_walk(unsigned depth)
{
	struct model_choice choices[MODEL_CHOICES_MAX];
	bool is_known = false;
	unsigned at = 0, count;

	model_begin();
	for (; (count = model_choices(choices)) > 0; at++) {
		ck_assert_uint_lt(at, MODEL_DEPTH_MAX);
		if (at >= depth) {
			/* What can follow a state that was met before is, or will be, walked from there. */
			is_known = is_known || model_note_seen();
			model.path[at].choice = 0;
			model.path[at].count = is_known ? 1 : count;
		}
		model_step(&choices[model.path[at].choice]);
	}
	for (int i = 0; i < model.threads; i++)
		ck_assert_msg(model.thread[i].state == MODEL_OVER,
		    "thread %d sleeps for ever (walk %zu, %u steps)", i, model.walks, at);
	ck_assert(model.is_freed);
	lock_fini(&model.lock);
	model.walks++;
	return at;
}

static void
model_explore(void)
{
	unsigned depth = 0;

	model.seen = calloc(1u << MODEL_SEEN_BITS, sizeof(*model.seen));
	ck_assert_ptr_nonnull(model.seen);
	for (int i = 0; i < model.threads; i++)
		model.thread[i].stack = malloc(MODEL_STACK);
#ifdef __SANITIZE_THREAD__
	model.main_fiber = __tsan_get_current_fiber();
	for (int i = 0; i < model.threads; i++)
		model.thread[i].fiber = __tsan_create_fiber(0);
#endif
	do {
		depth = model_walk(depth);
		while (depth > 0 && model.path[depth - 1].choice + 1 >= model.path[depth - 1].count)
			depth--;
		if (depth > 0)
			model.path[depth - 1].choice++;
	} while (depth > 0);
	ck_assert_uint_gt(model.seen_count, 100); /* it did walk */

	for (int i = 0; i < model.threads; i++)
		free(model.thread[i].stack);
	free(model.seen);
}

START_TEST(test_two_threads_in_every_order)
{
	model.threads = 2;
	model.rounds = 3;
	model.spurious_max = 2;
	model_explore();
}
END_TEST

#ifndef __SANITIZE_THREAD__
START_TEST(test_three_threads_in_every_order)
{
	model.threads = 3;
	model.rounds = 2;
	model.spurious_max = 1;
	model_explore();
}
END_TEST

START_TEST(test_four_threads_in_every_order)
{
	model.threads = 4;
	model.rounds = 1;
	model.spurious_max = 1;
	model_explore();
}
END_TEST

START_TEST(test_one_that_only_tries)
{
	model.threads = 3;
	model.rounds = 2;
	model.has_try = true;
	model_explore();
}
END_TEST
#endif

int
main(void)
{
	Suite *suite = suite_create("lock_model");
	TCase *tcase = tcase_create("lock_model");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, test_two_threads_in_every_order);
	/* It is one thread that walks: ThreadSanitizer has nothing to say, and makes each switch a hundred times dearer. */
#ifndef __SANITIZE_THREAD__
	tcase_add_test(tcase, test_three_threads_in_every_order);
	tcase_add_test(tcase, test_four_threads_in_every_order);
	tcase_add_test(tcase, test_one_that_only_tries);
#endif
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
