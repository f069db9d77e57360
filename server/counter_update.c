/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter updates: this node leads them. Under the locks of the partitions, the shard of this node is
 * taken from the counter cache or read, raised, and written as a whole. Cassandra: db/CounterMutation.
 */
#include "server/execution.h"
#include "server/modification.h"
#include "storage/counter.h"

static int
counter_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a counter update");
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
counter_cached_shards(struct execution *execution, const struct partition_update *update,
    const struct row *row, struct counter_shard *shards)
{
	struct store *store = execution->executor->store;
	struct table_store *table = store_table(store, update->table);

	for (uint32_t i = 0; i < row->cell_count; i++) {
		shards[i] = (struct counter_shard){.clock = 0, .count = 0};
		if (!cell_is_tombstone(&row->cells[i]) &&
		    (table == NULL ||
			!store_counter_cached(store, table, update->key, row, row->cells[i].column,
			    &shards[i].clock, &shards[i].count)))
			return false;
	}
	return true;
}

static void
counter_existing_shards(struct execution *execution, const struct row *row,
    const struct row *existing, struct counter_shard *shards)
{
	struct uuid id;

	memcpy(id.bytes, execution->executor->node->host_id, sizeof(id.bytes));
	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *current = counter_existing(existing, row->cells[i].column);

		shards[i] = (struct counter_shard){.clock = 0, .count = 0};
		if (current != NULL)
			(void)counter_find(current->value, &id, &shards[i]);
	}
}

/* A row whose increments have become shards of this node. */
static int
counter_apply_row(struct execution *execution, const struct row *from,
    const struct counter_shard *shards, struct row *to, struct error *err)
{
	struct arena *arena = execution->arena;
	struct cell *cells = arena_calloc(arena, from->cell_count, sizeof(*cells));
	struct uuid id;

	if (cells == NULL)
		return counter_no_memory(err);
	memcpy(id.bytes, execution->executor->node->host_id, sizeof(id.bytes));
	*to = *from;
	to->cells = cells;
	for (uint32_t i = 0; i < from->cell_count; i++) {
		int64_t clock = execution->now_us;

		cells[i] = from->cells[i];
		if (cell_is_tombstone(&cells[i]))
			continue;
		if (clock <= shards[i].clock)
			clock = shards[i].clock + 1;
		cells[i].value = counter_make_global(&id, clock,
		    (int64_t)((uint64_t)shards[i].count +
			(uint64_t)counter_update_delta(from->cells[i].value)),
		    arena);
		if (slice_is_null(cells[i].value))
			return counter_no_memory(err);
	}
	return 0;
}

/* Read what the counters of a row are now. */
static int
counter_read_shards(struct execution *execution, const struct partition_update *update,
    const struct row *row, struct counter_shard *shards, struct error *err)
{
	struct clustering_range range = {
	    .start_kind = BOUND_INCL_START, .end_kind = BOUND_INCL_END, .is_row = true};
	struct row existing, existing_static;
	bool has_row, has_static;

	if (!row->is_static) {
		range.start_position = position_make(update->table, BOUND_INCL_START,
		    row->clustering, row->clustering_count, execution->arena);
		range.end_position = position_make(update->table, BOUND_INCL_END, row->clustering,
		    row->clustering_count, execution->arena);
		if (slice_is_null(range.start_position) || slice_is_null(range.end_position))
			return counter_no_memory(err);
	}
	if (modification_read_row(execution, update->table, update->key, update->token,
		row->is_static ? NULL : &range, execution->now_seconds, execution->arena, &existing,
		&has_row, &existing_static, &has_static, err) != 0)
		return -1;
	if (row->is_static)
		counter_existing_shards(
		    execution, row, has_static ? &existing_static : NULL, shards);
	else
		counter_existing_shards(execution, row, has_row ? &existing : NULL, shards);
	return 0;
}

static int
counter_update_row(struct execution *execution, const struct partition_update *update,
    const struct row *from, struct row *to, struct error *err)
{
	struct counter_shard *shards =
	    arena_calloc(execution->arena, from->cell_count + 1, sizeof(*shards));

	if (shards == NULL)
		return counter_no_memory(err);
	if (!counter_cached_shards(execution, update, from, shards) &&
	    counter_read_shards(execution, update, from, shards, err) != 0)
		return -1;
	return counter_apply_row(execution, from, shards, to, err);
}

static int
counter_apply_update(struct execution *execution, const struct partition_update *from,
    struct partition_update *to, struct error *err)
{
	struct row *rows = arena_calloc(execution->arena, from->row_count, sizeof(*rows));
	struct row *static_row = arena_zalloc(execution->arena, sizeof(*static_row));

	if (rows == NULL || static_row == NULL)
		return counter_no_memory(err);
	*to = *from;
	for (uint32_t i = 0; i < from->row_count; i++)
		if (counter_update_row(execution, from, &from->rows[i], &rows[i], err) != 0)
			return -1;
	to->rows = rows;
	if (from->static_row == NULL)
		return 0;
	if (counter_update_row(execution, from, from->static_row, static_row, err) != 0)
		return -1;
	to->static_row = static_row;
	return 0;
}

static int
counter_apply(
    struct execution *execution, struct mutation *mutations, uint32_t count, struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		struct partition_update *updates =
		    arena_calloc(execution->arena, mutations[i].update_count, sizeof(*updates));

		if (updates == NULL)
			return counter_no_memory(err);
		for (uint32_t j = 0; j < mutations[i].update_count; j++) {
			if (counter_apply_update(
				execution, &mutations[i].updates[j], &updates[j], err) != 0)
				return -1;
		}
		mutations[i].updates = updates;
	}
	return 0;
}

void
counter_execute(struct execution *execution, struct mutation *mutations, uint32_t count,
    const struct keyspace_metadata *keyspace)
{
	struct table_locks *locks = &execution->executor->counter_locks;
	struct table_locks_set held = {{0}};
	struct error err;
	int rc;

	if (execution->options->consistency == CONSISTENCY_ANY) {
		error_set(&err, ERROR_INVALID,
		    "Consistency level ANY is not yet supported for counter table %.*s",
		    count > 0 ? (int)mutations[0].updates[0].table->name.size : 0,
		    count > 0 ? (const char *)mutations[0].updates[0].table->name.data : "");
		execution_done(execution, &err);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		table_locks_set_add(&held, mutations[i].token);
	table_locks_take_set(locks, &held);
	rc = counter_apply(execution, mutations, count, &err);
	if (rc == 0)
		execution_write(execution, mutations, count, keyspace, WRITE_COUNTER);
	/* The write is visible now; the execution may be gone. */
	table_locks_drop_set(locks, &held);
	if (rc != 0)
		execution_done(execution, &err);
}
