/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/stress_ring.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

uint32_t
stress_ring_add_node(
    struct stress_ring *ring, const char *address, const char *datacenter, const char *rack)
{
	ring->nodes = xrealloc(ring->nodes, (ring->node_count + 1) * sizeof(*ring->nodes));
	ring->nodes[ring->node_count] = (struct stress_ring_node){
	    xstrdup(address), xstrdup(datacenter), xstrdup(rack), STRESS_NO_HOST};
	return ring->node_count++;
}

void
stress_ring_add_token(struct stress_ring *ring, uint32_t node, int64_t token)
{
	ring->tokens = xrealloc(ring->tokens, (ring->token_count + 1) * sizeof(*ring->tokens));
	ring->tokens[ring->token_count++] = (struct stress_ring_token){token, node};
}

static int
stress_ring_compare(const void *left, const void *right)
{
	const struct stress_ring_token *a = left, *b = right;

	return a->token < b->token ? -1 : a->token > b->token;
}

void
stress_ring_sort(struct stress_ring *ring)
{
	if (ring->token_count > 1)
		qsort(ring->tokens, ring->token_count, sizeof(*ring->tokens), stress_ring_compare);
}

void
stress_ring_fini(struct stress_ring *ring)
{
	for (uint32_t i = 0; i < ring->node_count; i++) {
		free(ring->nodes[i].address);
		free(ring->nodes[i].datacenter);
		free(ring->nodes[i].rack);
	}
	free(ring->nodes);
	free(ring->tokens);
	memset(ring, 0, sizeof(*ring));
}

/* ---- Replicas ------------------------------------------------------------------------------------------ */

/* The nodes that a walk around the ring has chosen. */
struct stress_walk {
	const struct stress_ring *ring;
	const struct stress_replication *replication;
	uint32_t *chosen; /* nodes, in order */
	uint32_t count;
	uint32_t rack_count; /* of the datacenter */
	uint32_t wanted;
};

static bool
stress_walk_has(const struct stress_walk *walk, uint32_t node)
{
	for (uint32_t i = 0; i < walk->count; i++) {
		if (walk->chosen[i] == node)
			return true;
	}
	return false;
}

static bool
stress_walk_has_rack(const struct stress_walk *walk, uint32_t node)
{
	const struct stress_ring_node *nodes = walk->ring->nodes;

	for (uint32_t i = 0; i < walk->count; i++) {
		if (strcmp(nodes[walk->chosen[i]].rack, nodes[node].rack) == 0)
			return true;
	}
	return false;
}

/* Is it of the datacenter that counts? */
static bool
stress_walk_counts(const struct stress_walk *walk, uint32_t node)
{
	const struct stress_replication *replication = walk->replication;

	return replication->is_simple ||
	    strcmp(walk->ring->nodes[node].datacenter, replication->datacenter) == 0;
}

/*
 * A second node of a rack is taken only when the racks that are left could not fill the factor: so many
 * repeats there may be (NetworkTopologyStrategy's acceptableRackRepeats), in the order of the walk.
 */
static void
stress_walk_from(struct stress_walk *walk, uint32_t at)
{
	const struct stress_ring *ring = walk->ring;
	uint32_t repeats = walk->wanted > walk->rack_count ? walk->wanted - walk->rack_count : 0;

	walk->count = 0;
	for (uint32_t i = 0; i < ring->token_count && walk->count < walk->wanted; i++) {
		uint32_t node = ring->tokens[(at + i) % ring->token_count].node;

		if (!stress_walk_counts(walk, node) || stress_walk_has(walk, node))
			continue;
		if (!walk->replication->is_simple && stress_walk_has_rack(walk, node)) {
			if (repeats == 0)
				continue;
			repeats--;
		}
		walk->chosen[walk->count++] = node;
	}
}

static void
stress_walk_init(struct stress_walk *walk, const struct stress_ring *ring,
    const struct stress_replication *replication)
{
	uint32_t members = 0;

	*walk = (struct stress_walk){.ring = ring, .replication = replication};
	walk->chosen = xcalloc(ring->node_count + 1, sizeof(*walk->chosen));
	/* One of each rack, to count them. */
	for (uint32_t node = 0; node < ring->node_count; node++) {
		if (!stress_walk_counts(walk, node))
			continue;
		members++;
		if (!stress_walk_has_rack(walk, node))
			walk->chosen[walk->count++] = node;
	}
	walk->rack_count = walk->count;
	walk->wanted = replication->factor < members ? replication->factor : members;
}

void
stress_placement_init(struct stress_placement *placement, const struct stress_ring *ring,
    const struct stress_replication *replication)
{
	struct stress_walk walk;

	*placement = (struct stress_placement){.ring = ring};
	if (ring->token_count == 0 || replication->factor == 0)
		return;
	stress_walk_init(&walk, ring, replication);
	placement->width = walk.wanted;
	placement->hosts =
	    xcalloc((size_t)ring->token_count * walk.wanted + 1, sizeof(*placement->hosts));
	for (uint32_t i = 0; i < ring->token_count; i++) {
		uint16_t *hosts = placement->hosts + (size_t)i * walk.wanted;
		uint32_t count = 0;

		stress_walk_from(&walk, i);
		for (uint32_t j = 0; j < walk.count; j++) {
			if (ring->nodes[walk.chosen[j]].host != STRESS_NO_HOST)
				hosts[count++] = ring->nodes[walk.chosen[j]].host;
		}
		while (count < walk.wanted)
			hosts[count++] = STRESS_NO_HOST;
	}
	free(walk.chosen);
}

void
stress_placement_fini(struct stress_placement *placement)
{
	free(placement->hosts);
	memset(placement, 0, sizeof(*placement));
}

const uint16_t *
stress_placement_find(const struct stress_placement *placement, int64_t token)
{
	const struct stress_ring *ring = placement->ring;
	uint32_t low = 0, high;

	if (placement->width == 0 || ring->token_count == 0)
		return NULL;
	high = ring->token_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ring->tokens[middle].token < token)
			low = middle + 1;
		else
			high = middle;
	}
	return placement->hosts + (size_t)(low % ring->token_count) * placement->width;
}
