/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_CLIENT_HISTORY_H
#define HELENUS_SERVER_CLIENT_HISTORY_H

/*
 * From where clients connected with which version of the protocol, and when last: `nodetool clientstats --by-protocol`
 * (ProtocolVersionTracker). Bounded: the one that is away the longest makes room.
 */
#include <stdint.h>
#include "base/lock.h"

enum { CLIENT_HISTORY_MAX = 400, CLIENT_HISTORY_ADDRESS = 64 };

struct client_seen {
	int version;
	char address[CLIENT_HISTORY_ADDRESS]; /* numeric */
	int64_t last_ms; /* since the epoch */
};

struct client_history {
	struct lock lock;
	/* Guarded by lock. */
	struct client_seen *seen; /* owned; CLIENT_HISTORY_MAX of them, made by the first client */
	uint32_t count;
};

void client_history_init(struct client_history *history);
void client_history_fini(struct client_history *history);

/* All by any thread. */
void client_history_add(
    struct client_history *history, const char *address, int version, int64_t now_ms);
void client_history_clear(struct client_history *history);
/* Newest version first, then the last seen first. `each` must not come back here. */
void client_history_each(struct client_history *history,
    void (*each)(void *argument, const struct client_seen *seen), void *argument);

#endif
