/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cluster/ranks.h"

/* Of a shard: beyond, what is open is only found by looking everywhere. */
enum { PAXOS_TRACKER_ROOM = 4096 };

struct paxos_tracked {
	struct paxos_tracked *next;
	struct uuid table, ballot;
	size_t size;
	uint8_t key[];
};

void
paxos_tracker_init(struct paxos_tracker *tracker)
{
	memset(tracker, 0, sizeof(*tracker));
	for (int i = 0; i < PAXOS_TRACKER_SHARDS; i++)
		lock_init(&tracker->shards[i].lock, "paxos tracker", RANK_PAXOS);
	atomic_init(&tracker->has_forgotten, true);
}

void
paxos_tracker_fini(struct paxos_tracker *tracker)
{
	for (int i = 0; i < PAXOS_TRACKER_SHARDS; i++) {
		for (int j = 0; j < PAXOS_TRACKER_BUCKETS; j++) {
			while (tracker->shards[i].buckets[j] != NULL) {
				struct paxos_tracked *tracked = tracker->shards[i].buckets[j];

				tracker->shards[i].buckets[j] = tracked->next;
				free(tracked);
			}
		}
		lock_fini(&tracker->shards[i].lock);
	}
}

/* The place of the partition in its shard, which is locked: *out is where it hangs, or could. */
static uint32_t
paxos_tracker_find(struct paxos_tracker *tracker, const struct uuid *table, struct slice key,
    struct paxos_tracked ***out)
{
	uint64_t hash = hash_bytes(key);
	uint32_t shard = (uint32_t)(hash >> 32) % PAXOS_TRACKER_SHARDS;
	struct paxos_tracked **at = &tracker->shards[shard].buckets[hash % PAXOS_TRACKER_BUCKETS];

	lock_take(&tracker->shards[shard].lock);
	while (*at != NULL &&
	    (!uuid_equal(&(*at)->table, table) ||
		!slice_equal(slice_of((*at)->key, (*at)->size), key)))
		at = &(*at)->next;
	*out = at;
	return shard;
}

void
paxos_tracker_open(struct paxos_tracker *tracker, const struct uuid *table, struct slice key,
    const struct uuid *ballot)
{
	struct paxos_tracked **at, *tracked;
	uint32_t shard = paxos_tracker_find(tracker, table, key, &at);

	tracked = *at;
	if (tracked != NULL) {
		if (paxos_ballot_compare(ballot, &tracked->ballot) > 0)
			tracked->ballot = *ballot;
	} else if (tracker->shards[shard].count < PAXOS_TRACKER_ROOM) {
		tracked = xmalloc(sizeof(*tracked) + key.size);
		*tracked =
		    (struct paxos_tracked){.table = *table, .ballot = *ballot, .size = key.size};
		memcpy(tracked->key, key.data, key.size);
		*at = tracked;
		tracker->shards[shard].count++;
	} else {
		atomic_store_explicit(&tracker->has_forgotten, true, memory_order_relaxed);
	}
	lock_drop(&tracker->shards[shard].lock);
}

void
paxos_tracker_close(struct paxos_tracker *tracker, const struct uuid *table, struct slice key,
    const struct uuid *ballot)
{
	struct paxos_tracked **at, *tracked;
	uint32_t shard = paxos_tracker_find(tracker, table, key, &at);

	tracked = *at;
	if (tracked != NULL && paxos_ballot_compare(&tracked->ballot, ballot) <= 0) {
		*at = tracked->next;
		tracker->shards[shard].count--;
	} else {
		tracked = NULL;
	}
	lock_drop(&tracker->shards[shard].lock);
	free(tracked);
}

/* One in the arena. */
static int
paxos_tracked_copy(const struct paxos_tracked *tracked, struct arena *arena,
    struct paxos_open **out, struct error *err)
{
	struct paxos_open *open = arena_zalloc(arena, sizeof(*open));

	if (open != NULL)
		open->key = arena_copy(arena, slice_of(tracked->key, tracked->size));
	if (open == NULL || slice_is_null(open->key))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the state of Paxos");
	open->table = tracked->table;
	open->ballot = tracked->ballot;
	open->next = *out;
	*out = open;
	return 0;
}

static int
paxos_bucket_take(struct paxos_tracked **at, int64_t before_us, struct arena *arena,
    struct paxos_open **out, uint32_t *count, struct error *err)
{
	while (*at != NULL) {
		struct paxos_tracked *tracked = *at;

		if (paxos_ballot_timestamp(&tracked->ballot) >= before_us) {
			at = &tracked->next;
			continue;
		}
		if (paxos_tracked_copy(tracked, arena, out, err) != 0)
			return -1;
		*at = tracked->next;
		(*count)--;
		free(tracked);
	}
	return 0;
}

int
paxos_tracker_take(struct paxos_tracker *tracker, int64_t before_us, struct arena *arena,
    struct paxos_open **out, struct error *err)
{
	int rc = 0;

	*out = NULL;
	for (int i = 0; i < PAXOS_TRACKER_SHARDS && rc == 0; i++) {
		lock_take(&tracker->shards[i].lock);
		for (int j = 0; j < PAXOS_TRACKER_BUCKETS && rc == 0; j++)
			rc = paxos_bucket_take(&tracker->shards[i].buckets[j], before_us, arena,
			    out, &tracker->shards[i].count, err);
		lock_drop(&tracker->shards[i].lock);
	}
	return rc;
}

uint32_t
paxos_tracker_count(struct paxos_tracker *tracker)
{
	uint32_t count = 0;

	for (int i = 0; i < PAXOS_TRACKER_SHARDS; i++) {
		lock_take(&tracker->shards[i].lock);
		count += tracker->shards[i].count;
		lock_drop(&tracker->shards[i].lock);
	}
	return count;
}
