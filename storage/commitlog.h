/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMMITLOG_H
#define HELENUS_STORAGE_COMMITLOG_H

/*
 * The commit log: what makes an acknowledged write survive. Segments of a fixed size are mapped; a
 * writer claims space with one atomic add and copies its record, and the sync thread makes the mapped
 * pages durable (periodic, batch, group: Cassandra's commitlog_sync). Since the pages belong to the
 * kernel as soon as they are written, the death of the process alone loses nothing in any mode.
 *
 * File CommitLog-h1-<id>.log, integers big-endian:
 *     0  8  magic "HELENUS1"
 *     8  8  segment id (milliseconds at creation, always rising)
 *    16  4  size of the file
 *    20  4  CRC32 of bytes 0..19
 *    24  8  synced: everything below this offset was made durable (a hint for replay: damage
 *           below it is damage, above it is a torn tail), followed by 4 bytes CRC32 of it
 *    36  4  CRC32 of the id once nothing in the segment counts any more
 *    40     records, each aligned to 8 bytes:
 *           0 4 length of the payload
 *           4 4 CRC32 of (segment id, offset, length)
 *           8 4 CRC32 of the payload
 *          12   payload: an encoded mutation
 * With commitlog_compression the magic is "HELENUSZ", and behind the header stand sections, one for each sync of the segment:
 *           0 4 bytes that are stored
 *           4 4 bytes before compression, 8 4 the offset that they have in a segment that is not compressed
 *          12 4 the compressor (enum compressor; 0: stored as they are, where compressing saves nothing)
 *          16 4 CRC32 of (segment id, offset in the file as 8 bytes, the 16 bytes before)
 *          20 4 CRC32 of what is stored
 *          24   the stored bytes
 * Then `synced` counts bytes of the file; positions are those of the segment before compression. Such a segment is in
 * memory until it is synced, so in periodic mode the death of the process loses what was written since the last sync,
 * as with Cassandra.
 *
 * Space that was claimed but never written (the process died in between) is skipped: the reader
 * looks for the next header whose checksum knows its own segment and offset.
 *
 * Which segments may go: each remembers, per table, the highest position it holds; a flush tells up to
 * where a table is clean (commitlog_discard). A segment in which every table is clean is
 * deleted, or kept for reuse; with archiving (commitlog_archiver.c) it is deleted once it is archived.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/env.h"
#include "storage/commitlog_position.h"
#include "storage/op_order.h"
#include "storage/store.h"

struct commitlog;

/*
 * Open for writing in `directory`: lists the segments that are there (for replay) and prepares a new
 * first segment. order: the store's write order, held by callers of commitlog_add(); it outlives the log.
 */
int commitlog_open(const struct store_options *options, struct env *env, struct op_order *order,
    struct commitlog **out, struct error *err);
/* Sync everything, stop the threads, close. Segments without dirty tables are deleted. */
void commitlog_close(struct commitlog *log);

/*
 * Append one record; the caller is inside the write order. table_slots: for each table of the mutation the slot
 * number that the store gave it (small integers, reused only after the table is dropped and its
 * segments gone). *out: where the record ends. Never waits for the disk unless a new segment is due and
 * none is ready. ERROR_INVALID for an oversized record, ERROR_NO_SPACE, ERROR_IO when the log has failed.
 */
int commitlog_add(struct commitlog *log, struct slice record, const uint32_t *table_slots,
    uint32_t table_count, struct commitlog_position *out, struct error *err);

/*
 * May the write that ended at `position` be acknowledged at once? True in periodic mode while the
 * sync keeps up. Otherwise the waiter is queued (waiter->position and on_synced set by the caller) and called
 * later. Called outside the write order.
 */
bool commitlog_acknowledge(struct commitlog *log, struct commitlog_waiter *waiter);

/* Where the next record will go at the earliest. */
struct commitlog_position commitlog_current(struct commitlog *log);
/* Make everything added so far durable before returning. */
int commitlog_sync(struct commitlog *log, struct error *err);

/* Table `slot` has nothing unflushed at or before `upto`: delete segments that are clean now. */
void commitlog_discard(struct commitlog *log, uint32_t slot, struct commitlog_position upto);
/* The table is gone altogether. */
void commitlog_forget_table(struct commitlog *log, uint32_t slot);

/* Slots dirty in the oldest segments while the log takes more than its total: the store flushes these
 * tables. Calls back outside locks on the sync thread. */
typedef void (*commitlog_pressure_fn)(void *context, const uint32_t *slots, size_t count);
void commitlog_on_pressure(struct commitlog *log, commitlog_pressure_fn fn, void *context);

/* Told when the log has failed, or, where it ignores that, when a sync has. Any thread; the sync's lock may be held. */
typedef void (*commitlog_failure_fn)(void *context, const struct error *err);
void commitlog_on_failure(struct commitlog *log, commitlog_failure_fn fn, void *context);

/*
 * Replay what lay in the directory when the log was opened, in order. `each` gets every sound record;
 * 1: taken, 0: not needed, -1: stop. After success commitlog_replayed() (once the memtables that took
 * the records were flushed) deletes those files. Damage below a segment's synced offset is ERROR_CORRUPT unless
 * commitlog_ignore_replay_errors; a torn tail is logged and passed over. Foreign segments (CommitLog-7-*.log of
 * Cassandra) are an error that says to drain that server first.
 */
typedef int (*commitlog_replay_fn)(
    void *context, struct slice record, struct commitlog_position position, struct error *err);
int
commitlog_replay(struct commitlog *log, commitlog_replay_fn each, void *context, struct error *err);
int commitlog_replayed(struct commitlog *log, struct error *err);

struct commitlog_stats {
	uint64_t total_bytes; /* of all segments on disk */
	uint64_t segments;
	uint64_t pending; /* waiters for a sync */
	uint64_t completed; /* records added */
	const struct histogram *sync_us; /* borrowed */
};
void commitlog_stats(struct commitlog *log, struct commitlog_stats *out);

#endif
