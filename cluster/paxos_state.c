/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/paxos_state.h"

#include <string.h>

#include "base/hash.h"

/* How a value in `proposal` and `most_recent_commit` is encoded: in our way (paxos_codec.h). */
enum { PAXOS_VALUE_VERSION = 100, PAXOS_TTL_MIN = 3 * 60 * 60, PAXOS_WALK_PAGE = 256 };
enum { PAXOS_LOOK_ROWS = 10000, PAXOS_LOOK_BLOCK = 16 << 10 };

/* What system.paxos says of one partition of one table. */
struct paxos_row {
	struct uuid promised, accepted_ballot, committed_ballot;
	struct slice accepted, committed;
};

void
paxos_acceptor_init(struct paxos_acceptor *acceptor, struct store *store, struct env *env)
{
	acceptor->store = store;
	acceptor->env = env;
	table_locks_init(&acceptor->locks);
	paxos_tracker_init(&acceptor->tracker);
}

void
paxos_acceptor_fini(struct paxos_acceptor *acceptor)
{
	table_locks_fini(&acceptor->locks);
	paxos_tracker_fini(&acceptor->tracker);
}

/* ---- Reading ---------------------------------------------------------------------------------- */

static void
paxos_row_cell(const struct cell *cell, struct paxos_row *out)
{
	struct slice name = cell->column->name;
	struct uuid *uuid = slice_equal_string(name, "in_progress_ballot") ? &out->promised
	    : slice_equal_string(name, "proposal_ballot")                  ? &out->accepted_ballot
	    : slice_equal_string(name, "most_recent_commit_at")            ? &out->committed_ballot
									   : NULL;

	if (uuid != NULL && cell->value.size == sizeof(uuid->bytes))
		memcpy(uuid->bytes, cell->value.data, sizeof(uuid->bytes));
	else if (slice_equal_string(name, "proposal"))
		out->accepted = cell->value;
	else if (slice_equal_string(name, "most_recent_commit"))
		out->committed = cell->value;
}

static int
paxos_row_read(const struct paxos_step_call *call, int64_t now_seconds, struct paxos_row *out,
    struct error *err)
{
	struct read_command command = {.table = call->paxos_table,
	    .key = call->commit.key,
	    .token = murmur3_token(call->commit.key),
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = now_seconds};
	struct slice id = slice_of(call->table->id.bytes, sizeof(call->table->id.bytes));
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	int rc;

	memset(out, 0, sizeof(*out));
	out->accepted = out->committed = slice_of("", 0);
	if (store_read(call->acceptor->store, &command, call->arena, &source, err) != 0)
		return -1;
	live_reader_init(&reader, &command, source, call->arena);
	/* A row for each table that has such a key: seldom more than one. */
	while ((rc = live_reader_next(&reader, &live, err)) > 0) {
		if (live.row == NULL || live.row->clustering_count != 1 ||
		    !slice_equal(live.row->clustering[0], id))
			continue;
		for (uint32_t i = 0; i < live.row->cell_count; i++)
			paxos_row_cell(&live.row->cells[i], out);
		out->accepted = arena_copy(call->arena, out->accepted);
		out->committed = arena_copy(call->arena, out->committed);
		if (slice_is_null(out->accepted) || slice_is_null(out->committed))
			rc = error_set(err, ERROR_NO_MEMORY, "no memory for the state of Paxos");
		break;
	}
	live_reader_fini(&reader);
	return rc < 0 ? -1 : 0;
}

/* ---- What is not finished --------------------------------------------------------------------- */

static bool
paxos_row_is_open(const struct paxos_row *row, int64_t before_us)
{
	bool is_accepted = paxos_ballot_compare(&row->accepted_ballot, &row->promised) >= 0;
	const struct uuid *last = is_accepted ? &row->accepted_ballot : &row->promised;

	if (paxos_ballot_compare(last, &row->committed_ballot) <= 0 ||
	    paxos_ballot_timestamp(last) >= before_us)
		return false;
	/* An empty value changes nothing: with it the round is over. */
	return !is_accepted || row->accepted.size > 0;
}

/* *out: NULL where the row is of what is finished. */
static int
paxos_walk_open(const struct paxos_walk *walk, const struct live_row *live, struct arena *arena,
    struct paxos_open **out, struct error *err)
{
	struct paxos_row row;
	struct paxos_open *open;

	*out = NULL;
	if (live->row == NULL || live->row->clustering_count != 1 ||
	    live->row->clustering[0].size != sizeof(open->table.bytes))
		return 0;
	memset(&row, 0, sizeof(row));
	row.accepted = row.committed = slice_of("", 0);
	for (uint32_t i = 0; i < live->row->cell_count; i++)
		paxos_row_cell(&live->row->cells[i], &row);
	if (!paxos_row_is_open(&row, walk->before_us))
		return 0;
	open = arena_zalloc(arena, sizeof(*open));
	if (open != NULL)
		open->key = arena_copy(arena, live->key);
	if (open == NULL || slice_is_null(open->key))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the state of Paxos");
	memcpy(open->table.bytes, live->row->clustering[0].data, sizeof(open->table.bytes));
	open->ballot = paxos_ballot_compare(&row.accepted_ballot, &row.promised) >= 0
	    ? row.accepted_ballot
	    : row.promised;
	*out = open;
	return 0;
}

int
paxos_walk_next(
    struct paxos_walk *walk, struct arena *arena, struct paxos_open **out, struct error *err)
{
	struct read_command command = {.table = walk->paxos_table,
	    .is_range = true,
	    .range = walk->range,
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = env_wall_us(walk->acceptor->env) / 1000000,
	    .is_transient = true};
	struct paxos_open **tail = out, *open = NULL, *last = NULL;
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	uint32_t count = 0;
	int rc;

	*out = NULL;
	if (store_read(walk->acceptor->store, &command, arena, &source, err) != 0)
		return -1;
	live_reader_init(&reader, &command, source, arena);
	while ((rc = live_reader_next(&reader, &live, err)) > 0) {
		/* Between partitions only: one has a row for each table. */
		if (live.is_new_partition && count >= PAXOS_WALK_PAGE) {
			live_reader_fini(&reader);
			walk->range.left = murmur3_token(last->key);
			walk->range.includes_left = walk->range.start_key_exclusive = true;
			walk->range.start_key = last->key;
			return 0;
		}
		rc = paxos_walk_open(walk, &live, arena, &open, err);
		if (rc != 0)
			break;
		if (open == NULL)
			continue;
		count++;
		*tail = last = open;
		tail = &open->next;
	}
	live_reader_fini(&reader);
	walk->is_done = true;
	return rc;
}

static bool
paxos_row_is_of(const struct live_row *live, const struct keyspace_metadata *keyspace)
{
	for (uint32_t i = 0; live->row != NULL && i < keyspace->table_count; i++)
		if (live->row->clustering_count == 1 &&
		    slice_equal(live->row->clustering[0],
			slice_of(
			    keyspace->tables[i]->id.bytes, sizeof(keyspace->tables[i]->id.bytes))))
			return true;
	return false;
}

bool
paxos_state_knows(struct paxos_acceptor *acceptor, const struct table_metadata *paxos_table,
    const struct keyspace_metadata *keyspace)
{
	struct read_command command = {.table = paxos_table,
	    .is_range = true,
	    .range = {.left = INT64_MIN, .right = INT64_MIN, .start_key = slice_null},
	    .row_limit = PAXOS_LOOK_ROWS,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = env_wall_us(acceptor->env) / 1000000,
	    .is_transient = true};
	struct partition_iterator *source;
	struct live_reader reader;
	struct live_row live;
	struct arena arena;
	struct error err;
	bool knows = false;

	arena_init(&arena, PAXOS_LOOK_BLOCK);
	if (store_read(acceptor->store, &command, &arena, &source, &err) == 0) {
		live_reader_init(&reader, &command, source, &arena);
		while (!knows && live_reader_next(&reader, &live, &err) > 0)
			knows = paxos_row_is_of(&live, keyspace);
		live_reader_fini(&reader);
	}
	arena_fini(&arena);
	return knows;
}

/* ---- Writing ---------------------------------------------------------------------------------- */

struct paxos_row_writer {
	struct paxos_step_call *call;
	struct cell cells[8];
	uint32_t count;
	int64_t timestamp, now_seconds;
	int32_t ttl;
	bool is_broken; /* system.paxos lacks a column */
};

static void
paxos_put_cell(struct paxos_row_writer *writer, const char *name, struct slice value)
{
	const struct column_metadata *column =
	    table_column(writer->call->paxos_table, slice_of_string(name));
	bool is_deleted = slice_is_null(value);

	if (column == NULL) {
		writer->is_broken = true;
		return;
	}
	writer->cells[writer->count++] = (struct cell){.column = column,
	    .timestamp = writer->timestamp,
	    .ttl = is_deleted ? TTL_NONE : writer->ttl,
	    .local_deletion_time = (int32_t)(writer->now_seconds + (is_deleted ? 0 : writer->ttl)),
	    .path = slice_null,
	    .value = is_deleted ? slice_of("", 0) : value};
}

static void
paxos_put_value(struct paxos_row_writer *writer, const char *ballot_column, const char *column,
    const char *version_column)
{
	static const uint8_t version[4] = {0, 0, 0, PAXOS_VALUE_VERSION};
	struct paxos_commit *commit = &writer->call->commit;

	paxos_put_cell(
	    writer, ballot_column, slice_of(commit->ballot.bytes, sizeof(commit->ballot.bytes)));
	paxos_put_cell(writer, column, commit->value);
	paxos_put_cell(writer, version_column, slice_of(version, sizeof(version)));
}

/* The cells that the step changes. */
static void
paxos_put_step(struct paxos_row_writer *writer)
{
	struct uuid *ballot = &writer->call->commit.ballot;

	switch (writer->call->step) {
	case PAXOS_PREPARE:
		paxos_put_cell(writer, "in_progress_ballot", slice_of(ballot->bytes, 16));
		break;
	case PAXOS_PROPOSE:
		paxos_put_value(writer, "proposal_ballot", "proposal", "proposal_version");
		break;
	case PAXOS_COMMIT:
		paxos_put_value(writer, "most_recent_commit_at", "most_recent_commit",
		    "most_recent_commit_version");
		/* At the same timestamp: takes away the proposal that this was, not a younger one. */
		paxos_put_cell(writer, "proposal_ballot", slice_null);
		paxos_put_cell(writer, "proposal", slice_null);
		paxos_put_cell(writer, "proposal_version", slice_null);
		break;
	}
}

/* call->state becomes the mutation of system.paxos. */
static int
paxos_state_mutation(struct paxos_step_call *call, int64_t now_seconds, struct error *err)
{
	int32_t gc_grace = call->table->options.gc_grace_seconds;
	/* Updates are views: what the row is made of lives as long as the call. */
	struct paxos_row_writer *writer = arena_alloc(call->arena, sizeof(*writer));
	struct slice *clustering = arena_alloc(call->arena, sizeof(*clustering));
	struct partition_update *update = arena_zalloc(call->arena, sizeof(*update));
	struct row row = {.clustering_count = 1,
	    .clustering = clustering,
	    .position = slice_null,
	    .liveness = LIVENESS_NONE,
	    .deletion = DELETION_LIVE};
	struct update_builder *builder;

	if (writer == NULL || clustering == NULL || update == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the state of Paxos");
	*writer = (struct paxos_row_writer){.call = call,
	    .timestamp = paxos_ballot_timestamp(&call->commit.ballot),
	    .now_seconds = now_seconds,
	    .ttl = gc_grace > PAXOS_TTL_MIN ? gc_grace : PAXOS_TTL_MIN};
	*clustering = slice_of(call->table->id.bytes, sizeof(call->table->id.bytes));
	paxos_put_step(writer);
	row.cells = writer->cells;
	row.cell_count = writer->count;
	if (writer->is_broken)
		return error_set(err, ERROR_SERVER, "system.paxos lacks columns");
	builder = update_builder_new(call->paxos_table, call->commit.key, call->arena);
	if (builder == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the state of Paxos");
	if (update_builder_add_row(builder, &row, err) != 0 ||
	    update_builder_finish(builder, update, err) != 0)
		return -1;
	call->state = (struct mutation){.keyspace = "system",
	    .key = update->key,
	    .token = update->token,
	    .update_count = 1,
	    .updates = update};
	return 0;
}

static void
paxos_written(struct store_write *write, const struct error *err)
{
	struct paxos_step_call *call = write->context;

	if (err != NULL && !atomic_flag_test_and_set(&call->has_failed))
		call->err = *err;
	/* Acquire and release: the last one sees the error that another thread wrote. */
	if (atomic_fetch_sub_explicit(&call->left, 1, memory_order_acq_rel) == 1)
		call->on_done(call, call->err.code == ERROR_NONE ? NULL : &call->err);
}

/* What the step writes is seen by the next one when this returns; `call` may be gone then. */
static void
paxos_write(struct paxos_step_call *call, bool has_value, bool has_state)
{
	struct store *store = call->acceptor->store;

	call->err.code = ERROR_NONE;
	atomic_flag_clear(&call->has_failed);
	atomic_init(&call->left, (unsigned)has_value + (unsigned)has_state);
	call->write = (struct store_write){.mutation = &call->mutation,
	    .is_durable = call->is_durable,
	    .on_done = paxos_written,
	    .context = call};
	call->state_write = (struct store_write){.mutation = &call->state,
	    .is_durable = true,
	    .on_done = paxos_written,
	    .context = call};
	/* In this order in the log: a commit that is known to have been made has been made. */
	if (has_value)
		store_apply(store, &call->write);
	if (has_state)
		store_apply(store, &call->state_write);
}

/* ---- Steps ------------------------------------------------------------------------------------ */

static const struct uuid *
paxos_later(const struct uuid *a, const struct uuid *b)
{
	return paxos_ballot_compare(a, b) >= 0 ? a : b;
}

/* Is the step taken? Fills the answer. */
static bool
paxos_decide(struct paxos_step_call *call, const struct paxos_row *row)
{
	const struct uuid *ballot = &call->commit.ballot;
	/* A proposal is a promise too: that came where the prepare did not. */
	const struct uuid *promised = paxos_later(&row->promised, &row->accepted_ballot);
	const struct uuid *latest = paxos_later(promised, &row->committed_ballot);
	bool is_taken = true;

	switch (call->step) {
	case PAXOS_PREPARE:
		is_taken = paxos_ballot_is_later(ballot, latest);
		call->promise = (struct paxos_promise){.is_promised = is_taken,
		    .promised = is_taken ? *ballot : *latest,
		    .committed_ballot = row->committed_ballot,
		    .accepted = slice_of("", 0),
		    .committed = row->committed};
		/* What is older than a commit was decided otherwise, or is that commit. */
		if (paxos_ballot_compare(&row->accepted_ballot, &row->committed_ballot) > 0) {
			call->promise.accepted_ballot = row->accepted_ballot;
			call->promise.accepted = row->accepted;
		}
		break;
	case PAXOS_PROPOSE:
		is_taken =
		    (uuid_equal(ballot, promised) || paxos_ballot_is_later(ballot, promised)) &&
		    paxos_ballot_is_later(ballot, &row->committed_ballot);
		call->acceptance = (struct paxos_acceptance){
		    .is_accepted = is_taken, .promised = is_taken ? *ballot : *latest};
		break;
	case PAXOS_COMMIT:
		/* The value is written all the same: it is old data then. */
		is_taken = paxos_ballot_compare(ballot, &row->committed_ballot) > 0;
		break;
	}
	return is_taken;
}

/* What the step did to what is open; under the partition's lock, so in the order of the steps. */
static void
paxos_track(struct paxos_step_call *call)
{
	struct paxos_tracker *tracker = &call->acceptor->tracker;
	const struct paxos_commit *commit = &call->commit;

	/* An empty value changes nothing: with it the round is over. */
	if (call->step == PAXOS_COMMIT || (call->step == PAXOS_PROPOSE && commit->value.size == 0))
		paxos_tracker_close(tracker, &commit->table, commit->key, &commit->ballot);
	else
		paxos_tracker_open(tracker, &commit->table, commit->key, &commit->ballot);
}

void
paxos_step_run(struct paxos_acceptor *acceptor, struct paxos_step_call *call)
{
	int64_t now_seconds = env_wall_us(acceptor->env) / 1000000;
	int64_t token = murmur3_token(call->commit.key);
	struct paxos_row row;
	struct error err;
	bool is_taken = false, has_value;
	int rc;

	call->acceptor = acceptor;
	table_locks_take(&acceptor->locks, token);
	rc = paxos_row_read(call, now_seconds, &row, &err);
	if (rc == 0)
		is_taken = paxos_decide(call, &row);
	if (rc == 0 && is_taken)
		rc = paxos_state_mutation(call, now_seconds, &err);
	if (rc == 0 && is_taken)
		paxos_track(call);
	has_value = call->step == PAXOS_COMMIT && call->mutation.update_count > 0;
	if (rc == 0 && (has_value || is_taken))
		paxos_write(call, has_value, is_taken);
	table_locks_drop(&acceptor->locks, token);
	if (rc != 0)
		call->on_done(call, &err);
	else if (!has_value && !is_taken)
		call->on_done(call, NULL);
}
