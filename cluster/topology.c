/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/topology.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/ranks.h"
#include "cluster/topology_internal.h"

/* ---- The holder and its snapshots ---------------------------------------------------------- */

struct topology_holder {
	struct topology_slot *_Atomic current;

	/* The updating thread's. */
	struct peers *peers; /* borrowed */
	struct topology_slot *slots; /* owned */
	char *datacenter, *rack; /* owned; this node's */
	uint64_t version;
	struct topology_listener *listeners; /* borrowed */
};

/* Threads spread over the stripes by where their stacks lie. */
static atomic_long *
topology_stripe(struct topology_slot *slot)
{
	char here;
	uint64_t address = (uint64_t)(uintptr_t)&here >> 14;

	return &slot->stripes[(address * 0x9e3779b97f4a7c15ULL) >> 60].readers;
}

static_assert(TOPOLOGY_STRIPES == 16, "topology_stripe() takes four bits");

/*
 * Count into the slot first, then look whether it still is the current one. All of these are sequentially
 * consistent: either the updating thread, which swaps `current` and then adds up the readers, sees our count, or we see its swap. A
 * slot that was outdated and has become current again in between holds a snapshot that is complete: the load
 * that found it is the acquire of its publication.
 */
const struct topology *
topology_acquire(struct topology_holder *holder)
{
	struct topology_slot *slot = atomic_load(&holder->current);

	for (;;) {
		struct topology_slot *now;
		atomic_long *readers = topology_stripe(slot);

		atomic_fetch_add(readers, 1);
		now = atomic_load(&holder->current);
		if (now == slot)
			return slot->topology;
		atomic_fetch_sub(readers, 1);
		slot = now;
	}
}

void
topology_release(struct topology_holder *holder, const struct topology *topology)
{
	(void)holder;
	/* What was read of the snapshot happens before it is freed. */
	atomic_fetch_sub_explicit(topology_stripe(topology->slot), 1, memory_order_release);
}

/*
 * Nobody counts into a slot for good that is not current, so what is added up here can only be too much: readers may
 * leave meanwhile, or look in. Sums over stripes are right because a release that is seen has been counted in.
 */
static bool
topology_slot_is_unused(struct topology_slot *slot)
{
	long readers = 0;

	for (uint32_t i = 0; i < TOPOLOGY_STRIPES; i++)
		readers += atomic_load(&slot->stripes[i].readers);
	return readers == 0;
}

static void
topology_free(struct topology *topology)
{
	if (topology == NULL)
		return;
	for (uint32_t i = 0; i < TOPOLOGY_BUCKETS; i++) {
		struct replication *replication =
		    atomic_load_explicit(&topology->buckets[i], memory_order_relaxed);

		while (replication != NULL) {
			struct replication *next = replication->next;

			replication_free(replication);
			replication = next;
		}
	}
	lock_fini(&topology->build);
	arena_fini(&topology->arena);
	free(topology);
}

/* A slot without a snapshot; frees the snapshots that nobody reads any more. */
static struct topology_slot *
topology_holder_slot(struct topology_holder *holder)
{
	struct topology_slot *current = atomic_load(&holder->current), *found = NULL;

	for (struct topology_slot *slot = holder->slots; slot != NULL; slot = slot->next) {
		if (slot == current || (slot->topology != NULL && !topology_slot_is_unused(slot)))
			continue;
		topology_free(slot->topology);
		slot->topology = NULL;
		found = slot;
	}
	if (found == NULL) {
		found = aligned_alloc(_Alignof(struct topology_slot), sizeof(*found));
		if (found == NULL)
			abort();
		memset(found, 0, sizeof(*found));
		found->next = holder->slots;
		holder->slots = found;
	}
	return found;
}

/* The keyspaces that were asked for on the last snapshot are computed before requests can see the new one. */
static void
topology_carry_over(const struct topology *from, const struct topology *to)
{
	for (uint32_t i = 0; i < TOPOLOGY_BUCKETS; i++) {
		const struct replication *replication =
		    atomic_load_explicit(&from->buckets[i], memory_order_acquire);

		for (; replication != NULL; replication = replication->next) {
			if (atomic_load_explicit(&replication->is_used, memory_order_relaxed))
				topology_replication_of(to, &replication->options);
		}
	}
}

static void
topology_publish(struct topology_holder *holder, struct topology *topology)
{
	struct topology_slot *slot = topology_holder_slot(holder);
	struct topology_slot *old = atomic_load(&holder->current);

	topology->version = ++holder->version;
	topology->slot = slot;
	slot->topology = topology;
	if (old != NULL)
		topology_carry_over(old->topology, topology);
	atomic_store(&holder->current, slot);
}

/* ---- Making a snapshot --------------------------------------------------------------------- */

static void *
topology_alloc(struct topology *topology, size_t count, size_t size)
{
	void *memory = arena_calloc(&topology->arena, count + 1, size);

	if (memory == NULL)
		abort();
	return memory;
}

/* One copy of each name in a snapshot. Few names: racks and data centers. */
struct topology_names {
	const char **names;
	uint32_t count;
};

static const char *
topology_intern(struct topology *topology, struct topology_names *names, const char *name)
{
	uint32_t low = 0, high = names->count;
	char *copy;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = strcmp(names->names[middle], name);

		if (order == 0)
			return names->names[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	copy = arena_strdup(&topology->arena, name);
	if (copy == NULL)
		abort();
	names->names = xrealloc(names->names, (names->count + 1) * sizeof(*names->names));
	memmove(&names->names[low + 1], &names->names[low],
	    (names->count - low) * sizeof(*names->names));
	names->names[low] = copy;
	names->count++;
	return copy;
}

static int
topology_compare_tokens(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static const int64_t *
topology_copy_tokens(struct topology *topology, const int64_t *tokens, uint32_t count)
{
	int64_t *copy = topology_alloc(topology, count, sizeof(*copy));

	if (count > 0)
		memcpy(copy, tokens, count * sizeof(*copy));
	qsort(copy, count, sizeof(*copy), topology_compare_tokens);
	return copy;
}

static int
topology_compare_members(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	return endpoint_compare(&left->peer->endpoint, &right->peer->endpoint);
}

static void
topology_copy_members(struct topology *topology, const struct member *members, uint32_t count)
{
	struct topology_names names = {NULL, 0};

	topology->local_datacenter = topology_intern(topology, &names, topology->local_datacenter);
	topology->local_rack = topology_intern(topology, &names, topology->local_rack);
	topology->member_count = count;
	topology->members = topology_alloc(topology, count, sizeof(*topology->members));
	for (uint32_t i = 0; i < count; i++) {
		struct member *member = &topology->members[i];

		*member = members[i];
		member->datacenter = topology_intern(topology, &names, members[i].datacenter);
		member->rack = topology_intern(topology, &names, members[i].rack);
		member->tokens =
		    topology_copy_tokens(topology, members[i].tokens, members[i].token_count);
		if (member->state != MEMBER_MOVING)
			member->next_token_count = 0;
		member->next_tokens = topology_copy_tokens(
		    topology, members[i].next_tokens, member->next_token_count);
		if (member->state != MEMBER_REPLACING)
			member->replaces = NULL;
		if (!member_is_owner(member) || member->state != MEMBER_NORMAL)
			topology->is_changing = true;
	}
	free(names.names);
	qsort(topology->members, count, sizeof(*topology->members), topology_compare_members);
}

/* Numbers for data centers (in the order of their names) and racks. */
static void
topology_number_places(struct topology *topology)
{
	uint32_t count = topology->member_count;
	const struct member **racks = xcalloc(count + 1, sizeof(*racks));

	topology->places = topology_alloc(topology, count, sizeof(*topology->places));
	topology->datacenters = topology_alloc(topology, count, sizeof(*topology->datacenters));
	for (uint32_t i = 0; i < count; i++) {
		const char *name = topology->members[i].datacenter;
		uint32_t at = 0;

		while (
		    at < topology->datacenter_count && strcmp(topology->datacenters[at], name) < 0)
			at++;
		if (at < topology->datacenter_count && topology->datacenters[at] == name)
			continue;
		memmove(&topology->datacenters[at + 1], &topology->datacenters[at],
		    (topology->datacenter_count - at) * sizeof(*topology->datacenters));
		topology->datacenters[at] = name;
		topology->datacenter_count++;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct member *member = &topology->members[i];
		uint32_t d = 0, r = 0;

		while (topology->datacenters[d] != member->datacenter)
			d++;
		while (r < topology->rack_count &&
		    (racks[r]->rack != member->rack || racks[r]->datacenter != member->datacenter))
			r++;
		if (r == topology->rack_count)
			racks[topology->rack_count++] = member;
		topology->places[i] = (struct ring_place){d, r};
	}
	free(racks);
}

static int
topology_compare_hosts(const void *a, const void *b, void *context)
{
	const struct topology *topology = context;

	return memcmp(&topology->members[*(const uint32_t *)a].host_id,
	    &topology->members[*(const uint32_t *)b].host_id, sizeof(struct uuid));
}

static int
topology_index_members(struct topology *topology, struct error *err)
{
	uint32_t count = topology->member_count;
	char text[ENDPOINT_TEXT_SIZE];

	for (uint32_t i = 0; i < count; i++) {
		if (topology->members[i].peer->index >= topology->by_peer_count)
			topology->by_peer_count = topology->members[i].peer->index + 1;
	}
	topology->by_peer =
	    topology_alloc(topology, topology->by_peer_count, sizeof(*topology->by_peer));
	topology->by_host = topology_alloc(topology, count, sizeof(*topology->by_host));
	for (uint32_t i = 0; i < count; i++) {
		const struct peer *peer = topology->members[i].peer;

		if (topology->by_peer[peer->index] != 0)
			return error_set(err, ERROR_INVALID, "%s is a member twice",
			    endpoint_format(&peer->endpoint, text));
		topology->by_peer[peer->index] = i + 1;
		topology->by_host[i] = i;
	}
	qsort_r(
	    topology->by_host, count, sizeof(*topology->by_host), topology_compare_hosts, topology);
	return 0;
}

struct topology_token {
	int64_t token;
	uint32_t owner;
};

static int
topology_compare_owned(const void *a, const void *b)
{
	const struct topology_token *left = a, *right = b;

	if (left->token != right->token)
		return left->token < right->token ? -1 : 1;
	return left->owner < right->owner ? -1 : left->owner > right->owner;
}

static int
topology_check_tokens(
    const struct topology *topology, const struct topology_token *all, struct error *err)
{
	char first[ENDPOINT_TEXT_SIZE], second[ENDPOINT_TEXT_SIZE];

	for (uint32_t i = 1; i < topology->token_count; i++) {
		if (all[i].token == all[i - 1].token)
			return error_set(err, ERROR_INVALID, "token %lld belongs to %s and to %s",
			    (long long)all[i].token,
			    endpoint_format(
				&topology->members[all[i - 1].owner].peer->endpoint, first),
			    endpoint_format(
				&topology->members[all[i].owner].peer->endpoint, second));
	}
	return 0;
}

static int
topology_make_ring(struct topology *topology, struct error *err)
{
	struct topology_token *all;
	uint32_t count = 0;
	int64_t *tokens;
	uint32_t *owners;
	int rc;

	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (member_is_owner(&topology->members[i]))
			topology->token_count += topology->members[i].token_count;
	}
	all = xcalloc(topology->token_count + 1, sizeof(*all));
	tokens = topology_alloc(topology, topology->token_count, sizeof(*tokens));
	owners = topology_alloc(topology, topology->token_count, sizeof(*owners));
	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct member *member = &topology->members[i];

		for (uint32_t n = 0; member_is_owner(member) && n < member->token_count; n++)
			all[count++] = (struct topology_token){member->tokens[n], i};
	}
	qsort(all, count, sizeof(*all), topology_compare_owned);
	rc = topology_check_tokens(topology, all, err);
	for (uint32_t i = 0; i < count; i++) {
		tokens[i] = all[i].token;
		owners[i] = all[i].owner;
	}
	topology->tokens = tokens;
	topology->owners = owners;
	free(all);
	return rc;
}

static int
topology_new(struct topology_holder *holder, const struct member *members, uint32_t count,
    struct topology **out, struct error *err)
{
	struct topology *topology = xzalloc(sizeof(*topology));

	arena_init(&topology->arena, 16 * 1024);
	lock_init(&topology->build, "topology.build", RANK_TOPOLOGY_BUILD);
	topology->local = peers_local(holder->peers);
	topology->local_datacenter = holder->datacenter;
	topology->local_rack = holder->rack;
	topology_copy_members(topology, members, count);
	topology_number_places(topology);
	if (topology_index_members(topology, err) != 0 || topology_make_ring(topology, err) != 0) {
		topology_free(topology);
		return -1;
	}
	*out = topology;
	return 0;
}

int
topology_update(
    struct topology_holder *holder, const struct member *members, uint32_t count, struct error *err)
{
	struct topology *topology;

	if (topology_new(holder, members, count, &topology, err) != 0)
		return -1;
	topology_publish(holder, topology);
	for (struct topology_listener *each = holder->listeners; each != NULL; each = each->next)
		each->changed(each);
	return 0;
}

void
topology_holder_listen(struct topology_holder *holder, struct topology_listener *listener)
{
	listener->next = holder->listeners;
	holder->listeners = listener;
}

void
topology_holder_set_local(struct topology_holder *holder, const char *datacenter, const char *rack)
{
	const struct topology *old = atomic_load(&holder->current)->topology;

	free(holder->datacenter);
	free(holder->rack);
	holder->datacenter = xstrdup(datacenter);
	holder->rack = xstrdup(rack);
	/* Cannot fail: these members were accepted before. */
	topology_update(holder, old->members, old->member_count, NULL);
}

struct topology_holder *
topology_holder_new(struct peers *peers)
{
	struct topology_holder *holder = xzalloc(sizeof(*holder));

	holder->peers = peers;
	holder->datacenter = xstrdup("datacenter1");
	holder->rack = xstrdup("rack1");
	topology_update(holder, NULL, 0, NULL);
	return holder;
}

void
topology_holder_free(struct topology_holder *holder)
{
	if (holder == NULL)
		return;
	while (holder->slots != NULL) {
		struct topology_slot *slot = holder->slots;

		holder->slots = slot->next;
		topology_free(slot->topology);
		free(slot);
	}
	free(holder->datacenter);
	free(holder->rack);
	free(holder);
}

/* ---- Members ------------------------------------------------------------------------------- */

uint64_t
topology_version(const struct topology *topology)
{
	return topology->version;
}

uint32_t
topology_member_count(const struct topology *topology)
{
	return topology->member_count;
}

const struct member *
topology_member(const struct topology *topology, uint32_t index)
{
	return &topology->members[index];
}

const struct member *
topology_find(const struct topology *topology, const struct peer *peer)
{
	uint32_t at = peer->index < topology->by_peer_count ? topology->by_peer[peer->index] : 0;

	return at == 0 ? NULL : &topology->members[at - 1];
}

const struct member *
topology_find_host(const struct topology *topology, const struct uuid *host_id)
{
	uint32_t low = 0, high = topology->member_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct member *member = &topology->members[topology->by_host[middle]];
		int order = memcmp(&member->host_id, host_id, sizeof(*host_id));

		if (order == 0)
			return member;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const char *
topology_datacenter(const struct topology *topology, const struct peer *peer)
{
	const struct member *member = topology_find(topology, peer);

	return member == NULL ? NULL : member->datacenter;
}

const char *
topology_rack(const struct topology *topology, const struct peer *peer)
{
	const struct member *member = topology_find(topology, peer);

	return member == NULL ? NULL : member->rack;
}

const char *
topology_local_datacenter(const struct topology *topology)
{
	return topology->local_datacenter;
}

const char *
topology_local_rack(const struct topology *topology)
{
	return topology->local_rack;
}

struct peer *
topology_local_peer(const struct topology *topology)
{
	return topology->local;
}

uint32_t
topology_datacenters(const struct topology *topology, const char *const **out)
{
	*out = topology->datacenters;
	return topology->datacenter_count;
}

uint32_t
topology_places(
    const struct topology *topology, struct arena *arena, struct replication_place **out)
{
	uint32_t count = topology->datacenter_count;
	bool has_local = false;

	*out = arena_calloc(arena, count + 1, sizeof(**out));
	if (*out == NULL)
		return 0;
	for (uint32_t d = 0; d < count; d++) {
		(*out)[d].datacenter = topology->datacenters[d];
		has_local = has_local || topology->datacenters[d] == topology->local_datacenter;
	}
	for (uint32_t i = 0; i < topology->member_count; i++)
		(*out)[topology->places[i].datacenter].node_count++;
	if (!has_local)
		(*out)[count++].datacenter = topology->local_datacenter;
	return count;
}

uint32_t
topology_token_count(const struct topology *topology)
{
	return topology->token_count;
}

int64_t
topology_token(const struct topology *topology, uint32_t index, const struct member **owner)
{
	if (owner != NULL)
		*owner = &topology->members[topology->owners[index]];
	return topology->tokens[index];
}

uint32_t
topology_token_index(const struct topology *topology, int64_t token)
{
	return topology_bound_index(topology->tokens, topology->token_count, token);
}

bool
topology_is_changing(const struct topology *topology)
{
	return topology->is_changing;
}
