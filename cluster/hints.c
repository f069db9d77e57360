/* SPDX-License-Identifier: Apache-2.0 */
/* The door of hints: what is to be kept (StorageProxy.shouldHint, checkHintOverload), settings, counts. */
#include "cluster/hints.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cluster/hints_internal.h"

/* ---- Life ---------------------------------------------------------------------------------- */

static const struct hints_settings hints_defaults = {
    .is_enabled = true,
    .is_window_persistent = true,
    .ages_from_creation = true,
    .window_ms = 3 * 3600 * 1000,
    .throttle_bytes = 1024 << 10,
    .file_size_max = 128 << 20,
    .flush_period_ms = 10000,
    .delivery_max = 2,
};

static void hints_fire(struct cluster_timer *timer);
static void hints_tick_store(struct hints_store *store, void *context);

int
hints_open(const struct hints_options *options, struct hints **out, struct error *err)
{
	struct hints *hints = xzalloc(sizeof(*hints));

	hints->options = *options;
	hints->env = options->cluster->env;
	hints->directory = xstrdup(options->directory);
	hints->settings = hints_defaults;
	hints->tick.fire = hints_fire;
	atomic_init(&hints->is_stopped, true);
	lock_init(&hints->lock, "hints", RANK_HINTS);
	if (hints_load(hints, err) != 0) {
		hints_close(hints);
		return -1;
	}
	hints_handle_verbs(hints);
	*out = hints;
	return 0;
}

void
hints_close(struct hints *hints)
{
	struct hints_datacenter *datacenter;

	if (hints == NULL)
		return;
	for (uint32_t i = 0; i < HINTS_STORE_SLOTS; i++) {
		struct hints_store *store, *next;

		for (store = atomic_load(&hints->stores[i]); store != NULL; store = next) {
			next = store->next;
			hints_store_free(store);
		}
	}
	while ((datacenter = hints->disabled) != NULL) {
		hints->disabled = datacenter->next;
		free(datacenter->name);
		free(datacenter);
	}
	lock_fini(&hints->lock);
	free(hints->directory);
	free(hints);
}

void
hints_set_host_id(struct hints *hints, const struct uuid *host_id)
{
	hints->options.host_id = *host_id;
}

void
hints_start(struct hints *hints)
{
	if (!atomic_exchange(&hints->is_stopped, false))
		return;
	cluster_timer_start(hints->options.cluster, &hints->tick, HINTS_TICK_MS * HINTS_NS_PER_MS);
}

void
hints_stop(struct hints *hints)
{
	unsigned work = HINTS_WORK_FLUSH;

	if (!atomic_exchange(&hints->is_stopped, true))
		hints_each_store(hints, hints_tick_store, &work);
}

void
hints_each_store(
    struct hints *hints, void (*each)(struct hints_store *store, void *context), void *context)
{
	for (uint32_t i = 0; i < HINTS_STORE_SLOTS; i++) {
		struct hints_store *store =
		    atomic_load_explicit(&hints->stores[i], memory_order_acquire);

		for (; store != NULL; store = store->next)
			each(store, context);
	}
}

/* ---- Time ---------------------------------------------------------------------------------- */

static void
hints_tick_store(struct hints_store *store, void *context)
{
	unsigned work = *(const unsigned *)context;
	bool is_dirty, has_work;

	lock_take(&store->lock);
	is_dirty = store->is_dirty;
	has_work = store->work != 0; /* of a kick that found no room */
	lock_drop(&store->lock);
	if (!is_dirty)
		work &= ~(unsigned)HINTS_WORK_FLUSH;
	if ((work & HINTS_WORK_DELIVER) != 0 && !hints_store_has_hints(store))
		work &= ~(unsigned)HINTS_WORK_DELIVER;
	if (work != 0 || has_work)
		hints_store_kick(store, work);
}

static bool
hints_is_due(uint64_t ticks, uint64_t *last, uint64_t period_ms)
{
	if ((ticks - *last) * HINTS_TICK_MS < period_ms)
		return false;
	*last = ticks;
	return true;
}

static void
hints_fire(struct cluster_timer *timer)
{
	struct hints *hints = (struct hints *)((char *)timer - offsetof(struct hints, tick));
	unsigned work = 0;

	if (atomic_load(&hints->is_stopped))
		return;
	hints->ticks++;
	if (hints_is_due(
		hints->ticks, &hints->flushed_tick, atomic_load(&hints->settings.flush_period_ms)))
		work |= HINTS_WORK_FLUSH;
	if (hints_is_due(hints->ticks, &hints->delivered_tick, HINTS_DELIVER_MS) &&
	    !atomic_load(&hints->is_paused))
		work |= HINTS_WORK_DELIVER;
	if (hints_is_due(hints->ticks, &hints->cleaned_tick, HINTS_CLEANUP_MS) &&
	    atomic_load(&hints->settings.cleans_up))
		work |= HINTS_WORK_CLEANUP;
	hints_each_store(hints, hints_tick_store, &work);
	cluster_timer_start(hints->options.cluster, &hints->tick, HINTS_TICK_MS * HINTS_NS_PER_MS);
}

/* ---- What is to be kept -------------------------------------------------------------------- */

struct hints_look {
	const struct schema *schema;
	struct hints_tables *tables;
};

static void
hints_look_at_table(void *argument, const struct uuid *id)
{
	struct hints_look *look = argument;
	const struct table_metadata *table = schema_table_by_id(look->schema, id);
	uint32_t seconds;

	if (table == NULL) {
		look->tables->unknown++;
		return;
	}
	look->tables->known++;
	seconds =
	    table->options.gc_grace_seconds < 0 ? 0 : (uint32_t)table->options.gc_grace_seconds;
	if (seconds < look->tables->gc_grace_seconds)
		look->tables->gc_grace_seconds = seconds;
}

bool
hints_look_at(struct hints *hints, struct slice mutation, struct hints_tables *out)
{
	struct schema *schema = hints->options.schema(hints->options.context);
	struct hints_look look = {schema, out};
	bool is_mutation;

	*out = (struct hints_tables){.gc_grace_seconds = UINT32_MAX};
	is_mutation = mutation_each_table(mutation, hints_look_at_table, &look);
	schema_unref(schema);
	return is_mutation;
}

bool
hint_is_live(const struct hint *hint, const struct hints_tables *tables, int64_t now_ms)
{
	int64_t seconds = hint->gc_grace_seconds < tables->gc_grace_seconds
	    ? hint->gc_grace_seconds
	    : tables->gc_grace_seconds;

	/* A time before 1970 or far in the future is damage that a CRC did not see: not ours to judge. */
	return tables->known > 0 &&
	    (hint->created_ms > INT64_MAX - seconds * 1000 ||
		hint->created_ms + seconds * 1000 > now_ms);
}

bool
hints_keep(
    struct hints *hints, const struct uuid *host_id, struct slice mutation, int64_t created_ms)
{
	struct hints_tables tables;
	struct hint hint = {.created_ms = created_ms, .mutation = mutation};

	if (atomic_load_explicit(&hints->is_stopped, memory_order_relaxed) ||
	    !hints_look_at(hints, mutation, &tables) || tables.known == 0)
		return false;
	hint.gc_grace_seconds = tables.gc_grace_seconds;
	if (!hints_store_add(hints_store_get(hints, host_id), &hint)) {
		hints_count(&hints->not_stored, 1);
		return false;
	}
	hints_count(&hints->total, 1);
	return true;
}

/* The node's host id, and whether its data center gets hints. False: it is no member. */
static bool
hints_find_host(struct hints *hints, struct peer *peer, struct uuid *host_id, bool *is_disabled)
{
	const struct topology *topology = topology_acquire(hints->options.topology);
	const struct member *member = topology_find(topology, peer);

	*is_disabled = false;
	if (member != NULL) {
		*host_id = member->host_id;
		if (atomic_load_explicit(&hints->has_disabled, memory_order_relaxed)) {
			lock_take(&hints->lock);
			for (struct hints_datacenter *at = hints->disabled; at != NULL;
			     at = at->next)
				*is_disabled =
				    *is_disabled || strcmp(at->name, member->datacenter) == 0;
			lock_drop(&hints->lock);
		}
	}
	topology_release(hints->options.topology, topology);
	return member != NULL;
}

static bool
hints_is_in_window(struct hints *hints, struct peer *peer, const struct hints_store *store)
{
	uint64_t window_ms = atomic_load_explicit(&hints->settings.window_ms, memory_order_relaxed);
	int64_t oldest_ms;

	if (hints->options.downtime_ns(hints->options.context, peer) / HINTS_NS_PER_MS > window_ms)
		return false;
	if (store == NULL || !atomic_load(&hints->settings.is_window_persistent))
		return true;
	/* After a restart nobody knows how long the node has been down, but our first hint for it does. */
	oldest_ms = atomic_load_explicit(&store->oldest_ms, memory_order_relaxed);
	return oldest_ms == INT64_MAX || hints_now_ms(hints) - oldest_ms <= (int64_t)window_ms;
}

bool
hints_wants(void *context, struct peer *peer)
{
	struct hints *hints = context;
	const struct hints_store *store;
	uint64_t size_max;
	struct uuid host_id;
	bool is_disabled;

	if (!atomic_load_explicit(&hints->settings.is_enabled, memory_order_relaxed) ||
	    peer->is_local || !hints_find_host(hints, peer, &host_id, &is_disabled) || is_disabled)
		return false;
	store = hints_store_find(hints, &host_id);
	size_max = atomic_load_explicit(&hints->settings.host_size_max, memory_order_relaxed);
	if (!hints_is_in_window(hints, peer, store)) {
		hints_count(&hints->not_stored, 1);
		atomic_fetch_add_explicit(&peer->hints_past_window, 1, memory_order_relaxed);
		return false;
	}
	if (size_max > 0 && store != NULL &&
	    atomic_load_explicit(&store->bytes, memory_order_relaxed) > size_max) {
		hints_count(&hints->not_stored, 1);
		return false;
	}
	return true;
}

static bool
hints_write(void *context, struct peer *peer, struct message_payload *mutation, int64_t created_ms)
{
	struct hints *hints = context;
	struct uuid host_id;
	bool is_disabled;

	if (!atomic_load_explicit(&hints->settings.ages_from_creation, memory_order_relaxed))
		created_ms = env_wall_us(hints->env) / 1000;
	return hints_find_host(hints, peer, &host_id, &is_disabled) &&
	    hints_keep(hints, &host_id, slice_of(mutation->data, mutation->size), created_ms);
}

static int
hints_check(void *context, struct peer *peer, struct error *err)
{
	struct hints *hints = context;
	uint32_t in_flight = atomic_load_explicit(&hints->in_flight, memory_order_relaxed), ours;
	const struct hints_store *store;
	char name[ENDPOINT_TEXT_SIZE];
	struct uuid host_id;
	bool is_disabled;

	if (in_flight <= hints->options.in_flight_max ||
	    !hints_find_host(hints, peer, &host_id, &is_disabled))
		return 0;
	store = hints_store_find(hints, &host_id);
	ours = store == NULL ? 0 : atomic_load_explicit(&store->in_flight, memory_order_relaxed);
	/* A node with none of them is healthy: it is not to suffer for the others. */
	if (ours == 0 || !hints_wants(hints, peer))
		return 0;
	return error_set(err, ERROR_OVERLOADED,
	    "Too many in flight hints: %u destination: /%s destination hints: %u",
	    (unsigned)in_flight, endpoint_format(&peer->endpoint, name), (unsigned)ours);
}

struct coordinator_hints
hints_for_coordinator(struct hints *hints)
{
	return (struct coordinator_hints){hints, hints_wants, hints_write, hints_check};
}

/* ---- Settings ------------------------------------------------------------------------------ */

struct hints_settings *
hints_settings(struct hints *hints)
{
	return &hints->settings;
}

static struct hints_datacenter **
hints_find_disabled_locked(struct hints *hints, const char *name)
{
	struct hints_datacenter **link = &hints->disabled;

	lock_assert_held(&hints->lock);
	while (*link != NULL && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return link;
}

void
hints_disable_datacenter(struct hints *hints, const char *name)
{
	struct hints_datacenter **link;

	lock_take(&hints->lock);
	link = hints_find_disabled_locked(hints, name);
	if (*link == NULL) {
		*link = xzalloc(sizeof(**link));
		(*link)->name = xstrdup(name);
	}
	atomic_store(&hints->has_disabled, true);
	lock_drop(&hints->lock);
}

void
hints_enable_datacenter(struct hints *hints, const char *name)
{
	struct hints_datacenter **link, *found;

	lock_take(&hints->lock);
	link = hints_find_disabled_locked(hints, name);
	found = *link;
	if (found != NULL) {
		*link = found->next;
		free(found->name);
		free(found);
	}
	atomic_store(&hints->has_disabled, hints->disabled != NULL);
	lock_drop(&hints->lock);
}

void
hints_each_disabled(
    struct hints *hints, void (*each)(void *context, const char *datacenter), void *context)
{
	lock_take(&hints->lock);
	for (struct hints_datacenter *at = hints->disabled; at != NULL; at = at->next)
		each(context, at->name);
	lock_drop(&hints->lock);
}

/* ---- What is asked for --------------------------------------------------------------------- */

static void
hints_sync_store(struct hints_store *store, void *context)
{
	struct hints_wait *wait = context;
	struct hints_waiter *waiter;

	lock_take(&store->lock);
	if (!store->is_dirty) {
		lock_drop(&store->lock);
		return;
	}
	waiter = xmalloc(sizeof(*waiter));
	*waiter = (struct hints_waiter){store->waiters, wait};
	store->waiters = waiter;
	atomic_fetch_add(&wait->pending, 1);
	lock_drop(&store->lock);
	hints_store_kick(store, HINTS_WORK_FLUSH);
}

void
hints_sync(struct hints *hints, struct hints_wait *wait)
{
	struct error err;

	wait->hints = hints;
	atomic_init(&wait->pending, 1);
	atomic_init(&wait->has_failed, false);
	hints_each_store(hints, hints_sync_store, wait);
	if (atomic_fetch_sub(&wait->pending, 1) != 1)
		return;
	if (!atomic_load(&wait->has_failed)) {
		wait->on_done(wait, NULL);
		return;
	}
	error_set(&err, ERROR_IO, "hints could not be written");
	wait->on_done(wait, &err);
}

void
hints_peer_is_alive(struct hints *hints, struct peer *peer)
{
	struct hints_store *store;
	struct uuid host_id;
	bool is_disabled;

	if (atomic_load(&hints->is_stopped) ||
	    !hints_find_host(hints, peer, &host_id, &is_disabled))
		return;
	store = hints_store_find(hints, &host_id);
	if (store != NULL && hints_store_has_hints(store))
		hints_store_kick(store, HINTS_WORK_DELIVER);
}

void
hints_deliver(struct hints *hints)
{
	unsigned work = HINTS_WORK_DELIVER;

	hints_each_store(hints, hints_tick_store, &work);
}

void
hints_pause(struct hints *hints, bool is_paused)
{
	atomic_store(&hints->is_paused, is_paused);
	if (!is_paused)
		hints_deliver(hints);
}

static void
hints_truncate_store(struct hints_store *store, void *context)
{
	(void)context;
	hints_store_kick(store, HINTS_WORK_DELETE);
}

void
hints_truncate(struct hints *hints, const struct uuid *host_id)
{
	struct hints_store *store;

	if (host_id == NULL) {
		hints_each_store(hints, hints_truncate_store, NULL);
		return;
	}
	store = hints_store_find(hints, host_id);
	if (store != NULL)
		hints_truncate_store(store, NULL);
}

static void
hints_transfer_store(struct hints_store *store, void *context)
{
	struct hints *hints = store->hints;

	(void)context;
	if (!hints_store_has_hints(store))
		return;
	lock_take(&hints->lock);
	hints->transfer_left++;
	lock_drop(&hints->lock);
	atomic_store(&store->is_transferring, true);
	hints_store_kick(store, HINTS_WORK_DELIVER);
}

void
hints_transfer(struct hints *hints, struct peer *to, struct hints_wait *wait)
{
	bool is_ours, is_done, has_failed;
	struct error err;

	lock_take(&hints->lock);
	is_ours = hints->transfer == NULL && !to->is_local;
	if (is_ours) {
		hints->transfer = wait;
		hints->transfer_left = 1;
		hints->transfer_has_failed = false;
	}
	lock_drop(&hints->lock);
	if (!is_ours) {
		error_set(&err, ERROR_INVALID, "hints are being transferred");
		wait->on_done(wait, &err);
		return;
	}
	atomic_store(&hints->transfer_to, to);
	atomic_store(&hints->is_paused, false);
	hints_each_store(hints, hints_transfer_store, NULL);
	lock_take(&hints->lock);
	is_done = --hints->transfer_left == 0;
	has_failed = hints->transfer_has_failed;
	if (is_done)
		hints->transfer = NULL;
	lock_drop(&hints->lock);
	if (!is_done)
		return;
	atomic_store(&hints->transfer_to, NULL);
	if (has_failed)
		error_set(&err, ERROR_SERVER, "not all hints could be transferred");
	wait->on_done(wait, has_failed ? &err : NULL);
}

/* ---- What operators see -------------------------------------------------------------------- */

struct hints_pending_walk {
	void (*each)(void *context, const struct hints_pending *pending);
	void *context;
};

static void
hints_pending_store(struct hints_store *store, void *context)
{
	struct hints_pending_walk *walk = context;
	struct hints_pending pending;

	hints_store_pending(store, &pending);
	if (pending.files > 0)
		walk->each(walk->context, &pending);
}

void
hints_each_pending(struct hints *hints,
    void (*each)(void *context, const struct hints_pending *pending), void *context)
{
	struct hints_pending_walk walk = {each, context};

	hints_each_store(hints, hints_pending_store, &walk);
}

void
hints_stats(struct hints *hints, struct hints_stats *out)
{
	*out = (struct hints_stats){.total = atomic_load(&hints->total),
	    .in_progress = atomic_load(&hints->in_flight),
	    .not_stored = atomic_load(&hints->not_stored),
	    .succeeded = atomic_load(&hints->succeeded),
	    .failed = atomic_load(&hints->failed),
	    .timed_out = atomic_load(&hints->timed_out),
	    .applied = atomic_load(&hints->applied),
	    .apply_failed = atomic_load(&hints->apply_failed),
	    .expired = atomic_load(&hints->expired),
	    .sessions = atomic_load(&hints->sessions),
	    .completed_sessions = atomic_load(&hints->completed_sessions),
	    .corrupt = atomic_load(&hints->corrupt)};
}
