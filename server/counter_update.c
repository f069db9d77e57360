/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter updates: this node leads them. Under the locks of the partitions, the shard of this node is
 * read, raised, and written as a whole. Cassandra: db/CounterMutation.
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

/* A row whose increments have become shards of this node. */
static int
counter_apply_row(struct execution *execution, const struct row *from, const struct row *existing,
    struct row *to, struct error *err)
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
		const struct cell *current = counter_existing(existing, from->cells[i].column);
		struct counter_shard shard = {.clock = 0, .count = 0};
		int64_t clock = execution->now_us;

		cells[i] = from->cells[i];
		if (cell_is_tombstone(&cells[i]))
			continue;
		if (current != NULL)
			(void)counter_find(current->value, &id, &shard);
		if (clock <= shard.clock)
			clock = shard.clock + 1;
		cells[i].value = counter_make_global(&id, clock,
		    (int64_t)((uint64_t)shard.count +
			(uint64_t)counter_update_delta(from->cells[i].value)),
		    arena);
		if (slice_is_null(cells[i].value))
			return counter_no_memory(err);
	}
	return 0;
}

static int
counter_apply_update(struct execution *execution, const struct partition_update *from,
    struct partition_update *to, struct error *err)
{
	struct row *rows = arena_calloc(execution->arena, from->row_count, sizeof(*rows));
	struct row *static_row = arena_zalloc(execution->arena, sizeof(*static_row));
	struct row existing, existing_static;
	bool has_row, has_static;

	if (rows == NULL || static_row == NULL)
		return counter_no_memory(err);
	*to = *from;
	for (uint32_t i = 0; i < from->row_count; i++) {
		const struct row *row = &from->rows[i];
		struct clustering_range range = {
		    .start_kind = BOUND_INCL_START, .end_kind = BOUND_INCL_END, .is_row = true};

		range.start_position = position_make(from->table, BOUND_INCL_START, row->clustering,
		    row->clustering_count, execution->arena);
		range.end_position = position_make(from->table, BOUND_INCL_END, row->clustering,
		    row->clustering_count, execution->arena);
		if (slice_is_null(range.start_position) || slice_is_null(range.end_position))
			return counter_no_memory(err);
		if (modification_read_row(execution, from->table, from->key, from->token, &range,
			execution->now_seconds, execution->arena, &existing, &has_row,
			&existing_static, &has_static, err) != 0 ||
		    counter_apply_row(execution, row, has_row ? &existing : NULL, &rows[i], err) !=
			0)
			return -1;
	}
	to->rows = rows;
	if (from->static_row == NULL)
		return 0;
	if (modification_read_row(execution, from->table, from->key, from->token, NULL,
		execution->now_seconds, execution->arena, &existing, &has_row, &existing_static,
		&has_static, err) != 0 ||
	    counter_apply_row(execution, from->static_row, has_static ? &existing_static : NULL,
		static_row, err) != 0)
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
