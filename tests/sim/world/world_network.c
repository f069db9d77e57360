/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include "base/alloc.h"
#include "tests/sim/world/world_internal.h"

/* ---- Cuts ---- */

static size_t
world_pair(const struct world *world, uint32_t from, uint32_t to)
{
	return (size_t)from * world->options.node_count + to;
}

bool
world_is_cut(const struct world *world, uint32_t from, uint32_t to)
{
	size_t pair = world_pair(world, from, to);

	return world->cut[pair / 64] >> (pair % 64) & 1;
}

static void
world_set_cut(struct world *world, uint32_t from, uint32_t to, bool is_cut)
{
	size_t pair = world_pair(world, from, to);
	uint64_t bit = UINT64_C(1) << (pair % 64);

	if (is_cut)
		world->cut[pair / 64] |= bit;
	else
		world->cut[pair / 64] &= ~bit;
}

void
world_cut(struct world *world, uint32_t from, uint32_t to)
{
	world_note(world, "cut %u -> %u", from, to);
	world_set_cut(world, from, to, true);
}

void
world_cut_both(struct world *world, uint32_t a, uint32_t b)
{
	world_cut(world, a, b);
	world_cut(world, b, a);
}

void
world_join(struct world *world, uint32_t a, uint32_t b)
{
	world_note(world, "join %u and %u", a, b);
	world_set_cut(world, a, b, false);
	world_set_cut(world, b, a, false);
}

void
world_partition(struct world *world, const uint8_t *group_of)
{
	world_note(world, "partition");
	for (uint32_t a = 0; a < world->options.node_count; a++) {
		for (uint32_t b = 0; b < world->options.node_count; b++)
			world_set_cut(world, a, b, group_of[a] != group_of[b]);
	}
}

void
world_lose_verb(struct world *world, uint32_t to, enum verb verb)
{
	world_note(world, "%u does not get %s", to, verb_name(verb));
	world->lost_verbs[to] |= UINT64_C(1) << verb;
}

void
world_heal(struct world *world)
{
	size_t pairs = (size_t)world->options.node_count * world->options.node_count;

	world_note(world, "heal");
	memset(world->cut, 0, (pairs + 63) / 64 * sizeof(*world->cut));
	memset(world->lost_verbs, 0, world->options.node_count * sizeof(*world->lost_verbs));
}

void
world_set_faults(struct world *world, const struct world_faults *faults)
{
	world->options.faults = *faults;
}

/* ---- Messages ---- */

static bool
world_happens(struct world *world, double share)
{
	return share > 0 && (double)(world_random(&world->chance) >> 11) < share * 0x1p53;
}

/* Most near the least: the square of an even chance. */
static uint64_t
world_delay(struct world *world)
{
	const struct world_faults *faults = &world->options.faults;
	double chance = (double)(world_random(&world->chance) >> 11) * 0x1p-53;

	return faults->delay_min_ns +
	    (uint64_t)((double)(faults->delay_max_ns - faults->delay_min_ns) * chance * chance);
}

static void
world_story_message(struct world *world, uint32_t from, uint32_t to, const struct message *message,
    enum world_fate fate)
{
	struct world_line line = {
	    .at_ns = world->now_ns,
	    .id = message->id,
	    .fate = fate,
	    .from = from,
	    .to = to,
	    .size = (uint32_t)message_payload_slice(message).size,
	    .verb = message->verb,
	};

	world_story_add(&world->story, &line);
}

static struct world_packet *
world_packet_new(struct world_node *from, struct message *message)
{
	struct world_packet *packet = xzalloc(sizeof(*packet));
	uint64_t now = env_monotonic_ns(from->env);

	packet->from = from->index;
	packet->verb = message->verb;
	buffer_init(&packet->bytes);
	packet->left_ns = message->expires_ns == 0 ? -1 : (int64_t)(message->expires_ns - now);
	if (from->world->options.is_encoded) {
		message_encode(message, &from->endpoint, now, &packet->bytes);
	} else {
		message_ref(message);
		packet->message = message;
	}
	return packet;
}

void
world_packet_free(struct world_packet *packet)
{
	buffer_fini(&packet->bytes);
	message_unref(packet->message);
	free(packet);
}

static void
world_post(struct world_node *from, struct world_node *to, struct message *message)
{
	struct world *world = from->world;
	uint64_t *arrives = &world->arrives_ns[world_pair(world, from->index, to->index)];
	uint64_t delay = world_delay(world);
	struct world_event event = {.kind = WORLD_MESSAGE, .node = to->index};

	if (!world_happens(world, world->options.faults.reorder)) {
		/* One connection: what was sent before arrives before. */
		if (world->now_ns + delay <= *arrives)
			delay = *arrives - world->now_ns + 1;
		*arrives = world->now_ns + delay;
	}
	event.packet = world_packet_new(from, message);
	world_push(world, &event, delay);
}

void
world_network_send(
    struct cluster_env *env, struct peer *peer, struct message *message, struct worker *worker)
{
	struct world_node *from = world_node_of(env);
	struct world *world = from->world;
	struct world_node *to = world_find(world, &peer->endpoint);
	enum world_fate fate = FATE_SENT;

	(void)worker;
	if (from->clock->is_dying || to == NULL ||
	    message_is_expired(message, env_monotonic_ns(from->env))) {
		message_unref(message);
		return;
	}
	world->messages++;
	from->sent++;
	from->bytes_sent += message_size(message);
	if (world_is_cut(world, from->index, to->index))
		fate = FATE_CUT;
	else if (message->verb < 64 && world->lost_verbs[to->index] >> message->verb & 1)
		fate = FATE_LOST;
	else if (world_happens(world, world->options.faults.loss))
		fate = FATE_LOST;
	world_story_message(world, from->index, to->index, message, fate);
	if (fate == FATE_SENT) {
		world_post(from, to, message);
		if (world_happens(world, world->options.faults.duplicate)) {
			world_story_message(world, from->index, to->index, message, FATE_DOUBLED);
			world_post(from, to, message);
		}
	}
	message_unref(message);
}

/* The receiver's own envelope over the shared payload. */
static struct message *
world_packet_share(struct world_node *to, const struct world_packet *packet, struct peer *sender)
{
	const struct message *sent = packet->message;
	struct message *message;

	if (sent->payload != NULL)
		message_payload_ref(sent->payload);
	message = message_new(sent->verb, sent->payload);
	message->flags = sent->flags;
	message->id = sent->id;
	message->from = sent->from;
	if (endpoint_equal(&sent->from, &sender->endpoint))
		message->peer = sender;
	message->trace = sent->trace;
	message->expires_ns =
	    packet->left_ns < 0 ? 0 : env_monotonic_ns(to->env) + (uint64_t)packet->left_ns;
	if (sent->forward_count > 0 && message_forwards_alloc(message, sent->forward_count) == 0)
		memcpy(message->forwards, sent->forwards,
		    sent->forward_count * sizeof(*sent->forwards));
	return message;
}

void
world_network_deliver(struct world *world, struct world_node *to, struct world_packet *packet)
{
	struct world_node *from = &world->nodes[packet->from];
	struct message *message = NULL;
	struct peer *sender;
	struct error err;

	if (!to->is_up) {
		struct peer *peer = from->is_up ? peers_find(from->peers, &to->endpoint) : NULL;
		struct world_line line = {.at_ns = world->now_ns,
		    .fate = FATE_REFUSED,
		    .from = packet->from,
		    .to = to->index,
		    .verb = (uint8_t)packet->verb};

		world_story_add(&world->story, &line);
		if (peer != NULL && world->ops.refused != NULL &&
		    !world_is_cut(world, to->index, from->index))
			world->ops.refused(from, peer, world->context);
		return;
	}
	/* As the handshake of the connection tells it. */
	sender = peers_get(to->peers, &from->endpoint);
	if (packet->message != NULL)
		message = world_packet_share(to, packet, sender);
	else if (message_decode(buffer_slice(&packet->bytes), sender, env_monotonic_ns(to->env),
		     &message, &err) != 0) {
		fprintf(stderr, "a message that was sent cannot be read: %s\n", err.text);
		abort();
	}
	atomic_store(&sender->heard_ns, env_monotonic_ns(to->env));
	to->received++;
	world_story_message(world, packet->from, to->index, message, FATE_DELIVERED);
	messaging_receive(to->messaging, message, NULL);
}
