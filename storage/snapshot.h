/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SNAPSHOT_H
#define HELENUS_STORAGE_SNAPSHOT_H

/*
 * Snapshots: hard links of a table's SSTables in <table directory>/snapshots/<tag>/ with manifest.json
 * (the list of Data files) and schema.cql (how to make the table again), as Cassandra lays them
 * (TableSnapshot, SnapshotManifest). Links cost nothing until the originals are compacted away.
 */
#include "storage/store.h"

/* A snapshot of auto_snapshot: its tag is "<reason>-<wall clock ms>-<table>". */
int snapshot_auto(struct table_store *table, const char *reason, struct error *err);
/* snapshot_before_compaction: what is on disk, as "<wall clock ms>-compact-<table>". */
int snapshot_before_compaction(struct table_store *table, struct error *err);
/* nodetool scrub: what is on disk, as "pre-scrub-<wall clock ms>". */
int snapshot_before_scrub(struct table_store *table, struct error *err);
/* Remove the snapshots whose time is over, and note when the next one's is. On the timer's thread. */
void snapshot_expire(struct store *store);

struct sstable;
/* incremental_backups: link the new table's files into backups/, where that is asked for. A failure is logged. */
void snapshot_back_up(struct table_store *table, struct sstable *sstable);

/* Bytes that only the table's snapshots still hold: files with no other link. */
uint64_t snapshot_true_bytes(struct store *store, const struct table_store *table);

#endif
