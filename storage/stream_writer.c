/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/stream_writer.h"
#include <assert.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "storage/store_internal.h"
#include "storage/stream_internal.h"

enum { STREAM_ARENA_BLOCK = 64 * 1024 };

struct stream_plan_entry {
	struct stream_file file;
	struct sstable *sstable; /* a reference */
};

struct stream_plan {
	struct store *store;
	struct table_metadata *metadata; /* a reference */
	struct stream_range *ranges; /* owned; normalized */
	uint32_t range_count;
	struct stream_plan_entry *entries; /* owned */
	uint32_t count;
};

struct stream_writer {
	const struct stream_plan *plan;
	const struct stream_plan_entry *entry;
	bool has_header, is_finished;

	/* An entire SSTable. */
	struct file *files[SSTABLE_COMPONENT_COUNT]; /* owned; NULL: it has no such component */
	uint64_t sizes[SSTABLE_COMPONENT_COUNT];
	uint32_t component;
	uint64_t offset;

	/* Rows. */
	struct row_codec codec;
	struct arena arena;
	struct read_command command;
	uint32_t range; /* the next one to scan */
	struct partition_iterator *scan; /* owned; NULL: between ranges */
	struct unfiltered_iterator *partition; /* owned; begun */
};

/* ---- ranges ------------------------------------------------------------------------------------- */

/* INT64_MIN as right end is the highest of all. */
static bool
stream_right_is_less(int64_t a, int64_t b)
{
	return a != INT64_MIN && (b == INT64_MIN || a < b);
}

static int
stream_range_compare(const void *left, const void *right)
{
	const struct stream_range *a = left, *b = right;

	if (a->left != b->left)
		return a->left < b->left ? -1 : 1;
	return stream_right_is_less(a->right, b->right) ? -1 : a->right != b->right;
}

struct stream_range *
stream_ranges_normalize(const struct stream_range *ranges, uint32_t count, uint32_t *out_count)
{
	struct stream_range *out = xcalloc(2 * (size_t)count + 1, sizeof(*out));
	uint32_t used = 0, kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct stream_range range = ranges[i];

		if (range.left == range.right) {
			out[used++] = (struct stream_range){INT64_MIN, INT64_MIN};
		} else if (stream_right_is_less(range.left, range.right) ||
		    range.left == INT64_MIN) {
			out[used++] = range;
		} else {
			out[used++] = (struct stream_range){range.left, INT64_MIN};
			out[used++] = (struct stream_range){INT64_MIN, range.right};
		}
	}
	qsort(out, used, sizeof(*out), stream_range_compare);
	for (uint32_t i = 0; i < used; i++) {
		struct stream_range *last = kept != 0 ? &out[kept - 1] : NULL;

		if (last != NULL && (last->right == INT64_MIN || out[i].left <= last->right)) {
			if (stream_right_is_less(last->right, out[i].right))
				last->right = out[i].right;
		} else {
			out[kept++] = out[i];
		}
	}
	*out_count = kept;
	return out;
}

/* ---- the plan ----------------------------------------------------------------------------------- */

/* Add the SSTable unless the ranges leave it out. */
static int
stream_plan_add(struct stream_plan *plan, struct sstable *sstable,
    const struct stream_plan_options *options, struct error *err)
{
	const struct sstable_stats *stats = sstable_stats(sstable, err);
	const struct sstable_repair *repair = sstable_repair(sstable, err);
	struct stream_plan_entry *entry = &plan->entries[plan->count];
	struct stream_file file = {0};
	bool meets = false;

	if (stats == NULL || repair == NULL)
		return -1;
	if (options->pending_repair != NULL &&
	    (!repair->has_pending_repair ||
		!uuid_equal(&repair->pending_repair, options->pending_repair)))
		return 0;
	for (uint32_t i = 0; i < plan->range_count; i++) {
		const struct stream_range *range = &plan->ranges[i];
		bool has_first = stream_range_has(range, stats->first_token);
		bool has_last = stream_range_has(range, stats->last_token);

		if (!has_first && !has_last &&
		    !(range->left >= stats->first_token && range->left < stats->last_token))
			continue;
		meets = true;
		file.is_entire = has_first && has_last && options->entire_sstables;
		file.keys += sstable_estimated_keys_in(sstable, range->left, range->right);
		if (has_first && has_last)
			break;
	}
	if (!meets)
		return 0;
	file.bytes = sstable_total_size(sstable);
	if (!file.is_entire && sstable_estimated_keys(sstable) > file.keys)
		file.bytes = (uint64_t)((double)file.bytes * (double)file.keys /
		    (double)sstable_estimated_keys(sstable));
	file.repaired_at = repair->repaired_at;
	/* Who is not part of that repair would keep the file apart for good: there it is unrepaired. */
	file.has_pending_repair = options->pending_repair != NULL;
	file.pending_repair = repair->pending_repair;
	static_assert(sizeof(file.id) >= SSTABLE_ID_TEXT_SIZE, "an SSTable's id fits");
	sstable_id_format(&sstable_descriptor(sstable)->id, file.id);
	entry->file = file;
	entry->sstable = sstable_ref(sstable);
	plan->count++;
	return 0;
}

int
stream_plan_new(struct store *store, struct table_store *table, const struct stream_range *ranges,
    uint32_t count, const struct stream_plan_options *options, struct stream_plan **out,
    struct error *err)
{
	struct stream_plan *plan;
	struct table_view *view;
	int rc = 0;

	if (store_flush(store, table, err) != 0)
		return -1;
	plan = xzalloc(sizeof(*plan));
	plan->store = store;
	plan->metadata = table_ref(atomic_load(&table->metadata));
	plan->ranges = stream_ranges_normalize(ranges, count, &plan->range_count);
	view = table_view_acquire(table);
	plan->entries = xcalloc(view->sstable_count + 1, sizeof(*plan->entries));
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++)
		rc = stream_plan_add(plan, view->sstables[i], options, err);
	table_view_release(view);
	if (rc != 0) {
		stream_plan_free(plan);
		return -1;
	}
	*out = plan;
	return 0;
}

uint32_t
stream_plan_count(const struct stream_plan *plan)
{
	return plan->count;
}

const struct stream_file *
stream_plan_file(const struct stream_plan *plan, uint32_t index)
{
	return &plan->entries[index].file;
}

void
stream_plan_free(struct stream_plan *plan)
{
	if (plan == NULL)
		return;
	for (uint32_t i = 0; i < plan->count; i++)
		sstable_unref(plan->entries[i].sstable);
	table_unref(plan->metadata);
	free(plan->entries);
	free(plan->ranges);
	free(plan);
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* The components as they are now: a later change of the level makes new files. */
static int
stream_writer_open_files(struct stream_writer *writer, struct error *err)
{
	const struct sstable_descriptor *descriptor = sstable_descriptor(writer->entry->sstable);
	struct files *files = writer->plan->store->env->files;

	for (uint32_t i = 0; i < SSTABLE_COMPONENT_COUNT; i++) {
		char path[SSTABLE_PATH_MAX];

		if (sstable_path(descriptor, i, path, err) != 0)
			return -1;
		if (!files_exists(files, path))
			continue;
		if (files_open(files, path, FILE_READ, &writer->files[i], err) != 0 ||
		    file_size(writer->files[i], &writer->sizes[i], err) != 0)
			return -1;
	}
	if (writer->files[SSTABLE_DATA] == NULL || writer->files[SSTABLE_TOC] == NULL)
		return error_set(
		    err, ERROR_IO, "SSTable %s has lost its files", writer->entry->file.id);
	return 0;
}

int
stream_writer_open(
    struct stream_plan *plan, uint32_t index, struct stream_writer **out, struct error *err)
{
	struct stream_writer *writer = xzalloc(sizeof(*writer));

	writer->plan = plan;
	writer->entry = &plan->entries[index];
	arena_init(&writer->arena, STREAM_ARENA_BLOCK);
	row_codec_init(&writer->codec, plan->metadata);
	writer->command = (struct read_command){
	    .table = plan->metadata,
	    .is_range = true,
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .is_transient = true,
	};
	if (writer->entry->file.is_entire && stream_writer_open_files(writer, err) != 0) {
		stream_writer_close(writer);
		return -1;
	}
	*out = writer;
	return 0;
}

void
stream_writer_close(struct stream_writer *writer)
{
	if (writer == NULL)
		return;
	for (uint32_t i = 0; i < SSTABLE_COMPONENT_COUNT; i++)
		file_close(writer->files[i]);
	unfiltered_iterator_close(writer->partition);
	partition_iterator_close(writer->scan);
	arena_fini(&writer->arena);
	free(writer);
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static void
stream_put_header(
    struct stream_writer *writer, const struct sstable_stats *stats, struct buffer *out)
{
	const struct stream_file *file = &writer->entry->file;
	const struct table_metadata *table = writer->plan->metadata;
	uint32_t components = 0;

	buffer_put_u8(out, STREAM_VERSION);
	buffer_put_u8(out, file->is_entire ? STREAM_ENTIRE : STREAM_ROWS);
	buffer_put(out, table->id.bytes, sizeof(table->id.bytes));
	buffer_put_u8(out,
	    (uint8_t)((file->has_pending_repair ? STREAM_HAS_PENDING_REPAIR : 0) |
		(stats->is_transient ? STREAM_IS_TRANSIENT : 0)));
	buffer_put_u64(out, (uint64_t)file->repaired_at);
	if (file->has_pending_repair)
		buffer_put(out, file->pending_repair.bytes, sizeof(file->pending_repair.bytes));
	if (!file->is_entire) {
		buffer_put_vint(out, file->keys);
		buffer_put_u64(out, (uint64_t)stats->min_timestamp);
		buffer_put_u32(out, (uint32_t)stats->min_local_deletion_time);
		buffer_put_u32(out, (uint32_t)stats->min_ttl);
		read_response_put_columns(table->statics, table->static_count, out);
		read_response_put_columns(table->regulars, table->regular_count, out);
		return;
	}
	for (uint32_t i = 0; i < SSTABLE_COMPONENT_COUNT; i++)
		components += writer->files[i] != NULL;
	buffer_put_vint(out, components);
	for (uint32_t i = 0; i < SSTABLE_COMPONENT_COUNT; i++) {
		if (writer->files[i] == NULL)
			continue;
		buffer_put_u8(out, (uint8_t)i);
		buffer_put_vint(out, writer->sizes[i]);
	}
}

/* Bytes of the components; a component that is read to its end is followed by the next one. */
static int
stream_put_entire(struct stream_writer *writer, size_t bytes, struct buffer *out, struct error *err)
{
	while (writer->component < SSTABLE_COMPONENT_COUNT && bytes != 0) {
		uint64_t left = writer->files[writer->component] != NULL
		    ? writer->sizes[writer->component] - writer->offset
		    : 0;
		size_t part = left < bytes ? (size_t)left : bytes;
		uint8_t *at;

		if (left == 0) {
			writer->component++;
			writer->offset = 0;
			continue;
		}
		at = buffer_append(out, part);
		if (at == NULL)
			return buffer_check(out, err);
		if (file_pread_exact(
			writer->files[writer->component], at, part, writer->offset, err) != 0)
			return -1;
		writer->offset += part;
		bytes -= part;
	}
	writer->is_finished = writer->component == SSTABLE_COMPONENT_COUNT;
	return 0;
}

static void
stream_put_partition(struct stream_writer *writer, struct buffer *out)
{
	const struct unfiltered_iterator *partition = writer->partition;
	bool has_deletion = !deletion_is_live(partition->partition_deletion);

	buffer_put_u8(out,
	    (uint8_t)(READ_PARTITION | (has_deletion ? READ_PARTITION_HAS_DELETION : 0) |
		(partition->has_static_row ? READ_PARTITION_HAS_STATIC : 0)));
	buffer_put_vint(out, partition->key.size);
	buffer_put_slice(out, partition->key);
	if (has_deletion)
		deletion_encode(partition->partition_deletion, out);
	if (partition->has_static_row)
		row_encode(&writer->codec, ROW_CODEC_MESSAGE, &partition->static_row, 0, out);
}

/* Go to the next partition, of whichever range. 1, 0: there is none, -1. */
static int
stream_next_partition(struct stream_writer *writer, struct error *err)
{
	for (;;) {
		int rc;

		if (writer->scan == NULL) {
			const struct stream_range *range = &writer->plan->ranges[writer->range];

			if (writer->range == writer->plan->range_count)
				return 0;
			writer->range++;
			arena_reset(&writer->arena);
			writer->command.range =
			    (struct token_range){.left = range->left, .right = range->right};
			if (sstable_scan(writer->entry->sstable, &writer->command,
				writer->plan->metadata,
				SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT, &writer->arena,
				&writer->scan, err) != 0)
				return -1;
			if (writer->scan == NULL)
				continue;
		}
		rc = partition_iterator_next(writer->scan, &writer->partition, err);
		if (rc != 0)
			return rc;
		writer->partition = NULL;
		partition_iterator_close(writer->scan);
		writer->scan = NULL;
	}
}

/* 1: an item was put; 0: the file has ended; -1. */
static int
stream_put_item(struct stream_writer *writer, struct buffer *out, struct error *err)
{
	struct unfiltered item;
	int rc;

	if (writer->partition == NULL) {
		rc = stream_next_partition(writer, err);
		if (rc > 0)
			stream_put_partition(writer, out);
		else if (rc == 0)
			buffer_put_u8(out, 0);
		return rc;
	}
	rc = unfiltered_iterator_next(writer->partition, &item, err);
	if (rc < 0)
		return -1;
	if (rc == 0) {
		buffer_put_u8(out, UNFILTERED_END_OF_PARTITION);
		unfiltered_iterator_close(writer->partition);
		writer->partition = NULL;
	} else if (item.kind == UNFILTERED_ROW) {
		row_encode(&writer->codec, ROW_CODEC_MESSAGE, &item.row, 0, out);
	} else {
		marker_encode(&writer->codec, ROW_CODEC_MESSAGE, &item.marker, 0, out);
	}
	return 1;
}

static int
stream_put_rows(struct stream_writer *writer, size_t bytes, struct buffer *out, struct error *err)
{
	size_t end = out->size + bytes;
	int rc = 1;

	while (rc > 0 && out->size < end && !out->is_failed)
		rc = stream_put_item(writer, out, err);
	writer->is_finished = rc == 0;
	return rc < 0 ? -1 : 0;
}

int
stream_writer_next(
    struct stream_writer *writer, size_t bytes, struct buffer *out, struct error *err)
{
	size_t start = out->size;
	const struct sstable_stats *stats;
	int rc = 0;

	if (writer->is_finished)
		return 0;
	buffer_put_u64(out, 0); /* size and CRC, known at the end */
	if (!writer->has_header) {
		stats = sstable_stats(writer->entry->sstable, err);
		if (stats == NULL)
			rc = -1;
		else
			stream_put_header(writer, stats, out);
		writer->has_header = true;
	} else if (writer->entry->file.is_entire) {
		rc = stream_put_entire(writer, bytes, out, err);
	} else {
		rc = stream_put_rows(writer, bytes, out, err);
	}
	if (rc == 0)
		rc = buffer_check(out, err);
	if (rc == 0 && out->size - start - STREAM_BLOCK_HEADER > STREAM_BLOCK_MAX)
		rc = error_set(err, ERROR_INVALID,
		    "a row of SSTable %s is too large to be streamed", writer->entry->file.id);
	if (rc != 0) {
		out->size = start;
		return -1;
	}
	buffer_patch_u32(out, start, (uint32_t)(out->size - start - STREAM_BLOCK_HEADER));
	buffer_patch_u32(out, start + 4,
	    crc32_update(0, out->data + start + STREAM_BLOCK_HEADER,
		out->size - start - STREAM_BLOCK_HEADER));
	return writer->is_finished ? 0 : 1;
}
