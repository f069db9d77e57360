/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COMPACTION_MERGE_H
#define HELENUS_STORAGE_COMPACTION_MERGE_H

/*
 * The data path of a compaction: scans of the inputs are merged partition by partition, purged of what
 * may be forgotten, and written into new SSTables (CompactionIterator, CompactionController).
 *
 * A tombstone may go when gc_grace_seconds have passed and nothing outside of this compaction can hold older
 * data that it hides: SSTables that are not among the inputs and may have the key, and the memtables.
 */
#include "storage/compaction.h"
#include "storage/lifecycle.h"

enum { COMPACTION_SOURCES_COUNTED = 32 };

struct compaction_result {
	struct sstable **sstables; /* owned array, one reference each */
	uint32_t count;
	uint64_t bytes_in, bytes_out; /* on disk */
	uint64_t merged[COMPACTION_SOURCES_COUNTED]; /* [i]: partitions made of i + 1 inputs */
};
/* Frees the array, not the references. */
void compaction_result_fini(struct compaction_result *result);

/* Called every now and then with the uncompressed bytes read since the last call; -1 stops the compaction. */
typedef int (*compaction_progress_fn)(void *context, uint64_t bytes, struct error *err);

/* Outputs are added to the transaction before their files are made, and are durable when this returns. */
int compaction_merge(struct table_store *table, const struct compaction_pick *pick,
    struct lifecycle *lifecycle, compaction_progress_fn progress, void *context,
    struct compaction_result *result, struct error *err);

#endif
