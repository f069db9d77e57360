/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_LIFECYCLE_H
#define HELENUS_STORAGE_LIFECYCLE_H

/*
 * Which SSTables exist: a flush or compaction adds and removes tables all together or not at all, even
 * when the process dies in between. It is told by a transaction log beside the SSTables, in
 * Cassandra's form (LogTransaction, LogFile, LogRecord), so that either server can finish what the
 * other began:
 *
 *     nb_txn_<kind>_<time uuid>.log, one record a line:
 *     ADD:[<directory>/nb-7-big-,0,8][<crc32 of what stands before>]
 *     REMOVE:[<directory>/nb-5-big-,<newest modification ms>,8][...]
 *     COMMIT:[,<ms>,0][...]      or ABORT
 *
 * A log that ends in COMMIT: the REMOVE tables' files are leftovers. Any other log: the ADD tables'.
 */
#include <stdbool.h>
#include "base/env.h"

struct lifecycle;

/* What the transaction adds lies in `directory`, what it removes may lie elsewhere. kind: "flush", "compaction", "cleanup", ... as Cassandra's OperationType file names. */
int lifecycle_begin(struct env *env, const char *directory, const char *kind,
    struct lifecycle **out, struct error *err);
/* Durable before it returns. base: ".../nb-7-big" (without a dash behind). Before the first file of an
 * added table is made; at any time before the commit for a removed one. */
int lifecycle_add(struct lifecycle *lifecycle, const char *base, struct error *err);
int lifecycle_remove(struct lifecycle *lifecycle, const char *base, struct error *err);
/* The point of no return; the added tables' files are durable already. After success the removed tables must
 * not be opened any more; their files are deleted by lifecycle_finish(). */
int lifecycle_commit(struct lifecycle *lifecycle, struct error *err);
/* Delete the files of what was removed (after commit) or added (else), then the log; frees. Accepts NULL.
 * Failures are logged and leave the log for the next start. */
void lifecycle_finish(struct lifecycle *lifecycle);

/*
 * As lifecycle_finish() after a commit, when the removed tables may still be read: each is marked
 * obsolete and deletes its files with its last reference; after the last one the log goes. Frees.
 */
struct sstable;
void lifecycle_finish_obsolete(
    struct lifecycle *lifecycle, struct sstable *const *removed, uint32_t count);

/* Where what a transaction adds lies; lives as long as it. */
const char *lifecycle_directory(const struct lifecycle *lifecycle);

/*
 * At start, before SSTables are listed: finish every transaction log found in the table's directories. A table that a
 * log names is looked for in all of them: its data may have been copied from elsewhere.
 */
int lifecycle_recover(
    struct env *env, const char *const *directories, uint32_t count, struct error *err);

/*
 * While the node runs: the tables that transaction logs of `directory` name, being added or removed at this
 * moment or shortly before (an ended transaction's log is gone). NULL on failure; freed with lifecycle_busy_free().
 */
struct lifecycle_names;
struct lifecycle_names *
lifecycle_busy_list(struct env *env, const char *directory, struct error *err);
/* base: as in lifecycle_add(). */
bool lifecycle_is_busy(const struct lifecycle_names *busy, const char *base);
void lifecycle_busy_free(struct lifecycle_names *busy); /* accepts NULL */

/* Delete every component of the table `base`: TOC first, so that a half deleted table is never complete. */
int lifecycle_delete_sstable(struct env *env, const char *base, struct error *err);

#endif
