/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_LIMITS_H
#define HELENUS_SERVER_LIMITS_H

/*
 * What clients may take of the node: connections, and bytes of requests that are in flight, in total
 * and from one address (transport/ClientResourceLimits, ConnectionLimitHandler). A connection's own
 * receive queue comes first and is not counted here; only what goes beyond it is. Any thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/lock.h"
#include "base/map.h"

/* One client address. Shared by its connections. */
struct limits_address {
	char *address; /* owned; the key */
	uint32_t connections; /* guarded by the lock */
	atomic_ullong bytes;
};

struct limits {
	int64_t connections_max, connections_per_ip_max; /* negative: none */
	_Atomic int64_t bytes_max, bytes_per_ip_max;
	atomic_ullong bytes;

	/* Guarded by lock. */
	struct lock lock;
	struct map addresses;
	uint32_t connections;
};

void limits_init(struct limits *limits);
void limits_fini(struct limits *limits);

/* A connection comes. NULL: one limit is reached (*is_per_ip says which), close it. */
struct limits_address *limits_connect(struct limits *limits, const char *address, bool *is_per_ip);
void limits_disconnect(struct limits *limits, struct limits_address *address);

/* Take `bytes`. False: over a limit, nothing taken. force: taken all the same. */
bool limits_take(struct limits *limits, struct limits_address *address, uint64_t bytes, bool force);
/* The same for a request of which only the beginning is there; one that alone is more than the limit is
 * let through when nothing else is taken: it could never come. */
bool limits_reserve(struct limits *limits, struct limits_address *address, uint64_t bytes);
void limits_give(struct limits *limits, struct limits_address *address, uint64_t bytes);

#endif
