/* SPDX-License-Identifier: Apache-2.0 */
/* At start: what the commit log holds goes into the memtables, in one pass or, with the node's own tables first, in two. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/saved_cache.h"
#include "storage/store_internal.h"

struct store_replay_state {
	struct store *store;
	struct arena arena;
	enum { REPLAY_ALL, REPLAY_LOCAL, REPLAY_OTHERS } which;
	uint64_t unknown_tables, too_young;
};

static const struct table_metadata *
store_replay_find(void *argument, const struct uuid *id)
{
	struct store_replay_state *state = argument;
	const struct table_metadata *table = schema_table_by_id(state->store->schema, id);

	if (table == NULL) {
		state->unknown_tables++;
		return NULL;
	}
	if (state->which != REPLAY_ALL &&
	    schema_is_local_keyspace(table->keyspace) != (state->which == REPLAY_LOCAL))
		return NULL;
	return table;
}

void
store_set_host_id(struct store *store, const struct uuid *host_id)
{
	if (atomic_load(&store->has_host_id))
		return;
	store->host_id = *host_id;
	atomic_store(&store->has_host_id, true);
}

bool
store_is_own_log(const struct store *store, const struct sstable_stats *stats)
{
	return atomic_load(&store->has_host_id) && stats->has_host_id &&
	    uuid_equal(&store->host_id, &stats->host_id);
}

/* Has this table's change at `position` been flushed, or truncated away? */
static bool
store_replay_is_flushed(struct table_store *table, struct commitlog_position position)
{
	struct table_view *view;
	bool is_flushed = false;

	if (commitlog_position_compare(position, table->truncated_at) <= 0)
		return true;
	view = table_view_acquire(table);
	for (uint32_t i = 0; i < view->sstable_count && !is_flushed; i++) {
		/* Statistics that cannot be read say nothing: the record is applied once more. */
		const struct sstable_stats *stats = sstable_stats(view->sstables[i], NULL);

		if (stats == NULL || !store_is_own_log(table->store, stats))
			continue;
		for (uint32_t k = 0; k < stats->commitlog_count; k++)
			is_flushed |=
			    commitlog_position_compare(stats->commitlog[k].start, position) < 0 &&
			    commitlog_position_compare(position, stats->commitlog[k].end) <= 0;
	}
	table_view_release(view);
	return is_flushed;
}

/*
 * Is the youngest timestamp of the change after the point in time that is to be restored? Cassandra:
 * CommitLogReplayer.pointInTimeExceeded.
 */
static bool
store_replay_is_too_young(const struct store *store, const struct mutation *mutation)
{
	const uint64_t precision = store->options.restore_precision_ns;
	int64_t point = store->options.restore_point_ms;

	if (point == INT64_MAX)
		return false;
	for (uint32_t i = 0; i < mutation->update_count; i++) {
		int64_t timestamp = partition_update_max_timestamp(&mutation->updates[i]);
		int64_t ms = precision < 1000000 ? timestamp / (int64_t)(1000000 / precision) : 0;

		if (precision >= 1000000 &&
		    __builtin_mul_overflow(timestamp, (int64_t)(precision / 1000000), &ms))
			ms = timestamp > 0 ? INT64_MAX : INT64_MIN;
		if (ms > point)
			return true;
	}
	return false;
}

static int
store_replay_record(
    void *context, struct slice record, struct commitlog_position position, struct error *err)
{
	struct store_replay_state *state = context;
	struct store *store = state->store;
	struct mutation mutation;
	unsigned ticket;
	int taken = 0, rc;

	arena_reset(&state->arena);
	if (mutation_decode(record, store_replay_find, state, &state->arena, &mutation, err) != 0)
		return -1;
	if (store_replay_is_too_young(store, &mutation)) {
		state->too_young++;
		return 0;
	}
	for (uint32_t i = 0; i < mutation.update_count; i++) {
		struct table_store *table = store_table(store, mutation.updates[i].table);

		if (table == NULL || store_replay_is_flushed(table, position))
			continue;
		/* The timer may switch memtables meanwhile. */
		ticket = op_order_start(&store->order);
		rc = memtable_apply(atomic_load(&table->current), &mutation.updates[i], err);
		op_order_end(&store->order, ticket);
		if (rc != 0)
			return -1;
		taken = 1;
	}
	/* Replay does not wait: one thread, and a flush is begun as soon as the budget says so. */
	while (!store_has_memory(store)) {
		store_relieve_memory(store);
		if (atomic_load(&store->failing_flushes) != 0)
			return error_set(
			    err, store->flush_error.code, "%s", store->flush_error.text);
		usleep(1000);
	}
	return taken;
}

static int
store_replay_pass(struct store *store, int which, uint64_t *unknown_tables, struct error *err)
{
	struct store_replay_state state = {.store = store, .which = which};
	int rc;

	arena_init(&state.arena, 64 << 10);
	rc = commitlog_replay(store->commitlog, store_replay_record, &state, err);
	arena_fini(&state.arena);
	*unknown_tables = state.unknown_tables;
	if (state.too_young > 0)
		log_info("Replay: %" PRIu64 " mutations after restore_point_in_time left out",
		    state.too_young);
	return rc;
}

int
store_replay_local(struct store *store, struct error *err)
{
	uint64_t unknown_tables; /* all tables of users are, still */

	store->has_replayed_local = true;
	return store_replay_pass(store, REPLAY_LOCAL, &unknown_tables, err);
}

static void
store_load_caches(void *argument)
{
	saved_cache_load(argument);
}

int
store_replay(struct store *store, struct error *err)
{
	uint64_t unknown_tables;
	int rc;

	rc = store_replay_pass(
	    store, store->has_replayed_local ? REPLAY_OTHERS : REPLAY_ALL, &unknown_tables, err);
	if (rc != 0)
		return -1;
	if (unknown_tables > 0)
		log_info("Replay: %" PRIu64 " changes of tables that were dropped left out",
		    unknown_tables);
	/* The replayed data has no place in the new log: it must be on disk before the old files go. */
	rc = store_flush_all(store, err);
	if (rc == 0)
		rc = commitlog_replayed(store->commitlog, err);
	if (rc == 0) {
		atomic_store(&store->state, STORE_RUNNING);
		if (store->options.saved_caches_directory != NULL)
			(void)store_submit(store, "CacheCleanupExecutor", store_load_caches, store);
	}
	return rc;
}
