/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round (Gossiper.GossipTask): the heartbeat rises, digests of all go to a live node, perhaps to an unreachable one,
 * perhaps to a seed; then the silent ones are judged. And pushes: what changed goes to a few at once, whole, so that
 * who gets it misses no older version of it; who learns something by that pushes it on, and it dies out by itself.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

enum { GOSSIP_SILENT_AT_ONCE = 64 }; /* candidates to be forgotten, looked at in one round */

/* xorshift64*: choice of partners, not secrets. */
uint32_t
gossip_chance(struct gossip *gossip, uint32_t bound)
{
	uint64_t x = gossip->chance;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	gossip->chance = x;
	return (uint32_t)(((x * UINT64_C(2685821657736338717)) >> 32) * bound >> 32);
}

/* ---- SYN ---- */

/* A different order each time: where the message is full, others are left out each time. */
static void
gossip_shuffle(struct gossip *gossip)
{
	struct gossip_peers *order = &gossip->order;

	for (uint32_t i = order->count; i > 1; i--) {
		uint32_t j = gossip_chance(gossip, i);
		struct gossip_endpoint *other = order->at[j];

		order->at[j] = order->at[i - 1];
		order->at[i - 1] = other;
		order->at[j]->order = j;
		other->order = i - 1;
	}
}

struct message_payload *
gossip_make_syn_locked(struct gossip *gossip)
{
	struct message_payload *payload = NULL;
	struct buffer buffer;
	uint32_t count = 0;
	size_t list;

	gossip_shuffle(gossip);
	buffer_init(&buffer);
	gossip_put_head(&buffer, GOSSIP_COMPLETE);
	gossip_put_name(&buffer, gossip->options.cluster_name);
	gossip_put_name(&buffer, gossip->options.partitioner);
	list = gossip_list_begin(&buffer);
	for (uint32_t i = 0; i < gossip->order.count; i++) {
		const struct gossip_endpoint *endpoint = gossip->order.at[i];

		if (buffer.size + ENDPOINT_WIRE_MAX + 10 > gossip->options.message_size_max) {
			buffer.data[1] = 0; /* not complete */
			break;
		}
		gossip_put_digest(&buffer, &endpoint->peer->endpoint, endpoint->generation,
		    endpoint->version_max);
		count++;
	}
	gossip_list_end(&buffer, list, count);
	if (!buffer.is_failed)
		payload = message_payload_new(buffer_slice(&buffer));
	buffer_fini(&buffer);
	gossip->stats.digests_sent += count;
	return payload;
}

static void
gossip_send_syn_locked(struct gossip *gossip, struct peer *to, struct message_payload *syn)
{
	if (syn == NULL)
		return;
	message_payload_ref(syn);
	gossip_outgoing_locked(gossip, to, VERB_GOSSIP_DIGEST_SYN, syn);
	gossip->stats.rounds++;
}

void
gossip_syn_seeds_locked(struct gossip *gossip, bool missing)
{
	struct message_payload *syn = NULL;

	for (uint32_t i = 0; i < gossip->seed_count; i++) {
		if (missing && gossip->seed_agrees[i])
			continue;
		if (syn == NULL)
			syn = gossip_make_syn_locked(gossip);
		gossip_send_syn_locked(gossip, gossip->seed_peers[i], syn);
	}
	message_payload_unref(syn);
}

void
gossip_ask(struct gossip *gossip, struct peer *peer)
{
	struct message_payload *syn;

	lock_take(&gossip->lock);
	if (gossip->is_running) {
		syn = gossip_make_syn_locked(gossip);
		gossip_send_syn_locked(gossip, peer, syn);
		message_payload_unref(syn);
	}
	lock_drop(&gossip->lock);
	gossip_flush_outgoing(gossip, NULL);
}

static bool
gossip_is_seed_peer(const struct gossip *gossip, const struct peer *peer)
{
	for (uint32_t i = 0; i < gossip->seed_count; i++) {
		if (gossip->seed_peers[i] == peer)
			return true;
	}
	return false;
}

static void
gossip_choose_locked(struct gossip *gossip)
{
	struct message_payload *syn = gossip_make_syn_locked(gossip);
	uint32_t live = gossip->live.count, unreachable = gossip->unreachable.count;
	bool to_seed = false;

	if (live > 0) {
		struct peer *peer = gossip->live.at[gossip_chance(gossip, live)]->peer;

		gossip_send_syn_locked(gossip, peer, syn);
		to_seed = gossip_is_seed_peer(gossip, peer);
	}
	/* More of them, less of us: the more often one of them is tried. */
	if (unreachable > 0 && gossip_chance(gossip, live + 1) < unreachable)
		gossip_send_syn_locked(
		    gossip, gossip->unreachable.at[gossip_chance(gossip, unreachable)]->peer, syn);
	/* Seeds hold the ring together when it falls into parts that know nothing of one another. */
	if (gossip->seed_count > 0 && (!to_seed || live < gossip->seed_count) &&
	    (live == 0 || gossip_chance(gossip, live + unreachable) < gossip->seed_count))
		gossip_send_syn_locked(
		    gossip, gossip->seed_peers[gossip_chance(gossip, gossip->seed_count)], syn);
	message_payload_unref(syn);
}

/* ---- Judging ---- */

static void
gossip_convict_locked(struct gossip *gossip, uint64_t now)
{
	if (!failure_detector_may_judge(gossip->detector, now))
		return;
	for (uint32_t i = gossip->live.count; i-- > 0;) {
		struct gossip_endpoint *endpoint = gossip->live.at[i];
		uint64_t refused = gossip->slots[endpoint->peer->index].refused_ns;
		double share = 1;

		/* Nothing listens where it was, and nobody has news of it: it need not be silent for so long. */
		if (refused != 0 && now - refused < GOSSIP_REFUSED_NS)
			share = 1.0 / GOSSIP_REFUSED_SHARE;
		if (failure_detector_convicts(gossip->detector, endpoint->peer, share, now))
			gossip_mark_dead_locked(gossip, endpoint);
	}
}

/* What time has taken: states whose day is over. */
static void
gossip_expire_locked(struct gossip *gossip)
{
	int64_t wall_ms = gossip_wall_ms(gossip);

	for (uint32_t i = gossip->order.count; i-- > 0;) {
		struct gossip_endpoint *endpoint = gossip->order.at[i];
		struct peer *peer = endpoint->peer;

		if (endpoint->expires_ms == 0 || wall_ms < endpoint->expires_ms ||
		    endpoint->list == GOSSIP_LIVE || peer->is_local)
			continue;
		gossip_evict_locked(gossip, endpoint);
		/* Who has not come so far must not bring it back. */
		gossip_quarantine_locked(
		    gossip, peer, INT32_MAX, 2 * gossip->options.ring_delay_ns);
	}
}

static bool
gossip_is_silent_locked(
    const struct gossip *gossip, const struct gossip_endpoint *endpoint, uint64_t now)
{
	return endpoint->list == GOSSIP_UNREACHABLE &&
	    !node_status_is_dead((enum node_status_kind)endpoint->status) &&
	    now - endpoint->updated_ns > gossip->options.ring_delay_ns &&
	    !gossip_is_quarantined_locked(gossip, endpoint->peer, endpoint->generation, now);
}

/* Nodes that never got a place and are gone (Cassandra's fat clients; a bootstrap that died). */
static void
gossip_forget_silent(struct gossip *gossip)
{
	struct peer *silent[GOSSIP_SILENT_AT_ONCE];
	uint64_t now = gossip_now_ns(gossip);
	uint32_t count = 0;

	lock_take(&gossip->lock);
	for (uint32_t i = 0; i < gossip->unreachable.count && count < GOSSIP_SILENT_AT_ONCE; i++) {
		struct gossip_endpoint *endpoint = gossip->unreachable.at[i];

		if (gossip_is_silent_locked(gossip, endpoint, now) &&
		    (gossip->options.is_member != NULL ||
			!gossip_is_member_locked(gossip, endpoint)))
			silent[count++] = endpoint->peer;
	}
	lock_drop(&gossip->lock);
	for (uint32_t i = 0; i < count; i++) {
		struct gossip_endpoint *endpoint;
		char text[ENDPOINT_TEXT_SIZE];

		if (gossip->options.is_member != NULL &&
		    gossip->options.is_member(gossip->options.context, silent[i]))
			continue;
		lock_take(&gossip->lock);
		endpoint = gossip_find_locked(gossip, silent[i]);
		if (endpoint != NULL && gossip_is_silent_locked(gossip, endpoint, now)) {
			log_info("%s has no place in the ring and was silent for %" PRIu64
				 " ms: forgotten",
			    endpoint_format(&silent[i]->endpoint, text),
			    (now - endpoint->updated_ns) / GOSSIP_MS);
			gossip_remove_locked(gossip, endpoint);
			/*
			 * A join that was killed and begins again is a new life, which must be known at once: it fetches its
			 * data after the ring delay, and what is written meanwhile has to reach it too. (Cassandra believes
			 * nothing of it for twice that delay.)
			 */
			gossip_quarantine_locked(gossip, silent[i], endpoint->generation,
			    2 * gossip->options.ring_delay_ns);
			gossip_evict_locked(gossip, endpoint);
		}
		lock_drop(&gossip->lock);
	}
}

void
gossip_round(struct gossip *gossip, struct worker *worker)
{
	struct gossip_endpoint *self;

	lock_take(&gossip->lock);
	gossip_free_retired_locked(gossip);
	if (!gossip->is_running) {
		lock_drop(&gossip->lock);
		return;
	}
	self = gossip_find_locked(gossip, gossip->local);
	self->heartbeat = self->version_max = ++gossip->version;
	gossip->rumor_budget = GOSSIP_RUMORS_PER_ROUND;
	gossip_convict_locked(gossip, gossip_now_ns(gossip));
	gossip_expire_locked(gossip);
	gossip_choose_locked(gossip);
	lock_drop(&gossip->lock);
	gossip_forget_silent(gossip);
	gossip_timer_arm(&gossip->round, gossip->options.interval_ns);
	gossip_flush(gossip, worker);
}

/* ---- Pushes ---- */

void
gossip_put_endpoint_locked(
    struct buffer *out, const struct gossip_endpoint *endpoint, int32_t above)
{
	const struct gossip_values *values = endpoint->values;
	uint32_t count = 0, all = gossip_values_count(values);

	for (uint32_t i = 0; i < all; i++)
		count += values->at[i].version > above;
	gossip_put_delta(out, &endpoint->peer->endpoint, endpoint->generation, endpoint->heartbeat,
	    (uint8_t)count);
	if (count == 0)
		return;
	for (uint32_t bits = values->mask; bits != 0; bits &= bits - 1) {
		enum application_state state = (enum application_state)__builtin_ctz(bits);
		int32_t version;
		struct slice value = gossip_values_get(values, state, &version);

		if (version > above)
			gossip_put_value(out, state, version, value);
	}
}

void
gossip_rumor_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	if (endpoint->is_rumor || !gossip->is_running)
		return;
	if (gossip->rumor_count == gossip->rumor_capacity) {
		gossip->rumor_capacity =
		    gossip->rumor_capacity == 0 ? 16 : gossip->rumor_capacity * 2;
		gossip->rumors =
		    xrealloc(gossip->rumors, gossip->rumor_capacity * sizeof(struct peer *));
	}
	gossip->rumors[gossip->rumor_count++] = endpoint->peer;
	endpoint->is_rumor = true;
}

/* The newest rumors, as many as fit and as the round's budget allows: the others come with the rounds. */
static struct message_payload *
gossip_make_push_locked(struct gossip *gossip)
{
	struct message_payload *payload = NULL;
	struct buffer buffer;
	uint32_t count = 0;
	size_t list;

	buffer_init(&buffer);
	gossip_put_head(&buffer, 0);
	list = gossip_list_begin(&buffer);
	while (gossip->rumor_count > 0 && count < GOSSIP_RUMORS_AT_ONCE &&
	    gossip->rumor_budget > 0 && buffer.size < gossip->options.message_size_max / 2) {
		struct gossip_endpoint *endpoint =
		    gossip_find_locked(gossip, gossip->rumors[--gossip->rumor_count]);

		if (endpoint == NULL)
			continue;
		endpoint->is_rumor = false;
		gossip_put_endpoint_locked(&buffer, endpoint, 0);
		gossip->rumor_budget--;
		count++;
	}
	gossip_list_end(&buffer, list, count);
	if (count > 0 && !buffer.is_failed)
		payload = message_payload_new(buffer_slice(&buffer));
	buffer_fini(&buffer);
	return payload;
}

static void
gossip_push_locked(struct gossip *gossip)
{
	struct message_payload *push = gossip_make_push_locked(gossip);
	uint32_t live = gossip->live.count;

	/* A partial shuffle of the live list: its first few are the targets. */
	for (uint32_t i = 0; push != NULL && i < GOSSIP_RUMOR_TARGETS && i < live; i++) {
		uint32_t j = i + gossip_chance(gossip, live - i);
		struct gossip_endpoint *target = gossip->live.at[j];

		gossip->live.at[j] = gossip->live.at[i];
		gossip->live.at[i] = target;
		gossip->live.at[j]->list_index = j;
		target->list_index = i;
		message_payload_ref(push);
		gossip_outgoing_locked(gossip, target->peer, VERB_GOSSIP_DIGEST_ACK2, push);
		gossip->stats.extra_rounds++;
	}
	message_payload_unref(push);
}

void
gossip_push_rumors(struct gossip *gossip, struct worker *worker)
{
	lock_take(&gossip->lock);
	if (gossip->is_running)
		gossip_push_locked(gossip);
	if (gossip->rumor_budget == 0) {
		/* What is left waits for no push: its digests are newer than those of the others. */
		for (uint32_t i = 0; i < gossip->rumor_count; i++) {
			struct gossip_endpoint *endpoint =
			    gossip_find_locked(gossip, gossip->rumors[i]);

			if (endpoint != NULL)
				endpoint->is_rumor = false;
		}
		gossip->rumor_count = 0;
	}
	lock_drop(&gossip->lock);
	gossip_flush(gossip, worker);
}
