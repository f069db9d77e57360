/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MUTATION_H
#define HELENUS_STORAGE_MUTATION_H

/*
 * What changes: the currency between the CQL front, the commit log, the memtable and other nodes.
 * A mutation is all changes to one partition key of one keyspace; each partition_update is
 * one table's part. Built in a request's arena (rows as views of the frame's bytes), never modified
 * once handed on.
 */
#include "storage/row.h"

/* A slice of clusterings deleted; start and end are bounds of the table's comparator. */
struct range_tombstone {
	enum bound_kind start_kind; /* BOUND_INCL_START or BOUND_EXCL_START */
	enum bound_kind end_kind; /* BOUND_INCL_END or BOUND_EXCL_END */
	uint32_t start_count, end_count;
	const struct slice *start, *end;
	struct deletion deletion;
};

struct partition_update {
	const struct table_metadata *table; /* borrowed, or shared by whoever owns the mutation */
	struct slice key; /* serialised partition key */
	int64_t token;
	struct deletion deletion; /* of the partition */
	const struct row *static_row; /* NULL: none */
	uint32_t row_count;
	const struct row *rows; /* ascending positions, positions computed, no two equal */
	uint32_t tombstone_count;
	const struct range_tombstone *tombstones; /* any order, may overlap */
};

struct mutation {
	const char *keyspace; /* borrowed from the schema */
	struct slice key;
	int64_t token;
	uint32_t update_count;
	const struct partition_update *updates;
};

/*
 * Encoded form, big-endian: vint number of updates; each: size, 16 bytes table id, flags, vint key length,
 * key, the columns of the update (so that a reader with a newer schema can decode), partition deletion, static
 * row, vint counts, rows and tombstones in the MESSAGE flavor. Self-describing: needs the schema only for types.
 */
void mutation_encode(const struct mutation *mutation, struct buffer *out);

/* How a decoder finds tables; returns NULL for a table that is gone (its update is skipped). */
typedef const struct table_metadata *(*mutation_table_fn)(void *argument, const struct uuid *id);

/* Decode into `arena`; bytes are borrowed from `encoded`. Updates of unknown tables are left out. */
int mutation_decode(struct slice encoded, mutation_table_fn find, void *argument,
    struct arena *arena, struct mutation *out, struct error *err);

/* Calls `each` for the table of every update of an encoded mutation, which is not decoded. False: it is none. */
bool mutation_each_table(struct slice encoded,
    void (*each)(void *argument, const struct uuid *table_id), void *argument);

/* Table and key of the first update of an encoded mutation. False: it is none. Borrowed from `encoded`. */
bool mutation_peek(struct slice encoded, struct uuid *table_id, struct slice *key);

/* The youngest timestamp in it, of data and of deletions; TIMESTAMP_NONE: it has none. */
int64_t partition_update_max_timestamp(const struct partition_update *update);

/* Bytes of data in the mutation, as batch size thresholds count them. */
size_t mutation_data_size(const struct mutation *mutation);

/*
 * Collects changes to one partition of one table and makes the update: rows are sorted, versions of
 * the same row merged (as PartitionUpdate.Builder). Arrays come from the arena.
 */
struct update_builder;
struct update_builder *
update_builder_new(const struct table_metadata *table, struct slice key, struct arena *arena);
/*
 * The row's position is computed here when it is null. Cells may be in any order. Its arrays are not copied: they are
 * the update's as long as it is used.
 */
int
update_builder_add_row(struct update_builder *builder, const struct row *row, struct error *err);
void update_builder_delete_partition(struct update_builder *builder, struct deletion deletion);
int update_builder_delete_range(
    struct update_builder *builder, const struct range_tombstone *tombstone, struct error *err);
int update_builder_finish(
    struct update_builder *builder, struct partition_update *out, struct error *err);

#endif
