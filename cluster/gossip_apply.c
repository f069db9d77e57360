/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of news about a node (Gossiper.applyStateLocally). The rules:
 *
 *   1. Nothing about this node itself, and nothing about a node in quarantine (unless of a later life), is believed.
 *   2. A generation more than a year ahead of our clock is not believed.
 *   3. A newer generation replaces all that was known (the node restarted).
 *   4. With the same generation, what has a newer version replaces what is there. Older generations are passed over.
 *   5. A newer heartbeat or generation is a sign of life: the failure detector hears of it.
 *   6. A node with news that is not live is asked for an ECHO, and is live once it answered: who reaches us only by
 *      way of others is of no use.
 *   7. LEFT and removed take it out of the ring; shutdown makes it dead until its next generation.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

/* Small news that would only keep the ring busy if everybody passed it on at once. */
#define GOSSIP_SLOW_STATES                                                                         \
	(application_state_bit(STATE_LOAD) | application_state_bit(STATE_SEVERITY) |               \
	    application_state_bit(STATE_DISK_USAGE))

/* ---- Noted under the lock, done after it ---- */

void
gossip_event_locked(
    struct gossip *gossip, enum gossip_event_kind kind, struct peer *peer, uint32_t changed)
{
	if (gossip->event_count == gossip->event_capacity) {
		gossip->event_capacity =
		    gossip->event_capacity == 0 ? 16 : gossip->event_capacity * 2;
		gossip->events =
		    xrealloc(gossip->events, gossip->event_capacity * sizeof(*gossip->events));
	}
	gossip->events[gossip->event_count++] = (struct gossip_event){kind, changed, peer};
}

void
gossip_outgoing_locked(
    struct gossip *gossip, struct peer *to, enum verb verb, struct message_payload *payload)
{
	if (payload == NULL)
		return; /* no memory: as lost on the way */
	if (to->is_local) {
		message_payload_unref(payload);
		return;
	}
	if (gossip->outgoing_count == gossip->outgoing_capacity) {
		gossip->outgoing_capacity =
		    gossip->outgoing_capacity == 0 ? 8 : gossip->outgoing_capacity * 2;
		gossip->outgoing = xrealloc(
		    gossip->outgoing, gossip->outgoing_capacity * sizeof(*gossip->outgoing));
	}
	gossip->outgoing[gossip->outgoing_count++] = (struct gossip_outgoing){to, verb, payload};
	gossip->stats.bytes_sent += payload->size;
}

void
gossip_flush_outgoing(struct gossip *gossip, struct worker *worker)
{
	struct gossip_outgoing *outgoing;
	uint32_t count;

	lock_take(&gossip->lock);
	outgoing = gossip->outgoing;
	count = gossip->outgoing_count;
	gossip->outgoing = NULL;
	gossip->outgoing_count = gossip->outgoing_capacity = 0;
	lock_drop(&gossip->lock);
	for (uint32_t i = 0; i < count; i++) {
		struct message *message = message_new(outgoing[i].verb, outgoing[i].payload);

		if (message != NULL)
			messaging_send(
			    gossip->messaging, outgoing[i].to, message, GOSSIP_EXPIRES_NS, worker);
	}
	free(outgoing);
}

/* ---- ECHO ---- */

/* It answered: it is live, if nothing else was heard of it meanwhile. */
static void
gossip_mark_alive_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	enum node_status_kind status = (enum node_status_kind)endpoint->status;

	if (!gossip->is_running || endpoint->list == GOSSIP_LIVE || endpoint->is_removed ||
	    status == NODE_STATUS_SHUTDOWN || node_status_is_dead(status))
		return;
	gossip_list_locked(gossip, endpoint, GOSSIP_LIVE);
	gossip_slot_locked(gossip, endpoint->peer)->refused_ns = 0;
	endpoint->updated_ns = gossip_now_ns(gossip);
	/* Who is live has a window: without one nobody is ever convicted. */
	if (failure_detector_last(gossip->detector, endpoint->peer) == 0)
		failure_detector_report(gossip->detector, endpoint->peer, endpoint->updated_ns);
	gossip_event_locked(gossip, GOSSIP_EVENT_ALIVE, endpoint->peer, 0);
}

static void
gossip_echo_unlink_locked(struct gossip *gossip, struct gossip_echo *echo)
{
	if (echo->previous != NULL)
		echo->previous->next = echo->next;
	else
		gossip->echoes = echo->next;
	if (echo->next != NULL)
		echo->next->previous = echo->previous;
}

/* Who serves clients next must not take a node for dead because one message was lost or late. */
static bool
gossip_may_be_alive_locked(
    const struct gossip *gossip, struct gossip_endpoint *endpoint, const struct gossip_echo *echo)
{
	return gossip->settling.waits != NULL && echo->is_late && endpoint->list != GOSSIP_LIVE &&
	    endpoint->late_echoes++ < GOSSIP_LATE_ECHOES_MAX;
}

static void
gossip_echo_finish(struct gossip_echo *echo)
{
	struct gossip *gossip = echo->gossip;
	struct gossip_endpoint *endpoint;

	lock_take(&gossip->lock);
	gossip_echo_unlink_locked(gossip, echo);
	endpoint = gossip_find_locked(gossip, echo->peer);
	if (endpoint != NULL) {
		endpoint->has_echo = false;
		if (echo->is_answered && endpoint->generation == echo->generation)
			gossip_mark_alive_locked(gossip, endpoint);
		else if (echo->is_answered || gossip_may_be_alive_locked(gossip, endpoint, echo))
			gossip_ask_echo_locked(gossip, endpoint);
	}
	lock_drop(&gossip->lock);
	free(echo);
}

static void
gossip_echo_run(struct task *task, struct worker *worker)
{
	struct gossip_echo *echo =
	    (struct gossip_echo *)((char *)task - offsetof(struct gossip_echo, task));
	struct gossip *gossip = echo->gossip;

	gossip_echo_finish(echo);
	gossip_flush(gossip, worker);
}

static void
gossip_echo_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct gossip_echo *echo = (struct gossip_echo *)callback;

	(void)worker;
	echo->is_answered = answer != NULL;
	echo->is_late = answer == NULL && reason == FAILURE_TIMEOUT;
	echo->task.run = gossip_echo_run;
	if (!cluster_submit(echo->gossip->cluster, CLUSTER_STAGE_GOSSIP, &echo->task)) {
		/* As if it had not come: the next news of the node asks again. */
		echo->is_answered = false;
		gossip_echo_finish(echo);
	}
}

static void
gossip_send_echo(struct gossip *gossip, struct peer *peer, struct worker *worker)
{
	struct message *message = message_new(VERB_ECHO_REQ, NULL);
	struct gossip_echo *echo = xzalloc(sizeof(*echo));
	struct gossip_endpoint *endpoint;

	echo->callback.on_answer = gossip_echo_answer;
	echo->gossip = gossip;
	echo->peer = peer;
	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint == NULL || message == NULL) {
		if (endpoint != NULL)
			endpoint->has_echo = false;
		lock_drop(&gossip->lock);
		message_unref(message);
		free(echo);
		return;
	}
	echo->generation = endpoint->generation;
	echo->next = gossip->echoes;
	if (echo->next != NULL)
		echo->next->previous = echo;
	gossip->echoes = echo;
	lock_drop(&gossip->lock);
	messaging_request(
	    gossip->messaging, peer, message, GOSSIP_ECHO_NS, &echo->callback, worker);
}

void
gossip_ask_echo_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	if (endpoint->has_echo || !gossip->is_running)
		return;
	endpoint->has_echo = true;
	gossip_event_locked(gossip, GOSSIP_EVENT_ECHO, endpoint->peer, 0);
}

/* ---- Telling ---- */

static void
gossip_log_event(const struct gossip_event *event)
{
	char text[ENDPOINT_TEXT_SIZE];

	endpoint_format(&event->peer->endpoint, text);
	switch (event->kind) {
	case GOSSIP_EVENT_JOIN:
		log_info("Node %s is now part of the cluster", text);
		break;
	case GOSSIP_EVENT_RESTART:
		log_info("Node %s has restarted", text);
		break;
	case GOSSIP_EVENT_ALIVE:
		log_info("%s is now UP", text);
		break;
	case GOSSIP_EVENT_DEAD:
		log_info("%s is now DOWN", text);
		break;
	case GOSSIP_EVENT_REMOVE:
		log_info("%s is out of the ring", text);
		break;
	case GOSSIP_EVENT_CHANGE:
	case GOSSIP_EVENT_ECHO:
		break;
	}
}

static void
gossip_tell(struct gossip *gossip, const struct gossip_event *event)
{
	gossip_log_event(event);
	for (struct gossip_subscriber *to = gossip->subscribers; to != NULL; to = to->next) {
		if (event->kind == GOSSIP_EVENT_JOIN && to->on_join != NULL)
			to->on_join(to, event->peer);
		if (event->kind == GOSSIP_EVENT_CHANGE && to->on_change != NULL)
			to->on_change(to, event->peer, event->changed);
		if (event->kind == GOSSIP_EVENT_ALIVE && to->on_alive != NULL)
			to->on_alive(to, event->peer);
		if (event->kind == GOSSIP_EVENT_DEAD && to->on_dead != NULL)
			to->on_dead(to, event->peer);
		if (event->kind == GOSSIP_EVENT_REMOVE && to->on_remove != NULL)
			to->on_remove(to, event->peer);
		if (event->kind == GOSSIP_EVENT_RESTART && to->on_restart != NULL)
			to->on_restart(to, event->peer);
	}
}

void
gossip_flush(struct gossip *gossip, struct worker *worker)
{
	bool has_rumors;

	/* A callback that changes something comes here again: what it noted is told after what goes on now. */
	if (gossip->is_flushing)
		return;
	gossip->is_flushing = true;
	for (;;) {
		struct gossip_event *events;
		uint32_t count;

		gossip_flush_outgoing(gossip, worker);
		lock_take(&gossip->lock);
		events = gossip->events;
		count = gossip->event_count;
		gossip->events = NULL;
		gossip->event_count = gossip->event_capacity = 0;
		has_rumors = gossip->rumor_count > 0 && gossip->rumor_budget > 0;
		lock_drop(&gossip->lock);
		if (count == 0)
			break;
		for (uint32_t i = 0; i < count; i++) {
			if (events[i].kind == GOSSIP_EVENT_ECHO)
				gossip_send_echo(gossip, events[i].peer, worker);
			else
				gossip_tell(gossip, &events[i]);
		}
		free(events);
	}
	gossip->is_flushing = false;
	if (has_rumors)
		gossip_timer_arm(&gossip->rumor, GOSSIP_RUMOR_DELAY_NS);
}

/* ---- Applying ---- */

void
gossip_mark_dead_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	if (endpoint->list == GOSSIP_LIVE)
		gossip_event_locked(gossip, GOSSIP_EVENT_DEAD, endpoint->peer, 0);
	if (!endpoint->is_removed)
		gossip_list_locked(gossip, endpoint, GOSSIP_UNREACHABLE);
}

void
gossip_remove_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	if (endpoint->is_removed)
		return;
	gossip_mark_dead_locked(gossip, endpoint);
	gossip_list_locked(gossip, endpoint, GOSSIP_NO_LIST);
	endpoint->is_removed = true;
	gossip_quarantine_locked(
	    gossip, endpoint->peer, INT32_MAX, 2 * gossip->options.ring_delay_ns);
	failure_detector_remove(gossip->detector, endpoint->peer);
	gossip_event_locked(gossip, GOSSIP_EVENT_REMOVE, endpoint->peer, 0);
}

void
gossip_mark_shutdown_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	failure_detector_remove(gossip->detector, endpoint->peer);
	gossip_mark_dead_locked(gossip, endpoint);
}

void
gossip_follow_status_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	enum node_status_kind status = (enum node_status_kind)endpoint->status;

	if (status == NODE_STATUS_LEFT || status == NODE_STATUS_REMOVED)
		gossip_remove_locked(gossip, endpoint);
	else if (status == NODE_STATUS_SHUTDOWN)
		gossip_mark_shutdown_locked(gossip, endpoint);
	else if (node_status_is_dead(status))
		gossip_mark_dead_locked(gossip, endpoint);
	else if (endpoint->list != GOSSIP_LIVE)
		gossip_ask_echo_locked(gossip, endpoint);
}

/* A new node, or a new life of it. */
static void
gossip_apply_generation(
    struct gossip *gossip, struct gossip_endpoint *endpoint, const struct gossip_delta *delta)
{
	if (endpoint->list != GOSSIP_LIVE)
		failure_detector_remove(gossip->detector, endpoint->peer);
	failure_detector_report(gossip->detector, endpoint->peer, gossip_now_ns(gossip));
	/* Not told as its death: what is on its way to it is for the new life already. */
	if (endpoint->generation != 0)
		gossip_event_locked(gossip, GOSSIP_EVENT_RESTART, endpoint->peer, 0);
	gossip_retire_locked(gossip, endpoint->values);
	endpoint->values = NULL;
	endpoint->generation = delta->generation;
	endpoint->heartbeat = delta->heartbeat;
	endpoint->version_max = delta->heartbeat;
	endpoint->status = NODE_STATUS_NONE;
	endpoint->expires_ms = 0;
	endpoint->is_removed = false;
	endpoint->updated_ns = gossip_now_ns(gossip);
	gossip_list_locked(gossip, endpoint, GOSSIP_UNREACHABLE);
	gossip_merge_locked(gossip, endpoint, delta->values, delta->count);
	gossip_event_locked(gossip, GOSSIP_EVENT_JOIN, endpoint->peer, 0);
	gossip_follow_status_locked(gossip, endpoint);
	gossip_rumor_locked(gossip, endpoint);
}

/* Newer versions of the same life. */
static bool
gossip_apply_versions(
    struct gossip *gossip, struct gossip_endpoint *endpoint, const struct gossip_delta *delta)
{
	int32_t version_max = endpoint->version_max;
	uint32_t changed;

	if (delta->heartbeat > endpoint->heartbeat) {
		endpoint->heartbeat = delta->heartbeat;
		failure_detector_report(gossip->detector, endpoint->peer, gossip_now_ns(gossip));
	}
	if (delta->heartbeat > endpoint->version_max)
		endpoint->version_max = delta->heartbeat;
	changed = gossip_merge_locked(gossip, endpoint, delta->values, delta->count);
	if (endpoint->version_max == version_max)
		return false;
	endpoint->updated_ns = gossip_now_ns(gossip);
	if (changed != 0)
		gossip_event_locked(gossip, GOSSIP_EVENT_CHANGE, endpoint->peer, changed);
	gossip_follow_status_locked(gossip, endpoint);
	if ((changed & ~GOSSIP_SLOW_STATES) == 0)
		return false;
	gossip_rumor_locked(gossip, endpoint);
	return true;
}

/* One line now and then: who sends nonsense sends it each second. */
static bool
gossip_may_complain(struct gossip *gossip)
{
	uint64_t now = gossip_now_ns(gossip);

	if (gossip->complained_ns != 0 && now - gossip->complained_ns < 10 * GOSSIP_S)
		return false;
	gossip->complained_ns = now;
	return true;
}

/* Rules 1 and 2. */
static bool
gossip_believes(struct gossip *gossip, struct peer *peer, const struct gossip_delta *delta)
{
	char text[ENDPOINT_TEXT_SIZE];

	if (peer->is_local || delta->generation == 0 ||
	    gossip_is_quarantined_locked(gossip, peer, delta->generation, gossip_now_ns(gossip)))
		return false;
	if (delta->generation > gossip_wall_ms(gossip) / 1000 + GOSSIP_GENERATION_AHEAD_MAX) {
		gossip->stats.refused_generations++;
		if (gossip_may_complain(gossip))
			log_warn(
			    "Generation %" PRId32
			    " of %s is more than a year ahead of this node's clock: not believed",
			    delta->generation, endpoint_format(&peer->endpoint, text));
		return false;
	}
	if (gossip_find_locked(gossip, peer) == NULL &&
	    gossip->order.count >= GOSSIP_ENDPOINTS_MAX) {
		if (gossip_may_complain(gossip))
			log_warn("%u nodes are known: %s is passed over", gossip->order.count,
			    endpoint_format(&peer->endpoint, text));
		return false;
	}
	return true;
}

bool
gossip_apply_locked(struct gossip *gossip, struct peer *peer, const struct gossip_delta *delta)
{
	struct gossip_endpoint *endpoint;

	gossip->stats.deltas_received++;
	if (!gossip_believes(gossip, peer, delta))
		return false;
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint == NULL)
		endpoint = gossip_add_locked(gossip, peer);
	else if (delta->generation < endpoint->generation)
		return false;
	if (delta->generation == endpoint->generation)
		return gossip_apply_versions(gossip, endpoint, delta);
	gossip_apply_generation(gossip, endpoint, delta);
	return true;
}
