/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SAVED_CACHE_H
#define HELENUS_STORAGE_SAVED_CACHE_H

/*
 * Caches that outlive the process: what the key, row and counter caches hold is written to saved_caches_directory now and
 * then and at a drain, and looked up again in the background after a start. Of rows and counters only the keys are
 * saved: their values are read anew. Cassandra: AutoSavingCache; the format is ours. Integers big-endian:
 *
 *     KeyCache-h1.db, RowCache-h1.db, CounterCache-h1.db
 *     0  8  magic "HELCACHE"
 *     8  4  kind: 0 keys, 1 rows, 2 counters
 *    12     records: u32 length, bytes
 *   end -4  CRC32 of all before
 *
 * A record of the key cache: u8 0 (the SSTable that the next entries are of): 16 table id, u8 is uuid, 16 id, u64 bytes of
 * Data.db, u64 its time in ms; or u8 1 (an entry): u64, u64, u64 positions, u32 blocks, u32 header, 12 deletion, key. The
 * others: 16 table id, key.
 */
#include "base/error.h"
#include "base/bytes.h"

enum saved_cache_kind { SAVED_KEYS, SAVED_ROWS, SAVED_COUNTERS, SAVED_CACHES };

/*
 * Walk the records of a file's content. ERROR_CORRUPT when it is not sound, before the first record is given. `each`: -1
 * ends it.
 */
typedef int (*saved_cache_record_fn)(void *argument, struct slice record, struct error *err);
int saved_cache_decode(struct slice content, enum saved_cache_kind kind, saved_cache_record_fn each,
    void *argument, struct error *err);

struct store;

/* Write the caches that are to be saved. Failures are logged: the old files stay. */
void saved_cache_save(struct store *store);
/* Read them; on a stage's thread, until the store drains or cache_load_timeout has passed. */
void saved_cache_load(struct store *store);

#endif
