/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/sstable.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/compress.h"
#include "storage/sstable_internal.h"

enum { SSTABLE_META_ARENA = 16 * 1024, SSTABLE_BINDING_ARENA = 2 * 1024 };

/* ---- open, share --------------------------------------------------------------------------------- */

static int
sstable_stat(struct sstable *sstable, struct error *err)
{
	for (int i = 0; i < SSTABLE_COMPONENT_COUNT; i++) {
		char path[SSTABLE_PATH_MAX];
		struct file_stat stat;

		if (sstable_path(&sstable->descriptor, i, path, err) != 0 ||
		    files_stat(sstable->context.env->files, path, &stat, err) != 0)
			return -1;
		if (stat.kind == FILE_REGULAR)
			sstable->total_size += stat.size;
		if (i != SSTABLE_DATA)
			continue;
		if (stat.kind != FILE_REGULAR)
			return error_set(err, ERROR_IO, "%s: there is no such file", path);
		sstable->data_size = stat.size;
		sstable->created_ms = (uint64_t)(stat.modified_us / 1000);
	}
	return 0;
}

int
sstable_open(const struct sstable_context *context, const struct sstable_descriptor *descriptor,
    const struct table_metadata *table, struct sstable **out, struct error *err)
{
	struct sstable *sstable = xzalloc(sizeof(*sstable));

	atomic_init(&sstable->refs, 1);
	sstable->context = *context;
	sstable->descriptor = *descriptor;
	sstable->descriptor.directory = xstrdup(descriptor->directory);
	sstable->table = table_ref(table);
	if (context->chunks != NULL) {
		sstable->data_id = chunk_cache_file_id(context->chunks);
		sstable->index_id = chunk_cache_file_id(context->chunks);
	} else {
		sstable->context.keys = NULL; /* without ids its keys could not be told apart */
	}
	if (sstable_stat(sstable, err) != 0) {
		sstable_unref(sstable);
		return -1;
	}
	*out = sstable;
	return 0;
}

struct sstable *
sstable_ref(struct sstable *sstable)
{
	/* The caller has a reference of its own, so nothing must be ordered. */
	atomic_fetch_add_explicit(&sstable->refs, 1, memory_order_relaxed);
	return sstable;
}

static void
sstable_meta_free(struct sstable_meta *meta)
{
	if (meta == NULL)
		return;
	arena_fini(&meta->arena);
	free(meta);
}

static void
sstable_parts_free(struct sstable_parts *parts)
{
	if (parts == NULL)
		return;
	sstable_file_close(&parts->data);
	sstable_file_close(&parts->index);
	compression_info_fini(&parts->compression);
	free(parts->crcs);
	bloom_fini(&parts->bloom);
	index_summary_fini(&parts->summary);
	free(parts);
}

static void
sstable_binding_free(struct sstable_binding *binding)
{
	table_unref(binding->table);
	arena_fini(&binding->arena);
	free(binding);
}

/* TOC first: what is left over without one is no table any more. */
static void
sstable_delete(struct sstable *sstable)
{
	for (int i = SSTABLE_COMPONENT_COUNT - 1; i >= 0; i--) {
		char path[SSTABLE_PATH_MAX];
		struct error err;

		if (sstable_path(&sstable->descriptor, i, path, &err) != 0 ||
		    files_unlink(sstable->context.env->files, path, &err) != 0)
			log_warn("cannot delete a component: %s", err.text);
	}
}

void
sstable_unref(struct sstable *sstable)
{
	struct sstable_binding *binding, *next;
	struct sstable_change *change, *older;

	/* Acquire: everything that other holders did happened before what follows. */
	if (sstable == NULL ||
	    atomic_fetch_sub_explicit(&sstable->refs, 1, memory_order_acq_rel) != 1)
		return;
	sstable_parts_free(atomic_load(&sstable->parts));
	sstable_meta_free(atomic_load(&sstable->meta));
	for (binding = atomic_load(&sstable->bindings); binding != NULL; binding = next) {
		next = binding->next;
		sstable_binding_free(binding);
	}
	for (change = atomic_load(&sstable->change); change != NULL; change = older) {
		older = change->older;
		free(change);
	}
	if (sstable->context.chunks != NULL) {
		chunk_cache_drop_file(sstable->context.chunks, sstable->data_id);
		chunk_cache_drop_file(sstable->context.chunks, sstable->index_id);
	}
	if (atomic_load(&sstable->is_obsolete)) {
		sstable_delete(sstable);
		if (sstable->on_deleted != NULL)
			sstable->on_deleted(sstable->on_deleted_argument);
	}
	table_unref(sstable->table);
	free((char *)sstable->descriptor.directory);
	free(sstable);
}

void
sstable_mark_obsolete(struct sstable *sstable, void (*on_deleted)(void *argument), void *argument)
{
	sstable->on_deleted = on_deleted;
	sstable->on_deleted_argument = argument;
	atomic_store(&sstable->is_obsolete, true);
}

const struct sstable_descriptor *
sstable_descriptor(const struct sstable *sstable)
{
	return &sstable->descriptor;
}

uint64_t
sstable_data_size(const struct sstable *sstable)
{
	return sstable->data_size;
}

uint64_t
sstable_total_size(const struct sstable *sstable)
{
	return sstable->total_size;
}

uint64_t
sstable_created_ms(const struct sstable *sstable)
{
	return sstable->created_ms;
}

/* ---- loading ------------------------------------------------------------------------------------------ */

/* The whole of a component; *out is initialised here and the caller's in any case. */
static int
sstable_component_read(const struct sstable *sstable, enum sstable_component component,
    struct buffer *out, char path[SSTABLE_PATH_MAX], struct error *err)
{
	buffer_init(out);
	if (sstable_path(&sstable->descriptor, component, path, err) != 0)
		return -1;
	return files_read_all(
	    sstable->context.env->files, path, SSTABLE_COMPONENT_BYTES_MAX, out, err);
}

/* A component that cannot be looked for must not pass for one that is not there: a compressed file
 * would be read as it is. */
static int
sstable_component_exists(const struct sstable *sstable, enum sstable_component component,
    bool *exists, struct error *err)
{
	struct file_stat stat;
	char path[SSTABLE_PATH_MAX];

	if (sstable_path(&sstable->descriptor, component, path, err) != 0 ||
	    files_stat(sstable->context.env->files, path, &stat, err) != 0)
		return -1;
	*exists = stat.kind != FILE_MISSING;
	return 0;
}

static int
sstable_index_open(const struct sstable *sstable, struct sstable_file *file, struct error *err)
{
	char path[SSTABLE_PATH_MAX];

	if (sstable_path(&sstable->descriptor, SSTABLE_INDEX, path, err) != 0 ||
	    sstable_file_open(file, &sstable->context, path, err) != 0)
		return -1;
	file->id = sstable->index_id;
	file->chunk_length = SSTABLE_INDEX_CHUNK;
	return 0;
}

/* Summary.db can be made again from Index.db; so a lost or broken one costs time, not data. */
static int
sstable_summary_rebuild(struct sstable *sstable, struct buffer *out, struct error *err)
{
	struct index_summary_builder builder;
	struct sstable_file file;
	struct sstable_cursor cursor;
	struct arena arena;
	uint64_t position = 0;
	int rc = sstable_index_open(sstable, &file, err);

	if (rc != 0) {
		sstable_file_close(&file);
		return -1;
	}
	arena_init(&arena, SSTABLE_META_ARENA);
	index_summary_builder_init(&builder, (uint32_t)sstable->table->options.min_index_interval);
	sstable_cursor_init(&cursor, &file, &arena, true, false);
	do {
		struct index_entry entry;
		struct slice key;
		uint64_t start = position;

		rc = sstable_index_next(&cursor, &arena, &position, &key, &entry, err);
		if (rc > 0)
			index_summary_builder_add(&builder, key, start);
		arena_reset(&arena);
	} while (rc > 0);
	if (rc == 0) {
		buffer_clear(out);
		rc = index_summary_builder_encode(&builder, out, err);
	}
	sstable_cursor_fini(&cursor);
	index_summary_builder_fini(&builder);
	arena_fini(&arena);
	sstable_file_close(&file);
	return rc;
}

/* Content of Summary.db, good or made again. */
static int
sstable_summary_read(struct sstable *sstable, struct buffer *out, struct error *err)
{
	char path[SSTABLE_PATH_MAX];
	struct index_summary summary;

	if (sstable_component_read(sstable, SSTABLE_SUMMARY, out, path, err) == 0) {
		if (index_summary_decode(buffer_slice(out), &summary, err) == 0) {
			index_summary_fini(&summary);
			return 0;
		}
		error_prefix(err, "%s", path);
	}
	if (err != NULL)
		log_warn("%s; made again from Index.db", err->text);
	return sstable_summary_rebuild(sstable, out, err);
}

static int
sstable_meta_load(struct sstable *sstable, struct sstable_meta *meta, struct error *err)
{
	struct sstable_stats *stats = &meta->statistics.stats;
	struct buffer content;
	char path[SSTABLE_PATH_MAX];
	int rc = sstable_component_read(sstable, SSTABLE_STATISTICS, &content, path, err);

	if (rc == 0) {
		rc =
		    statistics_decode(buffer_slice(&content), &meta->arena, &meta->statistics, err);
		if (rc != 0)
			error_prefix(err, "%s", path);
	}
	buffer_fini(&content);
	if (rc != 0)
		return -1;
	if (meta->statistics.header.clustering_count != sstable->table->clustering_count)
		return error_set(err, ERROR_CORRUPT,
		    "%s: has %u clustering columns, the table has %u", path,
		    meta->statistics.header.clustering_count, sstable->table->clustering_count);
	rc = sstable_summary_read(sstable, &content, err);
	if (rc == 0)
		rc = index_summary_decode_keys(
		    buffer_slice(&content), &stats->first_key, &stats->last_key, err);
	if (rc == 0) {
		stats->first_key = arena_copy(&meta->arena, stats->first_key);
		stats->last_key = arena_copy(&meta->arena, stats->last_key);
		stats->first_token = murmur3_token(stats->first_key);
		stats->last_token = murmur3_token(stats->last_key);
	}
	buffer_fini(&content);
	return rc;
}

const struct sstable_meta *
sstable_get_meta(struct sstable *sstable, struct error *err)
{
	struct sstable_meta *meta = atomic_load_explicit(&sstable->meta, memory_order_acquire);
	struct sstable_meta *other = NULL;
	struct error unused;

	if (meta != NULL)
		return meta;
	meta = xzalloc(sizeof(*meta));
	arena_init(&meta->arena, SSTABLE_META_ARENA);
	if (err == NULL)
		err = &unused;
	if (sstable_meta_load(sstable, meta, err) != 0) {
		(void)sstable_failed(sstable->context.watch, sstable->descriptor.directory, err);
		sstable_meta_free(meta);
		return NULL;
	}
	atomic_store_explicit(&sstable->level, meta->statistics.stats.level, memory_order_relaxed);
	meta->repair = (struct sstable_repair){.repaired_at = meta->statistics.stats.repaired_at,
	    .has_pending_repair = meta->statistics.stats.has_pending_repair,
	    .is_transient = meta->statistics.stats.is_transient,
	    .pending_repair = meta->statistics.stats.pending_repair};
	if (!atomic_compare_exchange_strong_explicit(
		&sstable->meta, &other, meta, memory_order_acq_rel, memory_order_acquire)) {
		sstable_meta_free(meta);
		return other;
	}
	return meta;
}

static int
sstable_compression_load(struct sstable *sstable, struct sstable_parts *parts, struct error *err)
{
	struct buffer content;
	char path[SSTABLE_PATH_MAX];
	int rc = sstable_component_read(sstable, SSTABLE_COMPRESSION_INFO, &content, path, err);

	if (rc == 0) {
		rc = compression_info_decode(
		    buffer_slice(&content), parts->data.length, &parts->compression, err);
		if (rc != 0)
			error_prefix(err, "%s", path);
	}
	buffer_fini(&content);
	if (rc != 0)
		return -1;
	parts->data.compression = &parts->compression;
	parts->data.length = parts->compression.data_length;
	parts->data.chunk_length = parts->compression.chunk_length;
	return 0;
}

static int
sstable_crcs_decode(struct slice content, struct sstable_parts *parts, struct error *err)
{
	struct reader reader = reader_of(content);
	uint32_t chunk = reader_u32(&reader);
	uint64_t count = reader_left(&reader) / 4;

	if (reader.is_failed || chunk == 0 || chunk > COMPRESSION_CHUNK_LENGTH_MAX ||
	    count != (parts->data.length + chunk - 1) / chunk)
		return error_set(err, ERROR_CORRUPT, "%llu checksums do not fit the data",
		    (unsigned long long)count);
	parts->crcs = malloc((count + 1) * sizeof(uint32_t));
	if (parts->crcs == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for checksums");
	for (uint64_t i = 0; i < count; i++)
		parts->crcs[i] = reader_u32(&reader);
	parts->data.chunk_length = chunk;
	parts->data.crcs = parts->crcs;
	return 0;
}

static int
sstable_crcs_load(struct sstable *sstable, struct sstable_parts *parts, struct error *err)
{
	struct buffer content;
	char path[SSTABLE_PATH_MAX];
	int rc = sstable_component_read(sstable, SSTABLE_CRC, &content, path, err);

	if (rc == 0) {
		rc = sstable_crcs_decode(buffer_slice(&content), parts, err);
		if (rc != 0)
			error_prefix(err, "%s", path);
	}
	buffer_fini(&content);
	return rc;
}

static int
sstable_filter_load(struct sstable *sstable, struct sstable_parts *parts, struct error *err)
{
	struct buffer content;
	char path[SSTABLE_PATH_MAX];
	bool exists;
	int rc;

	if (sstable_component_exists(sstable, SSTABLE_FILTER, &exists, err) != 0)
		return -1;
	if (!exists)
		return 0; /* bloom_filter_fp_chance = 1: there is none */
	rc = sstable_component_read(sstable, SSTABLE_FILTER, &content, path, err);
	if (rc == 0) {
		rc = bloom_decode(buffer_slice(&content), &parts->bloom, err);
		if (rc != 0)
			error_prefix(err, "%s", path);
	}
	buffer_fini(&content);
	parts->has_filter = rc == 0;
	return rc;
}

static int
sstable_parts_load(struct sstable *sstable, struct sstable_parts *parts, struct error *err)
{
	struct buffer content;
	char path[SSTABLE_PATH_MAX];
	const struct sstable_meta *meta;
	bool is_compressed, has_crcs;
	int rc;

	if (sstable_path(&sstable->descriptor, SSTABLE_DATA, path, err) != 0 ||
	    sstable_file_open(&parts->data, &sstable->context, path, err) != 0)
		return -1;
	parts->data.id = sstable->data_id;
	parts->data.crc_check_chance = sstable->table->options.crc_check_chance;
	parts->data.chunk_length = SSTABLE_CRC_CHUNK;
	if (sstable_index_open(sstable, &parts->index, err) != 0)
		return -1;
	if (sstable_component_exists(sstable, SSTABLE_COMPRESSION_INFO, &is_compressed, err) != 0 ||
	    sstable_component_exists(sstable, SSTABLE_CRC, &has_crcs, err) != 0)
		return -1;
	meta = sstable_get_meta(sstable, err);
	if (meta == NULL)
		return -1;
	if (!is_compressed && meta->statistics.stats.compression_ratio >= 0)
		return error_set(err, ERROR_CORRUPT,
		    "%s: is compressed by its Statistics.db, but CompressionInfo.db is missing",
		    path);
	if (is_compressed)
		rc = sstable_compression_load(sstable, parts, err);
	else
		rc = has_crcs ? sstable_crcs_load(sstable, parts, err) : 0;
	if (rc != 0 || sstable_filter_load(sstable, parts, err) != 0)
		return -1;
	rc = sstable_summary_read(sstable, &content, err);
	if (rc == 0)
		rc = index_summary_decode(buffer_slice(&content), &parts->summary, err);
	buffer_fini(&content);
	return rc;
}

struct sstable_parts *
sstable_get_parts(struct sstable *sstable, struct error *err)
{
	struct sstable_parts *parts = atomic_load_explicit(&sstable->parts, memory_order_acquire);
	struct sstable_parts *other = NULL;
	struct error unused;

	if (parts != NULL)
		return parts;
	parts = xzalloc(sizeof(*parts));
	if (err == NULL)
		err = &unused;
	if (sstable_parts_load(sstable, parts, err) != 0) {
		(void)sstable_failed(sstable->context.watch, sstable->descriptor.directory, err);
		sstable_parts_free(parts);
		return NULL;
	}
	if (!atomic_compare_exchange_strong_explicit(
		&sstable->parts, &other, parts, memory_order_acq_rel, memory_order_acquire)) {
		sstable_parts_free(parts);
		return other;
	}
	return parts;
}

int
sstable_load(struct sstable *sstable, struct error *err)
{
	if (sstable_get_meta(sstable, err) == NULL || sstable_get_parts(sstable, err) == NULL)
		return -1;
	return 0;
}

/* ---- bindings ----------------------------------------------------------------------------------------- */

static struct sstable_binding *
sstable_binding_new(
    const struct sstable_meta *meta, const struct table_metadata *table, struct error *err)
{
	const struct statistics_header *header = &meta->statistics.header;
	const struct sstable_stats *stats = &meta->statistics.stats;
	struct sstable_binding *binding = xzalloc(sizeof(*binding));

	binding->table = table_ref(table);
	arena_init(&binding->arena, SSTABLE_BINDING_ARENA);
	binding->codec = (struct row_codec){
	    .table = binding->table,
	    .static_count = header->static_count,
	    .regular_count = header->regular_count,
	    .statics = header->statics,
	    .regulars = header->regulars,
	    .min_timestamp = header->min_timestamp,
	    .min_local_deletion_time = header->min_local_deletion_time,
	    .min_ttl = header->min_ttl,
	};
	binding->row_position = position_make(table, BOUND_CLUSTERING, NULL, 0, &binding->arena);
	if (stats->min_clustering_count > 0 && stats->max_clustering_count > 0) {
		binding->min_position = position_make(table, BOUND_INCL_START,
		    stats->min_clustering, stats->min_clustering_count, &binding->arena);
		binding->max_position = position_make(table, BOUND_INCL_END, stats->max_clustering,
		    stats->max_clustering_count, &binding->arena);
	}
	if (row_codec_bind(&binding->codec, table, &binding->arena, err) != 0) {
		sstable_binding_free(binding);
		return NULL;
	}
	return binding;
}

const struct sstable_binding *
sstable_bind(struct sstable *sstable, const struct table_metadata *table, struct error *err)
{
	struct sstable_binding *first =
	    atomic_load_explicit(&sstable->bindings, memory_order_acquire);
	const struct sstable_meta *meta;
	struct sstable_binding *binding;

	for (binding = first; binding != NULL; binding = binding->next) {
		if (binding->table == table)
			return binding;
	}
	meta = sstable_get_meta(sstable, err);
	if (meta == NULL)
		return NULL;
	if (table->clustering_count != sstable->table->clustering_count) {
		error_set(err, ERROR_SERVER, "clustering columns of a table do not change");
		return NULL;
	}
	binding = sstable_binding_new(meta, table, err);
	if (binding == NULL)
		return NULL;
	/* Two threads may bind the same version: one too many costs a few hundred bytes. */
	binding->next = first;
	while (!atomic_compare_exchange_weak_explicit(&sstable->bindings, &binding->next, binding,
	    memory_order_acq_rel, memory_order_acquire))
		;
	return binding;
}

/* ---- what is known ---------------------------------------------------------------------------------- */

const struct sstable_stats *
sstable_stats(struct sstable *sstable, struct error *err)
{
	const struct sstable_meta *meta = sstable_get_meta(sstable, err);

	return meta == NULL ? NULL : &meta->statistics.stats;
}

int32_t
sstable_level(struct sstable *sstable)
{
	if (sstable_get_meta(sstable, NULL) == NULL)
		return 0;
	return atomic_load_explicit(&sstable->level, memory_order_relaxed);
}

const struct sstable_repair *
sstable_repair(struct sstable *sstable, struct error *err)
{
	const struct sstable_meta *meta = sstable_get_meta(sstable, err);
	const struct sstable_change *change;

	if (meta == NULL)
		return NULL;
	change = atomic_load_explicit(&sstable->change, memory_order_acquire);
	return change == NULL ? &meta->repair : &change->repair;
}

int64_t
sstable_repaired_at(struct sstable *sstable)
{
	const struct sstable_repair *repair = sstable_repair(sstable, NULL);

	return repair == NULL ? 0 : repair->repaired_at;
}

static int64_t
sstable_histogram_count(const struct sstable_histogram *histogram)
{
	int64_t count = 0;

	for (uint32_t i = 0; i < histogram->count; i++)
		count += histogram->counts[i];
	return count;
}

/* EstimatedHistogram.mean: by the upper ends of the buckets, rounded up. */
static int64_t
sstable_histogram_mean(const struct sstable_histogram *histogram)
{
	double sum = 0, count = 0;

	for (uint32_t i = 0; i + 1 < histogram->count; i++) {
		sum += (double)histogram->counts[i] * (double)histogram->offsets[i];
		count += (double)histogram->counts[i];
	}
	return count == 0 ? 0 : (int64_t)(sum / count + 0.999999);
}

uint64_t
sstable_estimated_keys(struct sstable *sstable)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);

	return stats == NULL ? 0 : (uint64_t)sstable_histogram_count(&stats->partition_sizes);
}

double
sstable_droppable_ratio(struct sstable *sstable, int64_t gc_before)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);
	double cells;

	if (stats == NULL)
		return 0;
	cells = (double)sstable_histogram_mean(&stats->cells_per_partition) *
	    (double)sstable_histogram_count(&stats->cells_per_partition);
	if (cells <= 0)
		return 0;
	return statistics_drop_times_sum(&stats->drop_times, (double)gc_before) / cells;
}

double
sstable_compression_ratio(struct sstable *sstable)
{
	const struct sstable_stats *stats = sstable_stats(sstable, NULL);

	return stats == NULL ? -1 : stats->compression_ratio;
}

uint64_t
sstable_filter_memory(const struct sstable *sstable)
{
	const struct sstable_parts *parts = atomic_load(&sstable->parts);

	return parts == NULL || !parts->has_filter ? 0 : bloom_memory(&parts->bloom);
}

uint64_t
sstable_summary_memory(const struct sstable *sstable)
{
	const struct sstable_parts *parts = atomic_load(&sstable->parts);

	return parts == NULL ? 0 : index_summary_memory(&parts->summary);
}

uint64_t
sstable_compression_memory(const struct sstable *sstable)
{
	const struct sstable_parts *parts = atomic_load(&sstable->parts);

	return parts == NULL || parts->data.compression == NULL
	    ? 0
	    : compression_info_memory(&parts->compression);
}

void
sstable_key_samples(
    struct sstable *sstable, void (*each)(void *argument, int64_t token), void *argument)
{
	const struct sstable_parts *parts = sstable_get_parts(sstable, NULL);

	for (uint32_t i = 0; parts != NULL && i < parts->summary.count; i++)
		each(argument, parts->summary.tokens[i]);
}

bool
sstable_has_compression(struct sstable *sstable, const struct table_metadata *table)
{
	const struct sstable_parts *parts = sstable_get_parts(sstable, NULL);
	const struct table_options *options = &table->options;
	const struct compression_info *own;

	if (parts == NULL)
		return true;
	own = parts->data.compression;
	if (own == NULL || options->compressor == COMPRESSOR_NONE)
		return own == NULL && options->compressor == COMPRESSOR_NONE;
	return own->kind == options->compressor &&
	    own->chunk_length == (uint32_t)options->chunk_length &&
	    own->max_compressed_length == compress_length_max(options);
}

uint64_t
sstable_uncompressed_size(struct sstable *sstable)
{
	const struct sstable_parts *parts = sstable_get_parts(sstable, NULL);

	return parts == NULL ? 0 : parts->data.length;
}

void
sstable_counters(const struct sstable *sstable, struct sstable_counters *out)
{
	out->filter_false_positives =
	    atomic_load_explicit(&sstable->filter_false, memory_order_relaxed);
	out->reads = atomic_load_explicit(&sstable->reads, memory_order_relaxed);
	out->filter_true_positives = sstable_filter_memory(sstable) > 0 ? out->reads : 0;
	out->filter_checks = out->filter_true_positives + out->filter_false_positives +
	    atomic_load_explicit(&sstable->filter_negatives, memory_order_relaxed);
}

bool
sstable_may_have_key(struct sstable *sstable, struct slice key)
{
	const struct sstable_parts *parts = sstable_get_parts(sstable, NULL);
	uint64_t hash[2];

	if (parts == NULL || !parts->has_filter)
		return true;
	murmur3_128(key, 0, hash);
	return bloom_may_contain(&parts->bloom, hash);
}

bool
sstable_may_contain(struct sstable *sstable, const struct read_command *command)
{
	const struct sstable_meta *meta = sstable_get_meta(sstable, NULL);
	const struct clustering_filter *filter = &command->clustering;
	const struct sstable_binding *binding;

	if (meta == NULL || filter->slice_count == 0)
		return true;
	if (meta->statistics.stats.min_local_deletion_time != LOCAL_DELETION_TIME_NONE)
		return true; /* there may be a partition deletion, which has no clustering */
	if (filter->with_static && meta->statistics.header.static_count > 0)
		return true;
	binding = sstable_bind(sstable, command->table, NULL);
	if (binding == NULL || slice_is_null(binding->min_position) ||
	    slice_is_null(binding->max_position))
		return true;
	for (uint32_t i = 0; i < filter->slice_count; i++) {
		const struct clustering_slice *slice = &filter->slices[i];

		if ((slice_is_null(slice->start) ||
			slice_compare(slice->start, binding->max_position) < 0) &&
		    (slice_is_null(slice->end) ||
			slice_compare(slice->end, binding->min_position) > 0))
			return true;
	}
	return false;
}

uint64_t
sstable_estimated_keys_in(struct sstable *sstable, int64_t left, int64_t right)
{
	const struct sstable_parts *parts = sstable_get_parts(sstable, NULL);
	const struct index_summary *summary;
	int64_t low, high;
	uint64_t each;

	if (parts == NULL)
		return 0;
	summary = &parts->summary;
	each = (uint64_t)summary->min_interval * 128 / summary->sampling_level;
	low = left == INT64_MIN ? -1 : index_summary_floor_token(summary, left);
	high = right == INT64_MIN ? (int64_t)summary->count - 1
				  : index_summary_floor_token(summary, right);
	return high > low ? (uint64_t)(high - low) * each : 1;
}

/* ---- changing --------------------------------------------------------------------------------------------- */

static int
sstable_rewrite_statistics(
    struct sstable *sstable, const struct sstable_stats *changed, struct error *err)
{
	struct buffer content, rewritten;
	char path[SSTABLE_PATH_MAX];
	int rc = sstable_component_read(sstable, SSTABLE_STATISTICS, &content, path, err);

	buffer_init(&rewritten);
	if (rc == 0)
		rc = statistics_rewrite(buffer_slice(&content), changed, &rewritten, err);
	if (rc == 0)
		rc =
		    files_replace(sstable->context.env->files, path, buffer_slice(&rewritten), err);
	buffer_fini(&content);
	buffer_fini(&rewritten);
	return rc;
}

static void
sstable_put_repair(struct sstable_stats *stats, const struct sstable_repair *repair)
{
	stats->repaired_at = repair->repaired_at;
	stats->has_pending_repair = repair->has_pending_repair;
	stats->pending_repair = repair->pending_repair;
	stats->is_transient = repair->is_transient;
}

int
sstable_set_level(struct sstable *sstable, int32_t level, struct error *err)
{
	const struct sstable_stats *stats = sstable_stats(sstable, err);
	struct sstable_stats changed;

	if (stats == NULL)
		return -1;
	changed = *stats;
	changed.level = level;
	sstable_put_repair(&changed, sstable_repair(sstable, NULL));
	if (sstable_rewrite_statistics(sstable, &changed, err) != 0)
		return -1;
	atomic_store_explicit(&sstable->level, level, memory_order_relaxed);
	return 0;
}

int
sstable_set_repaired(struct sstable *sstable, int64_t repaired_at,
    const struct uuid *pending_repair, bool is_transient, struct error *err)
{
	const struct sstable_stats *stats = sstable_stats(sstable, err);
	struct sstable_stats changed;
	struct sstable_change *change;

	if (stats == NULL)
		return -1;
	change = xzalloc(sizeof(*change));
	change->repair = (struct sstable_repair){.repaired_at = repaired_at,
	    .has_pending_repair = pending_repair != NULL,
	    .is_transient = is_transient};
	if (pending_repair != NULL)
		change->repair.pending_repair = *pending_repair;
	changed = *stats;
	changed.level = atomic_load_explicit(&sstable->level, memory_order_relaxed);
	sstable_put_repair(&changed, &change->repair);
	if (sstable_rewrite_statistics(sstable, &changed, err) != 0) {
		free(change);
		return -1;
	}
	change->older = atomic_load_explicit(&sstable->change, memory_order_relaxed);
	atomic_store_explicit(&sstable->change, change, memory_order_release);
	return 0;
}
