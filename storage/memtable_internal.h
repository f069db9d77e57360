/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_MEMTABLE_INTERNAL_H
#define HELENUS_STORAGE_MEMTABLE_INTERNAL_H

/*
 * The inside of a memtable, for memtable.c (writes) and memtable_read.c (reads).
 *
 * A partition is an entry of its shard's tree with prefix = token, key = partition key. In a table
 * without clustering columns its content is a blob (the one row) or, with MEMTABLE_LONE, a memtable_lone.
 * With clustering columns it is a memtable_rows, whose tree has an entry for each row: the position as
 * key, the newest memtable_version as content.
 *
 * Blobs, lones and versions do not change while a reader is in the shard that can reach them (memtable_space.h). What may
 * change (contents of entries, trees, the fields of memtable_rows) is read under the shard's lock. A reader of a memtable_rows notes
 * the shard's sequence when it begins and takes from each row the newest version that is not younger:
 * so it sees whole updates, however often it lets go of the lock.
 */
#include "base/lock.h"
#include "storage/memtable.h"
#include "storage/memtable_index.h"
#include "storage/memtable_ranges.h"
#include "storage/memtable_space.h"
#include "storage/memtable_tree.h"

enum { RANK_MEMTABLE_SHARD = 80 };

/* The flag of an entry of a table without clustering columns: see above. */
enum { MEMTABLE_LONE = 1 };

/* A row in the MESSAGE flavor. */
struct memtable_blob {
	uint32_t size;
	uint32_t room; /* bytes that are there */
	uint8_t bytes[];
};

/* A partition of one row that was deleted at some time. */
struct memtable_lone {
	struct deletion deletion;
	struct memtable_blob *blob; /* NULL: no row */
};

struct memtable_version {
	/* NULL: none, or none that anybody needs. Only for readers of a lesser sequence: when they have left, its memory is used again. */
	const struct memtable_version *older;
	uint64_t sequence;
	struct memtable_blob blob;
};

struct memtable_rows {
	struct deletion deletion;
	struct memtable_version *static_version; /* NULL: none */
	struct memtable_ranges *ranges; /* a reference; NULL: none */
	struct memtable_rows *next_with_ranges; /* shard's list, to let go of them */
	struct memtable_tree tree;
};

struct memtable_stats {
	int64_t min_timestamp;
	int32_t min_local_deletion_time;
	int32_t min_ttl;
};

struct memtable_shard {
	struct lock lock;
	/* Guarded by lock. */
	struct arena arena; /* everything that lives as long as the memtable */
	struct arena scratch; /* of one merge */
	struct memtable_space space;
	struct memtable_tree partitions;
	struct memtable_index index; /* of partitions */
	struct memtable_rows *with_ranges;
	uint64_t sequence; /* of the last update of a memtable_rows */
	uint64_t row_count;
	uint64_t operations;
	uint64_t accounted; /* bytes of the arena that were added to the budget */
	struct memtable_stats stats;
} __attribute__((aligned(128))); /* neighbours' locks are not on one cache line */

struct memtable {
	atomic_uint refs;
	const struct table_metadata *table; /* a reference */
	struct row_codec codec;
	atomic_ullong *budget; /* may be NULL */
	atomic_ullong bytes;
	bool has_clustering;
	uint32_t shard_count;
	struct memtable_shard *shards;
};

static inline uint64_t
memtable_token_prefix(int64_t token)
{
	return (uint64_t)token ^ (UINT64_C(1) << 63);
}

static inline int64_t
memtable_prefix_token(uint64_t prefix)
{
	return (int64_t)(prefix ^ (UINT64_C(1) << 63));
}

static inline uint32_t
memtable_shard_index(const struct memtable *memtable, int64_t token)
{
	return (
	    uint32_t)(((unsigned __int128)memtable_token_prefix(token) * memtable->shard_count) >>
	    64);
}

/* The least prefix of a shard, give or take one. */
static inline uint64_t
memtable_shard_start(const struct memtable *memtable, uint32_t index)
{
	return (uint64_t)(((unsigned __int128)index << 64) / memtable->shard_count);
}

/* NULL: it is not there. */
static inline struct memtable_entry *
memtable_find_locked(const struct memtable_shard *shard, int64_t token, struct slice key)
{
	uint64_t prefix = memtable_token_prefix(token);
	struct memtable_entry *entry = memtable_index_find(&shard->index, prefix, key);

	return entry != NULL ? entry : memtable_tree_find(&shard->partitions, prefix, key);
}

/* Newest version that a reader which began at `sequence` may see; NULL: none. */
static inline const struct memtable_version *
memtable_version_at(const struct memtable_version *version, uint64_t sequence)
{
	while (version != NULL && version->sequence > sequence)
		version = version->older;
	return version;
}

#endif
