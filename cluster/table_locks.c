/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/table_locks.h"

void
table_locks_init(struct table_locks *locks)
{
	for (int i = 0; i < TABLE_LOCKS_COUNT; i++)
		pthread_mutex_init(&locks->stripes[i], NULL);
}

void
table_locks_fini(struct table_locks *locks)
{
	for (int i = 0; i < TABLE_LOCKS_COUNT; i++)
		pthread_mutex_destroy(&locks->stripes[i]);
}

static uint32_t
table_locks_stripe(int64_t token)
{
	/* Tokens are hashes: any bits will do. */
	return (uint32_t)((uint64_t)token >> 20) % TABLE_LOCKS_COUNT;
}

void
table_locks_take(struct table_locks *locks, int64_t token)
{
	pthread_mutex_lock(&locks->stripes[table_locks_stripe(token)]);
}

void
table_locks_drop(struct table_locks *locks, int64_t token)
{
	pthread_mutex_unlock(&locks->stripes[table_locks_stripe(token)]);
}

void
table_locks_set_add(struct table_locks_set *set, int64_t token)
{
	uint32_t stripe = table_locks_stripe(token);

	set->bits[stripe / 64] |= UINT64_C(1) << (stripe % 64);
}

void
table_locks_take_set(struct table_locks *locks, const struct table_locks_set *set)
{
	for (uint32_t i = 0; i < TABLE_LOCKS_COUNT; i++) {
		if ((set->bits[i / 64] >> (i % 64) & 1) != 0)
			pthread_mutex_lock(&locks->stripes[i]);
	}
}

void
table_locks_drop_set(struct table_locks *locks, const struct table_locks_set *set)
{
	for (uint32_t i = 0; i < TABLE_LOCKS_COUNT; i++) {
		if ((set->bits[i / 64] >> (i % 64) & 1) != 0)
			pthread_mutex_unlock(&locks->stripes[i]);
	}
}
