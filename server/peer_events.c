/* SPDX-License-Identifier: Apache-2.0 */
#include "server/peer_events.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/peer.h"
#include "server/cluster.h"
#include "server/execution.h"
#include "server/internal_query.h"

/* Ten minutes, as there. */
#define PEER_EVENTS_PERIOD_NS (UINT64_C(600) * 1000 * 1000 * 1000)

struct peer_events {
	struct executor *executor; /* borrowed */
	uint64_t next_ns; /* of the thread that ticks */
	atomic_bool is_running;

	pthread_mutex_t mutex; /* one run at a time; guards what follows */
	uint64_t *written; /* owned; by the peer's index: what has been told of */
	uint32_t capacity;
};

struct peer_events *
peer_events_new(struct executor *executor)
{
	struct peer_events *events = xzalloc(sizeof(*events));

	events->executor = executor;
	events->next_ns = env_monotonic_ns(executor->env) + PEER_EVENTS_PERIOD_NS;
	pthread_mutex_init(&events->mutex, NULL);
	return events;
}

void
peer_events_free(struct peer_events *events)
{
	if (events == NULL)
		return;
	pthread_mutex_destroy(&events->mutex);
	free(events->written);
	free(events);
}

/* USING TTL 2592000: thirty days. */
static int
peer_events_save(
    struct executor *executor, const struct peer *peer, uint64_t dropped, struct error *err)
{
	uint8_t id[16], count[4], port[4];
	struct slice values[4] = {slice_of(id, sizeof(id)), slice_of(count, sizeof(count)),
	    slice_of(peer->endpoint.address, peer->endpoint.size), slice_of(port, sizeof(port))};

	executor_next_timeuuid(executor, id);
	store_u32(count, dropped > INT32_MAX ? INT32_MAX : (uint32_t)dropped);
	store_u32(port, peer->endpoint.port);
	if (internal_execute(executor,
		"UPDATE system.peer_events USING TTL 2592000 SET hints_dropped[?] = ? "
		"WHERE peer = ?",
		values, 3, err) != 0)
		return -1;
	return internal_execute(executor,
	    "UPDATE system.peer_events_v2 USING TTL 2592000 SET hints_dropped[?] = ? "
	    "WHERE peer = ? AND peer_port = ?",
	    values, 4, err);
}

static void
peer_events_look_at(struct peer_events *events, const struct peer *peer)
{
	uint64_t total = atomic_load_explicit(&peer->hints_past_window, memory_order_relaxed);
	uint64_t dropped = total - events->written[peer->index];
	char name[ENDPOINT_TEXT_SIZE];
	struct error err;

	if (dropped == 0)
		return;
	endpoint_format(&peer->endpoint, name);
	log_warn("/%s has %" PRIu64
		 " dropped hints, because node is down past configured hint window.",
	    name, dropped);
	if (peer_events_save(events->executor, peer, dropped, &err) == 0)
		events->written[peer->index] = total;
	else
		log_warn("the dropped hints of /%s could not be written: %s", name, err.text);
}

void
peer_events_write(struct peer_events *events)
{
	struct peers *peers;
	uint32_t count;

	if (events == NULL || events->executor->node->cluster == NULL)
		return;
	peers = events->executor->node->cluster->peers;
	pthread_mutex_lock(&events->mutex);
	count = peers_count(peers);
	if (count > events->capacity) {
		events->written = xrealloc(events->written, count * sizeof(*events->written));
		memset(events->written + events->capacity, 0,
		    (count - events->capacity) * sizeof(*events->written));
		events->capacity = count;
	}
	for (uint32_t i = 0; i < count; i++)
		peer_events_look_at(events, peers_at(peers, i));
	pthread_mutex_unlock(&events->mutex);
}

static void
peer_events_work(void *argument)
{
	struct peer_events *events = argument;

	peer_events_write(events);
	atomic_store(&events->is_running, false);
}

void
peer_events_tick(struct peer_events *events)
{
	struct executor *executor = events->executor;
	uint64_t now = env_monotonic_ns(executor->env);

	if (now < events->next_ns || atomic_exchange(&events->is_running, true))
		return;
	if (!stage_submit_work(executor->node->stages[NODE_STAGE_MISC], peer_events_work, events))
		atomic_store(&events->is_running, false);
	events->next_ns = now + PEER_EVENTS_PERIOD_NS;
}
