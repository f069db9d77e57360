/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/stream_reader.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/compaction.h"
#include "storage/lifecycle.h"
#include "storage/store_internal.h"
#include "storage/stream_internal.h"

enum { STREAM_ARENA_BLOCK = 64 * 1024 };

struct stream_transaction {
	struct store *store;
	struct table_store *table;
	struct lifecycle *lifecycle;
	struct sstable **sstables; /* owned, one reference each */
	uint32_t count;
};

/* What the first block says. */
struct stream_header {
	bool is_entire, is_transient, has_pending_repair;
	struct uuid pending_repair;
	int64_t repaired_at;
};

struct stream_reader {
	struct stream_transaction *transaction;
	struct table_metadata *metadata; /* a reference */
	struct buffer pending; /* of a block that is not whole yet */
	bool has_header, is_finished;
	struct stream_header header;
	struct sstable_descriptor descriptor;

	/* An entire SSTable. */
	uint64_t sizes[SSTABLE_COMPONENT_COUNT]; /* what is still to come of each */
	bool has_component[SSTABLE_COMPONENT_COUNT];
	uint32_t component;
	struct file *file; /* owned; of the component that comes now */

	/* Rows. */
	struct arena header_arena, arena; /* of the codec; of one block */
	struct row_codec codec;
	struct sstable_writer *writer; /* owned */
	bool is_inside; /* a partition has begun */
	struct slice last_position; /* in its partition, null: none; in `last` */
	struct buffer last;
	struct deletion open;
};

/* ---- the transaction ---------------------------------------------------------------------------- */

int
stream_transaction_begin(struct store *store, struct table_store *table, uint64_t bytes,
    struct stream_transaction **out, struct error *err)
{
	struct lifecycle *lifecycle;
	const char *directory;

	if (table_store_choose_directory(table, bytes, &directory, err) != 0 ||
	    lifecycle_begin(store->env, directory, "stream", &lifecycle, err) != 0)
		return -1;
	*out = xzalloc(sizeof(**out));
	(*out)->store = store;
	(*out)->table = table;
	(*out)->lifecycle = lifecycle;
	return 0;
}

uint32_t
stream_transaction_files(const struct stream_transaction *transaction)
{
	return transaction->count;
}

static void
stream_transaction_free(struct stream_transaction *transaction, bool unrefs)
{
	for (uint32_t i = 0; i < transaction->count && unrefs; i++)
		sstable_unref(transaction->sstables[i]);
	free(transaction->sstables);
	free(transaction);
}

int
stream_transaction_finish(struct stream_transaction *transaction, struct error *err)
{
	struct store *store = transaction->store;
	struct table_store *table = transaction->table;
	int rc = table_store_replace_sstables(
	    table, transaction->lifecycle, NULL, 0, transaction->sstables, transaction->count, err);

	stream_transaction_free(transaction, rc != 0);
	if (rc == 0)
		compaction_check(store->compactions, table);
	return rc;
}

void
stream_transaction_abort(struct stream_transaction *transaction)
{
	if (transaction == NULL)
		return;
	for (uint32_t i = 0; i < transaction->count; i++)
		sstable_unref(transaction->sstables[i]);
	transaction->count = 0;
	lifecycle_finish(transaction->lifecycle);
	stream_transaction_free(transaction, false);
}

/* ---- the first block ---------------------------------------------------------------------------- */

static int
stream_damaged(struct stream_reader *reader, struct error *err, const char *what)
{
	return error_set(err, ERROR_PROTOCOL, "streamed file of %s.%s: %s",
	    reader->transaction->table->keyspace, reader->transaction->table->name, what);
}

static int
stream_get_components(struct stream_reader *reader, struct reader *from, struct error *err)
{
	uint64_t count = reader_vint(from);
	int last = -1;

	for (uint64_t i = 0; i < count && !from->is_failed; i++) {
		uint8_t component = reader_u8(from);
		uint64_t size = reader_vint(from);

		if (from->is_failed || component >= SSTABLE_COMPONENT_COUNT || component <= last)
			return stream_damaged(reader, err, "a list of components that is none");
		last = component;
		reader->has_component[component] = true;
		reader->sizes[component] = size;
	}
	if (from->is_failed || !reader->has_component[SSTABLE_DATA] ||
	    !reader->has_component[SSTABLE_STATISTICS] || !reader->has_component[SSTABLE_TOC])
		return stream_damaged(reader, err, "components are missing");
	return 0;
}

static int
stream_open_writer(struct stream_reader *reader, struct reader *from, struct error *err)
{
	struct store *store = reader->transaction->store;
	struct sstable_writer_options options = {
	    .descriptor = reader->descriptor,
	    .table = reader->metadata,
	    .expected_keys = reader_vint(from),
	    .min_timestamp = (int64_t)reader_u64(from),
	    .min_local_deletion_time = (int32_t)reader_u32(from),
	    .min_ttl = (int32_t)reader_u32(from),
	    .repaired_at = reader->header.repaired_at,
	    .pending_repair =
		reader->header.has_pending_repair ? &reader->header.pending_repair : NULL,
	    .column_index_bytes = atomic_load(&store->column_index_bytes),
	};

	if (from->is_failed)
		return stream_damaged(reader, err, "the header is too short");
	/* An estimate sizes the filter: a lie must not take all memory. */
	if (options.expected_keys > UINT32_MAX / 4)
		return stream_damaged(reader, err, "more keys than there can be");
	if (options.expected_keys == 0)
		options.expected_keys = 1;
	if (atomic_load(&store->has_host_id))
		options.host_id = &store->host_id;
	if (read_response_get_codec(
		from, reader->metadata, &reader->header_arena, &reader->codec, err) != 0)
		return -1;
	return sstable_writer_new(&store->sstables, &options, &reader->writer, err);
}

static int
stream_get_header(struct stream_reader *reader, struct slice block, struct error *err)
{
	struct stream_transaction *transaction = reader->transaction;
	struct reader from = reader_of(block);
	uint8_t version = reader_u8(&from), kind = reader_u8(&from), flags;
	struct slice id = reader_bytes(&from, sizeof(struct uuid));
	char *base;
	int rc;

	flags = reader_u8(&from);
	reader->header.repaired_at = (int64_t)reader_u64(&from);
	reader->header.has_pending_repair = (flags & STREAM_HAS_PENDING_REPAIR) != 0;
	reader->header.is_transient = (flags & STREAM_IS_TRANSIENT) != 0;
	if (reader->header.has_pending_repair) {
		struct slice pending = reader_bytes(&from, sizeof(struct uuid));

		if (!from.is_failed)
			memcpy(reader->header.pending_repair.bytes, pending.data, pending.size);
	}
	if (from.is_failed)
		return stream_damaged(reader, err, "the header is too short");
	if (version != STREAM_VERSION || kind > STREAM_ENTIRE || flags > STREAM_FLAGS_ALL)
		return stream_damaged(reader, err, "an unknown version or kind");
	if (memcmp(id.data, transaction->table->id.bytes, id.size) != 0)
		return stream_damaged(reader, err, "it is of another table");
	reader->has_header = true;
	reader->header.is_entire = kind == STREAM_ENTIRE;
	reader->descriptor = table_store_new_descriptor(
	    transaction->table, lifecycle_directory(transaction->lifecycle));
	base = sstable_base_path(&reader->descriptor);
	rc = lifecycle_add(transaction->lifecycle, base, err);
	free(base);
	if (rc != 0)
		return -1;
	return reader->header.is_entire ? stream_get_components(reader, &from, err)
					: stream_open_writer(reader, &from, err);
}

/* ---- an entire SSTable -------------------------------------------------------------------------- */

/* Open the component that comes now, behind what is complete. */
static int
stream_turn_component(struct stream_reader *reader, struct error *err)
{
	struct files *files = reader->transaction->store->env->files;
	char path[SSTABLE_PATH_MAX];

	while (reader->component < SSTABLE_COMPONENT_COUNT) {
		bool has = reader->has_component[reader->component];

		if (has && reader->file == NULL &&
		    (sstable_path(&reader->descriptor, reader->component, path, err) != 0 ||
			files_open(files, path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE,
			    &reader->file, err) != 0))
			return -1;
		if (has && reader->sizes[reader->component] != 0)
			return 0;
		if (has && file_sync(reader->file, err) != 0)
			return -1;
		file_close(reader->file);
		reader->file = NULL;
		reader->component++;
	}
	reader->is_finished = true;
	return 0;
}

static int
stream_take_entire(struct stream_reader *reader, struct slice block, struct error *err)
{
	while (block.size != 0) {
		uint64_t left;
		size_t part;

		if (stream_turn_component(reader, err) != 0)
			return -1;
		if (reader->is_finished)
			return stream_damaged(reader, err, "bytes behind its end");
		left = reader->sizes[reader->component];
		part = left < block.size ? (size_t)left : block.size;
		if (file_write(reader->file, block.data, part, err) != 0)
			return -1;
		reader->sizes[reader->component] -= part;
		block.data += part;
		block.size -= part;
	}
	return stream_turn_component(reader, err);
}

/* ---- rows --------------------------------------------------------------------------------------- */

static int
stream_row_damaged(struct stream_reader *reader, struct error *err)
{
	if (err != NULL && err->code == ERROR_CORRUPT)
		err->code = ERROR_PROTOCOL;
	error_prefix(err, "streamed file of %s.%s", reader->transaction->table->keyspace,
	    reader->transaction->table->name);
	return -1;
}

static int
stream_take_partition(
    struct stream_reader *reader, struct reader *from, uint8_t flags, struct error *err)
{
	struct unfiltered_iterator head = {
	    .table = reader->metadata,
	    .partition_deletion = DELETION_LIVE,
	};
	enum unfiltered_kind kind;
	struct marker unused;
	uint64_t size;

	reader_u8(from);
	size = reader_vint(from);
	if (from->is_failed || size > reader_left(from))
		return stream_damaged(reader, err, "a key that is too long");
	head.key = reader_bytes(from, (size_t)size);
	head.token = murmur3_token(head.key);
	if (flags & READ_PARTITION_HAS_DELETION)
		head.partition_deletion = deletion_decode(from);
	if (from->is_failed || (flags & ~READ_PARTITION_FLAGS) != 0)
		return stream_damaged(reader, err, "a partition that is none");
	if (flags & READ_PARTITION_HAS_STATIC) {
		if (unfiltered_decode(&reader->codec, ROW_CODEC_MESSAGE, from, true, NULL,
			&reader->arena, &kind, &head.static_row, &unused, err) != 0)
			return stream_row_damaged(reader, err);
		head.has_static_row = !row_is_empty(&head.static_row);
	}
	reader->is_inside = true;
	reader->last_position = slice_null;
	reader->open = DELETION_LIVE;
	if (sstable_writer_begin(reader->writer, &head, err) != 0)
		return stream_row_damaged(reader, err);
	return 0;
}

/* Rows and markers ascend, markers are balanced: the file must be one that we could have written. */
static int
stream_check_item(struct stream_reader *reader, const struct unfiltered *item, struct error *err)
{
	const struct marker *marker = &item->marker;
	bool is_row = item->kind == UNFILTERED_ROW;
	struct slice position =
	    position_make(reader->metadata, is_row ? BOUND_CLUSTERING : marker->kind,
		is_row ? item->row.clustering : marker->clustering,
		is_row ? item->row.clustering_count : marker->clustering_count, &reader->arena);
	struct deletion close;

	if (slice_is_null(position))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a streamed row");
	if (!slice_is_null(reader->last_position) &&
	    slice_compare(reader->last_position, position) >= 0)
		return stream_damaged(reader, err, "rows out of order");
	buffer_clear(&reader->last);
	buffer_put_slice(&reader->last, position);
	if (buffer_check(&reader->last, err) != 0)
		return -1;
	reader->last_position = buffer_slice(&reader->last);
	if (is_row)
		return 0;
	close = bound_closes(marker->kind) ? marker->close : DELETION_LIVE;
	if (close.marked_for_delete_at != reader->open.marked_for_delete_at ||
	    close.local_deletion_time != reader->open.local_deletion_time)
		return stream_damaged(reader, err, "range tombstones that are not balanced");
	reader->open = bound_opens(marker->kind) ? marker->open : DELETION_LIVE;
	return 0;
}

static int
stream_take_item(struct stream_reader *reader, struct reader *from, struct error *err)
{
	struct unfiltered item;
	struct marker marker;
	struct row row;

	if (unfiltered_decode(&reader->codec, ROW_CODEC_MESSAGE, from, false, NULL, &reader->arena,
		&item.kind, &row, &marker, err) != 0)
		return stream_row_damaged(reader, err);
	if (item.kind == UNFILTERED_END) {
		if (!deletion_is_live(reader->open))
			return stream_damaged(
			    reader, err, "range tombstones that are not balanced");
		reader->is_inside = false;
		return sstable_writer_end(reader->writer, err);
	}
	if (item.kind == UNFILTERED_ROW)
		item.row = row;
	else
		item.marker = marker;
	if (item.kind == UNFILTERED_ROW && row_is_empty(&item.row))
		return 0; /* of columns that are not here any more */
	if (stream_check_item(reader, &item, err) != 0)
		return -1;
	return sstable_writer_put(reader->writer, &item, err);
}

static int
stream_take_rows(struct stream_reader *reader, struct slice block, struct error *err)
{
	struct reader from = reader_of(block);

	arena_reset(&reader->arena);
	while (reader_left(&from) != 0) {
		uint8_t first = *from.at;
		int rc;

		if (reader->is_finished)
			return stream_damaged(reader, err, "bytes behind its end");
		if (reader->is_inside) {
			rc = stream_take_item(reader, &from, err);
		} else if (first & READ_PARTITION) {
			rc = stream_take_partition(reader, &from, first, err);
		} else {
			rc = first == 0 ? 0 : stream_damaged(reader, err, "an item that is none");
			reader_u8(&from);
			reader->is_finished = true;
		}
		if (rc != 0)
			return -1;
	}
	return 0;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static int
stream_take_block(struct stream_reader *reader, struct slice block, uint32_t crc, struct error *err)
{
	if (crc32_update(0, block.data, block.size) != crc)
		return stream_damaged(reader, err, "a block's checksum does not hold");
	if (!reader->has_header)
		return stream_get_header(reader, block, err);
	return reader->header.is_entire ? stream_take_entire(reader, block, err)
					: stream_take_rows(reader, block, err);
}

/* Take whole blocks off the front of *bytes. */
static int
stream_take_blocks(struct stream_reader *reader, struct slice *bytes, struct error *err)
{
	while (bytes->size >= STREAM_BLOCK_HEADER) {
		uint32_t size = load_u32(bytes->data);

		if (size > STREAM_BLOCK_MAX)
			return stream_damaged(reader, err, "a block that is too large");
		if (bytes->size - STREAM_BLOCK_HEADER < size)
			break;
		if (stream_take_block(reader, slice_of(bytes->data + STREAM_BLOCK_HEADER, size),
			load_u32(bytes->data + 4), err) != 0)
			return -1;
		bytes->data += STREAM_BLOCK_HEADER + size;
		bytes->size -= STREAM_BLOCK_HEADER + size;
	}
	return 0;
}

int
stream_reader_push(struct stream_reader *reader, struct slice bytes, struct error *err)
{
	struct slice pending;
	size_t left;

	if (reader->pending.size == 0) {
		if (stream_take_blocks(reader, &bytes, err) != 0)
			return -1;
		buffer_put_slice(&reader->pending, bytes);
		return buffer_check(&reader->pending, err);
	}
	buffer_put_slice(&reader->pending, bytes);
	if (buffer_check(&reader->pending, err) != 0)
		return -1;
	pending = buffer_slice(&reader->pending);
	if (stream_take_blocks(reader, &pending, err) != 0)
		return -1;
	left = pending.size;
	if (left != 0 && left != reader->pending.size)
		memmove(reader->pending.data, pending.data, left);
	reader->pending.size = left;
	return 0;
}

/* ---- a reader's life ------------------------------------------------------------------------------ */

int
stream_reader_new(
    struct stream_transaction *transaction, struct stream_reader **out, struct error *err)
{
	struct stream_reader *reader;

	if (atomic_load(&transaction->table->is_dropped))
		return error_set(err, ERROR_INVALID, "table %s.%s does not exist any more",
		    transaction->table->keyspace, transaction->table->name);
	reader = xzalloc(sizeof(*reader));
	reader->transaction = transaction;
	reader->metadata = table_ref(atomic_load(&transaction->table->metadata));
	buffer_init(&reader->pending);
	buffer_init(&reader->last);
	arena_init(&reader->header_arena, 4096);
	arena_init(&reader->arena, STREAM_ARENA_BLOCK);
	*out = reader;
	return 0;
}

void
stream_reader_abort(struct stream_reader *reader)
{
	if (reader == NULL)
		return;
	sstable_writer_abort(reader->writer);
	file_close(reader->file);
	buffer_fini(&reader->pending);
	buffer_fini(&reader->last);
	arena_fini(&reader->header_arena);
	arena_fini(&reader->arena);
	table_unref(reader->metadata);
	free(reader);
}

/* Names durable; what it is at this node is written into its statistics. */
static int
stream_finish_entire(struct stream_reader *reader, struct sstable **out, struct error *err)
{
	struct stream_transaction *transaction = reader->transaction;
	struct stream_header *header = &reader->header;
	const struct sstable_stats *stats;
	struct sstable *sstable;

	if (files_sync_folder(transaction->store->env->files, reader->descriptor.directory, err) !=
		0 ||
	    sstable_open(&transaction->store->sstables, &reader->descriptor, reader->metadata,
		&sstable, err) != 0)
		return -1;
	stats = sstable_stats(sstable, err);
	if (stats == NULL || sstable_load(sstable, err) != 0 ||
	    (stats->level != 0 && sstable_set_level(sstable, 0, err) != 0) ||
	    ((stats->repaired_at != header->repaired_at ||
		 stats->has_pending_repair != header->has_pending_repair) &&
		sstable_set_repaired(sstable, header->repaired_at,
		    header->has_pending_repair ? &header->pending_repair : NULL,
		    header->is_transient, err) != 0)) {
		sstable_unref(sstable);
		return -1;
	}
	*out = sstable;
	return 0;
}

int
stream_reader_finish(struct stream_reader *reader, struct error *err)
{
	struct stream_transaction *transaction = reader->transaction;
	struct sstable *sstable = NULL;
	int rc;

	if (!reader->is_finished || reader->pending.size != 0) {
		rc = stream_damaged(reader, err, "it ends too early");
	} else if (reader->header.is_entire) {
		rc = stream_finish_entire(reader, &sstable, err);
	} else {
		rc = sstable_writer_finish(reader->writer, &sstable, err);
		reader->writer = NULL;
	}
	stream_reader_abort(reader);
	if (rc != 0)
		return -1;
	if (sstable == NULL)
		return 0; /* nothing was in the ranges */
	transaction->sstables = xrealloc(
	    transaction->sstables, (transaction->count + 1) * sizeof(*transaction->sstables));
	transaction->sstables[transaction->count++] = sstable;
	return 0;
}
