/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMMITLOG_SEGMENT_H
#define HELENUS_STORAGE_COMMITLOG_SEGMENT_H

/*
 * One file of the commit log (layout in commitlog.h). Claiming and writing are safe from many threads
 * inside the write order; everything else belongs to the log, which serialises.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/env.h"
#include "storage/commitlog.h"

enum {
	SEGMENT_HEADER_SIZE = 40,
	SEGMENT_RECORD_HEADER_SIZE = 12,
	SEGMENT_ALIGNMENT = 8,
	SEGMENT_SLOTS_SPARE = 256, /* room for tables that are created while a segment is in use */
	SEGMENT_POPULATE_BYTES = 256 << 10,
};

/* What one table has in a segment, as offsets; dirty while dirty > clean. */
struct segment_slot {
	atomic_uint dirty; /* end of its last record, 0: none */
	atomic_uint clean; /* flushed up to here */
};

struct segment {
	struct segment *next;
	struct env *env;
	uint64_t id;
	char *path; /* owned */
	struct file *file; /* owned */
	uint32_t size;
	uint8_t *memory; /* the mapping, or a heap copy until all is synced; owned */
	bool is_mapped;
	uint32_t slot_count;
	struct segment_slot *slots; /* owned */

	/* Next free offset; passes `size` when a record did not fit. */
	_Alignas(64) atomic_ullong claimed;
	atomic_uint end; /* offset behind the last record once sealed, else 0 */
	atomic_uint populated; /* pages below are mapped in already */
	uint32_t synced; /* durable below; the log's sync lock */
	uint32_t sync_target;
	struct segment_sections *sections; /* borrowed of the log; NULL: not compressed */
	uint64_t
	    file_end; /* of a compressed segment: where the next section goes; the log's sync lock */
	uint64_t counted; /* bytes of it in the log's total; guarded by segments_lock */
	bool is_archived; /* guarded by the log's segments_lock */
};

/* A segment found at start. */
struct segment_file {
	uint64_t id;
	uint64_t size;
	char *path; /* owned */
	bool is_foreign; /* CommitLog-<version>-<id>.log of Cassandra */
	bool is_archived; /* there is a mark that says so */
	bool is_restored; /* restore_command brought it */
};

struct segment_replay_totals {
	uint64_t taken, not_needed, torn;
};

/* Bytes that a record with `payload` bytes takes in the file. */
static inline uint32_t
segment_record_size(size_t payload)
{
	return (uint32_t)((payload + SEGMENT_RECORD_HEADER_SIZE + SEGMENT_ALIGNMENT - 1) &
	    ~(size_t)(SEGMENT_ALIGNMENT - 1));
}

/* How segments are compressed: working memory that one sync at a time uses (commitlog_sections.c). */
struct segment_sections;
/* By class name, level for zstd (0: its default). NULL with ERROR_CONFIG: there is no such compressor. */
struct segment_sections *
segment_sections_new(const char *class_name, int32_t level, struct error *err);
void segment_sections_free(struct segment_sections *sections); /* accepts NULL */
/* Append [segment->synced, target) as a section; not durable yet. */
int segment_sections_write(struct segment *segment, uint32_t target, struct error *err);
/*
 * Put the sections of a compressed file together as the segment was before; `out` gets the header first. Sections behind
 * `*synced` (an offset of the file) that are not sound are a torn tail, before it ERROR_CORRUPT unless ignore_damage. *synced becomes
 * an offset of `out`.
 */
int segment_sections_expand(const struct segment_file *file, struct slice content, uint64_t *synced,
    bool ignore_damage, struct buffer *out, struct segment_replay_totals *totals,
    struct error *err);

/*
 * Make the file (temporary name, preallocated, header, fsync, rename, fsync of the directory). Mapped, what is
 * written survives the process at once; else a sync writes it, which is cheaper where all wait for it anyway.
 */
int segment_create(struct env *env, const char *directory, uint64_t id, uint32_t size,
    uint32_t slot_count, bool wants_map, struct segment_sections *sections, struct segment **out,
    struct error *err);
/* Say in the header that nothing in it counts any more; it is kept for segment_recycle(). */
void segment_empty(struct segment *segment);
/* Give an emptied segment a new id and name; takes `old` over, also on failure. */
int segment_recycle(struct segment *old, const char *directory, uint64_t id, uint32_t slot_count,
    struct segment **out, struct error *err);
/* Close and unlink; err may be NULL. Accepts NULL. */
int segment_delete(struct segment *segment, struct error *err);
/* Close, leave the file for the next start. */
void segment_abandon(struct segment *segment);

/* Claim space for a payload. False when it does not fit (the segment is full from then on). */
bool segment_claim(struct segment *segment, size_t payload, uint32_t *offset);
/* Write the record into claimed space. */
void segment_write(struct segment *segment, uint32_t offset, struct slice payload);
void segment_mark_dirty(struct segment *segment, uint32_t slot, uint32_t offset);
void segment_mark_clean(struct segment *segment, uint32_t slot, uint32_t upto);
bool segment_is_dirty(const struct segment *segment, uint32_t slot);
bool segment_is_clean(const struct segment *segment);
/* Offset behind the last claimed record. */
uint32_t segment_claimed(const struct segment *segment);
/* No more claims are possible: note the end. */
void segment_seal(struct segment *segment);
/* Make everything below sync_target durable and note it in the header. */
int segment_sync(struct segment *segment, struct error *err);

/* Leave a mark beside it (<name>.archived): it need not be archived again after a restart. */
int segment_note_archived(struct segment *segment, struct error *err);

/* Segments in `directory`, ascending by id; removes leftovers of unfinished creation. */
int segment_list(struct env *env, const char *directory, struct segment_file **out, size_t *count,
    struct error *err);
void segment_list_free(struct segment_file *files, size_t count);
/* "CommitLog-<version>-<id>.log": is it one, and is it ours? */
bool segment_parse_name(const char *name, uint64_t *id, bool *is_foreign);
/*
 * Was it emptied for reuse, or on its way to its next name? Reads the header alone: the clean stop of a node leaves
 * such a segment, and its next start should not take longer for it.
 */
int
segment_is_emptied(struct env *env, const struct segment_file *file, bool *out, struct error *err);
/* Unlink it, and its mark. */
int segment_file_delete(struct env *env, const struct segment_file *file, struct error *err);

/* Read one file and hand its sound records over. */
int segment_replay(struct env *env, const struct segment_file *file, bool ignore_damage,
    commitlog_replay_fn each, void *context, struct segment_replay_totals *totals,
    struct error *err);

#endif
