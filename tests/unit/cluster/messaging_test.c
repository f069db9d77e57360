/* SPDX-License-Identifier: Apache-2.0 */
/* Messaging between nodes of a world without threads: a clock that is moved, a wire that is a list. */
#include "cluster/messaging.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/env_sim.h"
#include "tests/memory/allocation.h"

enum { NODES = 3, MS = 1000 * 1000, TIMEOUT = 2000 * MS };

struct world;

struct node {
	struct cluster_env env; /* first */
	struct world *world;
	struct peers *peers;
	struct messaging *messaging;
	struct task *queue[CLUSTER_STAGE_COUNT], *last[CLUSTER_STAGE_COUNT];
	size_t room; /* of a stage; SIZE_MAX: all there is */
	/* What the tests' handlers saw. */
	char ahead[64];
	struct message *kept;
	int handled;
	enum cluster_stage handled_on;
};

struct packet {
	struct packet *next;
	int from, to;
	struct buffer bytes;
};

struct world {
	struct env_sim *sim;
	struct timer_wheel wheel;
	struct node nodes[NODES];
	struct packet *wire;
	bool loses;
	int now_running; /* the stage */
};

static struct endpoint
endpoint_of(int node)
{
	return (struct endpoint){
	    .address = {127, 0, 0, (uint8_t)(node + 1)}, .size = 4, .port = 7000};
}

static struct peer *
peer_of(struct node *node, int other)
{
	struct endpoint endpoint = endpoint_of(other);

	return peers_get(node->peers, &endpoint);
}

/* ---- The environment ------------------------------------------------------------------------ */

static size_t
world_submit(struct cluster_env *env, enum cluster_stage stage, struct task *first, size_t count,
    struct worker *worker, struct task **rest)
{
	struct node *node = (struct node *)env;
	size_t taken = 0;

	(void)worker;
	while (taken < count && taken < node->room) {
		struct task *task = first;

		first = task->next;
		task->next = NULL;
		if (node->last[stage] != NULL)
			node->last[stage]->next = task;
		else
			node->queue[stage] = task;
		node->last[stage] = task;
		taken++;
	}
	*rest = first;
	return taken;
}

static void
world_timer_start(struct cluster_env *env, struct cluster_timer *timer, uint64_t delay_ns)
{
	struct world *world = ((struct node *)env)->world;

	timer_wheel_start(&world->wheel, &timer->wheel, env_monotonic_ns(env->env) + delay_ns);
}

static bool
world_timer_stop(struct cluster_env *env, struct cluster_timer *timer)
{
	return timer_wheel_stop(&((struct node *)env)->world->wheel, &timer->wheel);
}

static void
world_send(struct cluster_env *env, struct peer *to, struct message *message, struct worker *worker)
{
	struct node *node = (struct node *)env;
	struct packet *packet = xzalloc(sizeof(*packet));
	struct packet **link = &node->world->wire;
	struct endpoint self = peers_local(node->peers)->endpoint;

	(void)worker;
	ck_assert(!to->is_local);
	packet->from = self.address[3] - 1;
	packet->to = to->endpoint.address[3] - 1;
	buffer_init(&packet->bytes);
	message_encode(message, &self, env_monotonic_ns(env->env), &packet->bytes);
	message_unref(message);
	while (*link != NULL)
		link = &(*link)->next;
	*link = packet;
}

static struct world *
world_new(void)
{
	struct world *world = xzalloc(sizeof(*world));

	world->sim = env_sim_new(1);
	timer_wheel_init(&world->wheel, 256, MS, env_monotonic_ns(env_sim_env(world->sim)));
	for (int i = 0; i < NODES; i++) {
		struct node *node = &world->nodes[i];
		struct endpoint local = endpoint_of(i);

		node->world = world;
		node->room = SIZE_MAX;
		node->env = (struct cluster_env){.env = env_sim_env(world->sim),
		    .submit = world_submit,
		    .timer_start = world_timer_start,
		    .timer_stop = world_timer_stop,
		    .send = world_send};
		node->peers = peers_new(&local);
		for (int other = 0; other < NODES; other++)
			(void)peer_of(node, other);
		node->messaging = messaging_new(&node->env, node->peers);
	}
	return world;
}

static void
world_deliver(struct world *world)
{
	struct packet *packet = world->wire;
	struct node *to = &world->nodes[packet->to];
	struct message *message;
	struct error err;

	world->wire = packet->next;
	/* What could not be encoded, or is not understood for want of memory, is lost. */
	if (!world->loses && !packet->bytes.is_failed) {
		if (message_decode(buffer_slice(&packet->bytes), peer_of(to, packet->from),
			env_monotonic_ns(to->env.env), &message, &err) == 0)
			messaging_receive(to->messaging, message, NULL);
		else
			ck_assert_msg(err.code == ERROR_NO_MEMORY, "%s", err.text);
	}
	buffer_fini(&packet->bytes);
	free(packet);
}

/* Deliver and run until nothing is left to do. */
static void
world_settle(struct world *world)
{
	bool is_busy = true;

	while (is_busy) {
		is_busy = false;
		while (world->wire != NULL) {
			world_deliver(world);
			is_busy = true;
		}
		for (int i = 0; i < NODES * CLUSTER_STAGE_COUNT; i++) {
			struct node *node = &world->nodes[i / CLUSTER_STAGE_COUNT];
			int stage = i % CLUSTER_STAGE_COUNT;
			struct task *task = node->queue[stage];
			uint64_t now = env_monotonic_ns(node->env.env);

			if (task == NULL)
				continue;
			is_busy = true;
			node->queue[stage] = task->next;
			if (task->next == NULL)
				node->last[stage] = NULL;
			world->now_running = stage;
			if (task->deadline_ns != 0 && now > task->deadline_ns)
				task->drop(task, NULL);
			else
				task->run(task, NULL);
		}
	}
}

static void
world_advance(struct world *world, uint64_t ns)
{
	uint64_t end = env_monotonic_ns(env_sim_env(world->sim)) + ns;
	uint64_t now;

	while ((now = env_monotonic_ns(env_sim_env(world->sim))) < end) {
		struct wheel_timer *due, *next;

		env_sim_advance(world->sim, end - now < MS ? end - now : MS);
		now = env_monotonic_ns(env_sim_env(world->sim));
		for (due = timer_wheel_advance(&world->wheel, now); due != NULL; due = next) {
			next = due->next;
			((struct cluster_timer *)due)->fire((struct cluster_timer *)due);
		}
	}
}

static void
world_free(struct world *world)
{
	world_settle(world);
	for (int i = 0; i < NODES; i++) {
		message_unref(world->nodes[i].kept);
		messaging_free(world->nodes[i].messaging);
		peers_free(world->nodes[i].peers);
	}
	timer_wheel_fini(&world->wheel);
	env_sim_free(world->sim);
	free(world);
}

/* ---- Handlers and callbacks ------------------------------------------------------------------ */

static void
handle_echo(void *context, struct message *message, struct worker *worker)
{
	struct node *node = context;

	node->handled++;
	node->handled_on = (enum cluster_stage)node->world->now_running;
	messaging_respond(node->messaging, message, message_payload_slice(message), worker);
}

static void
look_ahead(void *context, struct message *const *messages, size_t count)
{
	struct node *node = context;

	for (size_t i = 0; i < count; i++)
		strncat(node->ahead, (const char *)messages[i]->payload->data, 1);
	strcat(node->ahead, ";");
}

static void
handle_refuse(void *context, struct message *message, struct worker *worker)
{
	struct node *node = context;

	node->handled++;
	messaging_respond_failure(
	    node->messaging, message, FAILURE_READ_TOO_MANY_TOMBSTONES, worker);
}

static void
handle_keep(void *context, struct message *message, struct worker *worker)
{
	struct node *node = context;

	(void)worker;
	node->handled++;
	message_ref(message);
	node->kept = message;
}

struct waiter {
	struct message_callback callback; /* first */
	int answers;
	bool has_answer;
	enum failure_reason reason;
	char text[32];
};

static void
waiter_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct waiter *waiter = (struct waiter *)callback;

	(void)worker;
	waiter->answers++;
	waiter->has_answer = answer != NULL;
	waiter->reason = reason;
	if (answer != NULL)
		snprintf(waiter->text, sizeof(waiter->text), "%.*s",
		    (int)message_payload_slice(answer).size, message_payload_slice(answer).data);
}

static void
ask(struct node *node, int other, uint8_t verb, const char *text, struct waiter *waiter)
{
	struct message *message = message_new(verb, message_payload_new(slice_of_string(text)));

	*waiter = (struct waiter){.callback = {.on_answer = waiter_answer}};
	messaging_request(
	    node->messaging, peer_of(node, other), message, TIMEOUT, &waiter->callback, NULL);
}

static struct messaging_verb_stats
stats_of(const struct node *node, uint8_t verb)
{
	struct messaging_verb_stats stats;

	messaging_verb_stats(node->messaging, verb, &stats);
	return stats;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

START_TEST(test_request_is_answered)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiter;

	messaging_handle(b->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_echo, b);
	ask(a, 1, VERB_MUTATION_REQ, "hello", &waiter);
	ck_assert_uint_eq(messaging_waiting(a->messaging), 1);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert(waiter.has_answer);
	ck_assert_str_eq(waiter.text, "hello");
	ck_assert_int_eq(b->handled_on, CLUSTER_STAGE_MUTATION);
	ck_assert_uint_eq(messaging_waiting(a->messaging), 0);
	ck_assert_uint_eq(stats_of(a, VERB_MUTATION_REQ).sent, 1);
	ck_assert_uint_eq(stats_of(b, VERB_MUTATION_REQ).received, 1);
	ck_assert_uint_eq(stats_of(a, VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET).received, 1);
	world_advance(world, 2 * (uint64_t)TIMEOUT);
	ck_assert_int_eq(waiter.answers, 1);
	world_free(world);
}
END_TEST

START_TEST(test_request_to_this_node_itself)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0];
	struct waiter waiter;

	messaging_handle(a->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_echo, a);
	ask(a, 0, VERB_READ_REQ, "self", &waiter);
	ck_assert_ptr_null(world->wire);
	ck_assert_int_eq(waiter.answers, 0);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert_str_eq(waiter.text, "self");
	world_free(world);
}
END_TEST

START_TEST(test_failure_tells_why)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiter, here;

	messaging_handle(b->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_refuse, b);
	messaging_handle(a->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_refuse, a);
	ask(a, 1, VERB_READ_REQ, "x", &waiter);
	ask(a, 0, VERB_READ_REQ, "x", &here);
	world_settle(world);
	ck_assert(!waiter.has_answer && !here.has_answer);
	ck_assert_int_eq(waiter.reason, FAILURE_READ_TOO_MANY_TOMBSTONES);
	ck_assert_int_eq(here.reason, FAILURE_READ_TOO_MANY_TOMBSTONES);
	world_free(world);
}
END_TEST

START_TEST(test_verb_that_nobody_handles_fails_and_is_counted)
{
	struct world *world = world_new();
	struct waiter waiter;

	ask(&world->nodes[0], 1, 57, "?", &waiter);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert(!waiter.has_answer);
	ck_assert_int_eq(waiter.reason, FAILURE_UNKNOWN);
	ck_assert_uint_eq(stats_of(&world->nodes[1], 57).unhandled, 1);
	world_free(world);
}
END_TEST

START_TEST(test_no_answer_is_a_timeout_and_a_late_one_is_nobodys)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiter;

	messaging_handle(b->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_keep, b);
	ask(a, 1, VERB_MUTATION_REQ, "x", &waiter);
	world_settle(world);
	world_advance(world, TIMEOUT - MS);
	ck_assert_int_eq(waiter.answers, 0);
	world_advance(world, 50 * MS);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert(!waiter.has_answer);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
	ck_assert_uint_eq(stats_of(a, VERB_MUTATION_REQ).expired, 1);
	messaging_respond(b->messaging, b->kept, slice_of_string("late"), NULL);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert_uint_eq(stats_of(a, VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET).late, 1);
	world_free(world);
}
END_TEST

START_TEST(test_expired_request_is_dropped_and_counted)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiter, own;

	messaging_handle(b->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_echo, b);
	messaging_handle(a->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_echo, a);
	ask(a, 1, VERB_MUTATION_REQ, "x", &waiter);
	ask(a, 0, VERB_MUTATION_REQ, "x", &own);
	while (world->wire != NULL)
		world_deliver(world); /* to the stage, which does not come to it in time */
	world_advance(world, TIMEOUT + 50 * MS);
	world_settle(world);
	ck_assert_int_eq(a->handled + b->handled, 0);
	ck_assert_uint_eq(stats_of(b, VERB_MUTATION_REQ).dropped_cross_node, 1);
	ck_assert_uint_eq(stats_of(a, VERB_MUTATION_REQ).dropped_internal, 1);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
	ck_assert_int_eq(own.answers, 1);
	world_free(world);
}
END_TEST

START_TEST(test_requests_of_a_run_are_told_before_they_run)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiters[5];
	struct task *first;

	messaging_handle(b->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_echo, b);
	messaging_handle(b->messaging, VERB_RANGE_REQ, CLUSTER_STAGE_READ, handle_echo, b);
	messaging_look_ahead(b->messaging, VERB_READ_REQ, look_ahead);
	ask(a, 1, VERB_READ_REQ, "a", &waiters[0]);
	ask(a, 1, VERB_RANGE_REQ, "b", &waiters[1]);
	for (int i = 2; i < 5; i++)
		ask(a, 1, VERB_READ_REQ, i == 2 ? "c" : i == 3 ? "d" : "e", &waiters[i]);
	while (world->wire != NULL)
		world_deliver(world);
	first = b->queue[CLUSTER_STAGE_READ];
	ck_assert_ptr_null(first->next->ahead);
	first->ahead(first, 4);
	ck_assert_str_eq(b->ahead, "acd;");
	ck_assert_int_eq(b->handled, 0);
	world_settle(world);
	for (int i = 0; i < 5; i++)
		ck_assert(waiters[i].has_answer);
	world_free(world);
}
END_TEST

START_TEST(test_full_stage_drops)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiters[4];
	struct message *first = NULL, *last = NULL;
	struct error err;

	messaging_handle(b->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_echo, b);
	b->room = 3;
	for (int i = 0; i < 4; i++)
		ask(a, 1, VERB_MUTATION_REQ, "x", &waiters[i]);
	/* As one read hands them over: in one list. */
	while (world->wire != NULL) {
		struct packet *packet = world->wire;
		struct message *message;

		world->wire = packet->next;
		ck_assert_int_eq(message_decode(buffer_slice(&packet->bytes), peer_of(b, 0),
				     env_monotonic_ns(b->env.env), &message, &err),
		    0);
		if (last != NULL)
			last->next = message;
		else
			first = message;
		last = message;
		buffer_fini(&packet->bytes);
		free(packet);
	}
	messaging_receive(b->messaging, first, NULL);
	world_settle(world);
	ck_assert_int_eq(b->handled, 3);
	ck_assert_uint_eq(stats_of(b, VERB_MUTATION_REQ).dropped_cross_node, 1);
	ck_assert_int_eq(waiters[2].answers, 1);
	ck_assert_int_eq(waiters[3].answers, 0);
	world_advance(world, TIMEOUT + 50 * MS);
	ck_assert_int_eq(waiters[3].answers, 1);
	world_free(world);
}
END_TEST

START_TEST(test_undelivered_fails_at_once)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0];
	struct message *message = message_new(VERB_MUTATION_REQ, NULL);
	struct waiter waiter, forwarded = {.callback = {.on_answer = waiter_answer}};

	world->loses = true;
	waiter = (struct waiter){.callback = {.on_answer = waiter_answer}};
	ck_assert_int_eq(message_forwards_alloc(message, 1), 0);
	message->forwards[0] =
	    (struct message_forward){endpoint_of(2), messaging_next_id(a->messaging)};
	messaging_expect(a->messaging, peer_of(a, 2), VERB_MUTATION_REQ, message->forwards[0].id,
	    env_monotonic_ns(a->env.env), TIMEOUT, &forwarded.callback);
	message_ref(message);
	messaging_request(a->messaging, peer_of(a, 1), message, TIMEOUT, &waiter.callback, NULL);
	messaging_undelivered(a->messaging, peer_of(a, 1), message, NULL);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
	/* The one that it was to be forwarded to may be reached otherwise. */
	ck_assert_int_eq(forwarded.answers, 0);
	ck_assert_uint_eq(messaging_waiting(a->messaging), 1);
	world_advance(world, TIMEOUT + 50 * MS);
	ck_assert_int_eq(forwarded.answers, 1);
	message_unref(message);
	world_free(world);
}
END_TEST

START_TEST(test_the_impatient_may_wait_on)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0];
	struct waiter waiter = {.callback = {.on_answer = waiter_answer}};

	world->loses = true;
	messaging_request_impatiently(a->messaging, peer_of(a, 1),
	    message_new(VERB_MUTATION_REQ, NULL), env_monotonic_ns(a->env.env), TIMEOUT,
	    TIMEOUT / 2, &waiter.callback, NULL);
	world_advance(world, TIMEOUT / 2 + 50 * MS);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
	messaging_expect(a->messaging, peer_of(a, 1), VERB_MUTATION_REQ, waiter.callback.id,
	    env_monotonic_ns(a->env.env), TIMEOUT / 4, &waiter.callback);
	ck_assert_uint_eq(messaging_waiting(a->messaging), 1);
	world_advance(world, TIMEOUT / 4 + 50 * MS);
	ck_assert_int_eq(waiter.answers, 2);
	ck_assert_uint_eq(messaging_waiting(a->messaging), 0);
	world_free(world);
}
END_TEST

/* Node 0 asks node 1, which sends it on to node 2, whose answer goes straight to node 0. */
static void
handle_forward(void *context, struct message *message, struct worker *worker)
{
	struct node *node = context;

	for (uint16_t i = 0; i < message->forward_count; i++) {
		struct message *copy = message_new(message->verb, message->payload);

		message_payload_ref(message->payload);
		copy->id = message->forwards[i].id;
		copy->from = message->from;
		copy->flags = message->flags;
		messaging_send(node->messaging, peers_get(node->peers, &message->forwards[i].to),
		    copy, TIMEOUT, worker);
	}
	handle_echo(context, message, worker);
}

START_TEST(test_forwarded_request_is_answered_to_its_origin)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0];
	struct message *message =
	    message_new(VERB_MUTATION_REQ, message_payload_new(slice_of_string("far")));
	struct waiter near = {.callback = {.on_answer = waiter_answer}}, far = near;

	for (int i = 1; i < NODES; i++)
		messaging_handle(world->nodes[i].messaging, VERB_MUTATION_REQ,
		    CLUSTER_STAGE_MUTATION, handle_forward, &world->nodes[i]);
	ck_assert_int_eq(message_forwards_alloc(message, 1), 0);
	message->forwards[0] =
	    (struct message_forward){endpoint_of(2), messaging_next_id(a->messaging)};
	messaging_expect(a->messaging, peer_of(a, 2), VERB_MUTATION_REQ, message->forwards[0].id,
	    env_monotonic_ns(a->env.env), TIMEOUT, &far.callback);
	messaging_request(a->messaging, peer_of(a, 1), message, TIMEOUT, &near.callback, NULL);
	world_settle(world);
	ck_assert(near.has_answer && far.has_answer);
	ck_assert_str_eq(far.text, "far");
	ck_assert_int_eq(world->nodes[2].handled, 1);
	world_free(world);
}
END_TEST

START_TEST(test_answer_of_another_node_is_not_taken)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1], *c = &world->nodes[2];
	struct message *forged = message_new(VERB_MUTATION_REQ + VERB_RESPONSE_OFFSET, NULL);
	struct waiter waiter;

	messaging_handle(b->messaging, VERB_MUTATION_REQ, CLUSTER_STAGE_MUTATION, handle_keep, b);
	ask(a, 1, VERB_MUTATION_REQ, "x", &waiter);
	world_settle(world);
	forged->id = waiter.callback.id;
	messaging_send(c->messaging, peer_of(c, 0), forged, 0, NULL);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 0);
	messaging_respond(b->messaging, b->kept, slice_empty, NULL);
	world_settle(world);
	ck_assert_int_eq(waiter.answers, 1);
	world_free(world);
}
END_TEST

START_TEST(test_many_callbacks_each_hear_once)
{
	enum { COUNT = 20000 };
	static struct waiter waiters[COUNT];
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	int answers = 0, timeouts = 0;

	messaging_handle(b->messaging, VERB_READ_REQ, CLUSTER_STAGE_IMMEDIATE, handle_echo, b);
	for (int i = 0; i < COUNT; i++) {
		ask(a, 1, VERB_READ_REQ, "x", &waiters[i]);
		world->loses = i % 3 == 0;
		world_deliver(world);
		if (world->wire != NULL)
			world_deliver(world);
		if (i % 100 == 0)
			world_advance(world, 3 * MS);
	}
	ck_assert_uint_eq(messaging_waiting(a->messaging), (COUNT + 2) / 3);
	world_advance(world, TIMEOUT + 50 * MS);
	for (int i = 0; i < COUNT; i++) {
		ck_assert_int_eq(waiters[i].answers, 1);
		answers += waiters[i].has_answer;
		timeouts += waiters[i].reason == FAILURE_TIMEOUT;
	}
	ck_assert_int_eq(answers + timeouts, COUNT);
	ck_assert_int_eq(timeouts, (COUNT + 2) / 3);
	world_free(world);
}
END_TEST

START_TEST(test_end_fails_who_waits)
{
	struct world *world = world_new();
	struct waiter waiter;

	world->loses = true;
	ask(&world->nodes[0], 1, VERB_READ_REQ, "x", &waiter);
	world_free(world);
	ck_assert_int_eq(waiter.answers, 1);
	ck_assert_int_eq(waiter.reason, FAILURE_TIMEOUT);
}
END_TEST

/* Whatever is lost for want of memory, who asked hears once, and afterwards all is as it was. */
START_TEST(test_without_memory_each_hears_once)
{
	struct world *world = world_new();
	struct node *a = &world->nodes[0], *b = &world->nodes[1];
	struct waiter waiter;
	bool has_failed = true;

	messaging_handle(a->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_echo, a);
	messaging_handle(b->messaging, VERB_READ_REQ, CLUSTER_STAGE_READ, handle_echo, b);
	messaging_handle(b->messaging, VERB_RANGE_REQ, CLUSTER_STAGE_READ, handle_refuse, b);
	for (uint64_t n = 1; has_failed; n++) {
		struct message *message = message_new(_i == 2 ? VERB_RANGE_REQ : VERB_READ_REQ,
		    message_payload_new(slice_of_string("hello")));

		waiter = (struct waiter){.callback = {.on_answer = waiter_answer}};
		allocation_fail(n, n % 2 == 0);
		messaging_request(a->messaging, peer_of(a, _i == 0 ? 0 : 1), message, TIMEOUT,
		    &waiter.callback, NULL);
		world_settle(world);
		has_failed = allocation_has_failed();
		world_advance(world, 2 * (uint64_t)TIMEOUT);
		ck_assert_int_eq(waiter.answers, 1);
		ck_assert(has_failed || waiter.has_answer == (_i != 2));
		ck_assert_uint_eq(messaging_waiting(a->messaging), 0);
	}
	world_free(world);
}
END_TEST

START_TEST(test_ping_is_answered)
{
	struct world *world = world_new();
	struct waiter waiter;

	ask(&world->nodes[0], 1, VERB_PING_REQ, "", &waiter);
	world_settle(world);
	ck_assert(waiter.has_answer);
	world_free(world);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("messaging");
	TCase *tcase = tcase_create("messaging");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_request_is_answered);
	tcase_add_test(tcase, test_request_to_this_node_itself);
	tcase_add_test(tcase, test_failure_tells_why);
	tcase_add_test(tcase, test_verb_that_nobody_handles_fails_and_is_counted);
	tcase_add_test(tcase, test_no_answer_is_a_timeout_and_a_late_one_is_nobodys);
	tcase_add_test(tcase, test_expired_request_is_dropped_and_counted);
	tcase_add_test(tcase, test_requests_of_a_run_are_told_before_they_run);
	tcase_add_test(tcase, test_full_stage_drops);
	tcase_add_test(tcase, test_undelivered_fails_at_once);
	tcase_add_test(tcase, test_the_impatient_may_wait_on);
	tcase_add_test(tcase, test_forwarded_request_is_answered_to_its_origin);
	tcase_add_test(tcase, test_answer_of_another_node_is_not_taken);
	tcase_add_test(tcase, test_many_callbacks_each_hear_once);
	tcase_add_test(tcase, test_end_fails_who_waits);
	tcase_add_loop_test(tcase, test_without_memory_each_hears_once, 0, 3);
	tcase_add_test(tcase, test_ping_is_answered);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
