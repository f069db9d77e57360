/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from other nodes: SYN, ACK, ACK2, ECHO, SHUTDOWN (GossipDigestSynVerbHandler and its kin).
 */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

/* ---- Answers that are cut into messages of a bounded size ---- */

/* Deltas that grow into as many messages as they need: the first one of `verb`, the others ACK2s. */
struct gossip_reply {
	struct gossip *gossip;
	struct peer *to;
	enum verb verb; /* of the message that grows now */
	bool is_whole; /* not cut: for a shadow round, which must not take a part for all */
	struct buffer buffer;
	size_t list;
	uint32_t count;
};

static void
gossip_reply_begin(struct gossip_reply *reply, struct gossip *gossip, struct peer *to,
    enum verb verb, uint8_t flags)
{
	*reply = (struct gossip_reply){.gossip = gossip, .to = to, .verb = verb};
	buffer_init(&reply->buffer);
	gossip_put_head(&reply->buffer, flags);
}

/* Also when there is none: the sender of a SYN shall know that it was heard. */
static void
gossip_reply_end_locked(struct gossip_reply *reply)
{
	struct message_payload *payload = NULL;

	gossip_list_end(&reply->buffer, reply->list, reply->count);
	if (!reply->buffer.is_failed)
		payload = message_payload_new(buffer_slice(&reply->buffer));
	if (payload != NULL)
		gossip_outgoing_locked(reply->gossip, reply->to, reply->verb, payload);
	reply->gossip->stats.deltas_sent += reply->count;
	buffer_fini(&reply->buffer);
}

static void
gossip_reply_add_locked(
    struct gossip_reply *reply, const struct gossip_endpoint *endpoint, int32_t above)
{
	size_t size = reply->buffer.size;

	gossip_put_endpoint_locked(&reply->buffer, endpoint, above);
	if (!reply->is_whole && reply->count > 0 &&
	    reply->buffer.size > reply->gossip->options.message_size_max) {
		struct gossip *gossip = reply->gossip;
		struct peer *to = reply->to;

		reply->buffer.size = size;
		gossip_reply_end_locked(reply);
		gossip_reply_begin(reply, gossip, to, VERB_GOSSIP_DIGEST_ACK2, 0);
		reply->list = gossip_list_begin(&reply->buffer);
		gossip_put_endpoint_locked(&reply->buffer, endpoint, above);
	}
	reply->count++;
}

/* Peers are never freed, so there is an end to how many others can make us remember. NULL: no more. */
static struct peer *
gossip_peer(struct gossip *gossip, const struct endpoint *endpoint)
{
	struct peer *peer = peers_find(gossip->peers, endpoint);

	if (peer == NULL && peers_count(gossip->peers) < 2 * GOSSIP_ENDPOINTS_MAX)
		peer = peers_get(gossip->peers, endpoint);
	return peer;
}

/* ---- SYN ---- */

/* One line now and then; the sender is not answered. */
static bool
gossip_checks_name(struct gossip *gossip, const struct message *message, const char *what,
    struct slice theirs, const char *ours)
{
	uint64_t now = gossip_now_ns(gossip);
	char text[ENDPOINT_TEXT_SIZE];
	bool complain;

	if (slice_equal_string(theirs, ours))
		return true;
	lock_take(&gossip->lock);
	gossip->stats.refused_names++;
	complain = gossip->complained_ns == 0 || now - gossip->complained_ns > 10 * GOSSIP_S;
	if (complain)
		gossip->complained_ns = now;
	lock_drop(&gossip->lock);
	if (complain)
		log_warn("%s mismatch from %s %.*s!=%s", what,
		    endpoint_format(&message->from, text), (int)theirs.size,
		    (const char *)theirs.data, ours);
	return false;
}

/* Everything that is known, in one message. */
static void
gossip_answer_shadow_locked(struct gossip *gossip, struct peer *from)
{
	struct gossip_reply reply;

	gossip_reply_begin(&reply, gossip, from, VERB_GOSSIP_DIGEST_ACK,
	    gossip->is_running ? 0 : GOSSIP_IN_SHADOW);
	reply.is_whole = true;
	gossip_list_end(&reply.buffer, gossip_list_begin(&reply.buffer), 0);
	reply.list = gossip_list_begin(&reply.buffer);
	for (uint32_t i = 0; gossip->is_running && i < gossip->order.count; i++) {
		if (gossip->order.at[i]->generation != 0)
			gossip_reply_add_locked(&reply, gossip->order.at[i], 0);
	}
	gossip_reply_end_locked(&reply);
}

/* A digest that was decoded, and whose it is. */
struct gossip_seen {
	struct gossip_digest digest;
	struct peer *peer; /* NULL: never heard of */
};

/* What the sender of a SYN lacks of an endpoint. */
struct gossip_lack {
	struct gossip_endpoint *endpoint;
	int32_t above;
};

/* One comparison: into the digests that we ask for, or into what they lack, or neither. */
static void
gossip_compare_locked(struct gossip *gossip, const struct gossip_seen *seen, struct buffer *wanted,
    uint32_t *wanted_count, struct gossip_lack *lacks, uint32_t *lack_count)
{
	const struct gossip_digest *digest = &seen->digest;
	struct gossip_endpoint *endpoint = gossip_find_locked(gossip, seen->peer);
	int32_t above = 0;

	if (endpoint == NULL) {
		if (digest->generation == 0 ||
		    (seen->peer != NULL &&
			gossip_is_quarantined_locked(
			    gossip, seen->peer, digest->generation, gossip_now_ns(gossip))))
			return;
		gossip_put_digest(wanted, &digest->endpoint, 0, 0);
		++*wanted_count;
		return;
	}
	if (endpoint->stamp == gossip->stamp)
		return; /* named twice */
	endpoint->stamp = gossip->stamp;
	if (digest->generation == endpoint->generation) {
		if (digest->version == endpoint->version_max)
			return;
		above = digest->version < endpoint->version_max ? digest->version
								: endpoint->version_max;
	}
	if (digest->generation > endpoint->generation ||
	    (digest->generation == endpoint->generation &&
		digest->version > endpoint->version_max)) {
		/* Of ourselves we know best, whatever they say. */
		if (endpoint->peer->is_local)
			return;
		gossip_put_digest(wanted, &digest->endpoint, digest->generation, above);
		++*wanted_count;
	} else if (endpoint->generation != 0) {
		lacks[(*lack_count)++] = (struct gossip_lack){endpoint, above};
	}
}

/*
 * Compare (Gossiper.examineGossiper): what we lack goes into the list of digests that the ACK asks for, what
 * they lack becomes deltas. Those that the SYN does not name though it names all are news to its sender.
 */
static void
gossip_examine_locked(struct gossip *gossip, struct peer *from, const struct gossip_seen *seen,
    uint32_t count, bool is_complete)
{
	struct gossip_lack *lacks = xcalloc(gossip->order.count + 1, sizeof(*lacks));
	uint32_t lack_count = 0, wanted = 0;
	struct gossip_reply reply;
	size_t list;

	gossip->stamp++;
	gossip_reply_begin(&reply, gossip, from, VERB_GOSSIP_DIGEST_ACK, 0);
	list = gossip_list_begin(&reply.buffer);
	for (uint32_t i = 0; i < count; i++)
		gossip_compare_locked(gossip, &seen[i], &reply.buffer, &wanted, lacks, &lack_count);
	gossip_list_end(&reply.buffer, list, wanted);
	for (uint32_t i = 0; is_complete && i < gossip->order.count; i++) {
		struct gossip_endpoint *endpoint = gossip->order.at[i];

		if (endpoint->stamp != gossip->stamp && endpoint->generation != 0)
			lacks[lack_count++] = (struct gossip_lack){endpoint, 0};
	}
	reply.list = gossip_list_begin(&reply.buffer);
	for (uint32_t i = 0; i < lack_count; i++)
		gossip_reply_add_locked(&reply, lacks[i].endpoint, lacks[i].above);
	gossip_reply_end_locked(&reply);
	free(lacks);
}

static struct gossip_seen *
gossip_read_digests(struct gossip *gossip, struct gossip_message *message)
{
	struct gossip_seen *seen = xcalloc(message->digest_count + 1, sizeof(*seen));

	for (uint32_t i = 0; i < message->digest_count; i++) {
		gossip_digest_next(&message->digests, &seen[i].digest);
		seen[i].peer = peers_find(gossip->peers, &seen[i].digest.endpoint);
	}
	return seen;
}

static void
gossip_complain(const struct message *message, const struct error *err)
{
	char text[ENDPOINT_TEXT_SIZE];

	log_debug("%s of %s is not readable: %s", verb_name(message->verb),
	    endpoint_format(&message->from, text), err->text);
}

static void
gossip_on_syn(void *context, struct message *message, struct worker *worker)
{
	struct gossip *gossip = context;
	struct gossip_message syn;
	struct gossip_seen *seen;
	struct peer *from;
	struct error err;

	if (gossip_syn_decode(message_payload_slice(message), &syn, &err) != 0) {
		gossip_complain(message, &err);
		return;
	}
	if (!gossip_checks_name(
		gossip, message, "ClusterName", syn.cluster_name, gossip->options.cluster_name) ||
	    !gossip_checks_name(
		gossip, message, "Partitioner", syn.partitioner, gossip->options.partitioner))
		return;
	from = gossip_peer(gossip, &message->from);
	if (from == NULL)
		return;
	seen = gossip_read_digests(gossip, &syn);
	lock_take(&gossip->lock);
	if (syn.digest_count == 0 && (gossip->is_running || gossip->shadow.is_active))
		gossip_answer_shadow_locked(gossip, from);
	else if (gossip->is_running)
		gossip_examine_locked(
		    gossip, from, seen, syn.digest_count, (syn.flags & GOSSIP_COMPLETE) != 0);
	lock_drop(&gossip->lock);
	free(seen);
	gossip_flush(gossip, worker);
}

/* ---- ACK, ACK2 ---- */

/* True when something in it was news beyond heartbeats. */
static bool
gossip_apply_all(struct gossip *gossip, struct gossip_message *message)
{
	struct gossip_delta delta;
	bool has_news = false;

	for (uint32_t i = 0; i < message->delta_count; i++) {
		struct peer *peer;

		gossip_delta_next(&message->deltas, &delta);
		peer = gossip_peer(gossip, &delta.endpoint);
		if (peer == NULL)
			continue;
		lock_take(&gossip->lock);
		has_news = gossip_apply_locked(gossip, peer, &delta) || has_news;
		lock_drop(&gossip->lock);
	}
	return has_news;
}

/* What they asked for. True when they knew of all that we have, if only an older state. */
static bool
gossip_answer_wanted_locked(
    struct gossip *gossip, struct peer *from, const struct gossip_seen *seen, uint32_t count)
{
	bool knows_all = true;
	struct gossip_reply reply;

	if (count == 0)
		return true;
	gossip_reply_begin(&reply, gossip, from, VERB_GOSSIP_DIGEST_ACK2, 0);
	reply.list = gossip_list_begin(&reply.buffer);
	for (uint32_t i = 0; i < count; i++) {
		const struct gossip_digest *digest = &seen[i].digest;
		struct gossip_endpoint *endpoint = gossip_find_locked(gossip, seen[i].peer);
		int32_t above = digest->version;

		if (endpoint == NULL || endpoint->generation == 0)
			continue;
		/* A version of another life says nothing. */
		if (digest->generation != endpoint->generation)
			above = 0;
		if (above == 0)
			knows_all = false;
		gossip_reply_add_locked(&reply, endpoint, above);
	}
	if (reply.count > 0)
		gossip_reply_end_locked(&reply);
	else
		buffer_fini(&reply.buffer);
	return knows_all;
}

static void
gossip_on_ack(void *context, struct message *message, struct worker *worker)
{
	struct gossip *gossip = context;
	struct gossip_message ack;
	struct gossip_seen *seen;
	struct peer *from;
	struct error err;
	bool is_running, is_shadow, has_news;

	if (gossip_ack_decode(message_payload_slice(message), &ack, &err) != 0) {
		gossip_complain(message, &err);
		return;
	}
	from = gossip_peer(gossip, &message->from);
	if (from == NULL)
		return;
	lock_take(&gossip->lock);
	is_running = gossip->is_running;
	is_shadow = gossip->shadow.is_active;
	lock_drop(&gossip->lock);
	if (is_shadow)
		gossip_shadow_ack(gossip, from, &ack);
	else if (is_running && (ack.flags & GOSSIP_IN_SHADOW) == 0) {
		seen = gossip_read_digests(gossip, &ack);
		has_news = gossip_apply_all(gossip, &ack);
		lock_take(&gossip->lock);
		has_news =
		    !gossip_answer_wanted_locked(gossip, from, seen, ack.digest_count) || has_news;
		gossip_settle_seed_locked(gossip, from, !has_news);
		lock_drop(&gossip->lock);
		free(seen);
	}
	gossip_flush(gossip, worker);
}

static void
gossip_on_ack2(void *context, struct message *message, struct worker *worker)
{
	struct gossip *gossip = context;
	struct gossip_message ack2;
	struct error err;

	if (gossip_ack2_decode(message_payload_slice(message), &ack2, &err) != 0) {
		gossip_complain(message, &err);
		return;
	}
	if (gossip_is_running(gossip))
		gossip_apply_all(gossip, &ack2);
	gossip_flush(gossip, worker);
}

/* ---- ECHO, SHUTDOWN ---- */

static void
gossip_on_echo(void *context, struct message *message, struct worker *worker)
{
	struct gossip *gossip = context;

	/* A node that stops is not to be found alive again. One that joins asks those who have not heard of it
	 * yet: it is answered, too. */
	if (gossip_is_running(gossip) && gossip_peer(gossip, &message->from) != NULL)
		messaging_respond(gossip->messaging, message, slice_empty, worker);
}

/* The sender's last state. An old one, of a life before the one we know, changes nothing. */
static void
gossip_on_shutdown(void *context, struct message *message, struct worker *worker)
{
	struct gossip *gossip = context;
	struct gossip_endpoint *endpoint;
	struct gossip_message last;
	struct gossip_delta delta;
	struct peer *peer;
	struct error err;

	if (gossip_ack2_decode(message_payload_slice(message), &last, &err) != 0) {
		gossip_complain(message, &err);
		return;
	}
	peer = peers_find(gossip->peers, &message->from);
	if (gossip_is_running(gossip) && peer != NULL && last.delta_count == 1) {
		gossip_delta_next(&last.deltas, &delta);
		lock_take(&gossip->lock);
		endpoint = gossip_find_locked(gossip, peer);
		if (endpoint != NULL && endpoint_equal(&delta.endpoint, &peer->endpoint) &&
		    delta.generation >= endpoint->generation)
			gossip_apply_locked(gossip, peer, &delta);
		lock_drop(&gossip->lock);
	}
	messaging_respond(gossip->messaging, message, slice_empty, worker);
	gossip_flush(gossip, worker);
}

void
gossip_handlers(struct gossip *gossip)
{
	struct messaging *messaging = gossip->messaging;

	messaging_handle(
	    messaging, VERB_GOSSIP_DIGEST_SYN, CLUSTER_STAGE_GOSSIP, gossip_on_syn, gossip);
	messaging_handle(
	    messaging, VERB_GOSSIP_DIGEST_ACK, CLUSTER_STAGE_GOSSIP, gossip_on_ack, gossip);
	messaging_handle(
	    messaging, VERB_GOSSIP_DIGEST_ACK2, CLUSTER_STAGE_GOSSIP, gossip_on_ack2, gossip);
	messaging_handle(
	    messaging, VERB_GOSSIP_SHUTDOWN, CLUSTER_STAGE_GOSSIP, gossip_on_shutdown, gossip);
	messaging_handle(messaging, VERB_ECHO_REQ, CLUSTER_STAGE_GOSSIP, gossip_on_echo, gossip);
}
