/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/commitlog_segment.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"

#define SEGMENT_PREFIX "CommitLog-h1-"
#define SEGMENT_SUFFIX ".log"
#define SEGMENT_TEMPORARY_SUFFIX ".log.tmp"
#define SEGMENT_ARCHIVED_SUFFIX ".archived"

static const uint8_t segment_magic[8] = {'H', 'E', 'L', 'E', 'N', 'U', 'S', '1'};
static const uint8_t segment_compressed_magic[8] = {'H', 'E', 'L', 'E', 'N', 'U', 'S', 'Z'};

enum {
	SEGMENT_AT_ID = 8,
	SEGMENT_AT_SIZE = 16,
	SEGMENT_AT_CRC = 20,
	SEGMENT_AT_SYNCED = 24,
	SEGMENT_AT_SYNCED_CRC = 32,
	SEGMENT_AT_EMPTIED = 36,
};

static char *
segment_path(const char *directory, uint64_t id, const char *suffix)
{
	return xasprintf("%s/" SEGMENT_PREFIX "%" PRIu64 "%s", directory, id, suffix);
}

static void
segment_put_synced(uint8_t *memory, uint64_t synced)
{
	store_u64(memory + SEGMENT_AT_SYNCED, synced);
	store_u32(memory + SEGMENT_AT_SYNCED_CRC, crc32_update(0, memory + SEGMENT_AT_SYNCED, 8));
}

static void
segment_put_header(uint8_t *memory, uint64_t id, uint32_t size, bool is_compressed)
{
	memcpy(memory, is_compressed ? segment_compressed_magic : segment_magic,
	    sizeof(segment_magic));
	store_u64(memory + SEGMENT_AT_ID, id);
	store_u32(memory + SEGMENT_AT_SIZE, size);
	store_u32(memory + SEGMENT_AT_CRC, crc32_update(0, memory, SEGMENT_AT_CRC));
	segment_put_synced(memory, SEGMENT_HEADER_SIZE);
	/* The mark of a former life stays: it names the old id, and until the file has its new name that
	 * says that nothing in it counts, however torn the rest of the header is. */
}

/* What stands at SEGMENT_AT_EMPTIED in a segment that holds nothing any more. */
static uint32_t
segment_mark_of(uint64_t id)
{
	uint8_t bytes[8];

	store_u64(bytes, id);
	return crc32_update(0, bytes, sizeof(bytes));
}

static void
segment_free(struct segment *segment)
{
	if (segment == NULL)
		return;
	if (segment->memory != NULL) {
		if (segment->is_mapped)
			file_unmap(segment->file, segment->memory, segment->size);
		else
			free(segment->memory);
	}
	file_close(segment->file);
	free(segment->slots);
	free(segment->path);
	free(segment);
}

static void
segment_reset(struct segment *segment, uint64_t id, uint32_t slot_count)
{
	segment->id = id;
	segment->next = NULL;
	free(segment->slots);
	segment->slot_count = slot_count;
	segment->slots = xcalloc(slot_count, sizeof(*segment->slots));
	atomic_store(&segment->claimed, SEGMENT_HEADER_SIZE);
	atomic_store(&segment->end, 0);
	segment->synced = SEGMENT_HEADER_SIZE;
	segment->file_end = SEGMENT_HEADER_SIZE;
	segment->sync_target = SEGMENT_HEADER_SIZE;
}

/* Memory of a segment that is not mapped; what it holds at first is never written to the file. */
static uint8_t *
segment_memory_new(uint32_t size, struct error *err)
{
	void *memory = NULL;

	if (posix_memalign(&memory, SEGMENT_POPULATE_BYTES, size) != 0) {
		error_set(err, ERROR_NO_MEMORY,
		    "no memory for a commit log segment of %" PRIu32 " bytes", size);
		return NULL;
	}
	(void)madvise(memory, size, MADV_HUGEPAGE); /* only a wish */
	return memory;
}

int
segment_create(struct env *env, const char *directory, uint64_t id, uint32_t size,
    uint32_t slot_count, bool wants_map, struct segment_sections *sections, struct segment **out,
    struct error *err)
{
	char *temporary = segment_path(directory, id, SEGMENT_TEMPORARY_SUFFIX);
	struct segment *segment = xzalloc(sizeof(*segment));
	uint8_t header[SEGMENT_HEADER_SIZE] = {0};
	int rc = -1;

	segment->env = env;
	segment->size = size;
	segment->sections = sections;
	segment->path = segment_path(directory, id, SEGMENT_SUFFIX);
	segment_reset(segment, id, slot_count);
	if (files_open(env->files, temporary, FILE_CREATE | FILE_READ | FILE_WRITE, &segment->file,
		err) != 0)
		goto done;
	/* Preallocated, so that a full disk is an error here and not a fault on a mapped page. */
	if ((sections == NULL && file_truncate(segment->file, size, err) != 0) ||
	    file_reserve(segment->file, size, err) != 0)
		goto done;
	segment_put_header(header, id, size, sections != NULL);
	if (file_pwrite(segment->file, header, sizeof(header), 0, err) != 0)
		goto done;
	if (file_sync(segment->file, err) != 0)
		goto done;
	if (files_rename(env->files, temporary, segment->path, err) != 0)
		goto done;
	if (files_sync_folder(env->files, directory, err) != 0)
		goto done;
	if (wants_map)
		segment->memory = file_map(segment->file, size);
	segment->is_mapped = segment->memory != NULL;
	if (!segment->is_mapped) {
		segment->memory = segment_memory_new(size, err);
		if (segment->memory == NULL)
			goto done;
		memcpy(segment->memory, header, sizeof(header));
	}
	*out = segment;
	segment = NULL;
	rc = 0;
done:
	if (rc != 0)
		(void)files_unlink(env->files, temporary, NULL);
	segment_free(segment);
	free(temporary);
	return rc;
}

static char *
segment_archived_path(const char *path)
{
	return xasprintf("%s" SEGMENT_ARCHIVED_SUFFIX, path);
}

int
segment_note_archived(struct segment *segment, struct error *err)
{
	char *path = segment_archived_path(segment->path);
	struct file *file;
	int rc;

	rc = files_open(segment->env->files, path, FILE_CREATE | FILE_WRITE, &file, err);
	if (rc == 0)
		file_close(file);
	if (rc == 0)
		rc = files_sync_parent(segment->env->files, path, err);
	free(path);
	return rc;
}

/* The mark after the segment: one without a segment is a leftover that segment_list() removes. */
static int
segment_unlink(struct env *env, const char *path, bool is_archived, struct error *err)
{
	int rc = files_unlink(env->files, path, err);

	if (rc == 0 && is_archived) {
		char *mark = segment_archived_path(path);

		rc = files_unlink(env->files, mark, err);
		free(mark);
	}
	return rc;
}

int
segment_recycle(struct segment *old, const char *directory, uint64_t id, uint32_t slot_count,
    struct segment **out, struct error *err)
{
	char *path = segment_path(directory, id, SEGMENT_SUFFIX);

	/*
	 * Records of the old life stay in the file: their checksums know another segment id. The header
	 * must be durable before the name is, or a crash would show the old id under the new name.
	 */
	/* The mark first, see segment_put_header(). */
	if (file_sync(old->file, err) != 0)
		goto failed;
	if (old->memory == NULL) {
		old->memory = segment_memory_new(old->size, err);
		if (old->memory == NULL)
			goto failed;
		memset(old->memory, 0, SEGMENT_HEADER_SIZE);
		store_u32(old->memory + SEGMENT_AT_EMPTIED, segment_mark_of(old->id));
	}
	segment_put_header(old->memory, id, old->size, false);
	if (!old->is_mapped &&
	    file_pwrite(old->file, old->memory, SEGMENT_HEADER_SIZE, 0, err) != 0)
		goto failed;
	if (file_sync(old->file, err) != 0 ||
	    files_rename(old->env->files, old->path, path, err) != 0 ||
	    files_sync_folder(old->env->files, directory, err) != 0)
		goto failed;
	free(old->path);
	old->path = path;
	segment_reset(old, id, slot_count);
	*out = old;
	return 0;
failed:
	free(path);
	(void)segment_delete(old, NULL);
	return -1;
}

int
segment_delete(struct segment *segment, struct error *err)
{
	int rc;

	if (segment == NULL)
		return 0;
	rc = segment_unlink(segment->env, segment->path, segment->is_archived, err);
	segment_free(segment);
	return rc;
}

void
segment_abandon(struct segment *segment)
{
	segment_free(segment);
}

void
segment_empty(struct segment *segment)
{
	uint8_t mark[4];

	store_u32(mark, segment_mark_of(segment->id));
	if (segment->memory != NULL)
		memcpy(segment->memory + SEGMENT_AT_EMPTIED, mark, sizeof(mark));
	/* Only a saving for the next replay: what is in it may be applied once more. */
	if (!segment->is_mapped)
		(void)file_pwrite(segment->file, mark, sizeof(mark), SEGMENT_AT_EMPTIED, NULL);
}

bool
segment_claim(struct segment *segment, size_t payload, uint32_t *offset)
{
	uint32_t size = segment_record_size(payload);
	uint64_t at = atomic_fetch_add_explicit(&segment->claimed, size, memory_order_relaxed);

	if (at + size > segment->size) {
		unsigned expected = 0;

		/* The first that does not fit knows where the records end. */
		if (at <= segment->size)
			atomic_compare_exchange_strong(&segment->end, &expected, (unsigned)at);
		return false;
	}
	*offset = (uint32_t)at;
	return true;
}

/* Map in the pages of the next stretch in one call: far cheaper than a fault for each. */
static void
segment_populate(struct segment *segment, uint32_t upto)
{
#ifdef MADV_POPULATE_WRITE
	unsigned from = atomic_load_explicit(&segment->populated, memory_order_relaxed);

	if (!segment->is_mapped || upto < from || from >= segment->size)
		return;
	if (!atomic_compare_exchange_strong(
		&segment->populated, &from, from + SEGMENT_POPULATE_BYTES))
		return;
	if (from + SEGMENT_POPULATE_BYTES <= segment->size)
		(void)madvise(segment->memory + from, SEGMENT_POPULATE_BYTES, MADV_POPULATE_WRITE);
#else
	(void)segment;
	(void)upto;
#endif
}

void
segment_write(struct segment *segment, uint32_t offset, struct slice payload)
{
	uint8_t *at = segment->memory + offset;
	uint8_t sealed[16];

	segment_populate(segment, offset + segment_record_size(payload.size));
	store_u64(sealed, segment->id);
	store_u32(sealed + 8, offset);
	store_u32(sealed + 12, (uint32_t)payload.size);
	store_u32(at, (uint32_t)payload.size);
	store_u32(at + 4, crc32_update(0, sealed, sizeof(sealed)));
	store_u32(at + 8, crc32_update(0, payload.data, payload.size));
	memcpy(at + SEGMENT_RECORD_HEADER_SIZE, payload.data, payload.size);
}

static void
segment_raise(atomic_uint *value, unsigned to)
{
	unsigned now = atomic_load_explicit(value, memory_order_relaxed);

	while (now < to &&
	    !atomic_compare_exchange_weak_explicit(
		value, &now, to, memory_order_release, memory_order_relaxed))
		;
}

void
segment_mark_dirty(struct segment *segment, uint32_t slot, uint32_t offset)
{
	segment_raise(&segment->slots[slot].dirty, offset);
}

void
segment_mark_clean(struct segment *segment, uint32_t slot, uint32_t upto)
{
	if (slot < segment->slot_count)
		segment_raise(&segment->slots[slot].clean, upto);
}

bool
segment_is_dirty(const struct segment *segment, uint32_t slot)
{
	return atomic_load(&segment->slots[slot].dirty) > atomic_load(&segment->slots[slot].clean);
}

bool
segment_is_clean(const struct segment *segment)
{
	for (uint32_t slot = 0; slot < segment->slot_count; slot++)
		if (segment_is_dirty(segment, slot))
			return false;
	return true;
}

uint32_t
segment_claimed(const struct segment *segment)
{
	unsigned end = atomic_load(&segment->end);
	uint64_t claimed;

	if (end != 0)
		return end;
	claimed = atomic_load(&segment->claimed);
	return claimed > segment->size ? segment->size : (uint32_t)claimed;
}

void
segment_seal(struct segment *segment)
{
	/* Claims fail from here on, also small ones that would still fit. */
	uint64_t at = atomic_fetch_add(&segment->claimed, segment->size);
	unsigned expected = 0;

	if (at <= segment->size)
		atomic_compare_exchange_strong(&segment->end, &expected, (unsigned)at);
}

/*
 * All of a segment that is full or sealed has been synced: nobody writes into it any more. It may wait long
 * for the flush of its tables, and needs no memory for that.
 */
static void
segment_drop_memory(struct segment *segment)
{
	if (segment->is_mapped || segment->memory == NULL ||
	    segment->synced != atomic_load(&segment->end))
		return;
	/* What was reserved for it and is not needed goes back. */
	if (segment->sections != NULL)
		(void)file_truncate(segment->file, segment->file_end, NULL);
	free(segment->memory);
	segment->memory = NULL;
}

int
segment_sync(struct segment *segment, struct error *err)
{
	uint32_t target = segment->sync_target;
	uint64_t file_end = segment->file_end;

	if (target <= segment->synced) {
		segment_drop_memory(segment);
		return 0;
	}
	if (segment->sections != NULL) {
		if (segment_sections_write(segment, target, err) != 0)
			return -1;
	} else if (!segment->is_mapped &&
	    file_pwrite(segment->file, segment->memory + segment->synced, target - segment->synced,
		segment->synced, err) != 0) {
		return -1;
	}
	if (file_sync(segment->file, err) != 0) {
		segment->file_end = file_end; /* the next sync writes these bytes again */
		return -1;
	}
	segment->synced = target;
	/* Only a hint for replay, so it may travel with the next sync. */
	segment_put_synced(segment->memory, segment->sections != NULL ? segment->file_end : target);
	if (segment->is_mapped)
		return 0;
	if (file_pwrite(segment->file, segment->memory, SEGMENT_HEADER_SIZE, 0, err) != 0)
		return -1;
	segment_drop_memory(segment);
	return 0;
}

int
segment_file_delete(struct env *env, const struct segment_file *file, struct error *err)
{
	return segment_unlink(env, file->path, file->is_archived, err);
}

/* ---- what lies in the directory at start ---------------------------------------------------- */

static int
segment_file_compare(const void *a, const void *b)
{
	const struct segment_file *left = a, *right = b;

	return left->id < right->id ? -1 : left->id > right->id;
}

bool
segment_parse_name(const char *name, uint64_t *id, bool *is_foreign)
{
	const char *at;
	char *end;

	if (strncmp(name, "CommitLog-", 10) != 0)
		return false;
	*is_foreign = strncmp(name, SEGMENT_PREFIX, strlen(SEGMENT_PREFIX)) != 0;
	at = strrchr(name, '-') + 1;
	if (*at < '0' || *at > '9')
		return false;
	*id = strtoull(at, &end, 10);
	return strcmp(end, SEGMENT_SUFFIX) == 0;
}

/*
 * Is `path` the mark of an archived segment? Names are listed in order, so `last` is its segment; a mark
 * without one is removed.
 */
static bool
segment_is_mark(struct env *env, const char *path, struct segment_file *last)
{
	size_t length = strlen(path), suffix = strlen(SEGMENT_ARCHIVED_SUFFIX);

	if (length < suffix || strcmp(path + length - suffix, SEGMENT_ARCHIVED_SUFFIX) != 0)
		return false;
	if (last != NULL && strlen(last->path) == length - suffix &&
	    memcmp(last->path, path, length - suffix) == 0)
		last->is_archived = true;
	else
		(void)files_unlink(env->files, path, NULL);
	return true;
}

int
segment_list(struct env *env, const char *directory, struct segment_file **out, size_t *count,
    struct error *err)
{
	struct file_list list;
	struct segment_file *files;
	size_t used = 0;

	if (files_list(env->files, directory, &list, err) != 0)
		return -1;
	files = xcalloc(list.count + 1, sizeof(*files));
	for (size_t i = 0; i < list.count; i++) {
		struct segment_file *file = &files[used];
		const char *name = list.entries[i].name;
		size_t length = strlen(name);
		struct file_stat stat;

		file->path = xasprintf("%s/%s", directory, name);
		if (length > 4 && strcmp(name + length - 4, ".tmp") == 0) {
			(void)files_unlink(env->files, file->path, NULL);
			free(file->path);
		} else if (segment_is_mark(env, file->path, used > 0 ? &files[used - 1] : NULL)) {
			free(file->path);
		} else if (!segment_parse_name(name, &file->id, &file->is_foreign)) {
			free(file->path);
		} else if (files_stat(env->files, file->path, &stat, err) != 0) {
			segment_list_free(files, used + 1);
			file_list_fini(&list);
			return -1;
		} else {
			file->size = stat.size;
			used++;
		}
	}
	file_list_fini(&list);
	qsort(files, used, sizeof(*files), segment_file_compare);
	*out = files;
	*count = used;
	return 0;
}

void
segment_list_free(struct segment_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(files[i].path);
	free(files);
}

/* ---- replay ---------------------------------------------------------------------------------- */

/* Bytes from `offset` on. What pads the last record may be cut off, and `offset` then lies behind the end. */
static size_t
segment_left(struct slice content, uint32_t offset)
{
	return offset < content.size ? content.size - offset : 0;
}

/* Is there the header of a record of this very segment at `offset`? */
static bool
segment_is_record(struct slice content, uint64_t id, uint32_t offset, uint32_t *length)
{
	size_t left = segment_left(content, offset);
	const uint8_t *at;
	uint8_t sealed[16];

	if (left < SEGMENT_RECORD_HEADER_SIZE)
		return false;
	at = content.data + offset;
	*length = load_u32(at);
	if (*length == 0 || *length > left - SEGMENT_RECORD_HEADER_SIZE)
		return false;
	store_u64(sealed, id);
	store_u32(sealed + 8, offset);
	store_u32(sealed + 12, *length);
	return load_u32(at + 4) == crc32_update(0, sealed, sizeof(sealed));
}

static int
segment_replay_records(const struct segment_file *file, struct slice content, uint64_t synced,
    bool ignore_damage, commitlog_replay_fn each, void *context,
    struct segment_replay_totals *totals, struct error *err)
{
	uint32_t offset = SEGMENT_HEADER_SIZE;

	while (segment_left(content, offset) >= SEGMENT_RECORD_HEADER_SIZE) {
		const uint8_t *at = content.data + offset;
		struct commitlog_position position;
		struct slice payload;
		uint32_t length;
		int rc;

		if (!segment_is_record(content, file->id, offset, &length)) {
			if (offset < synced && !ignore_damage)
				return error_set(err, ERROR_CORRUPT,
				    "%s: damaged at offset %" PRIu32
				    ", where a record should begin (all below offset %" PRIu64
				    " had been made durable). Restore the file, or set "
				    "commitlog_ignore_replay_errors to lose what is damaged",
				    file->path, offset, synced);
			if (load_u32(at) != 0 || offset < synced)
				totals->torn++;
			do {
				offset += SEGMENT_ALIGNMENT;
			} while (segment_left(content, offset) >= SEGMENT_RECORD_HEADER_SIZE &&
			    !segment_is_record(content, file->id, offset, &length));
			continue;
		}
		payload = slice_of(at + SEGMENT_RECORD_HEADER_SIZE, length);
		position.segment_id = (int64_t)file->id;
		position.position = (int32_t)(offset + segment_record_size(length));
		if (load_u32(at + 8) != crc32_update(0, payload.data, payload.size)) {
			if ((uint32_t)position.position <= synced && !ignore_damage)
				return error_set(err, ERROR_CORRUPT,
				    "%s: the record at offset %" PRIu32 " (%" PRIu32
				    " bytes) does not match its checksum. Restore the file, or "
				    "set commitlog_ignore_replay_errors to lose this one write",
				    file->path, offset, length);
			totals->torn++;
		} else {
			rc = each(context, payload, position, err);
			if (rc < 0)
				return -1;
			if (rc > 0)
				totals->taken++;
			else
				totals->not_needed++;
		}
		offset = (uint32_t)position.position;
	}
	return 0;
}

int
segment_is_emptied(struct env *env, const struct segment_file *file, bool *out, struct error *err)
{
	uint8_t header[SEGMENT_HEADER_SIZE];
	struct file *opened;
	size_t got;
	int rc;

	if (files_open(env->files, file->path, FILE_READ, &opened, err) != 0)
		return -1;
	rc = file_pread(opened, header, sizeof(header), 0, &got, err);
	file_close(opened);
	*out = rc == 0 && got == sizeof(header) &&
	    load_u32(header + SEGMENT_AT_EMPTIED) == segment_mark_of(file->id);
	return rc;
}

int
segment_replay(struct env *env, const struct segment_file *file, bool ignore_damage,
    commitlog_replay_fn each, void *context, struct segment_replay_totals *totals,
    struct error *err)
{
	struct buffer bytes_read, expanded;
	struct slice content;
	const uint8_t *bytes;
	uint64_t synced;
	bool is_sound, is_emptied, is_compressed;
	int rc = 0;

	if (file->is_foreign)
		return error_set(err, ERROR_CONFIG,
		    "%s was written by Apache Cassandra and cannot be replayed here: run 'nodetool "
		    "drain' on that server before its data is handed over, then remove the file",
		    file->path);
	if (segment_is_emptied(env, file, &is_emptied, err) != 0)
		return -1;
	if (is_emptied)
		return 0;
	buffer_init(&bytes_read);
	buffer_init(&expanded);
	rc = files_read_all(env->files, file->path, UINT32_MAX, &bytes_read, err);
	if (rc != 0)
		goto done;
	content = buffer_slice(&bytes_read);
	bytes = content.data;
	/* A segment gets its name when its header is durable: a shorter one was cut. */
	if (content.size < SEGMENT_HEADER_SIZE) {
		if (!ignore_damage)
			rc = error_set(err, ERROR_CORRUPT,
			    "%s: cut to %zu bytes, less than its header. Restore the file, or set "
			    "commitlog_ignore_replay_errors to go on without it",
			    file->path, content.size);
		goto done;
	}
	is_compressed =
	    memcmp(bytes, segment_compressed_magic, sizeof(segment_compressed_magic)) == 0;
	is_sound = (is_compressed || memcmp(bytes, segment_magic, sizeof(segment_magic)) == 0) &&
	    load_u32(bytes + SEGMENT_AT_CRC) == crc32_update(0, bytes, SEGMENT_AT_CRC);
	if (!is_sound) {
		if (!ignore_damage) {
			rc = error_set(err, ERROR_CORRUPT,
			    "%s: the header of this commit log segment is damaged. Restore the "
			    "file, or set commitlog_ignore_replay_errors to go on without it",
			    file->path);
			goto done;
		}
		log_warn("%s: damaged header, records are looked for all the same", file->path);
	}
	if (is_sound && load_u64(bytes + SEGMENT_AT_ID) != file->id) {
		if (!ignore_damage) {
			rc = error_set(err, ERROR_CORRUPT,
			    "%s: the header is that of segment %" PRIu64
			    ": the file has a wrong name",
			    file->path, load_u64(bytes + SEGMENT_AT_ID));
		}
		goto done;
	}
	synced = load_u64(bytes + SEGMENT_AT_SYNCED);
	if (load_u32(bytes + SEGMENT_AT_SYNCED_CRC) !=
	    crc32_update(0, bytes + SEGMENT_AT_SYNCED, 8))
		synced = SEGMENT_HEADER_SIZE; /* torn while it was written: no claim about damage */
	if (synced > content.size && !ignore_damage) {
		rc = error_set(err, ERROR_CORRUPT,
		    "%s: the file ends at offset %zu, what was once durable reaches to %" PRIu64
		    ". Restore the file, or set commitlog_ignore_replay_errors to lose those "
		    "writes",
		    file->path, content.size, synced);
		goto done;
	}
	if (synced > content.size)
		synced = content.size;
	if (is_compressed) {
		rc = segment_sections_expand(
		    file, content, &synced, ignore_damage, &expanded, totals, err);
		if (rc != 0)
			goto done;
		content = buffer_slice(&expanded);
	}
	rc = segment_replay_records(
	    file, content, synced, ignore_damage, each, context, totals, err);
done:
	buffer_fini(&bytes_read);
	buffer_fini(&expanded);
	return rc;
}
