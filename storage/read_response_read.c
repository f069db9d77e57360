/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "storage/content_hash.h"
#include "storage/merge.h"
#include "storage/read_response_internal.h"

static int
response_truncated(struct error *err)
{
	return error_set(err, ERROR_PROTOCOL, "a read answer goes on beyond the end of its data");
}

/* What the row codec says of its bytes, said of a message. */
static int
response_damaged(struct error *err)
{
	if (err != NULL && err->code == ERROR_CORRUPT)
		err->code = ERROR_PROTOCOL;
	error_prefix(err, "a read answer is damaged");
	return -1;
}

static struct slice
response_get_bytes(struct reader *reader)
{
	uint64_t size = reader_vint(reader);

	if (size > reader_left(reader))
		reader->is_failed = true;
	return reader_bytes(reader, reader->is_failed ? 0 : (size_t)size);
}

/* ---- columns ------------------------------------------------------------------------------------ */

struct response_columns {
	uint32_t count;
	const struct column_metadata *columns;
	const struct column_metadata *const *targets; /* NULL: the columns themselves */
	const int64_t *dropped_us; /* NULL: none was */
};

/* A type that the codec passes over values by. */
static const struct type *
response_shape_type(uint64_t shape, struct arena *arena)
{
	struct type *type = arena_zalloc(arena, sizeof(*type));

	if (type == NULL)
		return NULL;
	type->kind = TYPE_BLOB;
	type->fixed_length = (int32_t)(shape / 2) - 1;
	return type;
}

/* Column `name` as it is written, and what it is here. */
static int
response_get_column(const struct table_metadata *table, enum column_kind kind, struct slice name,
    uint64_t shape, struct arena *arena, struct column_metadata *column,
    const struct column_metadata **target, int64_t *dropped_us, struct error *err)
{
	const struct column_metadata *known = table_column(table, name);
	const struct dropped_column *dropped =
	    table->dropped_count != 0 ? table_dropped_column(table, name) : NULL;

	if (known != NULL && (known->kind != kind || read_response_shape(known) != shape))
		known = NULL;
	*target = known;
	*dropped_us = dropped != NULL ? dropped->dropped_us : INT64_MIN;
	if (known != NULL) {
		*column = *known;
		return 0;
	}
	*column = (struct column_metadata){
	    .name = name,
	    .type = response_shape_type(shape, arena),
	    .kind = kind,
	    .is_complex = shape % 2 != 0,
	};
	return column->type != NULL
	    ? 0
	    : error_set(err, ERROR_NO_MEMORY, "no memory for a read answer");
}

/* The usual list: our table's own columns, with nothing dropped. */
static bool
response_is_own_list(struct reader reader, uint32_t count, const struct table_metadata *table,
    const struct column_metadata *all, uint32_t all_count, struct reader *behind)
{
	if (count != all_count || table->dropped_count != 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct slice name = response_get_bytes(&reader);

		if (!slice_equal(name, all[i].name) ||
		    reader_vint(&reader) != read_response_shape(&all[i]))
			return false;
	}
	*behind = reader;
	return !reader.is_failed;
}

static int
response_get_columns(struct reader *reader, const struct table_metadata *table,
    enum column_kind kind, struct arena *arena, struct response_columns *out, struct error *err)
{
	const struct column_metadata *all =
	    kind == COLUMN_STATIC ? table->statics : table->regulars;
	uint32_t all_count = kind == COLUMN_STATIC ? table->static_count : table->regular_count;
	uint64_t count = reader_vint(reader);
	const struct column_metadata **targets;
	struct column_metadata *columns;
	int64_t *dropped_us;

	if (reader->is_failed || count > reader_left(reader) / 2)
		return response_truncated(err);
	*out = (struct response_columns){.count = (uint32_t)count, .columns = all};
	if (response_is_own_list(*reader, out->count, table, all, all_count, reader))
		return 0;
	columns = arena_calloc(arena, count, sizeof(*columns));
	targets = arena_calloc(arena, count, sizeof(*targets));
	dropped_us = arena_calloc(arena, count, sizeof(*dropped_us));
	if (columns == NULL || targets == NULL || dropped_us == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read answer");
	for (uint32_t i = 0; i < count; i++) {
		struct slice name = response_get_bytes(reader);
		uint64_t shape = reader_vint(reader);

		if (reader->is_failed || shape / 2 > INT32_MAX)
			return response_truncated(err);
		if (response_get_column(table, kind, name, shape, arena, &columns[i], &targets[i],
			&dropped_us[i], err) != 0)
			return -1;
		if (i != 0 && column_order(&columns[i - 1], &columns[i]) >= 0)
			return error_set(
			    err, ERROR_PROTOCOL, "the columns of a read answer are not in order");
	}
	out->columns = columns;
	out->targets = targets;
	out->dropped_us = table->dropped_count != 0 ? dropped_us : NULL;
	return 0;
}

int
read_response_get_codec(struct reader *reader, const struct table_metadata *table,
    struct arena *arena, struct row_codec *codec, struct error *err)
{
	struct response_columns statics, regulars;

	row_codec_init(codec, table);
	if (response_get_columns(reader, table, COLUMN_STATIC, arena, &statics, err) != 0 ||
	    response_get_columns(reader, table, COLUMN_REGULAR, arena, &regulars, err) != 0)
		return -1;
	codec->statics = statics.columns;
	codec->static_count = statics.count;
	codec->static_targets = statics.targets;
	codec->static_dropped_us = statics.dropped_us;
	codec->regulars = regulars.columns;
	codec->regular_count = regulars.count;
	codec->regular_targets = regulars.targets;
	codec->regular_dropped_us = regulars.dropped_us;
	return 0;
}

int
read_response_decode(struct slice encoded, const struct read_command *command, struct arena *arena,
    struct read_response *out, struct error *err)
{
	struct reader reader = reader_of(encoded);
	uint8_t version = reader_u8(&reader), kind = reader_u8(&reader);

	*out = (struct read_response){.command = command};
	if (reader.is_failed)
		return response_truncated(err);
	if (version != READ_RESPONSE_VERSION || kind > READ_RESPONSE_DIGEST)
		return error_set(
		    err, ERROR_PROTOCOL, "a read answer of version %u, kind %u", version, kind);
	if (kind == READ_RESPONSE_DIGEST) {
		out->is_digest = true;
		if (reader_left(&reader) != sizeof(out->digest.bytes))
			return response_truncated(err);
		memcpy(out->digest.bytes, reader.at, sizeof(out->digest.bytes));
		return 0;
	}
	if (read_response_get_codec(&reader, command->table, arena, &out->codec, err) != 0)
		return -1;
	out->body = slice_of(reader.at, reader_left(&reader));
	return 0;
}

/* ---- partitions --------------------------------------------------------------------------------- */

struct response_partition {
	struct unfiltered_iterator base;
	struct response_partitions *parent;
	struct deletion open; /* in the order of the iteration */
	struct slice last; /* position; null: none yet */
	bool is_finished;
	enum read_response_end end;
};

struct response_partitions {
	struct partition_iterator base;
	const struct read_response *response;
	struct arena *arena;
	struct reader reader;
	struct response_partition *current; /* not yet pulled to its end; it is skipped */
	bool is_finished, is_complete;
	bool has_last;
	int64_t last_token;
	struct slice last_key;
};

/* Cells in order: what merges rely on. */
static int
response_check_row(const struct row *row, struct error *err)
{
	for (uint32_t i = 1; i < row->cell_count; i++) {
		const struct cell *cell = &row->cells[i];

		if (cell->column->is_complex && cell_order(&row->cells[i - 1], cell) >= 0)
			return error_set(
			    err, ERROR_PROTOCOL, "the cells of a read answer are not in order");
	}
	return 0;
}

static int
response_check_order(struct response_partition *partition, struct slice position, struct error *err)
{
	int order;

	if (!slice_is_null(partition->last)) {
		order = slice_compare(partition->last, position);
		if (partition->base.is_reversed ? order <= 0 : order >= 0)
			return error_set(
			    err, ERROR_PROTOCOL, "the rows of a read answer are not in order");
	}
	partition->last = position;
	return 0;
}

/* Markers close what is open, and nothing else. */
static int
response_check_marker(
    struct response_partition *partition, const struct marker *marker, struct error *err)
{
	bool is_reversed = partition->base.is_reversed;
	bool closes = is_reversed ? bound_opens(marker->kind) : bound_closes(marker->kind);
	bool opens = is_reversed ? bound_closes(marker->kind) : bound_opens(marker->kind);
	struct deletion close = DELETION_LIVE, open = DELETION_LIVE;

	if (closes)
		close = is_reversed ? marker->open : marker->close;
	if (opens)
		open = is_reversed ? marker->close : marker->open;
	if (close.marked_for_delete_at != partition->open.marked_for_delete_at ||
	    close.local_deletion_time != partition->open.local_deletion_time ||
	    (closes && deletion_is_live(close)) || (opens && deletion_is_live(open)))
		return error_set(
		    err, ERROR_PROTOCOL, "the range tombstones of a read answer are not balanced");
	partition->open = open;
	return 0;
}

static int
response_partition_finish(struct response_partition *partition, struct error *err)
{
	struct response_partitions *parent = partition->parent;
	uint8_t end = reader_u8(&parent->reader);

	if (parent->reader.is_failed)
		return response_truncated(err);
	if (end > READ_RESPONSE_ROW_LIMIT || !deletion_is_live(partition->open))
		return error_set(err, ERROR_PROTOCOL, "a partition of a read answer has no end");
	partition->is_finished = true;
	partition->end = end;
	parent->current = NULL;
	return 0;
}

static int
response_partition_next(
    struct unfiltered_iterator *iterator, struct unfiltered *out, struct error *err)
{
	struct response_partition *partition = (struct response_partition *)iterator;
	struct response_partitions *parent = partition->parent;
	struct slice position;

	do {
		struct marker marker;
		struct row row;

		if (partition->is_finished)
			return 0;
		if (unfiltered_decode(&parent->response->codec, ROW_CODEC_MESSAGE, &parent->reader,
			false, NULL, parent->arena, &out->kind, &row, &marker, err) != 0)
			return response_damaged(err);
		if (out->kind == UNFILTERED_END)
			return response_partition_finish(partition, err);
		if (out->kind == UNFILTERED_ROW)
			out->row = row;
		else
			out->marker = marker;
		if (unfiltered_set_position(iterator->table, out, parent->arena, err) != 0)
			return -1;
		position = out->kind == UNFILTERED_ROW ? out->row.position : out->marker.position;
		if (response_check_order(partition, position, err) != 0)
			return -1;
		if (out->kind == UNFILTERED_ROW
			? response_check_row(&out->row, err) != 0
			: response_check_marker(partition, &out->marker, err) != 0)
			return -1;
		/* All that it has may be of columns that we do not have. */
	} while (out->kind == UNFILTERED_ROW && row_is_empty(&out->row));
	return 1;
}

static void
response_partition_close(struct unfiltered_iterator *iterator)
{
	(void)iterator; /* the rest is skipped when the next one is asked for */
}

static const struct unfiltered_iterator_ops response_partition_ops = {
    response_partition_next,
    response_partition_close,
};

static int
response_check_key(
    struct response_partitions *partitions, struct slice key, int64_t token, struct error *err)
{
	const struct read_command *command = partitions->response->command;
	bool is_wrong = false;

	if (!command->is_range)
		is_wrong = partitions->has_last || !slice_equal(key, command->key);
	else if (partitions->has_last)
		is_wrong = token < partitions->last_token ||
		    (token == partitions->last_token &&
			slice_compare(partitions->last_key, key) >= 0);
	if (is_wrong)
		return error_set(err, ERROR_PROTOCOL,
		    "a partition of a read answer is out of order or was not asked for");
	partitions->has_last = true;
	partitions->last_token = token;
	partitions->last_key = key;
	return 0;
}

static int
response_partition_open(struct response_partitions *partitions, uint8_t flags,
    struct response_partition *partition, struct error *err)
{
	const struct read_command *command = partitions->response->command;
	struct reader *reader = &partitions->reader;
	enum unfiltered_kind kind;
	struct marker unused;

	*partition = (struct response_partition){
	    .base = {.ops = &response_partition_ops,
		.table = command->table,
		.key = response_get_bytes(reader),
		.partition_deletion = DELETION_LIVE,
		.is_reversed = command->clustering.is_reversed},
	    .parent = partitions,
	    .open = DELETION_LIVE,
	};
	if (flags & READ_PARTITION_HAS_DELETION)
		partition->base.partition_deletion = deletion_decode(reader);
	if (reader->is_failed)
		return response_truncated(err);
	partition->base.token =
	    command->is_range ? murmur3_token(partition->base.key) : command->token;
	if (response_check_key(partitions, partition->base.key, partition->base.token, err) != 0)
		return -1;
	if ((flags & READ_PARTITION_HAS_STATIC) == 0)
		return 0;
	if (unfiltered_decode(&partitions->response->codec, ROW_CODEC_MESSAGE, reader, true, NULL,
		partitions->arena, &kind, &partition->base.static_row, &unused, err) != 0)
		return response_damaged(err);
	partition->base.has_static_row = !row_is_empty(&partition->base.static_row);
	return response_check_row(&partition->base.static_row, err);
}

/* Pull what the caller left of the current partition. */
static int
response_partitions_skip(struct response_partitions *partitions, struct error *err)
{
	struct unfiltered unused;
	int rc = 1;

	while (partitions->current != NULL && rc > 0)
		rc = response_partition_next(&partitions->current->base, &unused, err);
	return rc < 0 ? -1 : 0;
}

static int
response_partitions_finish(struct response_partitions *partitions, struct error *err)
{
	uint8_t end = reader_u8(&partitions->reader);

	if (partitions->reader.is_failed || reader_left(&partitions->reader) != 0 ||
	    (end != READ_RESPONSE_COMPLETE && end != READ_RESPONSE_ROW_LIMIT))
		return error_set(err, ERROR_PROTOCOL, "a read answer has no end");
	partitions->is_finished = true;
	partitions->is_complete = end == READ_RESPONSE_COMPLETE;
	return 0;
}

static int
response_partitions_next(
    struct partition_iterator *iterator, struct unfiltered_iterator **out, struct error *err)
{
	struct response_partitions *partitions = (struct response_partitions *)iterator;
	struct response_partition *partition;
	uint8_t flags;

	if (response_partitions_skip(partitions, err) != 0)
		return -1;
	if (partitions->is_finished)
		return 0;
	flags = reader_u8(&partitions->reader);
	if (!partitions->reader.is_failed && flags == 0)
		return response_partitions_finish(partitions, err);
	if ((flags & READ_PARTITION) == 0 || (flags & ~READ_PARTITION_FLAGS) != 0)
		return response_truncated(err);
	partition = arena_alloc(partitions->arena, sizeof(*partition));
	if (partition == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read answer");
	if (response_partition_open(partitions, flags, partition, err) != 0)
		return -1;
	partitions->current = partition;
	*out = &partition->base;
	return 1;
}

static void
response_partitions_close(struct partition_iterator *iterator)
{
	(void)iterator; /* all of it is the arena's */
}

static const struct partition_iterator_ops response_partitions_ops = {
    response_partitions_next,
    response_partitions_close,
};

int
read_response_partitions(const struct read_response *response, struct arena *arena,
    struct partition_iterator **out, struct error *err)
{
	struct response_partitions *partitions;

	if (response->is_digest)
		return error_set(
		    err, ERROR_PROTOCOL, "a digest came where the data of a read was asked for");
	partitions = arena_alloc(arena, sizeof(*partitions));
	if (partitions == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a read answer");
	*partitions = (struct response_partitions){
	    .base = {&response_partitions_ops},
	    .response = response,
	    .arena = arena,
	    .reader = reader_of(response->body),
	};
	*out = &partitions->base;
	return 0;
}

enum read_response_end
read_response_partition_end(const struct unfiltered_iterator *partition)
{
	return ((const struct response_partition *)partition)->end;
}

bool
read_response_is_complete(const struct partition_iterator *partitions)
{
	return ((const struct response_partitions *)partitions)->is_complete;
}

/* ---- the digest of data ------------------------------------------------------------------------- */

int
read_response_digest(const struct read_response *response, struct arena *arena,
    struct read_digest *out, struct error *err)
{
	struct partition_iterator *partitions;
	struct unfiltered_iterator *partition;
	struct content_hash hash;
	struct unfiltered item;
	int rc;

	content_hash_init(&hash);
	if (read_response_partitions(response, arena, &partitions, err) != 0)
		return -1;
	while ((rc = partition_iterator_next(partitions, &partition, err)) > 0) {
		content_hash_partition(&hash, partition->key, partition->partition_deletion,
		    partition->has_static_row ? &partition->static_row : NULL);
		while ((rc = unfiltered_iterator_next(partition, &item, err)) > 0) {
			if (item.kind == UNFILTERED_ROW)
				content_hash_row(&hash, &item.row);
			else
				content_hash_marker(&hash, &item.marker);
		}
		unfiltered_iterator_close(partition);
		if (rc < 0)
			break;
	}
	partition_iterator_close(partitions);
	content_hash_finish(&hash, out->bytes);
	return rc < 0 ? -1 : 0;
}
