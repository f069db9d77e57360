/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_fixture.h"
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct endpoint
ring_endpoint(uint32_t number)
{
	return (struct endpoint){.address = {127, 0, 1, (uint8_t)number}, .size = 4, .port = 7000};
}

void
ring_fixture_init(struct ring_fixture *ring, uint64_t seed)
{
	struct endpoint local = ring_endpoint(1);

	memset(ring, 0, sizeof(*ring));
	ring->random = seed * 2 + 1;
	ring->peers = peers_new(&local);
	ring->holder = topology_holder_new(ring->peers);
}

void
ring_fixture_fini(struct ring_fixture *ring)
{
	topology_holder_free(ring->holder);
	peers_free(ring->peers);
}

uint64_t
ring_random(struct ring_fixture *ring)
{
	uint64_t mixed = ring->random += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

uint32_t
ring_chance(struct ring_fixture *ring, uint32_t bound)
{
	return (uint32_t)(ring_random(ring) % bound);
}

struct member *
ring_add(struct ring_fixture *ring, const char *datacenter, const char *rack)
{
	uint32_t at = ring->count++;
	struct endpoint endpoint = ring_endpoint(at + 1);
	struct member *member = &ring->members[at];

	ck_assert_uint_lt(at, RING_NODES_MAX);
	snprintf(ring->names[at][0], sizeof(ring->names[at][0]), "%s", datacenter);
	snprintf(ring->names[at][1], sizeof(ring->names[at][1]), "%s", rack);
	*member = (struct member){.peer = peers_get(ring->peers, &endpoint),
	    .datacenter = ring->names[at][0],
	    .rack = ring->names[at][1],
	    .state = MEMBER_NORMAL,
	    .tokens = ring->tokens[at],
	    .next_tokens = ring->next_tokens[at]};
	member->host_id.bytes[0] = (uint8_t)(at + 1);
	atomic_store(&member->peer->is_alive, true);
	return member;
}

void
ring_set_tokens(
    struct ring_fixture *ring, struct member *member, const int64_t *tokens, uint32_t count)
{
	memcpy(ring->tokens[member - ring->members], tokens, count * sizeof(*tokens));
	member->token_count = count;
}

void
ring_set_next_tokens(
    struct ring_fixture *ring, struct member *member, const int64_t *tokens, uint32_t count)
{
	memcpy(ring->next_tokens[member - ring->members], tokens, count * sizeof(*tokens));
	member->next_token_count = count;
}

struct member *
ring_add_random(struct ring_fixture *ring, const char *datacenter, const char *rack, uint32_t count)
{
	struct member *member = ring_add(ring, datacenter, rack);
	int64_t tokens[RING_TOKENS_MAX];

	for (uint32_t i = 0; i < count; i++)
		tokens[i] = (int64_t)ring_random(ring);
	ring_set_tokens(ring, member, tokens, count);
	return member;
}

void
ring_publish(struct ring_fixture *ring)
{
	struct error err;

	ck_assert_msg(
	    topology_update(ring->holder, ring->members, ring->count, &err) == 0, "%s", err.text);
}

struct keyspace_metadata *
ring_keyspace(const char *class_name, ...)
{
	struct keyspace_metadata *keyspace;
	struct option_map options = {NULL, 0};
	struct arena arena;
	const char *key;
	va_list list;

	arena_init(&arena, 1024);
	option_map_put(&options, slice_of_string("class"), slice_of_string(class_name), &arena);
	va_start(list, class_name);
	while ((key = va_arg(list, const char *)) != NULL) {
		const char *value = va_arg(list, const char *);

		option_map_put(&options, slice_of_string(key), slice_of_string(value), &arena);
	}
	va_end(list);
	keyspace = keyspace_new(slice_of_string("ks"), &options, true, false);
	arena_fini(&arena);
	return keyspace;
}

/* ---- The model ---- */

static int
model_compare(const void *a, const void *b)
{
	const struct model_token *left = a, *right = b;

	return left->token < right->token ? -1 : left->token > right->token;
}

uint32_t
model_ring(const struct ring_fixture *ring, const struct member *change, bool leavers_go,
    struct model_token *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ring->count; i++) {
		const struct member *member = &ring->members[i];
		bool is_done = member == change,
		     is_moved = is_done && member->state == MEMBER_MOVING;
		bool is_there = true;

		if (member->state == MEMBER_JOINING || member->state == MEMBER_REPLACING)
			is_there = is_done;
		if (member->state == MEMBER_LEAVING && (is_done || leavers_go))
			is_there = false;
		if (change != NULL && change->replaces == member->peer)
			is_there = false;
		for (uint32_t n = 0; is_there && n < member->token_count; n++)
			out[count++] = (struct model_token){
			    is_moved ? member->next_tokens[n] : member->tokens[n], i};
	}
	qsort(out, count, sizeof(*out), model_compare);
	return count;
}

/* The nodes of a data center in the order in which a walk from the token meets them, each once. */
static uint32_t
model_meet(const struct ring_fixture *ring, const struct model_token *tokens, uint32_t token_count,
    const char *datacenter, int64_t token, uint32_t *out)
{
	uint32_t first = 0, count = 0;

	while (first < token_count && tokens[first].token < token)
		first++;
	for (uint32_t i = 0; i < token_count; i++) {
		uint32_t member = tokens[(first + i) % token_count].member;
		bool is_met =
		    datacenter != NULL && strcmp(ring->members[member].datacenter, datacenter) != 0;

		for (uint32_t n = 0; !is_met && n < count; n++)
			is_met = out[n] == member;
		if (!is_met)
			out[count++] = member;
	}
	return count;
}

static bool
model_rack_is_among(
    const struct ring_fixture *ring, const uint32_t *members, uint32_t count, const char *rack)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(ring->members[members[i]].rack, rack) == 0)
			return true;
	}
	return false;
}

static uint32_t
model_racks(const struct ring_fixture *ring, const uint32_t *met, uint32_t count)
{
	uint32_t racks = 0;

	for (uint32_t i = 0; i < count; i++)
		racks += !model_rack_is_among(ring, met, i, ring->members[met[i]].rack);
	return racks;
}

uint32_t
model_replicas(const struct ring_fixture *ring, const struct model_token *tokens,
    uint32_t token_count, const struct model_factor *factors, uint32_t factor_count, int64_t token,
    uint32_t *out)
{
	uint32_t total = 0;

	for (uint32_t f = 0; token_count > 0 && f < factor_count; f++) {
		uint32_t met[RING_NODES_MAX], *chosen = out + total;
		uint32_t count =
		    model_meet(ring, tokens, token_count, factors[f].datacenter, token, met);
		uint32_t racks = model_racks(ring, met, count), taken = 0;
		int64_t repeats = (int64_t)factors[f].factor - racks;

		for (uint32_t i = 0; i < count && taken < factors[f].factor; i++) {
			bool is_repeat = factors[f].datacenter != NULL &&
			    model_rack_is_among(ring, chosen, taken, ring->members[met[i]].rack);

			if (is_repeat && repeats-- <= 0)
				continue;
			chosen[taken++] = met[i];
		}
		total += taken;
	}
	return total;
}
