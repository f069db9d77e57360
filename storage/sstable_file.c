/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"
#include "storage/compress.h"
#include "storage/sstable_internal.h"

int
sstable_failed(struct sstable_watch *watch, const char *path, const struct error *err)
{
	if (watch != NULL && err != NULL && (err->code == ERROR_IO || err->code == ERROR_CORRUPT))
		watch->failed(watch, path, err);
	return -1;
}

int
sstable_corrupt(
    const struct sstable_file *file, uint64_t offset, struct error *err, const char *format, ...)
{
	char text[ERROR_TEXT_MAX / 2];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	error_set(err, ERROR_CORRUPT, "%s: offset %llu: %s", file_path(file->file),
	    (unsigned long long)offset, text);
	return sstable_failed(file->watch, file_path(file->file), err);
}

int
sstable_corrupt_prefix(const struct sstable_file *file, uint64_t offset, struct error *err)
{
	if (err == NULL)
		return -1;
	if (err->code != ERROR_NO_MEMORY && err->code != ERROR_IO && err->code != ERROR_NO_SPACE)
		err->code = ERROR_CORRUPT;
	error_prefix(err, "%s: offset %llu", file_path(file->file), (unsigned long long)offset);
	return sstable_failed(file->watch, file_path(file->file), err);
}

int
sstable_file_open(struct sstable_file *file, const struct sstable_context *context,
    const char *path, struct error *err)
{
	*file = (struct sstable_file){
	    .cache = context->chunks, .watch = context->watch, .crc_check_chance = 1};
	if (files_open(context->env->files, path, FILE_READ, &file->file, err) != 0)
		return -1;
	return file_size(file->file, &file->length, err);
}

void
sstable_file_close(struct sstable_file *file)
{
	file_close(file->file);
	file->file = NULL;
}

/* crc_check_chance: every n-th check in the mean; which ones need not be unpredictable. */
static bool
sstable_file_checks_crc(struct sstable_file *file)
{
	uint32_t turn;

	if (file->crc_check_chance >= 1)
		return true;
	turn = atomic_fetch_add_explicit(&file->checks, 1, memory_order_relaxed);
	return (double)(turn * 2654435761u) < file->crc_check_chance * 4294967296.0;
}

/* ---- stored chunks ---------------------------------------------------------------------------------- */

/* Stored bytes [offset, offset + size): out of the read-ahead, which is refilled from there. */
static int
sstable_cursor_ahead(struct sstable_cursor *cursor, uint64_t offset, size_t size,
    const uint8_t **out, struct error *err)
{
	if (offset < cursor->ahead_start ||
	    offset + size > cursor->ahead_start + cursor->ahead_size) {
		size_t capacity = size > SSTABLE_READ_AHEAD ? size : SSTABLE_READ_AHEAD;

		if (cursor->ahead_capacity < capacity) {
			uint8_t *ahead = realloc(cursor->ahead, capacity);

			if (ahead == NULL)
				return error_set(err, ERROR_NO_MEMORY, "no memory to read ahead");
			cursor->ahead = ahead;
			cursor->ahead_capacity = capacity;
		}
		cursor->ahead_size = 0;
		cursor->ahead_start = offset;
		if (file_pread(cursor->file->file, cursor->ahead, cursor->ahead_capacity, offset,
			&cursor->ahead_size, err) != 0)
			return sstable_failed(
			    cursor->file->watch, file_path(cursor->file->file), err);
		if (cursor->ahead_size < size)
			return sstable_corrupt(cursor->file, offset, err,
			    "the file ends %zu bytes early", size - cursor->ahead_size);
	}
	*out = cursor->ahead + (offset - cursor->ahead_start);
	return 0;
}

static int
sstable_chunk_unpack(struct sstable_file *file, uint32_t i, const uint8_t *stored,
    size_t stored_size, struct chunk *chunk, struct error *err)
{
	const struct compression_info *info = file->compression;

	if (sstable_file_checks_crc(file) &&
	    crc32_update(0, stored, stored_size) != load_u32(stored + stored_size))
		return sstable_corrupt(
		    file, info->offsets[i], err, "bad CRC of the chunk of %zu bytes", stored_size);
	if (stored_size >= info->max_compressed_length) {
		if (stored_size < chunk->size)
			return sstable_corrupt(file, info->offsets[i], err, "chunk is too short");
		memcpy(chunk->data, stored, chunk->size);
		return 0;
	}
	if (decompress_chunk(
		info->kind, slice_of(stored, stored_size), chunk->data, chunk->size, err) != 0)
		return sstable_corrupt_prefix(file, info->offsets[i], err);
	return 0;
}

enum { SSTABLE_CHUNK_ON_STACK = 20 * 1024 };

static int
sstable_chunk_read_compressed(
    struct sstable_cursor *cursor, uint32_t i, struct chunk *chunk, struct error *err)
{
	struct sstable_file *file = cursor->file;
	const struct compression_info *info = file->compression;
	uint64_t offset = info->offsets[i];
	uint64_t size = info->offsets[i + 1] - offset;
	size_t bound = compress_bound(info->kind, info->chunk_length);
	uint8_t few[SSTABLE_CHUNK_ON_STACK];
	uint8_t *many = NULL;
	const uint8_t *stored = few;
	int rc;

	if (info->max_compressed_length < INT32_MAX && info->max_compressed_length > bound)
		bound = info->max_compressed_length;
	if (size > bound + COMPRESSION_CRC_SIZE)
		return sstable_corrupt(
		    file, offset, err, "chunk of %llu bytes is too long", (unsigned long long)size);
	if (cursor->is_sequential) {
		if (sstable_cursor_ahead(cursor, offset, (size_t)size, &stored, err) != 0)
			return -1;
	} else {
		if (size > sizeof(few)) {
			many = malloc((size_t)size);
			if (many == NULL)
				return error_set(err, ERROR_NO_MEMORY, "no memory for a chunk");
			stored = many;
		}
		if (file_pread_exact(
			file->file, many != NULL ? many : few, (size_t)size, offset, err) != 0) {
			free(many);
			return sstable_failed(file->watch, file_path(file->file), err);
		}
	}
	rc = sstable_chunk_unpack(file, i, stored, (size_t)size - COMPRESSION_CRC_SIZE, chunk, err);
	free(many);
	return rc;
}

static int
sstable_chunk_read_plain(
    struct sstable_cursor *cursor, uint32_t i, struct chunk *chunk, struct error *err)
{
	struct sstable_file *file = cursor->file;

	if (file_pread_exact(file->file, chunk->data, chunk->size, chunk->offset, err) != 0)
		return sstable_failed(file->watch, file_path(file->file), err);
	if (file->crcs != NULL && sstable_file_checks_crc(file) &&
	    crc32_update(0, chunk->data, chunk->size) != file->crcs[i])
		return sstable_corrupt(
		    file, chunk->offset, err, "bad CRC of %u bytes (by CRC.db)", chunk->size);
	return 0;
}

static int
sstable_chunk_get(
    struct sstable_cursor *cursor, uint64_t position, struct chunk **out, struct error *err)
{
	struct sstable_file *file = cursor->file;
	uint32_t i = (uint32_t)(position / file->chunk_length);
	uint64_t offset = (uint64_t)i * file->chunk_length;
	uint64_t left = file->length - offset;
	bool is_cached = file->cache != NULL && !cursor->is_sequential;
	struct chunk *chunk;
	int rc;

	if (is_cached) {
		*out = chunk_cache_get(file->cache, file->id, offset);
		if (*out != NULL)
			return 0;
	}
	chunk = chunk_new(
	    file->id, offset, left < file->chunk_length ? (uint32_t)left : file->chunk_length);
	if (chunk == NULL)
		return error_set(
		    err, ERROR_NO_MEMORY, "no memory for a chunk of %u bytes", file->chunk_length);
	rc = file->compression != NULL ? sstable_chunk_read_compressed(cursor, i, chunk, err)
				       : sstable_chunk_read_plain(cursor, i, chunk, err);
	if (rc != 0) {
		chunk_unref(chunk);
		return -1;
	}
	*out = is_cached ? chunk_cache_put(file->cache, chunk) : chunk;
	return 0;
}

/* ---- the cursor ---------------------------------------------------------------------------------------- */

void
sstable_cursor_init(struct sstable_cursor *cursor, struct sstable_file *file, struct arena *arena,
    bool is_sequential, bool is_transient)
{
	*cursor = (struct sstable_cursor){
	    .file = file,
	    .arena = arena,
	    .is_sequential = is_sequential,
	    .is_transient = is_transient,
	};
}

void
sstable_cursor_fini(struct sstable_cursor *cursor)
{
	for (struct sstable_pin *pin = cursor->pins; pin != NULL; pin = pin->next)
		chunk_unref(pin->chunk);
	cursor->pins = NULL;
	for (size_t i = 0; i < SSTABLE_RECENT; i++) {
		chunk_unref(cursor->recent[i].chunk);
		cursor->recent[i].chunk = NULL;
	}
	chunk_unref(cursor->chunk);
	cursor->chunk = NULL;
	free(cursor->ahead);
	cursor->ahead = NULL;
}

void
sstable_cursor_step(struct sstable_cursor *cursor)
{
	cursor->step++;
	for (size_t i = 0; i < SSTABLE_RECENT; i++) {
		if (cursor->recent[i].chunk != NULL && cursor->recent[i].step + 2 <= cursor->step) {
			chunk_unref(cursor->recent[i].chunk);
			cursor->recent[i].chunk = NULL;
		}
	}
}

/* Leave the current chunk: keep it for those who point into it. */
static int
sstable_cursor_leave(struct sstable_cursor *cursor, struct error *err)
{
	struct sstable_pin *pin;

	if (cursor->chunk == NULL)
		return 0;
	if (!cursor->is_lent) {
		chunk_unref(cursor->chunk);
		cursor->chunk = NULL;
		return 0;
	}
	if (cursor->is_transient) {
		/* At most one chunk is lent in a step, and two steps count. */
		for (size_t i = 0; i < SSTABLE_RECENT; i++) {
			if (cursor->recent[i].chunk == NULL) {
				cursor->recent[i].chunk = cursor->chunk;
				cursor->recent[i].step = cursor->lent_step;
				cursor->chunk = NULL;
				cursor->is_lent = false;
				return 0;
			}
		}
	}
	pin = arena_alloc(cursor->arena, sizeof(*pin));
	if (pin == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to pin a chunk");
	pin->chunk = cursor->chunk;
	pin->next = cursor->pins;
	cursor->pins = pin;
	cursor->chunk = NULL;
	cursor->is_lent = false;
	return 0;
}

static int
sstable_cursor_move(struct sstable_cursor *cursor, uint64_t position, struct error *err)
{
	if (cursor->chunk != NULL && position >= cursor->chunk->offset &&
	    position - cursor->chunk->offset < cursor->chunk->size)
		return 0;
	if (sstable_cursor_leave(cursor, err) != 0)
		return -1;
	return sstable_chunk_get(cursor, position, &cursor->chunk, err);
}

static int
sstable_cursor_assemble(struct sstable_cursor *cursor, struct arena *arena, uint64_t position,
    size_t need, struct slice *out, struct error *err)
{
	uint8_t *bytes = arena_alloc_bytes(arena, need);
	size_t done = 0;

	if (bytes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %zu bytes of a row", need);
	while (done < need) {
		size_t from, size;

		if (sstable_cursor_move(cursor, position + done, err) != 0)
			return -1;
		assert(cursor->chunk != NULL);
		from = (size_t)(position + done - cursor->chunk->offset);
		size = cursor->chunk->size - from;
		if (size > need - done)
			size = need - done;
		memcpy(bytes + done, cursor->chunk->data + from, size);
		done += size;
	}
	*out = slice_of(bytes, need);
	return 0;
}

int
sstable_cursor_peek(struct sstable_cursor *cursor, struct arena *arena, uint64_t position,
    size_t need, struct slice *out, struct error *err)
{
	const struct chunk *chunk = cursor->chunk;
	uint64_t left;
	size_t from;

	/* The usual case: on in the current chunk. Before it `from` wraps around. */
	if (chunk != NULL) {
		from = (size_t)(position - chunk->offset);
		if (from < chunk->size && chunk->size - from >= need) {
			*out = slice_of(chunk->data + from, chunk->size - from);
			return 0;
		}
	}
	if (position >= cursor->file->length) {
		*out = slice_empty;
		return 0;
	}
	if (sstable_cursor_move(cursor, position, err) != 0)
		return -1;
	assert(cursor->chunk != NULL);
	from = (size_t)(position - cursor->chunk->offset);
	*out = slice_of(cursor->chunk->data + from, cursor->chunk->size - from);
	left = cursor->file->length - position;
	if (need > left)
		need = (size_t)left;
	if (out->size >= need)
		return 0;
	return sstable_cursor_assemble(cursor, arena, position, need, out, err);
}
