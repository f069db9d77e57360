/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_STORAGE_SNAPSHOT_H
#define HELENUS_STORAGE_SNAPSHOT_H

/*
 * Snapshots: hard links of a table's SSTables in <table directory>/snapshots/<tag>/ with manifest.json
 * (the list of Data files) and schema.cql (how to make the table again), as Cassandra lays them
 * (TableSnapshot, SnapshotManifest). Links cost nothing until the originals are compacted away.
 */
#include "storage/store.h"

/* "<reason>-<wall clock ms>-<table>": the tags of auto_snapshot. Heap, the caller's. */
char *snapshot_auto_tag(struct env *env, const char *reason, const char *table);

/* Bytes that only the table's snapshots still hold: files with no other link. */
uint64_t snapshot_true_bytes(struct store *store, const struct table_store *table);

#endif
