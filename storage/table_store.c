/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/table_store.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/log.h"
#include "storage/compaction.h"
#include "storage/counter_cache.h"
#include "storage/lifecycle.h"
#include "storage/row_cache.h"
#include "storage/snapshot.h"
#include "storage/store_internal.h"

/* ---- views ----------------------------------------------------------------------------------- */

static struct table_view *
table_view_new(uint32_t memtable_count, uint32_t sstable_count)
{
	struct table_view *view = xzalloc(sizeof(*view));

	atomic_init(&view->refs, 1);
	view->memtables = xcalloc(memtable_count + 1, sizeof(*view->memtables));
	view->sstables = xcalloc(sstable_count + 1, sizeof(*view->sstables));
	return view;
}

struct table_view *
table_view_acquire(struct table_store *table)
{
	struct table_view *view;

	lock_take(&table->view_lock);
	view = table->view;
	/* Relaxed: the lock orders us after whoever installed the view. */
	atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
	lock_drop(&table->view_lock);
	return view;
}

void
table_view_release(struct table_view *view)
{
	if (view == NULL)
		return;
	/* Acquire-release: the last one must see all uses before it frees. */
	if (atomic_fetch_sub_explicit(&view->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < view->memtable_count; i++)
		memtable_unref(view->memtables[i]);
	for (uint32_t i = 0; i < view->sstable_count; i++)
		sstable_unref(view->sstables[i]);
	free(view->memtables);
	free(view->sstables);
	free(view);
}

static bool
table_view_contains(struct sstable *const *list, uint32_t count, const struct sstable *sstable)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == sstable)
			return true;
	return false;
}

/* By age of the files, which needs no statistics to be read: a read that wants to stop early sorts its
 * few candidates by their newest timestamp itself. */
static int
table_view_newest_first(const void *a, const void *b)
{
	uint64_t left = sstable_created_ms(*(struct sstable *const *)a);
	uint64_t right = sstable_created_ms(*(struct sstable *const *)b);

	return left > right ? -1 : left < right;
}

void
table_view_replace(struct table_store *table, struct memtable *flushed,
    struct sstable *const *removed, uint32_t removed_count, struct sstable *const *added,
    uint32_t added_count)
{
	struct table_view *old, *view;

	lock_take(&table->view_lock);
	old = table->view;
	view = table_view_new(old->memtable_count, old->sstable_count + added_count);
	for (uint32_t i = 0; i < old->memtable_count; i++)
		if (old->memtables[i] != flushed)
			view->memtables[view->memtable_count++] = memtable_ref(old->memtables[i]);
	for (uint32_t i = 0; i < added_count; i++)
		view->sstables[view->sstable_count++] = added[i];
	for (uint32_t i = 0; i < old->sstable_count; i++)
		if (!table_view_contains(removed, removed_count, old->sstables[i]))
			view->sstables[view->sstable_count++] = sstable_ref(old->sstables[i]);
	qsort(
	    view->sstables, view->sstable_count, sizeof(*view->sstables), table_view_newest_first);
	table->view = view;
	lock_drop(&table->view_lock);
	table_view_release(old);
	/* Other data, not the same in other files: what was read of the old is worth nothing. */
	if (flushed == NULL && (removed_count == 0 || added_count == 0)) {
		row_cache_forget_table(table);
		counter_cache_forget_table(table);
	}
}

/* Make `memtable` (reference taken over) the one that takes the writes. */
static void
table_view_push_memtable(struct table_store *table, struct memtable *memtable)
{
	struct table_view *old, *view;

	lock_take(&table->view_lock);
	old = table->view;
	view = table_view_new(old->memtable_count + 1, old->sstable_count);
	view->memtables[view->memtable_count++] = memtable;
	for (uint32_t i = 0; i < old->memtable_count; i++)
		view->memtables[view->memtable_count++] = memtable_ref(old->memtables[i]);
	for (uint32_t i = 0; i < old->sstable_count; i++)
		view->sstables[view->sstable_count++] = sstable_ref(old->sstables[i]);
	table->view = view;
	/* Release: a writer that loads it finds a memtable that is ready. */
	atomic_store_explicit(&table->current, memtable, memory_order_release);
	lock_drop(&table->view_lock);
	table_view_release(old);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void
table_store_name_directories(struct table_store *table, const struct table_metadata *metadata)
{
	const struct store_options *options = &table->store->options;
	char id[33];

	hex_encode(slice_of(metadata->id.bytes, sizeof(metadata->id.bytes)), id);
	table->directories = xcalloc(options->data_directory_count, sizeof(*table->directories));
	for (uint32_t i = 0; i < options->data_directory_count; i++)
		table->directories[table->directory_count++] =
		    xasprintf("%s/%.*s/%.*s-%s", options->data_directories[i],
			(int)metadata->keyspace.size, (const char *)metadata->keyspace.data,
			(int)metadata->name.size, (const char *)metadata->name.data, id);
}

const char *const *
table_store_directories(const struct table_store *table, uint32_t *count)
{
	*count = table->directory_count;
	return (const char *const *)table->directories;
}

/* Generations are handed out above every one that was seen. */
static void
table_store_note_generation(struct table_store *table, uint64_t generation)
{
	unsigned long long next = atomic_load(&table->next_generation);

	while (generation >= next &&
	    !atomic_compare_exchange_weak(&table->next_generation, &next, generation + 1))
		;
}

static bool
table_view_has_id(const struct table_view *view, const struct sstable_id *id)
{
	for (uint32_t i = 0; i < view->sstable_count; i++)
		if (sstable_id_equal(&sstable_descriptor(view->sstables[i])->id, id))
			return true;
	return false;
}

/*
 * Does the file that was found (its TOC or its Data.db, whose TOC has the path `toc`) stand for a table? At start, when the
 * transactions that were cut off have been cleared away, Data.db does too: somebody lost the TOC, not the data.
 */
static bool
table_store_is_complete(
    const struct table_store *table, enum sstable_component component, const char *toc)
{
	bool has_toc = files_exists(table->store->env->files, toc);

	if (component == SSTABLE_TOC || has_toc || table->is_open)
		return component == SSTABLE_TOC && has_toc;
	log_warn("%s is missing, its SSTable is opened all the same", toc);
	return true;
}

/*
 * An SSTable cannot be opened: say what to do about it; 0 when the node goes on without it. Cassandra looks at
 * disk_failure_policy as well (SSTableReader.openAll).
 */
static int
table_store_open_failed(const struct table_store *table, const char *base, struct error *err)
{
	char *data = xasprintf("%s-Data.db", base);
	bool is_missing = !files_exists(table->store->env->files, data);

	free(data);
	if (table->is_open)
		return -1;
	if (is_missing)
		error_set(err, ERROR_CORRUPT,
		    "%s-Data.db is missing beside its TOC.txt. Bring the file back (from a "
		    "snapshot or backup); or move the other files of nb-* with this number away, "
		    "which gives up their data; or set disk_failure_policy to best_effort, which "
		    "leaves it out",
		    base);
	if (!table->store->options.skips_damaged_at_start)
		return -1;
	log_error("%s", err->text);
	log_error("%s.%s is read without this SSTable", table->keyspace, table->name);
	return 0;
}

/*
 * Open the complete tables of the directory (those whose TOC is there) that are not in the view yet.
 *
 * While the node runs, flushes and compactions make and delete files meanwhile, and theirs must stay away: a table
 * that was just replaced would be opened again and then lose its files, one that is being added would be there
 * twice. replace_lock keeps replacements out; for the rest the order counts: list the files, then
 * read the transaction logs, then take the view, then look whether the TOC is still there. A flush's log
 * is there before its files and goes after the view has its table; a replaced table's log goes
 * after its files, the TOC first.
 */
static int
table_store_open_listed(struct table_store *table, const char *directory,
    const struct file_list *list, uint32_t *added, struct error *err)
{
	struct store *store = table->store;
	struct lifecycle_names *busy = lifecycle_busy_list(store->env, directory, err);
	struct table_view *view;
	struct sstable **opened;
	uint32_t count = 0;
	int rc = 0;

	if (busy == NULL)
		return -1;
	view = table_view_acquire(table);
	opened = xcalloc(list->count + 1, sizeof(*opened));
	for (size_t i = 0; i < list->count && rc == 0; i++) {
		struct sstable_descriptor descriptor = {.directory = directory};
		enum sstable_component component;
		char *base, *toc;

		if (!sstable_name_parse(list->entries[i].name, &descriptor.id, &component))
			continue;
		/* Also of files that are not whole: their names are taken. */
		if (!descriptor.id.is_uuid)
			table_store_note_generation(table, descriptor.id.generation);
		if ((component != SSTABLE_TOC && component != SSTABLE_DATA) ||
		    table_view_has_id(view, &descriptor.id))
			continue;
		base = sstable_base_path(&descriptor);
		toc = xasprintf("%s-TOC.txt", base);
		if (!lifecycle_is_busy(busy, base) &&
		    table_store_is_complete(table, component, toc)) {
			rc = sstable_open(&store->sstables, &descriptor,
			    atomic_load(&table->metadata), &opened[count], err);
			if (rc == 0)
				count++;
			else
				rc = table_store_open_failed(table, base, err);
		}
		free(base);
		free(toc);
	}
	for (uint32_t i = 0; i < count; i++)
		if (rc != 0)
			sstable_unref(opened[i]);
		else if (table->is_open)
			snapshot_back_up(table, opened[i]);
	if (rc == 0 && count > 0)
		table_view_replace(table, NULL, NULL, 0, opened, count);
	if (rc == 0)
		*added += count;
	free(opened);
	table_view_release(view);
	lifecycle_busy_free(busy);
	return rc;
}

int
table_store_open_sstables(struct table_store *table, uint32_t *added, struct error *err)
{
	int rc = 0;

	*added = 0;
	lock_take(&table->replace_lock);
	for (uint32_t i = 0; i < table->directory_count && rc == 0; i++) {
		struct file_list list;

		rc = files_list(table->store->env->files, table->directories[i], &list, err);
		if (rc == 0) {
			rc = table_store_open_listed(
			    table, table->directories[i], &list, added, err);
			file_list_fini(&list);
		}
	}
	lock_drop(&table->replace_lock);
	return rc;
}

int
table_store_open(struct store *store, const struct table_metadata *metadata, uint32_t slot,
    struct table_store **out, struct error *err)
{
	struct table_store *table = xzalloc(sizeof(*table));
	struct memtable *memtable;
	uint32_t found;

	table->store = store;
	table->id = metadata->id;
	table->slot = slot;
	table->keyspace = xstrndup((const char *)metadata->keyspace.data, metadata->keyspace.size);
	table->name = xstrndup((const char *)metadata->name.data, metadata->name.size);
	table_store_name_directories(table, metadata);
	atomic_init(&table->next_generation, 1);
	atomic_init(&table->metadata, table_ref(metadata));
	row_cache_set_table(table, metadata);
	counter_cache_forget_table(table);
	lock_init(&table->view_lock, "table.view", RANK_TABLE_VIEW);
	lock_init(&table->replace_lock, "table.replace", RANK_TABLE_REPLACE);
	lock_init(&table->flush_lock, "table.flush", RANK_TABLE_FLUSH);
	for (int i = 0; i < STORE_SAMPLERS; i++)
		sampler_init(&table->samplers[i]);
	histogram_init(&table->stats.read_us, 90);
	histogram_init(&table->stats.range_us, 90);
	histogram_init(&table->stats.write_us, 90);
	histogram_init(&table->stats.sstables_per_read, 30);
	histogram_init(&table->stats.tombstones_per_read, 90);
	histogram_init(&table->stats.live_rows_per_read, 90);
	table->current_since = commitlog_current(store->commitlog);
	atomic_init(&table->last_switch_ns, env_monotonic_ns(store->env));
	table->view = table_view_new(0, 0);
	memtable = memtable_new(metadata, store->options.memtable_shards, &store->memtable_bytes);
	if (memtable == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a memtable of %s.%s",
		    table->keyspace, table->name);
		goto failed;
	}
	memtable_use_pool(memtable, &store->memtable_pool);
	table_view_push_memtable(table, memtable);
	for (uint32_t i = 0; i < table->directory_count; i++)
		if (files_mkdir_later(store->env->files, table->directories[i], err) != 0)
			goto failed;
	/* All of them before the first SSTable is opened: a transaction may name files of every disk. */
	if (lifecycle_recover(store->env, (const char *const *)table->directories,
		table->directory_count, err) != 0 ||
	    table_store_open_sstables(table, &found, err) != 0)
		goto failed;
	table->is_open = true;
	*out = table;
	return 0;
failed:
	table_store_free(table);
	return -1;
}

void
table_store_free(struct table_store *table)
{
	if (table == NULL)
		return;
	/* Those that failed and were not tried again: the log has their data. */
	while (table->flushes != NULL) {
		struct flush *next = table->flushes->next;

		if (!table->flushes->is_done)
			memtable_unref(table->flushes->memtable);
		free(table->flushes);
		table->flushes = next;
	}
	table_view_release(table->view);
	table_unref(atomic_load(&table->metadata));
	lock_fini(&table->view_lock);
	lock_fini(&table->replace_lock);
	lock_fini(&table->flush_lock);
	for (int i = 0; i < STORE_SAMPLERS; i++)
		sampler_fini(&table->samplers[i]);
	free(table->compacting);
	free(table->keyspace);
	free(table->name);
	for (uint32_t i = 0; i < table->directory_count; i++)
		free(table->directories[i]);
	free(table->directories);
	free(table);
}

/* Bytes of the table's SSTables in this directory. */
static uint64_t
table_store_bytes_in(struct table_store *table, const char *directory)
{
	struct table_view *view = table_view_acquire(table);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < view->sstable_count; i++)
		if (strcmp(sstable_descriptor(view->sstables[i])->directory, directory) == 0)
			bytes += sstable_total_size(view->sstables[i]);
	table_view_release(view);
	return bytes;
}

int
table_store_choose_directory(
    struct table_store *table, uint64_t bytes, const char **out, struct error *err)
{
	const struct store_options *options = &table->store->options;
	struct store_failures *failures = &table->store->failures;
	uint64_t *space, most = 0, least_held = UINT64_MAX;
	uint32_t count = table->directory_count, usable = 0;

	*out = table->directories[0];
	if (count == 1)
		return 0;
	space = xcalloc(count, sizeof(*space));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t total;

		if (atomic_load(&failures->is_unwritable[i]))
			continue; /* space stays 0 */
		usable++;
		if (files_space(table->store->env->files, table->directories[i], &space[i], &total,
			err) != 0) {
			free(space);
			return -1;
		}
		space[i] -= space[i] < options->min_free_space_per_drive_bytes
		    ? space[i]
		    : options->min_free_space_per_drive_bytes;
		if (space[i] > most)
			most = space[i];
	}
	/* About equal counts as equal: disks fill up side by side, and may be folders of one disk. */
	for (uint32_t i = 0; i < count && most >= bytes; i++) {
		uint64_t held;

		if (atomic_load(&failures->is_unwritable[i]) || space[i] < bytes ||
		    space[i] < most - most / 16)
			continue;
		held = table_store_bytes_in(table, table->directories[i]);
		if (held < least_held) {
			least_held = held;
			*out = table->directories[i];
		}
	}
	free(space);
	if (usable == 0)
		return error_set(err, ERROR_IO, "every data directory has failed");
	if (most < bytes)
		return error_set(err, ERROR_NO_SPACE,
		    "no data directory has space for %" PRIu64 " bytes of %s.%s: at most %" PRIu64
		    " are free besides min_free_space_per_drive",
		    bytes, table->keyspace, table->name, most);
	return 0;
}

struct sstable_descriptor
table_store_new_descriptor(struct table_store *table, const char *directory)
{
	return (struct sstable_descriptor){
	    .directory = directory, .id.generation = atomic_fetch_add(&table->next_generation, 1)};
}

char *
sstable_base_path(const struct sstable_descriptor *descriptor)
{
	char id[SSTABLE_ID_TEXT_SIZE];

	sstable_id_format(&descriptor->id, id);
	return xasprintf("%s/nb-%s-big", descriptor->directory, id);
}

/* Are all of them still in the current view? */
static bool
table_store_has_all(struct table_store *table, struct sstable *const *sstables, uint32_t count)
{
	bool has_all = true;

	lock_take(&table->view_lock);
	for (uint32_t i = 0; i < count && has_all; i++)
		has_all = table_view_contains(
		    table->view->sstables, table->view->sstable_count, sstables[i]);
	lock_drop(&table->view_lock);
	return has_all;
}

int
table_store_replace_sstables(struct table_store *table, struct lifecycle *lifecycle,
    struct sstable *const *removed, uint32_t removed_count, struct sstable *const *added,
    uint32_t added_count, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < removed_count && rc == 0; i++) {
		char *base = sstable_base_path(sstable_descriptor(removed[i]));

		rc = lifecycle_remove(lifecycle, base, err);
		free(base);
	}
	/* The one lock that is held over I/O: two such changes of a table must not both commit. */
	lock_take(&table->replace_lock);
	if (rc == 0 && !table_store_has_all(table, removed, removed_count))
		rc = error_set(err, ERROR_SHUTDOWN,
		    "the SSTables of %s.%s were truncated or dropped meanwhile", table->keyspace,
		    table->name);
	if (rc == 0)
		rc = lifecycle_commit(lifecycle, err);
	if (rc == 0)
		table_view_replace(table, NULL, removed, removed_count, added, added_count);
	lock_drop(&table->replace_lock);
	if (rc == 0)
		lifecycle_finish_obsolete(lifecycle, removed, removed_count);
	else
		lifecycle_finish(lifecycle);
	return rc;
}

int
table_store_discard_sstables(struct table_store *table, struct error *err)
{
	int rc;

	do {
		struct table_view *view = table_view_acquire(table);
		struct lifecycle *lifecycle;

		rc = lifecycle_begin(
		    table->store->env, table->directories[0], "unknown", &lifecycle, err);
		if (rc == 0)
			rc = table_store_replace_sstables(
			    table, lifecycle, view->sstables, view->sstable_count, NULL, 0, err);
		table_view_release(view);
		/* A compaction was quicker: its outputs go now. */
	} while (rc != 0 && err->code == ERROR_SHUTDOWN);
	return rc;
}

/* ---- flushing ------------------------------------------------------------------------------- */

/*
 * The names of the table's folder and of the folder of its keyspace are made durable before the first file
 * is put there, not when the table is opened: a new node has fifty tables and a sync takes milliseconds.
 */
int
table_store_keep_directory(struct table_store *table, struct error *err)
{
	const struct store_options *options = &table->store->options;
	struct files *files = table->store->env->files;
	int rc = 0;

	if (atomic_load(&table->is_directory_durable))
		return 0;
	for (uint32_t i = 0; i < options->data_directory_count && rc == 0; i++) {
		const char *data = options->data_directories[i];
		char *keyspace = xasprintf("%s/%s", data, table->keyspace);

		rc = files_sync_folder(files, keyspace, err);
		if (rc == 0)
			rc = files_sync_folder(files, data, err);
		free(keyspace);
	}
	if (rc == 0)
		atomic_store(&table->is_directory_durable, true);
	return rc;
}

/* Write one memtable into an SSTable, with the transaction that adds it still to be committed. */
static int
table_flush_write(
    struct flush *flush, struct sstable **out, struct lifecycle **lifecycle_out, struct error *err)
{
	struct table_store *table = flush->table;
	struct store *store = table->store;
	struct commitlog_interval interval = {.start = flush->after, .end = flush->upto};
	struct sstable_writer_options options = {
	    .table = memtable_table(flush->memtable),
	    .expected_keys = memtable_partition_count(flush->memtable),
	    .commitlog = &interval,
	    .host_id = atomic_load(&store->has_host_id) ? &store->host_id : NULL,
	    .commitlog_count = commitlog_position_compare(flush->after, flush->upto) < 0 ? 1 : 0,
	    .column_index_bytes = atomic_load(&store->column_index_bytes),
	    .sync_interval_bytes = store->options.trickle_fsync ? 10 << 20 : 0,
	};
	struct sstable_writer *writer = NULL;
	struct partition_iterator *partitions = NULL;
	struct lifecycle *lifecycle = NULL;
	struct unfiltered_iterator *partition;
	const char *directory;
	struct arena arena;
	char *base = NULL;
	int rc = -1, more;

	arena_init(&arena, 64 << 10);
	memtable_encoding_stats(flush->memtable, &options.min_timestamp,
	    &options.min_local_deletion_time, &options.min_ttl);
	if (table_store_keep_directory(table, err) != 0 ||
	    table_store_choose_directory(table, memtable_bytes(flush->memtable), &directory, err) !=
		0)
		goto done;
	flush->directory = directory;
	options.descriptor = table_store_new_descriptor(table, directory);
	base = sstable_base_path(&options.descriptor);
	if (lifecycle_begin(store->env, directory, "flush", &lifecycle, err) != 0 ||
	    lifecycle_add(lifecycle, base, err) != 0 ||
	    sstable_writer_new(&store->sstables, &options, &writer, err) != 0)
		goto done;
	if (memtable_flush_iterator(flush->memtable, true, &arena, &partitions, err) != 0)
		goto done;
	while ((more = partition_iterator_next(partitions, &partition, err)) > 0) {
		more = sstable_writer_append(writer, partition, err);
		unfiltered_iterator_close(partition);
		if (more < 0)
			break;
	}
	if (more < 0)
		goto done;
	rc = sstable_writer_finish(writer, out, err);
	writer = NULL;
done:
	partition_iterator_close(partitions);
	sstable_writer_abort(writer);
	arena_fini(&arena);
	free(base);
	if (rc != 0) {
		lifecycle_finish(lifecycle);
		lifecycle = NULL;
	}
	*lifecycle_out = lifecycle;
	return rc;
}

/* Tell the commit log up to where the table is clean: the flushes that ended, oldest first. */
static void
table_flush_settle(struct table_store *table, struct flush *flush)
{
	struct commitlog_position upto = {0, 0};
	struct flush *ended = NULL, **tail = &ended;

	lock_take(&table->view_lock);
	flush->is_done = true;
	/* A newer memtable may have been quicker than an older one, whose data only the log has. */
	while (table->flushes != NULL && table->flushes->is_done) {
		*tail = table->flushes;
		table->flushes = table->flushes->next;
		upto = (*tail)->upto;
		tail = &(*tail)->next;
		*tail = NULL;
	}
	lock_drop(&table->view_lock);
	if (upto.segment_id != 0)
		commitlog_discard(table->store->commitlog, table->slot, upto);
	while (ended != NULL) {
		struct flush *next = ended->next;

		free(ended);
		ended = next;
	}
}

/* The next step on its stage; here, where that takes nothing more. */
static void
table_flush_next(struct store *store, const char *stage, store_work_fn run, void *step)
{
	if (!store_submit(store, stage, run, step))
		run(step);
}

/* What is left to do when the commit log knows of the flush. */
struct flush_reclaim {
	struct table_store *table;
	struct memtable *memtable; /* a reference */
};

/* Runs on MemtableReclaimMemory: readers that still hold the memtable free it later. */
static void
table_flush_reclaim(void *argument)
{
	struct flush_reclaim *reclaim = argument;
	struct table_store *table = reclaim->table;
	struct store *store = table->store;
	uint64_t bytes = memtable_bytes(reclaim->memtable);

	memtable_unref(reclaim->memtable);
	free(reclaim);
	store_flush_ended(store, bytes);
	compaction_check(store->compactions, table);
}

/* Runs on MemtablePostFlush: the commit log may let go of what is on disk. */
static void
table_flush_post(void *argument)
{
	struct flush *flush = argument;
	struct flush_reclaim *reclaim = xzalloc(sizeof(*reclaim));

	*reclaim = (struct flush_reclaim){flush->table, flush->memtable};
	table_flush_settle(flush->table, flush);
	table_flush_next(
	    reclaim->table->store, "MemtableReclaimMemory", table_flush_reclaim, reclaim);
}

/* Runs on MemtableFlushWriter. */
static void
table_flush_run(void *argument)
{
	struct flush *flush = argument;
	struct table_store *table = flush->table;
	struct store *store = table->store;
	struct sstable *sstable = NULL;
	struct lifecycle *lifecycle = NULL;
	uint64_t began = env_monotonic_ns(store->env), bytes;
	struct error err;
	bool is_first;

	if (!atomic_load(&table->is_dropped) && !memtable_is_empty(flush->memtable)) {
		if (table_flush_write(flush, &sstable, &lifecycle, &err) != 0 ||
		    lifecycle_commit(lifecycle, &err) != 0) {
			lifecycle_finish(lifecycle);
			sstable_unref(sstable);
			/* Want of memory is no failure of a disk: its policy must not stop the node. */
			if (err.code != ERROR_NO_MEMORY)
				store_note_failure(store,
				    err.code == ERROR_NO_SPACE ? STORE_FAILURE_SPACE
							       : STORE_FAILURE_WRITE,
				    flush->directory, &err);
			is_first = !flush->is_failing;
			flush->is_failing = true;
			atomic_store(&flush->needs_retry, true);
			store_flush_failed(store, table, is_first, &err);
			return;
		}
	}
	/* Others may end well in between: it is over when none is left that failed. */
	if (flush->is_failing && atomic_fetch_sub(&store->failing_flushes, 1) == 1) {
		log_limit_reset(&store->flush_error_log);
		log_info("flushing works again, writes are accepted");
	}
	bytes = memtable_bytes(flush->memtable);
	if (sstable != NULL)
		snapshot_back_up(table, sstable);
	table_view_replace(table, flush->memtable, NULL, 0, &sstable, sstable != NULL ? 1 : 0);
	lifecycle_finish(lifecycle);
	if (sstable != NULL) {
		atomic_fetch_add(&table->stats.flushes, 1);
		atomic_fetch_add(&table->stats.bytes_flushed, sstable_total_size(sstable));
		log_debug("flushed %s.%s: %" PRIu64 " bytes of memory to %" PRIu64
			  " on disk in %" PRIu64 " ms",
		    table->keyspace, table->name, bytes, sstable_total_size(sstable),
		    (env_monotonic_ns(store->env) - began) / 1000000);
	}
	table_flush_next(store, "MemtablePostFlush", table_flush_post, flush);
}

static void
table_flush_submit(struct flush *flush)
{
	/* A stage that is stopping takes nothing more: drain has flushed before, or the log has it. */
	if (!store_submit(flush->table->store, "MemtableFlushWriter", table_flush_run, flush))
		atomic_store(&flush->needs_retry, true);
}

int
table_flush_begin(struct table_store *table, struct error *err)
{
	struct store *store = table->store;
	struct memtable *memtable, *old;
	struct flush *flush, **tail;

	lock_take(&table->flush_lock);
	old = atomic_load(&table->current);
	memtable = memtable_new(
	    atomic_load(&table->metadata), store->options.memtable_shards, &store->memtable_bytes);
	if (memtable == NULL) {
		lock_drop(&table->flush_lock);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a memtable of %s.%s",
		    table->keyspace, table->name);
	}
	memtable_use_pool(memtable, &store->memtable_pool);
	flush = xzalloc(sizeof(*flush));
	flush->table = table;
	flush->memtable = memtable_ref(old);
	/*
	 * Read before the switch: a write that claims its place in the log after this may land in
	 * the new memtable. Those in between are replayed once more after a crash, which is harmless.
	 */
	flush->after = table->current_since;
	flush->upto = commitlog_current(store->commitlog);
	table_view_push_memtable(table, memtable);
	/* Whoever still adds to the old one entered before this. */
	op_order_barrier(&store->order);
	table->current_since = commitlog_current(store->commitlog);
	atomic_store(&table->last_switch_ns, env_monotonic_ns(store->env));
	lock_take(&table->view_lock);
	for (tail = &table->flushes; *tail != NULL; tail = &(*tail)->next)
		;
	*tail = flush;
	lock_drop(&table->view_lock);
	atomic_fetch_add(&store->flushing_bytes, memtable_bytes(old));
	lock_drop(&table->flush_lock);
	table_flush_submit(flush);
	return 0;
}

bool
table_is_flushing(struct table_store *table)
{
	bool is_flushing;

	lock_take(&table->view_lock);
	is_flushing = table->flushes != NULL;
	lock_drop(&table->view_lock);
	return is_flushing;
}

void
table_flush_retry(struct table_store *table)
{
	for (;;) {
		struct flush *flush;

		lock_take(&table->view_lock);
		for (flush = table->flushes; flush != NULL; flush = flush->next)
			if (atomic_exchange(&flush->needs_retry, false))
				break;
		lock_drop(&table->view_lock);
		if (flush == NULL)
			return;
		table_flush_submit(flush);
	}
}

int
table_flush_wait(struct table_store *table, struct error *err)
{
	struct store *store = table->store;
	const struct flush *last;
	bool is_pending, has_failed;
	int rc = 0;

	lock_take(&table->view_lock);
	for (last = table->flushes; last != NULL && last->next != NULL; last = last->next)
		;
	lock_drop(&table->view_lock);
	if (last == NULL)
		return 0;
	pthread_mutex_lock(&store->flush_mutex);
	for (;;) {
		lock_take(&table->view_lock);
		is_pending = has_failed = false;
		for (const struct flush *each = table->flushes; each != NULL; each = each->next) {
			has_failed |= atomic_load(&each->needs_retry);
			is_pending |= each == last;
		}
		lock_drop(&table->view_lock);
		if (!is_pending)
			break;
		if (has_failed) {
			lock_take(&store->waiting_lock);
			rc = error_set(err, store->flush_error.code, "%s", store->flush_error.text);
			lock_drop(&store->waiting_lock);
			break;
		}
		pthread_cond_wait(&store->flush_cond, &store->flush_mutex);
	}
	pthread_mutex_unlock(&store->flush_mutex);
	return rc;
}

bool
table_store_has_unflushed(struct table_store *table)
{
	bool is_empty;

	lock_take(&table->view_lock);
	is_empty = memtable_is_empty(table->view->memtables[0]);
	lock_drop(&table->view_lock);
	return !is_empty;
}

uint64_t
table_store_memtable_bytes(struct table_store *table)
{
	uint64_t bytes;

	lock_take(&table->view_lock);
	bytes = memtable_bytes(table->view->memtables[0]);
	lock_drop(&table->view_lock);
	return bytes;
}
