/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/store.h"
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/chunk_cache.h"
#include "storage/compaction.h"
#include "storage/counter_cache.h"
#include "storage/entry_cache.h"
#include "storage/key_cache.h"
#include "storage/row_cache.h"
#include "storage/saved_cache.h"
#include "storage/snapshot.h"
#include "storage/store_internal.h"

enum {
	STORE_UPDATES_INLINE = 8, /* tables of one mutation that need no allocation */
	STORE_WAITING_MAX =
	    1 << 16, /* writes that may wait for memory before the rest is refused */
	STORE_TIMER_MS = 1000,
	STORE_WRITE_SAMPLE = 16, /* latency is measured for one write of so many */
};

bool
store_submit(struct store *store, const char *stage, store_work_fn work, void *argument)
{
	return store->executor.submit(store->executor.context, stage, work, argument);
}

struct table_store **
store_tables(struct store *store, uint32_t *count)
{
	struct table_store **copy;

	lock_take(&store->tables_lock);
	copy = xcalloc(store->table_capacity + 1, sizeof(*copy));
	*count = 0;
	for (uint32_t i = 0; i < store->table_capacity; i++)
		if (store->tables[i] != NULL && !atomic_load(&store->tables[i]->is_dropped))
			copy[(*count)++] = store->tables[i];
	lock_drop(&store->tables_lock);
	return copy;
}

/* ---- memory -------------------------------------------------------------------------------- */

/*
 * The next flush begins at memtable_cleanup_threshold or up to a fifth before it: replicas hold the same data, and would
 * otherwise all flush, and then compact, in the same second, which every request of theirs feels.
 */
static void
store_set_relief(struct store *store)
{
	double most =
	    (double)store->options.memtable_bytes * store->options.memtable_cleanup_threshold;
	double early = (double)(env_random_u64(store->env) % 1024) / 1024 / 5;

	atomic_store_explicit(
	    &store->relieve_bytes, (uint64_t)(most * (1 - early)), memory_order_relaxed);
}

void
store_relieve_memory(struct store *store)
{
	uint64_t all = atomic_load_explicit(&store->memtable_bytes, memory_order_relaxed);
	uint64_t flushing = atomic_load_explicit(&store->flushing_bytes, memory_order_relaxed);
	uint64_t share = atomic_load_explicit(&store->relieve_bytes, memory_order_relaxed);
	struct table_store **tables, *largest = NULL;
	uint64_t largest_bytes = 0;
	struct error err;
	uint32_t count;

	if (all < flushing || all - flushing < share)
		return;
	/* One thread looks for the largest; the others go on with their writes. */
	if (atomic_exchange(&store->is_relieving, true))
		return;
	tables = store_tables(store, &count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes;

		bytes = table_store_memtable_bytes(tables[i]);
		if (bytes > largest_bytes) {
			largest = tables[i];
			largest_bytes = bytes;
		}
	}
	free(tables);
	if (largest != NULL && table_flush_begin(largest, &err) != 0)
		log_error("%s", err.text);
	store_set_relief(store);
	atomic_store(&store->is_relieving, false);
}

void
store_resume_waiting(struct store *store)
{
	struct store_write *list;

	lock_take(&store->waiting_lock);
	list = store->waiting_first;
	store->waiting_first = store->waiting_last = NULL;
	atomic_store(&store->waiting_count, 0);
	lock_drop(&store->waiting_lock);
	while (list != NULL) {
		struct store_write *write = list;

		list = write->next;
		write->next = NULL;
		store_apply(store, write);
	}
}

bool
store_has_memory(const struct store *store)
{
	return atomic_load_explicit(&store->memtable_bytes, memory_order_relaxed) <
	    store->options.memtable_bytes;
}

/* Park a write until a flush frees memory. 0, or -1 when too many wait already. */
static int
store_wait_for_memory(struct store *store, struct store_write *write, struct error *err)
{
	int rc = 0;

	lock_take(&store->waiting_lock);
	if (atomic_load(&store->waiting_count) >= STORE_WAITING_MAX) {
		rc = error_set(err, ERROR_OVERLOADED,
		    "too many writes wait for memtable memory (%" PRIu64
		    " bytes in use); flushes cannot keep up",
		    (uint64_t)atomic_load(&store->memtable_bytes));
	} else {
		write->next = NULL;
		write->scratch = NULL; /* it goes on in another thread */
		if (store->waiting_last != NULL)
			store->waiting_last->next = write;
		else
			store->waiting_first = write;
		store->waiting_last = write;
		atomic_fetch_add(&store->waiting_count, 1);
	}
	lock_drop(&store->waiting_lock);
	/* The flush that should wake it may have ended just before it was parked. */
	if (rc == 0 && store_has_memory(store))
		store_resume_waiting(store);
	return rc;
}

void
store_flush_ended(struct store *store, uint64_t bytes)
{
	atomic_fetch_sub(&store->flushing_bytes, bytes);
	pthread_mutex_lock(&store->flush_mutex);
	pthread_cond_broadcast(&store->flush_cond);
	pthread_mutex_unlock(&store->flush_mutex);
	store_resume_waiting(store);
}

void
store_flush_failed(
    struct store *store, struct table_store *table, bool is_first, const struct error *err)
{
	char left_out[LOG_LIMIT_TEXT_MAX];

	if (log_limit_take(&store->flush_error_log, env_monotonic_ns(store->env), left_out))
		log_error(
		    "flush of %s.%s failed, its data stays in memory and in the commit log, writes "
		    "are refused until a flush succeeds (tried again every second): %s%s",
		    table->keyspace, table->name, err->text, left_out);
	lock_take(&store->waiting_lock);
	store->flush_error = *err;
	lock_drop(&store->waiting_lock);
	if (is_first)
		atomic_fetch_add(&store->failing_flushes, 1);
	pthread_mutex_lock(&store->flush_mutex);
	pthread_cond_broadcast(&store->flush_cond);
	pthread_mutex_unlock(&store->flush_mutex);
	/* They get the error now, by the same way. */
	store_resume_waiting(store);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
store_write_synced(struct commitlog_waiter *waiter, const struct error *err)
{
	struct store_write *write =
	    (struct store_write *)((char *)waiter - offsetof(struct store_write, waiter));

	write->on_done(write, err);
}

/* May a write be taken at all now? 1: yes, 0: it was parked, -1: refused. */
static int
store_admit(struct store *store, struct store_write *write, struct error *err)
{
	switch (atomic_load_explicit(&store->state, memory_order_relaxed)) {
	case STORE_RUNNING:
	case STORE_STARTING: /* system tables are written before the replay of the rest */
		break;
	default:
		return error_set(err, ERROR_SHUTDOWN, "the node is drained and takes no writes");
	}
	if (atomic_load_explicit(&store->failing_flushes, memory_order_relaxed) != 0) {
		lock_take(&store->waiting_lock);
		error_set(err, store->flush_error.code,
		    "writes are refused while data cannot be flushed: %s. %s; writes go on by "
		    "themselves",
		    store->flush_error.text,
		    store->flush_error.code == ERROR_NO_MEMORY
			? "The node needs memory"
			: "Free disk space or mend the disk");
		lock_drop(&store->waiting_lock);
		return -1;
	}
	if (store_has_memory(store))
		return 1;
	store_relieve_memory(store);
	return store_wait_for_memory(store, write, err);
}

/* What was cached of these rows is old; also after a failure, of which a part may be in. */
static void
store_note_written(const struct store_write *write, bool has_failed)
{
	for (uint32_t i = 0; i < write->mutation->update_count; i++) {
		const struct partition_update *update = &write->mutation->updates[i];
		struct table_store *table =
		    atomic_load_explicit(&update->table->user, memory_order_acquire);

		/* Looked at after the change is in: whoever begins to cache later reads it. */
		if (row_cache_is_used(table))
			row_cache_invalidate(table, update->key, update->token);
		if (table_is_counter(update->table) && !has_failed)
			counter_cache_note(table, update, write->leads_counters);
	}
}

/* Log and insert, inside the write order. */
static int
store_insert(struct store *store, const struct store_write *write, struct slice record,
    struct commitlog_position *position, struct error *err)
{
	const struct mutation *mutation = write->mutation;
	uint32_t slots_inline[STORE_UPDATES_INLINE];
	struct memtable *memtables_inline[STORE_UPDATES_INLINE];
	uint32_t count = mutation->update_count, *slots = slots_inline;
	struct memtable **memtables = memtables_inline;
	struct table_store *measured = NULL;
	uint64_t began = 0;
	unsigned ticket;
	int rc = 0;

	if (count > STORE_UPDATES_INLINE) {
		slots = xcalloc(count, sizeof(*slots));
		memtables = xcalloc(count, sizeof(*memtables));
	}
	ticket = op_order_start(&store->order);
	for (uint32_t i = 0; i < count; i++) {
		struct table_store *table = store_table(store, mutation->updates[i].table);

		if (table == NULL || atomic_load(&table->is_dropped)) {
			rc =
			    error_set(err, ERROR_INVALID, "table %.*s.%.*s does not exist any more",
				(int)mutation->updates[i].table->keyspace.size,
				(const char *)mutation->updates[i].table->keyspace.data,
				(int)mutation->updates[i].table->name.size,
				(const char *)mutation->updates[i].table->name.data);
			goto done;
		}
		slots[i] = table->slot;
		if (atomic_fetch_add_explicit(&table->stats.writes, 1, memory_order_relaxed) %
			    STORE_WRITE_SAMPLE ==
			0 &&
		    measured == NULL) {
			measured = table;
			began = env_monotonic_ns(store->env);
		}
		if (sampler_is_on(&table->samplers[STORE_SAMPLE_WRITES]))
			sampler_add(&table->samplers[STORE_SAMPLE_WRITES], mutation->key);
		if (sampler_is_on(&table->samplers[STORE_SAMPLE_WRITE_SIZE]))
			sampler_add_max(
			    &table->samplers[STORE_SAMPLE_WRITE_SIZE], mutation->key, record.size);
		/* Chosen before the place in the log is: see table_flush_begin(). */
		memtables[i] = atomic_load_explicit(&table->current, memory_order_acquire);
	}
	*position = (struct commitlog_position){0, 0};
	if (write->is_durable)
		rc = commitlog_add(store->commitlog, record, slots, count, position, err);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = memtable_apply(memtables[i], &mutation->updates[i], err);
	store_note_written(write, rc != 0);
done:
	op_order_end(&store->order, ticket);
	if (measured != NULL)
		histogram_add(
		    &measured->stats.write_us, (env_monotonic_ns(store->env) - began) / 1000);
	if (count > STORE_UPDATES_INLINE) {
		free(slots);
		free(memtables);
	}
	return rc;
}

void
store_apply(struct store *store, struct store_write *write)
{
	struct commitlog_position position;
	struct buffer local, *scratch = write->scratch;
	struct slice record = slice_null;
	struct error err;
	int rc;

	rc = store_admit(store, write, &err);
	if (rc == 0)
		return;
	if (rc < 0) {
		write->on_done(write, &err);
		return;
	}
	if (scratch == NULL) {
		buffer_init(&local);
		scratch = &local;
	}
	buffer_clear(scratch);
	rc = 0;
	if (!slice_is_null(write->encoded)) {
		record = write->encoded;
	} else if (write->is_durable) {
		mutation_encode(write->mutation, scratch);
		rc = buffer_check(scratch, &err);
		record = buffer_slice(scratch);
	}
	if (rc == 0)
		rc = store_insert(store, write, record, &position, &err);
	if (scratch == &local)
		buffer_fini(&local);
	if (rc != 0) {
		write->on_done(write, &err);
		return;
	}
	if (atomic_load_explicit(&store->memtable_bytes, memory_order_relaxed) >=
	    atomic_load_explicit(&store->relieve_bytes, memory_order_relaxed))
		store_relieve_memory(store);
	/* on_done may come on the sync thread, and take the write away, as soon as it is waited for. */
	atomic_store_explicit(&write->is_applied, true, memory_order_release);
	if (write->is_durable) {
		write->waiter.position = position;
		write->waiter.on_synced = store_write_synced;
		if (!commitlog_acknowledge(store->commitlog, &write->waiter))
			return;
	}
	write->on_done(write, NULL);
}

void
store_apply_many(struct store *store, struct store_write *const *writes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		store_apply(store, writes[i]);
}

/* ---- tables ------------------------------------------------------------------------------------ */

void
store_ahead(struct store *store, const struct store_place *places, size_t count)
{
	struct memtable *memtables[STORE_AHEAD_MAX];
	struct memtable_ahead ahead[STORE_AHEAD_MAX];
	/* A memtable stays while a write may be adding to it. */
	unsigned ticket = op_order_start(&store->order);

	if (count > STORE_AHEAD_MAX)
		count = STORE_AHEAD_MAX;
	for (size_t i = 0; i < count; i++) {
		struct table_store *table = store_table(store, places[i].table);

		memtables[i] = table != NULL && !atomic_load(&table->is_dropped)
		    ? atomic_load_explicit(&table->current, memory_order_acquire)
		    : NULL;
	}
	for (int step = 0; step < MEMTABLE_AHEAD_STEPS; step++) {
		for (size_t i = 0; i < count; i++)
			if (memtables[i] != NULL)
				memtable_ahead(
				    memtables[i], step, places[i].token, places[i].key, &ahead[i]);
	}
	op_order_end(&store->order, ticket);
}

struct table_store *
store_table(struct store *store, const struct table_metadata *table)
{
	(void)store;
	return atomic_load_explicit(&table->user, memory_order_acquire);
}

static struct table_store *
store_find_locked(struct store *store, const struct uuid *id)
{
	lock_assert_held(&store->tables_lock);
	for (uint32_t i = 0; i < store->table_capacity; i++)
		if (store->tables[i] != NULL && uuid_equal(&store->tables[i]->id, id))
			return store->tables[i];
	return NULL;
}

/* A slot number for a new table; slots are not reused while the process runs. */
static uint32_t
store_new_slot_locked(struct store *store)
{
	uint32_t slot = store->table_count++;

	lock_assert_held(&store->tables_lock);
	if (slot >= store->table_capacity) {
		uint32_t capacity = store->table_capacity == 0 ? 64 : store->table_capacity * 2;

		store->tables = xrealloc(store->tables, capacity * sizeof(*store->tables));
		memset(store->tables + store->table_capacity, 0,
		    (capacity - store->table_capacity) * sizeof(*store->tables));
		store->table_capacity = capacity;
	}
	return slot;
}

static int
store_add_table(struct store *store, const struct table_metadata *metadata, struct error *err)
{
	struct table_store *table;
	uint32_t slot;

	lock_take(&store->tables_lock);
	slot = store_new_slot_locked(store);
	lock_drop(&store->tables_lock);
	if (table_store_open(store, metadata, slot, &table, err) != 0)
		return -1;
	lock_take(&store->tables_lock);
	store->tables[slot] = table;
	lock_drop(&store->tables_lock);
	/* Release: whoever finds the handle finds an opened table. */
	atomic_store_explicit(
	    &((struct table_metadata *)metadata)->user, table, memory_order_release);
	return 0;
}

/* The table has changed: new writes go by the new metadata, what was written by the old is flushed. */
static int
store_alter_table(
    struct table_store *table, const struct table_metadata *metadata, struct error *err)
{
	struct table_metadata *old = atomic_exchange(&table->metadata, table_ref(metadata));

	atomic_store_explicit(
	    &((struct table_metadata *)metadata)->user, table, memory_order_release);
	row_cache_set_table(table, metadata);
	/* Readers and memtables may still look at the old one: it lives as long as the store. */
	lock_take(&table->store->tables_lock);
	table->store->old_metadata = xrealloc(table->store->old_metadata,
	    (table->store->old_metadata_count + 1) * sizeof(*table->store->old_metadata));
	table->store->old_metadata[table->store->old_metadata_count++] = old;
	lock_drop(&table->store->tables_lock);
	if (table_flush_begin(table, err) != 0)
		return -1;
	return table_flush_wait(table, err);
}

static int
store_drop_table(struct store *store, struct table_store *table, struct error *err)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	int rc = 0;

	if (store->options.auto_snapshot && metadata->options.allow_auto_snapshot &&
	    !schema_is_local_keyspace(metadata->keyspace)) {
		rc = snapshot_auto(table, "dropped", err);
		if (rc != 0)
			return -1;
	}
	atomic_store(&table->is_dropped, true);
	/* What is in memory goes without being written: table_flush_run() sees is_dropped. */
	if (table_flush_begin(table, err) != 0 || table_flush_wait(table, err) != 0)
		return -1;
	if (table_store_discard_sstables(table, err) != 0)
		return -1;
	commitlog_forget_table(store->commitlog, table->slot);
	return 0;
}

int
store_set_schema(struct store *store, struct schema *schema, struct error *err)
{
	struct schema *old;
	struct table_store **tables;
	uint32_t count;

	for (uint32_t k = 0; k < schema->keyspace_count; k++) {
		const struct keyspace_metadata *keyspace = schema->keyspaces[k];

		for (uint32_t t = 0; t < keyspace->table_count && !keyspace->is_virtual; t++) {
			struct table_metadata *metadata = keyspace->tables[t];
			struct table_store *table;
			int rc = 0;

			lock_take(&store->tables_lock);
			table = store_find_locked(store, &metadata->id);
			lock_drop(&store->tables_lock);
			if (table == NULL)
				rc = store_add_table(store, metadata, err);
			else if (atomic_load(&table->metadata) != metadata)
				rc = store_alter_table(table, metadata, err);
			if (rc != 0)
				return -1;
		}
	}
	tables = store_tables(store, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (schema_table_by_id(schema, &tables[i]->id) == NULL &&
		    store_drop_table(store, tables[i], err) != 0) {
			free(tables);
			return -1;
		}
	}
	free(tables);
	lock_take(&store->tables_lock);
	old = store->schema;
	store->schema = schema_ref(schema);
	lock_drop(&store->tables_lock);
	schema_unref(old);
	return 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

int
store_flush(struct store *store, struct table_store *table, struct error *err)
{
	(void)store;
	if (table_flush_begin(table, err) != 0)
		return -1;
	return table_flush_wait(table, err);
}

int
store_truncate(struct store *store, struct table_store *table, store_truncated_fn record,
    void *context, struct error *err)
{
	const struct table_metadata *metadata = atomic_load(&table->metadata);
	struct commitlog_position upto;

	/* Flushed rather than dropped, so that the snapshot has everything. */
	upto = commitlog_current(store->commitlog);
	if (store_flush(store, table, err) != 0)
		return -1;
	if (store->options.auto_snapshot && metadata->options.allow_auto_snapshot &&
	    snapshot_auto(table, "truncated", err) != 0)
		return -1;
	if (record(context, table, upto, err) != 0)
		return -1;
	table->truncated_at = upto;
	atomic_store(&table->truncated_ms, env_wall_us(store->env) / 1000);
	return table_store_discard_sstables(table, err);
}

void
store_set_truncated(
    struct table_store *table, struct commitlog_position position, int64_t truncated_ms)
{
	table->truncated_at = position;
	atomic_store(&table->truncated_ms, truncated_ms);
}

int64_t
table_store_truncated_ms(const struct table_store *table)
{
	return atomic_load(&table->truncated_ms);
}

int
store_refresh(struct store *store, struct table_store *table, uint32_t *added, struct error *err)
{
	int rc = table_store_open_sstables(table, added, err);

	if (rc == 0 && *added > 0)
		compaction_check(store->compactions, table);
	return rc;
}

int
store_flush_all(struct store *store, struct error *err)
{
	uint32_t count;
	struct table_store **tables = store_tables(store, &count);
	int rc = 0;

	for (uint32_t i = 0; i < count && rc == 0; i++)
		if (table_store_has_unflushed(tables[i]))
			rc = table_flush_begin(tables[i], err);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = table_flush_wait(tables[i], err);
	free(tables);
	return rc;
}

/* ---- saved caches ------------------------------------------------------------------------------- */

static void
store_save_caches(void *argument)
{
	struct store *store = argument;

	saved_cache_save(store);
	atomic_store(&store->is_saving_caches, false);
}

/* Each cache has a period of its own; all are saved with the one that is saved most often. */
static void
store_save_caches_when_due(struct store *store, uint64_t now_ns)
{
	uint64_t period = 0;

	for (int i = 0; i < STORE_SAVED_CACHES; i++) {
		uint64_t each = store->options.cache_save_period_seconds[i];

		if (each > 0 && (period == 0 || each < period))
			period = each;
	}
	if (store->options.saved_caches_directory == NULL || period == 0 ||
	    atomic_load(&store->state) != STORE_RUNNING ||
	    now_ns - atomic_load(&store->caches_saved_ns) < period * UINT64_C(1000000000) ||
	    atomic_exchange(&store->is_saving_caches, true))
		return;
	atomic_store(&store->caches_saved_ns, now_ns);
	if (!store_submit(store, "CacheCleanupExecutor", store_save_caches, store))
		atomic_store(&store->is_saving_caches, false);
}

/* ---- the timer --------------------------------------------------------------------------------- */

static void
store_tick(struct store *store)
{
	uint64_t now = env_monotonic_ns(store->env);
	struct table_store **tables;
	struct error err;
	uint32_t count;

	tables = store_tables(store, &count);
	for (uint32_t i = 0; i < count; i++) {
		struct table_store *table = tables[i];
		int32_t period = atomic_load(&table->metadata)->options.memtable_flush_period_in_ms;

		table_flush_retry(table);
		if (period > 0 &&
		    now - atomic_load(&table->last_switch_ns) >= (uint64_t)period * 1000000 &&
		    table_store_has_unflushed(table) && table_flush_begin(table, &err) != 0)
			log_error("%s", err.text);
	}
	free(tables);
	if (now - store->meters_ticked_ns >= METER_TICK_SECONDS * UINT64_C(1000000000)) {
		store_tick_meters(store, (double)(now - store->meters_ticked_ns) / 1e9);
		store->meters_ticked_ns = now;
	}
	store_save_caches_when_due(store, now);
	if (env_wall_us(store->env) / 1000 >= atomic_load(&store->next_snapshot_expiry_ms))
		snapshot_expire(store);
	/* A memtable's memory goes with its last reader, which may be after its flush ended. */
	if (atomic_load(&store->waiting_count) > 0) {
		store_relieve_memory(store);
		if (store_has_memory(store))
			store_resume_waiting(store);
	}
}

static void *
store_timer(void *argument)
{
	struct store *store = argument;

	log_thread_name("ScheduledTasks");
	pthread_mutex_lock(&store->timer_mutex);
	while (!store->is_stopping) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += STORE_TIMER_MS / 1000;
		pthread_cond_timedwait(&store->timer_cond, &store->timer_mutex, &until);
		if (store->is_stopping)
			break;
		pthread_mutex_unlock(&store->timer_mutex);
		store_tick(store);
		store_handle_failures(store);
		pthread_mutex_lock(&store->timer_mutex);
	}
	pthread_mutex_unlock(&store->timer_mutex);
	return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static char *
store_strdup(const char *text)
{
	return text != NULL ? xstrdup(text) : NULL;
}

/* The log is over its total: flush what keeps the oldest segments alive. On the sync thread. */
static void
store_on_log_pressure(void *context, const uint32_t *slots, size_t count)
{
	struct store *store = context;

	for (size_t i = 0; i < count; i++) {
		struct table_store *table = NULL;
		struct error err;

		lock_take(&store->tables_lock);
		if (slots[i] < store->table_capacity)
			table = store->tables[slots[i]];
		lock_drop(&store->tables_lock);
		if (table != NULL && !table_is_flushing(table) &&
		    table_flush_begin(table, &err) != 0)
			log_error("%s", err.text);
	}
}

static void
store_on_log_failure(void *context, const struct error *err)
{
	store_note_failure(context, STORE_FAILURE_COMMIT_LOG, NULL, err);
}

static void
store_copy_directories(struct store *store)
{
	const char *const *given = store->options.data_directories;
	char **copies = xcalloc(store->options.data_directory_count, sizeof(*copies));

	for (uint32_t i = 0; i < store->options.data_directory_count; i++)
		copies[i] = xstrdup(given[i]);
	store->options.data_directories = (const char *const *)copies;
}

static int
store_make_directories(struct store *store, struct error *err)
{
	for (uint32_t i = 0; i < store->options.data_directory_count; i++)
		if (files_mkdir(store->env->files, store->options.data_directories[i], err) != 0)
			return -1;
	return 0;
}

int
store_open(const struct store_options *options, struct env *env,
    const struct store_executor *executor, struct store **out, struct error *err)
{
	struct store *store = xzalloc(sizeof(*store));

	store->options = *options;
	store_copy_directories(store);
	store_failures_init(store);
	store->options.commitlog_directory = store_strdup(options->commitlog_directory);
	store->options.saved_caches_directory = store_strdup(options->saved_caches_directory);
	store->options.commitlog_compressor = store_strdup(options->commitlog_compressor);
	store->options.archive_command = store_strdup(options->archive_command);
	store->options.restore_command = store_strdup(options->restore_command);
	store->options.restore_directories = store_strdup(options->restore_directories);
	if (store->options.memtable_shards == 0)
		store->options.memtable_shards = 16;
	/* A quarter of the memtables' memory: more than what one flush gives back is seldom used soon. */
	arena_pool_init(&store->memtable_pool, RANK_STORE_MEMTABLE_POOL,
	    (size_t)(options->memtable_bytes / 4 / ARENA_POOL_BLOCK));
	store->env = env;
	store_set_relief(store);
	store->executor = *executor;
	op_order_init(&store->order, RANK_STORE_ORDER_BARRIER);
	lock_init(&store->tables_lock, "store.tables", RANK_STORE_TABLES);
	lock_init(&store->waiting_lock, "store.waiting", RANK_STORE_WAITING);
	pthread_mutex_init(&store->flush_mutex, NULL);
	pthread_cond_init(&store->flush_cond, NULL);
	pthread_mutex_init(&store->timer_mutex, NULL);
	pthread_cond_init(&store->timer_cond, NULL);
	store->sstables.env = env;
	store->sstables.large_partition_bytes = options->compaction_large_partition_warning_bytes;
	store->sstables.many_tombstones = options->compaction_tombstone_warning_count;
	store->sstables.watch = &store->failures.watch;
	store->sstables.chunks = chunk_cache_new(options->file_cache_bytes);
	store->sstables.keys = key_cache_new(options->key_cache_bytes);
	atomic_init(&store->cache_owners, 1);
	atomic_init(&store->caches_saved_ns, env_monotonic_ns(env));
	store->meters_ticked_ns = env_monotonic_ns(env);
	for (int i = 0; i < STORE_SAVED_CACHES; i++)
		atomic_init(&store->cache_keys_to_save[i], options->cache_keys_to_save[i]);
	store->row_cache =
	    entry_cache_new("row cache", RANK_STORE_ENTRY_CACHE, options->row_cache_bytes);
	store->counter_cache =
	    entry_cache_new("counter cache", RANK_STORE_ENTRY_CACHE, options->counter_cache_bytes);
	atomic_init(&store->incremental_backups, options->incremental_backups);
	atomic_init(&store->column_index_bytes, options->column_index_bytes);
	atomic_init(&store->snapshot_links_per_second, options->snapshot_links_per_second);
	if (store_make_directories(store, err) != 0 ||
	    commitlog_open(&store->options, env, &store->order, &store->commitlog, err) != 0)
		goto failed;
	store->compactions = compaction_manager_new(store);
	commitlog_on_pressure(store->commitlog, store_on_log_pressure, store);
	commitlog_on_failure(store->commitlog, store_on_log_failure, store);
	if (pthread_create(&store->timer_thread, NULL, store_timer, store) != 0) {
		error_set(err, ERROR_NO_MEMORY, "cannot start the store's timer thread");
		goto failed;
	}
	store->has_timer_thread = true;
	*out = store;
	return 0;
failed:
	store_close(store);
	return -1;
}

int
store_sync(struct store *store, struct error *err)
{
	return commitlog_sync(store->commitlog, err);
}

int
store_drain(struct store *store, struct error *err)
{
	int rc;

	/* Their outputs would come too late to matter, and a throttled one may take hours. */
	store_end_compactions(store);
	atomic_store(&store->state, STORE_DRAINED);
	rc = store_flush_all(store, err);
	if (rc == 0)
		rc = commitlog_sync(store->commitlog, err);
	if (store->options.saved_caches_directory != NULL &&
	    !atomic_exchange(&store->is_saving_caches, true))
		saved_cache_save(store);
	return rc;
}

void
store_close(struct store *store)
{
	if (store == NULL)
		return;
	atomic_store(&store->state, STORE_DRAINED);
	compaction_manager_stop(store->compactions);
	if (store->has_timer_thread) {
		pthread_mutex_lock(&store->timer_mutex);
		store->is_stopping = true;
		pthread_cond_signal(&store->timer_cond);
		pthread_mutex_unlock(&store->timer_mutex);
		pthread_join(store->timer_thread, NULL);
	}
	compaction_manager_free(store->compactions);
	commitlog_close(store->commitlog);
	for (uint32_t i = 0; i < store->table_capacity; i++)
		table_store_free(store->tables[i]);
	for (uint32_t i = 0; i < store->old_metadata_count; i++)
		table_unref(store->old_metadata[i]);
	chunk_cache_free(store->sstables.chunks);
	key_cache_free(store->sstables.keys);
	entry_cache_free(store->row_cache);
	entry_cache_free(store->counter_cache);
	schema_unref(store->schema);
	store_failures_fini(store);
	op_order_fini(&store->order);
	arena_pool_fini(&store->memtable_pool);
	lock_fini(&store->tables_lock);
	lock_fini(&store->waiting_lock);
	pthread_mutex_destroy(&store->flush_mutex);
	pthread_cond_destroy(&store->flush_cond);
	pthread_mutex_destroy(&store->timer_mutex);
	pthread_cond_destroy(&store->timer_cond);
	free(store->tables);
	free(store->old_metadata);
	for (uint32_t i = 0; i < store->options.data_directory_count; i++)
		free((char *)store->options.data_directories[i]);
	free((char **)store->options.data_directories);
	free((char *)store->options.commitlog_directory);
	free((char *)store->options.saved_caches_directory);
	free((char *)store->options.commitlog_compressor);
	free((char *)store->options.archive_command);
	free((char *)store->options.restore_command);
	free((char *)store->options.restore_directories);
	free(store);
}
