/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/clip.h"
#include "storage/content_hash.h"
#include "storage/read_response_internal.h"
#include "storage/unfiltered_held.h"

/*
 * Cassandra's chain at a replica (ReadCommand.executeLocally), in its order: tombstones are counted, purged, RowFilter,
 * DataLimits, RTBoundCloser. Where a limit ends a partition inside a range tombstone, it is closed at the last row.
 */

enum {
	RESPONSE_CHECK_ROWS = 256, /* between two looks at the clock */
	RESPONSE_SCRATCH_BLOCK = 4096,
};

struct response_writer {
	const struct read_command *command;
	const struct read_response_options *options;
	struct read_response_stats *stats;
	struct buffer *out;
	struct arena *arena; /* of the answer */
	struct arena *partition_arena; /* the same, or `own`: emptied with each partition */
	struct arena own;
	struct row_codec codec;
	bool hashes;
	struct content_hash hash, hash_before; /* before the current partition */
	const struct clustering_slice *slices, *resumed_slices;
	uint32_t slice_count, resumed_slice_count;
	bool filters_rows; /* else only partitions as a whole */
	bool is_one_row; /* see response_settle() */
	int32_t gc_before;
	uint32_t rows_left, partition_rows_left, rows_seen;

	/* The current partition. */
	struct row static_live;
	bool has_static_live;
	bool has_content;
	uint32_t counted; /* rows of it */
	struct deletion open; /* of what was written */
};

/* ---- counting what is read ------------------------------------------------------------------------ */

/* Looks at every row before tombstones are dropped. */
struct response_counter {
	struct unfiltered_iterator base;
	struct unfiltered_iterator *source; /* owned */
	struct response_writer *writer;
};

static int
response_count_tombstones(struct response_writer *writer, uint32_t count, struct error *err)
{
	uint32_t threshold = writer->options->tombstone_failure_threshold;
	const struct table_metadata *table = writer->command->table;

	writer->stats->tombstones += count;
	if (threshold == 0 || writer->stats->tombstones <= threshold)
		return 0;
	error_set(err, ERROR_READ_FAILURE,
	    "Scanned over %llu tombstones during query of %.*s.%.*s; query aborted",
	    (unsigned long long)writer->stats->tombstones, (int)table->keyspace.size,
	    (const char *)table->keyspace.data, (int)table->name.size,
	    (const char *)table->name.data);
	if (err != NULL) {
		err->reason = 1; /* READ_TOO_MANY_TOMBSTONES */
		err->failures = 1;
	}
	return -1;
}

static int
response_counter_next(
    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct response_counter *counter = (struct response_counter *)iterator;
	struct response_writer *writer = counter->writer;
	uint32_t tombstones = 1;
	int rc = unfiltered_iterator_next(counter->source, out, err);

	if (rc <= 0)
		return rc;
	if (++writer->rows_seen % RESPONSE_CHECK_ROWS == 0 && writer->options->check != NULL &&
	    writer->options->check(writer->options->check_argument, err) != 0)
		return -1;
	if (out->kind == UNFILTERED_ROW)
		row_has_live(&out->row, writer->command->now_seconds, &tombstones);
	return response_count_tombstones(writer, tombstones, err) == 0 ? 1 : -1;
}

static void
response_counter_close(struct unfiltered_iterator *iterator)
{
	unfiltered_iterator_close(((struct response_counter *)iterator)->source);
}

static const struct unfiltered_iterator_ops response_counter_ops = {
    response_counter_next,
    response_counter_close,
};

/* ---- a partition as it is answered ---------------------------------------------------------------- */

static int64_t
response_purge_all(void *argument, struct slice key, int64_t token)
{
	(void)argument;
	(void)key;
	(void)token;
	return INT64_MAX;
}

/* Is this the partition in the middle of which the last page ended? */
static bool
response_resumes(const struct response_writer *writer, const struct unfiltered_iterator *partition)
{
	const struct read_command *command = writer->command;

	if (slice_is_null(command->after_position))
		return false;
	return !command->is_range || slice_equal(command->range.start_key, partition->key);
}

/* Takes *partition and puts what it becomes in its place; NULL after a failure. */
static int
response_prepare(
    struct response_writer *writer, struct unfiltered_iterator **partition, struct error *err)
{
	struct response_counter *counter = arena_alloc(writer->partition_arena, sizeof(*counter));
	struct unfiltered_iterator *source = *partition;
	bool resumes = response_resumes(writer, source);
	uint32_t tombstones = 0;

	*partition = NULL;
	if (counter == NULL) {
		unfiltered_iterator_close(source);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read");
	}
	if (!writer->command->clustering.with_static)
		source->has_static_row = false;
	if (source->has_static_row)
		row_has_live(&source->static_row, writer->command->now_seconds, &tombstones);
	if (response_count_tombstones(writer, tombstones, err) != 0) {
		unfiltered_iterator_close(source);
		return -1;
	}
	*counter = (struct response_counter){*source, source, writer};
	counter->base.ops = &response_counter_ops;
	if (unfiltered_purge(&counter->base, writer->command->now_seconds, writer->gc_before,
		response_purge_all, NULL, writer->partition_arena, &source, err) != 0)
		return -1;
	if (writer->command->table->clustering_count != 0 &&
	    unfiltered_clip(source, resumes ? writer->resumed_slices : writer->slices,
		resumes ? writer->resumed_slice_count : writer->slice_count,
		writer->partition_arena, &source, err) != 0)
		return -1;
	*partition = source;
	return 0;
}

/*
 * One row is read newest SSTable first, until nothing older can matter (store_read.c). What such a
 * read may not have seen is left out wherever it was seen, so that it does not depend on how the row lies in files:
 * deletions and liveness older than every wanted cell, where something newer keeps the row alive. True: also the
 * range tombstones over it, which are older than what they have left.
 */
static bool
response_settle_row(
    const struct response_writer *writer, struct row *row, struct deletion *deletion)
{
	const struct read_command *command = writer->command;
	int64_t least = INT64_MAX, live = INT64_MIN;
	uint32_t wanted = 0;

	for (uint32_t i = 0; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];

		if (cell->timestamp < least)
			least = cell->timestamp;
		if (cell->local_deletion_time == LOCAL_DELETION_TIME_NONE && cell->timestamp > live)
			live = cell->timestamp;
	}
	for (uint32_t i = 0; i < command->table->regular_count; i++)
		wanted += command->wanted_regulars == NULL ||
		    (command->wanted_regulars[i / 64] >> (i % 64) & 1) != 0;
	if (row->cell_count < wanted)
		return false;
	if (row->liveness.ttl == TTL_NONE && row->liveness.timestamp > live)
		live = row->liveness.timestamp;
	if (live < least)
		least = live;
	if (deletion->marked_for_delete_at < least)
		*deletion = DELETION_LIVE;
	if (row->deletion.marked_for_delete_at < least)
		row->deletion = DELETION_LIVE;
	if (row->liveness.timestamp < least)
		row->liveness = LIVENESS_NONE;
	return least != INT64_MIN;
}

static int
response_settle(const struct response_writer *writer, struct unfiltered_iterator **partition,
    struct deletion *deletion, struct error *err)
{
	struct unfiltered_held *held;

	if (unfiltered_hold_row(partition, writer->partition_arena, &held, err) != 0)
		return -1;
	if (held->row != NULL && response_settle_row(writer, held->row, deletion))
		unfiltered_held_drop_markers(held);
	return 0;
}

/* ---- writing -------------------------------------------------------------------------------------- */

void
read_response_put_columns(const struct column_metadata *columns, uint32_t count, struct buffer *out)
{
	buffer_put_vint(out, count);
	for (uint32_t i = 0; i < count; i++) {
		buffer_put_vint(out, columns[i].name.size);
		buffer_put_slice(out, columns[i].name);
		buffer_put_vint(out, read_response_shape(&columns[i]));
	}
}

static void
response_put_partition(struct response_writer *writer, const struct unfiltered_iterator *partition,
    struct deletion deletion)
{
	bool has_deletion = !deletion_is_live(deletion), has_static = partition->has_static_row;

	if (writer->hashes)
		content_hash_partition(&writer->hash, partition->key, deletion,
		    has_static ? &partition->static_row : NULL);
	writer->has_content = has_deletion || has_static;
	if (!writer->options->wants_data)
		return;
	buffer_put_u8(writer->out,
	    (uint8_t)(READ_PARTITION | (has_deletion ? READ_PARTITION_HAS_DELETION : 0) |
		(has_static ? READ_PARTITION_HAS_STATIC : 0)));
	buffer_put_vint(writer->out, partition->key.size);
	buffer_put_slice(writer->out, partition->key);
	if (has_deletion)
		deletion_encode(deletion, writer->out);
	if (has_static)
		row_encode(
		    &writer->codec, ROW_CODEC_MESSAGE, &partition->static_row, 0, writer->out);
}

static void
response_put_row(struct response_writer *writer, const struct row *row)
{
	if (writer->hashes)
		content_hash_row(&writer->hash, row);
	if (writer->options->wants_data)
		row_encode(&writer->codec, ROW_CODEC_MESSAGE, row, 0, writer->out);
	writer->has_content = true;
}

static void
response_put_marker(struct response_writer *writer, const struct marker *marker)
{
	bool is_reversed = writer->command->clustering.is_reversed;
	bool opens = is_reversed ? bound_closes(marker->kind) : bound_opens(marker->kind);

	writer->open = DELETION_LIVE;
	if (opens)
		writer->open = is_reversed ? marker->close : marker->open;
	if (writer->hashes)
		content_hash_marker(&writer->hash, marker);
	if (writer->options->wants_data)
		marker_encode(&writer->codec, ROW_CODEC_MESSAGE, marker, 0, writer->out);
	writer->has_content = true;
}

/* A limit ended the partition at `row`, inside a range tombstone. */
static int
response_close_open(struct response_writer *writer, const struct row *row, struct error *err)
{
	bool is_reversed = writer->command->clustering.is_reversed;
	struct marker marker = {
	    .kind = is_reversed ? BOUND_INCL_START : BOUND_INCL_END,
	    .clustering_count = row->clustering_count,
	    .clustering = row->clustering,
	    .close = is_reversed ? DELETION_LIVE : writer->open,
	    .open = is_reversed ? writer->open : DELETION_LIVE,
	};

	if (deletion_is_live(writer->open))
		return 0;
	marker.position = position_make(writer->command->table, marker.kind, marker.clustering,
	    marker.clustering_count, writer->partition_arena);
	if (slice_is_null(marker.position))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a position");
	response_put_marker(writer, &marker);
	return 0;
}

/* ---- filters and limits --------------------------------------------------------------------------- */

static bool
response_is_row_filter(const struct filter_expression *filter)
{
	return filter->column->kind == COLUMN_REGULAR || filter->column->kind == COLUMN_CLUSTERING;
}

/* Filters on keys and static columns decide about the partition: 1 it passes, 0, -1. */
static int
response_filter_partition(
    struct response_writer *writer, const struct unfiltered_iterator *partition, struct error *err)
{
	const struct read_command *command = writer->command;
	struct read_command one = *command;

	writer->has_static_live = false;
	if (partition->has_static_row &&
	    row_live_view(&partition->static_row, command->now_seconds, writer->partition_arena,
		&writer->static_live, &writer->has_static_live, NULL, err) != 0)
		return -1;
	one.filter_count = 1;
	for (uint32_t i = 0; i < command->filter_count; i++) {
		int rc;

		if (response_is_row_filter(&command->filters[i]))
			continue;
		one.filters = &command->filters[i];
		rc = read_command_filter(&one, partition->key,
		    writer->has_static_live ? &writer->static_live : NULL, NULL, err);
		if (rc <= 0)
			return rc;
	}
	return 1;
}

/* 1: the row is in the answer, and *is_live says whether it counts; 0: filtered out; -1. */
static int
response_filter_row(struct response_writer *writer, const struct unfiltered_iterator *partition,
    const struct row *row, bool *is_live, struct error *err)
{
	const struct read_command *command = writer->command;
	uint32_t unused;
	struct row view;

	if (!writer->filters_rows) {
		*is_live = row_has_live(row, command->now_seconds, &unused);
		return 1;
	}
	if (row_live_view(
		row, command->now_seconds, writer->partition_arena, &view, is_live, NULL, err) != 0)
		return -1;
	if (!*is_live)
		return 0;
	return read_command_filter(command, partition->key,
	    writer->has_static_live ? &writer->static_live : NULL, &view, err);
}

static void
response_count_row(struct response_writer *writer)
{
	writer->stats->rows++;
	writer->counted++;
	if (writer->rows_left != READ_LIMIT_NONE)
		writer->rows_left--;
	if (writer->partition_rows_left != READ_LIMIT_NONE)
		writer->partition_rows_left--;
}

/* Everything behind the partition's head. */
static int
response_put_unfiltereds(struct response_writer *writer, struct unfiltered_iterator *partition,
    struct unfiltered *item, int rc, enum read_response_end *end, struct error *err)
{
	*end = READ_RESPONSE_COMPLETE;
	for (; rc > 0; rc = unfiltered_iterator_next(partition, item, err)) {
		bool is_live = false;

		if (item->kind == UNFILTERED_MARKER) {
			response_put_marker(writer, &item->marker);
			continue;
		}
		rc = response_filter_row(writer, partition, &item->row, &is_live, err);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		response_put_row(writer, &item->row);
		if (!is_live)
			continue;
		response_count_row(writer);
		if (writer->rows_left == 0)
			*end = READ_RESPONSE_ROW_LIMIT;
		else if (writer->partition_rows_left == 0)
			*end = READ_RESPONSE_PARTITION_LIMIT;
		if (*end != READ_RESPONSE_COMPLETE)
			return response_close_open(writer, &item->row, err);
	}
	return rc;
}

/* A partition of nothing but a live static row is one row of the answer (CQLLimits.onPartitionClose). */
static void
response_count_static(struct response_writer *writer, const struct unfiltered_iterator *partition)
{
	uint32_t unused;

	if (writer->counted != 0 || !partition->has_static_row || writer->filters_rows ||
	    response_resumes(writer, partition) ||
	    !row_has_live(&partition->static_row, writer->command->now_seconds, &unused))
		return;
	response_count_row(writer);
}

static int
response_put_body(struct response_writer *writer, struct unfiltered_iterator *partition,
    struct deletion deletion, struct error *err)
{
	size_t start = writer->out->size;
	enum read_response_end end;
	struct unfiltered item;
	int rc;

	if (writer->hashes)
		content_hash_copy(&writer->hash_before, &writer->hash);
	writer->partition_rows_left = writer->command->per_partition_limit;
	writer->counted = 0;
	writer->open = DELETION_LIVE;
	rc = unfiltered_iterator_next(partition, &item, err);
	response_put_partition(writer, partition, deletion);
	if (rc > 0)
		rc = response_put_unfiltereds(writer, partition, &item, rc, &end, err);
	else
		end = READ_RESPONSE_COMPLETE;
	if (rc < 0)
		return -1;
	/* With filters on rows, a partition without one that passes says nothing (RowFilter). */
	if (!writer->has_content || (writer->filters_rows && writer->counted == 0)) {
		writer->out->size = start;
		if (writer->hashes)
			content_hash_copy(&writer->hash, &writer->hash_before);
		return 0;
	}
	if (end == READ_RESPONSE_COMPLETE)
		response_count_static(writer, partition);
	if (writer->options->wants_data) {
		buffer_put_u8(writer->out, UNFILTERED_END_OF_PARTITION);
		buffer_put_u8(writer->out, (uint8_t)end);
	}
	return 0;
}

static int
response_put_one(
    struct response_writer *writer, struct unfiltered_iterator *partition, struct error *err)
{
	struct deletion deletion;
	int rc;

	if (writer->partition_arena != writer->arena)
		arena_reset(writer->partition_arena); /* the partition before is closed */
	if (response_prepare(writer, &partition, err) != 0)
		return -1;
	deletion = partition->partition_deletion;
	rc = writer->command->filter_count != 0 ? response_filter_partition(writer, partition, err)
						: 1;
	if (rc > 0 && writer->is_one_row &&
	    response_settle(writer, &partition, &deletion, err) != 0)
		rc = -1;
	if (rc > 0)
		rc = response_put_body(writer, partition, deletion, err);
	unfiltered_iterator_close(partition);
	return rc;
}

static int
response_put_all(
    struct response_writer *writer, struct partition_iterator *source, struct error *err)
{
	struct unfiltered_iterator *partition;
	int rc = 0;

	while (
	    writer->rows_left != 0 && (rc = partition_iterator_next(source, &partition, err)) > 0) {
		if (response_put_one(writer, partition, err) < 0)
			return -1;
	}
	if (rc < 0)
		return -1;
	writer->stats->is_cut = writer->rows_left == 0;
	return 0;
}

static int
response_begin(struct response_writer *writer, struct error *err)
{
	const struct read_command *command = writer->command;
	const struct table_metadata *table = command->table;
	int64_t gc_before = command->now_seconds - table->options.gc_grace_seconds;

	writer->rows_left = command->row_limit;
	writer->gc_before = gc_before < INT32_MIN ? INT32_MIN
	    : gc_before > INT32_MAX               ? INT32_MAX
						  : (int32_t)gc_before;
	writer->is_one_row = read_command_is_one_row(command);
	for (uint32_t i = 0; i < command->filter_count; i++)
		writer->filters_rows =
		    writer->filters_rows || response_is_row_filter(&command->filters[i]);
	row_codec_init(&writer->codec, table);
	if (!command->clustering.with_static)
		writer->codec.static_count = 0;
	if (clip_slices(&command->clustering, slice_null, writer->arena, &writer->slices,
		&writer->slice_count, err) != 0 ||
	    clip_slices(&command->clustering, command->after_position, writer->arena,
		&writer->resumed_slices, &writer->resumed_slice_count, err) != 0)
		return -1;
	if (writer->hashes)
		content_hash_init(&writer->hash);
	buffer_put_u8(writer->out, READ_RESPONSE_VERSION);
	buffer_put_u8(
	    writer->out, writer->options->wants_data ? READ_RESPONSE_DATA : READ_RESPONSE_DIGEST);
	if (writer->options->wants_data) {
		read_response_put_columns(
		    writer->codec.statics, writer->codec.static_count, writer->out);
		read_response_put_columns(
		    writer->codec.regulars, writer->codec.regular_count, writer->out);
	}
	return 0;
}

static void
response_end(struct response_writer *writer)
{
	if (writer->hashes)
		content_hash_finish(&writer->hash, writer->stats->digest.bytes);
	if (!writer->options->wants_data) {
		buffer_put(writer->out, writer->stats->digest.bytes, CONTENT_HASH_SIZE);
		return;
	}
	buffer_put_u8(writer->out, 0);
	buffer_put_u8(
	    writer->out, writer->stats->is_cut ? READ_RESPONSE_ROW_LIMIT : READ_RESPONSE_COMPLETE);
}

int
read_response_write(struct partition_iterator *source, const struct read_command *command,
    const struct read_response_options *options, struct arena *arena, struct buffer *out,
    struct read_response_stats *stats, struct error *err)
{
	struct response_writer writer;
	size_t start = out->size;
	int rc;

	/* All but the hashes. */
	memset(&writer, 0, offsetof(struct response_writer, hash));
	memset(&writer.slices, 0, sizeof(writer) - offsetof(struct response_writer, slices));
	memset(stats, 0, sizeof(*stats));
	writer.command = command;
	writer.options = options;
	writer.stats = stats;
	writer.out = out;
	writer.arena = arena;
	writer.hashes = options->wants_digest || !options->wants_data;
	arena_init(&writer.own, RESPONSE_SCRATCH_BLOCK); /* takes nothing before it is used */
	writer.partition_arena =
	    command->is_range && command->is_transient ? &writer.own : writer.arena;
	rc = response_begin(&writer, err);
	if (rc == 0)
		rc = response_put_all(&writer, source, err);
	if (rc == 0) {
		response_end(&writer);
		rc = buffer_check(out, err);
	}
	partition_iterator_close(source);
	arena_fini(&writer.own);
	if (rc != 0)
		out->size = start;
	return rc;
}

int
read_response_execute(struct store *store, const struct read_command *command,
    const struct read_response_options *options, struct arena *arena, struct buffer *out,
    struct read_response_stats *stats, struct error *err)
{
	struct partition_iterator *source;

	if (store_read(store, command, arena, &source, err) != 0 ||
	    read_response_write(source, command, options, arena, out, stats, err) != 0)
		return -1;
	store_count_read(store, command->table, stats->rows, stats->tombstones);
	return 0;
}
