/* SPDX-License-Identifier: Apache-2.0 */
#include "server/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/ranks.h"

void
limits_init(struct limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	lock_init(&limits->lock, "limits", RANK_LIMITS);
	map_init(&limits->addresses);
	limits->connections_max = -1;
	limits->connections_per_ip_max = -1;
	atomic_init(&limits->bytes_max, INT64_MAX);
	atomic_init(&limits->bytes_per_ip_max, INT64_MAX);
}

void
limits_fini(struct limits *limits)
{
	struct slice key;
	size_t cursor = 0;
	void *value;

	while (map_next(&limits->addresses, &cursor, &key, &value)) {
		struct limits_address *address = value;

		free(address->address);
		free(address);
	}
	map_fini(&limits->addresses);
	lock_fini(&limits->lock);
}

struct limits_address *
limits_connect(struct limits *limits, const char *text, bool *is_per_ip)
{
	struct limits_address *address;

	lock_take(&limits->lock);
	address = map_get_string(&limits->addresses, text);
	*is_per_ip = false;
	if (limits->connections_max >= 0 && (int64_t)limits->connections >= limits->connections_max)
		goto refused;
	*is_per_ip = true;
	if (limits->connections_per_ip_max >= 0 &&
	    (address == NULL ? 0 : (int64_t)address->connections) >= limits->connections_per_ip_max)
		goto refused;
	if (address == NULL) {
		address = xzalloc(sizeof(*address));
		address->address = xstrdup(text);
		map_put(&limits->addresses, slice_of_string(address->address), address);
	}
	address->connections++;
	limits->connections++;
	lock_drop(&limits->lock);
	return address;
refused:
	lock_drop(&limits->lock);
	return NULL;
}

void
limits_disconnect(struct limits *limits, struct limits_address *address)
{
	lock_take(&limits->lock);
	limits->connections--;
	address->connections--;
	if (address->connections == 0)
		map_remove(&limits->addresses, slice_of_string(address->address));
	else
		address = NULL;
	lock_drop(&limits->lock);
	if (address != NULL) {
		free(address->address);
		free(address);
	}
}

enum limits_how { LIMITS_WITHIN, LIMITS_WITHIN_OR_ALONE, LIMITS_FORCE };

/* Relaxed throughout: the sums are budgets, they order nothing else. */
static bool
limits_take_one(atomic_ullong *used, _Atomic int64_t *max, uint64_t bytes, enum limits_how how)
{
	uint64_t before = atomic_fetch_add_explicit(used, bytes, memory_order_relaxed);

	if (how == LIMITS_FORCE || (how == LIMITS_WITHIN_OR_ALONE && before == 0) ||
	    before + bytes <= (uint64_t)atomic_load_explicit(max, memory_order_relaxed))
		return true;
	atomic_fetch_sub_explicit(used, bytes, memory_order_relaxed);
	return false;
}

static bool
limits_take_both(
    struct limits *limits, struct limits_address *address, uint64_t bytes, enum limits_how how)
{
	if (!limits_take_one(&address->bytes, &limits->bytes_per_ip_max, bytes, how))
		return false;
	if (limits_take_one(&limits->bytes, &limits->bytes_max, bytes, how))
		return true;
	atomic_fetch_sub_explicit(&address->bytes, bytes, memory_order_relaxed);
	return false;
}

bool
limits_take(struct limits *limits, struct limits_address *address, uint64_t bytes, bool force)
{
	return limits_take_both(limits, address, bytes, force ? LIMITS_FORCE : LIMITS_WITHIN);
}

bool
limits_reserve(struct limits *limits, struct limits_address *address, uint64_t bytes)
{
	return limits_take_both(limits, address, bytes, LIMITS_WITHIN_OR_ALONE);
}

void
limits_give(struct limits *limits, struct limits_address *address, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&address->bytes, bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&limits->bytes, bytes, memory_order_relaxed);
}
