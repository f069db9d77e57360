/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SSTABLE_INTERNAL_H
#define HELENUS_STORAGE_SSTABLE_INTERNAL_H

/*
 * What the sstable_*.c files share; nobody else includes it.
 *
 *   sstable.c           names, open and close, lazy loading, what is known of a table
 *   sstable_file.c      a file as a sequence of verified chunks, and a cursor over it
 *   sstable_index.c     entries of Index.db, promoted index
 *   sstable_read.c      one partition, forward and reversed, cut to slices
 *   sstable_scan.c      many partitions
 *   sstable_writer.c    all components
 *   sstable_verify.c    checks
 *
 * Lazy loading: who needs a part loads it without any lock and publishes it with one compare and
 * swap; a second thread that did the same meanwhile throws its copy away.
 */
#include <stdatomic.h>
#include "base/env.h"
#include "storage/bloom.h"
#include "storage/chunk_cache.h"
#include "storage/compression_info.h"
#include "storage/index_summary.h"
#include "storage/key_cache.h"
#include "storage/sstable.h"
#include "storage/statistics.h"

/* ---- files --------------------------------------------------------------------------------------- */

enum {
	SSTABLE_INDEX_CHUNK = 16 * 1024, /* Index.db is cached in these */
	SSTABLE_CRC_CHUNK = 64 * 1024, /* uncompressed Data.db: what one CRC of CRC.db covers */
	SSTABLE_READ_AHEAD = 256 * 1024, /* one read of a sequential scan */
	SSTABLE_COMPONENT_BYTES_MAX = 1 << 30, /* of a component that is read whole */
};

/* Data.db or Index.db, open for reading. Immutable. */
struct sstable_file {
	struct file *file; /* owned */
	struct chunk_cache *cache; /* borrowed, may be NULL */
	struct sstable_watch *watch; /* borrowed, may be NULL */
	uint64_t id; /* in the cache */
	uint64_t length; /* bytes before compression */
	uint32_t chunk_length;
	double crc_check_chance;
	const struct compression_info *compression; /* borrowed; NULL: not compressed */
	const uint32_t *crcs; /* borrowed; NULL: none */
	atomic_uint checks; /* relaxed; spreads the chance over the reads */
};

/* A chunk that rows point into, kept until the cursor is closed. */
struct sstable_pin {
	struct sstable_pin *next;
	struct chunk *chunk;
};

enum { SSTABLE_RECENT = 4 };

/*
 * Reads a file at any position. In keeping mode chunks whose bytes were lent stay pinned until close;
 * in transient mode until the second step after (sstable_cursor_step()). One thread.
 */
struct sstable_cursor {
	struct sstable_file *file;
	struct arena *arena; /* of pins, and of views that cross chunks (but see peek) */
	struct chunk *chunk; /* the current one, a reference; NULL at first */
	struct sstable_pin *pins;
	bool is_sequential; /* bypass the cache, read ahead */
	bool is_transient;
	bool is_lent; /* somebody points into `chunk` */
	uint64_t step, lent_step;
	struct {
		struct chunk *chunk;
		uint64_t step;
	} recent[SSTABLE_RECENT]; /* transient mode: lent, not current any more */
	uint8_t *ahead; /* owned; stored bytes from ahead_start */
	uint64_t ahead_start;
	size_t ahead_size;
	size_t ahead_capacity;
};

void sstable_cursor_init(struct sstable_cursor *cursor, struct sstable_file *file,
    struct arena *arena, bool is_sequential, bool is_transient);
/* Everything that was lent is gone. */
void sstable_cursor_fini(struct sstable_cursor *cursor);
/*
 * Bytes from `position` on: at least `need` of them, or up to the end of the file. They lie in the
 * current chunk, or were put together in `arena`. Valid until the next peek unless lent.
 */
int sstable_cursor_peek(struct sstable_cursor *cursor, struct arena *arena, uint64_t position,
    size_t need, struct slice *out, struct error *err);
/* The caller hands out slices of the last view. */
static inline void
sstable_cursor_lend(struct sstable_cursor *cursor)
{
	cursor->is_lent = true;
	cursor->lent_step = cursor->step;
}
/* Transient mode: a next() begins. */
void sstable_cursor_step(struct sstable_cursor *cursor);

int sstable_file_open(struct sstable_file *file, const struct sstable_context *context,
    const char *path, struct error *err);
void sstable_file_close(struct sstable_file *file);

/* Tell the watch, unless it is NULL, of a failure that is about the disk. Returns -1. */
int sstable_failed(struct sstable_watch *watch, const char *path, const struct error *err);
/* ERROR_CORRUPT "<path>: offset N: <text>". */
int sstable_corrupt(const struct sstable_file *file, uint64_t offset, struct error *err,
    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same in front of an error that is there; turns its code into ERROR_CORRUPT unless it is about
 * memory or I/O. Returns -1. */
int sstable_corrupt_prefix(const struct sstable_file *file, uint64_t offset, struct error *err);

/* ---- the table ------------------------------------------------------------------------------------ */

struct sstable_meta {
	struct arena arena; /* owned */
	struct statistics statistics;
	struct sstable_repair repair; /* as loaded */
};

/* What reads need. */
struct sstable_parts {
	struct sstable_file data, index;
	struct compression_info compression;
	uint32_t *crcs; /* owned */
	struct bloom bloom;
	bool has_filter;
	struct index_summary summary;
};

/* The codec of this table as one version of the table's metadata sees it. */
struct sstable_binding {
	struct sstable_binding *next;
	struct table_metadata *table; /* a reference */
	struct arena arena; /* owned */
	struct row_codec codec;
	struct slice row_position; /* of the only row, where the table has no clustering columns */
	/* Where the table's clusterings begin and end; null: not known. */
	struct slice min_position, max_position;
};

/* What sstable_set_repaired() said; older ones may still be looked at and live as long as the table. */
struct sstable_change {
	struct sstable_repair repair;
	struct sstable_change *older;
};

struct sstable {
	atomic_uint refs;
	struct sstable_context context;
	struct sstable_descriptor descriptor; /* directory owned */
	struct table_metadata *table; /* a reference; as at open */
	uint64_t data_size, total_size, created_ms;
	uint64_t data_id, index_id; /* in the chunk cache */

	/* Published once: store release, load acquire. */
	_Atomic(struct sstable_meta *) meta;
	_Atomic(struct sstable_parts *) parts;
	_Atomic(struct sstable_binding *) bindings; /* newest first; never removed */

	/* Changed by sstable_set_*(); a reader may see the old one a moment longer. */
	atomic_int level; /* relaxed */
	_Atomic(struct sstable_change *)
	    change; /* newest first, owned; NULL: as in meta; store release, load acquire */

	atomic_bool is_obsolete;
	void (*on_deleted)(void *argument);
	void *on_deleted_argument;

	/* Relaxed counters, one of them touched by a look-up; positives that were true are reads. */
	atomic_ullong filter_negatives, filter_false, reads;
};

/* Load and get; NULL with err. */
const struct sstable_meta *sstable_get_meta(struct sstable *sstable, struct error *err);
struct sstable_parts *sstable_get_parts(struct sstable *sstable, struct error *err);
const struct sstable_binding *
sstable_bind(struct sstable *sstable, const struct table_metadata *table, struct error *err);

/* ---- Index.db ---------------------------------------------------------------------------------------- */

/*
 * The entry at *position, which is advanced behind it. *key is valid until the cursor moves. 1, 0 at the
 * end of the file, -1.
 */
int sstable_index_next(struct sstable_cursor *cursor, struct arena *arena, uint64_t *position,
    struct slice *key, struct index_entry *entry, struct error *err);
/* 1 and *entry, 0: the key is not in the table, -1. Asks neither filter nor key cache. */
int sstable_index_find(struct sstable *sstable, struct sstable_parts *parts, int64_t token,
    struct slice key, struct arena *arena, struct index_entry *entry, uint64_t *after,
    struct error *err);

/* Index.db has ended behind a partition of token `seen` (INT64_MIN: none): 0 when Summary.db knows no later one, else
 * ERROR_CORRUPT. A file that is cut between two entries shows in no other way. */
int sstable_index_check_end(struct sstable_parts *parts, int64_t seen, struct error *err);
/* Position in Index.db of the first entry that is not before the start of the range. */
int sstable_index_seek(struct sstable *sstable, struct sstable_parts *parts,
    const struct token_range *range, struct arena *arena, uint64_t *position, struct error *err);
/* Is the partition before the range's start (-1), inside (0), beyond its end (1)? NULL: inside. */
int sstable_range_compare(const struct token_range *range, int64_t token, struct slice key);

/* IndexInfo: one block of a promoted index. */
struct index_block {
	struct slice first, last; /* positions; in the arena */
	uint64_t offset; /* from the start of the partition */
	uint64_t width;
	struct deletion end_open; /* open at the end of the block; live: none */
};
/* IndexInfo.WIDTH_BASE: widths are stored as the difference to this. */
enum { INDEX_BLOCK_WIDTH_BASE = 64 * 1024 };

int sstable_index_block(struct sstable_cursor *index, const struct table_metadata *table,
    const struct index_entry *entry, uint32_t i, struct arena *arena, struct index_block *out,
    struct error *err);

/* ---- partitions ------------------------------------------------------------------------------------- */

/* The outline of one unfiltered in Data.db: where it ends, without its cells. */
struct sstable_frame {
	enum unfiltered_kind kind;
	enum bound_kind bound; /* BOUND_CLUSTERING for a row */
	uint32_t count;
	struct slice *values; /* room for the table's clustering columns; point into the view */
	uint64_t total; /* bytes */
	struct slice view; /* all of it */
};
/* The frame at `position`. The view lies in the cursor's chunk or in `arena`. */
int sstable_frame_read(struct sstable_cursor *cursor, const struct table_metadata *table,
    uint64_t position, bool is_static, struct arena *arena, struct sstable_frame *frame,
    struct error *err);

struct sstable_item {
	uint64_t at;
	uint64_t size;
	struct slice position;
	enum unfiltered_kind kind;
};

/* One partition being read. Lives in an arena, or in a transient scan. */
struct sstable_iterator {
	struct unfiltered_iterator base;
	struct sstable *sstable; /* borrowed: the reader of the command holds it */
	const struct sstable_binding *binding;
	struct arena *arena; /* for what lives as long as the iterator */
	struct arena *row_arenas[2]; /* for rows, in turns; both `arena` unless transient */
	struct sstable_cursor *data; /* borrowed from a scan, or own_data */
	bool has_index_cursor;
	const uint64_t *wanted_regulars, *wanted_statics;
	bool is_raw;
	struct index_entry entry; /* block_count 0: no promoted index, or not looked up */

	const struct clustering_slice *slices; /* clipped to the paging position */
	uint32_t slice_count;
	uint32_t slice; /* how many are done */
	bool is_inside; /* the start of the current slice has been dealt with */
	bool has_nothing; /* no slice is left after clipping */

	uint64_t start; /* of the partition */
	uint64_t rows; /* of the first unfiltered */
	uint64_t position; /* forward: of the next unfiltered */
	uint64_t after; /* behind the partition, once is_finished */
	bool is_finished; /* the end of the partition was seen */
	struct deletion open; /* in effect between what was consumed and what comes */
	uint64_t calls;

	/* What comes next, forward: looked at, not consumed. */
	bool has_frame;
	struct sstable_frame frame;
	struct slice frame_position;

	/* Reversed: the items of the current block, consumed from the end. */
	struct sstable_item *items;
	size_t item_count, item_room;
	uint32_t block; /* the current one; those before are still to come */
	bool has_block;

	/* Not set unless they are used: a scan has neither, and opens one of us a partition. */
	struct sstable_cursor own_data; /* when `data` points to it */
	struct sstable_cursor index; /* for the promoted index; when has_index_cursor */
};

struct sstable_open_options {
	const struct clustering_filter *clustering; /* NULL: everything */
	struct slice after_position;
	const uint64_t *wanted_regulars, *wanted_statics;
	bool with_static;
	bool is_raw; /* only with a codec that is carried, and everything wanted */
};

/*
 * Begin to read the partition at entry->data_position. `key` null: it is taken from Data.db (copied);
 * else it is checked against it when the header is read. A shared cursor stays the caller's.
 */
int sstable_iterator_open(struct sstable_iterator *iterator, struct sstable *sstable,
    const struct sstable_binding *binding, struct sstable_cursor *data, struct slice key,
    int64_t token, const struct index_entry *entry, const struct sstable_open_options *options,
    struct arena *arena, struct error *err);
/* Go on to the end of the partition: iterator->after is set. */
int sstable_iterator_skip(struct sstable_iterator *iterator, struct error *err);

#endif
