/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/peer.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "base/lock.h"
#include "cluster/ranks.h"

/*
 * Peers lie in chunks that double in size and never move, so that peers_at() needs no lock: a chunk is published
 * before the count that reaches into it.
 */
enum { PEERS_CHUNK_FIRST = 32, PEERS_CHUNKS = 26 };

struct peers {
	struct peer *_Atomic *_Atomic chunks[PEERS_CHUNKS]; /* owned */
	atomic_uint count;

	struct lock lock;
	struct peer **table; /* guarded by lock; owned; open addressing by endpoint */
	uint32_t capacity; /* power of two */
};

/* Which chunk holds an index, and where: chunk c begins at FIRST * (2^c - 1). */
static void
peers_place(uint32_t index, uint32_t *chunk, uint32_t *at)
{
	uint32_t scaled = index / PEERS_CHUNK_FIRST + 1;

	*chunk = 31 - (uint32_t)__builtin_clz(scaled);
	*at = index - PEERS_CHUNK_FIRST * ((1u << *chunk) - 1);
}

static struct peer **
peers_slot_locked(struct peers *peers, const struct endpoint *endpoint)
{
	uint32_t mask = peers->capacity - 1;
	uint32_t at = endpoint_hash(endpoint) & mask;

	lock_assert_held(&peers->lock);
	while (peers->table[at] != NULL && !endpoint_equal(&peers->table[at]->endpoint, endpoint))
		at = (at + 1) & mask;
	return &peers->table[at];
}

static void
peers_grow_locked(struct peers *peers)
{
	struct peer **old = peers->table;
	uint32_t old_capacity = peers->capacity;

	peers->capacity = old_capacity * 2;
	peers->table = xcalloc(peers->capacity, sizeof(struct peer *));
	for (uint32_t i = 0; i < old_capacity; i++) {
		if (old[i] != NULL)
			*peers_slot_locked(peers, &old[i]->endpoint) = old[i];
	}
	free(old);
}

static struct peer *
peers_add_locked(struct peers *peers, const struct endpoint *endpoint)
{
	uint32_t index = atomic_load_explicit(&peers->count, memory_order_relaxed);
	struct peer *peer = xzalloc(sizeof(*peer));
	struct peer *_Atomic *entries;
	uint32_t chunk, at;

	if (index * 2 >= peers->capacity)
		peers_grow_locked(peers);
	peer->endpoint = *endpoint;
	peer->index = index;
	peer->is_local = index == 0;
	atomic_init(&peer->is_alive, index == 0);
	atomic_init(&peer->score, -1.0F);
	peers_place(index, &chunk, &at);
	entries = atomic_load_explicit(&peers->chunks[chunk], memory_order_relaxed);
	if (entries == NULL) {
		entries = xcalloc((size_t)PEERS_CHUNK_FIRST << chunk, sizeof(*entries));
		atomic_store_explicit(&peers->chunks[chunk], entries, memory_order_relaxed);
	}
	atomic_store_explicit(&entries[at], peer, memory_order_relaxed);
	*peers_slot_locked(peers, endpoint) = peer;
	/* Release: who reads the count sees the chunk, the entry and the peer. */
	atomic_store_explicit(&peers->count, index + 1, memory_order_release);
	return peer;
}

struct peers *
peers_new(const struct endpoint *local)
{
	struct peers *peers = xzalloc(sizeof(*peers));

	lock_init(&peers->lock, "peers", RANK_PEERS);
	peers->capacity = 2 * PEERS_CHUNK_FIRST;
	peers->table = xcalloc(peers->capacity, sizeof(struct peer *));
	peers_get(peers, local);
	return peers;
}

void
peers_free(struct peers *peers)
{
	uint32_t count;

	if (peers == NULL)
		return;
	count = peers_count(peers);
	for (uint32_t i = 0; i < count; i++)
		free(peers_at(peers, i));
	for (uint32_t i = 0; i < PEERS_CHUNKS; i++)
		free(atomic_load_explicit(&peers->chunks[i], memory_order_relaxed));
	free(peers->table);
	lock_fini(&peers->lock);
	free(peers);
}

struct peer *
peers_local(struct peers *peers)
{
	return peers_at(peers, 0);
}

struct peer *
peers_get(struct peers *peers, const struct endpoint *endpoint)
{
	struct peer *peer;

	lock_take(&peers->lock);
	peer = *peers_slot_locked(peers, endpoint);
	if (peer == NULL)
		peer = peers_add_locked(peers, endpoint);
	lock_drop(&peers->lock);
	return peer;
}

struct peer *
peers_find(struct peers *peers, const struct endpoint *endpoint)
{
	struct peer *peer;

	lock_take(&peers->lock);
	peer = *peers_slot_locked(peers, endpoint);
	lock_drop(&peers->lock);
	return peer;
}

uint32_t
peers_count(struct peers *peers)
{
	return atomic_load_explicit(&peers->count, memory_order_acquire);
}

struct peer *
peers_at(struct peers *peers, uint32_t index)
{
	struct peer *_Atomic *entries;
	uint32_t chunk, at;

	peers_place(index, &chunk, &at);
	entries = atomic_load_explicit(&peers->chunks[chunk], memory_order_relaxed);
	return atomic_load_explicit(&entries[at], memory_order_relaxed);
}
