/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node comes into gossip and leaves it: shadow round, start, settling, shutdown.
 */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

enum {
	SHADOW_PEERS_AT_ONCE = 8, /* saved peers that are asked when seeds are silent */
	SHADOW_PEERS_MAX = GOSSIP_ENDPOINTS_MAX, /* of an answer */
	SETTLE_LOOKS = 3,
	SETTLE_ASK_DOUBLINGS = 4,
};

#define SHADOW_DELAY_FIRST_NS (50 * GOSSIP_MS) /* doubles with each try */
#define SETTLE_STEP_NS (50 * GOSSIP_MS)
#define SETTLE_ASK_FIRST_NS                                                                        \
	(100 * GOSSIP_MS) /* seeds that have not agreed are asked again; doubles */
#define SETTLE_SLOW_NS (5 * GOSSIP_S) /* Cassandra's least wait */
#define SETTLE_LOOK_NS GOSSIP_S

int32_t
gossip_next_generation(int32_t saved, int64_t wall_us)
{
	int64_t now = wall_us / 1000000;

	if (now > INT32_MAX)
		now = INT32_MAX;
	return saved >= now ? saved + 1 : (int32_t)now;
}

void
gossip_add_saved(struct gossip *gossip, struct peer *peer, const struct uuid *host_id,
    const char *datacenter, const char *rack, const int64_t *tokens, uint32_t token_count)
{
	struct gossip_delta_value values[4];
	struct gossip_endpoint *endpoint;
	struct buffer encoded;
	char text[UUID_TEXT_SIZE];
	uint32_t count = 0;

	if (peer->is_local)
		return;
	buffer_init(&encoded);
	if (token_count > 0) {
		tokens_encode(tokens, token_count, &encoded);
		values[count++] =
		    (struct gossip_delta_value){STATE_TOKENS, 1, buffer_slice(&encoded)};
	}
	if (host_id != NULL) {
		uuid_format(host_id, text);
		values[count++] =
		    (struct gossip_delta_value){STATE_HOST_ID, 1, slice_of_string(text)};
	}
	if (datacenter != NULL)
		values[count++] =
		    (struct gossip_delta_value){STATE_DC, 1, slice_of_string(datacenter)};
	if (rack != NULL)
		values[count++] = (struct gossip_delta_value){STATE_RACK, 1, slice_of_string(rack)};
	lock_take(&gossip->lock);
	endpoint = gossip_find_locked(gossip, peer);
	if (endpoint == NULL) {
		endpoint = gossip_add_locked(gossip, peer);
		gossip_merge_locked(gossip, endpoint, values, count);
		gossip_list_locked(gossip, endpoint, GOSSIP_UNREACHABLE);
	}
	lock_drop(&gossip->lock);
	buffer_fini(&encoded);
}

/* ---- Shadow round ---- */

void
gossip_set_shadow_round(struct gossip *gossip, uint64_t ns)
{
	lock_take(&gossip->lock);
	gossip->options.shadow_round_ns = ns;
	lock_drop(&gossip->lock);
}

void
gossip_shadow_round(struct gossip *gossip, struct gossip_wait *wait)
{
	lock_take(&gossip->lock);
	gossip_shadow_fini(gossip);
	wait->gossip = gossip;
	gossip->shadow.wait = wait;
	gossip->shadow.is_active = true;
	gossip->shadow.began_ns = gossip_now_ns(gossip);
	lock_drop(&gossip->lock);
	gossip_timer_arm(&gossip->start, 0);
}

void
gossip_shadow_fini(struct gossip *gossip)
{
	struct gossip_shadow *shadow = &gossip->shadow;

	for (uint32_t i = 0; i < shadow->answer_count; i++) {
		if (shadow->answer[i] == NULL)
			continue;
		free(shadow->answer[i]->values);
		free(shadow->answer[i]);
	}
	free(shadow->answer);
	free(shadow->silent);
	memset(shadow, 0, sizeof(*shadow));
}

bool
gossip_shadow_has_answer(const struct gossip *gossip)
{
	return gossip->shadow.has_answer;
}

bool
gossip_shadow_knows(const struct gossip *gossip, struct peer *peer)
{
	return peer->index < gossip->shadow.answer_count &&
	    gossip->shadow.answer[peer->index] != NULL;
}

struct slice
gossip_shadow_value(const struct gossip *gossip, struct peer *peer, enum application_state state)
{
	if (!gossip_shadow_knows(gossip, peer))
		return slice_null;
	return gossip_values_get(gossip->shadow.answer[peer->index]->values, state, NULL);
}

static void
gossip_shadow_keep(
    struct gossip_shadow *shadow, struct peer *peer, const struct gossip_delta *delta)
{
	struct gossip_endpoint *endpoint;
	uint32_t changed = 0;

	if (peer->index >= shadow->answer_count) {
		uint32_t count = peer->index + 16 + peer->index / 2;

		shadow->answer = xrealloc(shadow->answer, count * sizeof(struct gossip_endpoint *));
		memset(shadow->answer + shadow->answer_count, 0,
		    (count - shadow->answer_count) * sizeof(struct gossip_endpoint *));
		shadow->answer_count = count;
	}
	if (shadow->answer[peer->index] != NULL)
		return; /* named twice */
	endpoint = xzalloc(sizeof(*endpoint));
	endpoint->peer = peer;
	endpoint->generation = delta->generation;
	endpoint->heartbeat = delta->heartbeat;
	endpoint->values = gossip_values_merge(
	    NULL, delta->values, delta->count, &changed, &endpoint->version_max);
	shadow->answer[peer->index] = endpoint;
}

/* Another seed that begins as we do. Once all are, the ring is new. */
static bool
gossip_shadow_count_silent(struct gossip *gossip, struct peer *from)
{
	struct gossip_shadow *shadow = &gossip->shadow;
	bool is_seed = false;

	for (uint32_t i = 0; i < shadow->silent_count; i++) {
		if (shadow->silent[i] == from)
			return false;
	}
	for (uint32_t i = 0; i < gossip->seed_count; i++)
		is_seed = is_seed || gossip->seed_peers[i] == from;
	if (!is_seed || !gossip->is_seed)
		return false;
	shadow->silent =
	    xrealloc(shadow->silent, (shadow->silent_count + 1) * sizeof(struct peer *));
	shadow->silent[shadow->silent_count++] = from;
	return shadow->silent_count >= gossip->seed_count;
}

void
gossip_shadow_ack(struct gossip *gossip, struct peer *from, struct gossip_message *ack)
{
	struct gossip_shadow *shadow = &gossip->shadow;
	struct gossip_delta delta;

	if (ack->flags & GOSSIP_IN_SHADOW) {
		lock_take(&gossip->lock);
		if (gossip_shadow_count_silent(gossip, from))
			shadow->is_over = true;
		lock_drop(&gossip->lock);
	} else if (ack->delta_count > 0) {
		for (uint32_t i = 0; i < ack->delta_count && i < SHADOW_PEERS_MAX; i++) {
			gossip_delta_next(&ack->deltas, &delta);
			gossip_shadow_keep(
			    shadow, peers_get(gossip->peers, &delta.endpoint), &delta);
		}
		shadow->has_answer = shadow->is_over = true;
	}
	if (shadow->is_over)
		gossip_shadow_finish(gossip, NULL);
}

void
gossip_shadow_finish(struct gossip *gossip, const struct error *err)
{
	struct gossip_wait *wait;

	lock_take(&gossip->lock);
	gossip->shadow.is_active = false;
	wait = gossip->shadow.wait;
	gossip->shadow.wait = NULL;
	lock_drop(&gossip->lock);
	if (wait != NULL)
		wait->on_done(wait, err);
}

static void
gossip_shadow_ask_locked(struct gossip *gossip, bool ask_saved)
{
	struct message_payload *syn;
	struct buffer buffer;

	buffer_init(&buffer);
	gossip_put_head(&buffer, 0);
	gossip_put_name(&buffer, gossip->options.cluster_name);
	gossip_put_name(&buffer, gossip->options.partitioner);
	gossip_list_end(&buffer, gossip_list_begin(&buffer), 0);
	syn = buffer.is_failed ? NULL : message_payload_new(buffer_slice(&buffer));
	buffer_fini(&buffer);
	for (uint32_t i = 0; syn != NULL && i < gossip->seed_count; i++) {
		message_payload_ref(syn);
		gossip_outgoing_locked(gossip, gossip->seed_peers[i], VERB_GOSSIP_DIGEST_SYN, syn);
	}
	for (uint32_t i = 0;
	     syn != NULL && ask_saved && i < SHADOW_PEERS_AT_ONCE && gossip->unreachable.count > 0;
	     i++) {
		uint32_t chosen = gossip_chance(gossip, gossip->unreachable.count);

		message_payload_ref(syn);
		gossip_outgoing_locked(
		    gossip, gossip->unreachable.at[chosen]->peer, VERB_GOSSIP_DIGEST_SYN, syn);
	}
	message_payload_unref(syn);
}

/* Ask, ask again, or give up. */
static void
gossip_shadow_step(struct gossip *gossip, struct worker *worker)
{
	struct gossip_shadow *shadow = &gossip->shadow;
	uint64_t limit = gossip->options.shadow_round_ns != 0 ? gossip->options.shadow_round_ns
							      : gossip->options.ring_delay_ns;
	uint64_t delay, waited;
	struct error err;
	bool is_seed, has_nobody;

	lock_take(&gossip->lock);
	is_seed = gossip->is_seed;
	has_nobody = gossip->seed_count == 0;
	waited = gossip_now_ns(gossip) - shadow->began_ns;
	if (is_seed && gossip->options.shadow_seed_ns < limit)
		limit = gossip->options.shadow_seed_ns;
	if (!has_nobody && waited < limit)
		gossip_shadow_ask_locked(gossip, waited > limit / 2);
	delay = shadow->tries < 5 ? SHADOW_DELAY_FIRST_NS << shadow->tries : GOSSIP_S;
	shadow->tries++;
	lock_drop(&gossip->lock);
	if (has_nobody && !is_seed) {
		error_set(&err, ERROR_CONFIG, "The seed provider lists no seeds.");
		gossip_shadow_finish(gossip, &err);
	} else if (has_nobody) {
		gossip_shadow_finish(gossip, NULL);
	} else if (waited >= limit && !is_seed) {
		error_set(&err, ERROR_SERVER, "Unable to gossip with any peers");
		gossip_shadow_finish(gossip, &err);
	} else if (waited >= limit) {
		log_warn("Unable to gossip with any peers but continuing startup since node is "
			 "in its own seed list");
		gossip_shadow_finish(gossip, NULL);
	} else {
		gossip_timer_arm(&gossip->start, delay);
		gossip_flush(gossip, worker);
	}
}

/* ---- Start ---- */

void
gossip_start(struct gossip *gossip, int32_t generation)
{
	struct gossip_endpoint *self;

	lock_take(&gossip->lock);
	self = gossip_find_locked(gossip, gossip->local);
	/* What others know of a life before this one must be older. */
	if (gossip_shadow_knows(gossip, gossip->local) &&
	    generation <= gossip->shadow.answer[gossip->local->index]->generation)
		generation = gossip->shadow.answer[gossip->local->index]->generation + 1;
	if (generation <= self->generation)
		generation = self->generation + 1;
	self->generation = generation;
	self->heartbeat = self->version_max = ++gossip->version;
	gossip->is_running = true;
	gossip->rumor_budget = GOSSIP_RUMORS_PER_ROUND;
	for (uint32_t i = 0; i < gossip->seed_count; i++)
		gossip->seed_agrees[i] = false;
	gossip_shadow_fini(gossip);
	gossip_syn_seeds_locked(gossip, false);
	lock_drop(&gossip->lock);
	gossip_timer_arm(&gossip->round, gossip->options.interval_ns);
	gossip_flush_outgoing(gossip, NULL);
}

/* ---- Settling ---- */

void
gossip_settle(struct gossip *gossip, struct gossip_wait *wait)
{
	lock_take(&gossip->lock);
	if (gossip->settling.waits == NULL)
		gossip->settling = (struct gossip_settling){
		    .began_ns = gossip_now_ns(gossip), .asked_ns = gossip_now_ns(gossip)};
	wait->gossip = gossip;
	wait->next = gossip->settling.waits;
	gossip->settling.waits = wait;
	lock_drop(&gossip->lock);
	gossip_timer_arm(&gossip->start, 0);
}

void
gossip_settle_seed_locked(struct gossip *gossip, const struct peer *peer, bool agrees)
{
	for (uint32_t i = 0; i < gossip->seed_count; i++) {
		if (gossip->seed_peers[i] == peer)
			gossip->seed_agrees[i] = agrees;
	}
}

/* Every seed agreed, and no verdict about a node is open. */
static bool
gossip_is_whole_locked(const struct gossip *gossip)
{
	if (gossip->seed_count == 0 && gossip->order.count > 1)
		return false;
	for (uint32_t i = 0; i < gossip->seed_count; i++) {
		if (!gossip->seed_agrees[i])
			return false;
	}
	for (uint32_t i = 0; i < gossip->unreachable.count; i++) {
		if (gossip->unreachable.at[i]->has_echo)
			return false;
	}
	return true;
}

/* Cassandra's way: after five seconds, nothing new in three looks a second apart. */
static bool
gossip_is_quiet_locked(struct gossip *gossip, uint64_t now)
{
	struct gossip_settling *settling = &gossip->settling;

	if (now - settling->began_ns < SETTLE_SLOW_NS || now - settling->looked_ns < SETTLE_LOOK_NS)
		return false;
	settling->looked_ns = now;
	if (settling->known == gossip->order.count && settling->live == gossip->live.count)
		settling->equal_looks++;
	else
		settling->equal_looks = 0;
	settling->known = gossip->order.count;
	settling->live = gossip->live.count;
	return settling->equal_looks >= SETTLE_LOOKS;
}

static void
gossip_settle_step(struct gossip *gossip, struct worker *worker)
{
	struct gossip_settling *settling = &gossip->settling;
	struct gossip_wait *waits = NULL;
	uint64_t now = gossip_now_ns(gossip);

	lock_take(&gossip->lock);
	if (!gossip->is_running || gossip_is_whole_locked(gossip) ||
	    gossip_is_quiet_locked(gossip, now)) {
		waits = settling->waits;
		settling->waits = NULL;
	} else if (now - settling->asked_ns >= SETTLE_ASK_FIRST_NS << settling->asked) {
		settling->asked_ns = now;
		/* Many that start together must not drown the seeds. */
		if (settling->asked < SETTLE_ASK_DOUBLINGS)
			settling->asked++;
		gossip_syn_seeds_locked(gossip, true);
	}
	lock_drop(&gossip->lock);
	if (waits == NULL)
		gossip_timer_arm(&gossip->start, SETTLE_STEP_NS);
	while (waits != NULL) {
		struct gossip_wait *wait = waits;

		waits = wait->next;
		wait->on_done(wait, NULL);
	}
	gossip_flush(gossip, worker);
}

void
gossip_start_timer(struct gossip *gossip, struct worker *worker)
{
	bool is_shadow, is_settling;

	lock_take(&gossip->lock);
	is_shadow = gossip->shadow.is_active;
	is_settling = gossip->settling.waits != NULL;
	lock_drop(&gossip->lock);
	if (is_shadow)
		gossip_shadow_step(gossip, worker);
	else if (is_settling)
		gossip_settle_step(gossip, worker);
	if (gossip_assassinate_step(gossip))
		gossip_timer_arm(&gossip->start, 5 * SETTLE_STEP_NS);
	gossip_flush(gossip, worker);
}

/* ---- Shutdown ---- */

/* The last word to each live peer; embedded callbacks, freed with the last answer. */
struct gossip_farewell {
	struct task task; /* first */
	struct gossip *gossip;
	struct gossip_wait *wait;
	atomic_uint pending;
	struct gossip_farewell_peer {
		struct message_callback callback; /* first */
		struct gossip_farewell *farewell;
	} peers[];
};

static void
gossip_farewell_run(struct task *task, struct worker *worker)
{
	struct gossip_farewell *farewell = (struct gossip_farewell *)task;
	struct gossip_wait *wait = farewell->wait;

	(void)worker;
	free(farewell);
	if (wait != NULL)
		wait->on_done(wait, NULL);
}

static void
gossip_farewell_count(struct gossip *gossip, struct gossip_farewell *farewell)
{
	if (atomic_fetch_sub_explicit(&farewell->pending, 1, memory_order_acq_rel) > 1)
		return;
	farewell->task.run = gossip_farewell_run;
	/* Who stops may have stopped the stage, too. */
	if (!cluster_submit(gossip->cluster, CLUSTER_STAGE_GOSSIP, &farewell->task))
		gossip_farewell_run(&farewell->task, NULL);
}

static void
gossip_farewell_answer(struct message_callback *callback, const struct message *answer,
    enum failure_reason reason, struct worker *worker)
{
	struct gossip_farewell_peer *peer = (struct gossip_farewell_peer *)callback;

	(void)answer;
	(void)reason;
	(void)worker;
	gossip_farewell_count(peer->farewell->gossip, peer->farewell);
}

/* Our own state becomes the one that others will keep of us. */
static struct message_payload *
gossip_last_state_locked(struct gossip *gossip)
{
	struct gossip_endpoint *self = gossip_find_locked(gossip, gossip->local);
	struct gossip_delta_value last[] = {
	    {STATE_RPC_READY, ++gossip->version, slice_of_string("false")},
	    {STATE_STATUS_WITH_PORT, ++gossip->version, slice_of_string("shutdown,true")},
	    {STATE_STATUS, ++gossip->version, slice_of_string("shutdown,true")},
	};
	struct message_payload *payload = NULL;
	struct buffer buffer;
	size_t list;

	gossip_merge_locked(gossip, self, last, sizeof(last) / sizeof(last[0]));
	self->heartbeat = self->version_max = INT32_MAX;
	buffer_init(&buffer);
	gossip_put_head(&buffer, 0);
	list = gossip_list_begin(&buffer);
	gossip_put_endpoint_locked(&buffer, self, 0);
	gossip_list_end(&buffer, list, 1);
	if (!buffer.is_failed)
		payload = message_payload_new(buffer_slice(&buffer));
	buffer_fini(&buffer);
	return payload;
}

void
gossip_stop(struct gossip *gossip, bool announce, struct gossip_wait *wait)
{
	struct message_payload *last = NULL;
	struct gossip_farewell *farewell;
	struct peer **live;
	uint32_t count = 0;

	lock_take(&gossip->lock);
	live = xcalloc(gossip->live.count + 1, sizeof(struct peer *));
	if (gossip->is_running && announce)
		last = gossip_last_state_locked(gossip);
	for (uint32_t i = 0; last != NULL && i < gossip->live.count; i++)
		live[count++] = gossip->live.at[i]->peer;
	gossip->is_running = false;
	lock_drop(&gossip->lock);

	farewell = xzalloc(sizeof(*farewell) + count * sizeof(farewell->peers[0]));
	farewell->wait = wait;
	farewell->gossip = gossip;
	atomic_store_explicit(&farewell->pending, count + 1, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		struct message *message;

		message_payload_ref(last);
		message = message_new(VERB_GOSSIP_SHUTDOWN, last);
		farewell->peers[i].callback.on_answer = gossip_farewell_answer;
		farewell->peers[i].farewell = farewell;
		if (message == NULL)
			gossip_farewell_count(gossip, farewell);
		else
			messaging_request(gossip->messaging, live[i], message, GOSSIP_ANNOUNCE_NS,
			    &farewell->peers[i].callback, NULL);
	}
	gossip_farewell_count(gossip, farewell);
	message_payload_unref(last);
	free(live);
}
