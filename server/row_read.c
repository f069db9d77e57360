/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a write needs to know before it can be made: an element of a list by its place. Cassandra:
 * UpdateParameters.getPrefetchedList, ModificationStatement.readRequiredLists.
 *
 * A partition that only this node holds is read where it is asked for, under the locks of the partition. Any other
 * is read through the coordinator, which answers later: what was begun is given up, and done again with the row.
 */
#include "base/hash.h"
#include "server/execution.h"
#include "server/modification.h"
#include "server/tracing.h"
#include "storage/row_copy.h"

/* A row that was asked for; in the execution's arena. */
struct row_read {
	struct row_read *next;
	struct execution *execution;
	const struct keyspace_metadata *keyspace;
	struct read_command command;
	struct clustering_slice slice;
	struct coordinator_read read;
	bool is_done;
	bool has_row, has_static;
	struct row row, static_row;
	execution_go_on_fn go_on;
	void *context;
};

static int
row_read_no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory to read before a write");
}

static void
row_read_command(const struct table_metadata *table, struct slice key, int64_t token,
    const struct clustering_range *range, int64_t now_seconds, struct clustering_slice *slice,
    struct read_command *out)
{
	*out = (struct read_command){.table = table,
	    .key = key,
	    .token = token,
	    .clustering.with_static = table->static_count > 0,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = 1,
	    .now_seconds = now_seconds};
	if (range == NULL)
		return;
	slice->start = range->start_position;
	slice->end = range->end_position;
	out->clustering.slices = slice;
	out->clustering.slice_count = 1;
	out->clustering.is_names = range->is_row;
}

/* Takes the source over. */
static int
row_read_take(const struct read_command *command, struct partition_iterator *source,
    struct arena *arena, struct row *row, bool *has_row, struct row *static_row, bool *has_static,
    struct error *err)
{
	struct live_reader reader;
	struct live_row live;
	int rc;

	live_reader_init(&reader, command, source, arena);
	rc = live_reader_next(&reader, &live, err);
	if (rc > 0) {
		rc = 0;
		if (live.static_row != NULL) {
			rc = row_copy(live.static_row, static_row, arena, err);
			*has_static = true;
		}
		if (rc == 0 && live.row != NULL) {
			rc = row_copy(live.row, row, arena, err);
			*has_row = true;
		}
	}
	live_reader_fini(&reader);
	return rc;
}

static bool
row_read_is_of(const struct row_read *read, const struct read_command *command)
{
	const struct clustering_filter *mine = &read->command.clustering;

	return read->command.table == command->table &&
	    slice_equal(read->command.key, command->key) &&
	    mine->slice_count == command->clustering.slice_count &&
	    (mine->slice_count == 0 ||
		(slice_equal(mine->slices->start, command->clustering.slices->start) &&
		    slice_equal(mine->slices->end, command->clustering.slices->end)));
}

/* What the coordinator has read; asks for it when that has not happened yet. */
static int
row_read_find(struct execution *execution, const struct keyspace_metadata *keyspace,
    const struct read_command *command, struct row *row, bool *has_row, struct row *static_row,
    bool *has_static, struct error *err)
{
	struct row_read *read = execution->row_reads;

	while (read != NULL && !row_read_is_of(read, command))
		read = read->next;
	if (read != NULL) {
		*row = read->row;
		*has_row = read->has_row;
		*static_row = read->static_row;
		*has_static = read->has_static;
		return 0;
	}
	read = arena_zalloc(execution->arena, sizeof(*read));
	if (read == NULL)
		return row_read_no_memory(err);
	read->execution = execution;
	read->keyspace = keyspace;
	read->command = *command;
	/* Positions may lie in memory of a modification that is begun anew. */
	read->command.key = arena_copy(execution->arena, command->key);
	if (command->clustering.slice_count > 0) {
		read->slice.start = arena_copy(execution->arena, command->clustering.slices->start);
		read->slice.end = arena_copy(execution->arena, command->clustering.slices->end);
		read->command.clustering.slices = &read->slice;
	}
	read->next = execution->row_reads;
	execution->row_reads = read;
	return error_set(err, ERROR_SERVER, "a row must be read first");
}

int
modification_read_row(struct execution *execution, const struct modification_plan *plan,
    struct slice key, int64_t token, const struct clustering_range *range, int64_t now_seconds,
    struct arena *arena, struct row *row, bool *has_row, struct row *static_row, bool *has_static,
    struct error *err)
{
	struct clustering_slice slice;
	struct partition_iterator *source;
	struct read_command command;

	*has_row = *has_static = false;
	row_read_command(plan->table, key, token, range, now_seconds, &slice, &command);
	if (!coordinator_is_sole_replica(execution->executor->coordinator, plan->keyspace, token))
		return row_read_find(
		    execution, plan->keyspace, &command, row, has_row, static_row, has_static, err);
	if (store_read(execution->executor->store, &command, arena, &source, err) != 0)
		return -1;
	return row_read_take(&command, source, arena, row, has_row, static_row, has_static, err);
}

bool
execution_wants_rows(const struct execution *execution)
{
	return execution->row_reads != NULL && !execution->row_reads->is_done;
}

static void
row_read_done(
    struct coordinator_read *answer, struct partition_iterator *source, const struct error *failure)
{
	struct row_read *read = answer->context;
	struct execution *execution = read->execution;
	struct error err;

	execution->worker = answer->worker;
	if (failure == NULL &&
	    row_read_take(&read->command, source, execution->arena, &read->row, &read->has_row,
		&read->static_row, &read->has_static, &err) != 0)
		failure = &err;
	read->is_done = failure == NULL;
	read->go_on(execution, read->context, failure);
}

void
execution_forget_rows(struct execution *execution)
{
	execution->row_reads = NULL;
}

void
execution_read_rows(
    struct execution *execution, enum consistency level, execution_go_on_fn go_on, void *context)
{
	struct row_read *read = execution->row_reads;

	read->go_on = go_on;
	read->context = context;
	read->read = (struct coordinator_read){.command = &read->command,
	    .keyspace = read->keyspace,
	    .consistency = level,
	    .arena = execution->arena,
	    .on_done = row_read_done,
	    .context = read,
	    .worker = execution->worker,
	    .trace = tracing_of(execution)};
	coordinator_read(execution->executor->coordinator, &read->read);
}
