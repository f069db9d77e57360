/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/world/world.h"
#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "tests/sim/world/world_internal.h"

enum {
	WORLD_LAST_TASKS_MAX = 1000000, /* of a dying node; more is a loop */
};

#define WORLD_TASK_DELAY_MAX_NS (50 * WORLD_US)

uint64_t
world_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint32_t
world_chance(struct world *world, uint32_t bound)
{
	return (uint32_t)((world_random(&world->chance) >> 32) * bound >> 32);
}

void
world_push(struct world *world, struct world_event *event, uint64_t delay_ns)
{
	event->at_ns = world->now_ns + delay_ns;
	event->sequence = world->sequence++;
	world_queue_push(&world->queue, event);
}

/* ---- A node's environment ---- */

static int64_t
world_clock_wall_us(struct env *env)
{
	struct world_clock *clock = (struct world_clock *)env;

	/* 2026-01-01 */
	return INT64_C(1767225600000000) + clock->wall_offset_us +
	    (int64_t)(clock->node->world->now_ns / 1000);
}

static uint64_t
world_clock_monotonic_ns(struct env *env)
{
	struct world_clock *clock = (struct world_clock *)env;

	return clock->base_ns + (uint64_t)((double)clock->node->world->now_ns * clock->rate);
}

static void
world_clock_random(struct env *env, void *out, size_t size)
{
	struct world_clock *clock = (struct world_clock *)env;
	uint8_t *at = out;

	while (size > 0) {
		uint64_t random = world_random(&clock->chance);
		size_t part = size < sizeof(random) ? size : sizeof(random);

		memcpy(at, &random, part);
		at += part;
		size -= part;
	}
}

static void
world_clock_keep(struct env *env)
{
	(void)env;
}

static bool
world_stage_is_single(enum cluster_stage stage)
{
	return stage == CLUSTER_STAGE_GOSSIP || stage == CLUSTER_STAGE_ANTI_ENTROPY ||
	    stage == CLUSTER_STAGE_MIGRATION || stage == CLUSTER_STAGE_MISC ||
	    stage == CLUSTER_STAGE_PENDING_RANGE;
}

static size_t
world_submit(struct cluster_env *env, enum cluster_stage stage, struct task *first, size_t count,
    struct worker *worker, struct task **rest)
{
	struct world_node *node = world_node_of(env);
	struct world_clock *clock = node->clock;
	struct world *world = node->world;

	(void)worker;
	*rest = NULL;
	if (clock->is_stopped) {
		*rest = first;
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct world_event event = {.kind = WORLD_TASK, .node = node->index, .task = first};
		uint64_t at =
		    world->now_ns + world_random(&world->chance) % WORLD_TASK_DELAY_MAX_NS;

		first = first->next;
		event.task->next = NULL;
		if (clock->is_dying) {
			*clock->last_tasks_end = event.task;
			clock->last_tasks_end = &event.task->next;
			continue;
		}
		/* One thread: in the order in which they came. */
		if (world_stage_is_single(stage)) {
			if (at < clock->stage_free_ns[stage])
				at = clock->stage_free_ns[stage];
			clock->stage_free_ns[stage] = at;
		}
		world_push(world, &event, at - world->now_ns);
	}
	return count;
}

/* What a dying node's timers are armed with: they can be stopped, and do not fire. */
static struct world_timer world_timer_never;

static void
world_timer_start(struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns)
{
	struct world_node *node = world_node_of(env);
	struct world_event event = {.kind = WORLD_TIMER, .node = node->index};

	assert(timer->wheel.next == NULL);
	if (node->clock->is_dying) {
		timer->wheel.next = (struct wheel_timer *)&world_timer_never;
		return;
	}
	event.timer = xzalloc(sizeof(*event.timer));
	event.timer->timer = timer;
	timer->wheel.next = (struct wheel_timer *)event.timer;
	world_push(node->world, &event, (uint64_t)((double)delay_ns / node->clock->rate) + 1);
}

static bool
world_timer_stop(struct cluster_env *env, struct cluster_timer *timer)
{
	struct world_timer *armed = (struct world_timer *)timer->wheel.next;

	(void)env;
	if (armed == NULL)
		return false;
	armed->timer = NULL;
	timer->wheel.next = NULL;
	return true;
}

/* ---- Nodes ---- */

static void
world_node_init(struct world *world, uint32_t index)
{
	struct world_node *node = &world->nodes[index];
	struct world_clock *clock = xzalloc(sizeof(*clock));
	const struct world_options *options = &world->options;

	node->world = world;
	node->index = index;
	node->endpoint = (struct endpoint){
	    .address = {10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index},
	    .size = 4,
	    .port = WORLD_PORT};
	node->clock = clock;
	node->env = &clock->env;
	clock->node = node;
	clock->chance = world_random(&world->chance);
	clock->base_ns = WORLD_S + world_random(&world->chance) % (1000 * WORLD_S);
	clock->rate = 1;
	if (options->drift_max_ppm > 0)
		clock->rate += ((double)world_chance(world, 2 * options->drift_max_ppm + 1) -
				   options->drift_max_ppm) /
		    1e6;
	if (options->skew_max_us > 0)
		clock->wall_offset_us =
		    (int64_t)(world_random(&world->chance) % (2 * options->skew_max_us + 1)) -
		    (int64_t)options->skew_max_us;
	if (options->has_disks)
		node->disk = env_sim_new(world_random(&world->chance));
	clock->env = (struct env){
	    .wall_us = world_clock_wall_us,
	    .monotonic_ns = world_clock_monotonic_ns,
	    .random = world_clock_random,
	    .free = world_clock_keep,
	    .files = node->disk == NULL ? NULL : env_sim_env(node->disk)->files,
	};
	node->cluster = (struct cluster_env){
	    .env = node->env,
	    .submit = world_submit,
	    .timer_start = world_timer_start,
	    .timer_stop = world_timer_stop,
	    .send = world_network_send,
	    .stream_open = world_stream_open,
	};
}

struct world_node *
world_find(struct world *world, const struct endpoint *endpoint)
{
	const uint8_t *at = endpoint->address;
	uint32_t index = (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];

	if (index >= world->options.node_count ||
	    !endpoint_equal(&world->nodes[index].endpoint, endpoint))
		return NULL;
	return &world->nodes[index];
}

void
world_start(struct world *world, uint32_t index)
{
	struct world_node *node = &world->nodes[index];

	assert(!node->is_up);
	world_note(world, "start of %u", index);
	node->clock->is_dying = node->clock->is_stopped = false;
	node->is_up = true;
	node->starts++;
	node->peers = peers_new(&node->endpoint);
	node->messaging = messaging_new(&node->cluster, node->peers);
	node->parts = world->ops.start(node, world->context);
}

static void
world_task_run(struct world_node *node, struct task *task)
{
	if (task->drop != NULL && task->deadline_ns != 0 &&
	    env_monotonic_ns(node->env) > task->deadline_ns)
		task->drop(task, NULL);
	else
		task->run(task, NULL);
}

/* What was under way in it. Nobody hears what comes of that: so memory is freed by those who own it. */
static void
world_node_drain(struct world *world, struct world_node *node)
{
	struct world_clock *clock = node->clock;
	struct world_event *events;
	size_t count = world_queue_take(&world->queue, node->index, &events);
	uint32_t run = 0;

	clock->last_tasks = NULL;
	clock->last_tasks_end = &clock->last_tasks;
	for (size_t i = 0; i < count; i++) {
		if (events[i].kind != WORLD_TIMER)
			continue;
		if (events[i].timer->timer != NULL)
			events[i].timer->timer->wheel.next =
			    (struct wheel_timer *)&world_timer_never;
		free(events[i].timer);
	}
	for (size_t i = 0; i < count; i++) {
		if (events[i].kind == WORLD_TASK)
			world_task_run(node, events[i].task);
		else if (events[i].kind == WORLD_MESSAGE)
			world_packet_free(events[i].packet);
	}
	free(events);
	while (clock->last_tasks != NULL) {
		struct task *task = clock->last_tasks;

		assert(run++ < WORLD_LAST_TASKS_MAX);
		clock->last_tasks = task->next;
		if (clock->last_tasks == NULL)
			clock->last_tasks_end = &clock->last_tasks;
		world_task_run(node, task);
	}
}

void
world_crash(struct world *world, uint32_t index, enum world_death death)
{
	struct world_node *node = &world->nodes[index];

	assert(node->is_up);
	world_note(world, "%s of %u", death == WORLD_KILL ? "kill" : "power cut", index);
	node->clock->is_dying = true;
	if (node->disk != NULL)
		env_sim_crash_after(node->disk, 0);
	world_streams_crash(world, index);
	world_node_drain(world, node);
	node->clock->is_stopped = true;
	messaging_free(node->messaging);
	node->messaging = NULL;
	world->ops.stop(node, node->parts, world->context);
	node->parts = NULL;
	peers_free(node->peers);
	node->peers = NULL;
	node->is_up = false;
	if (node->disk != NULL) {
		if (death == WORLD_POWER)
			env_sim_crash(node->disk);
		else
			env_sim_kill(node->disk);
	}
}

void
world_pause(struct world *world, uint32_t index, uint64_t ns)
{
	world_note(world, "pause of %u for %.3f s", index, (double)ns / 1e9);
	world->nodes[index].clock->paused_until_ns = world->now_ns + ns;
}

void
world_step_wall(struct world *world, uint32_t index, int64_t us)
{
	world_note(world, "wall clock of %u jumps by %.3f s", index, (double)us / 1e6);
	world->nodes[index].clock->wall_offset_us += us;
}

/* ---- The world ---- */

struct world *
world_new(const struct world_options *options, const struct world_ops *ops, void *context)
{
	struct world *world = xzalloc(sizeof(*world));
	size_t pairs = (size_t)options->node_count * options->node_count;

	world->options = *options;
	world->ops = *ops;
	world->context = context;
	world->chance = options->seed;
	world->story.capacity = options->story_lines == 0 ? 400 : options->story_lines;
	world->story.lines = xcalloc(world->story.capacity, sizeof(*world->story.lines));
	world->cut = xcalloc((pairs + 63) / 64, sizeof(*world->cut));
	world->lost_verbs = xcalloc(options->node_count, sizeof(*world->lost_verbs));
	world->arrives_ns = xcalloc(pairs, sizeof(*world->arrives_ns));
	world->nodes = xcalloc(options->node_count, sizeof(*world->nodes));
	for (uint32_t i = 0; i < options->node_count; i++)
		world_node_init(world, i);
	return world;
}

void
world_free(struct world *world)
{
	struct world_event event;

	if (world == NULL)
		return;
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		if (world->nodes[i].is_up)
			world_crash(world, i, WORLD_KILL);
	}
	while (world_queue_pop(&world->queue, &event)) {
		if (event.kind == WORLD_MESSAGE)
			world_packet_free(event.packet);
	}
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		env_sim_free(world->nodes[i].disk);
		free(world->nodes[i].clock);
	}
	world_streams_free(world);
	world_story_fini(&world->story);
	free(world->queue.heap);
	free(world->nodes);
	free(world->cut);
	free(world->lost_verbs);
	free(world->arrives_ns);
	free(world);
}

struct world_node *
world_node(struct world *world, uint32_t index)
{
	assert(index < world->options.node_count);
	return &world->nodes[index];
}

uint64_t
world_now(const struct world *world)
{
	return world->now_ns;
}

uint64_t
world_events(const struct world *world)
{
	return world->events;
}

uint64_t
world_messages(const struct world *world)
{
	return world->messages;
}

void
world_at(struct world *world, uint64_t delay_ns, void (*fn)(void *context, uint32_t argument),
    void *context, uint32_t argument)
{
	struct world_event event = {.kind = WORLD_CALL, .node = argument};

	event.call.fn = fn;
	event.call.context = context;
	world_push(world, &event, delay_ns);
}

static void
world_event_run(struct world *world, struct world_event *event)
{
	struct world_node *node = &world->nodes[event->kind == WORLD_CALL ? 0 : event->node];
	struct cluster_timer *timer;

	if (event->kind == WORLD_CALL) {
		event->call.fn(event->call.context, event->node);
		return;
	}
	if (node->clock->paused_until_ns > world->now_ns && node->is_up) {
		/* Its order among those that wait stays: events keep their sequence. */
		event->at_ns = node->clock->paused_until_ns;
		world_queue_push(&world->queue, event);
		return;
	}
	switch (event->kind) {
	case WORLD_TASK:
		world_task_run(node, event->task);
		break;
	case WORLD_TIMER:
		timer = event->timer->timer;
		free(event->timer);
		if (timer != NULL) {
			timer->wheel.next = NULL;
			timer->fire(timer);
		}
		break;
	case WORLD_MESSAGE:
		world_network_deliver(world, node, event->packet);
		world_packet_free(event->packet);
		break;
	case WORLD_CALL:
		break;
	}
}

void
world_run(struct world *world, uint64_t ns)
{
	uint64_t until = world->now_ns + ns;
	struct world_event event;

	while (world->queue.count > 0 && world->queue.heap[0].at_ns <= until) {
		world_queue_pop(&world->queue, &event);
		world->now_ns = event.at_ns;
		world->events++;
		world_event_run(world, &event);
	}
	world->now_ns = until;
}

bool
world_run_until(struct world *world, bool (*holds)(struct world *world, void *context),
    void *context, uint64_t step_ns, uint64_t limit_ns)
{
	uint64_t until = world->now_ns + limit_ns;

	while (!holds(world, context)) {
		if (world->now_ns >= until)
			return false;
		world_run(world, step_ns);
	}
	return true;
}
