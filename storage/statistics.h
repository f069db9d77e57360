/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_STATISTICS_H
#define HELENUS_STORAGE_STATISTICS_H

/*
 * Statistics.db: four parts, each with its CRC (MetadataSerializer and the serializers of
 * ValidationMetadata, CompactionMetadata, StatsMetadata, SerializationHeader; version nb).
 *
 *   int32 4; int32 CRC of it
 *   4 x (int32 part: 0 validation, 1 compaction, 2 stats, 3 header; int32 position of it in the file)
 *   int32 CRC of everything before, the first CRC left out
 *   the parts, each followed by int32 CRC of its bytes
 *
 *   validation  u16 n + partitioner class; double Bloom filter chance
 *   compaction  int32 n + HyperLogLog++ of the keys: see statistics_cardinality below
 *   stats       histogram of partition sizes, histogram of cells a partition; position where the
 *               commit log is covered up to; int64 min, max timestamp; int32 min, max local deletion
 *               time; int32 min, max TTL; double compression ratio; tombstone histogram; int32 level;
 *               int64 repaired at; int32 n + n x (u16 + bytes) min clustering; the same of max;
 *               bool legacy counter shards; int64 columns set; int64 rows; position of the lower end
 *               of the commit log; int32 n + n x (position, position); bool + uuid pending repair; bool
 *               transient; bool + uuid of the host that wrote it
 *               histogram: int32 n, n x (int64 offset of bucket i-1 (0: of bucket 0), int64 count)
 *               tombstone histogram: int32 bins at most, int32 n, n x (double time, int64 count)
 *               position: int64 segment, int32 offset
 *   header      vint min timestamp, local deletion time, TTL, minus the epochs of row.h; key type;
 *               vint n + clustering types; vint n + n x (vint length + name, type) static columns; the
 *               same of regular ones. A type is vint length + class name
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/schema.h"
#include "storage/row.h"
#include "storage/sstable.h"

/* The part "header": what rows of this SSTable are coded with. Types and names are in the arena. */
struct statistics_header {
	int64_t min_timestamp;
	int32_t min_local_deletion_time;
	int32_t min_ttl;
	struct slice key_type;
	uint32_t clustering_count;
	const struct slice *clustering_types; /* class names */
	uint32_t static_count, regular_count;
	struct column_metadata *statics; /* Columns order; position is the index */
	struct column_metadata *regulars;
};

struct statistics {
	struct sstable_stats stats; /* first_key ... last_token are not set here */
	struct statistics_header header;
	struct slice cardinality; /* bytes of the HyperLogLog++ */
};

/* Decode into `arena` (everything is copied). ERROR_CORRUPT says what and where. */
int statistics_decode(
    struct slice content, struct arena *arena, struct statistics *out, struct error *err);

/* `key_type` and the clustering types are made of the table; `codec` gives columns and minima. */
void statistics_encode(const struct sstable_stats *stats, struct slice cardinality,
    const struct table_metadata *table, const struct row_codec *codec, struct buffer *out);

/* The same file with other values in the fields that may change after writing. */
int statistics_rewrite(struct slice content, const struct sstable_stats *changed,
    struct buffer *out, struct error *err);

/* ---- collecting while a table is written (MetadataCollector) ----------------------------------- */

enum {
	STATISTICS_SIZE_BUCKETS = 150, /* offsets of the histogram of partition sizes */
	STATISTICS_CELL_BUCKETS = 118,
	STATISTICS_DROP_BINS = 100,
	STATISTICS_DROP_ROUND = 60, /* seconds: tombstone times are rounded up to these */
	STATISTICS_SPOOL = 1024, /* slots for distinct times before bins are merged */
	STATISTICS_SPARSE_MAX = 6144, /* of a HyperLogLog++ with p = 13 */
};

/* StreamingTombstoneHistogramBuilder: at most 100 bins, the closest two are merged. */
struct statistics_drop_times {
	uint32_t count;
	int64_t times[STATISTICS_DROP_BINS + 1];
	int64_t counts[STATISTICS_DROP_BINS + 1];
	uint32_t spool_count;
	int64_t spool_times[STATISTICS_SPOOL]; /* open addressing; count 0: free */
	int64_t spool_counts[STATISTICS_SPOOL];
};

/* `count` tombstones of one time; count > 0. */
void
statistics_drop_times_add(struct statistics_drop_times *histogram, int32_t time, uint64_t count);
/* Empty the spool into the bins. */
void statistics_drop_times_finish(struct statistics_drop_times *histogram);
/* Tombstones before `time`, interpolated (TombstoneHistogram.sum). */
double statistics_drop_times_sum(const struct sstable_drop_times *histogram, double time);

/* HyperLogLogPlus(13, 25) of clearspring's stream library, as Cassandra stores it:
 * int32 -2, varint 13, varint 25, then varint 1 and the sparse set (varint n, n x varint delta), or
 * varint 0 and the registers (varint bytes, int32 words of six 5-bit registers each). */
struct statistics_cardinality {
	uint32_t sparse_count;
	uint32_t sorted_count; /* of sparse[]: the rest was added since the last sort */
	uint32_t *sparse; /* owned; 2 * STATISTICS_SPARSE_MAX */
	uint8_t *registers; /* owned; NULL while sparse */
};

void statistics_cardinality_init(struct statistics_cardinality *cardinality);
void statistics_cardinality_fini(struct statistics_cardinality *cardinality);
void statistics_cardinality_add(struct statistics_cardinality *cardinality, struct slice key);
void statistics_cardinality_encode(struct statistics_cardinality *cardinality, struct buffer *out);

/* Everything that is collected; the writer owns one. */
struct statistics_collector {
	int64_t min_timestamp, max_timestamp; /* inverted while nothing was seen */
	int32_t min_local_deletion_time, max_local_deletion_time;
	int32_t min_ttl, max_ttl;
	int64_t total_columns_set, total_rows;
	uint64_t partition_cells, partition_tombstones; /* of the partition that is written */
	int32_t last_drop_time; /* runs of equal times are added at once */
	uint64_t last_drop_count;
	bool has_legacy_counter_shards;
	int64_t sizes[STATISTICS_SIZE_BUCKETS + 1];
	int64_t cells[STATISTICS_CELL_BUCKETS + 1];
	uint32_t last_size, last_cells; /* buckets of the partition before */
	struct statistics_drop_times drop_times;
	struct statistics_cardinality cardinality;
	/* Smallest and largest clustering: values and kind's position. */
	struct buffer min_position, max_position;
	struct buffer min_values, max_values; /* u16 length + bytes each */
	uint32_t min_count, max_count;
	bool has_clustering;
	bool is_out_of_memory; /* the clusterings may be wrong: there are no statistics */
	struct buffer scratch;
};

void statistics_collector_init(struct statistics_collector *collector);
void statistics_collector_fini(struct statistics_collector *collector);
void statistics_collect_deletion(struct statistics_collector *collector, struct deletion deletion);
void statistics_collect_row(struct statistics_collector *collector, const struct row *row);
void statistics_collect_raw(struct statistics_collector *collector, const struct row_raw *raw);
void statistics_collect_marker(struct statistics_collector *collector, const struct marker *marker);
/* Rows and markers are in order inside a partition: only the first and last of each need this. */
void statistics_collect_clustering(struct statistics_collector *collector,
    const struct table_metadata *table, enum bound_kind kind, const struct slice *values,
    uint32_t count);
void statistics_collect_partition(
    struct statistics_collector *collector, struct slice key, uint64_t size);
/* Fill the collected fields of *out from the collector; arrays are made in `arena`. */
int statistics_collector_finish(struct statistics_collector *collector, struct arena *arena,
    struct sstable_stats *out, struct error *err);

#endif
