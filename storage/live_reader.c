/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/store.h"

/*
 * Cassandra's chain for an answer, in its order: purge what is not live, RowFilter, DataLimits. A
 * partition of which only the static row is live counts as one row when it ends without another
 * (CQLLimits.onPartitionClose); with a filter on rows, or where paging resumes inside it, it does not.
 */

enum {
	LIVE_READER_CHECK_ROWS = 256, /* dropped between two looks at the clock */
};

void
live_reader_init(struct live_reader *reader, const struct read_command *command,
    struct partition_iterator *source, struct arena *arena)
{
	*reader = (struct live_reader){
	    .command = command,
	    .source = source,
	    .arena = arena,
	    .rows_left = command->row_limit,
	};
	arena_init(&reader->scratch, 4096); /* takes nothing before it is used */
}

static int
live_reader_count_tombstones(struct live_reader *reader, uint32_t count, struct error *err)
{
	if (count == 0)
		return 0;
	reader->tombstones += count;
	if (reader->tombstone_failure_threshold == 0 ||
	    reader->tombstones - reader->tombstones_before <= reader->tombstone_failure_threshold)
		return 0;
	error_set(err, ERROR_READ_FAILURE,
	    "Scanned over %llu tombstones during query of %.*s.%.*s; query aborted",
	    (unsigned long long)(reader->tombstones - reader->tombstones_before),
	    (int)reader->command->table->keyspace.size,
	    (const char *)reader->command->table->keyspace.data,
	    (int)reader->command->table->name.size,
	    (const char *)reader->command->table->name.data);
	if (err != NULL) {
		err->reason = 1; /* READ_TOO_MANY_TOMBSTONES */
		err->failures = 1;
	}
	return -1;
}

/* Do rows decide whether the partition passes? Filters on keys and static columns do not. */
static bool
live_reader_filters_rows(const struct read_command *command)
{
	for (uint32_t i = 0; i < command->filter_count; i++) {
		enum column_kind kind = command->filters[i].column->kind;

		if (kind == COLUMN_REGULAR || kind == COLUMN_CLUSTERING)
			return true;
	}
	return false;
}

/* Is this the partition in the middle of which the last page ended? */
static bool
live_reader_resumes(const struct live_reader *reader)
{
	const struct read_command *command = reader->command;

	if (slice_is_null(command->after_position))
		return false;
	return slice_equal(
	    command->is_range ? command->range.start_key : command->key, reader->partition->key);
}

static int
live_reader_open_partition(struct live_reader *reader, struct error *err)
{
	struct unfiltered_iterator *partition = reader->partition;
	uint32_t tombstones = 0;

	reader->has_static = false;
	reader->has_yielded = false;
	if (!reader->command->is_range)
		reader->tombstones_before = reader->tombstones;
	reader->partition_rows_left = reader->command->per_partition_limit;
	if (!partition->has_static_row || !reader->command->clustering.with_static)
		return 0;
	if (row_live_view(&partition->static_row, reader->command->now_seconds, reader->arena,
		&reader->static_row, &reader->has_static, &tombstones, err) != 0)
		return -1;
	return live_reader_count_tombstones(reader, tombstones, err);
}

static void
live_reader_fill(struct live_reader *reader, const struct row *row, struct live_row *out)
{
	out->key = reader->partition->key;
	out->token = reader->partition->token;
	out->is_new_partition = !reader->has_yielded;
	out->static_row = reader->has_static ? &reader->static_row : NULL;
	out->row = row;
	reader->has_yielded = true;
	reader->rows++;
	if (reader->rows_left != READ_LIMIT_NONE)
		reader->rows_left--;
	if (reader->partition_rows_left != READ_LIMIT_NONE)
		reader->partition_rows_left--;
}

/* A filter may let nothing pass for a long time: whoever waits may have gone. */
static int
live_reader_drop(struct live_reader *reader, struct error *err)
{
	if (++reader->dropped % LIVE_READER_CHECK_ROWS != 0 || reader->check == NULL)
		return 0;
	return reader->check(reader->check_argument, err);
}

/* The next row of the current partition: 1 and *out, 0 at its end (or limit), -1. */
static int
live_reader_next_row(struct live_reader *reader, struct live_row *out, struct error *err)
{
	const struct read_command *command = reader->command;
	struct arena *arena = reader->arena;
	struct unfiltered unfiltered;
	int rc;

	if (reader->partition_rows_left == 0)
		return 0;
	if (command->is_transient)
		arena = &reader->scratch;
	while ((rc = unfiltered_iterator_next(reader->partition, &unfiltered, err)) > 0) {
		uint32_t tombstones = 1;
		bool is_live = false;

		if (command->is_transient)
			arena_reset(arena);
		if (unfiltered.kind == UNFILTERED_ROW &&
		    row_live_view(&unfiltered.row, command->now_seconds, arena, &reader->row,
			&is_live, &tombstones, err) != 0)
			return -1;
		if (live_reader_count_tombstones(reader, tombstones, err) != 0)
			return -1;
		rc = is_live;
		if (is_live && command->filter_count != 0)
			rc = read_command_filter(command, reader->partition->key,
			    reader->has_static ? &reader->static_row : NULL, &reader->row, err);
		if (rc == 0)
			rc = live_reader_drop(reader, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		live_reader_fill(reader, &reader->row, out);
		return 1;
	}
	return rc;
}

/* At the end of a partition: is its static row a result by itself? */
static int
live_reader_static_only(struct live_reader *reader, struct live_row *out, struct error *err)
{
	const struct read_command *command = reader->command;

	if (!reader->has_static || reader->has_yielded || live_reader_resumes(reader))
		return 0;
	if (command->filter_count != 0) {
		int rc;

		if (live_reader_filters_rows(command))
			return 0;
		rc = read_command_filter(
		    command, reader->partition->key, &reader->static_row, NULL, err);
		if (rc <= 0)
			return rc;
	}
	live_reader_fill(reader, NULL, out);
	reader->partition_rows_left = 0; /* that was its only result */
	return 1;
}

int
live_reader_next(struct live_reader *reader, struct live_row *out, struct error *err)
{
	int rc;

	while (reader->rows_left != 0) {
		if (reader->partition == NULL) {
			rc = partition_iterator_next(reader->source, &reader->partition, err);
			if (rc <= 0) {
				reader->partition = NULL;
				return rc;
			}
			if (live_reader_open_partition(reader, err) != 0)
				return -1;
		}
		rc = live_reader_next_row(reader, out, err);
		if (rc == 0)
			rc = live_reader_static_only(reader, out, err);
		if (rc != 0)
			return rc;
		unfiltered_iterator_close(reader->partition);
		reader->partition = NULL;
	}
	return 0;
}

void
live_reader_fini(struct live_reader *reader)
{
	unfiltered_iterator_close(reader->partition);
	reader->partition = NULL;
	partition_iterator_close(reader->source);
	reader->source = NULL;
	arena_fini(&reader->scratch);
}
