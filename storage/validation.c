/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/validation.h"
#include <stdlib.h>
#include "base/alloc.h"
#include "storage/content_hash.h"
#include "storage/store_internal.h"
#include "storage/stream_writer.h"

enum {
	VALIDATION_ARENA_BLOCK = 64 * 1024,
	VALIDATION_PROGRESS_BYTES = 1 << 20,
	VALIDATION_PROGRESS_PARTITIONS = 1024,
};

struct validation {
	struct table_metadata *metadata; /* a reference */
	struct sstable **sstables; /* owned; a reference each */
	uint32_t count;
};

/* One range that does not go round, on its way into the tree. */
struct validation_scan {
	const struct validation *validation;
	struct merkle_tree *tree;
	int64_t now_seconds;
	int32_t gc_before;
	validation_progress_fn progress;
	void *context;
	uint64_t partitions, bytes; /* not yet told */
	struct arena arena; /* of a partition */
};

static bool
validation_wants(const struct sstable_repair *repair, enum validation_data data,
    const struct uuid *pending_repair)
{
	switch (data) {
	case VALIDATION_UNREPAIRED:
		return !repair->has_pending_repair && repair->repaired_at == 0;
	case VALIDATION_REPAIRED:
		return !repair->has_pending_repair && repair->repaired_at != 0;
	case VALIDATION_PENDING:
		return repair->has_pending_repair &&
		    uuid_equal(&repair->pending_repair, pending_repair);
	case VALIDATION_ALL:
		break;
	}
	return true;
}

int
validation_new(struct store *store, struct table_store *table, enum validation_data data,
    const struct uuid *pending_repair, struct validation **out, struct error *err)
{
	struct validation *validation;
	struct table_view *view;
	int rc = 0;

	if (store_flush(store, table, err) != 0)
		return -1;
	validation = xzalloc(sizeof(*validation));
	validation->metadata = table_ref(atomic_load(&table->metadata));
	view = table_view_acquire(table);
	validation->sstables = xcalloc(view->sstable_count + 1, sizeof(*validation->sstables));
	for (uint32_t i = 0; i < view->sstable_count && rc == 0; i++) {
		const struct sstable_repair *repair = sstable_repair(view->sstables[i], err);

		if (repair == NULL)
			rc = -1;
		else if (validation_wants(repair, data, pending_repair))
			validation->sstables[validation->count++] = sstable_ref(view->sstables[i]);
	}
	table_view_release(view);
	if (rc != 0) {
		validation_free(validation);
		return -1;
	}
	*out = validation;
	return 0;
}

void
validation_free(struct validation *validation)
{
	if (validation == NULL)
		return;
	for (uint32_t i = 0; i < validation->count; i++)
		sstable_unref(validation->sstables[i]);
	free(validation->sstables);
	table_unref(validation->metadata);
	free(validation);
}

uint64_t
validation_estimate(const struct validation *validation, struct merkle_range range)
{
	struct stream_range whole = {range.left, range.right};
	uint32_t count;
	struct stream_range *ranges = stream_ranges_normalize(&whole, 1, &count);
	uint64_t keys = 0;

	for (uint32_t i = 0; i < validation->count; i++)
		for (uint32_t j = 0; j < count; j++)
			keys += sstable_estimated_keys_in(
			    validation->sstables[i], ranges[j].left, ranges[j].right);
	free(ranges);
	return keys;
}

/* ---- hashing ------------------------------------------------------------------------------------ */

static int64_t
validation_purge_all(void *argument, struct slice key, int64_t token)
{
	(void)argument;
	(void)key;
	(void)token;
	return INT64_MAX;
}

static int
validation_tell(struct validation_scan *scan, bool is_last, struct error *err)
{
	int rc;

	if (!is_last && scan->bytes < VALIDATION_PROGRESS_BYTES &&
	    scan->partitions < VALIDATION_PROGRESS_PARTITIONS)
		return 0;
	rc = scan->progress(scan->context, scan->partitions, scan->bytes, err);
	scan->partitions = scan->bytes = 0;
	return rc;
}

static int
validation_hash_items(struct validation_scan *scan, struct unfiltered_iterator *partition,
    struct content_hash *hash, bool *has_content, struct error *err)
{
	struct unfiltered item;
	int rc;

	while ((rc = unfiltered_iterator_next(partition, &item, err)) > 0) {
		uint64_t before = hash->total;

		*has_content = true;
		if (item.kind == UNFILTERED_ROW)
			content_hash_row(hash, &item.row);
		else
			content_hash_marker(hash, &item.marker);
		scan->bytes += hash->total - before;
		if (validation_tell(scan, false, err) != 0)
			return -1;
	}
	return rc;
}

/* Takes the partition. */
static int
validation_add(
    struct validation_scan *scan, struct unfiltered_iterator *partition, struct error *err)
{
	uint8_t digest[CONTENT_HASH_SIZE];
	struct content_hash hash;
	bool has_content;
	int rc;

	arena_reset(&scan->arena);
	if (unfiltered_purge(partition, scan->now_seconds, scan->gc_before, validation_purge_all,
		NULL, &scan->arena, &partition, err) != 0)
		return -1;
	has_content = !deletion_is_live(partition->partition_deletion) || partition->has_static_row;
	content_hash_init(&hash);
	content_hash_partition(&hash, partition->key, partition->partition_deletion,
	    partition->has_static_row ? &partition->static_row : NULL);
	rc = validation_hash_items(scan, partition, &hash, &has_content, err);
	if (rc == 0 && has_content) {
		content_hash_finish(&hash, digest);
		merkle_tree_add(scan->tree, partition->token, digest);
		scan->partitions++;
	}
	unfiltered_iterator_close(partition);
	return rc < 0 ? -1 : validation_tell(scan, false, err);
}

static int
validation_open(const struct validation *validation, const struct read_command *command,
    struct arena *arena, struct partition_iterator **out, struct error *err)
{
	struct partition_iterator **scans =
	    arena_calloc(arena, validation->count + 1, sizeof(*scans));
	uint32_t count = 0;

	*out = NULL;
	if (scans == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a validation");
	for (uint32_t i = 0; i < validation->count; i++) {
		if (sstable_scan(validation->sstables[i], command, validation->metadata,
			SSTABLE_SCAN_SEQUENTIAL | SSTABLE_SCAN_TRANSIENT, arena, &scans[count],
			err) != 0) {
			while (count-- > 0)
				partition_iterator_close(scans[count]);
			return -1;
		}
		count += scans[count] != NULL;
	}
	return count == 0 ? 0 : partition_merge_transient(scans, count, arena, out, err);
}

static int
validation_scan_range(
    struct validation_scan *scan, const struct stream_range *range, struct error *err)
{
	struct read_command command = {
	    .table = scan->validation->metadata,
	    .is_range = true,
	    .range = {.left = range->left, .right = range->right},
	    .clustering = {.with_static = true},
	    .row_limit = READ_LIMIT_NONE,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = scan->now_seconds,
	    .is_transient = true,
	};
	struct unfiltered_iterator *partition;
	struct partition_iterator *merged;
	struct arena arena;
	int rc;

	arena_init(&arena, VALIDATION_ARENA_BLOCK);
	rc = validation_open(scan->validation, &command, &arena, &merged, err);
	while (rc == 0 && merged != NULL &&
	    (rc = partition_iterator_next(merged, &partition, err)) > 0)
		rc = validation_add(scan, partition, err);
	partition_iterator_close(merged);
	arena_fini(&arena);
	return rc < 0 ? -1 : 0;
}

int
validation_run(struct validation *validation, struct merkle_tree *tree, int64_t now_seconds,
    validation_progress_fn progress, void *context, struct error *err)
{
	int64_t gc_before = now_seconds - validation->metadata->options.gc_grace_seconds;
	struct merkle_range whole = merkle_tree_range(tree);
	struct stream_range range = {whole.left, whole.right}, *ranges;
	struct validation_scan scan = {
	    .validation = validation,
	    .tree = tree,
	    .now_seconds = now_seconds,
	    .gc_before = gc_before > INT32_MAX ? INT32_MAX : (int32_t)gc_before,
	    .progress = progress,
	    .context = context,
	};
	uint32_t count;
	int rc = 0;

	arena_init(&scan.arena, VALIDATION_ARENA_BLOCK);
	ranges = stream_ranges_normalize(&range, 1, &count);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = validation_scan_range(&scan, &ranges[i], err);
	if (rc == 0)
		rc = validation_tell(&scan, true, err);
	free(ranges);
	arena_fini(&scan.arena);
	return rc;
}
