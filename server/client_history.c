/* SPDX-License-Identifier: Apache-2.0 */
#include "server/client_history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "server/ranks.h"

void
client_history_init(struct client_history *history)
{
	memset(history, 0, sizeof(*history));
	lock_init(&history->lock, "client history", RANK_CLIENT_HISTORY);
}

void
client_history_fini(struct client_history *history)
{
	lock_fini(&history->lock);
	free(history->seen);
}

void
client_history_add(struct client_history *history, const char *address, int version, int64_t now_ms)
{
	struct client_seen *found = NULL, *oldest = NULL;

	lock_take(&history->lock);
	if (history->seen == NULL)
		history->seen = xcalloc(CLIENT_HISTORY_MAX, sizeof(*history->seen));
	for (uint32_t i = 0; i < history->count && found == NULL; i++) {
		struct client_seen *seen = &history->seen[i];

		if (seen->version == version && strcmp(seen->address, address) == 0)
			found = seen;
		if (oldest == NULL || seen->last_ms < oldest->last_ms)
			oldest = seen;
	}
	if (found == NULL)
		found =
		    history->count < CLIENT_HISTORY_MAX ? &history->seen[history->count++] : oldest;
	found->version = version;
	snprintf(found->address, sizeof(found->address), "%s", address);
	found->last_ms = now_ms;
	lock_drop(&history->lock);
}

void
client_history_clear(struct client_history *history)
{
	lock_take(&history->lock);
	history->count = 0;
	lock_drop(&history->lock);
}

static int
client_history_order(const void *a, const void *b)
{
	const struct client_seen *left = a, *right = b;

	if (left->version != right->version)
		return left->version > right->version ? -1 : 1;
	return left->last_ms > right->last_ms ? -1 : left->last_ms < right->last_ms;
}

void
client_history_each(struct client_history *history,
    void (*each)(void *argument, const struct client_seen *seen), void *argument)
{
	lock_take(&history->lock);
	if (history->count > 0)
		qsort(history->seen, history->count, sizeof(*history->seen), client_history_order);
	for (uint32_t i = 0; i < history->count; i++)
		each(argument, &history->seen[i]);
	lock_drop(&history->lock);
}
