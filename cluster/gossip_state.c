/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/gossip_internal.h"

/* ---- Values ---- */

static const uint8_t *
gossip_values_bytes(const struct gossip_values *values)
{
	return (const uint8_t *)&values->at[gossip_values_count(values)];
}

struct slice
gossip_values_get(
    const struct gossip_values *values, enum application_state state, int32_t *version)
{
	uint32_t bit = application_state_bit(state), index, start;

	if (values == NULL || (values->mask & bit) == 0)
		return slice_null;
	index = (uint32_t)__builtin_popcount(values->mask & (bit - 1));
	start = index == 0 ? 0 : values->at[index - 1].end;
	if (version != NULL)
		*version = values->at[index].version;
	return slice_of(gossip_values_bytes(values) + start, values->at[index].end - start);
}

struct gossip_values *
gossip_values_merge(const struct gossip_values *values, const struct gossip_delta_value *changes,
    uint32_t count, uint32_t *changed, int32_t *version_max)
{
	struct gossip_delta_value all[STATE_COUNT];
	struct gossip_values *merged;
	uint32_t mask = values == NULL ? 0 : values->mask;
	uint32_t newer = 0, size = 0, at = 0;
	uint8_t *bytes;

	for (uint32_t bits = mask; bits != 0; bits &= bits - 1) {
		struct gossip_delta_value *value = &all[__builtin_ctz(bits)];

		value->value = gossip_values_get(
		    values, (enum application_state)__builtin_ctz(bits), &value->version);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bit = application_state_bit(changes[i].state);
		struct gossip_delta_value *value = &all[changes[i].state];

		if ((mask & bit) != 0 && value->version >= changes[i].version)
			continue;
		if ((mask & bit) == 0 || !slice_equal(value->value, changes[i].value))
			*changed |= bit;
		if (changes[i].version > *version_max)
			*version_max = changes[i].version;
		*value = changes[i];
		mask |= bit;
		newer |= bit;
	}
	if (newer == 0)
		return NULL;
	for (uint32_t bits = mask; bits != 0; bits &= bits - 1)
		size += (uint32_t)all[__builtin_ctz(bits)].value.size;
	merged = xmalloc(
	    sizeof(*merged) + (size_t)__builtin_popcount(mask) * sizeof(merged->at[0]) + size);
	merged->retired_next = NULL;
	merged->mask = mask;
	merged->size = size;
	bytes = (uint8_t *)gossip_values_bytes(merged);
	size = 0;
	for (uint32_t bits = mask; bits != 0; bits &= bits - 1) {
		const struct gossip_delta_value *value = &all[__builtin_ctz(bits)];

		if (value->value.size > 0)
			memcpy(bytes + size, value->value.data, value->value.size);
		size += (uint32_t)value->value.size;
		merged->at[at].version = value->version;
		merged->at[at++].end = size;
	}
	return merged;
}

void
gossip_retire_locked(struct gossip *gossip, struct gossip_values *values)
{
	if (values == NULL)
		return;
	values->retired_next = gossip->retired;
	gossip->retired = values;
}

void
gossip_free_retired_locked(struct gossip *gossip)
{
	while (gossip->retired != NULL) {
		struct gossip_values *values = gossip->retired;

		gossip->retired = values->retired_next;
		free(values);
	}
}

/* ---- The table and its lists ---- */

struct gossip_slot *
gossip_slot_locked(struct gossip *gossip, const struct peer *peer)
{
	if (peer->index >= gossip->slot_count) {
		uint32_t count = gossip->slot_count == 0 ? 16 : gossip->slot_count;

		while (count <= peer->index)
			count *= 2;
		gossip->slots = xrealloc(gossip->slots, count * sizeof(*gossip->slots));
		memset(gossip->slots + gossip->slot_count, 0,
		    (count - gossip->slot_count) * sizeof(*gossip->slots));
		gossip->slot_count = count;
	}
	return &gossip->slots[peer->index];
}

struct gossip_endpoint *
gossip_find_locked(const struct gossip *gossip, const struct peer *peer)
{
	return peer == NULL || peer->index >= gossip->slot_count
	    ? NULL
	    : gossip->slots[peer->index].endpoint;
}

static uint32_t
gossip_peers_add(struct gossip_peers *list, struct gossip_endpoint *endpoint)
{
	if (list->count == list->capacity) {
		list->capacity = list->capacity == 0 ? 16 : list->capacity * 2;
		list->at = xrealloc(list->at, list->capacity * sizeof(struct gossip_endpoint *));
	}
	list->at[list->count] = endpoint;
	return list->count++;
}

struct gossip_endpoint *
gossip_add_locked(struct gossip *gossip, struct peer *peer)
{
	struct gossip_slot *slot = gossip_slot_locked(gossip, peer);
	struct gossip_endpoint *endpoint = xzalloc(sizeof(*endpoint));

	assert(slot->endpoint == NULL);
	endpoint->peer = peer;
	endpoint->updated_ns = gossip_now_ns(gossip);
	endpoint->order = gossip_peers_add(&gossip->order, endpoint);
	slot->endpoint = endpoint;
	return endpoint;
}

static struct gossip_peers *
gossip_list_of(struct gossip *gossip, enum gossip_list list)
{
	return list == GOSSIP_LIVE ? &gossip->live : &gossip->unreachable;
}

void
gossip_list_locked(struct gossip *gossip, struct gossip_endpoint *endpoint, enum gossip_list list)
{
	if (endpoint->list == list)
		return;
	if (endpoint->list != GOSSIP_NO_LIST) {
		struct gossip_peers *old = gossip_list_of(gossip, endpoint->list);
		struct gossip_endpoint *last = old->at[--old->count];

		old->at[endpoint->list_index] = last;
		last->list_index = endpoint->list_index;
	}
	endpoint->list = (uint8_t)list;
	if (list != GOSSIP_NO_LIST)
		endpoint->list_index = gossip_peers_add(gossip_list_of(gossip, list), endpoint);
	if (list == GOSSIP_UNREACHABLE)
		endpoint->down_ns = gossip_now_ns(gossip);
	atomic_store_explicit(&endpoint->peer->is_alive, list == GOSSIP_LIVE, memory_order_relaxed);
}

void
gossip_evict_locked(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	struct gossip_endpoint *last = gossip->order.at[--gossip->order.count];

	assert(!endpoint->peer->is_local);
	gossip->order.at[endpoint->order] = last;
	last->order = endpoint->order;
	gossip_list_locked(gossip, endpoint, GOSSIP_NO_LIST);
	failure_detector_remove(gossip->detector, endpoint->peer);
	gossip->slots[endpoint->peer->index].endpoint = NULL;
	gossip_retire_locked(gossip, endpoint->values);
	free(endpoint);
}

bool
gossip_is_quarantined_locked(
    const struct gossip *gossip, const struct peer *peer, int32_t generation, uint64_t now_ns)
{
	const struct gossip_slot *slot;

	if (peer->index >= gossip->slot_count)
		return false;
	slot = &gossip->slots[peer->index];
	return slot->quarantined_ns > now_ns && generation <= slot->quarantined_generation;
}

void
gossip_quarantine_locked(struct gossip *gossip, struct peer *peer, int32_t generation, uint64_t ns)
{
	struct gossip_slot *slot = gossip_slot_locked(gossip, peer);

	slot->quarantined_ns = gossip_now_ns(gossip) + ns;
	slot->quarantined_generation = generation;
}

/* What the gossiper itself must know of a status. */
static void
gossip_note_status(struct gossip *gossip, struct gossip_endpoint *endpoint)
{
	struct slice value = gossip_values_get(endpoint->values, STATE_STATUS_WITH_PORT, NULL);
	struct node_status status;
	struct error err;

	if (value.data == NULL)
		value = gossip_values_get(endpoint->values, STATE_STATUS, NULL);
	if (node_status_parse(value, gossip->local->endpoint.port, &status, &err) != 0) {
		char text[ENDPOINT_TEXT_SIZE];

		/* As a node without status: it takes no part in the ring, but is not lost either. */
		log_warn("Status of %s is not understood: %s",
		    endpoint_format(&endpoint->peer->endpoint, text), err.text);
	}
	endpoint->status = (uint8_t)status.kind;
	endpoint->expires_ms = status.kind == NODE_STATUS_LEFT || status.kind == NODE_STATUS_REMOVED
	    ? status.expires_ms
	    : 0;
}

uint32_t
gossip_merge_locked(struct gossip *gossip, struct gossip_endpoint *endpoint,
    const struct gossip_delta_value *values, uint32_t count)
{
	uint32_t changed = 0;
	struct gossip_values *merged =
	    gossip_values_merge(endpoint->values, values, count, &changed, &endpoint->version_max);

	if (merged == NULL)
		return 0;
	gossip_retire_locked(gossip, endpoint->values);
	endpoint->values = merged;
	if (changed &
	    (application_state_bit(STATE_STATUS) | application_state_bit(STATE_STATUS_WITH_PORT)))
		gossip_note_status(gossip, endpoint);
	return changed;
}

bool
gossip_is_member_locked(const struct gossip *gossip, const struct gossip_endpoint *endpoint)
{
	if (gossip->options.is_member != NULL)
		return gossip->options.is_member(gossip->options.context, endpoint->peer);
	switch ((enum node_status_kind)endpoint->status) {
	case NODE_STATUS_NORMAL:
	case NODE_STATUS_LEAVING:
	case NODE_STATUS_MOVING:
		return true;
	case NODE_STATUS_SHUTDOWN:
		/* It had a place before it stopped, or else it had no tokens. */
		return gossip_values_get(endpoint->values, STATE_TOKENS, NULL).data != NULL;
	case NODE_STATUS_NONE:
		return endpoint->generation == 0; /* system.peers has members only */
	default:
		return false;
	}
}

void
gossip_state_fini(struct gossip *gossip)
{
	for (uint32_t i = 0; i < gossip->slot_count; i++) {
		if (gossip->slots[i].endpoint == NULL)
			continue;
		free(gossip->slots[i].endpoint->values);
		free(gossip->slots[i].endpoint);
	}
	free(gossip->slots);
	free(gossip->order.at);
	free(gossip->live.at);
	free(gossip->unreachable.at);
	gossip_free_retired_locked(gossip);
}
