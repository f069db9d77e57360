/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_VALIDATION_H
#define HELENUS_STORAGE_VALIDATION_H

/*
 * Validation (repair/Validator, CompactionManager.doValidationCompaction): Merkle trees of a table's data in token
 * ranges, over the SSTables that there are when it begins. Two replicas with the same content make the same trees
 * however it lies in their files: what is hashed is the merged content, without tombstones past gc_grace.
 *
 * Blocks on the disk; runs on the caller's thread (ValidationExecutor), whose progress function sets the pace.
 */
#include "storage/merkle_tree.h"
#include "storage/store.h"

struct validation;

/* Which SSTables count. */
enum validation_data {
	VALIDATION_ALL,
	VALIDATION_UNREPAIRED, /* those of repairs under way neither */
	VALIDATION_REPAIRED,
	VALIDATION_PENDING, /* of one repair session */
};

/*
 * Flush, and hold the SSTables; pending_repair is for VALIDATION_PENDING. The table must not be dropped before
 * validation_free().
 */
int validation_new(struct store *store, struct table_store *table, enum validation_data data,
    const struct uuid *pending_repair, struct validation **out, struct error *err);
/* Partitions in the range (estimate): for merkle_depth(). */
uint64_t validation_estimate(const struct validation *validation, struct merkle_range range);

/* Told now and then of partitions and bytes (of rows, about) since the last call; -1 with *err ends the validation. */
typedef int (*validation_progress_fn)(
    void *context, uint64_t partitions, uint64_t bytes, struct error *err);
/* Fill a tree with the content of its range as of now_seconds, which the repair's coordinator gives to all. */
int validation_run(struct validation *validation, struct merkle_tree *tree, int64_t now_seconds,
    validation_progress_fn progress, void *context, struct error *err);
void validation_free(struct validation *validation); /* accepts NULL */

#endif
