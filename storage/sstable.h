/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SSTABLE_H
#define HELENUS_STORAGE_SSTABLE_H

/*
 * An immutable sorted table on disk, in the files of Cassandra's format "nb" (big): Data, Index,
 * Summary, Filter, Statistics, CompressionInfo or CRC, Digest, TOC. Written once, by one thread, with
 * sstable_writer_*; read by any number of threads afterwards. Cassandra's classes: BigTableReader,
 * BigTableScanner, BigTableWriter, Descriptor, SSTableMetadata.
 *
 *   point read   Filter -> key cache -> Summary -> Index -> promoted index -> Data chunks -> rows
 *   scan         Summary -> Index (where it begins) -> Data, in order, with read-ahead
 *
 * Opening reads nothing but the sizes of the files: a start does not get slower with more data. The
 * first reader of statistics or data loads what it needs (under the table's own lock) and the
 * result stays. Every chunk's checksum is verified when it comes from disk (crc_check_chance); damage
 * is ERROR_CORRUPT with file and offset. All lengths in all files are checked.
 *
 * Names and lifecycle: the writer writes the final names, TOC last, and fsyncs files and directory in
 * finish(); whether the files are part of the table is decided by the transaction log of the caller.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/bytes.h"
#include "base/error.h"
#include "base/uuid.h"
#include "storage/commitlog_position.h"
#include "storage/read_command.h"
#include "storage/unfiltered.h"

struct env;
struct chunk_cache; /* storage/chunk_cache.h */
struct key_cache; /* storage/key_cache.h */

/* ---- names -------------------------------------------------------------------------------- */

enum sstable_component {
	SSTABLE_DATA,
	SSTABLE_INDEX,
	SSTABLE_SUMMARY,
	SSTABLE_FILTER,
	SSTABLE_STATISTICS,
	SSTABLE_COMPRESSION_INFO, /* compressed tables */
	SSTABLE_CRC, /* uncompressed tables */
	SSTABLE_DIGEST,
	SSTABLE_TOC,
};
enum { SSTABLE_COMPONENT_COUNT = SSTABLE_TOC + 1 };

/* "Data.db", "Digest.crc32", "TOC.txt", ...: static string. */
const char *sstable_component_name(enum sstable_component component);

/* nb-<generation>-big-..., or nb-<time-ordered uuid in base 36>-big-... (SSTableIdFactory). */
struct sstable_id {
	bool is_uuid;
	uint64_t generation; /* !is_uuid */
	struct uuid uuid; /* is_uuid */
};

bool sstable_id_equal(const struct sstable_id *a, const struct sstable_id *b);
/* "17" or "3fw2_0tt9_2bbd82eoupnfk7pqzi", with the NUL. */
enum { SSTABLE_ID_TEXT_SIZE = 32 };
void sstable_id_format(const struct sstable_id *id, char out[SSTABLE_ID_TEXT_SIZE]);

struct sstable_descriptor {
	const char
	    *directory; /* of the table, without a slash at the end; borrowed, copied by open */
	struct sstable_id id;
};

/* Longest path that names a component; a longer one is refused with ERROR_IO by those who open. */
enum { SSTABLE_PATH_MAX = 4096 };

/*
 * Is `file_name` (no directory) a component of an nb-big SSTable? Sets *id and *component (both may
 * be NULL). Components that we do not know (secondary indexes, SASI) give false.
 */
bool
sstable_name_parse(const char *file_name, struct sstable_id *id, enum sstable_component *component);
/* "<directory>/nb-<id>-big-<component>"; -1 when it does not fit. */
int sstable_path(const struct sstable_descriptor *descriptor, enum sstable_component component,
    char out[SSTABLE_PATH_MAX], struct error *err);

/* ---- open, share -------------------------------------------------------------------------- */

/* What all SSTables of a store share. Borrowed; must outlive the tables. Caches may be NULL. */
struct sstable_context {
	struct env *env;
	struct chunk_cache *chunks;
	struct key_cache *keys;
	struct sstable_watch *watch; /* NULL: nobody wants to know */
	/* A partition that is written with more than this is named in the log; 0: none is. */
	uint64_t large_partition_bytes, many_tombstones;
};

/*
 * Told of reads that failed: ERROR_IO, ERROR_CORRUPT (disk_failure_policy). Any thread, perhaps several times for one
 * failure; must not wait for anything.
 */
struct sstable_watch {
	void (*failed)(struct sstable_watch *watch, const char *path, const struct error *err);
};

struct sstable;

/*
 * Open for reading. Data.db must be there, nothing is read. *out holds one reference; `table` gets a
 * reference of its own. A later read may come with newer metadata of the same table. Failure:
 * ERROR_IO, *out untouched.
 */
int sstable_open(const struct sstable_context *context, const struct sstable_descriptor *descriptor,
    const struct table_metadata *table, struct sstable **out, struct error *err);
/* Any thread. The last unref closes the files, frees the caches' entries and, when
 * sstable_mark_obsolete() was called, deletes the components (TOC first). NULL is accepted. */
struct sstable *sstable_ref(struct sstable *sstable);
void sstable_unref(struct sstable *sstable);

/*
 * The files go away with the last reference (compacted, truncated). `on_deleted`, may be NULL, runs
 * after the deletion on the thread of that unref (the transaction log waits for it).
 */
void
sstable_mark_obsolete(struct sstable *sstable, void (*on_deleted)(void *argument), void *argument);

/* Free to call at any time; no I/O. */
const struct sstable_descriptor *sstable_descriptor(const struct sstable *sstable);
uint64_t sstable_data_size(const struct sstable *sstable); /* bytes of Data.db on disk */
uint64_t sstable_total_size(const struct sstable *sstable); /* all components */
uint64_t sstable_created_ms(const struct sstable *sstable); /* mtime of Data.db */

/* ---- what is known about it ------------------------------------------------------------------ */

struct commitlog_interval {
	struct commitlog_position start, end;
};

/* EstimatedHistogram as files carry it: count[i] values in (offsets[i-1], offsets[i]]; one overflow. */
struct sstable_histogram {
	uint32_t count; /* buckets, with the overflow one */
	const int64_t *offsets; /* count - 1 */
	const int64_t *counts; /* count */
};

/* StreamingTombstoneHistogram: tombstones by local deletion time, ascending. */
struct sstable_drop_times {
	uint32_t count;
	const int32_t *times; /* seconds */
	const int64_t *counts;
};

/*
 * Statistics.db, decoded (StatsMetadata, ValidationMetadata, the counts of Summary's first and last
 * key). Immutable, lives as long as the SSTable. Level and repair fields are as they were when it was
 * loaded; sstable_level() and sstable_repair() follow sstable_set_level() and sstable_set_repaired().
 */
struct sstable_stats {
	struct slice partitioner;
	double fp_chance;
	struct sstable_histogram partition_sizes; /* bytes */
	struct sstable_histogram cells_per_partition;
	struct commitlog_position commitlog_upper; /* end of the last interval */
	uint32_t commitlog_count;
	const struct commitlog_interval *commitlog;
	int64_t min_timestamp, max_timestamp;
	int32_t min_local_deletion_time, max_local_deletion_time;
	int32_t min_ttl, max_ttl;
	double compression_ratio; /* -1: not compressed */
	struct sstable_drop_times drop_times;
	int32_t level;
	int64_t repaired_at; /* ms; 0: not repaired */
	uint32_t min_clustering_count, max_clustering_count;
	const struct slice *min_clustering, *max_clustering; /* values; count 0: not known */
	bool has_legacy_counter_shards;
	int64_t total_columns_set, total_rows;
	bool has_host_id, has_pending_repair, is_transient;
	struct uuid host_id;
	struct uuid pending_repair;
	struct slice first_key, last_key;
	int64_t first_token, last_token;
};

/*
 * The statistics; loads them the first time (Statistics.db and the end of Summary.db). NULL with err
 * ERROR_IO or ERROR_CORRUPT. Cheap afterwards (one atomic load). Any thread.
 */
const struct sstable_stats *sstable_stats(struct sstable *sstable, struct error *err);

/*
 * Where the table stands between repairs, after sstable_set_repaired() too, which the statistics do not follow. NULL as
 * sstable_stats(). Lives as long as the caller's reference.
 */
struct sstable_repair {
	int64_t repaired_at; /* ms; 0: not repaired */
	bool has_pending_repair, is_transient;
	struct uuid pending_repair;
};
const struct sstable_repair *sstable_repair(struct sstable *sstable, struct error *err);

/* Load all that reads need (Filter, Summary, CompressionInfo) now instead of at the first read. */
int sstable_load(struct sstable *sstable, struct error *err);

/* These load as sstable_stats() does; on failure they answer the neutral value in brackets. */
int32_t sstable_level(struct sstable *sstable); /* [0] */
int64_t sstable_repaired_at(struct sstable *sstable); /* [0] */
uint64_t sstable_estimated_keys(struct sstable *sstable); /* [0] from the partition sizes */
/* Share of cells that are tombstones droppable before `gc_before`, seconds
 * (getEstimatedDroppableTombstoneRatio). [0] */
double sstable_droppable_ratio(struct sstable *sstable, int64_t gc_before);
double sstable_compression_ratio(struct sstable *sstable); /* [-1] */
uint64_t sstable_filter_memory(const struct sstable *sstable); /* bytes now in memory */
uint64_t sstable_summary_memory(const struct sstable *sstable);
uint64_t sstable_compression_memory(const struct sstable *sstable);
/* Uncompressed bytes of Data.db. [0] */
uint64_t sstable_uncompressed_size(struct sstable *sstable);

/*
 * May the table hold anything that a read of these slices needs? False only when min/max clustering
 * rule it out and there are neither static rows nor deletions to see. Loads. sstable_read() and
 * sstable_scan() ask it themselves: then they find nothing.
 */
bool sstable_may_contain(struct sstable *sstable, const struct read_command *command);

/* Rewrites Statistics.db (temporary file, fsync, rename): MetadataSerializer.mutateLevel, ...Repaired. */
int sstable_set_level(struct sstable *sstable, int32_t level, struct error *err);
int sstable_set_repaired(struct sstable *sstable, int64_t repaired_at,
    const struct uuid *pending_repair, bool is_transient, struct error *err);

/* Counters for nodetool tablestats; relaxed. */
struct sstable_counters {
	uint64_t filter_checks, filter_false_positives, filter_true_positives;
	uint64_t reads;
};
void sstable_counters(const struct sstable *sstable, struct sstable_counters *out);

/* ---- read ---------------------------------------------------------------------------------- */

/*
 * Read one partition: command->key, its slices, order and wanted columns. Returns 0 and *out, which
 * is NULL when the partition is not in this table (the filter or the index says so). Everything
 * comes from `arena`; the caller keeps a reference to the SSTable until the iterator is closed.
 * Slices are exact: rows outside are not given; range tombstones that begin before a slice are
 * opened at its start bound and closed at its end: such a marker has the bound's position and no clustering
 * values (count 0), so it can be merged but not encoded. The limits and filters of the command are not
 * looked at. Damage found later comes out of next().
 */
int sstable_read(struct sstable *sstable, const struct read_command *command, struct arena *arena,
    struct unfiltered_iterator **out, struct error *err);

/* The filter alone: false when the key is surely absent. Loads the filter; true on failure. */
bool sstable_may_have_key(struct sstable *sstable, struct slice key);

enum sstable_scan_flag {
	/* For compaction: chunks do not go through the chunk cache, reads are large and sequential. */
	SSTABLE_SCAN_SEQUENTIAL = 1,
	/*
	 * Memory stays bounded inside one partition: what next() of a partition gave is valid until
	 * the second next() call after it (not until close). For merges that look one ahead.
	 */
	SSTABLE_SCAN_TRANSIENT = 2,
	SSTABLE_SCAN_RAW = 4, /* of everything: rows need not be decoded (row_raw.h) */
};

/*
 * Partitions in token order. `command` (is_range) gives range, slices and wanted columns; NULL: the
 * whole table. `table` is what rows are seen as (NULL: as at open). As sstable_read() otherwise.
 */
int sstable_scan(struct sstable *sstable, const struct read_command *command,
    const struct table_metadata *table, uint32_t flags, struct arena *arena,
    struct partition_iterator **out, struct error *err);
/* Bytes of uncompressed data that a scan has passed (progress of a compaction). `scan` must come from
 * sstable_scan(). May be called by another thread. */
uint64_t sstable_scan_position(const struct partition_iterator *scan);

/* The tokens of the keys in Summary.db. Loads. */
void sstable_key_samples(
    struct sstable *sstable, void (*each)(void *argument, int64_t token), void *argument);
/* Partitions of the range that the index samples promise (estimate, at least 1 when it meets). */
uint64_t sstable_estimated_keys_in(struct sstable *sstable, int64_t left, int64_t right);

/*
 * Check everything: digest of Data.db, CRC of every chunk, order of keys and rows, Index against Data,
 * Statistics and Summary readable. ERROR_CORRUPT names the first damage. `is_extended` decodes
 * every row (verify -e). *bytes, may be NULL, is advanced as it goes (progress).
 */
int sstable_verify(struct sstable *sstable, bool is_extended, uint64_t *bytes, struct error *err);
/*
 * Check Index.db alone, without Data.db: order of keys, filter and Summary (verify -q). With `owned` (normalized), all
 * partitions have to lie in these ranges too (verify -t).
 */
struct stream_range; /* storage/stream_writer.h */
int sstable_verify_index(struct sstable *sstable, const struct stream_range *owned,
    uint32_t owned_count, struct error *err);
/* Are chunks compressed as the table's options say now? Of levels of compression the files tell nothing. Loads;
 * true where that fails. */
bool sstable_has_compression(struct sstable *sstable, const struct table_metadata *table);

/*
 * As sstable_scan() of everything (not transient, not raw), but partitions that cannot be read whole are left out, logged
 * and counted (nodetool scrub, Scrubber): each is read twice, first to see whether it is sound. `validates`: values of simple
 * columns are checked by their types as well. Where Index.db cannot be read on, Data.db is, up to its first damage.
 */
struct sstable_scrub {
	bool validates;
	bool
	    keeps_counters; /* of a counter table: a damaged partition is an error, for its counts would be lost */
	uint64_t good, bad; /* partitions */
};
int sstable_scrub_scan(struct sstable *sstable, const struct table_metadata *table,
    struct sstable_scrub *scrub, struct arena *arena, struct partition_iterator **out,
    struct error *err);

/* ---- write --------------------------------------------------------------------------------- */

struct sstable_writer;

/* Copied by sstable_writer_new(). Zero is the right default of what is not set. */
struct sstable_writer_options {
	struct sstable_descriptor descriptor;
	const struct table_metadata
	    *table; /* gets a reference; options (compression, fp) from here */
	uint64_t expected_keys; /* sizes the filter; more may come, fp chance suffers */
	/*
	 * What deltas are taken from (EncodingStats): not above any value to come, else the vints get
	 * long, nothing worse. CODEC_*_EPOCH where not known.
	 */
	int64_t min_timestamp;
	int32_t min_local_deletion_time;
	int32_t min_ttl;
	/* Columns of the header, bitmaps by column index; NULL: all of the table. Smaller is better:
	 * rows that have all columns of the header need no bitmap. A cell of another column is a bug. */
	const uint64_t *statics, *regulars;
	int32_t level;
	int64_t repaired_at;
	const struct uuid *pending_repair; /* NULL: none */
	const struct uuid *host_id; /* NULL: none */
	const struct commitlog_interval *commitlog;
	uint32_t commitlog_count;
	uint32_t column_index_bytes; /* 0: 64 KiB */
	bool is_fast_flush; /* flush_compression: fast: LZ4 where the table has a slow one */
	uint64_t
	    sync_interval_bytes; /* trickle_fsync: fdatasync each so many bytes; 0: at the end */
};

/* Creates the files. ERROR_IO, ERROR_NO_SPACE, ERROR_INVALID (files exist). */
int sstable_writer_new(const struct sstable_context *context,
    const struct sstable_writer_options *options, struct sstable_writer **out, struct error *err);

/*
 * Write a partition; keys come in token order (token, then key bytes), else ERROR_CORRUPT. Rows,
 * forward, are pulled until the end; an empty partition (no deletion, no static, no row) is skipped.
 * Does not close the iterator. Returns 0 or -1; after a failure only abort is allowed.
 */
int sstable_writer_append(
    struct sstable_writer *writer, struct unfiltered_iterator *partition, struct error *err);

/*
 * The same in steps, for who cannot be pulled from: the head (key, token, deletion, static row of an iterator
 * whose next() is not called), the rows and markers, the end. A partition of nothing is the caller's to leave out.
 */
int sstable_writer_begin(
    struct sstable_writer *writer, const struct unfiltered_iterator *head, struct error *err);
int
sstable_writer_put(struct sstable_writer *writer, const struct unfiltered *item, struct error *err);
int sstable_writer_end(struct sstable_writer *writer, struct error *err);

/* Bytes so far: uncompressed data, and Data.db on disk (estimate; when to switch files). */
uint64_t sstable_writer_position(const struct sstable_writer *writer);
uint64_t sstable_writer_disk_size(const struct sstable_writer *writer);
uint64_t sstable_writer_keys(const struct sstable_writer *writer);

/*
 * Write all components, fsync them and the directory, free the writer (also on failure, which
 * removes the files). *out, unless out is NULL, is the table opened with `context`. At least one
 * partition must have been appended, else the files are removed and *out is NULL with 0.
 */
int sstable_writer_finish(struct sstable_writer *writer, struct sstable **out, struct error *err);
/* Remove the files, free the writer. NULL is accepted. */
void sstable_writer_abort(struct sstable_writer *writer);

#endif
