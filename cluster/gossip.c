/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/gossip.h"

#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "cluster/gossip_internal.h"

void
gossip_options_init(struct gossip_options *options)
{
	*options = (struct gossip_options){
	    .interval_ns = GOSSIP_S,
	    .ring_delay_ns = 30 * GOSSIP_S,
	    .shadow_seed_ns = 2 * GOSSIP_S,
	    .message_size_max = 60 * 1024,
	    .detector =
		{
		    .phi_threshold = 8,
		    .interval_ns = GOSSIP_S,
		    .interval_max_ns = 2 * GOSSIP_S,
		    .pause_ns = 5 * GOSSIP_S,
		},
	};
}

/* ---- Timers ---- */

static void
gossip_timer_run(struct task *task, struct worker *worker)
{
	struct gossip_timer *timer =
	    (struct gossip_timer *)((char *)task - offsetof(struct gossip_timer, task));

	/* Before the work, which may arm it again. */
	atomic_store_explicit(&timer->is_armed, false, memory_order_release);
	timer->run(timer->gossip, worker);
}

static void
gossip_timer_fire(struct cluster_timer *cluster_timer)
{
	struct gossip_timer *timer = (struct gossip_timer *)cluster_timer;
	struct cluster_env *cluster = timer->gossip->cluster;

	timer->task.run = gossip_timer_run;
	/* A stage that is full now has room later; one that stops takes nothing any more, and nor do timers then. */
	if (!cluster_submit(cluster, CLUSTER_STAGE_GOSSIP, &timer->task))
		cluster_timer_start(cluster, &timer->timer, 50 * GOSSIP_MS);
}

void
gossip_timer_arm(struct gossip_timer *timer, uint64_t delay_ns)
{
	if (atomic_exchange_explicit(&timer->is_armed, true, memory_order_acq_rel))
		return;
	timer->timer.fire = gossip_timer_fire;
	cluster_timer_start(timer->gossip->cluster, &timer->timer, delay_ns);
}

static void
gossip_timer_init(struct gossip_timer *timer, struct gossip *gossip,
    void (*run)(struct gossip *gossip, struct worker *worker))
{
	timer->gossip = gossip;
	timer->run = run;
}

/* ---- Life ---- */

struct gossip *
gossip_new(struct cluster_env *env, struct messaging *messaging, struct peers *peers,
    const struct gossip_options *options)
{
	struct gossip *gossip = xzalloc(sizeof(*gossip));

	gossip->cluster = env;
	gossip->messaging = messaging;
	gossip->peers = peers;
	gossip->local = peers_local(peers);
	gossip->options = *options;
	gossip->options.cluster_name = xstrdup(options->cluster_name);
	gossip->options.partitioner = xstrdup(options->partitioner);
	gossip->options.seeds = NULL;
	lock_init(&gossip->lock, "gossip", RANK_GOSSIP);
	/* The generator must not stand at zero. */
	gossip->chance = env_random_u64(env->env) | 1;
	gossip->detector = failure_detector_new(&options->detector, gossip_now_ns(gossip));
	gossip_add_locked(gossip, gossip->local);
	gossip_timer_init(&gossip->round, gossip, gossip_round);
	gossip_timer_init(&gossip->rumor, gossip, gossip_push_rumors);
	gossip_timer_init(&gossip->start, gossip, gossip_start_timer);
	gossip_set_seeds(gossip, options->seeds, options->seed_count);
	gossip_handlers(gossip);
	return gossip;
}

void
gossip_free(struct gossip *gossip)
{
	if (gossip == NULL)
		return;
	cluster_timer_stop(gossip->cluster, &gossip->round.timer);
	cluster_timer_stop(gossip->cluster, &gossip->rumor.timer);
	cluster_timer_stop(gossip->cluster, &gossip->start.timer);
	while (gossip->echoes != NULL) {
		struct gossip_echo *echo = gossip->echoes;

		gossip->echoes = echo->next;
		free(echo);
	}
	for (uint32_t i = 0; i < gossip->outgoing_count; i++)
		message_payload_unref(gossip->outgoing[i].payload);
	free(gossip->outgoing);
	free(gossip->events);
	free(gossip->rumors);
	gossip_shadow_fini(gossip);
	gossip_state_fini(gossip);
	failure_detector_free(gossip->detector);
	free(gossip->seeds);
	free(gossip->seed_peers);
	free(gossip->seed_agrees);
	lock_fini(&gossip->lock);
	free((char *)gossip->options.cluster_name);
	free((char *)gossip->options.partitioner);
	free(gossip);
}

void
gossip_subscribe(struct gossip *gossip, struct gossip_subscriber *subscriber)
{
	struct gossip_subscriber **last = &gossip->subscribers;

	while (*last != NULL)
		last = &(*last)->next;
	subscriber->next = NULL;
	*last = subscriber;
}

bool
gossip_is_running(struct gossip *gossip)
{
	bool is_running;

	lock_take(&gossip->lock);
	is_running = gossip->is_running;
	lock_drop(&gossip->lock);
	return is_running;
}

/* ---- Seeds ---- */

void
gossip_set_seeds(struct gossip *gossip, const struct endpoint *seeds, uint32_t count)
{
	struct endpoint *copy = xcalloc(count + 1, sizeof(*copy));
	struct peer **found = xcalloc(count + 1, sizeof(struct peer *));
	bool *agrees = xcalloc(count + 1, sizeof(*agrees));
	uint32_t others = 0;
	bool is_seed = false;

	for (uint32_t i = 0; i < count; i++) {
		bool is_double = false;

		if (endpoint_equal(&seeds[i], &gossip->local->endpoint)) {
			is_seed = true;
			continue;
		}
		for (uint32_t j = 0; j < others; j++)
			is_double = is_double || endpoint_equal(&copy[j], &seeds[i]);
		if (is_double)
			continue;
		copy[others] = seeds[i];
		found[others++] = peers_get(gossip->peers, &seeds[i]);
	}
	lock_take(&gossip->lock);
	free(gossip->seeds);
	free(gossip->seed_peers);
	free(gossip->seed_agrees);
	gossip->seeds = copy;
	gossip->seed_peers = found;
	gossip->seed_agrees = agrees;
	gossip->seed_count = others;
	gossip->is_seed = is_seed;
	lock_drop(&gossip->lock);
}

uint32_t
gossip_seeds(struct gossip *gossip, struct endpoint **out)
{
	uint32_t count;

	lock_take(&gossip->lock);
	count = gossip->seed_count + gossip->is_seed;
	*out = xcalloc(count + 1, sizeof(**out));
	memcpy(*out, gossip->seeds, gossip->seed_count * sizeof(**out));
	if (gossip->is_seed)
		(*out)[count - 1] = gossip->local->endpoint;
	lock_drop(&gossip->lock);
	return count;
}

bool
gossip_is_seed(struct gossip *gossip, const struct endpoint *endpoint)
{
	bool is_seed;

	lock_take(&gossip->lock);
	is_seed = gossip->is_seed && endpoint_equal(endpoint, &gossip->local->endpoint);
	for (uint32_t i = 0; i < gossip->seed_count; i++)
		is_seed = is_seed || endpoint_equal(endpoint, &gossip->seeds[i]);
	lock_drop(&gossip->lock);
	return is_seed;
}

/* ---- Our own states ---- */

void
gossip_set(struct gossip *gossip, const struct gossip_change *changes, uint32_t count)
{
	struct gossip_delta_value values[STATE_COUNT];
	struct gossip_endpoint *self;
	uint32_t changed;

	assert(count <= STATE_COUNT);
	lock_take(&gossip->lock);
	for (uint32_t i = 0; i < count; i++)
		values[i] = (struct gossip_delta_value){
		    changes[i].state, ++gossip->version, changes[i].value};
	self = gossip_find_locked(gossip, gossip->local);
	changed = gossip_merge_locked(gossip, self, values, count);
	gossip_event_locked(gossip, GOSSIP_EVENT_CHANGE, gossip->local, changed);
	gossip_rumor_locked(gossip, self);
	lock_drop(&gossip->lock);
	/* Subscribers hear of it on the gossip stage, others by a push from there. */
	gossip_timer_arm(&gossip->rumor, 0);
}

void
gossip_set_status(struct gossip *gossip, const struct node_status *status, const int64_t *tokens,
    uint32_t token_count)
{
	struct gossip_change changes[3];
	struct buffer buffers[3];
	uint32_t count = 0;

	for (int i = 0; i < 3; i++)
		buffer_init(&buffers[i]);
	if (token_count > 0) {
		tokens_encode(tokens, token_count, &buffers[0]);
		changes[count++] = (struct gossip_change){STATE_TOKENS, buffer_slice(&buffers[0])};
	}
	node_status_format(status, true, &buffers[1]);
	node_status_format(status, false, &buffers[2]);
	changes[count++] =
	    (struct gossip_change){STATE_STATUS_WITH_PORT, buffer_slice(&buffers[1])};
	changes[count++] = (struct gossip_change){STATE_STATUS, buffer_slice(&buffers[2])};
	gossip_set(gossip, changes, count);
	for (int i = 0; i < 3; i++)
		buffer_fini(&buffers[i]);
}

/* ---- Looking ---- */

struct slice
gossip_value(const struct gossip *gossip, struct peer *peer, enum application_state state)
{
	/* The lock is no part of what the caller sees. */
	struct lock *lock = (struct lock *)&gossip->lock;
	const struct gossip_endpoint *endpoint;
	struct slice value = slice_null;

	lock_take(lock);
	endpoint = gossip_find_locked(gossip, peer);
	/* Stays after the lock is dropped: old blocks are freed at the start of a round. */
	if (endpoint != NULL)
		value = gossip_values_get(endpoint->values, state, NULL);
	lock_drop(lock);
	return value;
}

bool
gossip_copy_value(
    struct gossip *gossip, struct peer *peer, enum application_state state, struct buffer *out)
{
	const struct gossip_endpoint *endpoint;
	struct slice value = slice_null;

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL)
		value = gossip_values_get(endpoint->values, state, NULL);
	buffer_put_slice(out, value);
	lock_drop(&gossip->lock);
	return value.data != NULL;
}

struct node_status
gossip_status(struct gossip *gossip, struct peer *peer)
{
	const struct gossip_endpoint *endpoint;
	struct node_status status = {0};
	struct slice value = slice_null;

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL)
		value = gossip_values_get(endpoint->values, STATE_STATUS_WITH_PORT, NULL);
	if (endpoint != NULL && value.data == NULL)
		value = gossip_values_get(endpoint->values, STATE_STATUS, NULL);
	/* What is not understood was logged when it came. */
	node_status_parse(value, gossip->local->endpoint.port, &status, NULL);
	lock_drop(&gossip->lock);
	return status;
}

bool
gossip_knows(struct gossip *gossip, struct peer *peer, int32_t *generation, int32_t *heartbeat)
{
	const struct gossip_endpoint *endpoint;

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL && generation != NULL)
		*generation = endpoint->generation;
	if (endpoint != NULL && heartbeat != NULL)
		*heartbeat = endpoint->heartbeat;
	lock_drop(&gossip->lock);
	return endpoint != NULL;
}

uint32_t
gossip_live_count(struct gossip *gossip)
{
	uint32_t count;

	lock_take(&gossip->lock);
	count = gossip->live.count;
	lock_drop(&gossip->lock);
	return count;
}

uint32_t
gossip_unreachable_count(struct gossip *gossip)
{
	uint32_t count;

	lock_take(&gossip->lock);
	count = gossip->unreachable.count;
	lock_drop(&gossip->lock);
	return count;
}

uint64_t
gossip_downtime(struct gossip *gossip, struct peer *peer)
{
	const struct gossip_endpoint *endpoint;
	uint64_t downtime = 0;

	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint != NULL && endpoint->list == GOSSIP_UNREACHABLE)
		downtime = gossip_now_ns(gossip) - endpoint->down_ns;
	lock_drop(&gossip->lock);
	return downtime;
}

double
gossip_phi_threshold(struct gossip *gossip)
{
	double threshold;

	lock_take(&gossip->lock);
	threshold = failure_detector_threshold(gossip->detector);
	lock_drop(&gossip->lock);
	return threshold;
}

void
gossip_set_phi_threshold(struct gossip *gossip, double threshold)
{
	lock_take(&gossip->lock);
	failure_detector_set_threshold(gossip->detector, threshold);
	lock_drop(&gossip->lock);
}

void
gossip_stats(struct gossip *gossip, struct gossip_stats *out)
{
	lock_take(&gossip->lock);
	*out = gossip->stats;
	lock_drop(&gossip->lock);
}

void
gossip_refused(struct gossip *gossip, struct peer *peer)
{
	lock_take(&gossip->lock);
	if (gossip_find_locked(gossip, peer) != NULL)
		gossip->slots[peer->index].refused_ns = gossip_now_ns(gossip);
	lock_drop(&gossip->lock);
}
