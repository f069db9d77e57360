/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_ROW_H
#define HELENUS_STORAGE_ROW_H

/*
 * Cells, rows, deletions, their reconciliation, and the one row codec of the house.
 *
 * A decoded row is a view: arrays live in the arena it was decoded into, bytes stay where they were
 * (a frame, a memtable, an SSTable chunk), so it is valid as long as both. Rows are immutable once
 * built. The encoded form is Cassandra's (UnfilteredSerializer, Cell.Serializer, Columns.Serializer,
 * ClusteringPrefix.Serializer): the same bytes in SSTables, commit log, memtable and between nodes.
 *
 * Clustering order is memcmp order of "positions": for each clustering component a separator byte and
 * type_to_comparable() of the value, then a terminator that says what kind of bound it is. See
 * position_*() below.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cql/schema.h"

/* Cassandra's Cell / LivenessInfo constants. Times: timestamps µs, local times and TTLs seconds. */
#define TIMESTAMP_NONE INT64_MIN
#define LOCAL_DELETION_TIME_NONE INT32_MAX
enum { TTL_NONE = 0, TTL_EXPIRED_LIVENESS = INT32_MAX, TTL_MAX = 20 * 365 * 24 * 60 * 60 };

/* DeletionTime: everything at or before marked_for_delete_at is gone. */
struct deletion {
	int64_t marked_for_delete_at;
	int32_t local_deletion_time;
};

#define DELETION_LIVE ((struct deletion){INT64_MIN, INT32_MAX})

static inline bool
deletion_is_live(struct deletion deletion)
{
	return deletion.marked_for_delete_at == INT64_MIN &&
	    deletion.local_deletion_time == INT32_MAX;
}

/* a supersedes b (DeletionTime.supersedes). */
static inline bool
deletion_supersedes(struct deletion a, struct deletion b)
{
	return a.marked_for_delete_at > b.marked_for_delete_at ||
	    (a.marked_for_delete_at == b.marked_for_delete_at &&
		a.local_deletion_time > b.local_deletion_time);
}

/* Primary key liveness of a row (LivenessInfo). timestamp == TIMESTAMP_NONE: no liveness. */
struct liveness {
	int64_t timestamp;
	int32_t ttl;
	int32_t local_expiration_time; /* LOCAL_DELETION_TIME_NONE without TTL */
};

#define LIVENESS_NONE ((struct liveness){TIMESTAMP_NONE, TTL_NONE, LOCAL_DELETION_TIME_NONE})

/*
 * One cell. A tombstone has local_deletion_time set and ttl 0; an expiring cell has both. A
 * cell of a multi-cell collection or UDT has a path (list: timeuuid; set: the element; map: the key;
 * UDT: the field's index as int16), any other cell has a null path.
 */
struct cell {
	const struct column_metadata *column; /* borrowed from the table or the codec header */
	int64_t timestamp;
	int32_t ttl;
	int32_t local_deletion_time;
	struct slice path;
	struct slice value; /* empty for tombstones */
};

static inline bool
cell_is_tombstone(const struct cell *cell)
{
	return cell->local_deletion_time != LOCAL_DELETION_TIME_NONE && cell->ttl == TTL_NONE;
}

static inline bool
cell_is_live(const struct cell *cell, int64_t now_seconds)
{
	return cell->local_deletion_time == LOCAL_DELETION_TIME_NONE ||
	    (cell->ttl != TTL_NONE && now_seconds < cell->local_deletion_time);
}

/* Deletion of a whole multi-cell column in one row. */
struct complex_deletion {
	const struct column_metadata *column;
	struct deletion deletion;
};

struct row {
	bool is_static;
	uint32_t clustering_count; /* 0 for a static row or a table without clustering */
	const struct slice
	    *clustering; /* clustering_count values; a null slice is a null component */
	struct slice position; /* memcmp-comparable; null when not computed yet */
	struct liveness liveness;
	struct deletion deletion; /* of the row; DELETION_LIVE when none */
	uint32_t complex_deletion_count;
	const struct complex_deletion *complex_deletions; /* in column order */
	uint32_t cell_count;
	const struct cell
	    *cells; /* in column order (simple before complex, by name), then path order */
};

/* No liveness, no deletion, no cell, no complex deletion. */
bool row_is_empty(const struct row *row);

/*
 * Which of two cells of the same column and path wins (Cells.reconcile, Cells.resolveRegular;
 * features ST-27). Counter cells are merged by counter_merge() instead; row_merge() does both.
 */
const struct cell *cell_reconcile(const struct cell *a, const struct cell *b);

/*
 * Order of columns in a row, for columns of any version of a table: simple before complex, then by the
 * bytes of the name. Order of the cells of a row: by column, then path. <0, 0, >0.
 */
int column_order(const struct column_metadata *a, const struct column_metadata *b);
int cell_order(const struct cell *a, const struct cell *b);

/* Merge `next`, a cell of the same column and path, into *into (Cells.reconcile): counters too, whose
 * merged context comes from `arena`. -1 without memory. */
int cell_merge(struct cell *into, const struct cell *next, struct arena *arena, struct error *err);

/*
 * Merge `count` versions of one row (same clustering, or all static) into *out, everything that
 * `active` (partition or range deletion over the row) or the merged row deletion covers dropped, as
 * Rows.merge does: tombstones stay. New arrays come from `arena`, bytes are shared with the inputs.
 * Returns 0, or -1 without memory. *out may turn out empty: see row_is_empty().
 */
int row_merge(const struct row *const *versions, size_t count, struct deletion active,
    struct arena *arena, struct row *out, struct error *err);

/*
 * Is anything of the row live? *tombstones: its dead cells, or one for a row that is nothing but deleted: what
 * ReadCommand counts.
 */
bool row_has_live(const struct row *row, int64_t now_seconds, uint32_t *tombstones);

/*
 * What a client may see of a row at `now_seconds` (Row.purge with a purger that purges everything):
 * tombstones, expired cells and expired liveness removed, deletions removed. Sets *has_live. Cells
 * whose ttl passed count as tombstones in *tombstone_count (may be NULL).
 */
int row_live_view(const struct row *row, int64_t now_seconds, struct arena *arena, struct row *out,
    bool *has_live, uint32_t *tombstone_count, struct error *err);

/* ---- positions in a partition ------------------------------------------------------------ */

/* ClusteringPrefix.Kind: these numbers are on disk. */
enum bound_kind {
	BOUND_EXCL_END = 0,
	BOUND_INCL_START = 1,
	BOUND_EXCL_END_INCL_START = 2, /* boundary: closes one range tombstone, opens another */
	BOUND_STATIC_CLUSTERING = 3,
	BOUND_CLUSTERING = 4,
	BOUND_INCL_END_EXCL_START = 5, /* boundary */
	BOUND_INCL_END = 6,
	BOUND_EXCL_START = 7,
};

/*
 * Append the position of a clustering prefix to `out`: memcmp order of positions is
 * ClusteringComparator order of (values, kind), including bounds that are prefixes. A row has kind
 * BOUND_CLUSTERING and all components; a bound may have fewer (0: before or after everything).
 */
void position_encode(const struct table_metadata *table, enum bound_kind kind,
    const struct slice *values, uint32_t count, struct buffer *out);
/* The same into an arena; a null slice without memory. */
/* Of every row of a table without clustering columns. */
extern const struct slice position_lone;
struct slice position_make(const struct table_metadata *table, enum bound_kind kind,
    const struct slice *values, uint32_t count, struct arena *arena);

/* Where a position stands: before or after everything that begins with its values, or at a row. */
enum position_place { POSITION_PLACE_BEFORE, POSITION_PLACE_ROW, POSITION_PLACE_AFTER };
/*
 * Values and place of a position (of rows and bounds; not the static one). Values come from `arena`, and
 * make this very position again, though their bytes may differ from those it was made of (type_from_comparable).
 * ERROR_PROTOCOL: no position of the table.
 */
int position_decode(const struct table_metadata *table, struct slice position, struct arena *arena,
    enum position_place *place, const struct slice **values, uint32_t *count, struct error *err);

/* The bound right before or right behind a row, of the row's position; a null slice without memory. */
struct slice position_beside(struct slice row, bool is_behind, struct arena *arena);

/*
 * A range tombstone's bound or a boundary between two, as it stands in a stream of unfiltereds. kind,
 * close and open are meant in clustering order also when the stream is reversed (then a marker that
 * closes comes first).
 */
struct marker {
	enum bound_kind kind;
	uint32_t clustering_count;
	const struct slice *clustering;
	struct slice position;
	struct deletion close; /* kinds that close a range: deletion that ends here */
	struct deletion open; /* kinds that open a range: deletion that begins here */
};

static inline bool
bound_opens(enum bound_kind kind)
{
	return kind == BOUND_INCL_START || kind == BOUND_EXCL_START ||
	    kind == BOUND_EXCL_END_INCL_START || kind == BOUND_INCL_END_EXCL_START;
}

static inline bool
bound_closes(enum bound_kind kind)
{
	return kind == BOUND_INCL_END || kind == BOUND_EXCL_END ||
	    kind == BOUND_EXCL_END_INCL_START || kind == BOUND_INCL_END_EXCL_START;
}

/* ---- the codec --------------------------------------------------------------------------- */

/*
 * SerializationHeader: the columns that subsets and cells refer to, in order, and the minima that
 * deltas are taken from. One is made per memtable / mutation (from the table, with Cassandra's epoch
 * minima) and one per SSTable (columns of Statistics.db, possibly of older types). Arrays are borrowed
 * and live as long as the codec. Columns are matched with cells by name, so rows of an older or newer
 * version of the table can be encoded; a cell whose column the codec does not have is left out.
 */
struct row_codec {
	const struct table_metadata *table; /* clustering types come from here */
	uint32_t static_count, regular_count;
	const struct column_metadata *statics; /* Columns order, with the types as encoded */
	const struct column_metadata *regulars; /* Columns order */
	/*
	 * What decoded cells point to, parallel to the above; NULL: the columns themselves. An entry that
	 * is NULL is a column that the table no longer has: its cells are skipped. Cells (and complex
	 * deletions) at or before dropped_us of their column are left out; NULL: none was dropped.
	 * Set by row_codec_bind().
	 */
	const struct column_metadata *const *static_targets;
	const struct column_metadata *const *regular_targets;
	const int64_t *static_dropped_us;
	const int64_t *regular_dropped_us;
	int64_t min_timestamp;
	int32_t min_local_deletion_time;
	int32_t min_ttl;
};

/* EncodingStats.NO_STATS: 2015-09-22T00:00:00Z in µs / s, TTL 0. */
#define CODEC_TIMESTAMP_EPOCH INT64_C(1442880000000000)
#define CODEC_DELETION_TIME_EPOCH 1442880000
enum { CODEC_TTL_EPOCH = 0 };

/* A codec over a table's current columns with the epoch minima; borrows the table, allocates nothing. */
void row_codec_init(struct row_codec *codec, const struct table_metadata *table);
/*
 * Make what the codec decodes point to the columns of `table` (the current version of the same table),
 * and leave out what was dropped. Needs nothing but a few pointers from `arena`, which must live as
 * long as the codec. -1 without memory. Called once per SSTable and version of the table.
 */
int row_codec_bind(struct row_codec *codec, const struct table_metadata *table, struct arena *arena,
    struct error *err);

enum row_codec_flavor {
	ROW_CODEC_SSTABLE, /* with row size and previous size, as in Data.db */
	ROW_CODEC_MESSAGE, /* without: memtable, commit log, internode */
};

/* Append the row. previous_size: bytes of the unfiltered before (SSTABLE flavor), else 0. A static
 * row is written with its extended flag; who reads it passes is_static. */
void row_encode(const struct row_codec *codec, enum row_codec_flavor flavor, const struct row *row,
    uint64_t previous_size, struct buffer *out);
void marker_encode(const struct row_codec *codec, enum row_codec_flavor flavor,
    const struct marker *marker, uint64_t previous_size, struct buffer *out);
/* The byte that ends a partition. */
enum { UNFILTERED_END_OF_PARTITION = 0x01 };

enum unfiltered_kind {
	UNFILTERED_END,
	UNFILTERED_ROW,
	UNFILTERED_MARKER,
	UNFILTERED_RAW, /* a row that was not decoded (row_raw.h); only in streams that were asked for it */
};

/*
 * Decode what is next at `reader` into *row or *marker (arrays from `arena`, bytes borrowed from
 * the reader's memory, positions not computed). ERROR_CORRUPT names what is wrong; the caller
 * prefixes the file. Dropped columns' cells older than their drop time are left out.
 * `wanted`: bitmap by column->position (bit position & 63 of word position >> 6) of the regular (or
 * static) columns whose cells are to be decoded, or NULL for all; cells of others are skipped without
 * being materialised. With is_static the reader stands at a static row. Rows that turn out empty
 * (all their cells were dropped) are returned as they are: see row_is_empty().
 */
int unfiltered_decode(const struct row_codec *codec, enum row_codec_flavor flavor,
    struct reader *reader, bool is_static, const uint64_t *wanted, struct arena *arena,
    enum unfiltered_kind *kind, struct row *row, struct marker *marker, struct error *err);

/* Number of unfiltereds' bytes to skip: moves the reader behind what unfiltered_decode() would read
 * (SSTABLE flavor uses the row size; MESSAGE walks the cells). Returns the kind in *kind. */
int unfiltered_skip(const struct row_codec *codec, enum row_codec_flavor flavor,
    struct reader *reader, bool is_static, enum unfiltered_kind *kind, struct error *err);

/* Clustering values of a prefix (ClusteringPrefix.Serializer.serializeValuesWithoutSize): a vint header
 * with two bits a value per 32 values, then the values. Used by rows, markers and index entries. */
void clustering_encode(const struct table_metadata *table, const struct slice *values,
    uint32_t count, struct buffer *out);
/* count <= clustering columns of the table. Values are borrowed from the reader, the array from arena. */
int clustering_decode(const struct table_metadata *table, struct reader *reader, uint32_t count,
    struct arena *arena, const struct slice **values, struct error *err);

/* DeletionTime as 12 bytes int32 local deletion time, int64 marked for delete at (partition level). */
void deletion_encode(struct deletion deletion, struct buffer *out);
struct deletion deletion_decode(struct reader *reader);

#endif
