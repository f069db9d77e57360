/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/saved_cache.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/counter_cache.h"
#include "storage/entry_cache.h"
#include "storage/key_cache.h"
#include "storage/sstable_internal.h"
#include "storage/store_internal.h"

enum {
	SAVED_HEADER = 12,
	SAVED_TRAILER = 4,
	SAVED_BUFFER = 256 << 10, /* written at once */
	SAVED_BYTES_MAX = 1 << 30,
	SAVED_IS_SSTABLE = 0,
	SAVED_IS_ENTRY = 1,
};

static const char saved_magic[8] = {'H', 'E', 'L', 'C', 'A', 'C', 'H', 'E'};
static const char *const saved_names[SAVED_CACHES] = {
    "KeyCache-h1.db", "RowCache-h1.db", "CounterCache-h1.db"};

/* ---- the format ------------------------------------------------------------------------------------ */

int
saved_cache_decode(struct slice content, enum saved_cache_kind kind, saved_cache_record_fn each,
    void *argument, struct error *err)
{
	struct reader reader;

	if (content.size < SAVED_HEADER + SAVED_TRAILER ||
	    memcmp(content.data, saved_magic, sizeof(saved_magic)) != 0 ||
	    load_u32(content.data + 8) != (uint32_t)kind)
		return error_set(err, ERROR_CORRUPT, "is no saved cache of this kind");
	content.size -= SAVED_TRAILER;
	if (load_u32(content.data + content.size) != crc32_update(0, content.data, content.size))
		return error_set(err, ERROR_CORRUPT, "bad CRC");
	reader = reader_of(slice_of(content.data + SAVED_HEADER, content.size - SAVED_HEADER));
	while (reader_left(&reader) > 0) {
		struct slice record = reader_bytes(&reader, reader_u32(&reader));

		if (reader.is_failed)
			return error_set(err, ERROR_CORRUPT, "a record is cut");
		if (each(argument, record, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- saving ------------------------------------------------------------------------------------------- */

struct saved_writer {
	struct store *store;
	struct file *file;
	struct buffer buffer;
	uint32_t crc;
	uint64_t records;
	/* Of the key cache: SSTables by file id, and the one that the entries written last are of. */
	struct saved_sstable *sstables; /* owned */
	size_t sstable_count;
	uint64_t last_file;
	bool has_last;
};

struct saved_sstable {
	uint64_t file;
	const struct table_store *table;
	struct sstable *sstable; /* held by a view */
};

static int
saved_flush(struct saved_writer *writer, struct error *err)
{
	int rc = buffer_check(&writer->buffer, err);

	if (rc == 0 && writer->buffer.size > 0) {
		writer->crc = crc32_update(writer->crc, writer->buffer.data, writer->buffer.size);
		rc = file_write(writer->file, writer->buffer.data, writer->buffer.size, err);
	}
	buffer_clear(&writer->buffer);
	return rc;
}

static int
saved_write_sstable(struct saved_writer *writer, const struct saved_sstable *saved)
{
	const struct sstable_descriptor *descriptor = sstable_descriptor(saved->sstable);
	struct buffer *out = &writer->buffer;
	uint8_t id[16] = {0};

	if (descriptor->id.is_uuid)
		memcpy(id, descriptor->id.uuid.bytes, sizeof(id));
	else
		store_u64(id, descriptor->id.generation);
	buffer_put_u32(out, 1 + 16 + 1 + 16 + 8 + 8);
	buffer_put_u8(out, SAVED_IS_SSTABLE);
	buffer_put(out, saved->table->id.bytes, 16);
	buffer_put_u8(out, descriptor->id.is_uuid);
	buffer_put(out, id, sizeof(id));
	buffer_put_u64(out, sstable_data_size(saved->sstable));
	buffer_put_u64(out, sstable_created_ms(saved->sstable));
	return 0;
}

static int
saved_compare_files(const void *a, const void *b)
{
	const struct saved_sstable *left = a, *right = b;

	return left->file < right->file ? -1 : left->file > right->file;
}

static int
saved_key_entry(void *argument, uint64_t file, struct slice key, const struct index_entry *entry,
    struct error *err)
{
	struct saved_writer *writer = argument;
	struct buffer *out = &writer->buffer;

	if (!writer->has_last || file != writer->last_file) {
		const struct saved_sstable wanted = {.file = file};
		const struct saved_sstable *found = bsearch(&wanted, writer->sstables,
		    writer->sstable_count, sizeof(wanted), saved_compare_files);

		if (found == NULL)
			return 0; /* of an SSTable that is gone */
		saved_write_sstable(writer, found);
		writer->last_file = file;
		writer->has_last = true;
	}
	buffer_put_u32(out, (uint32_t)(1 + 3 * 8 + 2 * 4 + 12 + key.size));
	buffer_put_u8(out, SAVED_IS_ENTRY);
	buffer_put_u64(out, entry->data_position);
	buffer_put_u64(out, entry->blocks_position);
	buffer_put_u64(out, entry->blocks_end);
	buffer_put_u32(out, entry->block_count);
	buffer_put_u32(out, entry->header_length);
	deletion_encode(entry->deletion, out);
	buffer_put(out, key.data, key.size);
	writer->records++;
	return out->size < SAVED_BUFFER ? 0 : saved_flush(writer, err);
}

static int
saved_write_keys(struct saved_writer *writer, uint64_t count_max, struct error *err)
{
	struct store *store = writer->store;
	struct table_store **tables;
	struct table_view **views;
	uint32_t count;
	int rc;

	tables = store_tables(store, &count);
	views = xcalloc(count + 1, sizeof(struct table_view *));
	for (uint32_t t = 0; t < count; t++) {
		views[t] = table_view_acquire(tables[t]);
		writer->sstables = xrealloc(writer->sstables,
		    (writer->sstable_count + views[t]->sstable_count + 1) *
			sizeof(*writer->sstables));
		for (uint32_t i = 0; i < views[t]->sstable_count; i++)
			writer->sstables[writer->sstable_count++] = (struct saved_sstable){
			    views[t]->sstables[i]->data_id, tables[t], views[t]->sstables[i]};
	}
	qsort(writer->sstables, writer->sstable_count, sizeof(*writer->sstables),
	    saved_compare_files);
	rc = key_cache_each(store->sstables.keys, count_max, saved_key_entry, writer, err);
	for (uint32_t t = 0; t < count; t++)
		table_view_release(views[t]);
	free(views);
	free(tables);
	free(writer->sstables);
	writer->sstables = NULL;
	return rc;
}

/* Which table has these entries now? NULL: none any more. */
static const struct table_store *
saved_find_owner(
    struct table_store *const *tables, uint32_t count, uint64_t owner, enum saved_cache_kind kind)
{
	for (uint32_t i = 0; i < count; i++)
		if (atomic_load(kind == SAVED_ROWS ? &tables[i]->row_cache_owner
						   : &tables[i]->counter_cache_owner) == owner)
			return tables[i];
	return NULL;
}

static int
saved_write_entries(struct saved_writer *writer, struct entry_cache *cache,
    enum saved_cache_kind kind, uint64_t count_max, struct error *err)
{
	struct entry_cache_stats stats;
	struct table_store **tables;
	struct cached **entries;
	uint64_t entry_count;
	uint32_t count;
	int rc = 0;

	entry_cache_stats(cache, &stats);
	if (count_max > stats.entries)
		count_max = stats.entries;
	entries = calloc(count_max + 1, sizeof(struct cached *));
	if (entries == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to save a cache");
	entry_count = entry_cache_list(cache, entries, count_max);
	tables = store_tables(writer->store, &count);
	for (uint64_t i = 0; i < entry_count; i++) {
		const struct table_store *table =
		    saved_find_owner(tables, count, entries[i]->owner, kind);
		struct slice key = cached_key(entries[i]);

		if (rc == 0 && table != NULL) {
			buffer_put_u32(&writer->buffer, 16 + (uint32_t)key.size);
			buffer_put(&writer->buffer, table->id.bytes, 16);
			buffer_put(&writer->buffer, key.data, key.size);
			writer->records++;
			if (writer->buffer.size >= SAVED_BUFFER)
				rc = saved_flush(writer, err);
		}
		cached_unref(entries[i]);
	}
	free(tables);
	free(entries);
	return rc;
}

static int
saved_write(struct store *store, enum saved_cache_kind kind, uint64_t count_max, struct error *err)
{
	struct files *files = store->env->files;
	const char *directory = store->options.saved_caches_directory;
	char *path = xasprintf("%s/%s", directory, saved_names[kind]);
	char *temporary = xasprintf("%s.tmp", path);
	struct saved_writer writer = {.store = store};
	uint64_t began = env_monotonic_ns(store->env);
	int rc;

	buffer_init(&writer.buffer);
	rc = files_mkdir(files, directory, err);
	if (rc == 0)
		rc = files_open(
		    files, temporary, FILE_CREATE | FILE_WRITE | FILE_TRUNCATE, &writer.file, err);
	if (rc == 0) {
		buffer_put(&writer.buffer, saved_magic, sizeof(saved_magic));
		buffer_put_u32(&writer.buffer, (uint32_t)kind);
		rc = kind == SAVED_KEYS
		    ? saved_write_keys(&writer, count_max, err)
		    : saved_write_entries(&writer,
			  kind == SAVED_ROWS ? store->row_cache : store->counter_cache, kind,
			  count_max, err);
	}
	if (rc == 0)
		rc = saved_flush(&writer, err);
	if (rc == 0) {
		buffer_put_u32(&writer.buffer, writer.crc);
		rc = file_write(writer.file, writer.buffer.data, writer.buffer.size, err);
	}
	if (rc == 0)
		rc = file_sync(writer.file, err);
	file_close(writer.file);
	if (rc == 0)
		rc = files_rename(files, temporary, path, err);
	if (rc == 0)
		rc = files_sync_folder(files, directory, err);
	if (rc == 0)
		log_info("Saved %s (%" PRIu64 " items) in %" PRIu64 " ms", saved_names[kind],
		    writer.records, (env_monotonic_ns(store->env) - began) / 1000000);
	else
		(void)files_unlink(files, temporary, NULL);
	buffer_fini(&writer.buffer);
	free(temporary);
	free(path);
	return rc;
}

void
saved_cache_save(struct store *store)
{
	for (int kind = 0; kind < SAVED_CACHES; kind++) {
		uint64_t count_max = atomic_load(&store->cache_keys_to_save[kind]);
		struct error err;

		if (store->options.cache_save_period_seconds[kind] > 0 &&
		    saved_write(store, (enum saved_cache_kind)kind, count_max, &err) != 0)
			log_warn("a cache is not saved: %s", err.text);
	}
}

/* ---- loading ----------------------------------------------------------------------------------------- */

struct saved_loader {
	struct store *store;
	enum saved_cache_kind kind;
	uint64_t deadline_ns;
	uint64_t records;
	/* Of the key cache: what the next entries are of; NULL: an SSTable that is not there any more. */
	struct table_view *view; /* a reference */
	struct sstable *sstable;
};

static struct table_store *
saved_find_table(struct store *store, struct slice id)
{
	struct table_store *found = NULL;

	lock_take(&store->tables_lock);
	for (uint32_t i = 0; i < store->table_capacity && found == NULL; i++)
		if (store->tables[i] != NULL && !atomic_load(&store->tables[i]->is_dropped) &&
		    memcmp(store->tables[i]->id.bytes, id.data, 16) == 0)
			found = store->tables[i];
	lock_drop(&store->tables_lock);
	return found;
}

/* The very file that it was: the same name is not enough, data may have been put back. */
static void
saved_load_sstable(struct saved_loader *loader, struct reader *reader)
{
	struct slice table_id = reader_bytes(reader, 16);
	struct sstable_id id = {.is_uuid = reader_u8(reader) != 0};
	struct slice bytes = reader_bytes(reader, 16);
	uint64_t size = reader_u64(reader), created_ms = reader_u64(reader);
	struct table_store *table;

	table_view_release(loader->view);
	loader->view = NULL;
	loader->sstable = NULL;
	if (reader->is_failed)
		return;
	memcpy(id.uuid.bytes, bytes.data, 16);
	id.generation = load_u64(bytes.data);
	table = saved_find_table(loader->store, table_id);
	if (table == NULL)
		return;
	loader->view = table_view_acquire(table);
	for (uint32_t i = 0; i < loader->view->sstable_count; i++) {
		struct sstable *each = loader->view->sstables[i];

		if (sstable_id_equal(&sstable_descriptor(each)->id, &id) &&
		    sstable_data_size(each) == size && sstable_created_ms(each) == created_ms)
			loader->sstable = each;
	}
}

static void
saved_load_entry(struct saved_loader *loader, struct reader *reader)
{
	struct index_entry entry = {0};
	struct slice key;
	uint64_t hash[2];

	entry.data_position = reader_u64(reader);
	entry.blocks_position = reader_u64(reader);
	entry.blocks_end = reader_u64(reader);
	entry.block_count = reader_u32(reader);
	entry.header_length = reader_u32(reader);
	entry.deletion = deletion_decode(reader);
	key = reader_bytes(reader, reader_left(reader));
	if (reader->is_failed || loader->sstable == NULL)
		return;
	murmur3_128(key, 0, hash);
	key_cache_put(loader->store->sstables.keys, loader->sstable->data_id, key, hash[0], &entry);
	loader->records++;
}

/* A read puts the partition into the row cache. */
static int
saved_load_row(struct table_store *table, struct slice key, struct error *err)
{
	struct read_command command = {.table = atomic_load(&table->metadata),
	    .key = key,
	    .token = murmur3_token(key),
	    .row_limit = 1,
	    .per_partition_limit = READ_LIMIT_NONE,
	    .now_seconds = env_wall_us(table->store->env) / 1000000};
	struct partition_iterator *partitions;
	struct arena arena;
	int rc;

	arena_init(&arena, 4096);
	rc = store_read(table->store, &command, &arena, &partitions, err);
	if (rc == 0)
		partition_iterator_close(partitions);
	arena_fini(&arena);
	return rc;
}

static int
saved_load_record(void *argument, struct slice record, struct error *err)
{
	struct saved_loader *loader = argument;
	struct store *store = loader->store;
	struct reader reader = reader_of(record);
	struct table_store *table;
	struct slice id, key;

	if (atomic_load(&store->state) != STORE_RUNNING)
		return error_set(err, ERROR_SHUTDOWN, "the node is stopping");
	if (env_monotonic_ns(store->env) > loader->deadline_ns)
		return error_set(err, ERROR_SHUTDOWN, "cache_load_timeout has passed");
	if (loader->kind == SAVED_KEYS) {
		if (reader_u8(&reader) == SAVED_IS_SSTABLE)
			saved_load_sstable(loader, &reader);
		else
			saved_load_entry(loader, &reader);
		return 0;
	}
	id = reader_bytes(&reader, 16);
	key = reader_bytes(&reader, reader_left(&reader));
	table = reader.is_failed ? NULL : saved_find_table(store, id);
	if (table == NULL)
		return 0;
	loader->records++;
	return loader->kind == SAVED_ROWS ? saved_load_row(table, key, err)
					  : counter_cache_load(table, key, err);
}

void
saved_cache_load(struct store *store)
{
	for (int kind = 0; kind < SAVED_CACHES; kind++) {
		struct saved_loader loader = {.store = store,
		    .kind = (enum saved_cache_kind)kind,
		    .deadline_ns = env_monotonic_ns(store->env) +
			store->options.cache_load_timeout_ms * 1000000};
		char *path =
		    xasprintf("%s/%s", store->options.saved_caches_directory, saved_names[kind]);
		struct buffer content;
		struct error err;

		buffer_init(&content);
		if (files_exists(store->env->files, path)) {
			if (files_read_all(
				store->env->files, path, SAVED_BYTES_MAX, &content, &err) != 0)
				log_warn("a saved cache is not read: %s", err.text);
			else if (saved_cache_decode(buffer_slice(&content), loader.kind,
				     saved_load_record, &loader, &err) != 0)
				log_warn("%s: %s; %" PRIu64 " items were read", path, err.text,
				    loader.records);
			else
				log_info("Read %s (%" PRIu64 " items)", saved_names[kind],
				    loader.records);
		}
		table_view_release(loader.view);
		buffer_fini(&content);
		free(path);
	}
}
