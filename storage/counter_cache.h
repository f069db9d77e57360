/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_COUNTER_CACHE_H
#define HELENUS_STORAGE_COUNTER_CACHE_H

/* The part of the counter cache that the store calls; counter_cache.c explains it, store.h has the look-up. */
#include "storage/table_store.h"

/* An update of a counter table is in the memtable: keep this node's shards, or forget all where it deletes. leads: they are its
 * newest; others' updates may bring older ones back. */
void
counter_cache_note(struct table_store *table, const struct partition_update *update, bool leads);
/* What stands in the key of an entry; views of `bytes`. False: it is no such key. */
bool counter_cache_parse_key(struct slice bytes, struct slice *key, struct slice *position,
    bool *is_static, struct slice *column);
/* Look a counter up on disk and keep it, unless somebody updates it meanwhile. For saved caches. */
int counter_cache_load(struct table_store *table, struct slice bytes, struct error *err);
/* The table's SSTables are replaced by other data. */
void counter_cache_forget_table(struct table_store *table);

#endif
