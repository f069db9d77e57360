/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/counter_update.h"
#include "storage/counter.h"
#include "storage/row_copy.h"

void
counter_updater_init(struct counter_updater *updater, struct store *store, struct env *env)
{
	updater->store = store;
	updater->env = env;
	table_locks_init(&updater->locks);
}

void
counter_updater_fini(struct counter_updater *updater)
{
	table_locks_fini(&updater->locks);
}

void
counter_updater_lock(struct counter_updater *updater, const struct mutation *updates,
    uint32_t count, struct table_locks_set *held)
{
	for (uint32_t i = 0; i < count; i++)
		table_locks_set_add(held, updates[i].token);
	table_locks_take_set(&updater->locks, held);
}

void
counter_updater_unlock(struct counter_updater *updater, const struct table_locks_set *held)
{
	table_locks_drop_set(&updater->locks, held);
}

/* One call of counter_updater_make(). */
struct counter_update {
	struct counter_updater *updater;
	struct arena *arena;
	int64_t now_us;
};

static int
counter_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a counter update");
}

/* What is there now: the row at these clusterings (NULL: the static row), live and copied. */
static int
counter_read(struct counter_update *update, const struct partition_update *of,
    const struct row *row, struct row *out, bool *has_row, struct error *err)
{
	struct read_command command = {.table = of->table,
	    .key = of->key,
	    .token = of->token,
	    .clustering.with_static = row == NULL,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = 1,
	    .now_seconds = update->now_us / 1000000};
	struct clustering_slice slice;
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	const struct row *found;
	int rc;

	*has_row = false;
	if (row != NULL) {
		slice.start = position_make(of->table, BOUND_INCL_START, row->clustering,
		    row->clustering_count, update->arena);
		slice.end = position_make(of->table, BOUND_INCL_END, row->clustering,
		    row->clustering_count, update->arena);
		if (slice_is_null(slice.start) || slice_is_null(slice.end))
			return counter_no_memory(err);
		command.clustering.slices = &slice;
		command.clustering.slice_count = 1;
		command.clustering.is_names = true;
	}
	if (store_read(update->updater->store, &command, update->arena, &source, err) != 0)
		return -1;
	live_reader_init(&reader, &command, source, update->arena);
	rc = live_reader_next(&reader, &live, err);
	found = rc <= 0 ? NULL : row != NULL ? live.row : live.static_row;
	if (rc > 0)
		rc = 0;
	if (found != NULL) {
		rc = row_copy(found, out, update->arena, err);
		*has_row = rc == 0;
	}
	live_reader_fini(&reader);
	return rc;
}

static const struct cell *
counter_existing(const struct row *row, const struct column_metadata *column)
{
	for (uint32_t i = 0; row != NULL && i < row->cell_count; i++) {
		if (slice_equal(row->cells[i].column->name, column->name))
			return &row->cells[i];
	}
	return NULL;
}

/* The shard of this node that each cell had before, in the order of the cells; {0, 0}: none. */
static bool
counter_cached_shards(struct counter_update *update, const struct partition_update *of,
    const struct row *row, struct counter_shard *shards)
{
	struct store *store = update->updater->store;
	struct table_store *table = store_table(store, of->table);

	for (uint32_t i = 0; i < row->cell_count; i++) {
		shards[i] = (struct counter_shard){.clock = 0, .count = 0};
		if (!cell_is_tombstone(&row->cells[i]) &&
		    (table == NULL ||
			!store_counter_cached(store, table, of->key, row, row->cells[i].column,
			    &shards[i].clock, &shards[i].count)))
			return false;
	}
	return true;
}

/* The same from what the row is now. */
static int
counter_read_shards(struct counter_update *update, const struct partition_update *of,
    const struct row *row, struct counter_shard *shards, struct error *err)
{
	struct row existing;
	bool has_row;

	if (counter_read(update, of, row->is_static ? NULL : row, &existing, &has_row, err) != 0)
		return -1;
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *current =
		    counter_existing(has_row ? &existing : NULL, row->cells[i].column);

		shards[i] = (struct counter_shard){.clock = 0, .count = 0};
		if (current != NULL)
			(void)counter_find(current->value, &update->updater->host_id, &shards[i]);
	}
	return 0;
}

/* A row whose increments have become shards of this node. */
static int
counter_raise_row(struct counter_update *update, const struct partition_update *of,
    const struct row *from, struct row *to, struct error *err)
{
	const struct uuid *id = &update->updater->host_id;
	struct cell *cells = arena_calloc(update->arena, from->cell_count, sizeof(*cells));
	struct counter_shard *shards =
	    arena_calloc(update->arena, from->cell_count, sizeof(*shards));

	if (cells == NULL || shards == NULL)
		return counter_no_memory(err);
	if (!counter_cached_shards(update, of, from, shards) &&
	    counter_read_shards(update, of, from, shards, err) != 0)
		return -1;
	*to = *from;
	to->cells = cells;
	for (uint32_t i = 0; i < from->cell_count; i++) {
		int64_t clock = update->now_us;

		cells[i] = from->cells[i];
		if (cell_is_tombstone(&cells[i]))
			continue;
		if (clock <= shards[i].clock)
			clock = shards[i].clock + 1;
		cells[i].value = counter_make_global(id, clock,
		    (int64_t)((uint64_t)shards[i].count +
			(uint64_t)counter_update_delta(from->cells[i].value)),
		    update->arena);
		if (slice_is_null(cells[i].value))
			return counter_no_memory(err);
	}
	return 0;
}

static int
counter_raise(struct counter_update *update, const struct partition_update *from,
    struct partition_update *to, struct error *err)
{
	struct row *rows = arena_calloc(update->arena, from->row_count, sizeof(*rows));
	struct row *static_row = arena_zalloc(update->arena, sizeof(*static_row));

	if (rows == NULL || static_row == NULL)
		return counter_no_memory(err);
	*to = *from;
	for (uint32_t i = 0; i < from->row_count; i++) {
		if (counter_raise_row(update, from, &from->rows[i], &rows[i], err) != 0)
			return -1;
	}
	to->rows = rows;
	if (from->static_row == NULL)
		return 0;
	if (counter_raise_row(update, from, from->static_row, static_row, err) != 0)
		return -1;
	to->static_row = static_row;
	return 0;
}

int
counter_updater_make(struct counter_updater *updater, const struct mutation *from,
    struct arena *arena, struct mutation *out, struct error *err)
{
	struct counter_update update = {updater, arena, env_wall_us(updater->env)};
	struct partition_update *updates =
	    arena_calloc(arena, from->update_count, sizeof(*updates));

	if (updates == NULL)
		return counter_no_memory(err);
	for (uint32_t i = 0; i < from->update_count; i++) {
		if (counter_raise(&update, &from->updates[i], &updates[i], err) != 0)
			return -1;
	}
	*out = *from;
	out->updates = updates;
	return 0;
}
