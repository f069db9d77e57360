/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELENUS_SERVER_DENYLIST_H
#define HELENUS_SERVER_DENYLIST_H

/*
 * Partitions that clients may neither read nor write: the rows of system_distributed.partition_denylist, where
 * partition_denylist_enabled says so. An operator adds a row for one that brings its replicas down. Cassandra:
 * schema/PartitionDenylist; there too the table is read at start and every denylist_refresh, and what is refused is told
 * in these words. Statements of the server itself and the keyspaces it needs are exempt.
 *
 * The list is an immutable snapshot that a reload replaces. Any thread may ask.
 */
#include "base/error.h"

struct denylist;
struct execution;
struct executor;
struct modification;
struct select_run;

/* NULL where the configuration does not ask for one; every function below takes that, and has nothing to do. */
struct denylist *denylist_new(struct executor *executor);
void denylist_free(struct denylist *denylist); /* nothing of it runs any more */
/* Read the table and wait; where that fails, the list stays as it is and is read again soon. */
void denylist_load(struct denylist *denylist);
/* Read it again when it is time, on MiscStage. Called by one thread now and then. */
void denylist_tick(struct denylist *denylist);

/* ERROR_INVALID: some of it is denied. */
int denylist_check_select(const struct select_run *run, struct error *err);
int denylist_check_write(const struct execution *execution,
    const struct modification *modifications, uint32_t count, struct error *err);

#endif
